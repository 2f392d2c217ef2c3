"""Tables: what columns are taken for, the kernels made of them, and what is refused, by name, when they change."""

from __future__ import annotations

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import mercer as mc
from mercer.testing import _PublicNames, check_laws

N = 60


def columns(n: int = N, seed: int = 0) -> dict[str, list]:
    """One column of each kind, with missing values, as plain lists."""
    r = np.random.default_rng(seed)
    absent = r.random((n, 8)) < 0.15
    start = datetime.datetime(2020, 1, 1, 6)
    data = {
        "age": r.integers(18, 80, n).astype(float).tolist(),
        "income": np.exp(r.normal(10, 1, n)).tolist(),
        "city": r.choice(["Rome", "Oslo", "Pune"], n).tolist(),
        "member": r.choice([True, False], n).tolist(),
        "when": [start + datetime.timedelta(hours=float(h)) for h in r.uniform(0, 24 * 600, n)],
        "tags": [r.choice(["ski", "chess", "opera"], r.integers(0, 3), replace=False).tolist() for _ in range(n)],
        "note": [" ".join(r.choice(["good", "bad", "late", "soon", "never"], 4)) + f" {i}" for i in range(n)],
        "size": r.choice(["S", "M", "L"], n).tolist(),
    }
    for j, values in enumerate(data.values()):
        for i in np.flatnonzero(absent[:, j]):
            values[i] = None
    return data | {"id": list(range(1, n + 1)), "nothing": [None] * n, "same": [7] * n}


def frames(n: int = N, seed: int = 0) -> tuple[pd.DataFrame, pl.DataFrame]:
    data = columns(n, seed)
    left, right = pd.DataFrame(data), pl.DataFrame(data)
    left["size"] = pd.Categorical(left["size"], categories=["S", "M", "L"], ordered=True)
    return left, right


PANDAS, POLARS = frames()
ROLES = {"size": "ordered"}


def roles(frame, **options):
    return {r.name: r.role for r in mc.TableKernel(**options).explain(frame).roles}


# -- what a column is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
def test_every_kind_of_column_is_recognised(frame):
    found = roles(frame)
    assert found | {"size": ""} == {
        "age": "number", "income": "number", "city": "category", "member": "category", "when": "date", "tags": "tokens",
        "note": "text", "size": "", "id": "left out", "nothing": "left out", "same": "left out",
    }  # fmt: skip
    assert found["size"] == ("ordered" if frame is PANDAS else "category")
    plan = mc.TableKernel().explain(frame)
    assert set(plan.left_out) == {"id", "nothing", "same"}
    for word in ("identifier", "no value", "constant", "yearly, weekly, daily", "3 different values", "missing"):
        assert word in str(plan), word


@pytest.mark.parametrize(
    ("values", "role"),
    [
        ([1.5, 2.5, 3.5], "number"),
        ([0, 1, 1, 0], "category"),
        ([True, False, None], "category"),
        (list(range(1900, 2000)), "number"),  # years, not row numbers
        (list(range(100)), "left out"),
        ([f"C{i:04}" for i in range(30)], "left out"),
        ([f"note {i} of the day" for i in range(30)], "text"),
        (["2020-01-01", "2020-01-02", "2021-05-01"], "date"),
        (["a", "b", 3, None], "category"),
        ([{"a"}, {"b", "c"}, set()], "tokens"),
        (["ACDEFG" * (1 + i % 7) + "AC"[: i % 3] + "G" * (i % 5) for i in range(40)], "text"),
        ([datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)], "date"),
        ([None, "x", "x"], "category"),
    ],
)
def test_what_a_column_is_taken_for(values, role):
    if len(values) > 30 and isinstance(values[0], str):
        values = sorted(set(values)) + [f"unlike{'x' * i}" for i in range(20)]
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object).infer_objects(), "z": np.arange(len(values)) * 1.5})
    assert roles(frame)["c"] == role


