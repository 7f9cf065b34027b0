"""The vehicle as a plan sees it: a rigid body under collective thrust and angular acceleration, and its rotors' limits.

    p' = v,  v' = T/m R(q) e_z - (D/m) |v| v - g e_z,  q' = 1/2 q (w, 0),  w' = alpha

(spec/flightgoggles 4, spec/race 5.4). The rate loop, inverted, gives alpha (`airworthy.race.pilots.rate_inversion`); the
rotors' lag of 20 ms, which the plan leaves out, is for the tracker to lead. Everything here is arithmetic alone, so that the
same lines serve NumPy arrays and a solver's symbols.
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
_UNIT = 0.5
"""Pull of the attitude back to unit length [1/s], which Runge-Kutta steps leave by their error."""


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

    @classmethod
    def of(cls, vehicle: Vehicle) -> RacerModel:
        """Return the model of a vehicle.

        Raises:
            AirworthyError: It has forces or an inertia that the equations leave out.
        """
        inertia, drag = tuple(vehicle.inertia[:3]), vehicle.drag
        others = [np.ravel(x) for x in (drag.linear, drag.quadratic_axis, drag.rotor_speed, vehicle.inertia[3:])]
        if np.any(np.concatenate(others)) or len(set(drag.quadratic_norm)) != 1:
            raise AirworthyError(
                f"The vehicle {vehicle.name!r} has products of inertia or another drag than D |v| v, which plans of races leave"
                " out; expected one like flightgoggles_2019."
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
        )

    @property
    def thrust_max(self) -> float:
        """Collective thrust with all rotors at their limit [N]."""
        return self.rotor_max * len(self.mixer)

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
        stretch = _UNIT * (1.0 - size)
        turning = tuple(d + stretch * a for d, a in zip(quaternion_derivative(attitude, rate), attitude, strict=True))
        return (*velocity, *acceleration, *turning, *control[1:4])

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
