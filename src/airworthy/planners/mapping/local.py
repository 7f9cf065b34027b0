"""Local maps of n flights, kept up to date from depth images: `LocalMaps`."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.core.native_kernel import CPU_LANES, native_kernel, quiet_launch, quiet_warp, shared_source, thread_limit
from airworthy.core.threads import run_at_once
from airworthy.planners.common.interface import FREE, OCCUPIED, UNKNOWN, MapSettings, Mission
from airworthy.planners.mapping.boxes import SHELL, UNIT, Rules, lengths, map_boxes, mapping_camera, pixel_slopes
from airworthy.planners.mapping.maps import FAR, CellMaps, MapLayers, slots, unrolled

__all__ = [
    "CLOUD",
    "FIELD",
    "FREE",
    "IMAGE",
    "OCCUPIED",
    "SLIDE",
    "UNKNOWN",
    "LocalMaps",
    "TouchedCells",
    "Updater",
    "update_kernel",
    "update_source",
]


# ---------------------------------------------------------------------------------------------------------------------------
# Builds the kernel that puts images into maps: one task takes flights through all stages, or one stage of a part of one

_TEXTS = ("lanes.h", "frame.h", "slide.h", "trace.h", "apply.h", "inflate.h", "field.h", "cloud.h", "update.cpp")


def update_source(prefix: str = "") -> str:
    """Complete native source of the update; `#define SCALAR_PATH` as prefix gives a CPU the form of a GPU."""
    folder = files("airworthy.planners.mapping").joinpath("native")
    root = next(d for d in range(FAR) if d * d > FAR)
    names = f"enum {{ CPU_LANES = {CPU_LANES}, SHELL = {SHELL}, FAR = {FAR}, ROOT = {root} }};"
    return "\n".join([prefix, shared_source("prelude.h"), names, *(folder.joinpath(name).read_text() for name in _TEXTS)])


_ARGUMENTS = """
    settings: int32[]  # frames, tasks, parts, stages, pixels, numbers per image, sizes, settings
    sizes: int64[]  # work memory of a task
    numbers: float64[]  # cell, longest and least ray, least and most depth, reach x, y, z [m]
    frame_numbers: float64[]  # (k, 18) camera's rotation (9) and position (3), corners of the box (6)
    frame_cells: int32[]  # (k, 12) cells, side, window before, window now
    frame_base: int64[]  # (k,) first element of the flight's layers
    rays: float64[]  # (pixels, 2) x and y of the rays at depth 1
    pixel: int32[]  # (pixels,) where in the image they are
    depth: float32[]  # (k, H, W) [m]
    cloud: float64[]  # (k, m, 3) [m]
    # output
    odds: int16[]  # log-odds [1 / 4096]
    inflated: uint8[]
    squared: int16[]  # signed squared distance [cells^2]
    bounds: int32[]  # (k, 6) local bound
    counts: int32[]  # (tasks, size) zero between images
    work: int16[]
