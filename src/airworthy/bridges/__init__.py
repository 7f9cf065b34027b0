"""Programs outside: autopilots and other pilots, nodes of ROS 2, vehicles that are tracked; and links, clocks, motor maps."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.bridges.ardupilot import ArduPilotPilot
    from airworthy.bridges.betaflight import BetaflightPilot, Sticks
    from airworthy.bridges.clock import LinkClock
    from airworthy.bridges.external_pilot import ExternalPilot, LinkSettings
    from airworthy.bridges.loop.session import LoopConfig, LoopResult, serve_poses
    from airworthy.bridges.motors import AutopilotMotors, motor_map
    from airworthy.bridges.px4 import Px4Pilot
    from airworthy.bridges.replay.job import LogRenderConfig, LogRendered, render_log
    from airworthy.bridges.sockets import AutopilotFailure
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ArduPilotPilot", "AutopilotFailure", "AutopilotMotors", "BetaflightPilot", "ExternalPilot", "LinkClock", "LinkSettings",
    "LogRenderConfig", "LogRendered", "LoopConfig", "LoopResult", "Px4Pilot", "Sticks", "motor_map", "render_log",
    "serve_poses",
]  # fmt: skip
