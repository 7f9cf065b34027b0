"""Metrics of each flight, from a flight table and the reference it should have followed.

Only *flown* rows count: those before a flight diverged (status, or a value that is not finite), and up to the first row of a
collision or of being out of bounds that lasts to the end of the record. Tracking error, proximity percentile, collision rate
and outcome are those of SOUS VIDE (arXiv:2412.16346); means are over samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import wrap_angle, yaw_of
from airworthy.core.native_kernel import thread_limit
from airworthy.core.threads import share
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import FlightStatus, TrackingProtocol, TrackingReference, classify_tracking, collision_events
from airworthy.tasks.outcomes import check_outcome

# -----------------------------------------------------------------------------------------------------------------------------
# Distance from points to a polyline, exact, for millions of points; how much of a path flights went along, in its order.

_CHUNK_PAIRS = 1 << 17
"""Points times candidates of one query: some ten milliseconds of work, which threads share."""
_FIRST_CANDIDATES = 4
_PROGRESS_POINTS = 48


def path_distance(points: ArrayLike, path: ArrayLike) -> Array:
    """Return the distance of each point to the nearest point of a polyline (not only to its corners).

    The nearest segments by midpoint are found in a tree and measured exactly. A segment's midpoint is at most half its length
    farther than its nearest point, so once the next midpoint in line is farther than the best distance found plus half the
    longest segment, no other segment can be nearer; points for which that is not yet proved look at twice as many.

    Args:
        points: [m], shape (n, 3); finite.
        path: Corners of the polyline [m], shape (at least 1, 3); finite.

    Returns:
        Distances [m], shape (n,).
    """
    points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    path = np.asarray(path, dtype=np.float64).reshape(-1, 3)
    if len(path) == 1 or len(points) == 0:
        return np.linalg.norm(points - path[0], axis=1)
    start, along = path[:-1], np.diff(path, axis=0)
    reach = 0.5 * float(np.max(np.linalg.norm(along, axis=1)))
    distance = np.empty(len(points))
    tree = _tree(start + 0.5 * along)

    def measure(task: tuple[ArrayInt, int, ArrayBool]) -> None:
        part, count, unproved = task
        # One thread per query: SciPy's own outlive an interrupt, and then use memory that has been given back.
        midpoint_distance, candidates = tree.query(points[part], k=range(1, count + 1), workers=1)
        distance[part] = _nearest(points[part], start, along, candidates)
        unproved[:] = midpoint_distance[:, -1] < distance[part] + reach

    pending, count = np.arange(len(points)), min(_FIRST_CANDIDATES, len(start))
    while pending.size:
        parts = np.array_split(pending, 1 + pending.size * count // _CHUNK_PAIRS)
        tasks = [(part, count, np.zeros(part.size, dtype=np.bool_)) for part in parts]
        # All or one: a pool stays for each number of threads, and two pools would be more threads than allowed.
        share(measure, tasks, thread_limit() if len(tasks) > 1 else 1, "airworthy-paths")
        pending = np.concatenate([part[unproved] for part, _, unproved in tasks]) if count < len(start) else pending[:0]
        count = min(2 * count, len(start))
    return distance


def path_progress(t: Array, position: Array, path_t: Array, path: Array, reach: float, ahead: float) -> Array:
    """Return how far flights came along a path, from its beginning, without leaving parts of it out.

    Each flight keeps a place on the path. From sample to sample it moves on to the nearest place among those a little farther
    on: at most half a turn of radius `reach` and a quarter of the path, so that neither a crossing nor the end of a closed
    course is taken for progress; at most where the reference is `ahead` later; and in all at most twice the way that was
    flown, so that hovering is none.

    Args:
        t: Times of samples [s], (samples, flights).
        position: World [m], (samples, flights, 3); NaN after a flight's end.
        path_t: Times of the path's points [s], (points,).
        path: World [m], (points, 3).
        reach: Distance from the path within which it is still followed [m].
        ahead: [s]

    Returns:
        Length of the path up to each flight's last position [m], (flights,).
    """
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    arc = np.concatenate(([0.0], np.cumsum(steps)))
    length = float(arc[-1])
    progress = np.zeros(position.shape[1])
    if length <= 0.0:
        return progress
    # A farther jump than half a turn of radius `reach` could skip a loop of the course.
    window = min(np.pi * reach, 0.25 * length)
    offsets = np.linspace(0.0, window, _PROGRESS_POINTS)
    # Repeated points have no length: interpolation over them would be 0 / 0.
    moving = np.concatenate(([True], steps > 0.0))
    corners, knots = path[moving], arc[moving]
    flown, before = np.zeros_like(progress), position[0]
    for now, here in zip(t, position, strict=True):
        flown += np.nan_to_num(np.linalg.norm(here - before, axis=-1))
        before = here
        # Twice what was flown: cutting a corner is progress, hovering near a crossing is none.
        most = np.minimum(2.0 * flown, np.interp(now + ahead, path_t, arc))
        s = progress[:, None] + offsets
        s = np.minimum(s, np.maximum(progress, most)[:, None])
        points = np.stack([np.interp(s, knots, corners[:, k]) for k in range(3)], axis=-1)
        distance = np.linalg.norm(points - here[:, None], axis=-1)
        nearest = np.argmin(np.nan_to_num(distance, nan=np.inf), axis=1)
        progress = s[np.arange(len(progress)), nearest]
    return progress


def segment_distance(points: Array, start: Array, along: Array) -> Array:
    """Return the distance of points (..., 3) to segments that start at `start` and run `along`, both (..., 3); zero length is a
    point.

    Args:
        points: [m], (..., 3).
        start: Of the segments [m], in the same frame, (..., 3).
        along: From their starts to their ends [m], (..., 3).
    """
    length_squared = np.einsum("...i,...i", along, along)
    offset = points - start
    share = np.einsum("...i,...i", offset, along) / np.where(length_squared > 0.0, length_squared, 1.0)
    rest = offset - np.clip(share, 0.0, 1.0)[..., None] * along
    return np.sqrt(np.einsum("...i,...i", rest, rest))


def _nearest(points: Array, start: Array, along: Array, candidates: ArrayInt) -> Array:
    best = np.full(len(points), np.inf)
    for column in candidates.T:
        np.minimum(best, segment_distance(points, start[column], along[column]), out=best)
    return best


def _tree(points: Array):  # type: ignore[no-untyped-def]
    from scipy.spatial import cKDTree

    return cKDTree(points)


# -----------------------------------------------------------------------------------------------------------------------------

NAN = float("nan")


@dataclass(frozen=True)
class FlightResult:
    """What one flight did. A value that nothing was flown or recorded for is NaN."""

    env: int
    outcome: str
    duration_s: float = 0.0
    """Time flown."""
    tracking_error_m: float = NAN
    """Mean distance to the nearest point of the reference path."""
    tracking_error_max_m: float = NAN
    time_matched_error_m: float = NAN
    """Mean distance to where the reference was at the same time."""
    proximity_percent: float = NAN
    """Share of samples within `TrackingProtocol.proximity_m` of the path."""
    end_distance_m: float = NAN
    """Smallest distance to the last waypoint within the end window."""
    yaw_error_median_rad: float = NAN
    yaw_error_end_rad: float = NAN
    collisions: int = 0
    collisions_per_m: float = NAN
    path_length_m: float = 0.0
    saturation_percent: float = NAN
    """Share of samples with a rotor command at a limit."""
    speed_max_m_s: float = NAN
    tilt_max_rad: float = NAN
    """Largest angle between the body's z axis and the vertical."""
    command_mean_square_rad2_s2: float = NAN
    """Control effort: mean over samples and rotors of the squared rotor speed command."""
    samples: int = 0
    """Flown rows."""
    coverage_percent: float = NAN
    """Share of the reference path that was flown along, in its order."""


