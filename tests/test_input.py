"""Bad input: it works, or it gets an error with what was got, what is required and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mercer as mc

KERNELS = [
    mc.Linear(), mc.Polynomial(3, c=1.0), mc.Gaussian(1.0), mc.Laplacian(1.0), mc.Matern(1.0, 1.5), mc.Matern(1.0, 0.7),
    mc.RationalQuadratic(1.0), mc.Periodic(1.0, 1.0), mc.ArcCosine(0), mc.ArcCosine(1), mc.Tanh(), mc.Epanechnikov(1.0),
    0.5 * mc.Gaussian(2.0) + mc.Linear() * mc.Matern(1.0), mc.exp(0.1 * mc.Gaussian(1.0)), mc.Polynomial(2).normalize(),
]  # fmt: skip
each = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


@each
@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, float("nan")]], "row 0, column 1"),
        ([[1.0], [float("inf")]], "infinity"),
        (np.empty((0, 3)), "at least one point"),
        (np.empty((3, 0)), "at least one column"),
        ([1.0, 2.0], "np.reshape"),
        (np.zeros((2, 2, 2)), "2-D"),
        ([["a"], ["b"]], "numeric"),
        (np.array([[1 + 2j]]), "real"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "numeric"),
        (3.0, "sequence of points"),
        (None, "sequence of points"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), "masked"),
        (np.array([[{}]], dtype=object), "numeric"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_bad_data_gets_a_three_part_error(kernel, X, words):
    with pytest.raises(mc.InvalidInput, match=words) as caught:
        kernel(X)
    assert caught.value.got
    assert caught.value.advice.endswith(".")


@each
def test_mismatched_columns(kernel):
    with pytest.raises(mc.InvalidInput, match="same columns"):
        kernel(np.ones((2, 3)), np.ones((2, 2)))


@pytest.mark.parametrize(
    "model", [mc.KernelRidge(), mc.Ridge(), mc.SVR(), mc.LocalRegression(), mc.KernelPCA()], ids=repr
)
def test_a_model_refuses_another_number_of_columns_in_three_parts(model):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model.fit(X, X[:, 0])
    for Z in (X[:, :2], X[:, :2].tolist()):
        with pytest.raises(mc.InvalidInput, match=r"X has 2 features, but \w+ is expecting 3 features") as caught:
            (model.transform if isinstance(model, mc.KernelPCA) else model.predict)(Z)
        assert str(caught.value).count("3") == 1
        assert caught.value.advice == "Pass the same columns as in `fit`, in the same order."


def test_a_weight_in_place_of_a_kernel_is_named():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(mc.InvalidInput, match=r"got Epanechnikov\(sigma=1.0\), a smoothing weight"):
        mc.KernelRidge(mc.Epanechnikov()).fit(X, X[:, 0])


@each
def test_every_layout_gives_the_same_values(kernel):
    X = np.random.default_rng(0).normal(size=(6, 4))
    K = kernel(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    for other in (
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        X[::-1][::-1],
        frozen,
        X.tolist(),
        X.astype(object),
    ):
        np.testing.assert_array_equal(kernel(other), K)
    if "Precomputed" not in repr(kernel):
        assert kernel(X.astype(np.float16)).dtype == np.float32
        assert kernel(X.astype(np.longdouble)).dtype == np.float64


@each
def test_integers_booleans_and_single_points(kernel):
    integers = np.array([[1, 0, 2], [0, 1, 1]])
    np.testing.assert_array_equal(kernel(integers), kernel(integers.astype(float)))
    np.testing.assert_array_equal(kernel(integers.astype(np.uint8)), kernel(integers.astype(float)))
    np.testing.assert_array_equal(kernel(integers > 0), kernel((integers > 0).astype(float)))
    assert kernel([[1.0]]).shape == (1, 1)
    assert kernel([[1.0, 2.0]], [[3.0, 4.0]] * 3).shape == (1, 3)


@each
def test_constant_columns_and_duplicates(kernel):
    X = np.random.default_rng(0).normal(size=(5, 3))
    X[:, 1] = 7.0
    X[3] = X[0]
    K = kernel(X)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K[3], K[0], rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
@given(
    st.sampled_from(KERNELS),
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6),
        elements=st.one_of(
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from([0.0, -0.0, 1e300, -1e300, 1e-300, 5e-324, 1.0]),
            st.floats(-10, 10),
        ),
    ),
)
def test_any_finite_numbers_work_or_are_refused(kernel, X):
    """Never a crash, a warning, or a silent NaN."""
    refusal, K = "overflow, Rescale", np.zeros((1, 1))
    try:
        K = kernel(X)
    except mc.InvalidInput as error:
        refusal = str(error)
    assert "overflow" in refusal or "Rescale" in refusal
    assert np.isfinite(K).all()
    assert (K == K.T).all()


@settings(max_examples=settings.default.max_examples // 4)
@given(st.sampled_from(KERNELS), hnp.arrays(np.float32, (4, 3), elements=st.floats(-1e6, 1e6, width=32)))
def test_single_precision_is_finite_or_refused(kernel, X):
    try:
        K = kernel(X)
    except mc.InvalidInput:
        return
    assert K.dtype == np.float32
    assert np.isfinite(K).all()


def test_errors_survive_pickling():
    import pickle

    with pytest.raises(mc.RuleBroken) as caught:
        -1.0 * mc.Gaussian(1.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is mc.RuleBroken
    assert str(again) == str(caught.value)


def test_sets_must_be_sets():
    for bad in (["abc"], [1, 2], [{1}, None]):
        with pytest.raises(mc.InvalidInput, match="must be a set"):
            mc.Intersection()(bad)
    with pytest.raises(mc.InvalidInput, match="hashable"):
        mc.Intersection()([[[1], [2]]])
    with pytest.raises(mc.InvalidInput, match="sequence of points"):
        mc.Intersection()({1, 2})
    np.testing.assert_array_equal(mc.Intersection()([[1, 1, 2], (2, 3)]), [[2, 1], [1, 2]])


def test_a_name_that_two_columns_have_selects_none_of_them():
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "a", "b"])
    for column in ("a", 0, 1):
        with pytest.raises(mc.InvalidInput, match=r"'a' must be one column, got 2 columns of that name\. Rename"):
            mc.Linear().on(column)(frame)
    assert mc.Linear().on("b")(frame).tolist() == [[9.0]]
