"""Light of places as arrays: lamps, sun and sky as rows, and light that was baked into volumes, boxes and vertices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayLike, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Placement, Shape
from airworthy.scenes.record import Haze, Light, PointLight, Rain, Scene, Sky, Snow, SpotLight, Sun
from airworthy.scenes.sky.clouds import CLOUD_COLUMNS, cloud_tile, has_clouds, over_clouds
from airworthy.scenes.sky.haze import haze_row
from airworthy.scenes.sky.stars import has_night
from airworthy.scenes.sky.tables import cloud_row, daylight_table, table_irradiance, table_radiance
from airworthy.scenes.sky.wetness import in_rain

__all__ = ["BakedArrays", "BakedLight", "MapLayout", "baked_arrays", "fill_invalid", "map_layout"]


# ---------------------------------------------------------------------------------------------------------------------------
# Where baked light is kept: a volume of probes, nodes on the faces of boxes, occlusion at the vertices of meshes
#
# A probe holds the irradiance of six faces of a small cube (-x, +x, -y, +y, -z, +z); a surface there takes them weighted by the
# squares of its normal. Boxes are the walls and floors of most places; nodes lie on a grid over each of their faces.

VOLUME_COLUMNS = 12
"""Lower corner (3), one over the spacing (3), probes along each axis (3), number of the first probe, 1 if baked, lift [m]."""
PROBE_SIZE = 8
"""Six numbers of light (shared exponent), then validity and visibility of the sun (8 bits each), and a spare."""
MAP_COLUMNS = 4
"""First node, nodes along x, y and z."""
MAP_NODES_MAX = 256
"""Along one edge of a box."""


@dataclass(frozen=True, eq=False)
class BakedLight:
    """Light of one scene that stands still: what comes from all sides, and where the sun reaches."""

    lower: Array
    """First probe, world [m], (3,)."""
    spacing: Array
    """[m], (3,)."""
    counts: NDArray[np.int32]
    """Probes along x, y, z, each at least 2."""
    probes: ArrayU32
    """(counts product, PROBE_SIZE), z fastest."""
    map_of_instance: NDArray[np.int32]
    """(instance,): row of `maps`, -1 for none."""
    maps: NDArray[np.int32]
    """(map, MAP_COLUMNS)"""
    nodes: ArrayU32
    """(node, 2): light and visibility of the sun, 0 to 255."""
    occlusion: dict[str, ArrayF32] = field(default_factory=dict)
    """Of meshes by their names in the scene: share of the hemisphere that the mesh itself leaves open, (V,)."""

    @property
    def nbytes(self) -> int:
        """Memory of the arrays that shading reads."""
        return sum(array.nbytes for array in (self.probes, self.map_of_instance, self.maps, self.nodes))


@dataclass(frozen=True)
class BakedArrays:
    """Baked light of all scenes of a batch, one after the other."""

    volumes: ArrayF32
    probes: ArrayU32
    slots: NDArray[np.int32]
    maps: NDArray[np.int32]
    nodes: ArrayU32

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.volumes, self.probes, self.slots, self.maps, self.nodes))


def baked_arrays(scene_count: int, slot_starts: Sequence[int], slot_count: int, baked: Mapping[int, BakedLight]) -> BakedArrays:
    """Return flat arrays; scenes without baked light have a volume that is off.

    Args:
        scene_count: Scenes of the batch.
        slot_starts: Of each scene, its first static slot in the geometry's layouts.
        slot_count: Static slots in all.
        baked: Light by scene.

    Raises:
        AirworthyError: The baked light of a scene belongs to another number of instances.
    """
    volumes = np.zeros((scene_count, VOLUME_COLUMNS), np.float32)
    # Two probes along each axis, the least that can be blended between: rows that are off are read all the same.
    volumes[:, 6:9] = 2.0
    # Never empty, since Warp gives empty arrays no memory.
    slots = np.full(max(slot_count, 1), -1, np.int32)
    probes, maps, nodes = [np.zeros((8, PROBE_SIZE), np.uint32)], [], [np.zeros((1, 2), np.uint32)]
    # Behind the dummies of scenes without baked light.
    probe, row, node = 8, 0, 1
    for scene, light in sorted(baked.items()):
        volumes[scene] = [*light.lower, *(1.0 / light.spacing), *light.counts, probe, 1.0, 0.25 * float(light.spacing.min())]
        start, count = slot_starts[scene], len(light.map_of_instance)
        if start + count > slot_count:
            raise AirworthyError(f"Baked light has {count} instances, but its scene has fewer; bake it anew.")
        slots[start : start + count] = np.where(light.map_of_instance >= 0, light.map_of_instance + row, -1)
        shifted = light.maps.copy()
        shifted[:, 0] += node
        probes.append(light.probes)
        maps.append(shifted)
        nodes.append(light.nodes)
        probe, row, node = probe + len(light.probes), row + len(shifted), node + len(light.nodes)
    joined = np.concatenate(maps) if maps else np.zeros((1, MAP_COLUMNS), np.int32)
    return BakedArrays(volumes, np.concatenate(probes), slots, joined, np.concatenate(nodes))


@dataclass(frozen=True, eq=False)
class MapLayout:
    """Where the nodes of a scene's boxes are."""

    map_of_instance: NDArray[np.int32]
    maps: NDArray[np.int32]
    position: Array
    """(node, 3) world [m], on the surface."""
    normal: Array
    """(node, 3) world, outwards."""
    faces: list[tuple[int, int, int]]
    """First node, rows, columns of every face."""


