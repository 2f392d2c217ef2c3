"""The space of molecules: SMILES texts, compared by the neighbourhoods of their atoms.

No leaf compares molecules as such: RDKit makes fingerprints of them (`features/molecules.py`), which `MinMax` and
`Tanimoto` compare. This module says which texts are molecules, so that models without a kernel can choose one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.molecules import recognised
from mercer.features.molecules import Descriptors, Fingerprint
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.spaces import Space
from mercer.kernels.vectors.fingerprints import Tanimoto
from mercer.kernels.vectors.histograms import MinMax
from mercer.kernels.vectors.matern import Matern


class Molecules(Space):
    """SMILES texts; they are drawn as short chains of atoms."""

    __slots__ = ()
    instead = "If these are not molecules, pass a kernel on strings, such as kernel=mc.Spectrum((1, 3)).normalize()."

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return ["".join(rng.choice(list("CNO"), size=rng.integers(1, 6))) for _ in range(n)]

    def holds_all(self, objects: list[Any]) -> bool:
        """Texts that RDKit reads; a few may be wrong, and `kernels` names the first of them."""
        if not all(isinstance(x, str) for x in objects):
            return False
        return recognised(sorted(set(objects))) == "molecules"

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Counts of neighbourhoods of several sizes, with descriptors and alone, and which neighbourhoods occur."""
        whole = Matern(float(np.sqrt(len(Descriptors.NAMES))), 2.5).after(Descriptors.of(X))
        near, several = _counted(2), 0.25 * (_counted(0) + _counted(1)) + 0.25 * (_counted(2) + _counted(3))
        return {
            "counted neighbourhoods": near,
            "neighbourhoods": Tanimoto().after(Fingerprint()),
            "counted neighbourhoods of 0 to 3 bonds": several,
            "counted neighbourhoods of 0 to 3 bonds, and descriptors": several + 1.0 * whole,
        }


def _counted(radius: int) -> Kernel:
    return MinMax().after(Fingerprint(radius, counts=True))


MOLECULES = Molecules("molecules")
