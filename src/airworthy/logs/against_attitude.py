"""A gyro beside attitudes: whether both turn alike, and what is wrong where they do not - a unit, a frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, multiply, normalize, rotate, to_rotation_vector
from airworthy.logs.clocks.clock import gyro_lag
from airworthy.logs.clocks.stream_clock import ClockFit, ascending, clock_fit
from airworthy.logs.log_check import LogCheck, went_back
from airworthy.logs.record import Log, LogStream

AGAINST = "gyro against "
"""How the name of the check of an attitude's turns begins; the stream's name follows. Its value is how many times as fast the
gyro turns, below 0 where the gyro's z is opposite."""
TELLING = 0.8
"""Ours: correlation of two speeds of turning from which on a ratio other than 1 is one of units or axes. A wrong unit leaves
the correlation as it is; where a vehicle hardly turns, noise lowers it and lengthens the gyro's turns."""
DOWN = 0.7
"""Share of a force along -z from which the body's z points down."""
FORCE_ROWS = 100_000
"""Ours: samples of the force, evenly picked, by which its direction is told."""
_DEGREES = 180.0 / np.pi


def against_attitude(log: Log, up: float) -> list[LogCheck]:
    """Check whether gyro and each stream of attitudes turn alike, and how late attitudes come.

    Args:
        log: The log.
        up: Share of the specific force in flight along the body's z, -1 to 1; NaN where it is not known.
    """
    checks = []
    for stream in log.of_kind("attitude"):
        name = AGAINST + stream.name
        if not log.has("gyro"):
            continue
        if told := went_back(log, "gyro", stream.name):
            checks.append(LogCheck(name, None, told))
            continue
        try:
            fit = clock_fit(log, stream)
        except AirworthyError:
            checks.append(_in_another_unit(log, stream, name) or _by_speeds(log, stream, name))
        else:
            checks.append(_down_of(log, stream, name, up, fit.upside_down) or _late(fit, name))
    return checks


def _late(fit: ClockFit, name: str) -> LogCheck:
    said = f"The gyro turns {1.0 / fit.second:.3f} times as fast, and attitudes come {1e3 * fit.late:+.1f} ms late."
    return LogCheck(name, True, said, 1.0 / fit.second)


def _down_of(log: Log, stream: LogStream, name: str, up: float, opposite: bool) -> LogCheck | None:
    """Say whose z is down, by what holds a vehicle up; None where no z is.

    Args:
        log: The log.
        stream: Of attitudes.
        name: Of the check.
        up: Share of the specific force in flight along the body's z.
        opposite: Whether gyro and attitudes turn as if the z of one were down.
    """
    turned_down = up > DOWN and _turned_up(log, stream) < -DOWN
    if turned_down:
        whose = f"{stream.name}'s body z is down where those of gyro and accelerometer are up: FRD named FLU."
        world = f"{stream.name} turns the specific force down: the world's z is down (NED named ENU)."
        return LogCheck(name, False, whose if opposite else world, 1.0)
    if not opposite:
        return None
    said = f"The gyro's body z is down by {stream.name}: FRD named FLU. Turns about y and z are opposite; mend its frame"
    return LogCheck(name, False, f"{said}, or that of {stream.name}.", -1.0)


