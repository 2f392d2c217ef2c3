"""Checkpoints: a fit that was killed at any moment continues, and ends with the same coefficients to the last bit."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import mercer as mc
from mercer.data.points import Points
from mercer.files import checkpoint, replace
from mercer.files.checkpoint import CheckpointFile, digest_of
from mercer.solvers import choice, nystrom

N = 120


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = np.sin(X[:, :1] + np.arange(3)) + 0.1 * rng.normal(size=(N, 3)) + 1.0
    return X, y, rng.uniform(0.5, 2.0, N)


def make(path=None, **options):
    """A model for which the matrix does not fit the budget, whose iterations end in float64 at this tolerance."""
    settings = {"alpha": [0.02, 0.3, 0.02], "fit_intercept": True, "tol": 1e-8, "budget": 3 * N * N, **options}
    return mc.KernelRidge(mc.Gaussian(1.5), checkpoint=path, **settings)


@pytest.fixture
def often(monkeypatch):
    """A checkpoint after every iteration."""
    monkeypatch.setattr(CheckpointFile.__init__, "__defaults__", (0.0,))


class Killed(Exception):
    pass


def end():
    """End the fit by an error; a child process waits here for its end."""
    raise Killed


def killed_at(count):
    """A `progress` that ends the fit at the given call."""
    left = iter(range(count, -1, -1))

    def progress(step):
        if next(left) == 0:
            end()

    return progress


@pytest.mark.thorough
def test_killed_anywhere_the_answer_is_the_same(often, tmp_path):
    X, y, w = data()
    steps = []
    whole = make(progress=steps.append).fit(X, y, w)
    assert len(steps) > 15
    path = tmp_path / "fit.ckpt"
    for moment in (0, len(steps) // 2, len(steps) - 1):
        with pytest.raises(Killed):
            make(path, progress=killed_at(moment)).fit(X, y, w)
        assert path.exists() == (moment > 0)
        rest = []
        again = make(path, progress=rest.append).fit(X, y, w)
        # Only iterations since the last checkpoint are repeated: the one that was killed, and the last of a sweep.
        assert len(rest) <= len(steps) - moment + 1
        np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
        np.testing.assert_array_equal(again.intercept_, whole.intercept_)
        assert again.status_ == whole.status_
        assert again.residual_ == whole.residual_
        assert not path.exists()


@pytest.mark.thorough
def test_killed_again_and_again(often, tmp_path):
    X, y, w = data()
    whole, path, tries = make().fit(X, y, w), tmp_path / "fit.ckpt", 0
    while True:
        try:
            again = make(path, progress=killed_at(2)).fit(X, y, w)
            break
        except Killed:
            tries += 1
    assert tries > 5
    np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)


def test_a_time_limit_leaves_the_checkpoint(often, tmp_path):
    X, y, w = data()
    path = tmp_path / "fit.ckpt"
    stop = iter([True, True, True, False])
    with pytest.warns(UserWarning, match="stopped after 4 iterations"):
        make(path, alpha=0.02, progress=lambda step: next(stop)).fit(X, y, w)
    assert path.exists()
    again = make(path, alpha=0.02).fit(X, y, w)
    np.testing.assert_array_equal(again.dual_coef_, make(alpha=0.02).fit(X, y, w).dual_coef_)


def test_a_fit_continues_with_another_budget_of_memory(often, tmp_path, monkeypatch):
    X, y, w = data()
    path = tmp_path / "fit.ckpt"
    monkeypatch.setattr(choice, "pivots", lambda size, limit: 20)
    whole = make(alpha=0.02).fit(X, y, w)
    with pytest.raises(Killed):
        make(path, alpha=0.02, progress=killed_at(3)).fit(X, y, w)
    monkeypatch.setattr(choice, "pivots", lambda size, limit: 30)  # as the memory available now allows
    model = make(path, alpha=0.02, budget=3 * N * N + 100).fit(X, y, w)
    np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)
    assert "20 randomly pivoted columns" in model.status_


def test_a_penalty_that_was_stopped_is_not_finished(often, tmp_path):
    X, y, w = data()
    path, steps = tmp_path / "fit.ckpt", []
    for _ in range(2):  # stopped again where it continued
        steps.clear()
        with pytest.warns(UserWarning, match="stopped after"):
            make(path, progress=lambda step: steps.append(step) or len(steps) != 3).fit(X, y, w)
        assert len(steps) == 3  # the other penalty asks nothing
    again = make(path).fit(X, y, w)
    np.testing.assert_array_equal(again.dual_coef_, make().fit(X, y, w).dual_coef_)
    assert not path.exists()


OTHERS = [
    {"alpha": 0.1},
    {"tol": 1e-7},
    {"random_state": 1},
    {"fit_intercept": False},
    {"kernel": mc.Gaussian(1.6)},
]


@pytest.mark.thorough
def test_other_data_and_parameters_are_refused(often, tmp_path):
    X, y, w = data()
    path = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        make(path, progress=killed_at(3)).fit(X, y, w)
    before = path.read_bytes()
    match = r"fit\.ckpt' must belong to the same data and parameters, got that of another fit\. Choose another path"
    for changed in OTHERS:
        with pytest.raises(mc.InvalidInput, match=match):
            make(path).set_params(**changed).fit(X, y, w)
    shifted = X.copy()
    shifted[7, 1] += 1e-9
    for rows in ((shifted, y, w), (X, y + 1e-9, w), (X, y, w * 2), (X[::-1], y, w), (X.astype("f4"), y, w)):
        with pytest.raises(mc.InvalidInput, match=match):
            make(path).fit(*rows)
    assert path.read_bytes() == before


def test_a_damaged_file_is_refused(often, tmp_path):
    X, y, w = data()
    path = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        make(path, progress=killed_at(3)).fit(X, y, w)
    content = path.read_bytes()
    model = tmp_path / "model.mercer"
    mc.KernelRidge(mc.Gaussian(1.0)).fit(X, y).save(model)
    for damaged in (content[:-5], content[:-1] + bytes([content[-1] ^ 1]), b"", b"text", model.read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(mc.InvalidInput, match=r"must be complete and as a fit wrote it.*\. Choose another path\.$"):
            make(path).fit(X, y, w)
    path.write_bytes(content)
    with pytest.raises(mc.InvalidInput, match="another kind of"):
        mc.load(path)


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path):
    """The system refuses to write more bytes to any file, as a full disk does."""
    path = tmp_path / "fit.ckpt"
    file = CheckpointFile(path, "problem", 0.0)
    file.save({"u": np.arange(10.0)})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(mc.InvalidInput, match=r"folder with free space.*continues at the last checkpoint"):
            file.save({"u": np.arange(10_000.0)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    np.testing.assert_array_equal(file.load()["u"], np.arange(10.0))
    assert os.listdir(tmp_path) == ["fit.ckpt"]
    for place in (tmp_path / "no" / "fit.ckpt", tmp_path):
        with pytest.raises(mc.InvalidInput, match="must be a file in a folder that exists, got"):
            CheckpointFile(place, "problem")


def test_checkpoints_are_written_now_and_then(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: clock[0])
    file = CheckpointFile(tmp_path / "fit.ckpt", "problem")
    for moment, kept in ((0.0, 0), (9.0, 0), (11.0, 2), (20.0, 2), (22.0, 4)):
        clock[0] = moment
        file.save({"i": np.array([len([t for t in (0.0, 9.0, 11.0, 20.0, 22.0) if t < moment])])})
        assert file.load()["i"][0] == kept


def test_other_solvers_write_none(tmp_path):
    X, y, w = data()
    path = tmp_path / "fit.ckpt"
    mc.KernelRidge(mc.Gaussian(1.0), checkpoint=path, progress=killed_at(0)).fit(X, y, w)
    assert not path.exists()


def test_objects_without_a_digest_are_refused():
    with pytest.raises(mc.InvalidInput, match="`checkpoint` needs rows of numbers, texts or categories"):
        digest_of(Points([mc.Graph([(0, 1)]), mc.Graph([(0, 1), (1, 2)])]))


# -- centres, batches and blocks ---------------------------------------------------------------------------------------


def centred(path=None, **options):
    """A fit on centres by iterations with a preconditioner of some rows."""
    return mc.KernelRidge(mc.Gaussian(1.5), alpha=0.1, n_centers=25, checkpoint=path, fit_intercept=True, **options)


class Source:
    """Rows in batches; reading a batch raises `Killed` at the given one, counted over all passes."""

    def __init__(self, X, y, at=None):
        self.X, self.y, self.at, self.read = X, y, at, 0

    def __call__(self):
        for i in range(0, N, 50):
            self.read += 1
            if self.read == self.at:
                end()
            yield self.X[i : i + 50], self.y[i : i + 50]


SETTINGS = ((nystrom.costs, "SAMPLED_FLOPS", 0.0), (nystrom, "sample_size", lambda n, m, tol: 2 * m))
"""Centres are solved by iterations even if a direct solution is cheap."""


@pytest.fixture
def iterating(monkeypatch):
    for place, name, value in SETTINGS:
        monkeypatch.setattr(place, name, value)


WAYS = {
    "centres": lambda path, at: (centred(path, tol=1e-7, progress=at and killed_at(at)), None),
    "blocks": lambda path, at: (
        mc.KernelRidge(
            mc.Gaussian(1.5),
            alpha=0.1,
            solver="blocks",
            n_centers=20,
            checkpoint=path,
            tol=1e-9,
            max_passes=20,
            progress=at and killed_at(at),
        ),
        None,
    ),
    "batches": lambda path, at: (centred(path, tol=1e-7), at and 3 * at + 8),
    "alpha of batches": lambda path, at: (centred(path).set_params(alpha="loo"), at and 12 + (at + 1) // 2),
}


def fit(way, path=None, at=None, shift=0.0):
    """A fit of some way that ends at this moment, and its batches."""
    X, y, w = data()
    X[7, 1] += shift
    if way == "iterations":
        return make(path, progress=at and killed_at(at)).fit(X, y, w), None
    model, batch = WAYS[way](path, at)
    if "batches" not in way:
        return model.fit(X, y[:, 0]), None
    source = Source(X, y[:, 0], batch)
    return model.fit(mc.Batches(source)), source


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore:.*not converged")
def test_centres_batches_and_blocks_continue(way, often, iterating, tmp_path):
    path = tmp_path / "fit.ckpt"
    whole, read = fit(way)
    kept = 0
    for at in (1, 2, 5):
        with pytest.raises(Killed):
            fit(way, path, at)
        kept += path.exists()
        again, rest = fit(way, path)
        np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
        assert again.intercept_ == whole.intercept_
        assert again.status_ == whole.status_
        assert not path.exists()
    assert kept >= 2
    if read is not None:  # one more pass for the digest, and the passes before the end are not repeated
        assert rest.read < read.read + 3


CHILD = """
import sys, threading
sys.path.insert(0, sys.argv[2])
import test_checkpoint as t
t.end = threading.Event().wait
t.CheckpointFile.__init__.__defaults__ = (0.0,)
for place, name, value in t.SETTINGS:
    setattr(place, name, value)
