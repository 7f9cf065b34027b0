"""Betaflight's simulated target: state and sticks go out by UDP, motor commands come back.

Protocol: betaflight/betaflight, src/platform/SIMULATOR (sitl.c, target/SITL/target.h); facts of its packets, no code of it.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from airworthy.bridges.external_pilot import ExternalPilot, MotorReply
from airworthy.bridges.motors import motor_map
from airworthy.bridges.sockets import LOOPBACK, AutopilotFailure, UdpLink, parse_address
from airworthy.bridges.vehicle_sample import VehicleSample
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import enu_ned_vector, from_axis_angle, from_wxyz, multiply, to_wxyz
from airworthy.core.schema import check_fields
from airworthy.sensors.navigation.atmosphere import pressure
from airworthy.sensors.navigation.geodesy import Home

__all__ = ["MOTOR_PORT", "RC_PORT", "STATE_PORT", "BetaflightPilot", "Form", "Sticks", "rc_packet", "state_packet"]

MOTOR_PORT, STATE_PORT, RC_PORT = 9002, 9003, 9004
"""Where Betaflight sends motor commands to; where it takes state, and sticks."""
Form = Literal["gazebo", "legacy", "before_2026"]
"""Of the firmware from 2026.6 on, how it was built: ENABLE_GAZEBO_BRIDGE 1, its default, or 0. Firmware until 2025.12 takes
state as legacy, and sends its motors in another order."""
_STATE, _RC, _MOTORS = struct.Struct("<18d"), struct.Struct("<d16H"), struct.Struct("<4f")
_RESEND = 0.5
"""sitl.c: after half a second without state it begins anew with the next packet, and drops none."""
_QUARTER_TURN_RIGHT = from_axis_angle((0.0, 0.0, 1.0), -math.pi / 2)


@dataclass(frozen=True)
class Sticks:
    """What a pilot at a transmitter does."""

    roll: float = 0.0
    """In [-1, 1], right positive."""
    pitch: float = 0.0
    """In [-1, 1], forward (nose down) positive."""
    yaw: float = 0.0
    """In [-1, 1], to the right (clockwise) positive."""
    throttle: float = 0.0
    """In [0, 1]."""
    arm: bool = False
    """Switch AUX1."""
    angle: bool = True
    """Switch AUX2: attitude by sticks."""

    def __post_init__(self) -> None:
        check_fields(self, "Sticks.")


def rc_packet(now: float, sticks: Sticks) -> bytes:
    """Return the packet of sixteen channels [us] in the order AETR, AUX1, AUX2, ...; `now` [s]."""
    axes = [1500 + round(500 * min(max(value, -1.0), 1.0)) for value in (sticks.roll, sticks.pitch, sticks.yaw)]
    throttle = 1000 + round(1000 * min(max(sticks.throttle, 0.0), 1.0))
    switches = [2000 if on else 1000 for on in (sticks.arm, sticks.angle)]
    return _RC.pack(now, axes[0], axes[1], throttle, axes[2], *switches, *([1000] * 10))


def state_packet(sample: VehicleSample, home: Home, form: Form = "gazebo", first: ArrayLike | None = None) -> bytes:
    """Return the packet of a vehicle's state.

    Args:
        sample: Of the instant.
        home: Of the world.
        form: Of the firmware.
        first: Position of the first packet, NED [m], (3,), about which form "gazebo" mirrors what it is told of east and north;
            None: this packet is the first.
    """
    x, y, z = sample.rate_measured
    # The firmware turns two axes (gazebo: one) by itself, to forward, left, up.
    rate = (x, y, -z) if form == "gazebo" else (x, y, z)
    ax, ay, az = sample.acceleration
    # It negates all three: what arrives there is forward, left, up.
    acceleration = (-ax, ay, az)
    east_north_up = enu_ned_vector(sample.position)
    told = np.array(east_north_up, np.float64)
    if form == "gazebo" and first is not None:
        told[:2] = 2.0 * enu_ned_vector(first)[:2] - told[:2]
    latitude, longitude, altitude = (float(value) for value in home.geodetic(told))
    air = float(pressure(home.altitude + east_north_up[2]))
    return _STATE.pack(
        sample.time,
        *rate,
        *acceleration,
        *_attitude(sample, form),
        *enu_ned_vector(sample.velocity),
        longitude,
        latitude,
        altitude,
        air,
    )


def _attitude(sample: VehicleSample, form: Form) -> tuple[float, ...]:
    """Quaternion w, x, y, z as the packet has it."""
    if form == "before_2026":
        # It turns signs of its matrix (imu.c, imuComputeRotationMatrix), so that pitch and yaw arrive the other way round.
        return tuple(map(float, sample.attitude))
    down = from_wxyz(sample.attitude)
    # Body forward-left-up in a world north-west-up: both turned half about x.
    up = down * (1.0, -1.0, -1.0, 1.0)
    if form != "gazebo":
        return tuple(map(float, to_wxyz(up)))
    # What the firmware undoes: half a turn about x on both sides, then a quarter turn of the world.
    return tuple(map(float, to_wxyz(multiply(_QUARTER_TURN_RIGHT, up) * (1.0, -1.0, -1.0, 1.0))))


def _frame(form: Form) -> str:
    """Return whose order the motors of its packets have."""
    return "quad_x_before_2026" if form == "before_2026" else "quad_x"


class BetaflightPilot(ExternalPilot):
    """A Betaflight at the other end of three UDP ports, and a pilot at its sticks; see `ExternalPilot`.

    Args:
        *arguments: Of the base.
        sticks: What the pilot does, asked at each sample; it arms, and flies. None: a still transmitter, armed after a second.
        form: Of the firmware.
        firmware: Address of the machine that Betaflight runs on.
        ports: Of its state and of its sticks.
        **keywords: Of the base.
    """

    name = "betaflight"

    def __init__(
        self,
        *arguments: Any,
        sticks: Callable[[VehicleSample, bool], Sticks] | None = None,
        form: Form = "gazebo",
        firmware: str = LOOPBACK,
        ports: tuple[int, int] = (STATE_PORT, RC_PORT),
        **keywords: Any,
    ):
        self.frame = _frame(form)
        super().__init__(*arguments, **keywords)
        self._link = UdpLink(parse_address(self.settings.address, MOTOR_PORT), "Betaflight")
        self._state, self._rc = (firmware, ports[0]), (firmware, ports[1])
        self._sticks = sticks or still
        self.form: Form = form
        self.malformed = self.resent = 0
        """Datagrams that were no motor packet; states that were sent again, since nothing came back."""
        self._answers = False
        self._first: Array | None = None

    def take(self, form: Form) -> None:
        """Speak to the firmware in another form from now on."""
        self.form, self.frame = form, _frame(form)
        self.motors = motor_map(self.motors.vehicle, self.name, self.frame, self.settings.thrust_factor)

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self._link.address)

    def connect(self) -> None:
        """Do nothing: Betaflight is silent until it is sent a state, and found by its first answer."""

    def close(self) -> None:
        """Close the socket; as in the base."""
        self._link.close()

    def notes(self) -> list[str]:
        """Return what was odd; as in the base."""
        odd = {"packets of others": self._link.refused, "malformed packets": self.malformed, "states sent again": self.resent}
        return [*super().notes(), *(f"{self.name}: {count:,} {what}." for what, count in odd.items() if count)]

    def exchange(self, sample: VehicleSample, standing: bool) -> MotorReply | None:
        """Send sticks and state, wait for motor commands; as in the base."""
        self._link.drain()
        if self._first is None:
            self._first = np.array(sample.position, np.float64)
        state = state_packet(sample, self.settings.home, self.form, self._first)
        sticks = self._sticks(sample, standing)
        self._link.send(rc_packet(sample.time, sticks), self._rc)
        self._link.send(state, self._state)
        waits = self._answers or not standing
        deadline = time.monotonic() + (self.settings.patience if waits else 1.0 / self.rate)
        while True:
            commands = self._motors(min(deadline, time.monotonic() + _RESEND))
            if commands is not None:
                self._answers = True
                # Idle motors turn once it is armed (motor_idle), and stand still before.
                return MotorReply(commands, bool(sticks.arm and (commands > 0.0).any()))
            if time.monotonic() >= deadline:
                break
            self.resent += 1
            self._link.send(state, self._state)
        if waits:
            raise AutopilotFailure(
                f"Betaflight sent no motor commands within {self.settings.patience:g} s after the vehicle's state"
            )
        return None

    def _motors(self, deadline: float) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        while True:
            received = self._link.receive(deadline)
            if received is None:
                return None
            data, sender = received
            if len(data) == _MOTORS.size:
                if self._link.peer is None:
                    self._link.adopt(sender)
                return np.array(_MOTORS.unpack(data), np.float64)
            self.malformed += 1
            if time.monotonic() > deadline:
                return None


def still(sample: VehicleSample, standing: bool) -> Sticks:
    """Return the sticks of a transmitter that nobody touches, throttle down, armed after a second."""
    return Sticks(arm=sample.time > 1.0)
