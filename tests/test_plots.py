"""Pictures of models, kernels and proofs: the numbers behind them, both styles, and what is refused."""

from __future__ import annotations

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PeerSVC

import mercer as mc
from mercer import plot
from mercer.errors import InvalidInput
from mercer.plot.looks import DARK, LIGHT, legend
from mercer.words import brief, number

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex, to_rgba

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 6, 70))[:, None]
y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=70)
X3 = RNG.normal(size=(80, 3))
y3 = X3[:, 0] + 0.5 * X3[:, 1] ** 2 + 0.1 * RNG.normal(size=80)
IRIS = load_iris()
K = mc.Gaussian(1.0)
RIDGE = mc.KernelRidge(K, alpha=0.1).fit(X, y)
LABELS = X3[:, 0] > 0


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(shown):
    return [text.get_text() for text in shown.ax_.get_legend().get_texts()]


# -- regression --------------------------------------------------------------------------------------------------------


def test_bands_are_the_models_intervals_around_its_prediction():
    bands = plot.RegressionBands.from_estimator(RIDGE, X, y, coverage=(0.9, 0.5), resolution=40)
    grid = bands.x[:, None]
    np.testing.assert_allclose(bands.mean, RIDGE.predict(grid))
    np.testing.assert_array_equal(bands.coverages, [0.5, 0.9])
    for i, c in enumerate(bands.coverages):
        np.testing.assert_allclose(np.stack([bands.lower[i], bands.upper[i]], 1), RIDGE.predict_interval(grid, c))
    assert (bands.x[0], bands.x[-1]) == (X.min(), X.max())
    np.testing.assert_array_equal(bands.points, X[:, 0])
    assert texts(bands) == ["90 % of new targets", "50 % of new targets", "prediction", "data"]


def test_other_columns_are_held_at_their_medians_or_where_they_are_put():
    model = mc.KernelRidge(K, alpha=0.1).fit(X3, y3)
    bands = plot.RegressionBands.from_estimator(model, X3, y3, column=1, coverage=None, resolution=9)
    query = np.tile(np.median(X3, axis=0), (9, 1))
    query[:, 1] = bands.x
    np.testing.assert_allclose(bands.mean, model.predict(query))
    assert bands.lower.shape == (0, 9)
    assert bands.ax_.get_xlabel() == "column 1"
    put = plot.RegressionBands.from_estimator(model, X3, column=-1, at={0: 1.5}, resolution=9)
    query = np.tile(np.median(X3, axis=0), (9, 1))
    query[:, 0], query[:, 2] = 1.5, put.x
    np.testing.assert_allclose(put.mean, model.predict(query))


class Echo(LinearRegression):
    """Keeps what it was asked."""

    def predict(self, X):
        Echo.asked = X
        return np.zeros(len(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_names_types_and_most_frequent_values(frame):
    data = frame({"a": [1.0, 2.0, 4.0, 9.0], "n": [1, 2, 3, 9], "city": ["x", "y", "y", "z"]})
    if frame is pd.DataFrame:
        data["kind"] = pd.Categorical(["u", "v", "v", "v"], categories=["v", "u", "w"])
    model = Echo().fit([[0.0]], [0.0])
    bands = plot.RegressionBands.from_estimator(model, data, column="n", coverage=None, resolution=5)
    asked = Echo.asked
    assert list(asked.columns) == list(data.columns)
    assert set(np.asarray(asked["a"])) == {3.0}
    assert set(asked["city"]) == {"y"}
    np.testing.assert_array_equal(np.asarray(asked["n"]), bands.x)
    if frame is pd.DataFrame:
        assert asked["kind"].dtype == data["kind"].dtype
        assert set(asked["kind"]) == {"v"}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_categories_and_numbers_of_two_values_have_a_mark_each(frame):
    data = frame({"a": [1.0, 2.0, 4.0, 9.0, 3.0], "two": [7, 5, 7, 7, 5], "city": ["x", None, "y", "y", "x"]})
    model = Echo().fit([[0.0]], [0.0])
    bands = plot.RegressionBands.from_estimator(model, data, np.arange(5.0), column="two", coverage=None)
    assert bands.levels == ("5", "7")
    assert list(Echo.asked["two"]) == [5, 7]
    assert bands.points.tolist() == [1, 0, 1, 1, 0]
    assert [t.get_text() for t in bands.ax_.get_xticklabels()] == ["5", "7"]
    bands = plot.RegressionBands.from_estimator(model, data, np.arange(5.0), column="city", coverage=None)
    assert bands.levels == ("x", "y")
    assert list(Echo.asked["city"]) == ["x", "y"]
    assert set(Echo.asked["two"]) == {7}
    np.testing.assert_array_equal(bands.points, [0, np.nan, 1, 1, 0])
    bands.figure_.draw_without_rendering()


def test_the_probability_of_a_class_along_a_column():
    labels = np.where(X3[:, 0] > 0, "up", "down")
    model = mc.KernelLogisticRegression(K, alpha=0.1).fit(X3, labels)
    bands = plot.RegressionBands.from_estimator(model, X3, column=0, label="up", resolution=9)
    middle = np.tile(np.median(X3, axis=0), (9, 1))
    middle[:, 0] = bands.x
    np.testing.assert_allclose(bands.mean, model.predict_proba(middle)[:, 1])
    assert bands.names == ("column 0", "probability of up")
    with pytest.raises(mc.InvalidInput, match="must be one of the classes 'down', 'up', got 'left'"):
        plot.RegressionBands.from_estimator(model, X3, label="left")


def test_missing_values_are_neither_shown_nor_most_frequent():
    data = pd.DataFrame(
        {"n": pd.array([1, None, 3, 5], dtype="Int64"), "c": [None, None, "u", None], "f": [1, np.nan, 3, 8]}
    )
    bands = plot.RegressionBands.from_estimator(
        Echo().fit([[0.0]], [0.0]), data, column="n", coverage=None, resolution=3
    )
    np.testing.assert_allclose(bands.x, [1.0, 3.0, 5.0])
    assert set(Echo.asked["c"]) == {"u"}
    assert set(Echo.asked["f"]) == {3.0}


def test_a_curve_along_dates():
    days = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=10), "x": np.arange(10.0)})
    bands = plot.RegressionBands.from_estimator(
        Echo().fit([[0.0]], [0.0]), days, np.arange(10.0), column="day", coverage=None, resolution=5
    )
    assert bands.x.dtype.kind == "M"
    assert bands.x[0] == np.datetime64("2024-01-01")
    assert bands.x[-1] == np.datetime64("2024-01-10")
    bands.figure_.draw_without_rendering()


