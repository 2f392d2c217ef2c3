"""Alignments: the local alignment kernel, and two similarities that are not kernels, the best score and the edits.

A local alignment matches some symbols of two strings in order, and pays for the gaps between them. The score of the
best one is not positive semidefinite; the sum of exp(β·score) over all of them is, if exp(β·substitution scores) is.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof, Unproven
from mercer.kernels.base import Indefinite, Kernel, Tags
from mercer.kernels.block import Block
from mercer.kernels.strings.pairwise import OfPairs, Side
from mercer.validation import is_number

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
BLOSUM62 = np.array(
    [
        [int(word) for word in row.split()]
        for row in """
         4 -1 -2 -2  0 -1 -1  0 -2 -1 -1 -1 -1 -2 -1  1  0 -3 -2  0
        -1  5  0 -2 -3  1  0 -2  0 -3 -2  2 -1 -3 -2 -1 -1 -3 -2 -3
        -2  0  6  1 -3  0  0  0  1 -3 -3  0 -2 -3 -2  1  0 -4 -2 -3
        -2 -2  1  6 -3  0  2 -1 -1 -3 -4 -1 -3 -3 -1  0 -1 -4 -3 -3
         0 -3 -3 -3  9 -3 -4 -3 -3 -1 -1 -3 -1 -2 -3 -1 -1 -2 -2 -1
        -1  1  0  0 -3  5  2 -2  0 -3 -2  1  0 -3 -1  0 -1 -2 -1 -2
        -1  0  0  2 -4  2  5 -2  0 -3 -3  1 -2 -3 -1  0 -1 -3 -2 -2
         0 -2  0 -1 -3 -2 -2  6 -2 -4 -4 -2 -3 -3 -2  0 -2 -2 -3 -3
        -2  0  1 -1 -3  0  0 -2  8 -3 -3 -1 -2 -1 -2 -1 -2 -2  2 -3
        -1 -3 -3 -3 -1 -3 -3 -4 -3  4  2 -3  1  0 -3 -2 -1 -3 -1  3
        -1 -2 -3 -4 -1 -2 -3 -4 -3  2  4 -2  2  0 -3 -2 -1 -2 -1  1
        -1  2  0 -1 -3  1  1 -2 -1 -3 -2  5 -1 -3 -1  0 -1 -3 -2 -2
        -1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5  0 -2 -1 -1 -1 -1  1
        -2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6 -4 -2 -2  1  3 -1
        -1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7 -1 -1 -4 -3 -2
         1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4  1 -3 -2 -2
         0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5 -2 -2  0
        -3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11  2 -3
        -2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7 -1
         0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4
        """.strip().splitlines()
    ],
    dtype=np.float64,
)
BLOSUM62 = np.pad(BLOSUM62, (0, 1), constant_values=-4.0)
BLOSUM62[-1, -1] = 1.0
"""The substitution scores of Henikoff and Henikoff 1992, in the order of `AMINO_ACIDS`, then any other symbol."""


def checked_scores(scores: Any) -> Any:
    """ "blosum62", or (match, mismatch) as floats; anything else is refused."""
    if isinstance(scores, str) and scores == "blosum62":
        return scores
    if (
        isinstance(scores, (tuple, list))
        and len(scores) == 2
        and all(map(is_number, scores))
        and np.isfinite(scores).all()
    ):
        return float(scores[0]), float(scores[1])
    raise InvalidInput(
        "`scores` must be 'blosum62', or the scores of a match and of a mismatch",
        got=repr(scores),
        advice="Pass scores='blosum62' for proteins, and scores=(1.0, -1.0) for other strings.",
    )


def known_letters(scores: Any) -> str:
    """The letters that these scores tell apart, if they know only some."""
    return AMINO_ACIDS if isinstance(scores, str) else ""


def score_table(scores: Any, side: Side) -> NDArray[np.float64]:
    """The substitution score of every two symbols that occur."""
    if not isinstance(scores, str):
        same, different = scores
        return np.where(np.eye(max(len(side.symbols), 1), dtype=bool), same, different)
    place = {ord(letter): i for i, letter in enumerate(AMINO_ACIDS)}
    at = np.array([place.get(symbol, len(AMINO_ACIDS)) for symbol in side.symbols.tolist()] or [0])
    return BLOSUM62[np.ix_(at, at)]


SCORES = Argument("S", "pair (match, mismatch), or blosum62")


class LocalAlignment(OfPairs, Kernel):
    """Σ_π exp(β·score(π)) over all local alignments π of two strings, the empty one with score 0 among them.

    score(π) = Σ S(xᵢ, zⱼ) over the matched symbols, minus a penalty o + e·(l − 1) for every gap of l symbols. Values
    grow exponentially with the length of the strings: use `.normalize()`, which computes with logarithms throughout.
    log k, which others use to make the diagonal smaller, is not a kernel.

    Parameters
    ----------
    beta : float
        β > 0; the larger it is, the more the best alignments outweigh all others.
    opening, extension : float
        o and e > 0, the penalties of the first and of every further symbol of a gap.
    scores : str
        "blosum62" for proteins (other symbols count as one more letter), or (match, mismatch). It is a kernel if the
        matrix exp(β·S) is positive semidefinite, which `proof()` checks.

    References
    ----------
    Saigo, Vert, Ueda and Akutsu 2004, Protein homology detection using string alignment kernels.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.LocalAlignment(0.1).normalize()
    >>> k(["GILKKILKK", "GILKGILKK", "WWWW"]).round(3)
    array([[1.   , 0.836, 0.063],
           [0.836, 1.   , 0.07 ],
           [0.063, 0.07 , 1.   ]])
    """

    about: ClassVar[About] = About(
        "Σ_π exp(β·(Σ S(xᵢ, zⱼ) − gaps)), a gap: o + e·(l − 1)",
        "Proteins with insertions and substitutions: LocalAlignment(0.1).normalize().",
        "LocalAlignment(0.5, scores=(1.0, -1.0))",
        arguments={
            "beta": Argument("β"),
            "opening": Argument("o"),
            "extension": Argument("e"),
            "scores": SCORES,
        },
    )

    beta: float = positive(0.1, bounds=(1e-2, 10.0))
    opening: float = positive(11.0, free=False)
    extension: float = positive(1.0, free=False)
    scores: Any = "blosum62"
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    def check(self) -> None:
        self._set(scores=checked_scores(self.scores))

    @property
    def letters(self) -> str:
        """The letters that the scores tell apart, if they know only some."""
        return known_letters(self.scores)

    @property
    def exact_log(self) -> bool:
        return True

    def log_tile(self, block: Block, out: Array) -> None:
        side, _ = block.pair.encoded(self)
        out[...] = self.run_tile("local_alignments", block, *self._costs(side))[0].reshape(block.shape)

    def tile(self, block: Block, out: Array) -> None:
        self.log_tile(block, out)
        np.exp(out, out=out)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        sequences = self.align(*(points.encoded(self),) * 2)[0]
        return np.asarray(self.run_diagonal("local_alignments", points, *self._costs(sequences)))

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.exp(self.log_diagonal(points))

    def _costs(self, side: Side) -> tuple[NDArray[np.float64], float, float]:
        return self.beta * score_table(self.scores, side), self.beta * self.opening, self.beta * self.extension

    def derivation(self) -> Proof:
        if isinstance(self.scores, str):
            own = np.diagonal(BLOSUM62)
            E = np.exp(self.beta * (BLOSUM62 - 0.5 * own - 0.5 * own[:, None]))
            smallest, rounding = float(np.linalg.eigvalsh(E)[0]), 10 * len(E) ** 2 * float(np.finfo(float).eps)
            condition = f"the smallest eigenvalue of exp(β·S), scaled to the diagonal 1, is {smallest:.3g}"
            holds = smallest > rounding
            why = (
                f"not certified: the smallest eigenvalue of exp(β·S), {smallest:.3g}, is within rounding"
                if abs(smallest) <= rounding
                else "not a kernel in general: exp(β·S) is not positive semidefinite"
            )
        else:
            same, different = self.scores
            condition, holds = f"exp(β·S) ⪰ 0, because a match scores {same:g} ≥ {different:g}", same >= different
            why = "not a kernel in general: exp(β·S) is not positive semidefinite"
        if not holds:
            return Unproven(self, why)
        return Axiom(
            self,
            "convolution of kernels: exp(β·S) of matched symbols, and products of penalties of the gaps of x and of z",
            condition=condition,
            reference="Haussler 1999; Saigo, Vert, Ueda and Akutsu 2004",
        )

    def __repr__(self) -> str:
        fields = [f"beta={self._wrapped('beta')!r}"]
        fields += [
            f"{n}={self._wrapped(n)!r}" for n, d in (("opening", 11.0), ("extension", 1.0)) if getattr(self, n) != d
        ]
        fields += [f"scores={self.scores!r}"] if self.scores != "blosum62" else []
        return f"LocalAlignment({', '.join(fields)})"


class _NotAKernel(OfPairs, Indefinite):
    """A similarity of strings that is not positive semidefinite."""

    tags: ClassVar[Tags] = Tags(nonnegative=True, cpd_order=None)

    @property
    def instead(self) -> str:
        return "Take a kernel such as mc.LocalAlignment, mc.Subsequence or mc.Spectrum; mc.SVC and mc.SVR accept it."


class SmithWaterman(_NotAKernel):
    """The score of the best local alignment of two strings. It is not a kernel: see `LocalAlignment`.

    Parameters
    ----------
    opening, extension : float
        The penalties > 0 of the first and of every further symbol of a gap.
    scores : str
        "blosum62" for proteins (other symbols count as one more letter), or (match, mismatch).

    References
    ----------
    Smith and Waterman 1981, Identification of common molecular subsequences. Gotoh 1982 for the penalties.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.SmithWaterman(scores=(2.0, -1.0), opening=2.0)(["GATTACA", "GACTACA"])
    array([[14., 11.],
           [11., 14.]])
    """

    about: ClassVar[About] = About(
        "max_π (Σ S(xᵢ, zⱼ) − gaps), a gap: o + e·(l − 1)",
        "Comparing with other software; it is not positive semidefinite.",
        "SmithWaterman(scores=(1.0, -1.0))",
        arguments={"opening": Argument("o"), "extension": Argument("e"), "scores": SCORES},
    )

    opening: float = positive(11.0, free=False)
    extension: float = positive(1.0, free=False)
    scores: Any = "blosum62"

    def check(self) -> None:
        self._set(scores=checked_scores(self.scores))

    @property
    def letters(self) -> str:
        """The letters that the scores tell apart, if they know only some."""
        return known_letters(self.scores)

    def _costs(self, side: Side) -> tuple[NDArray[np.float64], float, float]:
        return score_table(self.scores, side), float(self.opening), float(self.extension)

    def tile(self, block: Block, out: Array) -> None:
        side, _ = block.pair.encoded(self)
        out[...] = self.run_tile("best_alignments", block, *self._costs(side))[0].reshape(block.shape)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        side = self.align(*(points.encoded(self),) * 2)[0]
        return self.run_diagonal("best_alignments", points, *self._costs(side))

    def derivation(self) -> Proof:
        return Unproven(self, "not a kernel: the best of several scores is not a sum over features")

    def __repr__(self) -> str:
        fields = [
            f"{n}={self._wrapped(n)!r}" for n, d in (("opening", 11.0), ("extension", 1.0)) if getattr(self, n) != d
        ]
        fields += [f"scores={self.scores!r}"] if self.scores != "blosum62" else []
        return f"SmithWaterman({', '.join(fields)})"


class EditSimilarity(_NotAKernel):
    """1 − d(s, t)/max(|s|, |t|), d the number of edits that turn s into t (Levenshtein). It is not a kernel.

    Two empty strings have similarity 1. exp(−d) is not a kernel either.

    >>> import mercer as mc
    >>> mc.EditSimilarity()(["kitten", "sitting"]).round(3)
    array([[1.   , 0.571],
           [0.571, 1.   ]])
    >>> mc.refute(mc.EditSimilarity()).refuted
    True
    """

    about: ClassVar[About] = About(
        "1 − d/max(|x|, |z|), d edits",
        "Comparing with other software; it is not positive semidefinite.",
        "EditSimilarity()",
    )

    def tile(self, block: Block, out: Array) -> None:
        x, z = block.pair.encoded(self)
        sizes = np.maximum(np.diff(x.ends)[block.rows, None], np.diff(z.ends)[block.cols])
        out[...] = 1.0 - self.run_tile("edits", block)[0].reshape(block.shape) / np.maximum(sizes, 1)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def derivation(self) -> Proof:
        return Unproven(self, "not a kernel: edit distances cannot be embedded in a Hilbert space")
