"""Classes split into problems between two sides, and the coefficients of all pairs by rows: the first step.

Two classes make one problem. More classes make one problem per pair (or one per class against the rest), all on the
same points. With pairs, a row has coefficients only in the k − 1 pairs of its class a, which are kept by rows: column c
belongs to the pair of a with the c-th other class.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Points
from mercer.kernels.base import Similarity
from mercer.models.base import Matrix

Index = NDArray[np.int64]
Part = tuple[Index | None, Matrix, tuple[str, str]]
"""One problem: its rows (None for all), −1 or 1 for each, and the names of the two sides, the negative one first."""


def split(codes: Index, names: Sequence[str], multiclass: str) -> list[Part]:
    """The problems of rows with these class numbers, which must be sorted if there are more than two classes.

    >>> [(rows.tolist(), between) for rows, signs, between in split(np.array([0, 1, 1, 2]), "abc", "ovo")]
    [([0, 1, 2], ('a', 'b')), ([0, 3], ('a', 'c')), ([1, 2, 3], ('b', 'c'))]
    """
    k = len(names)
    if k == 2:
        return [(None, np.where(codes == 1, 1.0, -1.0), (names[0], names[1]))]
    if multiclass == "ovr":
        return [(None, np.where(codes == c, 1.0, -1.0), ("rest", names[c])) for c in range(k)]
    sizes = np.bincount(codes, minlength=k)
    most, ends, at = int(sizes.max()), np.concatenate([[0], np.cumsum(sizes)]).tolist(), np.arange(len(codes))
    of_class, step = [at[i:j] for i, j in pairwise(ends)], np.repeat([-1.0, 1.0], most)
    parts: list[Part] = []
    for a, b in combinations(range(k), 2):
        signs = step[most - len(of_class[a]) : most + len(of_class[b])]  # a view of one array that serves all pairs
        parts.append((np.concatenate((of_class[a], of_class[b])), signs, (names[a], names[b])))
    return parts


def rows_of(part: Part) -> Index:
    """The rows of a problem."""
    rows, signs, _ = part
    return np.arange(len(signs)) if rows is None else rows


def without(part: Part, fold: NDArray[np.bool_]) -> Part:
    """The same sides without the rows of a fold."""
    rows, (_, signs, between) = rows_of(part), part
    left = ~fold[rows]
    return rows[left], signs[left], between


def columns_of(pair: Index, codes: Index, k: int) -> Index:
    """The column, by rows, of the coefficient of a row with this class number in this pair of k classes."""
    one, other = np.triu_indices(k, 1)
    return np.where(codes == one[pair], other[pair] - 1, one[pair])


def per_pair(coef: Matrix, codes: Index, k: int) -> Matrix:
    """Coefficients by rows with these class numbers as one function per pair, shape (s, k(k − 1)/2)."""
    one, other = np.triu_indices(k, 1)
    pair = np.empty((k, k - 1), dtype=np.int64)  # the pair that column c of class a belongs to
    pair[one, other - 1] = pair[other, one] = np.arange(len(one))
    functions = np.zeros((len(coef), len(one)))
    np.put_along_axis(functions, pair[codes], coef, axis=1)
    return functions


def pair_values(f: Similarity, support: Points, ends: Any, coef: Matrix, b: Matrix, points: Points) -> Matrix:
    """All pairs' functions at m points, shape (m, k(k − 1)/2).

    Parameters
    ----------
    f : Similarity
        The kernel.
    support, ends, coef
        Support vectors sorted by class, where each class begins and ends, and coefficients by rows.
    b : array
        One constant per pair.
    points : Points
        Where to evaluate.
    """
    k = len(ends) - 1
    one, other = np.triu_indices(k, 1)
    first, second = one * (k - 1) + other - 1, other * (k - 1) + one  # where a pair's two columns are, class by class
    values = np.empty((points.n, len(one)))

    def work(rows: slice, share: int) -> None:
        K = f(points.take(rows), support)
        by_class = np.empty((len(K), k, k - 1))
        for number, (begin, end) in enumerate(pairwise(ends)):
            by_class[:, number] = K[:, begin:end] @ coef[begin:end]
        columns = by_class.reshape(len(K), -1)
        values[rows] = columns.take(first, axis=1) + columns.take(second, axis=1) + b

    threads.stripes(points.n, work, rows=int(np.clip(2**21 // max(1, support.n), 16, 1024)))
    return values


def votes(values: Matrix, k: int) -> Matrix:
    """The votes of all pairs of k classes, shape (m, k), plus less than ½ by their values, shape (m, k(k − 1)/2)."""
    a, b = np.triu_indices(k, 1)
    of_pairs = np.zeros((len(a), k))
    of_pairs[np.arange(len(a)), a], of_pairs[np.arange(len(a)), b] = -1.0, 1.0
    # A class gets the votes of all pairs in which it is first, less those it loses, and those it wins as the second.
    won = (values > 0).astype(np.float64) @ of_pairs + np.arange(k)[::-1]
    sums = values @ of_pairs
    return won + sums / (3 * (np.abs(sums) + 1))
