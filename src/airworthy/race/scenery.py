"""A scene from any race: gates as frames of bars around their openings, posts, a floor, and beacons on the corners.

The race of 2019 has a hall of its own (`airworthy.scenes.generators.halls`). Here everything is from the race itself, so that
what is judged and what is hit cannot differ. Parts are named as who hits them says it: "gate 2, left bar", "post 3", "floor".
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core.arrays import Array
from airworthy.geometry import Box
from airworthy.race.gate_bars import gate_bars
from airworthy.race.gate_geometry import GateShape, gate_shape
from airworthy.race.record import GateFrames, Race
from airworthy.scenes.generators.halls.builder import Builder, along
from airworthy.scenes.record import Beacon, GateFrame, Instance, Pose, Region, Scene, Sky, Sun, Vector3

__all__ = ["race_scene"]

_MARGIN = 5.0
"""Floor and bounds beyond gates, posts and start, where the race has no limits [m]; ours."""
_HEADROOM = 5.0
"""Height of the bounds above the highest gate, likewise [m]."""
_SUN = (-0.45, 0.35, -0.82)
"""Direction of the light; that of the race hall."""


def race_scene(race: Race) -> Scene:
    """Return the scene of a course.

    The floor is solid where the race has no limits: those end a race that goes below them, and a vehicle that starts from the
    floor stands in it.

    Args:
        race: Its course: gates, posts and start are where the record says.
    """
    b = Builder()
    shapes = {gate.name: gate_shape(gate) for gate in race.gates}
    frames = race.frames or GateFrames()
    lower, upper = _extent(race, shapes)
    _floor(b, lower, upper, solid=race.limits.lower is None)
    for name, shape in shapes.items():
        _gate(b, name, shape, frames, [other for key, other in shapes.items() if key != name])
    steel = b.material("race_post", base_color=(0.15, 0.25, 0.7, 1.0), roughness=0.5)
    for number, post in enumerate(race.posts, 1):
        b.upright((*post.position, 0.0), post.radius, post.top, steel, "gate", name=f"post {number}")
    gates = tuple(_frame(name, shape) for name, shape in shapes.items())
    return Scene(
        name=race.name,
        shapes=b.shapes,
        materials=b.materials,
        textures=b.textures,
        instances=tuple(b.instances),
        lights=(Sun(_SUN, irradiance=2.5),),
        sky=Sky(intensity=1.1),
        bounds=Region(_vector(lower), _vector(upper)),
        start=Pose(race.start.position, math.radians(race.start.yaw_deg)),
        gates=gates,
        beacons=tuple(Beacon(item.name, str(k + 1), point) for item in gates for k, point in enumerate(item.corners)),
        description=race.title,
        source=race.source,
        facts={"gates": float(len(gates)), "posts": float(len(race.posts))},
    )


def _extent(race: Race, shapes: dict[str, GateShape]) -> tuple[Array, Array]:
    """Lower and upper corner of what belongs to the race [m]: its limits, or all that stands in it with a margin."""
    points = [np.array(race.start.position), *(np.array([*post.position, post.top]) for post in race.posts)]
    points += [corner for shape in shapes.values() for corner in shape.corners]
    if race.limits.lower is not None and race.limits.upper is not None:
        # A course may stand a bound's width beyond the limits with a corner of its gates: the region holds it too.
        points += [np.array(race.limits.lower), np.array(race.limits.upper)]
        return np.min(points, axis=0), np.max(points, axis=0)
    around = np.array([_MARGIN, _MARGIN, 0.0])
    lower, upper = np.min(points, axis=0) - around, np.max(points, axis=0) + around
    return np.array([*lower[:2], 0.0]), upper + np.array([0.0, 0.0, _HEADROOM])


def _floor(b: Builder, lower: Array, upper: Array, solid: bool) -> None:
    concrete = b.material("race_floor", "concrete", texture_size=5.0, roughness=0.6)
    size, middle = upper - lower, 0.5 * (lower + upper)
    center, sides = (float(middle[0]), float(middle[1]), -0.15), (float(size[0]), float(size[1]), 0.3)
    b.box(center, sides, concrete, "ground", name="floor", collide=solid)


def _gate(b: Builder, name: str, shape: GateShape, frames: GateFrames, others: list[GateShape]) -> None:
    """Add four bars outside an opening, each along one of its sides.

    Args:
        b: Collects them.
        name: Of the gate.
        shape: Its opening.
        frames: Sizes of the bars.
        others: Openings of the other gates, which bars are not to close.
    """
    orange = b.material("race_gate", base_color=(0.95, 0.33, 0.02, 1.0), roughness=0.4, emissive=(0.10, 0.03, 0.0))
    # The box's local x lies as near to its heading as can be: depth along the flight, width across it.
    yaw = math.atan2(float(shape.normal[1]), float(shape.normal[0]))
    for bar in gate_bars(shape, frames, others):
        length = float(bar.half[2])
        kind = f"bar_{frames.depth:.4g}x{frames.width:.4g}x{2.0 * length:.4g}"
        b.shapes.setdefault(kind, Box((0.5 * frames.depth, 0.5 * frames.width, length)))
        turn = along(bar.along.tolist(), yaw)
        what = f"gate {name}, {bar.side} bar"
        part = Instance(kind, _vector(bar.center), turn, 1.0, (orange,), "gate", name=what, carries=name)
        b.instances.append(part)


def _frame(name: str, shape: GateShape) -> GateFrame:
    a, b, c, d = (_vector(corner) for corner in shape.corners)
    return GateFrame(name, (a, b, c, d), _vector(shape.normal, 9), _vector(shape.center)[:2])


def _vector(values: Array, digits: int = 6) -> Vector3:
    x, y, z = (round(float(value), digits) + 0.0 for value in values)
    return x, y, z
