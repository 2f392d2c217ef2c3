"""`mercer` in a shell: from a table to a model that is kept, without writing code.

A command reads its files (`reading`), calls the library, and says what came of it: a few lines for a person, or one
JSON document for a program (`speaking`). What cannot be used is one line on stderr and exit code 2; an interrupt is
130. Nothing is loaded before a command needs it, so that `mercer --help` answers at once.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> None:
    """Run one command, and leave with its exit code: 0 done, 1 no (or failed), 2 bad input, 130 interrupted."""
    from mercer.cli.app import run

    code = run(arguments)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the reader of a pipe went away: what is left in the buffer has no one to go to
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
