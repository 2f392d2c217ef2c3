"""The command line, driven as a user would: real processes for pipes and signals, `run` in this one for the rest."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import count
from pathlib import Path

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import mercer as mc  # noqa: E402
from mercer.cli.app import run  # noqa: E402
from mercer.cli.kept_rows import kept_background  # noqa: E402
from mercer.cli.summary import score_facts  # noqa: E402
from mercer.kernels import tiling  # noqa: E402
from mercer.models import menu  # noqa: E402
from mercer.models.auto.stages import LastFit  # noqa: E402
from mercer.models.base import innermost  # noqa: E402
from mercer.models.provenance import Provenance, provenance  # noqa: E402
from mercer.models.scores import Score  # noqa: E402

PYTHON = [sys.executable, "-m", "mercer.cli"]
KERNEL = "Gaussian([1.0, 1.0]).on('area', 'age') * Delta().on('city') + Gaussian(2.0).on('area')"


HANGS = 600  # seconds after which a process that must end has failed


def houses(n: int = 120, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(0, 4, n), rng.uniform(0, 3, n)
    city = rng.choice(["Rome", "Oslo"], n)
    price = 3 * np.sin(area) + age + 2 * (city == "Oslo") + 0.1 * rng.normal(size=n)
    frame = pl.DataFrame({"area": area, "age": age, "city": city, "price": price})
    return frame.with_columns(large=pl.when(pl.col("price") > 2).then(pl.lit("yes")).otherwise(pl.lit("no")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    houses().write_csv(place / "houses.csv")
    houses(40, seed=1).write_csv(place / "new.csv")
    (place / "bad.csv").write_text("area,age,city\n1.0,2.0,Rome\nlarge,2.0,Oslo\n")
    return place


@pytest.fixture(scope="module")
def model(folder):
    """A regression on the houses."""
    path = folder / "houses.mercer"
    arguments = ["fit", folder / "houses.csv", "-t", "price", "-m", "ridge", "-k", KERNEL, "--drop", "large"]
    with redirect_stdout(StringIO()) as out:
        assert run([str(a) for a in [*arguments, "-o", path]]) == 0
    assert "R²" in out.getvalue()
    assert "\033" not in out.getvalue(), "no colours into a file"
    assert str(path) in out.getvalue()
    return path


@pytest.fixture(scope="module")
def classifier(folder):
    path = folder / "large.mercer"
    args = [
        "fit",
        folder / "houses.csv",
        "-t",
        "large",
        "-m",
        "logistic",
        "-k",
        KERNEL,
        "--drop",
        "price",
        "-o",
        path,
        "-q",
    ]
    assert run([str(a) for a in args]) == 0
    return path


def shell(*arguments, **how):
    how = {"capture_output": True, "text": True, "timeout": HANGS} | how
    return subprocess.run([*PYTHON, *map(str, arguments)], **how)


def told(capsys, *arguments):
    """Exit code, stdout and stderr of a command in this process."""
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments) -> str:
    """The one line that a command refuses bad input with."""
    code, out, err = told(capsys, *arguments)
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert code == 2, (code, out, err)
    assert len(lines) == 1, err
    assert "Traceback" not in err
    assert not out.strip()
    return lines[0]


# -- help --------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_help_and_a_refused_output_load_nothing_heavy(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "mine.txt").write_text("not a model")
    fit = ["fit", f"{tmp_path}/a.csv", "--target", "y", "--out", f"{tmp_path}/mine.txt"]
    code = (
        f"import sys; from mercer.cli.app import run; run(['--help']); assert run({fit!r}) == 2; "
        "print(sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0
    for command in [
        "fit",
        "predict",
        "evaluate",
        "compare",
        "tune",
        "explain",
        "kernels",
        "check",
        "bench",
        "doctor",
        "demo",
    ]:
        assert command in done.stdout
    loaded = done.stdout.splitlines()[-1]
    for heavy in ("numpy", "scipy", "sklearn", "polars", "numba", "matplotlib"):
        assert f"'{heavy}'" not in loaded, heavy


@pytest.mark.parametrize(
    "command",
    ["fit", "predict", "evaluate", "compare", "tune", "explain", "kernels", "check", "bench", "doctor", "demo"],
)
def test_every_command_has_an_example_and_json(capsys, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = told(capsys, command, "--help")
    assert code == 0
    assert f"mercer {command}" in out
    assert "Example" in out
    assert "--json" in out
    assert "--no-color" in out
    lines = out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_a_line_of_help_is_about_options_that_the_command_has(capsys):
    _, out, _ = told(capsys, "compare", "--help")
    assert "--folds" in out
    assert "refit" not in out
    assert "fit again" not in out
    assert "Examples:" in out


def test_version_and_usage(capsys):
    assert told(capsys, "--version")[:2] == (0, "mercer 0.1.0\n")
    assert "--help" in refused(capsys, "fit")
    assert "frobnicate" in refused(capsys, "frobnicate")
    assert "--nonsense" in refused(capsys, "kernels", "--nonsense")


def test_completion_is_offered():
    done = shell(
        "--show-completion",
        "bash",
        env=os.environ | {"SHELL": "/bin/bash", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert done.returncode == 0
    assert "_MERCER_COMPLETE" in done.stdout


# -- kernels -----------------------------------------------------------------------------------------------------------


def test_check_proves_refutes_and_refuses(capsys):
    code, out, _ = told(capsys, "check", "exp(Linear()) * Gaussian(1.0)")
    assert code == 0
    assert "is a kernel" in out
    assert "Schur" in out
    code, out, _ = told(capsys, "check", "Tanh(1.0, -1.0)", "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["refuted"]
    assert not answer["proven"]
    K, a = np.array(answer["counterexample"]["gram"]), np.array(answer["counterexample"]["vector"])
    assert a @ K @ a < 0
    assert "Gaussian" in refused(capsys, "check", "Gausian(1.0)")
    refused(capsys, "check", "__import__('os').system('true')")
    refused(capsys, "check", "Gaussian(-1.0)")


def test_check_on_data(capsys, folder):
    code, out, _ = told(capsys, "check", "Gaussian(1.0)", "--data", folder / "houses.csv", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["data"]["psd"]
    assert answer["data"]["rows"] == 120
    assert any("'city'" in note for note in answer["notes"])


def test_catalogue(capsys):
    code, out, _ = told(capsys, "kernels", "--json")
    names = {entry["name"] for entry in json.loads(out)["kernels"]}
    assert code == 0
    assert {"Gaussian", "Linear", "Matern"} <= names
    assert "exp(−‖x − z‖²/2σ²)" in told(capsys, "kernels", "gaussian")[1]
    assert "Did you mean Gaussian" in refused(capsys, "kernels", "gausian")


# -- fit, predict, evaluate --------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_predictions_are_the_models(folder, model):
    """Through pipes and files of every kind, what comes out is `predict` of the loaded model."""
    import mercer.files

    kept = mercer.files.load(model)
    new = pl.read_csv(folder / "new.csv")
    expected = kept.predict(new.select("area", "age", "city"))
    with open(folder / "new.csv", "rb") as stream:
        piped = shell("predict", model, "-", stdin=stream)
    assert piped.returncode == 0, piped.stderr
    assert piped.stderr == ""
    values = [float(line) for line in piped.stdout.splitlines()[1:]]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    for name in ("p.parquet", "p.arrow", "p.jsonl", "p.csv", "p.tsv"):
        assert (
            run(
                ["predict", str(model), str(folder / "new.csv"), "--interval", "0.9", "--out", str(folder / name), "-q"]
            )
            == 0
        )
    read = {"p.parquet": pl.read_parquet, "p.arrow": pl.read_ipc, "p.jsonl": pl.read_ndjson, "p.csv": pl.read_csv,
            "p.tsv": lambda p: pl.read_csv(p, separator="\t")}  # fmt: skip
    for name, reader in read.items():
        frame = reader(folder / name)
        assert frame.columns == ["prediction", "lower", "upper"], name
        np.testing.assert_allclose(frame["prediction"], expected, rtol=1e-12)
        assert ((frame["lower"] < frame["prediction"]) & (frame["prediction"] < frame["upper"])).all()
    inside = ((frame["lower"] <= new["price"]) & (new["price"] <= frame["upper"])).mean()
    assert 0.7 < inside <= 1.0


@pytest.mark.thorough
@pytest.mark.peer("polars", "1.38")
def test_formats_and_packing_give_the_same_predictions(folder, model, capsys):
    new = pl.read_csv(folder / "new.csv")
    text = (folder / "new.csv").read_bytes()
    new.write_parquet(folder / "n.parquet")
    new.write_ipc(folder / "n.arrow")
    new.write_ndjson(folder / "n.jsonl")
    new.write_json(folder / "n.json")
    new.write_csv(folder / "n.tsv", separator="\t")
    new.write_csv(folder / "n_semicolon.csv", separator=";")
    new.write_csv(folder / "n_bar.csv", separator="|")
    new.write_parquet(folder / "parquet_inside.csv")
    (folder / "n.csv.gz").write_bytes(gzip.compress(text))
    (folder / "n.csv.bz2").write_bytes(bz2.compress(text))
    (folder / "n.csv.xz").write_bytes(lzma.compress(text))
    (folder / "gz_inside.csv").write_bytes(gzip.compress(text))
    (folder / "bom.csv").write_bytes(b"\xef\xbb\xbf" + text)
    (folder / "utf16.csv").write_bytes(text.decode().encode("utf-16"))
    new.lazy().sink_csv(folder / "n.csv.zst", compression="zstd", check_extension=False)
    assert (folder / "n.csv.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    _, expected, _ = told(capsys, "predict", model, folder / "new.csv")
    values = np.array(expected.splitlines()[1:], dtype=float)
    assert len(values) == 40
    for name in [
        "n.parquet",
        "n.arrow",
        "n.jsonl",
        "n.json",
        "n.tsv",
        "n_semicolon.csv",
        "n_bar.csv",
        "parquet_inside.csv",
        "n.csv.gz",
        "n.csv.bz2",
        "n.csv.xz",
        "gz_inside.csv",
        "bom.csv",
        "utf16.csv",
        "n.csv.zst",
    ]:
        code, out, err = told(capsys, "predict", model, folder / name)
        assert code == 0, (name, err)
        np.testing.assert_allclose(np.array(out.splitlines()[1:], dtype=float), values, rtol=1e-9, err_msg=name)
        assert ("note: " in err) == (name in ("n_semicolon.csv", "n_bar.csv", "parquet_inside.csv", "utf16.csv")), (
            name,
            err,
        )


@pytest.mark.thorough
def test_batches_are_the_whole(folder, model, monkeypatch, capsys):
    from mercer.cli import reading

    _, whole, _ = told(capsys, "predict", model, folder / "new.csv", "--keep")
    monkeypatch.setattr(reading, "BATCH_ROWS", 7)
    code, pieces, _ = told(capsys, "predict", model, folder / "new.csv", "--keep")
    assert code == 0
    head, *rows = whole.splitlines()
    assert head == "area,age,city,price,large,prediction"
    again = pieces.splitlines()
    assert again[0] == head
    assert len(again) == len(rows) + 1 == 41
    for a, b in zip(rows, again[1:]):
        assert a.rsplit(",", 1)[0] == b.rsplit(",", 1)[0]
        assert float(a.rsplit(",", 1)[1]) == pytest.approx(float(b.rsplit(",", 1)[1]), rel=1e-12)
    code, out, _ = told(capsys, "predict", model, folder / "new.csv", "--json")
    assert code == 0
    assert len(json.loads(out)["predictions"]) == 40


def test_every_row_of_a_file_can_be_explained_also_without_its_target(tmp_path, monkeypatch, capsys):
    from mercer.cli import reading
    from mercer.cli.explaining import explain
    from mercer.cli.kept_rows import given_rows
    from mercer.cli.speaking import Voice

    monkeypatch.setattr(reading, "BATCH_ROWS", 10)
    frame = pl.DataFrame({"a": np.arange(25.0), "b": np.arange(25.0) % 7}).with_columns(y=pl.col("a") + pl.col("b"))
    model = mc.Ridge(alpha=0.1).fit(frame.select("a", "b"), frame["y"].to_numpy())
    model.provenance_ = Provenance.of(frame.select("a", "b"), frame["y"].to_numpy(), target="y")
    model.save(tmp_path / "m")
    path = str(tmp_path / "d.csv")
    frame.with_columns(y=pl.when(pl.col("a") == 3).then(None).otherwise(pl.col("y"))).write_csv(path)
    voice = Voice()
    first, later = (given_rows(voice, model, model.provenance_, path, {}, row) for row in (1, 24))
    assert (first.before, first.last, first.more) == (0, 10, True)
    assert (later.before, later.last, later.more) == (20, 25, False)
    assert (first.target(3), first.target(4), later.target(3)) == (None, 8.0, 25.0)
    assert len(first.y) == 9
    settings = {"data": path, "label": None, "top": 3, "proof": False, "reading": {}}
    explain(voice, str(tmp_path / "m"), row=24, **settings)
    assert "row 24 of" in (out := capsys.readouterr().out)
    assert "actual 25" in out
    with pytest.raises(mc.InvalidInput, match="from 1 to 25, got 26"):
        explain(voice, str(tmp_path / "m"), row=26, **settings)
    explain(voice, str(tmp_path / "m"), row=None, **settings)
    out, err = capsys.readouterr()
    assert "on 9 of the first 10 rows of" in " ".join(out.split())
    assert "1 row of" in err
    assert "has no column" not in err


def test_files_are_not_written_to_standard_output(tmp_path, monkeypatch):
    from mercer.cli.destinations import require_outputs

    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_text("mine")
    for option in ("--out", "--report", "--plot"):
        with pytest.raises(mc.InvalidInput, match=f"{option} must be the name of a file, got -, which is standard"):
            require_outputs({option: "-"}, inputs=())
    with pytest.raises(mc.InvalidInput, match="--force to replace"):
        require_outputs({"--out": "./-"}, inputs=())


@pytest.mark.thorough
def test_evaluate(folder, model, classifier, capsys):
    code, out, _ = told(capsys, "evaluate", model, folder / "new.csv", "--json")
    answer = json.loads(out)
    scores = {score["name"]: score for score in answer["scores"]}
    assert code == 0
    assert answer["target"] == "price", "the model remembers its target"
    assert scores["R²"]["value"] > 0.8
    low, high = scores["RMSE"]["interval"]
    assert low < scores["RMSE"]["value"] < high < scores["RMSE"]["baseline"]
    code, out, _ = told(capsys, "evaluate", classifier, folder / "new.csv", "--json")
    answer = json.loads(out)
    assert sum(sum(row.values()) for row in answer["confusion"].values()) == 40
    accuracy = next(s for s in answer["scores"] if s["name"] == "accuracy")["value"]
    assert accuracy == pytest.approx(sum(answer["confusion"][c][c] for c in ("yes", "no")) / 40)
    assert accuracy > 0.8


def test_probabilities(folder, classifier, capsys):
    code, out, _ = told(capsys, "predict", classifier, folder / "new.csv", "--proba", "--json")
    rows = json.loads(out)["predictions"]
    assert code == 0
    for row in rows:
        assert row["p_no"] + row["p_yes"] == pytest.approx(1.0)
        assert row["prediction"] == ("yes" if row["p_yes"] > row["p_no"] else "no")
    assert "--proba" in refused(capsys, "predict", classifier, folder / "new.csv", "--interval", "0.9")


@pytest.mark.thorough
@pytest.mark.parametrize(("kernel", "chosen"), [("Epanechnikov(40.0)", False), ("Epanechnikov", True)])
@pytest.mark.parametrize("name", ["nw", "local"])
def test_smoothers_take_weights(tmp_path, monkeypatch, capsys, name, kernel, chosen):
    monkeypatch.setattr("mercer.report.document._Page._drawn", lambda self, plots, **how: "")
    data = tmp_path / "numbers.csv"
    houses(60).select("area", "price").write_csv(data)
    model, report = tmp_path / "m.mercer", tmp_path / "r.html"
    code, out, err = told(
        capsys, "fit", data, "-t", "price", "-m", name, "-k", kernel, "-o", model, "--json", "--report", report
    )
    assert code == 0, err
    assert json.loads(out)["kernel"].startswith("Epanechnikov(sigma=")
    assert (json.loads(out)["kernel"] != "Epanechnikov(sigma=40.0)") == chosen
    page = report.read_text()
    assert "The model smooths with a weight" in page
    assert "positive semidefinite, that is" not in page
    code, out, _ = told(capsys, "explain", model)
    assert code == 0
    assert "roven:" not in out
    assert told(capsys, "predict", model, data)[0] == 0
    message = refused(capsys, "fit", data, "-t", "price", "-m", "ridge", "-k", "Epanechnikov()")
    assert "a smoothing weight. Smooth with it by --model nw or local" in message
    for bare in ("Epanechnikov", "Epanechnikov()"):
        message = refused(capsys, "fit", data, "-t", "price", "-m", "ridge", "-k", bare)
        assert "a smoothing weight. Smooth with it by --model nw or local" in message
    for function in ("ThinPlate", "ThinPlate()"):
        message = refused(capsys, "fit", data, "-t", "price", "-m", name, "-k", function)
        assert "must be a positive semidefinite kernel or a smoothing weight, got ThinPlate" in message


def test_probabilities_are_for_classes(folder, model, capsys):
    assert "--interval" in refused(capsys, "predict", model, folder / "new.csv", "--proba")
    assert "(0, 1)" in refused(capsys, "predict", model, folder / "new.csv", "--interval", "90")


def test_explain(folder, model, capsys):
    code, out, _ = told(capsys, "explain", model)
    assert code == 0
    assert "Proof that it is a kernel: " in out
    assert "axiom" not in out
    assert "axiom" in told(capsys, "explain", model, "--proof")[1]
    assert "Most influential training rows" in out
    answer = json.loads(told(capsys, "explain", model, "--json", "--top", "3")[1])
    assert answer["proven"]
    assert len(answer["influential"]) == 3
    rises = {name: column["rise"] for name, column in answer["importance"]["columns"].items()}
    assert rises["area"] > rises["city"]


def test_explain_says_on_which_rows_importance_is_measured(folder, model, capsys):
    origin = provenance(mc.load(model))
    out = " ".join(told(capsys, "explain", model)[1].split())
    assert origin.importance.words("held-out rows") in out
    pl.read_csv(folder / "new.csv").drop("price").write_csv(folder / "unknown.csv")
    assert "has no column 'price'" in told(capsys, "explain", model, "--data", folder / "unknown.csv")[2]
    table = pl.read_csv(folder / "houses.csv")[:40]
    table.write_csv(folder / "first.csv")
    answer = json.loads(told(capsys, "explain", model, "--data", folder / "first.csv", "--json")[1])
    columns = list(origin.columns)
    again = mc.feature_importance(mc.load(model), table.select(columns), table["price"].to_numpy())
    assert answer["importance"]["columns"]["area"]["rise"] == pytest.approx(again.of("area"))


@pytest.mark.thorough
def test_fit_explain_and_report_show_the_same_importance(folder, tmp_path, capsys):
    fitted, report = tmp_path / "m.mercer", tmp_path / "r.html"
    options = ("-m", "ridge", "--drop", "large", "--report", report, "-o", fitted, "--json")
    answer = json.loads(told(capsys, "fit", folder / "houses.csv", "-t", "price", *options)[1])
    explained = json.loads(told(capsys, "explain", fitted, "--json")[1])
    assert explained["importance"] == answer["importance"]
    importance = provenance(mc.load(fitted)).importance
    page = report.read_text()
    for name, rise, spread in importance.ranked:
        assert f'<td>{name}</td><td class="n">{importance.shown(rise)} ± {importance.shown(spread)}</td>' in page
    table, origin = pl.read_csv(folder / "houses.csv"), provenance(mc.load(fitted))
    held_out = np.setdiff1d(np.arange(table.height), origin.places)
    rows = table[held_out]
    measured = mc.feature_importance(mc.load(fitted), rows.select(list(origin.columns)), rows["price"].to_numpy())
    assert measured.rise == pytest.approx(importance.rise)


@pytest.mark.parametrize(("name", "kept"), [("linear", False), ("ridge", True)])
def test_training_rows_for_explanations_are_saved_only_with_models_that_keep_rows(name, kept):
    X = pl.DataFrame({"a": np.arange(150.0), "b": np.arange(150.0) ** 2})
    model = menu.fit(name, X, np.sin(X["a"].to_numpy()), task="regression", time=5).model
    background = kept_background(model, X)
    assert (background is not None) == kept
    assert not kept or len(background) == 100


@pytest.mark.thorough
def test_explain_a_row_of_one_text_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [f"win a prize {i} now" if i % 2 else f"see you at {i} then" for i in range(60)]
    pl.DataFrame({"message": words, "kind": ["spam", "ham"] * 30}).write_csv("sms.csv")
    assert (
        told(capsys, "fit", "sms.csv", "-t", "kind", "-m", "ridge", "--text", "message", "--report", "r.html")[0] == 0
    )
    out = told(capsys, "explain", "sms.mercer", "--row", 2, "--data", "sms.csv")[1]
    assert "The probability of ham is " in out
    assert words[1] in out
    assert "message: “" in (tmp_path / "r.html").read_text()


@pytest.mark.thorough
def test_explain_a_row(folder, model, capsys):
    origin, loaded = provenance(mc.load(model)), mc.load(model)
    table = pl.read_csv(folder / "houses.csv")
    rows = table.select(list(origin.columns))
    answer = json.loads(told(capsys, "explain", model, "--row", 3, "--data", folder / "houses.csv", "--json")[1])
    assert answer["prediction"] == pytest.approx(loaded.predict(rows[[2]])[0])
    assert answer["actual"] == table["price"][2]
    parts = sum(part["contribution"] for part in answer["contributions"].values())
    assert answer["mean"] + parts == pytest.approx(answer["prediction"])
    training = rows[list(origin.places)]  # the report compares with the same rows
    assert answer["mean"] == pytest.approx(mc.contributions(loaded, rows[[2]], training).mean[0])
    assert answer["mean"] == pytest.approx(loaded.predict(training).mean(), rel=0.01)
    near = mc.similar_rows(loaded, rows[[2]])
    assert [entry["similarity"] for entry in answer["similar"]] == pytest.approx(near.similarity.tolist())
    for entry in answer["similar"]:
        assert table["price"][entry["place"] - 1] == pytest.approx(entry["target"])
    trained = origin.places[5] + 1
    out = told(capsys, "explain", model, "--row", trained)[1]
    assert f"row {trained} of houses.csv: predicted " in out
    assert f"the mean over all {origin.rows} training rows, plus the contributions" in " ".join(out.split())
    assert "Most similar training rows" in out
    missing = next(i for i in range(table.height) if i not in origin.places)
    assert "Add --data" in refused(capsys, "explain", model, "--row", missing + 1)
    assert "from 1 to" in refused(capsys, "explain", model, "--row", 10**6, "--data", folder / "houses.csv")
    assert "the model predicts numbers" in refused(capsys, "explain", model, "--row", trained, "--class", "x")


@pytest.mark.parametrize("name", ["auto", "gp", "svm", "poisson", "nw", "neighbors", "local", "linear"])
def test_regressions(folder, capsys, name):
    data = folder / "numbers.csv"
    houses(60).select("area", "age", (pl.col("price").abs() * 3).round().cast(pl.Int64).alias("count")).write_csv(data)
    code, out, err = told(
        capsys, "fit", data, "-t", "count", "--task", "regression", "-m", name, "-o", "none", "--time", "2", "--json"
    )
    assert code == 0, err
    answer = json.loads(out)
    score = next(s for s in answer["scores"] if s["name"] == "RMSE")
    assert score["value"] < score["baseline"], "better than the mean"


@pytest.mark.parametrize("name", ["auto", "ridge", "svm", "nw", "neighbors"])
def test_classifications_of_a_mixed_table(folder, capsys, name):
    code, out, err = told(
        capsys,
        "fit",
        folder / "houses.csv",
        "-t",
        "large",
        "--drop",
        "price",
        "-m",
        name,
        "-o",
        "none",
        "--time",
        "2",
        "--json",
    )
    assert code == 0, err
    score = next(s for s in json.loads(out)["scores"] if s["name"] == "accuracy")
    assert score["value"] > score["baseline"]


@pytest.mark.thorough
def test_tune_gains(folder, capsys):
    kernel = "Gaussian([9.0, 9.0]).on('area', 'age')"
    code, out, err = told(capsys, "tune", folder / "houses.csv", "-t", "price", "-k", kernel, "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["value"] < answer["before"]
    code, out, _ = told(
        capsys, "fit", folder / "houses.csv", "-t", "price", "-m", "ridge", "-k", answer["kernel"], "-o", "none"
    )
    assert code == 0, "the kernel that is told can be given back"


def test_held_out_rows_are_not_fitted(folder, capsys):
    """The score on the held-out rows is that of a model of the other rows: noise is not predicted."""
    rng = np.random.default_rng(0)
    data = folder / "noise.csv"
    pl.DataFrame({"x": rng.normal(size=100), "y": rng.normal(size=100)}).write_csv(data)
    _, out, _ = told(capsys, "fit", data, "-t", "y", "-m", "ridge", "-k", "Gaussian(0.01)", "-o", "none", "--json")
    answer = json.loads(out)
    assert answer["judged_on"] == "20 held-out rows"
    assert answer["scores"][0]["value"] < 0.3
    _, out, _ = told(
        capsys, "fit", data, "-t", "y", "-m", "ridge", "-k", "Gaussian(0.5)", "-o", "none", "--json", "--test-size", "0"
    )
    assert json.loads(out)["judged_on"] == "leave-one-out"


def test_split_parts_the_rows_and_keeps_the_shares_of_classes():
    from mercer.cli.speaking import Voice
    from mercer.cli.tables import Problem, split

    y = np.array(["a"] * 90 + ["b"] * 10)
    for task, targets in (("regression", np.arange(100.0)), ("classification", y)):
        problem = Problem(None, targets, "y", task, {}, {})
        train, test = split(problem, 0.2, 0, Voice(quiet=True), requested=True)
        assert len(test) == 20
        assert sorted([*train, *test]) == list(range(100)), "each row on one side"
    assert (y[test] == "b").sum() == 2


@pytest.mark.thorough
def test_libsvm(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * (rng.uniform(size=(60, 3)) < 0.7)
    y = np.where(X[:, 0] > 0, 1, -1)
    lines = [f"{t:+d} " + " ".join(f"{k + 1}:{v:.4f}" for k, v in enumerate(x) if v) for t, x in zip(y, X)]
    data, path = folder / "signs.libsvm", folder / "signs.mercer"
    data.write_text("\n".join(lines) + "\n")
    code, _, err = told(capsys, "fit", data, "-m", "svm", "-k", "Gaussian(1.0)", "-o", path)
    assert code == 0, err
    code, out, err = told(capsys, "evaluate", path, data, "--json")
    assert code == 0, err
    assert next(s for s in json.loads(out)["scores"] if s["name"] == "accuracy")["value"] > 0.85
    code, out, _ = told(capsys, "predict", path, data)
    assert set(out.split()) == {"prediction", "-1", "1"}


def test_features_of_libsvm_keep_their_numbers(folder, capsys):
    """Files that count from 0, and batches that lack the last features, mean the same columns as in `fit`."""
    from mercer.cli.reading import batches, read

    path = written(folder, "1 0:5 2:7\n2 1:3\n", "zero.libsvm")
    table = read(str(path))
    assert table.frame.columns == ["f0", "f1", "f2"]
    part = written(folder, "1 0:4\n2 1:3 9:9\n", "part.libsvm")
    with batches(str(part), dict.fromkeys(table.frame.columns, "Float64")) as (tables, _):
        assert next(tables).frame.rows() == [(4.0, 0.0, 0.0), (0.0, 3.0, 0.0)]
    ones = written(folder, "1 1:5 2:7\n2 1:3\n", "one.libsvm")
    assert read(str(ones)).frame.columns == ["f1", "f2"]


@pytest.mark.thorough
def test_targets_of_any_name_and_kind_are_evaluated(folder, capsys):
    """A column called label, classes with decimals, and a target by its place."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    for name, values in (("label", np.where(x > 0, "a", "b")), ("half", np.where(x > 0, 1000000.0, 1000000.5))):
        data, path = folder / f"{name}.csv", folder / f"{name}.mercer"
        pl.DataFrame({"x": x, name: values}).write_csv(data)
        assert run(["fit", str(data), "-t", name, "-m", "ridge", "-k", "Gaussian(1.0)", "-o", str(path), "-q"]) == 0
        data.write_text(data.read_text().replace("1000000.0", "1000000").replace("1e6", "1000000"))
        code, out, err = told(capsys, "evaluate", path, data, "-t", "-1", "--json")
        assert code == 0, err
        answer = json.loads(out)
        assert answer["target"] == name
        assert len(answer["confusion"]) == 2
        assert next(s for s in answer["scores"] if s["name"] == "accuracy")["value"] > 0.9


