"""Sizes that steer the speed of kernel matrices; no result depends on them but by rounding."""

TILE_ROWS, TILE_COLS = 256, 1024
"""Rows and columns of a tile: smaller ones cost more calls, larger ones leave the cache of a core."""
SUMMED_COLUMNS = 128
"""Columns of a product in float32 that are added up before float64 takes over: more lose digits and leave the cache."""
FUSED_COLUMNS = 60
"""Columns of the points: up to here one fused loop computes a Gaussian; beyond it a BLAS product per tile is faster."""
DIRECT_COLUMNS = 4
"""Columns of the points: up to here differences are as cheap as a matrix product, and have all digits."""
DIAGONAL_POINTS = 32
"""Points whose k(x, x) is taken from one block: fewer cost more calls, more waste pairs off the diagonal."""
