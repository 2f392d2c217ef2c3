"""Constants that only steer time and memory: times at a quarter of each value, at the value, and at four times it.

They are in `memory.py`, `threads.py` and the `costs.py` of every folder, and alone in a few modules (`SINGLE` below).
Each has a workload here whose time it steers (a test compares the lists). One process runs a workload with the three
values in turns, and the shortest times count. Compiled loops and classes take a constant over when they are compiled or
defined: for those, three processes run in turns, with caches of loops of their own.

    python benchmarks/constants.py            # as the processor is, a few minutes
    python benchmarks/constants.py --avx2     # as one without AVX-512 would: 256-bit loops, Haswell BLAS
    python benchmarks/constants.py --busy     # without those about threads, which need idle cores
    python benchmarks/constants.py solvers    # only constants whose name contains a word
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import measure

FACTORS = (0.25, 1.0, 4.0)
SECONDS, FEWEST, MOST = 0.2, 3, 20
"""A case runs its three values in turns for about this long, at least and at most this often."""
MODULES = (
    "memory",
    "threads",
    "_loops.costs",
    "kernels.costs",
    "gram.costs",
    "smoothing.costs",
    "solvers.costs",
    "models.svm.costs",
)
AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt"
    ",+movbe",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "NUMBA_CACHE_DIR": str(Path(tempfile.gettempdir()) / f"numba-avx2-{os.getuid()}"),
}
SINGLE = (
    "features.images.PATCHES",
    "rkhs.geometry.FIRST", "tuning.ridge_grid.BATCH", "tuning.loo.ONE_THREAD", "models.local.neighbors_base.GROUP_ROWS",
    "models.density.parzen_line.DIRECT", "models.perceptron.perceptron.MATRIX_ROWS",
    "models.likelihood.predictor.FEATURES_PER_ROW",
)  # fmt: skip
"""Constants that are alone in their folder."""
THREADED = {
    *("threads.WORTH_A_THREAD", "gram.costs.INTERRUPTIBLE_ROWS", "models.svm.costs.OWN_THREADS"),
    *("models.svm.costs.SHARED_PREPARATION", "tuning.ridge_grid.BATCH", "tuning.loo.ONE_THREAD"),
}
"""Constants whose workloads use all threads, by the clock; the others use one thread, and count its processor time."""
FRESH = (
    {"_loops.costs." + name for name in ("PANEL_ROWS", "WEIGHED_POINTS", "SOFTMAX_ENTRIES", "LEAF_POINTS")},
    {"_loops.costs.MIRROR_ROWS"},
    {"solvers.costs." + name for name in ("EXAMPLES", "PRIMAL_EXAMPLES")},
)
"""Constants that are taken over when a loop is compiled or a class is defined.

