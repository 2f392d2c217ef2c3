"""From a fitted model and its data to the page."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.data.frames import is_frame, row_labels
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.files.replace import replacing
from mercer.kernels.algebra.proof import MARKS, Proof
from mercer.models.base import innermost
from mercer.models.importance import MEANING as IMPORTANCE
from mercer.models.importance import feature_importance
from mercer.models.scores import COVERAGE, MEASURES, Baseline, Judged, Judgement, Score, judge
from mercer.plot.looks import pyplot
from mercer.plot.looks import shortened as plot_text
from mercer.report import frames
from mercer.report.page import bar, code, figures, heading, page, paragraph, section, spark, table, tiles
from mercer.report.source import source
from mercer.words import cut, number, rounded, shortened

SHOWN_COLUMNS, WORST_COLUMNS, SHOWN_ROWS, CONSIDERED = 60, 6, 10, 12
"""Columns described, columns and rows of the worst, and candidates of a choice."""
TRIED_ROWS, TRIED_COLUMNS = 500, 40
"""Rows and columns that reliance is measured on."""
CURVES, POINTS, SIMILAR, PROMISED = 2, 1000, 300, 300
"""Curves along columns, and rows shown with them, in the heat map, and of which intervals are asked."""
LARGE = 2000
"""Fitted rows from which intervals of the model itself cost too much; errors are counted instead."""
SIZE = (6.0, 4.6)
"""Of every picture, in inches."""
COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95)
EXPRESSION, CLAIM, WORDS, PREMISES = 1500, 220, 30, 12
"""Letters of a kernel, of a step of its proof, and of a long cell; premises of a step."""


def write(
    model: Any,
    X: Any,
    y: Any,
    path: Any,
    *,
    held_out: tuple[Any, Any] | None = None,
    left_out: Any = None,
    rows: Any = None,
    target: str = "target",
    title: str | None = None,
    command: str = "",
) -> Path:
    """Write the report of a fitted model to an HTML file, whole or not at all.

    Parameters
    ----------
    model : a fitted classifier or regressor.
    X, y : the rows it was fitted on: an array, a pandas or Polars frame, and the targets.
    path : of the file; its folder must be there.
    held_out : (Z, z), rows that it has not seen, on which it is judged. Without any it is judged on X and y, and the
        page says so.
    left_out : the leave-one-out predictions of X, such as `model.loo_predictions_`, by which it is judged where there
        is no `held_out`.
    rows : the position, from 0, of each judged row in the table it comes from; the page counts from 1. By default the
        index of a pandas frame, or the position among the judged rows.
    target : what is predicted, in a word.
    title : of the page.
    command : what was typed to get here.

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
            "`path` must be in a folder that is there", got=shortened(str(place)), advice="Make the folder first."
        )
    y = np.asarray(y)
    Z, z = (X, y) if held_out is None else (held_out[0], np.asarray(held_out[1]))
    for table_, truth, what in ((X, y, "y"), (Z, z, "held_out")):
        if truth.ndim != 1 or len(truth) != length(table_) or not len(truth):
            raise InvalidInput(
                f"`{what}` must hold one target for each of its rows, and one row at least",
                got=f"shape {truth.shape} for {length(table_)} rows",
                advice="A report is about one target.",
            )
    if rows is not None and len(rows) != len(z):
        raise InvalidInput(
            "`rows` must hold a position for each judged row",
            got=f"{len(rows)} for {len(z)}",
            advice="Give one for each, or leave `rows` out.",
        )
    predictions = None if left_out is None else np.asarray(left_out)
    if predictions is not None and (held_out is not None or predictions.shape != y.shape):
        raise InvalidInput(
            "`left_out` must hold one prediction for each row of X, and needs a report without `held_out`",
            got="both" if held_out is not None else f"shape {predictions.shape} for {len(y)} rows",
            advice="Pass the leave-one-out predictions of the fitted rows, or rows that were held out.",
        )
    known = Baseline.of(y, classes=is_classifier(model))
    by: Judged = "held out" if held_out is not None else "fitted" if predictions is None else "left out"
    judgement = judge(model, Z, z, known, predictions=predictions, by=by)
    text = _Page(model, X, y, Z, z, judgement, str(target)).whole(title, command, _numbered(Z, rows))
    try:
        with replacing(str(place)) as beside:
            Path(beside).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            "`path` must be a file that can be written",
            got=f"{place} ({error.strerror})",
            advice="Choose another folder, or make room.",
        ) from None
    return place


