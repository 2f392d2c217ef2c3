"""Kernel expressions as text: the grammar of `repr`, read by a parser that executes nothing.

Python's own grammar turns the text into a tree; this module walks the tree and accepts only the public kernels, their
algebra, and plain values. Anything else is refused by name, with a mark at its place in the text.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, InvalidType
from mercer.kernels.algebra.operators import exp
from mercer.kernels.algebra.parameters import Fixed, show
from mercer.kernels.base import Similarity, Weight
from mercer.kernels.vocabulary import vocabulary
from mercer.validation import is_number
from mercer.words import cut

# Room for what `repr` prints, whose largest matrix has 10 000 entries of up to 26 characters.
MOST_CHARACTERS = 300_000
MOST_VALUES = 50_000
# Every constructor looks at all kernels below it, so that the time grows with the square of their number.
MOST_KERNELS = 3000
DEEPEST_TEXT = 200
DEEPEST_KERNEL = 100
# k ** n and ⟨x, z⟩ᵖ: exact bounds of their values have n times as many digits.
HIGHEST_POWER = 1000
LARGEST_WHOLE = 2**63

EXAMPLE = 'Write an expression such as "0.5 * Gaussian(1.0) + Linear()".'

METHODS = ("exp", "normalize", "on", "poly")

IN_PYTHON = "it in Python, and pass the kernel itself instead of its text."
FUNCTIONS = {"after": "After", "over": "Convolution", "rescale": "Rescaled"}
"""Methods that take a Python function, and the class of the kernels that they make."""

MAPS = ("base_point", "fingerprint", "lead_lag", "pixels")
MAP_MAKERS = ("Descriptors", "Fingerprint", "add_time")
"""Maps of the library that a text may name in k.after(phi), and what makes such maps."""

# Names of kernels in other libraries, in lower case, and what to write here.
ELSEWHERE = {
    "additivekernel": "Write k1 + k2.",
    "compoundkernel": "Write k1 + k2.",
    "constantkernel": "Write Constant(c).",
    "cosine": "Write Linear().normalize().",
    "cosine_similarity": "Write Linear().normalize().",
    "dotproduct": "Write Linear(), or Linear() + c for DotProduct(sigma_0) with c = sigma_0².",
    "exponential": "Write Matern(sigma, nu=0.5), or Laplacian(sigma).",
    "exponentiation": "Write k ** n.",
    "expsinesquared": "Write Periodic(sigma, period).",
    "jaccard": "Write Jaccard() for sets, Tanimoto() for rows of bits.",
    "linearkernel": "Write c * Linear().",
    "maternkernel": "Write Matern(sigma, nu).",
    "overlap": "Write Hamming().",
    "periodickernel": "Write Periodic(sigma, period).",
    "poly": "Write Polynomial(degree, c), or k.poly([a0, a1, ...]) for a polynomial of a kernel.",
    "polynomialkernel": "Write Polynomial(degree, c).",
    "productkernel": "Write k1 * k2.",
    "rbf": "Write Gaussian(sigma), or Gaussian.from_gamma(gamma).",
    "rbfkernel": "Write Gaussian(sigma).",
    "rqkernel": "Write RationalQuadratic(sigma, alpha).",
    "scalekernel": "Write c * k.",
    "sigmoid": "Write Tanh(scale, offset), which is not positive semidefinite.",
    "squaredexponential": "Write Gaussian(sigma).",
    "white": "Noise is not part of a kernel: set alpha of the model.",
    "whitekernel": "Noise is not part of a kernel: set alpha of the model.",
    "whitenoise": "Noise is not part of a kernel: set alpha of the model.",
}

OPERATORS: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.Pow: ("**", operator.pow),
}

FOREIGN = {
    ast.Await: "await",
    ast.BoolOp: "`and` or `or`",
    ast.Compare: "a comparison",
    ast.DictComp: "a comprehension",
    ast.FormattedValue: "an f-string",
    ast.GeneratorExp: "a comprehension",
    ast.IfExp: "`if` and `else`",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.NamedExpr: "an assignment",
    ast.SetComp: "a comprehension",
    ast.Slice: "a slice",
    ast.Starred: "an unpacking star",
    ast.Subscript: "an index in square brackets",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}


def parse(text: str) -> Similarity:
    """The kernel that a text describes: parse(repr(k)) == k, for every k that holds no Python function.

    The text may use the public kernels and weights (with or without the prefix `mc.`), the algebra `+ * / **`, `exp`,
    `.on`, `.poly`, `.normalize`, and plain values as arguments. Only constructors of kernels are executed.

    Parameters
    ----------
    text : str
        An expression of at most 300 000 characters.

    Examples
    --------
    >>> from mercer.kernels.algebra.expression import parse
    >>> parse("exp(0.5 * Linear()) * Gaussian(1.0) / 4")
    0.25 * (exp(0.5 * Linear()) * Gaussian(sigma=1.0))
    >>> parse("Gausian(1.0) + Linear()")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: Every word must name a kernel, a weight, exp or Fixed, got 'Gausian'. Did you mean \
