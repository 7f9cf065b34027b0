"""A small policy, learnt once for all tests of motor policies, and random ones."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.learning.gradient import GradientOptions, GradientTraining
from airworthy.pilots import MotorPolicy
from airworthy.pilots.motor_policy.contract import MotorContract, layer_widths
from airworthy.trajectories import Trajectory
from airworthy.vehicles import vehicle


@cache
def learnt() -> GradientTraining:
    """Learns to hover in a second or two."""
    options = GradientOptions(env_count=64, window=100, hidden=16, iterations=300, learning_rate=1.5e-2)
    training = GradientTraining(vehicle("tinyprop"), options)
    while not training.finished:
        training.step()
    return training


def contract(**given: Any) -> MotorContract:
    """Of four unlike rotors."""
    limits = ((0.0, 800.0), (10.0, 810.0), (-100.0, 700.0), (5.0, 900.0))
    fields: dict[str, Any] = {"vehicle": "some", "limits": limits, "hover": (0.1, 0.2, 0.3, 0.4), "hidden": (16, 24)}
    return MotorContract(**{**fields, **given})


def weights(given: MotorContract, seed: int = 0) -> list[ArrayF32]:
    """Of the size of learnt ones."""
    rng, widths = np.random.default_rng(seed), layer_widths(given)
    found = []
    for columns, rows in pairwise(widths):
        found += [rng.normal(size=(rows, columns)) / np.sqrt(columns), rng.normal(size=rows) * 0.1]
    return [x.astype(np.float32) for x in found]


def policy(**given: Any) -> MotorPolicy:
    made = contract(**given)
    return MotorPolicy(made, tuple(weights(made)))


def held(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> Trajectory:
    """A place and a heading for ever."""
    return Trajectory([0.0, 1.0], [[[x], [y], [z]]], [0.0, 1.0], [[yaw]])