def test_few_whole_numbers_are_single_points_and_nothing_is_drawn_outside_the_data():
    data = pd.DataFrame({"rooms": [3, 1, 2, 7, 3, 2], "area": [10.0, 20.5, 30.0, 40.0, 50.0, 60.0]})
    echo = Echo().fit([[0.0]], [0.0])
    bands = plot.RegressionBands.from_estimator(echo, data, np.arange(6.0), column="rooms", coverage=None)
    assert bands.x.tolist() == [1.0, 2.0, 3.0, 7.0]
    assert bands.whole
    assert bands.ax_.lines[0].get_linestyle() == "None"
    line = plot.RegressionBands.from_estimator(echo, data, column="area", coverage=None, resolution=7)
    assert (line.x[0], line.x[-1], line.whole) == (10.0, 60.0, False)


def test_pipelines_searches_and_several_targets_have_bands():
    pipe = make_pipeline(StandardScaler(), mc.KernelRidge(K, alpha=0.1)).fit(X, y)
    bands = plot.RegressionBands.from_estimator(pipe, X, y, resolution=7)
    scaled = pipe[0].transform(bands.x[:, None])
    np.testing.assert_allclose(bands.lower[0], pipe[-1].predict_interval(scaled, 0.9)[:, 0])
    search = GridSearchCV(mc.KernelRidge(K), {"alpha": [0.1]}, cv=3).fit(X, y)
    assert plot.RegressionBands.from_estimator(search, X, y, resolution=7).lower.shape == (1, 7)
    two = mc.KernelRidge(K, alpha=0.1).fit(X, np.column_stack([y, -y]))
    second = plot.RegressionBands.from_estimator(two, X, np.column_stack([y, -y]), target=1, resolution=7)
    np.testing.assert_allclose(second.mean, -RIDGE.predict(second.x[:, None]))
    np.testing.assert_array_equal(second.targets, -y)
    with pytest.raises(InvalidInput, match="shows one of several targets, got shape"):
        plot.RegressionBands.from_estimator(two, X)


@pytest.mark.thorough
def test_partial_dependence_of_one_column_and_of_two():
    labels = np.where(X3[:, 0] > 0, "up", "down")
    frame = pd.DataFrame({"a": X3[:, 0], "b": X3[:, 1], "c": np.where(X3[:, 2] > 0, "left", "right")})
    frame["n"] = np.arange(len(frame)) % 4
    model = mc.KernelLogisticRegression(mc.table_kernel(frame), alpha=0.1).fit(frame, labels)
    curve = plot.PartialDependence.from_estimator(model, frame, "a", label="up")
    assert curve.ax_.get_ylabel() == "probability of up"
    assert curve.ax_.lines[0].get_linestyle() == "-"
    np.testing.assert_allclose(curve.ax_.lines[0].get_ydata(), curve.effect.values)
    assert plot.PartialDependence.from_estimator(model, frame, "n").ax_.lines[0].get_linestyle() == "None"
    surface = plot.PartialDependence.from_estimator(model, frame, ("a", "b"), grid=9)
    shown = np.ma.getmaskarray(surface.ax_.collections[0].get_array())
    assert shown.any()  # the corners hold no data
    assert not shown.all()
    mixed = plot.PartialDependence.from_estimator(model, frame, ("a", "c"))
    assert [line.get_label() for line in mixed.ax_.lines] == ["left", "right"]
    both = plot.PartialDependence.from_estimator(model, frame, ("c", "n"))
    for picture in (curve, surface, mixed, both):
        picture.figure_.draw_without_rendering()


def test_contributions_are_bars_that_add_up():
    frame = pd.DataFrame(np.column_stack([X3] * 5), columns=[f"c{j}" for j in range(5 * X3.shape[1])])
    model = mc.KernelRidge(mc.Linear(), alpha=0.1).fit(frame, X3[:, 0])
    parts = mc.contributions(model, frame[:2], frame)
    bars = plot.ContributionBars.from_contributions(parts, 1, X=frame[:2])
    assert bars.values.sum() + bars.mean == pytest.approx(model.predict(frame[1:2])[0])
    assert bars.names[-1] == f"{frame.shape[1] - 12} others"
    assert bars.names[0].startswith("c")
    assert " = " in bars.names[0]
    bars.figure_.draw_without_rendering()


def test_residuals_left_out_and_their_normal_quantiles():
    left = plot.Residuals.from_estimator(RIDGE, X, y, left_out=True)
    np.testing.assert_allclose(left.residuals, y - RIDGE.loo_predictions_)
    plain = plot.Residuals.from_estimator(RIDGE, X, y)
    np.testing.assert_allclose(plain.residuals, y - RIDGE.predict(X))
    assert (left.residuals**2).sum() > (plain.residuals**2).sum()
    # Of normal samples about 95 % have each order statistic in its band.
    inside = []
    for seed in range(200):
        z = np.sort(np.random.default_rng(seed).normal(size=70))
        inside.append((z >= left.lower) & (z <= left.upper))
    np.testing.assert_allclose(np.mean(inside, axis=0), 0.95, atol=0.06)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.01)
    r = y - RIDGE.predict(X)
    np.testing.assert_allclose(plain.ordered, np.sort((r - r.mean()) / r.std(ddof=1)))
    for kind, words in (("fitted", "predicted"), ("qq", "quantile"), ("histogram", "residual")):
        assert plain.plot(kind=kind).ax_.get_xlabel().startswith(words)


