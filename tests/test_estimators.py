"""scikit-learn's own checks on every estimator, with each expected failure and its reason."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc

ESTIMATORS = [
    mc.KernelRidge(),
    mc.KernelRidge(alpha="loo", fit_intercept=True),
    mc.KernelRidge(solver="nystrom", n_centers=10),
    mc.KernelRidge(tune="loo"),
    mc.Ridge(),
    mc.Ridge(alpha="loo"),
    mc.Ridge(form="dual"),
    mc.BayesianLinearRegression(),
    mc.BayesianLinearRegression(fit_intercept=True, tune="evidence"),
    mc.GaussianProcessRegressor(),
    mc.GaussianProcessRegressor(alpha=0.1, tune="evidence", normalize_y=True),
    mc.RBFNetwork(),
    mc.RBFNetwork(centers="all", degree=0),
]

NOT_REPETITION = {
    "loo": "leaving one of two equal rows out is not leaving out a row of weight two",
    "evidence": "a row twice is two observations, a row of weight two one with half the noise",
    "nystrom": "centres are drawn among the rows, so that rows given twice are drawn more often",
}


def expected(estimator):
    failures = {}
    choices = {getattr(estimator, name, None) for name in ("alpha", "tune", "solver")}
    reason = next((NOT_REPETITION[c] for c in choices if isinstance(c, str) and c in NOT_REPETITION), None)
    if reason and not isinstance(estimator, mc.BayesianLinearRegression):  # whose evidence does count repetitions
        failures["check_sample_weight_equivalence_on_dense_data"] = reason
        failures["check_sample_weight_equivalence_on_sparse_data"] = reason
    return failures


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
