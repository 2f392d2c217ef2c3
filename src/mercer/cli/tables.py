"""From a table to a learning problem: the target, the columns that are used, and the rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mercer.cli.columns import require_finite
from mercer.cli.names import NAME_THE_DELIMITER, named, no_column, no_target, shown_names
from mercer.cli.reading import Table
from mercer.cli.roles import Assigned, note_columns
from mercer.cli.speaking import Voice
from mercer.data.assignment import Roles
from mercer.data.frames import arrays, selected
from mercer.errors import InvalidInput
from mercer.models.auto.columns import Columns
from mercer.models.provenance import Task
from mercer.models.scores import hold_out
from mercer.words import count, first_few

Array = NDArray[Any]
FEW_CLASSES = 10
"""A target of at most this many different whole numbers is read as classes."""
MOST_CLASSES = 200
FEWEST = 20
"""With fewer rows than this, none are held out by default."""


@dataclass
class Problem:
    """A learning problem.

    Attributes
    ----------
    X, y : array or frame, array
        Rows and targets.
    target, task : str, Task
        The name of the target; "regression" or "classification".
    columns : dict
        The type of every column by its name; empty for a sparse matrix.
    left_out : dict
        Columns that are not used, and why.
    places : array
        The positions of the rows in the file, from 0.
    roles : dict
        The roles of columns of X that the user assigned; X also has the exposure.
    weights : Array or None
        How often each row counts in the fit, or None.
    target_type : str
        The recorded type of the target, if it was read by a format, else "".
    total : int
        The number of rows of the file, if X is a sample of them; else 0.
    dropped : int
        The number of rows that were dropped because they have no target.
    groups, times : Array or None
        By which rows are held out together, or the future from the past; None if there is no such column.
    """

    X: Any
    y: Array
    target: str
    task: Task
    columns: dict[str, str]
    left_out: dict[str, str]
    places: Array = field(default_factory=lambda: np.arange(0))
    roles: dict[str, str] = field(default_factory=dict)
    weights: Array | None = None
    groups: Array | None = None
    times: Array | None = None
    target_type: str = ""
    total: int = 0
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.y)

    @property
    def exposure(self) -> Array | None:
        """The exposures of the rows, of which the targets are counts; None if there is no such column."""
        name = Roles.of(self.roles).exposure
        return None if name is None else np.asarray(arrays(selected(self.X, [name]))[0], dtype=np.float64)


def problem_from(
    table: Table,
    target: str | None,
    voice: Voice,
    *,
    task: str = "auto",
    drop_missing_target: bool = False,
    own_kernel: bool = False,
) -> Problem:
    """The problem of predicting a column of a table; decisions are reported as notes.

    Identifiers are left out, and codes are categories, unless the user's own kernel decides what to read.
    """
    for note in table.notes:
        voice.note(note)
    frame, y, name = _apart(table, target)
    if name in table.mixed:
        raise table.mixed[name]
    if isinstance(frame, pl.DataFrame):
        frame, y, places = _exposed(frame, y, table.given.one("exposure"), voice)
    else:
        places = np.arange(len(y))
    dropped = y.null_count()
    places = places[y.is_not_null().to_numpy()]
    frame, y = complete(frame, y, name, table.name, voice, drop=drop_missing_target)
    if table.rows < 2 or len(y) < 2:
        raise InvalidInput(
            f"{table.name} must have at least two rows with a target",
            got=count(len(y), "row"),
            advice="Add rows, or check --delimiter if the file has more.",
        )
    if task == "auto" and table.given.one("exposure") is not None:
        task = "regression"  # of counts
    kind, values = _targets(y, name, task, voice)
    if not isinstance(frame, pl.DataFrame):
        return Problem(frame, values, name, kind, {}, {}, places, dropped=dropped)
    given = table.given
    if given.one("exposure") is not None and kind == "classification":
        raise InvalidInput(
            "--exposure is for counts",
            got=f"the target {name!r}, read as classes",
            advice="Add --task regression, or remove --exposure.",
        )
    suspect = next((column for column in frame.columns if column.lower() == "exposure"), None)
    if kind == "regression" and suspect is not None and suspect not in given.roles and (values >= 0).all():
        voice.note(f"column {suspect!r} is a feature; if the target is a count over it, add --exposure {suspect}")
    others = {role: _values(frame, given.one(role), role, table.name, places) for role in OTHERS}
    left_out = {column: OTHERS[role] for role in OTHERS for column in given.of(role) if role != "exposure"}
    frame = frame.drop(left_out)
    frame = _columns(frame, given, left_out, voice, table.name)
    for column in frame.columns:
        if column in table.mixed:
            raise table.mixed[column]
    require_finite(frame, table.name)
    assigned = {column: role for column, role in given.roles.items() if column in frame.columns}
    columns = Columns.of(frame, Roles.of(assigned), chosen=not own_kernel)
    note_columns(voice, columns.roles)
    left_out |= {column: why for column, why in columns.left_out.items() if column != columns.exposure}
    frame = frame.drop([column for column in columns.left_out if column != columns.exposure])
    types = {column: table.types.get(column, str(dtype)) for column, dtype in frame.schema.items()}
    exposure = {} if columns.exposure is None else {columns.exposure: "exposure"}
    roles = {column: role for column, role in (columns.assigned | exposure).items() if column in types}
    return Problem(
        frame,
        values,
        name,
        kind,
        types,
        left_out,
        places,
        roles,
        others["weight"],
        others["group"],
        others["time"],
        table.types.get(name, ""),
        dropped=dropped,
    )


def _exposed(
    frame: pl.DataFrame, y: pl.Series, exposure: str | None, voice: Voice
) -> tuple[pl.DataFrame, pl.Series, Array]:
    """The rows without those of exposure 0, over which nothing can be counted; and their positions."""
    keep = np.ones(len(y), dtype=bool)
    if exposure is not None and frame[exposure].dtype.is_numeric():
        keep = ~(frame[exposure] == 0).fill_null(False).to_numpy()
    if keep.all():
        return frame, y, np.arange(len(y))
    empty = y.filter(~keep)
    counted = int((empty != 0).sum()) if empty.dtype.is_numeric() else 0
    more = f", although {count(counted, 'of them has', 'of them have')} a target above 0" if counted else ""
    voice.note(f"left out {count(len(empty), 'row')} with an exposure of 0{more}")
    return frame.filter(keep), y.filter(keep), np.flatnonzero(keep)


OTHERS = {
    "exposure": "the exposure",
    "weight": "the weights of the rows",
    "group": "the groups of rows",
    "time": "the order of the rows",
}
"""Roles of columns that are not features, and what the columns hold."""


def _values(frame: pl.DataFrame, column: str | None, role: str, file: str, places: Array) -> Array | None:
    """The values of a column that is not a feature, checked; None if there is none."""
    if column is None:
        return None
    flag, values = "--time-column" if role == "time" else f"--{role}", frame[column]
    numeric = role in ("exposure", "weight")
    if not (role == "group" or values.dtype.is_numeric() or (values.dtype.is_temporal() and not numeric)):
        raise InvalidInput(
            f"Column {column!r} of {file} must hold numbers{'' if numeric else ' or dates'} for {flag}",
            got=repr(values.drop_nulls().first()),
            advice=f"Name another column, or convert it: --number {column}."
            if numeric
            else f"Name another column, or convert it: --date {column}.",
        )
    wrong = values.is_null() if not numeric else values.is_null() | ~values.is_finite() | ~_allowed(values, role)
    if wrong.any():
        k = int(wrong.arg_max() or 0)
        what = {"exposure": "a number > 0", "weight": "a number ≥ 0"}.get(role, "a value")
        raise InvalidInput(
            f"Column {column!r} of {file} must have {what} in every row for {flag}",
            got=f"{'none' if values[k] is None else values[k]} in row {places[k] + 1}",
            advice="Fill it in, or drop the row.",
        )
    return values.to_numpy()


def _allowed(values: pl.Series, role: str) -> pl.Series:
    return values > 0 if role == "exposure" else values >= 0


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
        raise no_target(names, table.name)
    target = named(target, names, table.name, text=table.layout is not None)
    if len(names) == 1:
        raise InvalidInput(
            f"{table.name} must have columns beside the target",
            got=f"one column, {shown_names(names)}",
            advice=NAME_THE_DELIMITER if table.layout else "Choose a file with more columns.",
        )
    return table.frame.drop(target), table.frame[target], target


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
            advice="Drop these rows with --drop-missing-target.",
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
                advice="Use --task classification; mercer tune also needs --model svm.",
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


def _columns(frame: pl.DataFrame, given: Assigned, left_out: dict[str, str], voice: Voice, file: str) -> pl.DataFrame:
    """The features and the exposure: columns that were dropped, or that carry no information, are left out."""
    drop = given.of("drop")
    frame = dropped(frame, tuple(drop), file)
    left_out |= dict.fromkeys(drop, "dropped")
    silent: list[str] = []
    for column in frame.get_columns():
        missing = column.null_count()
        if column.name == given.one("exposure"):
            continue
        if missing == column.len():
            left_out[column.name] = "no values"
            silent.append(column.name)
        elif not missing and not column.dtype.is_nested() and column.n_unique() == 1:
            left_out[column.name] = "the same value in every row"
            silent.append(column.name)
    if silent:
        voice.note(f"dropped {count(len(silent), 'column')} without information: {shown_names(silent, 5)}")
    frame = frame.drop(silent)
    if frame.width <= len(given.of("exposure")):
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
            raise no_column(name, frame.columns, file, "--drop")
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
    train, test = hold_out(
        problem.y, share, classes=problem.task == "classification", groups=problem.groups, times=problem.times,
        random_state=seed,
    )  # fmt: skip
    if share > 0 and not len(test):
        voice.note("no rows are held out, since the classes are too small")
    return train, test
