"""Tables as people write them: numbers and dates, sheets, databases, roles by options, and files that are kept."""

from __future__ import annotations

import datetime as dt
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import mercer as mc  # noqa: E402
from mercer.cli import header, spreadsheets  # noqa: E402
from mercer.cli.app import run  # noqa: E402
from mercer.cli.cells import NumberStyle, dates, number_style  # noqa: E402
from mercer.cli.destinations import require_outputs  # noqa: E402
from mercer.cli.reading import batches, read  # noqa: E402
from mercer.cli.speaking import Voice  # noqa: E402
from mercer.cli.tables import problem_from  # noqa: E402
from mercer.models import menu  # noqa: E402
from mercer.models.provenance import provenance  # noqa: E402
from mercer.models.scores import hold_out  # noqa: E402
from mercer.report.page import page  # noqa: E402


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def told(capsys, *arguments):
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments) -> str:
    code, out, err = told(capsys, *arguments)
    assert code == 2, (out, err)
    return err.splitlines()[-1]


def wages(n: int = 60, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    hours, shop = rng.uniform(1, 9, n), rng.integers(1, 4, n)
    return pl.DataFrame(
        {"hours": hours, "shop": shop, "key": np.arange(n), "pay": hours * (10 + 5 * shop) + rng.normal(size=n)}
    )


# -- cells -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "comma", "values", "style"),
    [
        (["53,110", "1,200"], False, [53110, 1200], "1,234.5"),
        (["1,234,567.5", "12"], False, [1234567.5, 12], "1,234.5"),
        (["3,5", "1,25"], False, [3.5, 1.25], "1234,5"),
        (["0,123", "1,250"], False, [0.123, 1.25], "1234,5"),
        (["1.234,5", "2"], False, [1234.5, 2], "1.234,5"),
        (["1.234", "2.500"], True, [1234, 2500], "1.234,5"),
        (["1 234", "5"], False, [1234, 5], "1 234.5"),
        (["CHF 1'200", "CHF 90"], False, [1200, 90], "1'234.5"),
        (["$1,234.50", "-$5", "($7)"], False, [1234.5, -5, -7], "1,234.5"),
        (["12 €", "13 €"], False, [12, 13], "1234.5"),
        (["12%", "3.5 %"], False, [12, 3.5], "1234.5%"),
    ],
)
def test_numbers_as_people_write_them(words, comma, values, style):
    column = pl.Series([*words, None])
    found, _ = number_style(column, comma)
    assert str(found) == style
    assert NumberStyle.parse(str(found)) == found
    assert found.read(column).to_list() == [*values, None]


@pytest.mark.parametrize(
    "words",
    [["$5", "€5"], ["12%", "3"], ["555-1234"], ["10.0.0.1"], ["a", "1,200"], ["1,2,3"], ["12.04.2023"], ["12,34,567"]],
    ids=str,
)
def test_what_is_not_a_number_in_any_style(words):
    assert number_style(pl.Series(words), False) is None


@pytest.mark.parametrize(
    ("words", "first", "format", "instead"),
    [
        (["12/04/2023", "03/05/2023"], (2023, 12, 4), "%m/%d/%Y", "%d/%m/%Y"),
        (["31/12/2026", "01/02/2026"], (2026, 12, 31), "%d/%m/%Y", ""),
        (["12.04.2023", "03.05.2023"], (2023, 4, 12), "%d.%m.%Y", "%m.%d.%Y"),
        (
            ["12/04/2023", "01/05/2023", "09/06/2023", "02/07/2023", "05/08/2023"],  # in order in one way only
            (2023, 4, 12),
            "%d/%m/%Y",
            "%m/%d/%Y",
        ),
        (["12 Apr 2023", "3 May 2023"], (2023, 4, 12), "%d %b %Y", ""),
        (["April 12, 2023", "June 3, 2023"], (2023, 4, 12), "%B %d, %Y", ""),
        (["2023/04/12", "2023/05/03"], (2023, 4, 12), "%Y/%m/%d", ""),
    ],
)
def test_dates_as_people_write_them(words, first, format, instead):
    found = dates(pl.Series(words), [])
    assert found.values[0] == dt.date(*first)
    assert (found.format, found.instead) == (format, instead)


def test_a_column_whose_order_is_clear_speaks_for_another():
    assert dates(pl.Series(["12/04/2023"]), ["%d/%m/%Y"]).values[0] == dt.date(2023, 4, 12)
    assert dates(pl.Series(["12/04/2023", "soon"]), []) is None


