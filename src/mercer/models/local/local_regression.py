"""Local regression: a polynomial around every query, by weighted least squares."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.custom import Precomputed
from mercer.kernels.vectors.radial import ByWidth
from mercer.kernels.weights import Tricube
from mercer.models.base import Rows, shortened
from mercer.models.local.bandwidth import spreads
from mercer.models.local.base import LocalSmoother
from mercer.smoothing.neighbours import neighbour_distances
from mercer.smoothing.sums.tiled import unit_of
from mercer.validation import check_whole_number, is_whole_number

Matrix = NDArray[np.float64]

LEAST_TRUST = 1e-12
"""The robustness weight of an outlier: above 0, so that it still decides where no other row is near."""


@dataclass(eq=False, repr=False)
class LocalRegression(LocalSmoother):
    """A polynomial around every query: f(z) = b₀ of min Σ w(z, xᵢ) (yᵢ − Σ_α b_α (xᵢ − z)^α)², |α| ≤ degree.

    Degree 0 is Nadaraya-Watson, degree 1 the locally weighted linear regression of lecture 000. Polynomials up to the
    degree are reproduced exactly. If the points around z do not determine all coefficients (too few, or on a line),
    the fit has a lower degree; if no point is in reach, the nearest one decides.

    Parameters
    ----------
    kernel : Kernel, class, rule or None
        A kernel or smoothing weight on vectors, a class of them such as mc.Epanechnikov whose width is `bandwidth`, a
        rule X → kernel, or None for the Gaussian (with `neighbors`: the tricube).
    degree : int
        0, 1, 2 or 3, in all columns together.
    bandwidth : float, array, str or None
        The kernel's sigma: a number > 0, one per column, "loo" (one per column, of least leave-one-out squared error;
        "loo-common": one factor for all columns), "scott" or "silverman". The default is "loo" if `kernel` is None or a
        class; otherwise the kernel is used unchanged.
    neighbors : float or None
        A number of rows ≥ 1 or a share of them in (0, 1], as a float (rounded down, as in R's loess): for every query,
        sigma is multiplied so that it just reaches that number of nearest rows. `bandwidth` then only sets the units in
        which columns are compared, by default their standard deviations.
    robust : int
        How often the fit is repeated with the rows weighted by the bisquare of their last residuals, so that outliers
        lose their influence (lowess uses 3).

    Attributes
    ----------
    kernel_ : Kernel
        The similarity with its bandwidth.
    bandwidth_
        Its sigma, a number or (d,).
    status_ : str
        How the bandwidth was chosen.
    loo_loss_ : float
        The leave-one-out error at bandwidths chosen by "loo" (targets in units of their deviation if several).
    loo_predictions_, loo_score_ : array, float
        f₋ᵢ(xᵢ), and their R²; the robustness weights of the fit are kept.
    degrees_of_freedom_ : float
        The trace of the smoother.
    robustness_weights_ : array
        One per fitted row, (n,); 1 without `robust`.

    References
    ----------
    Cleveland, Robust locally weighted regression, 1979. Fan and Gijbels, Local polynomial modelling, 1996.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 61)[:, None]
    >>> model = mc.LocalRegression(degree=2, bandwidth=0.3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[0.0], [np.pi / 2]]).round(2), model.predict_gradient([[0.0]]).round(1)
    (array([-0.,  1.]), array([[1.]]))
    >>> line = mc.LocalRegression(neighbors=0.3, robust=3).fit(X, np.where(X[:, 0] == 3.0, 100.0, 2 * X[:, 0]))
    >>> line.predict([[3.0]]).round(6)
    array([6.])
    """

    kernel: Any = None
    _: KW_ONLY
    degree: int = 1
    bandwidth: Any = None
    neighbors: float | None = None
    robust: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep n points X and targets y, shape (n,) or (n, t), and choose bandwidth and robustness weights.

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, weight 0 as the row
        left out. (But bandwidth="loo" and `loo_predictions_` leave out a row with all its weight.)
        """
        self._check()
        self._rows = Rows.of(self._points(X), y, sample_weight)
        if self._degree or self._near is not None:
            self._require_vectors()
        self._trust: Matrix | None = None
        self._forget()
        self._choose_by_error()
        self._distrust()
        if self.robust and self.loo_loss_ is not None:
            self._choose_by_error()  # outliers had influenced the first bandwidth
            self._distrust()
        if self._near is not None:
            self.status_ += "; multiplied for every query so that it reaches the nearest rows"
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Append rows; the bandwidth of the first call is kept. If the rows are refused, the model does not change."""
        if not hasattr(self, "_rows"):
            return self.fit(X, y, sample_weight)
        check_whole_number(self.robust, "robust", least=0, such_as=3)
        self._rows = self._append(Rows.of(self._queries(X), y, sample_weight))
        self._trust = None
        self._forget()
        self._distrust()
        return self

    def predict_gradient(self, X: Any) -> Matrix:
        """The local slopes, an estimate of the gradient: shape (m, d) or (m, t, d). It requires degree ≥ 1.

        They are the slopes of the polynomial at each query, not the derivative of `predict`, and less biased.
        """
        z = self._query_points(X)
        if self._degree < 1:
            raise InvalidInput(
                "`predict_gradient` requires `degree` ≥ 1", got=self._degree, advice="Use LocalRegression(degree=1)."
            )
        d = z.vectors().shape[1]
        slopes = self._fit_at(z).coef[:, 1 : 1 + d] / np.broadcast_to(unit_of(self.kernel_), (d,))[:, None]
        return self._rows.shaped(np.swapaxes(slopes, 1, 2))

    def derivative(self, X: Any, order: int = 1) -> Matrix:
        """The derivative of this order for a single column, order ≤ degree: shape (m,) or (m, t).

        >>> import numpy as np, mercer as mc
        >>> X = np.linspace(-1, 1, 50)[:, None]
        >>> model = mc.LocalRegression(degree=3, bandwidth=0.3).fit(X, X[:, 0] ** 3)
        >>> [float(model.derivative([[0.5]], k)[0].round(6)) for k in range(4)]
        [0.125, 0.75, 3.0, 6.0]
        """
        z = self._query_points(X)
        advice = "Raise `degree`: one more than the order is best."
        check_whole_number(order, "order", least=0, most=self._degree, advice=advice)
        if order and z.vectors().shape[1] != 1:
            raise InvalidInput(
                "`derivative` requires a single column",
                got=f"shape {z.vectors().shape}",
                advice="Use predict_gradient.",
            )
        unit = float(np.ravel(unit_of(self.kernel_))[0])
        return self._rows.shaped(math.factorial(order) / unit**order * self._fit_at(z).coef[:, order])

    @property
    def robustness_weights_(self) -> Matrix:
        """The trust in every row that was fitted, shape (n,): the bisquare of its residual, 1 without `robust`."""
        return np.ones(len(self._rows)) if self._trust is None else self._trust

    # -- inside -------------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.sparse and self.degree == 0 and self.neighbors is None
        return tags

    @property
    def _v(self) -> Matrix:
        v = super()._v
        return v if self._trust is None else v * self._trust

    @property
    def _v2(self) -> Matrix:
        v = super()._v
        return v if self._trust is None else v * self._trust**2

    def _check(self) -> None:
        self._degree = check_whole_number(self.degree, "degree", least=0, most=3, such_as=1)
        check_whole_number(self.robust, "robust", least=0, such_as=3)
        self._near = self.neighbors
        if self._near is not None:
            _require_neighbors(self._near)
            if isinstance(self.bandwidth, str) and self.bandwidth.startswith("loo"):
                raise InvalidInput(
                    "With `neighbors`, which determine the widths, `bandwidth` must be a number or one per column",
                    got=shortened(self.bandwidth),
                    advice="Leave out one of the two parameters.",
                )

    def _require_vectors(self) -> None:
        kernel = self.kernel_
        pairs = any(isinstance(leaf, Precomputed) for leaf in kernel.leaves)
        if pairs or kernel.space not in ("vectors", "table", "any"):
            raise self._no_vectors(f"{kernel!r} on {'a matrix of similarities' if pairs else kernel.space}")
        try:
            X = self._rows.points.vectors()
        except InvalidInput as error:
            raise self._no_vectors(error.got) from None
        if sp.issparse(X):
            raise InvalidInput(
                "Local polynomials and neighbours require dense data", got="a sparse matrix", advice="Pass X.toarray()."
            )
        if self._near is not None and not isinstance(self.kernel_, ByWidth):
            raise InvalidInput(
                "`neighbors` requires a similarity of (x − z)/σ",
                got=repr(self.kernel_),
                advice="Pass a kernel such as mc.Tricube().",
            )
        coefficients = math.comb(X.shape[1] + self._degree, self._degree)
        if coefficients > 500:
            raise InvalidInput(
                "A local polynomial must have at most 500 coefficients",
                got=f"{coefficients} for degree {self._degree} in {X.shape[1]} columns",
                advice="Lower `degree`, or use KernelRidge.",
            )

    def _require_sound(self) -> None:
        if self._near is not None:
            _require_neighbors(self._near)
        if self._degree or self._near is not None:
            self._require_vectors()

    @staticmethod
    def _no_vectors(got: str) -> InvalidInput:
        return InvalidInput(
            "Local polynomials and neighbours require a similarity of vectors, and numbers as X",
            got=got,
            advice="Use NadarayaWatsonRegressor, which accepts any objects.",
        )

    def _default(self, points: Points) -> Similarity:
        return super()._default(points) if self._near is None else Tricube(spreads(points))

    def _chosen_bandwidth(self) -> Any:
        """As for every local model, but with `neighbors` leave-one-out is not the default."""
        return self.bandwidth if self._near is not None else super()._chosen_bandwidth()

    def _scale(self, z: Points | None, exclude: bool = False) -> Matrix | None:
        if self._near is None:
            return None
        rows, key = self._rows, f"scale{exclude}"
        if z is None and key in self._cache:
            kept: Matrix = self._cache[key]
            return kept
        v = None if rows.roots is None else rows.roots**2
        scale = neighbour_distances(rows.points, self.kernel_.sigma, self._near, z, v=v, exclude=exclude)
        if z is None:
            self._cache[key] = scale
        return scale

    def _distrust(self) -> None:
        """Set the bisquare weights (1 − (r/6s)²)² of the residuals r, where s is their median size (lowess).

        With several targets, r/s is its root mean square over them: a row is an outlier as a whole.
        """
        base = LocalSmoother._v.fget(self)  # type: ignore[attr-defined]
        for _ in range(self.robust):
            r = np.abs(self._rows.y - self._fit_at(None).values)
            if (r <= 1e-12 * np.abs(self._rows.y).max(axis=0)).all():
                return  # all rows are fitted exactly
            s = np.array([_typical_size(column, base) for column in r.T])
            ratio = np.sqrt(np.mean((r / np.where(s > 0, s, np.inf)) ** 2, axis=1)) / 6.0
            before, self._trust = self._trust, np.maximum((1 - np.minimum(ratio, 1.0) ** 2) ** 2, LEAST_TRUST)
            rounding = 8 * len(r) * np.finfo(np.float64).eps  # of sums over all rows
            if before is not None and np.abs(self._trust - before).max() <= rounding:
                return  # more rounds would change nothing


def _require_neighbors(neighbors: Any) -> None:
    share = isinstance(neighbors, (float, np.floating)) and 0 < neighbors <= 1
    if not (share or (is_whole_number(neighbors) and neighbors >= 1)):
        raise InvalidInput(
            "`neighbors` must be a number of rows ≥ 1, or a share of them in (0, 1] as a float",
            got=shortened(neighbors),
            advice="Pass a number such as 30, or a share such as 0.3.",
        )


def _typical_size(r: Matrix, v: Matrix) -> float:
    """The weighted median of |r|, or their mean if most rows are fitted exactly.

    If half of the weight is below and half above a pair of rows, it is the middle of the two, as in lowess.
    """
    order = np.argsort(r)
    total = np.cumsum(v[order])
    half, slack = 0.5 * total[-1], 1e-12 * total[-1]
    low, high = np.minimum(np.searchsorted(total, [half - slack, half + slack]), len(r) - 1)
    median, mean = 0.5 * float(r[order[low]] + r[order[high]]), float(v @ r / v.sum())
    return median if median > 1e-7 * mean else mean
