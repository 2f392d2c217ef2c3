"""Kernels: what similar means.

A kernel is a symmetric function k(x, z) whose matrix K over any points is positive semidefinite: aᵀKa ≥ 0 for all a.
Equivalently there is a feature map phi with k(x, z) = ⟨phi(x), phi(z)⟩, so that every algorithm written in inner
products works for any objects that have a kernel. Valid kernels are closed under a handful of rules; the classes here
are those rules (algebra), the leaves they start from, and the means to prove or refute an expression.
"""
