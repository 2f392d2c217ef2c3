"""The calibration report: coverage counted by hand, and verdicts that planted errors bring about."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import mercer as mc
from mercer.models.calibration import Calibration, calibration
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.kernel_ridge import KernelRidge


class Known:
    """Predicts a standard normal, with intervals as many times too wide as it is told."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def predict(self, X):
        return np.zeros(len(X))

    def predict_interval(self, X, coverage=0.9):
        reach = self.factor * norm.ppf(0.5 + coverage / 2)
        return np.tile([-reach, reach], (len(X), 1))


X, Y = np.zeros((2000, 1)), np.random.default_rng(0).normal(size=2000)


def test_coverage_and_width_are_what_counting_gives():
    found = calibration(Known(), X, Y, coverages=(0.5, 0.9))
    for p, observed, error, width in zip((0.5, 0.9), found.observed, found.errors, found.widths):
        reach = norm.ppf(0.5 + p / 2)
        assert observed == np.mean(np.abs(Y) <= reach)
        assert np.isclose(width, 2 * reach)
        assert np.isclose(error, np.sqrt(p * (1 - p) / 2000))
    assert (found.n, found.nlpd, found.bias, found.spread) == (2000, None, None, None)
    assert np.isclose(found.rmse, np.sqrt(np.mean(Y**2)))


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "well calibrated"), (0.8, "too narrow: the"), (1.2, "too wide: the")]
)
def test_verdicts(factor, verdict):
    assert calibration(Known(factor), X, Y).verdict.startswith(verdict)


def test_heavy_tails_have_the_wrong_shape():
    heavy = np.random.default_rng(0).standard_t(2, size=2000)
    assert calibration(Known(), X, heavy / 1.4, coverages=(0.5, 0.99)).verdict.startswith("of the wrong shape")


def test_few_targets_prove_nothing():
    assert calibration(Known(), X[:3], Y[:3]).verdict == "well calibrated, as far as 3 targets can show"


def test_a_gaussian_process_also_has_a_density():
    rng = np.random.default_rng(0)
    Z = rng.uniform(0, 6, size=(500, 1))
    T = np.column_stack([np.sin(Z[:, 0]), np.cos(Z[:, 0])]) + 0.2 * rng.normal(size=(500, 2))
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.04).fit(Z[:250], T[:250])
    found = calibration(model, Z[250:], T[250:])
    mean, std = model.predict(Z[250:], return_std=True)
    std = np.sqrt(std**2 + 0.04)
    assert np.isclose(found.nlpd, -norm(mean, std).logpdf(T[250:]).mean())
    z = (T[250:] - mean) / std
    assert np.isclose(found.bias, z.mean())
    assert np.isclose(found.spread, z.var())
    assert 0.85 < found.spread < 1.15
    assert found.n == 500
    assert found.verdict == "well calibrated"
    sure = calibration(model.set_params(alpha=0.01).fit(Z[:250], T[:250]), Z[250:], T[250:])
    assert sure.verdict.startswith("too narrow")
    assert sure.spread > 2
    assert sure.nlpd > found.nlpd


def test_jackknife_intervals_of_any_least_squares_model():
    rng = np.random.default_rng(1)
    Z = rng.uniform(0, 6, size=(800, 1))
    t = np.sin(Z[:, 0]) + rng.laplace(scale=0.2, size=800)
    ridge = KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(Z[:600], t[:600])
    found = calibration(ridge, Z[600:], t[600:])
    assert found.verdict == "well calibrated"
    assert found.nlpd is None
    gp = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(Z[:600], t[:600])
    same = calibration(gp, Z[600:], t[600:], method="jackknife+")
    assert same.observed == found.observed
    assert same.widths == pytest.approx(found.widths)


def test_the_table_can_be_read():
    text = str(Calibration(100, (0.5, 0.9), (0.48, 0.7), (0.05, 0.03), (1.0, 2.5), 0.8, 1.25, 0.01, 2.0))
    assert text.splitlines() == [
        "coverage  observed         mean width",
        "   50.0%   48.0% ±  5.0%           1",
        "   90.0%   70.0% ±  3.0%         2.5",
        "RMSE 0.8, NLPD 1.25, standardised residuals: mean 0.01, variance 2.00",
        "100 targets: too narrow: the 90% intervals contain 70.0%",
    ]


def test_bad_input_is_refused():
    with pytest.raises(mc.InvalidInput, match="predict_interval"):
        calibration(mc.Gaussian(1.0), X, Y)
    with pytest.raises(mc.InvalidInput, match="coverages"):
        calibration(Known(), X, Y, coverages=(0.5, 1.0))
    with pytest.raises(mc.InvalidInput, match="coverages"):
        calibration(Known(), X, Y, coverages=())
    with pytest.raises(mc.InvalidInput, match="2000 points"):
        calibration(Known(), X, Y[:5])
    with pytest.raises(mc.InvalidInput, match="NaN"):
        calibration(Known(), X[:2], [1.0, np.nan])


def test_a_pipeline_is_judged_by_its_last_step():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(5.0, 3.0, size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    pipe = make_pipeline(StandardScaler(), mc.KernelRidge(mc.Linear(), alpha=1.0, fit_intercept=True)).fit(
        X[:80], y[:80]
    )
    alone = mc.calibration(pipe[-1], pipe[0].transform(X[80:]), y[80:])
    assert mc.calibration(pipe, X[80:], y[80:]).observed == alone.observed


@pytest.mark.parametrize("coverages", ["a", None, [[0.5, 0.9]], [0.5, [0.9]], (0.5, np.nan), True])
def test_coverages_that_are_no_numbers_are_refused(coverages):
    with pytest.raises(mc.InvalidInput, match=r"`coverages` must be numbers in \(0, 1\), got .*such as"):
        calibration(Known(), X, Y, coverages=coverages)


def test_methods_are_for_models_with_several():
    Z = np.linspace(0, 6, 40)[:, None]
    ridge = KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(Z, np.sin(Z[:, 0]))
    for model, method in ((ridge, "gaussian"), (Known(), "jackknife+")):
        with pytest.raises(mc.InvalidInput, match=rf"`method` .*{type(model).__name__}.*Omit `method`") as error:
            calibration(model, Z, np.sin(Z[:, 0]), method=method)
        assert method in error.value.got
    gp = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(Z, np.sin(Z[:, 0]))
    with pytest.raises(mc.InvalidInput, match="jackknife"):
        calibration(gp, Z, np.sin(Z[:, 0]), method="bootstrap")
    assert calibration(gp, Z, np.sin(Z[:, 0]), coverages=0.9).coverages == (0.9,)
