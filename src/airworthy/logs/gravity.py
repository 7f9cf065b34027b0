"""Gravity where a log holds no rest: what attitudes make of the accelerometer, or else the least that holds a vehicle up.

Turned to the world and averaged over a time, a specific force is gravity and the change of velocity over that time, whatever
was flown (Newton). Velocities tell that change; positions do by second differences, against which the force is averaged with
triangular weights; attitudes alone know no more than that a vehicle is not much faster at the end than it was at first.
Turning needs no exact attitude: the force lies along the body's z, and an error of 3 degrees, or of any size about z, costs a
thousandth of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.frames import continuous, normalize, rotate
from airworthy.logs.clocks.stream_clock import ascending
from airworthy.logs.log_check import LogCheck, went_back
from airworthy.logs.record import Log, LogStream
from airworthy.logs.segments import CRASH_ANY, Span
from airworthy.logs.units import STANDARD_GRAVITY

GRAVITY_WITHOUT_REST = "gravity without rest"
"""Name of the check."""
GRAVITY_FLIGHT_SHARE = 0.02
"""By how much of it the mean vertical specific force of a flight may be off (specification identify, 3.2)."""
FLIGHT_TIME = 20.0
"""Shortest flight over which the mean vertical force must be gravity [s]."""
CLIMB_CHANGE = 4.0
"""Ours: speeds of climb at the ends of a flight differ by less [m/s]; over 20 s it is the 2 % that the specification allows."""
TELLING = 0.05
"""Ours: a scale that is told less well than to this share of it is said to be too uncertain."""
UP_LEAST = 0.7
"""Least share of a force that right attitudes turn up; a multirotor leans by 45 degrees at most for long."""
_STRETCH = 1.0
"""Ours: over so long changes of velocity are compared [s]: noise of a capture system is lost in it, and ten fit in a flight."""
_STRETCHES_LEAST = 5
_STRETCHES_MOST = 1_000_000
"""Ours: no log is longer than twelve days; the stamps of one that is are wrong."""
_SHORTEST = 2.0
"""Over shorter flights a change of climb could make any force of gravity [s]."""
_LEANING = 0.25
"""Ours: a force in flight is longer than gravity in the mean by less, where nobody races."""
_STRONG = 2.5 * STANDARD_GRAVITY
"""Ours: a mean force in flight that only races have [m/s^2]; ft/s^2 that are taken for m/s^2 are 3.3 times gravity."""
_GAP = 0.25
"""Longer gaps of force, attitude or position are not bridged [s]."""
_ROWS_MOST = 2_000_000
"""Ours: samples of the force that are turned; more are thinned."""


@dataclass(frozen=True)
class ForceScale:
    """How much of gravity an accelerometer shows."""

    share: float
    """1 of a right one."""
    within: float
    """Half of its interval."""
    by: str
    """Which streams told it, in words."""
    seconds: float
    up: float
    """Share of the force that is turned up, -1 to 1."""


def gravity_without_rest(log: Log, flown: Sequence[Span], wrong: Collection[str]) -> LogCheck:
    """Check an accelerometer's scale by attitudes, or by the least that holds a vehicle up.

    Args:
        log: Without a rest.
        flown: Where it is in the air.
        wrong: Names of attitudes that are known to be wrong.
    """
    if not log.has("accelerometer"):
        return LogCheck(GRAVITY_WITHOUT_REST, None, "There is no accelerometer.")
    if told := went_back(log, "accelerometer"):
        return LogCheck(GRAVITY_WITHOUT_REST, None, told)
    streams = [s for s in log.of_kind("attitude") if s.name not in wrong and not s.quality.backward]
    found = [scale for stream in streams for scale in force_scales(log, stream)]
    if upright := [scale for scale in found if scale.up > UP_LEAST]:
        # One that finds gravity clears the accelerometer: then other attitudes are wrong.
        judged = [_judged(scale) for scale in sorted(upright, key=lambda scale: scale.within)]
        return next((check for check in judged if check.passed), judged[0])
    if found:
        said = f"By {found[0].by} the specific force points {np.rad2deg(np.arccos(found[0].up)):.0f} degrees off up"
        return LogCheck(
            GRAVITY_WITHOUT_REST, None, f"{said}: their frame, or the accelerometer's, is another, and gravity is not told."
        )
    lengths = np.linalg.norm(ascending(log.stream("accelerometer")).values, axis=1)
    if len(lengths) and (middle := float(np.median(lengths))) > CRASH_ANY:
        said = f"Half of |specific force| is above {middle:,.4g} m/s^2, which no flight has"
        return LogCheck(GRAVITY_WITHOUT_REST, False, f"{said}{unit_guess(middle, _LEANING)}.", middle, "accelerometer")
    return _least(log, flown, "no attitude" if not log.has("attitude") else "no attitudes that tell it")


def _judged(scale: ForceScale) -> LogCheck:
    off, value = abs(scale.share - 1.0), scale.share * STANDARD_GRAVITY
    said = f"By {scale.by} over {scale.seconds:.0f} s gravity is {value:.3f} +- {scale.within * STANDARD_GRAVITY:.2g} m/s^2"
    if off > GRAVITY_FLIGHT_SHARE + scale.within:
        said += f", expected {STANDARD_GRAVITY} within {100.0 * GRAVITY_FLIGHT_SHARE:g} %"
        return LogCheck(GRAVITY_WITHOUT_REST, False, f"{said}{unit_guess(value)}.", value, "accelerometer")
    if off > GRAVITY_FLIGHT_SHARE or scale.within > TELLING:
        said += (
            ": too uncertain to tell the accelerometer's scale, with which thrust goes; log a second of rest before take-off"
        )
        return LogCheck(GRAVITY_WITHOUT_REST, None, f"{said}.", value)
    return LogCheck(GRAVITY_WITHOUT_REST, True, f"{said}.", value)


def _least(log: Log, flown: Sequence[Span], lacks: str) -> LogCheck:
    """Say whether the force could hold the vehicle up: its mean length is at least that of its mean, which is gravity."""
    force = ascending(log.stream("accelerometer"))
    span = max(flown, key=lambda span: span.stop - span.start, default=None)
    inside = np.zeros(len(force.time), bool) if span is None else (force.time >= span.start) & (force.time < span.stop)
    if span is None or inside.sum() < 10 or span.stop - span.start < _SHORTEST:
        return LogCheck(GRAVITY_WITHOUT_REST, None, _untold(lacks))
    seconds = span.stop - span.start
    value = float(np.linalg.norm(force.values[inside], axis=1).mean())
    least = STANDARD_GRAVITY * (1.0 - GRAVITY_FLIGHT_SHARE) - CLIMB_CHANGE / seconds
    mean = f"|specific force| over {seconds:.0f} s of flight is {value:.3g} m/s^2 in the mean"
    if value < least:
        guess = unit_guess(value, _LEANING)
        guess = f": its scale is {100.0 * (1.0 - value / least):.0f} % too small at least" if "scale" in guess else guess
        return LogCheck(
            GRAVITY_WITHOUT_REST,
            False,
            f"{mean}, and under {least:.3g} nothing stays in the air{guess}.",
            value,
            "accelerometer",
        )
    strong = f" {mean}, {value / STANDARD_GRAVITY:.1f} times gravity: is its unit right?" if value > _STRONG else ""
    return LogCheck(GRAVITY_WITHOUT_REST, None, f"{_untold(lacks)}{strong}", value)


def _untold(lacks: str) -> str:
    said = f"There is no rest and {lacks}: nothing tells the accelerometer's scale, and a wrong one goes into thrust over mass"
    return f"{said} unseen. Log a second of rest before take-off, or attitudes."


def unit_guess(value: float, above: float = 0.05) -> str:
    """Return what unit or scale makes gravity a value, as the end of a sentence; empty where none does.

    Args:
        value: What the accelerometer shows for gravity [m/s^2].
        above: By how much of gravity it may show more.
    """
    feet = STANDARD_GRAVITY / 0.3048
    for expected, unit in ((1.0, "in g"), (feet, "in ft/s^2"), (2048.0, "raw counts"), (4096.0, "raw counts")):
        for factor in (1.0, STANDARD_GRAVITY):  # as it is, or after a factor from g
            # 1 g after that factor is m/s^2 whose scale is off, or a sensor that is.
            if -0.05 < value / (expected * factor) - 1.0 < above and expected * factor != STANDARD_GRAVITY:
                counts = unit == "raw counts"
                return f": {unit}, {expected:g} for one g" if counts else f": the file's numbers look {unit}"
    off = value / STANDARD_GRAVITY - 1.0
    return f": its scale is off by {100.0 * off:+.1f} %" if abs(off) < 0.3 else ""


def force_scales(log: Log, stream: LogStream) -> list[ForceScale]:
    """Return what a stream of attitudes tells of the accelerometer's scale, with each stream of velocities or positions of its
    source, else of any; by itself where there is none, over 20 s at least.

    Args:
        log: With an accelerometer.
        stream: Of attitudes.
    """
    poses = ascending(stream)
    force = ascending(log.stream("accelerometer"))
    if len(poses.time) < 10 or len(force.time) < 10:
        return []
    inside = (force.time >= poses.time[0]) & (force.time <= poses.time[-1])
    rows = np.flatnonzero(inside)
    rows = rows[:: 1 + len(rows) // _ROWS_MOST]
    if len(rows) < 10:
        return []
    time, values = force.time[rows], force.values[rows]
    turned = continuous(normalize(poses.values))
    attitude = normalize(np.stack([np.interp(time, poses.time, column) for column in turned.T], axis=1))
    up = rotate(attitude, values)[:, 2]
    length = float(np.linalg.norm(values, axis=1).mean())
    if not length > 0.0:
        return []
    world = _World(time, up, poses.time, float(np.clip(up.mean() / length, -1.0, 1.0)))
    every = [s for kind in ("velocity", "position") for s in log.of_kind(kind) if not s.quality.backward]
    own = [s for s in every if s.label == stream.label] or every
    made = [_with_motion(world, stream, ascending(moved)) for moved in own]
    return [scale for scale in made if scale is not None] or _alone(world, stream)


@dataclass(frozen=True, eq=False)
class _World:
    """Vertical force."""

    time: Array
    up: Array
    """[m/s^2], (n,)."""
    poses: Array
    """Times of attitudes [s]."""
    share: float
    """Of the force that is up."""


def _with_motion(world: _World, stream: LogStream, moved: LogStream) -> ForceScale | None:
    """Compare mean forces of stretches with gravity and the change of velocity; None where too few have no gap."""
    if len(moved.time) < 10:
        return None
    order = 1 if moved.kind == "velocity" else 2
    first, last = max(world.time[0], moved.time[0]), min(world.time[-1], moved.time[-1])
    count = int((last - first) / _STRETCH)
    if not _STRETCHES_LEAST <= count <= _STRETCHES_MOST:
        return None
    ends = first + _STRETCH * np.arange(count + 1)
    whole = ~_gapped(ends, world.time, world.poses, moved.time)
    height = np.interp(ends, moved.time, moved.values[:, 2])
    sums = _integral(world.time, world.up)
    sums = sums if order == 1 else _integral(world.time, sums)
    shown, moves = np.interp(ends, world.time, sums), height
    for _ in range(order):
        shown, moves = np.diff(shown), np.diff(moves)
    good = whole if order == 1 else whole[1:] & whole[:-1]
    shown, wanted = shown[good], moves[good] + STANDARD_GRAVITY * _STRETCH**order
    total = float(wanted.sum())
    if good.sum() < _STRETCHES_LEAST or not total > 0.0:
        return None
    share = float(shown.sum()) / total
    # Errors of velocities at ends of stretches cancel in the sum; taken for independent they widen the interval.
    deviation = float(np.sqrt(np.sum(np.square(shown - share * wanted)))) / total
    by = f"{stream.name} and {moved.name}"
    return ForceScale(share, 2.0 * deviation, by, float(good.sum()) * _STRETCH, world.share)


def _alone(world: _World, stream: LogStream) -> list[ForceScale]:
    """Take the mean over all of it for gravity, within what a change of climb may make of it."""
    seconds = float(world.time[-1] - world.time[0])
    held = np.array([world.time[0], world.time[-1]])
    if seconds < FLIGHT_TIME or _gapped(held, world.time, world.poses).any():
        return []
    share = float(_integral(world.time, world.up)[-1]) / seconds / STANDARD_GRAVITY
    within = abs(share) * CLIMB_CHANGE / (STANDARD_GRAVITY * seconds)
    return [ForceScale(share, within, stream.name, seconds, world.share)]


def _integral(time: Array, values: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(time))])


def _gapped(ends: Array, *clocks: Array) -> ArrayAny:
    """Return which stretches between ends lie in a gap of any clock, (n - 1,)."""
    bad = np.zeros(len(ends) - 1, bool)
    for clock in clocks:
        longest = max(_GAP, 3.0 * float(np.median(np.diff(clock))))
        gaps = np.flatnonzero(np.diff(clock) > longest)
        # Stretches from the one that ends behind the start of a gap to the one that begins before its stop.
        first = np.searchsorted(ends[1:], clock[gaps], side="right")
        behind = np.searchsorted(ends[:-1], clock[gaps + 1], side="left")
        edges = np.bincount(first, minlength=len(ends)) - np.bincount(np.maximum(behind, first), minlength=len(ends))
        bad |= np.cumsum(edges)[:-1] > 0
    return bad
