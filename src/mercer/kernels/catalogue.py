"""All public kernels and weights as a list of plain values: formula, use, parameters, and an example of each.

Everything is read from the classes: their fields, tags, space and proof, and the record `about`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from mercer.kernels.algebra.expression import parse
from mercer.kernels.algebra.parameters import Rule
from mercer.kernels.base import Kind, Similarity
from mercer.kernels.vectors.dot import Linear
from mercer.kernels.vocabulary import vocabulary


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One argument of a kernel.

    Attributes
    ----------
    name, symbol : str
        In Python, and in the formula.
    domain : str
        The values that it may have.
    required : bool
        Whether it has no default.
    default : float, int, tuple or None
        Its default, None if it is required.
    free : bool
        Whether tuning moves it, unless it is `Fixed`.
    """

    name: str
    symbol: str
    domain: str
    required: bool
    default: float | int | tuple[()] | None
    free: bool


@dataclasses.dataclass(frozen=True)
class Entry:
    """One kernel, weight or rule of the algebra.

    Attributes
    ----------
    name : str
        The public name.
    kind : Kind
        "kernel", "rule" (makes kernels of kernels, or weights of weights), "weight" (for smoothing only), "conditional"
        (positive definite only beside a polynomial tail) or "indefinite" (not positive semidefinite).
    formula, purpose : str
        One line each.
    space : str
        The objects it takes: "vectors", "categories", "sets", "strings", "table", "indices", or "any".
    tags : tuple of str
        Properties of the example, known without evaluating it; empty for rules, where they depend on the parts.
    parameters : tuple of Parameter
        In the order of the constructor.
    example : str
        An expression; text for `mc.parse` if `textual`, else Python.
    textual : bool
        Whether it can be written as text, which holds no Python function.
    proven : bool
        Whether the example is proven to be a kernel, on points of any dimension.
    proof : str
        The rule or theorem that makes it a kernel, or why it is not proven.
    """

    name: str
    kind: Kind
    formula: str
    purpose: str
    space: str
    tags: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    example: str
    textual: bool
    proven: bool
    proof: str


def catalogue() -> list[Entry]:
    """All public kernels, rules of the algebra, weights, and conditionally positive definite functions.

    Kernels that were registered with `mc.register` come last. `dataclasses.asdict` makes each entry plain values,
    ready for JSON.

    >>> from mercer.kernels.catalogue import catalogue
    >>> for entry in catalogue()[:5]:
    ...     print(f"{entry.name:10} {entry.formula:42} {entry.example}")
    Linear     xᵀz                                        Linear()
    Polynomial (xᵀz + c)ᵖ                                 Polynomial(degree=2, c=1.0)
    Bilinear   xᵀA z                                      Bilinear([[2.0, 1.0], [1.0, 2.0]])
    Tanh       tanh(a·xᵀz + b)                            Tanh(scale=1.0, offset=-1.0)
    ArcCosine  ‖x‖ⁿ‖z‖ⁿ Jₙ(θ)/π, θ the angle of x and z   ArcCosine(order=1)
    """
    return [_entry(cls) for cls in vocabulary().values()]


def _entry(cls: type[Similarity]) -> Entry:
    about, rule = cls.about, cls.kind == "rule"
    kernel = _with_function(cls) if about.in_python else parse(about.example)
    proof = kernel.proof()
    unproven = next(iter(proof.unproven), None)
    return Entry(
        name=cls.__name__,
        kind=cls.kind,
        formula=about.formula,
        purpose=about.purpose,
        space=str(cls.space) if isinstance(cls.space, str) else "any",  # a rule has the space of its parts
        tags=() if rule else _tags(kernel),
        parameters=_parameters(cls),
        example=about.example,
        textual=not about.in_python,
        proven=proof.valid,
        proof="; ".join(filter(None, (proof.rule, proof.reference))) if unproven is None else unproven.rule,
    )


def _with_function(cls: Any) -> Similarity:
    """A kernel that holds some function, for properties that do not depend on it."""
    required = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]
    kernel: Similarity = cls(**{name: Linear() if name == "kernel" else abs for name in required})
    return kernel


def _tags(kernel: Similarity) -> tuple[str, ...]:
    values = dataclasses.asdict(kernel.tags)
    order = values.pop("cpd_order")
    return (*(name for name, holds in values.items() if holds), *([f"cpd of order {order}"] if order else []))


def _parameters(cls: Any) -> tuple[Parameter, ...]:
    """Positional arguments first, then those by keyword only."""
    fields = sorted((f for f in dataclasses.fields(cls) if f.init), key=lambda f: bool(f.kw_only))
    return tuple(_parameter(cls, field) for field in fields)


def _parameter(cls: type[Similarity], field: dataclasses.Field[Any]) -> Parameter:
    rule: Rule | None = field.metadata.get("rule")
    symbol, domain = cls.about.argument(field.name)
    # The kernel of c·k comes second, so its field must have a default.
    default: Any = field.default
    required = default is dataclasses.MISSING or field.name == "kernel"
    return Parameter(
        name=field.name,
        symbol=symbol,
        domain=domain or ("any value" if rule is None else _domain(rule)),
        required=required,
        default=None if required else default,
        free=rule is not None and rule.free,
    )


def _domain(rule: Rule) -> str:
    if rule.lowest < 0:
        return "real number"
    return f"{'> 0' if rule.strict else '≥ 0'}{', or one per column' if rule.vector else ''}"
