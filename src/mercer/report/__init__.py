"""A fitted model on one page: what it was given, what it is, how good it is, where it fails, how to get it again.

One HTML file without anything beside it: pictures are drawn into it, light and dark, and it prints.
"""

from mercer.report.document import write

__all__ = ["write"]
