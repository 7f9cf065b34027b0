"""Who flies the plans: families of dynamics with their controllers, and how flights of a family differ.

Source: spec/boundary_predictor sections 6 (Table I), 9 and 10. Two families with different physics stand in for the paper's
simulation and reality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from airworthy.control.laws import CHAIN_FIELDS
from airworthy.control.mellinger import COMMAND_MAX, speed_of_command, thrust_of_command
from airworthy.control.mellinger_gains import hover_integral, mellinger_parameters
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.core.schema import check_fields, check_signs
from airworthy.gates.planner.window import RANGES
from airworthy.simulation import Randomization
from airworthy.simulation.posterior import DrawnVehicle
from airworthy.simulation.posterior import drawn_vehicles as posterior_vehicles
from airworthy.vehicles import Vehicle, named_vehicle, vehicle
from airworthy.vehicles.record import WrenchNoise

__all__ = ["Ask", "GatesMethod", "Keeps"]

# ---- Who predicts in a benchmark, and what is known of it -------------------------------------------------------------------

Ask = Callable[[Array], Any]
Keeps = Callable[[Array, Array], ArrayBool]


@dataclass(frozen=True)
class GatesMethod:
    """A predictor of speed and duration, what it is, and what its answers are held against."""

    name: str
    """As it was asked for: in tables and files."""
    predictor: Any
    """See `airworthy.gates.planner.planner.plan`."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What it is, as data: results of another one do not mix."""
    ranges: Array = field(default_factory=lambda: RANGES)
    """Of the situations that it knows, (8, 2): where those off the grid are drawn."""
    truth: Ask | None = None
    """What it learnt from, by fresh search: situations (k, 8) -> speed and duration (k, 2), NaN where there is none."""
    keeps: Keeps | None = None
    """Whether both segments of situations (k, 8) keep its search's limit with pairs (k, 2); None: there was no limit."""
    ends: tuple[float, float] = (np.inf, np.inf)
    """Speed [m/s] and time [s] at which its answers end: labels beyond are clipped, as in its training."""

    @property
    def ask(self) -> Ask:
        """The predictor as a function."""
        found: Ask = getattr(self.predictor, "predict", self.predictor)
        return found


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/boundary_predictor section 10: PyBullet and firmware at 500 Hz.
PHYSICS_RATE = 500.0
"""Of the equations and of the controller [Hz]."""


@dataclass(frozen=True)
class FlightFamily:
    """A vehicle, its equations and its controller."""

    name: str
    vehicle: str
    dynamics: Literal["rigid", "semi_kinematic"]
    level: str
    says: str
    gains: str = "mellinger_firmware"
    controller_mass: float | None = None
    """What the controller takes for the mass [kg]; None: what the vehicle's record says beside its physics."""
    overflow: Literal["subtract", "clip"] = "subtract"
    """What is done with motor commands above full."""


FAMILIES = {
    family.name: family
    for family in (
        FlightFamily(
            "competition",
            "cf2x_scg_iros2022",
            "rigid",
            "tracking:crazyflie",
            "the IROS 2022 competition's Crazyflie: rotors that follow at once, no drag, firmware commands through its thrust"
            " chain",
            controller_mass=0.027,
            overflow="clip",
        ),
        FlightFamily(
            "crazyflow",
            "cf2x_L250",
            "rigid",
            "tracking:crazyflie",
            "Crazyflow's L250: rotors that lag, linear drag, a third of the yaw torque per thrust, another thrust map, other"
            " gains",
            gains="mellinger_crazyflow",
        ),
        FlightFamily(
            "semi_kinematic",
            "cf2x_scg_iros2022",
            "semi_kinematic",
            "tracking",
            "a point mass with attitude kinematics, tracked by thrust and body rates",
        ),
    )
}


def family_named(name: str) -> FlightFamily:
    """Return a family by name; raises UnknownNameError for one that is none."""
    if name not in FAMILIES:
        raise unknown_name("family of dynamics", name, FAMILIES)
    return FAMILIES[name]


@dataclass(frozen=True)
class FlightSpread:
    """How flights differ (Table I): what is added to the vehicle, uniform within +-, drawn once per flight."""

    mass: float = 0.01
    """[kg]"""
    inertia: float = 1e-6
    """Each principal one [kg m^2]."""
    force: float = 1e-6
    """External force per axis, drawn at each step [N]: white noise with the same variance here."""
    thrust_noise: float = 1e-6
    """Standard deviation of each motor's thrust, at each step [N]."""

    def __post_init__(self) -> None:
        check_fields(self, "Spread.")
        check_signs(self, "The spread's")


def flown_vehicle(family: FlightFamily, name: str = "") -> Vehicle:
    """Return the vehicle that a family flies.

    Args:
        family: Of vehicle and controller.
        name: Another vehicle, of the catalogue or a file; empty: the family's own.
    """
    return named_vehicle(name) if name else vehicle(family.vehicle)


OWN_SPREAD = "competition"
"""The family whose flights differ as Table I says; the lift of the others leaves room for a third of its masses."""


def mass_spread_of(family: str, spread: float = FlightSpread.mass) -> float:
    """Return by how much masses of a family's flights differ, +- [kg], where the competition's differ by `spread`."""
    return spread if family == OWN_SPREAD else spread / 3.0


