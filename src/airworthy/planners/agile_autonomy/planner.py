"""Agile-Autonomy as a planner: 15 times a second a depth image becomes trajectories of one second, of which one is flown.

Source: specification of the planners, section 8.5. What is flown is re-timed as the sampling expert's is, and as smooth as the
vehicle needs (`flyable`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayIndex, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, multiply, to_matrix, to_rotation_vector
from airworthy.core.schema import Bound, check_fields
from airworthy.planners.agile_autonomy.contract import StudentContract, read_student_folder, shipped_student
from airworthy.planners.agile_autonomy.flyable import FlyablePaths
from airworthy.planners.agile_autonomy.layers import POINTS, RATE, StudentNetwork
from airworthy.planners.agile_autonomy.level import MIRROR, STATE_SIGNS, level_views
from airworthy.planners.agile_autonomy.sight import STEPS, DepthImages, reference_directions, state_rows
from airworthy.planners.common.interface import MapSettings, Mission, Motion, Setpoints
from airworthy.planners.sampling_expert.planner import BRAKING, CEILING, FLOOR
from airworthy.planners.sampling_expert.sampling import TIMES

__all__ = ["STATES", "AgileAutonomy", "AgileAutonomySettings", "BodyRates", "Student", "chosen_mode", "read_student"]

STATES = ("following", "without an image", "arriving")
# Ours: images are taken as they come, so that the newest is as fresh as the camera lets it be.
_SETTINGS = MapSettings(rate=60.0)
"""What makes a pilot give it a camera: the rate at which images are handed on."""
# Ours: share of a period by which a decision may come early, because physics steps fall between ticks.
_EARLY = 0.05
# Ours: a goal so near may be flown to straight; the student was never told how far it is.
_NEAR = 1.5
"""[m]"""
# Ours, [1/s]: a height comes nearer to its limits no faster. Clamped alone, a fall would be smoothed through the floor.
_EASING = 2.0
# Ours, [1/s]: speed over distance at most. By braking alone a vehicle would pass a goal at half a metre per second for ever.
_SETTLING = 2.0


@dataclass(frozen=True)
class AgileAutonomySettings:
    """How the student's trajectories are used."""

    # Source: spec/planners 8.5.
    speed_max: Annotated[float, Bound(0.1, 50.0, "m/s")] = 7.0
    """The mission's cap holds as well [m/s]."""
    # Source: spec/planners 8.5: others are sent if best / alpha > 0.9.
    score_ratio: Annotated[float, Bound(0.0, 1.0)] = 0.9
    """A mode is chosen among only if the best score over its own is above this."""
    # Ours: costs near zero are told with an error, and their ratio says nothing.
    score_slack: Annotated[float, Bound(0.0, 4.0)] = 0.05
    """Or if its score is farther from zero than the best by less than this."""
    # Ours: it learnt each instant half of the time as in a mirror, and errs otherwise in each.
    mirrored: bool = True
    """Look at every instant as in a mirror as well, and choose among twice the modes."""

    def __post_init__(self) -> None:
        check_fields(self, "AgileAutonomySettings.")


class Student:
    """A network with its contract.

    Args:
        contract: What the numbers mean.
        weights: Tensors by name.
    """

    def __init__(self, contract: StudentContract, weights: Mapping[str, ArrayF32]):
        self.contract, self.weights = contract, dict(weights)
        self._network = StudentNetwork(weights, contract.modes)

    def __call__(self, images: ArrayU8, state: Array) -> tuple[Array, Array]:
        """Return scores (n, modes) and points (n, modes, 10, 3), body frame [m]; see `StudentNetwork`."""
        return self._network(np.full_like(images, STEPS) if self.contract.blind else images, state)

    def of_both_sides(self, images: ArrayU8, state: Array) -> tuple[Array, Array]:
        """Return the same of what is seen and of its mirror image, turned back: (n, 2 modes) and (n, 2 modes, 10, 3)."""
        views = level_views(np.full_like(images, STEPS) if self.contract.blind else images, state, STEPS)
        score, points = self._network.of_views(views, state)
        other, turned = self._network.of_views(np.ascontiguousarray(views[:, :, ::-1]), state * STATE_SIGNS)
        return np.concatenate([score, other], axis=1), np.concatenate([points, turned * MIRROR], axis=1)


