"""The laws that every kernel obeys, ready to run on yours.

`check_laws(k)` evaluates a kernel on sample points of its space and raises `LawBroken`, with the name of the law and
the figures, if one does not hold. The library's own kernels pass the same laws; a new class needs no registration.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mercer
from mercer import gram
from mercer.data.points import Points, take
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.validity.check import check
from mercer.kernels.validity.refute import refute
from mercer.kernels.vocabulary import is_known, space_named


class LawBroken(AssertionError):
    """A law that a kernel does not obey, with the figures that show it."""


def check_laws(kernel: Similarity, X: Any = None, Z: Any = None) -> list[str]:
    """Run every law that applies to `kernel` and return their names.

    Parameters
    ----------
    kernel : Similarity
        The similarity to test.
    X, Z : array, frame or list of objects
        Two data sets to test on; by default points are drawn for the kernel's space.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.testing.check_laws(mc.Gaussian(2.0))[:3]
    ['symmetry', 'diagonal', 'tiles']
    """
    if X is None:
        X, Z = sample(kernel, 9, seed=1), sample(kernel, 5, seed=2)
    elif Z is None:
        Z = take(X, slice(0, (len(Points(X)) + 1) // 2))
    obeyed = []
    for name, law in LAWS.items():
        if law(kernel, X, Z):
            obeyed.append(name)
    return obeyed


def sample(kernel: Similarity, n: int, *, seed: int = 0, scale: float = 1.0) -> Any:
    """n points from the kernel's space; vectors times `scale`."""
    space = space_named(kernel.space)
    points = space.sample(kernel, n, np.random.default_rng(seed))
    return scale * points if space.vectorial else points


# -- laws: each returns whether it applies, and raises if it is broken -----------------------------------------------


def _require(law: str, kernel: Similarity, error: Any, tolerance: float) -> None:
    error = float(np.max(error, initial=0.0))
    if not error <= tolerance:
        raise LawBroken(f"{law}: {kernel!r} is off by {error:.3g}, where {tolerance:.3g} is allowed")


def _rounding(*matrices: Any) -> float:
    """A few hundred roundings of the largest entry."""
    largest = max(float(np.max(np.abs(M), initial=0.0)) for M in matrices)
    return 400 * float(np.finfo(np.result_type(*matrices)).eps) * max(largest, 1e-30)


def symmetry(kernel: Similarity, X: Any, Z: Any) -> bool:
    K = kernel(X)
    if not (K == K.T).all():
        raise LawBroken(f"symmetry: k(X) of {kernel!r} is not exactly symmetric")
    KXZ, KZX = kernel(X, Z), kernel(Z, X)
    _require("symmetry", kernel, np.abs(KXZ - KZX.T), _rounding(KXZ))
    _require("symmetry", kernel, np.abs(K - kernel(X, take(X, slice(None)))), _rounding(K))
    return True


def diagonal(kernel: Similarity, X: Any, Z: Any) -> bool:
    K = kernel(X)
    _require("diagonal", kernel, np.abs(np.diagonal(K) - kernel.diag(X)), _rounding(K))
    return True


def tiles(kernel: Similarity, X: Any, Z: Any) -> bool:
    whole = kernel(X, Z)
    parts = np.vstack([kernel(take(X, slice(i, i + 2)), Z) for i in range(0, len(whole), 2)])
    _require("tiles", kernel, np.abs(whole - parts), _rounding(whole))
    return True


def operator(kernel: Similarity, X: Any, Z: Any) -> bool:
    K = kernel(X)
    V = np.random.default_rng(3).normal(size=(len(K), 2))
    tiled = gram.of(kernel, X, budget=1)
    _require("operator", kernel, np.abs(tiled @ V - K @ V), len(K) * _rounding(K))
    _require("operator", kernel, np.abs(gram.of(kernel, X).rows([0]) - K[:1]), _rounding(K))
    return True


