"""The simulator flies vehicles with joints: a whole step beside its twin, bits, commands, sensors, containment, refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import small

from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.dynamics.articulated.joint_angles import joint_angles, start_angles
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.dynamics.rigid import INTEGRATORS
from airworthy.dynamics.state import Effects
from airworthy.simulation import Contact, Ground, Imu, Randomization, Simulator, SimulatorConfig, Wind, family
from airworthy.simulation.jointed.family import jointed_snippet
from airworthy.simulation.jointed.twin import JointedTwin
from airworthy.vehicles import Vehicle, vehicle

IMU = Imu(
    accelerometer_noise=(0.01,) * 3, gyroscope_noise=(0.001,) * 3, accelerometer_walk=(1e-4,) * 3, gyroscope_walk=(1e-5,) * 3,
    position=(0.05, 0.01, -0.02), orientation=(0.0, 0.6, 0.0, 0.8), link="",
)  # fmt: skip


def config(level: str = "rotor_speed", **changes: Any) -> SimulatorConfig:
    return SimulatorConfig(
        **{"dynamics": "articulated", "physics_rate": 500.0, "integrator": "midpoint", "level": level, **changes}
    )


def against_twin(simulator: Simulator, steps: int, command: Any, bounds: dict[str, float]) -> None:
    twin = JointedTwin(simulator)
    simulator.advance(steps, command)
    twin.advance(steps, command)
    for name, bound in bounds.items():
        np.testing.assert_allclose(simulator.field(name), twin.field(name), atol=bound, err_msg=name)
    assert not simulator.diverged.any()


def test_a_whole_step_is_the_twins() -> None:
    """Noise, pushes, an inertial sensor on the arm, joint commands: 60 steps from tumbling starts."""
    craft = small(active=True, effort=0.05)
    noisy = vehicle("flightgoggles").wrench_noise
    craft = Vehicle(**{**vars(craft), "wrench_noise": noisy, "disturbance": vehicle("snakey").disturbance})
    imu = Imu(**{**vars(IMU), "link": "arm"})
    simulator = Simulator(craft, config(imu=imu), 8, seed=3)
    rng = np.random.default_rng(1)
    turn = rng.normal(size=(8, 4))
    simulator.reset(attitude=turn, rate=rng.normal(size=(8, 3)), joint=rng.uniform(-0.4, 0.4, (8, 1)), joint_rate=[0.7])
    simulator.set_joint_command(angle=rng.uniform(-0.5, 0.5, (8, 1)))
    bounds = {
        "position": 3e-6, "velocity": 3e-5, "attitude": 2e-5, "rate": 2e-4, "joint": 1e-5, "joint_rate": 3e-4,
        "rotor_speed": 2e-6, "imu": 2e-2, "joint_torque": 2e-4, "center": 3e-6, "center_velocity": 4e-5,
        "accelerometer_bias": 1e-6,
    }  # fmt: skip
    against_twin(simulator, 60, rng.uniform(0.5, 1.5, (8, 1)), bounds)
    assert np.abs(simulator.field("imu")).max() > 1.0  # there is something to compare


def test_a_law_steers_what_the_twin_steers() -> None:
    simulator = Simulator(vehicle("morphy"), config("tracking", disturbance=False), 4)
    simulator.reset(position=np.random.default_rng(0).uniform(-0.2, 0.2, (4, 3)), rate=(0.5, -0.3, 0.2))
    command = np.zeros(14)
    command[3], command[13] = 0.5, 0.2
    bounds = {"position": 3e-6, "rate": 3e-4, "joint": 1e-5, "joint_rate": 5e-4, "rotor_command": 2e-4, "center": 3e-6}
    against_twin(simulator, 50, command, bounds)


def test_a_flight_has_the_same_bits_in_any_batch() -> None:
    def flown(ids: list[int]) -> dict[str, Any]:
        spread = Randomization(mass=0.1, inertia=0.1, rotor=0.05, lag=0.1, thrust=0.05, position=0.5)
        made = Simulator(small(), config(imu=IMU, randomization=spread), len(ids), flight_ids=ids)
        for _ in range(4):
            made.step([1.0])
        return {name: made.field(name).copy() for name in made.layout.fields}

    whole, moved, alone = flown(list(range(20))), flown(list(range(19, -1, -1))), flown([13])
    assert len(np.unique(whole["position"][:, 0])) == 20
    for name, value in whole.items():
        assert value.tobytes() == moved[name][::-1].tobytes(), name
        assert value[13].tobytes() == alone[name][0].tobytes(), name


def test_joints_start_within_a_share_of_their_spread() -> None:
    made = config("position", integrator="extrapolated", randomization=Randomization(joint=0.5))
    simulator = Simulator(vehicle("snakey"), made, 40)
    away = simulator.field("joint") - np.array((np.pi / 2, 0.0) * 3)
    half = 0.5 * np.array((np.pi / 2, 0.3) * 3)
    assert np.all(np.abs(away) <= half + 1e-6)
    assert np.all(np.abs(away).max(axis=0) > 0.8 * half)
    assert len(np.unique(simulator.center[:, 0])) == 40
    wide = Simulator(vehicle("snakey"), config(integrator="extrapolated", randomization=Randomization(joint=1.0)), 40)
    assert wide.field("joint").max() <= 2.3562  # the stop, at 135 degrees
    held = simulator._arrays.inputs()[simulator.inputs_layout.rows("joint_angle"), :40].T
    np.testing.assert_allclose(held, simulator.field("joint"))


def test_parts_of_a_launch_give_the_bits_of_the_whole() -> None:
    whole = Simulator(small(), config(), 3)
    parts = Simulator(small(), config(), 3)
    whole.reset(rate=(0.3, 0.2, 0.1), joint=[0.3])
    parts.reset(rate=(0.3, 0.2, 0.1), joint=[0.3])
    whole.step([1.1])
    flags = parts.effects
    parts.set_command([1.1])
    parts._fly(2, flags | Effects.UNFINISHED, 0)
    parts._fly(3, flags, 2)
    for name in whole.layout.fields:
        assert whole.field(name).tobytes() == parts.field(name).tobytes(), name


def test_parts_of_a_launch_are_steered_as_the_whole() -> None:
    """Allocation is found anew every tenth step of a launch: where it is cut changes nothing."""
    whole, parts = (Simulator(vehicle("morphy"), config("tracking"), 3) for _ in range(2))
    for one in (whole, parts):
        one.reset(rate=(0.3, 0.2, 0.1), joint=[[0.0] * 8, [0.05] * 8, [-0.1] * 8], joint_rate=[0.5] * 8)
        one.set_command([0.2, 0.0, 0.1, *[0.0] * 11])
    flags = parts.effects
    whole._fly(25, flags, 0)
    for steps, begun in ((4, 0), (9, 4), (12, 13)):
        parts._fly(steps, flags | (Effects.UNFINISHED if begun + steps < 25 else Effects(0)), begun)
    for name in whole.layout.fields:
        assert whole.field(name).tobytes() == parts.field(name).tobytes(), name


def test_servos_hold_turn_and_follow_commands() -> None:
    craft = vehicle("snakey")
    simulator = Simulator(craft, config("position", integrator="extrapolated", disturbance=False), 2)
    start = np.array(start_angles(craft))
    nothing = np.full(6, np.nan)
    turn = nothing.copy()
    turn[2] = 0.2
    simulator.set_joint_command(rate=turn, env_ids=[0])
    simulator.set_joint_command(angle=np.where(np.isnan(turn), np.nan, start[2] - 0.3), env_ids=[1])
    for _ in range(100):
        simulator.step((0.5, 0.5, 0.0, 0.0))
    moved = simulator.field("joint") - start
    assert moved[0, 2] == pytest.approx(0.2, abs=0.01)
    assert moved[1, 2] == pytest.approx(-0.3, abs=0.005)  # at its bound of 1 rad/s, then at 10/s
    assert np.abs(np.delete(moved, 2, axis=1)).max() < 0.02
    simulator.reset()
    assert simulator.field("joint")[0] == pytest.approx(start)
    simulator.advance(20)
    assert np.abs(simulator.field("joint") - start).max() < 1e-3


def test_targets_stay_within_the_rate_that_a_joint_may_have() -> None:
    craft = vehicle("snakey")
    simulator = Simulator(craft, config("position", integrator="extrapolated", disturbance=False), 1)
    simulator.set_parameter("joint_rate_max", np.full(6, 0.1))
    simulator.set_joint_command(rate=[2.0] + [np.nan] * 5)
    simulator.advance(100)
    assert simulator.field("joint_rate")[0, 0] == pytest.approx(0.1, abs=0.02)


def test_an_arm_is_released_as_it_was_identified() -> None:
    """Source: spec/articulated 8.5, from the law's closed form on a base held level."""
    craft = vehicle("morphy_fixed_base")
    simulator = Simulator(craft, config(physics_rate=1000.0, integrator="rk4"), 1)
    simulator.reset(joint=[0.29, 0.0] * 4, rotor_speed=[0.0] * 4)
    found = []
    for steps in (10, 10, 30, 50):
        simulator.advance(steps, [0.0] * 4)
        found.append(float(simulator.field("joint")[0, 0]))
    np.testing.assert_allclose(found, [0.285884, 0.279695, 0.263062, 0.242153], atol=1.2e-5)
    assert not simulator.position.any()
    assert not simulator.velocity.any()


