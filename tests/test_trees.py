"""Kernels on trees against naive recursions over pairs of nodes."""

from __future__ import annotations

import ast
import itertools
import json
import math
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import mercer as mc
from everywhere import works_everywhere
from mercer._loops import costs
from mercer.data.trees import Forest, Tree
from mercer.testing import sample


def nodes(tree):
    """All nodes of nested tuples."""
    return [tree, *(n for child in tree[1:] for n in nodes(child))]


def production(n):
    return (n[0], *(child[0] for child in n[1:]))


def naive_subset(x, z, decay):
    def common(n, m):
        if production(n) != production(m) or (len(n) == 1 and (n is not x or m is not z)):
            return 0.0
        return decay * math.prod(1 + common(a, b) for a, b in zip(n[1:], m[1:]))

    return sum(common(n, m) for n in nodes(x) for m in nodes(z))


def naive_partial(x, z, decay, gap):
    def common(n, m):
        if n[0] != m[0]:
            return 0.0
        total = gap**2
        for p in range(1, min(len(n), len(m))):
            for A in itertools.combinations(range(1, len(n)), p):
                for B in itertools.combinations(range(1, len(m)), p):
                    span = A[-1] - A[0] + 1 + B[-1] - B[0] + 1
                    total += gap**span * math.prod(common(n[i], m[j]) for i, j in zip(A, B))
        return decay * total

    return sum(common(n, m) for n in nodes(x) for m in nodes(z))


def naive_subtree(x, z):
    return float(sum(n == m for n in nodes(x) for m in nodes(z)))


CASES = {
    mc.Subtree(): naive_subtree,
    mc.SubsetTree(0.4): lambda x, z: naive_subset(x, z, 0.4),
    mc.SubsetTree(1.0): lambda x, z: naive_subset(x, z, 1.0),
    mc.PartialTree(0.4, 0.7): lambda x, z: naive_partial(x, z, 0.4, 0.7),
    mc.PartialTree(1.0, 1.0): lambda x, z: naive_partial(x, z, 1.0, 1.0),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kernel", CASES, ids=repr)
def test_values_are_those_of_a_naive_recursion(kernel, compiled, monkeypatch):
    monkeypatch.setattr(costs, "INTERPRETED_NODES", 0 if compiled else 10**9)
    X = sample(kernel, 12, seed=4)
    expected = np.array([[CASES[kernel](x, z) for z in X] for x in X])
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(expected), rtol=1e-12)
    np.testing.assert_allclose(kernel(X[5:7], X), expected[5:7], rtol=1e-12)
    if kernel != mc.Subtree():  # logarithms all the way
        pair = kernel.pair(X)
        out = np.empty(pair.shape)
        kernel._values(pair, slice(0, 12), slice(0, 12), True, out)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(out, np.log(expected), rtol=1e-12, atol=1e-12)


def test_all_forms_of_a_tree_are_one():
    text = "(S (NP (D the) (N dog)) (VP barks))"
    nested = ("S", ("NP", ("D", "the"), ("N", "dog")), ("VP", "barks"))
    assert Tree.of(text) == Tree.of(nested) == Tree.of(Tree.of(text))
    assert str(Tree.of(nested)) == text
    assert Tree.of(ast.parse("f(x) + 1")) == Tree.of(ast.parse("f( x )+1"))
    assert str(Tree.of(ast.parse("x", mode="eval"))) == "(Expression (Name x Load))"
    element = ElementTree.fromstring('<a k="1">text<b/>more<c> </c></a>')
    assert str(Tree.of(element)) == "(a (@k 1) text b more c)"
    assert Tree.of(json.loads('{"b": [1, null], "a": "x"}')) == Tree.of({"a": "x", "b": [1, None]})
    assert str(Tree.of({"b": [1, None], "a": "x"})) == "({} (a x) (b ([] 1 None)))"


def test_deep_trees_do_not_recurse():
    deep = "leaf"
    for _ in range(20_000):
        deep = ("a", deep)
    tree = Tree.of(deep)
    assert len(tree) == 20_001
    assert mc.Subtree()([tree])[0, 0] == 20_001
    assert Tree.of("(a " * 20_000 + ")" * 20_000).arities[0] == 0


@pytest.mark.thorough
def test_large_values_do_not_overflow():
    comb = ("r", *[("a", "b")] * 1050)
    X = [comb, comb[:-1], (*comb[:600], ("a", "c"), *comb[601:])]
    k = mc.SubsetTree(1.0)
    with pytest.raises(mc.InvalidInput, match=r"overflow|finite|fit"):
        k(X)
    K = k.normalize()(X)
    np.testing.assert_allclose(np.diagonal(K), 1.0)
    # 2^1049 of 2^1050 fragments with the root are left
    assert K[0, 2] == pytest.approx(0.5, rel=1e-6)
    assert K[0, 1] == pytest.approx(0.0, abs=1e-9)
    P = mc.PartialTree(1.0, 1.0).normalize()([("r", *["a"] * 560), ("r", *["a"] * 559)])
    assert 0.9 < P[0, 1] < 1.0


def test_small_values_do_not_underflow():
    X = ["(a b c)", "(a c)", "(d e)"]
    for tiny in (mc.PartialTree(1e-110, 1e-110), mc.PartialTree(0.5, 1e-160), mc.SubsetTree(1e-310)):
        K = tiny.normalize()(X)
        np.testing.assert_allclose(np.diagonal(K), 1.0)
        assert (K[2, :2] == 0).all()
    # nodes alone are the only parts that count: a, b, c and a, c
    assert mc.PartialTree(1e-110, 1e-110).normalize()(X)[0, 1] == pytest.approx(2 / np.sqrt(6))
    assert "leaves" in str(mc.PartialTree().proof())


