"""The columns of a table that an automatic model uses: features, without identifiers, each with its role."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.data import frames
from mercer.data.assignment import Roles
from mercer.data.molecules import INSTALL
from mercer.data.points import Points
from mercer.data.roles import Role, kind_of_numbers, role_of

EXAMINED_ROWS = 20_000
"""The role of a feature is inferred from at most this many rows."""
NAMED = 5
"""At most this many columns are named in a decision."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table and how they are used; without roles for anything else, such as an array.

    Attributes
    ----------
    roles : tuple of Role
        The role of every column.
    assigned : dict
        The roles by which kernels read the features: those that the user assigned, and categories that were recognised
        by their names.
    numeric : bool
        Whether all features are numbers without missing values, so that the table is an array.
    """

    roles: tuple[Role, ...] = ()
    assigned: dict[str, str] = field(default_factory=dict)
    numeric: bool = False

    @classmethod
    def of(cls, X: Any, roles: Roles, *, chosen: bool) -> Columns:
        """The roles of the columns of X: those that the user assigned, and others by types, values and names.

        If the kernel was not `chosen` by the model but given by the user, it decides which features it reads.
        """
        if not frames.is_frame(X) or not (chosen or roles):
            return cls()
        assigned = roles.features | roles.others
        table = dict(zip(frames.column_names(X), frames.columns(X)))
        others = tuple(role_of(name, table[name], role) for name, role in roles.others.items())
        features = {name: column for name, column in table.items() if name not in roles.others}
        if not chosen:
            return cls(others, {})
        if set(roles.features.values()) <= {"number"} and is_numeric(frames.selected(X, list(features))):
            inferred = tuple(_of_numbers(name, column, name in assigned) for name, column in features.items())
            if not any(role.kind for role in inferred):  # an only column is a feature, even if it counts the rows
                inferred = tuple(_of_numbers(name, column, True) for name, column in features.items())
            if all(role.kind in ("number", "") for role in inferred):
                return cls(others + inferred, {}, numeric=True)
        inferred = tuple(_examined(name, column, assigned.get(name)) for name, column in features.items())
        by_name = {role.name: role.role for role in inferred if role.by == "name" and role.kind}
        return cls(others + inferred, roles.features | by_name)

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are not features, and why."""
        return {role.name: role.why for role in self.roles if not role.kind}

    @property
    def assumed(self) -> dict[str, str]:
        """The columns of numbers that are read as categories because of their names, and why."""
        return {role.name: role.why for role in self.roles if role.by == "name" and role.kind}

    @property
    def molecules(self) -> dict[str, str]:
        """The columns of texts that were recognised as molecules, and why."""
        return {role.name: role.why for role in self.roles if role.by == "values" and role.kind == "molecule"}

    @property
    def installable(self) -> list[str]:
        """The columns of texts that would be read as molecules if RDKit were installed."""
        return [role.name for role in self.roles if role.installable]

    @property
    def exposure(self) -> str | None:
        """The name of the column that is the exposure, or None."""
        return next((role.name for role in self.roles if role.role == "exposure"), None)

    def select(self, X: Any) -> Any:
        """The features, of the same table or of new rows; those of a mixed table are found by name, in any order."""
        if not self.roles or not frames.is_frame(X):
            return X
        names, used = frames.column_names(X), [role.name for role in self.roles if role.kind]
        if not self.numeric and used and set(used) <= set(names):
            return frames.selected(X, used)
        names = [name for name in names if name not in self.left_out]
        return frames.selected(X, names) if names else X

    def searchable(self, points: Points) -> Points:
        """The same rows; those of a frame of numbers as one array, from which rows are taken quickly."""
        return Points(np.ascontiguousarray(points.raw, dtype=np.float64)) if self.numeric else points

    def remarks(self) -> str:
        """The columns that are not used, and assumptions about others, in words."""
        unused = [role for role in self.roles if not role.kind and role.by != "assigned"]
        parts = [f"{role.name!r} is not used ({role.why})" for role in unused]
        parts += [f"{name!r} is read as categories ({why})" for name, why in self.assumed.items()]
        parts += [f"{name!r} is read as molecules ({why})" for name, why in self.molecules.items()]
        parts += [f"{name!r} is read as text (SMILES are molecules if RDKit is installed)" for name in self.installable]
        more = f" and {len(parts) - NAMED} more" if len(parts) > NAMED else ""
        return ", ".join(parts[:NAMED]) + more

    def advice(self) -> str:
        """How to overrule an assumption about a column, in Python; empty if there is none."""
        doubtful = [role for role in self.roles if role.by in ("name", "values") and role.role != "number"]
        name = next((role.name for role in doubtful if frames.kind_of_type(role.dtype) == "number"), None)
        if name is not None:
            return f"Pass roles={{{name!r}: 'number'}} to use that column as numbers."
        if self.installable:
            return f"Install RDKit to read {self.installable[0]!r} as molecules: {INSTALL}."
        molecules = next(iter(self.molecules), None)
        return "" if molecules is None else f"Pass roles={{{molecules!r}: 'text'}} to read that column as text."


def _examined(name: str, column: Any, assigned: str | None) -> Role:
    """The role of a column, by some of its rows if there are many.

    All rows decide whether it is left out, and all molecules must be valid.
    """
    n = len(column)
    if n <= EXAMINED_ROWS:
        return role_of(name, column, assigned)
    role = role_of(name, frames.rows(column, np.arange(0, n, -(-n // EXAMINED_ROWS))), assigned)
    whole = not role.kind or role.kind == "molecule" or frames.is_whole_type(role.dtype)
    return role_of(name, column, assigned) if whole else role


def _of_numbers(name: str, column: Any, assigned: bool) -> Role:
    """The role of a column of numbers without missing values: a number unless its name or its values say otherwise."""
    values = np.asarray(column)
    if assigned:
        return Role(name, str(values.dtype), "number", "numbers", "number", by="assigned")
    kind, why, by = kind_of_numbers(name, values)
    if kind == "code" and by == "values":  # two numbers are as far apart as two categories
        kind, why = "number", "numbers"
    words = "category" if kind == "code" else kind or "left out"
    return Role(name, str(values.dtype), words, why, kind, by=by)


def is_numeric(frame: Any) -> bool:
    """Whether all columns are numeric without missing values: then the table is an array."""
    try:
        if any(column.dtype.kind not in "iufb" for column in frames.arrays(frame[:1])):
            return False  # column by column: an array of dates and numbers would convert the dates to numbers
        A = np.asarray(frame)
    except (TypeError, ValueError):
        return False
    return A.dtype.kind in "iufb" and bool(np.isfinite(A).all() if A.dtype.kind == "f" else True)
