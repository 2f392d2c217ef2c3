"""Callbacks of scikit-learn 1.9 and newer; with older releases an estimator refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.errors import InvalidInput

__all__ = ["CallbackSupportMixin", "with_callbacks"]

if TYPE_CHECKING:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Stands in for scikit-learn's class of this name, which releases before 1.9 do not have."""

            def set_callbacks(self, *callbacks: Any) -> Any:
                """Refuse callbacks, and name an alternative."""
                import sklearn

                raise InvalidInput(
                    "callbacks need scikit-learn 1.9 or newer",
                    got=f"scikit-learn {sklearn.__version__}",
                    advice="Upgrade scikit-learn, or pass a function as `progress` if the model has that parameter.",
                )

        def with_callbacks(fit: Any) -> Any:
            """Return `fit` unchanged: there are no callbacks to prepare."""
            return fit
