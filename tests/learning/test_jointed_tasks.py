"""morphy_hover, chain_hover and gap: observations, rewards and ends by hand, twins, batches, slot, gradients through joints."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.core.errors import AirworthyError
from airworthy.dynamics.articulated.composite import effectiveness
from airworthy.dynamics.articulated.twin import ArticulatedTwin
from airworthy.learning import VectorTask
from airworthy.learning.environments import FlightConditions, learning_task
from airworthy.learning.environments.tasks import ChainHover, Gap, MorphyHover
from airworthy.learning.environments.tasks.gap import slot_distance, sphere_places
from airworthy.learning.environments.twin import VectorTwin
from airworthy.learning.task_training.policy import NetworkForm, contract_of_task
from airworthy.learning.task_training.shown import policy_flights
from airworthy.pilots import FlightPlan, fly
from airworthy.pilots.task_policy.contract import check_task_vehicle, write_task_folder
from airworthy.pilots.task_policy.pilot import read_task_policy
from airworthy.simulation import Randomization, Simulator, SimulatorConfig
from airworthy.simulation.jointed.joints import tree_for
from airworthy.vehicles import vehicle

NAMES = ("morphy_hover", "chain_hover", "gap")


def record(flights: VectorTask, past: Any = ()) -> Any:
    return flights.parameters_of_flight(flights.nominal.astype(float), past)


@pytest.mark.parametrize("name", NAMES)
def test_equals_its_twin_with_resets(name: str) -> None:
    flights = VectorTask(learning_task(name, episode_steps=7), 17, seed=5)
    twin, rng, ended = VectorTwin(flights), np.random.default_rng(1), 0
    for k in range(16):
        actions = (flights.hover_action + 0.1 * rng.normal(size=(17, flights.action_count))).astype(np.float32)
        expected, result = twin.step(actions), flights.step(actions)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        np.testing.assert_array_equal(result.terminated, expected.terminated)
        np.testing.assert_allclose(result.observation, expected.observation, rtol=2e-5, atol=2e-5)
        # Coming nearer counts 50 per metre in `gap`, and float32 tells distances of 6 m apart by 4.8e-7.
        np.testing.assert_allclose(result.reward, expected.reward, rtol=2e-5, atol=1e-4)
        ended += int(result.ends.ended.sum())
        if k % 5 == 4:
            twin = VectorTwin(flights)
    assert ended >= 34


@pytest.mark.parametrize("name", NAMES)
def test_flights_are_the_same_alone_and_in_a_batch(name: str) -> None:
    batch, alone = VectorTask(name, 40, seed=3), VectorTask(name, 1, seed=3, flight_ids=[23])
    rng = np.random.default_rng(2)
    for _ in range(6):
        actions = (batch.hover_action + 0.1 * rng.normal(size=(40, batch.action_count))).astype(np.float32)
        whole, one = batch.step(actions), alone.step(actions[23:24])
        np.testing.assert_array_equal(whole.observation[23:24], one.observation)
        np.testing.assert_array_equal(whole.reward[23:24], one.reward)


@pytest.mark.parametrize(("name", "craft"), [("morphy_hover", "morphy"), ("chain_hover", "snakey6"), ("gap", "snakey")])
def test_a_decision_is_the_articulated_twins_steps(name: str, craft: str) -> None:
    """Five or ten semi-implicit steps of 2 ms of the family's own twin lead where the decision does."""
    flights = VectorTask(name, 8, seed=1)
    task: Any = flights.task
    before = flights.state.astype(float).copy()
    action = (flights.hover_action + 0.05 * np.random.default_rng(0).normal(size=(8, flights.action_count))).astype(np.float32)
    command = np.array(np.broadcast_arrays(*task.command(tuple(action.T.astype(float)), record(flights))))
    twin = ArticulatedTwin(tree_for(vehicle(craft)))
    rotors, joints = len(flights.vehicle.rotors), flights.shape.form.joint_count  # type: ignore[union-attr]
    ends = [3, 6, 10, 13, 13 + rotors, 13 + rotors + joints]
    parts = np.split(before, ends)
    names = ("position", "velocity", "attitude", "rate", "rotor", "joint", "joint_rate")
    state = twin.start(8, **dict(zip(names, parts, strict=True)))
    target = command[rotors:] if len(command) > rotors else np.zeros((joints, 8))
    for _ in range(flights.shape.substeps):
        state = twin.step(state, command[:rotors], target, 0.002, "semi_implicit")
    flights.step(action)
    after = np.split(flights.state.astype(float), ends)
    for key, found in zip(names, after, strict=True):
        np.testing.assert_allclose(found, getattr(state, key), atol=2e-4 if key == "joint_rate" else 2e-5, err_msg=key)


