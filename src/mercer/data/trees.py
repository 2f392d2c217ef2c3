"""Ordered trees with labels, read from nested tuples, bracket text, syntax trees, XML and JSON into one frozen form.

Nothing here recurses, so a tree may be as deep as memory allows.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from mercer.data.keys import keys_of
from mercer.data.objects import objects_of
from mercer.data.ragged import entries, entries_of
from mercer.errors import InvalidInput

MASK = 2**64 - 1
FORMS = "nested tuples such as ('S', ('NP', 'dogs'), 'bark'), bracket text such as '(S (NP dogs) bark)', ast nodes, " \
    "XML elements, or JSON (dicts and lists)"  # fmt: skip


@dataclass(frozen=True)
class Tree:
    """An ordered tree with a label at every node, which cannot be changed.

    Kernels read nested tuples, bracket text and the other forms themselves. `Tree.of` reads one object, and a list of
    trees says that its objects are trees: then a model needs no kernel.

    Parameters
    ----------
    labels : tuple of Hashable
        The labels of the nodes, children before their parent, the root last.
    arities : tuple of int
        The number of children of each node, in the same order.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Tree.of("(S (NP dogs) bark)")
    Tree('(S (NP dogs) bark)')
    >>> mc.Tree.of(("S", ("NP", "dogs"), "bark")) == mc.Tree.of("(S (NP dogs) bark)")
    True
    >>> mc.SVC().fit([mc.Tree.of("(a b)"), mc.Tree.of("(c d e)")], [0, 1]).kernel_
    PartialTree(decay=0.5, gap=0.5).normalize()
    """

    labels: tuple[Hashable, ...]
    arities: tuple[int, ...]

    def __post_init__(self) -> None:
        open_nodes = 0
        for arity in self.arities:
            open_nodes += 1 - arity
            if not 0 <= arity <= len(self.arities) or open_nodes < 1:
                raise ValueError("a tree whose nodes have more children than there are")
        if len(self.labels) != len(self.arities) or open_nodes != 1:
            raise ValueError("a tree without exactly one root")

    @classmethod
    def of(cls, x: Any, position: int = 0) -> Tree:
        """The tree that an object stands for; `position` is its place in a data set, for errors."""
        if isinstance(x, Tree):
            return x
        if isinstance(x, str):
            x = _bracketed(x, position)
        if not isinstance(x, (tuple, dict, list, ast.AST, ElementTree.Element)):
            raise InvalidInput(
                f"Every tree must be given as {FORMS}",
                got=f"{type(x).__name__} at position {position}",
                advice="Convert it to nested tuples (label, child, child, …).",
            )
        labels: list[Hashable] = []
        arities: list[int] = []
        # Parents before children, from right to left, is the reverse of children before parents.
        waiting = [x]
        while waiting:
            label, children = _node(waiting.pop(), position)
            labels.append(label)
            arities.append(len(children))
            waiting.extend(children)
        return cls(tuple(labels[::-1]), tuple(arities[::-1]))

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})" if len(self) <= 40 else f"Tree of {len(self)} nodes"

    def __str__(self) -> str:
        return deque(self.subtree_texts(), maxlen=1)[0]  # the others are forgotten at once: together they are long

    def subtree_texts(self) -> Iterator[str]:
        """The bracket text of everything below each node, in the order of the nodes: the last is the whole tree."""
        texts: list[str] = []
        for label, arity in zip(self.labels, self.arities):
            children = texts[len(texts) - arity :] if arity else []
            del texts[len(texts) - arity :]
            texts.append(f"({' '.join([str(label), *children])})" if arity else str(label))
            yield texts[-1]


def _node(x: Any, position: int) -> tuple[Hashable, list[Any]]:
    """The label and the children of one node, in any of the forms."""
    if isinstance(x, tuple):
        if not x or isinstance(x[0], (tuple, list, dict)):
            raise InvalidInput(
                "A node must be a tuple of its label and its children",
                got=f"{str(x)[:40]} at position {position}",
                advice="Begin every tuple with a label, as in ('S', 'child').",
            )
        return x[0], list(x[1:])
    if isinstance(x, ast.AST):
        values = [getattr(x, name, None) for name in x._fields]
        children = [v for value in values for v in (value if isinstance(value, list) else [value]) if v is not None]
        return type(x).__name__, [v if isinstance(v, ast.AST) else (_plain(v),) for v in children]
    if isinstance(x, ElementTree.Element):
        children = [(f"@{name}", value) for name, value in sorted(x.attrib.items())]
        texts = [x.text, *(child.tail for child in x)]
        for i, text in enumerate(texts):
            children += [x[i - 1]] if i else []
            children += [(text.strip(),)] if text and text.strip() else []
        return str(x.tag), children
    if isinstance(x, dict):
        return "{}", [(str(key), x[key]) for key in sorted(x, key=str)]
    if isinstance(x, list):
        return "[]", list(x)
    return x, []


def _plain(value: Any) -> Hashable:
    """A constant of a syntax tree as a label."""
    return value if isinstance(value, (str, int, float, bytes, complex)) else repr(value)


def _bracketed(text: str, position: int) -> tuple[Any, ...]:
    """Bracket text as nested tuples: (label child child …), where a child is a word or another bracket."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                break
            node = stack.pop()
            stack[-1].append(tuple(node) if node and isinstance(node[0], str) else ("", *node))
        else:
            stack[-1].append(token)
    else:
        if len(stack) == 1 and len(stack[0]) == 1 and isinstance(stack[0][0], tuple):
            tree: tuple[Any, ...] = stack[0][0]
            return tree
    raise InvalidInput(
        "A tree as text must be one pair of brackets around a label and its children",
        got=f"{text[:40]!r} at position {position}",
        advice="Write, for example, '(S (NP dogs) bark)'.",
    )


