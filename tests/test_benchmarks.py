"""The benchmarks keep their results: one command runs all and resumes, and a page is made from the files."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
SCRIPT = """
import measure

measure.machine()
measure.heading("Sums")
measure.table(["", "seconds"], [["Mercer", "0.1"], ["peer", "0.3"]])
measure.compared("sum", {"Mercer": 0.1, "peer": 0.3, "gone": float("nan")}, size=10)
measure.curves("Sums", "rows", "seconds", {"Mercer": [(10, 0.1), (20, 0.2)]}, "sums.png")
measure.judge([("× peer", 3.0, 2.0), ("× best", 0.5, 1.0), ("× gone", float("nan"), 1.0)])
"""


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP / "benchmarks"))
    monkeypatch.syspath_prepend(str(TOP / "docs" / "_site"))
    import run

    return run


@pytest.fixture
def results(bench, tmp_path, monkeypatch):
    """A folder for results, and jobs with scripts of the test instead of the real ones."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "good.py").write_text(SCRIPT)
    (tmp_path / "benchmarks" / "bad.py").write_text(f"{SCRIPT}\nraise SystemExit('no peer')")
    monkeypatch.setenv("PYTHONPATH", str(TOP / "benchmarks"))
    monkeypatch.setattr(bench, "TOP", tmp_path)
    monkeypatch.setattr(bench, "JOBS", {"good": "good.py", "bad": "bad.py"})
    monkeypatch.setattr(bench, "WITH_DATA", {"far": "far.py"})
    monkeypatch.setattr(bench.results, "FOLDER", tmp_path / "results")
    monkeypatch.delenv("MERCER_DATA", raising=False)
    return tmp_path / "results"


def called(bench, monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
    monkeypatch.setattr(bench.results.read, "__defaults__", (bench.results.FOLDER,))
    return bench.main()


def test_results_name_no_folder_of_a_machine(bench, results, monkeypatch):
    (results.parent / "benchmarks" / "far.py").write_text(SCRIPT)
    assert called(bench, monkeypatch, "far", "--data", str(results.parent)) == 0
    assert json.loads((results / "far.json").read_text())["command"] == "python benchmarks/far.py --data DIR"
    for path in (TOP / "benchmarks" / "results").glob("*.json"):
        assert not re.search(r"[\s\"]/\w+/", path.read_text(encoding="utf-8")), path.name


@pytest.mark.thorough
def test_a_run_keeps_results_and_goes_on_where_it_was(bench, results, monkeypatch, capsys):
    assert called(bench, monkeypatch, "--busy") == 1
    said = capsys.readouterr().out
    assert "bad" in said
    assert "no peer" in said
    assert "far" in said
    assert "needs data sets" in said
    assert [path.name for path in results.iterdir()] == ["good.json"]  # nothing of the job that failed
    record = json.loads((results / "good.json").read_text())
    assert record["machine"]["cores"] >= 1
    assert {"Python", "NumPy", "SciPy", "scikit-learn", "Numba"} <= set(record["versions"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert record["clock"] == "processor time of one thread"
    assert record["command"] == "python benchmarks/good.py"
    assert record["comparisons"] == [{"task": "sum", "size": 10, "seconds": {"Mercer": 0.1, "peer": 0.3}}]
    lines = {"Mercer": [[10, 0.1], [20, 0.2]]}
    assert record["curves"] == [{"title": "Sums", "x": "rows", "y": "seconds", "lines": lines}]
    assert (results.parent / "sums.png").stat().st_size > 1000
    assert record["tables"][0]["title"] == "Sums"
    assert [target["what"] for target in record["tables"][0]["targets"]] == ["× peer", "× best"]
    monkeypatch.setattr(bench, "run", lambda *_: pytest.fail("a job with a result was run again"))
    assert called(bench, monkeypatch, "good") == 0
    assert "has a result of" in capsys.readouterr().out


def test_every_script_is_a_job_or_a_tool(bench):
    jobs = {words.split()[0] for words in (*bench.JOBS.values(), *bench.WITH_DATA.values())}
    tools = {"constants.py", "walk.py", "measure.py", "results.py", "run.py"}
    assert jobs | tools == {path.name for path in (TOP / "benchmarks").glob("*.py")}


def record(load: float, *comparisons: dict) -> dict:
    machine = {"processor": "P", "vectors": "AVX2", "cores": 2, "memory_gb": 8, "system": "Linux"}
    return {"machine": machine, "versions": {"Python": "3.11"}, "date": "2026-01-02", "commit": "abc",
            "load": [0, load], "clock": "time on the clock", "command": "python x.py", "seconds": 1,
            "comparisons": [*comparisons], "tables": [{"title": "T", "header": ["", "s"], "rows": [["a|b", ""]],
                        "targets": [{"what": "w", "measured": 1.0, "required": 2.0}]}]}  # fmt: skip


def test_the_page_has_ratios_growth_and_where_each_was_measured(bench, monkeypatch):
    import bench_pages

    sizes = [{"task": "fit", "size": n, "seconds": {"Mercer": n / 1e3, "Mercer, small": 1.0, "peer": n / 500}}
             for n in (10, 100, 1000)]  # fmt: skip
    records = {"ridge-1": record(1.0, *sizes[:2]), "ridge-2": record(9.0, sizes[2]), "other": record(0.0)}
    curve = {"title": "error", "x": "seconds", "y": "error", "lines": {"Mercer": [[1, 0.5], [2, 0.4]]}}
    records["other"]["curves"] = [curve]
    found = bench_pages.ratios(records)
    assert len(found) == 3  # Mercer beside itself is no comparison
    assert all(math.isclose(one.ratio, 2.0) for one in found)
    assert bench_pages.growths(records)["fit"]["peer"] == [(10, 0.02), (100, 0.2), (1000, 2.0)]
    assert bench_pages.growths({"ridge-1": records["ridge-1"]}) == {}
    monkeypatch.setattr(bench_pages, "files", lambda: records)
    monkeypatch.setattr(bench_pages, "drawn", lambda figure: "<svg/>")
    monkeypatch.setattr(bench_pages, "bars", lambda rows, look, width: None)
    drawings = []
    monkeypatch.setattr(bench_pages, "lines", lambda *curve: drawings.append(curve))
    pages = bench_pages.pages()
    text = pages["understand/benchmarks.md"]
    row = next(line for line in text.splitlines() if line.startswith("| fit, 1 000 rows | peer | 2.0× |"))
    assert all(
        words in row for words in ("P, AVX2, 2 cores, 8 GB", "Python 3.11", "Mercer at abc", "2026-01-02", "2.0×")
    )
    assert "load up to 9 on 2 cores" in text
    assert "3 targets are missed" in text
    assert "## Other" in text
    assert "a\\|b" in text
    assert ("error", curve["lines"], "dark", "seconds", "error") in drawings
    assert "images/benchmarks/other-curve-0-dark.svg" in pages
    assert "Error by seconds: error" in text
    assert {"images/benchmarks/kernel-ridge-exact-dark.svg", "images/benchmarks/kernel-ridge-exact-0-light.svg"} <= set(
        pages
    )
