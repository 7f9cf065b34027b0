"""Who predicts in a benchmark, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.boundary.window import RANGES

__all__ = ["Ask", "Contestant", "Keeps"]

Array = NDArray[np.float64]
Ask = Callable[[Array], Any]
Keeps = Callable[[Array, Array], NDArray[np.bool_]]


@dataclass(frozen=True)
class Contestant:
    """A predictor of speed and duration, what it is, and what its answers are held against."""

    name: str
    """As it was asked for: in tables and files."""
    predictor: Any
    """See `airworthy.pilots.boundary.planner.plan`."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What it is, as data: results of another one do not mix."""
    ranges: Array = field(default_factory=lambda: RANGES)
    """Of the situations that it knows, (8, 2): where those off the grid are drawn."""
    truth: Ask | None = None
    """What it learnt from, by fresh search: situations (k, 8) -> speed and duration (k, 2), NaN where there is none."""
    keeps: Keeps | None = None
    """Whether both segments of situations (k, 8) keep its search's limit with pairs (k, 2); None: there was no limit."""
    ends: tuple[float, float] = (np.inf, np.inf)
    """Speed [m/s] and time [s] at which its answers end: labels beyond are clipped, as in its training."""

    @property
    def ask(self) -> Ask:
        """The predictor as a function."""
        found: Ask = getattr(self.predictor, "predict", self.predictor)
        return found
