"""Pairs of time series: the static values of all their pairs of points, tile by tile, and a program that combines them.

The points of many series are two matrices, so one tile of the static kernel (one matrix product) serves many pairs of
series. The second side is laid out in groups of series whose points are interleaved (`_loops/series.py`).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mercer import _loops, memory, threads
from mercer._loops.series import LANES
from mercer.data.arrays import meaning
from mercer.data.points import Array, Points
from mercer.data.series import Series, as_series
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels import costs, tiling
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.block import Block, Pair
from mercer.kernels.spaces import ANY, TABLE, VECTORS, Space, dimension

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


class SeriesSpace(Space):
    """Time series of one to six points, with as many channels as the static kernel requires."""

    __slots__ = ()
    instead = (
        "If these arrays are point clouds, pass kernel=mc.MeanEmbedding(mc.Gaussian(1.0)); if they are images, "
        "kernel=mc.Gaussian(1.0).after(mc.pixels)."
    )

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        channels = dimension(kernel, 2)
        return [rng.normal(size=(rng.integers(1, 7), channels)) for _ in range(n)]

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        channels, levels = dimension(kernel, 1), (0.0, 1.0, 2.0)
        paths = (p for n in range(1, length) for p in itertools.product(levels, repeat=n))
        return [tuple((v, *[0.0] * (channels - 1)) for v in path) for path in paths]

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        points = list(x)
        at, step = int(rng.integers(len(points))), float(rng.choice([-1.0, -0.5, 0.5, 1.0]))
        moved = tuple(v + step if c == 0 else v for c, v in enumerate(points[at]))
        match rng.integers(3):
            case 0 if len(points) > 1:
                del points[at]
            case 1:
                points.insert(at, moved)
            case _:
                points[at] = moved
        return tuple(points)

    def holds_all(self, objects: list[Any]) -> bool:
        """Arrays of floats whose order matters; those of one dimension and equal length are rows of a table."""
        return meaning(objects) == "series"

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Paths with their time, and alignments, in units of the median distance of points."""
        from mercer.features.series import add_time
        from mercer.kernels.series.alignment import GlobalAlignment
        from mercer.kernels.series.signature import Signature
        from mercer.kernels.vectors.dot import Linear
        from mercer.kernels.vectors.median import median_gaussian
        from mercer.kernels.vectors.radial import Gaussian

        series = as_series(X)
        width = float(median_gaussian(series.values).sigma)
        wide = width * float(np.sqrt(np.median(series.lengths)))  # Cuturi 2011
        straight = Signature(3, (0.5 * width) ** -2 * Linear())
        return {
            "paths": Signature(3, Gaussian(0.5 * width)).after(add_time(width)).normalize(),
            "linear paths": straight.after(add_time(width)).normalize(),
            "alignments": GlobalAlignment(Gaussian(wide)).normalize(),
        }


SERIES = SeriesSpace("series")


