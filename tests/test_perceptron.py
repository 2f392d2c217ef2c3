"""Perceptrons are what lecture 002 says, however the stream is cut; budgets hold; and no one makes more mistakes than
the theorem allows."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import mercer as mc
from mercer.models.perceptron import perceptron as module
from mercer.solvers import costs
from mercer.solvers import perceptron as solver
from mercer.solvers.perceptron_budget import Forgetron, Projectron

rng = np.random.default_rng(0)
KERNELS = {
    "gaussian": mc.Gaussian(1.0),
    "polynomial": mc.Polynomial(2, c=1.0),
    "sum": mc.Linear() + 0.5 * mc.Laplacian(2.0),
}


def data(n=200, d=3, classes=2, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d))
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, -1]
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


# --- the definition, word by word ------------------------------------------------------------------------------------


class Naive:
    """The pseudo-code: a double loop over examples and support set. All functions on the way are kept."""

    def __init__(self, k, classes):
        self.k, self.classes = k, classes
        self.S, self.steps = [], []  # (x, y, guess); S after each example
        self.mistakes = 0

    def f(self, z, S=None):
        S = self.S if S is None else S
        f = np.zeros(1 if self.classes == 2 else self.classes)
        values = self.k(np.array([x for x, _, _ in S]), z[None])[:, 0] if S else []
        for value, (_, y, guess) in zip(values, S):
            if self.classes == 2:
                f[0] += value if y == 1 else -value
            else:
                f[y] += value
                f[guess] -= value
        return f

    def guess(self, z, S=None):
        f = self.f(z, S)
        return int(f[0] > 0) if self.classes == 2 else int(np.argmax(f))

    def learn(self, X, y):
        for x, label in zip(X, y):
            guess = self.guess(x)
            if guess != label:
                self.S.append((x, label, guess))
                self.mistakes += 1
            self.steps.append(len(self.S))
        return self


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 5)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.integers(2, 4),
    st.lists(st.integers(1, 25), min_size=1, max_size=8),
    st.integers(0, 10**6),
)
def test_any_cut_of_a_stream_gives_the_support_set_of_the_definition(name, classes, cuts, seed):
    X, y = data(sum(cuts), classes=2 if sum(cuts) < 4 else classes, seed=seed)
    naive = Naive(KERNELS[name], classes).learn(X, y)
    model = mc.KernelPerceptron(KERNELS[name])
    ends = np.cumsum(cuts)
    for start, stop in zip([0, *ends], ends):
        model.partial_fit(X[start:stop], y[start:stop], classes=range(classes))
    expected = [t for t, (a, b) in enumerate(itertools.pairwise([0, *naive.steps])) if b > a]
    assert model.support_.tolist() == expected
    assert model.mistakes_ == naive.mistakes == len(expected)
    assert model.t_ == len(X)
    np.testing.assert_allclose(
        model.decision_function(X[:5]).reshape(len(X[:5]), -1), [naive.f(x) for x in X[:5]], atol=1e-12
    )


def test_small_chunks_and_segments_inside_are_the_definition_too(monkeypatch):
    X, y = data(300, classes=3)
    whole = mc.KernelPerceptron(mc.Gaussian(1.0)).fit(X, y)
    monkeypatch.setattr(solver.OnlinePerceptron, "chunk", 17)
    monkeypatch.setattr(costs, "SEGMENT_VECTORS", 10)
    cut = mc.KernelPerceptron(mc.Gaussian(1.0)).fit(X, y)
    assert len(cut._learner.learnt.segments) > 5
    np.testing.assert_array_equal(whole.support_, cut.support_)
    np.testing.assert_array_equal(whole.dual_coef_, cut.dual_coef_)
    np.testing.assert_allclose(whole.decision_function(X), cut.decision_function(X), atol=1e-12)


def test_one_example_at_a_time_without_brackets():
    X, y = data(30)
    whole = mc.KernelPerceptron(mc.Gaussian(1.0)).fit(X, y)
    model = mc.KernelPerceptron(mc.Gaussian(1.0))
    for x, label in zip(X, y):
        model.partial_fit(x, label, classes=[0, 1])
    np.testing.assert_array_equal(model.support_, whole.support_)
    linear = mc.Perceptron().partial_fit(list(X[0]), "a", classes=["b", "a"]).partial_fit(X[1:2], "b")
    assert linear.t_ == 2
    sets = mc.KernelPerceptron(mc.Intersection()).partial_fit({1, 2}, "x", classes=["w", "x"])
    assert sets.predict([{1}, {3}]).tolist() == ["x", "w"]


def test_sgn_of_zero_is_the_first_class():
    # f = 0 on what is orthogonal to all that was seen: a right guess for the first class, a mistake for the second.
    model = mc.KernelPerceptron(mc.Linear()).partial_fit([[1.0, 0.0]], ["a"], classes=["a", "b"])
    assert model.mistakes_ == 0
    model.partial_fit([[1.0, 0.0]], ["b"])
    assert model.mistakes_ == 1
    assert model.decision_function([[0.0, 1.0]]) == 0
    assert model.predict([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]).tolist() == ["a", "b", "a"]
    model.partial_fit([[0.0, 1.0]], ["a"])
    assert model.mistakes_ == 1
    model.partial_fit([[0.0, 1.0]], ["b"])
    assert model.mistakes_ == 2
    # More classes: the first of the largest, when learning as in `predict`.
    three = mc.KernelPerceptron(mc.Linear()).partial_fit([[1.0, 0.0]], ["c"], classes=["a", "b", "c"])
    np.testing.assert_array_equal(three.dual_coef_, [[-1.0, 0.0, 1.0]])
    assert three.predict([[0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]]).tolist() == ["a", "a", "c"]
    primal = mc.Perceptron(fit_intercept=False).partial_fit([[1.0, 0.0]], ["a"], classes=["a", "b"])
    assert primal.mistakes_ == 0
    assert primal.predict([[0.0, 1.0]]).tolist() == ["a"]


def test_predictions_are_the_guesses_that_decide():
    X, y = data(150, classes=3)
    model = mc.KernelPerceptron(mc.Gaussian(1.0)).partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    wrong = model.mistakes_
    for t in range(1, len(X)):
        wrong += int(model.predict(X[t : t + 1])[0] != y[t])
        assert model.partial_fit(X[t : t + 1], y[t : t + 1]).mistakes_ == wrong


def test_points_in_float32_decide_as_in_float64():
    X, y = data(300, d=5)
    X = X.astype(np.float32)
    single, double = (mc.KernelPerceptron(mc.Gaussian(1.5)).fit(Z, y) for Z in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(single.support_, double.support_)
    assert single.decision_function(X).dtype == np.float64
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-12)
    first, second = (mc.Perceptron().fit(Z, y) for Z in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(first.coef_, second.coef_)


# --- passes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_passes_count_their_mistakes_in_the_coefficients(classes, shuffle, monkeypatch):
    X, y = data(60, classes=classes)
    model = mc.KernelPerceptron(mc.Gaussian(1.0), max_iter=4, shuffle=shuffle, random_state=3).fit(X, y)
    random = np.random.RandomState(3)
    order = np.concatenate([random.permutation(60) if shuffle else np.arange(60) for _ in range(4)])
    naive = Naive(mc.Gaussian(1.0), classes).learn(X[order], y[order])
    at = [order[t] for t, (a, b) in enumerate(itertools.pairwise([0, *naive.steps])) if b > a]
    assert model.mistakes_ == naive.mistakes > len(model.support_) == len(set(at))
    assert model.support_.tolist() == list(dict.fromkeys(at))
    if classes == 2:
        counts = [at.count(s) * (1 if y[s] else -1) for s in model.support_]
        np.testing.assert_array_equal(model.dual_coef_, counts)
    assert sum(model.mistakes_per_pass_) == model.mistakes_
    assert model.t_ == 240
    np.testing.assert_allclose(model.decision_function(X).reshape(60, -1), [naive.f(x) for x in X], atol=1e-11)
    # The same, where the kernel matrix is too large to be kept.
    monkeypatch.setattr(module, "MATRIX_ROWS", 0)
    monkeypatch.setattr(solver.OnlinePerceptron, "chunk", 13)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.support_, model.support_)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


def test_a_pass_without_mistakes_is_the_last():
    X, y = data(100)
    model = mc.KernelPerceptron(mc.Gaussian(0.5), max_iter=1000).fit(X, y)
    assert model.status_ == f"converged: no mistakes in pass {model.n_iter_}"
    assert model.mistakes_per_pass_[-1] == 0 < model.mistakes_per_pass_[-2]
    assert model.score(X, y) == 1.0
    assert model.n_iter_ < 1000
    once = mc.KernelPerceptron(mc.Gaussian(0.5)).fit(X, y)
    assert once.status_ == f"stopped after 1 pass, with {once.mistakes_} mistakes in the last"
    two = mc.Perceptron(max_iter=2).fit(X, y)
    assert two.status_ == f"stopped after 2 passes, with {two.mistakes_per_pass_[1]} mistakes in the last"


# --- averaged and voted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("passes", [1, 3])
def test_averages_and_votes_are_those_of_all_functions_on_the_way(classes, passes):
    X, y = data(40, classes=classes)
    k = mc.Gaussian(1.0)
    naive = Naive(k, classes).learn(np.tile(X, (passes, 1)), np.tile(y, passes))
    Z = rng.normal(size=(12, 3))
    by_size = {s: np.array([naive.f(z, naive.S[:s]) for z in Z]) for s in set(naive.steps)}
    mean = sum(by_size[s] for s in naive.steps) / len(naive.steps)
    averaged = mc.KernelPerceptron(k, variant="averaged", max_iter=passes).fit(X, y)
    np.testing.assert_allclose(averaged.decision_function(Z).reshape(len(Z), -1), mean, atol=1e-12)
    np.testing.assert_allclose(averaged.function_(Z).reshape(len(Z), -1), mean, atol=1e-12)
    if classes == 2:
        votes = sum(np.where(by_size[s] > 0, 1.0, -1.0) for s in naive.steps) / len(naive.steps)
    else:
        votes = sum(np.eye(classes)[by_size[s].argmax(axis=1)] for s in naive.steps) / len(naive.steps)
    voted = mc.KernelPerceptron(k, variant="voted", max_iter=passes).fit(X, y)
    np.testing.assert_allclose(voted.decision_function(Z).reshape(len(Z), -1), votes, atol=1e-12)
    assert voted.mistakes_ == averaged.mistakes_ == naive.mistakes
    assert not hasattr(voted, "function_")


@pytest.mark.parametrize("variant", ["averaged", "voted"])
def test_variants_do_not_depend_on_the_cut_of_the_stream(variant):
    X, y = data(120, classes=3)
    whole = mc.KernelPerceptron(mc.Gaussian(1.0), variant=variant).fit(X, y)
    cut = mc.KernelPerceptron(mc.Gaussian(1.0), variant=variant)
    for start, stop in itertools.pairwise([0, 1, 2, 50, 51, 120]):
        cut.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    np.testing.assert_allclose(cut.decision_function(X), whole.decision_function(X), atol=1e-12)


# --- the primal form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("variant", ["plain", "averaged"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_perceptron_is_the_kernel_perceptron_of_the_linear_kernel(classes, intercept, variant, sparse):
    X, y = data(150, d=6, classes=classes)
    X[rng.random(X.shape) < 0.3] = 0.0
    kernel = mc.Linear() + mc.Constant(1.0) if intercept else mc.Linear()
    given = sp.csr_array(X) if sparse else X
    primal = mc.Perceptron(fit_intercept=intercept, variant=variant, max_iter=3).fit(given, y)
    dual = mc.KernelPerceptron(kernel, variant=variant, max_iter=3).fit(given, y)
    assert primal.mistakes_per_pass_ == dual.mistakes_per_pass_
    np.testing.assert_array_equal(primal.support_, dual.support_)
    np.testing.assert_allclose(primal.decision_function(given), dual.decision_function(given), atol=1e-9)
    np.testing.assert_allclose(primal.function_(given), dual.function_(given), atol=1e-9)
    np.testing.assert_array_equal(primal.predict(given), dual.predict(given))
    assert primal.kernel_ == kernel
    if variant == "plain" and classes == 2:
        np.testing.assert_allclose(primal.coef_, dual.dual_coef_ @ X[dual.support_], atol=1e-9)
    streamed = mc.Perceptron(fit_intercept=intercept, variant=variant)
    for start, stop in itertools.pairwise([0, 1, 70, 150]):
        streamed.partial_fit(given[start:stop], y[start:stop], classes=range(classes))
    once = clone(primal).set_params(max_iter=1).fit(given, y)
    np.testing.assert_allclose(streamed.coef_, once.coef_, atol=1e-12)
    np.testing.assert_array_equal(streamed.support_, once.support_)


def test_the_perceptron_is_stochastic_gradient_descent():
    X, y = data(200, d=4)
    signs = np.where(y == 1, 1.0, -1.0)
    w = np.zeros(4)
    for x, s in zip(X, signs):
        # A subgradient of max(0, −s wᵀx) in w; at 0, where there are many, that of the guess sgn(0) = −1.
        gradient = -s * x if -s * (w @ x) > 0 or (w @ x == 0 and s == 1) else np.zeros(4)
        w -= 1.0 * gradient
    np.testing.assert_allclose(mc.Perceptron(fit_intercept=False).fit(X, y).coef_, w, atol=1e-12)


# --- the mistake bound -----------------------------------------------------------------------------------------------


def separators(k, X, y):
    signs = np.where(y == 1, 1.0, -1.0)
    yield mc.KernelRidge(k, alpha=1e-3).fit(X, signs).function_
    yield mc.KernelRidge(k, alpha=1e-6).fit(X, signs).function_
    margin = mc.SVC(k + mc.Constant(1.0), C=np.inf).fit(X, y)
    yield mc.Expansion(k, margin.support_vectors_, margin.dual_coef_)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(3))
def test_no_more_mistakes_than_the_bound(name, seed):
    k = KERNELS[name]
    X = np.random.default_rng(seed).normal(size=(80, 2))
    X = X[np.abs(X[:, 0] - X[:, 1]) > 0.3]
    y = (X[:, 0] > X[:, 1]).astype(int)
    once, often = (mc.KernelPerceptron(k, max_iter=m).fit(X, y) for m in (1, 500))
    assert often.status_.startswith("converged")
    found = 0
    for u in separators(k, X, y):
        try:
            bound = often.mistake_bound(u, X, y)
        except mc.InvalidInput:
            continue
        found += 1
        signs = np.where(y == 1, 1.0, -1.0)
        assert bound == pytest.approx(u.norm() ** 2 * k.diag(X).max() / (signs * u(X)).min() ** 2)
        assert once.mistakes_ <= often.mistakes_ <= bound
        # The examples that were mistakes are enough for the proof, and make the bound no larger.
        assert often.mistakes_ <= often.mistake_bound(u) <= bound * (1 + 1e-6)
        assert once.mistakes_ <= once.mistake_bound(u) <= bound * (1 + 1e-6)
    assert found >= 2


def test_the_bound_with_several_classes():
    X = rng.normal(size=(90, 2)) * 0.4 + np.repeat([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]], 30, axis=0)
    y = np.repeat([0, 1, 2], 30)
    order = rng.permutation(90)
    X, y = X[order], y[order]
    k = mc.Gaussian(1.0)
    u = mc.KernelRidge(k, alpha=1e-3).fit(X, np.eye(3)[y]).function_
    model = mc.KernelPerceptron(k, max_iter=100).fit(X, y)
    values = u(X)
    own = values[np.arange(90), y]
    values[np.arange(90), y] = -np.inf
    bound = model.mistake_bound(u, X, y)
    assert bound == pytest.approx(2 * (u.norm() ** 2).sum() / (own - values.max(axis=1)).min() ** 2)
    assert 3 <= model.mistakes_ <= model.mistake_bound(u) <= bound
    with pytest.raises(mc.InvalidInput, match="must be 3 functions for 3 classes"):
        model.mistake_bound(mc.Expansion(k, X[:1], [1.0]))


def test_what_the_bound_refuses():
    X, y = data(50)
    k = mc.Gaussian(1.0)
    model = mc.KernelPerceptron(k).fit(X, y)
    u = mc.Expansion(k, X, np.where(y == 1, 1.0, -1.0))
    bad = int(np.argmin(np.where(y == 1, 1, -1) * u(X)))
    with pytest.raises(mc.InvalidInput, match=rf"must separate.*in row {bad}\b"):
        model.mistake_bound(u, X, y)
    with pytest.raises(mc.InvalidInput, match="must be a function of this model's kernel"):
        model.mistake_bound(mc.Expansion(mc.Gaussian(2.0), X, np.ones(50)))
    with pytest.raises(mc.InvalidInput, match="with a tail"):
        model.mistake_bound(mc.KernelRidge(k, alpha=1e-9, fit_intercept=True).fit(X, 2.0 * y - 1).function_)
    with pytest.raises(mc.InvalidInput, match="must be an Expansion"):
        model.mistake_bound(np.ones(3))
    budgeted = mc.KernelPerceptron(k, max_support=5).fit(X, y)
    with pytest.raises(mc.InvalidInput, match="Pass both X and y"):
        budgeted.mistake_bound(u)
    linear = mc.Perceptron(fit_intercept=False, max_iter=200).fit(X, X[:, 0] > 0)
    w = mc.Expansion(mc.Linear(), [[1.0, 0.0, 0.0]], [1.0])
    bound = (X**2).sum(axis=1).max() / np.abs(X[:, 0]).min() ** 2
    assert linear.mistakes_ <= linear.mistake_bound(w, X, X[:, 0] > 0) == pytest.approx(bound)
    nothing = mc.KernelPerceptron(k).partial_fit(X[:3], [0, 0, 0], classes=[0, 1])
    assert nothing.mistake_bound(u) == nothing.mistakes_ == 0


# --- budgets ---------------------------------------------------------------------------------------------------------


def naive_projectron(k, X, y, budget, eta, classes):
    """Projectron++ by coefficients and an inverse of the Gram matrix: support, coefficients, mistakes."""
    S, mistakes, largest = [], 0, 0.0
    functions = 1 if classes == 2 else classes
    C = np.zeros((0, functions))
    K = k(X)
    for t, label in enumerate(y):
        kt = K[t, S]
        f = kt @ C
        largest = max(largest, K[t, t])
        unit = largest * (1 if classes == 2 else 2)
        guess = int(f[0] > 0) if classes == 2 else int(f.argmax())
        v = np.zeros(functions)  # the direction of an update
        if classes == 2:
            v[0] = 1.0 if label else -1.0
        else:
            rivals = f.copy()
            rivals[label] = -np.inf
            v[label], v[guess if guess != label else rivals.argmax()] = 1.0, -1.0
        margin = (f @ v) / unit
        d = np.linalg.solve(K[np.ix_(S, S)], kt) if S else np.zeros(0)
        inside = (kt @ d) * (v @ v) / unit
        off = np.sqrt(max(K[t, t] - kt @ d, 0.0) * (v @ v) / unit)
        if guess != label:
            mistakes += 1
            if off > eta and len(S) < budget:
                S.append(t)
                C = np.vstack([C, v])
            else:
                C = C + np.outer(d, v)
        elif margin < 1 and 1 - margin > off / eta and inside > 0:
            tau = min((1 - margin) / inside, 2 * (1 - margin - off / eta) / inside, 1.0)
            C = C + tau * np.outer(d, v)
    return S, C, mistakes


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("budget", "eta"), [(8, 0.1), (200, 0.6)])
def test_projectron_is_its_definition(name, classes, budget, eta, monkeypatch):
    X, y = data(150, classes=classes)
    k = KERNELS[name]
    S, C, mistakes = naive_projectron(k, X, y, budget, eta, classes)
    monkeypatch.setattr(Projectron, "chunk", 32)
    model = mc.KernelPerceptron(k, max_support=budget, eta=eta).fit(X, y)
    assert model.support_.tolist() == S
    assert model.mistakes_ == mistakes
    np.testing.assert_allclose(model.dual_coef_.reshape(len(S), -1), C, rtol=1e-6, atol=1e-6)
    assert (len(S) == budget) == (budget == 8)
    streamed = mc.KernelPerceptron(k, max_support=budget, eta=eta)
    for start, stop in itertools.pairwise([0, 1, 2, 9, 100, 150]):
        streamed.partial_fit(X[start:stop], y[start:stop], classes=range(classes))
    assert streamed.support_.tolist() == S
    np.testing.assert_allclose(streamed.decision_function(X), model.decision_function(X), atol=1e-7)


def test_projectron_that_never_projects_is_the_perceptron_with_margins():
    # A kernel without any similarity: every point is outside the span, nothing can be learnt from right guesses.
    k = mc.Delta()
    X, y = [str(i) for i in range(60)], np.arange(60) % 2
    model = mc.KernelPerceptron(k, max_support=100, eta=0.0).fit(X, y)
    plain = mc.KernelPerceptron(k).fit(X, y)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_)


def test_projectron_keeps_its_factor_where_points_repeat():
    X = np.repeat(rng.normal(size=(12, 2)), 20, axis=0)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    order = rng.permutation(len(X))
    model = mc.KernelPerceptron(mc.Gaussian(1.0), max_support=100, eta=0.0, max_iter=30).fit(X[order], y[order])
    assert len(model.support_) <= 12
    assert np.isfinite(model.dual_coef_).all()
    assert model.score(X, y) == 1.0


def test_an_averaged_projectron_is_the_mean_of_its_functions():
    X, y = data(60)
    k = mc.Gaussian(1.0)
    model = mc.KernelPerceptron(k, max_support=6, variant="averaged")
    last, total = mc.KernelPerceptron(k, max_support=6), 0.0
    for t in range(60):
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1])
        total = total + last.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1]).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), total / 60, atol=1e-9)


def naive_forgetron(k, X, y, budget, classes):
    """The self-tuned Forgetron; the shrink is found by bisection and not by a formula."""
    S, spent, mistakes, largest = [], 0.0, 0, 0.0
    functions = 1 if classes == 2 else classes
    C = np.zeros((0, functions))
    K = k(X)
    for t, label in enumerate(y):
        f = K[t, S] @ C
        guess = int(f[0] > 0) if classes == 2 else int(f.argmax())
        if guess == label:
            continue
        mistakes += 1
        largest = max(largest, K[t, t])
        v = np.zeros(functions)
        if classes == 2:
            v[0] = 1.0 if label else -1.0
        else:
            v[label], v[guess] = 1.0, -1.0
        S.append(t)
        C = np.vstack([C, v])
        if len(S) <= budget:
            continue
        sigma = np.abs(C[0]).max()
        mu = (K[S[0], S] @ C) @ np.sign(C[0]) / (largest * (1 if classes == 2 else 2))

        def cost(phi, sigma=sigma, mu=mu):
            return (phi * sigma) ** 2 + 2 * phi * sigma - 2 * phi * sigma * phi * mu

        room = 15 / 32 * mistakes - spent
        phi = 1.0
        if cost(1.0) > room:
            low, high = 0.0, 1.0
            for _ in range(200):
                mid = (low + high) / 2
                low, high = (mid, high) if cost(mid) <= room else (low, mid)
            phi = low
        spent += cost(phi)
        S, C = S[1:], phi * C[1:]
    return S, C, mistakes


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("budget", [1, 7, 20])
def test_forgetron_is_its_definition(name, classes, budget, monkeypatch):
    X, y = data(150, classes=classes)
    k = KERNELS[name]
    S, C, mistakes = naive_forgetron(k, X, y, budget, classes)
    if budget < 20:
        assert np.abs(C).max(axis=1).min() < 0.999  # it did shrink
    monkeypatch.setattr(Forgetron, "chunk", 32)
    model = mc.KernelPerceptron(k, max_support=budget, on_full="forgetron").fit(X, y)
    assert model.support_.tolist() == S
    assert model.mistakes_ == mistakes
    np.testing.assert_allclose(model.dual_coef_.reshape(len(S), -1), C, rtol=1e-9)
    streamed = mc.KernelPerceptron(k, max_support=budget, on_full="forgetron")
    for start, stop in itertools.pairwise([0, 1, 2, 9, 100, 150]):
        streamed.partial_fit(X[start:stop], y[start:stop], classes=range(classes))
    assert streamed.support_.tolist() == S


@pytest.mark.parametrize("on_full", ["projectron", "forgetron"])
def test_a_budget_that_is_not_spent_by_the_forgetron_is_the_perceptron(on_full):
    X, y = data(100)
    plain = mc.KernelPerceptron(mc.Gaussian(1.0)).fit(X, y)
    model = mc.KernelPerceptron(mc.Gaussian(1.0), max_support=100, on_full=on_full).fit(X, y)
    if on_full == "forgetron":
        np.testing.assert_array_equal(model.support_, plain.support_)
        np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert len(model.support_) <= 100


def held(model):
    """Bytes of all arrays that a model holds."""
    found, total, todo = set(), 0, [model._learner.__dict__]
    while todo:
        one = todo.pop()
        if id(one) in found or one is None:
            continue
        found.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes
        elif isinstance(one, dict):
            todo.extend(one.values())
        elif isinstance(one, (tuple, list)):
            todo.extend(one)
        elif hasattr(one, "raw"):
            todo.append(one.raw)
    return total


@pytest.mark.parametrize("on_full", ["projectron", "forgetron"])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_endless_stream_keeps_to_its_budget(on_full, classes):
    def stream():
        for seed in itertools.count():
            X, y = data(400, d=4, classes=classes, seed=seed)
            yield X, y

    model = mc.KernelPerceptron(mc.Gaussian(1.0), max_support=25, on_full=on_full)
    sizes = []
    for X, y in itertools.islice(stream(), 30):
        model.partial_fit(X, y, classes=range(classes))
        assert len(model.support_) <= 25
        sizes.append(held(model))
    assert len(set(sizes[5:])) == 1
    assert model.t_ == 12_000
    assert len(pickle.dumps(model)) < 40_000
    X, y = data(400, d=4, classes=classes, seed=0)
    assert model.score(X, y) > 1.2 / classes


def test_budgets_follow_a_scaled_kernel():
    X, y = data(200, classes=3)
    for on_full in ("projectron", "forgetron"):
        small, large = (
            mc.KernelPerceptron(c * mc.Gaussian(1.0), max_support=10, on_full=on_full).fit(X, y) for c in (1.0, 64.0)
        )
        np.testing.assert_array_equal(small.support_, large.support_)
        np.testing.assert_allclose(small.dual_coef_, large.dual_coef_, rtol=1e-9)


# --- functions, files, callbacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_support": 9}, {"max_support": 9, "on_full": "forgetron"}])
def test_the_function_is_what_is_predicted_and_goes_to_a_file(options):
    X, y = data(120, classes=3)
    names = np.array(["z", "a", "m"])[y]
    model = mc.KernelPerceptron(mc.Gaussian(1.0), **options).fit(X, names)
    np.testing.assert_allclose(model.function_(X), model.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    again = pickle.loads(pickle.dumps(model))
    again.partial_fit(X[:50], names[:50])
    model.partial_fit(X[:50], names[:50])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert model.t_ == 170
    assert (model.support_.max() >= 120) == ("max_support" not in options or "on_full" in options)


class Recorder:
    def __init__(self, stop_after=None):
        self.ends, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.root = context

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        self.ends.append((context.task_name, metadata))
        return self.stop_after is not None and len(self.ends) >= self.stop_after


def test_callbacks_are_told_of_every_chunk_and_may_stop(monkeypatch):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from release 1.9 on")
    X, y = data(100)
    monkeypatch.setattr(solver.OnlinePerceptron, "chunk", 30)
    told = Recorder()
    model = mc.KernelPerceptron(mc.Gaussian(1.0)).set_callbacks(told).fit(X, y)
    assert told.root.max_subtasks == 4
    assert [name for name, _ in told.ends] == ["chunk"] * 4 + ["fit"]
    assert [m["seen"] for name, m in told.ends if name == "chunk"] == [30, 60, 90, 100]
    assert told.ends[3][1]["mistakes"] == model.mistakes_
    stopped = mc.KernelPerceptron(mc.Gaussian(1.0)).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert (stopped.t_, stopped.status_) == (60, "stopped by the caller")
    np.testing.assert_array_equal(stopped.support_, model.support_[model.support_ < 60])


@pytest.mark.parametrize("options", [{}, {"max_support": 9}, {"max_support": 9, "on_full": "forgetron"}])
def test_an_interrupt_keeps_what_was_learnt(options, monkeypatch):
    X, y = data(100)
    model = mc.KernelPerceptron(mc.Gaussian(1.0), **options)
    first = clone(model).fit(X[:60], y[:60])
    kind = type(first._learner)
    learn, calls = kind.learn, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return learn(self, *args)

    monkeypatch.setattr(kind, "chunk", 30)
    monkeypatch.setattr(kind, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert (model.status_, model.t_, model.mistakes_) == ("interrupted", 60, first.mistakes_)
    np.testing.assert_allclose(model.decision_function(X), first.decision_function(X), atol=1e-9)


# --- input -----------------------------------------------------------------------------------------------------------


def models():
    return [
        mc.KernelPerceptron(mc.Gaussian(1.0)),
        mc.Perceptron(),
        mc.KernelPerceptron(mc.Gaussian(1.0), max_support=5),
    ]


@pytest.mark.parametrize("model", models(), ids=repr)
def test_streams_are_checked(model):
    X, y = data(20)
    with pytest.raises(NotFittedError):
        model.decision_function(X)
    with pytest.raises(mc.InvalidInput, match="must be passed at the first call"):
        clone(model).partial_fit(X, y)
    for bad in ([1], [0, 0], 3):
        with pytest.raises(mc.InvalidInput, match="`classes` must be"):
            clone(model).partial_fit(X, y, classes=bad)
    model = clone(model).partial_fit(X[:5], np.zeros(5, dtype=int), classes=[0, 1, 2])  # classes that are absent
    before = model.decision_function(X)
    with pytest.raises(mc.InvalidInput, match=r"among the classes.*7 in row 2"):
        model.partial_fit(X[:3], [0, 1, 7])
    with pytest.raises(mc.InvalidInput, match="be the same as in the first call"):
        model.partial_fit(X[:3], [0, 1, 2], classes=[0, 1])
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(X[:3, :2], [0, 1, 2])
    with pytest.raises(mc.InvalidInput, match="NaN"):
        model.partial_fit(np.full((2, 3), np.nan), [0, 1])
    with pytest.raises(mc.InvalidInput, match="2 labels for 3 points"):
        model.partial_fit(X[:3], [0, 1])
    assert model.t_ == 5
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :2])
    model.partial_fit(X, y, classes=[2, 1, 0])
    assert model.t_ == 25
    assert model.fit(X, y).t_ == 20  # begins anew
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("model", models(), ids=repr)
def test_data_is_checked(model):
    X, y = data(20)
    with pytest.raises(mc.InvalidInput, match="at least two classes"):
        model.fit(X, np.ones(20))
    with pytest.raises(mc.InvalidInput, match="at least two classes"):
        model.fit(X[:1], y[:1])
    with pytest.raises(mc.InvalidInput, match="NaN"):
        model.fit(X, np.r_[np.nan, y[1:]])
    with pytest.raises(mc.InvalidInput, match="KernelRidge"):
        model.fit(X, X[:, 0])
    with pytest.raises(mc.InvalidInput, match="without NaN or infinity"):
        model.fit(np.where(X > 1, np.inf, X), y)
    assert not hasattr(model, "classes_")
    for labels in (y == 1, np.array(["no", "yes"])[y], np.array([9, -3])[y], y.astype(object)):
        found = clone(model).fit(X, labels)
        assert set(found.predict(X)) <= set(labels.tolist())
        assert found.predict(X).dtype == np.asarray(labels.tolist()).dtype
    constant = np.column_stack([X, np.full(20, 5.0)])
    assert np.isfinite(clone(model).fit(constant, y).decision_function(constant)).all()


def test_numbers_that_overflow_are_refused():
    X, y = data(20)
    for model in (
        mc.Perceptron(),
        mc.KernelPerceptron(mc.Polynomial(2)),
        mc.KernelPerceptron(mc.Linear(), max_support=5),
    ):
        with pytest.raises(mc.InvalidInput, match="must fit float64"):
            model.fit(1e200 * X, y)
        with pytest.raises(mc.InvalidInput, match="must fit float64"):
            model.partial_fit(1e200 * X, y, classes=[0, 1])
        assert not hasattr(model, "classes_")  # as if nothing had been
    plain, model = (mc.Perceptron(fit_intercept=False).fit(c * X, y) for c in (1.0, 2.0**500))
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    with pytest.raises(mc.InvalidInput, match="Values of f must fit float64"):
        model.predict(1e250 * X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": 0}, "`max_iter` must be a whole number ≥ 1"),
        ({"variant": "median"}, "`variant` must be one of 'plain', 'averaged', 'voted'"),
        ({"max_support": 2.5}, "`max_support` must be a whole number"),
        ({"max_support": 5, "on_full": "random"}, "`on_full` must be 'projectron' or 'forgetron'"),
        ({"max_support": 5, "eta": -1.0}, "`eta` must be a number ≥ 0"),
        ({"eta": "a"}, "`eta` must be a number ≥ 0"),
        ({"random_state": "a"}, "`random_state` must be a whole number"),
        ({"random_state": -1, "shuffle": True}, "`random_state` must be a whole number"),
        ({"max_support": 5, "variant": "voted"}, "must keep all support vectors"),
        ({"max_support": 5, "variant": "averaged", "on_full": "forgetron"}, "must keep all support vectors"),
        ({"kernel": "rbf"}, "mc.Gaussian"),
    ],
)
def test_parameters_are_checked(options, message):
    X, y = data(20)
    with pytest.raises(mc.InvalidInput, match=message):
        mc.KernelPerceptron(**options).fit(X, y)


def test_precomputed_matrices_and_other_objects():
    X, y = data(80, classes=3)
    k = mc.Gaussian(1.0)
    K = k(X)
    for options in ({}, {"max_iter": 3}, {"variant": "voted"}, {"max_support": 9},
                    {"max_support": 9, "on_full": "forgetron"}):  # fmt: skip
        direct = mc.KernelPerceptron(k, **options).fit(X, y)
        given = mc.KernelPerceptron(mc.Precomputed(), **options).fit(K, y)
        indexed = mc.KernelPerceptron(mc.Precomputed(K), **options).fit(np.arange(80), y)
        for other, queries in ((given, K[:7]), (indexed, np.arange(7))):
            np.testing.assert_array_equal(other.support_, direct.support_)
            np.testing.assert_allclose(other.decision_function(queries), direct.decision_function(X[:7]), atol=1e-9)
    with pytest.raises(mc.InvalidInput, match="bare Precomputed"):
        mc.KernelPerceptron(mc.Precomputed()).partial_fit(K, y, classes=[0, 1, 2])
    scores = cross_val_score(mc.KernelPerceptron(mc.Precomputed(), max_iter=5), K, y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(mc.KernelPerceptron(k, max_iter=5), X, y, cv=3))
    sets = [{1, 2}, {2, 3}, {7, 8}, {8, 9}] * 3
    model = mc.KernelPerceptron(mc.Intersection(), max_iter=9).fit(sets, ["low", "low", "high", "high"] * 3)
    assert model.predict([{2}, {9}]).tolist() == ["low", "high"]
    assert all(isinstance(s, (set, frozenset)) for s in model.support_vectors_)


def test_frames_and_nothing_learnt():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = data(60)
    plain = mc.KernelPerceptron(mc.Gaussian(1.0)).fit(X, y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        for options in ({}, {"max_support": 6}, {"max_support": 6, "on_full": "forgetron"}):
            model = mc.KernelPerceptron(mc.Gaussian(1.0), **options)
            for part in (frame[:20], frame[20:]):
                model.partial_fit(part, y[: len(part)] if model.__dict__.get("t_") is None else y[20:], classes=[0, 1])
            assert options or model.support_.tolist() == plain.support_.tolist()
            assert model.feature_names_in_.tolist() == list("abc")
    nothing = mc.KernelPerceptron(mc.Gaussian(1.0)).partial_fit(X[:4], [0] * 4, classes=[0, 1])
    assert len(nothing.support_vectors_) == len(nothing.support_) == 0
    np.testing.assert_array_equal(nothing.function_(X), np.zeros(60))
    np.testing.assert_array_equal(nothing.decision_function(X), np.zeros(60))
    votes = mc.KernelPerceptron(mc.Gaussian(1.0), variant="voted").partial_fit(X[:4], [0] * 4, classes=[0, 1])
    np.testing.assert_array_equal(votes.decision_function(X), -np.ones(60))
