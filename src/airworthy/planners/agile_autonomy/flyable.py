"""What a vehicle can fly of the student's trajectories: the least smoothing across the way that its thrust can follow.

The network is not told its vehicle, and two decisions in a row may pass a trunk on different sides. Fitted as published, such
points ask for 10 to 25 m/s^2 to the side, which a vehicle with 1.4 times its weight in thrust pays for with its height. Here
the fit weighs the jerk across the way beside the distance to the points, and of several weights the least is taken whose
acceleration the vehicle has. Along the way nothing is smoothed: from rest a smoothed path would be too short to leave by.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.common.interface import Mission
from airworthy.planners.sampling_expert.retimed import EXECUTED, RetimedPaths
from airworthy.planners.sampling_expert.sampling import GRAVITY, HORIZON, TIMES, constrained_fit, powers

__all__ = ["SMOOTHINGS", "FlyablePaths", "side_room", "smoothed_fit"]

# Ours, all that follow: by flights in layouts that are not the benchmark's (docs/howto/agile_autonomy.md).
SMOOTHINGS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3)
"""Weights of the squared jerk, integrated over the horizon, beside the summed squares of the distances to the points [s^5]."""
_AHEAD = 0.5
"""Share of what a vehicle has to the side by which its speed changes."""
_EARLY = powers(np.linspace(0.05, 0.8, 16), EXECUTED, 2)
"""Moments at which a path is asked, as (16, 6): by its end another one is decided."""
_SLOW = 0.5
"""Below it the way is where the points end, not where the vehicle drifts [m/s]."""
_LEAST = 1.0
"""By which speed changes at least, whatever flies: what cannot hover falls anyway [m/s^2]."""
_HELD = 3
"""Derivatives of what is flown now that go on."""


@cache
def smoothed_fit(weight: float) -> tuple[Array, Array]:
    """Return what `constrained_fit` does for what is flown, with the integral of the squared jerk beside the squared distances.

    Args:
        weight: Of that integral [s^5]; 0 is the plain fit.

    Returns:
        (6, 10) and (6, 3): coefficients from the points, and from place, velocity and acceleration at the start.
    """
    rows, order = powers(TIMES, EXECUTED), np.arange(EXECUTED - _HELD + 1)
    # Third derivative of t^3, t^4, t^5: 6, 24 t, 60 t^2; the integrals of their products over the horizon.
    factor = np.array([6.0, 24.0, 60.0])
    degree = order[:, None] + order + 1
    jerk = np.outer(factor, factor) * HORIZON**degree / degree
    near = rows[:, _HELD:]
    free = np.linalg.solve(near.T @ near + weight * jerk, near.T)
    start = np.zeros((EXECUTED + 1, _HELD))
    start[range(_HELD), range(_HELD)] = 1.0, 1.0, 0.5
    start[_HELD:] = -free @ rows @ start
    points = np.zeros((EXECUTED + 1, len(TIMES)))
    points[_HELD:] = free
    return points, start


def side_room(thrust_to_weight: Array) -> Array:
    """Return the acceleration across the way that is asked of vehicles at most, g (TWR^2 - 1) / 4, (n,) [m/s^2].

    Ours. What is left to the side while height is held is a = g sqrt(TWR^2 - 1); this is a^2 / 4 g, a quarter of it for a
    vehicle that has g to the side, and all of it from 4 g on. For a dodge begins and ends with a turn of the body, which takes
    its share of the same rotors, and the weaker they are the larger a share.

    Args:
        thrust_to_weight: (n,); 1 or less gives 0.
    """
    return np.asarray(0.25 * GRAVITY * np.maximum(thrust_to_weight**2 - 1.0, 0.0))


class FlyablePaths(RetimedPaths):
    """Paths of n flights, each as smooth across the way as its vehicle needs.

    Args:
        mission: The flights; where nobody said what flies, all is flown as it is told.
    """

    def __init__(self, mission: Mission):
        super().__init__(mission)
        ratio = np.full(len(mission.start), np.inf) if mission.vehicle is None else mission.vehicle.thrust_to_weight
        self._side = side_room(ratio)
        self._ahead = np.maximum(_AHEAD * GRAVITY * np.sqrt(np.maximum(ratio**2 - 1.0, 0.0)), _LEAST)

    def _fitted(self, flight: int, points: Array, start: Array) -> Array:
        plain_points, plain_start = constrained_fit(EXECUTED, _HELD)
        plain = plain_points @ points + plain_start @ start
        way = start[1] if np.linalg.norm(start[1]) > _SLOW else points[-1] - start[0]
        way = way / max(float(np.linalg.norm(way)), 1e-9)
        chosen = plain
        for weight in SMOOTHINGS:
            by_points, by_start = smoothed_fit(weight)
            smooth = by_points @ points + by_start @ start
            chosen = smooth + np.outer((plain - smooth) @ way, way)
            pushed = _EARLY @ chosen
            across = pushed - np.outer(pushed @ way, way)
            if np.linalg.norm(across, axis=1).max() <= self._side[flight]:
                break
        return np.asarray(chosen)

    def _limit(self, flight: int) -> float:
        return min(super()._limit(flight), float(self._ahead[flight]))
