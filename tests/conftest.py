"""Shared set-up: references beside the tests, and the same random examples in every run."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# A shell starts what runs in its background with interrupts ignored; tests of interrupts need them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, so that a green run stays green; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("explore", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(autouse=True)
def same_numbers(request):
    """Every test draws the same numbers from its module's generator, whichever tests ran before it."""
    for name in ("rng", "RNG"):
        if isinstance(getattr(request.module, name, None), np.random.Generator):
            setattr(request.module, name, np.random.default_rng(0))
