"""Control of vehicles that change shape: allocation, inertia and centre of mass follow the joints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.dynamics.articulated_cases import star, with_joints

from airworthy.control import ControlConfig
from airworthy.control.allocation import Allocation, allocate_bounded
from airworthy.control.effectors import collective_direction, pseudo_inverse
from airworthy.control.kernel import control_layout
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated.composite import effectiveness, whole_inertia
from airworthy.dynamics.articulated.steering import GAINS, ROWS, allocation
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.jointed.rows import held, root_below
from airworthy.simulation.jointed.twin import JointedTwin
from airworthy.vehicles import RotorResponse, articulated, control_effectiveness, vehicle
from airworthy.vehicles.links import frozen
from airworthy.verification.articulated.flights import _SEEN, _morphed, _settled

RING = (np.pi / 2, 0.0) * 3


def chain_config(**changes: Any) -> SimulatorConfig:
    return SimulatorConfig(
        **{
            "dynamics": "articulated", "physics_rate": 500.0, "integrator": "extrapolated", "level": "position",
            "disturbance": False, **changes,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "angles"),
    [("snakey", RING), ("snakey", (1.2, 0.1, 1.0, -0.2, 1.4, 0.15)), ("snakey6", (1.0, 0.0) * 5), ("morphy", (-0.2, 0.05) * 4)],
)
def test_the_live_allocation_is_that_of_the_held_vehicle(name: str, angles: tuple[float, ...]) -> None:
    craft = vehicle(name)
    tree, rigid = tree_of(craft), frozen(craft, angles)
    columns = effectiveness(tree.structure, tree.model, angles)
    np.testing.assert_allclose(np.array(columns, float).T, control_effectiveness(rigid), atol=1e-6)
    rows = np.linalg.norm(control_effectiveness(rigid)[list(ROWS)], axis=1)
    inverse, collective = allocation(columns, tuple(1.0 / rows))
    want = np.linalg.pinv(control_effectiveness(rigid)[list(ROWS)])
    np.testing.assert_allclose(np.array(inverse, float)[:, 2:], want, rtol=2e-3, atol=2e-3 * np.abs(want).max())
    shares = collective_direction(pseudo_inverse(control_effectiveness(rigid)))
    if shares.any() and not np.abs(control_effectiveness(rigid)[:2]).max() > 0.01:
        np.testing.assert_allclose(np.array(collective, float), shares, rtol=2e-3)
    np.testing.assert_allclose(np.array(whole_inertia(tree.structure, tree.model, angles), float), rigid.inertia, atol=1e-7)


def test_a_shape_that_cannot_turn_asks_for_nothing_huge() -> None:
    """The motors of a straight chain lie on one line: no moment about it."""
    craft = vehicle("snakey")
    tree = tree_of(craft)
    inverse, _ = allocation(effectiveness(tree.structure, tree.model, (0.0,) * 6), (0.5, 1.0, 1.0, 50.0))
    assert np.isfinite(np.array(inverse, float)).all()
    assert np.abs(np.array(inverse, float)[:, 3]).max() < 1e-3
    inverse, collective = allocation(effectiveness(tree.structure, tree.model, RING), (0.5, 1.0, 1.0, 0.0))
    assert not np.array(inverse, float)[:, 5].any()
    np.testing.assert_allclose(np.array(collective, float), 0.25, rtol=1e-5)


def test_rotors_that_lean_a_little_still_carry_the_weight() -> None:
    """A ring whose axes sag by 0.04 rad: a force without any yaw would be that of two rotors alone, as drag gives so little."""
    craft, sag = vehicle("snakey"), np.add(RING, (0.0, -0.045, 0.0, -0.045, 0.0, 0.0))
    tree = tree_of(craft)
    columns = np.array(effectiveness(tree.structure, tree.model, tuple(sag)), float)
    scale = 1.0 / np.linalg.norm(columns[:, list(ROWS)], axis=0)
    inverse, collective = allocation(tuple(map(tuple, columns)), tuple(scale))
    whole = np.linalg.pinv(columns[:, list(ROWS)].T)[:, 0]
    assert whole.min() < 0.01  # of a newton, where yaw is kept at nothing
    # Without yaw each carries its part: force and moments about x and y are those asked for.
    assert min(collective) > 0.2
    np.testing.assert_allclose(np.array(collective, float) @ columns[:, [2, 3, 4]], (1.0, 0.0, 0.0), atol=1e-4)
    limits = {"thrust_min": (0.0,) * 4, "thrust_max": (15.0,) * 4}
    for moment in ((0.3, 0.0, 0.25), (0.0, -0.3, -0.25), (0.3, 0.3, 0.5)):
        thrusts = allocate_bounded((0.0, 0.0, 12.0, *moment), Allocation(inverse, collective, **limits))
        assert np.array(thrusts) @ columns[:, 2] == pytest.approx(12.0, rel=1e-3)
        np.testing.assert_allclose(np.array(thrusts) @ columns[:, [3, 4]], moment[:2], atol=5e-3)


def morphed(joint_allocation: str, **changes: Any) -> tuple[Array, Simulator]:
    """Distance of the centre of mass from its place while a ring closes from 90 to 55 degrees and opens again in 12 s."""
    control = ControlConfig(joint_allocation=joint_allocation)  # type: ignore[arg-type]
    simulator = Simulator(vehicle("snakey"), chain_config(control=control, **changes), 1)
    place = simulator.center[0].copy()
    away = []
    for k in range(1200):
        share = 2.0 * np.pi * 0.01 * k / 12.0
        bend, speed = np.radians(35.0) * (1.0 - np.cos(share)) / 2.0, np.radians(35.0) * np.sin(share) * np.pi / 12.0
        angle, rate = np.full(6, np.nan), np.full(6, np.nan)
        angle[::2], rate[::2] = np.pi / 2 - bend, -speed
        simulator.set_joint_command(angle=angle, rate=rate)
        simulator.step((*place, 0.0))
        away.append(float(np.linalg.norm(simulator.center[0] - place)))
    return np.array(away), simulator


def test_a_chain_hovers_while_it_changes_shape() -> None:
    """Source: spec/articulated 6 and 8.8: below 5 cm; about a metre where allocation keeps the shape of the start."""
    away, simulator = morphed("measured")
    assert away.max() < 0.05
    assert np.degrees(np.abs(simulator.field("joint")[0, ::2] - np.pi / 2)).max() < 1.0
    # The root moved: it is not what is held.
    lost, _ = morphed("neutral")
    assert lost.max() > 4.0 * away.max()


def stepped(name: str, up: float, aside: float, seconds: float) -> tuple[float, float, Simulator]:
    """Worst heading [rad] and share of saturated steps of a chain whose place runs up and aside within a second."""
    simulator = Simulator(vehicle(name), chain_config(level="tracking"), 1)
    place, worst, full = simulator.center[0].copy(), 0.0, 0.0
    for k in range(round(100 * seconds)):
        share, command = min(0.01 * k, 1.0), np.zeros(14)
        command[:3] = place + np.array([aside * share, 0.0, up * share * share])
        simulator.step(command)
        x, y, z, w = simulator.attitude[0].astype(float)
        worst = max(worst, abs(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))))
        full = max(full, float(simulator.field("saturated")[0]))
    return worst, full, simulator


def test_a_ring_of_five_keeps_its_shape_and_heading() -> None:
    """Its thrusts differ, and bend it: held at 3/s it gave way by 4 degrees and turned by 20 in as many seconds."""
    worst, full, simulator = stepped("snakey5", 0.0, 0.0, 2.0)
    assert worst < np.radians(0.5)
    assert full == 0.0
    assert np.abs(simulator.field("joint")[0, ::2] - np.radians(72.0)).max() < np.radians(0.3)


@pytest.mark.parametrize("name", ["snakey", "snakey5"])
def test_chains_with_full_rotors_keep_their_heading(name: str) -> None:
    """Yaw comes last where rotors are full, and has a hundredth of a newton metre per newton: it is lost by degrees only."""
    worst, full, simulator = stepped(name, 6.0, 4.0, 5.0)
    assert full == 1.0
    assert worst < np.radians(8.0)
    assert not simulator.diverged.any()


@pytest.mark.slow
def test_the_same_with_what_sensors_make_of_place_and_velocity() -> None:
    """Source: spec/articulated 8.8: below 10 cm. The law heeds it: an inertial sensor's noise alone would change no bit."""
    (perfect, told), arms = ([_morphed(seen) for seen in ((0.0, 0.0), _SEEN)], _settled(_SEEN))
    assert perfect < 0.05
    assert 1.2 * perfect < told < 0.1
    assert 0.002 < arms < 0.1


