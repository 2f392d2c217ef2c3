"""Error curves: by the number of training rows, by a parameter, and along the path by which alpha was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import learning_curve, validation_curve
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.tunable import stratified
from mercer.plot.looks import Display, Palette, canvas, caption, legend, numbers
from mercer.tuning.folds import make_folds
from mercer.tuning.grid import Grid
from mercer.tuning.loo import AlphaPath
from mercer.validation import check_whole_number, generator, is_number
from mercer.words import brief, count

Matrix = NDArray[np.float64]

WIDE = 20.0
"""An axis is logarithmic if the largest value is more than this many times the smallest."""
MARKS = "osD^vP"
NAMED = 6
"""The largest number of curves that a legend names."""
UNEXPLAINED = "unexplained variance, 1 − R²"


@dataclass(eq=False, repr=False)
class LearningCurve(Display):
    """The error by the number of training rows.

    Attributes
    ----------
    sizes : array
        Numbers of training rows, shape (s,).
    train, test : array
        Scores on the training rows and on held-out rows, shape (s, repetitions).
    by : str
        "leave-one-out" or "folds".
    error : str
        The name of 1 − score, or "" if the score itself is drawn.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(200, 1))
    >>> curve = mc.plot.LearningCurve.from_estimator(mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1), X, np.sin(X[:, 0]))
    >>> curve.by, curve.sizes[-1], curve.test.shape
    ('leave-one-out', np.int64(200), (8, 5))
    >>> matplotlib.pyplot.close("all")
    """

    sizes: NDArray[np.int64]
    train: Matrix
    test: Matrix
    by: str
    error: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sizes: Any = None,
        repetitions: int = 5,
        by: str = "auto",
        scoring: Any = None,
        random_state: int | None = 0,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Fit clones on more and more rows.

        Parameters
        ----------
        estimator : estimator
            Any regressor or classifier.
        X, y : array or frame, array
            The data.
        sizes
            Numbers of training rows, or shares in (0, 1]; by default eight from a twentieth to all.
        repetitions : int
            The number of random samples of each size, or of folds.
        by : str
            "loo" for the leave-one-out score in closed form, of models with `loo_score_`; "folds" for scikit-learn's
            learning_curve; "auto" for the first if possible.
        scoring
            The score of folds, as in scikit-learn.
        random_state : int or None
            Seed of the samples.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        n = length(X)
        closed = _closed(estimator, by, scoring)
        repetitions = check_whole_number(repetitions, "repetitions", such_as=5)
        if length(y) != n:
            raise InvalidInput(
                "y must hold one target per row",
                got=f"{count(length(y), 'target')} for {count(n, 'row')}",
                advice="Pass X and y of the same rows.",
            )
        requested = np.geomspace(0.05, 1.0, 8) if sizes is None else np.atleast_1d(np.asarray(sizes))
        requested = requested if requested.dtype.kind in "iu" else numbers(requested, "`sizes`")
        share = requested.dtype.kind == "f" and (requested <= 1).all()
        most = n
        if not closed:
            folds = make_folds(n, repetitions, y=y, stratify=stratified(estimator, y), shuffle=False)
            most = min(len(rows) for rows, _ in folds)
        counts = np.unique(
            np.maximum(np.round(requested * most) if share else requested, 2 if sizes is not None else 5)
        )
        counts = counts.astype(np.int64)
        if not len(counts) or counts[0] < 2 or counts[-1] > most:
            raise InvalidInput(
                f"`sizes` must be between 2 and {most} rows, or shares in (0, 1]",
                got=repr(sizes),
                advice="Pass sizes in this range, or omit `sizes`.",
            )
        if closed:
            rng = generator(random_state)
            train, test = (np.empty((len(counts), repetitions)) for _ in range(2))
            for r in range(repetitions):
                order = _mixed(y, rng, is_classifier(estimator))
                for s, size in enumerate(counts):
                    rows = order[:size]
                    train[s, r], test[s, r] = _left_out(estimator, take(X, rows), take(y, rows))
        else:
            _, train, test = learning_curve(
                estimator, X, y, train_sizes=counts, cv=folds, scoring=scoring, shuffle=True,
                random_state=random_state,
            )  # fmt: skip
        by = "leave-one-out" if closed else "folds"
        return cls(counts, train, test, by, _error(estimator, scoring)).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones: means, with one standard deviation on both sides."""
        with canvas(ax) as (ax, palette):
            _pair(ax, palette, self.sizes, self.train, self.test, self.by, self.error)
            if self.sizes[-1] > WIDE * self.sizes[0] / 2:
                ax.set_xscale("log")
                _plain(ax, self.sizes)
            ax.set(xlabel="training rows")
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)


