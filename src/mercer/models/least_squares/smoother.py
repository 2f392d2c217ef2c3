"""Models that are linear in their targets: closed-form leave-one-out and the intervals that follow from it.

f(z) = Σᵢ lᵢ(z) yᵢ with weights that do not depend on y. Fitting without row i gives f(z) − lᵢ(z) rᵢ, where rᵢ is the
leave-one-out residual: the n models that jackknife+ needs cost one matrix product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer import memory, threads
from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.models.base import KernelEstimator, Rows
from mercer.models.quantiles import plus_ends, rank, share
from mercer.models.residual_scale import ResidualScale
from mercer.solvers.factor import Factor

Matrix = NDArray[np.float64]


class LinearSmoother(RegressorMixin, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """A fitted model f(z) = Σ lᵢ(z) yᵢ, given by its weights and its leave-one-out residuals.

    A subclass sets `_rows`, the rows that it was fitted on, and implements `_smoothers` and `_leave_one_out`.
    """

    _rows: Rows
    _intervals_need: ClassVar[tuple[str, ...]] = ("_rows",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @abstractmethod
    def _smoothers(self, X: Any) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        """Groups of targets, each with its shared weights lᵢ(z) for every query z of X, shape (m, n)."""

    @abstractmethod
    def _leave_one_out(self) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ), shape (n, t)."""

    def __getstate__(self) -> dict[str, Any]:
        """The state without `_cache`, which can be computed again."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_cache": {}} if "_cache" in state else state

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """f₋ᵢ(xᵢ): the prediction at each training point of the model fitted without it, in closed form.

        A row of weight zero was left out anyway: its entry is f(xᵢ).
        """
        check_is_fitted(self)
        rows = self._rows
        predictions = rows.y - self._leave_one_out()
        if rows.left_out is not None:
            everywhere = np.empty((len(rows) + rows.left_out.n, rows.y.shape[1]))
            rest = np.setdiff1d(np.arange(len(everywhere)), rows.kept)
            everywhere[rows.kept] = predictions
            everywhere[rest] = np.reshape(self.predict(rows.left_out.raw), (len(rest), -1))
            predictions = everywhere
        return rows.shaped(predictions)

    @property
    def loo_score_(self) -> float:
        """R² of the leave-one-out predictions, averaged over targets: an estimate of `score` on new data."""
        check_is_fitted(self)
        rows = self._rows
        w = None if rows.roots is None else rows.roots**2
        return explained(rows.y, rows.y - self._leave_one_out(), w)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Intervals that hold a new target with the given probability, by jackknife+ in closed form.

        Each of the n leave-one-out models predicts at z, moved down and up by its own leave-one-out residual; the
        interval runs between quantiles of these values. If rows are exchangeable, it covers at least a share
        1 − 2(1 − coverage) of new targets whatever the distribution, and close to `coverage` in practice (Barber et al.
        2021). There is no guarantee if the same rows chose the kernel or alpha: then hold out rows for that choice.
        Sample weights enter the quantiles, too: the intervals are for a new row that is drawn with these weights.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries.
        coverage : float
            The probability, in (0, 1).

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        return self.jackknife_plus(X, coverage)

    def jackknife_plus(self, X: Any, coverage: float = 0.9, *, local: bool = False) -> NDArray[np.float64]:
        """The intervals of `KernelRidge.predict_interval`, alike everywhere or with a local scale.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries.
        coverage : float
            The probability, in (0, 1).
        local : bool
            Whether intervals are wider where the errors of predictions of that size are larger. They then cover about
            as often for small predictions as for large ones. The guarantee of jackknife+ holds approximately, because
            the scale was learned from the same rows.

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        check_is_fitted(self)
        y = self._rows.y
        n, roots = len(y), self._rows.roots
        sample_weight = None if roots is None else roots**2
        rank(coverage, n)  # refuse a wrong coverage before anything is computed
        residuals = self._leave_one_out()
        values = np.asarray(self.predict(X), dtype=np.float64).reshape(-1, y.shape[1])
        spreads, scales = np.abs(residuals), list[ResidualScale]()
        for t in range(y.shape[1]) if local else ():
            scale, own = ResidualScale.of(y[:, t] - residuals[:, t], residuals[:, t], sample_weight)
            spreads[:, t] /= own
            scales.append(scale)
        ends = np.empty((*values.shape, 2))
        for span in threads.spans(len(values), max(1, memory.HELD // n)):
            for targets, weights in self._smoothers(take(X, np.arange(len(values))[span])):
                for t in targets:
                    others = values[span, t, None] - weights * residuals[:, t]  # f₋ᵢ(z)
                    sizes = spreads[:, t] * (scales[t](values[span, t])[:, None] if local else 1.0)
                    ends[span, t] = plus_ends(others[..., None], sizes[..., None], coverage, sample_weight)[:, 0]
        return self._rows.shaped(ends)


def check_penalty_rule(alpha: Any) -> None:
    """Check that a parameter `alpha` which is text is "loo"."""
    if isinstance(alpha, str) and alpha != "loo":
        raise InvalidInput(
            "`alpha` must be a number ≥ 0, one per target, or 'loo'",
            got=repr(alpha),
            advice="Pass a number such as 1.0, or 'loo'.",
        )


def explained(y: Matrix, predictions: Matrix, weights: Matrix | None) -> float:
    """R² of held-out predictions, averaged over targets. Each target is scaled so that its squares do not overflow."""
    if len(y) < 2:
        raise InvalidInput(
            "A leave-one-out score needs at least two rows",
            got=f"{len(y)} row of weight > 0",
            advice="Fit on more rows.",
        )
    from sklearn.metrics import r2_score  # imported here, so that a fit does not wait for it

    unit = np.abs(y).max(axis=0)
    unit[unit == 0] = 1.0
    return float(r2_score(y / unit, predictions / unit, sample_weight=weights))


class PenalisedSmoother(LinearSmoother, KernelEstimator):
    """A smoother with one penalty per target, whose system is factorised once for each distinct penalty.

    A subclass sets `_penalties` (t,) and `_cache`, and implements `_factorise` and `_query`. `_cache` holds the system
    of each alpha: from the fit, if the solver factorised it anyway, otherwise from the first call that needs it. It
    takes n² numbers, or n times the number of features. Pickles, copies and files leave it out, because it can be
    computed again: `copy.copy(model)` is the model without it.
    """

    alpha: Any
    _penalties: Matrix
    _cache: dict[Any, Any]

    @abstractmethod
    def _factorise(self, alpha: float) -> Factor:
        """The system at this alpha."""

    @abstractmethod
    def _query(self, points: Points, *, explicit: bool) -> tuple[Any, Matrix | None]:
        """The input of a factor: rows k(z, X) of the queries, or their features if `explicit`; and the tail there."""

    @property
    def degrees_of_freedom_(self) -> Any:
        """tr K(K + alpha I)⁻¹, the effective number of parameters; one per target if there is one alpha per target.

        It lies between 0 and n (interpolation) or the number of features; an intercept adds one.
        """
        check_is_fitted(self)
        freedom = np.empty(len(self._penalties))
        for alpha, columns in self._by_alpha():
            freedom[columns] = self._factor(alpha).degrees_of_freedom
        return float(freedom[0]) if np.ndim(self.alpha_) == 0 else freedom

    def _report_alpha(self) -> None:
        """Set `alpha_`: one number if `alpha` is one or there is one target, otherwise one per target."""
        one = self._rows.single or not (isinstance(self.alpha, str) or np.ndim(self.alpha) == 1)
        self.alpha_: Any = float(self._penalties[0]) if one else self._penalties

    def _by_alpha(self) -> list[tuple[float, NDArray[np.int64]]]:
        """Every different alpha, with its targets."""
        return [(float(a), np.flatnonzero(self._penalties == a)) for a in np.unique(self._penalties)]

    def _factor(self, alpha: float) -> Factor:
        """The system at this alpha, factorised at the first use and kept."""
        if alpha not in self._cache:
            self._cache[alpha] = self._factorise(alpha)
        factor: Factor = self._cache[alpha]
        return factor

    def _smoothers(self, X: Any) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        points = self._queries(X)
        for alpha, columns in self._by_alpha():
            factor = self._factor(alpha)
            yield columns, factor.smoother(*self._query(points, explicit=factor.explicit))

    def _leave_one_out(self) -> Matrix:
        residuals = np.empty_like(self._rows.y)
        for alpha, columns in self._by_alpha():
            residuals[:, columns] = self._factor(alpha).leave_one_out(self._rows.y[:, columns])
        return residuals


class GaussianSmoother(LinearSmoother):
    """A smoother with a Gaussian predictive distribution: by default its intervals are mean ± z·std."""

    _intervals_need: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def predict_distribution(self, X: Any, *, noise: bool = True) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of a new target (or, without noise, of f): shapes (m,) or (m, t)."""

    @abstractmethod
    def _smoother(self, X: Any) -> Matrix:
        """lᵢ(z) for every query of X, shape (m, n), the same for all targets."""

    def _smoothers(self, X: Any) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        yield np.arange(self._rows.y.shape[1]), self._smoother(X)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, noise: bool = True, method: str = "gaussian"
    ) -> NDArray[np.float64]:
        """Intervals that hold a new target (or f itself) with the given probability.

        Parameters
        ----------
        X : array, frame or list of objects
            m points.
        coverage : float
            The probability, in (0, 1).
        noise : bool
            Whether the interval is for a new target, or for f.
        method : str
            "gaussian", mean ± z·std, correct if the model is; or "jackknife+", which assumes no model (see
            `KernelRidge.predict_interval`; with `normalize_y` it ignores that the centre was estimated).

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        if method == "jackknife+" and noise:
            return super().predict_interval(X, coverage)
        if method != "gaussian":
            raise InvalidInput(
                "`method` must be 'gaussian' or, for new targets, 'jackknife+'",
                got=f"{method!r}, noise={noise}",
                advice="Pass noise=True with 'jackknife+', whose intervals are for targets and not for f.",
            )
        mean, std = self.predict_distribution(X, noise=noise)
        reach = float(ndtri(0.5 + 0.5 * share(coverage))) * std
        return np.stack([mean - reach, mean + reach], axis=-1)
