"""Sequential minimal optimisation (SMO): the solver of the box problems of support vector machines.

A small problem is solved on its whole matrix: every step moves the two variables that violate optimality most
(`_loops.smo`). A large problem is solved by decomposition. Each round chooses a working set of up to a few thousand
variables, half of them the worst violators of optimality and half the variables that moved last. These variables are
optimised while all others are fixed. Then one product K[:, changed] Δ updates the gradient of the others; its columns
of K are never stored (`gram.values`). Kernel values are float32 if the tolerance allows it and the gradient is float64;
the returned gap is always computed from float64 values.

The time limit is checked between steps and, if the kernel is expensive, between its tiles. At most half of the time is
spent on kernel values to store. If they are not ready by then, the solver starts with a small part of the data, doubles
it again and again, and ends with all of it. When the time is over, it returns the solution of the last part, at least
that of one working set; the gradient of all other variables is then not known.

References
----------
Platt, Fast training of support vector machines using sequential minimal optimization, 1999. Fan, Chen and Lin, Working
set selection using second order information, 2005.
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
from mercer.gram.values import LazyMatrix, Streamed, Values
from mercer.problems.box import BoxProblem, Matrix
from mercer.solvers import costs
from mercer.solvers.base import End
from mercer.solvers.step import Progress, Step
from mercer.solvers.working_set import Index, Part

CHUNK = 20_000
"""Steps (moves of a pair of variables) between two checks of the clock."""
SAMPLED, SURE = 64, 8.0
"""Rows on which float32 is compared with float64, and the safety factor for the largest observed difference."""
INNER = 0.2
"""A working set is solved to this share of the gap."""
SHRINK = 0.8
"""When the gap falls to this share, variables that are unlikely to leave their bound are set aside until the end."""
TURNS = 8
"""How often the search restarts from the float64 gradient."""
SINGLE = 1e-4
"""Tolerances below this need float64 values."""
MODERATE = 1e-12, 1e12
"""Kernel values whose squares float32 can hold."""
PATIENCE = 50
"""After this many rounds without a smaller gap, only rounding is left to change the iterate."""
UNBOUNDED = 1e10
"""If a variable without a bound grows to this size, in units of 1/k(x, x), the problem has no minimum."""
LEAST, MOST = 10_000_000, 100
"""The default limit of steps: LEAST, or MOST for each variable if that is more."""

LATE, CALLER = "stopped at the time limit", "stopped by the caller"


class Patience:
    """Whether the gap or the objective still falls, up to rounding in this dtype."""

    def __init__(self, dtype: Any) -> None:
        self.eps = 10 * float(np.finfo(dtype).eps)
        self.gap, self.objective, self.rounds = np.inf, np.inf, 0

    @property
    def lasts(self) -> bool:
        """Whether one of the last `PATIENCE` rounds was better than all before."""
        return self.rounds <= PATIENCE

    def see(self, gap: float, objective: float) -> None:
        """Count a round."""
        better = gap < self.gap or objective < self.objective - self.eps * abs(self.objective)
        self.rounds = 0 if better else self.rounds + 1
        self.gap, self.objective = min(self.gap, gap), min(self.objective, objective)


@dataclass(frozen=True, kw_only=True)
class MarginStep(Step):
    """The state of the iteration, with the number of nonzero variables in `support`."""

    support: int

    @property
    def detail(self) -> str:
        """The figures that only this method has, in words."""
        return f"{self.support} support vectors"


@dataclass(frozen=True, eq=False)
class Optimum:
    """β with its gradient g = Kβ + q, the gap there, and how it was reached.

    Attributes
    ----------
    beta, gradient : array
        β and Kβ + q, shape (N,). Entries of the gradient that decide the gap are computed from float64 kernel values,
        the others from the values that the iteration used. Entries that were not computed before the time limit are
        NaN.
    gap : float
        By how much β violates the conditions of optimality, from float64 kernel values (at the time limit, from the
        values that the iteration used); infinite if a part of the gradient is not known.
    objective : float
        ½ βᵀKβ + qᵀβ; NaN if it is not known.
    iterations : int
        The number of steps, each of which moved a pair of variables.
    status : str
        How the iteration ended, in words.
    converged : bool
        Whether the gap is within the tolerance.
    end : End
        The reason why the iteration ended.
    hurried : bool
        Whether half of the time limit passed before the kernel values were stored. They were then computed again
        whenever they were needed, which leads to the same optimum on another path.
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
    progress: Progress | None = None,
    budget: Any = None,
    kept: dict[Any, Any] | None = None,
) -> Optimum:
    """The minimum of a box problem.

    An interrupt (Ctrl-C) raises `Interrupted`, which holds the best iterate so far.

    Parameters
    ----------
    problem : BoxProblem
        The problem to solve.
    tol : float
        The gap at which to stop, computed from float64 kernel values.
    max_iter : int or None
        The largest number of steps; by default ten million, or a hundred for each variable if that is more.
    max_time : float or None
        The time limit in seconds, or None; a first working set is always solved.
    progress : Progress or None
        Called from time to time with a `MarginStep`; the solver stops if it returns False.
    budget : int, str or None
        The memory for kernel values, in bytes or as a text such as "2 GB"; by default as in `gram.of`.
    kept
        A dict that stores kernel values for the next call. Pass an empty dict, and pass it again to solve further
        problems on the same Gram (another C, another linear term, or a subset of its points by `rows`).

    Examples
    --------
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
    """One call of `solve`: the iterate and its limits."""

    def __init__(
        self,
        problem: BoxProblem,
        tol: float,
        max_iter: int | None,
        max_time: float | None,
        progress: Progress | None,
        budget: Any,
        kept: dict[Any, Any],
        stopped: Callable[[], bool],
    ) -> None:
        self.stopped = stopped
        self.tol, self.progress, self.budget, self.kept = float(tol), progress, budget, kept
        # `rows` either selects some points of the Gram (a subset), or lists a point several times (several variables).
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
        # The variables whose gradient is known at the present iterate, their gradient, and the objective.
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
        """√|k(x, x)| of the point of each variable: errors of its gradient are proportional to it."""
        p = self.problem
        if p.gram.normalised:
            return np.ones(p.size)
        roots = np.maximum(self._roots(), 1e-12 * float(np.sqrt(self.largest)))
        roots = roots if self.chosen is None else roots[self.chosen]
        return roots if p.rows is None else roots[p.rows]

    def values(self, dtype: Any, limit: int) -> Values:
        """Kernel values in this dtype, computed once for all calls that share `kept`."""
        key = "values", np.dtype(dtype).itemsize, limit > 0
        whole = self.problem.gram
        if key not in self.kept:
            try:  # storing may take half of the time; the other half is for the iteration
                with threads.time_limit(
                    lambda: self.watched and time.perf_counter() > (self.began + self.deadline) / 2
                ):
                    self.kept[key] = whole.values(dtype, limit)
            except threads.OutOfTime:
                self.kept[key], self.kept["hurried"] = Streamed(whole.recomputed(dtype)), True
        self.hurried = "hurried" in self.kept or (self.watched and not whole.keeps)
        values: Values = self.kept[key]
        return values if self.chosen is None else values.part(self.chosen)

    def gradient(self, values: Values | None = None) -> Matrix:
        """Kβ + q, summed in float64, from the given values of K; by default from float64 values."""
        p = self.problem
        moved = np.flatnonzero(self.beta)
        if not len(moved):
            return np.array(p.linear, dtype=np.float64)
        values = self.values(np.float64, 0) if values is None else values
        g = np.zeros(values.n)
        values.add(g, p.points_of(moved), self.beta[moved])
        return np.asarray((g if p.rows is None else g[p.rows]) + p.linear, dtype=np.float64)

    def exact_gradient(self, some: Index) -> Matrix:
        """The entries of Kβ + q for some variables, in float64."""
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
        """Kβ + q from the given values of K, and from float64 values for every entry that could decide the gap.

        The largest difference between the two, in units of √k(x, x), is estimated on a sample of rows. Then every row
        that could reach an end of the gap, if its error were `SURE` times this difference, is computed in float64, too.
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
            with threads.time_limit(self.out_of_time):
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
        """Solve one working set even if the time is over: without it there would be no function at all."""
        W = self.spread_variables(costs.FIRST_VARIABLES)
        self.solve_alone(W, self.exact_gradient(W), np.float64)

    def solve_growing_parts(self, dtype: Any, limit: int) -> None:
        """Solve a part of the data, then a part of twice the size, and so on, as long as there is time.

        The solution for a part of the data is a useful function; the result of a few steps on all data may not be.
        """
        size, W = costs.FIRST_VARIABLES, self.spread_variables(costs.FIRST_VARIABLES)
        while len(W) < self.problem.size and len(W) ** 2 * np.dtype(dtype).itemsize <= limit:
            self.solve_alone(W, None, dtype)
            if self.status:
                return
            size *= 2
            W = self.spread_variables(size)

    def spread_variables(self, size: int) -> Index:
        """The variables of `size` points. A larger size includes all points of a smaller one.

        The points are spread evenly over the sorted values of the linear term, that is, over both classes or over the
        range of the target.
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
        """Optimise these variables only. g is their gradient, or None if all other variables are zero."""
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
        # float32 has no digits left for so large a gradient: its rounding exceeds the tolerance.
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
        """The present iterate as a result, with its gradient g (NaN where it is not known)."""
        gap = np.inf if np.isnan(g).any() else max(0.0, float(self.problem.bounds_met(self.beta, g)[0]))
        converged = gap <= self.tol
        status = "converged" if converged else self.status or "stalled at rounding"
        objective = self.problem.objective(self.beta, g) if objective is None else objective
        end = End.CONVERGED if converged else self.end
        return Optimum(
            self.beta, g, gap, objective, self.iterations, status, converged, end, hurried="hurried" in self.kept
        )

    def report(self, gap: float, at: Matrix | Part | float) -> MarginStep:
        """The state of the iteration; `at` is the gradient of all variables, the active part, or the objective."""
        if isinstance(at, Part):
            objective = at.objective()
        elif isinstance(at, float):
            objective = at
        else:
            objective = self.problem.objective(self.beta, at)
        seconds = time.perf_counter() - self.began
        return MarginStep(
            iteration=self.iterations,
            gap=gap,
            tol=self.tol,
            objective=objective,
            seconds=seconds,
            support=int(np.count_nonzero(self.beta)),
        )

    def must_stop(self, gap: float, at: Matrix | Part | float) -> bool:
        """Whether to stop before the tolerance is reached; sets `status` and `end` to the reason."""
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
        elif self.progress is not None and self.progress(self.report(gap, at)) is False:
            self.status, self.end = CALLER, End.CALLER
        return bool(self.status)

    def rounding(self, dtype: Any) -> float:
        """A gap that is no larger than rounding: independent errors in the entries of K, times β."""
        return 4.0 * float(np.finfo(dtype).eps) * self.largest * float(np.linalg.norm(self.beta))

    def solve_whole(self, g: Matrix, values: Values, dtype: Any, aim: float) -> None:
        """Optimise all variables on the whole matrix."""
        p = self.problem
        key = "matrix", np.dtype(dtype).itemsize
        kept = self.kept if self.chosen is None else self.kept_for_subset
        if key not in kept:
            kept[key] = (values if p.rows is None else values.part(p.rows)).rows(lambda n: self.space(n, dtype))
        rows: LazyMatrix = kept[key]
        state = _loops.smo.State(rows.K, g, self.beta, p.lower, p.upper, p.group, rows.packed, rows.filled)
        self.beta = state.beta
        patience = Patience(dtype)
        while patience.lasts:
            done, gap = state.run(aim, int(min(CHUNK, self.max_iter - self.iterations)))
            self.iterations += done
            if gap < aim:
                break
            f = state.f.astype(np.float64)
            self.known = np.arange(p.size), f, p.objective(self.beta, f)
            if self.must_stop(gap, f) or gap < self.rounding(dtype):
                break
            patience.see(gap, p.objective(self.beta, f))

    def space(self, n: int, dtype: Any) -> NDArray[Any]:
        """An empty n × n matrix. Subsets reuse the memory of the last one in this thread, which saves time."""
        if self.chosen is None:
            return _loops.smo.matrix(n, dtype)
        key = "space", np.dtype(dtype).itemsize, threading.get_ident()
        if key not in self.kept or len(self.kept[key]) < n:
            self.kept[key] = _loops.smo.matrix(n, dtype)
        return _loops.smo.matrix(n, dtype, self.kept[key])

    def solve_by_sets(self, g: Matrix, values: Values, dtype: Any, aim: float, size: int, shrink: bool) -> None:
        """Optimise one working set after another, and update the gradient of all active variables after each."""
        p = self.problem
        part = Part(p, np.arange(p.size), self.beta.copy(), g.copy(), values, p.objective(self.beta, g))
        space = _loops.smo.matrix(size, dtype)
        most, size = size, min(size, costs.FIRST_VARIABLES)
        level = np.inf if shrink else 0.0
        recent = np.zeros(0, dtype=np.int64)
        patience = Patience(dtype)
        while patience.lasts:
            gap = part.problem.bounds_met(part.beta, part.g)[0]
            if gap <= aim or self.must_stop(gap, part):
                return
            if gap < level:
                level = SHRINK * gap
                part, recent = part.shrunk(recent)
            objective = part.objective()
            patience.see(gap, objective)
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
