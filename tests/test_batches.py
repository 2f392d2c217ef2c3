"""Rows in batches: the same model as from an array, whatever the source and the sizes of the batches."""

import pickle

import numpy as np
import polars as pl
import pytest

import mercer as mc
from mercer.data import batches as module
from mercer.data.sampling import drawn
from mercer.solvers import costs, nystrom

N, D = 700, 3
NAMES = ["a", "b", "c"]


def data(dtype="float64"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(dtype)
    return X, np.sin(X[:, 0].astype(float)) + 0.1 * rng.normal(size=N) + 1.0


@pytest.fixture
def small(monkeypatch):
    """Batches of 64 numbers."""
    monkeypatch.setattr(module, "HELD", 64)


def frame(X, y):
    return pl.DataFrame({**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": y}).select("a", "y", "b", "c")


def pairs(X, y, step):
    def read():
        for i in range(0, N, step):
            yield X[i : i + step], y[i : i + step]

    return read


def sources(X, y, folder):
    """Every kind of source of the same rows, with the further arguments of `fit`."""
    frame(X, y).write_parquet(folder / "rows.parquet", row_group_size=50)
    frame(X, y).write_ipc(folder / "rows.arrow")
    parts = folder / "parts"
    parts.mkdir()
    for i, part in enumerate(np.array_split(np.arange(N), 3)):
        frame(X[part], y[part]).write_parquet(parts / f"{i}.parquet")
    np.save(folder / "X.npy", X)
    mapped = np.memmap(folder / "raw", X.dtype, "w+", shape=X.shape)
    mapped[:] = X
    return {
        "parquet": (str(folder / "rows.parquet"), {"target": "y"}),
        "arrow": (folder / "rows.arrow", {"target": "y"}),
        "folder": (parts, {"target": "y"}),
        "npy": (folder / "X.npy", {"y": y}),
        "mapped": (mc.Batches(mapped), {"y": y}),
        "function": (mc.Batches(pairs(X, y, 77)), {}),
        "one batch": (mc.Batches(pairs(X, y, N)), {}),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "sample_weight": True}], ids=["plain", "weights"])
def test_every_source_gives_the_model_of_the_array(options, small, tmp_path):
    X, y = data()
    options = dict(options)
    w = np.random.default_rng(1).uniform(0.5, 2.0, N) if options.pop("sample_weight", False) else None
    Z = X[::50] + 0.1
    expected = None
    for kind, (source, arguments) in sources(X, y, tmp_path).items():
        model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.1, n_centers=40, **options)
        model.fit(source, sample_weight=w, **arguments)
        assert model.solver_ == "nystrom", kind
        if expected is None:
            # The centres are rows, drawn by the seed; an array with the same centres gives the same function.
            assert (model.function_.points.raw[:, None] == X).all(axis=2).any(axis=1).all()
            again = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.1, centers=model.function_.points.raw, **options)
            expected = again.fit(X, y, w).predict(Z)
        predicted = model.predict(pl.DataFrame(Z, schema=NAMES) if hasattr(model, "feature_names_in_") else Z)
        np.testing.assert_allclose(predicted, expected, rtol=1e-8, atol=1e-8, err_msg=kind)
        assert hasattr(model, "feature_names_in_") == (kind in ("parquet", "arrow", "folder"))


@pytest.mark.parametrize("weighted", [False, True])
def test_alpha_by_leave_one_out_is_that_of_the_array(weighted, small):
    """Every row is judged here, so the path is the one in memory; without any of them it would be a sample's."""
    X, y = data()
    w = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha="loo", n_centers=40, fit_intercept=True).fit(mc.Batches(X), y, w)
    centres = model.function_.points.raw
    exact = mc.KernelRidge(mc.Gaussian(1.5), alpha="loo", centers=centres, fit_intercept=True).fit(X, y, w)
    np.testing.assert_allclose(model.alpha_, exact.alpha_, rtol=1e-6)
    np.testing.assert_allclose(model.loo_score_, exact.loo_score_, rtol=1e-9)
    kept = model.left_out_
    assert len(kept.at) == N
    np.testing.assert_allclose(kept.predictions[:, 0], exact.loo_predictions_[kept.at], atol=1e-8)


