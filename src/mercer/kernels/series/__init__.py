"""Kernels on time series: arrays of unequal length, with one or several channels.

A static kernel compares two points in time; a kernel on series combines its values over all pairs of points, in their
order. `Signature` and `SignaturePDE` compare the shapes of paths, at whatever speed they are run through.
`GlobalAlignment` adds up all ways to align two series; `DTW` takes the best one, and is not positive semidefinite.
"""