# ---- observations, rewards and ends ----------------------------------------------------------------------------------


def state_of(flights: VectorTask, **given: Any) -> tuple[Any, ...]:
    rotors, joints = len(flights.vehicle.rotors), flights.shape.form.joint_count  # type: ignore[union-attr]
    rows = {
        "position": np.zeros(3), "velocity": np.zeros(3), "attitude": np.array([0.0, 0.0, 0.0, 1.0]), "rate": np.zeros(3),
        "rotor": np.full(rotors, 0.7), "joint": np.zeros(joints), "joint_rate": np.zeros(joints), **given,
    }  # fmt: skip
    return tuple(np.concatenate(list(rows.values())))


def test_what_morphy_sees_by_hand() -> None:
    flights = VectorTask("morphy_hover", 1)
    assert flights.observation_count == 33
    turn = Rotation.from_euler("ZYX", [0.4, -0.2, 0.1])
    joint, joint_rate = 0.01 * np.arange(8), 0.1 * np.arange(8) - 0.3
    state = state_of(
        flights, position=np.array([0.3, -0.5, 0.2]), velocity=np.array([1.0, 2.0, -1.0]), attitude=turn.as_quat(),
        rate=np.array([0.1, 0.2, 0.3]), joint=joint, joint_rate=joint_rate,
    )  # fmt: skip
    seen = np.array(flights.task.observe(state, (0.0,) * 16, record(flights, (-1.0, -0.5, 0.0, 1.0))), float)
    body = turn.inv().apply([1.0, 2.0, -1.0])
    wanted = [-0.3, 0.5, -0.2, *turn.as_quat(), *body, 0.1, 0.2, 0.3, 0.0, 0.5, 1.0, 2.0, *joint, *joint_rate]
    np.testing.assert_allclose(seen, wanted, atol=1e-12)


def test_what_a_chain_sees_by_hand() -> None:
    flights = VectorTask("chain_hover", 1)
    assert flights.observation_count == 49
    turn = Rotation.from_euler("ZYX", [2.4, -0.2, 0.1])
    state = state_of(flights, position=np.array([0.3, -0.5, 0.2]), attitude=turn.as_quat())
    past = (-1.0, -0.5, 0.0, 1.0, 0.2, 0.4, *(0.1 * k for k in range(10)))
    p = record(flights, past)
    thrusts = [0.0, 3.75, 7.5, 15.0, 9.0, 10.5]
    published = np.array(ChainHover(headless=False).observe(state, (), p), float)
    np.testing.assert_allclose(published[:7], [-0.3, 0.5, -0.2, *turn.as_quat()], atol=1e-12)
    np.testing.assert_allclose(published[13:29], [*thrusts, *past[6:]], atol=1e-12)
    ours = np.array(ChainHover().observe(state, (), p), float)
    np.testing.assert_allclose(ours[:3], turn.inv().apply([-0.3, 0.5, -0.2]), atol=1e-12)
    # The turn that is left takes the body's vertical where the attitude takes it, whatever the heading.
    np.testing.assert_allclose(Rotation.from_quat(ours[3:7]).inv().apply([0, 0, 1]), turn.inv().apply([0, 0, 1]), atol=1e-12)
    assert ours[5] == 0.0
    np.testing.assert_array_equal(ours[7:], published[7:])


