"""Deliberately simple references: double loops over pairs of points, written from the formulas."""

from __future__ import annotations

import math

import numpy as np


def gram(k, X, Z=None):
    """K by calling k(x, z) for every pair."""
    Z = X if Z is None else Z
    return np.array([[k(x, z) for z in Z] for x in X])


def sqdist(x, z):
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, z))


def dot(x, z):
    return math.fsum(float(a) * float(b) for a, b in zip(x, z))


def gaussian(sigma):
    return lambda x, z: math.exp(-sqdist(x, z) / (2 * sigma**2))


def laplacian(sigma):
    return lambda x, z: math.exp(-math.fsum(abs(float(a) - float(b)) for a, b in zip(x, z)) / sigma)


def matern(sigma, nu):
    def k(x, z):
        t = math.sqrt(2 * nu * sqdist(x, z)) / sigma
        if nu == 0.5:
            return math.exp(-t)
        if nu == 1.5:
            return (1 + t) * math.exp(-t)
        if nu == 2.5:
            return (1 + t + t * t / 3) * math.exp(-t)
        if t == 0:
            return 1.0
        import mpmath

        return float(2 ** (1 - nu) / mpmath.gamma(nu) * t**nu * mpmath.besselk(nu, t))

    return k


def rational_quadratic(sigma, alpha):
    return lambda x, z: (1 + sqdist(x, z) / (2 * alpha * sigma**2)) ** (-alpha)


def periodic(sigma, period):
    def k(x, z):
        total = math.fsum(math.sin(math.pi * (float(a) - float(b)) / period) ** 2 for a, b in zip(x, z))
        return math.exp(-2 * total / sigma**2)

    return k


def polynomial(degree, c):
    return lambda x, z: (dot(x, z) + c) ** degree


def arc_cosine(order):
    def k(x, z):
        nx, nz = math.sqrt(dot(x, x)), math.sqrt(dot(z, z))
        if nx == 0 or nz == 0:
            return 0.5 if order == 0 else 0.0
        u, v = [a / nx for a in x], [b / nz for b in z]
        t = 2 * math.atan2(math.dist(u, v), math.dist(u, [-b for b in v]))  # acos loses half the digits near 0
        j = [
            math.pi - t,
            math.sin(t) + (math.pi - t) * math.cos(t),
            3 * math.sin(t) * math.cos(t) + (math.pi - t) * (1 + 2 * math.cos(t) ** 2),
        ][order]
        return (nx * nz) ** order * j / math.pi

    return k


def compact(profile, sigma):
    def k(x, z):
        r = math.sqrt(sqdist(x, z)) / sigma
        return profile(r) if r <= 1 else 0.0

    return k
