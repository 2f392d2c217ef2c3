"""The page itself: a few elements as text, one style sheet, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STYLE = """
:root { --ink: #1f2328; --soft: #5b636b; --face: #ffffff; --card: #f6f7f8; --line: #dfe2e5; --bad: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #9aa2ab; --face: #16191d; --card: #1f2429; --line: #333a42; --bad: #f1796b; }
  .light { display: none; }
}
@media (prefers-color-scheme: light), print { .dark { display: none; } .light { display: block !important; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--face); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
p { margin: .4rem 0 .8rem; max-width: 72ch; } .soft { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: .9rem; margin: 1.3rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1.1rem; }
.tile b { display: block; font-size: 1.75rem; font-variant-numeric: tabular-nums; line-height: 1.2; }
.tile span { color: var(--soft); font-size: .86rem; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: .38rem .7rem; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; white-space: nowrap; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; overflow-x: auto;
  font: .84rem/1.5 ui-monospace, "Cascadia Mono", monospace; white-space: pre-wrap; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 1.2rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; } figcaption { color: var(--soft); font-size: .88rem; }
.warn { border-left: 4px solid var(--bad); background: var(--card); padding: .6rem .9rem; border-radius: 0 8px 8px 0; }
@media print { main { max-width: none; padding: 0; }
  h2 { break-after: avoid; } figure, .tile, tr { break-inside: avoid; }
  :root { --ink: #000; --soft: #444; --face: #fff; --card: #fff; --line: #bbb; --bad: #000; } }
@media (max-width: 520px) { .figures { grid-template-columns: 1fr; } }
"""


def page(title: str, subtitle: str, parts: Iterable[str]) -> str:
    """The whole document."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="soft">{escape(subtitle)}</p>\n{body}\n</main>\n</body>\n</html>\n'
    )


def section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{escape(text)}</p>"


def tiles(entries: Sequence[tuple[str, str, str]]) -> str:
    """Label, value and what is below it."""
    cards = "".join(
        f'<div class="tile"><span>{escape(label)}</span><b>{escape(value)}</b><span>{escape(below)}</span></div>'
        for label, value, below in entries
    )
    return f'<div class="tiles">{cards}</div>'


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[int] = ()) -> str:
    """Rows of texts; the columns at these positions are aligned as numbers."""

    def cells(row: Sequence[Any], tag: str) -> str:
        marks = (' class="n"' if j in numbers else "" for j in range(len(row)))
        return "".join(f"<{tag}{mark}>{escape(str(cell))}</{tag}>" for cell, mark in zip(row, marks))

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{cells(header, "th")}</tr></thead><tbody>{body}</tbody></table></div>'


def code(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def figures(pictures: Sequence[tuple[str, str, str]]) -> str:
    """Light and dark drawings with their captions."""
    cards = "".join(
        f'<figure><div class="light">{light}</div><div class="dark">{dark}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for light, dark, caption in pictures
    )
    return f'<div class="figures">{cards}</div>'
