"""A flight as an MCAP file while it is flown: the messages of ROS 2 that a node would be sent, and pictures without loss.

Chunks are written as they fill: of a run that is killed all but the open one can be read. Foxglove, PlotJuggler and Rerun open
it.
"""

from __future__ import annotations

import io
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import numpy as np
from PIL import Image

from airworthy.bridges.ros import messages
from airworthy.bridges.ros.messages import RosMessage
from airworthy.bridges.ros.types import ros_types
from airworthy.core.errors import AirworthyError
from airworthy.logs.clocks.clock import NS
from airworthy.logs.writing.mcap_writer import McapWriter
from airworthy.scenes import SceneBatch
from airworthy.sensors.devices import Device
from airworthy.simulation import MountedSensors, Simulator
from airworthy.simulation.sensor_state import Capture, Sample
from airworthy.trajectories import Trajectory

__all__ = ["FLIGHT_LOG", "FlightMcap", "compressed"]

FLIGHT_LOG = "flight.mcap"
"""Name of the file in a run's folder."""
COURSE_STEP = 0.1
"""Between two poses of the course [s]; what is drawn needs no more."""


class FlightMcap:
    """Writes flight 0 of a simulator; a context manager that ends the file.

    Args:
        path: Of the file; what was there is replaced.
        simulator: That flies.
        mounted: Its sensors, of which every sample is written; None: there are none.
        course: That is flown; None: there is none.
    """

    def __init__(self, path: Path, simulator: Simulator, mounted: MountedSensors | None, course: Trajectory | None = None):
        self._types = ros_types()
        self.since = 0.0
        """When the flight began, in the log's time [s]."""
        self._rate = simulator.config.physics_rate
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `__exit__`
        self._lock = threading.Lock()
        self._writer = McapWriter(self._file, self._types.definition)
        sensors = {} if mounted is None else {name: mounted.sensor(name) for name in mounted.names}
        self._devices = {name: sensor.device for name, sensor in sensors.items() if isinstance(sensor.device, Device)}
        place = getattr(mounted, "scene", None)
        self._beacons = place.scenes[place.scene_of_env[0]].beacons if isinstance(place, SceneBatch) else ()
        self._send(messages.static_frames(self._devices), 0.0)
        if course is not None:
            time = np.append(np.arange(0.0, course.duration, COURSE_STEP), course.duration)
            flat = course.sample(time)
            self._send(messages.path_message(time, flat.position, flat.yaw), 0.0)
        if mounted is not None:
            mounted.listen(self._capture)

    def __enter__(self) -> FlightMcap:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def write(self, simulator: Simulator, now: float | None = None) -> None:
        """Write what the vehicle is at.

        Args:
            simulator: Of it.
            now: Its time in the log [s]; None: that of the flight.
        """
        now = float(simulator.time[0]) if now is None else now
        position, velocity, attitude = simulator.position[0], simulator.velocity[0], simulator.attitude[0]
        rate = np.asarray(simulator.field("rate")[0], np.float64) if "rate" in simulator.layout else np.zeros(3)
        self._send(messages.transform_message(now, position, attitude), now)
        self._send(messages.odometry_message(now, position, velocity, attitude, rate), now)
        if simulator.config.imu is not None:
            self._send(messages.imu_message(now, simulator.imu[0]), now)
        if "rotor_speed" in simulator.layout:
            self._send(messages.rotor_message(now, simulator.rotor_speed[0]), now)

    def keep(self, topic: str, kind: str, time: float, data: bytes) -> None:
        """Write a message that was packed elsewhere, of a time [s]; from any thread, and after the end none."""
        with self._lock:
            if not self._file.closed:
                self._writer.message(topic, kind, round(time * NS), data)

    def close(self) -> None:
        """Write the end of the file; may be called again."""
        with self._lock:
            if not self._file.closed:
                self._writer.closed()
                self._file.close()

    def _capture(self, capture: Capture) -> None:
        if self._file.closed or 0 not in capture.envs:
            return
        row = int(np.flatnonzero(capture.envs == 0)[0])
        part = slice(row, row + 1)
        data = {channel: array[part] for channel, array in capture.data.items()}
        time = np.asarray(self.since + capture.step[part] / self._rate, np.float64)
        sample = Sample(time, capture.step[part], capture.number[part], np.ones(1, bool), capture.position[part],
                        capture.attitude[part], data)  # fmt: skip
        self._sensor(capture.name, sample)

    def _sensor(self, name: str, sample: Sample) -> None:
        with suppress(AirworthyError):  # a channel that no message has is in the recorder's files
            for message in messages.sensor_messages(name, self._devices.get(name), sample, beacons=self._beacons):
                self._send(compressed(message), float(sample.time[0]))

    def _send(self, message: RosMessage, time: float) -> None:
        # A message is logged when it is made: samples of sensors lie between two steps.
        data = self._types.packed(message.kind, message.values)
        with self._lock:
            self._writer.message(message.topic, message.kind, round(time * NS), data)


def compressed(message: RosMessage) -> RosMessage:
    """Return a colour picture packed as PNG, without loss; any other message as it is."""
    values = message.values
    if values.get("encoding") not in ("rgb8", "mono8"):
        return message
    shape = (values["height"], values["width"], *((3,) if values["encoding"] == "rgb8" else ()))
    packed = io.BytesIO()
    # Level 1: while it flies, time counts for more than the last tenth of the size.
    Image.fromarray(np.asarray(values["data"]).reshape(shape)).save(packed, "PNG", compress_level=1)
    data = np.frombuffer(packed.getvalue(), np.uint8)
    told = {"header": values["header"], "format": "png", "data": data}
    return RosMessage(f"{message.topic}/compressed", "sensor_msgs/msg/CompressedImage", told, message.qos)
