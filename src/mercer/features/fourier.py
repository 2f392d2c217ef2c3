"""Random Fourier features: a stationary kernel is a mean of cosines, and a sample of them is a finite map.

By Bochner's theorem k(x − z) = E cos ωᵀ(x − z) with ω drawn from the kernel's spectral density. With m frequencies
cos a cos b + sin a sin b = cos(a − b) makes (cos ωᵢᵀx, sin ωᵢᵀx)/√m an unbiased map; its length is exactly 1. Making
the frequencies orthogonal in blocks of d keeps each one's distribution and cancels part of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory
from mercer.data.vectors import per_column
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap, SpectralDensity, vectors
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number, generator


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """(cos ωᵢᵀx, sin ωᵢᵀx)/√m for m frequencies ω; made by `fourier_features`.

    Attributes
    ----------
    kernel : Kernel
        The kernel that is approximated.
    frequencies : array
        The m frequencies, shape (m, d).
    orthogonal : bool
        Whether the frequencies are orthogonal in blocks of d.
    expected_error
        1/√(2m), the root mean square error of phi(x)ᵀphi(z) for distant points and independent frequencies; for a
        Gaussian (1 − k(x, z)²) times that, and smaller still with orthogonal frequencies.

    Examples
    --------
    >>> import mercer as mc
    >>> phi = fourier_features(mc.Gaussian(1.0), 3, 4)
    >>> phi.names
    ['√0.5·cos(w0·x)', '√0.5·cos(w1·x)', '√0.5·sin(w0·x)', '√0.5·sin(w1·x)']
    """

    kernel: Any
    frequencies: NDArray[np.float64] = field(repr=False)
    orthogonal: bool

    @property
    def dimension(self) -> int:
        return 2 * len(self.frequencies)

    @property
    def inputs(self) -> int:
        return int(self.frequencies.shape[1])

    @property
    def expected_error(self) -> float:
        return 1 / math.sqrt(self.dimension)

    def _fill(self, X: Any, out: Array) -> None:
        x, m = vectors(X, self.inputs), len(self.frequencies)
        rows = max(1, memory.CACHED // m)
        for begin in range(0, len(out), rows):
            span = slice(begin, begin + rows)
            phase = x[span] @ self.frequencies.T  # in float64: a phase of 10⁶ has no float32 digits left for its cosine
            out[span, :m], out[span, m:] = np.cos(phase), np.sin(phase)
        out /= out.dtype.type(math.sqrt(m))

    def _term(self, j: int, x: Variables) -> Term:
        m = len(self.frequencies)
        return Term(square=Fraction(1, m)) * atom(f"{'cos' if j < m else 'sin'}(w{j % m}·x)")


def fourier_features(
    kernel: Any, d: int, n_features: int, *, orthogonal: bool = True, random_state: Any = 0
) -> FourierMap:
    """k(x, z) ≈ (1/m) Σᵢ cos ωᵢᵀ(x − z): random Fourier features of a stationary kernel, with error O(1/√n_features).

    The spectral density of ω is normal for a Gaussian kernel, a multivariate t with 2ν degrees of freedom for a Matern,
    and an independent Cauchy for every coordinate for a Laplacian. The last is not isotropic, so that orthogonal
    directions would change it: its frequencies stay independent, and the attribute `orthogonal` of the map is False.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, Matern or Laplacian, with one σ or one per column.
    d : int
        The number of columns.
    n_features : int
        The number of features, even: half cosines, half sines.
    orthogonal : bool
        Frequencies orthogonal in blocks of d; smaller error on average at the same size.
    random_state : int, Generator or None
        Seed or generator, as `numpy.random.default_rng` takes it.

    References
    ----------
    Rahimi and Recht, Random features for large-scale kernel machines, 2007; Yu and others, Orthogonal random features,
    2016.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> k, X = mc.Gaussian(1.0), np.random.default_rng(1).normal(size=(20, 5))
    >>> phi = fourier_features(k, 5, 2000)
    >>> bool(np.abs(phi(X) @ phi(X).T - k(X)).max() < 5 * phi.expected_error)
    True
    """
    spectrum = getattr(kernel, "spectrum", None)
    if not isinstance(spectrum, SpectralDensity):
        raise InvalidInput(
            "Fourier features need a kernel whose spectral density is known: Gaussian, Matern or Laplacian",
            got=repr(kernel),
            advice="Use k.features(d), which is exact, if the map is finite; scale and stack maps for c·k and sums.",
        )
    sigma = per_column(kernel.sigma, check_whole_number(d, "d", owner="the map"))
    n_features = check_whole_number(n_features, "n_features", least=2, owner="fourier_features")
    if n_features % 2:
        raise InvalidInput(
            "`n_features` must be even: half cosines, half sines",
            got=n_features,
            advice=f"Pass an even number such as {n_features + 1}.",
        )
    rng, m = generator(random_state), n_features // 2
    if spectrum is SpectralDensity.CAUCHY:
        orthogonal = False
        frequencies = rng.standard_cauchy((m, d))
    else:
        frequencies = _orthogonal(rng, m, d) if orthogonal else rng.standard_normal((m, d))
        if (
            spectrum is SpectralDensity.STUDENT
        ):  # t = normal / √(χ²/dof), one χ² per frequency, independent of its direction
            dof = 2 * float(kernel.nu)
            frequencies *= np.sqrt(dof / rng.chisquare(dof, size=(m, 1)))
    frequencies /= sigma
    frequencies.flags.writeable = False
    return FourierMap(kernel, frequencies, bool(orthogonal))


def _orthogonal(rng: np.random.Generator, m: int, d: int) -> NDArray[np.float64]:
    """m standard normal vectors, orthogonal in blocks of d: uniform rotations, with independent χ lengths."""
    blocks = math.ceil(m / d)
    Q, R = np.linalg.qr(rng.standard_normal((blocks, d, d)))
    Q *= np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]  # makes Q uniform over rotations and reflections
    lengths = np.sqrt(rng.chisquare(d, size=(m, 1)))
    return np.asarray(lengths * Q.reshape(blocks * d, d)[:m])
