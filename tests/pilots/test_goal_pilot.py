"""What flights to a goal ask of a learnt policy that sees: what it has before it flies, and rates that it refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.pilots.goal_pilot import OwnWayPilot, check_rate
from airworthy.simulation import SimulatorConfig


class Held:
    """A pilot without a policy's memory."""

    def __init__(self, policy: Any, goal: Any, speed: Any):
        self.given, self.speed = (policy, goal), speed


class Pilot(OwnWayPilot, Held):
    """One that finds its own way."""

    rate = 10.0


def test_before_it_flies_nobody_has_failed_or_is_over() -> None:
    policy, goal = object(), np.zeros((3, 3))
    pilot = Pilot(policy, goal, np.full(3, 2.0))
    assert pilot.given == (policy, goal)
    assert pilot.causes == ["", "", ""]
    for flags in (pilot.failed, pilot.over):
        assert (flags.dtype, flags.tolist()) == (np.dtype(bool), [False] * 3)
    assert pilot.failed is not pilot.over
    pilot.attach(SimpleNamespace(), None, "front")  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [10.0, 960.0])
def test_any_simulator_that_takes_commands_often_enough_is_taken_as_it_is(rate: float) -> None:
    config = SimulatorConfig(control_rate=rate)
    assert Pilot(None, np.zeros((1, 3)), np.ones(1)).configured(config) is config


def test_commands_more_rarely_than_decisions_are_refused() -> None:
    check_rate(15.0 - 0.95e-6, 15.0)  # a rate that went through a period and back
    check_rate(15.0 - 1e-6, 15.0)
    with pytest.raises(AirworthyError):
        check_rate(15.0 - 1.05e-6, 15.0)
    said = r"^The policy decides at 15 Hz, the simulator takes commands at 14\.9 Hz: raise it\.$"
    with pytest.raises(AirworthyError, match=said):
        check_rate(14.9, 15.0)
    with pytest.raises(AirworthyError, match="decides at 10 Hz, the simulator takes commands at 5 Hz"):
        Pilot(None, np.zeros((1, 3)), np.ones(1)).configured(SimulatorConfig(control_rate=5.0))