def test_morphys_published_reward_by_hand() -> None:
    flights = VectorTask("morphy_hover", 1)
    joint_rate = np.array([0.1, -0.2, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0])
    after = state_of(flights, position=np.array([0.2, 0.0, 0.0]), rate=np.array([0.0, 0.3, 0.4]), joint_rate=joint_rate)
    action, past = (-0.3, -0.3, -0.2, -0.1), (-0.3, -0.3, -0.3, -0.3)  # 0.7, 0.7, 0.8, 0.9 N after 0.7 N
    found = flights.task.judge(after, after, action, past, record(flights))
    place = 4.0 * np.exp(-12 * 0.04) + np.exp(-3 * 0.04)
    change = 0.2 * (np.exp(-5 * 0.01) - 1.0) + 0.2 * (np.exp(-5 * 0.04) - 1.0)
    speed = sum(0.3 * (np.exp(-30 * v * v) - 1.0) for v in joint_rate)
    effort = -0.15 * (2 * (0.7 - 0.711225) ** 2 + (0.8 - 0.711225) ** 2 + (0.9 - 0.711225) ** 2)
    wanted = place + (20 - 0.2) / 40 + place * (5.0 + 3.0 * np.exp(-10.5 * 0.25)) + change * (1.0 + place) + effort + speed
    assert sum(map(float, found.terms.values())) == pytest.approx(wanted, rel=1e-9)
    assert (float(found.terminated), float(found.success)) == (0.0, 0.0)


def test_the_chains_published_reward_by_hand() -> None:
    flights = VectorTask("chain_hover", 1)
    turn = Rotation.from_euler("ZYX", [1.0, 0.2, -0.3])
    after = state_of(flights, position=np.array([0.0, 0.0, 0.5]), attitude=turn.as_quat(), rate=np.array([0.1, 0.0, 0.2]))
    found = flights.task.judge(after, after, (0.0,) * 16, (0.0,) * 16, record(flights))
    place, yaw = 3.0 * np.exp(-8 * 0.25) + 0.5 * np.exp(-0.25), 5.0 * np.exp(-20.5 * 0.04)
    upright = 3.0 * np.exp(-5 * 0.09) + 3.0 * np.exp(-5 * 0.04)
    wanted = place + 19.5 / 40 + yaw + place * (upright + 3.0 * np.exp(-10.5 * 0.05) + yaw)
    assert sum(map(float, found.terms.values())) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", ["morphy_hover", "chain_hover"])
@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({"position": np.array([2.9, 0.0, 0.0])}, 0.0), ({"position": np.array([0.0, 3.1, 0.0])}, 1.0),
        ({"attitude": Rotation.from_euler("ZYX", [3.0, 0.0, 0.95]).as_quat()}, 0.0),
        ({"attitude": Rotation.from_euler("ZYX", [3.0, 0.0, -1.05]).as_quat()}, 1.0),
        ({"attitude": Rotation.from_euler("ZYX", [0.0, 1.05, 0.0]).as_quat()}, 1.0),
    ],
)  # fmt: skip
def test_a_flight_ends_far_away_or_tilted(name: str, given: dict[str, Any], lost: float) -> None:
    flights = VectorTask(name, 1)
    after, action = state_of(flights, **given), (0.0,) * flights.action_count
    found = flights.task.judge(after, after, action, action, record(flights))
    assert float(found.terminated) == lost
    assert float(found.terms["crash"]) == -20.0 * lost
    if lost:
        assert sum(map(float, found.terms.values())) == -20.0


