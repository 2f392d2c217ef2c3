"""Automatic models: what they choose, that they say why, and what they do with too little time or bad input."""

import ast
import dataclasses
import json
import pickle
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

import mercer as mc
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.auto import classification as auto_classification
from mercer.models.auto import intervals as auto_intervals
from mercer.models.auto import plan as auto_plan
from mercer.models.auto import race as auto_race
from mercer.models.auto import regression as auto_regression
from mercer.models.auto import search as auto_search
from mercer.models.auto.candidates import candidates
from mercer.models.auto.classifier import AutoClassifier
from mercer.models.auto.regressor import AutoRegressor
from mercer.models.labels import Labelled

rng = np.random.default_rng(0)


def waves(n=120, d=3, noise=0.1, seed=0):
    own = np.random.default_rng(seed)
    X = own.uniform(-2, 2, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + noise * own.normal(size=n)


def ticking(monkeypatch, seconds):
    """A clock that is this much later whenever it is looked at."""
    looks = count()
    monkeypatch.setattr(auto_plan.Clock, "now", staticmethod(lambda: seconds * next(looks)))


@pytest.mark.thorough
def test_columns_that_do_not_matter_get_wide_widths():
    X, y = waves(200)
    model = AutoRegressor().fit(X[:120], y[:120])
    assert model.choices_[2].taken.endswith("per column")
    assert model.kernel_.sigma[1] > 2 * model.kernel_.sigma[0]
    plain = mc.KernelRidge(alpha="loo", fit_intercept=True).fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > plain.score(X[120:], y[120:])


@pytest.mark.thorough
def test_the_scale_of_columns_and_targets_does_not_matter():
    X, y = waves(80)
    factors = np.array([1e-6, 1.0, 1e5])
    one = AutoRegressor().fit(X, y)
    other = AutoRegressor().fit(X * factors, 1000 * y - 7)
    boards = [{trial.name: trial.score for trial in model.choices_.leaderboard} for model in (one, other)]
    assert boards[0] == pytest.approx(boards[1], rel=1e-2)
    assert np.allclose(1000 * one.predict(X) - 7, other.predict(X * factors), atol=5.0)


@pytest.mark.thorough
def test_choices_are_readable_and_values():
    X, y = waves()
    choices = AutoRegressor().fit(X, y).choices_
    text = str(choices)
    assert text.startswith("1. Target: numbers")
    assert "Matern 3/2" in text
    assert "leave-one-out" in text
    stored = json.loads(json.dumps(dataclasses.asdict(choices), default=repr))
    assert [d["question"] for d in stored["decisions"]] == ["Target", "Columns", "Kernel", "Loss", "Solver"]
    board = choices.leaderboard
    assert len(board) >= 7
    assert dataclasses.replace(choices, decisions=choices.decisions[::-1]).leaderboard == board
    assert all(0 < trial.score < 10 for trial in board if trial.rows == board[0].rows)
    assert choices[2].considered.best.name == choices[2].taken


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_model(monkeypatch):
    monkeypatch.setattr(auto_plan, "FIRST_ROWS", 80)  # of more rows those of the first race are drawn
    X, y = waves(140)
    one, two = (AutoRegressor(random_state=3).fit(X, y) for _ in range(2))
    assert np.array_equal(one.predict(X), two.predict(X))
    assert repr(one.kernel_) == repr(two.kernel_)
    labels = y > 0
    one, two = (AutoClassifier(random_state=3).fit(X, labels) for _ in range(2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.thorough
def test_the_loo_error_is_that_of_the_model_and_what_tuning_took():
    X, y = waves()
    model = AutoRegressor(loss="squared").fit(X, y)
    assert model.loo_error_ == pytest.approx(model.loo_optimism_ * np.mean((y - model.model_.loo_predictions_) ** 2))
    assert model.loo_optimism_ > 1.0
    assert "made the leave-one-out error too small" in model.choices_[3].why


@pytest.mark.thorough
def test_counts_are_poisson():
    own = np.random.default_rng(1)
    X = own.uniform(-2, 2, size=(300, 2))
    y = own.poisson(np.exp(0.5 + np.sin(2 * X[:, 0])))
    model = AutoRegressor().fit(X, y)
    assert model.loss_ == "poisson"
    assert isinstance(model.model_, mc.KernelGLM)
    assert (model.predict(X) > 0).all()
    assert np.corrcoef(model.predict(X), np.exp(0.5 + np.sin(2 * X[:, 0])))[0, 1] > 0.95
    inside = (model.predict_interval(X, 0.9) - y[:, None]) * [1, -1] <= 0
    assert inside.all(axis=1).mean() > 0.85


@pytest.mark.thorough
def test_grades_are_not_counts():
    X, y = waves(150)
    model = AutoRegressor().fit(X, np.round(5 + 1.5 * y))
    assert model.loss_ == "squared"
    assert "not better by a standard error" in str(model.choices_)


@pytest.mark.thorough
def test_products_are_closer_on_a_logarithmic_scale():
    own = np.random.default_rng(2)
    X = own.normal(size=(1000, 4))
    y = np.exp(0.8 * X.sum(axis=1) + 0.1 * own.normal(size=1000))
    model = AutoRegressor().fit(X[:200], y[:200])
    assert model.loss_ == "log"
    assert (model.predict(X) > 0).all()
    squared = AutoRegressor(loss="squared").fit(X[:200], y[:200])
    errors = [np.abs(m.predict(X[200:]) - y[200:]).mean() for m in (model, squared)]
    assert errors[0] < 0.8 * errors[1]
    low, high = model.predict_interval(X[200:], 0.9).T
    assert ((low <= y[200:]) & (y[200:] <= high)).mean() > 0.75
    assert (low > 0).all()


@pytest.mark.thorough
def test_smearing_keeps_the_mean():
    own = np.random.default_rng(3)
    X = own.normal(size=(400, 1))
    y = np.exp(own.normal(size=400))  # nothing to learn: the mean is exp(1/2), the median 1
    model = AutoRegressor(loss="log").fit(X, y)
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.1)


@pytest.mark.thorough
def test_wide_outliers_call_for_a_robust_loss():
    X, y = waves(160, noise=0.05)
    spoiled = y.copy()
    spoiled[::12] += 30.0
    model = AutoRegressor().fit(X, spoiled)
    assert model.loss_ == "robust"
    assert isinstance(model.model_, mc.SVR)
    assert "robust standard" in str(model.choices_)
    squared = AutoRegressor(loss="squared").fit(X, spoiled)
    assert np.abs(model.predict(X) - y).mean() < 0.5 * np.abs(squared.predict(X) - y).mean()
    assert model.predict_interval(X, 0.8).shape == (160, 2)
    assert AutoRegressor().fit(X, y).loss_ == "squared"


@pytest.mark.thorough
def test_intervals_cover():
    X, y = waves(300)
    low, high = AutoRegressor().fit(X[:150], y[:150]).predict_interval(X[150:], 0.9).T
    assert 0.8 < ((low <= y[150:]) & (y[150:] <= high)).mean() <= 1.0


@pytest.mark.thorough
def test_classes_and_their_probabilities():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for loss in ("auto", "logistic", "hinge", "squared"):
        model = AutoClassifier(loss=loss).fit(X[::2], names[::2])
        P = model.predict_proba(X[1::2])
        assert model.score(X[1::2], names[1::2]) > 0.9
        assert np.allclose(P.sum(axis=1), 1)
        assert (P >= 0).all()
        assert list(model.classes_) == sorted(set(names))
        right = P[np.arange(75), y[1::2]]
        assert -np.log(np.maximum(right, 1e-12)).mean() < 0.35, loss
        assert (model.classes_[P.argmax(axis=1)] == model.predict(X[1::2])).all()


@pytest.mark.thorough
def test_rings_are_learnt():
    own = np.random.default_rng(4)
    X = own.normal(size=(300, 2))
    y = np.hypot(*X.T) > 1.2
    model = AutoClassifier().fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.93
    assert model.decision_function(X).shape == (300,)


@pytest.mark.thorough
def test_rare_classes_are_said():
    own = np.random.default_rng(5)
    X = own.normal(size=(200, 2))
    y = X[:, 0] > 1.9
    model = AutoClassifier().fit(X, y)
    assert "rarest class has" in str(model.choices_)
    assert "balanced" in str(model.choices_)
    assert ((model.predict_proba(X)[:, 1] > 0.5) == y).mean() > 0.98


@pytest.mark.thorough
def test_numbers_that_look_like_something_else_are_told():
    X, y = waves(60)
    assert "AutoClassifier" in str(AutoRegressor().fit(X, (y > 0).astype(int)).choices_)
    assert "AutoRegressor" in str(AutoClassifier(time=0.1).fit(X, np.arange(60) // 2).choices_)
    with pytest.raises(InvalidInput, match="text"):
        AutoRegressor().fit(X, np.where(y > 0, "a", "b"))
    with pytest.raises(InvalidInput, match="AutoRegressor"):
        AutoClassifier().fit(X, y)


@pytest.mark.thorough
def test_a_frame_of_mixed_columns():
    own = np.random.default_rng(6)
    n = 160
    frame = pd.DataFrame({"size": own.normal(size=n), "city": own.choice(["Rome", "Oslo", "Bonn"], n)})
    frame.loc[3, "city"] = None
    y = np.sin(2 * frame["size"]) * (frame["city"] == "Rome") + 0.05 * own.normal(size=n)
    model = AutoRegressor().fit(frame[:120], y[:120])
    assert model.score(frame[120:], y[120:]) > 0.8
    assert "category" in str(model.choices_)
    assert list(model.feature_names_in_) == ["size", "city"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"size": "volume"}))


@pytest.mark.thorough
def test_a_frame_of_numbers_keeps_its_names():
    X, y = waves(60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = AutoRegressor().fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert list(model.model_.feature_names_in_) == ["a", "b", "c"]
    assert np.allclose(model.predict(frame), AutoRegressor().fit(X, y).predict(X))


def test_a_given_kernel_is_tuned():
    X, y = waves(100)
    model = AutoRegressor(kernel=mc.Gaussian(50.0) + mc.Linear()).fit(X, y)
    assert "Gaussian" in repr(model.kernel_)
    assert "Linear" in repr(model.kernel_)
    assert model.score(X, y) > 0.9
    sets = [frozenset(rng.choice(20, size=5, replace=False).tolist()) for _ in range(60)]
    model = AutoClassifier(kernel=mc.Intersection()).fit(sets, [3 in s for s in sets])
    assert model.score(sets, [3 in s for s in sets]) > 0.9


@pytest.mark.thorough
def test_weights_leave_rows_out():
    X, y = waves(100)
    w = np.r_[np.ones(80), np.zeros(20)]
    assert np.allclose(AutoRegressor().fit(X, y, w).predict(X), AutoRegressor().fit(X[:80], y[:80]).predict(X))


@pytest.mark.parametrize("seconds", [1e-6, 0.05])
def test_a_short_time_still_gives_a_model(seconds):
    X, y = waves(1500, d=6)
    model = AutoRegressor(time=seconds).fit(X, y)
    assert np.isfinite(model.predict(X[:9])).all()
    assert "too short" in str(model.choices_)
    assert AutoClassifier(time=seconds).fit(X[:300], y[:300] > 0).score(X, y > 0) > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("Model", [AutoRegressor, AutoClassifier])
def test_an_interrupt_keeps_the_best_so_far(Model, monkeypatch):
    X, y = waves(400)
    y = y if Model is AutoRegressor else y > 0
    calls = []
    descend = auto_race.descend

    def interrupted(*arguments, **more):
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return descend(*arguments, **more)

    monkeypatch.setattr(auto_race, "descend", interrupted)
    model = Model()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert "interrupted" in model.status_
    assert model.score(X, y) > 0.5
    assert "interrupted" in str(model.choices_)


@pytest.mark.parametrize("Model", [AutoRegressor, AutoClassifier])
def test_bad_input(Model):
    X, y = waves(30)
    y = y if Model is AutoRegressor else (y > 0).astype(int)
    for wrong in ({"time": 0}, {"time": "long"}, {"loss": "best"}, {"loss": 3}, {"kernel": "rbf"}, {"budget": "much"}):
        with pytest.raises(InvalidInput):
            Model(**wrong).fit(X, y)
    spoiled = X.copy()
    spoiled[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        Model().fit(spoiled, y)
    with pytest.raises(ValueError, match="NaN"):
        Model().fit(X, np.where(np.arange(30) == 2, np.nan, y))
    model = Model().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])


def test_too_little_to_learn_from():
    X, y = waves(30)
    assert np.allclose(AutoRegressor().fit(X, np.full(30, 7.0)).predict(X), 7.0)
    assert np.isfinite(AutoRegressor().fit(X[:3], y[:3]).predict(X)).all()
    assert AutoClassifier().fit(X[:3], ["a", "b", "a"]).predict(X).shape == (30,)
    with pytest.raises(InvalidInput, match="two classes"):
        AutoClassifier().fit(X, np.zeros(30))
    flat = np.column_stack([X[:, 0], np.full(30, 5.0)])
    assert np.isfinite(AutoRegressor().fit(flat, y).predict(flat)).all()


@pytest.mark.thorough
def test_little_memory_stores_no_matrix():
    X, y = waves(800, d=2)
    model = AutoRegressor(budget="2 MB", time=5.0).fit(X, y)
    assert "a matrix that is never stored" in model.status_
    assert model.score(X, y) > 0.9


def test_losses_that_do_not_fit_the_target_are_refused():
    X, y = waves(40)
    for loss in ("log", "poisson"):
        with pytest.raises(InvalidInput, match="targets"):
            AutoRegressor(loss=loss).fit(X, y)


def test_parameters_are_kept():
    model = clone(AutoRegressor(kernel=mc.Gaussian(2.0), time=3.0))
    assert model.set_params(kernel__sigma=4.0).kernel == mc.Gaussian(4.0)


def test_counts_are_told_from_others():
    assert auto_regression.is_count(np.array([0, 1, 2, 1, 0, 3.0, 1, 0]))
    assert not auto_regression.is_count(np.array([0, 1, 2.5, 1, 0, 3, 1, 0]))
    assert not auto_regression.is_count(np.array([-1.0, 0, 1, 2, 2, 1, 0, -1]))
    assert not auto_regression.is_count(np.arange(100.0))


@pytest.mark.thorough
def test_progress_is_told_of_every_trial():
    X, y = waves(100)
    for Model, target in ((AutoRegressor, y), (AutoClassifier, y > 0)):
        told = []
        model = Model(progress=told.append).fit(X, target)
        names = [trial.name for trial in told]
        assert {"Gaussian", "Laplacian", "Matern 3/2"} <= set(names)
        assert names[-1] == "last fit, of 100 rows"
        assert all(0 <= trial.share <= 1 for trial in told)
        assert [trial.seconds for trial in told] == sorted(trial.seconds for trial in told)
        scores = [t.score for t in told if t.measure == "leave-one-out R²"]
        assert max(scores) == max(t.best_score for t in told if t.measure == "leave-one-out R²")
        assert all(len(str(trial)) < 90 for trial in told)
        assert "leave-one-out R²" in str(told[0])
        again = Model().fit(X, target)
        assert np.array_equal(model.predict(X), again.predict(X))


def test_progress_may_end_the_search():
    X, y = waves(150)
    told = []
    model = AutoRegressor(progress=lambda trial: told.append(trial) or len(told) < 3).fit(X, y)
    assert len(told) == 3
    assert model.score(X, y) > 0.5
    with pytest.raises(InvalidInput, match="progress"):
        AutoRegressor(progress=3).fit(X, y)


@pytest.mark.thorough
def test_logarithms_are_of_all_rows_not_of_a_sample(monkeypatch):
    monkeypatch.setattr(auto_plan.Plan, "loss_rows", lambda self, fewest: 80)
    own = np.random.default_rng(2)
    X = own.normal(size=(150, 4))
    y = np.exp(1.2 * X.sum(axis=1) + 0.1 * own.normal(size=150))
    spoiled = y.copy()
    spoiled[y.argmin()] = 0.0
    assert AutoRegressor().fit(X, y).loss_ == "log"
    assert AutoRegressor(random_state=0).fit(X, spoiled).loss_ != "log"
    with pytest.raises(InvalidInput, match="targets > 0"):
        AutoRegressor(loss="log").fit(X, spoiled)


@pytest.mark.thorough
def test_columns_may_be_shifted():
    X, y = waves(150)
    shifted = X + np.array([1e4, -1e5, 3.0])
    one, other = AutoRegressor().fit(X, y), AutoRegressor().fit(shifted, y)
    assert np.allclose(one.predict(X), other.predict(shifted), atol=0.02)


@pytest.mark.thorough
def test_widths_are_told_by_the_names_of_columns():
    X, y = waves(150)
    frame = pd.DataFrame(X, columns=["heat", "b", "c"])
    model = AutoRegressor().fit(frame, y)
    assert "most informative columns: heat" in model.choices_[2].why
    assert "sigma" not in str(model.choices_)


@pytest.mark.thorough
def test_many_rows_are_fitted_as_planned(monkeypatch):
    ticking(monkeypatch, 0.0)
    own = np.random.default_rng(7)
    X = own.normal(size=(12_000, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model = AutoRegressor(time=1.0).fit(X, y)
    rows, centres = auto_plan.Plan(1.0, 12_000).stages(1.0)[-1]
    assert rows == 12_000
    assert centres > auto_plan.PILOT_CENTRES
    assert model.model_.n_centers == centres
    assert "fitted to all 12,000 rows" in model.choices_[-1].why
    assert model.score(X, y) > 0.9
    labels = np.where((y > 0) == (own.uniform(size=12_000) < 0.8), "a", "b").astype("<U4")
    labels[:3] = "rare"
    model = AutoClassifier(time=1.0).fit(X, labels)
    assert list(model.classes_) == ["a", "b", "rare"]
    P = model.predict_proba(X)
    assert np.allclose(P.sum(axis=1), 1)
    assert -np.log(np.maximum(P[np.arange(12_000), np.searchsorted(model.classes_, labels)], 1e-12)).mean() < 0.9


def test_samples_lack_no_class():
    labels = np.array(["common"] * 500 + ["rare"] * 3)
    data = Labelled.of(Points(np.arange(503.0)[:, None]), labels, model="", regressor="")
    for seed in range(5):
        first = auto_classification.Classification(data, "auto").order(np.random.default_rng(seed))
        assert sorted(first.tolist()) == list(range(503))
        assert sorted(labels[first[:4]]) == ["common", "common", "rare", "rare"]


@pytest.mark.thorough
def test_more_classes_than_a_sample_has_rows():
    X = np.random.default_rng(0).uniform(size=(1200, 2))
    y = np.arange(1200) % 300
    model = AutoClassifier(time=2.0).fit(X, y)
    assert model.predict_proba(X[:5]).shape == (5, 300)


@pytest.mark.thorough
def test_many_classes_of_many_rows_have_a_machine(monkeypatch):
    own = np.random.default_rng(8)
    X = own.uniform(size=(900, 2))
    y = (3 * X[:, 0]).astype(int) * 3 + (3 * X[:, 1]).astype(int)
    monkeypatch.setattr(auto_classification, "LEFT_OUT_ROWS", 500)
    monkeypatch.setattr(auto_plan.Plan, "affords_exact", lambda *_: False)
    model = AutoClassifier(time=30.0).fit(X, y)
    decision = next(d for d in model.choices_ if d.question == "Loss of many rows")
    assert [c.name for c in decision.considered] == ["squared, on centres", "hinge, on all rows"]
    P = model.predict_proba(X)
    assert (model.classes_[P.argmax(axis=1)] == model.predict(X)).all()
    assert model.score(X, y) > 0.9


@pytest.mark.thorough
def test_a_machine_takes_the_place_of_few_centres(monkeypatch):
    own = np.random.default_rng(1)
    X = own.uniform(size=(600, 2))
    y = (4 * X[:, 0]).astype(int) * 4 + (4 * X[:, 1]).astype(int)
    monkeypatch.setattr(auto_classification, "LEFT_OUT_ROWS", 300)
    monkeypatch.setattr(auto_plan, "PILOT_CENTRES", 20)
    monkeypatch.setattr(auto_plan, "MOST_CENTRES", 25)
    monkeypatch.setattr(auto_plan.Plan, "affords_exact", lambda *_: False)
    model = AutoClassifier(time=60.0, random_state=1).fit(X, y)
    assert model.loss_ == "hinge"
    assert isinstance(model.model_, mc.SVC)
    assert "fitted to all 600 rows. Of these rows, 30 only calibrate the probabilities" in model.choices_[-1].why
    assert model.score(X, y) > 0.9
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


def test_what_was_not_tried_is_said():
    X, y = waves(800)
    spoiled = y + np.where(np.arange(800) % 12 == 0, 30.0, 0.0)
    model = AutoRegressor(time=1e-6).fit(X, spoiled)
    assert model.choices_[3].advice == "Try loss='robust'."
    assert "no time" in model.choices_[3].why


@pytest.mark.parametrize("Model", [AutoRegressor, AutoClassifier])
def test_pickles_and_shapes(Model):
    X, y = waves(60, d=1)
    y = y if Model is AutoRegressor else y > 0
    model = Model().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    wide = np.random.default_rng(0).normal(size=(30, 60))
    assert np.isfinite(np.asarray(Model().fit(wide, y[:30]).predict(wide), dtype=float)).all()
    sparse = sp.csr_array(np.where(np.abs(wide) > 1, wide, 0.0))
    assert np.isfinite(np.asarray(Model().fit(sparse, y[:30]).predict(sparse), dtype=float)).all()


@pytest.mark.thorough
def test_probabilities_are_calibrated():
    own = np.random.default_rng(9)
    X = own.normal(size=(1200, 2))
    p = 1 / (1 + np.exp(-2 * X[:, 0] - np.sin(3 * X[:, 1])))
    y = own.uniform(size=1200) < p
    for loss in ("auto", "squared", "logistic"):
        P = AutoClassifier(loss=loss).fit(X[:250], y[:250]).predict_proba(X[400:])[:, 1]
        assert np.mean((P - y[400:]) ** 2) < np.mean((p[400:] - y[400:]) ** 2) + 0.02, loss
        assert abs(P.mean() - p[400:].mean()) < 0.05


@pytest.mark.thorough
@pytest.mark.parametrize("library", [pl, pd], ids=["polars", "pandas"])
def test_dates_among_numbers_are_no_numbers(library):
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + rng.integers(0, 700, size=60).astype("timedelta64[D]")
    frame = library.DataFrame(
        {"day": days.astype("datetime64[us]"), "x": rng.normal(size=60), "on": rng.integers(0, 2, 60)}
    )
    y = frame["x"].to_numpy() + 0.1 * rng.normal(size=60)
    model = mc.AutoRegressor(time=5, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.8
    assert "date" in str(model.choices_)


@pytest.mark.parametrize("library", [pl, pd], ids=["polars", "pandas"])
def test_a_kernel_that_was_given_finds_columns_by_name(library):
    rng = np.random.default_rng(0)
    frame = library.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": rng.normal(size=60)})
    y = np.sin(frame["a"].to_numpy()) + frame["b"].to_numpy()
    kernel = mc.Gaussian(1.0).on("a") + mc.Gaussian(3.0).on("b")
    assert AutoRegressor(kernel=kernel, time=5).fit(frame, y).score(frame, y) > 0.95
    assert AutoClassifier(kernel=kernel, time=5).fit(frame, y > 0).score(frame, y > 0) > 0.9


@pytest.mark.thorough
def test_columns_that_say_nothing_are_said():
    rng = np.random.default_rng(3)
    model = AutoRegressor(time=5).fit(rng.normal(size=(120, 3)), rng.normal(size=120))
    assert "no kernel is better than the mean" in model.choices_[2].why
    useful = rng.normal(size=(120, 1))
    assert "better than the mean" not in AutoRegressor(time=5).fit(useful, useful[:, 0]).choices_[2].why


def test_no_part_reads_a_private_attribute_of_another():
    for file in Path(auto_search.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = node.value.func if isinstance(node.value, ast.Call) else node.value
                assert isinstance(owner, ast.Name), (file.name, node.lineno)
                assert owner.id in ("self", "super"), (file.name, node.lineno)


# -- the plan and the clock --------------------------------------------------------------------------------------------


def chosen(model):
    """All decisions, without how long they took."""
    return [(d.question, d.taken, d.why, str(d.considered)) for d in model.choices_]


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "seconds"), [(300, 3.0), (2500, 0.4)], ids=["exact", "centres"])
@pytest.mark.parametrize("Model", [AutoRegressor, AutoClassifier])
def test_the_clock_decides_nothing_unless_it_stops(Model, n, seconds, monkeypatch):
    X, y = waves(n, d=2)
    y = y if Model is AutoRegressor else np.digitize(y, [-0.5, 0.5])
    models = []
    for tick in (0.0, 1e-3 * seconds):
        ticking(monkeypatch, tick)
        models.append(Model(time=seconds).fit(X, y))
    one, other = models
    assert one.stopped_by_ is None
    assert other.stopped_by_ is None
    assert chosen(one) == chosen(other)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert "time limit" not in other.status_
    ticking(monkeypatch, seconds)
    late = Model(time=seconds).fit(X, y)
    assert late.stopped_by_ == "time"
    assert f"the search was stopped at its time limit of {seconds:.3g} s" in late.status_
    assert late.score(X, y) > 0.3


@pytest.mark.thorough
def test_who_ends_the_search_is_said(monkeypatch):
    X, y = waves(250)
    model = AutoRegressor(progress=lambda trial: False).fit(X, y)
    assert model.stopped_by_ == "progress"
    assert "fitted to all" in model.choices_[-1].why
    assert model.status_.startswith("`progress` ended the search")
    monkeypatch.setattr(auto_regression.Regression, "losses", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.stopped_by_ == "interrupt"
    monkeypatch.undo()
    monkeypatch.setattr(auto_search.Search, "last_fit", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    counts = AutoRegressor(loss="poisson")
    with pytest.raises(KeyboardInterrupt):
        counts.fit(X, np.round(np.exp(y + 1)))
    assert np.isfinite(counts.predict_interval(X, 0.9)).all()


@pytest.mark.parametrize("n", [30, 700, 5000, 10**6])
def test_more_time_never_plans_less(n):
    plans = [auto_plan.Plan(seconds, n) for seconds in np.geomspace(1e-6, 1e4, 60)]
    races = [dataclasses.astuple(plan.race(7, 10, 1000)) for plan in plans]
    last = [plan.stages(1.0)[-1] for plan in plans]
    assert races == sorted(races)
    assert last == sorted(last)
    assert races[-1][-1]
    assert not races[0][-1]
    for plan in plans:
        costs = [plan.on_centres(*stage, 1.0) for stage in plan.stages(1.0)]
        assert costs == sorted(costs)
        assert costs[-1] <= max(auto_plan.FIT_SHARE * plan.seconds, costs[0])


# -- intervals and errors ----------------------------------------------------------------------------------------------


def covered(model, X, y, coverage):
    low, high = model.predict_interval(X, coverage).T
    assert (low >= 0).all()
    return float(((low <= y) & (y <= high)).mean())


COUNTS = {
    "poisson": lambda own, mu: own.poisson(mu),
    "five times the variance": lambda own, mu: own.negative_binomial(mu / 4, 0.2),
    "variance of a square": lambda own, mu: own.negative_binomial(1.0, 1 / (1 + mu)),
    "nearly Gaussian": lambda own, mu: np.round(40 + 3 * mu + 2 * own.normal(size=len(mu))),
    "binomial": lambda own, mu: own.binomial(30, mu / 20),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", COUNTS)
def test_intervals_of_counts_hold_what_they_promise(kind):
    own = np.random.default_rng(11)
    X = own.uniform(-2, 2, size=(1300, 2))
    mu = np.exp(1.5 + np.sin(2 * X[:, 0]))
    y = COUNTS[kind](own, mu).astype(float)
    model = AutoRegressor(time=3).fit(X[:300], y[:300])
    assert 0.42 < covered(model, X[300:], y[300:], 0.5) < 0.64
    assert 0.85 < covered(model, X[300:], y[300:], 0.9) < 0.96


@pytest.mark.thorough
def test_a_loss_of_counts_earns_its_place():
    own = np.random.default_rng(12)
    X = own.uniform(-2, 2, size=(300, 2))
    flat = AutoRegressor(time=3).fit(X, np.round(20 + 3 * X[:, 0] + 3 * own.normal(size=300)))
    assert flat.loss_ == "squared"
    fan = AutoRegressor(time=3).fit(X, own.poisson(np.exp(1 + X[:, 0])))
    assert fan.loss_ == "poisson"
    assert "log score" in str(fan.choices_)


@pytest.mark.thorough
def test_positive_prices_have_positive_intervals():
    own = np.random.default_rng(13)
    X = own.uniform(0, 2, size=(200, 2))
    y = np.maximum(X[:, 0] + 0.5 * own.normal(size=200), 0.01)
    model = AutoRegressor(loss="squared").fit(X, y)
    assert model.predict_interval(X, 0.95).min() == 0.0
    assert "do not go below 0" in model.choices_[0].why
    below = AutoRegressor(loss="squared").fit(X, y - 5)
    assert below.predict_interval(X, 0.95).min() < -5


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["squared", "robust"])
def test_predictions_are_not_negative_if_no_target_is(loss):
    own = np.random.default_rng(14)
    X = own.uniform(-2, 2, size=(120, 2))
    y = np.round(np.maximum(6 * X[:, 0] - 2 + own.normal(size=120), 0.0), 1)
    model = AutoRegressor(loss=loss, time=3).fit(X, y)
    values = model.model_.predict(X)
    assert values.min() < 0.0
    assert np.array_equal(model.predict(X), np.maximum(values, 0.0))
    assert "predictions and intervals do not go below 0" in model.choices_[0].why
    if loss == "squared":
        assert model.model_.loo_predictions_.min() < 0.0 == model.loo_predictions_.min()
        errors = np.mean((y - model.loo_predictions_) ** 2), np.mean((y - model.model_.loo_predictions_) ** 2)
        assert errors[0] < errors[1]
        assert model.loo_error_ == pytest.approx(errors[0] * model.loo_optimism_)
    signed = AutoRegressor(loss=loss, time=3).fit(X, y - 5)
    assert signed.predict(X).min() < -5.0


def test_residuals_have_conformal_quantiles():
    X, y = waves(19)
    model = AutoRegressor(loss="robust").fit(X, y)
    reach = model.predict_interval(X, 0.8) - model.predict(X)[:, None]
    residuals = model.response_.residuals * model.response_.scale(model.predict(X))  # 19 rows have one scale
    assert np.allclose(reach, np.sort(residuals)[[1, 17]])  # of 19 the 2nd and the 18th
    with pytest.raises(InvalidInput, match="coverage"):
        model.predict_interval(X, 0.95)


@pytest.mark.parametrize("dispersion", [0.2, 1.0, 1.5, 20.0])
def test_counts_are_a_distribution(dispersion):
    counts, y = auto_intervals.Counts(dispersion), np.arange(3000.0)
    for mu in (0.1, 3.0, 60.0):
        p = np.exp(counts.log_probability(y, np.full(3000, mu)))
        assert p.sum() == pytest.approx(1.0, abs=1e-9)
        assert np.allclose(np.cumsum(p), counts.at_most(y, np.full(3000, mu)), atol=1e-9)
        assert p @ y == pytest.approx(mu, rel=0.02 if mu > 1 else 1.0)
        low, high = counts.interval(np.array([mu]), 0.05)[0]
        held = counts.level(y, np.full(3000, mu)) >= 0.05
        assert (low, high) == (y[held].min(), y[held].max())


def test_real_targets_of_poisson_have_intervals():
    own = np.random.default_rng(14)
    X = own.uniform(-2, 2, size=(600, 1))
    y = 0.01 * own.gamma(2.0, np.exp(X[:, 0]))
    model = AutoRegressor(loss="poisson").fit(X[:200], y[:200])
    assert 0.8 < covered(model, X[200:], y[200:], 0.9) < 0.97


@pytest.mark.thorough
def test_the_error_is_not_what_tuning_made_of_it():
    errors = []
    for seed in range(5):
        own = np.random.default_rng(seed)
        X = own.normal(size=(1040, 5))
        y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * own.normal(size=1040)
        model = AutoRegressor(loss="squared", random_state=seed).fit(X[:40], y[:40])
        apparent = model.loo_error_ / model.loo_optimism_
        errors.append([apparent, model.loo_error_, np.mean((y[40:] - model.predict(X[40:])) ** 2)])
    apparent, corrected, true = np.mean(errors, axis=0)
    assert apparent < 0.9 * true
    assert abs(np.log(corrected / true)) < 0.8 * abs(np.log(apparent / true))


@pytest.mark.thorough
def test_rows_without_an_error_make_nothing_certain():
    own = np.random.default_rng(15)
    y = np.arange(240) % 4
    X = 6.0 * np.eye(4)[y][:, :3] + own.normal(size=(240, 3))
    for loss in ("auto", "squared", "logistic", "hinge"):
        P = AutoClassifier(loss=loss).fit(X[:120], y[:120]).predict_proba(X[120:])
        right = P[np.arange(120), y[120:]]
        assert P.max() < 1 - 1e-5, loss
        assert -np.log(right).mean() < 0.05, loss


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_class_weights_do_not_move_probabilities(loss):
    own = np.random.default_rng(16)
    X = own.normal(size=(1500, 2))
    y = own.uniform(size=1500) < 1 / (1 + np.exp(3.5 - 1.5 * X[:, 0]))
    model = AutoClassifier(loss=loss, class_weight="balanced").fit(X[:500], y[:500])
    assert model.predict_proba(X[500:])[:, 1].mean() == pytest.approx(y[500:].mean(), abs=0.03)
    assert model.predict(X[500:]).mean() > y[500:].mean()  # errors on the rare class cost more


def test_odd_input_gets_words():
    X, y = waves(30)
    days = np.datetime64("2024-01-01") + np.arange(30).astype("timedelta64[D]")
    for target in (
        days,
        pd.Series(days),
        pl.Series(days.astype("datetime64[us]")),
        days - days[0],
        days.astype(object),
    ):
        with pytest.raises(InvalidInput, match="dates or durations"):
            AutoRegressor().fit(X, target)
    twice = pd.DataFrame(X[:, :2], columns=["a", "a"])
    for Model, target in ((AutoRegressor, y), (AutoClassifier, y > 0)):
        with pytest.raises(InvalidInput, match="2 columns called 'a'"):
            Model().fit(twice, target)
        with pytest.raises(InvalidInput, match="no value is present"):
            Model().fit(pd.DataFrame({"a": np.full(30, np.nan)}), target)
        half = pd.DataFrame({"a": np.full(30, np.nan), "b": X[:, 0]})
        assert Model(time=1).fit(half, target).predict(half).shape == (30,)
    letters = list("abcdefgh")
    assert AutoClassifier().fit(X[:8], letters).predict_proba(X).shape == (30, 8)
    with pytest.raises(InvalidInput, match="two rows of each class"):
        AutoClassifier(loss="hinge").fit(X[:8], letters)
    constant = AutoRegressor().fit(X, np.full(30, 7.0))
    assert np.allclose(constant.predict_interval(X, 0.9), 7.0)
    assert "nothing to learn" in str(constant.choices_)


def test_intervals_of_counts_beyond_whole_float64():
    """Where neighbouring numbers are more than 1 apart the search for the ends still ends."""
    mu = np.array([3.0, 1e16, 1e20, 1e300])
    ends = auto_intervals.Counts(4.0).interval(mu, 0.05)
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert np.allclose(ends[1:], mu[1:, None], rtol=1e-7, atol=0.0)
    assert np.allclose(ends[1] - mu[1], [-3.29e8, 3.29e8], rtol=1e-2, atol=0.0)  # ± 1.645 √(4 · 1e16)


@pytest.mark.parametrize("loss", ["squared", "log", "poisson", "robust", "logistic", "hinge"])
def test_a_saved_model_of_every_loss_answers_the_same(loss, tmp_path):
    X, y = waves(60)
    Model = AutoClassifier if loss in ("logistic", "hinge") else AutoRegressor
    target = y > 0 if Model is AutoClassifier else np.round(np.exp(y + 2))
    model = Model(loss=loss, time=2.0).fit(X, target)
    model.save(tmp_path / "model.mercer")
    loaded = mc.load(tmp_path / "model.mercer")
    assert loaded.loss_ == loss
    assert str(loaded.choices_) == str(model.choices_)
    found = [[(trial.parameters, trial.score) for trial in one.choices_.leaderboard] for one in (loaded, model)]
    assert found[0] == found[1]
    assert np.array_equal(loaded.predict(X), model.predict(X))
    for name in {"predict_interval", "predict_proba"} & set(dir(model)):
        assert np.array_equal(getattr(loaded, name)(X), getattr(model, name)(X))


@pytest.mark.parametrize("mixed", [False, True])
def test_whole_numbers_are_not_fitted_with_needles(mixed):
    # Levels without any order: leave-one-out sees the levels only, and would choose a width far below their distance.
    rng = np.random.default_rng(0)
    x, levels = rng.integers(0, 12, 400), rng.normal(size=12)

    def table(values):
        columns = {"x": np.asarray(values, dtype=float)}
        return pd.DataFrame(columns | {"c": np.resize(["a", "b", "c"], len(values))} if mixed else columns)

    kernel = mc.table_kernel(table(x)) if mixed else None
    model = mc.AutoRegressor(kernel=kernel, time=5, loss="squared").fit(
        table(x), levels[x] + 0.1 * rng.normal(size=400)
    )
    own, middle = model.predict(table(np.arange(12))), model.predict(table(np.arange(11) + 0.5))
    ends = np.sort([own[:-1], own[1:]], axis=0)
    assert np.corrcoef(own, levels)[0, 1] > 0.98
    assert np.maximum(ends[0] - middle, middle - ends[1]).max() < 0.15 * np.ptp(own)


@pytest.mark.parametrize(("loss", "weight"), [("squared", None), ("squared", {0: 1.0, 1: 6.0}), ("hinge", None)])
def test_the_decision_function_decides(loss, weight):
    own = np.random.default_rng(4)
    X = own.normal(size=(200, 1))
    y = (own.uniform(size=200) < 0.28 * (1 + np.tanh(3 * X[:, 0]))).astype(int)
    model = AutoClassifier(loss=loss, class_weight=weight, time=0.2).fit(X, y)
    if loss == "squared":
        model.softmax_ = dataclasses.replace(
            model.softmax_, offsets=np.array([0.7, 0.0])
        )  # as if the data supported offsets
    grid = np.linspace(-3, 3, 201)[:, None]
    values, P = model.decision_function(grid), model.predict_proba(grid)
    assert ((values > 0) == (model.predict(grid) == 1)).all()
    assert 0 < (values > 0).sum() < 201
    np.testing.assert_allclose(values, np.log(P[:, 1] / P[:, 0]) + (np.log(6.0) if weight else 0.0), atol=1e-9)


@pytest.mark.parametrize("cls", [AutoRegressor, AutoClassifier])
def test_files_of_older_versions_have_defaults(cls):
    X = np.linspace(-1, 1, 20)[:, None]
    parameters, fitted, omitted = cls(time=0.1).fit(X, X[:, 0] > 0)._file_state()
    fitted = {name: value for name, value in fitted.items() if name not in ("last_fit_", "stopped_by_")}
    old = cls._from_file(parameters, fitted, omitted)
    assert (old.last_fit_, old.stopped_by_) == (None, None)
    assert not hasattr(old, "rows_")


def test_kernel_values_of_texts_cost_what_their_letters_cost_in_the_plan():
    texts = pl.DataFrame(
        {"text": [f"{i} of the longer texts that a person writes, letter by letter" for i in range(60)]}
    )
    names = pl.DataFrame({"name": ["Anne", "Bob", "Carl"] * 20, "size": np.arange(60) % 7 / 7})
    costs = []
    for table in (texts, names):
        points = Points(table)
        costs.append(auto_plan.pair_of(candidates(points).kernels.values(), points))
    assert costs[0] > 3 * auto_plan.PAIR, "it was counted as one number"
    assert costs[1] == auto_plan.PAIR
    assert auto_plan.pair_of([mc.FromFunction(lambda x, z: 1.0)], Points([[1.0], [2.0]])) == pytest.approx(2e-6)
    plans = [auto_plan.Plan(10.0, 50_000, pair=pair) for pair in costs]
    assert plans[0].race(4, 0, 1000).rows < plans[1].race(4, 0, 1000).rows
    assert plans[0].machines(500)[-1] < plans[1].machines(500)[-1]
    assert plans[0].stages(1.0)[-1] < plans[1].stages(1.0)[-1]
