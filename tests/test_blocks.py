"""Blocks of coordinates of the whole kernel, after centres."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import auto, blocks

N = 300


@pytest.fixture
def small(monkeypatch):
    """Blocks of 100 coordinates."""
    monkeypatch.setattr(blocks, "LEAST", 100)


def data(dtype="float64"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)).astype(dtype)
    Y = np.sin(2 * X[:, :1].astype(float) + np.arange(2)) + 0.1 * rng.normal(size=(N, 2)) + 1.0
    return X, Y, rng.uniform(0.5, 2.0, N)


def exact(problem, tail=None):
    """The residual of the definition, relative to the targets, of a function's coefficients."""
    s = np.ones(N) if problem.roots is None else problem.roots
    K = s[:, None] * problem.gram.kernel(problem.gram.x, dtype=np.float64) * s
    Y = problem.weighted_targets - (0.0 if tail is None else problem.weighted_tail @ tail)
    solutions = [np.linalg.solve(K + a * np.eye(N), Y[:, j]) for j, a in enumerate(problem.alpha)]
    return s[:, None] * np.stack(solutions, axis=1)


@pytest.mark.parametrize(("dtype", "weighted"), [("float64", True), ("float32", False)])
def test_the_whole_kernel_is_solved(small, dtype, weighted):
    X, Y, w = data(dtype)
    roots = np.sqrt(w) if weighted else None
    problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X, budget="10 kB"), Y, np.array([0.5, 2.0]), roots)
    solution = auto.solve(problem, "blocks", n_centers=40, tol=1e-3, max_passes=60)
    assert solution.stats["converged"], solution.status
    assert solution.solver == "blocks"
    s = np.ones((N, 1)) if roots is None else roots[:, None]
    K = s * problem.gram.kernel(X, dtype=np.float64) @ (s * (solution.coef / s - exact(problem) / s))
    assert (np.linalg.norm(K, axis=0) < 3e-3 * np.linalg.norm(s * Y, axis=0)).all()
    first, again = (auto.solve(problem, "blocks", n_centers=40, max_passes=1) for _ in range(2))
    np.testing.assert_array_equal(again.coef, first.coef)
    assert "Nyström approximation with 40 centres (uniform)" in solution.status


def test_the_tail_of_the_centres_is_kept(small):
    X, Y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), Y, np.array([0.5, 0.5]), None, np.ones((N, 1)))
    first = auto.solve(problem, "nystrom", n_centers=40)
    solution = auto.solve(problem, "blocks", n_centers=40, tol=1e-3, max_passes=60)
    np.testing.assert_array_equal(solution.tail, first.tail)
    expected = exact(problem, solution.tail)
    assert np.abs(solution.coef - expected).max() < 2e-2 * np.abs(expected).max()


def test_it_starts_from_the_centres_and_lowers_the_residual(small):
    X, Y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(0.7), X), Y, np.array([0.3, 0.3]))
    centres = auto.solve(problem, "nystrom", n_centers=60)
    start = auto._on_all_points(problem, centres)
    assert np.count_nonzero(start[:, 0]) == 60
    whole = exact(problem)
    K = problem.gram.dense()
    error = lambda coef: np.linalg.norm(K @ (coef - whole))  # noqa: E731
    limits = (2, 15)
    errors = [error(auto.solve(problem, "blocks", n_centers=60, max_passes=most, tol=1e-9).coef) for most in limits]
    assert error(start) > errors[0] > 2 * errors[1]
    cold = blocks.solve(problem, np.zeros_like(start), None, tol=1e-9, passes=2)
    # Every step counts its rows of K: n/b steps are one pass.
    assert cold.stats["iterations"] == 6
    assert cold.stats["passes"] == 2.0