def test_outliers_leave_the_normal_band_in_red():
    r = np.random.default_rng(1).normal(size=100)
    r[3] = 40.0
    shown = plot.Residuals.from_predictions(r, np.zeros(100), kind="qq")
    assert "outside" in texts(shown)
    assert shown.ordered[-1] > shown.upper[-1]
    bent = np.linspace(-1, 1, 100)
    trend = plot.Residuals.from_predictions(bent + bent**2, bent).trend
    assert trend[0] > 0.5 > trend[50]


# -- matrices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["hierarchical", "spectral"])
def test_points_of_one_cluster_become_neighbours(order):
    where = RNG.permutation(np.repeat([0, 1], 20))
    points = 6.0 * where[:, None] + RNG.normal(size=(40, 2))
    shown = plot.GramHeatMap.from_kernel(mc.Gaussian(2.0), points, order=order)
    assert sorted(shown.order) == list(range(40))
    assert np.abs(np.diff(where[shown.order])).sum() == 1
    np.testing.assert_allclose(shown.K, mc.Gaussian(2.0)(points[shown.order]))
    assert len(shown.boundaries) == 0


def test_classes_are_shown_one_after_the_other_with_their_names():
    names = IRIS.target_names[IRIS.target][::-1]
    model = mc.SVC(K).fit(IRIS.data[::-1], names)
    shown = plot.GramHeatMap.from_estimator(model, IRIS.data[::-1], names)
    np.testing.assert_array_equal(shown.boundaries, [0, 50, 100, 150])
    np.testing.assert_array_equal(names[shown.order[:50]], "setosa")
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == ["setosa", "versicolor", "virginica"]
    lines = sorted({line.get_xdata()[0] for line in shown.ax_.lines if len(set(line.get_xdata())) == 1})
    assert lines == [49.5, 99.5]
    few = plot.GramHeatMap.from_kernel(K, IRIS.data, order="given", most=30)
    assert few.K.shape == (30, 30)
    assert (few.order[0], few.order[-1]) == (0, 149)
    sets = [{"a", "b"}, {"b"}, {"c"}, {"c", "d"}]
    np.testing.assert_array_equal(np.diag(plot.GramHeatMap.from_kernel(mc.Intersection(), sets).K).size, 4)


def test_the_spectrum_counts_degrees_of_freedom():
    shown = plot.EigenvalueSpectrum.from_estimator(RIDGE, X)
    np.testing.assert_allclose(shown.eigenvalues.sum(), 70.0)
    assert (np.diff(shown.eigenvalues) <= 1e-12).all()
    np.testing.assert_allclose(shown.degrees_of_freedom, [RIDGE.degrees_of_freedom_])
    np.testing.assert_array_equal(shown.alphas, [0.1])
    assert shown.ax_.get_yscale() == "log"
    assert any("degrees of freedom" in text for text in texts(shown))
    poly = plot.EigenvalueSpectrum.from_kernel(mc.Polynomial(2, c=1.0), X)
    assert (poly.eigenvalues > poly.floor).sum() == 3
    assert "rounding" in texts(poly)


# -- curves ------------------------------------------------------------------------------------------------------------


def test_validation_by_leave_one_out_is_the_models_own():
    sigmas = np.geomspace(0.01, 30, 9)
    curve = plot.ValidationCurve.from_estimator(mc.KernelRidge(K, alpha=1e-2), X, y, "kernel__sigma", sigmas)
    fits = [mc.KernelRidge(mc.Gaussian(s), alpha=1e-2).fit(X, y) for s in sigmas]
    np.testing.assert_allclose(curve.test[:, 0], [fit.loo_score_ for fit in fits])
    np.testing.assert_allclose(curve.train[:, 0], [fit.score(X, y) for fit in fits])
    assert curve.best == np.argmax(curve.test[:, 0])
    assert curve.ax_.get_xscale() == "log"
    assert re.fullmatch(r"overfits +← +sigma +→ +underfits", curve.ax_.get_xlabel())
    degrees = plot.ValidationCurve.from_estimator(
        mc.KernelRidge(mc.Polynomial(1, c=1.0), alpha=1e-4), X / 3 - 1, y, "kernel__degree", np.arange(1, 20)
    )
    assert degrees.ax_.get_xlabel().startswith("underfits")


def test_validation_by_folds_is_scikit_learns():
    curve = plot.ValidationCurve.from_estimator(PeerSVC(), IRIS.data, IRIS.target, "C", [0.01, 1.0, 100.0])
    expected = [cross_val_score(PeerSVC(C=C), IRIS.data, IRIS.target, cv=5) for C in curve.values]
    np.testing.assert_allclose(curve.test, expected)
    assert (curve.by, curve.error) == ("folds", "error rate")
    scored = plot.ValidationCurve.from_estimator(
        mc.KernelRidge(alpha=1.0), X, y, "kernel", [mc.Gaussian(1.0), mc.Linear()], scoring="r2", folds=3
    )
    assert scored.by == "folds"
    assert scored.ax_.get_ylabel() == "score"
    assert [t.get_text() for t in scored.ax_.get_xticklabels()] == ["Gaussian(sigma=1.0)", "Linear()"]
    np.testing.assert_allclose(scored.test[0], cross_val_score(mc.KernelRidge(K, alpha=1.0), X, y, cv=3))


