"""Our model of a Crazyflie as a vector of parameters: what each means, what is known beforehand, and the model it makes.

Every parameter has a prior mean and standard deviation from physics or publications. Logarithms keep positive values positive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.benchmarks.validation.predict import VehicleModel
from airworthy.core.arrays import Array
from airworthy.vehicles import Drag, Rotor, RotorResponse, Vehicle

CORNERS = ((1, -1), (-1, -1), (-1, 1), (1, 1))
"""Signs of x and y of M1 front right, M2 back right, M3 back left, M4 front left; the logs confirm them by regression."""
SPINS = (-1, 1, -1, 1)
"""Reaction torque about body z: M1 and M3 turn counter-clockwise seen from above."""
SPEED_NOMINAL = 1600.0
"""Rotor speed about which the thrust polynomial's linear share is counted [rad/s]."""
SPEED_MAX = 3000.0


@dataclass(frozen=True)
class Airframe:
    """What is known of a vehicle before any flight."""

    name: str
    mass: float
    """Weighed [kg]."""
    arm: float
    """Rotor hub from the centre along x and along y [m]."""
    inertia: tuple[float, float, float]
    """Prior of Ixx, Iyy, Izz [kg m^2]."""
    rotor_inertia: float
    """Prior [kg m^2]."""
    torque_ratio: float
    """Prior of torque over thrust [m]."""
    time_constant: float = 0.05
    """Rotor lag, for flying the result [s]; predictions are fed rotor speeds."""
    source: str = ""


PRIORS: dict[str, tuple[float, float, str]] = {
    "thrust": (0.0, 0.3, "log thrust of all rotors over what carries the weight on average"),
    "thrust_1": (0.0, 0.05, "log thrust factor of M1"),
    "thrust_2": (0.0, 0.05, "log thrust factor of M2"),
    "thrust_3": (0.0, 0.05, "log thrust factor of M3"),
    "thrust_4": (0.0, 0.05, "log thrust factor of M4"),
    "torque": (0.0, 0.3, "log torque over thrust, over its prior"),
    "torque_split": (0.0, 0.05, "half the log ratio of torque of spin +1 over spin -1 rotors"),
    "inertia_x": (0.0, 0.2, "log Ixx over its prior"),
    "inertia_y": (0.0, 0.2, "log Iyy over its prior"),
    "inertia_z": (0.0, 0.2, "log Izz over its prior"),
    "rotor_inertia": (0.0, 0.3, "log rotor inertia over its prior"),
    "drag_xy": (0.014, 0.005, "linear drag along x and y [N s/m]"),
    "drag_z": (0.015, 0.007, "linear drag along z [N s/m]"),
    "tilt_x": (0.0, 0.015, "thrust axes' x component"),
    "tilt_y": (0.0, 0.015, "thrust axes' y component"),
    "drag_height": (0.02, 0.02, "height at which the drag force would have to act [m]"),
    "damping_xy": (2e-5, 4e-5, "linear damping of roll and pitch rate [N m s/rad]"),
    "damping_z": (1e-5, 1e-5, "linear damping of yaw rate [N m s/rad]"),
    "linear_share": (0.0, 0.2, "share of hover thrust that is linear in rotor speed"),
    "drag_quadratic": (0.0, 0.003, "quadratic drag along x and y [N s^2/m^2]"),
    "hub_across": (2e-6, 1e-6, "drag at each hub per rotor speed and air speed across the axis [N s^2/(rad m)]"),
    "hub_along": (2e-6, 2e-6, "the same along the axis"),
    "flapping": (4e-8, 4e-8, "moment of flapping blades per rotor speed and air speed across the axis [N s^2/rad]"),
    "translational_lift": (0.0, 1e-3, "thrust per squared air speed across the axis [N s^2/m^2]"),
    "effective_x": (0.0, 1.0, "log Ixx beyond physics: what input errors leave of the response"),
    "effective_y": (0.0, 1.0, "log Iyy beyond physics"),
}
"""Name -> (prior mean, prior standard deviation, meaning)."""