Gaussian?
        Gausian(1.0) + Linear()
        ^^^^^^^
    """
    if not isinstance(text, str):
        raise InvalidType("A kernel expression must be text", got=type(text).__name__, advice=EXAMPLE)
    return _Reader(text).kernel()


class _Reader:
    """One text on its way to a kernel."""

    def __init__(self, text: str) -> None:
        self.text = text.strip().replace("\r\n", "\n").replace("\r", "\n")
        self.kernels = 0

    def kernel(self) -> Similarity:
        try:
            tree = self.tree()
            value = self.value(tree, 0)
            if isinstance(value, Similarity) and _height(value) <= DEEPEST_KERNEL:
                return value
        except (RecursionError, MemoryError):
            self.too_deep(None)
        if isinstance(value, Similarity):
            self.too_deep(None)
        advice = f"Write Constant({value!r}) for a constant kernel." if is_number(value) else EXAMPLE
        self.fail(tree, "A kernel expression must describe a kernel", _described(value), advice)

    def tree(self) -> ast.expr:
        if not self.text:
            raise InvalidInput("A kernel expression must not be empty", got="nothing", advice=EXAMPLE)
        if len(self.text) > MOST_CHARACTERS:
            raise InvalidInput(
                f"A kernel expression must have at most {MOST_CHARACTERS} characters",
                got=len(self.text),
                advice=f"Build {IN_PYTHON}",
            )
        # Checked before the tree is made, which takes longest.
        values = sum(map(self.text.count, ",+-*/([{"))
        if values > MOST_VALUES:
            raise InvalidInput(
                f"A kernel expression must have at most {MOST_VALUES} values", got=values, advice=f"Build {IN_PYTHON}"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's opinion of odd literals
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            self.unreadable(error)
        except ValueError as error:  # null bytes, lone surrogates
            raise InvalidInput("A kernel expression must be plain text", got=error, advice=EXAMPLE) from None

    # -- the walk -------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, depth: int) -> Any:
        """The kernel or the plain value that a node stands for."""
        if depth > DEEPEST_TEXT:
            self.too_deep(node)
        depth += 1
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Call():
                return self.call(node, depth)
            case ast.BinOp():
                return self.chain(node, depth)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign):
                return self.signed(node, sign, self.value(node.operand, depth))
            case ast.List():
                return [self.value(element, depth) for element in node.elts]
            case ast.Tuple():
                return tuple(self.value(element, depth) for element in node.elts)
            case ast.Set():
                return {self.plain(element, depth) for element in node.elts}
            case ast.Dict():
                return self.dictionary(node, depth)
            case ast.Name() | ast.Attribute():
                self.uncalled(node, depth)
        self.foreign(node, FOREIGN.get(type(node), "an operator of another kind"))

    def constant(self, node: ast.Constant) -> Any:
        if is_number(node.value):
            return self.number(node, node.value)
        if node.value is None or isinstance(node.value, (bool, str)):
            return node.value
        kind = {bytes: "bytes", complex: "a complex number", type(...): "an abbreviation"}[type(node.value)]
        self.foreign(node, kind)

    def number(self, node: ast.expr, value: Any) -> int | float:
        if isinstance(value, complex):
            self.fail(node, "Numbers must be real", "the root of a negative number", "Check the sign.")
        if abs(value) >= LARGEST_WHOLE if isinstance(value, int) else not math.isfinite(value):
            self.fail(
                node,
                "Numbers must be finite, whole ones below 2⁶³",
                "a larger one",
                "Write it as a float of at most 1e308, such as 1e30.",
            )
        return int(value) if isinstance(value, int) else float(value)

    def signed(self, node: ast.UnaryOp, sign: ast.unaryop, value: Any) -> Any:
        if is_number(value):
            return -value if isinstance(sign, ast.USub) else value
        if isinstance(value, Similarity) and isinstance(sign, ast.USub):
            return self.applied(node, "-", operator.neg, [value])
        self.fail(node, "A sign must stand before a number", _described(value), "Leave the sign out.")

    def plain(self, node: ast.expr, depth: int) -> Any:
        """A value that a set or a dictionary may hold."""
        value = self.value(node, depth)
        if _is_plain(value):
            return value
        self.fail(
            node, "Sets and dictionaries must hold numbers, text, None, True and False", _described(value), EXAMPLE
        )

    def dictionary(self, node: ast.Dict, depth: int) -> dict[Any, Any]:
        for key, value in zip(node.keys, node.values):
            if key is None:
                self.foreign(value, "an unpacking star")
        keys = [self.plain(key, depth) for key in node.keys if key is not None]
        return dict(zip(keys, [self.value(value, depth) for value in node.values]))

    # -- operators ------------------------------------------------------------------------------------------------

    def chain(self, node: ast.BinOp, depth: int) -> Any:
        """a + b · c − …, from left to right, without going deeper for every term."""
        links: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            if type(left.op) not in OPERATORS:
                self.foreign(left, f"an operator other than {' '.join(sign for sign, _ in OPERATORS.values())}")
            links.append(left)
            left = left.left
        total = self.value(left, depth)
        links.reverse()
        values = [self.value(link.right, depth) for link in links]
        start = 0
        while start < len(links):
            # A run of kernels that are added, or multiplied, is flat: halves are joined in n log n steps.
            link, stop = links[start], start
            while stop < len(links) and isinstance(values[stop], Similarity) and type(links[stop].op) is type(link.op):
                stop += 1
            if isinstance(total, Similarity) and stop - start > 1 and isinstance(link.op, (ast.Add, ast.Mult)):
                sign, function = OPERATORS[type(link.op)]
                parts = [total, *values[start:stop]]
                total = self.applied(links[stop - 1], sign, _joined, [function, parts])
                start = stop
            else:
                total = self.binary(link, total, values[start])
                start += 1
        return total

    def binary(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        sign, function = OPERATORS[type(node.op)]
        if sign == "**" and is_number(right) and abs(right) > HIGHEST_POWER:
            self.too_high(node.right, right)
        if is_number(left) and is_number(right):
            try:
                return self.number(node, function(left, right))
            except ArithmeticError as error:
                self.fail(node, f"`{sign}` must give a finite number", error, "Check both numbers.")
        if isinstance(left, Similarity) or isinstance(right, Similarity):
            return self.applied(node, sign, function, [left, right])
        self.fail(
            node, f"`{sign}` must join kernels and numbers", f"{_described(left)} and {_described(right)}", EXAMPLE
        )

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, depth: int) -> Any:
        word = _word(node.func)
        if isinstance(node.func, ast.Name) and word == "array":
            return self.array(node, depth)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "after" and self.names_map(node):
            return self.after(node.func, node.args[0], depth)
        if word is not None:
            name, target = word, self.known(node.func, word)
        elif isinstance(node.func, ast.Attribute):
            name, target = node.func.attr, self.method(node.func, depth)
        else:
            self.fail(node.func, "Only kernels and their methods can be called", "something else", EXAMPLE)
        self.kernels += 1
        if self.kernels > MOST_KERNELS:
            required = f"A kernel expression must have at most {MOST_KERNELS} kernels"
            self.fail(node, required, "more", f"Build {IN_PYTHON}")
        arguments, keywords = self.arguments(node, depth)
        value = self.applied(node, name, target, arguments, keywords)
        power = getattr(value, "exponent", None) or getattr(value, "degree", None)
        if isinstance(power, int) and power > HIGHEST_POWER:
            self.too_high(node, power)
        return value

    def arguments(self, node: ast.Call, depth: int) -> tuple[list[Any], dict[str, Any]]:
        for keyword in node.keywords:
            if keyword.arg is None:
                self.foreign(keyword.value, "an unpacking star")
        keywords: dict[str, Any] = {}
        arguments = [self.value(argument, depth) for argument in node.args]
        for keyword in node.keywords:
            name = str(keyword.arg)
            if name in keywords:
                self.fail(keyword.value, "Every argument must be given once", f"{name} twice", "Remove one of them.")
            keywords[name] = self.value(keyword.value, depth)
        return arguments, keywords

    def known(self, node: ast.expr, word: str) -> Any:
        """The kernel class or function that a word names."""
        targets = {"exp": exp, "Fixed": Fixed, **vocabulary()}
        if word in FUNCTIONS or word in targets:
            self.refuse_functions(node, word)
            return targets[word]
        advice = _nearest(
            word, targets,
            otherwise="Choose one that `mercer kernels` lists. (A kernel of your own works in Python only, after "
            "mc.register in the same program.)",
        )  # fmt: skip
        self.fail(node, "Every word must name a kernel, a weight, exp or Fixed", repr(word), advice)

    def method(self, node: ast.Attribute, depth: int) -> Any:
        """k.method, or the constructor Class.method."""
        word = _word(node.value)
        if word is not None:
            owner = self.known(node.value, word)
            names = _constructors(owner)
            what = f"Constructors of {word} are {', '.join(names) or 'none but itself'}"
            advice = f"Write {word}(...)" + (f".{node.attr}(...)." if node.attr in METHODS else ".")
        else:
            owner = self.value(node.value, depth)
            if node.attr in FUNCTIONS and isinstance(owner, Similarity):
                self.refuse_functions(node, node.attr)
            names = list(("on",) if isinstance(owner, Weight) else METHODS) if isinstance(owner, Similarity) else []
            what = f"Methods of {_described(owner)} are {', '.join(names) or 'none'}"
            advice = _nearest(node.attr, names, otherwise="Choose one of these.") if names else EXAMPLE
        if node.attr in names:
            return getattr(owner, node.attr)
        self.fail(node, what, repr(node.attr), advice)

    @staticmethod
    def names_map(node: ast.Call) -> bool:
        """Whether the only argument of a call is one of the library's maps, or the call that makes one."""
        argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if isinstance(argument, ast.Call):
            return _word(argument.func) in MAP_MAKERS
        return argument is not None and _word(argument) in MAPS

    def after(self, node: ast.Attribute, argument: ast.expr, depth: int) -> Any:
        """k.after(phi) for a map phi of the library, which needs no function of the user."""
        library = import_module("mercer.features")
        if isinstance(argument, ast.Call):
            word = str(_word(argument.func))
            phi = self.applied(argument, word, getattr(library, word), *self.arguments(argument, depth))
        else:
            phi = getattr(library, str(_word(argument)))
        owner = self.value(node.value, depth)
        if not isinstance(owner, Similarity):
            self.fail(node, "`after` must follow a kernel", _described(owner), EXAMPLE)
        return self.applied(node, "after", operator.methodcaller("after", phi), [owner])

    def refuse_functions(self, node: ast.expr, word: str) -> None:
        """Refuse a class that holds a Python function, or a method that takes one."""
        about = getattr(vocabulary().get(FUNCTIONS.get(word, word)), "about", None)
        if about is not None and about.in_python:
            advice = f"It needs a Python function: {about.in_python}, and pass the kernel itself instead of its text."
            self.fail(node, "A kernel expression must not need Python functions", word, advice)

    def array(self, node: ast.Call, depth: int) -> NDArray[Any]:
        """array([[…]]), as NumPy prints it."""
        kinds = {"float32": np.float32, "float64": np.float64}
        dtype: Any = np.float64
        for keyword in node.keywords:
            word = keyword.value.id if isinstance(keyword.value, ast.Name) else None
            if keyword.arg != "dtype" or word not in kinds:
                self.fail(keyword.value, "An array may only have `dtype=float32`", f"{keyword.arg}", "Remove it.")
            dtype = kinds[str(word)]
        if len(node.args) != 1:
            self.fail(
                node,
                "An array must hold one list of numbers",
                f"{len(node.args)} arguments",
                "Write array([1.0, 2.0]).",
            )
        entries = self.value(node.args[0], depth)
        if not _is_nest(entries):
            self.fail(node, "An array must hold numbers", _described(entries), "Write array([[2.0, 1.0], [1.0, 2.0]]).")
        return self.applied(node, "array", lambda: np.array(entries, dtype=dtype), [])

    def applied(
        self,
        node: ast.expr,
        name: str,
        target: Callable[..., Any],
        arguments: list[Any],
        keywords: dict[str, Any] | None = None,
    ) -> Any:
        """target(*arguments, **keywords), whose errors point at the text."""
        try:
            with np.errstate(all="ignore"):
                return target(*arguments, **(keywords or {}))
        except InvalidInput as error:
            place, got = self.mark(*self.span(node)), cut(error.got, 300)
            raise type(error)(error.required, got=got, advice=error.advice, excerpt=place) from None
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            if name in {sign for sign, _ in OPERATORS.values()}:
                got = f" {name} ".join(_described(a) for a in arguments)
                advice = "Write exp(c * k) for e^(c·k)." if name == "**" else "Add or multiply kernels instead."
                self.fail(node, f"A rule must make this `{name}` a kernel", got, advice)
            self.fail(node, f"{name} must be called as {_usage(name, target)}", error, "Check the arguments.")

    # -- errors ---------------------------------------------------------------------------------------------------

    def uncalled(self, node: ast.Name | ast.Attribute, depth: int) -> NoReturn:
        word = _word(node)
        if word is not None:
            self.known(node, word)
            self.fail(node, "A kernel must be written with its brackets", word, f"Write {word}().")
        assert isinstance(node, ast.Attribute)
        self.method(node, depth)
        self.fail(node, "A method must be called", node.attr, f"Write .{node.attr}(...).")

    def foreign(self, node: ast.expr, what: str) -> NoReturn:
        self.fail(
            node,
            "A kernel expression must be made of kernels, their algebra, and plain values",
            what,
            f"Leave it out, or build {IN_PYTHON}",
        )

    def too_high(self, node: ast.expr, power: Any) -> NoReturn:
        self.fail(node, f"Powers in a kernel expression must be ≤ {HIGHEST_POWER}", power, "Use exp(c * k) instead.")

    def too_deep(self, node: ast.expr | None) -> NoReturn:
        required = f"A kernel expression must be nested at most {DEEPEST_KERNEL} deep"
        advice = f"Remove brackets, or build {IN_PYTHON}"
        if node is None:
            raise InvalidInput(required, got="a deeper one", advice=advice) from None
        self.fail(node, required, "a deeper one", advice)

    def unreadable(self, error: SyntaxError) -> NoReturn:
        lines = self.text.split("\n")
        line, start = error.lineno or 1, (error.offset or 0) - 1
        if start < 0 or line > len(lines):  # the end came too soon
            line, start = len(lines), len(lines[-1])
        end = start + 1
        got, advice = f"a syntax error, {error.msg}", EXAMPLE
        if left_out := re.search(r"<[^<>]*>", self.text):
            got = f"{left_out[0][:40]!r}, which stands for something that has no text"
            advice = f"If it is a function or a large matrix, build {IN_PYTHON}"
            line = self.text.count("\n", 0, left_out.start()) + 1
            start = left_out.start() - (self.text.rfind("\n", 0, left_out.start()) + 1)
            end = start + len(left_out[0])
        place = self.mark(line, start, end)
        raise InvalidInput("A kernel expression must be complete", got=got, advice=advice, excerpt=place) from None

    def fail(self, node: ast.expr, required: str, got: object, advice: str) -> NoReturn:
        place = self.mark(*self.span(node))
        raise InvalidInput(required, got=cut(str(got), 300), advice=advice, excerpt=place) from None

    def span(self, node: ast.expr) -> tuple[int, int, int]:
        """Line, first column and end column of a node, in characters (the tree counts bytes)."""
        line = self.text.split("\n")[node.lineno - 1].encode()
        end = node.end_col_offset if node.end_lineno == node.lineno and node.end_col_offset else len(line)
        columns = [len(line[:place].decode(errors="ignore")) for place in (node.col_offset, end)]
        return node.lineno, columns[0], columns[1]

    def mark(self, line: int, start: int, end: int) -> str:
        """The line, with carets below the place."""
        shown = "".join(c if c.isprintable() else "·" for c in self.text.split("\n")[line - 1])
        cut = max(start - 60, 0)
        before, after = "…" if cut else "", "…" if len(shown) > cut + 110 else ""
        place = len(before) + start - cut
        width = max(min(end - start, cut + 110 - start), 1)
        return f"    {before}{shown[cut : cut + 110]}{after}\n    {' ' * place}{'^' * width}"


