"""A third kind of Gram, whose rows live in a file: one small class, and every solver takes it for the dense one."""

from __future__ import annotations

import numpy as np
import pytest

import mercer as mc
from mercer.data.points import Points
from mercer.gram import Gram
from mercer.gram.pivoted import pivoted_cholesky
from mercer.problems.box import BoxProblem
from mercer.problems.families import Bernoulli
from mercer.problems.least_squares import LeastSquares
from mercer.problems.links import Logit
from mercer.problems.losses import Deviance
from mercer.problems.risk import Risk
from mercer.problems.spaces import GramSpace
from mercer.solvers import auto, costs, principal, smo
from mercer.solvers.descent import Journey
from mercer.solvers.newton import newton
from mercer.solvers.perceptron import OnlinePerceptron
from mercer.solvers.perceptron_budget import Forgetron, Projectron
from mercer.solvers.psd import negative_eigenvalue

N = 500
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1] * X[:, 2]])
SIGNS = np.where(Y[:, 0] + 0.3 * rng.normal(size=N) > 0, 1.0, -1.0)
KERNEL = mc.Gaussian(1.0)


class FileGram(Gram):
    """K in a .npy file that is read where it is asked for; points are positions in it."""

    def __init__(self, path, x, z=None, dtype=None):
        self.path, self.file = path, np.load(path, mmap_mode="r")
        super().__init__(x, z, dtype or self.file.dtype)

    def block(self, rows, cols):
        return self.file[self.x.raw[rows]][:, self.z.raw[cols]].astype(self.dtype)

    def between(self, x, z=None, dtype=None):
        return FileGram(self.path, x, z, dtype)


@pytest.fixture
def grams(tmp_path):
    """The dense Gram, and the same in a file."""
    dense = mc.gram.of(KERNEL, X)
    np.save(tmp_path / "K.npy", dense.dense())
    return dense, FileGram(tmp_path / "K.npy", Points(np.arange(N)))


def test_all_that_a_gram_offers_follows_from_two_methods(grams):
    dense, file = grams
    K, V = dense.dense(), rng.normal(size=(N, 2))
    some, few = np.arange(0, N, 7), np.array([3, 2, 400])
    np.testing.assert_array_equal(file.dense(), K)
    np.testing.assert_array_equal(file.fresh("float32"), K.astype(np.float32))
    np.testing.assert_array_equal(file.diag(), np.diagonal(K))
    np.testing.assert_array_equal(file.rows(few), K[few])
    np.testing.assert_array_equal(file.restrict(some).dense(), K[np.ix_(some, some)])
    np.testing.assert_allclose(file @ V, K @ V, atol=1e-12)
    np.testing.assert_allclose(V.T @ file, V.T @ K, atol=1e-12)
    np.testing.assert_allclose(file.multiply(V[:, 0]), K @ V[:, 0], atol=1e-12)
    np.testing.assert_allclose(file.partial_product(few, some, V[some]), K[np.ix_(few, some)] @ V[some], atol=1e-12)
    assert file.recomputed("float32").dtype == np.float32
    assert not file.keeps
    assert file.stored is None
    assert repr(file) == f"<FileGram {N}×{N} float64>"
    with pytest.raises(mc.InvalidInput, match="symmetric"):
        file.between(file.x.take(some), file.x).diag()


@pytest.mark.parametrize("tail", [None, np.ones((N, 1))])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "eigen", "cg", "pivots", "nystrom", "pivoted centres"])
def test_least_squares(grams, solver, weighted, tail, monkeypatch):
    if solver == "pivots":
        monkeypatch.setattr(costs, "PIVOTED_ROWS", 0)
    roots = np.sqrt(np.random.default_rng(1).uniform(0.5, 2.0, N)) if weighted else None
    alpha = np.array([0.1, 0.1]) if solver != "pivots" else np.array([1.0, 1.0])
    how = "pivoted" if solver == "pivoted centres" else "uniform"
    name = {"pivots": "cg", "pivoted centres": "nystrom"}.get(solver, solver)
    expected, solution = (
        auto.solve(LeastSquares(gram, Y, alpha, roots, tail), name, n_centers=40, centers=how) for gram in grams
    )
    np.testing.assert_allclose(solution.coef, expected.coef, rtol=1e-6, atol=1e-6 * np.abs(expected.coef).max())
    if tail is not None:
        np.testing.assert_allclose(solution.tail, expected.tail, rtol=1e-6, atol=1e-8)
    assert solution.solver == expected.solver
    assert solution.residual <= max(1e-9, 2.0 * expected.residual)
    if name == "nystrom":
        np.testing.assert_array_equal(X[solution.points.raw], expected.points.raw)


def test_nystrom_on_given_positions_and_in_float32(grams):
    dense, file = grams
    index = np.arange(0, N, 10)
    for dtype in (np.float32, np.float64):
        stored, streamed = file.low_rank(file.x.take(index), dtype), file.low_rank(file.points(index), dtype, "200 kB")
        expected = dense.low_rank(dense.x.take(index), np.float64)
        assert stored.stored
        assert not streamed.stored
        for Phi in (stored, streamed):
            tolerance = 1e-9 if dtype == np.float64 else 1e-2
            np.testing.assert_allclose(Phi.features(), expected.features()[:, : Phi.shape[1]], atol=tolerance)


