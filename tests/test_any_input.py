"""Whatever data an estimator is given: a clear refusal or finite numbers, and a copy of its own."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor

import mercer as mc
from mercer.errors import InvalidType

N = 12


def made(name):
    """A public estimator with settings that make a fit quick."""
    cls, kernel = getattr(mc, name), mc.Gaussian(1.0)
    match name:
        case "AutoClassifier" | "AutoRegressor":
            return cls(time=1.0)
        case "BoundedRegressor":
            return cls(mc.KernelRidge(kernel))
        case "CalibratedClassifier":
            return cls(mc.KernelNeighborsClassifier(kernel, n_neighbors=3))
        case "ConformalRegressor":
            return cls(mc.KernelRidge(kernel), method="jackknife+")
        case "FisherDiscriminant" | "LinearDiscriminant" | "Perceptron" | "Ridge" | "BayesianLinearRegression":
            return cls()
        case "GLM":
            return cls(family="gaussian")
        case "LogisticRegression":
            return cls(alpha=1.0)
        case "RBFNetwork":
            return cls(n_centers=4)
        case "ParzenDensity" | "ConditionalDensity":
            return cls(bandwidth=1.0)
        case "LocalRegression" | "NadarayaWatsonRegressor" | "NadarayaWatsonClassifier":
            return cls(kernel)
        case "KernelNeighborsClassifier" | "KernelNeighborsRegressor":
            return cls(kernel, n_neighbors=2)
        case "KernelPCA":
            return cls(kernel, n_components=2)
    return cls(kernel)


NAMES = [name for name in mc.__all__ if isinstance(getattr(mc, name), type) and hasattr(getattr(mc, name), "fit")]
# fits that race candidates against each other take longer: they have tests of their own, and a few of these
SLOW = ("AutoClassifier", "AutoRegressor")


def data(n=N, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.1 * rng.normal(size=n), np.arange(n) % 2


def target(model, y, classes):
    return classes if is_classifier(model) or isinstance(model, (mc.KernelDiscriminant, mc.FisherDiscriminant)) else y


def answers(model, X):
    """Everything a fitted model says about X, as arrays of numbers."""
    found = []
    for method in ("predict", "decision_function", "predict_proba", "transform", "score_samples", "predict_interval"):
        if hasattr(model, method) and not (isinstance(model, mc.ConditionalDensity) and method == "score_samples"):
            more = {"coverage": 0.6} if method == "predict_interval" else {}
            found.append(np.asarray(getattr(model, method)(X, **more)))
    return found


def same(a, b):
    return all((u == v).all() if u.dtype.kind in "OUS" else np.array_equal(u, v) for u, v in zip(a, b, strict=True))


# -- the model's own copy ---------------------------------------------------------------------------------------------

KINDS = {
    "array": lambda X: X.copy(),
    "sparse": lambda X: sp.csr_array(np.abs(X)),
    "frame": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    "list": lambda X: X.tolist(),
}


def overwrite(X):
    if sp.issparse(X):
        X.data[:] = 7.0
    elif isinstance(X, pd.DataFrame):
        X.iloc[:, :] = 7.0
    elif isinstance(X, list):
        for row in X:
            row[:] = [7.0, 7.0]
    else:
        X[...] = 7.0


def takes_sparse(name):
    return made(name).__sklearn_tags__().input_tags.sparse


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kind", "with_weights"),
    [(n, "array", weighted) for n in NAMES if n not in SLOW for weighted in (True, False)]
    + [(n, "sparse", True) for n in NAMES if n not in SLOW and takes_sparse(n)]
    + [(n, k, True) for n in ("KernelRidge", "SVC", "KernelNeighborsRegressor", "Ridge") for k in ("frame", "list")],
)
def test_what_is_written_into_the_data_later_changes_nothing(name, kind, with_weights):
    X, y, classes = data()
    Z = KINDS[kind](data(5, seed=1)[0])
    given, own_y, w = KINDS[kind](X), target(made(name), y, classes).copy(), np.linspace(0.5, 2.0, N)
    model = made(name)
    takes = with_weights and "sample_weight" in inspect.signature(model.fit).parameters
    weighted = {"sample_weight": w} if takes else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(given, own_y, **weighted)
        others = ("loo_predictions_", "loo_score_", "dual_coef_", "log_likelihood_")
        before = answers(model, Z), [np.array(getattr(model, name)) for name in others if hasattr(model, name)]
        fresh = made(name).fit(KINDS[kind](X), own_y.copy(), **({"sample_weight": w.copy()} if weighted else {}))
        overwrite(given)
        own_y[:] = own_y[0]
        w[:] = 9.0
        after = answers(model, Z), [np.array(getattr(model, name)) for name in others if hasattr(model, name)]
        untouched = answers(fresh, Z)
    assert same(before[0], after[0])
    assert same(before[1], after[1])
    assert same(after[0], untouched)


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(getattr(mc, n), "partial_fit")])
def test_batches_are_the_models_own(name):
    X, y, classes = data()
    model, batch, Z = made(name), X[6:].copy(), data(5, seed=1)[0]
    y = target(model, y, classes)
    more = {"classes": [0, 1]} if "classes" in inspect.signature(model.partial_fit).parameters else {}
    model.partial_fit(X[:6], y[:6], **more).partial_fit(batch, y[6:])
    before = answers(model, Z)
    batch[:] = 7.0
    assert same(before, answers(model, Z))


def test_functions_and_centres_are_copies():
    X, y, _ = data()
    Z, kept = data(5, seed=1)[0], X.copy()
    f = mc.Expansion(mc.Gaussian(1.0), kept, y)
    g = mc.RBFInterpolator(kept, y)
    values = y.copy()
    h = mc.RBFInterpolator(X, values, neighbors=6)
    centres = X[:5].copy()
    model = mc.KernelRidge(mc.Gaussian(1.0), solver="nystrom", centers=centres).fit(X, y)
    before = f(Z), g(Z), h(Z), model.predict(Z)
    for array in (kept, values, centres):
        array[:] = 7.0
    assert same(before, (f(Z), g(Z), h(Z), model.predict(Z)))


def test_offsets_are_copies():
    X, y, _ = data()
    offset = np.linspace(0.0, 1.0, N)
    model = mc.GLM(family="poisson").fit(X, np.abs(y), offset=offset)
    before = model.null_deviance_, model.loo_predictions_
    offset[:] = 9.0
    model._cache.clear()
    assert model.null_deviance_ == before[0]
    assert (model.loo_predictions_ == before[1]).all()


def test_a_read_only_array_is_not_copied():
    X, y, _ = data()
    X.flags.writeable = False
    model = mc.KernelRidge(mc.Gaussian(1.0)).fit(X, y)
    assert np.shares_memory(model.function_.points.raw, X)


# -- hostile data -----------------------------------------------------------------------------------------------------


def hostile():
    """Names, and (X, y, classes, weights) or a part of it that is replaced."""
    X, y, _ = data()
    third = np.arange(2 * N).reshape(N, 2) == 7
    constant, same_rows = np.ones((N, 2)), np.repeat(X[:1], N, axis=0)
    objects, dates = X.astype(object), np.arange(N).astype("M8[D]")
    twice = pd.DataFrame(X, columns=["a", "a"])
    cases = {
        "huge": {"X": X * 1e300},
        "large": {"X": X * 1e200},
        "tiny": {"X": X * 1e-200},
        "denormal": {"X": X * 1e-310},
        "mixed": {"X": X * [1e-300, 1e300]},
        "far": {"X": X + 1e15},
        "constant": {"X": constant},
        "zeros": {"X": 0.0 * X},
        "equal rows": {"X": same_rows},
        "one constant column": {"X": np.column_stack([X[:, 0], constant[:, 0]])},
        "equal columns": {"X": X[:, [0, 0]]},
        "nan": {"X": np.where(third, np.nan, X)},
        "inf": {"X": np.where(third, np.inf, X)},
        "objects": {"X": objects},
        "objects with None": {"X": np.where(third, None, objects)},
        "text": {"X": X.astype(str)},
        "complex": {"X": X + 1j},
        "dates": {"X": np.column_stack([dates, dates])},
        "date objects": {"X": np.column_stack([dates.astype(object), dates.astype(object)])},
        "durations": {"X": np.column_stack([dates, dates]) - dates[0]},
        "no rows": {"X": X[:0], "y": y[:0], "w": None},
        "no columns": {"X": X[:, :0]},
        "one row": {"X": X[:1], "y": y[:1], "w": None},
        "two rows": {"X": X[:2], "y": y[:2], "w": None},
        "one column": {"X": X[:, :1]},
        "a vector": {"X": X[:, 0]},
        "three axes": {"X": X[None]},
        "a number": {"X": 3.0},
        "None": {"X": None},
        "a structured array": {"X": np.zeros(N, dtype=[("a", float), ("b", float)])},
        "names twice": {"X": twice},
        "huge targets": {"y": y * 1e300},
        "tiny targets": {"y": y * 1e-310},
        "constant targets": {"y": np.ones(N)},
        "zero targets": {"y": np.zeros(N)},
        "targets with nan": {"y": np.where(np.arange(N) == 3, np.nan, y)},
        "targets with inf": {"y": np.where(np.arange(N) == 3, np.inf, y)},
        "complex targets": {"y": y + 1j},
        "dates as targets": {"y": dates},
        "date objects as targets": {"y": dates.astype(object)},
        "durations as targets": {"y": dates - dates[0]},
        "text as targets": {"y": np.array(["3"] * N)},
        "objects as targets": {"y": y.astype(object)},
        "None as targets": {"y": np.array([None] * N)},
        "too few targets": {"y": y[:5]},
        "denormal weights": {"w": np.full(N, 1e-320)},
        "huge weights": {"w": np.full(N, 1e300)},
        "weights of all sizes": {"w": np.logspace(-300, 300, N)},
        "weights of many sizes": {"w": np.logspace(-150, 150, N)},
        "zero weights but one": {"w": np.eye(N)[0]},
        "zero weights but two": {"w": np.eye(N)[0] + np.eye(N)[1]},
        "zero weights": {"w": np.zeros(N)},
        "negative weights": {"w": -np.ones(N)},
        "weights with nan": {"w": np.full(N, np.nan)},
        "text as weights": {"w": ["a"] * N},
        "complex weights": {"w": np.ones(N) + 1j},
        "dates as weights": {"w": dates},
    }
    for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil"):
        cases[f"{name}_array"] = {"X": getattr(sp, f"{name}_array")(np.abs(X))}
    cases["bsr_matrix"] = {"X": sp.bsr_matrix(np.abs(X))}
    cases["sparse nan"] = {"X": sp.csr_array(np.where(third, np.nan, X))}
    cases["sparse complex"] = {"X": sp.csr_array(X + 1j)}
    cases["sparse vector"] = {"X": sp.coo_array(X[:, 0])}
    return cases


HOSTILE = hostile()


def attempt(name, case, family=None):
    """Fit and ask: None where all is finite, the words of a refusal; any other error is let out."""
    X, y, classes = data()
    case = {"X": X, "y": None, "w": None} | HOSTILE[case]
    model = made(name) if family is None else getattr(mc, name)(family=family)
    own = target(model, y, classes)
    if case["y"] is not None:
        labelled = own is classes and case["y"].dtype.kind == "f" and np.isfinite(case["y"]).all()
        own = classes[: len(case["y"])] if labelled else case["y"]
    if family not in (None, "gaussian") and getattr(own, "dtype", None) == np.float64:
        own = np.abs(own)
    weighted = {} if case["w"] is None else {"sample_weight": case["w"]}
    if weighted and "sample_weight" not in inspect.signature(model.fit).parameters:
        return "takes no weights"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(case["X"], own, **weighted)
            found = answers(model, case["X"])
            if hasattr(type(model), "loo_score_"):
                found.append(np.asarray(model.loo_score_))
        except (mc.InvalidInput, InvalidType) as error:
            return str(error)
    assert not any(np.isnan(values).any() for values in found if values.dtype.kind == "f"), "silent NaN"
    return None


# What no estimator may take for numbers, and what no regressor may take for targets.
REFUSED = {
    "nan", "inf", "objects with None", "text", "complex", "dates", "date objects", "durations", "no rows", "no columns",
    "a vector", "three axes", "a number", "None", "a structured array", "names twice", "denormal weights",
    "huge weights", "weights of all sizes", "zero weights", "negative weights", "weights with nan", "text as weights",
    "complex weights", "dates as weights", "sparse nan", "sparse complex", "sparse vector",
}  # fmt: skip
NO_TARGETS = {
    "targets with nan", "targets with inf", "complex targets", "dates as targets", "date objects as targets",
    "durations as targets", "text as targets", "None as targets", "too few targets",
}  # fmt: skip


def check_every(cases, name, family=None):
    wrong = REFUSED | (NO_TARGETS if is_regressor(made(name)) else set())
    for case in cases:
        try:
            words = attempt(name, case, family)
        except Exception as error:
            raise AssertionError(f"{name} on {case}: {type(error).__name__}: {error}") from error
        assert words is not None or case not in wrong, f"{name} was fitted to {case}"
        assert words is None or ", got " in words or words == "takes no weights", f"{name} on {case}: {words}"


@pytest.mark.thorough
@pytest.mark.parametrize("name", [n for n in NAMES if n not in SLOW])
def test_hostile_data_is_refused_in_words_or_fitted(name):
    check_every(HOSTILE, name)


@pytest.mark.parametrize("name", SLOW)
def test_hostile_data_of_automatic_models(name):
    check_every(["huge", "names twice", "dates", "no rows", "complex", "weights of all sizes", "bsr_array"], name)


# Sizes of numbers are what families differ by.
SIZES = [
    "huge", "large", "tiny", "denormal", "mixed", "far", "constant", "zeros", "equal rows", "one row", "two rows",
    "huge targets", "tiny targets", "constant targets", "zero targets", "weights of many sizes",
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["GLM", "KernelGLM"])
@pytest.mark.parametrize("family", ["poisson", "gamma", "inverse_gaussian", "negative_binomial"])
def test_hostile_sizes_of_every_family(name, family):
    check_every(SIZES, name, family)


@pytest.mark.parametrize("n", [10, 40])
def test_columns_that_do_not_vary_leave_the_intercept(n):
    y = np.random.default_rng(0).normal(size=n)
    for X in (np.ones((n, 2)), np.zeros((n, 3)), np.ones((n, n + 5))):
        model = mc.Ridge(alpha="loo").fit(X, y)
        assert model.predict(X) == pytest.approx(np.full(n, y.mean()))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("by", ["evidence", "loo"])
@pytest.mark.parametrize("kernel", [None, mc.Gaussian(1.0), mc.Matern(1.0)])
def test_tuning_on_huge_columns_is_refused_in_words(by, kernel):
    X, y, _ = data()
    for size in (1e200, 1e300):
        for model in (mc.GaussianProcessRegressor(kernel, tune=by), mc.KernelRidge(kernel, tune=by)):
            with pytest.raises(mc.InvalidInput, match="Rescale"):
                model.fit(X * size, y)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "inverse_gaussian", "negative_binomial"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intervals_far_beyond_all_rows_are_refused_in_words(family):
    X, y, _ = data()
    for model in (mc.GLM(family=family), mc.KernelGLM(mc.Linear(), family=family)):
        model.fit(X, np.abs(y))
        for method in (model.mean_interval, model.predict_interval):
            with pytest.raises(mc.InvalidInput, match="must fit float64"):
                method(X * 1e200)
        ends = model.mean_interval(X * 1e20)
        assert (ends[:, 0] <= ends[:, 1]).all()