def _turned_up(log: Log, stream: LogStream) -> float:
    """Mean share of the specific force along the world's z, as attitudes turn it; NaN where they share no time."""
    force, poses = log.stream("accelerometer"), ascending(stream)
    inside = (force.time >= poses.time[0]) & (force.time <= poses.time[-1]) & np.isfinite(force.values).all(axis=1)
    rows = np.flatnonzero(inside)
    rows = rows[:: max(1, len(rows) // FORCE_ROWS)]
    if not len(rows):
        return float("nan")
    at = np.clip(np.searchsorted(poses.time, force.time[rows]), 0, len(poses.time) - 1)
    turned = rotate(normalize(poses.values[at]), force.values[rows])
    return float(turned[:, 2].mean() / np.linalg.norm(turned, axis=1).mean())


def _in_another_unit(log: Log, stream: LogStream, name: str) -> LogCheck | None:
    """Name a wrong unit in which gyro and attitudes do turn alike; None where there is none.

    Over half a second rotations tell it where speeds of turning, sample by sample, drown in noise.
    """
    for ratio in (_DEGREES, 1.0 / _DEGREES):
        streams = (replace(s, values=s.values / ratio) if s.kind == "gyro" else s for s in log.streams)
        try:
            fit = clock_fit(replace(log, streams=tuple(streams)), stream)
        except AirworthyError:
            continue
        found = ratio / fit.second
        return LogCheck(name, False, f"{_turning(found)}: the file's rates are in {_rate_unit(found)}.", found)
    return None


def _turning(ratio: float) -> str:
    slow = ratio < 0.1
    return f"The gyro turns {1.0 / ratio if slow else ratio:.1f} times as {'slowly' if slow else 'fast'} as attitudes"


def _by_speeds(log: Log, stream: LogStream, name: str) -> LogCheck:
    """Compare the speeds of turning alone: what is left where no clock could be fitted, as in wrong units."""
    gyro, poses = ascending(log.stream("gyro")), ascending(stream)
    try:
        lag, correlation = gyro_lag(gyro.time, gyro.values, poses.time, poses.values)
    except AirworthyError as error:
        return LogCheck(name, None, str(error))
    ratio = _turn_ratio(gyro, poses, lag)
    if correlation < 0.5 or not np.isfinite(ratio):
        return LogCheck(name, None, f"They hardly correlate ({correlation:.2f}): the vehicle hardly turned.")
    if correlation < TELLING and abs(ratio - 1.0) >= 0.1:
        said = (
            f"They correlate too little ({correlation:.2f}) to tell: the gyro turns {ratio:.2f} times as fast, noise included."
        )
        return LogCheck(name, None, said, ratio)
    if unit := _rate_unit(ratio):
        said = f"{_turning(ratio)} (correlation {correlation:.3f}): the file's rates are in {unit}."
        return LogCheck(name, False, said, ratio)
    said = f"The gyro turns {ratio:.3f} times as fast, and attitudes come {1e3 * lag:+.1f} ms late"
    return LogCheck(name, abs(ratio - 1.0) < 0.1, f"{said} (correlation {correlation:.3f}).", ratio)


def _turn_ratio(gyro: LogStream, poses: LogStream, lag: float) -> float:
    """How much faster a gyro turns than attitudes: by the lengths of all turns between poses."""
    turns = np.linalg.norm(to_rotation_vector(multiply(conjugate(poses.values[:-1]), poses.values[1:])), axis=1)
    steps = np.diff(gyro.time)[:, None]
    integral = np.concatenate([np.zeros((1, 3)), np.cumsum(0.5 * (gyro.values[1:] + gyro.values[:-1]) * steps, axis=0)])
    at = np.stack([np.interp(poses.time - lag, gyro.time, column) for column in integral.T], axis=1)
    measured = np.linalg.norm(np.diff(at, axis=0), axis=1)
    # Least squares through zero: noise of quiet stretches weighs little. Turns over half a circle have no length of their own.
    good = (turns < 1.0) & (np.diff(poses.time) < 0.2) & (poses.time[:-1] > gyro.time[0]) & (poses.time[1:] < gyro.time[-1])
    return float(measured[good] @ turns[good] / max(float(turns[good] @ turns[good]), 1e-12))


def gyro_is_wrong(check: LogCheck) -> bool:
    """Return whether turns beside attitudes show another unit or frame of the gyro, rather than attitudes that are no good."""
    return check.passed is False and (check.value < 0.0 or bool(_rate_unit(check.value)))


def _rate_unit(ratio: float) -> str:
    """Return the unit that rates of the file have where another was named, by how many times as fast they turn; else empty."""
    if abs(ratio / _DEGREES - 1.0) < 0.1:
        return "deg/s and were taken for rad/s"
    return "rad/s and were taken for deg/s" if abs(ratio * _DEGREES - 1.0) < 0.1 else ""
