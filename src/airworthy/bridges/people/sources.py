"""Where skeletons come from, by their word.

udp[:PORT or ADDRESS:PORT]   datagrams of little-endian doubles (`skeletons.PACKET`)
lcm[:CHANNEL]                skeleton_t of airworthy.lcm
ros2:TOPIC, zenoh:TOPIC      visualization_msgs/MarkerArray, a marker for each joint
file:PATH                    a recording (`scenes.files.skeleton_recording`), which is no stream: it moves by the scene's time
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from airworthy.bridges.lcm.link import LcmLink
from airworthy.bridges.lcm.types import lcm_types
from airworthy.bridges.people.skeletons import SkeletonFrame, local_turns, skeleton_frame, unpacked_skeleton
from airworthy.bridges.sockets import UdpLink, parse_address
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.scenes.people import PERSON_JOINTS

__all__ = ["PORT", "SOURCES", "SkeletonSource", "people_ports", "skeleton_source"]

PORT = 9871
"""Of UDP, where no other is named; ours."""
CHANNEL = "person_skeleton"
SOURCES = ("udp", "lcm", "ros2", "zenoh", "file")
NEWEST_OF = 256
"""Messages that are looked through at a time: a flood must not keep us here."""


def people_ports(words: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return the sources of people, [NAME=]SOURCE, for `sockets.refuse_shared_ports`."""
    return {f"--people {word}": (word.partition("=")[2] or word, PORT) for word in words}


class SkeletonSource(Protocol):
    """Gives what has come."""

    address: str
    """Where it can be reached, for sentences."""

    def waiting(self) -> list[Callable[[], SkeletonFrame]]:
        """Return what has come since the last call; each reads one message, and raises ValueError where it is no pose."""
        ...

    def close(self) -> None:
        """End it; may be called again."""
        ...


def skeleton_source(word: str) -> SkeletonSource:
    """Return a source by its word; "file" is none.

    Raises:
        UnknownNameError: There is no such source.
        AirworthyError: It cannot be opened.
    """
    kind, _, where = word.partition(":")
    if kind == "udp":
        return UdpSkeletons(where)
    if kind == "lcm":
        return LcmSkeletons(where or CHANNEL)
    if kind in ("ros2", "zenoh") and where:
        return RosSkeletons(kind, where)
    raise unknown_name(
        "source of people", word, SOURCES, "Write udp:PORT, lcm:CHANNEL, ros2:/TOPIC, zenoh:/TOPIC or file:PATH."
    )


class UdpSkeletons:
    """Datagrams; whoever sends the first pose is the source."""

    def __init__(self, where: str):
        self._link = UdpLink(parse_address(where, PORT), "a source of people")
        self.address = f"udp {self._link.address}"

    def waiting(self) -> list[Callable[[], SkeletonFrame]]:
        """See `SkeletonSource`."""
        found: list[Callable[[], SkeletonFrame]] = []
        for _ in range(NEWEST_OF):
            refused = self._link.refused
            received = self._link.receive(0.0)
            if received is not None:
                found.append(lambda received=received: self._read(*received))  # type: ignore[misc]
            elif self._link.refused == refused:  # else another sender's came first, and more may wait behind it
                break
        return found

    def _read(self, data: bytes, sender: tuple[str, int]) -> SkeletonFrame:
        frame = unpacked_skeleton(data)
        if self._link.peer is None:
            self._link.adopt(sender)
        elif sender != self._link.peer:  # came before the first pose was read
            raise ValueError("another sender")
        return frame

    def close(self) -> None:
        """See `SkeletonSource`."""
        self._link.close()


class LcmSkeletons:
    """skeleton_t of a channel."""

    def __init__(self, channel: str):
        self._link, self._channel = LcmLink(), channel
        self._type = lcm_types()["skeleton_t"]
        self.address = f"the channel {channel} of {self._link.address}"

    def waiting(self) -> list[Callable[[], SkeletonFrame]]:
        """See `SkeletonSource`."""
        found: list[Callable[[], SkeletonFrame]] = []
        for channel, data in self._link.arrived():
            if channel == self._channel:
                found.append(lambda data=data: self._read(data))  # type: ignore[misc]
        return found

    def _read(self, data: bytes) -> SkeletonFrame:
        try:
            values = self._type.unpacked(data)
        except AirworthyError as error:
            raise ValueError(str(error)) from None
        return skeleton_frame(1e-6 * values["utime"], values["position"], values["rotation"])

    def close(self) -> None:
        """See `SkeletonSource`."""
        self._link.close()


class RosSkeletons:
    """MarkerArray of a topic: `ns` of a marker names its joint, or else `id` counts it; poses are in the world."""

    KIND = "visualization_msgs/msg/MarkerArray"

    def __init__(self, transport: str, topic: str):
        from airworthy.bridges.ros.bus import SENSORS, topic_name
        from airworthy.bridges.ros.dds import DdsBus, domain_of_environment
        from airworthy.bridges.ros.zenoh import ZenohBus

        name, domain = topic_name(topic), domain_of_environment()
        self._bus: Any = DdsBus(domain) if transport == "ros2" else ZenohBus(domain)
        self._subscriber = self._bus.subscriber(name, self.KIND, SENSORS)
        self.address = f"{name} at {self._bus.address}"

    def waiting(self) -> list[Callable[[], SkeletonFrame]]:
        """See `SkeletonSource`."""
        found: list[Callable[[], SkeletonFrame]] = []
        for _ in range(NEWEST_OF):
            data = self._subscriber.receive(0.0)
            if data is None:
                break
            found.append(lambda data=data: self._read(data))  # type: ignore[misc]
        return found

    def _read(self, data: bytes) -> SkeletonFrame:
        from airworthy.bridges.ros.types import ros_types

        try:
            message = ros_types().unpacked(self.KIND, data)
        except AirworthyError as error:
            raise ValueError(str(error)) from None
        return markers_frame(message.markers)

    def close(self) -> None:
        """See `SkeletonSource`."""
        self._bus.close()


def markers_frame(markers: Any) -> SkeletonFrame:
    """Return the pose of markers, one for each joint; others are passed over.

    Raises:
        WrongJoints: A joint has none, or two.
        ValueError: They are no pose.
    """
    number = {name: k for k, name in enumerate(PERSON_JOINTS)}
    world = np.full((len(number), 4), np.nan)
    seen, place, stamp = [], np.full(3, np.nan), float("nan")
    for marker in markers:
        joint = number.get(marker.ns, int(marker.id) if not marker.ns else -1)
        if not 0 <= joint < len(number):
            continue
        seen.append(joint)
        turn, at, when = marker.pose.orientation, marker.pose.position, marker.header.stamp
        world[joint] = turn.x, turn.y, turn.z, turn.w
        if joint == 0:
            place, stamp = np.array([at.x, at.y, at.z]), when.sec + 1e-9 * when.nanosec
    if sorted(seen) != list(range(len(number))):
        return skeleton_frame(0.0, np.zeros(3), np.zeros((len(seen) if len(seen) != len(number) else 0, 4)))
    # Checked as they came: what is no quaternion would be made one.
    checked = skeleton_frame(stamp, place, world)
    return SkeletonFrame(checked.stamp, checked.position, local_turns(checked.turns))
