"""Tasks that follow a path by the gradient of flights: torch derives the network, our adjoint the flights."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from airworthy.core.arrays import ArrayF32, Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.ops import sqrt, where
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.core.vectors import dot, matrix_columns, sub
from airworthy.learning.environments import Judgement, LearningTask, VectorTask, learning_task
from airworthy.learning.environments.tasks import MotorTracking, PathTracking
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.differentiable import DifferentiableSimulator
from airworthy.learning.gradient.trainer import initial_weights
from airworthy.learning.machine import Machine, TrainingRunOptions, machine_for
from airworthy.learning.task_training.path_options import FollowCost, PathGradientOptions
from airworthy.learning.task_training.policy import NetworkForm, contract_of_task
from airworthy.pilots.task_policy.contract import TaskContract
from airworthy.vehicles import Vehicle

__all__ = ["FollowedByMotors", "FollowedByThrust", "PathGradientTraining", "followed"]

_SOFT = 0.1
"""Within it norms of velocities are rounded off, as in `HoverCost` [m/s, rad/s]."""


class _Followed:
    """Judgement of a task by `FollowCost` instead of its reward, and a wider reach."""

    cost: FollowCost
    reach_m: float

    def judge(self: Any, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Terms of the cost, each with a minus: what is derived is minus their sum.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters, with path and age.
        """
        w, off, earlier = self.cost, *(sub(x[:3], self.reference(p.age + k, p)) for x, k in ((after, 1.0), (before, 0.0)))
        # Relative to the path's point: to stand still where the path goes on is not calm.
        relative = tuple((b - a) * self.rate for a, b in zip(earlier, off, strict=True))
        change: Scalar = 0.0
        for a, b in zip(action, past, strict=True):
            change = change + (a - b) * (a - b)
        terms = {
            "distance": -w.distance * _rounded(off, w.corner),
            "velocity": -w.velocity * _rounded(relative, _SOFT),
            "rate": -w.rate * _rounded(after[10:13], _SOFT),
            "upright": -w.upright * (1.0 - matrix_columns(after[6:10])[2][2]),
            "change": -w.change * change,
        }
        square = dot(off, off)
        near = where(square < 0.01, 1.0, 0.0)  # success of the task: within 10 cm
        return Judgement(terms, where(square > self.reach_m * self.reach_m, 1.0, 0.0), near)


def _rounded(vector: Vector, corner: float) -> Scalar:
    return sqrt(dot(vector, vector) + corner * corner)


@dataclass(frozen=True)
class FollowedByThrust(_Followed, PathTracking):
    """`track` with the cost that is descended."""

    cost: FollowCost = field(default_factory=FollowCost)
    reach_m: float = 2.0


@dataclass(frozen=True)
class FollowedByMotors(_Followed, MotorTracking):
    """`motor_track` with the cost that is descended."""

    cost: FollowCost = field(default_factory=FollowCost)
    reach_m: float = 2.0


def followed(task: LearningTask, options: PathGradientOptions) -> FollowedByThrust | FollowedByMotors:
    """Return a task with the cost that is descended instead of its reward.

    Args:
        task: That follows a path.
        options: With cost and reach.

    Raises:
        AirworthyError: It follows none.
    """
    kinds: dict[type[Any], type[Any]] = {PathTracking: FollowedByThrust, MotorTracking: FollowedByMotors}
    kind = kinds.get(type(task))
    if kind is None:
        raise AirworthyError(f"The task {task.name!r} follows no path; expected {' or '.join(k.name for k in kinds)}.")
    made: FollowedByThrust | FollowedByMotors = kind(**_options_of(task), cost=options.cost, reach_m=options.reach_m)
    return made


def _options_of(task: Any) -> dict[str, Any]:
    return {item.name: getattr(task, item.name) for item in fields(task)}


