"""What a navigation policy sees, knows and commands, in numbers: Aerial Gym's task `depth_navigation`.

Training (`airworthy.learning.navigation`) and flight share it, so that both mean the same. Specification aerial_gym, 9.2.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.frames import to_matrix
from airworthy.optics.projections import Pinhole
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import QUIET

__all__ = [
    "CAMERA",
    "CELLS",
    "CLIMB",
    "FIELD_OF_VIEW",
    "IMAGE",
    "MOUNT",
    "POOL",
    "RATE",
    "REACH",
    "SPEED",
    "STATE_NUMBERS",
    "YAW_RATE",
    "cell_inputs",
    "commanded",
    "known_state",
    "least_of_cells",
    "navigation_camera",
    "pooled_image",
]

CAMERA = "navigation_depth"
"""Under which the camera is mounted."""
IMAGE = (36, 64)
"""Rows and columns of the camera: `base_depth_camera`, 135 x 240, at the size for a CPU."""
FIELD_OF_VIEW = math.radians(87.0)
"""Horizontal [rad], of the same."""
REACH = 10.0
"""What is farther looks as if it were here [m]."""
MOUNT = (0.095, -0.015, 0.025)
"""Of the camera on the body [m]: the middle of what training draws."""
POOL = (3, 4)
"""Pixels of a cell; of a cell the nearest return counts."""
CELLS = (12, 16)
"""Rows and columns that the network sees."""
RATE = 10.0
"""Images, and decisions, per second."""
STATE_NUMBERS = 17
"""Of an observation, before its image."""
SPEED, CLIMB, YAW_RATE = 2.0, 0.25 * math.pi, math.pi / 3.0
"""Of whole actions: velocity [m/s], its angle above level [rad], yaw rate [rad/s]."""
_CLIP = 0.3
"""Nearer counts as this near [m]; with `_GAIN` and `_SHIFT` as in specification, learning by reward, 7.2."""
_GAIN, _SHIFT = 3.0, 0.6


def navigation_camera() -> Device:
    """Return the depth camera of 64 x 36 pixels, looking forward, without noise."""
    rows, columns = IMAGE
    focal = 0.5 * columns / math.tan(0.5 * FIELD_OF_VIEW)
    return Device(
        CAMERA,
        "depth_camera",
        Pinhole(columns, rows, focal, focal, columns / 2, rows / 2),
        noise=QUIET,
        noise_enabled=False,
        mount=Mount(position=MOUNT),
        rate=RATE,
        channels=("depth",),
        summary="the depth camera of a navigation policy",
        source="specification aerial_gym, 9.2",
    )


def least_of_cells(distance: ArrayF32, pool: tuple[int, int]) -> ArrayF32:
    """Return the least of each cell, (n, rows / pool, columns / pool).

    Args:
        distance: (n, rows, columns) [m].
        pool: Rows and columns of a cell.
    """
    high, wide = pool
    # Rows first, which lie in memory as they are; NumPy's own minimum over a short last axis takes ten times as long.
    rows = reduce(np.minimum, [distance[:, k::high] for k in range(high)])
    found: ArrayF32 = reduce(np.minimum, [rows[:, :, k::wide] for k in range(wide)])
    return found


def pooled_image(depth: ArrayLike) -> ArrayF32:
    """Return 3 / depth - 0.6 of the nearest return of each of 12 x 16 cells, (n, 192).

    Args:
        depth: Along the optical axis [m], (n, 36, 64); what is not positive or not finite returned nothing.
    """
    d = np.asarray(depth, np.float32)
    d = np.where(np.isfinite(d) & (d > 0.0), np.minimum(d, np.float32(REACH)), np.float32(REACH))
    return cell_inputs(d)


def cell_inputs(distance: ArrayF32) -> ArrayF32:
    """Return the same of an image whose pixels all hold a distance up to `REACH` [m], (n, 36, 64); 0 is as near as can be."""
    cells = least_of_cells(distance, POOL)
    found = np.float32(_GAIN) / np.maximum(cells, np.float32(_CLIP)) - np.float32(_SHIFT)
    return found.reshape(len(distance), -1).astype(np.float32, copy=False)


def known_state(position: Array, velocity: Array, attitude: Array, rate: Array, goal: Array, command: Array) -> Array:
    """Return what the network knows besides its image, (n, 17), without noise.

    Direction to the goal in the level frame 3, distance [m], roll and pitch [rad], 0 (the error of a heading, which this task
    does not ask for), velocity 3 [m/s] and rate 3 [rad/s] in the body frame, the command before 4.

    Args:
        position: World [m], (n, 3).
        velocity: World [m/s], (n, 3).
        attitude: x, y, z, w, (n, 4).
        rate: Body [rad/s], (n, 3).
        goal: World [m], (n, 3).
        command: That was given last, of `commanded`, (n, 4).
    """
    axes = to_matrix(attitude)
    way = goal - position
    # The level frame heads as body x does; straight up and down no heading is right.
    flat = np.maximum(np.hypot(axes[:, 0, 0], axes[:, 1, 0]), 1e-9)
    c, s = axes[:, 0, 0] / flat, axes[:, 1, 0] / flat
    away = np.stack([c * way[:, 0] + s * way[:, 1], c * way[:, 1] - s * way[:, 0], way[:, 2]], 1)
    distance = np.linalg.norm(away, axis=1, keepdims=True)
    roll = np.arctan2(axes[:, 2, 1], axes[:, 2, 2])
    pitch = np.arctan2(-axes[:, 2, 0], np.hypot(axes[:, 2, 1], axes[:, 2, 2]))
    body = np.einsum("nji,nj->ni", axes, velocity)
    angles = np.stack([roll, pitch, np.zeros_like(roll)], 1)
    return np.concatenate([away / np.maximum(distance, 1e-6), distance, angles, body, rate, command], 1)


def commanded(action: Array) -> Array:
    """Return velocity in the level frame 3 [m/s] and yaw rate [rad/s], (n, 4), of actions within [-1, 1], (n, 3)."""
    speed, angle = 0.5 * SPEED * (action[:, 0] + 1.0), CLIMB * action[:, 1]
    return np.stack([speed * np.cos(angle), np.zeros_like(speed), speed * np.sin(angle), YAW_RATE * action[:, 2]], 1)
