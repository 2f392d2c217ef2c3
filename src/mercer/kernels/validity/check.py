"""Mercer's condition on data, and what to do with a matrix that fails it.

A function is a kernel if K is positive semidefinite on every data set. On one data set that can be checked, by three
statements that are equivalent (lecture 001): no eigenvalue of K is negative; K = PᵀP for a real matrix P; aᵀKa ≥ 0
for every a. Passing on one data set proves nothing about others: `proof` derives the condition for all of them, and
`refute` searches for one that fails.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.custom import stated_errors
from mercer.kernels.validity.confirmation import interval_bound
from mercer.kernels.validity.interval import Interval
from mercer.kernels.validity.noise import ROUNDINGS, measured_noise, precision

Matrix = NDArray[np.float64]

# If `ROUNDINGS` and two more per column are not enough, values are compared with the bounds of the leaf. They may be
# off by twice the 2⁻⁴⁰ that `Similarity.enclose` grants, in roundings; a larger difference is an error of the leaf.
GRANTED = 2**14
# If a proof and a matrix contradict each other, they are compared exactly on at most this many points.
COMPARED = 64


class Verdict(enum.Enum):
    """The result of testing Mercer's condition on one matrix."""

    HOLDS = "it holds up to rounding"
    ROUNDING = "it fails for the computed values, but the kernel is proven: the values lost digits"
    FAILS = "it fails"


@dataclass(frozen=True, eq=False)
class Check:
    """Mercer's condition on one matrix, by its three equivalent statements.

    Attributes
    ----------
    psd : bool
        Whether all three hold up to `tolerance`, for the matrix as it was computed, on this data.
    verdict : Verdict
        `Verdict.HOLDS`; `Verdict.FAILS`, which is certain: not a kernel; or `Verdict.ROUNDING`: the computed matrix
        fails, but the kernel has a proof that exact arithmetic does not contradict, so its values lost digits.
    eigenvalues : array
        Of K, ascending.
    factor : array or None
        P with K = PᵀP up to rounding, one row per eigenvalue above the tolerance; None if K has no such factor.
    residual : float
        ‖K − PᵀP‖₂ for the best P.
    quadratic, vector : float, array
        The smallest aᵀKa of a unit vector, and this a.
    tolerance : float
        By how much rounding alone can change an eigenvalue.
    rank : int
        The number of eigenvalues above the tolerance.
    asymmetry : float
        The largest |k(x, z) − k(z, x)|.
    """

    psd: bool
    eigenvalues: Matrix = field(repr=False)
    factor: Matrix | None = field(repr=False)
    residual: float
    quadratic: float
    vector: Matrix = field(repr=False)
    tolerance: float
    rank: int
    asymmetry: float
    verdict: Verdict = Verdict.HOLDS

    def __str__(self) -> str:
        n = len(self.eigenvalues)
        rows = [
            (
                "eigenvalues ≥ 0",
                f"smallest {self.eigenvalues[0]:.6g}, largest {self.eigenvalues[-1]:.6g}",
                self.by_eigenvalues,
            ),
            ("K = PᵀP", f"best ‖K − PᵀP‖₂ = {self.residual:.3g}, P of rank {self.rank}", self.by_factor),
            ("aᵀKa ≥ 0", f"smallest for a unit vector {self.quadratic:.6g}", self.by_quadratic),
        ]
        verdict = "positive semidefinite" if self.psd else "NOT positive semidefinite"
        limit = f"{'up to' if self.psd else 'beyond'} a rounding tolerance of {self.tolerance:.2g}"
        head = f"{verdict} on these {n} points, {limit}:"
        if self.verdict is Verdict.ROUNDING:
            head = f"{verdict} as computed on these {n} points, {limit}; its proof stands, so the values lost digits:"
        return "\n".join([head, *(f"  {'yes' if holds else 'no ':3}  {what:<16} {how}" for what, how, holds in rows)])

    @property
    def by_eigenvalues(self) -> bool:
        return bool(self.eigenvalues[0] >= -self.tolerance)

    @property
    def by_factor(self) -> bool:
        return self.residual <= self.tolerance

    @property
    def by_quadratic(self) -> bool:
        return self.quadratic >= -self.tolerance


