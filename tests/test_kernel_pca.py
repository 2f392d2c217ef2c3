"""Kernel PCA: theory, peers, pre-images, solvers, objects and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.errors import InvalidInput
from mercer.rkhs.preimage import distances_less_norm, preimage
from mercer.solvers import principal as leading

rng = np.random.default_rng(0)
SOLVERS = ("eigen", "krylov", "nystrom")


def rows(n=80, d=5):
    return rng.normal(size=(n, d)) * np.linspace(2.0, 0.5, d) + np.arange(d)


def same_up_to_sign(A, B, tol=1e-8):
    signs = np.sign((A * B).sum(axis=0))
    np.testing.assert_allclose(A * signs, B, atol=tol * np.abs(B).max())


def gram_of_functions(f):
    return f.coef.T @ f.kernel(f.points) @ f.coef


# -- theory and peers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_linear_kernel_is_pca(solver):
    X, Z = rows(), rows(20)
    model = mc.KernelPCA(mc.Linear(), n_components=3, solver=solver).fit(X)
    pca = PCA(3).fit(X)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)
    same_up_to_sign(model.transform(Z), pca.transform(Z))
    projected = pca.inverse_transform(pca.transform(Z))
    np.testing.assert_allclose(model.inverse_transform(model.transform(Z)), projected, atol=1e-9)
    np.testing.assert_allclose(model.reconstruction_error(Z), ((Z - projected) ** 2).sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("solver", ["eigen", "krylov"])
@pytest.mark.parametrize(
    ("kernel", "peer"),
    [
        (mc.Gaussian.from_gamma(0.1), {"kernel": "rbf", "gamma": 0.1}),
        (mc.Polynomial(3, c=1.0), {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}),
    ],
)
def test_agrees_with_scikit_learn(kernel, peer, solver):
    X, Z = rows(120), rows(30)
    model, other = mc.KernelPCA(kernel, n_components=6, solver=solver), Peer(6, **peer)
    same_up_to_sign(model.fit_transform(X), other.fit_transform(X))
    np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    same_up_to_sign(model.transform(Z), other.transform(Z))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_components_are_orthonormal_functions_with_centred_scores(solver, weighted):
    X = rows(150)
    w = rng.integers(1, 4, 150).astype(float) if weighted else None
    model = mc.KernelPCA(mc.Gaussian(2.0), n_components=7, solver=solver, n_centers=60).fit(X, sample_weight=w)
    np.testing.assert_allclose(gram_of_functions(model.function_), np.eye(7), atol=1e-9)
    scores, w = model.transform(X), np.ones(150) if w is None else w
    np.testing.assert_allclose(w @ scores, 0.0, atol=1e-8)
    # The scores are uncorrelated, and the sums of their squares the eigenvalues.
    np.testing.assert_allclose((scores.T * w) @ scores, np.diag(model.eigenvalues_), atol=1e-7)
    np.testing.assert_allclose(model.explained_variance_, model.eigenvalues_ / (w.sum() - 1))
    assert (np.diff(model.eigenvalues_) < 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_fit_transform_is_transform_of_the_training_rows(solver):
    X = rows(120)
    model = mc.KernelPCA(mc.Gaussian(2.0), n_components=5, solver=solver, n_centers=50)
    scores = model.fit_transform(X)
    np.testing.assert_allclose(scores, model.transform(X), atol=1e-10)
    w = np.ones(120)
    w[::3] = 0.0
    scores = model.fit_transform(X, sample_weight=w)
    assert scores.shape == (120, 5)
    np.testing.assert_allclose(scores, model.transform(X), atol=1e-10)


@pytest.mark.parametrize("solver", ["eigen", "krylov"])
def test_weights_are_repetitions(solver):
    X, w = rows(100), rng.integers(0, 4, 100)
    Z = rows(10)
    one = mc.KernelPCA(mc.Gaussian(2.0), n_components=4, solver=solver).fit(X, sample_weight=w)
    other = mc.KernelPCA(mc.Gaussian(2.0), n_components=4, solver=solver).fit(np.repeat(X, w, axis=0))
    for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)
    np.testing.assert_allclose(one.transform(Z), other.transform(Z), atol=1e-7)
    np.testing.assert_allclose(one.reconstruction_error(Z), other.reconstruction_error(Z), atol=1e-8)


def test_shares_of_the_whole_variance():
    X = rows(60)
    everything = mc.KernelPCA(mc.Gaussian(2.0)).fit(X)
    assert everything.n_components_ == 59
    assert everything.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-9)
    few = mc.KernelPCA(mc.Gaussian(2.0), n_components=3, solver="krylov").fit(X)
    np.testing.assert_allclose(few.explained_variance_ratio_, everything.explained_variance_ratio_[:3], rtol=1e-9)
    np.testing.assert_allclose(everything.reconstruction_error(X), 0.0, atol=1e-9)
    whole = few.reconstruction_error(X).sum() + few.eigenvalues_.sum()
    assert whole == pytest.approx(everything.eigenvalues_.sum(), rel=1e-9)


def test_mean_and_distance_in_explicit_features():
    X, Z = rows(50, 2), rows(9, 2)
    k = mc.Polynomial(2, c=1.0)
    phi = k.features(2)
    A, B = phi.transform(X), phi.transform(Z)
    model = mc.KernelPCA(k, n_components=2).fit(X)
    w = model.function_.weights(2)
    np.testing.assert_allclose(w.T @ w, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(model.mean_.weights(2), A.mean(axis=0), atol=1e-10)
    centred = B - A.mean(axis=0)
    np.testing.assert_allclose(model.transform(Z), centred @ w, atol=1e-8)
    rest = centred - centred @ w @ w.T
    np.testing.assert_allclose(model.reconstruction_error(Z), (rest**2).sum(axis=1), rtol=1e-7, atol=1e-8)


def test_signs_do_not_depend_on_the_solver():
    X = rows(400)
    for solver in ("eigen", "krylov"):
        scores = mc.KernelPCA(mc.Gaussian(2.0), n_components=6, solver=solver, random_state=3).fit_transform(X)
        assert (scores.max(axis=0) >= -scores.min(axis=0)).all()
    np.testing.assert_allclose(
        scores, mc.KernelPCA(mc.Gaussian(2.0), n_components=6, solver="eigen").fit_transform(X), atol=1e-6
    )


def test_squared_distances_give_classical_scaling():
    """−½‖x − z‖² is no kernel, but it is one once centred: its components are those of PCA."""
    X = rows(60)
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    for solver in ("eigen", "krylov"):
        scores = mc.KernelPCA(mc.Precomputed(), n_components=3, solver=solver).fit_transform(-0.5 * D)
        same_up_to_sign(scores, PCA(3).fit_transform(X), 1e-7)


def test_outliers_are_far_from_the_components():
    angle = rng.uniform(0, 2 * np.pi, 200)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(200, 2))
    model = mc.KernelPCA(mc.Gaussian(0.5), n_components=12).fit(ring)
    inside = model.reconstruction_error(ring)
    assert model.reconstruction_error([[0.0, 0.0], [2.0, 2.0]]).min() > 3 * inside.max()


# -- solvers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Gaussian(3.0), mc.Gaussian(50.0), mc.Laplacian(2.0)])
def test_krylov_finds_the_eigenvalues(kernel, monkeypatch):
    X = rows(500)
    monkeypatch.setattr(leading, "BASIS", 40)  # so that it has to restart
    model = mc.KernelPCA(kernel, n_components=8, solver="krylov", tol=1e-9).fit(X)
    exact = mc.KernelPCA(kernel, n_components=8, solver="eigen").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    assert model.residual_ <= 1e-9
    assert model.status_.startswith("exact")
    np.testing.assert_allclose(model.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-8)


def test_krylov_finds_equal_eigenvalues():
    """Orthogonal points: all 49 eigenvalues are the same, and the space is exhausted at once."""
    model = mc.KernelPCA(mc.Linear(), n_components=10, solver="krylov").fit(np.eye(50))
    np.testing.assert_allclose(model.eigenvalues_, 1.0)
    np.testing.assert_allclose(gram_of_functions(model.function_), np.eye(10), atol=1e-10)


def test_matrices_beyond_memory():
    X = rows(600)
    model = mc.KernelPCA(mc.Gaussian(2.0), n_components=4, budget="500 kB").fit(X)
    assert model.solver_ == "krylov"
    assert "anew" in model.status_
    exact = mc.KernelPCA(mc.Gaussian(2.0), n_components=4, solver="eigen").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(model.fit_transform(X), exact.transform(X), atol=1e-6)
    with pytest.raises(InvalidInput, match="memory budget"):
        mc.KernelPCA(mc.Gaussian(2.0), budget="500 kB").fit(X)


def test_which_solver(monkeypatch):
    X = rows(400)
    assert mc.KernelPCA(n_components=3).fit(X[:200]).solver_ == "eigen"
    assert mc.KernelPCA(n_components=3).fit(X).solver_ == "krylov"
    assert mc.KernelPCA(n_components=100).fit(X).solver_ == "eigen"
    monkeypatch.setattr(leading, "TILED", 300)
    model = mc.KernelPCA(n_components=3, budget="1 MB").fit(X)
    assert model.solver_ == "nystrom"
    assert "approximate" in model.status_


def test_nystrom_on_all_points_is_exact_and_on_few_a_lower_bound():
    X, Z = rows(200), rows(20)
    exact = mc.KernelPCA(mc.Gaussian(3.0), n_components=4, solver="eigen").fit(X)
    every = mc.KernelPCA(mc.Gaussian(3.0), n_components=4, solver="nystrom", n_centers=200).fit(X)
    np.testing.assert_allclose(every.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(every.transform(Z), exact.transform(Z), atol=1e-6)
    np.testing.assert_allclose(every.reconstruction_error(Z), exact.reconstruction_error(Z), atol=1e-7)
    np.testing.assert_allclose(every.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-7)
    nearest = [model.set_params(inverse="nearest").inverse_transform(exact.transform(Z)) for model in (every, exact)]
    np.testing.assert_array_equal(*nearest)
    few = mc.KernelPCA(mc.Gaussian(3.0), n_components=4, solver="nystrom", n_centers=60).fit(X)
    assert (few.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-9)).all()
    np.testing.assert_allclose(few.eigenvalues_, exact.eigenvalues_, rtol=0.02)
    assert few.dual_coef_.shape == (60, 4)
    assert few.inverse_transform(few.transform(Z)).shape == Z.shape


def test_not_converged(monkeypatch):
    monkeypatch.setattr(leading, "PRODUCTS", 1)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        mc.KernelPCA(mc.Gaussian(2.0), n_components=4, solver="krylov").fit(rows(200))


def test_single_precision():
    X = rows(400)
    wide = mc.KernelPCA(mc.Gaussian(2.0), n_components=5).fit(X)
    for solver in ("krylov", "eigen"):
        model = mc.KernelPCA(mc.Gaussian(2.0), n_components=5, solver=solver).fit(X.astype(np.float32))
        scores = model.transform(X.astype(np.float32))
        assert scores.dtype == np.float32
        assert model.status_.startswith("exact")
        np.testing.assert_allclose(scores, wide.transform(X), atol=2e-3)
        np.testing.assert_allclose(model.eigenvalues_, wide.eigenvalues_, rtol=1e-4)


# -- objects -----------------------------------------------------------------------------------------------------------


def test_sets_and_their_nearest():
    sets = [{1, 2, 3}, {1, 2}, {2, 3, 4}, {7, 8}, {7, 8, 9}, {8, 9}]
    model = mc.KernelPCA(mc.Intersection(), n_components=2, inverse="nearest")
    scores = model.fit_transform(sets)
    assert (scores[:3, 0] * scores[3:, 0] < 0).all()  # what they share separates them
    np.testing.assert_allclose(model.transform(sets), scores, atol=1e-10)
    exact = mc.KernelPCA(mc.Intersection(), inverse="nearest").fit(sets)
    assert exact.inverse_transform(exact.transform(sets)) == sets
    with pytest.raises(InvalidInput, match="vectors"):
        mc.KernelPCA(mc.Intersection()).fit(sets).inverse_transform(np.zeros((1, exact.n_components_)))


def test_words():
    words = ["kernel", "colonel", "lecture", "ring"]
    letters = mc.FromFunction(lambda s, t: float(len(set(s) & set(t))))
    model = mc.KernelPCA(letters, inverse="nearest").fit(words)
    assert model.inverse_transform(model.transform(["kernels", "rings"])) == ["kernel", "ring"]
    with pytest.raises(InvalidInput, match="points that are vectors"):
        model.set_params(inverse="distance").inverse_transform(np.zeros((1, model.n_components_)))


def test_precomputed_matrices():
    X, Z = rows(70), rows(11)
    k = mc.Gaussian(2.0)
    model = mc.KernelPCA(k, n_components=3).fit(X)
    bare = mc.KernelPCA(mc.Precomputed(), n_components=3).fit(k(X))
    np.testing.assert_allclose(bare.transform(k(Z, X)), model.transform(Z), atol=1e-9)
    np.testing.assert_allclose(bare.fit_transform(k(X)), model.transform(X), atol=1e-9)
    np.testing.assert_allclose(bare.reconstruction_error(k(X)), model.reconstruction_error(X), atol=1e-9)
    with pytest.raises(InvalidInput, match="k\\(z, z\\)"):
        bare.reconstruction_error(k(Z, X))
    with pytest.raises(InvalidInput, match="nearest"):
        bare.inverse_transform(np.zeros((1, 3)))
    both = np.vstack([X, Z])
    held = mc.KernelPCA(mc.Precomputed(k(both)), n_components=3).fit(np.arange(70))
    np.testing.assert_allclose(held.transform(np.arange(70, 81)), model.transform(Z), atol=1e-9)
    np.testing.assert_allclose(held.reconstruction_error(np.arange(70, 81)), model.reconstruction_error(Z), atol=1e-9)


def test_sparse_rows_and_frames():
    pd = pytest.importorskip("pandas")
    X = rows(60) * (rng.random((60, 5)) < 0.5)
    dense = mc.KernelPCA(mc.Gaussian(2.0), n_components=3).fit(X)
    sparse = mc.KernelPCA(mc.Gaussian(2.0), n_components=3).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-8)
    scores = dense.transform(X)
    np.testing.assert_allclose(sparse.inverse_transform(scores), dense.inverse_transform(scores), atol=1e-6)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = mc.KernelPCA(mc.Gaussian(1.0).on("a") + mc.Gaussian(1.0).on("b", "c"), n_components=2).fit(frame)
    assert list(model.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]
    assert model.set_output(transform="pandas").transform(frame).shape == (60, 2)


# -- pre-images --------------------------------------------------------------------------------------------------------

DIFFERENTIABLE = [
    mc.Gaussian(2.0),
    mc.Gaussian([1.0, 2.0, 3.0, 2.0, 2.0]),
    mc.Matern(3.0, nu=2.5),
    mc.RationalQuadratic(2.0),
    mc.Polynomial(3, c=1.0),
    mc.Gaussian(2.0) + 0.1 * mc.Linear(),
    mc.Gaussian(2.0).on(0, 1, 2) * mc.Polynomial(2, c=1.0),
]


@pytest.mark.parametrize("kernel", DIFFERENTIABLE, ids=repr)
def test_pre_images_are_nearest_points(kernel):
    X, Z = rows(100), rows(8)
    model = mc.KernelPCA(kernel, n_components=4).fit(X)
    scores = model.transform(Z)
    found = model.inverse_transform(scores)
    target = mc.Expansion(kernel, X, model.dual_coef_ @ scores.T + model.mean_.coef[:, None])
    least = distances_less_norm(target, found)
    K = kernel(X)
    at_training = np.diag(K)[:, None] - 2 * K @ target.coef
    assert (least <= at_training.min(axis=0) + 1e-12).all()
    size = np.abs(least).max()
    for j in range(5):
        e = 1e-3 * np.eye(5)[j]
        slope = (distances_less_norm(target, found + e) - distances_less_norm(target, found - e)) / 2e-3
        bend = (distances_less_norm(target, found + e) + distances_less_norm(target, found - e) - 2 * least) / 1e-6
        assert np.abs(slope).max() < 1e-4 * size
        assert (bend > -1e-6 * size).all()


def test_fixed_point_of_mika():
    """For a Gaussian the pre-image is the mean of the points with weights γᵢ k(xᵢ, x)."""
    X, Z = rows(100), rows(8)
    k = mc.Gaussian(2.0)
    model = mc.KernelPCA(k, n_components=6).fit(X)
    scores = model.transform(Z)
    x = model.inverse_transform(scores)
    M = (scores @ model.dual_coef_.T + model.mean_.coef) * k(x, X)
    np.testing.assert_allclose(M @ X / M.sum(axis=1, keepdims=True), x, atol=1e-6)


def test_pre_images_of_training_points_are_these():
    X = rows(40)
    for k in (mc.Gaussian(1.0), mc.Laplacian(2.0), mc.Polynomial(3, c=1.0)):
        model = mc.KernelPCA(k).fit(X)
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-5)


def test_descent_where_the_fixed_point_iteration_diverges():
    """f = k(0, ·) − k(1, ·): weights of both signs, and a mean of the two points that runs away."""
    f = mc.Expansion(mc.Gaussian(1.0), [[0.0], [1.0]], [1.0, -0.95])
    x = preimage(f, [[0.5]])
    t = np.linspace(-10, 10, 20_001)
    assert f(x)[0] == pytest.approx(f(t[:, None]).max(), abs=1e-6)
    m = f.coef * mc.Gaussian(1.0)([[0.5]], [[0.0], [1.0]])[0]
    away = m @ [0.0, 1.0] / m.sum()
    assert away < -15
    assert f([[away]])[0] < 1e-40


def test_learned_map():
    X, Z = rows(150), rows(20)
    model = mc.KernelPCA(mc.Linear(), n_components=5, inverse="regression").fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(Z)), Z, atol=0.5)
    weighted = mc.KernelPCA(mc.Gaussian(3.0), n_components=5, inverse="regression", n_centers=50, solver="nystrom")
    assert weighted.fit(X, sample_weight=np.arange(150.0)).inverse_transform(np.zeros((2, 5))).shape == (2, 5)


def test_denoised_digits():
    X = load_digits().data / 16
    X = X[rng.permutation(len(X))]
    train, clean = X[:600], X[600:700]
    noisy = clean + 0.25 * rng.normal(size=clean.shape)
    k = mc.Gaussian(2.0)

    def error(images):
        return float(((images - clean) ** 2).mean())

    model = mc.KernelPCA(k, n_components=40).fit(train)
    ours = error(model.inverse_transform(model.transform(noisy)))
    peer = Peer(40, kernel="rbf", gamma=0.125, fit_inverse_transform=True).fit(train)
    theirs = error(peer.inverse_transform(peer.transform(noisy)))
    assert ours < 0.4 * error(noisy)
    assert ours < theirs


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "X", "match"),
    [
        ({"n_components": 0}, np.eye(5), "whole number ≥ 1"),
        ({"n_components": 1.5}, np.eye(5), "whole number ≥ 1"),
        ({"n_components": True}, np.eye(5), "whole number ≥ 1"),
        ({"n_components": 5}, np.eye(5), "at most n − 1 = 4"),
        ({"n_components": 3, "kernel": mc.Linear()}, np.arange(20.0).reshape(10, 2), "above rounding, 1"),
        ({"n_components": 3, "kernel": mc.Linear(), "solver": "krylov"}, np.arange(20.0).reshape(10, 2), "rounding, 1"),
        ({"n_components": 3, "kernel": mc.Linear(), "solver": "nystrom"}, np.arange(20.0).reshape(10, 2), "ounding, 1"),
        ({"kernel": mc.Gaussian(1.0)}, np.ones((10, 2)), "points that differ"),
        ({"kernel": mc.Gaussian(1.0), "n_components": 2, "solver": "krylov"}, np.ones((10, 2)), "points that differ"),
        ({"kernel": mc.Linear(), "n_components": 1, "solver": "nystrom"}, np.ones((10, 2)), "points that differ"),
        ({}, np.ones((1, 2)), "at least two points"),
        ({}, [[0.0, 1.0], [np.nan, 1.0]], "NaN"),
        ({}, [[0.0, 1.0], [np.inf, 1.0]], "infinity"),
        ({"tol": 0.0}, np.eye(5), "`tol`"),
        ({"tol": None}, np.eye(5), "`tol`"),
        ({"tol": "a"}, np.eye(5), "`tol`"),
        ({"n_centers": -1}, np.eye(5), "`n_centers` must be a whole number ≥ 1, or None, got -1"),
        ({"n_centers": True}, np.eye(5), "`n_centers`"),
        ({"centers": "x"}, np.eye(5), "`centers` must be one of"),
        ({"centers": None}, np.eye(5), "`centers` must be one of"),
        ({"random_state": "a"}, np.eye(5), "`random_state` must be a whole number ≥ 0"),
        ({"random_state": -1}, np.eye(5), "`random_state` must be a whole number ≥ 0"),
        ({"random_state": -1, "inverse": "regression"}, np.eye(5), "`random_state` must be a whole number ≥ 0"),
        ({"inverse": "guess"}, np.eye(5), "`inverse`"),
        ({"solver": "guess"}, np.eye(5), "`solver`"),
        ({"solver": "krylov"}, np.eye(5), "n_components"),
        ({"kernel": "rbf"}, np.eye(5), "mc.Gaussian"),
    ],
)
def test_bad_input(params, X, match):
    with pytest.raises(InvalidInput, match=match):
        mc.KernelPCA(**params).fit(X)


@pytest.mark.parametrize("solver", ["eigen", "krylov"])
def test_matrices_that_are_not_positive_semidefinite(solver):
    A = rng.normal(size=(40, 40))
    with pytest.raises(InvalidInput, match=r"positive semidefinite.*mc\.repair"):
        mc.KernelPCA(mc.Precomputed(), n_components=2, solver=solver).fit(A + A.T)


def test_bad_scores_queries_and_weights():
    X = rows(30)
    model = mc.KernelPCA(n_components=2).fit(X)
    for Z, match in (
        (np.zeros((3, 3)), "shape"),
        (np.zeros(2), "shape"),
        (np.array(1.0), "shape"),
        (sp.eye(2, format="csr"), "Scores must be finite numbers"),
        ([[np.nan, 0.0]], "nan"),
        (np.full((20, 2), np.inf), "40 other entries, the first inf"),
        ([["a", 1]], "Scores must be finite numbers"),
    ):
        with pytest.raises(InvalidInput, match=match):
            model.inverse_transform(Z)
    with pytest.raises(InvalidInput, match="Fit the model again"):
        mc.KernelPCA(n_components=2).fit(X).set_params(inverse="regression").inverse_transform(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="4 features"):
        model.transform(X[:, :4])
    with pytest.raises(InvalidInput, match="sum must be > 1"):
        mc.KernelPCA(n_components=2).fit(X, sample_weight=np.full(30, 1 / 40))
    with pytest.raises(InvalidInput, match="two points"):
        mc.KernelPCA(n_components=1).fit(X, sample_weight=np.eye(30)[0] * 5)
    with pytest.raises(InvalidInput, match="start"):
        preimage(model.function_, np.zeros((3, 5)))
