"""A classification in parts: one problem between two sides for two classes, one per pair or per class for more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Points
from mercer.gram import Gram, KernelGram
from mercer.kernels.base import Similarity
from mercer.memory import budget as memory_budget
from mercer.models.base import Matrix
from mercer.models.svm.margins import duality_gap
from mercer.problems.box import BoxProblem
from mercer.solvers import smo

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Room:
    """Where a part finds its kernel values, and where it keeps them.

    Attributes
    ----------
    gram : of all points.
    rows : the part's own, or None for all.
    kept : what was computed of the Gram and may be used again (`smo.solve`), or None for nothing.
    """

    gram: Gram
    rows: Index | None
    kept: dict[Any, Any] | None


@dataclass(frozen=True, eq=False)
class Part:
    """One problem between two sides.

    Attributes
    ----------
    index : its rows, or None for all.
    signs : −1 or 1 for each of them.
    weights : of each of them.
    between : the labels of the two sides, the negative one first.
    """

    index: Index | None
    signs: Matrix
    weights: Matrix
    between: tuple[str, str]

    def rows(self) -> Index:
        return np.arange(len(self.signs)) if self.index is None else self.index

    def slack(self, solved: Solved) -> Matrix:
        """max(0, 1 − yᵢ f(xᵢ)) of its rows."""
        return np.maximum(0.0, 1.0 - self.signs * (solved.product + solved.summary.offsets[0]))

    def without(self, fold: NDArray[np.bool_]) -> Part:
        """The same sides without the rows of a fold."""
        rows = self.rows()
        left = ~fold[rows]
        return Part(rows[left], self.signs[left], self.weights[left], self.between)


@dataclass(frozen=True, eq=False)
class Summary:
    """What a report and a prediction need of an optimum.

    Attributes
    ----------
    moved, beta : the rows with a coefficient, and it: all rows inside the box are among them, one end of which is 0.
    bound, product : the greatest |β|, and Kβ, of these rows.
    offsets : b of each group, as `BoxProblem.offsets`.
    duality : the duality gap.
    """

    moved: Index
    beta: Matrix
    bound: Matrix
    product: Matrix
    offsets: tuple[float, ...]
    duality: float


@dataclass(frozen=True, eq=False)
class Solved:
    """A part's problem, its optimum, and what to say about it beside (data that no margin separates)."""

    problem: BoxProblem
    optimum: smo.Optimum
    note: str = ""

    @cached_property
    def summary(self) -> Summary:
        """What is asked of it later, while its arrays are at hand."""
        p, o = self.problem, self.optimum
        moved = o.beta.nonzero()[0]
        beta, lower, upper = o.beta.take(moved), p.lower.take(moved), p.upper.take(moved)
        gradient = o.gradient.take(moved)
        free = gradient[(beta > lower) & (beta < upper)] if p.group is None else gradient[:0]
        free = free[~np.isnan(free)] if np.isinf(o.gap) else free  # not known at the time limit
        offsets = [-float(free.sum()) / len(free)] if len(free) else p.offsets(o.beta, o.gradient)
        product = gradient - p.linear.take(moved)
        return Summary(moved, beta, upper - lower, product, tuple(offsets), duality_gap(p, o, offsets))

    @property
    def product(self) -> Matrix:
        """Kβ."""
        return self.optimum.gradient - self.problem.linear

    @property
    def squared_norm(self) -> float:
        """‖f‖² = βᵀKβ."""
        return max(float(self.optimum.beta @ self.product), 0.0)


class Unfinished(KeyboardInterrupt):
    """An interrupt, with what there is of every part."""

    def __init__(self, solved: Sequence[Solved]) -> None:
        super().__init__("interrupted; the best iterate so far was kept")
        self.solved = list(solved)


@dataclass(frozen=True, eq=False)
class Fitted:
    """f = Σ cᵢ k(xᵢ, ·) + b of a part, and what a report tells of it.

    Attributes
    ----------
    coef, intercept : c = β/scale of all its rows, and b.
    scale : what f is divided by.
    errors : rows on the wrong side; −1 where the time limit left no time to look at them all.
    summary : of the optimum, whose values are to be divided by the scale.
    """

    coef: Matrix
    intercept: float
    scale: float
    errors: int
    summary: Summary

    @classmethod
    def of(cls, part: Part, solved: Solved, intercept: float, scale: float = 1.0) -> Self:
        one = solved.summary
        if solved.problem.group is None and solved.optimum.gap < 1:  # the others are right: yᵢ f(xᵢ) ≥ 1 − gap
            errors = np.count_nonzero(one.beta * (one.product + intercept) <= 0)
        else:
            right = part.signs * (solved.product / scale + intercept)
            errors = np.count_nonzero(right <= 0) if not np.isnan(right).any() else np.intp(-1)
        beta = solved.optimum.beta
        return cls(beta if scale == 1 else beta / scale, intercept, scale, int(errors), one)


