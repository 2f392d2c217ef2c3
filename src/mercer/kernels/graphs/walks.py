"""Walks that two graphs have in common, of all lengths, with weights that fall geometrically."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import graphs as loops
from mercer.data.graph_union import Union
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel
from mercer.kernels.block import Block
from mercer.kernels.graphs.space import GRAPHS

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval

MARGIN = 2.0**-30
"""1 − decay·Δ(G)·Δ(H) is at least this: rounding errors grow with its inverse, and about six digits remain."""


@dataclass(frozen=True, eq=False)
class Walks:
    """Graphs, laid out for walks.

    Attributes
    ----------
    graphs : Union
        Their union.
    degrees : array
        The largest degree of each, by absolute weights.
    spectrum : tuple or None
        Eigenvalues of the adjacency matrices, and the squared sums of the eigenvectors' entries, graph after graph;
        None if nodes have labels.
    """

    graphs: Union
    degrees: NDArray[np.float64]
    spectrum: tuple[NDArray[np.float64], NDArray[np.float64]] | None

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        parts = (self.graphs.ends, self.graphs.neighbours, self.graphs.labels, *(self.spectrum or ()))
        return sum(part.nbytes for part in parts if part is not None)

    def of(self, i: int) -> tuple[Array, ...]:
        """The spectrum of graph i."""
        nodes = slice(self.graphs.nodes[i], self.graphs.nodes[i + 1])
        return tuple(part[nodes] for part in self.spectrum or ())

    def layout(self) -> tuple[Array, ...]:
        """The arrays that the loops read: nodes, ends, neighbours, weights, labels."""
        weights = self.graphs.weights
        if weights is None:
            weights = np.ones(len(self.graphs.neighbours))
        labels = np.zeros(self.graphs.nodes[-1], np.uint64) if self.graphs.labels is None else self.graphs.labels
        return self.graphs.nodes, self.graphs.ends, self.graphs.neighbours, weights, labels


class RandomWalk(Kernel):
    """Σ_l decayˡ · (number of pairs of walks of l steps, one in G and one in H, along which all labels agree).

    A walk may visit nodes again. With the adjacency matrix W of the product graph, whose nodes are the pairs of nodes
    with equal labels, the sum is 1ᵀ(I − decay·W)⁻¹1. It converges if decay < 1/(Δ(G)·Δ(H)), where Δ is the largest
    degree; larger values, and those within 10⁻⁹ of the limit, are refused. Weights of edges multiply along a walk;
    labels of edges are not used.

    Graphs without labels cost O(n³) once per graph, for the eigenvalues of its adjacency matrix, and O(n²) per pair.
    With labels every pair is solved by conjugate gradients, without forming W, in O(pairs of nodes · degree²) per step:
    this is the most expensive kernel on graphs.

    Parameters
    ----------
    decay : float
        The weight of a step, below 1/(Δ(G)·Δ(H)) for all pairs of graphs: 0.01 allows degrees up to 9.

    References
    ----------
    Gärtner, Flach and Wrobel 2003, On graph kernels: hardness results and efficient alternatives. Vishwanathan et al.
    2010, Graph kernels. Journal of Machine Learning Research 11.

    Examples
    --------
    >>> import mercer as mc
    >>> edge, path = mc.Graph([(0, 1)]), mc.Graph([(0, 1), (1, 2)])
    >>> mc.RandomWalk(0.1)([edge, path]).round(3)
    array([[ 4.444,  6.939],
           [ 6.939, 11.042]])
    """

    about: ClassVar[About] = About(
        "Σ_l λˡ·#(equally labelled walks of l steps in x and z)",
        "Small graphs, where every walk counts; expensive.",
        "RandomWalk(decay=0.01)",
        arguments={"decay": Argument("λ")},
    )
    decay: float = positive(0.01)
    space: ClassVar[str] = GRAPHS

    def encode(self, X: Any) -> Walks:
        graphs = Union.of(X)
        weights = np.ones(len(graphs.neighbours)) if graphs.weights is None else graphs.weights
        sources = np.repeat(np.arange(graphs.nodes[-1]), graphs.degrees)
        strengths = np.bincount(sources, np.abs(weights), minlength=graphs.nodes[-1])
        degrees = np.maximum.reduceat(strengths, graphs.nodes[:-1])
        if graphs.labels is not None:
            return Walks(graphs, degrees, None)
        values, shares = zip(*(_spectrum(graphs, weights, i) for i in range(len(graphs))))
        return Walks(graphs, degrees, (np.concatenate(values), np.concatenate(shares)))

    def tile(self, block: Block, out: Array) -> None:
        out[...] = self._values(block)[0]

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.array([np.vdot(G, self._values(block)[1])]) if len(self.theta) else np.empty(0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        walks: Walks = points.encoded(self)
        rows = np.arange(len(walks))
        return self._pairs(walks, walks, rows, rows)[0]

    def _values(self, block: Block) -> tuple[Array, Array]:
        """The values of a block, and their derivatives by log decay."""
        x, z = block.pair.encoded(self)
        rows, columns = (np.arange(side.start, side.stop) for side in (block.rows, block.cols))
        pairs = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
        values, slopes = self._pairs(x, z, *pairs)
        return values.reshape(block.shape), slopes.reshape(block.shape)

    def _pairs(self, x: Walks, z: Walks, rows: Array, columns: Array) -> tuple[Array, Array]:
        largest = float(x.degrees[rows].max() * z.degrees[columns].max())
        if 1.0 - self._decay * largest < MARGIN:
            raise InvalidInput(
                "`decay` must be clearly below 1/(Δ(G)·Δ(H)), or the sum over all walks does not converge",
                got=f"decay = {self._decay:g} and graphs of largest degree {x.degrees[rows].max():g} and "
                f"{z.degrees[columns].max():g}, which need decay < {1 / largest:.3g}",
                advice="Take a smaller decay, or mc.WeisfeilerLehman.",
            )
        if x.spectrum is not None and z.spectrum is not None:
            return _spectral(x, z, rows, columns, self._decay)
        if x.spectrum is not None or z.spectrum is not None:
            raise InvalidInput(
                "Both data sets must have labels of nodes, or neither",
                got="labels in one of them",
                advice="Add the labels that are missing.",
            )
        return loops.walk_sums(x.layout(), z.layout(), rows, columns, self._decay)

    def enclose(self, x: Any, z: Any) -> Interval:
        """The computed value, widened by 2⁻⁴⁰/(1 − decay·Δ(G)·Δ(H)) of its size: (I − decay·W)⁻¹ enlarges roundings."""
        from mercer.kernels.validity.interval import around

        value = float(self([x], [z])[0, 0])
        left, right = (Fraction(float(self.encode([graph]).degrees[0])) for graph in (x, z))
        return around(value, Fraction(1, 2**40) / (1 - Fraction(self._decay) * left * right))

    @property
    def _decay(self) -> float:
        return float(getattr(self.decay, "value", self.decay))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of weighted counts: phi(G)_s = decay^(l/2) · the number of walks whose labels are s",
            condition="s a sequence of l + 1 labels; decay below the inverse product of the largest degrees, which is "
            "checked for all pairs",
            reference="Gärtner, Flach and Wrobel 2003, theorem 3",
        )


def _spectrum(graphs: Union, weights: Array, i: int) -> tuple[Array, Array]:
    """The eigenvalues of a graph's adjacency matrix, and the squared sums of the eigenvectors' entries."""
    first, last = graphs.nodes[i], graphs.nodes[i + 1]
    A = np.zeros((last - first, last - first))
    between = slice(graphs.ends[first], graphs.ends[last])
    sources = np.repeat(np.arange(last - first), graphs.degrees[first:last])
    A[sources, graphs.neighbours[between] - first] = weights[between]
    values, vectors = np.linalg.eigh(A)
    return values, vectors.sum(axis=0) ** 2


def _spectral(x: Walks, z: Walks, rows: Array, columns: Array, decay: float) -> tuple[Array, Array]:
    """Σᵢⱼ aᵢ bⱼ/(1 − decay·μᵢ·νⱼ) for eigenvalues μ, ν and shares a, b, and its derivative by log decay."""
    sums, slopes = np.empty(len(rows)), np.empty(len(rows))
    for p, (i, j) in enumerate(zip(rows.tolist(), columns.tolist())):
        (mu, a), (nu, b) = x.of(i), z.of(j)
        products = decay * np.outer(mu, nu)
        terms = 1.0 / (1.0 - products)
        sums[p], slopes[p] = a @ terms @ b, a @ (products * terms**2) @ b
    return sums, slopes
