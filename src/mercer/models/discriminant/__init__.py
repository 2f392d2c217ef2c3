"""Discriminants: directions that separate classes, on columns or in a Hilbert space."""