@pytest.mark.thorough
def test_a_table_with_texts_and_missing_values(small, tmp_path):
    X, y = data()
    city = np.array(["Rome", "Oslo", None], dtype=object)[np.arange(N) % 3]
    table = pl.DataFrame({"a": X[:, 0], "city": city, "b": np.where(np.arange(N) == 5, None, X[:, 1]).tolist(), "y": y})
    table.write_parquet(tmp_path / "t.parquet")
    model = mc.KernelRidge(mc.TableKernel(), alpha="loo", n_centers=50).fit(tmp_path / "t.parquet", target="y")
    memory = mc.KernelRidge(model.kernel_, alpha=model.alpha_, centers=model.function_.points.raw)
    memory.fit(table.drop("y"), y)
    np.testing.assert_allclose(model.predict(table.drop("y")), memory.predict(table.drop("y")), atol=1e-7)


def test_many_rows_per_centre_and_float32(small, monkeypatch):
    """A sample of rows as the preconditioner, float32 passes: as for an array, within the tolerance."""
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0.0)
    monkeypatch.setattr(nystrom, "sample_size", lambda n, m, tol: 4 * m)
    X, y = data("float32")
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.5, n_centers=20).fit(mc.Batches(X), y)
    assert "float32" in model.status_
    assert "steps of conjugate gradients" in model.status_
    exact = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.5, centers=model.function_.points.raw, tol=1e-6).fit(X, y)
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 5e-3


def test_nothing_holds_all_rows(small):
    """No array that a pass makes has as many rows as the source."""
    X, y = data()
    largest = []

    def read():
        for i in range(0, N, 50):
            part = X[i : i + 50].copy()
            largest.append(len(part))
            yield part, y[i : i + 50]

    model = mc.KernelRidge(alpha=0.1, n_centers=30).fit(mc.Batches(read))
    passes = len(largest) / 14
    assert passes == int(passes)
    assert 3 <= passes <= 8
    assert len(model.function_) == 30


def test_the_model_is_saved_and_says_what_it_lacks(tmp_path, small):
    X, y = data()
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.1, n_centers=30).fit(mc.Batches(X), y)
    with pytest.raises(mc.InvalidInput, match=r"needs its training rows.*Fit the model again, to an array"):
        _ = model.loo_predictions_
    model.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mc.load(tmp_path / "m.mercer").predict(X[:5]), model.predict(X[:5]))
    model.fit(X, y)
    assert len(model.loo_predictions_) == N


def test_a_rule_sees_a_sample(small):
    X, y = data()
    seen = []

    def rule(Z):
        seen.append(len(Z))
        return mc.Gaussian(1.0)

    mc.KernelRidge(rule, n_centers=10).fit(mc.Batches(X), y)
    assert seen == [N]  # fewer rows than a sample takes
    assert mc.KernelRidge(n_centers=10).fit(mc.Batches(X), y).kernel_.sigma > 0


def test_a_sample_does_not_depend_on_the_batches(monkeypatch):
    X, y = data()
    draw = lambda source: drawn(source, 20, np.random.default_rng(3))  # noqa: E731
    first, second = draw(mc.Batches(pairs(X, y, 11))), draw(mc.Batches(X))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, y)
    assert len(np.unique(first.X, axis=0)) == 20


def test_empty_batches_are_passed_over(small):
    X, y = data()
    some = mc.Batches(lambda: iter([(X[:0], y[:0]), (X[:100], y[:100]), (X[:0], y[:0]), (X[100:], y[100:])]))
    model = mc.KernelRidge(mc.Gaussian(1.0), n_centers=20)
    np.testing.assert_allclose(model.fit(some).predict(X), model.fit(mc.Batches(X), y).predict(X), atol=1e-8)


def test_a_function_may_use_its_arrays_again():
    X, y = data()
    rows, targets = np.empty((100, X.shape[1])), np.empty(100)

    def reused():
        for i in range(0, N, 100):
            rows[:], targets[:] = X[i : i + 100], y[i : i + 100]
            yield rows, targets

    np.testing.assert_array_equal(drawn(mc.Batches(reused), 20, np.random.default_rng(3)).y, y)


