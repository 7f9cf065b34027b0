"""Checks of units and gravity before anything is fitted: cheap, and they find most wrong files.

At rest an accelerometer shows gravity, in flight its mean along the world's vertical does, and a gyro turns as fast as
attitudes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import multiply, normalize, rotate
from airworthy.logs.against_attitude import AGAINST, DOWN, FORCE_ROWS, against_attitude
from airworthy.logs.clocks.kinematics import integrate_gyro
from airworthy.logs.frozen_sensors import FrozenSensor, frozen_sensors
from airworthy.logs.gravity import FLIGHT_TIME, GRAVITY_FLIGHT_SHARE, GRAVITY_WITHOUT_REST, gravity_without_rest, unit_guess
from airworthy.logs.log_check import LogCheck, went_back
from airworthy.logs.motors.frozen import frozen_parts, overlap, stuck_motors, stuck_parts
from airworthy.logs.motors.scale import wrong_scale
from airworthy.logs.quality import GAP_PERIODS, REST_RATE, saturated_rows
from airworthy.logs.record import Log, LogStream
from airworthy.logs.segments import CRASH_ANY, FITTED, FROZEN, STUCK, LogSegments, Span, command_at, flight_segments
from airworthy.logs.units import STANDARD_GRAVITY

REST_TIME = 1.0
"""Shortest rest that counts [s]."""
GRAVITY_REST = (9.7, 9.9)
"""What |specific force| at rest is of a good sensor [m/s^2]; as far off as flight may be it is told, farther it is refused."""
VOLTS = (1.0, 100.0)
"""Ours: what a multirotor's supply may have [V]: an empty cell has 2.5, packs of the largest 60 to 90."""
GYRO_GAP = 0.1
"""Ours: a gyro that lacks longer than this has lost the attitude: doublets turn by 10 degrees and more meanwhile [s]."""
UNITS = ("gravity at rest", "gravity in flight", GRAVITY_WITHOUT_REST, "volts of ")
"""How names of checks of units begin that must pass before anything is told of a vehicle."""
RATE_MAX = 50_000.0
"""Ours: fastest rate of an inertial sensor or a command [Hz]."""
SATURATED = 0.005
"""Ours: share of a flight in which a sensor is at its end from which on that is why gravity is off."""
LISTED = 4
"""Ours: parts of a kind that a check names."""
_BLOCK = 1 << 16
"""Ours: rows that are turned at once."""


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
    segments = flight_segments(log) if log.has("motor_command") or log.has("position") else LogSegments((), (), ())
    up = _force_up(log, segments.flown)
    turns = against_attitude(log, up)
    frozen = frozen_sensors(log, [(span.start, span.stop) for span in segments.flown])
    checks = [_stamps(log), _at_rest(log, rest), _in_flight(log, rest, segments.flown, up, frozen)]
    if checks[1].passed is None and log.has("accelerometer"):
        wrong = [check.name.removeprefix(AGAINST) for check in turns if check.blamed == "attitude"]
        checks.append(gravity_without_rest(_uncrashed(log, segments), segments.flown, wrong))
    still = (*_commands(log, segments), *_frozen(frozen))
    return (*checks, *still, *_supplies(log), *turns)


def _uncrashed(log: Log, segments: LogSegments) -> Log:
    """Return what a log holds before a crash: an accelerometer at its ends shows less than there is."""
    force = np.linalg.norm(log.stream("accelerometer").values, axis=1)
    # Where it is above the force of a crash most of the time, its unit is another.
    if segments.crash is None or float(np.nanmedian(force)) > CRASH_ANY:
        return log
    return replace(log, streams=tuple(s.between(-np.inf, segments.crash) for s in log.streams))


