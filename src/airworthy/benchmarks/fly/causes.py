"""Why flights failed, in one clause each, from what was recorded of them: what was hit, where a path was left, which bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from airworthy.benchmarks.fly.scene import point_text, region_of
from airworthy.core.arrays import Array, ArrayIndex
from airworthy.evaluation.metrics import FlightResult, flown_rows, path_distance
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import FlightStatus, TrackingProtocol, TrackingReference, collision_events
from airworthy.trajectories import Trajectory

if TYPE_CHECKING:
    from airworthy.scenes import Scene, SceneBatch
    from airworthy.vehicles.record import CollisionBody

__all__ = ["causes_of", "farthest_from_start"]


# Ours: a vehicle that hovers never keeps within this for so long, one that lies there always does.
_STILL_S, _STILL_M_S = 0.5, 0.02
_TOUCHING_M = 0.01
"""Ours: contact leaves a gap of millimetres."""


def farthest_from_start(trajectory: Trajectory) -> float:
    """Return how far from its start a flight along a trajectory may get before it counts as out of bounds [m]."""
    path = trajectory.sample(np.linspace(0.0, trajectory.duration, 400)).position
    # Ours: twice what the path spans and 20 m more is no deviation, but a vehicle that is not coming back.
    return 20.0 + 2.0 * float(np.ptp(path, axis=0).max())


def causes_of(
    table: FlightTable,
    results: Sequence[FlightResult],
    reference: TrackingReference,
    scene: Scene | None = None,
    protocol: TrackingProtocol | None = None,
    farthest: float = np.inf,
    bodies: Mapping[int, CollisionBody] | None = None,
) -> dict[int, str]:
    """Return a clause, by environment, for each flight that ended in `collision`, `off_course` or `out_of_bounds`.

    Args:
        table: The flights.
        results: What became of them, in the table's order.
        reference: What they were to follow.
        scene: Where they flew; None: in empty air.
        protocol: Thresholds by which they were judged; the defaults where None.
        farthest: From its start, beyond which a flight was out of bounds [m].
        bodies: Of the vehicles, by environment, to tell which of them lie on something in the end; None: no one is told of.
    """
    rules, flown, found = protocol or TrackingProtocol(), flown_rows(table), _Nearest(scene)
    causes = {}
    for k, result in enumerate(results):
        rows = flown.rows[flown.starts[k] : flown.starts[k + 1]]
        if not rows.size:
            continue
        if result.outcome == "collision":
            causes[result.env] = _collision(table, rows, found, rules)
        elif result.outcome == "out_of_bounds":
            causes[result.env] = _out_of_bounds(table, rows, scene, farthest)
        elif result.outcome == "off_course":
            lies = _lies_on(table, rows, found, (bodies or {}).get(result.env))
            causes[result.env] = _off_course(table, rows, result, reference, rules) + lies
    return {env: cause for env, cause in causes.items() if cause}


def _when(t: float, position: Array) -> str:
    return f"at {t:.2f} s, at {point_text(np.round(position, 3))} m"  # to the millimetre: less is no place


def _collision(table: FlightTable, rows: ArrayIndex, nearest: _Nearest, rules: TrackingProtocol) -> str:
    position, hit = table.vector("position"), np.flatnonzero(table.status[rows] == FlightStatus.COLLISION)
    clearance = table.columns.get("clearance_m")
    if hit.size:
        row, what = int(rows[hit[0]]), "it hit"
    elif clearance is not None:  # a body that rebounds is never stopped: events are told by distance alone
        events = np.flatnonzero(collision_events(clearance[rows], rules.collision_start_m, rules.collision_end_m))
        if not events.size:
            return ""
        row, what = int(rows[events[0]]), f"it came within {rules.collision_start_m:g} m of"
    elif "touches" in table.columns:
        touched = rows[np.flatnonzero(table.columns["touches"][rows] > 0)[:1]]
        if not touched.size:
            return ""
        t, at = float(table.t[touched[0]]), position[touched[0]].astype(np.float64)
        return f"a link hit {nearest.name(at, t, None)}, the nearest to its centre, {_when(t, at)}"
    else:
        return ""
    t, at = float(table.t[row]), position[row].astype(np.float64)
    recorded = None if clearance is None else float(clearance[row])
    return f"{what} {nearest.name(at, t, recorded)} {_when(t, at)}"


def _out_of_bounds(table: FlightTable, rows: ArrayIndex, scene: Scene | None, farthest: float) -> str:
    outside = np.flatnonzero(table.status[rows] == FlightStatus.OUT_OF_BOUNDS)
    if not outside.size:
        return ""
    row = int(rows[outside[0]])
    position = table.vector("position").astype(np.float64)
    when, region = _when(float(table.t[row]), position[row]), region_of(scene)
    if region is not None:
        beyond = np.maximum(region[0] - position[row], position[row] - region[1])
        axis = int(np.argmax(beyond))
        if beyond[axis] > 0.0:
            bound = region[0][axis] if position[row][axis] < region[0][axis] else region[1][axis]
            return f"it left the scene, whose bound is {'xyz'[axis]} = {bound + 0.0:.3g} m, {when}"
    away = float(np.linalg.norm(position[row] - position[int(rows[0])]))
    return f"it was {away:.3g} m from its start, beyond the {farthest:.3g} m that this course allows, {when}"


def _off_course(
    table: FlightTable, rows: ArrayIndex, result: FlightResult, reference: TrackingReference, rules: TrackingProtocol
) -> str:
    """Return the first of the rules of a finished course that was broken, in words."""
    position, t = table.vector("position")[rows].astype(np.float64), table.t[rows]
    if result.tracking_error_max_m > rules.path_distance_max_m:
        away = path_distance(position, reference.path)
        most, first = int(np.argmax(away)), int(np.argmax(away > rules.path_distance_max_m))
        return (
            f"it was farther than {rules.path_distance_max_m:g} m from its path from {t[first]:.2f} s on, {away[most]:.3g} m"
            f" {_when(float(t[most]), position[most])}"
        )
    if result.end_distance_m > rules.end_radius_m:
        return (
            f"it came no nearer to the last waypoint than {result.end_distance_m:.3g} m in its last {rules.end_window_s:g} s,"
            f" {rules.end_radius_m:g} m being near enough, and ended {_when(float(t[-1]), position[-1])}"
        )
    return (
        f"it flew along {result.coverage_percent:.3g} % of its path, less than {100.0 * rules.coverage_min:.3g} %, and ended"
        f" {_when(float(t[-1]), position[-1])}"
    )


def _lies_on(table: FlightTable, rows: ArrayIndex, nearest: _Nearest, body: CollisionBody | None) -> str:
    """Return on what a vehicle lies at the end, as a clause: it no longer moves, and something is within its body's reach."""
    clearance = table.columns.get("clearance_m")
    if body is None or clearance is None:
        return ""
    last = int(rows[-1])
    still = rows[table.t[rows] >= table.t[last] - _STILL_S]
    speed = float(np.linalg.norm(table.vector("velocity")[still], axis=1).max())
    used = {"sphere": 1, "cylinder": 2, "box": 3}[body.shape]  # of a cylinder half the height and a radius
    reach = float(np.linalg.norm(body.size[3 - used :]))
    if speed > _STILL_M_S or float(clearance[last]) > reach + _TOUCHING_M:
        return ""
    what = nearest.name(table.vector("position")[last].astype(np.float64), float(table.t[last]), float(clearance[last]))
    return f"; it lies still on {what} in the end"


class _Nearest:
    """Names what is nearest to a place in a scene, at a time."""

    def __init__(self, scene: Scene | None):
        self._scene = scene
        self._batch: SceneBatch | None = None

    def name(self, position: Array, t: float, recorded: float | None) -> str:
        """Return the name of the nearest instance; of a scene that moves, of the time that fits the recorded clearance [m]."""
        if self._scene is None:
            return "the ground"
        from airworthy.geometry.distance import clearance
        from airworthy.scenes import SceneBatch

        if self._batch is None:
            self._batch = SceneBatch(self._scene, 1)
        best, named = np.inf, "something"
        # Actors stand at their beginning in flights whose sensors do not see, and move in others.
        for moment in (0.0, t) if self._scene.actors else (0.0,):
            self._batch.advance(moment)
            gap = clearance(self._batch.geometry, position[None], env=0)
            differs = 0.0 if recorded is None else abs(float(gap.distance[0]) - recorded)
            if int(gap.instance[0]) >= 0 and differs < best:
                best, named = differs, repr(self._batch.instance_name(0, int(gap.instance[0])))
        return named
