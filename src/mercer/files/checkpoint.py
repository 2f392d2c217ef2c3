"""Checkpoints of long fits: the state of a solver in a file, from which a killed fit continues.

The file appears completely or not at all, contains no code, and names the problem it belongs to by a digest of the data
and of all parameters that change the answer. Another problem refuses it.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mercer
from mercer.data.batches import Batches
from mercer.data.digests import digest_at
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.files.container import CHECKPOINT, named, read, write

Arrays = dict[str, NDArray[Any]]
EVERY = 10.0
"""Seconds between two checkpoints: writing one more often would slow down the fit."""


class CheckpointFile:
    """A file that keeps the state of one problem.

    Parameters
    ----------
    path : str or Path
        The file, which need not exist.
    problem : str
        The digest of the problem, see `digest_of`.
    every : float
        Seconds between two checkpoints.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = CheckpointFile(f"{folder}/fit.ckpt", "digest")
    ...     before = file.load()
    ...     file.save({"u": np.arange(3.0)})
    ...     after = file.load()
    ...     file.remove()
    ...     os.listdir(folder)
    []
    >>> before is None, after["u"]
    (True, array([0., 1., 2.]))
    """

    def __init__(self, path: Any, problem: str, every: float = EVERY) -> None:
        self.path, self.problem, self.every, self.last = named(path), problem, every, -np.inf
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder) or os.path.isdir(self.path):
            raise InvalidInput(
                "A checkpoint must be a file in a folder that exists",
                got=repr(self.path),
                advice="Make the folder, or choose another path.",
            )

    def load(self) -> Arrays | None:
        """The arrays of the file, or None if there is no file; an error if it belongs to another problem."""
        if not os.path.exists(self.path):
            return None
        try:
            metadata, arrays = read(self.path, form=CHECKPOINT)
        except InvalidInput as error:
            raise InvalidInput(
                f"The checkpoint {self.path!r} must be complete and as a fit wrote it",
                got=error.got,
                advice="Choose another path.",
            ) from None
        if metadata["problem"] != self.problem:
            raise InvalidInput(
                f"The checkpoint {self.path!r} must belong to the same data and parameters",
                got="that of another fit",
                advice="Choose another path, or delete the file to start from the beginning.",
            )
        return arrays

    def save(self, arrays: Arrays) -> None:
        """Write the arrays, unless the last ones were written a short time ago; after an error the last ones remain."""
        if time.perf_counter() < self.last + self.every:
            return
        tensors = {name: np.ascontiguousarray(A) for name, A in arrays.items()}
        metadata = {"version": mercer.__version__, "problem": self.problem}
        try:
            write(self.path, metadata, tensors, lambda path: None, CHECKPOINT)
        except InvalidInput as error:
            raise InvalidInput(
                "A checkpoint must be in a folder with free space and write permission",
                got=error.got,
                advice="Free disk space, and fit again: the fit continues at the last checkpoint that was written.",
            ) from None
        self.last = time.perf_counter()

    def remove(self) -> None:
        """Delete the file: the fit is complete."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def digest_of(points: Points | Batches, *others: Any) -> str:
    """A digest of data and of everything else that an answer depends on: arrays by their bytes, other values by repr.

    Rows in batches are read once; those on a cluster are read there, and two numbers come back.

    >>> X = Points(np.arange(4.0)[:, None])
    >>> digest_of(X, 1.0) == digest_of(Points(np.arange(4.0)[:, None]), 1.0), digest_of(X, 1.0) == digest_of(X, 2.0)
    (True, False)
    """
    sha = hashlib.sha256()
    rows = points.digest() if isinstance(points, Batches) else digest_at(points.raw, 0)
    if rows is None:
        raise InvalidInput(
            "`checkpoint` needs rows of numbers, texts or categories, by which it recognises the data",
            got="other objects",
            advice="Leave out `checkpoint`.",
        )
    sha.update(rows.tobytes())
    for value in others:
        if isinstance(value, np.ndarray):
            sha.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        else:
            sha.update(repr(value).encode())
        sha.update(b"|")
    return sha.hexdigest()
