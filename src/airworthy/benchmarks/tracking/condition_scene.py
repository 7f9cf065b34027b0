"""The place of a condition: darker, without some of its things, with others covered, with people in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.geometry.shapes import Box, bounds
from airworthy.rendering.light_baking import relit
from airworthy.scenes import Scene
from airworthy.scenes.actors import add_actor
from airworthy.scenes.people import person
from airworthy.scenes.record import Color, Instance, Material, SplatPlacement
from airworthy.scenes.splats import Splats
from airworthy.scenes.splats.editing import EditBox, selected
from airworthy.scenes.splats.placing import placed

__all__ = [
    "PERSON_HEIGHT",
    "PERSON_SPEED",
    "ROOM",
    "cleared",
    "covered",
    "extent",
    "person_names",
    "place_of",
    "populated",
    "without",
]

REACH = 2.5
"""Things this near the path may be removed or covered [m]; a monitor on a desk by the wall stays."""
FLOOR = 0.015
"""Gaussians below this height are the floor's and stay [m]."""
FOOT, FOOTPRINT = 0.12, 0.05
"""Where a thing stood this near the floor [m] on this much of it [m^2], a patch closes the hole that it left."""
MARGIN = 0.05
"""Gaussians this far outside a thing still belong to it [m]."""
COVER_GAP = 0.03
"""Between a pillar and what covers it [m]."""
GREY, DARK = Material((0.22, 0.22, 0.22, 1.0), roughness=0.9), Material((0.035, 0.04, 0.05, 1.0), roughness=0.95)
PERSON_HEIGHT, PERSON_SPEED = 1.8, 1.5
"""[m], [m/s]; spec: 0.6 x 1.8 m, 1.5 m/s."""
SHIRTS: tuple[Color, ...] = ((0.75, 0.12, 0.08), (0.1, 0.25, 0.6), (0.85, 0.65, 0.1), (0.12, 0.4, 0.18))
ROOM = ("ground", "wall", "back_wall", "front_wall", "left_wall", "right_wall", "top_wall", "bottom_wall", "building")
"""Classes that are the room itself, not things in it."""


def place_of(scene: Scene, condition: Condition, path: Array) -> Scene:
    """Return a scene as a condition wants it.

    Args:
        scene: As it is.
        condition: What differs.
        path: Points of the course (n, 3), world [m], at most some decimetres apart.
    """
    if condition.clear > 0.0:
        scene = cleared(scene, path, condition.clear)
    if condition.covered:
        scene = covered(scene, path)
    if condition.removed:
        scene = without(scene, path, condition.removed)
    if condition.light != 1.0:
        scene = relit(scene, condition.light)
    return populated(scene, condition.people) if condition.people else scene


def without(scene: Scene, path: Array, classes: Iterable[str], reach: float = REACH) -> Scene:
    """Return a scene without the things of some classes near a path: neither their surfaces nor their gaussians.

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        classes: Semantic classes of what goes.
        reach: Only things whose boxes are so near to the path [m].
    """
    wanted = set(classes)
    gone = [item for item in scene.instances if item.semantic in wanted and distance(scene, item, path) <= reach]
    return _removed(scene, gone)


def cleared(scene: Scene, path: Array, radius: float) -> Scene:
    """Return a scene without all things that are no part of the room and nearer to a path than a radius [m].

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        radius: Things whose boxes are so near to the path go [m].
    """
    gone = [item for item in scene.instances if item.semantic not in ROOM and distance(scene, item, path) <= radius]
    return _removed(scene, gone)


def _removed(scene: Scene, gone: list[Instance]) -> Scene:
    if not gone:
        return scene
    number = {id(item) for item in gone}
    kept = tuple(item for item in scene.instances if id(item) not in number)
    boxes = [item_box(scene, item, MARGIN) for item in gone]
    clouds, splats = dict(scene.clouds), []
    for item in scene.splats:
        if item.attached:
            splats.append(item)
            continue
        # In the world, where the boxes are: a cloud may be placed twice, so each placement gets one of its own.
        name = f"{item.name or item.cloud}/edited"
        clouds[name] = _outside(placed(scene.clouds[item.cloud], item), boxes)
        splats.append(SplatPlacement(name, name=item.name))
    used = {item.cloud for item in splats}
    clouds = {key: value for key, value in clouds.items() if key in used}
    return _patched(replace(scene, instances=kept, clouds=clouds, splats=tuple(splats)), scene, gone)


