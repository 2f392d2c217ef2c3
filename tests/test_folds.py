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
