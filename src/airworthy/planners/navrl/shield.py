"""The shield of NavRL: half spaces of velocities that stay clear of what is near, and the nearest velocity within them.

Source: specification of the planners, section 7.5. After the optimal reciprocal collision avoidance of van den Berg and others,
one-sided: the vehicle alone gives way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt

__all__ = [
    "ShieldSphere",
    "Verdict",
    "clusters",
    "half_space",
    "height_planes",
    "nearest_velocity",
    "shielded",
    "spheres_of_scan",
    "stacked_spheres",
    "violation",
]

# -----------------------------------------------------------------------------------------------------------------------------
# The velocity nearest to a wanted one within half spaces and a speed: an incremental linear programme in three
# dimensions.
#
# Half spaces are taken one after the other. Where the best point so far lies outside the next one, the new best lies on its
# plane: the same problem in two dimensions, and there in turn on a line. Without a solution the largest violation is made
# least. The numbers are few and plain floats: at a dozen planes arrays would cost more than they save.

Vec = tuple[float, float, float]
Plane = tuple[Vec, Vec]
"""A point and the unit normal into what is allowed."""
# Ours: a half space violated by less is kept, up to rounding.
_TINY = 1e-10
# Ours: 40 halvings of a few m/s end below rounding, always after the same work.
_HALVINGS = 40


def nearest_velocity(wanted: Sequence[float] | Array, planes: Sequence[Plane], speed: float) -> tuple[Array, bool]:
    """Return the velocity nearest to `wanted` on the allowed side of all planes and not faster than `speed`.

    Args:
        wanted: (3,) [m/s].
        planes: Points [m/s] and normals of half spaces in velocity space.
        speed: Largest norm [m/s].

    Returns:
        It, (3,), and whether there was one; else the one whose worst violation is least.
    """
    target = (float(wanted[0]), float(wanted[1]), float(wanted[2]))
    found = _in_space(target, planes, speed)
    if found is not None:
        return np.array(found), True
    low, high = 0.0, max((violation(p, (0.0, 0.0, 0.0)) for p in planes), default=0.0)  # rest violates nothing by more
    best: Vec = (0.0, 0.0, 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        eased = [(_plus(point, normal, -middle), normal) for point, normal in planes]
        found = _in_space(target, eased, speed)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return np.array(best), False


def violation(plane: Plane, v: Sequence[float] | Array) -> float:
    """Return by how much a velocity is outside a half space [m/s]; negative inside."""
    (px, py, pz), (nx, ny, nz) = plane
    return nx * (px - v[0]) + ny * (py - v[1]) + nz * (pz - v[2])


def _in_space(target: Vec, planes: Sequence[Plane], speed: float) -> Vec | None:
    length = math.sqrt(_dot(target, target))
    best = target if length <= speed else _times(target, speed / length)
    for i, plane in enumerate(planes):
        if violation(plane, best) > _TINY:
            found = _on_plane(target, planes[:i], plane, speed)
            if found is None:
                return None
            best = found
    return best


def _on_plane(target: Vec, planes: Sequence[Plane], plane: Plane, speed: float) -> Vec | None:
    """Nearest allowed point of a plane: of its disc within the speed."""
    point, normal = plane
    offset = _dot(point, normal)
    rest = speed * speed - offset * offset
    if rest < 0.0:
        return None
    centre, radius = _times(normal, offset), math.sqrt(rest)
    best = _in_disc(_plus(target, normal, offset - _dot(target, normal)), centre, radius)
    for i, other in enumerate(planes):
        if violation(other, best) <= _TINY:
            continue
        line = _cut(plane, other)
        found = None if line is None else _on_line(target, planes[:i], line, speed)
        if found is None:
            return None
        best = found
    return best


def _in_disc(v: Vec, centre: Vec, radius: float) -> Vec:
    outward = (v[0] - centre[0], v[1] - centre[1], v[2] - centre[2])
    length = math.sqrt(_dot(outward, outward))
    return v if length <= radius else _plus(centre, outward, radius / length)


def _cut(first: Plane, second: Plane) -> tuple[Vec, Vec] | None:
    """Point and unit direction of the line that two planes share; None where they are parallel."""
    (p, n), (q, m) = first, second
    direction = (n[1] * m[2] - n[2] * m[1], n[2] * m[0] - n[0] * m[2], n[0] * m[1] - n[1] * m[0])
    squared = _dot(direction, direction)
    if squared < 1e-12:
        return None
    a, b, c = _dot(n, p), _dot(m, q), _dot(n, m)
    k, j = (a - b * c) / squared, (b - a * c) / squared
    return (k * n[0] + j * m[0], k * n[1] + j * m[1], k * n[2] + j * m[2]), _times(direction, 1.0 / math.sqrt(squared))


def _on_line(target: Vec, planes: Sequence[Plane], line: tuple[Vec, Vec], speed: float) -> Vec | None:
    """Nearest allowed point of a line: of a stretch of it."""
    point, direction = line
    along = _dot(point, direction)
    rest = along * along + speed * speed - _dot(point, point)
    if rest < 0.0:
        return None
    low, high = -along - math.sqrt(rest), -along + math.sqrt(rest)
    for plane in planes:
        slope, short = _dot(direction, plane[1]), violation(plane, point)
        if abs(slope) < 1e-12:
            if short > _TINY:
                return None
        elif slope > 0.0:
            low = max(low, short / slope)
        else:
            high = min(high, short / slope)
    if low > high + _TINY:
        return None
    t = _dot(direction, (target[0] - point[0], target[1] - point[1], target[2] - point[2]))
    return _plus(point, direction, min(max(t, low), max(low, high)))


def _dot(a: Vec, b: Vec) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _times(a: Vec, k: float) -> Vec:
    return a[0] * k, a[1] * k, a[2] * k


def _plus(a: Vec, b: Vec, k: float) -> Vec:
    return a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 7.5: horizon tau 2.0 s, step 0.05 s.
HORIZON, STEP = 2.0, 0.05
"""Collisions within so many seconds count; what already overlaps is left within a step [s]."""
# Source: spec/planners 7.5: robot radius 0.3, safety distance 0.3 (which the public file never sets).
ROBOT_RADIUS, SAFETY = 0.3, 0.3
"""Around the vehicle, against what moves [m]; the map's cells are grown already."""
# Source: spec/planners 7.5: DBSCAN eps 0.2, min 2.
NEAR, FEWEST = 0.2, 2
"""Of the clusters: distance of neighbours [m] and points that make one."""
# Source: spec/planners 7.5: radius 1.5 x the half extent.
GROWTH = 1.5
"""Radius of a cluster's sphere over its half extent."""
# Source: spec/planners 7.5: |v| <= sqrt(12).
SPEED = math.sqrt(12.0)
"""Largest speed: 2 m/s along each axis [m/s]."""
_SMALLEST = 1e-9
"""Ours: what is shorter [m], or smaller [m^2/s^2], has no direction in float64."""