def test_a_model_without_names_takes_columns_in_order(folder, capsys):
    import mercer as mc

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, X[:, 0])
    path = folder / "array.mercer"
    model.save(path)
    data = written(folder, "u,v\n" + "\n".join(f"{a},{b}" for a, b in X), "array.csv")
    code, out, err = told(capsys, "predict", path, data)
    assert code == 0, err
    np.testing.assert_allclose(np.array(out.splitlines()[1:], dtype=float), model.predict(X), rtol=1e-12)
    assert "2 numeric columns" in refused(capsys, "predict", path, folder / "new.csv")


@pytest.mark.thorough
def test_models_without_intervals_get_them_from_rows_held_out(folder, capsys):
    path = folder / "svr.mercer"
    data = folder / "houses.csv"
    args = ["fit", data, "-t", "price", "--drop", "large", "-m", "svm", "-k", KERNEL, "-o", path, "-q", "--time", "2"]
    assert run([str(a) for a in args]) == 0
    code, out, err = told(capsys, "predict", path, folder / "new.csv", "--interval", "0.8", "--json")
    assert code == 0, err
    assert "24 held-out rows" in err
    rows = json.loads(out)["predictions"]
    prices = pl.read_csv(folder / "new.csv")["price"].to_list()
    inside = np.mean([row["lower"] <= price <= row["upper"] for row, price in zip(rows, prices)])
    assert 0.6 < inside < 1.0
    assert "--test-size" in refused(capsys, "predict", path, folder / "new.csv", "--interval", "0.99")