@pytest.mark.parametrize(
    ("column", "role"),
    [
        (pd.Series([3, 1, 2, 1, 3]).astype("category"), "category"),  # said to be categories: not numbers
        (pd.Series([True, False] * 3).astype("category"), "category"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"] * 3)).astype("category"), "category"),
        (pd.cut(pd.Series([1.0, 2.0, 3.0, 4.0, 9.0]), 3), "ordered"),
        (pd.Series([datetime.timedelta(hours=h) for h in (1, 5, 9, 2)], dtype=object), "number"),
        (pd.Series([np.str_("a"), np.str_("b")] * 3, dtype=object), "category"),
        (pd.Series(["a", 1, 2.5, None] * 3, dtype=object), "category"),
        (pl.Series(["a", "b", None]).cast(pl.Categorical), "category"),
        (pl.Series(["a", "b", None]).cast(pl.Enum(["b", "a"])), "category"),
        (pl.Series([datetime.timedelta(hours=h) for h in (1, 5, 9)]), "number"),
        (pl.Series([[1, 2], [2, 3], [2, 3]], dtype=pl.Array(pl.Int64, 2)), "tokens"),
        (pl.Series([1, 3, 2, None], dtype=pl.Decimal(9, 2)), "number"),
    ],
)
def test_what_a_data_type_says(column, role):
    frame = column.to_frame("c") if isinstance(column, pd.Series) else pl.DataFrame({"c": column})
    assert roles(frame) == {"c": role}
    K = mc.table_kernel(frame)(frame)
    assert np.linalg.eigvalsh(K)[0] > -1e-12


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (["0.25", "1,5", "-3"], r"numbers as texts, such as '-3'.*to_numeric.*roles=\{'c': 'category'\}"),
        ([*map(str, np.arange(30) / 7), "n/a"], "numbers as texts"),
        (pd.Series([10**400, 1, 2], dtype=object), r"Column 'c' must hold numbers, got 10000.*… \(int\) in row 0"),
        ([1e300, 2e300, 4e300], "Column 'c' must spread between 1e-90 and 1e90"),
        ([1j, 2j], "Column 'c' must hold single real values, got dtype complex128"),
        ([b"a", b"b"], "got values of type bytes"),
        ([datetime.time(3), datetime.time(4)], "got values of type time"),
        (pl.Series([{"a": 1}, {"a": 2}]), r"Column 'c' must hold single real values, got dtype Struct"),
        pytest.param(
            pl.Series([1, 2], dtype=pl.Int128),
            "Column 'c' must hold values that NumPy can hold, got dtype Int128",
            marks=pytest.mark.peer("polars", "2.0"),
        ),
        (np.array([1.0, np.inf]), "Column 'c' must be finite, got infinity in row 1"),
    ],
)
def test_columns_that_are_refused_by_name(column, match):
    frame = pl.DataFrame({"c": column}) if isinstance(column, pl.Series) else pd.DataFrame({"c": column})
    with pytest.raises(mc.InvalidInput, match=match):
        mc.table_kernel(frame)


def test_numbers_as_texts_can_be_names():
    frame = pd.DataFrame({"version": ["1.0", "1.1", "1.0", "2.0"]})
    assert roles(frame, roles={"version": "category"}) == {"version": "category"}


def test_an_identifier_by_its_name():
    values = np.random.default_rng(0).permutation(10**6)[:50].tolist()
    frame = pd.DataFrame({"customer_id": values, "IDpol": values, "price": values, "idea": values})
    assert roles(frame) == {"customer_id": "left out", "IDpol": "left out", "price": "number", "idea": "number"}


@pytest.mark.parametrize(
    ("step", "n", "periods"),
    [(1 / 24, 24 * 40, {7.0, 1.0}), (1.0, 1200, {365.2425, 7.0}), (7.0, 200, {365.2425}), (30.4, 100, {365.2425}),
     (1.0, 12, {7.0}), (365.0, 10, set()), (1 / 1440, 600, set())],
)  # fmt: skip
def test_the_periods_that_dates_can_show(step, n, periods):
    start = np.datetime64("2020-01-01", "us")
    when = start + (np.arange(n) * step * 86_400_000_000).astype("m8[us]")
    (role,) = mc.TableKernel().explain(pd.DataFrame({"when": when})).roles
    assert set(role.periods) == periods


def test_roles_can_be_given_and_columns_left_out():
    assert roles(PANDAS, roles={"age": "category", "note": "ignore"}, target="income")["age"] == "category"
    kernel = mc.table_kernel(PANDAS, roles={"age": "category", "note": "ignore"}, target="income")
    assert set(kernel.columns_read) == {"age", "city", "member", "when", "tags", "size"}
    assert kernel.codes == ("member", "age") or kernel.codes == ("age", "member")
    with pytest.raises(mc.InvalidInput, match="'nonsense' for 'age'"):
        mc.TableKernel(roles={"age": "nonsense"})
    with pytest.raises(mc.InvalidInput, match=r"must have the column 'agee'.*Did you mean 'age'"):
        mc.table_kernel(PANDAS, roles={"agee": "number"})


