"""Why an expression is a kernel: a tree of rules that ends in axioms, or in leaves nobody has proven.

The rules are the closure properties of the lectures (000, 001 and 004): each holds for any premises that are kernels,
under a condition that was checked with the values at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """One step of a derivation.

    Attributes
    ----------
    claim : what is shown to be positive semidefinite.
    rule : the rule, axiom or gap by which it is.
    condition : the rule's condition with the values it was checked on ("" if it has none).
    premises : the proofs it rests on.
    reference : where an axiom is proven.
    kind : "rule", "axiom" or "unproven".
    """

    claim: str
    rule: str
    condition: str = ""
    premises: tuple[Proof, ...] = ()
    reference: str = ""
    kind: str = "rule"

    @property
    def valid(self) -> bool:
        """Whether every leaf is an axiom.

        >>> import mercer as mc
        >>> mc.Gaussian(1.0).proof().valid, mc.FromFunction(lambda x, z: 1.0).proof().valid
        (True, False)
        """
        return not self.unproven

    @property
    def unproven(self) -> list[Proof]:
        """The leaves that nobody has proven."""
        return [step for step in self.steps() if step.kind == "unproven"]

    def steps(self) -> Iterator[Proof]:
        """This step and all below it, premises after conclusions."""
        yield self
        for premise in self.premises:
            yield from premise.steps()

    def __str__(self) -> str:
        verdict = "is a kernel:" if self.valid else "is NOT proven to be a kernel:"
        return "\n".join([f"{self.claim} {verdict}", *self._lines("", "")])

    def _lines(self, first: str, rest: str) -> Iterator[str]:
        mark = {"rule": "by ", "axiom": "axiom: ", "unproven": "UNPROVEN: "}[self.kind]
        line = f"{first}{self.claim}   [{mark}{self.rule}"
        if self.condition:
            line += f"; {self.condition}"
        if self.reference:
            line += f"; {self.reference}"
        yield line + "]"
        for premise in self.premises:
            last = premise is self.premises[-1]
            yield from premise._lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def Axiom(claim: object, statement: str, *, condition: str = "", reference: str = "") -> Proof:
    """A leaf that is known to be a kernel."""
    return Proof(str(claim), statement, condition, reference=reference, kind="axiom")


def Unproven(claim: object, why: str) -> Proof:
    """A leaf for which no proof is known to the library."""
    return Proof(str(claim), why, kind="unproven")
