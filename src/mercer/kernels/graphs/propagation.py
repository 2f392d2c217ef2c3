"""Attributes of nodes that spread along the edges, counted in random bins."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.graph_union import Union
from mercer.errors import InvalidInput
from mercer.features.counted import mixed
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.graphs.space import GRAPHS
from mercer.validation import check_number, check_whole_number

MOST_BINS = 2**50
"""Numbers of bins stay below this, so that a float64 still tells neighbouring bins apart."""


class Propagation(Counted):
    """Σ_r Σ_b #b(G)·#b(H) over rounds r = 0 … h and bins b: how many nodes have similar attributes after r rounds.

    In every round the attributes of a node become the mean of those of its neighbours (weighted, if edges have
    weights). They are then projected on a random direction and cut into bins of the given width, so that nodes with
    similar attributes mostly share a bin. Directions and cuts depend on the seed, the round and the number of
    attributes only, not on the data: it is a kernel for every seed. Nodes without neighbours keep their attributes.

    Parameters
    ----------
    h : int
        The number of rounds.
    width : float
        The width of the bins, in the unit of the attributes; standardise these first.
    seed : int
        Which of all directions and cuts.

    References
    ----------
    Neumann et al. 2016, Propagation kernels: efficient graph kernels from propagated information.

    Examples
    --------
    >>> import mercer as mc
    >>> low, high = mc.Graph([(0, 1)], attributes=[0.0, 0.1]), mc.Graph([(0, 1)], attributes=[9.0, 9.1])
    >>> mc.Propagation(2, width=0.5)([low, high])
    array([[12.,  0.],
           [ 0., 12.]])
    """

    about: ClassVar[About] = About(
        "Σ_b #b(x)·#b(z), bins b(width, seed) of rounds 0 … h",
        "Graphs whose nodes have continuous attributes.",
        "Propagation(3, width=1.0)",
        arguments={
            "h": Argument(domain="whole number ≥ 0"),
            "width": Argument(domain="> 0"),
            "seed": Argument(domain="whole number ≥ 0"),
        },
    )
    h: int = 3
    width: float = 1.0
    seed: int = 0
    space: ClassVar[str] = GRAPHS

    def check(self) -> None:
        self._set(
            h=check_whole_number(self.h, "h", least=0, such_as=3),
            width=check_number(self.width, "width", above=0),
            seed=check_whole_number(self.seed, "seed", least=0),
        )

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        if graphs.attributes is None:
            raise InvalidInput(
                "Propagation needs attributes of the nodes",
                got="graphs without attributes",
                advice="Pass mc.Graph(edges, attributes=rows), or use mc.WeisfeilerLehman for labels.",
            )
        values = graphs.attributes
        keys = np.empty((len(values), self.h + 1), np.uint64)
        for r in range(self.h + 1):
            if r:
                values = _averaged(graphs, values)
            rng = np.random.default_rng([self.seed, r])
            cut, direction = rng.random(), np.atleast_1d(rng.normal(size=values.shape[1]))
            with np.errstate(over="ignore", invalid="ignore"):
                # Column by column: a matrix product would round the same node in other graphs' company in another way.
                along = np.zeros(len(values))
                for column, step in zip(values.T, direction):
                    along += column * step
                bins = np.floor(along / self.width + cut)
            if not (np.abs(bins) < MOST_BINS).all():
                raise InvalidInput(
                    "Attributes must not be much larger than the width of the bins",
                    got=f"bins beyond 2⁵⁰ of width {self.width:g}",
                    advice="Standardise the attributes, or take wider bins.",
                )
            keys[:, r] = mixed(bins.astype(np.int64).view(np.uint64) ^ mixed(np.array([r], np.uint64)))
        return Counts.of(keys.ravel(), graphs.nodes * (self.h + 1))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(G)_(r, b) = the number of nodes in bin b after r rounds",
            condition=f"r = 0 … {self.h}, whatever the bins are; those with equal hashes count as one",
            reference="Neumann et al. 2016, section 3",
        )


def _averaged(graphs: Union, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the neighbours' values, weighted by the edges; a node without neighbours keeps its own."""
    weights = np.ones(len(graphs.neighbours)) if graphs.weights is None else np.abs(graphs.weights)
    sources = np.repeat(np.arange(len(values)), graphs.degrees)
    totals = np.bincount(sources, weights, minlength=len(values))
    around = values[graphs.neighbours] * weights[:, None]
    sums = np.column_stack([np.bincount(sources, column, minlength=len(values)) for column in around.T])
    alone = totals == 0
    return np.where(alone[:, None], values, sums / np.where(alone, 1.0, totals)[:, None])
