"""Your own similarity: a Python function of two objects, an explicit feature map, or a matrix computed elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.frames import is_frame
from mercer.data.points import Array, Points, as_argument
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.kernels import costs, tiling
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive, show
from mercer.kernels.algebra.proof import Axiom, Proof, Unproven
from mercer.kernels.algebra.rowwise import UserFunction, require_map
from mercer.kernels.algebra.views import Mapped
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, Pair, squared_norms
from mercer.kernels.spaces import ANY, Space
from mercer.threads import spans, stopped, stripes
from mercer.validation import real_numbers

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class FromFunction(Kernel):
    """Any Python function f(x, z) of two objects, claimed to be symmetric and positive semidefinite.

    There is no proof of it: `mc.check` tests it on data, `mc.refute` searches for a counterexample.

    Parameters
    ----------
    f : function
        A function of two objects (rows, if the data set is a matrix) that returns a number.
    error : float
        The relative evaluation error of f that a refutation has to exceed, beside the effect of rounding the points.
        Pass a larger one for a function that works in float32 or by quadrature.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.FromFunction(lambda s, t: float(len(set(s) & set(t))))
    >>> k(["ab", "bc", "cd"])
    array([[2., 1., 0.],
           [1., 2., 1.],
           [0., 1., 2.]])
    """

    about: ClassVar[About] = About(
        "f(x, z), up to a relative error ε",
        "Any similarity of two objects that you can program; test it with mc.check and mc.refute.",
        "mc.FromFunction(lambda x, z: float(np.minimum(x, z).sum()))",
        arguments={"f": Argument(domain="Python function of two objects → number"), "error": Argument("ε")},
        in_python="build it in Python",
    )

    f: Callable[[Any, Any], Any]
    error: float = positive(1e-12, free=False)
    space: ClassVar[str] = ANY
    tags: ClassVar[Tags] = Tags(cpd_order=None)

    def check(self) -> None:
        if not callable(self.f):
            raise InvalidInput(
                "f must be a function of two objects",
                got=repr(self.f),
                advice="Pass a function such as lambda x, z: min(x, z).",
            )

    @property
    def encoding(self) -> Any:
        return "objects"

    def encode(self, X: Any) -> Any:
        if is_frame(X):
            X = np.asarray(X)
        if sp.issparse(X):
            X = sp.csr_array(X).toarray()
        X = as_argument(X)
        return X if isinstance(X, np.ndarray) else list(X)

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def tile(self, block: Block, out: Array) -> None:
        x, z = block.encoded(self)
        for i, a in enumerate(x):
            if stopped():
                return
            for j in range(i + 1 if block.diagonal else len(z)):
                out[i, j] = self.value(a, z[j])
        if block.diagonal:
            upper = np.triu_indices(len(out), 1)
            out[upper] = out.T[upper]

    def value(self, x: Any, z: Any) -> float:
        """f(x, z), checked to be a finite number."""
        value = self.f(x, z)
        try:
            if np.iscomplexobj(value):  # float() would keep the real part only
                raise TypeError
            number = float(value)
        except (TypeError, ValueError):
            raise InvalidInput(
                "f must return a real number",
                got=f"{type(value).__name__} for x = {x!r}, z = {z!r}",
                advice="Return a float.",
            ) from None
        if not np.isfinite(number):
            raise InvalidInput(
                "f must return a finite number",
                got=f"{number} for x = {x!r}, z = {z!r}",
                advice="Restrict f to points where it is defined.",
            )
        return number

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.array([self.value(x, x) for x in points.encoded(self)])

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import Interval, around

        vectors = [isinstance(p, tuple) and _numeric(p) for p in (x, z)]
        rows = [np.array([float(c) for c in p]) if vector else p for p, vector in zip((x, z), vectors)]
        value = self.value(rows[0], rows[1])
        return around(value, self.error) + Interval(-1, 1) * self._sensitivity(value, rows, all(vectors))

    def _sensitivity(self, value: float, rows: list[Any], vectors: bool) -> float:
        """By how much rounding the points once may change the value: much for x − z of large x and z."""
        if not vectors:
            return 0.0
        moved: list[float] = []
        for side in (0, 1):
            signs = np.where(np.arange(len(rows[side])) % 2, -np.inf, np.inf)
            for towards in (np.inf, -np.inf, signs, -signs):
                pair = list(rows)
                pair[side] = np.nextafter(rows[side], towards)
                with contextlib.suppress(InvalidInput):  # a step beyond the points where f is defined
                    moved.append(abs(self.value(pair[0], pair[1]) - value))
        return 16.0 * max(moved, default=np.inf)

    def derivation(self) -> Proof:
        return Unproven(self, "a Python function; mc.check(k, X) tests it on data, mc.refute(k) tries to refute it")

    def __repr__(self) -> str:
        more = "" if self._wrapped("error") == 1e-12 else f", error={self._wrapped('error')!r}"
        return f"FromFunction({show(self.f)}{more})"


def stated_errors(kernel: Similarity) -> list[float]:
    """The relative errors stated for the Python functions of an expression; empty if it has none."""
    return [leaf.error for leaf in kernel.leaves if isinstance(leaf, FromFunction)]


def _numeric(point: tuple[Any, ...]) -> bool:
    return all(hasattr(c, "__float__") for c in point)


class FromFeatures(Kernel):
    """⟨phi(x), phi(z)⟩ for an explicit feature map phi of data sets (a function X → Φ, or with `transform`).

    >>> import numpy as np, mercer as mc
    >>> rings = mc.FromFeatures(lambda X: np.column_stack([X, (X ** 2).sum(axis=1)]))     # lecture 000
    >>> rings([[1.0, 2.0]])
    array([[30.]])
    """

    about: ClassVar[About] = About(
        "φ(x)ᵀφ(z)", "Features that you compute yourself.", "mc.FromFeatures(np.square)", in_python="build it in Python"
    )

    phi: Any
    space: ClassVar[str] = ANY
    tags: ClassVar[Tags] = Tags(finite_rank=True)

    def check(self) -> None:
        require_map(self.phi)

    @property
    def _view(self) -> Mapped:
        return Mapped(UserFunction(self.phi))

    def touch(self, points: Points) -> None:
        points.view(self._view).vectors()

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        return np.dtype(points.view(self._view).vectors().dtype)

    def tile(self, block: Block, out: Array) -> None:
        block.view(self._view).dot(out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return squared_norms(points.view(self._view).vectors())

    def distance_tile(self, block: Block, out: Array) -> None:
        block.view(self._view).sqdist(out)

    def distance_size(self, points: Points) -> float:
        return 0.0

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def derivation(self) -> Proof:
        statement = "inner product of an explicit feature map"
        return Axiom(
            self,
            statement,
            condition=f"phi = {show(self.phi)}, which maps every point by itself",
            reference="Bishop 2006, (6.1)",
        )

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import FunctionMap

        return FunctionMap(self.phi, d=d)

    def __repr__(self) -> str:
        return f"FromFeatures({show(self.phi)})"


class Positions(Space):
    """Whole numbers: the positions of points in the matrices of an expression."""

    __slots__ = ()
    complete = True

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return rng.integers(0, self._size(kernel) or n, n)

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        size = self._size(kernel)
        if not size:
            raise InvalidInput(
                "A search for a counterexample needs the matrix", got=repr(kernel), advice="Use mc.check(K)."
            )
        return list(range(size))

    @staticmethod
    def _size(kernel: Similarity) -> int:
        """The number of points that all matrices have; 0 if the data set is the matrix."""
        return min((len(K) for leaf in kernel.leaves if (K := getattr(leaf, "K", None)) is not None), default=0)


POSITIONS = Positions("indices")


class Precomputed(Kernel):
    """A Gram matrix computed elsewhere.

    `Precomputed(K)` is a kernel on whole numbers, the positions in K: it splits, composes and restricts like any
    other. A bare `Precomputed()` follows scikit-learn's pairwise convention: the data set is the matrix itself, one row
    per point and one column per training point.

    >>> import mercer as mc
    >>> k = mc.Precomputed([[2.0, 1.0], [1.0, 2.0]])
    >>> k([1, 0]), k([0], [1])
    (array([[2., 1.],
           [1., 2.]]), array([[1.]]))
    """

    about: ClassVar[About] = About(
        "K[x, z]",
        "A matrix of similarities from elsewhere; the points are its rows.",
        "Precomputed([[2.0, 1.0], [1.0, 2.0]])",
        arguments={"K": Argument(domain="symmetric matrix, or None: then the data set is the matrix")},
    )

    K: Any = None
    space: ClassVar[str] = POSITIONS
    tags: ClassVar[Tags] = Tags(cpd_order=None)

    def check(self) -> None:
        if self.K is None:
            return
        narrow = getattr(self.K, "dtype", None) == np.float32
        try:
            entries = self.K.toarray() if sp.issparse(self.K) else self.K
            K: NDArray[Any] = np.array(real_numbers(entries), dtype=np.float32 if narrow else np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "K must be a matrix of real numbers",
                got=f"a {type(self.K).__name__} ({error})",
                advice="Compute k(x, z) as a float for every pair.",
            ) from None
        if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0:
            raise InvalidInput("K must be a square matrix", got=f"shape {K.shape}", advice="Pass one row per point.")
        if not np.isfinite(K).all():
            raise InvalidInput("K must be finite", got="NaN or infinity", advice="Check how it was computed.")
        _require_symmetric(K)
        if not np.array_equal(K, K.T):  # made exact, because its two halves would have different eigenvalues
            K = K / 2 + K.T / 2
        K.flags.writeable = False
        self._set(K=K)

    @property
    def pairwise(self) -> bool:
        return self.K is None

    @property
    def precision(self) -> np.dtype[Any]:
        return np.dtype(np.float64 if self.K is None else self.K.dtype)

    @property
    def encoding(self) -> Any:
        return "rows" if self.K is None else self

    def encode(self, X: Any) -> Any:
        if self.K is None:
            return as_vectors(X.toarray() if sp.issparse(X) else X)
        positions = np.asarray(X)
        if positions.ndim == 2 and positions.shape[1] == 1:
            positions = positions[:, 0]
        whole = (
            positions.ndim == 1 and positions.dtype.kind in "iuf" and bool((positions == positions.astype(int)).all())
        )
        if not whole or positions.min() < 0 or positions.max() >= len(self.K):
            raise InvalidInput(
                f"Points of Precomputed(K) must be positions 0 … {len(self.K) - 1} in K",
                got=f"{positions.dtype} array of shape {positions.shape}",
                advice="Pass np.arange(n) for the whole matrix, or use a bare Precomputed() on the matrix itself.",
            )
        return positions.astype(np.int64)

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        return np.dtype(points.encoded(self).dtype if self.K is None else self.K.dtype)

    def tile(self, block: Block, out: Array) -> None:
        x, z = block.encoded(self)
        if self.K is not None:
            out[...] = self.K[x].take(z, axis=1)  # faster than one index of pairs
            return
        if block.pair.same:
            block.pair.once("symmetric", lambda: self._require_symmetric_rows(block.pair.x))
        out[...] = x[:, self._columns(x.shape[1], block.pair.z)[block.cols]]

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        """K[x] W, where W has the rows of V at the positions z: whole rows of K, which need not be gathered."""
        if self.K is None or 2 * pair.z.n < len(self.K):  # for fewer columns, gathering reads less
            return super().multiply(pair, V)
        x, z = pair.encoded(self)
        W = np.zeros((len(self.K), V.shape[1]))
        np.add.at(W, z, V)
        W = W.astype(V.dtype)
        out = np.empty((len(x), V.shape[1]))

        def work(rows: slice, share: int) -> None:
            out[rows] = tiling.product(self.K[x[rows]].astype(pair.dtype, copy=False), W)

        stripes(len(x), work)
        return out

    def _require_symmetric_rows(self, points: Points) -> None:
        rows = points.encoded(self)
        _require_symmetric(rows[:, self._columns(rows.shape[1], points)])

    @staticmethod
    def _columns(width: int, z: Points) -> NDArray[np.int64]:
        """The columns of a pairwise matrix that belong to the points z."""
        if z.index is not None and width == z.among:
            return np.asarray(z.index)
        if width == z.n:
            return np.arange(z.n)
        raise InvalidInput(
            f"A precomputed matrix must have one column per training point, {z.n} here",
            got=f"{width} columns",
            advice="Pass k(X_test, X_train), rows for test points and columns for training points.",
        )

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        x = points.encoded(self)
        if self.K is not None:
            return self.K[x, x].astype(np.float64)
        return x[np.arange(points.n), self._columns(x.shape[1], points)].astype(np.float64)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        if self.K is None:
            return super().enclose(x, z)
        positions = [int(p[0]) if isinstance(p, (tuple, list)) else int(p) for p in (x, z)]
        return exactly(float(self.K[positions[0], positions[1]]))

    def derivation(self) -> Proof:
        if self.K is None:
            return Unproven(self, "a matrix that comes with the data; mc.check(K) tests it")
        statement = "every symmetric matrix without negative eigenvalues is a Gram matrix"
        eps, values = float(np.finfo(self.K.dtype).eps), _relative_eigenvalues(self.K.astype(np.float64))
        lowest, rounded = float(values[0]), len(self.K) * eps * float(values[-1])
        if lowest > rounded:
            return Axiom(self, statement, condition=f"smallest eigenvalue {lowest:.3g} > 0 for a unit diagonal")
        condition = f"smallest eigenvalue {lowest:.3g} ≥ −{rounded:.1g} for a unit diagonal"
        if not lowest >= -rounded:
            size = float(np.abs(self.K).max())
            values = np.linalg.eigvalsh(
                self.K.astype(np.float64) / size
            )  # scaled, because those of entries near 1e308 overflow
            smallest, within = float(values[0]) * size, len(values) * eps * float(np.abs(values).max()) * size
            if smallest < -within:
                return Unproven(self, f"not a kernel: K has the eigenvalue {smallest:.6g} < 0; mc.repair(K) repairs it")
            condition = f"smallest eigenvalue {smallest:.3g} ≥ −{within:.1g}"
        return Axiom(
            self,
            statement,
            condition=f"{condition}: K is a Gram matrix up to the rounding of its entries",
            rounding=max(-lowest, eps) / float(np.sqrt(eps)),
        )

    def __repr__(self) -> str:
        return "Precomputed()" if self.K is None else f"Precomputed({show(self.K)})"


def bare_precomputed(required: str) -> InvalidInput:
    """The error if values are required that the matrix of a bare `Precomputed()` does not hold."""
    return InvalidInput(
        required,
        got="bare Precomputed()",
        advice="Use Precomputed(K) with the matrix of all points, and positions in it as X.",
    )


def _relative_eigenvalues(K: NDArray[np.float64]) -> NDArray[np.float64]:
    """The eigenvalues of K with its points scaled to K(i, i) = 1; −∞ if that would take an infinite factor.

    The rules of the algebra (products, `rescale`, `normalize`) may scale points by any factor: an eigenvalue that is
    rounding beside the largest entry of K need not be rounding beside the entries of a small point.
    """
    used = np.diagonal(K) > 0
    if K[~used].any():
        return np.array([-np.inf])
    sizes = np.sqrt(np.diagonal(K)[used])
    scaled = K[np.ix_(used, used)] / sizes[:, None] / sizes
    return np.asarray(np.linalg.eigvalsh(scaled) if used.any() else [0.0], dtype=np.float64)


def _require_symmetric(K: Array) -> None:
    """Compare tiles with their mirror images: both stay in the cache, and no second matrix is needed."""
    allowed = 1e3 * float(np.finfo(K.dtype).eps) * max(K.max(initial=0.0), -K.min(initial=0.0))
    parts = spans(len(K), costs.TILE_ROWS)
    for i, rows in enumerate(parts):
        for columns in parts[: i + 1]:
            if np.abs(K[rows, columns] - K[columns, rows].T).max() > allowed:
                raise InvalidInput("K must be symmetric", got="an asymmetric matrix", advice="Pass (K + K.T)/2.")
