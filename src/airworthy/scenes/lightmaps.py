"""Where baked light is kept: a volume of probes, nodes on the faces of boxes, occlusion at the vertices of meshes.

A probe holds the irradiance of six faces of a small cube (-x, +x, -y, +y, -z, +z); a surface there takes them weighted by the
squares of its normal. Boxes are the walls and floors of most places; nodes lie on a grid over each of their faces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Placement, Shape

VOLUME_COLUMNS = 12
"""Lower corner (3), one over the spacing (3), probes along each axis (3), number of the first probe, 1 if baked, lift [m]."""
PROBE_WORDS = 8
"""Six words of light (shared exponent), then validity and visibility of the sun (8 bits each), and a spare."""
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
    """(counts product, PROBE_WORDS), z fastest."""
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
    """Flat arrays; scenes without baked light have a volume that is off.

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
    probes, maps, nodes = [np.zeros((8, PROBE_WORDS), np.uint32)], [], [np.zeros((1, 2), np.uint32)]
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
    """Nodes on all boxes that are at least one texel wide along two axes.

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
    """Values (..., k) of a grid, those of invalid cells replaced by the mean of valid neighbours, layer by layer.

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
