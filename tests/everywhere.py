"""What every kind of object must go through: models, selection, pipelines, files, and data that changes afterwards."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import mercer as mc
from mercer.data.points import take


def works_everywhere(kernel, X, labels, tmp_path, change=None):
    """Fit every kind of model on the objects; `change` alters one of them in place, after the fit."""
    y = np.asarray([float(label == labels[0]) for label in labels])
    n = len(y)
    for model, target in (
        (mc.SVC(kernel, C=10.0), labels),
        (mc.KernelRidge(kernel, alpha=0.1), y),
        (mc.GaussianProcessRegressor(kernel, alpha=0.1), y),
        (mc.KernelNeighborsClassifier(kernel, n_neighbors=3), labels),
    ):
        kept = copy.deepcopy(X)
        model.fit(kept, target)
        expected = model.predict(X)
        assert len(expected) == n
        model.save(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(mc.load(tmp_path / "model.safetensors").predict(X), expected)
        if change is not None:
            change(kept)
            np.testing.assert_array_equal(model.predict(X), expected)
    assert mc.KernelPCA(kernel, n_components=2).fit_transform(X).shape == (n, 2)
    scores = cross_val_score(mc.SVC(kernel, C=10.0), X, labels, cv=3)
    assert scores.mean() > 0.8
    assert make_pipeline(mc.SVC(kernel, C=10.0)).fit(X, labels).score(X, labels) > 0.8
    np.testing.assert_allclose(kernel(X)[:3], kernel(take(X, slice(0, 3)), X), rtol=1e-12, atol=1e-12)
    V = np.random.default_rng(0).normal(size=(n, 2))
    np.testing.assert_allclose(mc.gram.of(kernel, X, budget=1) @ V, kernel(X) @ V, rtol=1e-9, atol=1e-9)
