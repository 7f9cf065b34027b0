"""PX4's simulator interface: MAVLink HIL over TCP, in lockstep; we are the server, PX4 connects.

Protocol: docs.px4.io, "Simulation: PX4 MAVLink API" and "Lockstep simulation"; units and frames: common.xml.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from airworthy.bridges.external_pilot import ExternalPilot, MotorReply
from airworthy.bridges.mavlink import MavlinkParser, encode
from airworthy.bridges.sockets import AutopilotFailure, TcpLink, parse_address
from airworthy.bridges.vehicle_sample import VehicleSample
from airworthy.core.frames import enu_ned_vector, flu_frd_vector
from airworthy.sensors.navigation.atmosphere import pressure_altitude
from airworthy.sensors.navigation.suite import GnssSample

__all__ = ["PORT", "Px4Pilot", "hil_gps", "hil_sensor", "hil_state"]

PORT = 4560
"""Of PX4's first instance; the next ones come behind it."""
_ACCELEROMETER, _GYROSCOPE, _MAGNETOMETER = 0x7, 0x38, 0x1C0
_PRESSURE, _PRESSURE_ALTITUDE, _TEMPERATURE = 0x200, 0x800, 0x1000
"""Bits of `fields_updated` (HIL_SENSOR_UPDATED_FLAGS)."""
_ARMED = 128
"""MAV_MODE_FLAG_SAFETY_ARMED of `mode`."""
_PASCAL_PER_HECTOPASCAL = 100.0
_FIX_3D = 3
# Ours: what a simulator calls itself; PX4 is system 1.
_SYSTEM, _COMPONENT = 1, 200
_STATE_EVERY = 5
"""Ours: truth is for comparison alone, and a fifth of the rate is plenty."""
_GENERIC, _INVALID, _ACTIVE, _MAVLINK_VERSION = 0, 8, 4, 3
"""MAV_TYPE_GENERIC, MAV_AUTOPILOT_INVALID, MAV_STATE_ACTIVE."""


class Px4Pilot(ExternalPilot):
    """A PX4 at the other end of a TCP connection; see `ExternalPilot`."""

    name = "px4"

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self._link = TcpLink(parse_address(self.settings.address, PORT), "PX4")
        self._parser = MavlinkParser()
        self._sequence = self._sent = 0
        self._answers = False

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(self._link.address)

    def connect(self) -> None:
        """Wait for PX4; as in the base."""
        self._link.accept(self.settings.wait)

    def close(self) -> None:
        """Close the connection; as in the base."""
        self._link.close()

    def notes(self) -> list[str]:
        """Return what was odd; as in the base."""
        p = self._parser
        odd = {"other clients turned away": self._link.refused, "damaged frames": p.damaged, "stray bytes": p.skipped}
        return [*super().notes(), *(f"{self.name}: {count:,} {what}." for what, count in odd.items() if count)]

    def exchange(self, sample: VehicleSample, standing: bool) -> MotorReply | None:
        """Send sensors, wait for HIL_ACTUATOR_CONTROLS; as in the base."""
        if not self._link.connected:
            self.connect()
        self._link.send(self._messages(sample), self.settings.patience)
        # PX4 begins to answer once its drivers have seen some samples: until then they come at the clock's pace.
        waits = self._answers or not standing
        limit = self.settings.patience if waits else 1.0 / self.rate
        reply = self._reply(time.monotonic() + limit)
        if reply is None and waits:
            raise AutopilotFailure(f"PX4 sent no HIL_ACTUATOR_CONTROLS within {limit:g} s after a sample of its sensors")
        self._answers |= reply is not None
        return reply

    def _reply(self, deadline: float) -> MotorReply | None:
        while True:
            frames = self._parser.feed(self._link.receive(deadline))
            found = [frame.fields for frame in frames if frame.kind.name == "HIL_ACTUATOR_CONTROLS"]
            if found:
                newest = found[-1]
                armed = bool(newest["mode"] & _ARMED)
                # An unarmed PX4 may send NaN for motors that are off.
                controls = np.array(newest["controls"])
                return MotorReply(controls if armed else np.zeros(len(controls)), armed)
            if time.monotonic() > deadline:
                return None

    def _messages(self, sample: VehicleSample) -> bytes:
        parts = []
        # Once a second, as heartbeats are: common.xml, HEARTBEAT.
        if self._sent % max(round(self.rate), 1) == 0:
            parts.append(self._encoded("HEARTBEAT", _HEARTBEAT))
            parts.append(self._encoded("SYSTEM_TIME", {"time_unix_usec": 0, "time_boot_ms": round(1e3 * sample.time)}))
        if sample.navigation.gnss is not None:
            parts.append(self._encoded("HIL_GPS", hil_gps(sample.navigation.gnss)))
        if self._sent % _STATE_EVERY == 0:
            latitude, longitude, altitude = self.settings.home.geodetic(enu_ned_vector(sample.position))
            place = (float(latitude), float(longitude), float(altitude))
            parts.append(self._encoded("HIL_STATE_QUATERNION", hil_state(sample, place)))
        # Last, since it is the one that PX4's clock follows and that is answered.
        parts.append(self._encoded("HIL_SENSOR", hil_sensor(sample)))
        self._sent += 1
        return b"".join(parts)

    def _encoded(self, name: str, fields: dict[str, Any]) -> bytes:
        self._sequence += 1
        return encode(name, fields, self._sequence, _SYSTEM, _COMPONENT)


