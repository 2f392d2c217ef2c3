"""Estimators with scikit-learn's conventions: thin, and the only layer that knows scikit-learn."""
