"""The plot of one object with parts: a molecule, a graph or a tree, as points and lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path

from mercer.data.graphs import Graph, as_graph
from mercer.data.molecules import molecules, rdkit
from mercer.data.trees import Tree
from mercer.errors import InvalidInput
from mercer.plot.looks import Display, Palette, canvas, caption

Matrix = NDArray[np.float64]
Kind = Literal["molecule", "graph", "tree"]

MOST_NODES = 300
"""More nodes than this cannot be told apart in a picture."""
ROUNDS = 100
"""Rounds in which the nodes of a graph find their places."""
LETTERS = 14
"""Longer labels are cut."""
APART = 0.07
"""Half the distance between the lines of a double bond, in lengths of a bond."""


@dataclass(eq=False, repr=False)
class Structure(Display):
    """A molecule, a graph or a tree: its nodes with their labels, and the edges between them.

    Attributes
    ----------
    kind : str
        "molecule", "graph" or "tree".
    labels : list of str
        The label of every node; empty where nothing is written, as for carbon atoms.
    places : array
        Their places in the plane, shape (n, 2).
    edges : array
        Pairs of nodes, shape (m, 2).
    lines : array
        The number of lines of every edge: 2 for a double bond, shape (m,).
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> tree = mc.plot.Structure.from_object("(S (NP dogs) bark)")
    >>> tree.kind, tree.labels
    ('tree', ['dogs', 'NP', 'bark', 'S'])
    >>> matplotlib.pyplot.close("all")
    """

    kind: Kind
    labels: list[str]
    places: Matrix
    edges: NDArray[np.int64]
    lines: NDArray[np.int64]

    @classmethod
    def from_object(cls, x: Any, *, ax: Any = None, **style: Any) -> Self:
        """One object, as kernels take it.

        Parameters
        ----------
        x : str, graph or tree
            A SMILES text, which RDKit lays out; a graph (`mc.Graph`, networkx, igraph); or a tree (`mc.Tree`, nested
            tuples, bracket text, a node of `ast`, an element of `xml.etree`, dicts and lists).
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        structure = cls(*_parts(x))
        if len(structure.labels) > MOST_NODES:
            raise InvalidInput(
                f"A picture must have at most {MOST_NODES} nodes",
                got=f"{len(structure.labels):,}",
                advice="Draw a part of the object.",
            )
        return structure.plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax, (4.8, 3.6)) as (ax, palette):
            for (u, v), lines in zip(self.edges.tolist(), self.lines.tolist()):
                for ends in _parallel(self.places[u], self.places[v], lines):
                    ax.plot(*ends.T, color=palette.grey, lw=1.6, solid_capstyle="round", zorder=1)
            if self.kind == "graph":
                colours = [_colour(self.kind, label, palette) for label in self.labels]
                ax.scatter(*self.places.T, s=260, c=colours, edgecolor=palette.face, lw=1.5, zorder=2)
            for (x, y), label in zip(self.places.tolist(), self.labels):
                on = palette.face if self.kind == "graph" else _colour(self.kind, label, palette)
                box = {"boxstyle": "round,pad=0.18", "fc": palette.face, "ec": "none"} if self.kind != "graph" else None
                if label:
                    text = caption(label, LETTERS)
                    ax.text(x, y, text, ha="center", va="center", color=on, fontsize=9, bbox=box, zorder=3)
            ax.update_datalim(self.places)  # texts alone would not widen the axes
            ax.autoscale_view()
            ax.set_axis_off()
            ax.margins(0.12)
            if self.kind != "tree":
                ax.set_aspect("equal", adjustable="datalim")
            if title is not None:
                ax.set_title(title, fontsize=10)
        return self._drawn(ax)


def _parts(x: Any) -> tuple[Kind, list[str], Matrix, NDArray[np.int64], NDArray[np.int64]]:
    if isinstance(x, str) and not x.lstrip().startswith("("):
        return _of_molecule(x)
    if isinstance(x, Graph) or hasattr(x, "edges") or hasattr(x, "get_edgelist"):
        graph = as_graph(x, 0)
        labels = [""] * graph.n if graph.labels is None else [str(label) for label in graph.labels]
        return "graph", labels, _spread(graph), graph.edges, np.ones(len(graph.edges), np.int64)
    return _of_tree(Tree.of(x))


