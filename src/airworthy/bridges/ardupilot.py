"""ArduPilot's JSON interface: it sends servo outputs by UDP, we answer each with the vehicle's state as a line of JSON.

Protocol: ArduPilot/ardupilot, libraries/SITL/examples/JSON/readme.md.
"""

from __future__ import annotations

import json
import struct
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.bridges.external_pilot import ExternalPilot, MotorReply
from airworthy.bridges.sockets import AutopilotFailure, UdpLink, parse_address
from airworthy.bridges.vehicle_sample import VehicleSample
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError

__all__ = ["PORT", "ArduPilotPilot", "ServoPacket", "servo_packet", "state_line"]

PORT = 9002
_CHANNELS = {18458: 16, 29569: 32}
"""By magic number."""
_HEAD = struct.Struct("<HHI")
# ArduCopter's defaults MOT_PWM_MIN and MOT_PWM_MAX: ends of the range of a motor's pulses.
_PULSE_MIN, _PULSE_MAX = 1000.0, 2000.0
# MOT_SPIN_ARM: an armed copter's motors turn at 10 % of the range; half of it is neither that nor a stopped motor's pulse.
_ARMED_FROM = 1050
_SAMPLES_MIN = 720.0
"""ArduCopter 4.7 arms where its gyroscope gives 1.8 samples for each of its 400 loops per second [Hz]."""
_CROSSED = 0.5
"""Ours: ArduPilot sends a frame again a second after it last did; one that comes sooner than this after our answer had set out
before the answer came, which is read all the same [s]."""


@dataclass(frozen=True)
class ServoPacket:
    """What ArduPilot sends."""

    rate: int
    """Steps per second that it would like [Hz]."""
    count: int
    """Of the frame; it begins again when ArduPilot does."""
    pulses: tuple[int, ...]
    """By channel [us]; 0: none."""


def servo_packet(data: bytes) -> ServoPacket | str:
    """Return what a datagram holds, or what is wrong with it."""
    if len(data) < _HEAD.size:
        return f"{len(data)} bytes are too few for a servo packet"
    magic, rate, count = _HEAD.unpack_from(data)
    channels = _CHANNELS.get(magic)
    if channels is None:
        return f"the magic number is {magic}; ArduPilot's are {' and '.join(map(str, _CHANNELS))}"
    if len(data) != _HEAD.size + 2 * channels:
        return f"{len(data)} bytes; {channels} channels have {_HEAD.size + 2 * channels}"
    return ServoPacket(rate, count, struct.unpack_from(f"<{channels}H", data, _HEAD.size))


def state_line(sample: VehicleSample) -> bytes:
    """Return the answer to a servo packet."""

    def numbers(values: Array) -> list[float]:
        return [float(value) for value in values]

    state = {
        "timestamp": sample.time,
        "imu": {"gyro": numbers(sample.rate_measured), "accel_body": numbers(sample.acceleration)},
        "position": numbers(sample.position),
        "velocity": numbers(sample.velocity),
        "quaternion": numbers(sample.attitude),
    }
    return b"\n" + json.dumps(state, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class ArduPilotPilot(ExternalPilot):
    """An ArduPilot at the other end of a UDP socket; see `ExternalPilot`."""

    name = "ardupilot"

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self._link = UdpLink(parse_address(self.settings.address, PORT), "ArduPilot")
        self._count = -1
        self._answer, self._answered = b"", -np.inf
        self._odd = ""
        self.malformed = self.repeated = self.restarts = 0
        """Datagrams that were no servo packet; frames that came again; times that it began again before the flight."""

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self._link.address)

    def connect(self) -> None:
        """Wait for the first servo packet; as in the base."""
        packet = self._next(time.monotonic() + self.settings.wait)
        if packet is None:
            odd = f" (what came was none: {self._odd})" if self._odd else ""
            raise AirworthyError(
                f"No ArduPilot sent a servo packet to {self.address} within {self.settings.wait:g} s{odd}: start it with"
                " --model JSON:127.0.0.1, then fly again."
            )
        self._count = packet.count

    def close(self) -> None:
        """Close the socket; as in the base."""
        self._link.close()

    def notes(self) -> list[str]:
        """Return what was odd; as in the base."""
        odd = {
            "packets of others": self._link.refused, "malformed packets": self.malformed, "repeated frames": self.repeated,
            "restarts before the flight": self.restarts,
        }  # fmt: skip
        return [*super().notes(), *(f"{self.name}: {count:,} {what}." for what, count in odd.items() if count)]

    def unarmed(self) -> str:
        """Return whether its gyroscope is too slow; as in the base."""
        if self.rate >= _SAMPLES_MIN:
            return ""
        return f": it wants {_SAMPLES_MIN:g} samples per second or more, and gets {self.rate:g} (--control-rate)"

    def exchange(self, sample: VehicleSample, standing: bool) -> MotorReply | None:
        """Answer the frame before, wait for the next one; as in the base."""
        if self._count < 0:
            self.connect()
        self._answer, self._answered = state_line(sample), time.monotonic()
        self._link.send(self._answer)
        packet = self._next(time.monotonic() + self.settings.patience) or self._begun_again()
        if packet is None:
            raise AutopilotFailure(
                f"ArduPilot sent no servo packet within {self.settings.patience:g} s after the vehicle's state"
            )
        if packet.count < self._count:
            if not standing:
                raise AutopilotFailure(f"ArduPilot began again: its frame {self._count} was followed by frame {packet.count}")
            self.restarts += 1
        self._count = packet.count
        pulses = np.array(packet.pulses[: len(self.motors.rotors)], np.float64)
        commands = (pulses - _PULSE_MIN) / (_PULSE_MAX - _PULSE_MIN)
        return MotorReply(np.where(pulses > 0.0, commands, 0.0), bool((pulses > _ARMED_FROM).any()))

    def _begun_again(self) -> ServoPacket | None:
        """Return an early frame that came from another port while the peer was silent, and take its sender for the peer."""
        if self._link.stranger is None:
            return None
        data, sender = self._link.stranger
        packet = servo_packet(data)
        if isinstance(packet, str) or packet.count >= self._count:
            return None
        self._link.adopt(sender)
        return packet

    def _next(self, deadline: float) -> ServoPacket | None:
        """Return the next packet of another frame; one that comes again is answered again where the answer was lost.

        Where it only was late, a second answer would be taken for that of the next frame, and each after it for the one behind.
        """
        while True:
            received = self._link.receive(deadline)
            if received is None:
                return None
            packet = servo_packet(received[0])
            if isinstance(packet, str):
                self.malformed, self._odd = self.malformed + 1, packet
            elif packet.count == self._count:
                self.repeated += 1
                if time.monotonic() > self._answered + _CROSSED:
                    self._answered = time.monotonic()
                    self._link.send(self._answer)
            else:
                # Only what speaks the protocol becomes the peer.
                if self._link.peer is None:
                    self._link.adopt(received[1])
                return packet
            if time.monotonic() > deadline:
                return None
