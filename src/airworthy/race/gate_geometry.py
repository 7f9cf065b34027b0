"""Where gates stand and which way they are flown: corners to planes, openings and directions; moving and turning them.

Frames are built from the corners themselves, never from their place in the list: of the published gates some list them round
the opening, and some row by row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.race.record import Race, RaceGate

FLAT = 1e-3
"""How far a corner may lie off the plane of the four [m]. Ours: published corners are rounded to 0.01 mm."""
ACROSS = 0.5
"""Least cosine between a gate's direction and its plane's normal. Ours: what is beside by 60 degrees is a slip."""
_SMALL = 0.05
"""Shortest side and diagonal of an opening [m]; ours."""
_LEVEL = 1e-3
"""An opening whose level rectangle is larger than its least one by no more than this part has level axes. Ours: corners are
rounded."""


@dataclass(frozen=True)
class GateShape:
    """A gate's opening in the world."""

    corners: Array
    """As listed [m], (4, 3)."""
    ring: Array
    """The same, going round the opening counter-clockwise for who looks against the direction of flight, (4, 3)."""
    normal: Array
    """Direction of flight, unit length, (3,)."""
    center: Array
    """Mean of the corners [m], (3,)."""
    left: Array
    """Across the opening, to the left of who flies through, level unless the opening is rolled, unit length, (3,)."""
    up: Array
    """Across the opening, upwards, unit length, (3,). Both lie along the sides of the least rectangle around the corners: of a
    gate that is rolled they are rolled with it, by 45 degrees at most."""
    half_width: float
    """Along `left` from the centre to the farthest corner [m]."""
    half_height: float
    """Along `up` [m]."""

    @property
    def filled(self) -> float:
        """Return the part of the rectangle 2 `half_width` x 2 `half_height` that is open, 0 to 1: 1 of a rectangle."""
        sides = np.cross(self.ring - self.center, np.roll(self.ring, -1, axis=0) - self.center)
        return abs(float(0.5 * np.sum(sides @ self.normal))) / (4.0 * self.half_width * self.half_height)

    def holds(self, points: Array) -> ArrayBool:
        """Tell which points lie in the opening as seen along its normal, edge included, (n, 3) -> (n,)."""
        sides = np.roll(self.ring, -1, axis=0) - self.ring
        # Round the normal the inside is to the left of each side, or to the right of each where it is flown in reverse.
        left = np.cross(sides[None], points[:, None] - self.ring[None]) @ self.normal
        return np.asarray(np.all(left >= -1e-9, axis=1) | np.all(left <= 1e-9, axis=1))


def gate_shape(gate: RaceGate) -> GateShape:
    """Return the opening of a gate.

    Raises:
        AirworthyError: Corners that are no opening, or a direction that does not lead through.
    """
    if gate.position is not None:
        heading = math.radians(gate.yaw_deg)
        direction = np.array([math.cos(heading), math.sin(heading), 0.0])
        return shape_of(_corners_of_pose(gate, direction), direction, gate.name)
    return shape_of(gate.corners, gate.direction, gate.name)


def shape_of(corners: ArrayLike, direction: ArrayLike, name: str) -> GateShape:
    """Return the opening between four corners.

    Args:
        corners: World [m], (4, 3), in any order.
        direction: Of flight, roughly, (3,).
        name: Of the gate, for messages.

    Raises:
        AirworthyError: The corners do not span a flat convex opening, or the direction does not lead through it.
    """
    points, way = np.asarray(corners, np.float64), np.asarray(direction, np.float64)
    center = points.mean(axis=0)
    normal = _normal(points, name)
    length = float(np.linalg.norm(way))
    cosine = float(normal @ way) / length if length > 0.0 else 0.0
    if abs(cosine) < ACROSS:
        raise AirworthyError(
            f"Gate {name!r} is flown along {_text(way)}, but its opening faces {_text(normal)} or the opposite: give the"
            " direction of flight through it, within 60 degrees of one of these."
        )
    normal = normal if cosine > 0.0 else -normal
    # The crossing is decided on two triangles, which are one surface only if the four corners are flat.
    off = float(np.max(np.abs((points - center) @ normal)))
    if off > FLAT:
        raise AirworthyError(f"The corners of gate {name!r} lie up to {off:.4g} m off one plane; expected at most {FLAT:g} m.")
    left = _left(normal)
    up = np.cross(normal, left)
    across = np.stack([(points - center) @ left, (points - center) @ up], axis=1)
    # Left, up and normal are a right-handed frame: rising angles go round the normal counter-clockwise.
    order = np.argsort(np.arctan2(across[:, 1], across[:, 0]), kind="stable")
    ring = points[order]
    _check_convex(ring, normal, name)
    roll = _roll(across[order])
    if roll != 0.0:
        left, up = math.cos(roll) * left + math.sin(roll) * up, math.cos(roll) * up - math.sin(roll) * left
        across = np.stack([(points - center) @ left, (points - center) @ up], axis=1)
    half = np.max(np.abs(across), axis=0)
    return GateShape(points, ring, normal, center, left, up, float(half[0]), float(half[1]))