def test_what_is_not_finite_or_too_fast_ends_its_own_flight() -> None:
    simulator = Simulator(small(active=True), config(), 4)
    command = np.ones((4, 1))
    command[1] = np.nan
    simulator.set_joint_command(angle=[[0.0], [0.0], [np.inf], [0.0]])
    simulator.reset([3], joint_rate=[2e3])
    simulator.advance(5, command)
    assert simulator.diverged.tolist() == [False, True, True, True]
    assert np.isfinite(simulator.field("joint")).all()


def test_snapshots_go_on_alike() -> None:
    simulator = Simulator(small(active=True), config(), 2)
    simulator.set_joint_command(angle=[0.3])
    simulator.advance(10, [1.0])
    kept = simulator.save()
    simulator.advance(10)
    first = simulator.field("joint").copy()
    simulator.restore(kept)
    simulator.advance(10)
    assert simulator.field("joint").tobytes() == first.tobytes()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"wind": Wind(mean=(1.0, 0.0, 0.0))}, "Wind without drag of links"),
        ({"contact": Contact(rolling=0.5)}, "Resistance to rolling is not simulated"),
        ({"ground_effect": 1.0}, "Ground effect is not simulated"),
        ({"ground": Ground(rolling=0.1)}, "Resistance to rolling is not simulated"),
        ({"level": "tracking:crazyflie"}, "does not fit"),
        ({"integrator": "euler"}, "choose semi_implicit"),
        ({"imu": Imu(link="leg")}, "the links are base, arm"),
        ({"joint_angles": (0.1, 0.2)}, "has 1 joints"),
    ],
)
def test_what_is_not_there_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AirworthyError, match=words):
        Simulator(small(), config(**changes), 1)


