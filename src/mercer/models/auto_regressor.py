"""From a table of numbers to a regression: kernel, loss and solver are chosen, and every choice is explained."""

from __future__ import annotations

import time as clock_time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning

from mercer.errors import InvalidInput
from mercer.kernels.points import take
from mercer.models.auto_model import OWN, AutoModel, Candidate, Entry, Problem, Search, Trial, descend, quietly
from mercer.models.base import Matrix, Rows, outside, training_points
from mercer.models.glm import KernelGLM
from mercer.models.kernel_ridge import KernelRidge
from mercer.models.svr import SVR
from mercer.models.tune_margin import tune_margin

LOSSES = ("auto", "squared", "log", "poisson", "robust")
# Rows up to which a support vector machine is considered.
MACHINE = 20_000
# Positive targets with a greater skewness may be better on a logarithmic scale.
SKEW = 1.0
# Counts have at most so many different values, and a variance of at least this share of their mean.
VALUES, DISPERSION = 100, 0.5
# Residuals beyond so many robust standard deviations are wide, from this share on they are many, and they harm where
# so much of the variance is left.
WIDE, MANY, HARM = 5.0, 0.01, 0.1


class AutoRegressor(RegressorMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A regression that chooses its kernel, loss and solver itself, and says why.

    Kernels that suit the columns race on a sample by closed-form leave-one-out; the best is tuned by gradient, with one
    width per column where the rows allow it. Then losses are compared on the same kernel: squared, on the scale of
    log y (positive, skewed targets), Poisson (counts) and absolute beyond ε (wide outliers). The winner is fitted to
    all rows: exactly, or on Nyström centres where the time or the memory is too short for that.

    Parameters
    ----------
    kernel : None to choose one for the columns (numbers, or a frame of mixed ones); or a kernel or a rule X → kernel,
        whose parameters are tuned.
    time : seconds that the fit may take, about: with many rows the last fit takes what is left.
    budget : memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : "auto", "squared", "log", "poisson" or "robust".
    random_state : of samples and folds; the same number gives the same model, unless time runs out.
    progress : called with a `Trial` (name, score, best, seconds, share of the time) after each kernel and loss that was
        tried; its `str` is a line to show. Where it returns False the search ends, and the best so far is fitted.

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
        progress: Callable[[Trial], Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.time = time
        self.budget = budget
        self.loss = loss
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit a model of n points X and targets y, shape (n,).

        An interrupt keeps the best model so far, fitted to some rows, and is raised again.
        """
        self._one_of(LOSSES)
        rows = Rows.of(training_points(X), y, sample_weight)
        if rows.y.shape[1] > 1:
            raise InvalidInput(
                "y must be 1-D: one target per row", got=f"shape {np.shape(y)}", advice="Fit one model per target."
            )
        if not rows.single:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: it is taken as one target per row.",
                DataConversionWarning,
                stacklevel=outside(),
            )
        return self._found(X, _Search(self, rows))

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

    def _keep(self, X: Any, search: Any, made: Any) -> None:
        self._smear, self._most, self._residuals = search.smear, search.most, search.residuals
        self.loo_error_ = search.error
        super()._keep(X, search, made)


class _Search(Search):
    """One search for the kernel and the loss of numbers."""

    def __init__(self, model: AutoRegressor, rows: Rows) -> None:
        super().__init__(model, rows.points, rows.y[:, 0], None if rows.roots is None else rows.roots**2)
        self.smear, self.most, self.error = 1.0, np.inf, np.nan
        self.residuals = np.zeros(1)
        self.extra: dict[str, Any] = {}
        least = float(self.y.min())
        for loss, bad, required in (("log", least <= 0, "> 0"), ("poisson", least < 0, "≥ 0")):
            if model.loss == loss and bad:
                raise InvalidInput(
                    f"`loss={loss!r}` needs targets {required}", got=f"{least:.4g}", advice="Use 'squared'."
                )

    def look(self) -> None:
        y, values = self.y, np.unique(self.y)
        if len(values) == 1:
            self.record.add("Target", "constant", f"every target is {values[0]:.6g}: there is nothing to learn")
            return
        kind = "counts" if is_count(y) else "numbers"
        what = f"{len(y):,} values from {values[0]:.4g} to {values[-1]:.4g}, {len(values):,} different"
        few = len(values) <= 5 and len(y) >= 20 and (values == np.floor(values)).all()
        if len(values) == 2 or (few and kind != "counts") or (few and np.median(y) > 0):
            what += ". If they are names of classes rather than amounts, AutoClassifier is the better model"
        self.record.add("Target", kind, what)

    def too_few(self) -> str:
        if not np.ptp(self.y) > 0:
            return "the targets are constant"
        return "" if len(self.y) >= 5 else f"{len(self.y)} rows are too few to compare kernels"

    def targets(self) -> Matrix:
        """With mean 0 and variance 1."""
        centre = float(np.average(self.y, weights=self.weights))
        scale = float(np.sqrt(np.average((self.y - centre) ** 2, weights=self.weights)))
        return np.asarray((self.y - centre) / scale)[:, None]

    # -- losses ---------------------------------------------------------------------------------------------------

    def losses(self) -> None:
        """Compare what suits the target by leave-one-out on the scale of y, on one sample."""
        assert self.best is not None
        began, asked, n = clock_time.perf_counter(), self.model.loss, len(self.y)
        index = self.sample()
        X, y = take(self.plain.raw, index), self.y[index]
        w = None if self.weights is None else self.weights[index]
        with quietly():
            plain = np.asarray(self.ridge(self.best).fit(X, y, w).loo_predictions_)
        self.error = float(np.average((y - plain) ** 2, weights=w))
        considered = [Candidate("squared", self.error)]
        arguments, notes = (X, y, w, plain, considered), list[str]()
        late = self.clock.over(0.6)
        if asked == "log" or (asked == "auto" and _skewed(self.y) and not late):
            notes += self.logarithm(index, *arguments)
        if asked == "poisson" or (asked == "auto" and is_count(self.y) and not late):
            notes += self.counts(*arguments)
        if asked == "robust" or (asked == "auto" and self.loss == "squared"):
            notes += self.outliers(*arguments, quick=n <= MACHINE and not late)
        if late and asked == "auto":
            notes.append("there was no time to try others")
        why = "as asked" if asked != "auto" else "; ".join(notes) or "the residuals of leaving one out are ordinary"
        criterion = "mean squared error when each row is left out, on the scale of the target"
        self.record.add("Loss", self.loss, why, criterion, sorted(considered, key=lambda c: c.value), began)

    def ridge(self, entry: Entry) -> KernelRidge:
        own = self.model
        return KernelRidge(
            entry.kernel, alpha=entry.alpha, fit_intercept=True, budget=own.budget, random_state=own.random_state
        )

    def logarithm(self, index: Any, X: Any, y: Matrix, w: Any, plain: Matrix, considered: list[Candidate]) -> list[str]:
        """Kernel ridge on log y, its mean by smearing (Duan 1983): taken where it is closer on the scale of y."""
        assert self.best is not None
        log = np.log(y)
        centred = (log - log.mean()) / (log.std() or 1.0)
        roots = None if w is None else np.sqrt(w)
        problem = Problem(self.plain.take(index), centred[:, None], roots)
        found = descend(replace(self.best, curvature=None), problem, self.clock, OWN)
        with quietly():
            left_out = np.asarray(self.ridge(found).fit(X, log, w).loo_predictions_)
        smear = float(np.average(np.exp(log - left_out), weights=w))
        guess = np.exp(np.minimum(left_out, log.max() + 3.0)) * smear
        error = float(np.average((y - guess) ** 2, weights=w))
        considered.append(Candidate("log", error))
        self.clock.tell("log of the target", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        if self.model.loss == "auto" and not _clearly(y, guess, plain, w):
            return ["a logarithmic scale was tried, and is not clearly closer"]
        self.loss, self.best, self.smear, self.most, self.error = "log", found, smear, float(log.max()) + 3.0, error
        return ["the targets are positive and skewed, and closer on a logarithmic scale"]

    def counts(self, X: Any, y: Matrix, w: Any, plain: Matrix, considered: list[Candidate]) -> list[str]:
        """Poisson's loss with a logarithmic link, its penalty by approximate leave-one-out deviance."""
        assert self.best is not None
        # Least squares has the noise E and the signal E/alpha; that of log μ is smaller by μ².
        mean = float(np.average(y, weights=w))
        start = self.best.alpha * mean**2 / max(self.error, 1e-12 * mean**2)
        tried = list[tuple[float, float, Matrix]]()
        for alpha in start * np.array([1.0, 4.0, 0.25]):
            with quietly():
                guess = np.asarray(self.poisson(float(alpha)).fit(X, y, w).loo_predictions_)
            tried.append((float(np.average(_poisson(y, np.maximum(guess, 1e-12)), weights=w)), float(alpha), guess))
            if self.clock.over(0.7):
                break
        least, alpha, guess = min(tried, key=lambda t: t[0])
        # Least squares may go below zero, where counts have no deviance.
        squared = _poisson(y, np.maximum(plain, 0.1 * max(mean, 1e-3)))
        before = float(np.average(squared, weights=w))
        lost = _poisson(y, np.maximum(guess, 1e-12)) - squared
        dispersion = float(np.average((y - guess) ** 2 / np.maximum(guess, 1e-12), weights=w))
        error = float(np.average((y - guess) ** 2, weights=w))
        considered.append(Candidate("poisson", error, f"deviance {least:.4g}, of squared {before:.4g}"))
        self.clock.tell("Poisson's loss", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        worse = float(np.average(lost, weights=w)) > float(lost.std()) / np.sqrt(len(y))
        if self.model.loss == "auto" and (worse or dispersion < DISPERSION):
            why = "vary less than counts do" if dispersion < DISPERSION else "squares are closer by Poisson's deviance"
            return [f"the targets are whole numbers ≥ 0, but {why}"]
        self.loss, self.error, self.extra = "poisson", error, {"alpha": alpha}
        more = f", with {dispersion:.2g} × Poisson's variance" if dispersion > 1.5 else ""
        return [f"the targets are counts{more}"]

    def poisson(self, alpha: float) -> KernelGLM:
        assert self.best is not None
        own = self.model
        return KernelGLM(
            self.best.kernel, family="poisson", alpha=alpha, tol=1e-5, budget=own.budget, random_state=own.random_state
        )

    def outliers(self, X: Any, y: Matrix, w: Any, plain: Matrix, considered: list[Candidate], quick: bool) -> list[str]:
        """Support vector regression, which outliers do not pull: taken where it is closer by the absolute error too."""
        assert self.best is not None
        r = y - plain
        spread = 1.4826 * float(np.median(np.abs(r - np.median(r)))) or float(r.std()) or 1.0
        wide = float((np.abs(r - np.median(r)) > WIDE * spread).mean())
        asked = self.model.loss == "robust"
        if not asked and (wide < MANY or self.error < HARM * float(np.var(y))):
            return []
        found = f"{wide:.1%} of the residuals are wider than {WIDE:g} robust standard deviations"
        if not asked and not quick:
            return [f"{found}: try loss='robust'"]
        # Kernel ridge has the coefficients r/alpha: C cuts those of wide residuals.
        C = np.minimum(np.geomspace(1.0, 30.0, 3) / self.best.alpha, 1e5) * spread
        machine = SVR(
            self.best.kernel, C=1.0, epsilon=0.1 * spread, tol=1e-2 * spread, max_time=max(self.clock.left / 200, 0.1)
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
        self.clock.tell("robust loss", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        gain = np.abs(r) - np.abs(y - guess)
        sure = float(gain.mean()) > float(gain.std()) / np.sqrt(len(y))
        if not asked and not sure:
            return [f"{found}; the robust loss was tried and is not closer: loss='robust' takes it anyway"]
        self.loss, self.residuals, self.error = "robust", y - guess, error
        self.extra = {"C": tuned.C, "epsilon": 0.1 * spread, "tol": 1e-3 * spread}
        return [found]

    # -- fits -----------------------------------------------------------------------------------------------------

    def unfitted(self) -> tuple[Any, float]:
        assert self.best is not None
        if self.loss == "poisson":
            return self.poisson(self.extra.get("alpha", 1.0)), 4.0
        if self.loss == "robust":
            return SVR(self.best.kernel, **self.extra), 1.0
        return self.ridge(self.best), 0.1

    def scaled(self, y: Matrix) -> Matrix:
        return np.log(y) if self.loss == "log" else y


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
    """Whether a guess is closer than another: by squares, by more than a standard error, and by absolute errors."""
    squares = (y - before) ** 2 - (y - guess) ** 2
    gain = np.abs(y - before) - np.abs(y - guess)
    sure = [float(np.average(g, weights=w)) > float(g.std()) / np.sqrt(len(y)) for g in (squares, gain)]
    return all(sure)


def _coverage(coverage: Any) -> float:
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.number)) or not 0 < coverage < 1:
        raise InvalidInput("`coverage` must be a number in (0, 1)", got=repr(coverage), advice="Such as 0.9.")
    return float(coverage)
