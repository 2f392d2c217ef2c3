"""Memory-based methods: sums over the data, weighted by the similarity to each query, and estimates from them."""

from __future__ import annotations

from mercer.smoothing.sums import Sums, exponents, sums
from mercer.smoothing.sums.plans import Plan, plan

__all__ = ["Plan", "Sums", "exponents", "plan", "sums"]
