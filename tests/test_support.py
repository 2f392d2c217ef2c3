"""What all support vector machines share: columns of support vectors, one Gram for all problems, paths, interrupts."""

from __future__ import annotations

import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.models import support
from mercer.models.parts import Solved, divide
from mercer.models.support import PathInterrupted, _unsolved, feasible, filled, grown
from mercer.problems.box import BoxProblem
from mercer.solvers import smo

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = X[:, 0] + 0.3 * rng.normal(size=120)
K = mc.Gaussian(1.0)
LABELS = np.digitize(y, [-0.6, 0.0, 0.6])
MACHINES = {
    "SVC": (mc.SVC(K), y > 0),
    "NuSVC": (mc.NuSVC(K, nu=0.3), LABELS),
    "SVR": (mc.SVR(K), y),
    "two targets": (mc.SVR(K, C=2.0), np.column_stack([y, -2 * y])),
    "NuSVR": (mc.NuSVR(K, nu=0.2), y),
    "quantiles": (mc.KernelQuantileRegressor(K, quantile=[0.2, 0.8], C=0.1), y),
    "OneClassSVM": (mc.OneClassSVM(K, nu=0.2), None),
}


@pytest.mark.parametrize("name", MACHINES)
def test_support_vectors_and_their_columns_are_enough(name):
    model, target = MACHINES[name]
    model = clone(model).set_params(tol=1e-8).fit(X, target)
    assert len(model.support_) < len(X) or name == "quantiles"  # there every point that is not on f is one
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    values, Z = K(X), rng.normal(size=(7, 3))
    pairwise = clone(model).set_params(kernel=mc.Precomputed()).fit(values, target)
    cross = K(Z, X)
    np.testing.assert_array_equal(pairwise.support_, model.support_)
    np.testing.assert_allclose(pairwise.predict(cross), model.predict(Z), atol=1e-6)
    np.testing.assert_array_equal(pairwise.predict(cross[:, model.support_]), pairwise.predict(cross))
    if hasattr(model, "decision_function"):
        some = pairwise.decision_function(cross[:, model.support_])
        np.testing.assert_allclose(some, model.decision_function(Z), atol=1e-6)


def test_bounded_support_vectors_are_those_at_their_bound():
    w = rng.integers(1, 3, 120).astype(float)
    svr = mc.SVR(K, C=2.0, tol=1e-8).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(svr.bounded_, np.abs(svr.dual_coef_) >= 2.0 * w[svr.support_] - 1e-9)
    outside = np.abs(y - svr.predict(X))[svr.support_] > svr.epsilon + 1e-6
    np.testing.assert_array_equal(svr.bounded_, outside)
    novelty = mc.OneClassSVM(K, nu=0.2, tol=1e-8).fit(X, sample_weight=w)
    np.testing.assert_array_equal(novelty.bounded_, novelty.dual_coef_ >= w[novelty.support_] - 1e-9)
    assert novelty.bounded_[novelty.decision_function(X[novelty.support_]) < -1e-6].all()
    svc = mc.SVC(K, C=0.5, tol=1e-8).fit(X, LABELS)
    np.testing.assert_array_equal(svc.bounded_, (np.abs(svc.dual_coef_) >= 0.5 - 1e-9).any(axis=1))
    two = mc.SVR(K, C=0.1, tol=1e-8).fit(X, np.column_stack([y, 0.1 * y]))
    np.testing.assert_array_equal(two.bounded_, (np.abs(two.dual_coef_) >= 0.1 - 1e-9).any(axis=1))
    assert all(0 < model.bounded_.sum() < len(model.bounded_) for model in (svr, novelty, svc, two))


# -- one Gram for all pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        mc.SVC(K, C=2.0),
        mc.SVC(K, C=2.0, class_weight={1: 3.0}),
        mc.SVC(mc.Polynomial(2, c=1.0), C=0.5),
        mc.SVC(mc.Gaussian(0.1), C=np.inf),
        mc.NuSVC(K, nu=0.2),
    ],
)
def test_pairs_on_one_gram_are_pairs_alone(model):
    model = clone(model).set_params(tol=1e-8).fit(X, LABELS)
    for p, (a, b) in enumerate(combinations(range(4), 2)):
        own = np.isin(LABELS, [a, b])
        alone = clone(model).fit(X[own], LABELS[own])
        assert model.objective_[p] == pytest.approx(alone.objective_[0], rel=1e-7)
        assert model.intercept_[p] == pytest.approx(alone.intercept_, abs=1e-5)
        ours, theirs = model.margin_report()[p], alone.margin_report()[0]
        assert (ours.rows, ours.free, ours.bounded, ours.errors) == (
            theirs.rows, theirs.free, theirs.bounded, theirs.errors,
        )  # fmt: skip
        assert ours.margin == pytest.approx(theirs.margin, rel=1e-5)
    expected = model.function_(X)
    np.testing.assert_allclose(model._values(model.kernel_.prepare(X)), expected, atol=1e-9)