_HEARTBEAT = {
    "type": _GENERIC,
    "autopilot": _INVALID,
    "base_mode": 0,
    "custom_mode": 0,
    "system_status": _ACTIVE,
    "mavlink_version": _MAVLINK_VERSION,
}


def hil_sensor(sample: VehicleSample) -> dict[str, Any]:
    """Return the fields of HIL_SENSOR."""
    air, compass = sample.navigation.barometer, sample.navigation.magnetometer
    updated = _ACCELEROMETER | _GYROSCOPE
    magnetic = np.zeros(3)
    if compass is not None:
        updated |= _MAGNETOMETER
        magnetic = flu_frd_vector(compass[0])
    pressure = altitude = temperature = 0.0
    if air is not None:
        updated |= _PRESSURE | _PRESSURE_ALTITUDE | _TEMPERATURE
        pressure, temperature = float(air.pressure[0]) / _PASCAL_PER_HECTOPASCAL, float(air.temperature[0])
        altitude = float(pressure_altitude(air.pressure[0]))
    values = (*sample.acceleration, *sample.rate_measured, *magnetic)
    names = [f"{axis}{what}" for what in ("acc", "gyro", "mag") for axis in "xyz"]
    return {
        "time_usec": round(1e6 * sample.time),
        **dict(zip(names, map(float, values), strict=True)),
        "abs_pressure": pressure,
        "diff_pressure": 0.0,
        "pressure_alt": altitude,
        "temperature": temperature,
        "fields_updated": updated,
        "id": 0,
    }


def hil_gps(fix: GnssSample) -> dict[str, Any]:
    """Return the fields of HIL_GPS."""
    north, east, down = enu_ned_vector(fix.velocity[0])
    course = math.degrees(math.atan2(east, north)) % 360.0
    horizontal, vertical = fix.accuracy
    return {
        "time_usec": round(1e6 * fix.time),
        "fix_type": _FIX_3D,
        "lat": round(1e7 * float(fix.latitude[0])),
        "lon": round(1e7 * float(fix.longitude[0])),
        "alt": round(1e3 * float(fix.altitude[0])),
        "eph": _whole(1e2 * horizontal, 1, 65535),
        "epv": _whole(1e2 * vertical, 1, 65535),
        "vel": _whole(1e2 * math.hypot(north, east), 0, 65535),
        "vn": _centi(north),
        "ve": _centi(east),
        "vd": _centi(down),
        # 36000 would say "unknown" to some: a full turn is none.
        "cog": _whole(1e2 * course, 0, 36000) % 36000,
        "satellites_visible": fix.satellites,
    }


def hil_state(sample: VehicleSample, place: tuple[float, float, float]) -> dict[str, Any]:
    """Return the fields of HIL_STATE_QUATERNION.

    Args:
        sample: Of the instant.
        place: Latitude [deg], longitude [deg], altitude [m].
    """
    speed = float(np.linalg.norm(sample.velocity))
    velocity = dict(zip(("vx", "vy", "vz"), map(_centi, sample.velocity), strict=True))
    milli_g = dict(
        zip(("xacc", "yacc", "zacc"), (_whole(v / 9.80665e-3, -32768, 32767) for v in sample.acceleration), strict=True)
    )
    return {
        "time_usec": round(1e6 * sample.time),
        "attitude_quaternion": tuple(map(float, sample.attitude)),
        **dict(zip(("rollspeed", "pitchspeed", "yawspeed"), map(float, sample.rate), strict=True)),
        "lat": round(1e7 * place[0]),
        "lon": round(1e7 * place[1]),
        "alt": round(1e3 * place[2]),
        **velocity,
        "ind_airspeed": _whole(1e2 * speed, 0, 65535),
        "true_airspeed": _whole(1e2 * speed, 0, 65535),
        **milli_g,
    }


def _centi(value: float) -> int:
    return _whole(1e2 * float(value), -32768, 32767)


def _whole(value: float, low: int, high: int) -> int:
    return int(min(max(round(float(value)), low), high))
