"""Kernels on strings beside other software: the same matrices, in the same process, the shortest of several runs.

    python benchmarks/strings.py [--quick]

* Spectrum(4) beside scikit-learn's CountVectorizer of characters and the sparse product of its counts. The peer gets a
  fifth of the strings; its time is extrapolated, five times its counting and 25 times its product.
* Subsequence(4, 0.5) beside the same dynamic programme in plain Python (of a few pairs, since all would take hours).
* GappedKmers(6, 4) beside its definition through CountVectorizer: no package with gapped k-mers in C++ (gkmSVM, LS-GKM,
  FastSK, strkernel) was found that pip installs.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import mercer as mc
from measure import compared, heading, judge, machine, race, table, timed


def strings(n: int, length: int, letters: str, seed: int = 0) -> list[str]:
    codes = np.random.default_rng(seed).integers(0, len(letters), size=(n, length))
    return ["".join(row) for row in np.array(list(letters))[codes]]


def counts_of(options: dict[str, Any], X: list[str]) -> Any:
    return CountVectorizer(**options, lowercase=False, dtype=np.float64).fit_transform(X)


def gapped(g: int, k: int) -> Any:
    masks = list(itertools.combinations(range(g), k))

    def windows(text: str) -> list[Any]:
        return [(m, *(text[i + j] for j in mask)) for i in range(len(text) - g + 1) for m, mask in enumerate(masks)]

    return windows


def plain_subsequence(s: str, t: str, p: int, decay: float) -> float:
    """The recursion of Lodhi et al. 2002 in plain Python."""
    inner = [[1.0] * (len(t) + 1) for _ in range(len(s) + 1)]
    for _ in range(p - 1):
        deeper = [[0.0] * (len(t) + 1) for _ in range(len(s) + 1)]
        for i in range(1, len(s) + 1):
            run = 0.0
            for j in range(1, len(t) + 1):
                run *= decay
                if s[i - 1] == t[j - 1]:
                    run += decay**2 * inner[i - 1][j - 1]
                deeper[i][j] = decay * deeper[i - 1][j] + run
        inner = deeper
    pairs = itertools.product(range(len(s)), range(len(t)))
    return decay**2 * sum(inner[i][j] for i, j in pairs if s[i] == t[j])


def beside(title: str, kernel: Any, options: dict[str, Any], X: list[str], aim: float, share: int = 1) -> None:
    """One table; the peer gets the first of `share` parts of the strings, and its time is extrapolated."""
    heading(f"{title}")
    kernel(X[:400])  # load the compiled loops
    part, counts = X[: len(X) // share], None

    def count() -> Any:
        nonlocal counts
        counts = counts_of(options, part)

    competitors = {"Mercer": lambda: kernel(X), "counts": count, "product": lambda: (counts @ counts.T).toarray()}
    results = race(competitors, {"Mercer": 3, "counts": 2, "product": 2})
    (own, K), (counting, _), (multiplying, L) = (results[name] for name in ("Mercer", "counts", "product"))
    np.testing.assert_array_equal(K[: len(part), : len(part)], L)
    other = share * counting + share**2 * multiplying
    peer = "CountVectorizer + sparse product"
    if share > 1:
        peer += f" (extrapolated: n/{share}, counting × {share}, product × {share**2})"
    table(["", "seconds", "Mercer is faster by"],
          [["Mercer", f"{own:.3f}", ""], [peer, f"{other:.3f}", f"{other / own:.1f}×"]])  # fmt: skip
    compared(title, {"Mercer": own, peer: other})
    if aim:
        judge([("× CountVectorizer", other / own, aim)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    quick = options.quick
    machine()
    n = 2000 if quick else 10_000
    characters = {"analyzer": "char", "ngram_range": (4, 4)}
    for name, letters in (("DNA", "ACGT"), ("26 letters", "abcdefghijklmnopqrstuvwxyz")):
        X = strings(n, 500, letters)
        beside(f"Spectrum(4), {n} strings of 500 symbols, {name}", mc.Spectrum(4), characters, X, 20, share=5)
    n = 300 if quick else 1000
    X = strings(n, 200, "ACGT")
    beside(
        f"GappedKmers(6, 4), {n} strings of 200 symbols, DNA",
        mc.GappedKmers(6, 4),
        {"analyzer": gapped(6, 4)},
        X,
        0,
    )

    n = 60 if quick else 200
    X = strings(n, 200, "abcdefghijklmnopqrstuvwxyz")
    kernel = mc.Subsequence(4, 0.5)
    kernel(X[:30])
    (own, K) = min((timed(kernel, X) for _ in range(3)), key=lambda result: result[0])
    few = [(0, 0), (0, 1), (1, 2), (3, 5)]
    other, values = timed(lambda: [plain_subsequence(X[i], X[j], 4, 0.5) for i, j in few])
    np.testing.assert_allclose([K[i, j] for i, j in few], values, rtol=1e-10)
    per_pair, peer = own / (n * (n + 1) / 2), other / len(few)
    heading(f"Subsequence(4, 0.5), {n} strings of 200 symbols")
    rows = [["Mercer", f"{1e6 * per_pair:.1f}", ""], ["plain Python", f"{1e6 * peer:.0f}", f"{peer / per_pair:.0f}×"]]
    table(["", "µs per pair", "Mercer is faster by"], rows)
    compared("Subsequence(4, 0.5), one pair of strings of 200 symbols", {"Mercer": per_pair, "plain Python": peer})
    judge([("× plain Python", peer / per_pair, 100)])


if __name__ == "__main__":
    main()
