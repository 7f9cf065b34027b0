"""Small worlds of pillars, windows of what is known of them, and flights that follow set-points exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.planners.common.interface import Mission, Motion
from airworthy.verification.planning.worlds import CELL as H
from airworthy.verification.planning.worlds import TICK as PERIOD
from airworthy.verification.planning.worlds import SightMaps
from airworthy.verification.planning.worlds import World as PillarWorld

__all__ = ["PERIOD", "Flown", "H", "SightMaps", "World", "fly", "forest"]


class World(PillarWorld):
    """Pillars from floor to ceiling in a box around the origin, of which floor and ceiling are kept away from, too."""

    def clearance(self, points: Array) -> float:
        """Least distance of points (k, 3) from pillars, floor and ceiling [m]."""
        sides = np.minimum(points[:, 2], self.size[2] - points[:, 2])
        return min(super().clearance(points), float(sides.min()))


def forest(seed: int, count: int = 150) -> tuple[World, Array, Array]:
    """The public demo's forest, 40 x 20 m with pillars 0.5 to 0.7 m wide; start and goal at its ends."""
    draw = np.random.default_rng(seed)
    start, goal = np.array([-19.0, 0.0, 1.0]), np.array([19.0, 0.0, 1.0])
    pillars: list[Array] = []
    while len(pillars) < count:
        pillar = np.array([draw.uniform(-20.0, 20.0), draw.uniform(-10.0, 10.0), draw.uniform(0.25, 0.35)])
        if min(np.hypot(*(pillar[:2] - p[:2])) for p in (start, goal)) > 1.0 + pillar[2]:
            pillars.append(pillar)
    return World((40.0, 20.0, 3.0), np.array(pillars)), start, goal


@dataclass(eq=False)
class Flown:
    """Of n flights."""

    arrived: ArrayBool
    time: Array
    clearance: Array
    tracks: list[Array]
    replans: ArrayInt
    jumps: float
    """Longest step of a set-point in one period [m]."""


def fly(
    planner: Any,
    worlds: list[World],
    start: Array,
    goal: Array,
    *,
    speed: float = 3.0,
    acceleration: float = 2.0,
    limit: float = 40.0,
    delay: float = 0.0,
    numbers: ArrayInt | None = None,
) -> Flown:
    """Fly missions whose vehicles are where their set-points say."""
    n = len(worlds)
    lower, upper = np.array([w.lower for w in worlds]), np.array([w.upper for w in worlds])
    caps = np.full(n, speed), np.full(n, acceleration)
    flight = np.arange(n) if numbers is None else numbers
    planner.reset(Mission(start, goal, *caps, lower, upper, flight, 0))
    maps, position, velocity, yaw = SightMaps(worlds), start.copy(), np.zeros((n, 3)), np.zeros(n)
    arrived, time, replans = np.zeros(n, bool), np.full(n, np.nan), np.zeros(n, np.int64)
    tracks, jumps = [position.copy()], 0.0
    for step in range(int(limit / PERIOD)):
        if step % 5 == 0:
            maps.see(position)
        now = np.full(n, step * PERIOD)
        half = 0.5 * yaw
        turned = np.stack([0.0 * half, 0.0 * half, np.sin(half), np.cos(half)], axis=1)
        replans += planner.update(Motion(now, position, velocity, turned), maps, ~arrived)["replans"]
        planner.adopt(np.full(n, delay))
        wanted = planner.setpoints(now + PERIOD)
        moved = np.where(arrived[:, None], position, wanted.position)
        jumps = max(jumps, float(np.linalg.norm(moved - position, axis=1).max()))
        position, velocity, yaw = moved, wanted.velocity, wanted.yaw
        tracks.append(position.copy())
        there = ~arrived & (np.linalg.norm(position - goal, axis=1) < 0.5) & (np.linalg.norm(velocity, axis=1) < 0.5)
        arrived, time = arrived | there, np.where(there, now, time)
        if arrived.all():
            break
    paths = np.array(tracks).transpose(1, 0, 2)
    clearance = np.array([w.clearance(p) for w, p in zip(worlds, paths, strict=True)])
    return Flown(arrived, time, clearance, list(paths), replans, jumps)