# -- files -------------------------------------------------------------------------------------------------------------

MESSY = """plz,price,rent,share,seen,day,balcony,size,y
01067,"53,110",$5.50,10%,08:30,12/04/2023,yes,20,1
01097,"1,200",$7,20%,17:15,03/05/2023,No,30,2
24103,"900",$9.25,35%,,11/12/2023,yes,45,3
"""


def test_a_messy_table_and_the_notes_about_it():
    Path("messy.csv").write_text(MESSY)
    table = read("messy.csv", target="y")
    row = table.frame.row(0, named=True)
    assert row == {
        "plz": "01067", "price": 53110, "rent": 5.5, "share": 10, "seen": 8.5, "day": dt.date(2023, 12, 4),
        "balcony": True, "size": 20, "y": 1,
    }  # fmt: skip
    assert table.types == {
        "price": "Int64[1,234.5]", "rent": "Float64[1234.5]", "share": "Int64[1234.5%]", "seen": "Float64[hours]",
        "day": "Date[%m/%d/%Y]",
    }  # fmt: skip
    notes = " | ".join(table.notes)
    for note in (
        "'plz' is read as text, since its numbers have leading zeros ('01067'); --number plz",
        "'price' is read as numbers: '53,110' is 53110; --text price",
        "without the currency $: '$5.50' is 5.5",
        "in percent: '10%' is 10",
        "('08:30' is 8.5)",
        "'12/04/2023' is 4 December 2023. That is an assumption; --date 'day=%d/%m/%Y'",
    ):
        assert note in notes, note
    with batches("messy.csv", table.types | {"plz": "String", "balcony": "Boolean"}) as (tables, _):
        again = next(tables).frame
    assert again.equals(table.frame.select(again.columns))


def test_options_overrule_what_was_assumed():
    Path("messy.csv").write_text(MESSY)
    roles = {"number": ["plz"], "text": ["price", "size"], "date": ["day=%d/%m/%Y"], "category": ["rent"]}
    table = read("messy.csv", roles=roles, target="y")
    assert table.frame["plz"].to_list() == [1067, 1097, 24103]
    assert table.frame["price"][0] == "53,110"
    assert table.frame["size"].to_list() == ["20", "30", "45"]
    assert table.frame["rent"][0] == "$5.50"
    assert table.frame["day"][0] == dt.date(2023, 4, 12)
    assert not any("assumption" in note for note in table.notes)
    with pytest.raises(mc.InvalidInput, match=r"must hold numbers in every row, got 'yes' in row 1"):
        read("messy.csv", roles={"number": ["balcony"]})
    with pytest.raises(mc.InvalidInput, match=r"must hold dates, got 'yes' in row 1\. State the format: --date"):
        read("messy.csv", roles={"date": ["balcony"]})
    with pytest.raises(mc.InvalidInput, match=r"one role, got --category and --drop for 'plz'"):
        read("messy.csv", roles={"category": ["plz"], "drop": ["plz"]})


def test_a_target_with_thousands_is_read_again(capsys):
    frame = wages().drop("key").with_columns(pay=pl.Series([f"{round(1000 * pay):,}" for pay in wages()["pay"]]))
    frame.write_csv("wages.csv")
    assert told(capsys, "fit", "wages.csv", "-t", "pay", "-m", "linear", "-o", "m.mercer")[0] == 0
    code, out, err = told(capsys, "evaluate", "m.mercer", "wages.csv", "--json")
    assert code == 0, err
    assert next(score["value"] for score in json.loads(out)["scores"] if score["name"] == "R²") > 0.8


def test_classes_in_words_stay_words():
    Path("t.csv").write_text("a,y\n1,yes\n2,no\n3,yes\n")
    assert read("t.csv", target="y").frame["y"].to_list() == ["yes", "no", "yes"]
    assert read("t.csv", target="-1").frame["y"].to_list() == ["yes", "no", "yes"]
    assert read("t.csv").frame["y"].to_list() == [True, False, True]


def test_eight_digits_and_decimal_commas():
    Path("t.csv").write_text("day;a;y\n20270301;1.250,5;1\n20270412;3,25;2\n")
    table = read("t.csv", roles={"date": ["day"]})
    assert table.frame["day"][1] == dt.date(2027, 4, 12)
    assert table.frame["a"].to_list() == [1250.5, 3.25]
    with batches("t.csv", {"day": table.types["day"], "a": table.types["a"]}) as (tables, _):
        assert next(tables).frame.rows() == table.frame.select("day", "a").rows()


