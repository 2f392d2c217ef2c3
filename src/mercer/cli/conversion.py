"""The text columns of a training file, as numbers, dates, times or truth values, with a note for every assumption."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from mercer.cli.cells import HOURS, Dates, NumberStyle, dates, hours, number_style, read_dates, truths
from mercer.cli.columns import MISSING_NUMBERS, as_whole, format_of, plain_numbers, words_of, wrong_cell
from mercer.cli.roles import Assigned
from mercer.errors import InvalidInput
from mercer.words import count, number

LEADING_ZERO = r"^\s*[-+]?0\d"
"""Digits that begin with a zero, such as those of a zip code: a number would lose it."""


@dataclass
class Conversion:
    """The text columns of a table, converted to numbers, dates and truth values if all their values are.

    Attributes
    ----------
    name : str
        The name of the file.
    notes : list of str
        The decisions that were made.
    na : sequence of str
        Texts that mark a missing value, too.
    comma : bool
        Whether numbers have decimal commas.
    given : Assigned
        The roles and formats that the user assigned.
    target : str or None
        A column whose words stay words, since they are classes; None if it is not known.
    types : dict
        The recorded type of each column that was read by a format.
    mixed : dict
        Why a column of decimals is not numeric.
    """

    name: str
    notes: list[str]
    na: Sequence[str] = ()
    comma: bool = False
    given: Assigned = field(default_factory=Assigned)
    target: str | None = None
    types: dict[str, str] = field(default_factory=dict)
    mixed: dict[str, InvalidInput] = field(default_factory=dict)

    def apply(self, frame: pl.DataFrame, *, all_columns: bool, codes: Sequence[str] = ()) -> pl.DataFrame:
        """The table with converted columns: all of them, or only those with an assigned role.

        `codes` are columns of digits that stay text, unless they were declared as numbers.
        """
        converted = []
        for column in frame.get_columns():
            role = self.given.roles.get(column.name)
            if column.dtype == pl.String and (all_columns or role):
                converted.append(self._text(column, role, column.name in codes))
            elif role == "date" and column.dtype.is_integer():
                converted.append(self._dates(column.cast(pl.String), column))
            elif role in ("text", "molecule", "date") and not (column.dtype.is_temporal() and role == "date"):
                raise self._cannot(column, role)
        return frame.with_columns(converted)

    def _text(self, column: pl.Series, role: str | None, code: bool) -> pl.Series:
        words = words_of(column, self.na)
        if role == "date":
            return self._dates(words, column)
        if role in ("text", "molecule", "category") or (code and role != "number"):
            if code and role is None:
                self.notes.append(
                    f"column {column.name!r} is read as text, since its numbers have leading zeros "
                    f"({_first(words, words.str.contains(LEADING_ZERO))}); --number {column.name} reads it as numbers"
                )
            return words
        numbers = self._numbers(words, column, role == "number")
        if numbers is not None:
            return numbers
        hours_after_midnight = hours(words)
        if words.null_count() < words.len() and hours_after_midnight.null_count() == words.null_count():
            self.types[column.name] = f"Float64[{HOURS}]"
            self.notes.append(
                f"the times of day in column {column.name!r} are read as hours after midnight "
                f"({_first(words)} is {number(hours_after_midnight.drop_nulls()[0], padded=False)})"
            )
            return hours_after_midnight
        truth = None if column.name == self.target else truths(words)
        if truth is not None:
            self._note_truth(column.name, words.filter(truth.fill_null(False))[0])
            return truth
        found = dates(words, [format_of(recorded) for recorded in self.types.values()])
        if found is None:
            return words
        return self._dated(found, words)

    def _numbers(self, words: pl.Series, column: pl.Series, declared: bool) -> pl.Series | None:
        """The numbers of a column, or None if it does not hold numbers; a declared one must hold them."""
        values = plain_numbers(words, self.comma)
        failed = words.filter(words.is_not_null() & values.is_null())
        present = values.drop_nulls().len()
        if present and failed.str.to_lowercase().is_in(MISSING_NUMBERS).all():
            self._note_missing(failed, column.name)
            return as_whole(values)
        some = words.set(words.str.to_lowercase().is_in(MISSING_NUMBERS).fill_null(False), None)
        styled = number_style(some, self.comma)
        if styled is not None:
            style, currency = styled
            values = style.read(some)
            self._note_missing(words.filter(words.is_not_null() & some.is_null()), column.name)
            self._note_style(column.name, some, values, style, currency)
            values = as_whole(values)
            self.types[column.name] = f"{values.dtype}[{style}]"
            return values
        wrong = words.is_not_null() & values.is_null()
        if declared:
            raise wrong_cell(column, wrong, "numbers", self.name, 0)
        if values.n_unique() > 1 + 9 * failed.n_unique() and as_whole(values).dtype == pl.Float64:
            self.mixed[column.name] = wrong_cell(column, wrong, "numbers", self.name, 0)
        elif present > 4 * failed.len():
            row = int(wrong.arg_max() or 0) + 1
            self.notes.append(
                f"column {column.name!r} is read as text: {count(failed.len(), 'cell')} of {words.len():,} "
                f"{'are' if failed.len() > 1 else 'is'} not a number ({failed[0]!r} in row {row}); "
                f"if that means a missing value, add --na {shlex.quote(failed[0])}"
            )
        return None

    def _note_missing(self, words: pl.Series, name: str) -> None:
        if words.len():
            marks = ", ".join(map(repr, sorted(words.unique().to_list())))
            self.notes.append(f"{marks} in the numeric column {name!r} is read as a missing value")

    def _note_truth(self, name: str, word: str) -> None:
        if word.lower() != "true":
            keep = f"--category {shlex.quote(name)} keeps the words"
            self.notes.append(f"column {name!r} is read as true and false ({word!r} is true); {keep}")

    def _note_style(self, name: str, words: pl.Series, values: pl.Series, style: NumberStyle, currency: str) -> None:
        marked = words.str.contains(style.thousands, literal=True) if style.thousands else words.is_not_null()
        k = int(marked.fill_null(False).arg_max() or 0)
        parts = [f"without the currency {currency}"] * bool(currency) + ["in percent"] * style.percent
        how = f" {' and '.join(parts)}" if parts else ""
        kept = "" if currency or style.percent or name == self.target else f"; --text {name} keeps the texts"
        self.notes.append(f"column {name!r} is read as numbers{how}: {words[k]!r} is {values[k]:.12g}{kept}")

    def _dates(self, words: pl.Series, column: pl.Series) -> pl.Series:
        """A column that was declared as dates, in the format that was stated, or in one that fits all."""
        format = self.given.formats.get(column.name, "")
        if not format and words.drop_nulls().str.contains(r"^\d{8}$").all():
            format = "%Y%m%d"
        found = Dates(read_dates(words, format), format) if format else dates(words, [])
        wrong = words.is_not_null() & (words.is_not_null() if found is None else found.values.is_null())
        if found is None or wrong.any():
            k = int(wrong.arg_max() or 0)
            raise InvalidInput(
                f"Column {column.name!r} of {self.name} must hold dates{f' in the format {format}' if format else ''}",
                got=f"{column[k]!r} in row {k + 1}",
                advice=f"State the format: --date '{column.name}=%d.%m.%Y', with %d for days, %m for months, %Y for "
                "years of four digits, %H:%M for hours and minutes.",
            )
        return self._dated(found, words)

    def _dated(self, found: Dates, words: pl.Series) -> pl.Series:
        name = words.name
        if found.format:
            self.types[name] = f"{'Datetime' if '%H' in found.format else 'Date'}[{found.format}]"
            example, order = _first(words), found.format
            if found.instead:
                day = found.values.drop_nulls()[0]
                self.notes.append(
                    f"the dates in column {name!r} are read as {order}: {example} is {day.day} {day:%B %Y}. That is an "
                    f"assumption; --date '{name}={found.instead}' reads them the other way"
                )
            elif name not in self.given.formats:
                self.notes.append(f"the dates in column {name!r} are read as {order}")
        return found.values

    def _cannot(self, column: pl.Series, role: str) -> InvalidInput:
        return InvalidInput(
            f"Column {column.name!r} of {self.name} must hold texts for --{role}",
            got=str(column.dtype),
            advice=f"Remove --{role} {column.name}, or use --category {column.name}.",
        )


def _first(words: pl.Series, where: pl.Series | None = None) -> str:
    """The first text, among those that are marked."""
    some = (words if where is None else words.filter(where.fill_null(False))).drop_nulls()
    return repr(some[0]) if some.len() else "''"