def test_as_published_differs_in_what_is_named() -> None:
    """Actions are cut off at 0, joints turn the other way, the observation is the world's: and nothing else."""
    flights = VectorTask("chain_hover", 1)
    p, ours, published = record(flights, (0.0,) * 16), ChainHover(), ChainHover(as_published=True)
    p.nominal_weight = flights.vehicle.mass * flights.vehicle.gravity
    action = (-0.5, 0.5, 0.0, 1.0, -1.0, 0.2, -0.5, 0.5, 0.0, 1.0, -1.0, 0.25, 0.0, 0.0, 0.0, 0.0)
    mine, theirs = (np.array(task.command(action, p), float) for task in (ours, published))
    np.testing.assert_allclose(mine[:6], [3.75, 11.25, 7.5, 15.0, 0.0, 9.0])
    np.testing.assert_allclose(theirs[:6], [0.0, 7.5, 0.0, 15.0, 0.0, 3.0])
    np.testing.assert_allclose(mine[6:12], action[6:12])
    # From +1 at an action of 0 to -1 at 1: published limits of joints have least and largest swapped.
    np.testing.assert_allclose(theirs[6:12], [1.0, 0.0, 1.0, -1.0, 1.0, 0.5])
    np.testing.assert_allclose([float(x) for x in published.hover_action(p)][6:], 0.5)
    np.testing.assert_allclose(np.array(published.command(published.hover_action(p), p), float)[6:], 0.0)
    for name, kind in (("morphy_hover", MorphyHover), ("chain_hover", ChainHover)):
        one = VectorTask(name, 1)
        q, n = record(one), len(one.vehicle.rotors)
        q.nominal_weight = one.vehicle.mass * one.vehicle.gravity
        for task in (kind(), kind(as_published=True)):
            hover = np.array(task.command(task.hover_action(q), q), float)[:n]
            np.testing.assert_allclose(hover, one.vehicle.mass * one.vehicle.gravity / n, rtol=1e-6)
        after = state_of(one, position=np.array([0.3, 0.2, 0.1]))
        # Of the same thrusts the reward is the same.
        same = [tuple(float(x) for x in task.hover_action(q)) for task in (kind(), kind(as_published=True))]
        pair = [
            task.judge(after, after, a, a, q).terms for task, a in zip((kind(), kind(as_published=True)), same, strict=True)
        ]
        assert {k: pytest.approx(float(x)) for k, x in pair[0].items()} == {k: float(x) for k, x in pair[1].items()}


# ---- starts ----------------------------------------------------------------------------------------------------------


def test_starts_are_as_published_and_chains_can_hover() -> None:
    morphy = VectorTask("morphy_hover", 512, seed=2)
    state = morphy.state.astype(float)
    joint, joint_rate = state[17:25], state[25:33]
    for part, most in ((state[:3], 1.0), (state[3:6], 0.2), (state[10:13], 0.2), (joint, 0.1), (joint_rate, 0.05)):
        assert 0.95 * most < np.abs(part).max() <= most
    yaw = Rotation.from_quat(state[6:10].T).as_euler("ZYX")
    assert 0.5 < np.abs(yaw[:, 0]).max() <= np.radians(30.0) + 1e-6
    assert np.abs(yaw[:, 1:]).max() < 1e-5
    tree = tree_for(vehicle("snakey6"))

    def least(flights: VectorTask) -> Any:
        q = flights.state.astype(float)[19:29]
        columns = np.array([np.broadcast_arrays(*c) for c in effectiveness(tree.structure, tree.model, tuple(q))])
        return np.linalg.svd(columns[:, 2:5].transpose(2, 1, 0), compute_uv=False)[:, 2]

    drawn = ChainHover(flyable=False)
    anyhow, flyable = least(VectorTask(drawn, 256, seed=2)), least(VectorTask("chain_hover", 256, seed=2))
    assert (anyhow < 0.1).any()
    assert (flyable > 0.1).all()
    np.testing.assert_array_equal(least(VectorTask(ChainHover(as_published=True), 256, seed=2)), anyhow)
    # Who could hover at first begins as it would have.
    kept = anyhow > 0.1 + 1e-6
    np.testing.assert_allclose(flyable[kept], anyhow[kept], rtol=1e-5)


