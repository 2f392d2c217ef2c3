"""Kernel expressions as text: parse is the inverse of repr, executes nothing, and points at what it cannot read."""

from __future__ import annotations

import contextlib
import random
import re
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import mercer as mc
from expressions import set_kernels, vector_kernels
from mercer.kernels.algebra import expression
from mercer.kernels.algebra.expression import ELSEWHERE, parse
from mercer.kernels.vocabulary import library

CASES = [
    mc.Linear(),
    mc.Polynomial(3, c=mc.Fixed(0.5)),
    mc.Polynomial(2),
    mc.Bilinear([[2.0, -1.0], [-1.0, 2.0]]),
    mc.ArcCosine(0),
    mc.Tanh(0.5, -1.5),
    mc.Gaussian([0.5, 1e-12, 3e40]),
    mc.Gaussian(mc.Fixed([0.5, 1.0])),
    mc.RationalQuadratic(0.1, mc.Fixed(2.0)),
    mc.Matern(2.0, 0.8),
    mc.Laplacian([1.0, 2.0]),
    mc.Periodic(mc.Fixed(1.0), 24.0),
    mc.Constant(2.5),
    mc.Delta(),
    mc.Hamming(),
    mc.Intersection(),
    mc.Additive(mc.Fixed([1.0, 0.5])),
    mc.Categorical([1.0, 0.25]),
    mc.NGrams((2, 4), fold=False),
    mc.VertexHistogram() + mc.EdgeHistogram(),
    mc.WeisfeilerLehman(3) * mc.WeisfeilerLehmanAssignment(2).normalize(),
    mc.ShortestPath() + mc.Graphlet(4),
    mc.Propagation(2, width=0.5, seed=7),
    mc.RandomWalk(0.02),
    mc.Missing(mc.Gaussian(1.0)),
    mc.Missing(mc.Gaussian(1.0), like=[0.0, 2.5]),
    mc.Missing(mc.Delta(), like=["it's", "red"]),
    mc.Typed(
        mc.Gaussian(1.0).on("age") * mc.Categorical(1.0).on("city") + mc.Linear().on("size"),
        numbers=["age"],
        categories=["city"],
        ordered=[("size", ["S", "M", "L"])],
        complete=["age"],
    ),
    mc.Precomputed(),
    mc.Precomputed([[2.0, -1.0], [-1.0, 2.0]]),
    mc.Multiquadric(0.3),
    mc.Polyharmonic(5, sigma=[1.0, 2.0]),
    mc.ThinPlate(2.0),
    *(w(0.5) for w in (mc.Biweight, mc.Epanechnikov, mc.Triangular, mc.Tricube)),
    mc.Uniform([1.0, 2.0]),
    mc.Epanechnikov(1.0).on(0) * mc.Uniform(2.0).on("age", -1) * mc.Tricube(1.0).on(3),
    mc.Linear() + mc.Gaussian(1.0) + 2.0,
    mc.Sum((mc.Sum((mc.Linear(), mc.Gaussian(1.0))), mc.Constant(2.0))),
    mc.Sum((mc.Linear(),)),
    mc.Product((mc.Product((mc.Linear(), mc.Gaussian(1.0))), mc.Constant(2.0))),
    mc.WeightProduct((mc.Uniform(1.0),)),
    (mc.Linear() + 1.0) * (2.0 * mc.Gaussian(1.0)) * mc.Matern(1.0) ** 2,
    0.25 * (mc.Linear() * mc.Gaussian(1.0)),
    (0.25 * mc.Linear()) * mc.Gaussian(1.0),
    mc.Scaled(mc.Fixed(2.0), mc.Linear()),
    mc.Scaled(2.0, mc.Scaled(3.0, mc.Linear())),
    ((mc.Linear() ** 2) ** 3).normalize(),
    mc.Poly(mc.Linear() + 1.0, mc.Fixed([0.5, 0.0, 2.0])),
    mc.exp(np.log(2) * mc.Intersection()).normalize(),
    0.5 * mc.Tanimoto(),
    mc.Hellinger() * mc.HistogramIntersection() + mc.MinMax(),
    mc.AdditiveChiSquared() * mc.ChiSquared(2.0),
    mc.Dice() + mc.Jaccard(),
    mc.Spectrum((1, 3)).normalize() + mc.GappedKmers(4, 3) + mc.Mismatch(3, 1, alphabet="abc"),
    mc.WeightedDegree(3, shift=1) * mc.Subsequence(2, 0.25) + mc.LocalAlignment(0.5, scores=(1.0, -1.0)),
    mc.SmithWaterman(scores=(1.0, -1.0)),
    mc.EditSimilarity(),
    mc.WeightedCounts(mc.Spectrum(1), keys=[2593264429575759324], weights=[2.0]),
    mc.Signature(level=2, static=0.5 * mc.Gaussian(1.0)).normalize() + mc.GlobalAlignment(mc.Gaussian(1.0)),
    mc.Signature(2).after(mc.lead_lag),
    mc.SignaturePDE(static=mc.Gaussian(1.0), refine=1),
    mc.DTW(sigma=2.0),
    mc.Patches(sigma=0.5, spread=2.0, size=3),
    mc.PartialTree(decay=0.5, gap=0.25) + mc.SubsetTree(0.5) * mc.Subtree(),
    mc.MeanEmbedding(mc.Gaussian(2.0)),
    mc.Gaussian(2.0).on("age", "income in €") * mc.Delta().on('it\'s "a" city\n\\') + mc.Hamming().on(-1, 2),
]


