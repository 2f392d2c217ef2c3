"""Model files: a fitted model as numbers and text, without any code that could run when it is loaded.

A file is in the safetensors format (a JSON header, then tensors), so that other tools can read its arrays. The metadata
of the header describe the model: schema, library version, class, kernel expression, parameters, columns and their
types, classes, a summary of the fit, its state as JSON, and a SHA-256 digest of all bytes. Files keep what predictions
need: support vectors or centres, not the training rows.
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
from mercer.ours import require_replaceable


class NotInFile(InvalidInput, AttributeError):
    """An attribute that a loaded model lacks, because it needs the training rows."""


class Saved:
    """A model that can be written to a file."""

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the fitted model to a file for `mercer.load`, completely or not at all.

        The file holds the parameters and what predictions need, in safetensors with a JSON header, and no code: kernels
        are written as expressions, and functions (mc.FromFunction, `after`, features and rules of your own) are
        refused. The loaded model predicts bit for bit the same.

        Training rows are omitted, unless they are the support vectors or centres that predictions need. Results that
        need them are omitted, too: leave-one-out, paths, the record of a search, and the jackknife+ intervals of
        `Ridge`, `RBFNetwork` and Nyström models. Models whose functions are sums over all rows (`KernelRidge`,
        `GaussianProcessRegressor` and `KernelGLM` by exact solvers, neighbours, local and density models) keep the rows
        with their targets, and therefore their intervals; `GLM` keeps its curvature and dispersion for its intervals,
        and `ConformalRegressor` everything that its intervals need.

        Parameters
        ----------
        path : str or Path
            The path of the file, such as "price.mercer". The file is written under another name, loaded back and
            compared, and only then renamed; if anything goes wrong, an existing file is not changed.
        overwrite : bool
            Whether any file may be replaced. By default only a model or report of Mercer, or an empty file, is.

        Examples
        --------
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
                got=f"{type(self).__name__}, which is not fitted",
                advice="Call fit first.",
            )
        save(self, path, overwrite=overwrite)

    _added: ClassVar[dict[str, Any]] = {}
    """Attributes of a fitted model that files of older versions lack, with the values for such files.

    A subclass names its own; those of its parents are kept.
    """

    def _require_sound(self) -> None:
        """Refuse a loaded model that `fit` could not have made, although its kinds and dimensions are right."""

    def _example_rows(self, count: int) -> Any:
        """Rows for a trial prediction, if they differ in kind from the rows that the model keeps; else None."""
        return None

    _intervals_need: ClassVar[tuple[str, ...]] = ()
    """Attributes that `predict_interval` needs, and that files may omit."""

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` works; with `in_file`, whether it will work after loading the model from a file.

        A loaded model may lack the training rows that intervals need.
        """
        missing = (*self.__dict__.get("_not_in_file", ()), *(self._training_only() if in_file else ()))
        return hasattr(self, "predict_interval") and not any(name in missing for name in self._intervals_need)

    def _training_only(self) -> tuple[str, ...]:
        """Names of attributes that files omit; a loaded model explains this when one of them is read."""
        return ()

    def _file_state(self) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
        """Parameters, fitted attributes, and the names of omitted attributes."""
        model: Any = self
        state = dict(model.__getstate__())
        parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
        omitted = [name for name in state.pop("_not_in_file", ()) if name not in state]
        for name in parameters:
            state.pop(name, None)
        omitted += [name for name in _OF_THE_FIT if state.get(name) is not None]
        omitted += self._training_only()
        for name in (*omitted, *_OF_THE_PROCESS):
            state.pop(name, None)
        for name in _OF_THE_FIT:
            parameters.pop(name, None)
        return parameters, state, tuple(set(omitted))

    @classmethod
    def _from_file(cls, parameters: dict[str, Any], fitted: dict[str, Any], left_out: tuple[str, ...]) -> Any:
        """The model with this state; parameters that the file lacks have their defaults."""
        defaults = {}
        if hasattr(cls, "get_params"):
            defaults = {p.name: p.default for p in inspect.signature(cls).parameters.values()}
        unknown = set(parameters) - set(defaults)
        if unknown:
            raise damaged(f"{min(unknown)[:60]!r}, which a {cls.__name__} does not have")
        added: dict[str, Any] = {}
        for base in reversed(cls.__mro__ if fitted else ()):
            added |= vars(base).get("_added", {})
        state = defaults | parameters | added | fitted
        if any(state[name] is inspect.Parameter.empty for name in defaults):
            raise damaged(f"a {cls.__name__} without its parameters")
        model = cls.__new__(cls)
        model.__dict__.update(state)
        omitted = {*left_out, *model._training_only()} - set(state)
        if omitted:
            model.__dict__["_not_in_file"] = tuple(sorted(omitted))
        if fitted:
            model._require_sound()
        return model

    if not TYPE_CHECKING:  # else every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            if name in self.__dict__.get("_not_in_file", ()):
                # `hasattr` of a public attribute must answer no, and so the error is an AttributeError, too.
                kind = InvalidInput if name.startswith("_") else NotInFile
                raise kind(
                    f"{type(self).__name__} needs its training rows here, which are not in a model file and not kept "
                    "by a fit in batches",
                    got="a model without them",
                    advice="Fit the model again, to an array, and use this attribute before saving.",
                )
            return object.__getattribute__(self, name)  # raises the original AttributeError again


