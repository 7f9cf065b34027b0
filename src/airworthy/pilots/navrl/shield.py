"""The shield of NavRL: half spaces of velocities that stay clear of what is near, and the nearest velocity within them.

Source: specification of the planners, section 7.5. After the optimal reciprocal collision avoidance of van den Berg and others,
one-sided: the vehicle alone gives way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.navrl.velocity_programme import Plane, nearest_velocity

__all__ = ["Sphere", "Verdict", "clusters", "half_space", "height_planes", "shielded", "spheres_of_scan", "stacked_spheres"]

Array = NDArray[np.float64]

HORIZON, STEP = 2.0, 0.05
"""Collisions within so many seconds count; what already overlaps is left within a step [s]."""
ROBOT_RADIUS, SAFETY = 0.3, 0.3
"""Around the vehicle, against what moves [m]; the map's cells are grown already."""
NEAR, FEWEST = 0.2, 2
"""Of the clusters: distance of neighbours [m] and points that make one."""
GROWTH = 1.5
"""Radius of a cluster's sphere over its half extent."""
SPEED = math.sqrt(12.0)
"""Largest speed: 2 m/s along each axis [m/s]."""
_SMALLEST = 1e-9


@dataclass(frozen=True, eq=False)
class Sphere:
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


def clusters(points: Array, near: float = NEAR, fewest: int = FEWEST) -> NDArray[np.int64]:
    """DBSCAN: cluster of each point (m, 3), -1 for noise. Points with `fewest` neighbours, themselves included, are cores."""
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


def spheres_of_scan(points: Array) -> list[Sphere]:
    """A sphere per cluster of points (m, 3) that rays hit, from the vehicle: pushed away from it by the half extent."""
    label = clusters(points)
    out = []
    for number in range(int(label.max(initial=-1)) + 1):
        member = points[label == number]
        low, high = member.min(axis=0), member.max(axis=0)
        centre, half = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
        away = float(np.linalg.norm(centre))
        if away > _SMALLEST:
            centre = centre * (1.0 + half / away)
        out.append(Sphere(centre, GROWTH * half, np.zeros(3)))
    return out


def stacked_spheres(position: Array, size: Array, velocity: Array) -> list[Sphere]:
    """Spheres that cover a moving box, one above the other: radius half the horizontal diagonal, the vehicle's added.

    Args:
        position: Middle of the box, from the vehicle (3,) [m].
        size: Edges (3,) [m].
        velocity: (3,) [m/s]
    """
    radius = 0.5 * math.hypot(size[0], size[1])
    count = max(1, math.ceil(size[2] / max(2.0 * radius, _SMALLEST)))
    heights = (np.arange(count) + 0.5) / count * size[2] - 0.5 * size[2]
    grown = radius + ROBOT_RADIUS + SAFETY
    return [Sphere(np.add(position, (0.0, 0.0, h)), grown, np.asarray(velocity, float)) for h in heights]


def half_space(wanted: Array, sphere: Sphere) -> tuple[Plane, bool]:
    """The half space of velocities that one sphere leaves, and whether the wanted one (3,) is on its way into it.

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
    """Whether the way within the horizon enters: the angle to the cone and the distance to the cut-off sphere in one."""
    t = min(HORIZON, max(0.0, float(v @ r) / max(float(v @ v), _SMALLEST)))
    return float(np.linalg.norm(v * t - r)) < radius


def height_planes(height: float, climb: float, lowest: float, highest: float) -> list[Plane]:
    """Half spaces of a vehicle that would leave its heights within the horizon [m, m/s]."""
    planes: list[Plane] = []
    if height + climb * HORIZON < lowest:
        planes.append(((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    if height + climb * HORIZON > highest:
        planes.append(((0.0, 0.0, 0.0), (0.0, 0.0, -1.0)))
    return planes


def shielded(wanted: Array, spheres: list[Sphere], height: list[Plane] | None = None) -> Verdict:
    """What may be flown instead of a wanted velocity (3,); itself, where nothing is in its way."""
    pairs = [half_space(wanted, sphere) for sphere in spheres]
    planes = [*(plane for plane, _ in pairs), *(height or [])]
    blocked = any(conflict for _, conflict in pairs)
    blocked |= any(wanted[2] * normal[2] < 0.0 for _, normal in height or [])
    if not blocked:
        return Verdict(np.array(wanted, float), planes, False, True)
    velocity, feasible = nearest_velocity(wanted, planes, SPEED)
    return Verdict(velocity, planes, True, feasible)
