"""Boxes around what stands in a scene."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.record import Instance, Scene, SplatPlacement

if TYPE_CHECKING:
    from airworthy.scenes.splats.record import Splats

__all__ = ["gaussian_count", "instance_box", "scene_box", "splats_box", "triangle_count"]

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
    used = [item.shape for item in scene.instances] + [part.shape for actor in scene.actors for part in actor.parts]
    counts = {name: len(shape.faces) if isinstance(shape, Mesh) else 0 for name, shape in scene.shapes.items()}
    # By identity, as batches store them.
    unique = {id(scene.shapes[name]): counts[name] for name in used}
    return sum(unique.values()), sum(counts[name] for name in used)


def gaussian_count(scene: Scene) -> tuple[int, int]:
    """Return gaussians stored (once per cloud), and gaussians seen (once per placement)."""
    rendered = sum(len(scene.clouds[item.cloud]) for item in scene.splats)
    return sum(len(cloud) for cloud in scene.clouds.values()), rendered
