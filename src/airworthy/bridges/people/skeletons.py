"""One pose of a person as a tracker sends it: the pelvis in the world, and turns of the joints."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.bridges.loop.pose_sources import FAR, STAMP_MAX
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import conjugate, multiply, normalize
from airworthy.scenes.files.skeleton_recording import LENGTH_ERROR
from airworthy.scenes.people import PERSON_JOINTS, person

__all__ = ["PACKET", "SkeletonFrame", "WrongJoints", "local_turns", "packed_skeleton", "skeleton_frame", "unpacked_skeleton"]

JOINTS = len(PERSON_JOINTS)
PACKET = struct.Struct(f"<{4 + 4 * JOINTS}d")
"""Stamp [s], place of the pelvis [m], a quaternion x, y, z, w for each joint; little-endian doubles."""
_HEAD = 32
"""Bytes before the quaternions."""


class WrongJoints(ValueError):
    """A skeleton has another number of joints than a person here."""


@dataclass(frozen=True, eq=False)
class SkeletonFrame:
    """One pose."""

    stamp: float
    """By the tracker's clock [s]."""
    position: Array
    """Of the pelvis, world [m], (3,)."""
    turns: Array
    """Of the joints, in the order of `PERSON_JOINTS`; the pelvis' in the world, others' in their parents, (joints, 4)."""


def skeleton_frame(stamp: float, position: Sequence[float] | Array, turns: ArrayLike) -> SkeletonFrame:
    """Return a pose of some numbers.

    Raises:
        WrongJoints: There are other joints than a person has.
        ValueError: They are no pose.
    """
    place, found = np.asarray(position, np.float64), np.asarray(turns, np.float64)
    if found.ndim != 2 or found.shape[1] != 4 or len(found) != JOINTS:
        raise WrongJoints(f"{len(found)} joints; expected {JOINTS}")
    if place.shape != (3,) or not math.isfinite(stamp) or not np.isfinite(place).all() or not np.isfinite(found).all():
        raise ValueError("a number that is none")
    # Of the same bounds as those of vehicles.
    if abs(stamp) >= STAMP_MAX or np.abs(place).max() > FAR:
        raise ValueError("a stamp that is none of seconds, or a place that is none of metres")
    # Before squares are taken, which may overflow.
    if np.abs(found).max() > 2.0 or (np.abs(np.linalg.norm(found, axis=1) - 1.0) > LENGTH_ERROR).any():
        raise ValueError("a quaternion that has not length 1")
    return SkeletonFrame(float(stamp), place, normalize(found))


def packed_skeleton(stamp: float, position: ArrayLike, turns: ArrayLike) -> bytes:
    """Return the datagram of a pose, (3,) and (joints, 4)."""
    return PACKET.pack(stamp, *np.asarray(position, float).reshape(-1), *np.asarray(turns, float).reshape(-1))


def unpacked_skeleton(data: bytes) -> SkeletonFrame:
    """Return the pose of a datagram.

    Raises:
        WrongJoints: It has whole joints, but others than a person has.
        ValueError: It is none.
    """
    if len(data) != PACKET.size:
        joints, rest = divmod(len(data) - _HEAD, 32)
        if rest == 0 and joints >= 1:
            raise WrongJoints(f"{joints} joints; expected {JOINTS}")
        raise ValueError(f"{len(data)} bytes; expected {PACKET.size}")
    stamp, *numbers = PACKET.unpack(data)
    return skeleton_frame(stamp, numbers[:3], np.reshape(numbers[3:], (JOINTS, 4)))


def _parents() -> Any:
    (skeleton,) = person().skeletons.values()
    return np.asarray(skeleton.parents)


def local_turns(world: ArrayLike) -> Array:
    """Return turns of joints in their parents, of their attitudes in the world, (joints, 4); the pelvis' is its own."""
    attitude = normalize(world)
    found = attitude.copy()
    parents = _parents()
    below = np.flatnonzero(parents >= 0)
    found[below] = multiply(conjugate(attitude[parents[below]]), attitude[below])
    return found
