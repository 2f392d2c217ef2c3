"""The site: links, generated pages and the checks of what was built, without building it; and the examples."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

import mercer as mc

TOP = Path(__file__).resolve().parent.parent
SITE = TOP / "docs" / "_site"
EXAMPLES = sorted((TOP / "examples").rglob("*.py"))


@pytest.fixture(autouse=True)
def site_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))


def test_every_link_of_every_page_leads_somewhere():
    import pages

    for path in pages.places():
        assert pages.staged(path)  # a link that leads nowhere ends the program


def test_a_link_that_leads_nowhere_is_named(tmp_path, monkeypatch):
    import pages

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "lost.md").write_text("[away](nowhere.md)")
    monkeypatch.setattr(pages, "TOP", tmp_path)
    monkeypatch.setattr(pages, "PLACES", {})
    with pytest.raises(SystemExit, match=r"lost\.md: the link to nowhere\.md leads nowhere"):
        pages.staged("docs/lost.md")


def test_links_follow_pages_to_their_places_and_examples_become_pictures():
    import pages

    assert "](../howto/tables.md)" in pages.staged("docs/first-table.md")
    assert "```{figure} ../gallery/kernels/images/sphx_glr_rings_001.png" in pages.staged("docs/learn/lecture-000.md")
    assert "[`examples/kernels/conics.py`](../gallery/kernels/conics.rst)" in pages.staged("docs/theory.md")
    assert re.search(r"toctree.*\ninstall\nten-lines\nfirst-table\n", pages.staged("docs/start/index.md"), re.DOTALL)


def test_names_of_classes_lead_to_the_reference():
    import pages

    text = pages.staged("docs/start/which-kernel.md")
    assert "| [`Matern`](../reference/api/Matern.rst) |" in text
    assert "[`mc.AutoRegressor`](../reference/api/AutoRegressor.rst)" in text
    assert "`mc.table_kernel(frame)`" in text
    assert "[[`" not in text
    assert "](../reference/api" not in pages.staged("docs/reference/glossary.md").partition("| activation")[0]


def test_every_page_is_in_a_table_of_contents():
    import pages

    known = pages.places()
    listed = set()
    for path, place in known.items():
        if Path(place).name == "index.md":
            inside = pages.staged(path).rpartition("```{toctree}")[2]
            listed |= {(Path(place).parent / line).as_posix() for line in inside.split() if line[0] not in ":`"}
    assert {place.removesuffix(".md") for place in known.values()} - listed == {"index"}


def test_every_public_name_has_a_page_and_a_group():
    import api_pages

    groups = api_pages.grouped()
    assert sorted(name for names in groups.values() for name in names) == sorted(mc.__all__)
    alike = [name for name in mc.__all__ if sum(name.lower() == other.lower() for other in mc.__all__) > 1]
    slugs = {api_pages.slug(name).lower() for name in alike}  # of the others, which are many, nothing is imported
    assert len(alike) == len(slugs) > 0  # also where file names ignore case
    with pytest.raises(SystemExit, match="no group"):
        api_pages.group_of("mercer.nonsense")


def test_every_class_says_when_not_to_use_it():
    import api_pages

    advice, bases = api_pages.advice(), {"Similarity", "Weight"}
    assert set(advice) <= set(mc.__all__)
    wanted = {name for name in mc.__all__ if name[0].isupper()}
    errors = {name for name in wanted if api_pages.home(name) == "mercer.errors"}
    records = {"About", "Axiom", "Proof", "RuleBroken", "Separable", "SolverProgress", "Space", "Tags", "Unproven"}
    assert wanted - set(advice) <= bases | errors | records


def test_every_page_of_the_api_leads_to_others():
    import api_pages

    assert all(len(names) > 1 for names in api_pages.grouped().values())


def test_the_advice_stands_before_the_methods():
    import api_pages

    text = api_pages.documented("mercer.Graph", mc.Graph, "**Not if** it is a tree.\n\n")
    assert 0 < text.index("   **Not if**") < text.index("automethod")


def test_internals_of_kernels_are_not_on_their_pages():
    import api_pages

    assert api_pages.methods(mc.Gaussian)[:2] == ["from_gamma", "from_variance"]
    assert "tile" not in api_pages.methods(mc.Gaussian)
    assert {"fit", "predict", "save", "loo_score_"} <= set(api_pages.methods(mc.KernelRidge))


def test_every_kernel_has_a_drawing_unless_its_example_holds_what_only_the_reader_has():
    pytest.importorskip("matplotlib")
    import kernel_pages

    yours = {"After", "Convolution", "FromFeatures", "FromFunction", "Rescaled"}
    tables_and_matrices = {"On", "Typed", "Precomputed", "WeightedCounts"}
    trivial_or_of_two_columns = {"Constant", "WeightProduct"}
    without = {entry.name for entry in kernel_pages.entries()} - set(kernel_pages.drawn())
    assert without == yours | tables_and_matrices | trivial_or_of_two_columns
    page = kernel_pages.section(next(entry for entry in kernel_pages.entries() if entry.name == "Jaccard"))
    assert "all pairs of eight objects, and three functions drawn from it" in page
    svg = kernel_pages.drawing(next(entry for entry in kernel_pages.entries() if entry.name == "Spectrum"), "dark")
    assert "abcacb" in svg
    assert "functions drawn from it" in svg


def test_the_page_of_commands_names_every_command_and_its_options():
    import command_pages

    from mercer.cli.app import app

    text = command_pages.pages()["reference/commands.md"]
    for command in app.registered_commands:
        assert f"## mercer {command.name or command.callback.__name__}\n" in text
    assert "The column to predict, or its number (-1: the last)" in text
    assert "| `--seed` `N` | Seed of the random numbers. Default: `0`. |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)  # a bar in a cell would start another one


def test_commands_in_documents_exist_with_their_options():
    import command_pages

    sections = command_pages.pages()["reference/commands.md"].split("\n## mercer ")[1:]
    options = {text.split()[0]: set(re.findall(r"`(--?[\w-]+)`", text)) | {"--help"} for text in sections}
    seen = 0
    for path in (TOP / "docs").rglob("*.md"):
        for line in re.findall(r"(?:^    |`)mercer (\w+[^`\n]*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            name, *words = re.split(r"[\s,;]+", line)
            assert name in options, f"{path.name}: mercer {line}"
            used = {word.strip("[].,;)|") for word in words if re.match(r"\[?--?[a-z]", word)}
            used = {one for word in used for one in word.split("|")[:1]}
            assert used <= options[name], f"{path.name}: mercer {line}"
            seen += len(used)
    assert seen > 50


def site(folder: Path, body: str) -> Path:
    (folder / "index.html").write_text(f"<html><body><h1 id='top'>x</h1>{body}</body></html>")
    return folder


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<script src='https://cdn.example/x.js'></script>", "from the network"),
        ("<link rel='stylesheet' href='//cdn.example/x.css'>", "from the network"),
        ("<a href='gone.html'>x</a>", "leads nowhere"),
        ("<img src='gone.png'>", "leads nowhere"),
        ("<a href='#gone'>x</a>", "an anchor that is not there"),
    ],
)
def test_the_checks_of_a_built_site_find(tmp_path, body, words):
    from checks import complaints

    assert words in " ".join(complaints(site(tmp_path, body)))


def test_the_checks_accept_links_that_are_there(tmp_path):
    from checks import complaints

    assert complaints(site(tmp_path, "<a href='#top'>x</a><a href='https://example.org'>x</a>")) == []
    (tmp_path / "x.css").write_text("@import 'https://cdn.example/y.css';")
    (tmp_path / "x.js").write_text("fetch('https://example.org/z')")
    assert len(complaints(tmp_path)) == 2


def test_docstrings_are_checked_for_what_readers_see(tmp_path, monkeypatch):
    pytest.importorskip("numpydoc")
    import docstrings

    lines = ["One line.", "", "Parameters", "----------", "y : int", "    A number.", "", ">>> 1", "1"]
    (tmp_path / "planted.py").write_text(
        "def f(x):\n    " + "\n    ".join(['"""' + lines[0], *lines[1:], '"""']) + "\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = " ".join(docstrings.complaints("planted.f"))
    assert "PR02" in words
    assert docstrings.HEADER in words
    assert docstrings.complaints("mercer.KernelRidge") == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_the_style_of_the_library(path):
    text = path.read_text(encoding="utf-8")
    lines = ast.get_docstring(ast.parse(text)).splitlines()
    assert lines[1] == "=" * len(lines[0]), "a title with a line below it"
    assert "rcParams" not in text
    assert "savefig" not in text
    assert (path.parent / "GALLERY_HEADER.rst").exists()


def test_the_text_between_parts_of_an_example_is_about_this_example():
    found: dict[str, str] = {}
    for path in EXAMPLES:
        for part in path.read_text(encoding="utf-8").split("\n# %%\n")[1:]:
            text = " ".join(line.removeprefix("#").strip() for line in part.splitlines() if line.startswith("#"))
            assert text not in found, f"{path.stem} and {found[text]}: {text}"
            found |= {text: path.stem} if text else {}
    assert len(found) > len(EXAMPLES)


SLOW = {
    "classic_smoothing", "conditional_density", "denoised_digits", "descent", "digits_polynomial", "fast_to_train",
    "growing_dimension", "image_patches", "lecture_003", "smart_nearest_neighbour",
}  # fmt: skip
"""Examples that take about half a second or more."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.thorough] * (path.stem in SLOW)) for path in EXAMPLES],
)
def test_an_example_runs_and_draws(path, monkeypatch, capsys):
    import matplotlib.pyplot as plt

    pytest.importorskip("rdkit")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(sys, "argv", [str(path)])
    try:
        runpy.run_path(str(path), run_name="__main__")
        assert all(figure.get_axes() for figure in map(plt.figure, plt.get_fignums()))
        assert plt.get_fignums()
    finally:
        plt.close("all")
