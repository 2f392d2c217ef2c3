"""The parameters `kernel` and `bandwidth` of a density: a family of kernels, and its widths on the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.radial import ByWidth, Gaussian
from mercer.models.base import shortened
from mercer.models.density.parzen_columns import MixedTable, level_weights, widest
from mercer.smoothing import density
from mercer.tuning import bandwidth as rules
from mercer.tuning.parzen_likelihood import LIMIT, PRECISION, loo
from mercer.tuning.quasi_newton import Evaluation
from mercer.tuning.search import Criterion, GradientSearch
from mercer.tuning.trials import LOO_LIKELIHOOD, Measure
from mercer.validation import check_number, check_numbers
from mercer.words import count

Float = NDArray[np.float64]

RULES = {"scott": rules.scott, "silverman": rules.silverman, "isj": rules.isj, "loo": None}
COMBINATIONS = 64
"""The largest number of combinations of categories for a leave-one-out likelihood: it sums over each one separately."""


def apply_rule(kernel: Any, X: Any) -> Any:
    """The result of a rule X → kernel; any other parameter unchanged."""
    if callable(kernel) and not isinstance(kernel, (type, Similarity)):
        return kernel(X)
    return kernel


def check_tolerance(tolerance: Any) -> None:
    """Check the relative error of sums."""
    check_number(tolerance, "tolerance", above=0, below=1, such_as=1e-8)


def family(kernel: Any) -> ByWidth:
    """The kernel that a parameter stands for: an instance, which has a width, a class, or None for the Gaussian."""
    member = Gaussian(1.0) if kernel is None else kernel
    if isinstance(member, type) and member in density.families():
        member = member()
    if type(member) not in density.families():
        names = ", ".join(f.__name__ for f in density.families())
        raise InvalidInput(
            "`kernel` of a density must be a family whose integral is known, as a class or an instance, or None",
            got=shortened(kernel),
            advice=f"Pass one of {names}; None is the Gaussian.",
        )
    assert isinstance(member, ByWidth)
    return member


@dataclass(frozen=True, eq=False)
class Widths:
    """Widths for d columns: one each, or a covariance matrix with its Cholesky factor.

    shown : (d,) widths, or the (d, d) covariance matrix.
    root : the Cholesky factor, lower triangular (d, d), or None.
    notes : remarks on the choice, for `status_`.
    """

    shown: Float
    root: Float | None = None
    notes: tuple[str, ...] = ()

    @property
    def log_volume(self) -> float:
        """The logarithm of the product of all widths, or of the determinant of the root."""
        return float(np.log(self.shown if self.root is None else np.diag(self.root)).sum())

    @property
    def sigma(self) -> Any:
        """The width of the kernel on `whitened` data."""
        if self.root is not None:
            return 1.0
        return float(self.shown[0]) if (self.shown == self.shown[0]).all() else self.shown

    def whitened(self, X: Float) -> Float:
        """X in units in which the kernel is radial; X itself if every column has its own width."""
        if self.root is None:
            return X
        return np.ascontiguousarray(solve_triangular(self.root, X.T, lower=True).T)

    def spread(self, u: Float) -> Float:
        """Draws in units of the kernel, (n, d), as steps in the columns' units."""
        return u * self.shown if self.root is None else u @ self.root.T


def resolve(similarity: ByWidth, bandwidth: Any, X: Float, w: Float | None, name: str = "bandwidth") -> Widths:
    """Widths from a rule's name, a rule X → widths, a number, one per column, or a covariance matrix."""
    d = X.shape[1]
    required = (
        f"`{name}` must be a number > 0, one for each of {count(d, 'column')}, a covariance matrix ({d}, {d}), a "
        "rule X → widths, or one of 'scott', 'silverman', 'isj', 'loo'"
    )
    if isinstance(bandwidth, str):
        if bandwidth not in RULES:
            raise InvalidInput(required, got=repr(bandwidth), advice="Pass one of these names.")
        factor = density.equivalent(similarity, d)
        notes: tuple[str, ...] = ()
        if bandwidth == "loo":
            tuned = loo(X, w)
            widths, notes = tuned.parameters["widths"], tuned.notes
        elif bandwidth == "isj":
            plug = rules.plug_in(X, w)
            widths = plug.widths
            notes = tuple(f"Column {k} has Silverman's width: {reason}." for k, reason in plug.reasons.items())
        else:
            widths = RULES[bandwidth](X, w)  # type: ignore[misc]
        return Widths(factor * widths, notes=notes)
    if isinstance(bandwidth, Similarity) or (isinstance(bandwidth, type) and issubclass(bandwidth, Similarity)):
        raise InvalidInput(
            required,
            got=f"a kernel, {shortened(bandwidth)}",
            advice=f"Pass it as {name.replace('bandwidth', 'kernel')}.",
        )
    if callable(bandwidth):
        bandwidth = bandwidth(X)
    advice = f"Pass one number such as 0.5, or one for each of {count(d, 'column')} of numbers."
    H = check_numbers(bandwidth, required, shapes=((), (d,), (d, d)), advice=advice)
    if H.ndim < 2 and (H <= 0).any():
        advice = "Pass widths > 0: a width of 0 would put all mass on the points."
        raise InvalidInput(required, got=shortened(bandwidth), advice=advice)
    if H.ndim < 2:
        return Widths(np.broadcast_to(H, (d,)).copy())
    return Widths(H, covariance_root(H, name))


