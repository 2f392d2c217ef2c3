"""The Gram engine: dense and tiled are the same matrix, the budget is kept, threads change nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import mercer as mc
from mercer import threads
from mercer.data.points import Points
from mercer.kernels import tiling
from mercer.memory import budget
from mercer.words import show_bytes

pytestmark = pytest.mark.usefixtures("threads")

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(900, 6)), rng.normal(size=(1300, 6))
KERNELS = [mc.Gaussian(2.0), mc.Gaussian([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), mc.Matern(1.0, 0.5), mc.Laplacian(2.0),
           0.5 * mc.Gaussian(1.0) + mc.Linear() * mc.Gaussian(3.0), mc.Gaussian(1.0).on(0, 3), 2.0 * mc.Gaussian(1.0),
           mc.Polynomial(2, c=1.0).normalize(), mc.Epanechnikov(3.0)]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_and_tiled_agree(kernel, dtype):
    tolerance = 1e-11 if dtype == np.float64 else 2e-4
    x, z = X.astype(dtype), Z.astype(dtype)
    for pair in ((x,), (x, z)):
        dense, tiled = mc.gram.of(kernel, *pair), mc.gram.of(kernel, *pair, budget="2 MB")
        assert isinstance(dense, mc.gram.DenseGram)
        assert isinstance(tiled, mc.gram.TiledGram)
        K = dense.dense()
        assert K.dtype == tiled.dtype == dtype
        V = rng.normal(size=(K.shape[1], 3))
        for v in (V, V[:, 0], V[:, :1]):
            product = tiled @ v
            assert product.shape == K.shape[:1] + v.shape[1:]
            assert product.dtype == dtype
            assert np.abs(product - K @ v).max() < tolerance * np.abs(K).sum(axis=1).max()
            np.testing.assert_allclose(dense @ v, K @ v.astype(dtype), rtol=1e-5, atol=tolerance)
        np.testing.assert_allclose(tiled.rows([3, 5]), K[[3, 5]], atol=tolerance)
        np.testing.assert_allclose(tiled.block([1, 2], slice(4, 9)), K[[1, 2], 4:9], atol=tolerance)
        np.testing.assert_array_equal(dense.block([1, 2], slice(4, 9)), K[[1, 2], 4:9])
    whole = mc.gram.of(kernel, x)
    assert (whole.dense() == whole.dense().T).all()
    np.testing.assert_allclose(whole.diag(), np.diag(whole.dense()), rtol=1e-5)
    np.testing.assert_allclose(mc.gram.of(kernel, x, budget=1).diag(), whole.diag())


def test_restriction_is_the_gram_of_the_subset():
    for size in (None, "1 MB"):
        G = mc.gram.of(mc.Gaussian(1.0), X, budget=size)
        part = G.restrict([5, 2, 7])
        np.testing.assert_allclose(part.dense(), mc.Gaussian(1.0)(X[[5, 2, 7]]), atol=1e-15)
        mask = np.zeros(len(X), dtype=bool)
        mask[[2, 5]] = True
        assert G.restrict(mask).shape == (2, 2)
    with pytest.raises(mc.InvalidInput, match="symmetric"):
        mc.gram.of(mc.Linear(), X, Z).restrict([0])


def test_what_does_not_fit_is_refused_with_figures():
    G = mc.gram.of(mc.Gaussian(1.0), X, budget="1 MB")
    with pytest.raises(mc.InvalidInput, match=r"900×900.*budget of 1 MB, got 6.48 MB"):
        G.dense()
    with pytest.raises(mc.InvalidInput, match="block"):
        G.rows(slice(None))
    for bad in ("lots", -1, 0, "1 XB", True, [1]):
        with pytest.raises(mc.InvalidInput, match="budget"):
            mc.gram.of(mc.Linear(), X, budget=bad)
    assert budget("1.5 GiB") == 3 * 2**29
    assert budget() > 0
    assert show_bytes(1500) == "1.5 kB"


def test_the_environment_sets_the_default_budget(monkeypatch):
    monkeypatch.setenv("MERCER_MEMORY", "1 MB")
    assert isinstance(mc.gram.of(mc.Linear(), X), mc.gram.TiledGram)


def test_bad_vectors_and_positions_are_refused():
    G = mc.gram.of(mc.Linear(), X)
    for bad in (np.ones(3), np.ones((900, 1, 1)), np.ones(900, dtype=complex)):
        with pytest.raises(mc.InvalidInput):
            G @ bad
    with pytest.raises(mc.InvalidInput, match=r"0 … 899"):
        G.rows([900])
    with pytest.raises(mc.InvalidInput, match="float32 or float64"):
        mc.gram.of(mc.Linear(), X, dtype=int)
    with pytest.raises(mc.InvalidInput, match="symmetric"):
        mc.gram.of(mc.Linear(), X, Z).diag()


@pytest.mark.parametrize("kernel", KERNELS[:5], ids=repr)
def test_results_do_not_depend_on_the_number_of_threads(kernel, monkeypatch):
    v = rng.normal(size=900)
    results = []
    for workers in ("1", "2", "5"):
        monkeypatch.setenv("MERCER_NUM_THREADS", workers)
        results.append((kernel(X), mc.gram.of(kernel, X, budget=1) @ v))
        again = mc.gram.of(kernel, X, budget=1) @ v
        np.testing.assert_array_equal(again, results[-1][1])
    for K, product in results[1:]:
        np.testing.assert_array_equal(K, results[0][0])
        np.testing.assert_allclose(product, results[0][1], atol=1e-11 * np.abs(results[0][0]).sum(axis=1).max())


class RecordedLimits:
    """In the place of BLAS's controller: the number of threads, and how often it was set."""

    def __init__(self):
        self.threads, self.history = 3, []

    @contextlib.contextmanager
    def limit(self, *, limits, user_api):
        before, self.threads = self.threads, limits
        self.history.append((user_api, limits))
        yield
        self.threads = before


