"""The compiled loops of local sums: what the paths do not show, and what keeps their disk cache true."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer._loops import costs, exponential, local_cells, local_direct, local_line, local_tree, vectors

rng = np.random.default_rng(0)
LOOPS = (local_cells, local_direct, local_line, local_tree)


def digest(*modules) -> str:
    return hashlib.sha256(b"".join(Path(str(m.__file__)).read_bytes() for m in modules)).hexdigest()[:16]


def test_the_disk_cache_follows_what_is_inlined() -> None:
    """Numba looks for changes only in the file of a compiled function."""
    for module in LOOPS:
        assert digest(vectors, exponential, costs) == module.VECTORS, module.__file__
    assert digest(local_direct) == local_tree.WEIGHTS, f'write WEIGHTS = "{digest(local_direct)}" in local_tree.py'


@pytest.mark.thorough
def test_importing_compiles_nothing() -> None:
    code = (
        "import sys, mercer.smoothing\n"
        "assert 'numba' not in sys.modules\n"
        "from mercer._loops import local_cells, local_direct, local_line, local_tree as t\n"
        "jitted = [f for m in (local_cells, local_direct, local_line, t) for f in vars(m).values() "
        "if hasattr(f, 'signatures')]\n"
        "assert len(jitted) >= 9 and not any(f.signatures for f in jitted)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_moments_by_number_and_by_place_agree() -> None:
    x, V = np.sort(rng.uniform(0.0, 4.0, 1000)), rng.normal(size=(1000, 3))
    centres, places = np.arange(4) + 0.5, np.floor(x).astype(np.int64)
    tables = np.zeros((2, 4, 3, 24))
    for by_point in (False, True):
        local_cells.add_moments(x, V, (0.0, 1.0), places, by_point, centres, 1.0, tables[int(by_point)])
    delta = x - centres[places]
    for k in (0, 1, 7, 8, 23):
        terms = V * (np.exp(-(delta**2) / 2) * delta**k)[:, None]
        expected = np.stack([terms[places == cell].sum(axis=0) for cell in range(4)])
        assert np.allclose(tables[:, :, :, k], expected, rtol=1e-12, atol=1e-15)


def test_monomials_are_products_of_earlier_ones() -> None:
    powers = np.array([[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]])
    of = local_direct.monomials(powers)
    for a in range(1, 6):
        assert of.parents[a] < a
        step = powers[a] - powers[of.parents[a]]
        assert step.sum() == 1
        assert step[of.coordinates[a]] == 1
    assert of.kept.tolist() == [1, 1, 1, 0, 0, 0]


def test_a_buffer_is_refilled_and_the_own_point_left_out_of_each() -> None:
    """More points than the buffer holds, in cells that several refills meet."""
    n = 3 * local_direct.COPIED + 17
    x, V = rng.normal(size=(2, n)), rng.normal(size=(1, n))
    groups = np.array([[0, 70, 0, 0, 0], [70, n, 0, 0, 0]])
    out = np.zeros((n, 1, 1))
    of = local_direct.monomials(np.zeros((1, 2), dtype=np.int64))
    z, own = np.ascontiguousarray(x.T), np.arange(n)
    local_direct.direct_sums(4, x, V, z, 1.0, np.ones(n), of, groups, None, own, out)
    rows = [0, 69, 70, local_direct.COPIED, n - 1]
    q = ((z[rows, None] - z) ** 2).sum(axis=2)
    W = np.where(q <= 1, (1 - q) ** 2, 0.0)
    W[np.arange(5), rows] = 0.0
    assert np.allclose(out[rows, 0, 0], W @ V[0], rtol=1e-10, atol=1e-12)


def test_the_coarse_gaussian_is_as_exact_as_it_says() -> None:
    n = 400
    x, V = np.sort(rng.uniform(0, 30.0, n))[None], np.ones((1, n))
    of, z = local_direct.monomials(np.zeros((1, 1), dtype=np.int64)), np.zeros((1, 1))
    for kind, bound in ((0, 1e-15), (local_direct.COARSE, 3e-12)):
        for i in range(0, n, 7):
            out = np.zeros((1, 1, 1))
            point = np.ascontiguousarray(x[:, i : i + 1])
            local_direct.direct_sums(
                kind, point, V[:, :1], z, 1.0, np.ones(1), of, np.array([[0, 1, 0, 0, 0]]), None, None, out
            )
            assert abs(out[0, 0, 0] / 2.0 ** -(x[0, i] ** 2) - 1) < bound
