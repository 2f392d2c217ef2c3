"""What an interrupt leaves behind: the old model, none at all, or a whole one that an iterative fit has kept."""

from __future__ import annotations

import ctypes
import inspect
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.linalg as sla
from sklearn.exceptions import NotFittedError

import mercer as mc
from mercer.gram import costs, lapack
from mercer.models import base

SOME = {
    "AutoClassifier": {"time": 0.3},
    "AutoRegressor": {"time": 0.3},
    "ConditionalDensity": {"bandwidth": 1.0, "target_bandwidth": 1.0},
    "ConformalRegressor": {"cv": 3, "method": "cv+"},
    "GaussianProcessRegressor": {"tune": "evidence"},
    "KernelRidge": {"alpha": "loo"},
    "LocalRegression": {"bandwidth": 1.0},
    "NadarayaWatsonClassifier": {"bandwidth": 1.0},
    "NadarayaWatsonRegressor": {"bandwidth": 1.0},
    "SVC": {"calibrated": True},
}
CLASSES = ("Classifier", "Discriminant", "Logistic", "SVC", "Perceptron")
OWN = {base.refitted.__wrapped__.__code__, base.all_or_nothing(lambda self: None).__code__}


def public():
    for name in sorted(mc.__all__):
        found = getattr(mc, name)
        if inspect.isclass(found) and hasattr(found, "fit") and hasattr(found, "get_params"):
            yield name


def make(name):
    own = dict(SOME.get(name, {}))
    if name in ("BoundedRegressor", "ConformalRegressor"):
        own["model"] = mc.KernelRidge(mc.Gaussian(1.0))
    if name == "CalibratedClassifier":
        own["model"] = mc.LeastSquaresClassifier(mc.Gaussian(1.0))
    return getattr(mc, name)(**own)


def data(name, columns, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, columns))
    y = np.abs(X[:, 0]) + rng.uniform(size=30)
    if name in ("GLM", "KernelGLM"):
        y = np.floor(3 * y)
    return X, (X[:, 0] > 0).astype(int) if any(word in name for word in CLASSES) else y


class Interrupt:
    """Ctrl-C at the given number of calls of functions of the library, in the thread that fits."""

    def __init__(self, at=None):
        self.at, self.calls = at, 0

    def __call__(self, frame, event, arg):
        if event != "call" or frame.f_code in OWN or "mercer" not in frame.f_globals.get("__name__", ""):
            return
        self.calls += 1
        if self.calls == self.at:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def __enter__(self):
        assert threading.current_thread() is threading.main_thread()
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)


def answers(model, X):
    for method in ("predict", "transform", "score_samples"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(X))
    raise AssertionError("it says nothing")


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(public()))
@pytest.mark.filterwarnings("ignore")
def test_an_interrupted_fit_leaves_the_old_model_none_or_a_whole_one(name, monkeypatch, tmp_path):
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    first, second = data(name, 2, 0), data(name, 3, 1)
    old = make(name).fit(*first)
    told = answers(old, first[0])
    with Interrupt() as counter:
        make(name).fit(*second)
    places = 6 if counter.calls < 20_000 else 3  # a search repeats the same fits
    for at in np.unique(np.linspace(1, counter.calls, places).astype(int)):
        fresh = make(name)
        given = fresh.__dict__.copy()
        try:
            with Interrupt(at):
                fresh.fit(*second)
        except KeyboardInterrupt as stop:
            if not getattr(stop, "kept", ()):
                assert fresh.__dict__ == given
                with pytest.raises(NotFittedError):
                    answers(fresh, second[0])
                with pytest.raises(mc.InvalidInput, match="must be fitted before it is saved"):
                    fresh.save(tmp_path / "a.mercer")
        if fresh.__dict__ != given:
            assert len(answers(fresh, second[0])) == 30
        before = old.__dict__.copy()
        try:
            with Interrupt(at):
                old.fit(*second)
        except KeyboardInterrupt as stop:
            if not getattr(stop, "kept", ()):
                assert old.__dict__.keys() == before.keys()
                assert all(old.__dict__[key] is value for key, value in before.items())
                np.testing.assert_array_equal(answers(old, first[0]), told)
                continue
        assert len(answers(old, second[0])) == 30  # as whole as if it had never been another
        old.fit(*first)
        told = answers(old, first[0])


