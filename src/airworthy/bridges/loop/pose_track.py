"""Poses as they come, by the clock of their source: where the vehicle is at any instant, and what is wrong with them."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import (
    conjugate,
    from_euler,
    from_rotation_vector,
    multiply,
    normalize,
    rotate,
    slerp,
    to_rotation_vector,
)
from airworthy.core.schema import Bound, check_fields

__all__ = ["ClockOffset", "PoseLimits", "PoseTrack", "RoomAlignment", "StampedPose", "TrackedPose"]


RESTART = 1.0
"""A clock that goes back farther is another one, or was wrong before [s]."""


@dataclass(frozen=True)
class StampedPose:
    """One pose as it came."""

    stamp: float
    """By the source's clock [s]."""
    position: Array
    """[m], (3,)."""
    attitude: Array
    """Body to world, x, y, z, w, (4,)."""
    received: float
    """By this machine's monotonic clock [s]."""


@dataclass(frozen=True)
class RoomAlignment:
    """Where the room's origin lies in the scene, and how the room is turned there."""

    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m]"""
    yaw: float = 0.0
    """[deg], to the left."""

    def __post_init__(self) -> None:
        check_fields(self, "alignment.")

    @property
    def turn(self) -> Array:
        """Room to scene, x, y, z, w."""
        return from_euler(0.0, 0.0, math.radians(self.yaw))

    def poses(self, position: ArrayLike, attitude: ArrayLike) -> tuple[Array, Array]:
        """Return positions (..., 3) [m] and attitudes (..., 4) of the room in the scene."""
        where = rotate(self.turn, position) + np.asarray(self.position)
        return where, normalize(multiply(self.turn, attitude))

    def placed(self, pose: StampedPose) -> StampedPose:
        """Return a pose of the room in the scene."""
        return StampedPose(pose.stamp, *self.poses(pose.position, pose.attitude), pose.received)


class ClockOffset:
    """From the source's clock to ours, by the delays that were least: what waits on its way only ever comes later.

    Args:
        window: Time whose least delay counts [s]: clocks of crystals drift by some 50 us in it.
    """

    def __init__(self, window: float = 2.0):
        self._window = window
        # Rising: each is less than all that came before and are still in the window.
        self._least: deque[tuple[float, float]] = deque()

    def add(self, stamp: float, received: float) -> None:
        """Take an arrival [s]."""
        offset = received - stamp
        while self._least and self._least[-1][1] >= offset:
            self._least.pop()
        self._least.append((received, offset))
        while self._least[0][0] < received - self._window:
            self._least.popleft()

    def forget(self) -> None:
        """Forget all arrivals: the source's clock is another one now."""
        self._least.clear()

    @property
    def value(self) -> float:
        """Our clock less the source's, the least way included [s]; 0 before anything came."""
        return self._least[0][1] if self._least else 0.0


@dataclass(frozen=True)
class PoseLimits:
    """What is taken for a pose."""

    extrapolation: Annotated[float, Bound(0.0, 1.0, "s")] = 0.05
    """Longest time beyond the newest pose [s]; from then on it is held."""
    baseline: Annotated[float, Bound(1e-3, 1.0, "s")] = 0.02
    """Over which velocity and rate are taken [s]: shorter ones make noise of positions into speed."""
    speed: Annotated[float, Bound(0.1, 1e3, "m/s")] = 30.0
    """Faster than this between two poses is a jump [m/s]; ours, above what racing drones reach indoors."""
    rate: Annotated[float, Bound(0.1, 1e3, "rad/s")] = 40.0
    """The same of a turn [rad/s]: drones turn with up to 2,000 degrees per second."""
    stubborn: Annotated[int, Bound(1, 1000)] = 10
    """Jumps in a row after which the new place is believed."""

    def __post_init__(self) -> None:
        check_fields(self, "poses.")


@dataclass(frozen=True)
class TrackedPose:
    """Where the vehicle is taken to be."""

    position: Array
    attitude: Array
    age: float
    """From the newest pose to the instant [s]; negative between two poses."""
    held: bool
    """The newest pose is older than may be extrapolated."""
    received: float
    """When the newest pose that it rests on came [s]."""
    stamp: float = math.nan
    """Of that pose, by the source's clock [s]."""