@dataclass(eq=False, repr=False)
class ValidationCurve(Display):
    """The error by a parameter, from under- to overfitting.

    Attributes
    ----------
    name, values : str, array
        The name of the parameter and its values, shape (v,).
    train, test : array
        Scores on training rows and on held-out rows, shape (v, folds); one column with leave-one-out.
    best : int
        The position of the value with the best mean test score.
    by : str
        "leave-one-out" or "folds".
    error : str
        The name of 1 − score, or "" if the score itself is drawn.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> y = np.sin(5 * X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=50)
    >>> model = mc.KernelRidge(mc.Polynomial(1, c=1.0), alpha=1e-3)
    >>> curve = mc.plot.ValidationCurve.from_estimator(model, X, y, "kernel__degree", range(1, 16))
    >>> curve.by, 3 < curve.values[curve.best] < 12
    ('leave-one-out', np.True_)
    >>> matplotlib.pyplot.close("all")
    """

    name: str
    values: NDArray[Any]
    train: Matrix
    test: Matrix
    best: int
    by: str
    error: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        name: str,
        values: Sequence[Any],
        *,
        by: str = "auto",
        folds: Any = 5,
        scoring: Any = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Fit a clone for every value.

        Parameters
        ----------
        estimator : estimator
            Any regressor or classifier.
        X, y : array or frame, array
            The data.
        name : str
            The name of the parameter, such as "kernel__sigma", "kernel__degree" or "alpha".
        values
            The values to try.
        by : str
            "loo" for the leave-one-out score in closed form, one fit per value, of models with `loo_score_`; "folds"
            for scikit-learn's validation_curve; "auto" for the first if possible.
        folds : int or splitter
            The number of folds, or a splitter.
        scoring
            The score of folds, as in scikit-learn.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        tried = list(values) if np.iterable(values) else []
        if not tried:
            raise InvalidInput(
                "`values` must hold values to try", got=repr(values), advice="Pass values such as [0.1, 1.0, 10.0]."
            )
        if name not in estimator.get_params():
            known = ", ".join(key for key, value in estimator.get_params().items() if np.ndim(value) == 0)
            raise InvalidInput(
                "`name` must be a parameter of the model",
                got=repr(name),
                advice=f"Choose one of {caption(known, 120)}.",
            )
        tried = [value.item() if isinstance(value, np.generic) else value for value in tried]
        closed = _closed(estimator, by, scoring)
        if closed:
            pairs = [_left_out(clone(estimator).set_params(**{name: value}), X, y) for value in tried]
            train, test = (np.array(scores)[:, None] for scores in zip(*pairs))
        else:
            train, test = validation_curve(
                estimator, X, y, param_name=name, param_range=tried, cv=folds, scoring=scoring
            )
        numbers = all(map(is_number, tried))
        shown = np.asarray(tried) if numbers else np.asarray([caption(str(value), 20) for value in tried])
        best = int(np.nanargmax(test.mean(axis=1)))
        words = "leave-one-out" if closed else "folds"
        return cls(name, shown, train, test, best, words, _error(estimator, scoring)).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; the best value is marked."""
        with canvas(ax) as (ax, palette):
            numbers = self.values.dtype.kind in "iuf"
            x = self.values if numbers else np.arange(len(self.values))
            _pair(ax, palette, x, self.train, self.test, self.by, self.error)
            best = f"{self.values[self.best]:.3g}" if numbers else str(self.values[self.best])
            ax.axvline(x[self.best], color=palette.green, lw=1.2, ls="--", label=f"best: {best}")
            name = self.name.rpartition("__")[2] or self.name
            if numbers and x.min() > 0 and x.max() > WIDE * x.min() and self.values.dtype.kind == "f":
                ax.set_xscale("log")
            elif not numbers:
                across = sum(len(v) for v in self.values) > 60
                ax.set_xticks(x, self.values, rotation=30 if across else 0, ha="right" if across else "center")
            elif self.values.dtype.kind in "iu":
                ax.xaxis.get_major_locator().set_params(integer=True)
            ax.set_xlabel(self._direction(name, x) if numbers else name)
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)

    def _direction(self, name: str, x: NDArray[Any]) -> str:
        """The name, and on which side it underfits: where the error is large even on the training rows."""
        left, right = (self.train.mean(axis=1)[i] for i in (int(np.argmin(x)), int(np.argmax(x))))
        if not 0 < self.best < len(x) - 1 or not np.isfinite(left - right) or abs(left - right) < 0.02:
            return name
        return f"underfits  ←   {name}   →  overfits" if left < right else f"overfits  ←   {name}   →  underfits"


@dataclass(eq=False, repr=False)
class TuningPath(Display):
    """The criterion by which a fitted model was chosen, along alpha (or C, or a parameter of the kernel).

    Attributes
    ----------
    name, x : str, array
        The parameter that varies, and its values, shape (a,).
    values : array
        The criterion, one row for each target or kernel, shape (k, a); NaN if it is not known.
    labels : list of str
        The labels of the rows.
    best : list
        (row, x, value) of the choice, one for each target.
    criterion : str
        The name of the criterion.
    smallest : bool
        Whether a smaller value is better.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha="loo").fit(X, y)
    >>> path = mc.plot.TuningPath.from_estimator(model)
    >>> path.best[0][1] == model.alpha_
    True
    >>> matplotlib.pyplot.close("all")
    """

    name: str
    x: Matrix
    values: Matrix
    labels: list[str]
    best: list[tuple[int, float, float]]
    criterion: str
    smallest: bool

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **style: Any) -> Self:
        """The path of a model that was fitted with alpha="loo" or tuned with a grid, or of a support vector machine."""
        check_is_fitted(estimator)
        for model in (estimator, getattr(estimator, "regression_", None)):
            path = getattr(model, "path_", None)
            if isinstance(path, AlphaPath):
                return cls._of_path(path).plot(ax, **style)
            grid = getattr(getattr(model, "tuning_", None), "grid", None)
            if isinstance(grid, Grid):
                return cls._of_grid(grid).plot(ax, **style)
        raise InvalidInput(
            "The parameters of the model must have been chosen along a path",
            got=type(estimator).__name__,
            advice="Pass mc.KernelRidge(alpha='loo'), or mc.tune(model, X, y, grid={'alpha': [0.1, 1.0]}), fitted; for "
            "an automatic model print choices_.",
        )

    @classmethod
    def _of_path(cls, path: AlphaPath) -> Self:
        t = path.errors.shape[1]
        labels = ["leave-one-out"] if t == 1 else [f"target {i}" for i in range(t)]
        best = [(i, float(path.chosen[i]), float(path.error[i])) for i in range(t)]
        return cls("alpha", path.alphas, path.errors.T.copy(), labels, best, "leave-one-out squared error", True)

    @classmethod
    def _of_grid(cls, grid: Grid) -> Self:
        name, x, values, criterion = grid.penalty, grid.penalties, grid.values, grid.measure.name
        smallest = not grid.measure.greater
        i, j = grid.best
        labels = [brief(kernel) for kernel in grid.kernels]
        best = [(int(i), float(x[j]), float(values[i, j]))]
        if len(x) == 1 and len(labels) > 1:
            varied = _varied(grid.kernels)
            if varied is not None:
                name, along = varied
                order = np.argsort(along, kind="stable")
                best = [(0, float(along[i]), float(values[i, 0]))]
                return cls(name, along[order], values[order].T.copy(), [name], best, criterion, smallest)
        order = np.argsort(x, kind="stable")
        return cls(name, x[order], values[:, order], labels, best, criterion, smallest)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; the choice is marked."""
        with canvas(ax) as (ax, palette):
            chosen = {row for row, _, _ in self.best}
            many = len(self.values) > NAMED
            for i, row in enumerate(self.values):
                label = caption(self.labels[i], 34) if len(self.values) > 1 and (not many or i in chosen) else None
                colour = palette.series[i % len(palette.series)] if not many else palette.grey
                if many and i in chosen:
                    colour = palette.blue
                ax.plot(
                    self.x, row, marker=MARKS[i % len(MARKS)] if len(self.x) <= 25 else None, ms=4, color=colour,
                    label=label, lw=1.8 if not many or i in chosen else 0.9, zorder=3 if i in chosen else 2,
                )  # fmt: skip
            for k, (_, x, value) in enumerate(self.best if len(self.best) <= NAMED else []):
                label = f"chosen: {self.name} = {x:.3g}" if not k else None
                ax.plot(
                    x, value, "*", color=palette.red, ms=14, mec=palette.face, mew=0.7, ls="", zorder=5, label=label
                )
            if (self.x > 0).all() and self.x.max() > WIDE * self.x.min():
                ax.set_xscale("log")
            finite = self.values[np.isfinite(self.values)]
            if self.smallest and finite.size and finite.min() > 0 and finite.max() > 5 * finite.min():
                ax.set_yscale("log")
            elif finite.size and not self.smallest:
                top, span = finite.max(), finite.max() - np.percentile(finite, 20)
                ax.set_ylim(max(finite.min(), top - 4 * span) - 0.05 * span - 1e-12, top + 0.3 * span + 1e-12)
            ax.set(xlabel=self.name.rpartition("__")[2], ylabel=self.criterion)
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)


