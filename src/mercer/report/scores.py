"""How good a model is on rows it has not seen, with the uncertainty of having seen only so many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, roc_auc_score

Matrix = NDArray[np.float64]
DRAWS = 200
"""Resamples of the rows."""


@dataclass(frozen=True)
class Score:
    """A measure with its 90 % interval over other draws of as many rows, and what a constant would reach."""

    name: str
    value: float
    low: float
    high: float
    constant: float
    better: str
    """"higher" or "lower"."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a model says of some rows, and how bad each answer is.

    Attributes
    ----------
    answers : predictions, shape (n,).
    losses : of each row: |error|, or −log of the probability of its class, or 1 where it is wrong.
    scores : the measures.
    probabilities : of the classes, or None.
    """

    answers: NDArray[Any]
    losses: Matrix
    scores: list[Score]
    probabilities: Matrix | None


def judge(model: Any, X: Any, y: NDArray[Any], y_train: NDArray[Any] | None = None) -> Judgement:
    """Score a fitted model on rows, classes or numbers; `y_train` is what a constant learns from."""
    rng = np.random.default_rng(0)
    base = y if y_train is None else y_train
    answers = np.asarray(model.predict(X))
    draws = [rng.integers(0, len(y), len(y)) for _ in range(DRAWS)]
    if is_classifier(model):
        return _classes(model, X, y, base, answers, draws)
    truth = y.astype(np.float64)
    errors = np.abs(truth - answers)
    middle = np.full(len(y), float(np.mean(base.astype(np.float64))))

    def measured(name: str, measure: Callable[..., float], better: str) -> Score:
        return _score(name, measure, truth, answers, middle, draws, better)

    scores = [
        measured("R²", r2_score, "higher"),
        measured("root mean squared error", _rmse, "lower"),
        measured("mean absolute error", mean_absolute_error, "lower"),
    ]
    return Judgement(answers, errors, scores, None)


def _classes(
    model: Any, X: Any, y: NDArray[Any], base: NDArray[Any], answers: NDArray[Any], draws: list[NDArray[np.int64]]
) -> Judgement:
    labels, counts = np.unique(base, return_counts=True)
    commonest = np.full(len(y), labels[counts.argmax()])
    scores = [_score("accuracy", accuracy_score, y, answers, commonest, draws, "higher")]
    probabilities = None
    losses = (answers != y).astype(np.float64)
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
        classes = np.asarray(model.classes_)
        at = np.searchsorted(classes, y)
        known = (at < len(classes)) & (classes[np.minimum(at, len(classes) - 1)] == y)
        own = np.where(known, probabilities[np.arange(len(y)), np.minimum(at, len(classes) - 1)], 0.0)
        losses = -np.log(np.maximum(own, 1e-15))
        share = np.tile(counts / counts.sum(), (len(y), 1))
        if known.all() and len(labels) == len(classes):
            scores.append(
                _score("log-loss", lambda a, p: log_loss(a, p, labels=classes), y, probabilities, share, draws, "lower")
            )
        if len(classes) == 2 and len(np.unique(y)) == 2:
            flat = np.full(len(y), 0.5)
            scores.append(_score("area under ROC", _auc, y == classes[1], probabilities[:, 1], flat, draws, "higher"))
    return Judgement(answers, losses, scores, probabilities)


def _auc(y: NDArray[Any], p: Matrix) -> float:
    return float(roc_auc_score(y, p)) if 0 < y.sum() < len(y) else np.nan


def _rmse(y: Matrix, p: Matrix) -> float:
    return float(np.sqrt(np.mean((y - p) ** 2)))


def _score(
    name: str,
    measure: Callable[..., float],
    y: NDArray[Any],
    answers: NDArray[Any],
    constant: NDArray[Any],
    draws: list[NDArray[np.int64]],
    better: str,
) -> Score:
    again = np.array([measure(y[d], answers[d]) for d in draws]) if len(y) > 1 else np.array([np.nan])
    low, high = np.nanquantile(again, [0.05, 0.95]) if np.isfinite(again).any() else (np.nan, np.nan)
    return Score(name, float(measure(y, answers)), float(low), float(high), float(measure(y, constant)), better)


def sensitivities(model: Any, X: Any, y: NDArray[Any], names: list[str], shuffled: Callable[..., Any]) -> Matrix:
    """How much worse a model gets when one column is put in another order: the mean rise of its loss, shape (d,)."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    before = judge_losses(model, X, y).mean()
    return np.array([judge_losses(model, shuffled(X, j, order), y).mean() - before for j in range(len(names))])


def judge_losses(model: Any, X: Any, y: NDArray[Any]) -> Matrix:
    """The loss of each row alone: squared error, or −log probability, or wrong."""
    if not is_classifier(model):
        return np.asarray((y.astype(np.float64) - model.predict(X)) ** 2)
    if hasattr(model, "predict_proba"):
        at = np.searchsorted(model.classes_, y)
        own = model.predict_proba(X)[np.arange(len(y)), np.minimum(at, len(model.classes_) - 1)]
        return -np.log(np.maximum(own, 1e-15))
    return (np.asarray(model.predict(X)) != y).astype(np.float64)
