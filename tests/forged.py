"""Model files changed on purpose, and a process with little memory and time that reads them.

`moved` changes one number, text, range or length of a file to an extreme and repairs the digest; `Reader` keeps a child
process that loads one file after the other, asks the model what the original answered, and reports. What ends the child
is reported, too, and another one goes on.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import warnings
from collections import Counter
from hashlib import sha256

import numpy as np

SECONDS = 20
"""A file that takes longer hangs."""
ROOM = 10**9
"""Bytes that the system gives the child beyond what it has; the budget of the library is a fifth of it."""
NUMBERS = (
    -1, 0, 1, 2, 7, 250, 10**4, 10**8, 2**31 - 1, 2**31, 10**12, 2**53, 2**63 - 1, 2**63, 2**200, -(2**63), 0.5, 5e-324,
    1e-308, 1e16, 1e308, -1e308, {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"range": [0, 3, 1]},
    {"range": [0, 3 * 10**6, 1]}, {"range": [0, 10**12, 1]}, {"range": [0, 2**70, 1]}, {"range": [5, 0, -1]}, None,
    True, "9", {"scalar": ["<i8", 2**62]}, {"scalar": ["<f8", {"float": "nan"}]},
    {"repeated": {"scalar": ["<i8", 9]}, "shape": [5]},
)  # fmt: skip
TEXTS = ("", "x", "x" * 5000, "\x00", "\ud800", "9" * 400, "nan", "auto", "Linear()", "../../etc/passwd", "é" * 99)


def parts_of(data):
    """The header and the tensors of a file."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, data, digest=True):
    """The bytes of a file with this header, and the digest that belongs to them."""
    if digest and isinstance(header, dict) and isinstance(header.get("__metadata__"), dict):
        header = {**header, "__metadata__": {**header["__metadata__"], "digest": "0" * 64}}
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    prefix = len(text).to_bytes(8, "little")
    if digest:
        text = text.replace(b"0" * 64, sha256(prefix + text + data).hexdigest().encode())
    return prefix + text + data


def changed(data, part, change):
    """A file whose parameters or fitted attributes are what `change` made of their tree."""
    header, tensors = parts_of(data)
    tree = json.loads(header["__metadata__"][part])
    change(tree)
    header["__metadata__"][part] = json.dumps(tree)
    return joined(header, tensors)


def places(node, found):
    """Every place in a tree of JSON."""
    if isinstance(node, (dict, list)):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            found.append((node, key))
            places(node[key], found)
    return found


def moved(data, rng):
    """A file with one to three of its numbers, texts, ranges or lengths at an extreme."""
    header, tensors = parts_of(data)
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            own = np.frombuffer(tensors[slice(*entry["data_offsets"])], _KINDS[entry["dtype"]])
            arrays[name] = own.reshape(entry["shape"]).copy()
    metadata = header["__metadata__"]
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.4 and arrays:
            name = str(rng.choice(sorted(arrays)))
            arrays[name] = _moved_array(arrays[name], rng)
            continue
        part = "fitted" if rng.random() < 0.8 else "parameters"
        tree = json.loads(metadata[part])
        _move_place(tree, rng)
        metadata[part] = json.dumps(tree)
    entries, chunks, end = {}, [], 0
    for name, A in arrays.items():
        entries[name] = {
            "dtype": _CODES[A.dtype.str],
            "shape": list(A.shape),
            "data_offsets": [end, end + A.nbytes],
        }
        chunks.append(A.tobytes())
        end += A.nbytes
    return joined({"__metadata__": metadata, **entries}, b"".join(chunks))


_KINDS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_CODES = {code: name for name, code in _KINDS.items()}


def _move_place(tree, rng):
    found = places(tree, [])
    if not found:
        return
    node, key = found[rng.integers(len(found))]
    value = node[key]
    match value:
        case bool() | None:
            node[key] = (True, False, None, 0, [], "x")[rng.integers(6)]
        case int() | float():
            near = (value + 1, value - 1, 2 * value, 1000 * value, -value)
            node[key] = [*NUMBERS, *near][rng.integers(len(NUMBERS) + len(near))]
        case str():
            numbers = list(re.finditer(r"\d+(\.\d+)?", value))
            if numbers and rng.random() < 0.7:  # a number in an expression
                at = numbers[rng.integers(len(numbers))]
                plain = [v for v in NUMBERS if isinstance(v, (int, float)) and not isinstance(v, bool)]
                node[key] = value[: at.start()] + str(plain[rng.integers(len(plain))]) + value[at.end() :]
            else:
                node[key] = TEXTS[rng.integers(len(TEXTS))]
        case list():
            choices = ([], value[:-1], value[1:], value + value, value * 1000, value[::-1], [value], None)
            node[key] = copy.deepcopy(choices[rng.integers(len(choices))])
        case dict():
            other, at = found[rng.integers(len(found))]
            node[key] = copy.deepcopy(other[at])


