"""The commands, their options and their help; what they do is in the modules beside, loaded when a command runs."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer

import mercer

app = typer.Typer(
    name="mercer",
    help="Kernel methods with proofs: from a table to a model you can trust, in one command.",
    epilog="Begin with:  mercer demo,  or  mercer fit data.csv --target price",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = "interrupted: nothing was written"

Data = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet, Arrow, JSON lines or LIBSVM, also packed; - is stdin.", metavar="DATA")
]
Model = Annotated[str, typer.Argument(help="A model that mercer fit has saved.", metavar="MODEL")]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="The column to learn, by name or number (-1: the last).")
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="A column to leave out; may be repeated.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing-target", help="Leave out rows without a target.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours (as with NO_COLOR).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No remarks and no progress.")]
Delimiter = Annotated[str | None, typer.Option("--delimiter", help="What separates the columns of a text file.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of a text file, where it is not UTF-8.")]
Format = Annotated[
    str | None, typer.Option("--format", help="csv, parquet, arrow, jsonl, json or libsvm, whatever the name says.")
]
Seed = Annotated[int, typer.Option("--seed", help="Of everything that is drawn.")]


def _voice(json: bool, no_color: bool, quiet: bool = False) -> Any:
    from mercer.cli.speaking import Voice

    return Voice(as_json=json, color=not no_color, quiet=quiet)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mercer {mercer.__version__}")
        raise typer.Exit()


def _example(*lines: str) -> str:
    return "Example:\n\n" + "\n\n".join(lines)


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(epilog=_example("mercer fit houses.csv --target price --report houses.html"))
def fit(
    data: Data,
    target: Target = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", "-k", help="An expression, such as \"Gaussian(2.0).on('age')\".")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="auto, ridge, gp, svm, logistic, poisson, nw, neighbors, local, linear."),
    ] = "auto",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="The model file; by default DATA's name with .mercer; none: do not save."),
    ] = None,
    report: Annotated[str | None, typer.Option("--report", help="An HTML page about the model.")] = None,
    time: Annotated[float, typer.Option("--time", help="Seconds for the search, about.")] = 60.0,
    task: Annotated[str, typer.Option("--task", help="auto, regression or classification.")] = "auto",
    test_size: Annotated[
        float | None, typer.Option("--test-size", help="The share of rows held out for the scores (0.2).")
    ] = None,
    refit: Annotated[bool, typer.Option("--refit", help="After the scores, fit again on all rows.")] = False,
    drop: Drop = None,
    drop_missing_target: DropMissing = False,
    centers: Annotated[
        int | None, typer.Option("--centers", help="Rows that carry the function (all, or 1500 of many).")
    ] = None,
    seed: Seed = 0,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Fit a model to a table, say how good it is, and keep it."""
    from mercer.cli import fitting

    fitting.fit(
        _voice(json, no_color, quiet), data, target, kernel=kernel, model=model, task=task, out=out, report=report,
        budget=time, test_size=test_size, drop=tuple(drop or ()), drop_missing_target=drop_missing_target,
        centers=centers, refit=refit, seed=seed, reading=_reading(delimiter, encoding, format),
    )  # fmt: skip


