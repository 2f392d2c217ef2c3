"""The box problem of support vector machines: its optimum against references, and the limits of the search."""

from __future__ import annotations

import math
import signal
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import mercer as mc
from mercer import threads
from mercer._loops import smo as loops
from mercer.gram import DenseGram
from mercer.gram.values import Fused
from mercer.problems.box import BoxProblem
from mercer.solvers import costs, smo

SIGMA = 1.5
GAMMA = 0.5 / SIGMA**2


HANGS = 600.0  # seconds after which a test that waits for another thread has failed


def blobs(n: int, d: int = 3, seed: int = 0, noise: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return X, y


def classification(X: Any, y: np.ndarray, C: Any = 1.0, kernel: Any = None) -> BoxProblem:
    gram = mc.gram.of(kernel or mc.Gaussian(SIGMA), X)
    return BoxProblem(gram, -y, np.minimum(0.0, C * y), np.maximum(0.0, C * y), np.zeros(len(y)))


def regression(X: np.ndarray, y: np.ndarray, C: float = 1.0, epsilon: float = 0.1) -> BoxProblem:
    n = len(y)
    zero, full = np.zeros(n), np.full(n, C)
    return BoxProblem(
        mc.gram.of(mc.Gaussian(SIGMA), X),
        np.concatenate([epsilon - y, -epsilon - y]),
        np.concatenate([zero, -full]),
        np.concatenate([full, zero]),
        np.zeros(2 * n),
        rows=np.tile(np.arange(n), 2),
    )


def nu_classification(X: np.ndarray, y: np.ndarray, nu: float) -> BoxProblem:
    """Each sign sums to ±νn/2, filled from the first rows on."""
    start = np.zeros(len(y))
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(y == sign)
        room = 0.5 * nu * len(y) - np.arange(len(rows))
        start[rows] = sign * np.clip(room, 0.0, 1.0)
    group = (y < 0).astype(np.int64)
    return BoxProblem(
        mc.gram.of(mc.Gaussian(SIGMA), X), np.zeros(len(y)), np.minimum(0, y), np.maximum(0, y), start, group=group
    )


def exactly(problem: BoxProblem) -> np.ndarray:
    """K of the variables, by differences of coordinates in float64."""
    X = np.asarray(problem.gram.x.vectors(), dtype=np.float64)
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-GAMMA * D)
    return K if problem.rows is None else K[np.ix_(problem.rows, problem.rows)]


def require_optimal(problem: BoxProblem, found: smo.Optimum, tol: float, K: np.ndarray | None = None) -> None:
    """Feasible, and no pair of a group can move by more than the tolerance: on values computed here."""
    K = exactly(problem) if K is None else K
    beta = found.beta
    g = K @ beta + problem.linear
    scale = 1.0 + np.abs(K).max() * np.abs(beta).sum()
    # float32 values may have stayed where they do not decide the gap
    np.testing.assert_allclose(found.gradient, g, atol=(1e-12 if tol < smo.SINGLE else 1e-6) * scale)
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    groups = [np.ones(len(beta), bool)] if problem.group is None else [problem.group == i for i in (0, 1)]
    gaps = []
    for member in groups:
        wanted = problem.start[member].sum()
        assert abs(math.fsum(beta[member]) - wanted) <= 1e-12 * (1.0 + np.abs(beta).sum())
        grow, shrink = member & (beta < problem.upper), member & (beta > problem.lower)
        gaps.append(g[shrink].max(initial=-np.inf) - g[grow].min(initial=np.inf))
    assert max(gaps) <= tol * (1 + 1e-6) + 1e-12 * scale
    assert found.gap == pytest.approx(max(0.0, *gaps), abs=1e-11 * scale)
    digits = 1e-9 if tol < smo.SINGLE else 1e-7
    assert found.objective == pytest.approx(0.5 * beta @ K @ beta + problem.linear @ beta, rel=digits, abs=digits)
    assert found.converged
    assert found.status == "converged"


# --- against references -----------------------------------------------------------------------------------------------


