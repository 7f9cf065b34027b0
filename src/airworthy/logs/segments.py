"""Which parts of a log are flight that can be fitted, and why the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.logs.frozen_sensors import frozen_sensors
from airworthy.logs.motion import in_motion
from airworthy.logs.motors.frozen import frozen_parts, stuck_parts
from airworthy.logs.quality import GAP_PERIODS, saturated_rows
from airworthy.logs.record import Log, LogStream
from airworthy.logs.units import STANDARD_GRAVITY

HOVER_SHARE = 0.2
"""Part of the hover command above which a vehicle counts as flying."""
DIP_TIME = 1.0
"""Commands under this share for less than this are a part of the flight [s]; ours: pulses of thrust last half a second."""
AFTER_TAKEOFF, BEFORE_LANDING = 0.5, 0.3
SATURATED_TIME = 0.05
"""A command or sensor at its end for longer than this spoils what is around it [s]."""
CRASH_ANY, CRASH_SIDE = 6.0 * STANDARD_GRAVITY, 2.5 * STANDARD_GRAVITY
"""Specific force that no flight has, and one that thrust along body z cannot give across or against it [m/s^2]."""
FITTED = ("gyro", "accelerometer", "motor_command")
"""Kinds of streams that a vehicle is fitted to."""
JUMPS_MAX = 1000
"""Ours: gaps and jumps of a stream that are listed."""
FROZEN = "frozen commands"
"""Why parts are not usable in which no command of any motor changes while the vehicle turns."""
STUCK = "frozen commands of motor "
"""The same of one motor, or of some, while others change; the motor's number follows."""
FROZEN_SENSOR = "frozen "
"""The same of a gyro or an accelerometer, whose kind follows."""
FLIGHT_MIN = 1.0
"""Flights and usable parts under a second are left out [s]."""


@dataclass(frozen=True)
class Span:
    """A part of a log."""

    start: float
    """[s]"""
    stop: float
    """[s]"""
    reason: str = ""
    """Why it is not usable; empty where it is."""


@dataclass(frozen=True)
class LogSegments:
    """A log in parts."""

    flown: tuple[Span, ...]
    """In the air, from take-off to landing or crash."""
    usable: tuple[Span, ...]
    rejected: tuple[Span, ...]
    """Parts of the flights that are not usable, each with its reason."""
    crash: float | None = None
    """[s]"""
    told_by: str = ""
    """What told flight: "motor commands", "events" or "motion"; empty where nothing could."""

    @property
    def usable_time(self) -> float:
        """[s]"""
        return sum(span.stop - span.start for span in self.usable)


def command_at(log: Log, time: Array) -> Array | None:
    """Return the mean motor command held at times, NaN commands (disarmed) as 0; None without commands, (n,)."""
    if not log.has("motor_command"):
        return None
    stream = log.stream("motor_command")
    mean = np.nan_to_num(stream.values).mean(axis=1)
    order = np.argsort(stream.time, kind="stable")
    mean = mean[order]
    index = np.searchsorted(stream.time[order], time, side="right") - 1
    return np.where(index >= 0, mean[np.clip(index, 0, len(mean) - 1)], 0.0)


