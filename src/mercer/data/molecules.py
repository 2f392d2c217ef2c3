"""Molecules as SMILES texts: read by RDKit, an optional package, and recognised among other texts.

The letters of SMILES are atoms, its other characters bonds, branches, rings and brackets: "CC(=O)O", "c1ccccc1". A
column of texts is taken for molecules if at least 95 % of them could be SMILES, some of them have more than letters,
and RDKit reads them. Words, names and sequences of DNA or protein have letters that are not atoms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from mercer.errors import InvalidInput
from mercer.words import shown

ATOM = r"(\[[^\[\]\s]+\]|Br|Cl|[BCNOPSFIbcnops*])"
SMILES = re.compile(rf"{ATOM}({ATOM}|%\d\d|[-=#$:/\\.()\d])*(?<![-=#$:/\\.(])")
"""An atom, then atoms, bonds, branches and rings, not ending in a bond. RDKit knows which of these are molecules."""
BRACKETS = re.compile(r"\[[^\[\]\s]+\]")
BEYOND_LETTERS = re.compile(r"[=#()\[\]\d]")
SHARE = 0.95
"""A column of molecules may have a few texts that cannot be read; errors name them later."""
EXAMINED = 1000
"""Texts are judged by at most this many."""
INSTALL = "pip install 'mercer[molecules]'"

Recognised = Literal["molecules", "needs RDKit", "no"]


def molecules(objects: Iterable[Any]) -> list[Any]:
    """RDKit's molecules of SMILES texts; RDKit's own molecules pass."""
    chem = rdkit("Chem")
    with rdkit("rdBase").BlockLogs():  # the error below says it
        return [_required(chem, smiles, i) for i, smiles in enumerate(objects)]


def _required(chem: Any, smiles: Any, position: int) -> Any:
    found = molecule_or_none(chem, smiles)
    if found is None:
        raise InvalidInput(
            "Every molecule must be a valid SMILES text",
            got=f"{shown(smiles)} at position {position}",
            advice="Correct it or leave it out; rdkit.Chem.MolFromSmiles prints the reason.",
        )
    return found


def molecule_or_none(chem: Any, smiles: Any) -> Any:
    """RDKit's molecule of a SMILES text or of itself; None for anything else."""
    if isinstance(smiles, chem.Mol):
        return smiles
    return chem.MolFromSmiles(smiles) if isinstance(smiles, str) and smiles.strip() else None


def rdkit(module: str) -> Any:
    """A module of RDKit, or an error that says how to install it."""
    try:
        return import_module(f"rdkit.{module}")
    except ImportError:
        raise InvalidInput(
            "Reading SMILES needs RDKit", got="no package rdkit", advice=f"Install it: {INSTALL}."
        ) from None


def recognised(texts: Sequence[str]) -> Recognised:
    """Whether different texts are molecules, as far as the installed packages can tell.

    >>> recognised(["CCO", "c1ccccc1", "CC(=O)O"]), recognised(["yes", "NO", "C1"]), recognised(["ACGT", "GATTACA"])
    ('molecules', 'no', 'no')
    """
    some = texts[:: -(-len(texts) // EXAMINED) or 1]
    if not some or sum(map(_could_be, some)) < SHARE * len(some) or not any(map(BEYOND_LETTERS.search, some)):
        return "no"
    if find_spec("rdkit") is None:
        return "needs RDKit"
    chem = rdkit("Chem")
    with rdkit("rdBase").BlockLogs():
        read = sum(molecule_or_none(chem, text) is not None for text in some)
    return "molecules" if read >= SHARE * len(some) else "no"


def _could_be(text: str) -> bool:
    """Whether a text has the characters of SMILES, closes its branches, and names each ring twice."""
    if SMILES.fullmatch(text) is None or text.count("(") != text.count(")"):
        return False
    outside = BRACKETS.sub("", text)
    return "%" in outside or all(outside.count(ring) % 2 == 0 for ring in "0123456789")