def test_families_are_not_mixed_up() -> None:
    with pytest.raises(AirworthyError, match="set dynamics='articulated'"):
        Simulator(small(), SimulatorConfig(), 1)
    with pytest.raises(AirworthyError, match="has no joints"):
        Simulator(vehicle("lmf2"), config(), 1)
    with pytest.raises(AirworthyError, match="different joints, links"):
        Simulator([vehicle("morphy"), vehicle("snakey")], config(), 2)
    with pytest.raises(AirworthyError, match="no joints to command"):
        Simulator(vehicle("lmf2"), SimulatorConfig(), 1).set_joint_command(angle=[0.0])
    for given, words in (({"integrator": "midpoint"}, "for vehicles with joints"), ({"joint_angles": (0.1,)}, "no joints")):
        with pytest.raises(AirworthyError, match=words):
            SimulatorConfig(**given)
    with pytest.raises(AirworthyError, match="too fast for rk4"):
        Simulator(vehicle("snakey"), config(integrator="rk4"), 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rate": [0.1]}, "a spring, which takes an angle"),
        ({"torque": [0.1]}, "a spring, which takes an angle"),
        ({"angle": [0.1, 0.2]}, "got the shape"),
        ({"angle": ["a"]}, "must be numbers"),
    ],
)
def test_joints_take_what_their_law_reads(given: dict[str, Any], words: str) -> None:
    with pytest.raises(AirworthyError, match=words):
        Simulator(small(active=True), config(), 2).set_joint_command(**given)


