"""
Which separating line does each method find?
============================================

The separating line of each method: perceptron, least squares, logistic regression, SVM (lecture 003).

Many lines separate the same points. Only the SVM chooses one by a criterion of its own: the line farthest from the
points. Outliers on the correct side move the line of least squares, but not that of the SVM.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

# %%
# Each method gives a weight vector and an intercept, which are a line in the plane.


def lines(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, float, str]]:
    """w, b and colour of the line of every method."""
    parameters = {}
    for name, model, color in (
        ("perceptron", mc.Perceptron(max_iter=1000, shuffle=True, random_state=1), colours.green),
        ("logistic regression", mc.LogisticRegression(alpha=1.0), colours.gold),
    ):
        model.fit(X, y)
        parameters[name] = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), color
    least = mc.Ridge(alpha=0.0).fit(X, y)
    parameters["least squares"] = least.coef_, least.intercept_, colours.blue
    svm = mc.SVC(mc.Linear(), C=1e3, tol=1e-6).fit(X, y)
    parameters["SVM"] = svm.function_.weights(), float(np.ravel(svm.intercept_)[0]), colours.red
    return parameters


# %%
# Two classes that many lines separate, and the same with six far points of one class.

rng = np.random.default_rng(7)
X = np.vstack([rng.normal((-1.4, 0.0), 0.5, (18, 2)), rng.normal((1.4, 0.6), 0.5, (18, 2))])
y = np.repeat([-1.0, 1.0], 18)
far = np.vstack([X, rng.normal((9.0, -6.0), 0.3, (6, 2))]), np.append(y, np.ones(6))

# %%
# Left, every line separates the classes. Right, the far points turn the line of least
# squares, and that of the support vector machine stays.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    t = np.linspace(-20, 20, 2)
    for axis, (A, label), title in zip(
        axes, ((X, y), far), ("Separable points", "Six more points, far on the correct side")
    ):
        axis.scatter(
            *A.T, s=26, color=np.where(label > 0, colours.red, colours.blue), edgecolor=colours.ink, lw=0.5, zorder=3
        )
        for name, (w, b, color) in lines(A, label).items():
            wrong = int((np.sign(A @ w + b) != label).sum())
            margin = float((label * (A @ w + b)).min() / np.linalg.norm(w))
            axis.plot(t, -(w[0] * t + b) / w[1], color=color, lw=2, label=f"{name}: margin {margin:.2f}, {wrong} wrong")
            print(f"{title}: {name:>20}: margin {margin:5.2f}, {wrong} on the wrong side")
        reach = np.abs(A).max(axis=0) + 0.8
        axis.set(
            title=title, xlim=(-3.4, reach[0]), ylim=(-reach[1] if len(A) > 36 else -2.2, 3.2), xlabel="x₁", ylabel="x₂"
        )
        axis.legend(framealpha=1, edgecolor="white", fontsize=8, loc="upper right")
plt.show()
