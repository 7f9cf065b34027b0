"""What grows and lies on the ground: grass, ferns, fallen leaves and twigs, stones, trunks; small meshes to be instanced.

All stand on z = 0 at the origin, z up, metres; sizes are the functions' arguments. Blades and leaves are triangles with colours
of their vertices, as those of trees (`tree.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.geometry import Mesh
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.vegetation.leaf import both_sides

__all__ = ["fallen_trunk", "fern", "grass_tuft", "hedge_panel", "litter", "patch", "stone"]

_GREENS = np.array([[0.060, 0.105, 0.020], [0.085, 0.135, 0.028], [0.110, 0.140, 0.040]])
_BROWNS = np.array([[0.16, 0.095, 0.045], [0.24, 0.15, 0.070], [0.10, 0.060, 0.035], [0.30, 0.21, 0.11]])


def _mesh(points: Array, faces: ArrayInt, normals: Array, colors: Array) -> Mesh:
    rgba = np.concatenate([both_sides(colors), np.ones((len(colors), 1))], axis=1)
    return Mesh(points, faces, _unit(normals), np.zeros((len(points), 2)), rgba)


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


@lru_cache(maxsize=64)
def grass_tuft(seed: int, height: float = 0.3, radius: float = 0.35, blades: int = 90) -> Mesh:
    """Return a tuft: blades of three triangles that bend outwards.

    Args:
        seed: Of its chance.
        height: Of the longest blades [m].
        radius: Of the ground they stand on [m].
        blades: Their number.
    """
    rng = generator("grass tuft", seed, height, radius, blades)
    reach = radius * np.sqrt(rng.random(blades))
    angle = 2.0 * np.pi * rng.random(blades)
    foot = np.stack([reach * np.cos(angle), reach * np.sin(angle), np.zeros(blades)], -1)
    heading = angle + rng.normal(0.0, 1.0, blades)
    lean = np.stack([np.cos(heading), np.sin(heading), np.zeros(blades)], -1)
    side = np.stack([-np.sin(heading), np.cos(heading), np.zeros(blades)], -1)
    tall = (height * (0.45 + 0.55 * rng.random(blades)))[:, None]
    bend = (0.25 + 0.5 * rng.random(blades))[:, None]
    width = (0.0035 + 0.006 * height) * (0.7 + 0.6 * rng.random(blades))[:, None]
    up = np.array([0.0, 0.0, 1.0])
    middle = foot + tall * (0.62 * up + 0.30 * bend * lean)
    tip = foot + tall * ((1.0 - 0.45 * bend) * up + bend * lean)
    points = np.stack(
        [foot - width * side, foot + width * side, middle - 0.8 * width * side, middle + 0.8 * width * side, tip], 1
    )
    first = 5 * np.arange(blades)[:, None]
    faces = np.concatenate([first + np.array([row]) for row in ([0, 1, 3], [0, 3, 2], [2, 3, 4])])
    normals = np.repeat(_unit(0.8 * up + 0.4 * np.cross(side, up)), 5, axis=0)
    color = _GREENS[rng.integers(0, 3, blades)] * np.exp(rng.normal(0.0, 0.15, (blades, 1)))
    color = np.where(rng.random((blades, 1)) < 0.12, np.array([0.30, 0.25, 0.11]), color)
    shade = np.array([0.45, 0.45, 0.9, 0.9, 1.15])
    return _mesh(points.reshape(-1, 3), faces, normals, (color[:, None] * shade[:, None]).reshape(-1, 3))


def _kites(first: ArrayInt, turned: bool) -> ArrayInt:
    """Return triangles (2 n, 3) of kites by the numbers of their first corners, the other way round if turned."""
    rows = ([0, 2, 1], [0, 3, 2]) if turned else ([0, 1, 2], [0, 2, 3])
    return np.concatenate([first.reshape(-1, 1) + np.array([row]) for row in rows])


@lru_cache(maxsize=32)
def fern(seed: int, height: float = 0.7) -> Mesh:
    """Return a fern: a funnel of arching fronds with leaflets on both sides.

    Args:
        seed: Of its chance.
        height: Of the fronds' tops [m].
    """
    rng = generator("fern", seed, height)
    fronds, pairs = 11, 17
    angle = 2.0 * np.pi * (np.arange(fronds) + 0.6 * rng.random(fronds)) / fronds
    out = np.stack([np.cos(angle), np.sin(angle), np.zeros(fronds)], -1)[:, None]
    side = np.stack([-np.sin(angle), np.cos(angle), np.zeros(fronds)], -1)[:, None]
    size = (height * (0.75 + 0.4 * rng.random(fronds)))[:, None, None]
    s = (np.arange(1, pairs + 1) / pairs)[None, :, None]
    up = np.array([0.0, 0.0, 1.0])
    spine = size * (out * (0.15 * s + 1.15 * s**2) + up * (1.5 * s - 0.75 * s**2 - 0.12 * s**3))
    slope = out * (0.15 + 2.3 * s) + up * (1.5 - 1.5 * s - 0.36 * s**2)
    ahead = _unit(slope)
    long = size * 0.30 * np.sin(np.pi * np.clip(0.12 + 0.88 * s, 0.0, 1.0)) * (1.0 - 0.35 * s)
    broad = 0.62 * size / pairs
    parts = []
    for hand in (-1.0, 1.0):
        along = _unit(hand * side + 0.35 * ahead - 0.15 * up)
        corners = [
            spine,
            spine + 0.4 * long * along + broad * ahead,
            spine + long * along,
            spine + 0.4 * long * along - broad * ahead,
        ]
        parts.append(np.stack(corners, axis=2))
    points = np.concatenate(parts, axis=1).reshape(-1, 3)
    # Leaflets of both hands with their fronts up, where their normals are: the hands mirror each other.
    first = 4 * np.arange(len(points) // 4).reshape(fronds, 2, pairs)
    faces = np.concatenate([_kites(first[:, 0], True), _kites(first[:, 1], False)])
    leaf = np.array([0.070, 0.135, 0.026]) * np.exp(rng.normal(0.0, 0.12, (fronds, 1, 1)))
    shade = np.broadcast_to(0.45 + 0.6 * s, (fronds, pairs, 1))
    color = np.repeat(np.concatenate([leaf * shade, leaf * shade], axis=1).reshape(-1, 3), 4, axis=0)
    normals = np.broadcast_to(up + 0.35 * out, (fronds, 2 * pairs, 3)).reshape(-1, 3)
    return _mesh(points, faces, np.repeat(normals, 4, axis=0), color)


@lru_cache(maxsize=32)
def litter(seed: int, radius: float = 0.8, leaves: int = 170, twigs: int = 6, highest: float = 0.03) -> Mesh:
    """Return fallen leaves that lie about, a little curled, and some twigs among them.

    Args:
        seed: Of its chance.
        radius: Of the patch [m].
        leaves: Their number.
        twigs: Theirs.
        highest: How high they lie at most [m].
    """
    rng = generator("litter", seed, radius, leaves, twigs, highest)
    count = leaves + twigs
    reach = radius * np.sqrt(rng.random(count)) * (0.8 + 0.4 * rng.random(count))
    angle, turn = 2.0 * np.pi * rng.random((2, count))
    size = np.concatenate([0.035 + 0.045 * rng.random(leaves), 0.10 + 0.22 * rng.random(twigs)])[:, None]
    wide = np.concatenate([0.32 + 0.14 * rng.random(leaves), np.full(twigs, 0.022)])[:, None] * size
    foot = np.stack([reach * np.cos(angle), reach * np.sin(angle), 0.004 + 0.4 * highest * rng.random(count)], -1)
    face = _unit(np.array([0.0, 0.0, 1.0]) + 0.5 * (rng.random((count, 3)) - 0.5))
    ahead = _unit(np.cross(face, np.stack([np.cos(turn), np.sin(turn), np.zeros(count)], -1)))
    across = np.cross(face, ahead)
    curl = (0.25 * (rng.random(count) - 0.2))[:, None] * wide * np.array([0.0, 0.0, 1.0])
    points = np.stack(
        [foot - 0.5 * size * ahead, foot + wide * across + curl, foot + 0.5 * size * ahead, foot - wide * across + curl], 1
    )
    points[..., 2] = np.clip(points[..., 2], 0.002, highest)
    first = 4 * np.arange(count)[:, None]
    faces = np.concatenate([first + np.array([row]) for row in ([0, 2, 1], [0, 3, 2])])
    color = _BROWNS[rng.integers(0, 4, count)] * np.exp(rng.normal(0.0, 0.22, (count, 1)))
    color[leaves:] = 0.45 * _BROWNS[2]
    return _mesh(points.reshape(-1, 3), faces, np.repeat(face, 4, axis=0), np.repeat(color, 4, axis=0))


def patch(seed: int, radius: float, apart: float, plants: Sequence[Mesh]) -> Mesh:
    """Return a patch of ground with plants, each turned about by chance, in one mesh: one thing to ask instead of dozens.

    Args:
        seed: Of its chance.
        radius: Of the patch [m].
        apart: Between neighbours, about [m].
        plants: What stands there, in turns by chance.
    """
    rng = generator("patch", seed, radius, apart, len(plants))
    rows = int(radius / apart)
    cells = np.stack(np.meshgrid(np.arange(-rows, rows + 1), np.arange(-rows, rows + 1)), -1).reshape(-1, 2)
    places = (cells + 0.7 * (rng.random(cells.shape) - 0.5)) * apart
    places = places[np.hypot(*places.T) <= radius]
    parts, first = [], 0
    for x, y in places:
        plant, yaw = plants[int(rng.random() * len(plants))], 2.0 * np.pi * rng.random()
        turn = np.array([[np.cos(yaw), np.sin(yaw), 0.0], [-np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
        assert plant.normals is not None
        parts.append((plant.vertices @ turn + [x, y, 0.0], plant.faces + first, plant.normals @ turn, plant.colors, plant.uv))
        first += len(plant.vertices)
    points, faces, normals, colors, uv = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Mesh(points, faces, _unit(normals), uv, colors)


@lru_cache(maxsize=32)
def hedge_panel(seed: int, width: float, height: float, thick: float = 0.05, leaves: int = 2600) -> Mesh:
    """Return the leaves on one face of a clipped hedge: in the plane of x and z around the origin, facing -y.

    Args:
        seed: Of its chance.
        width: Along x [m].
        height: Along z [m].
        thick: How far leaves stand out of the plane [m].
        leaves: Per panel.
    """
    rng = generator("hedge", seed, width, height, thick, leaves)
    foot = (rng.random((leaves, 3)) - 0.5) * np.array([width, 0.0, height])
    # Hollows between tufts: leaves stand out by a slow wave.
    wave = np.sin(3.1 * foot[:, 0] + 1.7 * foot[:, 2] + seed) * np.sin(4.3 * foot[:, 2] - 2.2 * foot[:, 0])
    foot[:, 1] = -thick * (0.35 + 0.3 * wave + 0.35 * rng.random(leaves))
    face = _unit(np.array([0.0, -1.0, 0.45]) + 1.4 * (rng.random((leaves, 3)) - 0.5))
    ahead = _unit(np.cross(face, rng.normal(size=(leaves, 3))))
    across = np.cross(face, ahead)
    size = (0.035 + 0.035 * rng.random(leaves))[:, None]
    points = np.stack([foot - size * ahead, foot + 0.6 * size * across, foot + size * ahead, foot - 0.6 * size * across], 1)
    points[..., 1] = np.clip(points[..., 1], -thick, 0.02)
    faces = _kites(4 * np.arange(leaves), True)
    light = np.clip(0.55 + 0.55 * (-foot[:, 1] / thick), 0.3, 1.15)[:, None]
    color = np.array([0.060, 0.118, 0.024]) * light * np.exp(rng.normal(0.0, 0.2, (leaves, 1)))
    normals = _unit(0.6 * face + 0.6 * np.array([0.0, -1.0, 0.5]))
    return _mesh(points.reshape(-1, 3), faces, np.repeat(normals, 4, axis=0), np.repeat(color, 4, axis=0))


@lru_cache(maxsize=32)
def stone(seed: int, size: float = 0.4) -> Mesh:
    """Return a stone that is sunk into the ground by a third: a ball with planes broken off.

    Args:
        seed: Of its chance.
        size: Its longest half [m].
    """
    rng = generator("stone", seed, size)
    rows, columns = 11, 18
    polar = np.linspace(0.0, np.pi, rows)[:, None]
    angle = np.linspace(0.0, 2.0 * np.pi, columns + 1)[None]
    ball = np.stack([np.sin(polar) * np.cos(angle), np.sin(polar) * np.sin(angle), np.cos(polar) + 0.0 * angle], -1)
    cuts = _unit(rng.normal(size=(14, 3)))
    depth = 0.62 + 0.3 * rng.random(14)
    radius = np.minimum((depth / np.maximum(ball @ cuts.T, 1e-3)).min(-1), 1.0)
    points = (ball * radius[..., None] * np.array([1.0, 0.75, 0.55]) * size + np.array([0.0, 0.0, 0.16 * size])).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns), indexing="ij")
    a = (i * (columns + 1) + j).reshape(-1)
    b, c, d = a + 1, a + columns + 1, a + columns + 2
    faces = np.concatenate([np.stack([a, c, b], -1), np.stack([b, c, d], -1)])
    corner = points[faces]
    flat = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    kept = np.linalg.norm(flat, axis=1) > 1e-9
    faces, flat = faces[kept], flat[kept]
    corners = faces.reshape(-1)
    summed = [np.bincount(corners, np.repeat(flat[:, k], 3), len(points)) for k in range(3)]
    normals: Array = np.stack(summed, -1).astype(np.float64)
    moss = np.clip(_unit(normals)[:, 2:] - 0.45, 0.0, 1.0)
    color = (1.0 - moss) * np.array([0.9, 0.88, 0.84]) + moss * np.array([0.35, 0.55, 0.18])
    rgba = np.concatenate([np.clip(color, 0.0, 1.0), np.ones((len(points), 1))], axis=1)
    return Mesh(points, faces, _unit(normals), points[:, :2] + points[:, 2:], rgba)


@lru_cache(maxsize=16)
def fallen_trunk(seed: int, length: float = 5.0, radius: float = 0.18) -> Mesh:
    """Return a trunk that lies along x, a little bent and sunk in.

    Args:
        seed: Of its chance.
        length: [m].
        radius: At its thick end [m].
    """
    rng = generator("fallen trunk", seed, length, radius)
    places, sides = 15, 12
    along = np.linspace(-0.5, 0.5, places) * length
    angle = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    ring = np.stack([np.zeros(sides + 1), np.cos(angle), np.sin(angle)], -1)
    thick = radius * (1.0 - 0.45 * np.linspace(0.0, 1.0, places)) * (1.0 + rng.normal(0.0, 0.04, places))
    thick[[0, -1]] *= 0.02
    along[0], along[-1] = along[1], along[-2]
    middle = np.stack([along, 0.12 * np.sin(2.0 * along / length + rng.random() * 6.0), 0.75 * thick.clip(0.5 * radius)], -1)
    points = middle[:, None] + ring * thick[:, None, None]
    i, j = np.meshgrid(np.arange(places - 1), np.arange(sides), indexing="ij")
    a = (i * (sides + 1) + j).reshape(-1)
    b, c, d = a + 1, a + sides + 1, a + sides + 2
    faces = np.concatenate([np.stack([a, b, c], -1), np.stack([b, d, c], -1)])
    u = np.broadcast_to(angle / (2.0 * np.pi), (places, sides + 1))
    v = np.broadcast_to((along / (2.0 * np.pi * radius))[:, None], (places, sides + 1))
    moss = np.clip(ring[..., 2:], 0.0, 1.0) * (0.4 + 0.6 * rng.random((places, 1, 1)))
    color = (1.0 - moss) * np.array([0.75, 0.72, 0.70]) + moss * np.array([0.45, 0.75, 0.22])
    rgba = np.concatenate([color.reshape(-1, 3), np.ones((places * (sides + 1), 1))], axis=1)
    normals = np.broadcast_to(ring, points.shape).reshape(-1, 3)
    return Mesh(points.reshape(-1, 3), faces, normals, np.stack([u, v], -1).reshape(-1, 2), rgba)
