"""Labels of any kind as class numbers: the first step of every classifier."""

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
from mercer.models.base import Matrix, shortened, shown, weighted_rows, weights
from mercer.words import first_few

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Points with class numbers: the rows of weight > 0.

    Attributes
    ----------
    points : Points
        The n points that count.
    classes : array
        The k ≥ 2 different labels, sorted.
    codes : Index
        The class number of each point, shape (n,).
    weights : array or None
        Sample weight × class weight of each point, shape (n,), or None if all are one.
    counts : array or None
        The sample weights alone, for shares of rows and probabilities; None if all are one.
    kept : Index
        Their positions among the rows that were passed.
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
        """The rows of the arguments of `fit`, checked.

        Parameters
        ----------
        points, y
            n points and their labels.
        sample_weight : array or None
            Numbers ≥ 0, one per point; a row of weight 0 is left out.
        class_weight : dict, "balanced" or None
            None, "balanced" or numbers > 0 by label.
        model, regressor : str
            The names of the classifier and of the model for numbers, for error messages.
        """
        all_labels = labels(y, points.n, regressor)
        w = weights(sample_weight, points.n)
        kept = weighted_rows(w, points.n)
        w = counts = None if w is None else w[kept]
        classes, codes = np.unique(all_labels[kept], return_inverse=True)
        if len(classes) < 2:
            lost = ", the only one with weight > 0" if len(np.unique(all_labels)) > 1 else ""
            raise InvalidInput(
                f"{model} needs at least two classes",
                got=f"1 class, {shown(classes[0])}{lost}",
                advice="Check y and the weights, or use OneClassSVM, which describes a single class.",
            )
        if class_weight is not None:
            ones = np.ones(len(kept)) if w is None else w
            w = ones * class_weights(class_weight, classes, codes, ones)[codes]
        points = points if len(kept) == points.n else points.take(kept)
        return cls(points, classes, codes.astype(np.int64), w, counts, kept)

    def __len__(self) -> int:
        return len(self.codes)


def class_weights(class_weight: Any, classes: NDArray[Any], codes: Index, w: Matrix) -> Matrix:
    """One factor of the weights for each class."""
    k = len(classes)
    if class_weight is None:
        return np.ones(k)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return w.sum() / (k * np.bincount(codes, w, minlength=k))
    required = "`class_weight` must be None, 'balanced' or a dictionary of numbers > 0 by label"
    if not isinstance(class_weight, Mapping):
        raise InvalidInput(required, got=shortened(class_weight), advice="Pass a dictionary, such as {'spam': 2.0}.")
    known = set(classes.tolist())
    unknown = sorted(class_weight.keys() - known, key=str)
    if unknown and not class_weight.keys() >= known:  # the weights of all classes may be passed for a part of them
        names = first_few(classes, 10, shown)
        raise InvalidInput(
            "`class_weight` must be by label, one of the classes", got=shown(unknown[0]), advice=f"Choose from {names}."
        )
    factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=object)
    for label, value in zip(classes, factors):
        try:
            fine = 0 < float(value) < np.inf
        except (TypeError, ValueError):
            fine = False
        if not fine:
            raise InvalidInput(
                required, got=f"{shown(value)} for {shown(label)}", advice="Drop the rows of a class to leave it out."
            )
    return factors.astype(np.float64)


def decided(values: Matrix, classes: NDArray[Any]) -> NDArray[Any]:
    """The label for each row of values: of two classes, shape (m,), the second if > 0; of more the largest, (m, k).

    >>> decided(np.array([-1.0, 2.0]), np.array(["no", "yes"])).tolist()
    ['no', 'yes']
    """
    return np.asarray(classes[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)])


def labels(y: Any, n: int, regressor: str = "SVR") -> NDArray[Any]:
    """One label per point, of any kind; the error about continuous numbers names the regressor."""
    if y is None:
        raise InvalidInput(
            "A classifier requires y to be passed, but the target y is None",
            got="None",
            advice="Pass one label per row.",
        )
    required = "y must hold one label per point: numbers, strings or booleans"
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU":
        values = y  # labels without any doubt
    else:
        values = _checked(y, required, regressor)
    if len(values) != n:
        raise InvalidInput(required, got=f"{len(values)} labels for {n} points", advice="Check the lengths of X and y.")
    return values


def _checked(y: Any, required: str, regressor: str) -> NDArray[Any]:
    try:
        plain_y = unframed(y)
        values = column_or_1d(plain_y, warn=True)
        # NumPy converts ["a", 1] and ["a", nan] to text: look at the entries of a list before that.
        listed = values.dtype.kind == "U" and not hasattr(plain_y, "dtype")
        _check_kinds(np.array(plain_y, dtype=object).ravel() if listed else values, np.ma.getmask(plain_y), required)
        if values.dtype == object:  # perhaps numbers or booleans
            plain = np.array(values.tolist())
            values = plain if plain.ndim == 1 and plain.dtype.kind in "biuf" else values
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError("Input y contains infinity")
        check_classification_targets(values)
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:
        advice = f"Use {regressor} to predict numbers; classes are whole numbers, strings or booleans."
        raise InvalidInput(required, got=f"this: {str(error).rstrip('.')}", advice=advice) from None
    return np.asarray(values)


def _check_kinds(values: NDArray[Any], mask: Any, required: str) -> None:
    """Refuse missing labels, and text among other labels: "1" is not 1, and the two have no order."""
    missing = missing_entries(values) | np.ravel(mask)
    if missing.any():
        raise InvalidInput(
            required,
            got=f"a missing label (None, NaN, NaT or masked) in row {missing.argmax()}",
            advice="Drop such rows (X and y), or make missing labels a class of their own.",
        )
    text = np.array([isinstance(label, str) for label in values.tolist()]) if values.dtype == object else np.ones(1)
    if text.any() and not text.all():
        rows = [int(text.argmax()), int(text.argmin())]
        raise InvalidInput(
            required + ", all of one kind",
            got=" and ".join(f"{shown(values[row])} in row {row}" for row in rows),
            advice="Convert all of them to text: [str(label) for label in y].",
        )


def position_of_label(classes: NDArray[Any], label: Any) -> int:
    """The position of the class of a model that a parameter `label` names; by default that of the second of two.

    >>> position_of_label(np.array(["no", "yes"]), "no"), position_of_label(np.array(["no", "yes"]), None)
    (0, 1)
    """
    if label is None:
        if len(classes) == 2:
            return 1
        raise InvalidInput(
            "`label` must name the class whose probability is meant",
            got=f"None for {len(classes)} classes",
            advice=f"Pass a class such as {shown(classes[0])}.",
        )
    listed = classes.tolist()
    if label not in listed:
        raise InvalidInput(
            f"`label` must be one of the classes {', '.join(shown(one) for one in classes[:10])}",
            got=shown(label),
            advice="Pass one of these classes, with the same type.",
        )
    return int(listed.index(label))