def nodes(kernel):
    return [kernel, *(n for child in kernel.children.values() for n in nodes(child))]


def prefixed(text):
    return re.sub(r"(?<![\w.'\"])([A-Z]\w*|exp)\(", r"mc.\1(", text)


class Names(dict):
    """What the words of an expression mean in Python."""

    def __missing__(self, name):
        own = {"mc": mc, "mercer": mc, "array": np.array, "float32": np.float32, "float64": np.float64}
        return own[name] if name in own else getattr(mc, name)


# -- the inverse of repr ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_parse_inverts_repr(kernel):
    assert parse(repr(kernel)) == kernel
    assert parse(f" \n{prefixed(repr(kernel))} ") == kernel


def test_every_public_kernel_has_a_case():
    seen = {type(node).__name__ for case in CASES for node in nodes(case)}
    refused = {name for name, cls in library().items() if cls.about.in_python}
    assert seen | refused == set(library())
    assert seen & refused == {"After"}  # maps of the library can be named, functions of the user cannot
    public = {n for n in mc.__all__ if isinstance(c := vars(mc).get(n, 0), type) and issubclass(c, mc.Similarity)}
    assert public - {"Kernel", "Similarity", "Weight"} <= set(library())


@pytest.mark.thorough
@given(vector_kernels)
def test_parse_inverts_repr_of_random_expressions(kernel):
    assert parse(repr(kernel)) == kernel == parse(prefixed(repr(kernel)))


