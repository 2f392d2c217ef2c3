"""scikit-learn's own checks on every estimator, with each expected failure and its reason."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer as mc

ESTIMATORS = [
    mc.KernelRidge(),
    mc.KernelRidge(alpha="loo", fit_intercept=True),
]

NOT_REPETITION = "leaving one of two equal rows out is not leaving out a row of weight two"


def expected(estimator):
    failures = {}
    if getattr(estimator, "alpha", None) == "loo":
        failures["check_sample_weight_equivalence_on_dense_data"] = NOT_REPETITION
        failures["check_sample_weight_equivalence_on_sparse_data"] = NOT_REPETITION
    return failures


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
