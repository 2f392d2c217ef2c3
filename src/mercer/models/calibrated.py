"""A classifier with calibrated probabilities, and the threshold from which a class is predicted."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.files import described
from mercer.models.around import AroundModel
from mercer.models.auto.classifier import AutoClassifier
from mercer.models.base import Matrix, all_or_nothing, shown, training_points
from mercer.models.choices import with_choices
from mercer.models.judging.thresholds import ThresholdCurve, threshold_of_costs
from mercer.models.labels import Labelled, class_weights, position_of_label
from mercer.models.recalibration import Recalibration, left_out_probabilities, probabilities
from mercer.models.svm.probabilities import Softmax
from mercer.models.svm.svc import SVC
from mercer.tuning.folds import make_folds
from mercer.validation import check_number, check_whole_number
from mercer.words import shortened

Index = NDArray[np.int64]

LEFT_OUT_ROWS, HELD_OUT_ROWS = 2500, 2000
"""Without leave-one-out in closed form, up to the first number of rows every row is left out once, in one of the folds;
of more rows about the second number are held out once, since few parameters are fitted to them."""


@dataclass(eq=False, repr=False)
class CalibratedClassifier(AroundModel, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier with calibrated probabilities, which may predict a class from a threshold other than one half.

    Probabilities are calibrated on the training rows, each predicted by a model that was fitted without it: in closed
    form if the model has leave-one-out probabilities of all rows at hand, otherwise by folds; of more than 2,500 rows
    about 2,000 are held out once. `model_` itself is fitted to all rows. `AutoClassifier` and a calibrated `SVC`
    calibrate themselves: their probabilities are used as they are, except for threshold="f1".

    Parameters
    ----------
    model : estimator
        A classifier, of this library or of scikit-learn; it is cloned.
    threshold : float, "f1" or None
        For two classes, the probability from which `label` is predicted: a number in (0, 1), or "f1" for the one with
        the largest F1 (the harmonic mean of recall and precision) on left-out rows. None predicts the most probable
        class.
    costs
        A pair (missed, false_alarm) or None: the costs of a row of `label` that is not predicted to be one, and
        of another that is: sets the threshold with the least expected cost, false_alarm/(missed + false_alarm).
    label
        The class that the threshold is for; by default the second of two.
    class_weight : dict, "balanced" or None
        None, "balanced" or numbers > 0 by label: how much an error counts in each class. The class whose errors would
        cost most is predicted; probabilities stay those of the data. A model with a `class_weight` of its own can get
        the same one, so that its fit looks more closely at these classes.
    cv : int
        The number of folds of models without leave-one-out in closed form.
    random_state : int, Generator or None
        Seed of the folds.

    Attributes
    ----------
    model_ : estimator
        The model, fitted to all rows.
    classes_ : array
        The labels, sorted.
    recalibration_ : Recalibration
        From probabilities of `model_` to calibrated ones.
    threshold_ : float or None
        The probability from which `label` is predicted; None for the most probable class.
    loo_proba_, loo_predictions_ : array
        Calibrated probabilities and labels of the training rows by models that were fitted without them; only if every
        row was left out, and not in a loaded model.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1400, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=1400) > 1.5, "ill", "well")
    >>> votes = mc.KernelNeighborsClassifier(n_neighbors=5)
    >>> model = mc.CalibratedClassifier(votes, costs=(9, 1), label="ill").fit(X[:400], y[:400])
    >>> model.threshold_, bool(model.predict_proba(X[400:]).min() > 0)
    (0.1, True)
    >>> ill = y[400:] == "ill"
    >>> round(float((votes.fit(X[:400], y[:400]).predict(X[400:])[ill] == "ill").mean()), 1)    # recall
    0.3
    >>> bool((model.predict(X[400:])[ill] == "ill").mean() > 0.8)
    True
    """

    model: Any
    _: KW_ONLY
    threshold: Any = None
    costs: Any = None
    label: Any = None
    class_weight: Any = None
    cv: int = 5
    random_state: Any = 0

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to n points X and their labels y, and calibrate it on left-out rows."""
        self._check()
        data = self._labelled(X, y, sample_weight)
        model = _fitted(clone(self.model), data.points.raw, data.classes[data.codes], data.weights)
        return self._calibrate(model, data, X)

    @classmethod
    def around(cls, model: Any, X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> Self:
        """A calibrated classifier around a model that was already fitted to X and y, with further parameters.

        >>> import numpy as np, mercer as mc
        >>> X = np.random.default_rng(0).normal(size=(100, 1))
        >>> model = mc.LeastSquaresClassifier(mc.Gaussian(1.0)).fit(X, X[:, 0] > 0)
        >>> mc.CalibratedClassifier.around(model, X, X[:, 0] > 0).predict_proba([[2.0]]).round(1)
        array([[0., 1.]])
        """
        self = cls(with_choices(model), **parameters)
        self._check()
        return self._calibrate(model, self._labelled(X, y, sample_weight), X)

    def around_again(self, model: Any) -> CalibratedClassifier:
        """The same calibration and threshold around another fit of the same model, such as one to more rows."""
        again = clone(self)
        again.__dict__.update({name: value for name, value in vars(self).items() if name != "_left_out"})
        again.model_ = model
        return again

    def _check(self) -> None:
        if isinstance(self.model, type) or not all(hasattr(self.model, name) for name in ("fit", "predict")):
            raise InvalidInput(
                "`model` must be a classifier with fit and predict",
                got=shortened(self.model),
                advice="Pass an instance such as mc.KernelLogisticRegression().",
            )
        check_whole_number(self.cv, "cv", least=2, such_as=5)
        chosen = [name for name in ("threshold", "costs", "class_weight") if getattr(self, name) is not None]
        if len(chosen) > 1:
            raise InvalidInput(
                "One of `threshold`, `costs` and `class_weight` decides which class is predicted",
                got=" and ".join(chosen),
                advice="Omit all but one of them.",
            )
        if self.threshold is not None and not (isinstance(self.threshold, str) and self.threshold == "f1"):
            check_number(self.threshold, "threshold", above=0, below=1, alternative="'f1' or None", such_as=0.3)

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> Labelled:
        return Labelled.of(training_points(X), y, sample_weight, model=type(self).__name__, regressor="KernelRidge")

    def _calibrate(self, model: Any, data: Labelled, X: Any) -> Self:
        """Calibrate a fitted model on left-out rows, and choose the threshold. X are all rows, also of weight 0."""
        self.model_, self.classes_, self._fitted_on = model, np.asarray(model.classes_), described(X)
        at, by_f1 = self._label_position(), isinstance(self.threshold, str)
        P, self._left_out = np.empty((0, len(self.classes_))), None
        if calibrates_itself(model) and not by_f1:
            rows, self.recalibration_ = np.arange(0), Recalibration(0.0, Softmax(1.0, np.zeros(len(self.classes_))))
        else:
            rows, P = self._left_out_probabilities(data)
            self.recalibration_ = self._recalibrated(P, data, rows)
            P = self.recalibration_(P)
        codes, counts = data.codes[rows], None if data.counts is None else data.counts[rows]
        self.threshold_: float | None = None
        if self.costs is not None:
            self.threshold_ = threshold_of_costs(*self._two_costs())
        elif by_f1:
            self.threshold_ = ThresholdCurve.of(codes == at, P[:, at], weights=counts, label=self.classes_[at]).best()
        elif self.threshold is not None:
            self.threshold_ = float(self.threshold)
        ones = np.ones(len(data)) if data.counts is None else data.counts
        self._factors = class_weights(self.class_weight, self.classes_, data.codes, ones)
        if len(rows) == len(data):  # every row was left out
            self._left_out = self._everywhere(P[np.argsort(rows)], data, X)
        self._keep_columns(model)
        return self

    def _everywhere(self, P: Matrix, data: Labelled, X: Any) -> Matrix | None:
        """Probabilities of all rows: of left-out rows, and those of the model for rows of weight 0, not in its fit.

        None if the model compares with a matrix of similarities, whose columns are those of the fit.
        """
        n = training_points(X).n
        if n == len(data):
            return P
        if get_tags(self.model_).input_tags.pairwise:
            return None
        whole, others = np.empty((n, P.shape[1])), np.setdiff1d(np.arange(n), data.kept)
        whole[data.kept], whole[others] = P, self.predict_proba(take(X, others))
        return whole

    def _recalibrated(self, P: Matrix, data: Labelled, rows: Index) -> Recalibration:
        """The calibration of probabilities of left-out rows.

        Class weights of the model move its values in favour of some classes, for which offsets compensate.
        """
        shifted = None if getattr(self.model_, "class_weight", None) is None else True
        counts = None if data.counts is None else data.counts[rows]
        return Recalibration.fit(P, data.codes[rows], counts, shifted=shifted)

    def _label_position(self) -> int:
        """The position of the class that the threshold is for."""
        if self.threshold is None and self.costs is None:
            return len(self.classes_) - 1
        if len(self.classes_) != 2:
            raise InvalidInput(
                "`threshold` and `costs` are for two classes",
                got=f"{len(self.classes_)} classes",
                advice="Pass `class_weight`, which says how much an error counts in each class.",
                option="Use --balance, by which every class counts the same.",
            )
        return position_of_label(self.classes_, self.label)

    def _two_costs(self) -> tuple[Any, Any]:
        try:
            missed, false_alarm = self.costs
        except (TypeError, ValueError):
            raise InvalidInput(
                "`costs` must be the cost of a missed row and that of a false alarm",
                got=shortened(self.costs),
                advice="Pass two numbers such as (5, 1).",
            ) from None
        return missed, false_alarm

    def _left_out_probabilities(self, data: Labelled) -> tuple[Index, Matrix]:
        """Rows, and their probabilities by models that were fitted without them."""
        # On centres, the leverages of many rows cost several times another fit.
        kept = getattr(getattr(self.model_, "function_", None), "points", None)
        on_centres = kept is not None and kept.n < len(data) > LEFT_OUT_ROWS
        P = None if on_centres else left_out_probabilities(self.model_)
        if P is not None and len(P) > data.kept[-1]:  # of all rows, of which some have weight 0
            P = P[data.kept]
        if P is not None and len(P) == len(data):
            return np.arange(len(data)), P
        n, unfitted = len(data), with_choices(self.model_)
        counts = np.bincount(data.codes)
        smallest, alone = int(counts.min()), int(counts.argmin())
        if np.sort(counts)[-2] < 2:  # without that row, one class is left
            raise InvalidInput(
                "Calibration by left-out rows needs at least two rows of two classes",
                got=f"one row of {shown(data.classes[alone])} beside {counts.max():,} of "
                f"{shown(data.classes[counts.argmax()])}",
                advice="Add rows of that class, or pass a model with leave-one-out probabilities in closed form.",
            )
        number = self.cv if n <= LEFT_OUT_ROWS else max(2, round(n / HELD_OUT_ROWS))
        folds = make_folds(
            n, min(number, n), y=data.codes, stratify=smallest >= number, random_state=self.random_state
        )[: None if n <= LEFT_OUT_ROWS else 1]  # fmt: skip
        parts, y = [], data.classes[data.codes]
        for fold in folds:
            w = None if data.weights is None else data.weights[fold.train]
            X, Z = (take(data.points.raw, part) for part in fold)
            if get_tags(unfitted).input_tags.pairwise:  # similarities to the rows of the fit
                X, Z = (np.asarray(part)[:, fold.train] for part in (X, Z))
            model = _fitted(clone(unfitted), X, y[fold.train], w)
            wide = np.zeros((len(fold.test), len(self.classes_)))
            wide[:, np.searchsorted(self.classes_, np.asarray(model.classes_))] = probabilities(model, Z)
            parts.append(wide)
        return np.concatenate([fold.test for fold in folds]), np.concatenate(parts)

    def _training_only(self) -> tuple[str, ...]:
        return ("_left_out",)

    # -- predict ------------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Matrix:
        """P(class | x), shape (m, k), calibrated on left-out rows; never 0 or 1."""
        check_is_fitted(self)
        return self.recalibration_(probabilities(self.model_, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: the most probable class, or the one that threshold or weights decide."""
        return self._decided(self.predict_proba(X))

    def _decided(self, P: Matrix) -> NDArray[Any]:
        if self.threshold_ is None:
            return np.asarray(self.classes_[(P * self._factors).argmax(axis=1)])
        at = self._label_position()
        return np.asarray(self.classes_[np.where(P[:, at] >= self.threshold_, at, 1 - at)])

    @property
    def loo_proba_(self) -> Matrix:
        """Calibrated probabilities of the training rows by models that were fitted without them, shape (n, k)."""
        check_is_fitted(self)
        if self._left_out is None:
            raise AttributeError("Leave-one-out probabilities need every training row to be left out once.")
        return self._left_out

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The label of each training row by a model that was fitted without it, shape (n,)."""
        return self._decided(self.loo_proba_)


def calibrates_itself(model: Any) -> bool:
    """Whether a fitted model has calibrated its probabilities on rows that it was not fitted to."""
    return isinstance(model, AutoClassifier) or (isinstance(model, SVC) and model.calibrated and model.calibrated_)


def _fitted(model: Any, X: Any, y: NDArray[Any], weights: Matrix | None) -> Any:
    return model.fit(X, y) if weights is None else model.fit(X, y, sample_weight=weights)


def decision_in_words(model: CalibratedClassifier) -> str:
    """From which probability a class is predicted, and why; "" for the most probable class."""
    if model.class_weight is not None:
        return "errors are weighted by class"
    if model.threshold_ is None:
        return ""
    why = "the threshold with the largest F1 on left-out rows" if isinstance(model.threshold, str) else "as requested"
    if model.costs is not None:
        why = "the threshold with the least expected cost"
    positive = shown(model.classes_[model._label_position()])
    return f"{positive} is predicted if its probability is at least {model.threshold_:.3g}, {why}"
