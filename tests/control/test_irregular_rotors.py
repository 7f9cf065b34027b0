"""Irregular airframes without rotors to spare: every order against lexicographic linear programs; regular ones keep their bits.

On arms of different lengths, or with rotors of different strengths, one rotor is full before the others as the collective
grows. A moment that takes thrust from it makes room for more force.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.control.test_priority_gap import RACER, multirotor, saturated
from tests.control.test_spare_rotors import irregular, lexicographic, shares_of

from airworthy.control import PRIORITIES, allocate_bounded, allocation_for
from airworthy.control import collective as limits_of
from airworthy.control.allocation import Priority
from airworthy.control.effectors import working_effectiveness
from airworthy.control.levels import ControlConfig
from airworthy.dynamics import Effects
from airworthy.learning.environments import LearningTask, learning_task
from airworthy.learning.environments.conditions import FlightConditions
from airworthy.learning.environments.nominal import shape_of
from airworthy.learning.environments.tasks import PositionByAttitude
from airworthy.simulation import Randomization, Simulator, SimulatorConfig
from airworthy.simulation.twin import Twin
from airworthy.vehicles import Vehicle, thrust_limits, vehicle, vehicle_names


def varied(body: Vehicle, name: str, factors: tuple[float, ...]) -> Vehicle:
    """Polynomials `thrust` or `torque` of each rotor, times a factor of its own."""
    rotors = [
        replace(rotor, **{name: tuple(factor * c for c in getattr(rotor, name))})
        for rotor, factor in zip(body.rotors, factors, strict=True)
    ]
    return replace(body, rotors=tuple(rotors))


def turning(body: Vehicle, least: float) -> Vehicle:
    """Rotors whose least speed is a share of the largest."""
    return replace(body, rotors=tuple(replace(rotor, speed_min=least * rotor.speed_max) for rotor in body.rotors))


def without_collective() -> Vehicle:
    """One arm is so short that rotors which balance the others' moments would have to pull down."""
    places = ((0.2, 0.2, 0.0), (0.25, -0.15, 0.0), (-0.03, -0.25, 0.0), (0.1, 0.3, 0.0))
    rotors = (replace(rotor, position=p) for rotor, p in zip(RACER.rotors, places, strict=True))
    return replace(RACER, rotors=tuple(rotors))


FOUR = irregular(4, 0.0, 2)
AIRFRAMES: dict[str, tuple[Vehicle, int]] = {
    "arms": (FOUR, 120),
    "arms, nearly regular": (irregular(4, 0.0, 0), 60),
    "arms, far out": (irregular(4, 0.0, 5), 120),
    "arms and tilts": (irregular(4, 0.2, 3), 120),
    "arms and steep tilts": (irregular(4, 0.5, 1), 100),
    "torque constants": (varied(FOUR, "torque", (0.7, 1.3, 1.1, 0.8)), 100),
    "thrust constants": (varied(multirotor(4), "thrust", (0.7, 1.3, 1.1, 0.8)), 100),
    "rotors that never stand": (turning(FOUR, 0.3), 100),
    "reversible rotors": (turning(FOUR, -1.0), 100),
    "without a collective": (without_collective(), 60),
    "six tilted rotors": (irregular(6, 0.3, 3), 60),
}
"""Airframe and its saturated wrenches in each order: 1,040 in all."""


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("name", AIRFRAMES)
def test_every_group_in_its_turn_gets_what_linear_programs_give(name: str, priority: Priority) -> None:
    body, count = AIRFRAMES[name]
    wrenches, (lower, upper) = saturated(body, count), thrust_limits(body)
    thrusts = np.array(allocate_bounded(tuple(wrenches), allocation_for(body), priority))
    assert np.all((thrusts >= lower[:, None]) & (thrusts <= upper[:, None]))
    ours = shares_of(body, wrenches, working_effectiveness(body) @ thrusts)
    # A group that can hardly be given magnifies the programs' slack in what those before it keep.
    assert np.abs(ours - lexicographic(body, wrenches, priority)).max() < 1e-5


