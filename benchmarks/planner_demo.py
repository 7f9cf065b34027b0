"""The demonstration forests of planners: pillars at random, ideal tracking, maps that reveal what comes within sight."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.planners.common.interface import Mission, Motion, Planner
from benchmarks.planner_maps import SolidMaps, mission, pillars

TICK = 0.01
"""Planners think and are followed at 100 Hz [s]."""
LOOK = 5
"""Ticks between looks around: 20 Hz."""


@dataclass(frozen=True)
class Forest:
    """A square or oblong of pillars, to be crossed along x."""

    length: float = 40.0
    """[m]"""
    width: float = 40.0
    """[m]"""
    count: int = 200
    spacing: float = 1.2
    """Least distance of two axes [m]."""
    radius: tuple[float, float] = (0.25, 0.35)
    """[m]"""
    height: float = 3.0
    """Of pillars and ceiling [m]."""
    clear: float = 1.5
    """Free around start and goal [m]."""

    def pillars(self, seed: int) -> tuple[Array, Array]:
        """Axes (count, 2) and radii (count,) of one draw."""
        rng = np.random.default_rng(seed)
        half = np.array([self.length, self.width]) / 2.0
        ends, found = self.ends[:, :2], np.zeros((0, 2))
        while len(found) < self.count:
            p = rng.uniform(-half, half)
            far = np.linalg.norm(ends - p, axis=1).min() >= self.clear
            if far and (not len(found) or np.linalg.norm(found - p, axis=1).min() >= self.spacing):
                found = np.vstack([found, p])
        return found, rng.uniform(*self.radius, self.count)

    @property
    def ends(self) -> Array:
        """Start and goal [m], (2, 3)."""
        return np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]) * (self.length / 2.0 - 1.0) + [0.0, 0.0, 1.0]

    def mission(self, seeds: list[int], speed: float, acceleration: float) -> Mission:
        """One flight per seed."""
        start, goal = (np.tile(e, (len(seeds), 1)) for e in self.ends)
        half = np.array([self.length, self.width]) / 2.0
        task = mission(start, goal, (*-half, 0.0), (*half, self.height), speed, acceleration)
        return Mission(**{**vars(task), "flight": np.array(seeds)})

    def maps(self, seeds: list[int], task: Mission, sight: float = 4.5) -> SolidMaps:
        """Return what there is, revealed within `sight` [m]."""
        grids = [pillars(*self.pillars(s), task.lower[0].tolist(), task.upper[0].tolist()) for s in seeds]
        return SolidMaps(grids, task, sight)


@dataclass
class Flown:
    """What became of n flights."""

    path: Array
    """(n, ticks, 3) [m]"""
    states: ArrayInt
    """(n, ticks)"""
    replans: ArrayInt
    """(n,)"""
    work: dict[str, ArrayInt] = field(default_factory=dict)
    thinking: float = 0.0
    """Processor time of all flights [s]."""


def fly_ideally(planner: Planner, task: Mission, maps: SolidMaps, seconds: float) -> Flown:
    """Every flight is where its set-point was."""
    planner.reset(task)
    n, ticks = len(task.start), round(seconds / TICK)
    position, velocity, to_goal = task.start.copy(), np.zeros((n, 3)), task.goal - task.start
    yaw = np.arctan2(to_goal[:, 1], to_goal[:, 0])
    flown = Flown(np.zeros((n, ticks, 3)), np.zeros((n, ticks), np.int64), np.zeros(n, np.int64))
    for tick in range(ticks):
        now = np.full(n, tick * TICK)
        if tick % LOOK == 0:
            maps.reveal(position)
        attitude = np.stack([0.0 * yaw, 0.0 * yaw, np.sin(yaw / 2.0), np.cos(yaw / 2.0)], axis=1)
        begin = time.thread_time()
        said = planner.update(Motion(now, position, velocity, attitude), maps, np.ones(n, bool))
        planner.adopt(np.zeros(n))
        wanted = planner.setpoints(now + TICK)
        flown.thinking += time.thread_time() - begin
        position, velocity, yaw = wanted.position, wanted.velocity, wanted.yaw
        flown.path[:, tick], flown.states[:, tick] = position, said["state"]
        flown.replans += said["replans"]
        for kind, units in said["work"].items():
            flown.work[kind] = flown.work.get(kind, np.zeros(n, np.int64)) + units
    return flown


def clearance(path: Array, axes: Array, radii: Array) -> float:
    """Least distance of a path (m, 3) from upright pillars [m]; below 0 inside one."""
    gaps = np.linalg.norm(path[:, None, :2] - axes[None], axis=-1) - radii
    return float(gaps.min())


def arrived(flown: Flown, task: Mission, forest: Forest, seeds: list[int], radius: float = 0.5) -> ArrayBool:
    """Flights that end within `radius` of the goal and never were inside a pillar."""
    there = np.linalg.norm(flown.path[:, -1] - task.goal, axis=1) < radius
    free = [clearance(flown.path[i], *forest.pillars(s)) > 0.0 for i, s in enumerate(seeds)]
    return np.asarray(there & np.array(free))
