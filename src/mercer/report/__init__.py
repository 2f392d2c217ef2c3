"""A fitted model on one page: its data, scores, plots, worst predictions and kernel, and how to reproduce it.

The report is one HTML file without external parts. It has a light and a dark style, and it can be printed.
"""

from mercer.report.document import write

__all__ = ["write"]
