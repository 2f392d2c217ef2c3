"""A table as columns by name, whatever it is: an array, a pandas or a Polars frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.missing import missing_entries
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
    columns = getattr(X, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    shape = getattr(X, "shape", None) or np.shape(X)
    return [f"x{j}" for j in range(shape[1])] if len(shape) == 2 else ["object"]


def column(X: Any, j: int) -> NDArray[Any]:
    """The values of one column."""
    if hasattr(X, "columns"):
        return np.asarray(X[X.columns[j]])
    if sp.issparse(X):
        return np.asarray(X[:, [j]].todense()).ravel()
    if np.ndim(X) == 2 or (hasattr(X, "shape") and len(X.shape) == 2):
        return np.asarray(X)[:, j]
    found = np.empty(len(X), dtype=object)
    found[:] = list(X)
    return found


def rows(X: Any, index: NDArray[np.int64]) -> Any:
    """Some rows, as the same kind of table."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if isinstance(X, list):
        return [X[i] for i in index]
    return X[index]


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
    told: str
    heights: tuple[float, ...]
    """How its values are distributed, as a few bars."""


def number(value: float | np.floating[Any]) -> str:
    """Four digits, without an exponent where it can be."""
    return number_in_words(float(value), padded=False)


def taken(kernel: Any, names: list[str]) -> dict[str, str] | None:
    """What a kernel takes the columns that it looks at for, "" for as they are; None where it looks at all of them."""
    if isinstance(kernel, Typed):
        return {name: "category" if kind == "code" else kind for name, kind, _ in kernel._kinds}
    if isinstance(kernel, On):
        kind = "category" if isinstance(kernel.kernel, Categorical) else ""
        return {names[c] if isinstance(c, int) else c: kind for c in kernel.columns}
    if not isinstance(kernel, Similarity):
        return None
    found: dict[str, str] = {}
    values = kernel.get_params(deep=False).values()
    parts = [
        v for value in values for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Similarity)
    ]
    for part in parts:
        below = taken(part, names)
        if below is None:
            return None
        found = below | {name: kind for name, kind in found.items() if kind or name not in below}
    return found or None


def described(X: Any, known: dict[str, str] | None = None) -> list[Column]:
    """Every column in words: its kind (where it is `known`, that), what is missing, its range or commonest values."""
    found = []
    for j, name in enumerate(names(X)):
        said = "" if known is None else known.get(name, "left out")
        values = column(X, j)
        gone = missing_entries(values)
        present = values[~gone]
        if present.dtype == object and len(present) and all(isinstance(v, (int, float)) for v in present[:50]):
            present = present.astype(np.float64)
        if present.dtype.kind in "iuf" and len(present) and said != "category":
            low, middle, high = np.quantile(present, [0.0, 0.5, 1.0])
            told, kind = f"{number(low)} … {number(middle)} … {number(high)}", "number"
            distinct = len(np.unique(present))
            finite = present[np.isfinite(present)].astype(np.float64)
            heights = np.histogram(finite, min(BARS, max(distinct, 1)))[0] if len(finite) else np.zeros(1)
        else:
            texts = np.array([str(v) for v in present]) if len(present) else np.array([], dtype=str)
            labels, counts = np.unique(texts, return_counts=True)
            common = np.argsort(-counts, kind="stable")
            kind = {"b": "yes or no", "M": "date"}.get(present.dtype.kind, "category")
            if kind == "category" and len(labels) > len(texts) / 2 and len(texts) and _long(texts):
                kind, told = "text", f"“{cut(texts[0], 60)}”, …"
            elif kind == "date" and len(present):
                told = f"{cut(str(present.min()), 19)} … {cut(str(present.max()), 19)}"
            else:
                shares = 100 * counts / max(len(texts), 1)
                told = ", ".join(f"{cut(labels[i], 24)} ({shares[i]:.0f} %)" for i in common[:3])
            distinct = len(labels)
            lengths = np.char.str_len(texts) if kind == "text" else present.astype(np.int64) if kind == "date" else None
            heights = counts[common[:BARS]] if lengths is None else np.histogram(lengths, BARS)[0]
        bars = tuple(map(float, heights))
        found.append(Column(name, said or kind, int(gone.sum()), distinct, told or "nothing", bars))
    return found


def _long(texts: NDArray[Any]) -> bool:
    return bool(np.char.str_len(texts).mean() > LONG)
