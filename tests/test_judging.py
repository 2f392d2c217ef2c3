"""Judging: cross-validation with groups and time, baselines of the training rows, and rows that were seen before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, roc_auc_score

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import mercer as mc  # noqa: E402
from mercer.cli.app import run  # noqa: E402
from mercer.data.digests import column_keys, row_digests  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.models.conformal import ConformalRegressor, with_intervals  # noqa: E402
from mercer.models.judging import overlap  # noqa: E402
from mercer.models.judging.cross_validation import judge_by_folds  # noqa: E402
from mercer.models.judging.overlap import Seen  # noqa: E402
from mercer.models.judging.unseen import unseen_classes  # noqa: E402
from mercer.models.provenance import Provenance, provenance  # noqa: E402
from mercer.models.scores import Baseline, hold_out, judge  # noqa: E402
from mercer.tuning.folds import make_folds  # noqa: E402


def told(capsys, *arguments):
    """Exit code, stdout and stderr of a command in this process."""
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """Five visits of each of 24 patients, whose level is the patient's own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(24), 5)
    age = rng.uniform(20, 80, 24)[patient]
    level = age / 10 + rng.normal(size=24)[patient] + 0.2 * rng.normal(size=120)
    frame = pl.DataFrame(
        {
            "patient": [f"p{i}" for i in patient],
            "age": age,
            "weight": rng.uniform(50, 90, 24)[patient],
            "day": np.tile(np.arange(5), 24),
            "level": level,
            "high": np.where(level > 5, "yes", "no"),
        }
    )
    frame.write_csv("visits.csv")
    return frame


# -- cross-validation --------------------------------------------------------------------------------------------------


def test_the_scores_of_folds_are_those_of_their_predictions_and_of_the_training_rows(visits):
    X, y = visits.select("age", "weight").to_numpy(), visits["level"].to_numpy()
    folds = make_folds(120, 4)
    judgement = judge_by_folds(lambda X, y: mc.Ridge(alpha=1.0).fit(X, y), X, y, folds)
    predictions, means, medians = np.empty(120), np.empty(120), np.empty(120)
    for train, test in folds:
        predictions[test] = mc.Ridge(alpha=1.0).fit(X[train], y[train]).predict(X[test])
        means[test], medians[test] = y[train].mean(), np.median(y[train])
    np.testing.assert_array_equal(judgement.predictions, predictions[judgement.rows])
    assert judgement["R²"].value == pytest.approx(r2_score(y, predictions))
    assert judgement["R²"].baseline == pytest.approx(r2_score(y, means))
    assert judgement["MAE"].baseline == pytest.approx(mean_absolute_error(y, medians))
    assert (np.bincount(judgement.folds) == 30).all()


def test_the_baseline_of_folds_is_a_rate_with_an_exposure():
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(40, 1)), rng.uniform(0.5, 5.0, 40)
    y = rng.poisson(2 * exposure).astype(float)
    folds = make_folds(40, 4)
    judgement = judge_by_folds(lambda X, y: mc.Ridge().fit(X, y), X, y, folds, exposure=exposure)
    rates = [np.full(len(f.test), y[f.train].sum() / exposure[f.train].sum()) * exposure[f.test] for f in folds]
    errors = y[np.concatenate([f.test for f in folds])] - np.concatenate(rates)
    assert judgement["RMSE"].baseline == pytest.approx(np.sqrt(np.mean(errors**2)))


def test_the_probabilities_of_folds_have_a_column_for_every_class():
    X, y = np.arange(30.0)[:, None], np.array(["a", "b", "c"]).repeat(10)
    folds = [(np.arange(20), np.arange(20, 30)), (np.arange(10, 30), np.arange(10))]
    judgement = judge_by_folds(lambda X, y: mc.LogisticRegression(alpha=1.0).fit(X, y), X, y, make_folds(30, folds))
    assert judgement.classes.tolist() == ["a", "b", "c"]
    assert (judgement.probabilities[:10, 2] == 0).all(), "the first fold was fitted without c"
    assert judgement["accuracy"].value == 0.0
    assert judgement["log loss"].baseline == pytest.approx(-np.log(1e-15)), "the shares of its training rows, too"


