"""Folds are scikit-learn's for a seed, keep weights and groups, and refuse the rest with words."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

from mercer.errors import InvalidInput
from mercer.tuning.folds import fold_numbers, make_folds


def same(ours, theirs):
    theirs = list(theirs)
    assert len(ours) == len(theirs)
    for fold, (train, test) in zip(ours, theirs):
        np.testing.assert_array_equal(fold.train, train)
        np.testing.assert_array_equal(fold.test, test)


@pytest.mark.parametrize(("n", "count", "seed"), [(10, 3, 0), (57, 5, 3), (101, 7, 12)])
def test_a_number_draws_the_folds_of_scikit_learn(n, count, seed):
    rows, labels = np.zeros((n, 1)), np.random.default_rng(n).choice(list("cab"), n)
    same(make_folds(n, count, random_state=seed), KFold(count, shuffle=True, random_state=seed).split(rows))
    same(make_folds(n, count, shuffle=False), KFold(count).split(rows))
    peer = StratifiedKFold(count, shuffle=True, random_state=seed)
    if np.unique(labels, return_counts=True)[1].min() >= count:
        same(make_folds(n, count, y=labels, stratify=True, random_state=seed), peer.split(rows, labels))


def test_splitters_and_pairs_see_the_rows_that_have_weight():
    w = np.array([1.0, 0.0, 2.0, 1.0, 1.0, 0.0, 3.0, 1.0])
    kept = np.flatnonzero(w)
    splitter = TimeSeriesSplit(2)
    expected = [(kept[train], kept[test]) for train, test in splitter.split(kept[:, None])]
    same(make_folds(8, splitter, weights=w), expected)
    groups = np.repeat([0, 1, 2, 3], 2)
    for train, test in make_folds(8, GroupKFold(2).split(np.zeros((8, 1)), groups=groups), weights=w):
        assert not np.intersect1d(groups[train], groups[test]).size
        assert np.isin(np.concatenate([train, test]), kept).all()
    numbers = fold_numbers(make_folds(8, 3, weights=w), 8)
    assert (numbers[w == 0] == -1).all()
    assert set(numbers[w > 0]) == {0, 1, 2}


def test_groups_stay_together_and_fill_the_folds_evenly():
    rng = np.random.default_rng(0)
    groups = rng.choice(np.array([f"patient {i}" for i in range(30)]), 200, p=rng.dirichlet(np.ones(30)))
    folds = make_folds(200, 5, groups=groups, random_state=3)
    for train, test in folds:
        assert not np.intersect1d(groups[train], groups[test]).size
    largest = np.unique(groups, return_counts=True)[1].max()
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= largest
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(200))
    others = make_folds(200, 5, groups=groups, random_state=4)
    assert any(not np.array_equal(a.test, b.test) for a, b in zip(folds, others)), "the seed draws them"


def test_groups_keep_the_shares_of_classes():
    groups = np.repeat(np.arange(20), 5)
    labels = np.repeat(np.where(np.arange(20) % 4 == 0, "rare", "common"), 5)
    for _, test in make_folds(100, 5, y=labels, stratify=True, groups=groups):
        assert (labels[test] == "rare").sum() == 5
        assert len(test) == 20


def test_folds_in_time_are_fitted_to_the_past():
    rng = np.random.default_rng(1)
    days = np.datetime64("2027-01-01") + rng.integers(0, 40, 120)
    folds = make_folds(120, 4, times=days)
    assert len(folds) == 4
    for train, test in folds:
        assert days[train].max() < days[test].min()
        assert np.array_equal(np.sort(train), np.flatnonzero(days < days[test].min())), "the whole past"
    every = np.arange(30)
    peer = TimeSeriesSplit(4).split(every[:, None])
    same(make_folds(30, 4, times=every), peer)


def test_repeats_draw_other_folds_that_each_hold_out_every_row():
    folds = make_folds(20, 4, repeats=3)
    assert len(folds) == 12
    for k in range(3):
        assert sorted(np.concatenate([fold.test for fold in folds[4 * k : 4 * k + 4]])) == list(range(20))
    same(folds[:4], make_folds(20, 4))
    assert not np.array_equal(folds[0].test, folds[4].test)


def test_a_splitter_sees_the_groups():
    groups = np.repeat(["a", "b", "c", "d"], 3)
    same(make_folds(12, GroupKFold(2), groups=groups), GroupKFold(2).split(np.zeros((12, 1)), groups=groups))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"groups": ["a"] * 9}, "one value per row"),
        ({"groups": ["a"] * 9 + [None]}, "a value in every row, got none in row 9"),
        ({"groups": ["a"] * 10}, "at most the number of groups"),
        ({"groups": [[1]] * 10}, "one value per row"),
        ({"times": ["x"] * 10}, "numbers or dates"),
        ({"times": [1.0] * 9 + [np.nan]}, "a value in every row"),
        ({"times": [1, 1, 1, 2, 2, 2, 2, 2, 2, 2]}, "3 parts of different times"),
        ({"times": range(10), "groups": range(10)}, "both `times` and `groups`"),
        ({"times": range(10), "repeats": 2}, "both `times` and repeats=2"),
        ({"cv": KFold(2), "repeats": 2}, "need a number of folds"),
        ({"repeats": 0}, "`repeats` must be a whole number"),
    ],
)
def test_roles_that_cannot_be_kept_are_refused(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        make_folds(10, **({"cv": 2} | arguments))


def test_generators_of_numpy_draw_folds():
    for state in (np.random.default_rng(0), np.random.RandomState(0), None, np.int64(3)):
        assert sorted(np.concatenate([fold.test for fold in make_folds(9, 3, random_state=state)])) == list(range(9))


@pytest.mark.parametrize("cv", [1, 11, True, "five", 2.5, [(0, 1, 2)], [([0], [99])], []])
def test_what_is_no_fold_is_refused(cv):
    with pytest.raises(InvalidInput):
        make_folds(10, cv)


def test_every_row_must_be_held_out_once_where_numbers_are_asked_for():
    with pytest.raises(InvalidInput, match="one test fold"):
        fold_numbers(make_folds(10, TimeSeriesSplit(3)), 10)
    with pytest.raises(InvalidInput, match="random_state"):
        make_folds(10, 2, random_state="seed")
    with pytest.raises(InvalidInput, match="commonest class"):
        make_folds(4, 3, y=np.array([0, 0, 1, 1]), stratify=True)
