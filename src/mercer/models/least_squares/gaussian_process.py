"""Gaussian process regression: kernel ridge regression with the uncertainty of its predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.frames import is_frame
from mercer.errors import InvalidInput
from mercer.kernels.custom import bare_precomputed
from mercer.memory import budget as memory_budget
from mercer.memory import within
from mercer.models.base import KernelEstimator, Matrix, Rows, penalties, refitted, resolve_kernel
from mercer.models.least_squares.smoother import GaussianSmoother
from mercer.models.tunable import RidgeProblem
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.posterior import Posterior
from mercer.rkhs.space import joined
from mercer.rkhs.tail import Tail
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.psd import require_psd
from mercer.tuning import evidence
from mercer.tuning.by_gradient import tune_problem
from mercer.validation import check_whole_number, generator

EPS = float(np.finfo(np.float64).eps)
MISSED = 1e-4
"""Without noise, a mean that misses a target by more than this share of its size does not interpolate."""


@dataclass(eq=False, repr=False)
class GaussianProcessRegressor(GaussianSmoother, KernelEstimator):
    """The Gaussian posterior of f, a process with covariance k, given y = f(X) + noise of variance alpha.

    Its mean is the function of `KernelRidge` with the same kernel and alpha; its variance says how far f may be from
    that. Both are exact, by one Cholesky factor of K + alpha I.

    Parameters
    ----------
    kernel : Kernel, rule or None
        The covariance of f: a kernel, a rule X → kernel, or None for a Gaussian with the median width. It has the scale
        of y: to tune that, too, pass `c * kernel` with a free c.
    alpha : float
        The variance of the noise, a number ≥ 0, the same for all targets; `sample_weight` lets it differ by row. 0
        interpolates; if rounding then needs more on the diagonal, `jitter_` says how much was added.
    tune : str or None
        None, "evidence" or "loo": choose kernel parameters and alpha by gradient, starting from these.
    normalize_y : bool
        Whether targets are centred and divided by their standard deviation first. Predictions are in the units of y;
        the kernel, alpha and the evidence refer to the normalised targets.
    n_restarts : int
        The number of random starts of `tune`, beside this kernel and the one that the data suggests.
    hold : sequence of str
        Names of parameters that `tune` keeps: some of the kernel's `parameter_names`, or "alpha".
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, or half of the available memory.
    random_state : int
        Seed of the restarts of `tune`.

    Attributes
    ----------
    kernel_, alpha_ : Kernel, float or array
        The kernel and the noise variance that were used.
    jitter_
        The number that was added to the diagonal beside alpha, because of rounding; usually 0.0, and never more than an
        alpha > 0.
    function_ : Expansion
        The posterior mean, an `Expansion`; `dual_coef_` its coefficients, shape (n,) or (n, t).
    posterior_
        The process given the data, a `Posterior`.
    log_evidence_ : float
        log p(y), summed over targets.
    tuning_ : record
        The record of `tune`, if it was set.
    status_ : str
        How it was solved, in words.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[np.pi / 2], [20.0]], return_std=True)
    >>> mean.round(3), std.round(3)
    (array([0.999, 0.   ]), array([0.015, 1.   ]))
    >>> model.predict_interval([[np.pi / 2]], 0.95).round(2)
    array([[0.93, 1.07]])
    """

    kernel: Any = None
    _: KW_ONLY
    alpha: float = 1.0
    tune: str | None = None
    normalize_y: bool = False
    n_restarts: int = 2
    hold: Iterable[str] = ()
    budget: Any = None
    random_state: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Condition on n points X and targets y, shape (n,) or (n, t).

        A row of weight w has the noise variance alpha/w; weight 0 leaves it out. For the mean, a row of weight 2 is the
        same as two rows; for the evidence it is not, because that is the density of one target and not of two.
        """
        rows = self._training(X, y, sample_weight)
        self._rows = rows
        self._cache: dict[str, CholeskyFactor] = {}
        self.alpha_, self.jitter_ = _noise(self.alpha), 0.0
        size = 8 * len(rows) ** 2
        within(
            size,
            memory_budget(self.budget),
            f"The Cholesky factor of {len(rows)} points",
            "Raise `budget`, or use KernelRidge for the mean alone: its solvers 'nystrom' and 'fourier' need less.",
        )
        if self.tune is not None:
            self._tune(self.tune)
        if not self.kernel_.proof(getattr(self, "n_features_in_", None)).valid:
            require_psd(gram.of(self.kernel_, rows.points))
        self._factorise()
        return self._condition()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Condition on further rows: the same posterior as `fit` on all of them, for O(n²) per new row.

        The Cholesky factor grows by a block. Kernel and alpha stay those of the first call (chosen from its rows by
        `tune` or by a rule). Refused rows leave the model unchanged.

        >>> import numpy as np, mercer as mc
        >>> X, y = np.linspace(0, 6, 40)[:, None], np.sin(np.linspace(0, 6, 40))
        >>> stream = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1)
        >>> for start in range(0, 40, 10):
        ...     stream = stream.partial_fit(X[start : start + 10], y[start : start + 10])
        >>> whole = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
        >>> bool(abs(stream.dual_coef_ - whole.dual_coef_).max() < 1e-12)
        True
        """
        if not hasattr(self, "function_"):
            return self.fit(X, y, sample_weight)
        if self._pairwise:
            raise bare_precomputed("`partial_fit` needs a kernel that can be evaluated between old and new rows")
        old, new = self._rows, Rows.of(self._queries(X), y, sample_weight)
        rows = appended(old, new)
        size = 2 * 8 * len(rows) ** 2
        within(
            size, memory_budget(self.budget), f"Growing the Cholesky factor to {len(rows)} points", "Raise `budget`."
        )
        factor = self._factor
        K21 = self.kernel_(new.points, old.points, dtype=np.float64)
        K22 = self.kernel_(new.points, dtype=np.float64)
        with refitted(self):
            self._rows, self._cache = rows, {}
            try:
                self._cache["factor"] = factor.grown(K21, K22, rows.roots)
                self._grew = True
            except np.linalg.LinAlgError:
                self._factorise()
            return self._condition()

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The posterior mean at m points, shape (m,) or (m, t); with the standard deviation or covariance of f there.

        Parameters
        ----------
        X : array, frame or list of objects
            m points.
        return_std : bool
            Whether to return √v(x), too, for f and not for a new noisy target, in the shape of the mean.
        return_cov : bool
            Whether to return the covariance of f at all pairs, too, shape (m, m) or (m, m, t).
        """
        if return_std and return_cov:
            raise InvalidInput(
                "At most one of `return_std` and `return_cov` can be True",
                got="both",
                advice="Use return_cov=True: the diagonal of the covariance is std².",
            )
        points = self._queries(X)
        mean = self.function_(points)
        if return_cov:
            return mean, self.posterior_.covariance(points)
        return (mean, self.posterior_.std(points)) if return_std else mean

    def predict_distribution(self, X: Any, *, noise: bool = True) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of a new target (or, without noise, of f): shapes (m,) or (m, t), in float64."""
        points = self._queries(X)
        mean = np.asarray(self.function_(points), dtype=np.float64)
        variance = np.asarray(self.posterior_.variance(points), dtype=np.float64)
        if noise:
            unit = self._normalised()[2]
            variance = variance + self.alpha_ * (unit[0] if self._rows.single else unit) ** 2
        return mean, np.sqrt(variance)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> NDArray[Any]:
        """Functions drawn from the posterior, at m points: shape (m, n_samples), or (m, t, n_samples).

        >>> import numpy as np, mercer as mc
        >>> model = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit([[0.0], [1.0]], [1.0, 2.0])
        >>> model.sample_y([[0.0], [0.5], [9.0]], 4).shape
        (3, 4)
        """
        points = self._queries(X)
        number = check_whole_number(n_samples, "n_samples", such_as=10)
        return self.posterior_.sample(points, number, generator(random_state))

    def predict_gradient(self, X: Any) -> NDArray[np.float64]:
        """The gradient of the mean by the columns of X, shape (m, d) or (m, t, d)."""
        points = self._queries(X)
        return self.function_.gradient(points)

    def log_evidence(self, theta: Any = None, alpha: float | None = None, gradient: bool = True) -> Any:
        """log p(y) of the training targets, and its gradient by (theta, log alpha).

        Parameters
        ----------
        theta : array
            Logarithms of the kernel's free parameters; by default those of `kernel_`.
        alpha : float or None
            The noise variance; by default `alpha_`.
        gradient : bool
            Whether to return the gradient, too.

        Examples
        --------
        >>> import numpy as np, mercer as mc
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> model = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
        >>> value, slopes = model.log_evidence()
        >>> bool(np.isclose(value, model.log_evidence_)), slopes.shape               # by log sigma and log alpha
        (True, (2,))
        """
        check_is_fitted(self)
        kernel = self.kernel_ if theta is None else self.kernel_.with_theta(theta)
        noise = self.alpha_ + self.jitter_ if alpha is None else _noise(alpha)
        arguments = kernel, self._rows.points, self._normalised()[0], noise, self._rows.roots
        try:
            value, slopes = evidence.log_evidence(*arguments, gradient=gradient)
        except np.linalg.LinAlgError as error:
            raise InvalidInput(
                "K + alpha I must be positive definite",
                got=f"alpha = {noise:.3g} and {kernel!r} ({error})",
                advice="Raise alpha.",
            ) from None
        return (value, slopes) if gradient else value

    @property
    def posterior_(self) -> Posterior:
        """The process f given the data."""
        check_is_fitted(self)
        scale = self._normalised()[2]
        return Posterior(self.function_, self._factor.L, self._rows.roots, scale[0] if self._rows.single else scale)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _file_state(self) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
        """Keep a factor that grew in files: one that is computed in one step would differ in its last digits."""
        parameters, fitted, left_out = super()._file_state()
        if fitted.get("_grew"):
            fitted["_cache"] = {"factor": self._factor}
        return parameters, fitted, left_out

    @property
    def _pairwise(self) -> bool:
        return self.kernel_.pairwise

    @property
    def _factor(self) -> CholeskyFactor:
        if "factor" not in self._cache:
            self._factorise()
        return self._cache["factor"]

    def _problem(self) -> LeastSquares:
        rows = self._rows
        return LeastSquares(gram.of(self.kernel_, rows.points), rows.y, np.array([self.alpha_]), rows.roots)

    def ridge_problem(self, rows: Rows) -> RidgeProblem:
        """The problem on these rows whose criteria `mc.tune` searches."""
        y = normalised(rows)[0] if self.normalize_y else rows.y
        return RidgeProblem(resolve_kernel(self.kernel, rows.points), y, None)

    def _tune(self, by: str) -> None:
        rows, y = self._rows, self._normalised()[0]
        self.tuning_ = tune_problem(
            self.kernel_,
            rows.points,
            y,
            self.alpha_,
            rows.roots,
            None,
            by=by,
            n_restarts=self.n_restarts,
            hold=self.hold,
            random_state=self.random_state,
        )
        self.kernel_, self.alpha_ = self.tuning_.kernel, self.tuning_.alpha

    def _factorise(self) -> None:
        """Find L with L Lᵀ = K̃ + (alpha + jitter) I, for the first jitter of 0, ε·tr K, 10 ε·tr K, … that is enough."""
        problem, n = self._problem(), len(self._rows)
        jitter, largest, trace = self.jitter_, np.inf, np.nan
        while jitter <= (largest if self.alpha_ == 0 else min(largest, self.alpha_)):
            K = problem.matrix(np.float64)
            trace = float(np.trace(K))
            largest = 100 * n * float(np.finfo(problem.gram.dtype).eps) * trace
            try:
                self._cache["factor"] = CholeskyFactor(K, self.alpha_ + jitter, problem.roots)
            except np.linalg.LinAlgError:
                jitter = max(10 * jitter, EPS * trace, np.finfo(np.float64).tiny)
            else:
                self.jitter_, self._grew = jitter, False
                return
        require_psd(problem.gram)
        # More noise than alpha would be another model.
        raise InvalidInput(
            "`alpha` must be larger than the rounding errors of the Gram matrix",
            got=f"alpha = {self.alpha_:.3g} and a Gram matrix of trace {trace:.2g}, which needs {jitter:.2g} on its"
            " diagonal or more",
            advice="Raise alpha well above that, or scale the columns of X, for instance by StandardScaler().",
        )

    def _normalised(self) -> tuple[Matrix, Matrix, Matrix]:
        """The targets that the process is fitted to, shape (n, t), with their centre and unit, shape (t,)."""
        y = self._rows.y
        return normalised(self._rows) if self.normalize_y else (y, np.zeros(y.shape[1]), np.ones(y.shape[1]))

    def _condition(self) -> Self:
        """Set the posterior of the rows, from the factor."""
        rows, factor = self._rows, self._factor
        y, centre, unit = self._normalised()
        c, _ = factor.solve(y)
        if self.alpha_ == 0 and self.jitter_ > 0:
            self._require_interpolation(y, c)
        self.log_evidence_ = evidence.of_factor(factor, y, c)
        dtype = self.kernel_.dtype_of(rows.points)
        tail = Tail.constant(centre[0] if rows.single else centre) if self.normalize_y else None
        self.function_ = Expansion(self.kernel_, rows.points, rows.shaped(c * unit).astype(dtype, copy=False), tail)
        self.dual_coef_ = self.function_.coef
        self.status_ = f"exact, by a Cholesky factor of {len(rows)} points"
        if self.jitter_:
            self.status_ += f"; {self.jitter_:.2g} was added to the diagonal, because K is singular to rounding"
        return self

    def _require_interpolation(self, y: Matrix, c: Matrix) -> None:
        """Without noise and with a singular K: refuse targets that no function in the kernel's space interpolates."""
        rows = self._rows
        misses = np.abs(self.jitter_ * c if rows.roots is None else self.jitter_ * c / rows.roots[:, None] ** 2)
        i, target = np.unravel_index(int(misses.argmax()), misses.shape)
        if misses[i, target] <= MISSED * np.abs(y).max():
            return
        similarity = self.kernel_(rows.points.take([i]), rows.points, dtype=np.float64)[0]
        similarity = similarity / np.sqrt(np.maximum(self.kernel_.diagonal(rows.points), np.finfo(np.float64).tiny))
        similarity[i] = -np.inf
        j = int(similarity.argmax())
        raise InvalidInput(
            "`alpha` must be > 0 if no function interpolates all targets",
            got=f"alpha = 0 and a singular Gram matrix: row {rows.kept[i]} has the target {rows.y[i, target]:.6g}, and"
            f" the most similar row, {rows.kept[j]}, has {rows.y[j, target]:.6g}",
            advice="Raise alpha, or drop repeated rows.",
        )

    def _smoother(self, X: Any) -> Matrix:
        points = self._queries(X)
        weights = self._factor.smoother(self.kernel_(points, self._rows.points, dtype=np.float64))
        if self.normalize_y:
            weights += (1 - weights.sum(axis=1))[:, None] * shares(self._rows)
        return weights

    def _leave_one_out(self) -> Matrix:
        y, factor = self._rows.y, self._factor
        if not self.normalize_y:
            return factor.leave_one_out(y)
        # Without row i the centre b changes; residuals are linear in the targets, so that r(y − b) = r(y) − b·r(1).
        w = shares(self._rows)[:, None]
        rest = 1 - w
        centres = np.divide(w.T @ y - w * y, rest, out=np.zeros_like(y), where=rest > 0)
        return factor.leave_one_out(y) - centres * factor.leave_one_out(np.ones((len(y), 1)))


