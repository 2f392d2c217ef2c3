"""Laws of table kernels on random tables: every kind of column, missing values anywhere, both libraries."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer as mc

VALUES = {
    "number": st.floats(-1e6, 1e6).map(lambda v: round(v, 6)),
    "count": st.integers(-3, 2**40),
    "word": st.sampled_from(["Rome", "Oslo", "", "rome "]),
    "flag": st.booleans(),
    "day": st.dates(datetime.date(1990, 1, 1), datetime.date(2030, 1, 1)),
    "instant": st.datetimes(datetime.datetime(2020, 1, 1), datetime.datetime(2022, 1, 1)),
    "duration": st.timedeltas(datetime.timedelta(0), datetime.timedelta(9)),
    "tokens": st.lists(st.sampled_from(["ski", "chess", "opera"]), max_size=3),
    "text": st.text("ab é", max_size=9),
}


@st.composite
def tables(draw):
    n = draw(st.integers(2, 9))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5))
    share = draw(st.sampled_from([0.0, 0.3]))
    coin = draw(st.randoms(use_true_random=False))
    columns = [draw(st.lists(VALUES[kind], min_size=n, max_size=n)) for kind in kinds]
    return {
        f"{kind} {j}": [None if coin.random() < share else v for v in column]
        for j, (kind, column) in enumerate(zip(kinds, columns))
    }


@settings(max_examples=settings.default.max_examples // 4)
@given(data=tables(), interaction=st.sampled_from([0.3, 1.0, 5.0]), seed=st.integers(0, 99))
def test_laws_of_table_kernels(data, interaction, seed):
    left, right = pd.DataFrame(data), pl.DataFrame(data, strict=False)
    roles = {name: "text" for name, column in data.items() if name.startswith("text") and any(v for v in column)}
    rule = mc.TableKernel(roles=roles, interaction=interaction)
    if all(len(set(map(str, column))) == 1 for column in data.values()):
        for table in (left, right):
            with pytest.raises(mc.InvalidInput, match="distinguishes its rows"):
                rule(table)
        return
    kernel = rule(left)
    assert rule(right) == kernel
    assert kernel.proof().valid
    K = kernel(left)
    assert np.array_equal(K, kernel(right))
    assert np.isfinite(K).all()
    assert np.array_equal(K, K.T)
    assert np.allclose(kernel.diag(left), 1.0, rtol=1e-12)
    assert np.exp(-interaction) * (1 - 1e-9) <= K.min()
    assert K.max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(K)[0] > -1e-13 * len(K)

    r = np.random.default_rng(seed)
    rows, columns = r.permutation(len(left)), [str(c) for c in r.permutation(list(data))]
    assert np.allclose(kernel(left.iloc[rows], right), K[rows], rtol=1e-12)
    assert np.array_equal(kernel(right[columns]), K)
    assert np.allclose(rule(left.iloc[rows])(left), K, rtol=1e-9)
    assert np.allclose(rule(right[columns])(right), K, rtol=1e-12)
