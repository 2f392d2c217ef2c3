"""Support vector classification with the share of support vectors as its parameter, instead of the price of slack."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.gram import Gram
from mercer.models.base import Matrix, Rows, outside
from mercer.models.svm.classification import SupportVectorClassifier
from mercer.models.svm.margins import Sides
from mercer.models.svm.problems import nu_margin
from mercer.models.svm.solving import Solver, Store, stores
from mercer.models.svm.split import Part
from mercer.models.svm.support import check_share
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.step import Progress


@dataclass(eq=False, repr=False)
class NuSVC(SupportVectorClassifier):
    """Support vector classification with the share of support vectors as its parameter, instead of C.

        min ½ ‖f‖² − νρ + 1/n Σ max(0, ρ − yᵢ (f(xᵢ) + b)),   scaled so that ρ = 1:

    at most the share ν of the rows lies within the margin, and at least that share are support vectors. `SVC` with
    C = 1/ρ gives the same function.

    Parameters
    ----------
    nu : float
        The share, in (0, 1], and at most twice the share of the smaller class (in each pair of classes).
    kernel, multiclass, calibrated, tol, max_iter, max_time, progress, random_state
        As for `SVC`. There are no class weights: ν would lose its meaning.

    Attributes
    ----------
    C_ : array
        1/ρ of each function.
    objective_, duality_gap_ : array
        As for `SVC`, but of the form above, times Σw and before the scaling. If ν is smaller than the data allow, then
        ρ = 0, there is no margin, and a warning says so.
    classes_, kernel_, function_, gap_, n_iter_, status_
        As for `SVC`.
    support_, support_vectors_, n_support_, bounded_, dual_coef_, intercept_
        As for `SVC`.

    References
    ----------
    Schölkopf, Smola, Williamson and Bartlett, New support vector algorithms, 2000.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mc.NuSVC(mc.Gaussian(1.0), nu=0.2).fit(X, X[:, 0] > 0)
    >>> len(model.support_) >= 0.2 * 200
    True
    """

    class_weight = None

    kernel: Any = None
    _: KW_ONLY
    nu: float = 0.5
    multiclass: str = "ovo"
    calibrated: bool = False
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    progress: Progress | None = None
    random_state: int = 0

    def _check(self) -> None:
        check_share(self.nu)

    def _solve(
        self,
        solver: Solver,
        K: Gram,
        parts: Sequence[Part],
        w: Matrix,
        starts: Sequence[Matrix] | None = None,
        values: Sequence[Store] | None = None,
    ) -> tuple[list[BoxProblem], list[smo.Optimum]]:
        problems = [nu_margin(K, part, w, float(self.nu)) for part in parts]
        optima = solver.solve_all(problems, stores(K, parts))
        return problems, [self._with_margin(*solved) for solved in zip(parts, problems, optima)]

    def _with_margin(self, part: Part, problem: BoxProblem, optimum: smo.Optimum) -> smo.Optimum:
        """The optimum, with the end `NO_MARGIN` if ρ vanishes: divided by it, only rounding errors would be left."""
        below, above = problem.offsets(optimum.beta, optimum.gradient)
        if not optimum.converged or (below - above) / 2 > self.tol:
            return optimum
        negative, positive = part[2]
        status = (
            f"no margin between {negative} | {positive} for nu={float(self.nu):g}: ρ vanishes (≤ tol). "
            "Raise `nu`, use SVC, or lower `tol` if the values of the kernel are small"
        )
        return replace(optimum, status=status, end=End.NO_MARGIN)

    def _report(self, solver: Solver, optima: Sequence[smo.Optimum], duality: Matrix) -> None:
        super()._report(solver, optima, duality)
        if self.end_ == End.NO_MARGIN.value:
            warnings.warn(f"{self.status_}.", ConvergenceWarning, stacklevel=outside())

    def _remember(self, rows: Rows, sides: Sides, scales: Matrix) -> None:
        super()._remember(rows, sides, scales)
        self.C_ = scales
