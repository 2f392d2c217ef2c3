"""Parameters, checked: the one place that knows what a number, a whole number, a choice, a flag or a seed is.

Each function takes the value and the name of a parameter, and returns the value as a plain Python object or raises an
`InvalidInput` in three parts. True and False are not numbers here. A caller that accepts something else too (None,
a word) handles it first, and names it as `alternative`, so that the message mentions it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.words import count, shown

SHORT = 10
"""Arrays of up to this many numbers are shown whole in messages."""


def is_number(value: Any) -> bool:
    """Whether a value is one real number, of Python or NumPy; True and False are not.

    >>> is_number(1), is_number(np.float32(0.5)), is_number(True), is_number("1"), is_number([1.0])
    (True, True, False, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def is_whole_number(value: Any) -> bool:
    """Whether a value is one whole number, of Python or NumPy; True, False and 2.0 are not.

    >>> is_whole_number(1), is_whole_number(np.int32(1)), is_whole_number(True), is_whole_number(2.0)
    (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    alternative: str = "",
    such_as: float = 1.0,
    advice: str = "",
    owner: str = "",
) -> float:
    """A number in a range, finite unless `infinite` allows ∞.

    Parameters
    ----------
    value, name
        The parameter's value and its name.
    above, least, below, most : float or None
        The range: > above, ≥ least, < below, ≤ most.
    infinite : bool
        Whether ∞ is allowed.
    alternative : str
        Other values that the caller accepts, in words: "None for no limit".
    such_as : float
        An example for the message.
    advice : str
        The third part of the message, if there is more to say than the example.
    owner : str
        The class whose parameter it is, if the message is to name it.

    Examples
    --------
    >>> check_number(3, "C", above=0)
    3.0
    >>> check_number(1.5, "nu", above=0, most=1, such_as=0.1)
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `nu` must be a number in (0, 1], got 1.5. Pass a number such as 0.1.
    >>> check_number(-1, "max_time", least=0, alternative="None for no limit", such_as=60)
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `max_time` must be a number ≥ 0, or None for no limit, got -1. Pass a number such as 60.
    """
    if is_number(value) and _within(value, above, least, below, most) and (infinite or np.isfinite(value)):
        return float(value)
    kind = f"a number{_range(above, least, below, most)}"
    raise _refusal(value, name, kind, alternative, advice or f"Pass a number such as {such_as}.", owner)


def check_whole_number(
    value: Any,
    name: str,
    *,
    least: int = 1,
    most: int | None = None,
    alternative: str = "",
    such_as: int | None = None,
    advice: str = "",
    owner: str = "",
) -> int:
    """A whole number of at least `least`, which is 1 unless it is passed, and at most `most`.

    >>> check_whole_number(np.int64(3), "n_centers")
    3
    >>> check_whole_number(0, "n_centers", alternative="None", such_as=100)
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `n_centers` must be a whole number ≥ 1, or None, got 0. Pass a whole number such as 100.
    >>> check_whole_number(2.0, "degree", least=0, most=3, owner="LocalRegression")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `degree` of LocalRegression must be a whole number from 0 to 3, got 2.0. Pass a whole \
number such as 0.
    """
    if is_whole_number(value) and least <= value and (most is None or value <= most):
        return int(value)
    kind = f"a whole number ≥ {least}" if most is None else f"a whole number from {least} to {most}"
    example = least if such_as is None else such_as
    raise _refusal(value, name, kind, alternative, advice or f"Pass a whole number such as {example}.", owner)


def check_numbers(
    value: Any,
    required: str,
    *,
    shapes: Iterable[tuple[int, ...]] = (),
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    advice: str,
) -> NDArray[np.float64]:
    """Numbers in an array: finite unless `infinite` allows ±∞, in a range, and of one of the shapes.

    `required` is the first part of the message and `advice` the last one, because they depend on what the array is.

    >>> check_numbers([0.5, 2], "Widths must be numbers > 0", shapes=[(), (2,)], above=0, advice="Pass two widths.")
    array([0.5, 2. ])
    >>> check_numbers([1.0, -1.0], "Widths must be numbers > 0", above=0, advice="Pass the scale of each column.")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: Widths must be numbers > 0, got [1.0, -1.0]. Pass the scale of each column.
    """
    try:
        numbers = real_numbers(value)
        if numbers.dtype.kind not in "iufO":  # not flags, nor texts of digits
            raise TypeError
        numbers = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=shown(value), advice=advice) from None
    if (allowed := list(shapes)) and numbers.shape not in allowed:
        raise InvalidInput(required, got=f"shape {numbers.shape}", advice=advice)
    right = _within(numbers, above, least, below, most) & (~np.isnan(numbers) if infinite else np.isfinite(numbers))
    if not np.all(right):
        wrong = numbers[~right]
        named = f"{count(wrong.size, 'other entry', 'other entries')}, the first {wrong[0]:g}"
        raise InvalidInput(required, got=shown(value) if numbers.size <= SHORT else named, advice=advice)
    return numbers


def real_numbers(values: Any) -> NDArray[Any]:
    """The values as an array; a TypeError if one is complex, because NumPy would silently keep its real part."""
    A = np.asarray(values)
    if A.dtype.kind == "c" or (
        A.dtype.kind == "O" and any(isinstance(v, (complex, np.complexfloating)) for v in A.flat)
    ):
        raise TypeError("complex numbers")
    return A


def check_choice(value: Any, name: str, choices: Iterable[str], *, alternative: str = "", advice: str = "") -> str:
    """One of several words.

    >>> check_choice("auto", "solver", ("auto", "cg"))
    'auto'
    >>> check_choice("fast", "solver", ("auto", "cg"))
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `solver` must be 'auto' or 'cg', got 'fast'. Pass one of these words.
    """
    words = list(choices)
    if isinstance(value, str) and value in words:
        return value
    quoted = [repr(word) for word in words]
    kind = " or ".join(quoted) if len(words) == 2 and not alternative else f"one of {', '.join(quoted)}"
    raise _refusal(value, name, kind, alternative, advice or "Pass one of these words.")


def check_flag(value: Any, name: str) -> bool:
    """True or False, also as 1 or 0.

    >>> check_flag(np.True_, "fit_intercept"), check_flag(0, "fit_intercept")
    (True, False)
    >>> check_flag("no", "fit_intercept")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `fit_intercept` must be True or False, got 'no'. Pass one of the two.
    """
    if isinstance(value, (bool, np.bool_)) or (is_number(value) and value in (0, 1)):
        return bool(value)
    raise _refusal(value, name, "True or False", "", "Pass one of the two.")


def check_function(value: Any, name: str, *, kind: str = "a function", advice: str) -> Callable[..., Any] | None:
    """A function, or None.

    >>> check_function(len, "progress", advice="Pass print to see every step.") is len
    True
    >>> check_function(3, "progress", kind="a function of one argument", advice="Pass print to see every step.")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `progress` must be a function of one argument, or None, got 3. Pass print to see every \
step.
    """
    if value is None or callable(value):
        function: Callable[..., Any] | None = value
        return function
    raise _refusal(value, name, kind, "None", advice)


def check_paired(required: str, advice: str, **columns: tuple[Any, Any]) -> None:
    """Refuse columns that are empty or of different lengths, or hold a wrong value: the first of them is named.

    Each column is a pair: its numbers, and which of them are right.

    >>> check_paired("Means must be > 0", "Check them.", mean=(np.array([1.0, -2.0]), np.array([True, False])))
    Traceback (most recent call last):
        ...
    mercer.errors.InvalidInput: Means must be > 0, got the mean -2 in row 1. Check them.
    """
    lengths = [len(values) for values, _ in columns.values()]
    if len(set(lengths)) > 1 or not lengths[0]:
        counted = " and ".join(f"{n} of {name}" for n, name in zip(lengths, columns))
        raise InvalidInput(required, got=f"columns of different lengths, or empty ones: {counted}", advice=advice)
    for name, (values, right) in columns.items():
        if not np.all(right):
            row = int(np.argmin(right))
            raise InvalidInput(required, got=f"the {name} {float(values[row]):g} in row {row}", advice=advice)


def generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """The generator that a parameter of this name stands for: a seed, a generator of NumPy (also an old one), None.

    >>> generator(0).integers(10)
    np.int64(8)
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        kind, advice = (
            "a whole number ≥ 0, a NumPy generator",
            "Pass a seed such as 0, for the same result each time.",
        )
        raise _refusal(random_state, name, kind, "None", advice) from None


def _within(value: Any, above: float | None, least: float | None, below: float | None, most: float | None) -> Any:
    """Whether numbers are in a range, each by itself; NaN is in none but the one without ends."""
    ends = ((np.greater, above), (np.greater_equal, least), (np.less, below), (np.less_equal, most))
    return np.all([compare(value, end) for compare, end in ends if end is not None], axis=0)


def _range(above: float | None, least: float | None, below: float | None, most: float | None) -> str:
    """The range in symbols, after "a number": " > 0", " ≥ 0", " in (0, 1]"."""
    low, high = (least if above is None else above), (most if below is None else below)
    if low is None and high is None:
        return ""
    if high is None:
        return f" {'≥' if above is None else '>'} {low:g}"
    if low is None:
        return f" {'≤' if below is None else '<'} {high:g}"
    return f" in {'[' if above is None else '('}{low:g}, {high:g}{']' if below is None else ')'}"


def _refusal(value: Any, name: str, kind: str, alternative: str, advice: str, owner: str = "") -> InvalidInput:
    parameter = f"`{name}` of {owner}" if owner else f"`{name}`"
    other = f", or {alternative}" if alternative else ""
    return InvalidInput(f"{parameter} must be {kind}{other}", got=shown(value), advice=advice)
