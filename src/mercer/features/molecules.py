"""Molecules as rows of numbers: fingerprints and descriptors of SMILES, computed by RDKit, an optional package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from mercer.data.graphs import Graph
from mercer.data.molecules import molecules, rdkit
from mercer.data.objects import objects_of
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number, is_number

KEPT = 2**14
"""Molecules whose descriptors are kept, because RDKit needs a millisecond for those of one, and a search maps the same
molecules many times. Fingerprints take a tenth of it, and are not kept."""


@dataclass(frozen=True)
class Fingerprint(FeatureMap):
    """Circular fingerprints of molecules (Morgan, ECFP): which neighbourhoods of atoms occur, or how often.

    Use bits with `Tanimoto`, counts with `MinMax`: `mc.MinMax().after(mc.Fingerprint(counts=True))`. Molecules are
    SMILES texts; RDKit computes the fingerprints (`pip install 'mercer[molecules]'`).

    Parameters
    ----------
    radius : int
        Neighbourhoods reach this many bonds from their atom; radius 2 is called ECFP4.
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


@dataclass(frozen=True)
class Descriptors(FeatureMap):
    """Twelve numbers that describe a whole molecule: size, polarity, flexibility, rings, solubility in fat.

    They are RDKit's MolLogP, MolMR, MolWt, TPSA, LabuteASA, NumHDonors, NumHAcceptors, NumRotatableBonds, RingCount,
    NumAromaticRings, FractionCSP3 and HeavyAtomCount. Fingerprints compare parts of molecules; descriptors tell a large
    molecule from a small one made of the same parts. A sum of both kernels often predicts better than either:
    `mc.MinMax().after(mc.Fingerprint(counts=True)) + mc.Matern(3.0, 2.5).after(mc.Descriptors.of(smiles))`.

    Parameters
    ----------
    units : tuple of float
        Twelve numbers > 0 by which the descriptors are divided, so that one width suits all of them; empty to leave
        them as they are. `Descriptors.of(smiles)` takes the standard deviations of a data set.

    References
    ----------
    Wildman and Crippen 1999, Prediction of physicochemical parameters by atomic contributions (MolLogP, MolMR).

    Examples
    --------
    >>> import mercer as mc
    >>> phi = mc.Descriptors()
    >>> phi(["CCO"])[0, [2, 5, 11]].round(2)
    array([46.07,  1.  ,  3.  ])
    """

    units: Any = ()

    NAMES: ClassVar[tuple[str, ...]] = (
        "MolLogP", "MolMR", "MolWt", "TPSA", "LabuteASA", "NumHDonors", "NumHAcceptors", "NumRotatableBonds",
        "RingCount", "NumAromaticRings", "FractionCSP3", "HeavyAtomCount",
    )  # fmt: skip

    def __post_init__(self) -> None:
        units = self.units.tolist() if isinstance(self.units, np.ndarray) else self.units
        right = isinstance(units, (tuple, list)) and len(units) in (0, len(self.NAMES))
        if not right or not all(is_number(unit) and 0 < unit < np.inf for unit in units):
            raise InvalidInput(
                f"`units` of Descriptors must be {len(self.NAMES)} numbers > 0, or empty",
                got=repr(self.units),
                advice="Use mc.Descriptors.of(smiles), which takes the standard deviations of these molecules.",
            )
        object.__setattr__(self, "units", tuple(map(float, units)))

    @classmethod
    def of(cls, smiles: Any) -> Descriptors:
        """Descriptors in units of their standard deviations over these molecules; constant ones in their own unit.

        >>> import mercer as mc
        >>> mc.Descriptors.of(["C", "CCC", "CCO"]).units[11].__round__(2)
        0.94
        """
        spread = cls()(smiles).std(axis=0)
        return cls(tuple(np.where(spread > 0, spread, 1.0).tolist()))

    @property
    def dimension(self) -> int:
        return len(self.NAMES)

    def _fill(self, X: Any, out: Array) -> None:
        objects = objects_of(X, "Molecules")
        for i, (x, molecule) in enumerate(zip(objects, molecules(objects))):
            out[i] = _numbers_of_text(x) if isinstance(x, str) else _numbers(molecule)
        out /= self.units or 1.0

    def _term(self, j: int, x: Variables) -> Term:
        return atom(self.NAMES[j])


def _numbers(molecule: Any) -> list[float]:
    descriptors = rdkit("Chem.Descriptors")
    return [getattr(descriptors, name)(molecule) for name in Descriptors.NAMES]


@lru_cache(maxsize=KEPT)
def _numbers_of_text(smiles: str) -> list[float]:
    return _numbers(molecules([smiles])[0])


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
