"""New vehicles by scaling a known one, with the checks of FlyingTrust section 3.3."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.vehicles.check import check, rotor_thrust
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.lookup import vehicle
from airworthy.vehicles.record import CollisionBody, Drag, Rotor, Vehicle
from airworthy.vehicles.trim import hover_speed, indicators

__all__ = ["FlightCheck", "arm_length", "static_faults", "synthesize"]

FlightCheck = Callable[[Vehicle], list[str]]
"""Flies a vehicle in simulation and returns what went wrong, one sentence each; empty if it flies well."""

MASS_RANGE = (0.3, 6.0)
TWR_RANGE = (1.2, 8.0)
GYRATION_RANGE = (0.02, 0.5)
TIP_MACH_MAX = 0.75
SPEED_OF_SOUND = 340.3
"""[m/s] at 15 C, sea level."""
PROPELLER_GAP = 0.95
"""Largest propeller diameter over the distance of neighbouring hubs."""
HOVER_THRUST_MAX = 0.7
"""Largest hover thrust over maximum thrust of a rotor."""


def arm_length(airframe: Vehicle) -> float:
    """Return the mean distance of the rotor hubs from the vertical through the centre of mass [m]."""
    refuse_links(airframe, "Scaling")
    # From the centre of mass, which scaled airframes may have off their middle.
    offsets = _hubs(airframe)[:, :2] - np.array(airframe.center_of_mass[:2])
    return float(np.linalg.norm(offsets, axis=1).mean())


def synthesize(
    base: str | Vehicle, mass: float, arm: float, omega_scale: float, name: str, flight_check: FlightCheck | None = None
) -> Vehicle:
    """Scale a base vehicle to a new mass, arm length and maximum rotor speed.

    Positions scale with d/d0; inertia becomes J0 (m/m0) (d/d0)^2; rotor speed limits scale with `omega_scale` while propeller,
    thrust and torque coefficients, lag and noise stay. Air drag scales with area, (d/d0)^2, its moments with levers too.
    The collision body scales with d/d0, except the benchmark's common 0.3 m sphere, which stays.

    Args:
        base: Catalogue name or vehicle to start from.
        mass: Total mass [kg].
        arm: Distance from the centre to each motor [m].
        omega_scale: New maximum rotor speed over the base's [-].
        name: Name of the new vehicle.
        flight_check: A simulated test that runs after the static checks pass.

    Raises:
        AirworthyError: The profile fails a check; the message lists every reason.
    """
    origin = vehicle(base) if isinstance(base, str) else base
    for label, value in (("mass", mass), ("arm", arm), ("omega_scale", omega_scale)):
        if not (math.isfinite(value) and value > 0.0):
            raise AirworthyError(f"{label} is {value}, but must be a positive number.")
    if arm_length(origin) < 1e-6:
        raise AirworthyError(f"{origin.name} cannot be scaled: its rotors sit on its own axis, so it has no arm length.")
    made = check(_scaled(origin, mass, arm, omega_scale, name))
    faults = static_faults(made)
    if not faults and flight_check is not None:
        faults = flight_check(made)
    if faults:
        raise AirworthyError(f"{name} is rejected: " + "; ".join(fault.rstrip(".") for fault in faults) + ".")
    return made


def static_faults(airframe: Vehicle) -> list[str]:
    """Return reasons to reject a synthesised profile that need no simulation; empty if there are none."""
    arm, twr = arm_length(airframe), indicators(airframe).thrust_to_weight
    xx, yy, zz = airframe.inertia[:3]
    # Of a mass at the end of the arm the share is 1; real airframes are well below it.
    gyration = xx / (airframe.mass * arm * arm)
    rules = [
        (
            MASS_RANGE[0] <= airframe.mass <= MASS_RANGE[1],
            f"mass {airframe.mass:g} is outside {MASS_RANGE[0]:g} to {MASS_RANGE[1]:g} kg",
        ),
        (TWR_RANGE[0] <= twr <= TWR_RANGE[1], f"thrust to weight {twr:.3g} is outside {TWR_RANGE[0]:g} to {TWR_RANGE[1]:g}"),
        (zz <= (xx + yy) * (1.0 + 1e-6), f"Jzz {zz:.4g} exceeds Jxx + Jyy {xx + yy:.4g} kg m^2"),
        (
            GYRATION_RANGE[0] <= gyration <= GYRATION_RANGE[1],
            f"Jxx/(m d^2) {gyration:.3g} is outside {GYRATION_RANGE[0]:g} to {GYRATION_RANGE[1]:g}",
        ),
    ]
    return [reason for kept, reason in rules if not kept] + _propeller_faults(airframe) + _hover_faults(airframe)


def _hubs(airframe: Vehicle) -> np.ndarray:
    return np.array([rotor.position for rotor in airframe.rotors])


def _propeller_faults(airframe: Vehicle) -> list[str]:
    """Tip speed and overlap; rotors of unknown radius or with a thrust state have nothing to check."""
    faults = []
    speeds = [rotor.radius * rotor.speed_max for rotor in airframe.rotors] if airframe.motor_state == "speed" else [0.0]
    mach = max(speeds) / SPEED_OF_SOUND
    if mach >= TIP_MACH_MAX:
        faults.append(f"propeller tips reach Mach {mach:.2f}, and {TIP_MACH_MAX:g} is the limit")
    hubs, diameter = _hubs(airframe), 2.0 * max(rotor.radius for rotor in airframe.rotors)
    gaps = np.linalg.norm(hubs[:, None] - hubs[None], axis=2)[np.triu_indices(len(hubs), 1)]
    if gaps.size and diameter >= PROPELLER_GAP * gaps.min():
        faults.append(f"propellers of {diameter:.3g} m overlap on hubs {gaps.min():.3g} m apart")
    return faults


def _hover_faults(airframe: Vehicle) -> list[str]:
    try:
        states = hover_speed(airframe)
    except AirworthyError as error:
        return [str(error)]
    pairs = zip(airframe.rotors, states.tolist(), strict=True)
    share = max(rotor_thrust(rotor, state) / rotor_thrust(rotor, rotor.speed_max) for rotor, state in pairs)
    if share >= HOVER_THRUST_MAX:
        return [f"hover takes {share:.0%} of a rotor's thrust, and {HOVER_THRUST_MAX:.0%} is the limit"]
    return []


def _scaled(origin: Vehicle, mass: float, arm: float, omega_scale: float, name: str) -> Vehicle:
    scale = arm / arm_length(origin)
    factor = (mass / origin.mass) * scale * scale
    xx, yy, zz, xy, xz, yz = (moment * factor for moment in origin.inertia)
    rule = f"synthesize(base={origin.name}, mass={mass:g}, arm={arm:g}, omega_scale={omega_scale:g})"
    sources = {key: f"{text} [kept by {rule}]" for key, text in origin.sources.items()}
    changed = ("mass", "inertia", "center_of_mass", "drag", "rotors.position", "rotors.speed_max", "rotors.speed_min")
    sources.update(dict.fromkeys(changed, f"scaled by {rule}"))
    return replace(
        origin,
        name=name,
        mass=float(mass),
        inertia=(xx, yy, zz, xy, xz, yz),
        center_of_mass=_times(origin.center_of_mass, scale),
        rotors=tuple(_scaled_rotor(rotor, scale, omega_scale, origin.motor_state) for rotor in origin.rotors),
        drag=_scaled_drag(origin.drag, scale),
        body=_scaled_body(origin, scale),
        sensors=tuple(replace(sensor, position=_times(sensor.position, scale)) for sensor in origin.sensors),
        # A firmware's map to rotor speed belongs to the motors it was measured on.
        voltage_chain=origin.voltage_chain if omega_scale == 1.0 else None,
        sources=sources,
        extra=_extra(origin, arm),
    )


def _times(values: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    return (values[0] * factor, values[1] * factor, values[2] * factor)


def _scaled_rotor(rotor: Rotor, scale: float, omega_scale: float, motor_state: str) -> Rotor:
    factor = omega_scale if motor_state == "speed" else omega_scale * omega_scale  # thrust goes with speed squared
    return replace(
        rotor, position=_times(rotor.position, scale), speed_max=rotor.speed_max * factor, speed_min=rotor.speed_min * factor
    )


def _scaled_drag(drag: Drag, scale: float) -> Drag:
    """Force with area; moments with one lever more per velocity at the lever's end; rotor drag stays with its propeller."""
    powers = {"rotor_speed": 0, "angular_linear": 4, "angular_norm": 5, "angular_axis": 5}
    return Drag(**{f.name: _times(getattr(drag, f.name), scale ** powers.get(f.name, 2)) for f in fields(drag)})


def _scaled_body(origin: Vehicle, scale: float) -> CollisionBody:
    if "body_radius_m" in origin.extra:
        return origin.body
    return replace(origin.body, size=_times(origin.body.size, scale), center=_times(origin.body.center, scale))


def _extra(origin: Vehicle, arm: float) -> dict[str, float | str]:
    """Return what still holds of the base's published facts: its printed indicators do not."""
    kept = {key: origin.extra[key] for key in ("layout",) if key in origin.extra}
    if "body_radius_m" in origin.extra:
        kept["body_radius_m"] = arm + max(rotor.radius for rotor in origin.rotors)
    return {"family": "synthesised", "base": str(origin.extra.get("base", origin.name)), **kept}