def refusals(folder):
    X, y = data()
    fit = lambda *args, **kwargs: lambda: mc.KernelRidge(n_centers=5).fit(*args, **kwargs)  # noqa: E731
    pl.DataFrame({"a": [1.0, None], "y": [0.0, 1.0]}).write_parquet(folder / "missing.parquet")
    pl.DataFrame({"a": ["x", "z"], "y": [0.0, 1.0]}).write_parquet(folder / "texts.parquet")
    (folder / "a.txt").write_text("1")
    (folder / "empty").mkdir()
    (folder / "none.npy").write_bytes(b"")
    np.savez(folder / "several.npz", a=X)
    (folder / "several.npz").rename(folder / "several.npy")
    np.save(folder / "objects.npy", np.array([["a", None]], dtype=object))
    (folder / "broken.parquet").write_bytes(b"no Parquet" * 10)
    (folder / "mixed").mkdir()
    for i, values in enumerate(([1.0, 2.0], [1, 2])):
        pl.DataFrame({"a": values, "y": [0.0, 1.0]}).write_parquet(folder / "mixed" / f"{i}.parquet")
    passes = iter([X[:600], X[:600], *[X] * 9])
    once = iter([(X, y)])
    broken = lambda: iter([(X, y[:5])])  # noqa: E731
    model = lambda **more: lambda: mc.KernelRidge(**more).fit(mc.Batches(X), y)  # noqa: E731
    return {
        "rows from 0 on must be complete": fit(folder / "missing.parquet", target="y"),
        "Column 'a' must be numeric": fit(folder / "texts.parquet", target="y"),
        r"must be a column of the file, got 'z'\. Choose one of the columns a, y": fit(
            folder / "missing.parquet", target="z"
        ),
        "must come from a .parquet": fit(folder / "a.txt", target="y"),
        "must hold an array of numbers, got .*none.npy'": fit(folder / "none.npy", y),
        "must hold an array of numbers, got .*several.npy'": fit(folder / "several.npy", y),
        r"objects.npy': .*Python objects.*\. Write it by np.save": fit(folder / "objects.npy", y),
        "Files of rows must be complete.*broken.parquet": fit(folder / "broken.parquet", target="y"),
        "have the same columns of the same types, got .*mixed'": fit(folder / "mixed", target="y"),
        "rows from 700 on must have 3 columns.*, got 2 columns": fit(mc.Batches(lambda: iter([X, X[:, :2]])), y),
        "the same 600 rows at every pass, got 700 rows": fit(mc.Batches(lambda: iter([next(passes)])), y[:600]),
        "a function that starts anew at every call, got list_iterator": lambda: mc.Batches(iter([X])),
        "with files of 0 kinds": fit(folder / "empty", target="y"),
        "must exist": fit(folder / "none.parquet", target="y"),
        "names a column of a file, got target='y' with X in memory": fit(X, y, target="y"),
        "in place of y, got target='y' and y": fit(folder / "missing.parquet", [0.0, 1.0], target="y"),
        "in place of y, got target='y' and rows in batches": fit(mc.Batches(X), target="y"),
        "names a column of a file, got target='y' with ndarray": lambda: mc.Batches(X, "y"),
        "two dimensions": lambda: mc.Batches(np.ones(3)),
        "must come from .* got list": lambda: mc.Batches([[1.0]]),
        "must have rows, got none": fit(mc.Batches(lambda: iter([]))),
        "the same 700 rows at every pass, got 0 rows|must have rows, got none": fit(mc.Batches(lambda: once)),
        "as many targets as rows, got 700 rows and 5": fit(mc.Batches(broken)),
        "must be a number ≥ 0, one per target, or 'loo', got 'gcv'": model(alpha="gcv"),
        "need Nyström centres.* got solver='cg'": model(solver="cg"),
        "This model needs all rows in memory, got rows": lambda: mc.GaussianProcessRegressor().fit(mc.Batches(X), y),
        "need Nyström centres.* got tune='loo'": model(tune="loo"),
        "need Nyström centres.* got centers='kmeans'": model(centers="kmeans", n_centers=5),
    }