def test_learning_by_leave_one_out_ends_at_all_rows():
    curve = plot.LearningCurve.from_estimator(mc.KernelRidge(K, alpha=0.1), X, y, sizes=[10, 30, 70], repetitions=3)
    np.testing.assert_array_equal(curve.sizes, [10, 30, 70])
    np.testing.assert_allclose(curve.test[-1], RIDGE.loo_score_)
    np.testing.assert_allclose(curve.train[-1], RIDGE.score(X, y))
    assert curve.test[0].mean() < curve.test[-1].mean()
    classes = plot.LearningCurve.from_estimator(
        mc.LeastSquaresClassifier(alpha=1.0), IRIS.data, IRIS.target, sizes=[0.1, 1.0], repetitions=2
    )
    np.testing.assert_array_equal(classes.sizes, [15, 150])
    folds = plot.LearningCurve.from_estimator(
        make_pipeline(StandardScaler(), mc.SVC(K)), IRIS.data, IRIS.target, repetitions=3, sizes=[30, 100]
    )
    assert (folds.by, folds.test.shape, folds.error) == ("folds", (2, 3), "error rate")


def test_the_path_of_alpha_and_the_grids_of_tune():
    model = mc.KernelRidge(K, alpha="loo").fit(X, y)
    path = plot.TuningPath.from_estimator(model)
    np.testing.assert_array_equal(path.values[0], model.path_.errors[:, 0])
    ((row, alpha, value),) = path.best
    assert (row, alpha) == (0, model.alpha_)
    assert value <= path.values.min() + 1e-12
    assert value == pytest.approx(np.mean((y - model.loo_predictions_) ** 2))
    two = mc.KernelRidge(K, alpha="loo").fit(X, np.column_stack([y, X[:, 0]]))
    assert plot.TuningPath.from_estimator(two).labels == ["target 0", "target 1"]
    grid = {"kernel__sigma": [3.0, 0.3, 1.0], "alpha": [1.0, 0.01]}
    tuned = mc.tune(mc.KernelRidge(K), X, y, by="loo", grid=grid)
    shown = plot.TuningPath.from_estimator(tuned)
    np.testing.assert_array_equal(shown.x, [0.01, 1.0])
    ((row, alpha, value),) = shown.best
    assert shown.labels[row] == brief(tuned.kernel_)
    assert (alpha, value) == (tuned.alpha_, shown.values.min())
    widths = mc.tune(mc.KernelRidge(K, alpha=0.1), X, y, by="loo", grid={"kernel__sigma": [3.0, 0.3, 1.0]})
    shown = plot.TuningPath.from_estimator(widths)
    np.testing.assert_array_equal(shown.x, [0.3, 1.0, 3.0])
    assert shown.name.endswith("sigma")
    assert shown.best[0][1] == shown.x[shown.values[0].argmin()] == widths.kernel_.sigma
    machine = mc.tune(mc.SVC(K), IRIS.data, IRIS.target, grid={"C": [1.0, 10.0], "kernel__sigma": [1.0, 3.0]}, cv=3)
    shown = plot.TuningPath.from_estimator(machine)
    assert (shown.name, shown.best[0][2]) == ("C", shown.values.max())
    assert shown.criterion == "mean accuracy of 3 folds"
    classifier = mc.LeastSquaresClassifier(K, alpha="loo").fit(IRIS.data, IRIS.target)
    assert plot.TuningPath.from_estimator(classifier).name == "alpha"


# -- calibration -------------------------------------------------------------------------------------------------------


def test_reliability_counts_what_happened():
    p = np.repeat([0.1, 0.4, 0.9], [50, 30, 20])
    hit = np.concatenate([np.arange(50) < 5, np.arange(30) < 28, np.arange(20) < 18])
    shown = plot.Reliability.from_predictions(hit, p, bins=3)
    np.testing.assert_allclose(shown.predicted, [0.1, 0.4, 0.9])
    np.testing.assert_array_equal(shown.counts, [50, 30, 20])
    np.testing.assert_allclose(shown.observed, [0.1, 28 / 30, 0.9])
    np.testing.assert_allclose(shown.lower[1], binom.ppf(0.025, 30, 0.4) / 30)
    assert shown.error == pytest.approx(30 / 100 * (28 / 30 - 0.4))
    assert shown.brier == pytest.approx(np.mean((p - hit) ** 2))
    assert "outside the band" in texts(shown)
    assert len(plot.Reliability.from_predictions([0, 1, 1], [0.5, 0.5, 0.5]).counts) == 1


def test_reliability_of_two_classes_of_a_label_and_of_the_winner():
    model = mc.LogisticRegression(alpha=1.0).fit(X3, LABELS)
    shown = plot.Reliability.from_estimator(model, X3, LABELS, bins=4)
    np.testing.assert_allclose(shown.probabilities, model.predict_proba(X3)[:, 1])
    np.testing.assert_array_equal(shown.happened, LABELS)
    flowers = mc.LogisticRegression(alpha=1.0).fit(IRIS.data, IRIS.target)
    best = plot.Reliability.from_estimator(flowers, IRIS.data, IRIS.target)
    np.testing.assert_allclose(best.happened.mean(), flowers.score(IRIS.data, IRIS.target))
    one = plot.Reliability.from_estimator(flowers, IRIS.data, IRIS.target, label=0)
    np.testing.assert_array_equal(one.happened, IRIS.target == 0)
    np.testing.assert_allclose(one.probabilities, flowers.predict_proba(IRIS.data)[:, 0])


def test_coverage_is_what_calibration_reports():
    fresh = np.random.default_rng(5).uniform(0, 6, size=(200, 1))
    truth = np.sin(fresh[:, 0]) + 0.2 * np.random.default_rng(6).normal(size=200)
    report = mc.calibration(RIDGE, fresh, truth, (0.5, 0.9))
    shown = plot.Coverage.from_estimator(RIDGE, fresh, truth, coverages=(0.5, 0.9))
    np.testing.assert_array_equal(shown.observed, report.observed)
    np.testing.assert_allclose(shown.upper, binom.ppf(0.975, 200, [0.5, 0.9]) / 200)
    assert report.verdict.partition(":")[0] in shown.ax_.get_title()
    sure = mc.GaussianProcessRegressor(K, alpha=1e-4).fit(X, y)
    assert texts(plot.Coverage.from_estimator(sure, fresh, truth))[-1] == "outside the band"


