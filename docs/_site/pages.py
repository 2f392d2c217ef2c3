"""The Markdown pages of the repository as pages of the site: which there are, where they stand, and their links.

Pages stay readable in the repository: their links lead to other files there. On the site, a link to a page leads to its
place, a link to an example to the gallery, and a link to a source file becomes plain text. The name of a public class
leads to its page of the API. An index page is an ordinary list of links; the table of contents of its section follows
this list. A link to an example that is a paragraph of its own becomes the picture of the example.
"""

import os
import re
from pathlib import Path, PurePosixPath

import mercer as mc

TOP = Path(__file__).resolve().parents[2]

PLACES = {
    "docs/first-table.md": "start/first-table.md",
    "docs/guide.md": "learn/guide.md",
    "docs/automatic.md": "howto/automatic.md",
    "docs/command-line.md": "howto/command-line.md",
    "docs/graphs.md": "howto/graphs.md",
    "docs/images.md": "howto/images.md",
    "docs/linear.md": "howto/linear.md",
    "docs/local.md": "howto/local.md",
    "docs/objects.md": "howto/objects.md",
    "docs/plots.md": "howto/plots.md",
    "docs/regression.md": "howto/regression.md",
    "docs/series.md": "howto/series.md",
    "docs/strings.md": "howto/strings.md",
    "docs/svm.md": "howto/svm.md",
    "docs/tables.md": "howto/tables.md",
    "docs/your-own-kernel.md": "howto/your-own-kernel.md",
    "docs/large-data.md": "howto/large-data.md",
    "docs/theory.md": "understand/theory.md",
    "docs/concepts.md": "understand/concepts.md",
    "docs/architecture.md": "understand/architecture.md",
    "benchmarks/README.md": "understand/measurements.md",
    "docs/names.md": "reference/names.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
}
"""Pages that do not stand where their section is; all other pages below docs/ keep their place."""

GENERATED = {
    "docs/reference/api/index.md": "reference/api/index.md",
    "docs/reference/kernels.md": "reference/kernels.md",
    "docs/reference/commands.md": "reference/commands.md",
    "docs/understand/benchmarks.md": "understand/benchmarks.md",
    "docs/gallery/index.rst": "gallery/index.rst",
}
"""Pages that exist on the site only."""

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
FIGURE = re.compile(r"^\[(?P<text>[^\]]+)\]\([^)\s]*examples/[\w/]*?(?P<name>\w+)\.py\)$", re.MULTILINE)
NAME = re.compile(r"(?<![\[`])`(?:mc\.)?(?P<name>[A-Z]\w+)`(?![`\]])")
EXAMPLE = re.compile(r"(?<!\[)`(?:python )?examples/([\w/]+)\.py(?: [^`]*)?`")


def places() -> dict[str, str]:
    """The place on the site by the path in the repository, of all pages."""
    found = {path: place for path, place in PLACES.items() if path != "README.md"}
    for path in sorted((TOP / "docs").rglob("*.md")):
        name = path.relative_to(TOP).as_posix()
        if name not in found and "/_" not in name:
            found[name] = name.removeprefix("docs/")
    return found


def relative(target: str, page: str) -> str:
    """The path from a page of the site to another file of the site.

    >>> relative("images/plots.png", "howto/plots.md")
    '../images/plots.png'
    """
    return os.path.relpath(target, PurePosixPath(page).parent).replace(os.sep, "/")


def examples() -> dict[str, str]:
    """The path of each example below examples/, by its name."""
    return {path.stem: path.relative_to(TOP / "examples").with_suffix("").as_posix()
            for path in sorted((TOP / "examples").rglob("*.py"))}  # fmt: skip


def staged(path: str) -> str:
    """The text of a page for the site."""
    known, where = places(), examples()
    place = known[path]
    home = PurePosixPath(path).parent

    def link(match: re.Match[str]) -> str:
        goal, anchor = match["path"], match["anchor"] or ""
        if not goal or re.match(r"[a-z]+:", goal):
            return match[0]
        target = os.path.normpath(home / goal).replace(os.sep, "/")
        if (TOP / target).is_dir():
            target += "/index.md" if f"{target}/index.md" in known else ""
        if target in PLACES or target in known:
            new = relative(known.get(target, PLACES.get(target, "")), place)
        elif target.startswith("docs/") and not target.endswith((".md", ".py")):
            new = relative(target.removeprefix("docs/"), place)
        elif target.startswith("examples/") and PurePosixPath(target).stem in where:
            new = relative(f"gallery/{where[PurePosixPath(target).stem]}.rst", place)
        elif target in GENERATED:
            new = relative(GENERATED[target], place)
        elif (TOP / target).exists():
            return match["text"]
        else:
            raise SystemExit(f"{path}: the link to {goal} leads nowhere")
        return f"{match['image']}[{match['text']}]({new}{anchor})"

    def example(match: re.Match[str]) -> str:
        name = match[1].rpartition("/")[2]
        if name not in where:
            raise SystemExit(f"{path}: there is no example {match[1]}.py")
        return f"[`examples/{where[name]}.py`]({relative(f'gallery/{where[name]}.rst', place)})"

    def named(match: re.Match[str]) -> str:
        known_name = match["name"] in mc.__all__
        api = relative(f"reference/api/{match['name']}.rst", place)
        return f"[{match[0]}]({api})" if known_name else match[0]

    def figure(match: re.Match[str]) -> str:
        folder, _, name = where[match["name"]].rpartition("/")
        picture = relative(f"gallery/{folder}/images/sphx_glr_{name}_001.png", place)
        page = relative(f"gallery/{folder}/{name}.html", place)
        return f"```{{figure}} {picture}\n:target: {page}\n:alt: {match['text']}\n\n{match['text']}\n```"

    text = FIGURE.sub(figure, (TOP / path).read_text(encoding="utf-8"))
    outside = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)  # links in code are not links
    for number, piece in enumerate(outside):
        plain = number % 2 == 0
        outside[number] = NAME.sub(named, EXAMPLE.sub(example, LINK.sub(link, piece))) if plain else closed(piece)
    text = "".join(outside)
    return text + contents(path, text) if PurePosixPath(place).name == "index.md" else text


def closed(piece: str) -> str:
    """A block of code without the empty line at its end, which doctests need."""
    return piece.replace("\n\n```", "\n```")


def contents(path: str, text: str) -> str:
    """The hidden table of contents of an index page that has none: pages below it that it links to, in their order."""
    if "```{toctree}" in text:
        return ""
    seen: dict[str, None] = {}
    for match in LINK.finditer(text):
        goal = match["path"]
        inside = goal and not goal.startswith(("..", "/")) and not match["image"]
        if inside and goal.endswith((".md", ".rst")) and not re.match(r"[a-z]+:", goal):
            seen[re.sub(r"\.(md|rst)$", "", goal)] = None
    if not seen:
        return ""
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(seen) + "\n```\n"
