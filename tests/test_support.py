"""What all support vector machines share: columns of support vectors, one Gram for all problems, paths, interrupts."""

from __future__ import annotations

import os
import pickle
import pkgutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass
from importlib import import_module
from itertools import combinations
from operator import attrgetter, methodcaller

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models import svm
from mercer.models.convergence import NotConverged
from mercer.models.svm import costs
from mercer.models.svm.problems import feasible, filled, grown, soft_margin
from mercer.models.svm.solving import unsolved
from mercer.models.svm.split import per_pair, split
from mercer.models.svm.support import PathInterrupted, SupportVectorMachine
from mercer.problems.box import BoxProblem
from mercer.rkhs.expansion import Expansion
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.psd import negative_eigenvalue

pytestmark = pytest.mark.usefixtures("threads")

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
    np.testing.assert_array_equal(pairwise.support_, np.sort(model.support_))
    assert pairwise.support_vectors_.shape == 2 * (len(model.support_),)  # no more of the matrix is kept
    np.testing.assert_allclose(pairwise.predict(cross), model.predict(Z), atol=1e-6)
    np.testing.assert_array_equal(pairwise.predict(cross[:, pairwise.support_]), pairwise.predict(cross))
    if hasattr(model, "decision_function"):
        some = pairwise.decision_function(cross[:, pairwise.support_])
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


def test_a_fit_passes_five_records():
    """BoxProblem and Optimum are the solver's; the sigmoids are the result of a calibration, not passed on by a fit.

    The machines themselves are data classes too, of their parameters.
    """
    homes = [import_module(f"mercer.models.svm.{module.name}") for module in pkgutil.iter_modules(svm.__path__)]
    records = {
        name
        for home in homes
        for name, kind in vars(home).items()
        if is_dataclass(kind) and kind.__module__.startswith(svm.__name__) and not issubclass(kind, BaseEstimator)
    }
    assert records == {"Sides", "Margin", "MarginReport", "Sigmoid", "Softmax"}


# -- one Gram for all pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        mc.SVC(K, C=2.0),
        mc.SVC(K, C=2.0, class_weight={0: 1.0, 1: 3.0, 2: 1.0, 3: 1.0}),
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

    def one_by_one(self, sides, K, codes, at):
        seen.append(len(sides))
        coef = per_pair(sides.coefficients(codes, 4, by_rows=True), codes, 4)
        each = [Expansion(K.kernel, K.x, column)(K.x.take(at)) for column in coef.T]
        return np.column_stack(each) + sides.intercept

    monkeypatch.setattr(mc.SVC, "_values_of", one_by_one)
    alone = mc.SVC(kernel, calibrated=True).fit(X[:60], LABELS[:60], sample_weight=w)
    assert seen == 5 * [6]
    for ours, theirs in zip(model._sigmoids, alone._sigmoids):
        assert (ours.a, ours.b) == pytest.approx((theirs.a, theirs.b), rel=1e-6)


def test_parts_cover_every_pair():
    codes, w = np.repeat([0, 1, 2], [2, 3, 4]), np.arange(1.0, 10.0)
    parts = split(codes, ["a", "b", "c"], "ovo")
    assert [between for _, _, between in parts] == [("a", "b"), ("a", "c"), ("b", "c")]
    gram = mc.gram.of(mc.Linear(), X[:9])
    for part in parts:
        rows, signs, between = part
        side = dict(zip(between, (-1, 1)))
        assert signs.tolist() == [side["abc"[codes[i]]] for i in rows]
        for weights, expected in ((w, rows + 1.0), (np.ones(9), np.ones(len(rows)))):
            problem = soft_margin(gram, part, weights, 1.0)
            assert (signs * (problem.lower + problem.upper)).tolist() == expected.tolist()


def test_the_margin_report_outlives_pickles_and_refits():
    labels = load_iris().target
    data = load_iris().data
    model = mc.SVC(K).fit(data, labels)
    again = pickle.loads(pickle.dumps(model))
    assert str(again.margin_report()) == str(model.margin_report())
    small = mc.SVC(K, C=0.01)
    assert str(model.set_params(C=0.01).fit(data, labels).margin_report()) == str(
        small.fit(data, labels).margin_report()
    )


