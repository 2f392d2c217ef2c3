"""Interpolation of scattered data by radial functions: a drop-in for SciPy's, and local fits for many points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from mercer import gram, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.files import Saved
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.vectors.radial import Gaussian, Radial, RationalQuadratic
from mercer.kernels.vectors.splines import ConditionalKernel, Multiquadric, Polyharmonic, ThinPlate
from mercer.memory import budget, show_count, within
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Monomials, Singular, Tail, count, factors, monomials
from mercer.solvers.saddle import HOPELESS, SaddleFactor, diagnose, repeated

Matrix = NDArray[np.float64]

# Entries of local systems that one thread holds at a time: they stay in the cache.
LOCAL_ENTRIES = 2**16

# SciPy's names: the radial function of ε r, for ε = 1/width.
NAMES: dict[str, Callable[[float], Similarity]] = {
    "linear": lambda width: Polyharmonic(1, sigma=width),
    "thin_plate_spline": lambda width: ThinPlate(width),
    "cubic": lambda width: Polyharmonic(3, sigma=width),
    "quintic": lambda width: Polyharmonic(5, sigma=width),
    "multiquadric": lambda width: Multiquadric(width),
    "inverse_multiquadric": lambda width: RationalQuadratic(width, alpha=0.5),
    "inverse_quadratic": lambda width: RationalQuadratic(width / np.sqrt(2.0), alpha=1.0),
    "gaussian": lambda width: Gaussian(width / np.sqrt(2.0)),
}
# Those for which another ε is another smoothing only.
SCALE_INVARIANT = ("linear", "thin_plate_spline", "cubic", "quintic")


class RBFInterpolator(Saved):
    """f(x) = Σ cᵢ φ(‖x − yᵢ‖) + polynomial, through the data or near it: the arguments and values of SciPy's class.

    (Φ + diag(smoothing)) c + P b = d and Pᵀc = 0, by the null space of P and a Cholesky factor.

    Parameters
    ----------
    y : n points, shape (n, k).
    d : their values, real or complex, shape (n, ...).
    neighbors : the value at each query is that of the interpolant of this number of nearest points (np.inf: of all n);
        by default one interpolant of all points.
    smoothing : λ ≥ 0, one or one per point; 0 interpolates.
    kernel : "linear" −r, "thin_plate_spline" r² log r, "cubic" r³, "quintic" −r⁵, "multiquadric" −√(1 + r²),
        "inverse_multiquadric" 1/√(1 + r²), "inverse_quadratic" 1/(1 + r²), "gaussian" exp(−r²), each of ε r; or any
        kernel or radial function of this library, which has its own width.
    epsilon : ε > 0. It must be given for the last four names and for "multiquadric".
    degree : of the polynomial; −1 for none. By default the least that the function needs, and at least 0.

    Attributes
    ----------
    condition : the estimated condition number of the system (None with `neighbors`): 1e12 leaves about four digits.

    >>> import numpy as np, mercer as mc
    >>> y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> f = mc.RBFInterpolator(y, [0.0, 1.0, 1.0, 2.0])
    >>> f([[0.25, 0.5], [2.0, 2.0]]).round(12)
    array([0.75, 4.  ])

    References
    ----------
    Wendland, Scattered Data Approximation, 2005, chapter 8.
    """

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: int | None = None,
        smoothing: Any = 0.0,
        kernel: str | Similarity = "thin_plate_spline",
        epsilon: float | None = None,
        degree: int | None = None,
    ) -> None:
        self.y = _matrix(y, "y")
        n, k = self.y.shape
        self.d, self.d_shape, self.d_dtype = _values(d, n)
        self.smoothing = _smoothing(smoothing, n)
        self._function, self.kernel, self.epsilon = _radial(kernel, epsilon)
        least = order_of(self._function) - 1
        degree = max(least, 0) if degree is None else _degree(degree)
        if -1 < degree < least:
            warnings.warn(
                f"`degree` should not be below {least} except -1 when `kernel` is {self.kernel!r}. The interpolant may "
                "not be uniquely solvable, and the smoothing parameter may have an unintuitive effect.",
                UserWarning,
                stacklevel=2,
            )
        self._degree, self._definite = degree, degree >= least
        columns = factors(k, degree)
        self.powers = np.array([[e.count(j) for j in range(k)] for e in columns], dtype=np.int64).reshape(-1, k)
        self.neighbors = None if neighbors is None else _count(neighbors, n)
        nobs = n if self.neighbors is None else self.neighbors
        if len(columns) > nobs:
            raise InvalidInput(
                f"At least {len(columns)} data points are required when `degree` is {degree} and the number of "
                f"dimensions is {k}",
                got=f"{nobs}" + ("" if self.neighbors is None else " neighbors"),
                advice="Add points, or choose a lower `degree`.",
            )
        self.condition: float | None = None
        if self.neighbors is None:
            self._f = self._fit()
        else:
            self._local = LocalFits(self._function, self.y, self.d, self.smoothing, self.neighbors, degree)

    def __call__(self, x: Any) -> NDArray[Any]:
        """f at m queries x, shape (m, k): values of shape (m, ...)."""
        x = _matrix(x, "x", empty=True)
        if x.shape[1] != self.y.shape[1]:
            raise InvalidInput(
                f"Expected the second axis of `x` to have length {self.y.shape[1]}",
                got=f"shape {x.shape}",
                advice="Pass the same columns as in `y`.",
            )
        if not len(x):
            out = np.empty((0, self.d.shape[1]))
        elif self.neighbors is None:
            out = np.asarray(self._f(x))
        else:
            out = self._local(x)
        return np.ascontiguousarray(out).view(self.d_dtype).reshape(len(x), *self.d_shape)

    def _fit(self) -> Expansion:
        """The function of all points."""
        n = len(self.y)
        within(8 * n * n, budget(), f"The {n}×{n} system", "Use `neighbors`, such as 50.")
        points = self._function.prepare(self.y)
        basis, P = None, None
        if self._degree >= 0:
            basis = Monomials.around(points, self._degree)
            basis.require_unisolvent(points)
            P = basis(points)
        try:
            factor = self._factor(points, P, self._definite)
        except np.linalg.LinAlgError as error:
            if not self._definite:
                raise self._singular(points, str(error)) from None
            try:  # positive definite, but not to rounding: LU still solves it
                factor = self._factor(points, P, False)
            except np.linalg.LinAlgError as again:
                raise self._singular(points, str(again)) from None
        self.condition = factor.condition
        if factor.condition > HOPELESS and not self.smoothing.any() and repeated(gram.of(self._function, points)):
            raise self._singular(points, "")
        c, b = factor.solve(self.d)
        return Expansion(self._function, points, c, None if basis is None or b is None else Tail(basis, b))

    def _factor(self, points: Points, P: Matrix | None, definite: bool) -> SaddleFactor:
        K = self._function(points, dtype=np.float64)
        K.flat[:: len(K) + 1] += self.smoothing
        return SaddleFactor(K, 0.0, None, P, definite=definite)

    def _singular(self, points: Points, reason: str) -> Singular:
        return diagnose(gram.of(self._function, points), float(self.smoothing.min()), reason)


class LocalFits:
    """At each query, the value of the interpolant of its k nearest points: one small bordered system per neighbourhood.

    Queries with the same neighbours share a system, and systems of one size are solved many at a time.

    Parameters
    ----------
    kernel : a kernel, or a conditionally positive definite function.
    X, y : n points and their values, shapes (n, d) and (n, t).
    ridge : what is added to the diagonal, shape (n,).
    k : the number of neighbours.
    degree : of the polynomial tail, in coordinates in which each neighbourhood fills [−1, 1]; −1 for none.

    >>> import mercer as mc
    >>> X = np.arange(100.0)[:, None]
    >>> LocalFits(mc.Polyharmonic(1), X, X**2, np.zeros(100), 2, 0)(np.array([[2.5]]))     # a straight line from 2 to 3
    array([[6.5]])
    """

    def __init__(self, kernel: Similarity, X: Matrix, y: Matrix, ridge: Matrix, k: int, degree: int) -> None:
        if count(X.shape[1], degree) > k:
            raise Singular(
                f"Every neighbourhood must determine the {show_count(count(X.shape[1], degree))} monomials of degree "
                f"{degree}",
                got=f"{k} neighbours",
                advice="Use more neighbours, or a lower degree.",
            )
        self.kernel, self.X, self.y, self.ridge, self.k, self.degree = kernel, X, y, ridge, k, degree
        self.tree = KDTree(X)

    def __call__(self, Z: Matrix) -> Matrix:
        _, index = self.tree.query(Z, self.k, workers=threads.n_threads())
        return self.values(Z, index.reshape(len(Z), self.k))

    def leave_one_out(self) -> Matrix:
        """At each of the n points, the value from its k nearest others."""
        n, k = len(self.X), min(self.k, len(self.X) - 1)
        _, index = self.tree.query(self.X, k + 1, workers=threads.n_threads())
        index = index.reshape(n, k + 1)
        own = index == np.arange(n)[:, None]
        own[~own.any(axis=1), -1] = True  # among many that coincide it may not be found: leave the last one out instead
        return self.values(self.X, index[~own].reshape(n, k))

    def values(self, Z: Matrix, index: NDArray[np.int64]) -> Matrix:
        """f(z) from the points at `index`, shape (m, k), for each of m queries."""
        hoods, which = _distinct(np.sort(index, axis=1), len(self.X))
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(len(hoods) + 1))
        out = np.empty((len(Z), self.y.shape[1]))
        size = hoods.shape[1] + count(self.X.shape[1], self.degree)

        def work(span: slice, share: int) -> None:
            queries = order[starts[span.start] : starts[span.stop]]
            out[queries] = self._chunk(Z[queries], hoods[span], which[queries] - span.start)

        threads.stripes(len(hoods), work, rows=max(1, LOCAL_ENTRIES // size**2))
        return out

    def _chunk(self, Z: Matrix, hoods: NDArray[np.int64], which: NDArray[np.int64]) -> Matrix:
        """The values at queries Z of the interpolants of these neighbourhoods, query i belonging to number which[i]."""
        X = self.X[hoods]
        low, high = X.min(axis=1, keepdims=True), X.max(axis=1, keepdims=True)
        shift, half = (low + high) / 2, (high - low) / 2
        scale = np.where(half > 0, half, 1.0)
        P = monomials((X - shift) / scale, self.degree)
        (b, k, p), t = P.shape, self.y.shape[1]
        M, rhs = np.zeros((b, k + p, k + p)), np.zeros((b, k + p, t))
        M[:, :k, :k] = similarities(self.kernel, X, X)
        M[:, np.arange(k), np.arange(k)] += self.ridge[hoods]
        M[:, :k, k:], M[:, k:, :k] = P, P.transpose(0, 2, 1)
        rhs[:, :k] = self.y[hoods]
        try:
            solved = np.linalg.solve(M, rhs)
        except np.linalg.LinAlgError:
            raise self._singular(M, P, hoods) from None
        row = similarities(self.kernel, Z[:, None], X[which])[:, 0]
        tail = monomials((Z - shift[which, 0]) / scale[which, 0], self.degree)
        return np.einsum("qj,qjt->qt", np.concatenate([row, tail], axis=1), solved[which])

    def _singular(self, M: Matrix, P: Matrix, hoods: NDArray[np.int64]) -> Singular:
        """Which neighbourhood has no unique interpolant, and why."""
        bad = next(i for i, system in enumerate(M) if _is_singular(system))
        tail, rows, p = P[bad], hoods[bad], P.shape[2]
        got = f"none for the neighbours {', '.join(map(str, rows[:8]))}{', …' if len(rows) > 8 else ''}"
        if p and np.linalg.matrix_rank(tail) < p:
            got += f", which do not determine the {p} monomials of degree {self.degree}"
        return Singular(
            "Every neighbourhood must have a unique interpolant",
            got=got,
            advice="Use more neighbours, a lower degree, or smoothing > 0 where points coincide.",
        )


def _is_singular(A: Matrix) -> bool:
    try:
        np.linalg.solve(A, A[:, :1])
    except np.linalg.LinAlgError:
        return True
    return False


def similarities(kernel: Similarity, A: Matrix, B: Matrix) -> Matrix:
    """k(a, b) within each of many pairs of small point sets: shapes (s, m, d) and (s, k, d) → (s, m, k)."""
    if not isinstance(kernel, Radial):
        return np.stack([kernel(a, b) for a, b in zip(A, B)])
    sigma = 1.0
    if np.ndim(kernel.sigma):
        A, B = A / kernel.sigma, B / kernel.sigma
    else:
        sigma = float(kernel.sigma)
    D = np.zeros((len(A), A.shape[1], B.shape[1]))
    for column in range(A.shape[2]):
        difference = A[:, :, None, column] - B[:, None, :, column]
        difference *= difference
        D += difference
    flat = D.reshape(-1, D.shape[2])
    with np.errstate(over="ignore", invalid="ignore"):
        kernel._profile(flat, sigma)
    require_finite(flat, kernel)
    return flat.reshape(D.shape)


def _distinct(index: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different rows of an index array, and which of them each row is.

    Rows are compared by a random sum, which tells them apart unless two sums of 64 bits coincide: that is checked.
    """
    numbers = np.random.default_rng(0).integers(0, 2**63, size=n, dtype=np.uint64)
    _, first, which = np.unique(numbers[index].sum(axis=1), return_index=True, return_inverse=True)
    if not np.array_equal(index, index[first][which]):
        rows, which = np.unique(index, axis=0, return_inverse=True)
        return rows, which.reshape(-1)
    return index[first], which.reshape(-1)