@dataclass(frozen=True)
class FlownRows:
    """The rows of a table that were flown, all flights behind one another."""

    rows: ArrayInt
    """Index into the table, shape (n,)."""
    starts: ArrayInt
    """Where each flight starts among them, and n at the end, shape (env_count + 1,)."""
    diverged: ArrayBool
    """Whether each flight diverged, shape (env_count,)."""
    out_of_bounds: ArrayBool
    """Whether each flight left the world, shape (env_count,)."""


def flown_rows(table: FlightTable) -> FlownRows:
    """Find the rows that count; see the top of this module."""
    finite = np.ones(table.row_count, dtype=bool)
    for field in ("position", "velocity", "attitude"):
        finite &= np.isfinite(table.vector(field)).all(axis=1)
    bad = ~finite | (table.status == FlightStatus.DIVERGED)
    stops, diverged, outside = [], [], []
    for first, last in zip(table.starts[:-1], table.starts[1:], strict=True):
        broken = np.flatnonzero(bad[first:last])
        stop = int(first + broken[0]) if broken.size else int(last)
        diverged.append(broken.size > 0)
        outside.append(bool(np.any(table.status[first:stop] == FlightStatus.OUT_OF_BOUNDS)))
        stops.append(_end(table.status, int(first), stop))
    counts = np.array(stops, dtype=np.int64) - table.starts[:-1]
    rows = [np.arange(first, stop) for first, stop in zip(table.starts[:-1], stops, strict=True)]
    return FlownRows(
        np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64),
        np.concatenate(([0], np.cumsum(counts))),
        np.array(diverged, dtype=bool),
        np.array(outside, dtype=bool),
    )


