"""A node of ROS 2 as a pilot, in lockstep: odometry and sensors go out, a command with the same stamp comes back.

/uav/odometry comes last of all messages of an instant, behind the images that are new, and asks for a command: the node answers
with a message whose header carries that stamp. Until the first answer it is sent again, since nodes find each other one side at
a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from airworthy.bridges.remote.pilot import FlightTask, PilotHello, RemotePilot, RemoteSettings
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.topics import CommandTopic, TopicSender
from airworthy.core.arrays import Array
from airworthy.core.frames import yaw_of
from airworthy.pilots.containment import PilotFailure
from airworthy.pilots.pilot import SENSOR, Observation
from airworthy.sensors.devices import Device
from airworthy.simulation import MountedSensors

__all__ = ["RosPilot"]

_AGAIN = 0.2
"""Until the first answer, between two of the same question [s]."""
_STATE = ("position", "velocity", "attitude", "rate")


class RosPilot(RemotePilot):
    """One vehicle on the topics below /uav; see `RemotePilot`.

    Args:
        bus: Makes the transport, anew for each flight.
        hello: Level of the commands and what is seen.
        settings: Of the conversation.
    """

    who = "a node of ROS 2"
    reliable = True
    """What is sent arrives; else a question is asked anew until it is answered."""

    def __init__(self, bus: Callable[[], Any], hello: PilotHello, settings: RemoteSettings):
        super().__init__(hello, settings)
        self._make = bus
        self._bus: Any = None
        self._devices: dict[str, Device] = {}
        self._answered = False
        self._again = 0
        """Times that a question was asked anew, of which a second answer is none that is odd."""
        self._task: FlightTask | None = None
        self._sent: dict[str, int] = {}

    def meet(self, mounted: MountedSensors | None) -> None:
        """Learn where sensors sit, for their frames and calibrations."""
        found = {} if mounted is None else {name: mounted.sensor(name) for name in mounted.names}
        devices = {name: getattr(sensor, "device", None) for name, sensor in found.items()}
        self._devices = {name: device for name, device in devices.items() if isinstance(device, Device)}

    def begin(self, task: FlightTask) -> None:
        """Open the topics and wait for a node; as in the base."""
        if task.flights != 1:
            raise PilotFailure(f"{self.who} flies one vehicle, and there are {task.flights}")
        self.close()
        bus = self._bus = self._make()
        self._sender, self._commands = self._topics(bus)
        self._answered, self._task, self._sent = False, task, {}
        for silent in (messages.clock_message(0.0), messages.imu_message(0.0, np.zeros(6))):
            self._sender.announce(silent.topic, silent.kind, silent.qos)
        asks = self._sender.announce("/uav/odometry", "nav_msgs/msg/Odometry", messages.clock_message(0.0).qos)
        deadline = time.monotonic() + self.settings.wait
        while not (self._commands.matched and asks.matched):  # for a moment nodes know each other from one side alone
            if time.monotonic() > deadline:
                missing = f"publishes {self._commands.topic}" if asks.matched else "subscribes to /uav/odometry"
                self.absent = True
                raise PilotFailure(f"no node {missing} at {bus.address} within {self.settings.wait:g} s")
            time.sleep(0.005)
        if self._commands.matched > 1:
            raise PilotFailure(
                f"{self._commands.matched} nodes publish {self._commands.topic}, and one may: stop the others (a killed one is"
                " forgotten after 10 s)"
            )

    def decide(self, observation: Observation) -> Array:
        """Send an instant, and wait for the command with its stamp; as in the base."""
        assert self._bus is not None
        now = float(observation.time[0])
        stamp = messages.stamp_of(now)
        wanted = (stamp["sec"], stamp["nanosec"])
        state = [observation[name][0] for name in _STATE]
        yaw = float(yaw_of(state[2]))
        begun = time.monotonic()
        deadline = begun + (self.settings.patience if self._answered else max(self.settings.wait, self.settings.patience))
        self._sensors(observation)
        self._again -= 1
        while True:
            self._again += 1
            self._sender.send(messages.clock_message(now))
            if "imu" in self.observes:
                self._sender.send(messages.imu_message(now, observation["imu"][0]))
            self._sender.send(messages.transform_message(now, state[0], state[2]))
            self._sender.send(messages.odometry_message(now, *state))
            until = deadline if self._answered and self.reliable else min(deadline, time.monotonic() + _AGAIN)
            command = self._commands.answer(wanted, yaw, until)
            if command is not None:
                self._answered = True
                return command[None]
            if time.monotonic() >= deadline:
                waited = time.monotonic() - begun
                raise PilotFailure(self._unanswered(now, waited))

    def _unanswered(self, now: float, waited: float) -> str:
        """Say that a question of an instant [s] was waited for in vain [s]."""
        return (
            f"no command with the stamp of /uav/odometry, {now:.3f} s, came on {self._commands.topic} within {waited:.1f} s"
            f" ({self._commands.stale:,} with another, {self._commands.malformed:,} that were none)"
        )

    def close(self) -> None:
        """Leave the topics; as in the base."""
        if self._bus is not None:
            self._count()
            self.warn()
            self._bus.close()
        self._bus = None

    def notes(self) -> list[str]:
        """Return what was odd about the conversation; as in the base."""
        self._count()
        return super().notes()

    def _count(self) -> None:
        """Take over what the topic of commands has counted."""
        if self._bus is not None:
            stale, self._commands.stale = self._commands.stale, 0
            expected = min(stale, self._again)
            self._again -= expected
            self.stale += stale - expected
            self.malformed += self._commands.malformed
            self._commands.malformed = 0

    def _topics(self, bus: Any) -> tuple[Any, Any]:
        """Return what sends messages, and what receives commands."""
        return TopicSender(bus), CommandTopic(bus, self.level)

    def _told(self) -> Iterator[messages.RosMessage]:
        """Yield what a flight begins with."""
        assert self._task is not None
        arrays = self._task.arrays
        yield messages.static_frames(self._devices)
        if self._task.kind == "goal":
            yield messages.goal_message(0.0, arrays["goal"][0])
        if self._task.kind == "course":
            yield messages.path_message(*(arrays[f"course_{name}"] for name in ("time", "position", "yaw")))

    def _sensors(self, observation: Observation) -> None:
        """Send what sensors have new, and wait until it has arrived: odometry is not to overtake it."""
        ends: list[Any] = [] if self._answered else [self._sender.send(message) for message in self._told()]
        for name in (item.removeprefix(SENSOR) for item in self.observes if item.startswith(SENSOR)):
            sample = observation.sample(name)
            number = int(sample.number[0])
            if not sample.valid[0] or self._sent.get(name) == number:
                continue
            self._sent[name] = number
            ends += [self._sender.send(message) for message in messages.sensor_messages(name, self._devices.get(name), sample)]
        deadline = time.monotonic() + self.settings.patience
        if not all(end.flush(deadline) for end in ends):
            raise PilotFailure(
                f"the node did not take what sensors have at {float(observation.time[0]):.3f} s, within"
                f" {self.settings.patience:g} s"
            )
