"""A fitted model as Python code that reproduces it."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import mercer
from mercer.errors import InvalidInput
from mercer.kernels.algebra.expression import parse
from mercer.kernels.base import Similarity
from mercer.models.auto.model import AutoModel
from mercer.models.auto.response import LogScale
from mercer.models.base import given_rows
from mercer.models.bounded import BoundedRegressor
from mercer.models.calibrated import CalibratedClassifier

LONGEST = 100_000
"""The largest number of characters of a kernel that is written out."""


def source(model: Any, target: str = "the target", saved: str | None = None) -> str:
    """Python code that fits the model to its rows again, or loads its file if the rows alone do not determine it.

    `saved` is the path of that file, if the model was saved.

    The code makes `model` from X and y, and defines `predict` or `predict_proba` if those of `model` need a last step.

    >>> import numpy as np, mercer as mc
    >>> from mercer.report.source import source
    >>> X = np.arange(6.0)[:, None]
    >>> print(source(mc.KernelRidge(mc.Gaussian(2.0), alpha=0.5).fit(X, X[:, 0])))
    import mercer as mc
    <BLANKLINE>
    # X: the rows and columns it was fitted to; y: the target
    model = mc.KernelRidge(
        kernel=mc.parse('Gaussian(sigma=2.0)'),
        alpha=0.5,
    ).fit(X, y)
    """
    try:
        return _written(model, " ".join(target.split()))
    except InvalidInput as error:
        path = json.dumps("model.mercer" if saved is None else saved)
        first = f"after model.save({path})" if saved is None else "the saved file"
        return f"import mercer as mc\n\nmodel = mc.load({path})  # {first}, since {error.required}"


def _written(model: Any, target: str) -> str:
    imports, scale, more, inner = ["import mercer as mc"], "y", "", model
    if isinstance(model, AutoModel):
        inner = model.model_
        if given_rows(inner) != given_rows(model):
            raise _not_reproducible("the model was fitted to some of the rows only")
        if getattr(model, "class_weight", None) is not None:
            raise _not_reproducible("the rows were weighted")
        response, softmax = getattr(model, "response_", None), getattr(model, "softmax_", None)
        if isinstance(response, LogScale):
            imports.append("import numpy as np")
            scale = "np.log(y)"
            logs = f"np.minimum(model.predict(X), {response.most!r})"
            more = f"\n\ndef predict(X):\n    return {response.smear!r} * np.exp({logs})\n"
        elif getattr(model, "_least", -np.inf) == 0.0 and model.loss_ != "poisson":
            imports.append("import numpy as np")
            more = "\n\ndef predict(X):\n    return np.maximum(model.predict(X), 0.0)\n"
        elif softmax is not None:
            imports.append("from scipy.special import softmax")
            values = "regression_.predict(X)" if model.loss_ == "squared" else "predict_log_proba(X)"
            values = f"{softmax.scale!r} * model.{values}"
            if softmax.offsets.any():
                values = f"{values} + {softmax.offsets.tolist()!r}"
            values = f"softmax({values}, axis=1)"
            more = f"\n\ndef predict_proba(X):\n    return {values}\n"
    about = f"# X: the rows and columns it was fitted to; y: {target}"
    return "\n".join([*imports, "", about, f"model = {_call(inner)}.fit(X, {scale})", more]).rstrip()


def _call(model: BaseEstimator) -> str:
    """The estimator as a constructor call, with the kernel and the penalty that `fit` chose."""
    name = type(model).__name__
    if getattr(mercer, name, None) is not type(model):
        raise _not_reproducible(f"{name} is not a model of this library")
    parameters = model.get_params(deep=False)
    lines = []
    for key, field in inspect.signature(type(model)).parameters.items():
        value = parameters[key]
        if key == "kernel" or (key == "alpha" and isinstance(value, str)):
            value = getattr(model, f"{key}_", value)
        if isinstance(model, (BoundedRegressor, CalibratedClassifier)) and key == "model":
            value = model.model_  # with the parameters that it chose
            if isinstance(value, AutoModel):
                raise _not_reproducible("an automatic model would search again")
        if key in ("tune", "max_time", "progress", "checkpoint"):
            continue
        if value is not field.default and repr(value) != repr(field.default):
            lines.append(f"    {key}={_value(value)},\n")
    return f"mc.{name}(\n{''.join(lines)})" if lines else f"mc.{name}()"


def _value(value: Any) -> str:
    if isinstance(value, Similarity):
        text = repr(value)
        if len(text) > LONGEST or parse(text) != value:
            raise _not_reproducible("the kernel is too long to print, or holds Python functions")
        return f"mc.parse({text!r})"
    if isinstance(value, BaseEstimator):
        return _call(value).replace("\n", "\n    ")
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if not isinstance(value, (str, int, float, tuple, list, dict, type(None))):
        raise _not_reproducible(f"a {type(value).__name__} cannot be printed")
    return repr(value)


def _not_reproducible(reason: str) -> InvalidInput:
    return InvalidInput(reason, got="a model", advice="Load the model from its file instead.")
