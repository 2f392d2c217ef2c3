"""What callbacks are told of a fit, and that they may end it."""

from __future__ import annotations

import io
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import mercer as mc
from mercer.models import progress as module
from mercer.models.progress import STEPS, SolverProgress, share_done
from mercer.models.svm import costs
from mercer.solvers import smo

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from release 1.9 on")
ProgressBar, ScoringMonitor = callback.ProgressBar, callback.ScoringMonitor

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3))
y = X[:, 0] + 0.3 * rng.normal(size=150)
K = mc.Gaussian(1.0)
MODELS = {
    "SVC": (mc.SVC(K), y > 0),
    "NuSVC": (mc.NuSVC(K, nu=0.3), y > 0),
    "SVR": (mc.SVR(K), y),
    "NuSVR": (mc.NuSVR(K), y),
    "KernelQuantileRegressor": (mc.KernelQuantileRegressor(K), y),
    "OneClassSVM": (mc.OneClassSVM(K, nu=0.2), None),
}


class Recorder:
    """Everything that a callback is told, and in which thread it is: never in two at once."""

    def __init__(self, stop_after=None):
        self.told, self.stop_after, self.inside = [], stop_after, threading.Lock()

    def setup(self, estimator, context):
        self.told.append(("setup", context, None))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context, None))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context, None))

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        assert self.inside.acquire(blocking=False)
        self.told.append(("end", context, metadata))
        self.inside.release()
        return self.stop_after is not None and len(self.ends()) >= self.stop_after

    def ends(self, name=None):
        return [(c, m) for what, c, m in self.told if what == "end" and name in (None, c.task_name)]


@pytest.mark.parametrize("name", MODELS)
def test_each_machine_tells_the_way_to_its_optimum(name):
    model, target = MODELS[name]
    told = Recorder()
    fitted = clone(model).set_callbacks(told).fit(X, target)
    plain = clone(model).fit(X, target)
    np.testing.assert_array_equal(fitted.dual_coef_, plain.dual_coef_)
    assert [what for what, _, _ in told.told[:2]] == ["setup", "begin"]
    assert [what for what, _, _ in told.told[-2:]] == ["end", "teardown"]
    root = told.told[0][1]
    assert (root.estimator_name, root.task_name, root.max_subtasks) == (name, "fit", STEPS)
    steps = told.ends("step")
    assert 0 < len(steps) <= STEPS
    last = steps[-1][1]["progress"]
    assert last.gap == fitted.gap_ <= fitted.tol
    assert last.objective == pytest.approx(fitted.objective_.sum())
    assert last.support >= len(fitted.support_)
    assert not {"_watch", "_callback_fit_ctx"} & set(vars(fitted))


