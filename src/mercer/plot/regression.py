"""Plots of a regression: predictions along a column with intervals, and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.labels import position_of_label
from mercer.models.local.local_regression import LocalRegression
from mercer.models.residual_scale import ResidualScale
from mercer.plot.columns import along
from mercer.plot.looks import Display, Palette, canvas, caption, dots, legend, numbers
from mercer.validation import check_choice
from mercer.words import number

Matrix = NDArray[np.float64]

CONFIDENCE = 0.95
"""The coverage of the band of normal samples."""
SMOOTHED = 0.5
"""The share of the residuals that the trend uses at each point."""
BARS = 60
"""The largest number of bars of a histogram."""
WIDE = 50
"""Labels of categories with more characters than this in total are rotated."""
SHOWN = 0.9
"""The share of the residuals in the band around their trend."""
FEWEST = 10
"""A trend needs at least this many residuals."""


@dataclass(eq=False, repr=False)
class RegressionBands(Display):
    """A regression along one column: its curve, the intervals of new targets, and the data.

    Attributes
    ----------
    x : array
        The grid along the column, shape (r,).
    mean : array
        The prediction there, shape (r,).
    coverages : array
        Coverages of the intervals, ascending, shape (c,).
    lower, upper : array
        Ends of the intervals, shape (c, r).
    points, targets : array or None
        The data in that column and its targets, shape (n,); or None.
    names : tuple of str
        The names of the column and the target.
    moved : bool
        Whether there are other columns, which are fixed along the curve.
    levels : tuple of str
        The values of a column of categories, at x = 0, 1, …; else empty.
    whole : bool
        Whether the column holds few whole numbers, which are drawn as single points.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    >>> bands = mc.plot.RegressionBands.from_estimator(model, X, y, coverage=(0.5, 0.9))
    >>> bands.mean.shape, bands.lower.shape
    ((600,), (2, 600))
    >>> matplotlib.pyplot.close("all")
    """

    x: NDArray[Any]
    mean: Matrix
    coverages: Matrix
    lower: Matrix
    upper: Matrix
    points: NDArray[Any] | None = None
    targets: Matrix | None = None
    names: tuple[str, str] = ("x", "y")
    moved: bool = False
    levels: tuple[str, ...] = ()
    whole: bool = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        column: Any = None,
        at: Any = None,
        coverage: float | Sequence[float] | None = 0.9,
        target: int | None = None,
        label: Any = None,
        resolution: int = 600,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Predict along one column with the others fixed, and draw.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor, a pipeline that ends in one, or a search. Bands need `predict_interval`.
        X : array, frame or list of objects
            The data to show, a matrix or a frame, shape (n, d). Along a column of categories in a frame, the most
            frequent ones are marked.
        y : array
            Its targets, shape (n,) or (n, t), or None.
        column
            The column to vary, by name or position; by default the first.
        at
            Values of the other columns, a dictionary by name or position, or one value per column. By default the
            median, or the most frequent value of a column that is not numeric.
        coverage : float, sequence of float or None
            The coverage of the intervals, one number in (0, 1) or several; None draws the curve alone.
        target : int or None
            Which of several targets.
        label
            For a classifier with `predict_proba`, the class whose probability is drawn.
        resolution : int
            The number of grid points.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        check_is_fitted(estimator)
        of_class = is_classifier(estimator) and label is not None and hasattr(estimator, "predict_proba")
        if not of_class and (is_classifier(estimator) or not hasattr(estimator, "predict")):
            raise InvalidInput(
                "Bands need a regressor",
                got=type(estimator).__name__,
                advice="For a classifier pass `label`, the class whose probability is drawn, or draw DecisionSurface.",
            )
        shown, grid, queries, name, levels, whole = along(X, column, at, resolution)
        if of_class:
            mean = _probability(estimator, queries, label)
            none, named = np.empty((0, len(grid))), (name, f"probability of {label}")
            return cls(grid, mean, np.empty(0), none, none, names=named, levels=levels, whole=whole).plot(ax, **style)
        coverages = np.sort(np.atleast_1d(numbers([] if coverage is None else coverage, "`coverage`")))
        if coverages.ndim != 1 or not ((coverages > 0) & (coverages < 1)).all():
            raise InvalidInput(
                "`coverage` must be numbers in (0, 1)", got=repr(coverage), advice="Pass a number such as 0.9."
            )
        mean = _one(np.asarray(estimator.predict(queries), dtype=np.float64), target)
        bands = [_interval(estimator, queries, float(c), target) for c in coverages]
        ends = np.stack(bands) if bands else np.empty((0, len(grid), 2))
        truth = None if y is None else _one(numbers(y, "y"), target)
        if truth is not None and len(truth) != len(shown):
            raise InvalidInput(
                "y must hold one target per row",
                got=f"{len(truth)} for {len(shown)} rows",
                advice="Pass X and y of the same rows.",
            )
        names = name, str(getattr(y, "name", None) or "y")
        others = queries.shape[1] > 1
        curve = cls(grid, mean, coverages, ends[..., 0], ends[..., 1], shown, truth, names, others, levels, whole)
        return curve.plot(ax, **style)

    def plot(self, ax: Any = None, *, data: bool = True, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; without `data`, only the curve and its bands."""
        with canvas(ax) as (ax, palette):
            c = len(self.coverages)
            for i in range(c)[::-1]:
                wash = palette.wash(palette.blue, 0.3 if c == 1 else 0.45 - 0.33 * i / (c - 1))
                label = f"{100 * self.coverages[i]:.4g} % of new targets"
                if self.levels or self.whole:
                    ax.vlines(self.x, self.lower[i], self.upper[i], color=wash, lw=12, label=label, zorder=1)
                else:
                    ax.fill_between(self.x, self.lower[i], self.upper[i], color=wash, lw=0, label=label, zorder=1)
            single = bool(self.levels) or self.whole
            look = {"marker": "D", "ms": 8 if self.levels else 6, "ls": ""} if single else {}
            alone = not c and (not data or self.targets is None)
            ax.plot(self.x, self.mean, color=palette.blue, label=None if alone else "prediction", zorder=3, **look)
            if data and self.points is not None and self.targets is not None:
                label = "data (other columns vary)" if self.moved else "data"
                look = dots(len(self.points))
                x = self.points
                if single and len(self.x) > 1:  # random shifts, so that points do not hide each other
                    x = x + 0.2 * np.diff(self.x).min() * np.random.default_rng(0).uniform(-1, 1, len(x))
                ax.plot(x, self.targets, "o", color=palette.ink, label=label, zorder=2, **look)
            ax.set(xlabel=caption(self.names[0], 60), ylabel=caption(self.names[1], 40))
            if self.levels:
                turned = {"rotation": 30, "ha": "right"} if sum(map(len, self.levels)) > WIDE else {}
                ax.set_xticks(self.x, [caption(word, 20) for word in self.levels], **turned)
            if single:
                half = 0.5 * (np.diff(self.x).min() if len(self.x) > 1 else 1.0)
                ax.set_xlim(self.x[0] - half, self.x[-1] + half)
            else:
                ax.set_xlim(self.x[0], self.x[-1])
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)


