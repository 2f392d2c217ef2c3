"""Decomposition for the box problem of support vector machines: pairs within a working set, sets within the data.

A small problem is solved on its whole matrix, two variables at a time (`_loops.smo`). For a large one a working set of
some thousand variables is chosen, half of them the worst violators of optimality, the rest the ones that moved last. It
is solved alone, and one product K[:, changed] Δ, which is never stored (`gram.values`), updates the gradient of all
others. Values are float32 if the tolerance allows, the gradient float64; the returned gap is that of float64 values.

A time limit is checked between pairs and, if a kernel is expensive, between its tiles: at most half of the time goes
into values to be stored. If that is not enough, parts of the data that double in size are solved one after the other,
and finally all of it. At the limit the last solved part is returned, at least one working set. The gradient of
variables that were not reached is not known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _loops, memory, threads
from mercer.gram.values import Rows, Streamed, Values
from mercer.problems.box import BoxProblem, Matrix
from mercer.solvers import costs
from mercer.solvers.base import End
from mercer.solvers.working_set import Index, Part

CHUNK = 20_000
"""Pairs between two checks of the clock."""
SAMPLED, SURE = 64, 8.0
"""Rows on which float32 is compared with float64, and the safety factor for the largest observed difference."""
INNER = 0.2
"""A working set is solved to this share of the gap."""
SHRINK = 0.8
"""Each time the gap falls to this share, variables that will hardly leave their bound are dropped until the end."""
TURNS = 8
"""How often the search restarts from the float64 gradient."""
SINGLE = 1e-4
"""Tolerances below this need float64 values."""
MODERATE = 1e-12, 1e12
"""Kernel values whose squares float32 can hold."""
PATIENCE = 50
"""After this many chunks or working sets without a smaller gap only rounding is left."""
UNBOUNDED = 1e10
"""A variable without a bound that is this large, in units of 1/k(x, x), grows for ever."""
LEAST, MOST = 10_000_000, 100
"""The default limit of pairs: this many, or this many for each variable if that is more."""

LATE, CALLER = "stopped at the time limit", "stopped by the caller"


@dataclass(frozen=True)
class Progress:
    """The state of the iteration: pairs moved, the gap, the objective, variables that are not zero, seconds."""

    iteration: int
    gap: float
    objective: float
    support: int
    seconds: float

    @property
    def detail(self) -> str:
        """The figures that only this method has, in words."""
        return f"{self.support} support vectors"


@dataclass(frozen=True, eq=False)
class Optimum:
    """β with its gradient g = Kβ + q, the gap there, and how it was reached.

    Attributes
    ----------
    beta, gradient : β and Kβ + q, shape (N,). The gradient comes from float64 kernel values wherever they decide the
        gap, elsewhere from the values of the iteration. It is NaN where the time limit came first.
    gap : the violation of optimality, from float64 kernel values (at the time limit, from those of the iteration);
        infinite if the gradient is not known.
    objective : ½ βᵀKβ + qᵀβ; NaN if it is not known.
    iterations : pairs that were moved.
    status : how it ended, in words.
    converged : whether the gap is within the tolerance.
    end : why it ended.
    hurried : whether half of the time limit had passed before kernel values were stored, so that they were computed
        when they were needed, which leads to the same optimum by other iterates.
    """

    beta: Matrix
    gradient: Matrix
    gap: float
    objective: float
    iterations: int
    status: str
    converged: bool
    end: End = End.CONVERGED
    hurried: bool = False


class Interrupted(KeyboardInterrupt):
    """An interrupt from outside, with the best iterate so far as `optimum`."""

    def __init__(self, optimum: Optimum) -> None:
        super().__init__("interrupted; the best iterate so far was kept")
        self.optimum = optimum


def solve(
    problem: BoxProblem,
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    max_time: float | None = None,
    progress: Callable[[Progress], bool] | None = None,
    budget: Any = None,
    kept: dict[Any, Any] | None = None,
) -> Optimum:
    """The minimum of a box problem.

    Parameters
    ----------
    problem : the problem to solve.
    tol : the gap at which to stop, measured on float64 values.
    max_iter : the largest number of pairs; by default ten million, or a hundred for each variable if that is more.
    max_time : the limit in seconds, or None; a first working set is always solved.
    progress : called now and then with a `Progress`; False stops there.
    budget : bytes that kernel values may take, or a text such as "2 GB"; by default as in `gram.of`.
    kept : an empty dict, to be passed again with further problems on the same Gram (another C, another linear term, a
        subset of its points by `rows`): it keeps the computed values of the Gram.

    An interrupt (Ctrl-C) raises `Interrupted` with the best iterate.

    >>> import mercer as mc
    >>> from mercer.problems.box import BoxProblem
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> K = mc.gram.of(mc.Linear(), np.array([[-2.0], [-1.0], [1.0], [3.0]]))
    >>> optimum = solve(BoxProblem(K, -y, np.minimum(0.0, 10.0 * y), np.maximum(0.0, 10.0 * y), np.zeros(4)))
    >>> optimum.beta, optimum.objective, optimum.status
    (array([ 0. , -0.5,  0.5,  0. ]), -0.5, 'converged')
    """
    with threads.to_the_end() as stopped:
        run = _Run(problem, tol, max_iter, max_time, progress, budget, {} if kept is None else kept, stopped)
        try:
            return run.solve()
        except KeyboardInterrupt:
            run.status, run.end = "interrupted", End.INTERRUPTED
            raise Interrupted(run.optimum(run.gradient())) from None


class _Run:
    """One call of `solve`: the iterate, and the limits it works within."""

    def __init__(
        self,
        problem: BoxProblem,
        tol: float,
        max_iter: int | None,
        max_time: float | None,
        progress: Callable[[Progress], bool] | None,
        budget: Any,
        kept: dict[Any, Any],
        stopped: Callable[[], bool],
    ) -> None:
        self.stopped = stopped
        self.tol, self.progress, self.budget, self.kept = float(tol), progress, budget, kept
        # `rows` that select some of the Gram's points make a subset; several variables per point do not.
        subset = problem.rows is not None and problem.size <= problem.gram.shape[0]
        self.chosen = problem.rows if subset else None
        self.problem = replace(problem, rows=None) if subset else problem
        unlimited = max_iter is None or max_iter < 0
        self.max_iter = max(LEAST, MOST * problem.size) if unlimited or max_iter is None else max_iter
        self.began = time.perf_counter()
        self.deadline = np.inf if max_time is None else self.began + max_time
        self.beta = np.array(problem.start, dtype=np.float64)
        self.kept_for_subset: dict[Any, Any] = {}
        self.iterations = 0
        self.status = ""
        self.end = End.STALLED
        start, unmoved = self.problem.linear, not self.beta.any()
        # The variables whose gradient at the iterate is known, this gradient, and the objective.
        self.known: tuple[Index, Matrix, float] = (
            (np.arange(problem.size), start, 0.0) if unmoved else (np.zeros(0, dtype=np.int64), np.zeros(0), np.nan)
        )
        self.hurried = False
        self.largest = self._largest()
        self.endless = bool(np.isinf(problem.lower).any() or np.isinf(problem.upper).any())

    def _roots(self) -> Matrix:
        """√|k(x, x)| of every point of the Gram, the scale of its values."""
        if "roots" not in self.kept:
            self.kept["roots"] = np.sqrt(np.abs(self.problem.gram.diag()).astype(np.float64))
        roots: Matrix = self.kept["roots"]
        return roots

    def _largest(self) -> float:
        """The greatest |k(x, x)|."""
        return 1.0 if self.problem.gram.normalised else float(self._roots().max() ** 2) or 1.0

    def sizes(self) -> Matrix:
        """The scale of the error of each variable's gradient: √|k(x, x)| of its point."""
        p = self.problem
        if p.gram.normalised:
            return np.ones(p.size)
        roots = np.maximum(self._roots(), 1e-12 * float(np.sqrt(self.largest)))
        roots = roots if self.chosen is None else roots[self.chosen]
        return roots if p.rows is None else roots[p.rows]

    def values(self, dtype: Any, limit: int) -> Values:
        """Kernel values in this dtype, prepared once for the Gram."""
        key = "values", np.dtype(dtype).itemsize, limit > 0
        whole = self.problem.gram
        if key not in self.kept:
            try:  # for at most half of the time: the other half is for the iteration
                with threads.within(lambda: self.watched and time.perf_counter() > (self.began + self.deadline) / 2):
                    self.kept[key] = whole.values(dtype, limit)
            except threads.OutOfTime:
                self.kept[key], self.kept["hurried"] = Streamed(whole.recomputed(dtype)), True
        self.hurried = "hurried" in self.kept or (self.watched and not whole.keeps)
        values: Values = self.kept[key]
        return values if self.chosen is None else values.part(self.chosen)

    def gradient(self, values: Values | None = None) -> Matrix:
        """Kβ + q, summed in float64, from these values of K, by default float64 ones."""
        p = self.problem
        moved = np.flatnonzero(self.beta)
        if not len(moved):
            return np.array(p.linear, dtype=np.float64)
        values = self.values(np.float64, 0) if values is None else values
        g = np.zeros(values.n)
        values.add(g, p.points_of(moved), self.beta[moved])
        return np.asarray((g if p.rows is None else g[p.rows]) + p.linear, dtype=np.float64)

    def exact_gradient(self, some: Index) -> Matrix:
        """Kβ + q of some variables, in float64."""
        p = self.problem
        moved = np.flatnonzero(self.beta)
        if not len(moved):
            return np.asarray(p.linear[some], dtype=np.float64)
        rows, columns = p.points_of(some), p.points_of(moved)
        if self.chosen is not None:
            rows, columns = self.chosen[rows], self.chosen[columns]
        product = p.gram.partial_product(rows, columns, self.beta[moved])
        return np.asarray(product + p.linear[some], dtype=np.float64)

    def checked_gradient(self, values: Values) -> Matrix:
        """Kβ + q from these values, with float64 ones wherever they could decide the gap.

        The difference of the two, in units of √k(x, x), is measured at a sample of rows, and at all rows so near an end
        of the gap that `SURE` times that difference would carry them over it.
        """
        p = self.problem
        if values.dtype != np.float64 and p.size * np.count_nonzero(self.beta) <= costs.EXACT_VALUES:
            return self.gradient()
        g = self.gradient(values)
        if values.dtype == np.float64:
            return g
        known = np.zeros(p.size, dtype=bool)
        todo = np.linspace(0, p.size - 1, min(p.size, SAMPLED)).astype(np.int64)
        off, sizes = 0.0, self.sizes()
        while len(todo):
            exact = self.exact_gradient(todo)
            off = max(off, float((np.abs(exact - g[todo]) / sizes[todo]).max()))
            g[todo], known[todo] = exact, True
            margin = SURE * off * sizes
            near = np.zeros(p.size, dtype=bool)
            for member in p.members():
                up, low = p.ends(self.beta, g, member)
                grow, shrink = self.beta < p.upper, self.beta > p.lower
                near |= member & ((grow & (g <= up + margin)) | (shrink & (g >= low - margin)))
            todo = np.flatnonzero(near & ~known)
            if 2 * len(todo) > p.size or 5 * float(np.median(margin)) > self.tol:
                return self.gradient()
        return g

    # -- the iteration ------------------------------------------------------------------------------------------------

    def out_of_time(self) -> bool:
        return time.perf_counter() > self.deadline

    def solve(self) -> Optimum:
        self.watched = np.isfinite(self.deadline) and not self.problem.gram.cheap
        if not self.watched:
            return self.search()
        try:
            with threads.within(self.out_of_time):
                return self.search()
        except threads.OutOfTime:
            self.status, self.end = LATE, End.TIME
            if not self.iterations:
                self.solve_first_set()
            index, gradient, objective = self.known
            g = np.full(self.problem.size, np.nan)
            g[index] = gradient
            return self.optimum(g, objective)

    def solve_first_set(self) -> None:
        """Solve one working set, whatever the time limit: without it there would be no function at all."""
        W = self.spread_variables(costs.FIRST_VARIABLES)
        self.solve_alone(W, self.exact_gradient(W), np.float64)

    def solve_growing_parts(self, dtype: Any, limit: int) -> None:
        """Solve parts of the data that double in size, as long as there is time.

        The solution of a part is a useful function; a few steps on all of the data need not be.
        """
        size, W = costs.FIRST_VARIABLES, self.spread_variables(costs.FIRST_VARIABLES)
        while len(W) < self.problem.size and len(W) ** 2 * np.dtype(dtype).itemsize <= limit:
            self.solve_alone(W, None, dtype)
            if self.status:
                return
            size *= 2
            W = self.spread_variables(size)

    def spread_variables(self, size: int) -> Index:
        """The variables of the given number of points; a larger number includes all points of a smaller one.

        They are spread evenly over the order of the linear term: over both classes, or over the range of a target.
        """
        p = self.problem
        n = p.size if p.rows is None else len(np.unique(p.rows))
        if size >= n:
            return np.arange(p.size)
        order = np.argsort(p.linear[:n], kind="stable")
        bits = int(n - 1).bit_length()
        halves = np.zeros(n, dtype=np.int64)  # positions by their reversed bits: first the middle, then the quarters, …
        for bit in range(bits):
            halves |= ((np.arange(n) >> bit) & 1) << (bits - 1 - bit)
        points = order[np.argsort(halves, kind="stable")[:size]]
        return np.sort(points) if p.rows is None else np.flatnonzero(np.isin(p.rows, points))

    def solve_alone(self, W: Index, g: Matrix | None, dtype: Any) -> None:
        """Move pairs of these variables only. g is their gradient, or None if no other variable has moved."""
        p = self.problem
        points = p.points_of(W)
        values = Streamed(p.gram.recomputed(dtype)).part(points if self.chosen is None else self.chosen[points])
        K = values.lay_out(_loops.smo.matrix(len(W), dtype)).K
        beta = self.beta[W]
        complete = np.count_nonzero(beta) == np.count_nonzero(self.beta)
        g = p.linear[W] + K[:, : len(W)] @ beta.astype(dtype) if g is None else g
        group = None if p.group is None else p.group[W]
        state = _loops.smo.State(K, g, beta, p.lower[W], p.upper[W], group)
        while True:
            done, gap = state.run(0.5 * self.tol, int(min(CHUNK, self.max_iter - self.iterations)))
            self.iterations += done
            f = state.f.astype(np.float64)
            self.beta[W] = state.beta
            objective = 0.5 * float(state.beta @ (f + p.linear[W])) if complete else np.nan
            self.known = W, f, objective
            if gap < self.tol or not done or gap < self.rounding(dtype):
                return
            if self.status or self.must_stop(gap, objective):
                return

    def search(self) -> Optimum:
        p = self.problem
        limit = memory.budget(self.budget) if self.budget is not None or p.size**2 > memory.HELD else 16 * memory.HELD
        single = p.size > costs.DOUBLE_VARIABLES and self.tol >= SINGLE and MODERATE[0] < self.largest < MODERATE[1]
        values = self.values(np.float32 if single else np.float64, limit // 2)
        if self.hurried and not self.beta.any():
            self.solve_growing_parts(np.float32 if single else np.float64, limit)
        g = self.gradient(values)
        self.known = np.arange(p.size), g, p.objective(self.beta, g)
        # In float32 such a large gradient has no digits left.
        if single and float(np.finfo(np.float32).eps) * float(np.abs(g).max(initial=0.0)) >= self.tol:
            single, values = False, self.values(np.float64, limit // 2)
            g = self.gradient(values)
        dtype: Any = np.float32 if single else np.float64
        gap = p.bounds_met(self.beta, g)[0]
        for turn in range(TURNS):
            if gap <= self.tol or self.status:
                break
            size = np.dtype(dtype).itemsize
            aim = self.tol * 0.5**turn if turn < 3 else 0.1 * self.tol
            laid_out = values.laid_out is not None and p.rows is None
            if laid_out or (p.size <= costs.WHOLE_VARIABLES and p.size**2 * size <= limit and not self.hurried):
                self.solve_whole(g, values, dtype, aim)
            else:
                wide = int(np.sqrt(0.25 * limit / size))
                self.solve_by_sets(g, values, dtype, aim, min(costs.SET_VARIABLES, wide), shrink=turn < 2)
            g = self.checked_gradient(values)
            before, gap = gap, p.bounds_met(self.beta, g)[0]
            if dtype == np.float64 and gap > 0.9 * before:
                break
            if dtype == np.float32 and gap > max(self.tol, 0.2 * before):
                dtype = np.float64
                values = self.values(dtype, limit // 2)
                g = self.gradient(values)
        optimum = self.optimum(g)
        if self.progress is not None:
            self.progress(self.report(optimum.gap, g))
        return optimum

    def optimum(self, g: Matrix, objective: float | None = None) -> Optimum:
        """The present iterate, with its float64 gradient as far as that is known."""
        gap = np.inf if np.isnan(g).any() else max(0.0, float(self.problem.bounds_met(self.beta, g)[0]))
        converged = gap <= self.tol
        status = "converged" if converged else self.status or "stalled at rounding"
        objective = self.problem.objective(self.beta, g) if objective is None else objective
        end = End.CONVERGED if converged else self.end
        return Optimum(
            self.beta, g, gap, objective, self.iterations, status, converged, end, hurried="hurried" in self.kept
        )

    def report(self, gap: float, at: Matrix | Part | float) -> Progress:
        """The progress, from the gradient of all variables, from a part, or from the objective."""
        if isinstance(at, Part):
            objective = at.objective()
        elif isinstance(at, float):
            objective = at
        else:
            objective = self.problem.objective(self.beta, at)
        seconds = time.perf_counter() - self.began
        return Progress(self.iterations, gap, objective, int(np.count_nonzero(self.beta)), seconds)

    def must_stop(self, gap: float, at: Matrix | Part | float) -> bool:
        """Whether to stop before the tolerance is reached."""
        if self.stopped():
            self.status, self.end = "interrupted", End.INTERRUPTED
        elif self.endless and np.abs(self.beta).max() > UNBOUNDED / self.largest:
            self.status, self.end = "unbounded: no function meets the constraints", End.UNBOUNDED
        elif self.iterations >= self.max_iter:
            self.status = f"stopped after {self.iterations} iteration{'s' * (self.iterations != 1)}"
            self.end = End.ITERATIONS
        elif self.out_of_time():
            if self.watched and not self.iterations:
                raise threads.OutOfTime
            self.status, self.end = LATE, End.TIME
        elif self.progress is not None and not self.progress(self.report(gap, at)):
            self.status, self.end = CALLER, End.CALLER
        return bool(self.status)

    def rounding(self, dtype: Any) -> float:
        """The gap that rounding leaves: n independent errors in K, times β."""
        return 4.0 * float(np.finfo(dtype).eps) * self.largest * float(np.linalg.norm(self.beta))

    def solve_whole(self, g: Matrix, values: Values, dtype: Any, aim: float) -> None:
        """Move pairs of all variables, on the whole matrix."""
        p = self.problem
        key = "matrix", np.dtype(dtype).itemsize
        kept = self.kept if self.chosen is None else self.kept_for_subset
        if key not in kept:
            kept[key] = (values if p.rows is None else values.part(p.rows)).rows(lambda n: self.space(n, dtype))
        rows: Rows = kept[key]
        state = _loops.smo.State(rows.K, g, self.beta, p.lower, p.upper, p.group, rows.packed, rows.made)
        self.beta = state.beta
        best, least, stale = np.inf, np.inf, 0
        while stale <= PATIENCE:
            done, gap = state.run(aim, int(min(CHUNK, self.max_iter - self.iterations)))
            self.iterations += done
            if gap < aim:
                break
            f = state.f.astype(np.float64)
            self.known = np.arange(p.size), f, p.objective(self.beta, f)
            if self.must_stop(gap, f) or gap < self.rounding(dtype):
                break
            objective = p.objective(self.beta, f)
            better = gap < best or objective < least - 10 * float(np.finfo(dtype).eps) * abs(least)
            stale = 0 if better else stale + 1
            best, least = min(best, gap), min(least, objective)

    def space(self, n: int, dtype: Any) -> NDArray[Any]:
        """A matrix to be filled; for a subset in the memory of the last one in this thread, which is mapped already."""
        if self.chosen is None:
            return _loops.smo.matrix(n, dtype)
        key = "space", np.dtype(dtype).itemsize, threading.get_ident()
        if key not in self.kept or len(self.kept[key]) < n:
            self.kept[key] = _loops.smo.matrix(n, dtype)
        return _loops.smo.matrix(n, dtype, self.kept[key])

    def solve_by_sets(self, g: Matrix, values: Values, dtype: Any, aim: float, size: int, shrink: bool) -> None:
        """Move pairs of one working set after the other, and update the gradient of all that still take part."""
        p = self.problem
        part = Part(p, np.arange(p.size), self.beta.copy(), g.copy(), values, p.objective(self.beta, g))
        space = _loops.smo.matrix(size, dtype)
        most, size = size, min(size, costs.FIRST_VARIABLES)
        level = np.inf if shrink else 0.0
        recent = np.zeros(0, dtype=np.int64)
        best, least, stale = np.inf, np.inf, 0
        while stale <= PATIENCE:
            gap = part.problem.bounds_met(part.beta, part.g)[0]
            if gap <= aim or self.must_stop(gap, part):
                return
            if gap < level:
                level = SHRINK * gap
                part, recent = part.shrunk(recent)
            objective = part.objective()
            better = gap < best or objective < least - 10 * float(np.finfo(dtype).eps) * abs(least)
            stale = 0 if better else stale + 1
            best, least = min(best, gap), min(least, objective)
            W = part.working_set(recent, size)
            K = _loops.smo.matrix(len(W), dtype, space if len(W) <= most else None)
            part.values.part(part.points(W)).lay_out(K)
            q = part.problem
            group = None if q.group is None else q.group[W]
            state = _loops.smo.State(K, part.g[W], part.beta[W], q.lower[W], q.upper[W], group)
            room = int(min(10 * CHUNK, self.max_iter - self.iterations))
            self.iterations += state.run(max(INNER * gap, 0.5 * aim), room)[0]
            delta = state.beta - part.beta[W]
            moved = np.flatnonzero(delta)
            if not len(moved):
                return
            value = objective + 0.5 * float(delta @ (state.f + part.g[W]))
            part.beta[W] = state.beta
            self.beta[part.index[W]] = state.beta
            self.known = part.index[W], state.f.astype(np.float64), value
            part.add(W[moved], delta[moved])
            self.known = part.index, part.g, value
            if 4 * len(moved) > size:
                size = min(most, 2 * size)
            still = np.ones(len(W), dtype=bool)
            still[moved] = False
            recent = np.concatenate([W[still], W[moved]])
