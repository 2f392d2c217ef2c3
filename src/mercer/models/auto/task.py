"""The parts that a search is composed of: a task (numbers or classes), and the losses that can be chosen for it.

`Search` runs a fixed sequence. A `Task` holds the rows and knows how their targets are described and compared; a
`LossChoice` knows the estimator of one loss, its cost, the targets it is fitted to and its calibration after the fit.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.data.points import Points
from mercer.models.auto.entry import Entry, Problem
from mercer.models.auto.record import Question
from mercer.models.base import Matrix

if TYPE_CHECKING:
    from mercer.models.auto.search import Search

Index = NDArray[np.int64]
# Pairs that a support vector machine may move for each row while C is chosen.
PAIRS_PER_ROW = 1000


@contextmanager
def quietly() -> Iterator[None]:
    """Ignore warnings of candidates that stop early: the status of the last fit reports its own end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class LeftOut(NamedTuple):
    """Rows that were left out of a fit, each by itself.

    Attributes
    ----------
    values
        The values of the model there, shape (s, t).
    y, weights, exposure
        Their targets, and weights and exposures or None.
    """

    values: Matrix
    y: NDArray[Any]
    weights: Matrix | None
    exposure: Matrix | None


class Cost(NamedTuple):
    """The cost of a fit.

    Attributes
    ----------
    evaluations : float
        The cost of an exact fit, counted in evaluations of the race's criterion on the same rows.
    steps : float
        The number of Newton steps of a fit on centres.
    """

    evaluations: float
    steps: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and its loss.

    Attributes
    ----------
    loss : LossChoice
        The loss; calibrated, once the fit is finished.
    model : estimator
        The fitted estimator.
    rows : Index or None
        The positions of the rows that it was fitted to, or None for all.
    held_out : Index or None
        The positions of the rows that were left out for the calibration.
    staged : bool
        Whether it was fitted on centres, in stages, because an exact fit is not affordable.
    """

    loss: LossChoice
    model: Any
    rows: Index | None = None
    held_out: Index | None = None
    staged: bool = False


@dataclass(frozen=True, eq=False)
class LossChoice(ABC):
    """A loss with everything that its fit needs.

    Attributes
    ----------
    task : Task
        The task that it belongs to.
    entry : Entry
        The kernel and its penalty for least squares, from the race.
    """

    task: Task
    entry: Entry

    name: ClassVar[str]
    by_all_rows: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Parameters of the estimator that the fit to rows in batches chooses anew."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """The cost of a fit."""

    @abstractmethod
    def estimator(self) -> Any:
        """The estimator, not fitted yet."""

    @property
    def weights(self) -> Matrix | None:
        """The weights of all rows in the fit."""
        return self.task.weights

    def transformed(self, y: NDArray[Any]) -> NDArray[Any]:
        """The targets on the scale that the estimator is fitted to."""
        return y

    def held_out(self, rows: Index) -> Index:
        """Those of these rows that the last fit leaves out for the calibration."""
        return rows[:0]

    def finished(self, fit: Fit, search: Search) -> Fit:
        """The fit with a calibrated loss, or one of another loss that turned out better."""
        return fit

    def calibrated_on(self, rows: LeftOut) -> LossChoice:
        """The loss calibrated on rows that were left out of the fit to all."""
        return self


class Task(ABC):
    """The rows of a search, and how their targets are described, sampled and compared.

    Attributes
    ----------
    points, y, weights : Points, array, array or None
        n points, their targets or labels, and weights or None.
    kept
        The positions of these rows among those that were passed, of which some may have weight 0.
    requested : str
        The requested loss, or "auto".
    settings
        The parameters that all estimators share: `budget` and `random_state`.
    advice : dict
        How to decide differently, in Python, by the question that was decided.
    fewest : int
        The smallest number of rows that a sample may have.
    """

    points: Points
    y: NDArray[Any]
    weights: Matrix | None
    kept: Index
    requested: str
    settings: dict[str, Any]
    advice: dict[Question, str]
    fewest: int = 0
    in_memory: ClassVar[str]
    """The loss that needs all rows in memory."""

    @abstractmethod
    def describe(self) -> tuple[str, str]:
        """The kind of the targets, and a summary of them."""

    @abstractmethod
    def too_few(self) -> str:
        """The reason why kernels cannot be compared on these rows, or an empty text."""

    @abstractmethod
    def problem(self, points: Points, units: Matrix | None, names: tuple[str, ...]) -> Problem:
        """The least squares problem on which kernels are compared, of the same rows."""

    @abstractmethod
    def default(self, entry: Entry) -> LossChoice:
        """The loss before losses are compared."""

    @abstractmethod
    def fitted(self, y: NDArray[Any], w: Matrix | None, exposure: Matrix | None) -> tuple[NDArray[Any], Matrix | None]:
        """The targets and weights with which rows outside of the task are fitted, such as all rows of a source."""

    @abstractmethod
    def losses(self, search: Search) -> Iterator[LossChoice]:
        """Compare losses and record why: yields each that is better than those before."""

    def order(self, rng: np.random.Generator) -> Index:
        """The rows in random order: any number of the first are a sample."""
        return rng.permutation(len(self.y))

    @property
    def roots(self) -> Matrix | None:
        """√w, or None."""
        return None if self.weights is None else np.sqrt(self.weights)
