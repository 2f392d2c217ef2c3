"""The law suite: on every class of the library, on random expressions, and on planted bugs that it must find."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings

import mercer as mc
from expressions import set_kernels, vector_kernels
from mercer._loops import costs
from mercer.kernels.algebra.expression import parse
from mercer.kernels.vocabulary import library
from mercer.testing import LawBroken, check_laws, sample

K5 = np.array([[2.0, 1.0, 0.5], [1.0, 2.0, 0.25], [0.5, 0.25, 1.0]])


def _square(X):
    return np.column_stack([X, (np.asarray(X) ** 2).sum(axis=1)])


def _first_plus_two(X):
    return np.asarray(X)[:, 0] + 2.0


def _cauchy(x, z):
    return 1.0 / (1.0 + float(np.sum((np.asarray(x) - np.asarray(z)) ** 2)))


CASES = [
    mc.Polynomial(1),
    mc.Polynomial(2),
    mc.Polynomial(3, c=0.7),
    mc.Polynomial(2, c=mc.Fixed(1.0)),
    mc.Bilinear(np.diag([1.0, 2.0, 0.0]) + 1.0),
    mc.Gaussian([0.5, 1.0, 2.0]),
    mc.Gaussian(mc.Fixed(1.5)),
    mc.Laplacian([0.5, 1.0, 2.0]),
    *(mc.Matern(1.3, nu) for nu in (0.5, 1.5, 2.5, 0.7, 4.2)),
    mc.Matern([0.5, 1.0, 2.0], 2.5),
    mc.RationalQuadratic([0.5, 1.0, 2.0], 0.6),
    mc.Periodic(0.8, 3.0),
    mc.ArcCosine(0),
    mc.ArcCosine(2),
    mc.FromFunction(_cauchy),
    mc.FromFeatures(_square),
    mc.Precomputed(K5),
    mc.Linear() + mc.Gaussian(1.0) + 2.0,
    mc.Linear() * mc.Gaussian(2.0) * mc.Matern(1.0),
    0.3 * mc.Gaussian(1.0),
    mc.Scaled(mc.Fixed(2.0), mc.Linear()),
    mc.Linear() ** 3,
    mc.Poly(mc.Linear(), [0.5, 0.0, 2.0]),
    mc.exp(0.2 * mc.Linear()),
    mc.exp(mc.Gaussian(1.0)).normalize(),
    mc.Polynomial(2, c=1.0).normalize(),
    mc.Linear().rescale(_first_plus_two),
    mc.Gaussian(1.0).after(_square),
    mc.Gaussian(1.0).on(0, 2) * mc.Linear().on(1) + mc.Matern(1.0).on(2),
    mc.Epanechnikov(2.0).on(0) * mc.Tricube(3.0).on(1, 2),
    mc.exp(np.log(2) * mc.Intersection()),
    mc.exp(mc.Intersection()).normalize(),
    mc.Intersection().poly([1.0, 2.0]),
    mc.Delta() + 0.5 * mc.Hamming(),
    mc.Additive(1.0),
    mc.Additive([0.5, 1.0, 2.0]),
    mc.exp(0.5 * mc.Additive([0.5, 1.0, 2.0])).normalize(),
    mc.Categorical(1.5),
    mc.Categorical([0.7]),
    mc.NGrams(2),
    mc.WeisfeilerLehman(2),
    (0.5 * mc.WeisfeilerLehmanAssignment(2) + mc.RandomWalk(0.01)).normalize(),
    mc.NGrams((1, 3), fold=False),
    mc.exp(0.5 * (mc.NGrams((1, 3)) + 1.0).normalize()),
    mc.Spectrum((1, 2), weights=(0.5, 2.0)),
    mc.Mismatch(2, 1, alphabet="abc"),
    mc.WeightedDegree(3),
    mc.Subsequence(2, mc.Fixed(0.5)),
    mc.LocalAlignment(0.2, scores=(1.0, -1.0)).normalize(),
    mc.Gaussian(1.0).over(np.atleast_2d),
    mc.MeanEmbedding(mc.Gaussian(1.0) + mc.Linear()).normalize(),
    mc.Jaccard() + 0.5 * mc.Dice(),
    mc.SubsetTree(0.7).normalize() + mc.Subtree(),
    mc.PartialTree(0.7, 0.9),
    mc.Tanimoto(),
    mc.MinMax(),
    mc.ChiSquared(1.3),
    mc.exp(0.5 * mc.AdditiveChiSquared() + mc.Hellinger()).normalize(),
    mc.Missing(mc.Gaussian(1.0)),
    mc.Missing(mc.Gaussian(1.0), like=[(0.0,) * 3, (1.0,) * 3]),
    mc.Missing(mc.Categorical(1.0), like=["red", "blue"]),
    mc.Missing(mc.NGrams(2)),
    mc.Typed(mc.Gaussian(1.0).on("x0") * mc.Additive(1.0).on("x1", "x2"), numbers=["x0", "x1", "x2"]),
    mc.Sum((mc.Sum((mc.Linear(), mc.Gaussian(1.0))), mc.Constant(2.0))),
    mc.Product((mc.Product((mc.Linear(), mc.Gaussian(1.0))), mc.Constant(2.0))),
]


CLASSES = list(library().values())


def nodes(kernel):
    return [kernel, *(n for child in kernel.children.values() for n in nodes(child))]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_class_obeys_the_laws(cls):
    """A new leaf is tested because it is public: by the example of its class, or by a case above."""
    if cls.about.in_python or "'" in cls.about.example:  # Python functions, and columns by name
        assert cls in {type(n) for case in CASES for n in nodes(case)}
    else:
        assert "symmetry" in check_laws(parse(cls.about.example))


@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_laws_on_cases(kernel):
    assert "symmetry" in check_laws(kernel)


@pytest.mark.parametrize("kernel", [case for case in CASES if case.space == "vectors"], ids=repr)
def test_laws_on_cases_by_loops(kernel, monkeypatch):
    """Small tiles are NumPy's: the compiled loops of large ones obey the same laws."""
    monkeypatch.setattr(costs, "COMPILED_ENTRIES", 0)
    assert "symmetry" in check_laws(kernel)


