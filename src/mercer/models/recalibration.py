"""From the probabilities of a classifier to calibrated ones.

The probabilities of many classifiers are shares of votes (nearest neighbours, weighted means), and others have none
(least squares). On rows that a model was not fitted to, it can be measured how often each of them is right: the
probabilities p of the model become

    P(c) ∝ ((1 − m) pc + m/k)^s · exp(bc)     for k classes

where the mixing m keeps votes of 0 and 1 from being certain, the power s makes all of them bolder or more careful, and
the offsets b, which are 0 unless the data supports them, correct classes that are predicted too rarely. All of them
maximise the likelihood of training rows that are predicted by models fitted without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mercer.errors import InvalidInput
from mercer.models.svm.probabilities import Softmax

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

STEP, MOST_MIXING = 4.0, 0.5
"""Mixings grow by this factor, up to the second number."""


@dataclass(frozen=True, eq=False)
class Recalibration:
    """P(c) ∝ ((1 − m) pc + m/k)^s exp(bc), from probabilities p of k classes.

    Attributes
    ----------
    mixing : float
        m ≥ 0; after a fit m > 0.
    softmax : Softmax
        s and b.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)          # one neighbour each, right for 16 of 20 rows
    >>> codes = np.array([0] * 8 + [1] * 2 + [1] * 8 + [0] * 2)
    >>> Recalibration.fit(P, codes)(np.array([[1.0, 0.0]])).round(1)
    array([[0.8, 0.2]])
    """

    mixing: float
    softmax: Softmax

    def __call__(self, P: Matrix) -> Matrix:
        return self.softmax(self._logs(P, self.mixing))

    @classmethod
    def fit(cls, P: Matrix, codes: Index, weights: Matrix | None = None, *, shifted: bool | None = None) -> Self:
        """Maximum likelihood for probabilities P (n, k) of rows with these class numbers, by a model without them.

        `weights` and `shifted` as for `Softmax.fit`.
        """
        total = float(len(P) if weights is None else weights.sum())
        # By Laplace's rule nothing is less probable than 1/(n + 2), also if no row has shown a vote of 0.
        smallest = 1.0 / (total + 2.0)
        grid = [m for j in range(30) if (m := smallest * STEP**j) <= MOST_MIXING] or [MOST_MIXING]
        fits = []
        for mixing in grid:
            values = cls._logs(P, mixing)
            curve = Softmax.fit(values, codes, weights, shifted=shifted)
            fits.append((curve.loss(values, codes, weights), mixing, curve))
        _, mixing, curve = min(fits, key=lambda fit: fit[0])
        return cls(mixing, curve)

    @staticmethod
    def _logs(P: Matrix, mixing: float) -> Matrix:
        return np.log(np.maximum((1 - mixing) * P + mixing / P.shape[1], np.finfo(float).tiny))


def probabilities(model: Any, X: Any) -> Matrix:
    """The probabilities of a classifier, or the softmax of its decision values, shape (m, k)."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    if not hasattr(model, "decision_function"):
        raise InvalidInput(
            "A classifier must have predict_proba or decision_function to be calibrated",
            got=type(model).__name__,
            advice="Choose another classifier.",
        )
    return _of_values(np.asarray(model.decision_function(X), dtype=np.float64))


def _of_values(values: Matrix) -> Matrix:
    """The softmax of decision values: of two classes those of the second, shape (m,); otherwise one per class."""
    wide = np.column_stack([np.zeros_like(values), values]) if values.ndim == 1 else values
    return np.asarray(softmax(wide, axis=1))


def left_out_probabilities(model: Any) -> Matrix | None:
    """The probabilities of each training row by the model without it; None if the model does not have them."""
    try:
        if hasattr(model, "predict_proba"):
            return np.asarray(model.loo_proba_, dtype=np.float64)
        return _of_values(np.asarray(model.loo_decision_, dtype=np.float64))
    except (AttributeError, InvalidInput):  # this kind of model, or this solver, does not have them
        return None
