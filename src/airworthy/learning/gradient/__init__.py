"""Learning by gradient: the cost of a flight derived by the weights of its policy, through vehicle and network at once."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.gradient.differentiable import DifferentiableSimulator
    from airworthy.learning.gradient.dynamics import Form, Surrogate, surrogate_of, vehicle_step
    from airworthy.learning.gradient.hover import HoverCost, HoverStart, hover_start
    from airworthy.learning.gradient.kernel import HIDDEN_SIZES, FlightWindow, WindowShape
    from airworthy.learning.gradient.policy import write_motor_policy
    from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining, network_action
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "HIDDEN_SIZES",
    "DifferentiableSimulator",
    "FlightWindow",
    "Form",
    "GradientOptions",
    "GradientTraining",
    "HoverCost",
    "HoverStart",
    "Surrogate",
    "WindowShape",
    "hover_start",
    "network_action",
    "surrogate_of",
    "vehicle_step",
    "write_motor_policy",
]  # fmt: skip
