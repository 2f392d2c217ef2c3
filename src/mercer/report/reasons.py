"""Sections of a report that explain: important columns, and the reasons for the predictions of a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.base import exposure_of
from mercer.models.explaining.contributions import (
    BACKGROUND,
    PREDICTED,
    background_rows,
    contributions,
    predictions_each,
)
from mercer.models.explaining.effort import Effort
from mercer.models.explaining.importance import Importance
from mercer.models.explaining.similar import similar_rows
from mercer.models.scores import Judgement
from mercer.report import frames
from mercer.report.frames import cell
from mercer.report.page import bar, heading, paragraph, section, signed_bar, table
from mercer.words import cut, number

SHOWN = 15
"""The largest number of columns whose importance is shown."""
CONTRIBUTIONS, SIMILAR, COMPARED = 6, 3, 4
"""The numbers of columns with contributions, of similar rows, and of columns of these rows that are shown."""
FEWEST, FEWEST_PREDICTED, SHARE = 20, 500, 0.2
"""In limited time: the fewest background rows, the fewest among which they are chosen, and the share of the time."""
LONG = 30
"""A column with a longer cell than this gets more width."""


def important_columns(importance: Importance, held_out: bool) -> str:
    """The section on feature importance: one bar for each column."""
    ranked = importance.ranked
    largest = max(ranked[0][1], 0.0)
    rows = [
        [cut(name, 60), f"{importance.shown(rise)} ± {importance.shown(spread)}",
         bar(rise / largest if largest > 0 else 0.0)]
        for name, rise, spread in ranked[:SHOWN]
    ]  # fmt: skip
    rest = ranked[SHOWN:]
    more = f" {len(rest):,} more columns have at most {importance.shown(rest[0][1])}." if rest else ""
    words = importance.words("held-out rows" if held_out else "training rows") + more
    if not held_out:
        words += " On training rows, columns that the model memorised seem important, too."
    return section(
        "Which columns matter",
        table(["column", f"rise of the {importance.measure}", ""], rows, numbers=(1,), small=True),
        paragraph(words, "soft"),
    )


def explained_rows(
    model: Any,
    X: Any,
    y: NDArray[Any],
    Z: Any,
    z: NDArray[Any],
    judgement: Judgement,
    names: list[str],
    row_header: str,
    row_names: list[str],
    effort: Effort | None = None,
) -> str:
    """The section that explains a typical prediction, and the worst one.

    X, y are the training rows; Z, z the scored rows, which are called `row_names`. `effort` decides how many rows they
    are compared with.
    """
    effort = Effort.of(model) if effort is None else effort
    order = np.argsort(judgement.losses, kind="stable")
    chosen = {int(order[-1]): "the largest error", int(order[len(order) // 2]): "a typical prediction"}
    background = _background(model, X, effort, len(chosen)) if _has_contributions(take(Z, [0]), names) else None
    parts: list[str] = []
    for i, why in reversed(chosen.items()):
        predicted = judgement.predictions[i]
        title = f"{row_header.capitalize()} {row_names[i]}, {why}"
        reasons = (
            _contributed(model, background, length(X), take(Z, [i]), names),
            _similar(model, X, y, take(Z, [i]), names),
        )
        if any(reasons):
            parts += [heading(f"{title}: predicted {cell(predicted)}, actual {cell(z[i])}"), *filter(None, reasons)]
    return section("Why the model predicts as it does: two rows", *parts) if parts else ""


def _has_contributions(row: Any, names: list[str]) -> bool:
    """Whether there are several columns whose contributions can be compared."""
    return len(names) > 1 and not isinstance(row, list) and not hasattr(row, "tocsr")


def _background(model: Any, X: Any, effort: Effort, explained: int) -> Any:
    """Training rows with which this many rows are compared."""
    each = explained * predictions_each(X.shape[1]) * effort.row
    among = effort.most(effort.row, FEWEST_PREDICTED, PREDICTED, SHARE / 4)
    return background_rows(model, X, effort.most(each, FEWEST, BACKGROUND, SHARE), among)


def _contributed(model: Any, background: Any, total: int, row: Any, names: list[str]) -> str:
    """The contributions of the columns to the prediction of a row, compared with a background of `total` rows."""
    if len(names) == 1 and isinstance(value := frames.column(row, 0)[0], str):
        return paragraph(f"{cut(names[0], 40)}: “{cut(value, 1000)}”")
    if background is None:
        return ""
    parts = contributions(model, row, background)
    ranked, every = parts.ranked(), frames.names(row)
    largest = max(abs(ranked[0][1]), 1e-300)
    rows = []
    most = len(ranked) if len(ranked) == CONTRIBUTIONS + 1 else CONTRIBUTIONS  # a line is enough for a last column
    for name, value, error in ranked[:most]:
        shown = f"{value:+.3g}" + (f" ± {error:.1g}" if error else "")
        rows.append([cut(name, 40), cell(frames.column(row, every.index(name))[0]), shown, signed_bar(value / largest)])
    rest = ranked[most:]
    if rest:
        rows.append([f"{len(rest):,} other columns", "", f"{sum(value for _, value, _ in rest):+.3g}", ""])
    over = "" if exposure_of(model) is None else " with the same exposure"
    words = (
        f"The {parts.what(show=cell)} is {number(float(parts.predictions[0]), 3)}: "
        f"{number(float(parts.mean[0]), 3)}, the mean over {parts.background(total)}{over}, plus these "
        "contributions (Shapley values" + (")." if parts.exact else ", ± the standard error of their estimation).")
    )
    return paragraph(words) + table(["column", "value", "contribution", ""], rows, numbers=(2,), small=True)


def _similar(model: Any, X: Any, y: NDArray[Any], row: Any, names: list[str]) -> str:
    """The training rows that are most similar to a row, with their targets."""
    try:
        similar = similar_rows(model, row, among=X, top=SIMILAR)
    except InvalidInput:  # the model has no kernel
        return ""
    points, every = take(X, similar.rows), frames.names(X)
    shown = [every.index(name) for name in names[:COMPARED]]
    rows = [
        [f"{similar.similarity[k]:.3f}", cell(y[i]), *(cell(frames.column(points, j)[k]) for j in shown)]
        for k, i in enumerate(similar.rows)
    ]
    header = ["similarity", "actual", *(cut(every[j], 30) for j in shown)]
    words = "The most similar training rows, by the kernel of the model (1 means identical):"
    long = [2 + k for k in range(len(shown)) if max(len(row[2 + k]) for row in rows) > LONG]
    return paragraph(words) + table(header, rows, (0,), long, small=True)
