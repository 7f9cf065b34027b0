"""The project's controller between a task's command and the rotors, in the launch of a policy step and in its twin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.control import laws
from airworthy.control.allocation import PRIORITIES
from airworthy.control.collective import irregular
from airworthy.control.effectors import allocation_for
from airworthy.control.gain_parameters import priority_of
from airworthy.control.kernel import LED_LEVELS, TRIMMED_LEVELS, control_column, control_layout
from airworthy.core.arrays import Array, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.dynamics import equations as eq
from airworthy.dynamics.state import padded_rotor_count
from airworthy.learning.environments.traits import TaskTraits
from airworthy.learning.gradient.dynamics import BODY
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.stability import check_law
from airworthy.vehicles import Vehicle, hover_trim, upright

__all__ = ["Controller", "allocation_of", "controller_rows", "has_irregular_rotors", "leans"]

_PER_ROTOR = ("inverse", "collective", "thrust_min", "thrust_max_rotor", "thrust_polynomial", "mixer", "spare_span")
"""Fields that are padded to whole rotors; those that are not there would be traced for nothing."""


def controller_rows(vehicle: Vehicle, traits: TaskTraits, period: float, rows: Array, layout: Layout) -> Array:
    """Return parameter rows whose controller is the task's; the vehicle that it believes in is the one before any draw.

    Args:
        vehicle: As recorded.
        traits: Level and gains.
        period: Between updates of the controller [s].
        rows: (rows,).
        layout: Of them.
    """
    # No controller stands between action and rotors: its rows stay as they are.
    if traits.by_rotor:
        return rows
    count, control = padded_rotor_count(vehicle.rotor_count), traits.control(vehicle)
    column = control_column(vehicle, control, traits.level, period, count)
    whole = np.concatenate([rows[: layout.offsets["control_mass"]], column])
    # The controller runs at each step of physics here, so both rates are one over the period.
    config = SimulatorConfig(level=traits.level, control=control, physics_rate=1.0 / period, control_rate=1.0 / period)
    try:
        check_law(whole, layout, config, vehicle)
    except AirworthyError as error:
        raise AirworthyError(
            # Whoever chose a task did not choose its gains: say what can be done, not only what is wrong.
            f"The gains {control.gains!r} on {vehicle.name} are unstable at {1.0 / period:g} steps of physics a second:"
            ' give the task more `physics_steps`, or gains="auto".'
        ) from error
    return whole


def allocation_of(vehicle: Vehicle, traits: TaskTraits) -> str:
    """Return what is served first where rotors saturate, of `PRIORITIES`; "" where they are only clipped."""
    control = traits.control(vehicle)
    return priority_of(control) if control.allocation == "bounded" else ""


def leans(vehicle: Vehicle, traits: TaskTraits) -> bool:
    """Tell whether hover is not level, so that the law has to steer another frame than the body's."""
    return traits.level in TRIMMED_LEVELS and any(hover_trim(vehicle).attitude[:3])


def has_irregular_rotors(vehicle: Vehicle, traits: TaskTraits) -> bool:
    """Tell whether the bounded allocation has to make use of rotors that are full at different values of the collective."""
    if traits.by_rotor or not allocation_of(vehicle, traits):
        return False
    a = allocation_for(upright(vehicle) if traits.level in TRIMMED_LEVELS else vehicle)
    return not a.spare.scale and bool(irregular(a.collective, a.thrust_min, a.thrust_max))


class Controller:
    """From a command to rotor states, as scalars.

    Args:
        traits: Level and gains.
        rotor_count: Of the vehicle.
        leaning: See `leans`.
        allocation: See `allocation_of`.
        irregular: See `has_irregular_rotors`.
    """

    def __init__(self, traits: TaskTraits, rotor_count: int, leaning: bool, allocation: str, irregular: bool):
        self.level, self.count, self.leaning = traits.level, rotor_count, leaning
        self.bounded, self.irregular = bool(allocation), irregular
        # Where nothing is bounded any of them serves: it is never asked.
        self.priority = next((p for p in PRIORITIES if p == allocation), PRIORITIES[0])
        self.layout = control_layout(padded_rotor_count(rotor_count))

    def record(self, read: Any, first: int) -> SimpleNamespace:
        """Return the record of the laws, over rows that begin with `first`."""
        whole = self.layout.record(lambda row: read(first + row))
        return SimpleNamespace(**{n: v[: self.count] if n in _PER_ROTOR else v for n, v in vars(whole).items()})

    def wrench(self, state: Vector, wanted: Vector, p: Any) -> Vector:
        """Return the force [N] and moment [N m] that the law asks for, body, 6.

        Args:
            state: Of the flight.
            wanted: Command of the level.
            p: Parameters.
        """
        attitude, rate = state[6:10], state[10:BODY]
        # Only then: the turn costs every step, and for a level vehicle it is the identity.
        if self.leaning:
            attitude, rate = laws.trimmed(attitude, rate, p.control)
        force_x, force_y, thrust, moment = laws.geometric_wrench(
            state[:3], state[3:6], attitude, rate, wanted, p.control, self.level
        )
        return (force_x, force_y, thrust, *moment)

    def exact(self, wrench: Vector, p: Any) -> tuple[Vector, Any]:
        """Return thrusts of the pseudo-inverse, and by how much the worst rotor leaves its limits."""
        return laws.exact_thrusts(wrench, p.control)

    def within(self, wrench: Vector, p: Any) -> Vector:
        """Return thrusts by the bounded allocation: those of `exact` where these are within limits."""
        return tuple(laws.bounded_thrusts(wrench, p.control, self.priority, not self.irregular))

    def rotors(self, state: Vector, thrusts: Vector, p: Any) -> Vector:
        """Return rotor states for thrusts, within the rotors' limits.

        Args:
            state: Of the flight.
            thrusts: Of each rotor [N].
            p: Parameters.
        """
        states = laws.rotor_states(thrusts, p.control)
        # The simulator leads the rotors at these levels; a policy must learn on what it will fly with.
        if self.level in LED_LEVELS:
            states = laws.led_states(state[BODY:], states, p.control)
        return tuple(eq.clip_rotors(states, p.rotor_min, p.rotor_max, 1.0))

    def commanded(self, state: Vector, wanted: Vector, p: Any) -> Vector:
        """Return rotor states for a command: what the launch does in parts, as one.

        Args:
            state: Of the flight.
            wanted: Command of the level.
            p: Parameters.
        """
        wrench = self.wrench(state, wanted, p)
        return self.rotors(state, self.within(wrench, p) if self.bounded else self.exact(wrench, p)[0], p)