@dataclass(frozen=True, eq=False)
class ShieldSphere:
    """Something to keep clear of."""

    position: Array
    """From the vehicle, world axes [m], (3,)."""
    radius: float
    """The vehicle's included [m]."""
    velocity: Array
    """World [m/s], (3,)."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the shield says to a velocity."""

    velocity: Array
    """(3,) [m/s]"""
    planes: list[Plane]
    """All half spaces."""
    conflict: bool
    """Whether the wanted velocity was not let pass."""
    feasible: bool
    """Whether all half spaces could be kept."""


def clusters(points: Array, near: float = NEAR, fewest: int = FEWEST) -> ArrayInt:
    """Return DBSCAN: cluster of each point (m, 3), -1 for noise. Points with `fewest` neighbours, themselves included, are
    cores.

    Args:
        points: (m, 3) [m].
        near: Distance of neighbours [m].
        fewest: Neighbours of a core, itself included.
    """
    label = np.full(len(points), -1, np.int64)
    if not len(points):
        return label
    close = ((points[:, None] - points[None]) ** 2).sum(axis=2) <= near * near
    core = close.sum(axis=1) >= fewest
    number = 0
    for first in np.flatnonzero(core):
        if label[first] >= 0:
            continue
        label[first], stack = number, [first]
        while stack:
            reached = np.flatnonzero(close[stack.pop()] & (label < 0))
            label[reached] = number
            stack.extend(reached[core[reached]].tolist())
        number += 1
    return label


def spheres_of_scan(points: Array) -> list[ShieldSphere]:
    """Return a sphere per cluster of points (m, 3) that rays hit, from the vehicle: pushed away from it by the half extent."""
    label = clusters(points)
    out = []
    for number in range(int(label.max(initial=-1)) + 1):
        member = points[label == number]
        low, high = member.min(axis=0), member.max(axis=0)
        centre, half = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
        away = float(np.linalg.norm(centre))
        if away > _SMALLEST:
            centre = centre * (1.0 + half / away)
        out.append(ShieldSphere(centre, GROWTH * half, np.zeros(3)))
    return out