@settings(max_examples=settings.default.max_examples // 5)
@given(set_kernels)
def test_parse_inverts_repr_of_random_expressions_of_sets(kernel):
    assert parse(repr(kernel)) == kernel


def test_the_largest_matrix_that_repr_prints_is_read():
    B = np.random.default_rng(0).normal(size=(100, 100)) * 1e-60
    kernel = mc.Bilinear(B @ B.T)
    assert parse(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("Gaussian.from_gamma(0.5)", mc.Gaussian(1.0)),
        ("mc.Gaussian.from_variance(variance=[4, 9])", mc.Gaussian([2.0, 3.0])),
        ("Linear().exp().on('a')", mc.exp(mc.Linear()).on("a")),
        ("Linear().poly([1, 0, 2])", mc.Poly(mc.Linear(), [1.0, 0.0, 2.0])),
        ("exp(Linear()) * Gaussian(1.0)", mc.exp(mc.Linear()) * mc.Gaussian(1.0)),
        ("Linear() / 4", 0.25 * mc.Linear()),
        ("2 * 3 * Linear() * 2", 12.0 * mc.Linear()),
        ("1 + 2 + Linear() + 1 + 2", mc.Sum((mc.Constant(3.0), mc.Linear(), mc.Constant(1.0), mc.Constant(2.0)))),
        ("0 + Linear()", mc.Linear()),
        ("Linear() * Delta().on(0) * 2 * Linear()", mc.Linear() * mc.Delta().on(0) * 2 * mc.Linear()),
        ("Linear() ** 2 ** 3", mc.Linear() ** 8),
        ("-(-2) * Linear()", 2.0 * mc.Linear()),
        ("Gaussian(1/3)", mc.Gaussian(1 / 3)),
        ("Bilinear(array([[1., 0.],\n       [0., 1.]]))", mc.Bilinear(np.eye(2))),
        ("Precomputed(array([[1., 0.], [0., 1.]], dtype=float32))", mc.Precomputed(np.eye(2, dtype=np.float32))),
        ("Sum([Linear(), Constant()])", mc.Linear() + 1.0),
        ("Polyharmonic(3, sigma=2)  # cubic", mc.Polyharmonic(3, sigma=2.0)),
    ],
)
def test_what_python_would_make_of_it(text, kernel):
    assert parse(text) == kernel == eval(text, {}, Names())


def test_long_sums_are_flat_and_quick(monkeypatch):
    looked_at = []
    check = mc.Sum.check
    monkeypatch.setattr(mc.Sum, "check", lambda self: (looked_at.append(len(self.kernels)), check(self))[1])
    kernel = parse(" + ".join(["Gaussian(2.0).on('a')"] * 1200))
    assert sum(looked_at) < 15 * 1200
    assert kernel == mc.Sum((mc.Gaussian(2.0).on("a"),) * 1200)
    with pytest.raises(mc.InvalidInput, match="nested at most"):
        parse(" + ".join(["Linear()"] * 20_000))


# -- errors that point at the text ------------------------------------------------------------------------------------


