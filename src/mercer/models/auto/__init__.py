"""Automatic models: from a table to a fitted model, with every choice of kernel, loss and solver explained."""
