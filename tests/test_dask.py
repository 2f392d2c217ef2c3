"""Rows of Dask: the same model as from an array, whatever the chunks, the scheduler and what happens to workers."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from functools import partial

import cloudpickle
import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import mercer as mc
from mercer.cli import app as cli
from mercer.data import cluster as cluster_module
from mercer.data import dask_rows
from mercer.data.cluster import ClusterLost
from mercer.data.dask_rows import DaskRows
from mercer.data.sampling import drawn
from mercer.files.checkpoint import CheckpointFile
from mercer.gram.streamed import StreamedGram
from mercer.models.density import parzen
from mercer.models.local import base as local
from mercer.smoothing.sums import sums
from mercer.solvers import costs, nystrom

N, D = 300, 3
NAMES = ["a", "b", "c"]
SOME = {"kernel": mc.Gaussian(1.5), "alpha": 0.1, "n_centers": 15}


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=N) + 1.0, rng.uniform(0.5, 2.0, N)


@pytest.fixture
def small(monkeypatch):
    """Pieces of at most 64 rows, on two threads."""
    monkeypatch.setattr(dask_rows, "FEWEST_ROWS", 8)
    monkeypatch.setattr(dask_rows, "MOST_NUMBERS", 64 * D)
    with dask.config.set(num_workers=2):
        yield


@pytest.fixture
def iterated(monkeypatch):
    """Conjugate gradients with a sample of the rows as preconditioner, as for many rows."""
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0.0)
    monkeypatch.setattr(nystrom, "sample_size", lambda n, m, tol: 8 * m)


def frame(X):
    return pd.DataFrame(X, columns=NAMES)


def unknown(X):
    """An array whose chunks have sizes that nobody knows, one of them none."""
    table = dd.from_pandas(frame(X), npartitions=5)
    parts = [table.partitions[0], table.partitions[1].query("a > 1e9"), *(table.partitions[i] for i in range(1, 5))]
    return dd.concat(parts).to_dask_array()


CHUNKS = {
    "rows": lambda X: da.from_array(X, chunks=(100, D)),
    "columns": lambda X: da.from_array(X, chunks=(N, 1)),
    "skewed": lambda X: da.from_array(X, chunks=((5, 0, 250, 45), (2, 1))),
    "unknown": unknown,
    "frame": lambda X: dd.from_pandas(frame(X), npartitions=4),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", CHUNKS)
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "weighted": True}], ids=["plain", "weights"])
def test_all_chunks_give_the_model_of_the_array(kind, options, small, iterated):
    X, y, w = data()
    options = {**SOME, "tol": 1e-8, **options}
    w = w if options.pop("weighted", False) else None
    lazy = (da.from_array(y, chunks=77), None if w is None else da.from_array(w, chunks=300))
    model = mc.KernelRidge(**options).fit(CHUNKS[kind](X), *lazy)
    assert "steps of conjugate gradients" in model.status_
    centers = model.function_.points.raw
    here = mc.KernelRidge(**{**options, "n_centers": None, "centers": centers}).fit(X, y, w)
    asked = frame(X) if kind == "frame" else X
    np.testing.assert_allclose(model.predict(asked), here.predict(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(centers, mc.KernelRidge(**options).fit(mc.Batches(X), y, w).function_.points.raw)
    assert type(model.dual_coef_) is np.ndarray
    assert hasattr(model, "feature_names_in_") == (kind == "frame")


def test_all_rows_as_the_preconditioner(small):
    """Few rows: the whole normal matrix is summed on the workers, with weights and an intercept."""
    X, y, w = data()
    model = mc.KernelRidge(**SOME, fit_intercept=True).fit(CHUNKS["skewed"](X), y, w)
    assert "solved directly" in model.status_
    here = mc.KernelRidge(**SOME, fit_intercept=True).fit(mc.Batches(X), y, w)
    np.testing.assert_allclose(model.predict(X), here.predict(X), atol=1e-9)
    assert model.intercept_ == pytest.approx(here.intercept_, abs=1e-9)


def test_other_sums_of_the_features(small):
    """Values at all rows, functions of the caller's between two products, features: as from an array."""
    X, y, _ = data()
    k = mc.Gaussian(1.5)
    few = k.prepare(X[:9])
    with DaskRows(CHUNKS["rows"](X)) as rows:
        there = StreamedGram(k, rows, few).low_rank(few)
        here = mc.gram.of(k, X).low_rank(few)
        V = np.arange(18.0).reshape(9, 2)
        np.testing.assert_allclose(there @ V, here @ V, atol=1e-9)
        curved = lambda rows, U: U * y[rows, None]  # noqa: E731
        np.testing.assert_allclose(there.normal(V, curved), here.normal(V, curved), rtol=1e-9)
        np.testing.assert_allclose(there.features([200, 3, 3]), here.features([200, 3, 3]), atol=1e-12)
        np.testing.assert_allclose(np.concatenate([part for part, _ in rows]), X)


