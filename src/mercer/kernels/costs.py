"""Sizes that steer the speed of kernel matrices; no result depends on them but by rounding."""

TILE_ROWS, TILE_COLS = 256, 1024
"""Rows and columns of a tile: smaller ones cost more calls, larger ones leave the cache of a core."""
FUSED_COLUMNS = 60
"""Columns of the points: up to here one fused loop computes a Gaussian; beyond it a BLAS product per tile is faster."""
DIAGONAL_POINTS = 64
"""Points whose k(x, x) is taken from one block: fewer cost more calls, more waste pairs off the diagonal."""