class Sides:
    """Two data sets of series, laid out for tiles: the points of the first one below the other, the second in groups.

    With `centred`, every series is moved to the mean of its own points, which changes no increment.
    """

    def __init__(self, x: Series, z: Series, centred: bool) -> None:
        require_same_channels(x, z)
        self.ends, self.lengths = x.ends, z.lengths
        x, z = (x.centred(), z.centred()) if centred else (x, z)
        series = [z[j] for j in range(len(z))]
        groups = [series[j : j + LANES] for j in range(0, len(series), LANES)]
        layouts = [_interleaved(group) for group in groups]
        self.widths = np.concatenate([[0], np.cumsum([len(layout) for layout in layouts])])
        self.x = Points(x.values)
        self.z = Points(np.concatenate(layouts))
        self.compiled = int(self.ends[-1]) * int(z.ends[-1]) >= costs.COMPILED_TIMES
        self._pairs = {shared: Pair(self.x, self.z, np.float64, shared=shared) for shared in (False, True)}

    def block(self, static: Similarity, rows: slice, cols: slice, space: Any) -> Block:
        """A tile of static values."""
        return self._pairs[len(static.leaves) > 1].block(rows, cols, space)

    def jobs(self, block: Block) -> list[tuple[int, int, int]]:
        """The parts of a block, (first x, last x + 1, group of z); of a diagonal one, those in its lower half."""
        most, parts = memory.CACHED if self.compiled else _loops.costs.COMPILED_ENTRIES - 1, []
        for group in range(block.cols.start // LANES, -(-block.cols.stop // LANES)):
            width = self.widths[group + 1] - self.widths[group]
            a = max(block.rows.start, group * LANES) if block.diagonal else block.rows.start
            while a < block.rows.stop:
                room = self.ends[a] + most // width
                b = int(np.searchsorted(self.ends, room, side="right")) - 1
                b = min(max(b, a + 1), block.rows.stop)
                parts.append((a, b, group))
                a = b
        return parts


def require_same_channels(x: Series, z: Series) -> None:
    """Raise if two data sets cannot be compared."""
    if x.values.shape[1] != z.values.shape[1]:
        raise InvalidInput(
            "Both data sets must have time series with the same number of channels",
            got=f"{x.values.shape[1]} and {z.values.shape[1]}",
            advice="Check that the same channels were selected for both.",
        )


def _interleaved(group: list[Array]) -> Array:
    """Point j of all series of a group, then point j + 1; short series, and the last one of a short group, repeat."""
    group = [*group, *[group[-1]] * (LANES - len(group))]
    longest = max(map(len, group))
    padded = [x[np.minimum(np.arange(longest), len(x) - 1)] for x in group]
    return np.stack(padded, axis=1).reshape(longest * LANES, -1)


class OnSeries(Similarity):
    """A similarity of time series that a dynamic program makes of static values of their points."""

    space: ClassVar[str] = SERIES
    centred: ClassVar[bool] = False
    """Whether moving a series as a whole changes nothing, so that it may be moved to the origin."""

    @property
    def encoding(self) -> Any:
        return "series"

    def encode(self, X: Any) -> Series:
        return as_series(X)

    @property
    def static_kernel(self) -> Similarity:
        """The similarity of two points in time: the field `static`."""
        kernel: Similarity = self.static  # type: ignore[attr-defined]
        return kernel

    def fill_static(self, block: Block, tile: Array) -> None:
        """The static values of a tile."""
        self.static_kernel.tile(block, tile)

    @abstractmethod
    def combine(self, tile: Array, ends: Array, lengths: Array, out: Array, sides: Sides, at: Any) -> Array | None:
        """out = the values of some series with a group, from a tile of their static values.

        Returns by how many roundings each value may be off, if `require_precise` is to judge it.
        """

    def require_precise(self, values: Array, roundings: Array, pair: Pair, rows: slice, cols: slice) -> None:
        """Raise if values of these series keep less than half of their digits."""

    def finish(self, values: Array) -> Array:
        """The last step, on the combined values."""
        return values

    def sides(self, pair: Pair) -> Sides:
        """Both data sets, laid out for tiles."""

        def make() -> Sides:
            return Sides(pair.x.encoded(self), pair.z.encoded(self), self.centred)

        return pair.once(("series", self.centred), make)

    def seen_by_parts(self, points: Points) -> Points:
        return points.once("points of series", lambda: Points(points.encoded(self).values))

    def touch(self, points: Points) -> None:
        super().touch(points)
        self.static_kernel.touch(self.seen_by_parts(points))

    def tile(self, block: Block, out: Array) -> None:
        self._fill(block, out, self.finish)

    def _fill(self, block: Block, out: Array, finish: Callable[[Array], Array]) -> None:
        sides = self.sides(block.pair)
        jobs = sides.jobs(block)
        shares = min(threads.n_threads(), len(jobs)) if sides.compiled else 1
        threads.run([partial(self._share, block, out, finish, sides, jobs[k::shares]) for k in range(shares)])
        if block.diagonal:
            tiling.symmetrise(out)

    def _share(self, block: Block, out: Array, finish: Any, sides: Sides, jobs: list[tuple[int, int, int]]) -> None:
        """The parts of a block that one thread works on."""
        space = tiling.workspace()
        mark = space.used
        lengths = np.full(len(sides.widths) * LANES, 1, np.int64)
        lengths[: len(sides.lengths)] = sides.lengths
        with _loops.tiles.part_of(costs.COMPILED_TIMES if sides.compiled else 0):
            for a, b, group in jobs:
                if threads.over():
                    return
                rows = slice(int(sides.ends[a]), int(sides.ends[b]))
                cols = slice(int(sides.widths[group]), int(sides.widths[group + 1]))
                tile = space.take((rows.stop - rows.start, cols.stop - cols.start), np.dtype(np.float64))
                static = sides.block(self.static_kernel, rows, cols, space)
                self.fill_static(static, tile)
                values = np.empty((b - a, LANES))
                first = group * LANES
                own = sides.ends[a : b + 1] - sides.ends[a]
                roundings = self.combine(tile, own, lengths[first : first + LANES], values, sides, static)
                wanted = slice(max(first, block.cols.start), min(first + LANES, block.cols.stop))
                lanes = slice(wanted.start - first, wanted.stop - first)
                if roundings is not None:
                    self.require_precise(values[:, lanes], roundings[:, lanes], block.pair, slice(a, b), wanted)
                part = finish(values[:, lanes])
                out[a - block.rows.start : b - block.rows.start,
                    wanted.start - block.cols.start : wanted.stop - block.cols.start] = part  # fmt: skip
                space.release(mark)

    def enclose(self, x: Any, z: Any) -> Interval:
        """The program in interval arithmetic, from intervals of the static values."""
        points = [[tuple(map(Fraction, row)) for row in as_series([s]).values.tolist()] for s in (x, z)]
        return self.enclose_program([[self.enclose_static(p, q) for q in points[1]] for p in points[0]])

    def enclose_static(self, p: Any, q: Any) -> Interval:
        """An interval that holds the static value of two points."""
        return self.static_kernel.enclose(p, q)

    @abstractmethod
    def enclose_program(self, s: list[list[Interval]]) -> Interval:
        """The value for the static values s, in intervals."""


def require_static(static: Any, owner: str) -> Kernel:
    """A kernel on vectors, by which the points of series are compared."""
    if isinstance(static, Kernel) and static.space in (VECTORS, TABLE, ANY):
        return static
    raise RuleBroken(
        f"`static` of {owner} must be a kernel on vectors, which compares two points in time",
        got=repr(static),
        advice=f"Pass, for example, {owner}(static=mc.Gaussian(1.0)).",
    )


def increments(s: list[list[Interval]]) -> list[list[Interval]]:
    """s(xᵢ₊₁, zⱼ₊₁) − s(xᵢ, zⱼ₊₁) − s(xᵢ₊₁, zⱼ) + s(xᵢ, zⱼ)."""
    return [
        [below[j + 1] - above[j + 1] - below[j] + above[j] for j in range(len(above) - 1)]
        for above, below in itertools.pairwise(s)
    ]
