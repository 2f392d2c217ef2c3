"""Constants that only steer time or memory are next to each other in each folder, and each has a measured workload."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import mercer as mc

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
PACKAGE = Path(mc.__file__).parent
# Names of block sizes and of sizes from which threads are used: what they mean has one place.
STEERING = re.compile(r"BLOCK|CHUNK|STRIP|ENTRIES|TILE(?!D)|AT_ONCE|BUFFER|PARALLEL|THREAD|FLOPS|CACHE|HELD$")
# They mean something else: how much of a file is read at a time, how often the clock is read, limits of exponents, and
# tasks for each thread of a cluster, which benchmarks/dask_cluster.py runs.
OTHERS = {
    "data.dask_rows.PER_THREAD",
    "cli.sources.BLOCK",
    "files.__init__._BLOCK",
    "solvers.smo.CHUNK",
    "problems.losses.HELD",
    "_loops.likelihoods.HELD",
}


@pytest.fixture(scope="module")
def table():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("constants", BENCHMARKS / "constants.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def defined(path):
    """The names in capitals that a module defines by numbers."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                elements = target.elts if isinstance(target, ast.Tuple) else [target]
                names += [e.id for e in elements if isinstance(e, ast.Name) and e.id.isupper()]
    return names


def full_name(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def test_every_constant_has_a_workload_and_words(table):
    constants = table.constants()
    assert set(table.CASES) == set(constants)
    assert all(constants.values()), "a line after each constant says what it means"


def test_modules_of_costs_are_in_the_table(table):
    homes = {full_name(path) for path in PACKAGE.rglob("costs.py")}
    assert homes == {module for module in table.MODULES if module.endswith("costs")}
    for home in homes:
        names = defined(PACKAGE / (home.replace(".", "/") + ".py"))
        assert {f"{home}.{name}" for name in names} <= set(table.constants()), home


def test_no_other_module_has_one(table):
    words = re.compile(STEERING.pattern.replace("$", ""))  # anywhere in the text: parsing takes longer than looking
    steering = [path for path in PACKAGE.rglob("*.py") if words.search(path.read_text(encoding="utf-8"))]
    found = {f"{full_name(path)}.{name}" for path in steering for name in defined(path) if STEERING.search(name)}
    assert found - set(table.constants()) == OTHERS


def test_a_constant_is_scaled_and_keeps_its_type(table, monkeypatch):
    from mercer.solvers import costs

    monkeypatch.setattr(costs, "FIRST_VARIABLES", 2)
    monkeypatch.setattr(costs, "MANY_VECTORS", 0.5)
    assert table.put("solvers.costs.FIRST_VARIABLES", 0.25) == 2
    assert table.put("solvers.costs.MANY_VECTORS", 4.0) == 0.5
    assert (costs.FIRST_VARIABLES, costs.MANY_VECTORS) == (1, 2.0)
