"""A batch of flights on one time axis, ready to draw: statistics over all flights, lines for a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import wrap_angle, yaw_of
from airworthy.evaluation.metrics import FlownRows, flown_rows, path_distance, tilt_of
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import SUCCESSES, TrackingReference

REFERENCE_PERIOD_S = 0.05
GRID_POINTS = 400
"""Most instants drawn over time: about one per two pixels of a wide figure."""
BANDS = (0.05, 0.25, 0.5, 0.75, 0.95)


def reference_of_table(table: FlightTable) -> tuple[list[TrackingReference], dict[int, int]]:
    """Return the distinct references in a table's columns, and which one each environment followed.

    They are thinned to 20 Hz. Two flights share one where they agree as long as both lasted. A table without reference columns
    raises AirworthyError.
    """
    if not table.has_reference:
        raise AirworthyError(
            "This flight table has no reference columns: pass the reference that the flights should have followed."
        )
    t, position = table.t, table.vector("reference_position")
    velocity = np.nan_to_num(table.vector("reference_velocity")) if _has(table, "velocity") else np.zeros_like(position)
    yaw = np.nan_to_num(table.columns["reference_yaw_rad"]) if "reference_yaw_rad" in table.columns else np.zeros(len(t))
    spans = [
        np.arange(a, b)[np.isfinite(position[a:b]).all(axis=1)]
        for a, b in zip(table.starts[:-1], table.starts[1:], strict=True)
    ]
    groups: list[ArrayInt] = []
    owner: dict[int, int] = {}
    # Longest first, so that a flight that ended early finds the whole of what it shares.
    for index in sorted(range(len(spans)), key=lambda i: (-len(spans[i]), i)):
        rows = spans[index]
        if rows.size:
            owner[int(table.envs[index])] = _group_of(rows, groups, t, position)
    return [_reference(rows, t, position, velocity, yaw) for rows in groups], owner


@dataclass(frozen=True)
class FlightBatch:
    """Flights, what they should have followed, and where each row falls on a common time axis."""

    table: FlightTable
    references: Sequence[TrackingReference]
    reference_of_env: Mapping[int, int]

    @cached_property
    def flown(self) -> FlownRows:
        """The rows that count."""
        return flown_rows(self.table)

    @cached_property
    def t(self) -> Array:
        """Common time axis [s], at most `GRID_POINTS` recorded instants, shape (T,)."""
        times = np.unique(self.table.t[self.flown.rows])
        if times.size <= GRID_POINTS:
            return times
        return times[np.unique(np.round(np.linspace(0, times.size - 1, GRID_POINTS)).astype(int))]

    @cached_property
    def rows(self) -> ArrayInt:
        """Index into the flown rows of each flight's last sample at or before each instant, -1 outside the flight, (env, T)."""
        rows = np.full((self.table.env_count, self.t.size), -1, dtype=np.int64)
        times = self.table.t[self.flown.rows]
        for env, (first, last) in enumerate(zip(self.flown.starts[:-1], self.flown.starts[1:], strict=True)):
            if last > first:
                found = np.searchsorted(times[first:last], self.t, side="right") - 1
                inside = (found >= 0) & (self.t <= times[last - 1])
                rows[env, inside] = first + found[inside]
        return rows

    def over_time(self, values: ArrayLike) -> Array:
        """Return values of the flown rows (n,) on the common time axis, NaN where a flight had ended, shape (env, T)."""
        values = np.asarray(values, dtype=np.float64)
        if values.size == 0:
            return np.full(self.rows.shape, np.nan)
        return np.where(self.rows >= 0, values[self.rows], np.nan)

    def share_over_time(self, flags: ArrayLike) -> Array:
        """Return the share of the samples since the last instant that have a flag set, over all flights that flew then, shape
        (T,)."""
        total = np.concatenate(([0.0], np.cumsum(np.asarray(flags, dtype=np.float64))))
        before = np.concatenate((self.rows[:, :1] - 1, self.rows[:, :-1]), axis=1)
        known = (self.rows >= 0) & (before >= -1)
        count = np.sum(np.where(known, self.rows - before, 0), axis=0)
        flagged = np.sum(np.where(known, total[self.rows + 1] - total[before + 1], 0.0), axis=0)
        return flagged / np.maximum(count, 1)

    def vector(self, field: str) -> Array:
        """Return a vector of the table at the flown rows, shape (n, 3 or 4)."""
        return self.table.vector(field)[self.flown.rows].astype(np.float64)

    def column(self, name: str) -> Array:
        """Return a column of the table at the flown rows, shape (n,)."""
        return np.asarray(self.table.columns[name][self.flown.rows], dtype=np.float64)

    @cached_property
    def box_of_references(self) -> Array:
        """Least and greatest coordinates of the references [m], shape (2, 3)."""
        points = np.concatenate([reference.path for reference in self.references])
        return np.stack((points.min(axis=0), points.max(axis=0)))

    @cached_property
    def box(self) -> Array:
        """Corners of the space that pictures show, shape (2, 3): the references with room round them.

        One flight that runs away would otherwise shrink all others to a dot.
        """
        low, high = self.box_of_references
        room = max(2.0, 0.5 * float(np.max(high - low)))
        return np.stack((low - room, high + room))

    def left_picture(self, index: int) -> bool:
        """Tell whether a flight left the space that pictures show."""
        return self._rows_shown(index).size < int(self.flown.starts[index + 1] - self.flown.starts[index])

    def _rows_shown(self, index: int) -> ArrayInt:
        """Table rows of one flight until it leaves the box."""
        rows = self.flown.rows[self.flown.starts[index] : self.flown.starts[index + 1]]
        position = np.stack([self.table.columns[f"position_{axis}_m"][rows] for axis in "xyz"], axis=-1)
        outside = np.flatnonzero(np.any((position < self.box[0]) | (position > self.box[1]), axis=1))
        return rows[: outside[0]] if outside.size else rows

    def path(self, index: int, points: int) -> Array:
        """Return positions of one flight inside the box, thinned evenly to a number of points, shape (k, 3)."""
        rows = self._rows_shown(index)
        if rows.size > points:
            rows = rows[np.unique(np.round(np.linspace(0, rows.size - 1, points)).astype(int))]
        return np.stack([self.table.columns[f"position_{axis}_m"][rows] for axis in "xyz"], axis=-1).astype(np.float64)

    @cached_property
    def signals(self) -> dict[str, Array]:
        """Derived values of the flown rows: distance to the path and to the moving reference, speed, tilt, yaw, its error."""
        t, position, attitude = self.table.t[self.flown.rows], self.vector("position"), self.vector("attitude")
        signals = {name: np.empty(t.size) for name in ("distance", "matched", "yaw", "yaw_error")}
        heading = yaw_of(attitude)
        owner = np.repeat(np.arange(self.table.env_count), np.diff(self.flown.starts))
        which = np.array([self.reference_of_env.get(int(env), 0) for env in self.table.envs], dtype=np.int64)[owner]
        for index, reference in enumerate(self.references):
            mine = which == index
            wanted = reference.yaw_at(t[mine])
            error = wrap_angle(heading[mine] - wanted)
            signals["distance"][mine] = path_distance(position[mine], reference.path)
            signals["matched"][mine] = np.linalg.norm(position[mine] - reference.position_at(t[mine]), axis=1)
            # Beside its reference, a heading may pass +-180 degrees without a jump.
            signals["yaw"][mine], signals["yaw_error"][mine] = wanted + error, error
        signals["speed"] = np.linalg.norm(self.vector("velocity"), axis=1)
        signals["tilt"] = tilt_of(attitude)
        return signals


