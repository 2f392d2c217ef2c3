"""Files that Mercer wrote, which a new version may replace; other files are replaced only if the user says so."""

from __future__ import annotations

import os

from mercer.errors import InvalidInput
from mercer.words import shortened

FORMAT = "mercer model"
"""The entry of its header by which a file is recognised as a model."""
REPORT_MARK = '<meta name="generator" content="mercer">'
"""The line by which a file is recognised as a report."""
HEAD = 100_000
"""Bytes at the beginning of a file by which it is recognised."""


def replaceable(path: str, header: str | None = None) -> bool:
    """Whether nothing is lost if a file is replaced: there is none, it is empty, or it is a model or report of Mercer.

    A table is one of ours if its first line is `header`. A pipe or a device holds nothing that could be lost.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        return True
    try:
        with open(path, "rb") as file:
            start = file.read(HEAD)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    ours = header is not None and start.decode(errors="replace").partition("\n")[0].strip() == header
    return not start or ours or is_model(start) or REPORT_MARK.encode() in start


def is_model(start: bytes) -> bool:
    """Whether a file begins as a model file does: with the header of safetensors, and our format in it."""
    return start[8:9] == b"{" and f'"format":"{FORMAT}"'.encode() in start


def require_replaceable(path: str, *, overwrite: bool) -> None:
    """Refuse to replace a file that Mercer did not write, unless `overwrite` allows it."""
    if not overwrite and os.path.isfile(path) and os.access(path, os.W_OK) and not replaceable(path):
        raise InvalidInput(
            "`path` must be a new file, or a model or report that Mercer wrote before",
            got=f"{shortened(path)}, a file with other content",
            advice="Choose another name, or pass overwrite=True to replace it. Nothing was written.",
        )
