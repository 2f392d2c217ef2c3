"""The free parameters of a kernel, with the bounds and the starts that the data suggests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.algebra.entrywise import Exp
from mercer.kernels.algebra.parameters import Unit
from mercer.kernels.base import Similarity
from mercer.kernels.tables.additive import Additive
from mercer.kernels.vectors.dot import Linear
from mercer.tuning.loo import Matrix

WIDTHS = ("length", "taxicab")
"""The units of widths."""
WIDEST, NARROWEST = 50.0, 0.1
"""Widths above this multiple of the data's diameter, or below this share of its spacing, are equivalent."""
WIDEST_COLUMN = 1e4
"""The same multiple for the width of one column among several, which matters much longer."""
NARROWEST_STEPS: dict[Unit | None, float] = {"length": 0.5, "taxicab": 1.0}
"""The narrowest width of a column of equally spaced values, in their steps. Narrower ones fit the same values, but
between two of them the function falls back to 0: for a Gaussian with half a step, by 3 % of the values; for the
Laplacian kernel with one step, by 11 %."""


SPACED = 1e-6
"""Distances that are a multiple of the smallest one up to this share of it are equal steps."""


class Slot(NamedTuple):
    """One free parameter: its name, its node, its field and column there, and the points that the node sees.

    `exponent` says whether the node is inside an exponential, where a factor is not a variance.
    """

    name: str
    owner: Similarity
    field: str
    column: int | None
    points: Points
    exponent: bool

    @property
    def unit(self) -> Unit | None:
        """The quantity of the data that the parameter is compared with, if there is one."""
        return self.owner.units.get(self.field)

    @property
    def lengths(self) -> Lengths:
        """The distances that a width is compared with: in its column, or in all columns together."""
        return lengths(self.points, self.column, taxi=self.unit == "taxicab")


def slots(kernel: Similarity, points: Points, prefix: str = "", exponent: bool = False) -> list[Slot]:
    """The free parameters in the order of `theta`."""
    all_slots = []
    for field, column in kernel.own_parameters:
        name = field if column is None else f"{field}[{column}]"
        all_slots.append(Slot(prefix + name, kernel, field, column, points, exponent))
    viewed = kernel.seen_by_parts(points)
    for name, child in kernel.children.items():
        if isinstance(child, Similarity):
            all_slots += slots(child, viewed, f"{prefix}{name}__", exponent or isinstance(kernel, Exp))
    return all_slots


class Lengths(NamedTuple):
    """Distances in a data set: between neighbours, the median, and the largest. Zero if all points coincide."""

    spacing: float
    median: float
    largest: float


def lengths(points: Points, column: int | None = None, taxi: bool = False, sample: int = 400) -> Lengths:
    """Distances between some of the points, in all columns together or in one; `taxi` for ‖x − z‖₁."""
    n = points.n
    X = points.vectors()[np.linspace(0, n - 1, min(n, sample)).astype(int)]
    if column is not None:
        X = X[:, [column]]
    if sp.issparse(X):
        norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        D = np.sqrt(np.maximum(norms[:, None] + norms - 2 * (X @ X.T).toarray(), 0.0))  # exact enough for a bound
    else:
        from scipy.spatial.distance import cdist

        X = np.asarray(X, dtype=np.float64)
        D = cdist(X, X, "cityblock" if taxi else "euclidean")
    apart = D[np.triu_indices(len(D), 1)]
    apart = apart[apart > 0]
    if not apart.size:
        return Lengths(0.0, 0.0, 0.0)
    if not np.isfinite(apart).all():
        raise InvalidInput(
            "Distances between points must fit float64",
            got=f"numbers up to {float(abs(X).max()):.3g}, whose squares overflow",
            advice="Rescale the columns (for example to unit variance).",
        )
    np.fill_diagonal(D, np.inf)
    D[D == 0] = np.inf
    nearest = D.min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    spacing = float(np.quantile(nearest, 0.05)) * len(D) / n
    return Lengths(spacing, float(np.median(apart)), float(apart.max()))


