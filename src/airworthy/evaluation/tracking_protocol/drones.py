"""The drones of a block and where they begin: functions of (seed, flight number), the same in every condition.

Flights with one number therefore have the same start and the same drawn drone whoever flies and whatever the condition, which
is what makes differences between pilots and conditions pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import sha256
from airworthy.core.random import Stream, Words, flight_key, uniforms
from airworthy.evaluation.tracking_protocol.conditions import Condition
from airworthy.pilots.expert import full_thrust_of
from airworthy.simulation import Simulator
from airworthy.trajectories import Trajectory, kinematic_state
from airworthy.vehicles import Vehicle

__all__ = ["Drones", "Spread", "draw_drones", "equip", "keys_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_START, _DRONE, _SIDE = 0, 1, 2
"""Steps of the stream that a flight's own numbers are drawn from."""


@dataclass(frozen=True)
class Spread:
    """Half widths of what every flight of a run draws, uniform."""

    position: float = 0.1
    """[m]"""
    velocity: float = 0.1
    """[m/s]"""
    attitude: float = 0.05
    """Of each component of the quaternion, before it is normalised."""
    mass: float = 0.0
    """Share; so is thrust. A condition that has a wider one wins."""
    thrust: float = 0.0


@dataclass(frozen=True, eq=False)
class Drones:
    """Of n flights."""

    number: Ints
    """(n,)"""
    mass: Array
    """(n,) as flown [kg]."""
    thrust: Array
    """(n,) of all rotors at full command [N]."""
    vehicle: Vehicle
    """Of which they are kinds."""
    side: Array
    """(n,) 1 or -1: from which side a gust comes."""
    position: Array
    """(n, 3) start, world [m]; so are velocity (n, 3) and attitude (n, 4)."""
    velocity: Array
    attitude: Array

    @property
    def ratio(self) -> Array:
        """(n,) force of one rotor at full command over mass [N/kg]: what a history network can know."""
        return self.thrust / self.rotors / self.mass

    @property
    def nominal(self) -> float:
        """The same of the record."""
        return full_thrust_of(self.vehicle) / self.rotors / self.vehicle.mass

    @property
    def rotors(self) -> int:
        """Of each."""
        return self.vehicle.rotor_count

    def full_of(self, family: str) -> Array:
        """(n,) thrust that a command of full thrust names [N]: in the rigid family what the allocation believes."""
        return self.thrust if family == "semi_kinematic" else np.full(len(self.thrust), full_thrust_of(self.vehicle))


def keys_of(seed: int, number: Ints) -> Words:
    """(n, 4) keys of flights by their numbers: apart from those with which a simulator draws."""
    own = int(sha256(f"tracking protocol {seed}")[:16], 16)
    return flight_key(own, number)


def draw_drones(vehicle: Vehicle, path: Trajectory, spread: Spread, condition: Condition, seed: int, number: Ints) -> Drones:
    """Draw the flights of some numbers (n,)."""
    key = keys_of(seed, number)
    sample = path.sample(np.zeros(1))
    wanted = np.concatenate([sample.position[0], sample.velocity[0], kinematic_state(sample, vehicle.gravity).attitude[0]])
    half = np.repeat([spread.position, spread.velocity, spread.attitude], [3, 3, 4])
    start = wanted + half * (2.0 * uniforms(key, _START, Stream.SYNTHESIS, 10) - 1.0)
    start[:, 6:] /= np.linalg.norm(start[:, 6:], axis=1, keepdims=True)
    share = 2.0 * uniforms(key, _DRONE, Stream.SYNTHESIS, 2) - 1.0
    mass = vehicle.mass * condition.mass * (1.0 + max(spread.mass, condition.mass_spread) * share[:, 0])
    thrust = full_thrust_of(vehicle) * (1.0 + max(spread.thrust, condition.thrust_spread) * share[:, 1])
    side = np.where(uniforms(key, _SIDE, Stream.SYNTHESIS, 1)[:, 0] < 0.5, 1.0, -1.0)
    return Drones(number, mass, thrust, vehicle, side, start[:, :3], start[:, 3:6], start[:, 6:])


def equip(simulator: Simulator, drones: Drones) -> None:
    """Give a simulator's vehicles these drones' mass and thrust; inertia follows mass, as of a drone that is denser."""
    share = drones.mass / np.array([item.mass for item in simulator.vehicles])
    simulator.set_parameter("mass", drones.mass)
    if simulator.config.dynamics == "semi_kinematic":
        simulator.set_parameter("thrust_limit", drones.thrust)
        return
    simulator.set_parameter("inertia", simulator.parameter("inertia") * share[:, None])
    gain = drones.thrust / np.array([full_thrust_of(item) for item in simulator.vehicles])
    for name in ("rotor_thrust", "rotor_torque"):
        rows = np.asarray(simulator.parameter(name))
        simulator.set_parameter(name, rows.reshape(len(gain), -1) * gain[:, None])
