"""Equations of motion, their parameters and state, traced for kernels."""

from airworthy.dynamics.articulated.batch import ArticulatedBatch
from airworthy.dynamics.rigid import INTEGRATORS
from airworthy.dynamics.semi_kinematic import semi_kinematic_layout, semi_kinematic_state_layout
from airworthy.dynamics.state import Effects, input_layout, padded_rotor_count, rigid_layout, rigid_state_layout

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