@dataclass(eq=False, repr=False)
class Residuals(Display):
    """Residuals of a regression: against the predictions, against normal quantiles, or as a histogram.

    Attributes
    ----------
    fitted, residuals : array
        f(xᵢ) and yᵢ − f(xᵢ), shape (n,).
    kind : str
        "fitted", "qq" or "histogram".
    grid, trend : array
        A local regression of the residuals on the predictions, shape (r,); empty if n < 10.
    spread : array
        Half of the width, at the grid, of a band around the trend that contains 90 % of the residuals: their local
        size, if it depends on the prediction by more than chance explains; shape (r,).
    quantiles, ordered : array
        Quantiles of the normal distribution, and the sorted residuals divided by their standard deviation, shape (n,).
    lower, upper : array
        The band that contains the i-th smallest value of 95 % of normal samples, shape (n,).
    left_out : bool
        Whether the predictions are leave-one-out predictions.
    name : str
        The name of the target, or "".
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    >>> left = mc.plot.Residuals.from_estimator(model, X, y, left_out=True, kind="qq")
    >>> bool(np.allclose(left.residuals, y - model.loo_predictions_))
    True
    >>> matplotlib.pyplot.close("all")
    """

    fitted: Matrix
    residuals: Matrix
    kind: str
    grid: Matrix
    trend: Matrix
    spread: Matrix
    quantiles: Matrix
    ordered: Matrix
    lower: Matrix
    upper: Matrix
    left_out: bool = False
    name: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        kind: str = "fitted",
        left_out: bool = False,
        target: int | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The residuals of a fitted regressor on these rows.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor.
        X, y : array or frame, array
            Held-out rows and their targets. On training rows, residuals are too small.
        kind : str
            "fitted", "qq" or "histogram".
        left_out : bool
            Whether X and y are the training rows, and the leave-one-out predictions of the model in closed form
            (`loo_predictions_`) are used.
        target : int or None
            Which of several targets.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        check_is_fitted(estimator)
        if is_classifier(estimator):
            raise InvalidInput(
                "Residuals need a regressor", got=type(estimator).__name__, advice="Draw Reliability instead."
            )
        if not left_out:
            predicted = estimator.predict(X)
        elif hasattr(estimator, "loo_predictions_"):
            predicted = estimator.loo_predictions_
        else:
            raise InvalidInput(
                "left_out=True needs a model with loo_predictions_",
                got=type(estimator).__name__,
                advice="Pass held-out rows, or predictions by scikit-learn's cross_val_predict to from_predictions.",
            )
        return cls.from_predictions(y, predicted, kind=kind, target=target, left_out=left_out, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        predicted: Any,
        *,
        kind: str = "fitted",
        target: int | None = None,
        left_out: bool = False,
        name: str | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The residuals of predictions by any model, both of shape (n,); `name` is the name of the target."""
        _kind(kind)
        truth, fitted = (_one(numbers(a, name), target) for a, name in ((y, "y"), (predicted, "Predictions")))
        if truth.shape != fitted.shape or len(truth) < 2 or not np.isfinite(truth - fitted).all():
            raise InvalidInput(
                "y and predictions must be finite, of equal length, and at least two",
                got=f"{len(truth)} and {len(fitted)}",
                advice="Drop rows without a target.",
            )
        n, r = len(truth), truth - fitted
        spread = r.std(ddof=1)
        i = np.arange(1, n + 1)
        tail = (1 - CONFIDENCE) / 2
        ends = [ndtri(beta.ppf(p, i, n + 1 - i)) for p in (tail, 1 - tail)]
        ordered = np.sort(r - r.mean()) / (spread if spread > 0 else 1.0)
        grid, trend, local = _trend(fitted, r)
        quantiles = ndtri((i - 0.375) / (n + 0.25))  # Blom's
        name = str(getattr(y, "name", None) or "") if name is None else name
        display = cls(fitted, r, kind, grid, trend, local, quantiles, ordered, ends[0], ends[1], left_out, name)
        return display.plot(ax, **style)

    def plot(self, ax: Any = None, *, kind: str | None = None, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; `kind` as above."""
        self.kind = _kind(kind or self.kind)
        with canvas(ax) as (ax, palette):
            {"fitted": self._against, "qq": self._normal, "histogram": self._counted}[self.kind](ax, palette)
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)

    def _against(self, ax: Any, palette: Palette) -> None:
        ax.axhline(0.0, color=palette.grey, lw=1, zorder=1)
        ax.plot(self.fitted, self.residuals, "o", color=palette.blue, zorder=2, **dots(len(self.fitted)))
        if len(self.grid):
            label = f"{100 * SHOWN:.0f} % of the residuals"
            for side in (-1, 1):
                ends = self.trend + side * self.spread
                ax.plot(self.grid, ends, color=palette.gold, lw=1.5, label=label if side > 0 else None, zorder=3)
            ax.plot(self.grid, self.trend, color=palette.red, label="trend", zorder=3)
        ax.set(xlabel=f"predicted {caption(self.name, 40)}".rstrip() + self._how, ylabel="residual")

    def _normal(self, ax: Any, palette: Palette) -> None:
        q = self.quantiles
        label = f"{CONFIDENCE:.0%} of normal samples".replace("%", " %")
        ax.fill_between(q, self.lower, self.upper, color=palette.grey, alpha=0.25, lw=0, label=label)
        ax.plot(q[[0, -1]], q[[0, -1]], color=palette.grey, lw=1)
        out = (self.ordered < self.lower) | (self.ordered > self.upper)
        for some, colour, word in ((~out, palette.blue, None), (out, palette.red, "outside")):
            if some.any():
                look = dots(len(q)) | {"alpha": 0.8}
                ax.plot(q[some], self.ordered[some], "o", color=colour, label=word, **look)
        ax.set(xlabel="quantile of the normal distribution", ylabel="standardised residual")

    def _counted(self, ax: Any, palette: Palette) -> None:
        r = self.residuals
        edges = np.histogram_bin_edges(r, "fd" if np.ptp(r) > 0 else 1)
        edges = np.linspace(edges[0], edges[-1], min(len(edges), BARS + 1))
        ax.hist(r, bins=edges, color=palette.blue, alpha=0.55)
        mean, spread = r.mean(), r.std(ddof=1)
        if spread > 0:
            at = np.linspace(r.min(), r.max(), 200)
            normal = np.exp(-0.5 * ((at - mean) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
            normal *= len(r) * (edges[1] - edges[0])
            ax.plot(at, normal, color=palette.red, label=f"normal, mean {number(mean, 3)}, std {number(spread, 3)}")
        ax.axvline(0.0, color=palette.grey, lw=1)
        ax.set(xlabel=f"residual{self._how}", ylabel="rows")

    @property
    def _how(self) -> str:
        return " (leave-one-out)" if self.left_out else ""


def _kind(kind: str) -> str:
    return check_choice(kind, "kind", ("fitted", "qq", "histogram"))


def _trend(fitted: Matrix, r: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """A local regression of the residuals and the band around it, if there are enough at different predictions."""
    if len(r) < FEWEST or len(np.unique(fitted)) < FEWEST:
        return np.empty(0), np.empty(0), np.empty(0)
    low, high = np.percentile(fitted, [1, 99])
    grid = np.linspace(low, high, 100)
    smooth = LocalRegression(neighbors=SMOOTHED, degree=1).fit(fitted[:, None], r)
    trend, at_rows = (np.asarray(smooth.predict(values[:, None])) for values in (grid, fitted))
    scale, sizes = ResidualScale.of(fitted, r - at_rows)
    return grid, trend, scale(grid) * float(np.quantile(np.abs(r - at_rows) / sizes, SHOWN))


def _one(values: Matrix, target: int | None) -> Matrix:
    """One column of targets."""
    if values.ndim == 1:
        return values
    if values.ndim == 2 and (values.shape[1] == 1 or target is not None):
        t = target or 0
        if -values.shape[1] <= t < values.shape[1]:
            return values[:, t]
    raise InvalidInput(
        "A plot shows one of several targets",
        got=f"shape {values.shape}, target={target}",
        advice="Pass the position of a target, such as target=0.",
    )


def _probability(estimator: Any, queries: Any, label: Any) -> Matrix:
    """The probabilities of one class, shape (r,)."""
    at = position_of_label(np.asarray(estimator.classes_), label)
    return np.asarray(estimator.predict_proba(queries), dtype=np.float64)[:, at]


def _interval(estimator: Any, queries: Any, coverage: float, target: int | None) -> Matrix:
    """The ends of the intervals, shape (r, 2)."""
    model = getattr(estimator, "best_estimator_", estimator)
    if isinstance(model, Pipeline):
        queries, model = model[:-1].transform(queries) if len(model) > 1 else queries, model[-1]
    if not hasattr(model, "predict_interval"):
        raise InvalidInput(
            "Bands need a model with predict_interval",
            got=type(model).__name__,
            advice="Pass coverage=None for the curve alone, or fit mc.ConformalRegressor(model).",
        )
    ends = np.asarray(model.predict_interval(queries, coverage), dtype=np.float64)
    if ends.ndim == 3:
        ends = np.stack([_one(ends[..., side], target) for side in (0, 1)], axis=-1)
    return ends
