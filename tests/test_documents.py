"""The page of all names and the map of the house name what is there, all of it and nothing else."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import mercer as mc

TOP = Path(__file__).resolve().parent.parent
PACKAGE = Path(mc.__file__).parent

# Names that the table shows in another form, as operators, base classes, errors or modules.
ELSEWHERE = {
    *("After", "Constant", "Exp", "Normalized", "On", "Poly", "Power", "Product", "Rescaled", "Scaled", "Sum"),
    *("WeightOn", "WeightProduct", "Kernel", "Similarity", "Weight", "Tags", "Proof", "InvalidInput", "RuleBroken"),
    *("families", "links", "kernels", "rkhs", "testing"),
}


def table() -> list[str]:
    """The pieces of code in the table of all names."""
    text = (TOP / "docs" / "names.md").read_text(encoding="utf-8")
    return re.findall(r"`([^`]+)`", text.partition("## What is there")[2].partition("\n## ")[0])


def test_the_table_names_every_public_name():
    named = set(re.findall(r"\w+", " ".join(table())))
    assert set(mc.__all__) - named == ELSEWHERE - named
    assert not ELSEWHERE & named - {"kernels"}


def test_every_name_in_the_table_is_there():
    for piece in table():
        for name in re.findall(r"(?<![\w.\"])([A-Z][a-z]\w+|[a-z_]+(?=\())", piece):
            if name not in ("k", "clone", "set_params"):
                assert name in mc.__all__, piece
        for path in re.findall(r"\bmodels\.[\w.]+", piece):
            home, _, name = path.rpartition(".")
            assert hasattr(import_module(f"mercer.{home}"), name), piece


def mapped() -> dict[str, set[str]]:
    """Modules by folder, as the architecture page draws them."""
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = text.partition("    src/mercer/\n")[2].partition("\nImports go one way")[0]
    found: dict[str, set[str]] = {"": set()}
    folders: list[str] = []
    for line in block.splitlines():
        head = re.match(r"( {6,})(\w+)(/|\.py)", line)
        if head:
            depth = (len(head[1]) - 6) // 2
            folders = [*folders[:depth], head[2]] if head[3] == "/" else folders[:depth]
            found.setdefault(".".join(folders), set())
        found[".".join(folders)] |= set(re.findall(r"(?<![\w/])(\w+)\.py\b", line))
    return found


def test_the_map_of_the_house_is_the_house():
    tree: dict[str, set[str]] = {"": {"__init__"}}
    for path in PACKAGE.rglob("*.py"):
        folder = ".".join(path.relative_to(PACKAGE).parts[:-1])
        if not path.name.startswith("__"):
            tree.setdefault(folder, set()).add(path.stem)
    assert mapped() == tree


@pytest.mark.parametrize(
    "folder", sorted(".".join(path.relative_to(PACKAGE).parts[:-1]) for path in PACKAGE.rglob("*/__init__.py"))
)
def test_a_folder_opens_with_its_theory(folder):
    assert import_module(f"mercer.{folder}").__doc__
