"""The process that renders pictures: it has the scene and the sensors once more, and sends what they see by itself.

A process, and no thread: kernels let go of Python's interpreter lock, but what is done to a picture before and behind them
does not, and a simulation at 960 Hz waits for it (measured: docs/howto/ros2.md).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from airworthy.bridges.lcm.link import LcmLink
from airworthy.bridges.lcm.pilot import LcmSender
from airworthy.bridges.people.crowd import Crowd
from airworthy.bridges.pictures.renderer import Rendered, Stamped
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.dds import DdsBus, domain_of_environment
from airworthy.bridges.ros.flight_log import compressed
from airworthy.bridges.ros.topics import TopicSender
from airworthy.bridges.ros.types import ros_types
from airworthy.bridges.ros.zenoh import ZenohBus
from airworthy.bridges.sensor_words import sensor_of
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.parent_watch import watch_parent
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors.build import make_sensor
from airworthy.simulation.sensor_state import Sample

__all__ = ["PictureProcess", "PictureSettings", "PictureWorker", "main", "work"]

_OVER = "over"
_END = 10.0
"""Longest time that what is being rendered may take at the end [s]."""
_NICE = 5
"""So much later than the simulation this process gets a processor for which both wait (nice(2))."""


@dataclass(frozen=True)
class PictureSettings:
    """What is rendered, and where it goes; as of `topic_server.TopicServeConfig`."""

    transport: str
    scene: str
    sensors: tuple[str, ...]
    """Of the words those that are rendered here."""
    people: tuple[str, ...] = ()
    person_height: float = 1.75
    kept: bool = False
    """Whether messages come back, for the flight log."""


# ---- The process that simulates ----------------------------------------------------------------------------------------------


class PictureProcess:
    """See `RenderLink`.

    Args:
        settings: Of what is rendered.
    """

    def __init__(self, settings: PictureSettings):
        self._ours, theirs = multiprocessing.Pipe()
        # An interpreter of its own, and none of multiprocessing's: that one runs the user's script once more, and is forbidden
        # where the user's own process is one of a pool's.
        code = f"from airworthy.bridges.pictures.process import main; main({theirs.fileno()}, {os.getpid()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()  # or its end would be no end here
        self._closed = False
        with suppress(OSError):  # where it is gone already, `get` finds its end
            self._ours.send(settings)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def put(self, record: Any) -> None:
        """See `RenderLink`."""
        self._ours.send(record)

    def get(self) -> Any:
        """See `RenderLink`."""
        return self._ours.recv()

    def close(self) -> None:
        """See `RenderLink`."""
        if not self._closed:
            self._closed = True
            with suppress(OSError):
                self._ours.send(_OVER)

    def reaped(self) -> str:
        """See `RenderLink`."""
        try:
            code = self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return "" if code == 0 else f" (signal {-code})" if code < 0 else f" (exit code {code})"


# ---- The process that renders ------------------------------------------------------------------------------------------------


class PictureWorker:
    """The scene, the sensors, and where pictures go.

    Args:
        settings: Of what is rendered.
        stack: Closes what is opened.

    Raises:
        AirworthyError: Something of it cannot be had.
    """

    def __init__(self, settings: PictureSettings, stack: ExitStack):
        crowd = Crowd(settings.people, settings.person_height, listen=False)
        stack.callback(crowd.close)
        self._place = crowd.added(scene(settings.scene))
        self._batch = SceneBatch([self._place], 1)
        self._devices = dict(sensor_of(word) for word in settings.sensors)
        self._sensors = {name: make_sensor(item, name) for name, item in self._devices.items()}
        self._kept = settings.kept
        self._sender: TopicSender | LcmSender
        if settings.transport == "lcm":
            link = LcmLink()
            stack.callback(link.close)
            self._sender = LcmSender(link)
        else:
            domain = domain_of_environment()
            bus = DdsBus(domain) if settings.transport == "ros2" else ZenohBus(domain)
            stack.callback(bus.close)
            self._sender = TopicSender(bus, reliable=False)

    def reset(self, env_ids: Any) -> None:
        """Begin new flights: sensors forget what they remember."""
        for sensor in self._sensors.values():
            if hasattr(sensor, "reset"):
                sensor.reset(env_ids)

    def render(self, stamped: Stamped) -> Rendered:
        """Render a sample, send it, and return it where it is kept."""
        taken, name = stamped.exposure, stamped.exposure.name
        if taken.motion is not None:
            self._batch.follow(taken.motion)
        item = self._devices[name]
        data = dict(self._sensors[name].capture(self._batch, taken.view, item.channels))
        pose = (taken.view.position, taken.view.attitude)
        sample = Sample(np.array([stamped.stamp]), taken.step, taken.number, np.ones(1, bool), *pose, data)
        kept = []
        for message in messages.sensor_messages(name, item, sample, beacons=self._place.beacons):
            self._sender.send(message)
            if self._kept:
                packed = compressed(message)
                values = ros_types().packed(packed.kind, packed.values)
                kept.append((packed.topic, packed.kind, stamped.stamp, bytes(values)))
        return Rendered(name, tuple(kept))


def work(settings: PictureSettings, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
    """Render what comes until nothing more does.

    Args:
        settings: Of what is rendered.
        get: Waits for the next record; "over" is the last.
        put: Takes a record back.
    """
    with ExitStack() as stack:
        try:
            worker = PictureWorker(settings, stack)
            put("ready")
            while not isinstance(record := get(), str):
                if isinstance(record, Stamped):
                    put(worker.render(record))
                else:
                    worker.reset(record)
        except AirworthyError as error:
            put(AirworthyError(str(error)))


def main(handle: int, parent: int) -> None:
    """Be the process that renders.

    Args:
        handle: Of the pipe to whoever started it, who first sends `PictureSettings`.
        parent: Number of that process.
    """
    link = Connection(handle)
    # Ctrl-C is for whoever started us, and who then lets us end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_parent(parent)
    with suppress(AttributeError, OSError):
        os.nice(_NICE)
    warnings.showwarning = lambda message, *_, **__: link.send(str(message))
    with suppress(EOFError, ConnectionError):
        work(link.recv(), link.recv, link.send)
