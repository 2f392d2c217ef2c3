"""Kernel principal component analysis: the directions of largest variance in feature space."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import gram, memory, threads
from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.gram.centers import choose_centers
from mercer.kernels.custom import bare_precomputed
from mercer.kernels.vectors.median import median_gaussian
from mercer.memory import budget as memory_budget
from mercer.models.base import (
    KernelEstimator,
    Matrix,
    check_columns,
    outside,
    resolve_kernel,
    training_points,
    weights,
)
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.solver_parameters import check_solver_parameters, requested_solver
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.preimage import distances_less_norm, preimage, vectors
from mercer.rkhs.space import same_points
from mercer.rkhs.tail import Tail
from mercer.solvers import principal as leading
from mercer.solvers.eigen import Eigendecomposition
from mercer.solvers.nystrom import default_centers
from mercer.solvers.principal import Principal
from mercer.validation import check_choice, check_number, check_numbers, check_whole_number, generator

INVERSES = ("distance", "regression", "nearest")
NEIGHBOURS = 5
"""The search for a pre-image starts from the nearest point, or from the mean of this number of nearest points."""
ROWS, PENALTIES = 1000, tuple(10.0**e for e in range(-8, 2))
"""The number of rows whose leave-one-out error chooses the penalty of the map from scores to points; its candidates."""
TIE = 1e-6
"""Scores within this share of the largest count as equal: the first of them decides the sign."""


@dataclass(eq=False, repr=False)
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):  # type: ignore[misc]
    """Principal components in feature space: orthonormal functions f₁, f₂, … whose values vary most over the points.

    fⱼ = Σ cᵢⱼ k(xᵢ, ·) with eigenvectors of the centred Gram matrix as coefficients; the scores of a point are
    fⱼ(x) − ⟨fⱼ, μ⟩ = ⟨fⱼ, phi(x) − μ⟩, where μ is the mean of the training points in feature space. With `Linear()`
    this is PCA. The sign of a component makes its largest score positive.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    n_components : int or None
        The number of components; None takes all with a variance above rounding.
    inverse : str
        How `inverse_transform` finds points for scores. "distance" takes the point whose feature vector is nearest, the
        pre-image: there is nothing to train or to choose, and it is exact for `Linear()`. "regression" is kernel ridge
        regression from scores to points: one product of matrices, also for kernels without derivatives. "nearest" takes
        the nearest of the training points, which may be any objects.
    solver : str
        "auto", "eigen" (all eigenvalues), "krylov" (the leading ones, by products with K) or "nystrom". "auto" takes
        the fastest exact one; if K does not fit into memory, each product computes it again; for very many points, or
        if centres are named, it takes Nyström centres. `status_` says which and why.
    n_centers, centers
        For Nyström: their number, and "uniform", "kmeans", "pivoted" or the points themselves.
    tol : float
        The relative residual ‖Gu − λu‖/λ at which "krylov" stops; eigenvalues are at least as exact.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, or half of the available memory.
    random_state : int
        Seed of random starts and centres.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    function_ : Expansion
        The t components as an `Expansion`, orthonormal in the Hilbert space; its values are the scores.
    mean_
        The mean μ of the points in feature space, an `Expansion` (with Nyström: its projection on the centres).
    dual_coef_ : array
        The coefficients of the components, shape (n, t).
    eigenvalues_ : array
        Eigenvalues of the centred Gram matrix, descending, shape (t,): the sums of the squared scores.
    explained_variance_
        The variance of every score, eigenvalues over n − 1.
    explained_variance_ratio_
        Its share of the whole variance in feature space, which is known without the other eigenvalues: (1/n) Σ k(xᵢ,
        xᵢ) − ‖μ‖².
    n_components_, solver_, status_, residual_
        Their number, how they were computed, and the largest ‖Gu − λu‖/λ.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([ring, 3 * ring])                                            # two rings around the origin
    >>> scores = mc.KernelPCA(mc.Polynomial(2), n_components=3).fit_transform(X)
    >>> bool(scores[60:, 2].max() < 0 < scores[:60, 2].min())                      # the third one is the radius
    True
    >>> model = mc.KernelPCA(mc.Gaussian(0.5), n_components=11).fit(X)
    >>> near = model.inverse_transform(model.transform([[1.3, 0.0], [0.0, 2.6]]))   # back to the rings
    >>> np.linalg.norm(near, axis=1).round(1)
    array([1., 3.])
    """

    kernel: Any = None
    _: KW_ONLY
    n_components: int | None = None
    inverse: str = "distance"
    solver: str = "auto"
    n_centers: int | None = None
    centers: Any = "uniform"
    tol: float = 1e-8
    budget: Any = None
    random_state: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of n points X; y is not used.

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. (Except in the random choice of Nyström centres.)
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """`fit` and the scores of X, shape (n, t), without computing K again if it is stored."""
        whole = self._fit(X, sample_weight)
        if not whole:
            return self.transform(X)
        return (self._values - self._offsets).astype(self.function_.coef.dtype, copy=False)

    def transform(self, X: Any) -> NDArray[Any]:
        """The scores of m points, shape (m, t): the coordinates of phi(x) − μ along the components."""
        points = self._queries(X)
        return self.function_(points)

    def inverse_transform(self, X: Any) -> Any:
        """Points for scores of shape (m, t), by the method `inverse`: shape (m, d); or training objects, for "nearest".

        The leading components of a noisy point hold little of its noise, so that `inverse_transform(transform(X))`
        removes most of it.
        """
        check_is_fitted(self)
        Z = self._scores(X)
        self._check_parameters()
        if self.inverse == "regression":
            if not hasattr(self, "_regression"):
                required = "inverse='regression' learns its map in `fit`"
                raise InvalidInput(required, got="a model fitted with another `inverse`", advice="Fit the model again.")
            return self._regression.predict(Z)
        points, coef = self._all.points, self._all.coef.astype(np.float64)
        if self.inverse == "nearest":
            return take(points.raw, self._nearest(Z, 1)[:, 0])
        centres = vectors(self.kernel_, points)
        preimages = np.empty((len(Z), centres.shape[1]))
        for rows in threads.spans(len(Z), max(1, memory.HELD // points.n)):
            targets = Expansion(self.kernel_, points, coef @ np.vstack([Z[rows].T, np.ones(len(Z[rows]))]))
            near = self._nearest(Z[rows], min(NEIGHBOURS, points.n))
            starts = centres[near[:, 0]], centres[near].mean(axis=1)
            better = distances_less_norm(targets, starts[1]) < distances_less_norm(targets, starts[0])
            preimages[rows] = preimage(targets, np.where(better[:, None], starts[1], starts[0]))
        return preimages.astype(self.function_.coef.dtype, copy=False)

    def reconstruction_error(self, X: Any) -> NDArray[Any]:
        """‖phi(x) − μ‖² − Σ scores²: the squared distance of phi(x) to the components' plane through μ, shape (m,).

        Points unlike all training points are far from it. It is exact up to the rounding of k(x, x).

        >>> import numpy as np, mercer as mc
        >>> X = np.column_stack([np.arange(5.0), np.arange(5.0)])                         # points of a line
        >>> mc.KernelPCA(mc.Linear(), n_components=1).fit(X).reconstruction_error([[1.0, 1.0], [2.0, 0.0]]).round(9)
        array([0., 2.])
        """
        points = self._queries(X)
        if self.kernel_.pairwise and not same_points(points, self.function_.points):
            raise bare_precomputed(
                "A distance needs k(z, z) of the queries, which a matrix of queries against training points lacks"
            )
        values = self._all(points).astype(np.float64)
        scores, mean = values[:, :-1] - self._offsets, values[:, -1]
        squared = self.kernel_.diag(points).astype(np.float64) - 2 * mean + self._mean_square
        squared -= np.einsum("ij,ij->i", scores, scores)
        return np.maximum(squared, 0.0).astype(self.function_.coef.dtype, copy=False)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, sample_weight: Any) -> bool:
        """Fit; whether the components are functions of all rows."""
        self._check_parameters()
        self.__dict__.pop("_regression", None)  # left by an earlier fit
        points = training_points(X)
        w = weights(sample_weight, points.n)
        n = points.n
        if w is not None and not w.all():
            points, w = points.take(np.flatnonzero(w)), w[w > 0]
        self.kernel_ = resolve_kernel(self.kernel, points)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)
        t = self.n_components
        if points.n == 1:
            raise InvalidInput(
                "Principal components need at least two points", got="n_samples = 1", advice="Pass more rows."
            )
        if t is not None and t >= points.n:
            raise InvalidInput(
                f"`n_components` must be at most n − 1 = {points.n - 1}: centring takes one direction away",
                got=str(t),
                advice="Pass n_components=None for all components.",
            )
        total = float(points.n if w is None else w.sum())
        if total <= 1.0:
            raise InvalidInput(
                "`sample_weight` counts rows, so its sum must be > 1",
                got=f"{total:.4g}",
                advice="Multiply the weights by the number of rows.",
            )
        K = gram.of(self.kernel_, points, budget=self.budget)
        principal = self._solve(K, None if w is None else np.sqrt(w))
        if not principal.converged:
            warnings.warn(principal.status, ConvergenceWarning, stacklevel=outside())
        self._keep(principal, principal.points or points, K.dtype, total)
        if self.inverse == "regression":
            scores = self._values - self._offsets if principal.points is None else self.function_(points)
            self._regression = self._learn(scores.astype(np.float64), vectors(self.kernel_, points), w)
        return points.n == n and principal.points is None

    def _learn(self, scores: Matrix, X: Matrix, w: Matrix | None) -> KernelRidge:
        """Kernel ridge regression from scores to points; the leave-one-out error on some rows chooses its penalty."""
        kernel = median_gaussian(scores)
        some = np.sort(generator(self.random_state).permutation(len(X))[:ROWS])
        Y, roots = X[some], None if w is None else np.sqrt(w[some])
        K = gram.of(kernel, scores[some])
        spectrum = Eigendecomposition(LeastSquares(K, Y, np.ones(Y.shape[1]), roots, np.ones((len(some), 1))))
        s = 1.0 if roots is None else roots[:, None]
        errors = [float(((s * spectrum.at(a).leave_one_out(Y)) ** 2).sum()) for a in PENALTIES]
        alpha = PENALTIES[int(np.argmin(errors))]
        return KernelRidge(kernel, alpha=alpha, fit_intercept=True, budget=self.budget).fit(scores, X, w)

    def _solve(self, K: Gram, roots: Matrix | None) -> Principal:
        limit, t = memory_budget(self.budget), self.n_components
        solver, why = leading.choose(K, t, requested_solver(self, K.shape[0]), limit)
        rng = generator(self.random_state)
        if solver == "nystrom":
            m = default_centers(K.shape[0], limit) if self.n_centers is None else self.n_centers
            return leading.on_centers(K, choose_centers(K, m, self.centers, rng=rng), t, roots, self.budget, why)
        operator = leading.Centred(K, roots)
        if solver == "krylov" and t is not None:
            return leading.krylov(operator, t, tol=self.tol, rng=rng, why=why)
        return leading.decompose(operator, t, limit, why)

    def _keep(self, principal: Principal, points: Points, dtype: np.dtype[Any], total: float) -> None:
        scores = principal.values - principal.offsets
        sizes = np.abs(scores)
        deciding = (sizes >= (1 - TIE) * sizes.max(axis=0)).argmax(axis=0)
        signs = np.where(scores[deciding, np.arange(scores.shape[1])] < 0, -1.0, 1.0)
        coef = (principal.coef * signs).astype(dtype, copy=False)
        self._values, self._offsets = principal.values * signs, principal.offsets * signs
        self._mean_values, self._mean_square = principal.mean_values, principal.mean_square
        # The mean as one more column: a query is compared with the points once.
        self._all = Expansion(self.kernel_, points, np.column_stack([coef, principal.mean.astype(dtype, copy=False)]))
        self.function_ = Expansion(self.kernel_, self._all.points, coef, Tail.constant(-self._offsets))
        self.mean_ = Expansion(self.kernel_, self._all.points, self._all.coef[:, -1])
        self.dual_coef_ = self.function_.coef
        self.eigenvalues_ = principal.eigenvalues
        self.explained_variance_ = principal.eigenvalues / (total - 1)
        self.explained_variance_ratio_ = principal.eigenvalues / principal.total
        self.n_components_ = self._n_features_out = len(principal.eigenvalues)
        self.solver_, self.status_, self.residual_ = principal.solver, principal.status, principal.residual

    def _nearest(self, Z: Matrix, count: int) -> NDArray[np.int64]:
        """The training points (or centres) nearest to μ + Σ zⱼfⱼ in feature space, nearest first, shape (m, count)."""
        points = self._all.points
        constant = self.kernel_.diag(points).astype(np.float64) - 2 * self._mean_values
        near = np.empty((len(Z), count), np.int64)
        for rows in threads.spans(len(Z), max(1, memory.HELD // points.n)):
            # ‖phi(x) − P‖² − ‖P‖² = k(x, x) − 2 P(x)
            squared = constant - 2 * Z[rows] @ self._values.T
            some = np.argpartition(squared, count - 1, axis=1)[:, :count]
            order = np.argsort(np.take_along_axis(squared, some, 1), axis=1, kind="stable")
            near[rows] = np.take_along_axis(some, order, 1)
        return near

    def _scores(self, X: Any) -> Matrix:
        """Checked scores, shape (m, t)."""
        required = f"Scores must be finite numbers of shape (m, {self.n_components_})"
        advice = "Pass the result of `transform`."
        Z = check_numbers(X, required, advice=advice)
        if Z.ndim != 2 or Z.shape[1] != self.n_components_:
            raise InvalidInput(required, got=f"shape {Z.shape}", advice=advice)
        return Z

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            check_whole_number(self.n_components, "n_components", alternative="None for all", such_as=2)
        check_number(self.tol, "tol", above=0, below=1, such_as=1e-8)
        check_solver_parameters(self, leading.SOLVERS)
        check_choice(self.inverse, "inverse", INVERSES, advice="Pass 'distance', the default.")
