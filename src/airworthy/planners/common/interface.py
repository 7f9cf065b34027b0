"""What a planner is given and what it gives, for many flights at once.

A planner decides for n flights; the first axis of every array is the flight. Frames: world z up, metres, seconds, radians.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from airworthy.control import rotor_lag
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayIndex, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.vehicles import Vehicle, indicators

__all__ = [
    "FREE",
    "OCCUPIED",
    "UNKNOWN",
    "Airframes",
    "MapSettings",
    "MapView",
    "Maps",
    "Mission",
    "Motion",
    "Planner",
    "Setpoints",
    "enclosing_radius",
]

# ---- What a planner is told of the vehicles that it plans for ---------------------------------------------------------------


def enclosing_radius(vehicle: Vehicle) -> float:
    """Return the radius of the sphere that encloses a vehicle [m]; where its record does not say, rotors and their
    propellers."""
    recorded = vehicle.extra.get("body_radius_m")
    if recorded is not None:
        return float(recorded)
    return max(float(np.linalg.norm(r.position[:2])) + r.radius for r in vehicle.rotors)


@dataclass(frozen=True, eq=False)
class Airframes:
    """Of n flights what their vehicles can do, as their records say: what is worn or drawn at random in flight is not in it.

    `airframes[flight : flight + 1]` are those of one flight.
    """

    mass: Array
    """(n,) [kg]"""
    thrust_to_weight: Array
    """(n,) largest thrust over weight."""
    alpha_xy: Array
    """(n,) largest roll acceleration [rad/s^2]."""
    alpha_z: Array
    """(n,) largest yaw acceleration [rad/s^2]."""
    acceleration: Array
    """(n,) what is left sideways while height is held, g sqrt(TWR^2 - 1) [m/s^2]; 0 for what cannot hover."""
    radius: Array
    """(n,) of the sphere that collides, or, where nobody says what does, that encloses the vehicle [m]."""
    lag: Array
    """(n,) of rotors behind their commands: the slowest one's time constant at hover, and the dead time before it [s]."""

    @classmethod
    def of(cls, vehicles: Sequence[Vehicle], radius: ArrayLike | None = None) -> Airframes:
        """Return those of vehicles, one per flight.

        Args:
            vehicles: n of them; the same object may be there many times.
            radius: What collides [m], (n,) or one; None: what encloses each.

        Raises:
            AirworthyError: Radii do not fit.
        """
        # Indicators ask every rotor: a thousand flights of one vehicle do so once. The item is kept so that its id stays taken.
        known = {
            id(item): (indicators(item), enclosing_radius(item), rotor_lag(item) + item.command_delay, item)
            for item in vehicles
        }
        recorded = [known[id(item)] for item in vehicles]
        ratio = np.array([found.thrust_to_weight for found, *_ in recorded], np.float64)
        gravity = np.array([item.gravity for item in vehicles], np.float64)
        size = np.array([enclosing for _, enclosing, *_ in recorded], np.float64)
        if radius is not None:
            given = np.asarray(radius, np.float64)
            if given.shape not in ((), (len(size),)) or not (np.isfinite(given) & (given > 0.0)).all():
                raise AirworthyError(f"{len(size)} vehicles got radii of shape {given.shape}; expected one above 0 for each.")
            size = np.broadcast_to(given, size.shape).copy()
        return cls(
            mass=np.array([item.mass for item in vehicles], np.float64),
            thrust_to_weight=ratio,
            alpha_xy=np.array([found.alpha_xy_max for found, *_ in recorded], np.float64),
            alpha_z=np.array([found.alpha_z_max for found, *_ in recorded], np.float64),
            # Thrust and weight make a right angle with what is left: below a ratio of 1 nothing is, instead of a NaN.
            acceleration=gravity * np.sqrt(np.maximum(ratio**2 - 1.0, 0.0)),
            radius=size,
            lag=np.array([lag for _, _, lag, _ in recorded], np.float64),
        )

    def __len__(self) -> int:
        return len(self.mass)

    def __getitem__(self, part: slice | ArrayBool | ArrayIndex) -> Airframes:
        """Return those of some flights."""
        return Airframes(**{item.name: getattr(self, item.name)[part] for item in fields(self)})


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StartRoom:
    """How near things are to where n flights begin; what is far is +inf."""

    nearest: Array
    """To the nearest surface [m], (n,)."""
    unseen: Array
    """To the nearest that is not in the picture that a camera takes there at first, around, above and below, ends of the box in
    which they stay left out [m], (n,)."""


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
    flight: ArrayInt
    """(n,) number of each flight: with the seed, the key of all that is random; never the number in the batch."""
    seed: int = 0
    vehicle: Airframes | None = None
    """What is flown: mass, thrust to weight, accelerations, radius, (n,) each; None where nobody said."""

    def of_flights(self, part: slice) -> Mission:
        """Return the mission of some of the flights."""
        rows = {item.name: getattr(self, item.name)[part] for item in fields(self) if item.name not in ("seed", "vehicle")}
        return replace(self, **rows, vehicle=None if self.vehicle is None else self.vehicle[part])


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
    # Source of this and all below: spec/planners 1.1, the table's column of EGO-Planner.
    border: int = 1
    """Pixels left out at each side of the image."""
    skip: int = 2
    """Every so many-th pixel is read."""
    # Row "p_hit, p_miss, p_min, p_max, p_occ", the same for all three planners.
    hit: float = 0.65
    """Probabilities of the log-odds filter."""
    miss: float = 0.35
    least: float = 0.12
    most: float = 0.90
    occupied: float = 0.80
    # Row "min / max ray length": rays end half a metre before what the camera measures at most.
    ray_min: float = 0.1
    """[m]"""
    ray_max: float = 4.5
    """[m]"""
    # Below the table: the map's timer has 20 Hz, slower than the camera's 30.
    rate: float = 20.0
    """Images that are put into the map per second [Hz]."""
    field: bool = False
    """Also keep the distance field."""
    # Row "local_bound_inflate", of Fast-Planner; PGO has 0.5.
    field_margin: float = 0.0
    """Added to the local bound of the field [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "MapSettings.")

    def for_body(self, radius: float) -> MapSettings:
        """Return the same, with obstacles inflated by whole cells within a body's radius [m], if they are not by more already,
        and the floor, which a pilot is told as its box, among them."""
        # A millimetre less, so that a radius of whole cells does not round up to one cell more.
        return replace(self, inflation=max(self.inflation, radius - 1e-3), floor=True)


# Ours; ROS' occupancy grids have -1 for unknown, too.
UNKNOWN, FREE, OCCUPIED = -1, 0, 1
"""What `MapView.cells` hold."""


@dataclass(frozen=True, eq=False)
class MapView:
    """The map around one flight as it is now, for whoever wants to look at all of it; nothing in it can be written.

    Cell (i, j, k) spans from `origin + resolution * (i, j, k)` to one cell further along each axis, world axes.
    """

    cells: NDArray[np.int8]
    """(nx, ny, nz) `UNKNOWN`, `FREE` or `OCCUPIED`, as seen: before inflation."""
    inflated: ArrayBool
    """(nx, ny, nz) whether `Maps.occupied` says so: obstacles grown by the body, ceiling and known floor among them."""
    origin: Array
    """(3,) lower corner of the first cell [m]."""
    resolution: float
    """Edge of a cell [m]."""
    time: float
    """When the newest image in it was taken, on the flight's clock [s]; NaN before the first, and where maps know the scene."""
    images: int
    """How many images are in it."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Cells along x, y and z."""
        x, y, z = self.cells.shape
        return x, y, z

    def index(self, points: Array) -> ArrayInt:
        """Return cells (m, 3) in which points (m, 3) [m] lie; beyond the grid numbers are below 0 or too large."""
        return np.floor((np.asarray(points, np.float64) - self.origin) / self.resolution).astype(np.int64)

    def centers(self, index: ArrayInt) -> Array:
        """Return middles (m, 3) [m] of cells (m, 3)."""
        return np.asarray(self.origin + self.resolution * (np.asarray(index) + 0.5))


