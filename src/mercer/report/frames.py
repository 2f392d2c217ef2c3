"""The columns of a table in words: their kinds, values and missing values, and how a kernel reads them."""

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
from mercer.words import count, cut
from mercer.words import number as number_in_words

BARS = 14
"""Bars that show a distribution."""
LONG = 16
"""Values of a larger mean length than this, most of them different, are texts and not categories."""


def names(X: Any) -> list[str]:
    """The names of the columns; x0, x1, … for a matrix."""
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
    """The number of rows a model was fitted to: a search that ended at its time limit may use only some of them.

    >>> import numpy as np, mercer as mc
    >>> X = np.arange(8.0)[:, None]
    >>> fitted_rows(mc.KernelRidge().fit(X, X[:, 0]), 8), fitted_rows(mc.KernelRidge().fit(X[:5], X[:5, 0]), 8)
    ('8 rows', '5 of 8 rows')
    """
    fitted = rows_of(model)
    return count(given, "row") if fitted is None or fitted >= given else f"{fitted:,} of {given:,} rows"


@dataclass(frozen=True)
class Column:
    """One column in words."""

    name: str
    kind: str
    missing: int
    distinct: int
    summary: str
    heights: tuple[float, ...]
    """The distribution of its values, as heights of a few bars."""


def number(value: float | np.floating[Any]) -> str:
    """A number with at most four digits, without an exponent if possible."""
    return number_in_words(float(value), padded=False)


def cell(value: Any) -> str:
    """A value as text in a table.

    >>> cell(0.5), cell(None), cell(float("nan")), cell("red")
    ('0.5', 'missing', 'missing', 'red')
    """
    if value is None:
        return "missing"
    if isinstance(value, (float, np.floating)):
        return "missing" if np.isnan(value) else number(value)
    return cut(str(value.item() if isinstance(value, np.generic) else value), 90)


def kinds_read(kernel: Any, names: list[str]) -> dict[str, str] | None:
    """The kinds as which a kernel reads its columns ("" if it states none); None if it reads all in the same way."""
    if isinstance(kernel, Typed):
        return {name: "category" if kind == "code" else kind for name, kind, _ in kernel.kinds}
    if isinstance(kernel, On):
        kind = "category" if isinstance(kernel.kernel, Categorical) else ""
        return {names[c] if isinstance(c, int) else c: kind for c in kernel.columns}
    if not isinstance(kernel, Similarity):
        return None
    kinds: dict[str, str] = {}
    for child in kernel.children.values():
        below = kinds_read(child, names)
        if below is None:
            return None
        kinds = below | {name: kind for name, kind in kinds.items() if kind or name not in below}
    return kinds or None


def described(X: Any, kinds: dict[str, str] | None = None) -> list[Column]:
    """Every column in words: its kind (from `kinds` if known there), missing values, and range or frequent values."""
    columns = []
    for j, name in enumerate(names(X)):
        given = "" if kinds is None else kinds.get(name, "not used")
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
    """The kind, the range, the number of different values and the distribution of a numeric column."""
    low, middle, high = np.quantile(present, [0.0, 0.5, 1.0])
    distinct = len(np.unique(present))
    finite = present[np.isfinite(present)].astype(np.float64)
    heights = np.histogram(finite, min(BARS, max(distinct, 1)))[0] if len(finite) else np.zeros(1)
    return "number", f"{number(low)} … {number(middle)} … {number(high)}", distinct, heights


def _others(present: NDArray[Any]) -> tuple[str, str, int, NDArray[Any]]:
    """The same for categories (with their most frequent values), texts (with an example) and dates (with a range)."""
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
