"""Polynomials on a normalised interval: degree-7 segments in closed form, evaluation, Bernstein form.

A polynomial piece of duration T is held as ascending coefficients of tau = t / T, tau in [0, 1], so that short and long
pieces are equally well conditioned: the k-th time derivative is the k-th tau derivative over T^k. Source:
spec/boundary_predictor section 3.
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

# Source of the four: spec/boundary_predictor section 3, rest to rest over distance D in time T.
REST_PEAK_SPEED = 2.1875
"""Peak speed of a rest-to-rest segment over distance / duration: 35/16."""
REST_PEAK_ACCELERATION = 84.0 * 5.0**0.5 / 25.0
"""Peak acceleration over distance / duration^2: 7.51319."""
REST_PEAK_JERK = 52.5
"""Peak jerk over distance / duration^3."""
REST_PEAK_SNAP = 840.0
"""Peak snap over distance / duration^4."""

# Powers tau^4..tau^7 that carry what is left at the end in value and first to third tau derivative (rows).
_END = np.array(
    [
        [35.0, -84.0, 70.0, -20.0],
        [-15.0, 39.0, -34.0, 10.0],
        [2.5, -7.0, 6.5, -2.0],
        [-1.0 / 6.0, 0.5, -0.5, 1.0 / 6.0],
    ]
)
_HALVES = np.array([1.0, 1.0, 0.5, 1.0 / 6.0])


def septic(start: ArrayLike, end: ArrayLike, duration: ArrayLike) -> Array:
    """Return the degree-7 segment between two boundary states: the minimum of integrated squared snap, since both ends are
    fixed.

    Args:
        start: Value and first three time derivatives at the start, shape (..., 4).
        end: The same at the end, shape (..., 4).
        duration: Seconds, positive, broadcast over the leading axes.

    Returns:
        Ascending coefficients of tau, shape (..., 8).
    """
    powers = np.asarray(duration, dtype=np.float64)[..., None] ** np.arange(4)
    low = np.asarray(start, dtype=np.float64) * powers * _HALVES
    final = np.asarray(end, dtype=np.float64) * powers
    low, final = np.broadcast_arrays(low, final)
    c0, c1, c2, c3 = np.moveaxis(low, -1, 0)
    carried = np.stack((c0 + c1 + c2 + c3, c1 + 2.0 * c2 + 3.0 * c3, 2.0 * c2 + 6.0 * c3, 6.0 * c3), axis=-1)
    # The sum over a fixed order, not a matrix product: equal bits whatever the batch.
    rest = final - carried
    high = rest[..., 0:1] * _END[0] + rest[..., 1:2] * _END[1] + rest[..., 2:3] * _END[2] + rest[..., 3:4] * _END[3]
    return np.concatenate((low, high), axis=-1)


BASIS_STEP = np.array([0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0])
"""h of spec/boundary_predictor section 3: 0 to 1 with no derivative at either end."""
BASIS_START_SPEED = np.array([0.0, 1.0, 0.0, 0.0, -20.0, 45.0, -36.0, 10.0])
"""g0: unit tau derivative at the start."""
BASIS_END_SPEED = np.array([0.0, 0.0, 0.0, 0.0, -15.0, 39.0, -34.0, 10.0])
"""g1: unit tau derivative at the end."""


def septic_coasting(
    start: ArrayLike, end: ArrayLike, speed_start: ArrayLike, speed_end: ArrayLike, duration: ArrayLike
) -> Array:
    """Return the degree-7 segment with zero acceleration and jerk at both ends, in its three-function basis.

    Args:
        start: Value at the start, shape (...).
        end: Value at the end, shape (...).
        speed_start: First time derivative at the start, shape (...).
        speed_end: First time derivative at the end, shape (...).
        duration: Seconds, shape (...).

    Returns:
        Ascending coefficients of tau, shape (..., 8).
    """
    p0, p1, v0, v1, span = (np.asarray(x, dtype=np.float64)[..., None] for x in (start, end, speed_start, speed_end, duration))
    coefficients = (p1 - p0) * BASIS_STEP + span * v0 * BASIS_START_SPEED + span * v1 * BASIS_END_SPEED
    coefficients[..., 0:1] += p0
    return coefficients


def in_seconds(coefficients: ArrayLike, duration: ArrayLike) -> Array:
    """Return ascending coefficients of t [s] from those of tau; shapes (..., k) and (...)."""
    c = np.asarray(coefficients, dtype=np.float64)
    return c / np.asarray(duration, dtype=np.float64)[..., None] ** np.arange(c.shape[-1])


def differentiate(coefficients: ArrayLike, order: int = 1) -> Array:
    """Return coefficients of the tau derivative, shape (..., max(k - order, 1))."""
    c = np.asarray(coefficients, dtype=np.float64)
    for _ in range(order):
        c = c[..., 1:] * np.arange(1.0, c.shape[-1]) if c.shape[-1] > 1 else np.zeros_like(c)
    return c


def evaluate(coefficients: ArrayLike, tau: ArrayLike) -> Array:
    """Return the value at tau by Horner's rule; coefficients (..., k) and tau (...) broadcast."""
    c = np.asarray(coefficients, dtype=np.float64)
    tau = np.asarray(tau, dtype=np.float64)
    value = np.broadcast_to(c[..., -1], np.broadcast_shapes(c.shape[:-1], tau.shape)).copy()
    for k in range(c.shape[-1] - 2, -1, -1):
        value = value * tau + c[..., k]
    return value