# The course of a fit and its listeners: the record of a search, a path or a descent.
_OF_THE_FIT = ("progress", "path_", "left_out_", "trace_", "tuning_", "_deadline", "_unstored")
# State of the running process: callbacks and metadata requests of scikit-learn.
_OF_THE_PROCESS = ("_skl_callbacks", "_parent_callback_ctx", "_metadata_request", "_sklearn_version", "_watch")


def described(X: Any) -> dict[str, Any]:
    """A summary of a data set: the number of rows, its kind, and the types of its columns."""
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


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write a fitted model to a file, completely or not at all: see `model.save`."""
    require_replaceable(named(path), overwrite=overwrite)
    encode = Encoder()
    parts = encode.model(model)
    metadata = {"version": library.__version__, "class": parts["class"], **_summary(model)}
    metadata |= {name: to_json(parts[name]) for name in STATE}
    write(named(path), metadata, encode.tensors, lambda written: _prove(written, metadata, encode.tensors))


def _prove(path: str, metadata: dict[str, str], tensors: dict[str, Any]) -> None:
    """Load a file that was just written, and encode the loaded model again: it must be the same to the last bit.

    If that would need more memory than is free, the file is accepted without this check.
    """
    try:
        with _refusing():
            header, arrays = read(path, mapped=os.name != "nt")  # Windows cannot rename a mapped file
            decode, again = _decoder(header, arrays), Encoder()
            loaded = decode.model(_state(header))
            parts = again.model(loaded)
            same = {name: to_json(parts[name]) for name in STATE} == {name: metadata[name] for name in STATE}
            if not same or not _same_tensors(again.tensors, tensors):
                raise damaged("another model than the one that was saved")
            _try_methods(loaded, decode.data)
    except BeyondMemory:
        return
    except InvalidInput as error:
        raise InvalidInput(
            "A model that is saved must be the same when it is loaded",
            got=f"a {metadata['class']} that is not: {error.got}",
            advice="Report this as a defect, and keep the model by pickle until it is fixed. Nothing was changed.",
        ) from None


def _same_tensors(some: dict[str, Any], others: dict[str, Any]) -> bool:
    return some.keys() == others.keys() and all(_same_bytes(A, others[name]) for name, A in some.items())


def _same_bytes(A: Any, B: Any) -> bool:
    if A.dtype != B.dtype or A.shape != B.shape:
        return False
    a, b = (part.reshape(-1).view(np.uint8) for part in (A, B))
    return all(np.array_equal(a[i : i + _BLOCK], b[i : i + _BLOCK]) for i in range(0, len(a), _BLOCK))


# Methods that a loaded model must be able to answer for a few rows, so that parts of a file that do not fit together
# are noticed at once.
_TRIALS: dict[str, dict[str, Any]] = {
    "predict": {},
    "predict_proba": {},
    "decision_function": {},
    "transform": {},
    "score_samples": {},
    "__call__": {},
    "predict_interval": {"coverage": 0.5},
}
_ROWS = 7  # rarely a number of columns, targets or classes, with which rows could be confused in a broadcast
_BLOCK = 1 << 22  # bytes that are compared at a time
_FEW = 500  # the largest number of kept rows with which intervals are tried, whose cost may grow with the cube


def _try_methods(model: Any, data: list[Any]) -> None:
    """Let a model answer for a few rows; `data` are the data sets that it keeps.

    It may refuse a method with an error of its own, except the first method if rows of the right kind are known.
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
    else:  # linear in the members of sets, or of other objects that are not recorded
        rows, strict = [frozenset()] * _ROWS, False
    few = all(length(X) <= _FEW for X in data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, arguments in _TRIALS.items():
            if hasattr(model, name) and (few or not arguments):
                answer = None
                with nullcontext() if strict else suppress(InvalidInput):
                    answer = getattr(model, name)(rows, **arguments)
                if answer is not None:
                    _require_fit(model, name, answer)
                strict = False


def _require_fit(model: Any, name: str, answer: Any) -> None:
    """Check that an answer fits the rows and the classes, and that `inverse_transform` accepts it."""
    if np.shape(answer)[:1] != (_ROWS,):
        raise damaged(f"an answer of shape {np.shape(answer)} for {_ROWS} rows")
    classes = vars(model).get("classes_")
    by_class = name in ("predict_proba", "decision_function") and np.ndim(answer) == 2
    if by_class and classes is not None and np.shape(answer)[1] != len(classes):
        raise damaged(f"values of {np.shape(answer)[1]} classes where there are {len(classes)}")
    if name == "transform" and hasattr(model, "inverse_transform"):
        with suppress(InvalidInput):
            model.inverse_transform(answer)


def _summary(model: Any) -> dict[str, str]:
    """A summary of the model: the kernel, the columns, the classes, and the training."""
    attributes = vars(model)
    fitted_on = attributes.get("_fitted_on", {})
    names = attributes.get("feature_names_in_")
    columns = {
        "number": attributes.get("n_features_in_"),
        "names": None if names is None else [str(name) for name in names],
        "dtypes": fitted_on.get("dtypes"),
    }
    classes = attributes.get("classes_")
    training = {"rows": fitted_on.get("rows"), "kind": fitted_on.get("kind")}
    texts = {name: attributes.get(f"{name}_") for name in ("solver", "status")}
    training |= {name: text for name, text in texts.items() if isinstance(text, str)}
    kernel = repr(attributes["kernel_"]) if "kernel_" in attributes else ""
    return {
        "kernel": kernel if len(kernel) <= 10_000 else f"{kernel[:100]}…",
        "columns": to_json(columns),
        "classes": to_json(None if classes is None else [str(label) for label in classes]),
        "training": to_json(training),
    }


def load(path: Any) -> Any:
    """Load a model from a file that `model.save` wrote; it predicts bit for bit what the saved model did.

    No code in the file is run. Nothing is allocated before its size is compared with the size of the file and with the
    memory budget, and no number is used as a position or a length before it is compared with the arrays. A file that is
    not a model, cut off, altered, too large or of a newer schema is refused with `InvalidInput`. Results that need the
    training rows (such as leave-one-out) are not available: fit again for them.

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
            where += f" (written by version {metadata['version'][:20]}, read by {library.__version__})"
        return _model_from(metadata, tensors)
    except InvalidInput as error:
        got = f"{where}: {error.got}"
        raise InvalidInput(error.required, got=got, advice=error.advice, excerpt=error.excerpt) from None


def _model_from(metadata: dict[str, str], tensors: dict[str, Any]) -> Any:
    """The model in a file, after a trial of its methods on a few rows."""
    decode = _decoder(metadata, tensors)
    with _refusing():
        model = decode.model(_state(metadata))
        _try_methods(model, decode.data)
    return model


def _state(metadata: dict[str, str]) -> dict[str, Any]:
    return {"class": metadata["class"], **{name: read_json(metadata[name].encode()) for name in STATE}}


def _decoder(metadata: dict[str, str], tensors: dict[str, Any]) -> Decoder:
    return Decoder(tensors, sum(len(metadata[name]) for name in STATE))


@contextmanager
def _refusing() -> Iterator[None]:
    """Report any error as a damaged file: values that do not fit together may cause errors of every kind."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        raise damaged(f"{type(error).__name__}: {str(error)[:200].rstrip('.')}") from None
