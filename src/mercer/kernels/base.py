"""Similarity, the one abstraction, and its two branches: Kernel (positive semidefinite) and Weight (smoothing only).

A leaf says how to fill one tile of a Gram matrix; everything else follows from that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.cluster import is_dask
from mercer.data.points import Array, Points
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput, InvalidType, RuleBroken
from mercer.kernels import costs, tiling
from mercer.kernels.about import About
from mercer.kernels.algebra.differences import STEP, dense_sides, input_slopes, scales
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.algebra.parameters import key
from mercer.kernels.algebra.proof import Proof, Unproven
from mercer.kernels.algebra.values import Value
from mercer.kernels.block import Block, Pair
from mercer.kernels.spaces import VECTORS
from mercer.validation import real_numbers

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval
    from mercer.kernels.vectors.spectra import SpectralTerm


# How tightly the operator of an expression binds, for its repr.
PLUS, TIMES, POWER, ATOM = 1, 2, 3, 4


Kind: TypeAlias = Literal["kernel", "rule", "weight", "conditional", "indefinite"]


@dataclass(frozen=True)
class Tags:
    """Properties of a similarity that are known without evaluating it.

    Attributes
    ----------
    stationary : bool
        It depends on x − z only.
    radial : bool
        It depends on ‖x − z‖ only.
    normalised : bool
        k(x, x) = 1 (where it is not 0).
    nonnegative : bool
        k ≥ 0.
    finite_rank : bool
        It has a finite feature map on every finite-dimensional space, so that models are parametric.
    universal : bool
        Its functions approximate every continuous function on a compact set (lecture 002).
    cpd_order : int or None
        It is conditionally positive definite of this order; 0 means positive semidefinite, None that it is not known.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Gaussian(1.0).tags.universal, mc.Polynomial(2).tags.finite_rank
    (True, True)
    """

    stationary: bool = False
    radial: bool = False
    normalised: bool = False
    nonnegative: bool = False
    finite_rank: bool = False
    universal: bool = False
    cpd_order: int | None = 0

    @property
    def bounded(self) -> bool:
        """Whether values stay within [−1, 1], so that none can overflow."""
        return self.stationary and self.normalised


class Similarity(Value, ABC):
    """A symmetric function k(x, z) of two objects.

    A leaf defines `tile`. It may override `diagonal`, `log_tile`, `tile_gradient`, `tile_input_gradient`, `encode`,
    `derivation`, `features` and `enclose` where it knows a faster or more exact way.

    Examples
    --------
    Kernels, weights and functions that are neither share this base class:

    >>> import mercer as mc
    >>> similarities = mc.Gaussian(1.0), mc.Epanechnikov(1.0), mc.Tanh()
    >>> [isinstance(k, mc.Similarity) for k in similarities], [k.proof().valid for k in similarities]
    ([True, True, True], [True, False, False])
    """

    about: ClassVar[About]
    kind: ClassVar[Kind]
    space: ClassVar[str] = VECTORS
    tags: ClassVar[Tags] = Tags()
    precedence: ClassVar[int] = ATOM
    tile_shape: ClassVar[tuple[int, int] | None] = None
    """Rows and columns of the tiles that suit this leaf, if the usual ones do not. Long ones suit a leaf whose rows
    have a cost of their own. Small ones suit slow values: threads then share the work, and interrupts do not wait.
    """

    # Left multiplication by a NumPy scalar must reach __rmul__, not broadcast over the kernel as an object.
    __array_ufunc__ = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A class is abstract or final: a proof and fast paths hold for the methods they were written beside."""
        final = next((base for base in cls.__mro__[1:] if issubclass(base, Similarity) and not isabstract(base)), None)
        if final is not None:
            raise InvalidType(
                f"A class of kernels must derive from an abstract one: {final.__name__} is final, because a subclass "
                "would inherit its proof and its fast paths for other values",
                got=f"class {cls.__name__}({', '.join(base.__name__ for base in cls.__bases__)})",
                advice="Derive from mc.Kernel and define `tile` (and `derivation`, if you know a proof), compose "
                "existing kernels, or use mc.FromFunction or mc.FromFeatures.",
            )
        for name in ("proof", "derivation", "conclusion"):
            author = next((base for base in cls.__mro__ if name in base.__dict__), Similarity)
            if not author.__module__.startswith("mercer."):
                setattr(cls, name, _as_claim(author.__dict__[name]))
        super().__init_subclass__(**kwargs)

    # -- what a leaf defines --------------------------------------------------------------------------------------

    @abstractmethod
    def tile(self, block: Block, out: Array) -> None:
        """Fill `out` with k(x, z) for every pair of the block."""

    def log_tile(self, block: Block, out: Array) -> None:
        """Fill `out` with log k(x, z). Override where the logarithm is known directly, and set `exact_log`."""
        self.tile(block, out)
        with np.errstate(divide="ignore"):
            np.log(out, out=out)

    @property
    def exact_log(self) -> bool:
        """Whether `log_tile` is computed without evaluating k, so that it neither over- nor underflows."""
        return False

    def log_cosine_tile(self, block: Block, out: Array) -> None:
        """Fill `out` with log k(x, z) − ½ log k(x, x) − ½ log k(z, z). Used only if `exact_log`.

        Far from the origin these logarithms are large and nearly cancel. Override where the difference is known.
        """
        self.log_tile(block, out)
        if not self.tags.normalised:
            x, z = diagonals(self, block.pair, log=True)
            out -= (0.5 * x[block.rows, None] + 0.5 * z[block.cols]).astype(out.dtype)

    def log_size(self, points: Points) -> float:
        """The size of the largest term in log k(x, x): if terms cancel, the result is off by this many roundings.

        Used only if `exact_log`.
        """
        return float(np.abs(self.log_diagonal(points)).max())

    def log_cosine_size(self, points: Points) -> float:
        """The same for `log_cosine_tile`: 0 if nothing cancels."""
        return 0.0 if self.tags.normalised else self.log_size(points)

    def distance_tile(self, block: Block, out: Array) -> None:
        """Fill `out` with ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z), the squared distance in feature space.

        Override it and `distance_size` where the distance can be computed without cancellation.
        """
        if self.exact_log and self.tags.normalised:  # 2 − 2k, whose digits near k = 1 are those of log k near 0
            self.log_tile(block, out)
            np.expm1(out, out=out)
            out *= -2.0
            return
        self.tile(block, out)
        out *= -2.0
        x, z = diagonals(self, block.pair)
        out += x[block.rows, None]
        out += z[block.cols]

    def distance_size(self, points: Points) -> float:
        """An upper bound of the terms that cancel in `distance_tile`: 0 if nothing cancels."""
        if self.exact_log and self.tags.normalised:
            return 2.0 * self.log_size(points)
        with np.errstate(over="ignore"):
            return 2.0 * float(np.abs(self.diagonal(points)).max()) * self.amplification

    @property
    def pairwise(self) -> bool:
        """Whether the data set is itself the matrix of similarities, as for a bare `Precomputed()`."""
        return any(child.pairwise for child in self.children.values())  # type: ignore[attr-defined]

    @property
    def vanishes_at_origin_only(self) -> bool:
        """Whether k(x, x) = 0 implies x = 0, as for kernels of ⟨x, z⟩."""
        return False

    @property
    def amplification(self) -> float:
        """The rounding error of k(x, z)/√(k(x, x) k(z, z)) as a multiple of the leaves' error, to first order."""
        return max((child.amplification for child in self.children.values()), default=1.0)  # type: ignore[attr-defined]

    @property
    def precision(self) -> np.dtype[Any]:
        """The dtype that limits the accuracy of the values, whatever they are computed in."""
        coarse = any(child.precision == np.float32 for child in self.children.values())  # type: ignore[attr-defined]
        return np.dtype(np.float32 if coarse else np.float64)

    def encode(self, X: Any) -> Any:
        """Raw objects → what `tile` reads, row by row. By default a validated float matrix."""
        return as_vectors(X)

    @property
    def encoding(self) -> Any:
        """Leaves with equal encodings share the encoded points. `encode` may depend on fields, not on parameters."""
        if type(self).encode is Similarity.encode:
            return "vectors"
        parameters = {name for name, _ in self._rules}
        return type(self), tuple(key(v) for name, v in self._fields().items() if name not in parameters)

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        """Make two encoded data sets comparable (the same object twice if both are the same data)."""
        return x, z

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        """k(x, x) for every point, without the matrix."""
        out = np.empty(points.n)
        for span in threads.spans(points.n, costs.DIAGONAL_POINTS):
            sub = Pair(points.take(span), None, self.dtype_of(points))
            whole = slice(0, sub.shape[0])
            tile = np.empty(sub.shape, sub.dtype)
            self.tile(sub.block(whole, whole), tile)
            out[span] = np.diagonal(tile)
        return out

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        """log k(x, x) for every point."""
        with np.errstate(divide="ignore"):
            return np.log(self.diagonal(points))

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """Σᵢⱼ Gᵢⱼ ∂kᵢⱼ/∂theta over the block. By default by central differences of fourth order, in float64."""
        theta = self.theta
        gradient = np.empty(len(theta))
        if not len(theta):
            return gradient
        # New points, so that everything the moved kernels store on them is released with them.
        x = block.pair.x.take(block.rows)
        z = None if block.diagonal else block.pair.z.take(block.cols)
        for p in range(len(theta)):
            total, tile = np.zeros(block.shape), np.empty(block.shape)
            for steps, weight in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
                moved = theta.copy()
                moved[p] += steps * STEP
                pair = Pair(x, z, np.float64)
                self.with_theta(moved).tile(pair.block(slice(0, pair.shape[0]), slice(0, pair.shape[1])), tile)
                total += weight * tile
            gradient[p] = np.vdot(G, total) / (12 * STEP)
        return gradient

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """Σⱼ Gᵢⱼ ∂k(xᵢ, zⱼ)/∂xᵢ for the rows of the block, shape (rows, d). By default by central differences."""
        x, z = dense_sides(block)
        others = Points(z)

        def values(X: NDArray[np.float64]) -> NDArray[np.float64]:
            pair = Pair(Points(X), others, np.float64)
            tile = np.empty(pair.shape)
            self.tile(pair.block(slice(0, pair.shape[0]), slice(0, pair.shape[1])), tile)
            return tile

        return input_slopes(values, x, scales(block.pair), G)

    def enclose(self, x: Any, z: Any) -> Interval:
        """An interval that is certain to hold k(x, z), for exact x and z (vectors of rationals).

        By default the computed value, widened by 2⁻⁴⁰ of its size.
        """
        from mercer.kernels.validity.interval import around

        pair = [np.asarray([v], dtype=np.float64) if isinstance(v, tuple) else [v] for v in (x, z)]
        return around(float(self(pair[0], pair[1])[0, 0]))

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        """The explicit feature map phi with k(x, z) = phi(x)ᵀphi(z), if it is finite.

        Parameters
        ----------
        d : int
            Number of columns of the points; the ground set for kernels on sets; for other objects a data set of them.
        index : str
            "monomials" (each monomial once) or "tuples" (lecture 002: one feature per tuple of factors).
        """
        raise InvalidInput(
            "An explicit feature map must be finite",
            got=f"{self!r}, whose map is infinite-dimensional or not known",
            advice="Work with Gram matrices, or approximate the map by mc.taylor_features or mc.fourier_features.",
        )

    def narrowed(self, share: float) -> Kernel | None:
        """A Gaussian of the same distances with this share of the width; None if k is not a function of distances."""
        return None

    def spectral_terms(self, d: int) -> tuple[SpectralTerm, ...]:
        """The spectral density over d columns as a sum of terms; empty if it is not known, or k is not stationary."""
        return ()

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        """The columns that each term reads, if k is a sum of terms, in a data set with columns of these names.

        By default there is one term, which reads all columns.
        """
        return [set(columns)]

    @property
    def scale_factors(self) -> NDArray[np.bool_] | None:
        """The entries of `theta` whose common factor is a factor of k, by `units`; None if there are none."""
        own = [field for field, _ in self.own_parameters]
        factor = next((field for field in own if self.units.get(field) == "factor"), None)
        if factor is None:
            return None
        mask = np.zeros(len(self.theta), dtype=bool)
        mask[: len(own)] = [field == factor for field in own]  # a second one too would scale the kernel by the square
        return mask

    def squared(self) -> Similarity:
        """k(x, z)², as a named kernel if there is one.

        >>> import mercer as mc
        >>> mc.Epanechnikov(2.0).squared(), mc.Laplacian(2.0).squared()
        (Biweight(sigma=2.0), Laplacian(sigma=1.0))
        """
        product: Similarity = self * self  # type: ignore[operator]
        return product

    def fill(self, pair: Pair, out: Array, finish: Callable[[Array], None] | None = None) -> Array:
        """out = K over the threads, each part passed to `finish`. Override where whole rows are faster than tiles."""
        return tiling.fill(self, pair, out, finish)

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        """K V for V of shape (m, t), without storing K. Override where values need not leave the registers."""
        return tiling.multiply(self, pair, V)

    def fused(self, pair: Pair, reach: float | None = None) -> tuple[Any, Any] | None:
        """Both sides laid out for a loop that computes values in registers, or None if there is no such loop.

        The result is None if a fused loop would be slower or lose digits. A caller that needs fewer digits passes
        `reach`, the largest distance of a point from the centre that it accepts, in widths.
        """
        return None

    # -- what follows from it -------------------------------------------------------------------------------------

    def proof(self, dim: int | None = None) -> Proof:
        """Why this is a kernel: a tree of rules that prints as a derivation.

        `dim` is the dimension of the points, if validity depends on it. A leaf states its step in `derivation`; only a
        leaf that is a kernel in some dimensions and not in others overrides this method.
        """
        return self.derivation()

    def derivation(self) -> Proof:
        """Why this leaf is a kernel in every dimension: an axiom, or a rule with its premises; or why it is not."""
        return Unproven(self, "no proof was given for this leaf")

    def prepare(self, X: Any) -> Points:
        """Raw objects → points, validated once and usable in every later call."""
        points = X if isinstance(X, Points) else Points(X)
        self.touch(points)
        return points

    def touch(self, points: Points) -> None:
        """Encode the points for every leaf now, so that bad input is reported before any work starts."""
        points.encoded(self)

    def seen_by_parts(self, points: Points) -> Points:
        """The points that the parts of this expression compare: these, unless it looks at them through a view."""
        return points

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        """The dtype of the Gram matrix of these points."""
        dtype = getattr(points.encoded(self), "dtype", None)
        return np.dtype(dtype) if dtype in (np.float32, np.float64) else np.dtype(np.float64)

    def pair(self, X: Any, Z: Any = None, dtype: Any = None) -> Pair:
        """Both data sets, prepared, with the dtype of their Gram matrix."""
        x = self.prepare(X)
        z = None if Z is None else self.prepare(Z)
        if dtype is None:
            dtype = np.result_type(self.dtype_of(x), self.dtype_of(x if z is None else z))
        elif dtype not in (np.float32, np.float64, "float32", "float64"):
            raise InvalidInput("`dtype` must be float32 or float64", got=repr(dtype), advice="Choose one of them.")
        return Pair(x, z, dtype, shared=len(self.leaves) > 1)

    def __call__(self, X: Any, Z: Any = None, *, dtype: Any = None) -> Array:
        """The matrix of k(x, z): n × n (exactly symmetric) or n × m; for a Dask bag, array or frame X a lazy one.

        >>> import mercer as mc
        >>> mc.Linear()([[1.0, 2.0], [3.0, 4.0]])
        array([[ 5., 11.],
               [11., 25.]])
        """
        if is_dask(X) or is_dask(Z):
            from mercer.kernels.lazy import lazy_gram

            lazy: Array = lazy_gram(self, X, Z, dtype)
            return lazy
        pair = self.pair(X, Z, dtype)
        n, m = pair.shape
        memory.allocatable(
            n * m * pair.dtype.itemsize, f"The {n}×{m} matrix", "Use gram.of(k, X), which never stores it."
        )
        return self.fill(pair, np.empty(pair.shape, pair.dtype))

    def diag(self, X: Any) -> Array:
        """k(x, x) for every point, without the matrix.

        >>> import mercer as mc
        >>> mc.Polynomial(2, c=1.0).diag([[1.0], [2.0]])
        array([ 4., 25.])
        """
        points = self.prepare(X)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.diagonal(points).astype(self.dtype_of(points), copy=False)
        require_finite(diagonal, self)
        return diagonal

    def gradient(self, X: Any, G: Any, Z: Any = None) -> NDArray[np.float64]:
        """Σᵢⱼ Gᵢⱼ ∂k(xᵢ, zⱼ)/∂theta: the adjoint derivative by every free parameter, in log space.

        No n × n × p tensor is formed. `G` has the shape of the Gram matrix.

        >>> import mercer as mc
        >>> k = mc.Gaussian(2.0)
        >>> X = np.array([[0.0], [1.0]])
        >>> bool(np.allclose(k.gradient(X, np.eye(2)), 0.0))
        True
        """
        pair = self.pair(X, Z)
        G = self._adjoint(G, pair)
        totals = threads.Totals((len(self.theta),))

        def work(block: Block, share: int) -> None:
            adjoint = G[block.rows, block.cols]
            if pair.same and not block.diagonal:
                # k is symmetric: a tile below the diagonal stands for its mirror image too.
                adjoint = adjoint + G[block.cols, block.rows].T
            with np.errstate(over="ignore", invalid="ignore"):
                totals[share] += self.tile_gradient(block.remembering(), adjoint)

        tiling.each(pair, work, shape=tiling.shape_for(self))
        return _finite_gradient(totals.sum(), self)

    def input_gradient(self, X: Any, G: Any, Z: Any = None) -> NDArray[np.float64]:
        """Σⱼ Gᵢⱼ ∂k(xᵢ, zⱼ)/∂xᵢ: the derivative by the points, shape (n, d); the second argument is held fixed.

        With G = 1 cᵀ this is the gradient of f = Σ cⱼ k(·, zⱼ) at every point of X.

        >>> import mercer as mc
        >>> mc.Linear().input_gradient([[1.0, 2.0]], [[1.0, 1.0]], [[3.0, 4.0], [5.0, 6.0]])
        array([[ 8., 10.]])
        """
        pair = self.pair(X, X if Z is None else Z)
        G = self._adjoint(G, pair)
        totals: dict[tuple[int, int], NDArray[np.float64]] = {}

        def work(block: Block, share: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                part = self.tile_input_gradient(block.remembering(), G[block.rows, block.cols])
            key = (block.rows.start, share)
            totals[key] = totals[key] + part if key in totals else part

        tiling.each(pair, work, triangle=False)
        gradient = np.zeros((pair.shape[0], next(iter(totals.values())).shape[1]))
        for (start, _), part in sorted(totals.items()):
            gradient[start : start + len(part)] += part
        return _finite_gradient(gradient, self)

    @staticmethod
    def _adjoint(G: Any, pair: Pair) -> Array:
        try:
            G = np.asarray(real_numbers(G), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "`G` must hold real numbers", got=str(error), advice="Pass one float per pair."
            ) from None
        if G.shape != pair.shape:
            raise InvalidInput(
                f"`G` must have the Gram's shape {pair.shape}", got=G.shape, advice="Pass one entry per pair of points."
            )
        return G


def diagonals(kernel: Similarity, pair: Pair, *, log: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """k(x, x) and k(z, z) of both sides, or their logarithms, computed once."""

    def side(points: Points) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            diagonal = kernel.log_diagonal(points) if log else kernel.diagonal(points)
        require_finite(diagonal, kernel)
        return diagonal

    def make() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x = side(pair.x)
        return x, x if pair.same else side(pair.z)

    return pair.once(("diagonals", kernel, log), make)


def _as_claim(proof: Callable[..., Proof]) -> Callable[..., Proof]:
    """The proof of a class outside this library, marked as a claim: only its author has checked it."""

    @wraps(proof)
    def claimed(self: Similarity, *args: Any, **kwargs: Any) -> Proof:
        step = proof(self, *args, **kwargs)
        return step if step.kind == "unproven" else replace(step, kind="claim")

    return claimed


def _finite_gradient(gradient: NDArray[np.float64], kernel: Similarity) -> NDArray[np.float64]:
    if gradient.size:
        require_finite(gradient, kernel)
    return gradient


class Kernel(Similarity):
    """A similarity that is positive semidefinite, by proof or by claim: `proof()` says which.

    Kernels form an algebra: `c * k`, `k1 + k2`, `k1 * k2`, `k ** n`, `k.poly(coefficients)`, `k.exp()`,
    `k.rescale(f)`, `k.after(phi)`, `k.over(parts)`, `k.on(columns)` and `k.normalize()` are kernels again. Each
    operation checks its own condition.

    >>> import mercer as mc
    >>> k = 0.5 * mc.Gaussian(1.0) + mc.Polynomial(3, c=1.0) * mc.Linear()
    >>> k
    0.5 * Gaussian(sigma=1.0) + Polynomial(degree=3, c=1.0) * Linear()
    """

    kind: ClassVar[Kind] = "kernel"

    def __add__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        return algebra.add(self, other)

    def __radd__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        # The builtin sum starts from 0.
        return self if isinstance(other, int) and other == 0 else algebra.add(other, self)

    def __mul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        return algebra.multiply(self, other)

    def __rmul__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        return algebra.multiply(other, self)

    def __truediv__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        return algebra.divide(self, other)

    def __pow__(self, exponent: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        return algebra.Power(self, exponent)

    def __sub__(self, other: Any) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        raise algebra.no_rule(
            "k₁ − k₂", f"{self!r} and {other!r}", "a difference of kernels is in general not a kernel"
        )

    __rsub__ = __sub__

    def __neg__(self) -> Kernel:
        from mercer.kernels.algebra import operators as algebra

        raise algebra.no_rule("−k", f"k = {self!r}", "its diagonal −k(x, x) would be negative")

    def exp(self) -> Kernel:
        """exp(k(x, z)), a kernel by the exponential rule.

        >>> import mercer as mc
        >>> mc.Linear().exp()
        exp(Linear())
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.Exp(self)

    def poly(self, coefficients: Any) -> Kernel:
        """q(k) = Σₙ coefficients[n]·kⁿ with non-negative coefficients.

        >>> import mercer as mc
        >>> mc.Linear().poly([1.0, 0.0, 2.0])([[2.0]])
        array([[33.]])
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.Poly(self, coefficients)

    def rescale(self, f: Any) -> Kernel:
        """f(x) k(x, z) f(z) for any function f that maps a data set to one number per point.

        >>> import mercer as mc
        >>> mc.Linear().rescale(lambda X: 1.0 / np.linalg.norm(X, axis=1)).diag([[3.0, 4.0]])
        array([1.])
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.Rescaled(self, f)

    def after(self, phi: Any) -> Kernel:
        """k(phi(x), phi(z)) for any map phi of data sets: a function X → Φ, or an object with `transform`.

        >>> import mercer as mc
        >>> mc.Linear().after(np.square)([[1.0, 2.0]])
        array([[17.]])
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.After(self, phi)

    def over(self, parts: Any, *, mean: bool = False) -> Kernel:
        """Σ k(x', z') over the parts x' of x and z' of z, or its mean: a kernel on objects from one on parts.

        `parts` is a function of one object that returns its parts, as a list or a matrix.

        >>> import mercer as mc
        >>> mc.Delta().over(str.split)(["to be or not to be", "to do"])
        array([[10.,  2.],
               [ 2.,  2.]])
        """
        from mercer.kernels.algebra.parts import Convolution

        return Convolution(self, parts, mean)

    def on(self, *columns: Any) -> Kernel:
        """The kernel on some columns of a table, by position or name.

        >>> import mercer as mc
        >>> (mc.Gaussian(1.0).on(0) * mc.Linear().on(1, 2)).diag([[1.0, 2.0, 3.0]])
        array([13.])
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.On(self, columns)

    def normalize(self) -> Kernel:
        """k(x, z)/√(k(x, x) k(z, z)): the cosine in feature space, 0 where k(x, x) = 0.

        >>> import mercer as mc
        >>> mc.Linear().normalize()([[1.0, 0.0], [1.0, 1.0]]).round(3)
        array([[1.   , 0.707],
               [0.707, 1.   ]])
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.Normalized(self)


class Indefinite(Similarity):
    """A similarity that is not positive semidefinite: no Hilbert space belongs to it, so the algebra refuses it."""

    kind: ClassVar[Kind] = "indefinite"

    @property
    def instead(self) -> str:
        """Advice where a kernel is needed: what to use instead."""
        return "Take a kernel such as mc.Gaussian or mc.Polynomial."

    def _refuse(self, *others: Any) -> NoReturn:
        raise RuleBroken(
            "The rules of the kernel algebra need kernels",
            got=f"{self!r}, which is not positive semidefinite",
            advice=self.instead,
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = __neg__ = _refuse
    exp = poly = rescale = after = over = on = normalize = _refuse


class Weight(Similarity):
    """A smoothing weight: non-negative and local, but not positive semidefinite (in every dimension).

    It serves Nadaraya-Watson, local regression and densities; no Hilbert space belongs to it, so the kernel algebra
    refuses it.

    Examples
    --------
    >>> import mercer as mc
    >>> w = mc.Epanechnikov(1.0)
    >>> isinstance(w, mc.Weight), w([[0.0], [0.5], [2.0]])[0]
    (True, array([1.  , 0.75, 0.  ]))
    """

    kind: ClassVar[Kind] = "weight"
    tags: ClassVar[Tags] = Tags(nonnegative=True, cpd_order=None)

    def derivation(self) -> Proof:
        return Unproven(self, "a smoothing weight, not a kernel")

    def __mul__(self, other: Any) -> Weight:
        from mercer.kernels.algebra import operators as algebra

        return algebra.multiply_weights(self, other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Weight:
        raise InvalidInput(
            "Weights multiply, but do not add", got=f"{self!r} + {other!r}", advice="Smooth with one of them at a time."
        )

    __radd__ = __add__

    def on(self, *columns: Any) -> Weight:
        """The weight on some columns of a table; products of these are product weights.

        >>> import mercer as mc
        >>> (mc.Epanechnikov(1.0).on(0) * mc.Uniform(2.0).on(1)).diag([[0.0, 0.0]])
        array([1.])
        """
        from mercer.kernels.algebra import operators as algebra

        return algebra.WeightOn(self, columns)
