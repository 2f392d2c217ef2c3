"""Online classifiers: passes over data or a stream in chunks, the classes of a stream, and predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.base import (
    KernelEstimator,
    Matrix,
    check_columns,
    keeping,
    refitted,
    shortened,
    shown,
    training_points,
)
from mercer.models.callbacks import CallbackSupportMixin, with_callbacks
from mercer.models.labels import Labelled, decided, labels
from mercer.models.perceptron.bound import mistake_bound
from mercer.rkhs.expansion import Expansion
from mercer.solvers.perceptron import Index
from mercer.threads import spans

REGRESSOR = "KernelRidge"
"""The model that an error recommends if the labels look like numbers to be predicted."""


class OnlineClassifier(ClassifierMixin, CallbackSupportMixin, KernelEstimator):  # type: ignore[misc]  # no types
    """A classifier that learns from one example after the other; a subclass provides the learner.

    A subclass has the parameters `max_iter`, `shuffle` and `random_state`.
    """

    max_iter: int
    shuffle: bool
    random_state: Any
    _learner: Any

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters."""

    @abstractmethod
    def _begin(self, points: Points) -> None:
        """Set `kernel_` for these points."""

    @abstractmethod
    def _new_learner(self, points: Points) -> Any:
        """An object with `learn(chunk, codes, rows)`, `values(queries)`, `seen`, `mistakes`, `rows` and `chunk`."""

    @abstractmethod
    def _rows(self, points: Points, which: Index | None = None) -> Any:
        """All points, or those at these positions, as arguments of `learn` and `values`."""

    def _full_pass(self, points: Points, codes: Index) -> Callable[[Index], int] | None:
        """A function that makes a whole pass in a given order, if that is faster than chunk by chunk; else None."""
        return None

    # -- fit ----------------------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Begin with f = 0 and make up to `max_iter` passes over n points X and their labels y, of any kind.

        An interrupt (Ctrl-C) keeps the function learnt until then. scikit-learn's callbacks are called after every
        chunk, with metadata["seen"] and metadata["mistakes"]. There is no `sample_weight`: the effect of an example
        depends on its position in the order, so a weight could not stand for repetitions.
        """
        self._check()
        random = _orders(self.random_state)
        points = training_points(X)
        data = Labelled.of(points, y, model=type(self).__name__, regressor=REGRESSOR)
        self._start(points, X, data.classes)
        self._seen = points.n
        self._passes(points, data.codes, X, y, random if self.shuffle else None)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more examples, in their order: one pass over a chunk of any size.

        The result does not depend on how a stream is cut into chunks.

        Parameters
        ----------
        X, y : array or frame, array
            n points and their labels; or a single point and its label.
        classes
            All labels that may occur in the stream; required at the first call. A chunk need not contain all.
        """
        if y is not None and np.ndim(y) == 0:
            X, y = data_set(X), [y]
        self._check()
        points = training_points(X)
        first = not hasattr(self, "_learner")
        known = self._known(classes, first)
        codes = coded(labels(y, points.n, REGRESSOR), known)
        with refitted(self) if first else nullcontext():
            if first:
                self._start(points, X, known)
            else:
                check_columns(self, X, reset=False)
                self.kernel_.touch(points)
            self._learn(points, codes)
        return self

    def _learn(self, points: Points, codes: Index) -> None:
        learner, step = self._learner, self._learner.chunk
        try:
            for span in spans(points.n, step):
                which = None if points.n <= step else np.arange(span.start, span.stop)
                rows = np.arange(self._seen, self._seen + span.stop - span.start)
                learner.learn(self._rows(points, which), codes[span], rows)
                self._seen += span.stop - span.start
        finally:
            self._report(f"online: {learner.mistakes} mistakes in {learner.seen} examples")

    def _start(self, points: Points, X: Any, classes: NDArray[Any]) -> None:
        self.classes_ = classes
        self._begin(points)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)
        self._learner = self._new_learner(points)
        self._seen, self.n_iter_ = 0, 1
        self.mistakes_per_pass_: list[int] = []
        self._report("not trained yet")

    def _known(self, classes: Any, first: bool) -> NDArray[Any]:
        if classes is None:
            if first:
                raise InvalidInput(
                    "`classes` must be passed at the first call of partial_fit",
                    got="None",
                    advice="Pass all labels that may occur in the stream, as classes=[...].",
                )
            return np.asarray(self.classes_)
        try:
            known = np.unique(labels(classes, len(classes), REGRESSOR))
        except TypeError:
            raise InvalidInput(
                "`classes` must be a list of labels", got=shortened(classes), advice="Pass a list such as [0, 1]."
            ) from None
        if len(known) < 2:
            raise InvalidInput(
                "`classes` must be at least two different labels",
                got=f"{len(known)} class",
                advice="Pass all labels that may occur in the stream.",
            )
        if not first and not np.array_equal(known, self.classes_):
            raise InvalidInput(
                f"`classes` must be the same as in the first call, {shortened(self.classes_.tolist())}",
                got=shortened(known.tolist()),
                advice="Leave out `classes` after the first call.",
            )
        return known

    def _passes(self, points: Points, codes: Index, X: Any, y: Any, random: np.random.RandomState | None) -> None:
        n, learner = points.n, self._learner
        visit = self._full_pass(points, codes) if self.max_iter > 1 else None
        step = n if visit is not None else learner.chunk
        self.status_, report = "", self._reporter(self.max_iter * -(-n // step), X, y)
        clean = False
        try:
            for number in range(1, self.max_iter + 1):
                self.n_iter_ = number
                order = np.arange(n) if random is None else random.permutation(n).astype(np.int64)
                self.mistakes_per_pass_.append(0)
                for span in spans(n, step):
                    which = order[span]
                    if visit is not None:
                        mistakes = visit(which)
                    else:
                        whole = random is None and n <= step
                        chunk = self._rows(points, None if whole else which)
                        mistakes = learner.learn(chunk, codes[which], which)
                    self.mistakes_per_pass_[-1] += mistakes
                    if not report():
                        self._report("stopped by the caller")
                        return
                clean = self.mistakes_per_pass_[-1] == 0
                if clean:
                    break
        except KeyboardInterrupt as stop:
            self._report("interrupted")
            raise keeping(self, stop) from None
        plural = "es" if self.n_iter_ > 1 else ""
        self._report(
            f"converged: no mistakes in pass {self.n_iter_}"
            if clean
            else f"stopped after {self.n_iter_} pass{plural}, with {self.mistakes_per_pass_[-1]} mistakes in the last"
        )
        report(end=True)

    def _reporter(self, steps: int, X: Any, y: Any) -> Callable[..., bool]:
        """A function that reports one step to the callbacks, and returns whether to go on."""
        if not getattr(self, "_skl_callbacks", None):
            return lambda end=False: True
        context = self._init_callback_context(max_subtasks=steps)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def report(end: bool = False) -> bool:
            if end:
                # The model already holds all that predictions need.
                return not context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes=dict)
            task = context.subcontext("chunk")
            task.call_on_fit_task_begin(estimator=self)
            metadata = {"seen": self._learner.seen, "mistakes": self._learner.mistakes}
            return not task.call_on_fit_task_end(estimator=self, metadata=metadata)

        return report

    def _report(self, status: str) -> None:
        """Set the status and the counts of examples and mistakes."""
        self.status_, self.t_, self.mistakes_ = status, self._learner.seen, self._learner.mistakes

    @property
    def support_(self) -> Index:
        """Positions of the examples that f consists of, in the order in which they were added."""
        check_is_fitted(self)
        return np.array(self._learner.rows)

    # -- predict ------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Matrix:
        """f(x) for m points, shape (m,), positive for the second class; with more classes (m, classes)."""
        points = self._queries(X)
        values: Matrix = self._learner.values(self._rows(points))
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: of two the second if f(x) > 0; of more the first with the largest value."""
        return decided(self.decision_function(X), self.classes_)

    def _seen_examples(self) -> tuple[Points | None, Index, Index]:
        """The misclassified examples, their classes and positions, if the model keeps them."""
        raise InvalidInput(
            "`mistake_bound` requires the examples, since this model does not keep those that it misclassified",
            got="X = None",
            advice="Pass both X and y.",
        )

    def mistake_bound(self, u: Any, X: Any = None, y: Any = None) -> float:
        """‖u‖²·max k(x, x)/(min y·u(x))²: a perceptron never makes more mistakes, if u separates the classes.

        The bound holds for every u, for any order of the examples and for all passes together. With several classes u
        consists of one function for each, y·u(x) is the margin of the right class over the others, and the bound is
        twice as large.

        Parameters
        ----------
        u : Expansion
            A separating function of the same kernel, without a tail.
        X, y : array or frame, array
            The examples. By default those that were misclassified: the proof needs no others.
        """
        check_is_fitted(self)
        if isinstance(u, Expansion) and u.kernel != self.kernel_:
            raise InvalidInput(
                f"`u` must be a function of this model's kernel, {self.kernel_!r}",
                got=repr(u.kernel),
                advice="Pass an Expansion in the same kernel, such as the function_ of a model with that kernel.",
            )
        if X is not None:
            points = self._queries(X)
            codes, rows = coded(labels(y, points.n, REGRESSOR), self.classes_), np.arange(points.n)
            return mistake_bound(u, points, codes, len(self.classes_), rows)
        seen, codes, rows = self._seen_examples()
        return 0.0 if seen is None else mistake_bound(u, seen, codes, len(self.classes_), rows)


def _orders(random_state: Any) -> np.random.RandomState:
    """The random generator for the order of the points; RandomState, so that orders agree with scikit-learn's."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise InvalidInput(
            "`random_state` must be a whole number ≥ 0 and < 2³², a NumPy RandomState, or None",
            got=shortened(random_state),
            advice="Pass a seed such as 0, for the same order each time.",
        ) from None


def data_set(x: Any) -> Any:
    """One example as a data set of one row; a data set unchanged."""
    if isinstance(x, np.ndarray) and x.ndim == 1:
        return x[None]
    rows = isinstance(x, (list, tuple)) and len(x) and isinstance(x[0], (list, tuple, np.ndarray))
    return x if rows or getattr(x, "ndim", 0) == 2 else [x]


def coded(row_labels: NDArray[Any], classes: NDArray[Any]) -> Index:
    """The class number of each label."""
    number = {label: i for i, label in enumerate(classes.tolist())}
    different, inverse = np.unique(row_labels, return_inverse=True)
    codes = np.array([number.get(label, -1) for label in different.tolist()], dtype=np.int64)[inverse]
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InvalidInput(
            f"Labels must be among the classes {shortened(classes.tolist())}",
            got=f"{shown(row_labels[row])} in row {row}",
            advice="Pass all labels that may occur as `classes` at the first call.",
        )
    return codes
