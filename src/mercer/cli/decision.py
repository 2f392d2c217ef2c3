"""Which class is predicted: --threshold, --positive and --balance of `mercer fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InvalidInput


def decision_from(threshold: str | None, positive: str | None, balance: bool) -> dict[str, Any]:
    """The parameters of `CalibratedClassifier` that --threshold describes.

    >>> decision_from("f1", None, False), decision_from("cost=5:1", None, False), decision_from("0.3", None, False)
    ({'threshold': 'f1'}, {'costs': (5.0, 1.0)}, {'threshold': 0.3})
    """
    if threshold is None:
        if positive is not None:
            raise InvalidInput("--positive is for --threshold", got="no --threshold", advice="Add --threshold f1.")
        return {}
    if balance:
        raise InvalidInput(
            "Only one option can decide which class is predicted",
            got="--threshold and --balance",
            advice="Choose one of the two.",
        )
    text = threshold.strip().lower()
    if text == "f1":
        return {"threshold": "f1"}
    try:
        if text.startswith("cost="):
            missed, false_alarm = map(float, text.removeprefix("cost=").split(":"))
            if missed > 0 and false_alarm > 0 and np.isfinite(missed + false_alarm):
                return {"costs": (missed, false_alarm)}
        elif 0 < float(text) < 1:
            return {"threshold": float(text)}
    except ValueError:
        pass
    raise InvalidInput(
        "--threshold must be f1, cost=A:B with two costs > 0, or a number between 0 and 1",
        got=threshold,
        advice="Give f1, cost=5:1 (a missed row costs 5, a false alarm 1) or a number such as 0.3.",
    )
