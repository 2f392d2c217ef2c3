"""The memory budget: bytes are estimated before they are allocated."""

from __future__ import annotations

import os
import re
from typing import Any

from mercer.errors import InvalidInput

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def available() -> int:
    """Bytes this machine can give right now."""
    try:
        with open("/proc/meminfo") as meminfo:
            for line in meminfo:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 4 * 2**30


def budget(wanted: Any = None) -> int:
    """A budget in bytes: a number, a text such as "2 GB", MERCER_MEMORY, or half of what is available.

    >>> budget("1.5 GB")
    1500000000
    """
    if wanted is None:
        wanted = os.environ.get("MERCER_MEMORY") or available() // 2
    if isinstance(wanted, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", wanted.lower())
        if match is None or match[2] not in _UNITS:
            raise InvalidInput("A memory budget must be bytes or a text", got=repr(wanted), advice="Such as '2 GB'.")
        wanted = float(match[1]) * _UNITS[match[2]]
    if isinstance(wanted, bool) or not isinstance(wanted, (int, float)) or not 0 < wanted < 2**63:
        raise InvalidInput(
            "A memory budget must be a positive number of bytes", got=repr(wanted), advice="E.g. '2 GB'."
        )
    return int(wanted)


def show_bytes(n: int) -> str:
    """A size a person reads.

    >>> show_bytes(80_000_000_000)
    '80 GB'
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"


def within(nbytes: int, limit: int, what: str, advice: str) -> None:
    """Refuse, with figures, what does not fit."""
    if nbytes > limit:
        raise InvalidInput(
            f"{what} must fit the memory budget of {show_bytes(limit)}", got=show_bytes(nbytes), advice=advice
        )
