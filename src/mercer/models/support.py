"""What support vector machines share: box problems solved side by side, and the few points that are kept."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import tiling
from mercer.kernels.base import Kernel
from mercer.kernels.custom import Precomputed
from mercer.kernels.points import Points
from mercer.models.base import KernelEstimator, Matrix
from mercer.problems.box import BoxProblem
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo

LARGE = 4000
"""Problems with more variables use all threads by themselves; smaller ones share them."""
LOOKED_AT = 1000
"""Points on which a kernel that is not proven is looked at."""


class Interrupted(smo.Interrupted):
    """An interrupt from outside, with an iterate of every problem as `optima`."""

    def __init__(self, optima: Sequence[smo.Optimum]) -> None:
        super().__init__(optima[0])
        self.optima = list(optima)


class _Progress:
    """A caller's progress, from one thread at a time; what stops one problem stops all of them."""

    def __init__(self, progress: Callable[[smo.Progress], bool] | None) -> None:
        self.progress, self.lock, self.go_on = progress, threading.Lock(), True

    def __call__(self, progress: smo.Progress) -> bool:
        if tiling.stopped():
            return False
        if self.progress is None:
            return True
        with self.lock:
            self.go_on = self.go_on and self.progress(progress) is not False
            return self.go_on


def _unsolved(problem: BoxProblem) -> smo.Optimum:
    """The start of a problem whose turn did not come."""
    beta = np.array(problem.start, dtype=np.float64)
    gradient = problem.linear + (problem.gram @ problem.per_point(beta) if beta.any() else 0.0)
    gradient = gradient if problem.rows is None or not beta.any() else gradient[problem.rows]
    gap = float(problem.bounds_met(beta, gradient)[0])
    return smo.Optimum(beta, gradient, gap, problem.objective(beta, gradient), 0, "interrupted", False)


class SupportVectorMachine(KernelEstimator):
    """A model whose dual is a box problem.

    A subclass has the parameters `kernel`, `tol`, `max_iter`, `max_time` and `progress`.

    Attributes
    ----------
    support_ : positions of the support vectors among the rows of `fit`.
    dual_coef_, intercept_ : their coefficients, shape (support vectors, functions), and one constant per function.
    function_ : Σ βᵢ k(xᵢ, ·) + b over the support vectors alone.
    gap_ : the largest violation of optimality, in float64.
    objective_ : of the dual, one per problem.
    n_iter_, status_ : pairs that were moved, and how it ended.
    """

    tol: float
    max_iter: int | None
    max_time: float | None
    progress: Callable[[smo.Progress], bool] | None

    def _optimise(
        self,
        problems: Sequence[BoxProblem],
        *,
        max_iter: int | None = None,
        deadline: float | None = None,
        kept: Sequence[dict[Any, Any]] | None = None,
    ) -> list[smo.Optimum]:
        """The optimum of each problem: large ones one after the other, small ones side by side.

        Parameters
        ----------
        problems : what to minimise.
        max_iter : pairs at the most for each problem; by default the parameter of the same name.
        deadline : when to stop, by `time.perf_counter`; by default `max_time` from now, for all problems together.
        kept : for each problem a dict that keeps its kernel values for the next one on the same Gram.

        An interrupt raises `Interrupted`, which holds an iterate of every problem.
        """
        if deadline is None and self.max_time is not None:
            deadline = time.perf_counter() + self.max_time
        found: list[smo.Optimum | None] = [None] * len(problems)
        progress = _Progress(self.progress)

        def solve(i: int) -> None:
            left = None if deadline is None else max(0.0, deadline - time.perf_counter())
            pairs = self.max_iter if max_iter is None else max_iter
            try:
                found[i] = smo.solve(
                    problems[i],
                    tol=self.tol,
                    max_iter=pairs,
                    max_time=left,
                    progress=progress,
                    kept=None if kept is None else kept[i],
                )
            except smo.Interrupted as stop:
                found[i] = stop.optimum
                raise

        order = sorted(range(len(problems)), key=lambda i: -problems[i].size)
        large = [i for i in order if problems[i].size > LARGE or len(problems) == 1]
        small = [i for i in order if i not in set(large)]
        shares = min(tiling.n_threads(), len(small))

        def job(share: int) -> None:
            for i in small[share::shares]:
                if tiling.stopped():
                    return
                solve(i)

        try:
            for i in large:
                solve(i)
            if small:
                tiling.run([partial(job, share) for share in range(shares)])
        except KeyboardInterrupt:
            raise Interrupted([o or _unsolved(p) for o, p in zip(found, problems)]) from None
        return [o or _unsolved(p) for o, p in zip(found, problems)]

    def _keep(self, points: Points, kept: NDArray[np.int64], coef: Matrix, intercept: Matrix) -> None:
        """Keep the points whose coefficients are not all zero: coef (n, f), intercept (f,); `kept` their positions."""
        used = np.flatnonzero(coef.any(axis=1))
        used = used if len(used) else np.array([0])
        self.support_ = kept[used]
        self.dual_coef_, self.intercept_ = coef[used], intercept
        self.function_ = Expansion(self.kernel_, points.take(used), self.dual_coef_, Tail.constant(intercept))

    def _report(self, optima: Sequence[smo.Optimum], answer: str = "") -> None:
        """Tell how it ended; warn where the tolerance was not reached and this is not an `answer` in itself."""
        self.n_iter_ = sum(o.iterations for o in optima)
        self.gap_ = max(o.gap for o in optima)
        self.objective_ = np.array([o.objective for o in optima])
        late = [o for o in optima if not o.converged]
        self.status_ = f"converged: gap {self.gap_:.2g} ≤ {self.tol:g}" if not late else late[0].status
        if answer:
            self.status_ = answer
            return
        if late and late[0].status != "interrupted":
            warnings.warn(
                f"{late[0].status}: gap {self.gap_:.3g} > tol = {self.tol:g} after {self.n_iter_} iterations. "
                "Raise `max_iter` or `max_time`, lower `C`, or scale the columns.",
                ConvergenceWarning,
                stacklevel=4,
            )