def test_the_features_of_partial_trees_are_as_stated():
    """phi_t = √λ^nodes μ^(leaves + spans), summed over the places of t."""
    decay, gap = 0.6, 0.7

    def parts(n):
        """Parts with the root n, and the power of the gap of each."""
        found = [((n[0],), gap)]
        for p in range(1, len(n)):
            for chosen in itertools.combinations(range(1, len(n)), p):
                span = chosen[-1] - chosen[0] + 1
                found += [
                    ((n[0], *(t for t, _ in below)), gap**span * math.prod(w for _, w in below))
                    for below in itertools.product(*(parts(n[i]) for i in chosen))
                ]
        return found

    def features(x):
        phi = {}
        for n in nodes(x):
            for t, weight in parts(n):
                phi[t] = phi.get(t, 0.0) + np.sqrt(decay) ** len(nodes(t)) * weight
        return phi

    X = sample(mc.PartialTree(), 5, seed=2)
    phi = [features(x) for x in X]
    inner = [[sum(value * b.get(t, 0.0) for t, value in a.items()) for b in phi] for a in phi]
    np.testing.assert_allclose(mc.PartialTree(decay, gap)(X), inner, rtol=1e-12)


def test_gradients_by_decay():
    X = sample(mc.SubsetTree(), 6, seed=1)
    G = np.random.default_rng(0).normal(size=(6, 6))
    for make in (mc.SubsetTree, lambda d: mc.PartialTree(d, 0.6), lambda d: mc.SubsetTree(d).normalize()):
        slope = ((make(0.5 * np.exp(1e-5))(X) - make(0.5 * np.exp(-1e-5))(X)) * G).sum() / 2e-5
        assert make(0.5).gradient(X, G)[0] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (["(a b)", "(a (b)"], r"'\(a \(b\)' at position 1"),
        (["(a b) c"], "at position 0"),
        (["(a b))"], "at position 0"),
        (["dog"], "at position 0"),
        ([("a", ())], "at position 0"),
        ([("a",), 3.5], "float at position 1"),
        ([("a", float("nan"))], "NaN at position 0"),
        ([("a", {1, 2})], "set at position 0"),
    ],
)
def test_bad_trees_are_named(bad, words):
    for kernel in (mc.Subtree(), mc.SubsetTree(0.5)):
        with pytest.raises(mc.InvalidInput, match=words):
            kernel(bad)


def test_rows_of_a_forest():
    X = sample(mc.Subtree(), 9)
    some, direct = Forest.of(X).encoded_rows([4, 1]), Forest.of([X[4], X[1]])
    for name, values in vars(direct).items():
        np.testing.assert_array_equal(getattr(some, name), values)


def programs():
    loops = ["for i in x:\n    f(i)", "while x:\n    f(x)", "for k in y:\n    g(k)\n    h(k)", "while g(y): pass"]
    sums = ["a = b + 1", "a = (b + c) * 2", "c = a - 3 * b", "b = a + b + c"]
    return [ast.parse(text) for text in (loops + sums) * 2], (["loop"] * 4 + ["sum"] * 4) * 2


@pytest.mark.thorough
def test_models(tmp_path):
    X, labels = programs()

    def change(X):
        X[0].body = []

    for kernel in (mc.PartialTree(0.5, 0.5).normalize(), mc.Subtree().normalize()):
        works_everywhere(kernel, X, labels, tmp_path, change)
    documents = [{"kind": {"name": label}, "n": i} for i, label in enumerate(labels)]
    works_everywhere(mc.SubsetTree(0.5).normalize(), documents, labels, tmp_path, lambda X: X[0]["kind"].clear())
    frame = pd.DataFrame({"code": [Tree.of(x) for x in X]})
    np.testing.assert_array_equal(mc.Subtree().on("code")(frame), mc.Subtree()(X))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [Tree.of, lambda x: x, lambda x: ElementTree.fromstring(f"<a>{xml(x)}</a>")])
def test_models_choose_a_kernel_for_trees(kind):
    X, labels = programs()
    X = [kind(x) for x in X]
    model = mc.SVC().fit(X, labels)
    assert model.kernel_ == mc.PartialTree(0.5, 0.5).normalize()
    assert model.score(X, labels) == 1.0
    assert mc.AutoClassifier().fit(X, labels).score(X, labels) == 1.0


def xml(node):
    """A syntax tree as nested elements."""
    name = type(node).__name__
    return f"<{name}>{''.join(map(xml, ast.iter_child_nodes(node)))}</{name}>"


def test_features_of_trees():
    X = ["(S (NP dogs) bark)", "(S (NP dogs) (VP bark))"]
    phi = mc.Subtree().features(X)
    np.testing.assert_array_equal(phi(X) @ phi(X).T, mc.Subtree()(X))
    column = list(phi.names).index("(NP dogs)")
    assert phi(["(Q (NP dogs) (NP dogs))"])[0, column] == 2.0
    for kernel in (mc.SubsetTree(0.5), mc.PartialTree(0.5, 0.5)):
        with pytest.raises(mc.InvalidInput, match="grow exponentially"):
            kernel.features(X)
