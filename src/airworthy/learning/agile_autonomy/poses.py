"""Instants without flights: vehicles set down in a place at drawn poses and speeds, with what the expert would do from there.

A flight's instants resemble one another, and those of an expert tell nothing of what to do where it never comes. Drawn ones
cost less, differ all, and hold what a student meets when it errs: courses askew to the line, trunks straight ahead, bodies that
lean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import NavigationConfig, Perturbation
from airworthy.benchmarks.navigation.missions import draws_of, mission_of, scene_of
from airworthy.benchmarks.navigation.sensing import depth_camera
from airworthy.core.arrays import Array, ArrayIndex, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_matrix
from airworthy.core.native_kernel import thread_limit
from airworthy.core.random import flight_key
from airworthy.learning.agile_autonomy.config import StudentOptions
from airworthy.learning.agile_autonomy.instants import Instants
from airworthy.learning.agile_autonomy.rollouts import LABEL_SPEED, expert_points, plan_of, stored_fields
from airworthy.planners.agile_autonomy.level import COLUMNS, ROWS, level_views
from airworthy.planners.agile_autonomy.sight import STEPS, encoded, reference_directions, state_rows
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping import maps_of_scene
from airworthy.planners.mapping.boxes import CAMERA_OFFSET
from airworthy.planners.sampling_expert import MAP_SETTINGS
from airworthy.planners.sampling_expert.planner import (
    CEILING,
    FLOOR,
    FreeWay,
    Polyline,
    free_way,
    reference_goal,
    smoothed_routes,
)
from airworthy.planners.sampling_expert.sampling import GRAVITY
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.camera import Camera
from airworthy.sensors.noise import Draw
from airworthy.sensors.sampling import SensorView

__all__ = ["posed"]

# Ours: any number; draws of their own.
_TAG = 0x504F
# Ours, all that follow: wider than what students were seen to fly.
_ASIDE = 2.5
"""Standard deviation of places off the line from start to goal [m]."""
_ASKEW, _CLIMBING, _NOSE = 0.35, 0.1, 0.12
"""Standard deviations of the course off the reference, of climbing, and of the nose off the course [rad]."""
_PUSHED = (2.0, 3.0, 1.0)
"""Standard deviations of accelerations ahead, to the side and up [m/s^2]."""
_DRAG = 0.4
"""Most that a body is held back, per speed [1/s]."""
_TURNING = (0.7, 0.7, 0.5)
"""Standard deviations of body rates [rad/s]."""
_LEAN = 2.0
"""Times gravity, what a vehicle pushes at most."""
_FREE = 0.45
"""From the vehicle's middle to the nearest thing, at least [m]."""
_AHEAD, _AROUND = 14.0, 7.0
"""So far toward its reference and to either side a way is looked for [m]."""
_COARSE = 2
"""Cells of the map along an edge of those in which it is looked for."""
_TRIES = 20


