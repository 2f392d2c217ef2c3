"""`mercer compare`: models of different kinds beside each other, ranked by a score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mercer as mc
from mercer.cli.columns import missing_values_located
from mercer.cli.fitting import note_leakage, require_one_split
from mercer.cli.reading import read
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import caution_facts, command_to_type, score_facts
from mercer.cli.tables import problem_from
from mercer.errors import InvalidInput
from mercer.files.replace import replacing
from mercer.models.judging.comparison import Comparison
from mercer.models.judging.leakage import leakage
from mercer.models.scores import baseline_in_words

PICTURES = ("png", "svg", "pdf")


def compare(
    voice: Voice,
    data: str,
    target: str | None,
    *,
    models: tuple[str, ...],
    by: str | None,
    task: str,
    rows: int,
    budget: float,
    folds: int | None,
    repeat: int,
    roles: dict[str, Any],
    drop_missing_target: bool,
    plot: str | None,
    seed: int,
    reading: dict[str, Any],
) -> None:
    """Read a file, fit several models to the same folds, and rank them."""
    require_one_split(None, folds, repeat, roles, refit=False)
    if plot is not None:
        _require_picture(plot)
    with voice.progress(f"reading {data}"):
        table = read(data, roles=roles, target=target, **reading)
    over = roles.get("exposure") is not None
    problem = problem_from(
        table, target, voice, task="regression" if task == "auto" and over else task,
        drop_missing_target=drop_missing_target,
    )  # fmt: skip
    cautions = leakage(problem.X, problem.y, classes=problem.task == "classification", target=problem.target)
    note_leakage(voice, cautions)
    with (
        voice.progress("comparing models") as update,
        warnings_as_notes(voice),
        missing_values_located(problem.X, table.name, problem.places),
    ):
        comparison = mc.compare(
            problem.X, problem.y, models or None, task=problem.task, by=by, roles=problem.roles, cv=folds,
            groups=problem.groups, times=problem.times, repeats=repeat, rows=rows, time=budget, random_state=seed,
            progress=update,
        )  # fmt: skip
    if plot is not None:
        _draw(comparison, plot)
    header, lines = comparison.table()
    voice.say(f"{data}, target {problem.target!r} ({problem.task})", strong=True)
    voice.say(f"{comparison.how[0].upper()}{comparison.how[1:]}. Ranked by {comparison.by}:")
    voice.table(header, lines)
    voice.say(f"  Baseline: {baseline_in_words(set(comparison.measures), rate=over)}.")
    for note in comparison.notes():
        voice.say(f"  {note[0].upper()}{note[1:]}.")
    if plot is not None:
        voice.say(f"Picture written to {plot}.")
    best = next((c.name for c in comparison.contenders if c.name != "boosting" and c.judgement is not None), "auto")
    options: dict[str, Any] = {"target": problem.target, "model": best, "task": None if task == "auto" else task}
    options |= roles | reading | {"drop_missing_target": drop_missing_target, "seed": seed or None}
    options |= {"folds": folds, "repeat": repeat if repeat > 1 else None}
    following = command_to_type("fit", data, options)
    voice.say(f"Next: {following}")
    voice.document(
        _facts(comparison) | {
            "command": "compare", "data": data, "target": problem.target, "seconds": voice.seconds,
            "plot": plot, "next": following, "cautions": [caution_facts(caution) for caution in cautions],
        }
    )  # fmt: skip


def _require_picture(path: str) -> None:
    if Path(path).suffix.lower().lstrip(".") not in PICTURES:
        raise InvalidInput(
            f"--plot must end in {', '.join('.' + kind for kind in PICTURES)}", got=path, advice="Use one of these."
        )


def _draw(comparison: Comparison, path: str) -> None:
    """Write the picture of a comparison, completely or not at all."""
    picture = mc.plot.Ranking.from_comparison(comparison)
    with replacing(path) as beside:
        picture.figure_.savefig(beside, format=Path(path).suffix.lower().lstrip("."))


def _facts(comparison: Comparison) -> dict[str, Any]:
    """The answer for a program."""
    return {
        "task": comparison.task,
        "by": comparison.by,
        "rows": comparison.rows,
        "of": comparison.of,
        "how": comparison.how,
        "models": [
            {
                "name": contender.name,
                "what": contender.what,
                "scores": score_facts(contender.judgement.scores) if contender.judgement else [],
                "seconds": contender.seconds,
                "as_good_as_best": contender.tied,
                "failure": contender.failure,
            }
            for contender in comparison.contenders
        ],
    }