fits = [threading.Thread(target=t.fit, args=(w, f"{sys.argv[1]}/{w}", 5)) for w in ("iterations", *t.WAYS)]
for fit in fits:
    fit.start()
for fit in fits:
    fit.join()
"""


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*not converged")
def test_a_process_killed_with_sigkill(often, iterating, tmp_path):
    """One process with a fit of every way, killed as soon as all of them have written something."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", CHILD, str(tmp_path), os.path.dirname(__file__)]
    ways = ["iterations", *WAYS]
    with subprocess.Popen(arguments, env=environment) as child:
        while child.poll() is None and not all((tmp_path / way).exists() for way in ways):
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    for way in ways:
        with pytest.raises(mc.InvalidInput, match="must belong to the same data and parameters"):
            fit(way, tmp_path / way, shift=1e-9)
        again, whole = fit(way, tmp_path / way)[0], fit(way)[0]
        np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
        assert again.status_ == whole.status_
    assert [path for path in os.listdir(tmp_path) if path in ways] == []


def test_passes_are_not_repeated(often, iterating, tmp_path):
    X, y, _ = data()
    path = tmp_path / "fit.ckpt"
    steps, rest = [], []
    source = Source(X, y[:, 0])
    centred(tol=1e-7, progress=steps.append).fit(mc.Batches(source))
    with pytest.raises(Killed):
        centred(path, tol=1e-7, progress=killed_at(len(steps) - 2)).fit(mc.Batches(Source(X, y[:, 0])))
    again = Source(X, y[:, 0])
    centred(path, tol=1e-7, progress=rest.append).fit(mc.Batches(again))
    assert len(rest) == len(steps)
    assert again.read < 0.7 * source.read


