"""Docstrings for Sphinx: they are plain text with `code`, in which reStructuredText sees marks that nobody meant.

`readable` runs before numpydoc. Text in single backticks becomes literal, and outside of it underscores at the end of a
word, bars and lone asterisks are escaped. Examples and lines of sections stay as they are.
"""

import re

CODE = re.compile(r"(``[^`]+``|`[^`\n]+`)")
EMPHASIS = re.compile(r"(?<![\w*])\*(?=\S)([^*`]*\S)\*(?![\w*])")
RULE = re.compile(r"\s*-{3,}\s*")


def plain(text: str) -> str:
    """A piece without code: marks are escaped, emphasis stays.

    >>> print(plain("alpha_ is *the* |penalty| of *args"))
    alpha\\_ is *the* \\|penalty\\| of \\*args
    """
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    text = EMPHASIS.sub(keep, text)
    text = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text.replace("|", r"\|").replace("*", r"\*"))
    return re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text)


def line(text: str) -> str:
    """A line of prose: code between backticks becomes literal text.

    >>> line("`alpha_` and the path_")
    '``alpha_`` and the path\\\\_'
    """
    pieces = CODE.split(text)
    return "".join(f"``{piece.strip('`')}``" if place % 2 else plain(piece) for place, piece in enumerate(pieces))


def readable(app, what, name, obj, options, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place."""
    example = False
    result: list[str] = []
    for text in lines:
        bare = text.strip()
        if bare.startswith(">>>"):
            example = True
        elif not bare:
            example = False
        result.append(text if example or RULE.fullmatch(text) else line(text))
    lines[:] = result
