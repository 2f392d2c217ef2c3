"""Weights of counted features, and the rule that learns them from data: rare features count more (TF-IDF)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.nodes import Node
from mercer.kernels.algebra.parameters import show
from mercer.kernels.algebra.proof import Proof, Rule
from mercer.kernels.algebra.values import Value
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.strings.ngrams import NGrams

if TYPE_CHECKING:
    from mercer.features.counted import CountMap
    from mercer.kernels.validity.interval import Interval

DIAGONAL = Rule("features times their own weights: Σ_g w_g² phi_g(x) phi_g(z)", "Bishop 2006, (6.20)")


class WeightedCounts(Node, Counted):
    """Σ_g w_g²·φ_g(x)·φ_g(z): the features of a kernel of counts, each times its own weight. `TfIdf` makes these.

    Parameters
    ----------
    kernel : Kernel
        A kernel of counted features, such as `NGrams` or `Spectrum`.
    keys
        The features with a weight, as signed 64-bit keys; all others have weight 0.
    weights
        w ≥ 0, one for each.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.TfIdf(mc.NGrams(1, unit="words"))(["a cat", "a dog"])
    >>> type(k.kernel).__name__, k(["a cat", "cat cat"]).round(3)
    ('WeightedCounts', array([[1.   , 0.815],
           [0.815, 1.   ]]))
    """

    about: ClassVar[About] = About(
        "Σ_g w_g² φ_g(x) φ_g(z), k(x, z) = φ(x)·φ(z), g in G",
        "Counted features with weights, such as rare words (mc.TfIdf makes it from data).",
        "WeightedCounts(Spectrum(1), keys=[2593264429575759324], weights=[2.0])",
        arguments={
            "keys": Argument("G", "numbers of features (see features().keys)"),
            "weights": Argument("w", "numbers ≥ 0, one per key"),
        },
    )

    kernel: Any
    keys: Any
    weights: Any

    def check(self) -> None:
        if not isinstance(self.kernel, Counted):
            raise InvalidInput(
                "`kernel` of WeightedCounts must be a kernel of counted features",
                got=repr(self.kernel),
                advice="Pass a kernel such as mc.NGrams(1, unit='words') or mc.Spectrum(3).",
            )
        try:
            keys, weights = np.array(self.keys, dtype=np.int64), np.array(self.weights, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            keys, weights = np.empty((0, 0), np.int64), np.empty(0)
        right = keys.ndim == 1 and keys.shape == weights.shape and len(np.unique(keys)) == len(keys)
        if not right or not np.isfinite(weights).all() or (weights < 0).any():
            raise InvalidInput(
                "`keys` must be different whole numbers, and `weights` as many numbers ≥ 0",
                got=f"{show(self.keys)[:60]} and {show(self.weights)[:60]}",
                advice="Let the rule mc.TfIdf(kernel) compute them from training data.",
            )
        order = np.argsort(keys.view(np.uint64))
        keys, weights = keys[order], weights[order]
        keys.flags.writeable = weights.flags.writeable = False
        self._set(keys=keys, weights=weights)

    @property
    def space(self) -> str:  # type: ignore[override]
        space: str = self.kernel.space
        return space

    def touch(self, points: Points) -> None:
        points.encoded(self)

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def encode(self, X: Any) -> Counts:
        counts: Counts = self.kernel.encode(X)
        known = self.keys.view(np.uint64)
        at = np.searchsorted(known, counts.keys)
        at[at == len(known)] = 0
        found = known[at] == counts.keys if len(known) else np.zeros(len(counts.keys), bool)
        ends = np.concatenate([[0], np.cumsum(found)])[counts.ends]
        return Counts(counts.keys[found], counts.values[found] * self.weights[at[found]], ends)

    def features(self, d: Any, *, index: str = "monomials") -> CountMap:
        return Counted.features(self, d, index=index)

    def spelled(self, X: Any, keys: NDArray[np.uint64]) -> tuple[str, ...]:
        every = np.unique(self.kernel.encode(X).keys)
        names = self.kernel.spelled(X, every)
        return tuple(names[i] for i in np.searchsorted(every, keys).tolist()) if names else ()

    def enclose(self, x: Any, z: Any) -> Interval:
        """Exact for counts; where the features of the kernel are rounded, widened by 2⁻⁴⁰ of the value."""
        from mercer.kernels.validity.interval import around, exactly

        counts = [self.kernel.encode([point]) for point in (x, z)]
        a, b = (dict(zip(c.keys.tolist(), map(Fraction, c.values.tolist()))) for c in counts)
        weights = zip(self.keys.view(np.uint64).tolist(), map(Fraction, self.weights.tolist()))
        total = sum((w * w * a[g] * b[g] for g, w in weights if g in a and g in b), Fraction(0))
        whole = all(c.whole_below(math.inf) for c in counts)
        return exactly(total) if whole else around(total)

    def conclusion(self, *premises: Proof) -> Proof:
        return DIAGONAL(self, *premises, condition=f"{len(self.keys):,} weights ≥ 0, all others 0")

    def __repr__(self) -> str:
        return f"WeightedCounts({self.kernel!r}, keys={show(self.keys)}, weights={show(self.weights)})"


class TfIdf(Value):
    """The rule data → kernel of term frequency times inverse document frequency: rare features count more.

    w_g = 1 + log((1 + n)/(1 + n_g)), where n_g of the n training objects have the feature g; features that none of them
    has weigh 0. As the parameter `kernel` of a model it learns the weights in `fit`, from the training rows only, so
    that nothing leaks in cross-validation. With `unit="words"` it is the kernel of scikit-learn's TfidfVectorizer
    (which splits texts into words a little differently).

    Parameters
    ----------
    kernel : Kernel
        A kernel of counted features: words by default, or `NGrams(3)`, `Spectrum(4)`, `GappedKmers(6, 4)`, …
    normalise : bool
        Whether the result is the cosine, which does not grow with the length of texts.

    References
    ----------
    Spärck Jones 1972, A statistical interpretation of term specificity and its application in retrieval.

    Examples
    --------
    >>> import mercer as mc
    >>> texts = ["win a prize now", "see you now", "a prize for you", "see you at ten"]
    >>> model = mc.SVC(mc.TfIdf()).fit(texts, ["spam", "ham", "spam", "ham"])
    >>> model.predict(["a prize"]).tolist()
    ['spam']
    """

    kernel: Any = NGrams(1, unit="words")
    normalise: bool = True

    def check(self) -> None:
        if not isinstance(self.kernel, Counted):
            raise InvalidInput(
                "`kernel` of TfIdf must be a kernel of counted features",
                got=repr(self.kernel),
                advice="Pass a kernel such as mc.NGrams(1, unit='words') or mc.Spectrum(3).",
            )

    def __call__(self, X: Any) -> Any:
        """The kernel with the weights of these training objects."""
        counts: Counts = Points(X).encoded(self.kernel) if not isinstance(X, Points) else X.encoded(self.kernel)
        keys, having = np.unique(counts.keys, return_counts=True)
        weights = 1.0 + np.log((1 + len(counts)) / (1 + having))
        weighted = WeightedCounts(self.kernel, keys.view(np.int64), weights)
        return weighted.normalize() if self.normalise else weighted

    def __repr__(self) -> str:
        return f"TfIdf({self.kernel!r}{'' if self.normalise else ', normalise=False'})"