# -- kernels -----------------------------------------------------------------------------------------------------------


def test_a_stationary_kernel_is_shown_until_it_fades():
    shape = plot.KernelShape.from_kernel([mc.Gaussian(2.0), mc.Gaussian(2.0)])
    np.testing.assert_allclose(shape.values, np.exp(-(shape.x**2) / 8)[None].repeat(2, 0))
    assert 5 < shape.x[-1] < 8
    assert plot.KernelShape.from_kernel(mc.Gaussian(0.002)).x[-1] < 0.008
    assert plot.KernelShape.from_kernel(mc.Epanechnikov(1.0)).x[-1] == pytest.approx(1.1, abs=0.02)
    assert plot.KernelShape.from_kernel(mc.Periodic(1.0, 5.0)).x[-1] == 15.0
    ard = plot.KernelShape.from_kernel(mc.Gaussian([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(ard.values[0], np.exp(-2 * ard.x**2))


@pytest.mark.thorough
def test_maps_and_priors():
    shape = plot.KernelShape.from_kernel(mc.Polynomial(2, c=1.0), resolution=21)
    a, b = np.meshgrid(shape.x, shape.y)
    np.testing.assert_allclose(shape.values, (a + 0.5 * b + 1) ** 2)
    moved = plot.KernelShape.from_kernel(mc.Gaussian(1.0), kind="map", at=(4.0, 1.0), resolution=21)
    assert np.unravel_index(moved.values.argmax(), (21, 21)) == (10, 10)
    assert (moved.x[10], moved.y[10]) == (4.0, 1.0)
    drawn = plot.KernelShape.from_kernel(4.0 * mc.Gaussian(1.0), kind="samples", samples=500, resolution=12)
    np.testing.assert_allclose(drawn.spread, 2.0)
    sample = drawn.values.T @ drawn.values / 500
    np.testing.assert_allclose(sample, 4.0 * np.exp(-((drawn.x[:, None] - drawn.x) ** 2) / 2), atol=0.8)


# -- proofs ------------------------------------------------------------------------------------------------------------


def test_a_proof_is_drawn_step_by_step_with_its_equations():
    kernel = mc.exp(mc.Linear()) * mc.Gaussian(1.0)
    tree = plot.ProofTree.from_kernel(kernel)
    steps = list(kernel.proof().steps())
    assert tree.claims == [step.claim for step in steps]
    for i, step in enumerate(steps):
        children = [tree.claims[j] for j in np.flatnonzero(tree.parent == i)]
        assert children == [premise.claim for premise in step.premises]
    assert tree.valid
    words = [text.get_text() for text in tree.ax_.texts]
    for equation in ("(6.18)", "(6.16)", "(6.14)", "(6.19)", "(6.1)"):
        assert any(equation in word for word in words)
    assert words.count("axiom: inner product: phi(x) = x [Bishop 2006, (6.1)]") == 2
    low = tree.ax_.get_ylim()[0]
    assert all(text.get_position()[1] > low for text in tree.ax_.texts)


def test_what_is_not_proven_is_red_also_where_it_is_hidden():
    tree = plot.ProofTree.from_kernel(2.0 * mc.FromFunction(lambda x, z: 1.0) + mc.exp(mc.Linear()))
    red = to_rgba(LIGHT.red)

    def marked(tree):
        return {t.get_text() for t in tree.ax_.texts if to_rgba(t.get_color()) == red and t.get_fontsize() == 10}

    assert not tree.valid
    assert marked(tree) == {"FromFunction(<lambda>)"}
    assert marked(tree.plot(deepest=1)) == {"2.0 * FromFunction(<lambda>)"}
    assert "by exponential of a kernel [Bishop 2006, (6.16)] (1 step below)" in [t.get_text() for t in tree.ax_.texts]
    assert "proven" in tree.ax_.get_title()


# -- traces ------------------------------------------------------------------------------------------------------------


def test_traces_stand_above_the_least_minimum():
    models = {s: mc.LogisticRegression(solver=s).fit(X3, LABELS) for s in ("newton", "lbfgs")}
    shown = plot.Convergence.from_estimators(models)
    least = min(model.trace_.objective.min() for model in models.values())
    assert shown.minimum == least
    for values, model in zip(shown.values, models.values()):
        above = model.trace_.objective - least
        np.testing.assert_array_equal(values[above > 1e-12], above[above > 1e-12])
        assert np.isnan(values[above <= 0]).all()
    by_time = plot.Convergence.from_estimator(models["lbfgs"], by="seconds", what="gradient", labels=["mine"])
    np.testing.assert_array_equal(by_time.steps[0], models["lbfgs"].trace_.seconds)
    np.testing.assert_array_equal(by_time.values[0], models["lbfgs"].trace_.gradient)
    assert by_time.labels == ["mine"]
    known = plot.Convergence.from_estimator(models["lbfgs"], minimum=0.0)
    np.testing.assert_array_equal(known.values[0], models["lbfgs"].trace_.objective)


# -- the style ---------------------------------------------------------------------------------------------------------

DISPLAYS = [
    lambda ax: plot.RegressionBands.from_estimator(RIDGE, X, y, ax=ax),
    lambda ax: plot.Residuals.from_estimator(RIDGE, X, y, ax=ax),
    lambda ax: plot.GramHeatMap.from_kernel(K, X, y > 0, ax=ax),
    lambda ax: plot.EigenvalueSpectrum.from_kernel(K, X, alpha=0.1, ax=ax),
    lambda ax: plot.LearningCurve.from_estimator(RIDGE, X, y, sizes=[20, 70], repetitions=2, ax=ax),
    lambda ax: plot.ValidationCurve.from_estimator(RIDGE, X, y, "alpha", [0.1, 1.0], ax=ax),
    lambda ax: plot.TuningPath.from_estimator(mc.KernelRidge(K, alpha="loo").fit(X, y), ax=ax),
    lambda ax: plot.Reliability.from_predictions([0, 1, 1], [0.1, 0.7, 0.9], ax=ax),
    lambda ax: plot.Coverage.from_estimator(RIDGE, X, y, ax=ax),
    lambda ax: plot.KernelShape.from_kernel(mc.Linear(), resolution=20, ax=ax),
    lambda ax: plot.ProofTree.from_kernel(K, ax=ax),
    lambda ax: plot.Convergence.from_estimator(mc.LogisticRegression().fit(X3, LABELS), ax=ax),
    lambda ax: plot.DecisionSurface.from_estimator(mc.SVC(K).fit(X3, LABELS), X3, LABELS, resolution=20, ax=ax),
]


@pytest.mark.thorough
@pytest.mark.parametrize("made", DISPLAYS)
def test_every_picture_in_both_styles_in_given_axes_and_changing_nothing_else(made):
    before = dict(mpl.rcParams)
    with plot.style("dark") as colours:
        dark = made(None)
    light = made(None)
    assert dict(mpl.rcParams) == before
    assert to_hex(dark.figure_.get_facecolor()) == colours.face == "#16191d"
    assert to_hex(light.figure_.get_facecolor()) == "#ffffff"
    for shown, ink in ((dark, colours.ink), (light, "#222222")):
        assert to_hex(shown.ax_.xaxis.label.get_color()) == ink
        shown.figure_.draw_without_rendering()
        ticks = shown.ax_.get_xticklabels() if shown.ax_.axison else []
        assert {to_hex(tick.get_color()) for tick in ticks} <= {ink}
        assert shown.figure_.get_size_inches()[0] <= 6.5
        # Nothing is cut off at the border.
        box = shown.figure_.get_tightbbox()
        width, height = shown.figure_.get_size_inches()
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) > -0.02
    _, axes = plt.subplots(1, 2)
    assert made(axes[0]).ax_ is axes[0]
    assert light.plot(axes[1]).ax_ is axes[1]
    assert light.figure_ is axes[1].figure


def test_colours_follow_the_axes_that_are_given():
    _, (night, day) = plt.subplots(1, 2)
    night.set_facecolor("#111111")
    for ax, blue in ((night, DARK.blue), (day, LIGHT.blue)):
        shape = plot.KernelShape.from_kernel(K, ax=ax)
        assert to_hex(shape.ax_.lines[0].get_color()) == blue


def test_svg_has_text_and_is_the_same_each_time():
    def drawn():
        return plot.svg(plot.KernelShape.from_kernel(K))

    first = drawn()
    assert ">distance between x and z</text>" in first
    assert "Gaussian(sigma=1.0)" in first
    assert first == drawn()
    assert "<dc:date>" not in first
    with pytest.raises(InvalidInput, match="must be a display that was drawn"):
        plot.svg(RIDGE)
    with pytest.raises(InvalidInput, match="`name` must be 'light' or 'dark', got 'blue'"), plot.style("blue"):
        pass


def test_every_name_is_there_and_loads_on_demand():
    for name in plot.__all__:
        assert getattr(plot, name).__module__ == plot._MODULE[name]
    assert sorted(plot._MODULE) == sorted(plot.__all__) == sorted(dir(plot))
    with pytest.raises(AttributeError, match="no attribute 'Pie'"):
        plot.Pie  # noqa: B018


# -- what is refused ---------------------------------------------------------------------------------------------------

LINE = LinearRegression().fit(X, y)
MACHINE = mc.SVC(K).fit(X3, LABELS)
AUTO = mc.AutoRegressor(kernel=K, time=0.1).fit(X, y)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            lambda: plot.RegressionBands.from_estimator(LINE, X),
            "predict_interval, got LinearRegression. Pass coverage=N",
        ),
        (lambda: plot.RegressionBands.from_estimator(MACHINE, X3), "need a regressor, got SVC"),
        (lambda: plot.RegressionBands.from_estimator(RIDGE, X, y[:3]), "one target per row, got 3 for 70"),
        (lambda: plot.RegressionBands.from_estimator(RIDGE, X, coverage=90), "numbers in \\(0, 1\\), got 90"),
        (
            lambda: plot.RegressionBands.from_estimator(RIDGE, X, column="age"),
            "one of 1, by name or position, got 'age'",
        ),
        (lambda: plot.RegressionBands.from_estimator(RIDGE, X, at=[1, 2]), "`at` must hold 1 values"),
        (lambda: plot.RegressionBands.from_estimator(RIDGE, [{1}, {2}]), "a matrix of numbers, got list"),
        (
            lambda: plot.RegressionBands.from_estimator(RIDGE, pd.DataFrame({"c": [f"text {i}" for i in range(30)]})),
            "column of numbers or dates",
        ),
        (
            lambda: plot.RegressionBands.from_estimator(RIDGE, pd.DataFrame({"length": [1.0]}), column="lenght"),
            "Did you mean 'length'",
        ),
        (lambda: plot.Residuals.from_estimator(LINE, X, y, left_out=True), "loo_predictions_, got LinearRegression"),
        (lambda: plot.Residuals.from_estimator(MACHINE, X3, LABELS), "Residuals need a regressor"),
        (lambda: plot.Residuals.from_estimator(RIDGE, X, y, kind="pie"), "'fitted', 'qq', 'histogram', got 'pie'"),
        (lambda: plot.Residuals.from_predictions([1.0, np.nan], [0.0, 0.0]), "must be finite"),
        (lambda: plot.GramHeatMap.from_kernel(mc.Gaussian, X), "must be a kernel, or a rule X → kernel, got Gaussian"),
        (lambda: plot.GramHeatMap.from_kernel(K, X, [1]), "one class per point, got 1 for 70"),
        (lambda: plot.KernelShape.from_kernel(mc.Gaussian(1.0).on("age")), "[^.]\\. Draw GramHeatMap"),
        (lambda: plot.GramHeatMap.from_kernel(K, X, order="size"), "'hierarchical', 'spectral' or 'given'"),
        (lambda: plot.GramHeatMap.from_estimator(LINE, X), "must have a kernel, `kernel_`, got LinearRegression"),
        (lambda: plot.EigenvalueSpectrum.from_kernel(K, X, alpha=-1.0), "`alpha` must be > 0"),
        (lambda: plot.EigenvalueSpectrum.from_kernel(K, X, most=10), "at most 10 points for a spectrum, got 70"),
        (lambda: plot.LearningCurve.from_estimator(RIDGE, X, y, sizes=[500]), "between 2 and 70 rows"),
        (lambda: plot.LearningCurve.from_estimator(LINE, X, y, by="loo"), "loo_score_, and no `scoring`, got Linear"),
        (
            lambda: plot.ValidationCurve.from_estimator(RIDGE, X, y, "gamma", [1]),
            "a parameter of the model, got 'gamma'",
        ),
        (lambda: plot.ValidationCurve.from_estimator(RIDGE, X, y, "alpha", []), "`values` must hold values to try"),
        (
            lambda: plot.ValidationCurve.from_estimator(RIDGE, X, y, "alpha", [1], by="magic"),
            "'auto', 'loo' or 'folds'",
        ),
        (lambda: plot.TuningPath.from_estimator(RIDGE), "chosen along a path, got KernelRidge"),
        (lambda: plot.Reliability.from_estimator(MACHINE, X3, LABELS), "predict_proba, got SVC"),
        (lambda: plot.Reliability.from_predictions([0, 2], [0.5, 0.5]), "outcomes 0 or 1"),
        (lambda: plot.Reliability.from_predictions([0, 1], [0.5, 1.5]), "probabilities in \\[0, 1\\]"),
        (lambda: plot.Coverage.from_estimator(LINE, X, y), "must have predict_interval"),
        (lambda: plot.Coverage.from_calibration("good"), "a result of mc.calibration"),
        (lambda: plot.KernelShape.from_kernel(mc.Gaussian), "a kernel or a smoothing weight, got Gaussian"),
        (lambda: plot.KernelShape.from_kernel(mc.Intersection()), "a kernel on vectors, got Intersection"),
        (lambda: plot.KernelShape.from_kernel(mc.Gaussian(1.0).on("age")), "a kernel on vectors"),
        (
            lambda: plot.KernelShape.from_kernel(mc.ThinPlate(), kind="samples"),
            "positive semidefinite kernel, which is a cov",
        ),
        (lambda: plot.KernelShape.from_kernel(K, kind="cube"), "'auto', 'distance', 'map' or 'samples'"),
        (lambda: plot.KernelShape.from_kernel([K, K], kind="map"), "Several kernels need kind='distance'"),
        (lambda: plot.KernelShape.from_kernel(K, reach=0), "`reach` must be > 0"),
        (lambda: plot.ProofTree.from_kernel(3), "must be a kernel, or a fitted model with one, got int"),
        (lambda: plot.ProofTree.from_proof(K), "must be a mc.Proof"),
        (lambda: plot.Convergence.from_estimator(RIDGE), "a trace of its steps, `trace_`, got KernelRidge"),
        (lambda: plot.Convergence.from_estimators([]), "must hold at least one model"),
        (lambda: plot.Convergence.from_estimators(RIDGE, by="mile"), "'step' or 'seconds', got 'mile'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(asked, words):
    with pytest.raises(InvalidInput, match=words):
        asked()
    assert not plt.get_fignums()


def test_models_must_be_fitted():
    for asked in (
        lambda: plot.RegressionBands.from_estimator(mc.KernelRidge(), X),
        lambda: plot.TuningPath.from_estimator(mc.KernelRidge()),
        lambda: plot.Convergence.from_estimator(mc.LogisticRegression()),
    ):
        with pytest.raises(NotFittedError):
            asked()


@pytest.mark.thorough
def test_extreme_data_is_drawn_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot.GramHeatMap.from_kernel(K, X[:1]).figure_.draw_without_rendering()
        plot.GramHeatMap.from_kernel(K, X[:2], ["a", "b"], order="spectral").figure_.draw_without_rendering()
        plot.EigenvalueSpectrum.from_kernel(K, X[:1], alpha=1.0).figure_.draw_without_rendering()
        plot.Residuals.from_predictions([1.0, 1.0], [1.0, 1.0], kind="histogram").figure_.draw_without_rendering()
        plot.Residuals.from_predictions(np.ones(20), np.ones(20), kind="qq").figure_.draw_without_rendering()
        plot.Reliability.from_predictions([1, 1], [1.0, 1.0]).figure_.draw_without_rendering()
        flat = plot.RegressionBands.from_estimator(RIDGE, np.ones((3, 1)), np.ones(3), resolution=5)
        flat.figure_.draw_without_rendering()
        assert flat.x.tolist() == [1.0]
        plot.ValidationCurve.from_estimator(RIDGE, X, y, "alpha", [1.0]).figure_.draw_without_rendering()
        plot.KernelShape.from_kernel(mc.ThinPlate()).figure_.draw_without_rendering()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["a $x^{2$ b", "_hidden", "中文 🎉 ℓ", "long " * 40])
def test_names_of_data_are_shown_as_they_are(name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=40), "b": rng.normal(size=40)})
    y = np.where(X["b"] > 0, name, "other")
    surface = plot.DecisionSurface.from_estimator(mc.SVC(mc.Gaussian(1.0)).fit(X, y), X, y, resolution=20)
    heat = plot.GramHeatMap.from_kernel(mc.Gaussian(1.0), X.to_numpy(), y)
    bands = plot.RegressionBands.from_estimator(mc.KernelRidge(alpha=0.1).fit(X, X["b"]), X, X["b"])
    for picture in (surface, heat, bands):
        text = plot.svg(picture)  # warnings are errors
        assert name.strip().replace("long ", "")[:3] in text or "long long" in text
        box = picture.ax_.get_position()
        assert box.width > 0.4
        assert box.height > 0.4
    words = [entry.get_text() for entry in surface.ax_.get_legend().get_texts()]
    assert any(word.strip().replace("\\", "").startswith(name.strip()[:10]) for word in words)


