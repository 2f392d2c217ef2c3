"""Model files: a fitted model as numbers and text, which any later session can read and nothing in it can run.

A file is in the safetensors format (a JSON header, then tensors), so that other tools see its arrays. The header's
metadata is the model in words: schema, library version, class, kernel expression, parameters, columns and their types,
classes, a summary of the fit, its state as JSON, and a SHA-256 digest of all bytes. Models keep what predictions need:
support vectors or centres, not the training rows.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.data.frames import dtypes, is_frame
from mercer.data.frames import library as library_of
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.files.container import STATE, named, read, to_json, write
from mercer.files.names import damaged, library
from mercer.files.reading import Decoder, read_json
from mercer.files.writing import Encoder
from mercer.memory import BeyondMemory, budget, within


class NotInFile(InvalidInput, AttributeError):
    """What a loaded model has no more, since only the training rows could tell."""


class Saved:
    """A model that can be written to a file."""

    def save(self, path: Any) -> None:
        """Write the fitted model to a file, which `mercer.load` reads: whole, or not at all.

        The file holds parameters and what predictions need, in safetensors with a JSON header, and no code: kernels are
        written as expressions, so that functions (mc.FromFunction, `after`, features and rules of your own) are
        refused. Predictions of the loaded model are the same bit for bit.

        Training rows are left out, unless they are the support vectors or centres that predictions need anyway. With
        them goes what only they can answer: leave-one-out, paths, the record of a search, and the jackknife+ intervals
        of `Ridge`, `RBFNetwork` and Nyström models. Models whose functions live on all rows (`KernelRidge`,
        `GaussianProcessRegressor` and `KernelGLM` by exact solvers, neighbours, local and density models) keep them
        with their targets, and so their intervals; `GLM` keeps its curvature and dispersion for the same end, and
        `ConformalRegressor` all that its own intervals ask for.

        Parameters
        ----------
        path : of the file, such as "price.mercer". The file is written beside it, loaded back and compared, and only
            then gets its name; if anything goes wrong a file of that name stays as it was.

        >>> import os, tempfile, mercer as mc
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "line.mercer")
        ...     mc.Ridge(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).save(path)
        ...     mc.load(path).predict([[10.0]]).round(6)
        array([21.])
        """
        if hasattr(self, "get_params") and not any(name.endswith("_") for name in vars(self)):
            raise InvalidInput(
                "A model must be fitted before it is saved",
                got=f"a {type(self).__name__} that is not fitted yet",
                advice="Call fit first.",
            )
        save(self, path)

    _added: ClassVar[dict[str, Any]] = {}
    """Attributes of a fitted model that files of older versions do not have, and what they are there."""

    def _require_sound(self) -> None:
        """Raise unless a fitted model that was loaded is what `fit` could have made, beyond kinds and dimensions."""

    def _example_rows(self, count: int) -> Any:
        """Rows that the fitted model can be asked about, where they are not of the kind that it keeps; else None."""
        return None

    _intervals_need: ClassVar[tuple[str, ...]] = ()
    """Attributes without which `predict_interval` cannot answer: files may leave them out."""

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` can answer; `in_file` asks for the model that is loaded from its file.

        That one may lack the training rows that intervals need.
        """
        missing = (*self.__dict__.get("_not_in_file", ()), *(self._training_only() if in_file else ()))
        return hasattr(self, "predict_interval") and not any(name in missing for name in self._intervals_need)

    def _training_only(self) -> tuple[str, ...]:
        """Names of what files leave out: a loaded model says so when it is asked for one."""
        return ()

    def _file_state(self) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
        """Parameters, fitted attributes, and the names of those that are left out."""
        own: Any = self
        state = dict(own.__getstate__())
        parameters = own.get_params(deep=False) if hasattr(own, "get_params") else {}
        gone = [name for name in state.pop("_not_in_file", ()) if name not in state]
        for name in parameters:
            state.pop(name, None)
        gone += [name for name in _OF_THE_FIT if state.get(name) is not None]
        gone += self._training_only()
        for name in (*gone, *_OF_THE_PROCESS):
            state.pop(name, None)
        for name in _OF_THE_FIT:
            parameters.pop(name, None)
        return parameters, state, tuple(set(gone))

    @classmethod
    def _from_file(cls, parameters: dict[str, Any], fitted: dict[str, Any], left_out: tuple[str, ...]) -> Any:
        """The model that has this state; parameters that a file lacks have their defaults."""
        known = {}
        if hasattr(cls, "get_params"):
            known = {p.name: p.default for p in inspect.signature(cls).parameters.values()}
        odd = set(parameters) - set(known)
        if odd:
            raise damaged(f"{min(odd)[:60]!r}, which a {cls.__name__} does not have")
        state = known | parameters | (cls._added if fitted else {}) | fitted
        if inspect.Parameter.empty in [state[name] for name in known]:
            raise damaged(f"a {cls.__name__} without its parameters")
        model = cls.__new__(cls)
        model.__dict__.update(state)
        gone = {*left_out, *model._training_only()} - set(state)
        if gone:
            model.__dict__["_not_in_file"] = tuple(sorted(gone))
        if fitted:
            model._require_sound()
        return model

    if not TYPE_CHECKING:  # else every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            if name in self.__dict__.get("_not_in_file", ()):
                # Code that asks whether there is a public attribute gets no for an answer, as for any other.
                kind = InvalidInput if name.startswith("_") else NotInFile
                raise kind(
                    f"{type(self).__name__} needs its training rows for this: they are not in a model file",
                    got="a loaded model",
                    advice="Fit again, and ask that model before it is saved.",
                )
            return object.__getattribute__(self, name)  # raises again what led here


