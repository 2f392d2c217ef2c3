"""The plan of a fit: the same choice as `fit`, and a prediction that follows the work."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import mercer as mc
from mercer.models import menu, planning
from mercer.solvers import prediction
from mercer.solvers.choice import Choice, Size
from mercer.solvers.prediction import Prediction, Spectrum, Speed, predict, steps

SPEED = Speed(
    product={4: 1.0, 8: 2.0},
    rows={4: 2.0, 8: 4.0},
    fill={4: 1.0, 8: 2.0},
    add={4: 0.5, 8: 1.0},
    factor={4: 0.5, 8: 1.0},
    eigen=5.0,
    fetch=0.1,
)
FLAT = Spectrum(np.zeros(10))


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Fixed speeds instead of measured ones, but in one test."""
    monkeypatch.setattr(planning, "measure", lambda gram, targets: SPEED)


def data(n, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, np.sin(X[:, 0])


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.1},
        {"alpha": 0.1, "n_centers": 30},
        {"alpha": 0.1, "budget": "200 kB", "kernel": mc.Gaussian(1.0) * mc.Polynomial(2, c=1.0)},
        {"alpha": 0.1, "budget": "200 kB"},
        {"alpha": 1e-3, "budget": "30 kB"},
        {"alpha": "loo"},
        {"alpha": "loo", "budget": "400 kB"},
        {"alpha": 0.0},
        {"alpha": 0.1, "solver": "eigen"},
        {"alpha": 0.1, "solver": "cg", "fit_intercept": True},
    ],
    ids=str,
)
def test_the_plan_is_what_fit_does(options):
    X, y = data(300)
    model = mc.KernelRidge(**{"kernel": mc.Gaussian(1.0)} | options)
    plan = mc.plan(model, X)
    model.fit(X, y)
    assert (plan.n, plan.solver) == (300, model.solver_)
    assert plan.centers == (len(model.function_) if model.solver_ == "nystrom" else 0)
    assert plan.seconds > 0
    assert plan.nbytes > 0
    if plan.rank:
        assert f"preconditioned by {plan.rank} randomly pivoted columns" in model.status_
    if not isinstance(model.alpha, str) and plan.why != "as requested":
        assert plan.why in model.status_


@pytest.mark.thorough
def test_sizes_without_data():
    model = mc.KernelRidge(mc.Gaussian(3.0), alpha=0.1, budget="2 GB")
    plans = [mc.plan(model, n=n, d=20) for n in (1000, 10_000, 100_000, 1_000_000)]
    assert [plan.solver for plan in plans] == ["cholesky", "cg", "cg", "nystrom"]
    assert [plan.rank for plan in plans] == [0, 500, 2236, 0]
    assert plans[2].nbytes < 2e9
    words = str(plans[2])
    assert words.startswith("100,000 rows: cg with 2,236 pivoted columns as the preconditioner, about ")
    assert "a float32 matrix of 100000 points takes 40 GB, the budget is 2 GB" in words
    assert "1,000,000 rows: nystrom on 3,952 centres" in str(plans[3])
    # A kernel whose entries cost more reaches the limit of a pass earlier.
    slow = mc.plan(mc.KernelRidge(mc.Matern(3.0) + mc.Gaussian(3.0) * mc.Linear(), budget="2 GB"), n=150_000, d=20)
    assert slow.solver == "nystrom"


def test_a_sample_stands_for_more_rows():
    X, _ = data(300, 6)  # more columns than a grid of frequencies takes, whose plan solves the problem on the grid
    model = mc.KernelRidge(alpha=0.1, budget="2 GB")
    assert mc.plan(model, X, n=10**6).n == 10**6
    texts = mc.plan(mc.KernelRidge(mc.Spectrum(2), alpha=0.1), ["aab", "bba", "abab"] * 5)
    assert (texts.n, texts.solver) == (15, "cholesky")


def test_rows_in_a_file_are_planned_as_they_are_fitted(tmp_path):
    pl = pytest.importorskip("polars")
    X, y = data(400, 6)
    pl.DataFrame(X).with_columns(pl.Series("y", y)).write_parquet(tmp_path / "rows.parquet")
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1)
    plans = [mc.plan(model, tmp_path / "rows.parquet", target="y"), mc.plan(model, mc.Batches(X))]
    model.fit(tmp_path / "rows.parquet", target="y")
    for plan in plans:
        assert (plan.n, plan.solver, plan.centers) == (400, model.solver_, len(model.function_))
        assert "the rows are read in batches" in str(plan)
    assert mc.plan(model, mc.Batches(X), n=10**6).n == 10**6
    with pytest.raises(mc.InvalidInput, match=r"Rows in batches need Nyström centres.*got solver='cg'"):
        mc.plan(mc.KernelRidge(solver="cg"), mc.Batches(X))
    with pytest.raises(mc.InvalidInput, match="`target` names a column of a file"):
        mc.plan(model, X, target="y")


