"""`mercer fit` of a Parquet or Arrow file, or a folder of them, that does not fit the memory budget.

A sample of its rows is read as a table: it decides the types and roles of the columns, some of its rows are held out,
and the report shows them. The automatic model then reads all other rows of the file in batches (`mc.Batches`):

    rows = mc.Batches("rows.parquet", "price")
    model = mc.AutoRegressor().fit(rows.without(held_out))
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer import memory
from mercer.cli.columns import as_fitted
from mercer.cli.names import named, no_target
from mercer.cli.reading import Table, as_table
from mercer.cli.tables import Array, Problem
from mercer.data.cluster import client_at
from mercer.data.missing import is_missing
from mercer.data.row_files import SCANS
from mercer.data.sampling import Witnesses, drawn
from mercer.data.tu import is_tu
from mercer.errors import InvalidInput
from mercer.models import menu
from mercer.validation import generator

SAMPLE = 25_000
"""Rows of the sample."""
COPIES = 4
"""Bytes that fitting takes for each byte of a table in memory."""
TEXT = 32
"""Bytes of a text in memory, its share of the table's other parts included."""


@dataclass
class Large:
    """A file of rows that is read in batches.

    Attributes
    ----------
    path, target
        The file or folder, and the target.
    rows
        All rows, with the target apart.
    at
        The positions of the sample in the file.
    weight
        The column of weights, or None.
    """

    path: str
    target: str
    rows: mc.Batches
    at: Array
    weight: str | None = None

    def fit(self, problem: Problem, held_out: Array, progress: Any, settings: dict[str, Any]) -> menu.Fitted:
        """The automatic model of all rows but these of the sample."""
        columns = list(problem.columns) if self.weight is None else [*problem.columns, self.weight]
        features, kind = Features(tuple(columns), dict(problem.columns), self.path), problem.y.dtype.kind

        def targets(y: Any) -> Any:
            if (y.dtype.kind == "f" and not np.isfinite(y).all()) or y.dtype == object:
                raise InvalidInput(
                    f"The target {problem.target!r} of {self.path} must have a value in every row",
                    got="rows without one",
                    advice="Write a file without these rows: frame.drop_nulls(target).",
                )
            return y.astype(str) if kind == "U" else y.astype(np.int64 if kind == "i" else problem.y.dtype)

        rows = self.rows.without(self.at[problem.places[held_out]]).mapped(features, targets)
        roles = problem.roles | ({} if self.weight is None else {self.weight: "weight"})
        classes = problem.task == "classification"
        cls: Any = mc.AutoClassifier if classes else mc.AutoRegressor
        more = {"class_weight": settings["class_weight"]} if classes else {}
        model = cls(
            kernel=settings["kernel"], roles=roles or None, time=settings["time"],
            random_state=settings["random_state"],
            progress=lambda trial: progress(f"{trial.resources}; {trial}", trial.share), **more,
        ).fit(rows)  # fmt: skip
        model.set_params(progress=None)
        choices = tuple(f"{d.question.lower()}: {d.taken} ({d.why})" for d in model.choices_)
        return menu.Fitted(
            model, choices, model.columns_.roles, model.stopped_by_ != "time", model.last_fit_,
            rows=np.arange(len(problem.y) - len(held_out)), task=problem.task, seed=settings["random_state"],
        )  # fmt: skip

    def placed(self, problem: Problem) -> Problem:
        """The problem of the sample, which knows the number of rows of the file."""
        return replace(problem, total=self.rows.n)


@dataclass(frozen=True)
class Features:
    """The columns of a batch as the model sees them; a worker of a cluster calls it, too."""

    columns: tuple[str, ...]
    types: dict[str, str]
    path: str

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        return as_fitted(frame.select(self.columns), self.types, self.path, 0, False)


def connected(address: str | None, path: str) -> AbstractContextManager[Any]:
    """A client of the Dask cluster at an address, for a file that its workers can read; None without an address."""
    if address is None:
        return nullcontext()
    where = Path(path).expanduser()
    if where.suffix not in SCANS and not (where.is_dir() and any(part.suffix in SCANS for part in where.iterdir())):
        raise InvalidInput(
            "--dask needs a Parquet or Arrow file, or a folder of them, that the workers see under the same path",
            got=path,
            advice="Write the rows to such a file, or leave --dask out.",
        )
    return client_at(address)


def beyond_memory(path: str) -> bool:
    """Whether a file is Parquet or Arrow and too large for the memory budget, or a folder of such files."""
    where = Path(path).expanduser()
    if where.is_dir():
        return not is_tu(path) and any(part.suffix in SCANS for part in where.iterdir())
    if where.suffix not in SCANS or not where.exists():
        return False
    try:
        lazy = getattr(pl, SCANS[where.suffix])(where)
        schema = lazy.collect_schema()
        n = int(lazy.select(pl.len()).collect().item())
    except Exception:  # not such a file in truth: reading it as a table says why
        return False
    return COPIES * n * sum(_width(dtype) for dtype in schema.values()) > memory.budget()


def _width(dtype: Any) -> int:
    return 8 if dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean else TEXT


def open_large(path: str, target: str | None, options: dict[str, Any], client: Any = None) -> tuple[Large, Table]:
    """The rows of a file, and a table of a sample of them; with a client they are summed on its cluster.

    `options` are those of `mercer fit`: some need all rows in memory, and are refused.
    """
    refused = {
        "--model": options["model"] if options["model"] != "auto" else None,
        "--folds": options["folds"],
        "--refit": options["refit"] or None,
        "--plan": options["plan"] or None,
        "--threshold": options["threshold"],
        "--group": options["roles"].get("group"),
        "--time-column": options["roles"].get("time_column"),
        "--drop-missing-target": options["drop_missing_target"] or None,
    }
    for option, value in refused.items():
        if value is not None:
            raise InvalidInput(
                f"{option} needs a table that fits into memory",
                got=f"{path}, which is read in batches",
                advice=f"Leave {option} out, set MERCER_MEMORY to more memory, or fit a sample of the rows.",
            )
    names = mc.Batches(path).names or []
    if target is None:
        raise no_target(names, path)
    target = named(target, names, path, text=False)
    rows = (mc.Batches(path, target) if client is None else mc.DaskFiles(path, target, client)).as_tables()
    sample = drawn(rows, SAMPLE, generator(options["seed"]), Witnesses())
    order = np.argsort(sample.at)
    frame = sample.X[order]
    values = rows_targets(sample.y, sample.at[order])
    table = as_table(frame.with_columns(pl.Series(target, values)), path, options["roles"], target, options["na"])
    table.notes.append(
        f"{path} has {rows.n:,} rows, which are read in batches: kernel and loss are chosen on a sample of "
        f"{len(order):,}, some of which are held out, and the model is fitted to all others"
    )
    weight = options["roles"].get("weight")
    return Large(path, target, rows, sample.at[order], weight), table


def rows_targets(y: Any, at: Array) -> list[Any]:
    """Targets of some rows, with None for missing ones."""
    return [None if is_missing(value) else value for value in y[at].tolist()]
