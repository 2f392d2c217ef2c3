"""The commands, their options and their help. The modules that do the work are loaded when a command runs."""

from __future__ import annotations

import errno
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from importlib.util import find_spec
from time import monotonic
from typing import Annotated, Any, Literal, get_args

import typer

import mercer
from mercer.cli import destinations, header, interrupts
from mercer.cli.helping import FLAG, Command
from mercer.errors import InvalidInput

app = typer.Typer(
    name="mercer",
    help="Kernel methods with proofs: from a table to a model you can trust, in one command.",
    epilog="Begin with:  mercer demo,  or  mercer fit data.csv --target price",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# -- options, each one once --------------------------------------------------------------------------------------------

Data = Annotated[
    str,
    typer.Argument(
        help="A CSV, Excel, ODS, Parquet, Arrow, JSON lines or LIBSVM file; - is stdin; FILE::NAME a sheet or table.",
        metavar="DATA",
    ),
]
Model = Annotated[str, typer.Argument(help="A model file that mercer fit saved.", metavar="MODEL")]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict, or its number (-1: the last)."),
]
Kernel = Annotated[
    str | None,
    typer.Option("--kernel", "-k", metavar="EXPR", help="A kernel expression (see mercer kernels)."),
]
Kind = Literal["auto", "ridge", "gp", "svm", "logistic", "poisson", "nw", "neighbors", "local", "linear"]
Task = Annotated[
    Literal["auto", "regression", "classification"],
    typer.Option("--task", metavar="NAME", help="The target: regression, classification, or auto."),
]
Force = Annotated[bool, typer.Option("--force", metavar=FLAG, help="Replace any existing output; never an input.")]


def _columns(option: str, text: str) -> Any:
    """An option that names columns; it may be repeated."""
    return Annotated[list[str] | None, typer.Option(option, metavar="COLUMN", help=f"{text}; may be repeated.")]


def _column(option: str, text: str) -> Any:
    """An option that names one column."""
    return Annotated[str | None, typer.Option(option, metavar="COLUMN", help=text)]


Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMN", help="A column to leave out; may be repeated.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing-target", metavar=FLAG, help="Leave out rows without a target.")
]
Folds = Annotated[
    int | None, typer.Option("--folds", metavar="N", min=2, help="Score by cross-validation with this many folds.")
]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="How often the folds are drawn.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the random numbers.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="TEXT", help="The column separator of a text file.")
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="The encoding of a text file that is not UTF-8.")
]
Format = Annotated[
    Literal["csv", "parquet", "arrow", "arrow-stream", "jsonl", "json", "libsvm"] | None,
    typer.Option("--format", metavar="NAME", help="The file format, if it cannot be detected."),
]
NA = Annotated[
    list[str] | None,
    typer.Option("--na", metavar="TEXT", help="A text that marks a missing value; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", metavar=FLAG, help="Print one JSON document instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", metavar=FLAG, help="Print no notes, progress or fit summary.")]
NoColor = Annotated[bool, typer.Option("--no-color", metavar=FLAG, help="Print without colours (as with NO_COLOR).")]

SHARED: dict[str, dict[str, tuple[Any, Any]]] = {
    "reading": {
        "delimiter": (Delimiter, None),
        "encoding": (Encoding, None),
        "format": (Format, None),
        "na": (NA, None),
    },
    "roles": {
        "category": (_columns("--category", "A column of codes or names, such as a zip code"), None),
        "number": (_columns("--number", "A column of numbers"), None),
        "date": (_columns("--date", "A column of dates, or COLUMN=FORMAT such as day=%d/%m/%Y"), None),
        "text": (_columns("--text", "A column of texts"), None),
        "molecule": (_columns("--molecule", "A column of molecules as SMILES texts (needs RDKit)"), None),
        "drop": (Drop, None),
        "group": (
            _column("--group", "Not a feature: rows with equal values are held out together."),
            None,
        ),
        "time_column": (_column("--time-column", "Not a feature: the latest rows are held out."), None),
        "exposure": (
            _column("--exposure", "Not a feature: the target is a count over this time or area."),
            None,
        ),
        "weight": (_column("--weight", "Not a feature: how often a row counts in the fit."), None),
    },
    "voice": {"json": (Json, False), "quiet": (Quiet, False), "no_color": (NoColor, False)},
}
"""Options that many commands share: those of `voice` are passed on as a `Voice`, others as a dictionary."""


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command with examples; its parameters `reading`, `roles` and `voice` stand for the shared options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        declared = inspect.signature(function, eval_str=True).parameters
        shared = {name: SHARED[name] for name in SHARED if name in declared}

        @wraps(function)
        def with_shared(**values: Any) -> None:
            parts = {name: {option: values.pop(option) for option in options} for name, options in shared.items()}
            function(**values, **{name: _voice(**part) if name == "voice" else part for name, part in parts.items()})

        options = {option: pair for group in shared.values() for option, pair in group.items()}
        parameters = [p for p in declared.values() if p.name not in shared] + [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        ]
        with_shared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_shared.__annotations__ = {p.name: p.annotation for p in parameters}
        return app.command(cls=Command, epilog=f"Example{'s' * (len(examples) > 1)}:\n\n" + "\n\n".join(examples))(
            with_shared
        )

    return register


