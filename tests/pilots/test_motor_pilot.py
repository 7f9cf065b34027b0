"""A learnt motor policy in flight: what it sees, when it decides, what it remembers, and that it holds its place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots.motor_cases import contract, held, learnt, policy, weights

from airworthy.benchmarks import FlyConfig, refly, run_fly
from airworthy.benchmarks.tracking.methods import method_of
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.frames import from_euler, multiply, rotate
from airworthy.learning.gradient import network_action, write_motor_policy
from airworthy.learning.gradient.hover import hover_observation
from airworthy.pilots import (
    FlightPlan,
    MotorPilot,
    Observation,
    fly,
    motor_observation,
    motor_pilot,
    pilot_for,
    pilot_level,
    pilot_names,
    pilot_sensors,
    policy_word,
    read_motor_policy,
)
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.trajectories import course
from airworthy.vehicles import vehicle


def simulator(count: int = 4, name: str = "tinyprop", **config: Any) -> Simulator:
    chosen: dict[str, Any] = {"level": "rotor_speed", "physics_rate": 1000.0, "control_rate": 100.0, **config}
    return Simulator(vehicle(name), SimulatorConfig(**chosen), count)


def states(count: int, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    attitude = rng.normal(size=(count, 4))
    return {
        "position": rng.normal(size=(count, 3)),
        "velocity": rng.normal(size=(count, 3)),
        "attitude": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "rate": rng.normal(size=(count, 3)),
    }


def seen(time: float, fields: dict[str, Array]) -> Observation:
    return Observation(np.full(len(fields["position"]), time), fields)


# ---- what it sees and gives ------------------------------------------------------------------------------------------


def test_it_sees_what_it_learnt_to_see() -> None:
    """The task's own observation, at a target in the origin that looks along x."""
    x = states(20)
    rows = np.concatenate(list(x.values()), axis=1).T
    wanted = np.array(np.broadcast_arrays(*hover_observation(tuple(rows))))
    found = motor_observation(x["position"], x["velocity"], x["attitude"], x["rate"], np.zeros(20))
    np.testing.assert_allclose(found, wanted.T, atol=1e-15)


def test_a_turned_world_looks_the_same() -> None:
    """State and target turned about the vertical together."""
    x, yaw = states(20), np.linspace(-3.0, 3.0, 20)
    plain = motor_observation(x["position"], x["velocity"], x["attitude"], x["rate"], np.zeros(20))
    turn = from_euler(np.zeros(20), np.zeros(20), yaw)
    turned = motor_observation(
        rotate(turn, x["position"]), rotate(turn, x["velocity"]), multiply(turn, x["attitude"]), x["rate"], yaw
    )
    np.testing.assert_allclose(turned, plain, atol=1e-14)


def test_the_network_is_the_trainers() -> None:
    made = policy(history=2)
    x = np.random.default_rng(1).normal(size=(200, 26))
    twin = network_action([np.asarray(w, float) for w in made.weights], x)
    np.testing.assert_allclose(made.action(x), twin, rtol=0.0, atol=2e-6)  # float32 sums of 26 terms
    with pytest.raises(AirworthyError, match=r"shape \(26,\); expected \(env, 26\)"):
        made.action(x[0])


@pytest.mark.parametrize("count", [1, 7, 64])
def test_decisions_do_not_depend_on_the_batch(count: int) -> None:
    made, x = policy(), np.random.default_rng(2).normal(size=(200, 18))
    np.testing.assert_array_equal(made.action(x[100 : 100 + count]), made.action(x)[100 : 100 + count])


def test_actions_lie_between_the_limits_of_each_rotor() -> None:
    made = policy()
    low, high = np.array(made.contract.limits).T
    np.testing.assert_allclose(made.command([-np.ones(4), np.ones(4), np.zeros(4)]), [low, high, 0.5 * (low + high)])


def test_it_is_told_where_the_reference_is_now() -> None:
    """In flight along a course: the same as at rest where the difference to the reference is the same."""
    path = course("infinity").trajectory()
    made, flat = policy(), path.sample(np.array([3.0]))
    x = states(1)
    there = {**x, "position": x["position"] + flat.position, "velocity": x["velocity"] + flat.velocity}
    followed = MotorPilot(made, path, 1).command(seen(3.0, there))
    standing = MotorPilot(made, held(yaw=float(flat.yaw[0])), 1).command(seen(3.0, x))
    np.testing.assert_allclose(followed, standing, rtol=1e-6)


# ---- when it decides and what it remembers ---------------------------------------------------------------------------


def test_it_decides_at_its_own_rate_and_holds_between() -> None:
    pilot = MotorPilot(policy(rate=50.0), held(), 3)
    commands = [pilot.command(seen(k / 200.0, states(3, seed=k))) for k in range(9)]
    assert (pilot.decisions == 3).all()
    for k in range(9):
        assert np.array_equal(commands[k], commands[k - 1]) == (k % 4 != 0)


