"""Values that a model has not seen in its training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer.models.judging.cautions import Caution
from mercer.words import count, first_few


@dataclass(frozen=True)
class UnseenClasses(Caution):
    """Rows of classes that no training row had: no prediction can be right for them.

    Attributes
    ----------
    classes : the labels.
    rows, of : the number of rows with such a label, and of all rows.
    """

    classes: tuple[Any, ...]
    rows: int
    of: int

    @property
    def notable(self) -> bool:
        """Whether there is such a row."""
        return self.rows > 0

    @property
    def words(self) -> str:
        have, a = ("has", "a class") if self.rows == 1 else ("have", "classes")
        return (
            f"{count(self.rows, 'row')} of {self.of:,} {have} {a} that no training row had "
            f"({first_few(self.classes, 5, repr)}): the model never predicts such a class, and these rows count as "
            "errors"
        )


def unseen_classes(model: Any, y: Any) -> UnseenClasses | None:
    """The labels among y that a fitted classifier does not know; None for a regressor.

    >>> import numpy as np, mercer as mc
    >>> model = mc.LogisticRegression().fit(np.arange(6.0)[:, None], ["a", "a", "a", "b", "b", "b"])
    >>> print(unseen_classes(model, ["a", "c", "b"]))
    1 row of 3 has a class that no training row had ('c'): the model never predicts such a class, and these rows count \
as errors
    """
    if not is_classifier(model):
        return None
    y = np.asarray(y)
    unseen = ~np.isin(y, np.asarray(model.classes_))
    return UnseenClasses(tuple(np.unique(y[unseen]).tolist()), int(unseen.sum()), len(y))
