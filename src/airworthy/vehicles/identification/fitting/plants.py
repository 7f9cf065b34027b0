"""Many vehicles of one base at once, as what predicts them: arrays in the place of records.

A Jacobian asks for dozens of vehicles that differ in a number each. Made one by one as records they took as long as their
prediction. The same closed forms as `uncertainty.with_values` and `plant_of`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.prediction.plant import Plant, picked, plant_of
from airworthy.vehicles.record import Vehicle
from airworthy.vehicles.uncertainty import uncertain_values

__all__ = ["VehicleFamily"]


@dataclass(frozen=True, eq=False)
class VehicleFamily:
    """A base, and the vehicles that other values make of it."""

    base: Vehicle
    state: float
    """Rotor state at which thrust is told."""

    @cached_property
    def plant(self) -> Plant:
        """What predicts the base."""
        return plant_of(self.base)

    @cached_property
    def believed(self) -> dict[str, float]:
        """Values of the base, SI units."""
        return uncertain_values(self.base, self.state)

    @cached_property
    def curves(self) -> tuple[Array, Array]:
        """Coefficients of thrust [N] and torque [N m] by rotor state, (rotors, 3) each."""
        rotors = self.base.rotors
        return np.array([rotor.thrust for rotor in rotors]), np.array([rotor.torque for rotor in rotors])

    def plants(self, values: Mapping[str, Array], drag_height: Array, fall_ratio: Array) -> Plant:
        """Return what predicts many vehicles, in the order of their values; dead times and the like are the base's.

        Args:
            values: By names of `UNCERTAIN`, SI units, (sets,) each; what is not named is the base's.
            drag_height: Of the point where drag acts [m], (sets,).
            fall_ratio: Lag of rotors that slow down over that of rotors that speed up, (sets,); 1: as the base has it.
        """
        count, base = len(drag_height), self.base
        v = {name: np.full(count, value) for name, value in self.believed.items()} | dict(values)
        thrust, torque = self._curves(values, v)
        axes = np.array([rotor.axis for rotor in base.rotors])
        places = np.array([rotor.position for rotor in base.rotors])
        center = np.stack([v["center_x"], v["center_y"], np.full(count, base.center_of_mass[2])], axis=1)
        spins = np.array([float(rotor.spin) for rotor in base.rotors])
        ratio = self._torque_ratios(thrust, torque, v["mass"])
        moment = np.cross(places - center[:, None], axes) + (spins * ratio)[..., None] * axes
        full = self.plant.speed_full[0]
        found = {
            "response": self._responses(v["lag"], fall_ratio),
            "thrust": thrust * np.stack([np.ones_like(full), full, full**2], axis=1),
            "force": axes.T / v["mass"][:, None, None],
            "moment": np.swapaxes(moment, 1, 2),
            "lever": -center,
            "drag_arm": v["mass"] * drag_height,
        }
        diagonal = np.stack(
            [v["inertia_xx"], v["inertia_yy"], v["inertia_zz_ratio"] * 0.5 * (v["inertia_xx"] + v["inertia_yy"])]
        )
        inertia = np.repeat(self.plant.inertia, count, axis=0)
        for axis in range(3):
            inertia[:, axis, axis] = diagonal[axis]
        found["inertia"] = inertia
        if "damping" in values:
            found["damping"] = (v["damping"] * diagonal).T
        if "sag" in values and base.command_sag is not None:
            found["supply"] = np.stack([v["sag"], np.full(count, base.command_sag[1])], axis=1)
        many = picked(self.plant, np.zeros(count, np.int64))
        return Plant(**{name: found.get(name, value) for name, value in vars(many).items()})

    def _curves(self, values: Mapping[str, Array], v: Mapping[str, Array]) -> tuple[Array, Array]:
        """Coefficients of thrust and torque, (sets, rotors, 3) each; rotors keep their shares, torque its ratio."""
        state = self.state
        factor = (v["thrust"] / self.believed["thrust"])[:, None, None]
        thrust, torque = (factor * curve for curve in self.curves)
        if "thrust_linear" in values:
            whole = thrust[..., 1] * state + thrust[..., 2] * state * abs(state)
            thrust[..., 1] = whole * v["thrust_linear"][:, None] / state
            thrust[..., 2] = whole * (1.0 - v["thrust_linear"][:, None]) / (state * abs(state))
        if "thrust_linear" in values or "torque_ratio" in values:
            torque = v["torque_ratio"][:, None, None] * thrust
        return thrust, torque

    def _responses(self, lag: Array, fall_ratio: Array) -> Array:
        """Responses, a, b of rise and of fall, states as fractions of full command, (sets, 4)."""
        found = self.plant.response * (self.believed["lag"] / lag)[:, None]
        found[:, 2:] = np.where(fall_ratio[:, None] == 1.0, found[:, 2:], found[:, :2] / fall_ratio[:, None])
        return found

    def _torque_ratios(self, thrust: Array, torque: Array, mass: Array) -> Array:
        """Torque over thrust where each rotor carries its share of the weight [m], (sets, rotors), as `trim.torque_ratio`."""
        share = (mass * self.base.gravity / self.base.rotor_count)[:, None]
        c0, c1, c2 = (thrust[..., k] for k in range(3))
        least, most = (np.array([getattr(rotor, name) for rotor in self.base.rotors]) for name in ("speed_min", "speed_max"))
        side = np.where(share >= c0, 1.0, -1.0)
        root = np.sqrt(np.maximum(c1**2 + 4.0 * c2 * side * (share - c0), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            linear = np.where(c1 != 0.0, (share - c0) / c1, 0.0)
            state = np.clip(np.where(c2 == 0.0, linear, side * (root - c1) / (2.0 * c2)), least, most)
        # A range that begins at or below standstill may hold no thrust at the share asked for: full speed is tried.
        state = np.where(_along(thrust, state) > 0.0, state, most)
        force = _along(thrust, state)
        return np.asarray(np.where(force > 0.0, _along(torque, state) / np.where(force > 0.0, force, 1.0), 0.0))


def _along(curve: Array, state: Array) -> Array:
    """c0 + c1 s + c2 s|s|."""
    return np.asarray(curve[..., 0] + curve[..., 1] * state + curve[..., 2] * state * np.abs(state))
