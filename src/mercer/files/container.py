"""The container of model files: safetensors (a JSON header, then tensors) with metadata and a digest of all bytes.

A file is written completely or not at all, and read only after every declared size was compared with the size of the
file and with the memory budget.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.files.names import CODES, DTYPES
from mercer.files.reading import SPACIOUS, read_json
from mercer.files.replace import replacing
from mercer.memory import budget, within
from mercer.ours import FORMAT
from mercer.words import show_bytes

Array = NDArray[Any]

SCHEMA = 1
"""The schema that this version writes; older schemas are read, newer ones are refused."""
CHECKPOINT = "mercer checkpoint"
LONGEST = 100_000_000
"""The largest size of a header in bytes, by the safetensors format."""
_DIGEST = '"digest":"%s"'  # unique: quotes in other JSON texts are escaped
_ZEROS = "0" * 64
STATE = ("parameters", "fitted", "left_out")
_WORDS = ("format", "schema", "version", "class", "kernel", "columns", "classes", "training", "digest", *STATE)
WORDS = {FORMAT: _WORDS, CHECKPOINT: ("format", "schema", "version", "problem", "digest")}
"""The metadata that a file of each format must have."""


def named(path: Any) -> str:
    """A path as text."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise InvalidInput(
            "A model file must have a path", got=repr(path)[:60], advice='Pass a path such as "price.mercer".'
        ) from None


# -- writing -----------------------------------------------------------------------------------------------------------