def test_spread_is_robust_and_never_zero():
    frame = pd.DataFrame({
        "normal": np.random.default_rng(0).normal(5.0, 3.0, 1000),
        "wild": np.r_[np.random.default_rng(1).normal(5.0, 3.0, 999), 1e9],
        "mostly": np.r_[np.zeros(920), np.arange(1.0, 81.0)],
        "hardly": np.r_[np.zeros(999), 1.0] + np.r_[np.zeros(998), 0.5, 0.0],
    })  # fmt: skip
    spreads = {r.name: r.spread for r in mc.TableKernel().explain(frame).roles}
    assert spreads["normal"] == pytest.approx(3.0, rel=0.1)
    assert spreads["wild"] == pytest.approx(3.0, rel=0.1)
    assert spreads["mostly"] == pytest.approx(np.quantile(frame["mostly"], 0.95) / 3.290)
    assert spreads["hardly"] == pytest.approx(frame["hardly"].std(ddof=0))


# -- the kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
@pytest.mark.parametrize("missing", ["own", "refuse"])
def test_the_kernel_is_proven_and_obeys_the_laws(frame, missing):
    if missing == "refuse":
        some = list(frame.columns[:8])
        frame = frame.dropna(subset=some) if frame is PANDAS else frame.drop_nulls(some)
    kernel = mc.table_kernel(frame, missing=missing, interaction=3.0)
    assert kernel.proof().valid
    K = kernel(frame)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * len(K)
    assert mc.check(kernel, frame).psd
    assert np.abs(K[:9, 5:] - kernel(frame[:9], frame[5:])).max() < 1e-12
    if missing == "own" and frame is PANDAS:
        obeyed = check_laws(kernel, frame[:9], frame[5:9])
        assert {"positive semidefinite", "gradient", "Cauchy-Schwarz"} <= set(obeyed)
    assert np.allclose(kernel.diag(frame), 1.0)
    assert eval(repr(kernel), {}, _PublicNames()) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_the_kernel_is_the_exponential_of_the_mean_similarity():
    frame = PANDAS[["age", "income", "city", "member"]].dropna()
    kernel = mc.table_kernel(frame, interaction=2.0)
    spread = {r.name: r.spread for r in mc.TableKernel().explain(frame).roles}
    parts = [(frame[c].to_numpy()[:, None] == frame[c].to_numpy()).astype(float) for c in ("city", "member")]
    for c in ("age", "income"):
        x = frame[c].to_numpy()
        parts.append(1.0 / (1.0 + ((x[:, None] - x) / (0.5 * spread[c])) ** 2))
    assert np.abs(kernel(frame) - np.exp(2.0 * (np.mean(parts, axis=0) - 1.0))).max() < 1e-12


@pytest.mark.parametrize("interaction", [1.0, 2.5])
def test_shares_of_all_parts_sum_to_one(interaction):
    """A row of which nothing is known is unlike the others in every part."""
    kernel = mc.table_kernel(PANDAS, interaction=interaction)
    whole = PANDAS[PANDAS["tags"].map(bool)].dropna(subset=list(PANDAS.columns[:8]))
    unknown = whole.assign(**dict.fromkeys(PANDAS.columns[:8], None))
    assert np.allclose(kernel(unknown, whole), np.exp(-interaction), rtol=1e-12)
    assert np.allclose(kernel(unknown), 1.0)


def test_both_libraries_give_the_same_kernel_and_the_same_numbers():
    left, right = mc.table_kernel(PANDAS, roles=ROLES), mc.table_kernel(POLARS, roles={"size": "ignore"})
    assert left.kernel.leaves[0] != right.kernel.leaves[0]  # the sizes are ordered in one of them only
    left = mc.table_kernel(PANDAS, roles={"size": "ignore"})
    assert left == right
    assert np.array_equal(left(PANDAS), right(POLARS))
    assert np.array_equal(left(PANDAS, PANDAS[:7]), left(POLARS, POLARS[:7]))