def quadratic_programme(problem: BoxProblem) -> float:
    """The least objective, by a general method."""
    K = exactly(problem)
    groups = [np.ones(problem.size)] if problem.group is None else [(problem.group == i) * 1.0 for i in (0, 1)]
    found = minimize(
        lambda b: 0.5 * b @ K @ b + problem.linear @ b,
        problem.start,
        jac=lambda b: K @ b + problem.linear,
        bounds=list(zip(problem.lower, problem.upper)),
        constraints=[
            {"type": "eq", "fun": lambda b, a=a: a @ (b - problem.start), "jac": lambda b, a=a: a} for a in groups
        ],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert found.success or found.status == 8  # no smaller value along the line: at rounding
    return float(found.fun)


@pytest.mark.parametrize("name", ["classification", "regression", "quantile", "one class", "nu"])
def test_the_optimum_is_that_of_a_general_quadratic_programme(name: str) -> None:
    X, y = blobs(40)
    target = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    n = len(y)
    problem = {
        "classification": classification(X, y, 2.0),
        "regression": regression(X, target),
        "quantile": BoxProblem(
            mc.gram.of(mc.Gaussian(SIGMA), X), -target, np.full(n, -0.6), np.full(n, 1.4), np.zeros(n)
        ),
        "one class": BoxProblem(
            mc.gram.of(mc.Gaussian(SIGMA), X), np.zeros(n), np.zeros(n), np.ones(n), np.full(n, 0.3)
        ),
        "nu": nu_classification(X, y, 0.4),
    }[name]
    found = smo.solve(problem, tol=1e-8)
    require_optimal(problem, found, 1e-8)
    assert found.objective == pytest.approx(quadratic_programme(problem), abs=1e-7)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_classification_is_libsvms(C: float) -> None:
    X, y = blobs(300)
    problem = classification(X, y, C)
    found = smo.solve(problem, tol=1e-7)
    require_optimal(problem, found, 1e-7)
    peer = SVC(C=C, gamma=GAMMA, tol=1e-7).fit(X, y)
    beta = np.zeros(len(y))
    beta[peer.support_] = peer.dual_coef_[0]
    K = exactly(problem)
    assert found.objective == pytest.approx(0.5 * beta @ K @ beta - y @ beta, rel=1e-9)
    assert problem.offsets(found.beta, found.gradient)[0] == pytest.approx(peer.intercept_[0], abs=1e-5)


def test_weights_are_bounds_of_their_own() -> None:
    X, y = blobs(200)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, size=200)
    weights[::7] = 0.0
    problem = classification(X, y, weights)
    found = smo.solve(problem, tol=1e-7)
    require_optimal(problem, found, 1e-7)
    assert not found.beta[::7].any()
    kept = weights > 0
    peer = SVC(C=1.0, gamma=GAMMA, tol=1e-7).fit(X[kept], y[kept], sample_weight=weights[kept])
    assert np.abs(found.beta).sum() == pytest.approx(np.abs(peer.dual_coef_).sum(), rel=1e-5)


def test_regression_is_libsvms() -> None:
    X, _ = blobs(250)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    problem = regression(X, y, C=3.0, epsilon=0.05)
    found = smo.solve(problem, tol=1e-7)
    require_optimal(problem, found, 1e-7)
    peer = SVR(C=3.0, epsilon=0.05, gamma=GAMMA, tol=1e-7).fit(X, y)
    f = exactly(problem)[:250, :250] @ problem.per_point(found.beta) + problem.offsets(found.beta, found.gradient)[0]
    np.testing.assert_allclose(f, peer.predict(X), atol=1e-5)


