"""The perceptron's own loop: one example after the other, on kernel values or rows that are there already.

Classes are numbers 0 … k − 1. Two classes are one function f, whose sign is the class (f > 0 is class 1, so that
sgn(0) = −1); more are one function each, of which the first of the largest is the class. An update adds the example to
the function of its class and takes it from the function of the class that was guessed.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

import numba
import numpy as np

# Sums may be taken in any order: that is what makes them vectors.
loop: Any = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
part: Any = numba.njit(fastmath={"reassoc", "contract"})

TINY = 1e-10
"""A residual below this share of k(x, x) is rounding: the point lies in the span of the others."""
SHARE = 15.0 / 32.0
"""Of the mistakes: what forgetting may cost (Dekel, Shalev-Shwartz and Singer, 2008, section 5)."""
# Where the running numbers of a stream with a budget are kept.
SEEN, MISTAKES, LARGEST, SPENT = 0, 1, 2, 3


@part
def _require(index, n):
    """Positions must be below n: they may come from a file, and loops read wherever they point."""
    for i in range(len(index)):
        if index[i] < 0 or index[i] >= n:
            raise IndexError("a position outside of its array")


@part
def _require_equal(a, b):
    if a != b:
        raise IndexError("arrays of different lengths")


@part
def _require_classes(codes, functions):
    """Codes of classes must have a function each; of two classes, one function has the sign."""
    _require(codes, max(2, functions))


@part
def _guess(f):
    """The class that the values of the functions stand for."""
    if len(f) == 1:
        return 1 if f[0] > 0 else 0
    best = 0
    for r in range(1, len(f)):
        if f[r] > f[best]:
            best = r
    return best


@part
def _rival(f, y):
    """The largest value of another class."""
    best = 1 if y == 0 else 0
    for r in range(len(f)):
        if r != y and f[r] > f[best]:
            best = r
    return best


@part
def _update(F, x, size, y, other, step):
    """Add step·x to the function of class y, and take it from that of the other class."""
    if len(F) == 1:
        signed = step if y == 1 else -step
        for j in range(size):
            F[0, j] += signed * x[j]
    else:
        for j in range(size):
            F[y, j] += step * x[j]
        for j in range(size):
            F[other, j] -= step * x[j]


@loop
def sweep(K, order, codes, F, guesses):
    """Visit the rows `order` of a kernel matrix K (n, n) once; F (functions, n) are the values of f at all its points.

    `guesses` (one per visit) becomes the class that was guessed where that was a mistake, else −1. Returns the number
    of mistakes.
    """
    n, mistakes = len(K), 0
    _require(order, min(n, len(codes), F.shape[1]))
    _require_equal(K.shape[1], F.shape[1])
    _require_equal(len(guesses), len(order))
    _require_classes(codes, len(F))
    f = np.empty(len(F))
    for i in range(len(order)):
        t = order[i]
        for r in range(len(F)):
            f[r] = F[r, t]
        guess, y = _guess(f), codes[t]
        guesses[i] = -1
        if guess != y:
            guesses[i] = guess
            mistakes += 1
            _update(F, K[t], n, y, guess, 1.0)
    return mistakes


@loop
def sweep_rows(X, codes, W, b, late, late_b, seen, constant, guesses):
    """The same with weights W (functions, d) and b (functions, 1), for rows X (n, d) of explicit features.

    `late` is Σ time·(change of W), the time being the number of examples before; `constant` is 1 with an intercept.
    """
    n, d = X.shape
    mistakes = 0
    for own in (W.shape[1], late.shape[1]):
        _require_equal(own, d)
    for own in (len(b), len(late), len(late_b)):
        _require_equal(own, len(W))
    _require_equal(min(len(codes), len(guesses)), n)
    _require_classes(codes, len(W))
    f, x, one = np.empty(len(W)), np.empty(d), np.ones(1)
    for t in range(n):
        for j in range(d):
            x[j] = X[t, j]
        for r in range(len(W)):
            total = 0.0
            for j in range(d):
                total += W[r, j] * x[j]
            f[r] = total + b[r, 0]
        guess, y = _guess(f), codes[t]
        guesses[t] = -1
        if guess != y:
            guesses[t] = guess
            mistakes += 1
            time = float(seen + t)
            _update(W, x, d, y, guess, 1.0)
            _update(late, x, d, y, guess, time)
            _update(b, one, constant, y, guess, 1.0)
            _update(late_b, one, constant, y, guess, time)
    return mistakes


@part
def _update_at(W, columns, values, y, other, step):
    if len(W) == 1:
        signed = step if y == 1 else -step
        for j in range(len(columns)):
            W[0, columns[j]] += signed * values[j]
    else:
        for j in range(len(columns)):
            W[y, columns[j]] += step * values[j]
            W[other, columns[j]] -= step * values[j]


@loop
def sweep_sparse(values, columns, starts, codes, W, b, late, late_b, seen, constant, guesses):
    """The same for the rows of a CSR matrix."""
    n, mistakes = len(starts) - 1, 0
    _require(columns, min(W.shape[1], late.shape[1]))
    _require(starts, min(len(columns), len(values)) + 1)
    for functions in (len(b), len(late), len(late_b)):
        _require_equal(functions, len(W))
    _require_equal(min(len(codes), len(guesses)), n)
    _require_classes(codes, len(W))
    f, one = np.empty(len(W)), np.ones(1)
    for t in range(n):
        at, own = columns[starts[t] : starts[t + 1]], values[starts[t] : starts[t + 1]]
        for r in range(len(W)):
            total = 0.0
            for j in range(len(at)):
                total += W[r, at[j]] * own[j]
            f[r] = total + b[r, 0]
        guess, y = _guess(f), codes[t]
        guesses[t] = -1
        if guess != y:
            guesses[t] = guess
            mistakes += 1
            time = float(seen + t)
            _update_at(W, at, own, y, guess, 1.0)
            _update_at(late, at, own, y, guess, time)
            _update(b, one, constant, y, guess, 1.0)
            _update(late_b, one, constant, y, guess, time)
    return mistakes


@loop
def votes(K, slots, classes, guesses, lives, out):
    """out (m, functions): every function on the way votes, as often as it lived.

    K (m, s) holds the kernel values of m points with the support set, in the order of which the updates (slots, their
    classes and what was guessed) were made; `lives` has one number more, for the function 0 at the beginning. For two
    classes a vote is ±1, for more it is one for a class.
    """
    m, functions = out.shape
    _require_equal(len(K), m)
    _require(slots, K.shape[1])
    for own in (len(slots), len(classes), len(guesses)):
        _require_equal(own, len(lives) - 1)
    _require_classes(classes, functions)
    _require_classes(guesses, functions)
    f = np.empty(functions)
    for i in range(m):
        for r in range(functions):
            out[i, r] = f[r] = 0.0
        for e in range(len(lives)):
            if e > 0:
                k = K[i, slots[e - 1]]
                if functions == 1:
                    f[0] += k if classes[e - 1] == 1 else -k
                else:
                    f[classes[e - 1]] += k
                    f[guesses[e - 1]] -= k
            guess = _guess(f)
            if functions == 1:
                out[i, 0] += lives[e] if guess == 1 else -lives[e]
            else:
                out[i, guess] += lives[e]


@loop
def project(phi, size, K, diagonal, codes, L, W, late, eta, numbers, guesses, added):
    """Projectron++ with a hard budget, in the orthonormal basis that the support set spans.

    L (budget, budget) is the Cholesky factor of the support set's Gram matrix, so that φ(x) = L⁻¹k(x) are the
    coordinates of x in its span, W (functions, budget) those of f, and a new support vector is one coordinate more.
    phi (n, budget) holds the first `size` coordinates of n examples, K (n, n) their kernel values among themselves
    (anything, where no support vector can be added). The rows that were added are written to `added`; returns the new
    size and the number of mistakes.
    """
    n, budget = phi.shape
    before, mistakes = size, 0
    for own in (L.shape[0], L.shape[1], W.shape[1], late.shape[1]):
        _require_equal(own, budget)
    _require_equal(len(late), len(W))
    _require_equal(min(len(codes), len(diagonal), len(guesses)), n)
    _require_equal(len(numbers), 4)
    _require_classes(codes, len(W))
    if size < budget:
        _require_equal(min(K.shape), n)
        _require_equal(len(added), min(n, budget - size) + 1)
    elif size > budget:
        raise IndexError("more support vectors than the budget")
    f = np.empty(len(W))
    factor = 1.0 if len(W) == 1 else 2.0  # ‖change of f‖² in units of k(x, x): one function moves, or two
    for t in range(n):
        x, y = phi[t], codes[t]
        for j in range(before, size):
            total = K[t, added[j - before]]
            for i in range(j):
                total -= L[j, i] * x[i]
            x[j] = total / L[j, j]
        for r in range(len(W)):
            total = 0.0
            for j in range(size):
                total += W[r, j] * x[j]
            f[r] = total
        time = numbers[SEEN]
        numbers[SEEN] += 1
        numbers[LARGEST] = max(numbers[LARGEST], diagonal[t])
        unit = factor * numbers[LARGEST]
        guess = _guess(f)
        guesses[t] = -1
        wrong = guess != y
        other = guess
        if wrong:
            guesses[t] = guess
            mistakes += 1
            numbers[MISTAKES] += 1
        elif len(W) > 1:
            other = _rival(f, y)
        if len(W) == 1:
            margin = f[0] if y == 1 else -f[0]
        else:
            margin = f[y] - f[other]
        if unit == 0 or (not wrong and margin >= unit):
            continue
        length = 0.0
        for j in range(size):
            length += x[j] * x[j]
        left = max(diagonal[t] - length, 0.0)
        off = np.sqrt(factor * left / unit)
        inside = factor * length / unit
        if wrong:
            step = 1.0
            if off > eta and left > TINY * diagonal[t] and size < budget:
                x[size] = np.sqrt(left)
                for j in range(size + 1):
                    L[size, j] = x[j]
                added[size - before] = t
                size += 1
        else:
            loss = 1.0 - margin / unit
            reach = loss
            if off > 0:
                reach = loss - off / eta if eta > 0 else -1.0
            if reach <= 0 or inside <= 0:
                continue
            step = min(loss / inside, 2.0 * reach / inside, 1.0)
        _update(W, x, size, y, other, step)
        _update(late, x, size, y, other, step * time)
    return size, mistakes


@loop
def forget(K, diagonal, first, codes, others, sigma, C, queue, held, budget, numbers, guesses):
    """The self-tuned Forgetron on a pool of points, of which those from `first` on are the examples.

    K (p, p) are the pool's kernel values, C (functions, p) the coefficients, sigma (p) their sizes, `codes` and
    `others` the class of each and what had been guessed; `queue` lists the `held` support vectors, the oldest first,
    and has room for all examples. Returns where the queue now begins, how many it holds, and the number of mistakes.
    """
    p, mistakes, head = len(K), 0, 0
    for size in (K.shape[1], len(diagonal), len(codes), len(others), len(sigma), C.shape[1], len(queue)):
        _require_equal(size, p)
    _require_equal(first + len(guesses), p)
    _require_equal(held, first)
    _require_equal(len(numbers), 4)
    _require(queue, p)
    _require_classes(codes, len(C))
    _require_classes(others, len(C))
    f = np.empty(len(C))
    factor = 1.0 if len(C) == 1 else 2.0
    for t in range(first, p):
        y = codes[t]
        for r in range(len(C)):
            total = 0.0
            for j in range(p):
                total += C[r, j] * K[t, j]
            f[r] = total
        numbers[SEEN] += 1
        guess = _guess(f)
        guesses[t - first] = -1
        if guess == y:
            continue
        guesses[t - first] = guess
        mistakes += 1
        numbers[MISTAKES] += 1
        numbers[LARGEST] = max(numbers[LARGEST], diagonal[t])
        others[t], sigma[t] = guess, 1.0
        if len(C) == 1:
            C[0, t] = 1.0 if y == 1 else -1.0
        else:
            C[y, t], C[guess, t] = 1.0, -1.0
        queue[head + held] = t
        held += 1
        if held <= budget:
            continue
        oldest = queue[head]
        head, held = head + 1, held - 1
        # How right f is on the example that is to be forgotten, in units of the largest ‖change of f‖².
        own, rival = 0.0, 0.0
        if len(C) == 1:
            for j in range(p):
                own += C[0, j] * K[oldest, j]
            own = own if codes[oldest] == 1 else -own
        else:
            for j in range(p):
                own += C[codes[oldest], j] * K[oldest, j]
            for j in range(p):
                rival += C[others[oldest], j] * K[oldest, j]
        unit = factor * numbers[LARGEST]
        mu = (own - rival) / unit if unit > 0 else 0.0
        # The largest shrink ≤ 1 whose loss Ψ = (φσ)² + 2φσ − 2φσ·φμ does not exceed what is left to be spent.
        s = sigma[oldest]
        a, b, c = s * s - 2.0 * s * mu, 2.0 * s, numbers[SPENT] - SHARE * numbers[MISTAKES]
        shrink = 1.0
        if a + b + c > 0:
            shrink = -2.0 * c / (b + np.sqrt(b * b - 4.0 * a * c))
        numbers[SPENT] += a * shrink * shrink + b * shrink
        if shrink < 1:
            for r in range(len(C)):
                for j in range(p):
                    C[r, j] *= shrink
            for j in range(p):
                sigma[j] *= shrink
        for r in range(len(C)):
            C[r, oldest] = 0.0
        sigma[oldest] = 0.0
    return head, held, mistakes