def posed(options: StudentOptions, number: int, alive: Callable[[], None] = lambda: None) -> Instants:
    """Return instants at drawn poses in the places of a batch.

    Args:
        options: Of the training; `poses` of them are drawn.
        number: Of the batch.
        alive: Called place by place; raises where they are not wanted any more.

    Raises:
        AirworthyError: The expert labelled nothing.
    """
    plan, rng = plan_of(options, number), np.random.default_rng([options.seed, number, _TAG])
    config = NavigationConfig(
        seed=options.seed,
        layouts=plan.layouts,
        a_max="vehicle",
        perturb=Perturbation(depth_noise=options.depth_noise, depth_dropout=options.depth_dropout),
    )
    flights = list({flight.configuration: flight for flight in plan.flights}.values())
    mission = mission_of(flights, config, draws_of(flights, config.seed, config.perturb))
    batch = SceneBatch([scene_of(flight, config) for flight in flights], len(flights), threads=thread_limit())
    maps = maps_of_scene(batch, mission, MAP_SETTINGS)
    camera, parts = Camera(depth_camera(config, MapSettings(rate=60.0))), []
    share = -(-options.poses // len(flights))
    for k in range(len(flights)):
        alive()
        drawn = _drawn(maps, mission, k, share, options, rng)
        key = np.asarray(flight_key(options.seed, np.arange(len(drawn.position)), _TAG + number))
        parts.append(_labelled(maps, mission, k, drawn, key, options) | {"drawn": drawn, "key": key})
    found = [_seen(batch, camera, k, part, options.reach) for k, part in enumerate(parts)]
    if not sum(len(part["state"]) for part in found):
        raise AirworthyError(
            f"The expert found no way from any of {options.poses} poses in {plan.scenario} (batch {number}): give more samples,"
            " or other scenarios."
        )
    cells, corners = stored_fields(maps, range(len(flights)))
    arrays = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    figures = {
        "flights": 0,
        "success": 0,
        "unlabelled": share * len(flights) - len(arrays["state"]),
        "helped": 0,
        "decisions": 0,
    }
    return Instants(**arrays, fields=cells, corners=corners, figures=figures)


# ---- What is drawn --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Drawn:
    """n poses in one place."""

    position: Array
    velocity: Array
    attitude: Array
    rate: Array
    direction: Array
    """Toward the reference, (n, 3) each, attitudes (n, 4), world but for body rates."""

    def some(self, which: ArrayIndex) -> _Drawn:
        return _Drawn(*(getattr(self, name)[which] for name in ("position", "velocity", "attitude", "rate", "direction")))


def _drawn(maps: Any, mission: Mission, k: int, count: int, options: StudentOptions, rng: np.random.Generator) -> _Drawn:
    position = _places(maps, mission, k, count, rng)
    count = len(position)
    start, goal = (np.tile(end[k], (count, 1)) for end in (mission.start, mission.goal))
    direction = reference_directions(position, start, goal, rng.uniform(options.slowest, options.fastest, count))
    # Slow ones among them, as at the start of a flight.
    speed = (options.fastest + 1.0) * rng.uniform(0.0, 1.0, count) ** 0.8
    course = np.arctan2(direction[:, 1], direction[:, 0]) + _ASKEW * rng.normal(size=count)
    climb = _CLIMBING * rng.normal(size=count)
    velocity = speed[:, None] * np.stack(
        [np.cos(climb) * np.cos(course), np.cos(climb) * np.sin(course), np.sin(climb)], axis=1
    )
    nose = course + _NOSE * rng.normal(size=count)
    c, s, zero = np.cos(course), np.sin(course), np.zeros(count)
    ahead, left, up = np.array(_PUSHED)[:, None] * rng.normal(size=(3, count))
    push = np.stack([c * ahead - s * left, s * ahead + c * left, np.maximum(up, -0.5 * GRAVITY) + GRAVITY], axis=1)
    push += rng.uniform(0.0, _DRAG, (count, 1)) * velocity * [1.0, 1.0, 0.0]
    # What is asked beyond the strongest push leans less.
    level = np.linalg.norm(push[:, :2], axis=1)
    most = np.sqrt(np.maximum((_LEAN * GRAVITY) ** 2 - push[:, 2] ** 2, 0.0))
    push[:, :2] *= np.minimum(1.0, most / np.maximum(level, 1e-9))[:, None]
    z = push / np.linalg.norm(push, axis=1, keepdims=True)
    x = np.cross(np.stack([-np.sin(nose), np.cos(nose), zero], axis=1), z)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    attitude = np.asarray(from_matrix(np.stack([x, np.cross(z, x), z], axis=-1)))
    return _Drawn(position, velocity, attitude, np.array(_TURNING) * rng.normal(size=(count, 3)), direction)


def _places(maps: Any, mission: Mission, k: int, count: int, rng: np.random.Generator) -> Array:
    """Return positions (at most count, 3) around the line of a mission that are off everything."""
    start, goal, lower, upper = (getattr(mission, name)[k] for name in ("start", "goal", "lower", "upper"))
    way = (goal - start)[:2] / np.linalg.norm((goal - start)[:2])
    side, out, open_ = np.array([-way[1], way[0]]), np.tile(start, (count, 1)), np.ones(count, bool)
    for _ in range(_TRIES):
        ids = np.flatnonzero(open_)
        if not ids.size:
            break
        along, aside = rng.uniform(0.0, 0.9, (len(ids), 1)), _ASIDE * rng.normal(size=(len(ids), 1))
        out[ids, :2] = start[:2] + along * (goal - start)[:2] + aside * side
        out[ids, 2] = rng.uniform(lower[2] + FLOOR + 0.1, min(upper[2] - CEILING - 0.1, max(start[2], goal[2]) + 1.2), len(ids))
        open_[ids] = maps.distance(np.full(1, k), out[ids][None])[0][0] < _FREE
    return out[~open_]


# ---- What the expert would do ---------------------------------------------------------------------------------------------


def _ways(maps: Any, mission: Mission, k: int, drawn: _Drawn) -> list[Polyline | None]:
    """Return ways toward the reference as far as is looked for; None where there is none."""
    away, corner = maps.field(k)
    cells = np.ascontiguousarray(away[::_COARSE, ::_COARSE, ::_COARSE])
    h = _COARSE * MAP_SETTINGS.resolution
    corner = corner - 0.5 * (_COARSE - 1) * MAP_SETTINGS.resolution
    reach = np.minimum(_AHEAD, np.linalg.norm(mission.goal[k] - drawn.position, axis=1))
    lowest, highest = mission.lower[k] + [1.0, 1.0, FLOOR + 0.2], mission.upper[k] - [1.0, 1.0, CEILING + 0.2]
    # A trunk may stand where it leads: the first free place from there on back.
    tries = reach[:, None] - np.arange(0.0, 3.0, 0.25)
    ends = np.clip(drawn.position[:, None] + tries[..., None] * drawn.direction[:, None], lowest, highest)
    free = maps.distance(np.full(1, k), ends.reshape(1, -1, 3))[0].reshape(tries.shape) > _FREE
    found: dict[int, FreeWay] = {}
    for n in np.flatnonzero(free.any(axis=1)):
        start, end = drawn.position[n], ends[n, int(free[n].argmax())]
        box = np.minimum(start, end) - _AROUND * np.array([0.5, 1.0, 1.0]), np.maximum(start, end) + _AROUND
        first, last = (np.clip((c - corner) / h, 0, np.array(cells.shape) - 1).astype(int) for c in box)
        part = cells[tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))]
        way = free_way(part, corner + h * first, start, end, h)
        if way is not None:
            found[int(n)] = way
    made: list[Polyline | None] = [None] * len(tries)
    if found:
        for number, route in zip(found, smoothed_routes(maps, k, list(found.values())), strict=True):
            made[number] = route
    return made