def _numbered(Z: Any, rows: Any) -> tuple[str, list[str]]:
    """What rows are called, and the name of each."""
    if rows is not None:
        return "row", [str(int(i) + 1) for i in rows]
    labels = row_labels(Z)
    if labels is not None:
        return "index", [cut(str(i), 20) for i in labels]
    return "row", [str(i + 1) for i in range(length(Z))]


@dataclass(eq=False)
class _Page:
    """A model, what it was fitted on (X, y), and what it is judged on (Z, z): rows held out, or the fitted ones."""

    model: Any
    X: Any
    y: NDArray[Any]
    Z: Any
    z: NDArray[Any]
    judged: Judgement
    target: str

    def __post_init__(self) -> None:
        self.inner = innermost(self.model)
        self.classes = is_classifier(self.model)
        self.names = frames.names(self.X)
        self.known = frames.taken(getattr(self.inner, "kernel_", None), self.names)
        self.unseen = [] if self.known is None else [name for name in self.names if name not in self.known]
        """What the kernel takes its columns for, and those that it does not look at."""
        self.reliance = self._relied()
        every = np.arange(len(self.names))
        self.order = every if self.reliance is None else np.argsort(-self.reliance, kind="stable")
        """Columns, those that the model relies on first."""

    def whole(self, title: str | None, command: str, numbered: tuple[str, list[str]]) -> str:
        kind = type(self.inner).__name__
        n, m, d = len(self.y), len(self.z), len(self.names)
        seen = {
            "held out": f"judged on {m:,} rows it has not seen",
            "left out": "judged by leave-one-out predictions of them",
            "fitted": f"judged on the {m:,} rows it was given",
        }[self.judged.by]
        fitted = frames.fitted_rows(self.model, n)
        but = f", {len(self.unseen):,} of them left out" if self.unseen else ""
        subtitle = f"{kind} on {d:,} column{'s' * (d > 1)}{but}, fitted to {fitted} and {seen}."
        parts = [
            self._scores(),
            self._pictures(),
            self._by_class(),
            self._columns(),
            self._worst(*numbered),
            self._kernel(),
            self._choices(),
            self._again(command),
        ]
        return page(title or f"Predicting {self.target}", subtitle, [part for part in parts if part])

    def _scores(self) -> str:
        shown = [(s.name, number(s.value, 3), _beside(s)) for s in self.judged.scores]
        if self.classes:
            right = self.judged["accuracy"]
            lead = f"Accuracy {right.value:.1%}. The most frequent class alone would give {right.baseline:.1%}."
        else:
            error = self.judged["RMSE"]
            off, mean = number(error.value, 3), number(error.baseline, 3)
            lead = f"Typical error {off} (RMSE). Always predicting the mean would give {mean}."
        small = (
            "The 90 % intervals say how much the scores would vary between test sets of this size. The baseline looks "
            "at no column: it always predicts "
        )
        small += (
            "the most frequent class of the training rows (for the log loss, the shares of the classes)."
            if self.classes
            else "the mean of the training targets (for the MAE, their median)."
        )
        names = [score.name for score in self.judged.scores]
        words = ". ".join(f"{name[0].upper()}{name[1:]}: {MEASURES[name].meaning}" for name in names) + "."
        warning = {
            "held out": "",
            "left out": "These are leave-one-out scores: each row is predicted by the model that is fitted without it. "
            "Where they also chose the parameters of the model, they are a little too good.",
            "fitted": "These rows were also fitted: on new ones the model will be worse.",
        }[self.judged.by]
        return section(
            "How good it is",
            paragraph(lead, "lead"),
            paragraph(warning, "warn"),
            tiles(shown),
            paragraph(words, "soft"),
            paragraph(small, "soft"),
        )

    def _pictures(self) -> str:
        drawn, refused = [], []
        for draw, caption in self._subjects():
            try:
                drawn.append((_drawn(draw), caption))
            except (InvalidInput, np.linalg.LinAlgError) as error:  # others are defects, and must be seen
                refused.append(paragraph(f"This picture could not be drawn. {caption} {error}", "soft"))
        return section("What it looks like", figures(drawn), *refused) if drawn or refused else ""

    def _subjects(self) -> Iterator[tuple[Callable[[], Any], str]]:
        """What fits the task: a drawing, and what it shows."""
        from mercer import plot

        d = len(self.names)
        others = ", the other columns at their middle or commonest value." if d > 1 else "."
        if self.classes:
            if self.judged.probabilities is not None:
                yield (
                    lambda: plot.Reliability.from_estimator(self.model, self.Z, self.z),
                    "Of the rows given a probability, how many were of the class: on the diagonal it keeps its word. "
                    "The calibration error is the mean distance from there, the Brier score the mean squared difference"
                    " of the probability and what happened (1 or 0): 0 is perfect, 0.25 a coin.",
                )
            if hasattr(self.model, "predict_proba"):
                label = self._subject()
                for j in self.order[:CURVES]:
                    yield (
                        partial(self._curve, j, label=label),
                        f"The probability of {_cell(label)} along {self.names[j]}{others}",
                    )
            if d == 2:
                yield (
                    lambda: plot.DecisionSurface.from_estimator(self.model, self.X, y=self.y),
                    "Where each class is predicted.",
                )
        else:
            yield (
                lambda: plot.Residuals.from_predictions(self.z, self.judged.predictions, name=self.target),
                f"What is left of {self.target} after the prediction: there should be no shape.",
            )
            promises = hasattr(self.model, "predict_interval")
            if len(self.y) > LARGE:
                tail = (1 - COVERAGE) / 2
                low, high = (number(end, 3) for end in np.quantile(self.z - self.judged.predictions, [tail, 1 - tail]))
                yield (
                    lambda: plot.Residuals.from_predictions(
                        self.z, self.judged.predictions, kind="histogram", name=self.target
                    ),
                    f"How far off it is: {100 * COVERAGE:.0f} % of the errors are from {low} to {high}.",
                )
            elif promises:
                some = _some(len(self.z), PROMISED)
                yield (
                    lambda: plot.Coverage.from_estimator(
                        self.model, take(self.Z, some), self.z[some], coverages=COVERAGES
                    ),
                    "How many targets the intervals hold, against what they promise.",
                )
            for j in self.order[:CURVES]:
                yield (
                    partial(self._curve, j, COVERAGE if d == 1 and promises and len(self.y) <= LARGE else None),
                    f"{self.target} along {self.names[j]}{others}",
                )
        kernel = getattr(self.inner, "kernel_", None)
        if kernel is not None:
            sample = _some(len(self.y), SIMILAR)
            some_rows = take(self.X, sample)
            labels = self.y[sample] if self.classes else None
            yield (
                lambda: plot.GramHeatMap.from_kernel(kernel, some_rows, labels, title=""),
                f"How similar each two of {len(sample)} rows are to the kernel (its Gram matrix); rows alike are "
                "neighbours, and blocks are groups.",
            )
            yield (
                lambda: plot.EigenvalueSpectrum.from_kernel(kernel, some_rows, title=""),
                "The eigenvalues of these similarities: how much the rows differ in one independent direction after "
                "the other. The faster the fall, the simpler they are to the kernel.",
            )
        if hasattr(self.inner, "path_"):
            yield lambda: plot.TuningPath.from_estimator(self.inner), "How the penalty was chosen."
        if hasattr(self.inner, "trace_"):
            yield lambda: plot.Convergence.from_estimator(self.inner), "How the solver got there."

    def _subject(self) -> Any:
        """The class whose probability is shown: the second of two, else the commonest."""
        labels, counts = np.unique(self.y, return_counts=True)
        return self.model.classes_[1] if len(self.model.classes_) == 2 else labels[counts.argmax()]

    def _curve(self, j: int, coverage: float | None = None, label: Any = None) -> Any:
        from mercer import plot

        some = _some(len(self.y), POINTS)
        column = self.X.columns[j] if is_frame(self.X) else int(j)
        bands = plot.RegressionBands.from_estimator(
            self.model, take(self.X, some), None if self.classes else self.y[some], column=column,
            coverage=coverage, label=label, resolution=200,
        )  # fmt: skip
        if self.classes:
            bands.ax_.set_ylim(-0.02, 1.02)
        else:
            bands.ax_.set_ylabel(plot_text(self.target, 40))
        return bands

    def _by_class(self) -> str:
        """Recall and precision of each class, and what it is taken for."""
        if not self.classes:
            return ""
        rows = []
        labels, counts = np.unique(self.z, return_counts=True)
        for i in np.argsort(-counts, kind="stable")[:SHOWN_COLUMNS]:
            members, predicted = self.z == labels[i], self.judged.predictions == labels[i]
            wrong, times = np.unique(self.judged.predictions[members & ~predicted], return_counts=True)
            taken = ", ".join(f"{_cell(wrong[k])} ({times[k]})" for k in np.argsort(-times, kind="stable")[:3])
            right = (members & predicted).sum()
            precision = f"{right / predicted.sum():.1%}" if predicted.any() else "never predicted"
            rows.append(
                [_cell(labels[i]), f"{counts[i]:,}", f"{right / counts[i]:.1%}", precision, taken or "nothing else"]
            )
        header = ["class", "rows", "recall", "precision", "taken for"]
        return section("Class by class", table(header, rows, numbers=(1, 2, 3)))

    def _columns(self) -> str:
        described = frames.described(self.X, self.known)
        rows = []
        for j in self.order[:SHOWN_COLUMNS]:
            c = described[j]
            row: list[str] = [cut(c.name, 60)]
            if self.reliance is not None:
                row.append(bar(f"{self.reliance[j]:.1%}", self.reliance[j]))
            row += [c.kind, f"{c.missing:,}" if c.missing else "", f"{c.distinct:,}"]
            rows.append([*row, spark(c.heights, f"distribution of {c.name}"), c.summary])
        header, numbers = ["column", "kind", "missing", "distinct", "", "values"], [2, 3]
        notes = "Least, middle and greatest value of numbers; the commonest of others."
        if self.reliance is not None:
            header, numbers = [header[0], "relied on", *header[1:]], [1, 3, 4]
            notes += f" {IMPORTANCE}"
        if self.unseen:
            notes += f" Left out, the kernel does not look at it: {cut(', '.join(self.unseen), EXPRESSION)}."
        if len(described) > SHOWN_COLUMNS:
            notes += f" {len(described) - SHOWN_COLUMNS:,} more columns are not shown."
        one = frames.described((self.y.astype(str) if self.classes else self.y)[:, None])[0]
        about = f"{self.target}: {one.kind}, {one.distinct:,} distinct values, {one.summary}."
        return section(
            "The data", paragraph(about), table(header, rows, numbers, [len(header) - 1]), paragraph(notes, "soft")
        )

    def _relied(self) -> NDArray[np.float64] | None:
        """How much predictions rely on each column; None where a column cannot be shuffled by itself."""
        if not 1 < len(self.names) <= TRIED_COLUMNS or isinstance(self.Z, list) or hasattr(self.Z, "tocsr"):
            return None
        return feature_importance(self.model, take(self.Z, _some(len(self.z), TRIED_ROWS)))

    def _worst(self, called: str, names: list[str]) -> str:
        first = np.argsort(-self.judged.losses, kind="stable")[:SHOWN_ROWS]
        shown = self.order[:WORST_COLUMNS]
        columns = [frames.column(self.Z, j) for j in shown]
        sure = self.classes and self.judged.probabilities is not None
        rows = []
        for i in first:
            truth, answer, loss = self.z[i], self.judged.predictions[i], self.judged.losses[i]
            row = [names[i], _cell(truth), _cell(answer)]
            if sure:
                row.append(f"{100 * np.exp(-loss):.2g} %")
            elif not self.classes:
                row.append(_cell(float(truth) - float(answer)))
            rows.append([*row, *(_cell(column[i]) for column in columns)])
        header = [called, cut(self.target, 30), "predicted"]
        header += ["given to the truth"] if sure else [] if self.classes else ["error"]
        header += [cut(self.names[j], 30) for j in shown]
        numbers = [0, 3] if sure else [0] if self.classes else [0, 1, 2, 3]
        before = len(header) - len(shown)
        numbers += [before + k for k, column in enumerate(columns) if column.dtype.kind in "iuf"]
        rest = len(self.names) - len(shown)
        note = f"The {len(shown)} columns that the model relies on most; {rest:,} more are not shown." if rest else ""
        long = [before + k for k, column in enumerate(columns) if max(len(_cell(column[i])) for i in first) > WORDS]
        return section("Worst predicted rows", table(header, rows, numbers, long), paragraph(note, "soft"))

    def _kernel(self) -> str:
        kernel = getattr(self.inner, "kernel_", None)
        if kernel is None:
            return ""
        proof = kernel.proof(len(self.names) if kernel.space == "vectors" else None)
        verdict = (
            "It is positive semidefinite: similarities that fit together as those of points in a space do, so that the "
            "fit has one best solution. By these steps:"
            if proof.valid
            else "Not every leaf is proven: whether it is positive semidefinite (its similarities fit together as "
            "those of points in a space do) was only seen on the data."
        )
        return section(
            "The kernel",
            paragraph("What similar means to this model:"),
            code(cut(rounded(repr(kernel)), EXPRESSION)),
            paragraph(verdict),
            f'<ul class="proof">{_step(proof)}</ul>',
        )

    def _choices(self) -> str:
        parts = []
        for decision in getattr(self.model, "choices_", None) or ():
            parts += [heading(f"{decision.question}: {rounded(decision.taken)}")]
            parts += [paragraph(cut(rounded(decision.why), CLAIM), "soft")]
            if decision.considered:
                rows = [[c.name, f"{c.value:.4g}", c.detail] for c in decision.considered[:CONSIDERED]]
                parts.append(table(["considered", decision.criterion, ""], rows, numbers=(1,), small=True))
        return section("How it was chosen", *parts) if parts else ""

    def _again(self, command: str) -> str:
        versions = (
            f"mercer {mercer.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
            f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
        )
        return section(
            "How to get it again",
            code(command) if command else "",
            paragraph("Or in Python, without the search:"),
            code(source(self.model, self.target)),
            paragraph(str(getattr(self.model, "status_", ""))),
            paragraph(versions, "soft"),
        )