def refuse_wrong_units(log: Log, consequence: str, checks: Sequence[LogCheck] | None = None) -> None:
    """Refuse a log in whose units nothing can be told.

    Args:
        log: Of which.
        consequence: What is not done, a sentence.
        checks: Of it; None: they are made.

    Raises:
        AirworthyError: Gravity, or the supply's voltage, is none, or the gyro has another unit, scale or frame by all
            attitudes.
    """
    checks = log_checks(log) if checks is None else checks
    turns = [check for check in checks if check.name.startswith(AGAINST)]
    # One stream of attitudes that agrees with the gyro clears it: then another one is wrong.
    blamed = [] if any(check.passed for check in turns) else [check for check in turns if check.blamed == "gyro"]
    units = [check for check in checks if check.name.startswith(UNITS)]
    # Last what a wrong gyro shows as well: gravity in flight is turned by it.
    for check in sorted((*units, *blamed), key=lambda check: check.name == "gravity in flight"):
        if check.passed is False:
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
    if told := went_back(log, "gyro", "accelerometer"):
        return LogCheck(name, None, told)
    value = float(np.linalg.norm(rest.force))
    low, high = GRAVITY_REST
    if low <= value <= high and rest.force[2] < -DOWN * value:
        said = f"At rest the specific force points along -z ({rest.force[2]:.2f} of {value:.2f} m/s^2)"
        return LogCheck(name, False, f"{said}: the body's z is down (FRD named FLU), or it lies upside down.", value)
    if low <= value <= high:
        return LogCheck(name, True, f"|specific force| is {value:.3f} m/s^2 over {rest.stop - rest.start:.1f} s.", value)
    off = value / STANDARD_GRAVITY - 1.0
    if abs(off) <= GRAVITY_FLIGHT_SHARE:
        said = f"|specific force| at rest is {value:.3f} m/s^2, expected {low} to {high}: an offset of"
        said += f" {1000.0 * abs(off):.0f} mg, as common sensors have, or a scale off by"
        said += f" {100.0 * off:+.1f} %; thrust over mass goes with it."
        return LogCheck(name, True, said, value)
    return LogCheck(
        name, False, f"|specific force| at rest is {value:.4g} m/s^2, expected {low} to {high}{unit_guess(value)}.", value
    )


def off_at_rest(checks: Sequence[LogCheck]) -> list[LogCheck]:
    """Return the check of gravity at rest where it passes with an offset that is told."""
    low, high = GRAVITY_REST
    return [c for c in checks if c.name == "gravity at rest" and c.passed and not low <= abs(c.value) <= high]