def test_legends_of_many_are_below_the_axes():
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    lines = [ax.plot([0, 1], [j, j], label=f"curve number {j}", alpha=0.1, ms=1)[0] for j in range(6)]
    for handles, below in ((lines[:3], False), (lines, True)):
        legend(ax, handles)
        figure.canvas.draw()
        made = ax.get_legend()
        box = made.get_window_extent()
        assert (box.y1 < ax.get_window_extent().y0) == below
        assert box.x0 > 0
        assert box.x1 < figure.bbox.x1
        assert all(handle.get_alpha() >= 0.8 for handle in made.legend_handles)


@pytest.mark.thorough
def test_many_classes_are_named_where_they_lead():
    rng = np.random.default_rng(0)
    at = np.array([(i, j) for i in range(5) for j in range(4)], dtype=float)
    y = np.repeat([f"c{k:02d}" for k in range(20)], 6)
    X = np.repeat(at, 6, axis=0) + 0.1 * rng.normal(size=(120, 2))
    model = mc.LeastSquaresClassifier(mc.Gaussian(0.7), alpha=0.1).fit(X, y)
    surface = plot.DecisionSurface.from_estimator(model, X, y)
    places = {text.get_text(): text.get_position() for text in surface.ax_.texts}
    assert len(places) > 15
    assert all(model.predict([place])[0] == label for label, place in places.items())
    for label, place in places.items():
        lead = surface.leads[int(label[1:])]
        i, j = np.abs(surface.y - place[1]).argmin(), np.abs(surface.x - place[0]).argmin()
        assert lead[i, j] == lead[15:-15, 15:-15].max()
    assert surface.ax_.get_legend() is None


