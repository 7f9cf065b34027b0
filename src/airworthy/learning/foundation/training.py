"""One policy for all quadrotors: learnt by the gradient of flights whose vehicles are drawn from nothing, one for each flight.

Nobody tells the policy which vehicle it flies: it sees its last actions beside the state, and knows of a vehicle the rotor
states of hover alone, around which its actions lie (`airworthy.pilots.motor_policy.quadrotor`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayIndex
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.random import Stream, flight_key, normals, uniforms
from airworthy.dynamics.state import padded_rotor_count
from airworthy.learning.gradient.dynamics import Surrogate, surrogate_of
from airworthy.learning.gradient.policy import contract_of_training
from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining
from airworthy.pilots.motor_policy.contract import MotorContract, write_motor_folder
from airworthy.pilots.motor_policy.quadrotor import SPINS
from airworthy.simulation import SimulatorConfig
from airworthy.simulation.parameters import rigid_column
from airworthy.vehicles import Rotor, RotorResponse, Vehicle

__all__ = ["BAND", "FOUNDATION", "FoundationTraining", "drawn_quadrotor", "foundation_contract", "write_foundation_policy"]

BAND = 0.15
"""Ours: rotors are commanded off hover's speed by up to this share of it, which is a third of the thrust."""
FOUNDATION = GradientOptions(env_count=256, iterations=2500, learning_rate=1e-2, history=8)
"""Ours, the first that were tried; eight past actions are as many as 3,000 weights leave room for."""
_POOL = 1024
"""Ours: vehicles that flights are dealt from, in turn."""
_DRAWN = 0xFFFFFFFE
"""Flight id of the draws of vehicles: no environment has it."""
_HOVER = 1000.0
"""Ours: rotor speed of hover of drawn vehicles [rad/s]; a rotor's thrust is a share of hover's, whatever this is."""
_GRAVITY = 9.81

# Specification, section 2.4, after RAPTOR; where it names a range and no law, the logarithm is uniform.
_MASS, _THRUST_TO_WEIGHT = (0.02, 5.0), (1.5, 5.0)
_THRUST_TO_TURN = (0.001, 0.1)
"""Thrust-to-weight over the largest roll acceleration [s^2/rad]."""
_TORQUE_CONSTANT = (0.005, 0.05)
"""Torque over thrust of a rotor [m]."""
_RISE, _FALL = (0.01, 0.15), (0.01, 0.3)
"""Time constants [s]; ours: faster than there, as far as one step of the equations per decision resolves."""
# Ours: airframes are not square, and carry their mass off the plane of their rotors or in it.
_ARM, _ARM_SPREAD = 0.2, 0.2
"""Of a vehicle of 1 kg [m], and standard deviation of its reciprocal."""
_CORNER = 15.0
"""Degrees by which the first rotor is off the diagonal at most."""
_AXES = 0.3
"""Share by which pitch inertia differs from roll inertia at most."""


def drawn_quadrotor(seed: int, index: int) -> Vehicle:
    """Draw a quadrotor, of a seed and a number alone, its rotors numbered as `QuadrotorTerms` does.

    Args:
        seed: Of the draws.
        index: Its number.
    """
    key = flight_key(seed, _DRAWN, index)
    u = uniforms(key, 0, Stream.RESET, 10).tolist()
    mass = _between(u[0], _MASS[0] ** (1.0 / 3.0), _MASS[1] ** (1.0 / 3.0)) ** 3
    ratio = _between(u[1], *_THRUST_TO_WEIGHT)
    # Half of the mean at least: a reciprocal near 0 would be an airframe of kilometres.
    arm = _ARM * mass ** (1.0 / 3.0) / max(0.5, 1.0 + _ARM_SPREAD * float(normals(key, 1, Stream.RESET, 2)[0]))
    corner = math.radians(45.0 + _CORNER * (2.0 * u[2] - 1.0))
    x, y = arm * math.cos(corner), arm * math.sin(corner)
    turn = ratio / _log_between(u[3], *_THRUST_TO_TURN)
    # Two rotors at full thrust, the others standing.
    roll = 0.5 * ratio * mass * _GRAVITY * y / turn
    pitch = roll * (1.0 + _AXES * (2.0 * u[4] - 1.0))
    # A flat body has the sum of both, and a long one down to half of it.
    yaw = (roll + pitch) * _between(u[5], 0.5, 1.0)
    thrust = mass * _GRAVITY / (4.0 * _HOVER**2)
    rise = _log_between(u[7], *_RISE)
    fall = rise if u[8] < 0.5 else _log_between(u[9], *_FALL)
    rotors = tuple(
        Rotor(
            position=(forward * x, left * y, 0.0),
            thrust=(0.0, 0.0, thrust),
            torque=(0.0, 0.0, _log_between(u[6], *_TORQUE_CONSTANT) * thrust),
            spin=1 if spin > 0 else -1,
            response=RotorResponse.first_order(rise, fall),
            speed_max=_HOVER * math.sqrt(ratio),
        )
        for (forward, left), spin in zip(((1, 1), (-1, 1), (-1, -1), (1, -1)), SPINS, strict=True)
    )
    return Vehicle(f"drawn_{seed}_{index}", mass, (roll, pitch, yaw, 0.0, 0.0, 0.0), rotors, gravity=_GRAVITY)


