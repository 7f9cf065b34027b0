"""Equations of motion, their parameters and state, traced for kernels."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.dynamics.articulated.batch import ArticulatedBatch
    from airworthy.dynamics.rigid import INTEGRATORS
    from airworthy.dynamics.semi_kinematic import semi_kinematic_layout, semi_kinematic_state_layout
    from airworthy.dynamics.state import Effects, input_layout, padded_rotor_count, rigid_layout, rigid_state_layout
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "INTEGRATORS",
    "ArticulatedBatch",
    "Effects",
    "input_layout",
    "padded_rotor_count",
    "rigid_layout",
    "rigid_state_layout",
    "semi_kinematic_layout",
    "semi_kinematic_state_layout",
]