def map_layout(shapes: Sequence[Shape], placement: Placement, texel: float) -> MapLayout:
    """Return nodes on all boxes that are at least one texel wide along two axes.

    Args:
        shapes: What instances refer to.
        placement: Instances, world.
        texel: Distance of nodes, at most, up to `MAP_NODES_MAX` along an axis [m].
    """
    rows = np.full(len(placement), -1, np.int32)
    maps: list[list[int]] = []
    positions, normals, faces, node = [], [], [], 0
    for index in range(len(placement)):
        shape = shapes[placement.shape[index]]
        if not isinstance(shape, Box) or not placement.visible[index]:
            continue
        size = 2.0 * np.array(shape.half_size) * placement.scale[index]
        # Its second longest side: a rod has no face to hold a map, a wall has.
        if np.sort(size)[1] < texel:
            continue
        counts = np.clip(np.ceil(size / texel).astype(int) + 1, 2, MAP_NODES_MAX)
        rows[index] = len(maps)
        maps.append([node, *counts.tolist()])
        for face in range(6):
            local, outward = _face_nodes(size, counts, face, texel)
            attitude = placement.attitude[index]
            positions.append(frames.rotate(attitude, local) + placement.position[index])
            normals.append(np.broadcast_to(frames.rotate(attitude, outward), local.shape))
            b, c = _other_axes(face >> 1)
            faces.append((node, int(counts[b]), int(counts[c])))
            node += len(local)
    empty = np.zeros((0, 3))
    return MapLayout(
        rows,
        np.array(maps, np.int32).reshape(-1, MAP_COLUMNS),
        np.concatenate(positions) if positions else empty,
        np.concatenate(normals) if normals else empty,
        faces,
    )


def _other_axes(axis: int) -> tuple[int, int]:
    return (1 if axis == 0 else 0), (1 if axis == 2 else 2)


def _face_nodes(size: Array, counts: ArrayInt, face: int, texel: float) -> tuple[Array, Array]:
    """Nodes of a face of a box in its frame [m], (n, 3), and the face's normal. The outermost are drawn in a little: on the
    edge itself they would lie in the corner of a room, half inside the next wall."""
    axis = face >> 1
    b, c = _other_axes(axis)
    side = 1.0 if face & 1 else -1.0
    lines = []
    for k in (b, c):
        line = np.linspace(-0.5, 0.5, counts[k]) * size[k]
        # A tenth of a texel, and less on what is narrower.
        inset = min(0.1 * texel, 0.1 * size[k])
        lines.append(np.clip(line, -0.5 * size[k] + inset, 0.5 * size[k] - inset))
    local = np.zeros((counts[b], counts[c], 3))
    local[..., axis] = 0.5 * side * size[axis]
    local[..., b], local[..., c] = lines[0][:, None], lines[1][None, :]
    outward = np.zeros(3)
    outward[axis] = side
    return local.reshape(-1, 3), outward