def order_of(kernel: Similarity) -> int:
    """The order of conditional positive definiteness, 0 for a kernel; a smoothing weight has none."""
    if isinstance(kernel, ConditionalKernel):
        return kernel.order
    if isinstance(kernel, Kernel):
        return 0
    raise InvalidInput(
        "An interpolating radial function must be (conditionally) positive definite",
        got=repr(kernel),
        advice="Such as mc.Gaussian(1.0), mc.ThinPlate() or mc.Multiquadric(1.0).",
    )


# -- arguments, as SciPy reads them ------------------------------------------------------------------------------------


def _matrix(x: Any, name: str, *, empty: bool = False) -> Matrix:
    try:
        values = np.asarray(x)
        if values.dtype.kind == "c":
            raise TypeError("complex ones, where they must be real")
        X = np.array(values, dtype=np.float64, order="C")  # a copy, for it is kept
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`{name}` must hold numbers", got=str(error), advice="Pass one row per point.") from None
    if X.ndim != 2 or (not empty and 0 in X.shape):
        raise InvalidInput(
            f"`{name}` must be a 2-dimensional array",
            got=f"shape {X.shape}",
            advice="Pass one row per point: x[:, None].",
        )
    if not np.isfinite(X).all():
        row = int(np.argwhere(~np.isfinite(X))[0][0])
        raise InvalidInput(f"`{name}` must be finite", got=f"NaN or infinity in row {row}", advice="Drop that row.")
    return X


