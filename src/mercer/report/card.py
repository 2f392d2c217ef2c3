"""The model card of a report: what was fitted, on what data, how it was judged, and its limits."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

import mercer
from mercer.kernels.about import About
from mercer.kernels.base import Similarity
from mercer.kernels.tables.typed import Typed
from mercer.models.auto.plan import Stop
from mercer.models.base import innermost, unwrapped
from mercer.models.provenance import Provenance, Split
from mercer.models.scores import Judgement
from mercer.report.frames import cell
from mercer.report.page import Markup, bullets, expression, facts, heading, link, paragraph, section
from mercer.words import brief, count, cut, first_few, number

FEW_ROWS = 100
"""Fewer rows than this are called few: a share of fewer rows has a standard error of up to 5 points or more."""
RARE = 10
"""A class of fewer training rows than this is called rare: leaving out one row changes its share by a tenth or more."""
EXPRESSION, NAMED = 220, 5
"""The largest numbers of characters of the kernel, and of columns and classes that are named."""
SETTINGS = ("alpha", "C", "nu", "epsilon")
"""Parameters that decide between a close and a smooth fit, by the names of the models."""
STOPPED: dict[Stop, str] = {
    "time": "The search ended at its time limit: another run may choose another model, and a longer time a better one.",
    "progress": "The search was ended by `progress` before it was done: a whole search may find a better model.",
    "interrupt": "The search was interrupted before it was done: a whole search may find a better model.",
}


def card_section(
    lead: str, model: Any, origin: Provenance, y: NDArray[Any], judgement: Judgement, *, ranges: bool
) -> str:
    """The card of a model that was fitted to targets y; `ranges` says whether a column has a range of values."""
    inner = innermost(model)
    kernel = getattr(inner, "kernel_", None)
    entries = [
        ("Kernel", "" if kernel is None else _kernel(kernel)),
        ("Loss", str(getattr(unwrapped(model), "loss_", ""))),
        ("Settings", ", ".join(_settings(inner))),
        ("Solver", str(getattr(inner, "status_", ""))),
        ("Split", _split(origin.split)),
        ("Left out", first_few([f"{cut(name, 60)} ({why})" for name, why in origin.left_out.items()], NAMED)),
        ("Versions", _versions(origin)),
    ]
    return section(
        "Model card",
        paragraph(lead),
        facts([(name, value) for name, value in entries if value]),
        heading("Limits"),
        bullets(list(_limits(model, origin, y, judgement, ranges=ranges))),
    )


def origin_in_words(origin: Provenance) -> str:
    """The file and the time of the fit, as far as they are recorded.

    >>> origin_in_words(Provenance(data="houses.csv", time="2026-03-01T12:30:59+00:00"))
    'From houses.csv, fitted on 2026-03-01 at 12:30 UTC.'
    >>> origin_in_words(Provenance())
    ''
    """
    parts = [f"from {origin.data}"] if origin.data else []
    if origin.time:
        parts.append(f"fitted on {datetime.fromisoformat(origin.time):%Y-%m-%d at %H:%M} UTC")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _kernel(kernel: Similarity) -> Markup:
    """The expression of a kernel, and its use in words: of a combination the names of its parts."""
    shown = kernel.inner if isinstance(kernel, Typed) else kernel
    about = getattr(shown, "about", None)
    if shown.children:
        names = list(dict.fromkeys(type(leaf).__name__ for leaf in shown.leaves))
        words = f"A combination of {first_few(names, NAMED)}." if len(names) > 1 else f"Made from {names[0]}."
    else:
        words = about.purpose if isinstance(about, About) else ""
    return expression(cut(brief(shown), EXPRESSION), words)


def _settings(inner: Any) -> Iterator[str]:
    for name in SETTINGS:
        value = getattr(inner, f"{name}_", getattr(inner, name, None))
        if isinstance(value, (int, float, np.number)):
            yield f"{name} = {number(float(value), padded=False)}"
    intercept = getattr(inner, "intercept_", None)
    if isinstance(intercept, (int, float, np.number)):
        yield f"intercept = {number(float(intercept), padded=False)}"


def _split(split: Split) -> str:
    """How rows were held out, if not one by one at random."""
    words = [f"{split.folds} folds"] if split.folds else []
    words += [f"drawn {split.repeats} times"] if split.repeats > 1 else []
    words += [f"whole groups of {split.group} were held out"] if split.group else []
    words += [f"rows are predicted from earlier ones by {split.time}"] if split.time else []
    return ", ".join(words)


def _versions(origin: Provenance) -> str:
    versions = (
        f"mercer {mercer.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
    earlier = origin.version not in ("", mercer.__version__)
    return f"{versions}; fitted with mercer {origin.version}" if earlier else versions


def _limits(model: Any, origin: Provenance, y: NDArray[Any], judgement: Judgement, *, ranges: bool) -> Iterator[str]:
    """Sentences about what the model and its scores do not promise."""
    whole = unwrapped(model)
    stop, last = getattr(whole, "stopped_by_", None), getattr(whole, "last_fit_", None)
    if stop is not None:
        yield STOPPED[stop]
    if last is not None and last.limit:
        yield f"The last fit used {last}."
    if origin.refitted:
        yield (
            f"The saved model was fitted again to all {count(origin.rows, 'row')} after the scores: they and the "
            "pictures are those of the model without the held-out rows."
        )
    if len(y) < FEW_ROWS:
        yield f"{count(len(y), 'training row')} are few: other rows of the same kind may give a different model."
    if judgement.classes is not None:
        labels, counts = np.unique(y, return_counts=True)
        rare = [f"{cell(label)} ({n})" for label, n in zip(labels, counts) if n < RARE]
        if rare:
            yield (
                f"Classes with fewer than {RARE} training rows: {first_few(rare, NAMED)}. The model knows little about "
                "them."
            )
    if ranges:
        yield Markup(
            f"Rows outside the ranges of the training rows ({link('Data')}) are extrapolation: the scores do not "
            "apply to them."
        )
    if judgement.intervals is not None:
        yield (
            "The prediction intervals promise their coverage on average over rows like the training rows, not for "
            "each kind of row, nor for rows from elsewhere."
        )
    yield (
        "The importance and the effects of columns describe predictions, not causes: if a column is changed on "
        "purpose, the target need not follow."
    )
