"""What glows in the environments of a batch, as lamps that a path tracer aims at: triangles, faces of boxes, spheres.

Each is chosen in proportion to the light it gives (area times luminance), and then a point of it evenly by area. Cylinders and
capsules that glow are met by chance alone: their light is right, and needs more samples. All numbers are of shapes and
materials, none of poses, so what moves needs no new tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, NDArray
from airworthy.geometry import Box, Mesh, Placement, Shape, Sphere
from airworthy.optics.tone import luminance
from airworthy.scenes.batch import SceneBatch

__all__ = ["Emitters", "emitters_of"]


@dataclass(frozen=True, eq=False)
class Emitters:
    """Of all environments, one after the other; environments of equal content share them."""

    sums: ArrayF32
    """(emitter,) share of the light of its environment up to and with this one."""
    densities: ArrayF32
    """(emitter,) share per area [1/m^2]; 0 of faces that do not glow."""
    places: NDArray[np.int32]
    """(emitter, 2) instance number and face."""
    slots: NDArray[np.int32]
    """Per instance number of each content: its first emitter, -1 where nothing of it can be aimed at."""
    spans: NDArray[np.int32]
    """(env, 3): first emitter, how many, and where its instances begin in `slots`."""


def emitters_of(batch: SceneBatch) -> Emitters:
    """Return what glows in each environment of a batch, as it is placed now."""
    geometry = batch.geometry
    numbers = geometry.dynamic_start + geometry.dynamic_count
    sums: list[Array] = [np.zeros(0)]
    densities: list[Array] = [np.zeros(0)]
    places: list[NDArray[np.int32]] = [np.zeros((0, 2), np.int32)]
    slots: list[NDArray[np.int32]] = []
    known: dict[tuple[int, int], tuple[int, int, int]] = {}
    spans, total = np.zeros((geometry.env_count, 3), np.int32), 0
    layouts = geometry.env_layout
    for env in range(geometry.env_count):
        # The layout holds the static instances, the scene says what an environment's actors are.
        key = (int(layouts[env]), int(batch.scene_of_env[env]))
        if key not in known:
            slot = np.full(max(numbers, 1), -1, np.int32)
            found = _found(batch, *key, slot, total)
            known[key] = (total, len(found[0]), sum(map(len, slots)))
            slots.append(slot)
            sums.append(found[0])
            densities.append(found[1])
            places.append(found[2])
            total += len(found[0])
        spans[env] = known[key]
    # A launch needs an array even where nothing glows.
    return Emitters(
        np.concatenate([*sums, np.ones(1)]).astype(np.float32),
        np.concatenate([*densities, np.zeros(1)]).astype(np.float32),
        np.concatenate([*places, np.zeros((1, 2), np.int32)]).astype(np.int32),
        np.concatenate(slots),
        spans,
    )


def _found(
    batch: SceneBatch, layout: int, scene: int, slot: NDArray[np.int32], first: int
) -> tuple[Array, Array, NDArray[np.int32]]:
    """Return sums, densities and places of the emitters of one content; fills `slot`."""
    geometry, power, area, places = batch.geometry, [], [], []
    layers = [(geometry.layout(layout), 0)]
    if geometry.dynamic_count:
        layers.append((batch.dynamic_placement(scene), geometry.dynamic_start))
    count = 0
    for placement, start in layers:
        for index in range(len(placement)):
            faces, light = _faces(batch, geometry.shapes[placement.shape[index]], placement, index)
            if not (faces * light > 0.0).any():
                continue
            number = start + index
            slot[number] = first + count
            count += len(faces)
            power.append(faces * light)
            area.append(np.where(light > 0.0, faces, 0.0))
            places.append(np.stack([np.full(len(faces), number), np.arange(len(faces))], -1).astype(np.int32))
    if not count:
        return np.zeros(0), np.zeros(0), np.zeros((0, 2), np.int32)
    share = np.concatenate(power) / np.concatenate(power).sum()
    areas = np.concatenate(area)
    density = np.where(areas > 0.0, share / np.where(areas > 0.0, areas, 1.0), 0.0)
    return np.cumsum(share), density, np.concatenate(places)


def _faces(batch: SceneBatch, shape: Shape, placement: Placement, index: int) -> tuple[Array, Array]:
    """Areas of the faces of an instance [m^2], and the luminance of each; no faces where none can be aimed at."""
    first = int(placement.material[index])
    if not placement.visible[index] or (isinstance(shape, Mesh) and not len(shape.faces)):
        return np.zeros(0), np.zeros(0)
    square = float(placement.scale[index]) ** 2
    if isinstance(shape, Mesh):
        p = shape.vertices.astype(np.float64)[shape.faces]
        area = 0.5 * np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), axis=-1)
        offset = np.zeros(len(p), np.int64) if shape.face_material is None else shape.face_material.astype(np.int64)
        rows, which = np.unique(first + offset, return_inverse=True)
        return area * square, np.array([_luminance(batch, int(row)) for row in rows])[which]
    light = _luminance(batch, first)
    if isinstance(shape, Box):
        x, y, z = (2.0 * half for half in shape.half_size)
        areas = np.array([y * z, y * z, x * z, x * z, x * y, x * y])
    elif isinstance(shape, Sphere):
        areas = np.array([4.0 * np.pi * shape.radius**2])
    else:
        return np.zeros(0), np.zeros(0)
    return areas * square, np.full(len(areas), light)


def _luminance(batch: SceneBatch, row: int) -> float:
    """Of a material's own light, its map aside."""
    return float(luminance(np.array(batch.material(row)[0].emissive, float)))
