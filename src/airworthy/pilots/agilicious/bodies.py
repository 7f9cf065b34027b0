"""What the controllers know of each flight's vehicle, as arrays over flights."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control import allocate_bounded, allocation_for, thrust_limits
from airworthy.vehicles import Vehicle, control_effectiveness

__all__ = ["Bodies"]

Array = NDArray[np.float64]


class Bodies:
    """Masses, inertias and rotors of n vehicles, padded to the most rotors.

    Args:
        vehicles: As the controllers believe them to be.
    """

    def __init__(self, vehicles: Sequence[Vehicle]):
        self.rotors = max(v.rotor_count for v in vehicles)
        count, n = len(vehicles), self.rotors
        self.mass = np.array([v.mass for v in vehicles])
        self.inertia = np.array([v.inertia for v in vehicles])
        """xx, yy, zz, xy, xz, yz, (n, 6)."""
        self.effect = np.zeros((count, 6, n))
        """Wrench per newton of each rotor."""
        self.lowest, self.highest = np.zeros((count, n)), np.zeros((count, n))
        self._polynomial = np.zeros((count, n, 3))
        kept: dict[int, Any] = {}
        for k, v in enumerate(vehicles):
            if id(v) not in kept:
                kept[id(v)] = (control_effectiveness(v), thrust_limits(v), [r.thrust for r in v.rotors], allocation_for(v, n))
            effect, limits, polynomial, _ = kept[id(v)]
            self.effect[k, :, : v.rotor_count] = effect
            self.lowest[k, : v.rotor_count], self.highest[k, : v.rotor_count] = limits
            self._polynomial[k, : v.rotor_count] = polynomial
        plans = [kept[id(v)][3] for v in vehicles]
        self._inverse = np.array([p.inverse for p in plans])
        self._collective = np.array([p.collective for p in plans])

    def __len__(self) -> int:
        return len(self.mass)

    def inertia_columns(self) -> tuple[Array, ...]:
        """xx, yy, zz, xy, xz, yz, (n,) each, as equations take them."""
        return tuple(self.inertia.T)

    def thrusts(self, speed: Array) -> Array:
        """Thrust of each rotor at speeds (n, rotors) [N]."""
        c0, c1, c2 = np.moveaxis(self._polynomial, -1, 0)
        return np.asarray(c0 + c1 * speed + c2 * speed * np.abs(speed))

    def wrench(self, thrusts: Array) -> Array:
        """Force and moment, body, (n, 6)."""
        return np.asarray(np.einsum("nij,nj->ni", self.effect, thrusts))

    def allocated(self, force: Array, moment: Sequence[Array]) -> Array:
        """Rotor thrusts (n, rotors) [N] within limits for a force along body z and moments (n,); yaw is given up first."""
        zero = np.zeros(len(self))
        wrench = np.stack([zero, zero, force, *moment], axis=1)
        thrusts = np.asarray(np.einsum("nij,nj->ni", self._inverse, wrench))
        # The scheme by priority equals the exact solution wherever that is within limits: it runs only where it is not.
        beyond = np.flatnonzero(~((thrusts >= self.lowest) & (thrusts <= self.highest)).all(axis=1))
        if beyond.size:
            thrusts[beyond] = np.stack(allocate_bounded(tuple(wrench[beyond].T), self._plan_of(beyond)), axis=1)
        return thrusts

    def _plan_of(self, ids: NDArray[np.intp]) -> SimpleNamespace:
        inverse = self._inverse[ids]
        return SimpleNamespace(
            inverse=tuple(tuple(inverse[:, i, j] for j in range(6)) for i in range(self.rotors)),
            collective=tuple(self._collective[ids].T),
            thrust_min=tuple(self.lowest[ids].T),
            thrust_max=tuple(self.highest[ids].T),
        )
