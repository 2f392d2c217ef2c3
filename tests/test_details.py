"""Scores in detail: curves over thresholds, recall and precision, interval scores, coverage by size, counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.auto.intervals import dispersion_by_mean
from mercer.models.conformal import with_intervals
from mercer.models.judging.by_class import scores_by_class
from mercer.models.judging.counts import CountFit, count_fit
from mercer.models.judging.cross_validation import judge_by_folds
from mercer.models.judging.held_out_intervals import crossed_intervals, held_out_intervals, own_intervals
from mercer.models.judging.intervals import coverage_by_size, interval_scores
from mercer.models.judging.reliability import ReliabilityCurve
from mercer.models.judging.thresholds import ThresholdCurve
from mercer.models.scores import Baseline, judge
from mercer.report.scores import (
    classes_section,
    counts_section,
    probabilities_section,
    scores_section,
    sizes_section,
)
from mercer.tuning.folds import make_folds


def ties(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 20, n) / 20
    return rng.random(n) < p, p


def test_curves_are_those_of_scikit_learn():
    hit, p = ties()
    curve = ThresholdCurve.of(hit, p)
    rate, recall, thresholds = metrics.roc_curve(hit, p, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_positive_rate, rate)
    np.testing.assert_allclose(curve.recall, recall)
    np.testing.assert_allclose(curve.thresholds, thresholds)
    precision = metrics.precision_recall_curve(hit, p)[0]
    np.testing.assert_allclose(curve.precision[1:], precision[:-1][::-1])
    assert curve.area == pytest.approx(metrics.roc_auc_score(hit, p))
    assert curve.average_precision == pytest.approx(metrics.average_precision_score(hit, p))
    for threshold in (0.0, 0.33, 0.5, 0.95, 1.0):
        at, predicted = curve.at(threshold), p >= threshold
        assert curve.f1[at] == pytest.approx(metrics.f1_score(hit, predicted, zero_division=0.0))
        assert curve.balanced_accuracy[at] == pytest.approx(metrics.balanced_accuracy_score(hit, predicted))
        assert curve.cost(3, 1)[at] == pytest.approx(np.mean(3 * (hit & ~predicted) + (~hit & predicted)))


def test_the_best_threshold_is_the_best_of_all():
    hit, p = ties()
    curve = ThresholdCurve.of(hit, p)
    for options, score in (
        ({"by": "f1"}, lambda t: metrics.f1_score(hit, p >= t, zero_division=0.0)),
        ({"by": "balanced accuracy"}, lambda t: metrics.balanced_accuracy_score(hit, p >= t)),
        ({"costs": (5, 1)}, lambda t: -np.mean(5 * (hit & (p < t)) + (~hit & (p >= t)))),
    ):
        best = curve.best(**options)
        assert score(best) == pytest.approx(max(score(t) for t in np.arange(0.025, 1.0, 0.05)))
        assert best not in p, "between two probabilities"
    twice = ThresholdCurve.of(np.tile(hit, 2), np.tile(p, 2))
    np.testing.assert_allclose(ThresholdCurve.of(hit, p, weights=np.full(300, 2.0)).found, twice.found)
    with pytest.raises(InvalidInput, match="rows of the class"):
        ThresholdCurve.of(np.zeros(5), np.linspace(0, 1, 5)).best("balanced accuracy")
    with pytest.raises(InvalidInput, match="as many"):
        ThresholdCurve.of([1, 0], [0.5])
    X, y = np.arange(12.0)[:, None], np.arange(12) % 3
    model = mc.LogisticRegression(alpha=1.0).fit(X, y)
    with pytest.raises(InvalidInput, match=r"label.*3 classes"):
        mc.threshold_curve(model, X, y)


def test_recall_and_precision_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    for one in scores_by_class(y, predicted):
        assert one.recall == pytest.approx(metrics.recall_score(y, predicted, labels=[one.label], average="macro"))
        if one.predicted:
            args = (y, predicted)
            assert one.precision == pytest.approx(metrics.precision_score(*args, labels=[one.label], average="macro"))
        assert one.f1 == pytest.approx(
            metrics.f1_score(y, predicted, labels=[one.label], average="macro", zero_division=0)
        )
    assert np.isnan(scores_by_class(["a"], ["b"])[1].recall)


def test_the_interval_score_is_least_for_the_true_quantiles():
    y = np.random.default_rng(0).normal(size=20_000)
    means = {z: interval_scores(y, np.tile([-z, z], (20_000, 1)), 0.9).mean() for z in (1.2, 1.645, 2.2)}
    assert min(means, key=means.get) == 1.645
    assert means[1.645] == pytest.approx(4.126, abs=0.05)  # 2·1.645 + 20·2·E(y − 1.645)₊ for a normal distribution


def test_intervals_are_scored_beside_the_middle_of_the_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(400, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X[:200], y[:200])
    baseline = Baseline.of(y[:200])
    judgement = judge(model, X[200:], y[200:], baseline, intervals=True)
    ends = model.predict_interval(X[200:], 0.9)
    np.testing.assert_array_equal(judgement.intervals, ends)
    assert judgement["90 % coverage"].value == np.mean((ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1]))
    score = judgement["90 % interval score"]
    assert score.value < 0.6 < 1.8 < score.baseline
    middle = np.tile(np.quantile(y[:200], [0.05, 0.95]), (200, 1))
    assert score.baseline == pytest.approx(interval_scores(y[200:], middle, 0.9).mean())
    parts = coverage_by_size(y[200:], judgement.predictions, ends, 0.9)
    assert np.average([p.observed for p in parts], weights=[p.rows for p in parts]) == pytest.approx(
        judgement["90 % coverage"].value
    )
    assert [parts[0].high <= parts[1].low, parts[1].high <= parts[2].low] == [True, True]


def test_no_row_is_judged_by_its_own_residual():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1))
    y = X[:, 0] + rng.normal(size=120)
    machine = mc.SVR(mc.Linear()).fit(X[:40], y[:40])
    assert own_intervals(machine, X, 0.9) is None, "it has none"
    f = machine.predict(X[40:])
    ends = held_out_intervals(machine, X[40:], y[40:], f, 0.9)
    moved = y[40:].copy()
    moved[0] += 1000.0
    again = crossed_intervals(moved, f, 0.9)
    np.testing.assert_array_equal(again[0], ends[0])
    assert (again != ends).any(), "the other half gets wider"
    assert crossed_intervals(y[:30], y[:30], 0.9) is None, "too few"


def test_a_fit_that_stopped_early_gets_its_intervals_from_held_out_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1))
    y = X[:, 0] + rng.standard_t(1, size=120)
    model = mc.AutoRegressor(loss="robust", time=0.5).fit(X[:60], y[:60])
    assert with_intervals(model, X[60:], y[60:]) is model
    model.model_.end_ = "time"
    assert isinstance(with_intervals(model, X[60:], y[60:]), mc.ConformalRegressor)


@pytest.mark.thorough
def test_intervals_of_new_groups_come_from_whole_groups():
    """Rows of one group share an offset: leaving out single rows promises far too much."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    X = np.column_stack([np.repeat(rng.normal(size=(40, 3)), 10, axis=0), rng.normal(size=400)])
    y = rng.normal(size=40)[groups] + 0.1 * rng.normal(size=400)

    def fit(X, y):
        return mc.KernelRidge(mc.Gaussian(0.5), alpha=0.05).fit(X, y)

    folds = make_folds(400, 5, groups=groups)
    alone = judge_by_folds(fit, X, y, folds, groups=groups, intervals=True)
    apart = judge_by_folds(fit, X, y, folds, groups=groups, intervals=True, apart=True)
    assert alone["90 % coverage"].value < apart["90 % coverage"].value - 0.15
    assert apart["90 % coverage"].value > 0.75, "forty groups are not many"
    model = with_intervals(fit(X, y), X, y, apart.predictions[np.argsort(apart.rows)], apart=True)
    assert isinstance(model, mc.ConformalRegressor)


