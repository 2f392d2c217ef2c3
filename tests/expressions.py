"""Random kernel expressions: every leaf and every rule of the algebra, for Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import mercer as mc

DIMENSION = 3

widths = st.floats(0.2, 5.0).map(lambda s: round(s, 3))
scales = st.floats(0.05, 4.0).map(lambda s: round(s, 3))


def _spd(seed: int) -> list[list[float]]:
    B = np.random.default_rng(seed).normal(size=(DIMENSION, DIMENSION)).round(2)
    return (B @ B.T).round(4).tolist()


sigmas = st.one_of(widths, st.lists(widths, min_size=DIMENSION, max_size=DIMENSION))

vector_leaves = st.one_of(
    st.just(mc.Linear()),
    st.builds(mc.Polynomial, st.integers(1, 3), c=st.one_of(st.just(0.0), scales)),
    st.builds(lambda seed: mc.Bilinear(np.array(_spd(seed)) + 1e-3 * np.eye(DIMENSION)), st.integers(0, 50)),
    st.builds(mc.Gaussian, sigmas),
    st.builds(mc.Laplacian, sigmas),
    st.builds(mc.Matern, sigmas, st.sampled_from([0.5, 1.5, 2.5, 0.8, 3.1])),
    st.builds(mc.RationalQuadratic, sigmas, scales),
    st.builds(mc.Periodic, widths, widths),
    st.builds(mc.ArcCosine, st.integers(0, 2)),
    st.builds(mc.Constant, scales),
)


def _combine(inner: st.SearchStrategy[mc.Kernel]) -> st.SearchStrategy[mc.Kernel]:
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda c, k: c * k, scales, inner),
        st.builds(lambda k, n: k**n, inner, st.integers(1, 3)),
        st.builds(lambda k, a: k.poly(a), inner, st.lists(scales, min_size=1, max_size=3)),
        st.builds(lambda k: (0.1 * k.normalize()).exp(), inner),
        st.builds(lambda k: k.normalize(), inner),
    )


vector_kernels = st.recursive(vector_leaves, _combine, max_leaves=5)

set_kernels = st.recursive(
    st.one_of(st.just(mc.Intersection()), st.builds(mc.Constant, scales)), _combine, max_leaves=3
).map(lambda k: k + 0.5 * mc.Intersection())
