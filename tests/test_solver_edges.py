"""Systems at the edge of rounding: what is measured, what is said, and what has no answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.errors import InvalidInput
from mercer.kernels.vectors.splines import Multiquadric, ThinPlate
from mercer.models.least_squares.rbf_network import RBFNetwork
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import auto, cholesky, eigen, saddle
from mercer.solvers.base import UNSOLVED
from mercer.solvers.choice import Size, choose
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.eigen import Eigendecomposition
from mercer.solvers.primal import FeatureSpectrum, GramFactor
from mercer.solvers.refinement import Iteration
from mercer.solvers.saddle import SaddleFactor


def data(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def problem(k, X, y, alpha, *, weights=None, tail=None):
    Y = y.reshape(len(y), -1)
    alphas = np.broadcast_to(np.asarray(alpha, float), (Y.shape[1],)).copy()
    return LeastSquares(mc.gram.of(k, X), Y, alphas, None if weights is None else np.sqrt(weights), tail)


def ones(n):
    return np.ones((n, 1))


# -- leave-one-out at alpha = 0 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("k", "n", "d"),
    [(mc.Linear() + 1.0, 30, 3), (mc.Polynomial(2, c=1.0), 14, 2), (mc.Linear(), 30, 3), (mc.Linear() + 1.0, 6, 5)],
    ids=["constant", "quadratic", "without", "full"],
)
def test_leave_one_out_of_minimum_norm_where_the_space_holds_the_constant(k, n, d, weighted):
    X, y = data(n, d)
    w = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None

    def model(keep):
        return mc.KernelRidge(k, alpha=0.0, fit_intercept=True).fit(X[keep], y[keep], None if w is None else w[keep])

    whole = model(np.arange(n))
    others = [model(np.delete(np.arange(n), i)) for i in range(n)]
    brute = np.array([m.predict(X[[i]])[0] for i, m in enumerate(others)])
    np.testing.assert_allclose(whole.loo_predictions_, brute, atol=1e-8)
    # jackknife+ says what those models predict elsewhere
    Z = np.random.default_rng(2).normal(size=(4, d))
    r = y - brute
    counts = np.ones(n) if w is None else w / w.mean()
    for z, lower in zip(Z, whole.predict_interval(Z, coverage=0.8)[:, 0]):
        ends = np.array([m.predict(z[None])[0] for m in others]) - np.abs(r)
        enough = [end for end in ends if counts[ends >= end - 1e-9].sum() >= 0.8 * (n + 1) - 1e-9]
        assert lower == pytest.approx(max(enough), abs=1e-8)


# -- residuals and what they say ---------------------------------------------------------------------------------------


def wide(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 9))
    X[:, 0] *= 1e8
    return X, rng.normal(size=6)


@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen"])
@pytest.mark.parametrize(
    ("k", "rows", "alpha"),
    [(mc.Gaussian(50.0), data(), 1e-16), (mc.Gaussian(50.0), data(), 1e-13), (mc.Linear(), wide(0), 1.0)],
    ids=["none", "few", "columns"],
)
def test_a_system_that_is_singular_to_rounding_is_not_called_exact(k, rows, alpha, solver):
    solution = auto.solve(problem(k, *rows, alpha), solver)
    assert solution.residual > UNSOLVED
    assert not solution.stats["converged"]
    assert not solution.status.startswith("exact")
    for words in ("singular to rounding", "residual", "Raise `alpha`"):
        assert words in solution.status
    with pytest.warns(ConvergenceWarning, match="singular to rounding"):
        model = mc.KernelRidge(k, alpha=alpha, solver=solver).fit(*rows)
    assert model.residual_ == solution.residual


def test_the_exact_factor_behind_slow_iterations_measures_itself():
    X, y = data(400)
    p = problem(mc.Gaussian(20.0), X, y, 1e-12)
    solution = auto.solve(p, "cg")
    assert solution.solver == "cholesky"
    assert solution.residual > UNSOLVED
    assert not solution.stats["converged"]
    assert "singular to rounding" in solution.status
    fine = auto.solve(problem(mc.Gaussian(20.0), X, y, 1e-4), "cg")
    assert fine.stats["converged"]
    assert "singular" not in fine.status


def test_the_exact_factor_behind_slow_iterations_is_refined(monkeypatch):
    X, y = data(200)
    p = problem(mc.Gaussian(5.0), X, y, 1e-6, tail=ones(200))
    honest = CholeskyFactor.solve_system
    monkeypatch.setattr(CholeskyFactor, "solve_system", lambda self, B: honest(self, B) * (1 + 1e-4))
    outcome = Iteration(p, choose(Size.of(p), "cg"), 2**30, 1e-10, 0, None).exactly(1e-6, np.array([0]), "a test")
    assert cholesky.relative(outcome.R, p.y) < 1e-7
    assert outcome.converged


def test_ordinary_problems_stay_exact_and_silent():
    X, y = data()
    for solver in ("auto", "cholesky", "eigen"):
        for tail in (None, ones(30)):
            solution = auto.solve(problem(mc.Gaussian(1.0), X, y, 1e-3, tail=tail), solver)
            assert solution.stats["converged"]
            assert solution.residual < 1e-12
            assert solution.status.startswith("exact")


def test_float32_beyond_its_own_factor_takes_the_float64_one():
    X, y = data(200)
    X = X.astype(np.float32)
    solution = auto.solve(problem(mc.Gaussian(3.0), X, y, 2e-5), "cholesky")
    assert solution.residual < 1e-6
    assert solution.stats["converged"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tail", [0, 1])
def test_the_eigendecomposition_measures_its_residual(tail, weighted, monkeypatch):
    X, y = data()
    Y = np.stack([y, y**2, np.cos(y)], axis=1)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 30) if weighted else None
    p = problem(mc.Gaussian(1.0), X, Y, [1e-3, 0.1, 1.0], weights=w, tail=ones(30) if tail else None)
    solution = eigen.solve(p)
    s = np.ones((30, 1)) if w is None else np.sqrt(w)[:, None]

    def by_hand(c, b):
        R = s * (Y - mc.Gaussian(1.0)(X) @ c - (0.0 if b is None else b)) - p.alpha * c / s
        return (np.linalg.norm(R, axis=0) / np.linalg.norm(s * Y, axis=0)).max()

    assert 0 < solution.residual < 1e-13
    assert by_hand(solution.coef, solution.tail) < 1e-13
    # what is not orthonormal shows, and is refined away as far as it goes
    spectrum = Eigendecomposition(p)
    spectrum.vectors = spectrum.vectors * (1 + 1e-3)
    monkeypatch.setattr("mercer.solvers.base.SWEEPS", 0)
    spoiled = eigen.solve(p, spectrum)
    assert spoiled.residual == pytest.approx(by_hand(spoiled.coef, spoiled.tail), rel=1e-6)
    assert spoiled.residual > 1e-4


@pytest.mark.parametrize("tail", [0, 1])
@pytest.mark.parametrize("k", [mc.Linear(), mc.Polynomial(2, c=1.0), mc.Gaussian(1.0)], ids=repr)
def test_at_alpha_zero_what_is_left_is_orthogonal_to_every_function(k, tail):
    X, y = data()
    p = problem(k, X, y, 0.0, tail=ones(30) if tail else None)
    solution = auto.solve(p)
    assert 0 < solution.residual < 1e-12
    assert solution.stats["converged"]
    # a spectrum of another matrix does not solve it, and it shows
    other = Eigendecomposition(problem(k, 1.1 * X + 0.3, y, 0.0, tail=p.tail))
    worse = eigen.solve(p, other)
    assert worse.residual > 1e-4
    assert worse.status.startswith("inexact")
    K = k(X)
    left = p.y - K @ worse.coef - (0.0 if worse.tail is None else p.tail @ worse.tail)
    inside = np.linalg.norm(K @ left) / np.linalg.norm(K, 2) / np.linalg.norm(y)
    across = abs(left.sum()) / np.sqrt(30) / np.linalg.norm(y) if tail else 0.0
    # the spectrum is the other matrix's: so is the norm that it knows
    assert worse.residual == pytest.approx(max(inside, across), rel=1.0)


def test_a_zero_gram_matrix_has_a_residual():
    p = problem(mc.Linear(), np.zeros((5, 2)), np.arange(5.0), 0.0)
    solution = auto.solve(p)
    assert solution.residual == 0.0
    assert not solution.coef.any()
    assert solution.stats["converged"]


def test_models_show_the_residual_of_the_eigendecomposition():
    X, y = data()
    for alpha in ("loo", 0.0):
        assert 0 < mc.KernelRidge(mc.Gaussian(1.0), alpha=alpha, fit_intercept=True).fit(X, y).residual_ < 1e-9


@pytest.mark.parametrize("weighted", [False, True])
def test_the_saddle_point_factor_solves_its_system(weighted):
    X, y = data(d=2)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 30) if weighted else None
    P = np.hstack([ones(30), X])
    p = problem(ThinPlate(), X, y, 0.01, weights=w, tail=P)
    c, b = SaddleFactor.of(p, 0.01).solve(p.y)
    s = np.ones((30, 1)) if w is None else np.sqrt(w)[:, None]
    R = s * (p.y - ThinPlate()(X) @ c - P @ b) - 0.01 * c / s
    assert np.linalg.norm(R) < 1e-12 * np.linalg.norm(s * p.y)
    assert np.abs(P.T @ c).max() < 1e-12


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_every_factor_is_the_same_inverse(alpha, weighted):
    """Cholesky with a border, spectrum, null space and features: one system, one set of answers."""
    X, y = data(30, 3)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 30) if weighted else None
    p = problem(mc.Polynomial(2, c=1.0), X, y, alpha, weights=w, tail=np.hstack([ones(30), X[:, :1]]))
    Phi = mc.Polynomial(2, c=1.0).features(3)
    factors = [
        CholeskyFactor.of(p, alpha), Eigendecomposition(p).at(alpha), SaddleFactor.of(p, alpha),
        FeatureSpectrum(Phi(X), p.roots, p.tail).at(alpha), GramFactor(Phi(X), alpha, p.roots, p.tail),
    ]  # fmt: skip
    W = np.ones(30) if w is None else w
    M = np.block([[mc.Polynomial(2, c=1.0)(X) + alpha * np.diag(1 / W), p.tail], [p.tail.T, np.zeros((2, 2))]])
    J = np.linalg.inv(M)
    Z = np.random.default_rng(2).normal(size=(7, 3))
    Pz = np.hstack([ones(7), Z[:, :1]])
    for factor in factors:
        c, b = factor.solve(p.y)
        np.testing.assert_allclose(np.vstack([c, b]), J[:, :30] @ p.y, atol=1e-9)
        np.testing.assert_allclose(factor.diagonal(), np.diagonal(J)[:30], atol=1e-10)
        np.testing.assert_allclose(factor.inverse(), J[:30, :30], atol=1e-10)
        assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(M)[1], rel=1e-10)
        rows = Phi(Z) if factor.explicit else mc.Polynomial(2, c=1.0)(Z, X)
        wanted = np.hstack([mc.Polynomial(2, c=1.0)(Z, X), Pz]) @ J[:, :30]
        np.testing.assert_allclose(factor.smoother(rows, Pz), wanted, atol=1e-9)
        np.testing.assert_allclose(factor.leave_one_out(p.y), c / np.diagonal(J)[:30, None], rtol=1e-7)
        assert factor.degrees_of_freedom == pytest.approx(30 - alpha * (np.diagonal(J)[:30] / W).sum())


def test_a_factor_grows_with_its_tail():
    X, y = data(30)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 30)
    P = np.hstack([ones(30), X[:, :1]])
    whole = CholeskyFactor.of(problem(mc.Gaussian(1.0), X, y, 0.1, weights=w, tail=P), 0.1)
    part = CholeskyFactor.of(problem(mc.Gaussian(1.0), X[:20], y[:20], 0.1, weights=w[:20], tail=P[:20]), 0.1)
    grown = part.grown(mc.Gaussian(1.0)(X[20:], X[:20]), mc.Gaussian(1.0)(X[20:]), np.sqrt(w), P)
    np.testing.assert_allclose(grown.inverse(), whole.inverse(), atol=1e-10)
    np.testing.assert_allclose(grown.multiply(np.eye(30)), whole.multiply(np.eye(30)), atol=1e-14)
    assert grown.log_determinant() == pytest.approx(whole.log_determinant())


def test_a_solution_brings_the_factor_that_made_it():
    X, y = data()
    for solver in ("cholesky", "eigen"):
        p = problem(mc.Gaussian(1.0), X, y, 0.1, tail=ones(30))
        solution = auto.solve(p, solver)
        (factor,) = solution.factors.values()
        np.testing.assert_allclose(factor.solve(p.y)[0], solution.coef, atol=1e-12)
    several = problem(mc.Gaussian(1.0), X, np.stack([y, y], axis=1), [0.1, 0.2])
    assert not auto.solve(several, "cholesky").factors  # as much memory again for each
    assert set(auto.solve(several, "eigen").factors) == {0.1, 0.2}


# -- no model without a point ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.3, 1.0])
@pytest.mark.parametrize("x", [0.1, 0.7, 3.0])
def test_leave_one_out_of_a_point_that_the_tail_needs(x, alpha):
    p = problem(mc.Linear(), np.array([[x]]), np.array([1.3]), alpha, tail=ones(1))
    factors = [Eigendecomposition(p).at(alpha), SaddleFactor.of(p, alpha)]
    for factor in [*factors, CholeskyFactor.of(p, alpha)] if alpha else factors:
        with pytest.raises(InvalidInput, match="Leave-one-out needs points whose tail is determined without any one"):
            factor.leave_one_out(p.y)
    model = mc.KernelRidge(mc.Linear(), alpha=alpha, fit_intercept=True).fit(np.array([[x]]), [1.3])
    for ask in (lambda: model.loo_predictions_, lambda: model.predict_interval([[x]], coverage=0.4)):
        with pytest.raises(InvalidInput, match="got row 0, without which it is not"):
            ask()


def test_leave_one_out_names_the_row_that_the_tail_needs():
    X, y = data(9)
    X[:, 0] = 0.0
    X[4, 0] = 2.0  # alone it determines the slope
    P = np.hstack([ones(9), X[:, :1]])
    for w in (None, np.geomspace(1e-9, 1e9, 9)):
        p = problem(mc.Gaussian(1.0), X, y, 0.1, tail=P, weights=w)
        for factor in (Eigendecomposition(p).at(0.1), CholeskyFactor.of(p, 0.1)):
            with pytest.raises(InvalidInput, match="got row 4"):
                factor.leave_one_out(p.y)
    free = problem(mc.Gaussian(1.0), X, y, 0.1, tail=ones(9), weights=np.r_[1e14, np.ones(8)])
    assert np.isfinite(CholeskyFactor.of(free, 0.1).leave_one_out(free.y)).all()


def test_folds_must_leave_what_the_tail_needs():
    X, y = data()
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, fit_intercept=True).fit(X, y)
    with pytest.raises(InvalidInput, match="fold 0"):
        model.cv_predictions([0] * 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
        np.testing.assert_allclose(plain.cv_predictions([0] * 30), 0.0, atol=1e-10)  # no data, no tail: f = 0
    P = np.hstack([ones(30), X[:, :1]])
    p = problem(mc.Gaussian(1.0), X, y, 0.1, tail=P)
    for factor in (Eigendecomposition(p).at(0.1), CholeskyFactor.of(p, 0.1), SaddleFactor.of(p, 0.1)):
        one_left = np.r_[-1, np.zeros(29, int)]
        with pytest.raises(InvalidInput, match="fold 0"):
            factor.leave_fold_out(p.y, one_left)
        two_left = np.r_[-1, -1, np.zeros(28, int)]
        rest = factor.leave_fold_out(p.y, two_left)
        M = np.zeros((4, 4))
        M[:2, :2], M[:2, 2:], M[2:, :2] = mc.Gaussian(1.0)(X[:2]) + 0.1 * np.eye(2), P[:2], P[:2].T
        c = np.linalg.solve(M, np.r_[y[:2], 0, 0])
        predicted = mc.Gaussian(1.0)(X[2:], X[:2]) @ c[:2] + P[2:] @ c[2:]
        np.testing.assert_allclose(y[2:] - rest[2:, 0], predicted, rtol=1e-6)


def test_neighbours_of_a_single_point():
    model = RBFNetwork(mc.Gaussian(1.0), neighbors=3).fit(np.zeros((1, 1)), [1.0])
    for ask in (lambda: model.loo_predictions_, lambda: model.loo_score_):
        with pytest.raises(InvalidInput, match="Leave-one-out with `neighbors` needs two points"):
            ask()
    both = RBFNetwork(mc.Gaussian(1.0), neighbors=3, alpha=0.0).fit(np.array([[0.0], [1.0]]), [1.0, 2.0])
    np.testing.assert_allclose(both.loo_predictions_, np.exp(-0.5) * np.array([2.0, 1.0]))


# -- positive semidefinite on the tail's null space, to the rounding of the whole matrix -------------------------------


@pytest.mark.thorough
def test_as_many_points_as_monomials_are_no_negative_eigenvalue():
    for seed in range(10):
        for n, d in ((3, 2), (4, 2), (4, 3)):
            X, y = data(n, d, seed)
            model = RBFNetwork(ThinPlate(), centers="all", alpha="loo").fit(X, y)
            if n == d + 1:  # the polynomial is all there is
                np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
            assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("how", [{"centers": "all"}, {"n_centers": 15}], ids=["all", "chosen"])
@pytest.mark.parametrize("alpha", ["loo", 1e-2])
def test_a_function_that_does_not_tell_points_apart_leaves_the_polynomial(how, alpha):
    X, y = data()
    model = RBFNetwork(Multiquadric(), alpha=alpha, **how).fit(X * 1e-8, y)
    np.testing.assert_allclose(model.predict(X * 1e-8), y.mean(), atol=1e-3)


def test_a_kernel_that_is_none_is_still_found():
    X, y = data()
    K = mc.Gaussian(1.0)(X)
    K -= 0.5 * np.eye(30)
    with pytest.raises(InvalidInput, match="positive semidefinite"):
        Eigendecomposition(problem(mc.Precomputed(K), np.arange(30), y, 0.1))
    p = problem(mc.Precomputed(K), np.arange(30), y, 0.1, tail=ones(30))
    with pytest.raises(InvalidInput, match="positive semidefinite"):
        Eigendecomposition(saddle.Projected(p.gram, p.y, p.alpha, p.roots, p.tail))