@pytest.mark.thorough
def test_dispersion_shows_which_counts_vary_more_than_a_poisson_distribution():
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.5, 30, 3000)
    poisson, wild = rng.poisson(mean), rng.negative_binomial(3.0, 3.0 / (3.0 + mean))
    calm, over = CountFit.of(poisson, mean), CountFit.of(wild, mean)
    assert not calm.is_overdispersed
    assert over.is_overdispersed
    assert over.theta == pytest.approx(3.0, rel=0.2)
    assert calm.deviance == pytest.approx(metrics.mean_poisson_deviance(poisson, mean))
    for fit in (calm, over):
        assert fit.observed.sum() == pytest.approx(3000) == pytest.approx(fit.poisson.sum())
        assert fit.overdispersed.sum() == pytest.approx(3000)
    gaps = [np.abs(np.sqrt(fit.observed) - np.sqrt(fit.poisson)).max() for fit in (calm, over)]
    assert gaps[0] < 3 < gaps[1]
    assert np.abs(np.sqrt(over.observed) - np.sqrt(over.overdispersed)).max() < 4, "the other distribution fits"
    assert CountFit.of(rng.binomial(40, mean / 40), mean).verdict.startswith("below 1")
    for interval, words in (((1.3, 4.2), "above 1"), ((0.9, 4.2), "not distinguishable from 1"), ((0.1, 0.9), "below")):
        fit = CountFit.of(poisson, mean, interval)
        assert fit.verdict.startswith(words), "the words follow from the interval that is shown"
        assert fit.is_overdispersed == (words == "above 1")
    assert count_fit(mean, mean) is None
    assert count_fit(poisson, mean - 20) is None
    with pytest.raises(InvalidInput, match="counts"):
        CountFit.of([0.5], [1.0])


