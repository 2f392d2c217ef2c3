"""The report of a fitted model: its sections, from scores to the code that reproduces it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.data.frames import row_labels
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.files.replace import replacing
from mercer.kernels.algebra.proof import MARKS, Proof
from mercer.kernels.base import Weight
from mercer.models.base import exposure_of, exposures_in, innermost, unwrapped
from mercer.models.explaining.effort import Effort
from mercer.models.explaining.importance import Importance, measured_importance
from mercer.models.judging.cautions import Caution
from mercer.models.judging.leakage import leakage
from mercer.models.provenance import provenance
from mercer.models.scores import Baseline, Judged, Judgement, judge
from mercer.ours import require_replaceable
from mercer.report import frames
from mercer.report.card import card_section, origin_in_words
from mercer.report.frames import cell
from mercer.report.page import code, figures, folded, heading, page, paragraph, section, spark, table
from mercer.report.plots import Plot, Plots, drawn
from mercer.report.reasons import explained_rows, important_columns
from mercer.report.scores import (
    classes_section,
    counts_section,
    probabilities_section,
    scores_section,
    sizes_section,
)
from mercer.report.source import source
from mercer.words import count, cut, rounded, shortened

SHOWN_COLUMNS, WORST_COLUMNS, WORST_ROWS, CANDIDATES = 60, 6, 10, 12
"""The largest numbers of described columns, of columns and rows of the worst predictions, and of candidates."""
EXPRESSION, CLAIM, PREMISES = 1500, 220, 12
"""The largest numbers of characters of a kernel and of a step of its proof, and of premises of a step."""
DRAWING, LEAST_SECONDS = 3.0, 0.5
"""Seconds in which the plots of a report are drawn, and the least that predictions for explanations get."""
LONG_CELL = 30
"""A column with a longer cell than this gets more width."""
TOO_LATE = "are left out, because the time was over. A longer time shows them."


def write(
    model: Any,
    X: Any,
    y: Any,
    path: Any,
    *,
    overwrite: bool = False,
    held_out: tuple[Any, Any] | None = None,
    judgement: Judgement | None = None,
    cautions: Sequence[Caution] | None = None,
    importance: Importance | None = None,
    rows: Any = None,
    target: str = "target",
    title: str | None = None,
    command: str = "",
    saved: str | None = None,
    time: float | None = None,
    late: Callable[[], bool] | None = None,
) -> Path:
    """Write the report of a fitted model to an HTML file, completely or not at all.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor.
    X, y : array or frame, array
        The rows it was fitted to: an array, a pandas or Polars frame, and the targets.
    path : str or Path
        The path of the file; its folder must exist.
    overwrite : bool
        Whether any file may be replaced. By default only a report or model of Mercer, or an empty file, is.
    held_out
        A pair (Z, z) or None: held-out rows, on which the model is scored, and their targets. Without them it is scored
        on X and y, and the report says so.
    judgement : Judgement or None
        The scores, if they were computed before: by `judge` for `held_out`, or without it by `judge_by_leave_one_out`
        or `judge_by_folds` for X and y.
    cautions : sequence of Caution or None
        Reasons for doubt to show above the scores; by default those that `mercer.models.judging.leakage` finds.
    importance : Importance or None
        The feature importance on the scored rows, if it was measured before.
    rows : array or None
        The position, from 0, in its table of each row that can be scored: of `held_out`, or of X without it. The report
        counts from 1. By default the index of a pandas frame, or the position among these rows.
    target : str
        The name of the target.
    title : str or None
        The title of the page.
    command : str
        The command that wrote the report, shown at its end.
    saved : str or None
        The path of the file of the model, which the report shows how to load if the rows alone do not determine the
        model.
    time : float or None
        Seconds for which the report is planned, on one core of a common machine: in a shorter time, effects,
        interactions and contributions are means over fewer rows. By default as many rows as are useful.
    late : callable or None
        Called between parts, and between tiles of kernel values: once it returns True, the plots of columns, of the
        kernel, the feature importance and the explanations that follow are left out, and the report says so.

    Examples
    --------
    >>> import tempfile, numpy as np, mercer as mc
    >>> from pathlib import Path
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = mc.KernelRidge(alpha=0.1).fit(X[:40], X[:40, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mc.report.write(model, X[:40], X[:40, 0], Path(folder) / "report.html", held_out=(X[40:], X[40:, 0]))
    ...     text = path.read_text()
    >>> text[:15], "Worst predicted rows" in text
    ('<!doctype html>', True)
    """
    check_is_fitted(model)
    place = Path(path)
    if not place.parent.is_dir():
        raise InvalidInput(
            "`path` must be in a folder that exists", got=shortened(str(place)), advice="Create the folder first."
        )
    require_replaceable(str(place), overwrite=overwrite)
    y = np.asarray(y)
    Z, z = (X, y) if held_out is None else (held_out[0], np.asarray(held_out[1]))
    for table_, truth, what in ((X, y, "y"), (Z, z, "held_out")):
        if truth.ndim != 1 or len(truth) != length(table_) or not len(truth):
            raise InvalidInput(
                f"`{what}` must hold one target for each of its rows, and at least one row",
                got=f"shape {truth.shape} for {length(table_)} rows",
                advice="Write a report for each target.",
            )
    if rows is not None and len(rows) != len(z):
        raise InvalidInput(
            "`rows` must hold a position for each scored row",
            got=f"{len(rows)} for {len(z)}",
            advice="Pass one position for each, or omit `rows`.",
        )
    names = _numbered(Z, rows)
    if cautions is None:
        cautions = leakage(X, y, held_out, classes=is_classifier(model), target=str(target))
    if judgement is None:
        by: Judged = "fitted" if held_out is None else "held out"
        baseline = Baseline.of(y, classes=is_classifier(model), exposure=exposures_in(X, model))
        judgement = judge(model, Z, z, baseline, intervals=held_out is not None, by=by)
    else:
        if (judgement.by == "held out") != (held_out is not None) or not (judgement.rows < len(z)).all():
            raise InvalidInput(
                "`judgement` must be of the held-out rows if there are some, otherwise of the rows of X",
                got=f"predictions that are {judgement.by}, {len(judgement.rows):,} for {len(z):,} rows",
                advice="Pass the judgement of these rows, or omit it.",
            )
        judgement = judgement.once()
        Z, z = take(Z, judgement.rows), z[judgement.rows]
        names = names[0], [names[1][i] for i in judgement.rows]
    effort = Effort.of(model, max(time - DRAWING, LEAST_SECONDS) if time is not None else float("inf"))
    page_ = _Page(model, X, y, Z, z, judgement, str(target), tuple(cautions), importance, effort, saved, late)
    text = page_.whole(title, command, names)
    try:
        with replacing(str(place)) as beside:
            Path(beside).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            "`path` must be a file that can be written",
            got=f"{place} ({error.strerror})",
            advice="Choose another folder, or free disk space.",
        ) from None
    return place


def _numbered(Z: Any, rows: Any) -> tuple[str, list[str]]:
    """The header of the column of row names, and the name of each row."""
    if rows is not None:
        return "row", [str(int(i) + 1) for i in rows]
    labels = row_labels(Z)
    if labels is not None:
        return "index", [cut(str(i), 20) for i in labels]
    return "row", [str(i + 1) for i in range(length(Z))]


@dataclass(eq=False)
class _Page:
    """A model, its training rows (X, y), and the rows it is scored on (Z, z): held-out rows, or the training rows."""

    model: Any
    X: Any
    y: NDArray[Any]
    Z: Any
    z: NDArray[Any]
    judgement: Judgement
    target: str
    cautions: tuple[Caution, ...]
    importance: Importance | None
    effort: Effort
    saved: str | None = None
    late: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        self.measured_late = False
        if self.importance is None:
            try:
                with self._in_time():
                    self.importance = measured_importance(self.model, self.Z, self.z, self.effort)
            except threads.OutOfTime:
                self.measured_late = True
        self.inner = innermost(self.model)
        self.classes = is_classifier(self.model)
        self.names = frames.names(self.X)
        self.kinds = frames.kinds_read(getattr(self.inner, "kernel_", None), self.names)
        """The kind as which the kernel reads each of its columns; None if it reads all columns in the same way."""
        self.described = frames.described(self.X, self.kinds)
        self.exposure = exposure_of(self.model)
        read = self.names if self.kinds is None else [*self.kinds, self.exposure]
        self.unused = [name for name in self.names if name not in read]
        rises = [0.0 if self.importance is None else self.importance.of(name) for name in self.names]
        self.order = np.argsort(-np.asarray(rises), kind="stable")
        """The positions of the columns, the most important first."""

    def whole(self, title: str | None, command: str, numbered: tuple[str, list[str]]) -> str:
        kind = type(self.inner).__name__
        n, m, d = len(self.y), len(self.z), len(self.names)
        scored = {
            "held out": f"scored on {m:,} held-out rows",
            "left out": f"scored on {m:,} training rows by leave-one-out",
            "folds": f"scored on {m:,} training rows by cross-validation",
            "fitted": f"scored on the same {m:,} rows",
        }[self.judgement.by]
        fitted = frames.fitted_rows(self.model, n)
        but = f", {len(self.unused):,} of them not used" if self.unused else ""
        lead = f"{kind} on {d:,} column{'s' * (d > 1)}{but}, fitted to {fitted} and {scored}."
        origin, ranges = provenance(self.model), any(c.kind in ("number", "date") for c in self.described)
        used = np.array([j for j in self.order if self.names[j] not in self.unused], dtype=np.int64)
        plots = Plots(
            self.model, self.X, self.y, self.Z, self.z, self.judgement, self.target, self.names, used, self.effort
        )
        parts = [
            self._cautions(),
            card_section(lead, self.model, origin, self.y, self.judgement, ranges=ranges),
            scores_section(self.judgement, self.z),
            self._plots("Predictions and their errors", plots.of_predictions(), always=True),
            classes_section(self.model, self.z, self.judgement),
            probabilities_section(self.z, self.judgement),
            sizes_section(self.z, self.judgement),
            counts_section(self.z, self.judgement),
            self._importance(),
            self._plots("The effect of the columns", plots.of_columns()),
            self._explained(*numbered),
            self._worst(*numbered),
            self._columns(),
            self._choices(),
            self._kernel(plots),
            self._reproduce(command),
        ]  # fmt: skip
        return page(title or f"Predicting {self.target}", origin_in_words(origin), [part for part in parts if part])

    def _cautions(self) -> str:
        words = [caution.words for caution in self.cautions]
        return section(
            "Before you rely on it", *(paragraph(f"{text[0].upper()}{text[1:]}.", "warn") for text in words)
        ) if words else ""  # fmt: skip

    def _importance(self) -> str:
        if self.importance is not None:
            return important_columns(self.importance, self.judgement.by == "held out")
        late = paragraph(f"The importances of the columns {TOO_LATE}", "soft")
        return section("Feature importance", late) if self.measured_late else ""

    def _plots(self, title: str, plots: Iterable[Plot], *, always: bool = False) -> str:
        pictures = self._drawn(plots, always=always)
        return section(title, pictures) if pictures else ""

    def _drawn(self, plots: Iterable[Plot], *, always: bool = False) -> str:
        """Plots with their captions, and the reasons of those that could not be drawn; late ones only if `always`."""
        pictures, refused = [], []
        try:
            with nullcontext() if always else self._in_time():
                for draw, caption in plots:
                    try:
                        pictures.append((drawn(draw), caption))
                    except (InvalidInput, np.linalg.LinAlgError) as error:  # other errors are defects, to be seen
                        refused.append(paragraph(f"This plot could not be drawn. {caption} {error}", "soft"))
                    if not always:
                        self._require_time()
        except threads.OutOfTime:
            refused.append(paragraph(f"{'More plots' if pictures else 'The plots'} {TOO_LATE}", "soft"))
        return "\n".join([figures(pictures) if pictures else "", *refused]).strip()

    def _explained(self, row_header: str, row_names: list[str]) -> str:
        names = [self.names[j] for j in self.order]
        try:
            with self._in_time():
                return explained_rows(
                    self.model,
                    self.X,
                    self.y,
                    self.Z,
                    self.z,
                    self.judgement,
                    names,
                    row_header,
                    row_names,
                    self.effort,
                )
        except threads.OutOfTime:
            return section("Why the model predicts as it does", paragraph(f"The explanations {TOO_LATE}", "soft"))

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Raise `OutOfTime` here, or between two tiles of kernel values, once it is too late."""
        self._require_time()
        with nullcontext() if self.late is None else threads.time_limit(self.late):
            yield

    def _require_time(self) -> None:
        if self.late is not None and self.late():
            raise threads.OutOfTime

    def _columns(self) -> str:
        described, rows = self.described, []
        for j in self.order[:SHOWN_COLUMNS]:
            c = described[j]
            row = [cut(c.name, 60), c.kind, f"{c.missing:,}" if c.missing else "", f"{c.distinct:,}"]
            rows.append([*row, spark(c.heights, f"distribution of {c.name}"), c.summary])
        header, numbers = ["column", "kind", "missing", "distinct", "", "values"], [2, 3]
        notes = "Values: the smallest, the median and the largest number; the most frequent values of other columns."
        if self.exposure is not None:
            notes += f" {cut(self.exposure, 60)} is the exposure, not a feature."
        if self.unused:
            notes += f" Not used by the kernel: {cut(', '.join(self.unused), EXPRESSION)}."
        if len(described) > SHOWN_COLUMNS:
            notes += f" {len(described) - SHOWN_COLUMNS:,} more columns are not shown."
        one = frames.described((self.y.astype(str) if self.classes else self.y)[:, None])[0]
        about = f"Columns of the {count(len(self.y), 'training row')}. "
        about += f"{self.target}: {one.kind}, {one.distinct:,} distinct values, {one.summary}."
        return section(
            "Data", paragraph(about), table(header, rows, numbers, [len(header) - 1]), paragraph(notes, "soft")
        )

    def _worst(self, row_header: str, names: list[str]) -> str:
        worst = np.argsort(-self.judgement.losses, kind="stable")[:WORST_ROWS]
        shown = self.order[:WORST_COLUMNS]
        columns = [frames.column(self.Z, j) for j in shown]
        with_probability = self.classes and self.judgement.probabilities is not None
        rows = []
        for i in worst:
            truth, prediction, loss = self.z[i], self.judgement.predictions[i], self.judgement.losses[i]
            row = [names[i], cell(truth), cell(prediction)]
            if with_probability:
                row.append(f"{100 * np.exp(-loss):.3g} %")
            elif not self.classes:
                row.append(cell(float(truth) - float(prediction)))
            rows.append([*row, *(cell(column[i]) for column in columns)])
        header = [row_header, cut(self.target, 30), "predicted"]
        header += ["probability of the true class"] if with_probability else [] if self.classes else ["residual"]
        header += [cut(self.names[j], 30) for j in shown]
        numbers = [0, 3] if with_probability else [0] if self.classes else [0, 1, 2, 3]
        before = len(header) - len(shown)
        numbers += [before + k for k, column in enumerate(columns) if column.dtype.kind in "iuf"]
        rest = len(self.names) - len(shown)
        note = f"The {len(shown)} most important columns are shown, {rest:,} more are not." if rest else ""
        long = [before + k for k, column in enumerate(columns) if max(len(cell(column[i])) for i in worst) > LONG_CELL]
        return section("Worst predicted rows", table(header, rows, numbers, long), paragraph(note, "soft"))

    def _kernel(self, plots: Plots) -> str:
        kernel = getattr(self.inner, "kernel_", None)
        if kernel is None:
            return ""
        if isinstance(kernel, Weight):
            return section(
                "Kernel",
                paragraph("The model smooths with a weight, which says how much each row nearby counts:"),
                code(cut(rounded(repr(kernel)), EXPRESSION)),
            )
        proof = kernel.proof(len(self.names) if kernel.space == "vectors" else None)
        verdict = (
            "It is proven to be positive semidefinite: its similarities are inner products of points in some space, so "
            "that the fit has one best solution."
            if proof.valid
            else "It is not proven to be positive semidefinite, that is, to give the inner products of points in some "
            "space; this was only checked on the data."
        )
        return section(
            "Kernel",
            paragraph("The kernel defines which rows are similar:"),
            code(cut(rounded(repr(kernel)), EXPRESSION)),
            paragraph(verdict),
            folded("The proof, step by step" if proof.valid else "The steps, and what is not proven",
                   f'<ul class="proof">{_step(proof)}</ul>'),
            folded("Pictures of the kernel and of the fit", self._drawn(plots.of_kernel())),
        )  # fmt: skip

    def _choices(self) -> str:
        parts = []
        for decision in getattr(unwrapped(self.model), "choices_", None) or ():
            parts += [heading(f"{decision.question}: {rounded(decision.taken)}")]
            parts += [paragraph(cut(rounded(decision.why), CLAIM), "soft")]
            if decision.considered is not None:
                trials = decision.considered
                rows = [[trial.label, f"{trial.score:.4g}", trial.note] for trial in trials.trials[:CANDIDATES]]
                parts.append(table(["candidate", trials.measure.name, ""], rows, numbers=(1,), small=True))
        return section("How the model was chosen", *parts) if parts else ""

    def _reproduce(self, command: str) -> str:
        return section(
            "How to reproduce it",
            code(command) if command else "",
            paragraph("Or in Python, without the search:" if command else "In Python, without the search:"),
            code(source(self.model, self.target, self.saved)),
        )


def _step(proof: Proof) -> str:
    """A step of a proof with its premises."""
    why = MARKS[proof.kind] + proof.rule
    why += f"; {proof.condition}" if proof.condition else ""
    why += f" [{proof.reference}]" if proof.reference else ""
    more = len(proof.premises) - PREMISES
    below = "".join(_step(premise) for premise in proof.premises[:PREMISES])
    below += f"<li><span>and {more:,} more</span></li>" if more > 0 else ""
    below = f"<ul>{below}</ul>" if below else ""
    claim, reason = (escape(cut(rounded(text), CLAIM)) for text in (proof.claim, why))
    return f'<li class="{proof.kind}"><code>{claim}</code><span>{reason}</span>{below}</li>'
