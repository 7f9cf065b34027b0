"""A scene from a layout: ground, closed outer walls, start and goal, surfaces, sky, facts."""

from __future__ import annotations

from airworthy.scenes.generators.flyingtrust.layout import Layout, goal_of, start_of
from airworthy.scenes.generators.flyingtrust.parameters import WALL_THICKNESS
from airworthy.scenes.generators.look import DAY, DAY_SKY, surfaces, textures_of
from airworthy.scenes.record import Instance, Pose, Region, Scene, Vector3

GROUND: dict[str, tuple[str, str]] = {
    "forest": ("grass", "hedge"),
    "urban": ("asphalt", "concrete~1"),
    "random_cylinder": ("soil", "corrugated"),
    "narrow_gap": ("floor", "concrete"),
    "sudden_drop": ("floor", "concrete"),
    "sudden_drop_plus": ("floor", "concrete"),
    "maze": ("floor", "brick"),
    "perlin": ("soil", "concrete~3"),
}
"""Surfaces of the ground and of the outer walls."""
_SOURCE = "Generated after FLYINGTRUST, arXiv 2510.26588, section on scenarios"
_GROUND_DEPTH = 1.0


def build(layout: Layout, index: int, seed: int) -> Scene:
    """The scene of one configuration."""
    stated, name = layout.stated, layout.scenario
    shapes, instances, facts = layout.shapes, layout.instances, layout.facts
    frame = Layout(name)
    _ground(frame)
    _outer_walls(frame, layout.openings)
    if layout.voxels is not None:
        frame.add(layout.voxels.mesh(), (0.0, 0.0, 0.0), "voxel", "concrete~3", name="clutter")
    everything: tuple[Instance, ...] = (*frame.instances, *instances)
    materials = surfaces(*sorted({m for item in everything for m in item.materials}))
    start, goal = start_of(stated), goal_of(stated)
    half = (0.5 * stated.length, 0.5 * stated.width)
    stated_facts = {
        "length_m": stated.length,
        "width_m": stated.width,
        "ceiling_m": stated.ceiling,
        "altitude_m": stated.altitude,
    }
    return Scene(
        name=f"{name}:{index}" + (f"@{seed}" if seed else ""),
        shapes={**frame.shapes, **shapes},
        materials=materials,
        textures=textures_of(materials),
        instances=everything,
        lights=DAY,
        sky=DAY_SKY,
        bounds=Region((-half[0], -half[1], 0.0), (half[0], half[1], stated.ceiling)),
        start=Pose((float(start[0]), 0.0, stated.altitude), 0.0),
        goal=Pose((float(goal[0]), 0.0, stated.altitude), 0.0),
        description=f"{name}, configuration {index} of 10, seed {seed}",
        source=_SOURCE,
        facts={"configuration": float(index), "seed": float(seed), **stated_facts, **facts},
    )


def _ground(frame: Layout) -> None:
    stated = frame.stated
    size = (stated.length + 2.0 * WALL_THICKNESS, stated.width + 2.0 * WALL_THICKNESS, _GROUND_DEPTH)
    frame.box((0.0, 0.0, -0.5 * _GROUND_DEPTH), size, "ground", GROUND[frame.scenario][0], name="ground")


def _outer_walls(frame: Layout, openings: tuple[float, ...]) -> None:
    """Inner faces lie on the edges of the area. `openings`: widths around the centre line at the two short edges."""
    stated, surface, t = frame.stated, GROUND[frame.scenario][1], WALL_THICKNESS
    x, y, h = 0.5 * stated.length, 0.5 * stated.width, stated.height
    for side, name in ((-1.0, "right"), (1.0, "left")):
        center: Vector3 = (0.0, side * (y + 0.5 * t), 0.5 * h)
        frame.box(center, (2.0 * (x + t), t, h), "wall", surface, name=f"outer_{name}")
    gaps = openings or (0.0, 0.0)
    for side, name, gap in ((-1.0, "back", gaps[0]), (1.0, "front", gaps[1])):
        place = side * (x + 0.5 * t)
        if gap == 0.0:
            frame.box((place, 0.0, 0.5 * h), (t, 2.0 * y, h), "wall", surface, name=f"outer_{name}")
            continue
        part = y - 0.5 * gap
        for hand, which in ((-1.0, "right"), (1.0, "left")):
            middle = hand * (0.5 * gap + 0.5 * part)
            frame.box((place, middle, 0.5 * h), (t, part, h), "wall", surface, name=f"outer_{name}_{which}")
