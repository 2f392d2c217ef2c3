"""Ctrl-C ends a command that does not end by itself."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytest.importorskip("typer")

STUBBORN = """
import signal, time
from mercer.cli import interrupts
signal.signal(signal.SIGINT, lambda number, frame: None)
interrupts.watch()
{wrote}
print("ready", flush=True)
while True:
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    ("wrote", "said"),
    [("", b"interrupted: nothing was written"), ("interrupts.wrote('m.mercer')", b"m.mercer was written before")],
)
def test_a_command_that_does_not_end_by_itself_is_ended(wrote, said):
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN.format(wrote=wrote)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said in errors
