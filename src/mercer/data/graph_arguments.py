"""The arguments of a graph, checked: edges, labels, weights and attributes; and labels as keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.keys import keys_of
from mercer.errors import InvalidInput
from mercer.validation import is_whole_number, real_numbers
from mercer.words import shown

Array = NDArray[Any]
PLAIN = (int, str, float)
"""Types whose values are equal if and only if their keys are."""


def as_pairs(edges: Any) -> NDArray[np.int64]:
    """Edges as pairs of nodes."""
    pairs = np.asarray(list(edges) if not isinstance(edges, np.ndarray) else edges)
    if pairs.size == 0 and pairs.ndim <= 2:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        square = pairs.ndim == 2 and pairs.shape[0] == pairs.shape[1]
        raise InvalidInput(
            "Edges must be pairs of whole numbers, the nodes that they join",
            got=f"an array of {pairs.dtype} and shape {pairs.shape}",
            advice="Use Graph.from_adjacency(A) for a matrix." if square else "Number the nodes from 0.",
        )
    if int(pairs.min()) < 0 or int(pairs.max()) >= 2**31:
        raise InvalidInput(
            "Nodes must be numbered from 0",
            got=f"node {pairs.min() if pairs.min() < 0 else pairs.max()}",
            advice="Number the nodes 0, 1, 2, ….",
        )
    return pairs.astype(np.int64)


def listed(values: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Labels as plain values."""
    if values is None:
        return None
    return tuple(values.tolist()) if isinstance(values, np.ndarray) else tuple(values)


def finite_numbers(values: Any, what: str) -> NDArray[np.float64]:
    """A copy of the values as floats; `what` they are, for errors."""
    try:
        numbers = np.array(real_numbers(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be numbers", got=str(error), advice="Pass one float for each.") from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{what} must be finite", got="NaN or infinity", advice="Replace missing values first.")
    return numbers


def as_attributes(values: Any) -> NDArray[np.float64] | None:
    """Numbers of the nodes, one row for each."""
    if values is None:
        return None
    numbers = finite_numbers(values, "Attributes of nodes")
    if numbers.ndim not in (1, 2):
        raise InvalidInput(
            "Attributes of nodes must have the shape (n, d)",
            got=f"shape {numbers.shape}",
            advice="Pass a row per node.",
        )
    return numbers[:, None] if numbers.ndim == 1 else numbers


def number_of_nodes(n: Any, pairs: Array, labels: Any, attributes: Any) -> int:
    """The number of nodes, on which all arguments must agree."""
    sizes = {name: len(part) for name, part in (("labels", labels), ("attributes", attributes)) if part is not None}
    if n is not None:
        if not is_whole_number(n):
            raise InvalidInput("`n` must be a whole number", got=repr(n), advice="Pass the number of nodes.")
        sizes["n"] = int(n)
    largest = int(pairs.max()) + 1 if len(pairs) else 0
    number = next(iter(sizes.values()), largest)
    if number == 0 and largest == 0:
        raise InvalidInput(
            "A graph must have at least one node", got="a graph without nodes", advice="Leave it out, or pass n=1."
        )
    if largest > number or any(size != number for size in sizes.values()):
        parts = [f"{name} for {size} nodes" if name != "n" else f"n = {size}" for name, size in sizes.items()]
        raise InvalidInput(
            "Edges, labels and attributes must belong to the same nodes",
            got=f"{', '.join(parts)}, and edges between {largest} nodes",
            advice="Pass one label and one row of attributes per node, and number the nodes from 0.",
        )
    return number


def once(pairs: Array, n: int, labels: Any, weights: Any) -> tuple[Array, Array]:
    """Every edge once, as (smaller, larger), and the position of its first appearance."""
    low, high = pairs.min(axis=1, initial=n), pairs.max(axis=1, initial=0)
    codes, first, which = np.unique(low * n + high, return_index=True, return_inverse=True)
    for what, part in (("label", labels), ("weight", weights)):
        if part is None or len(first) == len(pairs):
            continue
        for i, j in enumerate(first[which].tolist()):
            if i != j and part[i] != part[j]:
                raise InvalidInput(
                    f"An edge must have one {what}",
                    got=f"{shown(part[j])} and {shown(part[i])} for the edge {tuple(pairs[i].tolist())}",
                    advice="Merge parallel edges first.",
                )
    return np.column_stack([codes // n, codes % n]) if len(codes) else pairs, first


def label_keys(labels: Sequence[Any], what: str) -> NDArray[np.uint64]:
    """Keys of labels. Numbers and texts, the usual labels, are looked up without a check of each type."""
    types = set(map(type, labels))
    if len(types) == 1 and types <= set(PLAIN):
        distinct = list(set(labels))
        table = dict(zip(distinct, keys_of(distinct, what).tolist()))
        return np.fromiter(map(table.__getitem__, labels), np.uint64, len(labels))
    return keys_of(labels, what)