@dataclass(frozen=True, eq=False)
class Forest:
    """Many trees as arrays: nodes in the order of `Tree`, tree after tree.

    Attributes
    ----------
    labels, productions, subtrees : array
        Keys of the label, of the labels of a node and its children, and of all below it. The production of a node
        without children is 0, unless it is the root.
    arities, starts : array
        The number of children of every node, and the place of the first in `children`.
    children : array
        The numbers of the children, counted from the first node of their tree.
    ends : array
        Tree i has the nodes ends[i] … ends[i + 1] − 1.
    """

    labels: NDArray[np.uint64]
    productions: NDArray[np.uint64]
    subtrees: NDArray[np.uint64]
    arities: NDArray[np.int64]
    starts: NDArray[np.int64]
    children: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, X: Any) -> Forest:
        """The trees of a data set."""
        trees = [Tree.of(x, i) for i, x in enumerate(objects_of(X, "Trees"))]
        ends = np.cumsum([0, *map(len, trees)], dtype=np.int64)
        labels = np.concatenate([keys_of(tree.labels, "Labels of nodes", i) for i, tree in enumerate(trees)])
        productions: list[int] = []
        subtrees: list[int] = []
        starts: list[int] = []
        children: list[int] = []
        keys = labels.tolist()
        for tree, end in zip(trees, ends.tolist()):
            done: list[int] = []  # nodes whose parent is still to come
            for i, arity in enumerate(tree.arities):
                below = done[len(done) - arity :] if arity else []
                del done[len(done) - arity :]
                done.append(i)
                starts.append(len(children))
                children += below
                is_production = arity or len(tree) == 1
                labelled = [keys[end + i], *(keys[end + j] for j in below)]
                productions.append(_mixed(labelled) if is_production else 0)
                subtrees.append(_mixed([keys[end + i], *(subtrees[end + j] for j in below)]))
        arities = np.concatenate([np.array(tree.arities, np.int64) for tree in trees])
        arrays = np.array(productions, np.uint64), np.array(subtrees, np.uint64)
        return cls(labels, *arrays, arities, np.array(starts, np.int64), np.array(children, np.int64), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(int(A.nbytes) for A in vars(self).values())

    def encoded_rows(self, index: Any) -> Forest:
        """The trees at these positions."""
        nodes, ends = entries_of(self.ends, index)
        arities = self.arities[nodes]
        at, places = entries(self.starts[nodes], arities)
        labels, productions, subtrees = (A[nodes] for A in (self.labels, self.productions, self.subtrees))
        return Forest(labels, productions, subtrees, arities, places[:-1], self.children[at], ends)


def _mixed(keys: list[int]) -> int:
    """One 64-bit key for a list of them (splitmix64 after each); never 0."""
    total = len(keys)
    for key in keys:
        total = (total + key + 0x9E3779B97F4A7C15) & MASK
        total = ((total ^ (total >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        total = ((total ^ (total >> 27)) * 0x94D049BB133111EB) & MASK
        total ^= total >> 31
    return total or 1
