"""Images of a place with what is to be told from them: pose of the camera, depth and place of what is seen.

Every image is a function of (seed, place, number): poses are drawn by the place's own generator, in order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayU8
from airworthy.core.frames import from_euler
from airworthy.geometry.distance import clearance
from airworthy.optics.tone import to_8bit
from airworthy.scenes import Scene, SceneBatch
from airworthy.sensors.build import make_sensor
from airworthy.sensors.carried import vehicle_camera
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import SensorView
from airworthy.vehicles import named_vehicle

__all__ = ["CELLS", "POSE", "SIDE", "SUBCELLS", "PlacePictures", "drawn_poses", "pictures_of"]

SIDE = 112
"""Of the images [px]."""
CELLS = 6
"""Rows and columns of what the trunk gives of them."""
SUBCELLS = 2
"""Depths along a side of a cell."""
POSE = 7
"""Numbers of a pose: place, cosine and sine of the heading, roll, pitch."""
# A cell's middle: the first convolution and three poolings, each of 3 pixels and every second, none with a border, give
# middles of 2j + 1, 4k + 3, 8m + 7 and 16n + 15.
_CELL_PIXELS = 16 * np.arange(CELLS) + 15
_SUBCELL_PIXELS = 8 * np.arange(CELLS * SUBCELLS) + 11
# Ours, as everything below: what a small drone flies like indoors.
_HEIGHT = (0.3, 2.5)
"""Above the floor [m]."""
_TILT = math.radians(25.0)
"""Most roll and pitch [rad]."""
_ASIDE = (0.6, 0.6, 0.4)
"""Most distance from the loop along each axis [m]."""
_TURNED = 0.6
"""Most turn from the loop's heading [rad]."""
_FOCUSED = 0.3
"""Share of places in which the nose points towards something."""
_ROOM = 0.25
"""Distance from all things [m]."""
_REACH = (16.0, 12.0)
"""Poses lie in a part of the place this long and wide [m]: beyond it nothing small is recognised at 112 pixels."""
_NEAREST, _FARTHEST = 0.1, 40.0
"""Less depth counts as this, and what is farther is nothing [m]."""
_CANDIDATES = 256
_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class PlacePictures:
    """n images of a place."""

    images: ArrayU8
    """(n, 112, 112, 3)"""
    pose: ArrayF32
    """(n, 7) x, y, z from the middle of the place [m], cosine and sine of the heading, roll, pitch [rad]."""
    log_depth: ArrayF32
    """(n, 12, 12) logarithm of depth along the axis [log m]; NaN where there is nothing."""
    points: ArrayF32
    """(n, 6, 6, 3) what the middle of each cell shows, from the middle of the place [m]; NaN where there is nothing."""


@dataclass(frozen=True, eq=False)
class DrawnPoses:
    """n poses of a body in a place."""

    position: Array
    """(n, 3) world [m]."""
    euler: Array
    """(n, 3) roll, pitch, yaw [rad]."""
    middle: Array
    """(3,) of the part of the place in which they lie, world [m]."""

    @property
    def told(self) -> ArrayF32:
        """Return what is to be told from images, (n, `POSE`)."""
        roll, pitch, yaw = self.euler.T
        return np.column_stack([self.position - self.middle, np.cos(yaw), np.sin(yaw), roll, pitch]).astype(np.float32)


def drawn_poses(scene: Scene, batch: SceneBatch, count: int, key: list[int]) -> DrawnPoses:
    """Return poses like those of a small drone on a course of this place, a closed loop; a place without room has fewer.

    Args:
        scene: With bounds.
        batch: The same, placed.
        count: How many, at most.
        key: Of the generator.
    """
    rng = np.random.default_rng(key)
    low, high = _part(scene, rng)
    loop = _Loop.drawn(low, high, rng)
    found: list[Array] = [np.zeros((0, 6))]
    left = count
    for _ in range(_ROUNDS):
        # Always as many candidates, so that an image does not depend on how many are asked for.
        drawn = loop.poses(rng.random(_CANDIDATES), rng.uniform(-1.0, 1.0, (_CANDIDATES, 6)))
        at = np.clip(drawn[:, :3], low, high)
        free = np.flatnonzero(clearance(batch.geometry, at, 0, _ROOM).distance >= _ROOM)[:left]
        found.append(np.column_stack([at, drawn[:, 3:]])[free])
        left -= len(free)
        if not left:
            break
    poses = np.concatenate(found)
    return DrawnPoses(poses[:, :3], poses[:, 3:], 0.5 * (low + high))


