"""NavRL as a planner: at 20 Hz a velocity, from the policy or straight, through the shield. Specification, section 7.4.

Its decisions are velocities. Set-points follow from them: the velocity goes over to the new one at the mission's acceleration,
the position starts at the odometry of each decision, so that a controller holds the velocity and no line. Height, where it is
not commanded, is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.planners.common.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.planners.common.reference import VelocityReference
from airworthy.planners.navrl.network import BEAMS, OBSTACLE_SIZE, OBSTACLES, RAYS, Network, load_network
from airworthy.planners.navrl.shield import ShieldSphere, height_planes, shielded, spheres_of_scan, stacked_spheres

__all__ = [
    "MAP_SETTINGS",
    "RANGE",
    "STATES",
    "WRAPPERS",
    "MovingObstacles",
    "NavRL",
    "NavRLSettings",
    "goal_frames",
    "moving_rows",
    "ray_directions",
    "scan_ranges",
    "state_rows",
]

# -----------------------------------------------------------------------------------------------------------------------------
# What NavRL sees: the goal in its own frame, rays through the map, and what moves. Specification, section 7.1.

# Source: spec/planners 7.1: range 4 m; the step is the map's resolution of 7.4.
RANGE, RAY_STEP = 4.0, 0.1
"""How far rays reach and how finely they are walked [m]."""
# Source: spec/planners 7.1: elevations -10, 0, 10, 20 deg.
ELEVATIONS = np.radians([-10.0, 0.0, 10.0, 20.0])
# Source: spec/planners 7.1: height class 0 for tall "2-D" ones, else 1 m.
_TALL = 1.0
"""Moving obstacles higher than this count as without end [m]."""
# Source: spec/planners 7.1: ceil((w + 0.6) / 0.25) - 1, in 0..3, as deployed (training had w / 0.25 - 1).
_WIDTH_STEP, _WIDTH_CLASSES, _GROWN = 0.25, 4, 0.6
# Ours: below it a vector has no direction.
_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class MovingObstacles:
    """What moves around n flights, m of them; NaN positions where there are fewer."""

    position: Array
    """(n, m, 3) middles, world [m]."""
    velocity: Array
    """(n, m, 3) [m/s]"""
    size: Array
    """(n, m, 3) edges of boxes [m]."""


def goal_frames(start: Array, goal: Array) -> Array:
    """Return rotations from the world into the goals' frames, (n, 3, 3): x level from start (n, 3) to goal, z up."""
    offset = (goal - start)[:, :2]
    length = np.linalg.norm(offset, axis=1)
    usable = length > _SMALLEST
    unit = np.where(usable[:, None], offset / np.where(usable, length, 1.0)[:, None], [1.0, 0.0])
    frames = np.zeros((len(start), 3, 3))
    frames[:, 0, :2] = unit
    frames[:, 1, 0], frames[:, 1, 1], frames[:, 2, 2] = -unit[:, 1], unit[:, 0], 1.0
    return frames


def state_rows(frames: Array, position: Array, velocity: Array, goal: Array) -> Array:
    """Return (n, 8): unit vector to the goal, horizontal distance, vertical offset, velocity; in the goal's frame.

    Args:
        frames: Rotations from the world to the goal's frame, (n, 3, 3).
        position: (n, 3) [m], world.
        velocity: (n, 3) [m/s], world.
        goal: (n, 3) [m], world.
    """
    offset = goal - position
    unit = offset / np.maximum(np.linalg.norm(offset, axis=1), _SMALLEST)[:, None]
    level = np.linalg.norm(offset[:, :2], axis=1)
    return np.concatenate([_turned(frames, unit), level[:, None], offset[:, 2:], _turned(frames, velocity)], axis=1)


def _turned(frames: Array, vectors: Array) -> Array:
    # einsum without a library behind it: a row's sum does not depend on how many rows there are.
    return np.asarray(np.einsum("nij,n...j->n...i", frames, vectors))


def ray_directions(frames: Array) -> Array:
    """Return unit vectors of the rays in the world, (n, 36, 4, 3): (cos, sin, tan elevation) at unit length, the goal's way
    first.
    """
    azimuth = 2.0 * np.pi * np.arange(RAYS) / RAYS
    local = np.empty((RAYS, BEAMS, 3))
    local[..., 0], local[..., 1] = np.cos(azimuth)[:, None], np.sin(azimuth)[:, None]
    local[..., 2] = np.tan(ELEVATIONS)
    local /= np.linalg.norm(local, axis=-1, keepdims=True)
    return np.asarray(np.einsum("nji,rbj->nrbi", frames, local))


