"""The time of the models of the menu: their sizes are planned for it, and the clock only stops what takes longer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mercer as mc
from mercer import InvalidInput, KernelGLM, Spectrum
from mercer.data.objects import object_array
from mercer.models import menu
from mercer.models.auto.plan import Clock, Plan
from mercer.models.auto.stages import LastFit, in_stages
from mercer.models.explaining.similar import kept_rows
from mercer.models.offers import gaussian_process
from mercer.models.offers import request as requests
from mercer.models.offers.request import sample
from mercer.models.provenance import Provenance

NAMES = [(task, name) for task in ("regression", "classification") for name in menu.MENU[task] if name != "auto"]


@pytest.fixture
def few(monkeypatch):
    """Few rows are many."""
    monkeypatch.setattr(requests, "FEWEST_ROWS", 50)


def data(task, name, n=600):
    own = np.random.default_rng(0)
    X = own.uniform(-2, 2, size=(n, 2))
    mean = np.sin(2 * X[:, 0]) + X[:, 1]
    if task == "classification":
        return X, np.where(mean + 0.3 * own.normal(size=n) > 0, "yes", "no")
    return X, own.poisson(np.exp(mean)) if name == "poisson" else mean + 0.1 * own.normal(size=n)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("task", "name"), NAMES)
def test_the_plan_decides_how_many_rows_are_used(few, task, name):
    X, y = data(task, name)
    short, again = (menu.fit(name, X, y, task=task, time=2e-5) for _ in range(2))
    assert short.in_time
    assert short.last == again.last
    assert (short.model.predict(X) == again.model.predict(X)).all()
    assert short.last.rows < 600 or short.last.centres is not None or "of 600 rows" in " ".join(short.choices)
    assert len(set(short.model.predict(X))) > 1
    if short.last.rows < 600:
        assert f"{short.last.rows} of 600 rows: more would take longer than the given time" == str(short.last)


@pytest.mark.parametrize(("task", "name"), [each for each in NAMES if each[1] != "local"])
def test_enough_time_uses_all_rows(few, task, name):
    X, y = data(task, name, 250)
    whole = menu.fit(name, X, y, task=task, time=1e4)
    assert str(whole.last) == "all 250 rows"
    assert whole.model.score(X, y) > (0.2 if name == "poisson" else 0.6)


@pytest.mark.parametrize("name", ["ridge", "gp", "svm", "poisson", "nw", "neighbors", "linear"])
def test_the_clock_ends_the_search_and_says_so(monkeypatch, name):
    looks = itertools.count()
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: 100.0 * next(looks)))
    X, y = data("regression", name, 300)
    fitted = menu.fit(name, X, y, time=30.0)
    assert fitted.model.predict(X).shape == (300,)
    if name == "poisson":  # the only one of these with candidates
        assert not fitted.in_time
        assert "the time was over before all candidates were tried" in fitted.choices


def test_a_stage_that_the_clock_stops_is_given_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))
    clock, seen = Clock(10.0), []

    def run(size):
        seen.append(size)
        now[0] += size
        return size, now[0] < 10.0

    assert in_stages(clock, [1, 2, 4, 8, 16], run, lambda result: result[1]) == (4, (4, True))
    assert seen == [1, 2, 4, 8]
    assert clock.stop == "time"


def test_the_first_stage_is_always_carried_out(monkeypatch):
    looks = itertools.count()
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: 100.0 * next(looks)))
    clock = Clock(1.0)
    assert in_stages(clock, [1, 2], lambda size: size) == (1, 1)
    assert clock.stop == "time"


@pytest.mark.parametrize("time", [0, -1.0, np.nan, "long"])
def test_a_time_that_is_no_time_is_refused(time):
    with pytest.raises(ValueError, match="`time` must be"):
        menu.fit("ridge", np.ones((5, 1)), np.arange(5.0), time=time)


def test_a_refit_uses_the_same_share_of_the_rows(few):
    X, y = data("regression", "svm")
    fitted = menu.fit("svm", X[:400], y[:400], time=2e-5)
    again = menu.refit(fitted, X, y)
    assert fitted.last.rows == 50
    assert again.last == LastFit(75, 600, None, "time")
    assert again.model.C == fitted.model.C


@pytest.mark.thorough
def test_counts_that_vary_more_than_poissons_are_negative_binomial():
    own = np.random.default_rng(0)
    X = own.uniform(-1, 1, size=(300, 1))
    mu = np.exp(1.5 + X[:, 0])
    plain = menu.fit("poisson", X, own.poisson(mu), time=1e3)
    assert plain.model.family_.name == "poisson"
    assert "Poisson distribution" in plain.choices[-1]
    wide = menu.fit("poisson", X, own.poisson(mu * own.gamma(1.0, 1.0, size=300)), time=1e3)
    assert 0.6 < wide.model.family_.theta < 1.7
    assert wide.choices[-1].startswith("negative binomial, since the variance of left-out training counts is")
    narrow, widened = (np.ptp(fitted.model.predict_interval(X), axis=1).mean() for fitted in (plain, wide))
    assert widened > 1.5 * narrow


def test_a_threshold_of_an_automatic_model_is_chosen_on_the_rows_of_its_fit(few):
    X, y = data("classification", "auto", 1500)
    fitted = menu.fit("auto", X, y, task="classification", decision={"threshold": "f1"}, time=0.02)
    inside = fitted.model.model_
    assert len(fitted.rows) < 1500
    assert ((inside.loo_proba_[:, 1] > 0.5) == (y[fitted.rows] == "yes")).mean() > 0.8
    assert fitted.model.score(X, y) > 0.85


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_kept_rows_of_a_sample_are_found_in_the_file(few, task):
    pytest.importorskip("polars")
    from mercer.cli.kept_rows import places_of, targets_of

    X, y = data(task, "svm", 300)
    places = np.arange(300) + 7  # in the file, other rows come first
    fitted = menu.fit("svm", X, y, task=task, time=1e-4)
    points = kept_rows(fitted.model)[0]
    origin = Provenance.of(X, y, classes=task == "classification", places=places, fitted=fitted.rows)
    assert origin.rows == 300 > len(fitted.rows) == len(origin.places)
    found = places_of(fitted.model, origin, points.n)
    np.testing.assert_array_equal(points.raw, X[np.subtract(found, 7)])
    assert targets_of(fitted.model, origin, points.n) == y[np.subtract(found, 7)].tolist()


def test_penalties_are_tried_in_both_directions(few):
    scores = {1.0: 0.5, 0.1: 0.4, 0.01: 0.3, 0.001: 0.9, 10.0: 0.45, 100.0: 0.7}
    tried = []

    def candidate(alpha):
        return f"alpha = {alpha:g}", lambda: (tried.append(alpha) or alpha, scores[alpha])

    request = requests.Request("regression", None, False, Plan(1.0, 9), Clock(1.0), None, 0, lambda *_: None)
    paths = ((1.0, 0.1, 0.01, 0.001), (10.0, 100.0))
    assert request.best((map(candidate, path) for path in paths), "score", 9, 9) == 100.0
    assert tried == [1.0, 0.1, 0.01, 10.0, 100.0]
    assert request.choices == ["alpha = 100, the best of 5 candidates (score 0.7)"]


def test_few_noisy_rows_get_a_large_penalty():
    own = np.random.default_rng(1)
    X = own.normal(size=(60, 8))
    y = own.uniform(size=60) < 1 / (1 + np.exp(-0.3 * X[:, 0]))
    assert menu.fit("linear", X, y, task="classification").choices[0].startswith("alpha = 100, ")


def test_the_penalty_of_a_negative_binomial_model_is_chosen_for_it():
    own = np.random.default_rng(3)
    X = own.uniform(-3, 3, size=(200, 1))
    mean = 8 * np.exp(np.sin(X[:, 0]))
    y = own.negative_binomial(2, 2 / (2 + mean)).astype(float)
    fitted = menu.fit("poisson", X, y)
    assert fitted.choices[0].startswith("alpha = 1, ")
    assert sum(choice.startswith("alpha") for choice in fitted.choices) == 1
    of_poisson = KernelGLM(family=fitted.model.family, alpha=10.0).fit(X, y)  # the best penalty for that distribution
    assert fitted.model.loo_score_ > of_poisson.loo_score_


def test_a_fit_to_more_rows_keeps_a_rare_class(few):
    X, y = data("classification", "neighbors", 3000)
    y = np.where(np.arange(3000) % 1000 == 9, "rare", y)
    part = np.r_[:1500, 2009]
    fitted = menu.fit("neighbors", X[part], y[part], task="classification", time=1e-4, random_state=3)
    again = menu.refit(fitted, X, y)
    assert again.last.rows < 300
    assert again.model.model_.classes_.tolist() == ["no", "rare", "yes"]
    np.testing.assert_array_equal(again.rows, sample(y, again.last.rows, "classification", 3))
    assert again.model.predict_proba(X[:2]).shape == (2, 3)


def test_local_models_of_texts(few):
    words, y = ["abc", "abd", "xyz", "xyw"] * 30, np.repeat([[0.0, 1.0, 5.0, 6.0]], 30, axis=0).ravel()
    for time in (1.0, 1e-9):
        for name in ("neighbors", "nw"):
            fitted = menu.fit(name, words, y, kernel=Spectrum(2), time=time)
            assert fitted.model.predict(["abc"])[0] < 1 < 4 < fitted.model.predict(["xyz"])[0]
            assert (len(fitted.rows) == 120) == (time == 1.0)
    with pytest.raises(InvalidInput, match=r"numbers as X.*NadarayaWatsonRegressor"):
        menu.fit("local", words, y, kernel=Spectrum(2))


def test_the_time_is_also_for_the_fit_that_chooses_a_threshold(few, monkeypatch):
    monkeypatch.setattr(menu, "LEFT_OUT_ROWS", 200)
    X, y = data("classification", "auto", 220)
    by_f1 = {"threshold": "f1"}
    for n, decision, time in ((220, by_f1, 0.01), (220, {"threshold": 0.3}, 0.02), (190, by_f1, 0.02)):
        fitted = menu.fit("auto", X[:n], y[:n], task="classification", decision=decision, time=0.02)
        assert fitted.model.model_.time == fitted.model.model.time == time


@pytest.mark.parametrize("name", ["ridge", "gp", "svm", "local", "linear"])
def test_no_prediction_is_negative_if_no_target_is(name, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(60, 1))
    y = np.maximum(6 * X[:, 0] + rng.normal(size=60), 0.0)
    far = np.linspace(-4, 4, 50)[:, None]
    fitted = menu.fit(name, X, y, time=2.0)
    inner = fitted.model.model_
    assert inner.predict(far).min() < 0, "otherwise this table shows nothing"
    assert fitted.model.predict(far) == pytest.approx(np.maximum(inner.predict(far), 0.0))
    if fitted.model.has_intervals():
        assert fitted.model.predict_interval(far).min() >= 0
    again = menu.refit(fitted, X[:50], y[:50]).model
    assert again.predict(far).min() == 0
    again.save(tmp_path / "m.mercer")
    assert mc.load(tmp_path / "m.mercer").predict(far) == pytest.approx(again.predict(far))
    assert menu.fit(name, X, y - 1.0, time=2.0).model.predict(far).min() < 0, "some targets are negative"


def test_many_classes_leave_time_for_fewer_rows_of_a_machine(monkeypatch):
    monkeypatch.setattr(requests, "FEWEST_ROWS", 40)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    rows = [
        menu.fit("svm", X, rng.integers(0, k, size=600), task="classification", time=1.0).last.rows for k in (2, 12)
    ]
    assert rows[1] < rows[0]


def test_the_plan_of_a_gaussian_process_counts_the_intervals_of_scored_rows(monkeypatch):
    sizes = []

    class Fast:
        kernel_, alpha_ = mc.Gaussian(1.0), 0.1

        def __init__(self, *args, **options):
            pass

        def get_params(self, deep=False):
            return {}

        def fit(self, X, y):
            sizes.append(len(y))
            return self

    monkeypatch.setattr(mc, "GaussianProcessRegressor", Fast)
    X = np.zeros((14_000, 1))
    monkeypatch.setattr(gaussian_process, "SCORED", 0.0)
    menu.fit("gp", X, X[:, 0] - 1.0, kernel=mc.Gaussian(1.0), time=11.0)
    more = sizes[-1]
    monkeypatch.setattr(gaussian_process, "SCORED", 0.25)
    menu.fit("gp", X, X[:, 0] - 1.0, kernel=mc.Gaussian(1.0), time=11.0)
    assert sizes[-1] < 0.7 * more
    assert 0.25 * 14_000 * gaussian_process.VARIANCE * sizes[-1] ** 2 < 0.3 * 11.0, "7,642 rows took 10 s for these"


def test_texts_are_refused_by_a_model_of_numbers_with_the_kernel_that_suits_them():
    pl = pytest.importorskip("polars")
    words = pl.DataFrame({"text": ["a b c d", "b c d e f", "some more"] * 5})
    with pytest.raises(mc.InvalidInput, match=r"'ridge' with the kernel NGrams\(1, unit='words'\).on\('text'\)"):
        menu.fit("linear", words, np.arange(15.0))
    kernel = mc.parse("NGrams(1, unit='words').on('text')")
    y = np.arange(15.0) % 3
    assert menu.fit("ridge", words, y, kernel=kernel, time=10.0).model.score(words, y) > 0.5


@pytest.mark.parametrize("name", ["ridge", "nw", "logistic"])
def test_every_model_with_a_kernel_takes_graphs(name):
    graphs = [mc.Graph([(i, (i + 1) % n) for i in range(n - 1 + k)]) for k in (0, 1) for n in (4, 5, 6, 7, 8)] * 4
    X, y = object_array(graphs)[:, None], np.tile(np.repeat([0, 1], 5), 4)
    assert menu.fit(name, X, y, task="classification", time=10.0).model.score(X, y) > 0.9
