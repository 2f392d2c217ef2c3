"""Kernels on the columns of a table, and the rule that chooses one for each column by its type."""
