"""The catalogue: every public kernel once, with a formula that names its parameters and an example that works."""

from __future__ import annotations

import dataclasses
import inspect
import json
import unicodedata

import numpy as np
import pandas as pd
import pytest

import mercer as mc
from mercer.kernels.algebra.expression import parse
from mercer.kernels.catalogue import catalogue
from mercer.kernels.vocabulary import library
from mercer.testing import sample

ENTRIES = catalogue()
names = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def built(entry):
    return parse(entry.example) if entry.textual else eval(entry.example, {"mc": mc, "np": np})


def points(entry, kernel):
    if entry.space == "table":
        frame = pd.DataFrame({"age": [30.0, 41.0, 57.0, 30.0], "city": ["Bonn", "Ulm", "Bonn", "Kiel"]})
        columns = kernel.columns_read if isinstance(kernel, mc.Typed) else kernel.columns
        return frame if isinstance(columns[0], str) else frame[["age"]]
    if isinstance(kernel, mc.Missing):
        return np.array([[0.0], [np.nan], [2.5], [np.nan], [-1.0]])
    return np.abs(sample(kernel, 6)) if not entry.textual else sample(kernel, 6)


def test_every_public_kernel_appears_once():
    listed = [entry.name for entry in ENTRIES]
    assert len(listed) == len(set(listed))
    public = {name for name in mc.__all__ if name[0].isupper() and mc._NAMES[name].startswith("mercer.kernels.")}
    classes = {name: getattr(mc, name) for name in public}
    kernels = {n for n, c in classes.items() if inspect.isclass(c) and issubclass(c, mc.Similarity)}
    assert set(listed) == kernels - {"Kernel", "Similarity", "Weight"} == set(library())


@names
def test_texts_are_one_line(entry):
    for text in (entry.formula, entry.purpose, entry.example, entry.proof, *(p.domain for p in entry.parameters)):
        assert text == text.strip() != ""
        assert "\n" not in text
    assert len(entry.formula) <= 60
    assert len(entry.purpose) <= 100
    assert entry.purpose.endswith((".", ")"))


@names
def test_formulas_name_every_parameter(entry):
    plain = unicodedata.normalize("NFKC", entry.formula)
    for parameter in entry.parameters:
        assert unicodedata.normalize("NFKC", parameter.symbol) in plain


@names
def test_examples_work(entry):
    kernel = built(entry)
    assert type(kernel) is getattr(mc, entry.name)
    if entry.textual:
        assert parse(repr(kernel)) == kernel
    X = points(entry, kernel)
    K = kernel(X)
    assert K.shape == (len(X), len(X))
    assert np.isfinite(K).all()
    assert kernel.proof().valid == entry.proven
    if entry.proven:
        assert np.linalg.eigvalsh(K).min() > -1e-9 * np.abs(K).max()


@names
def test_what_is_no_kernel_says_why(entry):
    kernel = built(entry)
    if entry.proven:
        assert isinstance(kernel, mc.Kernel)
    else:
        assert any(word in entry.proof for word in ("not a kernel", "a kernel on a line only", "a Python function"))
    weight = isinstance(kernel, mc.Weight)
    assert entry.kind == "rule" or weight == (entry.kind == "weight")
    assert (entry.kind in ("conditional", "indefinite")) == (not weight and not isinstance(kernel, mc.Kernel))
    assert (entry.kind == "rule") == (bool(kernel.children) and entry.kind != "indefinite")
    unproven = ("weight", "conditional", "indefinite")
    assert entry.proven or entry.kind in unproven or weight or entry.name == "FromFunction"


@names
def test_parameters_are_those_of_the_constructor(entry):
    cls = getattr(mc, entry.name)
    signature = inspect.signature(cls).parameters
    assert [p.name for p in entry.parameters] == list(signature)
    kernel = built(entry)
    for parameter in entry.parameters:
        default = signature[parameter.name].default
        assert parameter.required or parameter.default == default
        others = {n: v for n, v in kernel.get_params(deep=False).items() if n != parameter.name}
        if parameter.required:
            with pytest.raises(TypeError if default is inspect.Parameter.empty else mc.InvalidInput):
                cls(**others)
        elif (entry.name, parameter.name) == ("Typed", "numbers"):
            with pytest.raises(mc.InvalidInput, match="'age', of no kind"):  # the column of its example
                cls(**others)
        else:
            assert getattr(cls(**others), parameter.name) == parameter.default
        own = [name for name in kernel.parameter_names if name.split("[")[0] == parameter.name]
        assert parameter.free == bool(own)


BAD = {">": 0.0, "≥": -0.5, "w": 0.5, "0": 3, "r": "a", "s": [[1.0, 2.0], [0.0, 1.0]], "k": 3.0j, "t": (), "p": None}
BAD |= {"T": 3, "v": 3, "n": "age"}


@names
def test_domains_are_checked_by_the_constructor(entry):
    kernel = built(entry)
    for parameter in entry.parameters:
        bad = 3 if parameter.domain.startswith("Python") else BAD[parameter.domain[0]]
        if entry.name == "Rescaled" and parameter.name == "f":
            continue  # it is called first when it is evaluated
        with pytest.raises(mc.InvalidInput):
            kernel.replace(**{parameter.name: bad})
        if parameter.domain == "≥ 0":
            assert getattr(kernel.replace(**{parameter.name: 0.0}), parameter.name) == 0


def test_vectors_of_widths_are_where_the_domain_says():
    for entry in ENTRIES:
        for parameter in entry.parameters:
            if parameter.name == "sigma":
                take = parameter.domain.endswith("one per column")
                if take:
                    assert built(entry).replace(sigma=[1.0, 2.0]).sigma.shape == (2,)
                else:
                    with pytest.raises(mc.InvalidInput):
                        built(entry).replace(sigma=[1.0, 2.0])


@names
def test_tags_are_those_of_the_class(entry):
    tags = built(entry).tags
    if entry.kind == "rule":
        assert entry.tags == ()
        return
    true = [name for name, value in dataclasses.asdict(tags).items() if value is True]
    assert list(entry.tags) == true + ([f"cpd of order {tags.cpd_order}"] if entry.kind == "conditional" else [])


def test_entries_are_plain_values():
    text = json.dumps([dataclasses.asdict(entry) for entry in ENTRIES], allow_nan=False)
    assert [entry["name"] for entry in json.loads(text)] == [entry.name for entry in ENTRIES]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ENTRIES[0].name = "other"