def test_probabilities_and_their_baseline_are_measured_as_elsewhere():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 2))
    y = np.where(X[:, 0] + rng.normal(size=90) > 0, "yes", "no")
    folds = make_folds(90, 3, y=y, stratify=True)
    judgement = judge_by_folds(lambda X, y: mc.LogisticRegression(alpha=1.0).fit(X, y), X, y, folds)
    truth = y[judgement.rows]
    assert judgement["log loss"].value == pytest.approx(log_loss(truth, judgement.probabilities))
    assert judgement["area under ROC"].value == pytest.approx(
        roc_auc_score(truth == "yes", judgement.probabilities[:, 1])
    )
    shares = np.concatenate(
        [np.full((len(f.test), 2), [np.mean(y[f.train] == c) for c in ("no", "yes")]) for f in folds]
    )
    assert judgement["log loss"].baseline == pytest.approx(log_loss(truth, shares))


def test_intervals_draw_whole_groups(visits):
    X, y, groups = visits.select("age").to_numpy(), visits["level"].to_numpy(), visits["patient"].to_numpy()
    folds = make_folds(120, 4, groups=groups)

    def widths(**more):
        score = judge_by_folds(lambda X, y: mc.Ridge(alpha=1.0).fit(X, y), X, y, folds, **more)["RMSE"]
        return score.value, score.high - score.low

    alone, together = widths(), widths(groups=groups)
    assert alone[0] == together[0]
    assert together[1] > 1.5 * alone[1], "five visits of a patient are not five patients"
    model = mc.Ridge(alpha=1.0).fit(X[:60], y[:60])
    few = judge(model, X[60:100], y[60:100], groups=groups[60:100])
    assert np.isnan(few["RMSE"].low), "eight groups are too few"


def test_repeats_are_drawn_with_their_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1)), rng.normal(size=40)
    once = judge_by_folds(lambda X, y: mc.Ridge(alpha=1.0).fit(X, y), X, y, make_folds(40, 4))
    again = judge_by_folds(lambda X, y: mc.Ridge(alpha=1.0).fit(X, y), X, y, make_folds(40, 4, repeats=5))
    assert len(again.predictions) == 200
    width = [score.high - score.low for score in (once["RMSE"], again["RMSE"])]
    assert width[1] > 0.8 * width[0], "repeats are no new rows"
    np.testing.assert_array_equal(again.once().predictions, once.predictions)
    assert again.once().scores == again.scores


def test_rows_are_held_out_by_groups_or_by_time(visits):
    y = visits["level"].to_numpy()
    train, test = hold_out(y, 0.25, groups=visits["patient"].to_numpy(), random_state=1)
    patients = visits["patient"].to_numpy()
    assert not np.intersect1d(patients[train], patients[test]).size
    assert len(test) == 30
    train, test = hold_out(y, 0.2, times=visits["day"].to_numpy())
    assert visits["day"].to_numpy()[train].max() == 3
    assert (visits["day"].to_numpy()[test] == 4).all()
    with pytest.raises(InvalidInput, match="groups or by time"):
        hold_out(y, 0.2, times=visits["day"].to_numpy(), groups=patients)
    with pytest.raises(InvalidInput, match="at least two different values"):
        hold_out(y, 0.2, groups=np.zeros(120))


