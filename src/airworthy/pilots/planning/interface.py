"""What a planner is given and what it gives, for many flights at once.

A planner decides for n flights; the first axis of every array is the flight. Frames: world z up, metres, seconds, radians.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["MapSettings", "Maps", "Mission", "Motion", "Planner", "Setpoints"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mission:
    """What n flights have to do, and within which limits."""

    start: Array
    """(n, 3) where the goal is issued [m]."""
    goal: Array
    """(n, 3) [m]"""
    speed: Array
    """(n,) cap [m/s]."""
    acceleration: Array
    """(n,) cap [m/s^2]."""
    lower: Array
    """(n, 3) corner of the box in which to fly [m]."""
    upper: Array
    """(n, 3) opposite corner; its z is the ceiling [m]."""
    flight: Ints
    """(n,) number of each flight: with the seed, the key of all that is random; never the place in the batch."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Motion:
    """Odometry of n flights at one instant."""

    time: Array
    """(n,) since the goal was issued [s]."""
    position: Array
    """(n, 3) [m]"""
    velocity: Array
    """(n, 3) world [m/s]."""
    attitude: Array
    """(n, 4) quaternion x, y, z, w, body to world."""


@dataclass(frozen=True, eq=False)
class Setpoints:
    """What the common controller follows."""

    position: Array
    """(n, 3) [m]"""
    velocity: Array
    """(n, 3) [m/s]"""
    acceleration: Array
    """(n, 3) [m/s^2]"""
    yaw: Array
    """(n,) [rad]"""
    yaw_rate: Array
    """(n,) [rad/s]"""


@dataclass(frozen=True)
class MapSettings:
    """Local occupancy from depth images; the specification's table of section 1.1."""

    resolution: float = 0.1
    """Edge of a cell [m]."""
    reach: tuple[float, float, float] = (5.5, 5.5, 4.5)
    """Half extents of what one image may change, around the camera [m]."""
    inflation: float = 0.099
    """[m]"""
    margin: int = 30
    """Cells kept beyond what the newest image touched."""
    ground: float = -0.01
    """Lowest height of the map [m]."""
    floor: bool = False
    """Whether the floor of the flight's box is in the map from the start, and inflated, as if it had been seen everywhere."""
    depth_min: float = 0.2
    """[m]"""
    depth_max: float = 5.0
    """[m]"""
    border: int = 1
    """Pixels left out at each side of the image."""
    skip: int = 2
    """Every so many-th pixel is read."""
    hit: float = 0.65
    """Probabilities of the log-odds filter."""
    miss: float = 0.35
    least: float = 0.12
    most: float = 0.90
    occupied: float = 0.80
    ray_min: float = 0.1
    """[m]"""
    ray_max: float = 4.5
    """[m]"""
    rate: float = 20.0
    """Images that are put into the map per second [Hz]."""
    field: bool = False
    """Also keep the distance field."""
    field_margin: float = 0.0
    """Added to the local bound of the field [m]."""

    def for_body(self, radius: float) -> MapSettings:
        """The same, with obstacles inflated by whole cells within a body's radius [m], if they are not by more already, and the
        floor, which a pilot is told as its box, among them."""
        return replace(self, inflation=max(self.inflation, radius - 1e-3), floor=True)


class Maps(Protocol):
    """Local maps of n flights, as planners see them."""

    def occupied(self, flight: Ints, points: Array) -> Bools:
        """Whether points (k, m, 3) of flights (k,), by their place in the batch, lie in or near occupied cells; (k, m).

        Unknown is free, outside the flight's box is occupied.
        """
        ...

    def distance(self, flight: Ints, points: Array) -> tuple[Array, Array]:
        """Signed distance (k, m) [m] to what is occupied, and its gradient (k, m, 3), of points (k, m, 3); needs the field."""
        ...

    def inflated(self, place: int) -> tuple[NDArray[np.uint8], Array]:
        """The inflated cells (nx, ny, nz) around the vehicle of one flight, 1 where occupied, and the lower corner (3,) of the
        first [m]; for compiled searches. A view or a copy, valid until the next image."""
        ...

    def field(self, place: int) -> tuple[NDArray[np.float32], Array]:
        """The distances (nx, ny, nz) [m] at the middles of the same cells, and that corner; needs the field."""
        ...


class Planner(Protocol):
    """Decides for n flights. It works in counted units, never by the clock: the same calls give the same bits.

    A planner may also say `searching`, flights (n,) that have no plan that they trust and try for one: at the time limit such a
    flight has found no path, instead of having stopped elsewhere.
    """

    @property
    def name(self) -> str:
        """As in results."""
        ...

    @property
    def settings(self) -> MapSettings | None:
        """The maps that it needs; None: it looks at nothing."""
        ...

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        ...

    def update(self, motion: Motion, maps: Maps | None, active: Bools) -> dict[str, Any]:
        """Think, at 100 Hz; of flights that are not active (n,) nothing is asked.

        Returns:
            Of every flight (n,): "work", counted units of this call by kind (a dict of arrays, such as expansions and
            evaluations); "replans", successful ones in this call; "state", a small integer that names what it is about.
        """
        ...

    def adopt(self, delay: Array) -> None:
        """Say when the plans of the last `update` hold: `delay` (n,) seconds after its time, for the compute that they took.

        Until then the plans of before are followed. A plan that is replaced before it holds never does.
        """
        ...

    def setpoints(self, time: Array) -> Setpoints:
        """What to follow at times (n,) since the goal was issued; cheap, at 100 Hz."""
        ...