def _beside(score: Score) -> str:
    spread = f"90 %: {number(score.low, 3)} … {number(score.high, 3)}; " if np.isfinite(score.low) else ""
    return f"{spread}baseline: {number(score.baseline, 3)}"


def _some(n: int, most: int) -> NDArray[np.int64]:
    """At most so many positions, at even steps."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def _drawn(draw: Callable[[], Any]) -> str:
    """A picture as SVG."""
    from mercer import plot

    with plot.style("light"):
        display = draw()
        try:
            display.figure_.set_size_inches(SIZE)
            return plot.svg(display, clear=True)
        finally:
            pyplot().close(display.figure_)


def _step(proof: Proof) -> str:
    """A step of a proof and those it rests on."""
    why = MARKS[proof.kind] + proof.rule
    why += f"; {proof.condition}" if proof.condition else ""
    why += f" [{proof.reference}]" if proof.reference else ""
    more = len(proof.premises) - PREMISES
    below = "".join(_step(premise) for premise in proof.premises[:PREMISES])
    below += f"<li><span>and {more:,} more</span></li>" if more > 0 else ""
    below = f"<ul>{below}</ul>" if below else ""
    claim, reason = (escape(cut(rounded(text), CLAIM)) for text in (proof.claim, why))
    return f'<li class="{proof.kind}"><code>{claim}</code><span>{reason}</span>{below}</li>'


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return frames.number(value)
    return cut(str(value.item() if isinstance(value, np.generic) else value), 90)