def test_arms_hold_their_place_from_perturbed_starts() -> None:
    """Source: spec/articulated 6: below a centimetre from up to 0.5 m and 1 rad/s."""
    craft = vehicle("morphy")
    made = SimulatorConfig(dynamics="articulated", physics_rate=500.0, integrator="midpoint", level="position")
    simulator = Simulator(craft, made, 8)
    rng = np.random.default_rng(2)
    simulator.reset(position=rng.uniform(-0.5, 0.5, (8, 3)), rate=rng.uniform(-1.0, 1.0, (8, 3)))
    for _ in range(600):
        simulator.step((0.0, 0.0, 0.0, 0.0))
    assert np.linalg.norm(simulator.center, axis=1).max() < 0.01
    np.testing.assert_allclose(simulator.field("joint"), np.broadcast_to(simulator._joints.angles, (8, 8)), atol=0.01)  # type: ignore[union-attr]


def test_gains_follow_the_inertia_and_start_as_of_the_held_vehicle() -> None:
    craft = vehicle("snakey")
    simulator = Simulator(craft, chain_config(), 1)
    rigid = held(craft, simulator.config)
    plain = Simulator(rigid, SimulatorConfig(physics_rate=500.0, level="position", disturbance=False), 1)
    for name in ("attitude_gain", "rate_gain", "position_gain", "mass", "thrust_max", "inverse"):
        np.testing.assert_allclose(simulator.parameter(f"control_{name}"), plain.parameter(f"control_{name}"), rtol=1e-6)
    # A square of a metre: rows of four ones, of two levers of half a metre, and of four torques of a hundredth.
    scale = [0.5, np.sqrt(2.0), np.sqrt(2.0), 50.0]
    np.testing.assert_allclose(simulator.parameter("believed_scale")[0], scale, rtol=1e-6)
    gains = simulator.parameter("believed_gains")[0].reshape(len(GAINS), 3)
    np.testing.assert_allclose(gains[0] * rigid.inertia[:3], plain.parameter("control_attitude_gain")[0], rtol=1e-6)