def _normal(points: Array, name: str) -> Array:
    """Either normal of the four corners' plane: across the two diagonals, which are the pairing that spans most."""
    # Paired with a neighbour instead, opposite sides of a rectangle are parallel and span nothing.
    best = np.zeros(3)
    for other in (1, 2, 3):
        rest = [k for k in (1, 2, 3) if k != other]
        span = np.cross(points[other] - points[0], points[rest[1]] - points[rest[0]])
        best = span if np.linalg.norm(span) > np.linalg.norm(best) else best
    size = float(np.linalg.norm(best))
    # Half of it is the area of the opening.
    if not size > 2.0 * _SMALL**2:
        raise AirworthyError(f"The corners of gate {name!r} span {0.5 * size:.4g} m^2; expected an opening to fly through.")
    return np.asarray(best / size)


def _left(normal: Array) -> Array:
    """Level direction to the left of who flies along the normal; world y where that is straight up or down."""
    level = np.array([-normal[1], normal[0], 0.0])
    size = float(np.linalg.norm(level))
    return level / size if size > 1e-6 else np.array([0.0, 1.0, 0.0])


def _roll(ring: Array) -> float:
    """Return by which angle axes are turned to lie along the least rectangle around an opening, -45 to 45 degrees [rad].

    The least rectangle around a convex polygon shares a side with it (Freeman and Shapira, "Determining the minimum-area
    encasing rectangle for an arbitrary closed curve", 1975).

    Args:
        ring: Corners round the opening, to the left and up [m], (4, 2).

    Returns:
        0 where level axes do as well.
    """
    sides = np.roll(ring, -1, axis=0) - ring
    # A quarter of a turn leaves a rectangle what it is; of plus and minus 45 degrees, which are one, the former is taken.
    angles = np.arctan2(sides[:, 1], sides[:, 0])
    angles -= 0.5 * np.pi * np.ceil(angles / (0.5 * np.pi) - 0.5 - 1e-9)
    areas = [_around(ring, angle) for angle in (0.0, *angles)]
    least = int(np.argmin(areas))
    return 0.0 if areas[0] <= (1.0 + _LEVEL) * areas[least] else float(angles[least - 1])


def _around(ring: Array, angle: float) -> float:
    """Return the area of the rectangle around corners, (4, 2), whose sides are turned by an angle [rad]."""
    c, s = math.cos(angle), math.sin(angle)
    return float(np.prod(np.ptp(ring @ np.array([[c, -s], [s, c]]), axis=0)))


def _check_convex(ring: Array, normal: Array, name: str) -> None:
    sides = np.roll(ring, -1, axis=0) - ring
    turns = np.cross(sides, np.roll(sides, -1, axis=0)) @ normal
    if np.min(np.linalg.norm(sides, axis=1)) < _SMALL or not np.all(turns > 0.0):
        raise AirworthyError(
            f"The corners of gate {name!r} are not those of a convex opening with sides of {_SMALL:g} m or more."
        )


def _corners_of_pose(gate: RaceGate, direction: Array) -> Array:
    assert gate.position is not None
    assert gate.opening is not None
    left, up = 0.5 * gate.opening[0] * _left(direction), 0.5 * gate.opening[1] * np.array([0.0, 0.0, 1.0])
    # Upper left, upper right, lower right, lower left of who flies through.
    return np.asarray(gate.position) + np.stack([left + up, up - left, -left - up, left - up])


def _text(vector: ArrayLike) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in np.asarray(vector)) + ")"


# ---- Moving and turning -----------------------------------------------------------------------------------------------------