def _moved_array(A, rng):
    if A.dtype.str == "|u1" and A.ndim == 1 and rng.random() < 0.7:  # a list in JSON
        try:
            tree = [json.loads(A.tobytes())]
            _move_place(tree, rng)
            return np.frombuffer(json.dumps(tree[0]).encode(), np.uint8).copy()
        except ValueError:
            pass
    match rng.integers(8):
        case 0 | 1 | 2 if A.size:  # some or all of its numbers
            extremes = {
                "f": (0.0, -1.0, 1.0, 5e-324, 1e-308, 1e16, 1e300, -1e300, np.nan, np.inf, -np.inf),
                "i": (-1, 0, 1, A.size, len(A.ravel()) + 1, 100, 10**8, 2**31 - 1, 2**62, -(2**62)),
            }.get(A.dtype.kind, (0, 1, 2, 100, 255))
            info = np.iinfo(A.dtype) if A.dtype.kind in "iu" else None
            value = extremes[rng.integers(len(extremes))]
            with np.errstate(over="ignore"):
                made = A.dtype.type(value if info is None else min(max(value, info.min), info.max))
            flat = A.reshape(-1).copy()
            flat[... if rng.random() < 0.3 else rng.integers(A.size)] = made
            return flat.reshape(A.shape)
        case 3:
            return A[: max(0, len(A) - 1)] if A.ndim else A[None]
        case 4:
            return A[:0] if A.ndim else A
        case 5:
            return np.concatenate([A, A]) if A.ndim else A
        case 6:
            return A.reshape(-1) if A.ndim > 1 else A[:, None] if A.ndim else A
        case _:
            kinds = {"<f8": "<f4", "<i8": "<u8", "<f4": "<f8", "<i4": "<i8", "|u1": "|b1", "|b1": "|u1"}
            with np.errstate(over="ignore", invalid="ignore"):
                return A.astype(kinds.get(A.dtype.str, A.dtype.str))


# -- the reader --------------------------------------------------------------------------------------------------------


class Reader:
    """A child process that loads files, by way of a folder; `questions` are (rows, labels, methods) by name."""

    def __init__(self, folder, questions):
        self.folder = str(folder)
        with open(os.path.join(self.folder, "questions"), "wb") as file:
            pickle.dump(questions, file)
        self.path = os.path.join(self.folder, "forged")
        self.process = None
        self.counts, self.bad, self.largest = Counter(), [], 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def __call__(self, data, name):
        """What became of a file: "refused", "answered", or why it is neither."""
        with open(self.path, "wb") as file:
            file.write(data)
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__, self.folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "MERCER_MEMORY": str(ROOM // 5)},
                text=True,
            )
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.process.stdout.close()
            self.process = None
            outcome = {"what": f"ended by {signal.Signals(-code).name if code < 0 else code}", "bytes": 0}
        else:
            outcome = json.loads(line)
        self.largest = max(self.largest, outcome["bytes"])
        self.counts[outcome["what"].partition(":")[0]] += 1
        if outcome["what"].partition(":")[0] not in ("refused", "answered"):
            self.bad.append(f"{name}: {outcome['what']}")
        return outcome["what"]

    def __str__(self):
        total, counts = sum(self.counts.values()), dict(self.counts)
        return f"{total} files: {counts}; largest {self.largest / 1e6:.0f} MB"


def _resident(which):
    with open("/proc/self/status") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(which)), 0)


def _serve(folder):
    from mercer.errors import InvalidInput
    from mercer.files import load

    with open(os.path.join(folder, "questions"), "rb") as file:
        questions = pickle.load(file)
    linux = sys.platform == "linux"
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # LAPACK writes where it likes
    for line in sys.stdin:
        before = 0
        if linux:
            _, hard = resource.getrlimit(resource.RLIMIT_AS)  # of the shell, which only root may raise
            limit = _resident("VmSize") + ROOM
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
            before = _resident("VmRSS")
            with open("/proc/self/clear_refs", "w") as file:  # the high-water mark begins here
                file.write("5")
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            model = load(os.path.join(folder, "forged"))
        except InvalidInput as refusal:
            model, what = None, f"{'too much' if 'MemoryError' in str(refusal) else 'refused'}: {refusal}"
        except BaseException as error:
            model, what = None, f"error in load: {error!r}"
        if model is not None:
            what = _asked(model, *questions[json.loads(line)])
        signal.setitimer(signal.ITIMER_REAL, 0)
        used = max(0, _resident("VmHWM") - before) if linux else 0
        print(json.dumps({"what": what, "bytes": used}), file=answers, flush=True)


def _asked(model, rows, labels, methods):
    from mercer.errors import InvalidInput

    for name in methods:
        if not hasattr(model, name):
            continue
        try:
            if name == "inverse_transform":
                model.inverse_transform(model.transform(rows))
            elif name == "partial_fit":
                copy.deepcopy(model).partial_fit(rows, labels)
            elif name == "sample" and "n_samples" not in type(model).sample.__code__.co_varnames[1:2]:
                model.sample(rows, random_state=0)
            elif name == "sample":
                model.sample(5, random_state=0)
            else:
                getattr(model, name)(rows)
        except InvalidInput as error:
            if "MemoryError" in str(error):
                return f"too much: {name}: {error}"
        except Exception as error:
            # scikit-learn's own words for other columns
            if "feature names" not in str(error) and "features, but" not in str(error):
                return f"error in {name}: {error!r}"
    return "answered"


if __name__ == "__main__":
    _serve(sys.argv[1])
