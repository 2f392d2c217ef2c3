"""Sizes that steer the speed of kernel matrices; results depend on them by rounding only."""

TILE_ROWS, TILE_COLS = 256, 1024
"""Rows and columns of a tile: smaller ones cost more calls, larger ones leave the cache of a core."""
FUSED_COLUMNS = 60
"""Columns of the points: up to here one fused loop computes a Gaussian; beyond it a BLAS product per tile is faster."""
FREQUENT_SHARE = 1 / 32
"""Share of all pairs that have a counted feature in common: from here on BLAS multiplies it, else a loop over pairs."""
FEW_ROWS = 16
"""New rows of counts: up to here the other side's columns are kept between calls, beyond it both are laid out anew."""
SORTED_CHARACTERS = 2**16
"""Characters of all texts: fewer are sorted to number them; more are looked up in a table of all code points."""
NONZERO_SHARE = 1 / 4
"""Share of the numbers of histograms that are not zero: below it sparse rows are compared, else all columns."""
DIAGONAL_POINTS = 64
"""Points whose k(x, x) is taken from one block: fewer cost more calls, more waste pairs off the diagonal."""
COMPILED_TIMES = 2**22
"""Pairs of time points of two data sets of series: fewer are left to NumPy; compiled loops take a second to load."""
