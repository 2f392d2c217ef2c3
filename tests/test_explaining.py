"""Feature importance, effects, contributions and similar rows, against definitions written out."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import mercer as mc
from mercer.models.explaining.additivity import column_groups
from mercer.models.explaining.contributions import BACKGROUND
from mercer.models.explaining.effects import grid_rows

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(150, 4))
y = X[:, 0] + 2 * X[:, 1] ** 2 + X[:, 1] * X[:, 2]


class Plain(RegressorMixin, BaseEstimator):
    """A regressor that is a function of rows."""

    def __init__(self, function):
        self.function = function

    def predict(self, X):
        return self.function(np.asarray(X, dtype=float))


def shapley(predict, x, background):
    """The mean gain of each column over all orders and all background rows, written out."""
    d = len(x)
    gains = np.zeros(d)
    orders = list(permutations(range(d)))
    for order in orders:
        rows = background.copy()
        before = predict(rows)
        for j in order:
            rows[:, j] = x[j]
            after = predict(rows)
            gains[j] += (after - before).mean()
            before = after
    return gains / len(orders)


# -- importance --------------------------------------------------------------------------------------------------------


def test_importance_is_the_rise_of_the_error_when_a_column_is_shuffled():
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X[:100], y[:100])
    importance = mc.feature_importance(model, X[100:], y[100:], repeats=3)
    seeds = np.random.default_rng(0)
    orders = [seeds.permutation(50) for _ in range(3)]
    for j, (rise, spread) in enumerate(zip(importance.rise, importance.spread)):
        errors = []
        for order in orders:
            Z = X[100:].copy()
            Z[:, j] = Z[order, j]
            errors.append(np.sqrt(((model.predict(Z) - y[100:]) ** 2).mean()) - importance.error)
        assert rise == pytest.approx(np.mean(errors))
        assert spread == pytest.approx(np.std(errors, ddof=1))
    assert importance.error == pytest.approx(np.sqrt(((model.predict(X[100:]) - y[100:]) ** 2).mean()))
    assert importance.ranked[0][0] == "x1"


def test_importance_of_classes_and_of_a_model_without_columns():
    Z = rng.normal(size=(300, 3))
    sign = mc.KernelLogisticRegression(mc.Linear(), alpha=1e-2).fit(Z, Z[:, 0] > 0)
    importance = mc.feature_importance(sign, Z, Z[:, 0] > 0)
    assert importance.measure == "log loss"
    assert importance.rise[0] > 10 * abs(importance.rise[1])
    machine = mc.SVC(mc.Linear()).fit(Z, Z[:, 0] > 0)
    assert mc.feature_importance(machine, Z, Z[:, 0] > 0).measure == "error rate"
    constant = mc.Ridge().fit(Z, np.ones(300))
    assert mc.feature_importance(constant, Z, np.ones(300)).rise == (0.0, 0.0, 0.0)


def test_the_exposure_is_no_feature_and_counts_have_their_deviance():
    years, age = rng.uniform(0.1, 2, 200), rng.uniform(18, 80, 200)
    table = pd.DataFrame({"age": age, "years": years})
    claims = rng.poisson(years * np.exp(2 - age / 30))
    model = mc.AutoRegressor(roles={"years": "exposure"}, time=5).fit(table, claims)
    importance = mc.feature_importance(model, table, claims)
    assert importance.names == ("age",)
    assert importance.measure == "Poisson deviance"
    assert importance.rise[0] > 0


def test_importance_is_the_same_for_frames_arrays_and_a_loaded_model(tmp_path):
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X[:100], y[:100])
    model.save(tmp_path / "m.mercer")
    first = mc.feature_importance(model, X, y)
    assert mc.feature_importance(mc.load(tmp_path / "m.mercer"), X, y) == first
    names = [f"x{j}" for j in range(4)]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        again = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(frame[:100], y[:100])
        assert mc.feature_importance(again, frame, y).rise == pytest.approx(first.rise)


def test_importance_refuses_what_it_cannot_measure():
    model = mc.KernelRidge().fit(X, y)
    with pytest.raises(mc.InvalidInput, match="one target per row"):
        mc.feature_importance(model, X, y[:5])
    with pytest.raises(mc.InvalidInput, match="a frame or a matrix"):
        mc.feature_importance(model, ["a", "b"], y[:2])


# -- contributions -----------------------------------------------------------------------------------------------------


def test_additive_kernels_contribute_their_terms_exactly():
    kernel = mc.Gaussian(1.0).on(0) + 2.0 * mc.Matern(1.0, nu=1.5).on(1) + mc.Linear().on(3)
    model = mc.KernelRidge(kernel, alpha=1e-3).fit(X, y)
    background = X[:60]
    parts = mc.contributions(model, X[60:65], background)
    assert parts.exact
    assert parts.mean + parts.values.sum(axis=1) == pytest.approx(model.predict(X[60:65]))
    assert (parts.values[:, 2] == 0).all()
    for term, column in zip(kernel.parts, (0, 1, 3)):
        own = mc.Expansion(term, X, model.function_.coef)
        assert parts.values[:, column] == pytest.approx(own(X[60:65]) - own(background).mean())


def test_contributions_add_up_where_predictions_are_kept_from_being_negative():
    amounts = np.maximum(3 * X[:, 0] + X[:, 1], 0.0)
    kernel = mc.Gaussian(2.0).on(0) + mc.Gaussian(2.0).on(1)
    model = mc.AutoRegressor(kernel=kernel, loss="squared", time=3).fit(X, amounts)
    zero = X[model.model_.predict(X) < -0.1][:2]
    assert len(zero) == 2
    parts = mc.contributions(model, zero, X[:60])
    assert parts.predictions.tolist() == [0.0, 0.0]
    assert parts.mean + parts.values.sum(axis=1) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_contributions_of_few_columns_are_shapley_values():
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X, y)
    parts = mc.contributions(model, X[:2], X[50:80])
    assert parts.exact
    for i in range(2):
        assert parts.values[i] == pytest.approx(shapley(model.predict, X[i], X[50:80]))


def test_sampled_contributions_add_up_and_are_as_near_as_they_say(monkeypatch):
    monkeypatch.setattr("mercer.models.explaining.contributions.ENUMERATED", 1)

    def function(Z):
        return Z[:, 0] * Z[:, 1] * Z[:, 2] + np.sin(3 * Z[:, 3]) * Z[:, 0] + np.abs(Z[:, 4] - Z[:, 1])

    Z = np.random.default_rng(1).normal(size=(40, 5))
    exact = shapley(function, Z[0], Z[1:31])
    deviations, errors = [], []
    for seed in range(40):
        parts = mc.contributions(Plain(function), Z[:1], Z[1:31], random_state=seed)
        assert not parts.exact
        assert parts.values.sum() + parts.mean[0] == pytest.approx(function(Z[:1])[0], abs=1e-12)
        assert parts.values[0, 3:] == pytest.approx(exact[3:])  # an order and its reverse: exact for pairs of columns
        deviations.append(parts.values[0, :3] - exact[:3])
        errors.append(parts.errors[0, :3])
    assert np.sqrt(np.mean(np.square(deviations)) / np.mean(np.square(errors))) == pytest.approx(1, abs=0.25)


@pytest.mark.thorough
def test_contributions_to_the_probability_of_the_predicted_class():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": np.where(X[:, 2] > 0, "Rome", "Oslo")})
    labels = np.where((X[:, 0] > 0) == (X[:, 2] > 0), "yes", "no")
    model = mc.AutoClassifier(time=5).fit(frame, labels)
    rows = frame.iloc[[3, 70]]
    parts = mc.contributions(model, rows, frame)
    assert parts.labels == tuple(model.predict(rows))
    top = model.predict_proba(rows).max(axis=1)
    assert parts.mean + parts.values.sum(axis=1) == pytest.approx(top)
    other = mc.contributions(model, rows, frame, label="no")
    assert other.predictions == pytest.approx(model.predict_proba(rows)[:, 0])
    with pytest.raises(mc.InvalidInput, match="`label` must be one of the classes"):
        mc.contributions(model, rows, frame, label="maybe")


def test_the_groups_of_columns_that_a_kernel_adds():
    def groups(kernel, data=X):
        return column_groups(mc.KernelRidge(kernel).fit(data, y), data)

    assert groups(mc.Gaussian(1.0)) == ((0, 1, 2, 3),)
    assert groups(mc.Linear() + 1.0) == ((0,), (1,), (2,), (3,))
    assert groups(mc.Additive([1.0] * 4).exp()) == ((0, 1, 2, 3),)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert groups(mc.Gaussian(1.0).on("b") + mc.Additive(1.0).on("d", "a"), frame) == ((0,), (1,), (3,))
    assert groups(mc.Gaussian(1.0).on("b") * mc.Gaussian(1.0).on("c"), frame) == ((1, 2),)
    logs = mc.AutoRegressor(kernel=mc.Additive(1.0), loss="log", time=5).fit(X, np.exp(3 * X[:, 0]))
    assert column_groups(logs, X) == ((0, 1, 2, 3),)
    assert column_groups(mc.Ridge().fit(X, y), X) == ((0,), (1,), (2,), (3,))


def test_a_large_background_is_represented_by_rows_with_its_mean_prediction():
    Z = rng.normal(size=(20 * BACKGROUND, 2))
    parts = mc.contributions(Plain(lambda rows: rows[:, 0]), Z[:1], Z)
    assert parts.background(2000) == "100 rows drawn from 2,000 training rows"
    assert parts.mean[0] == pytest.approx(Z[:, 0].mean(), abs=0.01)  # of random rows it would be 0.1
    classes = np.digitize(Z[:300].sum(axis=1), [-1.0, 1.0])
    model = mc.KernelLogisticRegression(mc.Gaussian(1.0)).fit(Z[:300], classes)
    for label in range(3):
        mean = mc.contributions(model, Z[:1], Z, label=label).mean[0]
        assert mean == pytest.approx(model.predict_proba(Z)[:, label].mean(), abs=0.02)


# -- effects -----------------------------------------------------------------------------------------------------------


def test_partial_dependence_is_the_mean_over_rows_with_the_value_replaced():
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X[:40], y[:40])
    effect = mc.partial_dependence(model, X[:40], (1, 2), grid=4)
    for a, u in enumerate(effect.grids[0]):
        for b, v in enumerate(effect.grids[1]):
            Z = X[:40].copy()
            Z[:, 1], Z[:, 2] = u, v
            assert effect.values[a, b] == pytest.approx(model.predict(Z).mean())
    assert set(effect.grids[0]) <= set(X[:40, 1])
    one = mc.partial_dependence(model, X[:40], 1, grid=4)
    assert one.rows.shape == (40, 4)
    assert one.grids[0][0] == X[:40, 1].min()
    assert one.grids[0][-1] == X[:40, 1].max()


def test_interactions_are_found_and_sums_have_none():
    def product(Z):
        return 5 * Z[:, 0] + Z[:, 1] * Z[:, 2] + np.sin(Z[:, 3])

    first, *others = mc.interactions(Plain(product), X)
    assert first.columns == ("x1", "x2")
    assert first.strength == pytest.approx(np.std(X[:, 1]) * np.std(X[:, 2]), rel=0.3)
    assert all(pair.strength == pair.share == 0 for pair in others)
    assert len(mc.interactions(Plain(product), X, [0, 3])) == 1


def test_the_grid_of_a_column_is_made_of_its_values():
    values = np.array([3.0, np.nan, 1.0, 2.0, 1.0])
    assert values[grid_rows(values, 5)].tolist() == [1.0, 2.0, 3.0]
    words = np.array(["b", "a", "b", None], dtype=object)
    assert words[grid_rows(words, 5)].tolist() == ["a", "b"]


# -- similar rows ------------------------------------------------------------------------------------------------------


def test_similar_rows_are_those_with_the_largest_kernel():
    kernel = mc.Gaussian(0.7)
    model = mc.KernelRidge(kernel, alpha=0.1).fit(X, y)
    similar = mc.similar_rows(model, X[[3]], top=4)
    K = kernel(X[[3]], X)[0]
    assert similar.rows.tolist() == np.argsort(-K)[:4].tolist()
    assert similar.rows[0] == 3
    assert similar.similarity == pytest.approx(K[similar.rows])
    assert similar.share == pytest.approx(K[similar.rows] / K.sum())
    assert similar.terms == pytest.approx(model.function_.coef[similar.rows] * K[similar.rows])
    whole = mc.similar_rows(model, X[[3]], top=len(X))
    assert whole.terms.sum() + model.intercept_ == pytest.approx(model.predict(X[[3]])[0])


@pytest.mark.parametrize(
    "model",
    [
        mc.SVC(mc.Gaussian(1.0)),
        mc.NadarayaWatsonClassifier(mc.Gaussian(0.5)),
        mc.KernelNeighborsClassifier(mc.Gaussian(1.0)),
        mc.KernelLogisticRegression(mc.Gaussian(1.0)),
    ],
)
def test_every_kernel_model_names_similar_rows(model):
    labels = np.repeat(["a", "b", "c"], 50)
    fitted = model.fit(X, labels)
    similar = mc.similar_rows(fitted, X[[0]], top=3)
    assert (np.diff(similar.similarity) <= 0).all()
    assert len(similar.points) == 3


def test_similar_texts_and_a_model_without_a_kernel():
    words = ["kernel", "kernels", "table", "tables"]
    model = mc.KernelRidge(mc.Spectrum(3).normalize()).fit(words, [1.0, 2.0, 3.0, 4.0])
    assert mc.similar_rows(model, ["colonel kernel"], top=2).rows.tolist() == [0, 1]
    with pytest.raises(mc.InvalidInput, match="must have a kernel"):
        mc.similar_rows(Plain(len), X[[0]])
    with pytest.raises(mc.InvalidInput, match="one row"):
        mc.similar_rows(model, words)


@pytest.mark.parametrize("wrapped", [lambda m: m, lambda m: mc.ConformalRegressor(m, method="split", random_state=1)])
@pytest.mark.parametrize(
    "model", [mc.SVR(mc.Gaussian(0.7), epsilon=0.3), mc.KernelRidge(mc.Gaussian(0.7)), mc.AutoRegressor(time=1.0)]
)
def test_positions_of_similar_rows_are_those_of_the_fitted_table(model, wrapped):
    fitted = wrapped(model).fit(X, y)
    similar = mc.similar_rows(fitted, X[[7]], top=5)
    assert X[similar.rows] == pytest.approx(np.asarray(similar.points))
    among = mc.similar_rows(fitted, X[[7]], among=X[20:], top=5)
    assert X[20:][among.rows] == pytest.approx(np.asarray(among.points))


def test_similar_rows_without_known_positions_are_refused_not_invented(tmp_path):
    on_centres = mc.KernelRidge(mc.Gaussian(0.7), n_centers=20, solver="nystrom").fit(X, y)
    without = mc.KernelLogisticRegression(mc.Gaussian(0.7))
    labels, weights = np.where(y > np.median(y), "high", "low"), np.repeat([0.0, 1.0], [30, len(X) - 30])
    reweighted = mc.CalibratedClassifier(without).fit(X, labels, sample_weight=weights)
    for model in (on_centres, reweighted):
        model.save(tmp_path / "model.mercer")
        for known in (model, mc.load(tmp_path / "model.mercer")):
            similar = mc.similar_rows(known, X[[40]], top=3)
            assert len(similar.points) == 3
            with pytest.raises(mc.InvalidInput, match="Pass the training rows as `among`"):
                _ = similar.rows


def test_an_effect_has_the_mean_prediction_intervals_of_its_rows():
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-2).fit(X, y)
    rows = X[:40]  # fewer than the background: all are used
    effect = mc.partial_dependence(model, rows, 1, grid=5, coverage=0.8)
    for value, ends in zip(effect.grids[0], effect.intervals):
        moved = rows.copy()
        moved[:, 1] = value
        assert ends == pytest.approx(model.predict_interval(moved, 0.8).mean(axis=0))
    assert (effect.intervals[:, 0] < effect.values).all()
    assert (effect.values < effect.intervals[:, 1]).all()
    assert mc.partial_dependence(model, rows, 1).intervals is None
    with pytest.raises(mc.InvalidInput, match="one column, and a regressor with predict_interval"):
        mc.partial_dependence(model, rows, (0, 1), coverage=0.8)
    with pytest.raises(mc.InvalidInput, match="one column, and a regressor with predict_interval"):
        mc.partial_dependence(mc.SVR().fit(X, y), rows, 1, coverage=0.8)


def test_an_outlier_does_not_stretch_the_grid_of_an_effect():
    stretched = X.copy()
    stretched[0, 0] = 1000.0
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-2).fit(stretched, y)
    grid = mc.partial_dependence(model, stretched, 0).grids[0]
    assert len(grid) > 15
    assert grid.max() <= X[:, 0].max()


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_in_another_order_are_the_same_columns(library):
    rng = np.random.default_rng(0)
    X = library.DataFrame({"a": rng.normal(size=40), "b": 10 + rng.normal(size=40)})
    model = mc.KernelRidge(mc.Gaussian(2.0), alpha=0.1).fit(X, np.asarray(X["a"]))
    expected, found = (mc.contributions(model, X[:1][names], X) for names in (["a", "b"], ["b", "a"]))
    assert found.names == expected.names == ("a", "b")
    np.testing.assert_array_equal(found.values, expected.values)
    other = library.DataFrame({"a": [1.0], "c": [2.0]})
    with pytest.raises(mc.InvalidInput, match="must have the same columns, got a, c and a, b"):
        mc.contributions(model, other, X)


@pytest.mark.parametrize(
    ("rows", "grid", "words"), [(40, 0, "`grid`"), (40, -3, "`grid`"), (0, 25, "X must have rows")]
)
def test_curves_need_values_and_rows(rows, grid, words):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = mc.Ridge().fit(X, X[:, 0])
    with pytest.raises(mc.InvalidInput, match=words):
        mc.partial_dependence(model, X[:rows], 0, grid=grid)


def test_a_model_without_probabilities_votes():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    for cls, what in ((mc.LeastSquaresClassifier, "vote for"), (mc.KernelLogisticRegression, "probability of")):
        model = cls(mc.Gaussian(1.0)).fit(X, y)
        assert mc.contributions(model, X[:1], X, label="yes").what() == f"{what} yes"
        assert mc.partial_dependence(model, X, 0, grid=3).what == f"{what} yes"
