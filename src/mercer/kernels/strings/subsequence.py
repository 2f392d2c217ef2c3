"""The subsequence kernel: symbols that occur in the same order in both strings, with gaps between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.block import Block
from mercer.kernels.strings.pairwise import OfPairs
from mercer.validation import check_whole_number

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


class Subsequence(OfPairs, Kernel):
    """Σ_u Σ λ^(l(i) + l(j)) over all u of p symbols and all places i, j where u is a subsequence of s and of t.

    The symbols of u need not be neighbours: l(i) is the length from the first to the last of them, so that gaps cost
    λ each. The recursion takes p·|s|·|t| steps for a pair, over all cores. `Subsequence(3, 0.5).normalize()` does not
    grow with the length of the strings. Values beyond 10³⁰⁸ are refused (p above about 80 for 1 000 symbols),
    and so is λ^2p below 10⁻³⁰⁸.

    Parameters
    ----------
    p : int
        The number of symbols of a subsequence. Strings that are shorter have none.
    decay : float
        λ > 0, usually below 1; a small one counts almost only symbols that are neighbours.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins 2002, Text classification using string kernels.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Subsequence(2, 0.5)(["cat", "car", "bat", "bar"])            # c-a in cat and car: λ⁴
    array([[0.140625, 0.0625  , 0.0625  , 0.      ],
           [0.0625  , 0.140625, 0.      , 0.0625  ],
           [0.0625  , 0.      , 0.140625, 0.0625  ],
           [0.      , 0.0625  , 0.0625  , 0.140625]])
    """

    about: ClassVar[About] = About(
        "Σ_u Σ λ^(l + l'), u of p symbols, l its span in x, l' in z",
        "Short texts and proteins with insertions: Subsequence(3, 0.5).normalize().",
        "Subsequence(2, decay=0.5)",
        arguments={"p": Argument(domain="whole number ≥ 1"), "decay": Argument("λ")},
    )

    p: int = 3
    decay: float = positive(default=0.5, bounds=(1e-2, 1.0))
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    def check(self) -> None:
        self._set(p=check_whole_number(self.p, "p", such_as=3))

    def tile(self, block: Block, out: Array) -> None:
        values, _ = self.run_tile("subsequences", block, self.p, self.decay, slopes=False)
        out[...] = (self._factor * values).reshape(block.shape)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        values = self.run_diagonal("subsequences", points, self.p, self.decay, slopes=False)
        return np.asarray(self._factor * values)

    @property
    def _factor(self) -> float:
        """λ^2p, which all values have in common. It is at most the least k(x, x) of strings that have p symbols."""
        factor, tiny = float(self.decay) ** (2 * self.p), float(np.finfo(np.float64).tiny)
        if factor < tiny:
            raise InvalidInput(
                "decay^(2p) must be a normal number, or all values underflow",
                got=f"decay = {self.decay:g} and p = {self.p}",
                advice=f"Take a larger decay, from {tiny ** (0.5 / self.p):.2g} on, or a smaller p.",
            )
        return factor

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        if not len(self.theta):
            return np.empty(0)
        values, slopes = self.run_tile("subsequences", block, self.p, self.decay, slopes=True)
        by_log = self._factor * (2 * self.p * values + self.decay * slopes)
        return np.array([np.vdot(G, by_log.reshape(block.shape))])

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pair = self.encode([x, z])
        s, t = (pair.codes[pair.ends[i] : pair.ends[i + 1]].tolist() for i in (0, 1))
        decay, zero = exactly(self.decay), exactly(0)
        inner = [[exactly(1)] + [zero] * (self.p - 1) for _ in range(len(t) + 1)]
        total = zero
        for a in s:
            run, before = [zero] * self.p, inner[0]
            for j, b in enumerate(t, 1):
                now = list(inner[j])
                if a == b:
                    total = total + before[-1]
                for q in range(1, self.p):
                    run[q] = run[q] * decay + (before[q - 1] if a == b else 0)
                    inner[j][q] = now[q] * decay + run[q]
                before = now
        return total * decay ** (2 * self.p)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product: phi(s)_u = Σ λ^l(i) over all places i at which u is a subsequence of s",
            condition=f"u of {self.p} symbols, l(i) the length from the first to the last place",
            reference="Lodhi et al. 2002",
        )

    def __repr__(self) -> str:
        return f"Subsequence({self.p}, decay={self._wrapped('decay')!r})"
