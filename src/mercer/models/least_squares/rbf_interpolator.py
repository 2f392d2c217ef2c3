"""Interpolation of scattered data by radial functions: a drop-in for SciPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import gram
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.files import Saved
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.radial import Gaussian, RationalQuadratic
from mercer.kernels.vectors.splines import Multiquadric, Polyharmonic, ThinPlate
from mercer.memory import budget, within
from mercer.models.least_squares.local_fits import LocalFits, order_of
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Monomials, Singular, Tail, factors
from mercer.solvers.saddle import HOPELESS, SaddleFactor, diagnose, repeated

Matrix = NDArray[np.float64]

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
"""The radial functions of ε r by SciPy's names, for ε = 1/width."""
SCALE_INVARIANT = ("linear", "thin_plate_spline", "cubic", "quintic")
"""Names of functions for which another ε only changes the smoothing."""


class RBFInterpolator(Saved):
    """f(x) = Σ cᵢ φ(‖x − yᵢ‖) + polynomial, through the data or near it: the arguments and values of SciPy's class.

    (Φ + diag(smoothing)) c + P b = d and Pᵀc = 0, by the null space of P and a Cholesky factor.

    Parameters
    ----------
    y : array
        n points, shape (n, k).
    d : array
        Their values, real or complex, shape (n, ...).
    neighbors : int or None
        Each query gets the interpolant of this number of nearest points (np.inf: of all n); by default there is one
        interpolant of all points.
    smoothing : float or array
        λ ≥ 0, one number or one per point; 0 interpolates.
    kernel : str or Similarity
        "linear" −r, "thin_plate_spline" r² log r, "cubic" r³, "quintic" −r⁵, "multiquadric" −√(1 + r²),
        "inverse_multiquadric" 1/√(1 + r²), "inverse_quadratic" 1/(1 + r²), "gaussian" exp(−r²), each of ε r; or any
        kernel or radial function of this library, which has its own width.
    epsilon : float or None
        ε > 0, required for the last four names.
    degree : int or None
        The degree of the polynomial; −1 for none. By default the smallest that the function needs, at least 0.

    Attributes
    ----------
    condition
        The estimated condition number of the system (None with `neighbors`): 1e12 leaves about four digits.

    References
    ----------
    Wendland, Scattered Data Approximation, 2005, chapter 8.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> f = mc.RBFInterpolator(y, [0.0, 1.0, 1.0, 2.0])
    >>> f([[0.25, 0.5], [2.0, 2.0]]).round(12)
    array([0.75, 4.  ])
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
        within(8 * n * n, budget(), f"The {n}×{n} system", "Pass `neighbors`, such as 50.")
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
                raise self._singular(points, error) from None
            try:  # positive definite, but not to rounding: LU still solves it
                factor = self._factor(points, P, False)
            except np.linalg.LinAlgError as again:
                raise self._singular(points, again) from None
        self.condition = factor.condition
        if factor.condition > HOPELESS and not self.smoothing.any() and repeated(gram.of(self._function, points)):
            raise self._singular(points)
        c, b = factor.solve(self.d)
        return Expansion(self._function, points, c, None if basis is None or b is None else Tail(basis, b))

    def _factor(self, points: Points, P: Matrix | None, definite: bool) -> SaddleFactor:
        K = self._function(points, dtype=np.float64)
        K.flat[:: len(K) + 1] += self.smoothing
        return SaddleFactor(K, 0.0, None, P, definite=definite)

    def _singular(self, points: Points, error: np.linalg.LinAlgError | None = None) -> Singular:
        return diagnose(gram.of(self._function, points), float(self.smoothing.min()), error)


# -- arguments, as SciPy reads them ------------------------------------------------------------------------------------


def _matrix(x: Any, name: str, *, empty: bool = False) -> Matrix:
    try:
        values = np.asarray(x)
        if values.dtype.kind == "c":
            raise TypeError("complex numbers, which are not supported")
        X = np.array(values, dtype=np.float64, order="C")  # a copy, because it is kept
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
            advice="Pass one value per point.",
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
        raise InvalidInput(required, got=str(error), advice="Use 0 to interpolate.") from None
    if values.shape not in ((), (n,)):
        raise InvalidInput(required, got=f"shape {values.shape}", advice="Pass one value per point.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise InvalidInput("`smoothing` must be finite and ≥ 0", got=repr(smoothing), advice="Use 0 to interpolate.")
    return np.broadcast_to(values, (n,)).copy()


def _radial(kernel: Any, epsilon: Any) -> tuple[Similarity, Any, float | None]:
    """The function, its name or itself, and ε."""
    if isinstance(kernel, Similarity):
        if epsilon is not None:
            raise InvalidInput(
                "`epsilon` is for kernels that are passed by name", got=epsilon, advice=f"Set sigma of {kernel!r}."
            )
        return kernel, kernel, None
    name = kernel.lower() if isinstance(kernel, str) else kernel
    if not isinstance(name, str) or name not in NAMES:
        raise InvalidInput(
            f"`kernel` must be one of {', '.join(map(repr, NAMES))}, or a kernel",
            got=repr(kernel),
            advice="Pass 'thin_plate_spline', or a kernel such as mc.Matern(1.0).",
        )
    if epsilon is None and name not in SCALE_INVARIANT:
        raise InvalidInput(
            f"`epsilon` must be specified if `kernel` is not one of {', '.join(map(repr, SCALE_INVARIANT))}",
            got="None",
            advice="Start with the inverse of a typical distance between points.",
        )
    try:
        width = 1.0 if epsilon is None else float(epsilon)
    except (TypeError, ValueError):
        width = np.nan
    if not 0 < width < np.inf:
        raise InvalidInput(
            "`epsilon` must be a number > 0", got=repr(epsilon), advice="Pass a smaller number for a wider function."
        )
    return NAMES[name](1.0 / width), name, width


def _degree(degree: Any) -> int:
    whole = _integer(degree)
    if whole is None or whole < -1:
        required = "`degree` must be at least -1" + (", a whole number" if whole is None else "")
        raise InvalidInput(required, got=repr(degree), advice="Pass -1 for no polynomial.")
    return whole


def _count(neighbors: Any, n: int) -> int:
    """The number of neighbours, at most n: np.inf is all of them, as in SciPy."""
    whole = n if isinstance(neighbors, (float, np.floating)) and neighbors == np.inf else _integer(neighbors)
    if isinstance(neighbors, bool) or whole is None or whole < 1:
        raise InvalidInput(
            "`neighbors` must be a whole number ≥ 1", got=repr(neighbors), advice="Pass a whole number such as 50."
        )
    return min(whole, n)


def _integer(value: Any) -> int | None:
    """The value cut to a whole number, as in SciPy; None if that is impossible."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
