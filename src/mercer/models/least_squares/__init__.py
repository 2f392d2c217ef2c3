"""Models of the squared loss: c = (K + alpha I)⁻¹ y, its Bayesian reading, and interpolation as alpha goes to 0."""
