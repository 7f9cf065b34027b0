"""What a whole flight tells of thrust's level: over a flight, pushes along z are zero in the mean.

Within a window a push that lasts cannot be told from thrust that is a little more, so that windows alone tell how thrust goes
with commands and hardly how much of it there is. Over a flight it can: what pushes a vehicle up and down comes and goes. The
mean error of the specific force along z is one number of each flight, as sure as what lasts within it and differs between
flights leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["LevelWeight", "level_weights"]

LASTING = 4.0
"""Errors of thrust go with themselves for so long [s]: so few of them count. As of what thrust does within flights."""
LEAST = 0.5
"""Stretches beside the first, at least: within a flight no longer than one, its spread tells little of it. Ours."""
SOFT = 2.0
"""Windows further off than so many times the usual count less."""
ROUNDS = 5
"""Of weighing windows by how far they are off."""


@dataclass(frozen=True, eq=False)
class LevelWeight:
    """What a flight's windows count in its mean, and how sure that is."""

    weight: Array
    """Sum 1, (windows,)."""
    sd: float
    """Of the mean [m/s^2]."""


def level_weights(errors: Sequence[Array], starts: Sequence[Array], floor: float) -> tuple[LevelWeight, ...]:
    """Return what windows count in the mean error of each flight.

    Args:
        errors: Of each flight, of the specific force along z in the mean over each window [m/s^2], (windows,).
        starts: Of each flight, when its windows begin [s], (windows,).
        floor: Least deviation of one window [m/s^2].
    """
    found, middles = [], []
    for error, start in zip(errors, starts, strict=True):
        weight = np.full(len(error), 1.0 / len(error))
        for _ in range(ROUNDS):
            middle = float(weight @ error)
            width = max(1.4826 * float(np.median(np.abs(error - middle))), floor)
            weight = 1.0 / np.sqrt(1.0 + ((error - middle) / (SOFT * width)) ** 2)
            weight /= weight.sum()
        spread = max(float(np.sqrt(weight @ (error - middle) ** 2)), floor)
        # Of so many stretches beside the first: of n that share nothing, n - 1 tell how far their mean is off.
        apart = np.minimum(np.diff(np.sort(start)), LASTING).sum() / LASTING
        found.append(LevelWeight(weight, spread / float(np.sqrt(max(apart, LEAST)))))
        middles.append(middle)
    between = _between(np.array(middles), np.array([item.sd for item in found]))
    return tuple(LevelWeight(item.weight, float(np.hypot(item.sd, between))) for item in found)


def _between(middles: Array, sds: Array) -> float:
    """Deviation from flight to flight beyond what each is unsure by: batteries are not equally full; 0 of one flight."""
    if len(middles) < 2:
        return 0.0
    return float(np.sqrt(max(float(np.var(middles, ddof=1)) - float(np.mean(sds**2)), 0.0)))
