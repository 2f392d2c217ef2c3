"""f = Σ cᵢ k(xᵢ, ·): the functions of a kernel's Hilbert space, as points and coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Array, Points, owned
from mercer.errors import InvalidInput
from mercer.kernels import costs
from mercer.kernels.base import Similarity
from mercer.kernels.sets import Intersection
from mercer.memory import budget, within
from mercer.rkhs.space import finite, hilbert, joined, same_points, streamed
from mercer.rkhs.tail import Tail
from mercer.validation import check_number


@dataclass(frozen=True)
class Pruning:
    """The report of `Expansion.prune`: points kept and dropped, and ‖f − pruned f‖/‖f‖ (the largest of all outputs)."""

    kept: int
    dropped: int
    change: float

    def __str__(self) -> str:
        return f"kept {self.kept} of {self.kept + self.dropped} points; ‖change‖ = {self.change:.2g}·‖f‖"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Expansion:
    """The function f = Σ cᵢ k(xᵢ, ·) + tail, or one function per column of the coefficients.

    A frozen value: `f(Z)` evaluates, `f + g`, `f - g`, `c * f`, `f / c` and `-f` are functions of the same space,
    `inner` and `norm` are its geometry. A smoothing weight has no Hilbert space: its sums evaluate and add, but have
    no norm.

    Parameters
    ----------
    kernel : Similarity
        The kernel, or a smoothing weight.
    X : array, frame or list of objects
        n points, or points that `kernel.prepare` returned. They are not copied.
    coef : array
        The coefficients, shape (n,), or (n, t) for t functions on the same points.
    tail : Tail or None
        The part outside the Hilbert space (an intercept, a polynomial), or None. Values and derivatives include it;
        lengths and inner products do not, so with a tail `norm` is the seminorm that was penalised.

    Attributes
    ----------
    kernel, coef, tail
        As given; the coefficients as a read-only copy.
    points : Points
        The prepared points.
    pruning : Pruning or None
        The report of `prune`, on a function that it returned; else None.

    Examples
    --------
    >>> import mercer as mc
    >>> f = mc.Expansion(mc.Polynomial(2), [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])      # x0² − x1²
    >>> f([[3.0, 2.0]])
    array([5.])
    >>> f.norm(), (2.0 * f - f).norm()
    (1.4142135623730951, 1.4142135623730951)
    >>> f.inner(mc.Expansion.at(f.kernel, [3.0, 2.0]))                # the reproducing property: ⟨f, k(x, ·)⟩ = f(x)
    5.0
    """

    kernel: Similarity
    points: Points
    coef: Array
    tail: Tail | None
    pruning: Pruning | None

    # `np.float64(2) * f` must reach __rmul__, not broadcast over the function as an object.
    __array_ufunc__ = None

    def __init__(self, kernel: Similarity, X: Any, coef: Any, tail: Tail | None = None) -> None:
        if not isinstance(kernel, Similarity):
            raise InvalidInput(
                "`kernel` must be a kernel", got=repr(kernel), advice="Pass mc.Gaussian(1.0), for instance."
            )
        points = kernel.prepare(X if isinstance(X, Points) else owned(X))
        for name, value in {"kernel": kernel, "points": points, "coef": _coefficients(coef, points.n)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "tail", tail)
        object.__setattr__(self, "pruning", None)

    @classmethod
    def at(cls, kernel: Similarity, x: Any) -> Self:
        """k(x, ·) for one object x: the feature vector of x as a function, and the functional that evaluates at x.

        >>> import mercer as mc
        >>> mc.Expansion.at(mc.Intersection(), {1, 2})([{2, 3}, {1, 2, 3}])
        array([1., 2.])
        """
        if isinstance(x, np.ndarray) and x.ndim == 1:
            return cls(kernel, x[None, :], [1.0])
        return cls(kernel, x if sp.issparse(x) else [x], [1.0])

    def __len__(self) -> int:
        """The number of points."""
        return self.points.n

    def __repr__(self) -> str:
        functions = "" if self.coef.ndim == 1 else f"{self.coef.shape[1]} functions, "
        tail = "" if self.tail is None else f", tail of degree {self.tail.basis.degree}"
        return f"<Expansion: {functions}{len(self)} points, {self.kernel!r}{tail}>"

    # -- values ---------------------------------------------------------------------------------------------------

    def __call__(self, Z: Any) -> Array:
        """f(z) for every point z, shape (m,) or (m, t): tile by tile, so that the n × m matrix is never stored."""
        points = self.kernel.prepare(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            values = streamed(self.kernel, points, self.points) @ self.coef
            if self.tail is not None:
                values = (values + self.tail(points)).astype(values.dtype, copy=False)
            return finite(values, "Values of f")

    def gradient(self, Z: Any) -> NDArray[np.float64]:
        """∇f(z) = Σ cᵢ ∂k(z, xᵢ)/∂z for every point z: shape (m, d), or (m, t, d) for t functions.

        >>> import mercer as mc
        >>> mc.Expansion(mc.Polynomial(2), [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]).gradient([[3.0, 2.0]])
        array([[ 6., -4.]])
        """
        points = self.kernel.prepare(Z)
        gradients = [
            self.kernel.input_gradient(points, np.broadcast_to(c, (points.n, len(self))), self.points)
            for c in self._columns().T
        ]
        gradient = gradients[0] if self.coef.ndim == 1 else np.stack(gradients, axis=1)
        return gradient if self.tail is None else gradient + self.tail.gradient(points)

    def weights(self, d: Any = None) -> NDArray[np.float64]:
        """w = Σ cᵢ phi(xᵢ), so that f(x) = wᵀphi(x): as many numbers as phi = `kernel.features(d)` has features.

        This is the parametric form of f, whose size does not grow with the points. If the feature map is infinite, like
        that of a Gaussian, f is non-parametric: it has no such form and needs its points (lecture 002).

        Parameters
        ----------
        d
            The argument of `kernel.features`: the number of columns, or the ground set of a kernel on sets. By default
            it is taken from the points.

        Returns
        -------
        array
            Shape (dimension,), or (dimension, t) for t functions.

        Examples
        --------
        >>> import mercer as mc
        >>> k = mc.Polynomial(2)
        >>> w = mc.Expansion(k, [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]).weights()
        >>> dict(zip(k.features(2).names, w.tolist()))
        {'x0²': 1.0, '√2·x0·x1': 0.0, 'x1²': -1.0}
        """
        return coordinates(
            self,
            d,
            "Only functions of a space with a finite feature map collapse to weights (a parametric model)",
            "This function is non-parametric: keep its points and evaluate f(Z), or approximate the kernel by "
            "mc.taylor_features or mc.fourier_features.",
        )

    # -- the vector space -----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expansion:
        if not isinstance(other, Expansion):
            return NotImplemented
        self._require_same_space(other)
        if self.coef.shape[1:] != other.coef.shape[1:]:
            raise InvalidInput(
                "Functions that are added must have the same number of outputs",
                got=f"coefficients of shapes {self.coef.shape} and {other.coef.shape}",
                advice="Add them column by column.",
            )
        with np.errstate(over="ignore"):
            tail = self.tail or other.tail
            if self.tail is not None and other.tail is not None:
                tail = self.tail.plus(other.tail)
            if same_points(self.points, other.points):
                return Expansion(self.kernel, self.points, self.coef + other.coef, tail)
            coef = np.concatenate([self.coef, other.coef])
        return Expansion(self.kernel, joined(self.points, other.points), coef, tail)

    def __sub__(self, other: Any) -> Expansion:
        return self + -other if isinstance(other, Expansion) else NotImplemented

    def __neg__(self) -> Expansion:
        return self._scaled(-self.coef, -1.0)

    def __mul__(self, factor: Any) -> Expansion:
        if not isinstance(factor, Real):
            return NotImplemented
        with np.errstate(over="ignore", invalid="ignore"):
            return self._scaled(self.coef * float(factor), float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Expansion:
        if not isinstance(divisor, Real):
            return NotImplemented
        if divisor == 0:
            raise InvalidInput(
                "A function must be divided by a number ≠ 0", got=divisor, advice="Pass another divisor."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return self._scaled(self.coef / float(divisor), 1.0 / float(divisor))

    def _scaled(self, coef: Array, factor: float) -> Expansion:
        return Expansion(self.kernel, self.points, coef, None if self.tail is None else self.tail.scaled(factor))

    # -- the Hilbert space ----------------------------------------------------------------------------------------

    def inner(self, other: Expansion) -> Any:
        """⟨f, g⟩ = Σᵢⱼ aᵢ bⱼ k(xᵢ, zⱼ), a number; for several functions one per column, shape (t,).

        A single function is paired with every column of the other. Computed in float64, tile by tile.

        >>> import mercer as mc
        >>> f, g = (mc.Expansion.at(mc.Linear(), x) for x in ([1.0, 2.0], [3.0, 4.0]))
        >>> f.inner(g)
        11.0
        """
        if not isinstance(other, Expansion):
            raise InvalidInput("`inner` needs another Expansion", got=type(other).__name__, advice="Call f.inner(g).")
        self._require_same_space(other)
        hilbert(self.kernel)
        left, right = self._columns(), other._columns()
        if left.shape[1] != right.shape[1] and 1 not in (left.shape[1], right.shape[1]):
            raise InvalidInput(
                "Inner products pair functions column by column, so both must have the same number of columns",
                got=f"coefficients of shapes {self.coef.shape} and {other.coef.shape}",
                advice="Select columns first.",
            )
        other_points = None if same_points(self.points, other.points) else other.points
        K = streamed(self.kernel, self.points, other_points, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            products = finite((left * (K @ right)).sum(axis=0), "An inner product")
        return float(products[0]) if self.coef.ndim == other.coef.ndim == 1 else products

    def norm(self) -> Any:
        """‖f‖ = √⟨f, f⟩ = √(cᵀKc), a number; for several functions one per column, shape (t,).

        >>> import mercer as mc
        >>> mc.Expansion(mc.Gaussian(1.0), [[0.0], [100.0]], [3.0, 4.0]).norm()
        5.0
        """
        scale = np.abs(self._columns()).max(axis=0)
        scale[scale == 0] = 1.0
        units = Expansion(self.kernel, self.points, self._columns() / scale)  # so that squares do not overflow
        with np.errstate(over="ignore"):
            norms = finite(scale * np.sqrt(np.maximum(units.inner(units), 0.0)), "A norm")
        return float(norms[0]) if self.coef.ndim == 1 else norms

    def prune(self, tol: Any = 0.0) -> Expansion:
        """f without the points that it hardly needs: ‖f − pruned f‖ ≤ tol·‖f‖, for every output.

        Points whose coefficients are zero are always dropped. With tol > 0 points are dropped in the order of their
        length |cᵢ|·‖k(xᵢ, ·)‖, smallest first, as long as the norm of the sum of the dropped terms stays within the
        bound; the other coefficients do not change. At least one point is kept. The report is the result's `pruning`.

        >>> import mercer as mc
        >>> f = mc.Expansion(mc.Gaussian(1.0), [[0.0], [9.0], [5.0]], [1.0, 1e-3, 0.0])
        >>> len(f.prune()), len(f.prune(0.01))
        (2, 1)
        >>> print(f.prune(0.01).pruning)
        kept 1 of 3 points; ‖change‖ = 0.001·‖f‖
        """
        check_number(tol, "tol", least=0, below=1, advice="Pass 0.01 for 1 % of ‖f‖.")
        keep, change = np.asarray(self._columns().any(axis=1)), 0.0
        if tol > 0:
            with np.errstate(over="ignore", invalid="ignore"):
                dropped, share = self._negligible(float(tol) * np.atleast_1d(self.norm()))
            keep[dropped], change = False, float(tol) * share
        kept = np.flatnonzero(keep) if keep.any() else np.array([0])
        coef = self.coef[kept] if keep.any() else 0 * self.coef[kept]
        pruned = Expansion(self.kernel, self.points.take(kept), coef, self.tail)
        object.__setattr__(pruned, "pruning", Pruning(len(kept), len(self) - len(kept), change))
        return pruned

    def _negligible(self, limit: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
        """Points whose part of f has a norm within the limit (one per output), and the share of it that they take."""
        C, bounded = self._columns(), limit > 0
        candidates = np.flatnonzero(~C[:, ~bounded].any(axis=1))
        C = C[:, bounded] / limit[bounded]
        lengths = np.abs(C).max(axis=1, initial=0.0) * np.sqrt(np.maximum(self.kernel.diagonal(self.points), 0.0))
        order = candidates[np.argsort(lengths[candidates], kind="stable")]
        squared, count = np.zeros(C.shape[1]), 0
        for span in threads.spans(len(order), costs.TILE_ROWS):
            past, now = order[: span.start], order[span]
            block = self.points.take(now)
            # ‖g + cⱼ k(xⱼ, ·)‖² − ‖g‖² = cⱼ (2 g(xⱼ) + cⱼ k(xⱼ, xⱼ)), g being the sum of the terms dropped before j.
            K = self.kernel(block, dtype=np.float64)
            g = np.tril(K, -1) @ C[now]
            if len(past):
                g += streamed(self.kernel, block, self.points.take(past), np.float64) @ C[past]
            sums = squared + np.cumsum(C[now] * (2 * g + C[now] * np.diagonal(K)[:, None]), axis=0)
            within_limit = int(np.argmin([*(sums <= 1.0).all(axis=1), False]))
            if within_limit:
                squared, count = sums[within_limit - 1], span.start + within_limit
            if within_limit < len(now):
                break
        return order[:count], float(np.sqrt(squared.max(initial=0.0)))

    def _columns(self) -> NDArray[np.float64]:
        """The coefficients as (n, t), in float64."""
        return self.coef.reshape(len(self.coef), -1).astype(np.float64, copy=False)

    def _require_same_space(self, other: Expansion) -> None:
        if self.kernel != other.kernel:
            raise InvalidInput(
                "Both functions must belong to the space of the same kernel",
                got=f"{self.kernel!r} and {other.kernel!r}",
                advice="Expand both in the same kernel.",
            )


# -- coordinates -------------------------------------------------------------------------------------------------------


def coordinates(f: Expansion, d: Any, required: str, advice: str) -> NDArray[np.float64]:
    """Σ cᵢ phi(xᵢ) in the finite feature map of the kernel; `required` and `advice` explain an infinite one."""
    try:
        phi = f.kernel.features(_inputs(f) if d is None else d)
    except TypeError:
        raise InvalidInput(
            "`d` must be given for points that are not vectors",
            got=f"d = {d!r} for {f.kernel!r}",
            advice="Pass the argument of kernel.features(d), such as the number of columns.",
        ) from None
    except InvalidInput as error:
        if f.kernel.tags.finite_rank:
            raise
        raise InvalidInput(required, got=error.got, advice=advice) from None
    C = f._columns()
    size = 8 * phi.dimension * C.shape[1]
    within(size, budget(), "One weight per feature", "Keep the points: evaluating f(Z) needs no features.")
    weights = np.zeros((phi.dimension, C.shape[1]))
    for span in threads.spans(len(f), max(1, 2**22 // phi.dimension)):
        weights += phi.transform(f.points.take(span).raw).T.astype(np.float64, copy=False) @ C[span]
    return weights[:, 0] if f.coef.ndim == 1 else weights


def _inputs(f: Expansion) -> Any:
    """The argument of `kernel.features`: the ground set of sets, the number of columns of vectors, else None."""
    if f.kernel.space == "sets":
        return frozenset().union(*f.points.encoded(Intersection()))
    try:
        return int(f.points.vectors().shape[1])
    except InvalidInput:
        return None


def _coefficients(coef: Any, n: int) -> Array:
    """A read-only float copy of shape (n,) or (n, t)."""
    required = f"Coefficients must be finite numbers, one per point: shape ({n},) or ({n}, t)"
    try:
        c = np.array(coef)
    except ValueError as error:
        raise InvalidInput(
            required, got=str(error), advice="Give every point the same number of coefficients."
        ) from None
    if c.dtype.kind not in "iuf":
        raise InvalidInput(required, got=f"dtype {c.dtype}", advice="Pass floats.")
    if c.ndim not in (1, 2) or len(c) != n or c.size == 0:
        raise InvalidInput(required, got=f"shape {c.shape}", advice=f"Pass {n} coefficients, one per point.")
    if c.dtype not in (np.float32, np.float64):
        c = c.astype(np.float64)
    if not np.isfinite(c).all():
        raise InvalidInput(required, got="NaN or infinity", advice="Rescale the data they were computed from.")
    c.flags.writeable = False
    return c
