"""Frozen kernels inside scikit-learn: clone, set_params and grids reach every leaf."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV

import mercer as mc
from mercer.models.base import KernelEstimator


class Ridge(RegressorMixin, KernelEstimator):
    """Kernel ridge in four lines, to carry a kernel through scikit-learn."""

    def __init__(self, kernel=None, alpha=1e-3):
        self.kernel, self.alpha = kernel, alpha

    def fit(self, X, y):
        coef = np.linalg.solve(self.kernel(X) + self.alpha * np.eye(len(X)), y)
        self.function_ = mc.Expansion(self.kernel, X, coef)
        return self

    def predict(self, X):
        return self.function_(X)


def test_clone_shares_the_frozen_kernel():
    model = Ridge(0.5 * mc.Gaussian(1.0) + mc.Linear())
    copy = clone(model)
    assert copy is not model
    assert copy.kernel is model.kernel


def test_set_params_reaches_every_leaf_and_leaves_the_original_alone():
    kernel = 0.5 * mc.Gaussian([1.0, 2.0]) + mc.Polynomial(3, c=1.0) * mc.Matern(1.0).on(1)
    model = clone(Ridge(kernel))
    model.set_params(kernel__0__scale=2.0, kernel__0__kernel__sigma=3.0, kernel__1__0__c=4.0, alpha=0.1)
    assert model.kernel == 2.0 * mc.Gaussian(3.0) + mc.Polynomial(3, c=4.0) * mc.Matern(1.0).on(1)
    model.set_params(kernel__1__1__kernel__sigma=9.0)
    assert model.kernel.kernels[1].kernels[1].kernel.sigma == 9.0
    assert kernel.kernels[0].scale == 0.5
    assert model.alpha == 0.1
    model.set_params(kernel=mc.Gaussian(1.0), kernel__sigma=5.0)
    assert model.kernel == mc.Gaussian(5.0)


def test_unknown_parameters_are_refused_with_the_names_there_are():
    with pytest.raises(mc.InvalidInput, match=r"gamma.*sigma"):
        Ridge(mc.Gaussian(1.0)).set_params(kernel__gamma=1.0)
    with pytest.raises(ValueError, match="nonsense"):
        Ridge(mc.Gaussian(1.0)).set_params(nonsense=1.0)


def test_grid_search_finds_the_width():
    X = np.linspace(0, 1, 60)[:, None]
    y = np.sin(12 * X[:, 0])
    grid = GridSearchCV(
        Ridge(1.0 * mc.Gaussian(1.0) + mc.Constant(1.0)), {"kernel__0__kernel__sigma": [1e-3, 0.2, 50.0]}, cv=3
    )
    from sklearn.model_selection import KFold

    grid.cv = KFold(3, shuffle=True, random_state=0)
    best = grid.fit(X, y).best_params_
    assert best == {"kernel__0__kernel__sigma": 0.2}
    assert grid.best_estimator_.kernel == 1.0 * mc.Gaussian(0.2) + mc.Constant(1.0)
    assert grid.best_score_ > 0.99


def test_get_params_lists_every_leaf():
    params = Ridge(mc.Gaussian(1.0) * mc.Linear()).get_params()
    assert params["kernel__0__sigma"] == 1.0
    assert params["kernel__1"] == mc.Linear()


ESTIMATORS = [
    cls for name in mc.__all__ if inspect.isclass(cls := getattr(mc, name)) and issubclass(cls, BaseEstimator)
]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_parameters_are_declared_once(cls):
    """A model lists its parameters in its class; the constructor, its signature and `get_params` follow."""
    declared = [field.name for field in dataclasses.fields(cls) if field.init]
    assert list(inspect.signature(cls).parameters) == declared
    assert sorted(cls._get_param_names()) == sorted(declared)
