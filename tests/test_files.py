"""Model files: every estimator predicts bit for bit what it did, and no file does anything but load or be refused."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import json
import os
import pickle
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from hashlib import sha256
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.base import clone, is_classifier

import mercer as mc
from forged import Reader, changed, joined, moved, parts_of, places
from mercer.data import packing
from mercer.data.frames import Table
from mercer.data.packing import frame_from, frame_parts
from mercer.errors import InvalidInput
from mercer.files import _OF_THE_FIT, load
from mercer.files import container as container
from mercer.files.checking import Checker, Unfit
from mercer.files.names import SMALL
from mercer.files.reading import Decoder
from mercer.files.schema import declarations
from mercer.files.writing import Encoder
from mercer.kernels.catalogue import catalogue
from mercer.models.provenance import Provenance, provenance
from mercer.models.scores import Baseline, Score
from mercer.testing import sample

N = 40
_rng = np.random.default_rng(7)
X = _rng.normal(size=(N, 3))
Z = _rng.normal(size=(13, 3))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * _rng.normal(size=N)
YY = np.column_stack([Y, np.cos(X[:, 1])])
COUNTS = _rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
LABELS = np.array(["red", "green", "blue"])[np.digitize(X[:, 0] + 0.3 * _rng.normal(size=N), [-0.5, 0.5])]
TWO = np.array(["no", "yes"])[(X[:, 0] + 0.5 * _rng.normal(size=N) > 0).astype(int)]
W = _rng.integers(0, 4, size=N).astype(float)
SPARSE = sp.random_array((N, 12), density=0.3, format="csr", rng=np.random.default_rng(1))
SPARSE_Z = sp.random_array((13, 12), density=0.3, format="csr", rng=np.random.default_rng(2))
WORDS = ["oak", "elm", "ash", "fir", "yew", "box"]
SETS = [frozenset(_rng.choice(WORDS, size=_rng.integers(1, 5), replace=False).tolist()) for _ in range(N)]
SETS_Z = [frozenset(_rng.choice(WORDS, size=2, replace=False).tolist()) for _ in range(13)]
CITY = _rng.choice(["Rome", "Oslo", "Bern"], size=N + 13)


def table(rows, library):
    some = np.vstack([X, Z])[rows]
    return library.DataFrame({"age": some[:, 0], "city": CITY[rows], "size": some[:, 1].astype(np.float32)})


TRAIN, TEST = slice(0, N), slice(N, N + 13)


def rich_table(rows, library):
    frame, some = table(rows, library), np.vstack([X, Z])[rows]
    when = (np.datetime64("2026-01-01") + np.arange(N + 13)[rows].astype("m8[D]")).astype("M8[us]")
    holes = [None if v > 1 else float(v) for v in some[:, 2]]
    columns = {
        "when": when.tolist() if library is pl else when,
        "holes": holes,
        "tags": [sorted(s) for s in (SETS + SETS_Z)[rows]],
        "text": [f"the {c} of {i}" for i, c in enumerate(CITY[rows])],
        "flag": (some[:, 2] > 0).tolist(),
    }
    more = library.DataFrame(columns)
    return frame.hstack(more) if library is pl else pd.concat([frame, more], axis=1)


MIXED = mc.Gaussian(1.0).on("age") * (mc.Delta().on("city") + mc.Constant(0.3)) + 0.5 * mc.Linear().on("size")
G = mc.Gaussian(1.3)
GRAM = G(np.vstack([X, Z]))


def case(model, A=X, y=Y, Q=Z, weights=None, then=None):
    return model, A, y, Q, weights, then


CASES = {
    "ridge": case(mc.KernelRidge(G, alpha=0.1)),
    "ridge default": case(mc.KernelRidge()),
    "ridge rule": case(mc.KernelRidge(mc.median_gaussian, fit_intercept=True)),
    "ridge float32": case(mc.KernelRidge(G), X.astype(np.float32), Y, Z.astype(np.float32)),
    "ridge sparse": case(mc.KernelRidge(mc.Linear() + 1.0), SPARSE, Y, SPARSE_Z),
    "ridge sparse matrix": case(mc.KernelRidge(mc.Gaussian(2.0)), sp.csr_matrix(SPARSE), Y, SPARSE_Z),
    "ridge pandas": case(mc.KernelRidge(MIXED), table(TRAIN, pd), Y, table(TEST, pd)),
    "ridge polars": case(mc.KernelRidge(MIXED), table(TRAIN, pl), Y, table(TEST, pl)),
    "ridge sets": case(mc.KernelRidge(mc.Intersection()), SETS, Y, SETS_Z),
    "ridge words": case(mc.KernelRidge(mc.Delta()), CITY[TRAIN].tolist(), Y, CITY[TEST].tolist()),
    "ridge text array": case(mc.KernelRidge(mc.Hamming()), CITY[TRAIN, None], Y, CITY[TEST, None]),
    "ridge targets": case(mc.KernelRidge(G, alpha=[0.1, 2.0], fit_intercept=True), y=YY),
    "ridge weights": case(mc.KernelRidge(G, alpha=0.1), weights=W),
    "ridge loo": case(mc.KernelRidge(G, alpha="loo")),
    "ridge tuned": case(mc.KernelRidge(1.0 * mc.Gaussian([1.0, 1.0, 1.0]), tune="loo")),
    "ridge nystrom": case(mc.KernelRidge(G, solver="nystrom", n_centers=9)),
    "ridge matrix": case(mc.KernelRidge(mc.Precomputed()), GRAM[:N, :N], Y, GRAM[N:, :N]),
    "ridge positions": case(mc.KernelRidge(mc.Precomputed(GRAM)), np.arange(N), Y, np.arange(N, N + 13)),
    "ridge fixed": case(mc.KernelRidge(2.0 * mc.Gaussian(mc.Fixed(1.5)) * mc.Matern(1.0, nu=1.5))),
    "ridge features": case(mc.KernelRidge(mc.FromFeatures(mc.fourier_features(G, 3, 20)))),
    "gp": case(mc.GaussianProcessRegressor(G, alpha=0.1)),
    "gp tuned": case(mc.GaussianProcessRegressor(1.0 * G, alpha=0.1, tune="evidence", normalize_y=True), y=YY),
    "gp stream": case(
        mc.GaussianProcessRegressor(G, alpha=0.1), then=lambda m: m.partial_fit(X[:9] + 0.1, Y[:9] + 0.1)
    ),
    "gp weights": case(mc.GaussianProcessRegressor(G, alpha=0.1), weights=W),
    "network": case(mc.RBFNetwork(n_centers=8, degree=1)),
    "network float32": case(mc.RBFNetwork(G, n_centers=8), X.astype(np.float32), Y, Z.astype(np.float32)),
    "network all": case(mc.RBFNetwork(mc.ThinPlate(), centers="all"), y=YY),
    "network normalized": case(mc.RBFNetwork(mc.Epanechnikov(3.0), normalized=True)),
    "network local": case(mc.RBFNetwork(G, neighbors=10, alpha=0.1, centers="all")),
    "linear": case(mc.Ridge()),
    "linear loo": case(mc.Ridge(alpha="loo"), y=YY),
    "linear sparse": case(mc.Ridge(), SPARSE, Y, SPARSE_Z),
    "linear dual": case(mc.Ridge(mc.Polynomial(4, c=1.0), form="dual", alpha=0.1)),
    "linear dual loo": case(mc.Ridge(mc.Polynomial(4, c=1.0), form="dual", alpha="loo")),
    "linear map": case(mc.Ridge(mc.Polynomial(2, c=1.0).features(3))),
    "linear taylor": case(mc.Ridge(mc.taylor_features(mc.Gaussian(3.0), 3, radius=5.0, error=0.1))),
    "linear sets": case(mc.Ridge(mc.Intersection()), SETS, Y, SETS_Z),
    "linear names": case(mc.Ridge(), pd.DataFrame(X, columns=list("abc")), Y, pd.DataFrame(Z, columns=list("abc"))),
    "bayesian": case(mc.BayesianLinearRegression(mc.Polynomial(2, c=1.0), tune="evidence")),
    "bayesian intercept": case(mc.BayesianLinearRegression(fit_intercept=True), y=YY),
    "bayesian stream": case(mc.BayesianLinearRegression(), then=lambda m: m.partial_fit(X[:9], Y[:9])),
    "svc": case(mc.SVC(G, C=2.0), y=TWO),
    "svc three": case(mc.SVC(G, C=2.0), y=LABELS),
    "svc ovr": case(mc.SVC(G, multiclass="ovr"), y=LABELS),
    "svc calibrated": case(mc.SVC(G, calibrated=True), y=LABELS),
    "svc many": case(mc.SVC(G), y=np.arange(N) % 13),
    "svc sets": case(mc.SVC(mc.Intersection()), SETS, TWO, SETS_Z),
    "svc sparse": case(mc.SVC(mc.Linear()), SPARSE, LABELS, SPARSE_Z),
    "svc pandas": case(mc.SVC(MIXED), table(TRAIN, pd), LABELS, table(TEST, pd)),
    "svc polars": case(mc.SVC(MIXED), table(TRAIN, pl), TWO, table(TEST, pl)),
    "svc matrix": case(mc.SVC(mc.Precomputed()), GRAM[:N, :N], LABELS, GRAM[N:, :N]),
    "svc weights": case(mc.SVC(G, class_weight={"no": 1.0, "yes": 2.0}), y=TWO, weights=W),
    "svc booleans": case(mc.SVC(G), y=TWO == "yes"),
    "svc objects": case(mc.SVC(G), y=TWO.astype(object)),
    "nu svc": case(mc.NuSVC(G, nu=0.2), y=LABELS),
    "one class": case(mc.OneClassSVM(G), y=None),
    "svr": case(mc.SVR(G, epsilon=0.05)),
    "svr time": case(mc.SVR(G, epsilon=0.05, max_time=60.0)),
    "nu svr": case(mc.NuSVR(G)),
    "nu svr of two targets": case(mc.NuSVR(G), y=YY),
    "quantiles": case(mc.KernelQuantileRegressor(G, quantile=[0.1, 0.5, 0.9])),
    "squares": case(mc.LeastSquaresClassifier(), y=LABELS),
    "squares kernel": case(mc.LeastSquaresClassifier(G, alpha="loo"), y=TWO),
    "logistic": case(mc.LogisticRegression(alpha=0.1), y=LABELS),
    "logistic two": case(mc.LogisticRegression(mc.Polynomial(2, c=1.0), alpha=0.1), y=TWO),
    "logistic sparse": case(mc.LogisticRegression(alpha=0.1), SPARSE, TWO, SPARSE_Z),
    "kernel logistic": case(mc.KernelLogisticRegression(G, alpha=0.1), y=LABELS),
    "kernel logistic two": case(mc.KernelLogisticRegression(G, alpha=0.1), y=TWO, weights=W),
    "kernel logistic centres": case(mc.KernelLogisticRegression(G, alpha=0.1, n_centers=9), y=TWO),
    "kernel logistic sets": case(mc.KernelLogisticRegression(mc.Intersection(), alpha=0.1), SETS, TWO, SETS_Z),
    "glm": case(mc.GLM(family="poisson"), y=COUNTS),
    "glm gaussian": case(mc.GLM(), weights=W),
    "glm wide": case(mc.GLM(mc.Polynomial(6, c=1.0), family="poisson", alpha=0.1), X, COUNTS),
    "glm tweedie": case(mc.GLM(family=mc.families.Tweedie(1.7), link=mc.links.Log()), y=COUNTS + 0.5),
    "kernel glm": case(mc.KernelGLM(G, family="poisson", alpha=1.0), y=COUNTS),
    "kernel glm centres": case(mc.KernelGLM(G, family="poisson", alpha=1.0, n_centers=9), y=COUNTS),
    "perceptron": case(mc.Perceptron(), y=LABELS),
    "perceptron sparse": case(mc.Perceptron(variant="averaged"), SPARSE, TWO, SPARSE_Z),
    "kernel perceptron": case(mc.KernelPerceptron(G), y=LABELS),
    "kernel perceptron voted": case(mc.KernelPerceptron(G, variant="voted"), y=TWO),
    "kernel perceptron averaged": case(mc.KernelPerceptron(G, variant="averaged", max_iter=3), y=LABELS),
    "projectron": case(mc.KernelPerceptron(G, max_support=8), y=LABELS),
    "forgetron": case(mc.KernelPerceptron(G, max_support=8, on_full="forgetron"), y=TWO),
    "fisher": case(mc.FisherDiscriminant(), y=LABELS),
    "discriminant": case(mc.LinearDiscriminant(), y=LABELS),
    "kernel discriminant": case(mc.KernelDiscriminant(G), y=LABELS),
    "kernel fisher": case(mc.KernelFisherDiscriminant(G), y=TWO),
    "components": case(mc.KernelPCA(G, n_components=4), y=None),
    "components centres": case(mc.KernelPCA(G, n_components=4, solver="nystrom", n_centers=12), y=None),
    "components learnt": case(mc.KernelPCA(G, n_components=4, inverse="regression"), y=None),
    "watson": case(mc.NadarayaWatsonRegressor()),
    "watson sets": case(mc.NadarayaWatsonRegressor(mc.Intersection().exp()), SETS, YY, SETS_Z),
    "watson weight": case(mc.NadarayaWatsonRegressor(mc.Epanechnikov, bandwidth="scott")),
    "watson classes": case(mc.NadarayaWatsonClassifier(G), y=LABELS),
    "local": case(mc.LocalRegression(degree=2)),
    "local robust": case(mc.LocalRegression(mc.Tricube, neighbors=0.5, robust=2)),
    "density": case(mc.ParzenDensity(), y=None),
    "density line": case(mc.ParzenDensity(), X[:, :1], None, Z[:, :1]),
    "density table": case(mc.ParzenDensity(categorical=["city"]), table(TRAIN, pd), None, table(TEST, pd)),
    "density polars": case(mc.ParzenDensity(categorical=["city"]), table(TRAIN, pl), None, table(TEST, pl)),
    "conditional": case(mc.ConditionalDensity()),
    "conditional sets": case(mc.ConditionalDensity(mc.Intersection().exp()), SETS, Y, SETS_Z),
    "neighbours": case(mc.KernelNeighborsRegressor(G, n_neighbors=4, weights="kernel")),
    "neighbours loo": case(mc.KernelNeighborsRegressor(G, n_neighbors="loo"), y=YY),
    "neighbours classes": case(mc.KernelNeighborsClassifier(G), y=LABELS),
    "neighbours sets": case(mc.KernelNeighborsClassifier(mc.Intersection()), SETS, LABELS, SETS_Z),
    "bounded": case(mc.BoundedRegressor(mc.KernelRidge(G)), y=Y**2),
    "calibrated votes": case(mc.CalibratedClassifier(mc.KernelNeighborsClassifier(G)), y=LABELS),
    "calibrated threshold": case(mc.CalibratedClassifier(mc.SVC(G), threshold="f1"), y=TWO),
    "conformal split": case(mc.ConformalRegressor(mc.SVR(G), cv=3)),
    "conformal cv": case(mc.ConformalRegressor(mc.KernelRidge(G), method="cv+", cv=4)),
    "conformal jackknife": case(mc.ConformalRegressor(mc.KernelRidge(G), method="jackknife+")),
    "conformal linear": case(mc.ConformalRegressor(mc.Ridge(), method="jackknife+")),
    "conformal watson": case(mc.ConformalRegressor(mc.NadarayaWatsonRegressor(G), method="jackknife+")),
    "conformal normalised": case(mc.ConformalRegressor(mc.GaussianProcessRegressor(G, alpha=0.1), normalised=True)),
    "conformal prefit": case(mc.ConformalRegressor(mc.KernelRidge(G).fit(X[:9], Y[:9]), cv="prefit")),
}
if "TableKernel" in mc._NAMES:
    rich = {lib: [rich_table(rows, lib) for rows in (TRAIN, TEST)] for lib in (pd, pl)}
    for lib, (some, others) in rich.items():
        CASES |= {
            f"table rule {lib.__name__}": case(mc.KernelRidge(mc.TableKernel()), some, Y, others),
            f"table kernel {lib.__name__}": case(mc.SVC(mc.table_kernel(some)), some, LABELS, others),
        }
for automatic, y in {"AutoRegressor": Y, "AutoClassifier": LABELS}.items():
    if automatic in mc._NAMES:
        CASES[automatic] = case(getattr(mc, automatic)(), y=y)
        CASES[f"{automatic} table"] = case(getattr(mc, automatic)(), table(TRAIN, pd), y, table(TEST, pd))

ANSWERS = (
    "predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "inverse_transform",
    "score_samples", "predict_interval", "mean_interval", "predict_distribution", "predict_linear",
    "predict_gradient", "predict_density", "log_density", "quantile",
)  # fmt: skip
# What only the training rows can answer, of models that do not keep them.
LEFT_OUT = {
    "ridge nystrom", "network", "network float32", "network normalized", "linear", "linear loo", "linear sparse",
    "linear map", "linear taylor", "linear sets", "linear names", "kernel glm centres",
}  # fmt: skip
_fitted = {}


def fitted(name):
    if name not in _fitted:
        model, A, y, _, weights, then = CASES[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more = {} if weights is None else {"sample_weight": weights}
            model = clone(model) if "prefit" not in name else model
            model = model.fit(A, **more) if y is None else model.fit(A, y, **more)
            _fitted[name] = model if then is None else then(model)
    return _fitted[name]


def questions(model):
    """Whatever a model can be asked about new rows."""
    own = inspect.signature(model.predict).parameters if hasattr(model, "predict") else {}
    return [a for a in ANSWERS if hasattr(model, a)] + [
        f"predict {a}" for a in ("return_std", "return_cov") if a in own
    ]


def answer(model, name, Q):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name == "inverse_transform":
                return model.inverse_transform(model.transform(Q))
            if name == "predict_interval":  # the first time makes and keeps what later ones use
                model.predict_interval(Q)
            name, _, more = name.partition(" ")
            return getattr(model, name)(Q, **({more: True} if more else {}))
    except Exception as error:
        return error


def identical(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype == object:
        return a.shape == b.shape and list(map(str, a.ravel())) == list(map(str, b.ravel()))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_comes_back(model, Q, path, *, intervals=True):
    """Save, load, and compare all that both can be asked; the loaded model. Without its rows it has no intervals."""
    before = {a: answer(model, a, Q) for a in questions(model)}
    model.save(path)
    loaded = load(path)
    assert type(loaded) is type(model)
    asked = 0
    for method, expected in before.items():
        found = answer(loaded, method, Q)
        if isinstance(expected, Exception):
            assert type(found) is type(expected), method
            assert str(found) == str(expected), method
        elif isinstance(found, Exception):
            assert not intervals, (method, found)
            assert method.endswith("interval")
            assert isinstance(found, InvalidInput)
            assert "training rows" in str(found)
        else:
            assert identical(expected, found), method
            asked += 1
    assert asked
    return loaded


@pytest.mark.parametrize("name", CASES)
def test_loaded_models_answer_bit_for_bit(name, tmp_path):
    model, (A, y, Q), path = fitted(name), CASES[name][1:4], tmp_path / "m.mercer"
    loaded = assert_comes_back(model, Q, path, intervals=name not in LEFT_OUT)
    if hasattr(model, "predict"):
        assert identical(loaded.predict(A), model.predict(A))  # rows that the model may hold itself
    if hasattr(model, "score") and y is not None and not isinstance(model, mc.ParzenDensity):
        assert loaded.score(A, y) == model.score(A, y)
    assert repr(loaded) == repr(model)
    assert repr(clone(loaded)) == repr(clone(model))
    assert repr(getattr(loaded, "kernel_", None)) == repr(getattr(model, "kernel_", None))
    for attribute in ("status_", "n_features_in_", "alpha_", "coef_", "intercept_", "dual_coef_", "support_"):
        if attribute in vars(model):
            assert identical(getattr(model, attribute), getattr(loaded, attribute)), attribute
    first = path.read_bytes()
    for same in (model, loaded):  # nothing in a file depends on when, how often or from where it was saved
        same.save(path)
        assert path.read_bytes() == first


ESTIMATORS = sorted(
    name
    for name, home in mc._NAMES.items()
    if home.startswith("mercer.models") and inspect.isclass(getattr(mc, name)) and hasattr(getattr(mc, name), "fit")
)
FORMS = {
    "float32": lambda A: A.astype(np.float32),
    "columns": np.asfortranarray,
    "sparse": sp.csr_array,
    "pandas": lambda A: pd.DataFrame(A, columns=["age", "size", "Größe (m²)"]),
    "polars": lambda A: pl.DataFrame(A, schema=["age", "size", "Größe (m²)"]),
}


ALIKE = ("float32", "columns", "polars")  # read by one function for all: each estimator gets one of them


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "form"), [(n, f) for i, n in enumerate(ESTIMATORS) for f in ("sparse", "pandas", ALIKE[i % 3])]
)
def test_every_estimator_comes_back_from_other_kinds_of_data(name, form, tmp_path):
    model, y = next((m, y) for m, A, y, *_ in CASES.values() if type(m).__name__ == name and A is X)
    model, A, Q = clone(model), FORMS[form](X), FORMS[form](Z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(A) if y is None else model.fit(A, y)
        except InvalidInput:
            assert form == "sparse", "only sparse data are not for all"
            return
    assert_comes_back(model, Q, tmp_path / "m", intervals=name not in ("Ridge", "RBFNetwork"))


@pytest.mark.filterwarnings("ignore:The Gram matrix is not positive semidefinite")  # of Tanh, which is not a kernel
@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_every_kernel_comes_back_or_is_refused_by_name(entry, tmp_path):
    path = tmp_path / "m"
    if not entry.textual:
        kernel = eval(entry.example, {"mc": mc, "np": np})
        with pytest.raises(InvalidInput, match=rf"no code.*(kernel|{entry.name})"):
            mc.KernelNeighborsRegressor(kernel).fit(np.abs(X), Y).save(path)
        assert not list(tmp_path.iterdir())
        return
    kernel = mc.parse(entry.example)
    if entry.space == "table" and isinstance(kernel, mc.Kernel):
        A, Q = table(TRAIN, pd), table(TEST, pd)
    elif entry.name == "Missing":
        A, Q = np.where(X[:, :1] > 1, np.nan, X[:, :1]), Z[:, :1]
    else:
        A, Q = sample(kernel, 12), sample(kernel, 5)
    y = np.arange(len(A)) * 1.0
    model = mc.KernelNeighborsRegressor(kernel)
    if isinstance(kernel, mc.Weight):
        model = mc.NadarayaWatsonRegressor(kernel)
    elif entry.kind == "conditional":
        model = mc.RBFNetwork(kernel, centers="all")
    elif entry.kind == "indefinite":
        model = mc.SVR(kernel, C=0.01)
    elif entry.proven:
        model = mc.GaussianProcessRegressor(kernel, alpha=0.5)
    loaded = assert_comes_back(model.fit(A, y), Q, path)
    assert identical(loaded.predict(A), model.predict(A))  # rows that the model may hold itself
    assert loaded.kernel_ == model.kernel_
    assert repr(loaded.kernel_) == repr(model.kernel_)


def test_every_estimator_is_among_the_cases():
    assert set(ESTIMATORS) == {type(model).__name__ for model, *_ in CASES.values()}
    assert all(hasattr(getattr(mc, name), "save") for name in ESTIMATORS)


# -- what is in a file -------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.mercer"
    fitted("svc pandas").save(path)
    return path


def test_other_tools_read_the_header_and_the_arrays(saved):
    model = fitted("svc pandas")
    with safe_open(saved, "numpy") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert metadata["format"] == "mercer model"
    assert metadata["schema"] == "1"
    assert metadata["version"] == mc.__version__
    assert metadata["class"] == "SVC"
    assert metadata["kernel"] == repr(MIXED)
    assert json.loads(metadata["columns"]) == {
        "number": 3, "names": ["age", "city", "size"],
        "dtypes": ["float64", str(pd.Series(["a"]).dtype), "float32"],
    }  # fmt: skip
    assert json.loads(metadata["classes"]) == ["blue", "green", "red"]
    assert json.loads(metadata["training"])["rows"] == N
    assert json.loads(metadata["parameters"])["C"] == 1.0
    assert np.array_equal(tensors["dual_coef_"], model.dual_coef_)


def test_only_support_vectors_and_centres_are_stored(tmp_path):
    many, y = np.random.default_rng(0).normal(size=(2000, 3)), np.arange(2000) % 7 * 1.0
    for model in (
        mc.KernelRidge(G, solver="nystrom", n_centers=9),
        mc.Ridge(),
        mc.BayesianLinearRegression(),
        mc.RBFNetwork(n_centers=9),
        mc.LogisticRegression(),
        mc.KernelLogisticRegression(G, n_centers=9),
        mc.SVC(mc.Linear()),
        mc.KernelPCA(G, n_components=2, solver="nystrom", n_centers=9),
        mc.LeastSquaresClassifier(),
    ):
        A = many if not isinstance(model, mc.SVC) else np.where(many[:, :1] > 0, 100.0, -100.0) + 0 * many
        model.fit(A, (many[:, 0] > 0).astype(int) if is_classifier(model) else y)
        model.save(tmp_path / "m")
        assert os.path.getsize(tmp_path / "m") < 12_000, model


@pytest.mark.parametrize("name", ["svc", "nu svc", "svc calibrated", "svr", "nu svr", "one class", "kernel perceptron"])
def test_rows_that_are_no_support_vectors_are_not_stored(name, tmp_path):
    many = np.random.default_rng(0).normal(size=(400, 3))
    model = clone(CASES[name][0])
    y = many[:, 0] + 0.01 * many[:, 1]
    model.fit(many, (y > 0).astype(int) if is_classifier(model) else y)
    model.save(tmp_path / "m")
    header, _ = parts_of((tmp_path / "m").read_bytes())
    rows = max(entry["shape"][0] for key, entry in header.items() if key != "__metadata__" and entry["shape"])
    kept = model.support_vectors_ if hasattr(model, "support_vectors_") else model.function_.points
    assert rows == len(kept) < 300


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("ridge nystrom", lambda m: m.loo_score_),
        ("ridge nystrom", lambda m: m.predict_interval(Z)),
        ("ridge tuned", lambda m: m.tuning_),
        ("linear", lambda m: m.loo_predictions_),
        ("linear", lambda m: m.dual_coef_),
        ("bayesian", lambda m: m.loo_score_),
        ("network", lambda m: m.degrees_of_freedom_),
        ("squares", lambda m: m.loo_score_),
        ("kernel logistic", lambda m: m.loo_log_loss_),
        ("logistic", lambda m: m.loo_score_),
    ],
)
def test_training_answers_are_refused_by_a_loaded_model(name, ask, tmp_path):
    fitted(name).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    with pytest.raises(InvalidInput, match=r"training rows .* not in a model file.*Fit the model again"):
        ask(loaded)


def test_public_attributes_that_were_left_out_are_not_there(tmp_path):
    fitted("ridge tuned").save(tmp_path / "m")
    assert hasattr(fitted("ridge tuned"), "tuning_")
    assert not hasattr(load(tmp_path / "m"), "tuning_")


def test_a_loaded_model_can_be_fitted_again_and_asked_everything(tmp_path):
    fitted("linear").save(tmp_path / "m")
    again = load(tmp_path / "m").fit(X, Y)
    assert again.loo_score_ == mc.Ridge().fit(X, Y).loo_score_
    again.save(tmp_path / "m")
    fitted("bayesian intercept").save(tmp_path / "m")
    more = load(tmp_path / "m").partial_fit(X[:5], YY[:5])
    assert more.status_.startswith("sequential")


def test_errors_of_properties_keep_their_words():
    model = mc.LeastSquaresClassifier(G).fit(X, TWO)
    with pytest.raises(AttributeError, match="Only the linear model has weights"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="'Ridge' object has no attribute 'nonsense'"):
        _ = mc.Ridge().nonsense


@pytest.mark.parametrize("name", ["ridge nystrom", "gp", "svc pandas", "glm", "logistic", "conformal linear"])
def test_pickle_and_copy_take_loaded_models(name, tmp_path):
    fitted(name).save(tmp_path / "m")
    Q, loaded = CASES[name][3], load(tmp_path / "m")
    for again in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded), copy.copy(loaded)):
        assert identical(again.predict(Q), fitted(name).predict(Q))
        assert vars(again).get("_not_in_file") == vars(loaded).get("_not_in_file")


def test_a_loaded_model_of_counts_knows_that_there_were_exposures(tmp_path):
    mc.GLM(family="poisson").fit(X, COUNTS, exposure=np.full(N, 2.0)).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert np.isfinite(loaded.score(X, COUNTS, exposure=np.full(N, 2.0)))
    with pytest.warns(UserWarning, match="exposures"):
        loaded.score(X, COUNTS)


def test_progress_is_left_out(tmp_path):
    mc.SVC(G, progress=lambda step: True).fit(X, TWO).save(tmp_path / "m")
    assert load(tmp_path / "m").progress is None


def test_an_interpolator_is_saved_too(tmp_path):
    for values, more in ((Y, {}), (YY, {"neighbors": 12}), (Y + 1j, {"kernel": "gaussian", "epsilon": 1.0})):
        f = mc.RBFInterpolator(X, values, **more)
        f.save(tmp_path / "m")
        assert identical(load(tmp_path / "m")(Z), f(Z))


def test_models_must_be_fitted(tmp_path):
    with pytest.raises(InvalidInput, match="must be fitted"):
        mc.SVC().save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


# -- what is refused by name -------------------------------------------------------------------------------------------


def double(A):
    return 2 * np.asarray(A)


class Own(mc.Kernel):
    def tile(self, block, out):
        out[:] = 1.0


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (mc.KernelRidge(mc.FromFunction(lambda x, z: float(x @ z))), "lambda"),
        (mc.KernelRidge(mc.Linear().after(double)), "double"),
        (mc.KernelRidge(mc.Linear().rescale(double) if False else mc.Linear().after(np.square)), "square"),
        (mc.KernelRidge(lambda A: mc.Gaussian(2.0)), "set_params"),
        (mc.Ridge(double), "double"),
        (mc.KernelRidge(G, random_state=np.random.default_rng(0), solver="nystrom", n_centers=3), "random_state"),
        (mc.KernelRidge(Own()), "Own"),
    ],
)
def test_code_is_refused_by_name(model, name, tmp_path):
    model.fit(X, Y)
    with pytest.raises(InvalidInput, match=name):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_models_of_other_libraries_are_refused(tmp_path):
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import StandardScaler

    model = mc.ConformalRegressor(LinearRegression()).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"LinearRegression.*joblib"):
        model.save(tmp_path / "m")
    with pytest.raises(InvalidInput, match="StandardScaler"):
        mc.Ridge(StandardScaler()).fit(X, Y).save(tmp_path / "m")

    class Mine(mc.KernelRidge):
        pass

    with pytest.raises(InvalidInput, match=r"models of this library.*Mine"):
        Mine(G).fit(X, Y).save(tmp_path / "m")


def test_objects_of_ones_own_are_refused(tmp_path):
    things = [complex(i, 1) for i in range(6)]
    model = mc.KernelRidge(mc.Delta()).fit(things, np.arange(6.0))
    with pytest.raises(InvalidInput, match=r"complex.*Encode the objects"):
        model.save(tmp_path / "m")


# -- values ------------------------------------------------------------------------------------------------------------


def through(value):
    encode = Encoder()
    node = json.loads(json.dumps(encode(value, "value"), allow_nan=False))
    return Decoder(encode.tensors, len(json.dumps(node)))(node)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(2**80), 1.5, -0.0, 5e-324, 1e308, "", "Ω\n\"'", "\ud800", b"\x00\xff", (), (1, (2.0, "x")),
        [], [[None]], {1, 2}, frozenset({"a"}), {"k": (1,), 2: None}, range(3, 9, 2), np.float32(0.1), np.int8(-3),
        np.bool_(True), np.str_("é"), np.datetime64("2026-01-02T03", "h"), np.timedelta64(5, "s"),
        np.dtype("float32"), np.float64,
    ],
)  # fmt: skip
def test_plain_values_come_back(value):
    found = through(value)
    assert type(found) is type(value)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), np.float32("nan")])
def test_numbers_without_json_come_back(number):
    assert repr(through(number)) == repr(number)


@pytest.mark.parametrize(
    "A",
    [
        np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.arange(12)[::3], np.empty((0, 3)),
        np.array(2.0), np.array([True, False]), np.array(["a", "bcd"]), np.array([["é", ""], ["b", "c"]]).T,
        np.array([b"x", b"yz"]), np.array(["2026-01-02", "NaT"], dtype="M8[D]"),
        np.array(["a", None, 1.5, {1, 2}], dtype=object), np.arange(4, dtype=">i4"), np.float16([1, 2]),
    ],
)  # fmt: skip
def test_arrays_come_back(A):
    found = through(A)
    assert found.shape == A.shape
    assert found.dtype == A.dtype.newbyteorder("=")
    assert list(map(repr, found.ravel().tolist())) == list(map(repr, A.ravel().tolist()))
    if A.ndim == 2 and A.size and A.dtype != object:
        assert found.flags.f_contiguous == A.flags.f_contiguous


def test_a_number_seen_many_times_is_stored_once():
    found = through([np.broadcast_to(np.float32(1.5), (4, 2)), np.zeros(9)])[0]
    assert found.strides == (0, 0)
    assert found.dtype == np.float32
    assert found.tolist() == [[1.5, 1.5]] * 4


def test_many_objects_do_not_fill_the_header():
    encode, many = Encoder(), [frozenset({str(i), i}) for i in range(1000)]
    assert len(json.dumps(encode(many, "raw"))) < 100
    assert through(many) == many
    assert through(np.array(many, dtype=object)).tolist() == many
    words = pd.DataFrame({"w": [str(i) for i in range(1000)]})
    assert len(json.dumps(encode(words, "X"))) < 300
    assert through(words).equals(words)


def test_arrays_that_are_one_stay_one():
    A = np.arange(3.0)
    found = through([A, A, A.copy()])
    assert found[0] is found[1]
    assert found[2] is not found[0]


FRAMES = {
    "a": [1, 2, 3], "b": [0.5, np.nan, 1.0], "c": ["x", "y", None], "d": [True, False, True],
    "e": pd.to_datetime(["2026-01-01", "2026-06-01", "2027-01-01"]),
}  # fmt: skip


def test_pandas_frames_come_back():
    frame = pd.DataFrame(FRAMES).assign(
        f=pd.Categorical(["u", "v", None], categories=["v", "u"], ordered=True),
        g=pd.array([1, None, 3], dtype="Int64"),
        h=pd.to_datetime(["2026-01-01"] * 3).tz_localize("Europe/Rome"),
        i=pd.Series([{"x"}, {"y", "z"}, set()]),
        j=pd.Series([None, True, False], dtype="boolean"),
        k=pd.Categorical([3, 1, 3]),
        l=np.array([1, 2, 3], dtype=np.int16),
    )
    frame[7] = "seven"
    found = through(frame)
    pd.testing.assert_frame_equal(found, frame)


def test_polars_frames_come_back():
    frame = pl.DataFrame({k: (v if k != "e" else v.to_pydatetime().tolist()) for k, v in FRAMES.items()}).with_columns(
        f=pl.Series(["u", "v", None], dtype=pl.Categorical),
        g=pl.Series([1, None, 3], dtype=pl.Int16),
        h=pl.Series([["x"], [], ["y", "z"]]),
        i=pl.Series([1.0, None, 2.0], dtype=pl.Float32),
        j=pl.Series(["p", "q", "p"], dtype=pl.Enum(["q", "p"])),
        k=pl.Series([1, 2, None]).cast(pl.Date),
        l=pl.Series([1, 2, 3]).cast(pl.Duration("ms")),
    )
    found = through(frame)
    assert found.schema == frame.schema
    assert found.equals(frame)


@pytest.mark.parametrize("library", [pd, pl])
def test_without_its_library_a_frame_is_a_table(library, monkeypatch):
    def absent(name):
        raise ImportError(name)

    frame = table(TRAIN, library)
    kind, parts = frame_parts(frame, "X")
    monkeypatch.setattr(packing, "import_module", absent)
    plain = frame_from(kind, parts)
    assert isinstance(plain, Table)
    queries = frame_from(*frame_parts(table(TEST, library), "X"))
    assert np.array_equal(MIXED(queries, plain), MIXED(table(TEST, library), frame))
    assert np.array_equal(MIXED(plain[np.array([3, 1])], plain), MIXED(plain, plain)[[3, 1]])


# -- damage ------------------------------------------------------------------------------------------------------------


def test_the_digest_of_these_tests_is_that_of_the_files(saved):
    header, data = parts_of(saved.read_bytes())
    saved.write_bytes(joined(header, data))
    load(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: b"", "m.mercer': an empty file"),
        (lambda d: b"age,city\n1,Rome\n", "Check the path"),
        (lambda d: b"PK\x03\x04" + bytes(100), "Check the path"),
        (lambda d: d[:100], "complete"),
        (lambda d: d[:-1], "complete"),
        (lambda d: d + b"x", r"\d bytes instead of \d"),
        (lambda d: d[:-20] + bytes(20), "digest"),
        (lambda d: d.replace(b'"SVC"', b'"SVR"'), "digest"),
        (lambda d: d.replace(b"Gaussian(sigma=1.0)", b"Gaussian(sigma=9.0)"), "digest"),
        (
            lambda d: d.replace(b'"schema":"1"', b'"schema":"2"'),
            "schema 1 or older, got .*schema 2.*newer version",
        ),
        (lambda d: (2**62).to_bytes(8, "little") + d[8:], "m.mercer': another kind of file"),
        (lambda d: b"\x10" + bytes(7) + b'{"a":{}}' + bytes(8), "as it was written|one that"),
    ],
)
def test_files_that_are_not_models_are_refused_in_words(change, words, saved):
    saved.write_bytes(change(saved.read_bytes()))
    with pytest.raises(InvalidInput, match=words):
        load(saved)


def test_a_run_of_zeros_is_not_taken_for_the_place_of_the_digest(tmp_path):
    zeros = "0" * 64
    frame = pd.DataFrame({zeros: np.arange(6.0), "name": [zeros, "a"] * 3})
    model = mc.SVC(mc.Delta().on("name") + mc.Linear().on(zeros)).fit(frame, [zeros, "b"] * 3)
    assert_comes_back(model, frame, tmp_path / zeros)


def test_files_of_other_versions_of_the_same_schema(saved):
    header, data = parts_of(saved.read_bytes())
    whole = header["__metadata__"]

    def changed(**entries):
        saved.write_bytes(joined({**header, "__metadata__": {**whole, **entries}}, data))
        return load(saved)

    parameters = json.loads(whole["parameters"])
    fewer = {name: value for name, value in parameters.items() if name != "max_time"}
    assert changed(parameters=json.dumps(fewer)).max_time == mc.SVC().max_time, (
        "what older versions lack has its default"
    )
    changed(author="someone")  # what newer versions add does no harm
    with pytest.raises(
        InvalidInput, match=r"written by version 0\.9, read by .*'shrinking', which a SVC does not have"
    ):
        changed(parameters=json.dumps({**parameters, "shrinking": True}), version="0.9")


MODELS = os.path.join(os.path.dirname(__file__), "models")


def test_files_of_schema_1_load_for_ever():
    """Two files as version 0.1.0 wrote them."""
    model = load(os.path.join(MODELS, "svc.mercer"))
    assert model.kernel_ == MIXED
    frame = pd.DataFrame({"age": [0.5, -1.0, 0.0], "city": ["Rome", "Oslo", "Paris"], "size": [1.0, 0.0, -1.0]})
    assert model.predict(frame).tolist() == ["green", "red", "green"]
    scores = [[1.1342374061, 2.2075222505, -0.2330437954], [-0.2301876394, 0.9067241086, 2.2412581848],
              [1.0055557746, 2.1899779525, -0.1910153862]]  # fmt: skip
    assert np.allclose(model.decision_function(frame), scores, rtol=1e-8, atol=0)
    answers = load(os.path.join(MODELS, "gp.mercer")).predict([[0.5], [2.0]], return_std=True)
    assert np.allclose(answers, [[0.4654419346, 0.9077627901], [0.0755256592, 0.0705547322]], rtol=1e-8, atol=0)


def test_a_model_that_cannot_answer_is_refused(saved):
    header, data = parts_of(saved.read_bytes())
    for part, change in (
        ("fitted", lambda tree: tree.pop("classes_")),
        ("fitted", lambda tree: tree.update(__dict__=None)),
        ("fitted", lambda tree: tree.update(n_features_in_="x")),
    ):
        tree = json.loads(header["__metadata__"][part])
        change(tree)
        saved.write_bytes(joined({**header, "__metadata__": {**header["__metadata__"], part: json.dumps(tree)}}, data))
        with pytest.raises(InvalidInput, match="fit together"):
            load(saved)


def test_lists_of_lists_do_not_explode():
    texts = [[1] * 10] + [[{"json": f"j{i}"}] * 10 for i in range(20)]
    tensors = {f"j{i}": np.frombuffer(json.dumps(text).encode(), np.uint8) for i, text in enumerate(texts)}
    with pytest.raises(InvalidInput, match="a list that does not exist"):
        Decoder(tensors, 0)({"json": "j20"})


@pytest.mark.parametrize("offsets", [[], [0], [0, 8, 16], [8, 0], None])
def test_tensors_without_a_place_are_refused(offsets, saved):
    header, data = parts_of(saved.read_bytes())
    header["dual_coef_"]["data_offsets"] = offsets
    saved.write_bytes(joined(header, data))
    with pytest.raises(InvalidInput, match="dual_coef_"):
        load(saved)


def test_names_that_are_there_twice_are_refused(saved):
    header, data = parts_of(saved.read_bytes())
    header["__metadata__"]["digest"] = "0" * 64
    text = json.dumps(header, separators=(",", ":"))
    for twice in (
        text.replace('"schema":"1"', '"schema":"1","schema":"1"'),
        text.replace('\\"C\\":1.0', '\\"C\\":9.0,\\"C\\":1.0'),
    ):
        assert twice != text
        saved.write_bytes(joined(twice.encode(), data))
        with pytest.raises(InvalidInput, match="repeated entry"):
            load(saved)


def test_deep_json_is_refused(saved):
    header, data = parts_of(saved.read_bytes())
    for depth in (500, 10_000, 1_000_000):
        header["__metadata__"]["fitted"] = '{"kernel_":' + "[" * depth + "]" * depth + "}"
        saved.write_bytes(joined(header, data))
        with pytest.raises(InvalidInput):
            load(saved)


def test_another_safetensors_file_is_no_model(tmp_path):
    from safetensors.numpy import save_file

    save_file({"weight": np.ones(3)}, tmp_path / "w")
    with pytest.raises(InvalidInput, match=r"one that model\.save wrote"):
        load(tmp_path / "w")


def test_paths_that_are_not_there_or_not_files(tmp_path):
    with pytest.raises(InvalidInput, match="No such file"):
        load(tmp_path / "none")
    with pytest.raises(InvalidInput, match="directory"):
        load(tmp_path)
    for path in (None, 3, "a\0b", ""):
        for use in (load, fitted("linear").save):
            with pytest.raises(InvalidInput, match="A model file must"):
                use(path)


def test_declared_sizes_are_refused_before_they_are_allocated(saved, monkeypatch):
    header, data = parts_of(saved.read_bytes())
    asked = []
    monkeypatch.setattr(container.np, "empty", lambda shape, *a, **k: asked.append(shape))
    for shape in ([2**40], [2**31, 2**31], [2**61, 2**61]):
        header["dual_coef_"]["shape"] = shape
        saved.write_bytes(joined(header, data))
        with pytest.raises(InvalidInput, match=r"does not fit its shape|an unknown kind"):
            load(saved)
        header["dual_coef_"]["data_offsets"][1] = header["dual_coef_"]["data_offsets"][0] + 8 * int(
            np.prod(shape, dtype=object)
        )
        saved.write_bytes(joined(header, data))
        with pytest.raises(InvalidInput):
            load(saved)
    assert not asked


def test_files_beyond_the_memory_budget_are_refused(saved, monkeypatch):
    monkeypatch.setenv("MERCER_MEMORY", "20 kB")
    with pytest.raises(InvalidInput, match="memory budget of 20 kB"):
        load(saved)


@pytest.mark.parametrize(
    "nasty", ["__import__", "os.system", "eval", "Points", "SVC.fit", "check", "InvalidInput", "tune"]
)
def test_a_file_names_only_what_is_in_the_tables(nasty, saved):
    header, data = parts_of(saved.read_bytes())
    whole = header["__metadata__"]
    for key, value in (
        ("class", nasty),
        ("fitted", json.dumps({"kernel_": {"name": nasty}})),
        ("fitted", json.dumps({"kernel_": {"kernel": nasty, "fields": {}}})),
        ("fitted", json.dumps({"kernel_": {"kernel": f"{nasty}('true')"}})),
        ("fitted", json.dumps({"kernel_": {"object": nasty, "fields": {}}})),
        ("fitted", json.dumps({"predict": 1})),
        ("parameters", json.dumps({"predict": 1})),
        ("parameters", json.dumps({nasty: 1})),
    ):
        saved.write_bytes(joined({**header, "__metadata__": {**whole, key: value}}, data))
        with pytest.raises(InvalidInput):
            load(saved)


def test_reading_imports_nothing_that_a_file_names(saved):
    """Every class that files may hold is in the table, of a module of this library."""
    for name, (module, _) in SMALL.items():
        assert module.startswith("mercer.")
        assert inspect.isclass(getattr(import_module(module), name.partition(".")[2])), name
    own = [packing, *(module for name, module in sys.modules.items() if name.startswith("mercer.files"))]
    source = "".join(map(inspect.getsource, own))
    assert len(own) == 10
    for word in ("import pickle", "eval(", "exec(", "__import__", "marshal", "np.load"):
        assert word not in source, word


# -- atomic ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_failed_write_leaves_the_old_file_and_no_litter(error, after, tmp_path, monkeypatch):
    path = tmp_path / "m.mercer"
    fitted("linear").save(path)
    before = path.read_bytes()

    def pour(file, chunks):
        for chunk in chunks[:after]:
            file.write(chunk)
        raise error

    monkeypatch.setattr(container, "_pour", pour)
    with pytest.raises(InvalidInput if isinstance(error, OSError) else type(error)):
        fitted("svc").save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.mercer"]


def test_a_failed_sync_or_rename_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.mercer"
    fitted("linear").save(path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError(5, "Input/output error")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(InvalidInput, match="Nothing was changed"):
                fitted("svc").save(path)
        assert path.read_bytes() == before
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk():
    with pytest.raises(InvalidInput, match="No space left"):
        fitted("svc").save("/dev/full")


def test_a_file_that_grows_beyond_its_limit(tmp_path):
    """The system refuses bytes in the middle of a write: the file that was there stays, and nothing else is left."""
    resource = pytest.importorskip("resource")
    path, limits = tmp_path / "m", resource.getrlimit(resource.RLIMIT_FSIZE)
    fitted("linear").save(path)
    before, handler = path.read_bytes(), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(InvalidInput, match="File too large"):
            fitted("svc three").save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_paths_that_cannot_be_written(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "m", "/proc/m.mercer", f"{tmp_path}/new/"):
        with pytest.raises(InvalidInput, match="Nothing was changed"):
            fitted("linear").save(path)
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(InvalidInput, match="Permission denied"):
            fitted("linear").save(tmp_path / "closed" / "m")


def test_a_file_that_is_not_a_model_or_report_is_replaced_only_on_request(tmp_path):
    model, path = mc.Ridge(alpha=0.1).fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match=r"pass overwrite=True to replace it\. Nothing was written") as caught:
        model.save(path)
    assert "a file with other content" in caught.value.got
    assert path.read_text() == "a,b\n1,2\n"
    model.save(path, overwrite=True)
    model.save(path)  # a model may be replaced
    path.write_bytes(b"")
    model.save(path)  # nothing is lost with an empty file


def test_links_are_followed_and_permissions_are_kept(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "m").symlink_to(tmp_path / "other" / "real")
    old = os.umask(0o022)
    try:
        for mode in (0o644, 0o600, 0o664):  # the usual ones, then those of the file that is replaced
            fitted("linear").save(tmp_path / "m")
            assert (tmp_path / "m").is_symlink()
            real = tmp_path / "other" / "real"
            assert stat.S_IMODE(real.stat().st_mode) == mode
            real.chmod({0o644: 0o600}.get(mode, 0o664))
    finally:
        os.umask(old)
    load(tmp_path / "m")


def test_a_file_that_is_closed_to_writing_stays(tmp_path, monkeypatch):
    (tmp_path / "m").write_bytes(b"mine")
    (tmp_path / "m").chmod(0o444)
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # who may write everything: answer as to anybody else
        monkeypatch.setattr(os, "access", lambda path, mode: bool(os.stat(path).st_mode & 0o222))
    with pytest.raises(InvalidInput, match="Permission denied"):
        fitted("linear").save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["a b.mercer", "Größe ½ 模型.mercer", "名" * 80, "[x]*?.mercer", "-m", ".hidden"])
def test_any_name_will_do(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (name, os.fsencode(name), tmp_path / name):
        fitted("linear").save(path)
        assert identical(load(path).predict(Z), fitted("linear").predict(Z))
    assert [p.name for p in tmp_path.iterdir()] == [name]


NOW = 1_800_000_000.0


def test_what_killed_saves_left_is_swept_away_after_an_hour(tmp_path, monkeypatch):
    path = tmp_path / "m[1].mercer"
    left = {age: tmp_path / f".m[1].mercer.{age:016x}.part" for age in (60, 7200)}
    others = [tmp_path / name for name in (".m1.mercer.0123456789abcdef.part", ".m[1].mercer.notes.part", "x.part")]
    for file in (*left.values(), *others):
        file.write_bytes(b"half")
        os.utime(file, (NOW - 7200,) * 2)
    os.utime(left[60], (NOW - 60,) * 2)
    monkeypatch.setattr(time, "time", lambda: NOW)
    fitted("linear").save(path)
    assert set(tmp_path.iterdir()) == {path, left[60], *others}


KILLED = """
import os, signal, sys
from hashlib import sha256
from itertools import count
from pathlib import Path
import mercer as mc
from mercer.files import container, replace

