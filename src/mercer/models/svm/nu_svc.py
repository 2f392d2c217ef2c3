"""Classification by the share of support vectors instead of the price of slack."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import InvalidInput
from mercer.models.base import Matrix, outside, shown
from mercer.models.svm.classification import SupportVectorClassifier
from mercer.models.svm.parts import Data, Fitted, Part, Room, Solved
from mercer.models.svm.support import filled, positive
from mercer.problems.box import BoxProblem
from mercer.solvers import smo


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

    def __init__(
        self,
        kernel: Any = None,
        *,
        nu: float = 0.5,
        multiclass: str = "ovo",
        calibrated: bool = False,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        progress: Callable[[smo.Progress], bool] | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.multiclass = multiclass
        self.calibrated = calibrated
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.progress = progress
        self.random_state = random_state

    def _check(self) -> None:
        if positive(self.nu, "nu") > 1:
            raise InvalidInput("`nu` must be in (0, 1]", got=shown(self.nu), advice="It is a share of the rows.")

    def _solve(
        self, within: Sequence[Room], parts: Sequence[Part], starts: Sequence[Matrix] | None = None
    ) -> list[Solved]:
        problems = []
        for part, room in zip(parts, within):
            w, signs = part.weights, part.signs
            half = float(self.nu) * w.sum() / 2
            sides = [w[signs < 0].sum(), w[signs > 0].sum()]
            if half > min(sides) * (1 + 1e-12):
                most = 2 * min(sides) / w.sum()
                raise InvalidInput(
                    f"`nu` must be at most twice the share of the smaller class: it is infeasible above {most:.4g} for "
                    f"{part.between[0]} | {part.between[1]}",
                    got=shown(self.nu),
                    advice="Lower it, or take SVC, which always has a solution.",
                )
            start = np.zeros(len(w))
            for side in (-1.0, 1.0):
                start[signs == side] = side * filled(w[signs == side], half)
            lower, upper = np.minimum(0.0, signs * w), np.maximum(0.0, signs * w)
            group = (signs > 0).astype(np.int64)
            problems.append(BoxProblem(room.gram, np.zeros(len(w)), lower, upper, start, room.rows, group))
        return [self._noted(one, part) for one, part in zip(self._side_by_side(problems, within), parts)]

    def _noted(self, solved: Solved, part: Part) -> Solved:
        """With a word where ρ vanishes: nothing is left then but rounding and the tolerance, divided by it."""
        below, above = solved.summary.offsets
        if not solved.optimum.converged or (below - above) / 2 > self.tol:
            return solved
        note = (
            f"no margin between {part.between[0]} | {part.between[1]} for nu={float(self.nu):g}: ρ vanishes (≤ tol). "
            "Raise `nu`, take SVC, or lower `tol` where the values of the kernel are small"
        )
        return replace(solved, note=note)

    def _fitted(self, part: Part, solved: Solved) -> Fitted:
        # On the margin Kβ + b = ±ρ, so that the offsets −Kβ of the two groups are b ± ρ.
        below, above = solved.summary.offsets
        b, rho = (below + above) / 2, (below - above) / 2
        scale = rho if rho > 1e-12 * max(float(np.nanmax(np.abs(solved.product))), 1e-300) else 1.0
        return Fitted.of(part, solved, b / scale, scale)

    def _report(self, optima: Sequence[smo.Optimum], duality: Sequence[float], answer: str = "") -> None:
        super()._report(optima, duality, answer)
        if answer:
            warnings.warn(f"{answer}.", ConvergenceWarning, stacklevel=outside())

    def _remember(self, data: Data, fitted: Sequence[Fitted]) -> None:
        super()._remember(data, fitted)
        self.C_ = np.array([1 / f.scale for f in fitted])
