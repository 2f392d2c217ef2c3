"""Ctrl-C ends a command at once, and also one that does not end by itself."""

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


INTERRUPTED = """
import atexit
from mercer.cli import app, main

def interrupted(*arguments, **options):
    raise KeyboardInterrupt

app.app = interrupted
atexit.register(print, "cleaned up")
main(["kernels"])
"""


def test_an_interrupted_command_does_not_wait_for_the_end_of_the_interpreter():
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (130, b"")
    assert b"interrupted: nothing was written" in ended.stderr
