"""What learns: acceptance items 1 to 4 and 9 of learning by reward and by gradient (specification, section 9), in a minute.

Each figure stands by itself: rewards by formulas written here, slopes by central differences, a policy judged as
`airworthy train hover` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.tracing import adjoint
from airworthy.learning import (
    GradientOptions,
    GradientTraining,
    HoverProtocol,
    HoverTask,
    Judgement,
    NativePpo,
    PpoOptions,
    VectorTask,
    learning_task,
)
from airworthy.learning.gradient import HoverStart
from airworthy.learning.gradient.dynamics import BODY
from airworthy.learning.gradient.evaluation import figures, fly_hover
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.vehicles import vehicle
from airworthy.verification.learning.policy import has_torch
from airworthy.verification.published import Figure, below, zero

__all__ = ["learning_figures", "learning_left_out"]

_DERIVED = ("hover", "position_setpoint", "position_setpoint_velocity")
"""By rotors, by attitude and by velocity: the controller is a part of what is derived."""
_SPAN = 1e-5
"""Of central differences: their own error is near 1e-10 of numbers of size 1."""


def learning_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; without torch its PPO is left out.

    Args:
        everything: Learn to hover with five vehicles instead of one.
    """
    yield from reward_figures()
    yield from adjoint_figures()
    yield from truncation_figures()
    yield from stopping_figures()
    if has_torch():
        yield parity_figure()
    for name in ("cf2x_L250", "tinyprop", "carl", "x500", "lmf2") if everything else ("cf2x_L250",):
        yield from hover_figures(name)
    yield throughput_figure()


def learning_left_out() -> list[str]:
    """Return what cannot be measured here, in sentences."""
    return [] if has_torch() else ["torch is not installed: PPO in torch was not set beside the native one."]


# ---- rewards and their slopes ----------------------------------------------------------------------------------------


def _flights(name: str, steps: int = 5) -> tuple[VectorTask, Array, Array]:
    """Flights of a task after a few random steps; the state before the last of them, and its action, (rows, env)."""
    flights, rng = VectorTask(name, 64, seed=1), np.random.default_rng(2)
    before = action = np.zeros(0)
    for _ in range(steps):
        before = flights.state.astype(float).copy()
        action = np.clip(flights.hover_action + 0.1 * rng.normal(size=(64, flights.action_count)), -0.9, 0.9)
        flights.step(action)
    return flights, before, np.asarray(action.T, float)


def reward_figures() -> Iterator[Figure]:
    """Compare rewards of the velocity task with its published formulas, written out here once more."""
    flights, before, action = _flights("position_setpoint_velocity")
    after, past = flights.state.astype(float), np.roll(action, 1, axis=1)
    p = flights.parameters_of_flight(flights.nominal.astype(float)[:, None], tuple(past))
    judged = flights.task.judge(tuple(before), tuple(after), tuple(action), tuple(past), p)
    d, d_before = (np.linalg.norm(x[:3], axis=0) for x in (after, before))
    x, y, z, w = after[6:10]
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    place = 2.0 * np.exp(-(d**2)) + 3.0 * np.exp(-10.0 * d**2) + 3.0 * np.exp(-50.0 * d)
    effort = (0.2 * (np.exp(-4.0 * np.abs(action)) - 1.0)).sum(axis=0)
    change = (0.3 * (np.exp(-6.0 * np.abs(action - past)) - 1.0)).sum(axis=0)
    speed, closer = np.exp(-3.0 * (after[3:6] ** 2).sum(axis=0)), 400.0 * (d_before - d)
    terms = (
        place,
        (20.0 - d) / 40.0,
        place * (speed + effort + closer / 10.0),
        effort,
        change,
        closer,
        2.0 * np.exp(-3.0 * np.abs(yaw)),
    )
    wrong = np.max(np.abs(sum(judged.terms.values()) - sum(terms)))
    yield below("Learning 1, position_setpoint_velocity: reward off its published formulas", float(wrong), 1e-6)


def adjoint_figures() -> Iterator[Figure]:
    """Compare slopes of a policy step's reward by reverse mode with central differences, controller and physics included."""
    for name in _DERIVED:
        flights, before, action = _flights(name)
        error = _slope_error(flights, before, action)
        yield below(f"Learning 3, {name}: slopes of a policy step off central differences", error, 1e-6)


def _slope_error(flights: VectorTask, before: Array, action: Array) -> float:
    """Return the largest error of slopes by state and action, as a share of the largest slope by the same number."""
    rows, own = len(before), len(before) + len(action)
    inputs = [*before, *action, *np.tile(flights.nominal.astype(float)[:, None], (1, before.shape[1]))]

    def measure(*x: Any) -> Any:
        """Where the step leads, as one smooth number: rewards have cusps, at which no difference is a slope."""
        p = flights.parameters_of_flight(x[own:], x[rows:own])
        total = 0.0
        for k, value in enumerate(flights.shape.flown(x[:rows], x[rows:own], p)):
            # Rotor states are hundreds: in a sum of squares they would leave the others to the last digits.
            value = value * (0.001 if k >= BODY else 1.0)
            total = total + value * value * (0.1 + 0.01 * k)
        return total

    _, slopes = adjoint(lambda *x: [measure(*x)], inputs, [np.ones(before.shape[1])])
    worst = 0.0
    for k, slope in enumerate(slopes[:own]):
        span = _span(inputs[k])
        high, low = ([*inputs[:k], inputs[k] + way * span, *inputs[k + 1 :]] for way in (1.0, -1.0))
        differences = (np.asarray(measure(*high)) - np.asarray(measure(*low))) / (2.0 * span)
        # The median over flights: beside a rotor's switch from rise to fall a difference is no slope.
        worst = max(worst, float(np.median(np.abs(differences - slope)) / max(1.0, np.max(np.abs(differences)))))
    return worst


