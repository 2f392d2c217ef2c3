"""The operators of the algebra: `+`, `*`, `/` and `exp` of kernels (lectures 000, 001 and 004).

Operators make flat sums and products: a + b + c is one sum of three. Constructors never flatten.
"""

from __future__ import annotations

from typing import Any

from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.algebra.entrywise import Exp, Poly, Power
from mercer.kernels.algebra.linear import Product, Scaled, Sum, WeightProduct
from mercer.kernels.algebra.nodes import Constant, Node, operand
from mercer.kernels.algebra.parameters import show
from mercer.kernels.algebra.rescaling import Normalized, Rescaled
from mercer.kernels.algebra.views import After, On, WeightOn
from mercer.kernels.base import Kernel, Weight
from mercer.validation import is_number

__all__ = [
    "After", "Constant", "Exp", "Node", "Normalized", "On", "Poly", "Power", "Product", "Rescaled", "Scaled", "Sum",
    "WeightOn", "WeightProduct", "add", "divide", "exp", "multiply", "multiply_weights", "no_rule",
]  # fmt: skip


def no_rule(expression: str, got: str, why: str) -> RuleBroken:
    return RuleBroken(
        f"No rule makes {expression} a kernel",
        got=got,
        advice=f"{why[0].upper()}{why[1:]}; write it as mc.FromFunction(f) to test it with mc.refute.",
    )


def add(left: Any, right: Any) -> Kernel:
    """k₁ + k₂, flat."""
    terms = [operand(k, "Rule k₁ + k₂") for k in (left, right)]
    return Sum(tuple(t for k in terms for t in (k.kernels if isinstance(k, Sum) else (k,))))


def multiply(left: Any, right: Any) -> Kernel:
    """k₁ · k₂, flat; a number gives a scaled kernel."""
    for number, kernel in ((left, right), (right, left)):
        if is_number(number):
            if isinstance(kernel, Scaled) and number > 0 and "scale" not in kernel.fixed:
                return Scaled(float(number) * kernel.scale, kernel.kernel)
            return Scaled(number, kernel)
    factors = [operand(k, "Rule k₁ · k₂") for k in (left, right)]
    return Product(tuple(f for k in factors for f in (k.kernels if isinstance(k, Product) else (k,))))


def divide(kernel: Kernel, number: Any) -> Kernel:
    if is_number(number) and number > 0:
        return multiply(1.0 / number, kernel)
    raise RuleBroken(
        "Rule c·k: the divisor must be a number > 0",
        got=show(number),
        advice="Divide by a positive number, or use k.normalize() to divide by √(k(x,x)k(z,z)).",
    )


def multiply_weights(left: Weight, right: Any) -> Weight:
    if not isinstance(right, Weight):
        raise InvalidInput(
            "A product weight must be made of weights", got=repr(right), advice="Multiply weights on their own columns."
        )
    return WeightProduct(tuple(w for k in (left, right) for w in (k.kernels if isinstance(k, WeightProduct) else (k,))))


def exp(kernel: Any) -> Kernel:
    """exp(k), a kernel by the exponential rule.

    >>> import numpy as np, mercer as mc
    >>> mc.exp(np.log(2) * mc.Intersection())([{1, 2}, {2, 3}]).round(12)
    array([[4., 2.],
           [2., 4.]])
    """
    return Exp(operand(kernel, "Rule exp(k)"))
