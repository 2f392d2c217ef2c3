"""What is private to a folder of the library stays there: no other folder reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

import mercer

ROOT = Path(mercer.__file__).parent
FOLDERS = [
    "_loops", "cli", "data", "features", "gram", "kernels", "models", "plot", "problems", "rkhs", "smoothing",
    "solvers", "threads.py", "tuning",
]  # fmt: skip
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public, by their documentation
STANDARD = {"_exit", "_getframe"}  # of os and sys, likewise
SCIKIT_LEARN = {"_init_callback_context"}  # the method that its callbacks ask estimators to call
DASK = {"_meta", "_meta_nonempty"}  # the types of a frame's columns as a small frame of pandas: there is no other way
FOREIGN = NAMED_TUPLES | STANDARD | SCIKIT_LEARN | DASK


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in FOREIGN


def modules(folder: str) -> list[Path]:
    place = ROOT / folder
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def nodes(text: str) -> list[ast.AST]:
    """The nodes of the syntax tree that define or use names."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Name, ast.Attribute, ast.ImportFrom)
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def defined(found: Iterable[ast.AST]) -> set[str]:
    """The names that these nodes define: functions, fields of classes, attributes that they set."""
    names = set()
    for node in found:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def of_others(found: Iterable[ast.AST], own: set[str]) -> list[tuple[int, str]]:
    """Where a module reads a private attribute of another folder's object, or imports a private name."""
    violations = []
    for node in found:
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own:
            inherited = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            violations += [] if inherited else [(node.lineno, ast.unparse(node))]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mercer."):
            violations += [(node.lineno, f"{node.module}.{name.name}") for name in node.names if private(name.name)]
    return sorted(violations)


@pytest.mark.thorough
@pytest.mark.parametrize("folder", FOLDERS)
def test_private_attributes_are_read_only_in_their_folder(folder):
    found = {path: nodes(path.read_text(encoding="utf-8")) for path in modules(folder)}
    own = defined(chain.from_iterable(found.values()))
    violations = [
        f"{path.relative_to(ROOT)}:{line} {what}" for path, some in found.items() for line, what in of_others(some, own)
    ]
    assert violations == []


def test_the_check_sees_what_it_is_for():
    found = nodes("def f(self, gram):\n    self._own = gram._K\n    return gram._own\nfrom mercer.gram import _x")
    assert of_others(found, defined(found)) == [(2, "gram._K"), (4, "mercer.gram._x")]


def test_no_solver_imports_a_kernel():
    for path in modules("solvers"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""] + [f"{node.module}.{name.name}" for name in node.names]
            assert not any(name.startswith("mercer.kernels") for name in names), path
