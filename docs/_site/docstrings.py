"""Check the docstrings by rules of numpydoc: `make lint` runs it.

Every docstring on the pages of the API is read, and nothing is executed. The chosen rules are about what a reader sees.
Of all other docstrings with sections two things are checked: examples have their header, and no sentence stands in the
place of a type.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from numpydoc.validate import Validator, get_doc_object, validate

sys.path.insert(0, str(Path(__file__).parent))

RULES = {
    "GL06": "a section with an unknown name",
    "GL07": "sections in another order than numpydoc's",
    "GL08": "no docstring",
    "PR02": "a parameter that the signature does not have",
    "PR05": "a type that ends in a full stop, so it is a description",
    "PR07": "a parameter without a description",
    "PR10": "a colon without a space before it",
    "RT03": "a return value without a description",
    "SS04": "a summary that starts with spaces",
}
TOP = Path(__file__).resolve().parents[2]
PROSE = re.compile(r"[\w*, ]+ : .*(\.|;.*|\b(the|whether) .*)$")
SENTENCE = "a sentence in the place of a type"
HEADER = "examples after sections need the header Examples"


class Docstring(Validator):
    """A docstring by the path of its object; the code of the object is not read."""

    method_source = ""
    source_file_name = source_file_def_line = None

    def __init__(self, obj_name: str) -> None:
        super().__init__(get_doc_object(Validator._load_obj(obj_name)))


def paths() -> Iterator[str]:
    """The import path of everything on the pages of the API."""
    import api_pages

    import mercer as mc

    for name in mc.__all__:
        value = getattr(mc, name)
        own = isinstance(value, ModuleType)
        for path in [f"{value.__name__}.{one}" for one in api_pages.members(value)] if own else [f"mercer.{name}"]:
            thing = getattr(value, path.rpartition(".")[2]) if own else value
            if inspect.isclass(thing):
                yield path
                yield from (f"{path}.{method}" for method in api_pages.methods(thing))
            elif inspect.isroutine(thing):
                yield path


def complaints(path: str) -> list[str]:
    """The rules that a docstring breaks, in words."""
    found = validate(path, Docstring)
    text = inspect.getdoc(Validator._load_obj(path)) or ""
    broken = [f"{words} ({code})" for code, words in found["errors"] if code in RULES and not (code == "GL08" and text)]
    return [*broken, *form(text)]


def form(text: str) -> list[str]:
    """Faults of a docstring with sections that its text alone shows.

    >>> form("Add.\\n\\nParameters\\n----------\\nx : the first number.\\n\\n>>> 1\\n1")
    ['examples after sections need the header Examples', 'a sentence in the place of a type: x : the first number.']
    """
    sections = re.split(r"\n(?=[A-Z]\w*(?: \w+)?\n-{3,}\n)", text)[1:]
    if not sections:
        return []
    headless = ">>>" in "".join(sections) and not any(section.startswith("Examples\n") for section in sections)
    lists = [section for section in sections if section.startswith(("Parameters\n", "Attributes\n", "Returns\n"))]
    entries = [line for section in lists for line in section.splitlines()[2:] if PROSE.match(line)]
    return [*([HEADER] if headless else []), *(f"{SENTENCE}: {line}" for line in entries)]


def internal() -> Iterator[tuple[str, str]]:
    """Docstrings of all modules, classes and functions of the package, with their places."""
    for path in sorted((TOP / "src/mercer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(TOP)}:{getattr(node, 'lineno', 1)}", text


def main() -> int:
    count, wrong = 0, 0
    found = ((path, complaints(path)) for path in paths())
    for path, words in (*found, *((place, form(text)) for place, text in internal())):
        count += 1
        for word in words:
            wrong += 1
            print(f"{path}: {word}")
    print(f"{count} docstrings, {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
