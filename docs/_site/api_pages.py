"""The API reference: a page for every public name, from `mercer.__all__`, in groups by task.

The group of a name is that of the module that it lives in, so that a new name needs no entry here. A page has the
docstring, the methods that Mercer defines, for a kernel its drawing, and the other names of its group.
"""

import functools
import inspect
import re
from textwrap import indent
from types import ModuleType

import kernel_pages
from pages import TOP
from pages import examples as pages_of_examples

import mercer as mc
from mercer.kernels.base import Similarity

GROUPS = {
    "Kernels on vectors": "kernels.vectors",
    "Kernels on categories, sets and tables": "kernels.discrete kernels.sets kernels.tables",
    "Kernels on strings": "kernels.strings",
    "Kernels on graphs and molecules": "kernels.graphs data.graphs data.tu features.molecules",
    "Kernels on trees, point clouds and parts": "kernels.trees data.trees kernels.distributions kernels.algebra.parts",
    "Kernels on series and images": "kernels.series kernels.images features.series features.images",
    "Kernels of your own": "kernels.custom kernels.base kernels.about kernels.spaces kernels.vocabulary "
    "kernels.algebra.parameters",
    "Weights for smoothing, which are not kernels": "kernels.weights",
    "The algebra": "kernels kernels.algebra",
    "Proofs, checks and counterexamples": "kernels.validity kernels.algebra.proof testing",
    "Gram matrices and explicit features": "gram features",
    "Functions and geometry in the Hilbert space": "rkhs",
    "Automatic models": "models.auto",
    "Regression": "models.least_squares",
    "Support vector machines": "models.svm models.progress",
    "Likelihoods": "models.likelihood problems",
    "Perceptrons and least-squares classifiers": "models.perceptron models.least_squares.classifier",
    "Local methods and densities": "models.local models.density",
    "Discriminants and coordinates": "models.discriminant models.kernel_pca",
    "Tuning, comparison and intervals": "models",
    "Pictures and reports": "plot report",
    "Files and clusters": "files data.batches data.dask_rows data.dask_files smoothing.distributed",
    "Errors": "errors",
}
"""Modules by group; the longest path that fits decides."""


def group_of(module: str) -> str:
    """The group of a module.

    >>> group_of("mercer.kernels.vectors.radial"), group_of("mercer.models.tune")
    ('Kernels on vectors', 'Tuning, comparison and intervals')
    """
    fits = [
        (len(path), group)
        for group, paths in GROUPS.items()
        for path in paths.split()
        if f"{module}.".startswith(f"mercer.{path}.")
    ]
    if not fits:
        raise SystemExit(f"{module}: no group of the API reference has this module; add it to GROUPS in {__file__}")
    return max(fits)[1]


def home(name: str) -> str:
    return mc._NAMES.get(name) or mc._MODULES[name]


def slug(name: str) -> str:
    """The file of a name: lower-case names are marked, since some file systems do not tell Exp from exp."""
    if name[0].isupper():
        return name
    return f"{'module' if isinstance(getattr(mc, name), ModuleType) else 'function'}-{name}"


def summary(value: object) -> str:
    """The first sentence of the docstring, as text of a table cell."""
    first = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return first.replace("|", "\\|")


def grouped() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in sorted(mc.__all__, key=str.lower):
        found[group_of(home(name))].append(name)
    return {group: names for group, names in found.items() if names}


def title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def methods(cls: type) -> list[str]:
    """Public methods and properties that Mercer defines and explains; of a kernel only those that others lack."""
    shared = issubclass(cls, Similarity) and cls.__module__ != Similarity.__module__
    found: dict[str, None] = {}
    for one in cls.__mro__[:1] if shared else cls.__mro__:
        if one.__module__.startswith("mercer"):
            for name in vars(one):
                value = inspect.getattr_static(cls, name)
                inner = getattr(value, "__func__", getattr(value, "fget", value))
                explained = inspect.isroutine(inner) and inspect.getdoc(getattr(cls, name))
                hidden = name.startswith("_") or name.endswith("_request") or (shared and hasattr(Similarity, name))
                if explained and not hidden:
                    found[name] = None
    return list(found)


def signature(function: object) -> str:
    """The signature without types, which the sections of the docstring name."""
    try:
        found = inspect.signature(function)
    except ValueError:  # a class that derives from a built-in type
        return ""
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def documented(path: str, value: object, note: str = "") -> str:
    """The directives of a class with a note before its methods, of a function, or of a value."""
    if not inspect.isclass(value):
        return (
            f".. autofunction:: {path}\n\n" if inspect.isroutine(value) else f".. autodata:: {path}\n   :no-value:\n\n"
        )
    text = f".. autoclass:: {path}{signature(value)}\n\n{indent(note, '   ')}"
    for name in methods(value):
        held = isinstance(inspect.getattr_static(value, name), (property, functools.cached_property))
        kind = "autoproperty" if held else "automethod"
        text += f"   .. {kind}:: {path}.{name}\n\n"
    return text


