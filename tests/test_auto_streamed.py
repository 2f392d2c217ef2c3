"""Automatic models of rows in batches: the search of a sample, the last fit of all rows, whatever the batches."""

import json

import numpy as np
import polars as pl
import pytest

import mercer as mc
from mercer.data import batches as module
from mercer.data.batches import Batches
from mercer.data.sampling import Witnesses, drawn
from mercer.models.auto import streamed

N = 500


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A sample of 200 rows, and batches of 120 rows of five columns."""
    monkeypatch.setattr(streamed, "TYPED_ROWS", 200)
    monkeypatch.setattr(module, "HELD", 600)
    monkeypatch.setattr(streamed, "PILOT_CENTRES", 60)


def table(missing=True):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=N), rng.normal(size=N)
    city = np.array(["Rome", "Oslo", "Bern"])[rng.integers(0, 3, N)]
    f = np.sin(2 * a) + (city == "Rome")
    b = [None if missing and i == 400 else v for i, v in enumerate(b)]
    e = rng.uniform(0.5, 2.0, N)
    columns = {"a": a, "b": b, "city": city, "years": e, "y": f + 0.1 * rng.normal(size=N)}
    return pl.DataFrame(columns), rng.poisson(e * np.exp(f)), np.where(f > 0.5, "high", "low")


def fitted(model, path, frame, target):
    frame.write_parquet(path)
    return model.fit(path, target=target)


def test_a_table_with_texts_and_a_missing_value(tmp_path):
    """The only missing value is a row that a sample of 200 would hardly hold."""
    frame, *_ = table()
    seen = []
    model = mc.AutoRegressor(time=0.05, roles={"years": "drop"}, progress=seen.append)
    fitted(model, tmp_path / "t.parquet", frame, "y")
    X = frame.drop("y")
    assert model.score(X, frame["y"].to_numpy()) > 0.95
    assert model.last_fit_.rows == model.last_fit_.total == N
    low, high = model.predict_interval(X).T
    assert 0.85 < ((low <= frame["y"].to_numpy()) & (frame["y"].to_numpy() <= high)).mean() < 0.96
    assert "read 3 times" in str(model.choices_)
    assert any("row 500 of 500" in str(step) for step in seen)
    model.save(tmp_path / "m.mercer")
    np.testing.assert_allclose(mc.load(tmp_path / "m.mercer").predict_interval(X), model.predict_interval(X))


def test_the_same_model_for_other_batches(tmp_path, monkeypatch):
    frame, *_ = table(missing=False)
    model = mc.AutoRegressor(time=0.05, roles={"years": "drop"})
    first = fitted(model, tmp_path / "t.parquet", frame, "y").predict(frame.drop("y"))
    monkeypatch.setattr(module, "HELD", 10**6)
    again = mc.AutoRegressor(time=0.05, roles={"years": "drop"}).fit(tmp_path / "t.parquet", target="y")
    assert again.kernel_ == model.kernel_
    np.testing.assert_allclose(again.predict(frame.drop("y")), first, rtol=1e-7)


@pytest.mark.thorough
def test_counts_over_an_exposure(tmp_path):
    frame, counts, _ = table(missing=False)
    model = mc.AutoRegressor(time=0.05, roles={"years": "exposure"})
    fitted(model, tmp_path / "t.parquet", frame.drop("y").with_columns(k=counts), "k")
    X = frame.drop("y")
    assert model.loss_ == "poisson"
    assert np.corrcoef(model.predict(X), counts)[0, 1] > 0.6
    np.testing.assert_allclose(model.predict(X).sum(), counts.sum(), rtol=0.02)
    assert model.predict_interval(X).shape == (N, 2)


def test_classes(tmp_path):
    frame, _, labels = table(missing=False)
    rare = np.where(np.arange(N) == 400, "rare", np.where(np.arange(N) == 401, "rare", labels))
    model = mc.AutoClassifier(time=0.05, roles={"years": "drop"})
    fitted(model, tmp_path / "t.parquet", frame.drop("y").with_columns(k=rare), "k")
    assert list(model.classes_) == ["high", "low", "rare"]
    assert model.score(frame.drop("y"), rare) > 0.9
    P = model.predict_proba(frame.drop("y"))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_arrays_and_functions():
    frame, *_ = table(missing=False)
    X, y = frame.select("a", "b").to_numpy(), np.exp(frame["y"].to_numpy())
    model = mc.AutoRegressor(time=0.05, loss="log").fit(Batches(lambda: iter([(X[:300], y[:300]), (X[300:], y[300:])])))
    assert model.loss_ == "log"
    low, high = model.predict_interval(X).T
    assert (low > 0).all()
    assert 0.84 < ((low <= y) & (y <= high)).mean() < 0.97


def test_what_is_refused(tmp_path):
    frame, *_ = table(missing=False)
    X, y = frame.select("a", "b").to_numpy(), frame["y"].to_numpy()
    model = mc.AutoRegressor(time=0.05)
    for words, call in {
        "'robust' needs all rows in memory": lambda: mc.AutoRegressor(time=0.05, loss="robust").fit(Batches(X), y),
        "must have targets, got rows alone": lambda: model.fit(Batches(X)),
        "one entry for each of the 500 rows": lambda: model.fit(Batches(X), y[:5]),
        "Weights of rows in batches must be > 0": lambda: model.fit(Batches(X), y, np.arange(N)),
        "got target='y' with X in memory": lambda: model.fit(X, y, target="y"),
    }.items():
        with pytest.raises(mc.InvalidInput, match=words):
            call()


def test_a_sample_holds_its_witnesses_whatever_the_batches(monkeypatch):
    X, y = np.arange(1000.0)[:, None], np.where(np.arange(1000) < 998, 0, 1)

    def draw(step):
        source = Batches(lambda: ((X[i : i + step], y[i : i + step]) for i in range(0, 1000, step)))
        return drawn(source, 10, np.random.default_rng(1), Witnesses(classes=True)).at

    first = draw(70)
    assert {998, 999, 0, 1} <= set(first.tolist())
    assert len(first) == 14
    assert sorted(draw(333).tolist()) == sorted(first.tolist())


def test_some_rows_of_a_source():
    X = np.arange(20.0)[:, None]
    source = Batches(lambda: ((X[i : i + 6], X[i : i + 6, 0]) for i in range(0, 20, 6)))
    rest = source.without([3, 4, 19])
    assert rest.n == 17
    assert sum(len(A) for A, _ in rest) == 17
    np.testing.assert_array_equal(source.at([19, 4])[0].ravel(), [4.0, 19.0])
    np.testing.assert_array_equal(rest.at([3])[1], [5.0])
    assert source.as_tables().tables is False


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def little_memory(monkeypatch):
    """Fits that take so much memory that no table fits the budget, and a sample of 200 rows."""
    from mercer.cli import large

    monkeypatch.setattr(large, "SAMPLE", 200)
    monkeypatch.setattr(large, "COPIES", 10**12)


def run(capsys, *arguments):
    from mercer.cli.app import run as command

    code = command([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


@pytest.mark.thorough
def test_mercer_fit_of_a_file_beyond_memory(tmp_path, capsys, little_memory):
    frame, *_ = table()
    data, out = tmp_path / "t.parquet", tmp_path / "m.mercer"
    frame.write_parquet(data)
    code, text, err = run(capsys, "fit", data, "-t", "y", "--drop", "years", "--time", 0.1, "-o", out, "--json")
    assert code == 0, err
    facts = json.loads(text)
    assert facts["rows"] == N
    assert facts["last_fit"]["rows"] == facts["last_fit"]["total"] == N - 40
    assert facts["scores"][0]["value"] > 0.8
    assert any("read in batches" in note for note in facts["notes"])
    model = mc.load(out)
    assert model.provenance_.rows == N - 40
    assert len(model.predict(frame.drop("y", "years"))) == N


@pytest.mark.thorough
def test_mercer_fit_of_a_folder_of_classes(tmp_path, capsys, little_memory):
    frame, _, labels = table(missing=False)
    frame = frame.drop("y").with_columns(k=labels)
    for i in range(2):
        frame[i * 250 : (i + 1) * 250].write_parquet(tmp_path / f"{i}.parquet")
    code, text, err = run(
        capsys, "fit", tmp_path, "-t", "k", "--weight", "years", "--time", 0.1, "-o", "none", "--json"
    )
    assert code == 0, err
    assert json.loads(text)["model"] == "LeastSquaresClassifier"
    for options in (["--folds", 3], ["--model", "ridge"], ["--plan"], ["--group", "city"]):
        code, _, err = run(capsys, "fit", tmp_path, "-t", "k", *options)
        assert code == 2
        assert f"{options[0]} needs a table that fits into memory" in err


def test_a_missing_target_beyond_the_sample_is_named(tmp_path, capsys, little_memory):
    frame, *_ = table(missing=False)
    frame.with_columns(y=pl.when(pl.int_range(N) == 3).then(None).otherwise("y")).write_parquet(tmp_path / "t.parquet")
    code, _, err = run(capsys, "fit", tmp_path / "t.parquet", "-t", "y", "--time", 0.1)
    assert code == 2
    assert "must have a value in every row, got rows without one" in err or "without one: " in err
