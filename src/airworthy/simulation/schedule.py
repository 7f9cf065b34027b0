"""Samples at a rate of their own on the physics clock, in whole numbers: nothing drifts, however long a flight is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError

Steps = NDArray[np.int64]

_DENOMINATOR = 10**6
"""Steps per sample are a ratio with at most this denominator, so that 100 / 3 Hz, rounded as it is, is every 28.8th of 960."""


class Schedule:
    """When samples fall: sample k at rate f on physics step ceil(k f_physics / f), k = 0, 1, 2, ...

    Args:
        physics_rate: Steps of the equations of motion per second [Hz].
        rate: Samples per second [Hz], at most `physics_rate`.

    Raises:
        AirworthyError: If the rate is not positive or faster than the physics.
    """

    def __init__(self, physics_rate: float | Fraction, rate: float | Fraction):
        if not 0 < rate <= physics_rate:
            raise AirworthyError(
                f"A sample rate is {float(rate):g} Hz;"
                f" expected more than 0 and at most physics_rate ({float(physics_rate):g} Hz)."
            )
        ratio = _exact(physics_rate) / _exact(rate)
        self.steps_per_sample = ratio.limit_denominator(_DENOMINATOR)
        """Physics steps between samples, exact."""
        self._up, self._down = self.steps_per_sample.as_integer_ratio()

    def step_of(self, sample: ArrayLike) -> Steps:
        """Physics step on which a sample falls."""
        return _divide_up(np.asarray(sample, np.int64) * self._up, self._down)

    def latest(self, step: ArrayLike) -> Steps:
        """Number of the last sample that has fallen by a physics step (0 at step 0)."""
        return np.asarray(step, np.int64) * self._down // self._up

    def is_due(self, step: ArrayLike) -> NDArray[np.bool_]:
        """Whether a sample falls on a physics step."""
        return np.asarray(self.step_of(self.latest(step)) == np.asarray(step, np.int64))

    def due(self, step: ArrayLike) -> Steps:
        """Physics steps from a step until the next sample, at least 1."""
        return self.step_of(self.latest(step) + 1) - np.asarray(step, np.int64)


def _exact(rate: float | Fraction) -> Fraction:
    """A rate as it was written: 29.97 means 2997/100, not the nearest binary fraction."""
    return rate if isinstance(rate, Fraction) else Fraction(repr(float(rate)))


def _divide_up(a: Any, b: int) -> Steps:
    return np.asarray(-(-a // b), np.int64)
