"""The record of a search: each candidate that was tried, by one measure, and the chosen one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.validation import is_number
from mercer.words import rounded

NAN = float("nan")


@dataclass(frozen=True)
class Measure:
    """A number by which candidates are compared.

    Attributes
    ----------
    by : str
        Its short name, such as "loo".
    name : str
        Its name in words, such as "mean leave-one-out squared error".
    greater : bool
        Whether a greater number is better.
    """

    by: str
    name: str
    greater: bool

    def better(self, one: float, other: float) -> bool:
        """Whether one score is better than another; NaN is never better.

        >>> LOO_ERROR.better(0.1, 0.2), LOG_EVIDENCE.better(0.1, 0.2)
        (True, False)
        """
        return bool(one > other if self.greater else one < other)

    def best(self, scores: Any) -> int:
        """The position of the first of the best scores that are finite."""
        scores = np.asarray(scores, dtype=np.float64)
        loss = np.where(np.isfinite(scores), -scores if self.greater else scores, np.inf)
        return int(loss.argmin())


LOO_ERROR = Measure("loo", "mean leave-one-out squared error", greater=False)
LOG_EVIDENCE = Measure("evidence", "log evidence", greater=True)
LOO_LIKELIHOOD = Measure("likelihood", "mean leave-one-out log likelihood", greater=True)


@dataclass(frozen=True)
class Trial:
    """One candidate and its score.

    Attributes
    ----------
    parameters
        By name, such as {"kernel": Gaussian(sigma=1.0), "alpha": 0.1}.
    score : float
        Its score by the measure of the search; NaN if it could not be evaluated.
    standard_error : float
        The standard error of the score over folds; NaN without folds.
    rows : int
        The number of rows that were used; 0 means all.
    folds : int
        The number of folds over which the score is a mean; 0 without folds.
    name : str
        The candidate's own name, if it has one, such as "Matern 3/2".
    note : str
        A remark on it, such as its score by another measure.
    seconds : float
        The time it took, for information: no choice depends on it.

    Examples
    --------
    >>> print(Trial({"alpha": 0.1}, 0.25, standard_error=0.01))
    alpha=0.1: 0.25 ± 0.01
    """

    parameters: Mapping[str, Any]
    score: float
    standard_error: float = NAN
    rows: int = 0
    folds: int = 0
    name: str = ""
    note: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def label(self) -> str:
        """The candidate's name, or its parameters in words."""
        return self.name or described(self.parameters)

    def __str__(self) -> str:
        spread = f" ± {self.standard_error:.2g}" if np.isfinite(self.standard_error) else ""
        return f"{self.label}: {self.score:.6g}{spread}"


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials of a search in their order, all by one measure.

    >>> trials = Trials.of(LOO_ERROR, [Trial({"alpha": 0.1}, 0.3), Trial({"alpha": 1.0}, 0.2)])
    >>> trials.best.parameters["alpha"], len(trials)
    (1.0, 2)
    """

    measure: Measure
    trials: tuple[Trial, ...]
    chosen: int

    @classmethod
    def of(cls, measure: Measure, trials: Iterable[Trial]) -> Trials:
        """The record in which the first of the best trials is chosen."""
        in_order = tuple(trials)
        return cls(measure, in_order, measure.best([trial.score for trial in in_order]))

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.trials[self.chosen]

    def ranked(self) -> list[Trial]:
        """The trials, best first; trials without a score come last."""
        sign = -1.0 if self.measure.greater else 1.0
        return sorted(self.trials, key=lambda t: (not np.isfinite(t.score), sign * t.score))

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __getitem__(self, position: int) -> Trial:
        return self.trials[position]

    def __str__(self) -> str:
        return "\n".join([f"{self.measure.name}:", *(f"  {trial}" for trial in self.ranked())])


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """The result of a search: the chosen parameters, every trial, and remarks on them.

    Attributes
    ----------
    parameters
        The chosen parameters by the model's names, such as {"kernel": Gaussian(sigma=1.0), "alpha": 0.1}.
    trials : Trials
        Every candidate that was compared on all rows, and which of them was chosen.
    evaluations : int
        The number of evaluations of the criterion on all rows.
    seconds : float
        The time it took, for information.
    notes : tuple of str
        Remarks on the choice: parameters that do not matter, or that stopped at a bound.
    at_bounds : tuple of str
        Names of the parameters that stopped at a bound.
    start_value : float
        The score of the first parameters; NaN if it was not computed, as it would cost as much as a step.
    baseline : float
        The score of always predicting the same value; NaN for the evidence, and if it was not computed.
    grid
        The table of all scores, if there was a grid.
    """

    parameters: dict[str, Any]
    trials: Trials
    evaluations: int
    seconds: float
    notes: tuple[str, ...] = ()
    at_bounds: tuple[str, ...] = ()
    start_value: float = NAN
    baseline: float = NAN
    grid: Any = None

    @property
    def kernel(self) -> Any:
        """The chosen kernel."""
        return self.parameters["kernel"]

    @property
    def alpha(self) -> float:
        """The chosen penalty alpha, if it was tuned."""
        return self._number("alpha")

    @property
    def C(self) -> float:
        """The chosen C of a support vector machine."""
        return self._number("C")

    def _number(self, name: str) -> float:
        if name not in self.parameters:
            raise AttributeError(f"{name!r} was not tuned. The tuned parameters are {', '.join(self.parameters)}.")
        return float(self.parameters[name])

    @property
    def by(self) -> str:
        """The short name of the measure, such as "loo", "evidence" or "5-fold R²"."""
        return self.trials.measure.by

    @property
    def value(self) -> float:
        """The score of the chosen parameters."""
        return self.trials.best.score

    @property
    def beats_baseline(self) -> bool:
        """Whether the choice is better than always predicting the same value; True if that is not known."""
        return bool(np.isnan(self.baseline)) or self.trials.measure.better(self.value, self.baseline)

    def __str__(self) -> str:
        best = self.trials.best
        spread = f" ± {best.standard_error:.2g}" if np.isfinite(best.standard_error) else ""
        before = f" (before: {self.start_value:.6g})" if np.isfinite(self.start_value) else ""
        effort = f"{len(self.trials)} candidates" if self.grid is not None else f"{self.evaluations} evaluations"
        return "\n".join([
            described(self.parameters),
            f"{self.trials.measure.name} {self.value:.6g}{spread}{before}; {effort} in {self.seconds:.2g} s",
            *self.notes,
        ])  # fmt: skip

    __repr__ = __str__


def described(parameters: Mapping[str, Any]) -> str:
    """Parameters in words, numbers to four digits; the kernel without its name, but with all its widths.

    >>> described({"kernel": "Gaussian(1.23456)", "C": 10.0})
    'Gaussian(1.235), C=10'
    """
    words = []
    for name, value in parameters.items():
        text = f"{value:.4g}" if is_number(value) else rounded(value if isinstance(value, str) else repr(value))
        words.append(text if name == "kernel" else f"{name}={text}")
    return ", ".join(words)