watched = {f.__code__ for f in (container._write, container._pour, replace.replacing.__wrapped__)}
os.fsync = lambda handle: None  # of power cuts, and slow
path, new = Path(sys.argv[1]), mc.load(sys.argv[2])
old = path.read_bytes()
for lines in count(1):
    child = os.fork()
    if child == 0:
        seen = set()

        def trace(frame, event, arg):
            if frame.f_code not in watched:
                return None
            seen.add((frame.f_code, frame.f_lineno))
            if len(seen) == lines:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        new.save(path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    left = [file for file in path.parent.iterdir() if file.suffix == ".part"]
    print(os.WIFSIGNALED(status), sha256(path.read_bytes()).hexdigest(), len(left))
    if not os.WIFSIGNALED(status):
        break
    path.write_bytes(old)
    for file in left:
        file.unlink()
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork, no SIGKILL")
def test_a_killed_process_leaves_an_old_or_a_new_file(tmp_path):
    """Killed before each line of the writer in turn."""
    path, new = tmp_path / "m", tmp_path / "new"
    fitted("linear").save(path)
    fitted("svc three").save(new)
    old = sha256(path.read_bytes()).hexdigest()
    command = [sys.executable, "-c", KILLED, str(path), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    killed, found, left = done[::3], done[1::3], [int(n) for n in done[2::3]]
    whole = sha256(new.read_bytes()).hexdigest()
    replaced = found.index(whole)
    assert found == [old] * replaced + [whole] * (len(found) - replaced)
    assert killed == ["True"] * (len(killed) - 1) + ["False"]
    assert 0 < replaced < len(killed) - 1, "it was killed on both sides"
    assert set(left) == {0, 1}
    assert left[-1] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_takes_a_model(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    fitted("linear").save(tmp_path / "pipe")
    reader.join()
    (tmp_path / "m").write_bytes(read[0])
    assert identical(load(tmp_path / "m").predict(Z), fitted("linear").predict(Z))


# -- the fuzzer --------------------------------------------------------------------------------------------------------

FILES = int(os.environ.get("MERCER_FUZZ", "150"))
SEEDS = (
    "svc three", "ridge sparse", "ridge sets", "ridge pandas", "kernel perceptron voted", "gp stream", "linear sets",
    "kernel logistic centres", "glm", "kernel glm", "watson classes", "local robust", "density polars", "conditional",
    "neighbours loo", "forgetron", "perceptron sparse", "discriminant", "kernel fisher", "components learnt", "svr",
    "network normalized", "one class", "quantiles", "bayesian stream", "conformal jackknife", "conformal normalised",
    "svc calibrated", "table rule pandas", "table kernel polars", "AutoRegressor", "AutoClassifier table", "linear",
    "nu svc", "nu svr", "squares", "logistic", "fisher", "kernel discriminant", "watson", "neighbours classes",
    "bounded", "calibrated votes", "calibrated threshold",
)  # fmt: skip
KERNELS = (
    "Linear()", "Gaussian(sigma=2.0)", "Delta()", "Intersection()", "Precomputed()", "Gaussian(sigma=[1.0, 2.0])",
    "Polynomial(degree=9, c=1.0)", "Linear()" + " + Linear()" * 50, "exp(" * 500, "exp(" * 30 + "Linear()" + ")" * 30,
    "Linear() ** 999999999", "Linear() * 1e308", "Gaussian(sigma=-1.0)", "Gaussian(sigma=nan)", "Linear().on('age')",
    "Linear().on(99)", "exp(1e308 * Linear())", "Polynomial(degree=10000000000)", "(" * 3000, "Matern(1.0, nu=1e9)",
)  # fmt: skip
ODD = (
    None, True, -1, 0, 2**31, 2**63, 2**200, 1e308, -0.5, "", "nan", "Gaussian(sigma=1.0)", "x" * 2000, [], [[]], {},
    {"same": 0}, {"same": -1}, {"same": 10**9}, {"float": "nan"}, {"float": "inf"}, {"tuple": [1]},
    {"range": [0, 10**15, 1]}, {"range": [0, 3, 0]}, {"set": [[1]]}, {"dict": [[1]]}, {"tensor": "dual_coef_"},
    {"tensor": "none"}, {"repeated": {"scalar": ["<f8", 1.0]}, "shape": [10**12]}, {"objects": [], "shape": [10**9]},
    {"repeated": {"scalar": ["<f8", 1.0]}, "shape": [3]}, {"scalar": ["<f8", "x"]}, {"scalar": ["<M8[D]", 2**62]},
    {"dtype": "O"}, {"dtype": "<U9999999"}, {"bytes": "zz"}, {"missing": "NA"}, [1.0] * 7, [None, "x", 2],
    {"kernel": "Polynomial", "fields": {"degree": 10**9}}, {"object": "points.Points", "fields": {"raw": None}},
    {"csr": [[], [], []], "shape": [1, 1], "kind": "array"}, {"frame": "pandas", "columns": []}, {"name": "check"},
    {"model": {"class": "SVC", "parameters": {}, "fitted": {}, "left_out": []}}, {"json": "dual_coef_"},
    *({"kernel": text} for text in KERNELS),
)  # fmt: skip


def flipped(data, rng):
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(data)


def rough(data, other, rng):
    """Bytes changed as a disk or a careless copy would."""
    at = int(rng.integers(len(data)))
    match rng.integers(7):
        case 0:
            return flipped(data, rng)
        case 1:
            return data[:at]
        case 2:
            return data + rng.bytes(int(rng.integers(1, 50)))
        case 3:
            return data[:at] + rng.bytes(20) + data[at + 20 :]
        case 4:  # another file's header
            length = int.from_bytes(other[:8], "little")
            return other[: 8 + length] + data[8 + int.from_bytes(data[:8], "little") :]
        case 5:
            return struct.pack("<Q", int(rng.integers(2**63))) + data[8:]
        case _:
            return data[:at] + data[at + int(rng.integers(1, 30)) :]


def crafted(data, other, rng):
    """Contents changed by someone who knows the format, with the digest that belongs to them."""
    header, tensors = parts_of(data)
    metadata = header["__metadata__"]
    names = [name for name in header if name != "__metadata__"]
    part = str(rng.choice(["parameters", "fitted", "fitted", "fitted", "left_out"]))
    match rng.integers(11):
        case 0:
            tensors = flipped(tensors, rng)
        case 1:  # one tensor's numbers
            at, end = header[str(rng.choice(names))]["data_offsets"]
            word = rng.choice([np.float64(v) for v in (np.nan, np.inf, -1e308, 5e-324)] + [np.int64(-1).view("f8")])
            tensors = tensors[:at] + (word.tobytes() * ((end - at) // 8 + 1))[: end - at] + tensors[end:]
        case 2:  # a tensor's place, kind or shape, so that nothing fits any more
            entry = header[str(rng.choice(names))]
            key = str(rng.choice(list(entry)))
            shape = [int(v) for v in rng.integers(-9, 2**62, 2)]
            entry[key] = {"dtype": "F32", "shape": shape, "data_offsets": [0, 8]}[key]
        case 3:  # the same bytes as another array
            entry = header[str(rng.choice(names))]
            size, sizes = int(np.prod(entry["shape"])), {"F64": 8, "I64": 8, "U8": 1, "F32": 4, "I32": 4, "BOOL": 1}
            entry["shape"] = [entry["shape"][::-1], [size], [size, 1], [1, size], [1, 1, size]][rng.integers(5)]
            wide = sizes.get(entry["dtype"])
            if rng.random() < 0.5 and wide:
                entry["dtype"] = str(rng.choice([code for code, own in sizes.items() if own == wide]))
        case 4:  # names exchanged
            a, b = rng.choice(names, 2)
            header = {{a: b, b: a}.get(name, name): entry for name, entry in header.items()}
        case 5:  # text that is not JSON any more, or deep, or with a name twice
            text = metadata[part]
            half, open_ = text[: len(text) // 2], text.replace(":", ":{", 1)
            metadata[part] = str(rng.choice(["[" * 100_000, half, open_, '{"a":1,"a":2}', "NaN", "9" * 5000]))
        case 6:
            key = str(rng.choice(list(metadata)))
            metadata[key] = str(rng.choice(["", "null", "{}", "[]", "999", "\ud7ff", "KernelRidge", "Similarity"]))
        case 7:  # another model's class or parts
            others = parts_of(other)[0]["__metadata__"]
            for key in rng.choice(["class", *container.STATE], size=rng.integers(1, 4)):
                metadata[str(key)] = others[str(key)]
        case _:  # any entry: gone, odd, another entry of this or another model
            tree, others = json.loads(metadata[part]), json.loads(parts_of(other)[0]["__metadata__"][part])
            for _ in range(rng.integers(1, 4)):
                found, more = places(tree, []), places(others, [])
                if not found or not more:
                    break
                (node, key), (mine, name), (theirs, title) = (
                    some[rng.integers(len(some))] for some in (found, found, more)
                )
                match rng.integers(5):
                    case 0:
                        del node[key]
                    case 1:
                        node[key] = ODD[rng.integers(len(ODD))]
                    case 2:
                        node[key] = copy.deepcopy(mine[name])
                    case 3:
                        node[key] = copy.deepcopy(theirs[title])
                    case _ if isinstance(node[key], list) and node[key]:  # longer or shorter
                        node[key] = node[key][:-1] if rng.random() < 0.5 else node[key] + node[key][:1]
            metadata[part] = json.dumps(tree)
    return joined(header, tensors)


def questions_of(name):
    """What the model of a case is asked: rows, labels, and the methods that answer."""
    model, (_, _, y, Q, *_) = fitted(name), CASES[name]
    methods = [a for a in questions(model) if " " not in a and not isinstance(answer(model, a, Q), Exception)]
    methods += [a for a in ("partial_fit", "sample") if hasattr(model, a)]
    return Q, None if y is None else y[: len(Z)], methods


def bytes_of(model, path):
    model.save(path)
    return path.read_bytes()


def test_every_estimator_is_among_the_seeds():
    assert {type(CASES[name][0]).__name__ for name in SEEDS} == set(ESTIMATORS)


@pytest.mark.thorough
def test_forged_files_are_refused_or_answer(tmp_path):
    """No signal, no hang, no internal error, whatever is moved: MERCER_FUZZ=20000 tries so many files."""
    rng, originals = np.random.default_rng(0), {name: bytes_of(fitted(name), tmp_path / "m") for name in SEEDS}
    with Reader(tmp_path, {name: questions_of(name) for name in SEEDS}) as reader:
        for i in range(FILES):
            name, other = SEEDS[i % len(SEEDS)], originals[SEEDS[rng.integers(len(SEEDS))]]
            kind = rng.random()
            if kind < 0.7:
                reader(moved(originals[name], rng), name)
            elif kind < 0.95:
                reader(crafted(originals[name], other, rng), name)
            else:
                mutated = rough(originals[name], other, rng)
                noticed = reader(mutated, name).startswith("refused") or mutated == originals[name]
                assert noticed, "bytes were altered, and no one noticed"
    print(reader, *reader.bad, sep="\n")
    assert not reader.bad
    assert reader.counts["refused"] > FILES / 3
    assert reader.counts["answered"] > FILES / 20


# -- what a file may not do --------------------------------------------------------------------------------------------


def edited(name, part, change, path):
    return changed(bytes_of(fitted(name), path), part, change)


def field(tree, *keys):
    """The node of an attribute of an attribute."""
    node = tree
    for key in keys:
        node = node[key]["fields"] if isinstance(node[key], dict) and "fields" in node[key] else node[key]
    return node


def with_tensor(data, name, change):
    """A file one of whose tensors is another array of the same type and shape."""
    header, tensors = parts_of(data)
    at, end = header[name]["data_offsets"]
    A = np.frombuffer(tensors[at:end], {"I64": "<i8", "F64": "<f8"}[header[name]["dtype"]]).copy()
    change(A)
    return joined(header, tensors[:at] + A.tobytes() + tensors[end:])


def ranged(tree, n):
    """Every list of values of a table, as a range."""
    for node, key in places(tree, []):
        if isinstance(node[key], list) and node[key][:1] == ["values"]:
            node[key] = ["values", {"range": [0, n, 1]}]


def wider(tree, d):
    tree["n_features_in_"] = d
    for node, key in places(tree, []):
        if key == "csr":
            node["shape"][1] = d


def steeper(tree):
    for node, key in places(tree, []):
        if key == "degree":
            node[key] = 250


def retyped(data, name):
    header, tensors = parts_of(data)
    return joined({**header, name: {**header[name], "dtype": "U64"}}, tensors)


def longer(data):
    header, tensors = parts_of(data)
    return joined(json.loads(json.dumps(header).replace("(1, 2)", "(1, 1000000)")), tensors)


THREE = mc.KernelPerceptron(G, max_support=8, on_full="forgetron").fit(X, LABELS)
TEXT = mc.KernelRidge(mc.NGrams((1, 2))).fit(["ab" * 2000, "ba" * 2000], [0.0, 1.0])
SPLINE = mc.RBFNetwork(mc.ThinPlate(), centers="all", degree=1).fit(X, Y)
TOWNS = {
    library: mc.KernelNeighborsRegressor(mc.Delta().on("city"), n_neighbors=2).fit(table(TRAIN, library), Y)
    for library in (pd, pl)
}
FORGED = {
    "a range for a number": lambda path: edited(
        "kernel perceptron voted", "fitted",
        lambda tree: field(tree, "_learner", "learnt").update(seen={"range": [0, 4000, 1]}), path,
    ),
    "codes without a class": lambda path: with_tensor(
        bytes_of(THREE, path), "_learner.learnt.codes", lambda codes: codes.fill(10**8)
    ),
    "a degree without coefficients": lambda path: changed(bytes_of(SPLINE, path), "fitted", steeper),
    "long ranges of pandas": lambda path: changed(
        bytes_of(TOWNS[pd], path), "fitted", lambda tree: ranged(tree, 3 * 10**6)
    ),
    "long ranges of Polars": lambda path: changed(
        bytes_of(TOWNS[pl], path), "fitted", lambda tree: ranged(tree, 10**12)
    ),
    "long runs of characters": lambda path: longer(bytes_of(TEXT, path)),
}  # fmt: skip


FORGED["no neighbours"] = lambda path: edited("local robust", "fitted", lambda tree: tree.update(_near=-0.5), path)
FORGED["codes of another type"] = lambda path: retyped(bytes_of(THREE, path), "_learner.learnt.codes")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A process with little memory; the crashes of forged files would end this one."""
    rows = {"perceptron": (Z, LABELS[: len(Z)], ["predict", "partial_fit"]), "sparse": (SPARSE_Z, None, ["predict"])}
    with Reader(tmp_path_factory.mktemp("forged"), rows) as found:
        yield found


@pytest.mark.parametrize("name", FORGED)
def test_no_forged_file_crashes_or_explodes(name, reader, tmp_path):
    reader.largest = 0
    assert reader(FORGED[name](tmp_path / "m"), "perceptron").startswith("refused:")
    assert reader.largest < 2e8


def test_empty_columns_of_sparse_rows_cost_nothing(reader, tmp_path):
    reader.largest = 0
    data = edited("ridge sparse matrix", "fitted", lambda tree: wider(tree, 2 * 10**8), tmp_path / "m")
    assert reader(data, "sparse") == "answered"
    assert reader.largest < 2e8
    wide = sp.csr_array((SPARSE.data, SPARSE.indices, SPARSE.indptr), shape=(N, 2**28))
    for kernel in (mc.Linear(), mc.Gaussian(2.0), mc.Laplacian(2.0)):
        assert np.array_equal(kernel(wide), kernel(SPARSE))


def test_loops_check_the_positions_that_files_hold():
    from mercer._loops import perceptron as loops

    K, out, good = np.ones((2, 3)), np.zeros((2, 3)), np.array([0, 2])
    loops.votes(K, good, good, good, np.ones(3), out)
    for slots, codes, more in (([0, 3], good, 3), (good, [0, 3], 3), (good, [-1, 0], 3), (good, good, 9)):
        with pytest.raises(IndexError):
            loops.votes(K, np.array(slots), np.array(codes), good, np.ones(more), out)
    C, numbers, guesses = np.zeros((3, 4)), np.zeros(4), np.empty(2, dtype=np.int64)
    pool = np.eye(4), np.ones(4), 2
    for codes in ([0, 10**8, 1, 1], [0, -1, 1, 1]):
        with pytest.raises(IndexError):
            loops.forget(
                *pool, np.array(codes), np.zeros(4, dtype=np.int64), np.ones(4), C, np.arange(4), 2, 2, numbers, guesses
            )


def test_a_share_of_rows_is_one_row_at_least():
    """Of none, SciPy's tree ends the process."""
    nearest = mc.LocalRegression(neighbors=1, degree=0).fit(X, Y).predict(Z)
    assert np.array_equal(mc.LocalRegression(neighbors=5e-324, degree=0).fit(X, Y).predict(Z), nearest)


def test_robust_rounds_end_when_nothing_changes(monkeypatch):
    rounds = []
    fit_at = mc.LocalRegression._fit_at
    monkeypatch.setattr(mc.LocalRegression, "_fit_at", lambda self, z: rounds.append(z) or fit_at(self, z))
    mc.LocalRegression(bandwidth=2.0, robust=10**9).fit(X, Y)
    assert len(rounds) < 1000


# -- what is declared --------------------------------------------------------------------------------------------------


def assigned(cls):
    """The attributes that the methods of a class and of its bases assign, and the text of those that leave some out."""
    names, leaving = set(), ""
    for base in cls.__mro__:
        if base.__module__.startswith("mercer."):
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    names |= {node.attr} if getattr(node.value, "id", "") == "self" else set()
                if isinstance(node, ast.FunctionDef) and node.name in ("_training_only", "__getstate__"):
                    leaving += ast.dump(node)
    return names, leaving


@pytest.mark.parametrize("name", [*ESTIMATORS, "RBFInterpolator"])
def test_every_attribute_of_an_estimator_is_declared(name):
    cls = getattr(mc, name)
    names, leaving = assigned(cls)
    names -= {*inspect.signature(cls).parameters, *_OF_THE_FIT, "__dict__"}
    names -= {a for a in names if isinstance(getattr(cls, a, None), property)} | set(declarations()[name].kinds)
    assert not {attribute for attribute in names if f"'{attribute}'" not in leaving}


def test_what_is_not_declared_cannot_be_saved(tmp_path):
    bytes_of(fitted("linear"), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    for change in (
        lambda model: vars(model).update(_secret=1),
        lambda model: vars(model).update(intercept_="three"),
        lambda model: vars(model).update(_penalties=np.ones((2, 2))),
        lambda model: vars(model).pop("_weights"),
    ):
        model = copy.deepcopy(fitted("linear"))
        change(model)
        with pytest.raises(
            InvalidInput, match=r"declared in mercer/files/schema\.py, got .*(_secret|intercept_|_penal|_weig)"
        ):
            model.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_class_without_a_declaration_cannot_be_saved(tmp_path, monkeypatch):
    known = dict(declarations())
    del known["Ridge"]
    monkeypatch.setattr("mercer.files.checking.declarations", lambda: known)
    with pytest.raises(InvalidInput, match="a Ridge, which is not declared"):
        fitted("linear").save(tmp_path / "m")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rows": np.arange(3)}, "2 where = 3"),
        ({"codes": np.array([0, 2])}, "2 where < 2"),
        ({"codes": np.array([0, -1])}, "the number -1"),
        ({"codes": np.array([0.0, 1.0])}, "float64"),
        ({"slots": np.array([0, 2, 0])}, "2 where < 2"),
        ({"times": np.array([0, 1])}, "2 where = 3"),
        ({"seen": range(9)}, "a range"),
        ({"seen": 2**60}, "the number"),
        ({"seen": True}, "True"),
        ({"mistakes": None}, "NoneType"),
        ({"more": 1}, "`more`"),
    ],
)
def test_declared_dimensions_are_held_to(fields, words):
    points, check = mc.Gaussian(1.0).prepare(X[:2]), Checker()
    check.remember(points, check("Points", {"raw": points.raw, "index": None, "among": None}))
    right = {
        "segments": (points,), "rows": np.arange(2), "codes": np.array([0, 1]), "coef": np.ones((2, 1)),
        "late": np.ones((2, 1)), "slots": np.array([0, 1, 0]), "guesses": np.array([1, 0, 1]), "times": np.arange(3),
        "seen": 9, "mistakes": 3,
    }  # fmt: skip
    assert check("Learnt", right) == {"f": 1, "s": 2, "u": 3}
    with pytest.raises(Unfit, match=words):
        check("Learnt", right | fields)
    with pytest.raises(Unfit, match="without `rows`"):
        check("Learnt", {name: value for name, value in right.items() if name != "rows"})


# -- nothing is lost ---------------------------------------------------------------------------------------------------

LEVELS = np.column_stack([X[:, 0], np.arange(N) % 3])


@pytest.mark.parametrize(
    ("model", "A", "y", "Q"),
    [
        (mc.KernelRidge(G), X.astype(">f8"), Y.astype(">f8"), Z),
        (mc.SVC(G), X.astype(">f4"), TWO, Z.astype(np.float32)),
        (mc.ParzenDensity(categorical=[1]), LEVELS, None, LEVELS[:9]),
        (mc.ParzenDensity(ordered=[1]), LEVELS.tolist(), None, LEVELS[:9]),
        (mc.ConformalRegressor(mc.KernelRidge(mc.Precomputed()), cv=3), GRAM[:N, :N], Y, GRAM[N:, :N]),
        (mc.ConformalRegressor(mc.KernelRidge(mc.Precomputed()), method="cv+", cv=3), GRAM[:N, :N], Y, GRAM[N:, :N]),
        (mc.KernelRidge(mc.Delta()), range(N), Y, range(9)),
    ],
)
def test_what_is_saved_is_loaded(model, A, y, Q, tmp_path):
    assert_comes_back(clone(model).fit(A) if y is None else clone(model).fit(A, y), Q, tmp_path / "m")


@pytest.mark.parametrize("element", [float("nan"), np.float32("nan"), (1, float("nan")), np.datetime64("NaT")])
def test_sets_refuse_what_does_not_equal_itself(element):
    """Two NaN are one element of Python's sets only as long as they are one object, which a file cannot keep."""
    with pytest.raises(InvalidInput, match="NaN at position 1"):
        mc.KernelRidge(mc.Intersection()).fit([{1}, {element, 2}], [0.0, 1.0])


@pytest.mark.parametrize("broken", ["csr", "tensor", "object"])
def test_a_file_that_would_not_load_never_replaces_one_that_does(broken, tmp_path, monkeypatch):
    bytes_of(fitted("linear"), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def lost(self, node):
        raise ValueError("a reader that cannot read this")

    monkeypatch.setitem(Decoder._KINDS, broken, lost)
    with pytest.raises(InvalidInput, match=r"must be the same when it is loaded.*Nothing was changed"):
        fitted("ridge sparse").save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_file_that_would_load_as_another_model_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(Decoder._KINDS, "tensor", lambda self, node: Decoder._tensor(self, node) + 1)
    with pytest.raises(InvalidInput, match="another model than the one that was saved"):
        fitted("linear").save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_models_beyond_the_memory_budget_can_still_be_saved(tmp_path, monkeypatch):
    whole = bytes_of(fitted("svc pandas"), tmp_path / "m")
    monkeypatch.setenv("MERCER_MEMORY", "1 kB")
    assert bytes_of(fitted("svc pandas"), tmp_path / "again") == whole


# -- what an expression may cost ---------------------------------------------------------------------------------------


def test_the_cost_of_expressions_is_bounded_before_they_are_built(monkeypatch):
    from mercer.features import MonomialMap
    from mercer.rkhs.tail import Monomials, Tail, monomials

    monkeypatch.setenv("MERCER_MEMORY", "100 MB")
    with pytest.raises(InvalidInput, match=r"runs of 1 to 1000000 characters .* memory budget of 100 MB"):
        mc.parse("NGrams((1, 1000000))")(["ab" * 2000, "c"])
    assert mc.parse("NGrams((1, 1000000))")(["aba"])[0, 0] == 2**2 + 1 + 1 + 1 + 1
    with pytest.raises(InvalidInput, match=r"degree 250 in 3 columns, which has 2,667,126 monomials"):
        monomials(X, 250)
    with pytest.raises(InvalidInput, match=r"degree 250 in 3 columns must have 2,667,126 coefficients, got 4"):
        Tail(Monomials(250, np.zeros(3), np.ones(3)), np.ones(4))
    with pytest.raises(InvalidInput, match=r"at most 4,300 digits"):
        MonomialMap(2**50, 2**50)
    assert MonomialMap(1, degree=10**15, c=1.0).dimension == 10**15 + 1
    for index in ("monomials", "tuples"):
        for d, p, c in ((1, 4, 0.0), (1, 4, 2.0), (3, 2, 0.0), (3, 5, 1.0)):
            phi = MonomialMap(d, degree=p, c=c, index=index)
            assert phi.dimension == phi.transform(np.ones((1, d))).shape[1]


@pytest.mark.thorough
def test_files_of_older_versions_lack_later_attributes(tmp_path):
    """What they would have been then is filled in, and the model can be saved again."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] + 0.1 * X[:, 1]
    older = {
        mc.AutoRegressor(time=2).fit(X, y): ("stopped_by_", "loo_optimism_", "_least"),
        mc.AutoClassifier(time=2).fit(X, y > 0): ("stopped_by_",),
        mc.KernelFisherDiscriminant(mc.Gaussian(1.0)).fit(X, y > 0): ("_rarer",),
    }
    for number, (model, later) in enumerate(older.items()):
        path = tmp_path / f"{number}.mercer"
        model.save(path)
        header, data = parts_of(path.read_bytes())
        tree = json.loads(header["__metadata__"]["fitted"])
        for name in later:
            del tree[name]
        header["__metadata__"]["fitted"] = json.dumps(tree)
        path.write_bytes(joined(header, data))
        loaded = load(path)
        assert (loaded.predict(X) == model.predict(X)).all()
        if hasattr(model, "predict_proba"):
            assert loaded.predict_proba(X).shape == (40, 2)
        else:
            assert loaded.predict_interval(X).shape == (40, 2)
        loaded.save(path)


def test_the_provenance_of_a_model_is_in_its_file(tmp_path):
    X = pd.DataFrame({"age": np.arange(6.0)})
    model = mc.KernelRidge(mc.Gaussian(1.0)).fit(X, np.arange(6.0))
    known = Provenance.of(
        X, np.arange(6.0), data="houses.csv", target="price", held_out=2, seed=3, judged="held out",
        scores=(Score("R²", 0.5, 0.1, 0.9, 0.0),), places=range(6), missing=("-9",), ranges={"age": [0.0, 5.0]},
    )  # fmt: skip
    assert (known.rows, known.columns, known.version) == (6, {"age": "float64"}, mc.__version__)
    assert known.baseline == Baseline.of(np.arange(6.0))
    assert known.time.startswith("20")
    model.provenance_ = known
    path = tmp_path / "m.mercer"
    model.save(path)
    loaded = provenance(load(path))
    same = {name: value for name, value in vars(loaded).items() if name != "baseline"}
    assert same == {name: value for name, value in vars(known).items() if name != "baseline"}
    assert (loaded.baseline.mean, loaded.baseline.median) == (2.5, 2.5)
    for wrong in ({"rows": -1}, {"columns": {"age": 1}}, {"scores": (1,)}, {"places": (0.5,)}):
        model.provenance_ = dataclasses.replace(known, **wrong)
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            model.save(path)


def test_what_older_versions_knew_of_a_table_does_not_keep_a_model_from_loading(tmp_path):
    model = mc.KernelRidge(mc.Gaussian(1.0)).fit(np.arange(6.0)[:, None], np.arange(6.0))
    model.table_ = {
        "target": "price", "columns": {"age": "float64"}, "left_out": {}, "rows": 6, "misses": None,
        "scores": [{"name": "R²", "value": 0.5, "interval": None, "baseline": 0.0}],
        "seen": {"age": [0.0, 5.0]}, "baseline": {"mean": 2.5, "median": 2.5, "classes": (), "shares": ()},
    }  # fmt: skip
    model.save(tmp_path / "m.mercer")
    assert provenance(load(tmp_path / "m.mercer")).rows == 6


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        n
        for n in sorted(mc.__all__)
        if "sample_weight" in inspect.signature(getattr(getattr(mc, n), "fit", len)).parameters
    ],
)
def test_rows_of_weight_zero_do_not_keep_a_model_from_its_file(name, tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    settings = {"time": 0.1} if name.startswith("Auto") else {"n_neighbors": 3} if "Neighbors" in name else {}
    if name == "BoundedRegressor":
        settings = {"model": mc.KernelRidge(mc.Gaussian(1.0))}
    if name == "CalibratedClassifier":
        settings = {"model": mc.LeastSquaresClassifier(mc.Gaussian(1.0))}
    model = getattr(mc, name)(**settings)
    target = X[:, 0] > 0 if is_classifier(model) else X[:, 0] + 0.1 * X[:, 1] ** 2
    model.fit(X, target, sample_weight=np.r_[np.zeros(4), np.ones(26)])
    model.save(tmp_path / "m")
    ask = next(m for m in ("predict", "transform", "score_samples") if hasattr(model, m))
    assert np.array_equal(getattr(load(tmp_path / "m"), ask)(X), getattr(model, ask)(X))