class Maps(Protocol):
    """Local maps of n flights, as planners see them."""

    def occupied(self, flight: ArrayInt, points: Array) -> ArrayBool:
        """Tell whether points (k, m, 3) of flights (k,), by their number in the batch, lie in or near occupied cells; (k, m).

        Unknown is free, outside the flight's box is occupied.
        """
        ...

    def distance(self, flight: ArrayInt, points: Array) -> tuple[Array, Array]:
        """Return the signed distance (k, m) [m] to what is occupied, and its gradient (k, m, 3), of points (k, m, 3); needs the
        field."""
        ...

    def inflated(self, flight: int) -> tuple[ArrayU8, Array]:
        """Return the inflated cells (nx, ny, nz) around the vehicle of one flight, 1 where occupied, and the lower corner (3,)
        of the first [m]; for compiled searches. A view or a copy, valid until the next image."""
        ...

    def view(self, flight: int) -> MapView:
        """Return what is known around one flight: unknown, free and occupied cells, where they lie, and of when it is. A
        copy.
        """
        ...

    def field(self, flight: int) -> tuple[ArrayF32, Array]:
        """Return the distances (nx, ny, nz) [m] at the middles of the same cells, and that corner; needs the field."""
        ...


class Planner(Protocol):
    """Decides for n flights. It works in counted units, never by the clock: the same calls give the same bits.

    A planner may also say `searching`, flights (n,) that have no plan that they trust and try for one: at the time limit such a
    flight has found no path, instead of having stopped elsewhere. And it may have `check_ready()`, which raises an
    `AirworthyError` where something is missing that it cannot fly without, such as weights: it is called before anything flies.
    One that looks at images itself has `maps_for(mission, scenes)`: it returns what is filled, by whole images, in the place of
    maps; scenes are told to privileged planners only. One that knows beforehand where it may fail has `doubts(mission, room)`,
    which returns flights (n,) and why, a reason each: users are warned of them before anything flies. It is asked once for all
    flights, before `reset`, also where each flight gets an object of its own.
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

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> dict[str, Any]:
        """Think, at 100 Hz; of flights that are not active (n,) nothing is asked.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights; None where the planner asked for none.
            active: Flights that are still flown, (n,).

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
        """Return what to follow at times (n,) since the goal was issued; cheap, at 100 Hz."""
        ...
