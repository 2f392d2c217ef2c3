"""Small data do not wait for Numba, and the numbers do not show on which side of the bound they were computed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import mercer as mc
from mercer._loops import costs

CALLS = {
    "Gaussian": "mc.Gaussian(1.0)(X)",
    "float32": "mc.Gaussian(1.0)(X.astype(np.float32), X[:100].astype(np.float32))",
    "few columns": "mc.Gaussian(1.0)(X[:, :2])",
    "Laplacian": "mc.Laplacian(1.0)(X)",
    "sums and products": "(mc.Matern(1.0) * mc.Linear() + mc.Polynomial(3))(X)",
    "discrete": "(mc.Delta() + mc.Hamming())(np.arange(200) % 7)",
    "ridge": "m = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y); m.predict(X); m.loo_score_",
    "ridge by leave-one-out": "mc.KernelRidge(alpha='loo').fit(X, y).predict(X)",
    "Gaussian process": "mc.GaussianProcessRegressor().fit(X, y).predict(X, return_std=True)",
    "Nadaraya-Watson": "mc.NadarayaWatsonRegressor().fit(X, y).predict(X)",
}


PROCESS = f"""
import sys, threading, hashlib, numpy as np, mercer as mc
X = np.random.default_rng(0).normal(size=(200, 5)); y = X[:, 0]
for name, code in {CALLS!r}.items():
    exec(code)
    print(name, "numba" in sys.modules, threading.active_count())
for _ in range(2):
    print(hashlib.sha256(mc.Matern(1.0)(X).tobytes()).hexdigest(), "numba" in sys.modules)
    mc.Gaussian(1.0)(np.zeros((256, 2)), np.zeros((256, 2)))
"""


@pytest.fixture(scope="module")
def fresh() -> list[str]:
    """What a fresh process says after each call, and then of a small matrix before and after a large one."""
    several = {**os.environ, "MERCER_NUM_THREADS": "2"}  # so that a pool would be started where there is one core, too
    result = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, env=several)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.thorough
def test_a_fresh_process_does_not_import_numba_for_small_data(fresh: list[str]) -> None:
    assert fresh[:-2] == [f"{name} False 1" for name in CALLS]


def test_size_alone_decides(fresh: list[str]) -> None:
    """The same call gives the same bits whether Numba is loaded or not; a large matrix loads it."""
    (before, without), (after, loaded) = (line.split() for line in fresh[-2:])
    assert (without, loaded) == ("False", "True")
    assert before == after


# --- on both sides of the bound ---------------------------------------------------------------------------------------
#
# With eps = 2^-53 (2^-24) and m = max |x|^2 over the centred rows, each way has these errors, first order:
#
#   products      d eps |x| |z|,                                       d roundings of a sum of d terms
#   distances     s = |x|^2 + |z|^2 - 2 xz: 2 (d + 4) eps m            norms, product, two sums, centring and scaling
#   l1            (d + 2) eps |x - z|_1                                one rounding for each difference and each sum
#   k = f(s)      |f'(s)| times the error of s, and 4 eps              the exponential and the polynomial beside it
#
# and two ways differ by twice as much.

SIDE = 200
ROWS = 300


def bound(kernel: mc.Kernel, X: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """K, and how far two evaluations may differ."""
    X = X.astype(np.float64)
    d = X.shape[1]
    apart = X[:, None] - X
    s, l1 = (apart**2).sum(-1), np.abs(apart).sum(-1)
    most = max(((X - centre) ** 2).sum(1).max() for centre in (0.0, X.mean(0), X[:SIDE].mean(0)))
    distances = 2 * (d + 4) * eps * most
    if isinstance(kernel, (mc.Sum, mc.Product)):
        (K, a), (L, b) = (bound(part, X, eps) for part in kernel.children.values())
        if isinstance(kernel, mc.Sum):
            return K + L, a + b + 4 * eps * np.abs(K + L)
        return K * L, a * np.abs(L) + b * np.abs(K) + 4 * eps * np.abs(K * L)
    if isinstance(kernel, mc.Linear):
        norms = np.sqrt((X**2).sum(1))
        return X @ X.T, 2 * d * eps * np.outer(norms, norms)
    if isinstance(kernel, mc.Laplacian):
        K = np.exp(-l1 / kernel.sigma)
        return K, 2 * (K * (d + 2) * eps * l1 / kernel.sigma + 4 * eps * K)
    if isinstance(kernel, mc.Gaussian):
        K = np.exp(-s / (2 * kernel.sigma**2))
        return K, 2 * (K / (2 * kernel.sigma**2) * distances + 4 * eps * K)
    assert isinstance(kernel, mc.Matern)
    r = np.sqrt(2 * kernel.nu * s) / kernel.sigma
    if kernel.nu == 1.5:
        K, slope = (1 + r) * np.exp(-r), 1.5 * np.exp(-r) / kernel.sigma**2
    else:
        K, slope = (1 + r + r**2 / 3) * np.exp(-r), 5 / 6 * (1 + r) * np.exp(-r) / kernel.sigma**2
    return K, 2 * (slope * distances + 4 * eps * K)


KERNELS = [
    mc.Gaussian(1.5),
    mc.Laplacian(2.0),
    mc.Matern(1.5, nu=1.5),
    mc.Matern(1.5, nu=2.5),
    mc.Linear(),
    mc.Gaussian(1.5) + mc.Linear(),
    mc.Matern(1.5, nu=2.5) * mc.Linear(),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [2, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_small_and_large_matrices_agree(kernel: mc.Kernel, d: int, dtype: type) -> None:
    assert SIDE**2 < costs.COMPILED_ENTRIES < ROWS**2
    X = np.random.default_rng(3).normal(size=(ROWS, d)).astype(dtype)
    exact, allowed = bound(kernel, X, float(np.finfo(dtype).eps) / 2)
    large, small = kernel(X), kernel(X[:SIDE])
    np.testing.assert_array_less(np.abs(small.astype(np.float64) - large[:SIDE, :SIDE]), allowed[:SIDE, :SIDE] + 1e-300)
    for K, n in ((large, ROWS), (small, SIDE)):
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_less(np.abs(K - exact[:n, :n]), allowed[:n, :n] + 1e-300)
        again = kernel(X[:n], X[:n].copy())
        np.testing.assert_array_less(np.abs(again.astype(np.float64) - K), allowed[:n, :n] + 1e-300)
