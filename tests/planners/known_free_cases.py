"""Small worlds that are seen by rays through the cone of a camera, and flights that follow set-points exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.planners.common.interface import FREE, OCCUPIED, UNKNOWN, Airframes, MapView, Mission, Motion
from airworthy.planners.mapping.local import TouchedCells
from airworthy.vehicles import vehicle

__all__ = ["ConeMaps", "Flown", "H", "box_world", "clearance", "fly", "mission_of"]

H = 0.1
_U, _V = np.meshgrid(np.tan(np.radians(38.0)) * np.linspace(-1, 1, 45), np.tan(np.radians(31.0)) * np.linspace(-1, 1, 35))
RAYS = np.stack([np.ones(_U.size), _U.reshape(-1), _V.reshape(-1)], 1)
RAYS /= np.linalg.norm(RAYS, axis=1)[:, None]
ALONG = np.arange(0.07, 4.9, 0.07)


def box_world(size: tuple[float, float, float], *solids: tuple[float, ...]) -> ArrayBool:
    """Cells of a box from the origin on, with boxes (x0, x1, y0, y1, z0, z1) [m] in it."""
    cells = np.zeros(np.rint(np.array(size) / H).astype(int) + np.array([0, 0, 1]), bool)
    for x0, x1, y0, y1, z0, z1 in solids:
        lo, hi = np.rint(np.array([[x0, y0, z0], [x1, y1, z1]]) / H).astype(int)
        cells[lo[0] : hi[0], lo[1] : hi[1], lo[2] : hi[2]] = True
    return cells


def clearance(cells: ArrayBool, points: Array) -> float:
    """Least distance of points (k, 3) from solid cells [m]."""
    taken = np.argwhere(cells) * H
    best = np.inf
    for point in points[::4]:
        gap = np.maximum(np.maximum(taken - point, point - (taken + H)), 0.0)
        best = min(best, float(np.sqrt((gap**2).sum(1)).min(initial=np.inf)))
    return best


class ConeMaps:
    """What flights saw of a world: cells through which rays passed, and in which they ended."""

    def __init__(self, worlds: list[ArrayBool]):
        self.worlds = worlds
        self.cells = [np.full(world.shape, UNKNOWN, np.int8) for world in worlds]
        self.odds = [np.full(world.shape, -20_000, np.int16) for world in worlds]
        self.bounds = np.zeros((len(worlds), 2, 3), np.int32)
        self.images = np.zeros(len(worlds), int)

    def see(self, flight: int, position: Array, yaw: float) -> None:
        """Take an image."""
        turn = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
        points = position + (RAYS @ turn.T)[:, None] * ALONG[None, :, None]
        world, known = self.worlds[flight], self.cells[flight]
        index = np.floor(points / H).astype(int)
        inside = ((index >= 0) & (index < world.shape)).all(-1)
        held = np.clip(index, 0, np.array(world.shape) - 1)
        hit = inside & world[tuple(np.moveaxis(held, -1, 0))]
        before = np.cumsum(hit | ~inside, axis=1) == 0
        first = hit & (np.cumsum(hit, axis=1) == 1) & (np.cumsum(~inside, axis=1) == 0)
        for cells, state, odds in ((held[before], FREE, -8000), (held[first], OCCUPIED, 8000)):
            known[tuple(cells.T)], self.odds[flight][tuple(cells.T)] = state, odds
        touched = held[before | first]
        self.bounds[flight] = touched.min(0), touched.max(0) + 1
        self.images[flight] += 1

    def touched(self, flight: int) -> TouchedCells:
        """What the newest image changed."""
        side = np.array(self.worlds[flight].shape, np.int32)
        first, last = self.bounds[flight]
        return TouchedCells(self.odds[flight].reshape(-1), side, first, last, int(self.images[flight]))

    def view(self, flight: int) -> MapView:
        """All of it."""
        held = self.cells[flight]
        return MapView(
            held, held == OCCUPIED, np.array([0.0, 0.0, -0.01]), H, 0.05 * self.images[flight], int(self.images[flight])
        )


@dataclass(eq=False)
class Flown:
    """Of n flights."""

    arrived: ArrayBool
    time: Array
    tracks: list[Array]
    seen: list[Any]
    blind: int
    """Ticks in which a body was where nobody had looked."""


def mission_of(
    worlds: list[ArrayBool], start: Array, goal: Array, names: tuple[str, ...] | None = None, speed: float = 4.0
) -> Mission:
    """A flight per world, with vehicles by name."""
    n = len(worlds)
    upper = np.array([np.array(w.shape) * H - [0, 0, H] for w in worlds])
    frames = None if names is None else Airframes.of([vehicle(name) for name in names])
    caps = np.full(n, speed), np.full(n, 6.0)
    return Mission(start, goal, *caps, np.zeros((n, 3)), upper, np.arange(n), 0, frames)


def fly(
    planner: Any, worlds: list[ArrayBool], mission: Mission, limit: float, delay: float = 0.0, maps: ConeMaps | None = None
) -> Flown:
    """Fly missions whose vehicles are where their set-points say, at 100 Hz with 10 images a second."""
    n = len(worlds)
    planner.reset(mission)
    maps, position, velocity = maps or ConeMaps(worlds), np.array(mission.start), np.zeros((n, 3))
    away = mission.goal - mission.start
    yaw = np.arctan2(away[:, 1], away[:, 0])
    arrived, time, tracks, blind = np.zeros(n, bool), np.full(n, np.nan), [position.copy()], 0
    for step in range(int(limit * 100)):
        now = np.full(n, 0.01 * step)
        if step % 10 == 0:
            for k in np.flatnonzero(~arrived):
                maps.see(int(k), position[k], float(yaw[k]))
        turned = np.stack([0.0 * yaw, 0.0 * yaw, np.sin(0.5 * yaw), np.cos(0.5 * yaw)], axis=1)
        planner.update(Motion(now, position, velocity, turned), maps, ~arrived)
        planner.adopt(np.full(n, delay))
        wanted = planner.setpoints(now + 0.01)
        moved = np.where(arrived[:, None], position, wanted.position)
        velocity, yaw = wanted.velocity, np.where(arrived, yaw, wanted.yaw)
        for k in np.flatnonzero(~arrived):
            cell = np.clip(np.floor(moved[k] / H).astype(int), 0, np.array(worlds[k].shape) - 1)
            far = np.linalg.norm(moved[k] - mission.start[k]) > 1.0
            blind += bool(far and maps.cells[k][tuple(cell)] != FREE)
        position = moved
        tracks.append(position.copy())
        there = ~arrived & (np.linalg.norm(position - mission.goal, axis=1) < 0.5)
        there &= np.linalg.norm(velocity, axis=1) < 0.5
        arrived, time = arrived | there, np.where(there, now, time)
        if arrived.all():
            break
    return Flown(arrived, time, list(np.array(tracks).transpose(1, 0, 2)), maps.cells, blind)