def flight_segments(log: Log, use: Sequence[tuple[float, float]] = (), skip: Sequence[tuple[float, float]] = ()) -> LogSegments:
    """Find the parts of a log that are flight without contact, gaps, saturation, frozen commands or crash.

    Commands that are frozen wherever the vehicle flies are no reason: nothing would be left to say it of.

    Args:
        log: The log; flight is found from motor commands, without any from its events "in_air" and "landed", without these
            from the motion of its positions and sensors (`motion`).
        use: Only these parts, (start, stop) [s]; empty: all.
        skip: Not these parts [s].

    Raises:
        AirworthyError: A part ends before it begins.
    """
    for start, stop in (*use, *skip):
        if not stop > start:
            raise AirworthyError(f"Part {start:g}:{stop:g} of a log ends before it begins; expected START:STOP in seconds.")
    clock = _clock(log)
    if clock is None:
        return LogSegments((), (), ())
    airborne, told_by = _airborne(log, clock)
    crash = _crash(log, clock, airborne)
    if crash is not None:
        airborne &= clock < crash
    flown = tuple(s for s in _spans(clock, airborne) if s.stop - s.start >= FLIGHT_MIN)
    usable = np.zeros(len(clock), bool)
    for span in flown:
        usable |= (clock >= span.start) & (clock <= span.stop)
    rejected: list[Span] = []
    for reason, bad in _spoiled(log, clock, flown, use, skip):
        rejected += [Span(s.start, s.stop, reason) for s in _spans(clock, bad & usable)]
        usable &= ~bad
    held = frozen_sensors(log, [(s.start, s.stop) for s in flown])
    sensors = [Span(s.start, s.stop, f"{FROZEN_SENSOR}{s.kind}") for s in held]
    for span in (*_gaps(log), *_jumps(log), *sensors):
        inside = (clock >= span.start) & (clock <= span.stop)
        if usable[inside].any():
            rejected.append(span)
        usable &= ~inside
    frozen = np.zeros(len(clock), bool)
    for start, stop in frozen_parts(log):
        frozen |= (clock >= start) & (clock <= stop)
    if any(s.stop - s.start >= FLIGHT_MIN for s in _spans(clock, usable & ~frozen)):
        rejected += [Span(s.start, s.stop, FROZEN) for s in _spans(clock, frozen & usable)]
        usable &= ~frozen
    for part in stuck_parts(log, [(s.start, s.stop) for s in _spans(clock, usable)]):
        start, stop = part.left_out
        stuck = usable & (clock >= start) & (clock <= stop)
        rejected += [Span(s.start, s.stop, f"{STUCK}{part.motor + 1}") for s in _spans(clock, stuck)]
        usable &= ~stuck
    whole = _spans(clock, usable)
    rejected += [Span(s.start, s.stop, "under 1 s between others") for s in whole if s.stop - s.start < FLIGHT_MIN]
    good = tuple(s for s in whole if s.stop - s.start >= FLIGHT_MIN)
    return LogSegments(flown, good, tuple(sorted(rejected, key=lambda s: s.start)), crash, told_by)


def _clock(log: Log) -> Array | None:
    """Return times at which the log is judged: those of its gyro, or of its commands."""
    for kind in ("gyro", "accelerometer", "motor_command", "position"):
        if log.has(kind) and len(log.stream(kind).time) > 1:
            return np.unique(log.stream(kind).time)
    return None


def hover_command(log: Log) -> float:
    """Return the mean motor command at which the vehicle hovers: the median while it is well above idle; NaN without any."""
    if not log.has("motor_command"):
        return float("nan")
    mean = np.nan_to_num(log.stream("motor_command").values).mean(axis=1)
    running = mean > 0.3 * float(mean.max(initial=0.0))
    return float(np.median(mean[running])) if running.any() and mean.max() > 0.0 else float("nan")


def _airborne(log: Log, clock: Array) -> tuple[ArrayAny, str]:
    """Return where the vehicle is in the air, and what told it."""
    command = command_at(log, clock)
    if command is not None:
        hover = hover_command(log)
        if not np.isfinite(hover):
            return np.zeros(len(clock), bool), "motor commands"
        flying = command > HOVER_SHARE * hover
        for span in _spans(clock, ~flying):
            # Pulses of thrust dip below; a vehicle is still in the air then.
            if span.start > clock[0] and span.stop < clock[-1] and span.stop - span.start < DIP_TIME:
                flying |= (clock >= span.start) & (clock <= span.stop)
        return flying, "motor commands"
    state = [(e.time, e.kind == "in_air") for e in log.events if e.kind in ("in_air", "landed")]
    if not state:
        return in_motion(log, clock), "motion" if log.has("position") else ""
    index = np.searchsorted([t for t, _ in state], clock, side="right") - 1
    return np.where(index >= 0, np.array([flag for _, flag in state])[np.maximum(index, 0)], False), "events"


