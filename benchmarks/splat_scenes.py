"""Clouds and cameras of the splat benchmark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import Splats, merged, read_splats

Poses = tuple[ArrayAny, ArrayAny]
CAMERAS = 10
ROOM = np.array([12.0, 8.0, 3.5])
SIGN = Path("splats/flowers_sog_chunks")
"""Below AIRWORTHY_DATA: the sign, 542,104 Gaussians of degree 2 in four chunks."""


@dataclass(frozen=True, eq=False)
class Place:
    """A cloud, ten cameras, and the frames per second asked for at 640x360 and at 224x224."""

    name: str
    splats: Splats
    poses: Poses
    aims: tuple[float, float] | None = None


def places(files: list[Path]) -> Iterator[Place]:
    """Yield the clouds of this benchmark, and one of the user's; says so where one is missing."""
    yield Place("room200k", room_cloud(), ring(np.array([0.0, 0.0, 1.5]), 3.0), (15.0, 45.0))
    yield from _hall()
    data = os.environ.get("AIRWORTHY_DATA")
    if data and (Path(data) / SIGN).is_dir():
        sign = read_splats(Path(data) / SIGN).splats
        yield Place("sign", sign, around(sign), (7.5, 22.5))
    else:
        print("\nsign: skipped; its captured Gaussians are read from AIRWORTHY_DATA, which is not set or lacks them")
    if files:
        own = merged([read_splats(path).splats for path in files])
        yield Place(files[0].name, own, around(own))


def _hall() -> Iterator[Place]:
    """Yield the default scene, seen from a ring in its middle at flying height."""
    from airworthy.scenes.catalogue import scene
    from airworthy.scenes.splats.placing import static_splats

    try:
        found = scene("hall")
    except AirworthyError as error:
        print(f"\nhall: skipped; {error}")
        return
    splats = static_splats(found)
    if splats is None:
        print("\nhall: skipped; this version's hall has no splats")
        return
    low, high = np.array(found.bounds.lower), np.array(found.bounds.upper)
    middle = 0.5 * (low + high)
    yield Place("hall", splats, ring(np.array([middle[0], middle[1], low[2] + 1.5]), 0.3 * float((high - low)[:2].min())))


def around(splats: Splats) -> Poses:
    """Cameras on a ring around a cloud that look at its middle."""
    low, high = np.percentile(splats.position, [5.0, 95.0], axis=0)
    return ring(0.5 * (low + high), 0.6 * float(np.linalg.norm(high - low)))


def room_cloud(count: int = 200_000, seed: int = 0) -> Splats:
    """Return the cloud `room200k` (or one like it of another size)."""
    rng = np.random.default_rng(seed)
    walls, things = count // 2, count * 2 // 5
    air = count - walls - things
    points, normals = _on_walls(rng, walls)
    more, more_normals = _on_things(rng, things)
    dust = rng.uniform([-0.5, -0.5, 0.0], [0.5, 0.5, 1.0], (air, 3)) * ROOM
    position = np.concatenate([points, more, dust])
    normal = np.concatenate([normals, more_normals, np.tile([0.0, 0.0, 1.0], (air, 1))])
    typical = np.repeat([0.04, 0.025, 0.1], [walls, things, air])
    sigma = typical[:, None] * np.exp(rng.normal(0.0, 0.5, (count, 2)))
    scale = np.column_stack([sigma, sigma.min(axis=1) / 3.0])
    solid = rng.uniform(size=count) < 0.5
    opacity = np.where(solid, rng.uniform(0.9, 1.0, count), rng.uniform(0.02, 0.9, count))
    opacity[walls + things :] = rng.uniform(0.01, 0.1, air)
    tint = 0.5 + 0.35 * np.sin(position @ rng.normal(size=(3, 3)) * 2.0) + rng.normal(0.0, 0.08, (count, 3))
    harmonics = (np.clip(tint, 0.02, 0.98) - 0.5) / 0.28209479177387814
    return Splats(position, _turned_to(rng, normal), scale, opacity, harmonics[:, None, :])


def _on_walls(rng: np.random.Generator, count: int) -> tuple[ArrayAny, ArrayAny]:
    area = np.array([ROOM[1] * ROOM[2], ROOM[0] * ROOM[2], ROOM[0] * ROOM[1]])
    axis = rng.choice(3, count, p=area / area.sum())
    side = rng.integers(0, 2, count)
    points = rng.uniform(0.0, ROOM, (count, 3))
    points[np.arange(count), axis] = side * ROOM[axis]
    normals = np.zeros((count, 3))
    normals[np.arange(count), axis] = 1.0 - 2.0 * side
    return points - ROOM * [0.5, 0.5, 0.0], normals


def _on_things(rng: np.random.Generator, count: int) -> tuple[ArrayAny, ArrayAny]:
    centres = rng.uniform([-5.0, -3.2, 0.3], [5.0, 3.2, 2.6], (40, 3))
    radius = rng.uniform(0.15, 0.5, 40)
    which = rng.choice(40, count, p=radius**2 / (radius**2).sum())
    direction = rng.normal(size=(count, 3))
    ball = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    cube = direction / np.abs(direction).max(axis=1, keepdims=True)
    boxes = which % 2 == 0
    offset = np.where(boxes[:, None], cube, ball)
    face = np.where(np.abs(cube) >= 1.0, np.sign(cube), 0.0)
    return centres[which] + radius[which, None] * offset, np.where(boxes[:, None], face, ball)


def _turned_to(rng: np.random.Generator, normal: ArrayAny) -> ArrayAny:
    """Quaternions whose third axis is the normal, turned about it at random."""
    away = np.column_stack([-normal[:, 1], normal[:, 0], np.zeros(len(normal)), 1.0 + normal[:, 2]])
    away[normal[:, 2] < -0.999] = (1.0, 0.0, 0.0, 0.0)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    half = rng.uniform(0.0, np.pi, len(normal))
    x, y, z, w = away.T
    s, c = np.sin(half), np.cos(half)
    return np.column_stack([x * c + y * s, y * c - x * s, z * c + w * s, w * c - z * s])


def ring(centre: ArrayAny, radius: float, count: int = CAMERAS) -> tuple[ArrayAny, ArrayAny]:
    """Poses (count, 3) and (count, 4) of level cameras on a circle that look across its middle."""
    angle = 2.0 * np.pi * np.arange(count) / count
    where = centre + radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(count)])
    # Optical axis horizontal, towards the middle: a turn of the camera frame onto the world's, then about the vertical.
    half = 0.5 * (angle + np.pi)
    level = np.array([-0.5, 0.5, -0.5, 0.5])
    s, c = np.sin(half), np.cos(half)
    x, y, z, w = level
    return where, np.column_stack([x * c - y * s, y * c + x * s, z * c + w * s, w * c - z * s])
