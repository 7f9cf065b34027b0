"""The gain part of a controller's parameter rows."""

from __future__ import annotations

import math
from typing import Any

from airworthy.control.allocation import PRIORITIES, Priority
from airworthy.control.gain_sets import checked_gains, is_gain_file, read_gain_set
from airworthy.control.gains_for import default_gains, geometric_parameters, rate_loop_parameters, rotor_lag
from airworthy.control.geometric import GeometricParameters
from airworthy.control.levels import ControlConfig
from airworthy.control.mellinger_gains import mellinger_for, mellinger_parameters, mixer_for
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.record import Vehicle

# Ours: rotors faster than this (1/30 s is the lag of the planners' published vehicle) are not hurried.
LAG_WANTED = 0.03
"""[s]"""
LEAD_MAX = 4.0
"""More would drive rotors into their limits at every correction."""

_GEOMETRIC = (
    "position_gain",
    "velocity_gain",
    "attitude_gain",
    "rate_gain",
    "inclination_tangent",
    "thrust_max",
    "yaw_rate_max",
    "pull_max",
)
_RATE_LOOP = ("proportional", "integral", "derivative", "integral_max")


def gain_rows(vehicle: Vehicle, config: ControlConfig, law: str, control_period: float, rotor_count: int) -> dict[str, Any]:
    """Return rows of the law that a level needs, by name; see `kernel.control_layout`.

    Args:
        vehicle: The airframe as its controller believes it to be.
        config: Which sets.
        law: The level, as in `kernel.LEVELS`.
        control_period: Time between controller updates [s].
        rotor_count: Padded number of rotors.

    Raises:
        AirworthyError: If a set is unknown or does not fit the airframe.
    """
    lead = rotor_lead_for(vehicle, config)
    geometric = _geometric(vehicle, config, control_period, lead)
    loop = rate_loop_parameters(vehicle, config.rate_gains)
    rows = {name: getattr(geometric, name) for name in _GEOMETRIC}
    rows.update({f"rate_{name}": getattr(loop, name) for name in _RATE_LOOP})
    if law == "tracking:mellinger":
        rows.update(_mellinger_rows(mellinger_for(vehicle, control_period, lead)._asdict()))
    if law == "tracking:crazyflie":
        mass = vehicle.extra.get("controller_mass_kg")
        gains = mellinger_parameters(config.mellinger_gains, vehicle.gravity, float(mass) if mass is not None else None)
        rows.update(_mellinger_rows(gains._asdict()))
        rows["mixer"] = [*mixer_for(vehicle), *[(0.0, 0.0, 0.0)] * (rotor_count - vehicle.rotor_count)]
    return rows


def _geometric(vehicle: Vehicle, config: ControlConfig, control_period: float, lead: float) -> GeometricParameters:
    """Gains as chosen: of the vehicle or a published set, then a file's, then single ones."""
    file = is_gain_file(config.gains)
    if file or config.gains == "auto":
        base = default_gains(vehicle, control_period, lead)
    else:
        base = geometric_parameters(vehicle, config.gains)
    chosen: dict[str, Any] = {}
    if file:
        gains = read_gain_set(config.gains)
        chosen |= gains.midpoint() | gains.limits
    chosen |= checked_gains(dict(config.gain_values), "gain_values")
    inclination = chosen.pop("inclination_max", None)
    if inclination is not None:
        chosen["inclination_tangent"] = math.tan(inclination) if 0.0 < inclination < 1.57 else 0.0
    return base._replace(**chosen)


def priority_of(config: ControlConfig) -> Priority:
    """Return the order of allocation: as configured, or as the file of gains says, else the usual one.

    Raises:
        AirworthyError: Both say one, and not the same.
    """
    given = read_gain_set(config.gains).priority if is_gain_file(config.gains) else None
    if given is not None and config.allocation == "pseudo_inverse":
        raise AirworthyError(
            f"The gain file {config.gains!r} says priority = {given!r}, which the pseudo-inverse has no use for: take it out of"
            ' the file, or take allocation="bounded".'
        )
    if None not in (given, config.priority) and given != config.priority:
        raise AirworthyError(
            f"The priority is {config.priority}, and the gain file {config.gains!r} says {given}: leave one of them out."
        )
    return config.priority or given or PRIORITIES[0]


def rotor_lead_for(vehicle: Vehicle, config: ControlConfig) -> float:
    """Factor of `rotor_lead`: as configured, or what brings the rotors' lag down to LAG_WANTED, at most LEAD_MAX."""
    if config.rotor_lead > 0.0:
        return config.rotor_lead
    if config.gains != "auto" and not is_gain_file(config.gains):
        return 1.0
    return min(max(rotor_lag(vehicle) / LAG_WANTED, 1.0), LEAD_MAX)


def _mellinger_rows(values: dict[str, Any]) -> dict[str, Any]:
    return {f"m_{name}": value for name, value in values.items() if name != "gravity"}