# ---- the slot --------------------------------------------------------------------------------------------------------


def test_the_distance_from_a_slot_is_that_from_its_walls() -> None:
    """Against the nearest of many points of the wall's four slabs, which boxes have in closed form."""
    rng = np.random.default_rng(4)
    points = rng.uniform(-1.0, 1.0, (3, 4000)) * np.array([[1.0], [1.5], [1.5]])
    found = slot_distance(tuple(points), 0.8, 0.6, 0.5)
    far = 50.0
    boxes = [
        ((-0.25, 0.4, -far), (0.25, far, far)), ((-0.25, -far, -far), (0.25, -0.4, far)),
        ((-0.25, -far, 0.3), (0.25, far, far)), ((-0.25, -far, -far), (0.25, far, -0.3)),
    ]  # fmt: skip
    wanted = np.min(
        [
            np.linalg.norm(np.maximum(np.maximum(np.array(a)[:, None] - points, points - np.array(b)[:, None]), 0.0), axis=0)
            for a, b in boxes
        ],
        axis=0,
    )
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_spheres_are_where_the_simulator_has_its_links() -> None:
    flights = VectorTask("gap", 4, seed=6)
    state = flights.state.astype(float)
    places = np.array([np.broadcast_arrays(*place) for place in sphere_places(tuple(state), record(flights))])
    config = SimulatorConfig(dynamics="articulated", integrator="extrapolated", physics_rate=500.0, level="rotor_speed")
    simulator = Simulator(flights.vehicle, config, 4)
    simulator.reset(position=state[:3].T, attitude=state[6:10].T, joint=state[17:23].T)
    links = [link for link in flights.vehicle.links if link.shapes]
    assert len(places) == 3 * len(links)
    for k, link in enumerate(links):
        position, attitude = simulator.link_pose(link.name)
        middle = np.asarray(position) + Rotation.from_quat(attitude).apply(link.shapes[0].position)
        np.testing.assert_allclose(places[3 * k + 1].T, middle, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(places[3 * k + 2] - places[3 * k], axis=0), 0.86, atol=1e-6)
    # Two and a half times as wide as the slot, and 3 m before it.
    assert (np.ptp(places[:, 1], axis=0) > 2.5).all()
    assert (np.abs(np.array(flights.task.error(tuple(state), record(flights))) - 6.0) < 0.5).all()  # type: ignore[attr-defined]


def test_touching_the_wall_ends_the_flight_and_a_straight_chain_goes_through() -> None:
    flights, still = VectorTask("gap", 1), (0.0,) * 10
    p = record(flights)

    def judged(x: float, y: float, moved: float = 0.0, **given: Any) -> Any:
        before = state_of(flights, position=np.array([x - moved, y, 0.0]), rotor=np.full(4, 3.0), **given)
        after = state_of(flights, position=np.array([x, y, 0.0]), rotor=np.full(4, 3.0), **given)
        return flights.task.judge(before, after, still, still, p)

    assert float(judged(-1.5, 0.0).terminated) == 0.0  # straight along x, in the middle of the slot
    assert float(judged(-1.5, 0.67).terminated) == 0.0  # 1 cm of room beside spheres of 2 cm
    assert float(judged(-1.5, 0.685).terminated) == 1.0
    # In a step of 10 cm the way between two decisions counts, too.
    assert float(judged(-1.5, 0.67, moved=0.1).terminated) == 1.0
    # Half of it: a centimetre of room is more than half of 1.5 cm, and less than half of 3.
    assert [float(judged(-1.5, 0.67, moved=moved).terminated) for moved in (0.015, 0.03)] == [0.0, 1.0]
    across = {"attitude": Rotation.from_euler("z", 1.5708).as_quat()}
    assert float(judged(-0.3, 0.0, **across).terminated) == 0.0  # a chain that lies before the wall, 3 cm away
    assert float(judged(-0.26, 0.0, **across).terminated) == 1.0
    square = {"attitude": Rotation.from_euler("z", 1.5708).as_quat(), "joint": np.array([-np.pi / 2, 0.0] * 3)}
    assert [float(judged(x, 0.5, **square).terminated) for x in (-0.9, -0.5, 0.0)] == [1.0] * 3  # its side is in the wall
    assert [float(judged(x, 0.0, **square).terminated) for x in (-0.9, -0.5, 0.0, 0.5)] == [0.0] * 4
    assert float(judged(-1.5, 0.0).success) == 0.0
    assert float(judged(0.8, 0.0).success) == 1.0  # the first link is the hindmost: its end is 37 cm behind x = 0
    assert float(judged(0.6, 0.0).success) == 0.0
    # All of the last sphere, of 2 cm, whose middle is 43 cm before the link's: 1 cm behind the wall, 3 cm.
    assert [float(judged(0.25 + 0.43 + past, 0.0).success) for past in (0.01, 0.03)] == [0.0, 1.0]
    np.testing.assert_allclose(float(judged(-1.5, 0.0).terms["funnel"]), 0.0)


