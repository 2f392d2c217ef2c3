"""Accuracy of Gaussian processes on molecules: solubility (ESOL) and hydration energy (FreeSolv) from SMILES.

    python benchmarks/molecule_accuracy.py [--data DIR] [--splits 20] [--only ESOL] [--automatic]

Protocol, fixed before the first run:

* 20 random splits, 80 % for training and 20 % for testing (`numpy.random.default_rng(split).permutation(n)`).
* Three kernels, each with free scale factors, and alpha:
  "bits"     c · Tanimoto of 2 048 bits, radius 2;
  "counts"   c · MinMax of 2 048 counts, radius 2;
  "sum"      Σ cᵣ · MinMax of counts for the radii r = 0 … 3, + c · Matern(5/2) of twelve descriptors (RDKit) that are
             standardised by the mean and the standard deviation of the training part.
* All parameters by the evidence of the training part (`tune="evidence"`, targets normalised). The kernel with the
  largest evidence is the one that counts ("chosen"); no test target is looked at before.
* The root mean square error on the test part and the coverage of 90 % intervals for new measurements, each with its
  mean and its standard error over the splits.

* `--automatic` fits `mc.AutoRegressor()` instead, to the column of SMILES alone and with no choice made, on the same
  splits; searches that the clock stopped are counted.

Aims: RMSE ≤ 0.65 (log mol/l) on ESOL and ≤ 1.25 kcal/mol on FreeSolv.

The values of Tanimoto and MinMax do not depend on parameters or targets: their matrices are computed once for all
molecules, and enter as `Precomputed` by row numbers. Data: ESOL.csv.gz (Delaney 2004) and FreeSolv.csv.gz (Mobley and
Guthrie 2014), with columns `smiles` and the target.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem import Descriptors

import mercer as mc
from measure import judge, machine, table

DATA = {
    "ESOL": ("measured log solubility in mols per litre", 0.65),
    "FreeSolv": ("expt", 1.25),
}
NAMES = ("MolLogP", "MolMR", "MolWt", "TPSA", "LabuteASA", "NumHDonors", "NumHAcceptors", "NumRotatableBonds",
         "RingCount", "NumAromaticRings", "FractionCSP3", "HeavyAtomCount")  # fmt: skip


def descriptors(smiles: list[str]) -> np.ndarray:
    """Twelve simple numbers for every molecule."""
    functions = [getattr(Descriptors, name) for name in NAMES]
    return np.array([[f(Chem.MolFromSmiles(s)) for f in functions] for s in smiles])


def kernels(smiles: list[str]) -> dict[str, mc.Kernel]:
    """The candidates, on rows (number of the molecule, descriptors)."""
    counts = [
        mc.Precomputed(mc.MinMax().after(mc.Fingerprint(radius, counts=True))(smiles)).on(0) for radius in range(4)
    ]
    bits = mc.Precomputed(mc.Tanimoto().after(mc.fingerprint)(smiles)).on(0)
    several = 0.25 * counts[0] + 0.25 * counts[1] + 0.25 * counts[2] + 0.25 * counts[3]
    smooth = 1.0 * mc.Matern(3.0, 2.5).on(*range(1, 1 + len(NAMES)))
    return {"bits": 1.0 * bits, "counts": 1.0 * counts[2], "sum": several + smooth}


def splits(n: int, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
    orders = [np.random.default_rng(split).permutation(n) for split in range(number)]
    return [(order[: round(0.8 * n)], order[round(0.8 * n) :]) for order in orders]


def run(folder: Path, name: str, number: int) -> tuple[list[list[str]], float]:
    frame, target = pd.read_csv(folder / f"{name}.csv.gz"), DATA[name][0]
    smiles, y = list(frame["smiles"]), frame[target].to_numpy()
    candidates, columns = kernels(smiles), descriptors(smiles)
    results: dict[str, list[tuple[float, float]]] = {key: [] for key in (*candidates, "chosen")}
    picked: list[str] = []
    for train, test in splits(len(y), number):
        centre, spread = columns[train].mean(axis=0), columns[train].std(axis=0)
        X = np.column_stack([np.arange(len(y)), (columns - centre) / spread])
        evidence = {}
        for key, kernel in candidates.items():
            model = mc.GaussianProcessRegressor(kernel, alpha=0.1, tune="evidence", normalize_y=True, n_restarts=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a parameter at the end of its range is reported by a warning
                model.fit(X[train], y[train])
            low, high = model.predict_interval(X[test], 0.9).T
            error = float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
            results[key].append((error, float(np.mean((low <= y[test]) & (y[test] <= high)))))
            evidence[key] = model.log_evidence_
        picked.append(max(evidence, key=evidence.__getitem__))
        results["chosen"].append(results[picked[-1]][-1])
        print(f"  {name} split {len(picked)}: {picked[-1]}, RMSE {results['chosen'][-1][0]:.3f}", flush=True)
    rows = []
    for key, values in results.items():
        label = key if key != "chosen" else f"chosen ({', '.join(f'{picked.count(k)} × {k}' for k in set(picked))})"
        rows.append(summary(name, label, values))
    return rows, mean_error(results["chosen"])


def run_automatic(folder: Path, name: str, number: int) -> tuple[list[list[str]], float]:
    frame, target = pd.read_csv(folder / f"{name}.csv.gz"), DATA[name][0]
    X, y = frame[["smiles"]], frame[target].to_numpy()
    results, stopped = [], 0
    for train, test in splits(len(y), number):
        model = mc.AutoRegressor().fit(X.iloc[train], y[train])
        low, high = model.predict_interval(X.iloc[test], 0.9).T
        error = float(np.sqrt(np.mean((model.predict(X.iloc[test]) - y[test]) ** 2)))
        results.append((error, float(np.mean((low <= y[test]) & (y[test] <= high)))))
        stopped += model.stopped_by_ is not None
        print(f"  {name} split {len(results)}: RMSE {error:.3f}, stopped by {model.stopped_by_}", flush=True)
    return [summary(name, f"automatic ({stopped} of {number} stopped by the clock)", results)], mean_error(results)


def summary(name: str, label: str, results: list[tuple[float, float]]) -> list[str]:
    """One row of the table: mean and standard error of the RMSE and of the coverage."""
    (error, coverage), errors = np.mean(results, axis=0), np.std(results, axis=0, ddof=1) / np.sqrt(len(results))
    return [name, label, f"{error:.3f} ± {errors[0]:.3f}", f"{coverage:.3f} ± {errors[1]:.3f}"]


def mean_error(results: list[tuple[float, float]]) -> float:
    return float(np.mean([error for error, _ in results]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", choices=DATA, help="one of the data sets")
    parser.add_argument("--automatic", action="store_true", help="automatic models on the same splits")
    arguments = parser.parse_args()
    machine()
    rows, aims = [], []
    for name, (_, aim) in DATA.items() if arguments.only is None else [(arguments.only, DATA[arguments.only])]:
        more, error = (run_automatic if arguments.automatic else run)(arguments.data, name, arguments.splits)
        rows += more
        aims.append((f"{name}: aim {aim:g} over the RMSE of the chosen kernel", aim / error, 1.0))
    table(["data", "kernel", "RMSE", "coverage of 90 % intervals"], rows)
    judge(aims)


if __name__ == "__main__":
    main()
