"""Checks of a built site: every link and anchor leads somewhere, and nothing is loaded from the network."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "srcset",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
"""Attributes whose address a browser loads by itself."""
OUTSIDE = re.compile(r"^(https?:)?//", re.IGNORECASE)
SHEET = re.compile(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)", re.IGNORECASE)
CALLED = re.compile(r"(?:fetch|import|importScripts)\(\s*['\"]((?:https?:)?//[^'\"]+)", re.IGNORECASE)


class Page(HTMLParser):
    """The links, anchors and loaded resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, pairs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in pairs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "link" and not {"canonical", "index", "search", "next", "prev"} & set(
            attributes.get("rel", "").split()
        ):
            self.loaded.append(attributes.get("href", ""))
        if tag in LOADS and attributes.get(LOADS[tag]):
            self.loaded.append(attributes[LOADS[tag]])


def complaints(site: Path) -> list[str]:
    """One sentence for each broken link, and for each resource from the network."""
    html = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # templates of the theme
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in html}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {address} from the network" for address in page.loaded if OUTSIDE.match(address)]
        for link in [*page.links, *(address for address in page.loaded if not OUTSIDE.match(address))]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not goal.exists():
                found.append(f"{name}: the link to {link} leads nowhere")
            elif parts.fragment and goal in pages and unquote(parts.fragment) not in pages[goal].anchors:
                found.append(f"{name}: the link to {link} names an anchor that is not there")
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(site)} loads {a or b} from the network" for a, b in SHEET.findall(text)]
    for path in sorted(site.rglob("*.js")):
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(site)} loads {address} from the network" for address in CALLED.findall(text)]
    return found
