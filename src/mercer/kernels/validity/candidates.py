"""Points in which violations of Mercer's condition hide: the raw material of `refute`.

A stationary function whose spectrum dips below zero is caught by lattices finer than the dip; a function of ⟨x, z⟩
with a negative Taylor coefficient by few points on a line; a radial function that is valid in low dimensions only, by
simplices, polygons and grids in high ones. The right scale is not known, so all are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# The most points of one shape, and the highest dimension that is tried.
LARGEST = 64
# Binary logarithms of the scales: near 1 in half steps, then further out.
SCALES = (
    [sign * e / 2 for e in range(9) for sign in (1, -1)[: 1 + (e > 0)]],
    [float(sign * e) for e in range(5, 13) for sign in (1, -1)],
    [float(sign * e) for e in range(14, 31, 2) for sign in (1, -1)],
)


def structured(dims: list[int], rng: np.random.Generator) -> tuple[Iterator[Matrix], Iterator[Matrix]]:
    """Shapes of growing size in these dimensions: small ones at scales near 1, and then all others."""
    shapes = sorted((shape for d in dims for shape in _shapes(d, rng)), key=len)
    small = [shape for shape in shapes if len(shape) <= LARGEST / 2]
    large = shapes[len(small) :]
    tiny = [shape for shape in small if len(shape) <= LARGEST / 4]
    first, *others = SCALES

    def scaled(shapes: list[Matrix], exponents: list[float]) -> Iterator[Matrix]:
        for shape in shapes:
            yield from (2.0**e * shape + 0.0 for e in exponents)  # + 0.0: no negative zeros

    rest = (scaled(tiny, exponents) for exponents in others)
    return scaled(small, first), itertools.chain(scaled(large, first), *rest)


def random(dims: list[int], rng: np.random.Generator) -> Iterator[Matrix]:
    """Random points without end: on a line, on a sphere, near each other, of whole numbers, or just anywhere."""
    while True:
        d, n = int(rng.choice(dims)), int(rng.integers(2, 25))
        X = rng.standard_normal((n, d))
        match rng.integers(5):
            case 0:
                X = rng.standard_normal((n, 1)) * X[:1]
            case 1:
                X /= np.linalg.norm(X, axis=1, keepdims=True)
            case 2:
                X[n // 2 :] = X[: n - n // 2] + 0.05 * X[n // 2 :]
            case 3:
                X = rng.integers(-2, 3, size=(n, d)).astype(np.float64)
        yield 2.0 ** rng.uniform(-5, 5) * np.unique(X, axis=0)


def _shapes(d: int, rng: np.random.Generator) -> Iterator[Matrix]:
    eye, origin = np.eye(d), np.zeros((1, d))
    yield origin
    yield eye[:1]
    for n in (2, 3, 5, 8, 16, 32):
        yield np.outer(np.arange(n) - (n - 1) / 2, eye[0])
    for n in (2, 4, 8):
        yield np.outer(np.arange(1, n + 1), np.ones(d))
    if d > 1:
        yield np.vstack([origin, eye])[:LARGEST]
        yield np.vstack([eye, -eye])[:LARGEST]
        for n in (3, 5, 8):
            polygon = np.zeros((n, d))
            polygon[:, 0], polygon[:, 1] = (f(2 * np.pi * np.arange(n) / n) for f in (np.cos, np.sin))
            yield polygon
            yield np.vstack([origin, polygon])
        for m in (2, 3, 4, 6, 8):
            if m**d <= LARGEST:
                yield np.array(list(itertools.product(range(m), repeat=d))) - (m - 1) / 2
    for n in (4, 16):
        cloud = rng.standard_normal((n, d))
        yield cloud
        yield np.vstack([cloud, cloud + 0.01 * rng.standard_normal((n, d))])
