"""Conditional densities from a joint Parzen model: the distribution of t at x, whose mean is Nadaraya-Watson's."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.radial import Gaussian
from mercer.models.base import KernelEstimator, Rows, check_columns, shortened, targets, training_points
from mercer.models.density.conditional_mixture import FARTHEST, Mixture, spans, weight_rows
from mercer.models.density.conditional_widths import choose
from mercer.models.density.parzen import OnGrid, require_grid
from mercer.models.density.parzen_columns import dense
from mercer.models.density.parzen_line import numbers_of
from mercer.models.density.parzen_widths import apply_rule, check_tolerance
from mercer.models.local.bandwidth import nearer, require_nonnegative
from mercer.models.quantiles import share
from mercer.smoothing import density
from mercer.smoothing.density import log_sum_exp
from mercer.smoothing.sums import sums
from mercer.smoothing.sums.tiled import unit_of
from mercer.validation import check_number, check_whole_number, generator
from mercer.words import count

Float = NDArray[np.float64]

DISTANT = 1e4
"""If the logarithm of a sum is below minus this number, a ratio of two sums is computed from normalised weights."""
CANCELLED = 1e-6
"""A variance below this share of the largest square is computed from normalised weights, too: E t² − (E t)² cancels."""


@dataclass(eq=False, repr=False)
class ConditionalDensity(RegressorMixin, KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """p(t | x) = Σₙ Wₙ(x) K(t − tₙ), Wₙ(x) = k(x, xₙ)/Σₘ k(x, xₘ): the conditional density of lecture 004.

    The joint density is a Parzen model, (26); divided by its marginal it is a mixture for every x, whose mean is
    Nadaraya-Watson's, (29). With a full joint covariance Σ the components depend on x: their means are
    tₙ + Σ_tx Σ_xx⁻¹(x − xₙ), their covariance is Σ_tt − Σ_tx Σ_xx⁻¹ Σ_xt.

    Sample weights count as repetitions. Far from all data the nearest point decides, and predictions are finite.

    Parameters
    ----------
    kernel : Kernel, class, rule or None
        k, a family such as mc.Epanechnikov (None is the Gaussian) whose width is `bandwidth`; any kernel or weight ≥ 0,
        also on strings, sets and other objects, used unchanged unless there is a `bandwidth`; or a rule X → kernel.
    bandwidth : float, array, str or None
        The width of k: a number > 0, one per column, a covariance matrix (d, d), a rule X → one of these; "loo" (the
        default) for the largest leave-one-out likelihood of t given x; or "scott", "silverman" and "isj" for x and t
        together, which ignore how t depends on x.
    target_kernel : Kernel or None
        K, a family of densities, or one with its width; None is the Gaussian. Several targets have a product of them.
    target_bandwidth
        The width of K, in the same ways; one per target. (For a kernel on objects the default is "scott".)
    covariance : array, str or None
        The joint covariance of (x, t), shape (d + t, d + t), or "scott"; then both kernels are Gaussian and the other
        widths must be left out.
    tolerance : float
        The relative error that fast sums may make to save time.

    Attributes
    ----------
    kernel_, target_kernel_
        The kernels with their widths.
    bandwidth_, target_bandwidth_
        The widths (d,) and (t,), or covariance matrices; None for a kernel on objects.
    covariance_
        The joint covariance, or None.
    slope_ : array or None
        Σ_tx Σ_xx⁻¹, shape (t, d), or None.
    status_ : str
        The rules that chose the widths, with notes.

    References
    ----------
    Lecture 004, (26)–(31); Hall, Racine & Li, JASA 99, 2004.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.models.density.conditional_density import ConditionalDensity
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 1, (200, 1))
    >>> t = np.sin(2 * np.pi * x[:, 0]) + 0.2 * rng.normal(size=200)
    >>> model = ConditionalDensity(bandwidth=0.05, target_bandwidth=0.1).fit(x, t)
    >>> mean, std = model.predict([[0.25]], return_std=True)
    >>> mean.round(2), std.round(2)
    (array([0.94]), array([0.23]))
    """

    kernel: Any = None
    _: KW_ONLY
    bandwidth: Any = None
    target_kernel: Any = None
    target_bandwidth: Any = None
    covariance: Any = None
    tolerance: float = 1e-8

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep n points X with targets y, shape (n,) or (n, t), and choose the widths."""
        check_tolerance(self.tolerance)
        rows = Rows.of(training_points(X), y, sample_weight)
        w = np.ones(len(rows)) if rows.roots is None else np.square(rows.roots)
        kernel = apply_rule(self.kernel, rows.points.raw)
        self._objects = isinstance(kernel, Similarity) and kernel.space != "vectors"
        if isinstance(kernel, Similarity):
            require_nonnegative(kernel, kernel.prepare(rows.points))
        numbers = self._numbers = None if self._objects else dense(rows.points.raw)
        choice = self._choice = choose(
            kernel,
            self.bandwidth,
            self.target_kernel,
            self.target_bandwidth,
            self.covariance,
            X=numbers,
            Y=rows.y,
            w=None if rows.roots is None else w,
        )
        self.kernel_: Any = choice.kernel
        check_columns(self, X, reset=True)
        self.target_kernel_ = choice.target_kernel
        self.bandwidth_ = None if choice.x is None else choice.x.shown
        self.target_bandwidth_ = choice.t.shown
        self.covariance_, self.slope_, self.status_ = choice.covariance, choice.slope, choice.status
        self._rows, self._w = rows, w
        self._points = self._prepared(rows.points)
        self._residuals = rows.y - self._shift(rows.points)
        self._centre = np.average(self._residuals, axis=0, weights=w)
        # the width of K along each target, and its standard deviation
        self._spread = choice.t.shown if choice.t.root is None else np.sqrt(np.diag(choice.t.shown))
        self._kernel_std = self._spread * np.sqrt(density.of(self.target_kernel_, 1).variance(1))
        return self

    # -- the mean and the bands -------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """E[t | x] for m points, shape (m,) or (m, t), and with `return_std` the standard deviation of p(t | x)."""
        z, shift = self._at(X)
        R = self._residuals - self._centre
        V = np.hstack([np.ones((len(R), 1)), R, R * R if return_std else R[:, :0]]) * self._w[:, None]
        tolerance = min(self.tolerance, 1e-12 if return_std else 1.0)
        total = sums(self.kernel_, self._points, V, z, tolerance=tolerance).totals[:, 0]
        t, lost = R.shape[1], ~(total[:, 0] > 0)
        moments = total[:, 1:] / np.where(lost, 1.0, total[:, 0])[:, None]
        mean, variance = moments[:, :t], np.zeros((z.n, t))
        if return_std:
            variance = moments[:, t:] - mean**2
            lost |= (variance + self._kernel_std**2 < CANCELLED * np.square(R).max(axis=0)).any(axis=1)
        rows = np.flatnonzero(lost)
        at = z.take(rows) if len(rows) else z
        for span in spans(len(rows), len(self._w)):
            W = self._weights(at, span)
            mean[rows[span]] = W @ R
            if return_std:
                for k in range(t):
                    variance[rows[span], k] = np.einsum("ij,ij->i", W, np.square(R[:, k] - (W @ R[:, k])[:, None]))
        mean = mean + self._centre + shift
        if not return_std:
            return self._rows.shaped(mean)
        variance = np.maximum(variance, 0.0) + self._kernel_std**2
        return self._rows.shaped(mean), self._rows.shaped(np.sqrt(variance))

    def bands(self, X: Any, deviations: float = 2.0) -> Float:
        """mean ± the given number of standard deviations, shape (m, 2) or (m, t, 2); the lecture uses two."""
        check_number(deviations, "deviations", least=0, such_as=2)
        mean, std = self.predict(X, return_std=True)
        return np.stack([mean - deviations * std, mean + deviations * std], axis=-1)

    # -- the distribution -------------------------------------------------------------------------------------------

    def score_samples(self, X: Any, y: Any = None) -> Float:
        """log p(y | x) for m pairs, shape (m,), of all targets together; without y, log p(x) of the joint model."""
        if y is None:
            check_is_fitted(self)
            check_columns(self, X, reset=False)
            return self._log_marginal(self._prepared(X if isinstance(X, Points) else Points(X)))
        z, shift = self._at(X)
        T = self._targets(y, z.n) - shift
        values = np.full(z.n, np.nan)
        if self._joint:
            values = self._by_sums(z, T)
        rest = np.flatnonzero(np.isnan(values))
        if len(rest):
            at = z if len(rest) == z.n else z.take(rest)
            for span in spans(len(rest), len(self._w)):
                with np.errstate(divide="ignore"):
                    log_weights = np.log(self._weights(at, span))
                values[rest[span]] = log_sum_exp(log_weights + self._log_kernels(T[rest[span]]))
        return values

    def pdf(self, X: Any, y: Any) -> Float:
        """p(y | x) for m pairs, shape (m,).

        >>> from mercer.models.density.conditional_density import ConditionalDensity
        >>> model = ConditionalDensity(bandwidth=1.0, target_bandwidth=1.0).fit([[0.0], [10.0]], [0.0, 5.0])
        >>> model.pdf([[0.0], [10.0]], [0.0, 5.0]).round(4)
        array([0.3989, 0.3989])
        """
        return np.exp(self.score_samples(X, y))

    def cdf(self, X: Any, y: Any) -> Float:
        """P(t ≤ y | x) for every target separately: shape (m,) or (m, t)."""
        z, shift = self._at(X)
        T = self._targets(y, z.n) - shift
        values = np.empty_like(T)
        for span in spans(z.n, len(self._w)):
            W = self._weights(z, span)
            for k, mixture in enumerate(self._mixtures()):
                values[span, k] = mixture.cdf(W, T[span, k])
        return self._rows.shaped(values)

    def quantile(self, X: Any, p: Any) -> Float:
        """The quantile q with P(t ≤ q | x) = p, for p in (0, 1), for every target separately.

        Its shape is (m,) or (m, t) for a number p, with one more axis at the end for several.
        """
        shares = np.atleast_1d(numbers_of(p, "p"))
        if shares.ndim != 1 or not ((shares > 0) & (shares < 1)).all():
            advice = "Pass a probability such as 0.5."
            raise InvalidInput("`p` must be a number in (0, 1), or several", got=shortened(p), advice=advice)
        z, shift = self._at(X)
        values = np.empty((z.n, shift.shape[1], len(shares)))
        for span in spans(z.n, len(self._w)):
            W = self._weights(z, span)
            for k, mixture in enumerate(self._mixtures()):
                values[span, k] = mixture.quantiles(W, shares) + shift[span, k, None]
        values = self._rows.shaped(values)
        return values[..., 0] if np.ndim(p) == 0 else values

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Float:
        """Intervals with equal tails that contain t with this probability under p(t | x): shape (m, 2) or (m, t, 2)."""
        tail = 0.5 * (1.0 - share(coverage))
        return self.quantile(X, [tail, 1.0 - tail])

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Float:
        """n draws from p(t | x) at each of m points, shape (m, n) or (m, n, t)."""
        check_whole_number(n_samples, "n_samples", such_as=100)
        rng = generator(random_state)
        z, shift = self._at(X)
        draws = np.empty((z.n, n_samples, shift.shape[1]))
        for span in spans(z.n, len(self._w)):
            ends = np.cumsum(self._weights(z, span), axis=1)
            u = rng.random((len(ends), n_samples))
            chosen = np.stack([np.searchsorted(e, v * e[-1], side="right") for e, v in zip(ends, u)])
            draws[span] = self._residuals[np.minimum(chosen, len(self._w) - 1)] + shift[span, None]
        profile = density.of(self.target_kernel_, 1)
        noise = [profile.draw(z.n * n_samples, 1, rng) for _ in range(shift.shape[1])]
        draws += self._choice.t.spread(np.hstack(noise)).reshape(draws.shape)
        return draws[..., 0] if self._rows.single else draws

    def on_grid(self, X: Any, n: int = 200, margin: float = 3.0) -> OnGrid:
        """p(t | x) on a regular grid of t for each of m points: axes (t,) and density (m, n); one target only.

        >>> from mercer.models.density.conditional_density import ConditionalDensity
        >>> model = ConditionalDensity(bandwidth=1.0, target_bandwidth=1.0).fit([[0.0], [1.0]], [0.0, 5.0])
        >>> model.on_grid([[0.0], [0.5], [1.0]], 50).density.shape
        (3, 50)
        """
        require_grid(n, margin)
        z, shift = self._at(X)
        if shift.shape[1] != 1:
            raise InvalidInput(
                "`on_grid` requires one target", got=f"{shift.shape[1]}", advice="Fit one model per target."
            )
        reach = margin * self._kernel_std[0] if np.isfinite(self._kernel_std[0]) else margin * self._spread[0]
        low, high = self._residuals.min() + shift.min() - reach, self._residuals.max() + shift.max() + reach
        t, values = np.linspace(low, high, n), np.empty((z.n, n))
        mixture = self._mixtures()[0]
        K = None if self.slope_ is not None else np.exp(mixture.log_kernel(t))
        for span in spans(z.n, len(self._w)):
            W = self._weights(z, span)
            if K is not None:
                values[span] = W @ K.T
            else:
                for i, v in zip(range(span.start, span.stop), W):
                    values[i] = np.exp(mixture.log_kernel(t - shift[i, 0])) @ v
        return OnGrid((t,), values)

    def effective_sample_size(self, X: Any) -> Float:
        """(ΣW)²/ΣW² for every query, shape (m,): the effective number of points; 1 if the nearest one decides."""
        z, _ = self._at(X)
        size = np.empty(z.n)
        for span in spans(z.n, len(self._w)):
            size[span] = 1.0 / np.einsum("ij,ij,j->i", *([self._weights(z, span)] * 2), 1.0 / self._w)
        return size

    # -- inside -----------------------------------------------------------------------------------------------------

    def _prepared(self, points: Points) -> Points:
        """Points for the kernel: whitened if their width is a matrix."""
        if self._objects:
            return self.kernel_.prepare(points)
        X = dense(points.raw)
        return Points(X if self._choice.x is None else self._choice.x.whitened(X))

    def _nearer(self, points: Points) -> Points:
        """The queries, those so far outside the data that distances lose all digits moved towards it."""
        if self._numbers is None:
            return points
        x = self._choice.x
        unit = unit_of(self.kernel_) if x is None or x.root is None else np.sqrt(np.diag(x.shown))
        moved = nearer(dense(points.raw), self._numbers, unit)
        return points if moved is None else Points(moved)

    def _shift(self, points: Points) -> Float:
        """Σ_tx Σ_xx⁻¹ x, shape (m, t): the shift of the components with x."""
        if self.slope_ is None:
            return np.zeros((points.n, self._rows.y.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            shift: Float = (dense(points.raw) - self._choice.origin) @ self.slope_.T
        if not np.isfinite(shift).all():
            raise InvalidInput(
                "With a joint covariance, queries must be near enough for the means of the components to fit float64",
                got="an overflow",
                advice="Pass bandwidths instead of `covariance`: then the nearest points decide far away.",
            )
        return shift

    def _at(self, X: Any) -> tuple[Points, Float]:
        """Queries for the kernel, moved nearer if distances would lose all digits, and their shift."""
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        points = X if isinstance(X, Points) else Points(X)
        z = self._prepared(self._nearer(points))
        require_nonnegative(self.kernel_, self._points, z)
        return z, self._shift(points)

    def _weights(self, z: Points, rows: slice) -> Float:
        return weight_rows(self.kernel_, self._points, self._w, z, rows)

    def _mixtures(self) -> list[Mixture]:
        columns = zip(self._residuals.T, self._spread)
        return [Mixture(self.target_kernel_, np.ascontiguousarray(r), float(h)) for r, h in columns]

    def _targets(self, y: Any, m: int) -> Float:
        T, _ = targets(np.full(m, y) if np.ndim(y) == 0 and y is not None else y, m)
        t = self._residuals.shape[1]
        if T.shape[1] != t:
            raise InvalidInput(
                f"y must have {count(t, 'target')} for each point",
                got=f"shape {T.shape}",
                advice="Pass the same targets as in `fit`.",
            )
        return T

    def _log_kernels(self, T: Float) -> Float:
        """log K(t − rₙ) of all targets together, shape (rows, n)."""
        t = self._choice.t
        if t.root is None:
            return np.sum([mixture.log_kernel(T[:, k]) for k, mixture in enumerate(self._mixtures())], axis=0)
        a, b = t.whitened(T - self._centre), t.whitened(self._residuals - self._centre)
        a = np.clip(a, -FARTHEST, FARTHEST)
        squares = np.square(a[:, None] - b).sum(axis=2)
        return -0.5 * squares - 0.5 * a.shape[1] * np.log(2 * np.pi) - t.log_volume

    def _log_marginal(self, z: Points) -> Float:
        """log p(x), for kernels that are densities."""
        if self._objects or type(self.kernel_) not in density.families():
            raise InvalidInput(
                "log p(x) requires a kernel whose integral is known",
                got=shortened(self.kernel_),
                advice="Pass y too, for log p(y | x).",
            )
        marginal = sums(self.kernel_, self._points, self._w[:, None], z, tolerance=self.tolerance)
        d = z.vectors().shape[1]
        sigma = np.broadcast_to(self.kernel_.sigma, (d,))
        volume = float(np.log(sigma).sum()) if self._choice.x is None else self._choice.x.log_volume
        with np.errstate(divide="ignore"):
            total = marginal.log_scale + np.log(marginal.totals[:, 0, 0])
        return np.asarray(total - np.log(self._w.sum()) - density.of(self.kernel_, d).log_mass(d) - volume)

    @property
    def _joint(self) -> bool:
        """Whether the joint kernel of x and t is Gaussian."""
        return isinstance(self.kernel_, Gaussian) and isinstance(self.target_kernel_, Gaussian) and not self._objects

    def _by_sums(self, z: Points, T: Float) -> Float:
        """log p(t | x) as a ratio of two Gaussian sums; NaN if the ratio would lose its digits."""
        t, V = self._choice.t, self._w[:, None]
        values = np.full(z.n, np.nan)
        below = sums(self.kernel_, self._points, V, z, tolerance=self.tolerance)
        near = np.flatnonzero(below.log_scale >= -DISTANT)
        if not len(near):
            return values
        a, b = t.whitened(T[near] - self._centre), t.whitened(self._residuals - self._centre)
        x, q = np.asarray(self._points.vectors()), np.asarray(z.vectors())[near]
        sigma = [np.broadcast_to(self.kernel_.sigma, x.shape[1:]), np.broadcast_to(t.sigma, b.shape[1:])]
        joint, queries = Points(np.hstack([x, b])), Points(np.hstack([q, a]))
        above = sums(Gaussian(np.concatenate(sigma)), joint, V, queries, tolerance=self.tolerance)
        constant = 0.5 * b.shape[1] * np.log(2 * np.pi) + t.log_volume
        ratio = above.totals[:, 0, 0] / below.totals[near, 0, 0]
        values[near] = above.log_scale - below.log_scale[near] + np.log(ratio) - constant
        return values