def test_the_margin_report_of_a_file_that_does_not_know_its_end():
    model = mc.load(os.path.join(os.path.dirname(__file__), "models", "svc.mercer"))
    report = model.margin_report()
    assert [margin.between for margin in report.functions] == [("blue", "green"), ("blue", "red"), ("green", "red")]
    assert report.status == ""


def test_ends_are_words_of_a_list_and_do_not_hang_on_sentences():
    separable = X[:, 0] > 0
    assert mc.SVC(mc.Linear(), C=np.inf).fit(X, separable).end_ == End.CONVERGED.value
    hopeless = mc.SVC(mc.Linear(), C=np.inf).fit(X, rng.integers(0, 2, 120))
    assert hopeless.end_ == End.NO_MARGIN.value
    assert hopeless.margin_report().status == hopeless.status_
    model = mc.SVC(K, calibrated=True).fit(X, separable)
    assert model.calibrated_
    model.status_ = "whatever it says"
    assert model.margin_report().status == ""
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        stopped = mc.SVC(K, calibrated=True, progress=lambda p: False).fit(X, separable)
    assert not stopped.calibrated_


def test_the_start_of_a_problem_whose_turn_did_not_come_has_its_gradient():
    gram, n = mc.gram.of(K, X), len(X)
    values = K(X)
    half = filled(np.ones(n), 30.0)
    tube = BoxProblem(
        gram, np.zeros(2 * n), np.repeat([0.0, -1.0], n), np.repeat([1.0, 0.0], n), np.concatenate([half, -half[::-1]]),
        np.tile(np.arange(n), 2), np.repeat([0, 1], n),
    )  # fmt: skip
    point = half - half[::-1]
    np.testing.assert_allclose(
        unsolved(tube, "interrupted", End.INTERRUPTED).gradient, np.tile(values @ point, 2), atol=1e-12
    )
    some = np.arange(10, 50)
    start = filled(np.ones(40), 7.5)
    subset = BoxProblem(gram, np.zeros(40), np.zeros(40), np.ones(40), start, some)
    np.testing.assert_allclose(
        unsolved(subset, "interrupted", End.INTERRUPTED).gradient, values[np.ix_(some, some)] @ start, atol=1e-12
    )


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
        return problem, smo.solve(problem, tol=1e-9)

    free, bounded = optimum(10.0), optimum(0.1)  # the minimum without bounds is β = ±½
    np.testing.assert_allclose(grown(*free, 3.0), 0.5 * signs)
    np.testing.assert_allclose(grown(*bounded, 3.0), 0.3 * signs)
    assert feasible(free[0], np.array([-20.0, 5.0])) is free[0]  # after clipping Σβ ≠ 0
    np.testing.assert_array_equal(feasible(free[0], 4.0 * signs).start, 4.0 * signs)


# -- warnings ---------------------------------------------------------------------------------------------------------


