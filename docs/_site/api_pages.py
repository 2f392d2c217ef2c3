"""The API reference: a page for every public name, from `mercer.__all__`, in groups by task.

The group of a name is that of the module that it lives in, so that a new name needs no entry here. A page has the
docstring, the methods that Mercer defines, for a kernel its drawing, and the other names of its group.
"""

import inspect
from types import ModuleType

import kernel_pages

import mercer as mc
from mercer.kernels.base import Similarity

GROUPS = {
    "Kernels on vectors": ("mercer.kernels.vectors",),
    "Kernels on categories, sets and tables": ("mercer.kernels.discrete", "mercer.kernels.sets", "mercer.kernels.tables"),
    "Kernels on strings": ("mercer.kernels.strings",),
    "Kernels on graphs and molecules": ("mercer.kernels.graphs", "mercer.data.graphs", "mercer.data.tu", "mercer.features.molecules"),
    "Kernels on trees, point clouds and parts": ("mercer.kernels.trees", "mercer.kernels.distributions", "mercer.kernels.algebra.parts"),
    "Kernels on series and images": ("mercer.kernels.series", "mercer.kernels.images", "mercer.features.series", "mercer.features.images"),
    "Kernels of your own": ("mercer.kernels.custom", "mercer.kernels.base", "mercer.kernels.about", "mercer.kernels.spaces", "mercer.kernels.vocabulary", "mercer.kernels.algebra.parameters"),
    "Weights for smoothing, which are not kernels": ("mercer.kernels.weights",),
    "The algebra": ("mercer.kernels.algebra",),
    "Proofs, checks and counterexamples": ("mercer.kernels.validity", "mercer.kernels.algebra.proof", "mercer.testing"),
    "Gram matrices and explicit features": ("mercer.gram", "mercer.features"),
    "Functions and geometry in the Hilbert space": ("mercer.rkhs",),
    "Automatic models": ("mercer.models.auto",),
    "Regression": ("mercer.models.least_squares",),
    "Support vector machines": ("mercer.models.svm", "mercer.models.progress"),
    "Likelihoods": ("mercer.models.likelihood", "mercer.problems"),
    "Simple classifiers": ("mercer.models.discriminant", "mercer.models.perceptron"),
    "Local methods and densities": ("mercer.models.local", "mercer.models.density"),
    "Coordinates": ("mercer.models.kernel_pca", "mercer.models.pca"),
    "Tuning, comparison and intervals": ("mercer.models",),
    "Pictures and reports": ("mercer.plot", "mercer.report"),
    "Files": ("mercer.files",),
    "Errors": ("mercer.errors",),
    "The package": ("mercer.kernels", "mercer"),
}  # fmt: skip
"""Modules by group; the longest path that fits decides."""

CLASSIFIERS = ("mercer.models.least_squares.classifier",)


def group_of(module: str) -> str:
    """The group of a module.

    >>> group_of("mercer.kernels.vectors.radial"), group_of("mercer.models.tune")
    ('Kernels on vectors', 'Tuning, comparison and intervals')
    """
    if module in CLASSIFIERS:
        return "Simple classifiers"
    fits = [(len(path), group) for group, paths in GROUPS.items() for path in paths if f"{module}.".startswith(f"{path}.")]
    return max(fits)[1]


def home(name: str) -> str:
    return mc._NAMES.get(name) or mc._MODULES[name]


def slug(name: str) -> str:
    """The file of a name: functions and modules are marked, since some file systems do not tell Exp from exp."""
    value = getattr(mc, name)
    kind = "" if inspect.isclass(value) else "module-" if isinstance(value, ModuleType) else "function-"
    return f"{kind}{name}"


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
    base = Similarity if issubclass(cls, Similarity) and cls is not Similarity and cls.__module__ != Similarity.__module__ else None
    found: dict[str, None] = {}
    for one in cls.__mro__:
        if not one.__module__.startswith("mercer"):
            continue
        for name, value in vars(one).items():
            inner = getattr(value, "__func__", getattr(value, "fget", value))
            explained = inspect.isroutine(inner) and getattr(inner, "__doc__", None)
            if not name.startswith("_") and not name.endswith("_request") and explained and not (base and hasattr(base, name)):
                if base is None or one is cls:
                    found[name] = None
    return list(found)


def page(name: str, others: list[str]) -> str:
    value, path = getattr(mc, name), f"mercer.{name}"
    text = ":html_theme.sidebar_secondary.remove: false\n\n" + title(f"mercer.{name}")
    if isinstance(value, ModuleType):
        text += f".. automodule:: {value.__name__}\n   :no-members:\n\n"
        for member in members(value):
            directive = "autoclass" if inspect.isclass(getattr(value, member)) else "autofunction"
            text += f".. {directive}:: {value.__name__}.{member}\n"
            if directive == "autoclass":
                shown = methods(getattr(value, member))
                text += f"   :members: {', '.join(shown)}\n   :inherited-members: str, tuple, ValueError\n" if shown else ""
            text += "\n"
    elif inspect.isclass(value):
        shown = methods(value)
        text += f".. autoclass:: {path}\n"
        text += f"   :members: {', '.join(shown)}\n   :inherited-members: str, tuple, ValueError\n\n" if shown else "\n"
        if name in kernel_pages.drawn():
            text += kernel_pages.figure(name, "../../")
        if issubclass(value, Similarity) and name not in ("Similarity", "Kernel", "Weight"):
            text += "It has the methods of every :doc:`kernel <Kernel>`, and can be part of any expression.\n\n"
    else:
        text += f".. autofunction:: {path}\n\n"
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


def pages() -> dict[str, str]:
    """The pages by their places on the site."""
    groups = grouped()
    index = "# API\n\nEvery public name, by task. `import mercer as mc` loads nothing; a name loads when it is first used.\n"
    result = {}
    for group, names in groups.items():
        index += f"\n## {group}\n\n| name | |\n|---|---|\n"
        for name in names:
            index += f"| [`{name}`]({slug(name)}.rst) | {summary(getattr(mc, name))} |\n"
            result[f"reference/api/{slug(name)}.rst"] = page(name, [other for other in names if other != name][:24])
    toctree = "\n".join(slug(name) for names in groups.values() for name in names)
    result["reference/api/index.md"] = f"{index}\n\n```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"
    return result
