"""Comparisons: models of different kinds on the same folds, ranked, with ties, failures and the baseline."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import mercer as mc  # noqa: E402
from mercer.cli.app import run  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.models.judging import comparison  # noqa: E402
from mercer.models.judging.boosting import BoostingClassifier, BoostingRegressor  # noqa: E402
from mercer.models.judging.comparison import DEFAULT, compare  # noqa: E402
from mercer.models.scores import Baseline, judge  # noqa: E402


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pl.DataFrame(
        {
            "a": rng.uniform(-2, 2, 150),
            "b": rng.uniform(-2, 2, 150),
            "city": rng.choice(["Rome", "Oslo"], 150),
        }
    )
    y = np.sin(2 * X["a"].to_numpy()) + (X["city"] == "Rome").to_numpy() + 0.2 * rng.normal(size=150)
    return X, y


def test_models_are_ranked_on_the_same_folds(table):
    X, y = table
    ranking = compare(X, y, ["neighbors", "ridge", "linear", "boosting"], cv=3)
    assert ranking.best.name == "ridge"
    assert ranking.best.tied
    assert ranking.contenders[-1].name == "linear"
    assert "columns of numbers only" in ranking.contenders[-1].failure, "texts are refused, and the others go on"
    values = [contender.score("R²").value for contender in ranking.contenders[:3]]
    assert values == sorted(values, reverse=True)
    rows = [contender.judgement.rows for contender in ranking.contenders[:3]]
    assert all(np.array_equal(rows[0], other) for other in rows)
    train, test = ranking.folds[0]
    from mercer.models import menu

    alone = judge(menu.fit("ridge", X[train], y[train]).model, X[test], y[test], Baseline.of(y[train]))
    np.testing.assert_array_equal(alone.predictions, ranking.best.judgement.predictions[: len(test)])


def test_a_comparison_prints_as_a_table(table):
    X, y = table
    text = str(compare(X.drop("city"), y, ["linear", "ridge"], cv=3))
    lines = text.splitlines()
    assert lines[0] == "150 rows, by cross-validation with 3 folds, ranked by R²"
    assert lines[1].split() == ["model", "R²", "RMSE", "MAE", "time"]
    assert lines[2].split()[:2] == ["1", "ridge"]
    assert lines[4].split()[0] == "baseline"


def test_estimators_of_other_libraries_are_compared_by_name(table):
    X, y = table
    numbers = X.drop("city").to_numpy()
    rivals = {
        "tree": DecisionTreeRegressor(max_depth=4, random_state=0),
        "line": LinearRegression(),
        "ours": mc.Ridge(),
    }
    ranking = compare(numbers, y, rivals, cv=3, by="mae")
    assert ranking.by == "MAE"
    assert ranking.best.name == "tree"
    line, ours = (next(c for c in ranking.contenders if c.name == name) for name in ("line", "ours"))
    assert line.score("MAE").value == pytest.approx(ours.score("MAE").value, rel=0.05)
    assert not hasattr(rivals["line"], "coef_"), "a clone is fitted"


@pytest.mark.thorough
def test_models_within_chance_of_the_best_are_tied():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    same = {"one": mc.Ridge(alpha=1.0), "other": mc.Ridge(alpha=1.1), "wrong": mc.Ridge(alpha=1e6)}
    ranking = compare(X, y, same)
    assert [c.tied for c in ranking.contenders] == [True, True, False]
    assert "=" in str(ranking)
    few = compare(X, y, same, groups=np.arange(200) // 20)
    assert few.contenders[0].tied
    widths = [c.score("RMSE").high - c.score("RMSE").low for c in (ranking.best, few.best)]
    assert widths[0] != widths[1], "intervals of groups"


@pytest.mark.thorough
def test_classes_are_ranked_by_their_probabilities(table):
    X, y = table
    labels = np.where(y > 0.5, "yes", "no")
    ranking = compare(X, labels, ["ridge", "logistic", "boosting"], cv=2)
    assert ranking.by == "log loss"
    assert ranking.measures == ("log loss", "accuracy", "balanced accuracy", "area under ROC")
    assert all(np.isfinite(c.score("log loss").value) for c in ranking.contenders), "all have probabilities"
    numbers = X.select("a", "b")
    models = {"values": mc.LeastSquaresClassifier(), "logistic": mc.LogisticRegression(alpha=1.0)}
    ranking = compare(numbers, labels, models, cv=2)
    assert ranking.contenders[-1].name == "values", "it has no probabilities"
    assert ranking.contenders[-1].score("log loss") is None
    assert not ranking.contenders[-1].tied
    by_accuracy = compare(X, labels, ["ridge", "logistic"], cv=2, by="accuracy")
    assert by_accuracy.contenders[0].score("accuracy").value >= by_accuracy.contenders[1].score("accuracy").value


def test_many_rows_are_sampled_and_held_out_once(table, monkeypatch):
    X, y = table
    monkeypatch.setattr(comparison, "FOLDED", 100)
    ranking = compare(X, y, ["neighbors"], rows=120)
    assert (ranking.rows, ranking.of, len(ranking.folds)) == (120, 150, 1)
    assert ranking.how == "120 of 150 rows: fitted to 96, scored on 24 held-out rows"
    later = compare(X, y, ["neighbors"], times=np.arange(150))
    assert later.folds[0].test.min() > later.folds[0].train.max()


def test_the_default_models_suit_the_rows(table, monkeypatch):
    X, y = table
    suitable = comparison._suitable
    assert "local" not in suitable(X, y, "regression"), "a text"
    assert "linear" in suitable(X, y, "regression"), "listed with the reason why it is not fitted"
    assert suitable(X, y, "regression", {"b": "exposure"}) == ["auto", "boosting"]
    assert {"linear", "local"} <= set(suitable(X.drop("city"), y, "regression"))
    assert "poisson" not in suitable(X, y, "regression")
    assert "poisson" in suitable(X, np.round(np.exp(y)), "regression")
    assert "local" not in suitable(np.zeros((9, 9)), y, "regression")
    assert suitable(X.drop("city"), y > 0, "classification") == list(DEFAULT["classification"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"models": ["rigde"]}, "Did you mean 'ridge'"),
        ({"models": []}, "must name models"),
        ({"models": ["ridge"], "by": "accuracy"}, "`by` must be a score that a model has: 'R²', 'RMSE'"),
        ({"models": ["linear"]}, "At least one model must be fitted"),
        ({"models": ["ridge"], "by": "Poisson deviance"}, "`by` must be a score"),
        ({"models": ["ridge"], "rows": 1}, "`rows` must be a whole number"),
        ({"models": ["ridge"], "time": 0}, "`time` must be a number"),
    ],
)
def test_wrong_requests_are_refused(table, arguments, words):
    X, y = table
    with pytest.raises(InvalidInput, match=words):
        compare(X, y, cv=2, **arguments)


# -- gradient boosting -------------------------------------------------------------------------------------------------


def test_boosting_reads_tables_of_any_kind():
    pd = pytest.importorskip("pandas")
    sp = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    n = 200
    columns = {
        "x": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)),
        "day": np.datetime64("2027-01-01") + rng.integers(0, 300, n),
        "city": rng.choice(["Rome", "Oslo", "Lima"], n),
        "text": [f"row {i}" for i in range(n)],
    }
    y = (columns["city"] == "Oslo") * 2.0 + (columns["day"] > np.datetime64("2027-06-01"))
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns)):
        model = BoostingRegressor().fit(frame, y)
        assert model.score(frame, y) > 0.95
        assert list(model.columns_.levels) == ["x", "day", "city"], "free text is left out"
        assert np.isfinite(model.predict(frame[:5] if isinstance(frame, pl.DataFrame) else frame.iloc[:5])).all()
    new = pl.DataFrame(columns).with_columns(city=pl.lit("Atlantis"))
    assert np.isfinite(model.predict(new)).all(), "a new category is a missing value"
    classifier = BoostingClassifier().fit(sp.csr_matrix(rng.normal(size=(60, 3)) > 1), ["a", "b"] * 30)
    assert classifier.classes_.tolist() == ["a", "b"]
    assert classifier.predict_proba(np.zeros((2, 3))).shape == (2, 2)
    with pytest.raises(InvalidInput, match="free text only"):
        BoostingRegressor().fit(pl.DataFrame({"text": columns["text"]}), y)


# -- the command and the picture ---------------------------------------------------------------------------------------


def told(capsys, *arguments):
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.thorough
def test_the_command_is_the_function(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = table
    X.with_columns(y=pl.Series(y)).write_csv("t.csv")
    arguments = ["compare", "t.csv", "-t", "y", "-m", "ridge", "-m", "neighbors", "-m", "linear", "--folds", 3]
    code, out, err = told(capsys, *arguments, "--json", "--plot", "p.svg")
    assert code == 0, err
    facts = json.loads(out)
    ranking = compare(X, y, ["ridge", "neighbors", "linear"], cv=3)
    assert [m["name"] for m in facts["models"]] == [c.name for c in ranking.contenders]
    assert facts["models"][0]["scores"][0]["value"] == ranking.best.score("R²").value
    assert "takes columns of numbers only, got 'city'" in facts["models"][-1]["failure"]
    assert "R² (greater is better)" in (tmp_path / "p.svg").read_text()
    code, out, _ = told(capsys, *arguments)
    assert "150 rows, by cross-validation with 3 folds. Ranked by R²:" in out
    assert "Linear was not fitted: " in out
    assert "FromFunction" not in out, "advice for Python does not help in the shell"
    assert "Next: mercer fit t.csv --target y --model ridge --folds 3\n" in out
    assert told(capsys, *arguments, "--plot", "p.bmp")[0] == 2
    assert told(capsys, *arguments, "--plot", "t.csv")[0] == 2, "an input is not replaced"


def test_the_next_command_reads_the_table_as_this_one_did(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    code, b = rng.integers(0, 3, size=80), rng.normal(size=80)
    frame = pl.DataFrame({"code": code, "b": b, "spare": b, "y": code + b})
    frame.with_columns(y=pl.when(pl.int_range(80) < 5).then(None).otherwise("y")).write_csv("t.csv", separator=";")
    reading = ["--category", "code", "--drop", "spare", "--delimiter", ";", "--drop-missing-target", "--seed", 3]
    out = told(capsys, "compare", "t.csv", "-t", "y", "-m", "ridge", "-m", "neighbors", *reading)[1]
    following = shlex.split(out.partition("Next: mercer ")[2])
    for option in ("--category code", "--drop spare", "--delimiter ;", "--drop-missing-target", "--seed 3"):
        assert option in " ".join(following)
    assert told(capsys, *following, "--out", "none", "--time", 1)[0] == 0


def test_the_reason_of_a_failure_names_columns_but_no_row_of_a_fold():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    y = X["a"].to_numpy().copy()
    X = X.with_columns(b=pl.when(pl.int_range(60) == 50).then(None).otherwise("b"))
    failure = compare(X, y, ["ridge", "linear"], cv=3).contenders[-1].failure
    assert failure == "it needs a value in every cell, and some are missing in 'b'"


def test_a_model_that_differs_by_the_same_loss_in_every_row_is_ranked_without_warnings():
    X = np.arange(12.0)[:, None]

    class Constant(BaseEstimator, RegressorMixin):
        def __init__(self, value: float) -> None:
            self.value = value

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), self.value)

    ranking = compare(X, np.zeros(12) + 0.1 * (np.arange(12) == 0), {"a": Constant(0.1), "b": Constant(0.7)})
    assert [c.tied for c in ranking.contenders] == [True, False]


def test_the_picture_shows_the_scores(table):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, y = table
    ranking = compare(
        X, y, {"good": mc.KernelRidge(mc.table_kernel(X)), "bad": mc.KernelRidge(mc.Gaussian(1.0).on("b"))}
    )
    picture = mc.plot.Ranking.from_comparison(ranking)
    assert picture.names == ["good", "bad"]
    assert picture.tied.tolist() == [True, False]
    assert picture.values[0] == ranking.best.score("R²").value
    assert picture.ax_.get_xlabel() == "R² (greater is better)"
    other = mc.plot.Ranking.from_comparison(ranking, by="RMSE")
    assert other.values[0] < other.values[1]
    with pytest.raises(InvalidInput, match="a result of mc"):
        mc.plot.Ranking.from_comparison([1])
    with pytest.raises(InvalidInput, match="`by` must be"):
        mc.plot.Ranking.from_comparison(ranking, by="accuracy")
    matplotlib.pyplot.close("all")


@pytest.mark.thorough
def test_counts_over_an_exposure_are_compared_by_their_deviance(monkeypatch, tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"a": rng.uniform(-1, 1, 240), "years": rng.uniform(0.2, 3.0, 240), "c": ["u", "v"] * 120})
    counts = rng.poisson(np.exp(1.0 + X["a"].to_numpy()) * X["years"].to_numpy())
    ranking = compare(X, counts, ["boosting", "ridge"], roles={"years": "exposure"}, cv=2, time=2)
    assert ranking.by == "Poisson deviance"
    assert [contender.name for contender in ranking.contenders] == ["boosting", "ridge"]
    assert "An exposure is for the models" in ranking.contenders[-1].failure
    assert ranking.best.score("Poisson deviance").gain > 0.2
    trees = BoostingRegressor(exposure="years").fit(X, counts)
    twice = X.with_columns(pl.col("years") * 2)
    np.testing.assert_allclose(trees.predict(twice), 2 * trees.predict(X))
    monkeypatch.chdir(tmp_path)
    X.with_columns(n=pl.Series(counts)).write_csv("t.csv")
    assert run(["compare", "t.csv", "-t", "n", "--exposure", "years", "-m", "boosting", "--folds", "2"]) == 0
    out = capsys.readouterr().out
    assert "one rate for all rows" in out
    assert "--exposure years" in out.splitlines()[-1]
