"""What a plan through gates must keep, and what comes of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.boundary.certificate import CLEARANCE, FLOOR, Certificate
from airworthy.pilots.boundary.stretching import FACTOR, TRIES
from airworthy.pilots.boundary.window import Headings, Route
from airworthy.trajectories import TRACKING_ENVELOPE, Gate, Limits, Trajectory

__all__ = ["BoundaryPlan", "PlanOptions"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlanOptions:
    """What a plan must keep, and what is done where it does not."""

    limits: Limits = TRACKING_ENVELOPE
    """Eq. 3 by default."""
    clearance: float = CLEARANCE
    """From the path to every gate frame [m]."""
    floor: float = FLOOR
    """Least height of the path [m]."""
    headings: Headings = "given"
    """Through each gate along its own heading, or along the leg that reaches it."""
    outside: Literal["refuse", "clamp"] = "refuse"
    """What is done with a course beyond the predictor's ranges. The speed before a gate is always clamped, and counted."""
    ranges: NDArray[np.float64] | None = None
    """Least and greatest value of each field, (8, 2); None: the predictor's own (attribute `ranges`), else the paper's."""
    ramp: bool = True
    """Turn to each gate's heading in the first quarter of a segment, or as slowly as a limit on the yaw rate asks; else the
    first heading is kept."""
    yaw_offset: float = 0.0
    """Added to yaw [rad]; -pi/2 flies with body y first, as the paper does."""
    factor: float = FACTOR
    """Of one stretch of a segment's time."""
    tries: int = TRIES
    """Most stretches of one segment; 0: none."""
    lowerings: int = TRIES
    """How often the speed at the faster end of a segment that no stretch mends may be lowered by the same factor, and the rest
    asked again; 0: the plan is refused at once."""
    speed_cap: float = np.inf
    """Most speed through any gate [m/s]; 1.0 keeps every question inside the paper's grid."""


@dataclass(frozen=True)
class BoundaryPlan:
    """A plan, what is certain of it, and how it came about; n gates over all laps, n + 1 segments."""

    name: str
    gates: tuple[Gate, ...]
    """Every gate of every lap, in order."""
    route: Route
    trajectory: Trajectory | None
    """From rest to rest; None where the predictor had no answer."""
    certificate: Certificate | None
    speeds: Array
    """At start, gates and end [m/s], shape (n + 2,)."""
    durations: Array
    """Of the segments, the stop included [s], shape (n + 1,)."""
    predicted: Array
    """Durations before any stretch, shape (n + 1,)."""
    situations: Array
    """What the predictor was asked, before clamping, shape (n, 8)."""
    beyond: Array
    """How far outside its ranges that was, shape (n, 8)."""
    stretched: NDArray[np.int64]
    """Stretches of each segment, shape (n + 1,)."""
    lowered: NDArray[np.int64]
    """How often the speed through each gate was lowered, shape (n,)."""
    flyable: bool
    """Whether everything asked for is proven."""
    reason: str
    """Why not; empty where it is."""

    @property
    def clamped(self) -> int:
        """Situations of which a field was clamped."""
        return int(np.count_nonzero(np.any(self.beyond > 0.0, axis=-1)))

    @property
    def lap_time(self) -> float:
        """From the start to the last gate [s]; NaN without a trajectory."""
        return float(np.sum(self.durations[:-1])) if self.trajectory is not None else float("nan")

    def approved(self) -> Trajectory:
        """The trajectory; raises AirworthyError with the reason where the plan was refused."""
        if self.trajectory is None or not self.flyable:
            raise AirworthyError(f"The plan for {self.name} was refused: {self.reason}")
        return self.trajectory

    def report(self) -> dict[str, Any]:
        """Everything as data, for a file."""
        return {
            "course": self.name,
            "gates": len(self.gates),
            "flyable": self.flyable,
            "reason": self.reason,
            "lap_time_s": self.lap_time,
            "speeds_m_s": self.speeds.tolist(),
            "durations_s": self.durations.tolist(),
            "predicted_s": self.predicted.tolist(),
            "stretches": self.stretched.tolist(),
            "lowered": self.lowered.tolist(),
            "clamped": self.clamped,
            "situations": self.situations.tolist(),
            "certificate": None if self.certificate is None else self.certificate.told(),
        }

    def __str__(self) -> str:
        head = "approved" if self.flyable else f"refused: {self.reason}"
        lines = [f"{self.name}: {head} ({len(self.gates)} gates in {self.lap_time:.2f} s)"]
        return "\n".join([*lines, *(self.certificate.sentences if self.certificate else ())])
