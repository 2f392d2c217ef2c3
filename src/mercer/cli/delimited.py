"""Delimited text: its separator, whether it has a header, and why it could not be parsed."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mercer.cli.sources import Source, unreadable
from mercer.errors import InvalidInput

if TYPE_CHECKING:  # a header is read before Polars is loaded
    import polars as pl

MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A", "#NA", "<NA>"]
"""Texts that mark a missing value in every column."""
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
LOOKED_AT = 50
"""The number of first lines from which the layout is detected."""


@dataclass(frozen=True)
class Layout:
    """The layout of a delimited text file."""

    delimiter: str
    names: tuple[str, ...]
    header: bool
    decimal_comma: bool = False


def layout(source: Source, delimiter: str | None) -> Layout:
    """The layout of a text file, detected from its first lines, with notes about what was detected."""
    if delimiter is None:
        delimiter = _delimiter(source)
    elif delimiter in ("\\t", "tab"):
        delimiter = "\t"
    elif len(delimiter.encode()) != 1:
        raise InvalidInput(
            "--delimiter must be one character", got=repr(delimiter), advice="Give a character such as ';', or 'tab'."
        )
    rows = _split(_lines(source), delimiter)
    first = [cell.strip() for cell in rows[0]]
    header = not all(_is_number(cell) or cell in MISSING for cell in first) or not any(first)
    if not header:
        source.notes.append(
            f"{source.name} has no header (its first row is numeric): the columns are column_1 to column_{len(first)}"
        )
    comma = delimiter != "," and _decimal_comma(rows[1:])
    if comma:
        source.notes.append(f"{source.name} has decimal commas: 3,14 is read as 3.14")
    return Layout(delimiter, _names(first if header else [""] * len(first), source.name), header, comma)


def _names(names: list[str], file: str) -> tuple[str, ...]:
    """The names of the columns; a column without a name is called by its position."""
    repeated = [name for name, times in Counter(names).items() if name and times > 1]
    if repeated:
        positions = [str(k + 1) for k, name in enumerate(names) if name == repeated[0]]
        raise InvalidInput(
            f"{file} must have columns with different names",
            got=f"{repeated[0]!r} as columns {' and '.join(positions)}",
            advice="Rename one of them in the file.",
        )
    taken, labels = set(names), []
    for k, name in enumerate(names, start=1):
        label = name or f"column_{k}"
        while not name and label in taken:
            label += "_"
        labels.append(label)
    return tuple(labels)


def _lines(source: Source) -> list[str]:
    return [line for line in source.head().splitlines() if line.strip()][:LOOKED_AT]


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter) if row] or [[""]]
    except csv.Error:  # a cell with more than 131,072 characters
        return [line.split(delimiter) for line in lines]


def _delimiter(source: Source) -> str:
    """The delimiter that splits the first lines into the same number of cells each, and into the most cells."""
    lines = _lines(source)
    usual = "\t" if source.suffix in ("tsv", "tab") else ","
    best, most = usual, 0.0
    for candidate in [usual, *(d for d in DELIMITERS if d != usual)]:
        widths = [len(row) for row in _split(lines, candidate)]
        head = widths[0]
        if len(lines) == LOOKED_AT:  # a quoted cell may have been cut
            widths = widths[:-1] or widths
        common, times = Counter(widths).most_common(1)[0]
        # The decimal commas of 0,5;1,5 split rows, but not the header.
        worth = common * (times / len(widths)) ** 4 if common > 1 and head == common else 0.0
        if worth > most and times >= 0.5 * len(widths):
            best, most = candidate, worth
    if most == 0 and _is_spaced([line.split() for line in lines]):
        _respace(source)
        return "\t"
    if most > 0 and best != usual:
        source.notes.append(f"the columns of {source.name} are separated by a {DELIMITERS[best]}")
    return best


def _is_spaced(rows: list[list[str]]) -> bool:
    """Whether blanks separate columns, not words: every line has the same number of cells, and many are numbers."""
    same = len(rows) > 1 and len({len(cells) for cells in rows}) == 1 and len(rows[0]) > 1
    return same and sum(_is_number(cell) for row in rows[1:] for cell in row) >= 0.5 * len(rows[1:])


def _respace(source: Source) -> None:
    """Write a copy of the text with tabs instead of blanks between columns."""
    target = source.folder / "spaced"
    with open(source.path, encoding="utf-8-sig") as old, open(target, "w", encoding="utf-8") as new:
        for line in old:
            if line.strip():
                new.write("\t".join(line.split()) + "\n")
    source.path = target
    source.notes.append(f"the columns of {source.name} are separated by blanks")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")


def _decimal_comma(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row if cell.strip()]
    points = sum("." in cell and _is_number(cell) for cell in cells)
    return sum(bool(_COMMA.fullmatch(cell)) for cell in cells) > max(points, 0.2 * len(cells))


def scan(source: Source, layout: Layout, na: Sequence[str], **how: Any) -> pl.LazyFrame:
    """The table in a text file as a lazy frame; cells in `na` are missing values, too."""
    import polars as pl

    return pl.scan_csv(
        source.path,
        separator=layout.delimiter,
        has_header=layout.header,
        new_columns=list(layout.names),
        null_values=[*MISSING, *na],
        decimal_comma=layout.decimal_comma,
        glob=False,
        **how,
    )


def misread(source: Source, layout: Layout, error: Exception) -> InvalidInput:
    """Why a text could not be parsed: the first line with more cells than the header, if there is one."""
    with open(source.path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=layout.delimiter)
        try:
            for row in rows:
                if len(row) > len(layout.names):
                    return InvalidInput(
                        f"{source.name} must have {len(layout.names)} columns in every line, as in its header",
                        got=f"{len(row)} in line {rows.line_num}",
                        advice="Quote cells that contain the delimiter, or set --delimiter.",
                    )
        except csv.Error:
            pass
    return unreadable(source, error)
