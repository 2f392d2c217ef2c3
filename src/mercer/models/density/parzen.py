"""Parzen's density: a kernel around every point (lecture 004). Local methods derive from it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from mercer.data.batches import Batches, is_source
from mercer.data.frames import is_frame
from mercer.data.points import Points
from mercer.data.sampling import StreamedPoints, drawn
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.models.base import (
    KernelEstimator,
    check_columns,
    positive_weights,
    shortened,
    training_points,
    weights,
)
from mercer.models.density.parzen_columns import MixedTable, category_widths, level_weights, likeliest_width
from mercer.models.density.parzen_line import Distribution, numbers_of
from mercer.models.density.parzen_widths import (
    Widths,
    apply_rule,
    check_tolerance,
    family,
    loo_with_categories,
    resolve,
)
from mercer.smoothing import density
from mercer.smoothing.sums import sums
from mercer.tuning.bandwidth import silverman
from mercer.validation import check_number, check_whole_number, generator
from mercer.words import count

Float = NDArray[np.float64]

SAMPLE = 10_000
"""Rows of a source in batches on which a rule chooses the widths."""


class OnGrid(NamedTuple):
    """A density on a regular grid: one axis (n,) per column, and its values, (n,) or (n, n), the first axis first."""

    axes: tuple[Float, ...]
    density: Float


@dataclass(eq=False, repr=False)
class ParzenDensity(DensityMixin, KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The density p(x) = Σᵢ wᵢ K_h(x − xᵢ) / Σᵢ wᵢ, a normalised kernel around every point.

    Sample weights count as repetitions, also for "loo", which leaves equal rows out together.

    Parameters
    ----------
    kernel : Kernel, class, rule or None
        A family such as mc.Gaussian or mc.Epanechnikov (None is the Gaussian); a kernel with its width, such as
        mc.Gaussian(0.5), whose width is used unless there is a `bandwidth`; or a rule X → kernel.
    bandwidth : float, array, str or None
        A number > 0 or one per column of numbers, the kernel's sigma; a covariance matrix (d, d), with which the data
        is whitened; a rule X → any of these; or the name of a rule: "isj" (the default for a family), "scott",
        "silverman", or "loo" for the largest leave-one-out likelihood. Named rules compute Gaussian widths; other
        kernels get the width that smooths equally.
    adaptive : bool or float
        Abramson's widths, h (p̃(xᵢ)/g)^(−1/2) around point i, where p̃ is a first density of fixed width and g its
        geometric mean on the data; a number replaces the 1/2.
    categorical, ordered
        Columns (positions, or names in a data frame) that hold unordered and ordered categories; they are smoothed over
        their levels (Aitchison & Aitken; Wang & van Ryzin). Numbers are ordered by size, an ordered pandas Categorical
        and a Polars Enum as declared, other text by a dict {column: levels, the lowest first}. A level that was neither
        declared nor seen by `fit` has density 0.
    category_bandwidth
        λ, the mass that a level gives to the others: a number, one per such column (the categorical ones first), or
        None for the likeliest.
    tolerance : float
        The relative error of the density that fast sums may make to save time.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its width (on whitened data if `bandwidth_` is a matrix).
    bandwidth_
        (d,) widths, or the (d, d) covariance.
    category_bandwidth_
        (q,), λ of the categories.
    categories_
        The levels of every column of categories.
    factors_
        (n,), the adaptive factors of the widths, or None.
    status_ : str
        The rule that chose the widths, with notes.

    References
    ----------
    Silverman, Density Estimation, 1986; Botev, Grotowski & Kroese, Annals of Statistics 38, 2010.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.models.density.parzen import ParzenDensity
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = ParzenDensity(bandwidth="isj").fit(x)
    >>> model.pdf([[0.0], [1.0]]).round(2)
    array([0.36, 0.25])
    >>> model.score_samples([[1e6]]) < -1e12
    array([ True])
    """

    kernel: Any = None
    _: KW_ONLY
    bandwidth: Any = None
    adaptive: bool | float = False
    categorical: Any = None
    ordered: Any = None
    category_bandwidth: Any = None
    tolerance: float = 1e-8

    _in_batches: ClassVar[bool] = True
    _keeps_rows: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep n points X, (n, d), and choose the widths; y is not used.

        Rows of a `Batches` or of Dask stay where they are, on disk or with the workers, and every density sums over
        them. A rule named by `bandwidth` chooses the widths on a sample of s rows, times (s/n)^(1/(d+4)).
        """
        if is_source(X):
            return self._fit_batches(Batches.of(X, None, None), sample_weight)
        return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any, of: StreamedPoints | None = None) -> Self:
        X = training_points(X).raw
        check_tolerance(self.tolerance)
        kernel = apply_rule(self.kernel, X)
        similarity: Any = family(kernel)
        self.kernel_ = similarity
        table = self._table = MixedTable.of(X, self.categorical, self.ordered)
        numbers, codes = table.split(X)
        check_columns(self, X, reset=True)
        w = weights(sample_weight, len(numbers))
        if w is not None:
            numbers, codes, w = numbers[w > 0], codes[w > 0], w[w > 0]
        self._like = X[:0] if is_frame(X) else None
        # a single number, broadcast: the sums recognise constant weights by their stride
        self._w = np.broadcast_to(np.float64(1.0), (len(numbers),)) if w is None else w
        kernel_width = self.bandwidth is None and isinstance(kernel, Similarity)
        self._choose(similarity, kernel_width, numbers, codes, w, of)
        self._numbers, self._codes = numbers, codes
        self.categories_ = list(table.levels)
        self._centre = numbers.mean(axis=0)
        self._points = Points(self._widths.whitened(numbers - self._centre) if self._whitening else numbers)
        self.factors_: Float | None = None
        self._distribution: Distribution | None = None
        if self.adaptive is not False:
            self._adapt()
        return self

    def _fit_batches(self, batches: Batches, sample_weight: Any) -> Self:
        """Choose the widths on a sample; the rows stay in their source."""
        refused = {"categorical": self.categorical, "ordered": self.ordered, "adaptive": self.adaptive or None}
        for name, value in refused.items():
            if value is not None:
                raise InvalidInput(
                    f"`{name}` needs all rows in memory",
                    got=f"{name}={shortened(value)} and rows in batches",
                    advice=f"Leave `{name}` out, or load the rows as an array.",
                )
        w = positive_weights(sample_weight, batches.n)
        points = StreamedPoints(batches, drawn(batches, SAMPLE, generator(0)))
        self._fit(points.raw, None if w is None else w[points.at], points)
        if batches.names is not None and not is_frame(points.raw):
            self.feature_names_in_ = np.array(batches.names, dtype=object)
        self._w = np.broadcast_to(np.float64(1.0), (batches.n,)) if w is None else w
        if self._whitening:
            points = points.mapped(partial(_whitened, self._widths, self._centre))
        self._points = points
        return self

    # -- densities --------------------------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Float:
        """log p(x) for m points, shape (m,): finite everywhere for a Gaussian, −∞ out of reach of a compact kernel."""
        numbers, codes = self._split(X)
        return self._log_density(numbers, codes)

    def pdf(self, X: Any) -> Float:
        """p(x) for m points, shape (m,)."""
        return np.exp(self.score_samples(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Σ log p(x), the log-likelihood of m points."""
        values = self.score_samples(X)
        w = weights(sample_weight, len(values))
        return float(values.sum() if w is None else values[w > 0] @ w[w > 0])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """n draws from p: an array (n, d), or a data frame if one was passed to `fit`.

        >>> import numpy as np
        >>> from mercer.models.density.parzen import ParzenDensity
        >>> model = ParzenDensity(bandwidth=0.1).fit([[0.0], [5.0]])
        >>> model.sample(3, random_state=0).shape
        (3, 1)
        """
        check_is_fitted(self)
        check_whole_number(n_samples, "n_samples", such_as=100)
        rng = generator(random_state)
        chosen = rng.choice(len(self._w), size=n_samples, p=self._w / self._w.sum())
        numbers = self._numbers_at(chosen)
        if numbers.shape[1]:
            u = density.of(self.kernel_, numbers.shape[1]).draw(n_samples, numbers.shape[1], rng)
            if self.factors_ is not None:
                u *= self.factors_[chosen, None]
            numbers = numbers + self._widths.spread(u)
        codes = self._codes[chosen] if self._table.categories else np.empty((n_samples, 0), np.int64)
        for j, L in enumerate(self._level_weights):
            ends = np.cumsum(L, axis=0)[:, codes[:, j]]
            codes[:, j] = np.minimum((rng.random(n_samples) > ends).sum(axis=0), len(L) - 1)
        return self._table.join(numbers, codes, self._like)

    # -- on a line --------------------------------------------------------------------------------------------------

    def cdf(self, x: Any) -> Float:
        """P(X ≤ x) for numbers x of any shape; one column of numbers only.

        >>> from mercer.models.density.parzen import ParzenDensity
        >>> ParzenDensity(bandwidth=1.0).fit([[0.0], [2.0]]).cdf([1.0]).round(6)
        array([0.5])
        """
        line, q = self._line(), numbers_of(x, "x")
        return line.cdf(q.ravel()).reshape(q.shape)[()]

    def quantile(self, p: Any) -> Float:
        """The x with P(X ≤ x) = p, for p in [0, 1] of any shape; one column of numbers only."""
        line, q = self._line(), numbers_of(p, "p")
        if ((q < 0) | (q > 1)).any():
            raise InvalidInput("`p` must lie in [0, 1]", got=shortened(p), advice="Pass a probability such as 0.5.")
        return line.quantile(q.ravel()).reshape(q.shape)[()]

    def on_grid(self, n: int | None = None, margin: float = 3.0) -> OnGrid:
        """The density on a regular grid over the data, for plots of one or two columns of numbers.

        Parameters
        ----------
        n : int or None
            Points along every axis; by default 512 on a line, 128 in a plane.
        margin : float
            How far the grid extends beyond the data, in standard deviations of the kernel.

        Examples
        --------
        >>> from mercer.models.density.parzen import ParzenDensity
        >>> grid = ParzenDensity(bandwidth=1.0).fit([[0.0, 0.0], [1.0, 3.0]]).on_grid(64)
        >>> [axis.shape for axis in grid.axes], grid.density.shape
        ([(64,), (64,)], (64, 64))
        """
        check_is_fitted(self)
        d = self._numbers.shape[1]
        if d not in (1, 2) or self._table.categories:
            raise InvalidInput(
                "`on_grid` requires one or two columns of numbers and no categories",
                got=self._kinds_of_columns,
                advice="Evaluate `pdf` at points of your choice.",
            )
        n = (512 if d == 1 else 128) if n is None else n
        require_grid(n, margin)
        std = self.bandwidth_ if self._widths.root is None else np.sqrt(np.diag(self.bandwidth_))
        spread = density.of(self.kernel_, d).variance(d)
        reach = margin * std * np.sqrt(spread if np.isfinite(spread) else 1.0)
        if self.factors_ is not None:
            reach = reach * self.factors_.max()
        axes = tuple(
            np.linspace(x.min() - r, x.max() + r, int(n)) for x, r in zip(self._numbers.T, np.broadcast_to(reach, (d,)))
        )
        at = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        values = np.exp(self._log_density(at, np.empty((len(at), 0), np.int64)))
        return OnGrid(axes, values.reshape((int(n),) * d))

    # -- inside -----------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """The state without the sorted line, which can be computed again."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_distribution": None} if "_distribution" in state else state

    def _example_rows(self, count: int) -> Any:
        return self.sample(count, random_state=0)  # the model keeps numbers and categories separately

    @property
    def _kinds_of_columns(self) -> str:
        columns = count(self._numbers.shape[1], "column")
        return f"{columns} of numbers and {len(self._table.categories)} of categories"

    @property
    def _whitening(self) -> bool:
        return self._widths.root is not None

    def _numbers_at(self, rows: NDArray[np.int64]) -> Float:
        """The numbers of these rows, which may repeat."""
        if not isinstance(self._points, StreamedPoints):
            return self._numbers[rows]
        there, position = np.unique(rows, return_inverse=True)
        numbers = np.asarray(as_vectors(self._points.batches.at(there)[0]), dtype=np.float64)
        return (self._widths.spread(numbers) + self._centre if self._whitening else numbers)[position]

    def _choose(
        self,
        similarity: Any,
        kernel_width: bool,
        X: Float,
        codes: NDArray[np.int64],
        w: Float | None,
        of: StreamedPoints | None = None,
    ) -> None:
        """Set the widths of numbers and categories; with `kernel_width` they are the kernel's.

        X may be a sample `of` all rows, for which the widths by rules are narrower.
        """
        d, table = X.shape[1], self._table
        rule = "isj" if self.bandwidth is None else self.bandwidth
        self.category_bandwidth_: Any = category_widths(self.category_bandwidth, table)
        if d == 0:
            self._widths = Widths(np.empty(0))
        elif kernel_width:
            sigma = np.asarray(similarity.sigma, dtype=np.float64)
            if sigma.ndim and sigma.shape != (d,):
                raise InvalidInput(
                    f"`kernel` must have one width, or one for each of {count(d, 'column')} of numbers",
                    got=shortened(similarity),
                    advice="Pass one sigma for all columns, or one per column.",
                )
            self._widths = Widths(np.broadcast_to(sigma, (d,)).copy())
        elif isinstance(rule, str) and rule == "loo" and table.categories and self.category_bandwidth is None:
            h, self.category_bandwidth_ = loo_with_categories(X, codes, table, w, silverman(X, w))
            self._widths = Widths(density.equivalent(similarity, d) * h)
        else:
            self._widths = resolve(similarity, rule, X, w)
            if of is not None and of.n > len(X) and isinstance(rule, str):
                factor, widths = of.narrower(d), self._widths
                note = f"Chosen on {len(X):,} of {of.n:,} rows, times {factor:.3g} for all of them."
                self._widths = replace(widths, shown=factor * widths.shown, notes=(*widths.notes, note))
        self.category_bandwidth_ = np.array(
            [self._likeliest(j, codes) if a is None else a for j, a in enumerate(self.category_bandwidth_)],
            dtype=np.float64,
        )
        self.bandwidth_ = self._widths.shown
        self._constant = 0.0
        if d:
            self.kernel_ = similarity.replace(sigma=self._widths.sigma)
            self._constant = density.of(self.kernel_, d).log_mass(d) + self._widths.log_volume
        source = "kernel" if kernel_width else rule if isinstance(rule, str) else "given"
        self.status_ = " ".join([f"Widths: {source}.", *self._widths.notes])

    def _likeliest(self, j: int, codes: NDArray[np.int64]) -> float:
        counts = np.bincount(codes[:, j], self._w, len(self._table.levels[j]))
        return likeliest_width(counts.astype(np.float64), self._table.ordered[j])

    @property
    def _level_weights(self) -> list[Float]:
        """L, the smoothing over levels, of every column of categories."""
        sizes = [len(levels) for levels in self._table.levels]
        if self._codes.size and (self._codes.max(axis=0) >= sizes).any():
            raise InvalidInput(
                "The codes of categories must be smaller than the number of levels",
                got=f"codes up to {self._codes.max(axis=0).tolist()} for {sizes} levels",
                advice="Load an unchanged file, or fit again.",
            )
        tables = zip(sizes, self.category_bandwidth_, self._table.ordered)
        return [level_weights(size, float(width), ordered) for size, width, ordered in tables]

    def _adapt(self) -> None:
        """Set the factors of the widths around each point, from a first density of fixed width."""
        power = 0.5
        if self.adaptive is not True:
            power = check_number(self.adaptive, "adaptive", above=0, most=1, alternative="True or False", such_as=power)
        if not self._numbers.shape[1]:
            raise InvalidInput(
                "`adaptive` requires a column of numbers", got="categories only", advice="Set adaptive=False."
            )
        pilot = self._log_density(self._numbers, self._codes)
        self.factors_ = np.exp(-power * (pilot - np.average(pilot, weights=self._w)))

    def _split(self, X: Any) -> tuple[Float, NDArray[np.int64]]:
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return self._table.split(X)

    def _log_density(self, X: Float, codes: NDArray[np.int64]) -> Float:
        """log p at these numbers and codes."""
        total = np.log(self._w.sum()) + self._constant
        Z = self._widths.whitened(X - self._centre) if self._whitening else X
        if not self._table.categories:
            return self._log_sums(Z, self._w) - total
        values = np.full(len(Z), -np.inf)
        combinations, member = np.unique(codes, axis=0, return_inverse=True)
        for g, levels in enumerate(combinations):
            if (levels < 0).any():  # a level that `fit` never saw has no mass
                continue
            v = self._w.copy()
            for j, L in enumerate(self._level_weights):
                v *= L[levels[j], self._codes[:, j]]
            rows = np.flatnonzero(member.ravel() == g)
            values[rows] = self._log_sums(Z[rows], v) - total
        return values

    def _log_sums(self, Z: Float, v: Float) -> Float:
        """log Σᵢ vᵢ k(z, xᵢ); if the density is adaptive, each point has its own width."""
        if not Z.shape[1]:
            with np.errstate(divide="ignore"):
                return np.full(len(Z), np.log(v.sum()))
        constant = v.strides[0] == 0
        if not (v[:1] if constant else v).any():
            return np.full(len(Z), -np.inf)
        if self.factors_ is not None:
            with np.errstate(divide="ignore"):
                log_v = np.log(v) - Z.shape[1] * np.log(self.factors_)
            return density.log_sums_of_spread(self.kernel_, self._points, log_v, Points(Z), self.factors_)
        points = self._points
        if not constant and not v.all():  # rows whose category excludes them
            points, v = points.take(v > 0), v[v > 0]
        total = sums(self.kernel_, points, v[:, None], Points(Z), tolerance=self.tolerance)
        with np.errstate(divide="ignore"):
            return total.log_scale + np.log(total.totals[:, 0, 0])

    def _line(self) -> Distribution:
        check_is_fitted(self)
        if isinstance(self._points, StreamedPoints):
            raise InvalidInput(
                "A distribution function needs all rows in memory",
                got="a density of rows in batches",
                advice="Fit a sample of the rows as an array.",
            )
        if self._numbers.shape[1] != 1 or self._table.categories:
            raise InvalidInput(
                "A distribution function requires one column of numbers",
                got=self._kinds_of_columns,
                advice="Fit the column of interest by itself.",
            )
        if self._distribution is None:
            h = self.bandwidth_ if not self._whitening else np.sqrt(self.bandwidth_[0])
            widths = np.broadcast_to(h, (len(self._w),)) * (1.0 if self.factors_ is None else self.factors_)
            self._distribution = Distribution(self.kernel_, self._numbers[:, 0], self._w / self._w.sum(), widths)
        return self._distribution


def _whitened(widths: Widths, centre: Float, X: Any) -> Float:
    """Rows in units in which the kernel is radial: what a worker runs."""
    return widths.whitened(np.asarray(as_vectors(X), dtype=np.float64) - centre)


def require_grid(n: Any, margin: Any) -> None:
    """Check the parameters of a grid: n points along each axis, `margin` beyond the data."""
    check_whole_number(n, "n", least=2, such_as=200)
    check_number(margin, "margin", least=0, such_as=3)