def test_pivoted_cholesky(grams):
    expected, found = (pivoted_cholesky(gram, 60, rng=np.random.default_rng(2)) for gram in grams)
    np.testing.assert_array_equal(found.pivots, expected.pivots)
    np.testing.assert_allclose(found.factor, expected.factor, atol=1e-10)


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("whole", [True, False])
def test_support_vector_machines(grams, whole, tol, monkeypatch):
    monkeypatch.setattr(costs, "DOUBLE_VARIABLES", 0)
    if not whole:
        monkeypatch.setattr(costs, "WHOLE_VARIABLES", 60)
        monkeypatch.setattr(costs, "SET_VARIABLES", 64)
        monkeypatch.setattr(costs, "EXACT_VALUES", 0)
    box = np.minimum(0.0, 2.0 * SIGNS), np.maximum(0.0, 2.0 * SIGNS)
    expected, found = (smo.solve(BoxProblem(gram, -SIGNS, *box, np.zeros(N)), tol=tol) for gram in grams)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=10 * tol)
    if tol < 1e-6:
        np.testing.assert_allclose(found.beta, expected.beta, atol=1e-5)
    # A subset of its points, and two variables for a point.
    rows = np.arange(0, N, 2)
    part = BoxProblem(grams[1], -SIGNS[rows], box[0][rows], box[1][rows], np.zeros(len(rows)), rows)
    alone = BoxProblem(grams[0].restrict(rows), -SIGNS[rows], box[0][rows], box[1][rows], np.zeros(len(rows)))
    assert smo.solve(part, tol=tol).objective == pytest.approx(smo.solve(alone, tol=tol).objective, rel=10 * tol)
    twice, ones = np.tile(np.arange(N), 2), np.ones(N)
    q = np.concatenate([0.1 - Y[:, 1], -0.1 - Y[:, 1]])
    lower, upper = np.concatenate([0 * ones, -ones]), np.concatenate([ones, 0 * ones])
    regressions = [BoxProblem(gram, q, lower, upper, np.zeros(2 * N), twice) for gram in grams]
    a, b = (smo.solve(problem, tol=tol) for problem in regressions)
    assert a.objective == pytest.approx(b.objective, rel=10 * tol)


def test_a_time_limit_is_looked_at_while_rows_are_read(grams):
    box = np.minimum(0.0, 2.0 * SIGNS), np.maximum(0.0, 2.0 * SIGNS)
    late = smo.solve(BoxProblem(grams[1], -SIGNS, *box, np.zeros(N)), tol=1e-9, max_time=1e-9)
    assert not late.converged
    assert late.status == smo.LATE
    assert np.abs(late.beta).max() > 0  # a first working set was solved
    enough = smo.solve(BoxProblem(grams[1], -SIGNS, *box, np.zeros(N)), max_time=60.0)
    assert enough.converged


@pytest.mark.parametrize(
    "learner",
    [
        lambda: OnlinePerceptron(2),
        lambda: OnlinePerceptron(2, "averaged"),
        lambda: OnlinePerceptron(2, "voted"),
        lambda: Projectron(2, 30, 0.1, averaged=False),
        lambda: Forgetron(2, 30),
    ],
)
def test_perceptrons(grams, learner):
    codes = (SIGNS > 0).astype(np.int64)
    learners = []
    for gram in grams:
        learners.append(learner())
        for start in range(0, N, 150):
            chunk = np.arange(start, min(start + 150, N))
            learners[-1].learn(gram.restrict(chunk), codes[chunk], chunk)
    expected, found = learners
    assert found.mistakes == expected.mistakes > 10
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.support().raw, found.rows)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9)
    np.testing.assert_allclose(found.values(grams[1]), expected.values(grams[0]), atol=1e-9)


def test_passes_over_a_kept_matrix(grams):
    codes = (SIGNS > 0).astype(np.int64)
    results = []
    for gram in grams:
        learner = OnlinePerceptron(2)
        visit = learner.passes(gram, codes)
        results.append([visit(np.arange(N)) for _ in range(5)])
    assert results[0] == results[1]


def test_principal_functions_smooth_losses_and_eigenvalues(grams):
    expected, found = (
        principal.krylov(principal.Centred(gram), 5, tol=1e-10, rng=np.random.default_rng(3)) for gram in grams
    )
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=1e-9)
    a, b = (principal.on_centers(gram, gram.x.take(np.arange(0, N, 10)), 5, None, None).eigenvalues for gram in grams)
    np.testing.assert_allclose(a, b, rtol=1e-9)
    y = (SIGNS > 0).astype(np.float64)
    fits = []
    for gram in grams:
        space = GramSpace(gram, np.ones((N, 1)))
        risk = Risk(space, Deviance(Bernoulli(), Logit()), y, 0.1)
        fits.append(newton(risk, space.zero(1), Journey(risk, 1e-8, 100)).state.at.values)
    np.testing.assert_allclose(*fits, atol=1e-6)
    assert negative_eigenvalue(grams[1]) is None
