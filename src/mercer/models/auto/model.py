"""The estimator that the automatic regressor and classifier share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import memory
from mercer.models.auto.plan import Clock, Stop
from mercer.models.auto.record import Choices
from mercer.models.auto.search import Search
from mercer.models.auto.task import Fit, Task
from mercer.models.base import KernelEstimator, check_columns, keeping
from mercer.rkhs.expansion import Expansion
from mercer.validation import check_function, check_number

# The beginning of `status_` if the search was stopped.
STOPPED = {
    "time": "the {:g} s were over before the search was done, so that another run may choose otherwise",
    "progress": "`progress` ended the search before it was done",
}


class AutoModel(KernelEstimator):
    """The shared part of `AutoRegressor` and `AutoClassifier`: parameters, the search, and its record."""

    kernel: Any
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

    def _search(self, X: Any, task: Task) -> Self:
        """Search, and keep the last fit; after an interrupt too, which is raised again."""
        search = Search(task, self._checked_clock(), self.kernel, self.random_state)
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
        if self.stopped_by_ in STOPPED:
            self.status_ = f"{STOPPED[self.stopped_by_].format(search.clock.seconds)}; {self.status_}"
        check_columns(self, X, reset=True)

    def _check_queries(self, X: Any) -> None:
        check_is_fitted(self)
        check_columns(self, X, reset=False)
