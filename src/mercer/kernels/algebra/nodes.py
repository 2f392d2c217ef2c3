"""The nodes of an expression: their base classes, their operands, and the constant kernel.

Each node checks its rule's condition when it is built, combines filled tiles when it is evaluated, and states its
rule in `conclusion`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import Units, positive
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Indefinite, Kernel, Kind, Similarity, Tags, Weight
from mercer.kernels.block import Block
from mercer.kernels.spaces import ANY, TABLE, VECTORS
from mercer.validation import is_number

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


def inside(kernel: Similarity, level: int) -> str:
    """The repr of a sub-expression, in brackets if its operator binds less tightly than `level`."""
    return repr(kernel) if kernel.precedence >= level else f"({kernel!r})"


def operand(value: Any, rule: str) -> Kernel:
    """A kernel, or a positive constant as one; anything else breaks the rule."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Weight):
        raise RuleBroken(
            f"{rule}: every operand must be a kernel",
            got=f"the smoothing weight {value!r}",
            advice="Use a Gaussian or Matern kernel: weights are not positive semidefinite, and serve only smoothers.",
        )
    if isinstance(value, Similarity):
        raise RuleBroken(
            f"{rule}: every operand must be a kernel",
            got=f"{value!r}, which is not positive semidefinite",
            advice=value.instead if isinstance(value, Indefinite) else "Take a kernel such as mc.Gaussian.",
        )
    if is_number(value):
        if value > 0:
            return Constant(float(value))
        raise RuleBroken(
            f"{rule}: a constant kernel must be > 0",
            got=value,
            advice="Leave it out; subtracting a constant can make eigenvalues negative.",
        )
    raise RuleBroken(
        f"{rule}: every operand must be a kernel or a positive number",
        got=f"{type(value).__name__} {value!r}",
        advice="Wrap a Python function as mc.FromFunction(f), a matrix as mc.Precomputed(K).",
    )


class Node(Similarity):
    """A node of an expression: it evaluates its parts and combines their values."""

    kind: ClassVar[Kind] = "rule"

    @property
    def parts(self) -> tuple[Similarity, ...]:
        return tuple(self.children.values())  # type: ignore[arg-type]

    def proof(self, dim: int | None = None) -> Proof:
        dim = self.dimension_of_parts(dim)
        return self.conclusion(*(part.proof(dim) for part in self.parts))

    @abstractmethod
    def conclusion(self, *premises: Proof) -> Proof:
        """The last step of the proof, given the proofs of the parts: the rule of this node, or why none applies."""

    def derivation(self) -> Proof:
        return self.proof()

    def dimension_of_parts(self, dim: int | None) -> int | None:
        """The dimension of the points that the parts see, None if it is not known."""
        return dim

    def joint_term(self, columns: Sequence[str]) -> list[set[str]]:
        """The columns that the parts read, as one term: the `terms` of a node that mixes its parts."""
        return [set().union(*(term for part in self.parts for term in part.terms(columns)))]

    def touch(self, points: Points) -> None:
        for part in self.parts:
            part.touch(points)

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        varying = [part for part in self.parts if not isinstance(part, Constant)] or self.parts
        return np.result_type(*(part.dtype_of(points) for part in varying))

    def _spaces(self) -> set[str]:
        """The kinds of objects that the parts act on; columns of vectors are vectors too, and so are histograms."""
        spaces = {part.space for part in self.parts} - {ANY}
        if any(getattr(space, "numeric_rows", False) for space in spaces):
            return spaces - {VECTORS, TABLE}
        return spaces - {TABLE} if spaces == {TABLE, VECTORS} else spaces

    @property
    def space(self) -> str:  # type: ignore[override]
        return next(iter(self._spaces()), ANY)

    def check(self) -> None:
        if len(self._spaces()) > 1:
            raise InvalidInput(
                "The parts of an expression must act on the same kind of objects",
                got=" and ".join(f"{part!r} on {part.space}" for part in self.parts),
                advice="Give each part its column of a table: k1.on('x') * k2.on('tokens').",
            )


class Unary(Node, Kernel):
    """A node over one kernel."""

    kernel: Any

    def check(self) -> None:
        self._set(kernel=operand(self.kernel, type(self).__name__))

    @property
    def inner(self) -> Kernel:
        kernel: Kernel = self.kernel
        return kernel

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return self.inner.tags


class Constant(Kernel):
    """The constant kernel k(x, z) = c, with the feature √c: it adds a constant function to the space.

    >>> import mercer as mc
    >>> mc.Linear() + 1.0
    Linear() + Constant(c=1.0)
    """

    about: ClassVar[About] = About("c", "An intercept inside a kernel: k + c.", "Constant(c=1.0)")

    c: float = positive(1.0)
    units: ClassVar[Units] = {"c": "factor"}
    space: ClassVar[str] = ANY
    tags: ClassVar[Tags] = Tags(stationary=True, radial=True, nonnegative=True, finite_rank=True)

    def encode(self, X: Any) -> Any:
        return X

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return []

    @property
    def encoding(self) -> Any:
        return "raw"

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        dtype = getattr(points.raw, "dtype", None)
        return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)

    def tile(self, block: Block, out: Array) -> None:
        out[...] = self.c

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.full(points.n, self.c)

    def distance_tile(self, block: Block, out: Array) -> None:
        out[...] = 0.0

    def distance_size(self, points: Points) -> float:
        return 0.0

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.full(len(self.theta), self.c * G.sum())

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.zeros((block.shape[0], block.vectors()[0].shape[1]))

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        return exactly(self.c)

    def derivation(self) -> Proof:
        return Axiom(self, "constant: phi(x) = √c", condition=f"c = {self.c:g} > 0", reference="Bishop 2006, (6.1)")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import ConstantMap, IdentityMap, ScaledMap

        return ScaledMap(ConstantMap(IdentityMap(d) if isinstance(d, int) else None), self.c)
