"""The commonest wrong uses of the simulator: one sentence each, in stable words, that says how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.simulation.config import Imu, SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import hover_speed, vehicle

QUAD = vehicle("flightgoggles")


def quad(count: int = 3, **config: Any) -> Simulator:
    return Simulator(QUAD, SimulatorConfig(**config), env_count=count)


def wide() -> Simulator:
    return Simulator(replace(QUAD, name="many", rotors=QUAD.rotors * 5))


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a name for a vehicle": (
        lambda: Simulator("lmf2"),  # type: ignore[arg-type]
        "`vehicles` is the name 'lmf2'; look the vehicle up first: vehicle('lmf2').",
    ),
    "names for vehicles": (
        lambda: Simulator(["lmf2", "carl"]),  # type: ignore[list-item]
        "`vehicles` holds 'lmf2'; expected Vehicle records, such as vehicle('lmf2').",
    ),
    "no vehicle": (lambda: Simulator([]), "`vehicles` is empty; give at least one vehicle."),
    "something else for a vehicle": (
        lambda: Simulator(3),  # type: ignore[arg-type]
        "`vehicles` is a int; expected a Vehicle or a list of them.",
    ),
    "two counts": (
        lambda: Simulator([QUAD, QUAD], env_count=3),
        "`vehicles` has 2 entries but env_count is 3; leave env_count out.",
    ),
    "no environments": (
        lambda: Simulator(QUAD, env_count=0),
        "env_count is 0; expected a whole number of at least 1.",
    ),
    "half an environment": (
        lambda: Simulator(QUAD, env_count=2.5),  # type: ignore[arg-type]
        "env_count is 2.5; expected a whole number of at least 1.",
    ),
    "a dictionary for a configuration": (
        lambda: Simulator(QUAD, {"level": "position"}),  # type: ignore[arg-type]
        "Simulator got a dict as config; expected a SimulatorConfig(...).",
    ),
    "an unknown level": (
        lambda: quad(level="postion"),
        "Unknown control level 'postion'. Closest: 'position', 'pose'. Known: acceleration, attitude_thrust, pose, position",
    ),
    "an unknown integrator": (
        lambda: quad(integrator="rk45"),
        "Unknown integrator 'rk45'. Closest: 'rk4'. Known: euler, extrapolated, midpoint, rk4, semi_implicit.",
    ),
    "control faster than physics": (
        lambda: quad(physics_rate=100.0, control_rate=200.0),
        "control_rate is 200.0 Hz; expected more than 0 and at most physics_rate (100.0 Hz).",
    ),
    "no physics": (
        lambda: quad(physics_rate=0.0),
        "physics_rate is 0 Hz; expected 1 to 100000.",
    ),
    "a device that is not there": (
        lambda: Simulator(QUAD, device="cuda:7"),
        "Device 'cuda:7' is not on this machine, which has",
    ),
    "flight ids of the wrong shape": (
        lambda: Simulator(QUAD, env_count=3, flight_ids=[1, 2]),
        "flight_ids has shape (2,); expected (3,) whole numbers from 0 to 2^32 - 1.",
    ),
    "negative flight ids": (
        lambda: Simulator(QUAD, env_count=2, flight_ids=[1, -2]),
        "flight_ids has shape (2,); expected (2,) whole numbers from 0 to 2^32 - 1.",
    ),
    "twenty rotors": (wide, "A vehicle has 20 rotors; at most 16 are supported."),
    "a belief of another kind": (
        lambda: Simulator(QUAD, believed=vehicle("base_octarotor")),
        "`believed` takes flightgoggles (4 rotors) for base_octarotor (8 rotors); the numbers of rotors must agree.",
    ),
    "a command of the wrong width": (
        lambda: quad(level="position").step([0.0, 0.0, 1.0]),
        "A command at level 'position' has shape (3,); expected (3, 4) or (4,): position_x, position_y, position_z, yaw.",
    ),
    "a command for another batch": (
        lambda: quad().step(np.zeros((4, 4))),
        "A command at level 'rotor_speed' has shape (4, 4); expected (3, 4) or (4,): rotor_speed_0, rotor_speed_1",
    ),
    "a ragged command": (
        lambda: quad().step([[1.0, 2.0], [3.0]]),
        "A command at level 'rotor_speed' must be numbers of shape (3, 4) or (4,).",
    ),
    "a command of words": (
        lambda: quad().step(["fast"] * 4),
        "A command at level 'rotor_speed' must be numbers of shape (3, 4) or (4,).",
    ),
    "no steps": (lambda: quad().advance(0), "steps is 0; expected a whole number of at least 1."),
    "an unknown field": (
        lambda: quad().field("velocty"),
        "Unknown state field 'velocty'. Closest: 'velocity'. Known: acceleration, accelerometer_bias, attitude",
    ),
    "an unknown parameter": (
        lambda: quad().set_parameter("mas", 2.0),
        "Unknown parameter 'mas'. Closest: 'mass'",
    ),
    "a parameter of the wrong shape": (
        lambda: quad().set_parameter("wind", [1.0, 2.0]),
        "Parameter 'wind' got shape (2,); expected (3, 3) or (3,).",
    ),
    "an IMU that was not asked for": (
        lambda: quad().imu,
        "This simulator has no IMU; build it with SimulatorConfig(imu=Imu(...)).",
    ),
    "a log of an IMU that was not asked for": (
        lambda: quad().advance(2, imu_log=True),
        "This simulator has no IMU; build it with SimulatorConfig(imu=Imu(...)).",
    ),
    "an IMU without orientation": (
        lambda: quad(imu=Imu(orientation=(0.0, 0.0, 0.0, 0.0))),
        "An IMU's orientation is (0.0, 0.0, 0.0, 0.0); expected a quaternion x, y, z, w.",
    ),
    "reset of an environment that does not exist": (
        lambda: quad().reset(env_ids=[3]),
        "Reset got environment ids outside 0..2.",
    ),
    "a mask of the wrong length": (
        lambda: quad().reset(env_ids=[True, False]),
        "A reset mask has shape (2,); expected (3,).",
    ),
    "a position of the wrong shape": (
        lambda: quad().reset(position=[1.0, 2.0]),
        "Reset got position of shape (2,); expected (3, 3) or (3,).",
    ),
    "Euler angles for an attitude": (
        lambda: quad().reset(attitude=[0.0, 0.1, 0.2]),
        "Reset got attitude of shape (3,); expected (3, 4) or (4,).",
    ),
    "an attitude of zero length": (
        lambda: quad().reset(attitude=[0.0] * 4),
        "Reset got an attitude of zero length or not a number; expected quaternions x, y, z, w.",
    ),
    "a start that is not a number": (
        lambda: quad().reset(velocity=[0.0, np.nan, 0.0]),
        "Reset got a velocity that is not finite; a flight has to start from numbers.",
    ),
    "external forces of the wrong shape": (
        lambda: quad().set_external([1.0, 2.0]),
        "External force has shape (2,); expected (3, 3) or (3,).",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str) -> None:
    act, message = MISTAKES[name]
    with pytest.raises(AirworthyError) as caught:
        act()
    text = str(caught.value)
    assert text.startswith(message)
    assert "\n" not in text


def test_a_refused_reset_changes_nothing() -> None:
    simulator = quad(level="rotor_speed")
    simulator.step([1150.0] * 4)
    before = (simulator.position.copy(), simulator.episode.copy(), simulator.step_count, simulator._starts.position.copy())
    for bad in ({"position": [1.0]}, {"attitude": [0.0] * 4, "position": (5.0, 5.0, 5.0)}):
        with pytest.raises(AirworthyError):
            simulator.reset(**bad)  # type: ignore[arg-type]
    after = (simulator.position, simulator.episode, simulator.step_count, simulator._starts.position)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_start_beyond_the_limits_of_a_rotor_is_refused() -> None:
    airframe = vehicle("flightgoggles")
    most = airframe.rotors[0].speed_max
    simulator = Simulator(airframe, env_count=2)
    for allowed in (most, 0.0, hover_speed(airframe)):
        simulator.reset(rotor_speed=np.broadcast_to(allowed, (4,)))
    with pytest.raises(AirworthyError, match=rf"Reset got {1.01 * most:.5g} for rotor 2, whose states go from "):
        simulator.reset(rotor_speed=[most, most, 1.01 * most, most])
    with pytest.raises(AirworthyError, match="Reset got -1 for rotor 0, whose states go from "):
        simulator.reset(rotor_speed=[-1.0, 0.0, 0.0, 0.0])