# ---- gradient --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_gradients_through_joints_are_those_of_differences(name: str) -> None:
    torch = pytest.importorskip("torch")
    from airworthy.learning.gradient.differentiable import DifferentiableSimulator
    from airworthy.learning.task_training.jointed_gradient import descended
    from airworthy.learning.task_training.jointed_options import jointed_gradient_options

    task = descended(learning_task(name), jointed_gradient_options(name))
    craft = learning_task(name).vehicle
    flights = DifferentiableSimulator(craft, task, env_count=2, horizon=3, precision="float64")
    start = flights.begin()
    rng = np.random.default_rng(0)
    action = (flights.hover_action + 0.05 * torch.from_numpy(rng.normal(size=(2, flights.action_count)))).requires_grad_()

    def cost(a: Any, state: Any) -> Any:
        total = 0.0
        for _ in range(3):
            state, _, more = flights.step(state, a)
            total = total + more.sum()
        return total

    held = start.clone().requires_grad_()
    by_action, by_state = torch.autograd.grad(cost(action, held), (action, held))
    rows, wide = flights.state_count - flights.action_count - 1, flights.action_count
    with torch.no_grad():
        # A random direction of everything that is acted, then one of everything that a flight begins with.
        for slope, at in ((by_action, action), (by_state, start)):
            e = torch.zeros_like(at)
            part = e[1] if at is action else e[:rows, 0]
            part += torch.from_numpy(rng.normal(size=part.shape))
            ways = [(at + s * 1e-6 * e, start) if at is action else (action, at + s * 1e-6 * e) for s in (1.0, -1.0)]
            wanted = (cost(*ways[0]) - cost(*ways[1])) / 2e-6
            assert float((slope * e).sum()) == pytest.approx(float(wanted), rel=1e-6, abs=1e-7)
        # And single numbers: a motor, a joint's rate or another motor, the first joint's angle, the last joint's rate.
        for k in (0, wide - 1):
            e = torch.zeros_like(action)
            e[1, k] = 1e-6
            wanted = (cost(action + e, start) - cost(action - e, start)) / 2e-6
            assert float(by_action[1, k]) == pytest.approx(float(wanted), rel=1e-5, abs=1e-7), k
        for row in (13 + len(vehicle(craft).rotors), rows - 1):
            e = torch.zeros_like(start)
            e[row, 0] = 1e-6
            wanted = (cost(action, start + e) - cost(action, start - e)) / 2e-6
            assert float(by_state[row, 0]) == pytest.approx(float(wanted), rel=1e-5, abs=1e-7), row


