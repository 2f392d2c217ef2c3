"""Plots of fitted models, in the style of scikit-learn's displays. Needs matplotlib: `pip install 'mercer[plot]'`.

Each class answers one question: a class method computes the values and keeps them as plain arrays; `plot(ax)` draws
them. Names load when they are first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from mercer.plot.calibration import Coverage, Reliability
    from mercer.plot.convergence import Convergence
    from mercer.plot.curves import LearningCurve, TuningPath, ValidationCurve
    from mercer.plot.effects import ContributionBars, PartialDependence
    from mercer.plot.kernel import KernelShape
    from mercer.plot.looks import style, svg
    from mercer.plot.matrix import EigenvalueSpectrum, GramHeatMap
    from mercer.plot.proof import ProofTree
    from mercer.plot.ranking import Ranking
    from mercer.plot.regression import RegressionBands, Residuals
    from mercer.plot.surface import DecisionSurface

_HOME = {
    "calibration": "Coverage Reliability",
    "convergence": "Convergence",
    "curves": "LearningCurve TuningPath ValidationCurve",
    "effects": "ContributionBars PartialDependence",
    "kernel": "KernelShape",
    "looks": "style svg",
    "matrix": "EigenvalueSpectrum GramHeatMap",
    "proof": "ProofTree",
    "ranking": "Ranking",
    "regression": "RegressionBands Residuals",
    "surface": "DecisionSurface",
}
_MODULE = {name: f"mercer.plot.{home}" for home, names in _HOME.items() for name in names.split()}

__all__ = [
    "ContributionBars",
    "Convergence",
    "Coverage",
    "DecisionSurface",
    "EigenvalueSpectrum",
    "GramHeatMap",
    "KernelShape",
    "LearningCurve",
    "PartialDependence",
    "ProofTree",
    "Ranking",
    "RegressionBands",
    "Reliability",
    "Residuals",
    "TuningPath",
    "ValidationCurve",
    "style",
    "svg",
]


def __getattr__(name: str) -> _Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'mercer.plot' has no attribute {name!r}")
    value = getattr(_import_module(_MODULE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