@pytest.fixture(scope="module")
def smooth():
    """A kernel matrix so ill-conditioned that the coefficients of centres are huge numbers that cancel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    Y = np.sin(X[:, :1]) + X[:, 1:2] ** 2 + 0.1 * rng.normal(size=(1500, 1))
    return X, Y, mc.Gaussian(1.0)(X)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("alpha", "unit"), [(1.0, 1e-6), (1.0, 1.0), (1e-2, 1.0), (1e-4, 1e-6), (1e-6, 1.0), (1e-8, 1.0)]
)
def test_it_ends_better_than_the_centres_wherever_it_ends(smooth, alpha, unit):
    X, Y, K = smooth
    problem = LeastSquares(mc.gram.of(unit * mc.Gaussian(1.0), X), Y, np.array([unit * alpha]))

    def objective(coef):
        f = K @ (unit * coef)
        return float(((Y - f) ** 2).sum() + alpha * np.vdot(unit * coef, f))

    def residual(coef):
        return float(np.linalg.norm(Y - K @ (unit * coef) - alpha * unit * coef))

    centres = auto._on_all_points(problem, auto.solve(problem, "nystrom"))
    assert np.abs(unit * centres).max() > 500
    ends = [blocks.solve(problem, centres, None, tol=1e-9, passes=passes) for passes in (0.1, 1, 3, 8)]
    assert ends[0].stats["iterations"] == 1
    kept = ["worse than the centres, which are kept" in end.status for end in ends]
    assert kept == sorted(kept, reverse=True)
    assert not any(kept[2:])
    # The objective is never larger than that of the centres, and the residual falls below that of the start.
    assert max(objective(end.coef) for end in ends) <= objective(centres) * (1 + 1e-9)
    first = residual(blocks._start(problem, Y, centres, np.random.default_rng(0)))
    assert residual(ends[-1].coef) < min(first, residual(ends[1].coef))


def test_tiny_penalties_and_scales_stay_finite(small):
    X, Y, _ = data()
    for unit, alpha in ((1.0, 5e-324), (1e-150, 1e-300), (1e150, 1e-8)):
        problem = LeastSquares(mc.gram.of(unit * mc.Gaussian(1.0), X), Y, np.array([alpha, alpha]))
        assert np.isfinite(blocks.solve(problem, np.zeros_like(Y), None, tol=1e-3, passes=2).coef).all()


def test_the_better_function_is_kept_for_each_target(small):
    X, Y, w = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), Y, np.array([0.5, 0.5]), np.sqrt(w))
    centres = np.stack([exact(problem)[:, 0], np.zeros(N)], axis=1)
    solution = blocks.solve(problem, centres, None, tol=1e-9, passes=0.1)
    np.testing.assert_array_equal(solution.coef[:, 0], centres[:, 0])
    assert solution.coef[:, 1].all()
    assert solution.status.endswith("worse than the centres for 1 of 2 targets, which are kept")


def test_the_estimate_of_the_residual_is_right(small):
    X, Y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), Y[:, :1], np.array([0.5]))
    solution = auto.solve(problem, "blocks", n_centers=40, tol=1e-9, max_passes=6)
    R = problem.y - problem.gram.dense() @ solution.coef - 0.5 * solution.coef
    true = np.linalg.norm(R) / np.linalg.norm(problem.y)
    assert true / 3 < solution.residual < 10 * true  # it looks back over one pass
    assert not solution.stats["converged"]
    assert solution.status.startswith("not converged: 18 blocks of 100 coordinates of the whole kernel (6 passes)")


@pytest.mark.thorough
def test_the_estimator(small):
    X, Y, w = data()
    steps = []
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.5, solver="blocks", n_centers=40, progress=steps.append, tol=1e-3)
    model.set_params(max_passes=60).fit(X, Y[:, 0], w)
    assert model.solver_ == "blocks"
    assert len(model.function_) == N
    assert steps[-1].gap <= 1e-3
    plain = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.5).fit(X, Y[:, 0], w)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=2e-2)
    assert mc.plan(model, X).solver == "blocks"
    model.set_params(tol=3e-3)
    w[::7] = 0.0  # rows that count for nothing are left out, and positions still match
    left = model.fit(X, Y[:, 0], w)
    np.testing.assert_allclose(left.predict(X), plain.fit(X, Y[:, 0], w).predict(X), atol=2e-2)
    model.set_params(tol=1e-9, progress=lambda step: step.tol != 1e-9)  # the centres have a tolerance of their own
    with pytest.warns(ConvergenceWarning, match=r"stopped: 1 blocks of 100"):
        model.fit(X, Y[:, 0])
    with pytest.warns(ConvergenceWarning, match=r"stopped before the first block: Nyström .* 40 centres"):
        model.set_params(max_time=1e-9).fit(X, Y[:, 0])
    np.testing.assert_array_equal(
        model.predict(X), mc.KernelRidge(mc.Gaussian(1.0), alpha=0.5, n_centers=40).fit(X, Y[:, 0]).predict(X)
    )


def test_what_is_refused():
    X, Y, _ = data()
    with pytest.raises(mc.InvalidInput, match="`alpha` must be > 0 for `solver='blocks'`"):
        mc.KernelRidge(mc.Gaussian(1.0), alpha=0.0, solver="blocks").fit(X, Y)
    with pytest.raises(mc.InvalidInput, match="starts from centres that are rows, got other centres"):
        mc.KernelRidge(mc.Gaussian(1.0), solver="blocks", centers="kmeans", n_centers=20).fit(X, Y)
    with pytest.raises(mc.InvalidInput, match="`max_passes` must be a whole number"):
        mc.KernelRidge(max_passes=0).fit(X, Y)


def waves(n, seed):
    """Rows in 20 columns, of which 5 matter, targets with noise, and a kernel whose spectrum decays slowly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)) * np.repeat([1.0, 0.3], [5, 15])
    f = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3]) + 0.3 * np.sin(3 * X[:, 4])
    return X, f + 0.1 * rng.normal(size=n), mc.Gaussian(2.0)


def hills(n, seed):
    """Rows in three columns, targets with noise, and a kernel whose spectrum decays fast."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n), mc.Gaussian(1.0)


@pytest.mark.thorough
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("problem", [waves, hills])
def test_the_error_falls_from_that_of_the_centres_pass_by_pass(problem, alpha):
    """The distance to the function of the exact solution. Steps without damping would multiply it."""
    errors = []
    for seed in range(2):
        X, y, kernel = problem(2000, seed)
        K = kernel(X)
        f = K @ np.linalg.solve(K + alpha * np.eye(len(y)), y)
        least = LeastSquares(mc.gram.of(kernel, X), y[:, None], np.array([alpha]))
        centres = auto._on_all_points(least, auto.solve(least, "nystrom", n_centers=50))
        ends = [blocks.solve(least, centres, None, tol=1e-9, passes=k, random_state=seed).coef for k in (1, 6)]
        errors.append([np.linalg.norm(K @ c[:, 0] - f) / np.linalg.norm(f) for c in (centres, *ends)])
    errors = np.array(errors)
    assert (np.diff(errors) < -0.2 * errors[:, :-1]).all()  # in every run
