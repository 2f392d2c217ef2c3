"""Five classic data sets for smoothers: motorcycle, LIDAR, ethanol, Old Faithful, and the durations of the geyser.

Run `python examples/classic_smoothing.py --data DIR` (or set MERCER_DATA) with mcycle.csv.gz, lidar.csv.gz,
ethanol.csv.gz, faithful.csv.gz and geyser.csv.gz in DIR, exported from R's packages MASS, SemiPar, lattice and
datasets. The picture is written to out/classic_smoothing.png.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import matplotlib
import numpy as np

import mercer as mc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, RED, BLUE, GREEN = "#222222", "#c0392b", "#2471a3", "#1e8449"


def columns(folder: Path, name: str) -> np.ndarray:
    if not (folder / f"{name}.csv.gz").exists():
        raise SystemExit(f"{folder} must contain {name}.csv.gz. See the beginning of this file.")
    return np.genfromtxt(folder / f"{name}.csv.gz", delimiter=",", names=True)


def regression(axis: plt.Axes, x: np.ndarray, y: np.ndarray, title: str) -> None:
    """Local parabolas, and a band for new values whose width follows the noise."""
    X, z = x[:, None], np.linspace(x.min(), x.max(), 400)[:, None]
    model = mc.LocalRegression(degree=2, bandwidth="loo").fit(X, y)
    density = mc.ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(X, y)
    axis.fill_between(
        z[:, 0], *density.predict_interval(z, 0.9).T, color=BLUE, alpha=0.12, lw=0, label="90 % of new values"
    )
    axis.fill_between(z[:, 0], *model.bands(z, 0.95).T, color=RED, alpha=0.25, lw=0, label="95 % band of the mean")
    axis.plot(x, y, ".", color=INK, ms=4, alpha=0.7)
    axis.plot(z, model.predict(z), color=RED, lw=2, label="local parabolas")
    width = float(np.ravel(model.bandwidth_)[0])
    axis.set_title(f"{title}: width {width:.3g}, LOO R² = {model.loo_score_:.2f}")
    print(f"{title:>12}: width {width:.4g}, leave-one-out R² {model.loo_score_:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with the five files")
    options = parser.parse_args()
    if not options.data:
        parser.error("name the folder with the data: use --data DIR or set MERCER_DATA")
    folder = Path(options.data)
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK})
    figure, axes = plt.subplots(2, 3, figsize=(15, 8.2), layout="constrained")

    cycle, lidar, ethanol = (columns(folder, name) for name in ("mcycle", "lidar", "ethanol"))
    regression(axes[0, 0], cycle["times"], cycle["accel"], "motorcycle")
    axes[0, 0].set(xlabel="ms after the impact", ylabel="head acceleration (g)")
    axes[0, 0].legend(fontsize=8)
    regression(axes[0, 1], lidar["range"], lidar["logratio"], "LIDAR")
    axes[0, 1].set(xlabel="range (m)", ylabel="log ratio")

    X = np.column_stack([ethanol["C"], ethanol["E"]])
    model = mc.LocalRegression(degree=2, bandwidth="loo").fit(X, ethanol["NOx"])
    side = np.linspace(7, 18.5, 80), np.linspace(0.52, 1.25, 120)
    plane = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
    axis = axes[0, 2]
    image = axis.contourf(*side, model.predict(plane).reshape(120, 80), levels=14, cmap="viridis")
    figure.colorbar(image, ax=axis, label="NOx")
    axis.plot(*X.T, ".", color="white", ms=5)
    axis.set(xlabel="compression C", ylabel="equivalence E")
    axis.set_title(
        f"ethanol: widths {model.bandwidth_[0]:.3g}, {model.bandwidth_[1]:.2g}, LOO R² = {model.loo_score_:.2f}"
    )
    print(f"     ethanol: widths {model.bandwidth_}, leave-one-out R² {model.loo_score_:.3f}")

    faithful, geyser = columns(folder, "faithful"), columns(folder, "geyser")
    axis = axes[1, 0]
    for rule, color in (("isj", RED), ("silverman", BLUE), ("loo", GREEN)):
        density = mc.ParzenDensity(bandwidth=rule).fit(faithful["eruptions"][:, None])
        z = np.linspace(1, 6, 400)
        width = float(np.ravel(density.bandwidth_)[0])
        axis.plot(z, density.pdf(z[:, None]), color=color, lw=2, label=f"{rule}: {width:.2g}")
    axis.plot(faithful["eruptions"], np.full(len(faithful), -0.012), "|", color=INK, ms=7, alpha=0.4)
    axis.set(xlabel="eruption (min)", ylabel="density", title="Old Faithful: eruptions, widths by three rules")
    axis.set_ylim(-0.03, 0.78)
    axis.legend(fontsize=8, loc="upper center")

    axis = axes[1, 1]
    both = np.column_stack([faithful["eruptions"], faithful["waiting"]])
    density = mc.ParzenDensity(bandwidth="loo").fit(both)
    side = np.linspace(1, 5.8, 120), np.linspace(38, 102, 120)
    plane = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
    axis.contourf(*side, density.pdf(plane).reshape(120, 120), levels=12, cmap="Blues")
    axis.plot(*both.T, ".", color=INK, ms=3, alpha=0.5)
    axis.set(xlabel="eruption (min)", ylabel="waiting (min)", title="Old Faithful: eruptions and waiting")

    axis = axes[1, 2]
    before, after = geyser["duration"][:-1], geyser["waiting"][1:]
    model = mc.ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(before[:, None], after)
    z = np.linspace(before.min(), before.max(), 200)[:, None]
    levels = np.linspace(40, 110, 160)
    surface = np.array([model.pdf(z, np.full(len(z), level)) for level in levels])
    axis.pcolormesh(z[:, 0], levels, surface, cmap="Greys", shading="auto", rasterized=True)
    axis.plot(before, after, ".", color=BLUE, ms=3, alpha=0.5)
    axis.plot(z, model.predict(z), color=RED, lw=2, label="mean")
    axis.plot(z, model.predict_interval(z, 0.9), color=RED, lw=1, ls=":")
    axis.set(
        xlabel="last duration (min)", ylabel="next waiting (min)", title="geyser: the density of the next waiting time"
    )
    axis.legend(fontsize=8)
    path = Path("out/classic_smoothing.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"The picture is in {path}")


if __name__ == "__main__":
    main()