def test_one_width_per_column_is_free():
    kernel = mc.table_kernel(PANDAS)
    free = " ".join(kernel.parameter_names)
    assert free.count("sigma[") == 4 + 2  # age, income, when and size; city and member
    assert not any("period" in name for name in kernel.parameter_names)
    frame = PANDAS.dropna(subset=["income"])[["age", "city", "income"]]
    model = mc.KernelRidge(mc.TableKernel(target="income"), alpha=0.1, tune="loo").fit(frame, np.log(frame["income"]))
    assert not np.allclose(model.kernel_.theta, mc.table_kernel(frame, target="income").theta)


def test_rows_without_names():
    rows = [[1.5, "a", True], [2.5, "b", False], [None, "a", None], [4.0, "b", True]]
    kernel = mc.table_kernel(rows)
    assert kernel.columns_read == ("x0", "x2", "x1")
    assert np.array_equal(kernel(rows), kernel(np.array(rows, dtype=object)))
    check_laws(kernel, rows)
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert np.array_equal(mc.table_kernel(X)(X), mc.table_kernel(X)(X.astype(object)))


# -- tables that change ----------------------------------------------------------------------------------------------

KERNEL = mc.table_kernel(PANDAS)


def test_order_and_further_columns_do_not_matter():
    K = KERNEL(PANDAS)
    assert np.array_equal(KERNEL(PANDAS[PANDAS.columns[::-1]].assign(more=1.0)), K)
    assert np.abs(KERNEL(POLARS.select(reversed(POLARS.columns)), PANDAS) - K).max() < 1e-12


def test_integers_floats_and_nullable_types_are_the_same_numbers():
    whole = PANDAS.assign(age=PANDAS["age"].fillna(30))
    kernel = mc.table_kernel(whole)
    for kind in ("int64", "float32", "Int32", "Float64", object):
        assert np.allclose(kernel(whole.assign(age=whole["age"].astype(kind))), kernel(whole))
    assert np.array_equal(KERNEL(PANDAS.assign(age=PANDAS["age"].astype("Int64"))), KERNEL(PANDAS))
    assert np.array_equal(KERNEL(PANDAS.convert_dtypes()), KERNEL(PANDAS))


def test_dates_are_instants_whatever_their_type():
    stamps = PANDAS["when"]
    for other in (stamps.astype("datetime64[s]"), stamps.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
                  stamps.map(lambda t: None if pd.isna(t) else t.isoformat()).astype(object),
                  stamps.dt.tz_localize("UTC").astype(object)):  # fmt: skip
        assert np.abs(KERNEL(PANDAS.assign(when=other), PANDAS) - KERNEL(PANDAS)).max() < 1e-5


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.drop(columns=["age", "city"]), "columns 'age', 'city'"),
        (lambda f: f.rename(columns={"city": "City"}), "'city' may now be 'City'"),
        (lambda f: f.assign(age=["old"] * N), "Column 'age' must hold numbers, got 'old' in row 0"),
        (lambda f: f.assign(age=[np.eye(2)] * N), r"got array\(\[\[1., 0.\], \[0., 1.\]\]\) in row 0"),
        (lambda f: f.assign(age=f["when"]), "Column 'age' must hold numbers"),
        (lambda f: f.assign(age=np.inf), "Column 'age' must be finite, got infinity in row 0"),
        (lambda f: f.assign(city=1.0), "Column 'city' must hold categories in words, got 1.0"),
        (lambda f: f.assign(city=pd.Series([3] * N, dtype=object)), "Column 'city' must hold categories in words"),
        (lambda f: f.assign(city=f["tags"]), "Column 'city' must hold categories in words, got \\['opera"),
        (lambda f: f.assign(age=f["tags"]), "Column 'age' must hold numbers, got \\["),
        (lambda f: f.assign(member="yes"), "Column 'member' must hold numbers, got 'yes'"),
        (lambda f: f.assign(when=5), "Column 'when' must hold dates"),
        (lambda f: f.assign(when="soon"), "Column 'when' must hold dates, got 'soon'"),
        (lambda f: f.assign(tags="ski chess"), "Column 'tags' must hold lists or sets"),
        (lambda f: f.assign(note=3.0), "Column 'note' must hold texts, got 3.0 in row 0"),
    ],
)
def test_a_changed_column_is_refused_by_name(change, match):
    with pytest.raises(mc.InvalidInput, match=match):
        KERNEL(change(PANDAS))


