"""Learning by gradient: the cost of a flight derived by the weights of its policy, through vehicle and network at once."""

from airworthy.learning.gradient.dynamics import Form, Surrogate, surrogate_of, vehicle_step
from airworthy.learning.gradient.hover import HoverCost, HoverStart, hover_start
from airworthy.learning.gradient.kernel import HIDDEN_SIZES, FlightWindow, WindowShape
from airworthy.learning.gradient.policy import write_motor_policy
from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining, network_action

__all__ = [
    "HIDDEN_SIZES",
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
