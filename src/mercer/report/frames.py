"""A table as columns by name, whatever it is: an array, a pandas or a Polars frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


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


def shuffled(X: Any, j: int, order: NDArray[np.int64]) -> Any:
    """The table with one column in another order."""
    if hasattr(X, "iloc"):
        found = X.copy()
        found[X.columns[j]] = X[X.columns[j]].iloc[order].array
        return found
    if hasattr(X, "with_columns"):
        return X.with_columns(X[X.columns[j]][order])
    found = np.array(X)
    found[:, j] = found[order, j]
    return found


@dataclass(frozen=True)
class Column:
    """One column in words."""

    name: str
    kind: str
    missing: int
    distinct: int
    told: str


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a value is NaN, None or NaT."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype == object:
        return np.array([v is None or (isinstance(v, float) and v != v) for v in values], dtype=np.bool_)
    return np.zeros(len(values), dtype=np.bool_)


def described(X: Any) -> list[Column]:
    """Every column in words: its kind, what is missing, and its range or its commonest values."""
    found = []
    for j, name in enumerate(names(X)):
        values = column(X, j)
        gone = missing(values)
        present = values[~gone]
        if present.dtype == object and len(present) and all(isinstance(v, (int, float)) for v in present[:50]):
            present = present.astype(np.float64)
        if present.dtype.kind in "iuf" and len(present):
            low, middle, high = np.quantile(present, [0.0, 0.5, 1.0])
            told, kind = f"{low:.4g} … {middle:.4g} … {high:.4g}", "number"
            distinct = len(np.unique(present))
        else:
            texts = np.array([str(v) for v in present]) if len(present) else np.array([], dtype=str)
            labels, counts = np.unique(texts, return_counts=True)
            common = np.argsort(-counts, kind="stable")[:3]
            told = ", ".join(f"{_short(labels[i])} ({100 * counts[i] / len(texts):.0f} %)" for i in common)
            kind = {"b": "yes or no", "M": "date"}.get(present.dtype.kind, "category")
            distinct = len(labels)
        found.append(Column(name, kind, int(gone.sum()), distinct, told or "nothing"))
    return found


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
