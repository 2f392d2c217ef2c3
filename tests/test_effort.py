"""Explanations in limited time: planned by counting operations, ended by the clock, the same from fewer terms."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import mercer as mc
from mercer.cli.fitting import time_to_fit, time_to_report
from mercer.models.explaining import importance as measuring
from mercer.models.explaining.additivity import part_of
from mercer.models.explaining.contributions import background_rows, predictions_each
from mercer.models.explaining.effort import Effort
from mercer.report import document

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=160)
ADDITIVE = mc.Gaussian(1.0).on(0) + mc.Gaussian(1.5).on(1, 2) + mc.Linear().on(3)


class Counting(RegressorMixin, BaseEstimator):
    """A model that counts the rows it predicts."""

    def __init__(self, model):
        self.model, self.rows, self.calls = model, 0, 0

    def predict(self, rows):
        self.rows, self.calls = self.rows + len(rows), self.calls + 1
        return self.model.predict(rows)


@pytest.fixture(scope="module")
def additive():
    return mc.KernelRidge(ADDITIVE, alpha=0.1).fit(X[:100], Y[:100])


def test_a_sum_of_kernels_is_explained_by_the_terms_that_change(additive, monkeypatch):
    fast = mc.feature_importance(additive, X[100:], Y[100:])
    few = mc.contributions(additive, X[100:102], X[:100])
    pairs = mc.interactions(additive, X, [0, 1, 2], rows=12)
    assert [part_of(additive, X, [j]) is None for j in range(4)] == [False] * 4
    for module in ("importance", "answers"):
        monkeypatch.setattr(f"mercer.models.explaining.{module}.part_of", lambda *arguments: None)
    whole = mc.feature_importance(additive, X[100:], Y[100:])
    np.testing.assert_allclose(fast.rise, whole.rise, atol=1e-12)
    all_terms = mc.contributions(additive, X[100:102], X[:100])
    np.testing.assert_allclose(few.values, all_terms.values, atol=1e-12)
    strengths = {pair.columns: pair.strength for pair in mc.interactions(additive, X, [0, 1, 2], rows=12)}
    for pair in pairs:
        assert pair.strength == pytest.approx(strengths[pair.columns], abs=1e-12)
    assert pairs[0].columns == ("x1", "x2")


def test_products_and_bounded_predictions_have_no_terms(additive):
    product = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X[:50], Y[:50])
    bounded = mc.AutoRegressor(kernel=ADDITIVE, time=2).fit(X[:60], np.abs(Y[:60]))
    assert part_of(product, X, [0]) is None
    assert part_of(bounded, X, [0]) is None


def test_importance_predicts_several_columns_in_one_call():
    wide = RNG.normal(size=(40, 30))
    model = Counting(mc.Ridge().fit(wide, wide[:, 0]))
    mc.feature_importance(model, wide, wide[:, 0])
    assert model.rows == 40 + 30 * 5 * 40
    assert model.calls == 2


def test_less_time_means_fewer_shuffles_then_fewer_rows(monkeypatch):
    seen = []
    monkeypatch.setattr(measuring, "feature_importance", lambda model, X, y, **how: seen.append(how))
    for seconds in (float("inf"), 3.0, 0.1, 1e-9):
        measuring.measured_importance(None, np.zeros((1000, 4)), np.zeros(1000), Effort(seconds, 0.001, 0.002))
    shuffled = [(how["repeats"], how["rows"]) for how in seen]
    assert shuffled == [(5, 500), (2, 375), (2, 50), (2, 50)]


def test_a_row_costs_more_with_more_kept_rows_columns_and_classes():
    def cost(kernel, n=100, labels=None):
        fitted = mc.KernelRidge if labels is None else mc.KernelLogisticRegression
        return Effort.of(fitted(kernel).fit(X[:n], Y[:n] if labels is None else labels)).row

    small = cost(mc.Gaussian(1.0))
    assert small < cost(mc.Gaussian(1.0), 160) < 2 * small
    assert cost(mc.Gaussian(1.0), labels=Y[:100] > 0) > small < cost(ADDITIVE)
    process = mc.GaussianProcessRegressor(mc.Gaussian(1.0)).fit(X, Y)
    assert Effort.of(process).interval > 2 * Effort.of(process).row, "the variance costs the square of the rows"
    assert Effort.of(mc.Ridge().fit(X, Y)).row < small


def test_a_smaller_background_has_the_same_mean_prediction(additive):
    few = background_rows(additive, X, 20)
    assert len(few) == 20
    assert additive.predict(few).mean() == pytest.approx(additive.predict(X).mean(), abs=0.05)
    assert predictions_each(6) == 64 < predictions_each(20)


def test_a_report_leaves_out_what_comes_after_its_time(additive, tmp_path, monkeypatch):
    pictures = []
    monkeypatch.setattr(document, "drawn", lambda draw: pictures.append(draw) or "<svg></svg>")
    path = tmp_path / "a.html"
    importance = mc.feature_importance(additive, X[100:], Y[100:], rows=20, repeats=2)
    made = {"held_out": (X[100:], Y[100:]), "cautions": (), "importance": importance}
    text = mc.report.write(additive, X[:100], Y[:100], path, late=lambda: len(pictures) > 3, **made).read_text()
    assert "More plots are left out, because the time was over" in text
    assert "The explanations are left out" in text
    assert "Actual against predicted target" in text
    assert "Worst predicted rows" in text
    assert "left out, because" not in mc.report.write(additive, X[:100], Y[:100], path, **made).read_text()


def test_fits_and_the_report_share_the_time():
    for budget in (15.0, 60.0, 600.0):
        assert time_to_fit(budget, report=True) + time_to_report(budget) + 4 == budget
    assert 0 < time_to_fit(5.0, report=True) < 2


def test_a_width_per_column_as_a_parameter_comes_back_from_a_file(tmp_path):
    model = mc.NadarayaWatsonRegressor(bandwidth=np.array([0.3, 0.4])).fit(X[:30, :2], Y[:30])
    model.save(tmp_path / "a.mercer")
    np.testing.assert_array_equal(mc.load(tmp_path / "a.mercer").predict(X[:5, :2]), model.predict(X[:5, :2]))
