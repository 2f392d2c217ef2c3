"""scikit-learn's own checks: all of them on every public estimator, those that follow the data on its variants.

An estimator that chooses its bandwidth by default is checked with a given one, and the choice itself by the checks on
few rows (`OF_FEW_ROWS`): it is a search in front of the same fit.
"""

from __future__ import annotations

import inspect

import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

import mercer as mc

EVERY = [
    mc.AutoClassifier(time=1e-9),  # next to no time: the kernels are compared as they are
    mc.AutoRegressor(time=1e-9),
    mc.BayesianLinearRegression(),
    mc.BoundedRegressor(mc.KernelRidge()),
    mc.CalibratedClassifier(mc.LeastSquaresClassifier()),
    mc.ConditionalDensity(bandwidth=1.0, target_bandwidth=1.0),
    mc.ConformalRegressor(mc.KernelRidge()),
    mc.FisherDiscriminant(alpha=0.1),
    mc.GLM(),
    mc.GaussianProcessRegressor(),
    mc.KernelDiscriminant(),
    mc.KernelFisherDiscriminant(),
    mc.KernelGLM(),
    mc.KernelLogisticRegression(),
    mc.KernelNeighborsClassifier(),
    mc.KernelNeighborsRegressor(),
    mc.KernelPCA(),
    mc.KernelPerceptron(),
    mc.KernelQuantileRegressor(),
    mc.KernelRidge(),
    mc.LeastSquaresClassifier(),
    mc.LinearDiscriminant(),
    mc.LocalRegression(bandwidth=1.0),
    mc.LogisticRegression(),
    mc.NadarayaWatsonClassifier(bandwidth=0.5),
    mc.NadarayaWatsonRegressor(bandwidth=0.5),
    mc.NuSVC(),
    mc.NuSVR(),
    mc.OneClassSVM(),
    mc.ParzenDensity(),
    mc.Perceptron(),
    mc.RBFNetwork(),
    mc.Ridge(),
    mc.SVC(),
    mc.SVR(),
]

# Variants in which a row of weight two is that row twice ...
REPEATING = [
    mc.BayesianLinearRegression(fit_intercept=True, tune="evidence"),
    mc.ConditionalDensity(mc.Epanechnikov, bandwidth="silverman"),
    mc.ConformalRegressor(mc.KernelRidge(mc.Gaussian(1.0)), method="jackknife+"),
    mc.ConformalRegressor(mc.Ridge(), method="cv+", cv=3),
    mc.ConformalRegressor(mc.GaussianProcessRegressor(), normalised=True),
    mc.GLM(family="poisson", alpha=1.0, tol=1e-10),
    mc.GLM(family="gamma", alpha=1.0, tol=1e-10),
    mc.GaussianProcessRegressor(normalize_y=True),
    mc.KernelGLM(family="poisson", tol=1e-10),
    mc.KernelNeighborsRegressor(weights="distance"),
    mc.KernelPCA(n_components=1, solver="krylov"),
    mc.KernelPCA(n_components=1, inverse="regression"),
    mc.KernelPerceptron(variant="voted", max_iter=3),
    mc.KernelPerceptron(max_support=20),
    mc.KernelPerceptron(max_support=40, on_full="forgetron", max_iter=3),
    mc.KernelQuantileRegressor(quantile=0.2, tol=1e-11),
    mc.LeastSquaresClassifier(mc.Gaussian(2.0)),
    mc.LinearDiscriminant(shrinkage="auto"),
    mc.LocalRegression(neighbors=0.5, bandwidth=1.0, robust=1),
    mc.LogisticRegression(solver="lbfgs", tol=1e-10),
    mc.LogisticRegression(solver="newton-cg", tol=1e-10),
    mc.ParzenDensity(mc.Epanechnikov, bandwidth=2.0),
    mc.ParzenDensity(bandwidth="scott", adaptive=True),
    mc.Perceptron(variant="averaged", max_iter=5, shuffle=True),
    mc.RBFNetwork(centers="all", degree=0),
    mc.Ridge(form="dual"),
    mc.Ridge(alpha=0.0),
]

# ... and in which it is not: each row is left out once, or centres are drawn among the rows, or a row twice is two
# observations where a row of weight two is one with half the noise; or the solver stops before the check's 1e-7.
OTHERS = [
    mc.CalibratedClassifier(mc.KernelNeighborsClassifier()),
    mc.ConditionalDensity(covariance="scott"),
    mc.KernelFisherDiscriminant(calibrated=True),
    mc.KernelGLM(n_centers=10),
    mc.KernelLogisticRegression(n_centers=10),
    mc.KernelNeighborsClassifier(n_neighbors="loo", weights="kernel"),
    mc.KernelNeighborsRegressor(n_neighbors="loo"),
    mc.KernelRidge(alpha="loo", fit_intercept=True),
    mc.KernelRidge(solver="nystrom", n_centers=10),
    mc.LeastSquaresClassifier(alpha="loo"),
    mc.LogisticRegression(alpha=100.0, solver="backtracking"),
    mc.ParzenDensity(bandwidth="loo"),
    mc.Ridge(alpha="loo"),
]

