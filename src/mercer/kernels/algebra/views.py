"""k(phi(x), phi(z)): a kernel of the data seen through a map, or of some of its columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points, length, select_columns
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.nodes import Node, inside, operand
from mercer.kernels.algebra.parameters import show
from mercer.kernels.algebra.proof import COMPOSITION, Proof
from mercer.kernels.algebra.rowwise import UserFunction, require_map, require_rowwise
from mercer.kernels.base import ATOM, Kernel, Similarity, Tags, Weight
from mercer.kernels.block import Block, Pair
from mercer.kernels.spaces import ANY, TABLE, VECTORS

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


@dataclass(frozen=True)
class Columns:
    """Some columns of a table."""

    columns: tuple[int | str, ...]
    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        return select_columns(points.raw, self.columns)


@dataclass(frozen=True)
class Mapped:
    """The image of a data set under a feature map, which has to map every point by itself."""

    phi: UserFunction
    transient: ClassVar[bool] = False

    @property
    def state(self) -> Hashable:
        return self.phi.state()

    def apply(self, points: Points) -> Any:
        image = self.phi(points.raw)
        if length(image) != points.n:
            raise InvalidInput(
                f"phi must return one row per point, {points.n} here",
                got=f"{length(image)} rows",
                advice="Write phi for whole data sets, as a scikit-learn transformer is.",
            )
        require_rowwise(self.phi, "phi", points, image, self.phi)
        return image


class Viewed(Node):
    """A similarity of the data seen through a view."""

    kernel: Any

    @property
    @abstractmethod
    def view(self) -> Any:
        """The view that the data is seen through."""

    @property
    def inner(self) -> Similarity:
        kernel: Similarity = self.kernel
        return kernel

    def dimension_of_parts(self, dim: int | None) -> int | None:
        return None

    def seen_by_parts(self, points: Points) -> Points:
        return points.view(self.view)

    @property
    def scale_factors(self) -> NDArray[np.bool_] | None:
        return self.inner.scale_factors

    def touch(self, points: Points) -> None:
        self.inner.touch(points.view(self.view))

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        return self.inner.dtype_of(points.view(self.view))

    def tile(self, block: Block, out: Array) -> None:
        block.view(self.view).evaluate(self.inner, out)

    def fill(self, pair: Pair, out: Array, finish: Callable[[Array], None] | None = None) -> Array:
        return self.inner.fill(pair.view(self.view), out, finish)

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        return self.inner.multiply(pair.view(self.view), V)

    def log_tile(self, block: Block, out: Array) -> None:
        self.inner.log_tile(block.view(self.view), out)

    @property
    def exact_log(self) -> bool:
        return self.inner.exact_log

    def log_cosine_tile(self, block: Block, out: Array) -> None:
        self.inner.log_cosine_tile(block.view(self.view), out)

    def log_size(self, points: Points) -> float:
        return self.inner.log_size(points.view(self.view))

    def log_cosine_size(self, points: Points) -> float:
        return self.inner.log_cosine_size(points.view(self.view))

    def distance_tile(self, block: Block, out: Array) -> None:
        self.inner.distance_tile(block.view(self.view), out)

    def distance_size(self, points: Points) -> float:
        return self.inner.distance_size(points.view(self.view))

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return self.inner.diagonal(points.view(self.view))

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return self.inner.log_diagonal(points.view(self.view))

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return self.inner.tile_gradient(block.view(self.view), G)


class _On(Viewed):
    kernel: Any
    columns: Any
    space: ClassVar[str] = TABLE

    def check(self) -> None:
        flat: list[int | str] = []
        columns = self.columns if isinstance(self.columns, (tuple, list)) else (self.columns,)
        for column in columns:
            for c in column if isinstance(column, (list, tuple, range, np.ndarray)) else (column,):
                if not isinstance(c, (str, int, np.integer)) or isinstance(c, bool):
                    raise InvalidInput(
                        "Columns must be positions or names", got=repr(c), advice="Write, for example, k.on(0, 'age')."
                    )
                flat.append(c if isinstance(c, str) else int(c))
        if len(set(flat)) < len(flat):
            raise InvalidInput("Columns must be distinct", got=flat, advice="Name each column once.")
        if not flat:
            raise InvalidInput("`on` needs at least one column", got="none", advice="Write k.on(0) or k.on('age').")
        self._set(columns=tuple(flat))

    @property
    def view(self) -> Columns:
        return Columns(self.columns)

    def dimension_of_parts(self, dim: int | None) -> int | None:
        return len(self.columns)

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return self.inner.terms([column if isinstance(column, str) else columns[column] for column in self.columns])

    def narrowed(self, share: float) -> Kernel | None:
        narrow = self.inner.narrowed(share)
        return None if narrow is None else narrow.on(*self.columns)

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        if any(isinstance(c, str) for c in self.columns):
            raise InvalidInput(
                "Derivatives by the points need columns by position",
                got=f"{self!r}",
                advice="Pass a matrix, and choose its columns by position, as in k.on(0).",
            )
        inner = self.inner.tile_input_gradient(block.view(self.view), G)
        gradient = np.zeros((block.shape[0], block.vectors()[0].shape[1]))
        for k, column in enumerate(self.columns):
            gradient[:, column] += inner[:, k]
        return gradient

    def enclose(self, x: Any, z: Any) -> Interval:
        return self.inner.enclose(tuple(x[c] for c in self.columns), tuple(z[c] for c in self.columns))

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.on({', '.join(map(repr, self.columns))})"


class On(_On, Kernel):
    """k(x[columns], z[columns]).

    >>> import mercer as mc
    >>> mc.Linear().on(1)([[1.0, 2.0], [3.0, 4.0]])
    array([[ 4.,  8.],
           [ 8., 16.]])
    """

    about: ClassVar[About] = About(
        "k(x[J], z[J])",
        "A kernel for some columns of a table, by name or position: k.on('age').",
        "Gaussian(10.0).on('age')",
    )

    kernel: Any
    columns: Any

    def check(self) -> None:
        self._set(kernel=operand(self.kernel, "Rule k(phi(x), phi(z))"))
        super().check()

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.inner.tags, radial=False, universal=False)

    def conclusion(self, *premises: Proof) -> Proof:
        condition = f"phi selects columns {', '.join(map(repr, self.columns))}"
        return COMPOSITION(self, *premises, condition=condition)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import ColumnsMap

        if self.inner.space in (VECTORS, TABLE, ANY):
            return ColumnsMap(self.inner.features(len(self.columns), index=index), self.columns, d)
        return ColumnsMap(self.inner.features(d, index=index), self.columns)


class WeightOn(_On, Weight):
    """A weight on some columns.

    >>> import mercer as mc
    >>> mc.Uniform(1.0).on(1)([[5.0, 0.0]], [[0.0, 0.5]])
    array([[1.]])
    """

    about: ClassVar[About] = About(
        "w(x[J], z[J])",
        "A weight on some columns: w.on(0).",
        "Epanechnikov(2.0).on(0)",
        arguments={"kernel": Argument("w", "weight")},
    )

    kernel: Any
    columns: Any

    def check(self) -> None:
        if not isinstance(self.kernel, Weight):
            raise InvalidInput("WeightOn takes a smoothing weight", got=repr(self.kernel), advice="Use k.on(columns).")
        super().check()

    def conclusion(self, *premises: Proof) -> Proof:
        return Weight.derivation(self)


class After(Viewed, Kernel):
    """k(phi(x), phi(z)) for a map phi of data sets.

    >>> import mercer as mc
    >>> mc.After(mc.Linear(), lambda X: X ** 2)([[3.0]])
    array([[81.]])
    """

    about: ClassVar[About] = About(
        "k(φ(x), φ(z))",
        "A kernel of transformed points: k.after(phi).",
        "mc.Gaussian(1.0).after(np.tanh)",
        in_python="apply phi to the data first, or build it in Python",
    )

    kernel: Any
    phi: Any
    space: ClassVar[str] = ANY

    def check(self) -> None:
        self._set(kernel=operand(self.kernel, "Rule k(phi(x), phi(z))"))
        require_map(self.phi)

    @property
    def view(self) -> Mapped:
        return Mapped(UserFunction(self.phi))

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        inner = self.inner.tags
        return Tags(
            normalised=inner.normalised,
            nonnegative=inner.nonnegative,
            finite_rank=inner.finite_rank,
            cpd_order=inner.cpd_order,
        )

    def conclusion(self, *premises: Proof) -> Proof:
        return COMPOSITION(self, *premises, condition=f"phi = {show(self.phi)}, which maps every point by itself")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import ComposedMap

        if d is None or isinstance(d, str):
            raise InvalidInput(
                "The map of k(phi(x), phi(z)) needs the number of columns of x, or a data set of objects",
                got=repr(d),
                advice="Pass it, as in k.features(3) or k.features(smiles).",
            )
        columns = isinstance(d, (int, np.integer))
        image = UserFunction(self.phi)(np.zeros((1, d)) if columns else d)
        rows = columns or getattr(image, "ndim", 0) == 2
        inner = self.inner.features(np.shape(image)[1] if rows else image, index=index)
        return ComposedMap(inner, self.phi, int(d) if columns else None)

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.after({show(self.phi)})"
