"""The vehicle as a plan sees it: a rigid body under collective thrust and angular acceleration, and its rotors' limits.

    p' = v,  v' = T/m R(q) e_z - (D/m) |v| v - R(q) (d1 u + d2 |u| u)/m - g e_z,  q' = 1/2 q (w, 0),  w' = alpha

with u = R(q)^T v and d1, d2 for each body axis (spec/flightgoggles 4, spec/race 5.4). The rate loop, inverted, gives alpha
(`airworthy.race.pilots.rate_inversion`), or rotors do (`airworthy.race.pilots.rotor_pilot`); their lag, which the plan leaves
out, is for the tracker to lead. Everything here is arithmetic alone, so that the same lines serve NumPy arrays and a solver's
symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.control.effectors import pseudo_inverse, working_effectiveness
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.vectors import quaternion_derivative
from airworthy.vehicles import Vehicle, thrust_limits

__all__ = ["INPUTS", "STATES", "RacerModel"]

STATES = 13
"""Position, velocity, attitude x y z w, body rate."""
INPUTS = 4
"""Collective thrust, angular acceleration."""
_REST = 1e-6
"""Added to the squared speed [m^2/s^2], so that the root has a slope at rest; ours: 0.1 % of the drag at 0.02 m/s."""


@dataclass(frozen=True)
class RacerModel:
    """Numbers of one vehicle."""

    mass: float
    """[kg]"""
    gravity: float
    """[m/s^2]"""
    drag: float
    """D of D |v| v [N s^2/m^2]."""
    inertia: tuple[float, float, float]
    """About body x, y, z [kg m^2]."""
    mixer: Array
    """Thrust of each rotor [N] per collective thrust [N] and angular acceleration [rad/s^2], (rotors, 4)."""
    rotor_max: float
    """Largest thrust of each rotor [N]."""
    linear: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """d1, drag per speed along body x, y, z [N s/m]."""
    quadratic: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """d2, drag per squared speed along body x, y, z [N s^2/m^2]."""

    @classmethod
    def of(cls, vehicle: Vehicle) -> RacerModel:
        """Return the model of a vehicle.

        Raises:
            AirworthyError: It has forces or an inertia that the equations leave out.
        """
        if not isinstance(vehicle, Vehicle):
            raise AirworthyError(f"A racer's model was asked for of {vehicle!r}; expected a vehicle, as of `race_vehicle`.")
        inertia, drag = tuple(vehicle.inertia[:3]), vehicle.drag
        air = [
            np.ravel((rotor.hub_drag, rotor.flapping, rotor.translational_lift)[k])
            for rotor in vehicle.rotors
            for k in range(3)
        ]
        others = [np.ravel(x) for x in (drag.rotor_speed, drag.center, vehicle.inertia[3:])]
        if np.any(np.concatenate(others + air)) or len(set(drag.quadratic_norm)) != 1:
            raise AirworthyError(
                f"The vehicle {vehicle.name!r} has products of inertia, drag of its rotors or drag that acts off its centre,"
                " which plans of races leave out; expected one like flightgoggles_2019 or kingfisher."
            )
        # Columns of force along z and of the three moments; J alpha is the moment, as in the loop (spec/flightgoggles 4.3).
        inverse = pseudo_inverse(working_effectiveness(vehicle))[:, 2:]
        return cls(
            vehicle.mass,
            vehicle.gravity,
            float(drag.quadratic_norm[0]),
            (float(inertia[0]), float(inertia[1]), float(inertia[2])),
            inverse * np.array([1.0, *inertia]),
            float(np.min(thrust_limits(vehicle)[1])),
            _triple(drag.linear),
            _triple(drag.quadratic_axis),
        )

    @property
    def thrust_max(self) -> float:
        """Collective thrust with all rotors at their limit [N]."""
        return self.rotor_max * len(self.mixer)

    @property
    def has_axial_drag(self) -> bool:
        """Whether any drag depends on the attitude."""
        return any(self.linear) or any(self.quadratic)

    def axial_drag(self, velocity: Any, attitude: Any) -> tuple[Any, Any, Any]:
        """Return the drag of body axes, against the motion, in the world [N], 3 components.

        Args:
            velocity: World [m/s], 3 components, each a number, an array or a symbol.
            attitude: x y z w of any length, 4 components.
        """
        rows = _rotation(attitude)
        along = [sum(rows[i][k] * velocity[i] for i in range(3)) for k in range(3)]
        # The root keeps |u| smooth at rest, as of the speed above.
        pull = [
            (first + second * (u * u + _REST) ** 0.5) * u
            for first, second, u in zip(self.linear, self.quadratic, along, strict=True)
        ]
        x, y, z = (sum(rows[i][k] * pull[k] for k in range(3)) for i in range(3))
        return x, y, z

    def derivative(self, state: Any, control: Any) -> tuple[Any, ...]:
        """Return the derivative of the 13 states.

        Args:
            state: 13 components, each a number, an array or a symbol.
            control: Collective thrust [N] and angular acceleration [rad/s^2], 4 components.
        """
        velocity, attitude, rate = state[3:6], tuple(state[6:10]), tuple(state[10:13])
        speed = (velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2 + _REST) ** 0.5
        x, y, z, w = attitude
        size = x * x + y * y + z * z + w * w
        # Body z in the world, of an attitude of any length: steps of 0.1 s leave its length by up to a percent.
        axis = (2.0 * (x * z + w * y) / size, 2.0 * (y * z - w * x) / size, (w * w + z * z - x * x - y * y) / size)
        push, brake = control[0] / self.mass, self.drag / self.mass * speed
        weight = (0.0, 0.0, self.gravity)
        acceleration = tuple(push * a - brake * v - g for a, v, g in zip(axis, velocity, weight, strict=True))
        if self.has_axial_drag:
            pull = self.axial_drag(velocity, attitude)
            acceleration = tuple(a - f / self.mass for a, f in zip(acceleration, pull, strict=True))
        # Nothing pulls the length back to 1: such a term turns steps of 0.17 s by 1e-3, where the equations above have none.
        return (*velocity, *acceleration, *quaternion_derivative(attitude, rate), *control[1:4])

    def step(self, state: Any, control: Any, duration: Any) -> tuple[Any, ...]:
        """Return the state after one step of the classical Runge-Kutta method of fourth order.

        Args:
            state: 13 components.
            control: Held, 4 components.
            duration: [s]
        """

        def ahead(slope: tuple[Any, ...], share: float) -> tuple[Any, ...]:
            return tuple(x + share * duration * d for x, d in zip(state, slope, strict=True))

        state = tuple(state)
        k1 = self.derivative(state, control)
        k2 = self.derivative(ahead(k1, 0.5), control)
        k3 = self.derivative(ahead(k2, 0.5), control)
        k4 = self.derivative(ahead(k3, 1.0), control)
        return tuple(
            x + duration / 6.0 * (a + 2.0 * b + 2.0 * c + d) for x, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True)
        )

    def advanced(self, state: Any, control: Any, duration: Any, steps: int) -> tuple[Any, ...]:
        """Return the state after equal steps of `step`.

        Args:
            state: 13 components.
            control: Held throughout, 4 components.
            duration: Of all together [s].
            steps: How many.
        """
        state = tuple(state)
        for _ in range(steps):
            state = self.step(state, control, duration / steps)
        return state


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def _rotation(attitude: Any) -> list[list[Any]]:
    """Rows of the rotation, body to world, of a quaternion x y z w of any length."""
    x, y, z, w = attitude
    size = x * x + y * y + z * z + w * w
    rows = [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return [[entry / size for entry in row] for row in rows]
