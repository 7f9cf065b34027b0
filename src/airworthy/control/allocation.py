"""From a body wrench to rotor thrusts, and from a thrust to a rotor state; equations, and the host code that feeds them.

The pseudo-inverse is equation (7) of Aerial Gym; the bounded scheme is ours: it keeps every rotor within its limits and gives
up yaw first, then sideways force, then collective thrust, then roll and pitch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airworthy.core.ops import absolute, clip, maximum, minimum, sqrt, where

Scalar = Any
Vector = tuple[Any, ...]

_FAR = 1e9
"""Stands for no limit; finite in float32."""


class Allocation(NamedTuple):
    """What allocation needs of an airframe; any record with these attributes will do. Build one with `allocation_for`."""

    inverse: tuple[Vector, ...]
    """Per rotor its thrust per unit of Fx, Fy, Fz [N/N], Mx, My, Mz [N/(N m)]; zeros for padding."""
    collective: Vector
    """Per rotor the share of one newton along body z, where every share is positive; else (and for padding) zeros."""
    thrust_min: Vector
    """[N] per rotor; 0 for padding."""
    thrust_max: Vector
    """[N] per rotor; 0 for padding."""


def _part(row: Vector, wrench: Vector, first: int, last: int) -> Scalar:
    total = row[first] * wrench[first]
    for k in range(first + 1, last):
        total = total + row[k] * wrench[k]
    return total


def allocate_pseudo_inverse(wrench: Vector, a: Any, limit: Scalar = 1.0) -> Vector:
    """Rotor thrusts [N] P W, each clipped to its limits where the mask `limit` is set.

    Args:
        wrench: Fx, Fy, Fz [N], Mx, My, Mz [N m], body frame, about the centre of mass.
        a: `Allocation` or alike.
        limit: 0/1 mask.
    """
    thrusts = [_part(row, wrench, 0, 6) for row in a.inverse]
    return tuple(
        where(limit > 0.5, clip(u, lower, upper), u)
        for u, lower, upper in zip(thrusts, a.thrust_min, a.thrust_max, strict=True)
    )


def limit_excess(thrusts: Vector, thrust_min: Vector, thrust_max: Vector) -> Scalar:
    """By how much the worst rotor is outside its limits [N]; 0 where none is."""
    excess: Scalar = 0.0
    for u, lower, upper in zip(thrusts, thrust_min, thrust_max, strict=True):
        excess = maximum(excess, maximum(lower - u, u - upper))
    return excess


def allocate_bounded(wrench: Vector, a: Any) -> Vector:
    """Rotor thrusts [N] within limits, by priority.

    The exact solution where it is within limits. Else, in turn: (1) the collective, clipped into what the rotors can give
    together; (2) roll and pitch, their direction kept, scaled down only if no shift of the collective makes room, with the
    smallest shift that does; (3) sideways force, then (4) yaw, each scaled down to what is left.
    Airframes without a positive collective direction (rotors facing many ways) are scaled without shifts, the whole force
    first, then roll and pitch, then yaw.

    Args:
        wrench: Fx, Fy, Fz [N], Mx, My, Mz [N m], body frame, about the centre of mass.
        a: `Allocation` or alike.
    """
    limits = tuple(zip(a.thrust_min, a.thrust_max, strict=True))
    exact = tuple(_part(row, wrench, 0, 6) for row in a.inverse)
    excess = limit_excess(exact, a.thrust_min, a.thrust_max)

    base, force, sideways = _force_parts(wrench, a)
    thrusts = _plus(base, force, _largest_scale(base, force, limits))
    tilt = tuple(_part(row, wrench, 3, 5) for row in a.inverse)
    thrusts = _tilted(thrusts, tilt, a.collective, limits)
    thrusts = _plus(thrusts, sideways, _largest_scale(thrusts, sideways, limits))
    turn = tuple(row[5] * wrench[5] for row in a.inverse)
    thrusts = _plus(thrusts, turn, _largest_scale(thrusts, turn, limits))
    # Rounding alone can leave a limit here; the clip makes "within limits" exact.
    return tuple(
        where(excess > 0.0, clip(t, lower, upper), u) for t, u, (lower, upper) in zip(thrusts, exact, limits, strict=True)
    )


def _force_parts(wrench: Vector, a: Any) -> tuple[Vector, Vector, Vector]:
    """Thrusts of the clipped collective, of a force without collective direction, and of the sideways force beside one."""
    lowest: Scalar = -_FAR
    highest: Scalar = _FAR
    movable: Scalar = 0.0
    for share, lower, upper in zip(a.collective, a.thrust_min, a.thrust_max, strict=True):
        real = share > 0.0
        inverse = 1.0 / where(real, share, 1.0)
        lowest = maximum(lowest, where(real, lower * inverse, -_FAR))
        highest = minimum(highest, where(real, upper * inverse, _FAR))
        movable = maximum(movable, share)
    collective = minimum(maximum(wrench[2], lowest), highest)
    free = where(movable > 0.0, 0.0, 1.0)
    base = tuple(share * collective for share in a.collective)
    sideways = tuple(row[0] * wrench[0] + row[1] * wrench[1] for row in a.inverse)
    whole = tuple(free * (s + row[2] * wrench[2]) for s, row in zip(sideways, a.inverse, strict=True))
    return base, whole, tuple((1.0 - free) * s for s in sideways)


def _plus(base: Vector, direction: Vector, s: Scalar) -> Vector:
    return tuple(b + s * d for b, d in zip(base, direction, strict=True))


def _largest_scale(base: Vector, direction: Vector, limits: tuple[tuple[Scalar, Scalar], ...]) -> Scalar:
    """Largest s in [0, 1] with base + s direction within limits; 0 where the base is outside already and would get worse."""
    s: Scalar = 1.0
    for b, d, (lower, upper) in zip(base, direction, limits, strict=True):
        room = where(d > 0.0, upper - b, b - lower)
        size = absolute(d)
        s = minimum(s, where(size > 1e-12, room / where(size > 1e-12, size, 1.0), 1.0))
    return maximum(s, 0.0)


def _tilted(base: Vector, tilt: Vector, collective: Vector, limits: tuple[tuple[Scalar, Scalar], ...]) -> Vector:
    """Roll and pitch on top of the base, with the largest scale and then the smallest shift of the collective.

    A shift c fits iff (lo_i - b_i - s m_i) / p_i <= c <= (hi_j - b_j - s m_j) / p_j for all i, j: each pair bounds s.
    """
    lowest, highest, slopes = [], [], []
    for b, m, p, (lower, upper) in zip(base, tilt, collective, limits, strict=True):
        real = p > 0.0
        inverse = 1.0 / where(real, p, 1.0)
        lowest.append(where(real, (lower - b) * inverse, -_FAR))
        highest.append(where(real, (upper - b) * inverse, _FAR))
        slopes.append(where(real, m * inverse, 0.0))
    s: Scalar = 1.0
    for i in range(len(slopes)):
        for j in range(i):
            spread = slopes[j] - slopes[i]
            # Of the two orders of a pair only the one whose spread is positive binds.
            room = where(spread > 0.0, highest[j] - lowest[i], highest[i] - lowest[j])
            size = absolute(spread)
            real = size > 1e-12
            s = minimum(s, where(real, room / where(real, size, 1.0), 1.0))
    movable: Scalar = 0.0
    for p in collective:
        movable = maximum(movable, p)
    s = maximum(where(movable > 0.0, s, _largest_scale(base, tilt, limits)), 0.0)
    least: Scalar = -_FAR
    most: Scalar = _FAR
    for bottom, top, slope in zip(lowest, highest, slopes, strict=True):
        least, most = maximum(least, bottom - s * slope), minimum(most, top - s * slope)
    shift = minimum(maximum(least, 0.0), maximum(most, least))
    return tuple(b + s * m + shift * p for b, m, p in zip(base, tilt, collective, strict=True))


def speed_for_thrust(polynomial: Vector, thrust: Scalar) -> Scalar:
    """Rotor state w with c0 + c1 w + c2 w|w| = thrust, c2 >= 0; where c1 < 0 the outer root.

    Linear polynomials (rotors whose state is thrust) and negative thrusts (reversible rotors) are included; a polynomial that
    is constant yields a huge state, for the caller's limits to clip.

    Args:
        polynomial: c0 [N], c1 [N s/rad], c2 [N s^2/rad^2].
        thrust: [N]
    """
    c0, c1, c2 = polynomial
    rest = thrust - c0
    size = absolute(rest)
    root = sqrt(c1 * c1 + 4.0 * c2 * size)
    # Two forms of one root, each used where it does not cancel.
    outward = root + c1
    rising = 2.0 * size / where(outward > 0.0, outward, 1e-30)
    falling = (root - c1) / where(c2 > 0.0, 2.0 * c2, 1.0)
    return where(rest < 0.0, -1.0, 1.0) * where(c1 < 0.0, falling, where(size > 0.0, rising, 0.0))


def rotor_lead(state: Scalar, target: Scalar, factor: Scalar) -> Scalar:
    """Command that makes a first-order rotor `factor` times as fast: w + factor (target - w); the caller's limits clip it."""
    return state + factor * (target - state)
