"""The readable form of the update, one flight, in float64: what the compiled one is tested against.

The whole box is kept as plain arrays; cells that leave the window are set to unknown, which is all that a ring does. Operations
on coordinates are in the order of the native text, so that both find the same cells to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.frames import to_matrix
from airworthy.pilots.mapping.boxes import SHELL, map_boxes
from airworthy.pilots.mapping.cameras import pixel_slopes
from airworthy.pilots.mapping.lookup import FAR
from airworthy.pilots.mapping.rules import Rules, logit
from airworthy.pilots.mapping.twin_rays import Cell, ray_end, walk
from airworthy.pilots.planning.interface import MapSettings, Mission
from airworthy.sensors.projections import Pinhole

__all__ = ["MapTwin", "squared_field"]

Array = NDArray[np.float64]
Span = tuple[slice, slice, slice]


class MapTwin:
    """The map of one flight of a mission.

    Args:
        settings: Of the map.
        mission: Its flight number `place` counts.
        projection: The whole image's camera.
        place: In the batch.
    """

    def __init__(self, settings: MapSettings, mission: Mission, projection: Pinhole, place: int = 0) -> None:
        self.settings, self.rules, self.place = settings, Rules.of(settings), place
        self.boxes = map_boxes(mission, settings)
        self.slopes, self.pixel, _ = pixel_slopes(projection, settings)
        self.origin, self.upper = self.boxes.origin[place], self.boxes.upper[place]
        self.cells = self.boxes.cells[place]
        self.least, self.most = logit(settings.least), logit(settings.most)
        self.unknown = self.least - 0.01
        self.corner: NDArray[np.int32] | None = None
        self.odds = np.full(self.cells, self.unknown)
        self.inflated = np.zeros(self.cells, bool)
        self._always()
        self.squared = np.full(self.cells, FAR)
        self.bound: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def _always(self) -> None:
        """The ceiling, and the floor where it is known."""
        self.inflated[..., -1] = True
        self.inflated[..., : self.rules.floor] = True

    # ---- one image

    def update(self, depth: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> None:
        """Put the pixels that are read (h, w), taken at (3,) and (4,), into the map."""
        eye, turn = np.asarray(position, float), to_matrix(attitude)
        if not (self.boxes.inside(np.array([self.place]), eye[None]).all() and np.isfinite(turn).all()):
            return
        self._slide(eye)
        counts = self._trace(np.asarray(depth, np.float32).reshape(-1)[self.pixel], eye, turn)
        if counts is None:
            return
        self._filter(counts, eye)
        self._forget_shell()
        self._inflate()
        if self.settings.field:
            self._measure()

    def update_cloud(self, points: ArrayLike, position: ArrayLike) -> None:
        """Put a cloud (m, 3), seen from (3,), into the inflated layer."""
        eye = np.asarray(position, float)
        self._slide(eye)
        reach = np.array(self.settings.reach)
        lo = np.floor((eye - reach - self.origin) / self.settings.resolution).astype(int)
        hi = np.floor((eye + reach - self.origin) / self.settings.resolution).astype(int) + 1
        self.bound = lo, hi
        self._cut_bound()
        self.inflated[self._span(0)] = False
        window = np.zeros(self.cells, bool)
        window[self._window()] = True
        for point in np.asarray(points, float):
            if not ((np.abs(point - eye) < reach) & (point >= self.origin) & (point <= self.upper)).all():
                continue
            i, j, k = self._cell(point)
            cube = tuple(slice(max(c - r, 0), c + r + 1) for c, r in ((i, self.rules.radius), (j, self.rules.radius), (k, 1)))
            self.inflated[cube] |= window[cube]
        self._always()
        if self.settings.field:
            self._measure()

    # ---- steps of it

    def _slide(self, eye: Array) -> None:
        """What is outside the new window is forgotten."""
        self.corner = self.boxes.window(eye[None], np.array([self.place]))[0]
        gone = np.ones(self.cells, bool)
        gone[self._window()] = False
        self.odds[gone], self.inflated[gone], self.squared[gone] = self.unknown, False, FAR
        self._always()

    def _window(self) -> Span:
        assert self.corner is not None
        a, b = self.corner, self.corner + self.boxes.side[self.place]
        return slice(a[0], b[0]), slice(a[1], b[1]), slice(a[2], b[2])

    def _cell(self, point: Array) -> Cell:
        i, j, k = np.clip(np.floor((point - self.origin) / self.settings.resolution), 0, self.cells - 1).astype(int).tolist()
        return i, j, k

    def _trace(self, depth: NDArray[np.float32], eye: Array, turn: Array) -> dict[Cell, list[int]] | None:
        """Hits and misses of every cell that this image touched."""
        counts: dict[Cell, list[int]] = {}
        ended: set[Cell] = set()
        walked: set[Cell] = set()
        goal = self._cell(eye)
        low, high = np.array(goal), np.array(goal) + 1
        for (x, y), d in zip(self.slopes, depth, strict=True):
            found = ray_end(self.settings, (self.origin, self.upper), (x, y, float(d)), eye, turn)
            if found is None:
                continue
            point, hit = found
            cell = self._cell(point)
            counts.setdefault(cell, [0, 0])[0 if hit else 1] += 1
            low, high = np.minimum(low, cell), np.maximum(high, np.array(cell) + 1)
            if cell in ended:
                continue
            ended.add(cell)
            start, stop = ((p - self.origin) / self.settings.resolution for p in (point, eye))
            for passed in walk(start, cell, stop, goal, self.settings.ray_min / self.settings.resolution):
                counts.setdefault(passed, [0, 0])[1] += 1
                if passed in walked:
                    break
                walked.add(passed)
        self.bound = (low, high) if counts else self.bound
        return counts or None

    def _filter(self, counts: dict[Cell, list[int]], eye: Array) -> None:
        """The log-odds of touched cells; one out of reach begins anew."""
        s = self.settings
        reach = np.array(s.reach)
        lo, hi = (np.floor((eye + sign * reach - self.origin) / s.resolution) for sign in (-1.0, 1.0))
        for cell, (hits, misses) in counts.items():
            old = self.odds[cell] if ((lo <= cell) & (cell <= hi)).all() else self.least
            added = logit(s.hit) if hits >= misses else logit(s.miss)
            self.odds[cell] = min(max(old + added, self.least), self.most)

    def _cut_bound(self) -> None:
        """Cut the local bound at the window."""
        assert self.bound is not None
        assert self.corner is not None
        top = np.minimum(self.corner + self.boxes.side[self.place], self.cells)
        self.bound = np.maximum(self.bound[0], self.corner), np.minimum(self.bound[1], top)

    def _span(self, by: int) -> Span:
        """The local bound grown by some cells, cut at the window."""
        assert self.bound is not None
        assert self.corner is not None
        lo = np.maximum(self.bound[0] - by, self.corner)
        hi = np.minimum(self.bound[1] + by, np.minimum(self.corner + self.boxes.side[self.place], self.cells))
        return slice(lo[0], hi[0]), slice(lo[1], hi[1]), slice(lo[2], hi[2])

    def _forget_shell(self) -> None:
        shell = np.zeros(self.cells, bool)
        shell[self._span(self.rules.margin + SHELL)] = True
        shell[self._span(self.rules.margin)] = False
        self.odds[shell] = self.unknown

    def _inflate(self) -> None:
        """In the local bound anew, in the rim around it added; sources are all occupied cells of both."""
        near, r = self._span(self.rules.radius), self.rules.radius
        taken = np.zeros(self.cells, bool)
        taken[near] = self.odds[near] > logit(self.settings.occupied)
        grown = np.zeros(self.cells, bool)
        for i, j, k in np.argwhere(taken):
            grown[max(i - r, 0) : i + r + 1, max(j - r, 0) : j + r + 1, max(k - r, 0) : k + r + 1] = True
        self.inflated[self._span(0)] = False
        self.inflated[near] |= grown[near]
        self._always()

    def _measure(self) -> None:
        span = self._span(self.rules.field_margin)
        self.squared[span] = squared_field(self.inflated[span])


def squared_field(taken: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The distance layer of cells (nx, ny, nz): least squares along one axis after the other (section 1.2)."""

    def least(source: NDArray[np.bool_]) -> NDArray[np.int64]:
        squared = np.where(source, 0, FAR)
        for axis in (2, 1, 0):
            number = np.arange(squared.shape[axis])
            between = (number[:, None] - number[None, :]) ** 2
            line = np.moveaxis(squared, axis, -1)
            squared = np.moveaxis((line[..., None, :] + between).min(-1), -1, axis)
        return np.minimum(squared, FAR)

    return np.where(taken, -least(~taken), least(taken))
