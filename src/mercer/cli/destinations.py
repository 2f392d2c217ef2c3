"""Paths of output files: what cannot be written, or must not be replaced, is refused before anything is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mercer.cli.sources import address
from mercer.errors import InvalidInput


def require_writable(path: str) -> None:
    """Refuse a path that could not be written at the end."""
    target = Path(path).expanduser()
    folder = target.parent
    obstacle = None
    if target.is_dir():
        obstacle = "a folder"
    elif not folder.is_dir():
        obstacle = f"no folder {folder}"
    elif target.exists() and not os.access(target, os.W_OK):
        obstacle = "a file without write permission"
    elif not target.exists() and not os.access(folder, os.W_OK):
        obstacle = f"a folder without write permission: {folder}"
    if obstacle is not None:
        raise InvalidInput(f"{path} must be a path that can be written", got=obstacle, advice="Choose another path.")


def require_outputs(
    outputs: Mapping[str, str | None],
    inputs: Sequence[str],
    *,
    force: bool = False,
    header: Mapping[str, str] | None = None,
) -> None:
    """Refuse outputs (by option) that cannot be written, or that would replace something.

    The name of another option is refused: a user who forgets the name after --report does not want a report called
    --force. An input is never replaced, and no output replaces another. A file that was there before is replaced only
    if it is a model or a report of this program, if it is empty, or with `force`; a table if its first line is the
    `header` that the option's table always has.
    """
    from mercer.ours import replaceable

    known = header or {}
    taken: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.startswith("--"):
            raise InvalidInput(
                f"{option} must be followed by the name of a file", got=f"{path}, the name of an option",
                advice=f"Write the name after {option}; a file that begins with two dashes is ./{path}.",
            )  # fmt: skip
        if path == "-":  # `predict` prints its table; other outputs are files
            raise InvalidInput(
                f"{option} must be the name of a file",
                got="-, which is standard output",
                advice="Choose a name, or ./- for a file that is called so. Nothing was written.",
            )
        require_writable(path)
        place = os.path.realpath(Path(path).expanduser())
        if os.path.exists(place) and not os.path.isfile(place):  # a pipe or device may take several outputs
            continue
        same = next((name for name in inputs if _is_input(place, name)), None)
        other = next((name for before, name in taken.items() if _same(place, before)), None)
        if same is not None or other is not None:
            raise InvalidInput(
                f"{option} must differ from all other files of the command",
                got=f"{path}, which is also {'another output' if same is None else 'an input'}",
                advice="Choose another name. Nothing was written.",
            )
        if not force and not replaceable(place, known.get(option)):
            raise InvalidInput(
                f"{option} must be a new file, or a model or report that mercer wrote before",
                got=f"{path}, a file with other content",
                advice="Choose another name, or add --force to replace it. Nothing was written.",
            )
        taken[place] = path


def _is_input(place: str, name: str) -> bool:
    """Whether an output would replace an input: the same file, also by a link, or a file in an input folder."""
    if name == "-":
        try:
            return sys.stdin is not None and os.path.samestat(os.stat(place), os.fstat(sys.stdin.fileno()))
        except (OSError, ValueError):  # the output is new, or standard input is not a file
            return False
    source = os.path.realpath(os.path.expanduser(address(name)[0]))
    if os.path.isdir(source):
        return os.path.exists(place) and os.path.commonpath([source, place]) == source
    return _same(place, source)


def _same(one: str, other: str) -> bool:
    """Whether two paths name the same file, also by a hard link or another spelling."""
    try:
        return one == other or os.path.samefile(one, other)
    except OSError:
        return False


def model_path(data: str, out: str | None) -> str | None:
    """The path of the model file: --out, or the name of the data in the current folder; None to save nothing."""
    if out in ("none", "/dev/null"):
        return None
    if out is not None:
        return out
    stem = "model" if data == "-" else Path(address(data)[0]).name.split(".")[0] or "model"
    return f"{stem}.mercer"
