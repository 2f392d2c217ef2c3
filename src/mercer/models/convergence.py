"""The warning of a fit that did not converge, in two parts: how far it came, and what to do about it."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class NotConverged(ConvergenceWarning):  # type: ignore[misc]  # scikit-learn has no types
    """A fit that ended before it converged.

    Attributes
    ----------
    status : str
        How far it came.
    advice : str
        The advice for Python; the command line replaces it by advice about its options.

    Examples
    --------
    >>> print(NotConverged("10 iterations: gap 0.3 > tol = 0.001", "Raise `max_iter`."))
    10 iterations: gap 0.3 > tol = 0.001. Raise `max_iter`.
    """

    def __init__(self, status: str, advice: str) -> None:
        self.status, self.advice = status, advice
        super().__init__(f"{status}. {advice}")
