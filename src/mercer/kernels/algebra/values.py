"""Kernels are frozen values: equal when their expressions are equal, changed only by making another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Self, dataclass_transform, get_args

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, InvalidType
from mercer.kernels.algebra.parameters import Fixed, Rule, Unit, Units, checked, key, nonnegative, positive, real, show
from mercer.validation import check_choice

# Names of these parameters in other libraries, and what to write here.
_ELSEWHERE = {
    "gamma": "gamma = 1/(2σ²): use mc.Gaussian.from_gamma(gamma).",
    "length_scale": "The scale of every radial kernel is `sigma`.",
    "lengthscale": "The scale of every radial kernel is `sigma`.",
    "coef0": "The offset of a polynomial is `c`.",
}


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(positive, nonnegative, real))
class Value:
    """A frozen expression with parameters and children.

    Every subclass becomes a frozen dataclass by itself. Fields made by `positive`, `nonnegative` or `real` are
    parameters; fields that hold another `Value` (or a tuple of them) are its children, reached as `kernel__sigma` or
    `0__sigma`.
    """

    units: ClassVar[Units] = {}
    """The units of those parameters that have one, by name; `Unit` says what tuning learns from them."""
    _names: ClassVar[tuple[str, ...]] = ()
    _rules: ClassVar[tuple[tuple[str, Rule], ...]] = ()
    """The names of the fields, and the parameters among them with their rules."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls._names = tuple(field.name for field in fields)
        cls._rules = tuple((field.name, field.metadata["rule"]) for field in fields if "rule" in field.metadata)
        if "units" in cls._names:
            raise InvalidInput(
                f"`units` of {cls.__name__} must be a dictionary of units by parameter",
                got="a parameter",
                advice="Give the parameter another name.",
            )
        parameters = [name for name, _ in cls._rules]
        for name, unit in cls.units.items():
            if not parameters:
                raise InvalidInput(
                    f"`units` of {cls.__name__}, a class without parameters, must be empty",
                    got=repr(name),
                    advice="Make the field a parameter, as in sigma: float = mc.positive(1.0).",
                )
            check_choice(name, f"units of {cls.__name__}", parameters, advice="Name a parameter of the class.")
            check_choice(unit, f"units[{name!r}]", get_args(Unit))

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        for name in kwargs:
            if name not in cls._names:
                known = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
                raise InvalidType(
                    f"Parameters of {cls.__name__} are {', '.join(known) or 'none'}",
                    got=repr(name),
                    advice=_ELSEWHERE.get(name, "Check the name of the parameter."),
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        fixed = set()
        for name, rule in self._rules:
            value = getattr(self, name)
            if isinstance(value, Fixed):
                fixed.add(name)
                value = value.value
            object.__setattr__(self, name, checked(type(self).__name__, name, value, rule))
        object.__setattr__(self, "_fixed", frozenset(fixed))
        self.check()

    def check(self) -> None:
        """Raise if the fields do not make sense together. Called once, after the parameters were checked."""

    def _set(self, **fields: Any) -> None:
        """Store normalised fields; only for `check`."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        for known in ("_children", "_theta"):
            self.__dict__.pop(known, None)

    @property
    def fixed(self) -> frozenset[str]:
        """Names of the parameters, without those of children, that tuning leaves alone."""
        names: frozenset[str] = self.__dict__["_fixed"]
        return names

    @property
    def per_column(self) -> dict[str, NDArray[np.float64]]:
        """The parameters, without those of children, that hold one number per column."""
        values = {name: getattr(self, name) for name, rule in self._rules if rule.vector}
        return {name: value for name, value in values.items() if np.ndim(value)}

    @property
    def children(self) -> dict[str, Value]:
        """The sub-expressions by the name that reaches them."""
        return dict(self._children)

    @cached_property
    def _children(self) -> dict[str, Value]:
        children: dict[str, Value] = {}
        for name in self._names:
            value = getattr(self, name)
            if isinstance(value, Value):
                children[name] = value
            elif _holds_values(value):
                children |= {str(i): v for i, v in enumerate(value)}
        return children

    @property
    def nodes(self) -> list[Value]:
        """The expression and all expressions in it, each before its parts."""
        return [self, *(node for child in self.children.values() for node in child.nodes)]

    @property
    def leaves(self) -> list[Value]:
        """The leaves of the expression, left to right."""
        children = self.children
        return [leaf for child in children.values() for leaf in child.leaves] if children else [self]

    # -- parameters ----------------------------------------------------------------------------------------------

    def _wrapped(self, name: str) -> Any:
        value = getattr(self, name)
        return Fixed(value) if name in self.fixed else value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every field by name and, if `deep`, the fields of the children as `child__field`.

        >>> import mercer as mc
        >>> (2.0 * mc.Gaussian(1.5)).get_params()
        {'scale': 2.0, 'kernel': Gaussian(sigma=1.5), 'kernel__sigma': 1.5}
        """
        params = self._fields()
        if deep:
            for name, child in self.children.items():
                params.setdefault(name, child)
                params |= {f"{name}__{k}": v for k, v in child.get_params().items()}
        return params

    def replace(self, **changes: Any) -> Self:
        """The same expression with other parameters; `replace(kernel__sigma=2.0)` reaches into children.

        >>> import mercer as mc
        >>> (mc.Linear() + mc.Gaussian(1.0)).replace(**{"1__sigma": 3.0})
        Linear() + Gaussian(sigma=3.0)
        """
        fields, children = self._fields(), self.children
        direct = {name: value for name, value in changes.items() if name in fields}
        if direct:
            for name, value in direct.items():
                fixed = isinstance(fields[name], Fixed) and not isinstance(value, Fixed)
                fields[name] = Fixed(value) if fixed else value
            changed = type(self)(**fields)
            rest = {name: value for name, value in changes.items() if name not in direct}
            return changed.replace(**rest) if rest else changed
        for name, value in changes.items():
            head, _, rest_of_name = name.partition("__")
            if head not in children:
                raise InvalidInput(
                    f"{type(self).__name__} must have a parameter named {name!r}",
                    got=f"parameters {sorted(self.get_params())}",
                    advice="Use one of these names.",
                )
            children[head] = children[head].replace(**{rest_of_name: value}) if rest_of_name else value
        return self._with_children(children)

    def _fields(self) -> dict[str, Any]:
        return {name: self._wrapped(name) for name in self._names}

    def _with_children(self, children: dict[str, Value], **fields: Any) -> Self:
        fields = self._fields() | fields
        for name, value in fields.items():
            if isinstance(value, Value):
                fields[name] = children[name]
            elif _holds_values(value):
                fields[name] = tuple(children[str(i)] for i in range(len(value)))
        return type(self)(**fields)

    def _free(self) -> Iterator[tuple[str, Rule, NDArray[np.bool_]]]:
        for name, rule in self._rules:
            if rule.free and name not in self.fixed:
                mask = np.atleast_1d(np.asarray(getattr(self, name))) > 0
                if mask.any():
                    yield name, rule, mask

    @property
    def parameter_names(self) -> list[str]:
        """Names of the entries of `theta`, such as `kernel__sigma` or `sigma[2]`."""
        names = []
        for name, _, mask in self._free():
            scalar = np.ndim(getattr(self, name)) == 0
            names += [name] if scalar else [f"{name}[{i}]" for i in np.flatnonzero(mask)]
        return names + [f"{c}__{n}" for c, child in self.children.items() for n in child.parameter_names]

    @property
    def own_parameters(self) -> list[tuple[str, int | None]]:
        """Field and column of each free parameter of this node, without those of its children."""
        own = [name.rstrip("]").partition("[") for name in self.parameter_names if "__" not in name]
        return [(field, int(column) if column else None) for field, _, column in own]

    @property
    def theta(self) -> NDArray[np.float64]:
        """The free parameters in log space: those of this node first, then those of its children in order.

        >>> import mercer as mc
        >>> bool(np.allclose((2.0 * mc.Gaussian(1.5)).theta, np.log([2.0, 1.5])))
        True
        """
        return self._theta.copy()

    @cached_property
    def _theta(self) -> NDArray[np.float64]:
        logarithms = [np.log(np.atleast_1d(getattr(self, name))[mask]) for name, _, mask in self._free()]
        return np.concatenate([*logarithms, *(c._theta for c in self._children.values()), np.empty(0)])

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Lower and upper bounds of `theta`, shape (p, 2)."""
        intervals = [np.tile(np.log(rule.bounds), (int(mask.sum()), 1)) for _, rule, mask in self._free()]
        return np.concatenate([*intervals, *(c.bounds for c in self.children.values()), np.empty((0, 2))])

    def with_theta(self, theta: Any) -> Self:
        """The expression whose free parameters are exp(theta)."""
        try:
            theta = np.array(theta).astype(np.float64, casting="same_kind")
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "`theta` must hold real numbers",
                got=str(error),
                advice=f"Pass one number each for {self.parameter_names}.",
            ) from None
        if theta.shape != self._theta.shape:
            raise InvalidInput(
                f"`theta` must have shape {self._theta.shape}",
                got=f"shape {theta.shape}",
                advice=f"Pass one number each for {self.parameter_names}.",
            )
        fields: dict[str, Any] = {}
        position = 0
        for name, _, mask in self._free():
            size = int(mask.sum())
            values = np.array(np.atleast_1d(getattr(self, name)), dtype=np.float64)
            values[mask] = np.exp(theta[position : position + size])
            fields[name] = float(values[0]) if np.ndim(getattr(self, name)) == 0 else values
            position += size
        children = {}
        for name, child in self._children.items():
            size = len(child._theta)
            children[name] = child.with_theta(theta[position : position + size])
            position += size
        return self._with_children(children, **fields)

    # -- values --------------------------------------------------------------------------------------------------

    def _key(self) -> Any:
        fields = tuple(key(getattr(self, name)) for name in self._names)
        return type(self), fields, self.fixed

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Value) and type(self) is type(other) and bool(self._key() == other._key())

    def __hash__(self) -> int:
        if "_hash" not in self.__dict__:
            object.__setattr__(self, "_hash", hash(self._key()))
        return int(self.__dict__["_hash"])

    def __repr__(self) -> str:
        fields = [f"{name}={show(value)}" for name, value in self._fields().items()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self._fields())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self


def _rebuilt(cls: type[Any], fields: dict[str, Any]) -> Any:
    return cls(**fields)


def _holds_values(field: Any) -> bool:
    return isinstance(field, tuple) and len(field) > 0 and all(isinstance(v, Value) for v in field)
