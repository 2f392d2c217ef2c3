"""Densities: Parzen's estimate of p(x), and of p(y | x), on numbers and categories."""
