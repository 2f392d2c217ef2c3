"""Rootograms: do counts occur as often as their predicted distribution says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.judging.counts import CountFit
from mercer.plot.looks import Display, canvas, caption, legend
from mercer.validation import check_choice

LETTERS = 44
"""The number of characters for which there is room below the axis."""


@dataclass(eq=False, repr=False)
class Rootogram(Display):
    """A hanging rootogram: bars of the observed frequencies hang from the curve of the expected ones.

    Square roots make small frequencies visible, and give all of them the same standard error, ½. A bar that ends above
    the line at 0 means that the count is rarer than expected, and one that ends below it that the count is more
    frequent. Bars outside the band deviate by more than chance explains.

    Attributes
    ----------
    fit : CountFit
        The counts beside their predicted means.
    kind : str
        "poisson", or "negative binomial" for the distribution with the observed dispersion.
    name : str
        The name of the target.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(1, 5, 500)
    >>> root = mc.plot.Rootogram.from_predictions(rng.poisson(mean), mean)
    >>> abs(root.fit.dispersion - 1) < 0.2
    True
    >>> matplotlib.pyplot.close("all")
    """

    fit: CountFit
    kind: str = "poisson"
    name: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, kind: str = "poisson", ax: Any = None, **style: Any
    ) -> Self:
        """The predicted means of a fitted regressor beside counts y of held-out rows; `kind` as above."""
        check_is_fitted(estimator)
        if hasattr(estimator, "classes_"):
            raise InvalidInput(
                "A rootogram needs a regressor", got=type(estimator).__name__, advice="Draw Reliability instead."
            )
        name = str(getattr(y, "name", None) or "")
        return cls.from_predictions(y, estimator.predict(X), kind=kind, name=name, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls, y: Any, means: Any, *, kind: str = "poisson", name: str = "", ax: Any = None, **style: Any
    ) -> Self:
        """Counts y and their means by any model, both of shape (n,)."""
        check_choice(kind, "kind", ("poisson", "negative binomial"))
        return cls(CountFit.of(y, means), kind, name).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax, (6.0, 4.6)) as (ax, palette):
            fit = self.fit
            expected = np.sqrt(fit.poisson if self.kind == "poisson" else fit.overdispersed)
            bottom = expected - np.sqrt(fit.observed)
            at = np.arange(len(expected))
            ax.axhspan(-1.0, 1.0, color=palette.grey, alpha=0.2, lw=0, label="95 % if the distribution is right")
            ax.bar(at, expected - bottom, bottom=bottom, width=0.85, color=palette.blue, alpha=0.55, label="observed")
            ax.plot(at, expected, "o-", color=palette.red, ms=3, lw=1.2, zorder=3, label=f"expected ({self.kind})")
            if self.kind == "poisson" and np.isfinite(fit.theta):
                label = "expected (negative binomial of this dispersion)"
                ax.plot(at, np.sqrt(fit.overdispersed), "--", color=palette.gold, lw=1.5, zorder=3, label=label)
            ax.axhline(0.0, color=palette.ink, lw=1)
            ends = np.append(fit.starts[1:] - 1, -1)
            words = [f"≥ {a:,}" if b < 0 else f"{a:,}" if a == b else f"{a:,}–{b:,}" for a, b in zip(fit.starts, ends)]
            most = max(2, LETTERS // max(map(len, words)))
            shown = np.unique(np.linspace(0, len(at) - 1, min(len(at), most)).astype(int))
            ax.set_xticks(shown, [words[k] for k in shown])
            ax.set(xlabel=caption(self.name, 40) or "count", ylabel="square root of the number of rows")
            ax.set_title(f"dispersion {fit.dispersion:.2f} ± {fit.error:.2f}" if title is None else title)
            legend(ax, below=True)
        return self._drawn(ax)