def narrowest(kernel: Similarity, points: Points) -> Matrix:
    """The logarithm of the narrowest sensible value of each free parameter, −∞ without one, shape (p,).

    A width of a column of equally spaced values, such as whole numbers, must not be much narrower than their step:
    leave-one-out sees only these values, and cannot prevent a function that falls to 0 between them.

    >>> import numpy as np, mercer as mc
    >>> X = np.column_stack([np.arange(40) % 5, np.random.default_rng(0).normal(size=40)])
    >>> np.exp(narrowest(mc.Gaussian([1.0, 1.0]), mc.Gaussian(1.0).prepare(X)))
    array([0.5, 0. ])
    """
    low = np.full(len(kernel.theta), -np.inf)
    steps: dict[Any, float] = {}
    for i, slot in enumerate(slots(kernel, points)):
        unit = "length" if isinstance(slot.owner, Additive) else slot.unit
        if unit not in WIDTHS:
            continue
        key = (id(slot.points), slot.column)
        if key not in steps:
            X = slot.points.encoded(slot.owner)
            one = isinstance(X, np.ndarray) and X.ndim == 2 and (slot.column is not None or X.shape[1] == 1)
            steps[key] = step_of(X[:, slot.column or 0]) if one else 0.0
        if steps[key] > 0:
            low[i] = np.log(NARROWEST_STEPS[unit] * steps[key])
    return low


def step_of(values: NDArray[np.float64]) -> float:
    """The distance of neighbouring values, if at least three equally spaced ones repeat; else 0.

    Two values are as far apart as two categories: there is nothing between them.

    >>> step_of(np.array([3.0, 1.0, 2.0, 5.0, 3.0, 2.0, 1.0, 5.0])), step_of(np.array([0.0, 0.1, 0.25, 0.3]))
    (1.0, 0.0)
    """
    known = values[np.isfinite(values)]
    different = np.unique(known)
    if len(different) < 3 or 2 * len(different) > len(known):
        return 0.0
    gaps = np.diff(different)
    step = float(gaps.min())
    multiples = gaps / step
    return step if bool((np.abs(multiples - np.round(multiples)) < SPACED).all()) else 0.0


class Range(NamedTuple):
    """The bounds of a parameter and its start, all as logarithms."""

    low: float
    high: float
    start: float


def ranges(kernel: Similarity, points: Points, y: Matrix) -> list[Range]:
    """Bounds and a start for every free parameter, from the data: lengths for widths, variances for scales."""
    variance = float(y.var(axis=0).mean()) or float((y**2).mean()) or 1.0
    cache: dict[Any, Lengths] = {}
    all_ranges = []
    least = narrowest(kernel, points)
    for slot, theta, bounds, floor in zip(slots(kernel, points), kernel.theta, kernel.bounds, least):
        low, high, start = float(bounds[0]), float(bounds[1]), float(theta)
        if slot.unit in WIDTHS:
            key = (id(slot.points), slot.column, slot.unit)
            if key not in cache:
                cache[key] = slot.lengths
            size = cache[key]
            if size.largest > 0:
                # With one width per column, the distances in d columns add up.
                many = 1.0 if slot.column is None else np.sqrt(len(getattr(slot.owner, slot.field)))
                widest = WIDEST if slot.column is None else WIDEST_COLUMN
                low, high = np.log(NARROWEST * size.spacing), np.log(widest * size.largest)
                start = np.log(size.median * many)
        elif slot.unit == "period":
            size = slot.lengths
            if size.largest > 0:
                low, high = np.log(2 * size.spacing), np.log(2 * size.largest)
        elif slot.unit == "factor" and slot.exponent:
            low, high = start - np.log(100.0), start + np.log(100.0)
        elif slot.unit == "factor":
            start = np.log(variance / mean_diagonal(slot.owner.replace(**{slot.field: 1.0}), slot.points))
            low, high = start - np.log(1e8), start + np.log(1e6)
        elif slot.unit == "product":
            start = np.log(mean_diagonal(Linear(), slot.points))
            low, high = start - np.log(1e6), start + np.log(1e6)
        low = max(low, float(floor))
        low, high = min(low, float(theta)), max(high, float(theta))
        all_ranges.append(Range(float(low), float(high), float(np.clip(start, low, high))))
    return all_ranges


def mean_diagonal(kernel: Similarity, points: Points) -> float:
    """The mean of k(x, x), or 1 if it is not a positive number."""
    size = float(np.mean(kernel.diag(points)))
    return size if size > 0 and np.isfinite(size) else 1.0


def held_names(names: list[str], hold: Iterable[str]) -> NDArray[np.bool_]:
    """Which parameters are held, by name."""
    held = np.zeros(len(names), dtype=bool)
    for entry in hold if np.iterable(hold) and not isinstance(hold, str) else [hold]:
        forms = [entry, entry.removeprefix("kernel__")] if isinstance(entry, str) else []
        matches = [any(name == form or name.startswith(form + "[") for form in forms) for name in names]
        if not any(matches):
            raise InvalidInput(
                "`hold` must name free parameters", got=repr(entry), advice=f"Choose from {', '.join(names)}."
            )
        held |= matches
    return held