def test_few_rows_of_negative_binomial_counts_have_a_dispersion_that_rises_with_the_mean():
    rising, flat = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        mu = rng.choice([4.0, 8.0, 16.0, 32.0], size=110)
        mixed = rng.poisson(mu * rng.gamma(1.3, 1 / 1.3, size=110)).astype(float)
        even = rng.negative_binomial(mu / 9.0, 0.1).astype(float)  # a variance of ten times the mean
        for counts, found in ((mixed, rising), (even, flat)):
            low, high = dispersion_by_mean(counts, mu)[0](np.array([4.0, 32.0]))
            found.append(high / low)
    assert np.median(rising) > 2.5
    assert 0.4 < np.median(flat) < 2.0


@pytest.mark.thorough
def test_intervals_of_overdispersed_counts_are_wider_and_never_below_zero(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, size=(260, 1))
    mean = np.exp(1 + X[:, 0])
    widths = []
    for y in (rng.poisson(mean), rng.negative_binomial(1.0, 1.0 / (1.0 + mean))):
        model = mc.AutoRegressor(time=0.5, loss="poisson").fit(X[:200], y[:200])
        saved = with_intervals(model, X[200:], y[200:])
        low, high = saved.predict_interval(X, 0.9).T
        assert low.min() >= 0
        widths.append(np.mean(high - low))
        saved.save(tmp_path / "m")
        np.testing.assert_array_equal(mc.load(tmp_path / "m").predict_interval(X, 0.9), saved.predict_interval(X, 0.9))
    assert widths[1] > 1.5 * widths[0]


def test_bins_of_probabilities_count_their_rows():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    curve = ReliabilityCurve.of(rng.random(500) < p**2, p)
    assert curve.counts.sum() == 500
    assert (curve.observed[3:7] < curve.lower[3:7]).all(), "the probabilities are too high"
    assert curve.error == pytest.approx(1 / 2 - 1 / 3, abs=0.03)


