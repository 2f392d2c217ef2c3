"""Points in which violations of Mercer's condition hide: the raw material of `refute`.

A stationary function whose spectrum dips below zero is caught by lattices finer than the dip; a function of ⟨x, z⟩
with a negative Taylor coefficient by few points on a line; a radial function that is valid in low dimensions only, by
simplices, polygons and grids in high ones. The right scale is not known, so all are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

LARGEST = 64
# Binary logarithms of the scales: near 1 in half steps, then further out.
SCALES = (
    [sign * e / 2 for e in range(9) for sign in (1, -1)[: 1 + (e > 0)]],
    [float(sign * e) for e in range(5, 13) for sign in (1, -1)],
    [float(sign * e) for e in range(14, 31, 2) for sign in (1, -1)],
)


def structured(dims: list[int], rng: np.random.Generator) -> tuple[Iterator[Matrix], Iterator[Matrix]]:
    """Shapes of growing size in these dimensions: the small ones at scales near 1, and then all others."""
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


def _sets(alphabet: str, length: int) -> list[Any]:
    ground = range(min(length, 8))
    return [frozenset(c) for n in range(len(ground) + 1) for c in itertools.combinations(ground, n)]


def _mutated_set(x: frozenset[int], alphabet: str, rng: np.random.Generator) -> frozenset[int]:
    return x ^ {int(rng.integers(max(x, default=0) + 2))}


def _strings(alphabet: str, length: int) -> list[Any]:
    everything = ("".join(c) for n in range(length + 1) for c in itertools.product(alphabet, repeat=n))
    return list(itertools.islice(everything, 4 * LARGEST))


def _mutated_string(x: str, alphabet: str, rng: np.random.Generator) -> str:
    at, letter = int(rng.integers(len(x) + 1)), str(rng.choice(list(alphabet)))
    return x[:at] + ("" if rng.random() < 0.3 else letter) + x[at + int(rng.integers(2)) :]


def _records(alphabet: str, length: int) -> list[Any]:
    return list(itertools.product("abc", repeat=2))


def _mutated_record(x: tuple[str, ...], alphabet: str, rng: np.random.Generator) -> tuple[str, ...]:
    at = int(rng.integers(len(x)))
    return (*x[:at], str(rng.choice(list("abcdef"))), *x[at + 1 :])


Make = Callable[[str, int], list[Any]]
Mutate = Callable[[Any, str, np.random.Generator], Any]

# For every space of objects: a first pool, and a small change of one object.
SPACES: dict[str, tuple[Make, Mutate]] = {
    "sets": (_sets, _mutated_set),
    "strings": (_strings, _mutated_string),
    "categories": (_records, _mutated_record),
}
