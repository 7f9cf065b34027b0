"""What a navigation policy sees, knows and commands, in numbers: Aerial Gym's `depth_navigation` and `lidar_navigation`.

Training (`airworthy.learning.navigation`) and flight share it, so that both mean the same. Specification aerial_gym, 9.2, and
learning by reward, 3.2.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.frames import from_euler, to_matrix
from airworthy.optics.projections import Pinhole, Spherical
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import QUIET

__all__ = [
    "ACCELERATION",
    "CAMERA",
    "CELLS",
    "CLIMB",
    "FIELD_OF_VIEW",
    "IMAGE",
    "INVALID",
    "LIDAR",
    "LIDAR_CELLS",
    "LIDAR_ELEVATION",
    "LIDAR_MOUNT",
    "LIDAR_POOL",
    "LIDAR_SCAN",
    "MOUNT",
    "NEAREST",
    "POOL",
    "RATE",
    "REACH",
    "SPEED",
    "STATE_NUMBERS",
    "YAW_RATE",
    "accelerated",
    "cell_inputs",
    "commanded",
    "depth_image",
    "known_state",
    "least_of_cells",
    "navigation_camera",
    "navigation_lidar",
    "pooled_image",
    "pooled_ranges",
    "returned",
    "scan_inputs",
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
ACCELERATION = 2.0
"""Of a whole action, where accelerations are commanded [m/s^2]; specification, learning by reward, 3.2."""
# Source: sensors.json, base_depth_camera: min_range; the LiDAR of learning by reward, 3.2, has the same.
NEAREST = 0.2
"""Sensors see nothing nearer [m]."""
# Source: the same entry: near_out_of_range_value -10, over the range of 10 m.
INVALID = -1.0
"""In an image, of what is nearer than that."""
LIDAR = "navigation_lidar"
"""Under which the LiDAR is mounted."""
LIDAR_SCAN = (48, 120)
"""Rows and columns of the LiDAR, `rslidar_airy`."""
LIDAR_ELEVATION = (0.0, 0.5 * math.pi)
"""Of its lowest and its highest row [rad]: half a sphere."""
LIDAR_POOL = (3, 6)
"""Rays of a cell; specification, learning by reward, 3.2."""
LIDAR_CELLS = (16, 20)
"""Rows and columns of it that the network sees."""
# Source: sensors.json, rslidar_airy, but for the sign of its pitch: by -90 degrees the dome looks back in our frames.
LIDAR_MOUNT = ((-0.05, 0.0, 0.0), (0.0, 0.5 * math.pi, 0.0))
"""Of the LiDAR on the body: position [m], Euler angles [rad]."""
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


def navigation_lidar() -> Device:
    """Return the LiDAR of 48 x 120 rays over the half sphere before the vehicle, without noise."""
    rows, columns = LIDAR_SCAN
    position, euler = LIDAR_MOUNT
    return Device(
        LIDAR,
        "lidar",
        Spherical(columns, rows, elevation=LIDAR_ELEVATION),
        noise=QUIET,
        noise_enabled=False,
        mount=Mount(position, tuple(from_euler(*euler).tolist())),
        rate=RATE,
        channels=("range",),
        summary="the LiDAR of a navigation policy",
        source="specification, learning by reward, 3.2",
    )


def returned(distance: ArrayLike, reach: float = REACH) -> ArrayF32:
    """Return distances up to `reach`, as training casts them: what is not positive or not finite returned nothing.

    Args:
        distance: Depth or range [m], any shape.
        reach: Farthest [m].
    """
    d = np.asarray(distance, np.float32)
    return np.where(np.isfinite(d) & (d > 0.0), np.minimum(d, np.float32(reach)), np.float32(reach))


def depth_image(distance: ArrayF32, reach: float = REACH) -> ArrayF32:
    """Return the image as it is published, (n, rows, columns): depth over reach, `INVALID` where it is nearer than the camera
    sees."""
    return np.where(distance < NEAREST, np.float32(INVALID), distance * np.float32(1.0 / reach)).astype(np.float32)


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
    return cell_inputs(returned(depth))


def cell_inputs(distance: ArrayF32) -> ArrayF32:
    """Return the same of an image whose pixels all hold a distance up to `REACH` [m], (n, 36, 64); 0 is as near as can be."""
    cells = least_of_cells(distance, POOL)
    found = np.float32(_GAIN) / np.maximum(cells, np.float32(_CLIP)) - np.float32(_SHIFT)
    return found.reshape(len(distance), -1).astype(np.float32, copy=False)


def scan_inputs(distance: ArrayF32) -> ArrayF32:
    """Return nearest ranges of 16 x 20 cells, (n, 320), of which policies read the inverse.

    Args:
        distance: (n, 48, 120) [m]; what is nearer than the LiDAR sees counts as nothing, as published.
    """
    seen = np.where(distance < NEAREST, np.float32(REACH), distance)
    return least_of_cells(seen, LIDAR_POOL).reshape(len(distance), -1)


def pooled_ranges(distance: ArrayLike) -> ArrayF32:
    """Return 1 / range of the nearest return of each of 16 x 20 cells, (n, 320).

    Args:
        distance: Along the rays [m], (n, 48, 120); what is not positive or not finite returned nothing.
    """
    return (1.0 / scan_inputs(returned(distance))).astype(np.float32)


def known_state(
    position: Array,
    velocity: Array,
    attitude: Array,
    rate: Array,
    goal: Array,
    command: Array,
    heading: Array | None = None,
) -> Array:
    """Return what the network knows besides its image, (n, 17), without noise.

    Direction to the goal in the level frame 3, distance [m], roll and pitch [rad], error of the heading [rad], velocity 3 [m/s]
    and rate 3 [rad/s] in the body frame, the command before 4.

    Args:
        position: World [m], (n, 3).
        velocity: World [m/s], (n, 3).
        attitude: x, y, z, w, (n, 4).
        rate: Body [rad/s], (n, 3).
        goal: World [m], (n, 3).
        command: That was given last, of `commanded` or `accelerated`, (n, 4).
        heading: That is asked for, of body x in the world [rad], (n,); None: none is, and its error is 0.
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
    turn = np.zeros_like(roll)
    if heading is not None:
        sine, cosine = np.sin(heading), np.cos(heading)
        # Of the heading that is asked for, less the present one, within half a turn.
        turn = np.arctan2(sine * axes[:, 0, 0] - cosine * axes[:, 1, 0], cosine * axes[:, 0, 0] + sine * axes[:, 1, 0])
    angles = np.stack([roll, pitch, turn], 1)
    return np.concatenate([away / np.maximum(distance, 1e-6), distance, angles, body, rate, command], 1)


def commanded(action: Array) -> Array:
    """Return velocity in the level frame 3 [m/s] and yaw rate [rad/s], (n, 4), of actions within [-1, 1], (n, 3)."""
    speed, angle = 0.5 * SPEED * (action[:, 0] + 1.0), CLIMB * action[:, 1]
    return np.stack([speed * np.cos(angle), np.zeros_like(speed), speed * np.sin(angle), YAW_RATE * action[:, 2]], 1)


def accelerated(action: Array) -> Array:
    """Return acceleration in the level frame 3 [m/s^2] and yaw rate [rad/s], (n, 4), of actions within [-1, 1], (n, 4)."""
    return np.concatenate([ACCELERATION * action[:, :3], YAW_RATE * action[:, 3:]], axis=1)
