"""Places and rays of `benchmarks/rays.py`: the same for every side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayF32

CUBES = 20
GROUND = (50.0, 50.0, 0.05)
"""Half size [m]; its top is the plane z = 0."""
FORWARD = (-0.5, 0.5, -0.5, 0.5)
"""A camera (x right, y down, z forward) that looks along world x."""
LEVEL = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Places:
    """Cubes of every environment: (env, CUBES, ...)."""

    position: Array
    attitude: Array
    scale: Array

    @property
    def env_count(self) -> int:
        """Environments, all different."""
        return len(self.position)


def places(env_count: int, seed: int = 0) -> Places:
    """Return turned cubes of 0.5 to 1.5 m edge in front of, beside and behind a camera at (0, 0, 1)."""
    rng = np.random.default_rng(seed)
    where = rng.uniform([-8.0, -8.0, 0.0], [12.0, 8.0, 4.0], (env_count, CUBES, 3))
    near = np.linalg.norm(where - [0.0, 0.0, 1.0], axis=2) < 2.0
    where[near] += [5.0, 0.0, 0.0]
    turn = rng.normal(size=(env_count, CUBES, 4))
    turn /= np.linalg.norm(turn, axis=2, keepdims=True)
    return Places(where, turn, rng.uniform(0.5, 1.5, (env_count, CUBES)))


CUBE_VERTICES = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
CUBE_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ],
    np.int32,
)  # fmt: skip


def matrices(q: Array) -> Array:
    """Rotations (..., 3, 3) of unit quaternions (..., 4)."""
    x, y, z, w = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def world_mesh(place: Places, env: int) -> tuple[ArrayF32, NDArray[np.int32]]:
    """Vertices and faces of one environment, cubes first, the ground last; 12 faces each."""
    turned = np.einsum("kij,vj->kvi", matrices(place.attitude[env]), CUBE_VERTICES)
    cubes = turned * place.scale[env][:, None, None] + place.position[env][:, None]
    ground = CUBE_VERTICES * (2 * np.array(GROUND)) - [0.0, 0.0, GROUND[2]]
    vertices = np.concatenate([cubes.reshape(-1, 3), ground]).astype(np.float32)
    faces = np.concatenate([CUBE_FACES + 8 * k for k in range(CUBES + 1)]).astype(np.int32)
    return vertices, faces


def pinhole(height: int, width: int, tangent: float = 1.0) -> Array:
    """Directions (H, W, 3) of a camera, not normalised."""
    x = (np.arange(width) + 0.5 - width / 2) / (width / 2) * tangent
    y = (np.arange(height) + 0.5 - height / 2) / (width / 2) * tangent
    u, v = np.meshgrid(x, y)
    return np.stack([u, v, np.ones_like(u)], -1)


def lidar(rows: int, columns: int) -> Array:
    """Directions (rows, columns, 3) of a spinning LiDAR of 90 degrees height."""
    up = np.linspace(np.pi / 4, -np.pi / 4, rows)[:, None]
    round_ = np.linspace(np.pi, -np.pi, columns, endpoint=False)[None]
    return np.stack([np.cos(up) * np.cos(round_), np.cos(up) * np.sin(round_), np.sin(up) + 0 * round_], -1)


def world_rays(directions: Array, attitude: tuple[float, ...]) -> ArrayF32:
    """Return the same rays (n, 3) as other engines take them: unit length, world."""
    flat = directions.reshape(-1, 3) / np.linalg.norm(directions.reshape(-1, 3), axis=1, keepdims=True)
    return np.ascontiguousarray(flat @ matrices(np.array(attitude, float)).T, np.float32)


def read_obj(path: Path) -> tuple[ArrayF32, NDArray[np.int32]]:
    """Vertices, centred and 2 m large, and faces of a Wavefront file."""
    vertices, faces = [], []
    for line in path.read_text(errors="replace").splitlines():
        tokens = line.split()
        if tokens[:1] == ["v"]:
            vertices.append([float(x) for x in tokens[1:4]])
        elif tokens[:1] == ["f"]:
            corners = [int(w.split("/")[0]) - 1 for w in tokens[1:]]
            faces += [[corners[0], *corners[k : k + 2]] for k in range(1, len(corners) - 1)]
    array = np.array(vertices)
    centred = array - (array.max(0) + array.min(0)) / 2
    return (centred * (2.0 / np.ptp(array, axis=0).max())).astype(np.float32), np.array(faces, np.int32)
