"""Roles that a user assigns to the columns of a table, by name.

A feature has a role that says how its values are read and compared: "number", "ordered", "date", "category",
"tokens", "text" or "molecule" (SMILES texts). Five roles are those of columns that are not features:

    drop        the column is not used at all
    exposure    time, area or number at risk: the target is a count over it
    weight      how often a row counts in the fit
    group       rows of one group stay together when rows are held out
    time        rows are held out in the order of time, the latest last
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from mercer.data import frames
from mercer.errors import InvalidInput

Array = NDArray[Any]

FeatureRole = Literal["number", "ordered", "date", "category", "tokens", "text", "molecule"]
"""The roles of features: how their values are read."""
OtherRole = Literal["drop", "exposure", "weight", "group", "time"]
"""The roles of columns that are not features."""
FEATURES: tuple[str, ...] = get_args(FeatureRole)
OTHERS: tuple[str, ...] = get_args(OtherRole)
ROLES = (*FEATURES, *OTHERS)
SINGLE = tuple(role for role in OTHERS if role != "drop")
"""Roles that at most one column can have."""
FORMER = {"ignore": "drop"}
"""Names that roles had in earlier versions."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The columns of a table by their roles.

    Attributes
    ----------
    X : array, frame or list of objects
        The features.
    exposure, weight : Array or None
        Numbers, one per row, or None if no column has that role.
    group, time : Array or None
        The values of these columns, one per row, or None.
    """

    X: Any
    exposure: Array | None = None
    weight: Array | None = None
    group: Array | None = None
    time: Array | None = None


@dataclass(frozen=True)
class Roles:
    """The roles that a user assigned to columns.

    Attributes
    ----------
    features : dict
        The roles of features, by the names of their columns.
    drop : tuple of str
        The columns that are not used.
    exposure, weight, group, time : str or None
        The column of that role, or None.

    Examples
    --------
    >>> roles = Roles.of({"hospital": "category", "id": "drop", "years": "exposure"})
    >>> roles.features, roles.drop, roles.exposure, roles.weight
    ({'hospital': 'category'}, ('id',), 'years', None)
    """

    features: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    exposure: str | None = None
    weight: str | None = None
    group: str | None = None
    time: str | None = None

    @classmethod
    def of(cls, roles: Any) -> Roles:
        """The roles of a mapping {column: role}, checked; None or an empty mapping assigns none."""
        assigned = checked(roles)
        single: dict[str, str] = {}
        for name, role in assigned.items():
            if role in SINGLE and role in single:
                raise InvalidInput(
                    f"At most one column can have the role {role!r}",
                    got=f"{single[role]!r} and {name!r}",
                    advice="Assign it to one of them, and another role to the other.",
                )
            if role in SINGLE:
                single[role] = name
        features = {name: role for name, role in assigned.items() if role in FEATURES}
        return cls(features, tuple(name for name, role in assigned.items() if role == "drop"), **single)

    @property
    def others(self) -> dict[str, str]:
        """The columns that are not features, with their roles."""
        single = {role: getattr(self, role) for role in SINGLE}
        return dict.fromkeys(self.drop, "drop") | {name: role for role, name in single.items() if name is not None}

    def __bool__(self) -> bool:
        return bool(self.features or self.others)

    def require(self, names: Iterable[str]) -> None:
        """Raise if a column of these roles is not among the names."""
        names = list(names)
        for name in (*self.features, *self.others):
            if name not in names:
                raise no_column(name, names, "a role is assigned to it")

    def apart(self, X: Any) -> Parts:
        """The features of a table, and the values of the columns with other roles.

        >>> import pandas as pd
        >>> visits = pd.DataFrame({"age": [40, 50], "patient": [1, 1], "days": [3.0, 9.0]})
        >>> parts = Roles.of({"patient": "group", "days": "exposure"}).apart(visits)
        >>> list(parts.X.columns), parts.group, parts.exposure
        (['age'], array([1, 1]), array([3., 9.]))
        """
        if not self:
            return Parts(X)
        if not frames.is_frame(X):
            raise InvalidInput(
                "Roles are assigned to the columns of a data frame, by name",
                got=f"a {type(X).__name__}",
                advice="Pass a pandas or Polars frame, or omit `roles`.",
            )
        names = frames.column_names(X)
        self.require(names)
        others = self.others.items()
        values = {role: frames.arrays(frames.selected(X, [name]))[0] for name, role in others if role != "drop"}
        rest = [name for name in names if name not in self.others]
        if not rest:
            raise InvalidInput(
                "A table must have a column that is a feature",
                got=f"other roles for all columns: {self.others}",
                advice="Take a column out of `roles`, or pass more columns.",
            )
        return Parts(frames.selected(X, rest), **values)


def checked(roles: Any) -> dict[str, str]:
    """A mapping {column: role} as a dictionary, or an error that names the unknown role."""
    try:
        assigned = dict(roles or {})
    except (TypeError, ValueError):
        raise InvalidInput(
            "`roles` must be a mapping from columns to roles", got=repr(roles)[:80],
            advice="Pass a dictionary such as {'zip': 'category', 'id': 'drop'}.",
        ) from None  # fmt: skip
    for name, role in assigned.items():
        if role not in ROLES and role not in FORMER:
            near = get_close_matches(str(role), ROLES, 1)
            raise InvalidInput(
                f"The role of a column must be one of {', '.join(map(repr, ROLES))}",
                got=f"{role!r} for {name!r}",
                advice=f"Did you mean {near[0]!r}?" if near else "Choose one of them, or omit the column.",
            )
    return {str(name): str(FORMER.get(role, role)) for name, role in assigned.items()}


def no_column(name: str, names: list[str], why: str) -> InvalidInput:
    """The error about a column that a table lacks."""
    near = get_close_matches(name, names, 1, 0.65)
    return InvalidInput(
        f"The table must have the column {name!r}, since {why}",
        got=f"columns {names if len(names) <= 20 else [*names[:20], '…']}",
        advice=f"Did you mean {near[0]!r}?" if near else "Check the name of the column.",
    )