@pytest.mark.parametrize("kind", ["excel", "ods"])
def test_sheets_in_and_out(kind, capsys):
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    suffix = "xlsx" if kind == "excel" else "ods"
    frame = wages().with_columns(code=pl.lit("007"), word=pl.lit("=1+1"), day=dt.date(2027, 3, 1))
    spreadsheets.write(frame, f"wages.{suffix}", kind)
    table = read(f"wages.{suffix}")
    assert table.frame["code"][0] == "007"
    assert table.frame["word"][0] == "=1+1"
    assert table.frame["day"][0] == dt.date(2027, 3, 1)
    np.testing.assert_allclose(table.frame["pay"], frame["pay"], rtol=1e-14)
    assert told(capsys, "fit", f"wages.{suffix}", "-t", "pay", "-m", "linear", "-o", "m.mercer")[0] == 0
    assert told(capsys, "predict", "m.mercer", f"wages.{suffix}", "-o", f"p.{suffix}")[0] == 0
    predicted = read(f"p.{suffix}").frame["prediction"]
    model = mc.load("m.mercer")
    np.testing.assert_allclose(predicted, model.predict(frame.select("hours", "shop")), rtol=1e-12)
    with pytest.raises(mc.InvalidInput, match=r"the sheet 'May'"):
        read(f"wages.{suffix}::May")


