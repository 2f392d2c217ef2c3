"""`mercer kernels` and `mercer check`: the list of kernels, and whether an expression is a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.speaking import Voice
from mercer.errors import InvalidInput
from mercer.words import count, one_line

CHECKED = 500
"""The largest number of rows of a file on which Mercer's condition is checked: the eigenvalues cost O(n³)."""


def kernels(voice: Voice, name: str | None) -> None:
    """List all kernels with their formulas, or describe one of them."""
    from difflib import get_close_matches

    from mercer.kernels.catalogue import catalogue

    entries = catalogue()
    if name is not None:
        chosen = [entry for entry in entries if entry.name.lower() == name.lower()]
        if not chosen:
            near = get_close_matches(name.lower(), [entry.name.lower() for entry in entries], 1, 0.65)
            close = next((e.name for e in entries if near and e.name.lower() == near[0]), None)
            raise InvalidInput(
                "NAME must be one of the kernels that `mercer kernels` lists",
                got=repr(name),
                advice=f"Did you mean {close}?" if close else "Run `mercer kernels` to see all of them.",
            )
        entry = chosen[0]
        voice.say(f"{entry.name}: {entry.formula}", strong=True)
        voice.pairs(
            [
                ("use", entry.purpose),
                ("input", entry.space),
                ("tags", ", ".join(entry.tags)),
                *[("parameters" if k == 0 else "", _parameter(p)) for k, p in enumerate(entry.parameters)],
                ("proof", entry.proof),
                ("example", entry.example + ("" if entry.textual else "   (in Python only)")),
            ]
        )
    else:
        titles = {
            "kernel": "Kernels",
            "rule": "Rules that build kernels from kernels",
            "weight": "Weights, for smoothing only",
            "conditional": "Conditionally positive definite (used with a polynomial)",
            "indefinite": "Not positive semidefinite",
        }
        for kind, title in titles.items():
            of_kind = [entry for entry in entries if entry.kind == kind]
            if of_kind:
                voice.say(title, strong=True)
                voice.table(["name", "formula", "example"], [[e.name, e.formula, e.example] for e in of_kind])
                voice.say()
        voice.say('Next: mercer kernels Gaussian, or mercer check "0.5 * Gaussian(1.0) + Linear()"')
        chosen = entries
    fields = ("name", "kind", "formula", "purpose", "space", "tags", "example", "textual", "proven", "proof")
    voice.document(
        {
            "command": "kernels",
            "kernels": [
                {f: getattr(e, f) for f in fields}
                | {"parameters": [{"name": p.name, "domain": p.domain, "default": p.default} for p in e.parameters]}
                for e in chosen
            ],
        }
    )


def _parameter(p: Any) -> str:
    default = "required" if p.required else f"default {p.default}"
    return f"{p.name} ({p.symbol}): {p.domain}, {default}" if p.symbol != p.name else f"{p.name}: {p.domain}, {default}"


def check(
    voice: Voice, expression: str, *, data: str | None, dim: int, drop: tuple[str, ...], reading: dict[str, Any]
) -> int:
    """Show a proof or a counterexample; exit code 0 if the kernel is proven (and holds on the data), else 1."""
    from mercer.kernels.algebra.expression import parse
    from mercer.kernels.vectors.splines import ConditionalKernel

    kernel = parse(expression)
    content: dict[str, Any] = {"command": "check", "expression": expression, "kernel": repr(kernel)}
    if isinstance(kernel, (mc.Weight, ConditionalKernel)):
        reason = (
            "It is a smoothing weight, which has no Hilbert space."
            if isinstance(kernel, mc.Weight)
            else "It is only conditionally positive definite: mc.RBFInterpolator uses it with a polynomial."
        )
        voice.say(f"{kernel!r} is not a kernel. {reason}")
        voice.document(content | {"proven": False, "reason": reason})
        return 1
    proof = kernel.proof()
    content |= {"proven": proof.valid, "proof": _tree(proof)}
    lines = [str(proof)]
    if not proof.valid:
        unproven = "; ".join(f"{step.claim}: {step.rule}" for step in proof.unproven[:3])
        lines = [
            f"{kernel!r} is not proven to be a kernel ({one_line(unproven)}).",
            _search_counterexample(voice, kernel, dim, content),
        ]
    psd = True
    if data is not None:
        condition = _on_data(voice, kernel, data, drop, reading, content)
        psd = condition.psd
        lines += ["", f"{data}: {condition}"]
    for text in lines:
        voice.say(text)
    voice.document(content)
    return 0 if proof.valid and psd else 1