def _end(status: ArrayAny, first: int, stop: int) -> int:
    """End of a flight: after the first row of a collision, or of having left the bounds, that lasts to the end of the record.

    What comes after it is a frozen copy or a fall, neither of which anybody flew.
    """
    flying = np.flatnonzero(status[first:stop] == FlightStatus.FLYING)
    return min(stop, first + (int(flying[-1]) + 2 if flying.size else 1))


def evaluate_tracking(
    table: FlightTable,
    reference: TrackingReference | Sequence[TrackingReference],
    protocol: TrackingProtocol | None = None,
    *,
    reference_of_env: Mapping[int, int] | None = None,
    ended_by: Mapping[int, str] | None = None,
) -> list[FlightResult]:
    """Judge every flight of a table against its reference.

    Args:
        table: The flights.
        reference: One for all, or several.
        protocol: Thresholds; the defaults of `TrackingProtocol` where None.
        reference_of_env: Index of the reference of each environment id; 0 where not named.
        ended_by: Outcome of environments that something outside the table ended (`pilot_error`, `aborted`). Neither can be
            turned into a success, and a flight that diverged stays so.

    Returns:
        One result per environment of the table, in its order.
    """
    protocol = protocol or TrackingProtocol()
    references = [reference] if isinstance(reference, TrackingReference) else list(reference)
    chosen = _choose(table, references, reference_of_env or {})
    flown = flown_rows(table)
    signals = _signals(table, flown, references, chosen, protocol.yaw_window_s)
    along = _progress(signals, flown, references, chosen, protocol)
    results = []
    for index, env in enumerate(table.envs):
        rows = slice(int(flown.starts[index]), int(flown.starts[index + 1]))
        measured = {name: values[rows] for name, values in signals.items()}
        reference = references[chosen[index]]
        result = _measure(int(env), measured, reference, protocol)
        share = float(along[index]) / reference.length if reference.length > 0.0 else 1.0
        results.append(replace(result, coverage_percent=100.0 * share if result.samples else NAN))
    return _with_outcomes(results, flown, references, chosen, protocol, ended_by or {}, along)