def drawn_vehicles(nominal: Vehicle, spread: FlightSpread, seed: int, flight_ids: Sequence[int]) -> list[Vehicle]:
    """Return one vehicle per flight; the same for a flight whatever others are drawn.

    Args:
        nominal: As its controller believes it to be.
        spread: Half widths of the draws.
        seed: Of the run.
        flight_ids: Numbers of the flights; the same number draws the same vehicle.

    Raises:
        AirworthyError: The spread leaves nothing of the mass or the inertia.
    """
    draw = 2.0 * uniforms(flight_key(seed, np.asarray(flight_ids)), 0, Stream.PARAMETERS, 4) - 1.0
    if spread.mass >= nominal.mass or spread.inertia >= min(nominal.inertia[:3]):
        raise AirworthyError(f"A spread of {spread.mass:g} kg leaves nothing of {nominal.name}'s {nominal.mass:g} kg.")
    noise = _noise(nominal, spread)
    made = []
    for row in draw:
        xx, yy, zz = (float(j + spread.inertia * u) for j, u in zip(nominal.inertia[:3], row[1:], strict=True))
        inertia = (xx, yy, zz, *nominal.inertia[3:])
        made.append(replace(nominal, mass=float(nominal.mass + spread.mass * row[0]), inertia=inertia, wrench_noise=noise))
    return made


def identified_vehicles(
    nominal: Vehicle, spread: FlightSpread, seed: int, flight_ids: Sequence[int]
) -> tuple[list[Vehicle], list[DrawnVehicle]]:
    """Return one vehicle per flight, drawn from what an identification left open of the nominal one, and what was drawn.

    Args:
        nominal: With its uncertainty.
        spread: Whose noise they fly in; its masses and inertias are not drawn besides.
        seed: Of the run.
        flight_ids: Numbers of the flights; the same number draws the same vehicle.

    Raises:
        AirworthyError: The record tells no uncertainty, or hardly a draw of it is a vehicle that flies.
    """
    drawn = posterior_vehicles(nominal, Randomization(posterior=True), flight_key(seed, np.asarray(flight_ids)))
    noise = _noise(nominal, spread)
    return [replace(item.vehicle, wrench_noise=noise) for item in drawn], drawn


def _noise(nominal: Vehicle, spread: FlightSpread) -> WrenchNoise:
    """Force noise of the spread as a density; motors add to it along z, and to the moments by their levers."""
    dt, count = 1.0 / PHYSICS_RATE, nominal.rotor_count
    aside = spread.force**2 / 3.0
    lever = np.abs(np.array([rotor.position for rotor in nominal.rotors]))
    turning = spread.thrust_noise**2 * np.sum(lever**2, axis=0)
    up = aside + count * spread.thrust_noise**2
    return WrenchNoise((dt * aside, dt * aside, dt * up), (dt * float(turning[1]), dt * float(turning[0]), 0.0))


def believed(family: FlightFamily, nominal: Vehicle) -> Vehicle:
    """Return what the controller of a family takes its vehicle for: the nominal one, with the controller's own mass beside
    it; of another vehicle than the family's, its record.
    """
    if family.controller_mass is None or nominal.name != family.vehicle:
        return nominal
    return replace(nominal, extra={**nominal.extra, "controller_mass_kg": family.controller_mass})


def hover_integrals(family: FlightFamily, nominal: Vehicle, flown: Sequence[Vehicle]) -> Array:
    """Return the vertical position integral [m s] that each flight has come to at hover, within its clamp, shape (flights,).

    Args:
        family: Of vehicle and controller.
        nominal: As the controller believes it to be.
        flown: Vehicles of the flights.
    """
    if family.level != "tracking:crazyflie":
        return np.zeros(len(flown))
    believed_vehicle = believed(family, nominal)
    mass = believed_vehicle.extra.get("controller_mass_kg")
    p = mellinger_parameters(family.gains, believed_vehicle.gravity, None if mass is None else float(mass))
    ahead = float(p.mass * p.gravity)
    missing = [_asked_to_hover(item, float(p.thrust_scale)) - ahead for item in flown]
    return np.array([hover_integral(force, float(p.ki[2]), float(p.integral_max[2])) for force in missing])


def _asked_to_hover(item: Vehicle, thrust_scale: float) -> float:
    """Force that the law must ask for so that the motors make a vehicle's weight [N], by bisection of the thrust chain."""
    low, high = 0.0, 4.0 * item.mass * item.gravity
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _made(item, thrust_scale * middle) < item.mass * item.gravity else (low, middle)
    return 0.5 * (low + high)


def _made(item: Vehicle, command: float) -> float:
    """Thrust of all motors at one command [N]."""
    c0, c1, c2 = item.rotors[0].thrust
    top = item.rotors[0].speed_max
    if item.voltage_chain is None:
        largest = c0 + c1 * top + c2 * top * abs(top)
        return float(item.rotor_count * thrust_of_command(min(command, COMMAND_MAX), largest))
    chain = SimpleNamespace(**{name: getattr(item.voltage_chain, name) for name in CHAIN_FIELDS})
    speed = float(speed_of_command(command, chain))
    return float(item.rotor_count * (c0 + c1 * speed + c2 * speed * abs(speed)))
