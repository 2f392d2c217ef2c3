"""Labels: what every classifier takes for a class, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.labels import labels

CLASSIFIERS = [
    mc.LogisticRegression(),
    mc.KernelLogisticRegression(mc.Gaussian(1.0)),
    mc.SVC(mc.Gaussian(1.0)),
    mc.LinearDiscriminant(),
    mc.FisherDiscriminant(),
    mc.KernelDiscriminant(mc.Gaussian(1.0)),
    mc.KernelFisherDiscriminant(mc.Gaussian(1.0)),
    mc.LeastSquaresClassifier(),
    mc.Perceptron(),
    mc.KernelPerceptron(mc.Gaussian(1.0)),
    mc.KernelNeighborsClassifier(mc.Gaussian(1.0)),
    mc.NadarayaWatsonClassifier(mc.Gaussian(1.0)),
]
X = np.random.default_rng(0).normal(size=(6, 2))
DAYS = np.array(["2020-01-01", "2021-01-01", "2020-01-01", "2021-01-01", "2020-01-01", "NaT"], dtype="M8[D]")
NAN = float("nan")


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_every_classifier_refuses_what_is_missing_or_mixed(model):
    for y in (DAYS, DAYS - DAYS[0], ["a", "b", "a", "b", "a", NAN]):
        with pytest.raises(InvalidInput, match=r"missing label .* in row 5"):
            model.fit(X, y)
    for y in (["a", 1, "a", 1, 1, "a"], np.array(["a", 1, "a", 1, 1, "a"], dtype=object)):
        with pytest.raises(InvalidInput, match="'a' in row 0 and 1 in row 1"):
            model.fit(X, y)


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", None],
        ["a", "b", NAN],
        ("a", "b", NAN),
        [["a"], ["b"], [NAN]],
        ["a", "b", pd.NA],
        ["a", "b", np.datetime64("NaT")],
        np.array(["a", "b", None], dtype=object),
        np.array(["a", "b", NAN], dtype=object),
        np.array([1, 2, pd.NA], dtype=object),
        np.array([True, False, None], dtype=object),
        np.array([0.0, 1.0, NAN]),
        [0, 1, NAN],
        [0, 1, None],
        DAYS[3:],
        pd.Series(DAYS[3:]),
        pd.Series(["a", "b", None]),
        pd.Series(["a", "b", None], dtype="string"),
        pd.Series(["a", "b", None], dtype="category"),
        pd.Series([0, 1, None], dtype="Int64"),
        pl.Series(["a", "b", None]),
        pl.Series([0, 1, None]),
        np.ma.array([0, 1, 0], mask=[False, False, True]),
        np.ma.array(["a", "b", "a"], mask=[False, False, True]),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_missing_label_is_named_by_its_row(y):
    with pytest.raises(InvalidInput, match=r"got a missing label \(None, NaN, NaT or masked\) in row 2\. Drop"):
        labels(y, 3)


@pytest.mark.parametrize("y", [["a", "b", 1], ["a", "b", 1.5], ["a", "b", True], ["a", "b", b"c"], ["a", "b", (1, 2)]])
def test_text_and_other_labels_are_refused_in_any_container(y):
    held = np.empty(3, dtype=object)
    held[:] = y
    for given in (y, tuple(y), held, pd.Series(y, dtype=object)):
        with pytest.raises(InvalidInput, match="one label per point"):
            labels(given, 3)
    if not isinstance(y[2], tuple):
        for given in (y, held, y[::-1]):
            with pytest.raises(InvalidInput, match=r"all of one kind, got 'a' in row 0 and .* in row 2|'b' in row 1"):
                labels(given, 3)


def test_classes_of_a_stream_follow_the_same_rule():
    for classes in (["a", 1], np.array(["a", 1], dtype=object)):
        with pytest.raises(InvalidInput, match="'a' in row 0 and 1 in row 1"):
            mc.Perceptron().partial_fit(X, ["a"] * 6, classes=classes)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (["a", "b"], "U"),
        (["nan", "None"], "U"),
        ([1, 2], "i"),
        ([1, True], "i"),
        (np.array([1, True], dtype=object), "i"),
        ([True, False], "b"),
        ([1.0, 2.0], "f"),
        (DAYS[:2], "M"),
        (np.array(["a", "b"], dtype=object), "O"),
        (np.ma.array([0, 1]), "i"),
    ],
)
def test_labels_that_are_none_of_this_stay_as_they_are(y, kind):
    found = labels(y, 2)
    assert found.dtype.kind == kind
    assert found.tolist() == np.asarray(y).tolist()


def test_infinite_labels():
    with pytest.raises(InvalidInput, match="infinity"):
        labels([0.0, np.inf], 2)