"""


@cache
def update_kernel(prefix: str = "") -> Any:
    """Return the update as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("map_update", update_source(prefix), _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Launches of the update over the flights of a batch, with the work memory that they share -------------------------------

SLIDE, TRACE, APPLY, DILATE, WRITE, POINTS, SWEEP, ENVELOPE = (1 << k for k in range(8))
IMAGE = SLIDE | TRACE | APPLY | DILATE | WRITE
CLOUD = SLIDE | POINTS
FIELD = SWEEP | ENVELOPE
_WHOLE = TRACE | POINTS
"""Stages in which one thread of a GPU takes a whole flight, so that the order of rays is that of a CPU."""
# Ours: enough parts to fill a GPU with the flights of a small batch.
_GPU_PARTS = 64
_GPU_FLIGHTS = 256
"""Ours: flights of one launch on a GPU, because each has its own work memory there."""


class Updater:
    """Runs `update_kernel` for the maps of a batch.

    Args:
        maps: Whose layers are changed.
        rays: (p, 2) slopes of the pixels that are read.
        pixel: (p,) their numbers in an image.
        threads: Of a CPU.
    """

    def __init__(self, maps: LocalMaps, rays: Array, pixel: NDArray[np.int32], threads: int) -> None:
        self.maps, self.kernel, self._pixels = maps, update_kernel(), len(pixel)
        self._cpu = maps.device == "cpu"
        self._tasks = min(threads, len(maps)) if self._cpu else min(_GPU_FLIGHTS, len(maps))
        counts, work = _sizes(maps)
        rules = maps.rules
        self._numbers = np.array([0, self._tasks, 1, 0, 0, 0, counts, *vars(rules).values()], np.int32)
        self._fixed = [maps._send(a) for a in (np.array([work]), lengths(maps.settings))]
        self._lines = [maps._send(a) for a in (rays, pixel)]
        device = maps.device
        wp = quiet_warp()
        self._memory = [
            wp.zeros(self._tasks * counts, dtype=wp.int32, device=device),
            wp.zeros(self._tasks * work, dtype=wp.int16, device=device),
        ]
        self._nothing = maps._send(np.zeros(1, np.float32)), maps._send(np.zeros(1))

    def run(
        self,
        flight: ArrayInt,
        pose: Array,
        before: NDArray[np.int32],
        after: NDArray[np.int32],
        observed: ArrayAny,
        stages: int,
    ) -> NDArray[np.int32]:
        """Update flights (k,) from images (k, h, w) float32 or clouds (k, m, 3) float64; their bounds (k, 6).

        Args:
            flight: Flights (k,).
            pose: Of their cameras, rotation matrix, row by row, and position [m], (k, 12), world.
            before: First cells of the windows before, (k, 3).
            after: And after the move, (k, 3).
            observed: Depth images (k, h, w) [m] or clouds (k, m, 3) [m], world.
            stages: Sum of the steps to be done, of `SLIDE` and so on.
        """
        boxes, step = self.maps.boxes, len(flight) if self._cpu else self._tasks
        bounds = np.full((len(flight), 6), -1, np.int32)
        for a in range(0, len(flight), step):
            part = slice(a, a + step)
            chosen = flight[part]
            rows = np.concatenate([pose[part], boxes.origin[chosen], boxes.upper[chosen]], 1)
            header = np.concatenate([boxes.cells[chosen], boxes.side[chosen], before[part], after[part]], 1)
            frames = [self.maps._send(x) for x in (rows, header.astype(np.int32), boxes.base[chosen])]
            bounds[part] = self._launch(frames, observed[part], stages)
        return bounds

    def _launch(self, frames: list[Any], observed: ArrayAny, stages: int) -> NDArray[np.int32]:
        send, count = self.maps._send, len(observed)
        is_cloud = bool(stages & POINTS)
        images = (self._nothing[0], send(observed)) if is_cloud else (send(observed), self._nothing[1])
        header = self._numbers.copy()
        header[0], header[3] = count, stages
        header[4] = observed.shape[1] if is_cloud else self._pixels
        header[5] = observed[0].size
        bounds = send(np.full(6 * count, -1, np.int32))
        rest = [*self._fixed, *frames, *self._lines, *images, self.maps._odds, self.maps._inflated, self.maps._squared, bounds]
        if self._cpu:
            self._on_cpu(header, rest)
        else:
            self._on_gpu(header, rest, count)
        return np.array(bounds.numpy()).reshape(count, 6)

    def _on_cpu(self, header: NDArray[np.int32], rest: list[Any]) -> None:
        arguments = [self.maps._send(header), *rest, *self._memory]
        tasks = min(self._tasks, int(header[0]))
        header[1] = tasks
        if tasks == 1:
            quiet_launch(self.kernel, 1, [*arguments, 0], "cpu")
            return
        shares = [quiet_launch(self.kernel, 1, [*arguments, task], "cpu", record=True) for task in range(tasks)]
        run_at_once([share.launch for share in shares], "airworthy-maps")

    def _on_gpu(self, header: NDArray[np.int32], rest: list[Any], count: int) -> None:
        for stage in (1 << k for k in range(8)):
            if header[3] & stage:
                parts = 1 if stage & _WHOLE else _GPU_PARTS
                one = header.copy()
                one[1:4] = count, parts, stage
                arguments = [self.maps._send(one), *rest, *self._memory, 0]
                quiet_launch(self.kernel, count * parts, arguments, self.maps.device)


def _sizes(maps: LocalMaps) -> tuple[int, int]:
    """Words for the counts and 16-bit numbers for the work of one flight, the largest."""
    rules, cells = maps.rules, maps.boxes.cells.astype(np.int64)
    wide = 2 * rules.reach + 1
    near = np.minimum(cells, wide + np.array([0, 0, CPU_LANES]))
    counts = near[:, 0] * near[:, 1] * _whole(near[:, 2])
    reach = np.ceil(np.array(maps.settings.reach) / maps.settings.resolution).astype(np.int64) + 1
    grown = max(rules.radius, rules.field_margin)
    around = np.minimum(cells, np.maximum(2 * reach + 1, wide) + 2 * grown + np.array([0, 0, CPU_LANES]))
    x, y, z = around[:, 0], around[:, 1], _whole(around[:, 2])
    field = 2 * x * y * z + x * (y * CPU_LANES + 3 * z)
    inflation = x * y * z + x * (z // 2 + CPU_LANES)
    return int(counts.max()), int((field if rules.field else inflation).max()) + CPU_LANES


def _whole(count: ArrayInt) -> ArrayInt:
    """Return rounded up to whole lanes."""
    return -(-count // CPU_LANES) * CPU_LANES


# -----------------------------------------------------------------------------------------------------------------------------


class TouchedCells(NamedTuple):
    """Log-odds around one flight, and which of them its newest image may have changed; for memories that take them over.

    Cell (i, j, k) of the flight's box lies at (i, j, k) modulo `side`.
    """

    odds: NDArray[np.int16]
    """Flat, z fastest, [1 / UNIT]; a view of what the maps hold."""
    side: NDArray[np.int32]
    """(3,) cells kept along x, y, z."""
    first: NDArray[np.int32]
    """(3,) first cell that was touched."""
    last: NDArray[np.int32]
    """(3,) the one behind the last; equal to `first` before the first image."""
    images: int
    """How many images are in it."""
    time: float = math.nan
    """When the newest of them was taken, on the flight's clock [s]; NaN where nobody said."""


class LocalMaps(CellMaps):
    """Occupancy, inflation and, if asked, distances around n flights.

    Args:
        settings: Of the map.
        mission: Whose boxes are mapped; nothing else of it is used.
        projection: The whole image's camera, of which every `skip`-th pixel is read; None: that of mode `fast`.
        device: cpu, or a CUDA device of Warp.
        threads: Of a CPU; None: all.

    Raises:
        AirworthyError: If settings, boxes or camera cannot be used.
    """

    def __init__(
        self,
        settings: MapSettings,
        mission: Mission,
        projection: Any = None,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        self.settings, self.rules = settings, Rules.of(settings)
        boxes = map_boxes(mission, settings)
        self.projection = mapping_camera() if projection is None else projection
        rays, pixel, self.image_shape = pixel_slopes(self.projection, settings)
        total = int(boxes.base[-1])
        squared = np.empty(total, np.int16) if settings.field else None
        corner = boxes.window(np.nan_to_num(np.asarray(mission.start, np.float64)), np.arange(len(boxes)))
        super().__init__(MapLayers(boxes, corner, np.empty(total, np.uint8), squared), device)
        self._odds = self._send(np.empty(total, np.int16))
        self._bounds = np.full((len(boxes), 2, 3), -1, np.int32)
        self._stamps = np.full(len(boxes), np.nan)
        self._images = np.zeros(len(boxes), np.int64)
        self._updater = Updater(self, rays, pixel, threads or thread_limit())
        self.reset()

    # ---- filling

    def reset(self, flights: ArrayLike | None = None) -> None:
        """Forget everything that these flights (k,) have seen; None: all of them. Before the first image windows are where
        missions begin."""
        chosen = np.arange(len(self)) if flights is None else np.unique(np.asarray(flights, np.int64))
        corner = self._host.corner[chosen]
        nowhere = np.full_like(corner, -(1 << 24))  # all of the window enters
        observed = np.zeros((len(chosen), 1), np.float32)
        self._updater.run(chosen, np.zeros((len(chosen), 12)), nowhere, corner, observed, SLIDE)
        self._bounds[chosen] = -1
        self._stamps[chosen], self._images[chosen] = np.nan, 0
        self._forget(chosen)

    def update(
        self,
        flights: ArrayLike,
        depth: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        time: ArrayLike | None = None,
    ) -> None:
        """Put one depth image of each of some flights into their maps.

        A flight whose camera is outside its box or has no finite pose keeps its map as it is.

        Args:
            flights: Places in the batch, (k,), each at most once.
            depth: (k, H, W) along the optical axis [m]: whole images of `projection`, or of the pixels that are read alone
                (`cameras.read_pixels`). Nothing returned is 0 or infinite; what is NaN or negative is not used.
            position: (k, 3) of the camera [m].
            attitude: (k, 4) of its optical frame (x right, y down, z ahead), to world.
            time: When the images were taken, on the flights' clocks [s], (k,) or one: the stamps of `view`; None: not told.

        Raises:
            AirworthyError: If shapes do not fit, or a flight does not exist or is named twice.
        """
        number, at, turned = self._posed(flights, position, attitude)
        image = self._read(depth, len(number))
        fit = self.boxes.inside(number, at) & np.isfinite(turned).all(-1)
        stages = IMAGE | FIELD if self.settings.field else IMAGE
        turn = to_matrix(np.where(fit[:, None], turned, (0.0, 0.0, 0.0, 1.0))).reshape(-1, 9)
        self._images[number[fit]] += 1
        self.stamp(number, np.nan if time is None else time)
        self._put(number, fit, turn, at, image, stages)

    def stamp(self, flights: ArrayLike, time: ArrayLike) -> None:
        """Say when the newest images of some flights (k,) were taken, on the flights' clocks [s], (k,) or one; see `view`."""
        self._stamps[np.asarray(flights, np.int64)] = time

    def update_cloud(self, flights: ArrayLike, points: ArrayLike, position: ArrayLike) -> None:
        """Put one cloud of points of each of some flights into their inflated layers: section 1.1's alternative.

        What is within `reach` of the sensor is cleared, and cubes around the points there (+-1 cell along z) are set; log-odds
        do not change.

        Args:
            flights: Places in the batch, (k,), each at most once.
            points: (k, m, 3) world [m]; NaN where a flight has fewer.
            position: (k, 3) of the sensor [m].

        Raises:
            AirworthyError: As `update`.
        """
        unit = np.tile((0.0, 0.0, 0.0, 1.0), (np.size(flights), 1))
        number, at, turned = self._posed(flights, position, unit)
        cloud = np.ascontiguousarray(points, np.float64)
        if cloud.ndim != 3 or cloud.shape[::2] != (len(number), 3):
            raise AirworthyError(f"Clouds have shape {cloud.shape}; expected ({len(number)}, m, 3).")
        stages = CLOUD | FIELD if self.settings.field else CLOUD
        self._put(number, self.boxes.inside(number, at), to_matrix(turned).reshape(-1, 9), at, cloud, stages)

    # ---- asking

    def bound(self, flight: int) -> tuple[Array, Array]:
        """Return corners (3,) and (3,) [m] of what the newest image of a flight touched; equal before the first."""
        lo, hi = self._bounds[flight]
        if hi[0] < 0:
            return self.boxes.origin[flight].copy(), self.boxes.origin[flight].copy()
        return self.boxes.origin[flight] + self.boxes.resolution * lo, self.boxes.origin[flight] + self.boxes.resolution * hi

    def touched(self, flight: int) -> TouchedCells:
        """Return log-odds around one flight as they are kept, and what its newest image touched; a view, on a CPU."""
        span = slice(int(self.boxes.base[flight]), int(self.boxes.base[flight + 1]))
        low, high = self._bounds[flight]
        seen = high[0] >= 0
        first, last = (low, high) if seen else (np.zeros(3, np.int32), np.zeros(3, np.int32))
        images, time = int(self._images[flight]), float(self._stamps[flight])
        return TouchedCells(self._odds.numpy()[span], self.boxes.side[flight], first.copy(), last.copy(), images, time)

    def state(self, flight: ArrayLike, points: ArrayLike) -> NDArray[np.int8]:
        """Return UNKNOWN, FREE or OCCUPIED, before inflation, at points (k, m, 3) [m]; (k, m). Outside the box: UNKNOWN."""
        odds = self.log_odds(flight, points)
        known = np.where(odds > self.rules.occupied / UNIT, OCCUPIED, FREE)
        return np.where(odds >= self.rules.least / UNIT, known, UNKNOWN).astype(np.int8)

    def log_odds(self, flight: ArrayLike, points: ArrayLike) -> Array:
        """Return log-odds of the cells in which points (k, m, 3) [m] lie; (k, m). Below the least: never seen, or forgotten."""
        number, at = self._asked(flight, points)
        boxes, chosen = self.boxes, number.astype(np.int64)
        fits = np.isfinite(at).all(-1, keepdims=True)
        cell = np.floor((np.where(fits, at, -1e6) - boxes.origin[chosen][:, None]) / boxes.resolution).astype(np.int64)
        slot, kept = slots(self._host, chosen, cell)
        flat = self._odds.numpy()
        return np.where(kept & (cell >= 0).all(-1), flat[np.where(kept, slot, 0)], self.rules.unknown) / UNIT

    def _observed(self, flight: int) -> tuple[NDArray[np.int8], float, int]:
        boxes, corner = self.boxes, self._host.corner[flight]
        side, span = boxes.side[flight], slice(int(boxes.base[flight]), int(boxes.base[flight + 1]))
        count = np.minimum(side, boxes.cells[flight] - corner)
        odds = unrolled(self._odds[span].numpy().reshape(side), corner % side, count)
        known = np.where(odds > self.rules.occupied, OCCUPIED, FREE)
        cells = np.where(odds >= self.rules.least, known, UNKNOWN).astype(np.int8)
        return cells, float(self._stamps[flight]), int(self._images[flight])

    # ---- inside

    def _posed(self, flights: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> tuple[ArrayInt, Array, Array]:
        number = np.asarray(flights, np.int64).reshape(-1)
        at, turned = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        if at.shape != (len(number), 3) or turned.shape != (len(number), 4):
            raise AirworthyError(
                f"{len(number)} flights were given positions of shape {at.shape} and attitudes of shape {turned.shape};"
                f" expected ({len(number)}, 3) and ({len(number)}, 4)."
            )
        if number.size and (number.min() < 0 or number.max() >= len(self) or len(np.unique(number)) < len(number)):
            raise AirworthyError(
                f"Flights {number.tolist()} are to be mapped; expected each at most once, 0 to {len(self) - 1}."
            )
        return number, at, turned

    def _read(self, depth: ArrayLike, count: int) -> ArrayF32:
        """Return the pixels that are read, (k, h, w)."""
        image = np.asarray(depth, np.float32)
        whole = (self.projection.height, self.projection.width)
        if image.shape == (count, *whole):
            b, skip = self.settings.border, self.settings.skip
            image = image[:, b : whole[0] - b : skip, b : whole[1] - b : skip]
        if image.shape != (count, *self.image_shape):
            raise AirworthyError(
                f"Depth has shape {image.shape}; expected ({count}, {whole[0]}, {whole[1]}), or of the pixels that are read"
                f" ({count}, {self.image_shape[0]}, {self.image_shape[1]})."
            )
        return np.ascontiguousarray(image)

    def _put(self, number: ArrayInt, fit: ArrayBool, turn: Array, at: Array, observed: ArrayAny, stages: int) -> None:
        if not fit.all():
            number, turn, at, observed = number[fit], turn[fit], at[fit], np.ascontiguousarray(observed[fit])
        if not number.size:
            return
        before = self._host.corner[number]
        after = self.boxes.window(at, number)
        bounds = self._updater.run(number, np.concatenate([turn, at], 1), before, after, observed, stages)
        self._host.corner[number] = after
        touched = bounds[:, 3] >= 0
        self._bounds[number[touched]] = bounds[touched].reshape(-1, 2, 3)
        self._send_corners()
        self._forget(number)

    @property
    def memory(self) -> int:
        """Bytes that the layers of the largest flight take; work memory is shared."""
        cells = int(np.diff(self.boxes.base).max())
        return cells * (3 + 2 * math.ceil(self.settings.field))
