"""
Mercer in one minute
====================

A proof, a counterexample, a function in the Hilbert space, and two rings that no line separates.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

# %%
# An expression, and why it is a kernel
# -------------------------------------

k = 0.5 * mc.Gaussian(sigma=0.15) + mc.Polynomial(3, c=1.0) * mc.Linear()
print(k.proof())

# %%
# A popular "kernel" that is not a kernel
# ---------------------------------------
# The search finds points whose matrix has a negative eigenvalue, and confirms it in exact arithmetic.

tanh = mc.Tanh(scale=1.0, offset=-1.0)
print(mc.refute(tanh, dim=2))

# %%
# On data the difference shows in the eigenvalues: a kernel has no negative ones.

sample = np.random.default_rng(0).normal(size=(24, 2))
with mc.plot.style() as colours:
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    curves = (mc.Gaussian(1.0), colours.blue, "Gaussian: all ≥ 0"), (tanh, colours.red, "tanh: some negative")
    for kernel, color, name in curves:
        values = np.linalg.eigvalsh(kernel(sample))[::-1]
        axis.plot(np.arange(1, 25), values, "o-", color=color, ms=4, lw=1, label=name)
    axis.axhline(0, color=colours.ink, lw=0.8)
    axis.set_yscale("symlog", linthresh=1e-2)
    axis.set(title="Eigenvalues of two Gram matrices", xlabel="rank", ylabel="eigenvalue (log, linear near 0)")
    axis.legend()
plt.show()

# %%
# A function in the Hilbert space
# -------------------------------
# A model is a function f = Σ cᵢ k(xᵢ, ·). Its width and its penalty are those with the smallest leave-one-out error.

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(0, 1, 40))
y = np.sin(2 * np.pi * x) + rng.normal(scale=0.25, size=40)
model = mc.tune(mc.KernelRidge(mc.Gaussian(1.0)), x[:, None], y)
f = model.function_
print(f"chosen: {model.tuning_}")
at = mc.Expansion.at(f.kernel, [0.3])
print(f"reproducing property: ⟨f, k(0.3, ·)⟩ = {f.inner(at):.6f} = f(0.3) = {f([[0.3]])[0]:.6f}")

# %%
t = np.linspace(0, 1, 400)[:, None]
with mc.plot.style() as colours:
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    ends = model.predict_interval(t, 0.9)
    axis.fill_between(t[:, 0], *ends.T, color=colours.red, alpha=0.12, lw=0, label="90 % interval")
    axis.plot(t, f.kernel(t, x[:, None]) * f.coef, color=colours.grey, lw=0.5, alpha=0.6)
    axis.plot(t, np.sin(2 * np.pi * t), color=colours.ink, lw=1.2, ls="--", label="sine")
    axis.plot(x, y, "o", color=colours.ink, ms=3.5, label="data")
    axis.plot(t, f(t), color=colours.red, lw=2.2, label="f = Σ cᵢ k(xᵢ, ·)")
    axis.set(title="A function, and its terms in grey", xlabel="x", ylabel="y", ylim=(-1.9, 1.9))
    axis.legend(fontsize=8, loc="lower left")
plt.show()

# %%
# Two rings
# ---------
# No line separates them; with the feature x₁² + x₂² a plane does.

angle, radius = rng.uniform(0, 2 * np.pi, 160), np.repeat([1.0, 2.2], 80) + rng.normal(scale=0.18, size=160)
rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
label = np.repeat(["inner", "outer"], 80)
raised = mc.FromFeatures(lambda X: np.column_stack([X, (X**2).sum(axis=1)]))
for name, kernel in (("⟨x, z⟩", mc.Linear()), ("with x₁² + x₂²", raised)):
    machine = mc.SVC(kernel, C=10.0).fit(rings, label)
    print(f"{name:>16}: {machine.score(rings, label):.0%} of the points on the correct side")
with mc.plot.style():
    mc.plot.DecisionSurface.from_estimator(machine, rings, label)
plt.show()
