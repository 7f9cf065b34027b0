"""A gyro beside attitudes: whether both turn alike, and what is wrong where they do not - a unit, a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import normalize, rotate, to_rotation_vector
from airworthy.logs.clocks.stream_clock import ascending, clock_fit
from airworthy.logs.clocks.turn_map import DEGREES, TurnMap, turn_map
from airworthy.logs.clocks.turn_windows import REACH
from airworthy.logs.log_check import LogCheck, went_back
from airworthy.logs.record import Log, LogStream

AGAINST = "gyro against "
"""How the name of the check of an attitude's turns begins; the stream's name follows. Its value is how many times as fast the
gyro turns, below 0 where the gyro's z is opposite, NaN where neither is told."""
SCALE_MOST = 0.05
"""A gyro's scale that is off by more than this share is wrong; no clock is off that far either (`stream_clock`). Datasheets of
small gyros allow 1 to 3 %."""
ASKEW = np.deg2rad(20.0)
"""Ours: a gyro that is turned further against the body of attitudes is said to be."""
RATE_MOST = 3.0
"""Ours: root of the mean square of a multirotor's rates over a flight is lower [rad/s]; ten times as high in acrobatics."""
DOWN = 0.7
"""Share of a force along -z from which the body's z points down."""
FORCE_ROWS = 100_000
"""Ours: samples of the force, evenly picked, by which its direction is told."""
SLIGHT = 5.0
"""Ours: attitudes that never turn so far from level and heading 0 [degrees]; radians taken for degrees are under 3.2 each."""
_STILL, _TURNED = 1e-6, 20.0
"""Ours: attitudes that change by less stand still; noise of a gyro alone does not turn it so far in an hour [degrees]."""
_DOWN_AXES = np.diag([1.0, -1.0, -1.0])


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
        checks.append(_turns_of(log, stream, name, up))
    return checks


def _turns_of(log: Log, stream: LogStream, name: str, up: float) -> LogCheck:
    """Compare a gyro with one stream of attitudes.

    Args:
        log: The log.
        stream: Of attitudes.
        name: Of the check.
        up: Share of the specific force in flight along the body's z.
    """
    try:
        fit = clock_fit(log, stream)
    except AirworthyError:
        return _by_map(log, stream, name, up)
    if down := _down_of(log, stream, name, up, fit.upside_down):
        return down
    said = f"The gyro turns {1.0 / fit.second:.3f} times as fast, and attitudes come {1e3 * fit.late:+.1f} ms late."
    straight = LogCheck(name, True, said, 1.0 / fit.second)
    if fit.askew < ASKEW:
        return straight
    found = _map_of(log, stream)
    if isinstance(found, str) or not found.told:
        return straight
    return _other_axes(found, stream, name) or replace(straight, said=f"{said}{_turned_z(found, stream)}")


def _map_of(log: Log, stream: LogStream) -> TurnMap | str:
    """Return what takes turns of the gyro to those of attitudes, or why that is not told."""
    gyro, poses = ascending(log.stream("gyro")), ascending(stream)
    if min(len(gyro.time), len(poses.time)) < 2:
        return f"Gyro and {stream.name} hold under two samples."
    try:
        return turn_map(gyro, poses)
    except AirworthyError as error:
        return str(error)


def _by_map(log: Log, stream: LogStream, name: str, up: float) -> LogCheck:
    """Say what is wrong where no clock could be fitted: units, scales, axes, or too much noise."""
    found = _map_of(log, stream)
    if isinstance(found, str):
        return _stands_still(log, stream, name) or LogCheck(name, None, found)
    if found.apart:
        said = f"{stream.name} does not turn as the gyro does: it is of another flight, or over {REACH:g} s early or late."
        return LogCheck(name, False, said, blamed="attitude")
    if not found.told:
        said = f"The gyro explains {100.0 * found.explained:.0f} % of the turns of {stream.name}:"
        said += " noise, a vehicle that hardly turned, or other poses."
        return LogCheck(name, None, f"{said} Neither scale nor axes are told.")
    if found.inverse:
        said = f"{stream.name} turns as if it were inverted: it is given from the world to the body; invert it."
        return LogCheck(name, False, said, found.ratio, "attitude")
    if down := _down_of(log, stream, name, up, bool(np.array_equal(found.axes, _DOWN_AXES))):
        return down
    return _other_axes(found, stream, name) or _scale_of(log, found, stream, name)