def test_commands_name_the_models_of_the_menu():
    from typing import get_args

    from mercer.cli.app import Kind
    from mercer.models.menu import MENU

    assert set(get_args(Kind)) == {name for models in MENU.values() for name in models}


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def written(folder: Path, content: str | bytes, name: str = "strange.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"", "e.csv", "empty"),
        (b"\n\n \n", "e.csv", "blank"),
        (b"a,y\n", "e.csv", "header only"),
        (b"a,y\n1,2\n", "e.csv", "1 row"),
        (b"a,a,y\n1,2,3\n4,5,6\n", "e.csv", "'a' as columns 1 and 2"),
        (b"a,b\n1,2\n3,4\n", "e.csv", "must have the target 'y'"),
        (b"a,Yy\n1,2\n3,4\n", "e.csv", "Did you mean 'Yy'"),
        (b"a:y\n1:2\n3:4\n5:6\n", "e.csv", "--delimiter"),
        (b"Once upon a time\nthere was a king, who had\nthree daughters and no table\n", "e.csv", "--delimiter"),
        (b"a,y\n1,2\n2,\n3,4\n4,NA\n", "e.csv", "2 rows without one: 2, 4"),
        (b"a,y\n1,\n2,\n", "e.csv", "none at all"),
        (b"a,y\n1,5\n2,5\n3,5\n", "e.csv", "different values"),
        (b"a,y\n7,1\n7,2\n7,3\n", "e.csv", "values differ between rows"),
        (b"a,y\n1,2\n1,2,3\n4,5\n6,7\n8,9\n", "e.csv", "3 in line 3"),
        (b"a,y\n" + b"".join(b"%d,word%d\n" % (k, k) for k in range(30)), "e.csv", "30 different texts"),
        (b"PK\x03\x04rest of it", "e.csv", "ZIP"),
        (b"PK\x03\x04rest of it", "e.xlsx", "spreadsheet"),
        (b"\x89PNG\r\n\x1a\n", "e.csv", "image"),
        (b"\x80\x04\x95abc", "e.parquet", "pickle"),
        (b"%PDF-1.7", "e.csv", "PDF"),
        (b"<!DOCTYPE html><html>", "e.csv", "web page"),
        (b"PAR1 but nothing else", "e.parquet", "PARQUET"),
        (b"\x1f\x8b\x08\x00 cut", "e.csv.gz", "cut off"),
        (gzip.compress(b"a,y\n1,2\n" * 2000, mtime=0)[:40], "e.csv.gz", "cut off"),
        (b"abc\x00\x01\x02def", "e.csv", "binary"),
        (b"a,y\n1,2\ninf,3\n4,5\n", "e.csv", "inf in row 2"),
        (b"a,y\n1,2\n2,inf\n4,5\n", "e.csv", "inf in row 2"),
        (b"a,y\n1,2\n\"2,3\n4,5\n", "e.csv", "unclosed quote"),
        (b"1 1:2\n1 2:x\n", "e.libsvm", "line 2"),
        (b"1 1:2\n" + b"1" * 60_000 + b"x\n", "e.txt", "target 'y'"),
        (b"{\"a\": 1, \"y\": 2}\n{\"a\": oops}\n", "e.jsonl", "JSON"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_in_one_line(tmp_path, capsys, content, name, said):
    path = written(tmp_path, content, name)
    out = tmp_path / "m.mercer"
    assert said in refused(capsys, "fit", path, "-t", "y", "-o", out)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name], "nothing half-written"


def test_paths_that_do_not_work(folder, model, tmp_path, capsys):
    data = folder / "houses.csv"
    assert f"Did you mean {data}" in refused(capsys, "fit", folder / "house.csv", "-t", "price")
    assert "Did you mean" not in refused(capsys, "fit", folder / "nosuch.csv", "-t", "price")
    assert "folder" in refused(capsys, "fit", folder, "-t", "price")
    assert "no folder" in refused(capsys, "fit", data, "-t", "price", "-o", tmp_path / "no" / "m.mercer")
    assert "no folder" in refused(
        capsys, "fit", data, "-t", "price", "-o", "none", "--report", tmp_path / "no" / "r.html"
    )
    assert "no folder" in refused(capsys, "predict", model, folder / "new.csv", "-o", tmp_path / "no" / "p.csv")
    assert ".parquet" in refused(capsys, "predict", model, folder / "new.csv", "-o", tmp_path / "p.doc")
    assert "model file" in refused(capsys, "predict", folder / "new.csv", folder / "new.csv")
    assert "Put the model first" in refused(capsys, "fit", model, "-t", "price")
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_bad_options(folder, capsys):
    data = folder / "houses.csv"
    for arguments, said in (
        (["-m", "forest"], "ridge"),
        (["-m", "logistic"], "one of"),
        (["--time", "-1"], "--time"),
        (["--test-size", "1.5"], "--test-size"),
        (["--task", "clustering"], "--task"),
        (["--drop", "aera"], "Did you mean 'area'"),
        (["-k", "Gaussian(1.0"], "1.0"),
        (["-k", "Epanechnikov(1.0)"], "kernel"),
        (["--delimiter", ";;"], "one character"),
        (["--encoding", "klingon"], "klingon"),
        (["--format", "doc"], "format"),
        (["--centers", "0"], "--centers"),
        (["-k", "Linear() ** 99999"], "≤ 1000"),
        (["-k", "(" * 20_000 + "Linear()" + ")" * 20_000], "kernel expression"),
    ):
        assert said in refused(capsys, "fit", data, "-t", "price", "-o", "none", *arguments), arguments


def test_new_rows_that_do_not_fit(folder, model, capsys):
    line = refused(capsys, "predict", model, folder / "bad.csv", "-o", folder / "bad_out.csv")
    assert "'area'" in line
    assert "'large' in row 2" in line
    assert not (folder / "bad_out.csv").exists()
    path = written(folder, "Area,age,city\n1,2,Rome\n", "case.csv")
    assert "Rename 'Area' if it is this column" in refused(capsys, "predict", model, path)
    unseen = written(folder, "area,age,city\n1,2,Atlantis\n1,2,Rome\n", "unseen.csv")
    code, out, _ = told(capsys, "predict", model, unseen)
    assert code == 0, "a new category is no error"
    assert len(out.splitlines()) == 3


@pytest.mark.thorough
def test_decisions_are_told(tmp_path, capsys):
    def notes(content, *arguments):
        path = written(tmp_path, content)
        code, out, err = told(capsys, "fit", path, "-t", "y", "-m", "ridge", "-o", "none", "--json", *arguments)
        assert code == 0, err
        answer = json.loads(out)
        return " | ".join(answer.get("notes", [])), answer

    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(30, 2)).round(3)
    rows = [f"{a},{b},x" for a, b in numbers]
    said, answer = notes("a,y,c\n" + "\n".join(rows))
    assert "'c'" in said
    assert answer["left_out"] == {"c": "the same value in every row"}
    said, _ = notes("a;y\n" + "\n".join(f"{a};{b}".replace(".", ",") for a, b in numbers))
    assert "semicolon" in said
    assert "decimal comma" in said
    said, answer = notes("a,y\n" + "\n".join(f"{a},{b}" for a, b in numbers[:-1]) + "\n5,\n", "--drop-missing-target")
    assert "dropped 1 row without a target: 30" in said
    assert answer["rows"] == 29
    said, answer = notes(b"a,caf\xe9,y\n" + "\n".join(f"{a},M\u00fc,{b}" for a, b in numbers[:15]).encode() + b"\n"
                         + "\n".join(f"{a},Ca\u00f1,{b}" for a, b in numbers[15:]).encode("latin-1"))  # fmt: skip
    assert "16 lines are not UTF-8 (first: line 1)" in said
    assert "café" in answer["columns"]
    said, answer = notes("a,y\n" + "\n".join(f"{a if k else '-'},{b}" for k, (a, b) in enumerate(numbers)))
    assert "'-' in the numeric column 'a'" in said
    assert answer["columns"] == {"a": "Float64"}
    said, answer = notes(",a,y\n" + "\n".join(f"{k},{a},{b}" for k, (a, b) in enumerate(numbers)))
    assert "counts the rows" in said
    assert list(answer["columns"]) == ["a"]
    said, answer = notes("a   y\n" + "\n".join(f"{a}   {b}" for a, b in numbers))
    assert "blanks" in said
    said, answer = notes("\n".join(f"{a},{b}" for a, b in numbers), "-t", "2")
    assert "no header" in said
    assert answer["target"] == "column_2"
    assert answer["rows"] == 30


