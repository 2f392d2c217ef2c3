"""Proofs that cannot be fooled: what has one is positive semidefinite, and its values say so too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer.errors import InvalidInput, InvalidType, RuleBroken
from mercer.kernels.algebra.nodes import Unary
from mercer.kernels.algebra.proof import PRODUCT


@pytest.mark.parametrize("final", [mc.Gaussian, mc.Linear, mc.Sum, mc.FromFunction, mc.Uniform, mc.Normalized])
def test_concrete_classes_are_final(final):
    """A subclass would inherit the proof, and the fused loop of large matrices, for other values."""
    with pytest.raises(InvalidType, match=r"is final.*Derive from mc\.Kernel"):
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

    def conclusion(self, *premises):
        return PRODUCT(self, *premises)


class AuthorsProof(Unary):
    kernel: object

    def tile(self, block, out):
        self.inner.tile(block, out)
        np.negative(out, out=out)

    def conclusion(self, *premises):
        return mc.Unproven(self, "nobody asks")

    def proof(self, dim=None):
        return PRODUCT(self, self.inner.proof(dim))


class AuthorsDerivation(mc.Kernel):
    def tile(self, block, out):
        np.negative(block.sqdist(), out=out)

    def derivation(self):
        return mc.Axiom(self, "I say so")


def test_proofs_of_other_classes_are_claims_of_their_authors():
    for kernel in (AuthorsOwn(), AuthorsDerivation(), AuthorsNode(mc.Linear()), AuthorsProof(mc.Linear())):
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
        lambda k: np.float64(2) * k, lambda k: k / 2, lambda k: k**2, lambda k: k + 1, lambda k: -k, lambda k: k.exp(),
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


# -- rounding that expressions amplify --------------------------------------------------------------------------------


def smallest(K):
    return np.linalg.eigvalsh(np.asarray(K, dtype=np.float64))[0]


def rank_two(dtype):
    """A matrix of cosines, of rank 2, positive semidefinite to rounding only."""
    angles = np.linspace(0.0, 1e-3, 12)
    V = np.column_stack([np.cos(angles), np.sin(angles)])
    return (V @ V.T).astype(dtype)


@pytest.mark.parametrize(("dtype", "n"), [(np.float64, 10**16), (np.float32, 10**7)])
def test_powers_of_matrices_that_are_kernels_to_rounding(dtype, n):
    k = mc.Precomputed(rank_two(dtype))
    assert "rounding" in str(k.proof())
    with pytest.raises(RuleBroken, match=r"half of the digits.*Choose at most"):
        k**n
    with pytest.raises(RuleBroken, match="half of the digits"):
        (k**1000) ** (n // 1000)
    assert (k**3).proof().valid


def test_a_rounding_that_a_rule_makes_too_large_is_not_proven():
    K = np.full((3, 3), 1 + 2 * np.finfo(float).eps)  # within the tolerance of the axiom, unlike 6·10⁷ equal factors
    np.fill_diagonal(K, 1.0)
    k = mc.Precomputed(K)
    assert k.proof().valid
    assert (k**10).proof().valid
    assert not (k ** (6 * 10**7)).proof().valid
    assert not (mc.Gaussian(1.0).after(lambda X: X) * mc.FromFunction(min)).proof().valid


def test_a_matrix_is_proven_as_it_is_used():
    """An asymmetric matrix within tolerance: each triangle alone has other eigenvalues."""
    K = np.full((4, 4), 1.0)
    K += 1e-13 * np.triu(np.random.default_rng(0).uniform(-1, 1, size=(4, 4)), 1)
    k = mc.Precomputed(K)
    np.testing.assert_array_equal(k(np.arange(4)), k(np.arange(4), np.arange(4)))
    np.testing.assert_array_equal(k.K, k.K.T)
    assert k.proof().valid == (smallest(k.K) >= -4 * np.finfo(float).eps * 4)


def test_matrices_near_the_largest_float_have_eigenvalues_too():
    for size in (1e308, 1e-310):
        assert not mc.Precomputed(size * np.array([[1.0, 1.7], [1.7, 1.0]])).proof().valid
        assert mc.Precomputed(size * np.array([[1.7, 1.0], [1.0, 1.7]])).proof().valid


FAR = {
    "float32, 1e4": np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32) + np.float32(1e4),
    "Unix times": 1.7e9 + np.random.default_rng(0).uniform(0, 10, size=(40, 1)),
    "six columns": np.random.default_rng(0).normal(size=(40, 6)) + 1e6,
}


@pytest.mark.parametrize("X", FAR.values(), ids=FAR.keys())
@pytest.mark.parametrize(
    "expression",
    [
        lambda: mc.exp(mc.Linear()).normalize(),
        lambda: mc.exp(0.5 * mc.Linear() + 0.5 * mc.Linear() + 3.0).normalize(),
        lambda: mc.exp(mc.Linear().after(lambda X: X)).normalize(),
        lambda: (mc.exp(0.5 * mc.Linear()) * mc.exp(0.5 * mc.Linear())).normalize(),
        lambda: (mc.exp(0.5 * mc.Linear()) ** 2).normalize(),
        lambda: mc.exp(0.5 * mc.Linear()).normalize() ** 2,
        lambda: mc.exp(mc.FromFeatures(lambda X: X)).normalize(),
    ],
)
def test_a_normalised_exponential_is_gaussian_far_from_the_origin(X, expression):
    K = expression()(X)
    eps = float(np.finfo(X.dtype).eps)
    np.testing.assert_allclose(K, mc.Gaussian(1.0)(X.astype(np.float64)), atol=2000 * eps)
    assert np.abs(K).max() <= 1
    assert smallest(K) > -len(K) * 20 * eps


def test_a_normalised_exponential_that_would_have_no_digits_is_refused():
    k = mc.exp(mc.Polynomial(2, c=1.0)).normalize()
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert smallest(k(X)) > -1e-12
    for far in (X + 1e4, X.astype(np.float32) + np.float32(1e4)):
        for use in (k, mc.KernelRidge(k, alpha=1.0).fit, mc.SVR(k).fit, mc.GaussianProcessRegressor(k).fit):
            with pytest.raises(InvalidInput, match=r"half of their digits.*Centre the points"):
                use(far) if use is k else use(far, X[:, 0])


@pytest.mark.parametrize(
    "k", [mc.Linear().normalize() ** 10**6, mc.Gaussian(1.0) ** 10**5, mc.Polynomial(10**6, c=1.0)]
)
def test_large_powers_in_float32(k):
    X = np.random.default_rng(0).normal(size=(40, 2))
    X = (1e-3 * X + [1.0, 0.0] if "Linear" in repr(k) else 1e-3 * X).astype(np.float32)
    K = k(X)
    exact = k(X.astype(np.float64))
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, exact, atol=1e-5 * np.abs(exact).max())
    assert smallest(K) > -1e-5 * np.abs(exact).max()
    theta = np.ones((len(X), len(X)))
    np.testing.assert_allclose(
        k.input_gradient(X, theta), k.input_gradient(X.astype(np.float64), theta), rtol=2e-3, atol=1
    )


def test_powers_of_kernels_with_a_logarithm_have_no_limit():
    X = np.array([[0.0], [1e-9], [2e-9]])
    np.testing.assert_allclose((mc.Gaussian(1.0) ** 10**18)(X), mc.Gaussian(1e-9)(X), rtol=1e-12)
    np.testing.assert_array_equal((mc.Delta() ** 10**30)(["a", "b"]), np.eye(2))
    with pytest.raises(RuleBroken, match="fit float32"):
        mc.Gaussian(1.0) ** 10**39


# -- functions that look at other rows --------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(12, 2))
LOOK_AROUND = {
    "count": lambda X: np.full(len(X), float(len(X))),
    "rank": lambda X: np.argsort(np.argsort(X[:, 0])).astype(float),
    "sum": lambda X: np.cumsum(X[:, 0]),
    "chance": lambda X: np.random.default_rng().normal(size=len(X)),
    "first": lambda X: X[:, 0] - X[0, 0],
    "more than one": lambda X: X[:, 0] / np.linalg.cholesky(np.cov(X.T))[0, 0],
}


@pytest.mark.parametrize("f", LOOK_AROUND.values(), ids=LOOK_AROUND.keys())
def test_functions_must_map_every_point_by_itself(f):
    for k in (
        mc.Linear().rescale(f),
        mc.Linear().after(lambda X: np.column_stack([f(X), X])),
        mc.FromFeatures(lambda X: np.column_stack([f(X), X])),
    ):
        with pytest.raises(InvalidInput, match=r"must map every point by itself.*got.*(alone|of 12 rows)"):
            k(ROWS)
        assert "point" in k.proof().condition  # and where it cannot be seen, it is a condition


def test_functions_of_rows_are_let_through():
    objects = mc.Intersection().after(lambda X: [set(x) for x in X])
    assert objects(["ab", "bc", "cd"])[0, 1] == 1
    table = pytest.importorskip("pandas").DataFrame(ROWS, columns=["a", "b"])
    assert mc.Linear().after(lambda X: X[["b"]])(table)[0, 1] == ROWS[0, 1] * ROWS[1, 1]
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    far = (ROWS + np.array([1e9, 0.0])).astype(np.float32)
    mc.Gaussian(1.0).after(lambda X: X @ rotation)(far)


def test_a_refitted_transformer_is_applied_anew():
    from sklearn.pipeline import make_pipeline

    for scaler in (StandardScaler(), make_pipeline(StandardScaler())):
        scaler.fit(ROWS)
        for k in (
            mc.Linear().after(scaler), mc.FromFeatures(scaler), mc.Linear().after(scaler.transform),
            mc.Linear().rescale(lambda X, own=scaler: own.transform(X)[:, 0]),
        )[:3]:  # fmt: skip
            scaler.fit(ROWS)
            points = k.prepare(ROWS)
            before = k(points)
            scaler.fit(3.0 * ROWS + 1.0)
            assert not np.allclose(k(points), before)
            np.testing.assert_array_equal(k(points), k(ROWS))
            assert len([key for key in points._cache if isinstance(key, tuple) and key[0] == "current"]) == 1


class Unhashable:
    """Equal to everything, and without a hash."""

    __hash__ = None

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return True

    def transform(self, X):
        return self.factor * X


def test_a_transformer_without_a_hash_works():
    one, two = mc.Linear().after(Unhashable(1.0)), mc.Linear().after(Unhashable(2.0))
    assert one != two
    assert hash(one) == hash(one.replace())
    k = one + two.normalize() + mc.FromFeatures(Unhashable(3.0))
    expected = ROWS @ ROWS.T * 10.0
    norms = np.linalg.norm(ROWS, axis=1)
    np.testing.assert_allclose(k(ROWS), expected + ROWS @ ROWS.T / np.outer(norms, norms))


# -- names, squares and complex numbers -------------------------------------------------------------------------------


def test_no_class_is_taken_for_another_of_the_same_name():
    def named(name, base, **members):
        members.setdefault("tile", lambda self, block, out: block.dot(out))
        return type(name, (base,), {"__annotations__": {"sigma": float}, "sigma": mc.positive(1.0), **members})

    with pytest.raises(InvalidInput, match="Taylor features need a Gaussian"):
        mc.taylor_features(named("Gaussian", mc.Kernel)(1.0), 2, error=0.1, radius=1.0)
    for name in ("Gaussian", "Matern", "Laplacian"):
        with pytest.raises(InvalidInput, match="Fourier features need a kernel"):
            mc.fourier_features(named(name, mc.Kernel)(1.0), 2, 4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matern_on_points_whose_squares_underflow(dtype):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]], dtype=dtype)
    k = mc.Matern(1.0, nu=1e-3)
    assert smallest(k(X)) > -1e-6
    if dtype == np.float32:
        tiny = X * np.float32(1e-30)
        np.testing.assert_allclose(k(tiny), k(tiny.astype(np.float64)), rtol=1e-6)
    else:
        with pytest.raises(InvalidInput, match=r"squares do not underflow.*Rescale"):
            k(X * 1e-162)
        assert (k(X[[0, 0, 1]]) == k(X[[0, 0, 1]]).T).all()  # equal points are no underflow


@pytest.mark.parametrize("k", [mc.Matern(1e-17, nu=0.5), mc.Laplacian(1e-17), mc.Gaussian(1e-17)])
def test_widths_whose_squares_underflow(k):
    X = np.linspace(0, 1e-17, 7)[:, None].astype(np.float32) * np.float32(1e-3)
    np.testing.assert_allclose(k(X), k(X.astype(np.float64)), atol=1e-6)


COMPLEX = np.array([[1.0 + 1.0j, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    "use",
    [
        lambda: mc.Precomputed(COMPLEX), lambda: mc.Precomputed(COMPLEX.astype(object)), lambda: mc.Bilinear(COMPLEX),
        lambda: mc.Linear()(COMPLEX), lambda: mc.Linear()(COMPLEX.astype(object)), lambda: mc.Precomputed()(COMPLEX),
        lambda: mc.FromFunction(lambda x, z: np.complex128(1 + 1j))(np.eye(2)),
        lambda: mc.FromFunction(lambda x, z: np.array(1 + 1j))(np.eye(2)),
        lambda: mc.Linear().rescale(lambda X: X[:, 0] + 1j)(np.eye(2)),
        lambda: mc.Linear().after(lambda X: X + 1j)(np.eye(2)),
        lambda: mc.Gaussian(1.0).gradient(np.eye(2), COMPLEX),
        lambda: mc.Gaussian(1.0).with_theta([1j]),
        lambda: mc.Expansion(mc.Linear(), np.eye(2), [1j, 1.0]),
        lambda: mc.KernelRidge(mc.Linear(), alpha=np.complex128(1.0)).fit(np.eye(2), [1.0, 2.0]),
        lambda: mc.KernelRidge(mc.Linear(), alpha=1.0).fit(np.eye(2), [1.0, 2.0j]),
        lambda: mc.KernelRidge(mc.Linear(), alpha=1.0).fit(np.eye(2), [1.0, 2.0], sample_weight=np.array([1.0, 1j])),
        lambda: mc.SVR(mc.Linear(), C=np.complex128(1.0)).fit(np.eye(2), [1.0, 2.0]),
    ],
)  # fmt: skip
def test_complex_numbers_are_never_cut_to_their_real_part(use):
    with pytest.raises(InvalidInput):
        use()


def test_what_the_adversary_found_first():
    """Each was a proven kernel whose values contradicted the proof by far more than rounding."""
    narrow = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32) * 100
    for X in (narrow, sp.csr_array(narrow)):
        wide = mc.FromFeatures(lambda X: (X.toarray() if sp.issparse(X) else X).astype(np.float64))
        for k in (mc.ArcCosine(1), mc.Bilinear(np.diag([1.0, 2.0, 3.0, 4.0]) + 0.3), mc.Polynomial(3)):
            both = k + 1e-9 * wide  # float32 points, and a matrix in float64
            K = both(X)
            assert K.dtype == np.float64
            np.testing.assert_allclose(both.diag(X), np.diagonal(K), rtol=1e-12)
            np.testing.assert_allclose(both(X[:3], X[10:]), K[:3, 10:], rtol=1e-12)
    sparse = mc.Laplacian(0.03)(sp.csr_array(narrow.astype(np.float64) + 1e4))
    np.testing.assert_array_equal(np.diagonal(sparse), 1.0)
    np.testing.assert_allclose(sparse, mc.Laplacian(0.03)(narrow.astype(np.float64) + 1e4), atol=1e-12)
    with pytest.raises(InvalidInput, match="half of their digits"):
        (mc.exp(mc.Intersection().normalize()).normalize() ** 10**12)([{1, 2}, {2, 3}, {1}])
    same = np.ones((3, 1), dtype=np.float32)
    with pytest.raises(InvalidInput, match="overflow"):
        (mc.Constant(1e16).poly([0.0, 0.0, 0.0, 1.0]).normalize() * mc.Gaussian(1.0))(same)
    np.testing.assert_array_equal(mc.RationalQuadratic(1.0, alpha=1e-45)(same), 1.0)


# -- what rules scale, and who states a proof -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "K",
    [[[1.0, 1e-8], [1e-8, 1e-17]], [[1.0, 1e-9], [1e-9, 0.0]], [[1.0, 0.0], [0.0, -1e-17]]],
    ids=["small", "zero", "negative"],
)
def test_rules_that_scale_points_do_not_make_kernels_of_matrices_that_are_kernels_to_rounding(K):
    """A negative eigenvalue of −1e-16 is rounding beside an entry of 1, and is not once the small point is scaled."""
    large = np.array([1.0, 1e8])
    k = mc.Precomputed(np.array(K))
    assert k.proof().valid
    scaled = k.rescale(lambda i: large[np.ravel(i)])
    assert smallest(scaled([0, 1])) < -0.005
    for rule in (scaled, k * mc.FromFeatures(lambda i: large[np.ravel(i)][:, None]), k.normalize()):
        assert not rule.proof().valid


def test_rules_take_matrices_whose_points_differ_in_size():
    V = np.random.default_rng(0).normal(size=(6, 2)) * 10.0 ** np.arange(-12, 6, 3)[:, None]
    V[2] = 0.0
    k = mc.Precomputed(V @ V.T)
    assert (k * k + k).normalize().proof().valid
    assert mc.Precomputed(np.zeros((2, 2))).proof().valid


def test_a_proof_that_comes_from_another_class_of_a_user_is_a_claim():
    class Trust:
        def proof(self, dim=None):
            return mc.Axiom(self, "trust me")

    class Faith:
        def derivation(self):
            return mc.Axiom(self, "trust me")

    for mixin in (Trust, Faith):

        class Mine(mixin, mc.Kernel):
            def tile(self, block, out):
                block.dot(out)

        assert [step.rule for step in (Mine() + mc.Linear()).proof().claimed] == ["trust me"]


# -- functions of users -----------------------------------------------------------------------------------------------


def test_columns_of_rounding_do_not_make_a_map_depend_on_the_batch():
    """A principal component beyond the rank of the data is rounding, and a sum of other length rounds otherwise."""
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(50, 3)), rng.normal(size=(3, 2))

    def phi(X):
        noise = np.float64(1e-16) * len(X)
        return np.column_stack([X @ A, np.full(len(X), noise)])

    assert mc.Gaussian(1.0).after(phi)(X).shape == (50, 50)


def test_a_function_may_return_a_number_of_any_library():
    class Number:
        dtype = object()

        def __float__(self):
            return 1.0

    assert mc.FromFunction(lambda x, z: Number())([[1.0]]) == 1.0


def test_a_set_may_hold_what_compares_to_nothing():
    pd = pytest.importorskip("pandas")
    assert mc.Intersection()([{pd.NA, 1}, {1}]).tolist() == [[2.0, 1.0], [1.0, 1.0]]


def test_a_column_may_be_called_as_an_attribute_of_arrays():
    pd = pytest.importorskip("pandas")
    assert mc.Linear()(pd.DataFrame({"nbytes": [1.0, 2.0]})).tolist() == [[1.0, 2.0], [2.0, 4.0]]


SCALER = StandardScaler()


@pytest.mark.parametrize("scaler", [SCALER, StandardScaler()], ids=["global", "closure"])
def test_a_transformer_that_a_function_uses_may_be_fitted_again(scaler):
    X = np.random.default_rng(0).normal(size=(5, 2))
    k = mc.Linear().after((lambda X: SCALER.transform(X)) if scaler is SCALER else (lambda X: scaler.transform(X)))
    scaler.fit(X)
    points = k.prepare(X)
    k(points)
    scaler.fit(10 * X + 1)
    np.testing.assert_array_equal(k(points), k(X))


def test_all_tiles_of_a_matrix_see_the_same_function():
    """A function may count its calls, or carry much: it is not asked, or looked at, once per tile."""

    class Counting:
        def __init__(self):
            self.seen = 0

        def __call__(self, X):
            self.seen += 1
            return X[:, 0]

    def calls(n):
        f = Counting()
        mc.Linear().rescale(f)(np.ones((n, 1)))
        return f.seen

    assert calls(1500) == calls(200)


def test_maps_that_round_far_from_the_origin_are_refused_where_distances_are_normalised():
    """√A x of one row and of two differ in the last digit: at 10⁵⁰ that is a distance of 10³⁴."""
    A = np.array([[2.0, 1.0], [1.0, 3.0]])
    k = mc.exp(mc.Bilinear(A)).normalize()
    near = np.array([[1.0, 2.0], [1.5, 2.0]])
    np.testing.assert_allclose(k(near)[0, 1], np.exp(-0.5 * 0.25 * 2.0), rtol=1e-12)
    with pytest.raises(mc.InvalidInput, match="digits"):
        k(1e50 * near)
