"""Sizes that steer the speed of local sums; results depend on them within their tolerance only."""

FEW_PAIRS = 2**14
"""Pairs of a query and a point: up to here no faster path is worth its preparation."""
MATRIX_COLUMNS = 64
"""Columns of V: beyond it nothing is faster than matrix products."""
DIRECT_COLUMNS = 16
"""Columns of the points: up to here differences are summed directly, beyond it tiles are."""
NEAR_SHARE = 0.5
"""Share of the points within reach: below it cells save time, above it all pairs are summed."""
CELL_POINTS = 16
"""Points per cell: with fewer, cells cost more than their points; with more, many points are out of reach."""
GROUP_QUERIES = 64
"""Queries that share one copy of the points: fewer copy more often, more have points in common less often."""
FAR_PAIRS = 1e8
"""Pairs of far queries and points on a line: from here on they are worth a second set of cells."""
LINE_POINTS = 8192
"""Queries or points on a line that one thread sums before it looks for an interrupt and fetches more."""
TREE_NEIGHBOURS = 64
"""Neighbours: up to here a tree is faster than all distances."""
MOMENT_COLUMNS = 3
"""Columns: up to here second moments are summed as monomials; beyond it there are too many of them."""
