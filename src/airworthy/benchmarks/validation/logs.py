"""Crazyflie flight logs with motion capture: read, checked, in SI units, on one even clock.

A log holds the 500 Hz stabiliser loop (gyro, accelerometer, rotor speeds, motor PWM, battery) and the motion-capture poses
that the vehicle received by radio, both stamped by the vehicle. Stamps jitter by half a millisecond, and their second is not
a second: the capture system sends 100 poses a second, and they lie 9.89 ms apart on the logger's clock, in all six logs,
while gyro against capture and accelerometer against capture ask for the same 1.1 %. So both streams are put on evenly spaced
lattices, and time is counted in the capture system's seconds.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, NDArray
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes
from airworthy.logs import Log, LogStream, even_clock
from airworthy.logs.stream_clock import ascending
from airworthy.logs.units import RPM, STANDARD_GRAVITY

CAPTURE_RATE = 100.0
"""Poses per second of the capture system, by which the logger's clock is corrected."""
CLOCK_ERROR_MAX = 0.03
"""A lattice farther than this from the nominal rate is another rate, not a clock error: the clock is left alone."""
PWM_FULL = 65535.0
SAMPLES_MIN = 100
"""Fewer of a stream tell no state."""
_UNPACKED_LIMIT = 1 << 28
_LOOP, _POSE = "fixedFrequency", "estPose"


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
    """Read one `.npz` flight log.

    Args:
        path: File with `fixedFrequency/{t,names,data}` and `estPose/{t,names,data}`.
        capture_rate: Poses per second of the capture system [Hz].

    Raises:
        AssetError: The file is missing, damaged, or lacks a signal.
    """
    arrays = _arrays(Path(path))
    loop_time, loop = _event(path, arrays, _LOOP)
    pose_time, pose = _event(path, arrays, _POSE)

    def columns(table: dict[str, Array], *names: str) -> Array:
        missing = [name for name in names if name not in table]
        if missing:
            raise AssetError(f"Flight log {str(path)!r} has no signal {missing[0]!r}; it holds {', '.join(sorted(table))}.")
        return np.stack([table[name] for name in names], axis=1)

    loop_grid, _ = even_clock(loop_time, float(np.median(np.diff(loop_time))))
    pose_grid, period = even_clock(pose_time, 1.0 / capture_rate)
    scale = 1.0 / (capture_rate * period)
    scale = scale if abs(scale - 1.0) < CLOCK_ERROR_MAX else 1.0
    attitude = columns(pose, *(f"locSrv.q{axis}" for axis in "xyzw"))
    length = np.linalg.norm(attitude, axis=1, keepdims=True)
    if not np.all((length > 0.5) & (length < 2.0)):
        raise AssetError(f"Flight log {str(path)!r} holds attitudes that are no unit quaternions (x, y, z, w).")
    return FlightLog(
        name=Path(path).stem,
        time=(loop_grid - loop_grid[0]) * scale,
        gyro=np.deg2rad(columns(loop, "gyro.x", "gyro.y", "gyro.z")),
        accelerometer=STANDARD_GRAVITY * columns(loop, "acc.x", "acc.y", "acc.z"),
        rotor_speed=RPM * columns(loop, *(f"rpm.m{i}" for i in range(1, 5))),
        pwm=columns(loop, *(f"pwm.m{i}_pwm" for i in range(1, 5))) / PWM_FULL,
        voltage=1e-3 * columns(loop, "pm.vbatMV")[:, 0],
        pose_time=(pose_grid - loop_grid[0]) * scale,
        position=columns(pose, "locSrv.x", "locSrv.y", "locSrv.z"),
        attitude=attitude / length,
        clock_scale=scale,
    )


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
    gyro, force = (_going_on(log, log.stream(kind)) for kind in ("gyro", "accelerometer"))
    names = [f"{kind}:{poses}" if poses else kind for kind in ("attitude", "position")]
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
        name=log.name,
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


def _arrays(path: Path) -> dict[str, NDArray]:
    """Return every array of the archive; never unpickles, never unpacks more than a fixed size."""
    data = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _UNPACKED_LIMIT:
            raise AssetError(f"Flight log {str(path)!r} unpacks to {size} bytes; at most {_UNPACKED_LIMIT} are read.")
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            return {key: loaded[key] for key in loaded.files}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError) as error:
        raise AssetError(f"Flight log {str(path)!r} is not a readable .npz archive: {error}.") from error


def _event(path: str | Path, arrays: dict[str, NDArray], event: str) -> tuple[Array, dict[str, Array]]:
    """Time stamps and named signals of one event stream, checked."""
    for part in ("t", "names", "data"):
        if f"{event}/{part}" not in arrays:
            raise AssetError(
                f"Flight log {str(path)!r} has no array {event + '/' + part!r}; it holds {', '.join(sorted(arrays))}."
            )
    time, names, data = (arrays[f"{event}/{part}"] for part in ("t", "names", "data"))
    if names.dtype.kind != "U" or data.ndim != 2 or data.shape != (time.size, names.size) or data.dtype.kind != "f":
        raise AssetError(
            f"Flight log {str(path)!r}: {event}/data has shape {data.shape}, expected ({time.size}, {names.size}) floats."
        )
    time, data = np.asarray(time, np.float64).ravel(), np.asarray(data, np.float64)
    if time.size < 100 or not (np.all(np.isfinite(time)) and np.all(np.isfinite(data))) or np.any(np.diff(time) <= 0.0):
        raise AssetError(f"Flight log {str(path)!r}: {event} needs at least 100 finite samples with increasing times.")
    return time, dict(zip(map(str, names), data.T, strict=True))
