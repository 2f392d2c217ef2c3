"""Local methods: predictions from the neighbours of a point, weighted by a kernel."""