def bands(matrix: Array, shares: Sequence[float] = BANDS) -> Array:
    """Return quantiles over flights at each instant, flights that had ended left out, shape (len(shares), T)."""
    if matrix.shape[0] == 0:
        return np.full((len(shares), matrix.shape[1]), np.nan)
    ordered = np.sort(matrix, axis=0)  # NaN last
    count = np.sum(np.isfinite(matrix), axis=0)
    position = np.asarray(shares)[:, None] * np.maximum(count - 1, 0)
    low = np.floor(position).astype(int)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    columns = np.arange(matrix.shape[1])[None, :]
    return ordered[low, columns] + (position - low) * (ordered[high, columns] - ordered[low, columns])


def choose_drawn(flights: Sequence[Mapping[str, object]], count: int) -> list[int]:
    """Return flights to draw: up to a third of them failures, the rest evenly from the best to the worst tracking error."""
    if len(flights) <= count:
        return list(range(len(flights)))
    failed = [i for i, flight in enumerate(flights) if flight["outcome"] not in SUCCESSES]
    drawn = [failed[i] for i in _evenly(len(failed), count // 3)]
    others = sorted(set(range(len(flights))) - set(drawn), key=lambda i: (_error(flights[i]), i))
    return sorted(drawn + [others[i] for i in _evenly(len(others), count - len(drawn))])


def typical_flight(flights: Sequence[Mapping[str, object]]) -> int:
    """Return the flight with the median tracking error, among the successful ones where there are any."""
    succeeded = [i for i, flight in enumerate(flights) if flight["outcome"] in SUCCESSES]
    among = succeeded or list(range(len(flights)))
    return sorted(among, key=lambda i: (_error(flights[i]), i))[(len(among) - 1) // 2]


def _error(flight: Mapping[str, object]) -> float:
    value = flight.get("tracking_error_m")
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else float("inf")


def _evenly(count: int, wanted: int) -> list[int]:
    return sorted({int(i) for i in np.round(np.linspace(0, count - 1, min(count, wanted)))}) if count and wanted else []


def _has(table: FlightTable, what: str) -> bool:
    return f"reference_{what}_x_m_s" in table.columns


def _group_of(rows: ArrayInt, groups: list[ArrayInt], t: Array, position: ArrayF32) -> int:
    for index, other in enumerate(groups):
        same = other[: rows.size]
        if np.array_equal(t[same], t[rows]) and np.array_equal(position[same], position[rows]):
            return index
    groups.append(rows)
    return len(groups) - 1


def _reference(rows: ArrayInt, t: Array, *values: NDArray[np.floating]) -> TrackingReference:
    # 20 Hz, the rate of every reference here: between its samples a path as recorded deviates by about a millimetre.
    slots = np.floor((t[rows] - t[rows[0]]) / REFERENCE_PERIOD_S + 1e-6)
    _, first = np.unique(slots, return_index=True)
    rows = rows[np.union1d(first, [rows.size - 1])]
    rows = rows[np.concatenate(([True], np.diff(t[rows]) > 0.0))]
    position, velocity, yaw = (value[rows].astype(np.float64) for value in values)
    return TrackingReference(t[rows], position, velocity, np.unwrap(yaw))
