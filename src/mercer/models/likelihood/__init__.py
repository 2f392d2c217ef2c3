"""Models of a smooth loss: logistic regression and generalised linear models, on features or in a Hilbert space."""
