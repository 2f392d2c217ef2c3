"""Ctrl-C ends a command soon, wherever it is.

Python raises KeyboardInterrupt between two of its own instructions, and loops over tiles end after their current tile.
But a factorisation of a large matrix, or a library that reads a file, may not return for many seconds. So a thread
waits for the signal, gives the command a moment to end by itself, and then ends the process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from mercer.cli.speaking import print_error

GRACE = 1.0
"""Seconds that a command has to end by itself."""
INTERRUPTED = 130
"""The exit code of an interrupted command."""

_written: list[str] = []


def begin() -> None:
    """Forget the outputs of an earlier command of this process."""
    _written.clear()


def wrote(path: str) -> None:
    """Note that an output is complete, so that an interrupt does not deny it."""
    _written.append(path)


def message() -> str:
    """The message after an interrupt.

    >>> message()
    'interrupted: nothing was written'
    """
    return f"interrupted: {', '.join(_written)} was written before" if _written else "interrupted: nothing was written"


def watch() -> None:
    """End the process after Ctrl-C, if it does not end by itself. Only in the main thread of a command."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "set_wakeup_fd"):
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)  # written at once, even inside a long call
    threading.Thread(target=_wait, args=(read, threading.Event()), daemon=True, name="interrupts").start()


def _wait(read: int, never: threading.Event) -> None:
    while number := os.read(read, 1):
        if number[0] == signal.SIGINT:
            never.wait(GRACE)
            print_error(message(), color="--no-color" not in sys.argv)
            os._exit(INTERRUPTED)
