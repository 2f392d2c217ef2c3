"""From a fitted model and its data to the page."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.errors import InvalidInput
from mercer.models.base import shortened
from mercer.report import frames
from mercer.report.page import code, figures, page, paragraph, section, table, tiles
from mercer.report.scores import Judgement, judge, sensitivities

SHOWN_COLUMNS, SHOWN_ROWS, TRIED_ROWS, TRIED_COLUMNS = 60, 10, 500, 40
"""Columns described, worst rows shown, and rows and columns that sensitivities are measured on."""


def write(
    model: Any,
    X: Any,
    y: Any,
    path: Any,
    *,
    held_out: tuple[Any, Any] | None = None,
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
    judged = judge(model, Z, z, y)
    kind = type(getattr(model, "model_", model)).__name__
    name = title or f"{kind} for {target}"
    seen = f"{len(z):,} rows it has not seen" if held_out is not None else f"the {len(z):,} rows it was fitted on"
    fitted = f"{kind} of {len(frames.names(X))} columns, fitted to {len(y):,} rows"
    subtitle = f"{fitted}, judged on {seen}. Mercer {mercer.__version__}."
    parts = [
        _scores(judged, held_out is not None),
        _pictures(model, X, y, Z, z, judged, target),
        _kernel(model, X),
        _choices(model),
        _columns(model, X, y, Z, z, target),
        _worst(judged, Z, z, target),
        _reproduce(model, command),
    ]
    _replace(place, page(name, subtitle, [part for part in parts if part]))
    return place


def _scores(judged: Judgement, fresh: bool) -> str:
    shown = [
        (s.name, f"{s.value:.3g}", f"90 %: {s.low:.3g} … {s.high:.3g}; a constant: {s.constant:.3g}")
        for s in judged.scores
    ]
    told = paragraph(
        "The interval is where the measure would be over other draws of as many rows. A constant is the commonest "
        "class, or the mean, of the rows the model was fitted on.",
        "soft",
    )
    warning = "" if fresh else paragraph("These rows were also fitted: on new ones the model will be worse.", "warn")
    return section("How good it is", warning, tiles(shown), told)


def _pictures(model: Any, X: Any, y: NDArray[Any], Z: Any, z: NDArray[Any], judged: Judgement, target: str) -> str:
    drawn = [
        picture for draw, caption in _subjects(model, X, y, Z, z, judged, target) if (picture := _both(draw, caption))
    ]
    return section("What it looks like", figures(drawn)) if drawn else ""


def _subjects(
    model: Any, X: Any, y: NDArray[Any], Z: Any, z: NDArray[Any], judged: Judgement, target: str
) -> Iterator[tuple[Callable[[], Any], str]]:
    """What fits the task: a drawing, and what it shows."""
    from mercer import plot

    inner = getattr(model, "model_", model)
    d = len(frames.names(X))
    if is_classifier(model):
        if judged.probabilities is not None:
            yield (
                lambda: plot.Reliability.from_estimator(model, Z, z),
                "Of the rows given a probability, how many were of the class: on the diagonal it keeps its word.",
            )
        if d == 2:
            yield lambda: plot.DecisionSurface.from_estimator(model, X, y=y), "Where each class is predicted."
    else:
        yield (
            lambda: plot.Residuals.from_predictions(z, judged.answers),
            "What is left of the targets: there should be no shape.",
        )
        if d == 1:
            yield lambda: plot.RegressionBands.from_estimator(model, X, y), f"{target} with its interval."
        elif hasattr(model, "predict_interval"):
            yield (
                lambda: plot.Coverage.from_estimator(model, Z, z),
                "How many targets each interval holds, against what it promises.",
            )
    kernel = getattr(inner, "kernel_", None)
    if kernel is not None:
        order = np.linspace(0, len(y) - 1, min(len(y), 300)).astype(np.int64)
        sample = frames.rows(X, order)
        labels = y[order] if is_classifier(model) else None
        yield (
            lambda: plot.GramHeatMap.from_kernel(kernel, sample, labels),
            "How similar the rows are to the kernel, ordered by cluster.",
        )
        yield (
            lambda: plot.EigenvalueSpectrum.from_kernel(kernel, sample),
            "How many directions the kernel sees in them.",
        )
    if hasattr(inner, "trace_"):
        yield lambda: plot.Convergence.from_estimator(inner), "How the solver got there."


def _both(draw: Callable[[], Any], caption: str) -> tuple[str, str, str] | None:
    """A picture in both styles, or None where this model has none of the kind."""
    from mercer import plot

    try:
        light, dark = (plot.sketch(draw, style) for style in ("light", "dark"))
    except (InvalidInput, AttributeError, ValueError, np.linalg.LinAlgError):
        return None
    mark = next(_marks)
    return _own_names(light, f"l{mark}"), _own_names(dark, f"d{mark}"), caption


_marks = count()


def _own_names(svg: str, mark: str) -> str:
    """Names of parts are unique on a page: one hidden picture must not hold what another refers to."""
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mark}-", svg)


def _kernel(model: Any, X: Any) -> str:
    kernel = getattr(getattr(model, "model_", model), "kernel_", None)
    if kernel is None:
        return ""
    proof = kernel.proof(len(frames.names(X)) if kernel.space == "vectors" else None)
    verdict = (
        "Every step is proven." if proof.valid else "Not every leaf is proven; what was seen on the data is in the fit."
    )
    told = paragraph(f"What similar means to this model. {verdict}")
    return section("The kernel", code(_rounded(repr(kernel))), told, code(_rounded(str(proof))))


def _rounded(text: str) -> str:
    """Numbers of many digits to four of them."""
    return re.sub(r"\d+\.\d{4,}(e[+-]\d+)?", lambda found: f"{float(found[0]):.4g}", text)


def _choices(model: Any) -> str:
    choices = getattr(model, "choices_", None)
    return section("How it was chosen", code(str(choices))) if choices is not None else ""


def _columns(model: Any, X: Any, y: NDArray[Any], Z: Any, z: NDArray[Any], target: str) -> str:
    described = frames.described(X)
    sensitive = _sensitive(model, Z, z, [c.name for c in described])
    rows = [
        [c.name, c.kind, c.missing or "", c.distinct, c.told, "" if sensitive is None else f"{sensitive[j]:.3g}"]
        for j, c in enumerate(described)
    ]
    if sensitive is not None:
        rows = [rows[j] for j in np.argsort(-sensitive, kind="stable")]
    more = len(rows) - SHOWN_COLUMNS
    told = "Least, middle and greatest value of numbers; the commonest of others."
    if sensitive is not None:
        told += " The last column is how much the loss rises when a column is shuffled: what the model relies on."
    if more > 0:
        told += f" {more:,} more columns are not shown."
    header = ["column", "kind", "missing", "distinct", "values", "relied on"]
    if sensitive is None:
        header, rows = header[:-1], [row[:-1] for row in rows]
    one = frames.described(y[:, None] if y.ndim == 1 else y)[0]
    about = paragraph(f"{target}: {one.kind}, {one.distinct:,} distinct values, {one.told}.")
    return section("The data", about, table(header, rows[:SHOWN_COLUMNS], numbers=(2, 3, 5)), paragraph(told, "soft"))


def _sensitive(model: Any, Z: Any, z: NDArray[Any], names: list[str]) -> NDArray[np.float64] | None:
    if not 1 < len(names) <= TRIED_COLUMNS or len(z) < 5 or isinstance(Z, list) or hasattr(Z, "tocsr"):
        return None
    some = np.random.default_rng(0).permutation(len(z))[:TRIED_ROWS]
    try:
        return sensitivities(model, frames.rows(Z, some), z[some], names, frames.shuffled)
    except (InvalidInput, ValueError, TypeError):
        return None


def _worst(judged: Judgement, Z: Any, z: NDArray[Any], target: str) -> str:
    order = np.argsort(-judged.losses, kind="stable")[:SHOWN_ROWS]
    names = frames.names(Z)[:8]
    columns = [frames.column(Z, j) for j in range(len(names))]
    rows = [
        [int(i), _cell(z[i]), _cell(judged.answers[i]), f"{judged.losses[i]:.3g}", *(_cell(c[i]) for c in columns)]
        for i in order
    ]
    header = ["row", target, "predicted", "loss", *names]
    return section("Worst predicted rows", table(header, rows, numbers=(0, 3)))


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    text = str(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:39] + "…"


def _reproduce(model: Any, command: str) -> str:
    versions = (
        f"mercer {mercer.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
    inner = getattr(model, "model_", model)
    parts = [code(command)] if command else []
    parts += [code(repr(inner)), paragraph(getattr(model, "status_", "")), paragraph(versions, "soft")]
    return section("How to get it again", *parts)


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise InvalidInput(
            "`path` must be writable", got=f"{path} ({error.strerror})", advice="Choose another folder."
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(made, 0o644)
        os.replace(made, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise InvalidInput(
            "`path` must be writable", got=f"{path} ({error.strerror})", advice="Is the disk full?"
        ) from None
