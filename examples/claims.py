"""Motor insurance claims: Poisson regression with exposures, linear, with splines, and in the space of a kernel.

Run `python examples/claims.py --data DIR` (or set MERCER_DATA) with freMTPL2freq.parquet in DIR: 678 013 French
third-party policies with their claims and the fraction of a year they were insured for (Noll, Salzmann and Wüthrich
2020; OpenML 41214). The picture is written to out/claims.png.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.metrics import mean_poisson_deviance
from sklearn.preprocessing import SplineTransformer

import mercer as mc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, RED, BLUE, GREEN = "#222222", "#c0392b", "#2471a3", "#1e8449"
OLDEST = 90


def policies(folder: Path) -> tuple[Any, np.ndarray, np.ndarray]:
    """A frame of columns, the claims (at most four per policy) and the exposures (at most a year)."""
    import polars as pl

    path = folder / "freMTPL2freq.parquet"
    if not path.exists():
        raise SystemExit(f"{folder} must contain freMTPL2freq.parquet. See the beginning of this file.")
    table = pl.read_parquet(path)
    frame = table.select(
        pl.col("DrivAge").clip(upper_bound=OLDEST).alias("driver's age"),
        pl.col("BonusMalus").clip(upper_bound=150).alias("bonus-malus"),
        pl.col("Density").log().alias("log density"),
        pl.col("VehAge").clip(upper_bound=20).alias("car's age"),
        pl.col("VehPower").alias("car's power"),
        (pl.col("VehGas") == "Diesel").alias("diesel"),
    ).cast(pl.Float64)
    return frame, table["ClaimNb"].clip(0, 4).to_numpy().astype(float), table["Exposure"].clip(0, 1).to_numpy()


def fitted(name: str, model: Any, X: Any, y: np.ndarray, exposure: np.ndarray, test: np.ndarray) -> Any:
    """Fit the training rows, and print how well the test rows are predicted."""
    rest, test = np.flatnonzero(~test), np.flatnonzero(test)
    start = time.perf_counter()
    model.fit(X[rest], y[rest], exposure=exposure[rest])
    seconds = time.perf_counter() - start
    frequency = model.predict(X[test])
    deviance = mean_poisson_deviance(y[test] / exposure[test], frequency, sample_weight=exposure[test])
    score = model.score(X[test], y[test], exposure=exposure[test])
    print(f"{name:>30}: deviance {deviance:.4f}, D² {100 * score:.2f} % ({seconds:.1f} s, {model.n_iter_} steps)")
    return model


def by_age(ages: np.ndarray, y: np.ndarray, exposure: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ages, and the claims and years insured at each."""
    index = ages.astype(int)
    years = np.bincount(index, exposure)
    some = np.flatnonzero(years)
    return some.astype(float), np.bincount(index, y)[some], years[some]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with freMTPL2freq.parquet")
    parser.add_argument(
        "--centers", type=int, default=150, help="number of Nyström centres for the model of all columns"
    )
    options = parser.parse_args()
    if not options.data:
        parser.error("name the folder with the data: use --data DIR or set MERCER_DATA")
    frame, y, exposure = policies(Path(options.data))
    X = frame.to_numpy()
    test = np.random.default_rng(0).random(len(y)) < 0.25
    print(
        f"{len(y)} policies, {y.sum():.0f} claims in {exposure.sum():.0f} years; a quarter of the policies is held out"
    )
    null = np.full(test.sum(), y[~test].sum() / exposure[~test].sum())
    deviance = mean_poisson_deviance(y[test] / exposure[test], null, sample_weight=exposure[test])
    print(f"{'constant':>30}: deviance {deviance:.4f}")

    print("\nThe driver's age alone")
    age = X[:, :1]
    straight = fitted("log-linear", mc.GLM(family="poisson"), age, y, exposure, test)
    splines = SplineTransformer(9, knots="quantile", include_bias=False)
    bent = fitted("splines", mc.GLM(splines, family="poisson", alpha=1e-2), age, y, exposure, test)
    smooth = mc.KernelGLM(mc.Gaussian(8.0), family="poisson", alpha=1.0, n_centers=40, centers="kmeans")
    smooth = fitted("Gaussian kernel of 8 years", smooth, age, y, exposure, test)

    print("\nAll columns")
    linear = fitted("log-linear", mc.GLM(family="poisson"), frame, y, exposure, test)
    Z = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    curved = mc.KernelGLM(mc.Gaussian(3.0), family="poisson", alpha=1.0, n_centers=options.centers)
    curved = fitted(f"Gaussian kernel, {options.centers} centres", curved, Z, y, exposure, test)
    print(f"\n{linear.summary()}\n")
    for j, name in enumerate(frame.columns):
        low, high = np.exp(linear.confidence_intervals()[j] * X[~test, j].std())
        print(f"{name:>14}: one standard deviation more multiplies the frequency by {low:.3f} to {high:.3f}")
    print(f"Pearson's χ² is {linear.pearson_chi2_ / (~test).sum():.2f} per row; a Poisson distribution would give 1")

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK})
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    z = np.linspace(18, OLDEST, 300)[:, None]
    ages, claims, years = by_age(X[~test, 0], y[~test], exposure[~test])
    axis = axes[0]
    axis.scatter(
        ages, claims / years, s=4 + years / 80, color=INK, alpha=0.35, lw=0, label="observed; area: years insured"
    )
    for model, color, name in (
        (straight, GREEN, "log-linear"),
        (bent, RED, "splines"),
        (smooth, BLUE, "Gaussian kernel"),
    ):
        axis.fill_between(z[:, 0], *model.mean_interval(z, 0.95).T, color=color, alpha=0.18, lw=0)
        axis.plot(z, model.predict(z), color=color, lw=2, label=f"{name}, 95 % band")
    axis.set(xlabel="driver's age", ylabel="claims per year", ylim=(0.05, 0.34), title="frequency by age")
    axis.legend(fontsize=8)

    # Held-out policies: their claims at each age, and the interval that the model predicts for them
    ages, claims, years = by_age(X[test, 0], y[test], exposure[test])
    ends = smooth.predict_interval(ages[:, None], 0.9, exposure=years)
    inside = (ends[:, 0] <= claims) & (claims <= ends[:, 1])
    axis = axes[1]
    axis.fill_between(ages, *ends.T, color=BLUE, alpha=0.2, lw=0, step="mid", label="90 % interval (kernel)")
    for some, color in ((inside, INK), (~inside, RED)):
        axis.plot(ages[some], claims[some], ".", color=color, ms=6)
    axis.set(xlabel="driver's age", ylabel="claims of the test policies")
    axis.set_title(f"held-out claims by age: {inside.sum()} of {len(ages)} ages inside")
    axis.legend(fontsize=8)
    print(f"\nHeld-out claims by age: {inside.mean():.0%} of the ages are inside their 90 % interval")

    axis = axes[2]
    for model, points, color, name in ((linear, frame, GREEN, "log-linear"), (curved, Z, BLUE, "Gaussian kernel")):
        predicted = model.predict(points[np.flatnonzero(test)])
        order = np.argsort(predicted)
        share = np.cumsum(exposure[test][order]) / exposure[test].sum()
        groups = np.split(order, np.searchsorted(share, np.arange(0.05, 0.99, 0.05)))
        figures = [
            (
                np.average(predicted[g], weights=exposure[test][g]),
                y[test][g].sum() / exposure[test][g].sum(),
                np.sqrt(y[test][g].sum()) / exposure[test][g].sum(),
            )
            for g in groups
        ]
        x, observed, error = np.array(figures).T
        axis.errorbar(x, observed, 1.96 * error, fmt="o", color=color, ms=4, lw=1, label=f"{name}, all columns")
    axis.plot([0.04, 0.4], [0.04, 0.4], color=INK, lw=0.8, ls=":")
    axis.set(xlabel="predicted claims per year", ylabel="observed claims per year", xscale="log", yscale="log")
    ticks = [0.05, 0.1, 0.2, 0.4]
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
        one.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        one.set_minor_locator(matplotlib.ticker.NullLocator())
    axis.set_title("test policies in twenty groups by prediction")
    axis.legend(fontsize=8)
    path = Path("out/claims.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"The picture is in {path}")


if __name__ == "__main__":
    main()
