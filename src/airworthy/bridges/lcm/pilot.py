"""A program over LCM as a pilot, in lockstep: the pose comes last of an instant, and a command with its utime comes back.

Datagrams may be lost: what is not answered is asked anew. Channels are named as the topics of ROS 2, "_" for each "/" between.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from airworthy.bridges.lcm.link import LcmLink
from airworthy.bridges.lcm.types import lcm_types
from airworthy.bridges.remote.pilot import PilotHello, RemoteSettings
from airworthy.bridges.ros.bus import Qos
from airworthy.bridges.ros.messages import RosMessage, stamp_of
from airworthy.bridges.ros.pilot import RosPilot
from airworthy.bridges.ros.types import IR_MARKERS
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetWarning, unknown_name
from airworthy.core.frames import rotate

__all__ = ["LCM_INPUTS", "LcmCommands", "LcmPilot", "LcmSender", "channel_of", "lcm_message"]

LCM_INPUTS: Mapping[str, tuple[str, str]] = {
    "rate_thrust": ("uav_input_rateThrust", "rate_thrust_t"),
    "rotor_speed": ("uav_input_motorspeed", "motor_speed_t"),
}
"""Control level -> channel and type of its commands."""


_FRAMES = ("tf2_msgs/msg/TFMessage", "sensor_msgs/msg/CameraInfo")
"""What LCM has no type for, of every flight (docs/howto/lcm.md)."""


def channel_of(topic: str) -> str:
    """Return the channel of a topic: "uav_odometry" of "/uav/odometry"."""
    return topic.strip("/").replace("/", "_")


def _utime(stamp: Mapping[str, int]) -> int:
    return stamp["sec"] * 1_000_000 + round(stamp["nanosec"] / 1000)


def _vector(values: Mapping[str, float]) -> list[float]:
    return [values[axis] for axis in "xyz"]


def lcm_message(message: RosMessage) -> tuple[str, bytes] | None:
    """Return type and bytes of what a message of ROS 2 says; None where LCM has no type for it."""
    values = message.values
    if message.kind == "rosgraph_msgs/msg/Clock":
        return _packed("clock_t", utime=_utime(values["clock"]))
    if message.kind == "std_msgs/msg/Float64":
        return _packed("clock_factor_t", factor=values["data"])
    if message.kind == "std_msgs/msg/Empty":
        return _packed("collision_t", utime=0)
    if "header" not in values:
        return None
    utime = _utime(values["header"]["stamp"])
    if message.kind == "nav_msgs/msg/Odometry":
        pose, twist = values["pose"]["pose"], values["twist"]["twist"]
        turn = [pose["orientation"][axis] for axis in "xyzw"]
        velocity = rotate(turn, _vector(twist["linear"]))
        return _packed("pose_t", utime=utime, position=_vector(pose["position"]), orientation=turn, velocity=velocity,
                       angular_velocity=_vector(twist["angular"]))  # fmt: skip
    if message.kind == "geometry_msgs/msg/PoseStamped":
        pose = values["pose"]
        turn = [pose["orientation"][axis] for axis in "xyzw"]
        return _packed("pose_t", utime=utime, position=_vector(pose["position"]), orientation=turn)
    if message.kind == "sensor_msgs/msg/Imu":
        return _packed("imu_t", utime=utime, linear_acceleration=_vector(values["linear_acceleration"]),
                       angular_velocity=_vector(values["angular_velocity"]))  # fmt: skip
    if message.kind == "sensor_msgs/msg/Image":
        pixels = np.asarray(values["data"], np.uint8)
        return _packed("image_t", utime=utime, frame=values["header"]["frame_id"], encoding=values["encoding"],
                       width=values["width"], height=values["height"], row_stride=values["step"], size=pixels.size,
                       data=pixels)  # fmt: skip
    if message.kind == IR_MARKERS:
        seen = values["markers"]
        labels = " ".join(f"{item['landmark_id']['data']}/{item['marker_id']['data']}" for item in seen).encode()
        pixels = np.array([(item["x"], item["y"]) for item in seen]).reshape(-1, 2)
        return _packed("ir_markers_t", utime=utime, count=len(seen), size=len(labels), names=np.frombuffer(labels, np.uint8),
                       pixel=pixels)  # fmt: skip
    if message.kind == "sensor_msgs/msg/Range":
        return _packed("range_t", utime=utime, range=values["range"], minimum=values["min_range"], maximum=values["max_range"])
    return None


def _packed(name: str, **values: Any) -> tuple[str, bytes]:
    return name, lcm_types()[name].packed(values)


class _Channel:
    """What `RosPilot` asks of a publisher: LCM knows nobody on the other side."""

    matched = 1

    def flush(self, deadline: float) -> bool:
        """See `bus.Publisher`."""
        return True


class LcmSender:
    """Sends what messages of ROS 2 say, as far as LCM has types for it."""

    def __init__(self, link: LcmLink):
        self._link, self._unsaid = link, set[str]()

    def announce(self, topic: str, kind: str, qos: Qos) -> _Channel:
        """Return the end of a topic; nothing is announced."""
        return _Channel()

    def prepare(self, message: RosMessage) -> None:
        """Do what the first message of its kind needs, and send nothing."""
        lcm_message(message)

    def send(self, message: RosMessage) -> _Channel:
        """Send a message."""
        found = lcm_message(message)
        if found is not None:
            self._link.send(channel_of(message.topic), found[1])
        elif message.kind not in _FRAMES and message.topic not in self._unsaid:
            self._unsaid.add(message.topic)
            warnings.warn(
                f"LCM has no type for {message.kind}: {channel_of(message.topic)} is not sent (external:ros2 has all).",
                AssetWarning,
                stacklevel=2,
            )
        return _Channel()


class LcmCommands:
    """Commands of a control level as they come."""

    matched = 1

    def __init__(self, link: LcmLink, level: str):
        name = level.partition(":")[0]
        if name not in LCM_INPUTS:
            raise unknown_name("control level of LCM", level, LCM_INPUTS)
        self.topic, self._kind = LCM_INPUTS[name]
        self._link = link
        self.malformed = self.stale = 0

    def newest(self, yaw: float) -> Array | None:
        """Return the newest command that has come since the last call, whatever its utime; None where none has."""
        found = None
        for channel, data in self._link.arrived():
            if channel == self.topic:
                try:
                    found = self._command(lcm_types()[self._kind].unpacked(data))
                except AirworthyError:
                    self.malformed += 1
        return found

    def answer(self, stamp: tuple[int, int], yaw: float, deadline: float) -> Array | None:
        """Return the command that answers an instant; None where none did until the deadline."""
        wanted = _utime({"sec": stamp[0], "nanosec": stamp[1]})
        while True:
            received = self._link.receive(deadline)
            if received is None:
                return None
            channel, data = received
            if channel == self.topic:
                try:
                    found = lcm_types()[self._kind].unpacked(data)
                except AirworthyError:
                    self.malformed += 1
                else:
                    if found["utime"] == wanted:
                        return self._command(found)
                    self.stale += 1
            if time.monotonic() >= deadline:
                return None

    def _command(self, found: Mapping[str, Any]) -> Array:
        if self._kind == "rate_thrust_t":
            return np.array([found["thrust"], *found["angular_rates"]])
        return np.asarray(found["speed"], np.float64)


class LcmPilot(RosPilot):
    """One vehicle on channels that begin with uav_; see `RosPilot`."""

    who = "a program over LCM"
    reliable = False

    def __init__(self, link: Callable[[], LcmLink], hello: PilotHello, settings: RemoteSettings):
        super().__init__(link, hello, settings)

    def _topics(self, bus: Any) -> tuple[Any, Any]:
        return LcmSender(bus), LcmCommands(bus, self.level)

    def _unanswered(self, now: float, waited: float) -> str:
        found = self._commands
        # Whoever has never said anything there may not be there at all: LCM tells nobody of anybody.
        self.absent = not (self._answered or found.stale or found.malformed)
        if self.absent:
            return (
                f"nobody answered uav_odometry on the channel {found.topic} at {self._bus.address} within {waited:.1f} s; start"
                " your program, which sends its commands there"
            )
        return (
            f"no command with the utime of uav_odometry, {_utime(stamp_of(now))} us, came on the channel {found.topic} within"
            f" {waited:.1f} s ({found.stale:,} with another, {found.malformed:,} that were none)"
        )
