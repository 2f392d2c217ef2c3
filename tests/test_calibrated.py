"""Calibrated probabilities of any classifier, and the threshold from which a class is predicted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models import menu
from mercer.models.calibrated import CalibratedClassifier
from mercer.models.choices import with_choices
from mercer.models.recalibration import Recalibration
from mercer.models.scores import judge_by_leave_one_out
from mercer.models.svm.probabilities import Softmax


def noisy(n, seed=0, share=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + rng.normal(size=n) > share, "yes", "no")


def log_loss(model, X, y):
    P = model.predict_proba(X)
    return float(-np.log(np.maximum(P[np.arange(len(y)), np.searchsorted(model.classes_, y)], 1e-15)).mean())


@pytest.mark.parametrize("name", ["ridge", "logistic", "nw", "neighbors", "linear", "svm", "auto"])
def test_every_classifier_of_the_menu_promises_what_it_keeps(name):
    X, y = noisy(1200)
    model = menu.fit(name, X[:150], y[:150], task="classification", time=0.5).model
    P = model.predict_proba(X[200:])
    assert 0 < P.min() <= P.max() < 1
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(model, X[200:], y[200:]) < 0.66, "0.693 is a coin toss, 0.5 is the best"
    said = P.max(axis=1).mean()
    assert said == pytest.approx((model.predict(X[200:]) == y[200:]).mean(), abs=0.08)


def test_votes_are_certain_before_and_careful_afterwards():
    X, y = noisy(600)
    votes = mc.KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors=1)
    calibrated = CalibratedClassifier(votes).fit(X[:300], y[:300])
    assert log_loss(votes.fit(X[:300], y[:300]), X[300:], y[300:]) > 5
    assert log_loss(calibrated, X[300:], y[300:]) < 0.7
    assert (calibrated.predict(X[300:]) == votes.predict(X[300:])).all(), "one neighbour of two even classes"


def test_classes_that_are_predicted_too_rarely_get_an_offset():
    rng = np.random.default_rng(0)
    codes = (rng.random(2000) < 0.3).astype(int)
    values = np.column_stack([np.full(2000, 3.0), codes + 0.7 * rng.normal(size=2000)])  # the second never wins
    plain, moved = Softmax.fit(values, codes), Softmax.fit(values, codes, shifted=None)
    assert not plain.offsets.any()
    assert moved.offsets.any()
    assert moved.loss(values, codes) < plain.loss(values, codes) - 1
    fair = np.column_stack([1 - codes, codes]) + 0.7 * rng.normal(size=(2000, 2))
    even = codes[rng.permutation(2000)[:20]]
    assert not Softmax.fit(fair[:20], even, shifted=None).offsets.any(), "few rows do not support one"


def test_left_out_rows_decide_whether_by_folds_or_in_closed_form():
    X, y = noisy(240)
    model = mc.KernelLogisticRegression(mc.Gaussian(2.0), alpha=1.0)
    closed = CalibratedClassifier(model).fit(X, y)
    np.testing.assert_allclose(closed.loo_proba_, closed.recalibration_(closed.model_.loo_proba_))
    assert (closed.loo_predictions_ == y).mean() == pytest.approx(closed.model_.loo_score_, abs=0.03)
    folds = CalibratedClassifier(GaussianNB(), cv=4).fit(X, y)
    assert folds.loo_proba_.shape == (240, 2)
    assert log_loss(folds, X, y) < 0.6
    again = CalibratedClassifier.around(closed.model_, X, y)
    np.testing.assert_array_equal(again.predict_proba(X), closed.predict_proba(X))
    some = CalibratedClassifier(GaussianNB(), cv=4).fit(np.tile(X, (12, 1)), np.tile(y, 12))
    assert not hasattr(some, "loo_proba_"), "of many rows some are held out"


def test_many_rows_on_centres_are_held_out_once(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2600, 2))
    y = X[:, 0] + rng.normal(size=2600) > 0
    model = mc.LeastSquaresClassifier(mc.Gaussian(2.0), alpha=0.1, solver="nystrom", n_centers=20).fit(X, y)
    monkeypatch.setattr("mercer.models.calibrated.left_out_probabilities", lambda model: 1 / 0)  # costs several fits
    P = mc.CalibratedClassifier.around(model, X, y).predict_proba(X)[:, 1]
    assert -np.mean(np.log(np.where(y, P, 1 - P))) < 0.6


def test_rows_of_weight_zero_do_not_count():
    X, y = noisy(150)
    w = np.r_[np.zeros(30), np.ones(120)]
    for model in (
        mc.NadarayaWatsonClassifier(bandwidth=0.7),
        mc.LeastSquaresClassifier(mc.Gaussian(1.0)),
        GaussianNB(),
    ):
        weighted = CalibratedClassifier(clone(model)).fit(X, y, sample_weight=w)
        without = CalibratedClassifier(clone(model)).fit(X[30:], y[30:])
        np.testing.assert_allclose(weighted.predict_proba(X), without.predict_proba(X), atol=1e-6)


def test_a_matrix_of_similarities_is_held_out_by_rows_and_columns():
    X, y = noisy(80)
    kernel = mc.Gaussian(1.0)
    matrix = CalibratedClassifier(mc.SVC(mc.Precomputed()), cv=3).fit(kernel(X), y)
    points = CalibratedClassifier(mc.SVC(kernel), cv=3).fit(X, y)
    np.testing.assert_allclose(matrix.predict_proba(kernel(X[:9], X)), points.predict_proba(X[:9]), atol=1e-5)


def test_f1_on_left_out_rows_chooses_the_threshold():
    X, y = noisy(3000, share=1.8)  # few "yes"
    plain = CalibratedClassifier(mc.LogisticRegression(alpha=1.0)).fit(X[:800], y[:800])
    tuned = CalibratedClassifier(mc.LogisticRegression(alpha=1.0), threshold="f1").fit(X[:800], y[:800])

    def f1(predicted):
        hits = ((predicted == "yes") & (y[800:] == "yes")).sum()
        return 2 * hits / ((predicted == "yes").sum() + (y[800:] == "yes").sum())

    assert 0.05 < tuned.threshold_ < 0.45
    assert f1(tuned.predict(X[800:])) > f1(plain.predict(X[800:])) + 0.05
    np.testing.assert_array_equal(tuned.predict_proba(X), plain.predict_proba(X))
    curve = mc.threshold_curve(plain, X[:800], y[:800])
    left_out = mc.ThresholdCurve.of(y[:800] == "yes", plain.loo_proba_[:, 1])
    assert tuned.threshold_ == left_out.best("f1") != curve.best("f1")


def test_costs_and_weights_decide_by_the_probability():
    X, y = noisy(400, share=1.0)
    model = mc.LogisticRegression(alpha=1.0)
    cost = CalibratedClassifier(model, costs=(4, 1)).fit(X, y)
    assert cost.threshold_ == pytest.approx(0.2)
    P = cost.predict_proba(X)
    np.testing.assert_array_equal(cost.predict(X) == "yes", P[:, 1] >= 0.2)
    other = CalibratedClassifier(model, costs=(1, 4), label="no").fit(X, y)
    np.testing.assert_array_equal(other.predict(X) == "no", P[:, 0] >= 0.8)
    weighted = CalibratedClassifier(model, class_weight={"no": 1.0, "yes": 4.0}).fit(X, y)
    np.testing.assert_array_equal(weighted.predict(X), cost.predict(X))


@pytest.mark.parametrize("name", ["auto", "svm", "neighbors", "ridge"])
def test_balanced_classes_are_all_found(name):
    X, y = noisy(2300, share=1.8)
    found = []
    for weight in (None, "balanced"):
        fitted = menu.fit(name, X[:300], y[:300], task="classification", class_weight=weight, time=0.5)
        predicted, P = fitted.model.predict(X[300:]), fitted.model.predict_proba(X[300:])
        recalls = [(predicted[y[300:] == label] == label).mean() for label in ("no", "yes")]
        found.append((np.mean(recalls), P[:, 1].mean()))
    assert found[1][0] > found[0][0] + 0.05, "balanced accuracy"
    assert found[1][1] == pytest.approx(np.mean(y[300:] == "yes"), abs=0.06), "probabilities stay those of the data"


def test_a_model_file_keeps_the_threshold(tmp_path):
    X, y = noisy(200)
    fitted = menu.fit("neighbors", X, y, task="classification", decision={"threshold": "f1", "label": "no"})
    model = fitted.model
    model.save(tmp_path / "m")
    loaded = mc.load(tmp_path / "m")
    assert (loaded.threshold_, loaded.label) == (model.threshold_, "no")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(InvalidInput, match="training rows"):
        _ = loaded.loo_proba_
    again = menu.refit(fitted, X[:150], y[:150]).model
    assert again.threshold_ == model.threshold_
    assert not hasattr(again, "_left_out")


@pytest.mark.parametrize("zeros", [slice(0, 10), slice(30, 40), slice(70, 80)])
def test_rows_of_weight_zero_are_predicted_without_themselves(zeros):
    X, y = noisy(80)
    w = np.ones(80)
    w[zeros] = 0
    votes = mc.KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors=5)
    model = CalibratedClassifier(votes).fit(X, y, w)
    assert model.loo_proba_.shape == (80, 2)
    np.testing.assert_array_equal(model.loo_proba_[zeros], model.predict_proba(X[zeros]))
    alone = CalibratedClassifier(votes).fit(X[w > 0], y[w > 0])
    np.testing.assert_allclose(model.loo_proba_[w > 0], alone.loo_proba_)
    votes.fit(X, y, w)
    np.testing.assert_array_equal(votes.loo_proba_[zeros], votes.predict_proba(X[zeros]))
    for judged in (votes, model):
        assert 0 < judge_by_leave_one_out(judged, X, y)["accuracy"].value < 1


def test_a_class_of_one_row_cannot_be_left_out_by_folds():
    X, y = noisy(30)
    rare = np.where(np.arange(30) == 4, "rare", "often")
    with pytest.raises(InvalidInput, match="two rows of two classes, got one row of 'rare' beside 29 of 'often'"):
        CalibratedClassifier(mc.SVC(mc.Gaussian(1.0))).fit(X, rare)
    three = np.where(np.arange(30) == 4, "rare", y)
    assert CalibratedClassifier(mc.SVC(mc.Gaussian(1.0))).fit(X, three).predict_proba(X).shape == (30, 3)


def test_the_choices_of_a_model_are_kept():
    X, y = noisy(120)
    auto = mc.AutoClassifier(time=0.5).fit(X, y)
    again = with_choices(auto)
    assert (again.kernel, again.loss) == (auto.model_.kernel_, auto.loss_)
    np.testing.assert_allclose(auto.loo_proba_.sum(axis=1), 1.0)
    assert (auto.loo_predictions_ == y).mean() > 0.6


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"threshold": 1.5}, "threshold.*'f1'"),
        ({"threshold": "accuracy"}, "threshold.*'f1'"),
        ({"threshold": 0.3, "class_weight": "balanced"}, "One of.*threshold and class_weight"),
        ({"costs": 3}, "costs.*two numbers"),
        ({"costs": (1, -1)}, "false_alarm"),
        ({"threshold": 0.3, "label": "maybe"}, "label.*'maybe'"),
        ({"cv": 1}, "cv"),
    ],
)
def test_what_is_refused(parameters, words):
    X, y = noisy(40)
    with pytest.raises(InvalidInput, match=words):
        CalibratedClassifier(mc.LeastSquaresClassifier(), **parameters).fit(X, y)


def test_thresholds_are_for_two_classes():
    X, _ = noisy(60)
    with pytest.raises(InvalidInput, match=r"two classes.*3 classes.*class_weight"):
        CalibratedClassifier(mc.LeastSquaresClassifier(), threshold=0.3).fit(X, np.arange(60) % 3)
    with pytest.raises(InvalidInput, match="`model` must be a classifier"):
        CalibratedClassifier(mc.SVC).fit(X, np.arange(60) % 2)
    with pytest.raises(InvalidInput, match="are for classes"):
        menu.fit("ridge", X, X[:, 0], class_weight="balanced")


def test_votes_of_one_row_and_many_classes_are_calibrated():
    rng = np.random.default_rng(0)
    P = np.eye(4)[rng.integers(0, 4, 400)]
    codes = np.where(rng.random(400) < 0.7, P.argmax(axis=1), rng.integers(0, 4, 400))
    calibrated = Recalibration.fit(P, codes)
    assert calibrated(np.eye(4)).max(axis=1) == pytest.approx(0.775, abs=0.05)


@pytest.mark.thorough
def test_the_shell_chooses_a_threshold_and_predict_uses_it(tmp_path, monkeypatch, capsys):
    pl = pytest.importorskip("polars")
    pytest.importorskip("typer")
    from mercer.cli.app import run

    monkeypatch.chdir(tmp_path)
    X, y = noisy(300, share=1.0)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "ill": y}).write_csv("d.csv")
    base = ["fit", "d.csv", "-t", "ill", "-m", "linear", "-o", "m.mercer", "--force"]
    assert run([*base, "--threshold", "cost=9:1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["threshold"] == pytest.approx(0.1)
    assert {one["class"] for one in facts["by_class"]} == {"no", "yes"}
    assert next(one for one in facts["by_class"] if one["class"] == "yes")["recall"] > 0.9
    assert sum(one["rows"] for one in facts["reliability"]["bins"]) == 60
    assert run(["predict", "m.mercer", "d.csv", "--proba", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [row["prediction"] == "yes" for row in rows] == [row["p_yes"] >= 0.1 for row in rows]
    assert run(["evaluate", "m.mercer", "d.csv"]) == 0
    out = capsys.readouterr().out
    assert "'yes' is predicted if its probability is at least 0.1, the threshold with the least expected cost" in out
    assert "recall" in out
    assert "calibration error" in out
    assert run(["explain", "m.mercer"]) == 0
    assert "probability is at least 0.1" in capsys.readouterr().out
    assert run([*base, "--threshold", "f1", "--positive", "no"]) == 0
    assert "'no' is predicted if its probability" in capsys.readouterr().out
    assert run([*base, "--balance"]) == 0
    assert "errors are weighted by class" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "often"], "--threshold must be f1"),
        (["--threshold", "cost=1"], "--threshold must be f1"),
        (["--threshold", "cost=0:1"], "--threshold must be f1"),
        (["--threshold", "1.2"], "--threshold must be f1"),
        (["--threshold", "f1", "--balance"], "Only one option can decide"),
        (["--threshold", "f1", "--positive", "ye"], "--positive must be a class"),
        (["--positive", "yes"], "--positive is for --threshold"),
    ],
)
def test_what_the_shell_refuses(options, words, tmp_path, monkeypatch, capsys):
    pl = pytest.importorskip("polars")
    pytest.importorskip("typer")
    from mercer.cli.app import run

    monkeypatch.chdir(tmp_path)
    X, y = noisy(40)
    pl.DataFrame({"a": X[:, 0], "ill": y}).write_csv("d.csv")
    assert run(["fit", "d.csv", "-t", "ill", "-m", "linear", "-o", "none", *options]) == 2
    assert words in capsys.readouterr().err
