"""Σ wᵢ loss(yᵢ, f(xᵢ) + oᵢ) + ½ alpha ‖f‖² with a smooth loss: its value, gradient and curvature in the space of f.

The gradient at f is the function representer(w∘loss') + alpha f, and the second derivative takes a function v to
representer(w∘loss''∘v) + alpha v: each costs one representer, and a value along a line costs only n values of the
loss. At the minimum f = −representer(w∘loss')/alpha: with a Gram matrix cᵢ = −wᵢ loss'(yᵢ, fᵢ)/alpha.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.problems.losses import Loss, Terms
from mercer.problems.spaces import Element, FunctionSpace

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """The objective at a function.

    Attributes
    ----------
    at : Element
        The function.
    value : float
        The objective.
    terms : Terms
        Of the loss, row by row.
    gradient : Element
        The function whose inner product with a direction is the derivative along it.
    """

    at: Element
    value: float
    terms: Terms
    gradient: Element


@dataclass(frozen=True, eq=False)
class Line:
    """The objective along f + step·d. Only the loss is computed anew, for O(n) a step."""

    risk: Risk
    start: Element
    direction: Element
    penalties: tuple[float, float, float]  # ‖f‖², ⟨f, d⟩ and ‖d‖² of the penalised parts

    def value(self, step: float) -> float:
        """The objective there; ∞ if the loss is not defined."""
        values = self.start.values + step * self.direction.values
        loss = self.risk.total(values)
        a, b, c = self.penalties
        total = loss + 0.5 * self.risk.alpha * max(a + step * (2.0 * b + step * c), 0.0)
        return total if np.isfinite(total) else np.inf

    def slope(self, step: float) -> float:
        """Its derivative by the step there."""
        values = self.start.values + step * self.direction.values
        R = self.risk.pull(values)
        _, b, c = self.penalties
        return float(np.vdot(R, self.direction.values)) + self.risk.alpha * (b + step * c)


@dataclass(frozen=True, eq=False)
class Risk:
    """Σ wᵢ loss(yᵢ, f(xᵢ) + oᵢ) + ½ alpha ‖f‖² over a space of functions.

    Attributes
    ----------
    space : FunctionSpace
        The functions.
    loss : Loss
        Of the values, smooth.
    y : array
        Targets, shape (n,), or class numbers.
    alpha : float
        ≥ 0.
    weights : array or None
        w > 0, shape (n,), or None if all are one.
    offset : array or None
        o, shape (n,), or None.
    """

    space: FunctionSpace
    loss: Loss
    y: NDArray[np.float64] | NDArray[np.int64]
    alpha: float
    weights: Matrix | None = None
    offset: Matrix | None = None

    def eta(self, values: Matrix) -> Matrix:
        """f + o."""
        return values if self.offset is None else values + self.offset[:, None]

    def total(self, values: Matrix) -> float:
        """Σ w∘loss."""
        losses = self.loss.value(self.y, self.eta(values))
        return float(losses.sum() if self.weights is None else self.weights @ losses)

    def pull(self, values: Matrix) -> Matrix:
        """w∘loss', shape (n, t)."""
        return self._weighted(self.loss.terms(self.y, self.eta(values)).gradient)

    def at(self, u: Element) -> State:
        """Value and gradient at a function."""
        terms = self.loss.terms(self.y, self.eta(u.values))
        loss = float(terms.value.sum() if self.weights is None else self.weights @ terms.value)
        value = loss + 0.5 * self.alpha * self.space.squared_norm(u)
        gradient = self.space.representer(self._weighted(terms.gradient))
        if self.alpha:
            gradient = gradient.plus(self.alpha, self.space.penalised(u))
        return State(u, value, terms, gradient)

    def curve(self, state: State, v: Element) -> Element:
        """The second derivative at a state, applied to v, without a matrix; Fisher's if the loss is not convex."""
        terms, w, convex = state.terms, self.weights, self.loss.convex

        def second(rows: slice, V: Matrix) -> Matrix:
            R = terms.curve(V, rows) if convex else terms.fisher[rows] * V
            return R if w is None else w[rows, None] * R

        curved = self.space.normal(v, second)
        return curved.plus(self.alpha, self.space.penalised(v)) if self.alpha else curved

    def curvature(self, state: State) -> Matrix:
        """w∘loss'' ≥ 0 of every row, shape (n,): with several columns the mean of its diagonal."""
        return self._weighted(state.terms.observed if self.loss.convex else state.terms.fisher).mean(axis=1)

    def line(self, u: Element, d: Element) -> Line:
        """The objective along u + step·d."""
        inside = self.space.penalised
        p, q = inside(u), inside(d)
        inner = self.space.inner
        return Line(self, u, d, (inner(p, p), inner(p, q), inner(q, q)) if self.alpha else (0.0, 0.0, 0.0))

    def restrict(self, index: NDArray[np.int64]) -> Risk:
        """The same with some of the rows, scaled up to all of them."""
        n, factor = len(self.y), len(self.y) / len(index)
        w = np.full(len(index), factor) if self.weights is None else self.weights[index] * factor
        if self.weights is not None:
            w *= self.weights.sum() / n / self.weights[index].mean()
        return replace(
            self,
            space=self.space.restrict(index),
            y=self.y[index],
            weights=w,
            offset=None if self.offset is None else self.offset[index],
        )

    def _weighted(self, R: Matrix) -> Matrix:
        return R if self.weights is None else self.weights[:, None] * R