Those of a group are scaled together: no other constant of the group acts on a workload.
"""

Work = Callable[[], Any]
CASES: dict[str, list[tuple[str, Callable[[], Work]]]] = {}


def case(name: str, words: str) -> Callable[[Callable[[], Work]], Callable[[], Work]]:
    """Register a workload: a function that prepares data and returns what is timed."""

    def register(make: Callable[[], Work]) -> Callable[[], Work]:
        CASES.setdefault(name, []).append((words, make))
        return make

    return register


def normal(*shape: int) -> Any:
    """The same normal numbers in every process."""
    return np.random.default_rng(0).normal(size=shape)


def wave(X: Any) -> Any:
    """Targets that a kernel can learn, with noise."""
    return np.sin(X[:, 0]) + 0.5 * X[:, -1] + 0.1 * normal(len(X), 2)[:, 1]


def ridge(n: int, d: int = 5, **arguments: Any) -> Work:
    import mercer as mc

    X = normal(n, d)
    y = wave(X)
    return lambda: mc.KernelRidge(mc.Gaussian(1.5), **arguments).fit(X, y)


def machine(n: int, d: int = 10, classes: int = 2, **arguments: Any) -> Work:
    import mercer as mc

    X = normal(n, d)
    y = np.digitize(wave(X), np.quantile(wave(X), np.linspace(0, 1, classes + 1)[1:-1]))
    return lambda: mc.SVC(mc.Gaussian(2.0), **arguments).fit(X, y)


def filled(kernel: str, n: int, d: int, m: int | None = None) -> Work:
    import mercer as mc

    k, sides = mc.parse(kernel), [normal(n, d)] + ([] if m is None else [normal(m, d)[::-1].copy()])
    out = np.empty((n, m or n))  # a new matrix costs more for its pages than for its values
    return lambda: mc.gram.of(k, *sides).fill(out)  # what is kept of the points is made anew


def summed(weight: str, n: int, m: int, d: int, columns: int = 2, degree: int = 0, width: float = 1.0) -> Work:
    import mercer as mc
    from mercer.smoothing.sums import sums

    w = getattr(mc, weight)(width)
    x, z, V = w.prepare(normal(n, d)), w.prepare(normal(m, d)[::-1].copy()), np.abs(normal(n, columns))
    return lambda: sums(w, x, V, z, degree=degree)


# --- memory and threads -----------------------------------------------------------------------------------------------


@case("memory.HELD", "Epanechnikov regression of degree 1, 5 columns, 1000 rows, 5000 queries")
def _() -> Work:
    import mercer as mc

    X = normal(1000, 5)
    model, Z = mc.LocalRegression(mc.Epanechnikov(4.0), degree=1).fit(X, wave(X)), normal(5000, 5)
    return lambda: model.predict(Z)


@case("memory.CACHED", "features of degree 3 of 10 columns, 10 000 rows")
def _() -> Work:
    import mercer as mc

    X = normal(10_000, 10)
    phi = mc.Polynomial(3, 1.0).features(10)
    return lambda: phi(X)


@case("memory.CACHED", "600 Fourier features, 3000 rows")
def _() -> Work:
    import mercer as mc

    X = normal(3000, 10)
    phi = mc.fourier_features(mc.Gaussian(1.0), 10, 600, random_state=0)
    return lambda: phi(X)


@case("memory.CACHED", "Nyström ridge, 10 000 rows, 150 centres")
def _() -> Work:
    return ridge(10_000, solver="nystrom", n_centers=150, alpha=0.1)


@case("memory.CACHED", "Nyström ridge, 10 000 rows, 60 centres")
def _() -> Work:
    return ridge(10_000, solver="nystrom", n_centers=60, alpha=0.1)


@case("memory.CACHED", "logistic regression, 10 000 rows, 60 features")
def _() -> Work:
    import mercer as mc

    X = normal(10_000, 60)
    y = wave(X) > 0
    return lambda: mc.LogisticRegression(alpha=1.0).fit(X, y)


@case("threads.WORTH_A_THREAD", "logistic regression, 15 000 rows, 30 features")
def _() -> Work:
    import mercer as mc

    X = normal(15_000, 30)
    y = wave(X) > 0
    return lambda: mc.LogisticRegression(alpha=1.0).fit(X, y)


@case("threads.WORTH_A_THREAD", "logistic loss of 500 000 rows")
def _() -> Work:
    from mercer.problems.losses import loss_of

    eta = normal(500_000, 1)
    y = (eta[:, 0] > 0).astype(float)
    return lambda: loss_of("binomial").terms(y, eta)


# --- compiled loops ---------------------------------------------------------------------------------------------------


@case("_loops.costs.COMPILED_ENTRIES", "Gaussian k(X), 160 rows, 5 columns")
def _() -> Work:
    return called(160)


@case("_loops.costs.COMPILED_ENTRIES", "Gaussian k(X), 480 rows, 5 columns")
def _() -> Work:
    return called(480)


def texts(n: int, length: int) -> list[str]:
    """The same texts of four letters in every process."""
    letters = np.random.default_rng(0).integers(0, 4, (n, length))
    return ["".join("ACGT"[i] for i in row) for row in letters.tolist()]


def structured(kernel: str, X: Any) -> Work:
    import mercer as mc

    k = mc.parse(kernel)
    return lambda: k(X)


def called(n: int) -> Work:
    import mercer as mc

    k, X = mc.Gaussian(1.0), normal(n, 5)
    return lambda: [k(X) for _ in range(5)]


@case("_loops.costs.INTERPRETED_CELLS", "Subsequence k(X), 10 texts of 12 symbols")
def _() -> Work:
    return structured("Subsequence(3)", texts(10, 12))


@case("_loops.costs.INTERPRETED_CELLS", "Subsequence k(X), 30 texts of 12 symbols")
def _() -> Work:
    return structured("Subsequence(3)", texts(30, 12))


@case("_loops.costs.INTERPRETED_NODES", "SubsetTree k(X), 8 trees of 7 nodes")
def _() -> Work:
    return structured("SubsetTree()", [("S", (a, "x", "y"), (b, "z")) for a in "ABCD" for b in "AB"])


@case("_loops.costs.SORTED_KEYS", "Spectrum k(X), 4000 texts of 40 symbols")
def _() -> Work:
    return structured("Spectrum(3)", texts(4000, 40))


@case("_loops.costs.SORTED_KEYS", "Spectrum k(X), 600 texts of 200 symbols")
def _() -> Work:
    return structured("Spectrum(3)", texts(600, 200))


@case("_loops.costs.NEAR_ROWS", "Tanimoto k(X), 2000 rows of 2048 bits")
def _() -> Work:
    return structured("Tanimoto()", normal(2000, 2048) > 1)


@case("_loops.costs.NEAR_BYTES", "Gaussian k(X), 2000 rows, 20 columns")
@case("_loops.costs.MIRROR_ROWS", "Gaussian k(X), 2000 rows, 20 columns")
@case("_loops.costs.FAR_BYTES", "Gaussian k(X), 2000 rows, 20 columns")
def _() -> Work:
    return filled("Gaussian(1.0)", 2000, 20)


@case("_loops.costs.PANEL_ROWS", "Gaussian k(X, Z), 2000 rows each, 20 columns")
def _() -> Work:
    return filled("Gaussian(1.0)", 2000, 20, 2000)


@case("_loops.costs.PANEL_ROWS", "Gaussian k(X, Z) in new memory, 2000 rows each, 20 columns")
def _() -> Work:
    import mercer as mc

    k, X, Z = mc.Gaussian(1.0), normal(2000, 20), normal(4000, 20)[2000:]
    return lambda: k(X, Z)


@case("_loops.costs.PANEL_ROWS", "Gaussian K v computed anew, 3000 rows, 20 columns")
def _() -> Work:
    import mercer as mc

    K, v = mc.gram.of(mc.Gaussian(3.0), normal(3000, 20)), normal(3000, 2)
    return lambda: K @ v


@case("_loops.costs.WEIGHED_POINTS", "local cubic sums, 2 columns, 2000 rows")
def _() -> Work:
    return summed("Gaussian", 2000, 2000, 2, degree=3, width=0.2)


@case("_loops.costs.WEIGHED_POINTS", "Epanechnikov sums, 2 columns, 10 000 rows")
def _() -> Work:
    return summed("Epanechnikov", 10_000, 10_000, 2, width=0.3)


@case("_loops.costs.SOFTMAX_ENTRIES", "softmax loss, 50 000 rows, 10 classes")
def _() -> Work:
    from mercer.problems.losses import Softmax

    eta = normal(50_000, 10)
    y = eta.argmax(axis=1)
    return lambda: Softmax(10).terms(y, eta)


@case("_loops.costs.LEAF_POINTS", "Epanechnikov sums on a line, 100 000 rows")
def _() -> Work:
    return summed("Epanechnikov", 100_000, 100_000, 1, width=0.3)


# --- kernels ----------------------------------------------------------------------------------------------------------


@case("kernels.costs.TILE_ROWS", "Laplacian k(X), 2000 rows, 10 columns")
@case("kernels.costs.TILE_COLS", "Laplacian k(X), 2000 rows, 10 columns")
def _() -> Work:
    return filled("Laplacian(1.0)", 2000, 10)


@case("kernels.costs.TILE_ROWS", "Matern k(X), 1500 rows, 100 columns")
@case("kernels.costs.TILE_COLS", "Matern k(X), 1500 rows, 100 columns")
def _() -> Work:
    return filled("Matern(10.0)", 1500, 100)


@case("kernels.costs.FUSED_COLUMNS", "Gaussian k(X), 1500 rows, 40 columns")
def _() -> Work:
    return filled("Gaussian(6.0)", 1500, 40)


@case("kernels.costs.FUSED_COLUMNS", "Gaussian k(X), 1500 rows, 120 columns")
def _() -> Work:
    return filled("Gaussian(10.0)", 1500, 120)


@case("kernels.costs.FREQUENT_SHARE", "Spectrum k(X), 1500 texts of 100 symbols, runs of 3")
def _() -> Work:
    return structured("Spectrum(3)", texts(1500, 100))


@case("kernels.costs.FREQUENT_SHARE", "Spectrum k(X), 1500 texts of 100 symbols, runs of 5")
def _() -> Work:
    return structured("Spectrum(5)", texts(1500, 100))


@case("kernels.costs.COMPILED_TIMES", "Signature k(X), 40 series of 40 points, 3 channels")
def _() -> Work:
    return structured("Signature(3, Gaussian(1.0))", normal(40, 40, 3))


@case("kernels.costs.COMPILED_TIMES", "Signature k(X), 70 series of 50 points, 3 channels")
def _() -> Work:
    return structured("Signature(3, Gaussian(1.0))", normal(70, 50, 3))


@case("features.images.PATCHES", "features of 400 images of 28 × 28 pixels, 64 anchors")
def _() -> Work:
    import mercer as mc

    X = np.abs(normal(400, 28, 28))
    phi = mc.patch_features(mc.Patches(size=5), X, anchors=64)
    return lambda: phi(X)


@case("kernels.costs.FEW_ROWS", "Spectrum k(x, X), 1 and 30 texts with 4000 of 40 symbols")
def _() -> Work:
    import mercer as mc

    k, every = mc.Spectrum((3, 6)), texts(4030, 40)
    train = k.prepare(every[30:])
    return lambda: (k(every[:1], train), k(every[:30], train))


@case("kernels.costs.SORTED_CHARACTERS", "Spectrum features of 1000 texts of 40 symbols")
def _() -> Work:
    import mercer as mc

    X = texts(1000, 40)
    return lambda: mc.Spectrum(2).encode(X)


@case("kernels.costs.SORTED_CHARACTERS", "Spectrum features of 4000 texts of 40 symbols")
def _() -> Work:
    import mercer as mc

    X = texts(4000, 40)
    return lambda: mc.Spectrum(2).encode(X)


@case("kernels.costs.NONZERO_SHARE", "MinMax k(X), 1000 rows, 200 columns, 15 % and 40 % of the counts above 0")
def _() -> Work:
    import mercer as mc

    rng = np.random.default_rng(0)
    few, many = (rng.poisson(rate, size=(1000, 200)) for rate in (0.16, 0.5))
    return lambda: (mc.MinMax()(few), mc.MinMax()(many))


@case("kernels.costs.DIAGONAL_POINTS", "k(x, x) of a set kernel, 5000 sets")
def _() -> Work:
    import mercer as mc

    k = mc.Intersection()
    points = k.prepare([set(np.flatnonzero(row > 1)) | {99} for row in normal(5000, 20)])
    return lambda: mc.Similarity.diagonal(k, points)


# --- Gram matrices ----------------------------------------------------------------------------------------------------


def sparse_nystrom(columns: int) -> Work:
    import scipy.sparse as sp

    import mercer as mc

    X = sp.random(3000, 2000, density=columns / 2000, random_state=0, format="csr")
    y = np.asarray(X[:, :1000].sum(axis=1)).ravel()
    return lambda: mc.KernelRidge(mc.Gaussian(3.0), solver="nystrom", n_centers=100, alpha=0.1).fit(X, y)


def dense_nystrom(columns: int) -> Work:
    return ridge(6000, columns, solver="nystrom", n_centers=150, alpha=0.01)


@case("gram.costs.COORDINATE", "Nyström ridge, 6000 rows, 100 columns, 150 centres")
@case("gram.costs.OPERATION", "Nyström ridge, 6000 rows, 100 columns, 150 centres")
@case("gram.costs.WORTH_STORING", "Nyström ridge, 6000 rows, 100 columns, 150 centres")
def _() -> Work:
    return dense_nystrom(100)


@case("gram.costs.WORTH_STORING", "Nyström ridge, 6000 rows, 10 columns, 150 centres")
def _() -> Work:
    return dense_nystrom(10)


@case("gram.costs.OPERATION", "Nyström ridge, 3000 sparse rows of 5 numbers, 100 centres")
def _() -> Work:
    return sparse_nystrom(5)


@case("gram.costs.STORED_SHARE", "Nyström ridge within 60 MB, 6000 rows, 200 columns, 200 centres")
def _() -> Work:
    return ridge(6000, 200, solver="nystrom", n_centers=200, alpha=0.01, budget="60MB")


@case("gram.costs.STORED_ROWS", "machine on 4000 rows, sum of two kernels")
def _() -> Work:
    import mercer as mc

    X = normal(4000, 5)
    y = wave(X) > 0
    return lambda: mc.SVC(mc.Matern(2.0) + mc.Laplacian(3.0)).fit(X, y)


@case("gram.costs.PIVOTS", "300 pivoted columns of 3000")
def _() -> Work:
    import mercer as mc
    from mercer.gram.pivoted import pivoted_cholesky

    K = mc.gram.of(mc.Gaussian(1.0), normal(3000, 5))
    return lambda: pivoted_cholesky(K, 300, rng=np.random.default_rng(0))


@case("gram.costs.INTERRUPTIBLE_ROWS", "eigendecomposition of 300 rows")
def _() -> Work:
    from mercer.gram import lapack

    A = normal(300, 300)
    return lambda: lapack.eigh(np.asfortranarray(A @ A.T))


# --- local sums -------------------------------------------------------------------------------------------------------


@case("smoothing.costs.FEW_PAIRS", "Epanechnikov sums, 2 columns, 100 × 100 pairs")
def _() -> Work:
    return summed("Epanechnikov", 100, 100, 2)


@case("smoothing.costs.FEW_PAIRS", "Gaussian sums on a line, 200 × 200 pairs")
def _() -> Work:
    return summed("Gaussian", 200, 200, 1)


@case("kernels.costs.TILE_ROWS", "Laplacian sums, 5 columns, 3000 × 3000 pairs")
@case("kernels.costs.TILE_COLS", "Laplacian sums, 5 columns, 3000 × 3000 pairs")
def _() -> Work:
    return summed("Laplacian", 3000, 3000, 5)


@case("smoothing.costs.MATRIX_COLUMNS", "Gaussian sums of 32 columns, 2 columns of points, 3000 × 3000 pairs")
def _() -> Work:
    return summed("Gaussian", 3000, 3000, 2, columns=32, width=0.3)


@case("smoothing.costs.MATRIX_COLUMNS", "Gaussian sums of 128 columns, 2 columns of points, 3000 × 3000 pairs")
def _() -> Work:
    return summed("Gaussian", 3000, 3000, 2, columns=128, width=0.3)


@case("smoothing.costs.DIRECT_COLUMNS", "Epanechnikov sums, 6 columns, 3000 × 3000 pairs")
def _() -> Work:
    return summed("Epanechnikov", 3000, 3000, 6, width=3.0)


@case("smoothing.costs.DIRECT_COLUMNS", "Epanechnikov sums, 16 columns, 3000 × 3000 pairs")
def _() -> Work:
    return summed("Epanechnikov", 3000, 3000, 16, width=5.0)


@case("smoothing.costs.NEAR_SHARE", "Epanechnikov sums, a third of 5000 points in reach")
def _() -> Work:
    return summed("Epanechnikov", 5000, 5000, 2, width=1.4)


@case("smoothing.costs.NEAR_SHARE", "Epanechnikov sums, two thirds of 5000 points in reach")
def _() -> Work:
    return summed("Epanechnikov", 5000, 5000, 2, width=2.2)


@case("smoothing.costs.CELL_POINTS", "Epanechnikov sums, 2 columns, 10 000 rows")
@case("smoothing.costs.GROUP_QUERIES", "Epanechnikov sums, 2 columns, 10 000 rows")
def _() -> Work:
    return summed("Epanechnikov", 10_000, 10_000, 2, width=0.2)


@case("smoothing.costs.FAR_PAIRS", "Gaussian sums on a line, 20 000 rows, half of 20 000 queries far away")
def _() -> Work:
    import mercer as mc
    from mercer.smoothing.sums import sums

    w, x = mc.Gaussian(0.05), np.sort(normal(20_000, 1), axis=0)
    x, z = w.prepare(np.r_[x[:10_000], x[10_000:] + 5.0]), w.prepare(np.linspace(-4.0, 9.0, 20_000)[:, None])
    V = np.ones((20_000, 1))
    return lambda: sums(w, x, V, z)


@case("smoothing.costs.LINE_POINTS", "Gaussian sums on a line, 50 000 rows")
def _() -> Work:
    return summed("Gaussian", 50_000, 50_000, 1, width=0.05)


@case("smoothing.costs.TREE_NEIGHBOURS", "distance to the 40th of 3000 neighbours, 3 columns")
def _() -> Work:
    return widths(40)


@case("smoothing.costs.TREE_NEIGHBOURS", "distance to the 150th of 3000 neighbours, 3 columns")
def _() -> Work:
    return widths(150)


def widths(k: int) -> Work:
    from mercer.data.points import Points
    from mercer.smoothing import neighbours

    x = Points(normal(3000, 3))
    return lambda: neighbours.neighbour_distances(x, np.ones(3), k)


@case("smoothing.costs.MOMENT_COLUMNS", "likelihood of widths with gradient, 2 columns, 2000 rows")
def _() -> Work:
    return likelihood(2)


@case("smoothing.costs.MOMENT_COLUMNS", "likelihood of widths with gradient, 5 columns, 2000 rows")
def _() -> Work:
    return likelihood(5)


def likelihood(d: int) -> Work:
    from mercer.smoothing import density

    X, V = normal(2000, d), np.ones((2000, 1))
    return lambda: density.left_out_sums(X, np.full(d, 0.5), V)


# --- solvers ----------------------------------------------------------------------------------------------------------


@case("solvers.costs.FLOAT64_ROWS", "kernel ridge, 700 rows")
def _() -> Work:
    return ridge(700, alpha=0.01)


@case("solvers.costs.FLOAT64_ROWS", "kernel ridge, 2000 rows")
@case("solvers.costs.STORED_ROWS", "kernel ridge, 2000 rows")
@case("solvers.costs.FACTOR_ITERATIONS", "kernel ridge, 2000 rows")
def _() -> Work:
    return ridge(2000, alpha=0.01)


@case("solvers.costs.FACTORS", "Nyström ridge for 16 penalties, 4000 rows, 200 centres")
def _() -> Work:
    return penalties(4000, 16, solver="nystrom", n_centers=200)


@case("solvers.costs.FACTORS", "Nyström ridge for 4 penalties, 4000 rows, 200 centres")
def _() -> Work:
    return penalties(4000, 4, solver="nystrom", n_centers=200)


@case("solvers.costs.SOLUTIONS", "kernel ridge for 6 penalties, 1200 rows")
def _() -> Work:
    return penalties(1200, 6)


@case("solvers.costs.SOLUTIONS", "kernel ridge for 30 penalties, 1200 rows")
def _() -> Work:
    return penalties(1200, 30)


def penalties(n: int, t: int, **arguments: Any) -> Work:
    import mercer as mc

    X = normal(n, 5)
    Y = wave(X)[:, None] * np.ones(t) + normal(n, t)
    return lambda: mc.KernelRidge(mc.Gaussian(1.5), alpha=np.geomspace(0.01, 1.0, t), **arguments).fit(X, Y)


@case("_loops.costs.CELL_POINTS", "kernel ridge on frequencies, 300 000 rows, 2 columns")
def _() -> Work:
    return on_frequencies(300_000, "Matern(0.3, nu=2.5)", 0.1, 1e-2)


@case("solvers.costs.FACTORED_FREQUENCIES", "kernel ridge on 10 000 frequencies, 20 000 rows, 2 columns")
def _() -> Work:
    return on_frequencies(20_000, "Gaussian(0.03)", 0.01, 1e-4)


@case("solvers.costs.MOST_FREQUENCIES", "kernel ridge beyond memory, 20 000 rows, 2 columns")
def _() -> Work:
    return on_frequencies(20_000, "Matern(0.1, nu=1.5)", 1e-4, 1e-2, solver="auto", budget="900 MB")


def on_frequencies(n: int, kernel: str, alpha: float, tol: float, solver: str = "fourier", **more: Any) -> Work:
    import mercer as mc

    X = np.random.default_rng(0).uniform(size=(n, 2))
    y = wave(4 * X) + 0.3 * normal(n, 1)[:, 0]
    k = eval(f"mc.{kernel}", {"mc": mc})
    return lambda: mc.KernelRidge(k, alpha=alpha, tol=tol, solver=solver, **more).fit(X, y)


@case("solvers.costs.FEW_COLUMNS", "kernel ridge of 4 targets, 1500 rows")
def _() -> Work:
    return targets(4)


@case("solvers.costs.FEW_COLUMNS", "kernel ridge of 16 targets, 1500 rows")
def _() -> Work:
    return targets(16)


def targets(t: int) -> Work:
    import mercer as mc

    X = normal(1500, 5)
    Y = wave(X)[:, None] + normal(1500, t)
    return lambda: mc.KernelRidge(mc.Gaussian(1.5), alpha=0.01).fit(X, Y)


@case("solvers.costs.PIVOTED_ROWS", "kernel ridge, 2000 rows, alpha 0.1")
def _() -> Work:
    return ridge(2000, alpha=0.1)


@case("solvers.costs.PIVOTED_SHARE", "kernel ridge, 5200 rows, alpha 0.1")
@case("solvers.costs.PIVOTED_ROWS", "kernel ridge, 5200 rows, alpha 0.1")
@case("solvers.costs.PIVOTED_RANK", "kernel ridge, 5200 rows, alpha 0.1")
@case("solvers.costs.PIVOTED_ITERATIONS", "kernel ridge, 5200 rows, alpha 0.1")
def _() -> Work:
    return ridge(5200, alpha=0.1)


@case("solvers.costs.SAMPLED_FLOPS", "Nyström ridge, 10 000 rows, 350 centres")
def _() -> Work:
    return ridge(10_000, solver="nystrom", n_centers=350, alpha=0.1)


@case("solvers.costs.SAMPLED_FLOPS", "Nyström ridge, 15 000 rows, 550 centres")
@case("solvers.costs.ENTRY_FLOPS", "Nyström ridge, 15 000 rows, 550 centres")
def _() -> Work:
    return ridge(15_000, solver="nystrom", n_centers=550, alpha=0.1)


@case("solvers.costs.CHEAP_FLOPS", "logistic regression, 5000 rows, 40 features")
def _() -> Work:
    return logistic(5000, 40)


@case("solvers.costs.CHEAP_FLOPS", "logistic regression, 5000 rows, 70 features")
def _() -> Work:
    return logistic(5000, 70)


@case("solvers.costs.NARROW_FEATURES", "logistic regression, 8000 rows, 80 features")
def _() -> Work:
    return logistic(8000, 80)


@case("solvers.costs.NARROW_FEATURES", "logistic regression, 8000 rows, 250 features")
def _() -> Work:
    return logistic(8000, 250)


def logistic(n: int, d: int) -> Work:
    import mercer as mc

    X = normal(n, d)
    y = wave(X) > 0
    return lambda: mc.LogisticRegression(alpha=1.0).fit(X, y)


@case("solvers.costs.FACTORED_FEATURES", "logistic regression, 1100 rows, 1050 features")
def _() -> Work:
    return logistic(1100, 1050)


@case("solvers.costs.FACTORED_FEATURES", "logistic regression, 2500 rows, 1050 correlated features")
def _() -> Work:
    import mercer as mc

    X = (normal(2500, 1050) / np.arange(1, 1051)) @ normal(1050, 1050)
    y = wave(X) > 0
    return lambda: mc.LogisticRegression(alpha=1.0).fit(X, y)


@case("solvers.costs.FEW_ROWS", "3 principal components of 200 rows")
def _() -> Work:
    return components(200, 3)


@case("solvers.costs.FEW_ROWS", "3 principal components of 600 rows")
def _() -> Work:
    return components(600, 3)


@case("solvers.costs.MANY_VECTORS", "60 principal components of 600 rows")
def _() -> Work:
    return components(600, 60)


@case("solvers.costs.PRODUCT_ROWS", "10 principal components of 2000 rows")
def _() -> Work:
    return components(2000, 10)


def components(n: int, t: int, **arguments: Any) -> Work:
    import mercer as mc

    X = normal(n, 5)
    return lambda: mc.KernelPCA(mc.Gaussian(2.0), n_components=t, **arguments).fit(X)


@case("solvers.costs.DOUBLE_VARIABLES", "machine on 300 rows")
def _() -> Work:
    return machine(300)


@case("solvers.costs.DOUBLE_VARIABLES", "machine on 1000 rows")
def _() -> Work:
    return machine(1000)


@case("solvers.costs.WHOLE_VARIABLES", "machine on 3000 rows")
def _() -> Work:
    return machine(3000)


@case("solvers.costs.WHOLE_VARIABLES", "machine on 6000 rows")
@case("solvers.costs.FIRST_VARIABLES", "machine on 6000 rows")
@case("solvers.costs.SET_VARIABLES", "machine on 6000 rows")
@case("solvers.costs.EXACT_VALUES", "machine on 6000 rows")
def _() -> Work:
    return machine(6000)


@case("solvers.costs.EXACT_VALUES", "machine on 2000 rows")
def _() -> Work:
    return machine(2000)


@case("solvers.costs.EXAMPLES", "perceptron, 6000 rows")
@case("solvers.costs.SEGMENT_VECTORS", "perceptron, 6000 rows")
def _() -> Work:
    return perceptron()


@case("solvers.costs.EXAMPLES", "perceptron of 300 support vectors, 6000 rows")
@case("solvers.costs.TRIANGLE_ROWS", "perceptron of 300 support vectors, 6000 rows")
def _() -> Work:
    return perceptron(max_support=300)


@case("solvers.costs.EXAMPLES", "forgetful perceptron of 300 support vectors, 6000 rows")
def _() -> Work:
    return perceptron(max_support=300, on_full="forgetron")


def perceptron(**arguments: Any) -> Work:
    import mercer as mc

    X = normal(6000, 10)
    y = wave(X) > 0
    return lambda: mc.KernelPerceptron(mc.Gaussian(2.0), **arguments).fit(X, y)


@case("solvers.costs.PRIMAL_EXAMPLES", "perceptron on features, 50 000 rows, 20 features")
def _() -> Work:
    import mercer as mc

    X = normal(50_000, 20)
    y = wave(X) > 0
    return lambda: mc.Perceptron().fit(X, y)


# --- models -----------------------------------------------------------------------------------------------------------


@case("models.svm.costs.OWN_THREADS", "machine of 3 classes, 3000 rows")
def _() -> Work:
    return machine(3000, classes=3)


@case("models.svm.costs.SHARED_PREPARATION", "machine of 10 classes, 1000 rows")
def _() -> Work:
    return machine(1000, classes=10)


@case("models.svm.costs.CLASSES_TOGETHER", "votes of 8 classes, 1500 rows, 3000 queries")
def _() -> Work:
    return votes(8)


@case("models.svm.costs.CLASSES_TOGETHER", "votes of 24 classes, 1500 rows, 3000 queries")
def _() -> Work:
    return votes(24)


def votes(classes: int) -> Work:
    model, Z = machine(1500, classes=classes)(), normal(3000, 10)
    return lambda: model.predict(Z)


@case("models.svm.costs.STORED_COLUMNS", "machine of 5 classes, 1500 rows, 300 columns")
def _() -> Work:
    return machine(1500, d=300, classes=5)


@case("models.svm.costs.STORED_COLUMNS", "machine of 5 classes, 1500 rows, 60 columns")
def _() -> Work:
    return machine(1500, d=60, classes=5)


@case("rkhs.geometry.FIRST", "5 nearest of 3000 points, 3000 queries")
def _() -> Work:
    import mercer as mc

    X, Z = normal(3000, 10), normal(6000, 10)[3000:]
    return lambda: mc.nearest(mc.Gaussian(2.0), X, Z, 5)


@case("tuning.ridge_grid.BATCH", "grid of 8 widths and 3 penalties, 300 rows")
def _() -> Work:
    import mercer as mc

    X = normal(300, 5)
    y = wave(X)
    grid = {"kernel__sigma": np.geomspace(0.5, 4, 8), "alpha": [0.01, 0.1, 1.0]}
    return lambda: mc.tune(mc.KernelRidge(mc.Gaussian(1.0)), X, y, grid=grid, by=5)


@case("tuning.loo.ONE_THREAD", "leave-one-out error with gradient, 300 rows")
def _() -> Work:
    return loo(300)


@case("tuning.loo.ONE_THREAD", "leave-one-out error with gradient, 1000 rows")
def _() -> Work:
    return loo(1000)


def loo(n: int) -> Work:
    import mercer as mc
    from mercer.data.points import Points
    from mercer.tuning.loo import loo_error

    X = normal(n, 5)
    return lambda: loo_error(mc.Gaussian(1.5), Points(X), wave(X)[:, None], 0.1, None, None, gradient=True)


@case("models.local.neighbors_base.GROUP_ROWS", "10 neighbours by a kernel, 3000 rows, 3000 queries")
def _() -> Work:
    import mercer as mc

    X = normal(3000, 5)
    model, Z = mc.KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors=10).fit(X, wave(X)), normal(6000, 5)[3000:]
    return lambda: model.predict(Z)


@case("models.density.parzen_line.DIRECT", "probabilities on a line, 3000 rows, 3000 queries")
def _() -> Work:
    return parzen(3000)


@case("models.density.parzen_line.DIRECT", "probabilities on a line, 10 000 rows, 3000 queries")
def _() -> Work:
    return parzen(10_000)


def parzen(n: int) -> Work:
    import mercer as mc

    model, z = mc.ParzenDensity(bandwidth=0.1).fit(normal(n, 1)), normal(3000, 1)
    return lambda: model.cdf(z)


@case("models.perceptron.perceptron.MATRIX_ROWS", "perceptron of 5 passes, 4000 rows")
def _() -> Work:
    import mercer as mc

    X = normal(4000, 10)
    y = wave(X) > 0
    return lambda: mc.KernelPerceptron(mc.Gaussian(2.0), max_iter=5).fit(X, y)


@case("models.likelihood.predictor.FEATURES_PER_ROW", "logistic regression, 500 rows, 800 features")
def _() -> Work:
    return logistic(500, 800)


@case("models.likelihood.predictor.FEATURES_PER_ROW", "logistic regression, 500 rows, 2500 features")
def _() -> Work:
    return logistic(500, 2500)


# --- the measurement --------------------------------------------------------------------------------------------------


def meanings(module: str) -> dict[str, str]:
    """The constants of a module and what its source says about them."""
    import mercer

    tree = ast.parse((Path(mercer.__file__).parent / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()]):
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            for target in node.targets:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(name, ast.Name) and name.id.isupper():
                        found[name.id] = str(after.value.value)
    return found


def constants() -> dict[str, str]:
    """Every constant that only steers time or memory, by its full name, and what it means."""
    found = {f"{module}.{name}": words for module in MODULES for name, words in meanings(module).items()}
    for name in SINGLE:
        module, _, last = name.rpartition(".")
        found[name] = meanings(module).get(last, "")
    return found


def put(name: str, factor: float) -> Any:
    """Multiply a constant by a factor, and return its value before."""
    module, _, last = name.rpartition(".")
    home = import_module(f"mercer.{module}")
    value = getattr(home, last)
    setattr(home, last, type(value)(value * factor) if not isinstance(value, int) else max(1, round(value * factor)))
    return value


def seconds(work: Work, threaded: bool = False) -> float:
    """The time of one run."""
    clock = time.perf_counter if threaded else time.process_time
    os.environ["MERCER_NUM_THREADS"] = "" if threaded else "1"
    with warnings.catch_warnings(), threadpool_limits(limits=None if threaded else 1):
        warnings.simplefilter("ignore")
        start = clock()
        work()
        return clock() - start


def rounds() -> Iterator[int]:
    """The rounds of a case. The first, 0, compiles."""
    yield 0
    start = time.perf_counter()
    for turn in range(1, MOST + 1):
        yield turn
        if turn >= FEWEST and time.perf_counter() - start > SECONDS:
            return


def here(name: str, make: Callable[[], Work]) -> list[float]:
    """The shortest time of each value, in this process."""
    work, times = make(), dict.fromkeys(FACTORS, np.inf)
    for turn in rounds():
        for factor in FACTORS:
            before = put(name, factor)
            try:
                taken = seconds(work, name in THREADED)
            finally:
                module, _, last = name.rpartition(".")
                setattr(import_module(f"mercer.{module}"), last, before)
            if turn:  # the first compiles
                times[factor] = min(times[factor], taken)
    return list(times.values())


def served(group: int) -> list[Any]:
    """Three processes, each of which had its values of a group before it loaded anything."""
    children = []
    for factor in FACTORS:
        cache = f"numba-constants-{group}-{factor}-{os.environ.get('NUMBA_CPU_NAME', 'native')}"
        environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(tempfile.gettempdir()) / cache)}
        command = [sys.executable, __file__, "--serve", str(group), str(factor)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        children.append(subprocess.Popen(command, text=True, env=environment, **pipes))
    return children


def apart(children: list[Any], name: str, number: int) -> list[float]:
    """The same as `here`, in processes of their own."""

    def ask(child: Any) -> float:
        child.stdin.write(f"{name} {number}\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    times = [np.inf] * len(children)
    for turn in rounds():
        taken = [ask(child) for child in children]
        times = list(map(min, times, taken)) if turn else times
    return times


def serve(group: int, factor: float) -> None:
    """Run workloads by name, as they are asked for."""
    for name in FRESH[group]:
        put(name, factor)
    works: dict[str, Work] = {}
    for line in sys.stdin:
        if line not in works:
            name, number = line.split()
            works[line] = CASES[name][int(number)][1]()
        print(seconds(works[line]), flush=True)


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--serve"]:
        return serve(int(arguments[1]), float(arguments[2]))
    if "--avx2" in arguments:
        arguments.remove("--avx2")
        sys.exit(subprocess.run([sys.executable, __file__, *arguments], env=os.environ | AVX2, check=False).returncode)
    busy = "--busy" in arguments
    words = [word for word in arguments if word != "--busy"]
    measure.machine()
    print("As AVX2.\n" if "NUMBA_CPU_NAME" in os.environ else "As the processor is.\n")
    print("| constant | what it counts | workload | × ¼ | × 1 | × 4 | slowest / fastest | × 1 / fastest |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    children: dict[int, list[Any]] = {}
    for name, meaning in constants().items():
        if (busy and name in THREADED) or (words and not any(word in name for word in words)):
            continue
        group = next((i for i, names in enumerate(FRESH) if name in names), None)
        if group is not None and group not in children:
            children[group] = served(group)
        short = meaning.split(":")[0].split(". ")[0].rstrip(".")
        for number, (workload, make) in enumerate(CASES[name]):
            times = here(name, make) if group is None else apart(children[group], name, number)
            milliseconds = " | ".join(f"{1e3 * t:.3g}" for t in times)
            ratios = f"{max(times) / min(times):.2f} | {times[1] / min(times):.2f}"
            print(f"| `{name}` | {short} | {workload} | {milliseconds} | {ratios} |", flush=True)
    for child in (child for group in children.values() for child in group):
        child.stdin.close()
        child.wait()


if __name__ == "__main__":
    main()