def _labelled(maps: Any, mission: Mission, k: int, drawn: _Drawn, key: Any, options: StudentOptions) -> dict[str, Any]:
    count = len(drawn.position)
    routes = _ways(maps, mission, k, drawn)
    ids = np.array([n for n, route in enumerate(routes) if route is not None], np.int64)
    everywhere = replace(mission, lower=np.tile(mission.lower[k], (count, 1)), upper=np.tile(mission.upper[k], (count, 1)))
    speed = np.minimum(np.linalg.norm(drawn.velocity[ids], axis=1) + 1.0, LABEL_SPEED)
    goal, kept = reference_goal(everywhere, routes, np.zeros(count), ids, drawn.position[ids], drawn.velocity[ids], speed)
    points = expert_points(maps, np.full(len(ids), k), goal, key[ids], np.zeros(len(ids), np.int64), options)
    # A reference that is cut short says nothing that a student could see.
    good = np.isfinite(points[:, 0, 0, 0]) & (kept > speed - 1e-9)
    return {"rows": ids[good], "points": points[good]}


def _seen(batch: SceneBatch, camera: Camera, k: int, part: dict[str, Any], reach: float) -> dict[str, Any]:
    rows = part["rows"]
    drawn: _Drawn = part["drawn"].some(rows)
    state = state_rows(drawn.attitude, drawn.velocity, drawn.rate, drawn.direction)
    turn = state[:, :9].reshape(-1, 3, 3)
    views: ArrayU8 = np.empty((0, ROWS, COLUMNS), np.uint8)
    if len(rows):
        eye = drawn.position + turn @ np.array(CAMERA_OFFSET)
        draw = Draw(part["key"][rows], np.full(len(rows), k, np.uint32), camera.number)
        depth = camera.capture(batch, SensorView(eye, drawn.attitude, np.full(len(rows), k), draw))["depth"]
        views = level_views(encoded(depth, reach), state, STEPS)
    local = np.einsum("nji,nmtj->nmti", turn, part["points"] - drawn.position[:, None, None])
    return {
        "views": views,
        "state": state.astype(np.float32),
        "expert": local.astype(np.float32),
        "position": drawn.position.astype(np.float32),
        "place": np.full(len(rows), k),
    }
