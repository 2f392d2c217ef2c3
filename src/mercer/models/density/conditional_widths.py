"""The widths of a conditional density, for x and for t: by a rule, by likelihood, or from a joint covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.radial import ByWidth, Gaussian
from mercer.models.base import shortened
from mercer.models.density.parzen_widths import RULES, Widths, covariance_root, family, resolve
from mercer.smoothing import density
from mercer.tuning import bandwidth as rules
from mercer.tuning.parzen_likelihood import loo
from mercer.tuning.trials import Tuned
from mercer.validation import check_numbers
from mercer.words import count

Float = NDArray[np.float64]

SEARCH_ROWS = 10_000
"""Rows for the search of the likeliest widths, unless "loo" was passed by name: it takes a pass over all pairs."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Kernels of x and t with their widths; x is None if the kernel is used unchanged.

    covariance, slope, origin : the joint covariance, Σ_tx Σ_xx⁻¹ (t, d), and the point x at which the shift is 0.
    """

    kernel: Any
    target_kernel: Any
    x: Widths | None
    t: Widths
    status: str
    covariance: Float | None = None
    slope: Float | None = None
    origin: Any = 0.0


def choose(
    kernel: Any,
    bandwidth: Any,
    target_kernel: Any,
    target_bandwidth: Any,
    covariance: Any,
    *,
    X: Float | None,
    Y: Float,
    w: Float | None,
) -> Choice:
    """The kernels and widths that the parameters stand for on these data; X is None for objects."""
    if covariance is not None:
        others = [kernel, bandwidth, target_kernel, target_bandwidth]
        if any(other is not None for other in others) or X is None:
            raise InvalidInput(
                "`covariance` must be passed alone: it holds all widths, and the kernels are Gaussian",
                got=shortened(next((other for other in others if other is not None), "objects")),
                advice="Leave out the kernels and bandwidths, or `covariance`.",
            )
        return _by_covariance(covariance, X, Y, w)
    unchanged = isinstance(kernel, Similarity) and bandwidth is None
    k: Any = kernel if unchanged else family(kernel)
    target: Any = family(target_kernel)
    density.on_a_line(target)  # raises if its integral on a line is not known
    unchanged_target = isinstance(target_kernel, Similarity) and target_bandwidth is None
    d = 0 if X is None else X.shape[1]
    if unchanged and isinstance(k, ByWidth) and X is not None and np.size(k.sigma) not in (1, d):
        raise InvalidInput(
            f"`kernel` must have one width, or one for each of {count(d, 'column')}",
            got=shortened(k),
            advice="Pass one sigma, or one per column.",
        )
    rule_x: Any = None if unchanged else "loo" if bandwidth is None else bandwidth
    default = "loo" if X is not None and density.comparable(k, d) else "scott"
    rule_t: Any = None if unchanged_target else default if target_bandwidth is None else target_bandwidth
    thinned = "loo" not in [v for v in (bandwidth, target_bandwidth) if isinstance(v, str)]
    x = t = None
    if not unchanged and not isinstance(rule_x, str):
        assert X is not None
        x = resolve(k, rule_x, X, w)
    if unchanged_target:
        t = resolve(target, target.sigma, Y, w, "target_bandwidth")
    elif not isinstance(rule_t, str):
        t = resolve(target, rule_t, Y, w, "target_bandwidth")
    if t is not None and t.root is not None and not isinstance(target, Gaussian):
        raise InvalidInput(
            "`target_bandwidth` as a matrix requires a Gaussian target kernel",
            got=shortened(target),
            advice="Pass one width per target.",
        )
    notes: tuple[str, ...] = ()
    for name, rule in (("bandwidth", rule_x), ("target_bandwidth", rule_t)):
        if isinstance(rule, str) and rule not in RULES:
            raise InvalidInput(
                f"`{name}` must be widths, a rule X → widths, or one of {', '.join(map(repr, RULES))}",
                got=repr(rule),
                advice="Pass one of these names, or numbers.",
            )
    if x is None and not unchanged:
        assert X is not None
        x, t_by_rule, notes = _both_widths(rule_x, rule_t if t is None else None, k, target, X, Y, w, t, thinned)
        t = t_by_rule if t is None else t
    elif t is None:
        t, notes = _target_widths(rule_t, k, target, X, Y, w, x, thinned)
    assert t is not None
    if x is not None:
        k = k.replace(sigma=x.sigma)
    target = target.replace(sigma=1.0)
    source_x = "kernel" if unchanged else rule_x if isinstance(rule_x, str) else "given"
    source_t = "kernel" if unchanged_target else rule_t if isinstance(rule_t, str) else "given"
    return Choice(k, target, x, t, " ".join([f"Widths of x: {source_x}, of t: {source_t}.", *notes]))


def _both_widths(
    rule_x: str, rule_t: Any, k: Any, target: Any, X: Float, Y: Float, w: Float | None, t: Widths | None, thinned: bool
) -> tuple[Widths, Widths | None, tuple[str, ...]]:
    """Widths of x by a named rule; if t has a named rule too, the widths of both together."""
    d, joint = X.shape[1], np.hstack([X, Y])
    factor_x, factor_t = density.equivalent(k, d), 1.0 if rule_t is None else density.equivalent(target, 1)
    if rule_x == "loo":
        held = np.full(joint.shape[1], np.nan)
        if t is not None:
            std = t.shown if t.root is None else np.sqrt(np.diag(t.shown))
            held[d:] = std * _gaussian_width(target)
        elif rule_t != "loo":
            held[d:] = _by_rule(rule_t, joint, w)[d:]
        tuned = _likeliest(joint, w, Y.shape[1], held, thinned)
        likeliest = tuned.parameters["widths"]
        return Widths(factor_x * likeliest[:d]), Widths(factor_t * likeliest[d:]), tuned.notes
    widths = _by_rule(rule_x, joint, w)
    x = Widths(factor_x * widths[:d])
    if rule_t is None:
        return x, None, ()
    if rule_t == rule_x:
        return x, Widths(factor_t * widths[d:]), ()
    t_by_rule, notes = _target_widths(rule_t, k, target, X, Y, w, x, thinned)
    return x, t_by_rule, notes


def _target_widths(
    rule: str, k: Any, target: Any, X: Float | None, Y: Float, w: Float | None, x: Widths | None, thinned: bool
) -> tuple[Widths, tuple[str, ...]]:
    """Widths of t by a named rule, given the widths of x."""
    factor = density.equivalent(target, 1)
    if rule != "loo":
        joint = Y if X is None else np.hstack([X, Y])
        return Widths(factor * _by_rule(rule, joint, w)[-Y.shape[1] :]), ()
    if X is None or not density.comparable(k, X.shape[1]):
        raise InvalidInput(
            "target_bandwidth='loo' requires a kernel of x whose width can be compared with a Gaussian's",
            got=shortened(k),
            advice="Pass 'scott' or a number as `target_bandwidth`.",
        )
    d = X.shape[1]
    widths = np.ones(d)
    if x is None:
        widths = np.broadcast_to(np.asarray(k.sigma, dtype=np.float64), (d,))
    elif x.root is None:
        widths = x.shown
    else:
        X = x.whitened(X)
    held = np.concatenate([widths / density.equivalent(k, d), np.full(Y.shape[1], np.nan)])
    tuned = _likeliest(np.hstack([X, Y]), w, Y.shape[1], held, thinned)
    return Widths(factor * tuned.parameters["widths"][d:]), tuned.notes


def _likeliest(joint: Float, w: Float | None, targets: int, held: Float, thinned: bool) -> Tuned:
    """The likeliest widths; if `thinned`, on a random sample of very many rows."""
    n, d = joint.shape
    if n <= SEARCH_ROWS or not thinned:
        return loo(joint, w, targets=targets, held=held)
    rows = np.random.default_rng(0).choice(n, SEARCH_ROWS, replace=False)
    tuned = loo(joint[rows], None if w is None else w[rows], targets=targets, held=held)
    # the best width shrinks with n
    widths = np.where(np.isfinite(held), held, tuned.parameters["widths"] * (SEARCH_ROWS / n) ** (1.0 / (d + 4)))
    note = f"Found on {SEARCH_ROWS} of {n} rows and scaled to all; pass bandwidth='loo' to use all rows."
    return replace(tuned, parameters={"widths": widths}, notes=(*tuned.notes, note))


def _gaussian_width(target: Any) -> float:
    """The width of the Gaussian that smooths equally on a line, in units of this kernel's width."""
    if density.comparable(target, 1):
        return 1.0 / density.equivalent(target, 1)
    variance = density.of(target, 1).variance(1)
    return float(np.sqrt(variance)) if np.isfinite(variance) else 1.0