def positive_semidefinite(kernel: Similarity, X: Any, Z: Any) -> bool:
    if not isinstance(kernel, Kernel) or (kernel.tags.cpd_order != 0 and not kernel.proof(dim=_columns(X)).valid):
        return False
    result = check(kernel, X)
    if not result.psd:
        raise LawBroken(f"positive semidefinite: {kernel!r} claims to be, but on data:\n{result}")
    if all(type(leaf).__module__.startswith("mercer.") for leaf in kernel.leaves):
        return True
    # The proof of a user's leaf is only a claim so far. Objects that no space draws are searched among those of X.
    given = X if not is_known(kernel.space) or (space_named(kernel.space).vectorial and _columns(X) is None) else None
    refutation = refute(kernel, dim=_columns(X), points=given, trials=300, seconds=10.0)
    if refutation.refuted:
        raise LawBroken(f"positive semidefinite: {refutation}")
    return True


def _columns(X: Any) -> int | None:
    return int(X.shape[1]) if hasattr(X, "shape") and len(X.shape) == 2 else None


def values(kernel: Similarity, X: Any, Z: Any) -> bool:
    same = kernel.replace()
    if same != kernel or hash(same) != hash(kernel):
        raise LawBroken(f"values: a rebuilt {kernel!r} is not equal to it")
    moved = kernel.with_theta(kernel.theta)
    _require("values", kernel, np.abs(moved.theta - kernel.theta), 1e-12)
    if len(kernel.bounds) != len(kernel.theta) or len(kernel.parameter_names) != len(kernel.theta):
        raise LawBroken(f"values: theta, bounds and names of {kernel!r} have different lengths")
    return True


def expression(kernel: Similarity, X: Any, Z: Any) -> bool:
    """repr and pickle rebuild every expression without Python functions and foreign classes."""
    if any(callable(v) or "<" in repr(v) for node in kernel.nodes for v in node.get_params(deep=False).values()):
        return False
    if not all(type(node).__module__.startswith("mercer.") for node in kernel.nodes):
        return False
    if eval(repr(kernel), {}, _PublicNames()) != kernel or pickle.loads(pickle.dumps(kernel)) != kernel:
        raise LawBroken(f"expression: {kernel!r} does not rebuild itself")
    return True


class _PublicNames(dict[str, Any]):
    """The names of the library, for evaluating a repr."""

    def __missing__(self, name: str) -> Any:
        return getattr(mercer, name)


def logarithm(kernel: Similarity, X: Any, Z: Any) -> bool:
    if not kernel.exact_log:
        return False
    pair = kernel.pair(X, Z)
    out = np.empty(pair.shape, pair.dtype)
    block = pair.block(slice(0, pair.shape[0]), slice(0, pair.shape[1]))
    kernel.log_tile(block, out)
    K = kernel(X, Z)
    relative = np.abs(np.exp(out) - K) / np.maximum(np.abs(K), float(np.finfo(K.dtype).tiny))
    _require("logarithm", kernel, relative, 1e-10 if K.dtype == np.float64 else 1e-3)
    return True


def parameter_gradient(kernel: Similarity, X: Any, Z: Any) -> bool:
    theta = kernel.theta
    if not len(theta):
        return False
    K = kernel(X, Z)
    G = np.random.default_rng(4).normal(size=K.shape)
    for p, name in enumerate(kernel.parameter_names):
        move = np.zeros(len(theta))
        move[p] = 1.0

        def along(h: float, move: Any = move) -> Any:
            return kernel.with_theta(theta + h * move)(X, Z)

        slope = _slope(along, 5e-5)
        smooth = np.abs(slope - _slope(along, 2e-5)) <= 1e-3 * np.abs(slope) + 1e-6
        weights = np.where(smooth, G, 0.0)  # a profile with a kink has no derivative there
        gradient = kernel.gradient(X, weights, Z)[p]
        allowed = 1e-5 * np.abs(weights * slope).sum() + 1e-9 * np.abs(G * K).sum() + 1e-12
        _require(f"gradient by {name}", kernel, abs(gradient - (weights * slope).sum()), allowed)
    return True


