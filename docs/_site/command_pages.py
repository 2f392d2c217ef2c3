"""The reference of the command line, from the commands themselves: usage, arguments, options, examples."""

import inspect
import re
from typing import Any, Literal, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo

from mercer.cli.app import app


def cell(text: object) -> str:
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").replace("<", "&lt;").strip()


def choices(kind: Any) -> str:
    """The values that an option may have, if they are few."""
    plain = [one for one in get_args(kind) if one is not type(None)] if get_origin(kind) is not Literal else [kind]
    kind = plain[0] if plain else kind
    return ", ".join(f"`{choice}`" for choice in get_args(kind)) if get_origin(kind) is Literal else ""


def section(name: str, function: Any, epilog: str) -> str:
    """One command."""
    arguments, options = [], []
    for parameter in inspect.signature(function).parameters.values():
        kind, info = parameter.annotation.__origin__, parameter.annotation.__metadata__[0]
        if isinstance(info, ArgumentInfo):
            optional = parameter.default is not inspect.Parameter.empty
            arguments.append((info.metavar, optional, info.help))
        elif isinstance(info, OptionInfo) and not info.hidden:
            value = parameter.default
            plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
            default = f" Default: `{value}`." if plain else ""
            # Of an annotated option, Typer keeps the first name as its default.
            names = [one for one in (info.default, *info.param_decls) if isinstance(one, str) and one.startswith("-")]
            value = f" `{info.metavar.strip()}`" if (info.metavar or "").strip() else ""
            sentence = f"{info.help.removesuffix('.')}.{default}"
            options.append((", ".join(f"`{one}`" for one in names) + value, choices(kind), sentence))
    usage = " ".join(
        ["mercer", name, *(f"[{one}]" if optional else one for one, optional, _ in arguments), "[OPTIONS]"]
    )
    text = f"\n## mercer {name}\n\n{cell(inspect.getdoc(function))}\n\n    {usage}\n\n"
    lines = [line.strip() for line in epilog.splitlines()[1:] if line.strip()]
    text += "For example:\n\n" + "\n".join(f"    {line}" for line in lines) + "\n\n" if lines else ""
    if arguments:
        text += "| argument | |\n|---|---|\n"
        text += "".join(f"| `{one}` | {cell(words)} |\n" for one, _, words in arguments) + "\n"
    text += "| option | |\n|---|---|\n"
    for names, kind, words in options:
        text += f"| {cell(names)} | {cell(words + (f' One of {kind}.' if kind else ''))} |\n"
    return text


def pages() -> dict[str, str]:
    """The page by its place on the site."""
    text = (
        "# Command line\n\nEvery command with all of its options, as `mercer COMMAND --help` shows them. "
        "[The command line](../howto/command-line.md) explains how they work together.\n\n"
        "Results go to stdout and notes to stderr.\n"
    )
    for command in app.registered_commands:
        if not command.hidden:
            text += section(command.name or command.callback.__name__, command.callback, command.epilog or "")
    return {"reference/commands.md": text}
