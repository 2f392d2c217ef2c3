"""Samples as points of the Hilbert space: their means, the distance of two means (MMD), and dependence (HSIC).

A distribution P has the mean embedding mu_P = E k(x, ·), with ⟨f, mu_P⟩ = E f(x) for every f of the space. For a
characteristic kernel, such as the Gaussian, no two distributions share a mean embedding, so that ‖mu_P − mu_Q‖ is 0
only if P = Q, and the same distance between a joint distribution and the product of its marginals measures dependence.
Both statistics depend on the kernel through squared distances in feature space only (see `geometry`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import gram, memory, threads
from mercer.errors import InvalidInput
from mercer.kernels import tiling
from mercer.kernels.base import Kernel
from mercer.kernels.block import Block, Pair
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.geometry import SquaredDistance
from mercer.rkhs.space import finite, hilbert, joined, streamed
from mercer.validation import check_whole_number, generator


@dataclass(frozen=True, eq=False)
class KernelTest:
    """A statistic of two samples and, with permutations, its p-value.

    Attributes
    ----------
    name : str
        "MMD²" or "HSIC".
    statistic : float
        The chosen estimate, `unbiased` or `biased`.
    biased, unbiased : float, float or None
        Both estimates; the unbiased one is None if there are too few points for it.
    p_value : float or None
        (1 + #{permuted ≥ observed})/(1 + B) for B permutations, a valid p-value for every B; None without any.
    permuted : array
        The statistic under each permutation, shape (B,).
    hypothesis : str
        The hypothesis that a small p-value speaks against.
    """

    name: str
    statistic: float
    biased: float
    unbiased: float | None
    p_value: float | None
    permuted: NDArray[np.float64] = field(repr=False)
    hypothesis: str = field(repr=False)

    def __str__(self) -> str:
        fair = "not defined" if self.unbiased is None else f"{self.unbiased:.4g}"
        text = f"{self.name} = {self.statistic:.4g} (biased {self.biased:.4g}, unbiased {fair})"
        if self.p_value is None:
            return text
        return f"{text}\np = {self.p_value:.3g} by {len(self.permuted)} permutations, if {self.hypothesis}"


# -- means ------------------------------------------------------------------------------------------------------------


def mean_embedding(kernel: Kernel, X: Any, weights: Any = None) -> Expansion:
    """The mean of the sample as a function: mu = (1/n) Σ k(xᵢ, ·), or Σ wᵢ k(xᵢ, ·)/Σ wᵢ.

    ⟨f, mu⟩ is the mean of f over the sample, for every f of the space.

    Parameters
    ----------
    kernel : Kernel
        A kernel on any objects.
    X : array, frame or list of objects
        n points.
    weights
        One number ≥ 0 per point, not all zero; a weight of 2 is a point that occurs twice.

    Examples
    --------
    >>> import mercer as mc
    >>> mu = mc.mean_embedding(mc.Linear(), [[1.0], [2.0], [6.0]])
    >>> mu([[1.0]]), mu.inner(mc.Expansion.at(mc.Linear(), [10.0]))
    (array([3.]), 30.0)
    """
    points = hilbert(kernel).prepare(X)
    if weights is None:
        return Expansion(kernel, points, np.full(points.n, 1.0 / points.n))
    w = Expansion(kernel, points, weights).coef.astype(np.float64)
    if w.ndim != 1 or (w < 0).any() or not w.any():
        raise InvalidInput(
            "`weights` must be one number ≥ 0 per point, not all zero",
            got=f"shape {w.shape}, from {w.min():.3g} to {w.max():.3g}",
            advice="Leave out `weights` for the plain mean.",
        )
    w /= w.max()
    return Expansion(kernel, points, w / w.sum())


# -- two samples ------------------------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def mmd(
    kernel: Kernel, X: Any, Y: Any, *, unbiased: bool = True, permutations: int = 0, random_state: Any = 0
) -> KernelTest:
    """The maximum mean discrepancy of two samples: MMD² = ‖mu_X − mu_Y‖², and a permutation test of equality.

    MMD is the largest difference E f(x) − E f(y) over all functions with ‖f‖ ≤ 1. Estimates, from n and m points:

    * biased, the squared distance of the two sample means: mean k(xᵢ, xⱼ) + mean k(yᵢ, yⱼ) − 2 mean k(xᵢ, yⱼ) ≥ 0,
    * unbiased: the first two means over i ≠ j only. It is 0 on average, and often negative, if P = Q.

    Parameters
    ----------
    kernel : Kernel
        A kernel on any objects; a characteristic one (Gaussian, Laplacian, Matern) sees every difference.
    X, Y : array, frame or list of objects
        Two samples of at least 2 points.
    unbiased : bool
        Whether the unbiased estimate is the statistic.
    permutations : int
        How often the samples are pooled and split anew for the p-value; 999 is a good number.
    random_state : int, Generator or None
        A seed or a NumPy generator.

    References
    ----------
    Gretton et al., A kernel two-sample test, JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> x, y = np.linspace(0, 1, 40)[:, None], np.linspace(0.5, 1.5, 30)[:, None]
    >>> print(mc.mmd(mc.Gaussian(0.5), x, y, permutations=199))
    MMD² = 0.35 (biased 0.3648, unbiased 0.35)
    p = 0.005 by 199 permutations, if both samples have the same distribution
    """
    x, y = hilbert(kernel).prepare(X), kernel.prepare(Y)
    _require_enough(min(x.n, y.n), 2, "Each sample of MMD")
    B, rng = _permutations(permutations, random_state)
    squared, both = SquaredDistance(kernel), joined(x, y)
    D = (gram.of if B else streamed)(squared, both, dtype=np.float64)

    # Columns of A are 1 on one sample and 0 on the other: Σ over pairs within the first is aᵀDa, and the sums within
    # the second and across follow from the row sums, since Σ over all pairs does not change.
    first = (np.arange(both.n) < x.n).astype(np.float64)
    ones = D @ np.column_stack([first, np.ones(both.n)])
    inside, row_sums = np.array([first @ ones[:, 0]]), ones[:, 1]
    across = np.array([first @ row_sums]) - inside
    chunk = max(1, memory.budget() // (64 * both.n))
    for start in range(0, B, chunk):
        A = rng.permuted(np.tile(first, (min(chunk, B - start), 1)), axis=1).T
        within_a = np.einsum("ij,ij->j", A, D @ A)
        inside, across = np.append(inside, within_a), np.append(across, row_sums @ A - within_a)
    rest = row_sums.sum() - 2 * across - inside

    n, m = x.n, y.n
    biased = across / (n * m) - 0.5 * (inside / n**2 + rest / m**2)
    fair = across / (n * m) - 0.5 * (inside / (n * (n - 1)) + rest / (m * (m - 1)))
    rounding = both.n * np.finfo(np.float64).eps * np.abs(row_sums).sum() / (n * m)
    return _result("MMD²", biased, fair, unbiased, rounding, "both samples have the same distribution")


# -- dependence -------------------------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def hsic(
    kernel_x: Kernel,
    X: Any,
    kernel_y: Kernel,
    Y: Any,
    *,
    unbiased: bool = True,
    permutations: int = 0,
    random_state: Any = 0,
) -> KernelTest:
    """The Hilbert-Schmidt independence criterion of pairs (xᵢ, yᵢ), and a permutation test of independence.

    HSIC is the squared norm of the covariance of phi(x) and psi(y), 0 only for independent variables if both
    kernels are characteristic. With Gram matrices K and L, and K̃, L̃ the same with a diagonal of zeros:

    * biased: tr(KHLH)/n² ≥ 0, H = I − 11ᵀ/n,
    * unbiased: [tr(K̃L̃) + 1ᵀK̃1·1ᵀL̃1/((n−1)(n−2)) − 2/(n−2)·1ᵀK̃L̃1]/(n(n−3)), from 4 points on.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel
        Kernels on any objects, not necessarily of the same kind.
    X, Y : array, frame or list of objects
        n ≥ 2 points each; xᵢ and yᵢ were observed together.
    unbiased : bool
        Whether the unbiased estimate is the statistic.
    permutations : int
        How often Y is shuffled against X for the p-value; 999 is a good number.
    random_state : int, Generator or None
        A seed or a NumPy generator.

    References
    ----------
    Gretton et al., Measuring statistical dependence with Hilbert-Schmidt norms, ALT 2005.
    Song et al., Supervised feature selection via dependence estimation, ICML 2007.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> bool(np.isclose(np.corrcoef(x[:, 0], x[:, 0] ** 2)[0, 1], 0.0))                # no correlation, but ...
    True
    >>> mc.hsic(mc.Gaussian(0.5), x, mc.Gaussian(0.5), x ** 2, permutations=199).p_value
    0.005
    """
    x, y = hilbert(kernel_x).prepare(X), hilbert(kernel_y).prepare(Y)
    if x.n != y.n:
        raise InvalidInput(
            "X and Y of HSIC must be observed together, point by point",
            got=f"{x.n} and {y.n} points",
            advice="Use mc.mmd for two samples that are not paired.",
        )
    n = x.n
    _require_enough(n, 4 if unbiased else 2, "The unbiased HSIC" if unbiased else "HSIC")
    B, rng = _permutations(permutations, random_state)
    square_x, square_y = SquaredDistance(kernel_x), SquaredDistance(kernel_y)
    pair_x, pair_y = square_x.pair(x, dtype=np.float64), square_y.pair(y, dtype=np.float64)
    d, e, rows = _row_sums(square_x, pair_x, square_y, pair_y)
    products, alongs = np.full(B + 1, rows.sum()), np.full(B + 1, d @ e)
    shuffles = [rng.permutation(n) for _ in range(B)]
    alongs[1:] = [d @ e[order] for order in shuffles]
    if B and 16 * n * n <= memory.budget():
        D, E = (square.fill(pair, np.empty((n, n))) for square, pair in ((square_x, pair_x), (square_y, pair_y)))

        def shuffle(span: slice, share: int) -> None:
            for b in range(span.start, span.stop):
                order = shuffles[b]
                parts = (np.vdot(D[r], np.take(E[order[r]], order, axis=1)) for r in threads.spans(n, 64))
                products[b + 1] = sum(parts)

        threads.stripes(B, shuffle, rows=1)
    else:  # too large to store: every permutation computes the tiles anew
        for b, order in enumerate(shuffles):
            permuted = square_y.pair(y.take(order), dtype=np.float64)
            products[b + 1] = _row_sums(square_x, pair_x, square_y, permuted)[2].sum()

    # With K = ½(a1ᵀ + 1aᵀ − D²) both estimates are ¼ of the same expression in the squared distances.
    total = d.sum() * e.sum()
    biased = (products - 2 / n * alongs + total / n**2) / (4 * n**2)
    fair = None
    if n >= 4:
        fair = (products - 2 / (n - 2) * alongs + total / ((n - 1) * (n - 2))) / (4 * n * (n - 3))
    rounding = n * np.finfo(np.float64).eps * abs(total) / n**4
    return _result("HSIC", biased, fair, unbiased, rounding, "x and y are independent")


def _row_sums(square_x: SquaredDistance, pair_x: Pair, square_y: SquaredDistance, pair_y: Pair) -> NDArray[np.float64]:
    """The row sums of D, of E and of their entrywise product, shape (3, n), without storing any of them."""
    totals = threads.Totals((3, pair_x.shape[0]))

    @np.errstate(over="ignore")
    def work(block: Block, share: int) -> None:
        D, E = block.scratch(), block.scratch()
        square_x.tile(block, D)
        square_y.tile(pair_y.block(block.rows, block.cols, block.workspace), E)
        for total, tile in zip(totals[share], (D, E, D * E)):
            total[block.rows] += tile.sum(axis=1)
            if not block.diagonal:
                total[block.cols] += tile.sum(axis=0)

    tiling.each(pair_x, work)
    return totals.sum()


# -- shared -----------------------------------------------------------------------------------------------------------


def _result(
    name: str,
    biased: NDArray[np.float64],
    fair: NDArray[np.float64] | None,
    unbiased: bool,
    rounding: float,
    hypothesis: str,
) -> KernelTest:
    """A result from statistics, the observed one first, then the permuted ones. An equal one counts as reached."""
    statistics = finite(fair if unbiased and fair is not None else biased, name)
    observed, permuted = statistics[0], statistics[1:]
    permuted.flags.writeable = False
    reached = int((permuted >= observed - rounding).sum())
    return KernelTest(
        name=name,
        statistic=float(observed),
        biased=float(biased[0]),
        unbiased=None if fair is None else float(fair[0]),
        p_value=(1 + reached) / (1 + len(permuted)) if len(permuted) else None,
        permuted=permuted,
        hypothesis=hypothesis,
    )


def _require_enough(n: int, least: int, what: str) -> None:
    if n < least:
        raise InvalidInput(f"{what} needs at least {least} points", got=n, advice="Collect more points.")


def _permutations(permutations: Any, random_state: Any) -> tuple[int, np.random.Generator]:
    return check_whole_number(permutations, "permutations", least=0, such_as=999), generator(random_state)
