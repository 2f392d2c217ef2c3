"""`mercer fit`: from a table to a saved model with its scores."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc
from mercer import threads
from mercer.cli import destinations, interrupts, large
from mercer.cli.columns import missing_values_located
from mercer.cli.decision import decision_from
from mercer.cli.details import detail_facts, say_details
from mercer.cli.kept_rows import kept_background
from mercer.cli.names import class_named
from mercer.cli.reading import read
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import (
    caution_facts,
    importance_facts,
    judged_on,
    kernel_of,
    most_important,
    readable,
    say_scores,
    score_facts,
    scores_title,
)
from mercer.cli.tables import Problem, problem_from, split
from mercer.errors import InvalidInput
from mercer.kernels.vectors.radial import ByWidth
from mercer.kernels.vocabulary import vocabulary
from mercer.models import menu
from mercer.models.base import exposure_of, innermost, unwrapped
from mercer.models.conformal import ConformalRegressor, moved, with_intervals
from mercer.models.explaining.effort import Effort
from mercer.models.explaining.importance import Importance, measured_importance
from mercer.models.judging.cautions import Caution, Dropped
from mercer.models.judging.cross_validation import judge_by_folds
from mercer.models.judging.leakage import Leak, leakage
from mercer.models.judging.measures import OF_INTERVALS
from mercer.models.judging.overlap import Overlap
from mercer.models.provenance import Provenance, Split, provenance
from mercer.models.scores import Baseline, Judgement, Score, judge, judge_by_leave_one_out
from mercer.ours import replaceable
from mercer.tuning.folds import Fold, make_folds
from mercer.words import brief, count, seconds, show_bytes


def fit(
    voice: Voice,
    data: str,
    target: str | None,
    *,
    kernel: str | None,
    model: str,
    task: str,
    out: str | None,
    report: str | None,
    budget: float,
    test_size: float | None,
    folds: int | None = None,
    repeat: int = 1,
    roles: dict[str, Any],
    drop_missing_target: bool,
    centers: int | None,
    refit: bool,
    threshold: str | None = None,
    positive: str | None = None,
    balance: bool = False,
    seed: int,
    reading: dict[str, Any],
    plan: bool = False,
    client: Any = None,
) -> Any:
    """Read a file, fit a model, score it, save it and report; returns the positions of the held-out rows.

    With `plan`, print the solver, the time and the memory of the fit instead. With a client of a Dask cluster, sums
    over the rows run there.
    """
    if not 0 < budget < float("inf"):
        raise InvalidInput(
            "--time must be a number of seconds > 0", got=f"{budget:g}", advice="Give a number such as 60."
        )
    require_one_split(test_size, folds, repeat, roles, refit)
    decision = decision_from(threshold, positive, balance)
    expression = parsed(kernel, weights=menu.takes_weights(model))
    model_path = destinations.model_path(data, out)
    source: large.Large | None = None
    if client is not None:
        voice.note(f"the workers at {client.scheduler.address} sum over the rows: see {client.dashboard_link}")
    with voice.progress(f"reading {data}"):
        if client is not None or large.beyond_memory(data):
            options = {
                "model": model, "folds": folds, "refit": refit, "plan": plan, "threshold": threshold, "roles": roles,
                "drop_missing_target": drop_missing_target, "seed": seed, "na": reading.get("na"),
            }  # fmt: skip
            source, table = large.open_large(data, target, options, client)
        else:
            table = read(data, roles=roles, target=target, **reading)
    problem = problem_from(
        table, target, voice, task=menu.task_of(model, roles.get("exposure") is not None) if task == "auto" else task,
        drop_missing_target=drop_missing_target, own_kernel=expression is not None,
    )  # fmt: skip
    problem = problem if source is None else source.placed(problem)
    share = 0.0 if folds is not None else 0.2 if test_size is None else test_size
    train, test = split(problem, share, seed, voice, requested=test_size is not None or folds is not None)
    classes = problem.task == "classification"
    X, y, weights = problem.X[train], problem.y[train], problem.weights
    apart, exposure = problem.groups is not None or problem.times is not None, problem.exposure
    several = cross_validation_folds(problem, folds, repeat, seed)
    refit = refit and len(test) > 0
    fits, available = len(several) + 1 + refit, time_to_fit(budget, report is not None)
    if plan:
        last_fit = menu.plan(
            model, X, y, task=problem.task, kernel=expression, roles=problem.roles, centers=centers,
            time=available / fits,
        )  # fmt: skip
        _say_plan(voice, last_fit)
        return test
    settings: dict[str, Any] = {
        "task": problem.task, "kernel": expression, "roles": problem.roles, "time": available / fits,
        "centers": centers, "random_state": seed, "class_weight": "balanced" if balance else None,
        "decision": decision | _positive(positive, problem.y),
    }  # fmt: skip
    if several:
        voice.note(
            f"of the {seconds(budget)} of --time, each of {fits} fits ({len(several)} for the folds, one for the "
            f"model) gets {seconds(available / fits)}; {seconds(budget - available)} are for the rest of the command"
        )
    held_out = (problem.X[test], problem.y[test])
    scored = (problem.X[several[0].test], problem.y[several[0].test]) if several else held_out if len(test) else None
    fit_rows = several[0].train if several else train
    cautions = leakage(problem.X[fit_rows], problem.y[fit_rows], scored, classes=classes, target=problem.target)
    note_leakage(voice, cautions)
    if problem.dropped:
        cautions = (Dropped(problem.dropped, problem.dropped + len(problem)), *cautions)
    with (
        voice.progress(f"fitting {count((problem.total or len(problem)) - len(test), 'row')}") as update,
        warnings_as_notes(voice),
        missing_values_located(problem.X, table.name, problem.places),
    ):
        if source is not None:
            fitted = source.fit(problem, test, update, settings)
        else:
            own = None if weights is None else weights[train]
            fitted = menu.fit(model, X, y, sample_weight=own, progress=update, **settings)
        update("scoring")
        scored_model = fitted.model
        judgement: Judgement | None
        if several:
            pending = iter(several)

            def fit_fold(rows: Any, targets: Any) -> Any:
                own = None if weights is None else weights[next(pending).train]
                return menu.fit(model, rows, targets, sample_weight=own, **settings).model

            judgement = judge_by_folds(
                fit_fold, X, y, several, groups=problem.groups, intervals=True, apart=apart, progress=update
            )
            once = judgement.once()
            final = with_intervals(fitted.model, X[once.rows], y[once.rows], once.predictions, apart=apart)
        elif len(test):
            groups = None if problem.groups is None else problem.groups[test]
            baseline = Baseline.of(y, classes=classes, exposure=None if exposure is None else exposure[train])
            judgement = judge(fitted.model, *held_out, baseline, intervals=True, apart=apart, groups=groups)
            final = with_intervals(fitted.model, *held_out, apart=apart)
        else:
            judgement, final = judge_by_leave_one_out(fitted.model, X, y), fitted.model
        update("feature importance")
        importance = _importance_in_time(voice, fitted.model, *(held_out if len(test) else (X, y)), budget)
        if refit:
            update("fitting again on all rows")
            fitted = menu.refit(fitted, problem.X, problem.y, weights)
            final = moved(final, fitted.model) if isinstance(final, ConformalRegressor) else fitted.model
    rows = np.arange(len(problem)) if refit else train
    final.provenance_ = Provenance.of(
        problem.X[rows], problem.y[rows], classes=classes, columns=problem.columns, places=problem.places[rows],
        data="standard input" if data == "-" else Path(data).name, target=problem.target,
        target_type=problem.target_type, left_out=problem.left_out,
        exposure=None if exposure is None else exposure[rows],
        fitted=fitted.rows, held_out=len(test), refitted=refit, seed=seed, judged=judgement.by if judgement else None,
        split=Split(folds or 0, repeat, roles.get("group") or "", roles.get("time_column") or ""),
        scores=judgement.scores if judgement else (), importance=importance, missing=tuple(reading.get("na") or ()),
        background=kept_background(final, problem.X[rows]),
    )  # fmt: skip
    if source is not None:
        final.provenance_ = replace(final.provenance_, rows=fitted.last.rows)
    unsaved: InvalidInput | None = None
    try:
        if model_path is not None:
            _note_replaced(voice, model_path, final.provenance_)
        size = save(final, model_path) if model_path is not None else 0
        if model_path is not None:
            interrupts.wrote(model_path)
    except InvalidInput as error:  # report the result before the error
        unsaved, model_path, size = error, None, 0
    report_is_late = False

    def late() -> bool:
        nonlocal report_is_late
        report_is_late = report_is_late or voice.seconds > budget
        return report_is_late

    if report is not None:
        scored_model.provenance_ = final.provenance_
        with voice.progress("writing the report"), warnings_as_notes(voice):
            mc.report.write(
                scored_model, X, y, report, overwrite=True, held_out=held_out if len(test) else None,
                rows=problem.places[test if len(test) else train], target=problem.target, command=_command_line(),
                judgement=judgement, cautions=cautions, importance=importance, time=time_to_report(budget),
                late=late, saved=model_path,
            )  # fmt: skip
    details: dict[str, Any] = {}
    if judgement is not None:
        judged = problem.y[test] if len(test) else y
        details = detail_facts(scored_model, judged[judgement.rows], judgement)
    if not fitted.in_time:
        voice.note(
            "the search ended early, at the time limit: another run may give another model, and a longer --time a "
            "better one"
        )
    if report_is_late:
        voice.note("the time was over before the report was complete: it lacks plots. Raise --time to see them")
    if voice.seconds > budget:
        voice.note(
            f"the command took {seconds(voice.seconds)}, longer than --time {brief(budget)}: the search is planned for "
            "an idle machine, and at the limit the step that has begun is completed"
        )
    _note_doubts(voice, final, final.provenance_.scores)
    if not voice.quiet:
        _summarise(voice, final, fitted, problem, details, model_path, size, report, data)
    facts = _facts(final, fitted, problem, judgement, voice.seconds, model_path, report, data) | details
    voice.document(facts | {"cautions": [caution_facts(caution) for caution in cautions]})
    if unsaved is not None:
        raise unsaved
    return test


def _positive(name: str | None, y: Any) -> dict[str, Any]:
    """The parameter of a decision that --positive describes."""
    return {} if name is None else {"label": class_named(name, np.unique(y).tolist(), "--positive")}


def _say_plan(voice: Voice, plan: mc.Plan) -> None:
    """Print a plan, or its figures as JSON."""
    voice.say(str(plan))
    voice.document(asdict(plan))


def require_one_split(
    test_size: float | None, folds: int | None, repeat: int, roles: dict[str, Any], refit: bool
) -> None:
    """Refuse options about held-out rows that contradict each other."""
    group, time_column = (roles.get(name) is not None for name in ("group", "time_column"))
    conflicts = (
        (folds is not None and test_size is not None, "--folds and --test-size", "Choose one of the two."),
        (folds is not None and refit, "--folds and --refit", "Leave out --refit: with folds the model gets all rows."),
        (folds is None and repeat > 1, "--repeat without --folds", "Add --folds 5."),
        (group and time_column, "--group and --time-column", "Choose one of the two."),
        (time_column and repeat > 1, "--time-column and --repeat", "Leave out --repeat."),
    )
    for conflict, got, advice in conflicts:
        if conflict:
            raise InvalidInput("The options must describe one way to hold rows out", got=got, advice=advice)


def cross_validation_folds(problem: Problem, folds: int | None, repeats: int, seed: int) -> list[Fold]:
    """The folds of --folds, in which each class keeps its share; none without it."""
    if folds is None:
        return []
    return make_folds(
        len(problem), folds, y=problem.y, stratify=problem.task == "classification", groups=problem.groups,
        times=problem.times, repeats=repeats, random_state=seed,
    )  # fmt: skip


def note_leakage(voice: Voice, cautions: Sequence[Caution]) -> None:
    """Report the reasons why scores may be too good, each with the option that helps."""
    for caution in cautions:
        voice.note(caution.words + _remedy(caution))


def _remedy(caution: Caution) -> str:
    """The option that helps, after the words of a caution."""
    if isinstance(caution, Leak):
        return ": " + " ".join(f"--drop {shlex.quote(column)}" for column in caution.columns)
    return " (--group COLUMN)" if isinstance(caution, Overlap) else ""


def parsed(kernel: str | None, *, weights: bool = False) -> Any:
    """The kernel that a --kernel expression describes.

    With `weights` it may also be a smoothing weight, or the bare name of a kernel or weight whose width the model
    chooses.
    """
    if kernel is None:
        return None
    allowed = (mc.Kernel, mc.Weight) if weights else (mc.Kernel,)
    expression: Any = vocabulary().get(kernel.strip())
    if expression is None or (issubclass(expression, allowed) and not (weights and issubclass(expression, ByWidth))):
        expression = mc.parse(kernel)  # its error says how to write a kernel that is only named
    family = expression if isinstance(expression, type) else type(expression)
    if not issubclass(family, allowed):
        smoothing = issubclass(family, mc.Weight)
        raise InvalidInput(
            "--kernel must be a positive semidefinite kernel" + (" or a smoothing weight" if weights else ""),
            got=f"{kernel}, a smoothing weight" if smoothing else kernel,
            advice="Smooth with it by --model nw or local, or choose another kernel; `mercer kernels` lists them."
            if smoothing
            else "Choose one of the kernels that `mercer kernels` lists.",
        )
    return expression


def _command_line() -> str:
    """The command as the user typed it."""
    return shlex.join(["mercer", *sys.argv[1:]])


def save(model: Any, path: str) -> int:
    """Save a model and return the size of its file in bytes, 0 for a pipe or a device."""
    model.save(path, overwrite=True)  # `require_outputs` has decided what may be replaced
    return os.stat(path).st_size if os.path.isfile(path) else 0


def _note_replaced(voice: Voice, path: str, new: Provenance) -> None:
    """Note that the replaced model file predicts something other than the new model does."""
    if not os.path.isfile(path) or not os.path.getsize(path) or not replaceable(path):
        return
    try:
        old = provenance(mc.load(path))
        differs = (old.target, old.task, old.data) != (new.target, new.task, new.data)
        what = f"a model that predicts {old.target!r} of {old.data}" if old.data else "a model that was saved in Python"
    except InvalidInput:
        differs, what = True, "a file of Mercer that this version cannot read"
    if differs:
        voice.note(f"{path} was {what}; the new model replaces it. Name another file with --out to keep both")


STARTED, REPORTED = 4.0, 5.0
"""Seconds for the start of the program, the reading of the table, scores and importance; and the least of a report."""
IMPORTANCE, REPORT, LEAST_FIT = 0.05, 0.1, 0.2
"""Shares of --time: for the feature importance, for the report (or `REPORTED` if that is more), the least for fits."""


def time_to_report(budget: float) -> float:
    """The seconds of --time that are planned for a report."""
    return max(REPORTED, REPORT * budget)


def time_to_fit(budget: float, report: bool) -> float:
    """The seconds of --time that are planned for fits.

    >>> time_to_fit(60.0, report=True), time_to_fit(15.0, report=True), time_to_fit(5.0, report=False)
    (50.0, 6.0, 1.0)
    """
    rest = budget - STARTED - (time_to_report(budget) if report else 0.0)
    return max(LEAST_FIT * budget, rest)


def _importance_in_time(voice: Voice, model: Any, X: Any, y: Any, budget: float) -> Importance | None:
    """The feature importance, planned for its share of --time; None if the time is over before."""
    try:
        with threads.time_limit(lambda: voice.seconds > budget):
            return measured_importance(model, X, y, Effort.of(model, IMPORTANCE * budget))
    except threads.OutOfTime:
        voice.note("the time was over before the feature importance was measured: raise --time to see it")
        return None


USELESS = 0.005
"""A gain over the baseline that is smaller than this does not count."""


def _note_doubts(voice: Voice, model: Any, scores: Sequence[Score]) -> None:
    """Warn about a model that did not converge, or that does not beat the baseline."""
    if getattr(innermost(model), "end_", "converged") != "converged":
        voice.note(
            "the last fit stopped before it converged, so the model may be much worse than it could be: "
            "raise --time, try another --model, or --model ridge with other --centers"
        )
    compared = [score for score in scores if np.isfinite(score.baseline)]
    better = [score.name for score in compared if score.gain > 0]
    of_predictions = [score.gain for score in compared if score.name != OF_INTERVALS]
    knows = "training targets and the exposure" if exposure_of(model) is not None else "training targets"
    if of_predictions and max(of_predictions) < USELESS:
        voice.note(
            f"the model is no better than the baseline, which knows only the {knows}: do not rely on it. The columns "
            "may carry no information about the target, or another --model may do better"
        )
    elif any(score.name == "R²" and score.value <= 0 for score in scores):
        voice.note(
            "R² is not above 0: the squared errors are no smaller than those of the mean of the scored targets. Do not "
            "rely on single predictions; another --model may do better"
        )
    elif len(better) == 1 < len(compared):
        voice.note(
            f"of {len(compared)} scores only one is better than the baseline, which knows only the {knows}: "
            f"{better[0]}. Check that it is the score that matters to you, or try another --model"
        )


def _facts(
    model: Any, fitted: menu.Fitted, problem: Problem, judgement: Judgement | None, spent: float,
    model_path: str | None, report: str | None, data: str,
) -> dict[str, Any]:  # fmt: skip
    """The answer for a program."""
    inner, origin = innermost(model), provenance(model)
    return {
        "command": "fit",
        "data": data,
        "rows": problem.total or len(problem),
        "columns": problem.columns or problem.X.shape[1],
        "left_out": origin.left_out,
        "target": problem.target,
        "task": problem.task,
        "model": type(inner).__name__,
        "kernel": repr(kernel_of(inner)),
        "status": str(getattr(inner, "status_", "")),
        "choices": list(fitted.choices),
        "last_fit": asdict(fitted.last) | {"words": str(fitted.last)},
        "in_time": fitted.in_time,
        "scores": score_facts(origin.scores),
        "judged_on": judged_on(origin),
        "importance": importance_facts(origin.importance),
        "seconds": spent,
        "out": model_path,
        "report": report,
    }


def _summarise(
    voice: Voice, model: Any, fitted: menu.Fitted, problem: Problem, details: dict[str, Any],
    model_path: str | None, size: int, report: str | None, data: str,
) -> None:  # fmt: skip
    """The answer for a person."""
    inner, origin = innermost(model), provenance(model)
    rows, columns = count(problem.total or len(problem), "row"), count(problem.X.shape[1], "column")
    voice.say(f"{data}: {rows}, {columns}, target {problem.target!r} ({problem.task})", strong=True)
    voice.pairs(
        [
            ("model", type(inner).__name__),
            ("kernel", readable(inner)),
            *[("choices" if k == 0 else "", brief(text)) for k, text in enumerate(fitted.choices)],
            ("fitted to", str(fitted.last)),
            ("solver", "" if hasattr(unwrapped(fitted.model), "choices_") else str(getattr(inner, "status_", ""))),
            ("time", seconds(voice.seconds)),
        ]
    )
    say_scores(voice, origin.scores, scores_title(origin), rate=problem.exposure is not None)
    say_details(voice, details, judged_on(origin), brief=True)
    if origin.importance is not None:
        voice.say(most_important(origin.importance))
    if model_path is not None:
        voice.say(f"Saved as {model_path}" + (f" ({show_bytes(size)})." if size else "."))
    if report is not None:
        voice.say(f"Report written to {report}.")
    if model_path is not None:
        model_file = shlex.quote(model_path)
        voice.say(f"Next: mercer predict {model_file} NEW.csv, or mercer explain {model_file}")
