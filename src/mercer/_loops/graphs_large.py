"""The loops of `graphs` for large inputs, compiled. Nothing here starts a thread."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numba
import numpy as np

from .addresses import Array

loop = numba.njit(cache=True, nogil=True)


def path_keys(nodes: Array, ends: Array, neighbours: Array, labels: Array, steps: Array) -> tuple[Array, Array]:
    sizes = np.diff(nodes)
    keys = np.empty(int((sizes * (sizes - 1) // 2).sum()), np.uint64)
    totals = np.zeros(len(nodes), np.int64)
    queue, depth = np.empty(sizes.max(), np.int64), np.empty(sizes.max(), np.int64)
    n = _path_keys(nodes, ends, neighbours, labels, steps, queue, depth, keys, totals)
    return keys[:n], totals


@loop
def _path_keys(nodes, ends, neighbours, labels, steps, queue, depth, keys, totals):
    at = 0
    for g in range(len(nodes) - 1):
        first, last = nodes[g], nodes[g + 1]
        for source in range(first, last):
            depth[: last - first] = -1
            depth[source - first] = 0
            queue[0] = source
            head, tail = 0, 1
            while head < tail:
                node = queue[head]
                head += 1
                step = depth[node - first]
                if node > source:
                    bits = labels[source] + labels[node] + steps[step]
                    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                    bits = (bits >> np.uint64(2)) << np.uint64(2)
                    keys[at] = bits | np.uint64(1) if labels[source] == labels[node] else bits
                    at += 1
                for e in range(ends[node], ends[node + 1]):
                    other = neighbours[e]
                    if depth[other - first] < 0:
                        depth[other - first] = step + 1
                        queue[tail] = other
                        tail += 1
        totals[g + 1] = at
    return at


def walk_sums(
    x: tuple[Array, ...], z: tuple[Array, ...], rows: Array, columns: Array, decay: float, sums: Array, slopes: Array
) -> None:
    largest = int(np.diff(x[0])[rows].max() * np.diff(z[0])[columns].max())
    _walk_sums(*x, *z, rows, columns, decay, largest, sums, slopes)  # type: ignore[call-arg]


@loop
def _product(x_ends, x_to, x_weights, x0, z_ends, z_to, z_weights, z0, width, at, left, right, n, decay, p, q):
    """q = p − decay W p over the pairs of nodes with equal labels."""
    for k in range(n):
        total, u, v = 0.0, left[k], right[k]
        for e in range(x_ends[u], x_ends[u + 1]):
            row = (x_to[e] - x0) * width - z0
            for f in range(z_ends[v], z_ends[v + 1]):
                other = at[row + z_to[f]]
                if other >= 0:
                    total += x_weights[e] * z_weights[f] * p[other]
        q[k] = p[k] - decay * total


@loop
def _walk_sums(
    x_nodes, x_ends, x_to, x_weights, x_labels, z_nodes, z_ends, z_to, z_weights, z_labels, rows, columns, decay,
    largest, sums, slopes,
):  # fmt: skip
    at = np.empty(largest, np.int64)
    left, right = np.empty(largest, np.int64), np.empty(largest, np.int64)
    y, r, p, q = np.empty(largest), np.empty(largest), np.empty(largest), np.empty(largest)
    for pair in range(len(rows)):
        x0, x1 = x_nodes[rows[pair]], x_nodes[rows[pair] + 1]
        z0, z1 = z_nodes[columns[pair]], z_nodes[columns[pair] + 1]
        width, n = z1 - z0, 0
        for u in range(x0, x1):
            for v in range(z0, z1):
                if x_labels[u] == z_labels[v]:
                    at[(u - x0) * width + v - z0] = n
                    left[n], right[n] = u, v
                    n += 1
                else:
                    at[(u - x0) * width + v - z0] = -1
        size = float(n)
        enough = 1e-30 * size
        for k in range(n):
            y[k], r[k], p[k] = 0.0, 1.0, 1.0
        for _ in range(2 * n):
            if size <= enough:
                break
            _product(x_ends, x_to, x_weights, x0, z_ends, z_to, z_weights, z0, width, at, left, right, n, decay, p, q)
            inner = 0.0
            for k in range(n):
                inner += p[k] * q[k]
            step, before, size = size / inner, size, 0.0
            for k in range(n):
                y[k] += step * p[k]
                r[k] -= step * q[k]
                size += r[k] * r[k]
            for k in range(n):
                p[k] = r[k] + size / before * p[k]
        total, slope = 0.0, 0.0
        for k in range(n):
            total += y[k]
            slope += y[k] * (y[k] - 1.0)
        sums[pair], slopes[pair] = total, slope