def pointed_at(error):
    """The part of the text above the carets of an error."""
    line, carets = str(error).split("\n")[-2:]
    assert set(carets) == {" ", "^"}
    return line[carets.index("^") : carets.rindex("^") + 1]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("Linear() + Gausian(1.0)", "Gausian", r"got 'Gausian'. Did you mean Gaussian\?"),
        ("Linear().on('größe') * gaussian(1.0)", "gaussian", r"Did you mean Gaussian\?"),
        ("mc.Matern32(1.0)", "mc.Matern32", r"Did you mean Matern\?"),
        ("0.5 * Zzyzx()", "Zzyzx", r"lists\. \(A kernel of your own works in Python only, after mc\.reg"),
        ("2 * Linear().zzyzx()", "Linear().zzyzx", r"normalize, on, poly, got 'zzyzx'\. Choose one of these\."),
        ("RBF(1.0) + Linear()", "RBF", r"got 'RBF'. Write Gaussian\(sigma\)"),
        ("2.0 * DotProduct()", "DotProduct", r"Write Linear\(\)"),
        ("Gaussian(1.0) + WhiteKernel(0.1)", "WhiteKernel", "set alpha of the model"),
        ("Linear() * KernelRidge()", "KernelRidge", "must name a kernel"),
        ("Linear() + Linear", "Linear", r"Write Linear\(\)\."),
        ("2 * Linear().normalise()", "Linear().normalise", r"Did you mean normalize\?"),
        ("Linear().on", "Linear().on", "must be called"),
        ("Uniform(1.0).poly([1.0])", "Uniform(1.0).poly", "are on, got 'poly'"),
        ("Gaussian.on('age')", "Gaussian.on", r"Write Gaussian\(...\).on\(...\)"),
        ("Gaussian._from('gamma', 1, 2)", "Gaussian._from", "are from_gamma, from_variance, got '_from'"),
        ("Linear() + FromFunction(f)", "FromFunction", "build it in Python, and pass the kernel"),
        ("FromFeatures(phi)", "FromFeatures", "build it in Python"),
        ("Linear().after(square)", "Linear().after", "apply phi to the data first"),
        ("After(Linear(), square)", "After", "apply phi to the data first"),
        ("Linear().rescale(f)", "Linear().rescale", r"write k.normalize\(\)"),
        ("Rescaled(Linear(), f)", "Rescaled", r"write k.normalize\(\)"),
        (repr(mc.Linear().rescale(lambda X: X[:, 0])), "<lambda>", "stands for something that has no text"),
        (repr(mc.Bilinear(np.eye(101))), "<101×101 array>", "stands for something that has no text"),
        ("Polynomial()", "Polynomial()", r"must be called as Polynomial\(degree, c=0.0\), got .*missing"),
        ("Linear(1.0)", "Linear(1.0)", r"must be called as Linear\(\)"),
        ("Linear().on(columns=3)", "Linear().on(columns=3)", r"must be called as on\(\*columns\)"),
        ("Gaussian(sigma=1, sigma=2)", "2", "sigma twice"),
        ("(Linear() + Gaussian(1.0)", "(", "never closed"),
        ("Linear() +", "", "syntax"),
        ("Linear() // 2", "Linear() // 2", "an operator other than"),
        ("Linear() - Gaussian(1.0)", "Linear() - Gaussian(1.0)", "No rule makes k₁ − k₂"),
        ("-Linear()", "-Linear()", "No rule makes −k"),
        ("-Uniform()", "-Uniform()", "A rule must make"),
        ("2 ** Linear()", "2 ** Linear()", r"exp\(c \* k\)"),
        ("1 / Linear()", "1 / Linear()", "Add or multiply kernels instead"),
        ("'a' + 'b'", "'a' + 'b'", "must join kernels and numbers"),
        ("3", "3", r"Write Constant\(3\) for a constant kernel"),
        ("Fixed(1.0)", "Fixed(1.0)", "must describe a kernel"),
        ("Gaussian(1 / 0)", "1 / 0", "must give a finite number"),
        ("Gaussian((-1) ** 0.5)", "(-1) ** 0.5", "must be real"),
        ("Gaussian(1e999)", "1e999", "must be finite"),
        ("Linear().on({[1]})", "[1]", "Sets and dictionaries must hold"),
        ("Bilinear(array([[1.0, 'a']]))", "array([[1.0, 'a']])", "must hold numbers"),
        ("Bilinear(array([1.0], dtype=object))", "object", "dtype"),
        ("\n+ 3 * (\n Linear(\n) + x)", "x", "got 'x'"),
    ],
)
def test_errors_point_at_the_place(text, place, message):
    with pytest.raises(mc.InvalidInput, match=message) as caught:
        parse(text)
    assert pointed_at(caught.value) == place


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("Gaussian(sigma=-1.0)", lambda: mc.Gaussian(sigma=-1.0)),
        ("Gaussian(gamma=1.0)", lambda: mc.Gaussian(gamma=1.0)),
        ("-1.0 * Gaussian(1.0)", lambda: -1.0 * mc.Gaussian(1.0)),
        ("Linear() ** 0.5", lambda: mc.Linear() ** 0.5),
        ("Polynomial(2, c=-1)", lambda: mc.Polynomial(2, c=-1)),
        ("Bilinear([[1, 2], [2, 1]])", lambda: mc.Bilinear([[1, 2], [2, 1]])),
        ("Linear() + Uniform(1.0)", lambda: mc.Linear() + mc.Uniform(1.0)),
        ("Linear() + Intersection()", lambda: mc.Linear() + mc.Intersection()),
        ("ThinPlate().on(0)", lambda: mc.ThinPlate().on(0)),
        ("Linear().on('a', 'a')", lambda: mc.Linear().on("a", "a")),
    ],
)
def test_errors_of_constructors_come_through(text, make):
    with pytest.raises(mc.InvalidInput) as own:
        make()
    with pytest.raises(mc.InvalidInput) as caught:
        parse(text)
    assert type(caught.value) is type(own.value)
    assert str(caught.value).startswith(f"{own.value}\n")
    assert pointed_at(caught.value) == text


