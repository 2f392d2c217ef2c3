"""Where a fitted model comes from: the file, its columns and rows, what was held out, the scores, when and by what.

`mercer fit` saves it with the model, and `mercer predict`, `evaluate` and `explain` read it; from Python:

    model.provenance_ = Provenance.of(X[train], y[train], target="price", data="houses.csv", scores=judgement.scores)
    model.save("houses.mercer")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sklearn.base import is_classifier

from mercer.data.frames import is_frame
from mercer.data.points import length
from mercer.models.base import innermost
from mercer.models.scores import Baseline, Judged, Score

Task = Literal["regression", "classification"]
PLACES = 5000
"""Fitted rows whose places in the file are kept, at most."""


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from.

    Attributes
    ----------
    data : the name of the file, without its folders.
    target, task : the column that is predicted; "regression" or "classification".
    columns : the type of every column by its name, as the library of the table spells it; empty for a matrix.
    left_out : columns of the file that the model does not use, and why.
    rows, held_out : how many rows the model was fitted to, and how many were held out to judge it.
    refitted : whether it was fitted to the rows held out, too, after it was judged.
    seed : of everything that was drawn.
    judged : whose predictions `scores` are of; None where there are none.
    scores : on these rows.
    baseline : a model without columns, of the same training targets; None where it is not known.
    places : of the fitted rows in the file, from 0; empty where there are many.
    missing : texts that mean a missing value in this file.
    ranges : by column, the least and the largest number, or the words that it held.
    version : of this library.
    time : when it was fitted, in UTC.
    """

    data: str = ""
    target: str | None = None
    task: Task = "regression"
    columns: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    held_out: int = 0
    refitted: bool = False
    seed: int | None = None
    judged: Judged | None = None
    scores: tuple[Score, ...] = ()
    baseline: Baseline | None = None
    places: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    ranges: dict[str, list[Any]] = field(default_factory=dict)
    version: str = ""
    time: str = ""

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        classes: bool = False,
        columns: Mapping[str, str] | None = None,
        places: Any = (),
        **facts: Any,
    ) -> Provenance:
        """The provenance of a model that is fitted to these rows now, with further attributes by name.

        >>> import numpy as np
        >>> known = Provenance.of(np.zeros((3, 1)), np.array([1.0, 2.0, 6.0]), target="price", data="houses.csv")
        >>> known.rows, known.target, known.baseline.mean
        (3, 'price', 3.0)
        """
        from mercer import __version__

        if columns is None:
            columns = dict(zip(map(str, X.columns), map(str, X.dtypes))) if is_frame(X) else {}
        return cls(
            task="classification" if classes else "regression",
            columns=dict(columns),
            rows=length(X),
            baseline=Baseline.of(y, classes=classes),
            places=tuple(int(i) for i in places) if len(places) <= PLACES else (),
            version=__version__,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
        )


def provenance(model: Any) -> Provenance:
    """The provenance of a fitted model; of one that was fitted without it, the columns, the task and the rows.

    >>> import numpy as np, mercer as mc
    >>> X = np.arange(6.0)[:, None]
    >>> provenance(mc.Ridge().fit(X, X[:, 0])).rows
    6
    """
    known = getattr(model, "provenance_", None)
    if isinstance(known, Provenance):
        return known
    inner = innermost(model)
    fitted_on = getattr(inner, "_fitted_on", None) or {}
    names, types = getattr(model, "feature_names_in_", None), fitted_on.get("dtypes") or ["float64"]
    columns = {}
    if names is not None:
        types = types if len(types) == len(names) else types[:1] * len(names)
        columns = dict(zip(map(str, names), types))
    return Provenance(
        task="classification" if is_classifier(model) else "regression",
        columns=columns,
        rows=int(fitted_on.get("rows", 0)),
    )


def fitted_rows(model: Any) -> int | None:
    """How many rows a model was really fitted to: a search that was stopped takes fewer than it was given."""
    rows = (getattr(innermost(model), "_fitted_on", None) or {}).get("rows")
    return None if rows is None else int(rows)
