"""Under which conditions flights of a task are learnt from: delays, starts at the goal, first ages, and how hard they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import SHARE, Bound, check_fields

__all__ = ["Curriculum", "CurriculumState", "FlightConditions"]

# Ours: a third of a second at 100 Hz.
_DELAY_MAX = 32


@dataclass(frozen=True)
class FlightConditions:
    """Drawn for each flight by itself; the same flight gets the same numbers in any batch."""

    observation_delay: tuple[int, int] = (0, 0)
    """Least and most policy steps by which observations are late, uniform; until then a flight sees its first one."""
    action_delay: tuple[int, int] = (0, 0)
    """Least and most policy steps by which actions are late, uniform; until then hover is commanded."""
    guidance: Annotated[float, SHARE] = 0.0
    """Share of flights that begin exactly at the goal, at rest."""
    staggered: bool = False
    """First flights begin at ages drawn over an episode, so that time limits do not cut all of them off at once."""
    ground: Annotated[float | None, Bound(-1e4, 1e4, "m")] = None
    """Height of a level ground, where a flight ends as soon as the vehicle's body touches it, with the task's own value of a
    crash where it has one; None: there is no ground. Flights that begin in it end with their first step."""

    def __post_init__(self) -> None:
        check_fields(self, "FlightConditions.")
        for name in ("observation_delay", "action_delay"):
            least, most = getattr(self, name)
            if not 0 <= least <= most <= _DELAY_MAX:
                raise AirworthyError(
                    f"FlightConditions.{name} is {getattr(self, name)}; expected least and most steps, from 0 to {_DELAY_MAX}."
                )

    @property
    def drawn(self) -> bool:
        """Whether numbers of their own are drawn for them."""
        # The ground is the same for all flights: it needs no draw.
        return replace(self, ground=None) != FlightConditions()


@dataclass(frozen=True)
class Curriculum:
    """A level that rises and falls with success; defaults are Aerial Gym's (specification aerial_gym, 9.2)."""

    least: Annotated[int, Bound(0, 10_000)] = 15
    """Level at the beginning, where progress is 0."""
    most: Annotated[int, Bound(1, 10_000)] = 50
    """Level where progress is 1."""
    rise: Annotated[int, Bound(1, 10_000)] = 2
    """Levels up."""
    fall: Annotated[int, Bound(0, 10_000)] = 1
    """Levels down."""
    window: Annotated[int, Bound(1, 10_000_000)] = 2048
    """Finished flights between checks of a batch."""
    rise_above: Annotated[float, SHARE] = 0.7
    """Share of successes above which a batch rises."""
    fall_below: Annotated[float, SHARE] = 0.6
    """Share of successes below which it falls."""
    each: Literal["batch", "environment", "steps"] = "batch"
    """One level for all, or one for each environment, which rises with a success and falls with a failure of its own, or one
    for all that rises every `window` env-steps, whatever happens."""

    def __post_init__(self) -> None:
        check_fields(self, "Curriculum.")
        if self.most <= self.least:
            raise AirworthyError(f"Curriculum.most is {self.most}; expected more than least ({self.least}).")


class CurriculumState:
    """The level of a batch, and what it was counted from.

    Args:
        curriculum: Rules.
    """

    def __init__(self, curriculum: Curriculum):
        self.curriculum = curriculum
        self.counts: ArrayAny = np.array([curriculum.least, 0, 0], np.int64)
        """Level, flights that finished since the last check, successes among them."""

    def count(self, finished: int, succeeded: int) -> bool:
        """Count flights; the level moves once a window is full.

        Args:
            finished: That ended since the last call; env-steps where these count.
            succeeded: Of these, those that ended well.

        Returns:
            Whether the level moved.
        """
        c, counts = self.curriculum, self.counts
        counts[1] += finished
        counts[2] += succeeded
        if counts[1] < c.window:
            return False
        share, before = counts[2] / counts[1], int(counts[0])
        # Remaining env-steps carry over, so that the level does not depend on how many are counted at a time.
        if c.each == "steps":
            counts[:] = min(before + c.rise * (counts[1] // c.window), c.most), counts[1] % c.window, 0
            return int(counts[0]) != before
        # Between both thresholds the level stays: else it would go up and down for ever.
        move = c.rise if share > c.rise_above else -c.fall if share < c.fall_below else 0
        counts[:] = min(max(before + move, c.least), c.most), 0, 0
        return int(counts[0]) != before