def test_one_class_is_libsvms() -> None:
    X, _ = blobs(250)
    start = np.clip(0.3 * 250 - np.arange(250.0), 0.0, 1.0)
    problem = BoxProblem(mc.gram.of(mc.Gaussian(SIGMA), X), np.zeros(250), np.zeros(250), np.ones(250), start)
    found = smo.solve(problem, tol=1e-7)
    require_optimal(problem, found, 1e-7)
    peer = OneClassSVM(nu=0.3, gamma=GAMMA, tol=1e-7).fit(X)
    f = found.gradient + problem.offsets(found.beta, found.gradient)[0]
    np.testing.assert_allclose(f, peer.decision_function(X), atol=1e-4)


def test_two_sums_are_libsvms_nu_form() -> None:
    X, y = blobs(250)
    problem = nu_classification(X, y, 0.5)
    found = smo.solve(problem, tol=1e-7)
    require_optimal(problem, found, 1e-7)
    # f/ρ + b/ρ with −g = b ∓ ρ on the margins: LIBSVM scales by ρ
    first, second = problem.offsets(found.beta, found.gradient)
    b, rho = 0.5 * (first + second), 0.5 * (second - first)
    peer = NuSVC(nu=0.5, gamma=GAMMA, tol=1e-7).fit(X, y)
    np.testing.assert_allclose((found.gradient + b) / rho, peer.decision_function(X), atol=1e-4)


# --- large problems: working sets -------------------------------------------------------------------------------------


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets of a size at which a test is quick."""
    monkeypatch.setattr(costs, "DOUBLE_VARIABLES", 0)
    monkeypatch.setattr(costs, "WHOLE_VARIABLES", 60)
    monkeypatch.setattr(costs, "SET_VARIABLES", 64)


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("name", ["classification", "regression", "one class", "nu"])
def test_working_sets_reach_the_same_optimum(name: str, tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(500)
    problem = {
        "classification": lambda: classification(X, y, 5.0),
        "regression": lambda: regression(X, np.sin(X[:, 0]), 2.0, 0.02),
        "one class": lambda: BoxProblem(
            mc.gram.of(mc.Gaussian(SIGMA), X),
            np.zeros(500),
            np.zeros(500),
            np.ones(500),
            np.clip(100 - np.arange(500.0), 0, 1),
        ),
        "nu": lambda: nu_classification(X, y, 0.4),
    }[name]()
    found = smo.solve(problem, tol=tol)
    require_optimal(problem, found, tol)
    monkeypatch.setattr(costs, "WHOLE_VARIABLES", 5000)
    whole = smo.solve(problem, tol=tol)
    require_optimal(problem, whole, tol)
    assert found.objective == pytest.approx(whole.objective, rel=2 * tol, abs=tol)


@pytest.mark.thorough
@pytest.mark.parametrize("n", [0, 1, 300])
def test_just_above_the_whole_matrix(n: int) -> None:
    X, y = blobs(costs.WHOLE_VARIABLES + n)
    problem = classification(X, y)
    found = smo.solve(problem)
    assert found.converged
    K = mc.Gaussian(SIGMA)(X)
    require_optimal(problem, found, 1e-3, K)


@pytest.mark.parametrize("far", [0.0, 30.0, 3000.0])
@pytest.mark.parametrize("whole", [100, 5000])
def test_the_gap_is_that_of_float64_values(far: float, whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although few rows are computed in float64; points far out cost the others' float32 values digits."""
    monkeypatch.setattr(costs, "EXACT_VALUES", 0)
    monkeypatch.setattr(costs, "WHOLE_VARIABLES", whole)
    X, y = blobs(1500)
    X[:5] += far
    problem = classification(X, y)
    K = exactly(problem)
    looked_at = []
    plain = smo._Run.exact_gradient

    def exact(run: smo._Run, some: np.ndarray) -> np.ndarray:
        looked_at.append(len(some))
        return plain(run, some)

    monkeypatch.setattr(smo._Run, "exact_gradient", exact)
    require_optimal(problem, smo.solve(problem), 1e-3, K)
    assert 0 < sum(looked_at) < 1500