def test_long_lines_and_control_characters_are_cut():
    with pytest.raises(mc.InvalidInput) as caught:
        parse(" + ".join(["Linear()"] * 50) + " + Gausian(1.0)" + " + Linear()" * 50)
    assert pointed_at(caught.value) == "Gausian"
    assert max(map(len, str(caught.value).split("\n"))) < 130
    with pytest.raises(mc.InvalidInput) as caught:
        parse("Linear().on('\x1b[31m') + x")
    assert "\x1b" not in str(caught.value)


def test_advice_for_foreign_names_is_known():
    for name, advice in ELSEWHERE.items():
        assert name == name.lower()
        for word in re.findall(r"\b([A-Z]\w+)\(", advice.replace("DotProduct(sigma_0)", "")):
            assert word in library()


@pytest.mark.parametrize("wrong", [None, 3, b"Linear()", mc.Linear()])
def test_only_text_is_parsed(wrong):
    with pytest.raises(mc.InvalidInput, match="must be text"):
        parse(wrong)


@pytest.mark.parametrize("text", ["", " \n", "\0", "\ud800", "Linear()\0"])
def test_texts_that_are_none(text):
    with pytest.raises(mc.InvalidInput, match="must"):
        parse(text)


# -- nothing is executed ----------------------------------------------------------------------------------------------

EVENTS: list[str] = []
WATCHED = ("exec", "import", "open", "os.", "subprocess.", "socket.", "ctypes.")


class Watch:
    """Records what the interpreter reports as executed."""

    on = False

    def __call__(self, event, arguments):
        if self.on and event.startswith(WATCHED):
            EVENTS.append(event)


WATCH = Watch()
sys.addaudithook(WATCH)


def watched(text):
    """What a text gives, having executed nothing."""
    parse("Linear()")
    EVENTS.clear()
    WATCH.on = True
    try:
        return parse(text)
    except mc.InvalidInput as error:
        return error
    finally:
        WATCH.on = False
        assert EVENTS == []


def test_the_watch_sees_what_is_executed():
    parse("Linear()")
    EVENTS.clear()
    WATCH.on = True
    eval("__import__('os').getpid()")
    WATCH.on = False
    assert "exec" in EVENTS


TRICKS = [
    "__import__('os').system('touch planted')",
    "open('planted', 'w')",
    "exec('import os')",
    "eval('Linear()')",
    "(lambda: Linear())()",
    "[Linear() for _ in range(3)][0]",
    "Sum(tuple(k for k in [Linear()]))",
    "{k for k in [1]}",
    "{k: 1 for k in [1]}",
    "Linear().on(f'{__import__(\"os\").getpid()}')",
    "Linear().on(f'age')",
    "(k := Linear())",
    "Linear().__class__()",
    "Linear().__class__.__bases__[0].__subclasses__()",
    "Linear().on.__func__.__globals__",
    "Linear().replace(sigma=1)",
    "Linear().get_params()",
    "Linear().with_theta([])",
    "Gaussian.mro()",
    "Gaussian._from('a', 1, abs)",
    "Gaussian.__init__(1)",
    "Gaussian(1.0).sigma.real",
    "Gaussian(_fixed=1)",
    "Gaussian(**{'sigma': 1.0})",
    "Gaussian(*[1.0])",
    "Linear().on(*['a'])",
    "Linear().on({**{}})",
    "[*[1]]",
    "Linear() if True else Gaussian()",
    "Linear() and Gaussian()",
    "not Linear()",
    "~Linear()",
    "Linear() < Gaussian()",
    "Linear() @ Linear()",
    "Linear() % 2",
    "Linear()[0]",
    "Linear()([[1.0]])",
    "Linear()(1)(2)",
    "exp.__call__(Linear())",
    "exp.__globals__",
    "Fixed.__init__",
    "mc.errors",
    "mc.kernels.dot.Linear()",
    "mc.__getattr__('Linear')()",
    "mercer.mercer.Linear()",
    "np.array([1])",
    "median_gaussian([[1.0]])",
    "tune()",
    "array.__class__",
    "await Linear()",
    "(yield)",
    "print('planted')",
    "Linear(); Gaussian()",
    "import os",
    "Linear().on(b'age')",
    "Linear().on(1j)",
    "Linear().on(...)",
    "Linear) + (Linear",
    "FromFunction(exp)",
    "FromFunction(Linear())",
    "After(Linear(), Linear())",
    "Linear().rescale(Linear())",
    "Kernel()",
    "Similarity()",
    "Weight()",
    "Node()",
    "__builtins__",
    "__debug__",
    "__name__",
]


