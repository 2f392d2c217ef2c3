"""Widths by rules: against textbook formulas, naive double sums, and other libraries' definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import brentq

from mercer.errors import InvalidInput
from mercer.tuning.bandwidth import isj, plug_in, scott, scott_covariance, silverman

RULES = [scott, silverman, isj]


def two_modes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(-3, 0.5, n // 2), rng.normal(2, 1.0, n - n // 2)])


def naive_isj(x):
    """The fixed point with cosine coefficients of the points themselves: no histogram, no fast transform."""
    low, length = x.min() - np.ptp(x) / 2, 2 * np.ptp(x)
    u = (x - low) / length
    k = np.arange(1, 400)
    a2 = np.cos(np.pi * np.outer(k, u)).mean(axis=1) ** 2
    n = len(np.unique(x))

    def norm(s, t):
        return 2 * math.pi ** (2 * s) * np.sum(k ** (2.0 * s) * a2 * np.exp(-((k * math.pi) ** 2) * t))

    def gap(t):
        f = norm(7, t)
        for s in (6, 5, 4, 3, 2):
            K0 = math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
            f = norm(s, (2 * (1 + 0.5 ** (s + 0.5)) / 3 * K0 / n / f) ** (2 / (3 + 2 * s)))
        return t - (2 * n * math.sqrt(math.pi) * f) ** (-2 / 5)

    grid = np.geomspace(1e-6, 0.05, 400)
    values = [gap(t) for t in grid]
    first = next(i for i in range(len(grid)) if values[i] >= 0)
    return math.sqrt(brentq(gap, grid[first - 1], grid[first])) * length


def test_scott_is_the_textbook_formula_and_scipys_factor():
    X = np.random.default_rng(0).normal(size=(57, 3)) * [1.0, 10.0, 0.1]
    kde = scipy.stats.gaussian_kde(X.T)
    np.testing.assert_allclose(scott(X), X.std(axis=0, ddof=1) * 57 ** (-1 / 7), rtol=1e-12)
    np.testing.assert_allclose(scott_covariance(X), kde.covariance, rtol=1e-12)


def test_silverman_is_the_robust_rule():
    x = np.random.default_rng(1).normal(size=101)
    far = np.append(x, 1e4)
    iqr = np.subtract(*np.percentile(far, [75, 25])) / 1.34
    assert silverman(far)[0] == pytest.approx(0.9 * iqr * 102**-0.2, rel=1e-12)
    narrow = np.linspace(-1, 1, 50)
    expected = 0.9 * min(narrow.std(ddof=1), np.subtract(*np.percentile(narrow, [75, 25])) / 1.34) * 50**-0.2
    assert silverman(narrow)[0] == pytest.approx(expected, rel=1e-12)
    X = np.random.default_rng(2).standard_t(3, size=(200, 2))
    spread = np.minimum(X.std(axis=0, ddof=1), np.subtract(*np.percentile(X, [75, 25], axis=0)) / 1.34)
    np.testing.assert_allclose(silverman(X), spread * 200 ** (-1 / 6), rtol=1e-12)


def test_silverman_takes_the_deviation_where_quartiles_are_equal():
    x = np.array([0.0] * 20 + [1.0, 5.0])
    assert silverman(x)[0] == pytest.approx(0.9 * x.std(ddof=1) * 22**-0.2, rel=1e-12)


@pytest.mark.parametrize("x", [two_modes(), two_modes(2000, 3), np.random.default_rng(4).exponential(size=300)])
def test_isj_solves_the_equation_of_the_points_themselves(x):
    assert isj(x)[0] == pytest.approx(naive_isj(x), rel=2e-3)


def test_isj_is_near_the_width_of_least_error():
    x, norm = two_modes(3000, 5), scipy.stats.norm.pdf
    grid = np.linspace(-7, 9, 321)
    truth = 0.5 * norm(grid, -3, 0.5) + 0.5 * norm(grid, 2, 1.0)
    widths = np.geomspace(0.07, 0.35, 9)
    errors = [np.sum((norm((grid[:, None] - x) / h).mean(axis=1) / h - truth) ** 2) for h in widths]
    assert isj(x)[0] == pytest.approx(widths[np.argmin(errors)], rel=0.2)


def test_isj_resolves_modes_that_silverman_blurs():
    x = np.concatenate([np.random.default_rng(0).normal(m, 0.1, 300) for m in (0, 10, 30)])
    assert isj(x)[0] < 0.1 < 2 < silverman(x)[0]


def test_isj_of_columns_has_the_rate_of_their_dimension():
    x, y = two_modes(), np.random.default_rng(7).normal(size=400)
    alone = np.array([isj(x)[0], isj(y)[0]])
    np.testing.assert_allclose(isj(np.column_stack([x, y])), alone * 400 ** (1 / 5 - 1 / 6), rtol=1e-12)


def test_isj_sees_through_an_outlier():
    x = np.append(two_modes(), 3000.0)
    assert isj(x)[0] == pytest.approx(isj(two_modes())[0], rel=0.1)


@pytest.mark.parametrize("rule", RULES)
def test_rules_are_equivariant(rule):
    x = two_modes()
    np.testing.assert_allclose(rule(1e-5 * x + 2.0), 1e-5 * rule(x), rtol=1e-6)
    np.testing.assert_allclose(rule(1e120 * x), 1e120 * rule(x), rtol=1e-6)


@pytest.mark.parametrize("rule", [*RULES, scott_covariance])
def test_weights_are_repetitions(rule):
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(40, 2)), rng.integers(0, 4, 40)
    np.testing.assert_allclose(rule(X, w), rule(np.repeat(X, w, axis=0)), rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_ties_and_integers_give_positive_widths(rule):
    counts = np.random.default_rng(0).poisson(5, size=300).astype(float)
    assert 0.1 < rule(counts)[0] < 3
    assert rule(np.array([0.0, 0.0, 0.0, 1.0]))[0] > 0


@pytest.mark.parametrize("rule", [*RULES, scott_covariance])
def test_what_has_no_spread_is_refused(rule):
    with pytest.raises(InvalidInput, match="two points"):
        rule(np.array([1.0]))
    with pytest.raises(InvalidInput, match="column 1"):
        rule(np.column_stack([np.arange(10.0), np.full(10, 0.1)]))
    with pytest.raises(InvalidInput, match="finite"):
        rule(np.array([0.0, np.nan]))
    with pytest.raises(InvalidInput, match="weights"):
        rule(np.arange(3.0), [-1.0, 1.0, 1.0])


def test_fall_back_has_a_reason():
    found = plug_in(np.column_stack([two_modes(), np.arange(400.0) % 3]))
    assert list(found.reasons) == [1]
    assert "3 different values" in found.reasons[1]
    assert found.widths[1] == pytest.approx(silverman(np.arange(400.0) % 3)[0] * 400 ** (1 / 5 - 1 / 6))


def test_fall_back_tells_point_masses_from_outliers():
    masses = np.concatenate([two_modes(), np.full(300, 2.0)])
    assert "299 of 700 values are ties" in plug_in(masses).reasons[0]
    assert "outliers" in plug_in(np.append(two_modes(), 1e9)).reasons[0]


def test_dependent_columns_have_no_covariance_to_invert():
    x = np.arange(20.0)
    with pytest.raises(InvalidInput, match="linearly"):
        scott_covariance(np.column_stack([x, 2 * x]))
