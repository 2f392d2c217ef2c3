"""From under- to overfitting by degree and by width, judged by the closed-form leave-one-out error (lecture 002).

Run `python examples/under_and_overfitting.py`; the picture is written to out/under_and_overfitting.png.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import mercer as mc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, GREY, RED, BLUE, GREEN = "#222222", "#9aa0a6", "#c0392b", "#2471a3", "#1e8449"
RNG = np.random.default_rng(3)
X = np.linspace(0, 1, 50)[:, None]
Z = np.linspace(0, 1, 500)[:, None]


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * x[:, 0]) + 0.5 * np.cos(5 * np.pi * x[:, 0])


Y = truth(X) + RNG.normal(0, 0.3, len(X))


def degree(p: int) -> mc.KernelRidge:
    """A polynomial of degree p with a small penalty; [0, 1] is mapped to [−1, 1] first."""
    return mc.KernelRidge(mc.Polynomial(p, c=1.0).after(lambda x: 2 * x - 1), alpha=1e-3)


def width(sigma: float) -> mc.KernelRidge:
    """A Gaussian of width σ: a small one follows every point, a large one is flat (lecture 002's γ is σ²)."""
    return mc.KernelRidge(mc.Gaussian(sigma), alpha=1e-2)


def main() -> None:
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK})
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 7.4), layout="constrained")
    families = (
        ("degree", degree, np.arange(1, 26), (1, 25)),
        ("width σ", width, np.geomspace(0.004, 2.0, 40), (2.0, 0.004)),
    )
    for row, (name, model, values, (under, over)) in enumerate(families):
        fits = [model(v.item()).fit(X, Y) for v in values]
        left_out = np.array([np.mean((f.loo_predictions_ - Y) ** 2) for f in fits])
        training = np.array([np.mean((f.predict(X) - Y) ** 2) for f in fits])
        fresh = np.array([np.mean((f.predict(Z) - truth(Z)) ** 2) + 0.3**2 for f in fits])
        best = values[np.argmin(left_out)].item()

        error, curves = axes[row, 0], axes[row, 1]
        error.plot(values, training, color=BLUE, lw=1.5, label="training error")
        error.plot(values, left_out, color=RED, lw=2, label="leave-one-out, in closed form")
        error.plot(values, fresh, color=INK, lw=1.2, ls="--", label="error on new data")
        error.axvline(best, color=GREY, lw=1)
        error.set(title=f"Error by {name}", xlabel=name, ylabel="mean squared error", yscale="log")
        error.set(ylim=(0.01, 2.5))
        error.legend(framealpha=1, edgecolor="white", loc="lower left")
        if row:
            error.set(xscale="log")
            error.invert_xaxis()

        curves.plot(X, Y, "o", color=INK, ms=3.5)
        curves.plot(Z, truth(Z), color=INK, lw=1.2, ls="--", label="truth")
        for value, color, word in ((under, BLUE, "underfits"), (best, GREEN, "best"), (over, RED, "overfits")):
            curves.plot(Z, model(value).fit(X, Y).predict(Z), color=color, lw=1.8, label=f"{name} {value:.3g}: {word}")
        curves.set(title=f"Three fits by {name}", xlabel="x", ylabel="y", ylim=(-2.6, 2.6))
        curves.legend(frameon=False, fontsize=8, ncols=2, loc="lower left")
        print(f"best {name} by leave-one-out: {best:.3g}")
    path = Path("out/under_and_overfitting.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"The picture is in {path}")


if __name__ == "__main__":
    main()
