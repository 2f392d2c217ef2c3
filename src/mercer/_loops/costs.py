"""Sizes that steer the speed of compiled loops; no result depends on them but by rounding.

Loops take them over when they are compiled. The digest that the files with loops hold covers this file, too.
"""

COMPILED_ENTRIES = 256 * 256
"""Entries of a matrix: fewer are left to NumPy, one tile in the calling thread; from here on loops and threads pay."""
INTERPRETED_CELLS = 2**15
"""Cells of all pairs of strings: up to here plain Python takes less time than loading a compiled loop."""
INTERPRETED_NODES = 3000
"""Pairs of nodes of a tile of trees: the same."""
SORTED_KEYS = 64
"""Keys of a row on average: longer rows are sorted by NumPy, one call for each, because it uses vector instructions."""
NEAR_ROWS = 32
"""Rows of bits that stay in the nearest cache while the rows of the other side pass by."""
NEAR_BYTES = 24 * 1024
"""Bytes of columns that many rows meet before the next columns: more leave the first-level cache."""
PANEL_ROWS = 128
"""Rows that meet these columns before the next ones: fewer read columns more often, more leave the cache."""
WEIGHED_POINTS = 256
"""Points whose products with monomials are held at a time: fewer mean short loops, more leave the near cache."""
SOFTMAX_ENTRIES = 2048
"""Entries of η that the softmax has in the fastest cache at a time."""
LEAF_POINTS = 32
"""Points of one block of a sorted line: smaller ones are summed one by one, larger ones from their moments."""
MIRROR_ROWS = 256
"""Rows of one triangle that become one stretch of a row of the other."""
FAR_BYTES = 32 * 1024
"""Bytes between rows: from here on a mirrored row is written past the cache, which cannot hold the matrix."""
CELL_POINTS = 32
"""Points of a grid, per axis, in a cell whose scattered points are met together: more leave the near cache."""