def test_residuals_of_folds_give_intervals():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(120, 1)), rng.uniform(size=120)
    model = mc.SVR().fit(X, y)
    folds = judge_by_folds(lambda X, y: mc.SVR().fit(X, y), X, y, make_folds(120, 4))
    rows = folds.rows
    around = with_intervals(model, X[rows], y[rows], folds.predictions)
    assert isinstance(around, ConformalRegressor)
    np.testing.assert_array_equal(np.sign(around.residuals_), np.sign(y[rows] - folds.predictions))
    lower, upper = around.predict_interval(X, 0.8).T
    assert 0.7 < ((lower <= y) & (y <= upper)).mean() < 0.95


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_folds_score_the_procedure_and_the_model_gets_all_rows(visits, capsys):
    code, out, err = told(
        capsys, "fit", "visits.csv", "-t", "level", "--drop", "high", "-m", "ridge", "--folds", 4, "--repeat", 2,
        "--group", "patient", "--json", "-o", "m.mercer",
    )  # fmt: skip
    assert code == 0, err
    facts = json.loads(out)
    assert facts["judged_on"] == "cross-validation with 4 folds, drawn 2 times, whole groups of 'patient'"
    assert facts["left_out"]["patient"] == "the groups of rows"
    X, y = visits.select("age", "weight", "day"), visits["level"].to_numpy()
    groups = visits["patient"].to_numpy()
    folds = make_folds(120, 4, groups=groups, repeats=2)
    from mercer.models import menu

    judgement = judge_by_folds(
        lambda X, y: menu.fit("ridge", X, y).model, X, y, folds, groups=groups, intervals=True, apart=True
    )
    assert {s["name"]: s["value"] for s in facts["scores"]} == {s.name: s.value for s in judgement.scores}
    model = mc.load("m.mercer")
    assert provenance(model).rows == 120
    assert provenance(model).split.group == "patient"
    np.testing.assert_array_equal(model.predict(X), menu.fit("ridge", X, y).model.predict(X))


def test_the_future_is_held_out(visits, capsys):
    arguments = ["fit", "visits.csv", "-t", "level", "--drop", "high", "--drop", "patient", "-m", "ridge", "-o", "none"]
    code, out, _ = told(capsys, *arguments, "--time-column", "day")
    assert code == 0
    assert "Scores on 24 held-out rows, the last ones by 'day':" in out
    code, out, _ = told(capsys, *arguments, "--time-column", "day", "--folds", 3)
    assert code == 0
    assert "Scores by cross-validation with 3 folds, each predicted from earlier rows by 'day':" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--folds 3 --test-size 0.2", "got --folds and --test-size"),
        ("--folds 3 --refit", "with folds the model gets all rows"),
        ("--repeat 2", "Add --folds 5"),
        ("--group patient --time-column day", "got --group and --time-column"),
        ("--folds 2 --repeat 2 --time-column day", "Leave out --repeat"),
        ("--group pateint", "Did you mean 'patient'?"),
        ("--time-column patient", "numbers or dates for --time-column"),
        ("--folds 30 --group patient", "at most the number of groups"),
    ],
)
def test_ways_to_hold_rows_out_that_contradict_each_other(visits, capsys, options, words):
    code, _, err = told(capsys, "fit", "visits.csv", "-t", "level", "-m", "ridge", "-o", "none", *options.split())
    assert code == 2
    assert words in err


@pytest.mark.thorough
def test_folds_are_fitted_with_weights(visits, capsys):
    weighted = visits.with_columns(count=pl.arange(1, 121) % 3 + 1)
    weighted.write_csv("weighted.csv")
    told_scores = []
    for options in (["--weight", "count"], ["--drop", "count"]):
        arguments = ["fit", "weighted.csv", "-t", "level", "-m", "linear", "-o", "none", "--folds", 3, "--json"]
        code, out, err = told(capsys, *arguments, "--drop", "patient", "--drop", "day", "--drop", "high", *options)
        assert code == 0, err
        told_scores.append(json.loads(out)["scores"][0]["value"])
    assert told_scores[0] != told_scores[1]


def test_a_missing_group_is_named_with_its_row(visits, capsys):
    visits.with_columns(patient=pl.when(pl.arange(120) == 7).then(None).otherwise("patient")).write_csv("gap.csv")
    code, _, err = told(capsys, "fit", "gap.csv", "-t", "level", "--group", "patient", "-o", "none")
    assert code == 2
    assert "none in row 8" in err


