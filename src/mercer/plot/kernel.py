"""The shape of a kernel: its value by distance, over the plane, and functions drawn from its prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.plot.looks import Display, Palette, beside, canvas, caption, legend, numbers
from mercer.validation import check_whole_number, generator
from mercer.words import brief

Matrix = NDArray[np.float64]

FADED = 0.02
"""The plot ends at the distance beyond which a kernel stays below this share of k(x, x),"""
HALVES = 8.0
"""or at this many times the distance at which it falls to a half, if that is nearer."""
COLUMNS = 12
"""The largest number of columns that is tried to find out how many a kernel needs."""


@dataclass(eq=False, repr=False)
class KernelShape(Display):
    """A kernel on vectors: by distance, over two columns, or through functions whose covariance it is.

    Attributes
    ----------
    kind : str
        "distance", "map" or "samples".
    x, y : array, array or None
        The grid, shape (r,); y only for maps, else None.
    values : array
        k at a distance, one row per kernel, shape (kernels, r); k(·, at) on the grid, shape (r, r); or functions, shape
        (samples, r).
    spread : array or None
        √k(x, x) on the grid, for samples; else None.
    at : array
        The point z of a map or of distances.
    labels : list of str
        The labels of the kernels.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> shape = mc.plot.KernelShape.from_kernel(mc.Gaussian(1.0))
    >>> shape.kind, float(shape.values[0, 0])
    ('distance', 1.0)
    >>> mc.plot.KernelShape.from_kernel(mc.Polynomial(2, c=1.0)).kind
    'map'
    >>> matplotlib.pyplot.close("all")
    """

    kind: str
    x: Matrix
    y: Matrix | None
    values: Matrix
    spread: Matrix | None
    at: Matrix
    labels: list[str]

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        *,
        kind: str = "auto",
        at: Any = None,
        reach: float | None = None,
        samples: int = 5,
        resolution: int | None = None,
        random_state: int | None = 0,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Evaluate a kernel on vectors, and draw it.

        Parameters
        ----------
        kernel : Kernel
            A kernel or weight on vectors; for "distance" also several.
        kind : str
            "distance" for k along the first column by the distance to z; "map" for k(x, z) over the first two columns;
            "samples" for functions of one column whose covariance it is. "auto" chooses distances for stationary
            kernels and a map for others.
        at
            z, a vector. By default 0, and (1, ½) for maps of kernels that are not stationary; further columns that a
            kernel needs are 0.
        reach : float or None
            The extent of the plot; by default the distance at which the kernel has faded.
        samples : int
            The number of functions.
        resolution : int or None
            Grid points along an axis; by default 300, for maps 150.
        random_state : int or None
            Seed of the functions.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        several = list(kernel) if isinstance(kernel, Sequence) else [kernel]
        for one in several:
            _require_vectors(one)
        still = all(one.tags.stationary for one in several)
        if kind == "auto":
            kind = "distance" if still else "map"
        if kind not in ("distance", "map", "samples") or not several:
            raise InvalidInput(
                "`kind` must be 'auto', 'distance', 'map' or 'samples'", got=repr(kind), advice="Choose one of them."
            )
        if len(several) > 1 and kind != "distance":
            raise InvalidInput(
                "Several kernels need kind='distance'",
                got=f"{len(several)} kernels, kind={kind!r}",
                advice="Draw each kernel in a plot of its own.",
            )
        z = _origin(several[0], at, 2 if kind == "map" else 1, still)
        if reach is not None and not 0 < float(numbers(reach, "`reach`")) < np.inf:
            raise InvalidInput("`reach` must be > 0", got=repr(reach), advice="Pass a distance, or omit `reach`.")
        far = float(reach) if reach is not None else float(np.median([_faded(one, z) for one in several]))
        labels = [brief(one) for one in several]
        r = resolution or (150 if kind == "map" else 300)
        if kind == "distance":
            x = np.linspace(0.0, far, r)
            values = np.stack([_along(one, z, x) for one in several])
            return cls(kind, x, None, values, None, z, labels).plot(ax, **style)
        x = np.linspace(-far, far, r)
        if kind == "map":
            grid = np.tile(z, (r * r, 1))
            grid[:, 0], grid[:, 1] = z[0] * still + np.tile(x, r), z[1] * still + np.repeat(x, r)
            values = np.asarray(several[0](grid, z[None]), dtype=np.float64).reshape(r, r)
            return cls(kind, x + z[0] * still, x + z[1] * still, values, None, z, labels).plot(ax, **style)
        line = np.tile(z, (r, 1))
        line[:, 0] += x
        functions, spread = _drawn(several[0], line, samples, random_state)
        return cls(kind, line[:, 0], None, functions, spread, z, labels).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        flat = self.kind == "map"
        with canvas(ax, (6.0, 5.0 if flat else 3.8), square=flat) as (ax, palette):
            {"distance": self._by_distance, "map": self._over_plane, "samples": self._functions}[self.kind](ax, palette)
            alone = caption(self.labels[0], 58) if len(self.labels) == 1 else ""
            ax.set_title(alone if title is None else title)
        return self._drawn(ax)

    def _by_distance(self, ax: Any, palette: Palette) -> None:
        for i, (label, row) in enumerate(zip(self.labels, self.values)):
            ax.plot(self.x, row, color=palette.series[i % len(palette.series)], label=caption(label, 40))
        low, high = min(float(self.values.min()), 0.0), max(float(self.values.max()), 0.0)
        if low < 0:
            ax.axhline(0.0, color=palette.grey, lw=1)
        room = 0.06 * (high - low or 1.0)
        ax.set(xlim=(0, self.x[-1]), ylim=(low - (room if low < 0 else 0), high + room))
        ax.set(xlabel="distance between x and z", ylabel="k(x, z)")
        if len(self.labels) > 1:
            legend(ax)

    def _over_plane(self, ax: Any, palette: Palette) -> None:
        top = float(np.abs(self.values).max()) or 1.0
        signed = self.values.min() < -1e-9 * top
        # Cut the colours of a kernel that grows without bound, or only one corner would be coloured; keep k(z, z).
        row, col = np.abs(self._up - self.at[1]).argmin(), np.abs(self.x - self.at[0]).argmin()
        cut = max(float(np.percentile(np.abs(self.values), 98)), float(abs(self.values[row, col])), 1e-12 * top)
        picture = ax.imshow(
            self.values, origin="lower", extent=(self.x[0], self.x[-1], self._up[0], self._up[-1]), aspect="equal",
            cmap=palette.signs() if signed else palette.amounts(), vmin=-cut if signed else 0.0, vmax=cut,
            interpolation="bilinear",
        )  # fmt: skip
        levels = np.linspace(-cut, cut, 9) if signed else np.linspace(0.0, cut, 6)[1:-1]
        ax.contour(self.x, self._up, self.values, levels=levels, colors=palette.grey, linewidths=0.6)
        beside(ax, picture, "k(x, z)")
        z = f"({self.at[0]:.3g}, {self.at[1]:.3g})"
        ax.plot(
            *self.at[:2], "*", color=palette.gold, ms=14, mec=palette.ink, mew=0.8, ls="", label=f"z = {z}", zorder=4
        )
        ax.set(xlabel="x₁", ylabel="x₂", xlim=(self.x[0], self.x[-1]), ylim=(self._up[0], self._up[-1]))
        legend(ax, loc="upper left")

    def _functions(self, ax: Any, palette: Palette) -> None:
        if self.spread is not None:
            ends = 2 * self.spread
            ax.fill_between(self.x, -ends, ends, color=palette.grey, alpha=0.2, lw=0, label="± 2 standard deviations")
        for i, row in enumerate(self.values):
            ax.plot(self.x, row, color=palette.series[i % len(palette.series)], lw=1.4)
        ax.set(xlabel="x", ylabel="f(x)", xlim=(self.x[0], self.x[-1]))
        legend(ax, loc="upper right")

    @property
    def _up(self) -> Matrix:
        return self.x if self.y is None else self.y


def _require_vectors(kernel: Any) -> None:
    if not isinstance(kernel, Similarity):
        raise InvalidInput(
            "`kernel` must be a kernel or a smoothing weight",
            got=getattr(kernel, "__name__", type(kernel).__name__),
            advice="Pass an instance such as mc.Gaussian(1.0).",
        )


def _origin(kernel: Any, at: Any, fewest: int, still: bool) -> Matrix:
    """z with as many columns as the kernel needs."""
    if at is not None:
        z = np.atleast_1d(numbers(at, "`at`"))
        if z.ndim != 1 or len(z) < fewest or not np.isfinite(z).all():
            raise InvalidInput(
                f"`at` must be a vector of at least {fewest} finite numbers",
                got=repr(at),
                advice="Pass a vector such as (1.0, 0.5).",
            )
        return z
    first: Exception | None = None
    for d in range(fewest, COLUMNS + 1):
        z = np.zeros(d)
        if fewest == 2 and not still:
            z[:2] = 1.0, 0.5
        try:
            kernel(z[None])
        except Exception as error:  # a kernel may raise anything for points of a wrong size
            first = first or error
        else:
            return z
    raise InvalidInput(
        "`kernel` must be a kernel on vectors",
        got=f"{caption(brief(kernel), 60)}, which reports: {str(first).rstrip('.')}",
        advice="Draw GramHeatMap.from_kernel(kernel, X) for other objects; pass `at` if it needs many columns.",
    )


def _along(kernel: Similarity, z: Matrix, distances: Matrix) -> Matrix:
    """k at these distances from z along the first column."""
    line = np.tile(z, (len(distances), 1))
    line[:, 0] += distances
    return np.asarray(kernel(line, z[None]), dtype=np.float64)[:, 0]


def _faded(kernel: Similarity, z: Matrix) -> float:
    """The distance at which a kernel is close to zero; three periods if it is periodic; else 3."""
    units = [(leaf, name) for leaf in kernel.leaves for name, unit in leaf.units.items() if unit == "period"]
    periods = [float(getattr(leaf, name)) for leaf, name in units]
    if periods:
        return 3.0 * max(periods)
    if not kernel.tags.stationary:
        return 3.0
    r = np.geomspace(1e-4, 1e4, 600)
    size = np.abs(_along(kernel, z, np.concatenate([[0.0], r])))
    if not size[0] > 0 or not size[-1] <= FADED * size[0]:
        return 3.0
    end = r[np.flatnonzero(size[1:] > FADED * size[0])[-1]] if (size[1:] > FADED * size[0]).any() else r[0]
    half = r[np.argmax(size[1:] <= 0.5 * size[0])]
    return float(f"{min(1.1 * end, HALVES * half):.2g}")


def _drawn(kernel: Any, line: Matrix, samples: int, random_state: int | None) -> tuple[Matrix, Matrix]:
    """Functions of the Gaussian process with this covariance, and its standard deviation."""
    check_whole_number(samples, "samples", such_as=5)
    K = np.asarray(kernel(line), dtype=np.float64)
    values, vectors = np.linalg.eigh(K)
    if values[0] < -1e-8 * max(values[-1], 0.0) - 1e-300:
        raise InvalidInput(
            "kind='samples' needs a positive semidefinite kernel, which is a covariance",
            got=f"{caption(brief(kernel), 60)} with an eigenvalue {values[0]:.3g}",
            advice="Draw kind='distance' instead.",
        )
    noise = generator(random_state).normal(size=(samples, len(values)))
    return (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, np.sqrt(np.maximum(np.diag(K), 0.0))