@pytest.mark.parametrize("name", ["KernelRidge", "KernelPCA", "GaussianProcessRegressor"])
def test_an_interrupted_tile_is_an_interrupted_fit(name, monkeypatch):
    """Values of the kernel are where most of the time is spent."""
    (X, y), model = data(name, 2, 0), make(name)

    def interrupted(self, block, out):
        raise KeyboardInterrupt

    monkeypatch.setattr(mc.Gaussian, "tile", interrupted)
    monkeypatch.setattr(mc.Gaussian, "fused", lambda *_: None)
    model.set_params(kernel=mc.Gaussian(1.0))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        answers(model, X)


# -- factorisations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factorisations_are_those_of_scipy(dtype, monkeypatch):
    A = np.random.default_rng(0).normal(size=(60, 60))
    A = (A @ A.T + np.eye(60)).astype(dtype)
    potrf, potri, trtri = sla.get_lapack_funcs(("potrf", "potri", "trtri"), (A,))
    for small in (1000, 10):  # in this thread, and in another
        monkeypatch.setattr(costs, "INTERRUPTIBLE_ROWS", small)
        for lower in (True, False):
            L = np.array(A, order="F")
            assert lapack.cholesky(L, lower=lower) == 0
            np.testing.assert_array_equal(L, potrf(A, lower=lower, clean=0)[0])
            for own, other in ((lapack.inverse_from_cholesky, potri), (lapack.inverse_of_triangle, trtri)):
                found = L.copy(order="F")
                assert own(found, lower=lower) == 0
                np.testing.assert_array_equal(found, other(L, lower=lower)[0])
        values, vectors = lapack.eigh(np.array(A, order="F"))
        expected = sla.eigh(A, driver="evd")
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(vectors, expected[1])
        assert lapack.cholesky(np.array(A - 5 * np.eye(60, dtype=dtype), order="F"), lower=True) > 0
    with pytest.raises(ValueError, match="Fortran-ordered"):
        lapack.cholesky(A[::2, ::2], lower=True)


def test_the_caller_looks_for_interrupts_while_a_factorisation_works(monkeypatch):
    looks, enough = [], threading.Event()

    def look():
        looks.append(1)
        if len(looks) == 3:
            enough.set()

    monkeypatch.setattr(lapack, "look", look)
    monkeypatch.setattr(lapack, "CHECK", 1e-3)
    assert lapack.away(lambda: enough.wait(60))  # which ends because this thread looked three times meanwhile
    with pytest.raises(ZeroDivisionError):
        lapack.away(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("model", "routine"),
    [
        (mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver="cholesky"), "potrf"),
        (mc.KernelRidge(mc.Gaussian(1.0), alpha="loo"), "syevd"),
        (mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1), "potrf"),
        (mc.KernelPCA(mc.Gaussian(1.0), solver="eigen"), "syevd"),
    ],
    ids=["ridge", "path", "process", "components"],
)
def test_an_interrupt_does_not_wait_for_lapack(model, routine, monkeypatch):
    """The routine is held until the interrupt has left: a fit that waited for it would never end."""
    left, real = threading.Event(), lapack._routine

    def held(name):
        def wrapped(*arguments):
            if name.endswith(routine):
                left.wait(60)
            real(name)(*arguments)

        return wrapped

    def look():
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(costs, "INTERRUPTIBLE_ROWS", 10)
    monkeypatch.setattr(lapack, "CHECK", 1e-3)
    monkeypatch.setattr(lapack, "_routine", held)
    monkeypatch.setattr(lapack, "look", look)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data("KernelRidge", 2, 0))
    assert not left.is_set()
    left.set()
    with pytest.raises(NotFittedError):
        answers(model, np.zeros((1, 2)))


@pytest.mark.thorough
def test_a_program_ends_beside_a_routine_that_still_works():
    """A library that cleans up under a routine's feet crashes, or waits for ever: here its clean-up is `abort`."""
    if not hasattr(ctypes.CDLL(None) if sys.platform != "win32" else None, "on_exit"):
        pytest.skip("only the GNU C library passes the exit code on; elsewhere the program waits")
    script = """
import ctypes, sys
from mercer.gram import lapack

system = ctypes.CDLL(None)
system.on_exit(ctypes.cast(system.abort, ctypes.c_void_p), None)


def look():
    raise KeyboardInterrupt


lapack.look = look
try:
    lapack.away(system.pause)  # a routine that never ends
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (7, "interrupted\n"), done.stderr


def test_a_matrix_without_rows_has_a_factor():
    assert lapack.cholesky(np.empty((0, 0), order="F"), lower=True) == 0
    assert lapack.eigh(np.empty((0, 0), order="F"))[0].shape == (0,)
