"""The double integrator between two states at least cost: the heuristic of the search and its connection with the goal.

Cost: the integral of |a|^2 + weight over time. Twin of native/boundary.h. Source: spec/planners section 4.1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["connection", "cost_of_time", "least_cost"]

Array = NDArray[np.float64]
State = tuple[float, ...]


def _terms(start: State, end: State) -> tuple[float, float, float, float]:
    """Squared way, (v0 + v1).dp, v0.v0 + v0.v1 + v1.v1, and the largest component of the way."""
    far = along = motion = reach = 0.0
    for k in range(3):
        d, a, b = end[k] - start[k], start[k + 3], end[k + 3]
        far += d * d
        along += (a + b) * d
        motion += a * a + a * b + b * b
        reach = max(reach, abs(d))
    return far, along, motion, reach


def cost_of_time(start: State, end: State, weight: float, t: float) -> float:
    """Least cost of going from state to state, each (position, velocity), in exactly t [s]."""
    far, along, motion, _ = _terms(start, end)
    return weight * t + 4.0 * motion / t - 12.0 * along / t**2 + 12.0 * far / t**3


def least_cost(start: State, end: State, weight: float, speed: float) -> tuple[float, float]:
    """Least cost over all times, and that time [s].

    Times in which the way cannot be flown at half of `speed` per axis are left out: T >= max |dp| / (0.5 speed).
    """
    far, along, motion, reach = _terms(start, end)
    p, q, r = -4.0 * motion / weight, 24.0 * along / weight, -36.0 * far / weight
    least = reach / (0.5 * speed)
    times = ([least] if least > 1e-9 else []) + [t for t in _stationary(p, q, r) if t >= least and t > 1e-9]
    best, when = math.inf, 0.0
    for t in times:
        s = weight / t
        cost = weight * t - p * s - 0.5 * q * s / t - r * s / (3.0 * t * t)
        if cost < best:
            best, when = cost, t
    return (best, when) if when > 0.0 else (0.0, 0.0)


def _stationary(p: float, q: float, r: float) -> list[float]:
    """Real roots of T^4 + p T^2 + q T + r with r <= 0: Ferrari's factors, each root polished by Newton's steps."""
    m = _resolvent(p, q, r)
    if m <= 1e-12 * (abs(p) + math.sqrt(abs(r))):
        inside = 0.25 * p * p - r
        factors = [(0.0, 0.5 * p - (math.sqrt(inside) if inside > 0.0 else 0.0))]
    else:
        s = math.sqrt(2.0 * m)
        factors = [(-s, 0.5 * p + m + 0.5 * q / s), (s, 0.5 * p + m - 0.5 * q / s)]
    roots = []
    for b, c in factors:
        inside = 0.25 * b * b - c
        if inside >= 0.0:
            width = math.sqrt(inside)
            roots += [_polished(-0.5 * b + width, p, q, r), _polished(-0.5 * b - width, p, q, r)]
    return roots


def _polished(t: float, p: float, q: float, r: float) -> float:
    for _ in range(3):
        slope = (4.0 * t * t + 2.0 * p) * t + q
        if slope != 0.0:
            t -= (((t * t + p) * t + q) * t + r) / slope
    return t


def _resolvent(p: float, q: float, r: float) -> float:
    """Largest root of m^3 + p m^2 + (p^2 / 4 - r) m - q^2 / 8, never below zero."""
    a = -p * p / 12.0 - r
    b = -p * p * p / 108.0 + p * r / 3.0 - q * q / 8.0
    inside = 0.25 * b * b + a * a * a / 27.0
    if inside >= 0.0:
        u = float(np.cbrt(-0.5 * b + (-math.sqrt(inside) if b > 0.0 else math.sqrt(inside))))
        t = u - a / (3.0 * u) if u != 0.0 else 0.0
    else:
        size = math.sqrt(-a / 3.0)
        angle = min(1.0, max(-1.0, -0.5 * b / (size * size * size)))
        t = 2.0 * size * math.cos(math.acos(angle) / 3.0)
    return max(t - p / 3.0, 0.0)


def connection(start: State, end: State, t: float) -> Array:
    """The cubics from state to state in t [s]: ascending coefficients, (3, 4). They keep no limit."""
    p0, v0 = np.array(start[:3]), np.array(start[3:])
    left, gain = np.array(end[:3]) - p0 - v0 * t, np.array(end[3:]) - v0
    second = 0.5 * (6.0 / (t * t) * left - 2.0 / t * gain)
    third = (-12.0 / (t * t * t) * left + 6.0 / (t * t) * gain) / 6.0
    return np.stack([p0, v0, second, third], axis=1)