def test_a_column_without_values_is_missing_whatever_its_type():
    for empty in (np.nan, None, pd.NaT, pd.NA):
        for column in ("age", "city", "member", "when", "tags", "note", "size"):
            if column == "when" or empty is not pd.NaT:
                assert np.isfinite(KERNEL(PANDAS.assign(**{column: empty}), PANDAS)).all(), (column, empty)


def test_unseen_categories_are_defined():
    new = PANDAS.assign(city="Lima", size="XL")
    K = KERNEL(new, PANDAS)
    assert np.isfinite(K).all()
    apart = KERNEL(new.assign(city="Oslo"), PANDAS)
    rome = (PANDAS["city"] == "Rome").to_numpy()
    assert np.array_equal(K[:, rome], apart[:, rome])  # as unlike Rome as any other city
    assert np.allclose(KERNEL.diag(new), 1.0)


def test_large_whole_numbers_can_be_categories():
    frame = pd.DataFrame({"who": [2**60, 2**60 + 1, 2**60]})
    kernel = mc.table_kernel(frame, roles={"who": "category"})
    far = np.exp(-1.0)
    assert np.allclose(kernel(frame), [[1, far, 1], [far, 1, far], [1, far, 1]])
    assert np.allclose(kernel(frame.astype("Int64"), frame.astype(object)), kernel(frame))


def test_empty_lists_and_short_texts_are_like_themselves_only():
    frame = pd.DataFrame({"tags": [["a"], [], ["b"], [], None], "text": ["a", "", "b", "", None]})
    for column, role in (("tags", "tokens"), ("text", "text")):
        K = mc.table_kernel(frame[[column]], roles={column: role})(frame)
        same = np.array([[i == j or {i, j} == {1, 3} for j in range(5)] for i in range(5)])
        assert np.allclose(K, np.where(same, 1.0, np.exp(-1.0)))


def test_levels_that_are_no_words_are_kept_as_text(tmp_path):
    x = pd.Series(np.random.default_rng(0).normal(size=40))
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2021-05-01"] * 20), ordered=True)
    for column in (pd.cut(x, 4), days):
        model = mc.KernelRidge(mc.TableKernel()).fit(pd.DataFrame({"level": column}), x)
        assert all(isinstance(level, str) for level in model.kernel_.ordered[0][1])
        assert eval(repr(model.kernel_), {}, _PublicNames()) == model.kernel_
    frame = pd.DataFrame({"level": days})
    model.save(tmp_path / "days.mercer")
    assert np.array_equal(mc.load(tmp_path / "days.mercer").predict(frame), model.predict(frame))


def test_tables_must_be_in_memory_and_two_dimensional():
    with pytest.raises(mc.InvalidInput, match=r"LazyFrame. Collect it"):
        mc.table_kernel(POLARS.lazy())
    for table in (PANDAS["age"], POLARS["age"], {"age": [1.0, 2.0]}):
        with pytest.raises(mc.InvalidInput, match=r"A table must be 2-D"):
            mc.table_kernel(table)


def test_missing_values_are_refused_by_name_if_asked():
    whole = PANDAS.assign(age=PANDAS["age"].fillna(30.0))[["age", "same", "id"]].assign(x=np.arange(N) * 0.5)
    kernel = mc.table_kernel(whole, missing="refuse")
    with pytest.raises(mc.InvalidInput, match=r"Column 'age' must have no missing values, got 1, the first in row 3"):
        kernel(whole.assign(age=[nan if i == 3 else 30.0 for i in range(N)]))
    with pytest.raises(mc.InvalidInput, match="Column 'age' must have no missing values"):
        mc.table_kernel(PANDAS, missing="refuse")(PANDAS)
    with pytest.raises(mc.InvalidInput, match="'own' or 'refuse'"):
        mc.TableKernel(missing="guess")


nan = float("nan")


# -- the rule as a value, and in models ------------------------------------------------------------------------------


