"""Labels of any kind as class numbers: what every classifier does before its mathematics begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mercer.data.frames import unframed
from mercer.data.missing import missing_entries
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.base import Matrix, shortened, shown, weights

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Points with class numbers: the rows of weight > 0.

    Attributes
    ----------
    points : the n points that count.
    classes : the k ≥ 2 different labels, sorted.
    codes : the class number of each point, shape (n,).
    weights : sample weight × class weight of each point, shape (n,), or None where all are one.
    counts : the sample weights alone, or None where all are one: for shares of rows and probabilities.
    kept : their positions among the rows that were given.
    """

    points: Points
    classes: NDArray[Any]
    codes: Index
    weights: Matrix | None
    counts: Matrix | None
    kept: Index

    @classmethod
    def of(
        cls, points: Points, y: Any, sample_weight: Any = None, class_weight: Any = None, *, model: str, regressor: str
    ) -> Labelled:
        """Checked rows from what `fit` was given.

        Parameters
        ----------
        points, y : n points and their labels.
        sample_weight : numbers ≥ 0, one per point; a row of weight 0 is left out.
        class_weight : None, "balanced" or numbers > 0 by label.
        model, regressor : the classifier's name, and the model for whoever passes numbers to be predicted, for errors.
        """
        given = labels(y, points.n, regressor)
        w = weights(sample_weight, points.n)
        kept = np.arange(points.n) if w is None or w.all() else np.flatnonzero(w)
        w = counts = None if w is None else w[kept]
        classes, codes = np.unique(given[kept], return_inverse=True)
        if len(classes) < 2:
            lost = ", the only one with weight > 0" if len(np.unique(given)) > 1 else ""
            raise InvalidInput(
                f"{model} needs at least two classes",
                got=f"1 class, {shown(classes[0])}{lost}",
                advice="Check y and the weights; OneClassSVM describes a single class.",
            )
        if class_weight is not None:
            ones = np.ones(len(kept)) if w is None else w
            w = ones * class_weights(class_weight, classes, codes, ones)[codes]
        points = points if len(kept) == points.n else points.take(kept)
        return cls(points, classes, codes.astype(np.int64), w, counts, kept)

    def __len__(self) -> int:
        return len(self.codes)


def class_weights(given: Any, classes: NDArray[Any], codes: Index, w: Matrix) -> Matrix:
    """One factor of the weights for each class."""
    k = len(classes)
    if given is None:
        return np.ones(k)
    if isinstance(given, str) and given == "balanced":
        return w.sum() / (k * np.bincount(codes, w, minlength=k))
    required = "`class_weight` must be None, 'balanced' or a dictionary of numbers > 0 by label"
    if not isinstance(given, Mapping):
        raise InvalidInput(required, got=shortened(given), advice="Pass a dictionary, such as {'spam': 2.0}.")
    unknown = sorted(given.keys() - set(classes.tolist()), key=str)
    if unknown and not given.keys() >= set(classes.tolist()):  # a part of the classes may be fitted with those of all
        names = ", ".join(shown(label) for label in classes[:10]) + (", …" if len(classes) > 10 else "")
        raise InvalidInput(
            "`class_weight` must be by label, one of the classes", got=shown(unknown[0]), advice=f"Choose from {names}."
        )
    factors = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=object)
    for label, value in zip(classes, factors):
        try:
            fine = 0 < float(value) < np.inf
        except (TypeError, ValueError):
            fine = False
        if not fine:
            raise InvalidInput(
                required, got=f"{shown(value)} for {shown(label)}", advice="Drop rows to leave a class out."
            )
    return factors.astype(np.float64)


def labels(y: Any, n: int, regressor: str = "SVR") -> NDArray[Any]:
    """One label per point, of any kind; the error about numbers to be predicted names the regressor."""
    if y is None:
        raise InvalidInput(
            "A classifier requires y to be passed, but the target y is None",
            got="None",
            advice="Pass one label per row.",
        )
    required = "y must hold one label per point: numbers, strings or booleans"
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU":
        checked = y  # labels without any doubt
    else:
        checked = _checked(y, required, regressor)
    if len(checked) != n:
        raise InvalidInput(required, got=f"{len(checked)} labels for {n} points", advice="Check both lengths.")
    return checked


def _checked(y: Any, required: str, regressor: str) -> NDArray[Any]:
    try:
        given = unframed(y)
        values = column_or_1d(given, warn=True)
        # NumPy makes text of ["a", 1] and of ["a", nan]: what a list held is asked before that.
        listed = values.dtype.kind == "U" and not hasattr(given, "dtype")
        _same_kind(np.array(given, dtype=object).ravel() if listed else values, np.ma.getmask(given), required)
        if values.dtype == object:  # numbers and booleans in disguise
            plain = np.array(values.tolist())
            values = plain if plain.ndim == 1 and plain.dtype.kind in "biuf" else values
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError("Input y contains infinity")
        check_classification_targets(values)
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:
        advice = f"For numbers to be predicted use {regressor}; classes are whole numbers, strings or booleans."
        raise InvalidInput(required, got=f"this: {str(error).rstrip('.')}", advice=advice) from None
    return np.asarray(values)


def _same_kind(given: NDArray[Any], mask: Any, required: str) -> None:
    """No label is missing, and none is text unless all are: "1" is not 1, and the two have no order."""
    missing = missing_entries(given) | np.ravel(mask)
    if missing.any():
        raise InvalidInput(
            required,
            got=f"a missing label (None, NaN, NaT or masked) in row {missing.argmax()}",
            advice="Drop such rows (X and y), or make missing labels a class of their own.",
        )
    text = np.array([isinstance(label, str) for label in given.tolist()]) if given.dtype == object else np.ones(1)
    if text.any() and not text.all():
        rows = [int(text.argmax()), int(text.argmin())]
        raise InvalidInput(
            required + ", all of one kind",
            got=" and ".join(f"{shown(given[row])} in row {row}" for row in rows),
            advice="Convert all of them to text: [str(label) for label in y].",
        )
