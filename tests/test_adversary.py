"""Random proven expressions on odd data: none may contradict its proof, and planted bugs must be found.

MERCER_ADVERSARY is how many are tried (400 by default); every number tries the same ones first.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import adversary
import mercer as mc
from adversary import Contradiction, examine
from mercer.errors import InvalidInput
from mercer.kernels.algebra import rounding
from mercer.kernels.algebra.entrywise import Exp, Power
from mercer.kernels.algebra.linear import Product
from mercer.kernels.algebra.rescaling import Normalized
from mercer.kernels.base import diagonals

TRIED = int(os.environ.get("MERCER_ADVERSARY", "400"))
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_no_proven_expression_contradicts_its_proof(part):
    tried = 0
    for seed in range(part, TRIED, PARTS):
        try:
            kernel, X = adversary.case(seed)
        except InvalidInput:  # a rule that the expression would break
            continue
        try:
            tried += examine(kernel, X)
        except Contradiction as found:
            raise AssertionError(f"seed {seed}: {found}") from found
    assert tried > 0.5 * TRIED / PARTS  # most have a proof, and values


# -- planted bugs -----------------------------------------------------------------------------------------------------


def found(seeds=range(400)):
    """Whether the adversary finds a contradiction among its first expressions."""
    for seed in seeds:
        try:
            examine(*adversary.case(seed))
        except InvalidInput:
            continue
        except Contradiction:
            return True
    return False


def test_a_method_that_is_replaced_is_found(monkeypatch):
    """As by a subclass, if there could be one: the fused loop of many points goes on giving other values."""
    plain = mc.Gaussian.tile

    def tile(self, block, out):
        plain(self, block, out)
        np.subtract(out, 1e-3, out=out)

    monkeypatch.setattr(mc.Gaussian, "tile", tile)
    assert found()


def test_a_wrong_product_is_found(monkeypatch):
    def tile(self, block, out):
        self.parts[0].tile(block, out)
        scratch = block.scratch()
        for part in self.parts[1:]:
            part.tile(block, scratch)
            np.subtract(out, scratch, out=out)

    monkeypatch.setattr(Product, "tile", tile)
    assert found()


@pytest.mark.thorough
def test_logarithms_that_cancel_are_found(monkeypatch):
    def log_tile(self, block, out):
        self.inner.log_tile(block, out)
        x, z = diagonals(self.inner, block.pair, log=True)
        out -= (0.5 * x[block.rows, None] + 0.5 * z[block.cols]).astype(out.dtype)

    monkeypatch.setattr(Normalized, "log_tile", log_tile)
    assert found()


@pytest.mark.thorough
def test_powers_that_amplify_rounding_are_found(monkeypatch):
    def imprecise(kernel, block, amplification, precise=rounding.precise):
        return block if isinstance(kernel, Power) else precise(kernel, block, amplification)

    monkeypatch.setattr(rounding, "precise", imprecise)
    monkeypatch.setattr("mercer.kernels.algebra.entrywise.precise", imprecise)
    monkeypatch.setattr(Exp, "exact_log", False)
    monkeypatch.setattr(mc.Gaussian, "exact_log", False)
    monkeypatch.setattr("mercer.kernels.algebra.entrywise.require_power", lambda *arguments: None)
    assert found()


def test_a_leaf_that_is_called_proven_is_found(monkeypatch):
    monkeypatch.setattr(mc.FromFunction, "proof", lambda self, dim=None: mc.Axiom(self, "planted"))
    k = mc.FromFunction(lambda x, z: float(np.tanh(x @ z - 1.0)))
    with pytest.raises(Contradiction):
        examine(k, np.random.default_rng(0).normal(size=(20, 2)))


def test_values_that_depend_on_the_others_are_found(monkeypatch):
    monkeypatch.setattr("mercer.kernels.algebra.views.require_rowwise", lambda *arguments: None)
    k = mc.Gaussian(1.0).after(lambda X: X - X.mean(axis=0) * len(X) / 10)
    with pytest.raises(Contradiction, match="depend on the other points"):
        examine(k, np.random.default_rng(0).normal(size=(20, 2)))


@pytest.mark.parametrize(
    ("kernel", "word"),
    [
        (lambda x, z: float(x @ z) if x[0] < z[0] else 0.0, "larger"),
        (lambda x, z: -1.0, "< 0"),
        (lambda x, z: 2.0 if (x != z).any() else 1.0, "larger"),
        (lambda x, z: 1.0 if np.abs(x - z).max() < 0.5 else 0.0, "eigenvalue"),
    ],
)
def test_each_kind_of_contradiction_is_found(monkeypatch, kernel, word):
    monkeypatch.setattr(mc.FromFunction, "proof", lambda self, dim=None: mc.Axiom(self, "planted"))
    with pytest.raises(Contradiction, match=word):
        examine(mc.FromFunction(kernel), np.random.default_rng(0).normal(size=(20, 2)))