def test_past_actions_come_newest_first_after_those_of_hover() -> None:
    made = policy(history=3)
    pilot = MotorPilot(made, held(), 2)
    past = np.tile(made.contract.hover, (2, 3)).astype(float)
    for k in range(5):
        x = states(2, seed=k)
        own = motor_observation(x["position"], x["velocity"], x["attitude"], x["rate"], np.zeros(2))
        action = made.action(np.concatenate([own, past], axis=1))
        np.testing.assert_array_equal(pilot.command(seen(k / 100.0, x)), made.command(action))
        np.testing.assert_array_equal(pilot.action, action)
        past = np.concatenate([action, past[:, :8]], axis=1)


def test_a_flight_that_begins_anew_remembers_nothing_and_the_others_all() -> None:
    pilot, other = (MotorPilot(policy(history=2), held(), 2) for _ in range(2))
    for k in range(4):
        pilot.command(seen(k / 100.0, states(2, seed=k)))
    x = states(2, seed=9)
    command = pilot.command(Observation(np.array([0.0, 0.04]), x))
    np.testing.assert_array_equal(command[0], other.command(seen(0.0, x))[0])
    assert pilot.decisions.tolist() == [1, 5]
    # Even where the clock is within the same tick.
    again = pilot.command(Observation(np.array([0.003, 0.043]), states(2, seed=10)))
    np.testing.assert_array_equal(again, command)
    begun = pilot.command(Observation(np.array([0.0, 0.047]), x))
    np.testing.assert_array_equal(begun[0], command[0])
    assert pilot.decisions.tolist() == [1, 5]


# ---- flights ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_motor_policy(tmp_path_factory.mktemp("learnt"), learnt())


def test_it_holds_a_place_it_has_learnt_to_hold(folder: Path) -> None:
    """Elsewhere, in another heading, from beside it, in the simulator's own equations at another rate than it learnt with."""
    sim = simulator(64)
    rng, place = np.random.default_rng(7919), np.array([5.0, -3.0, 2.0])
    yaw = 1.0 + rng.uniform(-0.5, 0.5, 64)
    sim.reset(position=place + rng.uniform(-0.5, 0.5, (64, 3)), attitude=from_euler(0.0, 0.0, yaw))
    pilot = motor_pilot(folder, sim, held(*place, yaw=1.0))
    run = fly(sim, pilot, FlightPlan(4.0))
    assert not run.pilot_error
    error = np.linalg.norm(sim.position - place, axis=1)
    assert error.max() < 0.3
    assert np.abs(sim.velocity).max() < 0.3


def test_vehicles_that_it_cannot_command(folder: Path) -> None:
    with pytest.raises(AirworthyError, match="the vehicle 'x500' has 4 rotors of"):
        motor_pilot(folder, simulator(2, "x500"), held())
    heavier = replace(vehicle("tinyprop"), mass=0.26, name="heavier")
    sim = Simulator(heavier, SimulatorConfig(level="rotor_speed", control_rate=200.0), 1)
    assert motor_pilot(read_motor_policy(folder), sim, course("hover")).level == "rotor_speed"
    with pytest.raises(AirworthyError, match="decides at 100 Hz, the simulator takes commands at 50 Hz"):
        motor_pilot(folder, simulator(1, control_rate=50.0), held())
    with pytest.raises(AssetError, match="There is no file"):
        motor_pilot(folder / "nowhere", simulator(1), held())


def test_cases_are_of_the_size_of_learnt_ones() -> None:
    size = [float(np.abs(w).max()) for w in weights(contract())]
    assert max(size) < 2.0 * max(float(np.abs(w).max()) for w in learnt().weights)


# ---- by its word -----------------------------------------------------------------------------------------------------


def test_it_is_named_by_its_folder(folder: Path) -> None:
    word, sim = f"policy:{folder}", simulator(2)
    assert pilot_level(word) == sim.config.level
    assert "policy" in pilot_names()
    assert pilot_sensors(word, vehicle("tinyprop")) == {}
    assert isinstance(pilot_for(word, sim, course("hover")), MotorPilot)
    assert policy_word(folder) == word
    assert policy_word(folder / "nowhere") == f"svnet:{folder / 'nowhere'}"
    assert method_of(word).level == sim.config.level
    for wrong in ("policy", "policy:"):
        with pytest.raises(AirworthyError, match="policy:FOLDER"):
            pilot_sensors(wrong, vehicle("tinyprop"))
    with pytest.raises(AirworthyError, match="the vehicle 'x500' has 4 rotors of"):
        pilot_sensors(word, vehicle("x500"))
    with pytest.raises(AssetError, match="There is no file"):
        pilot_sensors(f"{word}/nowhere", vehicle("tinyprop"))


def test_flown_recorded_and_flown_again(folder: Path, tmp_path: Path) -> None:
    """With its own copy of the policy, so that the folder may change afterwards."""
    copy = Path(shutil.copytree(folder, tmp_path / "policy"))
    config = FlyConfig(("tinyprop",), course="hover", pilot=f"policy:{copy}", envs=2, report=False, out=tmp_path / "run")
    summary = run_fly(config).summary
    assert {flight["outcome"] for flight in summary["flights"]} == {"success"}
    shutil.rmtree(copy)
    assert refly(tmp_path / "run").equal
    with pytest.raises(AirworthyError, match="does not fit semi_kinematic dynamics"):
        run_fly(replace(config, pilot=f"policy:{folder}", dynamics="semi_kinematic", out=tmp_path / "other"))
