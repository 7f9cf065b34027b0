"""Who decides: pilots map what they may observe to commands at one control level, at their own rate."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.pilots.catalogue import pilot_control, pilot_for, pilot_level, pilot_names, pilot_sensors, policy_word
    from airworthy.pilots.expert import ExpertPilot, ExpertReference, expert_for
    from airworthy.pilots.flight_loop import FlightPlan, FlightRun, fly
    from airworthy.pilots.motor_policy.pilot import MotorPilot, MotorPolicy, motor_observation, motor_pilot, read_motor_policy
    from airworthy.pilots.pilot import Observation, Pilot, observe
    from airworthy.pilots.svnet.contract import read_contract, shipped_policy
    from airworthy.pilots.svnet.pilot import SvNetPilot, policy_camera, svnet_pilot
    from airworthy.pilots.task_policy.pilot import TaskPilot, TaskPolicy, read_task_policy, task_pilot
    from airworthy.pilots.trackers import TrackerPilot, tracker
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ExpertPilot", "ExpertReference", "FlightPlan", "FlightRun", "MotorPilot", "MotorPolicy", "Observation", "Pilot",
    "SvNetPilot", "TaskPilot", "TaskPolicy", "TrackerPilot", "expert_for", "fly", "motor_observation", "motor_pilot",
    "observe", "pilot_control", "pilot_for", "pilot_level", "pilot_names", "pilot_sensors", "policy_camera", "policy_word",
    "read_contract", "read_motor_policy", "read_task_policy", "shipped_policy", "svnet_pilot", "task_pilot", "tracker",
]  # fmt: skip