def positive(value: Any, name: str, *, infinite: bool = False) -> float:
    """A number > 0, checked."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not value > 0 or (np.isinf(value) and not infinite):
        raise InvalidInput(f"`{name}` must be a number > 0", got=repr(value), advice="Such as 1.0.")
    return float(value)


def warn_if_not_psd(kernel: Kernel, K: Gram, d: int | None = None) -> None:
    """Warn, with the eigenvalue, where a kernel that nobody has proven is seen not to be one.

    K + τI has a Cholesky factor iff every eigenvalue is above −τ. Of a large matrix a part is looked at: by
    interlacing, a negative eigenvalue of a part is one of the whole (that none is seen there says nothing).
    """
    # The proof of Precomputed(K) is the eigenvalues of all of K, of which only these rows matter.
    if not any(isinstance(leaf, Precomputed) for leaf in kernel.leaves) and kernel.proof(d).valid:
        return
    n = K.shape[0]
    some = K if n <= LOOKED_AT else K.restrict(np.unique(np.linspace(0, n - 1, LOOKED_AT).astype(np.int64)))
    values = some.fresh(np.float64)
    m = len(values)
    tolerance = 100 * m * float(np.finfo(K.dtype).eps) * float(np.abs(values).sum(axis=1).max())
    values.flat[:: m + 1] += tolerance
    with tiling.single_threaded_blas():
        _, failed = lapack.dpotrf(values.T, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return
        smallest = float(np.linalg.eigvalsh(some.fresh(np.float64))[0])
    warnings.warn(
        f"The Gram matrix is not positive semidefinite: it has the eigenvalue {smallest:.4g} on {m} of these points, "
        "so that the solution found may not be the best. mc.check(kernel, X) shows where, mc.repair(K) mends a matrix.",
        RuntimeWarning,
        stacklevel=4,
    )
