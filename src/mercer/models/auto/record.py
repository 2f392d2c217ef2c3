"""The record of an automatic model: every decision, its reason, and the candidates that were considered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """An alternative that was considered, and the value of its criterion."""

    name: str
    value: float
    detail: str = ""


@dataclass(frozen=True)
class Decision:
    """One decision: the question, the alternative that was taken and why, and all that were considered, best first."""

    question: str
    taken: str
    why: str
    criterion: str = ""
    considered: tuple[Candidate, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"{self.question}: {self.taken}", f"    {self.why}"]
        if self.considered:
            lines.append(f"    {self.criterion}:")
            width = max(len(c.name) for c in self.considered)
            lines += [f"      {c.name.ljust(width)}  {c.value:<9.4g} {c.detail}".rstrip() for c in self.considered]
        return "\n".join(lines)


@dataclass(frozen=True)
class Choices:
    """The decisions of an automatic model in their order; printed, they explain it.

    >>> from mercer.models.auto.record import Candidate, Choices, Decision
    >>> print(Choices((Decision("Loss", "squared", "the targets are ordinary numbers"),)))
    1. Loss: squared
        the targets are ordinary numbers
    """

    decisions: tuple[Decision, ...] = ()
    leaderboard: tuple[Candidate, ...] = ()

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        return self.decisions[index]

    def __str__(self) -> str:
        return "\n".join(f"{i}. {decision}" for i, decision in enumerate(self.decisions, 1))

    __repr__ = __str__


@dataclass
class Record:
    """The decisions of a search that is still running."""

    decisions: list[Decision] = field(default_factory=list)
    leaderboard: tuple[Candidate, ...] = ()

    def add(
        self,
        question: str,
        taken: str,
        why: str,
        criterion: str = "",
        considered: Any = (),
        began: float | None = None,
    ) -> None:
        seconds = 0.0 if began is None else time.perf_counter() - began
        self.decisions.append(Decision(question, taken, why, criterion, tuple(considered), seconds))

    def done(self) -> Choices:
        return Choices(tuple(self.decisions), self.leaderboard)
