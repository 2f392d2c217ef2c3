"""Gram matrices and kernel products: Mercer and other libraries, in one process, in turns.

    pip install -e ".[bench]"                 # PyTorch and KeOps; a row says so if its library is not installed
    python benchmarks/gram.py                 # about ten minutes on two cores
    python benchmarks/gram.py --quick         # a minute, small sizes: does it run?
    python benchmarks/gram.py --only product  # dense | product | first

Three tables, in Markdown. *Dense*: K = exp(-|x - z|^2 / 2 sigma^2) of n = 10 000 points, allocation included.
*Product*: K @ v with n = 100 000, K not stored. *First call*: compilation, on an empty and on a filled cache.

Each time is the shortest of several runs (slow competitors get fewer, at least one); a round runs each of them once, so
that a slow minute of the machine affects all. Errors are the largest absolute differences on 200 rows from values that
are computed from coordinate differences in float64: of K itself, or of K @ v relative to its largest entry. Memory is
the peak of a fresh process that makes one call, minus its memory before the call. KeOps is measured on fewer points,
and its time is scaled by the number of pairs: such a row says "extrapolated". Targets are judged at full size only.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure import alone, compared, heading, judge, machine, peak, table, timed

# --- the competitors --------------------------------------------------------------------------------------------------


def mercer_dense(X: np.ndarray, sigma: float) -> Any:
    import mercer as mc

    return mc.Gaussian(sigma)(X)


def sklearn_dense(X: np.ndarray, sigma: float) -> Any:
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel(X, gamma=0.5 / sigma**2)


def scipy_dense(X: np.ndarray, sigma: float) -> Any:
    from scipy.spatial.distance import cdist

    K = cdist(X, X, "sqeuclidean")
    K *= -0.5 / sigma**2
    return np.exp(K, out=K)


def torch_dense(X: np.ndarray, sigma: float) -> Any:
    """One matrix product with the norms as two more columns, and exp in place: the fastest of five variants."""
    import torch

    with torch.inference_mode():
        x = torch.from_numpy(X) / sigma
        norms, ones = -0.5 * (x * x).sum(1, keepdim=True), torch.ones(len(x), 1, dtype=x.dtype)
        return (torch.cat([x, norms, ones], 1) @ torch.cat([x, ones, norms], 1).T).exp_().numpy()


def gemm_dense(X: np.ndarray, sigma: float) -> Any:
    """The full matrix product without a kernel, the limit of the machine. The copy keeps NumPy from computing half."""
    return X @ X.copy().T


def mercer_product(X: np.ndarray, sigma: float, v: np.ndarray) -> Any:
    import mercer as mc

    return mc.gram.of(mc.Gaussian(sigma), X, budget="50 MB") @ v


def torch_product(X: np.ndarray, sigma: float, v: np.ndarray) -> Any:
    """By blocks of rows of 64 MB."""
    import torch

    with torch.inference_mode():
        x, w = torch.from_numpy(X) / sigma, torch.from_numpy(v)
        norms, ones = -0.5 * (x * x).sum(1, keepdim=True), torch.ones(len(x), 1, dtype=x.dtype)
        left, right = torch.cat([x, norms, ones], 1), torch.cat([x, ones, norms], 1).T.contiguous()
        step = max(1, 2**24 // len(X))
        return torch.cat([(left[i : i + step] @ right).exp_() @ w for i in range(0, len(X), step)]).numpy()


def keops_product(X: np.ndarray, sigma: float, v: np.ndarray) -> Any:
    from pykeops.numpy import LazyTensor

    x = X / X.dtype.type(sigma)
    xi, zj = LazyTensor(x[:, None, :]), LazyTensor(x[None, :, :])
    return ((-((xi - zj) ** 2).sum(-1) / 2).exp() @ v[:, None])[:, 0]


@dataclass(frozen=True)
class Peer:
    name: str
    module: str
    function: Callable[..., Any]
    float32: bool = True
    runs: int = 5
    shrink: int = 1
    """The time is measured on n / shrink points and multiplied by shrink²."""


DENSE = [
    Peer("Mercer", "mercer", mercer_dense, runs=7),
    Peer("scikit-learn rbf_kernel", "sklearn", sklearn_dense),
    Peer("SciPy cdist + exp", "scipy", scipy_dense, float32=False, runs=2),
    Peer("PyTorch", "torch", torch_dense),
    Peer("NumPy GEMM alone", "numpy", gemm_dense),
]
PRODUCT = [
    Peer("Mercer", "mercer", mercer_product, runs=3),
    Peer("PyTorch, blocked", "torch", torch_product, runs=1),
    Peer("KeOps", "pykeops", keops_product, runs=1, shrink=5),
]


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass
class Figure:
    """The measurements of one peer."""

    peer: Peer
    seconds: float = math.inf
    error: float = math.nan
    megabytes: float = math.nan
    missing: str = ""
    times: list[float] = field(default_factory=list)


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def data(n: int, d: int, dtype: str) -> tuple[np.ndarray, float, np.ndarray]:
    """Normal points, sigma = √d (most kernel values are between 0.1 and 0.9), and a vector."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(dtype), math.sqrt(d), rng.normal(size=n).astype(dtype)


