"""Control laws as equations, allocation to rotors, and gains for any airframe.

The laws are plain functions of scalars (see `airworthy.core.ops`): they run on NumPy arrays and are traced into kernels.
They keep no state; filters and integrals are arguments and results. Their parameters are the controller's own copy of the
vehicle, so model error can be studied.
"""

from typing import TYPE_CHECKING

from airworthy.control.allocation import (
    PRIORITIES,
    Allocation,
    Priority,
    allocate_bounded,
    allocate_pseudo_inverse,
    rotor_lead,
    speed_for_thrust,
)
from airworthy.control.effectors import allocation_for, collective_direction, pseudo_inverse, working_effectiveness
from airworthy.control.gain_sets import GainSet, gain_set, gain_set_names
from airworthy.control.gains_for import (
    Bandwidth,
    bandwidth,
    default_gains,
    geometric_parameters,
    rate_loop_parameters,
    rotor_lag,
)
from airworthy.control.geometric import BodyState, GeometricCommand, GeometricParameters, geometric_control, pose_control
from airworthy.control.levels import (
    LEVELS,
    MODES,
    ControlConfig,
    Mode,
    Reference,
    collective_from_normalized,
    command_fields,
    normalized_from_collective,
    reference_from_command,
)
from airworthy.control.mellinger import (
    MellingerParameters,
    MellingerState,
    mellinger_control,
    motor_commands,
    reference_rates,
    speed_of_command,
    thrust_of_command,
)
from airworthy.control.mellinger_gains import hover_integral, mellinger_for, mellinger_parameters, mixer_for, si_gains
from airworthy.control.rate_loop import (
    FilterCoefficients,
    RateLoopParameters,
    RateLoopState,
    WaypointParameters,
    backward_euler_coefficients,
    exact_coefficients,
    low_pass,
    low_pass_constants,
    rate_loop,
    waypoint_control,
)
from airworthy.core.faces import lazy_names
from airworthy.vehicles import thrust_limits

if TYPE_CHECKING:
    from airworthy.control.mpc import MpcConfig, MpcReference, MpcSolver
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "LEVELS", "MODES", "PRIORITIES", "Allocation", "Bandwidth", "BodyState", "ControlConfig", "FilterCoefficients", "GainSet",
    "GeometricCommand", "GeometricParameters", "MellingerParameters", "MellingerState", "Mode", "MpcConfig", "MpcReference",
    "MpcSolver", "Priority", "RateLoopParameters", "RateLoopState", "Reference", "WaypointParameters", "allocate_bounded",
    "allocate_pseudo_inverse", "allocation_for", "backward_euler_coefficients", "bandwidth", "collective_direction",
    "collective_from_normalized", "command_fields", "default_gains", "exact_coefficients", "gain_set", "gain_set_names",
    "geometric_control", "geometric_parameters", "hover_integral", "low_pass", "low_pass_constants", "mellinger_control",
    "mellinger_for", "mellinger_parameters", "mixer_for", "motor_commands", "normalized_from_collective", "pose_control",
    "pseudo_inverse", "rate_loop", "rate_loop_parameters", "reference_from_command", "reference_rates", "rotor_lag",
    "rotor_lead", "si_gains", "speed_for_thrust", "speed_of_command", "thrust_limits", "thrust_of_command", "waypoint_control",
    "working_effectiveness",
]  # fmt: skip
