"""Rows of a source drawn at random in one pass, and all of its rows as points of which only such a sample is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.batches import Batches, joined
from mercer.data.columns import as_array
from mercer.data.frames import is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput

EMPTY = "Check the source; a function must start anew at every call, not continue an iterator."


class Drawn(NamedTuple):
    """Rows drawn at random.

    Attributes
    ----------
    X
        The rows, in random order.
    at
        Their positions in the source.
    y
        The targets of all rows of the source, or None.
    """

    X: Any
    at: NDArray[np.int64]
    y: Array | None


def drawn(
    batches: Batches, count: int, rng: np.random.Generator, also: Callable[[int, Any, Array | None], Any] | None = None
) -> Drawn:
    """Rows drawn at random without replacement, in one pass.

    Every row gets a random key, and the smallest keys win: the sample does not depend on the sizes of the batches.

    Parameters
    ----------
    batches
        The rows.
    count
        How many to draw.
    rng
        The source of the keys.
    also
        Called with the position of each batch, its rows and their targets; returns positions within the batch of rows
        that are drawn in any case, beside the others.

    Examples
    --------
    >>> drawn(Batches(np.arange(100.0)[:, None]), 3, np.random.default_rng(0), lambda start, X, y: [7]).at
    array([ 7, ...])
    """
    if also is None and hasattr(batches, "drawn"):  # rows on a cluster are drawn there, by the same keys
        found: Drawn = batches.drawn(count, rng)
        return found
    kept: Any = None
    keys, index = np.empty(0), np.empty(0, dtype=np.int64)
    targets: list[Array] = []
    start = 0
    for X, y in batches:
        key = rng.random(len(X))
        certain = np.asarray([] if also is None else also(start, X, y), dtype=np.int64)
        key[certain] = -1.0
        count += len(certain)
        # Only rows that may win are copied: a batch is much larger than its share of the sample.
        new = np.arange(len(X)) if len(keys) < count else np.flatnonzero(key <= keys[-1])
        if len(new):
            kept = frames.rows(X, new) if kept is None else joined(kept, frames.rows(X, new))
            keys, index = np.append(keys, key[new]), np.append(index, start + new)
            best = np.argsort(keys, kind="stable")[:count]
            kept, keys, index = frames.rows(kept, best), keys[best], index[best]
        start += len(X)
        if y is not None:
            targets.append(np.array(y))  # a copy: a function may use its array again for the next batch
    if kept is None:
        raise InvalidInput("A source of rows must have rows", got="none", advice=EMPTY)
    return Drawn(kept, index, np.concatenate(targets) if targets else None)


class Witnesses:
    """Rows that a sample must hold to show what all rows are like: missing values in a column, and every class.

    Parameters
    ----------
    classes
        Whether the targets are labels, of each of which the sample must hold two rows.

    Examples
    --------
    >>> import pandas as pd
    >>> Witnesses()(0, pd.DataFrame({"a": [1.0, None, None], "b": ["x", "z", "x"]}), None)
    [1]
    >>> Witnesses(classes=True)(0, np.zeros((5, 1)), np.array(["a", "b", "a", "a", "b"]))
    [0, 1, 2, 4]
    """

    def __init__(self, *, classes: bool = False) -> None:
        self.incomplete: set[int] = set()
        self.seen: dict[Any, int] | None = {} if classes else None

    def __call__(self, start: int, X: Any, y: Array | None) -> list[int]:
        """The positions of such rows in a batch."""
        found: set[int] = set()
        for j, column in enumerate(frames.columns(X)) if is_frame(X) else ():
            if j in self.incomplete or _surely_complete(column):
                continue
            missing = missing_entries(as_array(column, str(j)))
            if missing.any():
                self.incomplete.add(j)
                found.add(int(missing.argmax()))
        if self.seen is not None and y is not None:
            for label in np.unique(y).tolist():
                rows = np.flatnonzero(y == label)[: 2 - self.seen.get(label, 0)]
                self.seen[label] = self.seen.get(label, 0) + len(rows)
                found |= set(rows.tolist())
        return sorted(found)


def _surely_complete(column: Any) -> bool:
    """Whether the library of a column knows without a search that no value is missing; NaN is missing, too."""
    floats = str(getattr(column, "dtype", "float")).lower().startswith("float")
    return not floats and hasattr(column, "null_count") and column.null_count() == 0


class StreamedPoints(Points):
    """All rows of a source as points, of which only a sample is held.

    Parameters
    ----------
    batches
        The rows.
    sample
        Some of them, in random order.

    Examples
    --------
    >>> batches = Batches(np.arange(50.0)[:, None])
    >>> points = StreamedPoints(batches, drawn(batches, 5, np.random.default_rng(0)))
    >>> points.n, points.sample.n
    (50, 5)
    """

    def __init__(self, batches: Batches | None, sample: Drawn, n: int | None = None) -> None:
        super().__init__(sample.X)
        self._source, self._drawn, self.sample = batches, sample, Points(sample.X)
        self.n = self.batches.n if n is None else n

    @property
    def batches(self) -> Batches:
        """The rows; a pickled model does not hold them."""
        if self._source is None:
            raise InvalidInput(
                "A pickled model does not hold the source of the rows that it was fitted to in batches",
                got="a request that reads these rows again",
                advice="Ask the model that was fitted, with queries in memory, or fit again.",
            )
        return self._source

    @property
    def at(self) -> NDArray[np.int64]:
        """The positions of the sample."""
        return self._drawn.at

    @property
    def targets(self) -> Array | None:
        """The targets of all rows, if the source has them."""
        return self._drawn.y

    def mapped(self, change: Callable[[Any], Any]) -> StreamedPoints:
        """The same rows, changed by a function that treats every row by itself."""
        return StreamedPoints(self.batches.mapped(change), self._drawn._replace(X=change(self._drawn.X)), self.n)

    def narrower(self, d: int) -> float:
        """The width that suits all rows in units of the one that suits the sample, in d columns: (s/n)^(1/(d+4)).

        >>> batches = Batches(np.arange(32000.0)[:, None])
        >>> round(StreamedPoints(batches, drawn(batches, 1000, np.random.default_rng(0))).narrower(1), 6)
        0.5
        """
        return float((self.sample.n / self.n) ** (1.0 / (d + 4)))

    def take(self, index: Any) -> Points:
        raise InvalidInput(
            "Rows in batches are used all, with weights > 0",
            got="a request for some of them",
            advice="Leave the others out of the source, or load the rows as an array.",
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"batches": None, "sample": self._drawn._replace(y=None), "n": self.n}
