"""What the tracking laws ask of a body: the flatness map of the laws themselves, from the laws' own equations.

The Mellinger and the geometric law hold body y along z x x_C, x_C being the heading (`airworthy.control.attitude`); `flatness`
holds body x in the heading's vertical plane, as experts and flat references of the specification do. Both point z where the
thrust is needed, but turn differently about it once the vehicle rolls. Promises about what is tracked use this one.

Everything here is an equation: it runs on numbers, on arrays, and on intervals, which turns it into a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airworthy.control.attitude import desired_axes, flat_angular_acceleration, flat_rates, unit_or
from airworthy.core.arrays import Array, Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.intervals import Interval
from airworthy.core.ops import absolute
from airworthy.core.vectors import norm
from airworthy.trajectories.flatness import ZERO, body_moment
from airworthy.trajectories.trajectory import FlatSample
from airworthy.vehicles import Vehicle, control_effectiveness
from airworthy.vehicles.check import rotor_thrust

__all__ = ["RotorBound", "Tracked", "rotor_shares", "rotor_use", "tracked", "tracked_samples"]


THRUST_LEAST = 0.2
"""Thrust over mass below which the laws' map counts as undefined [m/s^2]: below 0.1 they ask for no rates at all."""
_LEVEL: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class RotorBound:
    """What the rotors of one drone may be asked for."""

    name: str
    mass: float
    """[kg]"""
    inertia: tuple[float, ...]
    """xx, yy, zz, xy, xz, yz [kg m^2]."""
    inverse: tuple[tuple[float, ...], ...]
    """Thrust [N] of each rotor per collective force [N] and moment about x, y, z [N m], (rotors, 4)."""
    thrust_max: tuple[float, ...]
    """Of each rotor [N]."""
    least: float = 0.0
    """Share of its largest thrust that each rotor is asked for at least."""
    most: float = 1.0
    """And at most."""

    def __post_init__(self) -> None:
        numbers = (self.mass, *self.inertia[:3], *self.thrust_max)
        if not all(np.isfinite(x) and x > 0.0 for x in numbers) or not 0.0 <= self.least < self.most <= 1.0:
            raise AirworthyError(
                f"The rotor bound of {self.name!r} needs a mass, an inertia and thrusts above 0, and shares 0 <= least < most"
                f" <= 1; got mass {self.mass!r}, shares {self.least!r} and {self.most!r}."
            )

    @classmethod
    def of(
        cls, vehicle: Vehicle, least: float = 0.0, most: float = 1.0, mass: float | None = None, inertia_factor: float = 1.0
    ) -> RotorBound:
        """Return the bound of a vehicle whose rotors span thrust and moment.

        Args:
            vehicle: Whose.
            least: See the class.
            most: See the class.
            mass: Instead of the vehicle's own [kg].
            inertia_factor: Of its inertia.
        """
        inverse = np.linalg.pinv(control_effectiveness(vehicle)[2:])
        largest = tuple(float(rotor_thrust(rotor, rotor.speed_max)) for rotor in vehicle.rotors)
        inertia = tuple(float(inertia_factor * x) for x in vehicle.inertia)
        rows = tuple(tuple(map(float, row)) for row in inverse)
        return cls(vehicle.name, vehicle.mass if mass is None else mass, inertia, rows, largest, least, most)


class Tracked(NamedTuple):
    """What a body on the reference is and does."""

    thrust: Scalar
    """Over mass [m/s^2]."""
    body_rate: Vector
    """Body rates [rad/s]."""
    rate_dot: Vector
    """Angular acceleration [rad/s^2]; zero where it was not asked for."""