def test_dates_and_truth_survive_the_file(tmp_path):
    from mercer.cli.reading import batches, read

    path = written(tmp_path, "day,ok,n\n2024-01-03,true,1\n2024-02-05,false,2\n,true,\n")
    table = read(str(path))
    assert [str(dtype) for dtype in table.frame.dtypes] == ["Date", "Boolean", "Int64"]
    columns = {name: str(dtype) for name, dtype in zip(table.frame.columns, table.frame.dtypes)}
    with batches(str(path), columns) as (tables, _):
        again = next(tables).frame
    assert again.equals(table.frame)


def test_words_that_become_booleans_are_noted(tmp_path):
    from mercer.cli.reading import read

    table = read(str(written(tmp_path, "ok,has bruises,n\ntrue,f,1\nfalse,t,2\n")))
    assert [str(dtype) for dtype in table.frame.dtypes] == ["Boolean", "Boolean", "Int64"]
    (note,) = table.notes
    assert note.startswith("column 'has bruises' is read as true and false ('t' is true); --category 'has bruises' ")


def test_dates_keep_the_order_they_were_written_in(tmp_path):
    """31/12/24 tells that days come first; a new file that could be read either way is read the same way."""
    from mercer.cli.reading import batches, read
    from mercer.cli.speaking import Voice
    from mercer.cli.tables import problem_from

    rows = "\n".join(f"{d:02d}/{m:02d}/24,{d}" for m in (1, 2) for d in (3, 14, 28))
    path = written(tmp_path, "day,y\n" + rows)
    table = read(str(path))
    assert str(table.frame["day"][1]) == "2024-01-14"
    columns = problem_from(table, "y", Voice(quiet=True), task="regression").columns
    assert columns == {"day": "Date[%d/%m/%y]"}
    with batches(str(written(tmp_path, "day\n03/04/24\n", "new.csv")), columns) as (tables, _):
        assert str(next(tables).frame["day"][0]) == "2024-04-03"
    either = read(str(written(tmp_path, "day,y\n03/04/24,1\n05/06/24,2\n", "either.csv")))
    assert str(either.frame["day"][0]) == "2024-03-04"
    assert any("'03/04/24' is 4 March 2024" in n and "--date 'day=%d/%m/%y'" in n for n in either.notes)


