"""Kernels on time series: identities of signatures, naive sums over alignments, and models of series."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import mercer as mc
from mercer._loops import series as loops
from mercer.data.arrays import meaning
from mercer.data.series import as_series
from mercer.kernels.vocabulary import suited
from mercer.testing import check_laws

KERNELS = [
    mc.Signature(level=3),
    mc.Signature(level=4, static=mc.Gaussian(1.5)),
    mc.Signature(level=2, static=mc.Gaussian(1.0)).after(mc.add_time(2.0)).normalize(),
    mc.GlobalAlignment(mc.Gaussian(1.0)),
    mc.GlobalAlignment(mc.Laplacian(2.0)).normalize(),
]


def drawn(n, channels=2, longest=9, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(1, longest + 1), channels)) for _ in range(n)]


# --- naive references ------------------------------------------------------------------------------------------------


def naive_signature(x, level):
    """Products of exponentials of steps, as arrays with one axis per level."""
    levels = [np.ones(())] + [np.zeros((x.shape[1],) * m) for m in range(1, level + 1)]
    for step in np.diff(x, axis=0):
        powers = [np.ones(())]
        for r in range(1, level + 1):
            powers.append(np.multiply.outer(powers[-1], step) / r)
        levels = [sum(np.multiply.outer(levels[m - r], powers[r]) for r in range(m + 1)) for m in range(level + 1)]
    return np.concatenate([np.ravel(part) for part in levels])


def alignments(n, m):
    """All alignments, as lists of pairs."""
    if n == m == 1:
        return [[(0, 0)]]
    shorter = [(n - a, m - b) for a, b in ((1, 0), (0, 1), (1, 1)) if n - a >= 1 and m - b >= 1]
    return [[*path, (n - 1, m - 1)] for p, q in shorter for path in alignments(p, q)]


def naive_alignment(x, z, sigma):
    s = np.exp(-((x[:, None] - z) ** 2).sum(axis=2) / (2 * sigma**2))
    local = s / (2 - s)
    return sum(math.prod(local[cell] for cell in path) for path in alignments(len(x), len(z)))


def naive_warping(x, z):
    cost = ((x[:, None] - z) ** 2).sum(axis=2)
    return min(sum(cost[cell] for cell in path) for path in alignments(len(x), len(z)))


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 2, 3, 5])
def test_a_signature_kernel_is_the_inner_product_of_signatures(level):
    X = drawn(10, channels=3)
    S = np.array([naive_signature(x, level) for x in X])
    k = mc.Signature(level=level)
    np.testing.assert_allclose(k(X), S @ S.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(k.features(3)(X), S, rtol=1e-12, atol=1e-12)
    assert k.features(3).dimension == S.shape[1] == len(k.features(3).names)


def test_a_static_kernel_is_a_map_of_points():
    """(1 + xᵀz)² has six features in the plane: the signature of the series of features."""
    X, static = drawn(7), mc.Polynomial(2, c=1.0)
    phi = static.features(2)
    images = [phi(x) for x in X]
    np.testing.assert_allclose(mc.Signature(3, static)(X), mc.Signature(3)(images), rtol=1e-9)


def test_speed_and_place_do_not_matter():
    X, k = drawn(6), mc.Signature(level=4)
    slow = [np.insert(x, 1, (x[0] + x[1]) / 2, axis=0) if len(x) > 1 else np.repeat(x, 3, axis=0) for x in X]
    np.testing.assert_allclose(k(slow, X), k(X), rtol=1e-9)
    np.testing.assert_allclose(k([x + 1e6 for x in X]), k(X), rtol=1e-6)
    timed = k.after(mc.add_time(1.0))
    assert np.abs(timed(slow, X) - timed(X)).max() > 1e-3
    assert np.abs(k.after(mc.base_point)([x + 1.0 for x in X]) - k.after(mc.base_point)(X)).max() > 1e-3


def test_a_scaled_static_kernel_weighs_the_levels():
    X = drawn(5)
    level = [mc.Signature(level=m)(X) for m in (1, 2, 3)]
    by_levels = 1 + 0.5 * (level[0] - 1) + 0.25 * (level[1] - level[0]) + 0.125 * (level[2] - level[1])
    np.testing.assert_allclose(mc.Signature(3, 0.5 * mc.Linear())(X), by_levels, rtol=1e-9)


def test_the_equation_approaches_all_levels():
    X = [0.3 * x for x in drawn(6, longest=4)]
    limit = mc.Signature(level=20)(X)
    errors = [np.abs(mc.SignaturePDE(refine=r)(X) - limit).max() for r in (3, 5)]
    assert errors[1] < 0.1 * errors[0]  # two halvings, each a fourth
    assert errors[1] < 1e-4 * np.abs(limit).max()


def test_alignments_and_warping_by_listing_them():
    X, Z = drawn(4, longest=5), drawn(3, longest=4, seed=1)
    by_hand = np.array([[naive_alignment(x, z, 0.8) for z in Z] for x in X])
    np.testing.assert_allclose(mc.GlobalAlignment(mc.Gaussian(0.8))(X, Z), by_hand, rtol=1e-10)
    costs = np.array([[naive_warping(x, z) for z in Z] for x in X])
    np.testing.assert_allclose(mc.DTW(2.0)(X, Z), np.exp(-costs / 2.0), rtol=1e-10)


def test_series_that_go_far_and_come_back_keep_their_digits():
    """The signature of a path in one dimension is that of its ends: 1 if they are equal."""
    np.testing.assert_allclose(mc.Signature(20)([[0.0, 7.0, -7.0, 0.0]]), 1.0, rtol=1e-8)
    x = 10 * np.random.default_rng(1).normal(size=(3, 100))
    x[:, -1] = x[:, 0]
    for k in (mc.Signature(4), mc.Signature(4).normalize()):
        np.testing.assert_allclose(k(x), 1.0, rtol=1e-8)
        np.testing.assert_allclose(k.diag(x), 1.0, rtol=1e-8)
    y = 10 * np.random.default_rng(0).normal(size=(3, 100))
    change = y[:, -1] - y[:, 0]
    ends = sum(np.outer(change, change) ** m / math.factorial(m) ** 2 for m in range(7))
    norms = np.sqrt(np.diagonal(ends))
    np.testing.assert_allclose(mc.Signature(6)(y) / np.outer(norms, norms), ends / np.outer(norms, norms), atol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize("n", [2, 56])
def test_values_without_digits_are_refused(n):
    rng = np.random.default_rng(1)
    lost = 10 * rng.normal(size=(n, 40))
    lost[:, -1] = lost[:, 0]
    for k in (mc.Signature(20), mc.Signature(8, mc.Gaussian(1e4) * 1e8), mc.Signature(2, mc.Polynomial(2, c=1.0))):
        X = lost + 1e8 if k.level == 2 else lost
        for call in (k, k.diag, k.normalize(), lambda X, k=k: k(X[:1], X)):
            with pytest.raises(mc.InvalidInput, match="half of their digits"):
                call(X)
    with pytest.raises(mc.InvalidInput, match="half of their digits"):
        mc.Signature(20).features(1)(lost)


@pytest.mark.thorough
def test_noise_is_not_refused():
    X = np.random.default_rng(0).normal(size=(30, 70, 2))  # just enough pairs for the compiled loops
    for k in (mc.Signature(4, mc.Gaussian(1.0)), mc.Signature(3, mc.Polynomial(2, c=1.0)), mc.Signature(4)):
        np.testing.assert_allclose(k(X)[:3, :3], k(X[:3]), rtol=1e-7, atol=1e-9 * k.diag(X).max())


def test_large_signatures_go_through_pairs():
    """12 channels, level 4: 22 621 features, more than are computed explicitly."""
    X = drawn(5, channels=12)
    S = np.array([naive_signature(x, 4) for x in X])
    np.testing.assert_allclose(mc.Signature(4)(X), S @ S.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mc.Signature(4).diag(X), (S * S).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize(
    ("static", "factor"),
    [(2.0 * mc.Linear(), 2.0), (mc.Linear() + 1.0, 1.0), (mc.Linear().on(0), 1.0), (mc.Polynomial(1, c=1.0), 1.0),
     (mc.Bilinear([[2.0]]), 2.0)],
    ids=repr,
)  # fmt: skip
def test_place_does_not_matter_to_affine_static_kernels(static, factor):
    X = [[1e8, 1e8 + 0.1], [1e8, 1e8 + 0.3, 1e8 - 0.2]]
    steps = np.array([x[-1] - x[0] for x in X])
    level = factor * np.outer(steps, steps)
    np.testing.assert_allclose(mc.Signature(2, static)(X), 1 + level + level**2 / 4, rtol=1e-6)
    noise = [1e8 + np.random.default_rng(i).normal(size=20) for i in range(4)]
    near = [x - 1e8 for x in noise]
    np.testing.assert_allclose(mc.Signature(3, static)(noise), mc.Signature(3, static)(near), rtol=1e-5)
    equation = mc.SignaturePDE(static)
    np.testing.assert_allclose(equation(noise), equation(near), rtol=1e-5)


@pytest.mark.parametrize("lengths", [(1, 1), (5, 40), (30, 7)])
def test_compiled_loops_give_the_values_of_numpy(lengths):
    rng = np.random.default_rng(3)
    n, m = lengths
    ends = np.array([0, n, 2 * n])
    tile = rng.random((2 * n, m * loops.LANES))
    own = rng.integers(1, m + 1, loops.LANES)
    for level in (1, 2, 3, 6):
        by_numpy, compiled, sizes = np.empty((2, 8)), np.empty((2, 8)), np.empty((2, 2, 8))
        loops.signature(tile - 0.5, ends, level, by_numpy, sizes[0], compiled=False)
        loops.signature(tile - 0.5, ends, level, compiled, sizes[1], compiled=True)
        np.testing.assert_allclose(compiled, by_numpy, rtol=1e-10, atol=1e-14 * sizes[0].max())
        if level > 1:  # the first level alone needs no sum
            np.testing.assert_allclose(sizes[1], sizes[0], rtol=1e-10)
    programs = [
        *((loops.goursat, (refine,)) for refine in (0, 2)),
        (loops.alignments, (own,)),
        (loops.warping, (own,)),
    ]
    for program, arguments in programs:
        by_numpy, compiled = np.empty((2, loops.LANES)), np.empty((2, loops.LANES))
        program(tile, ends, *arguments, by_numpy, compiled=False)
        program(tile, ends, *arguments, compiled, compiled=True)
        np.testing.assert_allclose(compiled, by_numpy, rtol=1e-10)
    by_numpy, compiled = np.empty((2, loops.LANES)), np.empty((2, loops.LANES))
    loops.alignments(-900 * tile, ends, own, by_numpy, compiled=False, log=True)
    loops.alignments(-900 * tile, ends, own, compiled, compiled=True, log=True)
    np.testing.assert_allclose(compiled, by_numpy, rtol=1e-12)


@pytest.mark.thorough
def test_large_data_in_parts_and_threads():
    """The same values whether pairs are few (NumPy) or many (compiled, in several parts and threads)."""
    rng = np.random.default_rng(4)
    X = [rng.normal(size=(rng.integers(50, 70), 2)).cumsum(axis=0) * 0.1 for _ in range(40)]
    for k in (mc.Signature(3, mc.Gaussian(1.0)), mc.GlobalAlignment(mc.Gaussian(1.0)), mc.DTW(5.0)):
        K = k(X)
        assert (K == K.T).all()
        some = [0, 9, 23, 39]
        np.testing.assert_allclose(k([X[i] for i in some]), K[np.ix_(some, some)], rtol=1e-8)
        np.testing.assert_allclose(k(X, X[5:9]), K[:, 5:9], rtol=1e-8)
        np.testing.assert_allclose(k.diag(X), np.diagonal(K), rtol=1e-8)


@pytest.mark.thorough
def test_alignments_of_far_points_and_of_long_series_neither_underflow_nor_overflow():
    k = mc.GlobalAlignment(mc.Gaussian(1.0)).normalize()
    long = [np.zeros(450), np.zeros(440)]
    assert 0 < k(long)[0, 1] < 1  # the sums have more than 330 digits
    far = [[0.0, 100.0, 0.0], [0.0, 0.0, 0.0]]
    assert k(far)[0, 1] == 0.0
    pair = mc.GlobalAlignment(mc.Gaussian(1.0)).pair(far)
    out = np.empty((2, 2))
    mc.GlobalAlignment(mc.Gaussian(1.0)).log_tile(pair.block(slice(0, 2), slice(0, 2)), out)
    assert -5000 < out[0, 1] < -4995
    many = [np.concatenate([np.zeros(700), [60.0 * i]]) for i in range(3)]  # compiled, and again by logarithms
    wide = mc.GlobalAlignment(mc.Gaussian(1.0)).pair(many)
    out = np.empty((3, 3))
    mc.GlobalAlignment(mc.Gaussian(1.0)).log_tile(wide.block(slice(0, 3), slice(0, 3)), out)
    assert np.isfinite(out).all()
    assert out[0, 1] == pytest.approx(out[0, 0] - 1800, abs=20)


def test_alignments_need_static_values_of_one_on_the_diagonal():
    k = mc.GlobalAlignment(mc.ArcCosine(1).normalize())
    with pytest.raises(mc.InvalidInput, match=r"s\(p, p\) = 0 at a point of series 1"):
        k.normalize()([[1.0, 2.0], [0.0, 1.0]])


@pytest.mark.thorough
def test_alignments_that_overflow_are_refused_without_a_warning():
    with pytest.raises(mc.InvalidInput, match="an overflow in GlobalAlignment"):
        mc.GlobalAlignment(mc.Gaussian(1.0))([np.zeros(450)] * 9)  # compiled, in two groups


# --- laws, proofs, counterexamples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_laws(kernel):
    X = drawn(8, longest=6, seed=5)
    obeyed = check_laws(kernel, X, drawn(4, longest=6, seed=6))
    assert {"symmetry", "positive semidefinite", "diagonal", "Cauchy-Schwarz"} <= set(obeyed)
    assert kernel.proof().valid


@pytest.mark.thorough
def test_what_is_not_a_kernel_is_refuted():
    for k in (mc.SignaturePDE(), mc.SignaturePDE(mc.Gaussian(1.0), refine=1), mc.DTW(1.0)):
        assert not k.proof().valid
        found = mc.refute(k, seconds=60.0, trials=50)
        assert found.refuted
        assert "interval arithmetic" in str(found)
        with pytest.raises(mc.RuleBroken):
            k + 1.0
    assert not mc.refute(mc.Signature(2), trials=2, seconds=60.0).refuted


def test_expressions_are_read_back():
    for k in (mc.Signature(3, 0.5 * mc.Gaussian(2.0) + mc.Linear()), mc.GlobalAlignment(), mc.SignaturePDE(refine=2)):
        assert mc.parse(repr(k)) == k
    assert mc.Signature(2, mc.Gaussian(3.0)).parameter_names == ["static__sigma"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: mc.Signature(0), mc.InvalidInput, "level"),
        (lambda: mc.Signature(None), mc.InvalidInput, "SignaturePDE"),
        (lambda: mc.Signature(2, mc.Intersection()), mc.RuleBroken, "static"),
        (lambda: mc.GlobalAlignment(mc.Linear()), mc.RuleBroken, "between 0 and 1"),
        (lambda: mc.SignaturePDE(refine=-1), mc.InvalidInput, "refine"),
        (lambda: mc.add_time(0.0), mc.InvalidInput, "scale"),
    ],
)
def test_wrong_parameters(make, error, words):
    with pytest.raises(error, match=words):
        make()


# --- data ------------------------------------------------------------------------------------------------------------


def test_forms_of_data():
    X = np.random.default_rng(0).normal(size=(4, 6))
    k = mc.Signature(2)
    K = k(X)
    for form in (X[:, :, None], list(X), [row.tolist() for row in X], tuple(X)):
        np.testing.assert_allclose(k(form), K)
    assert k(X.astype(np.float32)).dtype == np.float32
    assert as_series(np.zeros((3, 1))).lengths.tolist() == [1, 1, 1]
    np.testing.assert_allclose(k([[1.0], [5.0]]), 1.0)  # one point makes no step


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, np.nan], [1.0]], "series 0"),
        ([[1.0], [2.0, None]], "series 1"),
        ([[1.0], None], "series 1"),
        ([[1.0], []], "series 1"),
        ([[1.0], [np.inf]], "series 1"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], "2 in series 0 and 1 in series 1"),
        ([[1.0], ["a"]], "series 1"),
        (np.zeros((2, 2, 2, 2)), "shape"),
        ([[[1.0, 2.0], [3.0]]], "series 0"),
    ],
)
def test_bad_data_names_the_series(X, words):
    with pytest.raises(mc.InvalidInput, match=words):
        mc.Signature(2)(X)


def test_channels_of_both_sides():
    with pytest.raises(mc.InvalidInput, match="same number of channels"):
        mc.Signature(2)(drawn(2), drawn(2, channels=3))


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def waves():
    """Waves of two frequencies, of unequal length and at slightly different phases."""
    rng = np.random.default_rng(7)
    X, y = [], []
    for label, _ in itertools.product((0, 1), range(12)):
        t = np.linspace(0, 1, rng.integers(12, 18))
        X.append(np.sin(2 * np.pi * ((1 + 2 * label) * t + 0.1 * rng.random())) + 0.1 * rng.normal(size=len(t)))
        y.append(label)
    return X, np.array(y)


K = mc.Signature(3, mc.Gaussian(1.0)).after(mc.add_time(1.0)).normalize()


@pytest.mark.thorough
def test_models_fit_series(waves, tmp_path):
    X, y = waves
    models = [
        mc.SVC(K, C=10.0),
        mc.KernelRidge(K, alpha=0.1),
        mc.GaussianProcessRegressor(K, alpha=0.1),
        mc.KernelPCA(K, n_components=2),
        mc.KernelNeighborsClassifier(mc.GlobalAlignment(mc.Gaussian(2.0)).normalize(), n_neighbors=3),
        mc.SVC(mc.Signature(2).after(mc.lead_lag).after(mc.base_point).normalize(), C=10.0),
    ]
    for model in models:
        model.fit(X[::2], y[::2])
        call = model.transform if isinstance(model, mc.KernelPCA) else model.predict
        path = tmp_path / "model.mercer"
        model.save(path)
        loaded = mc.load(path)
        again = loaded.transform(X) if isinstance(model, mc.KernelPCA) else loaded.predict(X)
        np.testing.assert_array_equal(again, call(X))
    assert (models[0].predict(X[1::2]) == y[1::2]).mean() > 0.8


@pytest.mark.thorough
def test_scikit_learn_and_tuning(waves):
    X, y = waves
    assert cross_val_score(make_pipeline(mc.SVC(K, C=10.0)), X, y, cv=3).mean() > 0.8
    tuned = mc.tune(
        mc.KernelRidge(mc.Signature(2, mc.Gaussian(1.0)).normalize(), alpha=0.1), X[::3], y[::3].astype(float)
    )
    assert tuned.kernel_.theta.shape == (1,)
    from sklearn.model_selection import GridSearchCV

    grid = GridSearchCV(mc.SVC(mc.Signature(2).normalize()), {"kernel__kernel__level": [1, 3]}, cv=3).fit(X, y)
    assert grid.best_params_["kernel__kernel__level"] in (1, 3)


@pytest.mark.thorough
def test_models_choose_a_kernel_for_series(waves):
    X, y = waves
    assert suited(X)[0] == suited([x[:, None] for x in X])[0] == "series"
    for other in (
        [x[:12] for x in X],
        np.array([x[:12] for x in X]),
        [[1.0, 2.0], [3.0]],
        [np.zeros(3, int), np.zeros(2)],
        [np.zeros((3, 2), int), np.zeros((2, 2))],
        [np.zeros(3), np.zeros((3, 2))],
    ):
        assert suited(other) == (None, {})
    model = mc.SVC().fit(X[::2], y[::2])
    assert isinstance(model.kernel_, mc.Kernel)
    assert (model.predict(X[1::2]) == y[1::2]).mean() > 0.8
    automatic = mc.AutoClassifier().fit(X[::2], y[::2])
    assert (automatic.predict(X[1::2]) == y[1::2]).mean() > 0.8
    still = [np.ones((n, 2)) for n in (2, 3, 4)]
    assert all(np.isfinite(k(still)).all() for k in suited(still)[1].values())


def test_columns_of_frames(waves):
    import pandas as pd
    import polars as pl

    X, y = waves
    k = mc.Signature(2).on("wave") * mc.Gaussian(1.0).on("age")
    age = np.arange(len(X), dtype=float)
    expected = mc.Signature(2)(X) * mc.Gaussian(1.0)(age[:, None])
    np.testing.assert_allclose(k(pd.DataFrame({"wave": X, "age": age})), expected)
    np.testing.assert_allclose(k(pl.DataFrame({"wave": [x.tolist() for x in X], "age": age})), expected)
    assert mc.SVC(k).fit(pd.DataFrame({"wave": X, "age": age}), y).predict(pd.DataFrame({"wave": X, "age": age})).size


def test_later_changes_do_not_reach_a_model(waves):
    X, y = waves
    mine = [x.copy() for x in X]
    model = mc.SVC(K, C=10.0).fit(mine, y)
    before = model.decision_function(X)
    for x in mine:
        x[:] = 0.0
    np.testing.assert_array_equal(model.decision_function(X), before)


# -- series, images or clouds ------------------------------------------------------------------------------------------


def walks(n, low, high, rng, steps=1.0):
    return [(steps * rng.normal(size=(rng.integers(low, high), 2))).cumsum(axis=0) for _ in range(n)]


def test_an_order_of_points_makes_a_series():
    rng = np.random.default_rng(0)
    ordered = walks(20, 20, 60, rng)
    assert meaning(ordered) == "series"
    assert meaning([rng.permutation(x) for x in ordered]) == "clouds"
    assert meaning([1e200 * rng.permutation(x) for x in ordered]) == "clouds"
    alternating = [np.column_stack([(-1.0) ** np.arange(n), rng.normal(size=n)]) for n in range(20, 40)]
    assert meaning(alternating) == "series"
    autoregressive = [0.5 * x[1:] + np.diff(x, axis=0) for x in ordered]
    assert meaning(autoregressive) == "series"
    for uncertain in (
        [rng.normal(size=(n, 2)) for n in (3, 4, 5)],
        [np.ones((n, 2)) for n in (3, 4)],
        [np.full((n, 2), np.nan) for n in (30, 40)],
        [np.ones((1, 2))] * 2,
    ):
        assert meaning(uncertain) == "series"


def test_arrays_of_one_size():
    rng = np.random.default_rng(0)
    assert meaning(list(rng.random((5, 8, 8)))) == "images"
    assert meaning(list(rng.random((5, 6, 9, 3)))) == "images"
    assert meaning(list(rng.integers(0, 255, (5, 6, 9), dtype=np.uint8))) == "images"
    assert meaning([x[:30] for x in walks(20, 30, 31, rng)]) == "series"
    assert meaning(list(rng.normal(size=(40, 30, 2)))) == "clouds"
    assert meaning(list(rng.random((5, 6, 9, 2)))) is meaning(list(np.zeros((5, 6, 9), int))) is meaning([]) is None


def test_models_choose_a_kernel_for_clouds(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = [rng.normal(scale=1.0 + k, size=(rng.integers(15, 30), 2)) for k in y]
    space, kernels = suited(X)
    assert space == "clouds"
    assert "mc.Signature" in space.instead
    for kernel in kernels.values():
        model = mc.SVC(kernel, C=10.0).fit(X[:20], y[:20])
        assert model.score(X[20:], y[20:]) > 0.9
    assert mc.SVC().fit(X, y).kernel_ == next(iter(kernels.values()))
    same = [np.ones((20, 2))] * 3
    assert np.isfinite(space.kernels(same)["distributions"](same)).all()


def test_features_of_signatures_of_given_series():
    X = [np.cumsum(np.random.default_rng(n).normal(size=(n, 2)), axis=0) for n in (4, 6, 5)]
    for k in (mc.Signature(3), mc.Signature(2).after(mc.lead_lag)):
        phi = k.features(X)
        np.testing.assert_allclose(phi(X) @ phi(X).T, k(X), rtol=1e-9)
