"""Levels of detail of whole scenes: fewer triangles, for scans that are finer than a sensor can see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats.simplify import simplified
from airworthy.scenes.record import Light, PointLight, Scene, Sky, SpotLight, Sun

__all__ = ["coarser", "mesh_bytes"]

# ---- Lights and skies as rows of numbers, and what light a sky gives --------------------------------------------------------

LIGHT_COLUMNS = 16
"""Kind, position (3), direction of travel (3), colour times strength (3), range, cosines of inner and outer angle, 3 spare."""
LIGHT_SUN, LIGHT_POINT, LIGHT_SPOT = 0, 1, 2
SKY_STEPS = 33
"""Entries of the table of sky irradiance, from the normal pointing down to pointing up, equal steps of its z."""
SKY_COLUMNS = 12 + 3 * SKY_STEPS
"""Zenith, horizon, ground (radiance times intensity), 3 spare, then irradiance by the normal's z."""
HAZE = 0.06
"""The ground's colour is reached this far (sine) below the horizon."""


def sky_radiance(sky: Sky, direction: ArrayLike) -> Array:
    """Radiance (..., 3) from unit directions (..., 3): from the horizon to the zenith with the root of the elevation's sine,
    and to the ground's colour within a thin band of haze."""
    z = np.asarray(direction, np.float64)[..., 2:3]
    zenith, horizon, ground = (np.array(c, float) * sky.intensity for c in (sky.zenith, sky.horizon, sky.ground))
    up, down = np.sqrt(np.maximum(z, 0.0)), np.clip(-z / HAZE, 0.0, 1.0)
    return np.asarray(np.where(z >= 0.0, horizon + (zenith - horizon) * up, horizon + (ground - horizon) * down))


def sky_irradiance(sky: Sky, normal_z: ArrayLike) -> Array:
    """Irradiance (..., 3) of an open surface whose unit normal has this z: the hemisphere's radiance times cosine, integrated.

    Over a circle of elevation the clamped cosine has the closed form 2 (a c + b sin c), where n.d = a + b cos(azimuth).
    """
    nz = np.atleast_1d(np.asarray(normal_z, np.float64))[:, None]
    # Midpoints in the square root of |z|, where the radiance is smooth.
    half = (np.arange(512) + 0.5) / 512
    z = np.concatenate([-(half[::-1] ** 2), half**2])
    width = np.concatenate([2 * half[::-1], 2 * half]) / 512
    a, b = nz * z, np.sqrt(np.maximum(1 - nz**2, 0.0)) * np.sqrt(1 - z**2)
    reach = np.arccos(np.clip(-a / np.maximum(b, 1e-300), -1.0, 1.0))
    weight = 2.0 * (a * reach + b * np.sin(reach)) * width
    radiance = sky_radiance(sky, np.stack([0 * z, 0 * z, z], -1))
    return np.asarray((weight @ radiance).reshape(*np.shape(normal_z), 3))


def sky_rows(skies: Sequence[Sky]) -> ArrayF32:
    """(sky, SKY_COLUMNS)"""
    table = np.zeros((len(skies), SKY_COLUMNS), np.float32)
    for row, sky in zip(table, skies, strict=True):
        row[:9] = np.concatenate([sky.zenith, sky.horizon, sky.ground]) * sky.intensity
        row[12:] = sky_irradiance(sky, np.linspace(-1.0, 1.0, SKY_STEPS)).reshape(-1)
    return table


def light_rows(scenes: Sequence[Scene]) -> tuple[ArrayF32, NDArray[np.int32]]:
    """(light, LIGHT_COLUMNS), scene by scene, at least one row; and (scene, 2): where a scene's begin, how many it has."""
    rows = [_row(light) for scene in scenes for light in scene.lights]
    counts = np.array([len(scene.lights) for scene in scenes], np.int32)
    spans = np.stack([np.cumsum(counts) - counts, counts], -1).astype(np.int32)
    return np.array(rows or [[0.0] * LIGHT_COLUMNS], np.float32), spans


def _row(light: Light) -> list[float]:
    if isinstance(light, Sun):
        return [LIGHT_SUN, 0, 0, 0, *_unit(light.direction), *(c * light.irradiance for c in light.color), *[0.0] * 6]
    strength = [c * light.intensity for c in light.color]
    if isinstance(light, PointLight):
        return [LIGHT_POINT, *light.position, 0, 0, -1, *strength, light.range, *[0.0] * 5]
    assert isinstance(light, SpotLight)
    inner = min(light.inner_angle, light.outer_angle - 1e-3)
    cosines = [math.cos(max(inner, 0.0)), math.cos(light.outer_angle)]
    return [LIGHT_SPOT, *light.position, *_unit(light.direction), *strength, light.range, *cosines, 0.0, 0.0, 0.0]


def _unit(v: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in v)) or 1.0
    return [x / length for x in v]


# -----------------------------------------------------------------------------------------------------------------------------

FACES_MIN = 64
"""Meshes of no more triangles are kept as they are."""


def coarser(scene: Scene, share: float) -> Scene:
    """Return a scene whose meshes have about a share of their triangles, or fewer; solids, poses and textures stay.

    Args:
        scene: The scene. A mesh that several instances use is simplified once.
        share: In (0, 1]; 1 is the scene itself.

    Raises:
        AirworthyError: The share is not in (0, 1].
    """
    if not 0.0 < share <= 1.0:
        raise AirworthyError(f"A level of detail with the share {share} was asked for; expected more than 0 and at most 1.")
    if share == 1.0:
        return scene
    bound = {name for skeleton in scene.skeletons.values() for name in skeleton.joints}  # weights belong to their vertices
    made: dict[int, Shape] = {}
    shapes = dict(scene.shapes)
    for name, shape in scene.shapes.items():
        if isinstance(shape, Mesh) and name not in bound and len(shape.faces) > FACES_MIN:
            if id(shape) not in made:
                made[id(shape)] = simplified(shape, max(FACES_MIN, int(share * len(shape.faces))))
            shapes[name] = made[id(shape)]
    return replace(scene, shapes=shapes)


def mesh_bytes(scene: Scene) -> int:
    """Bytes of the unique meshes of a scene, as its record holds them."""
    unique = {id(shape): shape for shape in scene.shapes.values() if isinstance(shape, Mesh)}
    arrays = ("vertices", "faces", "normals", "uv", "colors", "face_material")
    held = (getattr(shape, name) for shape in unique.values() for name in arrays)
    return sum(array.nbytes for array in held if array is not None)
