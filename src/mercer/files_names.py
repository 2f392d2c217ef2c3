"""What files may name: the kinds of their tensors, the small classes of the library, and its public names."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np

from mercer.errors import InvalidInput

library: Any = import_module("mercer")

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""Kinds of tensors, by their names in the format."""
CODES = {np.dtype(code): name for name, code in DTYPES.items()}

# Small classes that a fitted model may hold, by where they live. Those with a colon are made again by calling them with
# these attributes; dataclasses with their fields; all others get their attributes back.
_SMALL = {
    "mercer.kernels.points": "Points:raw,index,among",
    "mercer.kernels.parameters": "Fixed",
    "mercer.rkhs.expansion": "Expansion:kernel,points,coef,tail,pruning Pruning",
    "mercer.rkhs.tail": "Monomials Tail",
    "mercer.features.combine": "PowerMap ScaledMap StackedMap TensorMap",
    "mercer.features.elementary": "ConstantMap FunctionMap IdentityMap LinearMap",
    "mercer.features.fourier": "FourierMap",
    "mercer.features.monomials": "MonomialMap",
    "mercer.features.subsets": "IncidenceMap SubsetMap",
    "mercer.features.taylor": "TaylorMap",
    "mercer.features.views": "ColumnsMap ComposedMap",
    "mercer.problems.families": "Bernoulli Gamma Gaussian InverseGaussian NegativeBinomial Poisson Tweedie",
    "mercer.problems.links": "Cauchit Cloglog Identity Inverse Log LogRatio Logit Power Probit Sqrt",
    "mercer.problems.spaces": "FeatureSpace:X,tail,mean",
    "mercer.solvers.cholesky": "CholeskyFactor",
    "mercer.solvers.curvature": "FeatureSystem",
    "mercer.solvers.discriminant_axes": "Axes Whitened",
    "mercer.solvers.perceptron": "Learnt OnlinePerceptron PrimalPerceptron",
    "mercer.solvers.perceptron_budget": "Basis Forgetron Projectron Queue",
    "mercer.models.auto_model": "Candidate Choices Decision",
    "mercer.models.base": "Rows",
    "mercer.models.bayesian": "Belief",
    "mercer.models.conditional_widths": "Choice",
    "mercer.models.margins": "Sides",
    "mercer.models.parzen_columns": "Table",
    "mercer.models.parzen_widths": "Widths",
    "mercer.models.probabilities": "Sigmoid",
    "mercer.models.rbf_interpolator": "LocalFits:kernel,X,y,ridge,k,degree",
    "mercer.models.ridge": "Design",
}


def _small() -> dict[str, tuple[str, tuple[str, ...] | None]]:
    """Module and attributes of every small class, by its name in files."""
    found: dict[str, tuple[str, tuple[str, ...] | None]] = {}
    for module, names in _SMALL.items():
        for entry in names.split():
            name, _, fields = entry.partition(":")
            found[f"{module.rpartition('.')[2]}.{name}"] = module, tuple(fields.split(",")) if fields else None
    return found


SMALL = _small()


def holds_code(where: str, what: str, advice: str) -> InvalidInput:
    return InvalidInput(f"A model file holds values and no code, but `{where}` needs some", got=what, advice=advice)


def damaged(why: str) -> InvalidInput:
    return InvalidInput(
        "A model file must hold values that fit together and that this version knows",
        got=why,
        advice="Save the model again, or install the version that saved it.",
    )


def home(name: Any) -> str:
    """The module that a public name of the library lives in, or nothing."""
    return library._NAMES.get(name, "") if isinstance(name, str) else ""


def public(name: Any, *kinds: str) -> Any:
    """The public name of these parts of the library (such as "mercer.kernels")."""
    if not home(name).startswith(kinds):
        raise damaged(f"the unknown name {str(name)[:60]!r}")
    return getattr(library, name)


def is_small(kind: type) -> bool:
    return label(kind) in SMALL and SMALL[label(kind)][0] == kind.__module__


def label(kind: type) -> str:
    """The name of a small class in files, such as "tail.Monomials"."""
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


def dtype_from(code: Any) -> np.dtype[Any] | None:
    """The dtype of a code that files may hold, or None."""
    if not isinstance(code, str) or len(code) > 16:
        return None
    known = code in DTYPES.values()
    if not known and not re.fullmatch(
        r"<c8|<c16|<U[1-9]\d{0,6}|\|S[1-9]\d{0,6}|<[mM]8\[(Y|M|W|D|h|m|s|ms|us|ns)\]", code
    ):
        return None
    return np.dtype(code)