MODELS = {
    "two classes": (mc.KernelLogisticRegression, lambda y: np.where(y > 1, "high", "low"), "predict_proba"),
    "three classes": (mc.KernelLogisticRegression, lambda y: np.digitize(y, [0.7, 1.3]), "predict_proba"),
    "counts": (partial(mc.KernelGLM, family="poisson"), lambda y: np.round(np.exp(y)), "predict"),
    "least squares": (mc.LeastSquaresClassifier, lambda y: np.digitize(y, [0.7, 1.3]), "decision_function"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_classes_and_counts(name, small):
    """The model of the same rows in memory, on the same centres, which can be pickled and ask for its rows again."""
    X, y, w = data()
    cls, targets, method = MODELS[name]
    table = dd.from_pandas(frame(X), npartitions=3) if name == "counts" else CHUNKS["skewed"](X)
    more = {"exposure": w} if name == "counts" else {}
    few = SOME | {"alpha": 1.0, "n_centers": 6}
    model = cls(**few).fit(table, da.from_array(targets(y), chunks=77), w, **more)
    here = cls(**few | {"n_centers": None, "centers": model.function_.points.raw}).fit(X, targets(y), w, **more)
    asked = frame(X) if name == "counts" else X
    np.testing.assert_allclose(getattr(model, method)(asked), getattr(here, method)(X), rtol=0, atol=1e-6)
    sent = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(getattr(sent, method)(asked), getattr(model, method)(asked), rtol=0, atol=1e-12)
    if name == "two classes":
        np.testing.assert_allclose(model.loo_proba_, here.loo_proba_, atol=1e-5)
        with pytest.raises(mc.InvalidInput, match="A pickled model does not hold the source of the rows"):
            sent.loo_proba_  # noqa: B018


@pytest.mark.thorough
def test_a_fit_continues_after_the_cluster_was_lost(small, iterated, monkeypatch, tmp_path):
    """The rows stay on the workers: only sums of them come back, the digest that recognises them included."""
    X, y, w = data()
    path = tmp_path / "fit.ckpt"
    monkeypatch.setattr(CheckpointFile.__init__, "__defaults__", (0.0,))
    make = lambda: mc.KernelRidge(**SOME, fit_intercept=True, tol=1e-9, checkpoint=path)  # noqa: E731
    sums, most = [], [np.inf]
    value = cluster_module.Cluster.result

    def counted(self, task):
        sums.append(task)
        if len(sums) > most[0]:
            raise ClusterLost("The scheduler must stay reachable", got="no answer", advice="Start it again.")
        return value(self, task)

    monkeypatch.setattr(cluster_module.Cluster, "result", counted)
    whole = make().fit(CHUNKS["rows"](X), y, w)
    total = len(sums)
    for lost in (total // 2, total - 1):
        sums.clear()
        most[0] = lost
        with pytest.raises(ClusterLost):
            make().fit(CHUNKS["rows"](X), y, w)
        sums.clear()
        most[0] = np.inf
        with pytest.raises(mc.InvalidInput, match="must belong to the same data"):
            make().fit(CHUNKS["rows"](X[::-1].copy()), y, w)
        sums.clear()
        again = make().fit(CHUNKS["rows"](X), y, w)
        np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
        assert len(sums) <= total - lost + 4  # the rows are drawn, recognised and kept again
        assert not path.exists()
    digests = [DaskRows(CHUNKS[kind](X)).digest().tolist() for kind in CHUNKS]
    assert all(digest == mc.Batches(X).digest().tolist() for digest in digests)


def written(tmp_path, holes=False):
    """A Parquet file with a column of texts, and a missing value."""
    X, y, w = data()
    table = frame(X).assign(c=np.where(X[:, 2] > 0, "up", "down"), w=w, y=y)
    table.loc[7, "b"] = np.nan if holes else 0.0
    table.to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_an_unbounded_kernel_needs_no_rows_here(small, monkeypatch):
    """Its diagonal is computed on the workers."""
    X, y, _ = data()
    monkeypatch.setattr(DaskRows, "__iter__", lambda self: pytest.fail("rows came to this process"))
    model = mc.KernelRidge(mc.Linear() + mc.Gaussian(1.0), alpha=0.1, n_centers=15).fit(CHUNKS["rows"](X), y)
    here = mc.KernelRidge(mc.Linear() + mc.Gaussian(1.0), alpha=0.1, n_centers=15).fit(mc.Batches(X), y)
    np.testing.assert_allclose(model.predict(X), here.predict(X), rtol=0, atol=1e-6)


def test_files_are_read_by_the_workers(small, tmp_path):
    """Arrays, with rows left out and columns changed; the same model as from batches in this process."""
    X, y, _ = data()
    frame(X).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    change = lambda X: X[:, :2]  # noqa: E731
    models = []
    for source in (mc.Batches, mc.DaskFiles):
        rows = source(tmp_path / "rows.parquet", "y").without([3, 200]).mapped(change, np.negative)
        models.append(mc.KernelRidge(**SOME).fit(rows))
    np.testing.assert_allclose(*(model.dual_coef_ for model in models), rtol=1e-7)
    with mc.DaskFiles(tmp_path / "rows.parquet", "y") as rows:
        assert len(rows.spans) > 3
        assert rows.digest().tolist() == mc.Batches(tmp_path / "rows.parquet", "y").digest().tolist()


@pytest.mark.parametrize("source", ["files", "array"])
def test_derived_rows_are_those_of_batches(source, small, tmp_path):
    """Rows left out twice, so that pieces become empty, and changed: on the workers as in this process."""
    X, y, _ = data()
    frame(X).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    seen = []

    def derived(rows):
        few = rows.without(range(100, 260)).without([3, 120]).mapped(lambda X: X[:, :2]).mapped(np.abs)
        return few.watched(seen.append)

    here = derived(mc.Batches(X))
    kept = np.abs(np.delete(X, [3, *range(100, 260), 280], axis=0)[:, :2])
    np.testing.assert_array_equal(np.concatenate([part for part, _ in here]), kept)
    seen.clear()
    with mc.DaskFiles(tmp_path / "rows.parquet", "y") if source == "files" else DaskRows(CHUNKS["rows"](X)) as rows:
        there = derived(rows)
        assert there.n == len(kept)
        np.testing.assert_array_equal(np.concatenate(there.map(np.array, [])), kept)
        np.testing.assert_array_equal(there.taken(np.array([0, 99, 130])), kept[[0, 99, 130]])
        assert seen == [len(kept)]
        assert there.digest().tolist() == here.digest().tolist()
    np.testing.assert_allclose(there.sum(partial(np.sum, axis=0), []), kept.sum(axis=0), rtol=1e-12)


@pytest.mark.thorough
def test_automatic_models_of_files_sum_on_the_workers(small, tmp_path, monkeypatch):
    path = written(tmp_path, holes=True)
    sums = []
    summed = DaskRows.sum
    monkeypatch.setattr(DaskRows, "sum", lambda self, *args: sums.append(self.n) or summed(self, *args))
    make = lambda: mc.AutoRegressor(kernel=mc.TableKernel(), loss="squared", roles={"w": "weight"}, time=1e3)  # noqa: E731
    there, here = make().fit(mc.DaskFiles(path, "y")), make().fit(mc.Batches(path, "y"))
    assert set(sums) == {N}
    asked = pd.read_parquet(path).drop(columns="y")
    np.testing.assert_allclose(there.predict(asked), here.predict(asked), atol=1e-6)


def test_predictions_are_lazy(small):
    X, y, _ = data()
    model = mc.KernelRidge(**SOME).fit(X, np.column_stack([y, -y]))
    lazy = model.predict(CHUNKS["skewed"](X))
    assert (lazy.shape, lazy.dtype, lazy.chunks) == ((N, 2), np.float64, ((5, 0, 250, 45), (2,)))
    np.testing.assert_allclose(lazy.compute(), model.predict(X), atol=1e-12)
    single = mc.KernelRidge(**SOME).fit(frame(X.astype("float32")), y)
    series = single.predict(dd.from_pandas(frame(X.astype("float32")).set_axis(range(10, 10 + N)), npartitions=3))
    assert series.dtype == np.float32
    computed = series.compute()
    assert computed.index[0] == 10
    np.testing.assert_allclose(computed, single.predict(frame(X.astype("float32"))), rtol=1e-4)
    table = mc.KernelRidge(**SOME).fit(frame(X), np.column_stack([y, y])).predict(CHUNKS["frame"](X))
    assert table.compute().shape == (N, 2)


def test_every_estimator_predicts_lazily(small):
    X, y, _ = data()
    labels = np.where(y > 1, "high", "low")
    lazy = da.from_array(X[:40], chunks=(15, 2))
    for model, methods in (
        (mc.KernelPCA(mc.Gaussian(1.0), n_components=2).fit(X[:60]), ["transform"]),
        (mc.SVC(mc.Gaussian(1.0)).fit(X[:60], labels[:60]), ["predict", "decision_function"]),
        (mc.KernelLogisticRegression(mc.Gaussian(1.0)).fit(X[:60], labels[:60]), ["predict", "predict_proba"]),
        (mc.ParzenDensity(bandwidth=0.5).fit(X[:60]), ["score_samples", "pdf"]),
        (mc.NadarayaWatsonRegressor(mc.Gaussian(0.5)).fit(X[:60], y[:60]), ["predict"]),
        (mc.GaussianProcessRegressor(mc.Gaussian(1.0)).fit(X[:60], y[:60]), ["predict", "predict_interval"]),
    ):
        for name in methods:
            found, expected = getattr(model, name)(lazy), getattr(model, name)(X[:40])
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
            if found.dtype.kind == "f":
                np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-9)
            else:
                np.testing.assert_array_equal(found.compute(), expected)


def test_bags_of_objects_are_predicted_lazily():
    """Texts in partitions, one of them empty: a bag of labels, or of rows of kernel values."""
    words = ["banana", "ananas", "bananas", "tree", "trees", "free"]
    model = mc.SVC(mc.Spectrum((1, 2)).normalize()).fit(words, [1, 1, 1, 0, 0, 0])
    bag = dask.bag.from_sequence([*words, "three"], npartitions=3)
    for some in (bag, bag.filter(lambda word: "n" in word)):
        expected = model.predict(some.compute(scheduler="sync")).tolist()
        assert model.predict(some).compute(scheduler="threads") == expected


def test_sums_of_densities_and_local_means(small):
    """Far from all rows, too, and for a compact weight out of its reach."""
    X, y, w = data()
    Z = np.vstack([X[:5], [[50.0, 0.0, 0.0]]])
    V = np.column_stack([w, w * y])
    for similarity in (mc.Gaussian(0.7), mc.Epanechnikov(2.0)):
        found = mc.sums_on_cluster(similarity, CHUNKS["skewed"](X), da.from_array(V, chunks=(90, 2)), Z)
        here = sums(similarity, similarity.prepare(X), V, similarity.prepare(Z))
        seen = np.isfinite(here.log_scale)
        np.testing.assert_array_equal(np.isfinite(found.log_scale), seen)
        logs = [part.log_scale[seen, None] + np.log(part.totals[seen, 0]) for part in (found, here)]
        np.testing.assert_allclose(*logs, rtol=1e-7)
    density = mc.ParzenDensity(mc.Gaussian(0.7)).fit(X, sample_weight=w).pdf(Z[:5])
    gaussian = mc.sums_on_cluster(mc.Gaussian(0.7), CHUNKS["frame"](X), V, Z[:5]).values[:, 0]
    np.testing.assert_allclose(gaussian[:, 0] / (w.sum() * (0.7 * np.sqrt(2 * np.pi)) ** 3), density, rtol=1e-6)
    local = mc.NadarayaWatsonRegressor(mc.Gaussian(0.7)).fit(X, y, w).predict(Z[:5])
    np.testing.assert_allclose(gaussian[:, 1] / gaussian[:, 0], local, rtol=1e-6)


DENSITIES = {
    "a kernel": {"kernel": mc.Gaussian(0.7)},
    "a rule": {"bandwidth": "silverman"},
    "a matrix": {"bandwidth": np.diag([0.3, 0.4, 0.5]) + 0.1},
    "compact": {"kernel": mc.Epanechnikov(2.0)},
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_of_rows_elsewhere(name, small):
    """Rows of Dask and of batches: the density of the same rows in memory, far from all rows, too."""
    X, _, w = data()
    Z = np.vstack([X[:5], [[50.0, 0.0, 0.0]]])
    here = mc.ParzenDensity(**DENSITIES[name]).fit(X, sample_weight=w)
    for rows in (CHUNKS["skewed"](X), mc.Batches(X)):
        there = mc.ParzenDensity(**DENSITIES[name]).fit(rows, sample_weight=da.from_array(w, chunks=70))
        np.testing.assert_allclose(there.score_samples(Z), here.score_samples(Z), rtol=1e-7)
        np.testing.assert_allclose(there.sample(9, random_state=0), here.sample(9, random_state=0))


def test_local_means_of_rows_elsewhere(small):
    X, y, w = data()
    Z, labels = np.vstack([X[:5], [[50.0, 0.0, 0.0]]]), np.digitize(y, [0.7, 1.3])
    pairs = mc.Batches(lambda: iter([(X[:50], y[:50]), (X[50:], y[50:])]))
    for kernel in (mc.Gaussian(0.7), mc.Epanechnikov(1.0)):
        here = mc.NadarayaWatsonRegressor(kernel).fit(X, y, w)
        for rows, targets in ((CHUNKS["skewed"](X), da.from_array(y, chunks=70)), (pairs, None)):
            there = mc.NadarayaWatsonRegressor(kernel).fit(rows, targets, w)
            np.testing.assert_allclose(there.predict(Z), here.predict(Z), rtol=1e-7)
            np.testing.assert_allclose(there.effective_sample_size(Z[:5]), here.effective_sample_size(Z[:5]), rtol=1e-7)
    here, there = (mc.NadarayaWatsonClassifier(mc.Gaussian(0.7)).fit(rows, labels) for rows in (X, CHUNKS["rows"](X)))
    np.testing.assert_allclose(there.predict_proba(Z), here.predict_proba(Z), rtol=1e-7)


def test_widths_of_rows_elsewhere_are_chosen_on_a_sample(small, monkeypatch):
    X, y, _ = data()
    monkeypatch.setattr(parzen, "SAMPLE", 100)
    monkeypatch.setattr(local, "SAMPLE", 100)
    factor = (100 / N) ** (1 / (D + 4))
    sample = drawn(mc.Batches(X), 100, np.random.default_rng(0))
    for rows in (CHUNKS["frame"](X), mc.Batches(X)):
        density = mc.ParzenDensity(bandwidth="scott").fit(rows)
        few = mc.ParzenDensity(bandwidth="scott").fit(sample.X)
        np.testing.assert_allclose(density.bandwidth_, factor * few.bandwidth_, rtol=1e-9)
        assert "on 100 of 300 rows, times 0.855" in density.status_
        means = mc.NadarayaWatsonRegressor(bandwidth="scott").fit(rows, y)
        few = mc.NadarayaWatsonRegressor(bandwidth="scott").fit(sample.X, y[sample.at])
        np.testing.assert_allclose(means.bandwidth_, factor * few.bandwidth_, rtol=1e-9)


def test_matrices_of_objects_are_lazy():
    words = ["banana", "ananas", "bananas", "tree", "trees", "free"]
    kernel, bag = mc.Spectrum((1, 2)).normalize(), dask.bag.from_sequence(words, npartitions=3)
    K = kernel(bag.filter(lambda word: word[0] != "f"))
    assert (K.shape, K.chunks) == ((5, 5), ((2, 2, 1), (5,)))
    np.testing.assert_allclose(K.compute(scheduler="threads"), kernel(words[:5]), rtol=1e-12)
    np.testing.assert_allclose(kernel(bag, words[:2]).compute(scheduler="threads"), kernel(words, words[:2]))
    X = data()[0][:20]
    lazy = mc.Gaussian(1.0)(da.from_array(X, chunks=(8, 2)), X[:3])
    np.testing.assert_allclose(lazy.compute(scheduler="threads"), mc.Gaussian(1.0)(X, X[:3]))
    table = dd.from_pandas(frame(X), npartitions=2)
    np.testing.assert_allclose(mc.Gaussian(1.0)(table).compute(scheduler="threads"), mc.Gaussian(1.0)(X))


def test_rows_that_a_message_brought_are_aligned():
    """They start at any byte of it: products would copy them block by block."""
    X = data()[0]
    brought = np.frombuffer(b"x" + X.tobytes(), offset=1).reshape(X.shape)
    assert not brought.flags.aligned
    vectors = mc.Gaussian(1.0).prepare(brought).vectors()
    assert vectors.flags.aligned
    np.testing.assert_array_equal(vectors, X)


def test_pieces_are_even_and_few():
    lengths = [3, 0, 100_000, 7, 7, 20_000]
    pieces = dask_rows.pieces_of(lengths, 9000)
    sizes = [sum(part.stop - part.start for _, part in parts) for parts in pieces]
    assert max(sizes) <= 9000
    assert sum(sizes) == sum(lengths)
    assert len(pieces) == 1 + 12 + 1 + 3
    even = [sum(part.stop - part.start for _, part in parts) for parts in dask_rows.pieces_of([125] * 16, 420)]
    assert max(even) <= 420
    assert max(even) <= 1.5 * min(even)  # not three of each, and one at the end that keeps the others waiting
    for threads in (2, 3, 8):  # all threads have as much to do
        assert -(-200_000 // dask_rows.piece_rows(200_000, 100, threads, 1e9)) % threads == 0
    for n, width, threads in ((10**9, 100, 10), (10**9, 100, 10_000), (10**6, 20, 2)):
        assert -(-n // dask_rows.piece_rows(n, width, threads, 1e9)) <= dask_rows.MOST_PIECES
    assert dask_rows.piece_rows(10**9, 100, 10, 8e6) * 100 * 8 <= 8e6  # a worker's memory is the harder limit


def test_graphs_stay_small_and_the_coefficients_are_in_them_once(small, monkeypatch):
    X, _, _ = data()
    sizes = []
    value = cluster_module.Cluster.result

    def weighed(self, task):
        sizes.append(len(cloudpickle.dumps(dict(task.__dask_graph__()))))
        return value(self, task)

    big = mc.Gaussian(1.5), X[:100]
    with DaskRows(da.from_array(X, chunks=(20, D)) * 1.0) as rows:
        Phi = StreamedGram(big[0], rows, big[0].prepare(X)).low_rank(big[0].prepare(big[1]))
        monkeypatch.setattr(cluster_module.Cluster, "result", weighed)
        Phi.normal(np.ones((Phi.shape[1], 50)))
    assert len(rows.spans) > 4
    assert sizes[0] < X.nbytes + 2 * big[1].nbytes + 1.2 * 8 * 50 * 100 + 1000 * 3 * len(rows.spans)


def refusals():
    X, y, _ = data()
    rows = da.from_array(X, chunks=(100, D))
    fit = lambda X, y=y, **more: lambda: mc.KernelRidge(**{**SOME, **more}).fit(X, y)  # noqa: E731
    holes = X.copy()
    holes[250, 1] = np.nan
    texts = dd.from_pandas(frame(X).assign(c="x"), npartitions=2)
    model = mc.KernelRidge(**SOME).fit(X, y)
    density, means = mc.ParzenDensity(mc.Gaussian(1.0)).fit(rows), mc.NadarayaWatsonRegressor(mc.Gaussian(1.0))
    means.fit(rows, y)
    return {
        r"`adaptive` needs all rows in memory": lambda: mc.ParzenDensity(adaptive=True).fit(rows),
        r"A distribution function needs all rows": lambda: density.cdf([0.0]),
        r"A model file holds everything": lambda: density.save("density.mercer"),
        r"does not hold the source.*with queries in memory": lambda: pickle.loads(pickle.dumps(density)).pdf(X),
        r"Leave-one-out, standard errors and intervals need": lambda: means.loo_predictions_,
        r"standard errors and intervals need all": lambda: means.predict(X, return_std=True),
        r"weights of single rows need all rows": lambda: means.weights(X),
        r"`partial_fit` needs all rows": lambda: means.partial_fit(X, y),
        r"used all, with weights > 0": lambda: mc.NadarayaWatsonRegressor(mc.Gaussian(1.0)).fit(
            rows, y, y * 0 + (y > 1)
        ),
        r"batches must be > 0": lambda: mc.ParzenDensity(mc.Gaussian(1.0)).fit(rows, sample_weight=y * 0 + (y > 1)),
        r"rows from 250 on must be complete": fit(da.from_array(holes, chunks=(100, D))),
        r"must be numbers, got 'c'": fit(texts),
        r"two-dimensional array or a data frame, got Array with 1 dim": fit(rows[:, 0]),
        r"two-dimensional array or a data frame, got DelayedLeaf": fit(dask.delayed(X)),
        r"two-dimensional array or a data frame, got Series": lambda: model.predict(CHUNKS["frame"](X).a),
        r"must have rows, got none": fit(da.zeros((0, 3))),
        r"must have columns, got none": fit(da.zeros((5, 0))),
        r"y must hold finite numbers.*shape \(299,\)": fit(rows, da.from_array(y[1:], chunks=50)),
        r"SVC needs all rows in memory, got rows of Dask. Pass X.compute": lambda: mc.SVC().fit(rows, y > 1),
        r"need Nyström centres.* got solver='cg'": fit(rows, solver="cg"),
        r"takes other arguments in memory only": lambda: mc.ConditionalDensity(bandwidth=0.5).fit(X, y).pdf(rows, rows),
        r"X must have the columns that the model was fitted to": lambda: model.predict(rows[:, :2]),
        r"V must hold finite numbers.*shape \(300, c\), got shape \(300,\)": lambda: mc.sums_on_cluster(
            mc.Gaussian(1.0), rows, y, X
        ),
        r"Rows on a cluster must be Dask's, or a DaskRows, got ndarray": lambda: mc.sums_on_cluster(
            mc.Gaussian(1.0), X, y[:, None], X
        ),
        r"rows of a lazy matrix must be a collection of Dask": lambda: mc.Gaussian(1.0)(X, rows),
        r"given by their path, got ndarray": lambda: mc.DaskFiles(X),
        r"must return one array, got tuple": lambda: (
            mc.GaussianProcessRegressor(mc.Gaussian(1.0)).fit(X[:9], y[:9]).predict(rows, return_std=True)
        ),
    }


def test_what_is_refused(small):
    for words, call in refusals().items():
        with pytest.raises(mc.InvalidInput, match=words):
            call()


def test_the_command_line_needs_a_scheduler_and_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cluster_module, "CONNECTING", 0.1)
    path = str(written(tmp_path))
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n2,3\n")
    for data, words in (
        (path, r"--dask must be the address of a running Dask scheduler.*127.0.0.1:1, which does not answer"),
        (str(tmp_path / "rows.csv"), r"--dask needs a Parquet or Arrow file"),
    ):
        assert cli.run(["fit", data, "-t", "y", "--dask", "tcp://127.0.0.1:1"]) == 2
        assert re.search(words, " ".join(capsys.readouterr().err.split()))


# -- a cluster of processes --------------------------------------------------------------------------------------------

CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="1GB") as cluster:
        print(cluster.scheduler_address, flush=True)
        for line in sys.stdin:
            cluster.scale(int(line))
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A scheduler with two workers, each in a process of its own, and a client: (client, process of the scheduler)."""
    from distributed import Client

    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, str(script)], **pipes) as process:
        try:
            with Client(process.stdout.readline().strip()) as client:
                yield client, process
        finally:
            process.kill()


@pytest.mark.thorough
def test_a_cluster_of_processes(cluster, small, iterated, monkeypatch, tmp_path, capsys):
    """One cluster for all: processes take seconds to start."""
    client, scheduler = cluster
    monkeypatch.setattr(dask_rows, "MOST_NUMBERS", 128 * D)
    X, y, w = data()
    rows = da.from_array(X, chunks=(100, D))
    settings = {**SOME, "n_centers": 8, "fit_intercept": True, "tol": 1e-8}
    make = lambda **more: mc.KernelRidge(**settings, **more)  # noqa: E731
    expected = make().fit(mc.Batches(X), y, w).predict(X)

    def left():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    def nothing_left():
        """Workers tell the scheduler a little later: ask it again and again."""
        return any(left() == 0 for _ in range(1000))

    # A worker dies in the middle of a fit, with rows and weights that it held: the answer is the same.
    killed = []

    def kill(step):
        if step.iteration == 2:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    model = make(progress=lambda step: kill(step) or True).fit(rows, y, w)
    assert killed
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-6)
    assert nothing_left()

    # The cluster shrinks and grows in the middle of a fit.
    sizes = []

    def resize(step):
        count = {1: 1, 2: 2}.get(step.iteration)
        if count is not None:
            scheduler.stdin.write(f"{count}\n")
            scheduler.stdin.flush()
            while len(client.nthreads()) != count:
                threading.Event().wait(0.01)
            sizes.append(count)

    model = make(progress=lambda step: resize(step) or True).fit(rows, y, w)
    assert sizes == [1, 2]
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-6)
    assert nothing_left()

    # An interrupt releases everything, and the model stays what it was.
    def interrupt(step):
        raise KeyboardInterrupt

    before = model.dual_coef_
    with pytest.raises(KeyboardInterrupt):
        model.set_params(progress=interrupt).fit(rows, y)
    assert model.dual_coef_ is before
    assert nothing_left()

    # Lazy predictions run on the workers.
    np.testing.assert_allclose(model.predict(rows).compute(), expected, rtol=0, atol=1e-6)

    labels = np.where(y > 1, "high", "low")
    classifier = mc.KernelLogisticRegression(mc.Gaussian(1.5), alpha=1.0, n_centers=8)
    classifier.fit(mc.Batches(X), labels)
    np.testing.assert_array_equal(classifier.predict(rows).compute(), classifier.predict(X))

    # Scikit-learn's searches try their candidates on the workers.
    scoring = {"accuracy": "accuracy", "process": lambda model, X, y: os.getpid()}
    search = GridSearchCV(mc.SVC(mc.Gaussian(1.5)), {"C": [0.1, 10.0]}, cv=2, scoring=scoring, refit=False)
    here = search.fit(X[:80], labels[:80]).cv_results_["mean_test_accuracy"]
    with joblib.parallel_config("dask"):
        there = search.fit(X[:80], labels[:80]).cv_results_
    np.testing.assert_array_equal(there["mean_test_accuracy"], here)
    assert os.getpid() not in {*there["split0_test_process"], *there["split1_test_process"]}

    # So does `tune`, for every criterion, with the scores of this process.
    for estimator, targets, by in (
        (mc.KernelRidge(mc.Gaussian(1.0)), y, "loo"),
        (mc.KernelRidge(mc.Gaussian(1.0)), y, 2),
        (mc.SVC(mc.Gaussian(1.0)), labels, 2),
    ):
        grid = {"kernel__sigma": [0.5, 1.5], "C" if by == 2 and targets is labels else "alpha": [0.1, 1.0]}
        found = [mc.tune(estimator, X[:60], targets[:60], by=by, grid=grid, client=where) for where in (None, client)]
        here, there = (model.tuning_ for model in found)
        assert there.parameters == here.parameters
        np.testing.assert_allclose(there.grid.scores, here.grid.scores, rtol=1e-9)
    assert nothing_left()
    with pytest.raises(mc.InvalidInput, match=r"`client` needs candidates.*a search by gradient"):
        mc.tune(mc.KernelRidge(mc.Gaussian(1.0)), X, y, client=client)

    # Large values go to the workers in parts, which stay under the size of graphs of which Dask warns.
    monkeypatch.setattr(cluster_module, "MESSAGE", 1000)
    assert cluster_module.Cluster(client).each(lambda A, i: A[i], X, [(0,), (7,)])[1].tolist() == X[7].tolist()

    # The command line.
    path, out = str(written(tmp_path)), str(tmp_path / "rows.mercer")
    run = ["fit", path, "-t", "y", "--drop", "c", "-k", "Gaussian(2.0)", "--time", "5", "-o", out, "--dask"]
    assert cli.run([*run, client.scheduler.address]) == 0
    said = capsys.readouterr()
    assert "sum over the rows: see" in said.err
    assert "KernelRidge" in said.out
    assert np.isfinite(mc.load(out).predict(pd.read_parquet(path).drop(columns=["y", "c"]))).all()

    # A task that takes too much memory is named before it is started.
    with pytest.raises(mc.InvalidInput, match="A partition must fit 30% of a worker's memory"):
        make().fit(da.zeros((10**8, 3), chunks=(10**8, 3)), y)

    # The scheduler dies.
    with pytest.raises(ClusterLost, match=r"must stay reachable.*Start the cluster again"):
        make(progress=lambda step: scheduler.kill() or True).fit(rows, y)
    with pytest.raises(ClusterLost, match="must stay reachable"):
        make().fit(rows, y)
