"""The columns of a table in words: what each holds, how much of it is missing, and what the kernel takes it for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.frames import column_names, is_frame
from mercer.data.missing import missing_entries
from mercer.data.objects import object_array
from mercer.kernels.algebra.views import On
from mercer.kernels.base import Similarity
from mercer.kernels.tables.categories import Categorical
from mercer.kernels.tables.typed import Typed
from mercer.models.provenance import fitted_rows as rows_of
from mercer.words import cut
from mercer.words import number as number_in_words

BARS, LONG = 14, 16
"""Bars that show a distribution, and letters from which a value of its own is a text."""


def names(X: Any) -> list[str]:
    """The columns' names; x0, x1, … where there are none."""
    if is_frame(X):
        return column_names(X)
    shape = getattr(X, "shape", None) or np.shape(X)
    return [f"x{j}" for j in range(shape[1])] if len(shape) == 2 else ["object"]


def column(X: Any, j: int) -> NDArray[Any]:
    """The values of one column."""
    if is_frame(X):
        return np.asarray(frames.column(X, j))
    if sp.issparse(X):
        return np.asarray(X[:, [j]].todense()).ravel()
    return np.asarray(X)[:, j] if len(np.shape(X)) == 2 else object_array(list(X))


def fitted_rows(model: Any, given: int) -> str:
    """How many rows a model was really fitted to, of those it was given: a search that time stopped takes fewer.

    >>> import numpy as np, mercer as mc
    >>> X = np.arange(8.0)[:, None]
    >>> fitted_rows(mc.KernelRidge().fit(X, X[:, 0]), 8), fitted_rows(mc.KernelRidge().fit(X[:5], X[:5, 0]), 8)
    ('8 rows', '5 of 8 rows')
    """
    taken = rows_of(model)
    taken = given if taken is None else taken
    return f"{given:,} row{'s' * (given != 1)}" if taken >= given else f"{taken:,} of {given:,} rows"


@dataclass(frozen=True)
class Column:
    """One column in words."""

    name: str
    kind: str
    missing: int
    distinct: int
    summary: str
    heights: tuple[float, ...]
    """How its values are distributed, as a few bars."""


def number(value: float | np.floating[Any]) -> str:
    """Four digits, without an exponent where it can be."""
    return number_in_words(float(value), padded=False)


def taken(kernel: Any, names: list[str]) -> dict[str, str] | None:
    """The kinds as which a kernel reads its columns, "" where it states none; None where it reads all columns alike."""
    if isinstance(kernel, Typed):
        return {name: "category" if kind == "code" else kind for name, kind, _ in kernel.kinds}
    if isinstance(kernel, On):
        kind = "category" if isinstance(kernel.kernel, Categorical) else ""
        return {names[c] if isinstance(c, int) else c: kind for c in kernel.columns}
    if not isinstance(kernel, Similarity):
        return None
    kinds: dict[str, str] = {}
    for child in kernel.children.values():
        below = taken(child, names)
        if below is None:
            return None
        kinds = below | {name: kind for name, kind in kinds.items() if kind or name not in below}
    return kinds or None


def described(X: Any, known: dict[str, str] | None = None) -> list[Column]:
    """Every column in words: its kind (where it is `known`, that), what is missing, its range or commonest values."""
    columns = []
    for j, name in enumerate(names(X)):
        given = "" if known is None else known.get(name, "left out")
        values = column(X, j)
        missing = missing_entries(values)
        present = values[~missing]
        if present.dtype == object and len(present) and all(isinstance(v, (int, float)) for v in present[:50]):
            present = present.astype(np.float64)
        numeric = present.dtype.kind in "iuf" and len(present) and given != "category"
        kind, summary, distinct, heights = _numbers(present) if numeric else _others(present)
        bars = tuple(map(float, heights))
        columns.append(Column(name, given or kind, int(missing.sum()), distinct, summary or "nothing", bars))
    return columns


def _numbers(present: NDArray[Any]) -> tuple[str, str, int, NDArray[Any]]:
    """The kind, the range, the number of different values and the distribution of numbers."""
    low, middle, high = np.quantile(present, [0.0, 0.5, 1.0])
    distinct = len(np.unique(present))
    finite = present[np.isfinite(present)].astype(np.float64)
    heights = np.histogram(finite, min(BARS, max(distinct, 1)))[0] if len(finite) else np.zeros(1)
    return "number", f"{number(low)} … {number(middle)} … {number(high)}", distinct, heights


def _others(present: NDArray[Any]) -> tuple[str, str, int, NDArray[Any]]:
    """The same of categories, texts and dates: the commonest values, an example, or the range."""
    texts = np.array([str(v) for v in present], dtype=str)
    labels, counts = np.unique(texts, return_counts=True)
    common = np.argsort(-counts, kind="stable")
    if present.dtype.kind == "M" and len(present):
        ends = (cut(str(end), 19) for end in (present.min(), present.max()))
        return "date", " … ".join(ends), len(labels), np.histogram(present.astype(np.int64), BARS)[0]
    if present.dtype.kind not in "bM" and len(labels) > len(texts) / 2 and np.char.str_len(texts).mean() > LONG:
        return "text", f"“{cut(texts[0], 60)}”, …", len(labels), np.histogram(np.char.str_len(texts), BARS)[0]
    kind = {"b": "yes or no", "M": "date"}.get(present.dtype.kind, "category")
    shares = 100 * counts / max(len(texts), 1)
    summary = ", ".join(f"{cut(labels[i], 24)} ({shares[i]:.0f} %)" for i in common[:3])
    return kind, summary, len(labels), counts[common[:BARS]]
