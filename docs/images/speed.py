"""Bring "How fast" of the README up to date with the result files: its table, its words about machines, its picture.

`.venv/bin/python docs/images/speed.py` rewrites them in README.md, and speed-light.png and speed-dark.png beside this
file; `make bench` does so after it has measured. A test compares all three with the result files.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
GENERATED = re.compile(r"(?<=\n)\| task \| Mercer .*?(?=\n\nThe libraries )", re.DOTALL)
"""The part of the README that is made from the result files."""


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    sys.path.insert(0, str(HERE.parent / "_site"))
    import bench_pages

    rows = bench_pages.picture()
    for look in ("light", "dark"):
        figure = bench_pages.bars(rows, look, width=8.0)
        about = {"Description": bench_pages.described(rows)}
        figure.savefig(HERE / f"speed-{look}.png", dpi=150, facecolor=figure.get_facecolor(), metadata=about)
    text, count = GENERATED.subn(lambda _: bench_pages.how_fast(), README.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{README.name} has {count} tables of times before 'The libraries'; it needs exactly one")
    README.write_text(text, encoding="utf-8")
    print(bench_pages.how_fast())


if __name__ == "__main__":
    main()
