"""Callbacks of scikit-learn, which has them from release 1.9 on; older releases get an estimator that refuses them."""

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
            """The place of scikit-learn's class of this name in releases before 1.9, which have no callbacks."""

            def set_callbacks(self, *callbacks: Any) -> Any:
                """Refuse callbacks, and name what does the same job."""
                import sklearn

                raise InvalidInput(
                    "callbacks need scikit-learn 1.9 or newer",
                    got=f"scikit-learn {sklearn.__version__}",
                    advice="Upgrade scikit-learn, or pass `progress=` a function where the model has that parameter.",
                )

        def with_callbacks(fit: Any) -> Any:
            """Leave `fit` as it is: there are no callbacks to prepare."""
            return fit
