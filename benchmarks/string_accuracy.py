"""How well string kernels predict, on five public data sets, under a protocol that was fixed before the first run.

    python benchmarks/string_accuracy.py --data DIR

DIR holds promoters.csv.gz, splice_junctions.csv.gz, acp_vs_tm.csv.gz, amp_vs_tm.csv.gz and sms_spam.csv.gz, each with a
column `sequence` or `text` and a column `label`.

Protocol. Every figure is of rows that were held out, and that no choice has seen:

* promoters (106 strings of DNA, aligned): leave-one-out. For each string, the kernel and alpha of a kernel ridge on
  ±1 are chosen among `ALIGNED` by the closed-form leave-one-out error of the other 105.
* peptides (two sets): 10 folds, repeated 3 times. In each training part the kernel and alpha of a kernel ridge on ±1
  are chosen among `PEPTIDES` by the closed-form leave-one-out error. Beside it, by the same rule, Spectrum(1) alone:
  the bag of amino acids.
* splice junctions (3 classes, aligned): 10 folds. A quarter of the training part is held out to choose the kernel among
  `SPLICE` and C; then the support vector machine is fitted to the whole training part.
* SMS spam: 5 folds, the same choice among `TEXTS` and C. The weights of TF-IDF are learned from training rows only.

Folds are stratified and drawn with the seeds 0, 1, 2.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

import mercer as mc
from measure import machine, table

ALIGNED = [
    mc.WeightedDegree(d, shift=shift).normalize() ** power for d in (3, 6) for shift in (0, 2) for power in (1, 3)
]
PEPTIDES = [
    mc.Spectrum(1).normalize(),
    mc.Spectrum((1, 3)).normalize(),
    mc.GappedKmers(4, 2).normalize(),
    mc.Subsequence(3, 0.5).normalize(),
    mc.LocalAlignment(0.1).normalize(),
    mc.exp(2.0 * (mc.Spectrum(1).normalize() + mc.GappedKmers(4, 2).normalize())).normalize(),
    mc.exp(2.0 * (mc.Spectrum((1, 3)).normalize() + mc.LocalAlignment(0.1).normalize())).normalize(),
]
SPLICE = [
    mc.WeightedDegree(3).normalize() ** 2,
    mc.WeightedDegree(6, shift=1).normalize() ** 2,
    mc.WeightedDegree(6).normalize() ** 4,
]
TEXTS = [mc.TfIdf(mc.NGrams((1, 2), unit="words")), mc.TfIdf(mc.NGrams((2, 5)))]
COSTS = (1.0, 10.0)


def read(folder: Path, name: str) -> tuple[list[str], np.ndarray]:
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    strings = frame["sequence" if "sequence" in frame else "text"]
    return strings.astype(str).tolist(), frame["label"].astype(str).to_numpy()


def ridge(grams: list[Any], train: Any, test: Any, y: Any) -> Any:
    """Predicted signs: the kernel and alpha with the smallest leave-one-out error on the training rows."""
    models = [mc.KernelRidge(mc.Precomputed(K), alpha="loo").fit(train, y[train]) for K in grams]
    return np.sign(max(models, key=lambda model: model.loo_score_).predict(test))


def chosen_machine(kernels: list[Any], X: list[str], train: Any, y: Any, seed: int) -> Any:
    """A support vector machine on the training rows; a quarter of them is held out to choose its kernel and C."""

    def fitted(kernel: Any, C: float, rows: Any) -> Any:
        return mc.SVC(kernel, C=C).fit([X[i] for i in rows], y[rows])

    inner, held = next(StratifiedShuffleSplit(1, test_size=0.25, random_state=seed).split(train, y[train]))
    options = [(kernel, C) for kernel in kernels for C in COSTS]
    held_texts = [X[i] for i in train[held]]
    scores = [fitted(*option, train[inner]).score(held_texts, y[train[held]]) for option in options]
    return fitted(*options[int(np.argmax(scores))], train)


def folds(y: Any, number: int, seed: int) -> Any:
    return StratifiedKFold(number, shuffle=True, random_state=seed).split(y, y)


def promoters(folder: Path) -> list[str]:
    X, labels = read(folder, "promoters")
    y = np.where(labels == labels[0], 1.0, -1.0)
    grams = [kernel(X) for kernel in ALIGNED]
    every = np.arange(len(y))
    wrong = sum(int(ridge(grams, np.delete(every, i), every[i : i + 1], y)[0] != y[i]) for i in every)
    return ["promoters", "leave-one-out", f"{wrong} errors of {len(y)}", "at most 4", _verdict(wrong <= 4)]


def peptides(folder: Path, name: str) -> list[str]:
    X, labels = read(folder, name)
    y = np.where(labels == labels[0], 1.0, -1.0)
    grams = [kernel(X) for kernel in PEPTIDES]
    scores: dict[str, list[float]] = {"chosen": [], "bag": []}
    for seed in range(3):
        right: dict[str, list[float]] = {"chosen": [], "bag": []}
        for train, test in folds(y, 10, seed):
            for who, some in (("chosen", grams), ("bag", grams[:1])):
                right[who].extend(ridge(some, train, test, y) == y[test])
        for who in scores:
            scores[who].append(float(np.mean(right[who])))
    own, bag = (_spread(scores[who]) for who in ("chosen", "bag"))
    better = np.mean(scores["chosen"]) > np.mean(scores["bag"])
    return [name, "3 × 10 folds", own, f"above Spectrum(1): {bag}", _verdict(bool(better))]


def machines(folder: Path, name: str, kernels: list[Any], number: int, aim: float) -> list[str]:
    X, y = read(folder, name)
    scores, right = [], []
    for fold, (train, test) in enumerate(folds(y, number, 0)):
        correct = chosen_machine(kernels, X, train, y, fold).predict([X[i] for i in test]) == y[test]
        right.extend(correct)
        scores.append(float(np.mean(correct)))
        print(f"  {name}, fold {fold + 1}: {100 * scores[-1]:.2f} %", flush=True)
    reached = f"{100 * np.mean(right):.2f} % (folds ± {100 * np.std(scores):.2f})"
    return [name, f"{number} folds", reached, f"at least {100 * aim:g} %", _verdict(float(np.mean(right)) >= aim)]


def _spread(scores: list[float]) -> str:
    return f"{100 * np.mean(scores):.2f} % (repetitions ± {100 * np.std(scores):.2f})"


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default="", help="the name of one data set")
    arguments = parser.parse_args()
    machine()
    tasks = {
        "promoters": lambda: promoters(arguments.data),
        "acp_vs_tm": lambda: peptides(arguments.data, "acp_vs_tm"),
        "amp_vs_tm": lambda: peptides(arguments.data, "amp_vs_tm"),
        "splice_junctions": lambda: machines(arguments.data, "splice_junctions", SPLICE, 10, 0.96),
        "sms_spam": lambda: machines(arguments.data, "sms_spam", TEXTS, 5, 0.985),
    }
    rows = []
    for name, task in tasks.items():
        if arguments.only in ("", name):
            start = time.perf_counter()
            rows.append([*task(), f"{time.perf_counter() - start:.0f} s"])
            print("  " + ", ".join(rows[-1]), flush=True)
    table(["data", "held out", "right", "aim", "", "time"], rows)


if __name__ == "__main__":
    main()
