"""How a vehicle moved, as a log tells it: attitude and velocity at any moment, from capture, GNSS or an estimator.

Attitudes come seldom and late, gyros often: between attitudes the gyro turns, and what is left between both, averaged over half
a second, puts it right. Velocities are those of the log, else those of its positions with the accelerometer in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import conjugate, continuous, multiply, normalize
from airworthy.logs import Log, LogCheck, LogStream, integrate_gyro
from airworthy.logs.against_attitude import AGAINST
from airworthy.logs.units import STANDARD_GRAVITY
from airworthy.vehicles.identification.air_speed.smoothed import smoothed_velocities
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings, readings_of

__all__ = ["FlightMotion", "flight_motion", "moved_spans"]

GAP = 0.3
"""Longer stretches without an attitude or a velocity are not used [s]."""
TIED = 0.5
"""Over which attitudes put the gyro right [s]: many samples of a capture system, and a few of GNSS receivers."""
RATE_MIN = 4.0
"""Slower attitudes and velocities tell no drag [Hz]; GNSS receivers give 5 to 10."""
SPEED_MAX = 200.0
"""Ours: no multirotor is faster [m/s]; a record of 2025 is 174."""
CONTRADICTS = "contradicts the gyro"
"""What is said of attitudes that a check calls wrong."""
LEAP = 50.0
"""Ours: a velocity so far from the median of those of its second is a slip [m/s]: it asks for ten times gravity."""


@dataclass(frozen=True, eq=False)
class FlightMotion:
    """Attitude and velocity of a flight."""

    turned: Readings
    """Attitude by the gyro alone, from its first sample on, x, y, z, w, (n, 4)."""
    offset: Readings
    """What measured attitudes turn that by, in the world, (m, 4)."""
    velocity: Readings
    """In the world [m/s], (k, 3)."""
    source: str
    """Where the velocity is from, in words."""
    notes: tuple[str, ...] = ()
    """What of it is left out, a sentence each."""
    noise: float = 0.0
    """Deviation of velocities that are of positions [m/s]; 0: they are the log's own."""

    def attitudes(self, time: Array) -> Array:
        """Return attitudes, body to world, x, y, z, w, (..., 4).

        Args:
            time: [s], (...).
        """
        return normalize(multiply(self.offset.mean(time, TIED), self.turned.mean(time, 0.0)))


def flight_motion(log: Log, signals: FlightSignals, checks: Sequence[LogCheck] = ()) -> FlightMotion | str:
    """Return how a vehicle moved; where the log does not tell it, why not.

    Args:
        log: A flight.
        signals: Of it; the gyro's bias is taken off.
        checks: Of the log: attitudes that turn unlike the gyro are not used.
    """
    wrong = {check.name.removeprefix(AGAINST): check.said for check in checks if check.passed is False}
    every = _first(log, "attitude")
    if every is None:
        return "there is no attitude"
    if not (log.has("velocity") or log.has("position")):
        return "there is neither velocity nor position"
    attitude = _first(replace(log, streams=tuple(s for s in log.streams if s.name not in wrong)), "attitude")
    if attitude is None:
        said = wrong[every.name].rstrip(".")
        return f"{every.name} {CONTRADICTS} ({said[0].lower()}{said[1:]}), so neither drag nor wind is told"
    # Of one source rather than of two: a capture system's positions before an estimator's velocities.
    streams = [stream for kind in ("velocity", "position") if (stream := _first(log, kind, attitude.label)) is not None]
    moved = min(streams, key=lambda stream: stream.label != attitude.label)
    for stream in (attitude, moved):
        if not stream.quality.rate >= RATE_MIN:
            return f"{stream.name} comes at {stream.quality.rate:.1f} Hz, and {RATE_MIN:.0f} Hz are needed"
    seen, going = readings_of(stream=attitude), readings_of(stream=moved)
    if min(len(seen.time), len(going.time)) < 2.0 * RATE_MIN:
        return "attitudes or velocities are too few"
    going, notes = _possible(_differences(going) if moved.kind == "position" else going, moved)
    gyro = signals.gyro
    turned = Readings(gyro.time, continuous(integrate_gyro(gyro.time, gyro.values)))
    inside = (seen.time >= gyro.time[0]) & (seen.time <= gyro.time[-1])
    if inside.sum() < 2.0 * RATE_MIN:
        return "attitudes and gyro share too little time"
    time, values = seen.time[inside], normalize(seen.values[inside])
    offset = Readings(time, continuous(multiply(values, conjugate(normalize(turned.mean(time, 0.0))))))
    motion = FlightMotion(turned, offset, going, moved.name, notes)
    if moved.kind == "velocity":
        return motion
    going, noise = smoothed_velocities(
        _kept(readings_of(stream=moved), going), signals.force, motion.attitudes(signals.force.time), STANDARD_GRAVITY, GAP
    )
    if len(going.time) < 2.0 * RATE_MIN:
        return "positions and accelerometer share too little time"
    return replace(motion, velocity=going, source=f"{moved.name} and accelerometer", noise=noise)


