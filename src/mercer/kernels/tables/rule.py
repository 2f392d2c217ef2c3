"""From a table to a kernel: the role of each column, the similarity of its values, and how columns combine.

Every column j gives a similarity kⱼ between 0 and 1 that fits its kind: 1/(1 + (x − z)²/σ²) for numbers, 1[x = z] for
categories, the cosine of n-gram counts for texts, and so on. With d of them the kernel is

    k(x, z) = exp(c · (mean of kⱼ(xⱼ, zⱼ) − 1)),

an exponential of a sum of kernels, normalised: its functions hold the effects of every column and all of their
interactions, whose weight grows with c. No column has more than its share, so neither outliers nor irrelevant columns
drown the others. Far from all training rows, functions approach a constant: see docs/tables.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mercer.data.assignment import checked, no_column
from mercer.data.columns import tabled
from mercer.data.roles import PERIODS, Role, role_of
from mercer.errors import InvalidInput
from mercer.features.molecules import Fingerprint
from mercer.kernels.algebra.parameters import Fixed
from mercer.kernels.algebra.values import Value
from mercer.kernels.algebra.views import On
from mercer.kernels.base import Kernel
from mercer.kernels.sets import Intersection
from mercer.kernels.strings.degree import WeightedDegree
from mercer.kernels.strings.ngrams import NGrams
from mercer.kernels.tables.additive import Additive
from mercer.kernels.tables.categories import Categorical
from mercer.kernels.tables.missing import Missing
from mercer.kernels.tables.typed import KINDS, Typed
from mercer.kernels.vectors.histograms import MinMax
from mercer.kernels.vectors.stationary import Periodic
from mercer.validation import check_number

NUMBER_WIDTH = 0.5
"""σ of a column of numbers, in units of its spread."""
PERIOD_WIDTH = 0.7
"""σ of a period, on a circle of radius 1."""


class TableKernel(Value):
    """The rule table → kernel, as a value: `kernel=mc.TableKernel()` of any model learns its constants in `fit`.

    Columns of numbers, ordered categories, dates, categories, booleans, lists of tokens, texts and molecules (SMILES
    texts, if RDKit is installed) each get the kernel that fits them; constants and identifiers are left out.
    `explain(frame)` shows how each column is used.

    Parameters
    ----------
    missing : {"own", "refuse"}
        "own": a missing value is like another one of its column, and unlike all present values; "refuse": an error that
        names the column.
    roles : dict
        {column: role}, to overrule the data type: "number", "ordered", "date", "category", "tokens", "text" or
        "molecule"; all other roles, such as "drop", leave the column out.
    target : str or sequence of str
        The name of a column, or several, to leave out.
    interaction : float
        c > 0, how much interactions between columns matter; near 0 the effects of columns add up.

    Examples
    --------
    >>> import pandas as pd, mercer as mc
    >>> people = pd.DataFrame({"age": [31, 45, None, 52], "city": ["Rome", "Oslo", "Rome", None], "paid": [1, 0, 1, 1]})
    >>> print(mc.TableKernel().explain(people))
    column  dtype    role      kernel       why
    age     float64  number    Additive     numbers, spread 7.78; 1 missing
    city    str      category  Categorical  2 different values; 1 missing
    paid    int64    category  Categorical  two different numbers
    >>> model = mc.KernelRidge(mc.TableKernel(), alpha=0.01).fit(people, [1.0, 2.0, 1.5, 3.0])
    >>> model.predict(people.head(1)).round(1)
    array([1.])
    """

    missing: str = "own"
    roles: Any = ()
    target: Any = ()
    interaction: float = 1.0

    def check(self) -> None:
        if self.missing not in ("own", "refuse"):
            raise InvalidInput(
                "`missing` must be 'own' or 'refuse'", got=repr(self.missing), advice="Choose one of them."
            )
        roles = checked(self.roles)
        check_number(self.interaction, "interaction", above=0)
        target = (self.target,) if isinstance(self.target, str) else tuple(self.target)
        self._set(roles=tuple(sorted(roles.items())), target=target, interaction=float(self.interaction))

    def __call__(self, frame: Any) -> Kernel:
        """The kernel for tables like this one."""
        return self.explain(frame).kernel

    def explain(self, frame: Any) -> TablePlan:
        """The role of every column of the table, and the kernel: it prints as a table."""
        columns = tabled(frame)
        assigned = dict(self.roles)
        unknown = [name for name in (*assigned, *self.target) if name not in columns]
        if unknown:
            why = "a role is assigned to it" if unknown[0] in assigned else "`target` names it"
            raise no_column(unknown[0], list(columns), why)
        rest = {name: column for name, column in columns.items() if name not in self.target}
        if not rest or not len(next(iter(rest.values()))):
            raise InvalidInput(
                "A table must have rows and columns",
                got=f"{len(rest)} columns, without rows" if rest else "no column",
                advice="Check how the table was read.",
            )
        roles = tuple(role_of(name, column, assigned.get(name)) for name, column in rest.items())
        kernel = self._kernel(roles)
        leaves = _leaves(kernel)
        return TablePlan(tuple(replace(role, kernel=leaves.get(role.name, "")) for role in roles), kernel)

    def _kernel(self, roles: tuple[Role, ...]) -> Kernel:
        used = [role for role in roles if role.kind]
        if not used:
            raise InvalidInput(
                "A table must have a column that distinguishes its rows",
                got="; ".join(f"{r.name!r}: {r.why}" for r in roles[:5]),
                advice="Pass roles={column: 'number'} to overrule the data type.",
                option="Add --number or --category with a column that should be used.",
            )
        share = self.interaction / sum(1 + len(role.periods) for role in used)
        accepts_missing = self.missing == "own"

        def extended(kernel: Kernel) -> Kernel:
            return Missing(kernel) if accepts_missing else kernel

        numbers = [r for r in used if r.kind in ("number", "ordered", "date")]
        named = [r for r in used if r.kind in ("category", "code")]
        factors: list[Kernel] = []
        if numbers:
            widths = [NUMBER_WIDTH * r.spread for r in numbers]
            terms = [share * len(numbers) * Additive(widths).on(*(r.name for r in numbers))]
            for r in numbers:
                periods = [Periodic(PERIOD_WIDTH, period=Fixed(period)) for period in r.periods]  # type: ignore[arg-type]
                terms += [share * extended(periodic).on(r.name) for periodic in periods]
            factors.append(sum(terms[1:], start=terms[0]).exp().normalize())
        if named:
            factors.append(Categorical([share**-0.5] * len(named)).on(*(r.name for r in named)))
        wholes = [r for r in used if r.kind in ("text", "tokens", "molecule")]
        factors += [(share * extended(_of_objects(r))).exp().normalize().on(r.name) for r in wholes]
        kernel = factors[0]
        for factor in factors[1:]:
            kernel = kernel * factor
        lists: dict[str, list[Any]] = {f: [r.name for r in used if r.kind == kind] for f, kind in KINDS.items()}
        lists["ordered"] = [(r.name, r.levels) for r in used if r.kind == "ordered"]
        return Typed(kernel, **lists, complete=() if accepts_missing else tuple(r.name for r in used))

    def __repr__(self) -> str:
        fields: dict[str, Any] = {}
        if self.missing != "own":
            fields["missing"] = self.missing
        if self.roles:
            fields["roles"] = dict(self.roles)
        if self.target:
            fields["target"] = list(self.target)
        if self.interaction != 1.0:
            fields["interaction"] = self.interaction
        return f"TableKernel({', '.join(f'{k}={v!r}' for k, v in fields.items())})"


def _of_objects(role: Role) -> Kernel:
    """The kernel on texts, token lists or molecules, normalised."""
    if role.kind == "molecule":
        return MinMax().after(Fingerprint(counts=True))
    texts = WeightedDegree(5, shift=2) if role.aligned else NGrams((2, 4))
    return (texts if role.kind == "text" else Intersection()).normalize()


def _leaves(kernel: Kernel) -> dict[str, str]:
    """The leaves that compare the values of each column, by name."""
    leaves: dict[str, list[str]] = {}
    for node in kernel.nodes:
        if isinstance(node, On):
            for column in node.columns:
                leaves.setdefault(column, []).extend(map(_called, node.leaves))
    return {column: " + ".join(names) for column, names in leaves.items()}


def _called(leaf: Any) -> str:
    """The name of a leaf, for a periodic one with its period in words."""
    words = {days: period for period, days in PERIODS.items()}
    return f"Periodic ({words[float(leaf.period)]})" if isinstance(leaf, Periodic) else type(leaf).__name__


@dataclass(frozen=True)
class TablePlan:
    """The role of every column of a table, and the kernel that follows.

    Attributes
    ----------
    roles : tuple of Role
        One `Role` per column: name, dtype, role, kernel and why.
    kernel : Kernel
        The kernel of the whole table.

    Examples
    --------
    >>> import pandas as pd, mercer as mc
    >>> plan = mc.TableKernel().explain(pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": "x"}))
    >>> [(role.name, role.role) for role in plan.roles]
    [('a', 'number'), ('b', 'left out')]
    >>> plan.kernel
    Typed(exp(1.0 * Additive(sigma=[0.555...]).on('a')).normalize(), numbers=['a'])
    """

    roles: tuple[Role, ...]
    kernel: Kernel

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that the kernel does not look at, and why."""
        return {role.name: role.why for role in self.roles if not role.kind}

    def __str__(self) -> str:
        rows = [("column", "dtype", "role", "kernel", "why")]
        rows += [(r.name, r.dtype, r.role, r.kernel, r.why) for r in self.roles]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(row, widths)), row[4]]).rstrip() for row in rows)


def table_kernel(
    frame: Any,
    *,
    target: Any = (),
    missing: str = "own",
    roles: Any = (),
    interaction: float = 1.0,
) -> Kernel:
    """A kernel for tables like this one, from the types of its columns: see `TableKernel`.

    Parameters
    ----------
    frame
        A pandas or Polars frame, or rows without names (then columns are called x0, x1, …).
    target, missing, roles, interaction
        See `TableKernel`.

    Examples
    --------
    >>> import pandas as pd, mercer as mc
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0, 8.0], "colour": ["red", "red", "blue", "blue"]})
    >>> mc.table_kernel(frame)(frame).round(2)
    array([[1.  , 0.82, 0.39, 0.37],
           [0.82, 1.  , 0.42, 0.38],
           [0.39, 0.42, 1.  , 0.63],
           [0.37, 0.38, 0.63, 1.  ]])
    """
    return TableKernel(missing=missing, roles=roles, target=target or (), interaction=interaction)(frame)