# ... and those that search first, by an expensive criterion.
SEARCHING = [
    mc.ConditionalDensity(),
    mc.GaussianProcessRegressor(alpha=0.1, tune="evidence", normalize_y=True),
    mc.KernelRidge(tune="loo"),
    mc.LocalRegression(),
    mc.NadarayaWatsonClassifier(),
    mc.NadarayaWatsonRegressor(),
]

REPETITION = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")

# What may come out otherwise in a variant. The rest looks at constructors, tags and the words for bad input, which
# variants share.
OF_FEW_ROWS = {
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
}
OF_THE_DATA = OF_FEW_ROWS | {
    "check_classifiers_train",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_regressors_train",
    "check_transformer_general",
}

# Where the check compares two fits to 1e-7, the settings under which the statement is true: solvers that go as far, and
# a share of support vectors that its small classes allow.
SETTINGS = {"NuSVC": {"nu": 0.3, "tol": 1e-11}} | {
    name: {"tol": 1e-11} for name in ("SVC", "SVR", "NuSVR", "KernelQuantileRegressor", "OneClassSVM")
}

COMPARED = "kernels are compared by leaving one row out: of two equal rows the other one still predicts it"
NO_SPREAD = "with class weights of 1000 and 0.0001 the axis has no spread within the heavy class, so no prior can win"
EXPECTED = {
    "AutoClassifier": dict.fromkeys(REPETITION, COMPARED),
    "AutoRegressor": dict.fromkeys(REPETITION, COMPARED),
    "CalibratedClassifier": dict.fromkeys(REPETITION, COMPARED.replace("kernels are compared", "it is calibrated")),
    "KernelFisherDiscriminant": {"check_class_weight_classifiers": NO_SPREAD},
}

OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
NOT_CLAIMED = {"check_array_api_input"}  # other array libraries


def named(check):
    return getattr(check, "func", check).__name__


def mistaken(name, estimator):
    """Checks of older releases that pass data which the tags exclude, or fail by themselves on it."""
    dense = not get_tags(estimator).input_tags.sparse
    integers = isinstance(estimator, mc.ParzenDensity) and name == "check_positive_only_tag_during_fit"
    return (dense and name == REPETITION[1]) or (integers and OLD)


def shared(name, estimator, keywords):
    """What a variant has from its class: memory that is read-only, and for kernels sparse rows, as solvers see K."""
    return bool(keywords) or (name == "check_estimator_sparse_array" and hasattr(estimator, "kernel"))


def checks(estimators, wanted=None):
    """The checks of the estimators, or of variants those that are wanted."""
    for estimator in estimators:
        kind = type(estimator).__name__
        for _, check in estimator_checks_generator(estimator):
            name = named(check)
            if name in NOT_CLAIMED or mistaken(name, estimator):
                continue
            if wanted is not None and (name not in wanted or shared(name, estimator, getattr(check, "keywords", {}))):
                continue
            marks = [] if wanted is None else [pytest.mark.thorough]
            if name in EXPECTED.get(kind, {}):
                marks.append(pytest.mark.xfail(reason=EXPECTED[kind][name], strict=True))
            settings = SETTINGS.get(kind, {}) if name in REPETITION and wanted is None else {}
            options = ",".join(f"{k}={v}" for k, v in getattr(check, "keywords", {}).items())
            yield pytest.param(
                clone(estimator).set_params(**settings), check, marks=marks, id=f"{estimator}-{name}({options})"
            )


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *checks(EVERY),
        *checks(REPEATING, OF_THE_DATA | set(REPETITION)),
        *checks(OTHERS, OF_THE_DATA),
        *checks(SEARCHING, OF_FEW_ROWS),
        *checks([mc.ConditionalDensity()], REPETITION),  # the likelihood of its widths counts weights as repetitions
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Class means differ in directions without spread:UserWarning")
@pytest.mark.filterwarnings("ignore:no margin between")  # of labels at random
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = {name for name in mc.__all__ if inspect.isclass(getattr(mc, name)) and hasattr(getattr(mc, name), "fit")}
    assert all(issubclass(getattr(mc, name), BaseEstimator) for name in public)
    assert sorted(type(estimator).__name__ for estimator in EVERY) == sorted(public)