def _progress(
    s: dict[str, Any], flown: FlownRows, references: list[TrackingReference], chosen: list[int], protocol: TrackingProtocol
) -> Array:
    """Return how far each flight came along its path [m], (flights,)."""
    along = np.zeros(len(chosen))
    counts = np.diff(flown.starts)
    for index, reference in enumerate(references):
        mine = np.flatnonzero((np.array(chosen) == index) & (counts > 0))
        if not mine.size:
            continue
        rows = flown.starts[mine] + np.arange(0, int(counts[mine].max()), _thinning(s["t"], flown, mine, reference))[:, None]
        inside = rows < flown.starts[mine + 1]
        last = flown.starts[mine + 1] - 1
        rows = np.concatenate((np.where(inside, rows, last), last[None]))
        inside = np.concatenate((inside, np.ones((1, len(mine)), bool)))
        position = np.where(inside[..., None], s["position"][rows], NAN)
        reach = protocol.path_distance_max_m
        along[mine] = path_progress(s["t"][rows], position, reference.t, reference.position, reach, protocol.end_window_s)
    return along


def _thinning(t: Array, flown: FlownRows, mine: ArrayInt, reference: TrackingReference) -> int:
    """Return every how many rows are enough to follow a flight: ten a second, more where the reference is fast."""
    first, stop = int(flown.starts[mine[0]]), int(flown.starts[mine[0] + 1])
    if stop - first < 2:
        return 1
    speed = float(np.max(np.linalg.norm(reference.velocity, axis=1), initial=0.0))
    return max(1, int(min(0.1, 0.5 / max(speed, 1e-9)) * (stop - first - 1) / max(t[stop - 1] - t[first], 1e-9)))


def _choose(table: FlightTable, references: list[TrackingReference], index_of: Mapping[int, int]) -> list[int]:
    if not references:
        raise AirworthyError("Judging a tracking flight needs at least one reference; none was given.")
    chosen = [int(index_of.get(int(env), 0)) for env in table.envs]
    if any(not 0 <= index < len(references) for index in chosen):
        raise AirworthyError(f"An environment names reference {max(chosen)}, but there are {len(references)} (0 is the first).")
    return chosen


def _signals(
    table: FlightTable, flown: FlownRows, references: list[TrackingReference], chosen: list[int], window: float
) -> dict[str, Any]:
    """Per flown row: everything that the metrics are means, maxima or counts of."""
    rows = flown.rows
    t, position = table.t[rows], table.vector("position")[rows].astype(np.float64)
    attitude = table.vector("attitude")[rows].astype(np.float64)
    velocity = table.vector("velocity")[rows].astype(np.float64)
    distance, matched, yaw_error = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
    owner = np.repeat(np.asarray(chosen, dtype=np.int64), np.diff(flown.starts))
    heading = yaw_of(attitude)
    for index, reference in enumerate(references):
        mine = owner == index
        distance[mine] = path_distance(position[mine], reference.path)
        matched[mine] = np.linalg.norm(position[mine] - reference.position_at(t[mine]), axis=1)
        yaw_error[mine] = np.abs(wrap_angle(heading[mine] - reference.yaw_along(t[mine], position[mine], window)))
    signals: dict[str, Any] = {"t": t, "position": position, "distance": distance, "matched": matched, "yaw_error": yaw_error}
    signals["speed"] = np.linalg.norm(velocity, axis=1)
    signals["tilt"] = tilt_of(attitude)
    signals["status"] = table.status[rows]
    for name in ("saturated", "clearance_m", "touches"):
        if name in table.columns:
            signals[name] = table.columns[name][rows]
    command = table.rotors("rotor_command")[rows].astype(np.float64)
    if command.shape[1]:
        known = np.isfinite(command)
        squares = np.sum(np.where(known, command, 0.0) ** 2, axis=1)
        signals["effort"] = np.where(known.any(axis=1), squares / np.maximum(known.sum(axis=1), 1), NAN)
    return signals


def tilt_of(attitude: Array) -> Array:
    """Return the angle between the body's z axis and the vertical [rad] of unit quaternions (..., 4), shape (...)."""
    # The half-angle form keeps its digits near 0, where arccos of the axis' z component would not.
    return np.asarray(
        2.0 * np.arctan2(np.hypot(attitude[..., 0], attitude[..., 1]), np.hypot(attitude[..., 2], attitude[..., 3]))
    )