def exact_rows(X: np.ndarray, sigma: float, rows: np.ndarray) -> np.ndarray:
    """Rows of K from differences of coordinates, in float64."""
    X = X.astype(np.float64)
    return np.stack([np.exp(-0.5 * ((X - X[i]) ** 2).sum(1) / sigma**2) for i in rows])


def race(peers: list[Peer], n: int, d: int, dtype: str, product: bool, quick: bool) -> list[Figure]:
    figures = [Figure(peer) for peer in peers if peer.float32 or dtype == "float64"]
    X, sigma, v = data(n, d, dtype)
    rows = np.linspace(0, n - 1, min(n, 200)).astype(int)
    for figure in figures:
        peer = figure.peer
        if not installed(peer.module):
            figure.missing = "not installed"
            continue
        peer.function(X[:300], sigma, *([v[:300]] if product else []))  # compile, start the threads
    for round_ in range(max(peer.runs for peer in peers)):
        for figure in figures:
            peer = figure.peer
            if figure.missing or round_ >= (1 if quick else peer.runs):
                continue
            m = n // peer.shrink
            arguments = (X[:m], sigma, v[:m]) if product else (X[:m], sigma)
            seconds, K = timed(peer.function, *arguments)
            figure.times.append(seconds * peer.shrink**2)
            figure.seconds = min(figure.times)
            if round_ == 0 and peer.name != "NumPy GEMM alone":
                inside = rows[rows < m]
                exact = exact_rows(X[:m], sigma, inside)
                if product:
                    y = exact @ v[:m].astype(np.float64)
                    figure.error = float(np.abs(K[inside] - y).max() / np.abs(y).max())
                else:
                    figure.error = float(np.abs(K[inside] - exact).max())
            del K
    for figure in figures:
        if not figure.missing and figure.peer.shrink == 1:
            order = {"peak": figure.peer.name, "n": n, "d": d, "dtype": dtype, "product": product}
            (figure.megabytes,) = alone(__file__, order)
    return figures


def child(order: dict[str, Any]) -> None:
    product = order.get("product", False)
    if "peak" in order:
        peer = next(p for p in (PRODUCT if product else DENSE) if p.name == order["peak"])
        X, sigma, v = data(order["n"], order["d"], order["dtype"])
        rest = [v[:300]] if product else []
        peer.function(X[:300], sigma, *rest)
        print(peak(peer.function, X, sigma, *([v] if product else []))[0])
        return
    X, sigma, v = data(2000, 20, order["dtype"])
    start = time.perf_counter()
    import mercer as mc

    imported = time.perf_counter()
    kernel = mc.Gaussian(sigma)
    if order["first"] == "dense":
        kernel(X)
    else:
        mc.gram.of(kernel, X, budget="1 MB") @ v
    called = time.perf_counter()
    if order["first"] == "dense":
        kernel(X)
    else:
        mc.gram.of(kernel, X, budget="1 MB") @ v
    print(imported - start, called - imported, time.perf_counter() - called)


