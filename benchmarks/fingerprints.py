"""Tanimoto similarities of binary fingerprints: Mercer against SciPy's `cdist` and a matrix product by BLAS.

    python benchmarks/fingerprints.py [--quick]

Random fingerprints of 2 048 bits, 5 % of them set. All values are compared entry by entry. `cdist` takes the Jaccard
distances of bool rows; at n = 10 000 it would take a quarter of an hour, so it computes the first 200 rows of the
matrix, and its time is multiplied by 50. BLAS multiplies rows of float32, which are exact for counts below 2²⁴.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.spatial.distance import cdist

import mercer as mc
from measure import compared, heading, judge, machine, peak, race, table


def by_blas(X: np.ndarray) -> np.ndarray:
    """Tanimoto by one product in float32."""
    wide = X.astype(np.float32)
    common = wide @ wide.T
    sizes = wide.sum(axis=1)
    return common / (sizes[:, None] + sizes - common)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bits", type=int, default=2048)
    arguments = parser.parse_args()
    machine()
    k, targets, rows = mc.Tanimoto(), [], []
    k(np.eye(300, arguments.bits, dtype=bool))  # compile
    for n in (2000,) if arguments.quick else (2000, 10_000):
        X = np.random.default_rng(0).random((n, arguments.bits)) < 0.05
        megabytes, K = peak(k, X)
        del K
        part = X[:200] if n > 5000 else X
        runs = {"Mercer": 5, "BLAS": 3, "SciPy": 1}
        competitors = {
            "Mercer": lambda X=X: k(X),
            "BLAS": lambda X=X: by_blas(X),
            "SciPy": lambda X=X, part=part: cdist(part, X, "jaccard"),
        }
        results = race(competitors, runs)
        K, distances = results["Mercer"][1], results["SciPy"][1]
        np.subtract(1.0, distances, out=distances)
        np.subtract(distances, K[: len(part)], out=distances)
        assert max(distances.max(), -distances.min()) < 1e-14, "the matrices differ"
        assert np.abs(results["BLAS"][1] - K).max() < 1e-6, "the matrices differ"
        seconds = {name: time for name, (time, _) in results.items()}
        seconds["SciPy"] *= n / len(part)
        ratio = seconds["SciPy"] / seconds["Mercer"]
        rows.append([f"{n} × {n}", *(f"{seconds[name]:.2f} s" for name in runs), f"{ratio:.0f}",
                     f"{megabytes:.0f} MB", f"{8e-6 * n * n:.0f} MB"])  # fmt: skip
        names = {"Mercer": "Mercer", "BLAS": "BLAS, float32", "SciPy": "SciPy cdist"}
        compared("Tanimoto of binary fingerprints", {names[key]: t for key, t in seconds.items()}, size=n)
        targets.append((f"n = {n}, times as fast as SciPy's cdist", ratio, 10.0))
    heading(f"Tanimoto of fingerprints of {arguments.bits} bits")
    table(["rows", "Mercer", "BLAS, float32", "SciPy cdist", "ratio to SciPy", "memory", "of it the matrix"], rows)
    judge(targets)


if __name__ == "__main__":
    main()