def test_steps_are_shares_of_the_way_on_a_logarithmic_scale(monkeypatch):
    told = Recorder()
    model = mc.SVC(K, tol=1e-3).set_callbacks(told)

    def solve(problem, *, progress, **options):
        for gap in (1.0, 10**-1.5, 0.1, 1e-3):  # the third one is a step back
            assert progress(smo.MarginStep(iteration=1, gap=gap, tol=1e-3, objective=-1.0, support=2))
        return real(problem, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    model.fit(X, y > 0)
    gaps = [m["progress"].gap for _, m in told.ends("step")]
    assert gaps.count(1.0) == 0
    assert gaps.count(10**-1.5) == (STEPS - 1) // 2
    assert gaps.count(0.1) == 0
    assert len(gaps) == STEPS


def test_a_stalled_problem_is_heard_of_all_the_same(monkeypatch):
    told = Recorder(stop_after=2)
    heard = []

    def solve(problem, *, progress, **options):
        heard.extend(
            progress(smo.MarginStep(iteration=1, gap=1.0, tol=1e-3, objective=-1.0, support=2)) for _ in range(4)
        )
        return real(problem, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    monkeypatch.setattr(module, "HEARTBEAT", -1.0)
    mc.SVC(K).set_callbacks(told).fit(X, y > 0)
    assert heard == [True, False, False, False]


@pytest.mark.parametrize("calibrated", [False, True])
def test_each_pair_of_classes_is_a_task(calibrated):
    told = Recorder()
    labels = np.digitize(y, [-0.5, 0.0, 0.5])
    model = mc.SVC(K, calibrated=calibrated).set_callbacks(told).fit(X, labels)
    pairs = 6 * (6 if calibrated else 1)
    assert told.told[0][1].max_subtasks == pairs
    problems = told.ends("problem")
    assert sorted(c.task_id for c, _ in problems) == list(range(pairs))
    objectives = sorted(m["progress"].objective for _, m in problems)
    if not calibrated:
        np.testing.assert_allclose(objectives, np.sort(model.objective_))


def test_long_problems_of_several_are_told_in_steps(monkeypatch):
    monkeypatch.setattr(costs, "OWN_THREADS", 100)
    told = Recorder()
    mc.SVC(K, multiclass="ovr").set_callbacks(told).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert [c.max_subtasks for c, _ in told.ends("problem")] == [STEPS] * 3
    assert {c.parent.task_name for c, _ in told.ends("step")} == {"problem"}


def test_a_callback_may_stop_between_problems():
    told = Recorder(stop_after=2)
    labels = np.digitize(y, [-0.5, 0.0, 0.5])
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        model = mc.SVC(K).set_callbacks(told).fit(X, labels)
    assert model.status_ == "stopped by the caller"
    assert 2 <= len(told.ends("problem")) <= 3  # the other thread's may have begun
    assert model.predict(X).shape == (150,)


def test_a_callback_may_stop_a_long_problem(monkeypatch):
    monkeypatch.setattr(smo, "CHUNK", 5)
    told = Recorder(stop_after=1)
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        model = mc.SVC(K, C=1000.0, tol=1e-8).set_callbacks(told).fit(X, y > 0)
    full = mc.SVC(K, C=1000.0, tol=1e-8).fit(X, y > 0)
    assert model.n_iter_ < full.n_iter_ / 2
    assert model.gap_ > 1e-8


def test_scikit_learns_own_callbacks(capsys):
    pytest.importorskip("rich")
    scores = ScoringMonitor(scoring="accuracy")
    model = mc.SVC(K).set_callbacks(ProgressBar(), scores).fit(X, y > 0, sample_weight=np.ones(150))
    (entry,) = scores.get_logs().data
    assert entry["accuracy"] == model.score(X, y > 0)
    assert "SVC - fit" in capsys.readouterr().out


def test_clones_and_grids_take_callbacks_along():
    told = Recorder()
    grid = GridSearchCV(mc.SVC(K).set_callbacks(told), {"C": [0.1, 1.0]}, cv=2).fit(X, y > 0)
    assert len(told.ends("fit")) == 2 * 2 + 1
    pytest.importorskip("rich")
    grid = GridSearchCV(mc.SVC(K), {"C": [0.1, 1.0]}, cv=2).set_callbacks(ProgressBar()).fit(X, y > 0)
    assert grid.best_estimator_.set_callbacks() is grid.best_estimator_


def test_callbacks_are_torn_down_after_an_interrupt(monkeypatch):
    def solve(problem, **options):
        raise smo.Interrupted(real(problem, tol=0.1))

    real, told = smo.solve, Recorder()
    monkeypatch.setattr(smo, "solve", solve)
    model = mc.SVR(K).set_callbacks(told)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert told.told[-1][0] == "teardown"
    assert not told.ends("fit")
    assert "_watch" not in vars(model)


def test_nobody_is_told_without_callbacks(monkeypatch):
    def solve(problem, *, progress, **options):
        assert progress is None
        return real(problem, progress=progress, **options)

    real = smo.solve
    monkeypatch.setattr(smo, "solve", solve)
    mc.SVC(K).fit(X, np.digitize(y, [-0.5, 0.5]))
    mc.OneClassSVM(K).fit(X)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_say_objective_gap_support_and_time_left(monkeypatch):
    monkeypatch.setattr(smo, "CHUNK", 20)
    out = io.StringIO()
    model = mc.SVC(K, C=100.0).set_callbacks(SolverProgress(every=0.0, stream=out)).fit(X, y > 0)
    lines = out.getvalue().splitlines()
    assert len(set(lines)) > 20  # in a few digits, two reports of a slow iteration may look alike
    assert any("s left" in line for line in lines[:-1])
    assert lines[-1].startswith(f"SVC: 100 %, objective {model.objective_[0]:.6g}, gap {model.gap_:.1e} (to 0.001), ")
    assert f"{len(model.support_)} support vectors" in lines[-1]
    assert "left" not in lines[-1]
    screen = Terminal()
    told = SolverProgress(stream=screen)
    labels = np.digitize(y, [-0.5, 0.5])
    mc.SVC(K).set_callbacks(told).fit(X, labels)
    assert screen.getvalue().endswith("\033[K\n")
    assert screen.getvalue().count("\n") == 1
    assert "SVC: 100 %, problem 3 of 3, objective" in screen.getvalue()
    assert not told._fits
    pickle.loads(pickle.dumps(SolverProgress()))


def test_lines_of_the_hard_margin_know_no_share():
    out = io.StringIO()
    mc.SVC(mc.Linear(), C=np.inf).set_callbacks(SolverProgress(stream=out)).fit(X, X[:, 0] > 0)
    assert out.getvalue().startswith("SVC: problem 1, objective")


def test_share_of_the_way():
    assert share_done(1.0, 1e-3, 1e-3) == 1.0
    assert share_done(1.0, 1.0, 1e-3) == share_done(1.0, 5.0, 1e-3) == 0.0
    assert share_done(1.0, 0.1, 1e-3) == pytest.approx(1 / 3)
    assert share_done(0.0, 0.0, 1e-3) == 1.0