def _force_up(log: Log, flown: Sequence[Span]) -> float:
    """Share of the specific force in flight that points along the body's z, -1 to 1; NaN where it is not known."""
    if not log.has("accelerometer") or not flown:
        return float("nan")
    force = log.stream("accelerometer")
    inside = np.zeros(len(force.time), bool)
    for span in flown:
        inside |= (force.time >= span.start) & (force.time < span.stop)
    rows = np.flatnonzero(inside)
    values = force.values[rows[:: max(1, len(rows) // FORCE_ROWS)]]
    length = np.linalg.norm(values, axis=1)
    good = np.isfinite(length) & (length > 0.0)
    return float(np.median(values[good, 2] / length[good])) if good.any() else float("nan")


def _in_flight(log: Log, rest: RestNoise | None, flown: Sequence[Span], up: float, frozen: Sequence[FrozenSensor]) -> LogCheck:
    name = "gravity in flight"
    if up < -DOWN:
        said = "In flight the specific force points along -z: the body's z is down (FRD named FLU), or it flies upside down."
        return LogCheck(name, False, said, up)
    spans = [s for s in flown if s.stop - s.start >= FLIGHT_TIME]
    if rest is None or not spans or not log.has("accelerometer"):
        return LogCheck(name, None, "It needs a rest and then 20 s of flight with commands, gyro and accelerometer.")
    span = next((s for s in spans if s.start >= rest.start), None)
    if span is None:
        return LogCheck(name, None, "The flight comes before the rest.")
    if told := went_back(log, "gyro", "accelerometer"):
        return LogCheck(name, None, told)
    start, length = _first_gap(log, rest.stop - 0.1)
    lacks = f"The gyro lacks {length:.2g} s at {start:.2f} s"
    held = [part for part in frozen if span.start <= part.start < min(start, span.stop)]
    if held:
        start, lacks = held[0].start, f"The {held[0].kind} is frozen at {held[0].start:.2f} s"
    stop = min(span.stop, start)
    if stop - span.start < FLIGHT_TIME:
        said = f"{lacks}: no attitude is known behind, and 20 s of flight are needed before."
        return LogCheck(name, None, said)
    value = vertical_force(log, rest, span.start, stop)
    passed = abs(value / STANDARD_GRAVITY - 1.0) <= GRAVITY_FLIGHT_SHARE
    said = f"mean vertical specific force over {stop - span.start:.0f} s of flight is {value:.3f} m/s^2"
    why = "an axis has a wrong factor, or the vehicle left"
    said += "." if passed else f", expected {STANDARD_GRAVITY} within 2 %: {_saturation(log, span.start, stop) or why}."
    return LogCheck(name, passed, said[0].upper() + said[1:], value)


def _saturation(log: Log, start: float, stop: float) -> str:
    """Return which sensor is at its end for a part of a flight that moves means; empty where none is."""
    for kind, unit, means in (
        ("accelerometer", "m/s^2", "its mean is no gravity; log it with a wider range"),
        ("gyro", "rad/s", "attitudes are lost there; log it with a wider range, or turn more slowly"),
    ):
        stream = log.stream(kind)
        ends = np.stack([saturated_rows(column) for column in stream.values.T], axis=1)
        inside = (stream.time >= start) & (stream.time <= stop)
        share = float(ends[inside].any(axis=1).mean()) if inside.any() else 0.0
        if share > SATURATED:
            most = float(np.abs(stream.values[inside][ends[inside]]).max())
            return f"the {kind} is saturated, at its end ({most:.4g} {unit}) for {100.0 * share:.2g} % of the flight: {means}"
    return ""


def _commands(log: Log, segments: LogSegments) -> list[LogCheck]:
    """Where commands stand still in flight, of all motors or of one; a log in which they do not has no such check."""
    if not log.has("motor_command"):
        return []
    checks, name = [], "motor commands"
    if told := wrong_scale(log):
        checks.append(LogCheck(name, False, f"{told[0].upper()}{told[1:]}."))
    usable = [(span.start, span.stop) for span in segments.usable]
    away = [(span.start, span.stop) for span in segments.rejected if span.reason == FROZEN]
    frozen = overlap([*usable, *away], frozen_parts(log))
    if frozen:
        total = segments.usable_time + sum(b - a for a, b in away)
        said = f"Those of all motors stand still for {frozen:.1f} s of {total:.1f} s of flight in which the gyro turns"
        checks.append(LogCheck(name, False, f"{said}: they are frozen there.", frozen))
    if stuck := stuck_motors(log, usable):
        said = ", ".join(stuck)
        said = f"{said[0].upper()}{said[1:]}, while others change: it did not run, or its column is another."
        checks.append(LogCheck(name, False, said))
    held = [(span.start, span.stop) for span in segments.rejected if span.reason.startswith(STUCK)]
    if parts := stuck_parts(log, [*usable, *away, *held]):
        said = _listed([part.said for part in parts])
        seconds = sum(part.stop - part.start for part in parts)
        said = f"Commands stand still: {said}, while others change and the gyro turns: left out of usable flight."
        checks.append(LogCheck(name, False, said, seconds))
    return checks


def _frozen(found: Sequence[FrozenSensor]) -> list[LogCheck]:
    """Where a gyro or an accelerometer stands still in flight; a log in which none does has no such check."""
    checks = []
    for kind in dict.fromkeys(part.kind for part in found):
        own = [part for part in found if part.kind == kind]
        said = _listed([f"{part.axes} from {part.start:.1f} to {part.stop:.1f} s" for part in own])
        said = f"It shows one number in flight ({said}), while the rest goes on: it is frozen there, and left out."
        checks.append(LogCheck(kind, False, said, sum(part.stop - part.start for part in own)))
    return checks


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - LISTED} times more" if len(said) > LISTED else ""
    return ", ".join(said[:LISTED]) + more


def _first_gap(log: Log, begin: float) -> tuple[float, float]:
    """Return when the gyro first lacks more than 0.1 s after a time, and for how long [s]; infinity and 0 where it does not.

    Args:
        log: With a gyro whose stamps go on.
        begin: [s]
    """
    gyro = log.stream("gyro")
    time = gyro.time[(gyro.time >= begin) & np.isfinite(gyro.values).all(axis=1)]
    steps = np.diff(time)
    longest = max(GYRO_GAP, GAP_PERIODS / gyro.quality.rate if gyro.quality.rate else GYRO_GAP)
    gaps = np.flatnonzero(steps > longest)
    return (float(time[gaps[0]]), float(steps[gaps[0]])) if gaps.size else (float("inf"), 0.0)


def _supplies(log: Log) -> list[LogCheck]:
    """Whether each voltage of a supply is one; a log without any has no such check."""
    checks = []
    for stream in log.of_kind("voltage"):
        values = stream.values[stream.values > 0.0]
        name = f"volts of {stream.name}"
        below = stream.values[stream.values < 0.0]
        if below.size > values.size:
            middle = float(np.median(below))
            said = f"The voltage is negative, {middle:,.4g} V in its middle: the sign or the unit is wrong."
            checks.append(LogCheck(name, False, said, middle))
            continue
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
