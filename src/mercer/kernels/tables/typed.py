"""A kernel on a table whose columns have a name and a kind; a column of another kind is refused by its name.

Tables come as pandas or Polars frames, in any order of columns, or as rows without names, whose columns are called x0,
x1, … Columns that the kernel does not use are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar

from mercer.data.columns import read, tabled
from mercer.data.frames import Table
from mercer.data.missing import refuse_missing
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.nodes import operand
from mercer.kernels.algebra.proof import COMPOSITION, Proof
from mercer.kernels.algebra.views import Viewed
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.spaces import TABLE

KINDS = {
    "numbers": "number",
    "dates": "date",
    "codes": "code",
    "categories": "category",
    "tokens": "tokens",
    "texts": "text",
    "molecules": "molecule",
}


@dataclass(frozen=True)
class Reading:
    """The columns of a table, each read as its kind."""

    kinds: tuple[tuple[str, str, tuple[Any, ...]], ...]  # name, kind, and the levels of an ordered column
    complete: tuple[str, ...]
    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Table:
        table = tabled(points.raw)
        _require_columns([name for name, _, _ in self.kinds], list(table))
        columns = {name: read(table[name], kind, name, levels) for name, kind, levels in self.kinds}
        for name in self.complete:
            refuse_missing(columns[name], name, "Fill them, or make the kernel with missing='own'.")
        return Table(columns)


def _require_columns(names: list[str], there: list[str]) -> None:
    known = set(there)
    absent = [name for name in names if name not in known]
    if absent:
        close = {name: get_close_matches(name, there, 1) for name in absent}
        renamed = [f"{name!r} may now be {near[0]!r}" for name, near in close.items() if near]
        raise InvalidInput(
            f"The table must have the column{'s' if len(absent) > 1 else ''} {', '.join(map(repr, absent))}",
            got=f"columns {there if len(there) <= 20 else [*there[:20], '…']}",
            advice=f"Rename the columns if they are the same: {', '.join(renamed)}."
            if renamed
            else "Add the columns that the kernel was made for.",
        )


class Typed(Viewed, Kernel):
    """A kernel on the columns of a table, each read as values of a given kind.

    Dates are read as days since 1970 (UTC), ordered categories as their position among the levels, numbers as floats,
    token lists as sets. The error about a column of another kind, or a missing column, names it. The order of columns
    does not matter, and columns that are not named here are ignored.

    Parameters
    ----------
    kernel : Kernel
        The kernel, on columns by name.
    numbers, dates, codes, categories, tokens, texts, molecules : sequence of str
        Names of the columns that hold numbers, dates (or ISO 8601 texts), numbers or booleans that stand for
        categories, categories in words, lists or sets, texts, and SMILES texts, which RDKit reads.
    ordered
        Pairs (name, levels) of the columns of ordered categories, levels from the lowest to the highest.
    complete : sequence of str
        Names of columns in which a missing value is refused.

    Examples
    --------
    >>> import pandas as pd, mercer as mc
    >>> k = mc.Typed(mc.Gaussian(1.0).on("age") * mc.Delta().on("city"), numbers=["age"], categories=["city"])
    >>> k(pd.DataFrame({"city": ["Rome", "Oslo"], "age": [31, 45]}))
    array([[1., 0.],
           [0., 1.]])
    >>> k(pd.DataFrame({"city": ["Rome"], "Age": [31]}))
    Traceback (most recent call last):
    mercer.errors.InvalidInput: The table must have the column 'age', got columns ['city', 'Age']. Rename the \
columns if they are the same: 'age' may now be 'Age'.
    """

    about: ClassVar[About] = About(
        "k(φ(x), φ(z)), φ reads columns J by kind, C complete",
        "Tables whose columns are read by name and kind (mc.table_kernel).",
        "Typed(Gaussian(10.0).on('age'), numbers=['age'])",
        arguments={
            "numbers": Argument("J", "names of columns"),
            "dates": Argument("J", "names of columns"),
            "codes": Argument("J", "names of columns"),
            "categories": Argument("J", "names of columns"),
            "tokens": Argument("J", "names of columns"),
            "texts": Argument("J", "names of columns"),
            "molecules": Argument("J", "names of columns"),
            "ordered": Argument("J", "pairs (name, levels from the lowest)"),
            "complete": Argument("C", "names of columns"),
        },
    )

    kernel: Any
    numbers: Any = ()
    dates: Any = ()
    codes: Any = ()
    categories: Any = ()
    tokens: Any = ()
    texts: Any = ()
    molecules: Any = ()
    ordered: Any = ()
    complete: Any = ()
    space: ClassVar[str] = TABLE

    def check(self) -> None:
        self._set(kernel=operand(self.kernel, "Rule k(phi(x), phi(z))"))
        for field in (*KINDS, "complete"):
            self._set(**{field: _names(getattr(self, field), field)})
        try:
            ordered = tuple((str(name), tuple(levels)) for name, levels in self.ordered)
        except (TypeError, ValueError):
            raise InvalidInput(
                "`ordered` must hold pairs of a name and its levels",
                got=repr(self.ordered),
                advice='Pass pairs, such as ordered=[("size", ["S", "M", "L"])].',
            ) from None
        self._set(ordered=ordered)
        names = [name for name, _, _ in self.kinds]
        known = set(names)
        if len(known) < len(names):
            raise InvalidInput("A column must be named once", got=names, advice="Name each column for one kind only.")
        used = {c for node in self.kernel.nodes for c in getattr(node, "columns", ())}
        unknown = [c for c in (*used, *self.complete) if c not in known]
        if unknown:
            raise InvalidInput(
                "Every column of the kernel must be of a known kind",
                got=f"{unknown[0]!r}, of no kind",
                advice=f"Name it: numbers=[{unknown[0]!r}], or another kind.",
            )

    @property
    def kinds(self) -> tuple[tuple[str, str, tuple[Any, ...]], ...]:
        """The columns that are read: name, kind, and the levels of an ordered column."""
        plain = [(name, kind, ()) for field, kind in KINDS.items() for name in getattr(self, field)]
        return (*plain, *((name, "ordered", levels) for name, levels in self.ordered))

    @property
    def view(self) -> Reading:
        return Reading(self.kinds, self.complete)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The names of the columns that the table must have."""
        return tuple(name for name, _, _ in self.kinds)

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return self.inner.terms(self.columns_read)

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.inner.tags, radial=False, universal=False, finite_rank=False)

    def conclusion(self, *premises: Proof) -> Proof:
        return COMPOSITION(self.inner, *premises, condition="phi reads each column by its kind")

    def __repr__(self) -> str:
        lists = [f"{field}={_listed(value)}" for field, value in self._fields().items() if field != "kernel" and value]
        return f"Typed({', '.join([repr(self.inner), *lists])})"


def _names(value: Any, field: str) -> tuple[str, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__") or not all(isinstance(name, str) for name in value):
        raise InvalidInput(
            f"`{field}` must be a list of column names",
            got=repr(value),
            advice=f'Pass a list, such as {field}=["a", "b"].',
        )
    return tuple(value)


def _listed(value: Any) -> str:
    return f"[{', '.join(_listed(v) if isinstance(v, tuple) else repr(v) for v in value)}]"
