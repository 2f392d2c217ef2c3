"""The options that assign roles to columns: --category, --date, --text, --number, --drop, --group and others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mercer.cli.names import no_column
from mercer.data.molecules import INSTALL
from mercer.errors import InvalidInput

if TYPE_CHECKING:
    from mercer.cli.speaking import Voice
    from mercer.data.roles import Role

OPTIONS = {
    "category": "category", "date": "date", "text": "text", "molecule": "molecule", "number": "number", "drop": "drop",
    "group": "group", "time_column": "time", "exposure": "exposure", "weight": "weight",
}  # fmt: skip
"""The role that each option assigns; `--date` also takes COLUMN=FORMAT."""


@dataclass(frozen=True)
class Assigned:
    """The roles that options assign.

    Attributes
    ----------
    roles : dict
        The roles by the names of the columns.
    formats : dict
        The formats of dates that --date states, such as {"day": "%d/%m/%Y"}.
    """

    roles: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)

    def of(self, role: str) -> list[str]:
        """The columns of a role."""
        return [name for name, given in self.roles.items() if given == role]

    def one(self, role: str) -> str | None:
        """The column of a role that only one can have, or None."""
        return next(iter(self.of(role)), None)


def assigned(options: dict[str, Any], names: list[str], file: str, target: str | None = None) -> Assigned:
    """The roles that options assign to the columns of a file with these names.

    >>> found = assigned({"category": ["zip"], "date": ["day=%d/%m/%Y"], "weight": "w"}, ["zip", "day", "w"], "a.csv")
    >>> found.roles, found.formats
    ({'zip': 'category', 'day': 'date', 'w': 'weight'}, {'day': '%d/%m/%Y'})
    """
    roles: dict[str, str] = {}
    formats: dict[str, str] = {}
    by_option: dict[str, str] = {}
    for option, role in OPTIONS.items():
        flag = f"--{option.replace('_', '-')}"
        for given in _listed(options.get(option)):
            name, _, format = given.partition("=") if given not in names and option == "date" else (given, "", "")
            if name not in names:
                raise no_column(name, names, file, flag)
            if name == target:
                raise InvalidInput(
                    f"{flag} must name another column than the target",
                    got=repr(name),
                    advice=f"Remove {flag} {name}, or choose another --target.",
                )
            if name in roles and roles[name] != role:
                raise InvalidInput(
                    "A column can have one role",
                    got=f"{by_option[name]} and {flag} for {name!r}",
                    advice="Remove one of the two options.",
                )
            roles[name], by_option[name] = role, flag
            if format:
                formats[name] = format
    return Assigned(roles, formats)


def _listed(values: Any) -> Iterable[str]:
    return () if values is None else (values,) if isinstance(values, str) else values


def note_columns(voice: Voice, columns: Iterable[Role]) -> None:
    """Report the columns that are not used, and assumptions about others."""
    from mercer.data.frames import kind_of_type  # imports NumPy, for which a refused option must not wait

    for role in columns:
        number = kind_of_type(role.dtype) == "number"
        if not role.kind and role.by != "assigned":
            option = f"; --{'number' if number else 'category'} {role.name} uses it" if role.by != "type" else ""
            voice.note(f"column {role.name!r} is not used: {role.why}{option}")
        elif role.kind and role.by == "name":
            voice.note(
                f"column {role.name!r} is read as categories, not as numbers: {role.why}; --number {role.name} "
                "reads it as numbers"
            )
        elif role.kind == "molecule" and role.by == "values":
            voice.note(f"column {role.name!r} is read as molecules: {role.why}; --text {role.name} reads it as text")
        elif role.installable:
            voice.note(
                f"column {role.name!r} is read as text; with RDKit its SMILES would be read as molecules: {INSTALL}"
            )
