"""A fitted model without its fit: the same estimator with the parameters that it chose, to fit to other rows."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mercer.data.assignment import Roles


def with_choices(model: Any) -> Any:
    """An unfitted copy of a fitted model whose kernel, loss and penalty are those that the model chose.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> model = mc.KernelRidge(alpha="loo").fit(X, X[:, 0])
    >>> with_choices(model).alpha == model.alpha_
    True
    """
    again = clone(model)
    if hasattr(model, "columns_"):  # an automatic model
        others = dict.fromkeys(model.columns_.left_out, "drop") | Roles.of(model.roles).others
        return again.set_params(kernel=model.model_.kernel_, loss=model.loss_, roles=others or None)
    known = again.get_params(deep=False)
    if "alpha" in known and hasattr(model, "alpha_"):
        again.set_params(alpha=model.alpha_)
    if known.get("tune") is not None:
        again.set_params(tune=None, kernel=model.kernel_)
    return again
