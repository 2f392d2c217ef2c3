"""Sizes at which the machines change their way of computing; results depend on them by rounding only."""

OWN_THREADS = 4000
"""Variables: a larger problem uses all threads by itself; smaller ones are solved side by side."""
SHARED_PREPARATION = 30
"""Problems: with more of them, one is solved first and prepares the points for all others."""
CLASSES_TOGETHER = 12
"""Classes: up to here all pairs are summed over all support vectors; beyond it, each pair over its own."""
STORED_COLUMNS = 300
"""Columns × passes over the data: from here on the kernel matrix of vectors is computed once and kept, if it fits."""