def _first(log: Log, kind: str, label: str | None = None) -> LogStream | None:
    """Return a kind's stream of a label, else a capture system's, else the first; None where there is none."""
    streams = list(log.of_kind(kind))
    if not streams:
        return None
    return min(streams, key=lambda stream: (stream.label != label, stream.label != "capture"))


def _possible(going: Readings, moved: LogStream) -> tuple[Readings, tuple[str, ...]]:
    """Return velocities that a multirotor can have, and what is left out.

    Args:
        going: Velocities [m/s].
        moved: What they are of; what is no number in it is left out of them already.
    """
    good = np.linalg.norm(going.values, axis=1) <= SPEED_MAX
    second = np.floor(going.time).astype(np.int64)
    for number in np.unique(second[good]):
        rows = np.flatnonzero(good & (second == number))
        apart = going.values[rows] - np.median(going.values[rows], axis=0)
        good[rows] = np.linalg.norm(apart, axis=1) <= LEAP
    missing, slips = int((~np.isfinite(moved.values).all(axis=1)).sum()), int((~good).sum())
    parts = [f"{missing} are no numbers"] * bool(missing)
    parts += [f"{slips} are faster than {SPEED_MAX:g} m/s, or {LEAP:g} m/s off those of their second"] * bool(slips)
    if not parts:
        return going, ()
    said = f"Of {len(moved.time):,} samples of {moved.name} {' and '.join(parts)}: drag leaves them out."
    return Readings(going.time[good], going.values[good]), (said,)


def _differences(position: Readings) -> Readings:
    """Return velocities in the middle between positions: noisy ones, that show slips."""
    step = np.diff(position.time)
    return Readings(position.time[:-1] + 0.5 * step, np.diff(position.values, axis=0) / step[:, None])


def _kept(position: Readings, good: Readings) -> Readings:
    """Return positions without slips: those with a possible velocity before or behind them.

    Args:
        position: All of them.
        good: Velocities between them that are possible, of `_differences`.
    """
    between = np.isin(position.time[:-1] + 0.5 * np.diff(position.time), good.time)
    keep = np.concatenate([between, [False]]) | np.concatenate([[False], between])
    return Readings(position.time[keep], position.values[keep])


def moved_spans(motion: FlightMotion, spans: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    """Return the parts of spans in which attitudes and velocities come without gaps [s].

    Args:
        motion: Of the flight.
        spans: Usable parts.
    """
    for readings in (motion.offset, motion.velocity):
        time = readings.time
        broken = np.flatnonzero(np.diff(time) > GAP)
        edges = [(float(a), float(b)) for a, b in zip(time[[0, *(broken + 1)]], time[[*broken, len(time) - 1]], strict=True)]
        spans = tuple((max(a, c), min(b, d)) for a, b in spans for c, d in edges if min(b, d) > max(a, c))
    return spans
