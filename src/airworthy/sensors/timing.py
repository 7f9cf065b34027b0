"""When a sensor samples and when its samples arrive, in whole physics steps.

Sample k of a sensor at rate f falls on step ceil(k f_physics / f) of its flight and is stamped with that step; a sample taken
at step s with latency d [s] can be read from step s + ceil(d f_physics) on.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SampleClock:
    """The steps at which a sensor samples.

    Raises:
        AirworthyError: If the rate is not positive or faster than the physics, or the latency is negative.
    """

    rate: float
    """Samples per second."""
    physics_rate: float
    """Physics steps per second."""
    latency: float = 0.0
    """From a sample's instant until it can be read [s]."""

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= self.physics_rate:
            raise AirworthyError(
                f"A sensor samples at {self.rate} Hz; expected more than 0 and at most the physics' {self.physics_rate} Hz."
            )
        if not 0.0 <= self.latency < 1e6:
            raise AirworthyError(f"A sensor's latency is {self.latency} s; expected 0 or more.")

    @cached_property
    def _ratio(self) -> tuple[int, int]:
        # Whole numbers: a ratio of floats would lose a step after some hours, or where it is whole in decimals only.
        return Fraction(self.physics_rate / self.rate).limit_denominator(10**6).as_integer_ratio()

    @cached_property
    def delay_steps(self) -> int:
        """Steps between a sample and its arrival."""
        exact = Fraction(self.latency).limit_denominator(10**9) * Fraction(self.physics_rate).limit_denominator(10**6)
        return -((-exact.numerator) // exact.denominator)

    def step_of(self, sample: ArrayLike) -> Ints:
        """Step of sample k = 0, 1, ...: ceil(k f_physics / f)."""
        up, down = self._ratio
        return -((-np.asarray(sample, np.int64) * up) // down)

    def taken(self, step: ArrayLike) -> Ints:
        """Samples taken up to and including a step: floor(step f / f_physics) + 1."""
        up, down = self._ratio
        return np.asarray(step, np.int64) * down // up + 1

    def due(self, step: ArrayLike) -> NDArray[np.bool_]:
        """Whether a sample falls on a step."""
        return np.asarray(self.step_of(self.taken(step) - 1) == np.asarray(step, np.int64))

    def next_step(self, step: ArrayLike) -> Ints:
        """The first step after this one on which a sample falls."""
        return self.step_of(self.taken(step))
