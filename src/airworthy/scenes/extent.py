"""Boxes around what stands in a scene, and how far what is seen lies from what is hit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from airworthy.scenes.record import Instance, Scene, SplatPlacement

if TYPE_CHECKING:
    from airworthy.scenes.splats.record import Splats

__all__ = [
    "LookGap",
    "gaussian_count",
    "hidden",
    "instance_box",
    "look_gap",
    "scene_box",
    "seen_from_near",
    "splats_box",
    "triangle_count",
]

OPAQUE = 0.5
"""Opacity from which on a gaussian counts as part of a thing."""


def instance_box(shape: Shape, position: ArrayLike, attitude: ArrayLike, scale: float) -> tuple[Array, Array]:
    """Return the exact lower and upper corner of a placed shape, world [m]; of a mesh without triangles, its position twice.

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
    """Return the box around instances; None where there are none."""
    boxes = [instance_box(shapes[item.shape], item.position, item.attitude, item.scale) for item in instances]
    if not boxes:
        return None
    return np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)


def scene_box(scene: Scene) -> tuple[Array, Array] | None:
    """Return the box around all static instances and splats of a scene; None where it has none."""
    boxes = [instances_box(scene.shapes, scene.instances)]
    boxes += [splats_box(scene.clouds[item.cloud], item) for item in scene.splats if not item.attached]
    found = [box for box in boxes if box is not None]
    if not found:
        return None
    return np.min([low for low, _ in found], axis=0), np.max([high for _, high in found], axis=0)


def splats_box(splats: Splats, placed: SplatPlacement, share: float = 0.001) -> tuple[Array, Array] | None:
    """Return the box around the opaque gaussians of a placed cloud, a share left out at each side: captures have strays far
    away.

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
    """Return triangles stored (once per mesh in use), and triangles seen (once per instance)."""
    used = [item.shape for item in (*scene.instances, *scene.looks)] + [
        part.shape for actor in scene.actors for part in actor.parts
    ]
    counts = {name: len(shape.faces) if isinstance(shape, Mesh) else 0 for name, shape in scene.shapes.items()}
    # By identity, as batches store them.
    unique = {id(scene.shapes[name]): counts[name] for name in used}
    return sum(unique.values()), sum(counts[name] for name in used)


def gaussian_count(scene: Scene) -> tuple[int, int]:
    """Return gaussians stored (once per cloud), and gaussians seen (once per placement)."""
    rendered = sum(len(scene.clouds[item.cloud]) for item in scene.splats)
    return sum(len(cloud) for cloud in scene.clouds.values()), rendered


# ---- How far what colours see lies from what is hit -------------------------------------------------------------------------

LOOK_GAP_MAX = 0.05
"""Distance between what is seen and what is hit up to which they count as the same surface [m]: half a cell of the maps of
the navigation benchmark."""
_GAP_POINTS = 4000
_GAP_FAR = 5.0
"""Farther is not told apart [m]."""


def hidden(item: Instance) -> Instance:
    """Return an instance that is hit, ranged and labelled as before, and in whose place colours show the scene's looks."""
    return replace(item, covered=True, visible=False)


def seen_from_near(items: Iterable[Instance]) -> tuple[Instance, ...]:
    """Return things as an eye beside them sees them: neither their coarser kin for afar, nor what is a shadow alone."""
    return tuple(item for item in items if item.shadow != "only" and item.footprint[0] == 0.0)


@dataclass(frozen=True, eq=False)
class LookGap:
    """Distances between what is seen and what is hit, at points evenly spread over surfaces within the bounds."""

    hidden: Array
    """(n,) [m] from surfaces that are hit and not shown to the nearest thing shown."""
    shown: Array
    """(m,) [m] from the scene's looks to the nearest thing that is hit."""


def look_gap(scene: Scene) -> LookGap:
    """Measure how far what colours show lies from what bodies and depth meet; actors are left out.

    Points are the same in every run. Distances end at 5 m.

    Args:
        scene: The scene.
    """
    from airworthy.geometry.batch import GeometryBatch
    from airworthy.geometry.distance import clearance

    ghosts = [item for item in scene.instances if item.covered and not item.visible and item.collide]
    near = seen_from_near(item for item in scene.looks if not item.attached)
    shown = [item for item in (*scene.instances, *near) if item.visible]
    hit = [item for item in scene.instances if item.collide]

    def distances(of: Sequence[Instance], to: Sequence[Instance]) -> Array:
        points = _surface_points(scene, of)
        if not len(points) or not to:
            return np.full(len(points), _GAP_FAR)
        names = list(dict.fromkeys(item.shape for item in to))
        placement = _placement(to, names)
        batch = GeometryBatch([scene.shapes[name] for name in names], [placement])
        found = clearance(batch, points, np.zeros(len(points), np.int32), _GAP_FAR).distance
        return np.asarray(np.minimum(np.abs(found), _GAP_FAR))

    return LookGap(distances(ghosts, shown), distances(near, hit))


def _placement(items: Sequence[Instance], names: Sequence[str]) -> Placement:
    return Placement.of(
        shape=[names.index(item.shape) for item in items],
        position=[item.position for item in items],
        attitude=[item.attitude for item in items],
        scale=[item.scale for item in items],
    )


def _surface_points(scene: Scene, items: Sequence[Instance]) -> Array:
    """Points (n, 3) spread evenly over the surfaces of instances, of those triangles whose middles lie within the bounds."""
    from airworthy.scenes.formats.meshes.solids import tessellate

    meshes = {name: tessellate(scene.shapes[name]) for name in {item.shape for item in items}}
    low, high = np.asarray(scene.bounds.lower), np.asarray(scene.bounds.upper)
    corners: list[Array] = []
    for item in items:
        box = instance_box(scene.shapes[item.shape], item.position, item.attitude, item.scale)
        # Most of a wood's leaves are above the heights that are flown at: each triangle is asked, not its tree.
        if len(meshes[item.shape].faces) and (box[0] <= high).all() and (box[1] >= low).all():
            mesh = meshes[item.shape]
            turn = frames.normalize(np.array(item.attitude, float))
            world = np.asarray(item.position) + item.scale * frames.rotate(turn, mesh.vertices.astype(float))
            triangles = world[mesh.faces]
            middle = triangles.mean(1)
            corners.append(triangles[((middle >= low) & (middle <= high)).all(axis=1)])
    whole = np.concatenate(corners) if corners else np.zeros((0, 3, 3))
    area = np.linalg.norm(np.cross(whole[:, 1] - whole[:, 0], whole[:, 2] - whole[:, 0]), axis=-1)
    if not area.sum() > 0.0:
        return np.zeros((0, 3))
    rng = np.random.default_rng(0)
    chosen = whole[rng.choice(len(area), _GAP_POINTS, p=area / area.sum())]
    u, v = rng.random((2, _GAP_POINTS, 1))
    # Folded over the diagonal: even over the triangle.
    u, v = np.where(u + v > 1.0, 1.0 - u, u), np.where(u + v > 1.0, 1.0 - v, v)
    points = chosen[:, 0] + u * (chosen[:, 1] - chosen[:, 0]) + v * (chosen[:, 2] - chosen[:, 0])
    within = (points >= low) & (points <= high)
    return np.asarray(points[within.all(axis=1)])