def test_no_flight_starts_beyond_the_stops() -> None:
    """Their springs are stiff enough to throw out what starts behind them; a few milliradians are what they give by."""
    simulator = Simulator(small(lower=-0.5, upper=0.4), config(), 3)
    simulator.reset(joint=[[0.4], [-0.5], [0.404]])
    with pytest.raises(AirworthyError, match=r"got 0\.45 rad for joint 0 of 'small', whose stops are at -0\.5 and 0\.4 rad"):
        simulator.reset(env_ids=[2], joint=[0.45])
    with pytest.raises(AirworthyError, match=r"got -0\.6 rad for joint 0"):
        simulator.reset(joint=[[0.0], [-0.6], [0.0]])


def test_passive_joints_take_no_command() -> None:
    with pytest.raises(AirworthyError, match="passive"):
        Simulator(small(), config(), 2).set_joint_command(angle=[0.1])


def test_angles_by_name() -> None:
    chain, arms = vehicle("snakey"), vehicle("morphy")
    assert joint_angles(chain, "ring") == pytest.approx([np.pi / 2, 0.0] * 3)
    assert joint_angles(arms, "neutral") == (0.0,) * 8
    # Source: spec/articulated 3: in hover the arms bend up by 0.202 and 0.208 rad, the lateral joints by -0.073 and 0.037.
    assert joint_angles(arms, "hover") == pytest.approx([-0.2015, -0.0734, -0.2084, 0.0369] * 2, abs=2e-4)
    with pytest.raises(AirworthyError, match="set of joint angles"):
        joint_angles(chain, "square")
    with pytest.raises(AirworthyError, match="its stops are at"):
        joint_angles(arms, "ring")
    with pytest.raises(AirworthyError, match="ring needs two"):
        joint_angles(small(), "ring")
    with pytest.raises(AirworthyError, match="its stops are at"):
        joint_angles(arms, [0.5] + [0.0] * 7)


@pytest.mark.slow
def test_one_by_one_gives_the_bits_of_the_lanes() -> None:
    """The form of a GPU, on a CPU: commands, noise, sensor, ground, steering and all."""
    made = config("position", imu=IMU, ground=Ground(restitution=0.2), randomization=Randomization(mass=0.1))
    arms = small(active=True)
    rotors = [
        replace(arms.rotors[0], position=place, link="base") for place in ((0.1, 0.1, 0.0), (-0.1, 0.1, 0.0), (0.0, -0.2, 0.0))
    ]
    craft = replace(arms, rotors=(*arms.rotors, *rotors))
    simulator = Simulator(craft, made, 16)
    simulator.reset(position=np.stack([np.zeros(16), np.zeros(16), np.linspace(0.05, 1.0, 16)], axis=1), joint=[0.2])
    simulator.set_command((0.0, 0.0, 0.5, 0.1))
    arrays, effects = simulator._arrays, simulator.effects
    memory = {name: np.array(value.numpy()) for name, value in arrays._warp.items()}
    simulator.advance(10)
    wp = quiet_warp()
    source = "#define SCALAR_PATH\n" + jointed_snippet(simulator.shape, bool(effects & Effects.IRREGULAR))
    kernel = native_kernel("articulated_flight_single", source, family._ARGUMENTS)
    warp = [wp.array(memory[name], device="cpu") for name in family.ARGUMENTS]
    level = LEVELS["position"].number
    scalars = [arrays.stride, 1.0 / made.physics_rate, 10, INTEGRATORS["midpoint"], level, 4, int(effects), arrays.stride]
    quiet_launch(kernel, arrays.stride, [*warp, *scalars, 0], "cpu")
    state = warp[0].numpy().reshape(-1, arrays.stride)
    for name in simulator.layout.fields:
        rows = simulator.layout.rows(name)
        assert state[rows].tobytes() == arrays.state()[rows].tobytes(), name
    assert simulator.field("contact").any()