@pytest.mark.thorough
def test_many_points_are_an_image_and_fainter():
    rng = np.random.default_rng(0)
    few, many = (plot.Residuals.from_predictions(rng.normal(size=n), rng.normal(size=n)) for n in (20, 5000))
    small, large = (len(plot.svg(picture)) for picture in (few, many))
    assert large < 10 * small
    assert "<image" in plot.svg(many)
    assert many.ax_.lines[1].get_alpha() < few.ax_.lines[1].get_alpha()


def test_colours_of_a_heat_map_are_for_what_differs():
    K = np.full((50, 50), 0.8) + 0.1 * np.sin(np.add.outer(np.arange(50), np.arange(50)))
    np.fill_diagonal(K, 1.0)
    heat = plot.GramHeatMap.from_kernel(mc.Precomputed(K), np.arange(50), order="given")
    low, high = heat.ax_.images[0].get_clim()
    assert 0.69 < low < 0.72
    assert 0.88 < high < 0.91


def test_colours_are_told_apart_by_colour_blind_eyes():
    """Machado et al. (2009) of full severity: no two colours of curves become one."""
    deuteranopia = [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    protanopia = [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]]
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])

    def lab(rgb):
        f = np.cbrt(xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089])
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for palette in (LIGHT, DARK):
        for matrix in map(np.array, (np.eye(3), deuteranopia, protanopia)):
            linear = [((np.array(mpl.colors.to_rgb(c)) + 0.055) / 1.055) ** 2.4 for c in palette.series[:5]]
            seen = [lab(matrix @ colour) for colour in linear]
            assert min(np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]) > 9


