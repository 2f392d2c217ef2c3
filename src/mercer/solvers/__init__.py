"""Solvers: from a problem to the coefficients c*. A solver never sees a kernel, only a Gram matrix."""