def scan_ranges(
    maps: Any, flights: ArrayInt, position: Array, directions: Array, ceiling: Array, unknown_stops: bool = False
) -> Array:
    """Return distances at which rays meet what the maps know to be occupied, (k, 36, 4) [m]; RANGE where nothing does.

    The maps' virtual ceiling stops no ray: it is a rule for planners, not a thing.

    Args:
        maps: `airworthy.planners.common.interface.Maps`.
        flights: Flights (k,) in the maps.
        position: (k, 3) [m]
        directions: (k, 36, 4, 3)
        ceiling: (k,) height above which nothing counts [m].
        unknown_stops: Rays also end where the maps have seen nothing.
    """
    steps = RAY_STEP * np.arange(1, round(RANGE / RAY_STEP))
    points = position[:, None, None, None] + steps[:, None] * directions[:, :, :, None]
    shape = points.shape[:4]
    flat = points.reshape(len(flights), -1, 3)
    met = np.asarray(maps.occupied(flights, flat))
    if unknown_stops:
        met = met | (np.asarray(maps.state(flights, flat)) < 0)
    met = met.reshape(shape)
    met = met & (points[..., 2] < ceiling[:, None, None, None])
    first = met.argmax(axis=-1)
    return np.where(met.any(axis=-1), steps[first], RANGE)


def moving_rows(frames: Array, position: Array, moving: MovingObstacles | None) -> Array:
    """Return (n, 5, 10): of the nearest moving obstacles within RANGE, by horizontal distance.

    Args:
        frames: Rotations from the world to the goal's frame, (n, 3, 3).
        position: (n, 3) [m], world.
        moving: Obstacles (n, k, ...) [m, m/s], world; None: there are none.
    """
    rows = np.zeros((len(position), OBSTACLES, OBSTACLE_SIZE))
    if moving is None or not moving.position.shape[1]:
        return rows
    offset = moving.position - position[:, None]
    tall = moving.size[..., 2] > _TALL
    offset[..., 2] = np.where(tall, 0.0, offset[..., 2])
    level = np.linalg.norm(offset[..., :2], axis=-1)
    order = np.argsort(np.where(np.isfinite(level), level, np.inf), axis=1, kind="stable")[:, :OBSTACLES]
    for k in range(order.shape[1]):
        each, n = order[:, k], np.arange(len(position))
        near = level[n, each] <= RANGE
        unit = offset[n, each] / np.maximum(np.linalg.norm(offset[n, each], axis=1), _SMALLEST)[:, None]
        width = np.ceil((moving.size[n, each, :2].max(axis=1) + _GROWN) / _WIDTH_STEP) - 1.0
        parts = (
            _turned(frames, unit),
            level[n, each, None],
            offset[n, each, 2:],
            _turned(frames, moving.velocity[n, each]),
            np.clip(width, 0.0, _WIDTH_CLASSES - 1.0)[:, None],
            np.where(tall[n, each], 0.0, _TALL)[:, None],
        )
        rows[near, k] = np.concatenate(parts, axis=1)[near]
    return rows


# -----------------------------------------------------------------------------------------------------------------------------

MAP_SETTINGS = MapSettings(
    inflation=0.25, depth_min=0.5, depth_max=5.0, skip=2, hit=0.70, miss=0.35, least=0.12, most=0.97, occupied=0.80, ray_max=5.0
)
"""The published ones; inflation is half of the robot's box of 0.5 m."""
# Source: spec/planners 7.5, "wrappers to provide".
WRAPPERS = ("faithful", "full_3d")
STATES = ("turning", "straight", "policy", "shielded", "arriving", "arrived")
"""What `update` reports as numbers."""
# Source: spec/planners 7.4: the node decides at 20 Hz.
RATE = 20.0
"""Decisions per second [Hz]."""
_EARLY = 0.05
"""Ours: share of a tick by which one may come early, because physics steps fall between ticks."""
# Source: spec/planners 7.4, step 1: within 0.1 rad, stable for 10 ticks.
_TURN, _TURN_TICKS = 0.1, 10
_CLEAR = 0.2
"""Scan value from which a ray counts as stopped [m below RANGE]; the same, step 2."""
# Source: spec/planners 7.4, steps 2 and 5: 2 m/s straight; 0.5 m/s within 3 m; in effect arrived at 0.3 m.
_STRAIGHT_SPEED, _NEAR, _NEAR_SPEED, _ARRIVED = 2.0, 3.0, 0.5, 0.3
# Source: spec/planners 7.5, height half spaces.
_FAITHFUL_HEIGHTS = (0.7, 1.3)
_FREE_MARGIN = 0.4
"""To floor and ceiling [m]; the specification's 0.3 m is where a body of 0.3 m touches."""