# ---- flown -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "seen"), [("morphy_hover", 33), ("chain_hover", 49), ("gap", 40)])
def test_a_policy_is_written_read_and_flown_with_its_joints(name: str, seen: int, tmp_path: Path) -> None:
    flights = VectorTask(name, 16, seed=7919)
    contract = contract_of_task(flights, NetworkForm((8, 8)), {})
    joints, wide = flights.shape.form.joint_count, flights.action_count  # type: ignore[union-attr]
    assert (contract.joints, contract.moves_joints, len(contract.observe.results)) == (joints, name != "morphy_hover", seen)
    sizes = (seen, 8, 8, wide)
    weights = [np.zeros(s, np.float32) for a, b in pairwise(sizes) for s in ((b, a), (b,))]
    weights[-1][:] = np.arctanh(flights.hover_action)
    held = read_task_policy(write_task_folder(tmp_path, contract, weights))
    assert held.contract == contract
    # Programs compute what the task does.
    state, past = flights.state.astype(float), np.tile(flights.hover_action.astype(float)[:, None], 16)
    given = {
        "state": state,
        "before": state,
        "past": past,
        "action": past,
        "age": np.zeros((1, 16)),
        "memory": np.zeros((0, 16)),
    }
    found = contract.observe.run(**given, points=np.zeros((0, 16)))
    np.testing.assert_allclose(found.T, flights.observation, atol=2e-5)
    table = policy_flights(held, 2, 0.1)
    columns = [f"joint_{k}_rad" for k in range(joints)]
    assert [c for c in table.columns if c.startswith("joint_") and "rate" not in c] == columns
    first = np.array([table.columns[c][0] for c in columns])
    np.testing.assert_allclose(first, state[13 + len(flights.vehicle.rotors) :][:joints, 0], atol=1e-6)
    other = "snakey5" if name != "morphy_hover" else "cf2x_L250"
    with pytest.raises(AirworthyError, match=f"which has {joints} joints"):
        check_task_vehicle(contract, vehicle(other))


def test_joint_rates_act_at_once_and_are_refused_late() -> None:
    config = SimulatorConfig(dynamics="articulated", integrator="extrapolated", physics_rate=500.0, level="rotor_speed")
    simulator = Simulator(vehicle("snakey"), config, 2)

    class Turning:
        name, level, observes = "turning", "rotor_speed", ("joint", "root_position")
        joint_rates = np.array([[0.5, np.nan] * 3, [np.nan, np.nan] * 3])

        def command(self, observation: Any) -> Any:
            assert observation["joint"].shape == (2, 6)
            assert observation["root_position"].shape == (2, 3)
            return np.full((2, 4), 3.0)

    start = np.array(simulator.field("joint"))
    run = fly(simulator, Turning(), FlightPlan(0.4))
    assert run.pilot_error == ""
    turned = np.array(simulator.field("joint")) - start
    np.testing.assert_allclose(turned[0, ::2], 0.2, atol=0.03)
    assert np.abs(turned[1]).max() < 0.03
    with pytest.raises(AirworthyError, match="whose commands are not delayed"):
        fly(simulator, Turning(), FlightPlan(0.1, latency=0.004))
    Turning.joint_rates = np.zeros((2, 5))
    assert "joint_rates cannot be used" in fly(simulator, Turning(), FlightPlan(0.1)).pilot_error


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"vehicle": "cf2x_L250"}, "'cf2x_L250' has no joints, which the task moves: name a vehicle with joints."),
        ({"vehicle": "morphy_fixed_base"}, "'morphy_fixed_base' is fixed to the ground: no task flies it."),
        ({"randomization": Randomization(mass=0.1)}, "Vehicles with joints are not drawn in learning tasks"),
        ({"conditions": FlightConditions(ground=-1.0)}, "Ground is not there in learning tasks of vehicles with joints"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        VectorTask("morphy_hover", 16, **given)


def test_a_slot_has_a_width() -> None:
    with pytest.raises(AirworthyError, match=r"Gap\.width_m is 0"):
        Gap(width_m=0.0)
