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
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.navrl.network import Network
from airworthy.pilots.navrl.observation import (
    RANGE,
    MovingObstacles,
    goal_frames,
    moving_rows,
    ray_directions,
    scan_ranges,
    state_rows,
)
from airworthy.pilots.navrl.shield import Sphere, height_planes, shielded, spheres_of_scan, stacked_spheres
from airworthy.pilots.navrl.weights import load_network
from airworthy.pilots.planning.interface import Maps, MapSettings, Mission, Motion, Setpoints
from airworthy.pilots.planning.velocity_reference import VelocityReference

__all__ = ["MAP_SETTINGS", "STATES", "WRAPPERS", "NavRL", "NavRLSettings"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

MAP_SETTINGS = MapSettings(
    inflation=0.25, depth_min=0.5, depth_max=5.0, skip=2, hit=0.70, miss=0.35, least=0.12, most=0.97, occupied=0.80, ray_max=5.0
)
"""The published ones; inflation is half of the robot's box of 0.5 m."""
WRAPPERS = ("faithful", "full_3d")
STATES = ("turning", "straight", "policy", "shielded", "arriving", "arrived")
"""What `update` reports as numbers."""
RATE = 20.0
"""Decisions per second [Hz]."""
_EARLY = 0.05
"""Share of a tick by which one may come early: physics steps fall between ticks."""
_TURN, _TURN_TICKS = 0.1, 10
_CLEAR = 0.2
"""Scan value from which a ray counts as stopped [m below RANGE]."""
_STRAIGHT_SPEED, _NEAR, _NEAR_SPEED, _ARRIVED = 2.0, 3.0, 0.5, 0.3
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

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        if self._network is None:
            self._network = load_network()
        count = len(mission.start)
        self._mission, self._frames = mission, goal_frames(mission.start, mission.goal)
        self._directions = ray_directions(self._frames)
        self._yaw = np.arctan2(self._frames[:, 0, 1], self._frames[:, 0, 0])
        self._tick, self._stable = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        self._state = np.zeros(count, np.int64)
        self._hold = mission.start[:, 2].copy() if self.options.wrapper == "faithful" else np.full(count, np.nan)
        self._reference = VelocityReference(mission.start, mission.acceleration, self._hold)
        self._decided = np.zeros(count, bool)

    def update(self, motion: Motion, maps: Maps | None, active: Bools) -> dict[str, Any]:
        """Decide where a tick of 20 Hz has passed."""
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
        """Decisions act after their compute."""
        self._reference.adopt(np.where(self._decided, delay, 0.0))

    def setpoints(self, time: Array) -> Setpoints:
        """From the velocity in force."""
        position, velocity = self._reference.at(time)
        return Setpoints(position, velocity, np.zeros_like(velocity), self._yaw.copy(), np.zeros(len(time)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _decide(self, ids: NDArray[np.intp], motion: Motion, maps: Maps, report: dict[str, Array]) -> None:
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

    def _turned(self, ids: NDArray[np.intp], attitude: Array) -> Bools:
        """Flights that have faced the goal long enough, once."""
        x, y, z, w = attitude.T
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        off = np.abs((yaw - self._yaw[ids] + np.pi) % (2.0 * np.pi) - np.pi)
        done = self._stable[ids] >= _TURN_TICKS
        self._stable[ids] = np.where(done, _TURN_TICKS, np.where(off < _TURN, self._stable[ids] + 1, 0))
        return self._stable[ids] >= _TURN_TICKS

    @staticmethod
    def _front_free(ranges: Array) -> Bools:
        """Whether no ray of the front half stops, the downward ones left out."""
        stopped = RANGE - ranges[:, :, 1:] >= _CLEAR
        quarter = ranges.shape[1] // 4
        return np.asarray(~(stopped[:, :quarter].any(axis=(1, 2)) | stopped[:, -quarter:].any(axis=(1, 2))))

    @staticmethod
    def _straight(position: Array, goal: Array) -> Array:
        way = goal - position
        return _STRAIGHT_SPEED * way / np.maximum(np.linalg.norm(way, axis=1), 1e-6)[:, None]

    def _by_policy(self, ids: NDArray[np.intp], position: Array, velocity: Array, ranges: Array, others: Array) -> Array:
        assert self._network is not None
        frames = self._frames[ids]
        rows = state_rows(frames, position, velocity, self._mission.goal[ids])
        local = self._network.forward(rows, RANGE - ranges, others).velocity
        return np.asarray(np.einsum("nji,nj->ni", frames, local))

    def _shielded(
        self, place: int, k: int, wanted: Array, position: Array, ranges: Array, moving: Any, report: dict[str, Array]
    ) -> Array:
        hit = ranges < RANGE
        points = ranges[hit][:, None] * self._directions[place][hit]
        spheres: list[Sphere] = spheres_of_scan(points)
        if moving is not None:
            for p, size, v in zip(moving.position[k], moving.size[k], moving.velocity[k], strict=True):
                if np.linalg.norm(p - position) <= RANGE:
                    spheres += stacked_spheres(p - position, size, v)
        lowest, highest = _FAITHFUL_HEIGHTS
        if self.options.wrapper == "full_3d":
            lowest = self._mission.lower[place, 2] + _FREE_MARGIN
            highest = self._mission.upper[place, 2] - _FREE_MARGIN
        verdict = shielded(wanted, spheres, height_planes(float(position[2]), float(wanted[2]), lowest, highest))
        report["spheres"][place] = len(spheres)
        if verdict.conflict:
            self._state[place] = STATES.index("shielded")
        return verdict.velocity

    def _near_goal(self, ids: NDArray[np.intp], wanted: Array, position: Array, turned: Bools) -> Array:
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


def _of(moving: MovingObstacles, ids: NDArray[np.intp]) -> MovingObstacles:
    return MovingObstacles(moving.position[ids], moving.velocity[ids], moving.size[ids])