@pytest.mark.parametrize("seed", [50, 79, 83])
def test_the_gap_is_right_where_a_few_rows_are_a_thousand_times_larger(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their float32 error is a thousand times the others', on which it is measured."""
    monkeypatch.setattr(costs, "EXACT_VALUES", 0)
    rng = np.random.default_rng(seed)
    n = 2600
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 2 * rng.normal(size=n) > 0, 1.0, -1.0)
    X[rng.choice(n, 3), 1:] *= 1000.0
    problem = classification(X, y, 0.1, mc.Linear())
    found = smo.solve(problem, max_iter=30_000)
    g = X @ (X.T @ found.beta) + problem.linear
    gap = g[found.beta > problem.lower].max() - g[found.beta < problem.upper].min()
    assert found.gap == pytest.approx(max(gap, 0.0), rel=1e-6, abs=1e-9)


@pytest.mark.usefixtures("threads")
def test_a_worker_that_is_told_to_stop_leaves_a_true_iterate() -> None:
    """Products are finished, so that gap and gradient belong to the coefficients, and the status says why it ended."""
    X, y = blobs(900)
    found: list[smo.Optimum] = []
    problem = classification(X, y, 1e6)
    reports: list[smo.MarginStep] = []
    under_way = threading.Event()

    def seen(at: smo.MarginStep) -> bool:
        reports.append(at)
        if len(reports) == 2:
            under_way.set()
            assert tiling_stop.wait(HANGS)
        return True

    def work() -> None:
        found.append(smo.solve(problem, tol=1e-9, progress=seen))

    def stop() -> None:
        nonlocal tiling_stop
        tiling_stop = threads._local.stop
        assert under_way.wait(HANGS)
        tiling_stop.set()

    tiling_stop = threading.Event()
    threads.run([work, stop])
    (optimum,) = found
    assert optimum.status == "interrupted"
    K = exactly(problem)
    g = K @ optimum.beta + problem.linear
    np.testing.assert_allclose(optimum.gradient, g, atol=1e-9 * np.abs(optimum.beta).sum())


