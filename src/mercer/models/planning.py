"""The plan of a fit, before it starts: which solver, why, how long, and how much memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer import gram
from mercer.data.batches import Batches
from mercer.data.points import Points, take
from mercer.data.sampling import drawn
from mercer.errors import InvalidInput
from mercer.gram.costs import STORED_SHARE
from mercer.memory import budget as memory_budget
from mercer.models.base import penalties, resolve_kernel, training_points
from mercer.models.least_squares.kernel_ridge import DECOMPOSITION, KernelRidge, batches_for
from mercer.models.solver_parameters import check_solver_parameters, requested_solver
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import fourier, nystrom
from mercer.solvers.choice import SOLVERS, Choice, Size, choose
from mercer.solvers.prediction import SAMPLE, Spectrum, measure, predict
from mercer.validation import check_whole_number, generator
from mercer.words import seconds, show_bytes

SPECTRUM = 1000
"""Points whose spectrum is computed."""


@dataclass(frozen=True)
class Plan:
    """The solver that `fit` will use, and its predicted cost.

    Attributes
    ----------
    n : int
        The number of rows.
    solver : str
        "cholesky", "eigen", "cg", "nystrom" or "blocks".
    why : str
        Why this one.
    seconds : float
        The predicted time of `fit`, without the compilation of a first call.
    nbytes : int
        The predicted memory, beside the data.
    iterations : int
        The predicted number of products with the kernel matrix; 0 for a direct solver.
    rank : int
        The number of pivoted columns of the preconditioner, if it has any.
    centers : int
        The number of Nyström centres, or 0.

    Examples
    --------
    >>> print(Plan(1000, "cholesky", "n = 1000 is small", 0.1, 8_000_000, 0, 0, 0))
    1,000 rows: cholesky (n = 1000 is small); about 100 ms and 8 MB beside the data
    """

    n: int
    solver: str
    why: str
    seconds: float
    nbytes: int
    iterations: int
    rank: int
    centers: int

    def __str__(self) -> str:
        how = f"{self.solver}"
        if self.centers:
            how += f" on {self.centers:,} centres"
        if self.rank:
            how += f" with {self.rank:,} pivoted columns as the preconditioner"
        if self.iterations:
            what = "iterations" if self.solver == "fourier" else "passes over the kernel matrix"
            how += f", about {self.iterations:,} {what}"
        cost = f"about {seconds(self.seconds)} and {show_bytes(self.nbytes)} beside the data"
        return f"{self.n:,} rows: {how} ({self.why}); {cost}"


def plan(model: Any, X: Any = None, *, target: str | None = None, n: int | None = None, d: int | None = None) -> Plan:
    """The solver that `model.fit` will use, why, and its predicted time and memory. Nothing is fitted.

    The choice is made by the same code as in `fit`. The time is measured on a sample and scaled up: an estimate, which
    can be off by a factor of several if other programs run on the machine.

    Parameters
    ----------
    model : KernelRidge
        A `KernelRidge`.
    X : array, frame, list of objects, path, Batches or None
        The data, or a sample of them if `n` is given. Of a file and of other rows that are read in batches, one pass
        draws a sample. Without X the sample has `d` independent standardised columns, which is the hardest case for
        approximations of low rank.
    target : str or None
        The column of a file with the targets.
    n : int or None
        The number of rows, by default that of X.
    d : int or None
        The number of columns, without X.

    Examples
    --------
    >>> import mercer as mc
    >>> planned = mc.plan(mc.KernelRidge(mc.Gaussian(3.0), budget="2 GB"), n=1_000_000, d=5)
    >>> planned.solver, planned.centers, 0 < planned.seconds < 3600
    ('nystrom', 3952, True)
    """
    if not isinstance(model, KernelRidge):
        raise InvalidInput(
            "`model` must be a KernelRidge", got=type(model).__name__, advice="Pass a model such as mc.KernelRidge()."
        )
    check_solver_parameters(model, SOLVERS)
    if n is not None:
        n = check_whole_number(n, "n", such_as=100_000)
    batched = isinstance(X, (str, os.PathLike, Batches))
    points, total = _sample_of_batches(model, X, target, n) if batched else _sample(X, target, n, d)
    kernel = resolve_kernel(model.kernel, points)
    few = gram.of(kernel, kernel.prepare(points), budget=memory_budget())
    by_rule = isinstance(model.alpha, str)
    alpha = np.unique(penalties(1.0 if by_rule else model.alpha, 1 if np.ndim(model.alpha) == 0 else len(model.alpha)))
    targets = max(len(alpha), np.size(model.alpha)) + bool(model.fit_intercept)
    scale = float(few.diag().mean(dtype=np.float64))
    size = Size(total, alpha, scale, few.dtype, few.entry_cost, few.bounded, targets)
    limit = memory_budget(model.budget)
    sample = LeastSquares(few, np.ones((few.shape[0], targets)), alpha.min() * np.full(targets, few.shape[0] / total))
    grid = partial(fourier.affordable, sample, model.tol, n=total)
    if batched:
        choice = Choice("nystrom", "the rows are read in batches")
    else:
        choice = choose(size, requested_solver(model, total), model.budget, grid)
    if choice.solver == "fourier":
        took, nbytes, iterations = fourier.measured(sample, model.tol, total)
        return Plan(total, choice.solver, choice.why, took, nbytes, iterations, 0, 0)
    if by_rule and choice.solver != "nystrom":  # the whole path needs a decomposition
        why = "the leave-one-out errors of every alpha follow from one decomposition"
        choice = Choice("eigen" if DECOMPOSITION * total**2 <= limit else "nystrom", why)
    centers = 0
    if choice.solver in ("nystrom", "blocks"):
        given = not isinstance(model.centers, str)
        wanted = nystrom.default_centers(total, limit) if model.n_centers is None else model.n_centers
        centers = len(model.centers) if given else min(total, wanted)
    beyond = choice.solver in ("nystrom", "blocks")
    tol = model.tol if model.tol is not None else 1e-3 if beyond else choice.tol
    spectrum = Spectrum.of(few.restrict(slice(0, SPECTRUM)))
    speed = measure(few, targets)
    fits = total * centers * size.rounded.itemsize <= STORED_SHARE * limit
    stored = fits and not batched and few.worth_storing(size.rounded)
    limits: dict[str, Any] = {"tol": tol, "max_passes": model.max_passes}
    predicted = predict(size, choice, speed, spectrum, centers=centers, stored=stored, **limits)
    took, nbytes = predicted.seconds, predicted.nbytes
    if by_rule and centers:  # the features of all rows, their spectrum, and the path
        took += total * centers * (speed.fill[8] + 4 * centers * speed.add[8]) + centers**3 * speed.eigen
        nbytes += 24 * total * centers
    return Plan(total, choice.solver, choice.why, took, nbytes, predicted.iterations, choice.rank, centers)


def _sample_of_batches(model: KernelRidge, X: Any, target: str | None, n: int | None) -> tuple[Points, int]:
    """The same for rows in batches, as `fit` would read them."""
    batches = batches_for(model, Batches.of(X, None, target))
    return training_points(drawn(batches, SAMPLE, generator(0)).X), batches.n if n is None else n


def _sample(X: Any, target: str | None, n: int | None, d: int | None) -> tuple[Points, int]:
    """Some points, and the number of rows to plan for."""
    if target is not None:
        raise InvalidInput(
            "`target` names a column of a file",
            got=f"target={target!r} and {'no data' if X is None else type(X).__name__}",
            advice="Leave it out, since a plan needs no targets.",
        )
    if (X is None) == (d is None) or (X is None and n is None):
        raise InvalidInput(
            "A plan needs the data, or the numbers of rows and columns",
            got=f"X={'None' if X is None else 'data'}, n={n}, d={d}",
            advice="Call mc.plan(model, X), or mc.plan(model, n=100_000, d=20).",
        )
    if X is None:
        d = check_whole_number(d, "d", such_as=20)
        rng = np.random.default_rng(0)
        return Points(rng.standard_normal((min(SAMPLE, int(n or 0)), d))), int(n or 0)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    index = np.sort(np.random.default_rng(0).permutation(rows)[:SAMPLE])
    return training_points(take(X, index)), n or rows
