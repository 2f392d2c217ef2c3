"""Proofs that cannot be fooled: what has one is positive semidefinite, and its values say so too."""

from __future__ import annotations

import numpy as np
import pytest

import mercer as mc
from mercer.errors import InvalidInput, InvalidType, RuleBroken
from mercer.kernels.nodes import Unary
from mercer.kernels.proof import PRODUCT


@pytest.mark.parametrize("final", [mc.Gaussian, mc.Linear, mc.Sum, mc.FromFunction, mc.Uniform, mc.Normalized])
def test_concrete_classes_are_final(final):
    """A subclass would inherit the proof, and the fused loop of large matrices, for other values."""
    with pytest.raises(InvalidType, match="is final.*Derive from mc.Kernel"):
        type("Mine", (final,), {"tile": lambda self, block, out: out.fill(-1.0)})
    with pytest.raises(InvalidType, match="is final"):
        type("Mixed", (type("Mixin", (), {}), final), {})


def test_instances_are_frozen():
    k = mc.Gaussian(1.0)
    for name in ("tile", "sigma", "proof", "anything"):
        with pytest.raises(AttributeError):
            setattr(k, name, None)


class AuthorsOwn(mc.Kernel):
    def tile(self, block, out):
        np.negative(block.sqdist(), out=out)

    def proof(self, dim=None):
        return mc.Axiom(self, "I say so")


class AuthorsNode(Unary):
    kernel: object

    def tile(self, block, out):
        self.inner.tile(block, out)
        np.negative(out, out=out)

    def proof(self, dim=None):
        return PRODUCT(self, self.inner.proof(dim))


def test_proofs_of_other_classes_are_claims_of_their_authors():
    for kernel in (AuthorsOwn(), AuthorsNode(mc.Linear())):
        proof = (kernel + mc.Gaussian(1.0)).proof()
        assert proof.valid
        assert [step.claim for step in proof.claimed] == [repr(kernel)]
        assert "is a kernel, if the claim of its author is true" in str(proof)
        assert "claimed by its author" in str(proof)
    assert not mc.Linear().proof().claimed
    assert not AuthorsNode(mc.FromFunction(lambda x, z: 1.0)).proof().valid


def test_a_leaf_without_a_proof_is_unproven():
    class Silent(mc.Kernel):
        def tile(self, block, out):
            out[...] = -1.0

    assert not (Silent() + mc.Linear()).proof().valid


# -- tanh is not a kernel ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda k: k + mc.Linear(), lambda k: mc.Linear() + k, lambda k: k * mc.Linear(), lambda k: 2.0 * k,
        lambda k: np.float64(2.0) * k, lambda k: k / 2, lambda k: k**2, lambda k: k + 1, lambda k: -k, lambda k: k.exp(),
        mc.exp, lambda k: k.poly([1.0, 1.0]), lambda k: k.normalize(), lambda k: k.rescale(len), lambda k: k.after(abs),
        lambda k: k.on(0), lambda k: mc.Sum((k,)), lambda k: mc.Product((k, mc.Linear())), lambda k: mc.Missing(k),
        lambda k: mc.Scaled(2.0, k), lambda k: mc.Typed(k),
    ],
)  # fmt: skip
def test_tanh_does_not_enter_the_algebra(build):
    with pytest.raises(RuleBroken, match=r"kernel.*not positive semidefinite.*Take a kernel"):
        build(mc.Tanh(1.0, -1.0))


def test_tanh_has_no_hilbert_space_and_no_model_that_needs_one():
    X = np.random.default_rng(0).normal(size=(20, 2))
    k = mc.Tanh(1.0, -1.0)
    assert not isinstance(k, mc.Kernel)
    for call in (
        lambda: mc.distance(k, X),
        lambda: mc.mean_embedding(k, X),
        lambda: mc.Expansion(k, X, np.ones(20)).norm(),
        lambda: mc.KernelRidge(k, alpha=1.0).fit(X, X[:, 0]),
        lambda: mc.GaussianProcessRegressor(k).fit(X, X[:, 0]),
        lambda: mc.KernelPCA(k).fit(X),
    ):
        with pytest.raises(InvalidInput, match=r"Tanh\(scale=1.0, offset=-1.0\)"):
            call()
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        mc.SVR(k, C=1.0).fit(X, X[:, 0])