def test_float32_that_is_far_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values wrong by 1e-3: the gap that is reported is still the true one, and it is reached in float64."""
    monkeypatch.setattr(costs, "EXACT_VALUES", 0)
    X, y = blobs(600)
    problem = classification(X, y)
    plain = Fused.add

    def wrong(self: Fused, g: np.ndarray, columns: np.ndarray, delta: np.ndarray) -> None:
        plain(self, g, columns, delta)
        if self.dtype == np.float32:
            g += 1e-3 * np.sin(np.arange(len(g)))

    monkeypatch.setattr(Fused, "add", wrong)
    require_optimal(problem, smo.solve(problem), 1e-3, exactly(problem))


@pytest.mark.parametrize("kernel", [mc.Polynomial(3, c=1.0), mc.Laplacian(2.0), mc.Linear() + mc.Gaussian(1.0)])
def test_other_kernels(kernel: Any, small_sets: None) -> None:
    X, y = blobs(400)
    problem = classification(X, y, 0.5, kernel)
    found = smo.solve(problem)
    require_optimal(problem, found, 1e-3, kernel(X))


def test_precomputed_and_sparse_points(small_sets: None) -> None:
    import scipy.sparse as sp

    X, y = blobs(300)
    K = mc.Gaussian(SIGMA)(X)
    expected = smo.solve(classification(X, y), tol=1e-6).objective
    for data, kernel in (
        (np.arange(300), mc.Precomputed(K)),
        (K, mc.Precomputed()),
        (sp.csr_array(X), mc.Gaussian(SIGMA)),
        (X.astype(np.float32), mc.Gaussian(SIGMA)),
    ):
        found = smo.solve(classification(data, y, 1.0, kernel), tol=1e-6)
        assert found.converged
        assert found.objective == pytest.approx(expected, rel=1e-5)


def test_a_path_computes_the_matrix_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "DOUBLE_VARIABLES", 0)
    X, y = blobs(400)
    gram, kept = mc.gram.of(mc.Gaussian(SIGMA), X), dict[Any, Any]()
    made = []
    values = DenseGram.values
    monkeypatch.setattr(
        DenseGram, "values", lambda gram, dtype, limit: made.append(dtype) or values(gram, dtype, limit)
    )
    start = np.zeros(400)
    for C in (0.1, 1.0, 10.0):
        problem = BoxProblem(gram, -y, np.minimum(0.0, C * y), np.maximum(0.0, C * y), start)
        found = smo.solve(problem, kept=kept)
        require_optimal(problem, found, 1e-3)
        start = 10.0 * found.beta
        K, _, filled = kept["matrix", 4]
        # rows that were needed are there, in both directions the same; others were not computed
        assert 0 < filled.sum() < 400
        rows = np.flatnonzero(filled)
        np.testing.assert_allclose(K[rows, :400], exactly(problem)[rows], atol=1e-6)
        np.testing.assert_array_equal(K[np.ix_(rows, rows)], K[np.ix_(rows, rows)].T)
        assert len(made) == 2  # float32 and float64, once for the whole path


@pytest.mark.parametrize("kernel", [mc.Gaussian(SIGMA), mc.Laplacian(2.0)], ids=["fused", "tiles"])
@pytest.mark.parametrize("stored", [False, True])
def test_some_points_of_a_gram_are_a_problem_of_their_own(kernel: Any, stored: bool, small_sets: None) -> None:
    X, y = blobs(500)
    gram, kept = mc.gram.of(kernel, X), dict[Any, Any]()
    if stored:
        gram.dense()
    for size in (50, 200):
        rows = np.random.default_rng(size).permutation(500)[:size]
        own = classification(X[rows], y[rows], 1.0, kernel)
        found = smo.solve(BoxProblem(gram, own.linear, own.lower, own.upper, own.start, rows=rows), kept=kept)
        require_optimal(own, found, 1e-3, kernel(X[rows]))


def test_a_stored_gram_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One Gram for several problems: what is in memory is used, in its own precision."""
    X, y = blobs(400)
    problem = classification(X, y)
    expected = smo.solve(problem, tol=1e-6)
    problem.gram.dense()
    monkeypatch.setattr(mc.Gaussian, "fused", None)
    monkeypatch.setattr(mc.Gaussian, "fill", None)
    monkeypatch.setattr(mc.Gaussian, "multiply", None)
    for whole in (5000, 60):
        monkeypatch.setattr(costs, "WHOLE_VARIABLES", whole)
        monkeypatch.setattr(costs, "SET_VARIABLES", 64)
        found = smo.solve(problem, tol=1e-6)
        require_optimal(problem, found, 1e-6)
        assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    found = smo.solve(problem)
    require_optimal(problem, found, 1e-3)


# --- precision --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("C", "tol"), [(1.0, 1e-6), (1000.0, 1e-3), (1000.0, 1e-6), (1e5, 1e-3)])
@pytest.mark.parametrize("sets", [False, True], ids=["whole", "sets"])
def test_the_gap_asked_for_is_reached_in_float64(
    C: float, tol: float, sets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sets:
        monkeypatch.setattr(costs, "WHOLE_VARIABLES", 60)
        monkeypatch.setattr(costs, "SET_VARIABLES", 128)
    X, y = blobs(300, noise=0.2)
    problem = classification(X, y, C)
    found = smo.solve(problem, tol=tol)
    require_optimal(problem, found, tol)


def test_bounds_are_reached_exactly_and_sums_kept() -> None:
    """C = 0.1 is no float32, and neither is 1/3."""
    X, y = blobs(400)
    for C in (0.1, 1 / 3):
        problem = classification(X, y, C)
        found = smo.solve(problem)
        at = np.abs(found.beta) == C
        assert at.sum() > 100
        near = np.abs(np.abs(found.beta) - C) < 1e-6 * C
        assert (near == at).all()
        assert abs(math.fsum(found.beta)) < 1e-12


def test_equal_points_of_both_classes() -> None:
    X, y = blobs(100)
    X, y = np.concatenate([X, X, X]), np.concatenate([y, -y, y])
    problem = classification(X, y, 2.0)
    found = smo.solve(problem, tol=1e-6)
    require_optimal(problem, found, 1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_kernels_of_any_size(scale: float) -> None:
    """c·K with C/c is the same problem; float32 would overflow or lose the small one."""
    X, y = blobs(100)
    kernel = scale**2 * mc.Gaussian(SIGMA)
    problem = classification(X, y, 1 / scale**2, kernel)
    found = smo.solve(problem)
    assert found.converged
    expected = smo.solve(classification(X, y)).objective
    assert found.objective * scale**2 == pytest.approx(expected, rel=1e-3)


def test_huge_values_do_not_overflow() -> None:
    X, y = blobs(60)
    found = smo.solve(classification(1e5 * X, y, 1.0, mc.Polynomial(4, c=1.0)), max_iter=100_000)
    assert np.isfinite(found.objective)
    assert np.isfinite(found.gap)


def test_an_indefinite_matrix_ends_at_a_point_where_no_pair_can_move() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 200))
    K = A + A.T
    y = np.where(rng.normal(size=200) > 0, 1.0, -1.0)
    problem = classification(np.arange(200), y, 1.0, mc.Precomputed(K))
    found = smo.solve(problem, max_iter=1_000_000)
    require_optimal(problem, found, 1e-3, K)