@pytest.mark.parametrize("calibrated", [False, True])
def test_all_pairs_and_folds_share_one_gram(monkeypatch, calibrated):
    seen = []

    def solve(problem, **options):
        seen.append((problem.gram, options["kept"]))
        return real(problem, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    mc.SVC(K, calibrated=calibrated).fit(X, LABELS)
    assert len(seen) == 6 * (6 if calibrated else 1)
    assert len({id(gram) for gram, _ in seen}) == 1
    assert seen[0][0].shape == (120, 120)
    assert len({id(kept) for _, kept in seen}) == (2 if calibrated else 1)
    seen.clear()
    mc.SVC(K).path(X, LABELS, [0.1, 1.0])
    assert len({id(kept) for _, kept in seen}) == 1


@pytest.mark.parametrize("kernel", [K, mc.FromFunction(lambda x, z: float(np.exp(-abs(x - z).sum())))])
def test_held_out_values_of_all_pairs_at_once_are_those_of_one_after_the_other(monkeypatch, kernel):
    w = rng.integers(1, 3, 60).astype(float)
    model = mc.SVC(kernel, calibrated=True).fit(X[:60], LABELS[:60], sample_weight=w)
    seen = []
    monkeypatch.setattr(mc.SVC, "_pairwise", lambda self: True)
    apply = mc.SVC._apply
    monkeypatch.setattr(mc.SVC, "_apply", staticmethod(lambda *given: seen.append(1) or apply(*given)))
    alone = mc.SVC(kernel, calibrated=True).fit(X[:60], LABELS[:60], sample_weight=w)
    assert len(seen) == 6 * 5
    for ours, theirs in zip(model._sigmoids, alone._sigmoids):
        assert (ours.a, ours.b) == pytest.approx((theirs.a, theirs.b), rel=1e-6)


def test_parts_cover_every_pair():
    codes, w = np.repeat([0, 1, 2], [2, 3, 4]), np.arange(1.0, 10.0)
    parts = divide(codes, w, ["a", "b", "c"], "ovo")
    assert [part.between for part in parts] == [("a", "b"), ("a", "c"), ("b", "c")]
    for part in parts:
        signs = dict(zip(part.between, (-1, 1)))
        assert part.signs.tolist() == [signs["abc"[codes[i]]] for i in part.index]
        assert part.weights.tolist() == (part.index + 1.0).tolist()
    even = divide(codes, np.ones(9), ["a", "b", "c"], "ovo")
    assert all((part.weights == 1).all() and len(part.weights) == len(part.index) for part in even)


def test_the_margin_report_outlives_pickles_and_refits():
    labels = load_iris().target
    data = load_iris().data
    model = mc.SVC(K).fit(data, labels)
    again = pickle.loads(pickle.dumps(model))
    assert "_unread" not in vars(again)
    assert str(again.margin_report()) == str(model.margin_report())
    small = mc.SVC(K, C=0.01)
    assert str(model.set_params(C=0.01).fit(data, labels).margin_report()) == str(
        small.fit(data, labels).margin_report()
    )


def test_the_start_of_a_problem_whose_turn_did_not_come_has_its_gradient():
    gram, n = mc.gram.of(K, X), len(X)
    values = K(X)
    half = filled(np.ones(n), 30.0)
    tube = BoxProblem(
        gram, np.zeros(2 * n), np.repeat([0.0, -1.0], n), np.repeat([1.0, 0.0], n), np.concatenate([half, -half[::-1]]),
        np.tile(np.arange(n), 2), np.repeat([0, 1], n),
    )  # fmt: skip
    point = half - half[::-1]
    np.testing.assert_allclose(_unsolved(tube).gradient, np.tile(values @ point, 2), atol=1e-12)
    some = np.arange(10, 50)
    start = filled(np.ones(40), 7.5)
    subset = BoxProblem(gram, np.zeros(40), np.zeros(40), np.ones(40), start, some)
    np.testing.assert_allclose(_unsolved(subset).gradient, values[np.ix_(some, some)] @ start, atol=1e-12)


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [mc.SVC(K), mc.SVR(K), mc.NuSVR(K), mc.KernelQuantileRegressor(K)])
def test_an_interrupted_path_keeps_the_models_so_far(monkeypatch, model):
    target = LABELS if isinstance(model, mc.SVC) else y
    Cs = [10.0, 0.1, 1.0, 100.0]
    whole = model.path(X, target, Cs)
    calls, before = [], 2 * (6 if isinstance(model, mc.SVC) else 1)

    def solve(problem, **options):
        calls.append(problem)
        found = real(problem, **options)
        if len(calls) > before:
            raise smo.Interrupted(found)
        return found

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.path(X, target, Cs)
    assert isinstance(caught.value, PathInterrupted)
    models = caught.value.models
    assert [fitted.C for fitted in models] == [0.1, 1.0, 10.0]
    for ours, theirs in zip(models[:2], [whole[1], whole[2]]):
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert models[2].predict(X).shape == (120,)