def _closed(estimator: Any, by: str, scoring: Any) -> bool:
    """Whether to use the leave-one-out score in closed form."""
    can = hasattr(type(estimator), "loo_score_")
    if by not in ("auto", "loo", "folds"):
        raise InvalidInput("`by` must be 'auto', 'loo' or 'folds'", got=repr(by), advice="Choose one of them.")
    if by == "loo" and (not can or scoring is not None):
        raise InvalidInput(
            "by='loo' needs a model with loo_score_, and no `scoring`",
            got=type(estimator).__name__ + ("" if scoring is None else f" and scoring={scoring!r}"),
            advice="Use by='folds'.",
        )
    return can and by != "folds" and scoring is None


def _left_out(estimator: Any, X: Any, y: Any) -> tuple[float, float]:
    """The score of a model on its training rows, and its leave-one-out score."""
    fitted = clone(estimator).fit(X, y)
    return float(fitted.score(X, y)), float(fitted.loo_score_)


def _mixed(y: Any, rng: np.random.Generator, classes: bool) -> NDArray[np.int64]:
    """A random order; for classes, one in which every beginning has each class in its proportion."""
    order = rng.permutation(length(y))
    if not classes:
        return order
    labels = np.asarray(y).ravel()[order]
    place = np.empty(len(order))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(place, kind="stable")]