def test_few_variables() -> None:
    y = np.array([-1.0, 1.0])
    found = smo.solve(classification(np.array([[-1.0], [1.0]]), y, np.inf, mc.Linear()))
    np.testing.assert_allclose(found.beta, [-0.5, 0.5], rtol=1e-6)
    one = smo.solve(classification(np.array([[1.0]]), np.ones(1)))
    assert one.converged
    assert one.gap == 0
    np.testing.assert_array_equal(one.beta, 0)


def test_data_that_no_margin_separates_end_with_a_status() -> None:
    """The dual has no minimum: β grows until the search is given up."""
    X, y = blobs(50)
    X[1], y[1] = X[0], -y[0]
    found = smo.solve(classification(X, y, np.inf))
    assert 0 < found.iterations < 1_000_000, "given up long before the ten million that it may take"
    assert not found.converged
    assert "unbounded" in found.status


def test_nothing_is_read_that_was_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh memory may hold anything, NaN for one."""
    aligned = loops.aligned

    def dirty(shape: Any, dtype: Any, empty: bool = False) -> Any:
        a = aligned(shape, dtype, empty)
        if empty:
            a[...] = np.nan
        return a

    monkeypatch.setattr(loops, "aligned", dirty)
    X, y = blobs(150)
    for whole in (1000, 60):
        monkeypatch.setattr(costs, "WHOLE_VARIABLES", whole)
        monkeypatch.setattr(costs, "SET_VARIABLES", 70)
        for problem in (classification(X, y), nu_classification(X, y, 0.4), regression(X, y)):
            require_optimal(problem, smo.solve(problem), 1e-3)


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sets", [False, True], ids=["whole", "sets"])
def test_limits_are_kept_and_the_iterate_is_feasible(sets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if sets:
        monkeypatch.setattr(costs, "WHOLE_VARIABLES", 60)
        monkeypatch.setattr(costs, "SET_VARIABLES", 128)
    X, y = blobs(800)
    problem = classification(X, y, 1000.0)
    seen: list[smo.MarginStep] = []

    def stop(at: smo.MarginStep) -> bool:
        seen.append(at)
        return False

    for found, words in (
        (smo.solve(problem, max_iter=37), "37 iterations"),
        (smo.solve(problem, max_time=0.0), "time limit"),
        (smo.solve(problem, tol=1e-9, progress=stop), "by the caller"),
    ):
        assert words in found.status
        assert not found.converged
        assert found.gap > 1e-3
        assert (found.beta >= problem.lower).all()
        assert (found.beta <= problem.upper).all()
        assert abs(math.fsum(found.beta)) < 1e-9
        np.testing.assert_allclose(found.gradient, exactly(problem) @ found.beta - y, atol=1e-8)
    assert smo.solve(problem, max_iter=37).iterations == 37
    assert len(seen) == 2  # where it was stopped, and the end
    assert seen[-1].gap > 0
    assert seen[-1].seconds > 0
    assert smo.solve(problem, max_iter=-1).converged


def test_progress_tells_of_a_descent() -> None:
    X, y = blobs(600)
    seen: list[smo.MarginStep] = []
    found = smo.solve(classification(X, y, 1000.0), tol=1e-5, progress=seen.append)  # None goes on
    assert found.converged
    assert len(seen) > 2
    objectives = [at.objective for at in seen]
    assert (np.diff(objectives) <= 1e-6 * np.abs(objectives[-1])).all()
    assert [at.iteration for at in seen] == sorted(at.iteration for at in seen)
    assert seen[-1].iteration == found.iterations
    assert seen[-1].support == np.count_nonzero(found.beta)
    assert seen[-1].objective == found.objective


def test_an_interrupt_keeps_the_iterate() -> None:
    X, y = blobs(900, noise=1.5)
    problem = classification(X, y, 1e6)
    reports: list[smo.MarginStep] = []

    def seen(at: smo.MarginStep) -> bool:
        reports.append(at)
        if len(reports) == 2:
            signal.raise_signal(signal.SIGINT)
        return True

    with pytest.raises(smo.Interrupted) as caught:
        smo.solve(problem, tol=1e-9, progress=seen)
    assert len(reports) == 2
    found = caught.value.optimum
    assert found.status == "interrupted"
    assert found.iterations > 0
    assert np.count_nonzero(found.beta) > 100
    assert abs(math.fsum(found.beta)) < 1e-9 * np.abs(found.beta).sum()
    assert found.objective < -1.0
    assert found.gap > 1e-9


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian(SIGMA), mc.Laplacian(2.0)], ids=["fused", "tiles"])
def test_a_small_budget_never_stores_the_matrix(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """n × n would take 36 MB; the budget is 4."""
    monkeypatch.setenv("MERCER_MEMORY", "4 MB")
    X, y = blobs(3000)
    problem = classification(X, y, 1.0, kernel)
    smo.solve(problem, max_iter=10)
    tracemalloc.start()
    try:
        found = smo.solve(problem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.converged
    assert peak < 8e6


# --- the loop ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 200])
def test_one_step_is_the_second_order_rule(n: int, dtype: type) -> None:
    """Against the rule written out: the pair, and the step within the box."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, 5)).astype(dtype)
    K = loops.matrix(n, dtype)
    K[:, :n] = A @ A.T + np.eye(n)
    loops.close(K)
    G = K[:, :n].astype(np.float64)
    lower, upper = -rng.uniform(size=n), rng.uniform(size=n)
    beta = np.where(rng.uniform(size=n) < 0.3, lower, np.where(rng.uniform(size=n) < 0.3, upper, 0.0))
    g = G @ beta + rng.normal(size=n)
    state = loops.State(K, g, beta, lower, upper)
    done, _ = state.run(1e-3, 1)
    grow, shrink = beta < upper, beta > lower
    if n == 1:
        assert done == 0
        return
    i = np.where(grow, g, np.inf).argmin()
    apart = np.where(shrink, g - g[i], -1.0)
    gain = np.where(apart > 0, apart**2 / np.maximum(G[i, i] + np.diag(G) - 2 * G[i], 1e-12), -1.0)
    j = gain.argmax()
    move = min(apart[j] / (G[i, i] + G[j, j] - 2 * G[i, j]), upper[i] - beta[i], beta[j] - lower[j])
    expected = beta.copy()
    expected[i] += move
    expected[j] -= move
    assert done == 1
    np.testing.assert_allclose(state.beta, expected, atol=1e-5 if dtype == np.float32 else 1e-13)
    np.testing.assert_allclose(state.f, g + G @ (expected - beta), atol=1e-4 if dtype == np.float32 else 1e-12)