def moved_gate(gate: RaceGate, shift: ArrayLike) -> RaceGate:
    """Return a gate moved by (x, y, z) and turned about its pivot, corners and direction alike; the one place where this is
    done.

    Args:
        gate: By corners or by its pose; it comes back by corners, and without a bound.
        shift: x, y, z [m] and yaw [deg], counter-clockwise seen from above: published perturbations have the other sign.
    """
    shape = gate_shape(gate)
    x, y, z, yaw = (float(value) for value in np.asarray(shift, np.float64))
    # About z alone: published gates turn about the vertical, and no bound of a file tilts one.
    angle = math.radians(yaw)
    turn = np.array([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    pivot = np.array([*(gate.pivot or shape.center[:2]), 0.0])
    corners = (shape.corners - pivot) @ turn.T + pivot + [x, y, z]
    return placed_gate(gate, corners, turn @ shape.normal)


def placed_gate(gate: RaceGate, corners: ArrayLike, direction: ArrayLike) -> RaceGate:
    """Return a gate with its opening elsewhere.

    Args:
        gate: Whose name is kept.
        corners: World [m], (4, 3).
        direction: Of flight, (3,).
    """
    points = np.asarray(corners, np.float64).tolist()
    # A unit vector may come out of a rotation a bit longer, which the record would refuse.
    way = np.clip(np.asarray(direction, np.float64), -1.0, 1.0).tolist()
    return RaceGate(gate.name, tuple(tuple(point) for point in points), tuple(way))


def with_corners(race: Race, corners: Mapping[str, ArrayLike]) -> Race:
    """Return a race with its gates where a scene has them; each is flown on the side from which it nominally is.

    Args:
        race: Whose gates are moved.
        corners: World [m], (4, 3), by the name of the gate; others stay.

    Raises:
        AirworthyError: A gate that the race has not, or corners that are no opening or face across the nominal direction.
    """
    known = {gate.name for gate in race.gates}
    for name in corners:
        if name not in known:
            raise AirworthyError(f"The race {race.name!r} has no gate {name!r}; it has {', '.join(sorted(known))}.")
    gates = []
    for gate in race.gates:
        if gate.name in corners:
            # Which of the two normals follows from the nominal one: no course turns a gate by a right angle.
            shape = shape_of(corners[gate.name], gate_shape(gate).normal, gate.name)
            gate = replace(placed_gate(gate, shape.corners, shape.normal), bound=gate.bound)
        gates.append(gate)
    return race.with_gates(tuple(gates))


# ---- Of many courses at once ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CourseShapes:
    """Gates of several courses of one race, stacked: (courses, gates, ...)."""

    names: tuple[str, ...]
    corners: Array
    """As listed [m], (courses, gates, 4, 3)."""
    ring: Array
    """Round each opening [m], (courses, gates, 4, 3); see `GateShape`."""
    normal: Array
    """(courses, gates, 3)."""
    center: Array
    """[m], (courses, gates, 3)."""
    left: Array
    """(courses, gates, 3)."""
    up: Array
    """(courses, gates, 3)."""
    gate: ArrayInt
    """Which gate each passage is through, (passages,)."""
    way: ArrayInt
    """1 along its direction, -1 against it, (passages,)."""


def course_shapes(races: Sequence[Race]) -> CourseShapes:
    """Stack the gates of courses of one race.

    Args:
        races: Alike but for where their gates stand.

    Raises:
        AirworthyError: Other gates, or another order.
    """
    first = races[0]
    names = tuple(gate.name for gate in first.gates)
    for race in races[1:]:
        if tuple(gate.name for gate in race.gates) != names or race.passes != first.passes:
            raise AirworthyError(
                f"Courses {first.name!r} and {race.name!r} have other gates or another order: one referee judges one race."
            )
    shapes = [[gate_shape(gate) for gate in race.gates] for race in races]

    def stacked(name: str) -> Array:
        return np.array([[getattr(shape, name) for shape in row] for row in shapes])

    numbers = np.array([names.index(name) for name, _ in first.passes])
    ways = np.array([-1 if reverse else 1 for _, reverse in first.passes])
    parts = {name: stacked(name) for name in ("corners", "ring", "normal", "center", "left", "up")}
    return CourseShapes(names, **parts, gate=numbers, way=ways)