def test_folds_that_do_not_converge_are_warned_of_once(monkeypatch):
    def solve(problem, *, max_iter, **options):
        return real(problem, max_iter=5 if problem.size < 120 else max_iter, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = mc.SVC(K, calibrated=True).fit(X, y > 0)
    assert [warning.category for warning in told] == [NotConverged]
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
    monkeypatch.setattr(costs, "OWN_THREADS", 65)
    monkeypatch.setattr(costs, "SHARED_PREPARATION", many)
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


# -- a matrix in place of the data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [
        mc.SVC(tol=1e-8),
        mc.SVC(tol=1e-8, multiclass="ovr"),
        mc.SVC(tol=1e-8, calibrated=True),
        mc.NuSVC(nu=0.9, tol=1e-8),
    ],
)
@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_columns_of_support_vectors_are_read_as_such_even_if_all_are_there(machine, sigma):
    data, labels = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    data, labels = data[order], labels[order]
    values = mc.Gaussian(sigma)(data)
    model = clone(machine).set_params(kernel=mc.Precomputed()).fit(values, labels)
    assert (len(model.support_) == 150) == (sigma == 0.05)
    assert (np.diff(model.support_) > 0).all()
    columns = values[:, model.support_]
    np.testing.assert_array_equal(model.predict(columns), model.predict(values))
    np.testing.assert_array_equal(model.decision_function(columns), model.decision_function(values))
    assert model.score(values, labels) > 0.9
    direct = clone(machine).set_params(kernel=mc.Gaussian(sigma)).fit(data, labels)
    np.testing.assert_allclose(model.decision_function(values), direct.decision_function(data), atol=1e-5)
    np.testing.assert_array_equal(model.bounded_, direct.bounded_[np.argsort(direct.support_)])
    np.testing.assert_array_equal(model.n_support_, direct.n_support_)
    ours, theirs = model.margin_report(), direct.margin_report()
    assert [m.free for m in ours.functions] == [m.free for m in theirs.functions]
    assert ours[0].loo_span == pytest.approx(theirs[0].loo_span, abs=0.021)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(columns), model.predict(values))


def test_a_matrix_with_rows_left_out():
    w = np.where(np.arange(120) % 3, 1.0, 0.0)
    values, some = K(X), w > 0
    model = mc.SVC(mc.Precomputed(), tol=1e-8).fit(values, LABELS, sample_weight=w)
    direct = mc.SVC(K, tol=1e-8).fit(X[some], LABELS[some])
    assert not np.isin(model.support_, np.flatnonzero(~some)).any()
    for given in (values, values[:, model.support_]):
        np.testing.assert_allclose(model.decision_function(given), direct.decision_function(X), atol=1e-5)


# -- what a fit leaves ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_a_refused_fit_leaves_the_model_as_it_was(name, monkeypatch):
    model, target = MACHINES[name]
    model = clone(model).fit(X, target)
    before, kept = model.predict(X), vars(model).copy()
    with pytest.raises(InvalidInput):
        model.fit(
            X[:5], target[:4] if target is not None else X[:5], **({} if target is not None else {"sample_weight": [1]})
        )

    def failing(*given, **more):
        raise InvalidInput("A kernel", got="nothing", advice="None.")

    with monkeypatch.context() as patch:
        patch.setattr(smo, "solve", failing)
        with pytest.raises(InvalidInput, match="A kernel"):
            model.fit(X[:50, :2], None if target is None else target[:50])
    assert vars(model).keys() == kept.keys()
    np.testing.assert_array_equal(model.predict(X), before)


def interrupted_early(*given, **more):
    raise KeyboardInterrupt


def test_an_interrupt_before_there_is_an_iterate_leaves_the_model_as_it_was(monkeypatch):
    model = mc.SVC(K).fit(X, LABELS)
    before = model.predict(X)
    monkeypatch.setattr(SupportVectorMachine, "_warn_if_indefinite", interrupted_early)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y > 0)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.status_.startswith("converged")


@pytest.mark.thorough
def test_threads_may_ask_for_everything_at_once():
    labels = np.arange(120) % 15
    for _ in range(5):
        model = mc.SVC(K).fit(X, labels)
        names = set(vars(model))
        asked = [
            attrgetter("function_"),
            attrgetter("bounded_"),
            methodcaller("margin_report"),
            methodcaller("predict", X),
        ]
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(ask, model) for ask in asked * 4]:
                done.result()
        assert set(vars(model)) == names  # `check_is_fitted` walks over them


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "many"])
def test_a_model_keeps_nothing_of_the_rows_that_are_not_support_vectors(name):
    n = 1200
    data = np.random.default_rng(0).normal(size=(n, 2)) + 6 * np.random.default_rng(1).integers(0, 4, (n, 2))
    labels = (data[:, 0] > 9).astype(int) if name == "SVC" else np.round(data.sum(axis=1)).astype(int) // 5
    model = (mc.NuSVC(K, nu=0.02, tol=1e-6) if name == "NuSVC" else mc.SVC(K, C=10.0)).fit(data, labels)
    assert 2 * len(model.support_) < n

    def arrays(value, depth=0):
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, (tuple, list)):
            for item in value:
                yield from arrays(item, depth)
        elif isinstance(value, dict):
            yield from arrays(tuple(value.values()), depth)
        elif hasattr(value, "__dict__") and depth < 6:
            yield from arrays(vars(value), depth + 1)

    assert all(n not in array.shape for array in arrays(vars(model)))