@settings(max_examples=settings.default.max_examples // 3)
@given(vector_kernels)
def test_laws_on_random_expressions(kernel):
    check_laws(kernel, sample(kernel, 7, seed=1), sample(kernel, 4, seed=2))


@settings(max_examples=settings.default.max_examples // 8)
@given(set_kernels)
def test_laws_on_random_expressions_of_sets(kernel):
    check_laws(kernel, sample(kernel, 7, seed=1), sample(kernel, 4, seed=2))


def test_laws_hold_beyond_one_tile():
    X = np.random.default_rng(0).normal(size=(700, 5))
    for kernel in (mc.Gaussian(2.0), mc.Gaussian(2.0) + mc.Matern(1.0) * mc.Linear()):
        K = kernel(X)
        assert (K == K.T).all()
        D = ((X[:, None] - X) ** 2).sum(axis=-1)
        r = np.sqrt(3 * D)
        expected = np.exp(-D / 8)
        if kernel != mc.Gaussian(2.0):
            expected = expected + (1 + r) * np.exp(-r) * (X @ X.T)
        assert np.abs(K - expected).max() < 1e-12
        v = np.linspace(-1, 1, 700)
        assert np.abs(mc.gram.of(kernel, X, budget=1000) @ v - expected @ v).max() < 1e-10


# -- every law must have been seen to fail ---------------------------------------------------------------------------


class PlantedBug(mc.Kernel):
    """A Gaussian with a switchable bug."""

    sigma: float = mc.positive(1.0)
    bug: str = ""
    tags: ClassVar[mc.Tags] = mc.Tags(finite_rank=True)

    def tile(self, block, out):
        out[...] = np.exp(-0.5 * block.sqdist() / self.sigma**2)
        if self.bug == "asymmetric":
            x, _ = block.vectors()
            out *= 1 + 0.01 * x[:, :1] ** 2
        if self.bug == "position":
            out *= 1 + 0.01 * block.rows.stop
        if self.bug == "indefinite":
            out -= 0.5
        if self.bug == "schwarz":
            out += (out < 1) * 1.0

    def diagonal(self, points):
        return np.full(points.n, 1.1 if self.bug == "diagonal" else 0.5 if self.bug == "indefinite" else 1.0)

    def log_tile(self, block, out):
        out[...] = -0.5 * block.sqdist() / self.sigma**2 + 0.1

    @property
    def exact_log(self):
        return self.bug == "logarithm"

    def tile_gradient(self, block, G):
        return (2.0 if self.bug == "gradient" else 1.0) * super().tile_gradient(block, G)

    def tile_input_gradient(self, block, G):
        return (2.0 if self.bug == "point gradient" else 1.0) * super().tile_input_gradient(block, G)

    def enclose(self, x, z):
        return super().enclose(x, z) + (0.1 if self.bug == "enclosure" else 0)

    def features(self, d, *, index="monomials"):
        return mc.Linear().features(d)

    def proof(self, dim=None):
        return mc.Axiom(self, "said so")

    def __eq__(self, other):
        return self.bug != "values" and super().__eq__(other)

    __hash__ = mc.Kernel.__hash__


@pytest.mark.parametrize(
    ("bug", "law"),
    [
        ("asymmetric", "symmetry"),
        ("position", "symmetry|tiles"),
        ("diagonal", "diagonal"),
        ("indefinite", "positive semidefinite"),
        ("schwarz", "positive semidefinite|Cauchy"),
        ("logarithm", "logarithm"),
        ("gradient", "gradient by sigma"),
        ("point gradient", "point gradient"),
        ("enclosure", "enclosure"),
        ("values", "values"),
        ("", "feature map"),
    ],
)
def test_planted_bugs_are_found(bug, law):
    with pytest.raises(LawBroken, match=law):
        check_laws(PlantedBug(1.3, bug))


class Unwritten(mc.Kernel):
    """A leaf that returns its values instead of writing them."""

    def tile(self, block, out):
        return np.exp(-block.sqdist())


class Greedy(mc.Kernel):
    """A leaf that writes to what other leaves share."""

    def tile(self, block, out):
        shared = block.sqdist()
        shared += 1.0
        out[...] = np.exp(-shared)


class Steep(mc.Kernel):
    """exp(−r^2.2), which is no kernel, with a proof that is none."""

    def tile(self, block, out):
        out[...] = np.exp(-(block.sqdist() ** 1.1))

    def proof(self, dim=None):
        return mc.Axiom(self, "so it is claimed")


class Minus(mc.Kernel):
    """−‖x − z‖², without a proof."""

    def tile(self, block, out):
        out[...] = -block.sqdist()


def test_the_bugs_of_beginners_are_found():
    with pytest.raises(mc.InvalidInput, match=r"must write its values to `out`"):
        Unwritten()([[1.0]])
    with pytest.raises(ValueError, match="read-only"):
        Greedy()([[1.0]])
    for wrong in (Steep(), Minus()):
        with pytest.raises(LawBroken, match="positive semidefinite"):
            check_laws(wrong)


class Hours(mc.Kernel):
    """Equal hours of two times, texts such as "14:05", in a space that nobody draws."""

    space = "hours"

    def encode(self, X):
        return [int(time[:2]) for time in X]

    def tile(self, block, out):
        x, z = (np.array(side) for side in block.encoded(self))
        np.equal(x[:, None], z, out=out, casting="unsafe")

    def derivation(self):
        return mc.Axiom(self, "inner product of one-hot vectors of the hour")


class Anything(mc.Kernel):
    """The same for any objects."""

    space = "any"
    encode, tile, derivation = Hours.encode, Hours.tile, Hours.derivation


@pytest.mark.parametrize("kernel", [Hours, Anything])
def test_the_laws_of_objects_that_nobody_draws_are_tested_on_the_given_ones(kernel):
    assert "positive semidefinite" in check_laws(kernel(), ["14:05", "14:50", "02:00", "23:59"])