def test_plots_of_thresholds_predictions_and_counts():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + rng.normal(size=150) > 0, "yes", "no")
    model = mc.CalibratedClassifier(mc.LogisticRegression(alpha=1.0), threshold=0.3).fit(X[:90], y[:90])
    roc = mc.plot.ROC.from_estimator(model, X[90:], y[90:])
    assert roc.threshold == 0.3
    assert any("threshold 0.3" in text.get_text() for text in roc.ax_.get_legend().get_texts())
    assert mc.plot.PrecisionRecall.from_estimator(model, X[90:], y[90:], label="no").threshold is None
    three = mc.LogisticRegression(alpha=1.0).fit(X, np.arange(150) % 3)
    assert len(mc.plot.ROC.from_estimator(three, X, np.arange(150) % 3).curves) == 3
    assert mc.plot.ROC.from_curves([roc.curves[0]]).threshold is None
    ends = np.column_stack([X[:, 1] - 1, X[:, 1] + 1])
    shown = mc.plot.PredictedActual.from_predictions(X[:, 0], X[:, 1], intervals=ends)
    assert shown.lower is not None
    root = mc.plot.Rootogram.from_predictions(rng.poisson(3.0, 150), np.full(150, 3.0), name="visits")
    assert root.ax_.get_xlabel() == "visits"
    wide = mc.plot.Residuals.from_predictions(np.r_[0:400] * (1 + rng.normal(size=400)), np.r_[0:400] * 1.0)
    assert wide.spread[-1] > 3 * wide.spread[0]
    with pytest.raises(InvalidInput, match="results of mc"):
        mc.plot.ROC.from_curves([])
    with pytest.raises(InvalidInput, match="one column for each class"):
        mc.plot.ROC.from_predictions(y, np.zeros((3, 2)), ["no", "yes"])
    with pytest.raises(InvalidInput, match="two ends"):
        mc.plot.PredictedActual.from_predictions(X[:, 0], X[:, 1], intervals=X[:, 0])
    matplotlib.pyplot.close("all")


