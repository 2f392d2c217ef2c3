"""The report: what it says is true, it stands alone, and a failed write leaves the old one."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, r2_score, roc_auc_score

import mercer as mc
from mercer.models.explaining.effort import Effort
from mercer.models.judging.cross_validation import judge_by_folds
from mercer.models.provenance import Provenance, Split
from mercer.models.scores import Baseline, judge, judge_by_leave_one_out
from mercer.report import frames
from mercer.report.plots import COVERAGES, Plots
from mercer.report.source import source
from mercer.tuning.folds import make_folds

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


@pytest.fixture
def unpictured(monkeypatch):
    """Without the pictures, which are slow to draw."""
    monkeypatch.setattr("mercer.report.document._Page._drawn", lambda self, plots, **how: "")


@pytest.fixture(scope="module")
def written(regression, tmp_path_factory):
    return _written(regression, tmp_path_factory.mktemp("report"))


def _written(regression, folder):
    model, X, y = regression
    options = {"held_out": (X[60:], y[60:]), "target": "height", "command": "mercer fit a.csv"}
    return mc.report.write(model, X[:60], y[:60], folder / "report.html", **options).read_text()


@pytest.mark.thorough
def test_it_is_a_page_that_needs_nothing_beside_it(written):
    parser = Balanced()
    parser.feed(written)
    assert parser.open == []
    assert not re.search(r'(src|href)="(?!#|data:)', written)
    assert not re.search(r"https?:|[\"'(]//|<script|<link|@import|url\((?!#)", written)
    assert 'lang="en"' in written
    assert written.count('<svg role="img" aria-label=') == written.count("<figure>") == 10
    assert "<th>" not in written  # headers say of what: scope


def test_scores_are_those_of_the_rows_held_out(regression, written):
    model, X, y = regression
    truth = r2_score(y[60:], model.predict(X[60:]))
    assert f"<b>{truth:.3g}</b>" in written
    assert "scored on 30 held-out rows" in written
    assert "will be worse" not in written


def test_names_of_drawn_parts_are_unique(written):
    ids = re.findall(r'\bid="([^"]+)"', written)
    assert len(ids) == len(set(ids)) > 20
    for used in re.findall(r"url\(#([^)]+)\)", written):
        assert used in ids


def test_the_column_that_matters_comes_first_and_worst_rows_are_worst(regression, written):
    data = written[written.index("<h2>Data") :]
    assert data.index("<td>wide") < data.index("<td>narrow") < data.index("<td>noise")
    model, X, y = regression
    matters = written[written.index("<h2>Which columns matter") : written.index("<h2>The effect")]
    assert matters.index("<td>wide") < matters.index("<td>narrow")
    importance = mc.feature_importance(model, X[60:], y[60:])
    assert importance.words("held-out rows") in unescape(matters)
    assert f">{importance.shown(max(importance.rise))} ±" in matters
    worst = int(np.abs(y[60:] - model.predict(X[60:])).argmax())
    assert '<h2>Worst predicted rows</h2>\n<div class="wide"><table>' in written
    first = written[written.index("<h2>Worst") :]
    assert re.search(r'<tbody><tr><td class="n">(\d+)<', first)[1] == str(60 + worst)  # the index of the frame


def test_kernel_proof_and_command_are_there(written):
    assert "<code>Gaussian(sigma=1.5)</code><span>by f(x)·k(x,z)·f(z)" in written
    assert '<li class="axiom"><code>Linear()</code>' in written
    assert "mercer fit a.csv" in written
    assert "alpha=0.05" in written


def test_contents_link_to_every_section(written):
    nav = re.search(r'<nav aria-label="Contents">(.*?)</nav>', written)[1]
    links = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', nav)
    assert links == re.findall(r'<section id="([^"]+)">\n<h2>([^<]+)</h2>', written)
    assert len(links) > 8


@pytest.mark.usefixtures("unpictured")
def test_the_card_shows_the_origin_the_settings_and_the_limits(regression, tmp_path):
    _, X, y = regression
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.05).fit(X[:60], y[:60])
    facts = {"data": "a.csv", "left_out": {"id": "all different"}, "split": Split(group="farm")}
    model.provenance_ = replace(Provenance.of(X[:60], y[:60], **facts), time="2026-03-01T12:30:59+00:00")
    text = mc.report.write(model, X[:60], y[:60], tmp_path / "a.html", held_out=(X[60:], y[60:])).read_text()
    assert "From a.csv, fitted on 2026-03-01 at 12:30 UTC." in text
    card = text[text.index("<h2>Model card") : text.index("<h2>Scores")]
    for fact in ("<code>Gaussian(sigma=1.5)</code>", "alpha = 0.05", "id (all different)", "whole groups of farm",
                 f"mercer {mc.__version__}", "60 training rows are few", "are extrapolation", "causes"):  # fmt: skip
        assert text.count(fact) - text.count(f"{fact}<span>by") == card.count(fact) == 1, fact


@pytest.mark.usefixtures("unpictured")
def test_the_card_names_rare_classes_and_a_search_that_was_stopped(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    y[:4] = "odd"
    model = mc.KernelLogisticRegression(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    model.stopped_by_ = "time"
    text = mc.report.write(model, X, y, tmp_path / "a.html").read_text()
    assert "Classes with fewer than 10 training rows: odd (4)." in text
    assert "The search ended at its time limit" in text
    assert "training rows are few" not in text


def _run(page, X, y):
    """What the Python of the page makes."""
    made = {"X": X, "y": y}
    exec(unescape(re.search(r"without the search:</p>\n<pre>(.*?)</pre>", page, re.DOTALL)[1]), made)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["squared", "log", "poisson", "robust"])
@pytest.mark.usefixtures("unpictured")
def test_the_python_of_the_page_gives_the_same_regression(loss, tmp_path):
    rng = np.random.default_rng(7)
    X = pd.DataFrame({f"a 'quoted' \"name\" {j}": rng.normal(size=60) for j in range(9)})
    X["kind"] = np.where(rng.normal(size=60) > 0, "it's", "isn't")
    y = np.floor(np.exp(X.iloc[:, 0] + 1)).to_numpy() + 1
    model = mc.AutoRegressor(time=60.0, loss=loss).fit(X, y)
    made = _run(mc.report.write(model, X, y, tmp_path / "a.html").read_text(), X, y)
    answers = made.get("predict", made["model"].predict)(X)
    assert answers == pytest.approx(model.predict(X), rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.usefixtures("unpictured")
def test_the_python_of_the_page_gives_the_same_classes(loss, tmp_path):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    model = mc.AutoClassifier(time=60.0, loss=loss).fit(X, y)
    made = _run(mc.report.write(model, X, y, tmp_path / "a.html").read_text(), X, y)
    assert (made["model"].predict(X) == model.predict(X)).all()
    P = (made["model"].predict_proba if loss == "hinge" else made["predict_proba"])(X)
    assert pytest.approx(model.predict_proba(X), abs=1e-6) == P


def test_what_python_cannot_say_is_loaded(regression):
    _, X, y = regression
    own = mc.KernelRidge(mc.Linear().after(np.tanh), alpha=0.1).fit(X, y)
    assert 'mc.load("model.mercer")  # after model.save("model.mercer"), since' in source(own)
    assert 'mc.load("rents.mercer")  # the saved file, since' in source(own, saved="rents.mercer")
    auto = mc.AutoRegressor(time=0.5).fit(X, y)
    assert "mc.load" not in source(auto)
    auto.model_ = auto.model_.fit(X[:30], y[:30])
    assert "some of the rows" in source(auto)
    found = mc.KernelRidge(mc.Gaussian(1.0), alpha="loo").fit(X, y)
    assert f"alpha={found.alpha_!r}" in source(found)


@pytest.mark.usefixtures("unpictured")
def test_fitted_rows_are_admitted(regression, tmp_path):
    model, X, y = regression
    text = mc.report.write(model, X[:60], y[:60], tmp_path / "a.html").read_text()
    assert "The model was fitted to these rows" in text


@pytest.mark.thorough
def test_text_of_the_data_cannot_become_markup(tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"<script>x</script>": rng.normal(size=40), "$b$ <u>": rng.normal(size=40)})
    X["<em>c"] = np.where(X["$b$ <u>"] > 1, '"><img src=x onerror=alert(1)>', "<script>alert(2)</script>")
    y = np.where(X["$b$ <u>"] > 0, "<b>yes</b>", "no & no")
    model = mc.KernelLogisticRegression(mc.table_kernel(X), alpha=0.1).fit(X, y)
    text = mc.report.write(model, X, y, tmp_path / "a.html", target="<i>t</i>", command="<tt>").read_text()
    for markup in ("<script", "<b>yes", "<i>", "<u>", "<em>", "<img", "<tt>"):
        assert markup not in text
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []


@pytest.mark.thorough
def test_the_same_report_is_the_same_text(regression, written, tmp_path):
    assert _written(regression, tmp_path) == written


@pytest.mark.usefixtures("unpictured")
def test_a_page_that_is_not_a_report_is_replaced_only_on_request(regression, tmp_path):
    model, X, y = regression
    path = tmp_path / "mine.html"
    path.write_text("<p>mine</p>")
    with pytest.raises(mc.InvalidInput, match="pass overwrite=True to replace it"):
        mc.report.write(model, X, y, path)
    assert path.read_text() == "<p>mine</p>"
    mc.report.write(model, X, y, path, overwrite=True)
    assert mc.report.write(model, X, y, path) == path  # a report may be replaced


@pytest.mark.usefixtures("unpictured")
def test_rows_are_named_as_in_their_table(regression, tmp_path):
    model, X, y = regression
    held = X[60:].to_numpy(), y[60:]
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.05).fit(X[:60].to_numpy(), y[:60])
    worst = int(np.abs(held[1] - model.predict(held[0])).argmax())
    for rows, name in ((None, worst + 1), (np.arange(30) + 500, worst + 501)):
        text = mc.report.write(
            model, X[:60].to_numpy(), y[:60], tmp_path / "a.html", held_out=held, rows=rows
        ).read_text()
        assert f'<tbody><tr><td class="n">{name}</td>' in text[text.index("<h2>Worst") :]


@pytest.mark.usefixtures("unpictured")
def test_bad_input_is_refused(regression, tmp_path):
    model, X, y = regression
    for bad in ({"held_out": (X[60:], y[:5])}, {"held_out": (X[60:], np.c_[y[60:], y[60:]])}, {"rows": [1, 2]}):
        with pytest.raises(mc.InvalidInput, match="must hold"):
            mc.report.write(model, X[:60], y[:60], tmp_path / "a.html", **bad)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.usefixtures("unpictured")
def test_long_expressions_and_names_are_cut(tmp_path, monkeypatch):
    for name in ("measured_importance", "explained_rows"):  # hundreds of predictions, each of 91 terms
        monkeypatch.setattr(f"mercer.report.document.{name}", lambda *_, **__: None)
    rng = np.random.default_rng(5)
    names = [f"a very long name of a column, number {j:03d}, which goes on and on and on" for j in range(90)]
    X = pd.DataFrame(rng.normal(size=(40, 90)), columns=names)
    kernel = sum((mc.Gaussian(1.0 + j).on(name) for j, name in enumerate(names)), mc.Linear())
    model = mc.KernelRidge(kernel, alpha=0.1).fit(X, X[names[0]])
    text = mc.report.write(model, X, X[names[0]], tmp_path / "a.html").read_text()
    assert "30 more columns are not shown" in text
    assert "and 79 more" in text  # premises of the sum
    assert max(len(cell) for cell in re.findall(r"<td[^>]*>([^<]*)<", text)) < 100


@pytest.mark.thorough
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_classes_in_frames(frame, tmp_path):
    rng = np.random.default_rng(2)
    X = frame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    y = np.where(np.asarray(X["a"]) * np.asarray(X["b"]) > 0, "same", "other")
    model = mc.KernelLogisticRegression(mc.Gaussian(1.0), alpha=0.1).fit(X[:50], y[:50])
    text = mc.report.write(model, X[:50], y[:50], tmp_path / "a.html", held_out=(X[50:], y[50:])).read_text()
    assert "accuracy" in text
    assert "log loss" in text
    assert text.count("Probability of same by ") == 6  # three pictures, their words and captions
    assert re.search("Probability of same by (a and b|b and a)", text)  # the two columns interact
    assert text.count("<figure>") == 10
    table = text[text.index("<h2>Class by class") : text.index("<h2>Data")]
    wrong = (model.predict(X[50:]) != y[50:]) & (y[50:] == "same")
    assert f"other ({wrong.sum()})" in table


def test_judgement_knows_a_guess_and_its_interval():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 1))
    y = X[:, 0] + rng.normal(size=200)
    model = mc.Ridge(alpha=1.0).fit(X[:100], y[:100])
    r2, rmse, mae = judge(model, X[100:], y[100:], Baseline.of(y[:100])).scores
    assert r2.low < r2.value < r2.high
    assert r2.value == pytest.approx(r2_score(y[100:], model.predict(X[100:])))
    assert rmse.baseline == pytest.approx(np.sqrt(np.mean((y[100:] - y[:100].mean()) ** 2)))
    assert mae.baseline == pytest.approx(np.mean(np.abs(y[100:] - np.median(y[:100]))))
    elsewhere = judge(model, X[100:], y[100:], Baseline.of(y[:100]), predictions=y[100:] + 1.0)
    assert [s.value for s in elsewhere.scores[1:]] == pytest.approx([1.0, 1.0])


def test_scores_of_classes_are_scikit_learns():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + rng.normal(size=150) > 0.7, "b", "a")
    model = mc.KernelLogisticRegression(mc.Gaussian(1.0), alpha=0.1).fit(X[:80], y[:80])
    Z, z = X[80:], y[80:]
    P, said = model.predict_proba(Z), model.predict(Z)
    found = {s.name: s for s in judge(model, Z, z, Baseline.of(y[:80], classes=True)).scores}
    assert found["accuracy"].value == accuracy_score(z, said)
    assert found["balanced accuracy"].value == pytest.approx(balanced_accuracy_score(z, said))
    assert found["log loss"].value == pytest.approx(log_loss(z, P, labels=model.classes_))
    assert found["area under ROC"].value == pytest.approx(roc_auc_score(z == "b", P[:, 1]))
    assert found["log loss"].baseline == pytest.approx(
        log_loss(z, np.tile([np.mean(y[:80] == "a"), np.mean(y[:80] == "b")], (70, 1)), labels=["a", "b"])
    )
    assert all(s.low < s.value < s.high for s in found.values())
    p = found["accuracy"].value
    ends = p + np.array([-1.645, 1.645]) * np.sqrt(p * (1 - p) / 70)
    assert [found["accuracy"].low, found["accuracy"].high] == pytest.approx(ends, abs=0.02)


def test_columns_in_words():
    X = pd.DataFrame(
        {"n": [1.0, np.nan, 3.0], "c": ["x", "x", None], "d": pd.to_datetime(["2020-01-01", None, "2021-01-01"])}
    )
    X["p"] = pd.array([1, None, 1], dtype="Int64")
    number, category, date, nullable = frames.described(X)
    assert (nullable.kind, nullable.missing) == ("number", 1)
    assert (number.kind, number.missing, number.distinct) == ("number", 1, 2)
    assert (category.kind, category.missing, category.summary) == ("category", 1, "x (100 %)")
    assert (date.kind, date.missing) == ("date", 1)


@pytest.mark.thorough
def test_columns_are_what_the_kernel_takes_them_for(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.models.conformal.SMALL", 30)
    monkeypatch.setattr(mc.AutoRegressor, "predict_interval", None)  # too slow of many rows
    rng = np.random.default_rng(9)
    X = pl.DataFrame({"size": rng.normal(size=60), "flag": rng.integers(0, 2, 60), "id": [f"n{i}" for i in range(60)]})
    y = 3 * np.asarray(X["flag"]) + np.asarray(X["size"])
    kernel = mc.table_kernel(X)
    assert frames.kinds_read(kernel, X.columns) == {"size": "number", "flag": "category"}
    product = mc.Gaussian(1.0).on(0) * mc.Categorical([1.0]).on("flag")
    assert frames.kinds_read(2.0 * product, X.columns) == {"size": "", "flag": "category"}
    assert frames.kinds_read(product + mc.Linear(), X.columns) is None
    model = mc.AutoRegressor(kernel=mc.TableKernel(), time=1.0).fit(X, y)
    text = mc.report.write(model, X, y, tmp_path / "a.html").read_text()
    assert "on 3 columns, 1 of them not used" in text
    assert "Not used by the kernel: id." in text
    kinds = dict(re.findall(r"<tr><td>(\w+)</td><td>([\w ]+)</td>", text[text.index("<h2>Data") :]))
    assert kinds == {"size": "number", "flag": "category", "id": "not used"}
    assert "90 % of them are between" in text
    assert text.count("<figure>") == 7


def test_what_matters_to_the_reader_comes_first_and_the_proof_is_folded_away(written):
    titles = re.findall(r"<h2>([^<]*)</h2>", written)
    order = ["Scores", "Predictions and their errors", "Which columns matter", "The effect of the columns",
             "Why the model predicts as it does: two rows", "Worst predicted rows", "Data", "Kernel",
             "How to reproduce it"]  # fmt: skip
    assert [title for title in titles if title in order] == order
    assert '<details><summary>The proof, step by step</summary><ul class="proof">' in written


def test_two_rows_are_explained_by_contributions_and_similar_rows(regression, written):
    model, X, y = regression
    part = unescape(written[written.index("<h2>Why the model") : written.index("<h2>Worst")])
    errors = np.abs(y[60:] - model.predict(X[60:]))
    worst = 60 + int(errors.argmax())
    assert f"Index {worst}, the largest error: predicted {frames.cell(model.predict(X[worst : worst + 1])[0])}" in part
    row = X[worst : worst + 1]
    name, value, _ = mc.contributions(model, row, X[:60]).ranked()[0]
    assert f'<td>{name}</td><td>{frames.cell(np.asarray(row[name])[0])}</td><td class="n">{value:+.3g}' in part
    nearest = mc.similar_rows(model, row, among=X[:60]).rows[0]
    assert f"<td>{frames.cell(y[nearest])}</td>" in part


@pytest.mark.usefixtures("unpictured")
def test_a_failed_write_leaves_the_old_page(regression, tmp_path, monkeypatch):
    model, X, y = regression
    path = tmp_path / "a.html"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(mc.InvalidInput, match="free disk space"):
        mc.report.write(model, X[:60], y[:60], path, overwrite=True)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


def test_a_folder_that_is_not_there(regression, tmp_path):
    model, X, y = regression
    with pytest.raises(mc.InvalidInput, match="folder"):
        mc.report.write(model, X[:60], y[:60], tmp_path / "no" / "a.html")


@pytest.mark.usefixtures("unpictured")
def test_leave_one_out_predictions_are_judged_and_named(regression, tmp_path):
    model, X, y = regression
    left, judged = model.loo_predictions_, judge_by_leave_one_out(model, X[:60], y[:60])
    text = mc.report.write(model, X[:60], y[:60], tmp_path / "a.html", judgement=judged).read_text()
    assert "leave-one-out scores" in text
    assert "The model was fitted to these rows" not in text
    assert f"{r2_score(y[:60], left):.3g}" in text
    assert f"{r2_score(y[:60], model.predict(X[:60])):.3g}" not in text
    for rows, held_out in ((40, None), (60, (X[60:], y[60:]))):
        with pytest.raises(mc.InvalidInput, match="`judgement` must be of"):
            mc.report.write(model, X[:rows], y[:rows], tmp_path / "a.html", judgement=judged, held_out=held_out)


@pytest.mark.usefixtures("unpictured")
def test_cross_validated_predictions_are_judged_and_named(regression, tmp_path):
    model, X, y = regression
    folds = make_folds(60, 3, times=np.arange(60), random_state=1)
    judged = judge_by_folds(lambda X, y: clone(model).fit(X, y), X[:60], y[:60], folds)
    text = mc.report.write(model, X[:60], y[:60], tmp_path / "a.html", judgement=judged, rows=np.arange(60)).read_text()
    assert "fitted to 60 rows and scored on 45 training rows by cross-validation" in text
    assert "These are scores by cross-validation" in text
    assert f"{judged['R²'].value:.3g}" in text


@pytest.mark.usefixtures("unpictured")
def test_the_rows_that_were_really_fitted_are_counted(regression, tmp_path):
    model, X, y = regression
    text = mc.report.write(model, X, y, tmp_path / "a.html", held_out=(X[60:], y[60:])).read_text()
    assert "fitted to 60 of 90 rows" in text
    text = mc.report.write(model, X[:60], y[:60], tmp_path / "a.html", held_out=(X[60:], y[60:])).read_text()
    assert "fitted to 60 rows" in text


@pytest.mark.thorough
def test_a_picture_that_cannot_be_drawn_is_reported_and_a_defect_is_not_hidden(regression, tmp_path, monkeypatch):
    from mercer import plot

    model, X, y = regression

    def page(error):
        def fail(*args, **kwargs):
            raise error

        monkeypatch.setattr(plot.Residuals, "from_predictions", fail)
        monkeypatch.setattr("mercer.report.plots.CURVES", 0)
        held_out = X[60:], y[60:]
        path = tmp_path / "a.html"
        return mc.report.write(model, X[:60], y[:60], path, held_out=held_out, target="height").read_text()

    text = page(mc.InvalidInput("Residuals must be finite", got="infinity", advice="Check the model."))
    assert '<p class="soft">This plot could not be drawn. Residuals against predicted height' in text
    assert "Residuals must be finite, got infinity. Check the model.</p>" in text
    assert text.count("<figure>") == 6, "the others are there"
    for defect in (AttributeError("no such thing"), ValueError("operands could not be broadcast")):
        with pytest.raises(type(defect)):
            page(defect)


@pytest.mark.usefixtures("unpictured")
def test_data_are_named_missing_cells_are_missing_and_the_last_column_has_its_line(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 7)), columns=list("abcdefg"))
    X["kind"] = ["red", None] * 20
    X = X.drop(columns="g")
    model = mc.KernelRidge(mc.TableKernel(), alpha=0.1).fit(X, X["a"])
    page = mc.report.write(model, X, X["a"].to_numpy(), tmp_path / "r.html").read_text()
    assert "Columns of the 40 training rows." in page
    assert ">missing</td>" in page
    assert ">None</td>" not in page
    assert "1 other column" not in page


@pytest.mark.thorough
def test_intervals_of_other_groups_are_those_that_the_saved_model_has():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 6)
    x = rng.normal(size=240)
    X, y = np.column_stack([rng.normal(size=40)[group], x]), x + 3 * rng.normal(size=40)[group]
    train, test = group < 20, group >= 20
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X[train], y[train])
    judgement = judge(model, X[test], y[test], intervals=True, apart=True, groups=group[test])
    plots = Plots(
        model, X[train], y[train], X[test], y[test], judgement, "y", ["a", "b"], np.arange(2), Effort.of(model)
    )
    assert isinstance(plots._with_intervals, mc.ConformalRegressor)
    low, high = judgement.intervals.T
    shown = dict(zip(COVERAGES, plots._coverage().observed))
    assert shown[0.9] == pytest.approx(np.mean((low <= y[test]) & (y[test] <= high)))
