"""The report: what it says is true, it stands alone, and a failed write leaves the old one."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import r2_score

import mercer as mc
from mercer.report import frames
from mercer.report.scores import judge

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"wide": rng.normal(size=90), "narrow": rng.normal(size=90), "noise": rng.normal(size=90)})
    y = np.sin(2 * X["wide"]) + 0.3 * X["narrow"] + 0.05 * rng.normal(size=90)
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.05).fit(X[:60], y[:60])
    return model, X, y.to_numpy()


@pytest.fixture(scope="module")
def written(regression, tmp_path_factory):
    model, X, y = regression
    path = tmp_path_factory.mktemp("report") / "report.html"
    mc.report.write(model, X[:60], y[:60], path, held_out=(X[60:], y[60:]), target="height", command="mercer fit a.csv")
    return path.read_text()


def test_it_is_a_page_that_needs_nothing_beside_it(written):
    parser = Balanced()
    parser.feed(written)
    assert parser.open == []
    assert not re.search(r'(src|href)="(?!#|data:)', written)
    assert "<script" not in written
    assert "@import" not in written


def test_scores_are_those_of_the_rows_held_out(regression, written):
    model, X, y = regression
    truth = r2_score(y[60:], model.predict(X[60:]))
    assert f"<b>{truth:.3g}</b>" in written
    assert "30 rows it has not seen" in written
    assert "will be worse" not in written


def test_names_of_drawn_parts_are_unique(written):
    ids = re.findall(r'\bid="([^"]+)"', written)
    assert len(ids) == len(set(ids)) > 20
    for used in re.findall(r"url\(#([^)]+)\)", written):
        assert used in ids


def test_the_column_that_matters_comes_first_and_worst_rows_are_worst(regression, written):
    data = written[written.index("<h2>The data") :]
    assert data.index("<td>wide") < data.index("<td>narrow") < data.index("<td>noise")
    model, X, y = regression
    worst = int(np.abs(y[60:] - model.predict(X[60:])).argmax())
    assert '<h2>Worst predicted rows</h2>\n<div class="wide"><table>' in written
    first = written[written.index("<h2>Worst") :]
    assert re.search(r'<tbody><tr><td class="n">(\d+)<', first)[1] == str(worst)


def test_kernel_proof_and_command_are_there(written):
    assert "Gaussian(sigma=1.5) is a kernel" in written
    assert "mercer fit a.csv" in written
    assert "alpha=0.05" in written


def test_fitted_rows_are_admitted(regression, tmp_path):
    model, X, y = regression
    text = mc.report.write(model, X[:60], y[:60], tmp_path / "a.html").read_text()
    assert "also fitted" in text


def test_text_of_the_data_cannot_become_markup(tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"<script>x</script>": rng.normal(size=40), "b": rng.normal(size=40)})
    y = np.where(X["b"] > 0, "<b>yes</b>", "no & no")
    model = mc.LogisticRegression(alpha=0.1).fit(X, y)
    text = mc.report.write(model, X, y, tmp_path / "a.html", target="<i>t</i>").read_text()
    assert "<script>x" not in text
    assert "<b>yes" not in text
    assert "<i>t" not in text


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_classes_in_frames(frame, tmp_path):
    rng = np.random.default_rng(2)
    X = frame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    y = np.where(np.asarray(X["a"]) * np.asarray(X["b"]) > 0, "same", "other")
    model = mc.KernelLogisticRegression(mc.Gaussian(1.0), alpha=0.1).fit(X[:50], y[:50])
    text = mc.report.write(model, X[:50], y[:50], tmp_path / "a.html", held_out=(X[50:], y[50:])).read_text()
    assert "accuracy" in text
    assert "log-loss" in text
    assert text.count("<figure>") >= 4


def test_judgement_knows_the_constant_and_its_interval():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 1))
    y = X[:, 0] + rng.normal(size=200)
    model = mc.Ridge(alpha=1.0).fit(X[:100], y[:100])
    r2, *_ = judge(model, X[100:], y[100:], y[:100]).scores
    assert r2.low < r2.value < r2.high
    assert r2.constant == pytest.approx(r2_score(y[100:], np.full(100, y[:100].mean())))


def test_columns_in_words():
    X = pd.DataFrame(
        {"n": [1.0, np.nan, 3.0], "c": ["x", "x", None], "d": pd.to_datetime(["2020-01-01", None, "2021-01-01"])}
    )
    number, category, date = frames.described(X)
    assert (number.kind, number.missing, number.distinct) == ("number", 1, 2)
    assert (category.kind, category.missing, category.told) == ("category", 1, "x (100 %)")
    assert (date.kind, date.missing) == ("date", 1)


def test_a_failed_write_leaves_the_old_page(regression, tmp_path, monkeypatch):
    model, X, y = regression
    path = tmp_path / "a.html"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(mc.InvalidInput, match="disk full"):
        mc.report.write(model, X[:60], y[:60], path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


def test_a_folder_that_is_not_there(regression, tmp_path):
    model, X, y = regression
    with pytest.raises(mc.InvalidInput, match="folder"):
        mc.report.write(model, X[:60], y[:60], tmp_path / "no" / "a.html")
