"""Parameters of kernels: checked on construction, free ones searched in log space.

A field made by `positive` or `nonnegative` is a parameter. It is free (part of `theta`) unless its value is wrapped
in `Fixed`; zeros and integers are never free.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import missing_entries
from mercer.errors import InvalidInput

Unit = Literal["length", "taxicab", "period", "factor", "product"]
"""A quantity of the data that a parameter is compared with: tuning takes its bounds from it, and mostly its start.

A period starts at its present value, and so does a factor inside an exponential, which is not a variance; its bounds
are a hundredth and a hundred times this value.

length, taxicab : distances ‖x − z‖ or ‖x − z‖₁ between points; the parameter is a width.
period : distances, too; the parameter is the distance after which a function repeats.
factor : the variance of the targets; the parameter multiplies the kernel.
product : inner products ⟨x, z⟩, to which the parameter is added.
"""
Units = Mapping[str, Unit]
"""The units of parameters by name."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fixed:
    """A parameter value that tuning leaves alone.

    >>> import mercer as mc
    >>> k = 2.0 * mc.Gaussian(mc.Fixed(1.5))
    >>> k.theta.size, k
    (1, 2.0 * Gaussian(sigma=Fixed(1.5)))
    """

    value: Any

    def __post_init__(self) -> None:
        if isinstance(self.value, Fixed):
            object.__setattr__(self, "value", self.value.value)

    def __repr__(self) -> str:
        return f"Fixed({show(self.value)})"


class Rule(NamedTuple):
    """The values that a parameter may have, and whether a search may change them."""

    lowest: float
    strict: bool
    vector: bool
    free: bool
    bounds: tuple[float, float]


def positive(
    default: Any = dataclasses.MISSING,
    *,
    vector: bool = False,
    free: bool = True,
    bounds: tuple[float, float] = (1e-5, 1e5),
) -> Any:
    """A parameter > 0 of a kernel class: a number or, with `vector`, one number per column. Tuned if `free`.

    >>> import mercer as mc
    >>> class Cauchy(mc.Kernel):
    ...     sigma: float = mc.positive(1.0)
    ...     def tile(self, block, out):
    ...         np.divide(1.0, 1.0 + block.sqdist() / self.sigma**2, out=out)
    >>> Cauchy(2.0).theta.round(4), Cauchy(2.0)([[0.0]], [[2.0]])
    (array([0.6931]), array([[0.5]]))
    """
    return dataclasses.field(default=default, metadata={"rule": Rule(0.0, True, vector, free, bounds)})


def nonnegative(
    default: Any = dataclasses.MISSING,
    *,
    vector: bool = False,
    free: bool = True,
    bounds: tuple[float, float] = (1e-5, 1e5),
) -> Any:
    """A parameter ≥ 0 of a kernel class: its zeros are not free (their logarithm does not exist).

    >>> import mercer as mc
    >>> mc.Polynomial(2, c=0.0).theta.size, mc.Polynomial(2, c=1.0).theta.size       # c is such a parameter
    (0, 1)
    """
    return dataclasses.field(default=default, metadata={"rule": Rule(0.0, False, vector, free, bounds)})


def real(default: Any = dataclasses.MISSING) -> Any:
    """A real parameter of any sign of a kernel class; it is never free.

    >>> import mercer as mc
    >>> mc.Tanh(2.0, offset=-1.0).parameter_names                                    # offset is such a parameter
    ['scale']
    """
    return dataclasses.field(default=default, metadata={"rule": Rule(-np.inf, True, False, False, (0.0, 0.0))})


def checked(owner: str, name: str, value: Any, rule: Rule) -> float | NDArray[np.float64]:
    """The value as a float or a read-only float64 vector, or an error that says what it must be."""
    must = "" if rule.lowest == -np.inf else (" > 0" if rule.strict else " ≥ 0")
    kind = "a finite number or one number per column" if rule.vector else "a finite number"
    required = f"`{name}` of {owner} must be {kind}{must}"
    try:
        array = np.array(value)
        if array.dtype.kind not in "iuf":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=repr(value), advice="Pass a float.") from None
    if array.ndim > (1 if rule.vector else 0) or array.size == 0:
        advice = f"To evaluate it on data, call the kernel: {owner}(...)(X)." if array.ndim > 1 else "Pass a number."
        raise InvalidInput(required, got=f"an array of shape {array.shape}", advice=advice)
    bad = ~np.isfinite(array) | (array <= rule.lowest if rule.strict else array < rule.lowest)
    if bad.any():
        raise InvalidInput(required, got=show(value), advice=f"Choose a value{must or ' that is finite'}.")
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


def show(value: Any) -> str:
    """A parameter as Python source that rebuilds it, if that is possible."""
    if isinstance(value, np.ndarray):
        if value.size > 10_000:
            return f"<{'×'.join(map(str, value.shape))} array>"
        return repr(value.tolist())
    if isinstance(value, (np.floating, np.integer)):
        return repr(value.item())
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return repr(value)


def key(value: Any) -> Any:
    """A hashable stand-in for a parameter value: equal values, equal keys."""
    if isinstance(value, np.ndarray):
        return Entries(value)
    if isinstance(value, (list, tuple)):
        return tuple(key(v) for v in value)
    try:
        hash(value)
    except TypeError:  # a function of a user's class without a hash: equal to itself only
        return Same(value)
    return value


class Entries:
    """A stand-in for an array, equal to those of arrays with the same shape, type and entries.

    Its hash needs a few entries only, because a matrix may be large; −0.0 equals 0.0, and NaN equals NaN.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __hash__(self) -> int:
        some = self.array.reshape(-1)[:: max(1, self.array.size // 64)]
        return hash((self.array.shape, self.array.dtype.str, (some + 0).tobytes()))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        a, b = self.array, other.array
        if a is b or a.shape != b.shape or a.dtype != b.dtype:
            return a is b
        same = a == b
        return bool(same.all() or (same | (missing_entries(a) & missing_entries(b))).all())


class Same:
    """A stand-in for an object without a hash, equal only to stand-ins for the same object."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.value is self.value