def _values(d: Any, n: int) -> tuple[Matrix, tuple[int, ...], type[np.generic]]:
    """d as real columns, its trailing shape, and its dtype: a complex column is two real ones."""
    try:
        values = np.asarray(d)
        dtype: type[np.generic] = np.complex128 if values.dtype.kind == "c" else np.float64
        values = np.array(values, dtype=dtype, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidInput("`d` must hold numbers", got=str(error), advice="Pass one value per point.") from None
    if values.ndim == 0 or len(values) != n:
        raise InvalidInput(
            f"Expected the first axis of `d` to have length {n}",
            got=f"shape {values.shape}",
            advice="Pass one per point.",
        )
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise InvalidInput("`d` must be finite", got=f"NaN or infinity in row {row}", advice="Drop that row.")
    return values.reshape(n, -1).view(np.float64), values.shape[1:], dtype


def _smoothing(smoothing: Any, n: int) -> Matrix:
    required = f"Expected `smoothing` to be a scalar or have shape ({n},)"
    try:
        values = np.asarray(smoothing, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(required, got=str(error), advice="0 interpolates.") from None
    if values.shape not in ((), (n,)):
        raise InvalidInput(required, got=f"shape {values.shape}", advice="Pass one per point.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise InvalidInput("`smoothing` must be finite and ≥ 0", got=repr(smoothing), advice="0 interpolates.")
    return np.broadcast_to(values, (n,)).copy()


def _radial(kernel: Any, epsilon: Any) -> tuple[Similarity, Any, float | None]:
    """The function, the name it was asked by, and ε."""
    if isinstance(kernel, Similarity):
        if epsilon is not None:
            raise InvalidInput(
                "`epsilon` belongs to kernels that are given by name", got=epsilon, advice=f"Set sigma of {kernel!r}."
            )
        return kernel, kernel, None
    name = kernel.lower() if isinstance(kernel, str) else kernel
    if not isinstance(name, str) or name not in NAMES:
        raise InvalidInput(
            f"`kernel` must be one of {', '.join(map(repr, NAMES))}, or a kernel",
            got=repr(kernel),
            advice="Such as 'thin_plate_spline' or mc.Matern(1.0).",
        )
    if epsilon is None and name not in SCALE_INVARIANT:
        raise InvalidInput(
            f"`epsilon` must be specified if `kernel` is not one of {', '.join(map(repr, SCALE_INVARIANT))}",
            got="None",
            advice="The inverse of a typical distance between points is a start.",
        )
    try:
        width = 1.0 if epsilon is None else float(epsilon)
    except (TypeError, ValueError):
        width = np.nan
    if not 0 < width < np.inf:
        raise InvalidInput("`epsilon` must be a number > 0", got=repr(epsilon), advice="Smaller is wider.")
    return NAMES[name](1.0 / width), name, width


def _degree(degree: Any) -> int:
    whole = _integer(degree)
    if whole is None or whole < -1:
        required = "`degree` must be at least -1" + (", a whole number" if whole is None else "")
        raise InvalidInput(required, got=repr(degree), advice="-1 is no polynomial.")
    return whole


def _count(neighbors: Any, n: int) -> int:
    """How many neighbours, n at most: np.inf is all of them, as for SciPy."""
    whole = n if isinstance(neighbors, (float, np.floating)) and neighbors == np.inf else _integer(neighbors)
    if isinstance(neighbors, bool) or whole is None or whole < 1:
        raise InvalidInput("`neighbors` must be a whole number ≥ 1", got=repr(neighbors), advice="Try 50.")
    return min(whole, n)


def _integer(value: Any) -> int | None:
    """The value cut to a whole number, as SciPy does; None where it has none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
