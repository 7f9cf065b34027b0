"""Boxes around what stands in a scene."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.record import Instance, Pose, Scene, SplatPlacement, Vector3

if TYPE_CHECKING:
    from airworthy.scenes.splats.record import Splats

__all__ = ["free_path", "gaussian_count", "instance_box", "scene_box", "splats_box", "triangle_count", "with_free_path"]

# ---- Start and goal in a place that names none: where there is room, with a free straight way between them ------------------

_WIDE = 1.2
"""Clearance that a start should have, if there is room [m]."""
_NARROW = 0.4
"""Clearance of the straight way from start to goal [m]."""
_WAY = 6.0
"""Longest way from start to goal [m]."""
_LATTICE = (25, 25, 9)


def free_path(
    clearance: Callable[[Array], Array],
    lower: Array,
    upper: Array,
    middle: Array,
    above: Callable[[Array], ArrayBool] | None = None,
) -> tuple[Pose | None, Pose | None]:
    """Return the free place nearest to the middle, looking at it, and the farthest one that it sees; None where there is none.

    In a room that is its middle, beside a statue a place before it.

    Args:
        clearance: Distances [m], (n,), of points (n, 3) from what can be hit, negative inside.
        lower: Lower corner of the bounds [m], (3,).
        upper: Upper corner [m], (3,).
        middle: Of the place [m], (3,).
        above: Which of points (n, 3) have something below them, (n,) bool: they come first, so that nobody starts under a hill.
    """
    edge = np.minimum(0.8, 0.25 * (upper - lower))
    axes = [np.linspace(a, b, n) for a, b, n in zip(lower + edge, upper - edge, _LATTICE, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    room = clearance(points)
    if above is not None and (held := above(points) & (room > 0.05)).any():
        points, room = points[held], room[held]
    wide = min(_WIDE, 0.7 * float(room.max()))
    if not wide > 0.05:
        return None, None
    free = points[room >= wide]
    start = free[np.argmin(np.linalg.norm(free - middle, axis=1))]
    goal = _visible_from(clearance, start, free, min(_NARROW, 0.5 * wide))
    ahead = middle if np.hypot(*(middle - start)[:2]) > 0.3 else start + np.array([1.0, 0.0, 0.0]) if goal is None else goal
    yaw = math.atan2(*(ahead - start)[[1, 0]])
    return Pose(_triple(start), yaw), None if goal is None else Pose(_triple(goal))


def _visible_from(clearance: Callable[[Array], Array], start: Array, free: Array, least: float) -> Array | None:
    """Return the farthest place, at much the same height, to which a straight way leads; of equally good ones the first."""
    far, rise = np.linalg.norm(free - start, axis=1), np.abs(free[:, 2] - start[2])
    usable = (far <= _WAY) & (far > 0.5)
    # Level ways are better ones: a metre up or down counts against two metres along.
    order = np.argsort(-np.where(usable, far - 2.0 * rise, -np.inf), kind="stable")
    for index in order[: np.count_nonzero(usable)]:
        steps = np.linspace(0.0, 1.0, max(int(far[index] / (0.5 * least)), 2))[:, None]
        if (clearance(start + steps * (free[index] - start)) >= least).all():
            return np.asarray(free[index])
    return None


def with_free_path(scene: Scene, lower: Array, upper: Array) -> Scene:
    """Return a scene of meshes with a free start and goal around the middle of a box, within its bounds.

    Args:
        scene: With bounds.
        lower: Lower corner of the box, world [m], (3,).
        upper: Upper corner, world [m], (3,).
    """
    from airworthy.geometry import occluded
    from airworthy.geometry.distance import clearance
    from airworthy.scenes.batch import SceneBatch

    batch = SceneBatch(scene).geometry
    floor = np.array(scene.bounds.lower) - 1.0

    def distance(points: Array) -> Array:
        return np.asarray(clearance(batch, points).distance, float)

    def above(points: Array) -> ArrayBool:
        return occluded(batch, points, np.stack([points[:, 0], points[:, 1], np.full(len(points), floor[2])], 1))

    bounds = np.array(scene.bounds.lower), np.array(scene.bounds.upper)
    start, goal = free_path(distance, *bounds, 0.5 * (lower + upper), above)
    return replace(scene, start=start, goal=goal)


def _triple(values: Array) -> Vector3:
    return float(values[0]), float(values[1]), float(values[2])


# -----------------------------------------------------------------------------------------------------------------------------

OPAQUE = 0.5
"""Opacity from which on a gaussian counts as part of a thing."""


def instance_box(shape: Shape, position: ArrayLike, attitude: ArrayLike, scale: float) -> tuple[Array, Array]:
    """Exact lower and upper corner of a placed shape, world [m]; of a mesh without triangles, its position twice.

    Args:
        shape: What is placed.
        position: World [m], (3,).
        attitude: Quaternion x, y, z, w, local to world.
        scale: Size over the shape's own.
    """
    center = np.asarray(position, float)
    turn = frames.to_matrix(frames.normalize(attitude))
    if isinstance(shape, Mesh):
        if not len(shape.faces):
            return center, center
        # All vertices, not the corners of a box that was turned: that would be up to the root of three too large.
        points = shape.vertices[np.unique(shape.faces)].astype(float) @ (scale * turn).T
        return center + points.min(0), center + points.max(0)
    half = scale * _half(shape, turn)
    return center - half, center + half


def _half(shape: Box | Sphere | Cylinder | Capsule, turn: Array) -> Array:
    """Half extents along the world axes of a turned solid."""
    if isinstance(shape, Box):
        return np.abs(turn) @ np.asarray(shape.half_size, float)
    if isinstance(shape, Sphere):
        return np.full(3, float(shape.radius))
    along = np.abs(turn[:, 2])
    # A disc whose normal has the component a along an axis reaches r sqrt(1 - a^2) along it.
    around = 1.0 if isinstance(shape, Capsule) else np.sqrt(np.maximum(0.0, 1.0 - along**2))
    return shape.half_length * along + shape.radius * around


def instances_box(shapes: dict[str, Shape], instances: Iterable[Instance]) -> tuple[Array, Array] | None:
    """Box around instances; None where there are none."""
    boxes = [instance_box(shapes[item.shape], item.position, item.attitude, item.scale) for item in instances]
    if not boxes:
        return None
    return np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)


def scene_box(scene: Scene) -> tuple[Array, Array] | None:
    """Box around all static instances and splats of a scene; None where it has none."""
    boxes = [instances_box(scene.shapes, scene.instances)]
    boxes += [splats_box(scene.clouds[item.cloud], item) for item in scene.splats if not item.attached]
    found = [box for box in boxes if box is not None]
    if not found:
        return None
    return np.min([low for low, _ in found], axis=0), np.max([high for _, high in found], axis=0)


def splats_box(splats: Splats, placed: SplatPlacement, share: float = 0.001) -> tuple[Array, Array] | None:
    """Box around the opaque gaussians of a placed cloud, a share left out at each side: captures have strays far away.

    None where nothing in it is opaque.

    Args:
        splats: The cloud.
        placed: Where it stands in the world.
        share: Of the opaque gaussians, that is left out at each of the six sides.
    """
    means = splats.position[splats.opacity >= OPAQUE].astype(np.float64)
    if not len(means):
        return None
    where = np.asarray(placed.position) + placed.scale * frames.rotate(frames.normalize(np.array(placed.attitude)), means)
    low, high = np.quantile(where, [share, 1.0 - share], axis=0)
    return low, high


def triangle_count(scene: Scene) -> tuple[int, int]:
    """Triangles stored (once per mesh in use), and triangles seen (once per instance)."""
    used = [item.shape for item in scene.instances] + [part.shape for actor in scene.actors for part in actor.parts]
    counts = {name: len(shape.faces) if isinstance(shape, Mesh) else 0 for name, shape in scene.shapes.items()}
    # By identity, as batches store them.
    unique = {id(scene.shapes[name]): counts[name] for name in used}
    return sum(unique.values()), sum(counts[name] for name in used)


def gaussian_count(scene: Scene) -> tuple[int, int]:
    """Gaussians stored (once per cloud), and gaussians seen (once per placement)."""
    rendered = sum(len(scene.clouds[item.cloud]) for item in scene.splats)
    return sum(len(cloud) for cloud in scene.clouds.values()), rendered
