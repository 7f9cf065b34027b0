"""Where a sensor sits on its vehicle, and how that differs from flight to flight.

A mount's frame has x where the sensor looks, y left, z its top, also for cameras; `airworthy.core.frames.camera_attitude`
turns it into the optical frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler, multiply, normalize, rotate
from airworthy.core.random import Stream, Words
from airworthy.sensors.noise import Draw, uniforms_of

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
ZERO: Vector3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MountSpread:
    """Uniform boxes around the nominal mount, drawn again at each reset.

    Raises:
        AirworthyError: If a lower bound exceeds its upper one.
    """

    translation_low: Vector3 = ZERO
    """Added to the position, body axes [m]."""
    translation_high: Vector3 = ZERO
    euler_low: Vector3 = ZERO
    """Roll, pitch, yaw of a turn in the mount's own frame [rad]."""
    euler_high: Vector3 = ZERO

    def __post_init__(self) -> None:
        low, high = np.array([self.translation_low, self.euler_low]), np.array([self.translation_high, self.euler_high])
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
            raise AirworthyError(f"{self} holds a lower bound above its upper one; write the smaller number first.")

    @property
    def any(self) -> bool:
        """Whether it moves anything."""
        return any(any(v) for v in (self.translation_low, self.translation_high, self.euler_low, self.euler_high))


@dataclass(frozen=True)
class Mount:
    """Pose of a sensor in its vehicle's body frame."""

    position: Vector3 = ZERO
    """[m]"""
    attitude: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """Mount to body, x, y, z, w."""
    spread: MountSpread | None = None
    """How it differs from flight to flight; None: not at all."""

    def drawn(self, keys: Words, sensor: int) -> tuple[Array, Array]:
        """Positions (k, 3) and attitudes (k, 4) in the body of k flights, by their key words (k, 4) and the sensor's number."""
        count = len(keys)
        position = np.tile(np.asarray(self.position, np.float64), (count, 1))
        attitude = np.tile(normalize(self.attitude), (count, 1))
        if self.spread is None or not self.spread.any:
            return position, attitude
        draw = Draw(keys, np.zeros(count, np.uint32), sensor)
        share = uniforms_of(draw.words(2, Stream.MOUNTING)).reshape(count, 8)
        offset = _between(self.spread.translation_low, self.spread.translation_high, share[:, :3])
        roll, pitch, yaw = _between(self.spread.euler_low, self.spread.euler_high, share[:, 3:6]).T
        return position + offset, multiply(attitude, from_euler(roll, pitch, yaw))


AT_ORIGIN = Mount()


def mounted_pose(
    position: ArrayLike, attitude: ArrayLike, mount_position: ArrayLike, mount_attitude: ArrayLike
) -> tuple[Array, Array]:
    """World pose of mounts, (..., 3) and (..., 4), from poses of bodies and of mounts in them."""
    placed = np.asarray(position, np.float64) + rotate(attitude, mount_position)
    return placed, multiply(attitude, mount_attitude)


def _between(low: Vector3, high: Vector3, share: Array) -> Array:
    start, end = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return start + (end - start) * share
