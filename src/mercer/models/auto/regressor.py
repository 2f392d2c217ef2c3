"""From a table of numbers to a regression: kernel, loss and solver are chosen, and every choice is explained."""

from __future__ import annotations

import time as clock_time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning

from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.models.auto.intervals import Counts, log_normal
from mercer.models.auto.model import AutoModel, Candidate, Cost, Entry, Problem, Search, descend, optimism, quietly
from mercer.models.auto.plan import FIRST, OWN, Trial
from mercer.models.base import Matrix, Rows, outside, training_points
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.likelihood.glm import KernelGLM
from mercer.models.quantiles import around, conformal
from mercer.models.svm.svr import SVR
from mercer.models.tune_margin import tune_margin

LOSSES = ("auto", "squared", "log", "poisson", "robust")
# Rows up to which a support vector machine is considered.
MACHINE = 20_000
# Positive targets with a greater skewness may be better on a logarithmic scale.
SKEW = 1.0
# Counts have at most this many different values.
VALUES = 100
# Residuals beyond this many robust standard deviations are wide, from this share on they are many, and they harm where
# this share of the variance is left.
WIDE, MANY, HARM = 5.0, 0.01, 0.1
# Penalties of Poisson's loss, in units of the one that least squares suggests, and evaluations that one fit costs.
PENALTIES, NEWTON = (1.0, 4.0, 0.25), 4.0
# Pairs that a support vector machine may move for each row while C is chosen.
PAIRS = 1000
# Rows of the smallest problem in which kernels are compared.
FEWEST = 5


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
    time : seconds for the search and the last fit, on one core of a common machine: what is tried, and on how many
        rows, is planned for them by counting operations, so that the same data gets the same model on any day. Where
        they are over before the plan is done, the rest is left out; `stopped_by_` and `status_` say so.
    budget : memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : "auto", "squared", "log", "poisson" or "robust".
    random_state : of samples and folds; the same number gives the same model, unless `stopped_by_` is not None.
    progress : called with a `Trial` (name, score, best, seconds, share of the time) after each kernel and loss that was
        tried; its `str` is a line to show. Where it returns False the search ends, and the best so far is fitted.

    Attributes
    ----------
    model_ : the fitted `KernelRidge`, `KernelGLM` or `SVR`.
    choices_ : the decisions in their order, with what else was considered; `print` it.
    kernel_, function_, status_ : of that model (on the scale of log y for loss "log").
    stopped_by_ : None where the plan was carried out; else "time", "progress" or "interrupt".
    loss_ : the loss that was taken.
    loo_error_ : the mean squared error of leaving one out, on the scale of y (of a sample, where there are many rows),
        times `loo_optimism_`: an estimate of the error on new rows.
    loo_optimism_ : the factor by which tuning on the same rows made that error too small, found by tuning on halves of
        the rows; 1 where they are too few, or the time too short, to find it.

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

    _added: ClassVar[dict[str, Any]] = {
        "stopped_by_": None,
        "loo_optimism_": 1.0,
        "_least": -np.inf,
        "_dispersion": 1.0,
        "_whole": False,
        "_residual_weights": None,
    }

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
        return self._in_units(np.asarray(self.model_.predict(X)))

    def _in_units(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.loss_ != "log" else np.asarray(np.exp(np.minimum(values, self._most)) * self._smear)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Intervals that hold a new target with the given probability, shape (m, 2).

        All are calibrated on rows left out. Squares and logarithms: jackknife+ (`KernelRidge.predict_interval`, its
        exponentials for loss "log"). Counts by Poisson's loss: quantiles of counts that vary as much as these do around
        their means, from the level that holds the given share of rows left out; ends are whole, and where a few numbers
        have most of the probability they hold more. The robust loss: prediction plus quantiles of the residuals of
        folds. Where no target is negative, no interval goes below 0. Widths were tuned on the same rows, so that
        intervals are a little too short where rows are few.
        """
        self._asked(X)
        if self.loss_ not in ("poisson", "robust"):
            ends = np.asarray(self.model_.predict_interval(X, coverage), dtype=np.float64)
            ends = ends if self.loss_ != "log" else np.exp(np.minimum(ends, self._most))
        else:
            mean, w = np.asarray(self.model_.predict(X), dtype=np.float64), self._residual_weights
            if self.loss_ == "poisson" and self._whole:
                level = -float(conformal(-self._residuals, coverage, w))
                ends = Counts(self._dispersion).interval(mean, level)
            else:
                unit = np.sqrt(mean) if self.loss_ == "poisson" else np.ones_like(mean)
                ends = mean[:, None] + unit[:, None] * np.array(around(self._residuals, coverage, w))
        return np.maximum(ends, self._least)

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` can answer; `in_file` asks for the model that is loaded from its file."""
        return self.loss_ in ("poisson", "robust") or self.model_.has_intervals(in_file=in_file)

    def _keep(self, X: Any, search: Any, made: Any) -> None:
        self._smear, self._most, self._least = search.smear, search.most, search.least
        self._residuals, self._residual_weights = search.residuals, search.residual_weights
        self._dispersion, self._whole = search.dispersion, search.whole
        self.loo_optimism_: float = search.optimism
        self.loo_error_: float = search.error * search.optimism
        super()._keep(X, search, made)


class _Search(Search):
    """One search for the kernel and the loss of numbers."""

    def __init__(self, model: AutoRegressor, rows: Rows) -> None:
        super().__init__(model, rows.points, rows.y[:, 0], None if rows.roots is None else rows.roots**2)
        self.smear, self.most, self.error, self.optimism, self.dispersion = 1.0, np.inf, np.nan, 1.0, 1.0
        # Of rows left out: levels of counts by Poisson's loss, or residuals.
        self.residuals, self.residual_weights = np.zeros(1), None
        self.extra: dict[str, Any] = {}
        self.unaffordable = False
        least = float(self.y.min())
        self.least, self.whole = (0.0 if least >= 0.0 else -np.inf), bool((self.y == np.floor(self.y)).all())
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
        if self.least == 0.0:
            what += ". None is negative: intervals do not go below 0"
        self.record.add("Target", kind, what)

    def too_few(self) -> str:
        if not np.ptp(self.y) > 0:
            return "the targets are constant"
        return "" if len(self.y) >= FEWEST else f"{len(self.y)} rows are too few to compare kernels"

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
        skewed, count = _skewed(self.y), is_count(self.y)
        if asked == "log" or (asked == "auto" and skewed and self.allows(OWN)):
            notes += self.logarithm(index, *arguments)
        if asked == "poisson" or (asked == "auto" and count and self.allows(len(PENALTIES) * NEWTON)):
            notes += self.counts(*arguments)
        if asked == "robust" or (asked == "auto" and self.loss == "squared" and not count):
            notes += self.outliers(*arguments, quick=n <= MACHINE and self.allows(OWN))
        if self.unaffordable and asked == "auto":
            notes.append("there was no time to try others")
        why = "as asked" if asked != "auto" else "; ".join(notes) or "the leave-one-out residuals ask for no other"
        why += self.judge()
        criterion = "mean squared error when each row is left out, on the scale of the target"
        self.record.add("Loss", self.loss, why, criterion, sorted(considered, key=lambda c: c.value), began)

    def allows(self, evaluations: float) -> bool:
        """Whether the plan has room for a loss that costs this many evaluations, and the clock does not stop."""
        fits = self.plan.affords_loss(len(self.sample()), evaluations) and not self.clock.stops()
        self.unaffordable = self.unaffordable or not fits
        return fits

    def judge(self) -> str:
        """Find what tuning took from the leave-one-out error; in words, where it was found."""
        assert self.problem is not None
        assert self.best is not None
        rows, p = min(len(self.y), 2 * FIRST), len(self.best.kernel.theta)
        if len(self.y) < 4 * FEWEST or not self.plan.affords_judging(len(self.candidates), rows, p):
            return ". The leave-one-out error is not corrected for the tuning on the same rows"
        if self.clock.stops():
            return ""
        self.optimism = optimism(self.candidates, self.problem, self.best.rows, self.rng)
        return f". Tuning on the same rows made the leave-one-out error too small by {1 - 1 / self.optimism:.1%}"

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
        self.clock.report("log of the target", 1.0 - error / float(np.var(y)), "leave-one-out R²")
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
        for alpha in start * np.array(PENALTIES):
            with quietly():
                guess = np.asarray(self.poisson(float(alpha)).fit(X, y, w).loo_predictions_)
            tried.append((float(np.average(_poisson(y, np.maximum(guess, 1e-12)), weights=w)), float(alpha), guess))
            if self.clock.stops():
                break
        _, alpha, guess = min(tried, key=lambda t: t[0])
        error = float(np.average((y - guess) ** 2, weights=w))
        counts = Counts.of(y, guess, w)
        self.clock.report("Poisson's loss", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        if self.whole:  # both as distributions of whole numbers, each with the variance that its residuals have
            own, squared = counts.log_probability(y, guess), log_normal(y, plain, w)
            gain = own - squared
            scores = [float(np.average(s, weights=w)) for s in (own, squared)]
            considered.append(Candidate("poisson", error, "log score {:.4g}, of squared {:.4g}".format(*scores)))
            sure = scores[0] - scores[1] > float(gain.std()) / np.sqrt(len(y))
        else:
            considered.append(Candidate("poisson", error))
            sure = True  # only where it was asked for
        if self.model.loss == "auto" and not sure:
            return ["the targets are whole numbers ≥ 0, but Poisson's loss is not better by a standard error of the "
                    "leave-one-out log score"]  # fmt: skip
        self.loss, self.error, self.extra = "poisson", error, {"alpha": alpha}
        return [f"the targets are counts; their variance is {counts.dispersion:.2g} × that of a Poisson distribution, "
                "and the intervals allow for it"]  # fmt: skip

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
        machine = SVR(self.best.kernel, C=1.0, epsilon=0.1 * spread, tol=1e-2 * spread, max_iter=PAIRS * len(y))
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
        self.clock.report("robust loss", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        gain = np.abs(r) - np.abs(y - guess)
        sure = float(gain.mean()) > float(gain.std()) / np.sqrt(len(y))
        if not asked and not sure:
            return [f"{found}; the robust loss was tried and is not closer: loss='robust' takes it anyway"]
        self.loss, self.residuals, self.residual_weights, self.error = "robust", y - guess, w, error
        self.extra = {"C": tuned.C, "epsilon": 0.1 * spread, "tol": 1e-3 * spread}
        return [found]

    # -- fits -----------------------------------------------------------------------------------------------------

    def unfitted(self) -> tuple[Any, Cost]:
        assert self.best is not None
        if self.loss == "poisson":
            return self.poisson(self.extra.get("alpha", 1.0)), Cost(NEWTON, 2 * NEWTON)
        if self.loss == "robust":
            return SVR(self.best.kernel, **self.extra), Cost(1.0, 1.0)
        return self.ridge(self.best), Cost(0.1, 1.0)

    def after(self, kept: NDArray[np.int64]) -> None:
        """What the intervals of counts are calibrated on: the rows of the last fit, each left out."""
        if self.loss != "poisson":
            return
        risk = self.fitted._whole()
        y, mu, w = risk.y, np.asarray(self.fitted.loo_predictions_), risk.weights
        self.residual_weights = None if w is None or np.ptp(w) == 0 else w
        counts = Counts.of(y, mu, w)
        self.dispersion = counts.dispersion
        self.residuals = counts.level(y, mu) if self.whole else (y - mu) / np.sqrt(np.maximum(mu, 1e-12))

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
