"""The readable form of the update, one flight, in float64: what the compiled one is tested against.

The whole box is kept as plain arrays; cells that leave the window are set to unknown, which is all that a ring does. Operations
on coordinates are in the order of the native text, so that both find the same cells to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.frames import to_matrix
from airworthy.optics.projections import Pinhole
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping.boxes import SHELL, Rules, logit, map_boxes, pixel_slopes
from airworthy.planners.mapping.maps import FAR

__all__ = ["Cell", "MapTwin", "ray_end", "squared_field", "walk"]

# ---- One ray of the readable update: where it ends, and the cells that it passes --------------------------------------------

Cell = tuple[int, int, int]


def ray_end(
    settings: MapSettings, box: tuple[Array, Array], pixel: tuple[float, float, float], eye: Array, turn: Array
) -> tuple[Array, bool] | None:
    """Return where the ray of a pixel ends [m], and whether something was hit there; None: the pixel is not used.

    Args:
        settings: Lengths of rays and depths.
        box: Corners of the map [m].
        pixel: Slopes x/z and y/z, and depth [m].
        eye: Place of the camera [m], (3,).
        turn: Its optical frame, (3, 3).
    """
    s, (lower, upper), (x, y, d) = settings, box, pixel
    if d == 0.0 or d > s.depth_max:
        d = s.ray_max + 0.1
    if not d >= s.depth_min:
        return None
    point = np.array([c + d * (m[0] * x + m[1] * y + m[2]) for c, m in zip(eye, turn, strict=True)])
    ray = point - eye
    inside = bool(((point > lower + 1e-4) & (point < upper - 1e-4)).all())
    if not inside:
        faces = [(u if w > 0.0 else o) - c for u, o, w, c in zip(upper, lower, ray, eye, strict=True)]
        part = min(face / w if w != 0.0 else 1e30 for face, w in zip(faces, ray, strict=True)) - 1e-3 / norm(ray)
        ray = ray * max(part, 0.0)
    length = norm(ray)
    if length <= s.ray_max:
        return (point if inside else eye + ray), inside
    return eye + ray * (s.ray_max / length), False


def norm(v: Array) -> float:
    """Return the length of a vector, summed in the order of the native text."""
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


def walk(start: Array, cell: Cell, stop: Array, goal: Cell, least: float) -> list[Cell]:
    """Return cells from a point back to the camera (Amanatides and Woo, 1987).

    Args:
        start: The point, in cells from the corner of the box, (3,).
        cell: In which it lies.
        stop: The camera, likewise.
        goal: Its cell.
        least: The walk ends before the first cell whose middle is nearer to the camera [cells].
    """
    at, left = list(cell), [abs(g - c) for g, c in zip(goal, cell, strict=True)]
    move = [1 if g > c else -1 for g, c in zip(goal, cell, strict=True)]
    ray = stop - start
    step = [1.0 / abs(w) if w != 0.0 else math.inf for w in ray]
    following = [((c + 1 if w > 0.0 else c) - s) / w if n else 1e300 for c, w, s, n in zip(cell, ray, start, left, strict=True)]
    cells: list[Cell] = []
    while True:
        off = [c + 0.5 - s for c, s in zip(at, stop, strict=True)]
        if off[0] * off[0] + off[1] * off[1] + off[2] * off[2] < least * least:
            return cells
        cells.append((at[0], at[1], at[2]))
        if not any(left):
            return cells
        axis = following.index(min(following))  # of equal ones the first
        at[axis] += move[axis]
        left[axis] -= 1
        following[axis] = following[axis] + step[axis] if left[axis] else 1e300


# -----------------------------------------------------------------------------------------------------------------------------

Span = tuple[slice, slice, slice]


class MapTwin:
    """The map of one flight of a mission.

    Args:
        settings: Of the map.
        mission: Its flight number `flight` counts.
        projection: The whole image's camera.
        flight: In the batch.
    """

    def __init__(self, settings: MapSettings, mission: Mission, projection: Pinhole, flight: int = 0) -> None:
        self.settings, self.rules, self.flight = settings, Rules.of(settings), flight
        self.boxes = map_boxes(mission, settings)
        self.slopes, self.pixel, _ = pixel_slopes(projection, settings)
        self.origin, self.upper = self.boxes.origin[flight], self.boxes.upper[flight]
        self.cells = self.boxes.cells[flight]
        self.least, self.most = logit(settings.least), logit(settings.most)
        self.unknown = self.least - 0.01
        self.corner: NDArray[np.int32] | None = None
        self.odds = np.full(self.cells, self.unknown)
        self.inflated = np.zeros(self.cells, bool)
        self._always()
        self.squared = np.full(self.cells, FAR)
        self.bound: tuple[ArrayInt, ArrayInt] | None = None

    def _always(self) -> None:
        """Occupy the ceiling, and the floor where it is known."""
        self.inflated[..., -1] = True
        self.inflated[..., : self.rules.floor] = True

    # ---- one image

    def update(self, depth: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> None:
        """Put the pixels that are read (h, w), taken at (3,) and (4,), into the map.

        Args:
            depth: Image (h, w) [m], distances along the optical axis.
            position: Of the camera, (3,) [m], world.
            attitude: Of the camera's body frame (x forward), quaternion x, y, z, w.
        """
        eye, turn = np.asarray(position, float), to_matrix(attitude)
        if not (self.boxes.inside(np.array([self.flight]), eye[None]).all() and np.isfinite(turn).all()):
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
        """Forget what is outside the new window."""
        self.corner = self.boxes.window(eye[None], np.array([self.flight]))[0]
        gone = np.ones(self.cells, bool)
        gone[self._window()] = False
        self.odds[gone], self.inflated[gone], self.squared[gone] = self.unknown, False, FAR
        self._always()

    def _window(self) -> Span:
        assert self.corner is not None
        a, b = self.corner, self.corner + self.boxes.side[self.flight]
        return slice(a[0], b[0]), slice(a[1], b[1]), slice(a[2], b[2])

    def _cell(self, point: Array) -> Cell:
        i, j, k = np.clip(np.floor((point - self.origin) / self.settings.resolution), 0, self.cells - 1).astype(int).tolist()
        return i, j, k

    def _trace(self, depth: ArrayF32, eye: Array, turn: Array) -> dict[Cell, list[int]] | None:
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
        """Update the log-odds of touched cells; one out of reach begins anew."""
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
        top = np.minimum(self.corner + self.boxes.side[self.flight], self.cells)
        self.bound = np.maximum(self.bound[0], self.corner), np.minimum(self.bound[1], top)

    def _span(self, by: int) -> Span:
        """Return the local bound grown by some cells, cut at the window."""
        assert self.bound is not None
        assert self.corner is not None
        lo = np.maximum(self.bound[0] - by, self.corner)
        hi = np.minimum(self.bound[1] + by, np.minimum(self.corner + self.boxes.side[self.flight], self.cells))
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


def squared_field(taken: ArrayBool) -> ArrayInt:
    """Return the distance layer of cells (nx, ny, nz): least squares along one axis after the other (section 1.2)."""

    def least(source: ArrayBool) -> ArrayInt:
        squared = np.where(source, 0, FAR)
        for axis in (2, 1, 0):
            number = np.arange(squared.shape[axis])
            between = (number[:, None] - number[None, :]) ** 2
            line = np.moveaxis(squared, axis, -1)
            squared = np.moveaxis((line[..., None, :] + between).min(-1), -1, axis)
        return np.minimum(squared, FAR)

    return np.where(taken, -least(~taken), least(taken))
