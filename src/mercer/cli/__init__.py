"""`mercer` in a shell: from a table to a saved model, without writing code.

A command reads its files (`reading`), calls the library, and reports the result: a few lines for a person, or one JSON
document for a program (`speaking`). Bad input gives one line on stderr and exit code 2; an interrupt gives 130. Modules
are loaded only when a command needs them, so that `mercer --help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib.util import find_spec

NEEDED = ("typer", "rich", "polars")
"""Packages of the `cli` extra, which every command needs."""


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 0 is success, 1 the answer no or a failure, 2 bad input, 130 an interrupt."""
    began = time.monotonic()
    if sys.stderr is None:  # closed by the caller: discard remarks, or they would go to the next file that is opened
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        print("mercer: standard output must be open, got a closed one. Redirect it: > out.txt", file=sys.stderr)
        sys.exit(2)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        *first, last = missing
        packages = f"{', '.join(first)} and {last}" if first else last
        print(
            f"mercer: the command line needs {packages}, which this installation does not have. "
            'Install the extra packages with: pip install "mercer[cli,plot]"',
            file=sys.stderr,
        )
        sys.exit(2)
    for name in ("SIGTERM", "SIGHUP"):  # exit normally, so that temporary files are removed
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: sys.exit(128 + number))

    from mercer.cli import interrupts
    from mercer.cli.app import run

    interrupts.watch()
    code = run(arguments, began)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the reader of the pipe has gone: discard the rest of the buffer
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if code == interrupts.INTERRUPTED:  # at once: to free all objects, and wait for threads, would take seconds
        os._exit(code)
    sys.exit(code)
