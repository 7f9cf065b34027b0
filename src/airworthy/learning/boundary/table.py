"""Labels in memory, wherever they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.boundary.contract import FIELDS, PAPER_RANGES, SCALES

__all__ = ["LabelTable"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Situations and what the search chose in each; rows come to lie in the order of their numbers.

    Raises:
        AirworthyError: Shapes do not fit, a number occurs twice, a value is not finite or outside of its range.
    """

    index: Ints
    """(n,) number of each situation in its grid."""
    situations: Array
    """(n, 8) [m/s, m, rad]"""
    labels: Array
    """(n, 2) speed [m/s] and time [s]; anything where there is no feasible candidate."""
    feasible: Flags
    """(n,) whether there is a label."""
    ranges: Array = field(default_factory=lambda: np.array(PAPER_RANGES))
    """(8, 2) lowest and highest value of each field in the grid."""
    speed_max: float = SCALES[0]
    """Fastest candidate of the search [m/s]."""
    t_max: float = SCALES[1]
    """Longest time that the network is to give [s]."""
    limit: tuple[float, float] | None = None
    """a0 [m/s^2] and k [s^2/m^2] of the search's limit (eq. 3); None: not known, or none."""
    thrust: float | None = None
    """Most thrust over mass of the search's candidates [m/s^2]; None: not known, or none."""
    heading: str = "incoming"
    """Rule for the heading of gates."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Options of the search, as its folder tells them."""

    def __post_init__(self) -> None:
        order = np.argsort(self.index, kind="stable")
        sorts: dict[str, Any] = {"index": np.int64, "situations": np.float64, "labels": np.float64, "feasible": np.bool_}
        for name, kind in sorts.items():
            object.__setattr__(self, name, np.ascontiguousarray(np.asarray(getattr(self, name), kind)[order]))
        self._check()

    @property
    def digest(self) -> str:
        """SHA-256 of numbers, situations, labels and ranges, however they were laid into files."""
        found = hashlib.sha256()
        labels = np.where(self.feasible[:, None], self.labels, 0.0)
        ends = np.array([self.speed_max, self.t_max])
        for array in (self.index, self.situations, labels, self.feasible, np.asarray(self.ranges, np.float64), ends):
            found.update(str(array.shape).encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def _check(self) -> None:
        count = len(self.index)
        shapes = {"index": (count,), "situations": (count, len(FIELDS)), "labels": (count, 2), "feasible": (count,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise AirworthyError(f"The labels have {name} of shape {getattr(self, name).shape}; expected {shape}.")
        if count and (self.index[0] < 0 or (np.diff(self.index) == 0).any()):
            raise AirworthyError(
                "The labels have a situation's number twice, or one below 0: each row needs a number of its own."
            )
        self._check_values()

    def _check_values(self) -> None:
        low, high = np.asarray(self.ranges, np.float64).T
        slack = _SLACK * (high - low)
        if not ((high > low).all() and np.isfinite(self.ranges).all()):
            raise AirworthyError("The labels have a range that does not rise from low to high.")
        inside = (self.situations >= low - slack) & (self.situations <= high + slack)  # False of NaN
        for name, good in zip(FIELDS, inside.T, strict=True):
            if not good.all():
                raise AirworthyError(f"The labels have {int((~good).sum()):,} situations with {name} outside of its range.")
        known = self.labels[self.feasible]
        if not (np.isfinite(known).all() and (known >= 0.0).all() and (known[:, 1] > 0.0).all()):
            raise AirworthyError(
                "The labels have a speed below zero, a time that is not above zero, or one that is not finite."
            )