def check(kernel: Similarity | ArrayLike, X: Any = None, *, roundings: int | None = None) -> Check:
    """Test Mercer's condition on a data set, or on a bare symmetric matrix.

    The tolerance is the amount by which floating-point arithmetic can change an eigenvalue of an n × n matrix; u = 2⁻⁵³
    is the unit roundoff:

    * The entries were evaluated with a relative error ε of the largest, so that the eigenvalues moved by at most
      ‖E‖₂ ≤ n·ε·max|K| (Weyl). ε is r roundings of the matrix's own precision (2⁻⁵³ or 2⁻²⁴), with r = 64 + 2d for
      each leaf on d columns, times 1 + log max|K| because an exponential or a power turns absolute errors of its
      argument into relative ones; and at least the stated `error` of a FromFunction. For a bare matrix r = 64. Before
      a kernel fails, ε is measured: values are compared with `kernel.enclose`, and those of a Python function with
      their neighbours.
    * The eigensolver is backward stable: it returns the eigenvalues of K + F, ‖F‖₂ ≤ p(n)·u·‖K‖₂ with a modestly
      growing p(n) (LAPACK Users' Guide, section 4.7). Two-sided reduction to tridiagonal form by n reflections, its
      solution and the transformation back give p(n) = 4n by the rule of thumb that replaces the constants of the worst
      case by their square roots (Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 2.8 and 19.3).

    Parameters
    ----------
    kernel : Similarity or array
        A kernel, or a symmetric matrix.
    X : array, frame or list of objects
        The data set, for a kernel.
    roundings : int or None
        r, if you know a better value.

    Examples
    --------
    >>> import mercer as mc
    >>> X = [[0.0], [1.0], [3.0]]
    >>> mc.check(mc.Gaussian(1.0), X).psd
    True
    >>> print(mc.check([[1.0, 2.0], [2.0, 1.0]]))
    NOT positive semidefinite on these 2 points, beyond a rounding tolerance of 3.1e-14:
      no   eigenvalues ≥ 0  smallest -1, largest 3
      no   K = PᵀP          best ‖K − PᵀP‖₂ = 1, P of rank 1
      no   aᵀKa ≥ 0         smallest for a unit vector -1
    """
    if isinstance(kernel, Similarity):
        if X is None:
            raise InvalidInput("check(k, X) needs data", got="X = None", advice="Pass X, or use mc.refute(k).")
        points, K, asymmetry, error = _evaluate(kernel, X, roundings)
    elif X is not None:
        raise InvalidInput(
            "With data, the first argument must be a kernel",
            got=type(kernel).__name__,
            advice="Write check(K) for a matrix, or wrap a function as mc.FromFunction(f).",
        )
    else:
        K = _matrix(kernel)
        error = (roundings or ROUNDINGS) * _unit(K)
        K, asymmetry = _symmetric(K, error)
    result = _examined(K, error, asymmetry)
    if result.psd or not isinstance(kernel, Similarity):
        return result
    if roundings is None:
        error = max(error, _measured(kernel, points, K, result.vector))
        result = _examined(K, error, asymmetry)
    if not result.psd and _proven(kernel, points) and not _confirmed(kernel, points, result):
        result = dataclasses.replace(result, verdict=Verdict.ROUNDING)
    return result


def _proven(kernel: Similarity, points: Points) -> bool:
    """Whether the kernel has a proof; claims of authors count only if all points can be compared exactly."""
    proof = kernel.proof(dim=_columns(points) or None)
    return proof.valid and (points.n <= COMPARED or not proof.claimed)


def _examined(K: Matrix, error: float, asymmetry: float) -> Check:
    """The three statements about a symmetric matrix whose entries are off by `error` of the largest."""
    n, size = len(K), float(np.abs(K).max())
    if size == 0:
        return Check(True, np.zeros(n), np.zeros((0, n)), 0.0, 0.0, np.eye(n)[0], 0.0, 0, asymmetry)
    # In units of the largest entry, so that nothing overflows.
    A = K / size
    values, vectors = np.linalg.eigh(A)
    tolerance = n * error + 4 * n * _unit(A) * float(np.abs(values).max())
    kept = values > tolerance
    P = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    residual = float(np.linalg.norm(A - P.T @ P, 2))
    a = vectors[:, 0]
    quadratic = float(a @ A @ a / (a @ a))
    holds = values[0] >= -tolerance and residual <= tolerance and quadratic >= -tolerance
    with np.errstate(over="ignore"):
        return Check(
            psd=bool(holds),
            eigenvalues=values * size,
            factor=P[kept] * np.sqrt(size) if holds else None,
            residual=residual * size,
            quadratic=quadratic * size,
            vector=a,
            tolerance=tolerance * size,
            rank=int(kept.sum()),
            asymmetry=asymmetry,
            verdict=Verdict.HOLDS if holds else Verdict.FAILS,
        )


