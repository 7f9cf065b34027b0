"""What a plan through gates must keep, and what comes of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.gates.planner.certificate import CLEARANCE, FLOOR, Certificate
from airworthy.gates.planner.window import GateRoute, Headings
from airworthy.trajectories import TRACKING_ENVELOPE, Gate, Limits, Trajectory

__all__ = ["BoundaryPlan", "PlanOptions"]

# -----------------------------------------------------------------------------------------------------------------------------
# Giving a segment more time where a plan fails its checks: times 1.1, at most ten times, else the plan is refused.
#
# Source: spec/boundary_predictor section 8. Speeds at the gates stay, so that neighbours are untouched and each segment can be
# mended by itself. More time does not always help: a segment flown much more slowly than its ends must brake and hurry again.

# Source: spec/boundary_predictor section 8, ours there: stretch by 1.1, at most 10 times.
FACTOR = 1.1
TRIES = 10
"""Most stretches of one segment."""


@dataclass(frozen=True)
class Stretched:
    """What became of a plan's segments, shapes (segments,)."""

    durations: Array
    """[s]"""
    counts: ArrayInt
    """How often each was stretched."""
    kept: ArrayBool
    """Whether its checks are proven now."""


def stretch(durations: Array, passes: Callable[[int, Array], bool], factor: float = FACTOR, tries: int = TRIES) -> Stretched:
    """Stretch each segment until it passes.

    Args:
        durations: To begin from [s].
        passes: Whether segment i passes with these durations; it may look at its own only.
        factor: Of one stretch.
        tries: Most stretches of one segment. One that never passes keeps its first duration: no other was better.
    """
    times, counts = durations.copy(), np.zeros(len(durations), np.int64)
    kept = np.zeros(len(durations), dtype=bool)
    for index in range(len(durations)):
        trial = durations.copy()
        # The power, not a running product: the same duration whatever was tried before.
        for count in range(tries + 1):
            trial[index] = durations[index] * factor**count
            if passes(index, trial):
                times[index], counts[index], kept[index] = trial[index], count, True
                break
        else:
            counts[index] = tries
    return Stretched(times, counts, kept)


# -----------------------------------------------------------------------------------------------------------------------------


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
    ranges: Array | None = None
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
    speed_cap: Annotated[float, Bound(0.0, np.inf, "m/s", above=True, infinite=True)] = np.inf
    """Most speed through any gate [m/s]; 1.0 keeps every question inside the paper's grid."""

    def __post_init__(self) -> None:
        check_fields(self, "PlanOptions.")


@dataclass(frozen=True)
class BoundaryPlan:
    """A plan, what is certain of it, and how it came about; n gates over all laps, n + 1 segments."""

    name: str
    gates: tuple[Gate, ...]
    """Every gate of every lap, in order."""
    route: GateRoute
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
    stretched: ArrayInt
    """Stretches of each segment, shape (n + 1,)."""
    lowered: ArrayInt
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
        """Return the trajectory; raises AirworthyError with the reason where the plan was refused."""
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
            "certificate": None if self.certificate is None else self.certificate.described(),
        }

    def __str__(self) -> str:
        head = "approved" if self.flyable else f"refused: {self.reason}"
        lines = [f"{self.name}: {head} ({len(self.gates)} gates in {self.lap_time:.2f} s)"]
        return "\n".join([*lines, *(self.certificate.sentences if self.certificate else ())])
