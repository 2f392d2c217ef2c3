"""From a table of numbers to a regression: kernel, loss and solver are chosen, and every choice is explained."""

from __future__ import annotations

import time as clock_time
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning

from mercer.errors import InvalidInput
from mercer.kernels.points import take
from mercer.kernels.rules import median_gaussian
from mercer.models.auto_model import (
    AutoModel,
    Candidate,
    Choices,
    Clock,
    Entry,
    Problem,
    Record,
    centres,
    descend,
    quietly,
    race,
    searchable,
)
from mercer.models.base import Matrix, Rows, training_points
from mercer.models.glm import KernelGLM
from mercer.models.kernel_ridge import KernelRidge
from mercer.models.svr import SVR
from mercer.models.tune_margin import tune_margin

LOSSES = ("auto", "squared", "log", "poisson", "robust")
# Rows that losses are compared on, and up to which a support vector machine is considered.
ROWS, MACHINE = 1000, 20_000
# Positive targets with a greater skewness may be better on a logarithmic scale.
SKEW = 1.0
# Counts have at most so many different values, and a variance of at least this share of their mean.
VALUES, DISPERSION = 100, 0.5
# Residuals beyond so many robust standard deviations are wide, and from this share on there are many.
WIDE, MANY = 5.0, 0.01


class AutoRegressor(RegressorMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A regression that chooses its kernel, loss and solver itself, and says why.

    Kernels that suit the columns race on a sample by closed-form leave-one-out; the best is tuned by gradient, with one
    width per column where the rows allow it. Then losses are compared on the same kernel: squared, on the scale of
    log y (positive, skewed targets), Poisson (counts) and absolute beyond ε (wide outliers). The winner is fitted to
    all rows: exactly, or on Nyström centres where the memory is too small.

    Parameters
    ----------
    kernel : None to choose one for the columns (numbers, or a frame of mixed ones); or a kernel or a rule X → kernel,
        whose parameters are tuned.
    time : seconds that choosing may take, about; the last fit is made in any case.
    budget : memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : "auto", "squared", "log", "poisson" or "robust".
    random_state : of samples and folds; the same number gives the same model, unless time runs out.

    Attributes
    ----------
    model_ : the fitted `KernelRidge`, `KernelGLM` or `SVR`.
    choices_ : the decisions in their order, with what else was considered; `print` it.
    kernel_, function_, status_ : of that model (on the scale of log y for loss "log").
    loss_ : the loss that was taken.
    loo_error_ : the mean squared error of leaving one out, on the scale of y (of a sample, where there are many rows).

    >>> import numpy as np
    >>> from mercer import AutoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(150, 3))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=150)
    >>> model = AutoRegressor().fit(X[:100], y[:100])
    >>> model.score(X[100:], y[100:]) > 0.95
    True
    >>> [decision.question for decision in model.choices_]
    ['Target', 'Columns', 'Kernel', 'Loss', 'Solver']
    """

    def __init__(
        self,
        *,
        kernel: Any = None,
        time: float = 60.0,
        budget: Any = None,
        loss: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.time = time
        self.budget = budget
        self.loss = loss
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit a model of n points X and targets y, shape (n,).

        An interrupt keeps the best model so far, fitted to no more than 1 000 rows, and is raised again.
        """
        clock, record = self._clock(), Record()
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise InvalidInput(
                f"`loss` must be one of {', '.join(map(repr, LOSSES))}", got=repr(self.loss), advice="'auto' compares."
            )
        rows = Rows.of(training_points(X), y, sample_weight)
        if rows.y.shape[1] > 1:
            raise InvalidInput(
                "y must be 1-D: one target per row", got=f"shape {np.shape(y)}", advice="Fit one model per target."
            )
        if not rows.single:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: it is taken as one target per row.",
                DataConversionWarning,
                stacklevel=2,
            )
        target = rows.y[:, 0]
        weights = None if rows.roots is None else rows.roots**2
        self._look(target, record)
        search = _Search(self, rows, target, weights, clock, record)
        starts = self._starts(search.points, record)
        try:
            search.run(starts)
            made = search.final()
        except KeyboardInterrupt:
            made = search.in_haste()
            self._keep(X, made, record, search)
            raise
        self._keep(X, made, record, search)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The expected target of each of m points."""
        self._asked(X)
        values = np.asarray(self.model_.predict(X))
        return values if self.loss_ != "log" else np.asarray(np.exp(np.minimum(values, self._most)) * self._smear)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Intervals that hold a new target with the given probability, shape (m, 2).

        Of the model itself (`KernelRidge.predict_interval`, exponentials of it for loss "log",
        `KernelGLM.predict_interval`); of the robust loss, prediction plus quantiles of the residuals of its folds.
        Widths were tuned on the same rows, so that they are a little too short where rows are few.
        """
        self._asked(X)
        if self.loss_ == "robust":
            tail = 0.5 * (1.0 - _coverage(coverage))
            ends = np.quantile(self._residuals, [tail, 1.0 - tail])
            return np.asarray(self.model_.predict(X))[:, None] + ends
        interval = np.asarray(self.model_.predict_interval(X, coverage), dtype=np.float64)
        return interval if self.loss_ != "log" else np.exp(np.minimum(interval, self._most))

    # -- inside ---------------------------------------------------------------------------------------------------

    def _look(self, y: Matrix, record: Record) -> None:
        values = np.unique(y)
        if len(values) == 1:
            record.add("Target", "constant", f"every target is {values[0]:.6g}: there is nothing to learn")
            return
        what = f"{len(y)} numbers from {values[0]:.4g} to {values[-1]:.4g}, {len(values)} different"
        whole = bool((values == np.floor(values)).all())
        if len(values) == 2 or (whole and len(values) <= 5 and len(y) >= 20):
            record.add(
                "Target",
                "numbers, as asked",
                f"{what}: if they are names of classes rather than amounts, AutoClassifier is the better model",
            )
        elif is_count(y):
            record.add("Target", "counts", f"{what}, whole and ≥ 0")
        else:
            record.add("Target", "numbers", what)

    def _keep(self, X: Any, made: tuple[str, Any], record: Record, search: _Search) -> None:
        self.loss_, self.model_ = made
        self.choices_: Choices = record.done()
        self.kernel_, self.status_ = self.model_.kernel_, self.model_.status_
        self._smear, self._most, self._residuals = search.smear, search.most, search.residuals
        self.loo_error_ = search.error
        self._shape(X)


