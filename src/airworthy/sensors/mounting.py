"""Where a sensor sits on its vehicle, and how that differs from flight to flight.

A mount's frame has x where the sensor looks, y left, z its top, also for cameras; `airworthy.core.frames.camera_attitude`
turns it into the optical frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler, multiply, normalize, rotate
from airworthy.core.random import Stream
from airworthy.core.schema import check_fields
from airworthy.sensors.noise import Draw, uniforms_of

# ---- When a sensor samples and when its samples arrive, in whole physics steps ----------------------------------------------
#
# Sample k of a sensor at rate f falls on step ceil(k f_physics / f) of its flight and is stamped with that step; a sample
# taken at step s with latency d [s] can be read from step s + ceil(d f_physics) on.


@dataclass(frozen=True)
class SampleClock:
    """The steps at which a sensor samples.

    Raises:
        AirworthyError: If the rate is not positive or faster than the physics, or the latency is negative.
    """

    rate: float
    """Samples per second."""
    physics_rate: float
    """Physics steps per second."""
    latency: float = 0.0
    """From a sample's instant until it can be read [s]."""

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= self.physics_rate:
            raise AirworthyError(
                f"A sensor samples at {self.rate} Hz; expected more than 0 and at most the physics' {self.physics_rate} Hz."
            )
        if not 0.0 <= self.latency < 1e6:
            raise AirworthyError(f"A sensor's latency is {self.latency} s; expected 0 or more.")

    @cached_property
    def _ratio(self) -> tuple[int, int]:
        # Whole numbers: a ratio of floats would lose a step after some hours, or where it is whole in decimals only.
        return Fraction(self.physics_rate / self.rate).limit_denominator(10**6).as_integer_ratio()

    @cached_property
    def delay_steps(self) -> int:
        """Steps between a sample and its arrival."""
        exact = Fraction(self.latency).limit_denominator(10**9) * Fraction(self.physics_rate).limit_denominator(10**6)
        return -((-exact.numerator) // exact.denominator)

    def step_of(self, sample: ArrayLike) -> ArrayInt:
        """Step of sample k = 0, 1, ...: ceil(k f_physics / f)."""
        up, down = self._ratio
        return -((-np.asarray(sample, np.int64) * up) // down)

    def taken(self, step: ArrayLike) -> ArrayInt:
        """Return samples taken up to and including a step: floor(step f / f_physics) + 1."""
        up, down = self._ratio
        return np.asarray(step, np.int64) * down // up + 1

    def due(self, step: ArrayLike) -> ArrayBool:
        """Tell whether a sample falls on a step."""
        return np.asarray(self.step_of(self.taken(step) - 1) == np.asarray(step, np.int64))

    def next_step(self, step: ArrayLike) -> ArrayInt:
        """Return the first step after this one on which a sample falls."""
        return self.step_of(self.taken(step))


# -----------------------------------------------------------------------------------------------------------------------------

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
        check_fields(self, "MountSpread.")
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

    def drawn(self, keys: ArrayU32, sensor: int) -> tuple[Array, Array]:
        """Return positions (k, 3) and attitudes (k, 4) in the body of k flights, by their key words (k, 4) and the sensor's
        number."""
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
    """Return the world pose of mounts, (..., 3) and (..., 4), from poses of bodies and of mounts in them.

    Args:
        position: Of the bodies, world [m], (..., 3).
        attitude: Of the bodies, quaternion x, y, z, w, (..., 4).
        mount_position: In the body frame [m], (..., 3).
        mount_attitude: In the body frame, (..., 4).
    """
    placed = np.asarray(position, np.float64) + rotate(attitude, mount_position)
    return placed, multiply(attitude, mount_attitude)


def _between(low: Vector3, high: Vector3, share: Array) -> Array:
    start, end = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return start + (end - start) * share