def test_a_spreadsheet_without_its_package(monkeypatch):
    monkeypatch.setattr(spreadsheets, "find_spec", lambda name: None)
    with zipfile.ZipFile("book.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(mc.InvalidInput, match=r'needs the package fastexcel.*pip install "mercer\[excel\]"'):
        read("book.xlsx")


def database(*statements):
    with sqlite3.connect("shop.db") as connection:
        frame = wages()
        connection.execute("CREATE TABLE wages (hours REAL, shop INTEGER, key INTEGER, pay REAL)")
        connection.executemany("INSERT INTO wages VALUES (?, ?, ?, ?)", frame.rows())
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return frame


def test_tables_of_sqlite():
    frame = database()
    assert read("shop.db").frame.equals(frame)
    database_names = header.names_of("shop.db")
    assert database_names == (frame.columns, False)


def test_a_database_runs_no_program_of_its_own():
    database(
        "CREATE VIEW risky AS SELECT load_extension('x') AS a",
        'CREATE TABLE "odd ""; DROP TABLE wages; --" (a INTEGER)',
    )
    with pytest.raises(mc.InvalidInput, match=r"must have one table.*2: .*'wages'.*shop.db::"):
        read("shop.db")
    assert read("shop.db::wages").rows == 60
    with pytest.raises(mc.InvalidInput, match=r"the table 'risky'"):
        read("shop.db::risky")
    with pytest.raises(mc.InvalidInput, match=r"Did you mean shop.db::wages"):
        read("shop.db::wage")
    before = Path("shop.db").read_bytes()
    with pytest.raises(mc.InvalidInput, match=r"must have rows"):
        read('shop.db::odd "; DROP TABLE wages; --')
    assert Path("shop.db").read_bytes() == before
    Path("a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(mc.InvalidInput, match=r"must be a database or a spreadsheet"):
        read("a.csv::t")


def test_a_table_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("shop.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, TIME '08:30' AS seen, DATE '2027-03-01' AS day, 2.5 AS y")
    table = read("shop.duckdb::t")
    assert table.frame.row(0) == (1, 8.5, dt.date(2027, 3, 1), 2.5)
    assert table.types == {"seen": "Float64[hours]"}


# -- roles -------------------------------------------------------------------------------------------------------------


def test_roles_become_the_parts_of_a_problem():
    frame = wages().with_columns(w=pl.lit(2), g=pl.col("shop"), t=pl.col("key"), e=pl.lit(1.5), pay=pl.col("key") % 7)
    frame.write_csv("wages.csv")
    options = {"category": ["shop"], "weight": "w", "group": "g", "time_column": "t", "exposure": "e"}
    problem = problem_from(read("wages.csv", roles=options, target="pay"), "pay", Voice(quiet=True))
    assert problem.X.columns == ["hours", "shop", "e"]
    assert problem.roles == {"shop": "category", "e": "exposure"}
    assert problem.weights.tolist() == [2] * 60
    assert problem.groups.tolist() == frame["shop"].to_list()
    assert problem.times.tolist() == list(range(60))
    assert set(problem.left_out) == {"w", "g", "t", "key"}
    assert problem.task == "regression"


def test_codes_and_identifiers_are_noted_with_the_option(capsys):
    wages().rename({"shop": "shop_id"}).write_csv("wages.csv")
    code, _, err = told(capsys, "fit", "wages.csv", "-t", "pay", "-m", "ridge", "-o", "m.mercer")
    assert code == 0
    assert "'shop_id' is read as categories, not as numbers" in err
    assert "--number shop_id" in err
    assert "'key' is not used: an identifier" in err
    assert "--number key uses it" in err
    assert list(provenance(mc.load("m.mercer")).columns) == ["hours", "shop_id"]
    wages().rename({"shop": "shop_id"}).drop("key").write_csv("new.csv")
    assert told(capsys, "predict", "m.mercer", "new.csv")[0] == 0
    code, _, err = told(
        capsys, "fit", "wages.csv", "-t", "pay", "-m", "linear", "-o", "none", "--number", "shop_id", "--number", "key"
    )
    assert code == 0
    assert "note" not in err


@pytest.mark.thorough
def test_smiles_are_molecules(capsys):
    pytest.importorskip("rdkit")
    smiles = [f"{'C' * n}{end}" for n in range(1, 21) for end in ("O", "c1ccccc1", "C(=O)O")]
    atoms = [len([c for c in text if c.isalpha()]) for text in smiles]
    pl.DataFrame({"compound": smiles, "atoms": atoms}).write_csv("m.csv")
    code, out, err = told(capsys, "fit", "m.csv", "-t", "atoms", "-m", "ridge", "-o", "m.mercer")
    assert code == 0, err
    assert "'compound' is read as molecules: 60 different SMILES texts; --text compound reads it as text" in err
    assert "MinMax().after(Fingerprint" in out
    pl.DataFrame({"compound": ["CCO", "C1CC"]}).write_csv("new.csv")
    assert "got 'C1CC' in row 1. Correct or empty this cell, or fit with --text compound." in refused(
        capsys, "predict", "m.mercer", "new.csv"
    )
    for option, kernel in (("--text", "NGrams"), ("--molecule", "MinMax")):
        code, out, err = told(capsys, "fit", "m.csv", "-t", "atoms", "-m", "ridge", "-o", "none", option, "compound")
        assert (code, "note" in err, kernel in out) == (0, False, True)


@pytest.mark.thorough
def test_counts_over_an_exposure(capsys):
    rng = np.random.default_rng(2)
    years, age = rng.uniform(0.2, 3, 80), rng.uniform(20, 60, 80)
    claims = rng.poisson(years * np.exp(2 - age / 20))
    frame = pl.DataFrame({"years": years, "age": age, "claims": claims})
    pl.concat([frame, frame[:2].with_columns(years=0.0, claims=pl.Series([0, 3]))]).write_csv("claims.csv")
    code, out, err = told(
        capsys, "fit", "claims.csv", "-t", "claims", "--exposure", "years", "-o", "m.mercer", "--json", "--time", "10"
    )
    assert code == 0, err
    assert "left out 2 rows with an exposure of 0, although 1 of them has a target above 0" in err
    answer = json.loads(out)
    assert answer["rows"] == 80
    baseline = {score["name"]: score["baseline"] for score in answer["scores"]}
    train, test = hold_out(claims, 0.2)  # the baseline is one rate for all rows
    expected = claims[train].sum() / years[train].sum() * years[test]
    assert baseline["RMSE"] == pytest.approx(np.sqrt(np.mean((claims[test] - expected) ** 2)))
    assert "Poisson deviance" in baseline
    code, out, _ = told(capsys, "predict", "m.mercer", "claims.csv", "--interval", "0.9", "--json")
    rows = json.loads(out)["predictions"]
    model = mc.load("m.mercer")
    X = frame.select("years", "age")
    np.testing.assert_allclose([row["prediction"] for row in rows[:80]], model.predict(X), rtol=1e-12)
    assert rows[80]["prediction"] == 0
    double = model.predict(X.with_columns(years=2 * pl.col("years")))
    np.testing.assert_allclose(double, 2 * model.predict(X), rtol=1e-12)
    frame[test].write_csv("held.csv")
    evaluated = json.loads(told(capsys, "evaluate", "m.mercer", "held.csv", "--json")[1])["scores"]
    assert {score["name"]: score["baseline"] for score in evaluated}["RMSE"] == pytest.approx(baseline["RMSE"])
    assert told(capsys, "evaluate", "m.mercer", "claims.csv")[0] == 0
    explained = json.loads(told(capsys, "explain", "m.mercer", "--data", "claims.csv", "--json")[1])
    assert list(explained["importance"]["columns"]) == ["age"]  # the exposure is not a feature
    frame.drop("years").write_csv("no.csv")
    assert "'years'" in refused(capsys, "predict", "m.mercer", "no.csv")
    assert "--model auto" in refused(
        capsys, "fit", "claims.csv", "-t", "claims", "--exposure", "years", "-m", "ridge", "-o", "none"
    )
    assert "add --exposure" not in err
    frame.rename({"years": "Exposure"}).write_csv("claims.csv")
    arguments = ["fit", "claims.csv", "-t", "claims", "-m", "linear", "-o", "none", "--task", "regression"]
    _, _, err = told(capsys, *arguments)
    assert "add --exposure Exposure" in err


def test_survey_weights_are_relative():
    """Weights a million times as large give the same model, although the penalties to choose from are the same."""
    frame = wages()
    X, labels = frame.select("hours", "shop"), (frame["pay"] > 80).to_numpy()
    w = frame["shop"].to_numpy().astype(float) ** 3
    one, many = (
        menu.fit("ridge", X, labels, task="classification", sample_weight=factor * w).model for factor in (1.0, 1e6)
    )
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), rtol=1e-6)
    plain = menu.fit("ridge", X, labels, task="classification").model
    assert not np.allclose(one.predict_proba(X), plain.predict_proba(X), rtol=1e-3)


