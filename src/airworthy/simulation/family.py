"""Families of dynamics behind one interface: what the simulator needs to know of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.control.kernel import LEVELS, control_column
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.layout import Layout
from airworthy.dynamics.semi_kinematic import semi_kinematic_parameters, semi_kinematic_state_layout
from airworthy.dynamics.state import Effects, rigid_state_layout
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.parameters import effects_of, rigid_column
from airworthy.simulation.stability import check_law
from airworthy.simulation.step_kernel import (
    parameter_layout,
    semi_kinematic_kernel,
    semi_kinematic_parameter_layout,
    step_kernel,
)
from airworthy.vehicles.record import Vehicle


@dataclass(frozen=True)
class DynamicsFamily:
    """A family of dynamics: its rows, its kernel, and how vehicles fill it."""

    name: str
    """As in `SimulatorConfig.dynamics`."""
    state_layout: Callable[[int], Layout]
    """State rows for a padded number of rotors."""
    parameter_layout: Callable[[int], Layout]
    """Parameter rows: the vehicle's, then the controller's."""
    kernel: Callable[[int], Any]
    """The Warp kernel."""
    column: Callable[[Vehicle, SimulatorConfig, Layout, int], Array]
    """The vehicle's part of a parameter column, length of the layout, the controller's part zero."""
    effects: Callable[[Array, Layout, SimulatorConfig], Effects]
    """What a batch needs."""
    levels: tuple[str, ...]
    """Control levels it takes."""

    def rows(
        self, vehicles: Sequence[Vehicle], believed: Sequence[Vehicle], config: SimulatorConfig, rotor_count: int
    ) -> Array:
        """Parameter rows of every environment before randomisation, shape (rows, env).

        Args:
            vehicles: One per environment.
            believed: The same as their controllers believe them to be.
            config: Of the simulator.
            rotor_count: Padded number of rotors.
        """
        layout = self.parameter_layout(rotor_count)
        start = layout.offsets["control_mass"]
        # Equal records share a column, also where each environment brought its own copy.
        known: dict[Any, Array] = {}
        seen: dict[tuple[int, int], Array] = {}
        for item, belief in zip(vehicles, believed, strict=True):
            if (id(item), id(belief)) in seen:
                continue
            key = (item, belief, tuple(sorted(belief.extra.items())))
            if key not in known:
                column = self.column(item, config, layout, rotor_count)
                dt = 1.0 / config.physics_rate
                column[start:] = control_column(belief, config.control, config.level, dt, rotor_count)
                if self.name == "rigid":
                    check_law(column, layout, config, item)
                known[key] = column
            seen[id(item), id(belief)] = known[key]
        if len(known) == 1:  # one column for all: no memory per environment
            return np.broadcast_to(next(iter(known.values()))[:, None], (layout.size, len(vehicles)))
        return np.stack([seen[id(a), id(b)] for a, b in zip(vehicles, believed, strict=True)], axis=1)

    def check_level(self, level: str) -> None:
        """Raise where the family does not take commands at a level."""
        if level not in LEVELS:
            raise unknown_name("control level", level, LEVELS)
        if level not in self.levels:
            raise AirworthyError(f"Control level {level!r} does not fit these dynamics; choose {' or '.join(self.levels)}.")


def _semi_kinematic_column(item: Vehicle, config: SimulatorConfig, layout: Layout, rotor_count: int) -> Array:
    column = np.zeros(layout.size)
    body = semi_kinematic_parameters(item, config.rate_limit)
    column[: body.size] = body
    column[layout.rows("noise")] = np.sqrt(config.state_noise_rate / config.physics_rate) * np.asarray(config.state_noise)
    return column


def _semi_kinematic_effects(rows: Array, layout: Layout, config: SimulatorConfig) -> Effects:
    return Effects.WRENCH_NOISE if np.any(rows[layout.rows("noise")] != 0.0) else Effects(0)


FAMILIES = {
    "rigid": DynamicsFamily(
        "rigid", rigid_state_layout, parameter_layout, step_kernel, rigid_column, effects_of, tuple(LEVELS)
    ),
    "semi_kinematic": DynamicsFamily(
        "semi_kinematic",
        lambda rotor_count: semi_kinematic_state_layout(),
        semi_kinematic_parameter_layout,
        semi_kinematic_kernel,
        _semi_kinematic_column,
        _semi_kinematic_effects,
        ("rate_thrust", "tracking"),
    ),
}
"""Families by name; articulated airframes will be one more."""
