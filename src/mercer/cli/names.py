"""Names of columns and classes that the user typed: found in a file, or refused with the name that was meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from mercer.errors import InvalidInput
from mercer.words import cut, first_few

NAME_THE_DELIMITER = "If there are more, name the separator, for instance --delimiter ';'."


def shown_names(names: list[str], most: int = 8) -> str:
    """The first names of columns, as text."""
    some = first_few(names, most, lambda name: repr(cut(name, 60)))
    return some + (f" ({len(names)} in all)" if len(names) > most else "")


def similar(name: str, names: list[str]) -> str | None:
    """The name that was perhaps meant.

    >>> similar("Prise", ["area", "price"]), similar("zzz", ["area", "price"])
    ('price', None)
    """
    lower = {column.lower(): column for column in reversed(names)}
    near = get_close_matches(name.lower(), list(lower), 1, 0.65)
    return lower[near[0]] if near else None


def no_target(names: list[str], file: str) -> InvalidInput:
    """The error about a command that needs --target."""
    return InvalidInput(
        f"--target must name the column of {file} to predict",
        got="no --target",
        advice=f"Choose one of {shown_names(names, 20)}.",
    )


def no_column(name: str, names: list[str], file: str, purpose: str) -> InvalidInput:
    """The error about a column that a file lacks, with the name that was perhaps meant."""
    near = similar(name, names)
    return InvalidInput(
        f"{file} must have the column {name!r}, which {purpose} names",
        got=f"columns {shown_names(names, 20)}",
        advice=f"Did you mean {near!r}?" if near else "Name one of them.",
    )


def placed(target: str | None, names: list[str]) -> str | None:
    """The column of this name or at this place, or None: 1 is the first column, -1 the last.

    >>> placed("-1", ["area", "price"]), placed("prise", ["area", "price"])
    ('price', None)
    """
    if target is None or target in names:
        return target
    places = {str(k + 1): name for k, name in enumerate(names)} | {str(k - len(names)): n for k, n in enumerate(names)}
    return places.get(target)


def named(target: str, names: list[str], file: str, *, text: bool) -> str:
    """The target by its name or place, or an error with the name that was meant; `text`: the file is a text."""
    column = placed(target, names)
    if column is not None:
        return column
    near = similar(target, names)
    advice = f"Did you mean {near!r}?" if near else "Name one of them."
    raise InvalidInput(
        f"{file} must have the target {target!r}",
        got=f"columns {shown_names(names, 20)}" if len(names) > 1 else f"one column, {shown_names(names)}",
        advice=NAME_THE_DELIMITER if len(names) == 1 and text else advice,
    )


def class_named(text: str, classes: Any, option: str) -> Any:
    """The class that a text of the command line names: 1, 1.0 and "1" are the same class.

    >>> class_named("1", [0.0, 1.0], "--positive")
    1.0
    """
    known = {spelling(label): label for label in classes}
    if spelling(text) not in known:
        raise InvalidInput(
            f"{option} must be a class of the target",
            got=repr(text),
            advice=f"Choose one of {first_few([*map(str, known.values())], 10)}."
            if known
            else f"Leave out {option}: the model predicts numbers.",
        )
    return known[spelling(text)]


def spelling(label: Any) -> str:
    """A label as text, the same for every way to write a number.

    >>> spelling("1.0"), spelling(1), spelling(True), spelling("yes")
    ('1', '1', 'true', 'yes')
    """
    text = str(label).lower() if isinstance(label, bool) else str(label)
    try:
        return format(float(text), ".17g")
    except ValueError:
        return text
