"""Automatic models of files beside histogram gradient boosting: kin8nm, protein, bike, california, freMTPL2.

    python benchmarks/large_examples.py --data DIR               # or set MERCER_DATA; about ten minutes on two cores
    python benchmarks/large_examples.py --data DIR --only bike --time 10
    python benchmarks/large_examples.py --data DIR --quick       # 2 000 rows of each, 2 seconds: does it run?

Every table is split once, 80 % for training and 20 % for the test, by the seed 0. The training part is written to a
Parquet file, which `AutoRegressor(time=60)` reads in batches; nothing else is chosen. scikit-learn's
HistGradientBoostingRegressor gets the same rows with its defaults, texts as categories, and for freMTPL2 the Poisson
loss of claims per year with the exposures as weights. Scores are R² of the test rows; for freMTPL2 the mean Poisson
deviance of the claims per year, weighted by the exposure, where less is better. The protocol was fixed before the first
run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_poisson_deviance, r2_score

import mercer as mc
from measure import heading, machine, table, timed

SEED, SHARE = 0, 0.2
QUICK_ROWS, QUICK_SECONDS = 2_000, 2.0


class Example(NamedTuple):
    """A table: its file, its target, columns that are not used, and the exposure of its counts."""

    file: str
    target: str
    drop: tuple[str, ...] = ()
    exposure: str | None = None


EXAMPLES = {
    "kin8nm": Example("kin8nm.csv.gz", "y"),
    "protein": Example("protein_casp.parquet", "RMSD"),
    "bike": Example("bike_hour.csv.gz", "cnt", ("instant", "dteday", "casual", "registered")),
    "california": Example("california_housing.parquet", "medianHouseValue"),
    "freMTPL2": Example("freMTPL2freq.parquet", "ClaimNb", ("IDpol",), "Exposure"),
}


def split(example: Example, folder: Path, most: int | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows for training and for the test, of all or of the first `most` in random order."""
    path = folder / example.file
    frame = (pl.read_parquet if path.suffix == ".parquet" else pl.read_csv)(path).drop(example.drop)
    order = np.random.default_rng(SEED).permutation(frame.height)[:most]
    count = round(SHARE * len(order))
    return frame[np.sort(order[count:])], frame[np.sort(order[:count])]


def boosted(example: Example, train: pl.DataFrame, test: pl.DataFrame) -> np.ndarray:
    """The test predictions of gradient boosting; rates if there is an exposure."""
    words = [name for name, dtype in train.schema.items() if dtype == pl.String]
    kinds = {name: pl.Enum(train[name].unique().sort()) for name in words}

    def features(frame: pl.DataFrame) -> Any:
        codes = [pl.col(name).cast(kind).to_physical() for name, kind in kinds.items()]
        return frame.drop(example.target, *filter(None, [example.exposure])).with_columns(codes).to_numpy()

    names = [name for name in train.columns if name not in (example.target, example.exposure)]
    model = HistGradientBoostingRegressor(
        loss="squared_error" if example.exposure is None else "poisson",
        categorical_features=[names.index(name) for name in words] or None, random_state=SEED,
    )  # fmt: skip
    y, w = train[example.target].to_numpy(), None
    if example.exposure is not None:
        w = train[example.exposure].to_numpy()
        y = y / w
    return np.asarray(model.fit(features(train), y, w).predict(features(test)))


def run(name: str, folder: Path, seconds: float, most: int | None = None) -> dict[str, Any]:
    """The figures of one table."""
    example = EXAMPLES[name]
    train, test = split(example, folder, most)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "train.parquet"
        train.write_parquet(path)
        roles = None if example.exposure is None else {example.exposure: "exposure"}
        model = mc.AutoRegressor(time=seconds, roles=roles, random_state=SEED)
        took, _ = timed(lambda: model.fit(path, target=example.target))
    boosting, rates = timed(boosted, example, train, test)
    y, predicted = test[example.target].to_numpy(), model.predict(test.drop(example.target))
    if example.exposure is None:
        scores = [float(r2_score(y, values)) for values in (predicted, rates)]
    else:
        w = test[example.exposure].to_numpy()
        scores = [float(mean_poisson_deviance(y / w, values, sample_weight=w)) for values in (predicted / w, rates)]
    last = model.last_fit_
    assert last is not None
    return {
        "name": name, "rows": train.height, "centres": last.centres, "loss": model.loss_, "mercer": scores[0],
        "boosting": scores[1], "seconds": took, "boosting_seconds": boosting, "kernel": model.choices_[2].taken,
        "stopped_by": model.stopped_by_,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="the folder of the files")
    parser.add_argument("--only", choices=EXAMPLES, help="one table only")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--time", type=float, default=60.0, help="seconds for each search")
    args = parser.parse_args()
    if not args.data:
        sys.exit("Name the folder of the files: --data DIR, or MERCER_DATA.")
    machine()
    runs = []
    for name in [args.only] if args.only else EXAMPLES:
        seconds, most = (QUICK_SECONDS, QUICK_ROWS) if args.quick else (args.time, None)
        runs.append(run(name, Path(args.data), seconds, most))
        print(runs[-1], flush=True)
    head = ["table", "rows", "measure", "Mercer", "boosting", "kernel", "loss", "centres", "time", "boosting"]
    rows = [
        [
            r["name"], f"{r['rows']:,}", "R²" if r["name"] != "freMTPL2" else "deviance", f"{r['mercer']:.4f}",
            f"{r['boosting']:.4f}", r["kernel"], r["loss"], f"{r['centres']:,}", f"{r['seconds']:.0f} s",
            f"{r['boosting_seconds']:.0f} s",
        ]
        for r in runs
    ]  # fmt: skip
    heading("Automatic models of Parquet files beside histogram gradient boosting")
    table(head, rows)


if __name__ == "__main__":
    main()