def _by_rule(rule: str, joint: Float, w: Float | None) -> Float:
    return np.asarray(RULES[rule](joint, w))  # type: ignore[misc]


def _by_covariance(covariance: Any, X: Float, Y: Float, w: Float | None) -> Choice:
    """A joint Gaussian of any covariance: Σ_xx for x, and the conditional covariance of t given x."""
    d, joint = X.shape[1], np.hstack([X, Y])
    size = joint.shape[1]
    if isinstance(covariance, str) and covariance == "scott":
        C = rules.scott_covariance(joint, w)
    else:
        required = f"`covariance` must be a matrix of shape ({size}, {size}), x before t, or 'scott'"
        advice = f"Count {count(d, 'column')} of x and {count(size - d, 'target')}, such as 0.01 * np.eye({size})."
        C = check_numbers(covariance, required, shapes=[(size, size)], advice=advice)
    covariance_root(C, "covariance")
    A = C[:d, :d]
    root = covariance_root(A, "covariance")
    slope = cho_solve((root, True), C[:d, d:]).T
    rest = C[d:, d:] - slope @ C[:d, d:]
    rest = 0.5 * (rest + rest.T)
    origin = np.average(X, axis=0, weights=w)
    x, t = Widths(A, root), Widths(rest, covariance_root(rest, "covariance"))
    status = "Widths: the joint covariance" + (" by Scott's rule." if isinstance(covariance, str) else ".")
    return Choice(Gaussian(1.0), Gaussian(1.0), x, t, status, C, slope, origin)