@pytest.mark.parametrize(("target", "calls"), [(LABELS, 0), (LABELS, 4), (LABELS, 7), (LABELS > 1, 0)])
def test_a_calibration_that_is_stopped_says_so(target, calls):
    told = []
    model = mc.SVC(K, calibrated=True, progress=lambda p: told.append(p) or len(told) <= calls)
    with pytest.warns(ConvergenceWarning, match="stopped by the caller") as caught:
        model.fit(X, target)
    assert len(caught) == 1
    assert "Raise" not in str(caught[0].message)
    assert model.status_ == "stopped by the caller, and therefore not calibrated"
    assert len(model.predict(X)) == 120
    with pytest.raises(InvalidInput, match="not interrupted or stopped, got status_ = 'stopped by the caller"):
        model.predict_proba(X)
    assert model.set_params(progress=None).fit(X, target).predict_proba(X).shape[0] == 120


def test_no_stage_of_the_hard_margin_begins_after_a_stop():
    told = []
    model = mc.SVC(mc.Linear(), C=np.inf, progress=lambda p: bool(told.append(p)))
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        model.fit(X, y > 0)
    assert len(told) <= 2
    assert model.status_ == "stopped by the caller"


def test_a_calibration_without_time_or_iterations():
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = mc.SVC(K, C=1e6, tol=1e-12, calibrated=True, max_time=0.0).fit(X, rng.integers(0, 2, 120))
    assert model.status_ == "stopped at the time limit, and therefore not calibrated"
    for multiclass in ("ovo", "ovr"):
        with pytest.warns(ConvergenceWarning, match="stopped after 0 iterations"):
            model = mc.SVC(K, calibrated=True, max_iter=0, multiclass=multiclass).fit(X, LABELS)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_rows_for_a_calibration_are_counted_before_anything_is_solved(monkeypatch):
    monkeypatch.setattr(smo, "solve", None)
    with pytest.raises(InvalidInput, match="two rows of each class, got one of class 7"):
        mc.SVC(K, calibrated=True).fit(X[:5], np.array([3, 3, 3, 3, 7]))


# -- the duality gap --------------------------------------------------------------------------------------------------


def hinge(t):
    return np.maximum(0.0, t)


