"""Classification by the share of support vectors instead of the price of slack."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.models.base import Matrix, Rows, outside, shown
from mercer.models.svm.classification import SupportVectorClassifier
from mercer.models.svm.margins import Sides
from mercer.models.svm.problems import nu_margin
from mercer.models.svm.solving import Solver, Store, stores
from mercer.models.svm.split import Part
from mercer.models.svm.support import positive
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.base import End


@dataclass(eq=False, repr=False)
class NuSVC(SupportVectorClassifier):
    """Support vector classification by the share of support vectors instead of C.

        min ½ ‖f‖² − νρ + 1/n Σ max(0, ρ − yᵢ (f(xᵢ) + b)),   scaled so that ρ = 1:

    at most the share ν of the rows lies within the margin, and at least that share are support vectors. It is the
    function of `SVC` for C = 1/ρ.

    Parameters
    ----------
    nu : in (0, 1], and at most twice the share of the smaller class (of each pair of classes).
    kernel, multiclass, calibrated, tol, max_iter, max_time, progress, random_state : as for `SVC`. There are no
        class weights: they would take away what ν means.

    Attributes
    ----------
    as for `SVC`, whose coefficients and values these are; `C_` : 1/ρ of each function. `objective_` and `duality_gap_`
        are of the form above, times Σw and before the scaling. A ν below what the data allow has ρ = 0, no margin, and
        is warned of.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mc.NuSVC(mc.Gaussian(1.0), nu=0.2).fit(X, X[:, 0] > 0)
    >>> len(model.support_) >= 0.2 * 200
    True

    References
    ----------
    Schölkopf, Smola, Williamson and Bartlett, New support vector algorithms, 2000.
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
    progress: Callable[[smo.Progress], bool] | None = None
    random_state: int = 0

    def _check(self) -> None:
        if positive(self.nu, "nu") > 1:
            raise InvalidInput("`nu` must be in (0, 1]", got=shown(self.nu), advice="It is a share of the rows.")

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
        return problems, [self._judged(*one) for one in zip(parts, problems, optima)]

    def _judged(self, part: Part, problem: BoxProblem, optimum: smo.Optimum) -> smo.Optimum:
        """With the end `NO_MARGIN` where ρ vanishes: only rounding and the tolerance would be left, divided by it."""
        below, above = problem.offsets(optimum.beta, optimum.gradient)
        if not optimum.converged or (below - above) / 2 > self.tol:
            return optimum
        negative, positive_side = part[2]
        status = (
            f"no margin between {negative} | {positive_side} for nu={float(self.nu):g}: ρ vanishes (≤ tol). "
            "Raise `nu`, take SVC, or lower `tol` where the values of the kernel are small"
        )
        return replace(optimum, status=status, end=End.NO_MARGIN)

    def _report(self, solver: Solver, optima: Sequence[smo.Optimum], duality: Matrix) -> None:
        super()._report(solver, optima, duality)
        if self.end_ == End.NO_MARGIN.value:
            warnings.warn(f"{self.status_}.", ConvergenceWarning, stacklevel=outside())

    def _remember(self, rows: Rows, sides: Sides, scales: Matrix) -> None:
        super()._remember(rows, sides, scales)
        self.C_ = scales