def test_types_of_typed_files_are_kept(tmp_path):
    from mercer.cli.reading import read

    pl.DataFrame({"zip": ["001", "041"], "n": [1, 2]}).write_parquet(tmp_path / "t.parquet")
    assert read(str(tmp_path / "t.parquet")).frame["zip"].to_list() == ["001", "041"]


def test_words_among_numbers_are_told(tmp_path):
    from mercer.cli.reading import read

    table = read(str(written(tmp_path, "a,y\n" + "1,2\n" * 20 + "x,3\n")))
    assert table.frame["a"].dtype == pl.String
    assert any("1 cell of 21 is not a number ('x' in row 21)" in n and "--na x" in n for n in table.notes)


DECIMALS = [f"{k / 7:.3f},{k / 3:.3f},{'uv'[k % 2]}" for k in range(40)]


@pytest.mark.thorough
def test_marks_of_the_missing_in_decimals(tmp_path, capsys):
    """'n.d.' is known; '<5' is refused with its row and the option, which the model remembers."""
    from mercer.cli.reading import read

    head, rest = "a,y,c\n", "\n".join(DECIMALS[4:])
    for mark in ("n.d.", "N.A.", "-", ""):
        table = read(str(written(tmp_path, head + f"{mark},1.5,u\n" + rest)))
        assert table.frame["a"].dtype == pl.Float64, mark
        assert table.frame["a"][0] is None
    path = written(tmp_path, head + "\n".join(DECIMALS[:3]) + "\n<5,1.5,u\n" + rest)
    line = refused(capsys, "fit", path, "-t", "y", "-m", "ridge", "-o", "none")
    assert "'<5' in row 4" in line
    assert "--na '<5'" in line
    assert "'<5' in row 4" in refused(capsys, "fit", path, "-t", "a", "-m", "ridge", "-o", "none")
    kept = tmp_path / "na.mercer"
    arguments = ["fit", path, "-t", "y", "-m", "ridge"]
    assert told(capsys, *arguments, "--na", "<5", "-o", kept, "-q") == (0, "", ""), "quiet is silent"
    assert told(capsys, *arguments, "--drop", "a", "-o", "none")[0] == 0, "a column that is left out may hold anything"
    assert told(capsys, "predict", kept, path)[0] == 0, "the model knows what is missing"
    other = written(tmp_path, "a,c\n<7,u\n", "other.csv")
    assert "--na '<7'" in refused(capsys, "predict", kept, other)
    assert told(capsys, "predict", kept, other, "--na", "<7")[0] == 0


def test_decimal_commas_among_marks(tmp_path):
    from mercer.cli.reading import read

    table = read(str(written(tmp_path, "a;y\nn.d.;1,5\n" + "\n".join(f"{k},5;{k},25" for k in range(30)))))
    assert table.frame["a"].to_list()[:3] == [None, 0.5, 1.5]


def test_gaps_that_a_model_refuses_are_told_by_file_and_row(tmp_path, capsys):
    rows = [line.rpartition(",")[0] for line in DECIMALS]
    data, kept = written(tmp_path, "a,y\n" + "\n".join(rows)), tmp_path / "m.mercer"
    assert run(["fit", str(data), "-t", "y", "-m", "linear", "-o", str(kept), "-q"]) == 0
    gap = written(tmp_path, "a,y\n" + "\n".join([*rows[:3], ",1.5", *rows[4:]]), "gap.csv")
    for command in (["predict", kept, gap], ["evaluate", kept, gap], ["fit", gap, "-t", "y", "-m", "linear"]):
        line = refused(capsys, *command)
        assert f"'a' of {gap}" in line
        assert "none in row 4" in line
        assert "X must" not in line


def test_what_fit_has_not_seen_is_told(folder, model, capsys, monkeypatch):
    from mercer.cli import reading

    monkeypatch.setattr(reading, "BATCH_ROWS", 2)
    path = written(folder, "area,age,city\n1,2,Atlantis\n50,2,Rome\n1,2,Ys\n5,2,Oslo\n", "far.csv")
    code, out, err = told(capsys, "predict", model, path)
    assert code == 0
    assert len(out.splitlines()) == 5
    assert "'city': 2 rows have a value that is not in the training rows" in err
    assert "'area': 1 row has a number far outside the training range (0." in err
    assert (
        "2 of 4 rows (50 %) have a number or date outside the range of the training rows, most often in 'area'" in err
    )
    assert len(err.splitlines()) == 3
    code, out, err = told(capsys, "predict", model, path, "--json")
    assert len(json.loads(out)["notes"]) == 3
    assert [caution["kind"] for caution in json.loads(out)["cautions"]] == ["UnseenValues", "UnseenValues", "Outside"]


@pytest.mark.thorough
def test_missing_values_where_fit_had_none_are_noted(tmp_path, capsys, monkeypatch):
    from mercer.cli import reading

    monkeypatch.setattr(reading, "BATCH_ROWS", 2)
    rng = np.random.default_rng(0)
    table = pl.DataFrame(rng.normal(size=(60, 2)), schema=["a", "b"]).with_columns(y=pl.col("a") - pl.col("b"))
    table = table.with_columns(b=pl.when(pl.int_range(60) % 7 == 3).then(None).otherwise(pl.col("b")))
    table.write_csv(tmp_path / "data.csv")
    model = tmp_path / "m.mercer"
    assert told(capsys, "fit", tmp_path / "data.csv", "-t", "y", "-m", "ridge", "-o", model)[0] == 0
    new = written(tmp_path, "a,b,y\n1,1,0\n,1,0\n0,,0\n,0,0\n", "new.csv")
    for command in ("predict", "evaluate"):
        code, _, err = told(capsys, command, model, new)
        assert code == 0, err
        assert "2 missing values in columns that had none in the training rows ('a')" in err
        assert "'b'" not in err
    code, _, err = told(capsys, "predict", model, tmp_path / "data.csv")
    assert "missing" not in err


