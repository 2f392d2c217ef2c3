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
