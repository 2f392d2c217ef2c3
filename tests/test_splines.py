"""Conditionally positive definite functions: their values, their order, and what the algebra says to them."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

import mercer as mc
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.vectors.splines import Multiquadric, Polyharmonic, ThinPlate
from mercer.testing import check_laws

FUNCTIONS = [
    *(Polyharmonic(k) for k in range(1, 8)),
    Polyharmonic(3, sigma=2.0),
    Polyharmonic(5, sigma=[0.5, 1.0, 2.0]),
    ThinPlate(),
    ThinPlate(0.3),
    Multiquadric(0.7),
    Multiquadric([0.5, 1.0, 2.0]),
]


@pytest.mark.parametrize("k", FUNCTIONS, ids=repr)
def test_the_laws_of_every_similarity(k):
    obeyed = check_laws(k)
    assert {"symmetry", "diagonal", "tiles", "operator", "point gradient", "enclosure", "single precision"} <= {*obeyed}
    assert "positive semidefinite" not in obeyed


def null_space(X, degree):
    """Orthonormal vectors on which every polynomial of this degree vanishes."""
    columns = [c for m in range(degree + 1) for c in combinations_with_replacement(range(X.shape[1]), m)]
    P = np.stack([X[:, list(c)].prod(axis=1) for c in columns], axis=1) if columns else np.empty((len(X), 0))
    return np.linalg.qr(P, mode="complete")[0][:, len(columns) :]


@pytest.mark.parametrize(
    ("k", "d"),
    [(k, d) for k in FUNCTIONS for d in (1, 2, 3) if np.size(k.sigma) in (1, d)],  # one width, or one per column
    ids=repr,
)
def test_positive_definite_beside_its_polynomials_and_not_with_fewer(k, d):
    X = np.random.default_rng(d).uniform(-1, 1, size=(40, d))
    K = k(X)
    assert k.tags.cpd_order == k.order
    N = null_space(X, k.order - 1)
    assert np.linalg.eigvalsh(N.T @ K @ N)[0] > -1e-12 * np.abs(K).max()
    N = null_space(X, k.order - 2)
    assert np.linalg.eigvalsh(N.T @ K @ N)[0] < -1e-6 * np.abs(K).max()


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (Polyharmonic(1), lambda r: -r),
        (Polyharmonic(2), lambda r: r**2 * np.log(r)),
        (ThinPlate(), lambda r: r**2 * np.log(r)),
        (ThinPlate(2.0), lambda r: (r / 2) ** 2 * np.log(r / 2)),
        (Polyharmonic(3), lambda r: r**3),
        (Polyharmonic(4), lambda r: -(r**4) * np.log(r)),
        (Polyharmonic(5, sigma=2.0), lambda r: -((r / 2) ** 5)),
        (Multiquadric(2.0), lambda r: -np.sqrt(1 + r**2 / 4)),
        (mc.RationalQuadratic(2.0, alpha=0.5), lambda r: 1 / np.sqrt(1 + r**2 / 4)),
        (mc.RationalQuadratic(2.0 / np.sqrt(2.0), alpha=1.0), lambda r: 1 / (1 + r**2 / 4)),
    ],
    ids=lambda value: repr(value) if isinstance(value, mc.Similarity) else "",
)
def test_values(k, expected):
    r = np.array([0.1, 1.0, 3.0, 50.0])
    np.testing.assert_allclose(k([[0.0]], r[:, None])[0], expected(r), rtol=1e-13, atol=1e-14)


def test_orders():
    assert [Polyharmonic(k).order for k in (1, 2, 3, 4, 5, 6, 7)] == [1, 2, 2, 3, 3, 4, 4]
    assert (ThinPlate().order, Multiquadric(1.0).order) == (2, 1)


@pytest.mark.parametrize(
    "build",
    [
        lambda k: k + mc.Gaussian(1.0),
        lambda k: mc.Gaussian(1.0) + k,
        lambda k: 2.0 * k,
        lambda k: np.float64(2.0) * k,
        lambda k: k * k,
        lambda k: k**2,
        lambda k: -k,
        lambda k: k.exp(),
        lambda k: mc.exp(k),
        lambda k: k.normalize(),
    ],
)
def test_the_algebra_refuses_with_the_reason(build):
    with pytest.raises(RuleBroken, match="ThinPlate"):
        build(ThinPlate())


def test_the_refusal_names_order_and_tail():
    with pytest.raises(RuleBroken, match=r"order 2.*tail of degree 1"):
        ThinPlate() + mc.Linear()


def test_the_proof_states_the_theorem_and_claims_no_kernel():
    proof = Polyharmonic(5).proof()
    assert not proof.valid
    assert "order 3" in str(proof)
    assert "Micchelli 1986" in str(proof)
    assert not mc.check(Polyharmonic(5), [[0.0], [1.0]]).psd


@pytest.mark.parametrize("degree", [0, 21, 1.5, True, "3"])
def test_degrees_that_make_no_sense(degree):
    with pytest.raises(InvalidInput, match="`degree` of Polyharmonic"):
        Polyharmonic(degree)


def test_overflow_is_an_error():
    with pytest.raises(InvalidInput, match="overflow"):
        Polyharmonic(7)([[0.0], [1e60]])


def test_frozen_values():
    k = Polyharmonic(3, sigma=2.0)
    assert k == Polyharmonic(3, sigma=2.0)
    assert k.replace(degree=5) == Polyharmonic(5, sigma=2.0)
    assert k.theta.size == 0  # a width is a factor of the penalty, nothing to search
    assert Multiquadric(2.0).parameter_names == ["sigma"]
