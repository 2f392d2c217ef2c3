"""HTML: a few elements as text and one style sheet, without anything external."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any
from zlib import crc32

from mercer.ours import REPORT_MARK

STYLE = """
:root { --ink: #1f2328; --soft: #59616a; --face: #ffffff; --card: #f6f7f8; --line: #dfe2e5; --bad: #c0392b;
  --good: #0b7d67; --mark: #1f6fb2; --tint: #d9e7f4; color-scheme: light dark; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--face); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 0 0 .2rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p { margin: .4rem 0 .8rem; max-width: 76ch; } .soft { color: var(--soft); } .lead { font-size: 1.12rem; }
h1, h3, p, code, pre, figcaption { overflow-wrap: anywhere; } td { overflow-wrap: break-word; max-width: 26em; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: .9rem; margin: 1.3rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1.1rem; }
.tile b { display: block; font-size: 1.75rem; font-variant-numeric: tabular-nums; line-height: 1.25; }
.tile span { color: var(--soft); font-size: .86rem; display: block; }
a { color: var(--mark); }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; margin: .9rem 0 0; padding: 0;
  font-size: .9rem; }
nav a { display: inline-block; padding: .15rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; margin: .8rem 0; font-size: .94rem; }
dt { color: var(--soft); } dd { margin: 0; max-width: 76ch; overflow-wrap: anywhere; }
ul.limits { margin: .4rem 0 .8rem; padding-left: 1.2rem; max-width: 76ch; } .limits li { margin: .2rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 600; vertical-align: bottom; }
th, td { padding: .38rem 1.1rem .38rem 0; border-bottom: 1px solid var(--line); min-width: 3.2em; }
td { vertical-align: top; }
td.n, th.n { text-align: right; } td.n, td.range { white-space: nowrap; }
td.words { min-width: 13em; }
.meter { position: relative; min-width: 16em; height: 1.3em; }
.meter i { position: absolute; top: 15%; bottom: 15%; background: var(--mark); opacity: .75;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.meter.down i { background: var(--bad); }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--soft); }
.spark { display: block; width: 84px; height: 20px; fill: var(--mark); opacity: .75; }
table.small { width: auto; min-width: 50%; font-size: .86rem; }
code { font: .86em/1.5 ui-monospace, "Cascadia Mono", Menlo, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; margin: .6rem 0;
  font: .84rem/1.5 ui-monospace, "Cascadia Mono", Menlo, monospace; white-space: pre-wrap;
  max-height: 34em; overflow: auto; }