@functools.cache
def uses() -> dict[str, list[tuple[str, str]]]:
    """The title and the place of the examples that use a public name, by the name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for place in pages_of_examples().values():
        text = (TOP / "examples" / f"{place}.py").read_text(encoding="utf-8")
        for name in sorted(set(re.findall(r"\bmc\.(\w+)", text)) & set(mc.__all__)):
            found.setdefault(name, []).append((text.splitlines()[1], place))
    return found


@functools.cache
def advice() -> dict[str, list[tuple[str, str]]]:
    """What a class is for and when not to use it, by its name, from the pages "Which model?" and "Which kernel?"."""
    found: dict[str, list[tuple[str, str]]] = {}
    texts = [(TOP / f"docs/start/which-{kind}.md").read_text(encoding="utf-8") for kind in ("model", "kernel")]
    for line in "\n".join(texts).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3:
            for name in re.findall(r"`(\w+)", cells[1]):
                found.setdefault(name, []).append((cells[0], cells[2]))
    return found


def linked(text: str, own: str) -> str:
    """Code in a sentence: public names lead to their pages, except to the own one.

    >>> linked("`Matern` or `alpha`", "Gaussian")
    ':doc:`Matern <Matern>` or ``alpha``'
    """
    known = set(mc.__all__) - {own}
    return re.sub(
        r"`([^`]+)`", lambda code: f":doc:`{code[1]} <{slug(code[1])}>`" if code[1] in known else f"`{code[0]}`", text
    )


def note(name: str) -> str:
    """The drawing of a kernel, and what a class is for."""
    value = getattr(mc, name)
    text = kernel_pages.figure(name, "../../") if name in kernel_pages.drawn() else ""
    if inspect.isclass(value) and issubclass(value, Similarity) and name not in ("Similarity", "Kernel", "Weight"):
        text += "It has the methods of every :doc:`kernel <Kernel>`, and can be part of any expression.\n\n"
    for purpose, limit in advice().get(name, []):
        text += linked(f"**Use it for**: {purpose}. **Not if** {limit}.\n\n", name)
    return text


def page(name: str, others: list[str]) -> str:
    value = getattr(mc, name)
    text = title(name)
    if isinstance(value, ModuleType):
        text += f".. automodule:: {value.__name__}\n   :no-members:\n\n"
        text += "".join(documented(f"{value.__name__}.{one}", getattr(value, one)) for one in members(value))
    else:
        text += documented(f"mercer.{name}", value, note(name))
    if name in uses():
        lines = "\n".join(f"* :doc:`{words} </gallery/{place}>`" for words, place in uses()[name][:12])
        text += f".. rubric:: In the gallery\n\n{lines}\n\n"
    if others:
        links = " · ".join(f":doc:`{other} <{slug(other)}>`" for other in others)
        text += f".. rubric:: See also\n\n{links}\n"
    return text


def members(module: ModuleType) -> list[str]:
    """The classes and functions of a module that it shows."""
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]  # fmt: skip
    return [name for name in names if name not in mc._NAMES and callable(getattr(module, name))]


def listed(names: list[str]) -> str:
    """The table of some names with the first sentence of each."""
    rows = "".join(f"| [`{name}`]({slug(name)}.rst) | {summary(getattr(mc, name))} |\n" for name in names)
    return f"| name | |\n|---|---|\n{rows}"


def toctree(places: list[str]) -> str:
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(places) + "\n```\n"


def pages() -> dict[str, str]:
    """The pages by their places on the site: one for all names, one for each group, one for each name."""
    groups = grouped()
    index = "# API\n\nEvery public name, by task, as you write it after `import mercer as mc`.\n"
    places, result = [], {}
    for group, names in groups.items():
        index += f"\n## {group}\n\n{listed(names)}"
        places.append("group-" + re.sub(r"\W+", "-", group.lower()))
        result[f"reference/api/{places[-1]}.md"] = f"# {group}\n\n{listed(names)}{toctree([*map(slug, names)])}"
        for name in names:
            result[f"reference/api/{slug(name)}.rst"] = page(name, [other for other in names if other != name][:24])
    result["reference/api/index.md"] = index + toctree(places)
    return result
