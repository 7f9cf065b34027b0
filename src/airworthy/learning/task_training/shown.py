"""Flights of a task's policy as a table, from starts of the task: to look at, and to film."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.schema import Bound, number
from airworthy.learning.environments import LearningTask, VectorTask, learning_task
from airworthy.learning.environments.jointed import split_state
from airworthy.learning.environments.traits import traits_of
from airworthy.learning.gradient.evaluation import EVALUATION_SEED
from airworthy.learning.task_training.evaluation import simulated_dynamics
from airworthy.pilots import FlightPlan, fly
from airworthy.pilots.task_policy.pilot import TaskPolicy, read_task_policy, task_pilot
from airworthy.simulation import FlightTable, Simulator, SimulatorConfig
from airworthy.trajectories import Trajectory
from airworthy.vehicles import Vehicle, vehicle

__all__ = ["policy_flights"]

_PHYSICS_RATE = 1000.0
"""As policies are judged [Hz]."""


def policy_flights(
    policy: str | Path | TaskPolicy,
    flights: int = 1,
    seconds: float = 0.0,
    *,
    origin: Sequence[float] = (0.0, 0.0, 1.5),
    craft: Vehicle | None = None,
    task: LearningTask | None = None,
    seed: int = EVALUATION_SEED,
) -> FlightTable:
    """Return recorded flights of a policy that holds a place, from the first starts that a task draws.

    Args:
        policy: What `read_task_policy` gave, or its folder.
        flights: How many.
        seconds: How long [s]; 0: as long as the task's are.
        origin: Where in the world the task's origin is [m].
        craft: That flies; None: the policy's, of the catalogue.
        task: Whose starts; None: the registered one of the policy, with its options.
        seed: Of the starts.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: The vehicle is another, or a number is out of range.
    """
    held = policy if isinstance(policy, TaskPolicy) else read_task_policy(policy)
    contract = held.contract
    asked: Any = task or learning_task(contract.task, **dict(contract.options))
    seconds = number(seconds, "seconds", Bound(0.0, 1e4)) or asked.episode_steps / asked.rate
    flyer = craft or vehicle(contract.vehicle)
    starts = VectorTask(asked, flights, flyer, seed)
    config = SimulatorConfig(
        level=contract.level,
        control=contract.control,
        control_rate=contract.rate,
        physics_rate=_PHYSICS_RATE,
        **simulated_dynamics(traits_of(asked), flyer, 1.0 / _PHYSICS_RATE),
    )
    simulator = Simulator(flyer, config, flights, seed=seed)
    state = starts.state.astype(float)
    rotors = flyer.rotor_count
    parts = split_state(tuple(state), rotors, (len(state) - 13 - rotors) // 2)
    names = ("position", "velocity", "attitude", "rate", "rotor_speed", "joint", "joint_rate")
    begun = {name: np.array(part).T for name, part in zip(names, parts, strict=True) if part}
    begun["position"] = begun["position"] + np.asarray(origin, float)
    simulator.reset(**begun)
    place = np.zeros((1, 3, 1))
    place[0, :, 0] = origin
    still = Trajectory([0.0, seconds + 1.0], place, [0.0, seconds + 1.0], np.zeros((1, 1)))
    return fly(simulator, task_pilot(held, simulator, still), FlightPlan(seconds)).table
