"""The catalogue of kernels, from the classes: formula, use, parameters, proof, and a drawing.

A drawing has two parts. On the left is k(x, z), for three numbers z or for all pairs of eight small objects. On the
right are functions drawn from a Gaussian process with this covariance, which are the functions that a model with this
kernel finds simple.
"""

import functools
import warnings
from typing import Any

import numpy as np

import mercer as mc
from mercer.kernels.catalogue import Entry, catalogue

POINTS = 240
SPACES = {
    "vectors": "Vectors",
    "categories": "Categories",
    "sets": "Sets",
    "strings": "Strings and token lists",
    "graphs": "Graphs",
    "trees": "Trees",
    "series": "Time series",
    "images": "Images",
    "table": "Tables",
    "indices": "Indices",
    "any": "Any objects",
}
KINDS = {
    "kernel": "",
    "conditional": "Conditionally positive definite: valid beside a polynomial, as in `RBFInterpolator`.",
    "weight": "A weight for smoothing only: it has no Hilbert space.",
    "indefinite": "Not a kernel: its matrix can have negative eigenvalues.",
    "rule": "",
}


@functools.cache
def entries() -> tuple[Entry, ...]:
    return tuple(catalogue())


@functools.cache
def grid(entry: Entry) -> np.ndarray | None:
    """Points on a line that the example takes, or None if it is for other objects or for several columns."""
    if entry.space in objects() and entry.space != "vectors":
        return None
    kernel = mc.parse(entry.example)
    for low, high in ((-3.0, 3.0), (0.0, 3.0)):
        x = np.linspace(low, high, POINTS)[:, None]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                values = kernel(x, x)
        except Exception:
            continue
        if np.isfinite(values).all() and np.ptp(values) > 0:
            return x
    return None


@functools.cache
def objects() -> dict[str, tuple[list[str], Any]]:
    """Eight small objects with their names, by space."""

    def box(top: int, left: int, height: int, width: int) -> np.ndarray:
        image = np.zeros((8, 8))
        image[top : top + height, left : left + width] = 1.0
        return image

    def graph(edges: list[tuple[int, int]], labels: str, bonds: str) -> mc.Graph:
        degrees = np.bincount(np.ravel(edges)).astype(float)
        return mc.Graph(
            edges, labels=labels[: len(degrees)], edge_labels=bonds[: len(edges)], attributes=degrees[:, None]
        )

    graphs = {f"ring of {n}": graph([(i, (i + 1) % n) for i in range(n)], "CCCCCC", "-=-=-=") for n in (4, 5, 6)}
    graphs |= {f"path of {n}": graph([(i, i + 1) for i in range(n - 1)], "NCNCNC", "------") for n in (4, 5, 6)}
    graphs |= {f"star of {n}": graph([(0, i) for i in range(1, n)], "OCCCCC", "======") for n in (5, 6)}
    time, rng = np.linspace(0.0, 1.0, 24), np.random.default_rng(0)
    waves = {f"{f} wave{'s' * (f > 1)}, shift {shift:g}": (f, shift) for f in (1, 2) for shift in (0.0, 0.1, 0.2, 0.3)}
    angles = np.arange(0, 360, 45)
    counts = [(6, 0, 0), (4, 2, 0), (2, 4, 0), (0, 6, 0), (0, 4, 2), (0, 2, 4), (0, 0, 6), (2, 2, 2)]
    colours = ["red", "red", "red", "green", "green", "blue", "blue", "grey"]
    sets = ["a", "ab", "abc", "bc", "bcd", "cd", "d", "de"]
    strings = ["abcabc", "abcabb", "abcacb", "cabcab", "bbbccc", "bbbccb", "aaaaaa", "aaabaa"]
    trees = ["(S (N dog) (V runs))", "(S (N cat) (V runs))", "(S (N dog) (V sits))", "(S (N dog))",
             "(Q (V runs))", "(Q (V runs) (N dog))", "(N dog)", "(V runs)"]  # fmt: skip
    boxes = {"square": (1, 1, 3, 3), "square, moved by 2": (1, 3, 3, 3), "square, far away": (4, 4, 3, 3),
             "large square": (2, 2, 4, 4), "bar": (0, 3, 8, 1), "bar, moved": (0, 5, 8, 1), "lying bar": (3, 0, 1, 8),
             "lying bar, moved": (5, 0, 1, 8)}  # fmt: skip
    clouds = [(-2.0, 0.3), (-1.0, 0.3), (0.0, 0.3), (1.0, 0.3), (2.0, 0.3), (0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]
    return {
        "vectors": (
            [f"{a}°" for a in angles],
            np.column_stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))]),
        ),
        "histograms": ([" ".join(map(str, row)) for row in counts], np.array(counts, dtype=float)),
        "categories": (colours, np.array(colours, dtype=object)[:, None]),
        "sets": ([f"{{{', '.join(one)}}}" for one in sets], [set(one) for one in sets]),
        "strings": (strings, strings),
        "trees": (trees, trees),
        "graphs": ([*graphs], [*graphs.values()]),
        "series": ([*waves], [np.column_stack([time, np.sin(2 * np.pi * (f * time + s))]) for f, s in waves.values()]),
        "images": ([*boxes], np.array([box(*one) for one in boxes.values()])),
        "clouds": ([f"mean {m:g}, sd {s:g}" for m, s in clouds], [m + s * rng.normal(size=(30, 1)) for m, s in clouds]),
    }