def first_call(what: str, dtype: str, cache: str) -> list[float]:
    """Seconds of import, first call and second call in a fresh process."""
    return alone(__file__, {"first": what, "dtype": dtype}, NUMBA_CACHE_DIR=cache)


# --- tables -----------------------------------------------------------------------------------------------------------


def show(task: str, figures: list[Figure], output: float) -> None:
    mercer = figures[0]
    rows = []
    for figure in figures:
        peer = figure.peer
        if figure.missing:
            rows.append([peer.name, figure.missing, "", "", ""])
            continue
        note = f" (extrapolated: n/{peer.shrink}, × {peer.shrink**2})" if peer.shrink > 1 else ""
        ratio = "" if figure is mercer else f"{figure.seconds / mercer.seconds:.1f}×"
        error = "" if math.isnan(figure.error) else f"{figure.error:.1e}"
        memory = ""
        if not math.isnan(figure.megabytes):
            memory = f"{figure.megabytes:.0f}" + (f" ({figure.megabytes / output:.2f} K)" if output else "")
        rows.append([peer.name + note, f"{figure.seconds:.3f}", ratio, error, memory])
    table(["", "seconds", "Mercer is faster by", "error", "peak MB" + (" (in sizes of K)" if output else "")], rows)
    compared(task, {figure.peer.name: figure.seconds for figure in figures})


def ratio(figures: list[Figure], name: str) -> float:
    peer = next((f for f in figures if f.peer.name.startswith(name)), None)
    return peer.seconds / figures[0].seconds if peer and not peer.missing else math.nan


def dense(n: int, quick: bool) -> None:
    for d in (20, 784):
        for dtype in ("float64", "float32"):
            heading(f"Gram matrix, n = {n}, d = {d}, {dtype}")
            figures = race(DENSE, n, d, dtype, False, quick)
            megabytes = n * n * np.dtype(dtype).itemsize / 2**20
            show(f"Gaussian Gram matrix, {n:,} × {d}, {dtype}", figures, megabytes)
            if quick:
                continue
            targets = [("output + 10 % over peak memory", 1.1 * megabytes / figures[0].megabytes, 1.0)]
            if d == 20:
                targets += [
                    ("× scikit-learn", ratio(figures, "scikit"), 5.0),
                    ("× PyTorch", ratio(figures, "PyT"), 2.5),
                ]
            else:
                targets += [("× the full GEMM alone", ratio(figures, "NumPy"), 1.0)]
            judge(targets)


def products(n: int, quick: bool) -> None:
    heading(f"K @ v, n = {n}, d = 20, float32, K not stored")
    figures = race(PRODUCT, n, 20, "float32", True, quick)
    show(f"K @ v, {n:,} × 20, float32, K not stored", figures, 0.0)
    print(f"Mercer: {figures[0].seconds / n**2 * 1e9:.3f} ns per entry of K.\n")
    if quick:
        return
    judge(
        [
            ("× KeOps", ratio(figures, "KeOps"), 15.0),
            ("× PyTorch", ratio(figures, "PyT"), 5.0),
            ("200 MB over peak memory", 200 / max(figures[0].megabytes, 1e-3), 1.0),
        ]
    )


def first(n: int, quick: bool) -> None:
    heading("First call, n = 2000, d = 20 (seconds)")
    rows = []
    for what in ("dense", "product"):
        for dtype in ("float64", "float32"):
            with tempfile.TemporaryDirectory() as cache:
                cold, warm = first_call(what, dtype, cache), first_call(what, dtype, cache)
            rows.append([f"{what} {dtype}", f"{warm[0]:.2f}", f"{cold[1]:.2f}", f"{warm[1]:.2f}", f"{warm[2]:.4f}"])
    table(["", "import mercer", "first call, empty cache", "first call, filled cache", "second call"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--only", choices=["dense", "product", "first"])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    machine()
    for name, run, n, small in (
        ("dense", dense, 10_000, 1500),
        ("product", products, 100_000, 10_000),
        ("first", first, 0, 0),
    ):
        if options.only in (None, name):
            run(small if options.quick else n, options.quick)


if __name__ == "__main__":
    main()
