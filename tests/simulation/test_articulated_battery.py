"""Batteries of vehicles with joints: sag as of single bodies, the twin's numbers, and what cannot be simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small

from airworthy.core.errors import AirworthyError
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.jointed.twin import JointedTwin
from airworthy.vehicles import Battery, Rotor, RotorResponse, Vehicle, articulated, frozen, vehicle

BATTERY = Battery(voltage_full=16.8, voltage_empty=14.0, voltage_nominal=16.8, capacity=20.0, resistance=0.5)


def craft(**changes: Any) -> Vehicle:
    """The small vehicle with a rotor whose state is a speed."""
    base = small()
    rotor = Rotor(
        (0.1, 0.0, 0.0), (0.0, 0.0, 1e-5), (0.0, 0.0, 2e-7), 1, RotorResponse.first_order(0.02), 900.0, link="arm"
    )  # fmt: skip
    return replace(articulated("small", list(base.links), [rotor], motor_state="speed"), battery=BATTERY, **changes)


def config(**changes: Any) -> SimulatorConfig:
    return SimulatorConfig(dynamics="articulated", physics_rate=500.0, integrator="midpoint", disturbance=False, **changes)


def test_a_battery_sags_as_its_twins_and_as_a_single_bodys() -> None:
    simulator = Simulator(craft(), config(battery=True), 2)
    rigid = Simulator(frozen(craft(), [0.0]), SimulatorConfig(battery=True, physics_rate=500.0, disturbance=False), 2)
    twin = JointedTwin(simulator)
    command = np.array([[500.0], [900.0]])
    for one in (simulator, rigid, twin):
        one.advance(250, command)
    for name, bound in {"battery_charge": 1e-4, "battery_ratio": 1e-6, "rotor_speed": 2e-3}.items():
        np.testing.assert_allclose(simulator.field(name), twin.field(name), rtol=bound, err_msg=name)
    charge, ratio = simulator.field("battery_charge"), simulator.field("battery_ratio")
    np.testing.assert_allclose(charge, rigid.field("battery_charge"), rtol=1e-3)
    assert np.all(charge > 0.5)
    assert ratio[1] < ratio[0] < 1.0
    # Full speed falls with the voltage.
    assert simulator.rotor_speed[1, 0] == pytest.approx(900.0 * ratio[1], rel=2e-3)


def test_without_one_nothing_sags() -> None:
    bare, full = Simulator(craft(), config(), 1), Simulator(replace(craft(), battery=None), config(battery=True), 1)
    for one in (bare, full):
        one.advance(50, [900.0])
    assert bare.field("position").tobytes() == full.field("position").tobytes()
    assert full.field("battery_ratio")[0] == 1.0


def test_rotors_whose_state_is_a_thrust_draw_no_power() -> None:
    with pytest.raises(AirworthyError, match="state of its rotors is a thrust"):
        Simulator(replace(vehicle("morphy"), battery=BATTERY), config(battery=True), 1)
