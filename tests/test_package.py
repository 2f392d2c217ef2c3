"""The package as a newcomer meets it: what import costs, which names there are, that they are typed and explained."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mercer as mc

HEAVY = ("sklearn", "matplotlib", "pandas", "polars", "dask", "torch", "numba")


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout


def test_import_loads_nothing_heavy():
    code = "import sys, mercer; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = ast.literal_eval(run(code))
    assert not set(loaded) & set(HEAVY)


@pytest.mark.thorough
def test_building_and_proving_an_expression_needs_no_compiler():
    code = (
        "import sys, mercer as mc; print((mc.Gaussian(1.0) + mc.Linear()).proof().valid, "
        "sorted(m for m in sys.modules if '.' not in m))"
    )
    valid, _, loaded = run(code).partition(" ")
    assert valid == "True"
    assert not set(ast.literal_eval(loaded)) & set(HEAVY)


def test_stub_names_what_the_package_loads():
    stub = ast.parse(Path(inspect.getfile(mc)).with_suffix(".pyi").read_text())
    found = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = {name: f"{home}.{name}" for name, home in mc._NAMES.items()} | mc._MODULES
    assert found == lazy


@pytest.mark.parametrize("name", sorted(mc.__all__))
def test_every_public_name_is_explained_with_a_runnable_example(name):
    value = getattr(mc, name)
    if inspect.ismodule(value):
        assert value.__doc__
        return
    assert value.__doc__, name
    texts = [value.__doc__]
    if inspect.isclass(value):
        texts += [getattr(value, name).__doc__ or "" for name in vars(value) if not name.startswith("_")]
    assert any(">>>" in text for text in texts), f"{name} has no example"


def test_dir_and_unknown_names():
    assert set(mc.__all__) <= set(dir(mc))
    with pytest.raises(AttributeError, match="nonsense"):
        mc.nonsense  # noqa: B018


@pytest.mark.thorough
def test_without_callbacks_in_scikit_learn_models_fit_and_say_so():
    code = (
        "import sys, sklearn.model_selection; sys.modules['sklearn.callback'] = None\n"
        "import numpy as np, mercer as mc\n"
        "X = np.linspace(0, 1, 20)[:, None]\n"
        "print(mc.SVC(mc.Gaussian(0.2)).fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5))\n"
        "print(mc.LogisticRegression(alpha=1.0).fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5))\n"
        "try:\n"
        "    mc.SVC().set_callbacks(mc.SolverProgress())\n"
        "except mc.InvalidInput as error:\n"
        "    print(error)\n"
    )
    first, second, words = run(code).splitlines()
    assert (float(first), float(second)) == (1.0, 1.0)
    assert "callbacks need scikit-learn 1.9 or newer, got scikit-learn" in words
