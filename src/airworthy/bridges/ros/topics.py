"""The topics of one vehicle on a bus: what it says is sent, what comes in is a command at one control level."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.bridges.ros.bus import COMMANDS, Bus, Publisher, Qos, Subscriber
from airworthy.bridges.ros.messages import PREFIX, RosMessage
from airworthy.bridges.ros.types import RATE_THRUST, ros_types
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name

__all__ = ["INPUTS", "NEWEST_OF", "CommandInput", "CommandTopic", "TopicSender", "input_of"]


NEWEST_OF = 1000
"""Commands that are looked through for the newest one."""


@dataclass(frozen=True)
class CommandInput:
    """A topic that commands come on."""

    topic: str
    kind: str
    read: Callable[[Any, float], list[float]]
    """Of a message and the vehicle's yaw [rad]: the command."""


def _rate_thrust(message: Any, yaw: float) -> list[float]:
    rates = message.angular_rates
    return [message.thrust.z, rates.x, rates.y, rates.z]


def _rotor_speed(message: Any, yaw: float) -> list[float]:
    return [float(speed) for speed in message.angular_velocities]


def _velocity(message: Any, yaw: float) -> list[float]:
    """In the vehicle frame, or in the world where the header says so."""
    x, y, z = (message.twist.linear.x, message.twist.linear.y, message.twist.linear.z)
    if message.header.frame_id == "world":
        c, s = math.cos(yaw), math.sin(yaw)
        x, y = c * x + s * y, c * y - s * x
    return [x, y, z, message.twist.angular.z]


def _position(message: Any, yaw: float) -> list[float]:
    place, turn = message.pose.position, message.pose.orientation
    return [place.x, place.y, place.z, _yaw(turn)]


def _tracking(message: Any, yaw: float) -> list[float]:
    """Of a point of a trajectory: its first transform, velocity and acceleration; no jerk."""
    if not len(message.transforms):
        raise AirworthyError("A point of a trajectory came without a transform.")
    place, turn = message.transforms[0].translation, message.transforms[0].rotation
    zero = (0.0, 0.0, 0.0)
    speed = _vector(message.velocities[0].linear) if len(message.velocities) else zero
    push = _vector(message.accelerations[0].linear) if len(message.accelerations) else zero
    turning = message.velocities[0].angular.z if len(message.velocities) else 0.0
    return [place.x, place.y, place.z, *speed, *push, *zero, _yaw(turn), turning]


def _yaw(turn: Any) -> float:
    """Return the yaw of an attitude [rad]; of none, which has no length or is not finite, there is none."""
    length = math.hypot(turn.x, turn.y, turn.z, turn.w)
    if not (math.isfinite(length) and length > 0.0):
        raise AirworthyError("An attitude came that is no quaternion.")
    x, y, z, w = (part / length for part in (turn.x, turn.y, turn.z, turn.w))
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def _vector(message: Any) -> tuple[float, float, float]:
    return message.x, message.y, message.z


INPUTS: Mapping[str, CommandInput] = {
    "rate_thrust": CommandInput(f"{PREFIX}/input/rateThrust", RATE_THRUST, _rate_thrust),
    "rotor_speed": CommandInput(f"{PREFIX}/input/motorspeed", "mav_msgs/msg/Actuators", _rotor_speed),
    "velocity": CommandInput(f"{PREFIX}/input/velocity", "geometry_msgs/msg/TwistStamped", _velocity),
    "position": CommandInput(f"{PREFIX}/input/pose", "geometry_msgs/msg/PoseStamped", _position),
    "tracking": CommandInput(f"{PREFIX}/input/trajectory", "trajectory_msgs/msg/MultiDOFJointTrajectoryPoint", _tracking),
}
"""Control level -> the topic of its commands; a law behind a colon takes that of its level."""


def input_of(level: str) -> CommandInput:
    """Return the topic of a control level's commands.

    Raises:
        UnknownNameError: No topic has them.
    """
    name = level.partition(":")[0]
    if name not in INPUTS:
        raise unknown_name("control level of ROS 2", level, INPUTS)
    return INPUTS[name]


class TopicSender:
    """Sends messages; a topic's publisher is made with its first one.

    Args:
        bus: Transport.
        reliable: Send all so that nothing is lost, sensors too: in lockstep.
    """

    def __init__(self, bus: Bus, reliable: bool = True):
        self._bus, self._reliable = bus, reliable
        self._publishers: dict[str, Publisher] = {}

    def announce(self, topic: str, kind: str, qos: Qos) -> Publisher:
        """Return a topic's publisher, made if it is not there."""
        if topic not in self._publishers:
            offered = Qos(True, max(qos.depth, COMMANDS.depth), qos.latched) if self._reliable and not qos.latched else qos
            self._publishers[topic] = self._bus.publisher(topic, kind, offered)
        return self._publishers[topic]

    def prepare(self, message: RosMessage) -> None:
        """Do what the first message of its kind needs, and send nothing."""
        self.announce(message.topic, message.kind, message.qos)
        ros_types().packed(message.kind, message.values)

    def send(self, message: RosMessage) -> Publisher:
        """Send a message, and return its topic's publisher."""
        publisher = self.announce(message.topic, message.kind, message.qos)
        publisher.send(ros_types().packed(message.kind, message.values))
        return publisher


class CommandTopic:
    """Commands of a control level as they come.

    Args:
        bus: Transport.
        level: Of the commands.
    """

    def __init__(self, bus: Bus, level: str):
        self._input = input_of(level)
        self._subscriber: Subscriber = bus.subscriber(self._input.topic, self._input.kind, COMMANDS)
        self.malformed = self.stale = 0
        """Messages that were none; answers to another instant than the one that was asked about."""

    @property
    def topic(self) -> str:
        """Where commands come."""
        return self._input.topic

    @property
    def matched(self) -> int:
        """How many publishers there are."""
        return self._subscriber.matched

    def newest(self, yaw: float) -> Array | None:
        """Return the newest command that has come since the last call, whatever its stamp; None where none has."""
        found = None
        # Bounded: a flood must not keep us here.
        for _ in range(NEWEST_OF):
            data = self._subscriber.receive(0.0)
            if data is None:
                break
            try:
                found = np.array(self._input.read(ros_types().unpacked(self._input.kind, data), yaw), np.float64)
            except AirworthyError:
                self.malformed += 1
        return found

    def answer(self, stamp: tuple[int, int], yaw: float, deadline: float) -> Array | None:
        """Return the command that answers an instant; None where none did until the deadline.

        Args:
            stamp: Of the instant, (s, ns): the command's header has it, or its `time_from_start`.
            yaw: Of the vehicle [rad].
            deadline: On the monotonic clock [s].
        """
        while True:
            data = self._subscriber.receive(deadline)
            if data is None:
                return None
            try:
                message = ros_types().unpacked(self._input.kind, data)
                found = np.array(self._input.read(message, yaw), np.float64)
            except AirworthyError:
                self.malformed += 1
            else:
                when = message.header.stamp if hasattr(message, "header") else message.time_from_start
                if (when.sec, when.nanosec) == stamp:
                    return found
                self.stale += 1
            if time.monotonic() >= deadline:
                return None
