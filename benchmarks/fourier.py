"""Kernel ridge on a grid of frequencies: one to three columns, 10⁵ to 10⁷ points, beside scikit-learn's Nystroem.

    python benchmarks/fourier.py                  # all sizes: some minutes on two cores
    python benchmarks/fourier.py --quick          # seconds, small sizes: does it run?
    python benchmarks/fourier.py --only 1e7       # rows whose name contains a word
    python benchmarks/fourier.py --data DIR       # house prices of California by place, beside the exact fit

The tables are in Markdown. Points are uniform in the unit cube, float64; the target is a sum of waves, of which the
shortest has a wavelength of about 0.3, with noise of standard deviation 0.3; alpha = 0.1. Every row is a process of its
own. The first fit compiles and is not measured; then seconds (of the clock, and of the processor: on a busy machine
only these can be compared) and the peak of memory beyond the data. "Error" is the root mean square difference to a
reference on 10 000 points, relative to the standard deviation of the reference. This is the same fit at a hundredth of
the tolerance or, for Matérn kernels, a tenth, with a larger preconditioner so that it converges; up to 8 000 points it
is the exact fit by a Cholesky factor.
scikit-learn's Nystroem + Ridge has the same kernel, penalty and reference.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import alone, compared, heading, machine, peak, table

ALPHA, TEST, FACTORED = 0.1, 10_000, 6_000
CASES = {
    "2 columns, Gaussian, 8e3": ("Gaussian(0.1)", 2, 8_000, 1e-4),
    "2 columns, Matérn 3/2, 8e3": ("Matern(0.1, nu=1.5)", 2, 8_000, 1e-3),
    "1 column, Matérn 1/2, 8e3": ("Matern(0.1, nu=0.5)", 1, 8_000, 1e-2),
    "1 column, Gaussian, 1e6": ("Gaussian(0.05)", 1, 1_000_000, 1e-4),
    "1 column, Matérn 3/2, 1e6": ("Matern(0.05, nu=1.5)", 1, 1_000_000, 1e-3),
    "2 columns, Gaussian, 1e5": ("Gaussian(0.1)", 2, 100_000, 1e-4),
    "2 columns, Gaussian, 1e6": ("Gaussian(0.1)", 2, 1_000_000, 1e-4),
    "2 columns, Gaussian, 1e7": ("Gaussian(0.1)", 2, 10_000_000, 1e-4),
    "2 columns, Matérn 3/2, 1e5": ("Matern(0.1, nu=1.5)", 2, 100_000, 1e-2),
    "2 columns, Matérn 3/2, 1e6": ("Matern(0.1, nu=1.5)", 2, 1_000_000, 1e-2),
    "2 columns, Matérn 3/2, 1e7": ("Matern(0.1, nu=1.5)", 2, 10_000_000, 1e-2),
    "3 columns, Gaussian, 1e6": ("Gaussian(0.3)", 3, 1_000_000, 1e-4),
}
PEERS = {"2 columns, Gaussian, 1e5": 500}
"""Rows with scikit-learn beside them, and the number of its components."""


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    y = np.sin(6 * X).sum(axis=1) + np.cos(20 * X[:, 0] * X[:, -1])
    y += 0.3 * rng.standard_normal(n)
    return X, y


def fitted(kernel: str, X: np.ndarray, y: np.ndarray, tol: float | None, solver: str = "fourier") -> Any:
    import mercer as mc

    k = eval(f"mc.{kernel}", {"mc": mc})
    return mc.KernelRidge(k, alpha=ALPHA, solver=solver, tol=tol).fit(X, y)


def nystroem(kernel: str, X: np.ndarray, y: np.ndarray, m: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    sigma = float(kernel.removeprefix("Gaussian(").removesuffix(")"))
    features = Nystroem(kernel="rbf", gamma=0.5 / sigma**2, n_components=m, random_state=0)
    return make_pipeline(features, Ridge(alpha=ALPHA, fit_intercept=False)).fit(X, y)


def clocked(function: Any, *arguments: Any) -> tuple[float, float, Any]:
    """Seconds of the clock and of the processor, and the result."""
    start, busy = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return time.perf_counter() - start, time.process_time() - busy, result


def child(order: dict[str, Any]) -> None:
    """One fit: seconds, processor seconds, MB, seconds for 10⁶ predictions, frequencies, steps, error; and a peer's."""
    from mercer.solvers import costs

    kernel, d, n, tol = order["case"]
    X, y = data(n, d)
    Z = np.random.default_rng(1).uniform(size=(TEST, d))
    fitted(kernel, X[:3000], y[:3000], 0.3).predict(Z)
    megabytes, (seconds, busy, model) = peak(clocked, fitted, kernel, X, y, tol)
    many = np.random.default_rng(2).uniform(size=(1_000_000, d))
    predicting = clocked(model.predict, many)[0]
    if n <= TEST:
        exact = fitted(kernel, X, y, None, "cholesky")
    else:
        costs.FACTORED_FREQUENCIES = FACTORED
        exact = fitted(kernel, X, y, tol / (100 if "Gauss" in kernel else 10))
        if exact.status_.startswith("not converged"):
            raise RuntimeError(f"the reference is no reference: {exact.status_}")
    reference = exact.predict(Z)
    spread = reference.std()
    error = np.sqrt(((model.predict(Z) - reference) ** 2).mean()) / spread
    [steps] = re.findall(r"by ([\d,]+) step", model.status_)
    print(seconds, busy, megabytes, predicting, model.function_.frequencies.number, steps.replace(",", ""), error)
    if order["peer"]:
        seconds, busy, other = clocked(nystroem, kernel, X, y, order["peer"])
        print(seconds, busy, np.sqrt(((other.predict(Z) - reference) ** 2).mean()) / spread)


