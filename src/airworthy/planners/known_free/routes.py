"""The routes that n flights follow: when they are searched anew, and when another one is better."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.planners.known_free.config import KnownFreeSettings
from airworthy.planners.known_free.known_space import KnownSpace
from airworthy.planners.known_free.memories import THINK
from airworthy.planners.known_free.path import SPACING, near_path
from airworthy.planners.known_free.route import Route, RouteSearches

__all__ = ["NEAR_POINTS", "FollowedRoutes"]

NEAR_POINTS = 15
"""So many points of a route are near: from there on it is compared with another; things along them decide how gently it is
flown."""
_BESIDE = 0.5
"""Another route leads there as well if it comes so near [m]."""
_SHORT = 3.0
"""A route of which less is known is searched sooner [m]."""
_NONE = np.zeros((0, 3))


class FollowedRoutes:
    """Routes of n flights.

    Args:
        goal: (n, 3) [m]
        room: Where middles may be, (n, 2, 3) [m].
        settings: Of the planner.
        searches: That find them.
    """

    def __init__(self, goal: Array, room: Array, settings: KnownFreeSettings, searches: RouteSearches):
        n = len(goal)
        self._goal, self._room, self._config, self._searches = np.asarray(goal, np.float64), room, settings, searches
        self._path, self._routed = [_NONE] * n, np.full(n, -np.inf)
        self.ends: ArrayBool = np.zeros(n, bool)
        """Whether what is known of a route ends at its end, (n,)."""

    def path(self, flight: int) -> Array:
        """Return the next metres of a flight's route, `SPACING` apart, (m, 3) [m]; none where there is no route."""
        return self._path[flight]

    def follow(self, flight: int, path: Array, ends: bool) -> None:
        """Let a flight follow a path.

        Args:
            flight: Whose.
            path: `SPACING` apart, (m, 3) [m].
            ends: Whether it ends at its end.
        """
        self._path[flight], self.ends[flight] = path, ends

    def forget(self, flight: int) -> None:
        """Let a flight search anew."""
        self._path[flight], self._routed[flight] = _NONE, -np.inf

    def trim(self, flight: int, here: Array) -> None:
        """Let a path begin where the flight is."""
        path = self._path[flight]
        if len(path):
            near = int(np.argmin(((path[:40] - here) ** 2).sum(1)))
            self._path[flight] = path[near:]

    def due(self, flight: int, time: float, space: KnownSpace) -> bool:
        """Return whether a flight should search: after a while, or where its path is blocked or soon over.

        Args:
            flight: Whose.
            time: [s]
            space: What it knows.
        """
        path, since = self._path[flight], time - self._routed[flight]
        if since >= self._config.route_every:
            return True
        if not len(path) or since < THINK - 1e-9:
            return False
        return bool((~space.has_room(path[4:])).any()) or (len(path) * SPACING < _SHORT and not self.ends[flight])

    def find(self, flight: int, time: float, here: Array, space: KnownSpace) -> int:
        """Search a route, and follow it if it leads where the one that is flown leads, or is shorter by `loyalty`.

        Args:
            flight: Whose.
            time: [s]
            here: Where it is, (3,) [m].
            space: What it knows.

        Returns:
            Nodes that were looked at.
        """
        goal = self._goal[flight]
        self._routed[flight] = time
        room = bool(space.has_room(goal[None])[0])
        found = self._search(flight, here, room, space)
        if not len(found.nodes):
            # Dead ends may not have been ones: all that was only refused is tried again.
            space.pardon()
            self._path[flight] = _NONE
            return found.expansions
        length = self._config.horizon + 2.0
        path, ends = near_path(space, found.nodes, here, goal, length, room)
        flown, spent = self._path[flight], 0
        if self._leads_elsewhere(path, flown) and space.has_room(flown[4 : NEAR_POINTS + 1]).all():
            # Who turns round for every guess about what nobody has seen flies all of them.
            other = self._search(flight, flown[NEAR_POINTS], room, space)
            spent, way = other.expansions, NEAR_POINTS * SPACING
            if len(other.nodes) and found.cost + self._config.route.loyalty >= way + other.cost:
                on, ends = near_path(space, other.nodes, flown[NEAR_POINTS], goal, length - way, room)
                path = np.concatenate([flown[:NEAR_POINTS], on])
        self.follow(flight, path, ends)
        return found.expansions + spent

    def _search(self, flight: int, start: Array, room: bool, space: KnownSpace) -> Route:
        return self._searches.find(space, start, self._goal[flight], self._room[flight], 0.15 if room else 1.5)

    @staticmethod
    def _leads_elsewhere(path: Array, flown: Array) -> bool:
        if len(flown) <= NEAR_POINTS:
            return False
        return bool(np.linalg.norm(path[: 2 * NEAR_POINTS] - flown[NEAR_POINTS], axis=1).min() >= _BESIDE)
