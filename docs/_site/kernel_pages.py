"""The catalogue of kernels, from the classes: formula, use, parameters, proof, and a drawing of those on vectors.

A drawing has two parts. On the left is k(x, z) for three points z. On the right are functions drawn from a Gaussian
process with this covariance, which are the functions that a model with this kernel finds simple.
"""

import functools
import warnings

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


def grid(entry: Entry) -> np.ndarray | None:
    """Points on a line that the example takes, or None."""
    kernel = mc.parse(entry.example)
    for low, high in ((-3.0, 3.0), (0.0, 3.0)):
        x = np.linspace(low, high, POINTS)[:, None]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                values = kernel(x) if entry.kind in ("kernel", "indefinite") else kernel(x, x)
        except Exception:
            continue
        if np.isfinite(values).all() and np.ptp(values) > 0:
            return x
    return None


@functools.cache
def drawn() -> tuple[str, ...]:
    """The names of the kernels that have a drawing."""
    found = [e for e in entries() if e.space == "vectors" and e.textual and e.kind != "rule" and "[" not in e.example]
    return tuple(entry.name for entry in found if grid(entry) is not None)


def drawing(entry: Entry, look: str) -> str:
    """The drawing as SVG, in the light or the dark style."""
    import matplotlib.pyplot as plt

    kernel, x = mc.parse(entry.example), grid(entry)
    samples = entry.kind == "kernel"
    with mc.plot.style(look) as colours:
        figure, axes = plt.subplots(
            1, 1 + samples, figsize=(7.2 if samples else 3.7, 2.5), layout="constrained", squeeze=False
        )
        low, high = float(x.min()), float(x.max())
        centres = [low + share * (high - low) for share in (0.25, 0.5, 0.75)]
        for z, colour in zip(centres, colours.series):
            axes[0, 0].plot(x, kernel(x, np.array([[z]])), color=colour, lw=1.8, label=f"z = {z:.2g}")
        axes[0, 0].set(xlabel="x", title="k(x, z)")
        axes[0, 0].legend(fontsize=8)
        if samples:
            values, vectors = np.linalg.eigh(kernel(x))
            root = vectors * np.sqrt(np.clip(values, 0.0, None))
            draws = root @ np.random.default_rng(5).normal(size=(len(values), 3))
            for draw, colour in zip(draws.T, colours.series):
                axes[0, 1].plot(x, draw, color=colour, lw=1.5)
            axes[0, 1].set(xlabel="x", title="functions drawn from it")
        text = mc.plot.svg(figure, clear=True)
        plt.close(figure)
    return text


def figure(name: str, up: str) -> str:
    """The drawing as reStructuredText, in both styles; `up` leads to the top of the site."""
    entry = next(entry for entry in entries() if entry.name == name)
    alt = f"k(x, z) of {entry.example} for three points z" + (
        ", and three functions drawn from it" if entry.kind == "kernel" else ""
    )
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
        "The drawings show kernels on one number. Left: k(x, z) for three points z. Right: three functions drawn from "
        "a Gaussian process with this kernel as its covariance.\n"
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
