"""Shared set-up: one thread each, the same random examples in every run, and names of tests that never change."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import re
import signal
import sys
import time
import warnings
from pathlib import Path

# Workers share the cores: each has one thread for tiles and one for BLAS, which reads this when NumPy is loaded.
# Tests of many threads ask for them (`threads` below) and so have them on every machine.
os.environ |= dict.fromkeys(("MERCER_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

with warnings.catch_warnings():  # NumPy warns of processor features in the environment that it does not know
    warnings.simplefilter("ignore", ImportWarning)
    import numpy as np

import pytest
from hypothesis import HealthCheck, settings

from mercer.models.auto import plan

sys.path.insert(0, str(Path(__file__).parent))

# No test cuts the power, and waiting for the disk at each of two thousand files takes longer than all that is written.
os.fsync = lambda fd: None

# The clock of automatic models stands still: on a busy machine, too, they try what they have planned. Tests of the time
# limit have clocks of their own.
plan.Clock.now = staticmethod(lambda: 0.0)

# A shell starts what runs in its background with interrupts ignored; tests of interrupts need them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, so that a green run stays green; HYPOTHESIS_PROFILE=explore looks for new ones, twenty
# times as many. Slow laws take a share of either number.
quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("steady", derandomize=True, max_examples=100, **quiet)
settings.register_profile("explore", max_examples=2000, **quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


# -- names of tests ----------------------------------------------------------------------------------------------------

# Workers compare the tests that they have collected. Every second one collects a day later, and each has its own hash
# seed and addresses: a name that depends on any of these is found there.
collected_at = time.time


def pytest_collection(session):
    if int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0) % 2:
        time.time = lambda: collected_at() + 86_400.0


def pytest_collection_finish(session):
    time.time = collected_at
    # What was collected stays until the end: the search for cyclic garbage need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


# -- peers -------------------------------------------------------------------------------------------------------------


def pytest_runtest_setup(item):
    for mark in item.iter_markers("peer"):
        name, release = mark.args
        found = importlib.metadata.version(name)
        if [int(part) for part in found.split(".")[:2]] < [int(part) for part in release.split(".")]:
            pytest.skip(f"compares with {name} as release {release} computes, and this is {found}")


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def same_numbers(request):
    """Every test draws the same numbers from its module's generator, whichever tests ran before it."""
    for name in ("rng", "RNG"):
        if isinstance(getattr(request.module, name, None), np.random.Generator):
            setattr(request.module, name, np.random.default_rng(0))


@pytest.fixture
def threads(monkeypatch):
    """Four threads for tiles, however many cores there are."""
    monkeypatch.setenv("MERCER_NUM_THREADS", "4")
    return 4
