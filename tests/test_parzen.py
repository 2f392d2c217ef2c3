"""Parzen densities: against double loops, SciPy and scikit-learn, with all that is asked of a distribution."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.optimize
import scipy.stats
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.neighbors import KernelDensity

import mercer as mc
from mercer.errors import InvalidInput
from mercer.kernels.weights import Compact
from mercer.models.density.parzen import ParzenDensity
from mercer.models.density.parzen_columns import MixedTable, level_weights, likeliest_width
from mercer.models.density.parzen_line import Distribution
from mercer.models.density.parzen_widths import CategoryCriterion
from mercer.smoothing import density
from mercer.tuning.bandwidth import isj, scott, scott_covariance, silverman
from mercer.tuning.parzen_likelihood import loo

COMPACT = [mc.Uniform, mc.Triangular, mc.Epanechnikov, mc.Biweight, mc.Tricube]
KERNELS = [mc.Gaussian(0.7), mc.Laplacian(0.7), mc.Matern(0.7, nu=0.5), mc.Matern(0.7, nu=1.5),
           mc.RationalQuadratic(0.7, alpha=5.0), *(k(0.7) for k in COMPACT)]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 2)) @ np.array([[1.0, 0.6], [0.0, 0.5]]), rng.normal(size=(25, 2))


# --- the same density as elsewhere ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_equals_the_double_loop(kernel, data):
    X, Z = data[0], data[1][:6]
    expected = np.empty(len(Z))
    for j, z in enumerate(Z):
        values = [float(kernel(z[None], x[None])[0, 0]) for x in X]
        expected[j] = sum(values) / len(X) / (0.7**2 * math.exp(density.of(kernel, 2).log_mass(2)))
    np.testing.assert_allclose(ParzenDensity(kernel).fit(X).pdf(Z), expected, rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_mass_of_a_kernel_is_its_integral(kernel, d):
    if isinstance(kernel, mc.Laplacian):
        integral = quad(lambda r: 2 * math.exp(-r), 0, np.inf)[0] ** d
    else:
        profile = kernel.replace(sigma=1.0)
        sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
        end = 1.0 if isinstance(kernel, Compact) else np.inf
        integral = sphere * quad(lambda r: float(profile([[0.0]], [[r]])[0, 0]) * r ** (d - 1), 0, end)[0]
    assert math.exp(density.of(kernel, d).log_mass(d)) == pytest.approx(integral, rel=1e-7)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [(mc.Gaussian, "gaussian"), (mc.Uniform, "tophat"), (mc.Epanechnikov, "epanechnikov"), (mc.Triangular, "linear"),
     (mc.Matern(0.8, nu=0.5), "exponential")],
)  # fmt: skip
@pytest.mark.parametrize("d", [1, 2, 3])
def test_equals_scikit_learn(kernel, name, d):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(80, d)), rng.normal(size=(30, d))
    w = rng.uniform(0.1, 3, 80)
    model = ParzenDensity(kernel, bandwidth=0.8 if isinstance(kernel, type) else None).fit(X, sample_weight=w)
    peer = KernelDensity(kernel=name, bandwidth=0.8).fit(X, sample_weight=w)
    reached = np.isfinite(peer.score_samples(Z))
    np.testing.assert_array_equal(np.isfinite(model.score_samples(Z)), reached)
    np.testing.assert_allclose(model.score_samples(Z)[reached], peer.score_samples(Z)[reached], rtol=1e-6, atol=1e-7)
    assert model.score(Z[reached]) == pytest.approx(peer.score(Z[reached]), rel=1e-6)


def test_equals_scipy_with_a_full_covariance(data):
    X, Z = data
    peer = scipy.stats.gaussian_kde(X.T)
    model = ParzenDensity(bandwidth=peer.covariance).fit(X)
    np.testing.assert_allclose(model.pdf(Z), peer(Z.T), rtol=1e-7)
    by_rule = ParzenDensity(bandwidth=scott_covariance).fit(X)
    np.testing.assert_allclose(by_rule.bandwidth_, peer.covariance, rtol=1e-12)
    np.testing.assert_allclose(ParzenDensity(bandwidth=peer.covariance).fit(X + 1e6).pdf(Z + 1e6), peer(Z.T), rtol=1e-5)


def test_a_diagonal_covariance_is_one_width_per_column(data):
    X, Z = data
    a = ParzenDensity(mc.Epanechnikov, bandwidth=[0.9, 1.7]).fit(X)
    b = ParzenDensity(mc.Epanechnikov, bandwidth=np.diag([0.81, 2.89])).fit(X)
    np.testing.assert_allclose(a.pdf(Z), b.pdf(Z), rtol=1e-9)


# --- it is a density --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_integrates_to_one_on_a_line(kernel, adaptive):
    x = np.random.default_rng(2).gamma(2.0, size=(40, 1))
    model = ParzenDensity(kernel, adaptive=adaptive).fit(x)
    grid = np.linspace(-40, 60, 40_001)
    assert np.trapezoid(model.pdf(grid[:, None]), grid) == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize("bandwidth", [0.5, [0.3, 0.8], np.array([[0.5, 0.3], [0.3, 0.4]])])
@pytest.mark.parametrize("kernel", [mc.Gaussian, mc.Epanechnikov, mc.Tricube])
def test_integrates_to_one_in_a_plane(kernel, bandwidth, data):
    grid = ParzenDensity(kernel, bandwidth=bandwidth).fit(data[0]).on_grid(301, margin=6.0)
    assert np.trapezoid(np.trapezoid(grid.density, grid.axes[1]), grid.axes[0]) == pytest.approx(1.0, abs=1e-3)


def test_grid_is_the_density_itself(data):
    model = ParzenDensity(bandwidth=[0.3, 0.8]).fit(data[0])
    (x, y), values = model.on_grid(20)
    assert values[3, 7] == pytest.approx(model.pdf([[x[3], y[7]]])[0], rel=1e-9)
    (x,), values = ParzenDensity().fit(data[0][:, :1]).on_grid()
    assert values.shape == (512,)
    assert values.max() > 100 * values[0]
    with pytest.raises(InvalidInput, match="one or two"):
        ParzenDensity(bandwidth=1.0).fit(np.zeros((3, 3))).on_grid()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("adaptive", [False, True])
def test_distribution_function_is_the_integral_and_quantile_its_inverse(kernel, adaptive):
    if isinstance(kernel, mc.Matern) and kernel.nu != 0.5:
        with pytest.raises(InvalidInput, match="closed form"):
            ParzenDensity(kernel).fit([[0.0]]).cdf(0.0)
        return
    rng = np.random.default_rng(3)
    model = ParzenDensity(kernel, adaptive=adaptive).fit(rng.normal(size=(30, 1)), sample_weight=rng.integers(1, 4, 30))
    a, b = -0.4, 1.3
    grid = np.linspace(a, b, 20_001)
    assert model.cdf(b) - model.cdf(a) == pytest.approx(np.trapezoid(model.pdf(grid[:, None]), grid), abs=1e-5)
    p = np.array([[1e-6, 0.1, 0.5], [0.77, 0.99, 1 - 1e-9]])
    np.testing.assert_allclose(model.cdf(model.quantile(p)), p, rtol=1e-9, atol=1e-14)
    assert model.cdf(-1e9) < 1e-6
    assert model.cdf(1e9) > 1 - 1e-6
    ends = model.quantile([0.0, 1.0])
    if isinstance(kernel, Compact):
        inwards = np.array([1e-3, -1e-3])
        assert model.pdf((ends + inwards)[:, None]).min() > 0
        assert model.pdf((ends - inwards)[:, None]).max() == 0
    else:
        assert (ends == [-np.inf, np.inf]).all()


def test_many_points_share_cells_to_rounding():
    rng = np.random.default_rng(4)
    x, w = np.append(rng.normal(size=6000), [50.0]), rng.uniform(size=6001)
    w /= w.sum()
    many = Distribution(mc.Gaussian(0.1), x, w, np.full(6001, 0.1))
    assert many.cells is not None
    q = np.concatenate([np.linspace(-6, 6, 300), [49.0, 50.0, 50.05, 200.0, -200.0]])
    np.testing.assert_allclose(many.cdf(q), scipy.stats.norm.cdf((q[:, None] - x) / 0.1) @ w, atol=1e-14)
    p = np.array([1e-9, 0.2, 0.5, 1 - 1e-6])
    np.testing.assert_allclose(many.cdf(many.quantile(p)), p, rtol=1e-9)


@pytest.mark.parametrize("n", [300, 6000])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.1), mc.Laplacian(0.1), mc.Tricube(0.1)], ids=repr)
def test_quantile_and_distribution_are_inverses_in_the_tail(kernel, n):
    model = ParzenDensity(kernel).fit(np.random.default_rng(5).normal(size=(n, 1)))
    compact = isinstance(kernel, mc.Tricube)
    p = np.array([1e-6, 1e-12, 1e-16, 1e-20] if compact else [1e-6, 1e-12, 1e-30, 1e-100, 1e-300])
    np.testing.assert_allclose(model.cdf(model.quantile(p)), p, rtol=1e-6 if compact else 1e-9)
    assert (np.diff(model.quantile(p)) < 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_samples_follow_the_distribution(kernel):
    x = np.array([[-3.0], [0.0], [0.1], [6.0]])
    model = ParzenDensity(kernel, adaptive=1.0).fit(x, sample_weight=[1, 2, 4, 3])
    draws = model.sample(4000, random_state=0)
    assert draws.shape == (4000, 1)
    if not isinstance(kernel, mc.Matern):
        assert scipy.stats.kstest(draws[:, 0], model.cdf).pvalue > 1e-3
    same = model.sample(10, random_state=7)
    np.testing.assert_array_equal(same, model.sample(10, random_state=7))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_samples_in_space_have_the_kernels_covariance(kernel):
    widths = np.array([0.5, 1.0, 2.0])
    model = ParzenDensity(kernel.replace(sigma=widths)).fit(np.zeros((2, 3)))
    np.testing.assert_allclose(
        np.cov((model.sample(40_000, random_state=1) / widths).T),
        density.of(kernel, 3).variance(3) * np.eye(3),
        atol=0.08,
    )


def test_samples_have_the_covariance_that_was_given():
    H = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, 0.3], [0.0, 0.3, 0.5]])
    model = ParzenDensity(bandwidth=H).fit(np.zeros((2, 3)))
    draws = model.sample(40_000, random_state=1)
    np.testing.assert_allclose(np.cov(draws.T), H, atol=0.05)


# --- adaptive ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Gaussian, mc.Epanechnikov, mc.Laplacian])
def test_adaptive_widths_are_abramsons(kernel, data):
    X, Z = data
    w = np.random.default_rng(5).integers(1, 4, len(X))
    fixed = ParzenDensity(kernel, bandwidth=[0.6, 0.9]).fit(X, sample_weight=w)
    pilot = fixed.pdf(X)
    factors = (pilot / np.exp(np.average(np.log(pilot), weights=w))) ** -0.5
    model = ParzenDensity(kernel, bandwidth=[0.6, 0.9], adaptive=True).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.factors_, factors, rtol=1e-6)
    expected = np.zeros(len(Z))
    for x, s, v in zip(X, factors, w):
        one = ParzenDensity(kernel, bandwidth=[0.6 * s, 0.9 * s]).fit(x[None])
        expected += v * one.pdf(Z) / w.sum()
    np.testing.assert_allclose(model.pdf(Z), expected, rtol=1e-6, atol=1e-300)


def test_adaptive_tails_are_wider_and_finite():
    x = np.random.default_rng(6).standard_t(2, size=(200, 1))
    model = ParzenDensity(adaptive=True).fit(x)
    assert model.factors_[np.argmax(np.abs(x))] > 3 * model.factors_.min()
    assert np.isfinite(model.score_samples([[1e8]])).all()


# --- widths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rule"), [("scott", scott), ("silverman", silverman), ("isj", isj)])
def test_rules_by_name(name, rule, data):
    model = ParzenDensity(bandwidth=name).fit(data[0])
    np.testing.assert_allclose(model.bandwidth_, rule(data[0]), rtol=1e-12)
    assert name in model.status_
    assert ParzenDensity(mc.Gaussian(0.4)).fit(data[0]).bandwidth_.tolist() == [0.4, 0.4]
    wide = ParzenDensity(mc.Matern(0.4, nu=1.5), bandwidth=2.0).fit(data[0])
    assert wide.kernel_ == mc.Matern(2.0, nu=1.5)
    assert ParzenDensity(mc.median_gaussian).fit(data[0]).kernel_ == mc.median_gaussian(data[0])


def brute_likelihood(X, h, w):
    total = 0.0
    for i in range(len(X)):
        others = (X[i] != X).any(axis=1)
        k = np.prod(scipy.stats.norm.pdf((X[i] - X[others]) / h) / h, axis=1)
        total += w[i] * np.log((w[others] * k).sum() / w[others].sum())
    return total


@pytest.mark.parametrize("few", [True, False], ids=["differences", "sums"])
@pytest.mark.parametrize("d", [1, 3, 5])
def test_sums_without_each_row_are_double_loops(d, few, monkeypatch):
    if not few:
        monkeypatch.setattr(density.costs, "FEW_PAIRS", 0)
    own = np.random.default_rng(d)
    X, V, h = 1e4 + own.normal(size=(25, d)), own.uniform(size=(25, 2)), own.uniform(0.5, 1.5, size=d)
    X[0] += 60.0  # its sums underflow
    s, T, M = density.left_out_sums(X, h, V)
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        squares = ((X[others] - X[i]) / h) ** 2
        w = np.exp(-0.5 * squares.sum(axis=1) - s[i])
        np.testing.assert_allclose(T[i], w @ V[others], rtol=1e-8)
        np.testing.assert_allclose(M[i], (w[:, None] * squares).T @ V[others], rtol=1e-6, atol=1e-8 * T[i].max())


@pytest.mark.parametrize("few", [True, False], ids=["differences", "sums"])
def test_sums_of_rows_too_far_for_squares_are_finite(few, monkeypatch):
    if not few:
        monkeypatch.setattr(density.costs, "FEW_PAIRS", 0)
    s, T, M = density.left_out_sums(np.array([[0.0], [1.0], [1e200]]), np.array([1.0]), np.ones((3, 1)))
    assert all(np.isfinite(part).all() for part in (s, T, M))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_leave_one_out_is_the_brute_force_one_and_its_gradient_vanishes(d):
    rng = np.random.default_rng(7)
    X, w = rng.normal(size=(50, d)), rng.integers(1, 3, 50).astype(float)
    X[3] = X[9]
    found = loo(X, w)
    widths = found.parameters["widths"]
    assert found.value == pytest.approx(brute_likelihood(X, widths, w) / w.sum(), rel=1e-8)
    for k in range(d):
        for factor in (0.97, 1.03):
            moved = widths.copy()
            moved[k] *= factor
            assert brute_likelihood(X, moved, w) < brute_likelihood(X, widths, w)
    np.testing.assert_allclose(ParzenDensity(bandwidth="loo").fit(X, sample_weight=w).bandwidth_, widths)


@pytest.mark.parametrize("d", [1, 3, 5])
def test_leave_one_out_gradient_is_the_difference_quotient(d):
    rng = np.random.default_rng(8)
    X, w, h = rng.normal(size=(30, d)) + 100.0, rng.uniform(0.5, 2, 30), rng.uniform(0.3, 0.9, d)
    _, slope = density.leave_one_out(X, h, w)
    for k in range(d):
        step = np.zeros(d)
        step[k] = 1e-5
        up, down = (density.leave_one_out(X, h * np.exp(s * step), w)[0] for s in (1, -1))
        np.testing.assert_allclose(slope[:, k], (up - down) / 2e-5, rtol=1e-5, atol=1e-7)


def test_duplicates_do_not_drive_the_width_to_zero():
    x = np.random.default_rng(9).normal(size=(80, 1))
    once, twice = (loo(rows).parameters["widths"] for rows in (x, np.repeat(x, 2, axis=0)))
    np.testing.assert_allclose(twice, once, rtol=0.05)
    X = np.column_stack([np.random.default_rng(0).normal(size=200), np.tile([0.0, 1.0], 100)])
    found = ParzenDensity(bandwidth="loo").fit(X)
    assert found.bandwidth_[1] == 0.5
    assert "ties" in found.status_
    with pytest.raises(InvalidInput, match="vary"):
        ParzenDensity(bandwidth="loo").fit(np.ones((5, 1)))


def test_outliers_that_widen_the_likeliest_width_are_named():
    x = np.append(np.random.default_rng(0).normal(size=50), 100.0)[:, None]
    assert "isj" in ParzenDensity(bandwidth="loo").fit(x).status_
    assert "isj" not in ParzenDensity(bandwidth="loo").fit(x[:-1]).status_


@pytest.mark.parametrize("kernel", [*COMPACT, mc.Laplacian])
def test_named_rules_smooth_as_much_whatever_the_kernel(kernel):
    x = np.random.default_rng(10).normal(size=(3000, 1))
    grid = np.linspace(-3, 3, 100)[:, None]
    a, b = ParzenDensity(kernel, bandwidth="scott").fit(x).pdf(grid), ParzenDensity(bandwidth="scott").fit(x).pdf(grid)
    assert np.abs(a - b).max() < 0.035
    X = np.column_stack([x[:100], x[100:200]])
    expected = density.equivalent(kernel(), 2) * scott(X)
    np.testing.assert_allclose(ParzenDensity(kernel, bandwidth="scott").fit(X).bandwidth_, expected, rtol=1e-12)


def test_canonical_factors_are_the_literatures():
    # Marron & Nolan 1988: 2.214 for Epanechnikov, 2.623 biweight, 1.740 uniform (of half-width σ), 2.432 triangular
    for kernel, factor in [(mc.Epanechnikov(), 2.214), (mc.Biweight(), 2.623), (mc.Uniform(), 1.740),
                           (mc.Triangular(), 2.432)]:  # fmt: skip
        assert density.equivalent(kernel, 1) == pytest.approx(factor, abs=1e-3)


# --- categories -------------------------------------------------------------------------------------------------------


def mixed(n=60, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {"size": rng.normal(size=n) + 2.0 * (colour == "red"), "colour": colour, "grade": rng.integers(1, 5, n)}
    )


def naive_mixed(frame, z, h, lam, mu):
    """Aitchison-Aitken for the colour, Wang-van Ryzin over four grades."""
    total = 0.0
    for size, colour, grade in frame.itertuples(index=False):
        a = 1 - lam if colour == z[1] else lam / 2
        column = [1.0 if g == grade else 0.5 * mu ** abs(g - grade) for g in (1, 2, 3, 4)]
        b = column[z[2] - 1] / sum(column)
        total += scipy.stats.norm.pdf(z[0], size, h) * a * b
    return total / len(frame)


@pytest.mark.parametrize(
    "frame_of", [lambda f: f, lambda f: pl.DataFrame(f.to_dict("list")), lambda f: f.to_numpy(dtype=object)]
)
def test_mixed_columns_equal_the_double_loop(frame_of):
    frame = mixed()
    X = frame_of(frame)
    names = (
        {"categorical": ["colour"], "ordered": ["grade"]}
        if hasattr(X, "columns")
        else {"categorical": 1, "ordered": -1}
    )
    model = ParzenDensity(bandwidth=0.4, category_bandwidth=[0.2, 0.3], **names).fit(X)
    queries = frame.iloc[:7]
    expected = [naive_mixed(frame, tuple(z), 0.4, 0.2, 0.3) for z in queries.itertuples(index=False)]
    np.testing.assert_allclose(model.pdf(frame_of(queries)), expected, rtol=1e-7)
    draws = model.sample(50, random_state=0)
    assert type(draws) is type(X)
    assert draws.shape == (50, 3)
    assert np.isfinite(model.score_samples(draws)).all()


def test_mixed_density_sums_and_integrates_to_one():
    frame = mixed(30)
    model = ParzenDensity(categorical=["colour"], ordered=["grade"], adaptive=True).fit(frame)
    grid = np.linspace(-10, 14, 1201)
    total = 0.0
    for colour in ("red", "green", "blue"):
        for grade in (1, 2, 3, 4):
            at = pd.DataFrame({"size": grid, "colour": colour, "grade": grade})
            total += np.trapezoid(model.pdf(at), grid)
    assert total == pytest.approx(1.0, abs=1e-5)


GRADES = ["low", "middle", "high", "top"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "dict", "array"])
def test_ordered_categories_keep_their_order(kind):
    rng = np.random.default_rng(0)
    size, grade = rng.normal(size=30), np.array(GRADES, dtype=object)[rng.integers(0, 3, 30)]  # nobody is at the top
    given = ["g"]
    if kind == "pandas":
        X = pd.DataFrame({"g": pd.Categorical(grade, categories=GRADES, ordered=True), "size": size})
    elif kind == "polars":
        X = pl.DataFrame({"g": pl.Series(grade.tolist(), dtype=pl.Enum(GRADES)), "size": size})
    elif kind == "dict":
        X, given = pd.DataFrame({"g": grade, "size": size}), {"g": GRADES}
    else:
        X, given = np.column_stack([grade, size.astype(object)]), {0: GRADES}
    model = ParzenDensity(bandwidth=0.5, ordered=given, category_bandwidth=0.3).fit(X)
    assert model.categories_[0].tolist() == GRADES
    codes = np.array([GRADES.index(g) for g in grade])
    by_number = ParzenDensity(bandwidth=0.5, ordered=[0], category_bandwidth=0.3)
    by_number.fit(np.column_stack([np.append(codes, 3), np.append(size, 0.0)]), sample_weight=[1.0] * 30 + [1e-12])
    numbers = np.column_stack([codes, size])
    np.testing.assert_allclose(model.pdf(X), by_number.pdf(numbers), rtol=1e-7)
    draws = model.sample(200, random_state=0)
    if kind == "pandas":
        assert draws["g"].dtype == X["g"].dtype
    elif kind == "polars":
        assert draws.schema["g"] == X.schema["g"]
    drawn = draws["g"] if kind != "array" else draws[:, 0]
    assert set(drawn) == set(GRADES)
    assert np.isfinite(model.score_samples(draws)).all()


def test_samples_of_categories_have_the_types_of_the_data():
    frame = mixed()
    frame["colour"], frame["grade"] = frame["colour"].astype("category"), frame["grade"].astype("int8")
    draws = ParzenDensity(categorical=["colour"], ordered=["grade"]).fit(frame).sample(5, random_state=0)
    assert draws.dtypes.tolist() == frame.dtypes.tolist()
    table = pl.DataFrame(frame.to_dict("list")).with_columns(pl.col("colour").cast(pl.Categorical))
    drawn = ParzenDensity(categorical=["colour"], ordered=["grade"]).fit(table).sample(5, random_state=0)
    assert drawn.schema == table.schema


def test_an_order_must_be_known():
    X = mixed()[["size", "colour"]]
    for ordered, match in (
        (["colour"], "lowest first"),
        ({"colour": ["red", "green"]}, "'blue'"),
        ({"colour": ["red", "green", "blue", "red"]}, "once"),
        ({"colour": "red"}, "list different levels"),
        ({"shape": ["a"]}, "columns of X"),
    ):
        with pytest.raises(InvalidInput, match=match):
            ParzenDensity(ordered=ordered).fit(X)
    with pytest.raises(InvalidInput, match="lowest first"):
        ParzenDensity(ordered=["colour"]).fit(X.astype({"colour": "category"}))


def test_categories_alone_and_levels_never_seen():
    model = ParzenDensity(categorical=[0], category_bandwidth=0.3).fit([["a"], ["a"], ["b"], ["c"]])
    np.testing.assert_allclose(model.pdf([["a"], ["b"]]), [0.5 * 0.7 + 0.5 * 0.15, 0.25 * 0.7 + 0.75 * 0.15])
    assert model.score_samples([["z"]])[0] == -np.inf
    draws = model.sample(4000, random_state=0)
    assert np.mean(draws[:, 0] == "a") == pytest.approx(0.425, abs=0.03)


def test_zero_category_width_is_one_density_per_level():
    frame = mixed()[["size", "colour"]]
    model = ParzenDensity(bandwidth=0.4, categorical="colour", category_bandwidth=0.0).fit(frame)
    red = frame[frame.colour == "red"]
    alone = ParzenDensity(bandwidth=0.4).fit(red[["size"]])
    queries = pd.DataFrame({"size": [0.0, 300.0], "colour": "red"})
    expected = alone.score_samples(queries[["size"]]) + np.log(len(red) / len(frame))
    np.testing.assert_allclose(model.score_samples(queries), expected, rtol=1e-7)


@pytest.mark.parametrize("ordered", [False, True])
def test_category_width_is_the_likeliest(ordered):
    counts = np.array([30.0, 10.0, 4.0, 1.0])

    def brute(a):
        L, total = level_weights(4, a, ordered), 0.0
        for c in range(4):
            left = counts.copy()
            left[c] -= 1
            total += counts[c] * np.log(L[c] @ left)
        return total

    a = likeliest_width(counts, ordered)
    grid = np.linspace(1e-4, 0.74, 400)
    assert brute(a) >= max(brute(v) for v in grid) - 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("names", [{"categorical": [1]}, {"categorical": [1], "ordered": [2]}])
def test_leave_one_out_with_categories_is_a_maximum_of_the_brute_force_one(names):
    frame = mixed(40, seed=3)[["size", "colour", "grade"][: 1 + sum(len(v) for v in names.values())]]
    X = frame.to_numpy(dtype=object)
    model = ParzenDensity(bandwidth="loo", **names).fit(X)

    def brute(h, lam):
        total = 0.0
        for i in range(len(X)):
            one = ParzenDensity(bandwidth=h, category_bandwidth=lam, **names)
            one.fit(
                np.vstack([X, X])[[*range(len(X)), i]],
                sample_weight=[1.0] * i + [0.0] + [1.0] * (len(X) - i - 1) + [1e-150],
            )
            total += float(one.score_samples(X[i : i + 1])[0])
        return total

    best = brute(model.bandwidth_, model.category_bandwidth_)
    for factor in (0.9, 1.1):
        assert brute(model.bandwidth_ * factor, model.category_bandwidth_) < best
        for k in range(len(model.category_bandwidth_)):
            moved = model.category_bandwidth_.copy()
            moved[k] = min(moved[k] * factor, 1.0)
            assert brute(model.bandwidth_, moved) < best + 1e-4


def test_gradient_of_the_likelihood_with_categories_is_the_difference_quotient():
    frame = mixed(40, seed=3)
    table = MixedTable.of(frame, ["colour"], ["grade"])
    w = np.random.default_rng(0).uniform(0.5, 2, 40)
    loss = CategoryCriterion.of(*table.split(frame), table, w, np.array([0.5]))
    at = np.array([-0.7, -1.0, 0.3])
    assert scipy.optimize.check_grad(lambda v: loss(v).value, lambda v: loss(v).gradient, at) < 1e-6


# --- conventions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", ["scott", "silverman", "isj", 0.4, [0.3, 0.5], scott_covariance])
@pytest.mark.parametrize("adaptive", [False, True])
def test_weights_are_repetitions(bandwidth, adaptive, data):
    X, Z = data
    w = np.random.default_rng(11).integers(0, 4, len(X))
    if callable(bandwidth):
        bandwidth = scott_covariance(X)
    a = ParzenDensity(bandwidth=bandwidth, adaptive=adaptive).fit(X, sample_weight=w)
    b = ParzenDensity(bandwidth=bandwidth, adaptive=adaptive).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(a.score_samples(Z), b.score_samples(Z), rtol=1e-8)


def test_far_away_logarithms_are_finite_and_exact():
    model = ParzenDensity(bandwidth=0.1).fit([[0.0], [1.0]])
    far = np.array([[1e3], [-1e5], [1e9]])
    nearest = np.where(far > 0, 1.0, 0.0)
    expected = -0.5 * ((far - nearest) / 0.1) ** 2 - np.log(2 * 0.1 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(model.score_samples(far), expected[:, 0], rtol=1e-9)
    assert (model.pdf(far) == 0).all()
    compact = ParzenDensity(mc.Tricube, bandwidth=0.1).fit([[0.0], [1.0]])
    assert (compact.score_samples(far) == -np.inf).all()
    assert np.isfinite(compact.score_samples([[0.09], [1.09]])).all()


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("m", [1, 200])
def test_at_any_distance_logarithms_are_no_nan(d, m):
    X = np.random.default_rng(0).uniform(size=(300, d))
    for bandwidth in (0.3, np.linspace(0.2, 0.4, d), 0.1 * np.eye(d)):
        model = ParzenDensity(bandwidth=bandwidth).fit(X)
        for distance in (1e150, 1e160, 1e200, 1e306):
            Z = np.vstack([np.full((1, d), distance), X[:m]])
            values = model.score_samples(Z)
            assert np.isfinite(values).all()
            assert values[0] < -1e290
            np.testing.assert_allclose(values[1:], model.score_samples(X[:m]), rtol=1e-7)
    assert ParzenDensity(bandwidth=0.3).fit(X).score_samples(np.full((1, d), 1.7e308))[0] < -1e300
    compact = ParzenDensity(mc.Epanechnikov, bandwidth=0.3).fit(X)
    assert compact.score_samples(np.full((m, d), 1e200)).max() == -np.inf


def test_float32_is_computed_in_float64(data):
    X, Z = (a.astype(np.float32) for a in data)
    a, b = ParzenDensity(bandwidth=0.3).fit(X), ParzenDensity(bandwidth=0.3).fit(X.astype(float))
    np.testing.assert_array_equal(a.score_samples(Z), b.score_samples(Z.astype(float)))


def test_one_point_and_equal_points_have_densities_of_given_width():
    one = ParzenDensity(bandwidth=2.0).fit([[1.0]])
    assert one.pdf([[1.0]])[0] == pytest.approx(1 / (2 * np.sqrt(2 * np.pi)))
    many = ParzenDensity(bandwidth=2.0).fit(np.ones((50, 1)))
    assert many.pdf([[1.0]])[0] == pytest.approx(1 / (2 * np.sqrt(2 * np.pi)))


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"bandwidth": 0.0}, "number > 0"),
        ({"bandwidth": -1.0}, "number > 0"),
        ({"bandwidth": float("nan")}, "number > 0"),
        ({"bandwidth": [1.0, 1.0, 1.0]}, "2 columns"),
        ({"bandwidth": "gold"}, "one of"),
        ({"bandwidth": np.array([[1.0, 2.0], [2.0, 1.0]])}, "positive definite"),
        ({"bandwidth": np.eye(3)}, "covariance"),
        ({"bandwidth": mc.Gaussian(1.0)}, "a kernel, Gaussian.*Pass it as kernel"),
        ({"bandwidth": mc.Tricube}, "Pass it as kernel"),
        ({"tolerance": None}, "tolerance"),
        ({"tolerance": 2.0}, "tolerance"),
        ({"kernel": mc.Linear()}, "integral"),
        ({"kernel": "gaussian"}, "integral"),
        ({"kernel": mc.RationalQuadratic(1.0, alpha=0.5)}, "alpha"),
        ({"kernel": mc.RationalQuadratic, "bandwidth": "scott"}, "rule"),
        ({"kernel": mc.Gaussian([1.0, 2.0, 3.0])}, "columns"),
        ({"adaptive": 2.0}, "adaptive"),
        ({"categorical": [7]}, "columns"),
        ({"categorical": ["size"]}, "columns"),
        ({"categorical": [0], "ordered": [0]}, "either"),
        ({"categorical": [0], "category_bandwidth": -1.0}, "category_bandwidth"),
    ],
)
def test_bad_parameters_are_refused(parameters, match, data):
    with pytest.raises(InvalidInput, match=match):
        ParzenDensity(**parameters).fit(data[0])


def test_bad_input_is_refused(data):
    model = ParzenDensity(bandwidth=1.0).fit(data[0])
    with pytest.raises(InvalidInput, match="NaN"):
        ParzenDensity(bandwidth=1.0).fit([[np.nan]])
    with pytest.raises(InvalidInput, match="in `categorical`"):
        ParzenDensity().fit(mixed())
    with pytest.raises(InvalidInput, match="range"):
        ParzenDensity().fit([[-1e308], [1e308], [0.0]])
    with pytest.raises(InvalidInput, match="one column"):
        model.cdf(0.0)
    with pytest.raises(InvalidInput, match="margin"):
        model.on_grid(10, margin=np.nan)
    with pytest.raises(InvalidInput, match="1 column,"):
        ParzenDensity(bandwidth=[1.0, 2.0]).fit(data[0][:, :1])
    with pytest.raises(InvalidInput, match="whole number"):
        model.sample(0)
    line = ParzenDensity(bandwidth=1.0).fit([[0.0]])
    with pytest.raises(InvalidInput, match=r"\[0, 1\]"):
        line.quantile(1.5)
    with pytest.raises(InvalidInput, match="NaN"):
        line.cdf(np.nan)
    with pytest.raises(InvalidInput, match="missing"):
        ParzenDensity(categorical=[0]).fit(np.array([["a"], [None]], dtype=object))
    with pytest.raises(InvalidInput, match="vary"):
        ParzenDensity().fit(np.column_stack([np.arange(5.0), np.ones(5)]))


def test_clone_pickle_and_parameters_inside_the_kernel(data):
    X, Z = data
    model = ParzenDensity(mc.Gaussian(1.0)).set_params(kernel__sigma=0.5)
    assert clone(model).kernel == mc.Gaussian(0.5)
    model.fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).score_samples(Z), model.score_samples(Z))
    line = ParzenDensity(bandwidth=0.3).fit(X[:, :1])
    before = line.cdf(0.0)
    assert line.fit(X[:, :1] + 5.0).cdf(0.0) < before
