"""What a log can tell of a vehicle, and what it cannot, in words: before anything is fitted.

Thresholds are those at which the parameter stands out of the noise of common sensors; each row says what flight would help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.logs.advice import NEAR, RATES, rate_hint
from airworthy.logs.motors.speeds import speed_faults
from airworthy.logs.record import Log, LogStream
from airworthy.logs.segments import LogSegments
from airworthy.logs.units import STANDARD_GRAVITY

VERTICAL_SHARE = 0.10
"""Deviation of the vertical specific force over gravity that shows thrust over command."""
TURNING = 0.3
"""Deviation of a rate that shows an inertia [rad/s]; ours."""
STRETCH_TIME = 10.0
"""Deviations and speeds are those of the best stretch of this length [s]; ours: a third to a half of an excitation flight."""
LEVER_RATE, DRAG_SPEED, SAG = 3.0, 2.0, 0.04
"""Rate that shows a lever [rad/s], air speed that shows drag [m/s], share of voltage that shows sag. Ours for the last: 7 %
tell its exponent to 0.01, and left out change thrust by 10 % within the flight; the deviation says what less tells."""
SUPPLY_WIDTH = 0.1
"""Over which the voltage is averaged [s]: its noise and its least step would else be a range, and noise of every rotor."""
SUPPLY_ENDS = (1.0, 99.0)
"""Percentiles that bound its range: a voltage that drops out once is none."""

DIFFERENCE = 0.1
"""Between positions whose difference is a velocity [s]."""

CAN, PARTLY, CANNOT = "can tell", "partly", "cannot tell"


@dataclass(frozen=True)
class LogFinding:
    """What a log tells of one parameter."""

    parameter: str
    verdict: str
    """"can tell", "partly" or "cannot tell"."""
    reason: str
    helps: str = ""
    """What would help; empty where nothing is missing."""


class _Flown:
    """Values within the usable parts."""

    def __init__(self, log: Log, segments: LogSegments, part: str) -> None:
        self.log = log
        self.segments = segments
        self.part = part

    def values(self, kind: str) -> Array | None:
        """Values of a kind's first stream, (n, k); None where there are none."""
        inside = self._inside(kind)
        return self.log.stream(kind).values[inside] if inside is not None and inside.any() else None

    def best(self, kind: str, measure: Callable[[Array], Array]) -> Array | None:
        """Largest of a measure over stretches of 10 s of a kind's first stream; None where there are no values.

        A manoeuvre of some seconds tells as much in a long log as in a short one.

        Args:
            kind: Of the stream.
            measure: From rows (n, k) to numbers, each of which is to be large.
        """
        inside = self._inside(kind)
        if inside is None or not inside.any():
            return None
        stream = self.log.stream(kind)
        time, values = stream.time, stream.values
        if np.any(np.diff(time) < 0.0):
            order = np.argsort(time, kind="stable")
            time, values, inside = time[order], values[order], inside[order]
        found = []
        for shift in (0.0, 0.5):
            edges = (np.arange(np.floor(time[0] / STRETCH_TIME), time[-1] / STRETCH_TIME + 2.0) - shift) * STRETCH_TIME
            places = np.searchsorted(time, edges)
            counts = np.add.reduceat(np.append(inside, False), places[:-1]) * (np.diff(places) > 0)
            # A few samples at an edge have no deviation that means something.
            for k in np.flatnonzero((4 * counts >= counts.max()) & (counts > 0)):
                part = slice(places[k], places[k + 1])
                found.append(measure(values[part][inside[part]]))
        return np.nanmax(np.array(found), axis=0)

    def _inside(self, kind: str) -> ArrayAny | None:
        if not self.log.has(kind):
            return None
        stream = self.log.stream(kind)
        inside = np.zeros(len(stream.time), bool)
        for span in self.segments.usable:
            inside |= (stream.time >= span.start) & (stream.time <= span.stop)
        return inside

    def deviations(self, kind: str) -> Array | None:
        """Largest deviation of each column over 10 s, (k,); None where there are no values."""
        return self.best(kind, _deviations)

    def rate(self, kind: str) -> float:
        """Return samples per second, 0 without a stream."""
        return self.log.stream(kind).quality.rate if self.log.has(kind) else 0.0


