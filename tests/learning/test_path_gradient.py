"""Paths by the gradient of flights: cost and slopes checked, the same bits stopped, a policy that flies a course."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.learning import HoverConfig
from airworthy.learning.environments import VectorTask, learning_task
from airworthy.learning.task_training.config import _BY_GRADIENT, TaskConfig
from airworthy.learning.task_training.evaluation import TaskProtocol
from airworthy.learning.task_training.path_options import FollowCost, PathGradientOptions
from airworthy.learning.task_training.run import learn_task
from airworthy.pilots import read_task_policy, task_pilot
from airworthy.pilots.pilot import observe
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.trajectories import Trajectory
from airworthy.vehicles import vehicle

pytest.importorskip("torch")

import torch

from airworthy.learning.gradient.differentiable import DifferentiableSimulator
from airworthy.learning.task_training.path_gradient import PathGradientTraining, followed

TINY: dict[str, Any] = {"hidden": (16, 8), "env_count": 16, "window": 10, "iterations": 4, "seed": 3}


def test_the_motor_task_sees_the_body_rate_and_commands_rotors() -> None:
    motors, thrust = learning_task("motor_track"), learning_task("track")
    rng = np.random.default_rng(0)
    state, points = rng.normal(size=17), [tuple(rng.normal(size=3)) for _ in range(10)]
    seen = np.array(motors.observe_path(points, tuple(state), None))  # type: ignore[attr-defined]
    theirs = np.array(thrust.observe_path(points, tuple(state), None))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(seen, [*theirs, *(0.1 * state[10:13])])
    p = SimpleNamespace(rotor_min=(0.0, 100.0), rotor_max=(2000.0, 2100.0))
    np.testing.assert_allclose(motors.command((-1.0, 0.5), p), [0.0, 1600.0])


@pytest.mark.parametrize("name", ["track", "motor_track"])
def test_the_cost_by_its_formula(name: str) -> None:
    weights = FollowCost(distance=2.0, velocity=0.3, rate=0.07, upright=0.11, change=0.13, corner=0.04)
    task = followed(learning_task(name, path="eight_slow"), PathGradientOptions(name, cost=weights))
    rng = np.random.default_rng(1)
    before, after, action, past = rng.normal(size=17), rng.normal(size=17), rng.normal(size=4), rng.normal(size=4)
    before[6:10], after[6:10] = (q / np.linalg.norm(q) for q in (before[6:10], after[6:10]))
    p = SimpleNamespace(age=40.0, memory=(0.0, *(1.0,) * 13, 0.0, 0.0, 0.0))
    judged = task.judge(tuple(before), tuple(after), tuple(action), tuple(past), p)
    # The slow eight: sin t, sin t cos t, a turn in 15 s.
    points = [np.array([np.sin(w), np.sin(w) * np.cos(w), 0.0]) for w in (2 * np.pi / 15 * t for t in (0.4, 0.41))]
    off, relative = after[:3] - points[1], (after[:3] - points[1] - before[:3] + points[0]) * 100.0
    tilt = 2.0 * (after[6] ** 2 + after[7] ** 2)
    expected = {
        "distance": -2.0 * np.sqrt(off @ off + 0.04**2),
        "velocity": -0.3 * np.sqrt(relative @ relative + 0.01),
        "rate": -0.07 * np.sqrt(after[10:13] @ after[10:13] + 0.01),
        "upright": -0.11 * tilt,
        "change": -0.13 * np.sum((action - past) ** 2),
    }
    assert {k: float(v) for k, v in judged.terms.items()} == pytest.approx(expected, rel=1e-9)
    assert float(judged.terminated) == float(np.linalg.norm(off) > 2.0)


def test_slopes_are_those_of_differences() -> None:
    """Of the mean cost of a window by the action that is held through it, in float64, with the controller inside."""
    for name in ("track", "motor_track"):
        task = followed(learning_task(name), PathGradientOptions(name))
        flights = DifferentiableSimulator(None, task, 2, 4, seed=1, precision="float64")
        state, held = flights.begin(), flights.hover_action + 0.05

        def cost(held: Any, flights: Any = flights, state: Any = state) -> Any:
            return flights.window(lambda _: held, state)[0]

        moved = held.clone().requires_grad_()
        slope = torch.autograd.grad(cost(moved), moved)[0]
        step = 1e-5
        for k in range(4):
            way = torch.zeros_like(held)
            way[1, k] = step
            by_difference = (cost(held + way) - cost(held - way)) / (2.0 * step)
            assert float(slope[1, k]) == pytest.approx(float(by_difference), rel=2e-5, abs=1e-9)


def test_a_stopped_training_goes_on_to_the_same_bits() -> None:
    options = PathGradientOptions(**TINY, flight_steps=25)
    whole, part = options.begin(None), options.begin(None)
    for _ in range(4):
        whole.step()
    for _ in range(2):
        part.step()
    other = replace(options, seed=3).begin(None)
    other.restore(part.save())
    for _ in range(2):
        other.step()
    for mine, theirs in zip(whole.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (other.iteration, other.env_steps, other.lost) == (4, 4 * 160, whole.lost)
    # Flights began anew on the way, in both alike.
    np.testing.assert_array_equal(whole.flights.episode, other.flights.episode)
    assert whole.flights.episode.max() > 0


def test_it_learns_to_follow() -> None:
    made = PathGradientTraining(None, PathGradientOptions(env_count=32, window=60, iterations=60, seed=1))
    costs = [made.step() for _ in range(60)]
    # Hover that begins with a tilt drifts off: what is learnt first is to stay.
    assert np.mean(costs[-10:]) < 0.6 * np.mean(costs[:10])


def test_its_folder_holds_a_policy_that_flies_a_course(tmp_path: Path) -> None:
    options = PathGradientOptions(**TINY)
    work = options.begin(None, learning_task("motor_track", episode_steps=50))
    made = learn_task(work, tmp_path / "run", TaskProtocol(flights=4, mpc_flights=0))
    assert (made.figures["trainer"], made.figures["task"], made.figures["level"]) == ("gradient", "motor_track", "rotor_speed")
    assert "torch" in made.figures["versions"]
    again = options.begin(None)
    while not again.finished:
        again.step()
    policy = read_task_policy(made.folder)
    for mine, theirs in zip(policy.weights, again.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    seen = VectorTask("motor_track", 16, seed=3).observation
    np.testing.assert_allclose(policy.action(seen), again.action(torch.from_numpy(seen.copy())).detach().numpy(), atol=1e-6)
    c = policy.contract
    simulator = Simulator(vehicle("cf2x_L250"), SimulatorConfig(level=c.level, control=c.control, control_rate=c.rate), 2)
    at = np.array([[[0.0], [0.0], [1.0]]]).reshape(1, 3, 1)
    pilot = task_pilot(policy, simulator, Trajectory([0.0, 100.0], at, [0.0, 100.0], np.zeros((1, 1))))
    simulator.step(pilot.command(observe(simulator, pilot.observes)))
    assert np.isfinite(simulator.position).all()


def test_what_is_refused() -> None:
    with pytest.raises(AirworthyError, match="The task 'hover' follows no path; expected track or motor_track"):
        PathGradientOptions("hover").begin(None)
    with pytest.raises(AirworthyError, match="window is 1"):
        PathGradientOptions(window=1)


@pytest.mark.parametrize("task", sorted(_BY_GRADIENT))
def test_the_number_of_decisions_is_kept_by_the_gradient_too(task: str) -> None:
    """In whole gradient steps, each of a window of all flights; left out it is what is usual."""
    usual: Any = TaskConfig(trainer="gradient").training(task, 0)
    per_step = usual.window * usual.env_count
    for steps in (1, per_step, per_step + 1, 1_000_000):
        made: Any = TaskConfig(trainer="gradient", steps=steps).training(task, 0)
        assert made == replace(usual, iterations=made.iterations)
        assert (made.iterations - 1) * per_step < steps <= made.iterations * per_step


def test_what_the_gradient_does_not_read_points_to_what_does() -> None:
    with pytest.raises(AirworthyError, match=r"--hidden 8 8 changes nothing .* learn by reward, without --trainer gradient"):
        TaskConfig(trainer="gradient", hidden=(8, 8))
    with pytest.raises(AirworthyError, match=r"--steps 5 changes nothing .*: say how many with --iterations"):
        HoverConfig(steps=5)