def _stands_still(log: Log, stream: LogStream, name: str) -> LogCheck | None:
    """Say that attitudes never change though the gyro turns; None where they do, or it does not."""
    gyro, poses = ascending(log.stream("gyro")), ascending(stream)
    if len(gyro.time) < 2 or not len(poses.time) or float(np.ptp(poses.values, axis=0).max()) > _STILL:
        return None
    rate = gyro.values - gyro.values.mean(axis=0)
    turned = np.rad2deg(float(np.ptp(np.cumsum(rate[1:] * np.diff(gyro.time)[:, None], axis=0), axis=0).max()))
    said = f"{stream.name} never changes while the gyro turns by up to {turned:.0f} degrees: it was not measured."
    return LogCheck(name, False, said, blamed="attitude") if turned > _TURNED else None


def _scale_of(log: Log, found: TurnMap, stream: LogStream, name: str) -> LogCheck:
    """Judge how many times as fast a gyro turns, with its interval."""
    ratio, within = found.ratio, found.within
    if unit := _rate_unit(ratio):
        if ratio > 1.0 and _slight(log, stream):
            said = f"{stream.name} turns {ratio:.1f} times as slowly as the gyro, and never by {SLIGHT:.0f} degrees in all"
            return LogCheck(name, False, f"{said}: its angles are in rad and were taken for deg.", ratio, "attitude")
        return LogCheck(name, False, f"{_turning(ratio)}: the file's rates are in {unit}.", ratio, "gyro")
    late = f"attitudes come {1e3 * found.late:+.1f} ms late{_turned_z(found, stream).rstrip('.')}."
    said = f"The gyro turns {ratio:.3f} +- {within:.2g} times as fast"
    if abs(ratio - 1.0) > SCALE_MOST + within:
        of = f"{said} as {stream.name}: its scale is wrong, by more than any clock is; mend its unit or scale in the mapping,"
        return LogCheck(name, False, f"{of} or the range that the sensor was set to.", ratio, "gyro")
    if max(abs(ratio - 1.0), within) > SCALE_MOST:
        said += f", which is too uncertain to tell its scale: {stream.name} is noisy, or an estimate that other sensors bend."
        return LogCheck(name, None, said, ratio)
    return LogCheck(name, True, f"{said}, and {late}", ratio)


def _slight(log: Log, stream: LogStream) -> bool:
    """Return whether attitudes stay so near to level and one heading as radians that were taken for degrees do, and the gyro's
    rates are those of a multirotor."""
    turned = to_rotation_vector(normalize(ascending(stream).values))
    rate = ascending(log.stream("gyro")).values
    common = float(np.sqrt(np.mean(np.sum(np.square(rate), axis=1)))) < RATE_MOST
    return common and float(np.linalg.norm(turned, axis=1).max()) < np.deg2rad(SLIGHT)


def _other_axes(found: TurnMap, stream: LogStream, name: str) -> LogCheck | None:
    """Name axes of a gyro that are in another order, or opposite; None where they are not."""
    if np.array_equal(found.axes, np.eye(3)):
        return None
    moved = [k for k in range(3) if found.axes[k, k] == 0.0]
    flipped = [k for k in range(3) if found.axes[k, k] < 0.0]
    if len(moved) == 2 and (found.axes >= 0.0).all():
        what = f"{'xyz'[moved[0]]} and {'xyz'[moved[1]]} are swapped"
    elif not moved:
        what = f"{' and '.join('xyz'[k] for k in flipped)} point{'s' * (len(flipped) == 1)} the other way"
    else:
        what = "axes are in another order"
    said = f"The gyro's {what} against {stream.name}; its columns must be {_columns(found.axes)}"
    return LogCheck(name, False, f"{said}, and the accelerometer's so if it sits with it.", -found.ratio, "gyro")