def _crash(log: Log, clock: Array, airborne: ArrayAny) -> float | None:
    """First moment in the air of a force that flight cannot give [s]."""
    if not log.has("accelerometer"):
        return None
    stream = log.stream("accelerometer")
    values = np.nan_to_num(stream.values)
    hit = np.linalg.norm(values, axis=1) > CRASH_ANY
    hit |= (np.linalg.norm(values[:, :2], axis=1) > CRASH_SIDE) | (values[:, 2] < -CRASH_SIDE)
    flying = np.interp(stream.time, clock, airborne.astype(np.float64)) > 0.5
    found = np.flatnonzero(hit & flying)
    return float(stream.time[found[0]]) if found.size else None


def _spans(clock: Array, inside: ArrayAny) -> list[Span]:
    """Return runs of True as spans of time."""
    edges = np.diff(np.concatenate([[0], inside.astype(np.int8), [0]]))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [Span(float(clock[a]), float(clock[b])) for a, b in zip(starts, stops, strict=True)]


def _spoiled(
    log: Log, clock: Array, flown: Sequence[Span], use: Sequence[tuple[float, float]], skip: Sequence[tuple[float, float]]
) -> list[tuple[str, ArrayAny]]:
    """Reasons, and where each holds."""
    near = np.zeros(len(clock), bool)
    for span in flown:
        near |= (clock >= span.start) & (clock < span.start + AFTER_TAKEOFF)
        near |= (clock > span.stop - BEFORE_LANDING) & (clock <= span.stop)
    found = [("take-off or landing", near)]
    for kind, reason in (
        ("motor_command", "saturated command"),
        ("gyro", "saturated gyro"),
        ("accelerometer", "saturated accelerometer"),
    ):
        if log.has(kind):
            found.append((reason, _saturated(log.stream(kind), clock)))
    if use:
        outside = np.ones(len(clock), bool)
        for start, stop in use:
            outside &= ~((clock >= start) & (clock < stop))
        found.append(("not within --use", outside))
    if skip:
        left = np.zeros(len(clock), bool)
        for start, stop in skip:
            left |= (clock >= start) & (clock < stop)
        found.append(("--skip", left))
    return found


def _saturated(stream: LogStream, clock: Array) -> ArrayAny:
    """Where any column stays at its end for longer than 50 ms, on another clock."""
    bad = np.zeros(len(clock), bool)
    for column in stream.values.T:
        at_end = saturated_rows(column) if stream.kind != "motor_command" else (column >= 0.999) | (column <= -0.999)
        for span in _spans(stream.time, at_end):
            if span.stop - span.start > SATURATED_TIME:
                bad |= (clock >= span.start) & (clock <= span.stop)
    return bad


def _gaps(log: Log) -> list[Span]:
    """Gaps of the streams that everything is fitted to."""
    found = []
    for kind in FITTED:
        if not log.has(kind):
            continue
        stream = log.stream(kind)
        if not stream.quality.rate:
            continue
        steps = np.diff(stream.time)
        for k in np.flatnonzero(steps > GAP_PERIODS / stream.quality.rate)[:JUMPS_MAX]:
            found.append(Span(float(stream.time[k]), float(stream.time[k + 1]), f"gap of {1e3 * steps[k]:.0f} ms in {kind}"))
    return found


def _jumps(log: Log) -> list[Span]:
    """Return times that a stream holds twice: from where its clock went back to, to the furthest it had been."""
    found = []
    for kind in (*FITTED, "position"):
        if not log.has(kind) or not log.stream(kind).quality.backward:
            continue
        time = log.stream(kind).time
        furthest = np.maximum.accumulate(time)
        for k in np.flatnonzero(np.diff(time) < 0.0)[:JUMPS_MAX]:
            start, stop = float(time[k + 1]), float(furthest[k])
            found.append(Span(start, stop, f"clock back by {1e3 * (time[k] - time[k + 1]):.4g} ms in {kind}"))
    return found