def _patched(scene: Scene, before: Scene, gone: list[Instance]) -> Scene:
    """With a dark patch where things stood: where splats give the colours there are none below them."""
    if not scene.splats:
        return scene
    shapes, added = dict(scene.shapes), list[Instance]()
    for lower, upper in (extent(before, item) for item in gone):
        if lower[2] > FOOT or (upper - lower)[:2].prod() < FOOTPRINT:
            continue
        name = f"patch_{len(added)}"
        half = 0.5 * (upper - lower)[:2] + MARGIN
        shapes[name] = Box((float(half[0]), float(half[1]), 0.002))
        x, y = (float(value) for value in 0.5 * (lower + upper)[:2])
        added.append(Instance(name, (x, y, 0.008), materials=("patch",), semantic="ground", name=name, collide=False))
    if not added:
        return scene
    materials = {**scene.materials, "patch": DARK}
    return replace(scene, shapes=shapes, materials=materials, instances=(*scene.instances, *added))


def _outside(splats: Splats, boxes: list[EditBox]) -> Splats:
    inside = np.zeros(len(splats), bool)
    for box in boxes:
        inside |= box.holds(splats.position)
    return selected(splats, ~inside | (splats.position[:, 2] < FLOOR))


def covered(scene: Scene, path: Array, reach: float = REACH) -> Scene:
    """Return a scene whose pillars near a path stand behind four grey planes each, as high as they are.

    Args:
        scene: That is edited; it stays as it is.
        path: Points of the course [m], world frame, (n, 3).
        reach: Only pillars whose boxes are so near to the path [m].
    """
    pillars = [item for item in scene.instances if item.semantic == "pillar" and distance(scene, item, path) <= reach]
    shapes, added = dict(scene.shapes), list[Instance]()
    for lower, upper in _merged([extent(scene, item) for item in pillars]):
        half = 0.5 * (upper - lower) + np.array([COVER_GAP, COVER_GAP, 0.0])
        x, y, z = (float(value) for value in 0.5 * (lower + upper))
        name = f"cover_{len(added)}"
        shapes[name] = Box((float(half[0]), float(half[1]), float(half[2])))
        added.append(Instance(name, (x, y, z), materials=("cover",), semantic="panel", name=name))
    if not added:
        return scene
    materials = {**scene.materials, "cover": GREY}
    return replace(scene, shapes=shapes, materials=materials, instances=(*scene.instances, *added))


def _merged(extents: list[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """Boxes that overlap, as one."""
    found: list[tuple[Array, Array]] = []
    for low, high in extents:
        lower, upper = low, high
        rest = []
        for other in found:
            if (other[0] <= upper).all() and (lower <= other[1]).all():
                lower, upper = np.minimum(lower, other[0]), np.maximum(upper, other[1])
            else:
                rest.append(other)
        found = [*rest, (lower, upper)]
    return found


def populated(scene: Scene, count: int) -> Scene:
    """Return a scene with people that something else moves; see `people`."""
    for index, name in enumerate(person_names(count)):
        shirt = SHIRTS[index % len(SHIRTS)]
        kit = person(name, PERSON_HEIGHT, animation="walking", speed=PERSON_SPEED, motion="external", shirt=shirt)
        scene = add_actor(scene, kit)
    return scene


def person_names(count: int) -> tuple[str, ...]:
    """Names of the actors."""
    return tuple(f"walker_{index}" for index in range(count))


@dataclass(frozen=True)
class _Turned:
    """A box turned in the world."""

    center: Array
    half: Array
    attitude: Array


def _turned(scene: Scene, item: Instance) -> _Turned:
    low, high = bounds(scene.shapes[item.shape])
    attitude = frames.normalize(np.array(item.attitude, float))
    middle = np.asarray(item.position) + frames.rotate(attitude, item.scale * 0.5 * (low + high))
    return _Turned(middle, item.scale * 0.5 * (high - low), attitude)


def distance(scene: Scene, item: Instance, path: Array) -> float:
    """Least distance of a thing's box to points (n, 3) [m]; 0 inside.

    Args:
        scene: Has the item's shape.
        item: The thing.
        path: Points [m], world frame, (n, 3).
    """
    box = _turned(scene, item)
    local = frames.rotate_inverse(box.attitude, path - box.center)
    return float(np.linalg.norm(np.maximum(np.abs(local) - box.half, 0.0), axis=1).min())


def item_box(scene: Scene, item: Instance, margin: float) -> EditBox:
    """Return a thing's box, wider by a margin [m] on all sides.

    Args:
        scene: Has the item's shape.
        item: The thing.
        margin: On every side [m].
    """
    box = _turned(scene, item)
    size = 2.0 * (box.half + margin)
    return EditBox(*(tuple(float(v) for v in part) for part in (box.center, size, box.attitude)))  # type: ignore[arg-type]


def extent(scene: Scene, item: Instance) -> tuple[Array, Array]:
    """Lower and upper corner in the world."""
    box = _turned(scene, item)
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    corners = box.center + frames.rotate(box.attitude, signs * box.half)
    return corners.min(0), corners.max(0)
