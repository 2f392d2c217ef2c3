"""The search for a counterexample to Mercer's condition: points and a vector a with aᵀKa < 0.

A function is not a kernel as soon as one such pair is shown. The search tries points in which violations hide
(`candidates.py`), waves on lattices where the spectrum of a radial function is negative (`spectrum.py`), then random
points that walk downhill on the smallest eigenvalue. A violation is reduced to few round points (`shrink.py`), then
confirmed in interval arithmetic, or in exact arithmetic beyond the rounding of a Python function (`confirmation.py`,
`noise.py`). Nothing unconfirmed is reported. Finding nothing proves nothing.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.frames import is_frame
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.spaces import ANY, Space, show
from mercer.kernels.validity import shrink as searching
from mercer.kernels.validity.candidates import Matrix
from mercer.kernels.validity.confirmation import Counterexample, Evidence, rows
from mercer.kernels.validity.shrink import Search
from mercer.kernels.vocabulary import space_named
from mercer.threads import single_threaded_blas
from mercer.validation import check_number, check_whole_number, generator

# Gram matrices of more points than the first number are not printed, and at most the second number of points is.
READABLE, PRINTED = 8, 32


@dataclass(frozen=True, eq=False)
class Refutation:
    """The outcome of `refute`.

    Attributes
    ----------
    refuted : bool
        Whether there is a confirmed counterexample.
    points
        Its points, an array of vectors or a list of objects; if there are at most 128, none can be left out.
    vector : array
        A, one number per point. Empty if k(x, z) ≠ k(z, x) is the counterexample.
    value : float
        An upper bound of aᵀKa that is certain, and < 0 (for an asymmetry: a lower bound of |k(x, z) − k(z, x)|).
    gram : array
        K on the points; empty if not every pair was evaluated.
    trials : int
        Configurations of points examined.
    skipped : int
        Evaluations that failed or gave no number.
    seconds : float
        Time spent.
    stopped : bool
        Whether the clock ended the search. If it did not, the same call gives the same answer again.
    kernel : str
        The kernel that was tested, as text.
    evidence : Evidence
        The basis of the confirmation. `Evidence.INTERVALS`: bounds of the exact values of Mercer's own kernels,
        without any assumption. `Evidence.VALUES`: the values that a Python function returned, on the assumption that
        they are off by at most `error`. `Evidence.RADIAL`: the same, and the assumption that the function depends on ‖x
        − z‖ alone, as it did wherever that was tried; one value was computed for every distance instead of one for
        every pair.
    error : float
        The assumed error of a Python function's values, relative to the largest of them: its stated `error`, or the
        rounding that was estimated from how the values scatter near the points, if that is larger.
    space : Space
        The kind of objects that the points are.
    """

    refuted: bool
    points: Any
    vector: NDArray[Any]
    value: float
    gram: Matrix
    trials: int
    skipped: int
    seconds: float
    stopped: bool
    kernel: str
    evidence: Evidence
    error: float
    space: Space = ANY

    def __str__(self) -> str:
        effort = f"{self.trials} trial{'s' * (self.trials != 1)} in {self.seconds:.2f} s"
        if self.skipped:
            effort += f" ({self.skipped} evaluations gave no number)"
        if not self.refuted:
            return f"{self.kernel}: not refuted after {effort}. That proves nothing."
        lines = [f"  x{i + 1} = {self.space.show(x)}" for i, x in enumerate(rows(self.points)[:PRINTED])]
        if len(self.vector):
            width = max(map(len, lines)) + 3
            lines = [f"{line:<{width}}a{i + 1} = {show(a)}" for i, (line, a) in enumerate(zip(lines, self.vector))]
        if len(self.points) > PRINTED:
            lines.append(f"  … and {len(self.points) - PRINTED} more in `points` and `vector`")
        if 0 < len(self.gram) <= READABLE:
            lines.append("  K = " + np.array2string(self.gram, precision=6, prefix="  K = ", max_line_width=110))
        end = f"{self._confirmation()} Found after {effort}."
        return "\n".join([f"{self.kernel} is not a kernel: {self._claim()}", *lines, end])

    def _confirmation(self) -> str:
        if self.evidence is Evidence.INTERVALS:
            return "Confirmed in interval arithmetic."
        text = f"Confirmed in exact arithmetic, provided that the function's values are off by at most {self.error:.2g}"
        text += " of the largest (its stated error, or its rounding as estimated from nearby values)"
        if self.evidence is Evidence.RADIAL:
            text += " and that it depends on ‖x − z‖ alone (tried, not proven)"
        return f"{text}."

    def _claim(self) -> str:
        K = self.gram
        if not len(self.vector):
            return f"k(x1, x2) = {K[0, 1]:.10g} but k(x2, x1) = {K[1, 0]:.10g}"
        claim = f"aᵀKa ≤ {self.value:.6g} < 0"
        if len(K) == 1:
            return f"{claim}, for k(x1, x1) = {K[0, 0]:.6g}"
        if len(K) == 2:
            return f"{claim}, for k(x1, x2)² = {K[0, 1] ** 2:.6g} > k(x1, x1)·k(x2, x2) = {K[0, 0] * K[1, 1]:.6g}"
        return claim


def refute(
    kernel: Similarity,
    dim: int | None = None,
    *,
    points: Any = None,
    space: str | None = None,
    alphabet: str | None = None,
    length: int = 4,
    seconds: float = 5.0,
    trials: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Refutation:
    """Search for points and a vector a with aᵀKa < 0: a proof that `kernel` is not a kernel.

    Asymmetry, a negative k(x, x) and k(x, z)² > k(x, x)·k(z, z) are the smallest counterexamples. One counts if the
    upper end of aᵀKa is < 0 in interval arithmetic: exact points, exact a, and `kernel.enclose` for the values. It must
    also exceed 64 roundings of every value, so that a kernel that is valid up to the rounding of its parameters stays
    unrefuted. The values of a Python function are assumed to be off by at most its stated `error`, or by the rounding
    that shows when the points move a little, whichever is larger; the verdict says so and gives the number. An
    evaluation that fails or overflows is skipped and counted.

    Radial functions are also tried in Fourier space: where the spectrum is negative, a wave on a lattice of up to
    20 000 points is a counterexample.

    Parameters
    ----------
    kernel : Similarity
        The similarity to refute.
    dim : int or None
        Dimension of the points; by default up to three dimensions that the kernel accepts.
    points
        Candidates to choose from, instead of points that the search makes up: vectors, objects or a data frame. A
        kernel on named columns needs a data frame.
    space : str or None
        "vectors", "sets", "strings", "categories" or another space of a known kernel; by default the kernel's own.
    alphabet : str or None
        The letters of made-up strings; by default those that the kernel tells apart, or "01" if it knows all letters.
    length : int
        The first made-up strings have up to this many letters, the first sets up to this many elements.
    seconds, trials : float, int or None
        When to give up: after this time, or this many configurations of points. The clock is read before every
        evaluation, which itself is not interrupted.
    random_state : int, random.Generator or None
        Seed of the search.

    Returns
    -------
    Refutation
        It prints the counterexample, or "not refuted after N trials", which proves nothing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> r = mc.refute(mc.FromFunction(lambda x, z: np.sum((x - z) ** 2)), dim=1)
    >>> r.refuted, r.points.tolist(), r.vector.tolist(), r.gram.tolist()
    (True, [[-0.5], [0.5]], [1, -1], [[0.0, 1.0], [1.0, 0.0]])
    >>> mc.refute(mc.Gaussian(1.0), dim=2, trials=20).refuted
    False
    """
    if not isinstance(kernel, Similarity):
        raise InvalidInput(
            "`kernel` must be a kernel", got=type(kernel).__name__, advice="Wrap a function as mc.FromFunction(f)."
        )
    check_number(seconds, "seconds", above=0, infinite=True)
    if trials is not None:
        check_whole_number(trials, "trials", alternative="None for no limit", such_as=1000)
    if alphabet is not None and not alphabet:
        raise InvalidInput("`alphabet` must hold a letter", got=repr(alphabet), advice="Pass letters such as '01'.")
    check_whole_number(length, "length", such_as=4)
    rng = generator(random_state)
    objects = space_named(space or kernel.space) if points is None or space else _space(kernel)
    letters = objects.letters(kernel) if alphabet is None else alphabet
    search = Search(kernel, seconds, trials, rng, objects)
    named = _named(kernel)
    if points is None and named:
        raise InvalidInput(
            "A kernel on named columns needs rows to choose from",
            got=f"{kernel!r}, which reads {', '.join(map(repr, named))}, and no points",
            advice="Pass a data frame with these columns, refute(k, points=frame), or test each part without `.on`.",
        )
    if points is not None:
        pool = points if named and is_frame(points) and len(points) else _pool(points, objects)

        def look() -> Counterexample | None:
            return search.among(pool)
    elif objects.vectorial:

        def look() -> Counterexample | None:
            return search.vectors(dim)
    else:
        pool = objects.pool(kernel, letters, length, rng)

        def look() -> Counterexample | None:
            mutate = None if objects.complete else lambda x: objects.mutated(x, kernel, letters, rng)
            return search.among(pool, mutate)

    with warnings.catch_warnings(), np.errstate(all="ignore"), single_threaded_blas():
        warnings.simplefilter("ignore")
        return _report(search, search.run(look))


def _report(search: Search, counterexample: Counterexample | None) -> Refutation:
    nothing = Counterexample([], np.empty((0, 0)), np.empty(0), math.nan, search.evidence, search.least)
    best = counterexample or nothing
    return Refutation(
        refuted=counterexample is not None,
        points=best.points,
        vector=best.vector,
        value=best.value,
        gram=best.gram,
        trials=search.trials,
        skipped=search.skipped,
        seconds=searching.clock() - search.began,
        stopped=search.stopped,
        kernel=repr(search.kernel),
        evidence=best.evidence,
        error=best.error if search.errors else 0.0,
        space=search.space,
    )


def _named(kernel: Any) -> list[str]:
    """The columns that a kernel reads by name."""
    names = [c for c in getattr(kernel, "columns", ()) if isinstance(c, str)]
    return list(dict.fromkeys([*names, *(c for child in kernel.children.values() for c in _named(child))]))


def _space(kernel: Similarity) -> Space:
    """The space of a kernel; its plain name if the class states no more."""
    return kernel.space if isinstance(kernel.space, Space) else Space(kernel.space)


def _pool(points: Any, space: Space) -> Any:
    """Candidates as rows of a float matrix, or a list of objects."""
    if hasattr(points, "toarray"):
        points = points.toarray()
    objects = list(np.asarray(points) if is_frame(points) else points)
    if not objects:
        raise InvalidInput("`points` must hold at least one candidate", got="none", advice="Pass a list of objects.")
    if space.vectorial and all(isinstance(x, (list, tuple, np.ndarray)) for x in objects):
        try:
            return np.array(objects, dtype=np.float64)
        except (TypeError, ValueError):
            return objects
    return objects
