"""Nyström: the minimiser that dense linear algebra finds, whatever the kernel, the weights, the tail and the path."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.gram.centers import choose_centers, kmeans
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import cholesky, costs, nystrom

rng = np.random.default_rng(0)
N = 300
X = rng.normal(size=(N, 4))
Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 2]) * X[:, 3], 3.0 + X[:, 1] ** 2], axis=1)
Y += 0.1 * rng.normal(size=Y.shape)
SETS = [frozenset(rng.choice(12, size=rng.integers(1, 8), replace=False).tolist()) for _ in range(N)]
WORDS = [str(v) for v in rng.choice(list("abcdefg"), size=N)]
CASES = [
    (mc.Gaussian(2.0), X),
    (mc.Gaussian([1.0, 2.0, 3.0, 2.0]), X),
    (mc.Matern(2.0, nu=1.5), X),
    (mc.Laplacian(3.0), X),
    (mc.Polynomial(2, c=1.0), X),
    (0.5 * mc.Gaussian(1.0) + mc.Linear(), X),
    (mc.Intersection(), SETS),
    (mc.Delta(), WORDS),
]


def problem(kernel, data, t=1, alpha=0.1, weights=None, tail=None, dtype=None, budget=None):
    y = Y[: len(data), :t]
    roots = None if weights is None else np.sqrt(weights)
    return LeastSquares(
        mc.gram.of(kernel, data, dtype=dtype, budget=budget), y, np.broadcast_to(alpha, (t,)), roots, tail
    )


def dense(p, centers):
    """The values of f at the points, and its tail, by one augmented least-squares problem in float64."""
    kernel, n = p.gram.kernel, p.n
    Knm, Kmm = kernel(p.gram.x, centers, dtype="float64"), kernel(centers, dtype="float64")
    s = np.ones(n) if p.roots is None else p.roots
    P = np.zeros((n, 0)) if p.tail is None else p.tail
    values, vectors = np.linalg.eigh(Kmm)
    kept = values > 1e-12 * values[-1]
    half = vectors[:, kept] / np.sqrt(values[kept])  # coordinates in which ‖f‖ is Euclidean, null directions left out
    f, b = np.empty_like(p.y), np.empty((P.shape[1], p.y.shape[1]))
    for j, alpha in enumerate(p.alpha):
        features = Knm @ half
        r = features.shape[1]
        A = np.block([[s[:, None] * features, s[:, None] * P], [np.sqrt(alpha) * np.eye(r), np.zeros((r, P.shape[1]))]])
        solution = np.linalg.lstsq(A, np.concatenate([s * p.y[:, j], np.zeros(r)]), rcond=None)[0]
        f[:, j] = np.hstack([features, P]) @ solution
        b[:, j] = solution[r:]
    return f, b


def fitted(p, solution):
    f = p.gram.kernel(p.gram.x, solution.points, dtype="float64") @ solution.coef
    return f if p.tail is None else f + p.tail @ solution.tail


def iterative(monkeypatch):
    """Make small problems take the path of large ones: sampled preconditioner, streamed rows."""
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0.0)
    monkeypatch.setattr(nystrom, "sample_size", lambda n, m, tol: min(n, 4 * m))


@pytest.mark.parametrize(("kernel", "data"), CASES, ids=lambda v: repr(v) if isinstance(v, mc.Kernel) else "")
@pytest.mark.parametrize("path", ["exact", "iterative"])
def test_it_is_the_dense_solution_for_every_kernel(kernel, data, path, monkeypatch):
    if path == "iterative":
        iterative(monkeypatch)
    weights = rng.uniform(0.2, 3.0, size=N)
    tail = np.stack([np.ones(N), np.linspace(-1, 1, N)], axis=1)
    for p in (
        problem(kernel, data),
        problem(kernel, data, t=3, alpha=[1.0, 0.01, 0.1], weights=weights, tail=tail),
    ):
        solution = nystrom.solve(p, n_centers=40, tol=1e-10)
        assert solution.solver == "nystrom"
        assert solution.residual <= 1e-10
        assert solution.coef.shape == (solution.points.n, p.y.shape[1])
        f, b = dense(p, solution.points)
        np.testing.assert_allclose(fitted(p, solution), f, atol=1e-8 * np.abs(p.y).max())
        if p.tail is not None:
            np.testing.assert_allclose(solution.tail, b, atol=1e-8 * np.abs(p.y).max())
    assert (solution.stats["sampled_rows"] < N) == (path == "iterative")


def test_many_penalties_share_one_decomposition(monkeypatch):
    iterative(monkeypatch)
    y = np.repeat(Y, 4, axis=1)
    p = LeastSquares(mc.gram.of(mc.Gaussian(2.0), X), y, np.geomspace(1e-3, 10.0, 12), tail=np.ones((N, 1)))
    solution = nystrom.solve(p, n_centers=40, tol=1e-10)
    np.testing.assert_allclose(fitted(p, solution), dense(p, solution.points)[0], atol=1e-8)


@pytest.mark.parametrize("weights", [None, rng.uniform(0.5, 2.0, size=N)], ids=["plain", "weighted"])
def test_with_all_points_as_centres_it_is_exact_kernel_ridge(weights):
    p = problem(mc.Gaussian(1.5), X, t=2, alpha=[0.1, 1.0], weights=weights, tail=np.ones((N, 1)))
    exact = cholesky.solve(p)
    for m in (N, N + 50):
        solution = nystrom.solve(p, n_centers=m, tol=1e-10)
        assert solution.points.n == N
        assert "all points" in solution.status
        np.testing.assert_allclose(fitted(p, solution), p.gram.dense() @ exact.coef + exact.tail, atol=1e-8)
        np.testing.assert_allclose(solution.tail, exact.tail, atol=1e-8)


def test_a_weight_is_a_repetition():
    counts = rng.integers(1, 4, size=N)
    centers = X[:30]
    weighted = nystrom.solve(problem(mc.Gaussian(2.0), X, weights=counts.astype(float)), centers=centers)
    rows = np.repeat(np.arange(N), counts)
    repeated = LeastSquares(mc.gram.of(mc.Gaussian(2.0), X[rows]), Y[rows, :1], np.array([0.1]))
    np.testing.assert_allclose(weighted.coef, nystrom.solve(repeated, centers=centers).coef, rtol=1e-6, atol=1e-8)


def test_without_penalty_it_is_least_squares_in_the_span():
    p = problem(mc.Gaussian(1.0), X, alpha=0.0, tail=np.ones((N, 1)))
    solution = nystrom.solve(p, n_centers=30, tol=1e-9)
    A = np.hstack([p.gram.kernel(X, solution.points), np.ones((N, 1))])
    np.testing.assert_allclose(fitted(p, solution), A @ np.linalg.lstsq(A, p.y, rcond=None)[0], atol=1e-7)


def test_without_penalty_float32_coefficients_stay_small_enough_to_evaluate():
    x, y, z, v = wide()
    kernel = mc.Gaussian(20.0)
    p = LeastSquares(mc.gram.of(kernel, x, budget="1 MB"), y[:, None], np.zeros(1))
    solution = nystrom.solve(p, n_centers=200)
    assert r2((kernel(z, solution.points) @ solution.coef.astype(np.float32))[:, 0], v) > 0.8


def test_a_tail_with_dependent_columns_gives_the_same_function():
    one = np.ones((N, 1))
    single, double = (problem(mc.Gaussian(2.0), X, tail=tail) for tail in (one, np.hstack([one, 2.0 * one])))
    a, b = (nystrom.solve(p, n_centers=30, tol=1e-9) for p in (single, double))
    np.testing.assert_allclose(fitted(single, a), fitted(double, b), atol=1e-8)


# --- the operator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_streamed_and_stored_rows_give_the_same_products(dtype, monkeypatch):
    kernel = mc.Matern(2.0, nu=1.5)
    points = kernel.prepare(np.tile(X, (8, 1)) + 0.01 * np.arange(8).repeat(N)[:, None])
    centers = points.take(slice(0, 2000, 40))
    monkeypatch.setattr("mercer.gram.costs.WORTH_STORING", 0.0)
    stored = mc.gram.of(kernel, points).low_rank(centers, dtype)
    streamed = mc.gram.of(kernel, points).low_rank(centers, dtype, budget="1 MB" if dtype == np.float64 else "500 kB")
    assert stored.stored
    assert not streamed.stored
    n, m = stored.shape
    K, L = kernel(points, stored.centers, dtype="float64"), stored.L
    np.testing.assert_allclose(L @ L.T, kernel(stored.centers, dtype="float64"), atol=1e-12)
    Phi = np.linalg.solve(L, K.T).T
    V, U, w = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)), rng.uniform(size=(n, 1))
    tolerance = 1e-10 if dtype == np.float64 else 2e-3

    def between(rows, values):
        return w[rows] * values

    for operator in (stored, streamed):
        np.testing.assert_allclose(operator @ V, Phi @ V, atol=tolerance)
        np.testing.assert_allclose(operator.adjoint(U), Phi.T @ U, atol=tolerance * 10)
        np.testing.assert_allclose(operator.normal(V), Phi.T @ (Phi @ V), atol=tolerance * 100)
        np.testing.assert_allclose(operator.normal(V, between), Phi.T @ (w * (Phi @ V)), atol=tolerance * 100)
        np.testing.assert_allclose(operator.features([3, 700]), Phi[[3, 700]], atol=tolerance)
    np.testing.assert_array_equal(stored.normal(V, between), streamed.normal(V, between))
    index, Q = np.arange(0, n, 3), np.linalg.qr(rng.normal(size=(n // 3, 2)))[0]
    part = w[index] * Phi[index]
    part -= Q @ (Q.T @ part)
    inverse = np.linalg.inv(L)
    expected = part.T @ part + 0.5 * inverse @ inverse.T
    np.testing.assert_allclose(streamed.normal_matrix(index, w[index, 0], Q, 0.5), expected, atol=tolerance * 100)


def test_centres_in_the_span_of_the_others_are_dropped():
    kernel = mc.Polynomial(2, c=1.0)  # 15 features in 4 columns
    Phi = mc.gram.of(kernel, X).low_rank(kernel.prepare(X[:60]))
    assert Phi.shape == (N, 15)
    np.testing.assert_allclose(Phi.features() @ Phi.features().T, kernel(X), atol=1e-8 * kernel.diag(X).max())
    solution = nystrom.solve(problem(kernel, X), centers=X[:60])
    assert solution.points.n == 15
    assert "45 more add nothing" in solution.status
    # What float32 cannot resolve would only amplify its rounding; float64 resolves it.
    kernel = mc.Gaussian(50.0)
    single, double = (mc.gram.of(kernel, X).low_rank(kernel.prepare(X[:60]), dtype) for dtype in ("float32", "float64"))
    assert np.diagonal(single.L).min() ** 2 > np.finfo(np.float32).eps
    assert single.shape[1] < double.shape[1]
    np.testing.assert_array_equal(single.centers.raw, X[single.kept])


# --- float32 ----------------------------------------------------------------------------------------------------------


def wide(n=4000, d=8):
    x = np.random.default_rng(1).normal(size=(n + 1000, d)).astype(np.float32)
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.1 * np.random.default_rng(2).normal(size=len(x))
    return x[:n], y[:n], x[n:], y[n:]


def r2(f, y):
    return 1.0 - float(((y - f) ** 2).mean() / y.var())


@pytest.mark.parametrize("path", ["exact", "iterative"])
def test_float32_keeps_the_r2_that_normal_equations_lose(path, monkeypatch):
    if path == "iterative":
        iterative(monkeypatch)
    x, y, z, v = wide()
    kernel, alpha = mc.Gaussian(12.0), 1e-5
    p = LeastSquares(mc.gram.of(kernel, x, budget="1 MB"), y[:, None], np.array([alpha]))
    solution = nystrom.solve(p, n_centers=200)
    ours = r2((kernel(z, solution.points) @ solution.coef.astype(np.float32))[:, 0], v)
    Knm, Kmm = kernel(x, x[:200]), kernel(x[:200])
    normal = Knm.T @ Knm + np.float32(alpha) * Kmm
    c = np.linalg.lstsq(normal, Knm.T @ y.astype(np.float32), rcond=None)[0]
    half = np.linalg.cholesky(kernel(x[:200].astype(float)) + 1e-13 * np.eye(200))
    features = np.linalg.solve(half, kernel(x[:200].astype(float), np.vstack([x, z]).astype(float))).T
    A = features[: len(x)].T @ features[: len(x)] + alpha * np.eye(200)
    best = r2(features[len(x) :] @ np.linalg.solve(A, features[: len(x)].T @ y), v)
    assert ours > best - 0.01
    assert r2(kernel(z, x[:200]) @ c, v) < best - 0.05


def test_float32_passes_reach_the_tolerance_or_give_way_to_float64(monkeypatch):
    iterative(monkeypatch)
    x, y, _, _ = wide()
    for sigma, dtype in ((2.0, "float32"), (30.0, "float64")):
        p = LeastSquares(mc.gram.of(mc.Gaussian(sigma), x, budget="1 MB"), y[:, None], np.array([1e-3]))
        solution = nystrom.solve(p, n_centers=100)
        assert solution.stats["dtype"] == dtype
        assert solution.residual <= 1e-3
        f = fitted(p, nystrom.solve(p, n_centers=100, tol=1e-8))
        assert np.linalg.norm(fitted(p, solution) - f) < 3e-3 * np.linalg.norm(f)


def test_targets_of_any_unit():
    small, large = (problem(mc.Gaussian(2.0), X) for _ in range(2))
    large = LeastSquares(large.gram, 1e200 * large.y, large.alpha)
    a, b = (nystrom.solve(p, n_centers=30) for p in (small, large))
    np.testing.assert_allclose(b.coef, 1e200 * a.coef, rtol=1e-6)
    zero = nystrom.solve(LeastSquares(small.gram, np.zeros((N, 1)), small.alpha), n_centers=30)
    assert not zero.coef.any()


def test_wildly_scaled_columns():
    scales = np.array([1e-8, 1.0, 1e6, 1e3])
    p = problem(mc.Gaussian(2.0 * scales), X * scales)
    plain = problem(mc.Gaussian(2.0), X)
    for centers in ("uniform", "kmeans"):
        a, b = (nystrom.solve(q, n_centers=30, centers=centers) for q in (p, plain))
        np.testing.assert_allclose(fitted(p, a), fitted(plain, b), atol=1e-6)


# --- centres ----------------------------------------------------------------------------------------------------------


def chosen(data, m, how, kernel=None, seed=0):
    return choose_centers(mc.gram.of(kernel or mc.Gaussian(1.0), data), m, how, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("how", ["uniform", "kmeans", "pivoted"])
def test_centres_are_distinct_repeatable_and_keep_their_dtype(how):
    data = np.repeat(X[:50], 4, axis=0).astype(np.float32)
    centers = chosen(data, 60, how)
    raw = np.asarray(centers.raw)
    assert raw.dtype == np.float32
    assert len(np.unique(raw, axis=0)) == centers.n <= 50
    np.testing.assert_array_equal(raw, np.asarray(chosen(data, 60, how).raw))
    if how != "kmeans":
        np.testing.assert_array_equal(raw, data[centers.index])
    assert chosen(X, 20, how).n == 20
    assert not np.array_equal(chosen(X, 20, how).raw, chosen(X, 20, how, seed=1).raw)


@pytest.mark.parametrize("how", ["uniform", "pivoted"])
def test_any_kind_of_points_can_be_centres(how):
    centers = chosen(SETS, 20, how, mc.Intersection())
    assert 12 >= centers.n > 5 or how == "uniform"
    assert all(s in SETS for s in centers.raw)
    assert chosen(WORDS, 100, how, mc.Delta()).n == 7


def test_given_centres_and_all_points():
    given = np.vstack([X[:5], X[:2]])
    np.testing.assert_array_equal(chosen(X, 3, given).raw, X[:5])
    assert chosen(X, N + 1, "uniform").n == N
    assert chosen(SETS, 3, [{1, 2}, {3}], mc.Intersection()).n == 2


def test_kmeans_finds_separated_clusters_and_lowers_the_inertia():
    middles = 20.0 * rng.normal(size=(12, 4))
    data = np.concatenate([m + 0.1 * rng.normal(size=(60, 4)) for m in middles]) + 1e3
    means, _ = kmeans(data, 12, rng=np.random.default_rng(0))
    nearest = np.linalg.norm(means[:, None] - middles - 1e3, axis=2)
    assert (nearest.min(axis=0) < 0.1).all()
    _, falling = kmeans(rng.normal(size=(2000, 4)), 30, rng=np.random.default_rng(0))
    assert len(falling) > 3
    assert (np.diff(falling) <= 0).all()
    assert falling[-1] < 0.9 * falling[0]


def test_kmeans_gives_an_empty_cluster_a_point():
    data = np.array([[0.0], [0.0], [1.0], [5.0]])
    means, inertia = kmeans(data, 3, rng=np.random.default_rng(0))
    np.testing.assert_allclose(np.sort(means, axis=0)[:, 0], [0.0, 1.0, 5.0])
    assert inertia[-1] == 0.0
    assert len(kmeans(np.ones((5, 2)), 3, rng=np.random.default_rng(0))[0]) == 1


# --- what is refused, what is told ------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_advice():
    import scipy.sparse as sp

    p = problem(mc.Gaussian(1.0), X)
    for bad, match in (
        ({"n_centers": 0}, "whole number"),
        ({"n_centers": 2.5}, "whole number"),
        ({"centers": "best"}, "uniform"),
        ({"tol": 0.0}, "tol"),
        ({"n_centers": 200, "budget": "100 kB"}, "centres"),
    ):
        with pytest.raises(mc.InvalidInput, match=match):
            nystrom.solve(p, **bad)
    with pytest.raises(mc.InvalidInput, match="vectors, which have a mean"):
        chosen(SETS, 3, "kmeans", mc.Intersection())
    with pytest.raises(mc.InvalidInput, match="dense"):
        chosen(sp.csr_array(X), 3, "kmeans")
    with pytest.raises(mc.InvalidInput, match="symmetric"):
        choose_centers(mc.gram.of(mc.Linear(), X, X[:3]), 2, rng=rng)
    indefinite = mc.FromFunction(lambda a, b: -float(a @ b))
    with pytest.raises(mc.InvalidInput, match="positive semidefinite"):
        nystrom.solve(problem(indefinite, X), n_centers=20)


def test_progress_stops_it_and_the_status_says_how_far_it_came(monkeypatch):
    iterative(monkeypatch)
    p = problem(mc.Gaussian(1.0), X, alpha=1e-3)
    lines = []
    solution = nystrom.solve(p, n_centers=60, tol=1e-9, progress=lambda step: lines.append(step) or len(lines) < 2)
    assert len(lines) == solution.stats["iterations"] == 2
    assert solution.status.startswith("stopped after 2 iterations")
    assert not solution.stats["converged"]
    solution = nystrom.solve(p, n_centers=60, tol=1e-4, progress=lambda step: False)
    assert solution.stats["iterations"] == 1
    assert solution.stats["dtype"] == "float32"  # stopped is stopped: no second round in float64
    solution = nystrom.solve(p, n_centers=60, tol=1e-9, max_iter=3)
    assert solution.residual > 1e-9
    assert not solution.stats["converged"]


def test_the_model_warns_where_it_did_not_converge(monkeypatch):
    iterative(monkeypatch)
    monkeypatch.setattr(nystrom.solve, "__kwdefaults__", {**nystrom.solve.__kwdefaults__, "max_iter": 1})
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3, solver="nystrom", n_centers=60, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        model.fit(X, X[:, 0])


def test_more_rows_seen_mean_fewer_steps(monkeypatch):
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0.0)
    data = rng.normal(size=(3000, 4))
    p = LeastSquares(mc.gram.of(mc.Gaussian(1.0), data), np.sin(data[:, :1]), np.array([30.0]))
    steps = []
    for s in (3, 10, 60):
        monkeypatch.setattr(nystrom, "sample_size", lambda n, m, tol, s=s: min(n, s * m))
        steps.append(nystrom.solve(p, n_centers=50, tol=1e-8).stats["iterations"])
    assert steps[0] > steps[1] > steps[2]
    assert steps[1] <= 14


def test_the_default_number_of_centres():
    assert nystrom.default_centers(10**6, 10**10) == 5000
    assert nystrom.default_centers(10**6, 10**6) == 88
    assert nystrom.default_centers(7, 10**10) == 7


def test_where_the_rows_drawn_tell_too_little_all_of_them_do(monkeypatch):
    """A preconditioner of ten rows is none; the fit must not end where it began, at the mean."""
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0)
    monkeypatch.setattr(nystrom, "sample_size", lambda n, m, tol: 10)
    monkeypatch.setattr(nystrom, "PATIENCE", (6, 6))
    x = np.linspace(0.0, 30.0, 1500)[:, None]
    model = mc.KernelRidge(mc.Gaussian(0.5), alpha=1e-7, fit_intercept=True, solver="nystrom", n_centers=150)
    model.fit(x, np.sin(x[:, 0]))
    assert "solved directly" in model.status_
    assert model.score(x, np.sin(x[:, 0])) > 0.9999


def test_centres_must_add_more_than_rounding_where_the_penalty_is_tiny(monkeypatch):
    """A wide kernel and alpha at its rounding: no answer of float64 is exact, but none is the mean."""
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0)
    x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(3000, 3))
    y = np.sin(3.0 * x[:, 0]) + x[:, 1] * x[:, 2]
    model = mc.KernelRidge(mc.Gaussian(6.0), alpha=1e-10, fit_intercept=True, n_centers=400).fit(x, y)
    assert model.score(x, y) > 0.99


# --- kernels that nobody has proven, numbers that overflow ------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        lambda k: mc.KernelRidge(k, alpha=0.1, n_centers=5),
        lambda k: mc.KernelRidge(k, alpha="loo", solver="nystrom", n_centers=5),
        lambda k: mc.KernelLogisticRegression(k, alpha=0.1, n_centers=5),
    ],
    ids=["ridge", "path", "logistic"],
)
def test_an_unproven_kernel_on_centres_is_checked_on_the_centres_only(model):
    n, pairs = 200, []

    def similar(x, z):
        pairs.append(1)
        return float(np.exp(-abs(x[0] - z[0])))

    points = np.linspace(0.0, 3.0, n)[:, None]
    model(mc.FromFunction(similar)).fit(points, points[:, 0] > 1)
    assert len(pairs) < n * (n + 1) // 2  # the whole matrix, each pair once

    def dissimilar(x, z):
        return float(abs(x[0] - z[0]))

    with pytest.raises(mc.InvalidInput, match="of the centres must be positive semidefinite"):
        model(mc.FromFunction(dissimilar)).fit(points, points[:, 0] > 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_sums_that_overflow_are_refused(value):
    """Whatever is added to its diagonal, such a matrix has no factor: the search for one has to end."""
    with pytest.raises(mc.InvalidInput, match="must be finite numbers"):
        nystrom.shifted(np.full((3, 3), value), 1.0, value)


@pytest.mark.parametrize("kernel", [mc.Linear(), mc.Gaussian(2.0), mc.Matern(2.0, nu=2.3)])
def test_the_clock_does_not_decide_what_is_stored(kernel, monkeypatch):
    """However long rows seem to take, the same problem is solved in the same memory and the same way."""
    points, found = kernel.prepare(X), []
    for pace in (0.0, 1.0):
        clock = itertools.count(0.0, pace)
        monkeypatch.setattr(time, "perf_counter", lambda clock=clock: next(clock))
        found.append(mc.gram.of(kernel, points).low_rank(points.take(slice(0, 40))).stored)
    assert found[0] == found[1]
