"""Stand-in autopilots as programs of their own, and flights with them."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.bridges import ArduPilotPilot, BetaflightPilot, LinkSettings, Px4Pilot
from airworthy.bridges.external_pilot import ExternalPilot
from airworthy.bridges.stick_pilot import StickPilot
from airworthy.pilots import FlightPlan, FlightRun, fly
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.trajectories import Limits, Trajectory, from_waypoints
from airworthy.vehicles import vehicle

KINDS = ("px4", "ardupilot", "betaflight")
RATE = 250.0
ARDUPILOT_RATE = 1000.0
"""ArduCopter arms with 720 gyroscope samples per second or more, 1.8 for each of its loops; so does the stand-in."""
START = (1.0, 2.0, 3.0)
HOVER = from_waypoints(np.array([START, (1.0, 2.0, 3.05)]), Limits(speed=1.0, acceleration=1.0))
CORNERS = [START, (1.0, 3.5, 3.0), (2.5, 3.5, 3.0), (2.5, 2.0, 3.0), START]
SQUARE = from_waypoints(np.array(CORNERS), Limits(speed=1.2, acceleration=1.5))


def free_port() -> int:
    """A port of which it and the next two are free for datagrams and streams."""
    for port in range(20000 + np.random.default_rng().integers(20000), 65000, 7):
        sockets = [socket.socket(socket.AF_INET, kind) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM) for _ in range(3)]
        try:
            for number, one in enumerate(sockets):
                one.bind(("127.0.0.1", port + number % 3))
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
        return int(port)
    raise AssertionError("no free port")


def rate_of(kind: str) -> float:
    return ARDUPILOT_RATE if kind == "ardupilot" else RATE


def make_pilot(kind: str, port: int, path: Trajectory = HOVER, imu: str = "bmi088", **changes: Any) -> ExternalPilot:
    chosen = {"patience": 1.0, "wait": 20.0, "stand_clock": "lockstep", "address": str(port)} | changes
    settings, flown, sensor = LinkSettings(**chosen), vehicle("x500"), Imu.named(imu)
    if kind == "px4":
        return Px4Pilot(flown, RATE, settings, sensor)
    if kind == "ardupilot":
        return ArduPilotPilot(flown, ARDUPILOT_RATE, settings, sensor)
    sticks = StickPilot(flown, path, RATE)
    return BetaflightPilot(flown, RATE, settings, sensor, sticks=sticks, ports=(port + 1, port + 2))


def simulator(yaw: float = 0.0, imu: str = "bmi088", rate: float = RATE, **changes: Any) -> Simulator:
    config = SimulatorConfig(physics_rate=1000.0, control_rate=rate, imu=Imu.named(imu), **changes)
    made = Simulator(vehicle("x500"), config, env_count=1, seed=4)
    made.reset(position=START, attitude=(0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)))
    return made


@pytest.fixture
def stand_in(loopback: None) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, port: int, *options: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, str(Path(__file__).with_name("stand_in.py")), kind, str(port), *options]
        started.append(subprocess.Popen(program))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


@pytest.fixture
def flown(stand_in: Callable[..., Any]) -> Callable[..., tuple[FlightRun, ExternalPilot]]:
    def run(kind: str, seconds: float, *options: str, path: Trajectory = HOVER, yaw: float = 0.0) -> Any:
        port = free_port()
        with make_pilot(kind, port, path) as pilot:
            stand_in(kind, port, *options)
            return fly(simulator(yaw, rate=rate_of(kind)), pilot, FlightPlan(duration=seconds)), pilot

    return run