def fill_invalid(values: Array, valid: ArrayBool, rounds: int = 8) -> Array:
    """Return values (..., k) of a grid, those of invalid cells replaced by the mean of valid neighbours, layer by layer.

    Args:
        values: (..., k).
        valid: Which cells hold a value, (...).
        rounds: Layers that are filled at most.
    """
    values, known = np.where(valid[..., None], values, 0.0), valid.copy()
    for _ in range(rounds):
        if known.all() or not known.any():
            break
        total, count = np.zeros_like(values), np.zeros(known.shape)
        for axis in range(known.ndim):
            for step in (1, -1):
                near, there = np.roll(values, step, axis), np.roll(known, step, axis)
                # `roll` goes round the grid's ends, where there are no neighbours.
                edge = [slice(None)] * known.ndim
                edge[axis] = slice(0, 1) if step == 1 else slice(-1, None)
                there[tuple(edge)] = False
                total += np.where(there[..., None], near, 0.0)
                count += there
        new = ~known & (count > 0)
        values[new] = total[new] / count[new][:, None]
        known = known | new
    return values


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Lights and skies as rows of numbers, and what light a sky gives --------------------------------------------------------

LIGHT_COLUMNS = 16
"""Kind, position (3), direction of travel (3), colour times strength (3), range, cosines of inner and outer angle, radius [m],
2 spare."""
LIGHT_SUN, LIGHT_POINT, LIGHT_SPOT = 0, 1, 2
SKY_STEPS = 33
"""Entries of the table of sky irradiance, from the normal pointing down to pointing up, equal steps of its z."""
SKY_COLUMNS = 12 + 3 * SKY_STEPS
"""Zenith, horizon, ground (radiance times intensity), 3 numbers, then irradiance by the normal's z.

A sky by daylight has its colours in its table; what lamps send around at night stands in their place (`Appearance.stray`).
The three: how many rows on the table of daylight begins, the haze, and the clouds and what is wet (0: there are none)."""
HAZE = 0.06
"""The ground's colour is reached this far (sine) below the horizon."""


def sky_radiance(sky: Sky, direction: ArrayLike, time: float = 0.0) -> Array:
    """Return the radiance (..., 3) from unit directions (..., 3): from the horizon to the zenith with the root of the
    elevation's sine, and to the ground's colour within a thin band of haze; of daylight by its table, with its
    clouds at a time [s]."""
    if sky.model == "daylight":
        clear = table_radiance(daylight_table(sky), direction)
        return over_clouds(cloud_row(sky), direction, clear, time)[0] if has_clouds(sky) or has_night(sky) else clear
    z = np.asarray(direction, np.float64)[..., 2:3]
    zenith, horizon, ground = (np.array(c, float) * sky.intensity for c in (sky.zenith, sky.horizon, sky.ground))
    up, down = np.sqrt(np.maximum(z, 0.0)), np.clip(-z / HAZE, 0.0, 1.0)
    return np.asarray(np.where(z >= 0.0, horizon + (zenith - horizon) * up, horizon + (ground - horizon) * down))


def sky_irradiance(sky: Sky, normal_z: ArrayLike) -> Array:
    """Return the irradiance (..., 3) of an open surface whose unit normal has this z: the hemisphere's radiance times cosine,
    integrated; of daylight, which is not the same all around, the mean over the azimuths.

    Over a circle of elevation the clamped cosine has the closed form 2 (a c + b sin c), where n.d = a + b cos(azimuth).
    """
    if sky.model == "daylight":
        z, turn = np.asarray(normal_z, np.float64)[..., None], (np.arange(48) + 0.5) / 48 * 2.0 * np.pi
        flat = np.sqrt(np.maximum(1.0 - z * z, 0.0))
        normals = np.stack([flat * np.cos(turn), flat * np.sin(turn), z + 0.0 * turn], -1)
        return np.asarray(table_irradiance(daylight_table(sky), normals).mean(-2))
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


