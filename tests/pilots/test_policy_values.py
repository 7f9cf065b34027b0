"""Pilots that fly what was learnt, number by number: what they see, keep and command, and what their folders say and refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.fixtures.snapshots import check_snapshot
from tests.pilots.policy_cases import ENVS, at_rest, avoid_policy, drawn, flight, navigation_policy, task_policy

from airworthy.core.errors import AirworthyError
from airworthy.pilots.avoid_policy import pilot as avoid
from airworthy.pilots.avoid_policy.sight import avoid_camera, image_input, pooled, rays, turned
from airworthy.pilots.decision_clock import DecisionClock
from airworthy.pilots.goal_pilot import OwnWayPilot, check_rate
from airworthy.pilots.navigation_policy import pilot as navigation
from airworthy.pilots.navigation_policy.eyes import DepthSight
from airworthy.pilots.navigation_policy.sight import commanded, known_state, navigation_camera, pooled_image
from airworthy.pilots.task_policy import contract as task_files
from airworthy.pilots.task_policy.network import network_output
from airworthy.pilots.task_policy.pilot import TaskPilot, task_pilot
from airworthy.trajectories import Keyframe, minimum_snap
from airworthy.vehicles import vehicle

SNAPSHOT = Path(__file__).parent / "snapshots" / "policies.txt"
GOALS = np.array([[6.0, 1.0, 2.0], [0.5, -0.5, 1.0], [-20.0, 4.0, 3.0], [1.0, 1.0, 1.0], [0.0, 9.0, -2.0]])
SPEED = np.array([1.0, 2.0, 3.0, 0.4, 8.0])
PATH = minimum_snap(
    [Keyframe(0.0, (0.0,), (0.0,), (1.0,), (0.3,)), Keyframe(2.0, (2.0,), (-1.0,), (1.5,), (2.0,))], coefficient_count=8
)


def _by_depth(**fields: Any) -> navigation.FlownPolicy:
    return navigation.FlownPolicy(navigation_policy(**fields), DepthSight())


def _flown(pilot: Any, period: float = 0.02) -> dict[str, Any]:
    return {"commands": np.stack([pilot.command(o) for o in flight(period=period)]), "kept": np.asarray(pilot._memory, float)}


# ---- flights on file ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recurrent", [0, 6])
@pytest.mark.parametrize("hidden", [(12, 8), (9,)])
def test_flights_of_navigation(hidden: tuple[int, ...], recurrent: int) -> None:
    pilot = navigation.NavigationPilot(_by_depth(hidden=hidden, recurrent=recurrent), GOALS, SPEED)
    found = _flown(pilot) | {"decisions": pilot.decisions}
    check_snapshot(SNAPSHOT, found, 1e-5, 1e-5, part=f"navigation {len(hidden)} {recurrent}")
    assert pilot.decisions.tolist() == [12, 6, 9, 7, 12]


@pytest.mark.parametrize("blind", [False, True])
def test_flights_that_avoid(blind: bool) -> None:
    pilot = avoid.AvoidPilot(avoid_policy(blind=blind), lambda time: GOALS + time[:, None], SPEED)
    found = _flown(pilot) | {"decisions": pilot.decisions}
    check_snapshot(SNAPSHOT, found, 1e-5, 1e-5, part=f"avoid {'blind' if blind else 'seeing'}")
    assert pilot.decisions.tolist() == [12, 6, 9, 7, 12]


@pytest.mark.parametrize("case", ["held", "followed", "rotors", "forgetful"])
def test_flights_of_tasks(case: str) -> None:
    fields: dict[str, Any] = {
        "held": {},
        "followed": {"path": (0.1, 0.5), "output": "clip", "activation": "elu"},
        "rotors": {"level": "rotor_speed", "activation": "relu"},
        "forgetful": {"memory": (), "reads_rotors": False},
    }[case]
    pilot = TaskPilot(task_policy(**fields), PATH, ENVS, 4)
    # 100 decisions a second are asked for half as often: each of them is held for two.
    found = _flown(pilot, 0.01) | {"action": pilot.action}
    check_snapshot(SNAPSHOT, found, 1e-5, 1e-5, part=f"task {case}")
    commands = found["commands"]
    assert np.array_equal(commands[0, 0], commands[1, 0])
    assert not np.array_equal(commands[1, 0], commands[2, 0])
    assert ("rotor_speed" in pilot.observes) == (case != "forgetful")


# ---- by formula -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "near", "far"), [("navigation", 1.0, 1.5), ("avoid", 1.0, 2.0)])
def test_a_goal_that_is_reached_is_held_until_it_is_clearly_farther(name: str, near: float, far: float) -> None:
    if name == "navigation":
        pilot: Any = navigation.NavigationPilot(_by_depth(), np.zeros((1, 3)), np.array([9.0]))
    else:
        pilot = avoid.AvoidPilot(avoid_policy(), np.zeros((1, 3)), np.array([9.0]))

    def holds(away: float, k: int) -> bool:
        way = np.array([[-away * 0.6, away * 0.8, 0.0]])
        held = pilot.command(at_rest(-way, time=np.array([0.1 * k]), number=np.array([k])))[0, :3]
        law = 2.0 * way[0] if name == "avoid" else way[0] / away * min(away, 0.5)
        return bool(np.abs(held - law).max() < 1e-9)

    steps = [(far, False), (near, False), (near - 1e-9, True), (far - 1e-9, True), (far, False), (far - 0.1, False)]
    assert [holds(away, k) for k, (away, _) in enumerate(steps)] == [expected for _, expected in steps]


def test_holding_is_no_faster_than_its_cap() -> None:
    pilot = navigation.NavigationPilot(_by_depth(), np.zeros((1, 3)), np.array([0.3]))
    held = pilot.command(at_rest(np.array([[0.0, -0.9, 0.0]])))
    np.testing.assert_allclose(held, [[0.0, 0.3, 0.0, 0.0]], atol=1e-12)
    slow = avoid.AvoidPilot(avoid_policy(), np.zeros((1, 3)), np.array([0.3]))
    moving = at_rest(np.array([[0.0, -0.9, 0.0]]), velocity=np.array([[0.1, 0.2, -0.3]]))
    np.testing.assert_allclose(slow.command(moving)[0, :3], [-0.28, 1.8 - 0.56, 0.84], atol=1e-12)


def test_a_far_goal_is_shown_at_eight_metres() -> None:
    near, far = (navigation.NavigationPilot(_by_depth(), np.array([[x, 0.0, 0.0]]), np.ones(1)) for x in (8.0, 80.0))
    between = navigation.NavigationPilot(_by_depth(), np.array([[7.9, 0.0, 0.0]]), np.ones(1))
    seen = at_rest(np.zeros((1, 3)))
    np.testing.assert_array_equal(near.command(seen), far.command(seen))
    assert not np.array_equal(near.command(seen), between.command(seen))


def test_thrust_is_limited_height_first() -> None:
    asked = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, -20.0], [100.0, 0.0, 100.0], [30.0, 40.0, 0.0], [0.0, 0.0, 20.19]])
    found = avoid.limited(asked, np)
    thrust = found + np.array([0.0, 0.0, 9.81])
    np.testing.assert_allclose(found[:2], [[1.0, -2.0, 0.5], [0.0, 0.0, 3.0 - 9.81]], atol=1e-9)
    np.testing.assert_allclose(thrust[2], [np.sqrt(1e-6), 0.0, 30.0], atol=1e-9)
    np.testing.assert_allclose(thrust[3], [*(np.sqrt(900.0 - 9.81**2) * np.array([0.6, 0.8])), 9.81], rtol=1e-12)
    np.testing.assert_allclose(thrust[4], [0.0, 0.0, 30.0], atol=1e-9)


def test_the_way_to_a_goal() -> None:
    goal, here = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 1.05], [0.3, 0.4, 0.0]]), np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 0]])
    wanted, direction = avoid.towards(goal, here, np.array([2.0, 2.0, 2.0]))
    np.testing.assert_allclose(wanted, [[1.2, 1.6, 0.0], [0.0, 0.0, 0.025], [0.3, 0.4, 0.0]], atol=1e-12)
    # Within ten centimetres the direction fades, instead of turning round.
    np.testing.assert_allclose(direction, [[0.6, 0.8, 0.0], [0.0, 0.0, 0.5], [0.6, 0.8, 0.0]], atol=1e-12)


def test_headings_turn_to_the_goal_a_share_per_decision_and_the_vehicle_after_them() -> None:
    pilot = avoid.AvoidPilot(avoid_policy(), np.array([[0.0, 50.0, 0.0], [-50.0, 0.1, 0.0]]), np.ones(2))
    place, heading = np.zeros((2, 3)), np.array([[1.0, 0.0], [1.0, 0.0]])
    goal = np.array([[0.0, 1.0], np.array([-50.0, 0.1]) / np.hypot(50.0, 0.1)])
    for k in range(8):
        rate = pilot.command(at_rest(place, time=np.full(2, 0.1 * k), number=np.full(2, k)))[:, 3]
        heading = 5.0 * heading + goal
        heading /= np.linalg.norm(heading, axis=1, keepdims=True)
        np.testing.assert_allclose(rate, np.clip(6.0 * np.arctan2(heading[:, 1], heading[:, 0]), -6.0, 6.0), atol=1e-12)


@pytest.mark.parametrize(("activation", "output"), [("tanh", "tanh"), ("elu", "clip"), ("relu", "linear")])
def test_networks_by_their_definition(activation: str, output: str) -> None:
    weights = list(drawn({"a": (7, 4), "b": (7,), "c": (5, 7), "d": (5,), "e": (3, 5), "f": (3,)}).values())
    weights[4] = weights[4] * 4.0
    x = np.random.default_rng(3).normal(0.0, 2.0, (6, 4))
    functions: dict[str, Callable[[Any], Any]] = {
        "tanh": np.tanh,
        "elu": lambda v: np.where(v > 0.0, v, np.exp(v) - 1.0),
        "relu": lambda v: v * (v > 0.0),
        "clip": lambda v: np.minimum(np.maximum(v, -1.0), 1.0),
        "linear": lambda v: v,
    }
    y = x
    for k in range(3):
        y = y @ weights[2 * k].astype(float).T + weights[2 * k + 1]
        y = functions[output if k == 2 else activation](y)
    found = network_output(weights, x.astype(np.float32), activation, output)
    np.testing.assert_allclose(found, y, atol=3e-6)


def test_an_avoiding_network_by_its_definition() -> None:
    policy, rng = avoid_policy(), np.random.default_rng(8)
    w = {name: x.astype(float) for name, x in policy.weights.items()}
    depth, state, memory = rng.uniform(0.1, 20.0, (4, 192)), rng.normal(size=(4, 10)), rng.normal(size=(4, 9))
    out, after = policy.decide(depth.astype(np.float32), state, memory.astype(np.float32))

    def leaky(x: Any) -> Any:
        return np.maximum(x, 0.05 * x)

    image = 3.0 / np.clip(depth, 0.3, 16.0) - 0.6
    seen = leaky(image @ w["image.weight"].T + w["image.bias"] + state @ w["state.weight"].T)
    new, old = seen @ w["input.weight"].T + w["input.bias"], memory @ w["memory.weight"].T + w["memory.bias"]
    reset, update = (1.0 / (1.0 + np.exp(-(new[:, k : k + 9] + old[:, k : k + 9]))) for k in (0, 9))
    fresh = np.tanh(new[:, 18:] + reset * old[:, 18:])
    kept = (1.0 - update) * fresh + update * memory
    np.testing.assert_allclose(after, kept, atol=1e-5)
    np.testing.assert_allclose(out, leaky(kept) @ w["out.weight"].T + w["out.bias"], atol=1e-5)


def test_what_is_seen_and_turned() -> None:
    depth = np.full((1, 48, 64), 9.0)
    depth[0, 0, 0], depth[0, 3, 3], depth[0, 4, 4], depth[0, 47, 63], depth[0, 40, 60] = 2.0, 1.0, np.nan, -1.0, 0.0
    depth[0, 8:12, 8:12] = np.inf
    found = pooled(depth).reshape(12, 16)
    assert (found[0, 0], found[1, 1], found[11, 15], found[2, 2], found[5, 5]) == (1.0, 9.0, 9.0, 16.0, 9.0)
    assert image_input(np.array([0.1, 0.3, 3.0, 99.0]), np.clip) == pytest.approx([9.4, 9.4, 0.4, 3.0 / 16.0 - 0.6])
    axis, vectors = np.array([[0.6, 0.8], [-1.0, 0.0]]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(turned(vectors, axis), [[2.2, 0.4, 3.0], [-1.0, -2.0, 3.0]], atol=1e-12)
    np.testing.assert_allclose(turned(turned(vectors, axis), axis, back=True), vectors, atol=1e-12)
    left, up = rays().reshape(2, 12, 16)
    # Square pixels; the middle of the first is half of one from the edge, at 0.82.
    np.testing.assert_allclose(left[:, 0], 0.82 * 15.0 / 16.0, rtol=1e-6)
    np.testing.assert_allclose(np.diff(left, axis=1), -0.82 / 8.0, rtol=1e-5)
    np.testing.assert_allclose(up[0], 0.82 / 8.0 * 5.5, rtol=1e-6)
    np.testing.assert_allclose(np.diff(up, axis=0), -0.82 / 8.0, rtol=1e-5)


def test_what_navigation_knows_by_its_definition() -> None:
    rng = np.random.default_rng(4)
    turns = Rotation.random(6, random_state=3)
    place, velocity, rate, goal = rng.normal(size=(4, 6, 3))
    command = rng.normal(size=(6, 4))
    found = known_state(place, velocity, turns.as_quat(), rate, goal, command)
    yaw, pitch, roll = turns.as_euler("ZYX").T
    level = Rotation.from_euler("z", yaw[:, None])
    way = level.inv().apply(goal - place)
    far = np.linalg.norm(way, axis=1, keepdims=True)
    wanted = [way / far, far, np.stack([roll, pitch, 0.0 * roll], 1), turns.inv().apply(velocity), rate, command]
    np.testing.assert_allclose(found, np.concatenate(wanted, 1), atol=1e-9)
    whole = commanded(np.array([[1.0, 0.0, 1.0], [-1.0, 1.0, -1.0], [1.0, 1.0, 0.0], [0.0, -1.0, 0.5]]))
    r = np.sqrt(2.0)
    wanted = [[2, 0, 0, np.pi / 3], [0, 0, 0, -np.pi / 3], [r, 0, r, 0], [r / 2, 0, -r / 2, np.pi / 6]]
    np.testing.assert_allclose(whole, wanted, atol=1e-12)
    image = np.full((1, 36, 64), 99.0)
    image[0, 2, 3], image[0, 3, 4], image[0, 35, 63] = 5.0, 0.1, -1.0
    shown = pooled_image(image).reshape(12, 16)
    assert (shown[0, 0], shown[1, 1], shown[11, 15]) == pytest.approx((0.0, 9.4, -0.3))


def test_cameras() -> None:
    check_snapshot(
        SNAPSHOT, {"avoid": avoid_camera(), "noisy": avoid_camera(0.02), "navigation": navigation_camera()}, part="cameras"
    )


def test_a_clock_decides_at_its_rate_and_where_a_flight_begins() -> None:
    clock = DecisionClock(50.0, 2)
    due = [clock.at(np.array([t, 1.0 + t])) for t in (0.0, 0.01, 0.01997, 0.01999, 0.03, 0.04, 0.0)]
    assert [x.tolist() for x, _ in due] == [[True, True], *[[False, False]] * 5, [True, True]]
    # A tick is early by up to a thousandth of a period.
    assert [bool(x[0]) for _, x in due] == [True, False, False, True, False, True, True]


# ---- who may fly it, and where --------------------------------------------------------------------------------------------


def test_rates_and_speeds_at_their_ends() -> None:
    check_rate(15.0, 15.0)
    check_rate(15.0 - 5e-7, 15.0)
    with pytest.raises(AirworthyError, match=r"decides at 15 Hz, the simulator takes commands at 14\.9 Hz"):
        check_rate(14.9, 15.0)
    with pytest.raises(AirworthyError, match="at 15 Hz"):
        check_rate(15.0 - 2e-6, 15.0)
    avoid.check_speed(avoid_policy(speed=4.0).contract, 4.5)
    with pytest.raises(AirworthyError, match=r"at up to 4\.6 m/s"):
        avoid.check_speed(avoid_policy(speed=4.0).contract, 4.6)
    navigation.check_speed(_by_depth(), 2.0)
    with pytest.raises(AirworthyError, match="at most 2 m/s"):
        navigation.check_speed(_by_depth(), 2.0 + 1e-8)


@pytest.mark.parametrize("kind", ["avoid", "navigation"])
def test_a_followed_path_leads_by_three_seconds(kind: str) -> None:
    quick: Any = SimpleNamespace(config=SimpleNamespace(control_rate=100.0), vehicles=[], env_count=2)
    pilot: Any = (
        avoid.avoid_pilot(avoid_policy(), quick, PATH)
        if kind == "avoid"
        else navigation.navigation_pilot(_by_depth(), quick, _slow())
    )
    path = PATH if kind == "avoid" else _slow()
    np.testing.assert_allclose(pilot.goal(np.array([0.0, 0.5])), path.sample(np.array([3.0, 3.5])).position)
    speeds = np.linalg.norm(path.sample(np.linspace(0.0, path.duration, 2001)).velocity, axis=1)
    np.testing.assert_allclose(pilot.speed, max(speeds.max(), 0.5), rtol=1e-4)
    slow: Any = SimpleNamespace(config=SimpleNamespace(control_rate=5.0), vehicles=[], env_count=2)
    with pytest.raises(AirworthyError, match="raise it"):
        (
            avoid.avoid_pilot(avoid_policy(), slow, PATH)
            if kind == "avoid"
            else navigation.navigation_pilot(_by_depth(), slow, _slow())
        )


def _slow() -> Any:
    return minimum_snap([Keyframe(0.0, (0.0,), (0.0,), (1.0,), (0.0,)), Keyframe(9.0, (0.5,), (0.0,), (1.5,), (0.0,))], 8)


def test_own_way_pilots_need_a_rate_and_nothing_else() -> None:
    pilot = avoid.GoalPilot(avoid_policy(), GOALS, SPEED)
    assert isinstance(pilot, OwnWayPilot)
    assert (pilot.causes, pilot.failed.tolist(), pilot.over.tolist()) == ([""] * 5, [False] * 5, [False] * 5)
    config: Any = SimpleNamespace(control_rate=15.0)
    assert pilot.configured(config) is config
    with pytest.raises(AirworthyError, match="15 Hz"):
        pilot.configured(SimpleNamespace(control_rate=14.0))  # type: ignore[arg-type]


def test_tasks_fly_at_their_level_and_rate() -> None:
    flyer, policy = vehicle("carl"), task_policy(weight=0.0)

    def build(level: str = "velocity", rate: float = 50.0, held: Any = policy) -> Any:
        config = SimpleNamespace(level=level, control_rate=rate)
        fake: Any = SimpleNamespace(config=config, vehicles=[flyer, flyer], env_count=2, rotor_count=4)
        return task_pilot(held, fake, PATH)

    assert build().level == "velocity"
    assert build(rate=50.0 - 5e-7).trajectory is PATH
    with pytest.raises(AirworthyError, match="commands 'velocity', the simulator takes 'attitude'"):
        build("attitude")
    with pytest.raises(AirworthyError, match="decides at 50 Hz, the simulator takes commands at 49 Hz"):
        build(rate=49.0)
    with pytest.raises(AirworthyError, match="decides at 50 Hz"):
        build(rate=50.0 - 2e-6)
    with pytest.raises(AirworthyError, match="gains 'lmf2' of 'bench'"):
        build(held=task_policy(gains="lmf2"))
    with pytest.raises(AirworthyError, match=r"expected \(env, 23\)"):
        policy.action(np.zeros((3, 4)))
    with pytest.raises(AirworthyError, match=r"expected \(env, 23\)"):
        policy.action(np.zeros(23))


def test_thrusts_in_newtons_are_for_vehicles_of_about_one_weight() -> None:
    flyer = vehicle("carl")
    weight = flyer.mass * flyer.gravity

    def check(share: float) -> None:
        task_files.check_task_vehicle(task_policy(level="rate_thrust", weight=weight / share).contract, flyer)

    for share in (0.801, 1.0, 1.199):
        check(share)
    for share in (0.799, 1.201):
        with pytest.raises(AirworthyError, match="train one for it"):
            check(share)
    motors: dict[str, Any] = {"level": "rotor_speed", "motor_state": flyer.motor_state}
    same = tuple((rotor.speed_min, rotor.speed_max) for rotor in flyer.rotors)
    task_files.check_task_vehicle(task_policy(limits=same, **motors).contract, flyer)
    with pytest.raises(AirworthyError, match="train one for it"):
        task_files.check_task_vehicle(task_policy(limits=((1.0, 2.0),) * 4, **motors).contract, flyer)
    task_files.check_task_vehicle(replace(task_policy().contract, gains="lmf2", vehicle="carl"), flyer)
