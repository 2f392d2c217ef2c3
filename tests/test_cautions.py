"""Cautions: columns that hold the answer, copies of training rows, drift and extrapolation are named; chance is not."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import mercer as mc  # noqa: E402
from mercer.cli.app import run  # noqa: E402
from mercer.models.judging.drift import Distribution, Drift, drift  # noqa: E402
from mercer.models.judging.leakage import find_leaks, leakage  # noqa: E402
from mercer.models.judging.new_rows import Far, Watch, far_from_training  # noqa: E402
from mercer.models.judging.overlap import Overlap  # noqa: E402
from mercer.models.judging.unseen import NewlyMissing, Outside, UnseenValues  # noqa: E402
from mercer.models.provenance import Provenance  # noqa: E402


def told(capsys, *arguments):
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# -- leaks -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sales():
    rng = np.random.default_rng(0)
    frame = {
        "quantity": rng.integers(1, 50, 400),
        "price": rng.uniform(1, 9, 400),
        "shipping": rng.exponential(5, 400),
        "region": rng.choice(["north", "south", "east"], 400),
        "day": np.datetime64("2027-01-01") + rng.integers(0, 300, 400),
    }
    return pl.DataFrame(frame)


def named(X, y, **how):
    return [(leak.rule, set(leak.columns)) for leak in find_leaks(X, y, **how)]


def test_columns_that_reproduce_the_target(sales):
    quantity, price, shipping = (sales[name].to_numpy() for name in ("quantity", "price", "shipping"))
    noise = np.random.default_rng(1).normal(size=400)
    assert named(sales, 3 * shipping + 2 * price + noise) == [], "a noisy law is no leak"
    assert named(sales, 3 * shipping + 2 * price) == [("sum", {"shipping", "price"})]
    assert named(sales, quantity * price) == [("product", {"quantity", "price"})]
    assert named(pd.DataFrame(sales.to_dict(as_series=False)), quantity * price) == [("product", {"quantity", "price"})]
    assert named(sales, shipping * 1.19) == [("column", {"shipping"})], "another currency"
    assert named(sales, np.exp(shipping)) == [("column", {"shipping"})], "any increasing function"
    assert named(sales, np.sin(price)) == [("column", {"price"})], "or a smooth one"
    assert named(sales.select("shipping"), shipping) == [], "a table of one column is a curve"
    level = {"north": 1.0, "south": 5.0, "east": 2.5}
    assert named(sales, np.array([level[region] for region in sales["region"]])) == [("column", {"region"})]


def test_a_leak_is_measured_on_other_rows_and_in_words(sales):
    (leak,) = find_leaks(sales, sales["price"].to_numpy() + sales["shipping"].to_numpy(), target="total")
    assert leak.score > 1 - 1e-9
    np.testing.assert_allclose(leak.weights, 1.0, rtol=1e-6)
    assert "the target 'total' is almost exactly the sum of the columns" in leak.words
    assert "leave them out" in leak.words
    unique = sales.with_columns(key=pl.Series([f"row {i}" for i in range(400)]))
    assert named(unique, sales["price"].to_numpy() + np.random.default_rng(0).normal(size=400)) == []
    wide = np.random.default_rng(0).normal(size=(60, 50))
    assert named(wide, np.random.default_rng(1).normal(size=60)) == [], "50 columns fit 60 rows by chance"
    total = sales.with_columns(total=pl.col("price") * 2)
    assert named(total, total["total"].to_numpy() + 3.0)[0][0] == "column"


def test_columns_that_hold_the_class(sales):
    expensive = sales["price"].to_numpy() > 4
    rng = np.random.default_rng(0)
    assert named(sales, expensive, classes=True) == [("column", {"price"})]
    assert named(sales.drop("price"), expensive, classes=True) == []
    status = np.where(expensive, "won", "lost")
    noisy = np.where(rng.uniform(size=400) < 0.03, ~expensive, expensive)
    answered = sales.drop("price").with_columns(status=pl.Series(status))
    assert named(answered, expensive, classes=True) == [("column", {"status"})]
    assert named(answered, noisy, classes=True) == [], "right for 97 % of the rows"
    three = np.digitize(sales["shipping"].to_numpy(), [2, 8])
    assert named(sales, three, classes=True) == [("column", {"shipping"})]
    rare = np.arange(400) < 2
    assert named(sales, rare, classes=True) == [], "always saying no is right for most rows, but not of each class"


def test_tables_without_columns_have_no_leaks():
    sp = pytest.importorskip("scipy.sparse")
    y = np.arange(50.0)
    assert find_leaks(sp.csr_matrix(y[:, None]), y) == ()
    assert find_leaks([mc.Graph([(0, 1)])] * 50, y) == ()
    assert find_leaks(np.column_stack([y, y])[:10], y[:10]) == (), "ten rows show nothing"
    gaps = np.column_stack([np.where(y < 5, np.nan, y), y % 7])
    assert find_leaks(gaps, y) == (), "a column with missing values does not give them"


def test_copies_among_held_out_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    again = np.concatenate([X[:80], X[:10], X[80:]]), np.concatenate([y[:80], y[:10], y[80:]])
    (overlap,) = leakage(again[0][:80], again[1][:80], (again[0][80:], again[1][80:]))
    assert isinstance(overlap, Overlap)
    assert (overlap.rows, overlap.of) == (10, 30)
    assert leakage(X[:80], y[:80], (X[80:], y[80:])) == ()


# -- drift -------------------------------------------------------------------------------------------------------------


def test_a_drift_is_the_largest_difference_of_shares():
    rng = np.random.default_rng(0)
    training = Distribution.of(rng.normal(size=2000))
    new = rng.normal(loc=1.0, size=1000)
    moved = drift("x", training, training.counts(new))
    edges = np.asarray(training.edges)
    there = (new[:, None] <= edges).mean(axis=0)
    assert moved.distance == pytest.approx(np.abs(there - np.cumsum(training.shares)[:-1]).max())
    assert moved.notable
    levels = Distribution.of(np.array(["a"] * 60 + ["b"] * 40, dtype=object))
    changed = drift("t", levels, levels.counts(np.array(["a"] * 20 + ["c"] * 80, dtype=object)))
    assert changed.distance == pytest.approx(0.8)
    assert changed.where is None, "most of the change is in a new level"
    assert "values that are rare or new" in changed.words


@pytest.mark.parametrize("rows", [3, 30, 300])
def test_rows_of_the_same_kind_hardly_ever_drift(rows):
    rng = np.random.default_rng(rows)
    numbers = Distribution.of(rng.normal(size=500))
    words = Distribution.of(rng.choice(list("abcdefgh"), 500).astype(object))
    alarms = 0
    for _ in range(200):
        alarms += drift("x", numbers, numbers.counts(rng.normal(size=rows))).notable
        alarms += drift("t", words, words.counts(rng.choice(list("abcdefgh"), rows).astype(object))).notable
    assert alarms == 0


def test_constant_integers_and_other_kinds():
    same = Distribution.of(np.full(50, 3))
    assert drift("c", same, same.counts(np.full(40, 4))).distance == 1.0
    assert Distribution.of(np.array([date(2027, 1, 1)] * 3, dtype=object)) is None
    assert Distribution.of(np.array([np.nan])) is None
    flags = Distribution.of(np.array([True, False, True]))
    assert flags.levels == ("True", "False")
    assert drift("x", same, same.counts(np.array([]))) is None


# -- new rows ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = pl.DataFrame(
        {
            "size": rng.uniform(0, 10, 300),
            "age": rng.uniform(0, 10, 300),
            "city": rng.choice(["Rome", "Oslo"], 300),
            "sold": [date(2026, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 300, 300)],
        }
    )
    y = X["size"].to_numpy() + rng.normal(size=300)
    model = mc.KernelRidge(mc.table_kernel(X), alpha=1.0).fit(X, y)
    model.provenance_ = Provenance.of(X, y)
    return model, X


def kinds(model, X):
    watch = Watch(model)
    watch.add(X)
    return {type(caution): caution for caution in watch.cautions()}


def test_new_rows_like_the_training_rows_raise_no_doubt(fitted):
    model, X = fitted
    assert kinds(model, X) == {}
    assert kinds(model, X[:10]) == {}


@pytest.mark.thorough
def test_new_rows_are_compared_with_the_training_rows(fitted, tmp_path):
    model, X = fitted
    model.save(tmp_path / "m.mercer")
    for kept in (model, mc.load(tmp_path / "m.mercer")):
        far = kinds(kept, X.with_columns(age=pl.col("age") * 3, city=pl.lit("Lima")))
        assert far[UnseenValues].rows > 0
        later = kinds(kept, X.with_columns(sold=pl.col("sold") + pl.duration(days=400)))
        assert later[Outside].columns == ("sold",)
        assert later[Outside].share == 1.0
        little = kinds(kept, X.with_columns(age=pl.col("age") + 2))
        assert (little[Outside].columns, little[Drift].column) == (("age",), "age")
        missing = kinds(kept, X.with_columns(size=pl.when(pl.arange(300) < 7).then(None).otherwise("size")))
        assert missing[NewlyMissing].cells == 7
        apart = kinds(kept, X.with_columns(age=pl.col("age") + 40, size=pl.col("size") - 40))
        assert apart[Far].share > 0.9


def test_columns_that_the_kernel_does_not_read_raise_no_doubt():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"size": rng.uniform(0, 10, 300), "age": rng.uniform(0, 10, 300)})
    y = X["size"].to_numpy()
    model = mc.KernelRidge(mc.Gaussian(5.0).on("size") + 1.0, alpha=1.0).fit(X, y)
    model.provenance_ = Provenance.of(X, y)
    assert kinds(model, X.with_columns(age=pl.col("age") + 40)) == {}
    assert kinds(model, X.with_columns(size=pl.col("size") + 40)) != {}


def test_batches_are_watched_together(fitted):
    model, X = fitted
    watch = Watch(model)
    moved = X.with_columns(age=pl.col("age") / 3)
    for start in range(0, 300, 50):
        watch.add(moved[start : start + 50])
    assert [caution.column for caution in watch.cautions() if isinstance(caution, Drift)] == ["age"]
    assert watch.rows == 300


def test_a_model_on_centres_does_not_know_all_its_rows(fitted):
    model, X = fitted
    y = np.arange(300.0)
    few = mc.KernelRidge(mc.table_kernel(X), alpha=1.0, solver="nystrom", n_centers=40).fit(X, y)
    few.provenance_ = Provenance.of(X, y)
    assert far_from_training(few, X) is None
    assert far_from_training(mc.Ridge().fit(np.eye(3), [1.0, 2.0, 3.0]), np.eye(3)) is None
    near = far_from_training(model, X)
    assert near.rows == 0, "each training row is its own neighbour"


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_command_and_the_report_name_a_leak(sales, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mercer.report.document._Page._drawn", lambda *args, **how: "")
    sales.with_columns(total=pl.col("price") + pl.col("shipping")).write_csv("sales.csv")
    code, out, err = told(
        capsys, "fit", "sales.csv", "-t", "total", "-m", "ridge", "-o", "m.mercer", "--report", "r.html", "--json"
    )
    assert code == 0, err
    assert "the target 'total' is almost exactly the sum of the columns" in err
    assert "--drop shipping" in err
    (caution,) = json.loads(out)["cautions"]
    assert caution["kind"] == "Leak"
    assert sorted(caution["columns"]) == ["price", "shipping"]
    page = (tmp_path / "r.html").read_text()
    assert page.index("Before you rely on it") < page.index("is almost exactly the sum") < page.index("<h2>Scores")
    moved = sales.with_columns(price=pl.col("price") / 4)
    moved.write_csv("new.csv")
    code, out, err = told(capsys, "predict", "m.mercer", "new.csv", "-o", "p.csv", "--json")
    assert code == 0
    assert json.loads(out)["cautions"][0]["kind"] == "Drift"
    assert "column 'price' differs from the training rows" in err
