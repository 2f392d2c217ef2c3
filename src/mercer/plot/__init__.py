"""Pictures of fitted models, in the way of scikit-learn's displays. Needs matplotlib: `pip install 'mercer[plot]'`."""

from mercer.plot.surface import DecisionSurface

__all__ = ["DecisionSurface"]
