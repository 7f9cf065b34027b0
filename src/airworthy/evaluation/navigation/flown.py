"""What a batch of flights leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.navigation.lifting import Lifted
from airworthy.evaluation.navigation.plan import Flight
from airworthy.evaluation.navigation.tracing import Track
from airworthy.pilots.planning.interface import Mission
from airworthy.tasks.navigation import GoalWatch
from airworthy.vehicles import Vehicle

__all__ = ["Flown"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Flown:
    """What a batch left."""

    flights: Sequence[Flight]
    mission: Mission
    vehicles: Sequence[Vehicle]
    lifted: Lifted
    watch: GoalWatch
    cause: list[str]
    """Why each flight failed, in words; "" of those that succeeded or for which the outcome says it all."""
    position: Array
    """Where each flight was when it was decided [m], (n, 3)."""
    values: dict[str, Array]
    """Diagnostics (n,) by name."""
    diary: dict[str, list[Any]]
    """What its pilot told of each flight, by column."""
    trace: list[str]
    """A fingerprint of every number of each flight."""
    seconds: dict[str, float]
    """What it took, by part [s]: of no row."""
    spans: Sequence[tuple[float, int]] = ()
    """Of every tick in which pilots worked: seconds by the clock, and for how many flights; of no row."""
    track: Track | None = None
    """The flown paths, where they were asked for."""