def log_findings(log: Log, segments: LogSegments, part: str = "the usable flight") -> tuple[LogFinding, ...]:
    """Say of each parameter of a vehicle whether a log can tell it.

    Args:
        log: The log.
        segments: Its usable parts.
        part: What these are called.
    """
    flown = _Flown(log, segments, part)
    if not log.has("motor_command"):
        said = "there are no motor commands"
        helps = "a log with commands; this one tells noise of sensors, time offsets, misalignment and motion"
        return (LogFinding("thrust, lag, inertia, drag", CANNOT, said, helps),)
    if not segments.usable:
        said = "no second of it is usable flight"
        return (LogFinding("thrust, lag, inertia, drag", CANNOT, said, "a log that holds a flight"),)
    rows: list[Callable[[_Flown], LogFinding]] = [_thrust, _speed, _lag, _inertia, _yaw, _lever, _drag, _battery]
    return (*(row(flown) for row in rows), LogFinding("mass", CANNOT, "a log tells thrust over mass only", "weigh the vehicle"))


@np.errstate(all="ignore")
def _deviations(rows: Array) -> Array:
    good = np.isfinite(rows)
    count = np.maximum(good.sum(axis=0), 1)
    mean = np.where(good, rows, 0.0).sum(axis=0) / count
    return np.sqrt(np.where(good, np.square(rows - mean), 0.0).sum(axis=0) / count)


def _speed_of(rows: Array, percent: float) -> Array:
    """Return a percentile of the lengths of rows; NaN without one."""
    lengths = np.linalg.norm(rows, axis=1)
    lengths = lengths[np.isfinite(lengths)]
    return np.percentile(lengths, percent) if len(lengths) else np.array(np.nan)


def _with_velocity(flown: _Flown) -> _Flown:
    """Return the same with velocities by differences of positions, where there are only these."""
    log = flown.log
    if log.has("velocity") or not log.has("position"):
        return flown
    place = log.stream("position")
    good = np.isfinite(place.values).all(axis=1) & np.isfinite(place.time)
    time, values = place.time[good], place.values[good]
    rate = place.quality.rate
    apart = max(round(DIFFERENCE * rate), 1) if np.isfinite(rate) else 1
    step = time[apart:] - time[:-apart]
    # What goes back, or lies behind a gap, is no velocity.
    near = (step > 0.0) & (step < 3.0 * max(DIFFERENCE, 1.0 / rate if rate > 0.0 else DIFFERENCE))
    if not near.any():
        return flown
    speed = (values[apart:] - values[:-apart])[near] / step[near][:, None]
    stream = LogStream("velocity", (time[:-apart] + 0.5 * step)[near], speed)
    return _Flown(replace(log, streams=(*log.streams, stream)), flown.segments, flown.part)


def _thrust(flown: _Flown) -> LogFinding:
    force = flown.deviations("accelerometer")
    if force is None:
        return LogFinding("thrust over command / mass", CANNOT, "there is no accelerometer", "log the accelerometer")
    share = float(force[2]) / STANDARD_GRAVITY
    said = f"vertical force varies by {100 * share:.0f} % of gravity"
    if share >= VERTICAL_SHARE:
        return LogFinding("thrust over command / mass", CAN, said)
    return LogFinding("thrust over command / mass", PARTLY, f"{said}: at hover only", "30 s of collective steps of +-15 %")


def _speed(flown: _Flown) -> LogFinding:
    if flown.log.has("motor_speed"):
        faults = speed_faults(flown.log, flown.segments)
        if faults:
            return LogFinding("thrust over rotor speed", PARTLY, "; ".join(faults), "mend that channel")
        return LogFinding("thrust over rotor speed", CAN, "speeds were measured")
    return LogFinding(
        "thrust over rotor speed", CANNOT, "no speeds: a rotor's state has no scale", "log the speeds (ESC telemetry)"
    )


def _lag(flown: _Flown) -> LogFinding:
    commands, others = flown.rate("motor_command"), max(flown.rate("gyro"), flown.rate("accelerometer"))
    wanted, wanted_others = RATES["motor_command"], RATES["gyro"]
    if commands < NEAR * wanted or others < NEAR * wanted_others:
        said = f"commands come at {commands:.0f} Hz and the IMU at {others:.0f} Hz"
        said += f"; {wanted:.0f} and {wanted_others:.0f} are needed"
        return LogFinding("lag and dead time", CANNOT, said, rate_hint(flown.log))
    values = flown.deviations("motor_command")
    moved = float(values.max(initial=0.0)) if values is not None else 0.0
    said = f"commands move by {moved:.3f} (deviation) at {commands:.0f} Hz"
    if moved < 0.02:
        return LogFinding("lag and dead time", PARTLY, said, "30 s of collective steps")
    return LogFinding("lag and dead time", CAN, f"{said}; the two trade against each other")


