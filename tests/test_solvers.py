"""Solvers of the linear system, against a dense solve of the bordered matrix."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as sla

import mercer as mc
from mercer.errors import InvalidInput
from mercer.gram import DenseGram, TiledGram
from mercer.gram import costs as gram_costs
from mercer.gram.pivoted import by_rows, pivoted_cholesky
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import auto, choice, cholesky, costs, refinement
from mercer.solvers.cg import Step, conjugate_gradients
from mercer.solvers.choice import Size, choose
from mercer.solvers.cholesky import CholeskyFactor, triangular, upper_product
from mercer.solvers.preconditioners import LowRank, RoundedFactor

N = 90


def make(n=N, *, t=3, alpha=0.1, weights=False, tail=0, dtype="float64", kernel=None, budget=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(dtype)
    y = np.sin(X[:, :1].astype(np.float64) + np.arange(t)) + 0.1 * rng.normal(size=(n, t)) + 1.0
    roots = np.sqrt(rng.uniform(0.3, 3.0, n)) if weights else None
    P = np.hstack([np.ones((n, 1)), X[:, : tail - 1]]).astype(np.float64) if tail else None
    gram = mc.gram.of(kernel or mc.Gaussian(1.5), X, budget=budget)
    return LeastSquares(gram, y, np.broadcast_to(np.asarray(alpha, float), (t,)).copy(), roots, P)


def bordered(problem, alpha):
    """M = [[K + alpha W⁻¹, P], [Pᵀ, 0]], entry by entry as it is defined."""
    n = problem.n
    weights = np.ones(n) if problem.roots is None else problem.roots**2
    P = np.zeros((n, 0)) if problem.tail is None else problem.tail
    K = problem.gram.kernel(problem.gram.x, dtype=np.float64)
    return np.block([[K + alpha * np.diag(1 / weights), P], [P.T, np.zeros((P.shape[1],) * 2)]])


def naive(problem):
    n, p = problem.n, 0 if problem.tail is None else problem.tail.shape[1]
    both = [
        np.linalg.solve(bordered(problem, alpha), np.concatenate([problem.y[:, j], np.zeros(p)]))
        for j, alpha in enumerate(problem.alpha)
    ]
    both = np.stack(both, axis=1)
    return both[:n], both[n:]


def residual(problem, solution):
    """The relative residual in weighted coordinates, from its definition."""
    s = np.ones(problem.n) if problem.roots is None else problem.roots
    K = problem.gram.kernel(problem.gram.x, dtype=np.float64)
    u = solution.coef / s[:, None]
    R = s[:, None] * problem.y - s[:, None] * (K @ solution.coef) - problem.alpha * u
    if problem.tail is not None:
        R -= s[:, None] * (problem.tail @ solution.tail)
    return (np.linalg.norm(R, axis=0) / np.linalg.norm(s[:, None] * problem.y, axis=0)).max()


@pytest.fixture
def low(monkeypatch):
    """Thresholds at the size of these tests: everything above 40 points is large."""
    monkeypatch.setattr(costs, "FLOAT64_ROWS", 40)
    monkeypatch.setattr(costs, "STORED_ROWS", 40)
    monkeypatch.setattr(costs, "PIVOTED_ROWS", 40)
    monkeypatch.setattr(costs, "PIVOTED_RANK", 30)


WAYS = {
    "cholesky": {"solver": "cholesky"},
    "eigen": {"solver": "eigen"},
    "factor": {"solver": "auto", "alpha": 1e-3},
    "factor, tiles": {"solver": "auto", "alpha": 1e-3, "budget": 5 * N * N},
    "pivots": {"solver": "auto", "alpha": 0.3},
    "pivots, tiles": {"solver": "auto", "alpha": 0.3, "budget": 3 * N * N, "tol": 1e-10},
}
EXPECTED = {"cholesky": "cholesky", "eigen": "eigen"}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tail", [0, 1, 3])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_every_solver_solves_the_bordered_system(low, way, weights, tail, dtype):
    options = dict(WAYS[way])
    alpha = options.pop("alpha", 0.05)
    problem = make(weights=weights, tail=tail, dtype=dtype, alpha=[alpha, 2 * alpha, alpha])
    solution = auto.solve(problem, **options)
    assert solution.solver == EXPECTED.get(way, "cg"), solution.status
    assert (way.split(",")[0] == "pivots") == ("pivoted columns" in solution.status)
    assert (way.split(",")[0] == "factor") == ("float32 Cholesky" in solution.status)
    c, b = naive(problem)
    single = dtype == "float32"
    cut = single and way == "eigen"  # eigenvalues below the rounding of float32 count as zero there
    close = {"rtol": 0, "atol": (1e-2 if cut else 2e-3 if single else 1e-8) * np.abs(c).max()}
    np.testing.assert_allclose(solution.coef, c, **close)
    if tail:
        np.testing.assert_allclose(solution.tail, b, rtol=0, atol=close["atol"])
        np.testing.assert_allclose(problem.tail.T @ solution.coef, 0, atol=1e-4 if single else 1e-9)
    else:
        assert solution.tail is None
    assert solution.stats["converged"]
    # The claim is true, up to the rounding of a float32 Gram matrix.
    assert solution.residual <= (1e-3 if cut else 1e-7 if single else 1e-10)
    assert residual(problem, solution) <= solution.residual + (1e-4 if single else 1e-13)


@pytest.mark.parametrize("way", ["cholesky", "factor", "factor, tiles", "pivots"])
def test_a_float32_residual_is_that_of_the_float32_matrix_in_float64(low, way):
    problem = make(dtype="float32", alpha=WAYS[way].get("alpha", 0.05))
    solution = auto.solve(problem, **{k: v for k, v in WAYS[way].items() if k != "alpha"})
    K = problem.gram.fresh().astype(np.float64)
    R = problem.y - K @ solution.coef - problem.alpha * solution.coef
    true = (np.linalg.norm(R, axis=0) / np.linalg.norm(problem.y, axis=0)).max()
    assert K.dtype == np.float64
    assert problem.gram.dtype == np.float32
    np.testing.assert_allclose(solution.residual, true, rtol=1e-3, atol=1e-9)
    assert true <= 1e-7


def test_zero_and_constant_targets_are_solved(low):
    problem = make(tail=1, alpha=1e-3)
    problem.y[:, 0] = 0.0
    problem.y[:, 1] = 5.0
    for way in ("cg", "cholesky"):
        solution = auto.solve(problem, way)
        assert np.array_equal(solution.coef[:, 0], np.zeros(N))
        np.testing.assert_allclose(solution.coef[:, 1], 0, atol=1e-6)
        np.testing.assert_allclose(solution.tail[0, :2], [0.0, 5.0], atol=1e-9)


def test_a_far_offset_is_refined_to_the_tolerance(low):
    """Targets 1e4 ± 1 with an intercept: what is left after the tail is 1e-4 of what the iteration sees."""
    problem = make(tail=1, alpha=1e-3)
    problem.y[:] += 1e6
    solution = auto.solve(problem)
    assert solution.residual <= 1e-10
    c, _ = naive(problem)
    np.testing.assert_allclose(solution.coef, c, atol=1e-3)


# -- which solver, and why ---------------------------------------------------------------------------------------------


def chosen(problem, **options):
    return choose(Size.of(problem), **options)


def test_choices_and_their_reasons(low, monkeypatch):
    assert chosen(make(30)).solver == "cholesky"
    assert "30 is small" in chosen(make(30)).why
    zero = chosen(make(alpha=[0.1, 0.0, 0.1]))
    assert (zero.solver, zero.why) == ("eigen", "alpha = 0 requires the solution of minimum norm")
    many = chosen(make(t=20, alpha=np.linspace(0.1, 1, 20)))
    assert many.solver == "eigen"
    assert "all 20 values of alpha" in many.why
    assert chosen(make(t=20, alpha=0.001)).solver == "cg"
    plain = chosen(make(alpha=1e-3))
    assert (plain.solver, plain.preconditioner, plain.low_memory) == ("cg", "factor", False)
    low_memory = chosen(make(alpha=1e-3), budget=11 * N * N)
    assert (low_memory.preconditioner, low_memory.low_memory) == ("factor", True)
    assert "does not fit the budget" in low_memory.why
    pivots = chosen(make(alpha=0.05))
    assert (pivots.preconditioner, pivots.low_memory) == ("pivots", False)
    assert "alpha is 0.05 of the mean k(x, x)" in pivots.why
    # alpha counts beside the kernel's own scale, and beside the weights.
    assert chosen(make(alpha=0.05, kernel=100.0 * mc.Gaussian(1.5))).preconditioner == "factor"
    heavy = make(alpha=0.05, weights=True)
    assert chosen(replace(heavy, roots=10 * heavy.roots)).preconditioner == "factor"
    beyond = chosen(make(alpha=1e-3), budget=3 * N * N)
    assert (beyond.solver, beyond.preconditioner, beyond.low_memory) == ("cg", "pivots", True)
    assert (beyond.rank, beyond.tol) == (3 * N * N // 2 // (4 * N), 1e-3)
    assert "32.4 kB" in beyond.why
    # An unbounded kernel could overflow in float32: the columns take twice the memory.
    assert chosen(make(alpha=1e-3, kernel=mc.Linear()), budget=3 * N * N).rank == 3 * N * N // 2 // (8 * N)
    for little in (N * N // 4, 3 * N * N):
        monkeypatch.setattr(choice, "LONGEST_PASS", np.inf if little < N * N else 1.0)
        found = chosen(make(alpha=1e-3), budget=little)
        assert found.solver == "nystrom"
        assert "approximation" in found.why


def test_reasons_reach_the_status(low):
    assert auto.solve(make(30)).status == "exact, by a Cholesky factor (n = 30 is small)"
    assert auto.solve(make(alpha=1e-3)).status.endswith(f"(n = {N})")
    assert auto.solve(make(30), "cholesky").status == "exact, by a Cholesky factor"


def test_beyond_the_budget_and_too_slow_is_nystrom_and_says_so(low, monkeypatch):
    monkeypatch.setattr(choice, "LONGEST_PASS", 1.0)
    solution = auto.solve(make(alpha=1e-3), budget=3 * N * N)
    assert solution.solver == "nystrom"
    assert "takes 32.4 kB, the budget is 24.3 kB, and computing it again and again" in solution.status
    assert solution.points is not None


def test_the_whole_kernel_beyond_memory(low, monkeypatch):
    """Float32 products, one float64 check, and a residual that is what it claims to be, at the default tolerance."""
    products = []
    original = TiledGram._product
    monkeypatch.setattr(TiledGram, "_product", lambda self, V: products.append(self.dtype) or original(self, V))
    problem = make(alpha=1e-2, weights=True, tail=1)
    steps = []
    solution = auto.solve(problem, budget=3 * N * N, progress=lambda step: steps.append(step) or True)
    assert solution.stats["converged"]
    assert 1e-5 < solution.residual <= 1e-3
    np.testing.assert_allclose(residual(problem, solution), solution.residual, rtol=1e-3)
    assert solution.stats["pivots"] == 33
    assert solution.stats["passes"] == len(products) - products.count(np.float32) + solution.stats["iterations"]
    assert products.count(np.float32) == solution.stats["iterations"] == len(steps)
    assert "a matrix that is never stored, preconditioned by 33 randomly pivoted columns" in solution.status
    assert [step.iteration for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1].tol == 1e-3
    assert steps[-1].gap <= 1e-3
    again = auto.solve(problem, budget=3 * N * N)
    np.testing.assert_array_equal(again.coef, solution.coef)


def test_float64_continues_where_float32_ends(low):
    """A wide kernel at a small alpha: float32 products cannot halve the residual any more, and float64 ones can."""
    problem = make(alpha=1e-5, kernel=mc.Gaussian(20.0))
    solution = auto.solve(problem, budget=3 * N * N, tol=1e-9)
    assert solution.stats["converged"]
    assert residual(problem, solution) <= 1e-9


def test_a_time_limit_stops_iterations(low):
    problem = make(alpha=1e-4)
    solution = auto.solve(problem, budget=3 * N * N, tol=1e-12, max_time=1e-9)
    assert solution.stats["iterations"] == 1
    assert not solution.stats["converged"]
    assert solution.status.startswith("stopped after 1 iterations above the tolerance 1e-12")
    np.testing.assert_allclose(residual(problem, solution), solution.residual, rtol=1e-6)


def test_a_small_budget_never_stores_the_matrix(low, monkeypatch):
    """With room for a float32 matrix only, that is the only n × n array there is."""
    wanted = []
    original = LeastSquares.matrix

    def matrix(self, dtype=None):
        wanted.append(np.dtype(dtype or self.gram.dtype))
        return original(self, dtype)

    monkeypatch.setattr(LeastSquares, "matrix", matrix)
    problem = make(alpha=1e-3)
    assert isinstance(problem.gram, DenseGram)
    monkeypatch.setattr(DenseGram, "dense", lambda self: pytest.fail("the float64 matrix was stored"))
    assert auto.solve(problem, budget=5 * N * N).residual < 1e-10
    assert wanted == [np.float32]
    wanted.clear()
    assert auto.solve(make(alpha=0.3), budget=3 * N * N, tol=1e-10).residual < 1e-10
    assert wanted == []


def test_expensive_entries_are_stored_where_there_is_room(low, monkeypatch):
    """Where an entry costs much more to compute than to fetch, K is stored instead of recomputed for every product."""
    products = []
    original = TiledGram.__matmul__

    def counted(self, V):
        products.append(V.shape)
        return original(self, V)

    monkeypatch.setattr(TiledGram, "__matmul__", counted)
    monkeypatch.setattr(gram_costs, "WORTH_STORING", 0.0)
    assert auto.solve(make(alpha=1e-3)).residual < 1e-10
    assert len(products) == 0
    solution = auto.solve(make(alpha=1e-3), budget=11 * N * N)  # no room
    assert len(products) == solution.stats["iterations"] + 1
    products.clear()
    monkeypatch.setattr(gram_costs, "WORTH_STORING", np.inf)
    solution = auto.solve(make(alpha=1e-3))
    assert len(products) == solution.stats["iterations"] + 1
    products.clear()
    monkeypatch.setattr(costs, "STORED_ROWS", N)  # a small matrix is stored at once
    assert auto.solve(make(alpha=1e-3)).residual < 1e-10
    assert len(products) == 0


@pytest.mark.parametrize("solver", ["cg", "nystrom"])
@pytest.mark.parametrize("kernel", [mc.Gaussian(2.0), mc.Gaussian(2.0) + mc.Matern(2.0)], ids=["cheap", "expensive"])
def test_the_clock_decides_no_number(low, monkeypatch, solver, kernel):
    """However long products seem to take, the same problem has the same solution to the last bit."""

    def solved(pace):
        clock = itertools.accumulate(itertools.cycle(pace))
        monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
        return auto.solve(make(alpha=1e-3, kernel=kernel), solver)

    first, second = solved([1.0, 0.0]), solved([0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(first.coef, second.coef)
    assert first.stats == second.stats


# -- fallbacks ---------------------------------------------------------------------------------------------------------

WIDE = mc.Gaussian(300.0)


def test_a_bad_float32_pivot_falls_back_to_float64(low):
    """A very wide kernel at tiny alpha: K + alpha I is singular in float32, not in float64."""
    problem = make(alpha=1e-9, kernel=WIDE)
    with pytest.raises(np.linalg.LinAlgError):
        RoundedFactor(problem.matrix(np.float32), 1e-9)
    solution = auto.solve(problem)
    assert solution.solver == "cholesky"
    assert "the float32 one does not exist" in solution.status
    assert solution.residual < 1e-6
    np.testing.assert_allclose(residual(problem, solution), solution.residual, rtol=0.5, atol=1e-7)


def test_slow_iterations_fall_back_to_float64(low, monkeypatch):
    monkeypatch.setattr(costs, "FACTOR_ITERATIONS", 1)
    problem = make(alpha=1e-6)
    solution = auto.solve(problem)
    assert solution.solver == "cholesky"
    assert "the iterations were slow" in solution.status
    assert solution.residual < 1e-10


def test_slow_pivots_fall_back_to_the_factor(low, monkeypatch):
    monkeypatch.setattr(costs, "PIVOTED_ITERATIONS", 2)
    problem = make(alpha=0.3)
    solution = auto.solve(problem)
    assert "float32 Cholesky" in solution.status
    assert solution.residual < 1e-10
    np.testing.assert_allclose(solution.coef, naive(problem)[0], atol=1e-8)


def test_without_room_for_float64_a_larger_shift_and_more_iterations(low):
    problem = make(alpha=1e-7, kernel=WIDE)
    with pytest.raises(np.linalg.LinAlgError):
        RoundedFactor(problem.matrix(np.float32), 1e-7)
    solution = auto.solve(problem, budget=5 * N * N)
    assert solution.solver == "cg"
    assert solution.stats["converged"]
    assert solution.stats["iterations"] > costs.FACTOR_ITERATIONS
    assert solution.residual <= 1e-10


def test_not_converged_is_said(low, monkeypatch):
    monkeypatch.setattr(refinement, "LAST_ITERATIONS", 2)
    solution = auto.solve(make(alpha=1e-6, kernel=mc.Gaussian(5.0)), budget=5 * N * N)
    assert not solution.stats["converged"]
    assert solution.status.startswith("not converged after 2 iterations above the tolerance 1e-10")
    assert solution.residual > 1e-10


def test_progress_is_told_and_can_stop(low):
    steps = []

    def watch(step):
        steps.append(step)
        return len(steps) < 2

    solution = auto.solve(make(alpha=1e-4), progress=watch, tol=1e-12)
    assert [step.iteration for step in steps] == [1, 2]
    assert all(isinstance(step, Step) for step in steps)
    assert "iteration 2: gap" in str(steps[1])
    assert solution.status.startswith("stopped after 2 iterations")
    assert not solution.stats["converged"]
    # What was reached is what is claimed.
    problem = make(alpha=1e-4)
    np.testing.assert_allclose(residual(problem, solution), solution.residual, rtol=1e-2)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_unknown_solver_lists_those_that_exist():
    with pytest.raises(
        InvalidInput,
        match=r"one of 'auto', 'cholesky', 'eigen', 'cg', 'nystrom', 'blocks', 'fourier', got 'lu'. Use 'auto'",
    ):
        auto.solve(make(), "lu")


def test_cg_needs_a_penalty():
    with pytest.raises(InvalidInput, match="`alpha` must be > 0 for `solver='cg'`"):
        auto.solve(make(alpha=0.0), "cg")


def test_minimum_norm_beyond_the_budget_is_refused_with_figures(low):
    with pytest.raises(InvalidInput, match=r"eigendecomposition of 90 points must fit the memory budget of 8\.1 kB"):
        auto.solve(make(alpha=0.0), budget=N * N)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_a_dependent_tail_is_refused(solver):
    problem = make(tail=1)
    problem = replace(problem, tail=np.hstack([problem.tail, 2 * problem.tail]))
    with pytest.raises(InvalidInput, match="linearly independent on the points, got rank 1 of 2"):
        auto.solve(problem, solver)


def indefinite(n=N, dtype="float64"):
    """A matrix with one eigenvalue −3."""
    rng = np.random.default_rng(5)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    K = (Q * np.r_[-3.0, np.linspace(1, 10, n - 1)]) @ Q.T
    K = ((K + K.T) / 2).astype(dtype)
    return mc.gram.of(mc.Precomputed(K), np.arange(n))


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_negative_eigenvalue_is_named(monkeypatch, dtype, weights, every):
    monkeypatch.setattr(cholesky, "ALL_EIGENVALUES", 1000 if every else 10)
    problem = replace(make(weights=weights), gram=indefinite(dtype=dtype))
    for solver in ("cholesky", "auto", "cg"):
        with pytest.raises(InvalidInput, match=r"positive semidefinite, got the eigenvalue -3 < 0 on these 90 points"):
            auto.solve(problem, solver)


@pytest.mark.parametrize("every", [True, False])
def test_a_singular_matrix_is_told_from_an_indefinite_one(monkeypatch, every):
    monkeypatch.setattr(cholesky, "ALL_EIGENVALUES", 1000 if every else 10)
    found = "rank 3 of 90" if every else "its smallest eigenvalue is"
    with pytest.raises(InvalidInput, match=f"alpha` must be larger .* 0: the Gram matrix is singular .*{found}"):
        auto.solve(make(alpha=0.0, kernel=mc.Linear()), "cholesky")


# -- the Cholesky factor -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tail", [0, 2])
@pytest.mark.parametrize("weights", [False, True])
def test_the_factor_answers_as_the_dense_inverse_does(weights, tail, dtype):
    n = 300  # more than one strip
    problem = make(n, weights=weights, tail=tail)
    factor = CholeskyFactor.of(problem, 0.1, dtype)
    G = np.linalg.inv(bordered(problem, 0.1))
    atol = 1e-9 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(factor.inverse(), G[:n, :n], atol=atol)
    np.testing.assert_allclose(factor.diagonal(), np.diag(G)[:n], atol=atol)
    inverse = factor.inverse()
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    Z = mc.Gaussian(1.5)(problem.gram.x.raw[:5] + 0.1, problem.gram.x)
    P = np.ones((5, 2)) if tail else np.zeros((5, 0))
    smoother = factor.smoother(Z, P if tail else None)
    np.testing.assert_allclose(smoother, np.hstack([Z, P]) @ G[:, :n], atol=10 * atol)
    s = np.ones(n) if problem.roots is None else problem.roots
    A = s[:, None] * mc.Gaussian(1.5)(problem.gram.x) * s + 0.1 * np.eye(n)
    volume = np.linalg.slogdet(bordered(problem, 0.1))[1]
    np.testing.assert_allclose(factor.log_determinant(), volume, rtol=1e-4 if atol > 1e-6 else 1e-12)
    B = problem.y
    np.testing.assert_allclose(factor.multiply(B), A @ B, atol=1e-11 if dtype == "float64" else 1e-3)
    np.testing.assert_allclose(factor.solve_system(B), np.linalg.solve(A, B), atol=10 * atol)
    Q = np.ones((2, B.shape[1])) if tail else None
    M = np.linalg.inv(bordered(problem, 0.1)) / np.outer(*[np.r_[s, np.ones(tail)]] * 2)
    both = B if Q is None else np.vstack([B, Q])
    wanted = np.einsum("it,ij,jt->t", both, M, both)
    np.testing.assert_allclose(factor.quadratic(B, Q), wanted, rtol=1e-3 if atol > 1e-6 else 1e-10)
    if dtype == "float64":
        np.testing.assert_allclose(factor.condition, np.linalg.cond(A, 1), rtol=0.5)
        np.testing.assert_allclose(factor.into_inverse(), G[:n, :n], atol=atol)


def test_the_factor_is_computed_in_place():
    K = mc.Gaussian(1.0)(np.random.default_rng(0).normal(size=(50, 2)))
    factor = CholeskyFactor(K, 0.1)
    assert np.shares_memory(factor.L, K)


@pytest.mark.parametrize("t", [1, 3, 20])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_triangles_and_products_read_only_their_half(dtype, t):
    rng = np.random.default_rng(0)
    A = np.asfortranarray(rng.normal(size=(300, 300)) + 30 * np.eye(300)).astype(dtype)
    B = rng.normal(size=(300, t))
    L = np.tril(A).astype(np.float64)
    tol = {"rtol": 1e-9} if dtype == "float64" else {"rtol": 1e-3, "atol": 1e-5}
    np.testing.assert_allclose(triangular(A, B), sla.solve_triangular(L, B, lower=True), **tol)
    np.testing.assert_allclose(triangular(A, B, transposed=True), sla.solve_triangular(L.T, B), **tol)
    np.testing.assert_allclose(triangular(A, B[:, 0]), sla.solve_triangular(L, B[:, 0], lower=True), **tol)
    d = rng.normal(size=300)
    upper = np.triu(A, 1).astype(np.float64)
    np.testing.assert_allclose(upper_product(A, d, B), (upper + upper.T + np.diag(d)) @ B, rtol=1e-10, atol=1e-11)


# -- conjugate gradients and preconditioners ---------------------------------------------------------------------------


def spd(n=60, condition=1e4, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = (Q * np.geomspace(1, condition, n)) @ Q.T
    return (A + A.T) / 2


def test_columns_iterate_as_if_alone():
    A = spd()
    B = np.random.default_rng(1).normal(size=(60, 4))
    B[:, 1] = A[:, 0] * 1e-3  # another size, another number of iterations
    B[:, 2] = 0.0
    widths = []

    def multiply(V):
        widths.append(V.shape[1])
        return A @ V

    together = conjugate_gradients(multiply, B, tol=1e-8)
    assert together.converged
    assert widths[0] == 3  # zeros are solved already
    assert widths[-1] < 3  # converged columns leave the products
    assert widths == sorted(widths, reverse=True)
    for j in range(4):
        # How many iterations a condition of 1e4 takes is a matter of rounding; where they end is not.
        alone = conjugate_gradients(lambda V: A @ V, B[:, [j]], tol=1e-8)
        assert alone.converged
        assert (alone.iterations == 0) == (j == 2)
        apart = A @ (together.X[:, [j]] - alone.X)
        assert np.linalg.norm(apart) <= 2.2e-8 * np.linalg.norm(B[:, j])
    true = np.linalg.norm(B - A @ together.X, axis=0)
    assert (true <= 1.1e-8 * np.linalg.norm(B, axis=0)).all()


def test_an_exact_preconditioner_needs_one_iteration_and_a_limit_is_kept():
    A = spd()
    B = np.ones((60, 1))
    one = conjugate_gradients(lambda V: A @ V, B, precondition=lambda R: np.linalg.solve(A, R), tol=1e-8)
    assert one.iterations == 1
    assert one.converged
    few = conjugate_gradients(lambda V: A @ V, B, max_iter=3, tol=1e-8)
    assert few.iterations == 3
    assert not few.converged
    assert few.residual[0] > 1e-8


def test_low_rank_preconditioner_is_the_inverse_of_what_it_says():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(200, 7))
    M = F @ F.T + 0.3 * np.eye(200)
    for t in (1, 12):
        R = rng.normal(size=(200, t))
        np.testing.assert_allclose(LowRank(F, 0.3)(R), np.linalg.solve(M, R), atol=1e-10)
        single = LowRank(F.astype(np.float32), 0.3)(R.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, np.linalg.solve(M, R), atol=1e-3)


def test_rounded_factor_survives_residuals_below_float32():
    problem = make()
    A = problem.matrix() + 0.1 * np.eye(N)
    M = RoundedFactor(problem.matrix(np.float32), 0.1)
    R = 1e-60 * problem.y
    np.testing.assert_allclose(M(R), np.linalg.solve(A, R), rtol=1e-2, atol=1e-64)
    assert np.array_equal(M(np.zeros((N, 1))), np.zeros((N, 1)))


# -- randomly pivoted Cholesky -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("block", [1, 7, 128])
def test_pivoted_cholesky_is_exact_on_finite_rank(dtype, block):
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(dtype)
    kernel = mc.Polynomial(2, c=1.0)  # 10 features
    P = pivoted_cholesky(mc.gram.of(kernel, X), 50, rng=np.random.default_rng(1), block=block)
    assert P.rank == 10
    assert P.factor.dtype == dtype
    np.testing.assert_allclose(P.factor @ P.factor.T, kernel(X), atol=1e-9 if dtype == "float64" else 2e-3)
    assert P.error < (1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("budget", [None, 8 * 300 * 5])
def test_pivots_are_unique_and_the_residual_diagonal_is_right(budget):
    X = np.random.default_rng(0).normal(size=(300, 2))
    kernel = 2.0 * mc.Gaussian(0.5)
    gram = mc.gram.of(kernel, X, budget=budget)
    P = pivoted_cholesky(gram, 60, rng=np.random.default_rng(3), block=20)
    assert P.rank == 60
    assert len(set(P.pivots.tolist())) == 60
    K = kernel(X)
    np.testing.assert_allclose(P.residual, np.diag(K - P.factor @ P.factor.T), atol=1e-12)
    assert P.trace == pytest.approx(600.0)
    assert P.error == pytest.approx(P.residual.sum() / 600.0)
    # It interpolates K at the pivots, and what is left is positive semidefinite.
    np.testing.assert_allclose(P.factor @ P.factor[P.pivots].T, K[:, P.pivots], atol=1e-10)
    assert np.linalg.eigvalsh(K - P.factor @ P.factor.T)[0] > -1e-10
    triangle = P.factor[P.pivots]
    np.testing.assert_allclose(triangle, np.tril(triangle), atol=1e-10)
    # No error of rank 60 is below the sum of the eigenvalues left out; random pivots reach that of half the rank.
    values = np.linalg.eigvalsh(K) / 600.0
    assert values[:-60].sum() < P.error < values[:-30].sum()


def test_pivoted_cholesky_stops_at_the_tolerance_and_never_fills_the_matrix(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2))
    gram = mc.gram.of(mc.Gaussian(2.0), X)
    monkeypatch.setattr(DenseGram, "dense", lambda self: pytest.fail("the whole matrix was filled"))
    P = pivoted_cholesky(gram, 300, rng=np.random.default_rng(0), tol=1e-3, block=5)
    assert P.error <= 1e-3
    fewer = pivoted_cholesky(gram, P.rank - 8, rng=np.random.default_rng(0), tol=1e-3, block=5)
    assert fewer.error > 1e-3
    again = pivoted_cholesky(gram, 300, rng=np.random.default_rng(0), tol=1e-3, block=5)
    assert np.array_equal(P.pivots, again.pivots)


@pytest.mark.thorough
def test_the_second_pivot_follows_the_residual_diagonal():
    """Blocks must not change the law: P(second = j | first = i) ∝ (K − kᵢkᵢᵀ/Kᵢᵢ)ⱼⱼ, whatever the block."""
    K = mc.Gaussian(1.0)(np.array([[0.0], [0.3], [1.5], [4.0]]))
    draws = 2000
    for block in (1, 4):
        rng = np.random.default_rng(0)
        counts = np.zeros((4, 4))
        for _ in range(draws):
            P = by_rows(lambda i: K[i], np.ones(4), np.float64, 2, rng=rng, block=block)
            counts[P.pivots[0], P.pivots[1]] += 1
        left = np.array([np.clip(1 - K[i] ** 2, 0, None) for i in range(4)])
        expected = 0.25 * left / left.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(counts / draws, expected, atol=4 * np.sqrt(0.25 / draws))


def test_duplicate_points_are_taken_once():
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 5, axis=0)
    P = pivoted_cholesky(mc.gram.of(mc.Gaussian(1.0), X), 50, rng=np.random.default_rng(0))
    assert P.rank == 10
    assert len({i // 5 for i in P.pivots.tolist()}) == 10


def test_pivoted_cholesky_refuses_what_it_cannot_do():
    gram = mc.gram.of(mc.Gaussian(1.0), np.zeros((3, 1)))
    with pytest.raises(InvalidInput, match="`rank` must be a whole number ≥ 1, got 0"):
        pivoted_cholesky(gram, 0, rng=np.random.default_rng(0))
    negative = mc.gram.of(mc.Precomputed(np.diag([1.0, -2.0])), [0, 1])
    with pytest.raises(InvalidInput, match="must be ≥ 0, got -2 at point 1"):
        pivoted_cholesky(negative, 1, rng=np.random.default_rng(0))