def test_many_callers_at_once_leave_blas_as_it_was(monkeypatch):
    blas = RecordedLimits()
    monkeypatch.setattr(threads, "_controller", blas)
    expected = (mc.Matern(1.0) + mc.Linear())(X)
    found = []
    callers = [threading.Thread(target=lambda: found.append((mc.Matern(1.0) + mc.Linear())(X))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 6
    for K in found:
        np.testing.assert_array_equal(K, expected)
    assert blas.threads == 3, "the last caller restores it"
    assert set(blas.history) == {("blas", 1)}


def test_an_error_in_a_worker_reaches_the_caller():
    big = np.full((900, 2), 1.0)
    big[-1] = 1e200
    with pytest.raises(mc.InvalidInput, match="overflow"):
        mc.Polynomial(3)(big)
    assert np.isfinite(mc.Polynomial(3)(X)).all()


def test_tiles_cover_the_matrix_once():
    for n in (1, 255, 256, 257, 1100):
        pair = mc.Linear().pair(np.ones((n, 1)))
        cover = np.zeros((n, n), dtype=int)
        for rows, cols in tiling.blocks(pair):
            cover[rows, cols] += 1
            if rows != cols:
                cover[cols, rows] += 1
        assert (cover == 1).all()


def test_prepared_points_are_used_again():
    k = mc.Gaussian(1.0) + mc.Linear()
    points = k.prepare(X)
    np.testing.assert_array_equal(k(points), k(X))
    np.testing.assert_array_equal(mc.gram.of(k, points, k.prepare(Z)).dense(), k(X, Z))
    assert k.prepare(points) is points
    assert "DenseGram 900×900 float64" in repr(mc.gram.of(k, points))
    np.testing.assert_array_equal(np.asarray(mc.gram.of(k, points)), k(X))


def test_a_failing_worker_stops_the_others():
    calls = []

    def f(x, z):
        calls.append(1)
        if len(calls) == 50:
            raise RuntimeError("enough")
        return 1.0

    with pytest.raises(RuntimeError, match="enough"):
        mc.FromFunction(f)(np.zeros((600, 2)))
    assert len(calls) < 5_000


def test_an_interrupt_ends_the_work():
    import os
    import signal

    calls = []

    def f(x, z):
        calls.append(1)
        if len(calls) == 50:
            os.kill(os.getpid(), signal.SIGINT)
        if len(calls) >= 50:  # the interrupt is on its way: do nothing until the main thread has told the workers
            assert threads._local.stop.wait(600)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        mc.FromFunction(f)(np.zeros((1500, 2)))
    assert len(calls) < 5_000
    assert np.isfinite(mc.Gaussian(1.0)(X)).all()


def test_maps_that_fill_grams_themselves_do_not_wait_for_each_other():
    points = mc.Linear().prepare(X[:300])
    busy = threading.Event()

    def phi(Z):
        assert busy.wait(600)
        return mc.Matern(1.0)(Z, X[:300])

    slow = mc.FromFunction(lambda x, z: busy.set() or 1.0) + mc.Gaussian(1.0)
    other = threading.Thread(target=lambda: slow(points), daemon=True)
    other.start()
    done = threading.Thread(target=lambda: mc.FromFeatures(phi)(points), daemon=True)
    done.start()
    done.join(600)
    assert not done.is_alive()
    other.join(600)
    assert not other.is_alive()


def test_a_matrix_larger_than_memory_is_refused_before_it_is_allocated():
    with pytest.raises(mc.InvalidInput, match=r"3000000×3000000.*72 TB"):
        mc.Linear()(np.ones((3_000_000, 1)))


def test_vectors_multiply_from_the_left():
    v = rng.normal(size=900)
    for size in (None, 1):
        G = mc.gram.of(mc.Gaussian(1.0), X, budget=size)
        np.testing.assert_allclose(v @ G, G @ v)
        np.testing.assert_allclose(np.stack([v, 2 * v]) @ G, (G @ np.stack([v, 2 * v]).T).T)
    with pytest.raises(mc.InvalidInput, match="symmetric"):
        v @ mc.gram.of(mc.Linear(), X, Z)


def test_blocks_on_the_diagonal_are_exact_and_positions_are_checked():
    G = mc.gram.of(mc.Linear().normalize(), X, budget="1 MB")
    block = G.block([3, 1, 7], [3, 1, 7])
    assert (block == block.T).all()
    assert (np.diag(block) == 1).all()
    for bad in (None, [], [[0]], 3.5, "a"):
        with pytest.raises(mc.InvalidInput, match="Positions"):
            G.rows(bad)
    np.testing.assert_array_equal(G.rows((0, 1)), G.rows([0, 1]))
    np.testing.assert_array_equal(G.rows(-1), G.rows([899]))
    with pytest.raises(ValueError, match="read-only"):
        mc.gram.of(mc.Linear(), X).restrict([0, 1]).dense()[0, 0] = 1.0


def test_the_advised_budget_suffices():
    G = mc.gram.of(mc.Gaussian(1.0), X, budget="1 MB")
    with pytest.raises(mc.InvalidInput) as caught:
        G.dense()
    advised = int(caught.value.advice.partition("budget=")[2].rstrip(")."))
    assert mc.gram.of(mc.Gaussian(1.0), X, budget=advised).dense().shape == (900, 900)
    assert show_bytes(999_999) == "1 MB"
    assert budget(np.int64(5)) == 5


def test_threads_leave_the_interpreter_as_it_is(monkeypatch) -> None:
    """How long a thread may keep the interpreter is the business of the whole program, not of one library in it."""
    monkeypatch.setenv("MERCER_NUM_THREADS", "2")
    before, seen = sys.getswitchinterval(), []

    def job() -> None:
        seen.append(sys.getswitchinterval())
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        threads.run([job, job])
    assert {*seen, sys.getswitchinterval()} == {before}


def held(value, seen):
    """The bytes of all arrays that points, and the points seen through them, keep."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes if value.base is None else held(value.base, seen)
    if isinstance(value, Points):
        return held(value.raw, seen) + sum(held(part, seen) for part in value._cache.values())
    return sum(held(part, seen) for part in value) if isinstance(value, tuple) else 0


@pytest.mark.parametrize(
    "family",
    [
        lambda width: mc.Gaussian(np.full(4, width)),
        lambda width: mc.Matern(np.full(4, width)) + mc.Gaussian(np.full(4, 2 * width)),
        lambda width: mc.Gaussian(1.0).after(lambda A: A / width),
        lambda width: mc.Laplacian(np.full(2, width)).on(0, 2),
    ],
    ids=["one", "sum", "map", "columns"],
)
def test_a_search_over_widths_keeps_the_layouts_of_a_few(family):
    X, Z = (np.random.default_rng(seed).normal(size=(size, 4)) for seed, size in ((0, 8000), (1, 3)))
    points = family(1.0).prepare(X)
    for width in np.geomspace(0.5, 2.0, 40):
        K = family(width)(Z, points)
    np.testing.assert_array_equal(K, family(2.0)(Z, X))
    assert held(points, set()) < 20 * X.nbytes


def test_float32_products_are_added_up_in_float64():
    """0.1 summed 4096 times, by tiles and on centres: no BLAS may lose more than the sixth digit."""
    n, k = 4096, mc.Matern(1e9)
    points = k.prepare(np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32))
    tenth = np.float32(0.1)
    V = np.full((n, 1), tenth)
    for pair in (k.pair(points), k.pair(points, points.take(slice(0, n)))):
        np.testing.assert_allclose(k.multiply(pair, V), n * float(tenth), rtol=1e-6)
    Phi = mc.gram.of(k, points).low_rank(points.take(slice(0, 1)), np.float32)
    np.testing.assert_allclose(Phi.adjoint(V.astype(np.float64)) * Phi.L[0, 0], n * float(tenth), rtol=1e-6)


def test_a_wide_float32_product_takes_little_memory_beside_its_result():
    """Partial sums of all columns at once would take as many times the result as there are parts."""
    A, V = np.ones((64, 1024), np.float32), np.ones((1024, 2000), np.float32)
    tracemalloc.start()
    try:
        product = tiling.product(A, V)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (product == 1024.0).all()
    assert peak < 3 * product.nbytes