def _inertia(flown: _Flown) -> LogFinding:
    gyro = flown.deviations("gyro")
    roll, pitch = (0.0, 0.0) if gyro is None else (float(gyro[0]), float(gyro[1]))
    said = f"roll and pitch rates deviate by {roll:.2f} and {pitch:.2f} rad/s"
    if min(roll, pitch) >= TURNING:
        return LogFinding("inertia xx, yy", CAN, f"{said}; they scale with mass and arm")
    verdict = PARTLY if max(roll, pitch) >= TURNING else CANNOT
    return LogFinding("inertia xx, yy", verdict, said, "30 s of roll and pitch doublets")


def _yaw(flown: _Flown) -> LogFinding:
    gyro = flown.deviations("gyro")
    rate = 0.0 if gyro is None else float(gyro[2])
    said = f"yaw rate deviates by {rate:.2f} rad/s"
    if rate >= TURNING:
        return LogFinding("torque / inertia zz", CAN, f"{said}; only their ratio shows")
    return LogFinding("torque / inertia zz", CANNOT, said, "20 s of yaw steps of +-60 deg/s at 1 Hz")


def _lever(flown: _Flown) -> LogFinding:
    gyro = flown.best("gyro", lambda rows: _speed_of(rows, 99.0))
    fastest = float(gyro) if gyro is not None else 0.0
    said = f"the vehicle turns at up to {fastest:.1f} rad/s"
    verdict = CAN if fastest > LEVER_RATE else CANNOT
    return LogFinding("lever of the IMU", verdict, said, "" if verdict == CAN else "turns over 3 rad/s")


def _drag(flown: _Flown) -> LogFinding:
    velocity = _with_velocity(flown).best("velocity", lambda rows: _speed_of(rows, 95.0))
    if velocity is None:
        return LogFinding("drag", CANNOT, "there is no velocity", "motion capture, GNSS or optical flow")
    fastest = float(velocity)
    said = f"it flies at up to {fastest:.1f} m/s; wind and drag show only as their difference"
    return LogFinding(
        "drag", CAN if fastest > DRAG_SPEED else CANNOT, said, "" if fastest > DRAG_SPEED else "20 s of fast straight lines"
    )


def _battery(flown: _Flown) -> LogFinding:
    voltage = flown.values("voltage")
    if voltage is None:
        return LogFinding("battery", CANNOT, "there is no voltage", "log the battery's voltage")
    high = float(np.nanmax(voltage))
    if high == float(np.nanmin(voltage)):
        return LogFinding(
            "battery", CANNOT, f"the voltage is constant ({high:.2f} V): it was not measured", "log the battery's voltage"
        )
    share = _sag(flown.log.stream("voltage"), flown.segments)
    said = f"voltage falls by {100 * share:.1f} % over {flown.part}"
    return LogFinding("battery", CAN if share > SAG else PARTLY, said, "" if share > SAG else "a longer flight")


def _sag(stream: LogStream, segments: LogSegments) -> float:
    """Range of the voltage within the usable parts, over its highest; 0 without any that was measured."""
    good = stream.values[:, 0] > 0.0
    spans = [(span.start, span.stop) for span in segments.usable]
    means = voltage_means(stream.time[good], stream.values[good, 0], spans)
    if not len(means):
        return 0.0
    low, high = voltage_ends(means)
    return (high - low) / high


def voltage_means(time: Array, volts: Array, spans: Sequence[tuple[float, float]]) -> Array:
    """Return the voltage in means over tenths of a second [V], (k,): those in which something was measured.

    Args:
        time: When it was measured [s], (n,).
        volts: What was measured [V], (n,).
        spans: First and last time of each part that counts [s].
    """
    means = [np.zeros(0)]
    for start, stop in spans:
        inside = (time >= start) & (time <= stop)
        number = np.floor((time[inside] - start) / SUPPLY_WIDTH).astype(np.int64)
        _, places = np.unique(number, return_inverse=True)
        if len(places):
            means.append(np.bincount(places, volts[inside]) / np.bincount(places))
    return np.concatenate(means)


def voltage_ends(volts: Array) -> tuple[float, float]:
    """Return the lowest and highest voltage that count.

    Args:
        volts: Means over a tenth of a second each [V], (n,).
    """
    low, high = np.percentile(volts, SUPPLY_ENDS)
    return float(low), float(high)