def tracked(
    lifted: Vector, jerk: Vector, chi: Vector, yaw_rate: Scalar, snap: Vector | None = None, yaw_acceleration: Scalar = 0.0
) -> Tracked:
    """Return thrust, rates and angular acceleration in the attitude that the laws hold.

    Args:
        lifted: Acceleration plus gravity upwards, world [m/s^2].
        jerk: [m/s^3]
        chi: Heading, unit, horizontal.
        yaw_rate: [rad/s]
        snap: [m/s^4]; None: no angular acceleration.
        yaw_acceleration: [rad/s^2]
    """
    # In free fall the attitude is undefined; level then, and whoever asks masks it (`masked`).
    axes = desired_axes(unit_or(lifted, _LEVEL[2]), chi, 0.0, _LEVEL)
    thrust = norm(lifted)
    body_rate = flat_rates(axes, thrust, jerk, chi, yaw_rate)
    if snap is None:
        return Tracked(thrust, body_rate, ZERO)
    return Tracked(
        thrust, body_rate, flat_angular_acceleration(axes, thrust, body_rate, jerk, snap, chi, yaw_rate, yaw_acceleration)
    )


def rotor_shares(state: Tracked, bounds: Sequence[RotorBound]) -> Scalar:
    """Return thrust of each rotor over its largest, as force and moment of the rigid body need it: I w' + w x I w.

    Returns:
        All rotors of the first drone, then of the next, in front of the state's own shape.
    """
    rows = _rows(bounds, _dimensions(state))
    # Force along body z and the moment are all that a flat trajectory asks of the rotors: no sideways force, no drag.
    moment = body_moment(tuple(rows.inertia), state.body_rate, state.rate_dot)
    share = state.thrust * rows.force
    for part, weight in zip(moment, rows.moment, strict=True):
        share = share + part * weight
    return share


def rotor_use(state: Tracked, bounds: Sequence[RotorBound]) -> Scalar:
    """Return the part used of what lies between the middle of each rotor's range and its ends: 1 at either of them."""
    rows = _rows(bounds, _dimensions(state))
    return absolute((rotor_shares(state, bounds) - rows.middle) * (1.0 / rows.half))


class _Rows(NamedTuple):
    """Rotors of all drones as columns that broadcast against a state."""

    inertia: Array
    force: Array
    """Share of the largest thrust per thrust over mass [s^2/m]."""
    moment: Array
    """Per moment [1/(N m)], (3, rotors, ...)."""
    middle: Array
    half: Array


def _dimensions(state: Tracked) -> int:
    thrust = state.thrust
    return np.ndim(thrust.low if isinstance(thrust, Interval) else thrust)


def _rows(bounds: Sequence[RotorBound], dimensions: int) -> _Rows:
    each = [(bound, row, top) for bound in bounds for row, top in zip(bound.inverse, bound.thrust_max, strict=True)]
    table = np.array(
        [
            (*b.inertia, b.mass * row[0] / top, *(x / top for x in row[1:]), b.most + b.least, b.most - b.least)
            for b, row, top in each
        ]
    )
    # One axis of rotors in front of the state's own: all drones are bounded in one pass.
    columns = table.T.reshape(table.shape[1], len(each), *[1] * dimensions)
    return _Rows(columns[:6], columns[6], columns[7:10], 0.5 * columns[10], 0.5 * columns[11])


def tracked_samples(sample: FlatSample, gravity: float = 9.81) -> Tracked:
    """Return the tracked form of samples of shape (...), arrays (...); NaN where the map is undefined."""
    lifted = tuple(np.moveaxis(sample.acceleration + np.array([0.0, 0.0, gravity]), -1, 0))
    jerk, snap = tuple(np.moveaxis(sample.jerk, -1, 0)), tuple(np.moveaxis(sample.snap, -1, 0))
    chi = (np.cos(sample.yaw), np.sin(sample.yaw), 0.0)
    return masked(tracked(lifted, jerk, chi, sample.yaw_rate, snap, sample.yaw_acceleration))


def masked(state: Tracked) -> Tracked:
    """Return the same, NaN where the map is undefined."""
    # Rates are jerk over thrust: below this they say more about rounding than about the flight.
    usable = np.asarray(state.thrust) >= THRUST_LEAST
    body_rate, rate_dot = (tuple(np.where(usable, x, np.nan) for x in v) for v in (state.body_rate, state.rate_dot))
    return Tracked(state.thrust, body_rate, rate_dot)
