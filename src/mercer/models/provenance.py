"""The origin of a fitted model: its file, columns and rows, the held-out rows, the scores, the date and the version.

`mercer fit` saves it with the model, and `mercer predict`, `evaluate` and `explain` read it. In Python:

    model.provenance_ = Provenance.of(X[train], y[train], target="price", data="houses.csv", scores=judgement.scores)
    model.save("houses.mercer")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier

from mercer.data.columns import as_array, tabled
from mercer.data.frames import is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import length
from mercer.models.base import given_rows, innermost, training_record, unwrapped
from mercer.models.explaining.importance import Importance
from mercer.models.judging.drift import Distribution, distributions
from mercer.models.judging.overlap import Seen
from mercer.models.judging.unseen import value_ranges
from mercer.models.scores import Baseline, Judged, Score

Task = Literal["regression", "classification"]
PLACES = 5000
"""The largest number of fitted rows whose positions in the file are recorded."""


@dataclass(frozen=True)
class Split:
    """How the rows that score a model were held out.

    Attributes
    ----------
    folds, repeats : int
        The number of folds, 0 without cross-validation, and how often they were drawn.
    group, time : str
        The column by which rows were held out together, or the future from the past; "" if there is none.
    """

    folds: int = 0
    repeats: int = 1
    group: str = ""
    time: str = ""


@dataclass(frozen=True)
class Provenance:
    """The origin of a fitted model.

    Attributes
    ----------
    data : str
        The name of the file, without its folders.
    target, task : str or None, Task
        The column that is predicted; "regression" or "classification".
    target_type : str
        The type of the target, if texts are read by a format, such as Int64[1,234.5]; else "".
    columns : dict
        The type of every column by its name, as the library of the table spells it; empty for a matrix.
    left_out : dict
        Columns of the file that the model does not use, and why.
    rows, held_out : int
        The numbers of training rows and of held-out rows.
    refitted : bool
        Whether the model was fitted again, with the held-out rows, after it was scored.
    seed : int or None
        The seed of the random numbers.
    judged : Judged or None
        Which predictions the scores are about; None without scores.
    split : Split
        How the rows of the scores were held out.
    scores : tuple of Score
        The scores of these predictions.
    baseline : Baseline or None
        The baseline of the training targets; None if it is not known.
    importance : Importance or None
        The feature importance, on held-out rows if there are some, else on training rows; None if it was not measured.
    places, targets
        Of the rows that the last fit used, the positions in the file, from 0, and the targets; empty if there are many
        rows.
    missing : tuple of str
        Texts that mark a missing value in this file.
    ranges
        By column, the smallest and the largest number, or the different texts.
    incomplete : tuple of str or None
        The columns in which values were missing; None if it is not known.
    distributions : dict
        By column, the distribution of its values.
    seen : Seen or None
        The digests of the training rows, by which they are recognised later; None if they have none.
    background
        At most 100 training rows, with which `mercer explain` compares a row; None for a model that keeps no training
        rows at all, and for rows that are not a table of several columns.
    version : str
        The version of this library.
    time : str
        The time of the fit, in UTC.
    """

    data: str = ""
    target: str | None = None
    task: Task = "regression"
    target_type: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    held_out: int = 0
    refitted: bool = False
    seed: int | None = None
    judged: Judged | None = None
    split: Split = Split()
    scores: tuple[Score, ...] = ()
    baseline: Baseline | None = None
    importance: Importance | None = None
    places: tuple[int, ...] = ()
    targets: tuple[Any, ...] = ()
    missing: tuple[str, ...] = ()
    ranges: dict[str, list[Any]] = field(default_factory=dict)
    incomplete: tuple[str, ...] | None = None
    distributions: dict[str, Distribution] = field(default_factory=dict)
    seen: Seen | None = None
    background: Any = field(default=None, compare=False)
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
        exposure: Any = None,
        fitted: Any = None,
        **facts: Any,
    ) -> Provenance:
        """The provenance of a model that was just fitted to these rows, with further attributes by name.

        `places` are the positions of the rows in their file, and `fitted` are the positions among the rows of those
        that the last fit used, if it did not use all.

        >>> import numpy as np
        >>> origin = Provenance.of(np.zeros((3, 1)), np.array([1.0, 2.0, 6.0]), target="price", data="houses.csv")
        >>> origin.rows, origin.target, origin.baseline.mean
        (3, 'price', 3.0)
        """
        from mercer import __version__

        places, labels = (np.asarray(A) if fitted is None or not len(A) else np.asarray(A)[fitted] for A in (places, y))
        if columns is None:
            columns = dict(zip(map(str, X.columns), map(str, X.dtypes))) if is_frame(X) else {}
        if is_frame(X):
            values = {name: as_array(column, name) for name, column in tabled(X).items()}
            facts = {
                "ranges": value_ranges(values),
                "incomplete": tuple(name for name, A in values.items() if missing_entries(A).any()),
                "distributions": distributions(values),
            } | facts
        return cls(
            task="classification" if classes else "regression",
            columns=dict(columns),
            rows=length(X),
            baseline=Baseline.of(y, classes=classes, exposure=exposure),
            places=tuple(places.tolist()) if len(places) <= PLACES else (),
            targets=tuple(labels.tolist()) if 0 < len(places) <= PLACES else (),
            seen=Seen.of(X, y),
            version=__version__,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
        )


def provenance(model: Any) -> Provenance:
    """The provenance of a fitted model; if none was recorded, one with the columns, the task and the number of rows.

    >>> import numpy as np, mercer as mc
    >>> X = np.arange(6.0)[:, None]
    >>> provenance(mc.Ridge().fit(X, X[:, 0])).rows
    6
    """
    recorded = getattr(model, "provenance_", None)
    if isinstance(recorded, Provenance):
        return recorded
    training = training_record(innermost(model))
    names, types = getattr(model, "feature_names_in_", None), training.get("dtypes") or ["float64"]
    columns = {}
    if names is not None:
        types = types if len(types) == len(names) else types[:1] * len(names)
        columns = dict(zip(map(str, names), types))
    return Provenance(
        task="classification" if is_classifier(model) else "regression",
        columns=columns,
        rows=int(training.get("rows", 0)),
    )


def fitted_rows(model: Any) -> int | None:
    """The number of rows that a model was fitted to, those for its probabilities included; None if it is not known.

    An automatic model uses some rows only if there is no time for more.
    """
    last = getattr(unwrapped(model), "last_fit_", None)
    return given_rows(innermost(model)) if last is None else int(last.rows)