def test_other_rows_in_batches_are_refused(often, iterating, tmp_path):
    X, y, _ = data()
    path = tmp_path / "fit.ckpt"
    with pytest.raises(Killed):
        centred(path, progress=killed_at(1)).fit(mc.Batches(Source(X, y[:, 0])))
    before = path.read_bytes()
    X[100, 2] += 1e-9
    for model in (centred(path), centred(path).set_params(n_centers=24)):
        with pytest.raises(mc.InvalidInput, match="must belong to the same data and parameters"):
            model.fit(mc.Batches(Source(X, y[:, 0])))
    assert path.read_bytes() == before


@pytest.mark.parametrize("way", ["iterations", *WAYS])
@pytest.mark.filterwarnings("ignore:.*not converged")
def test_a_disk_that_is_full_during_the_fit(way, often, iterating, tmp_path, monkeypatch):
    path, written, original = tmp_path / "fit.ckpt", [], replace._to_disk

    def to_disk(name):
        written.append(name)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(name)

    monkeypatch.setattr(replace, "_to_disk", to_disk)
    with pytest.raises(mc.InvalidInput, match=r"folder with free space.*No space left.*continues at the last"):
        fit(way, path)
    assert os.listdir(tmp_path) == ["fit.ckpt"]
    monkeypatch.setattr(replace, "_to_disk", original)
    np.testing.assert_array_equal(fit(way, path)[0].dual_coef_, fit(way)[0].dual_coef_)
