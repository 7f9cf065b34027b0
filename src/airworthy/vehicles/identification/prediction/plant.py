"""What a fit predicts with: a vehicle's rotors and rotation, for many sets of parameters at once, in float64.

These are the simulator's equations for what an inertial sensor sees, with the rotor state as a fraction of full command: dead
time, lag, thrust and torque of each rotor, moments about the centre of mass, Euler's equation, and the sensor's place. A test
flies a vehicle in the simulator and here, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.check import inertia_matrix
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import Vehicle

__all__ = ["Plant", "distinct", "picked", "plant_of", "slowest_lag", "stacked"]


@dataclass(frozen=True, eq=False)
class Plant:
    """Sets of parameters; the first axis of every array is the set."""

    response: Array
    """a, b of rise and a, b of fall, as of `RotorResponse`, states as fractions of full command, (sets, 4)."""
    delay: Array
    """Dead time of commands [s], (sets,)."""
    thrust: Array
    """c0, c1, c2 [N] of c0 + c1 s + c2 s|s|, s the rotor state as a fraction of full command, (sets, rotors, 3)."""
    force: Array
    """Direction of each rotor's thrust over mass [1/kg], (sets, 3, rotors)."""
    moment: Array
    """Moment about the centre of mass per thrust of each rotor [m], reaction torque included, (sets, 3, rotors)."""
    inertia: Array
    """About the centre of mass [kg m^2], (sets, 3, 3)."""
    damping: Array
    """Moment against each rate [N m s/rad], (sets, 3)."""
    lever: Array
    """The inertial sensor from the centre of mass [m], (sets, 3)."""
    tilt: Array
    """Small rotation of the sensor against the body about x, y, z [rad], (sets, 3)."""
    turn_offset: Array
    """Angular acceleration that no rotor tells, at one time of a flight [rad/s^2], (sets, 3)."""
    turn_drift: Array
    """By how much that changes in a second [rad/s^3], (sets, 3)."""
    turn_since: Array
    """Time of the flight at which the offset holds [s], (sets,)."""
    force_offset: Array
    """Bias of the accelerometer [m/s^2], (sets, 3)."""
    force_delay: Array
    """By which the accelerometer is later than the gyro [s], (sets,): its low-pass is the slower one."""
    speed_delay: Array
    """By which measured rotor speeds are later than the gyro [s], (sets,)."""
    speed_full: Array
    """Rotor speed of a state of 1 [rad/s], by which measured speeds become states, (sets, rotors)."""
    drag_arm: Array
    """Height of the point where drag acts over the centre of mass, times the mass [kg m], (sets,)."""
    supply: Array
    """Exponent by which commands go with the voltage of the supply, and the voltage at which they act as they are [V],
    (sets, 2)."""

    def __len__(self) -> int:
        return len(self.delay)


def stacked(plants: Sequence[Plant]) -> Plant:
    """Return sets of several plants behind one another."""
    return Plant(**{f.name: np.concatenate([getattr(p, f.name) for p in plants]) for f in fields(Plant)})


def distinct(*parts: Array) -> tuple[ArrayInt, ArrayInt]:
    """Return the first set of each kind whose numbers are all the same, and the kind of each set, (kinds,) and (sets,).

    Sets of a Jacobian differ in one parameter each, which most of what is computed does not ask for.

    Args:
        parts: Numbers of each set, (sets, ...).
    """
    rows = np.column_stack([part.reshape(len(part), -1) for part in parts])
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


def picked(plant: Plant, index: ArrayInt) -> Plant:
    """Return some of the sets of a plant, (sets,) of places."""
    return Plant(**{f.name: getattr(plant, f.name)[index] for f in fields(Plant)})


def plant_of(vehicle: Vehicle, lever: Sequence[float] = (0.0, 0.0, 0.0)) -> Plant:
    """Return the plant of one vehicle; a command of 1 is its rotors' largest state.

    Args:
        vehicle: Rigid, with rotors that respond alike.
        lever: The inertial sensor in the body frame [m].

    Raises:
        AirworthyError: Its rotors do not respond alike.
    """
    refuse_links(vehicle, "Prediction of inertial sensors")
    rotors = vehicle.rotors
    rates = {rotor.response.rise + rotor.response.fall for rotor in rotors}
    if len(rates) > 1:
        raise AirworthyError(
            f"The rotors of {vehicle.name} differ in their lags; predictions of inertial sensors know one lag."
        )
    center = np.array(vehicle.center_of_mass)
    axes = np.array([rotor.axis for rotor in rotors])
    arms = np.array([rotor.position for rotor in rotors]) - center
    full = np.array([rotor.speed_max for rotor in rotors])
    thrust = np.array([rotor.thrust for rotor in rotors]) * np.stack([np.ones_like(full), full, full**2], axis=1)
    spins = np.array([float(rotor.spin) for rotor in rotors])
    ratios = np.array([_torque_ratio(vehicle, k) for k in range(len(rotors))])
    moment = np.cross(arms, axes) + (spins * ratios)[:, None] * axes
    inertia = inertia_matrix(vehicle)
    one = {
        "response": _response(vehicle),
        "delay": vehicle.command_delay,
        "thrust": thrust,
        "force": axes.T / vehicle.mass,
        "moment": moment.T,
        "inertia": inertia,
        "damping": np.array(vehicle.drag.angular_linear),
        "lever": np.array(lever) - center,
        "force_delay": 0.0,
        "speed_delay": 0.0,
        "turn_since": 0.0,
        "speed_full": full,
        "drag_arm": vehicle.mass * vehicle.drag.center[2],
        "supply": vehicle.command_sag or (0.0, 1.0),
    }
    zeros = dict.fromkeys(("tilt", "turn_offset", "turn_drift", "force_offset"), np.zeros(3))
    return Plant(**{name: np.asarray(value, np.float64)[None] for name, value in (one | zeros).items()})


def _torque_ratio(vehicle: Vehicle, index: int) -> float:
    """Torque over thrust [m] where the rotor carries its share of the weight."""
    from airworthy.vehicles.trim import torque_ratio

    return torque_ratio(vehicle.rotors[index], vehicle.mass * vehicle.gravity / vehicle.rotor_count)


def _response(vehicle: Vehicle) -> Array:
    """Response of a rotor by states that are fractions of full command, (4,)."""
    rotor = vehicle.rotors[0]
    full = rotor.speed_max
    return np.array([value * (full if k % 2 else 1.0) for k, value in enumerate(rotor.response.rise + rotor.response.fall)])


def slowest_lag(vehicle: Vehicle) -> float:
    """Return the longest time constant of a vehicle's rotors, rise or fall, where they carry its weight [s].

    Args:
        vehicle: Whose rotors may differ; of one that they cannot carry half of their range counts.
    """
    from airworthy.vehicles.trim import rotor_state_for_thrust

    share, slowest = vehicle.mass * vehicle.gravity / vehicle.rotor_count, 0.0
    for rotor in vehicle.rotors:
        state = min(abs(rotor_state_for_thrust(rotor, share)), rotor.speed_max)
        state = state if np.isfinite(state) and state > 0.0 else 0.5 * rotor.speed_max
        for a, b in (rotor.response.rise, rotor.response.fall):
            slowest = max(slowest, 1.0 / max(a + 2.0 * b * state, 1e-6))
    return slowest
