"""Drag on links: terminal speed, wind, what joints feel of it, the twin, and what the held vehicle keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small

from airworthy.core.errors import AirworthyError
from airworthy.simulation import Randomization, Simulator, SimulatorConfig, Wind
from airworthy.simulation.jointed.twin import JointedTwin
from airworthy.vehicles import Drag, Vehicle, check
from airworthy.vehicles.links import frozen


def draggy(root: float = 0.3, arm: tuple[float, float, float] = (0.1, 0.2, 0.05)) -> Vehicle:
    craft = small(active=True)
    links = (replace(craft.links[0], drag=(root, root, root)), replace(craft.links[1], drag=arm))
    return check(replace(craft, links=links))


def config(**changes: Any) -> SimulatorConfig:
    return SimulatorConfig(dynamics="articulated", physics_rate=500.0, integrator="midpoint", **changes)


def test_a_falling_vehicle_reaches_its_terminal_speed() -> None:
    """Drag alike along all axes of both links: the whole falls at its weight over it, and drifts with the wind."""
    craft = draggy(0.3, (0.06, 0.06, 0.06))
    simulator = Simulator(craft, config(wind=Wind(mean=(2.0, -1.0, 0.0))), 2)
    simulator.reset(rotor_speed=[0.0])
    for _ in range(800):
        simulator.step([0.0])
    fall = craft.mass * craft.gravity / 0.36
    np.testing.assert_allclose(simulator.center_velocity, [[2.0, -1.0, -fall]] * 2, atol=0.02)


def test_the_step_with_drag_and_gusts_is_the_twins() -> None:
    air = Wind(mean=(1.0, 0.5, 0.2), turbulence=(0.5, 0.5, 0.5))
    simulator = Simulator(draggy(), config(wind=air, randomization=Randomization(drag=0.2, wind=1.0, mass=0.05)), 6)
    simulator.reset(rate=(1.0, -2.0, 0.5), joint_rate=[3.0], velocity=(2.0, 0.0, -1.0))
    twin = JointedTwin(simulator)
    simulator.advance(40, [0.8])
    twin.advance(40, [0.8])
    for name, bound in {"velocity": 2e-5, "rate": 2e-4, "joint": 1e-5, "joint_rate": 3e-4, "wind": 1e-5}.items():
        np.testing.assert_allclose(simulator.field(name), twin.field(name), atol=bound, err_msg=name)
    calm = Simulator(small(active=True), config(), 6)
    calm.reset(rate=(1.0, -2.0, 0.5), joint_rate=[3.0], velocity=(2.0, 0.0, -1.0))
    calm.advance(40, [0.8])
    assert np.abs(calm.field("joint") - simulator.field("joint")).max() > 1e-3
    assert len(np.unique(simulator.field("wind")[:, 0])) == 6


def test_the_held_vehicle_keeps_the_drag_along_its_axes() -> None:
    held = frozen(draggy(0.3, (0.1, 0.1, 0.1)), [0.3])
    assert held.drag.linear == pytest.approx((0.4, 0.4, 0.4))
    assert 0.0 < np.linalg.norm(held.drag.center) < 0.1
    assert frozen(small()).drag == Drag()


def test_what_is_no_drag_is_refused() -> None:
    with pytest.raises(AirworthyError, match="a negative one would drive the link"):
        draggy(-0.1)
    with pytest.raises(AirworthyError, match="Wind without drag of links is not simulated"):
        Simulator(small(), config(wind=Wind(mean=(1.0, 0.0, 0.0))), 1)
    with pytest.raises(AirworthyError, match="or give it to its links"):
        Simulator(replace(small(), drag=Drag(linear=(0.1, 0.1, 0.1))), config(), 1)
