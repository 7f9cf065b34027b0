"""Checks of units and gravity before anything is fitted: cheap, and they find most wrong files.

At rest an accelerometer shows gravity, in flight its mean along the world's vertical does, and a gyro turns as fast as
attitudes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, multiply, normalize, rotate, to_rotation_vector
from airworthy.logs.clocks.clock import gyro_lag
from airworthy.logs.clocks.kinematics import integrate_gyro
from airworthy.logs.clocks.stream_clock import ascending, clock_fit
from airworthy.logs.quality import REST_RATE
from airworthy.logs.record import Log, LogStream
from airworthy.logs.segments import FITTED, command_at, flight_segments

REST_TIME = 1.0
"""Shortest rest that counts [s]."""
GRAVITY_REST = (9.7, 9.9)
"""What |specific force| at rest may be [m/s^2]."""
GRAVITY = 9.81
GRAVITY_FLIGHT_SHARE = 0.02
VOLTS = (1.0, 100.0)
"""Ours: what a multirotor's supply may have [V]: an empty cell has 2.5, packs of the largest 60 to 90."""
FLIGHT_TIME = 20.0
"""Shortest flight over which the mean vertical force must be gravity [s]."""
UNITS = ("gravity at rest", "gravity in flight", "volts of ")
"""How names of checks of units begin that must pass before anything is told of a vehicle."""
AGAINST = "gyro against "
"""How the name of the check of an attitude's turns begins; the stream's name follows."""
TELLING = 0.8
"""Ours: correlation of two speeds of turning from which on a ratio other than 1 is one of units or axes. A wrong unit leaves
the correlation as it is; where a vehicle hardly turns, noise lowers it and lengthens the gyro's turns."""
RATE_MAX = 50_000.0
"""Ours: fastest rate of an inertial sensor or a command [Hz]."""
_DOWN = 0.7
"""Share of a resting force along -z from which the body's z points down."""
_BLOCK = 1 << 16
"""Ours: rows that are turned at once."""
_DEGREES = 180.0 / np.pi


@dataclass(frozen=True)
class LogCheck:
    """One check: what was measured, and whether it is what it should be."""

    name: str
    passed: bool | None
    """None: the log does not hold what the check needs."""
    said: str
    """A sentence."""
    value: float = float("nan")


@dataclass(frozen=True)
class RestNoise:
    """What an inertial sensor shows at rest."""

    start: float
    """[s]"""
    stop: float
    gyro_bias: Array
    """[rad/s], (3,)."""
    gyro_deviation: Array
    """[rad/s], (3,)."""
    force: Array
    """Mean specific force [m/s^2], (3,)."""
    force_deviation: Array
    """[m/s^2], (3,)."""


def log_checks(log: Log) -> tuple[LogCheck, ...]:
    """Check units and gravity of a log."""
    rest = rest_noise(log)
    return (_stamps(log), _at_rest(log, rest), _in_flight(log, rest), *_supplies(log), *_against_attitude(log))


def refuse_wrong_units(log: Log, consequence: str, checks: Sequence[LogCheck] | None = None) -> None:
    """Refuse a log in whose units nothing can be told.

    Args:
        log: Of which.
        consequence: What is not done, a sentence.
        checks: Of it; None: they are made.

    Raises:
        AirworthyError: Gravity, or the supply's voltage, is none.
    """
    for check in log_checks(log) if checks is None else checks:
        if check.passed is False and check.name.startswith(UNITS):
            raise AirworthyError(f"Log {log.name!r}: {check.said} {consequence}")


def _stamps(log: Log) -> LogCheck:
    """Whether the stamps of every stream go on."""
    fast = [stream for stream in log.streams if stream.kind in FITTED and stream.quality.rate > RATE_MAX]
    if fast:
        said = f"{fast[0].name} comes at {fast[0].quality.rate:,.0f} Hz, which no sensor does: the unit of its time is wrong."
        return LogCheck("stamps", False, said, fast[0].quality.rate)
    back = [f"{stream.name} ({stream.quality.backward} times)" for stream in log.streams if stream.quality.backward]
    if not log.streams:
        return LogCheck("stamps", None, "There is no stream.")
    if not back:
        return LogCheck("stamps", True, "Those of all streams go on.", 0.0)
    count = float(sum(stream.quality.backward for stream in log.streams))
    return LogCheck("stamps", False, f"They go back in {', '.join(back)}: two moments share a time there.", count)


def _went_back(log: Log, *kinds: str) -> str:
    """Return why a check cannot be made, the first stream of the kinds or names whose stamps go back; empty without any."""
    known = {name for stream in log.streams for name in (stream.kind, stream.name)}
    names = [log.stream(kind).name for kind in kinds if kind in known and log.stream(kind).quality.backward]
    return f"Stamps of {names[0]} go back." if names else ""