# How a fit went, and who was told: the numbers of a search, a path or a descent.
_OF_THE_FIT = ("progress", "path_", "trace_", "tuning_", "_deadline", "_unstored")
# What belongs to the running process: callbacks and requests of scikit-learn.
_OF_THE_PROCESS = ("_skl_callbacks", "_parent_callback_ctx", "_metadata_request", "_sklearn_version", "_watch")


def described(X: Any) -> dict[str, Any]:
    """A data set in words: how many rows of what kind, and the types of its columns."""
    if is_frame(X):
        return {
            "rows": int(X.shape[0]),
            "kind": library_of(X),
            "dtypes": [str(dtype) for dtype in dtypes(X)],
        }
    if not hasattr(X, "__len__") and not hasattr(X, "shape"):
        X = np.asarray(X)
    kind = "sparse" if sp.issparse(X) else "array" if isinstance(X, np.ndarray) else "objects"
    dtype = getattr(X, "dtype", None)
    return {"rows": length(X), "kind": kind, "dtypes": None if dtype is None else [str(dtype)]}


def save(model: Any, path: Any) -> None:
    """Write a fitted model to a file, whole or not at all: see `model.save`."""
    encode = Encoder()
    parts = encode.model(model)
    metadata = {"version": library.__version__, "class": parts["class"], **_summary(model)}
    metadata |= {name: to_json(parts[name]) for name in STATE}
    write(named(path), metadata, encode.tensors, lambda written: _prove(written, metadata, encode.tensors))


def _prove(path: str, metadata: dict[str, str], tensors: dict[str, Any]) -> None:
    """Load a file that was just written, and write what was loaded again: it must be the same to the last bit.

    Where that would need more memory than there is now, the file is taken as it is: it was written by these rules.
    """
    try:
        with _refusing():
            found, arrays = read(path, mapped=os.name != "nt")  # which does not rename a file that is mapped
            decode, again = _decoder(found, arrays), Encoder()
            loaded = decode.model(_state(found))
            parts = again.model(loaded)
            same = {name: to_json(parts[name]) for name in STATE} == {name: metadata[name] for name in STATE}
            if not same or not _same_tensors(again.tensors, tensors):
                raise damaged("another model than the one that was saved")
            _ask(loaded, decode.data)
    except BeyondMemory:
        return
    except InvalidInput as error:
        raise InvalidInput(
            "A model that is saved must be the same when it is loaded",
            got=f"a {metadata['class']} that is not: {error.got}",
            advice="Nothing was changed. Report this as a defect, and keep the model by pickle until it is mended.",
        ) from None


def _same_tensors(some: dict[str, Any], others: dict[str, Any]) -> bool:
    return some.keys() == others.keys() and all(_same_bytes(A, others[name]) for name, A in some.items())


def _same_bytes(A: Any, B: Any) -> bool:
    if A.dtype != B.dtype or A.shape != B.shape:
        return False
    a, b = (part.reshape(-1).view(np.uint8) for part in (A, B))
    return all(np.array_equal(a[i : i + _BLOCK], b[i : i + _BLOCK]) for i in range(0, len(a), _BLOCK))


# What a model is asked about a few rows when it was loaded: parts of a file that do not fit together show themselves
# then, and not in the middle of someone's work.
_ASKED: dict[str, dict[str, Any]] = {
    "predict": {},
    "predict_proba": {},
    "decision_function": {},
    "transform": {},
    "score_samples": {},
    "__call__": {},
    "predict_interval": {"coverage": 0.5},
}
_ROWS = 7  # seldom a number of columns, of targets or of classes, which a broadcast could take them for
_BLOCK = 1 << 22  # bytes that are compared at once
_FEW = 500  # rows of a model at most for which its uncertainty is asked for, whose cost may grow with the cube