def _of_molecule(smiles: str) -> tuple[Kind, list[str], Matrix, NDArray[np.int64], NDArray[np.int64]]:
    """Atoms at the places that RDKit computes; rings have single and double bonds in turn."""
    molecule = molecules([smiles])[0]
    rdkit("Chem").Kekulize(molecule, clearAromaticFlags=True)
    rdkit("Chem.rdDepictor").Compute2DCoords(molecule)
    places = np.array(molecule.GetConformer().GetPositions(), dtype=np.float64)[:, :2]
    bonds = list(molecule.GetBonds())
    edges = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], np.int64).reshape(-1, 2)
    lines = np.array([max(1, round(b.GetBondTypeAsDouble())) for b in bonds], np.int64)
    alone = molecule.GetNumAtoms() == 1
    return "molecule", [_atom(a, alone) for a in molecule.GetAtoms()], places, edges, lines


def _atom(atom: Any, alone: bool) -> str:
    """An element with its charge; carbon atoms are corners of lines."""
    charge = atom.GetFormalCharge()
    if atom.GetSymbol() == "C" and not charge and not alone:
        return ""
    sign = {0: "", 1: "⁺", -1: "⁻"}.get(charge, f"{abs(charge)}{'⁺' if charge > 0 else '⁻'}")
    hydrogens = atom.GetTotalNumHs()
    number = str(hydrogens).translate(LOWERED) if hydrogens > 1 else ""
    return f"{atom.GetSymbol()}{'H' * (hydrogens > 0)}{number}{sign}"


LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def _of_tree(tree: Tree) -> tuple[Kind, list[str], Matrix, NDArray[np.int64], NDArray[np.int64]]:
    """The leaves side by side, and every node above the middle of its children."""
    across, depth = np.zeros(len(tree)), np.zeros(len(tree))
    edges: list[tuple[int, int]] = []
    done: list[int] = []  # nodes whose parent is still to come
    leaves = 0
    for node, arity in enumerate(tree.arities):
        children = done[len(done) - arity :] if arity else []
        del done[len(done) - arity :]
        done.append(node)
        edges += [(node, child) for child in children]
        across[node] = np.mean(across[children]) if children else leaves
        leaves += not children
    for parent, child in reversed(edges):  # parents come after their children
        depth[child] = depth[parent] + 1.0
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    labels = [str(label) for label in tree.labels]
    return "tree", labels, np.column_stack([across, -depth]), pairs, np.ones(len(pairs), np.int64)


def _spread(graph: Graph) -> Matrix:
    """Every connected part laid out by itself, one beside the other."""
    A = np.zeros((graph.n, graph.n))
    A[graph.edges[:, 0], graph.edges[:, 1]] = 1.0
    D = shortest_path(A, directed=False, unweighted=True)
    number, parts = connected_components(A, directed=False)
    places, right = np.zeros((graph.n, 2)), 0.0
    for part in range(number):
        inside = np.flatnonzero(parts == part)
        at = _laid_out(D[np.ix_(inside, inside)])
        places[inside] = at - at.min(axis=0) + [right, 0.0]
        right = places[inside, 0].max() + 1.0
    return places


def _laid_out(D: Matrix) -> Matrix:
    """Places whose distances are near those of D, the small ones above all: majorised stress with the weights D⁻².

    Gansner, Koren and North 2004, Graph drawing by stress majorization. It begins with classical scaling, moved a
    little so that nodes with the same distances to all others come apart.
    """
    n = len(D)
    if n == 1:
        return np.zeros((1, 2))
    squares = -0.5 * D**2
    means = squares.mean(axis=0)
    values, vectors = np.linalg.eigh(squares - means - means[:, None] + means.mean())
    at = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    at += 0.05 * np.random.default_rng(0).normal(size=at.shape)
    weights = 1.0 / (D + np.eye(n)) ** 2 * (1.0 - np.eye(n))
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=0)) - weights)
    for _ in range(ROUNDS):
        far = np.linalg.norm(at[:, None] - at, axis=2)
        pull = weights * D / np.where(far > 0, far, 1.0)
        at = inverse @ (np.diag(pull.sum(axis=0)) - pull) @ at
    return np.asarray(at)


def _parallel(a: Matrix, b: Matrix, lines: int) -> list[Matrix]:
    """The given number of lines from a to b, side by side."""
    step = b - a
    across = np.array([-step[1], step[0]]) * APART
    shifts = np.arange(lines) - 0.5 * (lines - 1)
    return [np.array([a, b]) + 2.0 * shift * across for shift in shifts]


def _colour(kind: Kind, label: str, palette: Palette) -> Any:
    if kind == "tree":
        return palette.ink
    known = {"O": palette.red, "N": palette.blue, "S": palette.gold, "F": palette.green, "Cl": palette.green,
             "Br": palette.red, "I": palette.violet}  # fmt: skip
    element = label.rstrip("⁺⁻0123456789₀₁₂₃₄₅₆₇₈₉")
    element = element.removesuffix("H") or element
    return known.get(element, palette.grey if kind == "graph" else palette.ink)
