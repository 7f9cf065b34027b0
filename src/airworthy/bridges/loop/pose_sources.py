"""Where poses come from, by their word.

udp[:PORT or ADDRESS:PORT]   datagrams of eight little-endian doubles: stamp [s], position [m], attitude x, y, z, w
ros2:TOPIC, zenoh:TOPIC      geometry_msgs/PoseStamped
lcm[:CHANNEL]                pose_t of airworthy.lcm
file:PATH                    a log with positions and attitudes (EuRoC, TUM, MCAP, ...), at the pace of its stamps
"""

from __future__ import annotations

import math
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from airworthy.bridges.lcm.link import LcmLink
from airworthy.bridges.lcm.types import lcm_types
from airworthy.bridges.loop.pose_track import StampedPose
from airworthy.bridges.sockets import UdpLink, parse_address
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, unknown_name
from airworthy.logs import read_log

__all__ = ["FAR", "PORT", "STAMP_MAX", "PoseSource", "PosesEnded", "logged_poses", "pose_source"]

PORT = 9870
"""Of UDP, where no other is named; ours."""
CHANNEL = "room_pose"
SOURCES = ("udp", "ros2", "zenoh", "lcm", "file")
_PACKET = struct.Struct("<8d")
# A quaternion of a sender's float32 is as long as 1 within some 1e-7; one that is farther off is something else.
_LENGTH_ERROR = 1e-2


class PosesEnded(Exception):
    """A source has no more."""


class PoseSource(Protocol):
    """Gives poses as they come."""

    address: str
    """Where it can be reached, for sentences."""
    malformed: int
    """Packets that were no poses."""

    def receive(self, deadline: float) -> StampedPose | None:
        """Return the next pose; None when the deadline (`time.monotonic`) has passed.

        Raises:
            PosesEnded: There will be none.
        """
        ...

    def close(self) -> None:
        """End it; may be called again."""
        ...


