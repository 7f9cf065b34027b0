"""A vehicle that stands leaves the ground once its rotors carry more than its weight, also where they push unevenly."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.dynamics import contact
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Box, Placement
from airworthy.simulation import Contact, Ground, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle
from airworthy.vehicles.trim import rotor_state_for_thrust

X500 = vehicle("x500")
RATE = 250.0


def risen(uneven: float, begin: float = 0.0, slope: float = 0.295, seconds: float = 4.0, table: bool = False) -> float:
    """Height won by a thrust that grows from below the weight, more of it on the left [m]; off a scene's table or the plane."""
    box = GeometryBatch([Box((9.0, 9.0, 1.0))], [Placement.of([0], [(0.0, 0.0, -1.0)])], [0]) if table else None
    met = {"contact": Contact("respond")} if table else {"ground": Ground()}
    flown = SimulatorConfig(physics_rate=1000.0, control_rate=RATE, **met)  # type: ignore[arg-type]
    simulator = Simulator(X500, flown, env_count=1, geometry=box)
    feet = X500.body.size[2] - X500.body.center[2] + X500.center_of_mass[2]
    simulator.reset(position=(0.0, 0.0, feet + 1e-4 * table), rotor_speed=np.zeros(4))
    side = np.sign([rotor.position[1] for rotor in X500.rotors])
    weight = X500.mass * 9.81 / 4.0
    for step in range(round(seconds * RATE)):
        wanted = weight * (begin + slope * step / RATE) * (1.0 + uneven * side)
        simulator.step(np.array([[rotor_state_for_thrust(r, t) for r, t in zip(X500.rotors, wanted, strict=True)]]))
    return float(simulator.position[0, 2]) - feet


def test_uneven_rotors_lift_it_as_soon_as_even_ones() -> None:
    """A corner turned into the ground, and its way out cost all motion: PX4 pushed with 2.7 times the weight, and stood."""
    even = risen(0.0)
    assert even > 0.02
    assert risen(0.02) == pytest.approx(even, rel=0.2)


@pytest.mark.parametrize("uneven", [0.0, 0.02, 0.1])
def test_it_leaves_a_table_of_a_scene_as_it_leaves_the_ground(uneven: float) -> None:
    """Contact with a scene pays for lifts, too, but its sweeps stop a corner before it is deep in what it turns into."""
    assert risen(uneven, table=True) == pytest.approx(risen(uneven), rel=0.02)


def test_a_lift_is_paid_by_what_the_rotors_do_not_do() -> None:
    class Parameters:
        gravity = 10.0

    up = (0.0, 0.0, 1.0)
    found = [contact.unpaid_lift(2e-3, (3.0, 4.0, force), up, Parameters()) for force in (0.0, 4.0, 10.0, 15.0, -5.0)]
    assert found == pytest.approx([2e-3, 1.2e-3, 0.0, 0.0, 3e-3])