def _turned_z(found: TurnMap, stream: LogStream) -> str:
    """Say how far a gyro is turned about z against attitudes, and what to do, behind a blank; empty where it is not."""
    if abs(found.yaw) < ASKEW:
        return ""
    said = f" The gyro is turned by {np.rad2deg(found.yaw):.0f} degrees about z against {stream.name}"
    quarters = _quarters(found.yaw)
    columns = f": its columns are {_columns(quarter_turns(quarters))}" if quarters else ""
    # Turns do not show the accelerometer: one that sits elsewhere may be right as it is.
    return (
        f"{said}; if motors are in the body of {stream.name}, turn the gyro, and the accelerometer if it sits with it{columns}."
    )


@dataclass(frozen=True, eq=False)
class TurnedSensor:
    """A gyro that is turned about z against the body of attitudes."""

    said: str
    """What is turned by how much, and what to do."""
    axes: Array | None
    """Quarters of a turn that take it to that body, (3, 3); None where it is turned by no such number."""


def turned_sensor(log: Log) -> TurnedSensor | None:
    """Return how a gyro is turned about z against attitudes; None where it is not by any that can tell.

    Args:
        log: With a gyro.
    """
    found = None
    for stream in log.of_kind("attitude"):
        if not log.has("gyro") or went_back(log, "gyro", stream.name):
            continue
        turns = _map_of(log, stream)
        if isinstance(turns, str) or not turns.told or turns.inverse or not np.array_equal(turns.axes, np.eye(3)):
            continue
        if not (said := _turned_z(turns, stream).strip()):
            return None
        quarters = _quarters(turns.yaw)
        found = found or TurnedSensor(said, quarter_turns(quarters) if quarters else None)
    return found


def _quarters(yaw: float) -> int:
    """Return how many quarters of a turn an angle [rad] is near to; 0 of none."""
    near = round(yaw / (0.5 * np.pi))
    return near if abs(yaw - 0.5 * np.pi * near) < ASKEW else 0


def quarter_turns(count: int) -> Array:
    """Return the rotation by so many quarters of a turn about z, exact, (3, 3)."""
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(np.linalg.matrix_power(turn, count % 4))


def _columns(axes: Array) -> str:
    """Return a signed permutation as columns of a mapping: "-y", "x", "z"."""
    rows = [(int(np.argmax(np.abs(row))), float(row.sum())) for row in axes]
    return ", ".join(f'"{"-" * (sign < 0.0)}{"xyz"[k]}"' for k, sign in rows)


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
        return LogCheck(name, False, whose if opposite else world, 1.0, "attitude")
    if not opposite:
        return None
    said = f"The gyro's body z is down by {stream.name}: FRD named FLU. Turns about y and z are opposite; mend its frame"
    return LogCheck(name, False, f"{said}, or that of {stream.name}.", -1.0, "gyro")


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


def _turning(ratio: float) -> str:
    slow = ratio < 0.1
    return f"The gyro turns {1.0 / ratio if slow else ratio:.1f} times as {'slowly' if slow else 'fast'} as attitudes"


def _rate_unit(ratio: float) -> str:
    """Return the unit that rates of the file have where another was named, by how many times as fast they turn; else empty."""
    if abs(ratio / DEGREES - 1.0) < 0.1:
        return "deg/s and were taken for rad/s"
    return "rad/s and were taken for deg/s" if abs(ratio * DEGREES - 1.0) < 0.1 else ""
