"""The algebra: every rule of the lectures, its condition, its error, and the identities between expressions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mercer as mc

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
a, b = mc.Gaussian(1.5), mc.Polynomial(2, c=0.5)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (a + b, lambda A, B: A + B),
        (a * b, lambda A, B: A * B),
        (2.5 * a, lambda A, B: 2.5 * A),
        (a * 2.5, lambda A, B: 2.5 * A),
        (np.float64(2.5) * a, lambda A, B: 2.5 * A),
        (np.float32(0.5) * a, lambda A, B: 0.5 * A),
        (a / 2, lambda A, B: A / 2),
        (a + 1, lambda A, B: A + 1),
        (1.5 + a, lambda A, B: A + 1.5),
        (b**3, lambda A, B: B**3),
        (a.poly([1.0, 0.0, 2.0]), lambda A, B: 1 + 2 * A**2),
        (mc.exp(a), lambda A, B: np.exp(A)),
        (a.exp(), lambda A, B: np.exp(A)),
    ],
    ids=lambda v: repr(v) if isinstance(v, mc.Kernel) else "",
)
def test_operations_act_on_values(expression, value):
    assert isinstance(expression, mc.Kernel)
    np.testing.assert_allclose(expression(X, Z), value(a(X, Z), b(X, Z)), rtol=1e-13)
    np.testing.assert_allclose(expression.diag(X), np.diag(expression(X)), rtol=1e-13)
    assert expression.proof().valid


def test_views_and_rescalings():
    f = lambda X: 1.0 + X[:, 0] ** 2  # noqa: E731
    K = a(X, Z)
    np.testing.assert_allclose(a.rescale(f)(X, Z), f(X)[:, None] * K * f(Z), rtol=1e-13)
    np.testing.assert_allclose(a.after(np.tanh)(X, Z), a(np.tanh(X), np.tanh(Z)), rtol=1e-13)
    np.testing.assert_allclose(a.on(2, 0)(X, Z), a(X[:, [2, 0]], Z[:, [2, 0]]), rtol=1e-13)
    norm = np.sqrt(b.diag(X)[:, None] * b.diag(Z))
    np.testing.assert_allclose(b.normalize()(X, Z), b(X, Z) / norm, rtol=1e-13)


def test_sums_and_products_come_out_flat_but_constructors_never_flatten():
    c = mc.Linear()
    assert (a + b + c).kernels == (a, b, c) == (a + (b + c)).kernels
    assert (a * b * c).kernels == (a, b, c) == (a * (b * c)).kernels
    nested = mc.Sum((mc.Sum((a, b)), c))
    assert nested.kernels == (mc.Sum((a, b)), c)
    assert nested != a + b + c
    assert 2 * (3 * a) == 6.0 * a


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: -2.0 * a, r"Rule c·k: the factor must be > 0, got -2.0"),
        (lambda: 0.0 * a, r"Rule c·k"),
        (lambda: float("nan") * a, r"Rule c·k"),
        (lambda: a - b, r"No rule makes k₁ − k₂ a kernel"),
        (lambda: -a, r"No rule makes −k a kernel"),
        (lambda: a + (-1.0), r"Rule k₁ \+ k₂: a constant kernel must be > 0"),
        (lambda: a**0.5, r"Rule kⁿ: the exponent must be a whole number"),
        (lambda: a**-1, r"Rule kⁿ"),
        (lambda: a**True, r"Rule kⁿ"),
        (lambda: a.poly([1.0, -1.0]), r"Rule q\(k\): every coefficient must be ≥ 0, got -1.0 for k\^1"),
        (lambda: a.poly([0.0, 0.0]), r"Rule q\(k\)"),
        (lambda: mc.Polynomial(2, c=-1.0), r"Rule q\(k\): the offset"),
        (lambda: mc.Polynomial(0.5, c=1.0), r"Rule q\(k\): the `degree`"),
        (lambda: mc.Bilinear([[1.0, 0.0], [0.0, -1.0]]), r"Rule xᵀAz.*smallest eigenvalue -1"),
        (lambda: mc.Bilinear([[1.0, 2.0], [0.0, 1.0]]), r"Rule xᵀAz.*asymmetric"),
        (lambda: a + mc.Epanechnikov(1.0), r"smoothing weight"),
        (lambda: a + "b", r"every operand must be a kernel"),
        (lambda: mc.exp("b"), r"Rule exp\(k\)"),
        (lambda: a / 0, r"Rule c·k: the divisor"),
    ],
)
def test_every_rule_checks_its_condition(make, rule):
    with pytest.raises(mc.RuleBroken, match=rule):
        make()


def test_parameters_are_checked():
    for bad in (0.0, -1.0, float("nan"), float("inf"), "wide", None, [[1.0]], []):
        with pytest.raises(mc.InvalidInput, match="sigma"):
            mc.Gaussian(bad)
    with pytest.raises(mc.InvalidInput, match="1e-150"):
        mc.Gaussian(1e-200)
    with pytest.raises(mc.InvalidInput, match="as many columns"):
        mc.Gaussian([1.0, 2.0])(X)
    with pytest.raises(mc.InvalidInput, match="columns"):
        mc.Bilinear(np.eye(2))(X)
    with pytest.raises(mc.InvalidInput, match="order"):
        mc.ArcCosine(3)


def test_kernels_are_frozen_hashable_values():
    k = 0.5 * mc.Gaussian([1.0, 2.0]) + mc.Linear()
    same = 0.5 * mc.Gaussian(np.array([1.0, 2.0])) + mc.Linear()
    assert k == same
    assert hash(k) == hash(same)
    assert k != 0.5 * mc.Gaussian([1.0, 3.0]) + mc.Linear()
    assert mc.Gaussian(1.0) != mc.Gaussian(mc.Fixed(1.0))
    assert mc.Gaussian(1.0) != mc.Laplacian(1.0)
    assert mc.Gaussian(1.0) != 1.0
    assert len({k, same, a}) == 2
    with pytest.raises(AttributeError):
        mc.Gaussian(1.0).sigma = 2.0
    with pytest.raises(ValueError, match="read-only"):
        mc.Gaussian([1.0, 2.0]).sigma[0] = 3.0
    assert pickle.loads(pickle.dumps(k)) == k


@pytest.mark.parametrize(
    "text",
    [
        "0.5 * Gaussian(sigma=1.0) + Polynomial(degree=3, c=1.0) * Linear()",
        "(Gaussian(sigma=1.0) + Linear()) * Linear()",
        "Linear() * (Gaussian(sigma=1.0) + Linear()) ** 2",
        "2.0 * (Linear() * Gaussian(sigma=[1.0, 2.0]))",
        "(2.0 * Linear()) * Gaussian(sigma=1.0)",
        "exp(0.5 * Linear()).normalize()",
        "(Linear() + Constant(c=1.0)).on(0, 'age') * Delta().on('city')",
        "Scaled(2.0, 3.0 * Linear())",
        "Poly(Linear(), [1.0, 0.0, 2.0])",
        "Bilinear([[2.0, 0.0], [0.0, 1.0]])",
        "Gaussian(sigma=Fixed(2.0))",
        "Precomputed([[1.0, 0.0], [0.0, 1.0]])",
    ],
)
def test_repr_rebuilds(text):
    names = {name: getattr(mc, name) for name in mc.__all__}
    kernel = eval(text, names)
    assert eval(repr(kernel), names) == kernel
    assert repr(eval(repr(kernel), names)) == repr(kernel)


def test_theta_names_bounds_and_fixed_parameters():
    k = 2.0 * mc.Gaussian([1.0, 3.0]) + mc.Polynomial(2, c=0.0) * mc.Matern(mc.Fixed(1.0)) + mc.Polynomial(2, c=4.0)
    assert k.parameter_names == ["0__scale", "0__kernel__sigma[0]", "0__kernel__sigma[1]", "2__c"]
    np.testing.assert_allclose(k.theta, np.log([2.0, 1.0, 3.0, 4.0]))
    assert k.bounds.shape == (4, 2)
    moved = k.with_theta(np.log([1.0, 2.0, 3.0, 5.0]))
    assert moved.kernels[0] == 1.0 * mc.Gaussian(np.exp(np.log([2.0, 3.0])))
    assert moved.kernels[1] == k.kernels[1]
    assert mc.Gaussian(mc.Fixed(1.0)).replace(sigma=2.0) == mc.Gaussian(mc.Fixed(2.0))
    with pytest.raises(mc.InvalidInput, match=r"shape \(4,\).*2__c"):
        k.with_theta([1.0])


def test_widths_in_every_convention():
    assert mc.Gaussian.from_gamma(0.5) == mc.Gaussian(1.0)
    assert mc.Gaussian.from_variance(4.0) == mc.Gaussian(2.0)
    np.testing.assert_allclose(mc.Gaussian.from_gamma([0.5, 2.0]).sigma, [1.0, 0.5])
    D = ((X[:, None] - Z) ** 2).sum(axis=-1)
    np.testing.assert_allclose(mc.Gaussian.from_gamma(0.3)(X, Z), np.exp(-0.3 * D), rtol=1e-13)
    np.testing.assert_allclose(mc.Gaussian.from_variance(0.3)(X, Z), np.exp(-D / 0.6), rtol=1e-13)
    with pytest.raises(mc.InvalidInput, match="gamma"):
        mc.Gaussian.from_gamma(-1.0)


def test_lecture_identities():
    """Lecture 000: x̃ = (x, √c); lecture 001: e^|A∩B|; lecture 002: the Gaussian by rules; lecture 004: subsets."""
    c = 0.7
    stretched = [np.column_stack([side, np.full(len(side), np.sqrt(c))]) for side in (X, Z)]
    np.testing.assert_allclose(mc.Polynomial(3, c=c)(X, Z), mc.Polynomial(3)(*stretched), rtol=1e-12)

    by_rules = mc.exp(mc.Linear()).rescale(lambda X: np.exp(-0.5 * (X**2).sum(axis=1)))
    np.testing.assert_allclose(by_rules(X, Z), mc.Gaussian(1.0)(X, Z), rtol=1e-12)

    sets = [set(), {1}, {1, 2}, {2, 3, 5}]
    sizes = np.array([[len(A & B) for B in sets] for A in sets])
    np.testing.assert_allclose(mc.exp(np.log(2) * mc.Intersection())(sets), 2.0**sizes, rtol=1e-14)
    np.testing.assert_allclose(mc.exp(mc.Intersection())(sets), np.exp(sizes), rtol=1e-14)


def test_proofs_read_like_derivations():
    k = 0.5 * mc.Gaussian(1.0) + mc.Polynomial(3, c=1.0) * mc.FromFunction(max)
    proof = k.proof()
    text = str(proof)
    assert not proof.valid
    assert [p.claim for p in proof.unproven] == ["FromFunction(max)"]
    for line in ("sum of kernels", "positive multiple c·k; c = 0.5 > 0", "product of kernels", "UNPROVEN", "c = 1 ≥ 0"):
        assert line in text
    assert mc.Precomputed(np.eye(2)).proof().valid
    assert "eigenvalue -1" in str(mc.Precomputed([[0.0, 1.0], [1.0, 0.0]]).proof())
    assert mc.Triangular(1.0).proof(dim=1).valid
    assert not mc.Triangular(1.0).proof(dim=2).valid
    assert not mc.Tanh().proof().valid


def test_tags_follow_the_rules():
    assert (mc.Gaussian(1.0) + mc.Linear()).tags.universal
    assert not (mc.Gaussian(1.0) * mc.Linear()).tags.universal
    assert (mc.Gaussian(1.0) * mc.Matern(1.0)).tags.universal
    assert not mc.Gaussian(1.0).on(0).tags.universal
    assert mc.exp(2.0 * mc.Linear()).tags.universal
    assert (mc.Linear() + mc.Polynomial(3) * mc.Linear()).tags.finite_rank
    assert not (mc.Linear() + mc.Gaussian(1.0)).tags.finite_rank
    assert mc.Polynomial(2).normalize().tags.normalised
    assert not (2.0 * mc.Gaussian(1.0)).tags.normalised
    assert (mc.Gaussian(1.0) + mc.Matern(1.0)).tags.radial


def test_parts_must_share_a_space():
    with pytest.raises(mc.InvalidInput, match="same kind of objects"):
        mc.Gaussian(1.0) + mc.Intersection()
    assert (mc.Gaussian(1.0).on(0) * mc.Intersection().on(1)).space == "table"


def test_composite_kernels_share_products_and_distances(monkeypatch):
    """Four leaves on the same points, one product and one set of distances per tile."""
    from mercer.kernels import block

    calls = []
    original = block.product
    monkeypatch.setattr(block, "product", lambda *args, **how: (calls.append(1), original(*args, **how))[1])
    wide = rng.normal(size=(10, 30))
    (mc.Gaussian(1.0) + mc.Matern(2.0) + mc.RationalQuadratic(1.0) + mc.Gaussian(3.0))(wide)
    assert len(calls) == 1
    calls.clear()
    (mc.Linear() + mc.Polynomial(2) * mc.Polynomial(3, c=1.0) + mc.exp(0.01 * mc.Linear()))(wide)
    assert len(calls) == 1


def test_values_survive_copies_and_stay_frozen():
    import copy

    k = 2.0 * mc.Gaussian([1.0, 2.0])
    for again in (copy.copy(k), copy.deepcopy(k), pickle.loads(pickle.dumps(k))):
        assert again == k
        with pytest.raises(ValueError, match="read-only"):
            again.kernel.sigma[0] = 9.0
    fixed = mc.Gaussian(mc.Fixed(1.0))
    assert mc.Gaussian(**fixed.get_params(deep=False)) == fixed == pickle.loads(pickle.dumps(fixed))
    assert mc.Gaussian(mc.Fixed(mc.Fixed(1.0))) == fixed
    assert mc.Bilinear([[1.0, 0.0], [0.0, 1.0]]) == mc.Bilinear([[1.0, -0.0], [-0.0, 1.0]])


def test_the_builtin_sum_adds_kernels():
    assert sum([a, b, mc.Linear()]) == a + b + mc.Linear()
    with pytest.raises(mc.RuleBroken, match="No rule"):
        1 - a


def test_weights_have_no_algebra_but_products():
    w = mc.Epanechnikov(1.0)
    for make in (lambda: w + w, lambda: 2 * w, lambda: mc.WeightProduct((mc.Linear(),)), lambda: mc.WeightProduct(3),
                 lambda: mc.WeightOn(mc.Linear(), 0)):  # fmt: skip
        with pytest.raises(mc.InvalidInput):
            make()


def test_nested_constructors_print_as_they_are():
    for kernel in (mc.Sum((b, mc.Sum((a, b)))), mc.Product((b, mc.Product((a, b)))), mc.Sum((a,))):
        assert eval(repr(kernel), {n: getattr(mc, n) for n in mc.__all__}) == kernel


def test_whole_numbers_are_whole():
    for bad in (float("inf"), float("nan"), "2", None, 1.5, 0):
        with pytest.raises(mc.RuleBroken):
            mc.Linear() ** bad


@pytest.mark.parametrize(
    "wrap", [mc.exp, lambda k: k + mc.Gaussian(1.0), lambda k: k * k.on(0), lambda k: k.normalize()]
)
def test_tags_of_deep_expressions_are_asked_once_per_leaf(wrap, monkeypatch):
    asked = []
    monkeypatch.setattr(mc.Matern, "tags", property(lambda self: asked.append(1) or mc.Gaussian(1.0).tags))
    k = mc.Matern(1.0)
    for _ in range(3):
        k = wrap(k)
    del asked[:]
    k.tags  # noqa: B018
    assert len(asked) == repr(k).count("Matern")


@pytest.mark.parametrize("kernel", [mc.Linear(), mc.Polynomial(3), mc.Gaussian(3.0), mc.exp(0.1 * mc.Linear())])
def test_values_do_not_depend_on_whether_both_sides_are_one_array(kernel):
    X = np.random.default_rng(0).normal(size=(60, 40))
    assert np.array_equal(mc.Expansion(kernel, X, np.ones(60))(X), mc.Expansion(kernel, X, np.ones(60))(X.copy()))


@pytest.mark.parametrize(
    ("kernel", "terms"),
    [
        (a, [{"x", "y", "z"}]),
        (mc.Linear() + 1.0, [{"x"}, {"y"}, {"z"}]),
        (a.on(0) * b.on("z") + 2.0 * a.on("y"), [{"x", "z"}, {"y"}]),
        (mc.Linear().on(1, 0).on("y", "z"), [{"z"}, {"y"}]),
        (mc.exp(mc.Additive(1.0).on("x", "z")), [{"x", "z"}]),
        ((a.on("x") + 1.0).normalize(), [{"x"}]),
        ((a.on("x") + b.on("y")) ** 2, [{"x", "y"}]),
        (a.on("x").rescale(lambda X: 1.0 + X[:, 0]), [{"x", "y", "z"}]),
        (a.on(0).after(lambda X: X[:, ::-1]), [{"x", "y", "z"}]),
        (mc.Epanechnikov(1.0).on("x") * mc.Tricube(1.0).on(1), [{"x", "y"}]),
    ],
)
def test_the_columns_that_each_term_reads(kernel, terms):
    assert kernel.terms(["x", "y", "z"]) == terms


@pytest.mark.parametrize(
    "kernel",
    [
        a.on(0) * b.on(2) + 2.0 * a.on(1),
        mc.Linear() + 1.0,
        mc.exp(mc.Additive(1.0).on(0, 2)),
        (a.on(1) + b.on(1)).normalize(),
        (a.on(0) + b.on(1)) ** 2 + mc.Additive(2.0).on(2, 1),
    ],
)
def test_a_kernel_is_a_sum_over_its_terms(kernel):
    terms = kernel.terms(["0", "1", "2"])
    for i in range(3):
        moved = np.array(X)
        moved[:, i] += 1.0
        assert np.array_equal(kernel(moved, Z), kernel(X, Z)) == (not any(str(i) in term for term in terms))
        for j in range(i):
            both, other = np.array(moved), np.array(X)
            both[:, j] += 1.0
            other[:, j] += 1.0
            mixed = kernel(both, Z) - kernel(moved, Z) - kernel(other, Z) + kernel(X, Z)
            assert np.allclose(mixed, 0.0, atol=1e-12) or any({str(i), str(j)} <= term for term in terms)