def rest_noise(log: Log) -> RestNoise | None:
    """Return the sensor's statistics over the longest rest before the first command, or else of all; None without a second of
    it.

    Rest: blocks of half a second in which the gyro deviates by less than 0.02 rad/s and no motor is commanded.
    """
    if not (log.has("gyro") and log.has("accelerometer")):
        return None
    gyro, force = log.stream("gyro"), log.stream("accelerometer")
    still = [span for span in _still_blocks(log, gyro) if span[1] - span[0] >= REST_TIME]
    if not still:
        return None
    # Before the first command if it can be: after a flight the vehicle may lie on its side, after a crash its sensors be hurt.
    best = max([span for span in still if span[1] <= _first_command(log)] or still, key=lambda span: span[1] - span[0])
    turns, forces = gyro.between(*best).values, force.between(*best).values
    if len(turns) < 10 or len(forces) < 10:
        return None
    with np.errstate(all="ignore"):
        return RestNoise(*best, np.nanmean(turns, 0), np.nanstd(turns, 0), np.nanmean(forces, 0), np.nanstd(forces, 0))


def _first_command(log: Log) -> float:
    """First time at which a motor is commanded [s]; infinity without."""
    if not log.has("motor_command"):
        return float("inf")
    stream = log.stream("motor_command")
    driven = np.nan_to_num(stream.values).max(axis=1, initial=0.0) > 0.01
    return float(stream.time[int(np.argmax(driven))]) if driven.any() else float("inf")


def _still_blocks(log: Log, gyro: LogStream) -> list[tuple[float, float]]:
    """Return runs of blocks at rest, (start, stop) [s]."""
    width = 0.5
    if gyro.time.size < 10 or log.duration > 1e6:
        return []
    block = np.floor((gyro.time - gyro.time.min()) / width).astype(np.int64)
    command = command_at(log, gyro.time)
    runs: list[tuple[float, float]] = []
    order = np.argsort(block, kind="stable")
    numbers, starts = np.unique(block[order], return_index=True)
    for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True):
        turns = gyro.values[rows]
        turns = turns[np.isfinite(turns).all(axis=1)]
        idle = command is None or not np.any(command[rows] > 0.01)
        if len(turns) < 5 or not idle or not np.all(np.std(turns, axis=0) < REST_RATE):
            continue
        start = float(gyro.time.min() + number * width)
        if runs and abs(runs[-1][1] - start) < 1e-9:
            runs[-1] = (runs[-1][0], start + width)
        else:
            runs.append((start, start + width))
    return runs


def _at_rest(log: Log, rest: RestNoise | None) -> LogCheck:
    name = "gravity at rest"
    if not log.has("accelerometer"):
        return LogCheck(name, None, "There is no accelerometer.")
    if rest is None:
        return LogCheck(name, None, "The log holds no rest of a second: gyro still, no motor commanded.")
    if told := _went_back(log, "gyro", "accelerometer"):
        return LogCheck(name, None, told)
    value = float(np.linalg.norm(rest.force))
    low, high = GRAVITY_REST
    if low <= value <= high and rest.force[2] < -_DOWN * value:
        said = f"At rest the specific force points along -z ({rest.force[2]:.2f} of {value:.2f} m/s^2)"
        return LogCheck(name, False, f"{said}: the body's z is down (FRD named FLU), or it lies upside down.", value)
    if low <= value <= high:
        return LogCheck(name, True, f"|specific force| is {value:.3f} m/s^2 over {rest.stop - rest.start:.1f} s.", value)
    guess = ""
    for expected, unit in ((1.0, "in g"), (GRAVITY / 0.3048, "in ft/s^2"), (2048.0, "raw counts"), (4096.0, "raw counts")):
        for factor in (1.0, 9.81):  # as it is, or after a factor from g
            # 1 g after that factor is m/s^2 whose scale is off, or a sensor that is.
            if abs(value / (expected * factor) - 1.0) < 0.05 and expected * factor != 9.81 and not guess:
                guess = (
                    f": the file's numbers look {unit}"
                    if unit == "in g" or "ft" in unit
                    else f": {unit}, {expected:g} for one g"
                )
    if not guess and abs(value / GRAVITY - 1.0) < 0.1:
        guess = f": its scale is off by {100.0 * (value / GRAVITY - 1.0):+.1f} %"
    return LogCheck(name, False, f"|specific force| at rest is {value:.4g} m/s^2, expected {low} to {high}{guess}.", value)