@dataclass
class PoseTrack:
    """The newest poses, by the source's clock."""

    limits: PoseLimits = field(default_factory=PoseLimits)
    clock: ClockOffset = field(default_factory=ClockOffset)
    taken: int = 0
    jumps: int = 0
    """Poses farther from the last one than anything flies; they were left out."""
    flips: int = 0
    """Of these, those at the same place that were turned by more than a right angle: the source took the markers for others."""
    late: int = 0
    """Poses that came out of order."""
    restarts: int = 0
    """Times that the source's clock began anew: it went back by over a second, which no network holds a datagram for."""
    dropouts: int = 0
    """Gaps longer than may be extrapolated."""

    def __post_init__(self) -> None:
        self._poses: deque[StampedPose] = deque(maxlen=512)
        self._odd = 0

    def __len__(self) -> int:
        return len(self._poses)

    def add(self, pose: StampedPose) -> bool:
        """Take a pose; False where it is left out."""
        if self._poses and pose.stamp < self._poses[-1].stamp - RESTART:
            self.restarts += 1
            self.clock.forget()
            self._poses.clear()
        self.clock.add(pose.stamp, pose.received)
        if self._poses:
            last = self._poses[-1]
            if pose.stamp <= last.stamp:
                self.late += 1
                return False
            if self._jumps(last, pose) and self._odd < self.limits.stubborn:
                self._odd += 1
                return False
            if pose.stamp - last.stamp > self.limits.extrapolation:
                self.dropouts += 1
            if self._odd >= self.limits.stubborn:
                self._poses.clear()  # another place: no speed leads there
        self._odd = 0
        self._poses.append(pose)
        self.taken += 1
        return True

    def _jumps(self, last: StampedPose, pose: StampedPose) -> bool:
        gap = pose.stamp - last.stamp
        moved = float(np.linalg.norm(pose.position - last.position))
        turned = float(np.linalg.norm(to_rotation_vector(multiply(conjugate(last.attitude), pose.attitude))))
        jumped = moved > self.limits.speed * gap or turned > self.limits.rate * gap
        self.jumps += jumped
        # Ours: within a decimetre nothing has moved, and no drone turns by a right angle between two poses.
        self.flips += jumped and moved < 0.1 and turned > math.pi / 2
        return jumped

    def at(self, now: float) -> TrackedPose | None:
        """Return where the vehicle is at an instant of our clock [s]; None before anything came."""
        if not self._poses:
            return None
        stamp, newest = now - self.clock.value, self._poses[-1]
        age = stamp - newest.stamp
        if age <= 0.0:
            return self._between(stamp)
        ahead = min(age, self.limits.extrapolation)
        before = next((p for p in reversed(self._poses) if newest.stamp - p.stamp >= self.limits.baseline), self._poses[0])
        gap = newest.stamp - before.stamp
        held = age > self.limits.extrapolation
        if gap <= 0.0:
            return TrackedPose(newest.position, newest.attitude, age, held, newest.received, newest.stamp)
        velocity = (newest.position - before.position) / gap
        rate = to_rotation_vector(multiply(conjugate(before.attitude), newest.attitude)) / gap
        attitude = multiply(newest.attitude, from_rotation_vector(rate * ahead))
        return TrackedPose(newest.position + velocity * ahead, attitude, age, held, newest.received, newest.stamp)

    def _between(self, stamp: float) -> TrackedPose:
        later = next((k for k, pose in enumerate(self._poses) if pose.stamp >= stamp), 0)
        after, age = self._poses[later], stamp - self._poses[-1].stamp
        if later == 0:
            return TrackedPose(after.position, after.attitude, age, False, after.received, after.stamp)
        before = self._poses[later - 1]
        share = (stamp - before.stamp) / (after.stamp - before.stamp)
        position = before.position + share * (after.position - before.position)
        turn = slerp(before.attitude, after.attitude, share)
        return TrackedPose(position, turn, age, False, after.received, after.stamp)
