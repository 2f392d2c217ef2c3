"""Convergence of solvers: the objective or the gradient, by step or by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.plot.looks import Display, canvas, legend

Matrix = NDArray[np.float64]

ROUNDING = 1e-15
"""Relative to the minimum: smaller differences from it are rounding."""


@dataclass(eq=False, repr=False)
class Convergence(Display):
    """The traces of fitted models: the objective above its minimum, or the norm of the gradient.

    Attributes
    ----------
    labels : list of str
        The labels of the models.
    steps, values : list of array
        One array of shape (steps + 1,) for each model. Values within rounding of the minimum are NaN.
    minimum : float
        The smallest objective of all models, or the given one.
    what, by : str
        "objective" or "gradient"; "step" or "seconds".
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> models = [mc.LogisticRegression(solver=s).fit(X, X[:, 0] > 0) for s in ("newton", "lbfgs")]
    >>> shown = mc.plot.Convergence.from_estimators(models)
    >>> shown.labels, [len(v) - 1 for v in shown.values] == [m.n_iter_ for m in models]
    (['newton', 'lbfgs'], True)
    >>> matplotlib.pyplot.close("all")
    """

    labels: list[str]
    steps: list[Matrix]
    values: list[Matrix]
    minimum: float
    what: str
    by: str

    @classmethod
    def from_estimators(
        cls,
        estimators: Any,
        *,
        labels: Sequence[str] | None = None,
        what: str = "objective",
        by: str = "step",
        minimum: float | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The traces of one model, or of several models of the same problem.

        Parameters
        ----------
        estimators
            A fitted model with `trace_`, several of them, or a dictionary by label.
        labels : sequence of str or None
            One for each model; by default the names of their solvers.
        what : str
            "objective", above its minimum; or "gradient", its norm.
        by : str
            "step" or "seconds".
        minimum : float or None
            The minimum of the objective, if a better one is known than that of the best of these models.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        for value, choices, name in ((what, ("objective", "gradient"), "what"), (by, ("step", "seconds"), "by")):
            if value not in choices:
                raise InvalidInput(
                    f"`{name}` must be '{choices[0]}' or '{choices[1]}'", got=repr(value), advice="Choose one of them."
                )
        if isinstance(estimators, Mapping):
            labels, estimators = list(map(str, estimators)), list(estimators.values())
        models = list(estimators) if isinstance(estimators, (list, tuple)) else [estimators]
        if not models:
            raise InvalidInput("`estimators` must hold at least one model", got="none", advice="Pass a fitted model.")
        for model in models:
            check_is_fitted(model)
            if not hasattr(model, "trace_"):
                raise InvalidInput(
                    "A model must have a trace of its steps, `trace_`",
                    got=type(model).__name__,
                    advice="Pass mc.LogisticRegression() or mc.KernelGLM(); least squares has one step.",
                )
        traces = [model.trace_ for model in models]
        names = [str(getattr(m, "solver", type(m).__name__)) for m in models] if labels is None else list(labels)
        if len(names) != len(models):
            raise InvalidInput(
                "`labels` must hold one label for each model",
                got=f"{len(names)} for {len(models)}",
                advice="Pass one for each, or omit `labels`.",
            )
        lowest = min(float(np.min(t.objective)) for t in traces) if minimum is None else float(minimum)
        if what == "gradient":
            values = [np.asarray(t.gradient, dtype=np.float64) for t in traces]
        else:
            rounding = ROUNDING * max(abs(lowest), 1e-300)
            values = [np.where(t.objective - lowest > rounding, t.objective - lowest, np.nan) for t in traces]
        steps = [np.arange(len(t), dtype=np.float64) if by == "step" else np.asarray(t.seconds) for t in traces]
        return cls(names, steps, values, lowest, what, by).plot(ax, **style)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """The trace of one model; options as for `from_estimators`."""
        return cls.from_estimators([estimator], **options)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax) as (ax, palette):
            colours, lines = palette.series, ("-", "--", "-.", ":")
            for i, (label, x, v) in enumerate(zip(self.labels, self.steps, self.values)):
                few = len(x) <= 40
                ax.plot(
                    x, v, color=colours[i % len(colours)], ls=lines[i // len(colours) % len(lines)],
                    marker="o" if few else None, ms=4, lw=1.5, label=f"{label}, {len(x) - 1} steps",
                )  # fmt: skip
            longest = max(len(x) for x in self.steps)
            if self.by == "step" and longest > 60 and min(len(x) for x in self.steps) < longest / 8:
                ax.set_xscale("symlog", linthresh=10)
                ax.set_xlim(0, None)
            ax.set(yscale="log", xlabel=self.by)
            ax.set_ylabel("objective above its minimum" if self.what == "objective" else "norm of the gradient")
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)
