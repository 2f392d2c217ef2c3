"""Plots that explain a model: the effect of one or two columns, and the contributions of columns to a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, QhullError
from sklearn.utils.validation import check_is_fitted

from mercer.models.explaining.answers import as_table, names_of
from mercer.models.explaining.contributions import Contributions
from mercer.models.explaining.effects import BACKGROUND, Effect, cells, partial_dependence, positions_of
from mercer.plot.looks import Display, Palette, beside, canvas, caption, dots, legend
from mercer.words import cut

BAND = 0.9
"""The share of rows whose own curves are inside the band."""
WIDE = 50
"""Labels of categories with more characters than this in total are rotated."""
CURVES = 6
"""The largest number of categories that have curves of their own."""
SHOWN_POINTS = 1000
"""The largest number of data points over a surface."""
BARS = 12
"""The largest number of contributions that are drawn."""


@dataclass(eq=False, repr=False)
class PartialDependence(Display):
    """The mean prediction as a function of one column, or of two.

    One column gives a curve with a band: prediction intervals if their `coverage` is given, else the band that holds
    the curves of 90 % of the rows. Categories and few whole numbers are single points. Two columns of numbers give a
    surface where there are data; a column of categories with another one gives a curve for each of the most frequent
    categories.

    Attributes
    ----------
    effect : Effect
        The values: `columns`, `grids`, `values` and the curves of `rows`.
    points : array or None
        The data in these columns, shape (n, 2); None for one column, or categories.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).uniform(size=(80, 2))
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X, X[:, 0] * X[:, 1])
    >>> mc.plot.PartialDependence.from_estimator(model, X, (0, 1)).effect.values.shape
    (25, 25)
    >>> matplotlib.pyplot.close("all")
    """

    effect: Effect
    points: NDArray[np.float64] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        columns: Any,
        *,
        label: Any = None,
        grid: int = 25,
        coverage: float | None = None,
        rows: int = BACKGROUND,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Compute the partial dependence and draw it.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor or classifier.
        X : array or frame
            The data, a matrix or a frame, shape (n, d).
        columns : str, int or pair of them
            One column by name or position, or two of them.
        label
            For a classifier, the class whose probability is drawn; by default the second of two.
        grid : int
            The largest number of values along a column.
        coverage : float or None
            For one column and a regressor with `predict_interval`, the coverage of prediction intervals: their mean
            over the rows is the band.
        rows : int
            The number of background rows.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        check_is_fitted(estimator)
        effect = partial_dependence(estimator, X, columns, label=label, grid=grid, coverage=coverage, rows=rows)
        points = None
        if len(effect.grids) == 2 and all(values.dtype.kind in "iuf" for values in effect.grids):
            table = as_table(X)
            positions = positions_of(table, columns)
            points = np.column_stack([np.asarray(cells(table, j), dtype=np.float64) for j in positions])
            points = points[np.isfinite(points).all(axis=1)]
        return cls(effect, points).plot(ax, **style)

    def plot(self, ax: Any = None, *, what: str | None = None, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; `what` names the prediction."""
        with canvas(ax) as (ax, palette):
            name = caption(what or self.effect.what, 40)
            if len(self.effect.grids) == 1:
                self._curve(ax, palette, name)
            elif self.points is not None:
                self._surface(ax, palette, name)
            else:
                self._curves(ax, palette, name)
            ax.set_title(title or "")
        return self._drawn(ax)

    def _curve(self, ax: Any, palette: Palette, name: str) -> None:
        grid, mean = self.effect.grids[0], self.effect.values
        tail = (1 - BAND) / 2
        if self.effect.intervals is None:
            low, high = np.quantile(self.effect.rows, [tail, 1 - tail], axis=0)
            label = f"{100 * BAND:.0f} % of the rows"
        else:
            low, high = self.effect.intervals.T
            label = f"{100 * (self.effect.coverage or 0):.4g} % prediction interval"
        single = _single(self.effect, 0)
        x = _places(grid)
        wash = palette.wash(palette.blue, 0.3)
        if single:
            ax.vlines(x, low, high, color=wash, lw=9, label=label, zorder=1)
        else:
            ax.fill_between(x, low, high, color=wash, lw=0, label=label, zorder=1)
        look = {"marker": "D", "ms": 6, "ls": ""} if single else {}
        ax.plot(x, mean, color=palette.blue, label="mean", zorder=3, **look)
        ax.set(xlabel=caption(self.effect.columns[0], 60), ylabel=name)
        _ticks(ax, grid)
        legend(ax)

    def _surface(self, ax: Any, palette: Palette, name: str) -> None:
        assert self.points is not None
        u, v = (np.asarray(grid, dtype=np.float64) for grid in self.effect.grids)
        values = np.where(_inside(self.points, u, v), self.effect.values, np.nan)
        picture = ax.pcolormesh(u, v, values.T, cmap=palette.amounts(), shading="nearest", rasterized=True)
        within = ((self.points >= [u[0], v[0]]) & (self.points <= [u[-1], v[-1]])).all(axis=1)
        shown = self.points[within][:: -(-len(self.points) // SHOWN_POINTS)]
        ax.plot(*shown.T, "o", color=palette.ink, **(dots(len(shown)) | {"alpha": 0.25}))
        beside(ax, picture, name)
        ax.set(xlabel=caption(self.effect.columns[0], 60), ylabel=caption(self.effect.columns[1], 40))

    def _curves(self, ax: Any, palette: Palette, name: str) -> None:
        """A curve along one column for each category of the other one."""
        texts = [grid.dtype.kind not in "iufM" for grid in self.effect.grids]
        by = int(np.argmax(texts)) if sum(texts) == 1 else int(len(self.effect.grids[0]) > len(self.effect.grids[1]))
        by = by if sum(texts) else 1
        along, values = 1 - by, self.effect.values.T if by == 1 else self.effect.values
        grid, levels = self.effect.grids[along], self.effect.grids[by]
        chosen = np.unique(np.linspace(0, len(levels) - 1, min(CURVES, len(levels))).astype(int))
        look = {"marker": "D", "ms": 5, "ls": ":"} if _single(self.effect, along) else {}
        for colour, k in zip(palette.series, chosen):
            ax.plot(_places(grid), values[k], color=colour, label=caption(str(levels[k]), 20), **look)
        ax.set(xlabel=caption(self.effect.columns[along], 60), ylabel=name)
        _ticks(ax, grid)
        legend(ax, title=caption(self.effect.columns[by], 30))


@dataclass(eq=False, repr=False)
class ContributionBars(Display):
    """The contributions of the columns to the prediction of one row, the largest on top.

    Attributes
    ----------
    names : list of str
        The columns, with the values of the row if they are known.
    values, errors : array
        The contributions and their standard errors, shape (k,).
    mean, prediction : float
        The mean of the background and the prediction of the row.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).uniform(size=(80, 2))
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X, X[:, 0] * X[:, 1])
    >>> bars = mc.plot.ContributionBars.from_contributions(mc.contributions(model, X[:1], X))
    >>> bool(np.isclose(bars.mean + bars.values.sum(), bars.prediction))
    True
    >>> matplotlib.pyplot.close("all")
    """

    names: list[str]
    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    mean: float
    prediction: float
    what: str = "prediction"

    @classmethod
    def from_contributions(
        cls, parts: Contributions, row: int = 0, *, X: Any = None, ax: Any = None, **style: Any
    ) -> Self:
        """Draw the contributions of one of their rows; X are the rows, whose values are shown beside the names."""
        ranked = parts.ranked(row)
        shown, rest = ranked[:BARS], ranked[BARS:]
        names = [name for name, _, _ in shown]
        if X is not None:
            table = as_table(X)
            every = names_of(table)
            texts = [cut(str(_cell(cells(table, every.index(name))[row])), 16) for name in names]
            names = [f"{name} = {text}" for name, text in zip(names, texts)]
        values, errors = ([entry[k] for entry in shown] for k in (1, 2))
        if rest:
            names.append(f"{len(rest)} others")
            values.append(sum(value for _, value, _ in rest))
            errors.append(float(np.sqrt(sum(error**2 for _, _, error in rest))))
        mean, prediction = float(parts.mean[row]), float(parts.predictions[row])
        return cls(names, np.array(values), np.array(errors), mean, prediction, parts.what(row)).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax, (6.4, 1.4 + 0.3 * len(self.names))) as (ax, palette):
            place = np.arange(len(self.names))[::-1]
            colours = [palette.blue if value >= 0 else palette.red for value in self.values]
            ax.barh(place, self.values, color=colours, height=0.65)
            if self.errors.any():
                ax.errorbar(self.values, place, xerr=2 * self.errors, fmt="none", ecolor=palette.ink, lw=1, capsize=2)
            ax.axvline(0.0, color=palette.grey, lw=1)
            ax.set_yticks(place, [caption(name, 40) for name in self.names])
            ax.set_xlabel(f"contribution: {caption(self.what, 40)} {self.prediction:.4g} − mean {self.mean:.4g}")
            ax.set_title(title or "")
        return self._drawn(ax)


def _single(effect: Effect, k: int) -> bool:
    """Whether the values of a column are single points and not a continuum: categories, or all of few whole numbers."""
    grid = effect.grids[k]
    if grid.dtype.kind not in "iuf":
        return grid.dtype.kind != "M"
    return effect.complete[k] and bool((grid == np.round(grid)).all())


def _cell(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else value


def _places(grid: NDArray[Any]) -> NDArray[Any]:
    return grid if grid.dtype.kind in "iufM" else np.arange(len(grid), dtype=np.float64)


def _ticks(ax: Any, grid: NDArray[Any]) -> None:
    """The labels of categories, if the grid holds such."""
    if grid.dtype.kind not in "iufM":
        turned = {"rotation": 30, "ha": "right"} if sum(map(len, grid)) > WIDE else {}
        ax.set_xticks(_places(grid), [caption(str(word), 20) for word in grid], **turned)
        ax.set_xlim(-0.5, len(grid) - 0.5)


def _inside(points: NDArray[np.float64], u: NDArray[Any], v: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each place of the grid is in the convex hull of the data."""
    scale = np.ptp(points, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    try:
        hull = Delaunay(points / scale)
    except QhullError:  # all points on a line
        return np.ones((len(u), len(v)), dtype=bool)
    places = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1) / scale
    return np.asarray(hull.find_simplex(places, tol=1e-6) >= 0)
