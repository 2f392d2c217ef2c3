"""The search of an automatic model: target, columns, kernel, loss and the last fit, one after the other."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.data.points import Points, is_frame, take
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.median import median_gaussian
from mercer.models.auto.candidates import candidates, searchable, widened
from mercer.models.auto.plan import CENTRES, ROWS, Plan
from mercer.models.auto.race import Entry, Problem, race
from mercer.models.auto.record import Record
from mercer.models.base import Matrix, resolve_kernel
from mercer.tuning.search import brief, ranges

if TYPE_CHECKING:
    from mercer.models.auto.model import AutoModel

# Rows that say what the columns are.
SEEN = 20_000


@contextmanager
def quietly() -> Iterator[None]:
    """Fits of candidates that stop early are no news: the final one says so in its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class Cost(NamedTuple):
    """Of a fit.

    Attributes
    ----------
    evaluations : of the criterion on as many rows, that cost as much as an exact fit.
    steps : of Newton's method on centres.
    """

    evaluations: float
    steps: float


class Search:
    """One search for a kernel and a loss, and the last fit.

    Attributes
    ----------
    points, y, weights : n points, their targets or labels, and weights or None.
    best, loss : the kernel and the loss so far.
    fitted, rows, converged : the last model that was fitted with these, if any, its rows (None for all), and whether
        its solver came to an end.
    freedom, enough : of widths, and of rows, as in `Problem`.
    fewest : rows that a sample has at least.
    """

    def __init__(self, model: AutoModel, points: Points, y: NDArray[Any], weights: Matrix | None) -> None:
        self.clock, self.record = model._clock(), Record()
        self.plan = Plan(self.clock.seconds, len(y))
        self.model, self.points, self.y, self.weights = model, points, y, weights
        self.rng = np.random.default_rng(model.random_state)
        self.loss: str = "squared"
        self.fitted: Any = None
        self.rows: NDArray[np.int64] | None = None
        self.converged = True
        self.best: Entry | None = None
        # A kernel that was given may ask for columns by name.
        self.plain = searchable(points) if model.kernel is None else points
        self.units: Matrix | None = None
        self.problem: Problem | None = None
        self.candidates: dict[str, Kernel] = {}

    @abstractmethod
    def look(self) -> None:
        """Say what the target is."""

    @abstractmethod
    def targets(self) -> Matrix:
        """What least squares fits in the race, (n, t)."""

    @abstractmethod
    def too_few(self) -> str:
        """Why kernels cannot be compared, or nothing."""

    @abstractmethod
    def losses(self) -> None:
        """Choose the loss."""

    @abstractmethod
    def unfitted(self) -> tuple[Any, Cost]:
        """The chosen model, and what its fit costs."""

    def starts(self) -> dict[str, Kernel]:
        """The kernels to begin with: those that suit the columns, or the one that was given."""
        own, n = self.model.kernel, len(self.y)
        if own is None:
            began = time.perf_counter()
            found, self.units, why = candidates(self.plain.take(self.order()[:SEEN]) if n > SEEN else self.plain)
            kernels = f"{len(found)} kernels" if len(found) > 1 else "1 kernel"
            self.record.add("Columns", f"{kernels} to try", why, began=began)
            return found
        given = resolve_kernel(own, self.plain)
        found = {"given": given}
        if len(given.theta):
            given.touch(self.plain)
            around = ranges(given, self.plain, np.array([[-1.0], [1.0]]))
            found["given, with widths from the data"] = given.with_theta(np.array([r.start for r in around]))
        self.record.add("Columns", "the kernel that was given", short(given))
        return found

    def run(self) -> Any:
        """The fitted model; after an interrupt `in_haste` has one at once."""
        self.look()
        starts, few = self.starts(), self.too_few()
        if few:
            name, kernel = next(iter(starts.items()))
            kernel = kernel if self.units is None else widened(kernel, self.units)
            self.best = Entry.of(name, kernel, self.plain)
            self.record.add("Kernel", name, few)
        else:
            roots = None if self.weights is None else np.sqrt(self.weights)
            d = 0 if self.units is None else len(self.units)
            names = tuple(map(str, self.points.raw.columns if is_frame(self.points.raw) else range(d)))
            problem = Problem(self.plain, self.targets(), roots, self.freedom, self.enough, self.units, names)
            self.problem, self.candidates = problem, starts
            self.best = race(starts, problem, self.plan, self.clock, self.rng, self.record, self.better)
            self.losses()
        return self.final()

    freedom, enough = 0.1, 1000
    fewest = 0

    def better(self, entry: Entry) -> None:
        self.best = entry

    def sample(self) -> NDArray[np.int64]:
        """Rows to compare losses on."""
        n = len(self.y)
        most = max(ROWS, self.fewest)
        return np.arange(n) if n <= 1.25 * most else np.sort(self.order()[:most])

    def order(self) -> NDArray[np.int64]:
        """The rows in an order by chance, of which the first are a sample."""
        return self.rng.permutation(len(self.y))

    # -- the last fit ---------------------------------------------------------------------------------------------

    def fit(self, index: NDArray[np.int64] | None, more: dict[str, Any]) -> Any:
        """The chosen model fitted to these rows, or to all."""
        model, _ = self.unfitted()
        X, y, w = self.points.raw, self.y, self.weights
        if index is not None:
            X, y, w = take(X, index), y[index], None if w is None else w[index]
        self.rows = index
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.fitted = model.set_params(**more).fit(X, self.scaled(y), w)
        others = [warning for warning in caught if not issubclass(warning.category, ConvergenceWarning)]
        self.converged = len(others) == len(caught)
        for one in others:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return self.fitted

    def scaled(self, y: NDArray[Any]) -> NDArray[Any]:
        """The targets as the chosen model fits them."""
        return y

    def final(self) -> Any:
        """A fit to all rows: exactly where the plan allows it; else in stages, on more and more rows and centres."""
        began, n = time.perf_counter(), len(self.y)
        order = self.order()
        kept = self.kept(order[n - n // 20 :])
        n -= len(kept)
        order = order[:n]
        model, cost = self.unfitted()
        self.clock.report(f"last fit, of {n:,} rows")
        known = model.get_params()
        all_rows = None if len(kept) == 0 else np.sort(order)
        stages: tuple[tuple[int, int], ...] = ()
        if "n_centers" in known and n > 2 * CENTRES:
            exact = self.affords(cost.evaluations)
            stages = replace(self.plan, n=n).stages(cost.steps, self.fewest)
            stages = stages if not exact else stages[:1] if self.clock.late() else ()
        if not stages:
            rows, made = n, self.fit(all_rows, {"max_time": max(self.clock.left, 0.1)} if "max_time" in known else {})
            if not self.converged:  # because of `max_time`, or of numbers: the clock knows
                self.clock.late()
        else:
            self.before(np.sort(order))
            rows, made = 0, None
            for wider, centres in stages:
                if made is not None and self.clock.late():
                    break
                rows = wider
                made = self.fit(all_rows if rows == n else np.sort(order[:rows]), {"n_centers": centres})
        self.after(kept)
        rows, made = (rows if self.fitted is made else n), self.fitted
        what = f"fitted to all {n:,} rows" if rows == len(self.y) else f"fitted to {rows:,} of {len(self.y):,} rows"
        if len(kept):
            what += f", its probabilities to {len(kept):,} others"
        self.record.add("Solver", type(made).__name__, f"{what}: {made.status_}", began=began)
        return made

    def affords(self, evaluations: float) -> bool:
        """Whether the plan allows an exact fit of all rows that costs this many evaluations in the race."""
        return self.plan.affords_exact(evaluations)

    def before(self, rows: NDArray[np.int64]) -> None:
        """What else is fitted to these rows, where an exact fit is not affordable."""

    def kept(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of these rows, those that the last fit leaves out."""
        return index[:0]

    def after(self, kept: NDArray[np.int64]) -> None:
        """What is learnt from the rows that were left out of the last fit, or from the fit without each row."""

    def in_haste(self) -> Any:
        """What can be had at once, after an interrupt."""
        self.clock.stop = "interrupt"
        if self.fitted is None or self.best is None:
            if self.best is None:
                self.best = Entry.of("Gaussian", median_gaussian(self.plain), self.plain)
            index = self.sample()
            made = self.fit(index, {})
            made.status_ = f"interrupted: fitted to {len(index)} of {len(self.y)} rows; {made.status_}"
        else:
            made = self.fitted
            made.status_ = f"interrupted before the last fit; {made.status_}"
        self.after(np.empty(0, dtype=np.int64))
        self.record.add("Solver", type(made).__name__, made.status_)
        return made


def short(kernel: Kernel) -> str:
    text = brief(kernel)
    return text if len(text) <= 300 else f"{text[:280]}…"