def substitute(coefficients: ArrayLike, start: ArrayLike, end: ArrayLike) -> Array:
    """Return the same polynomial with [start, end] of tau mapped to [0, 1]; shapes (..., k) and (...).

    Args:
        coefficients: (..., k), ascending powers of tau.
        start: (...) in tau.
        end: (...) in tau.
    """
    c = np.asarray(coefficients, dtype=np.float64)
    a = np.asarray(start, dtype=np.float64)
    width = np.asarray(end, dtype=np.float64) - a
    count = c.shape[-1]
    shifted = np.zeros(np.broadcast_shapes(c.shape, (*a.shape, count)))
    for k in range(count):
        for j in range(k + 1):
            shifted[..., j] += c[..., k] * comb(k, j) * a ** (k - j) * width**j
    return shifted


def basis_row(count: int, order: int, tau: float) -> Array:
    """Return the row r with r @ c the order-th tau derivative at tau of the polynomial with coefficients c; shape (count,).

    Args:
        count: Coefficients.
        order: Of the derivative.
        tau: Where.
    """
    row = np.zeros(count)
    for k in range(order, count):
        factor = 1.0
        for i in range(order):
            factor *= k - i
        row[k] = factor * tau ** (k - order)
    return row


@cache
def derivative_factor(count: int, order: int) -> Array:
    """Return the matrix L with |L c|^2 the integral over [0, 1] of the squared order-th derivative; shape (count, count).

    Rows are Gauss-Legendre nodes, exact for these degrees.
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    rows = [np.sqrt(0.5 * w) * basis_row(count, order, 0.5 * (x + 1.0)) for x, w in zip(nodes, weights, strict=True)]
    factor = np.array(rows)
    factor.setflags(write=False)
    return factor


@cache
def _bernstein_matrix(count: int) -> Array:
    degree = count - 1
    matrix = np.array([[comb(i, k) / comb(degree, k) if k <= i else 0.0 for i in range(count)] for k in range(count)])
    matrix.setflags(write=False)
    return matrix


def to_bernstein(coefficients: ArrayLike) -> Array:
    """Return Bernstein coefficients on [0, 1] of ascending powers, shape (..., k): the polynomial lies in their hull."""
    c = np.asarray(coefficients, dtype=np.float64)
    return c @ _bernstein_matrix(c.shape[-1])
