"""Where a log says that the vehicle was: one series of poses out of whatever streams tell of them, to be looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import slerp
from airworthy.logs.clocks.kinematics import integrate_gyro
from airworthy.logs.record import Log, LogStream
from airworthy.logs.writing.pairing import beside

LEVEL = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class LogTrajectory:
    """Poses over time; what no stream told is said in `notes`."""

    time: Array
    """[s], rising, (n,)."""
    position: Array
    """World [m], (n, 3)."""
    attitude: Array
    """Body to world, (n, 4)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    notes: tuple[str, ...] = ()


def log_trajectory(log: Log) -> LogTrajectory:
    """Return the poses of a log.

    Positions of the first stream that has any, with attitudes of the same device or else of the first stream of attitudes,
    turned to the positions' stamps. Without positions the vehicle stands at the origin; without attitudes it is level, or turns
    as its gyro says.

    Raises:
        AirworthyError: The log holds neither positions nor attitudes nor a gyro.
    """
    place = next((found for stream in log.of_kind("position") if len((found := rising(stream)).time) > 1), None)
    turn = _attitudes(log, place)
    notes = []
    if place is None and turn is None:
        if not log.has("gyro") or len(rising(log.stream("gyro")).time) < 2:
            held = ", ".join(dict.fromkeys(stream.kind for stream in log.streams)) or "no stream"
            raise AirworthyError(
                f"Log {log.name!r} holds {held}; poses need positions, attitudes or a gyro. `airworthy logs show` tells more."
            )
        gyro = rising(log.stream("gyro"))
        turn = LogStream("attitude", gyro.time, integrate_gyro(gyro.time, gyro.values))
        notes.append("Attitudes are the gyro's, summed up from level: they drift.")
    if place is None:
        assert turn is not None  # either stream is there
        notes.append("The log holds no positions: the vehicle stands at the origin.")
        return LogTrajectory(turn.time, np.zeros((len(turn.time), 3)), turn.values, np.zeros((len(turn.time), 3)), tuple(notes))
    if turn is None:
        notes.append("The log holds no attitudes: the vehicle is shown level.")
        attitude = np.tile(LEVEL, (len(place.time), 1))
    else:
        attitude = attitudes_at(turn, place.time)
    return LogTrajectory(place.time, place.values, attitude, _velocity(log, place), tuple(notes))


def rising(stream: LogStream) -> LogStream:
    """Return a stream without rows that miss a value, in the order of stamps, one row for each."""
    from dataclasses import replace

    good = np.isfinite(stream.values).all(axis=1)
    time, first = np.unique(stream.time[good], return_index=True)
    return replace(stream, time=time, values=stream.values[good][first])


def attitudes_at(stream: LogStream, time: Array) -> Array:
    """Return attitudes (n, 4) at times, turned at constant speed between samples and held beyond the ends.

    Args:
        stream: Attitudes, rising.
        time: [s], (n,).
    """
    after = np.clip(np.searchsorted(stream.time, time, side="right"), 1, max(len(stream.time) - 1, 1))
    after = np.minimum(after, len(stream.time) - 1)
    before = np.maximum(after - 1, 0)
    span = stream.time[after] - stream.time[before]
    share = np.clip((time - stream.time[before]) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
    return slerp(stream.values[before], stream.values[after], share)


def values_at(stream: LogStream, time: Array) -> Array:
    """Return a stream's values (n, k) at times: held for commands, else on straight lines; NaN beyond the ends.

    Args:
        stream: Any but attitudes, rising.
        time: [s], (n,).
    """
    inside: ArrayAny = (time >= stream.time[0]) & (time <= stream.time[-1])
    if stream.stamp == "held":
        rows = np.clip(np.searchsorted(stream.time, time, side="right") - 1, 0, len(stream.time) - 1)
        # The last command holds on.
        return np.where((time >= stream.time[0])[:, None], stream.values[rows], np.nan)
    found = np.stack([np.interp(time, stream.time, column) for column in stream.values.T], axis=1)
    return np.where(inside[:, None], found, np.nan)


def _attitudes(log: Log, place: LogStream | None) -> LogStream | None:
    """Return the stream of attitudes that belongs to positions, else the first one that has any."""
    first = [] if place is None else [beside(log, stream, "attitude") for stream in log.of_kind("position")]
    for stream in (*first, *log.of_kind("attitude")):
        if stream is not None and len((found := rising(stream)).time):
            return found
    return None


def _velocity(log: Log, place: LogStream) -> Array:
    """Return velocities at positions: measured, else how positions change."""
    for stream in log.of_kind("velocity"):
        found = rising(stream)
        if stream.label == place.label and len(found.time):
            return np.nan_to_num(values_at(found, place.time))
    return np.gradient(place.values, place.time, axis=0)