@app.command(
    epilog=_example(
        "mercer predict houses.mercer new.csv --interval 0.9 --out prices.parquet",
        "cat new.csv | mercer predict houses.mercer - > prices.csv",
    )
)
def predict(
    model: Model,
    data: Data,
    interval: Annotated[
        float | None, typer.Option("--interval", "-i", help="Also the ends of intervals of this coverage.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", "-p", help="Also the probability of every class.")] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help=".csv, .tsv, .parquet, .arrow or .jsonl; by default CSV on stdout."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Write the columns of the input, too.")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Predict the rows of a file of any length, batch by batch."""
    from mercer.cli import predicting

    predicting.predict(
        _voice(json, no_color, quiet), model, data, interval=interval, proba=proba, out=out, keep=keep,
        reading=_reading(delimiter, encoding, format),
    )  # fmt: skip


@app.command(epilog=_example("mercer evaluate houses.mercer houses_2027.csv"))
def evaluate(
    model: Model,
    data: Data,
    target: Target = None,
    drop_missing_target: DropMissing = False,
    worst: Annotated[int, typer.Option("--worst", help="How many of the worst predicted rows to show.")] = 5,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Scores of a model on a file that has the answers."""
    from mercer.cli import predicting

    predicting.evaluate(
        _voice(json, no_color, quiet), model, data, target=target, drop_missing_target=drop_missing_target, worst=worst,
        reading=_reading(delimiter, encoding, format),
    )  # fmt: skip


@app.command(
    epilog=_example("mercer tune houses.csv --target price --kernel \"Gaussian([1.0, 1.0]).on('area', 'age')\"")
)
def tune(
    data: Data,
    target: Target = None,
    kernel: Annotated[str | None, typer.Option("--kernel", "-k", help="Where to begin: an expression.")] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="ridge, gp or svm.")] = "ridge",
    by: Annotated[str, typer.Option("--by", help="loo (leave-one-out) or evidence.")] = "loo",
    out: Annotated[str | None, typer.Option("--out", "-o", help="A model file, to keep the tuned model.")] = None,
    drop: Drop = None,
    drop_missing_target: DropMissing = False,
    rows: Annotated[int, typer.Option("--rows", help="Rows to search with, at most.")] = 1000,
    seed: Seed = 0,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Move the parameters of a kernel to where the data wants them."""
    from mercer.cli import fitting

    fitting.tune(
        _voice(json, no_color, quiet), data, target, kernel=kernel, model=model, by=by, out=out, drop=tuple(drop or ()),
        drop_missing_target=drop_missing_target, rows=rows, seed=seed, reading=_reading(delimiter, encoding, format),
    )  # fmt: skip


@app.command(epilog=_example("mercer explain houses.mercer"))
def explain(
    model: Model,
    data: Annotated[str | None, typer.Option("--data", help="Rows to try the columns on.")] = None,
    top: Annotated[int, typer.Option("--top", help="How many rows to show.")] = 5,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """The kernel of a model and its proof, the rows that carry it, and the columns it depends on."""
    from mercer.cli import explaining

    explaining.explain(
        _voice(json, no_color, quiet), model, data=data, top=top, reading=_reading(delimiter, encoding, format)
    )


@app.command(epilog=_example("mercer kernels", "mercer kernels Gaussian"))
def kernels(
    name: Annotated[str | None, typer.Argument(help="One of them, in detail.")] = None,
    json: Json = False,
    no_color: NoColor = False,
) -> None:
    """All kernels with their formulas."""
    from mercer.cli import algebra

    algebra.kernels(_voice(json, no_color), name)


@app.command(epilog=_example('mercer check "exp(Linear()) * Gaussian(1.0)"', 'mercer check "Tanh(1.0, -1.0)"'))
def check(
    expression: Annotated[str, typer.Argument(help="A kernel expression.", metavar="EXPR")],
    data: Annotated[str | None, typer.Option("--data", help="Evaluate Mercer's condition on a file, too.")] = None,
    dim: Annotated[int, typer.Option("--dim", help="The dimension to search for a counterexample in.")] = 2,
    drop: Drop = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """Is it a kernel? A proof (exit code 0), or a counterexample (1)."""
    from mercer.cli import algebra

    voice = _voice(json, no_color, quiet)
    code = algebra.check(
        voice, expression, data=data, dim=dim, drop=tuple(drop or ()), reading=_reading(delimiter, encoding, format)
    )
    raise typer.Exit(code)


@app.command(epilog=_example("mercer bench"))
def bench(
    rows: Annotated[int, typer.Option("--rows", help="Rows of the largest problem.")] = 2000,
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """How fast this machine is: Gram matrix, Cholesky, and ridge regression against scikit-learn."""
    from mercer.cli import machine

    machine.bench(_voice(json, no_color, quiet), rows)


@app.command(epilog=_example("mercer doctor"))
def doctor(json: Json = False, quiet: Quiet = False, no_color: NoColor = False) -> None:
    """The environment: versions, BLAS, threads, memory, caches, and what is slow here and why."""
    from mercer.cli import machine

    raise typer.Exit(machine.doctor(_voice(json, no_color, quiet)))


@app.command(epilog=_example("mercer demo"))
def demo(
    out: Annotated[str, typer.Option("--out", "-o", help="The folder for its files.")] = "out",
    json: Json = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
) -> None:
    """A real data set from table to model to report, in under a minute."""
    from mercer.cli import demo as show

    show.demo(_voice(json, no_color, quiet), out)


def _reading(delimiter: str | None, encoding: str | None, format: str | None) -> dict[str, Any]:
    return {"delimiter": delimiter, "encoding": encoding, "format": format}


def run(arguments: list[str] | None = None) -> int:
    """Run a command; errors are one line, and become exit codes."""
    from mercer.cli.speaking import complain

    arguments = sys.argv[1:] if arguments is None else arguments
    color = "--no-color" not in arguments
    try:
        result = app(arguments, prog_name="mercer", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if code == 130:  # Typer's word for an interrupt
            complain(INTERRUPTED, color=color)
        return code
    except typer.Exit as done:
        return int(done.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        complain(INTERRUPTED, color=color)
        return 130
    except BrokenPipeError:  # whoever read the output has enough
        return 0
    except MemoryError as error:
        complain(f"not enough memory ({error}). Take fewer rows, --centers, or another --model.", color=color)
        return 2
    except Exception as error:
        return _failed(error, color)


def _failed(error: Exception, color: bool) -> int:
    from mercer.cli.speaking import complain
    from mercer.errors import InvalidInput

    if isinstance(error, InvalidInput):
        complain(str(error), color=color)
        return 2
    usage = any(cls.__name__ == "ClickException" for cls in type(error).__mro__)
    if usage:
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "mercer"
        if type(error).__name__ == "NoArgsIsHelpError":
            print(getattr(error, "message", "") or str(error))
            return 2
        text = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        complain(f"{text}. See: {where} --help", color=color)
        return 2
    if isinstance(error, OSError) and error.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
    ):
        complain(
            f"{error.filename or 'output'} could not be written: {error.strerror}. Choose another place.", color=color
        )
        return 2
    if isinstance(error, (ImportError, ModuleNotFoundError)) and getattr(error, "name", None) in (
        "polars",
        "rich",
        "matplotlib",
    ):
        complain(f'{error.name} is not installed: pip install "mercer[cli,plot]"', color=color)
        return 2
    if os.environ.get("MERCER_DEBUG"):
        raise error
    text = str(error) or "no message"
    complain(
        f"failed: {type(error).__name__}: {text[:300]}. MERCER_DEBUG=1 shows where; please report it.", color=color
    )
    return 1
