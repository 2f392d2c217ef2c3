"""A kernel in words: its formula, its use and an example, which every public class states.

The catalogue, the vocabulary of kernel expressions, `mercer kernels` and the law suite read these records; nothing is
written down a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Argument(NamedTuple):
    """An argument in words: its symbol in the formula (by default its name), and the values that it takes.

    Without a `domain` the rule of the parameter gives it (`positive` is "> 0").
    """

    symbol: str = ""
    domain: str = ""


SHARED = {
    "sigma": Argument("σ"),
    "alpha": Argument("α"),
    "nu": Argument("ν"),
    "kernel": Argument("k", "kernel"),
    "kernels": Argument("kᵢ", "tuple of kernels"),
    "columns": Argument("J", "positions or names"),
    "phi": Argument("φ", "Python function X → Φ, or a transformer"),
}
"""Arguments that mean the same in every class."""


@dataclass(frozen=True)
class About:
    """The description of a class of kernels, as its class attribute `about`.

    Attributes
    ----------
    formula, purpose : str
        k(x, z), and its use; one line each.
    example : str
        An expression with this kernel, as `mc.parse` reads it, or Python if it has no text.
    arguments : dict
        (symbol, domain) of arguments by name, if they differ from `SHARED` and from the rule.
    in_python : str
        For a class that holds a Python function: the way to make it in Python, since it cannot be written as text.

    Examples
    --------
    >>> About("min(x, z)", "Random walks that start at 0.", "Brownian()").argument("sigma")
    Argument(symbol='σ', domain='')
    """

    formula: str
    purpose: str
    example: str
    arguments: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    in_python: str = ""

    def argument(self, name: str) -> Argument:
        """The symbol and the domain of an argument; the domain is "" if the rule of the parameter gives it."""
        stated, shared = Argument(*self.arguments.get(name, ())), SHARED.get(name, Argument(name))
        return Argument(stated.symbol or shared.symbol, stated.domain or shared.domain)
