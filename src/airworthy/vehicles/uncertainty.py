"""Vehicles of values that are not sure: what each uncertain value is of a record, and draws of all of them together.

| name | what it is |
|---|---|
| mass | of the vehicle [kg] |
| thrust | of the mean rotor at a stated rotor state [N]; rotors keep their shares |
| thrust_linear | share of that thrust which is linear in the rotor state, the rest is square |
| torque_ratio | torque over thrust, of all rotors [m] |
| lag | time constant of rotors, rise; fall keeps its ratio to it [s] |
| command_delay | dead time of commands [s] |
| inertia_xx, inertia_yy | about the centre of mass [kg m^2] |
| inertia_zz_ratio | Izz over the mean of Ixx and Iyy |
| center_x, center_y | centre of mass in the body frame [m] |
| damping | share of each rate that is lost in a second [1/s] |
| drag_x, drag_y, drag_z | share of each air speed that linear drag of the body takes in a second [1/s] |
| sag | exponent by which commands go with the voltage of the supply |

Those of drag and supply are uncertain where logs tell them only; else a record has none of them among its uncertain ones.

Drawing them one by one would be wrong: a log tells thrust over mass far better than either, and a vehicle of large mass and
small thrust is none that it leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.check import check, rotor_thrust
from airworthy.vehicles.record import UNCERTAIN, Rotor, RotorResponse, Uncertainty, Vehicle

__all__ = ["Draws", "draw", "uncertain_values", "uncertainty_root", "with_values"]

DRAGS = ("drag_x", "drag_y", "drag_z")
"""Linear drag over mass along the body's axes."""
REJECTED_MAX = 20
"""Draws per vehicle that are tried before a distribution is refused."""


@dataclass(frozen=True)
class Draws:
    """Vehicles that were drawn."""

    vehicles: tuple[Vehicle, ...]
    rejected: int
    """Draws that were no vehicle, or none that can lift its weight; others were drawn in their place."""


def uncertain_values(vehicle: Vehicle, state: float) -> dict[str, float]:
    """Return every value of `UNCERTAIN` that a vehicle has, in SI units.

    Args:
        vehicle: Rigid.
        state: Rotor state at which thrust is told.
    """
    rotors = vehicle.rotors
    thrusts = [rotor_thrust(rotor, state) for rotor in rotors]
    thrust = float(np.mean(thrusts))
    linear = float(np.mean([rotor.thrust[1] * state / max(f, 1e-300) for rotor, f in zip(rotors, thrusts, strict=True)]))
    ratios = [_torque(rotor, state) / f for rotor, f in zip(rotors, thrusts, strict=True) if f > 0.0]
    xx, yy, zz = vehicle.inertia[:3]
    rates = rotors[0].response.rise
    return {
        "mass": vehicle.mass,
        "thrust": thrust,
        "thrust_linear": linear,
        "torque_ratio": float(np.mean(ratios)) if ratios else 0.0,
        "lag": 1.0 / (rates[0] + 2.0 * rates[1] * abs(state)),
        "command_delay": vehicle.command_delay,
        "inertia_xx": xx,
        "inertia_yy": yy,
        "inertia_zz_ratio": zz / (0.5 * (xx + yy)),
        "center_x": vehicle.center_of_mass[0],
        "center_y": vehicle.center_of_mass[1],
        "damping": vehicle.drag.angular_linear[0] / xx,
        **{f"drag_{axis}": value / vehicle.mass for axis, value in zip("xyz", vehicle.drag.linear, strict=True)},
        "sag": 0.0 if vehicle.command_sag is None else vehicle.command_sag[0],
    }


def with_values(vehicle: Vehicle, values: Mapping[str, float], state: float) -> Vehicle:
    """Return a vehicle with other values; it is not checked.

    Args:
        vehicle: Rigid.
        values: By names of `UNCERTAIN`, SI units; what is not named stays, and torque keeps its ratio to thrust.
        state: Rotor state at which thrust is told.
    """
    now = uncertain_values(vehicle, state)
    v = now | dict(values)
    factor = v["thrust"] / now["thrust"]
    stretch = now["lag"] / v["lag"]
    rotors = tuple(_rotor(rotor, values, v, factor, stretch, state) for rotor in vehicle.rotors)
    xx, yy = v["inertia_xx"], v["inertia_yy"]
    zz = v["inertia_zz_ratio"] * 0.5 * (xx + yy)
    drag = vehicle.drag
    if "damping" in values:
        drag = replace(drag, angular_linear=(v["damping"] * xx, v["damping"] * yy, v["damping"] * zz))
    if any(name in values for name in DRAGS):
        x, y, z = (v["mass"] * v[name] if name in values else old for name, old in zip(DRAGS, drag.linear, strict=True))
        drag = replace(drag, linear=(x, y, z))
    sag = vehicle.command_sag
    if "sag" in values and sag is not None:
        sag = (v["sag"], sag[1])
    return replace(
        vehicle,
        mass=v["mass"],
        inertia=(xx, yy, zz, *vehicle.inertia[3:]),
        center_of_mass=(v["center_x"], v["center_y"], vehicle.center_of_mass[2]),
        command_delay=max(v["command_delay"], 0.0),
        command_sag=sag,
        rotors=rotors,
        drag=drag,
    )


