"""Roles of columns: assigned by the user, or recognised by names and values; exposures, weights and identifiers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import mercer as mc
from mercer.data.assignment import ROLES, Roles
from mercer.data.roles import role_of
from mercer.models.explaining.effort import Effort
from mercer.models.judging.cross_validation import judge_by_folds
from mercer.models.scores import Baseline, judge, judge_by_leave_one_out
from mercer.report.document import _Page
from mercer.report.plots import Plots
from mercer.report.reasons import explained_rows
from mercer.report.scores import scores_section
from mercer.tuning.folds import make_folds

N = 90
TIME = 20.0


def policies(n: int = N, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Counts over an exposure, with an effect of age and one of each hospital."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, n),
            "hospital": rng.integers(1, 4, n),
            "key": np.arange(n) + 7,
            "years": rng.uniform(0.2, 3.0, n),
            "times": rng.integers(1, 4, n),
        }
    )
    rate = np.exp(1.2 - frame["age"] / 60 + np.array([0.0, 1.0, -1.0, 0.5])[frame["hospital"]])
    return frame, rng.poisson(frame["years"] * rate)


GIVEN = {"hospital": "category", "years": "exposure", "times": "weight"}


@pytest.fixture(scope="module")
def model():
    frame, counts = policies()
    return mc.AutoRegressor(roles=GIVEN, time=TIME).fit(frame, counts)


# -- one notion of a role ----------------------------------------------------------------------------------------------


def test_a_mapping_is_checked_and_sorted_by_its_parts():
    roles = Roles.of({"a": "category", "b": "drop", "c": "exposure", "d": "ignore", "e": "group"})
    assert (roles.features, roles.drop, roles.exposure) == ({"a": "category"}, ("b", "d"), "c")
    assert roles.others == {"b": "drop", "d": "drop", "c": "exposure", "e": "group"}
    assert not Roles.of(None)
    with pytest.raises(mc.InvalidInput, match=r"'catgory' for 'a'.*Did you mean 'category'"):
        Roles.of({"a": "catgory"})
    with pytest.raises(mc.InvalidInput, match=r"At most one column.*'a' and 'b'"):
        Roles.of({"a": "weight", "b": "weight"})
    with pytest.raises(mc.InvalidInput, match="mapping"):
        Roles.of(["a"])


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_come_apart(library):
    frame = library.DataFrame({"x": [1.0, 2.0], "g": ["u", "v"], "t": [3, 4], "w": [1, 2], "z": [0, 0]})
    parts = Roles.of({"g": "group", "t": "time", "w": "weight", "z": "drop"}).apart(frame)
    assert list(parts.X.columns) == ["x"]
    assert (parts.group.tolist(), parts.time.tolist(), parts.weight.tolist()) == (["u", "v"], [3, 4], [1, 2])
    assert parts.exposure is None
    with pytest.raises(mc.InvalidInput, match=r"column 'ww'.*Did you mean 'w'"):
        Roles.of({"ww": "weight"}).apart(frame)
    with pytest.raises(mc.InvalidInput, match="is a feature"):
        Roles.of(dict.fromkeys(frame.columns, "drop")).apart(frame)
    with pytest.raises(mc.InvalidInput, match="data frame"):
        Roles.of({"x": "drop"}).apart(np.zeros((2, 2)))


def test_a_table_kernel_knows_every_role():
    frame, _ = policies()
    for role in ROLES:
        if role in ("tokens", "text", "molecule", "date"):
            continue
        plan = mc.TableKernel(roles={"hospital": role}).explain(frame)
        used = "hospital" in plan.kernel.columns_read
        assert used == (role in ("number", "ordered", "category")), role


@pytest.mark.parametrize(
    ("name", "values", "role", "by"),
    [
        ("hospital_id", [1, 2, 3] * 10, "category", "name"),
        ("hospital", [1, 2, 3] * 10, "number", "type"),
        ("storeId", [5, 9, 12] * 10, "category", "name"),
        ("zip", [53111.0, 24103.0, 89073.0] * 10, "category", "name"),
        ("Postal Code", [53111, 24103, 89073] * 10, "category", "name"),
        ("house number", [1, 2, 3] * 10, "category", "name"),
        ("number_of_rooms", [1, 2, 3] * 10, "number", "type"),
        ("paid", [1, 2, 3] * 10, "number", "type"),
        ("grid", [1, 2, 3] * 10, "number", "type"),
        ("zip", [0.5, 1.5, 2.5] * 10, "number", "type"),
        ("area_code", [-1, 2, 3] * 10, "number", "type"),
        ("hospital_id", list(range(50, 80)), "left out", "name"),
        ("zip", [*range(50, 64), 50, 51], "number", "type"),
        ("row", list(range(1, 31)), "left out", "values"),
        ("t", list(range(1, 31)), "number", "type"),
        ("minute", list(range(1, 31)), "number", "type"),
    ],
)
def test_codes_by_name_and_values(name, values, role, by):
    found = role_of(name, np.array(values))
    assert (found.role, found.by) == (role, by)
    assert role_of(name, np.array(values), "number").role == "number"
    assert role_of(name, np.array(values), "category").by == "assigned"


# -- tables of numbers -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_identifiers_are_left_out_of_tables_of_numbers_and_named(library):
    rng = np.random.default_rng(1)
    columns = {"key": np.arange(60), "a": rng.normal(size=60), "b": rng.normal(size=60)}
    frame, y = library.DataFrame(columns), np.sin(columns["a"])
    fitted = mc.AutoRegressor(time=TIME).fit(frame, y)
    assert list(fitted.columns_.left_out) == ["key"]
    assert "'key' is not used (an identifier" in str(fitted.choices_)
    assert "roles={'key': 'number'}" in fitted.choices_[1].advice
    assert list(fitted.feature_names_in_) == ["a", "b"]
    alone = mc.AutoRegressor(time=TIME).fit(library.DataFrame({"a": columns["a"], "b": columns["b"]}), y)
    np.testing.assert_array_equal(fitted.predict(frame), alone.predict(frame[["a", "b"]]))
    used = mc.AutoRegressor(roles={"key": "number"}, time=TIME).fit(frame, y)
    assert list(used.feature_names_in_) == ["key", "a", "b"]
    assert not used.columns_.left_out


def test_an_only_column_is_a_feature():
    x = np.arange(40)
    fitted = mc.AutoRegressor(time=TIME).fit(pd.DataFrame({"row": x}), np.sin(x / 6))
    assert fitted.score(pd.DataFrame({"row": x}), np.sin(x / 6)) > 0.9


@pytest.mark.thorough
def test_a_code_is_a_category_if_its_name_says_so():
    frame, counts = policies()
    named = frame[["age", "hospital"]].rename(columns={"hospital": "hospital_id"})
    said = mc.AutoRegressor(roles={"hospital": "category"}, time=TIME).fit(frame[["age", "hospital"]], counts)
    seen = mc.AutoRegressor(time=TIME).fit(named, counts)
    assert list(seen.columns_.assumed) == ["hospital_id"]
    assert "'hospital_id' is read as categories" in seen.choices_[1].why
    np.testing.assert_allclose(seen.predict(named), said.predict(frame[["age", "hospital"]]), rtol=1e-12)
    number = mc.AutoRegressor(roles={"hospital_id": "number"}, time=TIME).fit(named, counts)
    assert not number.columns_.assumed
    assert number.columns_.numeric


# -- exposures and weights ---------------------------------------------------------------------------------------------


def test_an_exposure_is_an_offset(model):
    """The rates of weighted rows are the Poisson model with log link and the offset log(exposure)."""
    frame, counts = policies()
    inner = model.model_
    peer = mc.KernelGLM(inner.kernel_, family="poisson", alpha=inner.alpha, tol=1e-9)
    X = frame[["age", "hospital"]]
    peer.fit(X, counts, frame["times"], exposure=frame["years"])
    np.testing.assert_allclose(model.predict(frame), peer.predict(X, exposure=frame["years"]), rtol=1e-4)
    np.testing.assert_allclose(model.loo_predictions_, peer.loo_predictions_, rtol=1e-3)
    assert model.loss_ == "poisson"
    assert "counts over an exposure" in str(model.choices_)
    told = str(model.choices_)
    assert "of the variance of the counts per unit of exposure" in told
    assert "mean squared error of the counts per unit of exposure" in told
    assert "on the scale of the target" not in told, "the errors are those of rates"


def test_predictions_grow_with_the_exposure(model):
    frame, _ = policies()
    double = frame.assign(years=2 * frame["years"])
    np.testing.assert_allclose(model.predict(double), 2 * model.predict(frame), rtol=1e-12)
    np.testing.assert_allclose(model.predict(frame, exposure=1.0) * frame["years"], model.predict(frame), rtol=1e-12)
    low, high = model.predict_interval(frame, 0.9).T
    assert (model.predict_interval(double, 0.9)[:, 1] >= high).all()
    assert (low >= 0).all()
    assert (high == np.floor(high)).all()
    with pytest.warns(UserWarning, match=r"no column 'years'.*rates"):
        rates = model.predict(frame.drop(columns="years"))
    np.testing.assert_array_equal(rates, model.predict(frame, exposure=1.0))


def test_the_baseline_is_one_rate_times_the_exposure_wherever_it_is_shown(model):
    frame, counts = policies()
    rates = counts.sum() / frame["years"].sum() * frame["years"]
    folds = judge_by_folds(lambda X, y: model, frame, counts, make_folds(N, 3))
    left_out = judge_by_leave_one_out(model, frame, counts)
    baseline = Baseline.of(counts, exposure=frame["years"].to_numpy())
    for judgement in (left_out, judge(model, frame, counts, baseline)):
        assert judgement["RMSE"].baseline == pytest.approx(np.sqrt(np.mean((counts - rates) ** 2)))
    for judgement in (left_out, folds):
        words = scores_section(judgement, counts[judgement.rows])
        assert "One rate for all rows, times the exposure, would give" in words
        assert "the mean of the training targets" not in words
    assert "Always predicting the mean" in scores_section(judge(model, frame, counts, Baseline.of(counts)), counts)


def test_an_exposure_is_not_a_feature_that_explains(model):
    frame, counts = policies()
    frame = frame[["years", "age", "hospital"]]
    parts = mc.contributions(model, frame[:2], frame)
    assert parts.names == ("age", "hospital")
    bars = mc.plot.ContributionBars.from_contributions(parts, X=frame)
    assert f"age = {frame['age'][0]:.4g}"[:8] in " ".join(bars.names), "the value of the right column"
    same = [model.predict(frame.assign(years=frame["years"][i])).mean() for i in range(2)]
    np.testing.assert_allclose(parts.mean, same, err_msg="all rows over the exposure of the row")
    np.testing.assert_allclose(parts.mean + parts.values.sum(axis=1), model.predict(frame[:2]))
    judgement = judge_by_leave_one_out(model, frame, counts)
    page = _Page(model, frame, counts, frame, counts, judgement, "claims", (), None, Effort.of(model))
    assert page.unused == []
    assert "years is the exposure, not a feature." in page._columns()
    plots = Plots(model, frame, counts, frame, counts, judgement, "claims", page.names, page.order, page.effort)
    assert [page.names[j] for j in plots._drawable()] == ["hospital", "age"], "the most important first"
    shown = explained_rows(model, frame, counts, frame, counts, judgement, page.names, "row", list(map(str, range(N))))
    assert "with the same exposure, plus these contributions" in shown


def test_intervals_of_counts_over_an_exposure_hold_on_new_rows(model):
    frame, counts = policies(1500, seed=5)
    low, high = model.predict_interval(frame, 0.8).T
    assert 0.75 < np.mean((low <= counts) & (counts <= high)) < 0.97


def test_the_file_has_the_roles(model, tmp_path):
    frame, _ = policies()
    model.save(tmp_path / "m.mercer")
    loaded = mc.load(tmp_path / "m.mercer")
    assert loaded.columns_ == model.columns_
    assert loaded.roles == GIVEN
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.predict_interval(frame), model.predict_interval(frame))
    np.testing.assert_allclose(loaded.loo_predictions_, model.loo_predictions_, rtol=1e-9)
    shuffled = frame[["years", "age", "hospital"]].assign(new="x")  # other columns are neither needed nor in the way
    np.testing.assert_array_equal(loaded.predict(shuffled), model.predict(frame))


def test_arguments_and_columns_are_the_same():
    frame, counts = policies()
    X = frame[["age"]]
    by_column = mc.AutoRegressor(roles={"years": "exposure", "times": "weight"}, time=TIME)
    frame = frame[["age", "years", "times"]]
    by_column.fit(frame, counts)
    by_argument = mc.AutoRegressor(time=TIME).fit(X, counts, frame["times"], exposure=frame["years"])
    np.testing.assert_array_equal(by_argument.predict(X, exposure=frame["years"]), by_column.predict(frame))
    np.testing.assert_array_equal(by_argument.predict(X), by_column.predict(frame, exposure=1.0))
    assert by_argument.score(X, counts, exposure=frame["years"]) == by_column.score(frame, counts)
    with pytest.raises(mc.InvalidInput, match="given once"):
        by_column.fit(frame, counts, exposure=frame["years"])


@pytest.mark.thorough
def test_scikit_learn_knows_roles_as_a_parameter():
    frame, counts = policies()
    plain = mc.AutoRegressor(roles=GIVEN, time=TIME)
    assert clone(plain).get_params()["roles"] == GIVEN
    assert plain.set_params(roles={"years": "exposure"}).roles == {"years": "exposure"}
    scores = cross_val_score(mc.AutoRegressor(roles=GIVEN, time=TIME, kernel=None), frame, counts, cv=2)
    assert np.isfinite(scores).all()


def test_weights_count_rows():
    frame, counts = policies(40)
    labels = np.where(counts > 1, "many", "few")
    X = frame[["age", "hospital", "times"]]
    weighted = mc.AutoClassifier(roles={"times": "weight"}, kernel=mc.Gaussian(20.0), time=TIME).fit(X, labels)
    peer = mc.AutoClassifier(kernel=mc.Gaussian(20.0), time=TIME)
    peer.fit(X[["age", "hospital"]], labels, frame["times"])
    np.testing.assert_array_equal(weighted.predict_proba(X), peer.predict_proba(X[["age", "hospital"]]))
    assert list(weighted.feature_names_in_) == ["age", "hospital"]


def test_what_an_exposure_needs():
    frame, counts = policies(40)
    with pytest.raises(mc.InvalidInput, match=r"Poisson's loss.*loss='squared'"):
        mc.AutoRegressor(roles={"years": "exposure"}, loss="squared").fit(frame, counts)
    with pytest.raises(mc.InvalidInput, match="a target of -1"):
        mc.AutoRegressor(roles={"years": "exposure"}).fit(frame, counts - 1)
    with pytest.raises(mc.InvalidInput, match="> 0"):
        mc.AutoRegressor(roles={"years": "exposure"}).fit(frame.assign(years=0.0), counts)
    with pytest.raises(mc.InvalidInput, match="for counts"):
        mc.AutoClassifier(roles={"years": "exposure"}).fit(frame, counts > 1)
    with pytest.raises(mc.InvalidInput, match=r"TableKernel\(roles="):
        mc.AutoRegressor(kernel=mc.Gaussian(1.0), roles={"hospital": "category"}).fit(frame, counts)


def test_a_given_kernel_reads_features_only():
    frame, counts = policies(40)
    fitted = mc.AutoRegressor(kernel=mc.Gaussian(20.0), roles={"years": "exposure", "key": "drop"}, time=TIME)
    fitted.fit(frame, counts)
    assert list(fitted.feature_names_in_) == ["age", "hospital", "times"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.predict(frame).shape == (40,)
