"""The shared part of estimators around any other model: its tags, and the columns that it was fitted to."""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags

from mercer.files import Saved

TAGS = ("input_tags", "target_tags", "classifier_tags", "regressor_tags")
COLUMNS = ("n_features_in_", "feature_names_in_")


class AroundModel(Saved):
    """An estimator whose parameter `model` is an estimator of the same kind, and does most of the work.

    It stands before `ClassifierMixin` or `RegressorMixin` among the bases, whose tags it replaces by those of `model`.
    """

    model: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of the mixin
        if hasattr(self.model, "predict"):
            inner = get_tags(self.model)
            for name in TAGS:
                if getattr(tags, name) is not None:
                    setattr(tags, name, getattr(inner, name))
        return tags

    def _keep_columns(self, fitted: Any) -> None:
        """The number and names of the columns that the model inside was fitted to, where it has them."""
        for name in COLUMNS:
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