def sky_rows(
    skies: Sequence[Sky],
    hazes: Sequence[Haze] = (),
    lights: Sequence[Sequence[Light]] = (),
    rains: Sequence[Rain] = (),
    snows: Sequence[Snow] = (),
) -> ArrayF32:
    """Return a row per sky, (sky, SKY_COLUMNS), and behind them as many more rows as tables of daylight and hazes need.

    Args:
        skies: Of the scenes.
        hazes: Of the scenes; empty: none.
        lights: Of the scenes, whose suns glow in the haze.
        rains: Of the scenes; empty: none.
        snows: Of the scenes; empty: none.
    """
    table = np.zeros((len(skies), SKY_COLUMNS), np.float32)
    more: list[ArrayF32] = []
    placed: dict[Sky, int] = {}
    end, tile = len(skies), -1
    for index, (row, sky) in enumerate(zip(table, skies, strict=True)):
        if sky.model == "daylight":
            if sky not in placed:
                placed[sky] = end
                more.append(_whole_rows(daylight_table(sky)))
                end += len(more[-1])
            row[9] = placed[sky] - index
        else:
            row[:9] = np.concatenate([sky.zenith, sky.horizon, sky.ground]) * sky.intensity
            row[12:] = sky_irradiance(sky, np.linspace(-1.0, 1.0, SKY_STEPS)).reshape(-1)
        rain = rains[index] if index < len(rains) else Rain()
        snow = snows[index] if index < len(snows) else Snow()
        haze = in_rain(hazes[index] if index < len(hazes) else Haze(), rain)
        if haze.density > 0.0:
            more.append(_whole_rows(haze_row(haze, _level(sky), lights[index] if index < len(lights) else ())))
            row[10] = end - index
            end += 1
        if has_clouds(sky) or has_night(sky) or rain != Rain() or snow != Snow():
            if tile < 0:
                tile = end
                more.append(_whole_rows(cloud_tile().reshape(-1)))
                end += len(more[-1])
            row[11] = end - index
            row_of = cloud_row(sky).copy() if has_clouds(sky) or has_night(sky) else np.zeros(CLOUD_COLUMNS)
            row_of[0], row_of[18:21] = tile - end, (rain.wetness, rain.puddles, rain.rate)
            row_of[26] = snow.cover
            more.append(_whole_rows(row_of))
            end += 1
    # What is told in single precision must be a whole number.
    if end >= 1 << 24:
        raise AirworthyError(f"{len(skies):,} skies by daylight are more than one batch can hold; use fewer scenes.")
    return np.concatenate([table, *more]) if more else table


def _whole_rows(values: Array) -> ArrayF32:
    """Return numbers (n,) as rows, the last one filled up with zeros."""
    rows = np.zeros((-(-len(values) // SKY_COLUMNS), SKY_COLUMNS), np.float32)
    rows.reshape(-1)[: len(values)] = values
    return rows


def _level(sky: Sky) -> Array:
    """Return the irradiance of an open level surface, (3,)."""
    return table_irradiance(daylight_table(sky), (0.0, 0.0, 1.0)) if sky.model == "daylight" else sky_irradiance(sky, 1.0)


def light_rows(scenes: Sequence[Scene]) -> tuple[ArrayF32, NDArray[np.int32]]:
    """Return (light, LIGHT_COLUMNS), scene by scene, at least one row; and (scene, 2): where a scene's begin, how many it
    has. Lamps that are out have none, unless lights ride on actors, which are found by their numbers."""
    numbered = any(getattr(light, "attached", "") for scene in scenes for light in scene.lights)
    kept = [[light for light in scene.lights if numbered or is_burning(light, scene.sky)] for scene in scenes]
    rows = [_row(light, is_burning(light, scene.sky)) for scene, some in zip(scenes, kept, strict=True) for light in some]
    counts = np.array([len(some) for some in kept], np.int32)
    spans = np.stack([np.cumsum(counts) - counts, counts], -1).astype(np.int32)
    return np.array(rows or [[0.0] * LIGHT_COLUMNS], np.float32), spans


DUSK = 0.035
"""Elevation of the sun below which street lamps burn [rad]: two degrees, when some 300 lx of it are left."""


def is_burning(light: Light, sky: Sky) -> bool:
    """Tell whether a light burns under a sky: of lamps for the night whether the sun stands low enough."""
    if isinstance(light, Sun) or not light.from_dusk:
        return True
    return sky.model == "daylight" and sky.elevation < DUSK


def _row(light: Light, burning: bool = True) -> list[float]:
    if isinstance(light, Sun):
        return [LIGHT_SUN, 0, 0, 0, *_unit(light.direction), *(c * light.irradiance for c in light.color), *[0.0] * 6]
    strength = [c * light.intensity * burning for c in light.color]
    if isinstance(light, PointLight):
        return [LIGHT_POINT, *light.position, 0, 0, -1, *strength, light.range, 0.0, 0.0, light.radius, 0.0, 0.0]
    assert isinstance(light, SpotLight)
    inner = min(light.inner_angle, light.outer_angle - 1e-3)
    cosines = [math.cos(max(inner, 0.0)), math.cos(light.outer_angle)]
    return [LIGHT_SPOT, *light.position, *_unit(light.direction), *strength, light.range, *cosines, light.radius, 0.0, 0.0]


def _unit(v: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in v)) or 1.0
    return [x / length for x in v]
