"""The loops of `trees`, compiled. Nothing here starts a thread."""

from __future__ import annotations

import numba

from . import trees

subset = numba.njit(cache=True, nogil=True)(trees.subset)
partial = numba.njit(cache=True, nogil=True)(trees.partial)
