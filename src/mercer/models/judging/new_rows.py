"""New rows beside the training rows of a model: does it know such rows, or does it extrapolate?

    watch = Watch(model)
    for rows in batches:
        model.predict(rows)
        watch.add(rows)
    for caution in watch.cautions():
        print(caution)

The training rows themselves are not needed: the model's provenance has the range and the distribution of every column.
Only the distance to the nearest training row needs points, namely those that the fitted function consists of.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.columns import as_array, tabled
from mercer.data.frames import is_frame, kind_of_type
from mercer.data.missing import missing_entries
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel, Similarity
from mercer.models.base import innermost, rows_of_innermost
from mercer.models.judging.cautions import Caution, percent
from mercer.models.judging.drift import Drift, drift
from mercer.models.judging.unseen import REPORTED, NewlyMissing, Outside, far_rows, named
from mercer.models.local.local_regression import LocalRegression
from mercer.models.provenance import Provenance, provenance
from mercer.rkhs.geometry import nearest
from mercer.words import count

COMPARED, NEIGHBOURS = 300, 2000
"""The largest numbers of rows and of training points between which distances are computed."""
USUAL = 0.99
"""Training rows nearer to another one than this share of them are near."""
MANY_FAR, FEWEST = 0.05, 20
"""A smaller share of rows far from all training rows, or one of fewer rows, is no reason for doubt."""


@dataclass(frozen=True)
class Far(Caution):
    """Rows farther from every training row than 99 % of the training rows are from each other.

    Attributes
    ----------
    rows, of : int
        The number of such rows, and of all rows that were looked at, at most 300.
    """

    rows: int
    of: int

    @property
    def share(self) -> float:
        """The share of such rows; among rows like the training rows it is about 1 %."""
        return self.rows / max(self.of, 1)

    @property
    def notable(self) -> bool:
        """Whether the share is above 5 % and above chance, among enough rows for a share to mean something."""
        return self.of >= FEWEST and self.share > MANY_FAR + 2 * np.sqrt(MANY_FAR / self.of)

    @property
    def words(self) -> str:
        return (
            f"{self.rows:,} of {count(self.of, 'row')} ({percent(self.share)}) that were looked at are farther from "
            "every training row, as the kernel measures distance, than 99 % of the training rows are from each other: "
            "these predictions are less reliable"
        )


class Watch:
    """Compares new rows, batch by batch, with the training rows of a model.

    Parameters
    ----------
    model : estimator
        A fitted model with its provenance. Without one, nothing is compared.

    Examples
    --------
    >>> import numpy as np, pandas as pd, mercer as mc
    >>> from mercer.models.provenance import Provenance
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"size": rng.normal(size=200), "age": rng.normal(size=200)})
    >>> model = mc.KernelRidge().fit(X, X["size"])
    >>> model.provenance_ = Provenance.of(X, X["size"].to_numpy())
    >>> watch = Watch(model)
    >>> watch.add(X.assign(age=X["age"] + 1))
    >>> [type(caution).__name__ for caution in watch.cautions()]
    ['Drift']
    """

    def __init__(self, model: Any) -> None:
        self.model, self.origin = model, provenance(model)
        self.used = columns_used(model, self.origin)
        self.rows = 0
        self._unseen, self._missing, self._outside = Counter[str](), Counter[str](), Counter[str]()
        self._rows_outside = 0
        self._counts: dict[str, NDArray[np.float64]] = {}
        self._far: Far | None = None

    def add(self, X: Any) -> None:
        """Compare further rows, with the columns of the training rows by name."""
        origin, n = self.origin, length(X)
        if is_frame(X) and n:
            columns = {name: as_array(column, name) for name, column in tabled(X).items() if name in self.used}
            self._compare(columns, origin, n)
            if self._far is None:
                self._far = far_from_training(self.model, X)
        self.rows += n

    def _compare(self, columns: dict[str, NDArray[Any]], origin: Provenance, n: int) -> None:
        outside = np.zeros(n, dtype=bool)
        for name, values in columns.items():
            is_number, is_date = kind_of_type(origin.columns.get(name, "")) == "number", values.dtype.kind == "M"
            if name in origin.ranges and not is_date:
                self._unseen[name] += far_rows(values, origin.ranges[name], is_number)
            if name in origin.ranges and (is_number or is_date):
                x = values if is_date else values.astype(np.float64)
                low, high = (np.datetime64(end) if is_date else float(end) for end in origin.ranges[name])
                beyond = (x < low) | (x > high)
                self._outside[name] += int(beyond.sum())
                outside |= beyond
            if origin.incomplete is not None and name not in origin.incomplete:
                self._missing[name] += int(missing_entries(values).sum())
            if name in origin.distributions:
                counts = origin.distributions[name].counts(values)
                self._counts[name] = self._counts.get(name, 0.0) + counts
        self._rows_outside += int(outside.sum())

    def cautions(self) -> tuple[Caution, ...]:
        """The reasons to doubt the predictions for the rows so far; those about columns first."""
        origin = self.origin
        numbers = {name for name in origin.columns if kind_of_type(origin.columns[name]) == "number"}
        unseen = named(self._unseen, origin.ranges, numbers)
        cautions: list[Caution] = list(unseen)
        missing = [name for name, times in self._missing.most_common() if times]
        if missing:
            cautions.append(NewlyMissing(self._missing.total(), tuple(missing)))
        reported = {caution.column: caution.rows for caution in unseen}
        cautions += [drift for drift in self.drifts() if drift.column not in reported][:REPORTED]
        columns = tuple(name for name, times in self._outside.most_common() if times)
        chance = min(2.0 * len(numbers & self.used) / (origin.rows + 1), 1.0)
        outside = Outside(self._rows_outside, self.rows, columns, chance)
        if outside.notable and not any(2 * reported.get(name, 0) > outside.rows for name in columns):
            cautions.append(outside)
        if self._far is not None and self._far.notable:
            cautions.append(self._far)
        return tuple(cautions)

    def drifts(self) -> list[Drift]:
        """The columns that have drifted, the farthest first."""
        drifts = [drift(name, self.origin.distributions[name], counts) for name, counts in self._counts.items()]
        return sorted((d for d in drifts if d is not None and d.notable), key=lambda d: -d.distance)


def far_from_training(model: Any, X: Any) -> Far | None:
    """How many rows are far from all training rows, in the feature space of the model's kernel.

    None if the model has no kernel, keeps no points, or keeps only some of the training rows. A sample of 300 rows and
    2,000 points stands for more.
    """
    inner = innermost(model)
    kernel = getattr(inner, "kernel_", None)
    try:
        points = getattr(getattr(inner, "function_", None), "points", None)
    except InvalidInput:  # a loaded model whose file lacks the training rows
        return None
    if (
        points is None
        or not isinstance(kernel, Kernel)
        or points.n < COMPARED // 10
        or points.n < provenance(model).rows
    ):
        return None
    rng = np.random.default_rng(0)
    known = points.take(np.sort(rng.permutation(points.n)[:NEIGHBOURS]))
    some = known.take(np.sort(rng.permutation(known.n)[:COMPARED]))
    usual = np.quantile(nearest(kernel, known, some, 2)[0][:, 1], USUAL)
    rows = np.sort(rng.permutation(length(X))[:COMPARED])
    distances = nearest(kernel, known, take(rows_of_innermost(model, X), rows), 1)[0][:, 0]
    return Far(int((distances > usual * (1 + 1e-9)).sum()), len(rows))


def columns_used(model: Any, origin: Provenance) -> set[str]:
    """The columns on which the predictions depend: those of the kernel, or all if the model has none."""
    inner, names = innermost(model), list(origin.columns)
    kernel = None
    if not isinstance(inner, LocalRegression):  # its polynomials use all columns
        kernel = getattr(inner, "kernel_", None) or getattr(inner, "kernel", None)
    used = set().union(*kernel.terms(names)) if isinstance(kernel, Similarity) else set(names)
    return used - origin.left_out.keys()