def compare(names: list[str], quick: bool) -> None:
    rows, peers = [], []
    for name in names:
        kernel, d, n, tol = CASES[name]
        case = [kernel, d, min(n, 20_000) if quick else n, tol]
        numbers = alone(__file__, {"case": case, "peer": PEERS.get(name, 0)})
        seconds, busy, megabytes, predicting, frequencies, steps, error = numbers[:7]
        rows.append([name, f"{tol:g}", f"{frequencies:.0f}", f"{steps:.0f}", f"{seconds:.2f}", f"{busy:.2f}",
                     f"{megabytes:.0f}", f"{predicting:.2f}", f"{error:.1e}"])  # fmt: skip
        print("done:", rows[-1], flush=True)
        seconds_by = {"Mercer": busy}
        if numbers[7:]:
            seconds_by[f"scikit-learn Nystroem + Ridge, {PEERS[name]} components"] = numbers[8]
        compared(
            f"Ridge on frequencies, {name.rpartition(',')[0]}, tolerance {tol:g}, processor time", seconds_by, case[2]
        )
        if numbers[7:]:
            peers.append(
                [name, f"{busy:.2f}", f"{error:.1e}", str(PEERS[name]), f"{numbers[8]:.2f}", f"{numbers[9]:.1e}"]
            )
    heading("Kernel ridge on a grid of frequencies")
    table(
        ["points", "tol", "frequencies", "steps", "fit, s", "processor, s", "MB", "10⁶ predictions, s", "error"], rows
    )
    if peers:
        heading("Beside centres of scikit-learn")
        table(["points", "Mercer, processor s", "error", "Nystroem components", "processor s", "error"], peers)


def california(folder: Path) -> None:
    """The price of a house from its place alone: the exact fit, that on frequencies, and that on centres."""
    import polars as pl

    import mercer as mc

    frame = pl.read_parquet(folder / "california_housing.parquet").sample(fraction=1.0, shuffle=True, seed=0)
    X = frame.select("longitude", "latitude").to_numpy().astype(np.float64)
    y = np.log(frame["medianHouseValue"].to_numpy().astype(np.float64))
    train, test = slice(0, 10_000), slice(10_000, None)
    rows, exact = [], None
    for solver, more in (("cg", {}), ("fourier", {"tol": 1e-2}), ("fourier", {"tol": 1e-3}), ("nystrom", {})):
        model = mc.KernelRidge(mc.Matern(0.5, nu=1.5), alpha=0.5, fit_intercept=True, solver=solver, **more)
        seconds, busy, _ = clocked(model.fit, X[train], y[train])
        f = model.predict(X[test])
        exact = f if exact is None else exact
        r2 = 1 - ((f - y[test]) ** 2).mean() / y[test].var()
        distance = np.sqrt(((f - exact) ** 2).mean()) / exact.std()
        rows.append([solver + "".join(f", tol = {v:g}" for v in more.values()), f"{seconds:.2f}", f"{busy:.2f}",
                     f"{r2:.4f}", f"{distance:.1e}"])  # fmt: skip
    heading("House prices of California by place")
    table(["solver", "fit, s", "processor, s", "R² on other rows", "distance to the exact f"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with the data")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    machine()
    if arguments.data:
        california(Path(arguments.data))
    else:
        compare([name for name in CASES if arguments.only in name], arguments.quick)


if __name__ == "__main__":
    main()
