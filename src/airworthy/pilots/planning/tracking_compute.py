"""What thinking costs in simulated time: nothing, counted work times recorded constants, or the clock's measurements.

A plan holds its compute after the odometry it was made from. The second way is the default of benchmarks: it is the same on
every machine. The third stores each latency, and a replay uses what was stored.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, unknown_name

__all__ = ["COMPUTE_MODELS", "ComputeModel", "recorded_costs"]

Array = NDArray[np.float64]
COMPUTE_MODELS = ("zero", "fixed", "measured")
OTHER = "other"
"""Kind whose constant stands for kinds of work that the record does not know."""


@cache
def recorded_costs() -> dict[str, float]:
    """Seconds per counted unit by kind of work; `compute_costs.toml` says where each comes from."""
    text = files("airworthy.pilots.planning").joinpath("compute_costs.toml").read_text(encoding="utf-8")
    return {kind: float(entry["seconds"]) for kind, entry in tomllib.loads(text)["kinds"].items()}


@dataclass
class ComputeModel:
    """How long plans take.

    Attributes:
        kind: Of `COMPUTE_MODELS`.
        costs: Seconds per unit by kind of work; empty: those recorded.
        patience: A call that takes longer [s] fails its flight.
        stored: Of kind "measured": latencies (k,) of each flight's plans by its number; given ones are used instead of the
            clock, one after the other.
    """

    kind: Literal["zero", "fixed", "measured"] = "fixed"
    costs: Mapping[str, float] = field(default_factory=dict)
    patience: float = 10.0
    stored: dict[int, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in COMPUTE_MODELS:
            raise unknown_name("compute model", self.kind, COMPUTE_MODELS)
        if not self.patience > 0.0:
            raise AirworthyError(f"A compute model's patience is {self.patience} s; expected more than 0.")
        self._replayed = {flight: list(times) for flight, times in self.stored.items()}
        self.stored = {}

    def counted(self, work: Mapping[str, Any], count: int) -> Array:
        """Seconds of each flight's work by the constants, (n,)."""
        costs = self.costs or recorded_costs()
        total = np.zeros(count)
        for kind, units in work.items():
            total += np.broadcast_to(np.asarray(units, float), count) * costs.get(kind, costs.get(OTHER, 0.0))
        return total

    def delay(self, work: Mapping[str, Any], active: NDArray[np.bool_], flight: NDArray[np.int64], wall: float) -> Array:
        """Delay of the plans of one call [s], (n,); 0 of flights that were not asked or did nothing.

        Args:
            work: Counted units by kind, arrays (n,).
            active: Who was asked, (n,).
            flight: Numbers of the flights, (n,).
            wall: Seconds that the call took for all of them; the clock's are shared out by counted work.
        """
        counted = np.where(active, self.counted(work, len(active)), 0.0)
        if self.kind == "zero":
            return np.zeros(len(active))
        if self.kind == "fixed":
            return counted
        total = counted.sum()
        share = counted / total if total > 0.0 else np.zeros(len(active))
        delays = wall * share
        for place in np.flatnonzero(share > 0.0):
            number = int(flight[place])
            waiting = self._replayed.get(number)
            if waiting:
                delays[place] = waiting.pop(0)
            self.stored.setdefault(number, []).append(float(delays[place]))
        return delays