def _measured(kernel: Similarity, points: Points, K: Matrix, a: Matrix) -> float:
    """The error of the entries relative to the largest, as far as it can be measured."""
    X, vectorial = points.raw, isinstance(points.raw, np.ndarray) and points.raw.ndim == 2
    if stated_errors(kernel):
        error = ROUNDINGS * precision(K)
        if vectorial:
            error = max(error, measured_noise(lambda x, z: float(kernel(x[None], z[None])[0, 0]), X.astype(np.float64)))
        return error
    most = np.argsort(-np.abs(a))[:8]
    try:
        E = _enclosed(kernel, X, most)
    except Exception:  # no bounds for these objects
        return 0.0
    values = (Fraction(v) for v in K[np.ix_(most, most)].ravel().tolist())
    off = max(max(e.upper - v, v - e.lower) for v, e in zip(values, itertools.chain(*E)))
    error = float(off) / float(np.abs(K).max())
    return error if error <= len(kernel.leaves) * GRANTED * _unit(kernel(take(X, most[:1]))) else 0.0


def _confirmed(kernel: Similarity, points: Points, result: Check) -> bool:
    """Whether aᵀKa < 0 is certain, on the points with the largest weights in a."""
    most = np.sort(np.argsort(-np.abs(result.vector))[:COMPARED])
    try:
        E = _enclosed(kernel, points.raw, most)
    except Exception:  # no bounds for these objects
        return False
    return interval_bound(E, result.vector[most]) < 0


def _enclosed(kernel: Similarity, X: Any, index: NDArray[np.intp]) -> list[list[Interval]]:
    """Bounds of K on some of the points."""
    rows = list(take(X, index))
    exact = [tuple(Fraction(float(v)) for v in x) if isinstance(x, np.ndarray) and x.ndim == 1 else x for x in rows]
    return [[kernel.enclose(x, z) for z in exact] for x in exact]


def _evaluate(kernel: Similarity, X: Any, roundings: int | None) -> tuple[Points, Matrix, float, float]:
    """The points, K on them, its asymmetry, and the error of its entries relative to the largest."""
    points = kernel.prepare(X)
    # The Gram matrix of one data set mirrors a triangle. An unproven function needs both, so it gets two data sets.
    K = kernel(points) if kernel.proof().valid else kernel(points, Points(points.raw))
    if roundings is None:
        growth = 1 + np.log(max(1.0, float(np.abs(K).max())))
        roundings = math.ceil(len(kernel.leaves) * (ROUNDINGS + 2 * _columns(points)) * growth)
    error = max(roundings * _unit(K), *stated_errors(kernel), 0.0)
    return points, *_symmetric(K, error), error


def _columns(points: Points) -> int:
    row = points.raw if hasattr(points.raw, "shape") else points.raw[0]
    return int(row.shape[-1]) if hasattr(row, "shape") else len(row) if isinstance(row, (list, tuple)) else 0


def _unit(K: NDArray[Any]) -> float:
    """Unit roundoff of the matrix's precision."""
    return float(np.finfo(K.dtype).eps) / 2


def _matrix(K: Any) -> NDArray[Any]:
    """A finite square float matrix."""
    try:
        A = np.asarray(K.toarray() if hasattr(K, "toarray") else K)
        A = A if A.dtype in (np.float32, np.float64) else A.astype(np.float64, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "K must be a matrix of real numbers", got=str(error), advice="Pass a square array, or a kernel and data."
        ) from None
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise InvalidInput(
            "K must be a square matrix", got=f"shape {A.shape}", advice="Pass one row and column per point."
        )
    if not np.isfinite(A).all():
        i, j = np.argwhere(~np.isfinite(A))[0]
        raise InvalidInput(
            "K must be finite", got=f"{A[i, j]} in row {i}, column {j}", advice="Check how this entry was computed."
        )
    return A


def _symmetric(K: NDArray[Any], error: float) -> tuple[Matrix, float]:
    """(K + Kᵀ)/2 in double precision and the asymmetry, which must be explained by an error of the entries."""
    A = K.astype(np.float64)
    halves = np.abs(A / 2 - A.T / 2)
    asymmetry = 2 * float(halves.max())
    if asymmetry > 2 * error * np.abs(A).max():
        i, j = np.unravel_index(int(halves.argmax()), halves.shape)
        raise InvalidInput(
            "K must be symmetric",
            got=f"{A[i, j]:.10g} in row {i}, column {j}, but {A[j, i]:.10g} in row {j}, column {i}",
            advice="Pass (K + K.T)/2, which has the same quadratic form: no asymmetric function is a kernel.",
        )
    return A / 2 + A.T / 2, asymmetry


