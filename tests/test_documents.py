"""The page of all names and the map of the house name what is there, all of it and nothing else."""

from __future__ import annotations

import ast
import inspect
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


def calls() -> list[tuple[str, str, list[str]]]:
    """Calls of public names in the tables of names from other libraries: the page, the name, the keywords."""
    found = []
    for path in sorted((TOP / "docs" / "howto").glob("from-*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for piece in re.findall(r"`([^`]+)`", line.split("|")[2] if line.startswith("| ") else ""):
                try:
                    tree = ast.parse(piece.replace("…", "..."))
                except SyntaxError:  # a fragment such as "family="
                    continue
                found += [
                    (path.name, node.func.id, [word.arg for word in node.keywords])
                    for node in ast.walk(tree)
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                ]
    return found


def test_the_tables_of_other_libraries_call_what_is_there():
    seen = calls()
    assert len(seen) > 40
    for page, name, keywords in seen:
        if name[0].isupper() or name in mc.__all__:
            assert name in mc.__all__, f"{page}: {name}"
            missing = set(keywords) - set(inspect.signature(getattr(mc, name)).parameters)
            assert not missing, f"{page}: {name}({missing})"


README = (TOP / "README.md").read_text(encoding="utf-8")


def test_the_readme_answers_in_the_order_of_a_newcomers_questions():
    assert re.findall(r"^## (.+)$", README, re.MULTILINE) == [
        "Install",
        "From a data frame to a model with intervals and a report",
        "Proofs and counterexamples",
        "What is there",
        "How fast",
        "Links",
    ]
    examples = re.findall(r"^```python\n(.*?)\n*```$", README, re.MULTILINE | re.DOTALL)
    model = next(example for example in examples if "import mercer as mc" in example)
    assert "AutoRegressor" in model
    assert len(model.splitlines()) <= 6


def test_every_link_of_the_readme_leads_somewhere():
    defined = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", README, re.MULTILINE))
    assert set(re.findall(r"\]\[([\w-]+)\]", README)) == set(defined)
    pictures = re.findall(r"src(?:set)?=\"([^\"]+)\"", README)
    assert len(pictures) == 4
    for path in [*defined.values(), *pictures]:
        assert (TOP / path).exists(), path


def test_every_cell_of_what_is_there_is_a_link():
    rows = README.partition("## What is there")[2].partition("\n\nAll models")[0].strip().splitlines()[2:]
    assert len(rows) == 6
    for row in rows:
        assert re.fullmatch(r"(\| \[[^\]]+\]\[\w+\] ){4}\|", row), row


def test_how_fast_in_the_readme_is_made_from_the_result_files(monkeypatch):
    """Table, machines, dates and picture: `docs/images/speed.py` writes all of them."""
    monkeypatch.syspath_prepend(str(TOP / "docs" / "_site"))
    monkeypatch.syspath_prepend(str(TOP / "docs" / "images"))
    import bench_pages
    import speed

    assert speed.GENERATED.findall(README) == [bench_pages.how_fast()]
    for look in ("light", "dark"):
        picture = (TOP / f"docs/images/speed-{look}.png").read_bytes()
        assert bench_pages.described(bench_pages.picture()).encode("latin-1") in picture
