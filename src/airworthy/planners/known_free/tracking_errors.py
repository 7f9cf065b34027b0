"""How far flights are beside their set-points, and whether there is room for a body that stays there.

A certificate speaks of the plan; what flies is the vehicle beside it. What is beside it for a moment is covered by what a plan
keeps from obstacles beyond the body, more of it the faster it is. What is lasting (thrust a little off, a battery that sags)
is there at rest, too, where that spare is a centimetre.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.planners.known_free.known_space import Certifier, KnownSpace

__all__ = ["TrackingErrors", "has_room_beside"]

_FALLING = 0.99
"""Share that is left of the farthest a hundredth of a second later: it falls with a time constant of a second; ours."""
_LASTING = 0.02
"""Share of what it is now in what is lasting, at 100 Hz: half a second; ours."""
_USUAL, _COUNTED, _MOST = 0.08, 0.5, 0.1
"""Beyond what is usual [m] this share of the farthest is spare that is kept in addition, at most so much [m]; ours."""
_ROOM = (1.0137, 1.0, 0.99, 0.98, 0.97, 0.95, 0.93, 0.9, 0.85, 0.7, 0.5)
"""Shares of the body's radius that may be kept; with the first the body is covered between points 0.1 m apart, too: a ball of
0.3041 m reaches 0.3 m halfway between its middle and the next."""
_ANYWHERE = np.array([[-np.inf] * 3, [np.inf] * 3])


class TrackingErrors:
    """Of n flights, since they began.

    Args:
        count: n
    """

    def __init__(self, count: int):
        self.farthest, self.lasting = np.zeros(count), np.zeros((count, 3))

    def note(self, flights: ArrayInt, beside: Array) -> None:
        """Note where flights (k,) are now, seen from their set-points, (k, 3) [m], at 100 Hz."""
        self.farthest[flights] = np.maximum(np.linalg.norm(beside, axis=1), _FALLING * self.farthest[flights])
        self.lasting[flights] += _LASTING * (beside - self.lasting[flights])

    def spare(self, flight: int) -> float:
        """Return what a flight that strays far keeps from obstacles in addition [m]."""
        return float(min(_COUNTED * max(self.farthest[flight] - _USUAL, 0.0), _MOST))


def has_room_beside(certifier: Certifier, space: KnownSpace, path: Array, beside: Array, body: float) -> bool:
    """Return whether a body that stays beside a path meets nothing that is known to be occupied.

    One that is too near to something already may come no nearer. What is unknown does not count: the path's own certificate
    has kept it away.

    Args:
        certifier: Of the flight's planner.
        space: Its memory.
        path: (m, 3) [m], at most 0.1 m apart.
        beside: Where the body is, seen from the path, (3,) [m].
        body: Its radius [m].
    """
    moved, radii = path + beside, body * np.array(_ROOM)
    free = certifier.check(space, _ANYWHERE, [moved[:1]] * len(radii), radii, 0.0)[0] == 1
    if not free.any():
        return True
    return bool(certifier.check(space, _ANYWHERE, [moved], radii[np.argmax(free)], 0.0)[0][0] == len(moved))
