"""Why an expression is a kernel: a tree of rules that ends in axioms, in claims, or in leaves nobody has proven.

The rules are the closure properties of the lectures (000, 001 and 004): each holds for any premises that are kernels,
under a condition that was checked with the values at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# How each kind of step is introduced, in print and in pictures.
MARKS = {"rule": "by ", "axiom": "axiom: ", "claim": "claimed by its author: ", "unproven": "unproven: "}


@dataclass(frozen=True)
class Proof:
    """One step of a derivation.

    Attributes
    ----------
    claim : str
        The function that is shown to be positive semidefinite.
    rule : str
        The rule or axiom by which it is; for a leaf without proof, the reason.
    condition : str
        The rule's condition with the values it was checked on ("" if it has none).
    premises : tuple of Proof
        The proofs it rests on.
    reference : str
        Where an axiom is proven.
    kind : str
        "rule", "axiom", "claim" (an axiom that the author of a class outside this library states) or "unproven".
    rounding : float
        The rounding up to which it holds, relative to √(k(x, x) k(z, z)), as a share of what half of the digits allow;
        0 if it is exact.

    Examples
    --------
    >>> import mercer as mc
    >>> proof = (2.0 * mc.Gaussian(1.0) + mc.Linear()).proof()
    >>> proof.valid, proof.rule, [premise.claim for premise in proof.premises]
    (True, 'sum of kernels', ['2.0 * Gaussian(sigma=1.0)', 'Linear()'])
    """

    claim: str
    rule: str
    condition: str = ""
    premises: tuple[Proof, ...] = ()
    reference: str = ""
    kind: str = "rule"
    rounding: float = 0.0

    @property
    def valid(self) -> bool:
        """Whether every leaf is an axiom, or a claim of its author (see `claimed`).

        >>> import mercer as mc
        >>> mc.Gaussian(1.0).proof().valid, mc.FromFunction(lambda x, z: 1.0).proof().valid
        (True, False)
        """
        return not self.unproven

    @property
    def unproven(self) -> list[Proof]:
        """The leaves that nobody has proven."""
        return [step for step in self.steps() if step.kind == "unproven"]

    @property
    def claimed(self) -> list[Proof]:
        """The leaves that are kernels if the claims of their authors are true.

        >>> import mercer as mc
        >>> mc.Gaussian(1.0).proof().claimed
        []
        """
        return [step for step in self.steps() if step.kind == "claim"]

    def steps(self) -> Iterator[Proof]:
        """This step and all below it, premises after conclusions."""
        yield self
        for premise in self.premises:
            yield from premise.steps()

    def __str__(self) -> str:
        verdict = "is a kernel:" if self.valid else "is NOT proven to be a kernel:"
        if self.valid and self.claimed:
            verdict = "is a kernel, if the claim of its author is true:"
        return "\n".join([f"{self.claim} {verdict}", *self._lines("", "")])

    def _lines(self, first: str, rest: str) -> Iterator[str]:
        mark = "UNPROVEN: " if self.kind == "unproven" else MARKS[self.kind]
        line = f"{first}{self.claim}   [{mark}{self.rule}"
        if self.condition:
            line += f"; {self.condition}"
        if self.reference:
            line += f"; {self.reference}"
        yield line + "]"
        for premise in self.premises:
            last = premise is self.premises[-1]
            yield from premise._lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def Axiom(claim: object, statement: str, *, condition: str = "", reference: str = "", rounding: float = 0.0) -> Proof:
    """A leaf that is known to be a kernel, for the `derivation` of your own leaf.

    >>> import mercer as mc
    >>> print(mc.Axiom("Cauchy(1.0)", "Schoenberg: a mixture of Gaussians"))
    Cauchy(1.0) is a kernel:
    Cauchy(1.0)   [axiom: Schoenberg: a mixture of Gaussians]
    """
    return Proof(str(claim), statement, condition, reference=reference, kind="axiom", rounding=rounding)


def Unproven(claim: object, why: str) -> Proof:
    """A leaf for which no proof is known to the library.

    >>> import mercer as mc
    >>> mc.Unproven("f", "a Python function").valid
    False
    """
    return Proof(str(claim), why, kind="unproven")


class Rule(NamedTuple):
    """A closure rule: called with a claim and its premises, it gives that step of a proof.

    A premise that holds only up to rounding (a matrix of floats) gives a conclusion that holds up to a rounding that is
    `amplification` times larger; beyond half of the digits it is no longer proven.
    """

    name: str
    reference: str

    def __call__(self, claim: object, *premises: Proof, condition: str = "", amplification: float = 1.0) -> Proof:
        rounding = amplification * sum(premise.rounding for premise in premises)
        if rounding <= 1:
            return Proof(str(claim), self.name, condition, premises, self.reference, rounding=rounding)
        why = f"{self.name}: its premises hold to a rounding that becomes {rounding:.2g} times half of the digits"
        return Proof(str(claim), why, condition, premises, self.reference, kind="unproven")


MULTIPLE = Rule("positive multiple c·k", "Bishop 2006, (6.13)")
RESCALING = Rule("f(x)·k(x,z)·f(z) for any f", "Bishop 2006, (6.14)")
POLYNOMIAL = Rule("polynomial with non-negative coefficients", "Bishop 2006, (6.15)")
EXPONENTIAL = Rule("exponential of a kernel", "Bishop 2006, (6.16)")
SUM = Rule("sum of kernels", "Bishop 2006, (6.17)")
PRODUCT = Rule("product of kernels (Schur)", "Bishop 2006, (6.18)")
COMPOSITION = Rule("k(phi(x), phi(z)) for any phi", "Bishop 2006, (6.19)")
CONVOLUTION = Rule("sum of a kernel over all pairs of parts: phi(x) = Σ phi(x')", "Haussler 1999")
BILINEAR = Rule("xᵀAz with A ⪰ 0: phi(x) = A^½ x", "Bishop 2006, (6.20)")