def _between(u: float, low: float, high: float) -> float:
    return low + (high - low) * u


def _log_between(u: float, low: float, high: float) -> float:
    return low * (high / low) ** u


class FoundationTraining(GradientTraining):
    """A policy that learns to hold a place with whatever quadrotor it is given.

    Args:
        options: How; their randomisation adds to what is drawn here, and is best left off.
        device: A Warp device.
    """

    def __init__(self, options: GradientOptions = FOUNDATION, device: str = "cpu"):
        self._pool: dict[int, np.ndarray] = {}
        # Rotors keep to the band that actions command: in these terms all drawn vehicles have the same limits.
        super().__init__(_banded(drawn_quadrotor(options.seed, 0)), options, device)

    def _surrogate(self, config: SimulatorConfig) -> Surrogate:
        fleet = [_banded(drawn_quadrotor(self.options.seed, k)) for k in range(_POOL)]
        # Form and layout are those of each of them. A simulator would also tune a controller for every one, which takes long.
        one = surrogate_of(fleet[0], config, 1)
        fine = replace(config, physics_rate=config.control_rate * one.form.substeps)
        columns = [rigid_column(item, fine, one.layout, padded_rotor_count(len(item.rotors))) for item in fleet]
        rows = np.stack(columns, axis=1)
        self._pool = dict(enumerate(rows.astype(np.float32)))
        return replace(one, rows=np.array(rows[:, np.arange(self.options.env_count) % _POOL]))

    def _restart(self, flights: ArrayIndex) -> None:
        super()._restart(flights)
        # Of environment and episode alone: a training that was stopped deals the same vehicles.
        self._deal(flights)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        super().restore(checkpoint)
        self._deal(np.arange(self.options.env_count))

    def _deal(self, flights: ArrayIndex) -> None:
        mine = (flights + self.episode[flights] * self.options.env_count) % _POOL
        for row, values in self.window.parameters.items():
            # Rows behind the vehicle's are the task's.
            if row in self._pool:
                values[flights] = self._pool[row][mine]


def _banded(vehicle: Vehicle) -> Vehicle:
    low, high = _HOVER * (1.0 - BAND), _HOVER * (1.0 + BAND)
    return replace(vehicle, rotors=tuple(replace(rotor, speed_min=low, speed_max=high) for rotor in vehicle.rotors))


def foundation_contract(training: FoundationTraining, notes: str = "") -> MotorContract:
    """Return the contract of the policy that a training holds now.

    Args:
        training: In whatever state.
        notes: A sentence or two for people.
    """
    band = ((1.0 - BAND, 1.0 + BAND),) * training.vehicle.rotor_count
    own = contract_of_training(training, notes)
    return replace(own, vehicle="any quadrotor", family="quadrotor", limits=band, hover=(0.0,) * len(band), digest="")


def write_foundation_policy(folder: str | Path, training: FoundationTraining, notes: str = "") -> Path:
    """Write the policy that a training holds now; returns the folder, as `write_motor_policy`.

    Args:
        folder: Made where it is missing.
        training: In whatever state.
        notes: A sentence or two for people.
    """
    return write_motor_folder(folder, foundation_contract(training, notes), training.weights)
