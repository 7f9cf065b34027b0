"""The memories of n flights, and what new images put into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.planners.common.interface import Maps, Mission
from airworthy.planners.known_free.config import KnownFreeSettings
from airworthy.planners.known_free.known_space import CellSource, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.mapping.boxes import UNIT, Rules, logit, map_boxes

__all__ = ["THINK", "Memories", "levels_of"]

THINK = 0.1
"""Without new images a flight thinks this often [s]."""
_FREE_LEVEL = -1.0
"""Log-odds at which a cell that was occupied is free again."""


def levels_of(settings: KnownFreeSettings) -> tuple[int, int, int]:
    """Return the log-odds of maps at which a cell is known, free and occupied.

    Raises:
        AirworthyError: There is nothing between free and occupied.
    """
    rules = Rules.of(settings.maps)
    levels = rules.least, round(_FREE_LEVEL * UNIT), rules.occupied
    if levels[1] < rules.least or logit(settings.maps.hit) + logit(settings.maps.least) <= logit(0.5):
        raise AirworthyError("The maps' probabilities leave no room between free and occupied: raise `hit` or lower `least`.")
    return levels


class Memories:
    """What n flights know.

    Args:
        mission: What is flown.
        settings: Of the planner.
    """

    def __init__(self, mission: Mission, settings: KnownFreeSettings):
        n, c = len(mission.start), settings
        self._levels, self._boxes = levels_of(c), map_boxes(mission, c.maps)
        rules = Rules.of(c.maps)
        self._hit = rules.most + rules.miss
        self._ball = ball_cells(c.body, c.maps.resolution)
        self._ring = ring_nodes(c.route.near_radius, c.route.wide_radius, c.maps.resolution)
        self._seen_at_start = c.seen_at_start
        self._spaces: list[KnownSpace | None] = [None] * n
        self._images = np.full(n, -1, np.int64)
        self.thought = np.full(n, -np.inf)
        """When each last had something to think about, (n,) [s]."""
        self.taken: dict[int, CellSource] = {}
        """What flights were shown by the images that were put in last."""

    def of(self, flight: int) -> KnownSpace:
        """Return what a flight knows; it has seen something."""
        space = self._spaces[flight]
        assert space is not None
        return space

    def exist(self) -> ArrayBool:
        """Return which flights have one, (n,)."""
        return np.array([space is not None for space in self._spaces], bool)

    def forget(self, flights: ArrayInt) -> None:
        """Give back the memory of flights (k,) that are over."""
        for flight in flights.tolist():
            self._spaces[flight] = None

    def begin(self, flights: ArrayInt, position: Array) -> ArrayInt:
        """Give flights (k,) that have none a memory of nothing but the ball in which they came to rest; which it were.

        Args:
            flights: Their numbers.
            position: Of all flights, (n, 3) [m].
        """
        known, least, most = self._levels
        boxes, new = self._boxes, flights[~self.exist()[flights]]
        for flight in new.tolist():
            space = KnownSpace(boxes.origin[flight], boxes.cells[flight], boxes.resolution, self._ball, self._ring)
            self._spaces[flight] = space
            ball = space.source_of_ball(position[flight], self._seen_at_start, known)
            merge([space], [ball], known, least, most, seen_through=False)
        return new

    def see(self, flights: ArrayInt, time: Array, maps: Maps) -> ArrayInt:
        """Put new images into the memories of flights (k,); those that have something to think about.

        Args:
            flights: Their numbers; each has a memory.
            time: Of all flights, (n,) [s].
            maps: Of all flights.
        """
        known, least, most = self._levels
        due, spaces, sources, self.taken = [], [], [], {}
        for flight in flights.tolist():
            late = time[flight] - self.thought[flight] >= THINK - 1e-9
            source, images = self._source(maps, flight, late)
            fresh = images != self._images[flight]
            if source is not None and (fresh or images < 0):
                spaces.append(self.of(flight))
                sources.append(source)
                self.taken[flight] = source
            self._images[flight] = images
            if (fresh or late) and images != 0:
                due.append(flight)
                self.thought[flight] = time[flight]
        merge(spaces, sources, known, least, most)
        return np.array(due, np.int64)

    def _source(self, maps: Any, flight: int, late: bool) -> tuple[CellSource | None, int]:
        """Return what a map shows, and how many images are in it.

        By its own arrays where it gives them, else, when it is time to think, by its view; -1 where it counts no images.
        """
        known, _, most = self._levels
        if hasattr(maps, "touched"):
            odds, side, first, last, images, time = maps.touched(flight)
            return CellSource(odds, side, np.zeros(3, np.int32), first, last, self._hit, self._levels[1], time), images
        if not late:
            return None, int(self._images[flight])
        view = maps.view(flight)
        source = CellSource.of_view(view, self._boxes.origin[flight], self._boxes.cells[flight], (known, most + 1))
        return source, view.images or -1
