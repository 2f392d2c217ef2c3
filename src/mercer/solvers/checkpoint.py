"""Checkpoints, as a solver sees them: a place that keeps named arrays, and returns the last ones that it kept."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class Checkpoint(Protocol):
    """The state of an iteration, kept outside of the process. A solver that continues at it ends with the same answer.

    `files.checkpoint.CheckpointFile` keeps it in a file.
    """

    def load(self) -> Arrays | None:
        """The arrays that were kept last, or None."""

    def save(self, arrays: Arrays) -> None:
        """Keep these arrays in place of the last ones, unless the last ones are recent."""

    def remove(self) -> None:
        """Forget them: the work is done."""
