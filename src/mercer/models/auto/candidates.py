"""The kernels that an automatic model tries, by the types of the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from mercer.data.columns import as_array, tabled
from mercer.data.frames import is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import Points
from mercer.data.roles import Role
from mercer.kernels.algebra.values import Value
from mercer.kernels.base import Kernel
from mercer.kernels.molecules import MOLECULES
from mercer.kernels.strings.sequences import STRINGS
from mercer.kernels.tables.categories import Categorical
from mercer.kernels.tables.missing import Missing
from mercer.kernels.tables.rule import TableKernel
from mercer.kernels.tables.typed import Typed
from mercer.kernels.vectors.matern import Matern
from mercer.kernels.vectors.radial import Gaussian, RationalQuadratic
from mercer.kernels.vectors.stationary import Laplacian
from mercer.kernels.vocabulary import suited
from mercer.models.base import Matrix
from mercer.tuning.ranges import WIDTHS

Expression = TypeVar("Expression", bound=Value)


def spreads(points: Points) -> Matrix:
    """The standard deviation of every column; for a constant column its absolute value, or 1."""
    X = points.vectors()
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
        size = np.abs(mean)
    else:
        X = np.asarray(X, dtype=np.float64)
        size = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(size > 0, size, 1.0)
        deviation = unit * (X / unit).std(axis=0)  # the squares of large numbers would overflow
    tiny = deviation <= 1e-12 * size
    return np.asarray(np.where(tiny, np.where(size > 0, size, 1.0), deviation))


def families(d: int) -> dict[str, Kernel]:
    """Kernels on d columns of spread one, smooth to rough."""
    width = float(np.sqrt(d))
    return {
        "Gaussian": Gaussian(width),
        "Matern 5/2": Matern(1.5 * width, 2.5),
        "Matern 3/2": Matern(2.0 * width, 1.5),
        "Matern 1/2": Matern(4.0 * width, 0.5),
        "Laplacian": Laplacian(float(d)),
        "RationalQuadratic": RationalQuadratic(width, alpha=1.0),
        # Beside an intercept a wide Gaussian is linear: exp(−‖x − z‖²/2σ²) ≈ ⟨x, z⟩/σ² + f(x) + f(z).
        "Gaussian + trend": Gaussian(width) + 10.0 * Gaussian(10.0 * width),
    }


def widened(kernel: Expression, factors: Matrix) -> Expression:
    """The kernel with the widths σ·factor, one per column."""
    changes = {name: getattr(kernel, name) * factors for name, unit in kernel.units.items() if unit in WIDTHS}
    return kernel.replace(**changes, **{name: widened(child, factors) for name, child in kernel.children.items()})


@dataclass(frozen=True)
class Candidates:
    """The kernels that an automatic model tries.

    Attributes
    ----------
    kernels : dict
        The kernels by name.
    units : array or None
        The spreads that are the units of numeric columns, or None.
    why : str
        The reason for these kernels.
    advice : str
        How to correct the guess of the kind of objects, in Python, if it may be wrong.
    """

    kernels: dict[str, Kernel]
    units: Matrix | None
    why: str
    advice: str = ""


def candidates(points: Points, roles: Mapping[str, str] | None = None) -> Candidates:
    """The kernels to try. `roles` are those of columns of a table whose types do not show them."""
    raw = points.raw
    space, kernels = suited(raw)
    if space is not None and kernels:
        return Candidates(kernels, None, f"{space}, compared as wholes", space.instead)
    if not is_frame(raw):
        spread = spreads(points)
        one = len(spread) == 1
        why = "one numeric column" if one else f"{len(spread)} numeric columns, each in units of its standard deviation"
        return Candidates(families(len(spread)), spread, why)
    plan = TableKernel(roles=roles or {}, interaction=2.0).explain(raw)
    several = sum(bool(role.kind) for role in plan.roles) > 1
    kernels = {"Additive with interactions" if several else "kernel of the column": plan.kernel}
    numbers = [r for r in plan.roles if r.kind == "number" and not r.missing]
    named = [r for r in plan.roles if r.kind in ("category", "code")]
    used = [r for r in plan.roles if r.kind]
    if len(used) == 1 and used[0].kind in ("text", "molecule"):
        kernels |= _of_an_only_column(used[0], raw)
    if numbers and len(numbers) + len(named) == len(used):
        names = tuple(r.name for r in numbers)
        width = np.sqrt(len(names)) * np.array([r.spread for r in numbers])
        words = Categorical([float(np.sqrt(len(named)))] * len(named)).on(*(r.name for r in named)) if named else None
        for name, kernel in (
            ("Gaussian", Gaussian(width)),
            ("Matern 3/2", Matern(2.0 * width, 1.5)),
            ("Laplacian", Laplacian(np.sqrt(len(names)) * width)),
        ):
            numeric = kernel.on(*names)
            kernels[f"{name} × categories" if named else name] = numeric if words is None else numeric * words
    summary = ", ".join(
        f"{sum(r.role == role for r in plan.roles)} {role}" for role in dict.fromkeys(r.role for r in plan.roles)
    )
    return Candidates(kernels, None, f"columns by kind: {summary}")


def _of_an_only_column(role: Role, table: Any) -> dict[str, Kernel]:
    """The kernels that suit the texts or molecules of the only feature of a table, as they would suit a list."""
    column = as_array(tabled(table)[role.name], role.name)
    space, kind = (MOLECULES, "molecules") if role.kind == "molecule" else (STRINGS, "texts")
    kernels = space.kernels(list(column[~missing_entries(column)]))
    return {name: Typed(Missing(kernel).on(role.name), **{kind: [role.name]}) for name, kernel in kernels.items()}
