"""The proof that an expression is a kernel, as a tree: claims, their rules, and unproven leaves."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.algebra.proof import MARKS, Proof
from mercer.kernels.base import Similarity
from mercer.plot.looks import Display, canvas, plain
from mercer.words import rounded

WIDTH, STEP = 6.0, 0.24
"""The width of the plot and the indentation of premises, in inches."""
CLAIM, RULE, SPACE = 0.19, 0.165, 0.16
"""The height of a line of a claim, of a line of a rule, and of the space between steps, in inches."""
LETTERS = 0.083, 0.068
"""The mean width of a character of a claim and of a rule, in inches."""
MOST = 2
"""The largest number of lines of one claim; longer ones are cut."""


@dataclass(eq=False, repr=False)
class ProofTree(Display):
    """The proof of a kernel, one line per step, with premises below their conclusion.

    Rules are blue, axioms green, claims by authors of other classes are blue diamonds, and unproven steps are red.

    Attributes
    ----------
    claims, rules, conditions, references : list of str
        The parts of every step, premises after conclusions.
    kinds : list of str
        "rule", "axiom", "claim" or "unproven".
    depth, parent : array
        The depth and the parent of every step, shape (steps,); the parent of the first is −1.
    valid : bool
        Whether every leaf is an axiom.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> tree = mc.plot.ProofTree.from_kernel(mc.Linear() + mc.exp(mc.Linear()))
    >>> tree.depth, tree.parent, tree.valid
    (array([0, 1, 1, 2]), array([-1,  0,  0,  2]), True)
    >>> matplotlib.pyplot.close("all")
    """

    claims: list[str]
    rules: list[str]
    conditions: list[str]
    references: list[str]
    kinds: list[str]
    depth: NDArray[np.int64]
    parent: NDArray[np.int64]
    valid: bool

    @classmethod
    def from_kernel(cls, kernel: Any, *, ax: Any = None, **style: Any) -> Self:
        """The proof of a kernel; `kernel` may be a fitted model with one."""
        kernel = getattr(kernel, "kernel_", kernel)
        if not isinstance(kernel, Similarity):
            raise InvalidInput(
                "`kernel` must be a kernel, or a fitted model with one",
                got=type(kernel).__name__,
                advice="Pass a kernel such as mc.Gaussian(1.0) + mc.Linear().",
            )
        return cls.from_proof(kernel.proof(), ax=ax, **style)

    @classmethod
    def from_proof(cls, proof: Proof, *, ax: Any = None, **style: Any) -> Self:
        """The tree of a proof, such as `kernel.proof()`."""
        if not isinstance(proof, Proof):
            raise InvalidInput("`proof` must be a mc.Proof", got=type(proof).__name__, advice="Use from_kernel.")
        steps: list[tuple[Proof, int, int]] = []

        def walk(step: Proof, depth: int, parent: int) -> None:
            position = len(steps)
            steps.append((step, depth, parent))
            for premise in step.premises:
                walk(premise, depth + 1, position)

        walk(proof, 0, -1)
        every, depth, parent = zip(*steps)
        tree = cls(
            [s.claim for s in every],
            [s.rule for s in every],
            [s.condition for s in every],
            [s.reference for s in every],
            [s.kind for s in every],
            np.array(depth),
            np.array(parent),
            proof.valid,
        )
        return tree.plot(ax, **style)

    def plot(self, ax: Any = None, *, deepest: int | None = None, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones of sufficient height.

        With `deepest`, steps below that depth are only counted; a step that hides an unproven one is red.
        """
        shown = np.flatnonzero(self.depth <= (self.depth.max() if deepest is None else max(deepest, 0)))
        below = np.append(shown[1:], len(self.depth)) - shown - 1  # hidden steps directly follow their shown parent
        kinds = [
            "unproven" if "unproven" in self.kinds[i : i + 1 + hidden] else self.kinds[i]
            for i, hidden in zip(shown, below)
        ]
        parent = np.searchsorted(shown, self.parent[shown])
        at = 0.12 + STEP * self.depth[shown]
        rows = zip(shown.tolist(), below.tolist(), at)
        words = [self._words(i, hidden, WIDTH - left - 0.14) for i, hidden, left in rows]
        tall = np.array([CLAIM * len(claim) + RULE * len(rule) + SPACE for claim, rule in words])
        y = -(np.cumsum(tall) - tall)  # the middle of the first line of every step
        with canvas(ax, (WIDTH + 0.2, float(tall.sum()) + 0.55)) as (ax, palette):
            colours = {
                "rule": palette.blue, "axiom": palette.green, "claim": palette.blue, "unproven": palette.red
            }  # fmt: skip
            marks = {"rule": "o", "axiom": "s", "claim": "D", "unproven": "X"}
            ax.set(xlim=(0, WIDTH), ylim=(-float(tall.sum()) + SPACE, 0.15))
            ax.axis("off")
            for i, p in enumerate(parent[1:], 1):
                ax.plot([at[p], at[p], at[i]], [y[p], y[i], y[i]], color=palette.grey, lw=1, zorder=1)
            for i, kind in enumerate(kinds):
                ax.plot(at[i], y[i], marks[kind], color=colours[kind], ms=7, zorder=2, clip_on=False)
                claim, rule = words[i]
                ink, weight = (palette.red, "bold") if kind == "unproven" else (palette.ink, "normal")
                for line, text in enumerate(claim):
                    ax.text(at[i] + 0.14, y[i] - CLAIM * line, text, va="center", fontsize=10, color=ink, weight=weight)
                under = y[i] - CLAIM * len(claim)
                for line, text in enumerate(rule):
                    ax.text(at[i] + 0.14, under - RULE * line, text, va="center", fontsize=8.5, color=colours[kind])
            verdict = "Proven to be a kernel" if self.valid else "Not proven to be a kernel"
            ax.set_title(verdict if title is None else title, color=palette.green if self.valid else palette.red)
        return self._drawn(ax)

    def _words(self, i: int, hidden: int, room: float) -> tuple[list[str], list[str]]:
        """The lines of a claim, and of the rule below it."""
        claim = textwrap.wrap(rounded(self.claims[i]), max(int(room / LETTERS[0]), 20)) or [""]
        if len(claim) > MOST:
            claim = [*claim[: MOST - 1], claim[MOST - 1] + " …"]
        rule = MARKS[self.kinds[i]] + self.rules[i]
        rule += f"; {rounded(self.conditions[i])}" if self.conditions[i] else ""
        rule += f" [{self.references[i]}]" if self.references[i] else ""
        rule += f" ({hidden} step{'s' * (hidden > 1)} below)" if hidden else ""
        lines = textwrap.wrap(rule, max(int(room / LETTERS[1]), 20))
        return [plain(line) for line in claim], [plain(line) for line in lines]
