"""Build the documentation site: stage the pages, generate the reference, run Sphinx, and check the result.

`make docs`, or `python docs/_site/build.py out`: the site is then in out/docs, and its sources in out/docs-source.
Warnings are errors. What did not change is not made again; delete the folders for a build from nothing.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ["MPLBACKEND"] = "agg"

TOP = Path(__file__).resolve().parents[2]


def write(path: Path, content: str | bytes) -> None:
    """Write a file only if it changes, so that Sphinx reads again only what is new."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def stage(source: Path) -> bool:
    """Write all pages, pictures and examples, and the generated pages; whether there are other pages than before."""
    import api_pages
    import bench_pages
    import command_pages
    import kernel_pages
    import pages

    written = {source / place: pages.staged(path) for path, place in pages.places().items()}
    for generator in (api_pages, bench_pages, command_pages, kernel_pages):
        written |= {source / place: text for place, text in generator.pages().items()}
    for path in (TOP / "docs/images").glob("*.png"):
        written[source / "images" / path.name] = path.read_bytes()
    for path in (TOP / "examples").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            written[source / "examples" / path.relative_to(TOP / "examples")] = path.read_bytes()
    before = {path for path in source.rglob("*") if path.is_file() and "gallery" not in path.relative_to(source).parts}
    for old in before - set(written):
        old.unlink()
    for path, content in written.items():
        write(path, content)
    return before != set(written)


def forget(site: Path, source: Path) -> None:
    """Remove pages of an earlier build whose source is gone."""
    for page in site.rglob("*.html"):
        name = page.relative_to(site).with_suffix("").as_posix()
        own = name.startswith("_static/") or name in ("genindex", "py-modindex", "search")
        if not own and not any((source / f"{name}{ending}").exists() for ending in (".md", ".rst")):
            page.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", default=TOP / "out", help="folder for the site and its sources")
    parser.add_argument("--no-gallery", action="store_true", help="do not run the examples")
    options = parser.parse_args()
    start = time.perf_counter()
    out = options.out.resolve()
    source, site = out / "docs-source", out / "docs"
    other = stage(source)
    print(f"staged {source} in {time.perf_counter() - start:.0f} s", flush=True)

    from sphinx.cmd.build import main as sphinx

    settings = ["-D", "plot_gallery=0"] if options.no_gallery else []
    settings += ["-a", "-E"] if other else []  # links and navigation of every page depend on all pages
    settings += ["-c", str(Path(__file__).parent), "-d", str(out / "docs-cache")]
    code = sphinx(["-b", "html", "-W", "--keep-going", "-q", *settings, str(source), str(site)])
    if code:
        return code
    forget(site, source)
    from checks import complaints

    found = complaints(site)
    for complaint in found[:50]:
        print(complaint, file=sys.stderr)
    print(
        f"{len(found)} broken links or resources from the network" if found else f"The site is in {site / 'index.html'}"
    )
    print(f"{time.perf_counter() - start:.0f} s, {sum(1 for _ in site.rglob('*.html'))} pages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
