"""Pre-images: points whose feature vectors are nearest to given functions.

A function P of the Hilbert space, such as a projection, is in general not the feature vector of any point. Its
pre-image is the point x that comes nearest, the minimum of

    ‖phi(x) − P‖² − ‖P‖² = k(x, x) − 2 P(x).

For P = Σ γᵢ k(xᵢ, ·) and a radial kernel φ(‖x − z‖²) the gradient vanishes at a mean of the points, x = Σ mᵢxᵢ/Σ mᵢ
with mᵢ = −γᵢφ′(‖x − xᵢ‖²), and the fixed-point iteration of Mika et al. (1999) goes from mean to mean. It can fail if
some γ are negative: the sum may vanish, and the distance may grow. But its step is one of steepest descent, divided by
the curvature 4 Σ mᵢ. So here every kernel with derivatives takes steps of steepest descent, divided by the curvature
that was observed along the step before (Barzilai and Borwein 1988), and a step that does not lower the distance is
shortened until it does. On images of digits this reaches the minima of the fixed-point iteration, if that reaches them,
in the same number of steps or in a third of it; `Linear()` needs one step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels import costs
from mercer.kernels.base import Kernel
from mercer.kernels.custom import Precomputed
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.space import hilbert

Matrix = NDArray[np.float64]

# A step must lower the distance by this share of what the slope promises; otherwise it is shortened by this factor.
ARMIJO, SHORTER = 1e-4, 4.0
TINY = float(np.finfo(np.float64).tiny)
DIFFERENTIABLE = ("vectors", "table", "any")


def preimage(f: Expansion, start: Any, *, tol: float = 1e-8, max_iter: int = 300) -> Matrix:
    """The points whose feature vectors are nearest to m functions: argmin k(x, x) − 2 fⱼ(x) for each column j.

    A local minimum, not farther from fⱼ than the start. For `Linear()` it is the only one, Σ cᵢxᵢ.

    Parameters
    ----------
    f : Expansion
        m functions on vectors, coefficients (n, m) (or one, coefficients (n,)).
    start : array
        The points to start from, shape (m, d).
    tol : float
        Relative change of a point, in units of the spread of the function's points, at which to stop.
    max_iter : int
        The largest number of steps.

    Returns
    -------
    array
        Shape (m, d).

    Examples
    --------
    >>> import mercer as mc
    >>> f = mc.Expansion(mc.Linear(), [[1.0, 0.0], [0.0, 1.0]], [2.0, 3.0])
    >>> preimage(f, [[0.0, 0.0]]).round(12)
    array([[2., 3.]])
    """
    kernel = hilbert(f.kernel)
    centres = vectors(kernel, f.points)
    Gamma = np.ascontiguousarray(f._columns().T)
    x = np.array(start, dtype=np.float64)
    if x.shape != (len(Gamma), centres.shape[1]):
        raise InvalidInput(
            f"`start` must hold one point per function, shape {(len(Gamma), centres.shape[1])}",
            got=f"shape {x.shape}",
            advice="Start from the nearest of the function's points, for instance.",
        )
    for rows in threads.spans(len(x), max(1, memory.HELD // len(centres))):
        x[rows] = _Descent(kernel, centres, Gamma[rows]).run(x[rows], tol, max_iter)
    return x


def vectors(kernel: Kernel, points: Points) -> Matrix:
    """The points as a dense matrix, if the kernel has derivatives by them."""
    got = repr(kernel)
    if kernel.space in DIFFERENTIABLE and not any(isinstance(leaf, Precomputed) for leaf in kernel.leaves):
        try:
            return points.dense()
        except InvalidInput as error:
            got = error.got
    raise InvalidInput(
        "Pre-images need derivatives, and so points that are vectors",
        got=got,
        advice="Use inverse='nearest', which gives the nearest training point, of any kind.",
    )


def distances_less_norm(f: Expansion, x: Matrix) -> Matrix:
    """‖phi(xⱼ) − fⱼ‖² − ‖fⱼ‖² for one point of each column, shape (m,).

    >>> import mercer as mc
    >>> distances_less_norm(mc.Expansion(mc.Linear(), [[1.0], [3.0]], [0.5, 0.5]), np.array([[2.0]]))
    array([-4.])
    """
    kernel = hilbert(f.kernel)
    centres, Gamma = vectors(kernel, f.points), f._columns().T
    out = np.empty(len(x))
    for rows in threads.spans(len(x), max(1, memory.HELD // len(centres))):
        out[rows] = _Descent(kernel, centres, Gamma[rows]).distance(x[rows], slice(None))[0]
    return out


class _Descent:
    """Steepest descent from many points at once, each on its own distance."""

    def __init__(self, kernel: Kernel, centres: Matrix, Gamma: Matrix) -> None:
        self.kernel, self.points, self.Gamma = kernel, Points(centres), Gamma
        self.spread = float(np.sqrt(np.var(centres, axis=0).sum())) or 1.0

    def run(self, x: Matrix, tol: float, max_iter: int) -> Matrix:
        x, active = x.copy(), np.arange(len(x))
        value, noise = self.distance(x, active)
        slope = self.gradient(x, active)
        bend = self.curvature(x, slope)
        for _ in range(max_iter):
            step = -slope[active] / bend[active, None]
            lengths = np.linalg.norm(step, axis=1)
            promised = -bend[active] * lengths**2
            tried, rounding = self.tried(x[active] + step, active)
            lower = tried <= value[active] + ARMIJO * promised + np.maximum(noise[active], rounding)
            bend[active[~lower]] *= SHORTER
            good = active[lower]
            if len(good):
                x[good] += step[lower]
                value[good], noise[good] = tried[lower], rounding[lower]
                change = self.gradient(x[good], good) - slope[good]
                slope[good] += change
                squares = np.maximum(lengths[lower] ** 2, TINY)
                observed = np.einsum("ij,ij->i", step[lower], change) / squares
                # If the distance curves downwards, or hardly at all, the next step is longer.
                bend[good] = np.where(observed > 1e-3 * bend[good], observed, 0.5 * bend[good])
            active = active[lengths > tol * self.spread]
            if not len(active):
                break
        return x

    def distance(self, x: Matrix, rows: Any) -> tuple[Matrix, Matrix]:
        """k(x, x) − 2 P(x), and its rounding error."""
        points = Points(x)
        K = self.kernel(points, self.points, dtype=np.float64)
        K *= self.Gamma[rows]
        diagonal = self.kernel.diag(points).astype(np.float64)
        noise = 4 * np.finfo(np.float64).eps * (np.abs(diagonal) + 2 * np.abs(K).sum(axis=1))
        return diagonal - 2 * K.sum(axis=1), noise

    def tried(self, x: Matrix, rows: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
        """The same, infinite for points so far away that the kernel overflows."""
        try:
            return self.distance(x, rows)
        except InvalidInput:
            if len(x) == 1:
                return np.full(1, np.inf), np.zeros(1)
            half = len(x) // 2
            parts = self.tried(x[:half], rows[:half]), self.tried(x[half:], rows[half:])
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def gradient(self, x: Matrix, rows: Any) -> Matrix:
        """∂k(x, x) − 2 ∂P(x)."""
        slopes: Matrix = -2.0 * self.kernel.input_gradient(Points(x), self.Gamma[rows], self.points)
        if not self.kernel.tags.stationary:  # ∂k(x, x) = 2 ∂₁k(x, x), k being symmetric
            for span in threads.spans(len(x), costs.DIAGONAL_POINTS):
                points = Points(x[span])
                slopes[span] += 2.0 * self.kernel.input_gradient(points, np.eye(points.n), points)
        return slopes

    def curvature(self, x: Matrix, slope: Matrix) -> Matrix:
        """The curvature of the distance along its slope, > 0, by one short step."""
        sizes = np.linalg.norm(slope, axis=1)
        sizes[sizes == 0] = 1.0
        probe = -(1e-4 * self.spread / sizes)[:, None] * slope
        change = self.gradient(x + probe, slice(None)) - slope
        bend = np.abs(np.einsum("ij,ij->i", probe, change)) / np.maximum((probe**2).sum(axis=1), TINY)
        return np.maximum(bend, 0.1 * sizes / self.spread)  # no first step beyond ten times the spread
