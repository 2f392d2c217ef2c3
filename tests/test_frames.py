"""Frames of every library answer alike, and one folder knows them; missing values have one predicate."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer as mc
from mercer.data import frames
from mercer.data.frames import Table
from mercer.data.missing import marked, missing_entries
from mercer.data.points import Points, concatenate, owned, take
from mercer.data.vectors import as_vectors

PACKAGE = Path(mc.__file__).parent
COLUMNS = {"a": np.array([1.0, np.nan, 3.0]), "b": np.array(["x", None, "y"], dtype=object)}
KINDS = [pd.DataFrame, pl.DataFrame, Table]
rng = np.random.default_rng(0)


def same(left, right):
    """Whether two frames hold the same: names, and values where they are present."""
    pairs = list(zip(frames.arrays(left), frames.arrays(right), strict=True))
    gone = [(missing_entries(a), missing_entries(b)) for a, b in pairs]
    equal = all((m == n).all() and (a[~m] == b[~n]).all() for (a, b), (m, n) in zip(pairs, gone))
    return equal and frames.column_names(left) == frames.column_names(right)


# -- one folder knows frames -------------------------------------------------------------------------------------------

ATTRIBUTES = {"iloc", "loc", "iter_columns", "get_columns", "with_columns", "tz_convert", "tz_localize", "isetitem"}
ASKED = {"iloc", "columns", "to_numpy", "to_list", "dtypes", "with_columns", "iter_columns"}


def knows_frames(text):
    """The lines that use what only a library of frames has, or ask an object for it."""
    lines = []
    if not any(word in text for word in (*ATTRIBUTES, *ASKED, "import_module", "type(")):  # looking is quicker
        return lines
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                lines.append(node.lineno)
            case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=name)]) if name in ASKED:
                lines.append(node.lineno)
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value="pandas" | "polars")]):
                lines.append(node.lineno)
            case ast.Call(func=ast.Call(func=ast.Name(id="type")), args=[ast.Dict() | ast.DictComp()]):
                lines.append(node.lineno)
    return lines


@pytest.mark.thorough
def test_only_the_folder_of_data_knows_frames():
    """The command line reads files with Polars, and is the one exception."""
    others = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ("data", "cli")]
    known = {str(path.relative_to(PACKAGE)): knows_frames(path.read_text(encoding="utf-8")) for path in others}
    assert {path: lines for path, lines in known.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "X.iloc[3]",
        "hasattr(X, 'columns')",
        "X['t'].dt.tz_convert('UTC')",
        "type(X)({'a': 1})",
        "import_module('pandas')",
    ],
)
def test_knowledge_of_frames_is_seen(text):
    assert knows_frames(text) == [1]


@pytest.mark.thorough
def test_there_is_one_predicate_for_missing_values():
    """A value is compared with itself in `is_missing` and `missing_entries` only."""
    places = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "!=" in text else ():
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotEq):
                left, right = ast.dump(node.left), ast.dump(node.comparators[0])
                if left == right and not isinstance(node.left, ast.Constant):
                    places.add(str(path.relative_to(PACKAGE)))
    assert places == {"data/missing.py"}


# -- frames of every library -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_rows(kind):
    frame = kind(COLUMNS)
    assert frames.is_frame(frame)
    assert frames.column_names(frame) == ["a", "b"]
    assert np.asarray(frames.column(frame, 1)).tolist()[0] == "x"
    assert len(frames.dtypes(frame)) == 2
    index = np.array([2, 0])
    assert np.asarray(frames.column(take(frame, index), 0)).tolist() == [3.0, 1.0]
    assert frames.listed(frames.taken(frames.column(frame, 0), index)) == [3.0, 1.0]
    assert take(frame, slice(0, 0)).shape == (0, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_built_joined_and_copied(kind):
    frame = kind(COLUMNS)
    twice = concatenate(frame, frame)
    assert type(twice) is kind
    assert same(take(twice, slice(3, 6)), frame)
    kept = owned(frame)
    assert kept is not frame
    assert same(kept, frame)
    rebuilt = frames.build(frame, {"a": COLUMNS["a"], "b": COLUMNS["b"]}, retyped=[1])
    assert type(rebuilt) is kind
    assert same(rebuilt, frame)
    numbers = frames.as_table(frame, np.arange(6.0).reshape(3, 2))
    assert type(numbers) is kind
    assert as_vectors(numbers).tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_gathered_from_rows_of_their_column(kind):
    frame = kind({"a": np.arange(4.0), "b": np.arange(4.0)})
    frame = frame.set_index(pd.Index(list("wxyz"))) if kind is pd.DataFrame else frame
    changed = frames.gathered(frame, np.array([[0, 3], [1, 1], [0, 0], [3, 2], [3, 3]]))
    assert type(changed) is kind
    assert as_vectors(changed).tolist() == [[0, 3], [1, 1], [0, 0], [3, 2], [3, 3]]
    assert as_vectors(frame)[:, 1].tolist() == [0, 1, 2, 3]


def test_a_class_derived_from_a_frame_is_one():
    class Mine(pd.DataFrame):
        def __init__(self, *args, **kwargs):
            raise TypeError("made in another way")

    mine = pd.DataFrame(COLUMNS)
    mine.__class__ = Mine
    assert type(frames.build(mine, {"a": [1.0]})) is pd.DataFrame


def test_pandas_columns_by_position_where_names_repeat():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    assert [column.tolist() for column in frames.arrays(frame)] == [[1.0], [2.0]]
    assert frames.column(frame, 1).tolist() == [2.0]
    with pytest.raises(mc.InvalidInput, match="different names, got 2 columns called 'a'"):
        frames.require_distinct_names(frame)


def test_columns_may_have_the_names_of_methods():
    frame = pd.DataFrame({"clone": [1.0, 2.0], "collect": [0.0, 1.0], "collect_schema": [3.0, 4.0]})
    assert owned(frame).equals(frame)
    assert mc.table_kernel(frame)(frame).shape == (2, 2)


def test_rows_of_a_series_are_those_at_positions():
    series = pd.Series(["u", "v", "w"], index=[2, 0, 1])
    assert take(series, np.array([0, 2])).tolist() == ["u", "w"]
    assert mc.Delta()(Points(series)).tolist() == np.eye(3).tolist()


def test_levels_that_types_declare():
    ordered = pd.Categorical(["S", "L"], ["S", "M", "L"], ordered=True)
    assert frames.declared_levels(pd.Series(ordered)) == frames.Levels(("S", "M", "L"), True)
    assert frames.declared_levels(pd.Series(ordered.as_unordered())) == frames.Levels(("S", "M", "L"), False)
    assert frames.declared_levels(pl.Series(["S"], dtype=pl.Enum(["S", "M"]))) == frames.Levels(("S", "M"), None)
    for column in (pl.Series(["S"]), pd.Series(["S"]), np.array(["S"])):
        assert frames.declared_levels(column) is None
    plan = mc.TableKernel(roles={"size": "ordered"}).explain(
        pl.DataFrame({"size": pl.Series(["b", "a", "c"], dtype=pl.Categorical)})
    )
    assert plan.roles[0].levels == ("a", "b", "c")


def test_times_with_a_zone_are_those_in_utc():
    times = pd.Series(pd.to_datetime(["2024-07-01 12:00", None])).dt.tz_localize("Europe/Rome")
    assert np.asarray(frames.without_zone(times))[0] == np.datetime64("2024-07-01T10:00")
    plain = pd.Series([1.0])
    assert frames.without_zone(plain) is plain


# -- missing values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0, np.nan], [2.0, 3.0]]),
        np.array([[1.0, None], [2.0, 3.0]], dtype=object),
        [[1.0, None], [2.0, 3.0]],
        [[1.0, pd.NA], [2.0, 3.0]],
        pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([None, 3], dtype="Int64")}),
        pl.DataFrame({"a": [1.0, 2.0], "b": [None, 3]}),
    ],
    ids=["numbers", "objects", "list", "NA", "pandas", "polars"],
)
def test_missing_numbers_become_nan_or_are_refused(X):
    assert np.array_equal(as_vectors(X, missing=True), [[1.0, np.nan], [2.0, 3.0]], equal_nan=True)
    assert np.array_equal(mc.Additive(1.0)(X), mc.Additive(1.0)(np.array([[1.0, np.nan], [2.0, 3.0]])))
    with pytest.raises(mc.InvalidInput):
        as_vectors(X)


def test_infinity_is_not_missing():
    with pytest.raises(mc.InvalidInput, match=r"1 such entries, the first \(infinity\) in row 1, column 0"):
        as_vectors([[np.nan, 1.0], [np.inf, 2.0]], missing=True)


def test_missing_objects_are_marked_by_none():
    A = np.array(["a", pd.NA, np.nan, None, pd.NaT], dtype=object)
    assert marked(A, missing_entries(A)).tolist() == ["a", None, None, None, None]


def test_a_map_to_objects_may_leave_values_missing():
    def labelled(X):
        return np.array([[x, float("nan")] for x in np.asarray(X)[:, 0]], dtype=object)

    K = mc.Categorical(1.0).after(labelled)([[1.0], [2.0], [1.0]])
    assert K.round(3).tolist() == [[1.0, 0.368, 1.0], [0.368, 1.0, 0.368], [1.0, 0.368, 1.0]]


@pytest.mark.parametrize("kernel", [mc.Delta(), mc.Hamming()])
@pytest.mark.parametrize("value", [None, float("nan"), pd.NA, pd.NaT])
def test_kernels_on_categories_refuse_missing_values(kernel, value):
    with pytest.raises(mc.InvalidInput, match=r"Column 'c' must have no missing values, got 1, the first in row 1"):
        kernel(pd.DataFrame({"c": np.array(["a", value, "b"], dtype=object)}))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_plan_names_the_leaves_of_its_kernel(kind):
    days = np.arange(900).astype("datetime64[D]").astype("datetime64[us]")
    plan = mc.TableKernel().explain(
        kind(
            {
                "x": rng.normal(size=900),
                "day": days,
                "city": rng.choice(["Rome", "Oslo", "Bonn"], 900),
                "same": [1] * 900,
            }
        )
    )
    named = {role.name: role.kernel for role in plan.roles}
    assert named == {
        "x": "Additive",
        "day": "Additive + Periodic (yearly) + Periodic (weekly)",
        "city": "Categorical",
        "same": "",
    }
    assert {type(leaf).__name__ for leaf in plan.kernel.leaves} == {"Additive", "Periodic", "Categorical"}


class Heights(mc.Kernel):
    """A Gaussian of one column of a frame, in a space of its own."""

    space = "patients"

    def encode(self, X):
        return np.asarray(X["height"], dtype=np.float64)

    def tile(self, block, out):
        x, z = block.encoded(self)
        np.exp(-((np.asarray(x)[:, None] - np.asarray(z)) ** 2), out=out)


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_a_kernel_of_your_own_reads_a_frame_of_any_columns(frame):
    height = np.linspace(0.0, 3.0, 250)
    born = np.full(250, "2020-01-01", dtype="datetime64[us]")
    X = frame({"name": ["Ada", "Bob"] * 125, "height": height, "born": born, "seen": list(born[:5].tolist()) * 50})
    assert mc.KernelRidge(Heights(), alpha=0.1).fit(X, np.sin(height)).score(X, np.sin(height)) > 0.9
