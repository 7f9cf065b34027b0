"""What a hybrid sees by: the local maps of n flights, and the newest image of each, both filled by the same camera."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import thread_limit
from airworthy.planners.common.interface import MapSettings, MapView, Mission
from airworthy.planners.mapping.boxes import MODES
from airworthy.planners.mapping.local import LocalMaps, TouchedCells

__all__ = ["MapsAndImages"]


class MapsAndImages:
    """Local maps, made with the first image, whose size says which camera it is of; and images as they came.

    Args:
        settings: Of the maps.
        mission: Of the n flights.
    """

    def __init__(self, settings: MapSettings, mission: Mission):
        self._settings, self._mission = settings, mission
        self._maps = LocalMaps(settings, mission, threads=thread_limit())
        self._mode = "fast"
        self.images: ArrayF32 | None = None
        """(n, H, W) depth along the optical axis [m]; None before the first of any flight."""
        self.seen: ArrayInt = np.zeros(len(mission.start), np.int64)
        """How many have arrived, (n,)."""

    def update(self, flights: ArrayLike, depth: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> None:
        """Put one whole depth image of each of some flights into their maps, and keep it.

        Args:
            flights: Places in the batch, (k,), each at most once.
            depth: (k, H, W) along the optical axis [m]; nothing returned is 0 or infinite.
            position: (k, 3) of the camera [m].
            attitude: (k, 4) of its optical frame, to world.

        Raises:
            AirworthyError: Images are not of a camera of the benchmark.
        """
        whole = np.asarray(depth, np.float32)
        if self.images is None:
            self._begin(whole.shape)
        assert self.images is not None
        number = np.asarray(flights, np.int64)
        self.images[number] = whole
        self.seen[number] += 1
        self._maps.update(flights, depth, position, attitude)

    def _begin(self, shape: tuple[int, ...]) -> None:
        modes = [mode for mode, camera in MODES.items() if (camera.height, camera.width) == shape[1:]]
        if not modes:
            sizes = " or ".join(f"{camera.height} x {camera.width}" for camera in MODES.values())
            raise AirworthyError(f"A hybrid sees whole depth images of {sizes}; got an array of shape {shape}.")
        if modes[0] != self._mode:
            self._mode = modes[0]
            self._maps = LocalMaps(self._settings, self._mission, MODES[self._mode], threads=thread_limit())
        self.images = np.zeros((len(self.seen), *shape[1:]), np.float32)

    def stamp(self, flights: ArrayLike, time: ArrayLike) -> None:
        """See `LocalMaps.stamp`."""
        self._maps.stamp(flights, time)

    def touched(self, flight: int) -> TouchedCells:
        """See `LocalMaps.touched`."""
        return self._maps.touched(flight)

    def view(self, flight: int) -> MapView:
        """See `LocalMaps.view`."""
        return self._maps.view(flight)

    def __getattr__(self, name: str) -> Any:
        # Whatever else local maps tell, such as what is occupied.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._maps, name)