def read_student(folder: str | Path) -> Student:
    """Return the student in a folder.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    return Student(*read_student_folder(folder))


class BodyRates:
    """Body rates of n flights by what their attitudes turned between two calls, since odometry tells none."""

    def __init__(self, count: int):
        self._time, self._attitude = np.full(count, np.nan), np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))
        self._rate = np.zeros((count, 3))

    def update(self, motion: Motion) -> Array:
        """Return rates (n, 3) [rad/s], zero before the second call of a flight."""
        passed = motion.time - self._time
        moved = passed > 1e-6
        turned = to_rotation_vector(multiply(conjugate(self._attitude), motion.attitude))
        fresh = turned / np.where(moved, passed, 1.0)[:, None]
        self._rate = np.where(moved[:, None], fresh, self._rate)
        taken = moved | np.isnan(self._time)
        self._time = np.where(taken, motion.time, self._time)
        self._attitude = np.where(taken[:, None], motion.attitude, self._attitude)
        return self._rate


def chosen_mode(score: Array, points: Array, previous: Array | None, elapsed: float, ratio: float, slack: float = 0.0) -> int:
    """Return which mode of one flight is executed.

    The best score is nearest to zero. Modes that are about as good are chosen among by their squared distance to what was
    flown before, where both are about the same moments.

    Args:
        score: (modes,).
        points: (modes, 10, 3), world [m].
        previous: (10, 3) decided before; None: nothing was.
        elapsed: Since then [s].
        ratio: A mode counts if best / its own score is above this,
        slack: or if its score is farther from zero than the best by less than this.
    """
    size = np.abs(score)
    best = int(size.argmin())
    # Of equal scores, two of exactly zero among them, the ratio is one.
    good = (size[best] > ratio * size) | (size == size[best]) | (size < size[best] + slack)
    left = TIMES[TIMES + elapsed <= TIMES[-1] + 1e-9]
    if previous is None or not left.size or good.sum() == 1:
        return best
    before = np.stack([np.interp(left + elapsed, TIMES, previous[:, axis]) for axis in range(3)], axis=1)
    away = ((points[:, : len(left)] - before) ** 2).sum(axis=(1, 2))
    return int(np.where(good, away, np.inf).argmin())


class AgileAutonomy:
    """The student, deployed.

    Args:
        settings: How.
        student: The network; None: the one that is shipped.
        folder: Of a student of one's own, read when it is first needed.
    """

    name = "agile_autonomy"
    settings: MapSettings | None = _SETTINGS

    def __init__(
        self,
        settings: AgileAutonomySettings | None = None,
        student: Student | None = None,
        folder: str | Path | None = None,
    ):
        self.options = settings or AgileAutonomySettings()
        self._student, self._folder = student, folder

    @property
    def student(self) -> Student:
        """The network.

        Raises:
            AssetError: There is none, or it is damaged.
        """
        if self._student is None:
            self._student = read_student(shipped_student() if self._folder is None else self._folder)
        return self._student

    def check_ready(self) -> None:
        """Refuse to begin without weights.

        Raises:
            AirworthyError: There are none, or they are damaged.
        """
        _ = self.student

    def maps_for(self, mission: Mission, scenes: Any = None) -> DepthImages:
        """Return what its camera fills instead of maps: the newest image of each flight.

        Args:
            mission: Of the n flights.
            scenes: Not asked: it knows nothing of them.
        """
        return DepthImages(len(mission.start), self.student.contract.reach)

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        self.check_ready()
        count = len(mission.start)
        self._mission, self._paths, self._rates = mission, FlyablePaths(mission), BodyRates(count)
        self._tick, self._state = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        self._decided = np.zeros(count, bool)
        self._before: list[tuple[float, Array] | None] = [None] * count

    def update(self, motion: Motion, maps: Any, active: ArrayBool) -> dict[str, Any]:
        """Decide where a tick of 15 Hz has passed and an image has arrived.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: From `maps_for`.
            active: Flights that are still flown, (n,).

        Raises:
            AirworthyError: It was given maps instead of images.
        """
        if not isinstance(maps, DepthImages):
            raise AirworthyError(
                f"Agile-Autonomy sees depth images and was given {type(maps).__name__}: give PlannerPilot(...,"
                " maps=planner.maps_for(mission))."
            )
        rate = self._rates.update(motion)
        tick = np.floor(motion.time * RATE + _EARLY).astype(np.int64)
        due = active & (tick > self._tick)
        self._tick[due] = tick[due]
        self._state[due & (maps.seen == 0)] = 1
        self._decided = due & (maps.seen > 0)
        ids = np.flatnonzero(self._decided)
        if ids.size:
            self._decide(ids, motion, rate, maps.images[ids])
        work = {"student_inferences": (1.0 + self.options.mirrored) * self._decided}
        return {"work": work, "replans": self._decided.astype(np.int64), "state": self._state.copy()}

    def adopt(self, delay: Array) -> None:
        """Let the last decisions hold after their compute."""
        self._paths.delay(self._decided, delay)

    def setpoints(self, time: Array) -> Setpoints:
        """Return set-points along the path in force."""
        return self._paths.setpoints(time)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _decide(self, ids: ArrayIndex, motion: Motion, rate: Array, images: ArrayU8) -> None:
        mission, position = self._mission, motion.position[ids]
        cap = np.minimum(mission.speed[ids], self.options.speed_max)
        direction = reference_directions(position, mission.start[ids], mission.goal[ids], cap)
        state = state_rows(motion.attitude[ids], motion.velocity[ids], rate[ids], direction)
        score, local = (self.student.of_both_sides if self.options.mirrored else self.student)(images, state)
        turn = np.asarray(to_matrix(motion.attitude[ids]), np.float64).reshape(-1, 3, 3)
        points = position[:, None, None] + np.einsum("nij,nmtj->nmti", turn, local)
        for k, flight in enumerate(ids):
            self._follow(int(flight), score[k], points[k], motion, float(cap[k]))

    def _follow(self, flight: int, score: Array, points: Array, motion: Motion, cap: float) -> None:
        mission, time = self._mission, float(motion.time[flight])
        before = self._before[flight]
        elapsed, previous = (0.0, None) if before is None else (time - before[0], before[1])
        rules = self.options.score_ratio, self.options.score_slack
        mode = chosen_mode(score, points, previous, elapsed, *rules)
        chosen = points[mode].copy()
        position, velocity, _ = self._paths.begin(flight, motion)
        rest = float(np.linalg.norm(mission.goal[flight] - position))
        # Source: spec/planners 8.5: min(|v| + 1, 7 m/s); slower where the goal is near, as the expert flies.
        target = min(float(np.linalg.norm(velocity)) + 1.0, cap, float(np.sqrt(2.0 * BRAKING * rest)), _SETTLING * rest)
        self._state[flight] = 2 if rest < _NEAR else 0
        if rest < _NEAR:
            share = np.minimum(TIMES * target / max(rest, 1e-9), 1.0)
            chosen = position + share[:, None] * (mission.goal[flight] - position)
        lowest, highest = mission.lower[flight, 2] + FLOOR, mission.upper[flight, 2] - CEILING
        chosen[:, 2] = _within(chosen[:, 2], position[2], lowest, max(lowest, highest))
        self._paths.decide(flight, chosen, motion, target)
        self._before[flight] = time, chosen


def _within(heights: Array, now: float, lowest: float, highest: float) -> Array:
    """Return heights (10,) of a trajectory [m] that come to their limits slowly enough not to pass them."""
    left = np.exp(-_EASING * TIMES)
    least = lowest + max(now - lowest, 0.0) * left
    return np.asarray(np.clip(heights, least, np.maximum(least, highest - max(highest - now, 0.0) * left)))


assert len(TIMES) == POINTS
