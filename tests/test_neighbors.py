"""Nearest neighbours in feature space: against scikit-learn on vectors, against double loops on anything else."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import mercer as mc
from mercer import memory
from mercer.models.local.neighbors import KernelNeighborsClassifier, KernelNeighborsRegressor


def data(n=300, m=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), rng.integers(0, 3, n), Z


MONOTONE = [mc.Gaussian(1.3), mc.Linear(), mc.Matern(2.0, nu=1.5), 3.0 * mc.Gaussian(2.0), mc.RationalQuadratic(1.0)]


@pytest.mark.parametrize("kernel", MONOTONE, ids=repr)
@pytest.mark.parametrize("k", [1, 4, 300])
def test_kernels_of_the_distance_have_the_neighbours_of_the_vectors(kernel, k):
    X, y, labels, Z = data()
    ours = KernelNeighborsClassifier(kernel, n_neighbors=k).fit(X, labels)
    theirs = KNeighborsClassifier(k).fit(X, labels)
    distances, positions = ours.kneighbors(Z)
    where = theirs.kneighbors(Z, return_distance=False)
    np.testing.assert_array_equal(positions, where)
    np.testing.assert_allclose(distances, np.take_along_axis(mc.distance(kernel, Z, X), where, 1), atol=1e-7)
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-12)
    Y = np.column_stack([y, X[:, 1] ** 2])
    for target in (y, Y):
        model = KernelNeighborsRegressor(kernel, n_neighbors=k).fit(X, target)
        np.testing.assert_allclose(model.predict(Z), KNeighborsRegressor(k).fit(X, target).predict(Z), atol=1e-12)


@pytest.mark.parametrize("k", [1, 7])
def test_votes_by_distance_are_those_of_scikit_learn(k):
    X, y, labels, Z = data()
    Z[:5] = X[:5]  # at distance 0
    X[9] = X[0]
    theirs = KNeighborsClassifier(k, weights="distance").fit(X, labels)
    ours = KernelNeighborsClassifier(mc.Linear(), n_neighbors=k, weights="distance").fit(X, labels)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-12)
    model = KernelNeighborsRegressor(mc.Linear(), n_neighbors=k, weights="distance").fit(X, y)
    expect = KNeighborsRegressor(k, weights="distance").fit(X, y).predict(Z)
    np.testing.assert_allclose(model.predict(Z), expect, atol=1e-12)
    if k > 1:
        assert model.predict(Z)[0] == pytest.approx((y[0] + y[9]) / 2, abs=1e-15)


def common(a, b):
    return float(len(a & b))


def cosine(a, b):
    return len(a & b) / math.sqrt(len(a) * len(b))


def naive(k, X, z, n):
    """The n nearest by a sort of k(x, x) − 2k(x, z) + k(z, z)."""
    squares = [k(x, x) - 2 * k(x, z) + k(z, z) for x in X]
    return sorted(range(len(X)), key=lambda i: (round(squares[i], 9), i))[:n], squares


def random_sets(n, seed):
    rng = np.random.default_rng(seed)
    return [set(rng.choice(12, rng.integers(1, 8), replace=False).tolist()) for _ in range(n)]


@pytest.mark.parametrize("weights", ["uniform", "distance", "kernel"])
@pytest.mark.parametrize(("kernel", "k"), [(mc.Intersection(), common), (mc.Intersection().normalize(), cosine)])
def test_sets_have_the_neighbours_of_the_definition(kernel, k, weights):
    X, Z = random_sets(60, 0), random_sets(25, 1)
    y = np.array([float(len(x)) for x in X])
    labels = np.where(y > 4, "large", "small")
    model = KernelNeighborsRegressor(kernel, n_neighbors=5, weights=weights).fit(X, y)
    classifier = KernelNeighborsClassifier(kernel, n_neighbors=5, weights=weights).fit(X, labels)
    distances, positions = model.kneighbors(Z)
    found, shares = model.predict(Z), classifier.predict_proba(Z)
    for j, z in enumerate(Z):
        where, squares = naive(k, X, z, 5)
        assert positions[j].tolist() == where
        np.testing.assert_allclose(distances[j] ** 2, [squares[i] for i in where], atol=1e-12)
        d = [np.sqrt(max(squares[i], 0)) if squares[i] > 1e-12 else 0.0 for i in where]
        votes = {
            "uniform": [1.0] * 5,
            "kernel": [k(X[i], z) for i in where],
            "distance": [float(v == 0) for v in d] if min(d) == 0 else [1 / v for v in d],
        }[weights]
        assert found[j] == pytest.approx(np.average(y[where], weights=votes if sum(votes) else None), abs=1e-7)
        large = sum(v for v, i in zip(votes, where) if labels[i] == "large") / sum(votes)
        assert shares[j, 0] == pytest.approx(large, abs=1e-7)


def test_tables_and_words():
    words = ["kernel", "colonel", "lecture", "lecturer"]
    letters = mc.FromFunction(lambda s, t: len(set(s) & set(t)))
    model = KernelNeighborsClassifier(letters, n_neighbors=1).fit(words, [0, 0, 1, 1])
    assert model.predict(["kennel", "rector"]).tolist() == [0, 1]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [1.0, 1.1, 5.0, 5.2], "colour": ["red", "red", "blue", "red"]})
    kernel = mc.Gaussian(1.0).on("size") + mc.Delta().on("colour")
    model = KernelNeighborsClassifier(kernel, n_neighbors=1).fit(frame, ["a", "b", "c", "d"])
    assert model.predict(frame.iloc[[3, 2]]).tolist() == ["d", "c"]
    assert model.feature_names_in_.tolist() == ["size", "colour"]


def test_sparse_and_single_precision_rows():
    X, y, _, Z = data(60, 20)
    for kernel in (mc.Gaussian(1.0), mc.Linear()):
        model = KernelNeighborsRegressor(kernel, n_neighbors=3).fit(X, y)
        sparse = KernelNeighborsRegressor(kernel, n_neighbors=3).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(sparse.predict(sp.csr_array(Z)), model.predict(Z), atol=1e-12)
        narrow = KernelNeighborsRegressor(kernel, n_neighbors=3).fit(X.astype("float32"), y)
        np.testing.assert_array_equal(narrow.kneighbors(Z.astype("float32"))[1], model.kneighbors(Z)[1])


# -- precomputed matrices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance", "kernel"])
def test_a_normalised_matrix_is_as_good_as_its_kernel(weights):
    X, y, _, Z = data(50, 50)  # as many queries as rows: their matrix is square too
    k = mc.Gaussian(1.0)
    model = KernelNeighborsRegressor(k, n_neighbors=4, weights=weights).fit(X, y)
    bare = KernelNeighborsRegressor(mc.Precomputed(), n_neighbors=4, weights=weights).fit(k(X), y)
    np.testing.assert_array_equal(bare.kneighbors(k(Z, X))[1], model.kneighbors(Z)[1])
    np.testing.assert_allclose(bare.kneighbors(k(Z, X))[0], model.kneighbors(Z)[0], atol=1e-7)
    np.testing.assert_allclose(bare.predict(k(Z, X)), model.predict(Z), atol=1e-7)
    np.testing.assert_allclose(bare.loo_predictions_, model.loo_predictions_, atol=1e-7)
    whole = mc.Precomputed(k(np.vstack([X, Z])))
    by_place = KernelNeighborsRegressor(whole, n_neighbors=4, weights=weights).fit(np.arange(50), y)
    np.testing.assert_allclose(by_place.predict(np.arange(50, 100)), model.predict(Z), atol=1e-7)


def test_any_matrix_gives_neighbours_but_no_distances():
    X, y, _, Z = data(40, 40)
    k = mc.Polynomial(2, c=1.0)
    model = KernelNeighborsRegressor(k, n_neighbors=4).fit(X, y)
    bare = KernelNeighborsRegressor(mc.Precomputed(), n_neighbors=4).fit(k(X), y)
    np.testing.assert_array_equal(bare.kneighbors(k(Z, X), return_distance=False), model.kneighbors(Z)[1])
    np.testing.assert_allclose(bare.predict(k(Z, X)), model.predict(Z), atol=1e-12)
    np.testing.assert_allclose(bare.kneighbors()[0], model.kneighbors()[0], atol=1e-7)  # here k(z, z) is known
    with pytest.raises(mc.InvalidInput, match="all k\\(x, x\\) are equal"):
        bare.kneighbors(k(Z, X))
    with pytest.raises(mc.InvalidInput, match="all k\\(x, x\\) are equal"):
        KernelNeighborsRegressor(mc.Precomputed(), weights="distance").fit(k(X), y)
    scores = cross_val_score(bare, k(X), y, cv=4)
    np.testing.assert_allclose(scores, cross_val_score(model, X, y, cv=4), atol=1e-12)
    w = np.ones(40)
    w[::7] = 0
    bare.fit(k(X), y, w)
    np.testing.assert_allclose(bare.predict(k(Z, X)), model.fit(X, y, w).predict(Z), atol=1e-12)
    np.testing.assert_allclose(bare.loo_predictions_, model.loo_predictions_, atol=1e-12)


# -- weights, ties, duplicates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance", "kernel"])
def test_weights_are_repetitions(weights):
    X, y, labels, Z = data(60, 40)
    w = np.random.default_rng(1).integers(0, 4, 60)
    for k in (1, 5, 12, int(w.sum())):
        given = {"n_neighbors": k, "weights": weights}
        model = KernelNeighborsClassifier(mc.Gaussian(1.0), **given).fit(X, labels, w)
        again = KernelNeighborsClassifier(mc.Gaussian(1.0), **given).fit(np.repeat(X, w, 0), np.repeat(labels, w))
        np.testing.assert_allclose(model.predict_proba(Z), again.predict_proba(Z), atol=1e-12)
        model = KernelNeighborsRegressor(mc.Gaussian(1.0), **given).fit(X, y, w)
        again = KernelNeighborsRegressor(mc.Gaussian(1.0), **given).fit(np.repeat(X, w, 0), np.repeat(y, w))
        np.testing.assert_allclose(model.predict(Z), again.predict(Z), atol=1e-12)
        np.testing.assert_allclose(
            model.predict(Z, return_std=True)[1], again.predict(Z, return_std=True)[1], atol=1e-7
        )


def test_fractions_of_a_row():
    model = KernelNeighborsRegressor(mc.Linear(), n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [1, 2, 4, 8], 0.75)
    # ¾ of the first and of the second, ½ of the third
    assert model.predict([[0.0]])[0] == pytest.approx((0.75 * 1 + 0.75 * 2 + 0.5 * 4) / 2)
    with pytest.raises(mc.InvalidInput, match="total weight of the training rows, 3"):
        clone(model).set_params(n_neighbors=4).fit([[0.0], [1.0], [2.0], [3.0]], [1, 2, 4, 8], 0.75)


def test_ties_are_broken_in_order():
    X = [[0.0], [2.0], [0.0], [2.0], [1.0]]
    model = KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors=4).fit(X, ["b", "a", "b", "a", "b"])
    assert model.kneighbors([[1.0]])[1].tolist() == [[4, 0, 1, 2]]
    assert model.kneighbors([[0.0]])[1].tolist() == [[0, 2, 4, 1]]
    equal = KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors=4).fit(X[:4], ["b", "a", "b", "a"])
    assert equal.predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]
    assert equal.predict([[0.0]]).tolist() == ["a"]


def test_many_equal_rows():
    X = np.zeros((3000, 2))
    X[:5] = 1.0
    y = np.arange(3000.0)
    model = KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors=3).fit(X, y)
    distances, positions = model.kneighbors()
    assert positions[2].tolist() == [0, 1, 3]
    assert positions[2999].tolist() == [5, 6, 7]
    assert positions[6, 0] == 5
    assert not (positions == np.arange(3000)[:, None]).any()
    assert not distances.any()
    for weights in ("distance", "kernel"):
        model = clone(model).set_params(weights=weights).fit(X, y)
        assert model.predict([[0.0, 0.0], [1.0, 1.0]]).tolist() == [6.0, 1.0]


def test_far_from_all_rows_answers_are_finite():
    X, y, labels, _ = data(40)
    Z = 1e3 * np.ones((2, 3))
    for weights in ("uniform", "distance", "kernel"):
        for kernel in (mc.Gaussian(0.1), mc.Matern(0.1, nu=1.5), mc.Polynomial(2, c=1.0)):
            model = KernelNeighborsRegressor(kernel, weights=weights).fit(X, y)
            if weights == "kernel" and kernel.tags.nonnegative is False and (kernel(Z, X) < 0).any():
                continue
            assert np.isfinite(model.predict(Z)).all()
            shares = KernelNeighborsClassifier(kernel, weights=weights).fit(X, labels).predict_proba(Z)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    # log k keeps the ratios of similarities that underflow
    near = KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors=2, weights="kernel").fit([[0.0], [1e-3]], [0.0, 1.0])
    ratio = np.exp((1000.0**2 - 999.999**2) / 2)
    assert near.predict([[1000.0]])[0] == pytest.approx(ratio / (1 + ratio), rel=1e-6)


def test_similarities_of_zero_count_one_each():
    X = [{1}, {2}, {3, 4, 5, 6, 7}]
    model = KernelNeighborsRegressor(mc.Intersection(), n_neighbors=2, weights="kernel").fit(X, [1.0, 3.0, 100.0])
    assert model.predict([{9}, {2, 9}]).tolist() == [2.0, 3.0]
    with pytest.raises(mc.InvalidInput, match="similarities k\\(x, z\\) ≥ 0"):
        KernelNeighborsRegressor(mc.Linear(), n_neighbors=1, weights="kernel").fit([[1.0]], [1.0]).predict([[-1.0]])


# -- leave-one-out ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("weights", ["uniform", "distance", "kernel"])
def test_leave_one_out_is_refitting(weights, monkeypatch):
    X, y, labels, _ = data(40)
    X[7] = X[20]
    Y = np.column_stack([y, y**2])
    for k in (1, 6):
        given = {"n_neighbors": k, "weights": weights}
        model = KernelNeighborsRegressor(mc.Gaussian(1.0), **given)
        classifier = KernelNeighborsClassifier(mc.Gaussian(1.0), **given)
        values = cross_val_predict(model, X, Y, cv=LeaveOneOut())
        guesses = cross_val_predict(classifier, X, labels, cv=LeaveOneOut())
        for n in (40, 1):
            monkeypatch.setattr(memory, "HELD", 400 * n)  # several groups of rows
            np.testing.assert_allclose(clone(model).fit(X, Y).loo_predictions_, values, atol=1e-10)
            fitted = clone(classifier).fit(X, labels)
            np.testing.assert_array_equal(fitted.loo_predictions_, guesses)
            assert fitted.loo_score_ == pytest.approx(np.mean(guesses == labels))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_neighbours_by_leave_one_out(weighted):
    X, y, labels, Z = data(70)
    w = np.random.default_rng(2).integers(1, 3, 70).astype(float) if weighted else None
    for Model, target in ((KernelNeighborsRegressor, y), (KernelNeighborsClassifier, labels)):
        chosen = Model(mc.Gaussian(1.0), n_neighbors="loo").fit(X, target, w)
        assert len(chosen.loo_errors_) == 30
        scores = [Model(mc.Gaussian(1.0), n_neighbors=k).fit(X, target, w).loo_score_ for k in range(1, 31)]
        np.testing.assert_allclose(1 - chosen.loo_errors_, scores, atol=1e-12)
        assert chosen.n_neighbors_ == 1 + int(np.argmax(np.round(scores, 12)))
        fixed = Model(mc.Gaussian(1.0), n_neighbors=chosen.n_neighbors_).fit(X, target, w)
        np.testing.assert_array_equal(chosen.predict(Z), fixed.predict(Z))
        assert not hasattr(chosen.set_params(n_neighbors=2).fit(X, target), "loo_errors_")


def test_rows_of_weight_zero_are_left_out():
    X, y, labels, Z = data(50)
    w = np.ones(50)
    w[::3] = 0
    used = w > 0
    model = KernelNeighborsRegressor(mc.Gaussian(1.0)).fit(X, y, w)
    other = KernelNeighborsRegressor(mc.Gaussian(1.0)).fit(X[used], y[used])
    np.testing.assert_array_equal(model.predict(Z), other.predict(Z))
    np.testing.assert_array_equal(model.kneighbors(Z)[1], np.flatnonzero(used)[other.kneighbors(Z)[1]])
    np.testing.assert_array_equal(model.loo_predictions_[used], other.loo_predictions_)
    np.testing.assert_array_equal(model.loo_predictions_[~used], other.predict(X[~used]))
    classifier = KernelNeighborsClassifier(mc.Gaussian(1.0)).fit(X, labels, w)
    assert (classifier.loo_predictions_[~used] == classifier.predict(X[~used])).all()


@pytest.mark.parametrize("weights", ["uniform", "distance", "kernel"])
def test_intervals_are_those_of_the_jackknife_plus(weights):
    X, y, _, Z = data(30, 6)
    Z[0] = X[3]
    Y = np.column_stack([y, X[:, 1]])
    model = KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors=4, weights=weights).fit(X, Y)
    found = model.predict_interval(Z, 0.8)
    assert found.shape == (6, 2, 2)
    refits = [clone(model).fit(np.delete(X, i, 0), np.delete(Y, i, 0)) for i in range(30)]
    residuals = np.array([np.abs(Y[i] - refits[i].predict(X[i : i + 1])[0]) for i in range(30)])
    others = np.array([refit.predict(Z) for refit in refits])
    rank = int(np.ceil(0.8 * 31))
    upper = np.sort(others + residuals[:, None], axis=0)[rank - 1]
    lower = np.sort(others - residuals[:, None], axis=0)[30 - rank]
    np.testing.assert_allclose(found, np.stack([lower, upper], axis=-1), atol=1e-9)
    with pytest.raises(mc.InvalidInput, match="coverage"):
        model.predict_interval(Z, 0.99)


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_the_spread_of_the_neighbours():
    model = KernelNeighborsRegressor(mc.Linear(), n_neighbors=2).fit(
        [[0.0], [1.0], [9.0]], [[1.0, 5.0], [3.0, 5.0], [0, 0]]
    )
    mean, std = model.predict([[0.2]], return_std=True)
    assert mean.tolist() == [[2.0, 5.0]]
    assert std.tolist() == [[1.0, 0.0]]


@pytest.mark.thorough
def test_memory_and_groups_change_nothing(monkeypatch):
    X, y, _labels, Z = data(400, 90)
    model = KernelNeighborsRegressor(mc.Gaussian(1.0), weights="kernel").fit(X, y)
    expect = model.predict(Z), model.predict_interval(Z)
    monkeypatch.setattr(memory, "HELD", 1000)
    np.testing.assert_allclose(model.predict(Z), expect[0], rtol=1e-14)
    np.testing.assert_allclose(model.predict_interval(Z), expect[1], rtol=1e-12)
    monkeypatch.setattr(memory, "HELD", 2**23)
    monkeypatch.setenv("MERCER_MEMORY", "100 kB")  # the 400 × 90 matrix has 288
    np.testing.assert_allclose(model.predict(Z), expect[0], rtol=1e-14)
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    np.testing.assert_allclose(model.predict(Z), expect[0], rtol=1e-14)


@pytest.mark.parametrize("k", [0, -1, 41, 2.0, True, None, "three"])
def test_impossible_numbers_of_neighbours(k):
    X, y, labels, Z = data(40)
    with pytest.raises(mc.InvalidInput, match="`n_neighbors` must be a whole number"):
        KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors=k).fit(X, labels)
    model = KernelNeighborsRegressor(mc.Gaussian(1.0)).fit(X, y)
    if k is not None:
        with pytest.raises(mc.InvalidInput, match="from 1 to 40"):
            model.kneighbors(Z, n_neighbors=k)
    with pytest.raises(mc.InvalidInput, match="from 1 to 39"):
        model.kneighbors(n_neighbors=40)


def test_bad_input():
    X, y, labels, _Z = data(40)
    with pytest.raises(mc.InvalidInput, match="`weights` must be"):
        KernelNeighborsClassifier(weights="gaussian").fit(X, labels)
    with pytest.raises(mc.InvalidInput, match="`kernel` must be"):
        KernelNeighborsClassifier("rbf").fit(X, labels)
    with pytest.raises(mc.InvalidInput, match="finite"):
        KernelNeighborsRegressor().fit(X, np.where(y > 0, y, np.nan))
    with pytest.raises(mc.InvalidInput, match="NaN"):
        KernelNeighborsRegressor().fit(X, y).predict(np.full((1, 3), np.nan))
    for call in (lambda m: m.loo_score_, lambda m: m.set_params(n_neighbors="loo").fit(X[:1], y[:1])):
        with pytest.raises(mc.InvalidInput, match="at least two rows"):
            call(KernelNeighborsRegressor(mc.Linear(), n_neighbors=1).fit(X[:1], y[:1]))


def test_one_class_and_one_row():
    model = KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors=1).fit([[0.0]], ["only"])
    assert model.predict([[5.0]]).tolist() == ["only"]
    assert model.predict_proba([[5.0]]).tolist() == [[1.0]]


def test_pickles_grids_and_iris():
    X, labels = load_iris(return_X_y=True)
    model = KernelNeighborsClassifier(mc.Gaussian(1.0), n_neighbors="loo").fit(X, labels)
    assert model.loo_score_ > 0.96
    assert model.loo_score_ == pytest.approx(1 - model.loo_errors_.min())
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    grid = GridSearchCV(
        KernelNeighborsClassifier(mc.Gaussian(1.0)), {"n_neighbors": [1, 5], "kernel__sigma": [1.0, 2.0]}
    )
    assert grid.fit(X, labels).best_score_ > 0.9


def test_what_messages_advise():
    X, y, labels, _ = data(20)
    for model in (KernelNeighborsClassifier, KernelNeighborsRegressor):
        with pytest.raises(mc.InvalidInput, match="smoothing weight Tricube"):
            model(mc.Tricube(1.0)).fit(X, labels)
    with pytest.raises(mc.InvalidInput, match="Use KernelNeighborsRegressor"):
        KernelNeighborsClassifier().fit(X, y)
