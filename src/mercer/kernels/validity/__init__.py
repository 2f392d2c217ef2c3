"""Is it a kernel? Mercer's condition on data, repairs of matrices that fail it, and the search for a counterexample.

A function is a kernel exactly if every Gram matrix is positive semidefinite: one set of points with a negative
eigenvalue, confirmed in interval arithmetic, refutes it.
"""
