"""Check the docstrings of all public names by rules of numpydoc: `make lint` runs it.

Every docstring on the pages of the API is read, and nothing is executed. The chosen rules are about what a reader sees.
"""

import inspect
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
HEADER = "examples after sections need the header Examples"


class Docstring(Validator):
    """A docstring by the path of its object; the code of the object is not read."""

    method_source = ""

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
    headless = ">>>" in text and "\n---" in text.partition(">>>")[0] and "\nExamples\n" not in text
    return [*broken, *([HEADER] if headless else [])]


def main() -> int:
    count, wrong = 0, 0
    for path in paths():
        count += 1
        for words in complaints(path):
            wrong += 1
            print(f"{path}: {words}")
    print(f"{count} docstrings, {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
