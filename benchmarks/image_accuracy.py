"""Digits of MNIST: patches of images beside a Gaussian kernel on their pixels.

    python benchmarks/image_accuracy.py --data DIR               # or set MERCER_DATA

DIR contains mnist_5k.parquet: 5 000 images of 28 × 28 pixels, the digit in the last column. The protocol was written
down before the first run:

* Rows are permuted with the seed 0; the first 4 000 are for training, the other 1 000 for testing. Pixels are divided
  by 255.
* Gaussian on pixels: `SVC(Gaussian(w·m))`, m the median distance of training images; w and C below, chosen by the
  accuracy over three folds of the first 2 000 training rows.
* Polynomial on pixels, as in the lectures: `SVC(Polynomial(degree).after(pixels).normalize())`, chosen likewise.
* Patches: `SVC(Gaussian(w·m).after(phi))`, where phi has 128 anchors that are learned from the training images of each
  fold by the rule X → kernel, and m is the median distance of their features; size, w and C are chosen likewise.
* Each model is fitted to all 4 000 training rows with its choice, and predicts the test rows once.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.model_selection import StratifiedKFold

import mercer as mc
from measure import judge, machine, table

CHOSEN_ON = 2000
C = (3.0, 30.0)
WIDTHS = (0.35, 0.5, 0.7, 1.0)
DEGREES = (2, 3, 4, 5)
SIZES, PATCH_WIDTHS = (5, 7), (0.5, 1.0)
ANCHORS = 128


def gaussian(w: float, X: Any) -> mc.Kernel:
    median: Any = mc.median_gaussian(mc.pixels(X))
    return mc.Gaussian(w * median.sigma).after(mc.pixels)


def polynomial(degree: int, X: Any) -> mc.Kernel:
    return mc.Polynomial(degree, c=1.0).after(mc.pixels).normalize()


def patches(setting: tuple[int, float], X: Any) -> mc.Kernel:
    size, w = setting
    phi = mc.patch_features(mc.Patches(size=size, sigma=0.5, spread=2.5), X, ANCHORS, stride=3)
    some = X[:: max(1, len(X) // 500)]
    median: Any = mc.median_gaussian(phi(some))
    return mc.Gaussian(w * median.sigma).after(phi)


MODELS: dict[str, tuple[Any, list[Any]]] = {
    "Gaussian on pixels": (gaussian, list(WIDTHS)),
    "polynomial on pixels": (polynomial, list(DEGREES)),
    "patches": (patches, list(itertools.product(SIZES, PATCH_WIDTHS))),
}


def chosen(rule: Any, settings: list[Any], X: np.ndarray, y: np.ndarray) -> tuple[Any, float, float]:
    """The setting and C with the best accuracy over three folds, and that accuracy."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    scores: dict[tuple[Any, float], float] = {}
    for setting in settings:
        for train, test in folds:
            kernel = rule(setting, X[train])
            K, L = kernel(X[train]), kernel(X[test], X[train])
            for c in C:
                model = mc.SVC(mc.Precomputed(), C=c).fit(K, y[train])
                hits = float((model.predict(L) == y[test]).mean())
                scores[setting, c] = scores.get((setting, c), 0.0) + hits / len(folds)
    best = max(scores, key=lambda key: scores[key])
    return (*best, scores[best])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA", str(default) if default.exists() else None))
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("pass --data DIR, or set MERCER_DATA")
    machine()
    frame = pl.read_parquet(Path(arguments.data) / "mnist_5k.parquet").to_numpy()
    order = np.random.default_rng(0).permutation(len(frame))
    X, y = (frame[order, :-1] / 255).reshape(-1, 28, 28).astype(np.float32), frame[order, -1].astype(int)
    (X, Z), (y, truth) = (X[:4000], X[4000:]), (y[:4000], y[4000:])
    errors, rows = {}, []
    for name, (rule, settings) in MODELS.items():
        start = time.perf_counter()
        setting, c, score = chosen(rule, settings, X[:CHOSEN_ON], y[:CHOSEN_ON])
        model = mc.SVC(partial(rule, setting), C=c).fit(X, y)
        errors[name] = int((model.predict(Z) != truth).sum())
        seconds = time.perf_counter() - start
        rows.append([name, str(errors[name]), f"{setting}, C = {c:g}", f"{1 - score:.4f}", f"{seconds:.0f}"])
        print(rows[-1], flush=True)
    print()
    table(["", f"errors of {len(truth)}", "chosen", "error within the training part", "seconds"], rows)
    fewer = errors["Gaussian on pixels"] / max(1, errors["patches"])
    judge([("errors of the Gaussian on pixels / those of patches", fewer, 4 / 3)])


if __name__ == "__main__":
    main()