_SCALES = ("thrust", "thrust_1", "thrust_2", "thrust_3", "thrust_4", "torque", "torque_split")
_RIGID = (*_SCALES, "inertia_x", "inertia_y", "inertia_z", "rotor_inertia")
_DRAG = (*_RIGID, "drag_xy", "drag_z", "tilt_x", "tilt_y")
_DAMPING = (*_DRAG, "drag_height", "damping_xy", "damping_z")
_HUBS = (*_RIGID, "tilt_x", "tilt_y", "hub_across", "hub_along", "flapping", "damping_xy", "damping_z")
_FULL = (*_DAMPING, "linear_share", "drag_quadratic")
STRUCTURES: dict[str, tuple[str, ...]] = {
    "rigid": _RIGID,
    "drag": _DRAG,
    "drag moment": (*_DRAG, "drag_height"),
    "damping": _DAMPING,
    "full": _FULL,
    "hubs": _HUBS,
    "hubs and lift": (*_HUBS, "translational_lift"),
    "full and hubs": (*_FULL, "hub_along", "flapping", "translational_lift"),
    "effective inertia": (*_FULL, "effective_x", "effective_y"),
}
"""Nested choices of free parameters; effects of what is not free are absent."""

_ABSENT = dict.fromkeys(PRIORS, 0.0)


@dataclass(frozen=True)
class Structure:
    """Which parameters are free for an airframe, and the thrust that makes it hover."""

    airframe: Airframe
    free: tuple[str, ...]
    thrust_hover: float
    """Coefficient of squared speed that carries the weight in the fitted flights [N s^2/rad^2]."""

    @property
    def mean(self) -> Array:
        """Prior means of the free parameters."""
        return np.array([PRIORS[name][0] for name in self.free])

    @property
    def deviation(self) -> Array:
        """Prior standard deviations of the free parameters."""
        return np.array([PRIORS[name][1] for name in self.free])

    def model(self, theta: Sequence[float] | Array, name: str = "") -> VehicleModel:
        """Return the model of a parameter vector."""
        v = dict(_ABSENT) | dict(zip(self.free, (float(t) for t in theta), strict=True))
        frame = self.airframe
        length = math.sqrt(1.0 + v["tilt_x"] ** 2 + v["tilt_y"] ** 2)
        axis = (v["tilt_x"] / length, v["tilt_y"] / length, 1.0 / length)
        rotors = []
        for index, ((x, y), spin) in enumerate(zip(CORNERS, SPINS, strict=True)):
            scale = self.thrust_hover * math.exp(v["thrust"] + v[f"thrust_{index + 1}"])
            thrust = (0.0, scale * v["linear_share"] * SPEED_NOMINAL, scale * (1.0 - v["linear_share"]))
            ratio = frame.torque_ratio * math.exp(v["torque"] + spin * v["torque_split"])
            rotors.append(
                Rotor(
                    position=(x * frame.arm, y * frame.arm, 0.0),
                    thrust=thrust,
                    torque=(0.0, thrust[1] * ratio, thrust[2] * ratio),
                    spin=-1 if spin < 0 else 1,
                    response=RotorResponse.first_order(frame.time_constant),
                    speed_max=SPEED_MAX,
                    axis=axis,
                    inertia=frame.rotor_inertia * math.exp(v["rotor_inertia"]),
                    hub_drag=(v["hub_across"], v["hub_along"]),
                    flapping=v["flapping"],
                    translational_lift=v["translational_lift"],
                )
            )
        beyond = (v["effective_x"], v["effective_y"], 0.0)
        inertia = [
            prior * math.exp(v[f"inertia_{k}"] + more) for prior, k, more in zip(frame.inertia, "xyz", beyond, strict=True)
        ]
        drag = Drag(
            linear=(v["drag_xy"], v["drag_xy"], v["drag_z"]),
            quadratic_norm=(v["drag_quadratic"], v["drag_quadratic"], 0.0),
            angular_linear=(v["damping_xy"], v["damping_xy"], v["damping_z"]),
        )
        vehicle = Vehicle(
            name or frame.name, frame.mass, (inertia[0], inertia[1], inertia[2], 0.0, 0.0, 0.0), tuple(rotors), drag=drag
        )
        return VehicleModel(vehicle, drag_center=(0.0, 0.0, v["drag_height"]))
