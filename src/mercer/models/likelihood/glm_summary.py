"""The table of a fitted generalised linear model: the estimates and their uncertainty."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
# A longer table shows its first and last rows only, so that it fits on a screen or two.
SHOWN_ROWS = 60


@dataclass(frozen=True, eq=False)
class Summary:
    """A fit in words and numbers; `print` shows it, and so does a notebook.

    Attributes
    ----------
    title : str
        The name of the model.
    facts : dict
        Names and values of the statistics of the whole fit, in order.
    names : list of str
        The names of the coefficients, the intercept last; empty for a kernel.
    table : array
        Coefficient, standard error, z, p and both ends of the confidence interval, shape (p, 6).
    coverage : float
        The coverage of the confidence intervals.
    notes : tuple of str
        Remarks below the table.
    statistic : str
        "t" if the dispersion was estimated, else "z".

    Examples
    --------
    >>> print(Summary("GLM", {"rows": "3"}, ["x0"], np.array([[1.0, 0.5, 2.0, 0.0455, 0.02, 1.98]]), 0.95))
    GLM
    rows  3
    <BLANKLINE>
        coefficient  std. error      z       p   2.5 %  97.5 %
    x0            1         0.5  2.000  0.0455    0.02    1.98
    """

    title: str
    facts: dict[str, str]
    names: list[str]
    table: Matrix
    coverage: float = 0.95
    notes: tuple[str, ...] = ()
    statistic: str = "z"

    @property
    def columns(self) -> list[str]:
        """The headings of the table's columns."""
        tail = 50.0 * (1.0 - self.coverage)
        return ["coefficient", "std. error", self.statistic, "p", f"{tail:.3g} %", f"{100.0 - tail:.4g} %"]

    def _rows(self) -> list[list[str]]:
        """The headings and the rows of the table as text, the names first."""
        rows = [[name, *_formatted(row)] for name, row in zip(self.names, self.table)]
        if len(rows) > SHOWN_ROWS:
            left_out = f"… {len(rows) - SHOWN_ROWS} more"
            rows = [*rows[: SHOWN_ROWS - 5], [left_out, *[""] * 6], *rows[-5:]]
        return [["", *self.columns], *rows]

    def __str__(self) -> str:
        lines = [self.title]
        if self.facts:
            width = max(map(len, self.facts))
            lines += [f"{name:<{width}}  {value}" for name, value in self.facts.items()]
        if len(self.names):
            rows = self._rows()
            widths = [max(len(row[j]) for row in rows) for j in range(7)]
            widths[5:] = [max(widths[5:])] * 2
            lines.append("")
            for row in rows:
                cells = [f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:]))]
                lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        facts = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in self.facts.items()
        )
        parts = [f"<p><b>{html.escape(self.title)}</b></p>", f"<table>{facts}</table>"]
        if len(self.names):
            head, *body = self._rows()
            cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in body]
            top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
            parts.append(f"<table><tr>{top}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
        return "\n".join([*parts, *(f"<p>{html.escape(note)}</p>" for note in self.notes)])


def _formatted(row: Matrix) -> list[str]:
    """The numbers of one row as text: four or five digits each, p with four decimals."""
    coef, error, z, p, low, high = (float(v) for v in row)
    return [
        f"{coef:.5g}",
        f"{error:.4g}",
        f"{z:.3f}",
        "< 1e-4" if p < 1e-4 else f"{p:.4f}",
        f"{low:.4g}",
        f"{high:.4g}",
    ]
