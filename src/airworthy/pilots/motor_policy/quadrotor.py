"""The terms in which all quadrotors look alike to one policy, and how its network is turned into a vehicle's own.

Rotors are numbered anticlockwise from the left front one, seen from above, in axes turned about body z by eighths of a turn so
that this rotor's reaction torque is along +z. Actions of -1 to 1 are states within a band around those of hover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle, hover_speed

__all__ = ["SPINS", "QuadrotorTerms"]

SPINS = (1, -1, 1, -1)
"""Of the rotors as numbered here."""
_EIGHTH = math.pi / 4.0
_UPRIGHT = 1e-6
"""Ours: largest share by which a rotor's axis may lean; catalogue records are round numbers."""


@dataclass(frozen=True, eq=False)
class QuadrotorTerms:
    """A vehicle's rotors and axes as such a policy has them."""

    order: ArrayIndex
    """Rotor of the record behind each action, (4,)."""
    turn: float
    """Angle of the policy's axes about body z [rad]."""
    low: Array
    """State of each rotor of the record at action -1, (4,), in the vehicle's unit."""
    high: Array
    """At action 1, alike."""

    @classmethod
    def of(cls, vehicle: Vehicle, band: float) -> QuadrotorTerms:
        """Return terms of a vehicle.

        Args:
            vehicle: Any quadrotor.
            band: Rotors are commanded off hover's speed by this share of it at most, or by what reserve there is.

        Raises:
            AirworthyError: It does not have four upright rotors around its middle of which neighbours turn against each other,
                or cannot hover with thrust in reserve.
        """
        rotors = vehicle.rotors
        if len(rotors) != 4 or any(rotor.axis[2] < 1.0 - _UPRIGHT for rotor in rotors):
            raise AirworthyError(f"The policy is for quadrotors with upright rotors; the vehicle {vehicle.name!r} is none.")
        hubs = np.array([rotor.position[:2] for rotor in rotors]) - np.array(vehicle.center_of_mass[:2])
        angles, spins = np.arctan2(hubs[:, 1], hubs[:, 0]), np.array([rotor.spin for rotor in rotors])
        # Of those that may be the first, the one that needs the least turn.
        turns = _EIGHTH * np.round(angles[spins > 0] / _EIGHTH - 1.0)
        turn = float(turns[np.argmin(np.abs(turns))]) if len(turns) else 0.0
        order = np.argsort(np.mod(angles - turn, 2.0 * math.pi))
        if tuple(spins[order]) != SPINS:
            raise AirworthyError(
                f"The policy is for quadrotors whose neighbouring rotors turn against each other; those of the vehicle"
                f" {vehicle.name!r} do not."
            )
        hover = np.asarray(hover_speed(vehicle), float)
        # A state that is a thrust goes with the square of a speed: to first order twice its share.
        power = 2.0 if vehicle.motor_state == "thrust" else 1.0
        ends = [(rotor.speed_max / h - 1.0, 1.0 - rotor.speed_min / h) for rotor, h in zip(rotors, hover, strict=True)]
        # The same share upwards and downwards, and of all rotors: action 0 is hover, and no action turns one rotor more.
        share = min(power * band, *(end for pair in ends for end in pair))
        if not share > 0.0:
            raise AirworthyError(f"The vehicle {vehicle.name!r} has no thrust in reserve: no policy can hold it.")
        return cls(order, turn, hover * (1.0 - share), hover * (1.0 + share))

    def seen(self, observed: int) -> Array:
        """Return the matrix that makes of what a vehicle's own policy sees what this one sees, (observed, observed).

        Args:
            observed: Numbers that are seen: position, velocity, rotation by columns and body rate, then past actions.
        """
        c, s = math.cos(self.turn), math.sin(self.turn)
        back = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        matrix = np.zeros((observed, observed))
        # Target and body are turned alike, so that the heading that is held stays the vehicle's own. Columns are stacked: the
        # Kronecker product turns their numbers and mixes them.
        for first, block in ((0, back), (3, back), (6, np.kron(back, back)), (15, back)):
            matrix[first : first + len(block), first : first + len(block)] = block
        for first in range(18, observed, 4):
            matrix[first + np.arange(4), first + self.order] = 1.0
        return matrix

    def fitted(self, weights: Sequence[ArrayF32]) -> list[ArrayF32]:
        """Return weights of the vehicle's own network, which sees and commands its record's axes and rotors.

        Args:
            weights: Weight (rows, columns) and bias (rows,) of each layer of the policy for all quadrotors.
        """
        own = [np.array(w, np.float32) for w in weights]
        own[0] = (np.asarray(weights[0], float) @ self.seen(weights[0].shape[1])).astype(np.float32)
        own[-2][self.order], own[-1][self.order] = weights[-2], weights[-1]
        return own
