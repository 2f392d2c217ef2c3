"""From a table to a learning problem: the target, the columns that are used, and the rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mercer.cli.columns import require_finite
from mercer.cli.reading import Table, shown_names
from mercer.cli.speaking import Voice
from mercer.errors import InvalidInput
from mercer.models.provenance import Task
from mercer.models.scores import hold_out
from mercer.words import count, first_few

Array = NDArray[Any]
FEW_CLASSES = 10
"""A target of at most this many different whole numbers is read as classes."""
MOST_CLASSES = 200
FEWEST = 20
"""With fewer rows than this, none are held out by default."""
NAME_THE_DELIMITER = "If there are more, name the separator, for instance --delimiter ';'."


@dataclass
class Problem:
    """A learning problem.

    Attributes
    ----------
    X, y : rows and targets.
    target, task : the name of the target; "regression" or "classification".
    columns : the type of every column by its name; empty for a sparse matrix.
    left_out : columns that are not used, and why.
    places : the positions of the rows in the file, from 0.
    """

    X: Any
    y: Array
    target: str
    task: Task
    columns: dict[str, str]
    left_out: dict[str, str]
    places: Array = field(default_factory=lambda: np.arange(0))

    def __len__(self) -> int:
        return len(self.y)


def problem_from(
    table: Table,
    target: str | None,
    voice: Voice,
    *,
    drop: tuple[str, ...] = (),
    task: str = "auto",
    drop_missing_target: bool = False,
) -> Problem:
    """The problem of predicting a column of a table; decisions are reported as notes."""
    for note in table.notes:
        voice.note(note)
    frame, y, name = _apart(table, target)
    if name in table.mixed:
        raise table.mixed[name]
    places = np.flatnonzero(y.is_not_null().to_numpy())
    frame, y = complete(frame, y, name, table.name, voice, drop=drop_missing_target)
    if table.rows < 2 or len(y) < 2:
        raise InvalidInput(
            f"{table.name} must have at least two rows with a target",
            got=count(len(y), "row"),
            advice="Add rows, or check --delimiter if the file has more.",
        )
    kind, values = _targets(y, name, task, voice)
    left_out: dict[str, str] = {}
    if isinstance(frame, pl.DataFrame):
        frame = _columns(frame, drop, left_out, voice, table.name, name)
        for column in frame.columns:
            if column in table.mixed:
                raise table.mixed[column]
        require_finite(frame, table.name)
    return Problem(frame, values, name, kind, _dtypes(frame, table.dates), left_out, places)


def _dtypes(frame: Any, dates: dict[str, str]) -> dict[str, str]:
    """The type of every column by its name, with the format of its dates; empty for a sparse matrix."""
    if not isinstance(frame, pl.DataFrame):
        return {}
    return {name: f"Date[{dates[name]}]" if name in dates else str(dtype) for name, dtype in frame.schema.items()}


def _apart(table: Table, target: str | None) -> tuple[Any, pl.Series, str]:
    """The other columns, the target, and its name."""
    if table.label is not None:
        if target not in (None, "label"):
            raise InvalidInput(
                f"{table.name} is a LIBSVM file or holds graphs: the target is the first number of a line, or the "
                "label of a graph",
                got=f"--target {target}",
                advice="Leave --target out.",
            )
        return table.frame, pl.Series("label", table.label), "label"
    names = table.frame.columns
    if target is None:
        raise InvalidInput(
            f"--target must name the column of {table.name} to predict",
            got="no --target",
            advice=f"Choose one of {shown_names(names, 20)}.",
        )
    target = named(target, names, table.name, text=table.layout is not None)
    if len(names) == 1:
        raise InvalidInput(
            f"{table.name} must have columns beside the target",
            got=f"one column, {shown_names(names)}",
            advice=NAME_THE_DELIMITER if table.layout else "Choose a file with more columns.",
        )
    return table.frame.drop(target), table.frame[target], target


def named(target: str, names: list[str], file: str, *, text: bool) -> str:
    """The column with this name or at this place: 1 is the first, -1 the last."""
    if target in names:
        return target
    places = {str(k + 1): name for k, name in enumerate(names)} | {str(k - len(names)): n for k, n in enumerate(names)}
    if target in places:
        return places[target]
    lower = {column.lower(): column for column in names}
    near = [lower[m] for m in get_close_matches(target.lower(), list(lower), 1, 0.65)]
    advice = f"Did you mean {near[0]!r}?" if near else "Name one of them."
    raise InvalidInput(
        f"{file} must have the target {target!r}",
        got=f"columns {shown_names(names, 20)}" if len(names) > 1 else f"one column, {shown_names(names)}",
        advice=NAME_THE_DELIMITER if len(names) == 1 and text else advice,
    )


def complete(frame: Any, y: pl.Series, name: str, file: str, voice: Voice, *, drop: bool) -> tuple[Any, pl.Series]:
    """The rows that have a target; others are refused, or dropped if `drop`."""
    keep = ~y.is_null().to_numpy()
    if keep.all():
        return frame, y
    rows = np.flatnonzero(~keep) + 1
    some = first_few(rows, 5)
    if not keep.any():
        raise InvalidInput(
            f"The target {name!r} of {file} must have values", got="none at all", advice="Name another column."
        )
    if not drop:
        raise InvalidInput(
            f"The target {name!r} of {file} must have a value in every row",
            got=f"{count(len(rows), 'row')} without one: {some}",
            advice="Fill them in, or drop these rows with --drop-missing-target.",
        )
    voice.note(f"dropped {count(len(rows), 'row')} without a target: {some}")
    return frame[np.flatnonzero(keep)], y.filter(keep)


def _targets(y: pl.Series, name: str, task: str, voice: Voice) -> tuple[Task, Array]:
    """The task and the targets: numbers or classes, with a note if they could be either."""
    dtype = y.dtype
    different = y.n_unique()
    if different < 2:
        raise InvalidInput(
            f"The target {name!r} must have different values", got=f"only {y[0]!r}", advice="Name another column."
        )
    if dtype.is_nested() or dtype.is_temporal():
        raise InvalidInput(
            f"The target {name!r} must hold numbers or classes",
            got=str(dtype),
            advice="Convert it, or name another column.",
        )
    numeric = dtype.is_numeric()
    if not numeric:
        if task == "regression":
            raise InvalidInput(
                f"The target {name!r} must hold numbers for --task regression",
                got=f"{y[0]!r}",
                advice="Use --task classification, for mercer tune with --model svm.",
            )
        if different > max(2, len(y) // 2) or different > MOST_CLASSES:
            raise InvalidInput(
                f"The target {name!r} must hold numbers, or classes that repeat",
                got=f"{different:,} different texts in {len(y):,} rows, such as {str(y[0])[:40]!r}",
                advice="Name another column, or correct the cells that are not numbers.",
            )
        return "classification", np.asarray(y.cast(pl.String).to_list()) if dtype != pl.Boolean else y.to_numpy()
    values = y.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
        raise InvalidInput(
            f"The target {name!r} must hold finite numbers",
            got=f"{values[row - 1]} in row {row}",
            advice="Correct the value, or drop the row.",
        )
    whole = bool((values == np.floor(values)).all())
    if task == "auto":
        few = whole and different <= min(FEW_CLASSES, len(values) // 5)
        task = "classification" if few or different == 2 < len(values) else "regression"
        if few and different > 2:
            voice.note(
                f"{name!r} has {different} different whole numbers and is read as classes; "
                "use --task regression to predict numbers"
            )
    if task == "classification":
        if different > MOST_CLASSES:
            raise InvalidInput(
                f"The target {name!r} must hold at most {MOST_CLASSES} classes",
                got=f"{different:,}",
                advice="Try --task regression.",
            )
        return "classification", values.astype(np.int64) if whole else values.astype(str)
    return "regression", values


def _columns(
    frame: pl.DataFrame, drop: tuple[str, ...], left_out: dict[str, str], voice: Voice, file: str, target: str
) -> pl.DataFrame:
    if target in drop:
        raise InvalidInput(
            "--drop must name other columns than the target", got=repr(target), advice="Remove the target from --drop."
        )
    frame = dropped(frame, drop, file)
    left_out |= dict.fromkeys(drop, "dropped")
    for column in frame.get_columns():
        missing = column.null_count()
        if missing == column.len():
            left_out[column.name] = "no values"
        elif not missing and not column.dtype.is_nested() and column.n_unique() == 1:
            left_out[column.name] = "the same value in every row"
    constant = [name for name in left_out if name not in drop]
    if constant:
        voice.note(f"dropped {count(len(constant), 'column')} without information: {shown_names(constant, 5)}")
    frame = frame.drop(constant)
    if not frame.width:
        raise InvalidInput(
            f"{file} must have a column beside the target whose values differ between rows",
            got="none",
            advice="Check --delimiter and --drop.",
        )
    return frame


def dropped(frame: pl.DataFrame, drop: tuple[str, ...], file: str) -> pl.DataFrame:
    """The table without these columns."""
    for name in drop:
        if name not in frame.columns:
            near = get_close_matches(name, frame.columns, 1, 0.65)
            raise InvalidInput(
                f"{file} must have the column {name!r} to drop it",
                got=f"columns {shown_names(frame.columns)}",
                advice=f"Did you mean {near[0]!r}?" if near else "Name one of them.",
            )
    return frame.drop(drop)


def split(problem: Problem, share: float, seed: int, voice: Voice, *, requested: bool) -> tuple[Array, Array]:
    """Training rows and held-out rows; each class keeps its share in both. `requested`: --test-size was given."""
    if not 0 <= share < 1:
        raise InvalidInput(
            "--test-size must be a share in [0, 1)", got=f"{share:g}", advice="Give a share such as 0.2."
        )
    if len(problem) < FEWEST and not requested and share > 0:
        voice.note(
            f"no rows are held out, since there are only {len(problem)}; leave-one-out scores are shown if the model "
            "has them"
        )
        share = 0.0
    train, test = hold_out(problem.y, share, classes=problem.task == "classification", random_state=seed)
    if share > 0 and not len(test):
        voice.note("no rows are held out, since the classes are too small")
    return train, test
