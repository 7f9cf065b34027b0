"""What flights to a goal ask of a learnt policy that finds its own way by a camera of its own; mixed into its pilot."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.simulator import Simulator

__all__ = ["OwnWayPilot", "check_rate"]


class OwnWayPilot:
    """A pilot, as `airworthy fly` asks whoever finds its own way.

    Args:
        policy: Decides.
        goal: World [m], (env, 3).
        speed: Cap, (env,) [m/s].
        more: What else the pilot takes.
    """

    rate: float
    """At which it decides [Hz]."""
    speed: Array
    """Cap, (env,) [m/s]."""

    def __init__(self, policy: Any, goal: Array, speed: Array, *more: Any):
        super().__init__(policy, goal, speed, *more)  # type: ignore[call-arg]
        count = len(self.speed)
        self.causes, self.failed, self.over = [""] * count, np.zeros(count, bool), np.zeros(count, bool)

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return the simulator that it needs: any that takes commands often enough."""
        check_rate(config.control_rate, self.rate)
        return config

    def attach(self, simulator: Simulator, mounted: MountedSensors | None, name: str) -> None:
        """Prepare nothing.

        Args:
            simulator: Not kept.
            mounted: Not kept.
            name: Not read: it has a camera of its own.
        """


def check_rate(rate: float, decides: float) -> None:
    """Refuse a simulator that takes commands more rarely than a policy decides.

    Args:
        rate: Of commands [Hz].
        decides: Of decisions [Hz].

    Raises:
        AirworthyError: It does.
    """
    if rate < decides - 1e-6:
        raise AirworthyError(f"The policy decides at {decides:g} Hz, the simulator takes commands at {rate:g} Hz: raise it.")