def covariance_root(H: Float, name: str) -> Float:
    """The Cholesky factor of a covariance matrix, checked."""
    diagonal = np.diag(H)
    if (diagonal > 0).all():
        scale = np.sqrt(diagonal)
        C = H / np.outer(scale, scale)
        if np.abs(C - C.T).max() <= 1e-10 and np.linalg.eigvalsh(C)[0] > 1e-13 * len(C):
            return scale[:, None] * np.linalg.cholesky(0.5 * (C + C.T))
    raise InvalidInput(
        f"`{name}` as a matrix must be symmetric positive definite",
        got=shortened(H),
        advice="Pass a covariance, with squares of widths on its diagonal, or one width per column.",
    )


def loo_with_categories(
    X: Float, codes: NDArray[np.int64], table: MixedTable, w: Float | None, start: Float
) -> tuple[Float, list[float]]:
    """Widths of numbers and categories together that maximise the leave-one-out likelihood, by its gradient."""
    d = X.shape[1]
    criterion = CategoryCriterion.of(X, codes, table, w, start)
    begin = np.concatenate([np.log(start), np.full(len(table.levels), -2.0)])
    at = GradientSearch(criterion).descend([begin], precision=PRECISION, limit=LIMIT).at
    widths = criterion.natural(at.x)
    return widths[:d], widths[d:].tolist()


@dataclass(frozen=True, eq=False)
class CategoryCriterion(Criterion):
    """−Σ wᵢ log f₋ᵢ(xᵢ, cᵢ)/Σw and its gradient, by log h of the numbers and by θ of the categories, λ = top/(1 + e⁻ᶿ).

    Equal rows are left out together, as in `loo`. The sums T over the points of every combination g of levels do not
    depend on λ: f₋ᵢ = Σ_g B[cᵢ, g] Tᵢ_g, where B is the product of the level weights of all columns.
    """

    X: Float
    counts: Float
    combinations: NDArray[np.int64]
    member: NDArray[np.int64]
    table: MixedTable
    tops: Float
    low: Float
    high: Float

    @classmethod
    def of(
        cls, X: Float, codes: NDArray[np.int64], table: MixedTable, w: Float | None, start: Float
    ) -> CategoryCriterion:
        """The criterion for these rows, with bounds around the widths to start with."""
        different, inverse = np.unique(np.hstack([X, codes]), axis=0, return_inverse=True)
        counts = np.bincount(inverse.ravel(), w, len(different)).astype(np.float64)
        d = X.shape[1]
        combinations, member = np.unique(different[:, d:].astype(np.int64), axis=0, return_inverse=True)
        if len(combinations) > COMBINATIONS:
            raise InvalidInput(
                f"bandwidth='loo' requires at most {COMBINATIONS} combinations of categories",
                got=f"{len(combinations)}",
                advice="Use 'isj' or 'scott', or pass `bandwidth` and `category_bandwidth` as numbers.",
            )
        tops = np.array([widest(len(levels), o) for levels, o in zip(table.levels, table.ordered)])
        low, high = (
            np.concatenate([np.log(start) + reach, np.full(len(tops), side)]) for reach, side in ((-7, -12), (5, 12))
        )
        return cls(different[:, :d], counts, combinations, member.ravel(), table, tops, low, high)

    @property
    def measure(self) -> Measure:
        return LOO_LIKELIHOOD

    @property
    def names(self) -> list[str]:
        d, levels = self.X.shape[1], len(self.tops)
        return [*(f"width[{k}]" for k in range(d)), *(f"category_width[{k}]" for k in range(levels))]

    def natural(self, x: Float) -> Float:
        d = self.X.shape[1]
        return np.concatenate([np.exp(x[:d]), self.tops / (1.0 + np.exp(-x[d:]))])

    def score(self, value: float) -> float:
        return -value

    def __call__(self, x: Float) -> Evaluation:
        n, d = self.X.shape
        counts, c = self.counts, self.combinations
        h, lam = np.split(self.natural(x), [d])
        V = np.zeros((n, len(c)))
        V[np.arange(n), self.member] = counts
        log_scale, T, M = density.left_out_sums(self.X, h, V)
        kinds = list(zip(self.table.levels, lam, self.table.ordered))
        factors = [level_weights(len(v), a, o)[np.ix_(c[:, k], c[:, k])] for k, (v, a, o) in enumerate(kinds)]
        B = np.prod(factors, axis=0)[self.member]
        f = np.einsum("ig,ig->i", B, T)
        value = log_scale + np.log(f) - np.log(counts.sum() - counts) - np.log(h).sum() - 0.5 * d * np.log(2 * np.pi)
        slopes = [*(counts @ (np.einsum("ikg,ig->ik", M, B) / f[:, None] - 1.0))]
        for k, (levels, a, ordered) in enumerate(kinds):
            step = _slope(len(levels), float(a), ordered)[np.ix_(c[:, k], c[:, k])]
            dB = np.prod([*factors[:k], step, *factors[k + 1 :]], axis=0)[self.member]
            chain = a * (1.0 - a / self.tops[k]) if self.tops[k] > 0 else 0.0
            slopes.append(chain * (counts @ (np.einsum("ig,ig->i", dB, T) / f)))
        return Evaluation(x, -float(counts @ value) / counts.sum(), -np.array(slopes) / counts.sum())


def _slope(levels: int, width: float, ordered: bool) -> Float:
    """The derivative of `level_weights` with respect to the width."""
    if levels == 1:
        return np.zeros((1, 1))
    if not ordered:
        D = np.full((levels, levels), 1.0 / (levels - 1))
        np.fill_diagonal(D, -1.0)
        return D
    steps = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
    A = np.where(steps == 0, 1.0, 0.5 * width**steps)
    dA = np.where(steps == 0, 0.0, 0.5 * steps * width ** np.maximum(steps - 1, 0))
    total = A.sum(axis=0)
    return dA / total - A * dA.sum(axis=0) / total**2
