"""The words of kernel expressions: the public kernels of the library, and those that users add."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.spaces import Space
from mercer.validation import check_choice

Class = TypeVar("Class", bound=type[Similarity])

_added: dict[str, type[Similarity]] = {}


@cache
def library() -> dict[str, type[Similarity]]:
    """The public classes of the library that can be built, in the order of its table of names."""
    homes = vars(import_module("mercer"))["_HOME"]
    public = {
        name: getattr(import_module(home), name)
        for home, names in homes.items()
        if home.startswith("mercer.kernels.")
        for name in names.split()
    }
    return {
        name: value
        for name, value in public.items()
        if inspect.isclass(value) and issubclass(value, Similarity) and not inspect.isabstract(value)
    }


def vocabulary() -> dict[str, type[Similarity]]:
    """The kernels, weights and rules that an expression may name: the library's, then registered ones.

    >>> vocabulary()["Linear"]()
    Linear()
    """
    return library() | _added


def register(cls: Class) -> Class:
    """Make your own class of kernels known by its name: to `mc.parse`, and to the catalogue.

    The class must describe itself in a class attribute `about`. Registering another class of the same name replaces
    it; the names of the library cannot be replaced.

    >>> import numpy as np, mercer as mc
    >>> @mc.register
    ... class Brownian(mc.Kernel):
    ...     about = mc.About("min(x, z)", "Random walks that start at 0.", "Brownian()")
    ...
    ...     def tile(self, block, out):
    ...         x, z = block.vectors()
    ...         np.minimum(x, z.T, out=out)
    >>> mc.parse("0.5 * Brownian()")([[1.0], [2.0]])
    array([[0.5, 0.5],
           [0.5, 1. ]])
    """
    if not inspect.isclass(cls) or not issubclass(cls, Similarity) or inspect.isabstract(cls):
        raise InvalidInput(
            "A registered class must be a kernel that can be built",
            got=repr(cls),
            advice="Derive it from mc.Kernel, and define `tile`.",
        )
    if not isinstance(getattr(cls, "about", None), About):
        raise InvalidInput(
            f"{cls.__name__} must describe itself before it is registered",
            got="no class attribute `about`",
            advice=f'Add about = mc.About("the formula", "its use.", "{cls.__name__}()").',
        )
    if cls.__name__ in library():
        raise InvalidInput(
            "A registered class must have a name of its own",
            got=f"{cls.__name__}, a kernel of the library",
            advice="Give it another name.",
        )
    _added[cls.__name__] = cls
    return cls


def _spaces() -> dict[str, Space]:
    """The spaces of all known kernels, by name."""
    return {str(space): space for cls in vocabulary().values() if isinstance(space := cls.space, Space)}


def space_named(name: str) -> Space:
    """The space of objects of this name, among those of all known kernels.

    >>> space_named("sets")
    'sets'
    """
    if isinstance(name, Space):
        return name
    known = _spaces()
    advice = (
        "For other objects pass candidates, as in refute(k, points=[...]) or check_laws(k, X), or register a kernel "
        "with a space of yours (docs/your-own-kernel.md)."
    )
    return known[check_choice(name, "space", known, advice=advice)]


def space_of(X: Any) -> Space | None:
    """The space that holds all these objects; None for rows of numbers, tables, and objects that no space claims.

    >>> space_of(["a text", "another"]), space_of([[1.0, 2.0], [3.0, 4.0]])
    ('strings', None)
    """
    if not isinstance(X, (list, tuple)) and not (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "OU"):
        return None
    objects = list(X)
    return next((space for space in _spaces().values() if objects and space.holds_all(objects)), None)


def suited(X: Any) -> dict[str, Kernel]:
    """Kernels that suit a list of objects, by name; empty for rows of numbers and tables.

    >>> list(suited(["a text", "another"]))[:1]
    ['runs of 1 to 3 symbols']
    """
    space = space_of(X)
    return {} if space is None else {n: k for n, k in space.kernels(X).items() if isinstance(k, Kernel)}