def _search_counterexample(voice: Voice, kernel: Any, dim: int, content: dict[str, Any]) -> str:
    """The result of a search for a counterexample, in words."""
    with voice.progress("searching for a counterexample"):
        try:
            refutation = mc.refute(kernel, dim=dim) if kernel.space == "vectors" else mc.refute(kernel)
        except (InvalidInput, TypeError) as error:
            return f"No counterexample was searched for: {one_line(str(error))}"
    content["refuted"] = refutation.refuted
    if refutation.refuted:
        content["counterexample"] = {
            "points": [np.asarray(x).tolist() if isinstance(x, np.ndarray) else x for x in refutation.points],
            "vector": np.asarray(refutation.vector).tolist(),
            "value": refutation.value,
            "gram": np.asarray(refutation.gram).tolist(),
        }
    return str(refutation)


def _on_data(
    voice: Voice, kernel: Any, data: str, drop: tuple[str, ...], reading: dict[str, Any], content: dict[str, Any]
) -> Any:
    """Mercer's condition on the rows of a file, or on a sample of them."""
    import polars as pl

    from mercer.cli.reading import read
    from mercer.cli.tables import dropped

    table = read(data, **reading)
    for note in table.notes:
        voice.note(note)
    X = table.frame
    if isinstance(X, pl.DataFrame):
        X = dropped(X, drop, data)
        if kernel.space == "vectors":
            X = _numbers(voice, X, data)
    n = X.shape[0]
    if n > CHECKED:
        rows = np.sort(np.random.default_rng(0).permutation(n)[:CHECKED])
        voice.note(f"the condition is checked on a sample of {CHECKED} of {n:,} rows")
        X = X[rows]
    condition = mc.check(kernel, X)
    content["data"] = {
        "path": data, "rows": int(X.shape[0]), "psd": condition.psd, "smallest": float(condition.eigenvalues[0]),
        "largest": float(condition.eigenvalues[-1]), "tolerance": condition.tolerance, "rank": condition.rank,
    }  # fmt: skip
    return condition


def _numbers(voice: Voice, X: Any, data: str) -> Any:
    """The numeric columns, without the rows that have missing values."""
    others = [name for name, dtype in X.schema.items() if not dtype.is_numeric()]
    if len(others) == X.width:
        raise InvalidInput(
            f"{data} must have numeric columns for this kernel",
            got="none",
            advice="Use a kernel for other columns, such as NGrams(3).on('text').",
        )
    if others:
        voice.note(f"ignored columns that are not numeric: {', '.join(map(repr, others[:5]))}")
    complete = X.drop(others).drop_nulls()
    if complete.height < X.height:
        voice.note(f"dropped {count(X.height - complete.height, 'row')} with missing values")
    if not complete.height:
        raise InvalidInput(
            f"{data} must have rows without missing values", got="none", advice="Drop columns with --drop."
        )
    return complete


def _tree(proof: Any) -> dict[str, Any]:
    """A proof as nested dictionaries."""
    return {
        "claim": proof.claim,
        "rule": proof.rule,
        "condition": proof.condition,
        "reference": proof.reference,
        "kind": proof.kind,
        "premises": [_tree(premise) for premise in proof.premises],
    }
