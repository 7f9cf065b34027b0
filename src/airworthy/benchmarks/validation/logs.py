"""Flight logs with poses: gyro, accelerometer, rotors and poses on one even clock.

The case of validation has the 500 Hz stabiliser loop of Crazyflies (gyro, accelerometer, rotor speeds, motor PWM, battery) and
motion-capture poses that the vehicle received by radio, both stamped by the vehicle. Stamps jitter by half a millisecond, and
their second is not a second: the capture system sends 100 poses a second, and they lie 9.89 ms apart on the logger's clock, in
all of its logs, while gyro against capture and accelerometer against capture ask for the same 1.1 %. So both streams are put on
evenly spaced lattices, and time is counted in the capture system's seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogStream, even_clock, read_log
from airworthy.logs.clocks.stream_clock import ascending

CAPTURE_RATE = 100.0
"""Poses per second of the capture system, by which the logger's clock is corrected."""
CLOCK_ERROR_MAX = 0.03
"""A lattice farther than this from the nominal rate is another rate, not a clock error: the clock is left alone."""
SAMPLES_MIN = 100
"""Fewer of a stream tell no state."""


@dataclass(frozen=True)
class FlightLog:
    """One flight; times in seconds from the first loop sample, body axes of the IMU (x forward, y left, z up)."""

    name: str
    time: Array
    """Stabiliser loop [s], evenly spaced but for drop-outs, (n,)."""
    gyro: Array
    """Body rate [rad/s], (n, 3)."""
    accelerometer: Array
    """Specific force [m/s^2], (n, 3)."""
    rotor_speed: Array
    """Measured rotor speeds [rad/s], M1 to M4, (n, 4)."""
    pwm: Array
    """Motor duty cycle, 0 to 1, (n, 4)."""
    voltage: Array
    """Battery [V], (n,)."""
    pose_time: Array
    """Motion capture [s], on the same clock, latency included, (m,)."""
    position: Array
    """Marker body's origin in the world [m], (m, 3)."""
    attitude: Array
    """Marker body to world, x, y, z, w, unit length, (m, 4)."""
    clock_scale: float
    """Seconds per second of the logger's clock."""
    start: float = 0.0
    """Of `time`, in the same seconds since the log's first sample [s]."""


def read_flight_log(path: str | Path, capture_rate: float = CAPTURE_RATE) -> FlightLog:
    """Read one flight log with motion capture, of any format.

    Args:
        path: File with gyro, accelerometer, and attitude and position of a capture system.
        capture_rate: Poses per second of the capture system [Hz].

    Raises:
        AssetError: The file is missing or damaged.
        AirworthyError: It lacks a signal.
    """
    return flight_log(read_log(path), capture_rate)


def flight_log(log: Log, pose_rate: float | None = None, poses: str = "capture") -> FlightLog:
    """Return a log of any format as one flight on even lattices.

    Args:
        log: With gyro, accelerometer, and an attitude and a position of one source.
        pose_rate: True rate of the poses [Hz]: the log's clock is put right by it, unless it is more than 3 % off; None: the
            clock is right.
        poses: Label of the streams of attitude and position.

    Raises:
        AirworthyError: A stream is missing, or stamps do not go on.
    """
    names = [f"{kind}:{poses}" if poses else kind for kind in ("attitude", "position")]
    lost = next((name for name in ("gyro", "accelerometer", *names) if not log.has(name)), "")
    if lost:
        raise AirworthyError(
            f"Log {log.name!r} has no stream {lost!r}; states are told by gyro, accelerometer, and attitude and position of one"
            " source."
        )
    gyro, force = (_going_on(log, log.stream(kind)) for kind in ("gyro", "accelerometer"))
    attitude, position = (_going_on(log, log.stream(name)) for name in names)
    loop_grid, _ = even_clock(gyro.time, float(np.median(np.diff(gyro.time))))
    rate = 1.0 / float(np.median(np.diff(attitude.time))) if pose_rate is None else pose_rate
    pose_grid, period = even_clock(attitude.time, 1.0 / rate)
    scale = 1.0 if pose_rate is None else 1.0 / (pose_rate * period)
    scale = scale if abs(scale - 1.0) < CLOCK_ERROR_MAX else 1.0
    length = np.linalg.norm(attitude.values, axis=1, keepdims=True)
    if not np.all((length > 0.5) & (length < 2.0)):
        raise AirworthyError(f"{attitude.name} of log {log.name!r} holds attitudes that are no unit quaternions (x, y, z, w).")
    return FlightLog(
        name=Path(log.name).stem,
        time=(loop_grid - loop_grid[0]) * scale,
        gyro=gyro.values,
        accelerometer=_beside(gyro.time, force),
        rotor_speed=_beside(gyro.time, log.stream("motor_speed")) if log.has("motor_speed") else np.zeros((len(loop_grid), 0)),
        pwm=_beside(gyro.time, log.stream("motor_command")) if log.has("motor_command") else np.zeros((len(loop_grid), 0)),
        voltage=_beside(gyro.time, log.stream("voltage"))[:, 0] if log.has("voltage") else np.full(len(loop_grid), np.nan),
        pose_time=(pose_grid - loop_grid[0]) * scale,
        position=_beside(attitude.time, position),
        attitude=attitude.values / length,
        clock_scale=scale,
        start=float(loop_grid[0]) * scale,
    )


def _going_on(log: Log, stream: LogStream) -> LogStream:
    found = ascending(stream)
    if len(found.time) < SAMPLES_MIN:
        raise AirworthyError(
            f"Stream {stream.name!r} of log {log.name!r} has {len(found.time)} good samples; at least {SAMPLES_MIN} are needed."
        )
    return found


def _beside(time: Array, stream: LogStream) -> Array:
    """Values of a stream at other stamps: its own where they are the same."""
    found = ascending(stream)
    if len(found.time) == len(time) and np.array_equal(found.time, time):
        return found.values
    return np.stack([np.interp(time, found.time, column) for column in found.values.T], axis=1)