def test_bounds_of_sense_follow_the_rates_that_joints_may_have() -> None:
    chain = Simulator(vehicle("snakey"), config("position", integrator="extrapolated"), 1)
    assert chain.parameter("limit")[0].tolist() == [1e5, 1e3, 1e3, 100.0]
    assert chain.parameter("joint_rate_max")[0].tolist() == [10.0] * 6
    links = vehicle("snakey").links
    slow = (*links[:-1], replace(links[-1], joint=replace(links[-1].joint, rate_max=2.0)))
    mixed = Simulator(replace(vehicle("snakey"), links=slow), config("position", integrator="extrapolated"), 1)
    assert mixed.parameter("limit")[0].tolist() == [1e5, 1e3, 1e3, 100.0]  # of the fastest
    free = Simulator(small(), config(), 1)
    assert free.parameter("limit")[0].tolist() == [1e5, 1e3, 1e3, 1e3]
    assert free.parameter("joint_rate_max")[0].tolist() == [1e3]


def test_what_joints_are_told_lands_in_their_rows() -> None:
    def rows(simulator: Simulator) -> list[list[float]]:
        inputs = simulator._arrays.inputs()
        return [inputs[simulator.inputs_layout.rows(f"joint_{name}"), 0].tolist() for name in ("target", "angle", "gain")]

    chain = Simulator(vehicle("snakey"), config("position", integrator="extrapolated"), 1)
    assert rows(chain)[2] == [6.0] * 6
    chain.set_joint_command(angle=[0.5, np.nan] * 3, rate=[0.1, 0.2] + [np.nan] * 4)
    target, angle, gain = rows(chain)
    assert target == pytest.approx([0.1, 0.2, 0.0, 0.0, 0.0, 0.0])
    assert angle[::2] == [0.5] * 3
    assert gain == [6.0, 0.0, 6.0, 6.0, 6.0, 6.0]
    chain.set_joint_command(rate=[-0.1] * 6)
    assert rows(chain)[2] == [0.0] * 6
    sprung = Simulator(small(active=True), config(joint_angles=(0.2,)), 1)
    assert rows(sprung) == [[pytest.approx(0.2)], [0.0], [0.0]]
    sprung.set_joint_command(angle=[0.4])
    assert rows(sprung) == [[pytest.approx(0.4)], [0.0], [0.0]]
    assert rows(Simulator(small(rest=0.1), config(joint_angles=(0.2,)), 1))[0] == [pytest.approx(0.1)]
    driven = Simulator(small(active=True, law="torque"), config(), 1)
    driven.set_joint_command(torque=[0.01])
    assert rows(driven)[0] == [pytest.approx(0.01)]


@pytest.mark.parametrize(
    ("spread", "changed"),
    [
        ({"mass": 0.2}, r"bodies\[\d\]\.(mass|inertia)"),
        ({"inertia": 0.2}, r"bodies\[\d\]\.inertia"),
        ({"thrust": 0.2}, r"propellers\[\d\]\.(thrust|torque)"),
        ({"rotor": 0.2}, r"propellers\[\d\]\.(thrust|torque)"),
        ({"lag": 0.2}, r"propellers\[\d\]\.(rise|fall)"),
    ],
)
def test_a_spread_changes_what_it_is_of(spread: dict[str, float], changed: str) -> None:
    craft = vehicle("morphy")
    simulator = Simulator(craft, config(randomization=Randomization(**spread)), 50, flight_ids=range(50))
    rows, names = simulator.parameter("tree"), tree_of(craft).row_names
    ratio = rows / np.array(tree_of(craft).values)
    draw = 2.0 * uniforms(flight_key(0, np.arange(50), np.zeros(50, np.uint32)), 0, Stream.PARAMETERS, 32) - 1.0
    for column, name in zip(ratio.T, names, strict=True):
        (share,) = spread.values()
        if re.match(changed, name) is None:
            assert np.all(column == 1.0), name
        elif "lag" in spread:
            np.testing.assert_allclose(column, 1.0 / (1.0 + share * draw[:, 14]), err_msg=name)
        else:
            rotor = int(name.split("[")[1].split("]")[0])
            index = {"mass": 0, "inertia": 1, "thrust": 4, "rotor": 5 + rotor}[next(iter(spread))]
            np.testing.assert_allclose(column, 1.0 + share * draw[:, index], err_msg=name)