@pytest.mark.parametrize("given", [{}, {"n": 10}, {"d": 3}, {"X": np.ones((4, 2)), "d": 2}])
def test_a_plan_needs_data_or_sizes(given):
    with pytest.raises(mc.InvalidInput, match=r"the data, or the numbers of rows and columns.*mc.plan\(model, X\)"):
        mc.plan(mc.KernelRidge(), **given)


def test_other_models_are_refused():
    with pytest.raises(mc.InvalidInput, match="must be a KernelRidge, got SVC"):
        mc.plan(mc.SVC(), n=10, d=2)
    with pytest.raises(mc.InvalidInput, match="model 'ridge' for regression can be planned without a fit, got 'svm'"):
        menu.plan("svm", np.ones((3, 1)), np.ones(3))
    with pytest.raises(mc.InvalidInput, match="got 'ridge' for classification"):
        menu.plan("ridge", np.ones((3, 1)), np.array([0, 1, 1]), task="classification")


def test_the_shell_plans_for_the_time_of_one_fit(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    from mercer.cli import fitting
    from mercer.cli.speaking import Voice

    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{i},{i % 7}.5\n" for i in range(60)))
    planned = []
    monkeypatch.setattr(fitting.menu, "plan", lambda name, X, y, **given: planned.append(given["time"]))
    monkeypatch.setattr(fitting, "_say_plan", lambda voice, plan: None)
    settings = {"kernel": None, "model": "ridge", "task": "regression", "out": None, "test_size": None, "roles": {}}
    settings |= {"drop_missing_target": False, "centers": None, "seed": 0, "reading": {}, "budget": 64.0, "plan": True}
    for more in ({"report": None, "refit": False}, {"report": "r.html", "refit": True}):
        fitting.fit(Voice(), str(tmp_path / "d.csv"), "y", **settings, **more)
    fitting.fit(Voice(), str(tmp_path / "d.csv"), "y", **settings, report=None, refit=False, folds=5)
    assert planned == pytest.approx([60.0, (60.0 - 6.4) / 2, 10.0])


def test_the_time_follows_the_work():
    size, alpha = Size(1000, np.array([0.1])), np.array([0.1])

    def time(n, choice, centers=0):
        return predict(replace(size, n=n), choice, SPEED, FLAT, tol=1e-3, centers=centers).seconds

    for choice in (Choice("cholesky", ""), Choice("eigen", ""), Choice("cg", "", "factor")):
        assert time(10**6, choice) / time(10**5, choice) == pytest.approx(1000, rel=0.01)
    beyond = Choice("cg", "", "pivots", low_memory=True, rank=100)
    assert time(10**6, beyond) / time(10**5, beyond) == pytest.approx(100, rel=0.02)
    centred = Choice("nystrom", "")
    assert time(10**8, centred, 100) / time(10**7, centred, 100) == pytest.approx(10, rel=0.1)
    # Entries that are kept are computed once, and take memory.
    large = replace(size, n=10**7)
    ways = [predict(large, centred, SPEED, FLAT, tol=1e-3, centers=100, stored=kept) for kept in (False, True)]
    assert ways[1].seconds < 0.6 * ways[0].seconds
    assert ways[1].nbytes - ways[0].nbytes == 4 * 10**7 * 100
    # Blocks take the passes that are allowed.
    once, often = (
        predict(replace(size, n=10**6), Choice("blocks", ""), SPEED, FLAT, tol=1e-3, centers=100, max_passes=k)
        for k in (1, 5)
    )
    assert often.seconds - once.seconds == pytest.approx(4 * prediction.STEP_OVERHEAD * 10**12 * SPEED.rows[4])
    # A smaller penalty or tolerance takes more iterations, up to the limit.
    decay = Spectrum(100.0 / np.arange(1.0, 101.0) ** 2)
    counts = [
        predict(replace(size, alpha=alpha * share), beyond, SPEED, decay, tol=tol, centers=0).iterations
        for share, tol in ((100.0, 1e-3), (10.0, 1e-3), (10.0, 1e-6), (1e-9, 1e-6))
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[2] < counts[3] == 100
    assert predict(size, beyond, SPEED, decay, tol=1e-6, centers=0, max_passes=3).iterations == 3


@pytest.mark.thorough
def test_iterations_are_those_of_the_solver():
    """The spectrum of a sample predicts how many iterations the whole takes, within a factor of two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10)).astype(np.float32)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=3000)
    for alpha in (1.0, 0.03):
        taken = []
        model = mc.KernelRidge(mc.Gaussian(2.0), alpha=alpha, budget="10 MB", progress=taken.append)
        plan = mc.plan(model, X)
        model.fit(X, y)
        assert plan.rank == 387
        assert len(taken) / 2 <= plan.iterations <= 2 * len(taken)


def test_passes_over_the_rows_are_those_of_the_solver(monkeypatch):
    monkeypatch.setattr(prediction.costs, "SAMPLED_FLOPS", 0.0)
    X, y = data(20_000)
    for tol in (1e-2, 1e-4):
        taken = []
        model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, n_centers=50, tol=tol, progress=taken.append)
        plan = mc.plan(model, X)
        model.fit(X, y)
        assert len(taken) / 1.5 <= plan.iterations - 2 <= 1.5 * len(taken) + 1


def test_columns_of_the_matrix_cost_twice_as_much_as_the_symmetric_matrix(monkeypatch):
    """Every entry of them is computed, of the symmetric matrix only half: counted with a kernel's own entries."""
    work = []
    monkeypatch.setattr(prediction, "SQUARE", 40)
    monkeypatch.setattr(prediction, "_shortest", lambda call: work.append(call) or 1.0)
    X, _ = data(50)
    speed = prediction.measure(mc.gram.of(mc.Gaussian(1.0), X), 2)
    assert speed.product == {4: 1 / 2500, 8: 1 / 2500}
    assert speed.rows == {4: 1 / 2000, 8: 1 / 2000}
    shapes = {getattr(call.func, "__self__", np.empty(0)).shape for call in work if hasattr(call, "func")}
    assert {(50, 50), (50, 40)} <= shapes


def test_a_spectrum_continues_by_a_power_law():
    spectrum = Spectrum(1.0 / np.arange(1.0, 401.0) ** 1.5)
    assert spectrum.at(50, 400) == pytest.approx(50**-1.5)
    assert spectrum.at(5000, 4000) == pytest.approx(10 * 5000**-1.5)
    assert Spectrum(np.zeros(400)).at(5000, 4000) == 0.0
    assert steps(1.0, 1e-3) == 1
    assert steps(1e4, 1e-3) == pytest.approx(50 * math.log(2000), rel=0.02)


def test_measured_speeds_are_positive(monkeypatch):
    monkeypatch.setattr(prediction, "SQUARE", 40)
    X, _ = data(50)
    speed = prediction.measure(mc.gram.of(mc.Gaussian(1.0), X), 2)
    times = [
        *speed.product.values(),
        *speed.rows.values(),
        *speed.fill.values(),
        *speed.add.values(),
        *speed.factor.values(),
        speed.eigen,
    ]
    assert len(times) == 11
    assert min(times) > 0
    assert speed.fetch > 0


def test_memory_is_what_the_fit_allocates():
    """The figures of the solvers that store a matrix are those of the budget at which they are chosen."""
    size = Size(10_000, np.array([0.1]))
    assert predict(size, Choice("cholesky", ""), SPEED, FLAT, tol=1e-3, centers=0).nbytes == pytest.approx(
        8e8, rel=0.01
    )
    beyond = Choice("cg", "", "pivots", low_memory=True, rank=2236)
    found = predict(replace(size, n=100_000), beyond, SPEED, FLAT, tol=1e-3, centers=0)
    assert isinstance(found, Prediction)
    assert 0.9e9 < found.nbytes < 1.2e9


def test_memory_of_a_grid_of_frequencies_has_the_preconditioner():
    X, y = data(2000, 2)
    model = mc.KernelRidge(mc.Gaussian(0.3), alpha=0.1, solver="fourier")
    planned = mc.plan(model, X).nbytes
    tracemalloc.start()
    model.fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most / 2 < planned < 2 * most


def test_the_command_line_prints_the_plan_and_saves_nothing(tmp_path, capsys):
    from mercer.cli import fitting
    from mercer.cli.speaking import Voice

    X, y = data(60)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    defaults = {"kernel": None, "task": "auto", "out": None, "report": None, "budget": 60.0, "test_size": None}
    defaults |= {"roles": {}, "drop_missing_target": False, "centers": None, "refit": False, "seed": 0}
    fitting.fit(Voice(color=False), str(path), "y", model="ridge", reading={}, plan=True, **defaults)
    assert capsys.readouterr().out.startswith("48 rows: eigen (the leave-one-out errors of every alpha")
    assert [p.name for p in tmp_path.iterdir()] == ["rows.csv"]