.proof, .proof ul { list-style: none; margin: 0; padding: 0; }
.proof ul { border-left: 1px solid var(--line); margin-left: .35rem; padding-left: 1.05rem; }
.proof li { padding: .28rem 0 0; } .proof span { display: block; color: var(--soft); font-size: .84rem; }
.proof li.axiom > span { color: var(--good); }
.proof li.unproven > span, .proof li.unproven > code { color: var(--bad); font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.6rem 1.2rem; }
figure:only-child { max-width: 560px; }
figure { margin: 0; } figcaption { color: var(--soft); font-size: .88rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
.warn { border-left: 4px solid var(--bad); background: var(--card); padding: .6rem .9rem; border-radius: 0 8px 8px 0; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a0a7af; --face: #191a1c; --card: #212428; --line: #363b42; --bad: #f1796b;
    --good: #4fc3a1; --mark: #6cb2eb; --tint: #24405a; }
  figure svg { filter: invert(.9) hue-rotate(180deg); }
}
@media print { :root { color-scheme: light; } body { font-size: 10.5pt; line-height: 1.4; }
  main { max-width: none; padding: 0; } nav { display: none; } a { color: inherit; text-decoration: none; }
  h2 { margin-top: 1.5rem; } .tiles { grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; }
  .tile { padding: .5rem .7rem; } .tile b { font-size: 1.35rem; }
  h2, h3, thead, p:has(+ .wide), p:has(+ pre) { break-after: avoid; } .wide + p { break-before: avoid; }
  figure, .tile, tr, pre, li, dd, p, table.small { break-inside: avoid; }
  .wide, pre { overflow: visible; max-height: none; }
  td { overflow-wrap: anywhere; } td.words { min-width: 0; }
  table { font-size: .78rem; } .figures { grid-template-columns: 1fr 1fr; } }
@media (max-width: 520px) { main { padding: 1.4rem .9rem 3rem; } h1 { font-size: 1.5rem; } }
"""


def page(title: str, subtitle: str, parts: Sequence[str]) -> str:
    """The whole document; its sections are listed at the top."""
    body = "\n".join([_contents([part.title_ for part in parts if isinstance(part, Section)]), *parts])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{REPORT_MARK}\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{paragraph(subtitle, 'soft')}\n{body}\n</main>\n</body>\n</html>\n"
    )


class Markup(str):
    """Text that is already HTML and must not be escaped."""

    __slots__ = ()


def markup(value: Any) -> str:
    """A value as HTML."""
    return value if isinstance(value, Markup) else escape(str(value))


class Section(Markup):
    """A section as HTML that knows its title."""

    title_: str


def section(title: str, *parts: str) -> Section:
    body = "\n".join(part for part in parts if part)
    html = Section(f'<section id="{_anchor(title)}">\n<h2>{escape(title)}</h2>\n{body}\n</section>')
    html.title_ = title
    return html


def _anchor(title: str) -> str:
    """The id of the section with this title.

    >>> _anchor("Why the model predicts as it does: two rows")
    'why-the-model-predicts-as-it-does-two-rows'
    """
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def link(title: str) -> Markup:
    """A link to the section with this title."""
    return Markup(f'<a href="#{_anchor(title)}">{escape(title)}</a>')


def _contents(titles: Sequence[str]) -> str:
    """Links to the sections with these titles."""
    links = "".join(f"<li>{link(title)}</li>" for title in titles)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>' if titles else ""


def heading(text: str) -> str:
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{escape(text)}</p>" if text else ""


def code(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def expression(text: str, words: str) -> Markup:
    """An expression, and a sentence about it."""
    return Markup(f"<code>{escape(text)}</code> {escape(words)}".strip())


def facts(entries: Sequence[tuple[str, str]]) -> str:
    """Names and their values, line by line."""
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{markup(value)}</dd>' for name, value in entries)}</dl>"


def bullets(sentences: Sequence[str]) -> str:
    return f'<ul class="limits">{"".join(f"<li>{markup(sentence)}</li>" for sentence in sentences)}</ul>'


def tiles(entries: Sequence[tuple[str, str, str]]) -> str:
    """Cards with a label, a value, and a line below it."""
    cards = "".join(
        f'<div class="tile"><span>{escape(label)}</span><b>{escape(value)}</b><span>{escape(below)}</span></div>'
        for label, value, below in entries
    )
    return f'<div class="tiles">{cards}</div>'


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    numbers: Sequence[int] = (),
    words: Sequence[int] = (),
    *,
    ranges: Sequence[int] = (),
    small: bool = False,
) -> str:
    """A table; columns at the positions `numbers` are right-aligned, at `words` wide, at `ranges` never wrapped."""
    kinds = dict.fromkeys(ranges, "range") | dict.fromkeys(words, "words") | dict.fromkeys(numbers, "n")
    marks = [f' class="{kinds[j]}"' if j in kinds else "" for j in range(len(header))]
    head = "".join(f'<th scope="col"{mark}>{markup(cell)}</th>' for cell, mark in zip(header, marks))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{markup(cell)}</td>" for cell, mark in zip(row, marks)) + "</tr>" for row in rows
    )
    kind = ' class="small"' if small else ""
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def bar(share: float) -> Markup:
    """A bar that fills this share of its cell."""
    return Markup(f'<div class="meter"><i style="left:0;width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i></div>')


def signed_bar(share: float) -> Markup:
    """A bar of this share of half a cell: to the right of its middle, or to the left if it is negative."""
    wide = 50 * min(abs(share), 1.0)
    start = 50.0 if share >= 0 else 50.0 - wide
    side = "up" if share >= 0 else "down"
    return Markup(f'<div class="meter {side}"><i style="left:{start:.1f}%;width:{wide:.1f}%"></i></div>')


def folded(summary: str, *parts: str) -> str:
    """Parts that are shown when the reader opens them."""
    return f"<details><summary>{escape(summary)}</summary>" + "\n".join(part for part in parts if part) + "</details>"


def spark(heights: Sequence[float], words: str) -> Markup:
    """A small bar chart, as high as a line of text, with `words` for screen readers."""
    most, wide = max([*heights, 1e-300]), 84 / max(len(heights), 1)
    bars = "".join(
        f'<rect x="{wide * j:.1f}" width="{max(wide - 1, 1):.1f}" y="{20 - h:.1f}" height="{h:.1f}"/>'
        for j, value in enumerate(heights)
        if (h := 20 * value / most) > 0
    )
    return Markup(f'<svg class="spark" viewBox="0 0 84 20" role="img" aria-label="{escape(words)}">{bars}</svg>')


def figures(pictures: Sequence[tuple[str, str]]) -> str:
    """SVG drawings with their captions."""
    cards = "".join(
        f"<figure>{_inline(svg, _mark(svg), caption)}<figcaption>{escape(caption)}</figcaption></figure>"
        for svg, caption in pictures
    )
    return f'<div class="figures">{cards}</div>'


def _mark(svg: str) -> str:
    """A prefix of ids that no other drawing has."""
    return f"p{crc32(svg.encode()):x}"


def _inline(svg: str, mark: str, caption: str) -> str:
    """An SVG file as an element of a page: with unique ids, a text for screen readers, and no external addresses."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>| xmlns(:\w+)?=\"[^\"]*\"", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mark}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
