"""Perceptrons: one mistake at a time, on columns or in a Hilbert space."""
