"""The models that `mc.tune` can tune, by their criterion, and the kernels in a grid of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.multiclass import type_of_target

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.models.base import Matrix, Rows, resolve_kernel, shortened
from mercer.tuning.ranges import WIDTHS, ranges, slots


class RidgeProblem(NamedTuple):
    """The kernel ridge regression that a model solves: its criteria are closed forms.

    Attributes
    ----------
    kernel : Kernel
        The kernel for these rows.
    y : array
        The targets that the model fits, shape (n, t).
    tail : array or None
        The functions without a penalty at the points, shape (n, m), or None.
    """

    kernel: Kernel
    y: Matrix
    tail: Matrix | None


@runtime_checkable
class RidgeTunable(Protocol):
    """A model with the parameters `kernel` and `alpha` that is kernel ridge regression."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As in scikit-learn."""

    def ridge_problem(self, rows: Rows) -> RidgeProblem:
        """The problem on these rows; an error if the model solves another one."""


@runtime_checkable
class FoldTunable(Protocol):
    """A model with the parameters `kernel` and `C`, compared on folds.

    `tunable` names the parameters that a grid may name beside the kernel, C first; `path` fits a model for each C.
    """

    tunable: tuple[str, ...]

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> Any:
        """One fitted model for each C."""


def stratified(model: Any, y: Any) -> bool:
    """Whether each fold should have its share of each value of y: as in scikit-learn, for classifiers."""
    return is_classifier(model) and type_of_target(y) in ("binary", "multiclass")


@dataclass(frozen=True, eq=False)
class Recipe:
    """A kernel that is built from the rows to fit on.

    Attributes
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for the median width.
    changes
        Parameters to replace, by name.
    shifts : array or None
        Numbers to add to `theta`, the logarithms of the kernel's free parameters, or None.
    suggested : bool
        Whether the widths, before they are shifted, are those that the data suggests.
    others
        Further parameters of the model.
    indefinite : bool
        Whether the model accepts functions that are not positive semidefinite.
    """

    kernel: Any
    changes: dict[str, Any] = field(default_factory=dict)
    shifts: Matrix | None = None
    suggested: bool = False
    others: dict[str, Any] = field(default_factory=dict)
    indefinite: bool = False

    def __call__(self, points: Points) -> Kernel:
        kernel = resolve_kernel(self.kernel, points, indefinite=self.indefinite)
        kernel = kernel.replace(**self.changes) if self.changes else kernel
        if self.shifts is None:
            return kernel
        theta = kernel.theta
        if self.suggested:
            starts = [one.start for one in ranges(kernel, points, np.ones((points.n, 1)))]
            theta = np.where(widths(kernel, points), starts, theta)
        low, high = kernel.bounds.T
        return kernel.with_theta(np.clip(theta + self.shifts, low, high))


def widths(kernel: Kernel, points: Points) -> NDArray[np.bool_]:
    """Which free parameters are widths."""
    return np.array([slot.unit in WIDTHS for slot in slots(kernel, points)], dtype=bool)


def recipes(
    kernel: Any, grid: Mapping[str, Any], parameters: Sequence[str], *, indefinite: bool = False
) -> list[Recipe]:
    """Every combination of the values that a grid has for the kernel and for the model's further parameters.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the model, used if the grid has none.
    grid
        Values by name.
    parameters : sequence of str
        Names of the model's parameters; the first is the penalty, which has an axis of its own.
    indefinite : bool
        As in `Recipe`.
    """
    if not isinstance(grid, Mapping):
        raise InvalidInput(
            "`grid` must be a dictionary of values by parameter name",
            got=shortened(grid),
            advice=f"Pass a dictionary such as {{{parameters[0]!r}: [1.0, 10.0], 'kernel__sigma': [0.5, 1.0]}}.",
        )
    inside = [name for name in grid if name not in parameters]
    wrong = [name for name in inside if not isinstance(name, str) or name.partition("__")[0] != "kernel"]
    if wrong:
        raise InvalidInput(
            f"`grid` must name {', '.join(parameters)}, `kernel`, or parameters of the kernel",
            got=repr(wrong[0]),
            advice=f"Use names such as {parameters[0]!r} and 'kernel__sigma'.",
        )
    names = [*(name for name in parameters[1:] if name in grid), *sorted(inside)]
    combinations = []
    for values in product(*([plain(v) for v in listed(name, grid[name])] for name in names)):
        changes = dict(zip(names, values))
        others = {name: changes.pop(name) for name in parameters if name in changes}
        base = changes.pop("kernel") if "kernel" in changes else kernel
        inner = {name.removeprefix("kernel__"): value for name, value in changes.items()}
        combinations.append(Recipe(base, inner, others=others, indefinite=indefinite))
    return combinations


def listed(name: str, values: Any) -> list[Any]:
    """The values of one parameter of a grid."""
    some = list(values) if np.iterable(values) and not isinstance(values, (str, bytes, Mapping)) else []
    if not some:
        example = "[mc.Linear(), mc.Gaussian(1.0)]" if name == "kernel" else "[0.1, 1.0]"
        raise InvalidInput(
            f"`grid` must hold a list of at least one value for {name!r}",
            got=shortened(values),
            advice=f"Pass a list, such as {{{name!r}: {example}}}.",
        )
    return some


def plain(value: Any) -> Any:
    """A value as a plain Python object, as models show their parameters: 1.0, not np.float64(1.0)."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
