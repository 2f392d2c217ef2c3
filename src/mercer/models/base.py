"""What every estimator with a kernel shares: parameters that reach into frozen expressions."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from mercer.kernels.values import Value


class KernelEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn estimator whose parameters may be kernels.

    Kernels are frozen values, so `clone` shares them and `set_params(kernel__sigma=2.0)` puts another kernel in their
    place. Names go as deep as the expression does: `kernel__0__sigma` is the width of the first term of a sum.

    >>> import mercer as mc
    >>> from mercer.models.base import KernelEstimator
    >>> class Model(KernelEstimator):
    ...     def __init__(self, kernel=None):
    ...         self.kernel = kernel
    >>> Model(mc.Gaussian(1.0) + mc.Linear()).set_params(kernel__0__sigma=2.0).kernel
    Gaussian(sigma=2.0) + Linear()
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `kernel__...` replaces the kernel by one with other parameters."""
        inside: dict[str, dict[str, Any]] = {}
        own = {}
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if rest and isinstance(params.get(head, getattr(self, head, None)), Value):
                inside.setdefault(head, {})[rest] = value
            else:
                own[name] = value
        super().set_params(**own)
        for head, changes in inside.items():
            setattr(self, head, getattr(self, head).replace(**changes))
        return self