def shares(rows: Rows) -> Matrix:
    """The weights of the rows, divided by their sum."""
    return np.full(len(rows), 1 / len(rows)) if rows.roots is None else rows.roots**2 / (rows.roots @ rows.roots)


def normalised(rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
    """Targets less their mean, divided by their standard deviation, with both: shapes (n, t), (t,), (t,).

    Targets that are constant up to rounding become exact zeros, with the unit 1.
    """
    y, w = rows.y, shares(rows)
    centre = y[0] + w @ (y - y[0])  # exact for constant targets
    unit = np.sqrt(w @ (y - centre) ** 2)
    flat = unit <= 10 * EPS * np.abs(y).max(axis=0)
    unit[flat] = 1.0
    return np.where(flat, 0.0, (y - centre) / unit), centre, unit


def _noise(alpha: Any) -> float:
    """alpha as a number ≥ 0."""
    if np.ndim(alpha):
        raise InvalidInput(
            "`alpha` must be one number ≥ 0, because all targets share one covariance",
            got=f"shape {np.shape(alpha)}",
            advice="Pass one number; to let the noise differ by row, pass sample_weight to fit: it is alpha/weight.",
        )
    return float(penalties(alpha, 1)[0])


def appended(old: Rows, new: Rows) -> Rows:
    """The old rows followed by the new ones."""
    if old.single != new.single or old.y.shape[1] != new.y.shape[1]:
        raise InvalidInput(
            f"y must have the shape of the first call: (n,{'' if old.single else f' {old.y.shape[1]}'})",
            got=f"(n,{'' if new.single else f' {new.y.shape[1]}'})",
            advice="Pass the same targets as in `fit`.",
        )
    if is_frame(old.points.raw) != is_frame(new.points.raw):
        kinds = [type(rows.points.raw).__name__ for rows in (old, new)]
        raise InvalidInput(
            f"X must be a {kinds[0]}, as in the first call", got=f"a {kinds[1]}", advice=f"Convert X to a {kinds[0]}."
        )
    roots = None
    if old.roots is not None or new.roots is not None:
        roots = np.concatenate([np.ones(len(r)) if r.roots is None else r.roots for r in (old, new)])
    rest = [r.left_out for r in (old, new) if r.left_out is not None]
    passed = len(old) + (0 if old.left_out is None else old.left_out.n)
    return Rows(
        joined(old.points, new.points),
        np.concatenate([old.y, new.y]),
        old.single,
        roots,
        np.concatenate([old.kept, passed + new.kept]),
        rest[0] if len(rest) == 1 else joined(rest[0], rest[1]) if rest else None,
    )