class PathGradientTraining:
    """A policy that learns to follow paths by the gradient of its flights.

    Args:
        vehicle: That is flown; None: the task's own.
        options: How.
        task: As it is judged; None: that of the options' name.

    Raises:
        AirworthyError: The task follows no path, or the vehicle cannot fly it.
    """

    trainer = "gradient"

    def __init__(self, vehicle: Vehicle | str | None, options: PathGradientOptions, task: LearningTask | None = None):
        self.task: LearningTask = learning_task(options.task) if task is None else task
        self.options = o = options
        # It flies nothing: it says what the task shows and commands, for the contract.
        self.environments = VectorTask(self.task, 16, vehicle, o.seed)
        self.vehicle = self.environments.vehicle
        keep = getattr(o, "keep", 1.0)
        self.flights = DifferentiableSimulator(
            self.vehicle, self._descended(), o.env_count, o.window, seed=o.seed, keep=keep, threads=1
        )
        self.machine: Machine = replace(machine_for(TrainingRunOptions(device="cpu")), threads=0)
        sizes = (self.flights.observation_count, *o.hidden, self.flights.action_count)
        matrices = [(rows, columns) for columns, rows in pairwise(sizes)]
        drawn = initial_weights(matrices, self.environments.hover_action.astype(float), o.seed)
        self._descent = Descent(self._begun(drawn))
        # Views: what Adam writes is what the network reads.
        self._parameters = [torch.from_numpy(w).requires_grad_() for w in self._descent.weights]
        self.iteration = self.lost = 0
        self._state = self.flights.begin()
        draws = uniforms(flight_key(o.seed, np.arange(o.env_count), 0), 0, Stream.SENSED, 4)[:, 0]
        # First flights are shorter, or all would end at once, again and again.
        self._left = np.ceil(draws * self._flight_steps()).astype(np.int64)
        """Decisions that are left of the present flights."""

    def _descended(self) -> LearningTask:
        """Task with what is descended as its reward."""
        return followed(self.task, self.options)

    def _flight_steps(self) -> int:
        """Decisions of a flight that begins now."""
        return int(self.options.flight_steps)

    def _begun(self, weights: list[ArrayF32]) -> list[ArrayF32]:
        """Weights that learning begins with, of those drawn."""
        return weights

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.iteration * self.options.window * self.options.env_count

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer, copies."""
        return [w.copy() for w in self._descent.weights]

    def contract(self) -> TaskContract:
        """Return the contract of the policy as it is now."""
        noted = {"trainer": self.trainer, "iterations": self.iteration, "env_steps": self.env_steps}
        return contract_of_task(self.environments, NetworkForm(self.options.hidden), {**noted, "options": asdict(self.options)})

    def prepare(self) -> None:
        """Build the kernel, where no step has."""
        self.flights.prepare()

    def action(self, seen: torch.Tensor) -> torch.Tensor:
        """Return actions (env, actions) of observations (env, observed), through which gradients flow."""
        for w, b in zip(self._parameters[::2], self._parameters[1::2], strict=True):
            seen = torch.tanh(seen @ w.T + b)
        return seen

    def step(self) -> float:
        """Learn from one window; returns its mean cost per decision."""
        o = self.options
        before = torch.get_num_threads()
        # Sums in one order on any machine; and threads of small products wait longer than they work.
        torch.set_num_threads(1)
        try:
            cost, after = self.flights.window(self.action, self._state)
            slopes = torch.autograd.grad(cost, self._parameters)
        finally:
            torch.set_num_threads(before)
        share = o.final_share + (1.0 - o.final_share) * 0.5 * (1.0 + math.cos(math.pi * self.iteration / o.iterations))
        self._descent.step([g.numpy() for g in slopes], o.learning_rate * share, o.clip, self.iteration)
        self.iteration += 1
        self._restart(after)
        return float(cost.detach())

    def _restart(self, after: torch.Tensor) -> None:
        """Begin flights anew that are lost, or have lasted."""
        lost = (self.flights.terminated | ~self.flights.sound).numpy()
        self.lost += int(lost.sum())
        self._left -= self.options.window
        over = lost | (self._left <= 0)
        self._left[over] = self._flight_steps()
        self._state = self.flights.begin(after, torch.from_numpy(over))

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of a step that came to this cost."""
        return {"cost": cost, "lost": self.lost}

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        arrays = {
            "weights": self._descent.flat,
            "moments": self._descent.moments,
            "state": self._state.numpy(),
            "episode": self.flights.episode,
            "left": self._left,
        }
        return Checkpoint(self.iteration, {k: np.array(a) for k, a in arrays.items()}, {"lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays = checkpoint.arrays
        self._descent.flat[:], self._descent.moments[:] = arrays["weights"], arrays["moments"]
        self._state = torch.from_numpy(np.array(arrays["state"]))
        self.flights.episode[:], self._left[:] = arrays["episode"], arrays["left"]
        self.iteration, self.lost = checkpoint.number, int(checkpoint.notes["lost"])