class _Search:
    """One search for the kernel and the loss."""

    def __init__(
        self, model: AutoRegressor, rows: Rows, y: Matrix, weights: Matrix | None, clock: Clock, record: Record
    ) -> None:
        self.model, self.rows, self.y, self.weights, self.clock, self.record = model, rows, y, weights, clock, record
        self.points = searchable(rows.points)
        self.rng = np.random.default_rng(model.random_state)
        self.centre = float(np.average(y, weights=weights))
        self.scale = float(np.sqrt(np.average((y - self.centre) ** 2, weights=weights))) or 1.0
        self.loss, self.smear, self.most, self.error = "squared", 1.0, np.inf, np.nan
        self.residuals = np.zeros(1)
        self.extra: dict[str, Any] = {}
        self.best: Entry | None = None
        self.constant = not np.ptp(y) > 0

    def better(self, entry: Entry) -> None:
        self.best = entry

    def problem(self, y: Matrix) -> Problem:
        return Problem(self.points, y[:, None], self.rows.roots)

    def run(self, starts: dict[str, Any]) -> None:
        if self.constant or len(self.y) < 5:
            self.best = Entry.of(*next(iter(starts.items())), self.rows.points)
            why = "the targets are constant" if self.constant else f"{len(self.y)} rows are too few to compare kernels"
            self.record.add("Kernel", self.best.name, why)
            return
        standard = (self.y - self.centre) / self.scale
        self.best = race(starts, self.problem(standard), self.clock, self.rng, self.record, self.better)
        self.losses()

    # -- losses ---------------------------------------------------------------------------------------------------

    def losses(self) -> None:
        """Compare what suits the target by leave-one-out on the scale of y, on one sample."""
        assert self.best is not None
        began, asked = clock_time.perf_counter(), self.model.loss
        n = len(self.y)
        index = np.arange(n) if n <= 1.25 * ROWS else np.sort(self.rng.permutation(n)[:ROWS])
        y = self.y[index]
        w = None if self.weights is None else self.weights[index]
        X = take(self.points.raw, index)
        with quietly():
            plain = self.ridge(self.best).fit(X, y, w)
        left_out = np.asarray(plain.loo_predictions_)
        self.error = float(np.average((y - left_out) ** 2, weights=w))
        considered = [Candidate("squared", self.error)]
        notes = []
        if asked == "log" and not y.min() > 0:
            raise InvalidInput("`loss='log'` needs targets > 0", got=f"{y.min():.4g}", advice="Use 'squared'.")
        if asked == "poisson" and not y.min() >= 0:
            raise InvalidInput("`loss='poisson'` needs targets ≥ 0", got=f"{y.min():.4g}", advice="Use 'squared'.")
        if asked == "log" or (asked == "auto" and _skewed(y) and not self.clock.over(0.6)):
            notes += self.logarithm(index, y, w, left_out, considered, forced=asked == "log")
        if asked == "poisson" or (asked == "auto" and is_count(self.y) and not self.clock.over(0.6)):
            notes += self.counts(X, y, w, left_out, considered, forced=asked == "poisson")
        little = n <= MACHINE and not self.clock.over(0.6)
        if asked == "robust" or (asked == "auto" and self.loss == "squared" and little):
            notes += self.outliers(X, y, w, left_out, considered, forced=asked == "robust")
        why = "; ".join(notes) or "the residuals of leaving one out are ordinary"
        criterion = "mean squared error of leaving one out, on the scale of the target"
        self.record.add("Loss", self.loss, why, criterion, sorted(considered, key=lambda c: c.value), began)

    def ridge(self, entry: Entry) -> KernelRidge:
        own = self.model
        return KernelRidge(
            entry.kernel, alpha=entry.alpha, fit_intercept=True, budget=own.budget, random_state=own.random_state
        )

    def logarithm(
        self, index: Any, y: Matrix, w: Any, plain: Matrix, considered: list[Candidate], forced: bool
    ) -> list[str]:
        """Kernel ridge on log y, its mean by smearing (Duan 1983): taken where it is closer on the scale of y."""
        assert self.best is not None
        log = np.log(y)
        centred = (log - log.mean()) / (log.std() or 1.0)
        problem = self.problem(np.zeros_like(self.y)).take(index)
        problem = replace(problem, y=centred[:, None])
        found = descend(self.best, problem, self.clock)
        with quietly():
            fitted = self.ridge(found).fit(take(self.points.raw, index), log, w)
        left_out = np.asarray(fitted.loo_predictions_)
        smear = float(np.average(np.exp(log - left_out), weights=w))
        guess = np.exp(np.minimum(left_out, log.max() + 3.0)) * smear
        error = float(np.average((y - guess) ** 2, weights=w))
        considered.append(Candidate("log", error))
        if not forced and not _clearly(y, guess, plain, w):
            return ["a logarithmic scale was tried, and is not clearly closer"]
        self.loss, self.best, self.smear, self.most, self.error = "log", found, smear, float(log.max()) + 3.0, error
        return ["as asked" if forced else "the targets are positive and skewed, and closer on a logarithmic scale"]

    def counts(self, X: Any, y: Matrix, w: Any, plain: Matrix, considered: list[Candidate], forced: bool) -> list[str]:
        """Poisson's loss with a logarithmic link, its penalty by approximate leave-one-out deviance."""
        assert self.best is not None
        own, tried = self.model, list[tuple[float, float, Matrix]]()
        # f has the variance 1/alpha where it is free: a factor of about e either way, or less.
        for alpha in (1.0, 4.0, 16.0, 64.0, 0.25, 0.06):
            if tried and (self.clock.over(0.7) or (alpha == 0.25 and tried[0][0] > tried[1][0])):
                break
            with quietly():
                glm = KernelGLM(self.best.kernel, family="poisson", alpha=alpha, tol=1e-5, budget=own.budget,
                                random_state=own.random_state).fit(X, y, w)  # fmt: skip
            guess = np.asarray(glm.loo_predictions_)
            tried.append((float(np.average(_poisson(y, np.maximum(guess, 1e-12)), weights=w)), alpha, guess))
            if len(tried) in (2, 3, 4) and alpha > 1 and tried[-1][0] > tried[-2][0] and tried[1][0] < tried[0][0]:
                break
        least, alpha, guess = min(tried, key=lambda t: t[0])
        # Least squares may go below zero, where counts have no deviance.
        squared = _poisson(y, np.maximum(plain, 0.1 * max(float(y.mean()), 1e-3)))
        before = float(np.average(squared, weights=w))
        lost = _poisson(y, np.maximum(guess, 1e-12)) - squared
        dispersion = float(np.average((y - guess) ** 2 / np.maximum(guess, 1e-12), weights=w))
        error = float(np.average((y - guess) ** 2, weights=w))
        considered.append(Candidate("poisson", error, f"deviance {least:.4g}, of squared {before:.4g}"))
        worse = float(np.average(lost, weights=w)) > float(lost.std()) / np.sqrt(len(y))
        if not forced and (worse or dispersion < DISPERSION):
            why = "vary less than counts do" if dispersion < DISPERSION else "squares are closer by Poisson's deviance"
            return [f"the targets are whole numbers ≥ 0, but {why}"]
        self.loss, self.error, self.extra = "poisson", error, {"alpha": alpha}
        more = f", with {dispersion:.2g} × Poisson's variance" if dispersion > 1.5 else ""
        return [f"the targets are counts{more}" if not forced else "as asked"]

    def outliers(
        self, X: Any, y: Matrix, w: Any, plain: Matrix, considered: list[Candidate], forced: bool
    ) -> list[str]:
        """Support vector regression, which outliers do not pull: taken where it is closer by the absolute error too."""
        assert self.best is not None
        r = y - plain
        spread = 1.4826 * float(np.median(np.abs(r - np.median(r)))) or float(r.std()) or 1.0
        wide = float((np.abs(r - np.median(r)) > WIDE * spread).mean())
        if not forced and wide < MANY:
            return []
        found = f"{wide:.1%} of the residuals are wider than {WIDE:g} robust standard deviations"
        # Kernel ridge has the coefficients r/alpha: C cuts those of wide residuals.
        C = np.minimum(np.geomspace(1.0, 30.0, 3) / self.best.alpha, 1e5) * spread
        machine = SVR(
            self.best.kernel, C=1.0, epsilon=0.1 * spread, tol=1e-2 * spread, max_time=max(self.clock.left / 30, 0.1)
        )
        with quietly():
            tuned = tune_margin(machine, X, y, cv=3, grid={"C": C}, sample_weight=w)
            machine.set_params(C=tuned.C)
            guess = np.empty_like(y)
            fold = np.arange(len(y)) % 3
            for i in range(3):
                own = {} if w is None else {"sample_weight": w[fold != i]}
                part = machine.fit(take(X, np.flatnonzero(fold != i)), y[fold != i], **own)
                guess[fold == i] = part.predict(take(X, np.flatnonzero(fold == i)))
        error = float(np.average((y - guess) ** 2, weights=w))
        absolute, before = (float(np.average(np.abs(y - g), weights=w)) for g in (guess, plain))
        considered.append(Candidate("robust", error, f"mean absolute {absolute:.4g}, of squared {before:.4g}"))
        gain = np.abs(r) - np.abs(y - guess)
        sure = float(gain.mean()) > float(gain.std()) / np.sqrt(len(y))
        if not forced and not sure:
            return [f"{found}; the robust loss was tried and is not closer: loss='robust' takes it anyway"]
        self.loss, self.residuals, self.error = "robust", y - guess, error
        self.extra = {"C": tuned.C, "epsilon": 0.1 * spread, "tol": 1e-3 * spread}
        return [found if not forced else "as asked"]

    # -- fits -----------------------------------------------------------------------------------------------------

    def made(self, rows: Any, y: Matrix, w: Any) -> tuple[str, Any]:
        """The chosen model fitted to some rows: exactly, or on as many centres as the time allows."""
        assert self.best is not None
        own = self.model
        few = centres(len(y), 10.0 if self.loss == "poisson" else 2.0, self.clock)
        with quietly():
            if self.loss == "poisson":
                model: Any = KernelGLM(self.best.kernel, family="poisson", alpha=self.extra["alpha"], n_centers=few,
                                       budget=own.budget, random_state=own.random_state)  # fmt: skip
            elif self.loss == "robust":
                model = SVR(self.best.kernel, **self.extra)
            else:
                model = self.ridge(self.best)
                model.set_params(**({} if few is None else {"solver": "nystrom", "n_centers": few}))
            return self.loss, model.fit(rows, np.log(y) if self.loss == "log" else y, w)

    def final(self) -> tuple[str, Any]:
        began = clock_time.perf_counter()
        made = self.made(self.rows.points.raw, self.y, self.weights)
        name = type(made[1]).__name__
        self.record.add("Solver", name, f"fitted to all {len(self.y)} rows: {made[1].status_}", began=began)
        return made

    def in_haste(self) -> tuple[str, Any]:
        """What can be had at once, after an interrupt."""
        index = np.sort(self.rng.permutation(len(self.y))[:ROWS])
        w = None if self.weights is None else self.weights[index]
        if self.best is None:
            self.best = Entry.of("Gaussian", median_gaussian(self.rows.points), self.rows.points)
        loss, model = self.made(take(self.rows.points.raw, index), self.y[index], w)
        model.status_ = f"interrupted: fitted to {len(index)} of {len(self.y)} rows; {model.status_}"
        self.record.add("Solver", type(model).__name__, model.status_)
        return loss, model


