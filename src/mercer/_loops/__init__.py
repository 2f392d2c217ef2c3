"""Compiled inner loops: arrays in, arrays out, nothing else.

A Gram matrix is filled tile by tile, and a tile costs a matrix product, an elementwise function and a trip through
memory. NumPy gives the product; everything a tile needs beside it is here, so that the rest of Mercer can speak of
kernels only. This is the one folder that imports Numba. Importing it compiles nothing, and Numba itself is imported
when a large tile or `smo` first needs it (`tiles` leaves small tiles to NumPy); every function compiles on its first
call for a dtype and is then kept on disk. The functions release the interpreter lock and start no threads: the caller
runs them on several tiles at once.
"""

from __future__ import annotations

from typing import Any

__all__ = ["smo", "tiles"]


def __getattr__(name: str) -> Any:
    if name == "tiles":
        import mercer._loops.tiles as tiles

        return tiles
    if name == "smo":
        import mercer._loops.smo as smo

        return smo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
