"""The record of a search: each candidate that was tried, by one measure, and the chosen one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NAN = float("nan")


@dataclass(frozen=True)
class Measure:
    """A number by which candidates are compared.

    Attributes
    ----------
    name : in words, such as "mean leave-one-out squared error".
    greater : whether a greater number is better.
    """

    name: str
    greater: bool

    def better(self, one: float, other: float) -> bool:
        """Whether one score is better than another; no number (NaN) is never better.

        >>> LOO_ERROR.better(0.1, 0.2), LOG_EVIDENCE.better(0.1, 0.2)
        (True, False)
        """
        return bool(one > other if self.greater else one < other)

    def best(self, scores: Any) -> int:
        """The position of the first of the best scores that are finite."""
        scores = np.asarray(scores, dtype=np.float64)
        loss = np.where(np.isfinite(scores), -scores if self.greater else scores, np.inf)
        return int(loss.argmin())


LOO_ERROR = Measure("mean leave-one-out squared error", greater=False)
LOG_EVIDENCE = Measure("log evidence", greater=True)
LOO_LIKELIHOOD = Measure("mean leave-one-out log likelihood", greater=True)


@dataclass(frozen=True)
class Trial:
    """One candidate and its score.

    Attributes
    ----------
    parameters : by name, such as {"kernel": Gaussian(sigma=1.0), "alpha": 0.1}.
    score : by the measure of the search; NaN where it could not be evaluated.
    standard_error : of the score, where folds say something about it; NaN otherwise.
    rows : that the score is of; 0 where all of them were used.
    folds : over which the score is a mean; 0 without folds.
    name : in words, where the candidate has a name of its own, such as "Matern 3/2".
    seconds : spent, for information: no choice depends on them.

    >>> print(Trial({"alpha": 0.1}, 0.25, standard_error=0.01))
    alpha=0.1: 0.25 ± 0.01
    """

    parameters: Mapping[str, Any]
    score: float
    standard_error: float = NAN
    rows: int = 0
    folds: int = 0
    name: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def label(self) -> str:
        """Its name, or its parameters in words."""
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
        """The record in which the first of the best is chosen."""
        every = tuple(trials)
        return cls(measure, every, measure.best([trial.score for trial in every]))

    @property
    def best(self) -> Trial:
        """The chosen one."""
        return self.trials[self.chosen]

    def ranked(self) -> list[Trial]:
        """Best first; those without a score last."""
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


def described(parameters: Mapping[str, Any]) -> str:
    """Parameters in words, numbers to four digits; the kernel without its name.

    >>> described({"kernel": "Gaussian(1.23456)", "C": 10.0})
    'Gaussian(1.235), C=10'
    """
    words = []
    for name, value in parameters.items():
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        text = f"{value:.4g}" if number else brief(value)
        words.append(text if name == "kernel" else f"{name}={text}")
    return ", ".join(words)


def brief(kernel: Any) -> str:
    """An expression with its numbers to four digits."""
    text = kernel if isinstance(kernel, str) else repr(kernel)
    return re.sub(r"\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+", lambda number: f"{float(number[0]):.4g}", text)
