"""Perceptrons (lecture 002): each misclassified example is added to the function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels.algebra.nodes import Constant
from mercer.kernels.vectors.dot import Linear
from mercer.memory import budget as memory_budget
from mercer.models.base import Matrix, resolve_kernel
from mercer.models.perceptron.base import OnlineClassifier
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.space import streamed
from mercer.rkhs.tail import Tail
from mercer.solvers.perceptron import Index, OnlinePerceptron, PrimalPerceptron
from mercer.solvers.perceptron_budget import Forgetron, Projectron
from mercer.validation import check_choice, check_number, check_whole_number

MATRIX_ROWS = 8192
"""Up to this number of points the whole kernel matrix is kept for several passes (512 MB)."""


@dataclass(eq=False, repr=False)
class KernelPerceptron(OnlineClassifier):
    """The kernel perceptron: f = Σ_{s ∈ S} yₛ k(xₛ, ·), where S are the examples that f misclassified.

    S is empty at first. For each example (x, y) in turn f predicts sgn f(x); if that is not y, the example is added to
    S. sgn(0) = −1: if f(x) = 0, the first class is predicted, here as in `predict`. Over several passes S is a
    multiset, and the coefficients are counts. With more than two classes each has its own function; the first with the
    largest value is predicted, and after a mistake the example is added to the function of its class and subtracted
    from that of the predicted class.

    Kernel values and sums are float64, whatever the type of the points.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel (of the first chunk, in `partial_fit`), or None for a Gaussian with the median
        width. An intercept is a constant in the kernel: k + mc.Constant(1.0).
    max_iter : int
        The largest number of passes over the data in `fit`; it stops after a pass without mistakes.
    variant : str
        "plain" predicts by the last function, "averaged" by the mean of the functions after each example, "voted" by
        their votes.
    max_support : int or None
        None, or a budget: the largest number of support vectors, so that memory is constant on an endless stream.
    on_full : str
        How the budget is kept. "projectron" (Projectron++) replaces a misclassified example by its projection on the
        span of the support set, if that is within `eta`, and always once the budget is spent; it also learns from
        correct predictions with a margin < 1. "forgetron" removes the oldest example, after shrinking all coefficients
        as far as necessary. Both measure margins and lengths in units of the largest k(x, x) so far.
    eta : float
        For "projectron", the largest distance from the span at which an example is projected, ≥ 0. A larger number
        keeps fewer support vectors.
    shuffle : bool
        Whether `fit` visits the points in random order, a new one in each pass.
    random_state : int, Generator or None
        The seed of these orders.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    kernel_ : Kernel
        The kernel that was used.
    mistakes_, t_ : int
        The number of mistakes, and of examples, in all passes or chunks.
    mistakes_per_pass_, n_iter_
        The mistakes in each pass of `fit`, and the number of passes.
    support_, support_vectors_ : array
        Positions (in the data of `fit`, or in the stream) and points of S.
    dual_coef_ : array
        Their coefficients, shape (s,), or (s, classes); with variant="voted" those of the last function.
    function_ : Expansion
        f as an `Expansion`; not available with variant="voted".
    status_ : str
        How the fit ended.

    References
    ----------
    Freund and Schapire, Large margin classification using the perceptron algorithm, 1999. Orabona, Keshet and Caputo,
    Bounded kernel-based online learning, 2009. Dekel, Shalev-Shwartz and Singer, The Forgetron, 2008.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = mc.KernelPerceptron(mc.Polynomial(2, c=1.0), max_iter=100).fit(X, ["no", "yes", "yes", "no"])
    >>> model.predict(X).tolist(), model.status_
    (['no', 'yes', 'yes', 'no'], 'converged: no mistakes in pass 10')
    >>> online = mc.KernelPerceptron(mc.Gaussian(0.5))
    >>> for x, label in zip(X, ["no", "yes", "yes", "no"]):
    ...     online = online.partial_fit(x, label, classes=["no", "yes"])
    >>> online.mistakes_, online.support_.tolist()
    (2, [1, 3])
    """

    kernel: Any = None
    _: KW_ONLY
    max_iter: int = 1
    variant: str = "plain"
    max_support: int | None = None
    on_full: str = "projectron"
    eta: float = 0.1
    shuffle: bool = False
    random_state: Any = 0

    @property
    def dual_coef_(self) -> Matrix:
        """The coefficients of f, shape (s,), or (s, classes)."""
        check_is_fitted(self)
        coef = self._learner.coef
        return np.array(coef[:, 0] if coef.shape[1] == 1 else coef)

    @property
    def support_vectors_(self) -> Any:
        """The support vectors in their original form, in the order in which they were added."""
        check_is_fitted(self)
        support = self._learner.support()
        return take(self._learner.anchor.raw, np.arange(0)) if support is None else support.raw

    @property
    def function_(self) -> Expansion:
        """f as an element of the Hilbert space."""
        check_is_fitted(self)
        if self.variant == "voted":
            raise AttributeError(
                "Functions that vote are not a single function of the Hilbert space. Use variant='averaged'."
            )
        support, coef = self._learner.support(), self._learner.coef
        if support is None:  # an Expansion has at least one point, also f = 0
            support, coef = self._learner.anchor, np.zeros((1, coef.shape[1]))
        return Expansion(self.kernel_, support, coef[:, 0] if coef.shape[1] == 1 else coef)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_whole_number(self.max_iter, "max_iter")
        check_choice(self.variant, "variant", ("plain", "averaged", "voted"))
        check_choice(self.on_full, "on_full", ("projectron", "forgetron"))
        check_number(self.eta, "eta", least=0, such_as=0.1)
        if self.max_support is None:
            return
        check_whole_number(self.max_support, "max_support", alternative="None", such_as=100)
        if self.variant == "voted" or (self.variant == "averaged" and self.on_full == "forgetron"):
            raise InvalidInput(
                f"variant={self.variant!r} must keep all support vectors, also those of earlier functions",
                got=f"a budget, max_support={self.max_support}, with on_full={self.on_full!r}",
                advice="Use variant='plain', or 'averaged' with on_full='projectron'.",
            )

    def _begin(self, points: Points) -> None:
        self.kernel_ = resolve_kernel(self.kernel, points)

    def _new_learner(self, points: Points) -> OnlinePerceptron | Projectron | Forgetron:
        k = len(self.classes_)
        if self.max_support is None:
            return OnlinePerceptron(k, self.variant)
        if self.on_full == "forgetron":
            return Forgetron(k, int(self.max_support))
        return Projectron(k, int(self.max_support), float(self.eta), self.variant == "averaged")

    def _rows(self, points: Points, which: Index | None = None) -> Gram:
        return streamed(self.kernel_, points if which is None else points.take(which), dtype=np.float64)

    def _full_pass(self, points: Points, codes: Index) -> Callable[[Index], int] | None:
        if self.max_support is not None or points.n > MATRIX_ROWS or 2 * 8 * points.n**2 > memory_budget():
            return None
        learner: OnlinePerceptron = self._learner
        return learner.passes(self._rows(points), codes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> KernelPerceptron:
        """As for every online classifier. A bare Precomputed() is refused: it has no values for later points.

        Parameters
        ----------
        X, y : array or frame, array
            n points and their labels; or a single point and its label.
        classes
            All labels that may occur in the stream; required at the first call.
        """
        if getattr(self.kernel, "pairwise", False):
            raise InvalidInput(
                "`partial_fit` requires a kernel that compares new points with earlier ones",
                got="a bare Precomputed()",
                advice="Use Precomputed(K), whose points are positions in K, or call `fit`.",
            )
        super().partial_fit(X, y, classes)
        return self

    def _seen_examples(self) -> tuple[Points | None, Index, Index]:
        if self.max_support is not None:
            return super()._seen_examples()
        learnt = self._learner.learnt
        return self._learner.support(), learnt.codes, learnt.rows


@dataclass(eq=False, repr=False)
class Perceptron(OnlineClassifier):
    """The perceptron on the columns of X: f(x) = wᵀx + b, where y·x is added to w whenever sgn f(x) is not y.

    It is the kernel perceptron with the kernel xᵀz (with an intercept xᵀz + 1, like a column of ones) and makes the
    same mistakes, at a cost that does not grow with their number. It is also stochastic gradient descent with step 1 on
    max(0, −y f(x)). sgn(0) = −1, the first of the classes. Votes need the support set: use
    mc.KernelPerceptron(mc.Linear(), variant="voted").

    Parameters
    ----------
    fit_intercept : bool
        Whether f has a constant b.
    max_iter : int
        The largest number of passes over the data in `fit`; it stops after a pass without mistakes.
    variant : str
        "plain" predicts by the last weights, "averaged" by the mean of the weights after each example.
    shuffle : bool
        Whether `fit` visits the points in random order, a new one in each pass.
    random_state : int, Generator or None
        The seed of these orders.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    coef_, intercept_ : array, float or array
        w, shape (d,), and b; with more than two classes shape (d, classes) and (classes,).
    mistakes_, t_ : int
        The number of mistakes, and of examples, in all passes or chunks.
    mistakes_per_pass_, n_iter_
        The mistakes in each pass of `fit`, and the number of passes.
    support_ : array
        Positions of the misclassified examples (in the data of `fit`, or in the stream), each once.
    kernel_ : Kernel
        xᵀz, or xᵀz + 1.
    function_ : Expansion
        f as an `Expansion` in the kernel xᵀz with the tail b: w is a function of that space.
    status_ : str
        How the fit ended.

    References
    ----------
    Rosenblatt, The perceptron, 1958. Novikoff, On convergence proofs for perceptrons, 1962.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-3.0, 1.0]])
    >>> model = mc.Perceptron(max_iter=10).fit(X, [True, True, False, False])
    >>> model.coef_, model.intercept_, model.mistakes_, model.status_
    (array([2., 1.]), 1.0, 1, 'converged: no mistakes in pass 2')
    >>> model.predict([[1.0, 1.0], [-1.0, -1.0]])
    array([ True, False])
    """

    _: KW_ONLY
    fit_intercept: bool = True
    max_iter: int = 1
    variant: str = "plain"
    shuffle: bool = False
    random_state: Any = 0

    @property
    def coef_(self) -> Matrix:
        """w, shape (d,), or (d, classes)."""
        check_is_fitted(self)
        W = np.array(self._learner.coef[:, :-1])
        return W[0] if len(W) == 1 else W.T

    @property
    def intercept_(self) -> Any:
        """b, a number, or one per class."""
        check_is_fitted(self)
        b = np.array(self._learner.coef[:, -1])
        return float(b[0]) if len(b) == 1 else b

    @property
    def function_(self) -> Expansion:
        """f as the function ⟨w, ·⟩ of the Hilbert space of xᵀz, and b as its tail."""
        check_is_fitted(self)
        W, tail = self._learner.coef[:, :-1], Tail.constant(self.intercept_) if self.fit_intercept else None
        return Expansion(Linear(), W, np.ones(1) if len(W) == 1 else np.eye(len(W)), tail)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_whole_number(self.max_iter, "max_iter")
        check_choice(self.variant, "variant", ("plain", "averaged"))

    def _begin(self, points: Points) -> None:
        self.kernel_ = Linear() + Constant(1.0) if self.fit_intercept else Linear()

    def _new_learner(self, points: Points) -> PrimalPerceptron:
        return PrimalPerceptron(
            points.vectors().shape[1], len(self.classes_), self.variant, intercept=bool(self.fit_intercept)
        )

    def _rows(self, points: Points, which: Index | None = None) -> Any:
        X = points.vectors()
        if which is None:
            return X
        consecutive = len(which) == which[-1] - which[0] + 1 and bool((np.diff(which) == 1).all())
        return X[which[0] : which[-1] + 1] if consecutive else X[which]
