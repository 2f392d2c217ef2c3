"""Checkpoints, as a solver sees them: a place that keeps named arrays, and returns the last ones that it kept.

Fits on centres are sums over rows, one after the other, with small results. A `Journal` keeps these results: a fit that
runs again reads them instead of the rows, takes the same steps, and so ends with the same answer to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
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


class Journal:
    """The results of the passes over all rows of a fit, in their order, kept in a checkpoint.

    Parameters
    ----------
    checkpoint
        The place that keeps them.

    Examples
    --------
    >>> class Memory:
    ...     arrays = None
    ...     def load(self): return self.arrays
    ...     def save(self, arrays): self.arrays = arrays
    >>> place = Memory()
    >>> first = Journal(place).once(lambda: np.ones(2))
    >>> Journal(place).once(lambda: np.zeros(2))           # it was computed before
    array([1., 1.])
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.known: Arrays = checkpoint.load() or {}
        self.made: Arrays = {}

    @classmethod
    def of(cls, checkpoint: Checkpoint | Self | None) -> Self | None:
        """The journal of a checkpoint, or the journal itself; None without one."""
        return checkpoint if checkpoint is None or isinstance(checkpoint, cls) else cls(checkpoint)

    def once(self, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """The next result: the one that was kept, or made now and kept."""
        name = f"pass.{len(self.made)}"
        if name in self.known:
            self.made[name] = self.known[name]
        else:
            self.made[name] = np.ascontiguousarray(make())
            self.save({})
        return self.made[name]

    def load(self) -> Arrays | None:
        """The arrays that were kept beside the results, or None."""
        return {name: A for name, A in self.known.items() if not name.startswith("pass.")} or None

    def save(self, arrays: Arrays) -> None:
        """Keep all results, and these arrays."""
        self.checkpoint.save(self.made | arrays)

    def remove(self) -> None:
        """Forget everything: the work is done."""
        self.checkpoint.remove()
