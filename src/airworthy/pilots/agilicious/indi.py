"""The inner loop of Agilicious: incremental inversion of the rotation's dynamics, and its filter; equations.

Source: specification of the planners, section 9. What the rotors' moments and the turning do is measured, so only the change of
moment has to be computed, and errors of inertia and drag act on that alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from airworthy.core.vectors import cross, symmetric_multiply

__all__ = ["Butterworth", "indi_moment", "plain_moment"]

Scalar = Any
Vector = tuple[Any, ...]
Array = NDArray[np.float64]


class _Coefficients(NamedTuple):
    """y = b0 (u + 2 u1 + u2) - a1 y1 - a2 y2."""

    b0: float
    a1: float
    a2: float


class Butterworth:
    """Second-order low-pass of arrays (n, k), by the bilinear transform with the cut-off warped into place.

    Args:
        cutoff: [Hz]
        rate: Samples per second [Hz].
    """

    def __init__(self, cutoff: float, rate: float):
        c = math.tan(math.pi * cutoff / rate)
        d = 1.0 + math.sqrt(2.0) * c + c * c
        self.coefficients = _Coefficients(c * c / d, 2.0 * (c * c - 1.0) / d, (1.0 - math.sqrt(2.0) * c + c * c) / d)
        self._past: list[Array] = []

    def step(self, u: Array, fresh: NDArray[np.bool_]) -> Array:
        """The next value; rows that are fresh (n,) begin at rest at their first."""
        if not self._past:
            self._past = [u.copy() for _ in range(4)]
        u1, u2, y1, y2 = (np.where(fresh[:, None], u, past) for past in self._past)
        b0, a1, a2 = self.coefficients
        y = b0 * (u + 2.0 * u1 + u2) - a1 * y1 - a2 * y2
        self._past = [u.copy(), u1, y, y1]
        return y


def plain_moment(turn: Vector, rate: Vector, inertia: Vector) -> Vector:
    """J alpha + w x J w [N m]."""
    spin, push = cross(rate, symmetric_multiply(inertia, rate)), symmetric_multiply(inertia, turn)
    return tuple(a + b for a, b in zip(push, spin, strict=True))


def indi_moment(turn: Vector, rate: Vector, measured: Vector, acting: Vector, inertia: Vector) -> Vector:
    """tau_f + J (alpha - w'_f) about roll and pitch, J alpha + w x J w about yaw, which else would swing [N m].

    Args:
        turn: Wanted angular acceleration, body [rad/s^2].
        rate: Body [rad/s].
        measured: Angular acceleration, filtered [rad/s^2].
        acting: Moments of the rotors, filtered alike [N m].
        inertia: xx, yy, zz, xy, xz, yz [kg m^2].
    """
    change = symmetric_multiply(inertia, tuple(a - b for a, b in zip(turn, measured, strict=True)))
    plain = plain_moment(turn, rate, inertia)
    return acting[0] + change[0], acting[1] + change[1], plain[2]