def primal_less_dual(name, model, w):
    """For each function, naively: the primal with its norm and losses, less the dual with its coefficients."""
    labels, gaps = y > 0, []
    f = np.reshape(model.function_(X), (120, -1))
    b, beta = np.atleast_1d(model.intercept_), np.zeros((120, f.shape[1]))
    beta[model.support_] = np.reshape(model.dual_coef_, (-1, f.shape[1]))
    for c in range(f.shape[1]):
        own, h = beta[:, c], f[:, c] - b[c]
        squared = own @ K(X) @ own
        assert squared == pytest.approx(own @ h, rel=1e-6)
        if name == "SVC":
            primal, dual = 2.0 * w @ hinge(1 - np.where(labels, 1, -1) * f[:, c]), np.abs(own).sum()
        elif name == "SVR":
            primal, dual = 2.0 * w @ hinge(np.abs(y - f[:, c]) - 0.1), y @ own - 0.1 * np.abs(own).sum()
        elif name == "NuSVR":
            outside = 2.0 * w @ hinge(np.abs(y - f[:, c]) - model.epsilon_)
            primal, dual = outside + 2.0 * 0.3 * w.sum() * model.epsilon_, y @ own
        elif name == "quantiles":
            r, tau = y - f[:, c], model.quantiles_[c]
            primal, dual = 2.0 * w @ np.maximum(tau * r, (tau - 1) * r), y @ own
        elif name == "OneClassSVM":
            primal, dual = w @ hinge(model.offset_ - h) - model.offset_ * 0.3 * w.sum(), 0.0
        elif name == "NuSVC":  # as it was before it was divided by ρ
            rho = 1 / model.C_[0]
            squared *= rho**2
            primal = w @ hinge(rho - np.where(labels, 1, -1) * f[:, c] * rho) - 0.3 * w.sum() * rho
            dual = 0.0
        gaps.append(0.5 * squared + primal - (dual - 0.5 * squared))
    return gaps


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-7])
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("SVC", mc.SVC(K, C=2.0)),
        ("NuSVC", mc.NuSVC(K, nu=0.3)),
        ("SVR", mc.SVR(K, C=2.0)),
        ("NuSVR", mc.NuSVR(K, C=2.0, nu=0.3)),
        ("quantiles", mc.KernelQuantileRegressor(K, C=2.0, quantile=[0.2, 0.7])),
        ("OneClassSVM", mc.OneClassSVM(K, nu=0.3)),
    ],
)
def test_the_duality_gap_is_the_primal_less_the_dual(name, model, tol):
    w = np.random.default_rng(2).integers(1, 4, 120).astype(float)
    target = {"SVC": y > 0, "NuSVC": y > 0, "OneClassSVM": None}.get(name, y)
    model = clone(model).set_params(tol=tol).fit(X, target, sample_weight=w)
    expected = primal_less_dual(name, model, w)
    assert model.duality_gap_.shape == model.objective_.shape == (len(expected),)
    assert (model.duality_gap_ >= 0).all()
    np.testing.assert_allclose(
        model.duality_gap_, expected, atol=1e-9 * w.sum() + 1e-6 * np.abs(model.objective_).max()
    )
    if tol == 0.3:
        assert model.duality_gap_.max() > 0.01
    if tol == 1e-7:
        assert model.duality_gap_.max() < 1e-3


def test_the_duality_gap_of_every_pair_and_after_an_early_end():
    model = mc.SVC(K, tol=1e-6).fit(X, LABELS)
    assert model.duality_gap_.shape == (6,)
    for p, (a, b) in enumerate(combinations(range(4), 2)):
        own = np.isin(LABELS, [a, b])
        h = hinge(1 - np.where(LABELS[own] == b, 1, -1) * model.function_(X[own])[:, p])
        squared = model.function_.norm()[p] ** 2
        assert model.duality_gap_[p] == pytest.approx(0.5 * squared + h.sum() + model.objective_[p], abs=1e-6)
    with pytest.warns(ConvergenceWarning):
        early = mc.SVC(K, max_iter=3).fit(X, y > 0)
    assert early.duality_gap_[0] > 10 * model.duality_gap_.max()


# -- weights that cannot be meant --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [mc.SVC(K), mc.NuSVC(K, nu=0.2), mc.SVR(K), mc.NuSVR(K), mc.OneClassSVM(K), mc.KernelRidge(K)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (
            1 + 1j,
            r"^`sample_weight` must hold 120 finite numbers [^`]*, got complex numbers\. Pass one real",
        ),
        (complex(2.0), "got complex numbers"),
        (np.nan, "got nan in row 3"),
        (1e-320, r"between 2.2e-308 and 1e\+150, .*got 9.99989e-321 in row 3\. Divide the weights"),
        (1e300, r"got 1e\+300 in row 3"),
    ],
)
def test_weights_that_cannot_be_meant_give_words(model, weight, words):
    w = np.ones(120, dtype=type(weight))
    w[3] = weight
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match=words):
            model.fit(X, y > 0, sample_weight=w)


def test_a_matrix_of_zeros_is_a_kernel_matrix():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert negative_eigenvalue(mc.gram.of(mc.FromFunction(lambda a, b: 0.0), X[:20])) is None
        mc.SVC(mc.FromFunction(lambda a, b: 0.0)).fit(X[:20], LABELS[:20])
