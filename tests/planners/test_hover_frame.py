"""Pilots that command thrust and rates, or rotors, fly a vehicle that hovers leaning as they fly a level one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.frames import multiply, rotate
from airworthy.pilots.pilot import observe
from airworthy.pilots.trackers import HoverFrame
from airworthy.planners.common.interface import Mission
from airworthy.planners.common.tracking import PlannerPilot
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Disturbance, Vehicle, WrenchNoise, hover_trim, vehicle, write_vehicle
from compare_controllers import StepPlanner


def tilted(name: str, degrees: float) -> Vehicle:
    """A vehicle whose rotors are all tilted alike, without noise."""
    airframe, t = vehicle(name), math.radians(degrees)
    rotors = tuple(replace(r, axis=(math.sin(t), 0.0, math.cos(t))) for r in airframe.rotors)
    return replace(airframe, rotors=rotors, wrench_noise=WrenchNoise(), disturbance=Disturbance())


def test_the_frame_is_level_in_hover_and_commands_come_back_to_the_body() -> None:
    crafts = [tilted("flightgoggles", 0.0), tilted("flightgoggles", 20.0)]
    frame = HoverFrame(crafts)
    hover = np.array([hover_trim(airframe).attitude for airframe in crafts])
    turned = multiply(np.array([0.0, 0.0, math.sin(0.4), math.cos(0.4)]), hover)
    level = frame.attitude(turned)
    np.testing.assert_allclose(rotate(level, np.array([0.0, 0.0, 1.0])), [[0.0, 0.0, 1.0]] * 2, atol=1e-12)
    rates = np.array([[0.3, -0.2, 0.9]] * 2)
    np.testing.assert_allclose(rotate(level, frame.rate(rates)), rotate(turned, rates), atol=1e-12)
    command = frame.to_body(np.concatenate([[[10.0], [10.0]], frame.rate(rates)], axis=1))
    np.testing.assert_allclose(command[:, 1:], rates, atol=1e-12)
    # Thrust along body z of rotors that push with 10 N along their common axis.
    np.testing.assert_allclose(command[:, 0], [10.0, 10.0 * math.cos(math.radians(20.0))], rtol=1e-12)


def test_where_none_leans_nothing_changes() -> None:
    frame = HoverFrame([tilted("flightgoggles", 0.0)])
    numbers = np.array([[0.1, 0.2, 0.3, 0.9]])
    assert not frame.leans
    assert frame.attitude(numbers) is numbers
    assert frame.to_body(numbers) is numbers


@pytest.mark.parametrize("controller", ["dfbc_indi", "rate_command", "so3"])
def test_planners_controllers_reach_their_goal_leaning(controller: str) -> None:
    """A step of a metre, by one vehicle with level rotors and one whose rotors are tilted by 3 degrees.

    Steered by the body instead, a lean of 3 degrees is g tan(3 deg) = 0.5 m/s^2 that position gains of 4 to 10 / s^2 hold with
    5 to 13 cm of error.
    """
    crafts = [tilted("flightgoggles", 0.0), tilted("flightgoggles", 3.0)]
    start, goal = np.tile([0.0, 0.0, 2.0], (2, 1)), np.tile([20.0, 0.0, 2.0], (2, 1))
    box = np.full((2, 3), -100.0), np.full((2, 3), 100.0)
    mission = Mission(start, goal, np.full(2, 4.0), np.full(2, 6.0), *box, np.arange(2))
    pilot = PlannerPilot(StepPlanner(), mission, crafts, controller=controller)
    simulator = Simulator(crafts, pilot.configured(SimulatorConfig(physics_rate=480.0)))
    simulator.reset(position=start)
    pilot.attach(simulator)
    for _ in range(round(4.0 * simulator.config.control_rate)):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
    assert np.linalg.norm(simulator.position - [1.0, 0.0, 2.0], axis=1).max() < 5e-3


@pytest.mark.parametrize(("pilot", "name"), [("mpc", "flightgoggles"), ("crazyflie", "cf2x_L250")])
def test_the_expert_and_the_firmware_fly_a_course_leaning(pilot: str, name: str, tmp_path: Path) -> None:
    errors = []
    for degrees in (0.0, 3.0):
        write_vehicle(tilted(name, degrees), tmp_path / "airframe.toml")
        out = tmp_path / f"{degrees:g}"
        arguments = ["--vehicle", str(tmp_path / "airframe.toml"), "--course", "line", "--pilot", pilot, "--no-report"]
        assert main(["fly", *arguments, "--out", str(out)]) == 0
        (flight,) = json.loads((out / "summary.json").read_text())["flights"]
        assert flight["outcome"] == "success"
        errors.append(flight["tracking_error_m"])
    assert errors[1] < 1.1 * errors[0]
