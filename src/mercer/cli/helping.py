"""`mercer COMMAND --help` on one screen: a line for each option, or for a few options that belong together."""

from __future__ import annotations

import shutil
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand

FLAG = " "
"""Metavar of an option that takes no value."""
WIDEST, NAMES = 100, 24
"""The largest width of a line, and the width of the names of options."""
TOGETHER = (
    (("test_size", "refit"), "Score on a share of the rows (0.2); fit again on all."),
    (("folds", "repeat"), "Cross-validate with N folds; draw the folds N times."),
    (
        ("threshold", "positive"),
        "Predict CLASS from probability 0.3, f1 (best F1), or cost=5:1 (a miss costs as much as 5 false alarms).",
    ),
    (("category", "number", "date", "text", "molecule"), "How to read a column; dates also as day=%d/%m/%Y."),
    (("group", "time_column"), "Hold out groups, or the latest rows; not features."),
    (("exposure", "weight"), "Target is a count over this; how often a row counts."),
    (("delimiter", "encoding", "format", "na"), "How to read a file; --na is a missing value."),
    (("json", "quiet", "no_color", "help"), "Print JSON; no notes; no colours; this help."),
)
"""Options that share a line, and what they are for."""


class Command(TyperCommand):
    """A command whose help fits on one screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, purpose, arguments, options and examples."""
        wide = min(shutil.get_terminal_size((WIDEST, 40)).columns, WIDEST)
        parameters: list[Any] = list(self.get_params(ctx))
        arguments = [p for p in parameters if p.param_type_name == "argument"]
        names = " ".join(_metavar(p) if p.required else f"[{_metavar(p)}]" for p in arguments)
        formatter.write(f"Usage: {ctx.command_path} {names}".rstrip() + " [OPTIONS]\n\n")
        formatter.write("\n".join(wrap(self.help or "", wide)) + "\n\n")
        for argument in arguments:
            formatter.write(_entry(_metavar(argument), argument.help or "", wide))
        options = {p.name: p for p in parameters if p.param_type_name == "option" and not p.hidden}
        together = [([options.pop(n) for n in group if n in options], words) for group, words in TOGETHER]
        for option in options.values():
            formatter.write(_entry(_names(option), _words(option), wide))
        for group, words in together:
            if len(group) == 1:
                formatter.write(_entry(_names(group[0]), _words(group[0]), wide))
            elif group:
                values = {_metavar(option) for option in group}
                names = ", ".join(max(option.opts, key=len) for option in group)
                formatter.write(_entry(f"{names} {values.pop()}" if len(values) == 1 else names, words, wide))
        examples = [line.strip() for line in (self.epilog or "").splitlines() if line.strip()]
        if examples:
            formatter.write("\n" + "\n".join([examples[0], *(f"  {line}" for line in examples[1:])]) + "\n")


def _entry(names: str, words: str, wide: int) -> str:
    """Names, and what they mean beside them, or below them if they are long."""
    lines = wrap(words, wide - NAMES - 2) or [""]
    head = f"  {names}".ljust(NAMES)
    if len(head) > NAMES:
        return "".join(f"{line}\n" for line in (head.rstrip(), *(" " * (NAMES + 2) + line for line in lines)))
    return "".join(f"{first}  {line}\n" for first, line in zip([head, *[" " * NAMES] * len(lines)], lines))


def _metavar(parameter: Any) -> str:
    """The name of a parameter's value; every option that takes one is declared with it."""
    return str(parameter.metavar or "").strip()


def _names(option: Any) -> str:
    return f"{', '.join(sorted(option.opts, key=len))} {_metavar(option)}".rstrip()


def _words(option: Any) -> str:
    """The help of an option, with its default if that is a number."""
    words, default = str(option.help or "").rstrip("."), option.default
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    return f"{words} (default {default:g})." if number else f"{words}."