def test_a_baseline_says_what_it_is(visits, capsys):
    options = ["--drop", "patient", "-m", "ridge", "-o", "none"]
    out = told(capsys, "fit", "visits.csv", "-t", "level", "--drop", "high", *options)[1]
    assert "Baseline: always the mean of the training targets (for the MAE their median)." in out
    assert "Baseline of the interval score: the middle 90 % of the training targets." in out
    out = told(capsys, "fit", "visits.csv", "-t", "high", "--drop", "level", *options)[1]
    assert "Baseline: always the most frequent class of the training rows (for the log loss the share" in out


# -- rows that were seen -----------------------------------------------------------------------------------------------


def test_digests_are_equal_for_equal_rows_of_any_table():
    pd = pytest.importorskip("pandas")
    columns = {
        "n": [1, 2, 3, 1],
        "x": [0.0, -0.0, np.nan, 0.0],
        "t": ["a", None, "c", "a"],
        "d": np.array(["2027-01-01", "NaT", "2027-01-03", "2027-01-01"], dtype="datetime64[us]"),
    }
    polars, pandas = pl.DataFrame(columns, nan_to_null=True), pd.DataFrame(columns)
    one, other = (row_digests(column_keys(frame)) for frame in (polars, pandas))
    np.testing.assert_array_equal(one, other)
    assert one[0] == one[3]
    assert len(set(one.tolist())) == 3
    assert one[0] == 100913540520021, "the same in every process, since files keep them"


