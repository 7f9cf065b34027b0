"""Small worlds of pillars, windows of what is known of them, and flights that follow set-points exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry.distance_field import distance_field
from airworthy.pilots.fast.records import FAR
from airworthy.pilots.fast.windows import Windows, window_of
from airworthy.pilots.mapping.scene import grown
from airworthy.pilots.planning.interface import Mission, Motion

Array = NDArray[np.float64]
H = 0.1
"""Edge of a cell [m]."""
PERIOD = 0.01


def signed_distances(cells: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The specification's field of cells: D+, less D- and plus one cell inside [m]."""
    outside, inside = distance_field(cells, H).values, distance_field(~cells, H).values
    values = np.where(inside > 0.0, outside - inside + H, outside)
    return np.where(np.isfinite(values), values, FAR).astype(np.float32)


@dataclass(eq=False)
class World:
    """Pillars from floor to ceiling in a box around the origin."""

    size: tuple[float, float, float]
    """Length, width and height [m]."""
    pillars: Array
    """x, y and radius of each, (k, 3) [m]."""
    cells: NDArray[np.bool_] = field(init=False)
    """Inflated by one cell; from the floor to the ceiling."""

    def __post_init__(self) -> None:
        shape = np.rint(np.array(self.size) / H).astype(int)
        x, y = ((np.arange(n) + 0.5) * H - 0.5 * s for n, s in zip(shape[:2], self.size[:2], strict=True))
        flat = np.zeros(shape[:2], bool)
        for a, b, r in self.pillars:
            flat |= (x[:, None] - a) ** 2 + (y[None] - b) ** 2 < r * r
        self.cells = grown(np.repeat(flat[:, :, None], shape[2], axis=2), 1)
        self.cells[..., 0] = self.cells[..., -1] = True

    @property
    def lower(self) -> Array:
        return np.array([-0.5 * self.size[0], -0.5 * self.size[1], 0.0])

    @property
    def upper(self) -> Array:
        return self.lower + np.array(self.size)

    def clearance(self, points: Array) -> Array:
        """Of points (k, 3) from pillars, floor and ceiling [m]."""
        sides = np.minimum(points[:, 2], self.size[2] - points[:, 2])
        if not len(self.pillars):
            return sides
        away = np.hypot(*(points[:, None, :2] - self.pillars[None, :, :2]).transpose(2, 0, 1)) - self.pillars[:, 2]
        return np.minimum(sides, away.min(1))

    def window(self) -> Windows:
        """All of it, known."""
        return window_of(self.cells.astype(np.uint8), self.lower, self.lower, self.upper, H, signed_distances(self.cells))


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


class SeenMaps:
    """`Maps` of what came within reach of the vehicles so far; the distance field is made when it is asked for."""

    def __init__(self, worlds: list[World], reach: float = 4.5):
        self.worlds, self._reach = worlds, int(reach / H)
        self._known = [np.zeros_like(w.cells) for w in worlds]
        self._window: list[tuple[slice, ...]] = [()] * len(worlds)
        self._fields: dict[int, NDArray[np.float32]] = {}

    def see(self, position: Array) -> None:
        for k, (world, known) in enumerate(zip(self.worlds, self._known, strict=True)):
            cell = np.floor((position[k] - world.lower) / H).astype(int)
            seen, wide = (tuple(slice(max(c - r, 0), max(c + r + 1, 0)) for c in cell) for r in (self._reach, self._reach + 20))
            known[seen] = world.cells[seen]
            self._window[k] = wide
        self._fields.clear()

    def inflated(self, place: int) -> tuple[NDArray[np.uint8], Array]:
        window = self._window[place]
        corner = self.worlds[place].lower + H * np.array([s.start for s in window])
        return self._known[place][window].astype(np.uint8), corner

    def field(self, place: int) -> tuple[NDArray[np.float32], Array]:
        cells, corner = self.inflated(place)
        if place not in self._fields:
            self._fields[place] = signed_distances(cells != 0)
        return self._fields[place], corner


@dataclass(eq=False)
class Flown:
    """Of n flights."""

    arrived: NDArray[np.bool_]
    time: Array
    clearance: Array
    tracks: list[Array]
    replans: NDArray[np.int64]
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
    numbers: NDArray[np.int64] | None = None,
) -> Flown:
    """Fly missions whose vehicles are where their set-points say."""
    n = len(worlds)
    lower, upper = np.array([w.lower for w in worlds]), np.array([w.upper for w in worlds])
    caps = np.full(n, speed), np.full(n, acceleration)
    flight = np.arange(n) if numbers is None else numbers
    planner.reset(Mission(start, goal, *caps, lower, upper, flight, 0))
    maps, position, velocity, yaw = SeenMaps(worlds), start.copy(), np.zeros((n, 3)), np.zeros(n)
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
    clearance = np.array([w.clearance(p).min() for w, p in zip(worlds, paths, strict=True)])
    return Flown(arrived, time, clearance, list(paths), replans, jumps)
