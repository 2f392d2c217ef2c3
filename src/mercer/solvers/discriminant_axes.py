"""Discriminant axes: directions along which class means lie far apart, compared with the spread within classes.

With the scatter of the rows within their classes and the scatter of the class means,

    S_w = Σᵢ wᵢ (xᵢ − m_y)(xᵢ − m_y)ᵀ,      S_b = Σ_c n_c (m_c − m)(m_c − m)ᵀ,

the axes solve S_b a = λ A a, A = S_w + alpha I: at most k − 1 have λ > 0. They take two steps. Whitening makes the
within-class covariance A/n the identity; then the axes are the principal axes of the k class means.

`by_columns` whitens vectors by singular values. `by_scores` whitens in any Hilbert space, from ridge regression to
one-hot targets alone (optimal scoring): with G = Δᵀ(A + S_b)⁻¹Δ, where Δ holds the centred class means and N the class
sizes, the fitted functions have the class means ȳ + GN, and Woodbury's identity gives ΔᵀA⁻¹Δ = G(I − NG)⁻¹. So if
N^½GN^½ v = γ v, then λ = γ/(1 − γ), and N^(−½)v combines the k functions to the axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.solvers.base import Matrix
from mercer.solvers.primal import LARGEST, SMALLEST, tall_qr

Index = NDArray[np.int64]

EPS = float(np.finfo(np.float64).eps)
# A column whose values differ by less than this share of their size is constant: the rest is rounding.
CONSTANT = 32 * EPS
# The ratio of smallest to largest squared singular value down to which squaring leaves ten digits.
SQUARED = 1e-5
# The share of the class means outside the whitened space from which on it is reported.
OUTSIDE = 1e-8


@dataclass(frozen=True, eq=False)
class Axes:
    """z = (u − origin) D: coordinates with within-class covariance I, in which class means vary along the axes.

    Attributes
    ----------
    directions : array
        D, shape (p, r), one axis per column, the largest ratio first.
    origin : array
        The mean of the class means by their priors, shape (p,).
    means : array
        The class means in the coordinates z, shape (k, r); the last class is on the positive side.
    ratios : array
        λ, the scatter of the class means along each axis over the scatter within classes, shape (r,).
    """

    directions: Matrix
    origin: Matrix
    means: Matrix
    ratios: Matrix


def principal(whitening: Matrix, means: Matrix, priors: Matrix, n_components: int | None = None) -> Axes:
    """The principal axes of the class means after whitening.

    Parameters
    ----------
    whitening : array
        W, shape (p, q): u W has within-class covariance I.
    means : array
        Of the classes, shape (k, p).
    priors : array
        π, the weight of each mean, shape (k,).
    n_components : int or None
        The number of axes; by default all along which the means differ, at most k − 1.

    Examples
    --------
    >>> import numpy as np
    >>> axes = principal(np.eye(2), np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([0.5, 0.5]))
    >>> axes.means.T, axes.ratios
    (array([[-1.,  1.]]), array([1.]))
    """
    origin = priors @ means
    M = (means - origin) @ whitening
    _, S, Vt = np.linalg.svd(np.sqrt(priors)[:, None] * M, full_matrices=False)
    most = min(len(means) - 1, len(S)) if n_components is None else min(n_components, len(S))
    rank = max(1, int((S[:most] > max(M.shape) * EPS * S[0]).sum()))
    V = Vt[:rank].T
    V = V * np.where((M @ V)[-1] < 0, -1.0, 1.0)
    return Axes(whitening @ V, origin, M @ V, S[:rank] ** 2)


# -- vectors -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Whitened:
    """The within-class spread of vectors, and the map that makes it the identity.

    Attributes
    ----------
    whitening : array
        W, shape (d, q).
    means : array
        The class means, shape (k, d).
    half, ridge : array
        The covariance is halfᵀhalf + diag(ridge), of shapes (q, d) and (d,).
    rank : int
        Of the within-class covariance before any ridge.
    shrinkage : float
        s, as given or estimated.
    lost : bool
        Whether class means differ in directions without any spread, which `whitening` leaves out.
    """

    whitening: Matrix
    means: Matrix
    half: Matrix
    ridge: Matrix
    rank: int
    shrinkage: float
    lost: bool


def by_columns(
    X: Matrix, codes: Index, weights: Matrix | None, k: int, *, shrinkage: float | str, alpha: float
) -> Whitened:
    """Whiten vectors by the covariance ((1 − s) S_w + s T + alpha I)/W, W being the total weight.

    T is tr(S_w)/d I for a number s. For "auto" it is the diagonal of S_w, so that correlations are shrunk, whatever the
    units of the columns; a column that varies only between classes gets the largest distance of a class mean.

    If neither s nor alpha makes it regular, its pseudoinverse is used, for columns in units of their spread: directions
    in which no class spreads are left out.

    Parameters
    ----------
    X : array
        n rows, shape (n, d), float64.
    codes : Index
        The class number of each row, shape (n,).
    weights : array or None
        w, shape (n,), or None.
    k : int
        The number of classes.
    shrinkage : float or str
        s in [0, 1], or "auto" for `ledoit_wolf` in units of the spread of each column.
    alpha : float
        ≥ 0.
    """
    n, d = X.shape
    w = np.ones(n) if weights is None else weights
    sizes = np.bincount(codes, w, minlength=k)
    size = np.maximum(X.max(axis=0), -X.min(axis=0))
    if size.any() and not SMALLEST <= size.max() <= LARGEST:
        raise InvalidInput(
            f"The largest number in X must have a finite square that is not zero: {SMALLEST:.0e} to {LARGEST:.0e}",
            got=f"{size.max():.3g}",
            advice="Scale the columns (sklearn's StandardScaler).",
        )
    total = float(w.sum())
    middle = w @ X / total
    D = X - middle
    D[:, np.maximum(D.max(axis=0), -D.min(axis=0)) <= CONSTANT * size] = 0.0
    members = sp.csr_array((w, (codes, np.arange(n))), shape=(k, n))
    offsets = (members @ D) / sizes[:, None]
    D -= offsets[codes]
    D[:, np.maximum(D.max(axis=0), -D.min(axis=0)) <= CONSTANT * size] = 0.0
    D *= np.sqrt(w / total)[:, None]
    spread = np.sqrt(np.einsum("ij,ij->j", D, D))
    whole = np.abs(offsets).max(axis=0)
    unit = np.where(spread > 0, spread, np.where(whole > 0, whole, 1.0))
    if isinstance(shrinkage, str):
        s = ledoit_wolf(D / (np.sqrt(w / total)[:, None] * unit), w)
        target = unit**2
    else:
        s, target = float(shrinkage), np.full(d, float(spread @ spread) / d)
    ridge = s * target + alpha / total
    if (ridge > 0).all():
        whitening, half, rank, lost = _regularised(D, offsets, 1 - s, np.sqrt(ridge))
    else:
        whitening, half, rank, lost = _pseudo(D, offsets, unit)
    if isinstance(shrinkage, str):  # the unit of a constant column only avoids a division by zero
        ridge = np.where(np.maximum(spread, whole) > 0, ridge, alpha / total)
    return Whitened(whitening, middle + offsets, half, ridge, rank, s, lost)


def _regularised(D: Matrix, offsets: Matrix, share: float, unit: Matrix) -> tuple[Matrix, Matrix, int, bool]:
    """(share DᵀD + diag(unit²))^(−½) on the span of rows and class means, the only part that is ever used."""
    n, d = D.shape
    D, offsets, basis = D / unit, offsets / unit, None
    if d > n + len(offsets):
        basis = np.linalg.qr(np.vstack([D, offsets]).T)[0]
        D = D @ basis
    S, Vt = _singular(D, whole=True)
    values = np.zeros(len(Vt))
    values[: len(S)] = share * S**2
    W = Vt.T / np.sqrt(values + 1.0)
    half = np.sqrt(share) * S[:, None] * Vt[: len(S)]
    if basis is not None:
        W, half = basis @ W, half @ basis.T
    return W / unit[:, None], half * unit, _rank(S, max(n, d)), False


def _pseudo(D: Matrix, offsets: Matrix, unit: Matrix) -> tuple[Matrix, Matrix, int, bool]:
    """(DᵀD)^(−½) on the range of DᵀD, with columns in these units."""
    D = D / unit
    S, Vt = _singular(D)
    rank = _rank(S, max(D.shape))
    if rank == 0:
        raise InvalidInput(
            "Rows must differ within their classes: otherwise there is no covariance",
            got="no spread within any class",
            advice="Set alpha > 0, or add rows.",
        )
    V = Vt[:rank].T
    means = offsets / unit
    outside = float(np.linalg.norm(means - (means @ V) @ V.T))
    lost = outside > OUTSIDE * float(np.linalg.norm(means))
    return V / S[:rank] / unit[:, None], S[:, None] * Vt * unit, rank, lost


def _singular(D: Matrix, *, whole: bool = False) -> tuple[Matrix, Matrix]:
    """Singular values, descending, and right singular vectors as rows, for the whole space or the span of the rows."""
    if D.shape[0] > D.shape[1]:
        values, vectors = np.linalg.eigh(D.T @ D)
        if values[0] > SQUARED * values[-1]:
            return np.sqrt(values[::-1]), vectors[:, ::-1].T
        D = tall_qr(D)[1]
    _, S, Vt = sla.svd(D, full_matrices=whole, check_finite=False)
    return S, Vt


def _rank(S: Matrix, size: int) -> int:
    return int((size * EPS * S.max(initial=0.0) < S).sum())


def ledoit_wolf(D: Matrix, weights: Matrix) -> float:
    """The shrinkage s towards a multiple of I with the least expected squared error of the covariance.

    With S = Σ wᵢ dᵢdᵢᵀ/W and μ = tr S/d, s = (Σ wᵢ ‖dᵢdᵢᵀ − S‖²/W²)/‖S − μI‖², at most one.

    Parameters
    ----------
    D : array
        Deviations from the means, shape (n, d).
    weights : array
        w, how often each row counts, shape (n,).

    References
    ----------
    Ledoit and Wolf, A well-conditioned estimator for large-dimensional covariance matrices, 2004.
    """
    total, d = float(weights.sum()), D.shape[1]
    squares = np.einsum("ij,ij->i", D, D)
    trace = float(weights @ squares) / total
    root = np.sqrt(weights / total)[:, None] * D
    small = root.T @ root if d <= len(D) else root @ root.T
    norm = float(np.einsum("ij,ij->", small, small))  # ‖S‖²
    distance = norm - trace**2 / d
    error = (float(weights @ squares**2) / total - norm) / total
    if distance <= d * EPS * norm:
        return 1.0 if norm > 0 else 0.0
    return float(np.clip(error / distance, 0.0, 1.0))


# -- any Hilbert space -------------------------------------------------------------------------------------------------


def by_scores(residuals: Matrix, codes: Index, weights: Matrix | None, *, resolution: float) -> tuple[Matrix, Matrix]:
    """Whiten the k functions of a ridge regression (with intercept) to one-hot targets by (S_w + alpha I)/W.

    With μ the eigenvalues of N^(−½) Yᵀ(w∘R) N^(−½) beside the constant one, R being the residuals, the axes' ratios are
    λ = (1 − μ)/μ: nothing cancels if classes are far apart.

    Parameters
    ----------
    residuals : array
        R = Y − f(X), shape (n, k).
    codes, weights : Index, array or None
        As for `by_columns`.
    resolution : float
        1 − μ below this is rounding: the classes do not differ there.

    Returns
    -------
    tuple
        W, shape (k, q): f(x) W has within-class covariance I; and the class means of f, shape (k, k).
    """
    n, k = residuals.shape
    w = np.ones(n) if weights is None else weights
    members = sp.csr_array((w, (codes, np.arange(n))), shape=(k, n))
    sizes = members @ np.ones(n)
    missing = members @ residuals  # Yᵀ(w∘R)
    roots = np.sqrt(sizes)
    C = missing / roots[:, None] / roots
    others = sla.null_space(roots[None, :] / np.linalg.norm(roots))
    mu, E = np.linalg.eigh(others.T @ (C + C.T) @ others / 2)
    if mu[0] <= 0:
        raise InvalidInput(
            "`alpha` must be large enough to leave some spread within the classes",
            got=f"a fit that reproduces the labels to rounding (1 − {1 - mu[0]:.3g})",
            advice="Raise `alpha`.",
        )
    gamma = 1 - mu
    used = gamma > resolution
    used[0] = True
    gamma, mu, V = np.maximum(gamma[used], resolution), mu[used], others @ E[:, used]
    whitening = (V / roots[:, None]) * np.sqrt(sizes.sum() / (gamma * mu))
    return whitening, np.eye(k) - missing / sizes[:, None]


def covariance_within_classes(values: Matrix, codes: Index, weights: Matrix | None, k: int) -> Matrix:
    """The covariance of values (n, r) within their classes, shape (r, r)."""
    n = len(values)
    w = np.ones(n) if weights is None else weights
    members: Any = sp.csr_array((w, (codes, np.arange(n))), shape=(k, n))
    deviations = values - ((members @ values) / (members @ np.ones(n))[:, None])[codes]
    return np.asarray((w[:, None] * deviations).T @ deviations / w.sum())