def _error(estimator: Any, scoring: Any) -> str:
    if scoring is not None:
        return ""
    return "error rate" if is_classifier(estimator) else UNEXPLAINED


def _pair(ax: Any, palette: Palette, x: NDArray[Any], train: Matrix, test: Matrix, by: str, error: str) -> None:
    """Training and test curves, each with its spread."""
    shown = []
    for scores, colour, label in (
        (train, palette.blue, "training"),
        (test, palette.red, "held-out folds" if by == "folds" else by),
    ):
        values = 1.0 - scores if error else scores
        mean, spread = values.mean(axis=1), values.std(axis=1)
        marker = "o" if len(x) <= 40 else None
        ax.plot(x, mean, color=colour, marker=marker, ms=4, label=label, zorder=3)
        shown.append(mean)
        if values.shape[1] > 1:
            low = np.maximum(mean - spread, 0.0) if error else mean - spread
            ax.fill_between(x, low, mean + spread, color=colour, alpha=0.15, lw=0)
    ax.set_ylabel(error or "score")
    every = np.concatenate(shown)
    seen = every[np.isfinite(every) & (every > 0)]
    if error == UNEXPLAINED and len(seen) and seen.max() > WIDE * seen.min():
        ax.set_yscale("log")
        ax.set_ylim(max(seen.min() / 1.6, shown[1][shown[1] > 0].min() / 1e3 if (shown[1] > 0).any() else 0.0), None)
    elif error:
        ax.set_ylim(0.0, None)


def _plain(ax: Any, sizes: NDArray[np.int64]) -> None:
    """Label the axis with the numbers of rows, as many as are readable."""
    every = max(1, int(np.ceil(len(sizes) / 8)))
    ax.set_xticks(sizes[::-1][::every], [f"{size:,}".replace(",", " ") for size in sizes[::-1][::every]])
    ax.set_xticks([], minor=True)


def _varied(kernels: Sequence[Any]) -> tuple[str, Matrix] | None:
    """The one parameter in which the kernels differ, with its values; None if they differ in more or in others."""
    every = [kernel.get_params() for kernel in kernels]
    numbers = [key for key, value in every[0].items() if isinstance(value, (int, float))]
    if any(set(params) != set(every[0]) for params in every):
        return None
    differ = [key for key in numbers if len({params[key] for params in every}) > 1]
    if len(differ) != 1:
        return None
    return differ[0], np.array([params[differ[0]] for params in every], dtype=np.float64)
