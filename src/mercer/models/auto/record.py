"""The record of an automatic model: every decision, its reason, and the trials that were compared."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mercer.tuning.trials import Measure, Trial, Trials

Question = Literal["Target", "Columns", "Kernel", "Loss", "Loss of many rows", "Solver"]
"""The subjects of decisions."""


@dataclass(frozen=True)
class Decision:
    """One decision: the question, the alternative that was taken and why, and the trials that were compared, if any.

    `advice` says how to decide differently, in Python.
    """

    question: Question
    taken: str
    why: str
    considered: Trials | None = None
    seconds: float = 0.0
    advice: str = ""

    def __str__(self) -> str:
        lines = [f"{self.question}: {self.taken}", f"    {self.why}"]
        if self.advice:
            lines.append(f"    {self.advice}")
        if self.considered is not None:
            lines.append(f"    {self.considered.measure.name}:")
            width = max(len(trial.label) for trial in self.considered)
            lines += [f"      {t.label.ljust(width)}  {t.score:<9.4g} {t.note}".rstrip() for t in self.considered]
        return "\n".join(lines)


@dataclass(frozen=True)
class Choices:
    """The decisions of an automatic model in their order; printed, they explain it.

    >>> from mercer.models.auto.record import Choices, Decision
    >>> print(Choices((Decision("Loss", "squared", "the targets are ordinary numbers"),)))
    1. Loss: squared
        the targets are ordinary numbers
    """

    decisions: tuple[Decision, ...] = ()

    @property
    def leaderboard(self) -> tuple[Trial, ...]:
        """All kernels that were tried; empty if there was only one."""
        compared = (decision.considered for decision in self if decision.question == "Kernel")
        return next((trials.trials for trials in compared if trials is not None), ())

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        return self.decisions[index]

    def __str__(self) -> str:
        return "\n".join(f"{i}. {decision}" for i, decision in enumerate(self.decisions, 1))

    __repr__ = __str__


def compared(measure: Measure, trials: list[Trial], taken: str) -> Trials:
    """The record of trials, best first, and of the one that was taken, by its name: not always the best.

    >>> from mercer.tuning.trials import LOO_ERROR
    >>> record = compared(LOO_ERROR, [Trial({}, 0.5, name="squared"), Trial({}, 0.4, name="robust")], "squared")
    >>> record.best.name, record[0].name
    ('squared', 'robust')
    """
    ranked = Trials(measure, tuple(trials), 0).ranked()
    return Trials(measure, tuple(ranked), [trial.name for trial in ranked].index(taken))


@dataclass
class Record:
    """The decisions of a search that is still running."""

    decisions: list[Decision] = field(default_factory=list)

    def add(
        self, question: Question, taken: str, why: str, considered: Trials | None = None, began: float | None = None,
        advice: str = "",
    ) -> None:  # fmt: skip
        seconds = 0.0 if began is None else time.perf_counter() - began
        self.decisions.append(Decision(question, taken, why, considered, seconds, advice))

    def done(self) -> Choices:
        return Choices(tuple(self.decisions))