def stacked_spheres(position: Array, size: Array, velocity: Array) -> list[ShieldSphere]:
    """Return spheres that cover a moving box, one above the other: radius half the horizontal diagonal, the vehicle's added.

    Args:
        position: Middle of the box, from the vehicle (3,) [m].
        size: Edges (3,) [m].
        velocity: (3,) [m/s]
    """
    radius = 0.5 * math.hypot(size[0], size[1])
    count = max(1, math.ceil(size[2] / max(2.0 * radius, _SMALLEST)))
    heights = (np.arange(count) + 0.5) / count * size[2] - 0.5 * size[2]
    grown = radius + ROBOT_RADIUS + SAFETY
    return [ShieldSphere(np.add(position, (0.0, 0.0, h)), grown, np.asarray(velocity, float)) for h in heights]


def half_space(wanted: Array, sphere: ShieldSphere) -> tuple[Plane, bool]:
    """Return the half space of velocities that one sphere leaves, and whether the wanted one (3,) is on its way into it.

    The velocity is projected onto the border of those that lead into the sphere within the horizon: a cone with a round tip.
    """
    r, radius = sphere.position, sphere.radius
    v = np.asarray(wanted, float) - sphere.velocity
    distance2 = float(r @ r)
    if distance2 <= radius * radius:
        normal, shift = _from_ball(v - r / STEP, radius / STEP, r)
        return _plane(wanted, normal, shift), True
    w = v - r / HORIZON
    conflict = _reaches(v, r, radius)
    toward = float(w @ r)
    if toward < 0.0 and toward * toward > radius * radius * float(w @ w):
        normal, shift = _from_ball(w, radius / HORIZON, r)
        return _plane(wanted, normal, shift), conflict
    along, across = float(r @ v), np.cross(r, v)
    c = float(v @ v) - float(across @ across) / (distance2 - radius * radius)
    t = (along + math.sqrt(max(along * along - distance2 * c, 0.0))) / distance2
    normal, shift = _from_ball(v - t * r, radius * t, r)
    return _plane(wanted, normal, shift), conflict


def _from_ball(w: Array, radius: float, r: Array) -> tuple[Array, float]:
    """Direction out of a ball and how far w is inside of it; with w at its centre, away from the obstacle."""
    length = float(np.linalg.norm(w))
    if length > _SMALLEST:
        return w / length, radius - length
    away = float(np.linalg.norm(r))
    return (-r / away if away > _SMALLEST else np.array([0.0, 0.0, 1.0])), radius - length


def _plane(wanted: Array, normal: Array, shift: float) -> Plane:
    x, y, z = (np.asarray(wanted, float) + shift * normal).tolist()
    a, b, c = normal.tolist()
    return (x, y, z), (a, b, c)


def _reaches(v: Array, r: Array, radius: float) -> bool:
    """Tell whether the way within the horizon enters: the angle to the cone and the distance to the cut-off sphere in one."""
    t = min(HORIZON, max(0.0, float(v @ r) / max(float(v @ v), _SMALLEST)))
    return float(np.linalg.norm(v * t - r)) < radius


def height_planes(height: float, climb: float, lowest: float, highest: float) -> list[Plane]:
    """Return half spaces of a vehicle that would leave its heights within the horizon [m, m/s].

    Args:
        height: Of the vehicle [m].
        climb: Its wanted vertical velocity [m/s].
        lowest: Least height [m].
        highest: Greatest height [m].
    """
    planes: list[Plane] = []
    if height + climb * HORIZON < lowest:
        planes.append(((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    if height + climb * HORIZON > highest:
        planes.append(((0.0, 0.0, 0.0), (0.0, 0.0, -1.0)))
    return planes


def shielded(wanted: Array, spheres: list[ShieldSphere], height: list[Plane] | None = None) -> Verdict:
    """Return what may be flown instead of a wanted velocity (3,); itself, where nothing is in its way.

    Args:
        wanted: (3,) [m/s].
        spheres: What it must not run into, relative to the vehicle.
        height: Half spaces of `height_planes`; None: no limits.
    """
    pairs = [half_space(wanted, sphere) for sphere in spheres]
    planes = [*(plane for plane, _ in pairs), *(height or [])]
    blocked = any(conflict for _, conflict in pairs)
    blocked |= any(wanted[2] * normal[2] < 0.0 for _, normal in height or [])
    if not blocked:
        return Verdict(np.array(wanted, float), planes, False, True)
    velocity, feasible = nearest_velocity(wanted, planes, SPEED)
    return Verdict(velocity, planes, True, feasible)
