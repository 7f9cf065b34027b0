"""What is watched of a vehicle: deviations from its record, and what is believed of them beforehand and between moments.

| name | what it is | scale |
|---|---|---|
| rotor_1, ... | thrust of each rotor, its torque with it | logarithm |
| mass | inertia as it was | logarithm |
| inertia | about all axes | logarithm |
| lag | of all rotors | logarithm |
| command_delay | [s] | |
| center_x, center_y | centre of mass [m] | |
| torque | reaction torque over thrust and over Izz | logarithm |
| turn_z | angular acceleration about z that no rotor tells [rad/s^2] | |
| force_z | bias of the accelerometer along z [m/s^2] | |
| imu_x, imu_y | place of the inertial sensor [m] | |
| thrust_drift | of the logarithm of all rotors' thrust, by the second: an emptying battery, as the record expects it [1/s] | |

The last six are no causes of an alarm: they are followed so that nothing else takes the blame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array
from airworthy.vehicles.identification.prediction.plant import Plant, plant_of, stacked
from airworthy.vehicles.record import Rotor, RotorResponse, ThrustDrift, Vehicle

__all__ = ["Watched"]

SHARED = ("mass", "inertia", "lag", "command_delay", "center_x", "center_y", "torque")
OF_LOG = ("turn_z", "force_z", "imu_x", "imu_y", "thrust_drift")
"""Each log has its own."""
LOGARITHMS = ("rotor", "mass", "inertia", "lag", "torque")
DECLARED = {"mass": 0.02, "thrust": 0.1, "inertia": 0.2, "lag": 0.2, "command_delay": 0.004, "torque": 0.3}
"""Deviations of a record that tells none; of centres of mass a twentieth of the arm."""
BETWEEN = {"thrust": 0.01, "rotor": 0.005, "mass": 0.002, "inertia": 0.01, "lag": 0.03, "command_delay": 0.0005, "torque": 0.02}
"""From flight to flight nothing is quite as it was: battery, temperature, propellers; ours. Of centres of mass 0.5 % of the
arm."""
WANDER = {
    "thrust": 5e-4, "rotor": 3e-4, "mass": 1e-5, "inertia": 1e-4, "lag": 1e-3, "command_delay": 2e-5, "torque": 1e-3,
    "force_z": 3e-3,
}  # fmt: skip
"""Of a second, growing by the square root of time: over a minute thrust wanders by 0.4 %; ours. Of centres of mass 0.03 % of
the arm, of turn_z 0.05 % of gravity over the arm."""
CENTER_SHARE, CENTER_BETWEEN, CENTER_WANDER = 0.05, 0.005, 3e-4
TURN_SHARE, TURN_WANDER = 0.05, 5e-4
FORCE_SD = 0.05
"""Bias of an accelerometer along z from log to log [m/s^2]."""
LEVER_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Watched:
    """A vehicle's record, and the deviations from it that are followed."""

    base: Vehicle

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all deviations, in the order of vectors."""
        return (*(f"rotor_{k + 1}" for k in range(self.base.rotor_count)), *SHARED, *OF_LOG)

    @cached_property
    def arm(self) -> float:
        """Mean distance of hubs from the middle [m]."""
        return float(np.mean([math.hypot(*rotor.position[:2]) for rotor in self.base.rotors]))

    def place(self, name: str) -> int:
        """Return where a deviation stands."""
        return self.names.index(name)

    def logarithm(self, name: str) -> bool:
        """Tell whether a deviation is one of a logarithm."""
        return name.partition("_")[0] in LOGARITHMS

    @cached_property
    def steps(self) -> Array:
        """Of differences, (values,)."""
        sizes = {"command_delay": 5e-4, "turn_z": 0.5, "force_z": 0.1, "thrust_drift": 1e-3}
        return np.array([0.005 if self.logarithm(n) else sizes.get(n, 0.01 * self.arm) for n in self.names])

    def plant(self, theta: Array) -> Plant:
        """Return what predicts a log with each of several vectors of deviations, (sets, values)."""
        return stacked([self._one(row) for row in theta])

    def _one(self, theta: Array) -> Plant:
        of = dict(zip(self.names, theta.tolist(), strict=True))
        base, count = self.base, self.base.rotor_count
        stretch, twist = math.exp(-of["lag"]), math.exp(of["torque"])
        gains = [math.exp(of[f"rotor_{k + 1}"]) for k in range(count)]
        factor, mass = math.exp(of["inertia"]), math.exp(of["mass"])
        inertia = tuple(factor * v for v in base.inertia)
        damping = tuple(factor * v for v in base.drag.angular_linear)
        center = base.center_of_mass
        made = replace(
            base,
            mass=mass * base.mass,
            inertia=(inertia[0], inertia[1], inertia[2], inertia[3], inertia[4], inertia[5]),
            center_of_mass=(center[0] + of["center_x"], center[1] + of["center_y"], center[2]),
            rotors=tuple(_rotor(r, g, twist, stretch) for r, g in zip(base.rotors, gains, strict=True)),
            drag=replace(base.drag, angular_linear=(damping[0], damping[1], damping[2])),
        )
        plant = plant_of(made, (of["imu_x"], of["imu_y"], base.center_of_mass[2]))
        return replace(
            plant,
            delay=np.array([base.command_delay + of["command_delay"]]),
            turn_offset=np.array([[0.0, 0.0, of["turn_z"]]]),
            force_offset=np.array([[0.0, 0.0, of["force_z"]]]),
        )

    # ---- What is believed -------------------------------------------------------------------------------------------------

    @cached_property
    def prior(self) -> Array:
        """Covariance of the record: its own, or what is declared, (values, values)."""
        told = self.base.uncertainty
        found = np.zeros((len(self.names),) * 2)
        declared = DECLARED | {"center_x": CENTER_SHARE * self.arm, "center_y": CENTER_SHARE * self.arm}
        if told is not None:
            covariance = np.outer(told.sd, told.sd) * np.array(told.correlation)
            onto = np.zeros((len(self.names), len(told.names)))
            for k, name in enumerate(told.names):
                onto[:, k] = self._onto(name)
            found = onto @ covariance @ onto.T
            of = {"thrust": "thrust", "torque_ratio": "torque", "inertia_xx": "inertia"}
            declared = {n: v for n, v in declared.items() if n not in {of.get(t, t) for t in told.names}}
        return found + self._of(declared)

    def _onto(self, name: str) -> Array:
        """Direction in which a value of a record's uncertainty moves the deviations."""
        if name == "thrust":
            return self.common
        direction = np.zeros(len(self.names))
        targets = {"inertia_xx": ("inertia", 0.5), "inertia_yy": ("inertia", 0.5), "inertia_zz_ratio": ("torque", -1.0)}
        target, share = targets.get(name, ("torque", 1.0) if name == "torque_ratio" else (name, 1.0))
        if target in self.names:
            direction[self.place(target)] = share
        return direction

    @cached_property
    def common(self) -> Array:
        """Direction of thrust of all rotors, (values,)."""
        return np.array([1.0 if name.startswith("rotor") else 0.0 for name in self.names])

    @cached_property
    def between(self) -> Array:
        """Covariance of what changes from log to log, (values, values)."""
        arm = CENTER_BETWEEN * self.arm
        return self._of(BETWEEN | {"center_x": arm, "center_y": arm})

    @cached_property
    def of_log(self) -> Array:
        """Covariance of what each log has of its own, (values, values)."""
        lever = max(LEVER_SHARE * self.arm, 0.002)
        turn = TURN_SHARE * self.base.gravity / self.arm
        return self._of({"turn_z": turn, "force_z": FORCE_SD, "imu_x": lever, "imu_y": lever, "thrust_drift": self.battery.sd})

    @cached_property
    def battery(self) -> ThrustDrift:
        """What thrust does within a flight by the record; one that tells nothing of it expects nothing."""
        told = self.base.uncertainty
        return ThrustDrift(0.0, 0.0, 0.0) if told is None or told.thrust_drift is None else told.thrust_drift

    @cached_property
    def expected(self) -> Array:
        """Mean of what each log has of its own, (values,)."""
        return np.asarray(self.battery.rate * np.eye(len(self.names))[self.place("thrust_drift")])

    @cached_property
    def wander(self) -> Array:
        """Covariance of what changes within a second, (values, values)."""
        arm = CENTER_WANDER * self.arm
        return self._of(WANDER | {"center_x": arm, "center_y": arm, "turn_z": TURN_WANDER * self.base.gravity / self.arm})

    def _of(self, sd: dict[str, float]) -> Array:
        """Covariance of deviations by name; "thrust" is of all rotors alike, "rotor" of each alone."""
        alone = np.array([sd.get("rotor" if name.startswith("rotor") else name, 0.0) for name in self.names])
        return np.asarray(np.diag(alone**2) + sd.get("thrust", 0.0) ** 2 * np.outer(self.common, self.common))


def _rotor(rotor: Rotor, gain: float, twist: float, stretch: float) -> Rotor:
    t, q = rotor.thrust, rotor.torque
    turn = gain * twist
    response = RotorResponse(*((a * stretch, b * stretch) for a, b in (rotor.response.rise, rotor.response.fall)))
    return replace(
        rotor,
        thrust=(gain * t[0], gain * t[1], gain * t[2]),
        torque=(turn * q[0], turn * q[1], turn * q[2]),
        response=response,
    )