def test_what_is_refused(tmp_path):
    for words, call in refusals(tmp_path).items():
        with pytest.raises(mc.InvalidInput, match=words):
            call()
    X, y = data()
    with pytest.raises(mc.InvalidInput, match="Weights of rows in batches must be > 0"):
        mc.KernelRidge(n_centers=5).fit(mc.Batches(X), y, np.arange(N))
    gram = mc.gram.streamed.StreamedGram(mc.Linear(), mc.Batches(X), mc.Linear().prepare(X[:5]))
    np.testing.assert_allclose(gram.diag(), (X**2).sum(axis=1))
    for entries in (lambda: gram.rows([0]), gram.recomputed, lambda: gram.restrict([0])):
        with pytest.raises(mc.InvalidInput, match="sums over rows only"):
            entries()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["poisson", "logistic", "classes"])
def test_smooth_losses_over_batches_are_those_of_the_array(kind, small):
    """Poisson's and the logistic loss on centres: the same operator, so the same minimum."""
    X, y = data()
    rng = np.random.default_rng(2)
    if kind == "poisson":
        model, again = (mc.KernelGLM(mc.Gaussian(1.5), family="poisson", alpha=0.3, n_centers=30) for _ in range(2))
        y, more = rng.poisson(np.exp(y - 1.0)), {"exposure": rng.uniform(0.5, 2.0, N)}
    else:
        model, again = (mc.KernelLogisticRegression(mc.Gaussian(1.5), alpha=0.3, n_centers=30) for _ in range(2))
        y, more = (y > 1).astype(int) + (kind == "classes") * (y > 1.5), {}
    model.fit(mc.Batches(X), y, **more)
    again.set_params(n_centers=None, centers=model.function_.points.raw).fit(X, y, **more)
    np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-6)
    if kind == "poisson":
        np.testing.assert_allclose(model.loo_predictions_, again.loo_predictions_, rtol=1e-6)
        assert model.mean_interval(X[:3]).shape == (3, 2)
    else:
        np.testing.assert_allclose(model.loo_proba_, again.loo_proba_, atol=1e-6)


@pytest.mark.thorough
def test_least_squares_of_classes(small, tmp_path):
    X, y = data()
    labels = np.where(y > 1, "high", "low")
    frame(X, y).with_columns(y=pl.Series(labels)).write_parquet(tmp_path / "rows.parquet")
    model = mc.LeastSquaresClassifier(mc.Gaussian(1.5), alpha="loo", n_centers=20)
    model.fit(tmp_path / "rows.parquet", target="y")
    rows = pl.DataFrame(X, schema=NAMES)
    assert model.score(rows, labels) > 0.85
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    with pytest.raises(mc.InvalidInput, match="needs its training rows"):
        _ = model.loo_score_
    assert model.fit(X, labels).loo_score_ > 0.8


@pytest.mark.thorough
def test_smooth_losses_read_files_and_say_what_they_need(small, tmp_path):
    X, y = data()
    frame(X[:200], (y[:200] > 1).astype(int)).write_parquet(tmp_path / "rows.parquet")
    model = mc.KernelLogisticRegression(mc.Gaussian(1.5), n_centers=20).fit(tmp_path / "rows.parquet", target="y")
    model.save(tmp_path / "m.mercer")
    rows = pl.DataFrame(X, schema=NAMES)
    np.testing.assert_allclose(mc.load(tmp_path / "m.mercer").predict_proba(rows), model.predict_proba(rows))
    with pytest.raises(mc.InvalidInput, match="LogisticRegression needs all rows in memory"):
        mc.LogisticRegression().fit(tmp_path / "rows.parquet", target="y")
    with pytest.raises(mc.InvalidInput, match="with weights > 0"):
        model.fit(mc.Batches(X), y > 1, np.arange(N))
    with pytest.raises(mc.InvalidInput, match="got target='y' with X in memory"):
        model.fit(X, y > 1, target="y")