@pytest.mark.thorough
def test_evaluate_and_the_report_show_counts_and_thirds(tmp_path, monkeypatch, capsys):
    pl = pytest.importorskip("polars")
    pytest.importorskip("typer")
    from mercer.cli.app import run

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 2, 240)
    visits = rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(1 + age)))
    table = pl.DataFrame({"age": age, "visits": visits})
    table.write_csv("d.csv")
    assert run(["fit", "d.csv", "-t", "visits", "-m", "poisson", "-o", "m.mercer"]) == 0
    said = capsys.readouterr().out
    assert "Dispersion of the counts (48 held-out rows):" in said
    assert "variance of left-out training counts" in said, "another number, of other rows"
    assert run(["evaluate", "m.mercer", "d.csv", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [part["rows"] for part in facts["by_size"]] == [80, 80, 80]
    assert facts["counts"]["dispersion"] > 1.5
    shown = next(score for score in facts["scores"] if score["name"] == "dispersion")
    assert facts["counts"]["interval"] == shown["interval"]
    assert {"90 % coverage", "90 % interval score", "Poisson deviance", "dispersion"} <= {
        score["name"] for score in facts["scores"]
    }
    judgement = judge(mc.load("m.mercer"), table.select("age"), visits, Baseline.of(visits), intervals=True)
    assert "inside 90 % intervals" in sizes_section(visits, judgement)
    assert "overdispersed" in counts_section(visits, judgement)
    assert "90 % interval score" in scores_section(judgement, visits)


def test_the_best_threshold_may_predict_nothing():
    curve = ThresholdCurve.of([0, 1], [1.0, 0.2])
    best = curve.best(costs=(1, 10))
    assert curve.at(best) == 0
    assert curve.cost(1, 10)[curve.at(best)] == curve.cost(1, 10).min() == 0.5
    assert best == pytest.approx(1.0)
    assert ThresholdCurve.of([0, 1], [0.8, 0.2]).best(costs=(1, 10)) == pytest.approx(0.9)
    close = ThresholdCurve.of([1, 0], [np.nextafter(0.5, 1), 0.5])
    assert close.at(close.best()) == 1


def test_targets_and_weights_that_would_give_nan_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    gap = np.where(np.arange(40) == 3, np.nan, y)
    with pytest.raises(InvalidInput, match=r"NaN.*in row 3"):
        mc.feature_importance(mc.Ridge().fit(X, y), X, gap)
    counts = mc.GLM(family="poisson").fit(X, np.arange(40) % 3)
    with pytest.raises(InvalidInput, match="counts ≥ 0, which the model predicts, got -1 in row 5"):
        mc.feature_importance(counts, X, np.where(np.arange(40) == 5, -1, 1))
    model = mc.LogisticRegression().fit(X, np.where(y > 0, "yes", "no"))
    with pytest.raises(InvalidInput, match=r"y must hold classes of the model, got .* and no class. Pass .*'yes'"):
        mc.threshold_curve(model, X, y > 0)
    with pytest.raises(InvalidInput, match=r"got -5\.0 in row 1"):
        ThresholdCurve.of([0, 1, 1], [0.1, 0.2, 0.3], weights=[1, -5, 1])
    with pytest.raises(InvalidInput, match="all of one kind"):
        scores_by_class([1, 2, 2], ["1", "2", "2"])
    with pytest.raises(InvalidInput, match="got 2 and 1"):
        scores_by_class(["a", "b"], ["a"])
    assert [one.rows for one in scores_by_class(np.array(["a", "b"], dtype=object), ["a", "a"])] == [1, 1]


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: ThresholdCurve.of([0, 1, 0], [0.1, np.nan, 0.3]), "got the probability nan in row 1"),
        (lambda: ThresholdCurve.of([0, 2], [0.1, 0.2]), "got the outcome 2 in row 1"),
        (lambda: CountFit.of([1, 2, 3], [1.0, 2.0, 0.0]), "got the mean 0 in row 2"),
        (lambda: CountFit.of([1.5, 2], [1.0, 2.0]), r"got the count 1\.5 in row 0"),
        (lambda: ReliabilityCurve.of([0, 1, 1], [0.1, 0.2, 1.3]), r"got the probability 1\.3 in row 2"),
        (lambda: ReliabilityCurve.of([0, 1], [0.1]), "1 of probability and 2 of outcome"),
        (lambda: ThresholdCurve.of([], []), "0 of probability"),
    ],
)
def test_the_first_wrong_value_is_named(refused, words):
    with pytest.raises(InvalidInput, match=words):
        refused()


def test_evaluate_scores_only_intervals_that_predict_gives(tmp_path, monkeypatch, capsys):
    pl = pytest.importorskip("polars")
    pytest.importorskip("typer")
    from mercer.cli.app import run

    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=80)
    table = pl.DataFrame({"x": x, "y": np.sin(x)})
    table.write_csv("d.csv")
    for name, known in (("SVR", False), ("KernelRidge", True)):
        getattr(mc, name)(mc.Gaussian(1.0)).fit(table.select("x"), table["y"]).save("m.mercer")
        assert run(["evaluate", "m.mercer", "d.csv", "-t", "y", "--json"]) == 0
        names = {score["name"] for score in json.loads(capsys.readouterr().out)["scores"]}
        assert ("90 % coverage" in names, "RMSE" in names) == (known, True)
        assert run(["predict", "m.mercer", "d.csv", "-i", "0.9"]) == (0 if known else 2)
        capsys.readouterr()


def test_the_report_names_recall_precision_and_the_rows_of_each_bin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "ill", "well")
    model = mc.CalibratedClassifier(mc.LogisticRegression(alpha=1.0), threshold=0.3).fit(X[:200], y[:200])
    judgement = judge(model, X[200:], y[200:], Baseline.of(y[:200], classes=True))
    page = classes_section(model, y[200:], judgement)
    for words in ("recall", "precision", "F1", "&#x27;well&#x27; is predicted if its probability is at least 0.3"):
        assert words in page
    page = probabilities_section(y[200:], judgement)
    assert page.count("<td>20</td>") == 10 or page.count(">20<") == 10
    assert "Log loss" in page