def write(
    path: str, metadata: dict[str, str], tensors: dict[str, Array], prove: Callable[[str], None], form: str = FORMAT
) -> None:
    """Write a file of this format with this metadata and these tensors.

    `prove` is called with the path of the complete file before it gets its name, and raises if it cannot be read.
    """
    metadata = {"format": form, "schema": str(SCHEMA), **metadata, "digest": _ZEROS}
    # Wide numbers first, so that all tensors are aligned.
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, A in tensors.items():
        header[name] = {"dtype": CODES[A.dtype], "shape": list(A.shape), "data_offsets": [end, end + A.nbytes]}
        end += A.nbytes
    text = to_json(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST:
        raise InvalidInput(
            f"The header of a model file must be at most {show_bytes(LONGEST)}",
            got=show_bytes(len(text)),
            advice="Reduce the objects in the model, for instance with `n_centers`, or encode them as numbers.",
            option="Use --centers with --model ridge, logistic or poisson, or fewer rows.",
        )
    chunks = [len(text).to_bytes(8, "little"), text, *(_bytes_of(A) for A in tensors.values())]
    chunks[1] = _with_digest(text, _ZEROS, _digest(chunks))
    _write(path, chunks, prove)


def to_json(value: Any) -> str:
    """JSON on one line, in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _bytes_of(A: Array) -> Any:
    flat: Any = A.reshape(-1).view(np.uint8)
    return memoryview(flat) if A.size else b""


def _digest(chunks: list[Any]) -> str:
    sha = hashlib.sha256()
    for chunk in chunks:
        sha.update(chunk)
    return sha.hexdigest()


def _with_digest(text: bytes, old: str, new: str) -> bytes:
    """A header with another digest."""
    return text.replace((_DIGEST % old).encode(), (_DIGEST % new).encode())


def _write(path: str, chunks: list[Any], prove: Callable[[str], None]) -> None:
    """Write all bytes under this name, or leave an existing file unchanged."""
    try:
        with replacing(path) as beside:
            with open(beside, "wb") as file:
                _pour(file, chunks)
            prove(beside)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "A model file must be in a folder with free space and write permission",
            got=f"{path!r}: {getattr(error, 'strerror', None) or error}",
            advice="Choose another path, or free disk space. Nothing was changed.",
        ) from None


def _pour(file: IO[bytes], chunks: list[Any]) -> None:
    for chunk in chunks:
        file.write(chunk)


# -- reading -----------------------------------------------------------------------------------------------------------


def read(path: str, *, mapped: bool = False, form: str = FORMAT) -> tuple[dict[str, str], dict[str, Array]]:
    """Read the metadata and the tensors, with every check that does not depend on their meaning.

    Mapped tensors stay in the file and take no memory; changes to them are not written to the file.
    """
    try:
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, mapped, form)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "A model file must exist and be readable",
            got=f"{getattr(error, 'strerror', None) or error}",
            advice="Check the path and its permissions.",
        ) from None


def _read(file: IO[bytes], size: int, mapped: bool, form: str) -> tuple[dict[str, str], dict[str, Array]]:
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or not 2 <= length <= LONGEST or file.read(1) != b"{":
        raise _not_a_model("another kind of file" if prefix else "an empty file")
    if 8 + length > size:
        raise _cut_off(f"{size} bytes, but a header of {8 + length}")
    within(SPACIOUS * length, budget(), "The header of a model file", "Raise MERCER_MEMORY if you trust the file.")
    text = b"{" + file.read(length - 1)
    metadata, tensors = _header(text, form)
    total = max((stop for _, _, _, stop in tensors), default=0)
    if 8 + length + total > size:
        raise _cut_off(f"{size} bytes instead of {8 + length + total}")
    if 8 + length + total < size:
        raise _altered(f"{size} bytes instead of {8 + length + total}")
    needed = SPACIOUS * length + (0 if mapped else 2 * total)
    within(needed, budget(), "A model", "Raise MERCER_MEMORY, or load it on a machine with more memory.")
    arrays = {}
    sha = hashlib.sha256(prefix)
    sha.update(_with_digest(text, metadata["digest"], _ZEROS))
    for name, dtype, shape, end in tensors:
        nbytes = math.prod(shape) * dtype.itemsize
        A: Array
        if mapped and nbytes:
            A = np.memmap(file, dtype, "c", 8 + length + end - nbytes, shape).view(np.ndarray)
            sha.update(_bytes_of(A))
            arrays[name] = A
            continue
        A = np.empty(shape, dtype)
        if A.size:
            raw = _bytes_of(A)
            if file.readinto(raw) != A.nbytes:  # type: ignore[attr-defined]  # a file opened by name has it
                raise _cut_off("fewer bytes than its header declares")
            sha.update(raw)
        arrays[name] = A
    if sha.hexdigest() != metadata["digest"]:
        raise _altered("a digest that does not match its contents")
    return metadata, arrays


def _header(text: bytes, form: str) -> tuple[dict[str, str], list[tuple[str, np.dtype[Any], tuple[int, ...], int]]]:
    """The metadata, and name, dtype, shape and end of every tensor, in the order of the file."""
    try:
        header = read_json(text.rstrip(b" "))
    except InvalidInput as error:
        raise _altered(f"a header with {error.got}") from None
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != form:
        raise _not_a_model("another kind of safetensors file" if isinstance(metadata, dict) else "no metadata")
    schema = metadata.get("schema")
    if not isinstance(schema, str) or not re.fullmatch(r"[1-9]\d{0,8}", schema):
        raise _altered("no schema")
    if int(schema) > SCHEMA:
        version = str(metadata.get("version", "unknown"))[:20]
        raise InvalidInput(
            f"A model file must be of schema {SCHEMA} or older",
            got=f"schema {schema}, written by version {version}",
            advice="Install a newer version of mercer.",
        )
    complete = set(metadata) >= set(WORDS[form]) and all(isinstance(value, str) for value in metadata.values())
    if not complete or not re.fullmatch(r"[0-9a-f]{64}", metadata["digest"]):
        raise _altered("incomplete metadata")
    tensors, at = [], 0
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise _altered(f"an incomplete tensor {name[:60]!r}")
        code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(code, str) or code not in DTYPES or not _whole(shape) or not _whole(offsets, 2):
            raise _altered(f"a tensor {name[:60]!r} of an unknown kind")
        dtype, (start, end) = np.dtype(DTYPES[code]), offsets
        if len(shape) > 32 or start != at or end - at != math.prod(shape) * dtype.itemsize:
            raise _altered(f"a tensor {name[:60]!r} whose position does not fit its shape")
        tensors.append((name, dtype, tuple(shape), end))
        at = end
    return metadata, tensors


def _whole(values: Any, count: int | None = None) -> bool:
    """Whether this is a list of whole numbers ≥ 0, of this length if one is given."""
    is_list = isinstance(values, list) and (count is None or len(values) == count)
    return is_list and all(type(v) is int and 0 <= v < 2**62 for v in values)


def _not_a_model(got: str) -> InvalidInput:
    return InvalidInput("A model file must be one that model.save wrote", got=got, advice="Check the path.")


def _cut_off(got: str) -> InvalidInput:
    return InvalidInput("A model file must be complete", got=got, advice="Copy it again, or save the model again.")


def _altered(got: str) -> InvalidInput:
    return InvalidInput(
        "A model file must be as it was written", got=got, advice="Get it again from where it was saved."
    )
