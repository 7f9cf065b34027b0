"""What a flight earns, a decision at a time, in seconds: the more of the plan it has flown than the clock, the better.

    r = progress - time - margin_cost * max(0, 1 - distance / margin)^2 - crash_cost - smoothness_cost |a - a-|^2

Progress is along the plan moved with the gates as they stand: the seconds that it would take the plan from the place before to
the one now, both seen from the side. A whole course is worth as much as a flight is faster than its plan. A gate that is passed
nearer to its edges than `margin` costs a share of `margin_cost`; where it is passed outside, or the flight is 3 m off its plan
or below the floor, `crash_cost` is paid, and the flight is over. (The form is Swift's, specification, learning by reward, 3.6;
its distance to the next gate, which is no measure of progress on a bend, is the plan's time here.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.schema import Bound, check_fields

__all__ = ["RaceReward", "close_share", "plan_progress"]

_SLOW = 0.5
"""Speed of the plan below which a place says less of how far one is along it [m/s]: at its start it stands; ours."""


@dataclass(frozen=True)
class RaceReward:
    """Weights; defaults are ours."""

    margin: Annotated[float, Bound(0.0, 5.0, "m", above=True)] = 0.3
    """Between the vehicle and an opening's edges, as it passes."""
    margin_cost: Annotated[float, Bound(0.0, 100.0, "s")] = 0.3
    """Cost of a passage that touches an edge; by the square of what is lacking."""
    crash_cost: Annotated[float, Bound(0.0, 1000.0, "s")] = 3.0
    """Cost of a flight that is over before its course is."""
    smoothness_cost: Annotated[float, Bound(0.0, 100.0, "s")] = 0.001
    """Cost of outputs that change by 1, by the square."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceReward.")

    def terms(
        self, progress: Array, time: float, distance: Array, over: ArrayBool, change: Array | ArrayF32
    ) -> dict[str, ArrayF32]:
        """Return the parts of the reward of a decision, each (n,), whose sum it is.

        Args:
            progress: Along the plan [s], (n,).
            time: It took [s].
            distance: Of the passage in it from the opening's edges [m], (n,); infinite where there was none.
            over: Flights that are lost with it, (n,).
            change: Of outputs, (n, 4).
        """
        parts = {
            "progress": progress - time,
            "margin": -self.margin_cost * close_share(distance, self.margin),
            "lost": np.where(over, -self.crash_cost, 0.0),
            "smooth": -self.smoothness_cost * np.sum(np.square(change), axis=1),
        }
        return {name: values.astype(np.float32) for name, values in parts.items()}


def close_share(distance: Array, margin: float) -> Array:
    """Return the share of the cost of closeness, (n,): 0 from `margin` on, 1 at the edge, no more outside.

    Args:
        distance: [m], (n,).
        margin: [m]
    """
    return np.asarray(np.clip(1.0 - distance / margin, 0.0, 1.0) ** 2)


def plan_progress(place: Array, reference: Array, velocity: Array) -> Array:
    """Return how far ahead of a point of the plan places are along it [s], (n,).

    Args:
        place: [m], (n, 3).
        reference: The plan's point [m], (n, 3).
        velocity: The plan's there [m/s], (n, 3).
    """
    speed = np.sum(velocity * velocity, axis=1)
    return np.asarray(np.sum((place - reference) * velocity, axis=1) / np.maximum(speed, _SLOW**2))
