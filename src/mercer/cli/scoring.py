"""How good a model is, on rows that it has not seen: scores with intervals, beside those of a guess.

Intervals are by the bootstrap: the rows are drawn again with replacement, 1 000 times, and the middle 90 % of the
scores is shown. They tell what another test set of this size might say, not what another training set would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DRAWS, CELLS = 1000, 5_000_000


def scores_of(model: Any, X: Any, y: Array, *, baseline: Array) -> list[dict[str, Any]]:
    """Scores of a model on rows: name, value, interval, and what a guess from `baseline` (training targets) gets."""
    if hasattr(model, "classes_"):
        return _classification(model, X, y, baseline)
    return _regression(model, X, y, baseline)


def of_predictions(y: Array, f: Array, baseline: Array) -> list[dict[str, Any]]:
    """The scores of regression, of predictions as they are."""
    mean = float(np.mean(baseline))
    spread = float(np.sum((y - y.mean()) ** 2))

    def r2(i: Array) -> Array:
        rest = ((y[i] - f[i]) ** 2).sum(axis=-1)
        whole = ((y[i] - y[i].mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        return np.where(whole > 0, 1 - rest / np.where(whole > 0, whole, 1.0), np.nan)

    rmse, mae = np.sqrt(np.mean((y - mean) ** 2)), np.mean(np.abs(y - np.median(baseline)))
    found = [
        _score("R²", r2, len(y), 0.0) if spread > 0 and len(y) > 1 else None,
        _score("RMSE", lambda i: np.sqrt(((y[i] - f[i]) ** 2).mean(axis=-1)), len(y), float(rmse)),
        _score("MAE", lambda i: np.abs(y[i] - f[i]).mean(axis=-1), len(y), float(mae)),
    ]  # fmt: skip
    return [score for score in found if score is not None]


def _regression(model: Any, X: Any, y: Array, baseline: Array) -> list[dict[str, Any]]:
    f = np.asarray(model.predict(X), dtype=np.float64)
    found = of_predictions(np.asarray(y, dtype=np.float64), f, np.asarray(baseline, dtype=np.float64))
    if str(getattr(model, "family", "")) == "poisson" and (f > 0).all():
        from sklearn.metrics import mean_poisson_deviance

        guess = np.full(len(y), max(float(np.mean(baseline)), 1e-12))
        found.append(
            {
                "name": "Poisson deviance",
                "value": float(mean_poisson_deviance(y, f)),
                "interval": None,
                "guess": float(mean_poisson_deviance(y, guess)),
            }
        )
    return found


def _classification(model: Any, X: Any, y: Array, baseline: Array) -> list[dict[str, Any]]:
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    P = probabilities(model, X)
    labels = np.asarray(model.predict(X))
    right = (labels == y).astype(np.float64)
    values, times = np.unique(baseline, return_counts=True)
    common = values[times.argmax()]
    found: list[dict[str, Any]] = [
        _score("accuracy", lambda i: right[i].mean(axis=-1), len(y), float(np.mean(y == common))),
    ]
    seen = np.unique(y)
    if len(seen) > 1:
        found.append(
            {
                "name": "balanced accuracy",
                "value": float(balanced_accuracy_score(y, labels)),
                "interval": None,
                "guess": 1.0 / len(values),
            }
        )
    classes = np.asarray(model.classes_)
    if P is not None:
        code = {label: k for k, label in enumerate(classes.tolist())}
        place = np.array([code.get(label, -1) for label in np.asarray(y).tolist()])
        own = np.where(place >= 0, P[np.arange(len(y)), np.maximum(place, 0)], 0.0)
        loss = -np.log(np.clip(own, 1e-15, 1.0))
        share = {label: t / len(baseline) for label, t in zip(values.tolist(), times.tolist())}
        guess = float(np.mean([-np.log(share.get(label, 1e-15)) for label in np.asarray(y).tolist()]))
        found.append(_score("log loss", lambda i: loss[i].mean(axis=-1), len(y), guess))
    if len(classes) == 2 and len(seen) == 2:
        try:
            rank = P[:, 1] if P is not None else np.asarray(model.decision_function(X))
            auc = float(roc_auc_score(y == classes[1], rank))
            found.append({"name": "AUC", "value": auc, "interval": None, "guess": 0.5})
        except (AttributeError, ValueError):
            pass
    return found


def probabilities(model: Any, X: Any) -> Array | None:
    """Probabilities of the classes, or None from a model without."""
    if not hasattr(model, "predict_proba"):
        return None
    try:
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    except (AttributeError, NotImplementedError, ValueError):
        return None


def _score(name: str, at: Callable[[Array], Array], n: int, guess: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    everything = np.arange(n)
    interval = None
    if n >= 10:
        draws = min(DRAWS, max(50, CELLS // n))
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = np.concatenate([np.atleast_1d(at(rng.integers(0, n, size=(10, n)))) for _ in range(draws // 10)])
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn):
            interval = [float(q) for q in np.quantile(drawn, [0.05, 0.95])]
    return {"name": name, "value": float(at(everything)), "interval": interval, "guess": guess}
