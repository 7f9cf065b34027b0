"""From a body wrench to rotor thrusts, and from a thrust to a rotor state; equations, and the host code that feeds them.

The pseudo-inverse is equation (7) of Aerial Gym; the bounded scheme is ours: it keeps every rotor within its limits and, where
not all fits, serves attitude (roll and pitch), force and yaw one after the other, in an order that is an option.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from airworthy.control.collective import FAR, collective_limits, irregular
from airworthy.control.spare_rotors import Spare
from airworthy.control.spare_simplex import ROWS, Problem, nearest_thrusts
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, clip, maximum, minimum, sqrt, where

Priority = Literal["attitude-force-yaw", "attitude-yaw-force", "force-attitude-yaw"]
"""What is served first where the rotors cannot give a whole wrench; what comes last is given up first."""
PRIORITIES: tuple[Priority, ...] = get_args(Priority)

# Ours: 25 steps of float32 (1.2e-7 each).
_ROUNDING = 3e-6
"""Elements of a direction below this share of its largest are float32's rounding, and bound nothing."""
# Roots of primes: no sum of a few of them is another's, whatever the airframe's symmetries.
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
"""Of their roots the weights of rotors' distances are made."""


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
    spare: Spare = Spare()
    """Of five and more rotors, what is known of those to spare; else empty."""


def _part(row: Vector, wrench: Vector, first: int, last: int) -> Scalar:
    total = row[first] * wrench[first]
    for k in range(first + 1, last):
        total = total + row[k] * wrench[k]
    return total