def test_weights_that_are_refused(capsys):
    wages().with_columns(w=-pl.col("shop")).write_csv("w.csv")
    message = refused(capsys, "fit", "w.csv", "-t", "pay", "--weight", "w", "-o", "none")
    assert "must have a number ≥ 0 in every row for --weight" in message


# -- a mistyped name ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_mistyped_name_is_refused_before_anything_is_loaded():
    wages().write_csv("wages.csv")
    code = (
        "import sys; from mercer.cli.app import run; code = run(['fit', 'wages.csv', '-t', 'pya']); "
        "print(code, sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Did you mean 'pay'?" in done.stderr
    for heavy in ("numpy", "scipy", "sklearn", "polars", "numba"):
        assert f"'{heavy}'" not in done.stdout, heavy
    assert done.stdout.startswith("2 ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-t", "pay", "--category", "shopp"], "'shopp', which --category names"),
        (["-t", "pay", "--time-column", "keyy"], "which --time-column names"),
        (["-t", "pay", "--drop", "pay"], "must name another column than the target"),
        (["-t", "pay", "--weight", "key", "--exposure", "key"], "one role"),
    ],
)
def test_mistyped_roles(arguments, message, capsys):
    wages().write_csv("wages.csv")
    assert message in refused(capsys, "fit", "wages.csv", *arguments)
    assert "Did you mean wages.csv" in refused(capsys, "fit", "wagse.csv", *arguments)
    assert not Path("wages.mercer").exists()


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet", "arrow"])
def test_headers_of_other_files(suffix):
    frame = wages()
    if suffix == "csv.gz":
        import gzip

        Path("w.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    elif suffix == "parquet":
        frame.write_parquet("w.parquet")
    else:
        frame.write_ipc("w.arrow")
    assert header.names_of(f"w.{suffix}")[0] == frame.columns
    assert header.names_of("-") is None


# -- files that are kept -----------------------------------------------------------------------------------------------


def links(name):
    """The same file by its name, by another spelling, by a symbolic link and by a hard link."""
    os.symlink(name, "symbolic")
    os.link(name, "hard")
    return [name, f"./{name}", os.path.abspath(name), "symbolic", "hard"]


@pytest.mark.thorough
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["plain", "force"])
def test_no_command_replaces_its_input(force, capsys, monkeypatch):
    wages().write_csv("wages.csv")
    assert told(capsys, "fit", "wages.csv", "-t", "pay", "-m", "linear", "-q")[0] == 0
    table, model = Path("wages.csv").read_bytes(), Path("wages.mercer").read_bytes()
    for path in links("wages.csv"):
        for command in (
            ["fit", "wages.csv", "-t", "pay", "-m", "linear", "--out", path],
            ["fit", "wages.csv", "-t", "pay", "-m", "linear", "-o", "none", "--report", path],
            ["tune", "wages.csv", "-t", "pay", "--out", path],
            ["predict", "wages.mercer", "wages.csv", "--out", path],
        ):
            assert "which is also an input" in refused(capsys, *command, *force), command
    assert "also an input" in refused(capsys, "predict", "wages.mercer", "wages.csv", "-o", "wages.mercer", *force)
    with open("wages.csv") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "also an input" in refused(capsys, "predict", "wages.mercer", "-", "-o", "hard", *force)
    assert Path("wages.csv").read_bytes() == table
    assert Path("wages.mercer").read_bytes() == model