def test_which_airframes_are_irregular() -> None:
    def found(body: Vehicle) -> bool:
        a = allocation_for(body, 8)
        return bool(limits_of.irregular(a.collective, a.thrust_min, a.thrust_max))

    for name, (body, _) in AIRFRAMES.items():
        assert found(body) == (name != "without a collective"), name
    assert not any(found(vehicle(name)) for name in vehicle_names())
    assert not found(multirotor(4))


@pytest.mark.parametrize("priority", PRIORITIES)
def test_regular_airframes_have_the_bits_of_kernels_that_leave_it_out(priority: Priority) -> None:
    for name in ("lmf2", "x500", "cf2x_L250", "real_01", "flightgoggles"):
        body = vehicle(name)
        wrenches, a = tuple(saturated(body, 400)), allocation_for(body)
        general = allocate_bounded(wrenches, a, priority)
        assert np.array_equal(general, allocate_bounded(wrenches, a, priority, regular=True))


def commanded(bodies: list[Vehicle], wrenches: np.ndarray, priority: Priority) -> tuple[np.ndarray, np.ndarray, Effects]:
    """Rotor commands of the compiled step and of its twin, (vehicle, rotor), of one wrench each, and what a launch computes."""
    simulator = Simulator(bodies, SimulatorConfig(level="wrench", control=ControlConfig(priority=priority)))
    simulator.reset()
    twin = Twin(simulator)
    command = wrenches.T.astype(np.float32)
    simulator.advance(1, command)
    twin.advance(1, command)
    return np.array(simulator.field("rotor_command"), float), np.array(twin.field("rotor_command")), simulator.effects


@pytest.mark.parametrize("priority", PRIORITIES)
def test_the_step_asks_irregular_airframes_alone(priority: Priority) -> None:
    """Compiled thrusts are those of float64; beside irregular airframes regular ones get the bits that they get alone."""
    odd, even = [AIRFRAMES[name][0] for name in ("arms", "arms, far out", "thrust constants")], [vehicle("lmf2")]
    count = 40
    wrenches = [saturated(body, count) for body in (*odd, *even)]
    both, twin, effects = commanded([b for b in (*odd, *even) for _ in range(count)], np.hstack(wrenches), priority)
    alone, _, regular = commanded(even * count, wrenches[-1], priority)
    assert np.array_equal(both[-count:], alone)
    assert (Effects.IRREGULAR in effects) == (not priority.startswith("force"))
    assert Effects.IRREGULAR not in regular
    # Thrusts are squares of these rotors' speeds.
    full = np.repeat([max(r.speed_max for r in body.rotors) for body in (*odd, *even)], count)[:, None]
    assert np.abs((both / full) ** 2 - (twin / full) ** 2).max() < 1e-5


def test_parameters_that_make_an_airframe_irregular_say_so() -> None:
    simulator = Simulator(vehicle("lmf2"), SimulatorConfig(level="wrench"))
    assert Effects.IRREGULAR not in simulator.effects
    limit = simulator.parameter("control_thrust_max_rotor").copy()
    limit[..., 0] *= 0.8
    simulator.set_parameter("control_thrust_max_rotor", limit)
    assert Effects.IRREGULAR in simulator.effects


def test_environments_of_learning_ask_irregular_airframes_alone() -> None:
    def asks(task: LearningTask, body: Vehicle) -> bool:
        return shape_of(task, [body], Randomization(), 1.0, FlightConditions())[0].controller.irregular

    regular = vehicle("lmf2")
    assert [asks(PositionByAttitude(), body) for body in (FOUR, regular)] == [True, False]
    # By rotor nothing is allocated.
    assert not asks(learning_task("l2f_position"), FOUR)
    assert asks(PositionByAttitude(), vehicle("base_octarotor")) is False


@pytest.mark.parametrize("width", [6, 8])
def test_four_irregular_rotors_in_a_kernel_for_more_get_the_bits_that_they_get_alone(width: int) -> None:
    wrenches = tuple(saturated(FOUR, 200))
    for priority in PRIORITIES:
        alone = np.array(allocate_bounded(wrenches, allocation_for(FOUR), priority))
        padded = np.array(allocate_bounded(wrenches, allocation_for(FOUR, width), priority))
        assert np.array_equal(padded[:4], alone)
        assert not padded[4:].any()
