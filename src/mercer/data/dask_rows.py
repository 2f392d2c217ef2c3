"""Rows on a Dask cluster, as one more source of rows in batches, in pieces of even size whatever their chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from functools import partial, reduce
from itertools import groupby, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.batches import Batches, joined
from mercer.data.cluster import SHARE, Array, Cluster, is_frame_of_dask, listed, require_rows, row_blocks, whole_rows
from mercer.data.digests import Keys, digest_at
from mercer.data.frames import is_frame
from mercer.data.frames import rows as rows_of
from mercer.data.sampling import Drawn
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.words import show_bytes

Index = NDArray[np.int64]
Keyed = tuple[Array, Index, Any]
PER_THREAD = 2
"""Pieces for each thread of the cluster: a slow one may give work away. Every piece costs some milliseconds a pass."""
FEWEST_ROWS, MOST_PIECES, MOST_NUMBERS = 4096, 5000, 2**24
"""Smaller pieces cost more to schedule than to compute; more pieces make graphs of more than 10 MB; larger pieces (128
MB) take long to move to another worker."""


class DaskRows(Batches):
    """The rows of a Dask array or data frame, on the workers of a cluster.

    Every model that takes `Batches` takes them, and Dask's collections themselves, too: sums over rows then run on the
    workers, and only sums come back.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows of numbers, in any chunks: chunks of columns are joined, empty ones are left out, small ones are taken
        together, large ones are cut, and unknown sizes are counted first.
    client : distributed.Client or None
        By default the active client, or Dask's threaded scheduler if there is none.

    Attributes
    ----------
    names : list of str or None
        The names of the columns of a frame.
    spans : list of slice
        The rows of every piece.

    Examples
    --------
    >>> import dask.array as da, mercer as mc
    >>> X = da.from_array(np.linspace(0.0, 6.0, 500)[:, None], chunks=(90, 1))
    >>> rows = mc.DaskRows(X)
    >>> rows.n, rows.spans
    (500, [slice(0, 500, None)])
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.01, n_centers=20).fit(rows, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]]) - np.sin(1.5)) < 0.01)
    True
    """

    def __init__(self, X: Any, client: Any = None) -> None:
        require_rows(X)
        frame = is_frame_of_dask(X)
        self.cluster, self.tables = Cluster(client), False
        self.names = [str(name) for name in X.columns] if frame else None
        self._width = width = len(X.columns) if frame else int(X.shape[1])
        if width == 0:
            raise InvalidInput("Rows must have columns", got="none", advice="Check how X was selected.")
        others = [name for name, kind in zip(X.columns, X.dtypes) if not _numeric(kind)] if frame else []
        if others:
            raise InvalidInput(
                "The columns of a frame of Dask must be numbers",
                got=f"{others[0]!r} of type {X.dtypes[others[0]]}",
                advice="Encode it as numbers, or leave it out of the frame.",
            )
        blocks = row_blocks(X)
        lengths = self._lengths(X, blocks)
        self._n = int(sum(lengths))
        if self._n == 0:
            raise InvalidInput("Rows of Dask must have rows", got="none", advice="Check how X was selected.")
        largest, room = max(lengths) * width * 8, SHARE * self.cluster.memory()[1]
        if largest > room:
            raise InvalidInput(
                f"A partition must fit {SHARE:.0%} of a worker's memory per thread, {show_bytes(int(room))}",
                got=f"one of {max(lengths):,} rows, {show_bytes(largest)}",
                advice="Make smaller ones, X.rechunk or frame.repartition, or give workers more memory.",
            )
        rows = piece_rows(self._n, width, self.cluster.threads, room)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        self._parts: dict[int, tuple[list[slice], list[Any]]] = {}  # by the first row of a piece
        cuts = []
        for parts in pieces_of(lengths, rows):
            first, sizes = int(starts[parts[0][0]]) + parts[0][1].start, [part.stop - part.start for _, part in parts]
            cuts.append((first, first + sum(sizes)))
            self._parts[first] = [part for _, part in parts], [blocks[block] for block, _ in parts]
        self._start(cuts)

    def _start(self, cuts: list[tuple[int, int]]) -> None:
        """All rows of the source, in these pieces, from which `without` and its like derive others."""
        self._whole = cuts
        self._gone: Index = np.empty(0, dtype=np.int64)
        self._steps: tuple[Callable[[Any], Any], ...] = ()
        self._of_targets: tuple[Callable[[Array], Array], ...] = ()
        self._report: Callable[[int], Any] | None = None
        self._place()

    def _place(self) -> None:
        """The pieces that are left without some rows, none of them empty, which are made at their first use."""
        starts = [[int(at - gone) for at, gone in zip(cut, np.searchsorted(self._gone, cut))] for cut in self._whole]
        left = [(cut, slice(*span)) for cut, span in zip(self._whole, starts) if span[1] > span[0]]
        self._cuts, self.spans = [cut for cut, _ in left], [span for _, span in left]
        self._made: tuple[int, list[Any]] | None = None

    @property
    def pieces(self) -> list[Any]:
        """The tasks that read the rows of each span; on workers with enough memory the rows stay there."""
        if self._made is None or self._made[0] != self.cluster.releases:
            made = [self._changed_piece(start, stop) for start, stop in self._cuts]
            fits = self.n * self.width * 8 <= SHARE * self.cluster.memory()[0]
            self._made = self.cluster.releases, self.cluster.kept(made) if fits else made
        return self._made[1]

    def _changed_piece(self, start: int, stop: int) -> Any:
        piece, gone = self._piece(start, stop), self._gone[slice(*np.searchsorted(self._gone, [start, stop]))] - start
        return self.cluster.task(_changed, piece, gone, self._steps) if len(gone) or self._steps else piece

    def _piece(self, start: int, stop: int) -> Any:
        """The task that reads these rows of the source."""
        cuts, blocks = self._parts[start]
        return self.cluster.task(_checked_rows, start, cuts, *blocks)

    def __enter__(self) -> Self:
        self.cluster.keeping = True
        return self

    def __exit__(self, *error: object) -> None:
        self.cluster.release()  # what is asked later, such as leave-one-out, reads the rows again

    def __iter__(self) -> Iterator[tuple[Any, Array | None]]:
        for piece in list(self.pieces):
            yield self.cluster.result(piece), None

    @property
    def width(self) -> int:
        """The number of columns of the source."""
        return self._width

    # -- other rows ---------------------------------------------------------------------------------------------------

    def as_tables(self) -> Self:
        return self._derived(super().as_tables())

    def without(self, positions: Any) -> Self:
        there = np.delete(np.arange(self._whole[-1][1]), self._gone)  # the positions of these rows in the source
        gone = np.union1d(self._gone, there[np.asarray(positions, dtype=np.int64)])
        return self._derived(super().without(positions), _gone=gone)

    def mapped(self, change: Callable[[Any], Any], targets: Callable[[Array], Array] | None = None) -> Self:
        of_targets = self._of_targets if targets is None else (*self._of_targets, targets)
        return self._derived(super().mapped(change, targets), _steps=(*self._steps, change), _of_targets=of_targets)

    def watched(self, report: Callable[[int], Any]) -> Self:
        """The same rows; `report` is called with the number of all rows after every sum over them."""
        return self._derived(copy(self), _report=report)

    def _derived(self, other: Any, **changes: Any) -> Self:
        for name, value in changes.items():
            setattr(other, name, value)
        other._place()
        derived: Self = other
        return derived

    def targets(self) -> Array | None:
        """The targets of all rows, if the source has them."""
        y = self._all_targets()
        return None if y is None else reduce(lambda y, change: change(y), self._of_targets, np.delete(y, self._gone))

    def _all_targets(self) -> Array | None:
        """Those of the source, read in this process."""
        return None

    def _lengths(self, X: Any, blocks: list[Any]) -> list[int]:
        """The number of rows of every block; those that are not known are counted."""
        if not is_frame_of_dask(X) and not np.isnan(whole_rows(X).chunks[0]).any():
            return [int(length) for length in whole_rows(X).chunks[0]]
        counts = [self.cluster.task(len, block) for block in blocks]
        return list(self.cluster.result(self.cluster.task(listed, *counts)))

    # -- work on the rows ---------------------------------------------------------------------------------------------

    def sum(
        self,
        work: Callable[..., Any],
        shared: list[Any],
        arrays: tuple[Array | None, ...] = (),
        merge: Callable[..., Any] | None = None,
    ) -> Any:
        """Σ work(*shared, rows, *slices of the arrays) over all pieces, added up as a tree on the workers.

        Results that are no arrays are added up by `merge`.
        """
        return self._passed(self.cluster.tree(self._calls(work, shared, arrays), merge or _added))

    def map(self, work: Callable[..., Any], shared: list[Any], arrays: tuple[Array | None, ...] = ()) -> list[Any]:
        """work(*shared, rows, *slices of the arrays) of every piece, in their order, here."""
        return list(self._passed(self.cluster.task(listed, *self._calls(work, shared, arrays))))

    def _passed(self, task: Any) -> Any:
        """The value of a task that uses all rows."""
        result = self.cluster.result(task)
        if self._report is not None:
            self._report(self.n)
        return result

    def _calls(self, work: Callable[..., Any], shared: list[Any], arrays: tuple[Array | None, ...]) -> list[Any]:
        slices = [[None] * len(self.spans) if A is None else self.cluster.sent(A, self.spans) for A in arrays]
        return [
            self.cluster.task(work, *shared, piece, *[parts[i] for parts in slices])
            for i, piece in enumerate(self.pieces)
        ]

    def taken(self, index: Index) -> Any:
        """The rows at these ascending positions, here."""
        ends = np.searchsorted(index, [span.stop for span in self.spans])
        calls, start = [], 0
        for span, piece, stop in zip(self.spans, self.pieces, ends):
            if stop > start:
                calls.append((piece, index[start:stop] - span.start))
            start = int(stop)
        parts = [self.cluster.task(_rows, *call) for call in calls]
        return reduce(joined, self.cluster.result(self.cluster.task(listed, *parts)))

    def at(self, positions: Any) -> tuple[Any, Array | None]:
        index, y = np.unique(np.asarray(positions, dtype=np.int64)), self.targets()
        return self.taken(index), None if y is None else y[index]

    def digest(self) -> Keys | None:
        """A digest of all rows in their order, the same for all chunks; computed on the workers."""
        parts = [self.cluster.task(digest_at, piece, span.start) for span, piece in zip(self.spans, self.pieces)]
        digest: Keys | None = self.cluster.result(self.cluster.tree(parts, _added_digests))
        return digest

    def drawn(self, count: int, rng: np.random.Generator) -> Drawn:
        """Rows drawn at random without replacement, in random order, their positions, and all targets of a file.

        Every row gets the random key that `batches.sampled` gives it, and the smallest keys win: the sample is the same
        for an array, a file and any chunks.
        """
        bits: Any = rng.bit_generator
        if not hasattr(bits, "advance"):
            bits = np.random.PCG64(int(rng.integers(2**63)))
        parts = [
            self.cluster.task(_keyed, piece, span.start, count, deepcopy(bits))
            for span, piece in zip(self.spans, self.pieces)
        ]
        _, at, X = self.cluster.result(self.cluster.tree(parts, partial(_smallest, count)))
        bits.advance(self.n)
        return Drawn(X, at, self.targets())


def piece_rows(n: int, width: int, threads: int, limit: float) -> int:
    """Rows of a piece: some pieces per thread, as many for each, not too small, within the memory of a task.

    >>> piece_rows(10**6, 20, 8, 1e9), piece_rows(10**9, 100, 1000, 1e9), piece_rows(100, 20, 8, 1e9)
    (62500, 200000, 100)
    """
    rows = min(max(-(-n // (PER_THREAD * threads)), FEWEST_ROWS), max(1, MOST_NUMBERS // width))
    rows = int(max(1, min(max(rows, -(-n // MOST_PIECES)), limit // (8 * width))))
    count = -(-n // rows)
    whole = -(-count // threads) * threads
    return -(-n // (whole if threads < count and whole <= MOST_PIECES else count))


def pieces_of(lengths: list[int], rows: int) -> list[list[tuple[int, slice]]]:
    """Blocks in even pieces of a limited number of rows: large blocks are cut, small neighbours are taken together.

    >>> pieces_of([4, 0, 3, 10], 8)
    [[(0, slice(0, 4, None)), (2, slice(0, 3, None))], [(3, slice(0, 5, None))], [(3, slice(5, 10, None))]]
    >>> [len(piece) for piece in pieces_of([2] * 6, 9)]
    [3, 3]
    """
    pieces: list[list[tuple[int, slice]]] = []
    filled = [(block, length) for block, length in enumerate(lengths) if length]
    for large, run in groupby(filled, lambda pair: pair[1] > rows):
        if large:
            for block, length in run:
                ends = np.linspace(0, length, -(-length // rows) + 1).astype(int).tolist()
                pieces += [[(block, slice(a, b))] for a, b in pairwise(ends)]
        else:
            small = list(run)
            count = len(_together(small, rows, np.inf))
            pieces += _together(small, rows, sum(length for _, length in small) / count)
    return pieces


def _together(blocks: list[tuple[int, int]], rows: int, share: float) -> list[list[tuple[int, slice]]]:
    """Neighbours in pieces of about `share` rows, at most `rows`."""
    pieces: list[list[tuple[int, slice]]] = []
    room = end = 0
    for block, length in blocks:
        if length > room or end + length / 2 > share * len(pieces):
            pieces.append([])
            room = rows
        pieces[-1].append((block, slice(0, length)))
        room -= length
        end += length
    return pieces


# -- what runs on workers ----------------------------------------------------------------------------------------------


def _checked_rows(start: int, cuts: list[slice], *blocks: Any) -> Array:
    """Checked rows of numbers from the cuts of some blocks."""
    try:
        parts = [as_vectors(block.iloc[cut] if is_frame(block) else block[cut]) for cut, block in zip(cuts, blocks)]
    except InvalidInput as error:
        raise InvalidInput(
            f"The rows from {start:,} on must be complete rows of numbers",
            got=error.got,
            advice="Correct the source, or leave such rows out of it.",
        ) from None
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _changed(X: Any, gone: Index, steps: tuple[Callable[[Any], Any], ...]) -> Any:
    """The rows of a piece without some of them, changed by functions one after the other."""
    if len(gone):
        X = rows_of(X, np.setdiff1d(np.arange(len(X)), gone))
    for step in steps:
        X = step(X)
    return X


def _keyed(X: Any, start: int, count: int, bits: Any) -> Keyed:
    """The rows of a piece with the smallest random keys: the keys, positions and rows."""
    keys = np.random.Generator(deepcopy(bits).advance(start)).random(len(X))
    best = np.argsort(keys, kind="stable")[:count]
    return keys[best], start + best, rows_of(X, best)


def _smallest(count: int, *parts: Keyed) -> Keyed:
    """Of several pieces."""
    keys, at = (np.concatenate(values) for values in list(zip(*parts))[:2])
    best = np.argsort(keys, kind="stable")[:count]
    return keys[best], at[best], rows_of(reduce(joined, [X for _, _, X in parts]), best)


def _added(*parts: Array) -> Array:
    total = np.array(parts[0])
    for part in parts[1:]:
        total += part
    return total


def _added_digests(*parts: Keys | None) -> Keys | None:
    known = [part for part in parts if part is not None]
    return _added(*known) if len(known) == len(parts) else None


def _rows(X: Any, index: Index) -> Any:
    return rows_of(X, index)


def _numeric(kind: Any) -> bool:
    return getattr(kind, "kind", "O") in "iufb"
