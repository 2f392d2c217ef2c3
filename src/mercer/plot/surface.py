"""The decision surface of a classifier: its regions, its margin, and its support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from mercer.data.frames import as_table
from mercer.errors import InvalidInput
from mercer.plot.looks import PIXELS, Display, Palette, canvas, caption
from mercer.plot.looks import legend as draw_legend

Matrix = NDArray[np.float64]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F")
"""The palette of Okabe and Ito, which colour-blind readers can distinguish."""
BRIGHT = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#4A90C2", "#A0A0A0")
"""The same palette, reordered and changed for dark plots."""
MARKERS = "osD^vPX<>h"
"""Different markers, for prints in black and white."""
FILL = 0.16
"""The opacity of regions, low so that points stand out."""
NAMED = 16
"""The largest number of classes that a legend names."""
BORDER = 0.08
"""The border around the data on every side, as a share of its range."""


@dataclass(eq=False, repr=False)
class DecisionSurface(Display):
    """The decision surface of a classifier or novelty detector over two columns, with its support vectors.

    Regions are filled by class. For a support vector machine with two classes, the boundary f = 0 and the margin f = ±1
    are drawn. Support vectors have rings: solid ones on the margin, dotted ones if their coefficient is at its bound.

    Attributes
    ----------
    x, y : array
        The coordinates of the grid, shape (r,) each.
    leads : array
        The lead of each class over the others, shape (classes, r, r), which is positive where it is predicted.
    values : array or None
        f on the grid, shape (r, r), if there is one function; else None.
    margin : bool
        Whether f = ±1 is a margin.
    classes : array
        The labels.
    names : tuple
        The names of the two columns.
    points, labels : array or None
        The data in the two columns, shape (n, 2), and their labels; or None.
    support, bounded : array or None
        The support vectors, shape (s, 2), and which are at their bound; or None.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = mc.SVC(mc.Gaussian(1.0)).fit(X, X[:, 0] > X[:, 1] ** 2)
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> surface = mc.plot.DecisionSurface.from_estimator(model, X, X[:, 0] > X[:, 1] ** 2)
    >>> surface.values.shape, len(surface.support) == len(model.support_)
    ((250, 250), True)
    >>> matplotlib.pyplot.close("all")
    """

    x: Matrix
    y: Matrix
    leads: Matrix
    values: Matrix | None
    margin: bool
    classes: NDArray[Any]
    names: tuple[str, str]
    points: Matrix | None = None
    labels: NDArray[Any] | None = None
    support: Matrix | None = None
    bounded: NDArray[np.bool_] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        columns: Sequence[Any] | None = None,
        at: Any = None,
        resolution: int = 250,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Evaluate a fitted model on a grid around the data, and draw it.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier or outlier detector on vectors: Mercer's, any of scikit-learn's, a pipeline, a grid
            search.
        X : array, frame or list of objects
            The points to show, with at least two columns; a frame gives the axes their names. (The support vectors of a
            pipeline are rows of X, which must be its training rows.)
        y : array
            Their labels, all of them known to the estimator, or None.
        columns
            The two columns to show, by name or position (a whole number is a name if the frame has such names). By
            default the first two.
        at
            A value for every column, at which the other columns are fixed. By default the medians.
        resolution : int
            Grid points along each axis.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        check_is_fitted(estimator)
        if not (is_classifier(estimator) or is_outlier_detector(estimator)):
            raise InvalidInput(
                "A decision surface needs a classifier or an outlier detector",
                got=type(estimator).__name__,
                advice="Draw RegressionBands for a regressor.",
            )
        data, every = _numbers(X)
        two = [0, 1] if columns is None else _chosen(columns, every)
        classes = np.asarray(getattr(estimator, "classes_", [-1, 1]))
        labels = None if y is None else _labels(y, len(data), classes)
        shown = data[:, two]
        low, high = shown.min(axis=0), shown.max(axis=0)
        wide = BORDER * np.where(high > low, high - low, 1.0)
        across, up = (np.linspace(*ends, resolution) for ends in zip(low - wide, high + wide))
        grid = np.tile(_middle(data, at), (resolution**2, 1))
        grid[:, two[0]], grid[:, two[1]] = np.tile(across, resolution), np.repeat(up, resolution)
        grid = grid.astype(data.dtype)
        leads, values = _leads(estimator, as_table(X, grid), classes)
        best = getattr(estimator, "best_estimator_", estimator)  # the model of a search
        last = best[-1] if hasattr(best, "named_steps") else best
        support, bounded = _support(best, last, data, two)
        surface = cls(
            across,
            up,
            leads.reshape(-1, resolution, resolution),
            None if values is None else values.reshape(resolution, resolution),
            values is not None and is_classifier(estimator) and hasattr(last, "support_"),
            classes,
            (str(every[two[0]]), str(every[two[1]])),
            shown,
            labels,
            support,
            bounded,
        )
        return surface.plot(ax, **style)

    def plot(
        self,
        ax: Any = None,
        *,
        legend: bool = True,
        colours: Sequence[Any] | None = None,
        size: float | None = None,
    ) -> Self:
        """Draw in these axes, or in new ones.

        Parameters
        ----------
        ax : Axes or None
            Axes of matplotlib, or None.
        legend : bool
            Whether to draw a legend below the plot.
        colours
            One colour for each class.
        size : float or None
            The area of a point, in square typographic points; by default smaller for many points.
        """
        if size is None:
            n = 0 if self.points is None else len(self.points)
            size = float(np.clip(22.0 * (300 / max(n, 1)) ** 0.5, 4.0, 22.0))
        k = len(self.classes)
        if colours is not None and len(colours) < k:
            raise InvalidInput(
                f"`colours` must hold one for each of the {k} classes",
                got=f"{len(colours)}",
                advice="Pass one for each, or omit `colours`.",
            )
        with canvas(ax, (5.2, 5.0)) as (ax, palette):
            fills = _colours(k, palette) if colours is None else list(colours)
            for colour, lead in zip(fills, self.leads):
                if (lead > 0).any():
                    ax.contourf(self.x, self.y, lead, levels=[0.0, np.inf], colors=[colour], alpha=FILL, zorder=0)
            keys = self._lines(ax, palette)
            keys += self._data(ax, palette, fills, size)
            keys += self._rings(ax, palette, size)
            self._named(ax, palette)
            ax.set(xlabel=caption(self.names[0], 52), ylabel=caption(self.names[1], 44))
            ax.set_xlim(self.x[0], self.x[-1])
            ax.set_ylim(self.y[0], self.y[-1])
            if legend:
                draw_legend(ax, keys, below=True)
        return self._drawn(ax)

    def _lines(self, ax: Any, palette: Palette) -> list[Any]:
        """Draw the boundaries and the margin."""
        from matplotlib.lines import Line2D

        if self.values is None:
            for lead in self.leads:
                if (lead > 0).any() and (lead < 0).any():
                    ax.contour(self.x, self.y, lead, levels=[0.0], colors=palette.ink, linewidths=0.9, zorder=1)
            return []
        keys = []
        for level, label in ((0.0, "f = 0"), (-1.0, "f = ±1"), (1.0, "")):
            inside = self.values.min() < level < self.values.max()
            if inside and (level == 0 or self.margin):
                dashes: Any = "-" if level == 0 else "--"
                width = 1.5 if level == 0 else 1.0
                look = {"colors": palette.ink, "linestyles": dashes, "linewidths": width, "zorder": 1}
                ax.contour(self.x, self.y, self.values, levels=[level], **look)
                keys += (
                    [Line2D([], [], color=palette.ink, linestyle=dashes, linewidth=width, label=label)] if label else []
                )
        return keys

    def _data(self, ax: Any, palette: Palette, fills: Sequence[Any], size: float) -> list[Any]:
        if self.points is None:
            return []
        look: dict[str, Any] = {"s": size, "linewidths": 0.5 if size > 12 else 0.2, "edgecolors": palette.face}
        look |= {"zorder": 3, "rasterized": len(self.points) > PIXELS}
        if self.labels is None:
            from matplotlib.patches import Patch

            ax.scatter(*self.points.T, color=palette.ink, marker="o", **look)
            return [
                Patch(color=colour, alpha=FILL, label=caption(str(label), 24))
                for colour, label in zip(fills, self.classes)
            ]
        keys = []
        for c, label in enumerate(self.classes):
            some = self.points[self.labels == label]
            if len(some):
                name = caption(str(label), 24)
                keys.append(ax.scatter(*some.T, color=fills[c], marker=MARKERS[c % len(MARKERS)], label=name, **look))
        return keys if len(keys) <= NAMED else []

    def _rings(self, ax: Any, palette: Palette, size: float) -> list[Any]:
        if self.support is None:
            return []
        bounded = np.zeros(len(self.support), dtype=bool) if self.bounded is None else self.bounded
        free = "support vectors" if self.bounded is None else "on the margin"
        look: dict[str, Any] = {"s": 4.5 * size, "facecolors": "none", "edgecolors": palette.ink, "zorder": 4}
        keys = []
        thin = 1.0 if size > 12 else 0.5
        for some, line, width, label in ((~bounded, "-", 1.3, free), (bounded, ":", 0.9, "at the bound")):
            if some.any():
                at = self.support[some].T
                keys.append(ax.scatter(*at, linestyles=line, linewidths=thin * width, label=label, **look))
        return keys

    def _named(self, ax: Any, palette: Palette) -> None:
        """If colours repeat, write the name of each class where it leads most."""
        if len(self.classes) <= len(COLOURS):
            return
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=3, foreground=palette.face)]
        edge = len(self.x) // 16
        for label, lead in zip(self.classes, self.leads[:, edge : -edge or None, edge : -edge or None]):
            if (lead > 0).any():
                i, j = np.unravel_index(lead.argmax(), lead.shape)
                words = {"ha": "center", "va": "center", "weight": "bold", "path_effects": halo, "zorder": 5}
                ax.text(self.x[edge + j], self.y[edge + i], caption(str(label), 12), **words)


def _colours(k: int, palette: Palette) -> list[Any]:
    """A colour for each of k classes; with many classes colours repeat, with other markers."""
    every = BRIGHT if palette.name == "dark" else COLOURS
    return [every[c % len(every)] for c in range(k)]


def _numbers(X: Any) -> tuple[NDArray[Any], list[Any]]:
    """The data as a matrix with at least two columns, and their names."""
    required = "X must be a matrix of numbers with at least two columns"
    try:
        data = np.asarray(X.toarray() if sp.issparse(X) else X)
        data = data if data.dtype.kind == "f" else data.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=type(X).__name__, advice="Pass numeric columns.") from None
    if data.ndim != 2 or data.shape[1] < 2 or not len(data):
        one_column = data.ndim == 2 and len(data)
        advice = "Plot decision_function over one column." if one_column else "Pass a table with rows and two columns."
        raise InvalidInput(required, got=f"shape {data.shape}", advice=advice)
    return data, list(getattr(X, "columns", [f"column {j}" for j in range(data.shape[1])]))


def _labels(y: Any, n: int, classes: NDArray[Any]) -> NDArray[Any]:
    """One label per point, each of them one of the classes."""
    labels = np.asarray(y).ravel()
    known = ", ".join(str(label) for label in classes[:10])
    if len(labels) != n:
        raise InvalidInput(
            "y must hold one label per point",
            got=f"{len(labels)} for {n} points",
            advice="Pass X and y of the same points.",
        )
    unknown = [label for label in set(labels.tolist()) if label not in set(classes.tolist())]
    if unknown:
        raise InvalidInput(
            f"y must hold classes of the estimator, which are {known}",
            got=repr(unknown[0]),
            advice="Drop points of other classes.",
        )
    return labels


def _chosen(columns: Sequence[Any], names: Sequence[Any]) -> list[int]:
    """The positions of the two columns. Whole numbers are names if all of them are."""
    required = f"`columns` must be two different columns of {len(names)}, by position or name"
    numbers = [column for column in columns if isinstance(column, (int, np.integer))]
    named = all(column in names for column in numbers)
    positions = []
    for column in columns:
        if column in names and (named or column not in numbers):
            positions.append(names.index(column))
        elif column in numbers and -len(names) <= column < len(names):
            positions.append(int(column) % len(names))
        else:
            raise InvalidInput(required, got=repr(column), advice="Pass two columns such as (0, 1).")
    if len(positions) != 2 or positions[0] == positions[1]:
        raise InvalidInput(required, got=repr(columns), advice="Pass two columns such as (0, 1).")
    return positions


def _middle(data: NDArray[Any], at: Any) -> Matrix:
    if at is None:
        return np.median(data, axis=0).astype(np.float64)
    values = np.asarray(at, dtype=np.float64)
    if values.shape != data.shape[1:] or not np.isfinite(values).all():
        raise InvalidInput(
            f"`at` must hold {data.shape[1]} finite numbers, one per column",
            got=f"shape {values.shape}",
            advice="Pass a number for every column; those of the two shown columns are ignored.",
        )
    return values


def _leads(estimator: Any, grid: Any, classes: NDArray[Any]) -> tuple[Matrix, Matrix | None]:
    """For each class a function that is positive where the class is predicted, and f itself if there is one function.

    The values of `decision_function` give smooth boundaries if they decide the prediction; else it is ±1.
    """
    predicted = np.asarray(estimator.predict(grid))
    leads = np.where(predicted == classes[:, None], 1.0, -1.0)
    if not hasattr(estimator, "decision_function"):
        return leads, None
    values = np.asarray(estimator.decision_function(grid), dtype=np.float64)
    if values.ndim == 1:
        smooth = np.stack([-values, values])
    else:
        best = np.sort(values, axis=1)[:, -2:]
        smooth = np.where(values == best[:, 1:], values - best[:, :1], values - best[:, 1:]).T
    if len(smooth) == len(leads) and not ((smooth > 0) & (leads < 0)).any():
        leads = smooth
    return leads, values if values.ndim == 1 else None


def _support(estimator: Any, last: Any, data: NDArray[Any], two: list[int]) -> tuple[Any, Any]:
    """The support vectors in the two columns, and which of them are at their bound."""
    positions = getattr(last, "support_", None)
    vectors = getattr(last, "support_vectors_", None)
    if positions is None or vectors is None:
        return None, None
    if last is not estimator:
        if not len(positions) or positions.max() >= len(data):
            return None, None
        support = data[positions]
    else:
        support = np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors)
    if support.ndim != 2 or support.shape[1] != data.shape[1]:
        return None, None
    return support[:, two], getattr(last, "bounded_", None)