@pytest.mark.parametrize("text", TRICKS)
def test_tricks_are_refused_and_nothing_is_executed(text, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert isinstance(watched(text), mc.InvalidInput)
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


# -- abuse and noise --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def counted_calls():
    """How many functions were called within: the work done, the same on every machine."""
    calls = 0

    def see(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield lambda: calls
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9 * Linear()",
        "Linear() ** 1001",
        "Linear() ** 10 ** 300",
        "Power(Linear(), 1e300)",
        "Polynomial(10000)",
        "Linear().on(99999999999999999999)",
        "1" * 5000,
        "Linear() * " + "9" * 4000,
        "(" * 150 + "Linear()" * 2 + ")" * 150,
        "(" * 10_000,
        "exp(" * 150 + "Linear()" + ")" * 150,
        "-" * 3000 + "1",
        "Linear()" + ".normalize()" * 150,
        "Linear()" + ".normalize()" * 20_000,
        "Linear()" + " * 2 * Linear()" * 700,
        "Linear() * " + "2 ** " * 3000 + "2",
        "lambda: " * 9000 + "1",
        "Gaussian([" + "-1," * 90_000 + "])",
        "Sum((" * 90 + "Delta()," * 3000 + "))," * 90,
        "Linear().on(" + "0," * 30_000 + ")",
        "x" * 290_000,
        "'" * 290_001,
        "'" + "a" * 400_000,
        "[" * 190 + "1" + "]" * 190,
    ],
    ids=lambda text: f"{text[:20]}…{len(text)}",
)
def test_abuse_is_refused_after_little_work(text):
    with counted_calls() as calls, pytest.raises(mc.InvalidInput) as caught:
        parse(text)
    assert calls() < 2_000_000, "work grows faster than the text"  # interpreters count calls differently
    assert len(str(caught.value)) < 1200


WORDS = """
    + - * / ** // @ ( ) [ ] { } , . : = := == < > | & ~ \\ ; # 1 0 -1 0.5 1e5 1e999 2.0 10 1j 'a' "b" 'é' b'a' f'{1}'
    None True False ... Linear() Gaussian(1.0) Delta() Intersection() Uniform(1.0) ThinPlate() Precomputed() Tanh()
    Linear Gaussian( Polynomial(2, Bilinear([[1.0]]) Sum(( Product(( Scaled( Fixed( exp( array([ Poly( On( sigma= c=
    degree= columns= nu=1.5 .on( .on('a') .poly([1,2]) .normalize() .exp() .after( .rescale(f) mc mc. mercer. np lambda
    if else for in not and or is await yield import x __class__ .__init__ _
"""
ODD = ["\n", "\t", " ", "\0", "\ud800", "é", "𝒌", "'", '"', "'''", "\\N{DIGIT ONE}", "'\\x'", "1if 1else 2", "'\\d'"]
TOKENS = [*WORDS.split(), *ODD]
NUMBERS = [
    "0",
    "1",
    "2",
    "-1",
    "0.0",
    "-0.0",
    "3.5",
    "1e-300",
    "1e300",
    "7e999",
    "Fixed(2)",
    "[1.0, 2.0]",
    "None",
    "1/3",
]


def mutated(text, rng):
    letters = list(text)
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(letters) + 1)
        j = min(len(letters), i + rng.randint(1, 8))
        match rng.randrange(6):
            case 0:
                del letters[i:j]
            case 1:
                letters[i:i] = rng.choice(TOKENS)
            case 2:
                letters[i:j] = rng.choice(TOKENS)
            case 3:
                letters[i:i] = letters[i:j]
            case 4:
                letters[i : i + 1] = [chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x3000))))]
            case 5:
                k = rng.randrange(len(letters) + 1)
                letters[k:k] = letters[i:j]
    return "".join(letters)


