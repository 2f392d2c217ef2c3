"""Draw the picture of the README's "How fast" from the result files, and print the rows of its table.

`.venv/bin/python docs/images/speed.py` writes speed-light.png and speed-dark.png beside this file, and prints machine,
versions and date of every row for the sentence below the table. A test compares rows and dates with the result files.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "_site"))


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import bench_pages

    known = {(one.job, one.task, one.other): one for one in bench_pages.ratios(bench_pages.files())}
    rows = [(f"{words}: {key[2].split()[0]}", known[key].ratio) for words, key in bench_pages.HEADLINES.items()]
    for look in ("light", "dark"):
        figure = bench_pages.bars(rows, look, width=8.0)
        figure.savefig(HERE / f"speed-{look}.png", dpi=150, facecolor=figure.get_facecolor())
    print("\n".join(bench_pages.headlines()))
    records = bench_pages.files()
    for job, _task, _library in bench_pages.HEADLINES.values():
        print(f"{job}:", "; ".join(bench_pages.where(records[job])))


if __name__ == "__main__":
    main()