def _voice(json: bool, quiet: bool, no_color: bool) -> Any:
    from mercer.cli.speaking import Voice

    return Voice(as_json=json, color=not no_color, quiet=quiet, began=BEGAN.get(None))


def _require_plots(option: str) -> None:
    """Refuse an option that draws plots if matplotlib is not installed, before anything is loaded."""
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            f"{option} needs matplotlib, which draws the plots",
            got="an installation without it",
            advice='Install it with: pip install "mercer[plot]"',
        )


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mercer {mercer.__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", metavar=FLAG, help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


# -- commands ----------------------------------------------------------------------------------------------------------


@command("mercer fit houses.csv --target price --report houses.html")
def fit(
    data: Data,
    voice: Any,
    reading: Any,
    roles: Any,
    target: Target = None,
    kernel: Kernel = None,
    model: Annotated[
        Kind, typer.Option("--model", "-m", metavar="NAME", help=f"The model to fit: {', '.join(get_args(Kind))}.")
    ] = "auto",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="The model file (default DATA.mercer), or none."),
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write an HTML report about the model here.")
    ] = None,
    time: Annotated[float, typer.Option("--time", metavar="SECONDS", help="Seconds for the whole command")] = 60.0,
    task: Task = "auto",
    test_size: Annotated[
        float | None,
        typer.Option("--test-size", metavar="X", help="The share of rows held out for scoring (by default 0.2)."),
    ] = None,
    folds: Folds = None,
    repeat: Repeat = 1,
    refit: Annotated[bool, typer.Option("--refit", metavar=FLAG, help="Fit again on all rows after scoring.")] = False,
    drop_missing_target: DropMissing = False,
    centers: Annotated[
        int | None,
        typer.Option("--centers", metavar="N", min=1, help="Centres of ridge, logistic or poisson (Nyström)."),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="F1|COST=A:B|NUMBER",
            help="Two classes: the probability from which the positive one is predicted: the one with the best F1, the "
            "one with the least cost if a missed row costs A and a false alarm B, or a number such as 0.3.",
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option("--positive", metavar="CLASS", help="The class of --threshold (default: the second).")
    ] = None,
    balance: Annotated[
        bool, typer.Option("--balance", metavar=FLAG, help="Every class counts the same, however rare it is.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", metavar=FLAG, help="Print solver, time and memory, and do not fit.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Fit a Parquet file on this Dask cluster (auto)."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fit a model to a table, score it on held-out rows, and save it."""
    outputs = {} if plan else {"--out": destinations.model_path(data, out), "--report": report}
    destinations.require_outputs(outputs, inputs=(data,), force=force)
    header.check(data, target, roles, reading, predicts=True)
    if report is not None:
        _require_plots("--report")

    from mercer.cli import fitting, large

    with large.connected(dask, data) as client:
        fitting.fit(
            voice, data, target, kernel=kernel, model=model, task=task, out=out, report=report, budget=time,
            test_size=test_size, folds=folds, repeat=repeat, roles=roles, drop_missing_target=drop_missing_target,
            centers=centers, refit=refit, threshold=threshold, positive=positive, balance=balance, seed=seed,
            reading=reading, plan=plan, client=client,
        )  # fmt: skip


@command(
    "mercer predict houses.mercer new.csv --interval 0.9 --out prices.parquet",
    "cat new.csv | mercer predict houses.mercer - > prices.csv",
)
def predict(
    model: Model,
    data: Data,
    voice: Any,
    reading: Any,
    interval: Annotated[
        float | None,
        typer.Option("--interval", "-i", metavar="X", help="Add prediction intervals with this coverage, such as 0.9."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", "-p", metavar=FLAG, help="Add the probability of every class.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .csv, .tsv, .xlsx, .ods, .parquet, .arrow or .jsonl file (default: stdout).",
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", metavar=FLAG, help="Also write the columns of the input.")] = False,
    force: Force = False,
) -> None:
    """Predict the rows of a file."""
    header.require_file(model)
    header.check(data, None, {}, reading)
    destinations.require_outputs({"--out": None if out == "-" else out}, inputs=(data, model), force=force)
    from mercer.cli import predicting

    predicting.predict(voice, model, data, interval=interval, proba=proba, out=out, keep=keep, reading=reading)


@command("mercer evaluate houses.mercer houses_2027.csv")
def evaluate(
    model: Model,
    data: Data,
    voice: Any,
    reading: Any,
    target: Target = None,
    drop_missing_target: DropMissing = False,
    worst: Annotated[
        int, typer.Option("--worst", metavar="N", min=0, help="The number of worst predicted rows to show.")
    ] = 5,
) -> None:
    """Score a model on a file that contains the target."""
    header.require_file(model)
    header.check(data, target, {}, reading)
    from mercer.cli import predicting

    predicting.evaluate(
        voice, model, data, target=target, drop_missing_target=drop_missing_target, worst=worst, reading=reading
    )


@command(
    "mercer compare houses.csv --target price", "mercer compare houses.csv -t price -m ridge -m boosting --folds 5"
)
def compare(
    data: Data,
    voice: Any,
    reading: Any,
    roles: Any,
    target: Target = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="A model of mercer fit, or boosting; may be repeated. By default several.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="The score to rank by, such as MAE or accuracy.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=10, help="The largest number of rows to compare on.")
    ] = 2000,
    time: Annotated[
        float, typer.Option("--time", metavar="SECONDS", help="Time for all searches; the fits may take longer")
    ] = 60.0,
    task: Task = "auto",
    folds: Folds = None,
    repeat: Repeat = 1,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the ranking to this .png, .svg or .pdf file.")
    ] = None,
    drop_missing_target: DropMissing = False,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Rank models of different kinds by their scores on the same held-out rows."""
    if roles["weight"] is not None:
        raise InvalidInput(
            "mercer compare has no --weight: most of the models that it compares cannot use it",
            got=f"--weight {roles['weight']}",
            advice="Fit one model with weights by mercer fit --weight, or leave the column out with --drop.",
        )
    header.check(data, target, roles, reading, predicts=True)
    destinations.require_outputs({"--plot": plot}, inputs=(data,), force=force)
    if plot is not None:
        _require_plots("--plot")
    from mercer.cli import comparing

    comparing.compare(
        voice, data, target, models=tuple(model or ()), by=by, task=task, rows=rows, budget=time, folds=folds,
        repeat=repeat, roles=roles, drop_missing_target=drop_missing_target, plot=plot, seed=seed,
        reading=reading,
    )  # fmt: skip


@command("mercer tune houses.csv -t price -k \"Gaussian([1.0, 1.0]).on('area', 'age')\"")
def tune(
    data: Data,
    voice: Any,
    reading: Any,
    roles: Any,
    target: Target = None,
    kernel: Kernel = None,
    model: Annotated[
        Literal["ridge", "gp", "svm"],
        typer.Option("--model", "-m", metavar="NAME", help="The model: ridge, gp or svm."),
    ] = "ridge",
    by: Annotated[
        Literal["loo", "evidence"],
        typer.Option("--by", metavar="NAME", help="The criterion: loo or evidence; svm uses folds."),
    ] = "loo",
    task: Task = "auto",
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Save the tuned model to this file.")
    ] = None,
    drop_missing_target: DropMissing = False,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=2, help="The largest number of rows to search with.")
    ] = 1000,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Fit the parameters of a kernel to the data."""
    header.check(data, target, roles, reading, predicts=True)
    destinations.require_outputs({"--out": out}, inputs=(data,), force=force)
    from mercer.cli import tuning

    tuning.tune(
        voice, data, target, kernel=kernel, model=model, by=by, task=task, out=out, roles=roles,
        drop_missing_target=drop_missing_target, rows=rows, seed=seed, reading=reading,
    )  # fmt: skip


@command("mercer explain houses.mercer", "mercer explain houses.mercer --row 17 --data new.csv")
def explain(
    model: Model,
    voice: Any,
    reading: Any,
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="Rows to explain, or to measure importance on.")
    ] = None,
    row: Annotated[
        int | None,
        typer.Option("--row", metavar="N", min=1, help="Explain the prediction of this row, counted from 1."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="NAME", help="Explain the probability of this class, not of the predicted one."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="The number of training rows to show.")] = 5,
    proof: Annotated[
        bool, typer.Option("--proof", metavar=FLAG, help="Show every step of the kernel's proof.")
    ] = False,
) -> None:
    """Show feature importance, influential rows and the kernel of a model; with --row, the reasons for a prediction."""
    header.require_file(model)
    from mercer.cli import explaining

    explaining.explain(voice, model, data=data, row=row, label=label, top=top, proof=proof, reading=reading)


@command("mercer kernels", "mercer kernels Gaussian")
def kernels(
    voice: Any, name: Annotated[str | None, typer.Argument(help="Describe this kernel only.", metavar="NAME")] = None
) -> None:
    """List the kernels with their formulas."""
    from mercer.cli import algebra

    algebra.kernels(voice, name)


@command('mercer check "exp(Linear()) * Gaussian(1.0)"', 'mercer check "Tanh(1.0, -1.0)"')
def check(
    expression: Annotated[str, typer.Argument(help="A kernel expression.", metavar="EXPR")],
    voice: Any,
    reading: Any,
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="Also check Mercer's condition on this file.")
    ] = None,
    dim: Annotated[
        int,
        typer.Option("--dim", metavar="N", min=1, max=1000, help="The dimension to search for a counterexample in."),
    ] = 2,
    drop: Drop = None,
) -> None:
    """Prove that an expression is a kernel (exit code 0), or search for a counterexample (1)."""
    from mercer.cli import algebra

    raise typer.Exit(algebra.check(voice, expression, data=data, dim=dim, drop=tuple(drop or ()), reading=reading))


@command("mercer bench")
def bench(
    voice: Any,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=50, max=20_000, help="The number of rows.")] = 2000,
) -> None:
    """Measure this machine: Gram matrix, Cholesky, and kernel ridge beside scikit-learn."""
    from mercer.cli import machine

    machine.bench(voice, rows)


@command("mercer doctor")
def doctor(voice: Any) -> None:
    """Check the environment: versions, BLAS, threads, memory, caches, and causes of slow runs."""
    from mercer.cli import machine

    raise typer.Exit(machine.doctor(voice))


@command("mercer demo")
def demo(
    voice: Any,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FOLDER", help="The folder to write the files to.")
    ] = "out",
    force: Force = False,
) -> None:
    """Take a real data set from table to model to report, in under a minute."""
    _require_plots("mercer demo")

    from mercer.cli import demo as module

    module.demo(voice, out, force=force)


# -- exit codes --------------------------------------------------------------------------------------------------------


BEGAN: ContextVar[float] = ContextVar("began")
"""When the command began, by `time.monotonic`, before its modules were loaded."""


def run(arguments: list[str] | None = None, began: float | None = None) -> int:
    """Run a command and return its exit code; an error is printed as one line."""
    BEGAN.set(monotonic() if began is None else began)
    arguments = sys.argv[1:] if arguments is None else arguments
    interrupts.begin()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `warnings_as_notes` reports those of a fit
            result = app(arguments, prog_name="mercer", standalone_mode=False)
        code, text = (result if isinstance(result, int) else 0), ""
        if code == interrupts.INTERRUPTED:  # Typer's code for an interrupt, too
            text = interrupts.message()
    except SystemExit as end:  # Typer raises it when the reader of a pipe has closed it, which is not a failure
        return 0 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)
    except BaseException as error:  # a panic of Polars is not an Exception
        if os.environ.get("MERCER_DEBUG"):
            raise
        code, text = _exit_code(error)
    if text:
        from mercer.cli.speaking import print_error

        print_error(text, color="--no-color" not in arguments)
    return code


def _exit_code(error: BaseException) -> tuple[int, str]:
    """The exit code and the message of an error."""
    if isinstance(error, typer.Exit):
        return int(error.exit_code), ""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return interrupts.INTERRUPTED, interrupts.message()
    if isinstance(error, InvalidInput):
        return 2, error.in_shell
    if isinstance(error, MemoryError):
        return 2, f"not enough memory ({error}). Use fewer rows, --centers, or another --model."
    if any(cls.__name__ == "ClickException" for cls in type(error).__mro__):
        return 2, _usage(error)
    if isinstance(error, OSError) and error.errno in (
        errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EBADF,
    ):  # fmt: skip
        file = error.filename or "The output"
        return 2, f"{file} could not be written: {error.strerror}. Choose another path, or free disk space."
    text = str(error) or "no message"
    return 1, f"failed: {type(error).__name__}: {text[:300]}. Set MERCER_DEBUG=1 to see where, and please report it."


def _usage(error: Any) -> str:
    """The message about a command that was called in a wrong way."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "message", "") or str(error))
        return ""
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "mercer"
    return f"{error.format_message().rstrip('.')}. See: {command} --help"
