"""Files that appear completely or not at all: they are written under another name and renamed when complete."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape, glob

ABANDONED = 3600
"""A part file that is older than this, in seconds, was left by a process that was killed."""


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """The path of a new, empty file, which is renamed to `path` when the block ends without an error.

    Until then, and after an error, an existing file is unchanged. The new version keeps the permissions of the old one,
    and links keep their target. A pipe or a device cannot be replaced: the content is written to it.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with replacing(path) as beside, open(beside, "w") as file:
    ...         _ = file.write("whole")
    ...     os.path.getsize(path), os.listdir(folder)
    (5, ['a.txt'])
    """
    try:
        mode: int | None = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if (mode is not None and stat.S_ISDIR(mode)) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    if mode is not None and not stat.S_ISREG(mode):
        with tempfile.TemporaryDirectory() as folder:
            content = os.path.join(folder, "content")
            open(content, "xb").close()
            yield content
            with open(content, "rb") as source, open(path, "wb") as device:
                while block := source.read(1 << 20):
                    device.write(block)
        return
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    stem = os.path.join(folder, f".{name[:40]}.")
    _sweep(stem)
    beside = f"{stem}{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        os.close(os.open(beside, flags, 0o666 if mode is None else 0o600))
        if mode is not None:
            os.chmod(beside, stat.S_IMODE(mode))
        yield beside
        _to_disk(beside)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    with suppress(OSError):  # the new name should survive a power cut, too; not every system supports this
        _to_disk(folder)


def _to_disk(path: str) -> None:
    """Make the system write its buffers of a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(stem: str) -> None:
    """Remove part files of this name that were left by killed processes."""
    for part in glob(f"{escape(stem)}{'[0-9a-f]' * 16}.part"):
        with suppress(OSError):
            if time.time() - os.stat(part).st_mtime > ABANDONED:
                os.unlink(part)