def varied(text, others, rng):
    """A text that is likely to be valid again."""
    other = rng.choice(others)
    match rng.randrange(4):
        case 0:
            places = [m.span() for m in re.finditer(r"\d[\d.e]*", text)] or [(0, 0)]
            start, end = rng.choice(places)
            return text[:start] + rng.choice(NUMBERS) + text[end:]
        case 1:
            return f"{text} {rng.choice('+*')} {other}"
        case 2:
            return rng.choice(
                ["({})" + m for m in (" ** 3", ".on('a')", ".normalize()", " / 2", ".poly([1, 2])")]
            ).format(text)
        case _:
            return rng.choice(
                ["exp({})", "Sum(({}, {}))", "Scaled(2, {})", "2 * 3 * {} * {}", "On({}, ('a',))"]
            ).format(text, other)


def texts(n, seed):
    rng = random.Random(seed)
    valid = [repr(kernel) for kernel in CASES]
    for _ in range(n):
        chance = rng.random()
        if chance < 0.5:
            yield mutated(rng.choice(valid), rng)
        elif chance < 0.8:
            yield varied(varied(rng.choice(valid), valid, rng), valid, rng)
        else:
            yield rng.choice(["", " "]).join(rng.choice(TOKENS) for _ in range(rng.randint(1, 12)))


@pytest.mark.thorough
def test_noise_gives_a_kernel_or_an_error_that_says_why():
    accepted = 0
    for text in texts(2500, seed=7):
        with counted_calls() as calls:
            try:
                value = watched(text)
            except Exception as error:
                pytest.fail(f"{text!r} raised {error!r}")
        assert calls() < 20_000, text
        if isinstance(value, mc.InvalidInput):
            continue
        accepted += 1
        assert isinstance(value, mc.Similarity)
        assert parse(repr(value)) == value, text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert eval(text.strip(), {}, Names()) == value, text
    assert accepted > 200


def test_odd_literals_warn_nobody():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert parse(r"Linear().on('\d')").columns == (r"\d",)
        with pytest.raises(mc.InvalidInput, match="`if` and `else`"):
            parse("1if 1else 2")
        watched("Bilinear([[1e308, 1e308], [1e308, 1e308]])")  # whose sums overflow
    assert seen == []


@pytest.mark.parametrize("text", ["Gaussian(**{'sigma': 1.0})", "Gaussian(*[1.0])", "Linear().on({**{}})"])
def test_unpacking_stars_are_named(text):
    with pytest.raises(mc.InvalidInput, match="got an unpacking star"):
        parse(text)


def test_limits_are_those_of_the_module():
    assert parse(f"Linear() ** {expression.HIGHEST_POWER}").exponent == expression.HIGHEST_POWER
    assert parse(f"Linear().on({expression.LARGEST_WHOLE - 1})").columns == (expression.LARGEST_WHOLE - 1,)
    name = "a" * (expression.MOST_CHARACTERS - len("Linear().on('')"))
    assert parse(f"Linear().on('{name}')").columns == (name,)
    with pytest.raises(mc.InvalidInput, match=f"at most {expression.MOST_CHARACTERS} characters"):
        parse(f"Linear().on('{name}a')")
    with pytest.raises(mc.InvalidInput, match=f"at most {expression.MOST_VALUES} values"):
        parse(f"Gaussian([{'1,' * expression.MOST_VALUES}])")
    with pytest.raises(mc.InvalidInput, match=f"at most {expression.MOST_KERNELS} kernels"):
        parse(f"Sum([{'Linear(),' * (expression.MOST_KERNELS + 1)}])")
    deep = "exp(" * (expression.DEEPEST_KERNEL - 1) + "Linear()" + ")" * (expression.DEEPEST_KERNEL - 1)
    assert repr(parse(deep)) == deep
    with pytest.raises(mc.InvalidInput, match=f"nested at most {expression.DEEPEST_KERNEL} deep"):
        parse(f"exp({deep})")
