"""Accuracy of graph kernels on data sets of the TU collection, by 10 × 10-fold nested cross-validation.

The protocol, fixed before the first run:

* Ten times ten stratified folds (`StratifiedKFold(10, shuffle=True, random_state=repetition)`); every graph is tested
  once per repetition. The score is the mean of the ten repetitions, ± their standard deviation.
* Kernels: WeisfeilerLehman(h) and WeisfeilerLehmanAssignment(h), normalised by the cosine, with all labels that the
  data set has, of nodes and of edges. Attributes are not used. Support vector machine `mc.SVC`, one against one.
* h = 0 … 5 and C = 10⁻³ … 10³ are chosen inside the training part of every fold, from the highest accuracy (of equals
  the smallest h, then the smallest C): with fewer than 500 graphs by five stratified folds, because a tenth of so few
  says little, else on a stratified tenth that is held out, as in the published tables. The machine is then fitted to
  the whole training part.
* Once with all graphs, and once without isomorphic duplicates: of graphs with the same number of nodes and edges and
  the same counts of WeisfeilerLehman(5) only the first is kept, whatever its class is. (Equal counts do not prove that
  graphs are isomorphic, so a few too many may be left out.)

Every result is written to a file as it comes; a second run goes on where the first one stopped.

    python benchmarks/graph_accuracy.py --data ../shared/data --out accuracy.jsonl MUTAG PTC_MR ENZYMES PROTEINS NCI1
    python benchmarks/graph_accuracy.py --table accuracy.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("MERCER_NUM_THREADS", "1")  # one process per core

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

import mercer as mc
from measure import machine

ROUNDS, CS = range(6), [10.0**e for e in range(-3, 4)]
KERNELS = {"subtree": mc.WeisfeilerLehman, "assignment": mc.WeisfeilerLehmanAssignment}
REPETITIONS, FOLDS = 10, 10
FEW, STORED = 500, 5000
AIMS = {
    ("MUTAG", "subtree"): 87.0, ("NCI1", "subtree"): 85.0, ("PROTEINS", "subtree"): 73.0, ("ENZYMES", "subtree"): 51.0,
    ("PTC_MR", "subtree"): 61.0, ("ENZYMES", "assignment"): 57.0, ("NCI1", "assignment"): 85.5,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["MUTAG", "PTC_MR", "ENZYMES", "PROTEINS"])
    parser.add_argument("--data", default="../shared/data", help="the folder with NAME.zip")
    parser.add_argument("--out", default="accuracy.jsonl", help="where results are added as they come")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="the first repetitions only")
    parser.add_argument("--variants", nargs="*", default=["all", "distinct"])
    parser.add_argument("--table", help="only print the table of this file")
    options = parser.parse_args()
    machine()
    if options.table:
        return table(Path(options.table))
    out, cores = Path(options.out), len(os.sched_getaffinity(0))
    for name in options.names:
        graphs, y = mc.read_tu(Path(options.data) / f"{name}.zip")
        for variant in options.variants:
            rows = np.arange(len(y)) if variant == "all" else distinct(graphs)
            some, labels = [graphs[i] for i in rows], y[rows]
            for kind in KERNELS:
                done = {(r["repetition"], r["fold"]) for r in read(out) if key(r) == (name, variant, kind)}
                jobs = [(r, f) for r in range(options.repetitions) for f in range(FOLDS) if (r, f) not in done]
                if not jobs:
                    continue
                kernels = None
                if len(some) < STORED:
                    kernels = [mc.Precomputed(KERNELS[kind](h).normalize()(some)) for h in ROUNDS]
                run = Parallel(n_jobs=cores, return_as="generator_unordered")
                for result in run(delayed(one_fold)(some, labels, kernels, kind, *job) for job in jobs):
                    line = {"data": name, "variant": variant, "kernel": kind, "graphs": len(some), **result}
                    with open(out, "a") as file:
                        file.write(json.dumps(line) + "\n")
                    if (score := scores(read(out))[name, variant, kind].get(result["repetition"])) is not None:
                        print(f"{name} ({variant}), {kind}, repetition {result['repetition']}: {score:.2f}", flush=True)
                print(f"{name} ({variant}), {kind}: done", file=sys.stderr, flush=True)
    table(out)


def one_fold(
    graphs: list[mc.Graph], y: np.ndarray, kernels: list | None, kind: str, repetition: int, fold: int
) -> dict:
    """The accuracy on one fold, with h and C chosen inside its training part; `kernels` holds the stored matrices."""
    train, test = list(StratifiedKFold(FOLDS, shuffle=True, random_state=repetition).split(y, y))[fold]
    if len(y) < FEW:
        inner = StratifiedKFold(5, shuffle=True, random_state=fold)
    else:
        inner = StratifiedShuffleSplit(1, test_size=0.1, random_state=fold)
    splits = [(train[a], train[b]) for a, b in inner.split(train, y[train])]

    def kernel_and_points(h: int, rows: np.ndarray) -> tuple[mc.Kernel, object]:
        if kernels is None:
            return KERNELS[kind](h).normalize(), [graphs[i] for i in rows]
        return kernels[h], rows[:, None]

    right = np.zeros((len(ROUNDS), len(CS)))
    for h in ROUNDS:
        for a, b in splits:
            (kernel, X), (_, Z) = kernel_and_points(h, a), kernel_and_points(h, b)
            right[h] += [np.sum(model.predict(Z) == y[b]) for model in mc.SVC(kernel).path(X, y[a], CS)]
    h, c = map(int, np.unravel_index(np.argmax(right), right.shape))
    (kernel, X), (_, Z) = kernel_and_points(h, train), kernel_and_points(h, test)
    accuracy = mc.SVC(kernel, C=CS[c]).fit(X, y[train]).score(Z, y[test])
    return {"repetition": repetition, "fold": fold, "h": h, "C": CS[c], "tested": len(test), "accuracy": accuracy}


def distinct(graphs: list[mc.Graph]) -> np.ndarray:
    """The first of all graphs with the same sizes and the same counts of labels after 0 … 5 rounds."""
    counts = mc.WeisfeilerLehman(5).encode(graphs)
    first: dict[object, int] = {}
    for i, graph in enumerate(graphs):
        row = slice(counts.ends[i], counts.ends[i + 1])
        parts = graph.n, len(graph.edges), counts.keys[row].tobytes(), counts.values[row].tobytes()
        first.setdefault(parts, i)
    return np.array(list(first.values()))


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def key(result: dict) -> tuple[str, str, str]:
    return result["data"], result["variant"], result["kernel"]


def scores(results: list[dict]) -> dict[tuple[str, str, str], dict[int, float]]:
    """The accuracy in percent of every repetition that is complete, for each data set, variant and kernel."""
    found = defaultdict(lambda: defaultdict(list))
    for result in results:
        found[key(result)][result["repetition"]].append((result["accuracy"] * result["tested"], result["tested"]))
    whole = {which: {r: np.sum(parts, axis=0) for r, parts in repetitions.items() if len(parts) == FOLDS}
             for which, repetitions in found.items()}  # fmt: skip
    return {which: {r: 100 * right / tested for r, (right, tested) in parts.items()} for which, parts in whole.items()}


def table(path: Path) -> None:
    """Mean and deviation of the repetitions that are complete, beside the aim."""
    results = read(path)
    sizes = {key(result): result["graphs"] for result in results}
    print(f"{'data':10}{'graphs':>7}  {'kernel':11}{'accuracy':>9}{'±':>6}{'repetitions':>13}{'aim':>7}")
    for (name, variant, kind), repetitions in scores(results).items():
        if repetitions:
            each = list(repetitions.values())
            aim = AIMS.get((name, kind)) if variant == "all" else None
            print(f"{name:10}{sizes[name, variant, kind]:>7}  {kind:11}{np.mean(each):9.2f}{np.std(each):6.2f}"
                  f"{len(each):>13}{'' if aim is None else f'{aim:7.1f}'}")  # fmt: skip


if __name__ == "__main__":
    main()