def _span(values: Array) -> float:
    return _SPAN * max(1.0, float(np.max(np.abs(values))))


# ---- PPO -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Constant(HoverTask):
    """Every step is worth 1, and flights are only ever cut off."""

    name: ClassVar[str] = "constant_reward"
    episode_steps: int = 10

    def judge(self, before: Any, after: Any, action: Any, past: Any, p: Any) -> Judgement:
        return Judgement({"one": 1.0 + 0.0 * after[0]}, 0.0 * after[0], 0.0 * after[0])


def truncation_figures() -> Iterator[Figure]:
    """Learn the value of a constant reward across time limits: r / (1 - gamma), as if there were none."""
    updates, count = 200, 64
    usual: dict[str, Any] = {"hidden": (16, 8), "rollout": 10, "minibatches": 1, "epochs": 8, "learning_rate": 5e-3}
    # A rate that falls to nothing, as in every training: at one that stays the value wanders about what it is to be.
    options = PpoOptions(**usual, gamma=0.9, value_weight=1.0, decay_steps=updates * count * usual["rollout"])
    learner = NativePpo(VectorTask(_Constant(), count), options)
    for _ in range(updates):
        learner.update()
    value, wanted = (
        float(np.mean(learner.value(learner.environments.observation))),
        options.reward_scale / (1.0 - options.gamma),
    )
    yield below(
        "Learning 4, value of a constant reward with time limits: off r / (1 - gamma)",
        100.0 * abs(value / wanted - 1.0),
        1.0,
        "%",
    )


_SMALL: dict[str, Any] = {"hidden": (16, 8), "rollout": 8, "minibatches": 2, "epochs": 2, "seed": 3}


def _learner(threads: int = 1) -> NativePpo:
    task = learning_task("motor_command", episode_steps=20)
    return NativePpo(VectorTask(task, 64, seed=3), PpoOptions(**_SMALL, noise_memory=0.9, normalize_value=True), threads)


def stopping_figures() -> Iterator[Figure]:
    """Stop a training by reward and one by gradient, go on, and count the parameters that differ from those of a whole one."""
    whole, part, after = _learner(2), _learner(), _learner()
    for _ in range(6):
        whole.update()
    for _ in range(3):
        part.update()
    after.restore(part.save())
    for _ in range(3):
        after.update()
    yield zero(
        "Learning 2, PPO stopped and gone on with: parameters that differ", int(np.sum(whole.parameters != after.parameters))
    )
    options = GradientOptions(env_count=16, window=20, hidden=16, iterations=6)
    first, second, third = (GradientTraining(vehicle("cf2x_L250"), options) for _ in range(3))
    for _ in range(6):
        first.step()
    for _ in range(3):
        second.step()
    third.restore(second.save())
    for _ in range(3):
        third.step()
    differ = sum(int(np.sum(a != b)) for a, b in zip(first.weights, third.weights, strict=True))
    yield zero("Learning 2, gradient stopped and gone on with: weights that differ", differ)


def parity_figure() -> Figure:
    """Learn ten updates natively and in torch, and compare all parameters."""
    from airworthy.learning import TorchPpo, TorchPpoOptions

    task = learning_task("motor_command", episode_steps=20)
    native = NativePpo(VectorTask(task, 64, seed=3), PpoOptions(**_SMALL))
    torch = TorchPpo(VectorTask(task, 64, seed=3), TorchPpoOptions(**_SMALL))
    for _ in range(10):
        native.update()
        torch.update()
    theirs = np.concatenate([x.detach().numpy().ravel() for x in torch.model.ordered_parameters()])
    off = float(np.max(np.abs(theirs - native.parameters)))
    return below("Learning 5.2, PPO in torch after ten updates: parameters off the native ones", off, 1e-4)


# ---- what is learnt, and how fast ------------------------------------------------------------------------------------


def hover_figures(name: str) -> Iterator[Figure]:
    """Learn to hover from nothing by gradient, and judge it in the simulator.

    Args:
        name: Of a vehicle of the catalogue.
    """
    item = vehicle(name)
    training = GradientTraining(item, GradientOptions())
    training.prepare()
    begun = time.process_time()
    while not training.finished:
        training.step()
    took = time.process_time() - begun
    found = figures(fly_hover(item, LearntPolicy.of(training), HoverProtocol(), HoverStart(), HoverProtocol().flights))
    kept, error = found["kept_percent"], found["median_error_m"]
    what = f"Learning 9, {name} learns to hover by gradient"
    yield Figure(f"{what}: flights kept", kept, "at least 99.5", bool(kept >= 99.5), "%")
    yield below(f"{what}: median error", float("inf") if error is None else 100.0 * error, 2.0, "cm")
    yield _told(f"{what}: processor's time", took, "s")


def throughput_figure() -> Figure:
    """Measure policy steps of drawn vehicles with reward, reset and observation, on one thread."""
    flights = VectorTask("motor_command", 4096, seed=0, threads=1)
    actions = np.tile(flights.hover_action, (4096, 1))
    count = _repeat(lambda: flights.step(actions), 0.3)
    return _told("Learning 7, motor_command: env-steps of 4,096 environments per processor second", 4096e-6 * count, "M/s")


def _repeat(call: Callable[[], object], seconds: float) -> float:
    """Return calls per processor second."""
    call()
    begun, count = time.process_time(), 0
    while time.process_time() - begun < seconds:
        call()
        count += 1
    return count / (time.process_time() - begun)


def _told(name: str, measured: float, unit: str) -> Figure:
    """Return a figure that depends on the machine and its load: told, and held against nothing."""
    return Figure(name, measured, "told, no bar", True, unit)
