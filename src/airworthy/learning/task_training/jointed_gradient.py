"""Tasks of vehicles with joints by the gradient of flights: through articulated equations, joint laws and stops."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np
import torch

from airworthy.core.arrays import ArrayBool, ArrayF32, Scalar, Vector
from airworthy.core.ops import exp, maximum, sqrt, where
from airworthy.core.vectors import dot, matrix_columns
from airworthy.learning.environments import Judgement, LearningTask
from airworthy.learning.environments.tasks import ChainHover, Gap, MorphyHover
from airworthy.learning.task_training.jointed_options import JointedCost, JointedGradientOptions
from airworthy.learning.task_training.path_gradient import PathGradientTraining
from airworthy.vehicles import Vehicle

__all__ = ["FunnelledGap", "HeldChain", "HeldMorphy", "JointedGradientTraining", "descended"]

_SOFT = 0.1
"""Within it norms of velocities are rounded off [m/s, rad/s]."""
_GAP_SHARE = 0.3
"""Of the weight of the distance, in `gap`, whose flights begin six metres away."""
_HASTE = 2.0
"""Of the speed above that of the cruise [s/m]."""
_FUNNEL = 12.0
"""Of how far spheres are outside of the funnel, as the length of a vector [1/m]."""
_UPRIGHT_LEAST = 0.54
"""Cosine of the tilt below which a flight is lost and starts anew."""


class _Held:
    """Judgement of a task by `JointedCost` instead of its reward, and a wider reach."""

    cost: JointedCost
    reach_m: float

    def judge(self: Any, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return terms of the cost, each with a minus: what is derived is minus their sum.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        w, up = self.cost, matrix_columns(after[6:10])[2][2]
        speeds = after[13 + len(p.rotor_thrust) + len(p.joint_target) :]
        change: Scalar = 0.0
        for a, b in zip(action, past, strict=True):
            change = change + (a - b) * (a - b)
        terms = {
            "distance": -w.distance * _rounded(after[:3], w.corner),
            "velocity": -w.velocity * _rounded(after[3:6], _SOFT),
            "rate": -w.rate * _rounded(after[10:13], _SOFT),
            "upright": -w.upright * (1.0 - up),
            "joint_rate": -w.joint_rate * sqrt(_squares(speeds) + _SOFT * _SOFT),
            "change": -w.change * change,
        }
        square = dot(after[:3], after[:3])
        lost = where(square > self.reach_m * self.reach_m, 1.0, where(up < _UPRIGHT_LEAST, 1.0, 0.0))
        return Judgement(terms, lost, where(square < 0.01, 1.0, 0.0))


def _rounded(vector: Vector, corner: float) -> Scalar:
    return sqrt(dot(vector, vector) + corner * corner)


def _squares(values: Vector) -> Scalar:
    total: Scalar = 0.0
    for x in values:
        total = total + x * x
    return total


@dataclass(frozen=True)
class HeldMorphy(_Held, MorphyHover):
    """`morphy_hover` with the cost that is descended."""

    cost: JointedCost = field(default_factory=JointedCost)
    reach_m: float = 4.0


@dataclass(frozen=True)
class HeldChain(_Held, ChainHover):
    """`chain_hover` with the cost that is descended."""

    cost: JointedCost = field(default_factory=JointedCost)
    reach_m: float = 4.0


@dataclass(frozen=True)
class FunnelledGap(Gap):
    """`gap` with the cost that is descended: the wall is soft, so that flights that touch it show on which side its slot is."""

    cost: JointedCost = field(default_factory=JointedCost)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return terms of the cost, each with a minus.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        w, off, up = self.cost, self.off(after, p), matrix_columns(after[6:10])[2][2]
        speeds = after[13 + len(p.rotor_thrust) + len(p.joint_target) :]
        change: Scalar = 0.0
        for a, b in zip(action, past, strict=True):
            change = change + (a - b) * (a - b)
        # Slopes of all terms are bounded, or a few flights that tumble would be all that is learnt from.
        hasty = maximum(_rounded(after[3:6], _SOFT) - self.cruise_m_s, 0.0)
        outside = sqrt(self.tight(after, p) + _SOFT * _SOFT) - _SOFT
        terms = {
            "distance": -w.distance * _GAP_SHARE * _rounded(off, _SOFT),
            "speed": -_HASTE * hasty,
            "velocity": -w.velocity * _rounded(after[3:6], _SOFT) * exp(-2.0 * dot(off, off)),
            "rate": -w.rate * _rounded(after[10:13], _SOFT),
            "upright": -w.upright * (1.0 - up),
            "joint_rate": -w.joint_rate * sqrt(_squares(speeds) + _SOFT * _SOFT),
            "change": -w.change * change,
            "funnel": -_FUNNEL * outside,
        }
        far = where(dot(off, off) > (6.0 + self.crash_m) * (6.0 + self.crash_m), 1.0, 0.0)
        return Judgement(terms, where(up < _UPRIGHT_LEAST, 1.0, far), where(dot(off, off) < 0.01, 1.0, 0.0))


def descended(task: LearningTask, options: JointedGradientOptions) -> LearningTask:
    """Return a task as it is descended: with a cost instead of its reward.

    Args:
        task: Of vehicles with joints.
        options: With cost and reach.
    """
    plain = {item.name: getattr(task, item.name) for item in fields(task)}  # type: ignore[arg-type]
    if isinstance(task, Gap):
        return FunnelledGap(**plain, cost=options.cost)
    kind: Any = HeldChain if isinstance(task, ChainHover) else HeldMorphy
    made: LearningTask = kind(**plain, cost=options.cost, reach_m=options.reach_m)
    return made


class JointedGradientTraining(PathGradientTraining):
    """A policy that learns a task of a vehicle with joints by the gradient of its flights.

    Args:
        vehicle: That is flown; None: the task's own.
        options: How.
        task: As it is judged; None: that of the options' name.

    Raises:
        AirworthyError: The vehicle has no joints, or cannot fly the task.
    """

    options: Any

    def __init__(self, vehicle: Vehicle | str | None, options: JointedGradientOptions, task: LearningTask | None = None):
        # Those of paths have other costs; all that both trainings read is the same.
        super().__init__(vehicle, cast(Any, options), task)

    def _descended(self) -> LearningTask:
        return descended(self.task, self.options)

    def _window(self) -> tuple[torch.Tensor, torch.Tensor]:
        # A flight that is lost teaches nothing more: what tumbles has slopes beside which those of all others vanish.
        flights, state = self.flights, self._state
        seen, going = flights.observe(state), torch.ones(flights.env_count, dtype=torch.bool)
        total = torch.zeros((), dtype=flights.dtype)
        for _ in range(flights.horizon):
            state, seen, cost = flights.step(state, self.action(seen))
            total = total + torch.where(going, cost, 0.0).sum()
            going = going & ~flights.terminated & flights.sound
            state, seen = torch.where(going, state, state.detach()), torch.where(going[:, None], seen, seen.detach())
        self._gone = (~going).numpy()
        return total / (flights.horizon * flights.env_count), state.detach()

    def _lost(self) -> ArrayBool:
        return np.asarray(self._gone)

    def _flight_steps(self) -> int:
        o = self.options
        grown = min(1.0, 2.0 * self.iteration / o.iterations)
        return round(o.first_steps + grown * max(0, o.flight_steps - o.first_steps))

    def _begun(self, weights: list[ArrayF32]) -> list[ArrayF32]:
        # Newtons beside radians: each input counts by its size at starts, so that none floods the first layer.
        seen = self.flights.observe(self.flights.begin()).numpy()
        self.flights.episode[:] -= 1
        size = np.maximum(np.sqrt(np.mean(np.square(seen), axis=0)), self.options.least_size)
        return [(weights[0] / size).astype(np.float32), *weights[1:]]
