"""The output of a command: results on stdout, notes and progress on stderr, or one JSON document.

Colours and progress appear on terminals only, and colours not with NO_COLOR or `--no-color`. On a terminal long values
are wrapped and tables fit its width; a pipe gets one line for each value or row.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from mercer.words import cut, number, one_line

Update = Callable[..., None]
"""`update(text)` changes the line of progress; `update(text, share)` also sets the share of the work that is done."""


class Voice:
    """Prints the output of a command.

    Parameters
    ----------
    as_json : bool
        Print one JSON document instead of text.
    color : bool
        Allow colours (on a terminal).
    quiet : bool
        Print neither notes nor progress.
    began : float or None
        When the command began, by `time.monotonic`; by default now.
    """

    def __init__(
        self, *, as_json: bool = False, color: bool = True, quiet: bool = False, began: float | None = None
    ) -> None:
        self.began = time.monotonic() if began is None else began
        self.as_json, self.quiet, self.color = as_json, quiet, allows_color(color)
        self.notes: list[str] = []

    @property
    def seconds(self) -> float:
        """The time since the command began, with the loading of its modules."""
        return time.monotonic() - self.began

    @property
    def width(self) -> int | None:
        """Characters in a line of the terminal; None for a pipe."""
        return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None

    def note(self, text: str) -> None:
        """Report a decision that was made for the user: a line on stderr, and an entry of the JSON document."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            print(self._styled(f"note: {text}", "2", sys.stderr), file=sys.stderr, flush=True)

    def say(self, text: str = "", *, strong: bool = False) -> None:
        """Print a line of the answer; not with --json."""
        if not self.as_json:
            print(self._styled(text, "1", sys.stdout) if strong else text)

    def line(self, text: str) -> None:
        """Print a line, cut to the width of the terminal."""
        width = self.width
        self.say(text if width is None else cut(text, width))

    def pairs(self, rows: Iterable[tuple[str, str]], most: int = 4) -> None:
        """Print names and values, aligned, in at most `most` lines each; an empty name continues the one before."""
        kept = [(name, value) for name, value in rows if value]
        margin = max((len(name) for name, _ in kept), default=0)
        for name, value in kept:
            lines = [value] if self.width is None else wrap(value, max(20, self.width - margin - 4))
            if len(lines) > most:
                lines[most - 1 :] = [lines[most - 1] + " …"]
            for k, text in enumerate(lines):
                self.say(f"  {self._styled((name if k == 0 else '').ljust(margin), '36', sys.stdout)}  {text}".rstrip())

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table with aligned columns, numbers to the right; cells are wrapped if the terminal is narrow."""
        if self.as_json:
            return
        shown = [[show(value) for value in row] for row in rows]
        widths = [max(len(line[k]) for line in [list(head), *shown]) for k in range(len(head))]
        right = [all(isinstance(row[k], (int, float)) for row in rows) and bool(rows) for k in range(len(head))]
        while self.width is not None and sum(widths) + 2 * len(widths) > self.width and max(widths) > 8:
            widths[widths.index(max(widths))] -= 1

        def lines(cells: Sequence[str]) -> Iterator[str]:
            parts = [wrap(cell, w) or [""] for cell, w in zip(cells, widths)]
            for one in zip_longest(*parts, fillvalue=""):
                text = "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(one, widths, right))
                yield f"  {text}".rstrip()

        for line in lines(head):
            self.say(line, strong=True)
        for cells in shown:
            for line in lines(cells):
                self.say(line)

    def document(self, content: dict[str, Any]) -> None:
        """Print the answer for a program as strict JSON, with null for NaN and infinities."""
        if self.as_json:
            whole = content | ({"notes": self.notes} if self.notes else {})
            print(json.dumps(plain(whole), ensure_ascii=False, indent=2, allow_nan=False))

    @contextmanager
    def progress(self, what: str) -> Iterator[Update]:
        """Show a line of progress on a terminal; nothing in a pipe."""
        if self.quiet or self.as_json or not sys.stderr.isatty():
            yield lambda text, share=None: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        console = Console(stderr=True, no_color=not self.color, highlight=False)
        text_column = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1))
        columns = SpinnerColumn(), text_column, BarColumn(bar_width=6), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True, expand=True) as bar:
            task = bar.add_task(what, total=None)

            def update(text: str, share: float | None = None) -> None:
                total = None if share is None else 1.0
                bar.update(task, description=text, total=total, completed=share, refresh=True)

            yield update

    def _styled(self, text: str, code: str, stream: Any) -> str:
        return f"\033[{code}m{text}\033[0m" if self.color and text and stream.isatty() else text


def allows_color(wanted: bool = True) -> bool:
    """Whether colours may be used: they are wanted, NO_COLOR is not set, and the terminal supports them."""
    return wanted and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_error(text: str, *, color: bool = True) -> None:
    """Print an error as one line on stderr."""
    line = " ".join(text.split())
    red = allows_color(color) and sys.stderr.isatty()
    with suppress(OSError):  # stderr is closed, or the disk is full
        print(f"\033[31mmercer: {line}\033[0m" if red else f"mercer: {line}", file=sys.stderr, flush=True)


def show(value: Any) -> str:
    """A value for a table: a number with four digits, a missing value as a dash."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else one_line(str(value), 200)


@contextmanager
def warnings_as_notes(voice: Voice) -> Iterator[None]:
    """Report warnings of the library as notes, each one once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    from mercer.models.convergence import NotConverged

    for warning in caught:
        if isinstance(warning.message, NotConverged):
            voice.note(one_line(f"{warning.message.status}; a longer --time may help"))
        elif not issubclass(warning.category, (DeprecationWarning, PendingDeprecationWarning, FutureWarning)):
            voice.note(one_line(str(warning.message)))


def plain(value: Any) -> Any:
    """A value as JSON can hold it: lists, texts and numbers, with None for NaN and infinities."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # an array or a NumPy scalar
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
