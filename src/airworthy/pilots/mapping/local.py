"""Local maps of n flights, kept up to date from depth images: `LocalMaps`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.core.native_kernel import thread_limit
from airworthy.pilots.mapping.boxes import map_boxes
from airworthy.pilots.mapping.cameras import mapping_camera, pixel_slopes
from airworthy.pilots.mapping.lookup import Layers, slots
from airworthy.pilots.mapping.maps import CellMaps
from airworthy.pilots.mapping.rules import UNIT, Rules
from airworthy.pilots.mapping.updating import CLOUD, FIELD, IMAGE, SLIDE, Updater
from airworthy.pilots.planning.interface import MapSettings, Mission

__all__ = ["FREE", "OCCUPIED", "UNKNOWN", "LocalMaps"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

UNKNOWN, FREE, OCCUPIED = -1, 0, 1
"""What `LocalMaps.state` says."""


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
        super().__init__(Layers(boxes, corner, np.empty(total, np.uint8), squared), device)
        self._odds = self._send(np.empty(total, np.int16))
        self._bounds = np.full((len(boxes), 2, 3), -1, np.int32)
        self._updater = Updater(self, rays, pixel, threads or thread_limit())
        self.reset()

    # ---- filling

    def reset(self, flights: ArrayLike | None = None) -> None:
        """Forget everything that these flights (k,) have seen; None: all of them. Before the first image windows are where
        missions begin."""
        chosen = np.arange(len(self)) if flights is None else np.unique(np.asarray(flights, np.int64))
        corner = self._host.corner[chosen]
        nowhere = np.full_like(corner, -(1 << 24))  # all of the window enters
        seen = np.zeros((len(chosen), 1), np.float32)
        self._updater.run(chosen, np.zeros((len(chosen), 12)), nowhere, corner, seen, SLIDE)
        self._bounds[chosen] = -1
        self._forget(chosen)

    def update(self, flights: ArrayLike, depth: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> None:
        """Put one depth image of each of some flights into their maps.

        A flight whose camera is outside its box or has no finite pose keeps its map as it is.

        Args:
            flights: Places in the batch, (k,), each at most once.
            depth: (k, H, W) along the optical axis [m]: whole images of `projection`, or of the pixels that are read alone
                (`cameras.read_pixels`). Nothing returned is 0 or infinite; what is NaN or negative is not used.
            position: (k, 3) of the camera [m].
            attitude: (k, 4) of its optical frame (x right, y down, z ahead), to world.

        Raises:
            AirworthyError: If shapes do not fit, or a flight does not exist or is named twice.
        """
        number, at, turned = self._posed(flights, position, attitude)
        image = self._read(depth, len(number))
        fit = self.boxes.inside(number, at) & np.isfinite(turned).all(-1)
        stages = IMAGE | FIELD if self.settings.field else IMAGE
        turn = to_matrix(np.where(fit[:, None], turned, (0.0, 0.0, 0.0, 1.0))).reshape(-1, 9)
        self._put(number, fit, turn, at, image, stages)

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

    def bound(self, place: int) -> tuple[Array, Array]:
        """Corners (3,) and (3,) [m] of what the newest image of a flight touched; equal before the first."""
        lo, hi = self._bounds[place]
        if hi[0] < 0:
            return self.boxes.origin[place].copy(), self.boxes.origin[place].copy()
        return self.boxes.origin[place] + self.boxes.resolution * lo, self.boxes.origin[place] + self.boxes.resolution * hi

    def state(self, flight: ArrayLike, points: ArrayLike) -> NDArray[np.int8]:
        """UNKNOWN, FREE or OCCUPIED, before inflation, at points (k, m, 3) [m]; (k, m). Outside the box: UNKNOWN."""
        odds = self.log_odds(flight, points)
        known = np.where(odds > self.rules.occupied / UNIT, OCCUPIED, FREE)
        return np.where(odds >= self.rules.least / UNIT, known, UNKNOWN).astype(np.int8)

    def log_odds(self, flight: ArrayLike, points: ArrayLike) -> Array:
        """Log-odds of the cells in which points (k, m, 3) [m] lie; (k, m). Below the least: never seen, or forgotten."""
        number, at = self._asked(flight, points)
        boxes, chosen = self.boxes, number.astype(np.int64)
        fits = np.isfinite(at).all(-1, keepdims=True)
        cell = np.floor((np.where(fits, at, -1e6) - boxes.origin[chosen][:, None]) / boxes.resolution).astype(np.int64)
        place, kept = slots(self._host, chosen, cell)
        flat = self._odds.numpy()
        return np.where(kept & (cell >= 0).all(-1), flat[np.where(kept, place, 0)], self.rules.unknown) / UNIT

    # ---- inside

    def _posed(self, flights: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> tuple[Ints, Array, Array]:
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

    def _read(self, depth: ArrayLike, count: int) -> NDArray[np.float32]:
        """The pixels that are read, (k, h, w)."""
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

    def _put(self, number: Ints, fit: NDArray[np.bool_], turn: Array, at: Array, seen: NDArray[Any], stages: int) -> None:
        if not fit.all():
            number, turn, at, seen = number[fit], turn[fit], at[fit], np.ascontiguousarray(seen[fit])
        if not number.size:
            return
        before = self._host.corner[number]
        after = self.boxes.window(at, number)
        bounds = self._updater.run(number, np.concatenate([turn, at], 1), before, after, seen, stages)
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
