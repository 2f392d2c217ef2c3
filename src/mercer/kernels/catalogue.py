"""All public kernels and weights as a list of plain values: formula, use, parameters, and an example of each.

What a class knows of itself (its parameters, tags, space and proof) is asked from the class; only the formula, the use
and the example are written here.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple, TypeAlias

from mercer.kernels.algebra.expression import CALLABLES, parse, vocabulary
from mercer.kernels.algebra.nodes import Node
from mercer.kernels.algebra.parameters import Rule
from mercer.kernels.base import Indefinite, Similarity, Weight
from mercer.kernels.vectors.splines import ConditionalKernel

Kind: TypeAlias = Literal["kernel", "rule", "weight", "conditional", "indefinite"]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One argument of a kernel.

    Attributes
    ----------
    name, symbol : as it is written in Python, and in the formula.
    domain : what its values must be.
    required : whether it has no default.
    default : its default, None where it is required.
    free : whether tuning moves it, unless it is `Fixed`.
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
    name : the public name.
    kind : "kernel", "rule" (makes kernels of kernels, or weights of weights), "weight" (for smoothing only),
        "conditional" (positive definite only beside a polynomial tail) or "indefinite" (not positive semidefinite).
    formula, purpose : one line each.
    space : the objects it takes: "vectors", "categories", "sets", "strings", "table", "indices", or "any".
    tags : what holds for the example without evaluating it; empty for rules, where it depends on the parts.
    parameters : in the order of the constructor.
    example : an expression; text for `mc.parse` where `textual`, else Python.
    textual : whether text can say it; what holds a Python function cannot be text.
    proven : whether the example is proven to be a kernel, on points of any dimension.
    proof : by what rule or theorem it is; or why it is not.
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


class _Written(NamedTuple):
    formula: str
    purpose: str
    example: str


WRITTEN = {
    # kernels of vectors
    "Linear": _Written("xᵀz", "Linear models: ridge, linear SVM, PCA in the dual.", "Linear()"),
    "Polynomial": _Written(
        "(xᵀz + c)ᵖ", "Interactions of up to p columns, without making them.", "Polynomial(degree=2, c=1.0)"
    ),
    "Bilinear": _Written(
        "xᵀA z", "A metric known beforehand, such as an inverse covariance.", "Bilinear([[2.0, 1.0], [1.0, 2.0]])"
    ),
    "ArcCosine": _Written(
        "‖x‖ⁿ‖z‖ⁿ Jₙ(θ)/π, θ the angle of x and z",
        "What an infinitely wide layer of step (0) or rectified (1, 2) units sees.",
        "ArcCosine(order=1)",
    ),
    "Gaussian": _Written(
        "exp(−‖x − z‖²/2σ²)",
        "The first choice for smooth functions; one σ per column finds the columns that matter.",
        "Gaussian(sigma=1.0)",
    ),
    "RationalQuadratic": _Written(
        "(1 + ‖x − z‖²/2ασ²)^(−α)",
        "Smooth functions that vary on several scales at once.",
        "RationalQuadratic(sigma=1.0, alpha=1.0)",
    ),
    "Matern": _Written(
        "2^(1−ν)/Γ(ν) tᵛ K_ν(t), t = √(2ν)‖x − z‖/σ",
        "Rougher functions: ⌈ν⌉ − 1 derivatives; 3/2 and 5/2 are usual in regression.",
        "Matern(sigma=1.0, nu=1.5)",
    ),
    "Laplacian": _Written(
        "exp(−Σₖ |xₖ − zₖ|/σ)",
        "Functions with kinks; distances that outlying columns do not rule.",
        "Laplacian(sigma=1.0)",
    ),
    "Periodic": _Written(
        "exp(−2 Σₖ sin²(π(xₖ − zₖ)/p)/σ²)",
        "Hours, weekdays, seasons; times Gaussian() where the pattern drifts.",
        "Periodic(sigma=1.0, period=24.0)",
    ),
    "Additive": _Written(
        "(1/d) Σₖ 1/(1 + (xₖ − zₖ)²/σ²)",
        "Columns of numbers in tables: each counts for its share, outliers and gaps included.",
        "Additive(sigma=1.0)",
    ),
    "Tanh": _Written(
        "tanh(a·xᵀz + b)",
        "Comparing with other software; it is not positive semidefinite.",
        "Tanh(scale=1.0, offset=-1.0)",
    ),
    "Constant": _Written("c", "An intercept inside a kernel: k + c.", "Constant(c=1.0)"),
    # kernels of other objects
    "Delta": _Written("1 if x = z, else 0", "One category, such as a city or a colour.", "Delta()"),
    "Hamming": _Written("share of columns k with xₖ = zₖ", "Several categories that count alike.", "Hamming()"),
    "Categorical": _Written(
        "exp(−Σₖ 1[xₖ ≠ zₖ]/σ²)",
        "Columns of categories in tables: one σ per column, and a gap is a category.",
        "Categorical(sigma=1.0)",
    ),
    "Intersection": _Written("|x ∩ z|", "Sets of tokens, tags, items in a basket.", "Intersection()"),
    "NGrams": _Written(
        "Σ_g #g(x)·#g(z), g of n characters, cases alike if fold",
        "Short texts; NGrams(3).normalize() does not count their length.",
        "NGrams(3)",
    ),
    # your own
    "FromFunction": _Written(
        "f(x, z), up to a relative error ε",
        "Any similarity of two objects that you can program; test it with mc.check and mc.refute.",
        "mc.FromFunction(lambda x, z: float(np.minimum(x, z).sum()))",
    ),
    "FromFeatures": _Written("φ(x)ᵀφ(z)", "Features that you compute yourself.", "mc.FromFeatures(np.square)"),
    "Precomputed": _Written(
        "K[x, z]",
        "A matrix of similarities from elsewhere; the points are its rows.",
        "Precomputed([[2.0, 1.0], [1.0, 2.0]])",
    ),
    # rules of the algebra
    "Sum": _Written("Σᵢ kᵢ(x, z)", "Either similarity counts: k1 + k2.", "Linear() + Gaussian(1.0)"),
    "Product": _Written("Πᵢ kᵢ(x, z)", "Both similarities are needed: k1 * k2.", "Linear() * Gaussian(1.0)"),
    "Scaled": _Written("c·k(x, z)", "How much a term of a sum weighs: c * k.", "0.5 * Gaussian(1.0)"),
    "Power": _Written("k(x, z)ⁿ", "Interactions of a kernel's features: k ** n.", "Linear() ** 3"),
    "Poly": _Written(
        "Σₙ aₙ k(x, z)ⁿ",
        "Every power with a weight of its own: k.poly([a0, a1, …]).",
        "Linear().poly([1.0, 0.5, 0.25])",
    ),
    "Exp": _Written(
        "exp(k(x, z))", "All powers at once: exp(k); exp(0.693 * Intersection()) is 2^|x ∩ z|.", "exp(Linear())"
    ),
    "Normalized": _Written(
        "k(x, z)/√(k(x, x) k(z, z))",
        "Cosines: sizes, lengths and norms do not count: k.normalize().",
        "Polynomial(2, c=1.0).normalize()",
    ),
    "Rescaled": _Written(
        "f(x) k(x, z) f(z)",
        "A weight of every point by a function of your own: k.rescale(f).",
        "mc.Linear().rescale(lambda X: 1.0 / (1.0 + np.abs(X).sum(axis=1)))",
    ),
    "After": _Written(
        "k(φ(x), φ(z))", "A kernel of transformed points: k.after(phi).", "mc.Gaussian(1.0).after(np.tanh)"
    ),
    "On": _Written(
        "k(x[J], z[J])",
        "A kernel for some columns of a table, by name or position: k.on('age').",
        "Gaussian(10.0).on('age')",
    ),
    "Missing": _Written(
        "k(x, z), and for a gap the mean over v: k(?, z) = E k(v, z)",
        "Missing values in place: a point of its own, or an unknown one of some examples.",
        "Missing(Gaussian(1.0), like=[0.0, 1.0])",
    ),
    "Typed": _Written(
        "k(φ(x), φ(z)), φ reads columns J by kind, C without gaps",
        "Tables whose columns are found by name and read as what they are (mc.table_kernel).",
        "Typed(Gaussian(10.0).on('age'), numbers=['age'])",
    ),
    "WeightProduct": _Written(
        "Πᵢ wᵢ(x, z)",
        "A weight that is local in every column: w1 * w2.",
        "Epanechnikov(2.0).on(0) * Tricube(3.0).on(1)",
    ),
    "WeightOn": _Written("w(x[J], z[J])", "A weight on some columns: w.on(0).", "Epanechnikov(2.0).on(0)"),
    # smoothing weights
    "Uniform": _Written("1 for r ≤ 1, else 0, r = ‖x − z‖/σ", "Plain averages over a ball.", "Uniform(sigma=1.0)"),
    "Triangular": _Written(
        "max(1 − r, 0), r = ‖x − z‖/σ", "Local averages without jumps; a kernel on a line.", "Triangular(sigma=1.0)"
    ),
    "Epanechnikov": _Written(
        "max(1 − r², 0), r = ‖x − z‖/σ", "The weight of least asymptotic error in smoothing.", "Epanechnikov(sigma=1.0)"
    ),
    "Biweight": _Written(
        "max(1 − r², 0)², r = ‖x − z‖/σ", "Smoothers and densities with a continuous slope.", "Biweight(sigma=1.0)"
    ),
    "Tricube": _Written("max(1 − r³, 0)³, r = ‖x − z‖/σ", "The weight of lowess.", "Tricube(sigma=1.0)"),
    # conditionally positive definite functions
    "Polyharmonic": _Written(
        "±rᵏ for odd k, ±rᵏ log r for even k, r = ‖x − z‖/σ",
        "Scattered data in any dimension, without a width to choose (mc.RBFInterpolator).",
        "Polyharmonic(3)",
    ),
    "ThinPlate": _Written(
        "r² log r, r = ‖x − z‖/σ", "Surfaces over the plane of least bending (mc.RBFInterpolator).", "ThinPlate()"
    ),
    "Multiquadric": _Written(
        "−√(1 + ‖x − z‖²/σ²)", "Interpolation of scattered data, smooth everywhere.", "Multiquadric(sigma=1.0)"
    ),
}

SYMBOLS = {
    "sigma": "σ", "alpha": "α", "nu": "ν", "period": "p", "degree": "p", "c": "c", "order": "n", "A": "A", "K": "K",
    "scale": "a", "offset": "b", "f": "f", "phi": "φ", "error": "ε", "kernel": "k", "kernels": "kᵢ", "exponent": "n",
    "coefficients": "aₙ", "columns": "J", "n": "n", "fold": "fold", "like": "v", "complete": "C",
    "numbers": "J", "dates": "J", "codes": "J", "categories": "J", "tokens": "J", "texts": "J", "ordered": "J",
    ("Polyharmonic", "degree"): "k", ("Scaled", "scale"): "c",
    ("WeightOn", "kernel"): "w", ("WeightProduct", "kernels"): "wᵢ",
}  # fmt: skip

# Where the rule of a parameter does not say it all, or there is none.
DOMAINS: dict[str | tuple[str, str], str] = {
    "degree": "whole number ≥ 1",
    "order": "0, 1 or 2",
    "A": "symmetric positive semidefinite matrix",
    "K": "symmetric matrix, or None: then the data set is the matrix",
    "f": "Python function X → one number per point",
    "phi": "Python function X → Φ, or a transformer",
    "kernel": "kernel",
    "kernels": "tuple of kernels",
    "exponent": "whole number ≥ 1",
    "columns": "positions or names",
    "n": "whole number ≥ 1, or (shortest, longest)",
    "fold": "True or False",
    "like": "values that are present, of the kernel's space",
    **dict.fromkeys(("numbers", "dates", "codes", "categories", "tokens", "texts", "complete"), "names of columns"),
    "ordered": "pairs (name, levels from the lowest)",
    ("Matern", "nu"): "> 0, at most 100",
    ("Poly", "coefficients"): "≥ 0, one per power",
    ("Polyharmonic", "degree"): "whole number from 1 to 20",
    ("FromFunction", "f"): "Python function of two objects → number",
    ("WeightOn", "kernel"): "weight",
    ("WeightProduct", "kernels"): "tuple of weights",
}


def catalogue() -> list[Entry]:
    """All public kernels, rules of the algebra, weights, and conditionally positive definite functions.

    `dataclasses.asdict` makes each entry plain values, ready for JSON.

    >>> from mercer.kernels.catalogue import catalogue
    >>> for entry in catalogue()[:5]:
    ...     print(f"{entry.name:10} {entry.formula:42} {entry.example}")
    Linear     xᵀz                                        Linear()
    Polynomial (xᵀz + c)ᵖ                                 Polynomial(degree=2, c=1.0)
    Bilinear   xᵀA z                                      Bilinear([[2.0, 1.0], [1.0, 2.0]])
    ArcCosine  ‖x‖ⁿ‖z‖ⁿ Jₙ(θ)/π, θ the angle of x and z   ArcCosine(order=1)
    Gaussian   exp(−‖x − z‖²/2σ²)                         Gaussian(sigma=1.0)
    """
    return [_entry(name, vocabulary()[name], written) for name, written in WRITTEN.items()]


def _entry(name: str, cls: type[Similarity], written: _Written) -> Entry:
    textual = name not in CALLABLES
    kernel = parse(written.example) if textual else _with_function(name, cls)
    proof = kernel.proof()
    kind = _kind(cls)
    gap = next(iter(proof.unproven), None)
    return Entry(
        name=name,
        kind=kind,
        formula=written.formula,
        purpose=written.purpose,
        space="table" if name in ("On", "Typed", "WeightOn") else "any" if kind == "rule" else kernel.space,
        tags=() if kind == "rule" else _tags(kernel),
        parameters=_parameters(name, cls),
        example=written.example,
        textual=textual,
        proven=proof.valid,
        proof="; ".join(filter(None, (proof.rule, proof.reference))) if gap is None else gap.rule,
    )


def _with_function(name: str, cls: Any) -> Similarity:
    """A kernel that holds a function, for what does not depend on which."""
    kernel: Similarity = cls(abs) if name.startswith("From") else cls(parse("Linear()"), abs)
    return kernel


def _kind(cls: type[Similarity]) -> Kind:
    if issubclass(cls, Node):
        return "rule"
    if issubclass(cls, ConditionalKernel):
        return "conditional"
    if issubclass(cls, Indefinite):
        return "indefinite"
    return "weight" if issubclass(cls, Weight) else "kernel"


def _tags(kernel: Similarity) -> tuple[str, ...]:
    values = dataclasses.asdict(kernel.tags)
    order = values.pop("cpd_order")
    return (*(name for name, holds in values.items() if holds), *([f"cpd of order {order}"] if order else []))


def _parameters(name: str, cls: Any) -> tuple[Parameter, ...]:
    """Positional arguments first, then those by keyword only."""
    fields = sorted((f for f in dataclasses.fields(cls) if f.init), key=lambda f: bool(f.kw_only))
    return tuple(_parameter(name, field) for field in fields)


def _parameter(name: str, field: dataclasses.Field[Any]) -> Parameter:
    rule: Rule | None = field.metadata.get("rule")
    # The kernel of c·k comes second, so that its field has to have a default.
    default: Any = field.default
    required = default is dataclasses.MISSING or field.name == "kernel"
    return Parameter(
        name=field.name,
        symbol=SYMBOLS.get((name, field.name)) or SYMBOLS[field.name],
        domain=DOMAINS.get((name, field.name)) or (DOMAINS[field.name] if rule is None else _domain(rule)),
        required=required,
        default=None if required else default,
        free=rule is not None and rule.free,
    )


def _domain(rule: Rule) -> str:
    if rule.lowest < 0:
        return "real number"
    return f"{'> 0' if rule.strict else '≥ 0'}{', or one per column' if rule.vector else ''}"