def _measure(env: int, s: dict[str, Any], reference: TrackingReference, protocol: TrackingProtocol) -> FlightResult:
    """Numbers of one flight; its outcome is decided afterwards."""
    if s["t"].size == 0:
        return FlightResult(env, "aborted")
    duration = float(s["t"][-1] - s["t"][0])
    length = float(np.sum(np.linalg.norm(np.diff(s["position"], axis=0), axis=1)))
    late = s["t"] >= s["t"][-1] - protocol.end_window_s
    collisions = _collisions(s, protocol)
    return FlightResult(
        env=env,
        outcome="aborted",
        duration_s=duration,
        tracking_error_m=float(np.mean(s["distance"])),
        tracking_error_max_m=float(np.max(s["distance"])),
        time_matched_error_m=float(np.mean(s["matched"])),
        proximity_percent=100.0 * float(np.mean(s["distance"] <= protocol.proximity_m)),
        end_distance_m=float(np.min(np.linalg.norm(s["position"][late] - reference.position[-1], axis=1))),
        yaw_error_median_rad=float(np.median(s["yaw_error"])),
        yaw_error_end_rad=float(s["yaw_error"][-1]),
        collisions=collisions,
        collisions_per_m=collisions / length if length > 0.0 else NAN,
        path_length_m=length,
        saturation_percent=100.0 * float(np.mean(s["saturated"] != 0)) if "saturated" in s else NAN,
        speed_max_m_s=float(np.max(s["speed"])),
        tilt_max_rad=float(np.max(s["tilt"])),
        command_mean_square_rad2_s2=_finite_mean(s["effort"]) if "effort" in s else NAN,
        samples=int(s["t"].size),
    )


def _collisions(s: dict[str, Any], protocol: TrackingProtocol) -> int:
    """Collision events: by clearance where it was recorded, or else each time that the status becomes `COLLISION`.

    A wide body may touch where its centre's clearance is not yet under the protocol's. Of vehicles with joints, whose centre is
    often outside of them, touches are counted.
    """
    if "touches" in s:
        return int(s["touches"][-1])
    if "clearance_m" in s:
        events = int(np.sum(collision_events(s["clearance_m"], protocol.collision_start_m, protocol.collision_end_m)))
        if events:
            return events
    hit = s["status"] == FlightStatus.COLLISION
    return int(np.sum(hit & ~np.concatenate(([False], hit[:-1]))))


def _finite_mean(values: Array) -> float:
    values = values[np.isfinite(values)]
    return float(np.mean(values)) if values.size else NAN


def _with_outcomes(
    results: list[FlightResult],
    flown: FlownRows,
    references: list[TrackingReference],
    chosen: list[int],
    protocol: TrackingProtocol,
    ended_by: Mapping[int, str],
    along: Array,
) -> list[FlightResult]:
    def column(name: str) -> Array:
        return np.array([getattr(result, name) for result in results], dtype=np.float64)

    if not results:
        return []
    needed = np.array([references[index].duration for index in chosen]) - protocol.duration_tolerance_s
    lengths = np.array([references[index].length for index in chosen])
    outcomes = classify_tracking(
        protocol,
        diverged=flown.diverged,
        out_of_bounds=flown.out_of_bounds,
        collisions=column("collisions"),
        covered=(column("duration_s") >= needed) & (column("samples") > 0),
        end_distance=column("end_distance_m"),
        path_distance_max=column("tracking_error_max_m"),
        yaw_error_median=column("yaw_error_median_rad"),
        yaw_error_end=column("yaw_error_end_rad"),
        went_along=along >= lengths - np.maximum((1.0 - protocol.coverage_min) * lengths, protocol.end_radius_m),
    )
    final = [_override(str(outcome), ended_by.get(result.env)) for outcome, result in zip(outcomes, results, strict=True)]
    return [replace(result, outcome=outcome) for result, outcome in zip(results, final, strict=True)]


def _override(outcome: str, ended_by: str | None) -> str:
    if ended_by is None or outcome == "diverged":
        return outcome
    return check_outcome(ended_by)
