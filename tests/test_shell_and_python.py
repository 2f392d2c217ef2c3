"""What `mercer fit`, `predict` and `evaluate` do, ten lines of Python do: same model, same scores, same intervals."""

from __future__ import annotations

import json

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import mercer as mc  # noqa: E402
from mercer.cli.app import run  # noqa: E402
from mercer.models import menu  # noqa: E402
from mercer.models.base import innermost  # noqa: E402
from mercer.models.conformal import with_intervals  # noqa: E402
from mercer.models.provenance import Provenance, provenance  # noqa: E402
from mercer.models.scores import Baseline, hold_out, judge  # noqa: E402


def in_python(path, target, name, drop, task="regression", **options):
    """The ten lines."""
    table = pl.read_csv(path)
    X, y = table.drop(target, drop), table[target].to_numpy()
    classes = task == "classification"
    train, test = hold_out(y, 0.2, classes=classes)
    fitted = menu.fit(name, X[train], y[train], task=task, **options)
    judgement = judge(fitted.model, X[test], y[test], Baseline.of(y[train], classes=classes), intervals=True)
    model = with_intervals(fitted.model, X[test], y[test])
    model.provenance_ = Provenance.of(
        X[train], y[train], classes=classes, data=path, target=target, scores=judgement.scores
    )
    model.save("python.mercer")
    return judgement


@pytest.fixture
def houses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    area, age = rng.uniform(0, 4, 150), rng.uniform(0, 3, 150)
    city = rng.choice(["Rome", "Oslo", "Lima"], 150)
    price = np.exp(0.5 + area / 2 - 0.2 * age + 0.3 * (city == "Rome") + 0.1 * rng.normal(size=150))
    frame = {"area": area, "age": age, "city": city, "rooms": rng.poisson(2 + area), "price": price}
    frame["large"] = np.where(area + rng.normal(size=150) > 2, "yes", "no")
    pl.DataFrame(frame).write_csv("houses.csv")
    return pl.read_csv("houses.csv")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("target", "drop", "name", "task", "centers"),
    [
        ("price", ["large"], "ridge", "regression", None),
        ("price", ["large"], "ridge", "regression", 20),
        ("price", ["large"], "svm", "regression", None),
        ("price", ["large", "city"], "linear", "regression", None),
        ("price", ["large", "city"], "neighbors", "regression", None),
        ("rooms", ["large", "price"], "poisson", "regression", 15),
        ("price", ["large"], "auto", "regression", None),
        ("large", ["price"], "logistic", "classification", None),
        ("large", ["price"], "svm", "classification", None),
    ],
    ids=lambda value: str(value) if isinstance(value, (str, int)) else "",
)
def test_ten_lines_of_python_are_the_command(houses, capsys, target, drop, name, task, centers):
    options = [word for column in drop for word in ("--drop", column)] + ["--task", task]
    options += ["--centers", str(centers)] if centers else []
    assert run(["fit", "houses.csv", "-t", target, "-m", name, "-o", "shell.mercer", "--json", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    more = {"centers": centers} if centers else {}
    judgement = in_python("houses.csv", target, name, drop, task, **more)

    shell, python = mc.load("shell.mercer"), mc.load("python.mercer")
    X = houses.drop(target, drop)
    assert type(shell) is type(python)
    assert told["model"] == type(innermost(shell)).__name__
    np.testing.assert_array_equal(shell.predict(X), python.predict(X))
    assert {s["name"]: s["value"] for s in told["scores"]} == {s.name: s.value for s in judgement.scores}
    np.testing.assert_array_equal(
        [np.nan if s["baseline"] is None else s["baseline"] for s in told["scores"]],
        [s.baseline for s in judgement.scores],
    )
    assert str(provenance(shell).scores) == str(provenance(python).scores) == str(judgement.scores)
    assert (provenance(shell).rows, provenance(shell).held_out) == (len(houses) - 30, 30)

    kind = "--proba" if task == "classification" else "--interval=0.8"
    assert run(["predict", "shell.mercer", "houses.csv", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [row["prediction"] for row in rows] == python.predict(X).tolist()
    if task == "classification":
        answers = python.predict_proba(X)
        found = np.array([[row["p_no"], row["p_yes"]] for row in rows])
    else:
        answers = python.predict_interval(X, 0.8)
        found = np.array([[row["lower"], row["upper"]] for row in rows])
        np.testing.assert_array_equal(shell.predict_interval(X, 0.8), answers)
    np.testing.assert_array_equal(found, answers)

    assert run(["evaluate", "shell.mercer", "houses.csv", "--json"]) == 0
    scores = judge(python, X, houses[target].to_numpy(), provenance(python).baseline, intervals=True).scores
    assert {s["name"]: s["value"] for s in json.loads(capsys.readouterr().out)["scores"]} == {
        s.name: s.value for s in scores
    }


@pytest.mark.thorough
def test_a_model_that_is_fitted_again_keeps_its_residuals(houses, capsys):
    arguments = ["fit", "houses.csv", "-t", "price", "-m", "svm", "--drop", "large", "-o", "m.mercer", "-q"]
    assert run(arguments) == 0
    before = mc.load("m.mercer")
    assert run([*arguments, "--refit"]) == 0
    after = mc.load("m.mercer")
    assert provenance(after).refitted
    assert (provenance(before).rows, provenance(after).rows) == (120, 150)
    np.testing.assert_array_equal(after.residuals_, before.residuals_)
    assert not np.array_equal(
        after.predict(houses.drop("price", "large")), before.predict(houses.drop("price", "large"))
    )
    assert run(["predict", "m.mercer", "houses.csv", "--interval", "0.8", "-o", "p.csv"]) == 0
    assert "30 held-out rows, measured before the last fit" in capsys.readouterr().err


def test_centres_are_refused_by_models_that_have_none(houses, capsys):
    assert run(["fit", "houses.csv", "-t", "price", "-m", "svm", "--centers", "10", "-o", "none"]) == 2
    assert "centers" in capsys.readouterr().err