def is_count(y: Matrix) -> bool:
    """Whole numbers ≥ 0, few of them different, more than two."""
    values = np.unique(y)
    return bool(values[0] >= 0 and 2 < len(values) <= min(VALUES, len(y) // 2) and (values == np.floor(values)).all())


def _skewed(y: Matrix) -> bool:
    if not y.min() > 0:
        return False
    z = (y - y.mean()) / (y.std() or 1.0)
    return float((z**3).mean()) > SKEW


def _poisson(y: Matrix, mu: Matrix) -> Matrix:
    """Deviance of every row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2.0 * (np.where(y > 0, y * np.log(y / mu), 0.0) - y + mu))


def _clearly(y: Matrix, guess: Matrix, before: Matrix, w: Any) -> bool:
    """Whether a guess is closer than another: by squares, and by more than a standard error of the absolute error."""
    squares = (y - before) ** 2 - (y - guess) ** 2
    gain = np.abs(y - before) - np.abs(y - guess)
    sure = float(np.average(gain, weights=w)) > float(gain.std()) / np.sqrt(len(y))
    return sure and float(np.average(squares, weights=w)) > 0


def _coverage(coverage: Any) -> float:
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.number)) or not 0 < coverage < 1:
        raise InvalidInput("`coverage` must be a number in (0, 1)", got=repr(coverage), advice="Such as 0.9.")
    return float(coverage)
