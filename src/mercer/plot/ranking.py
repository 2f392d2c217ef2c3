"""The plot of a comparison: models ranked by a score, with intervals and the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.models.judging.comparison import Comparison
from mercer.models.judging.measures import COVERAGE, MEASURES
from mercer.plot.looks import Display, canvas, caption, legend
from mercer.words import seconds

Matrix = NDArray[np.float64]

LINE = 0.42
"""The height of a model's line, in inches."""


@dataclass(eq=False, repr=False)
class Ranking(Display):
    """The scores of several models with their intervals, the best at the top, beside the baseline.

    Attributes
    ----------
    names : list of str
        The models, the best first.
    values, low, high : array
        Their scores and 90 % intervals, shape (k,).
    tied : array
        Which of them are as good as the best, as far as these rows can show.
    seconds : array
        The time of all fits of each model.
    baseline : float
        The score of the baseline.
    measure : str
        The name of the measure.
    how : str
        The rows and folds, in words.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(80, 1))
    >>> ranking = mc.plot.Ranking.from_comparison(mc.compare(X, np.sin(X[:, 0]), ["linear", "ridge"]))
    >>> ranking.names
    ['ridge', 'linear']
    >>> matplotlib.pyplot.close("all")
    """

    names: list[str]
    values: Matrix
    low: Matrix
    high: Matrix
    tied: NDArray[np.bool_]
    seconds: Matrix
    baseline: float
    measure: str
    how: str

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, by: str | None = None, ax: Any = None, **style: Any) -> Self:
        """The models of `mercer.compare` that have a score.

        Parameters
        ----------
        comparison : Comparison
            A result of `mercer.compare`.
        by : str or None
            The measure to show; by default the one that ranks.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        if not isinstance(comparison, Comparison):
            raise InvalidInput(
                "`comparison` must be a result of mc.compare",
                got=type(comparison).__name__,
                advice="Pass mc.compare(X, y).",
            )
        measure = comparison.by if by is None else by
        shown = [(c, score) for c in comparison.contenders if (score := c.score(measure)) is not None]
        if not shown:
            raise InvalidInput(
                f"`by` must be one of {', '.join(map(repr, comparison.measures))}",
                got=repr(measure),
                advice="Pass one of these names.",
            )
        if measure != comparison.by:
            sign = -1.0 if MEASURES[measure].greater_is_better else 1.0
            shown.sort(key=lambda pair: sign * pair[1].value)
        return cls(
            [c.name for c, _ in shown],
            np.array([score.value for _, score in shown]),
            np.array([score.low for _, score in shown]),
            np.array([score.high for _, score in shown]),
            np.array([c.tied and measure == comparison.by for c, _ in shown]),
            np.array([c.seconds for c, _ in shown]),
            shown[0][1].baseline,
            measure,
            comparison.how,
        ).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones. Models that are as good as the best are filled, others are hollow."""
        k = len(self.names)
        with canvas(ax, (6.4, 1.5 + LINE * k)) as (ax, palette):
            place = np.arange(k)[::-1]
            inside = np.isfinite(self.low)
            ax.hlines(place[inside], self.low[inside], self.high[inside], color=palette.blue, lw=2, alpha=0.6,
                      label=f"{100 * COVERAGE:.0f} % interval")  # fmt: skip
            groups = ((self.tied, palette.blue, "as good as the best"), (~self.tied, palette.face, "behind the best"))
            for some, colour, label in groups:
                if some.any():
                    label = label if self.tied.any() else "score"
                    ax.plot(
                        self.values[some], place[some], "o", ms=7, mfc=colour, mec=palette.blue, label=label, zorder=3
                    )
            if np.isfinite(self.baseline):
                ax.axvline(self.baseline, color=palette.grey, lw=1.2, ls="--", label="baseline")
            ax.set_yticks(
                place, [f"{caption(name, 24)} ({seconds(spent)})" for name, spent in zip(self.names, self.seconds)]
            )
            better = "greater" if MEASURES[self.measure].greater_is_better else "smaller"
            ax.set(xlabel=f"{self.measure} ({better} is better)", ylabel="model (time of all its fits)",
                   ylim=(-0.6, k - 0.4))  # fmt: skip
            ax.grid(axis="x", visible=True)
            ax.set_axisbelow(True)
            ax.set_title(caption(self.how, 90) if title is None else title, fontsize=9)
            legend(ax, below=True)
        return self._drawn(ax)