@dataclass(frozen=True)
class NavRLSettings:
    """How the policy is used.

    Raises:
        UnknownNameError: No such wrapper.
    """

    wrapper: Literal["faithful", "full_3d"] = "faithful"
    """"faithful": as published, vertical commands discarded, heights of the shield 0.7 to 1.3 m. "full_3d": vertical commands
    kept, heights from 0.4 m above the floor to 0.4 m under the ceiling."""
    shield: bool = True
    """Safe velocities only."""
    unknown_stops: bool = False
    """Rays end where nothing has been seen, as in the deployed ray caster; needs maps with `state`. With a camera that sees 79
    degrees the policy then meets walls on both sides at all times."""

    def __post_init__(self) -> None:
        check_fields(self, "NavRLSettings.")
        if self.wrapper not in WRAPPERS:
            raise unknown_name("NavRL wrapper", self.wrapper, WRAPPERS)


class NavRL:
    """The published policy, deployed.

    Args:
        settings: How.
        network: The weights; None: `load_network()`, at the first flight.
        moving: Gives what moves, as a detector would, for times (n,); None: nothing does.
    """

    settings: MapSettings | None = MAP_SETTINGS

    def __init__(
        self,
        settings: NavRLSettings | None = None,
        network: Network | None = None,
        moving: Callable[[Array], MovingObstacles] | None = None,
    ):
        self.options = settings or NavRLSettings()
        self._network, self._moving = network, moving

    @property
    def name(self) -> str:
        """As in results."""
        return "navrl" if self.options.wrapper == "faithful" else f"navrl_{self.options.wrapper}"

    def check_ready(self) -> None:
        """Refuse to begin without weights.

        Raises:
            AirworthyError: There are none, or they are damaged.
        """
        if self._network is None:
            self._network = load_network()

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        self.check_ready()
        count = len(mission.start)
        self._mission, self._frames = mission, goal_frames(mission.start, mission.goal)
        self._directions = ray_directions(self._frames)
        self._yaw = np.arctan2(self._frames[:, 0, 1], self._frames[:, 0, 0])
        self._tick, self._stable = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        self._state = np.zeros(count, np.int64)
        self._hold = mission.start[:, 2].copy() if self.options.wrapper == "faithful" else np.full(count, np.nan)
        self._reference = VelocityReference(mission.start, mission.acceleration, self._hold)
        self._decided = np.zeros(count, bool)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Decide where a tick of 20 Hz has passed.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights, in which rays are cast.
            active: Flights that are still flown, (n,).
        """
        if maps is None:
            raise AirworthyError("NavRL needs maps.")
        count = len(active)
        tick = np.floor(motion.time * RATE + _EARLY).astype(np.int64)
        due = active & (tick > self._tick)
        self._tick[due] = tick[due]
        report = {kind: np.zeros(count) for kind in ("inferences", "rays", "spheres")}
        self._decided = due
        if due.any():
            self._decide(np.flatnonzero(due), motion, maps, report)
        return {"work": report, "replans": due.astype(np.int64), "state": self._state.copy()}

    def adopt(self, delay: Array) -> None:
        """Adopt decisions, which act after their compute."""
        self._reference.adopt(np.where(self._decided, delay, 0.0))

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points from the velocity in force."""
        position, velocity = self._reference.at(time)
        return Setpoints(position, velocity, np.zeros_like(velocity), self._yaw.copy(), np.zeros(len(time)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _decide(self, ids: ArrayIndex, motion: Motion, maps: Maps, report: dict[str, Array]) -> None:
        position, velocity = motion.position[ids], motion.velocity[ids]
        goal = self._mission.goal[ids]
        turned = self._turned(ids, motion.attitude[ids])
        ceiling = self._mission.upper[ids, 2] - MAP_SETTINGS.resolution - 1e-6
        ranges = scan_ranges(maps, ids, position, self._directions[ids], ceiling, self.options.unknown_stops)
        moving = None if self._moving is None else _of(self._moving(motion.time), ids)
        others = moving_rows(self._frames[ids], position, moving)
        straight = self._front_free(ranges) & ~others.any(axis=(1, 2))
        wanted = self._straight(position, goal)
        policy = turned & ~straight
        if policy.any():
            wanted[policy] = self._by_policy(ids[policy], position[policy], velocity[policy], ranges[policy], others[policy])
            report["inferences"][ids[policy]] = 1.0
        report["rays"][ids] = ranges[0].size
        self._state[ids] = np.where(turned, np.where(straight, 1, 2), 0)
        if self.options.shield:
            for k in np.flatnonzero(turned):
                wanted[k] = self._shielded(int(ids[k]), int(k), wanted[k], position[k], ranges[k], moving, report)
        wanted = self._near_goal(ids, wanted, position, turned)
        self._reference.decide(ids, motion.time[ids], position, wanted)

    def _turned(self, ids: ArrayIndex, attitude: Array) -> ArrayBool:
        """Flights that have faced the goal long enough, once."""
        x, y, z, w = attitude.T
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        off = np.abs((yaw - self._yaw[ids] + np.pi) % (2.0 * np.pi) - np.pi)
        done = self._stable[ids] >= _TURN_TICKS
        self._stable[ids] = np.where(done, _TURN_TICKS, np.where(off < _TURN, self._stable[ids] + 1, 0))
        return self._stable[ids] >= _TURN_TICKS

    @staticmethod
    def _front_free(ranges: Array) -> ArrayBool:
        """Tell whether no ray of the front half stops, the downward ones left out."""
        stopped = RANGE - ranges[:, :, 1:] >= _CLEAR
        quarter = ranges.shape[1] // 4
        return np.asarray(~(stopped[:, :quarter].any(axis=(1, 2)) | stopped[:, -quarter:].any(axis=(1, 2))))

    @staticmethod
    def _straight(position: Array, goal: Array) -> Array:
        offset = goal - position
        return _STRAIGHT_SPEED * offset / np.maximum(np.linalg.norm(offset, axis=1), 1e-6)[:, None]

    def _by_policy(self, ids: ArrayIndex, position: Array, velocity: Array, ranges: Array, others: Array) -> Array:
        assert self._network is not None
        frames = self._frames[ids]
        rows = state_rows(frames, position, velocity, self._mission.goal[ids])
        local = self._network.forward(rows, RANGE - ranges, others).velocity
        return np.asarray(np.einsum("nji,nj->ni", frames, local))

    def _shielded(
        self, flight: int, k: int, wanted: Array, position: Array, ranges: Array, moving: Any, report: dict[str, Array]
    ) -> Array:
        hit = ranges < RANGE
        points = ranges[hit][:, None] * self._directions[flight][hit]
        spheres: list[ShieldSphere] = spheres_of_scan(points)
        if moving is not None:
            for p, size, v in zip(moving.position[k], moving.size[k], moving.velocity[k], strict=True):
                if np.linalg.norm(p - position) <= RANGE:
                    spheres += stacked_spheres(p - position, size, v)
        lowest, highest = _FAITHFUL_HEIGHTS
        if self.options.wrapper == "full_3d":
            lowest = self._mission.lower[flight, 2] + _FREE_MARGIN
            highest = self._mission.upper[flight, 2] - _FREE_MARGIN
        verdict = shielded(wanted, spheres, height_planes(float(position[2]), float(wanted[2]), lowest, highest))
        report["spheres"][flight] = len(spheres)
        if verdict.conflict:
            self._state[flight] = STATES.index("shielded")
        return verdict.velocity

    def _near_goal(self, ids: ArrayIndex, wanted: Array, position: Array, turned: ArrayBool) -> Array:
        level = np.linalg.norm((self._mission.goal[ids] - position)[:, :2], axis=1)
        flat = self.options.wrapper == "faithful"
        if flat:
            wanted[:, 2] = 0.0
        near, there = level < _NEAR, level < _ARRIVED
        size = np.maximum(np.linalg.norm(wanted, axis=1), 1e-6)
        wanted = np.where(near[:, None], wanted * (_NEAR_SPEED / np.maximum(size, _NEAR_SPEED))[:, None], wanted)
        cap = self._mission.speed[ids]
        wanted = wanted * np.minimum(1.0, cap / size)[:, None]
        self._state[ids] = np.where(there, 5, np.where(near & turned, 4, self._state[ids]))
        return np.where((there | ~turned)[:, None], 0.0, wanted)


def _of(moving: MovingObstacles, ids: ArrayIndex) -> MovingObstacles:
    return MovingObstacles(moving.position[ids], moving.velocity[ids], moving.size[ids])