@functools.cache
def drawn() -> tuple[str, ...]:
    """The names of the kernels that have a drawing: those whose example takes numbers or one of our objects."""
    return tuple(e.name for e in entries() if e.textual and (grid(e) is not None or e.space in objects()))


def functions(K: np.ndarray) -> np.ndarray:
    """Three functions drawn from the process with this covariance, one per column."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.clip(values, 0.0, None)) @ np.random.default_rng(5).normal(size=(len(K), 3))


def drawing(entry: Entry, look: str) -> str:
    """The drawing as SVG, in the light or the dark style."""
    import matplotlib.pyplot as plt

    with mc.plot.style(look) as colours:
        figure = on_objects(entry, colours) if grid(entry) is None else on_a_line(entry, colours)
        text = mc.plot.svg(figure, clear=True)
        plt.close(figure)
    return text


def on_a_line(entry: Entry, colours: Any) -> Any:
    import matplotlib.pyplot as plt

    kernel, x = mc.parse(entry.example), grid(entry)
    width = 7.2 if positive(entry) else 3.7
    figure, axes = plt.subplots(1, 1 + positive(entry), figsize=(width, 2.5), layout="constrained", squeeze=False)
    low, high = float(x.min()), float(x.max())
    for share, colour in zip((0.25, 0.5, 0.75), colours.series):
        z = low + share * (high - low)
        axes[0, 0].plot(x, kernel(x, np.array([[z]])), color=colour, lw=1.8, label=f"z = {z:.2g}")
    axes[0, 0].set(xlabel="x", title="k(x, z)")
    axes[0, 0].legend(fontsize=8)
    if positive(entry):
        for draw, colour in zip(functions(kernel(x)).T, colours.series):
            axes[0, 1].plot(x, draw, color=colour, lw=1.5)
        axes[0, 1].set(xlabel="x", title="functions drawn from it")
    return figure


def on_objects(entry: Entry, colours: Any) -> Any:
    """Cosines of all pairs, since objects differ in size, and functions of the objects."""
    import matplotlib.pyplot as plt

    names, points = objects()[entry.space]
    K = mc.parse(entry.example)(points)
    cosines = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    width = 8.4 if positive(entry) else 4.6
    figure, axes = plt.subplots(1, 1 + positive(entry), figsize=(width, 3.6), layout="constrained", squeeze=False)
    image = axes[0, 0].imshow(cosines, cmap=colours.amounts(), vmin=min(0.0, float(cosines.min())), vmax=1.0)
    figure.colorbar(image, ax=axes[0, 0], shrink=0.8)
    axes[0, 0].set_yticks(range(len(names)), names, fontsize=8)
    axes[0, 0].set_title("k(x, z) / √(k(x, x) k(z, z))", fontsize=10)
    if positive(entry):
        for draw, colour, mark in zip(functions(cosines).T, colours.series, "os^"):
            axes[0, 1].plot(draw, f"{mark}:", color=colour, lw=0.8)
        axes[0, 1].set_title("functions drawn from it", fontsize=10)
    for axis in axes[0]:
        axis.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    return figure


def positive(entry: Entry) -> bool:
    """Whether the example is positive semidefinite, so that functions can be drawn from it."""
    return entry.kind == "kernel" or (entry.kind == "rule" and entry.proven)


def figure(name: str, up: str) -> str:
    """The drawing as reStructuredText, in both styles; `up` leads to the top of the site."""
    entry = next(entry for entry in entries() if entry.name == name)
    where = "all pairs of eight objects" if grid(entry) is None else "three points z"
    alt = f"k(x, z) of {entry.example} for {where}" + (", and three functions drawn from it" if positive(entry) else "")
    return "".join(
        f".. image:: {up}images/kernels/{name}-{look}.svg\n   :alt: {alt}\n   :class: only-{look}\n\n"
        for look in ("light", "dark")
    )


def section(entry: Entry) -> str:
    text = f"\n### {entry.name}\n\n{entry.purpose}\n\n"
    text += f"- Formula: {escape(entry.formula)}\n- Example: `{entry.example}`\n"
    if entry.parameters:
        text += "- Parameters:\n"
        for one in entry.parameters:
            symbol = "" if one.symbol == one.name else f" ({escape(one.symbol)})"
            default = "required" if one.required else f"default `{one.default}`"
            text += f"  - `{one.name}`{symbol}: {escape(one.domain)}; {default}{'; free' if one.free else ''}\n"
    if entry.tags:
        text += f"- Properties of the example: {', '.join(entry.tags).replace('_', ' ')}\n"
    text += f"- {KINDS[entry.kind]}\n" if KINDS[entry.kind] else ""
    text += f"- Proof: {escape(entry.proof)}\n" if entry.proven else f"- No proof: {escape(entry.proof)}\n"
    text += f"- [API](api/{entry.name}.rst)\n" if entry.name in mc.__all__ else ""
    if entry.name in drawn():
        text += "\n```{eval-rst}\n" + figure(entry.name, "../") + "```\n"
    return text


def escape(text: str) -> str:
    for mark in ("\\", "*", "_", "|", "[", "]", "<", "`"):
        text = text.replace(mark, f"\\{mark}")
    return text


def pages() -> dict[str, str]:
    """The catalogue and its drawings, by their places on the site."""
    text = (
        "# Kernel catalogue\n\nAll kernels with formula, use and example, by the objects that they compare. This page "
        "is generated from the classes; `mercer kernels` prints the same list in the shell.\n\n"
        "The drawings show the examples on one number or on eight small objects. Left: k(x, z), for three numbers z or "
        "for all pairs of the objects (divided by the roots of k(x, x) and k(z, z), because objects differ in size). "
        "Right: three functions drawn from a Gaussian process with this kernel as its covariance; values at objects "
        "have dotted lines between them. Examples that hold a function of yours, a table or a matrix have no drawing.\n"
    )
    rest = [entry for entry in entries() if entry.kind != "rule"]
    spaces = [*SPACES, *sorted({e.space for e in rest} - set(SPACES))]
    for space in spaces:
        here = [entry for entry in rest if entry.space == space]
        if here:
            text += f"\n## {SPACES.get(space, space.capitalize())}\n" + "".join(section(entry) for entry in here)
    text += "\n## Rules of the algebra\n" + "".join(section(entry) for entry in entries() if entry.kind == "rule")
    result = {"reference/kernels.md": text}
    for entry in entries():
        if entry.name in drawn():
            for look in ("light", "dark"):
                result[f"images/kernels/{entry.name}-{look}.svg"] = drawing(entry, look)
    return result