@pytest.mark.thorough
def test_only_our_own_files_are_replaced(capsys):
    wages().write_csv("wages.csv")
    fit = ["fit", "wages.csv", "-t", "pay", "-m", "linear", "-q"]
    assert told(capsys, *fit)[0] == 0
    assert told(capsys, *fit)[0] == 0, "a model is replaced"
    Path("empty").write_text("")
    assert told(capsys, *fit, "-o", "empty")[0] == 0, "an empty file is replaced"
    for name in ("letter.txt", "wages.mercer"):
        Path(name).write_text("Dear Emmy,")
        more = ["-o", name] if name == "letter.txt" else []
        assert "add --force to replace it" in refused(capsys, *fit, *more)
        assert Path(name).read_text() == "Dear Emmy,"
    assert told(capsys, *fit, "-o", "letter.txt", "--force")[0] == 0
    assert mc.load("letter.txt").predict(wages().select("hours", "shop")).shape == (60,)
    predict = ["predict", "letter.txt", "wages.csv", "-o", "p.csv"]
    assert told(capsys, *predict)[0] == 0
    assert "--force" in refused(capsys, *predict), "a table may have another author"
    assert told(capsys, *predict, "--force")[0] == 0
    assert "another output" in refused(capsys, *fit, "-o", "same", "--report", "same")


def test_an_option_is_not_taken_for_a_file():
    with pytest.raises(
        mc.InvalidInput, match=r"--report must be followed by the name of a file, got --force.*\./--force"
    ):
        require_outputs({"--report": "--force"}, inputs=())


def test_a_report_is_replaced():
    Path("r.html").write_text(page("A title", "", ["<p>text</p>"]))
    require_outputs({"--report": "r.html"}, inputs=())
    Path("r.html").write_text("<html>my page</html>")
    with pytest.raises(mc.InvalidInput, match="--force"):
        require_outputs({"--report": "r.html"}, inputs=())


def test_a_demo_replaces_only_its_own_tables(tmp_path, capsys):
    from mercer.cli.demo import COLUMNS, PREDICTED

    known = {"the table": ",".join(COLUMNS), "the predictions": ",".join(PREDICTED)}
    Path("d.csv").write_text(",".join(COLUMNS) + "\n1,2\n")
    require_outputs({"the table": "d.csv"}, inputs=(), header=known)
    Path("d.csv").write_text("mine\n1\n")
    with pytest.raises(mc.InvalidInput, match="--force"):
        require_outputs({"the table": "d.csv"}, inputs=(), header=known)
    os.mkdir("out")
    Path("out/diabetes.csv").write_text("mine\n1\n")
    assert "--force" in refused(capsys, "demo")


# -- advice ------------------------------------------------------------------------------------------------------------


def test_advice_is_an_option_in_the_shell(capsys):
    wages().with_columns(city=pl.lit("Rome") + pl.col("shop").cast(pl.String)).write_csv("wages.csv")
    message = refused(capsys, "fit", "wages.csv", "-t", "pay", "-m", "linear", "-o", "none")
    assert "--drop city" in message
    assert "FromFunction" not in message
    message = refused(capsys, "fit", "wages.csv", "-t", "pay", "-m", "svm", "--centers", "9", "-o", "none")
    assert "Remove --centers, or use --model ridge" in message
    pl.DataFrame({"a": ["1.5", "2.5", "3.5", "4.0"] * 5, "y": np.arange(20) * 1.5}).write_parquet("t.parquet")
    message = refused(capsys, "fit", "t.parquet", "-t", "y", "-m", "ridge", "-o", "none")
    assert "Add --number a" in message
    assert told(capsys, "fit", "t.parquet", "-t", "y", "-m", "ridge", "-o", "none", "--number", "a")[0] == 0
    with pytest.raises(mc.InvalidInput, match=r"roles=\{'a': 'category'\}"):
        mc.TableKernel().explain(pl.read_parquet("t.parquet").drop("y"))
