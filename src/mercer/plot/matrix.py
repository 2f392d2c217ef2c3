"""A Gram matrix as a heat map, and its eigenvalues: which points are similar, and how many directions they span."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.plot.looks import Display, beside, canvas, caption, legend, numbers
from mercer.words import brief

Matrix = NDArray[np.float64]

OPTIMAL = 400
"""Up to this number of points the leaves of a hierarchy are in the optimal order, whose cost grows with the cube."""
MOSTLY = 0.995
"""The share of off-diagonal values below the last colour, and above the first."""
FEW = 0.02
"""If more than this share of the eigenvalues is lost in rounding, the plot shows it."""
ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(eq=False, repr=False)
class GramHeatMap(Display):
    """The Gram matrix, with its points ordered so that similar ones are neighbours.

    Attributes
    ----------
    K : array
        The matrix in that order, shape (n, n).
    order : array
        Row i of the plot is row order[i] of the data.
    labels : array
        The classes in the order in which they are shown; empty without labels.
    boundaries : array
        The first positions of the classes and the end, shape (classes + 1,); empty without labels.
    kernel : str
        The kernel as text.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1]])
    >>> mc.plot.GramHeatMap.from_kernel(mc.Gaussian(1.0), X, [0, 1, 0, 1]).boundaries
    array([0, 2, 4])
    >>> matplotlib.pyplot.close("all")
    """

    K: Matrix
    order: NDArray[np.int64]
    labels: NDArray[Any]
    boundaries: NDArray[np.int64]
    kernel: str = ""

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        X: Any,
        labels: Any = None,
        *,
        order: str = "hierarchical",
        most: int = 1000,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The heat map of k on these points.

        Parameters
        ----------
        kernel : Kernel, rule
            A kernel or weight, or a rule X → kernel.
        X : array, frame or list of objects
            n objects of any kind.
        labels
            A class for each object. Classes are shown one after the other, each ordered by itself.
        order : str
            "hierarchical" (average linkage of distances in feature space), "spectral" (the Fiedler vector of the
            similarities), or "given".
        most : int
            The largest number of points; of more points, this many are shown, at even steps.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        if order not in ("hierarchical", "spectral", "given"):
            raise InvalidInput(
                "`order` must be 'hierarchical', 'spectral' or 'given'", got=repr(order), advice="Choose one of them."
            )
        kernel = _resolved(kernel, X)
        names = None if labels is None else np.asarray(labels).ravel()
        if names is not None and len(names) != length(X):
            raise InvalidInput(
                "`labels` must hold one class per point",
                got=f"{len(names)} for {length(X)} points",
                advice="Pass the labels of these points.",
            )
        shown = _even(length(X), most)
        K = np.asarray(gram.of(kernel, take(X, shown)).dense(), dtype=np.float64)
        arrange = {"hierarchical": _hierarchical, "spectral": _spectral, "given": _given}[order]
        if names is None:
            places, classes, boundaries = arrange(K), np.empty(0), np.empty(0, dtype=np.int64)
        else:
            places, classes, boundaries = _by_class(K, names[shown], arrange)
        heat_map = cls(K[np.ix_(places, places)], shown[places], classes, boundaries, brief(kernel))
        return heat_map.plot(ax, **style)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, labels: Any = None, **options: Any) -> Self:
        """The heat map of a fitted model's kernel; options as for `from_kernel`."""
        return cls.from_kernel(_kernel_of(estimator), X, labels, **options)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax, (6.0, 5.2), square=True) as (ax, palette):
            low, high, beyond = self._range()
            colours = palette.signs() if low < 0 else palette.amounts()
            picture = ax.imshow(self.K, cmap=colours, interpolation="antialiased", vmin=low, vmax=high)
            beside(ax, picture, "k(x, z)", extend=beyond)
            width = 1.1 if len(self.labels) <= 12 else 0.4
            for b in self.boundaries[1:-1] - 0.5:
                ax.axhline(b, color=palette.gold, lw=width)
                ax.axvline(b, color=palette.gold, lw=width)
            if len(self.labels):
                middle = (self.boundaries[:-1] + self.boundaries[1:] - 1) / 2
                words = [caption(str(label), 14) for label in self.labels]
                ax.set_yticks(middle, words)
                across = sum(len(word) for word in words) > 55
                ax.set_xticks(middle, words, rotation=90 if across else 0)
                ax.tick_params(length=0)
            else:
                ax.set(xlabel="points, ordered", ylabel="points, ordered")
            for spine in ax.spines.values():
                spine.set_visible(False)
            ax.set_title(caption(self.kernel, 58) if title is None else title)
        return self._drawn(ax)

    def _range(self) -> tuple[float, float, str]:
        """The values of the first and the last colour, and whether there are values beyond them.

        The diagonal does not count: points are most similar to themselves, and few colours would be left for others.
        """
        n = len(self.K)
        others = self.K[~np.eye(n, dtype=bool)] if n > 1 else self.K.ravel()
        low, high = (float(end) for end in np.quantile(others, [1 - MOSTLY, MOSTLY]))
        smallest, largest = float(self.K.min()), float(self.K.max())
        if smallest < -0.02 * max(largest, -smallest):
            high = max(high, -low, np.finfo(np.float64).tiny)
            low = -high
        else:
            low = 0.0 if low < 0.3 * high else low
            high = high if high > low else max(largest, low + 1.0)
        beyond = (smallest < low - 1e-9 * high, largest > high + 1e-9 * high)
        return low, high, {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[beyond]


@dataclass(eq=False, repr=False)
class EigenvalueSpectrum(Display):
    """The eigenvalues of a Gram matrix, and how many of them count at a penalty alpha.

    A fit with penalty alpha follows the direction of λⱼ by the factor λⱼ/(λⱼ + alpha); the sum of these factors is its
    degrees of freedom.

    Attributes
    ----------
    eigenvalues : array
        The eigenvalues, descending, shape (n,); rounding may make some negative.
    alphas, degrees_of_freedom : array
        Penalties and Σ λ/(λ + alpha) at each, shape (a,).
    floor : float
        Smaller eigenvalues than this, n ε λ₁, are rounding.
    kernel : str
        The kernel as text.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.eye(3)
    >>> spectrum = mc.plot.EigenvalueSpectrum.from_kernel(mc.Linear(), X, alpha=1.0)
    >>> spectrum.eigenvalues, spectrum.degrees_of_freedom
    (array([1., 1., 1.]), array([1.5]))
    >>> matplotlib.pyplot.close("all")
    """

    eigenvalues: Matrix
    alphas: Matrix
    degrees_of_freedom: Matrix
    floor: float
    kernel: str = ""

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, *, alpha: Any = None, most: int = 3000, ax: Any = None, **style: Any
    ) -> Self:
        """The spectrum of k on these points.

        Parameters
        ----------
        kernel : Kernel, rule
            A kernel, or a rule X → kernel.
        X : array, frame or list of objects
            n objects of any kind.
        alpha
            A penalty > 0 to mark, or several; or None.
        most : int
            More points than this are refused, since the cost of eigenvalues grows with the cube.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        alphas = np.atleast_1d(numbers([] if alpha is None else alpha, "`alpha`")).ravel()
        if not (np.isfinite(alphas) & (alphas > 0)).all():
            raise InvalidInput("`alpha` must be > 0", got=repr(alpha), advice="Pass a penalty, or omit `alpha`.")
        if length(X) > most:
            raise InvalidInput(
                f"X must have at most {most} points for a spectrum",
                got=f"{length(X)}",
                advice="Pass a sample of the rows, or raise `most`.",
            )
        kernel = _resolved(kernel, X)
        K = gram.of(kernel, X).fresh(np.float64)
        values = sla.eigvalsh(K, overwrite_a=True)[::-1].copy()
        positive = np.maximum(values, 0.0)
        freedom = (positive / (positive + alphas[:, None])).sum(axis=1)
        floor = len(values) * ROUNDING * float(np.abs(values).max())
        return cls(values, alphas, freedom, floor, brief(kernel)).plot(ax, **style)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, alpha: Any = "fitted", **options: Any) -> Self:
        """The spectrum of a fitted model's kernel, with the model's alpha marked if it has one."""
        kernel = _kernel_of(estimator)
        if isinstance(alpha, str) and alpha == "fitted":
            fitted = getattr(estimator, "alpha_", getattr(estimator, "alpha", None))
            alphas = np.unique(np.asarray(fitted, dtype=object))
            alpha = [a for a in alphas if isinstance(a, (int, float)) and a > 0] or None
        return cls.from_kernel(kernel, X, alpha=alpha, **options)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax) as (ax, palette):
            n = len(self.eigenvalues)
            j = np.arange(1, n + 1)
            seen = self.eigenvalues > self.floor
            top = float(self.eigenvalues[0]) if self.eigenvalues[0] > 0 else 1.0
            ax.plot(j[seen], self.eigenvalues[seen], "o-" if n <= 60 else "-", color=palette.blue, ms=4, label="λⱼ")
            if n - seen.sum() > FEW * n:
                noise = ~seen & (self.eigenvalues > 0)
                ax.plot(j[noise], self.eigenvalues[noise], ".", color=palette.grey, ms=3)
                low = self.floor * 1e-3
                ax.axhspan(low, self.floor, color=palette.grey, alpha=0.18, lw=0, label="rounding")
                ax.set_ylim(low, 4 * top)
            colours = (palette.red, palette.gold, palette.green, palette.violet)
            for i, (alpha, freedom) in enumerate(zip(self.alphas, self.degrees_of_freedom)):
                colour = colours[i % len(colours)]
                label = f"alpha = {alpha:.3g}: {freedom:.1f} degrees of freedom"
                ax.plot([1, max(freedom, 1)], [alpha, alpha], color=colour, lw=1.2, ls="--", label=label)
                ax.axvline(freedom, color=colour, lw=1.2, ls=":")
            ax.set(yscale="log", xlabel="j", ylabel="eigenvalue λⱼ")
            if n > 200:
                ax.set_xscale("log")
            else:
                ax.xaxis.get_major_locator().set_params(integer=True)
            ax.set_title(caption(self.kernel, 58) if title is None else title)
            legend(ax)
        return self._drawn(ax)


def _resolved(kernel: Any, X: Any) -> Similarity:
    if not isinstance(kernel, Similarity) and callable(kernel) and not isinstance(kernel, type):
        kernel = kernel(X)
    if not isinstance(kernel, Similarity):
        raise InvalidInput(
            "`kernel` must be a kernel, or a rule X → kernel",
            got=getattr(kernel, "__name__", type(kernel).__name__),
            advice="Pass an instance such as mc.Gaussian(1.0).",
        )
    return kernel


def _kernel_of(estimator: Any) -> Any:
    check_is_fitted(estimator)
    if not hasattr(estimator, "kernel_"):
        raise InvalidInput(
            "The model must have a kernel, `kernel_`",
            got=type(estimator).__name__,
            advice="Pass a kernel and points to from_kernel. For a pipeline pass its last step and transformed points.",
        )
    return estimator.kernel_


def _even(n: int, most: int) -> NDArray[np.int64]:
    """At most `most` of n positions, at even steps."""
    if most < 1 or not n:
        raise InvalidInput(
            "There must be points to show, and `most` must be ≥ 1",
            got=f"{n} points, most={most}",
            advice="Pass more points, or a larger `most`.",
        )
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.int64)


def _by_class(
    K: Matrix, labels: NDArray[Any], arrange: Callable[[Matrix], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64]]:
    """Classes one after the other, each arranged: positions, classes, and their boundaries."""
    try:
        classes, number = np.unique(labels, return_inverse=True)
    except TypeError:  # labels of several types: in the order of their texts
        classes, number = np.unique(np.array([str(label) for label in labels]), return_inverse=True)
    parts = []
    for c in range(len(classes)):
        members = np.flatnonzero(number == c)
        parts.append(members[arrange(K[np.ix_(members, members)])])
    ends = np.cumsum([0, *(len(part) for part in parts)])
    return np.concatenate(parts), classes, ends


def _given(K: Matrix) -> NDArray[np.int64]:
    return np.arange(len(K))


def _hierarchical(K: Matrix) -> NDArray[np.int64]:
    """The order of the leaves of average linkage by ‖φ(x) − φ(z)‖."""
    if len(K) < 3:
        return np.arange(len(K))
    d = np.diag(K)
    distances = np.sqrt(np.maximum(d[:, None] + d - K - K.T, 0.0))
    np.fill_diagonal(distances, 0.0)
    tree = hierarchy.linkage(squareform(distances, checks=False), "average", optimal_ordering=len(K) <= OPTIMAL)
    return np.asarray(hierarchy.leaves_list(tree), dtype=np.int64)


def _spectral(K: Matrix) -> NDArray[np.int64]:
    """The order along the second eigenvector of the normalised similarities, which separates the best graph cut."""
    if len(K) < 3:
        return np.arange(len(K))
    W = K - min(float(K.min()), 0.0)
    roots = 1.0 / np.sqrt(np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny))
    n = len(W)
    _, vectors = sla.eigh(roots[:, None] * W * roots, subset_by_index=[n - 2, n - 2])
    return np.argsort(roots * vectors[:, 0], kind="stable")