@pytest.mark.thorough
def test_missing_values_are_noted_in_columns_that_the_model_uses(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pl.DataFrame(rng.normal(size=(40, 2)), schema=["a", "b"]).with_columns(y=pl.col("a"))
    table.write_csv(tmp_path / "data.csv")
    new = written(tmp_path, "a,b,y\n1,1,0\n0,,0\n0,99,0\n", "new.csv")
    model = tmp_path / "m.mercer"
    fit = ("-t", "y", "-m", "ridge", "-o", model)
    for kernel, noted in (("Gaussian(1.0).on('a')", False), ("Gaussian(1.0).on(0)", False), (None, True)):
        for command in ("fit", "tune"):
            arguments = [*fit, *(["-k", kernel] if kernel else [])]
            assert told(capsys, command, tmp_path / "data.csv", *arguments)[0] == 0
            for later in ("predict", "evaluate"):
                code, _, err = told(capsys, later, model, new)
                assert code == 0, err
                assert ("1 missing value in columns that had none" in err) == noted, (kernel, command)
                assert ("'b': 1 row has a number far outside" in err) == noted, (kernel, command)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-t", "price", "-o", "houses.csv"], "must differ from all other files"),
        (["-t", "price", "-o", "other.csv"], "must be a new file"),
        ([], "--target must name the column"),
    ],
)
def test_what_needs_no_data_is_refused_before_modules_are_loaded(folder, capsys, monkeypatch, options, words):
    from mercer.cli.app import run

    monkeypatch.chdir(folder)
    (folder / "other.csv").write_text("mine")
    for name in ("fitting", "tuning"):
        monkeypatch.setitem(sys.modules, f"mercer.cli.{name}", None)
        monkeypatch.delattr(f"mercer.cli.{name}", raising=False)
    for command in ("fit", "tune"):
        assert run([command, "houses.csv", *options]) == 2
        assert words in capsys.readouterr().err


def test_compare_refuses_what_its_models_cannot_use_before_it_reads(capsys):
    from mercer.cli.app import run

    assert run(["compare", "no such file.csv", "-t", "y", "--weight", "years"]) == 2
    err = capsys.readouterr().err
    assert "mercer compare has no --weight" in err
    assert "mercer fit --weight" in err


def test_the_time_is_that_of_the_whole_command(folder, capsys, monkeypatch):
    import time

    from mercer.cli.app import run

    clock = time.monotonic

    def late(*arguments, **options):
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 1000.0)

    monkeypatch.setattr(mc.report, "write", late)
    fit = ["fit", str(folder / "houses.csv"), "-t", "price", "-m", "ridge", "-o", "none", "--json"]
    assert run([*fit, "--report", str(folder / "timed.html")], clock() - 100.0) == 0
    said = capsys.readouterr()
    assert 1100 <= json.loads(said.out)["seconds"] < 1200, "from the start, with the report"
    assert "longer than --time 60" in said.err


def test_a_model_that_is_no_better_than_a_guess_is_told(folder, capsys):
    from types import SimpleNamespace

    from mercer.cli.fitting import _note_doubts
    from mercer.cli.speaking import Voice

    rng = np.random.default_rng(0)
    data = folder / "noise2.csv"
    pl.DataFrame({"x": rng.normal(size=100), "y": rng.normal(size=100)}).write_csv(data)
    arguments = ["-m", "ridge", "-k", "Gaussian(0.01)", "-o", "none"]
    _, _, err = told(capsys, "fit", data, "-t", "y", *arguments)
    assert "no better than the baseline" in err
    _, _, err = told(
        capsys, "fit", folder / "houses.csv", "-t", "price", "--drop", "large", *arguments[:2], "-o", "none"
    )
    assert "baseline" not in err
    lone = [Score("R²", 0.2, 0.1, 0.3, -0.01), Score("RMSE", 4.0, 3.0, 5.0, 4.0), Score("MAE", 3.0, 2.0, 4.0, 2.5)]
    for scores, notes in ((lone, 1), ([lone[0], replace(lone[1], value=2.0), lone[2]], 0), (lone[:1], 0)):
        voice = Voice(quiet=True)
        _note_doubts(voice, SimpleNamespace(), scores)
        assert len(voice.notes) == notes
        assert all("of 3 scores only one is better than the baseline" in note for note in voice.notes)
    voice = Voice(quiet=True)
    _note_doubts(voice, SimpleNamespace(), [replace(lone[0], value=-0.02, baseline=-0.03), replace(lone[2], value=2.0)])
    assert ["R² is not above 0" in note for note in voice.notes] == [True], "although the mean is worse"
    slightly = replace(lone[1], value=3.99)
    for scores, known in (
        ([lone[0], slightly, lone[2]], ""),
        ([replace(lone[0], value=0.0, baseline=0.0)], "exposure"),
    ):
        voice = Voice(quiet=True)
        _note_doubts(voice, SimpleNamespace(columns_=SimpleNamespace(exposure="years")), scores)
        assert [known in note for note in voice.notes] == [True] * bool(known), "a small gain is a gain, too"
    for end, notes in (("iterations", 1), ("time", 1), ("converged", 0)):
        voice = Voice(quiet=True)
        _note_doubts(voice, SimpleNamespace(model_=SimpleNamespace(end_=end)), [])
        assert len(voice.notes) == notes


def test_explain_names_the_rows_of_the_file(folder, model, capsys):
    answer = json.loads(told(capsys, "explain", model, "--json")[1])
    table = houses()
    for carrier in answer["influential"]:
        assert table.row(carrier["place"] - 1, named=True)["area"] == pytest.approx(carrier["row"]["area"])
    out = told(capsys, "explain", model)[1].splitlines()
    head = next(line for line, before in zip(out[1:], out) if before.startswith("Most influential training rows"))
    assert head.split() == ["row", "|c|", *answer["importance"]["columns"]]


def test_lines_that_end_as_on_old_machines(tmp_path):
    from mercer.cli.reading import read

    assert read(str(written(tmp_path, "a,y\r1,2\r3,4\r"))).frame.rows() == [(1, 2), (3, 4)]
    assert read(str(written(tmp_path, "a,y\r\n1,2\r\n3,4\r\n"))).frame.rows() == [(1, 2), (3, 4)]


@pytest.mark.thorough
def test_a_document_is_whole_or_not_there(folder, model, capsys, monkeypatch):
    from mercer.cli import predicting, reading

    monkeypatch.setattr(reading, "BATCH_ROWS", 1)  # a row at a time
    predicted, real = [], predicting.predictions
    monkeypatch.setattr(predicting, "predictions", lambda *args: predicted.append(1) or real(*args))
    code, out, err = told(capsys, "predict", model, folder / "bad.csv", "--json")
    assert code == 2
    assert "'large' in row 2" in err
    assert len(predicted) == 1, "the first row was predicted before the second was refused"
    assert out == "", "and no part of the document was written"
    predicted.clear()
    code, out, err = told(capsys, "predict", model, folder / "new.csv", "--json")
    assert code == 0, err
    rows = pl.read_csv(folder / "new.csv").height
    assert len(predicted) == rows > 1
    answer = json.loads(out)
    assert answer["rows"] == len(answer["predictions"]) == rows
    assert all(np.isfinite(row["prediction"]) for row in answer["predictions"])


def test_nothing_is_proven_aloud_before_the_data_was_read(folder, capsys):
    assert "'q'" in refused(capsys, "check", "Gaussian(1.0).on('q')", "--data", folder / "houses.csv")


@pytest.mark.thorough
def test_two_thousand_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2000)).round(2)
    frame = pl.DataFrame(X, schema=[f"x{k}" for k in range(2000)], orient="row").with_columns(y=pl.Series(X[:, 0]))
    frame.write_csv(tmp_path / "wide.csv")
    code, out, err = told(
        capsys, "fit", tmp_path / "wide.csv", "-t", "y", "-m", "ridge", "-k", "Gaussian(100.0)", "-o", "none", "--json"
    )
    assert code == 0, err
    assert len(json.loads(out)["columns"]) == 2000


# -- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [1, 4])
def test_interrupt_leaves_nothing(tmp_path, monkeypatch, capsys, call):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({f"x{k}": rng.normal(size=300) for k in range(3)})
    frame.with_columns(y=(pl.col("x0") * pl.col("x1")).sin()).write_csv(tmp_path / "data.csv")
    arguments = ["fit", "data.csv", "-t", "y", "-m", "gp", "-o", "m.mercer", "--report", "r.html"]
    real, calls = tiling.each, count(1)

    def interrupted(*args, **kwargs):
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tiling, "each", interrupted)
    code, out, err = told(capsys, *arguments)
    assert code == 130
    assert err.splitlines()[-1] == "mercer: interrupted: nothing was written"
    assert "Traceback" not in err
    assert out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.thorough