def test_residuals_of_an_automatic_model_are_left_out_in_the_units_of_the_target():
    shown = plot.Residuals.from_estimator(AUTO, X, y, left_out=True)
    np.testing.assert_allclose(shown.residuals, y - AUTO.loo_predictions_)
    assert np.corrcoef(AUTO.loo_predictions_, AUTO.predict(X))[0, 1] > 0.9
    plt.close(shown.figure_)


def test_numbers_in_pictures():
    assert [number(v, 3) for v in (0.5, 45.0, 346.4, 64466.2, -2360.0, 2e9)] == [
        "0.500", "45.0", "346", "64,466", "-2,360", "2.00e+09",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.KernelShape.from_kernel(K, ax=3),
        lambda: plot.KernelShape.from_kernel(K, ax=plt.subplots(1, 2)[1]),
        lambda: plot.KernelShape.from_kernel(K, reach="far"),
        lambda: plot.KernelShape.from_kernel(K, at="there"),
        lambda: plot.KernelShape.from_kernel(K, kind="samples", samples=1.5),
        lambda: plot.Residuals.from_predictions(["a", "b"], [1.0, 2.0]),
        lambda: plot.Reliability.from_predictions([0, 1], ["a", "b"]),
        lambda: plot.Reliability.from_predictions([0, 1], [0.1, 0.2], bins="ten"),
        lambda: plot.EigenvalueSpectrum.from_kernel(K, np.eye(3), alpha="little"),
        lambda: plot.LearningCurve.from_estimator(mc.KernelRidge(K), np.eye(9), np.ones(4)),
        lambda: plot.LearningCurve.from_estimator(mc.KernelRidge(K), np.eye(9), np.ones(9), sizes=["few"]),
        lambda: plot.LearningCurve.from_estimator(mc.KernelRidge(K), np.eye(9), np.ones(9), repetitions=0),
        lambda: plot.ValidationCurve.from_estimator(mc.KernelRidge(K), np.eye(9), np.ones(9), "alpha", 3),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_to_do(draw):
    with pytest.raises(InvalidInput, match="must"):
        draw()