def allocate_pseudo_inverse(wrench: Vector, a: Any, limit: Scalar = 1.0) -> Vector:
    """Return rotor thrusts [N] P W, each clipped to its limits where the mask `limit` is set.

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
    """Return by how much the worst rotor is outside its limits [N]; 0 where none is.

    Args:
        thrusts: Of each rotor [N].
        thrust_min: Least thrusts [N].
        thrust_max: Largest thrusts [N].
    """
    excess: Scalar = 0.0
    for u, lower, upper in zip(thrusts, thrust_min, thrust_max, strict=True):
        excess = maximum(excess, maximum(lower - u, u - upper))
    return excess


def allocate_bounded(wrench: Vector, a: Any, priority: Priority = "attitude-force-yaw", regular: bool = False) -> Vector:
    """Return rotor thrusts [N] within limits, by priority.

    The exact solution where it is within limits. Else each group in turn gets the largest share in [0, 1] of what is asked, its
    direction kept, beside the groups before it and with nothing for those after it. Thrusts are those of the pseudo-inverse;
    with rotors to spare they are whatever these can give together (`spare_simplex`).
    Force waits for its turn in a way of its own, since moments need thrust to take from: until then there may be as much of it
    as suits the moments. Airframes with a positive collective direction: the collective may be anything, and becomes the value
    nearest to what is asked; then sideways force gets its share. Airframes without one (rotors facing many ways): the whole
    force may have any share in [0, 1], and gets the largest.

    Args:
        wrench: Fx, Fy, Fz [N], Mx, My, Mz [N m], body frame, about the centre of mass.
        a: `Allocation` or alike.
        priority: The order; known when a kernel is built.
        regular: No airframe is `irregular`; known when a kernel is built, which is spared what these alone need.
    """
    limits = tuple(zip(a.thrust_min, a.thrust_max, strict=True))
    exact = tuple(_part(row, wrench, 0, 6) for row in a.inverse)
    excess = limit_excess(exact, a.thrust_min, a.thrust_max)
    thrusts = _by_priority(wrench, a, limits, priority, regular)
    if a.spare.span:
        # Airframes with fewer rotors in a kernel for more take their own path, to the bits that they get alone.
        used = a.spare.scale > 0.0
        needed = used & (excess > 0.0)
        thrusts = tuple(
            where(used, s, t) for s, t in zip(_with_spare(wrench, exact, a, priority, needed), thrusts, strict=True)
        )
    # Rounding alone can leave a limit here; the clip makes "within limits" exact.
    return tuple(
        where(excess > 0.0, clip(t, lower, upper), u) for t, u, (lower, upper) in zip(thrusts, exact, limits, strict=True)
    )


def _with_spare(wrench: Vector, exact: Vector, a: Any, priority: Priority, needed: Any) -> Vector:
    """Return the thrusts of an airframe with rotors to spare, whatever these can give together (`spare_simplex`).

    Args:
        wrench: As of `allocate_bounded`.
        exact: Thrusts of the pseudo-inverse.
        a: `Allocation` or alike.
        priority: The order.
        needed: Where thrusts are wanted: elsewhere any do.
    """
    spare, n = a.spare, len(a.inverse)
    unit = 1.0 / where(spare.scale > 0.0, spare.scale, 1.0)
    lower, upper = tuple(x * unit for x in a.thrust_min), tuple(x * unit for x in a.thrust_max)
    wanted = tuple(clip(u * unit, low, high) for u, low, high in zip(exact, lower, upper, strict=True))
    sideways = tuple((row[0] * wrench[0] + row[1] * wrench[1]) * unit for row in a.inverse)
    whole = tuple(s + row[2] * wrench[2] * unit for s, row in zip(sideways, a.inverse, strict=True))
    moves = _largest(a.collective) > 0.0
    groups = {
        "attitude": [tuple(_part(row, wrench, 3, 5) * unit for row in a.inverse)],
        "yaw": [tuple(row[5] * wrench[5] * unit for row in a.inverse)],
        "force": [
            tuple(where(moves, share, w) for share, w in zip(a.collective, whole, strict=True)),
            tuple(where(moves, s, 0.0) for s in sideways),
        ],
    }
    order = priority.split("-")
    turn = 1 + order.index("force")
    missing = tuple(u * unit - w for u, w in zip(exact, wanted, strict=True))
    stages = [missing, *(part for group in order for part in groups[group])]
    found = [_in_span(stage, spare.span) for stage in stages]
    directions, sizes = tuple(d for d, _ in found), [size for _, size in found]
    size = sizes[turn]
    goal = where(moves, wrench[2] * unit * size, size)
    shift = _first_shift(stages[turn], size, goal, lower, upper)
    start = tuple(
        clip(shift * d / where(size > 0.0, size, 1.0), low, high)
        for d, low, high in zip(stages[turn], lower, upper, strict=True)
    )
    sizes[turn] = goal
    problem = Problem(
        span=spare.span,
        lower=lower,
        upper=upper,
        wanted=wanted,
        weight=tuple(1.0 + 0.2 * math.modf(math.sqrt(k))[0] for k in _PRIMES[:n]),
        start=start,
        basis=spare.basis,
        inverse=spare.inverse,
        directions=directions,
        goals=tuple(sizes),
        shift=shift,
        shift_least=where(moves, -FAR, 0.0),
        shift_most=where(moves, FAR, size),
        turn=float(turn),
    )
    return tuple(x * spare.scale for x in nearest_thrusts(problem, needed))


def _in_span(thrusts: Vector, span: tuple[Vector, ...]) -> tuple[Vector, Scalar]:
    """Direction of length 1, in the coordinates of wrenches, and the length of thrusts that the pseudo-inverse gives."""
    parts = []
    for k in range(ROWS):
        total = span[0][k] * thrusts[0]
        for row, u in zip(span[1:], thrusts[1:], strict=True):
            total = total + row[k] * u
        parts.append(total)
    square = parts[0] * parts[0]
    for x in parts[1:]:
        square = square + x * x
    size = sqrt(square)
    return tuple(x / where(size > 0.0, size, 1.0) for x in parts), size


def _first_shift(thrusts: Vector, size: Scalar, goal: Scalar, lower: Vector, upper: Vector) -> Scalar:
    """Return the value nearest to the goal for which a force alone, in proportions of the pseudo-inverse, is within limits.

    Args:
        thrusts: Of that force, per rotor.
        size: Their length.
        goal: What is asked.
        lower: Least thrusts.
        upper: Largest thrusts.
    """
    least: Scalar = -FAR
    most: Scalar = FAR
    for d, low, high in zip(thrusts, lower, upper, strict=True):
        share = d / where(size > 0.0, size, 1.0)
        real = absolute(share) > _ROUNDING
        inverse = 1.0 / where(real, share, 1.0)
        below, above = low * inverse, high * inverse
        least = maximum(least, where(real, where(share > 0.0, below, above), -FAR))
        most = minimum(most, where(real, where(share > 0.0, above, below), FAR))
    return minimum(maximum(goal, least), most)


def _by_priority(
    wrench: Vector, a: Any, limits: tuple[tuple[Scalar, Scalar], ...], priority: Priority, regular: bool
) -> Vector:
    """Rotor thrusts [N] in the proportions of the pseudo-inverse, with the largest share of each group in its turn."""
    moments = {
        "attitude": tuple(_part(row, wrench, 3, 5) for row in a.inverse),
        "yaw": tuple(row[5] * wrench[5] for row in a.inverse),
    }
    before, after = (tuple(filter(None, part.split("-"))) for part in priority.split("force"))
    thrusts, lateral, shift = _force_parts(wrench, a, bool(before))
    # Of regular airframes no moment makes room for force beyond what fits without it; rounding must not seem to.
    wish = 0.0 if regular else where(irregular(a.collective, a.thrust_min, a.thrust_max), shift.wish, 0.0)
    for group in before[:-1]:
        thrusts = _plus(thrusts, moments[group], _scale_with_shift(thrusts, moments[group], shift, limits)[0])
    for group in before[-1:]:
        thrusts = _shifted(thrusts, moments[group], shift._replace(wish=wish), limits, tight=len(before) > 1)
    for direction in (lateral, *(moments[group] for group in after)):
        thrusts = _plus(thrusts, direction, _largest_scale(thrusts, direction, limits))
    return thrusts


class _Shift(NamedTuple):
    """By what a force that has not had its turn may differ from what is asked."""

    direction: Vector
    """Thrusts of one unit."""
    least: Scalar
    most: Scalar
    wish: Scalar = 0.0
    """What leads to the force that is asked for."""


def _force_parts(wrench: Vector, a: Any, later: bool) -> tuple[Vector, Vector, _Shift]:
    """Thrusts to start from, of the force that gets its share after, and how the start may be shifted.

    The start is the collective, clipped to what rotors in these proportions can give. Without a collective direction it is the
    whole force where other groups come first (`later`), from which their turn takes what it needs; else nothing.
    """
    lowest, highest, movable = collective_limits(a.collective, a.thrust_min, a.thrust_max)
    collective = minimum(maximum(wrench[2], lowest), highest)
    base = tuple(share * collective for share in a.collective)
    sideways = tuple(row[0] * wrench[0] + row[1] * wrench[1] for row in a.inverse)
    whole = tuple(s + row[2] * wrench[2] for s, row in zip(sideways, a.inverse, strict=True))
    moves = movable > 0.0
    if later:
        start = tuple(where(moves, b, w) for b, w in zip(base, whole, strict=True))
        lateral = tuple(where(moves, s, 0.0) for s in sideways)
    else:
        start, lateral = base, tuple(where(moves, s, w) for s, w in zip(sideways, whole, strict=True))
    direction = tuple(where(moves, share, w) for share, w in zip(a.collective, whole, strict=True))
    return start, lateral, _Shift(direction, where(moves, -FAR, -1.0), where(moves, FAR, 0.0), wrench[2] - collective)


def _plus(base: Vector, direction: Vector, s: Scalar) -> Vector:
    return tuple(b + s * d for b, d in zip(base, direction, strict=True))


def _largest_scale(base: Vector, direction: Vector, limits: tuple[tuple[Scalar, Scalar], ...]) -> Scalar:
    """Largest s in [0, 1] with base + s direction within limits; 0 where the base is outside already and would get worse."""
    s: Scalar = 1.0
    smallest = _ROUNDING * _largest(direction) + 1e-12
    for b, d, (lower, upper) in zip(base, direction, limits, strict=True):
        room = where(d > 0.0, upper - b, b - lower)
        size = absolute(d)
        s = minimum(s, where(size > smallest, room / where(size > smallest, size, 1.0), 1.0))
    return maximum(s, 0.0)


def _largest(values: Sequence[Scalar]) -> Scalar:
    largest: Scalar = 0.0
    for value in values:
        largest = maximum(largest, absolute(value))
    return largest


def _scale_with_shift(
    base: Vector, direction: Vector, shift: _Shift, limits: tuple[tuple[Scalar, Scalar], ...], tight: bool = False
) -> tuple[Scalar, Scalar, Scalar]:
    """Largest s in [0, 1] for which some shift c keeps base + s direction + c p within limits, and the range of c then.

    A shift c fits iff (lo_i - b_i - s m_i) / p_i <= c <= (hi_j - b_j - s m_j) / p_j for all i, j (for p_i < 0 with lo and hi
    exchanged), and is within its own limits: each pair bounds s. `tight`: a group before may have left a pair no room; rounding
    must not then bound a direction that does not spread this pair.
    """
    lowest, highest, slopes = [], [], []
    s: Scalar = 1.0
    flat = _ROUNDING * _largest(shift.direction)
    for b, m, p, (lower, upper) in zip(base, direction, shift.direction, limits, strict=True):
        real = absolute(p) > flat
        inverse = 1.0 / where(real, p, 1.0)
        below, above = (lower - b) * inverse, (upper - b) * inverse
        lowest.append(where(real, where(p > 0.0, below, above), -FAR))
        highest.append(where(real, where(p > 0.0, above, below), FAR))
        slopes.append(where(real, m * inverse, 0.0))
        # A rotor that the shift does not reach bounds s by itself.
        size = where(real, 0.0, absolute(m))
        s = minimum(s, where(size > 1e-12, where(m > 0.0, upper - b, b - lower) / where(size > 1e-12, size, 1.0), 1.0))
    # The shift's own limits are those of one rotor more, which the direction does not reach.
    lowest, highest, slopes = [*lowest, shift.least], [*highest, shift.most], [*slopes, 0.0 * shift.most]
    s = _by_pairs(s, lowest, highest, slopes, _ROUNDING * _largest(slopes) + 1e-12 if tight else 1e-12)
    least: Scalar = shift.least
    most: Scalar = shift.most
    for bottom, top, slope in zip(lowest, highest, slopes, strict=True):
        least, most = maximum(least, bottom - s * slope), minimum(most, top - s * slope)
    return s, least, most


def _by_pairs(s: Scalar, lowest: list[Scalar], highest: list[Scalar], slopes: list[Scalar], smallest: Scalar) -> Scalar:
    """Largest share up to s for which the range of the shift is not empty; slopes that differ by less are the same."""
    for i in range(len(slopes)):
        for j in range(i):
            spread = slopes[j] - slopes[i]
            # Of the two orders of a pair only the one whose spread is positive binds.
            room = where(spread > 0.0, highest[j] - lowest[i], highest[i] - lowest[j])
            size = absolute(spread)
            real = size > smallest
            s = minimum(s, where(real, room / where(real, size, 1.0), 1.0))
    return maximum(s, 0.0)


def _shifted(
    base: Vector, direction: Vector, shift: _Shift, limits: tuple[tuple[Scalar, Scalar], ...], tight: bool = False
) -> Vector:
    """Return the largest share of a direction on top of the base, with the shift that makes room and is nearest to the wish."""
    s, least, most = _scale_with_shift(base, direction, shift, limits, tight)
    move = minimum(maximum(least, shift.wish), maximum(most, least))
    return tuple(b + s * m + move * p for b, m, p in zip(base, direction, shift.direction, strict=True))


def speed_for_thrust(polynomial: Vector, thrust: Scalar) -> Scalar:
    """Return the rotor state w with c0 + c1 w + c2 w|w| = thrust, c2 >= 0; where c1 < 0 the outer root.

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
    """Return the command that makes a first-order rotor `factor` times as fast: w + factor (target - w); the caller's limits
    clip it.

    Args:
        state: Present state of the rotor (speed [rad/s], or thrust [N]).
        target: Wanted state, in the same unit.
        factor: 1 leaves the command as it is.
    """
    return state + factor * (target - state)
