"""What EGO-Planner is made of: its numbers, as published."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields

__all__ = ["EgoConfig", "EgoOutcome", "EgoState"]


class EgoState(IntEnum):
    """What a flight's planner is about."""

    WAIT = 0
    """The trajectory is over: nothing more to do."""
    NEW = 1
    """A trajectory from the odometry is wanted."""
    FOLLOW = 2
    REPLAN = 3
    STOP = 4
    """Emergency: stay where the vehicle was."""


class EgoOutcome(IntEnum):
    """How one try to plan ended; the numbers are those of the native text."""

    FOUND = 0
    CLOSE = 1
    """The local target is nearer than `EgoConfig.close`."""
    NO_START = 2
    """No initial path of a usable number of points."""
    IN_OBSTACLE = 3
    """Occupied within the first interval."""
    IN_COLLISION = 4
    """Still in collision after the last restart."""
    REBOUNDS = 5
    """New obstacles were discovered too many times."""
    END_TAKEN = 6
    """The far end lies in an obstacle."""
    REFINED_INTO = 7
    """Free before, but not after, its time was stretched."""


@dataclass(frozen=True)
class EgoConfig:
    """Numbers of EGO-Planner; the specification's section 3. Speed and acceleration come with the mission."""

    spacing: float = 0.4
    """Distance of control points [m]."""
    horizon: float = 7.5
    """How far the local target is away [m]."""
    tolerance: float = 0.05
    """Share by which limits may be passed."""
    replan_after: float = 1.5
    """A trajectory is planned anew after so much of it [m]."""
    goal_near: float = 2.0
    """And no more when the goal is so near [m]."""
    emergency: float = 1.0
    """A collision nearer than this, with no way around, stops the vehicle [s]."""
    smooth: float = 1.0
    """Weight of squared jerk."""
    collision: float = 0.5
    """Weight of what is too near to obstacles."""
    feasibility: float = 0.1
    """Weight of what is over the limits."""
    fitness: float = 1.0
    """Weight of leaving the shape, in the refinement."""
    clearance: float = 0.5
    """Distance wanted from obstacles [m]."""
    close: float = 0.2
    """Nothing is planned to targets nearer than this [m]."""
    gradient: float = 0.01
    """A minimisation ends when its gradient is below this times max(1, |x|), x the free control points in the world; that
    of the refinement at a tenth. As published; 0.001 keeps more distance, wherever the world's origin is."""
    expansions: int = 200_000
    """Budget of one search."""
    evaluations: int = 300
    """Budget of one minimisation."""
    iterations: int = 200
    """Of one minimisation."""

    def __post_init__(self) -> None:
        check_fields(self, "EgoConfig.")
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and value > 0.0):
                raise AirworthyError(f"EgoConfig.{field.name} is {value!r}; expected a number above 0.")
        if 3.0 * self.horizon / self.spacing > 100.0:
            raise AirworthyError(
                f"EgoConfig has a horizon of {self.horizon} m, points {self.spacing} m apart; the ratio may be at most 33."
            )