def test_all_gains_that_are_moments_follow_the_inertia() -> None:
    """Whatever turns an angle, its integral, a rate or its derivative into a moment."""
    rows = control_layout(4).fields
    assert set(GAINS) == {name for name in rows if name.endswith("_gain") and ("attitude" in name or "rate" in name)}


def test_a_leaning_shape_is_steered_level() -> None:
    """Joints that tilt two links sideways: the chain hovers leaning, and the law steers the frame that is level then."""
    simulator = Simulator(vehicle("snakey"), chain_config(joint_angles=(1.5, 0.1, 1.5, 0.0, 1.5, 0.0)), 2)
    simulator.reset(position=[[0.1, 0.0, 0.0], [0.0, -0.1, 0.1]])
    twin = JointedTwin(simulator)
    simulator.advance(20, (0.0, 0.0, 0.0, 0.0))
    twin.advance(20, (0.0, 0.0, 0.0, 0.0))
    np.testing.assert_allclose(simulator.field("rotor_command"), twin.field("rotor_command"), atol=2e-3)
    for _ in range(800):
        simulator.step((0.0, 0.0, 0.0, 0.0))
    assert np.linalg.norm(simulator.center, axis=1).max() < 0.05


def test_the_place_of_the_root_below_the_whole() -> None:
    craft = vehicle("snakey")
    turn = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    simulator = Simulator(craft, chain_config(), 1)
    root = root_below(craft, simulator.config, np.array([1.0, 2.0, 3.0]), turn)
    simulator.reset(position=root, attitude=turn)
    np.testing.assert_allclose(simulator.center[0], [1.0, 2.0, 3.0], atol=1e-6)
    np.testing.assert_allclose(root, [1.5, 2.0, 3.0], atol=1e-9)  # a square: 0.5 m to the left of the first link


def test_a_belief_has_the_same_tree() -> None:
    craft = vehicle("snakey")
    with pytest.raises(AirworthyError, match="different joints, links"):
        Simulator(craft, chain_config(), 1, believed=vehicle("morphy"))
    wrong = Simulator(craft, chain_config(), 1, believed=with_joints(craft, kd=5.0))
    assert not np.array_equal(wrong.parameter("believed_tree"), wrong.parameter("tree"))


def test_published_gains_that_are_too_fast_are_refused() -> None:
    control = ControlConfig(gain_values=(("attitude_gain", (14.0,) * 3), ("rate_gain", (0.17,) * 3)))
    made = SimulatorConfig(dynamics="articulated", integrator="midpoint", level="position", physics_rate=100.0, control=control)
    with pytest.raises(AirworthyError, match="physics_rate to at least"):
        Simulator(vehicle("morphy"), made, 1)


def test_a_rotor_that_is_out_leaves_the_others_to_hover() -> None:
    """Its thrust of zero is structure: nothing is divided by it, and nothing is asked of it."""
    craft = star(2.0, 6)
    lag = RotorResponse.first_order(0.03)
    rotors = [
        replace(rotor, thrust=(0.0, 0.0, 1e-5 if k else 0.0), torque=(0.0, 0.0, 1.5e-7), speed_max=800.0, response=lag)
        for k, rotor in enumerate(craft.rotors)
    ]
    hurt = articulated("hurt", craft.links, rotors)
    simulator = Simulator(hurt, chain_config(integrator="midpoint"), 1)
    place = simulator.center.copy()
    for _ in range(100):
        simulator.step(np.column_stack([place, np.zeros(1)]))
    assert np.abs(simulator.center - place).max() < 0.01
    columns = effectiveness(tree_of(hurt).structure, tree_of(hurt).model, (0.0,) * 6)
    assert columns[0] == (0.0,) * 6
