"""Kernels on strings and token lists: against double loops, by identities, in models, and on bad input."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer as mc
from mercer._loops import costs, counts
from mercer._loops import strings as string_loops
from mercer.kernels.strings.degree import shift_filter
from mercer.testing import check_laws

DNA = ["GATTACA", "ATTAC", "", "G", "GATTAGATTA", "CCGTA", "TTTTTT", "AGCNA"]
TOKENS = [["a", "b", 1], ["b", 1, "a", 1], [], [("x", 2), None], ["a", "b"]]
LEAVES = [
    mc.Spectrum(2),
    mc.Spectrum((1, 3), weights=(1.0, 0.5, 2.0)),
    mc.NGrams((1, 2), unit="words"),
    mc.GappedKmers(4, 2),
    mc.Mismatch(3, 1),
    mc.WeightedDegree(3),
    mc.WeightedDegree(2, shift=3),
    mc.Subsequence(3, 0.7),
    mc.LocalAlignment(0.2),
    mc.LocalAlignment(0.3, scores=(2.0, -1.0), opening=1.5),
    mc.TfIdf(mc.Spectrum(2), normalise=False)(DNA),
]


def matrix(k, X, Z):
    return np.array([[k(x, z) for z in Z] for x in X], dtype=float)


def runs(s, n):
    return [tuple(s[i : i + n]) for i in range(len(s) - n + 1)]


def differing(u, v):
    return sum(a != b for a, b in zip(u, v))


@pytest.mark.parametrize("X", [DNA, TOKENS], ids=["text", "tokens"])
@pytest.mark.parametrize("k", [1, 2, (1, 3)])
def test_spectrum_counts_common_runs(X, k):
    lengths = range(k[0], k[1] + 1) if isinstance(k, tuple) else [k]

    def naive(s, t):
        counts = [Counter(r for n in lengths for r in runs(x, n)) for x in (s, t)]
        return sum(c * counts[1][g] for g, c in counts[0].items())

    np.testing.assert_array_equal(mc.Spectrum(k)(X), matrix(naive, X, X))
    np.testing.assert_array_equal(mc.Spectrum(k)(X[:2], X), matrix(naive, X[:2], X))


def test_weights_by_length_are_a_weighted_sum():
    w = (0.3, 0.0, 2.0)
    expected = sum(a * mc.Spectrum(n)(DNA) for n, a in zip((1, 2, 3), w))
    np.testing.assert_allclose(mc.Spectrum((1, 3), weights=w)(DNA), expected, rtol=1e-14, atol=1e-12)
    value = mc.Spectrum((1, 2), weights=(0.5, 0.25)).enclose("AB", "AB")
    assert value.lower == value.upper == 2 * 0.5 + 0.25


def test_a_string_is_the_list_of_its_characters():
    k = mc.Spectrum(2)
    np.testing.assert_array_equal(k(DNA, [list(s) for s in DNA]), k(DNA))
    assert k(["aé\U0001f600\ud800"], [["a", "é", "\U0001f600", "\ud800"]])[0, 0] == 3


def test_gapped_kmers_are_a_sum_over_pairs_of_windows():
    g, k = 4, 2

    def naive(s, t):
        return sum(math.comb(g - differing(u, v), k) for u in runs(s, g) for v in runs(t, g))

    np.testing.assert_array_equal(mc.GappedKmers(g, k)(DNA), matrix(naive, DNA, DNA))
    np.testing.assert_array_equal(mc.GappedKmers(3, 3)(DNA), mc.Spectrum(3)(DNA))


def test_mismatch_counts_words_near_to_both():
    words = list(itertools.product("ACGT", repeat=3))

    def naive(s, t, m):
        near = [[sum(differing(u, w) <= m for u in runs(x, 3)) for w in words] for x in (s, t)]
        return float(np.dot(*near))

    for m in (0, 1, 2):
        expected = matrix(lambda s, t, m=m: naive(s, t, m), DNA, DNA)
        np.testing.assert_array_equal(mc.Mismatch(3, m)(DNA), expected)
    assert mc.Mismatch(3, 0)(DNA[:2]).tolist() == mc.Spectrum(3)(DNA[:2]).tolist()


@pytest.mark.parametrize("shift", [0, 1, 4])
def test_weighted_degree_is_its_definition(shift):
    d = 3

    def naive(s, t):
        total = 0.0
        for n in range(1, d + 1):
            for i, j in itertools.product(range(len(s) - n + 1), range(len(t) - n + 1)):
                if abs(i - j) <= shift and s[i : i + n] == t[j : j + n]:
                    p = 1.0 if i == j else 0.5 / (abs(i - j) + 1)
                    total += 2 * (d - n + 1) / (d * (d + 1)) * p
        return total

    np.testing.assert_allclose(mc.WeightedDegree(d, shift=shift)(DNA), matrix(naive, DNA, DNA), rtol=1e-12, atol=1e-12)


def test_weights_of_shifts_are_positive_definite():
    for shift in (1, 2, 7, 40):
        q = np.array(shift_filter(shift))
        p = np.correlate(q, q, "full")[shift:]
        np.testing.assert_allclose(p, [1.0, *(0.5 / (n + 1) for n in range(1, shift + 1))], atol=1e-13)
        spectrum = 1 + 2 * np.cos(np.outer(np.linspace(0, np.pi, 999), np.arange(1, shift + 1))) @ p[1:]
        assert spectrum.min() >= 0.5 - 1e-12


def spans(s, p):
    """Every subsequence of p symbols, with its span."""
    return [(tuple(s[i] for i in at), at[-1] - at[0] + 1) for at in itertools.combinations(range(len(s)), p)]


@pytest.mark.parametrize("few", [costs.INTERPRETED_CELLS, 0], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_subsequences(p, few, monkeypatch):
    monkeypatch.setattr(costs, "INTERPRETED_CELLS", few)

    def naive(s, t):
        return sum(0.6 ** (a + b) for (u, a), (v, b) in itertools.product(spans(s, p), spans(t, p)) if u == v)

    k = mc.Subsequence(p, 0.6)
    np.testing.assert_allclose(k(DNA), matrix(naive, DNA, DNA), rtol=1e-12)
    np.testing.assert_allclose(k.diag(DNA), np.diagonal(k(DNA)), rtol=1e-13)
    check_laws(k, DNA, DNA[3:])


def test_subsequences_that_underflow_are_refused():
    many = ["a" * 200, "b" + "a" * 199]
    np.testing.assert_allclose(mc.Subsequence(150, 0.1).normalize()(many[:1] * 2), 1.0, rtol=1e-12)
    for kernel in (mc.Subsequence(162, 0.1), mc.Subsequence(162, 0.1).normalize()):
        for compute in (kernel, kernel.diag):
            with pytest.raises(mc.InvalidInput, match="larger decay"):
                compute(many)


def alignments_of(s, t, i=0, j=0):
    """All non-empty local alignments as lists of matched places, by brute force."""
    for a, b in itertools.product(range(i, len(s)), range(j, len(t))):
        yield [(a, b)]
        for rest in alignments_of(s, t, a + 1, b + 1):
            yield [(a, b), *rest]


def score_of(s, t, places, match, mismatch, opening, extension):
    total = sum(match if s[a] == t[b] else mismatch for a, b in places)
    for (a, b), (c, d) in itertools.pairwise(places):
        total -= sum(opening + extension * (gap - 1) for gap in (c - a - 1, d - b - 1) if gap)
    return total


@pytest.mark.parametrize("few", [costs.INTERPRETED_CELLS, 0], ids=["interpreted", "compiled"])
def test_local_alignments_by_brute_force(few, monkeypatch):
    monkeypatch.setattr(costs, "INTERPRETED_CELLS", few)
    X, scores, opening, extension = ["GATA", "GTA", "", "AAG", "T"], (2.0, -1.0), 1.5, 0.5

    def each(s, t):
        return [score_of(s, t, places, *scores, opening, extension) for places in alignments_of(s, t)]

    k = mc.LocalAlignment(0.3, opening, extension, scores)
    naive = matrix(lambda s, t: 1 + sum(math.exp(0.3 * v) for v in each(s, t)), X, X)
    np.testing.assert_allclose(k(X), naive, rtol=1e-12)
    best = matrix(lambda s, t: max([0.0, *each(s, t)]), X, X)
    np.testing.assert_allclose(mc.SmithWaterman(opening, extension, scores)(X), best, rtol=1e-12)


def test_local_alignments_do_not_overflow():
    rng = np.random.default_rng(0)
    long = ["".join(rng.choice(list("ARNDCW"), size=300)) for _ in range(3)]
    k = mc.LocalAlignment(1.0)
    K = k.normalize()(long)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(np.diagonal(K), 1.0)
    with pytest.raises(mc.InvalidInput, match="overflow"):
        k(long)
    # both recursions agree where the plain one does not overflow: a block of W in the middle raises the sum only
    pair = k.pair([long[0][:40], "W" * 80], [long[1][:40], "W" * 80])
    logs = np.empty(pair.shape)
    k.log_tile(pair.block(slice(0, 2), slice(0, 2)), logs)
    np.testing.assert_allclose(np.exp(logs[0, 0]), k([long[0][:40]], [long[1][:40]])[0, 0], rtol=1e-10)
    assert logs[1, 1] >= 80 * 11


def test_edits():
    from functools import cache

    def naive(s, t):
        @cache
        def d(i, j):
            if not i or not j:
                return i + j
            return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (s[i - 1] != t[j - 1]))

        return 1 - d(len(s), len(t)) / max(len(s), len(t), 1)

    np.testing.assert_allclose(mc.EditSimilarity()(DNA), matrix(naive, DNA, DNA), rtol=1e-13)


@pytest.mark.parametrize("kernel", LEAVES, ids=lambda k: type(k).__name__)
def test_laws(kernel):
    check_laws(kernel, DNA, DNA[3:])
    check_laws(kernel.normalize() ** 2 + 0.5, DNA[4:], DNA[:6])
    assert kernel.proof().valid


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", LEAVES[:-1], ids=lambda k: type(k).__name__)
def test_proven_kernels_are_not_refuted(kernel):
    assert not mc.refute(kernel, trials=20, alphabet="AC", length=3, seconds=20.0).refuted


@pytest.mark.thorough
def test_what_is_not_a_kernel_is_refuted():
    for similarity in (mc.EditSimilarity(), mc.SmithWaterman(scores=(1.0, -1.0))):
        assert mc.refute(similarity, seconds=20.0).refuted
        assert not similarity.proof().valid
    few = mc.refute(mc.SmithWaterman(), trials=3, seconds=60.0)  # of amino acids: "0" and "1" would score as one letter
    assert few.refuted
    assert set("".join(few.points)) <= set("ARNDCQEGHILKMFPSTWYV")
    worse = mc.LocalAlignment(0.5, opening=1.0, scores=(-1.0, 1.0))
    assert not worse.proof().valid
    assert "is not positive semidefinite" in str(worse.proof())
    assert mc.refute(worse, seconds=20.0).refuted

    k = mc.LocalAlignment(1.0, opening=1.0, scores=(2.0, -2.0))
    logarithm = mc.FromFunction(lambda s, t: float(np.log(k([s], [t])[0, 0])))
    assert mc.refute(logarithm, points=["", "0", "1", "01", "10", "00", "11", "010", "101"], seconds=20.0).refuted

    edits = mc.EditSimilarity()
    decaying = mc.FromFunction(lambda s, t: math.exp(-max(len(s), len(t)) * (1 - edits([s], [t])[0, 0]) / 4))
    assert mc.refute(decaying, space="strings", seconds=30.0).refuted


def test_scores_that_rounding_does_not_certify():
    """exp(β·S) is then so near to a matrix of ones that its smallest eigenvalue is lost in rounding."""
    proof = mc.LocalAlignment(1e-13).proof()
    assert not proof.valid
    assert "is not positive semidefinite" not in str(proof)
    assert "rounding" in str(proof)


def test_features_spell_what_they_count():
    assert sorted(mc.Spectrum((1, 2)).features(["GAT", "A"]).names) == ["A", "AT", "G", "GA", "T"]
    assert sorted(mc.Spectrum(2).features([["to", "be", 1]]).names) == ["be 1", "to be"]
    assert sorted(mc.GappedKmers(3, 2).features(["ACG"]).names) == [".CG", "A.G", "AC."]
    assert len(mc.Mismatch(2, 1).features(["AC"]).names) == 7
    assert "AC at 0" in list(mc.WeightedDegree(2).features(["ACG"]).names)
    for kernel in LEAVES[:7]:
        phi = kernel.features(DNA)
        np.testing.assert_allclose(phi(DNA) @ phi(DNA[:3]).T, kernel(DNA, DNA[:3]), rtol=1e-12, atol=1e-12)


def test_large_and_small_inputs_agree(monkeypatch):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), size=rng.integers(0, 60))) for _ in range(40)]
    kernels = (mc.Spectrum((2, 4)), mc.GappedKmers(5, 3))
    small = [k(X) for k in kernels]
    for loops in (string_loops, counts):
        monkeypatch.setattr(loops, "COMPILED_ENTRIES", 0)
    for k, K in zip(kernels, small):
        np.testing.assert_array_equal(k(X), K)


# -- TF-IDF ------------------------------------------------------------------------------------------------------------

TEXTS = ["the cat sat", "the dog sat down", "a cat and a dog", "down the hill", "hill and dale", "the the the"]


def test_tfidf_is_that_of_scikit_learn():
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"\w+").fit(TEXTS[:4])
    k = mc.TfIdf()(TEXTS[:4])
    expected = (vectorizer.transform(TEXTS) @ vectorizer.transform(TEXTS).T).toarray()
    np.testing.assert_allclose(k(TEXTS), expected, atol=1e-12)
    assert k.proof().valid
    assert "weights ≥ 0" in str(k.proof())


def test_tfidf_learns_from_training_rows_only():
    model = mc.KernelRidge(mc.TfIdf(), alpha=0.1).fit(TEXTS[:4], [0.0, 1.0, 0.0, 1.0])
    inner = model.kernel_.kernel
    assert isinstance(inner, mc.WeightedCounts)
    assert len(inner.keys) == len({w for text in TEXTS[:4] for w in text.split()})
    assert sorted(inner.features(TEXTS).names) == sorted({w for text in TEXTS[:4] for w in text.split()})


def test_weighted_counts_are_enclosed_exactly():
    key = mc.Spectrum(1).features(["a"]).keys[0]
    signed = int(np.uint64(key).astype(np.int64))
    for weight in (0.1, 1 / 3, 0.7):
        value = mc.WeightedCounts(mc.Spectrum(1), [signed], [weight]).enclose("aaa", "aaaaa")
        assert 15 * Fraction(weight) ** 2 in value
        assert value.width < Fraction(1, 2**150)
        roots = mc.WeightedCounts(mc.Spectrum((1, 2), weights=(0.1, 0.2)), [signed], [weight])
        assert Fraction(0.1) * 15 * Fraction(weight) ** 2 in roots.enclose("aaa", "aaaaa")


def test_weighted_counts_refuse():
    for kernel, keys, weights in ((mc.Linear(), [1], [1.0]), (mc.Spectrum(1), [1, 1], [1.0, 1.0])):
        with pytest.raises(mc.InvalidInput):
            mc.WeightedCounts(kernel, keys, weights)
    with pytest.raises(mc.InvalidInput, match="≥ 0"):
        mc.WeightedCounts(mc.Spectrum(1), [1], [-1.0])
    with pytest.raises(mc.InvalidInput, match="counted"):
        mc.TfIdf(mc.Linear())


# -- in models ---------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
X = ["".join(RNG.choice(list("ACGT"), size=12)) for _ in range(40)]
Y = np.array([s.count("A") + 0.5 * s.count("AC") for s in X])
LABELS = np.where(np.median(Y) < Y, "many", "few")


@pytest.mark.parametrize(
    "kernel",
    [mc.Spectrum((1, 2)).normalize(), mc.Subsequence(2, 0.5).normalize(), mc.LocalAlignment(0.2, scores=(1.0, -1.0))],
    ids=["Spectrum", "Subsequence", "LocalAlignment"],
)
def test_models(kernel, tmp_path):
    model = mc.KernelRidge(kernel, alpha=0.01).fit(X, Y)
    before = model.predict(X[:5])
    model.save(tmp_path / "model.mercer")
    assert mc.load(tmp_path / "model.mercer").predict(X[:5]).tolist() == before.tolist()
    assert mc.SVC(kernel).fit(X, LABELS).score(X, LABELS) > 0.8
    assert mc.GaussianProcessRegressor(kernel, alpha=0.1).fit(X, Y).predict(X[:2]).shape == (2,)
    assert mc.KernelPCA(n_components=2, kernel=kernel).fit_transform(X).shape == (40, 2)
    assert mc.KernelNeighborsClassifier(kernel, n_neighbors=3).fit(X, LABELS).score(X, LABELS) > 0.6


@pytest.mark.thorough
def test_scikit_learn_and_tuning():
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(mc.SVC(mc.TfIdf(mc.Spectrum(2))))
    assert cross_val_score(pipeline, X, LABELS, cv=3).shape == (3,)
    search = GridSearchCV(mc.SVC(mc.Spectrum(1)), {"kernel__k": [1, 2, 3]}, cv=3).fit(X, LABELS)
    assert search.best_params_["kernel__k"] in (1, 2, 3)
    tuned = mc.tune(mc.KernelRidge(mc.Subsequence(2, 0.5).normalize(), alpha=0.1), X, Y)
    assert tuned.kernel_.theta.shape == (1,)


@pytest.mark.parametrize(
    ("kernel", "name", "values"),
    [(mc.Spectrum(3), "k", [1, 2, 3]), (mc.Spectrum(3), "k", [(1, 2), 3]), (mc.Subsequence(2), "decay", [0.3, 0.8])],
    ids=["Spectrum", "ranges", "Subsequence"],
)
def test_fields_inside_normalize_are_tuned(kernel, name, values):
    grid = {f"kernel__kernel__{name}": values, "C": [1, 10]}
    tuned = mc.tune(mc.SVC(kernel.normalize()), X, LABELS, grid=grid, cv=3)
    assert getattr(tuned.kernel_.kernel, name) in values
    assert tuned.C in (1, 10)
    assert tuned.score(X, LABELS) > 0.8


def test_frames_and_missing_values():
    frame = pd.DataFrame({"dna": X, "n": Y})
    k = mc.Spectrum(2).on("dna")
    np.testing.assert_array_equal(k(frame), mc.Spectrum(2)(X))
    np.testing.assert_array_equal(k(pl.DataFrame({"dna": X, "n": Y})), mc.Spectrum(2)(X))
    lists = pl.DataFrame({"tokens": [["a", "b"], ["b"], []]})
    np.testing.assert_array_equal(mc.Spectrum(1).on("tokens")(lists), mc.Spectrum(1)([["a", "b"], ["b"], []]))
    gaps = ["AC", None, "CA"]
    with pytest.raises(mc.InvalidInput, match=r"missing value at position 1.*mc\.Missing"):
        mc.Spectrum(1)(gaps)
    np.testing.assert_array_equal(mc.Missing(mc.Spectrum(1))(gaps), [[2, 0, 2], [0, 1, 0], [2, 0, 2]])


def test_aligned_columns_of_tables():
    rng = np.random.default_rng(0)
    sites = ["".join(rng.choice(list("ACGT"), size=30)) for _ in range(60)]
    frame = pd.DataFrame({"site": sites, "peptide": [s[: 20 + i % 7] for i, s in enumerate(sites)]})
    plan = mc.TableKernel().explain(frame)
    assert [role.kernel for role in plan.roles] == ["WeightedDegree", "NGrams"]
    assert "all of 30 letters: aligned" in plan.roles[0].why
    assert plan.kernel.proof().valid
    frame.loc[3, "site"] = None
    assert np.isfinite(mc.TableKernel()(frame)(frame)).all()


def test_token_lists_in_models(tmp_path):
    tokens = [list(s) if i % 2 else [ord(c) for c in s] for i, s in enumerate(X)]
    model = mc.KernelRidge(mc.Spectrum(1), alpha=0.1).fit(tokens, Y)
    before = model.predict(tokens)
    model.save(tmp_path / "tokens.mercer")
    assert mc.load(tmp_path / "tokens.mercer").predict(tokens).tolist() == before.tolist()
    kept = [list(t) for t in tokens]
    for row in tokens:
        row.reverse()
        row.append("Z")
    assert model.predict(kept).tolist() == before.tolist()


def test_strings_without_features():
    for kernel in (*LEAVES[:8], mc.Spectrum(3)):
        K = kernel(["", "", "A"])
        assert K[0].tolist() == [0.0, 0.0, 0.0]
        assert kernel.normalize()(["", "ACGTAC"])[0].tolist() == [0.0, 0.0]
    assert mc.LocalAlignment()(["", ""]).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert mc.EditSimilarity()(["", ""]).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("kernel", [mc.Spectrum(2), mc.GappedKmers(3, 2), mc.Subsequence(2), mc.EditSimilarity()])
def test_bad_input(kernel):
    for bad, where in (([["a", {}]], "dict at position 0"), (["a", 3], "int at position 1"), (["a", b"c"], "bytes")):
        with pytest.raises(mc.InvalidInput, match=where):
            kernel(bad)
    with pytest.raises(mc.InvalidInput, match="set at position 0"):
        kernel([{"a", "b"}])
    with pytest.raises(mc.InvalidInput, match="a single str"):
        kernel("banana")


def test_parameters_are_checked():
    for make in (
        lambda: mc.Spectrum(0),
        lambda: mc.Spectrum((1, 2), weights=(1.0,)),
        lambda: mc.Spectrum(2, weights=(-1.0,)),
        lambda: mc.GappedKmers(3, 4),
        lambda: mc.Mismatch(2, 3),
        lambda: mc.Mismatch(2, 1, alphabet="AA"),
        lambda: mc.WeightedDegree(0),
        lambda: mc.WeightedDegree(2, shift=-1),
        lambda: mc.Subsequence(2, 0.0),
        lambda: mc.LocalAlignment(scores="pam"),
        lambda: mc.NGrams(2, unit="letters"),
    ):
        with pytest.raises(mc.InvalidInput):
            make()


def test_what_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setenv("MERCER_MEMORY", "1 MB")
    text = ["ACGT" * 500]
    for kernel in (mc.GappedKmers(10, 5), mc.Mismatch(6, 3), mc.WeightedDegree(30, shift=10), mc.Spectrum((1, 2000))):
        with pytest.raises(mc.InvalidInput, match="memory budget"):
            kernel(text)
