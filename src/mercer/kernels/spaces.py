"""Spaces of objects: the kinds of objects that kernels compare, and how to draw some of them.

A space is a name that knows its objects. Leaves state it as their class attribute `space`; the laws draw sample points
from it, and the search for counterexamples draws a pool of objects and changes them a little. A new kind of objects
is one subclass of `Space` beside its leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.errors import InvalidInput

if TYPE_CHECKING:
    from mercer.kernels.base import Similarity

POOL = 64
"""The number of objects with which a search for a counterexample starts, unless a space names better ones."""


class Space(str):
    """The name of a kind of objects, which can draw some of them at random.

    A subclass defines `sample`, and `pool` and `mutated` if it knows objects in which violations hide. With `holds` and
    `kernels`, models choose a kernel for such objects by themselves.

    >>> import mercer as mc
    >>> class Words(mc.Space):
    ...     def sample(self, kernel, n, rng):
    ...         return ["".join(rng.choice(list("ab"), size=3)) for _ in range(n)]
    >>> Words("words").sample(None, 2, np.random.default_rng(0))
    ['bbb', 'aaa']
    """

    __slots__ = ()
    vectorial = False
    """Whether the objects are rows of numbers, which the search may move a little in every direction."""
    numeric_rows = False
    """Whether the objects are rows of numbers of a special kind, so that kernels on vectors take them, too."""
    instead = ""
    """How to correct a wrong guess of the kind of objects, in Python; empty where there is no doubt."""
    complete = False
    """Whether `pool` holds all the objects that there are."""

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        """n objects that the kernel takes, drawn at random."""
        raise InvalidInput(
            "A space of objects must be able to draw some",
            got=f"the space {str(self)!r} without `sample`",
            advice="Define `sample` in the class of the space, or pass your own points, such as check_laws(k, X).",
        )

    def letters(self, kernel: Similarity) -> str:
        """The letters of which a search makes up objects, unless it is given others."""
        return "01"

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        """The objects with which a search for a counterexample starts: small ones, of up to `length` parts."""
        return distinct(self.sample(kernel, POOL, rng))

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        """A slightly changed object; by default another one."""
        return self.sample(kernel, 1, rng)[0]

    def holds(self, x: Any) -> bool:
        """Whether x is clearly one of these objects, so that a model without a kernel may choose one for it."""
        return False

    def holds_all(self, objects: list[Any]) -> bool:
        """Whether all objects of a list are clearly of this kind; a list may show more than one object does."""
        return all(map(self.holds, objects))

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Kernels that suit such objects, by name: the first is a model's default, automatic models try all."""
        return {}

    def show(self, x: Any) -> str:
        """An object as a counterexample prints it."""
        return show(x)


def show(x: Any) -> str:
    """A vector, a number or another object, short.

    >>> show(np.array([1.0, 0.5])), show(frozenset({2}))
    ('(1, 0.5)', '{2}')
    """
    if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "f":
        return f"({', '.join(map(show, x))})"
    if isinstance(x, (np.generic, float)):
        return str(x).removesuffix(".0")
    return repr(set(x)) if isinstance(x, frozenset) and x else repr(x)


def distinct(objects: Any) -> list[Any]:
    """The objects without repetitions, in order; all of them if they have no hash."""
    try:
        return list(dict.fromkeys(objects))
    except TypeError:
        return list(objects)


class Vectors(Space):
    """Rows of numbers, with as many columns as the parameters of the kernel require."""

    __slots__ = ()
    vectorial = True

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=(n, dimension(kernel)))


VECTORS, TABLE, ANY = Vectors("vectors"), Vectors("table"), Vectors("any")
"""Rows of numbers; columns by name or position; any objects. The last two are tried on rows of numbers."""


def dimension(kernel: Similarity, default: int = 3) -> int:
    """The number of columns that the parameters of an expression require."""
    if columns := getattr(kernel, "columns", ()):
        return max([default, *(int(c) + 1 for c in columns if not isinstance(c, str))])
    sizes = [] if kernel.children else [np.shape(value)[0] for value in kernel.per_column.values()]
    sizes += [np.shape(A)[0]] if np.ndim(A := getattr(kernel, "A", 0.0)) else []
    sizes += [dimension(child, 0) for child in kernel.children.values()]  # type: ignore[arg-type]
    return max(sizes, default=0) or default
