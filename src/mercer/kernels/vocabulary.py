"""The words of kernel expressions: the public kernels of the library, and those that users add."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from mercer.data.frames import is_column, listed
from mercer.data.missing import is_missing
from mercer.errors import InvalidInput, MissingValues
from mercer.kernels.about import About
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.molecules import MOLECULES
from mercer.kernels.spaces import Space
from mercer.validation import check_choice
from mercer.words import shown

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
    """The spaces of all known kernels, by name; molecules first, since they are texts, too."""
    spaces = [MOLECULES, *(cls.space for cls in vocabulary().values())]
    return {str(space): space for space in spaces if isinstance(space, Space)}


def space_named(name: str) -> Space:
    """The space of objects of this name, among those of all known kernels.

    >>> space_named("sets")
    'sets'
    """
    if isinstance(name, Space):
        return name
    known = _spaces()
    advice = (
        "For other objects pass candidates, as in refute(k, points=[...]) or check_laws(k, X), or give the kernel's "
        "class a subclass of mc.Space that draws them."
    )
    return known[check_choice(name, "space", known, advice=advice)]


def is_known(space: str) -> bool:
    """Whether objects of this space can be drawn.

    >>> is_known("sets"), is_known("hours")
    (True, False)
    """
    return isinstance(space, Space) or space in _spaces()


def suited(X: Any) -> tuple[Space | None, dict[str, Kernel]]:
    """The space that holds all these objects, and the kernels that suit them, by name.

    X is a list, an array of objects (also of one column of them) or one column of a frame. The space is None, and there
    are no kernels, for rows of numbers, tables, and objects that no space claims.

    >>> space, kernels = suited(["a text", "another"])
    >>> space, next(iter(kernels))
    ('strings', 'n-grams of 1 to 3 symbols')
    >>> suited([[1.0, 2.0], [3.0, 4.0]])
    (None, {})
    """
    if is_column(X):
        X = listed(X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    if not isinstance(X, (list, tuple)) and not (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "OU"):
        return None, {}
    objects = list(X)
    space = next((space for space in _spaces().values() if objects and space.holds_all(objects)), None)
    if space is None:
        _require_one_kind(objects)
        return None, {}
    return space, {name: k for name, k in space.kernels(objects).items() if isinstance(k, Kernel)}


def _require_one_kind(objects: list[Any]) -> None:
    """Raise if some objects of a list are clearly of one kind, such as texts, and the others are not."""
    foreign = {space: [i for i, x in enumerate(objects) if not space.holds(x)] for space in _spaces().values()}
    space, others = min(foreign.items(), key=lambda item: len(item[1]))
    if len(others) == len(objects):
        return
    odd = objects[others[0]]
    missing = is_missing(odd)
    raise (MissingValues if missing else InvalidInput)(
        "A model without a kernel needs objects of one kind",
        got=f"{'a missing value' if missing else shown(odd)} at position {others[0]}, among {space}",
        advice="Leave the missing ones out, or pass a kernel for them, such as mc.Missing(k)."
        if missing
        else "Convert it or leave it out, or pass a kernel that takes all of them.",
    )
