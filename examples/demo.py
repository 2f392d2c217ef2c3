"""Mercer in one minute: a proof, a counterexample, two fitted functions, and a picture.

Run `python examples/demo.py`; the picture is written to out/demo.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

import mercer as mc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, RED, BLUE, GREY = "#222222", "#c0392b", "#2471a3", "#b3b6b7"


def headline(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def main() -> None:
    rng = np.random.default_rng(4)

    headline("1. An expression, and why it is a kernel")
    k = 0.5 * mc.Gaussian(sigma=0.15) + mc.Polynomial(3, c=1.0) * mc.Linear()
    print(k.proof())

    headline("2. A popular 'kernel' that is not a kernel, and points that show it")
    tanh = mc.Tanh(scale=1.0, offset=-1.0)
    refutation = mc.refute(tanh, dim=2)
    print(refutation)

    headline("3. A function in the Hilbert space, fitted to a noisy sine")
    x = np.sort(rng.uniform(0, 1, 40))
    truth = lambda t: np.sin(2 * np.pi * t)  # noqa: E731
    y = truth(x) + rng.normal(scale=0.25, size=len(x))
    model = mc.tune(mc.KernelRidge(mc.Gaussian(1.0)), x[:, None], y)
    print(f"Width and penalty with the smallest leave-one-out error: {model.tuning_}.")
    f = model.function_
    grid = np.linspace(0, 1, 400)
    error = np.sqrt(np.mean((f(grid[:, None]) - truth(grid)) ** 2))
    print(f"f = Σ cᵢ k(xᵢ, ·) with {len(f)} terms, ‖f‖ = {f.norm():.2f}; its RMSE to the true sine is {error:.3f},")
    reproduced = f.inner(mc.Expansion.at(f.kernel, [0.3]))
    print("and the standard deviation of the noise is 0.25. The reproducing property holds:")
    print(f"⟨f, k(0.3, ·)⟩ = {reproduced:.6f} = f(0.3) = {f([[0.3]])[0]:.6f}.")

    headline("4. Two rings: no line separates them, but one more feature does")
    angle, radius = rng.uniform(0, 2 * np.pi, 160), np.repeat([1.0, 2.2], 80) + rng.normal(scale=0.18, size=160)
    rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    label = np.repeat([-1.0, 1.0], 80)
    raised = mc.FromFeatures(lambda X: np.column_stack([X, (X**2).sum(axis=1)])) + 1.0
    for name, kernel in (("⟨x, z⟩ + 1", mc.Linear() + 1.0), ("with x₁² + x₂²", raised)):
        correct = np.mean(np.sign(mc.KernelRidge(kernel, alpha=1e-3).fit(rings, label).predict(rings)) == label)
        print(f"{name:>16}: {correct:.0%} of the points on the right side")
    separating = mc.KernelRidge(raised, alpha=1e-3).fit(rings, label).function_

    picture(x, y, model, truth, rings, label, separating, tanh)


def picture(x, y, model, truth, rings, label, separating, tanh) -> None:
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK})
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.2), layout="constrained")

    t = np.linspace(0, 1, 400)[:, None]
    f = model.function_
    terms = f.kernel(t, x[:, None]) * f.coef
    axes[0].fill_between(t[:, 0], *model.predict_interval(t, 0.9).T, color=RED, alpha=0.12, lw=0, label="90 % interval")
    axes[0].plot(t, terms[:, :1], color=GREY, lw=0.6, label="terms cᵢ k(xᵢ, ·)")
    axes[0].plot(t, terms[:, 1:], color=GREY, lw=0.5, alpha=0.6)
    axes[0].plot(t, truth(t), color=INK, lw=1.2, ls="--", label="sine")
    axes[0].plot(x, y, "o", color=INK, ms=3.5, label="data")
    axes[0].plot(t, f(t), color=RED, lw=2.2, label="f = Σ cᵢ k(xᵢ, ·)")
    axes[0].set(title="A function in the Hilbert space", xlabel="x", ylabel="y", ylim=(-1.9, 1.9))
    axes[0].legend(frameon=False, fontsize=8, loc="lower left")

    side = np.linspace(-3, 3, 200)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    height = separating(plane).reshape(200, 200)
    axes[1].contourf(side, side, height, levels=[-1e9, 0, 1e9], colors=[BLUE, RED], alpha=0.12)
    axes[1].contour(side, side, height, levels=[0], colors=[INK], linewidths=1.2)
    for value, color, name in ((-1, BLUE, "inner ring"), (1, RED, "outer ring")):
        axes[1].plot(*rings[label == value].T, "o", ms=3.5, color=color, label=name)
    axes[1].legend(frameon=False, loc="upper right", fontsize=8)
    axes[1].set(title="Two rings, separated by x₁² + x₂²", xlabel="x₁", ylabel="x₂", aspect="equal")

    sample = np.random.default_rng(0).normal(size=(24, 2))
    for kernel, color, name in ((mc.Gaussian(1.0), BLUE, "Gaussian: all ≥ 0"), (tanh, RED, "tanh: some negative")):
        values = np.linalg.eigvalsh(kernel(sample))[::-1]
        axes[2].plot(np.arange(1, 25), values, "o-", color=color, ms=4, lw=1, label=name)
    axes[2].axhline(0, color=INK, lw=0.8)
    axes[2].set_yscale("symlog", linthresh=1e-2)
    axes[2].set(title="Eigenvalues of two Gram matrices", xlabel="rank", ylabel="eigenvalue (log, linear near 0)")
    axes[2].set(xlim=(0.3, 24.7), ylim=(-40, 40))
    axes[2].legend(frameon=False)

    path = Path("out/demo.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nThe picture is in {path}")


if __name__ == "__main__":
    main()
