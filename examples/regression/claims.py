"""
Insurance claims: counts with an exposure
=========================================

The number of claims of a policy depends on the driver's age, and on how long the policy was in force: its *exposure*.
Poisson regression models the number of claims per year. Here it is log-linear, with splines, and in the space of a
kernel.

The 30 000 policies are simulated, so the true frequency is known: young drivers have many claims, and old ones somewhat
more than those in between.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import mean_poisson_deviance
from sklearn.preprocessing import SplineTransformer

import mercer as mc

# %%
# Policies of drivers from 18 to 90, insured for up to a year.

rng = np.random.default_rng(0)
n = 30_000
age = np.minimum(18 + rng.gamma(2.5, 10.0, n), 90)
exposure = rng.uniform(0.05, 1.0, n)


def frequency(age: np.ndarray) -> np.ndarray:
    """Claims per year."""
    return 0.06 + 0.35 * np.exp(-(age - 18) / 6) + 0.06 / (1 + np.exp(-(age - 75) / 4))


claims = rng.poisson(frequency(age) * exposure).astype(float)
X = age[:, None]
train, test = slice(0, 22_500), slice(22_500, None)
print(f"{n} policies, {claims.sum():.0f} claims in {exposure.sum():.0f} years")

# %%
# Three models, judged on policies that were held out. The deviance of a constant frequency is the baseline.

models = {
    "log-linear": mc.GLM(family="poisson"),
    "splines": mc.GLM(SplineTransformer(9, knots="quantile", include_bias=False), family="poisson", alpha=1e-2),
    "Gaussian kernel": mc.KernelGLM(mc.Gaussian(8.0), family="poisson", alpha=0.1, n_centers=40, centers="kmeans"),
}
rate, weight = claims[test] / exposure[test], exposure[test]
constant = np.full(len(rate), claims[train].sum() / exposure[train].sum())
print(f"{'constant':>16}: deviance {mean_poisson_deviance(rate, constant, sample_weight=weight):.4f}")
for name, model in models.items():
    model.fit(X[train], claims[train], exposure=exposure[train])
    deviance = mean_poisson_deviance(rate, model.predict(X[test]), sample_weight=weight)
    print(f"{name:>16}: deviance {deviance:.4f}")

# %%
# The straight line (in the logarithm) cannot follow the curve; the kernel follows it without knots to place.

z = np.linspace(18, 90, 300)[:, None]
with mc.plot.style() as colours:
    figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    axis.plot(z, frequency(z), color=colours.ink, lw=1.2, ls="--", label="truth")
    for (name, model), color in zip(models.items(), (colours.green, colours.gold, colours.blue)):
        axis.fill_between(z[:, 0], *model.mean_interval(z, 0.95).T, color=color, alpha=0.18, lw=0)
        axis.plot(z, model.predict(z), color=color, lw=2, label=f"{name}, 95 % band")
    axis.set(xlabel="driver's age (years)", ylabel="claims per year", ylim=(0, 0.5))
    axis.legend()
plt.show()

# %%
# The model also predicts counts of new policies, with intervals. Here, the claims of all held-out policies of each age.

kernel = models["Gaussian kernel"]
whole = age[test].astype(int)
ages = np.unique(whole)
years = np.array([exposure[test][whole == one].sum() for one in ages])
counted = np.array([claims[test][whole == one].sum() for one in ages])
ends = kernel.predict_interval(ages[:, None] + 0.5, 0.9, exposure=years)
inside = (ends[:, 0] <= counted) & (counted <= ends[:, 1])
print(f"{inside.sum()} of {len(ages)} ages are inside their 90 % interval")
with mc.plot.style() as colours:
    figure, axis = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    axis.fill_between(ages, *ends.T, color=colours.blue, alpha=0.2, lw=0, step="mid", label="90 % interval")
    axis.plot(ages, counted, ".", color=colours.ink, ms=6, label="claims")
    axis.set(xlabel="driver's age (years)", ylabel="claims of held-out policies")
    axis.legend()
plt.show()
