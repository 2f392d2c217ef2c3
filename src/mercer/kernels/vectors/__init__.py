"""Kernels on vectors: functions of the inner product, of the distance, and of differences column by column."""