@dataclass(frozen=True, eq=False)
class Repair:
    """A positive semidefinite matrix made from one that is not, and the same change for rows of new points.

    Attributes
    ----------
    K : array
        The repaired matrix.
    method : str
        "clip", "flip" or "shift".
    negative : array
        The eigenvalues that were negative beyond the eigensolver's rounding, ascending.
    moved : float
        ‖K_repaired − K‖ in the Frobenius norm.
    relative : float
        The same as a share of ‖K‖.
    """

    K: Matrix = field(repr=False)
    method: str
    negative: Matrix
    moved: float
    relative: float
    _projection: Matrix | None = field(repr=False)

    def project(self, rows: ArrayLike) -> Matrix:
        """Rows k(x, X) of new points, made consistent with the repaired matrix: row · UMUᵀ.

        Clip drops the directions of negative eigenvalues (M = 1[λ > 0]), flip turns their sign (M = sgn λ); on the
        training rows both give the repaired matrix. A shift changes k(x, x) alone, so rows of new points stay.

        >>> import numpy as np, mercer as mc
        >>> K = np.array([[1.0, 2.0], [2.0, 1.0]])
        >>> bool(np.allclose(mc.repair(K).project(K), mc.repair(K).K))
        True
        """
        R = np.asarray(rows, dtype=np.float64)
        if R.ndim not in (1, 2) or R.shape[-1] != len(self.K):
            raise InvalidInput(
                f"Rows must have one column per training point, {len(self.K)} here",
                got=f"shape {R.shape}",
                advice="Pass k(X_test, X_train).",
            )
        return R.copy() if self._projection is None else R @ self._projection

    def __str__(self) -> str:
        n = len(self.negative)
        what = f"{n} of {len(self.K)} eigenvalues {'was' if n == 1 else 'were'} negative"
        what += f" (smallest {self.negative[0]:.6g})" if n else ""
        return f"{self.method}: {what}; K moved by {self.moved:.6g}, {100 * self.relative:.3g} % of its Frobenius norm"


def repair(K: ArrayLike, method: str = "clip") -> Repair:
    """Make a symmetric matrix positive semidefinite.

    With K = UΛUᵀ: "clip" sets negative eigenvalues to 0, which gives the nearest positive semidefinite matrix in the
    Frobenius norm (Higham 1988); "flip" takes |λ|, which keeps what the indefinite directions contribute to distances;
    "shift" adds −λ_min to the diagonal, which leaves the similarities of different points unchanged.

    Parameters
    ----------
    K : array
        A symmetric matrix.
    method : str
        "clip", "flip" or "shift".

    References
    ----------
    Chen, Garcia, Gupta, Rahimi and Cazzanti, Similarity-based classification, JMLR 10, 2009.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> r = mc.repair([[1.0, 2.0], [2.0, 1.0]])
    >>> r.K.round(12).tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    >>> print(r)
    clip: 1 of 2 eigenvalues was negative (smallest -1); K moved by 1, 31.6 % of its Frobenius norm
    """
    if method not in ("clip", "flip", "shift"):
        raise InvalidInput(
            "`method` must be 'clip', 'flip' or 'shift'", got=repr(method), advice="Choose 'clip' to change K least."
        )
    entries = _matrix(K)
    A, _ = _symmetric(entries, ROUNDINGS * _unit(entries))
    size = float(np.abs(A).max()) or 1.0
    values, U = np.linalg.eigh(A / size)
    if method == "shift":
        projection = None
        B = A / size + max(0.0, -float(values[0])) * np.eye(len(A))
    else:
        kept = np.where(values > 0, 1.0, 0.0) if method == "clip" else np.sign(values)
        projection = (U * kept) @ U.T
        B = (U * (kept * values)) @ U.T
    B = (B + B.T) / 2
    moved = float(np.linalg.norm(B - A / size))
    length = float(np.linalg.norm(A / size))
    with np.errstate(over="ignore"):
        return Repair(
            K=B * size,
            method=method,
            negative=values[values < -4 * len(A) * _unit(A) * np.abs(values).max()] * size,
            moved=moved * size,
            relative=moved / length if length else 0.0,
            _projection=projection,
        )
