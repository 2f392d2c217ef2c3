"""Arguments of RBFInterpolator that cannot be used are refused in three parts, not by NumPy or int()."""

from __future__ import annotations

import numpy as np
import pytest

import mercer as mc

X = np.random.default_rng(0).normal(size=(24, 2))
RAGGED = [[1.0]] * 23 + [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": "a"}, "`degree` must be at least -1, a whole number, got 'a'"),
        ({"degree": np.nan}, "`degree` must be"),
        ({"degree": np.inf}, "`degree` must be"),
        ({"degree": [1]}, "`degree` must be"),
        ({"epsilon": "a"}, "`epsilon` must be a number > 0, got 'a'"),
        ({"epsilon": [1.0, 2.0]}, "`epsilon` must be"),
        ({"neighbors": "a"}, "`neighbors` must be a whole number ≥ 1, got 'a'"),
        ({"neighbors": -np.inf}, "`neighbors` must be"),
        ({"neighbors": []}, "`neighbors` must be"),
        ({"d": RAGGED}, "`d` must hold numbers"),
        ({"y": RAGGED}, "`y` must hold numbers"),
        ({"y": X + 1j}, "`y` must hold numbers, got complex numbers"),
    ],
)
def test_arguments_of_the_wrong_kind(change, message):
    with pytest.raises(mc.InvalidInput, match=message):
        mc.RBFInterpolator(**({"y": X, "d": X[:, 0]} | change))
