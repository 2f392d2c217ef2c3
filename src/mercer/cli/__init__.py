"""`mercer` in a shell: from a table to a model that is kept, without writing code.

A command reads its files (`reading`), calls the library, and says what came of it: a few lines for a person, or one
JSON document for a program (`speaking`). What cannot be used is one line on stderr and exit code 2; an interrupt is
130. Nothing is loaded before a command needs it, so that `mercer --help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec

NEEDED = ("typer", "rich", "polars")
"""Packages of the `cli` extra, which every command needs."""


def main(arguments: list[str] | None = None) -> None:
    """Run one command, and leave with its exit code: 0 done, 1 no (or failed), 2 bad input, 130 interrupted."""
    if sys.stderr is None:  # closed by the caller: remarks go nowhere, and not into the next file that is opened
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        print("mercer: standard output must be open, got a closed one. Send it to a file: > out.txt", file=sys.stderr)
        sys.exit(2)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        *first, last = missing
        needed = f"{', '.join(first)} and {last}" if first else last
        print(
            f"mercer: the command line needs {needed}, which this installation does not have. "
            'Install the extra packages with: pip install "mercer[cli,plot]"',
            file=sys.stderr,
        )
        sys.exit(2)
    for ended in ("SIGTERM", "SIGHUP"):  # leave by the way that cleans up
        if hasattr(signal, ended):
            signal.signal(getattr(signal, ended), lambda number, frame: sys.exit(128 + number))

    from mercer.cli.app import run

    code = run(arguments)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the reader of a pipe went away: what is left in the buffer has no one to go to
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