def test_an_interrupt_before_anything_is_fitted_leaves_no_models(monkeypatch):
    def fit(self, *given):
        raise KeyboardInterrupt

    monkeypatch.setattr(mc.SVR, "_fit", fit)
    with pytest.raises(KeyboardInterrupt) as caught:
        mc.SVR(K).path(X, y, [1.0, 2.0])
    assert caught.value.models == []


@pytest.mark.parametrize("model", [mc.SVR(K), mc.NuSVR(K), mc.KernelQuantileRegressor(K), mc.SVC(K)])
def test_a_path_starts_from_the_last_optimum(monkeypatch, model):
    target = y > 0 if isinstance(model, mc.SVC) else y
    starts = []

    def solve(problem, **options):
        starts.append(problem)
        return real(problem, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    Cs = np.geomspace(0.1, 1.0, 6)
    along = model.set_params(tol=1e-6).path(X, target, Cs)
    assert len(starts) == len(Cs)
    for problem in starts[1:]:
        assert problem.start.any()
        assert (problem.lower <= problem.start).all() and (problem.start <= problem.upper).all()  # noqa: PT018
        sums = [problem.start[member].sum() for member in problem.members()]
        if problem.group is None:
            np.testing.assert_allclose(sums, 0, atol=1e-9)
    alone = [clone(model).set_params(C=C).fit(X, target) for C in Cs]
    assert sum(m.n_iter_ for m in along) < 0.9 * sum(m.n_iter_ for m in alone)
    for one, other in zip(along, alone):
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)


def test_coefficients_grow_with_the_box_only_where_that_is_better():
    gram = mc.gram.of(mc.Linear(), np.array([[-1.0], [1.0]]))
    signs = np.array([-1.0, 1.0])

    def optimum(C):
        problem = BoxProblem(gram, -signs, np.minimum(0, C * signs), np.maximum(0, C * signs), np.zeros(2))
        return Solved(problem, smo.solve(problem, tol=1e-9))

    free, bounded = optimum(10.0), optimum(0.1)  # the minimum without bounds is β = ±½
    np.testing.assert_allclose(grown(free.problem, free.optimum, 3.0), 0.5 * signs)
    np.testing.assert_allclose(grown(bounded.problem, bounded.optimum, 3.0), 0.3 * signs)
    assert feasible(free.problem, np.array([-20.0, 5.0])) is free.problem  # after clipping Σβ ≠ 0
    np.testing.assert_array_equal(feasible(free.problem, 4.0 * signs).start, 4.0 * signs)


# -- warnings ---------------------------------------------------------------------------------------------------------


def test_folds_that_do_not_converge_are_warned_of_once(monkeypatch):
    def solve(problem, *, max_iter, **options):
        return real(problem, max_iter=5 if problem.size < 120 else max_iter, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = mc.SVC(K, calibrated=True).fit(X, y > 0)
    assert [warning.category for warning in told] == [ConvergenceWarning]
    assert "5 of 5 problems of the calibration's folds" in str(told[0].message)
    assert told[0].filename == __file__
    assert model.predict_proba(X).shape == (120, 2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mc.SVC(K, calibrated=True, max_iter=5).fit(X, y > 0)
    assert len(told) == 1
    assert "after 5 iterations" in str(told[0].message)


@pytest.mark.parametrize("name", MACHINES)
def test_warnings_point_to_the_caller(name):
    model, target = MACHINES[name]
    with pytest.warns(ConvergenceWarning) as told:
        clone(model).set_params(max_iter=2).fit(X, target)
    assert {warning.filename for warning in told} == {__file__}
    assert len(told) == 1


@pytest.mark.parametrize("many", [2, 30])
def test_every_problem_is_solved_once_the_large_ones_first(monkeypatch, many):
    sizes = []

    def solve(problem, **options):
        sizes.append(problem.size)
        return real(problem, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    monkeypatch.setattr(support, "LARGE", 65)
    monkeypatch.setattr(support, "MANY", many)
    model = mc.SVC(K, tol=1e-6).fit(X, LABELS)
    pairs = sorted(np.bincount(LABELS)[[a, b]].sum() for a, b in combinations(range(4), 2))
    assert sorted(sizes) == pairs
    large = sum(size > 65 for size in pairs)
    assert 0 < large < 5
    assert sizes[:large] == pairs[::-1][:large]
    if many == 2:
        assert sizes[large] == pairs[0]  # it prepares what all share
    assert model.gap_ <= 1e-6


def test_an_error_in_a_problem_is_an_error_of_the_fit(monkeypatch):
    def solve(problem, **options):
        raise IndexError("planted")

    monkeypatch.setattr(smo, "solve", solve)
    with pytest.raises(IndexError, match="planted"):
        mc.SVC(K).fit(X, LABELS)
