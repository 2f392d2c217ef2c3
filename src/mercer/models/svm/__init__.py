"""Support vector machines: one box-constrained dual problem, one function or one for each pair of classes."""