def by_rows(parts: Sequence[Part], fitted: Sequence[Fitted], n: int, k: int) -> Matrix:
    """The coefficients of all pairs of k classes by rows, shape (n, k − 1).

    Each row has coefficients in its k − 1 pairs alone: column c of class a is its pair with the c-th other.
    """
    coef = np.zeros((n, k - 1))
    for (a, b), part, f in zip(combinations(range(k), 2), parts, fitted):
        rows, of_a = part.rows(), int(np.searchsorted(part.signs, 0.0))  # those of a come first
        coef[_span(rows[:of_a]), b - 1], coef[_span(rows[of_a:]), a] = f.coef[:of_a], f.coef[of_a:]
    return coef


def _span(rows: Index) -> slice | Index:
    """Ascending rows as a slice, where they are one."""
    together = len(rows) > 0 and int(rows[-1]) - int(rows[0]) == len(rows) - 1
    return slice(int(rows[0]), int(rows[-1]) + 1) if together else rows


def pair_values(f: Similarity, support: Points, ends: Any, coef: Matrix, b: Matrix, points: Points) -> Matrix:
    """All pairs' functions at m points, shape (m, k(k − 1)/2).

    Parameters
    ----------
    f : the kernel.
    support, ends, coef : the support vectors sorted by class, where each class begins and ends, and `by_rows` of them.
    b : one constant per pair.
    points : where to evaluate.
    """
    k = len(ends) - 1
    one, other = np.triu_indices(k, 1)
    first, second = one * (k - 1) + other - 1, other * (k - 1) + one  # where a pair's two columns are, class by class
    values = np.empty((points.n, len(one)))

    def work(rows: slice, share: int) -> None:
        K = f(points.take(rows), support)
        by_class = np.empty((len(K), k, k - 1))
        for own, (begin, end) in enumerate(pairwise(ends)):
            by_class[:, own] = K[:, begin:end] @ coef[begin:end]
        columns = by_class.reshape(len(K), -1)
        values[rows] = columns.take(first, axis=1) + columns.take(second, axis=1) + b

    threads.stripes(points.n, work, rows=int(np.clip(2**21 // max(1, support.n), 16, 1024)))
    return values


def per_pair(coef: Matrix, codes: Index, k: int) -> Matrix:
    """`by_rows` of rows with these class numbers as one function per pair, shape (s, k(k − 1)/2)."""
    one, other = np.triu_indices(k, 1)
    pair = np.empty((k, k - 1), dtype=np.int64)  # which one column c of class a belongs to
    pair[one, other - 1] = pair[other, one] = np.arange(len(one))
    found = np.zeros((len(coef), len(one)))
    np.put_along_axis(found, pair[codes], coef, axis=1)
    return found


def votes(values: Matrix, k: int) -> Matrix:
    """The votes of all pairs of k classes, shape (m, k), plus less than ½ by their values, shape (m, k(k − 1)/2)."""
    a, b = np.triu_indices(k, 1)
    of_pairs = np.zeros((len(a), k))
    of_pairs[np.arange(len(a)), a], of_pairs[np.arange(len(a)), b] = -1.0, 1.0
    # A class has the votes of the pairs where it is first, less those it loses, and of the others those it wins.
    won = (values > 0).astype(np.float64) @ of_pairs + np.arange(k)[::-1]
    sums = values @ of_pairs
    return won + sums / (3 * (np.abs(sums) + 1))


@dataclass(frozen=True, eq=False)
class Data:
    """What a classifier is fitted on: points sorted by class, their class numbers, weights, and positions in X.

    `counts` are the sample weights, as often as each row counts; those of the parts are multiplied by class weights.
    """

    points: Points
    codes: Index
    counts: Matrix
    kept: Index
    gram: KernelGram
    parts: tuple[Part, ...]


def rooms(whole: Gram, parts: Sequence[Part], *, again: bool = False) -> list[Room]:
    """Rooms in one Gram, whose points are prepared once for all of them.

    Where they are to be solved `again`, parts of all rows keep their kernel values too, if these fit.
    """
    shared: dict[Any, Any] = {}
    keep = again and 8 * whole.shape[0] ** 2 * min(len(parts), 3) <= memory_budget() // 2
    return [Room(whole, part.index, shared if part.index is not None else {} if keep else None) for part in parts]


def divide(codes: Index, w: Matrix, names: Sequence[str], multiclass: str) -> list[Part]:
    """The parts of rows with these class numbers (sorted where there are more than two) and weights."""
    k = len(names)
    if k == 2:
        return [Part(None, np.where(codes == 1, 1.0, -1.0), w, (names[0], names[1]))]
    if multiclass == "ovr":
        return [Part(None, np.where(codes == c, 1.0, -1.0), w, ("rest", names[c])) for c in range(k)]
    sizes = np.bincount(codes, minlength=k)
    most, ends, at = int(sizes.max()), np.concatenate([[0], np.cumsum(sizes)]).tolist(), np.arange(len(codes))
    rows, ws = [at[i:j] for i, j in pairwise(ends)], [w[i:j] for i, j in pairwise(ends)]
    step, ones = np.repeat([-1.0, 1.0], most), np.ones(2 * most) if (w == 1).all() else None
    parts = []
    for a, b in combinations(range(k), 2):
        window = slice(most - len(rows[a]), most + len(rows[b]))  # of a step that serves all pairs
        weights = np.concatenate((ws[a], ws[b])) if ones is None else ones[window]
        parts.append(Part(np.concatenate((rows[a], rows[b])), step[window], weights, (names[a], names[b])))
    return parts
