"""The memory budget: bytes are estimated before they are allocated."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mercer.errors import InvalidInput
from mercer.validation import is_number
from mercer.words import show_bytes

HELD = 2**22
"""Numbers that a computation holds at a time beside its result: 32 MB. More save no time, fewer need more calls."""
CACHED = 2**18
"""The same for numbers that are read again at once: more would not fit a core's cache, fewer need more calls."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def available() -> int:
    """Bytes that can be allocated now: the system's estimate, or less if a container limits the process."""
    limits = [limit for limit in (_meminfo(), _container()) if limit is not None]
    return max(0, min(limits)) if limits else _half_of_physical()


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _container() -> int | None:
    """Room under a cgroup's limit; file cache that can be dropped counts as room."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return None if limit == "max" else int(limit) - used + int(stat.get("inactive_file", 0))
    except (OSError, ValueError):
        return None


def _half_of_physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):  # no sysconf, as on Windows
        return 4 * 1024**3


def resident() -> int:
    """Bytes of memory that the process uses now; its peak where the system reports only that, else 0.

    >>> resident() >= 0
    True
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    try:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    except ImportError:
        return 0


def budget(wanted: Any = None) -> int:
    """A budget in bytes: a number, a text such as "2 GB", MERCER_MEMORY, or half of the available memory.

    >>> budget("1.5 GB")
    1500000000
    """
    source = "A memory budget"
    if wanted is None:
        wanted = os.environ.get("MERCER_MEMORY") or available() // 2
        source = "The memory budget in MERCER_MEMORY"
    if isinstance(wanted, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", wanted.lower())
        if match is None or match[2] not in _UNITS:
            raise InvalidInput(
                f"{source} must be a number of bytes, or a text", got=repr(wanted), advice="Pass a size such as '2 GB'."
            )
        wanted = float(match[1]) * _UNITS[match[2]]
    if not is_number(wanted) or not 0 < wanted < 2**63:
        raise InvalidInput(
            f"{source} must be a positive number of bytes", got=repr(wanted), advice="Pass a size such as '2 GB'."
        )
    return int(wanted)


class BeyondMemory(InvalidInput):
    """Valid input whose result would not fit the memory budget."""


def within(nbytes: int, limit: int, what: str, advice: str) -> None:
    """Raise, with figures, if the bytes exceed the limit."""
    if nbytes > limit:
        raise BeyondMemory(
            f"{what} must fit the memory budget of {show_bytes(limit)}", got=show_bytes(nbytes), advice=advice
        )


def allocatable(nbytes: int, what: str, advice: str) -> None:
    """Raise if one array would take nearly all memory: the system would kill the process instead."""
    if nbytes > 2**26:  # asking the system takes longer than allocating a smaller array
        limit = budget() if os.environ.get("MERCER_MEMORY") else int(0.9 * available())
        within(nbytes, limit, what, advice)