@dataclass(frozen=True, eq=False)
class _Loop:
    """A course around a place: an ellipse that bends twice, flown with the nose ahead or towards something."""

    middle: Array
    """(3,) world [m]."""
    half: Array
    """(3,) half its size, and of its rise and fall [m]."""
    phase: Array
    """(3,) of its bends and of its rise [rad]."""
    sense: float
    """1: counter-clockwise; -1: clockwise."""
    focus: Array | None
    """(2,) towards which the nose points, world [m]; None: ahead."""

    @classmethod
    def drawn(cls, low: Array, high: Array, rng: np.random.Generator) -> _Loop:
        """Return a loop in a box."""
        half = 0.5 * (high - low) * rng.uniform(0.35, 0.85, 3)
        focus = rng.uniform(low[:2], high[:2]) if rng.random() < _FOCUSED else None
        return cls(0.5 * (low + high), half, rng.uniform(-math.pi, math.pi, 3), float(rng.choice([-1.0, 1.0])), focus)

    def poses(self, share: Array, off: Array) -> Array:
        """Return position and roll, pitch, yaw (n, 6) beside the loop.

        Args:
            share: Of the way around, (n,).
            off: Offsets from the loop, (n, 6), each within -1 and 1.
        """
        turn = self.sense * 2.0 * math.pi * share
        ahead = turn + 1e-3 * self.sense
        at = self._place(turn)
        to = self._place(ahead) - at
        at = at + off[:, :3] * _ASIDE
        heading = np.arctan2(to[:, 1], to[:, 0])
        if self.focus is not None:
            heading = np.arctan2(self.focus[1] - at[:, 1], self.focus[0] - at[:, 0])
        return np.column_stack([at, _TILT * off[:, 3:5], heading + _TURNED * off[:, 5]])

    def _place(self, turn: Array) -> Array:
        bend = 1.0 + 0.2 * np.cos(2.0 * turn + self.phase[0])
        x, y = bend * np.cos(turn), bend * np.sin(turn + 0.3 * np.sin(self.phase[1]))
        return self.middle + self.half * np.column_stack([x, y, np.sin(turn + self.phase[2])])


def _part(scene: Scene, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the corners of the box in a place in which poses are drawn [m]."""
    lower, upper = np.array(scene.bounds.lower), np.array(scene.bounds.upper)
    free = upper[:2] - lower[:2] - 2.0 * _ROOM
    reach = np.minimum(free, _REACH)
    begin = lower[:2] + _ROOM + rng.random(2) * (free - reach)
    top = min(lower[2] + _HEIGHT[1], upper[2] - _ROOM)
    return np.array([*begin, lower[2] + _HEIGHT[0]]), np.array([*(begin + reach), top])


def pictures_of(scene: Scene, count: int, key: list[int], threads: int | None = None) -> PlacePictures:
    """Return images of a place at poses that are drawn.

    Args:
        scene: The place.
        count: How many, at most.
        key: Of the generator.
        threads: Of the renderer; None: all.
    """
    camera = vehicle_camera(named_vehicle("carl"), "camera", SIDE)
    sensor, mount = make_sensor(camera), camera.effective_mount
    batch = SceneBatch(scene, 1, "cpu", threads)
    poses = drawn_poses(scene, batch, count, key)
    eye, turned = mounted_pose(poses.position, from_euler(*poses.euler.T), mount.position, mount.attitude)
    seen = sensor.capture(batch, SensorView(eye, turned, np.zeros(len(eye), np.int32)), ("rgb", "true_depth", "point_world"))
    depth = seen["true_depth"][:, _SUBCELL_PIXELS][:, :, _SUBCELL_PIXELS]
    far = ~(depth < _FARTHEST)
    points = seen["point_world"][:, _CELL_PIXELS][:, :, _CELL_PIXELS] - poses.middle
    points[~(seen["true_depth"][:, _CELL_PIXELS][:, :, _CELL_PIXELS] < _FARTHEST)] = np.nan
    log_depth = np.where(far, np.nan, np.log(np.maximum(depth, _NEAREST)))
    return PlacePictures(to_8bit(seen["rgb"]), poses.told, log_depth.astype(np.float32), points.astype(np.float32))