def test_a_reader_that_goes_away(folder, model):
    big = folder / "big.csv"
    pl.concat([houses(40)] * 200).write_csv(big)  # predictions of 8 000 rows are more than a pipe holds
    command = " ".join([*PYTHON, "predict", str(model), str(big), "|", "head", "-2"])
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=HANGS)
    assert done.stdout.startswith("prediction\n")
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_closed_output_is_said():
    done = subprocess.run(
        ["bash", "-c", " ".join([*PYTHON, "kernels", ">&-"])], capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 2
    assert done.stderr.startswith("mercer: standard output must be open")
    assert len(done.stderr.splitlines()) == 1


def on_a_terminal(*arguments, **environment) -> str:
    """What a person sees in 80 columns."""
    pty = pytest.importorskip("pty")
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    own = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    process = subprocess.Popen(
        [*PYTHON, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs,
        env=own | {"TERM": "xterm"} | environment,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            block = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        seen += block
    assert process.wait(timeout=HANGS) == 0, seen.decode()
    os.close(ours)
    return seen.decode()


@pytest.mark.thorough
def test_a_person_sees_the_score_so_far_in_80_columns(folder):
    seen = on_a_terminal("fit", folder / "houses.csv", "-t", "price", "--drop", "large", "-o", "none", "--time", "60")
    assert "leave-one-out R² 0." in seen, "the score so far"
    assert "\033[1m" in seen, "the first line is bold"
    *_, last = seen.split("\033[2K")
    answer = re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", last).replace("\r", "").splitlines()
    assert any(line.startswith("  kernel") for line in answer)
    assert max(len(line) for line in answer if str(folder) not in line) <= 80


@pytest.mark.thorough
def test_colours_can_be_turned_off():
    for arguments, environment in ((["check", "Linear()", "--no-color"], {}), (["kernels"], {"NO_COLOR": "1"})):
        assert "\033" not in on_a_terminal(*arguments, **environment)


@pytest.mark.thorough
def test_ended_predictions_leave_nothing(model, tmp_path):
    (tmp_path / "p.csv").write_text("old")
    pl.concat([houses(40)] * 50).write_csv(tmp_path / "big.csv")
    code = f"""
import signal
from mercer.cli import main
from mercer.cli.outputs import Sink

Sink.write = lambda *_: signal.raise_signal(signal.SIGTERM)
main(["predict", {str(model)!r}, "big.csv", "-o", "p.csv", "--interval", "0.9", "--force"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 143, done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["big.csv", "p.csv"]
    assert (tmp_path / "p.csv").read_text() == "old"


@pytest.mark.thorough
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_full_disk(folder, model, capsys):
    assert "space" in refused(capsys, "predict", model, folder / "new.csv", "-o", "/dev/full")
    code, _, err = told(
        capsys, "fit", folder / "houses.csv", "-t", "price", "-m", "ridge", "-k", KERNEL, "-o", "/dev/full", "-q"
    )
    assert code == 2
    assert "space" in err
    with open("/dev/full", "wb") as full:
        done = shell("predict", model, folder / "new.csv", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_old_predictions_stay_where_new_ones_fail(folder, model, capsys):
    kept = folder / "kept.csv"
    kept.write_text("old")
    refused(capsys, "predict", model, folder / "bad.csv", "-o", kept, "--force")
    assert kept.read_text() == "old"
    assert not [p for p in folder.iterdir() if p.name.endswith(".part")]


# -- the machine -------------------------------------------------------------------------------------------------------


def test_doctor_and_bench(capsys):
    code, out, _ = told(capsys, "doctor", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["gflops"] > 0
    assert answer["blas"]
    assert " 1 threads" not in told(capsys, "doctor")[1]
    code, out, _ = told(capsys, "bench", "--rows", "200", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["steps"][0]["step"] == "Gram matrix"
    assert answer["difference"] < 1e-8
    assert "--rows" in refused(capsys, "bench", "--rows", "5")


def test_demo(tmp_path, capsys):
    code, out, err = told(capsys, "demo", "--out", tmp_path / "d", "--json")
    assert code == 0, err
    answer = json.loads(out)
    for what in ("table", "model", "report", "predictions"):
        assert Path(answer[what]).stat().st_size > 1000, what
    code, out, err = told(capsys, "fit", answer["table"], "-t", "progression", "-o", tmp_path / "same.mercer", "--json")
    origin = provenance(mc.load(answer["model"]))
    assert json.loads(out)["scores"] == score_facts(origin.scores), "as in first-table.md"
    for page in ("README.md", "docs/index.md", "docs/first-table.md"):
        text = " ".join((Path(__file__).parents[1] / page).read_text(encoding="utf-8").split())
        assert re.search(rf"scores (are )?of {origin.held_out} patients", text), page


# -- what a command must not do ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "t.csv", "--target", "price", "--out", "t.csv"],
        ["fit", "t.csv", "--target", "price", "--report", "t.csv"],
        ["fit", "t.csv", "--target", "price", "--out", "link.mercer"],
        ["fit", "t.csv", "--target", "price", "--out", "m.mercer", "--report", "./m.mercer"],
        ["tune", "t.csv", "--target", "price", "--out", "sub/../t.csv"],
        ["predict", "m.mercer", "t.csv", "--out", "t.csv"],
        ["predict", "m.mercer", "t.csv", "--out", "m.mercer"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_no_command_writes_over_its_input(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    houses(30).write_csv("t.csv")
    Path("sub").mkdir()
    os.link("t.csv", "link.mercer")
    mc.Ridge().fit(houses(30).select("area"), houses(30)["price"]).save("m.mercer")  # it predicts for t.csv
    table, model = Path("t.csv").read_bytes(), Path("m.mercer").read_bytes()
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "must differ from all other files of the command" in said.err
    assert Path("t.csv").read_bytes() == table
    assert Path("m.mercer").read_bytes() == model


@pytest.mark.parametrize("how", [["-m", "ridge"], ["-m", "svm", "--time", "1"]], ids=["leave-one-out", "fitted rows"])
def test_a_report_without_rows_held_out_has_the_scores_of_the_terminal(tmp_path, monkeypatch, capsys, how):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mercer.report.document._Page._drawn", lambda self, plots, **how: "")
    houses(60).write_csv("t.csv")
    assert run(["fit", "t.csv", "--target", "price", "--drop", "large", "--test-size", "0", "--report", "r.html",
                "--json", *how]) == 0  # fmt: skip
    answer, page = json.loads(capsys.readouterr().out), Path("r.html").read_text()
    fitted_to_these = "The model was fitted to these rows" in page
    assert fitted_to_these == (answer["judged_on"] != "leave-one-out") == (how[1] == "svm")
    assert ("leave-one-out scores: each row is predicted by a model that is fitted without it" in page) == (
        answer["judged_on"] == "leave-one-out"
    )
    for score in answer["scores"]:
        assert f"{score['value']:.3g}" in page, score


@pytest.mark.thorough
def test_the_baseline_is_that_of_the_training_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train, new = houses(60), houses(30, seed=1).with_columns(pl.col("price") + 10)
    train.write_csv("t.csv")
    new.write_csv("new.csv")
    assert run(["fit", "t.csv", "-t", "price", "--drop", "large", "--test-size", "0", "-m", "ridge", "-q"]) == 0
    assert run(["evaluate", "t.mercer", "new.csv", "--json"]) == 0
    scores = {score["name"]: score for score in json.loads(capsys.readouterr().out)["scores"]}
    off = new["price"].to_numpy() - train["price"].mean()
    spread = new["price"].to_numpy() - new["price"].mean()
    assert scores["RMSE"]["baseline"] == pytest.approx(np.sqrt(np.mean(off**2)))
    assert scores["R²"]["baseline"] == pytest.approx(1 - (off**2).sum() / (spread**2).sum())
    middle = np.median(train["price"].to_numpy())
    assert scores["MAE"]["baseline"] == pytest.approx(np.abs(new["price"].to_numpy() - middle).mean())

    assert run(["fit", "t.csv", "-t", "large", "--drop", "price", "--test-size", "0", "-m", "logistic", "-q"]) == 0
    assert run(["evaluate", "t.mercer", "new.csv", "--json"]) == 0
    scores = {score["name"]: score for score in json.loads(capsys.readouterr().out)["scores"]}
    commonest = "yes" if (train["large"] == "yes").mean() > 0.5 else "no"
    assert scores["accuracy"]["baseline"] == pytest.approx((new["large"] == commonest).mean())


@pytest.mark.parametrize(
    ("blocked", "arguments", "words"),
    [
        (["typer"], ["--help"], "needs typer, which this installation does not have"),
        (["typer", "rich", "polars"], ["fit", "t.csv"], "needs typer, rich and polars, which"),
        (["polars"], ["fit", "t.csv", "--target", "price"], "needs polars"),
        (["matplotlib"], ["fit", "t.csv", "--target", "price", "--report", "r.html"], "--report needs matplotlib"),
        (["matplotlib"], ["demo"], "mercer demo needs matplotlib"),
    ],
    ids=["no typer", "nothing", "no polars", "report without matplotlib", "demo without matplotlib"],
)
def test_without_the_extra_packages_a_command_says_what_to_install(tmp_path, blocked, arguments, words):
    houses(30).write_csv(tmp_path / "t.csv")
    hide = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); from mercer.cli import main; main({arguments!r})"
    )
    done = subprocess.run([sys.executable, "-c", hide], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("mercer: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert 'pip install "mercer[' in done.stderr
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.thorough
def test_tune_says_when_nothing_beats_the_baseline(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = np.random.default_rng(0)
    pl.DataFrame({"a": own.normal(size=60), "y": own.permutation(["u"] * 45 + ["v"] * 15)}).write_csv("t.csv")
    assert run(["tune", "t.csv", "-t", "y", "-k", "Gaussian(1.0)", "-m", "svm", "--json"]) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["baseline"] == pytest.approx(0.75)
    assert answer["value"] <= 0.75  # the column says nothing about the target
    assert answer["beats_baseline"] is False
    assert "No candidate is better" in said.err


@pytest.mark.thorough
def test_tune_searches_the_widths_of_a_given_kernel(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = np.random.default_rng(0)
    X = 100 * own.normal(size=(120, 2))
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "u", "v")}).write_csv("t.csv")
    assert run(["tune", "t.csv", "-t", "y", "-k", "Gaussian(1.0)", "-m", "svm", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kernel"] != "Gaussian(sigma=1.0)"
    assert answer["value"] > 0.9


@pytest.mark.parametrize(
    "how", [["-m", "ridge", "--centers", "10"], ["-m", "poisson", "--centers", "10"], ["-m", "linear"]], ids=" ".join
)
def test_intervals_are_from_rows_held_out_where_the_file_lacks_the_training_rows(tmp_path, monkeypatch, capsys, how):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    area = rng.uniform(0, 4, 120)
    y = rng.poisson(3 + area)
    pl.DataFrame({"area": area, "age": rng.uniform(0, 3, 120), "y": y}).write_csv("t.csv")
    assert run(["fit", "t.csv", "-t", "y", "--task", "regression", "-o", "m.mercer", "-q", *how]) == 0
    code, out, err = told(capsys, "predict", "m.mercer", "t.csv", "--interval", "0.8", "--json")
    assert code == 0, err
    loaded = mc.load("m.mercer")
    assert "24 held-out rows" in err
    assert isinstance(loaded, mc.ConformalRegressor)
    if "--centers" in how:
        assert len(innermost(loaded).dual_coef_) == 10, "as many centres as asked for, however few the rows"
    rows = json.loads(out)["predictions"]
    assert 0.6 < np.mean([row["lower"] <= count <= row["upper"] for row, count in zip(rows, y)]) <= 1.0

    assert (
        run(["fit", "t.csv", "-t", "y", "--task", "regression", "-o", "m.mercer", "-q", "--test-size", "0", *how]) == 0
    )
    if not mc.load("m.mercer").has_intervals():
        assert "--test-size" in refused(capsys, "predict", "m.mercer", "t.csv", "--interval", "0.8")


def test_a_model_says_whether_its_file_holds_what_intervals_need(tmp_path):
    X = np.random.default_rng(0).uniform(size=(60, 2))
    y = np.round(5 * X[:, 0])
    auto = mc.AutoRegressor(time=0.05, kernel=mc.Gaussian(1.0), loss="squared").fit(X, y)
    auto.model_ = mc.KernelRidge(mc.Gaussian(1.0), solver="nystrom", n_centers=5).fit(X, y)
    for model in [
        mc.KernelRidge(mc.Gaussian(1.0)).fit(X, y),
        mc.KernelRidge(mc.Gaussian(1.0), solver="nystrom", n_centers=5).fit(X, y),
        mc.Ridge().fit(X, y),
        mc.RBFNetwork(n_centers=5).fit(X, y),
        mc.BayesianLinearRegression().fit(X, y),
        mc.GaussianProcessRegressor(mc.Gaussian(1.0)).fit(X, y),
        mc.KernelGLM(mc.Gaussian(1.0), family="poisson").fit(X, y),
        mc.KernelGLM(mc.Gaussian(1.0), family="poisson", n_centers=5).fit(X, y),
        mc.GLM(family="poisson").fit(X, y),
        mc.KernelNeighborsRegressor().fit(X, y),
        mc.SVR().fit(X, y),
        auto,
    ]:
        assert model.has_intervals() == hasattr(model, "predict_interval"), model
        expected = model.has_intervals(in_file=True)
        model.save(tmp_path / "m.mercer")
        loaded = mc.load(tmp_path / "m.mercer")
        try:
            loaded.predict_interval(X)
            answers = True
        except (mc.InvalidInput, AttributeError):
            answers = False
        assert loaded.has_intervals() == answers == expected, model


def test_leave_one_out_scores_are_in_the_units_of_the_target():
    """Those of a model of log y, too."""
    from mercer.models.scores import judge_by_leave_one_out

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (150, 1))
    y = np.exp(5 * X[:, 0] + 0.3 * rng.normal(size=150))
    model = mc.AutoRegressor(time=1.0, loss="log").fit(X, y)
    judgement = judge_by_leave_one_out(model, X, y)
    assert judgement.by == "left out"
    assert judgement["R²"].value > 0.6
    assert np.corrcoef(judgement.predictions, model.predict(X))[0, 1] > 0.95


def test_a_model_file_that_predicts_something_else_is_replaced_with_a_note(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    houses(40).write_csv("houses.csv")
    fit = ["fit", "houses.csv", "-m", "linear", "--drop", "city", "--drop", "large", "--time", 1, "-t"]
    assert "replaces it" not in told(capsys, *fit, "price")[2]
    assert "replaces it" not in told(capsys, *fit, "price")[2], "the same model again"
    note = " ".join(told(capsys, *fit, "age")[2].split())
    assert "houses.mercer was a model that predicts 'price' of houses.csv; the new model replaces it" in note
    assert provenance(mc.load("houses.mercer")).target == "age"


def test_explain_says_how_many_rows_were_really_fitted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = houses(60).drop("large")
    X, y = frame.drop("price"), frame["price"].to_numpy()
    model = mc.AutoRegressor(time=0.05).fit(X, y)
    model.last_fit_ = LastFit(30, 60, limit="time")
    model.provenance_ = Provenance(target="price", rows=60, data="t.csv")
    model.save("m.mercer")
    code, out, err = told(capsys, "explain", "m.mercer")
    assert code == 0, err
    assert "30 of 60 rows" in out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("target", "how"),
    [
        ("price", ["-m", "svm", "-k", "Gaussian(1.0)"]),
        ("price", ["-m", "gp", "-k", "Gaussian(1.0)"]),
        ("rooms", ["-m", "ridge"]),
        ("rooms", ["-m", "svm", "--task", "regression"]),
    ],
    ids=["svm", "gp", "ridge", "whole numbers"],
)
def test_the_command_that_tune_prints_fits_the_same_problem(tmp_path, monkeypatch, capsys, target, how):
    monkeypatch.chdir(tmp_path)
    frame = houses(50).with_columns(rooms=(pl.col("area").floor()), note=pl.lit("-"))
    frame = frame.with_columns(price=pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("price"))
    frame = frame.with_columns(age=pl.when(pl.int_range(pl.len()) == 5).then(-999.0).otherwise("age"))
    frame = frame[[i for i in range(50) if i != 5]] if "-k" in how else frame  # a Gaussian takes no missing values
    frame.write_csv("my houses.csv", separator=";")
    shared = ["--drop", "city", "--drop", "large", "--na=-999.0", "--delimiter", ";", "--drop-missing-target"]
    other = ["--drop", "rooms" if target == "price" else "price"]
    code, out, err = told(capsys, "tune", "my houses.csv", "-t", target, *how, *shared, *other)
    assert code == 0, err
    command = shlex.split(next(line for line in out.splitlines() if line.startswith("Next: "))[len("Next: ") :])
    assert command[:2] == ["mercer", "fit"]
    code, out, err = told(capsys, *command[1:], "-o", "none", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["task"] == "regression"
    assert answer["model"] == {"svm": "SVR", "gp": "GaussianProcessRegressor", "ridge": "KernelRidge"}[how[1]]
    assert {"city", "large"} <= set(answer["left_out"])


@pytest.mark.thorough
def test_tune_of_a_machine_shows_its_score_and_epsilon(folder, capsys):
    data, drop = folder / "houses.csv", ["--drop", "city"]
    tuning = ["tune", data, "-m", "svm", "-k", "Gaussian(1.0)", *drop]
    _, out, err = told(capsys, *tuning, "-t", "price", "--drop", "large")
    assert re.search(r"C = \S+, epsilon = \S+; mean R² over 3 folds \S+, baseline", " ".join(out.split())), out + err
    _, out, _ = told(capsys, *tuning, "-t", "large", "--drop", "price")
    assert re.search(r"C = \S+; mean accuracy over 3 folds \S+, baseline", " ".join(out.split())), out


@pytest.mark.thorough
def test_tune_has_the_option_that_it_advises(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a = np.random.default_rng(0).uniform(0, 4, 60)
    pl.DataFrame({"a": a, "y": np.floor(a).astype(int)}).write_csv("t.csv")
    tuning = ["tune", "t.csv", "-t", "y", "-k", "Gaussian(1.0)", "--json", "-m"]
    code, out, err = told(capsys, *tuning, "svm")
    assert (code, json.loads(out)["model"], "--task regression" in err) == (0, "SVC", True)
    code, out, err = told(capsys, *tuning, "svm", "--task", "regression")
    assert (code, json.loads(out)["model"]) == (0, "SVR"), err
    assert "--model svm" in refused(capsys, *tuning, "ridge", "--task", "classification")


@pytest.mark.parametrize("name", ["auto", "ridge"])
def test_identifiers_are_named_where_they_are_left_out(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    houses(60).drop("large").with_row_index("instant", offset=1).write_csv("t.csv")
    code, out, err = told(capsys, "fit", "t.csv", "-t", "price", "-m", name, "--time", "1", "-o", "none", "--json")
    assert code == 0, err
    notes = [line for line in err.splitlines() if "'instant' is not used" in line]
    assert len(notes) == 1, err
    assert json.loads(out)["left_out"]["instant"] in notes[0]
