"""Range limits and normalisation (spec/aerial_gym 7.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields

_HAIR = 1e-6
"""Relative; about ten steps of a float32."""


@dataclass(frozen=True)
class RangeLimits:
    """Which values a sensor can give, and what it gives instead of others.

    A value above `maximum` becomes `far`, one below `minimum` becomes `near`; with `normalize`, all is divided by `maximum`.
    Without limits, no return stays +inf.

    Raises:
        AirworthyError: If the limits do not rise, or what is normalised has no maximum.
    """

    minimum: float = 0.0
    """[m]"""
    maximum: float = math.inf
    """[m]"""
    near: float = math.inf
    """Given for what is too near [m]."""
    far: float = math.inf
    """Given for what is too far, or not there [m]."""
    normalize: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "RangeLimits.")
        if not -math.inf < self.minimum < self.maximum:
            raise AirworthyError(f"Range limits are {self.minimum} to {self.maximum} m; expected a minimum below the maximum.")
        if self.normalize and not math.isfinite(self.maximum):
            raise AirworthyError("Ranges are divided by their maximum when normalised; give a finite maximum.")

    @classmethod
    def published(cls, minimum: float, maximum: float, normalize: bool = True) -> RangeLimits:
        """Defaults of the published simulator: normalised, in [0, 1] or -1; otherwise -1 for too near and too far.

        Args:
            minimum: [m]
            maximum: [m]
            normalize: Divide by `maximum`.
        """
        # Source: spec/aerial_gym 7.3: far = max_range and near = -max_range when normalising, so outputs are in [0, 1] or -1.
        near, far = (-maximum, maximum) if normalize else (-1.0, -1.0)
        return cls(minimum, maximum, near, far, normalize)

    @property
    def divisor(self) -> float:
        """What a limited value is divided by."""
        return self.maximum if self.normalize else 1.0

    def apply(self, value: ArrayLike) -> Array:
        """Limited and normalised values, the readable form of what the kernel does."""
        r = np.asarray(value, np.float64)
        return np.where(r > self.maximum, self.far, np.where(r < self.minimum, self.near, r)) / self.divisor

    def metres(self, value: ArrayLike) -> Array:
        """Metres of limited values; +inf where they are no measurement (too near, too far, dropped)."""
        r = np.asarray(value, np.float64) * self.divisor
        # A hair of room: a float32 that was normalised must come back as what it was.
        inside = (r >= self.minimum * (1.0 - _HAIR)) & (r <= self.maximum * (1.0 + _HAIR)) & np.isfinite(r) & (r > 0.0)
        # Infinite markers are found by `isfinite` already.
        for marker in (self.near, self.far):
            if math.isfinite(marker):
                inside &= np.abs(r - marker) > _HAIR * abs(marker)
        return np.where(inside, r, np.inf)


NO_LIMITS = RangeLimits()
"""Everything positive is a measurement."""