def test_the_rule_is_a_value():
    rule = mc.TableKernel(roles={"a": "category"}, target="y", interaction=2.0)
    assert eval(repr(rule), {}, _PublicNames()) == rule == clone(rule) == pickle.loads(pickle.dumps(rule))
    assert hash(rule) == hash(rule.replace())
    assert rule.replace(missing="refuse") != rule
    model = mc.KernelRidge(mc.TableKernel()).set_params(kernel__interaction=4.0)
    assert clone(model).kernel.interaction == 4.0
    for wrong in (0.0, -1.0, np.inf, "much"):
        with pytest.raises(mc.InvalidInput, match="interaction"):
            mc.TableKernel(interaction=wrong)


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
def test_models_learn_the_constants_in_fit(frame):
    y = np.array([0.02 * (a or 40) + (c == "Rome") for a, c in zip(columns()["age"], columns()["city"])])
    ridge = mc.KernelRidge(mc.TableKernel(), alpha=0.01, fit_intercept=True).fit(frame[:45], y[:45])
    assert np.corrcoef(ridge.predict(frame[45:]), y[45:])[0, 1] > 0.5
    assert ridge.kernel_ == mc.table_kernel(frame[:45])
    svc = mc.SVC(mc.TableKernel(), C=10.0).fit(frame[:45], y[:45] > np.median(y))
    assert svc.score(frame[:45], y[:45] > np.median(y)) > 0.9
    with pytest.raises(ValueError, match="age"):
        ridge.predict(frame.drop("age", axis=1) if frame is PANDAS else frame.drop("age"))
    assert np.isfinite(ridge.predict(frame[:1])).all()


@pytest.mark.thorough
@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
def test_models_find_their_columns_by_name(frame, tmp_path):
    y = np.array([0.02 * (a or 40) + (c == "Rome") for a, c in zip(columns()["age"], columns()["city"])])
    turned = frame[list(frame.columns)[::-1]]
    wider = turned.assign(new=1.0) if frame is PANDAS else turned.with_columns(new=pl.lit(1.0))
    narrower = turned.drop("id", axis=1) if frame is PANDAS else turned.drop("id")  # an identifier was left out
    renamed = turned.rename(columns={"age": "Age"}) if frame is PANDAS else turned.rename({"age": "Age"})
    for model, target in ((mc.KernelRidge(mc.TableKernel()), y), (mc.SVC(mc.TableKernel()), y > np.median(y))):
        model.fit(frame, target)
        model.save(tmp_path / "model.mercer")
        for one in (model, mc.load(tmp_path / "model.mercer")):
            for table in (turned, wider, narrower):
                assert (one.predict(table) == model.predict(frame)).all()
            with pytest.raises(mc.InvalidInput, match="'age' may now be 'Age'"):
                one.predict(renamed)
    ridge = mc.KernelRidge(mc.TableKernel()).fit(frame, y)
    assert np.array_equal(ridge.predict_interval(turned), ridge.predict_interval(frame))


def test_names_are_compared_where_the_kernel_does_not_find_them():
    numbers = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 0.0]})
    model = mc.KernelRidge(mc.Gaussian(1.0)).fit(numbers, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(numbers[["b", "a"]])


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (pd.DataFrame({"a": [1, 1, 1], "b": [None] * 3}), "distinguishes its rows, got 'a': constant; 'b': no value"),
        (pd.DataFrame({"a": [{"k": 1}, {"k": 2}]}), "Column 'a' must hold numbers, .* got values of type dict"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "different names, got 2 columns called 'a'"),
        (pd.DataFrame({"a": []}), "rows and columns"),
        (np.zeros((3, 0)), "rows and columns"),
        (np.zeros(3), "2-D"),
    ],
)
def test_tables_that_are_no_use(frame, match):
    with pytest.raises(mc.InvalidInput, match=match):
        mc.table_kernel(frame)


def test_typed_is_checked():
    k = mc.Gaussian(1.0).on("a")
    with pytest.raises(mc.InvalidInput, match="'a', of no kind"):
        mc.Typed(k, numbers=["b"])
    with pytest.raises(mc.InvalidInput, match="named once"):
        mc.Typed(k, numbers=["a"], texts=["a"])
    with pytest.raises(mc.InvalidInput, match="list of column names"):
        mc.Typed(k, numbers="a")
    with pytest.raises(mc.InvalidInput, match="pairs of a name"):
        mc.Typed(k, numbers=["a"], ordered=["b"])


def test_no_warning_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mc.table_kernel(PANDAS)(PANDAS)
        mc.table_kernel(POLARS)(POLARS)
