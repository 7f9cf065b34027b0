"""The numbers that the update of maps counts with, from settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.planning.interface import MapSettings

__all__ = ["UNIT", "Rules", "logit"]

UNIT = 4096
"""Log-odds are whole numbers of 1 / UNIT in 16 bits: they reach +-8, probabilities of 0.0003 and 0.9997."""
_UNKNOWN = 0.01
"""Below the least log-odds: never seen."""


def logit(p: float) -> float:
    """Log-odds of a probability."""
    return math.log(p / (1.0 - p))


@dataclass(frozen=True)
class Rules:
    """Whole numbers of cells and log-odds [1 / UNIT]."""

    reach: int
    """Cells that a ray spans along an axis, at most."""
    radius: int
    """Of inflation."""
    margin: int
    field_margin: int
    hit: int
    miss: int
    least: int
    most: int
    unknown: int
    occupied: int
    """Above it a cell is occupied."""
    field: int
    """1 where a distance field is kept."""
    floor: int
    """Lowest layers of the box that are always inflated: the floor's, all below and as many above as inflation says."""

    @classmethod
    def of(cls, s: MapSettings) -> Rules:
        """Those of settings."""
        odds = [round(UNIT * logit(p)) for p in (s.hit, s.miss, s.least, s.most)]
        unknown, occupied = round(UNIT * (logit(s.least) - _UNKNOWN)), round(UNIT * logit(s.occupied))
        reach = math.ceil(s.ray_max / s.resolution) + 1
        radius, grown = (math.ceil(length / s.resolution) for length in (s.inflation, s.field_margin))
        hit, miss, least, most = odds
        return cls(reach, radius, s.margin, grown, hit, miss, least, most, unknown, occupied, int(s.field), floor_layers(s))


def floor_layers(s: MapSettings) -> int:
    """Lowest layers of cells that a known floor takes, inflation included; 0 where it is not known."""
    below = max(0, math.floor(-s.ground / s.resolution + 1e-6))
    return below + 1 + math.ceil(s.inflation / s.resolution) if s.floor else 0


def lengths(s: MapSettings) -> NDArray[np.float64]:
    """Cell, longest and least ray, least and most depth, reach along x, y, z [m]; (8,)."""
    return np.array([s.resolution, s.ray_max, s.ray_min, s.depth_min, s.depth_max, *s.reach])
