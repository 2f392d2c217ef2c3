"""Kernels on images: patches against a naive quadruple sum, explicit features, and models of images."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

import mercer as mc
from mercer.kernels.vocabulary import suited
from mercer.testing import check_laws


def naive(x, z, size, sigma, spread):
    """Every pair of patches, one by one."""
    places = [(i, j) for i in range(x.shape[0] - size + 1) for j in range(x.shape[1] - size + 1)]
    total = 0.0
    for p in places:
        a = x[p[0] : p[0] + size, p[1] : p[1] + size].ravel()
        for q in places:
            b = z[q[0] : q[0] + size, q[1] : q[1] + size].ravel()
            size_a, size_b = np.linalg.norm(a), np.linalg.norm(b)
            if size_a > 0 and size_b > 0:
                angle = 1 - a @ b / (size_a * size_b)
                near = np.exp(-((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2) / (2 * spread**2))
                total += size_a * size_b * np.exp(-angle / sigma**2) * near
    return total


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:120].reshape(-1, 8, 8) / 16, y[:120]


@pytest.mark.parametrize("channels", [(), (3,)])
def test_values_are_those_of_all_pairs_of_patches(channels):
    rng = np.random.default_rng(0)
    X, Z = rng.random((3, 6, 5, *channels)), rng.random((2, 6, 5, *channels))
    X[0, :3] = 0.0  # patches of norm 0 count nothing
    by_hand = [[naive(x, z, 3, 0.6, 1.5) for z in Z] for x in X]
    np.testing.assert_allclose(mc.Patches(sigma=0.6, spread=1.5, size=3)(X, Z), by_hand, rtol=1e-10)


def test_a_narrow_width_does_not_amplify_roundings():
    """Patches of one direction have a cosine of 1, whatever rounding makes of it."""
    X = np.random.default_rng(0).random((4, 5, 5))
    k = mc.Patches(sigma=1e-9, spread=2.0, size=3)
    norms = [sum(np.linalg.norm(x[i : i + 3, j : j + 3]) ** 2 for i in range(3) for j in range(3)) for x in X]
    assert (k.diag(X) <= np.array(norms) * (1 + 1e-12)).all()


def test_laws(digits):
    X, _ = digits
    k = mc.Patches(size=3)
    for kernel in (k, k.normalize(), (k + 1.0) * k):
        assert {"positive semidefinite", "Cauchy-Schwarz", "diagonal"} <= set(
            check_laws(kernel, list(X[:9]), list(X[9:13]))
        )
    assert k.proof().valid
    assert "gradient" in check_laws(k)
    assert mc.parse(repr(k)) == k
    assert not mc.refute(k, trials=1, seconds=60.0).refuted


def test_features_approach_the_kernel(digits):
    X, _ = digits
    k = mc.Patches(size=3, spread=2.0)
    K = k(X[:30])
    errors = []
    for anchors in (8, 64, 512):
        phi = mc.patch_features(k, X[:30], anchors)
        F = phi(X[:30])
        assert F.shape == (30, phi.dimension)
        assert len(phi.names[0]) > 0
        errors.append(np.abs(F @ F.T - K).max() / K.max())
    assert errors[2] < 0.02
    assert errors[2] < errors[1] < errors[0]


def test_features_depend_on_the_seed_alone(digits):
    X, _ = digits
    maps = [mc.patch_features(mc.Patches(size=3), X[:40], 16, seed=s) for s in (0, 0, 1)]
    np.testing.assert_array_equal(maps[0].anchors, maps[1].anchors)
    assert not np.array_equal(maps[0].anchors, maps[2].anchors)
    assert np.isfinite(mc.patch_features(mc.Patches(size=3), np.zeros((2, 8, 8)), 4)(X[:2])).all()


@pytest.mark.thorough
def test_models(digits, tmp_path):
    X, y = digits

    def rule(images):
        return mc.Linear().after(mc.patch_features(mc.Patches(size=3, spread=1.5), images, 32)).normalize()

    assert cross_val_score(mc.SVC(rule, C=10.0), X, y, cv=3).mean() > 0.85
    polynomial = mc.Polynomial(3, c=1.0).after(mc.pixels)
    np.testing.assert_allclose(polynomial(X), mc.Polynomial(3, c=1.0)(X.reshape(len(X), -1)))
    for kernel in (rule(X), polynomial, mc.Patches(size=4).normalize()):
        model = mc.SVC(kernel, C=10.0).fit(X[:60], y[:60])
        model.save(tmp_path / "model.mercer")
        np.testing.assert_array_equal(mc.load(tmp_path / "model.mercer").predict(X), model.predict(X))
    assert mc.KernelPCA(mc.Patches(size=4), n_components=2).fit_transform(X[:20]).shape == (20, 2)
    ridge = mc.KernelRidge(mc.Patches(size=4).normalize(), alpha=0.1).fit(list(X[:20]), y[:20].astype(float))
    np.testing.assert_allclose(ridge.predict(X[:3]), ridge.predict(list(X[:3])))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((3, 4)), "shape"),
        (np.full((2, 6, 6), np.nan), "image 0"),
        ([np.zeros((6, 6)), None], "image 1"),
        ([np.zeros((6, 6)), np.zeros((6, 5))], "image 1"),
        (np.zeros((2, 2, 2)), "at least 5 × 5"),
        (np.full((2, 6, 6), np.inf), "infinity in image 0"),
    ],
)
def test_bad_images_are_named(X, words):
    with pytest.raises(mc.InvalidInput, match=words):
        mc.Patches(size=5)(X)


def test_sizes_of_both_sides():
    with pytest.raises(mc.InvalidInput, match="same size"):
        mc.Patches(size=3)(np.ones((2, 6, 6)), np.ones((2, 7, 6)))
    with pytest.raises(mc.InvalidInput, match="pixels and channels"):
        mc.patch_features(mc.Patches(size=3), np.ones((2, 6, 6)), 4)(np.ones((2, 7, 6)))
    with pytest.raises(mc.InvalidInput, match="size"):
        mc.Patches(size=0)


@pytest.mark.thorough
def test_models_choose_a_kernel_for_images(tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    X = list(X[:150].reshape(-1, 8, 8))
    space, kernels = suited(X[:90])
    assert space == "images"
    assert "mc.Signature" in space.instead
    for kernel in kernels.values():
        model = mc.SVC(kernel, C=10.0).fit(X[:90], y[:90])
        assert model.score(X[90:], y[90:150]) > 0.9
        model.save(tmp_path / "m.mercer")
        np.testing.assert_array_equal(mc.load(tmp_path / "m.mercer").predict(X[90:]), model.predict(X[90:]))
    assert mc.SVC().fit(X[:90], y[:90]).kernel_.phi.size == 4
    colours = np.random.default_rng(0).integers(0, 255, (6, 6, 9, 3), dtype=np.uint8)
    assert all(np.isfinite(k(colours)).all() for k in suited(list(colours))[1].values())


def test_features_of_polynomials_of_pixels():
    X = np.random.default_rng(0).random((4, 3, 3))
    k = mc.Polynomial(2, c=1.0).after(mc.pixels)
    phi = k.features(X)
    assert phi.dimension == 55
    np.testing.assert_allclose(phi(X) @ phi(X).T, k(X), rtol=1e-12)
    with pytest.raises(mc.InvalidInput, match="data set of objects"):
        k.features(None)
