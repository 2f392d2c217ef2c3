"""Pictures of decision surfaces: what is drawn where, for whom, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PeerSVC

import mercer as mc
from mercer.errors import InvalidInput
from mercer.plot import DecisionSurface

mpl.use("agg")
import matplotlib.pyplot as plt

X, y = make_moons(120, noise=0.25, random_state=0)
NAMED = np.where(y, "upper", "lower")
IRIS = load_iris()
K = mc.Gaussian(0.7)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(surface):
    return [text.get_text() for text in surface.ax_.get_legend().get_texts()]


def test_two_classes_show_margin_and_rings():
    model = mc.SVC(K, C=3.0).fit(X, NAMED)
    surface = DecisionSurface.from_estimator(model, X, NAMED, resolution=60)
    grid = np.stack(np.meshgrid(surface.x, surface.y), axis=-1)
    np.testing.assert_allclose(surface.values, model.decision_function(grid.reshape(-1, 2)).reshape(60, 60))
    np.testing.assert_array_equal(surface.leads, [-surface.values, surface.values])
    assert surface.x[0] < X[:, 0].min() < X[:, 0].max() < surface.x[-1]
    np.testing.assert_array_equal(surface.support, X[model.support_])
    coef = np.abs(model.dual_coef_)
    np.testing.assert_array_equal(surface.bounded, coef >= 3.0 - 1e-9)
    assert surface.bounded.any()
    assert not surface.bounded.all()
    assert texts(surface) == ["f = 0", "f = ±1", "lower", "upper", "on the margin", "at the bound"]
    levels = [c.levels.tolist() for c in surface.ax_.collections if getattr(c, "filled", None) is False]
    assert levels == [[0.0], [-1.0], [1.0]]
    ringed = [c for c in surface.ax_.collections if c.get_label() in ("on the margin", "at the bound")]
    assert [len(c.get_offsets()) for c in ringed] == [(~surface.bounded).sum(), surface.bounded.sum()]
    surface.figure_.canvas.draw()


@pytest.mark.thorough
def test_regions_are_what_is_predicted():
    for model in (
        mc.SVC(mc.Gaussian(1.0)),
        mc.SVC(mc.Gaussian(1.0), multiclass="ovr"),
        mc.SVC(mc.Gaussian(1.0), calibrated=True),
        mc.NuSVC(mc.Gaussian(1.0), nu=0.2),
        KNeighborsClassifier(3),
        LogisticRegression(),
    ):
        model.fit(IRIS.data[:, 2:], IRIS.target)
        surface = DecisionSurface.from_estimator(model, IRIS.data[:, 2:], IRIS.target, resolution=40)
        grid = np.stack(np.meshgrid(surface.x, surface.y), axis=-1).reshape(-1, 2)
        np.testing.assert_array_equal(surface.leads.argmax(axis=0).ravel(), model.predict(grid))
        assert (surface.leads.max(axis=0) >= 0).all()
        assert ((surface.leads > 0).sum(axis=0) <= 1).all()
        assert surface.values is None
        assert (surface.support is None) == (not hasattr(model, "support_"))
        assert "f = 0" not in texts(surface)


def test_the_prediction_wins_over_values_that_do_not_decide_it():
    model = mc.SVC(mc.Gaussian(1.0), C=0.02, calibrated=True).fit(X, y)
    shifted = mc.SVC(mc.Gaussian(1.0), C=0.02, calibrated=True).fit(X, y)
    shifted._sigmoids = [type(s)(s.a, s.b - 2.0) for s in shifted._sigmoids]  # P = ½ far from f = 0
    a, b = (DecisionSurface.from_estimator(m, X, y, resolution=30) for m in (model, shifted))
    assert (b.leads[1] > 0).mean() > (a.leads[1] > 0).mean() + 0.1
    assert set(np.unique(b.leads)) == {-1.0, 1.0}


def test_novelty_has_a_border_and_no_margin():
    for model in (mc.OneClassSVM(K, nu=0.2), IsolationForest(n_estimators=10, random_state=0)):
        surface = DecisionSurface.from_estimator(model.fit(X), X, resolution=30)
        assert not surface.margin
        assert "f = 0" in texts(surface)
        assert "f = ±1" not in texts(surface)
        assert {"-1", "1"} <= set(texts(surface))


def test_margins_belong_to_machines_alone():
    peer = DecisionSurface.from_estimator(PeerSVC().fit(X, y), X, y, resolution=30)
    assert "f = ±1" in texts(peer)
    assert "support vectors" in texts(peer)
    other = DecisionSurface.from_estimator(LogisticRegression().fit(X, y), X, y, resolution=30)
    assert "f = ±1" not in texts(other)
    assert "f = 0" in texts(other)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_two_of_several_columns_by_name(frame):
    names = ["a", "b", "c", "d"]
    data = frame({name: IRIS.data[:, j] for j, name in enumerate(names)})
    model = mc.SVC(mc.Gaussian(1.0)).fit(data, IRIS.target == 1)
    surface = DecisionSurface.from_estimator(model, data, IRIS.target == 1, columns=("d", "b"), resolution=20)
    assert surface.names == ("d", "b")
    assert (surface.ax_.get_xlabel(), surface.ax_.get_ylabel()) == ("d", "b")
    at = np.median(IRIS.data, axis=0)
    at[3], at[1] = surface.x[4], surface.y[7]
    expected = model.decision_function(frame({name: at[[j]] for j, name in enumerate(names)}))
    assert surface.values[7, 4] == pytest.approx(expected[0])
    np.testing.assert_array_equal(surface.support, IRIS.data[np.ix_(model.support_, [3, 1])])


def test_other_columns_where_they_are_put():
    model = mc.SVC(mc.Gaussian(1.0)).fit(IRIS.data, IRIS.target == 1)
    at = [5.0, 3.0, 9.0, 9.0]
    surface = DecisionSurface.from_estimator(model, IRIS.data, columns=(2, -1), at=at, resolution=20)
    expected = model.decision_function([[5.0, 3.0, surface.x[3], surface.y[5]]])
    assert surface.values[5, 3] == pytest.approx(expected[0])


def test_pipelines_ring_rows_of_x_and_sparse_data_is_shown():
    model = make_pipeline(StandardScaler(), mc.SVC(K)).fit(X, y)
    surface = DecisionSurface.from_estimator(model, X, y, resolution=20)
    np.testing.assert_array_equal(surface.support, X[model[-1].support_])
    assert surface.margin
    sparse = DecisionSurface.from_estimator(mc.SVC(K).fit(sp.csr_matrix(X), y), sp.csr_matrix(X), y, resolution=20)
    plain = DecisionSurface.from_estimator(mc.SVC(K).fit(X, y), X, y, resolution=20)
    np.testing.assert_allclose(sparse.values, plain.values, atol=1e-3)
    np.testing.assert_array_equal(sparse.support, plain.support)


def test_given_axes_are_used_and_it_can_be_drawn_again():
    _, axes = plt.subplots(1, 2)
    surface = DecisionSurface.from_estimator(mc.SVC(K).fit(X, y), X, y, resolution=20, ax=axes[0], legend=False)
    assert surface.ax_ is axes[0]
    assert axes[0].get_legend() is None
    assert surface.plot(axes[1], colours=["red", "blue"]).ax_ is axes[1]
    many = np.arange(120) % 12
    assert len(DecisionSurface.from_estimator(mc.SVC(K).fit(X, many), X, many, resolution=20).leads) == 12


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"X": X[:, :1]}, "at least two columns, got shape \\(120, 1\\). Plot decision_function over one column"),
        ({"X": [{1}, {2}]}, "X must be a matrix of numbers"),
        ({"columns": (0, 0)}, "two different columns of 2"),
        ({"columns": (0, 5)}, "two different columns of 2, by position or name, got 5"),
        ({"columns": (0,)}, "two different columns of 2"),
        ({"at": [1.0]}, "`at` must hold 2 finite numbers"),
        ({"y": y[:-1]}, "one label per point, got 119 for 120 points"),
        ({"y": NAMED}, "which are 0, 1, got '(upper|lower)'"),
        ({"colours": ["red"]}, "one for each of the 2 classes, got 1"),
        (
            {"estimator": LinearRegression().fit(X, y)},
            "needs a classifier or an outlier detector, got Lin",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(given, words):
    with pytest.raises(InvalidInput, match=words):
        DecisionSurface.from_estimator(**{"estimator": mc.SVC(K).fit(X, y), "X": X, "y": y} | given)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError) as caught:
        DecisionSurface.from_estimator(mc.SVC(mc.Linear()).fit(X, X[:, 0] > 0), X)
    assert str(caught.value) == "Plots need matplotlib: pip install 'mercer[plot]'."


def test_importing_the_pictures_loads_no_matplotlib():
    code = "import sys, mercer.plot; print('matplotlib' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "False\n"


def test_the_best_model_of_a_search_is_ringed():
    search = GridSearchCV(mc.SVC(K), {"C": [1.0, 10.0]}, cv=3).fit(X, y)
    surface = DecisionSurface.from_estimator(search, X, y, resolution=20)
    np.testing.assert_array_equal(surface.support, X[search.best_estimator_.support_])
    assert surface.margin
    steps = GridSearchCV(make_pipeline(StandardScaler(), mc.SVC(K)), {"svc__C": [1.0]}, cv=3).fit(X, y)
    surface = DecisionSurface.from_estimator(steps, X, y, resolution=20)
    np.testing.assert_array_equal(surface.support, X[steps.best_estimator_[-1].support_])


def test_columns_that_are_named_by_numbers():
    data = pd.DataFrame(IRIS.data, columns=[3, 2, 1, 0])
    model = mc.SVC(mc.Gaussian(1.0)).fit(data, IRIS.target)  # no warning of names: they are errors here
    by_name = DecisionSurface.from_estimator(model, data, IRIS.target, columns=(3, 2), resolution=20)
    np.testing.assert_array_equal(by_name.points, IRIS.data[:, [0, 1]])
    assert by_name.names == ("3", "2")
    first = DecisionSurface.from_estimator(model, data, resolution=20)
    np.testing.assert_array_equal(first.points, IRIS.data[:, [0, 1]])
    years = pd.DataFrame(IRIS.data, columns=[2001, 2002, 2003, 2004])
    by_position = DecisionSurface.from_estimator(model.fit(years, IRIS.target), years, columns=(1, -1), resolution=20)
    assert by_position.names == ("2002", "2004")
