"""Molecules as rows of bits or counts: circular fingerprints of SMILES, computed by RDKit, an optional package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.graphs import Graph
from mercer.data.molecules import molecules, rdkit
from mercer.data.objects import objects_of
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number


@dataclass(frozen=True)
class Fingerprint(FeatureMap):
    """Circular fingerprints of molecules (Morgan, ECFP): which neighbourhoods of atoms occur, or how often.

    Use bits with `Tanimoto`, counts with `MinMax`: `mc.MinMax().after(mc.Fingerprint(counts=True))`. Molecules are
    SMILES texts; RDKit computes the fingerprints (`pip install 'mercer[molecules]'`).

    Parameters
    ----------
    radius : int
        neighbourhoods reach this many bonds from their atom; radius 2 is called ECFP4.
    bits : int
        The number of columns; neighbourhoods are spread over them by a hash.
    counts : bool
        Whether to count the neighbourhoods instead of marking those that occur.

    References
    ----------
    Rogers and Hahn 2010, Extended-connectivity fingerprints.

    Examples
    --------
    >>> import mercer as mc
    >>> phi = mc.Fingerprint(radius=1, bits=512, counts=True)
    >>> phi(["CCO", "CCCCO"]).sum(axis=1)
    array([ 6., 10.])
    """

    radius: int = 2
    bits: int = 2048
    counts: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_whole_number(self.radius, "radius", least=0, owner="Fingerprint"))
        object.__setattr__(self, "bits", check_whole_number(self.bits, "bits", owner="Fingerprint"))
        if not isinstance(self.counts, (bool, np.bool_)):
            raise InvalidInput("`counts` must be True or False", got=repr(self.counts), advice="Pass counts=True.")

    @property
    def dimension(self) -> int:
        return self.bits

    def _fill(self, X: Any, out: Array) -> None:
        generator = rdkit("Chem.rdFingerprintGenerator").GetMorganGenerator(radius=self.radius, fpSize=self.bits)
        row = generator.GetCountFingerprintAsNumPy if self.counts else generator.GetFingerprintAsNumPy
        for i, molecule in enumerate(molecules(objects_of(X, "Molecules"))):
            out[i] = row(molecule)

    def _term(self, j: int, x: Variables) -> Term:
        return atom(f"{'count' if self.counts else 'bit'} {j}")


fingerprint = Fingerprint()
"""Fingerprints of radius 2 with 2 048 bits, for `mc.Tanimoto().after(mc.fingerprint)`."""


def molecule_graph(smiles: str) -> Graph:
    """The graph of a molecule: atoms as nodes labelled by their elements, bonds as edges labelled by their types.

    Hydrogen atoms are left out. RDKit reads the SMILES text.

    >>> import mercer as mc
    >>> mc.molecule_graph("CC=O")
    Graph([(0, 1), (1, 2)], labels=['C', 'C', 'O'], edge_labels=['SINGLE', 'DOUBLE'])
    """
    molecule = molecules([smiles])[0]
    bonds = list(molecule.GetBonds())
    return Graph(
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
        labels=[atom.GetSymbol() for atom in molecule.GetAtoms()],
        edge_labels=[str(bond.GetBondType()) for bond in bonds],
    )