def _in_flight(log: Log, rest: RestNoise | None) -> LogCheck:
    name = "gravity in flight"
    segments = flight_segments(log).flown if log.has("motor_command") or log.has("position") else ()
    spans = [s for s in segments if s.stop - s.start >= FLIGHT_TIME]
    if rest is None or not spans or not log.has("accelerometer"):
        return LogCheck(name, None, "It needs a rest and then 20 s of flight with commands, gyro and accelerometer.")
    span = next((s for s in spans if s.start >= rest.start), None)
    if span is None:
        return LogCheck(name, None, "The flight comes before the rest.")
    if told := _went_back(log, "gyro", "accelerometer"):
        return LogCheck(name, None, told)
    value = vertical_force(log, rest, span.start, span.stop)
    passed = abs(value / GRAVITY - 1.0) <= GRAVITY_FLIGHT_SHARE
    said = f"mean vertical specific force over {span.stop - span.start:.0f} s of flight is {value:.3f} m/s^2"
    said += "." if passed else f", expected {GRAVITY} within 2 %: an axis has a wrong factor, or the vehicle left."
    return LogCheck(name, passed, said[0].upper() + said[1:], value)


def _supplies(log: Log) -> list[LogCheck]:
    """Whether each voltage of a supply is one; a log without any has no such check."""
    checks = []
    for stream in log.of_kind("voltage"):
        values = stream.values[stream.values > 0.0]
        name = f"volts of {stream.name}"
        if not values.size:
            checks.append(LogCheck(name, None, "It is 0 throughout: it was not measured."))
            continue
        middle, (low, high) = float(np.median(values)), VOLTS
        said = f"Half of the voltage is above {middle:,.{0 if middle >= 1000.0 else 3}f} V"
        if low <= middle <= high:
            checks.append(LogCheck(name, True, f"{said}.", middle))
            continue
        unit = ": the file's numbers look in mV" if low <= 1e-3 * middle <= high else ""
        checks.append(LogCheck(name, False, f"{said}, expected {low:g} to {high:g} V of a supply{unit}.", middle))
    return checks


def vertical_force(log: Log, rest: RestNoise, start: float, stop: float) -> float:
    """Return the mean vertical specific force between two times [m/s^2], with attitudes integrated from a rest.

    Args:
        log: With gyro and accelerometer.
        rest: Where attitude and bias are known.
        start: [s]
        stop: [s]
    """
    gyro, force = log.stream("gyro"), log.stream("accelerometer")
    first, last = np.searchsorted(gyro.time, [rest.stop - 0.1, stop])
    clock, rate = gyro.time[first:last], np.nan_to_num(gyro.values[first:last])
    rate -= rest.gyro_bias
    turned = integrate_gyro(clock, rate)
    del rate
    level = _level(rest.force)
    inside = np.flatnonzero((force.time >= start) & (force.time < stop))
    total, count = 0.0, 0
    for first in range(0, len(inside), _BLOCK):
        rows = inside[first : first + _BLOCK]
        index = np.clip(np.searchsorted(clock, force.time[rows]), 0, len(clock) - 1)
        up = rotate(multiply(level, turned[index]), force.values[rows])[:, 2]
        total, count = total + float(np.nansum(up)), count + int(np.isfinite(up).sum())
    return total / count if count else float("nan")


def _level(force: Array) -> Array:
    """Attitude without yaw in which a resting sensor shows this force, (4,)."""
    up = force / np.linalg.norm(force)
    axis = np.cross(up, [0.0, 0.0, 1.0])
    return normalize(np.array([*axis, 1.0 + up[2]])) if up[2] > -0.999999 else np.array([1.0, 0.0, 0.0, 0.0])


def _against_attitude(log: Log) -> list[LogCheck]:
    """Whether gyro and each stream of attitudes turn alike, and how late attitudes come."""
    checks = []
    for stream in log.of_kind("attitude"):
        name = AGAINST + stream.name
        if not log.has("gyro"):
            continue
        if told := _went_back(log, "gyro", stream.name):
            checks.append(LogCheck(name, None, told))
            continue
        try:
            fit = clock_fit(log, stream)
        except AirworthyError:
            checks.append(_by_speeds(log, stream, name))
            continue
        said = f"The gyro turns {1.0 / fit.second:.3f} times as fast, and attitudes come {1e3 * fit.late:+.1f} ms late."
        checks.append(LogCheck(name, True, said, 1.0 / fit.second))
    return checks


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
    said = f"The gyro turns {ratio:.3f} times as fast, and attitudes come {1e3 * lag:+.1f} ms late"
    said += f" (correlation {correlation:.3f})."
    if abs(ratio / _DEGREES - 1.0) < 0.1:
        said = said[:-1] + ": the file's rates are in deg/s."
    elif abs(ratio * _DEGREES - 1.0) < 0.1:
        said = said[:-1] + ": the file's rates were in rad/s already."
    return LogCheck(name, abs(ratio - 1.0) < 0.1, said, ratio)


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
