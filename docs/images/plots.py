"""Draw docs/images/plots.png, the pictures of docs/plots.md on one sheet: `.venv/bin/python docs/images/plots.py`."""

from pathlib import Path

import numpy as np

import mercer as mc


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from PIL import Image  # comes with matplotlib
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(3)
    x = np.linspace(-1, 1, 50)[:, None]
    t = np.sin(np.pi * x[:, 0]) + 0.5 * np.cos(2.5 * np.pi * x[:, 0]) + 0.3 * rng.normal(size=50)
    wine, cancer = load_wine(), load_breast_cancer()
    W, C = (StandardScaler().fit_transform(data.data) for data in (wine, cancer))
    D, y = load_diabetes(return_X_y=True)
    rows = rng.permutation(len(y))
    D, y = StandardScaler().fit_transform(D)[rows], y[rows]
    ridge = mc.KernelRidge(mc.Gaussian(4.0), alpha="loo", fit_intercept=True).fit(D[:300], y[:300])
    logistic = mc.KernelLogisticRegression(mc.Gaussian(6.0), alpha=0.1).fit(C[::2], cancer.target[::2])
    smooth = mc.GaussianProcessRegressor(1.0 * mc.Gaussian(0.3), alpha=0.09).fit(x, t)
    two = W[:, [6, 12]]
    machine = mc.SVC(mc.Gaussian(1.0), C=1.0).fit(two, wine.target == 0)
    polynomial = mc.KernelRidge(mc.Polynomial(1, c=1.0), alpha=1e-3)
    degrees = polynomial, x, t, "kernel__degree", range(1, 21)
    solvers = {s: mc.LogisticRegression(solver=s).fit(C, cancer.target) for s in ("lbfgs", "newton")}
    shapes = [mc.Gaussian(1.0), mc.Laplacian(1.0), mc.Matern(1.0)]
    with mc.plot.style("light"):
        figure, axes = plt.subplots(3, 4, figsize=(17, 12), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
        for ax, draw in zip(
            axes.flat,
            [
                lambda ax: mc.plot.RegressionBands.from_estimator(smooth, x, t, coverage=(0.5, 0.9), ax=ax),
                lambda ax: mc.plot.DecisionSurface.from_estimator(machine, two, wine.target == 0, ax=ax),
                lambda ax: mc.plot.Residuals.from_estimator(ridge, D[:300], y[:300], left_out=True, ax=ax),
                lambda ax: mc.plot.Coverage.from_estimator(ridge, D[300:], y[300:], ax=ax),
                lambda ax: mc.plot.Reliability.from_estimator(logistic, C[1::2], cancer.target[1::2], ax=ax),
                lambda ax: mc.plot.ValidationCurve.from_estimator(*degrees, ax=ax),
                lambda ax: mc.plot.LearningCurve.from_estimator(ridge, D, y, ax=ax),
                lambda ax: mc.plot.TuningPath.from_estimator(ridge, ax=ax),
                lambda ax: mc.plot.GramHeatMap.from_kernel(
                    mc.Gaussian(2.0), W, wine.target_names[wine.target], ax=ax, title=""
                ),
                lambda ax: mc.plot.EigenvalueSpectrum.from_estimator(ridge, D[:300], ax=ax, title=""),
                lambda ax: mc.plot.KernelShape.from_kernel(shapes, ax=ax),
                lambda ax: mc.plot.Convergence.from_estimators(solvers, ax=ax),
            ],
        ):
            ax.set_title(type(draw(ax)).__name__, weight="bold")
        place = Path(__file__).with_suffix(".png")
        figure.savefig(place, dpi=70)
    Image.open(place).convert("RGB").quantize(200, method=Image.Quantize.FASTOCTREE).save(place, optimize=True)


if __name__ == "__main__":
    main()
