"""The estimator that the automatic regressor and classifier share."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import memory
from mercer.data.assignment import Parts, Roles
from mercer.data.batches import Batches, is_source
from mercer.data.frames import arrays, column_names, selected
from mercer.errors import InvalidInput
from mercer.models.auto.columns import Columns
from mercer.models.auto.plan import Clock, Stop
from mercer.models.auto.record import Choices
from mercer.models.auto.search import Search
from mercer.models.auto.stages import LastFit
from mercer.models.auto.streamed import Source, StreamedSearch
from mercer.models.auto.task import Fit, Task
from mercer.models.base import KernelEstimator, check_columns, keeping, outside
from mercer.rkhs.expansion import Expansion
from mercer.validation import check_function, check_number

# The beginning of `status_` if the search was stopped.
STOPPED = {
    "time": "the search was stopped at its time limit of {:.3g} s, so that another run may choose differently",
    "progress": "`progress` ended the search before it was done",
}


class AutoModel(KernelEstimator):
    """The shared part of `AutoRegressor` and `AutoClassifier`: parameters, the search, and its record."""

    _added: ClassVar[dict[str, Any]] = {"stopped_by_": None, "columns_": Columns(), "last_fit_": None}

    kernel: Any
    roles: Any
    time: Any
    budget: Any
    loss: Any
    random_state: Any
    progress: Any
    model_: Any

    @property
    def function_(self) -> Expansion:
        """The fitted function in the space of `kernel_`."""
        check_is_fitted(self)
        f: Expansion = self.model_.function_
        return f

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The leave-one-out prediction of each row that `model_` was fitted to, if it has them."""
        check_is_fitted(self)
        return np.asarray(self.model_.loo_predictions_)

    def _parts(self, X: Any, sample_weight: Any, exposure: Any = None) -> Parts:
        """The features, exposures and weights of the rows to fit on, from columns or arguments. Sets `columns_`."""
        roles = Roles.of(self.roles)
        if roles.features and self.kernel is not None:
            name, role = next(iter(roles.features.items()))
            raise InvalidInput(
                "Roles of features are for the kernels that the model makes itself, from the columns",
                got=f"{name!r} as {role!r}, and a kernel",
                advice=f"Omit `kernel`, or use the rule kernel=mc.TableKernel(roles={{{name!r}: {role!r}}}).",
            )
        parts = roles.apart(X)
        for name, column, argument in (
            ("sample_weight", parts.weight, sample_weight),
            ("exposure", parts.exposure, exposure),
        ):
            if column is not None and argument is not None:
                raise InvalidInput(
                    f"`{name}` must be given once",
                    got="an argument of `fit`, and a column in `roles`",
                    advice="Omit one of them.",
                )
        self.columns_ = Columns.of(X, roles, chosen=self.kernel is None)
        exposure = parts.exposure if exposure is None else exposure
        return Parts(self.columns_.select(X), exposure, parts.weight if sample_weight is None else sample_weight)

    def _source(
        self, X: Any, y: Any, sample_weight: Any, exposure: Any, target: str | None, *, classes: bool
    ) -> Source | None:
        """The rows of a source in batches, after one pass over them; None if X is in memory."""
        if not is_source(X):
            if target is not None:
                raise InvalidInput(
                    "`target` names a column of a file",
                    got=f"target={target!r} with X in memory",
                    advice="Pass y instead.",
                )
            return None
        batches = Batches.of(X, y, target)
        clock, roles = self._checked_clock(), Roles.of(self.roles)
        return Source.of(batches, y, sample_weight, exposure, roles, clock, self.random_state, classes=classes)

    def _search(self, X: Any, task: Task, source: Source | None = None) -> Self:
        """Search, and keep the last fit; after an interrupt too, which is raised again."""
        search: Search
        if source is None:
            search = Search(task, self._checked_clock(), self.kernel, self.random_state, self.columns_)
        else:
            search = StreamedSearch(source, task, source.clock, self.kernel, self.random_state, self.columns_)
        try:
            self._keep(X, search, search.run())
        except KeyboardInterrupt as stop:
            self._keep(X, search, search.in_haste())
            raise keeping(self, stop) from None
        return self

    def _checked_clock(self) -> Clock:
        seconds = check_number(self.time, "time", above=0, infinite=True, advice="Pass a number of seconds such as 60.")
        advice = "Pass print to see every trial."
        check_function(self.progress, "progress", kind="a function of one argument", advice=advice)
        memory.budget(self.budget)
        return Clock(seconds, self.progress)

    def _keep(self, X: Any, search: Search, fit: Fit) -> None:
        self.loss_, self.model_ = fit.loss.name, fit.model
        self.kernel_, self.status_ = fit.model.kernel_, fit.model.status_
        self.choices_: Choices = search.record.done()
        self.stopped_by_: Stop | None = search.clock.stop
        self.last_fit_: LastFit | None = search.last
        self.rows_ = search.task.kept if fit.rows is None else search.task.kept[fit.rows]
        if self.stopped_by_ in STOPPED:
            self.status_ = f"{STOPPED[self.stopped_by_].format(search.clock.seconds)}; {self.status_}"
        check_columns(self, X, reset=True)

    def _training_only(self) -> tuple[str, ...]:
        return ("rows_",)

    def _features(self, X: Any) -> Any:
        """The features of new rows, checked against those of `fit`; columns with other roles are ignored."""
        check_is_fitted(self)
        X = self.columns_.select(X)
        check_columns(self, X, reset=False)
        return X

    def _exposures(self, X: Any, exposure: Any) -> Any:
        """The exposures of new rows, from a column or the argument; None if there are none."""
        check_is_fitted(self)
        name = self.columns_.exposure
        if exposure is not None or name is None:
            return exposure
        if name in column_names(X):
            return arrays(selected(X, [name]))[0]
        warnings.warn(
            f"The rows have no column {name!r}, which is the exposure: predictions are rates, per unit of exposure. "
            "Add the column, or pass `exposure=1.0`.",
            UserWarning,
            stacklevel=outside(),
        )
        return None
