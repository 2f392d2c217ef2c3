"""Few relevant columns among many: without their relevance, every kernel of the race sees mostly noise."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.data.points import Points
from mercer.models.auto import plan as auto_plan
from mercer.models.auto import race as auto_race
from mercer.models.auto.candidates import candidates
from mercer.models.auto.entry import Entry, Problem
from mercer.models.auto.plan import Clock, Plan
from mercer.models.auto.record import Record
from mercer.models.auto.relevance import by_relevance, log_relevance


def product(n=500, noise=18, seed=0):
    """A product of two columns beside columns of noise."""
    own = np.random.default_rng(seed)
    X = own.uniform(-1, 1, size=(n, 2 + noise))
    y = np.tanh(2 * X[:, 0] * X[:, 1])
    return X, (y - y.mean()) / y.std()


def problem(X, y):
    found = candidates(Points(X), {})
    return found.kernels, Problem(Points(X), y[:, None], units=found.units, names=tuple(map(str, range(X.shape[1]))))


def test_the_columns_that_matter_are_found():
    kernels, whole = problem(*product())
    part = whole.in_units()
    entries = [Entry.of(name, kernel, part.points) for name, kernel in kernels.items()]
    logs = next(iter(log_relevance(entries, part, Clock(np.inf)).values()))
    assert sorted(np.argsort(logs)[-2:]) == [0, 1]
    assert logs.max() == 0.0
    assert np.sort(logs)[-3] < np.sort(logs)[-2] - 0.5  # the others are clearly less relevant
    entry = by_relevance(entries[0], {"sigma": logs}, part)
    wider = entry.kernel.theta - Entry.of("", entries[0].start, part.points).vector(part).kernel.theta
    assert sorted(np.argsort(wider[: len(logs)])[:2]) == [0, 1]  # relevant columns have the smallest widths


def error():
    kernels, whole = problem(*product())
    clock, rng = Clock(np.inf), np.random.default_rng(0)
    chosen = auto_race.race(kernels, whole, Plan(8.0, len(whole)), clock, rng, Record(), lambda _: None)
    return chosen.error


@pytest.mark.thorough
def test_a_race_without_relevance_sees_mostly_noise(monkeypatch):
    monkeypatch.setattr(auto_plan, "MOST_FIRST", 200)  # on more rows, widths per column find them by themselves
    found = error()
    monkeypatch.setattr(auto_race, "tuned_by_relevance", lambda *_: [])
    assert found < 0.5 * error()
    assert found < 0.1