def pose_source(
    word: str, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> PoseSource:
    """Return a source by its word.

    Args:
        word: See the module.
        now: This machine's monotonic clock [s].
        sleep: Waits so many seconds.

    Raises:
        UnknownNameError: There is no such source.
        AirworthyError: It cannot be opened.
    """
    kind, _, where = word.partition(":")
    if kind == "udp":
        return UdpPoses(where, now)
    if kind == "file" and where:
        return FilePoses(logged_poses(where), where, now, sleep)
    if kind in ("ros2", "zenoh"):
        return RosPoses(kind, where, now)
    if kind == "lcm":
        return LcmPoses(where or CHANNEL, now)
    raise unknown_name("source of poses", word, SOURCES, "Write udp:PORT, ros2:/TOPIC, zenoh:/TOPIC, lcm:CHANNEL or file:PATH.")


STAMP_MAX = 2.0**31 - 86400.0
"""Seconds that a stamp of ROS holds (builtin_interfaces/Time), a day less, so that a flight has room behind it; today's date in
microseconds or nanoseconds is beyond."""
FAR = 1e6
"""Farther from the origin of the room is no pose of it [m]; sensors end at ten times that."""


def checked_pose(stamp: float, position: tuple[float, ...], attitude: tuple[float, ...], received: float) -> StampedPose | None:
    """Return a pose; None where its numbers are none."""
    if not all(map(math.isfinite, (stamp, *position, *attitude))):
        return None
    if abs(stamp) >= STAMP_MAX or max(map(abs, position)) > FAR:
        return None
    length = math.sqrt(math.fsum(part * part for part in attitude)) if max(map(abs, attitude)) < 2.0 else 0.0
    if abs(length - 1.0) > _LENGTH_ERROR:
        return None
    return StampedPose(stamp, np.array(position), np.array(attitude) / length, received)


class UdpPoses:
    """Datagrams; whoever sends the first pose is the source."""

    def __init__(self, where: str, now: Callable[[], float]):
        self._link = UdpLink(parse_address(where, PORT), "a source of poses")
        self.address, self._now, self.malformed = f"udp {self._link.address}", now, 0

    def receive(self, deadline: float) -> StampedPose | None:
        """See `PoseSource`."""
        while True:
            received = self._link.receive(deadline)
            if received is None:
                return None
            came, data = self._now(), received[0]
            pose = None
            if len(data) == _PACKET.size:
                stamp, *numbers = _PACKET.unpack(data)
                pose = checked_pose(stamp, tuple(numbers[:3]), tuple(numbers[3:]), came)
            if pose is not None:
                if self._link.peer is None:
                    self._link.adopt(received[1])
                return pose
            self.malformed += 1
            if time.monotonic() >= deadline:
                return None

    @property
    def others(self) -> int:
        """Packets of other senders than the first, which are not looked at."""
        return self._link.refused

    def close(self) -> None:
        """See `PoseSource`."""
        self._link.close()


class RosPoses:
    """PoseStamped of a topic."""

    KIND = "geometry_msgs/msg/PoseStamped"

    def __init__(self, transport: str, topic: str, now: Callable[[], float]):
        from airworthy.bridges.ros.bus import SENSORS, topic_name
        from airworthy.bridges.ros.dds import DdsBus, domain_of_environment
        from airworthy.bridges.ros.zenoh import ZenohBus

        name, domain = topic_name(topic), domain_of_environment()
        self._bus = DdsBus(domain) if transport == "ros2" else ZenohBus(domain)
        self._subscriber = self._bus.subscriber(name, self.KIND, SENSORS)
        self.address, self._now, self.malformed = f"{name} at {self._bus.address}", now, 0

    def receive(self, deadline: float) -> StampedPose | None:
        """See `PoseSource`."""
        from airworthy.bridges.ros.types import ros_types

        while True:
            data = self._subscriber.receive(deadline)
            if data is None:
                return None
            came = self._now()
            try:
                message = ros_types().unpacked(self.KIND, data)
            except AirworthyError:
                message = None
            if message is not None:
                when, place, turn = message.header.stamp, message.pose.position, message.pose.orientation
                numbers = (place.x, place.y, place.z), (turn.x, turn.y, turn.z, turn.w)
                pose = checked_pose(when.sec + 1e-9 * when.nanosec, *numbers, came)
                if pose is not None:
                    return pose
            self.malformed += 1
            if time.monotonic() >= deadline:
                return None

    def close(self) -> None:
        """See `PoseSource`."""
        self._bus.close()


class LcmPoses:
    """pose_t of a channel; its velocities are not used."""

    def __init__(self, channel: str, now: Callable[[], float]):
        self._link, self._channel, self._now = LcmLink(), channel, now
        self.malformed = self._seen = 0
        self._type = lcm_types()["pose_t"]
        self.address = f"the channel {channel} of {self._link.address}"

    def receive(self, deadline: float) -> StampedPose | None:
        """See `PoseSource`."""
        while True:
            received = self._link.receive(deadline)
            # Datagrams that were none of LCM, which the link counts.
            self.malformed += self._link.malformed - self._seen
            self._seen = self._link.malformed
            if received is None:
                return None
            came, (channel, data) = self._now(), received
            if channel == self._channel:
                pose = self._read(data, came)
                if pose is not None:
                    return pose
                self.malformed += 1
            if time.monotonic() >= deadline:
                return None

    def _read(self, data: bytes, came: float) -> StampedPose | None:
        try:
            values = self._type.unpacked(data)
        except AirworthyError:
            return None
        return checked_pose(1e-6 * values["utime"], tuple(values["position"]), tuple(values["orientation"]), came)

    def close(self) -> None:
        """See `PoseSource`."""
        self._link.close()


class FilePoses:
    """Poses of a file, each when as much time has passed here as between its stamp and the first one's."""

    malformed = 0

    def __init__(self, poses: Iterator[StampedPose], name: str, now: Callable[[], float], sleep: Callable[[float], None]):
        self._poses, self.address, self._now, self._sleep = poses, f"the file {name}", now, sleep
        self._begin: float | None = None
        self._next: StampedPose | None = None

    def receive(self, deadline: float) -> StampedPose | None:
        """See `PoseSource`."""
        if self._next is None:
            self._next = next(self._poses, None)
            if self._next is None:
                raise PosesEnded
        if self._begin is None:
            self._begin = self._now() - self._next.stamp
        due = self._begin + self._next.stamp
        wait = min(due, deadline) - self._now()
        if wait > 0.0:
            self._sleep(wait)
        if due > deadline:
            return None
        found, self._next = self._next, None
        return StampedPose(found.stamp, found.position, found.attitude, self._now())

    def close(self) -> None:
        """See `PoseSource`."""


def logged_poses(path: str) -> Iterator[StampedPose]:
    """Return the poses of a log, in order.

    Raises:
        AirworthyError: It holds no positions with attitudes at the same stamps.
    """
    try:
        log = read_log(path)
    except AssetError as error:  # what reads logs advises its own options, which are none of these commands'
        advice = "`airworthy logs convert FILE --map mapping.toml --out poses.mcap` makes a log of it that is read here"
        raise AssetError(str(error).replace("`--map mapping.toml` uses it", advice)) from None
    for place in log.of_kind("position"):
        turn = next((item for item in log.of_kind("attitude") if np.array_equal(item.time, place.time)), None)
        if turn is not None:
            found = list(_rows(place.time, place.values, turn.values))
            if len(found) < len(place.time):
                warnings.warn(
                    f"{path}: {len(place.time) - len(found):,} of {len(place.time):,} rows are no poses, and are left out.",
                    AssetWarning,
                    stacklevel=2,
                )
            return iter(found)
    raise AirworthyError(
        f"The log {path!r} holds no positions with attitudes at the same stamps; `airworthy logs show` lists what it has."
    )


def _rows(times: object, positions: object, attitudes: object) -> Iterator[StampedPose]:
    for stamp, place, turn in zip(np.asarray(times), np.asarray(positions), np.asarray(attitudes), strict=True):
        pose = checked_pose(float(stamp), tuple(map(float, place)), tuple(map(float, turn)), 0.0)
        if pose is not None:
            yield pose