def _rotor(
    rotor: Rotor, values: Mapping[str, float], v: Mapping[str, float], factor: float, stretch: float, state: float
) -> Rotor:
    c0, c1, c2 = (factor * c for c in rotor.thrust)
    if "thrust_linear" in values:
        whole = c1 * state + c2 * state * abs(state)
        c1 = whole * v["thrust_linear"] / state
        c2 = whole * (1.0 - v["thrust_linear"]) / (state * abs(state))
    q0, q1, q2 = (factor * c for c in rotor.torque)
    if "thrust_linear" in values or "torque_ratio" in values:
        q0, q1, q2 = (v["torque_ratio"] * c for c in (c0, c1, c2))
    response = RotorResponse(*((a * stretch, b * stretch) for a, b in (rotor.response.rise, rotor.response.fall)))
    return replace(rotor, thrust=(c0, c1, c2), torque=(q0, q1, q2), response=response)


def _torque(rotor: Rotor, state: float) -> float:
    q0, q1, q2 = rotor.torque
    return q0 + q1 * state + q2 * state * abs(state)


def draw(vehicle: Vehicle, count: int, seed: int) -> Draws:
    """Draw vehicles from the joint distribution of what is uncertain; the same seed gives the same vehicles.

    Args:
        vehicle: With its uncertainty.
        count: How many.
        seed: Of the draws.

    Raises:
        AirworthyError: The record cannot be, tells no uncertainty, or hardly a draw of it can lift its weight.
    """
    if vehicle.uncertainty is None:
        raise AirworthyError(
            f"{vehicle.name} tells no uncertainty to draw from; `airworthy vehicles identify` writes vehicles that do."
        )
    if not 1 <= count <= 1_000_000:
        raise AirworthyError(f"count is {count}; expected 1 to 1,000,000 vehicles.")
    check(vehicle)
    told, numbers = vehicle.uncertainty, np.random.default_rng(seed)
    root, mean = uncertainty_root(told), np.array(told.mean)
    found: list[Vehicle] = []
    rejected = 0
    while len(found) < count:
        if rejected > REJECTED_MAX * count + 100:
            raise AirworthyError(
                f"Of {rejected + len(found):,} draws of {vehicle.name} only {len(found):,} are vehicles that lift their weight:"
                " its uncertainty is too wide."
            )
        for row in mean + numbers.standard_normal((count - len(found), len(mean))) @ root.T:
            made = with_values(vehicle, _plain(told, row), told.state)
            if _flies(made):
                found.append(made)
            else:
                rejected += 1
    return Draws(tuple(found), rejected)


def _plain(told: Uncertainty, row: Array) -> dict[str, float]:
    """Values in SI units from such on their scales."""
    return {
        name: math.exp(value) if UNCERTAIN[name] == "log" else float(value)
        for name, value in zip(told.names, row.tolist(), strict=True)
    }


def uncertainty_root(told: Uncertainty) -> Array:
    """Return a matrix whose square is the covariance."""
    values, vectors = np.linalg.eigh(np.array(told.correlation))
    return np.asarray(np.array(told.sd)[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def _flies(vehicle: Vehicle) -> bool:
    """Whether a vehicle can exist, its thrust grows with its rotors' state, and it lifts its weight."""
    try:
        check(vehicle)
    except AirworthyError:
        return False
    for rotor in vehicle.rotors:
        low, high = max(rotor.speed_min, 0.0), rotor.speed_max
        slopes = [rotor.thrust[1] + 2.0 * rotor.thrust[2] * w for w in (low, high)]
        if max(slopes) <= 0.0 or rotor_thrust(rotor, high) <= 0.0 or slopes[1] <= 0.0:
            return False
    up = sum(rotor_thrust(rotor, rotor.speed_max) * rotor.axis[2] for rotor in vehicle.rotors)
    return up > vehicle.mass * vehicle.gravity