def _slope(f: Callable[[float], Any], h: float) -> Any:
    """f'(0) by central differences of fourth order."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def point_gradient(kernel: Similarity, X: Any, Z: Any) -> bool:
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or not hasattr(kernel, "input_gradient"):
        return False
    # A slope that jumps (compact weights, |x − z|) has no derivative to compare with where points coincide.
    G = np.random.default_rng(5).normal(size=(len(X), len(Z)))
    largest = np.abs(kernel(X, Z)).max()
    gradient = kernel.input_gradient(X, G, Z)
    for k in range(X.shape[1]):
        move = np.zeros(X.shape[1])
        move[k] = 1.0

        def along(h: float, move: Any = move) -> Any:
            return (G * kernel(X + h * move, Z)).sum(axis=1)

        slope = _slope(along, 1e-4)
        size = np.abs(slope).max() + np.abs(G).max() * largest
        _require("point gradient", kernel, np.abs(gradient[:, k] - slope), 1e-6 * size)
    return True


def feature_map(kernel: Similarity, X: Any, Z: Any) -> bool:
    columns = _columns(X)
    if not kernel.tags.finite_rank or columns is None or not isinstance(X, np.ndarray):
        return False
    phi = kernel.features(columns)
    if phi.dimension > 20_000:
        return False
    K = kernel(X, Z)
    _require("feature map", kernel, np.abs(phi(X) @ phi(Z).T - K), 10 * _rounding(K, kernel.diag(X)))
    return True


def enclosure(kernel: Similarity, X: Any, Z: Any) -> bool:
    if not isinstance(X, (np.ndarray, list)) or kernel.dtype_of(kernel.prepare(X)) != np.float64:
        return False
    points, others = (_exact(take(side, slice(0, 3))) for side in (X, Z))
    K = kernel(take(X, slice(0, 3)), take(Z, slice(0, 3)))
    for i, x in enumerate(points):
        for j, z in enumerate(others):
            bounds = kernel.enclose(x, z)
            outside = max(float(bounds.lower) - K[i, j], K[i, j] - float(bounds.upper), 0.0)
            _require("enclosure", kernel, outside, _rounding(K))
            _require("enclosure", kernel, float(bounds.upper - bounds.lower), 1e-9 * max(1.0, float(np.abs(K).max())))
    return True


def _exact(X: Any) -> list[Any]:
    return [tuple(map(float, row)) for row in X] if isinstance(X, np.ndarray) and X.ndim == 2 else list(X)


def single_precision(kernel: Similarity, X: Any, Z: Any) -> bool:
    if not isinstance(X, np.ndarray) or X.dtype != np.float64:
        return False
    K = kernel(X.astype(np.float32))
    wide: NDArray[np.float64] = kernel(X.astype(np.float32).astype(np.float64))
    if K.dtype == np.float32:
        _require("single precision", kernel, np.abs(K - wide), _rounding(K, kernel.diag(X).astype(np.float32)))
    return True


def cauchy_schwarz(kernel: Similarity, X: Any, Z: Any) -> bool:
    if not isinstance(kernel, Kernel) or not kernel.proof(dim=_columns(X)).valid:
        return False
    K = np.abs(kernel(X, Z))
    bound = np.sqrt(np.outer(kernel.diag(X), kernel.diag(Z)))
    _require("Cauchy-Schwarz", kernel, np.maximum(K - bound, 0.0), _rounding(bound))
    return True


LAWS: dict[str, Callable[[Similarity, Any, Any], bool]] = {
    "symmetry": symmetry,
    "diagonal": diagonal,
    "tiles": tiles,
    "positive semidefinite": positive_semidefinite,
    "operator": operator,
    "Cauchy-Schwarz": cauchy_schwarz,
    "values": values,
    "expression": expression,
    "logarithm": logarithm,
    "gradient": parameter_gradient,
    "point gradient": point_gradient,
    "feature map": feature_map,
    "enclosure": enclosure,
    "single precision": single_precision,
}

__all__ = ["LAWS", "LawBroken", "check_laws", "sample"]