def _ask(model: Any, data: list[Any]) -> None:
    """Have a model answer for a few rows, of which `data` are those that it keeps.

    It may refuse a question in words, but not the first of them where rows of the right kind are known.
    """
    strict = True
    rows = model._example_rows(_ROWS)
    if rows is not None:
        pass
    elif data and length(data[0]):
        rows = take(data[0], np.arange(_ROWS) % length(data[0]))
    elif (width := vars(model).get("n_features_in_")) is not None:
        within(8 * _ROWS * width, budget(), "Rows of numbers", "Raise MERCER_MEMORY if you trust the file.")
        rows = np.zeros((_ROWS, width))
    else:  # linear in the members of sets, or of something else that it does not tell
        rows, strict = [frozenset()] * _ROWS, False
    few = all(length(X) <= _FEW for X in data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, more in _ASKED.items():
            if hasattr(model, name) and (few or not more):
                answer = None
                with nullcontext() if strict else suppress(InvalidInput):
                    answer = getattr(model, name)(rows, **more)
                if answer is not None:
                    _require_fit(model, name, answer)
                strict = False


def _require_fit(model: Any, name: str, answer: Any) -> None:
    """Check an answer against what it is an answer about: rows, their classes, or points that have pre-images."""
    if np.shape(answer)[:1] != (_ROWS,):
        raise damaged(f"an answer of shape {np.shape(answer)} about {_ROWS} rows")
    classes = vars(model).get("classes_")
    by_class = name in ("predict_proba", "decision_function") and np.ndim(answer) == 2
    if by_class and classes is not None and np.shape(answer)[1] != len(classes):
        raise damaged(f"values of {np.shape(answer)[1]} classes where there are {len(classes)}")
    if name == "transform" and hasattr(model, "inverse_transform"):
        with suppress(InvalidInput):
            model.inverse_transform(answer)


def _summary(model: Any) -> dict[str, str]:
    """The model in words: the kernel, the columns, the classes, and how the fit went."""
    own = vars(model)
    fitted_on = own.get("_fitted_on", {})
    names = own.get("feature_names_in_")
    columns = {
        "number": own.get("n_features_in_"),
        "names": None if names is None else [str(name) for name in names],
        "dtypes": fitted_on.get("dtypes"),
    }
    classes = own.get("classes_")
    training = {"rows": fitted_on.get("rows"), "kind": fitted_on.get("kind")}
    training |= {name: own[name + "_"] for name in ("solver", "status") if isinstance(own.get(name + "_"), str)}
    kernel = repr(own["kernel_"]) if "kernel_" in own else ""
    return {
        "kernel": kernel if len(kernel) <= 10_000 else f"{kernel[:100]}…",
        "columns": to_json(columns),
        "classes": to_json(None if classes is None else [str(label) for label in classes]),
        "training": to_json(training),
    }


def load(path: Any) -> Any:
    """The model in a file that `model.save` wrote: it predicts bit for bit what the saved one did.

    Nothing in the file is run, nothing is allocated before its sizes were compared with the file's own and with the
    memory budget, and no number is used as a position or a length before it was compared with its arrays. A file that
    is no model, cut off, altered, too large or of a newer schema is refused with `InvalidInput`. What only the training
    rows could answer (such as leave-one-out) is not there: fit again for it.

    >>> import os, tempfile, numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = mc.SVR(mc.Gaussian(1.0), epsilon=0.1).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "sine.mercer"))
    ...     again = mc.load(os.path.join(folder, "sine.mercer"))
    >>> again.kernel_, bool((again.predict(X) == model.predict(X)).all())
    (Gaussian(sigma=1.0), True)
    """
    path = named(path)
    where = repr(path)
    try:
        metadata, tensors = read(path)
        if metadata["version"] != library.__version__:
            where += f" (by version {metadata['version'][:20]}, and this is {library.__version__})"
        return _made(metadata, tensors)
    except InvalidInput as error:
        raise InvalidInput(error.required, got=f"{where}: {error.got}", advice=error.advice) from None


def _made(metadata: dict[str, str], tensors: dict[str, Any]) -> Any:
    """The model of a file, after it has answered for a few rows."""
    decode = _decoder(metadata, tensors)
    with _refusing():
        model = decode.model(_state(metadata))
        _ask(model, decode.data)
    return model


def _state(metadata: dict[str, str]) -> dict[str, Any]:
    return {"class": metadata["class"], **{name: read_json(metadata[name].encode()) for name in STATE}}


def _decoder(metadata: dict[str, str], tensors: dict[str, Any]) -> Decoder:
    return Decoder(tensors, sum(len(metadata[name]) for name in STATE))


@contextmanager
def _refusing() -> Iterator[None]:
    """Any error is one of the file: whatever values that do not fit together lead to."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        raise damaged(f"{type(error).__name__}: {str(error)[:200].rstrip('.')}") from None
