"""Gram matrices of time series compared with NumPy and other libraries: equal matrices, and the time of each.

    python benchmarks/series.py                    # 200 series of 100 points and 5 channels
    python benchmarks/series.py --quick            # 40 series: does it run?

The signature kernel of level 4 is exact everywhere: the inner product of the signatures of piecewise linear paths. The
NumPy program works on all series of a chunk at once, with the same recursion over levels and one matrix product for the
static kernel; it computes half of the matrix, and its chunks fit the cache. iisignature, if it is installed, computes
the signatures themselves, which is possible for the static kernel ⟨x, z⟩ only; `features` of this library stand beside
it. With 200 series the NumPy program runs on 40 of them, and its time is extrapolated by the number of pairs, × 25.
"seconds" is the shortest wall time of several runs in turns, "processor" the shortest time of all threads together.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mercer as mc
from measure import compared, heading, judge, machine, table

LEVEL = 4


def numpy_signature(X: np.ndarray, sigma: float | None) -> np.ndarray:
    """The matrix by NumPy: one x with a chunk of z at a time, the pairs along the last axis."""
    n, T, d = X.shape
    K, chunk = np.empty((n, n)), max(1, 2**13 // (T * T))  # larger arrays leave the cache
    points = np.ascontiguousarray(X.transpose(1, 0, 2))
    squares = (points**2).sum(axis=2)
    for start in range(0, n, chunk):
        z = points[:, start : start + chunk].reshape(-1, d)
        for i in range(start, n):
            s = X[i] @ z.T
            if sigma is not None:
                s *= 2.0
                s -= squares[:, i][:, None]
                s -= squares[:, start : start + chunk].reshape(-1)
                s *= 0.5 / sigma**2
                np.exp(s, out=s)
            s = np.diff(s.reshape(T, T, -1), axis=0)
            K[i, start : start + chunk] = numpy_levels(np.diff(s, axis=1))
    return np.tril(K) + np.tril(K, -1).T


def numpy_levels(M: np.ndarray) -> np.ndarray:
    """Σ over levels, for second differences of shape (steps of x, steps of z, pairs)."""
    total, runs = 1.0 + M.sum(axis=(0, 1)), {(1, 1): M}
    for m in range(2, LEVEL + 1):
        by_x = [sum(runs[r, s] for s in range(1, m)) for r in range(1, m)]
        by_z = [sum(runs[r, s] for r in range(1, m)) for s in range(1, m)]
        if m == LEVEL:  # only the sum is needed
            terms = before(before(sum(by_x), 0), 1)
            for r in range(1, m):
                terms += before(by_x[r - 1], 1) / (r + 1)
                terms += before(by_z[r - 1], 0) / (r + 1)
                for s in range(1, m):
                    terms += runs[r, s] / ((r + 1) * (s + 1))
            return total + np.einsum("ijk,ijk->k", M, terms)
        longer = {(r + 1, s + 1): M * (A / ((r + 1) * (s + 1))) for (r, s), A in runs.items()}
        longer[1, 1] = M * before(before(sum(by_x), 0), 1)
        for r in range(1, m):
            longer[r + 1, 1] = M * before(by_x[r - 1] / (r + 1), 1)
            longer[1, r + 1] = M * before(by_z[r - 1] / (r + 1), 0)
        runs = longer
        total = total + sum(A.sum(axis=(0, 1)) for A in runs.values())
    return total


def before(A: np.ndarray, axis: int) -> np.ndarray:
    """The sum of the entries before each one along an axis."""
    return np.cumsum(A, axis=axis) - A


def explicit(X: np.ndarray) -> np.ndarray:
    import iisignature

    S = np.column_stack([np.ones(len(X)), iisignature.sig(X, LEVEL)])
    return S @ S.T


def measured(run: Callable[[], Any], runs: int) -> tuple[float, float, Any]:
    """The shortest wall and processor times, and the result."""
    wall, processor, result = [], [], None
    for _ in range(runs):
        clocks = time.perf_counter(), time.process_time()
        result = run()
        wall.append(time.perf_counter() - clocks[0])
        processor.append(time.process_time() - clocks[1])
    return min(wall), min(processor), result


def compare(title: str, competitors: dict[str, tuple[Callable[[], Any], int]], share: int) -> None:
    """One table; the first competitor is ours, and NumPy gets the first of `share` parts of the series."""
    heading(f"{title}")
    results = {name: measured(run, runs) for name, (run, runs) in competitors.items()}
    first = next(iter(results))
    for name in [name for name in results if name.startswith("NumPy")]:
        seconds, processor, matrix = results[name]
        results[name] = share**2 * seconds, share**2 * processor, matrix
        others = results[name]
    wall, own, K = results[first]
    for name, (_, _, matrix) in results.items():
        m = len(matrix)
        np.testing.assert_allclose(matrix, K[:m, :m], rtol=1e-8, atol=1e-10 * np.abs(K).max(), err_msg=name)
    rows = [
        [
            name,
            f"{s:.3f}",
            f"{p:.3f}",
            "" if name == first else f"{s / wall:.1f}×",
            "" if name == first else f"{p / own:.1f}×",
        ]
        for name, (s, p, _) in results.items()
    ]
    table(["", "seconds", "processor", "Mercer is faster by", "by processor time"], rows)
    compared(f"{title}, processor time", {name: processor for name, (_, processor, _) in results.items()})
    judge([("× NumPy, by processor time", others[1] / own, 10.0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    n = 40 if parser.parse_args().quick else 200
    share = n // 40
    peer = "NumPy" if share == 1 else f"NumPy (extrapolated: n/{share}, × {share**2})"
    machine()
    X = 0.1 * np.random.default_rng(0).normal(size=(n, 100, 5)).cumsum(axis=1)
    size = f"{n} series of 100 points and 5 channels"
    for name, k in (("Gaussian(1.0)", mc.Signature(LEVEL, mc.Gaussian(1.0))), ("Linear()", mc.Signature(LEVEL))):
        k(X[:30])  # compiles
        sigma = 1.0 if name.startswith("G") else None
        competitors: dict[str, Any] = {
            "Mercer": (lambda k=k: k(X), 5),
            peer: (lambda sigma=sigma: numpy_signature(X[: n // share], sigma), 2),
        }
        if sigma is None:
            phi = mc.Signature(LEVEL).features(5)
            competitors["Mercer, explicit features"] = (lambda phi=phi: phi(X) @ phi(X).T, 3)
            if importlib.util.find_spec("iisignature"):
                competitors["iisignature, explicit features"] = (lambda: explicit(X), 3)
        compare(f"Signature of level {LEVEL}, static {name}: {size}", competitors, share)


if __name__ == "__main__":
    main()