def _joined(function: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """The fold of an associative function."""
    half = len(parts) // 2
    return function(_joined(function, parts[:half]), _joined(function, parts[half:])) if half else parts[0]


def _word(node: ast.expr) -> str | None:
    """The public name that a node spells, with or without the prefix `mc.`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("mc", "mercer"):
        return node.attr
    return None


def _constructors(owner: Any) -> list[str]:
    """The public class methods that a kernel class defines itself."""
    return [n for n, v in vars(owner).items() if isinstance(v, classmethod) and not n.startswith("_")]


def _nearest(word: str, known: Iterable[str], *, otherwise: str) -> str:
    """Advice for an unknown word: the known word that was probably meant, if there is one."""
    by_lower = {name.lower(): name for name in known}
    if word.lower() in ELSEWHERE and word.lower() not in by_lower:
        return ELSEWHERE[word.lower()]
    close = difflib.get_close_matches(word.lower()[:100], by_lower, 1)
    return f"Did you mean {by_lower[close[0]]}?" if close else otherwise


def _usage(name: str, target: Any) -> str:
    fields = []
    for parameter in inspect.signature(target).parameters.values():
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={show(parameter.default)}"
        fields.append(f"{stars}{parameter.name}{default}")
    return f"{name}({', '.join(fields)})"


def _described(value: Any) -> str:
    text = cut(repr(value), 60)
    return text if isinstance(value, (Similarity, Fixed)) or is_number(value) else f"{type(value).__name__} {text}"


def _height(kernel: Any) -> int:
    """How many kernels are nested in one another."""
    height, level = 0, [kernel]
    while level:
        height, level = height + 1, [child for k in level for child in k.children.values()]
    return height


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _is_nest(value: Any) -> bool:
    return all(map(_is_nest, value)) if isinstance(value, (list, tuple)) else is_number(value)