def test_digests_of_sparse_rows_ignore_zeros_and_order():
    sp = pytest.importorskip("scipy.sparse")
    A = sp.csr_matrix(np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]]))
    B = sp.csr_matrix((np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    keys = [row_digests(column_keys(M)) for M in (A, B)]
    assert keys[0][0] == keys[0][2] == keys[1][0] != keys[0][1]
    assert B.nnz == 3, "the matrix is not changed"
    assert column_keys([mc.Graph([(0, 1)])]) is None


def test_rows_are_recognised_also_by_a_sample_of_the_digests(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), rng.normal(size=5000)
    new = np.concatenate([X[:1200], rng.normal(size=(2800, 3))]), np.concatenate([y[:1200], rng.normal(size=2800)])
    exact = Seen.of(X, y).overlap(*new, held_out=False)
    assert (exact.rows, exact.of, exact.exact) == (1200, 4000, True)
    monkeypatch.setattr(overlap, "KEPT", 500)
    sample = Seen.of(X, y)
    assert len(sample.digests) == 500
    found = sample.overlap(*new, held_out=False)
    assert not found.exact
    assert abs(found.rows - 1200) < 250, "by about a tenth of the rows"
    assert "about" in found.words
    X[:, 0] += 1e-9
    assert Seen.of(X, y).overlap(*new).rows == 0


def test_equal_rows_of_few_categories_are_chance():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, size=(400, 3)).astype(float), rng.integers(0, 2, size=400)
    natural = Seen.of(X[:300], y[:300]).overlap(X[300:], y[300:])
    assert natural.share > 0.9
    assert not natural.notable
    X = rng.normal(size=(100, 3))
    copied = np.concatenate([X, X, X])
    train, test = hold_out(np.arange(300.0), 0.2)
    z = np.tile(np.arange(100.0), 3)
    assert Seen.of(copied[train], z[train]).overlap(copied[test], z[test]).notable


@pytest.mark.parametrize("made", [lambda texts: [*texts], lambda texts: pl.DataFrame({"text": texts})])
def test_a_text_that_is_there_twice_is_a_copy_and_not_chance(made):
    texts = np.array([f"message {k} of many" for k in range(90)] + ["call now"] * 10, dtype=object)
    y = np.where(np.arange(100) % 2, "ham", "spam")
    y[90:] = "spam"
    train, test = np.arange(100) % 2 == 0, np.arange(100) % 2 == 1
    found = Seen.of(made(texts[train]), y[train]).overlap(made(texts[test]), y[test])
    assert (found.rows, found.of) == (5, 50)
    assert found.notable


@pytest.mark.thorough
def test_evaluate_notes_rows_that_were_trained_on_and_classes_never_seen(visits, capsys):
    told(capsys, "fit", "visits.csv", "-t", "high", "--drop", "level", "-m", "ridge", "-o", "m.mercer")
    assert provenance(mc.load("m.mercer")).seen.rows == 96
    code, _, err = told(capsys, "evaluate", "m.mercer", "visits.csv")
    assert code == 0
    assert "note: 96 of 120 rows (80 %) are also among the training rows, equal in every column" in err
    new = visits.with_columns(age=pl.col("age") + 0.25, high=pl.lit("perhaps"))
    new.write_csv("new.csv")
    code, out, err = told(capsys, "evaluate", "m.mercer", "new.csv", "--json")
    assert "among the training rows" not in err
    assert "120 rows of 120 have classes that no training row had ('perhaps')" in err
    assert {s["name"]: s["value"] for s in json.loads(out)["scores"]}["accuracy"] == 0.0


@pytest.mark.thorough
def test_numbers_that_are_new_classes_are_compared_and_words_are_refused(visits, capsys):
    visits.with_columns(high=(pl.col("high") == "yes").cast(pl.Int64)).write_csv("numbers.csv")
    assert told(capsys, "fit", "numbers.csv", "-t", "high", "--drop", "level", "-m", "ridge", "-o", "m.mercer")[0] == 0
    visits.with_columns(high=pl.lit(7)).write_csv("new.csv")
    code, _, err = told(capsys, "evaluate", "m.mercer", "new.csv")
    assert code == 0
    assert "classes that no training row had (7)" in err
    visits.write_csv("words.csv")
    assert "must hold classes of the model, got 'no'" in told(capsys, "evaluate", "m.mercer", "words.csv")[2]
    model = mc.load("m.mercer")
    assert unseen_classes(model, [0, 1, 0]).rows == 0
    assert unseen_classes(mc.Ridge().fit(np.eye(2), [1.0, 2.0]), [1.0]) is None


def test_the_worst_rows_are_counted_in_the_file(visits, capsys):
    gaps = visits.with_columns(level=pl.when(pl.arange(120) < 50).then(None).otherwise("level"))
    far = gaps.with_columns(level=pl.when(pl.arange(120) == 99).then(1000.0).otherwise("level"))
    told(capsys, "fit", "visits.csv", "-t", "level", "--drop", "high", "-m", "ridge", "-o", "m.mercer")
    far.write_csv("far.csv")
    fit = ["fit", "far.csv", "-t", "level", "--drop", "high", "-m", "ridge", "-o", "far.mercer", "--refit", "--json"]
    code, said, err = told(capsys, *fit, "--drop-missing-target", "--report", "far.html")
    assert code == 0, err
    assert {"kind": "Dropped", "rows": 50, "total": 120}.items() <= json.loads(said)["cautions"][0].items()
    page = Path("far.html").read_text()
    assert "50 of 120 rows were dropped because they have no target" in page
    assert "From far.csv, fitted on" in page, "although the saved model is another one"
    assert "The saved model was fitted again to all 70 rows after the scores" in page
    out = told(capsys, "evaluate", "m.mercer", "far.csv", "--drop-missing-target", "--json", "--worst", 1)[1]
    assert json.loads(out)["worst"][0]["row"] == 100


def test_the_baseline_is_that_of_the_training_rows():
    y = np.array([0.0, 0.0, 9.0])
    model = mc.Ridge().fit(np.eye(3), y)
    judged = judge(model, np.eye(3)[:2], np.array([1.0, 5.0]), Baseline.of(y))
    assert judged["RMSE"].baseline == pytest.approx(2.0), "their mean is 3"
    assert judged["MAE"].baseline == pytest.approx(3.0), "the median of the training targets is 0"
    assert Provenance.of(np.eye(3), y).baseline == Baseline.of(y)
