"""Glances: which gate a racer has to look at on which legs, and how much of a look an attitude is worth.

A racer that flies as fast as it can is tilted by 75 degrees and sees its next gate on two or three of eleven legs only,
whatever its yaw (spec/race 5.4). A plan therefore has to earn, for each gate that matters, so many seconds of

    s = sigmoid((b_x - sqrt((b_y / 0.85)^2 + (b_z / 0.62)^2)) / 0.1) / sqrt(1 + (d / 16 m)^4)

with b the gate's direction in the body frame and d its distance: near looks count, for a gate's depth as seen from afar is its
offset when it is flown at from aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["NEAR_M", "SOFT", "Glance", "glances_of", "looked", "nearness"]

NEAR_M = 16.0
"""Distance at which a look counts 0.7 of one from near by, and from which on it falls with the square (spec/race 5.4)."""
_ASIDE, _ABOVE = 0.85, 0.62
"""Tangents of the half fields of view that count; the lens has 0.93 and 0.70, so that all four corners are in the picture."""
SOFT = 0.1
"""Width of the edge of the field, in tangents; a sharp one has no slope."""
_ROUND = 1e-3
"""Under the root, so that it has a slope straight ahead."""
_CLOSE = 0.05
"""Added to a squared distance [m^2], so that the direction of a gate that is flown through has a slope."""

_ALPHAPILOT = (
    # Gates 14 and 22 are 5.5 m wide, Gate2 4.7 m; Gate1 and Gate23 stand where nobody knows; 21, 9 and 6 do not move and
    # correct the own drift (spec/race 5.4, which found this list by flying).
    ("Gate21", "Gate10", "Gate21"),
    ("Gate13", "Gate2", "Gate13"),
    ("Gate9", "Gate13", "Gate9"),
    ("Gate1", "Gate9", "Gate14"),
    ("Gate1", "Gate14", "Gate1"),
    ("Gate15", "Gate22", "Gate15"),
    ("Gate23", "Gate15", "Gate23"),
    ("Gate6", "Gate23", "Gate6"),
)  # fmt: skip
"""Gate to look at, and the first and the last leg on which, by the gates where these end."""


@dataclass(frozen=True)
class Glance:
    """One gate to look at; legs have the number of the passage where they end."""

    gate: int
    first: int
    last: int


def glances_of(gates: Sequence[str]) -> tuple[Glance, ...]:
    """Return the glances of a race.

    Args:
        gates: Names in the order of flight. Those of AlphaPilot have a list of their own; elsewhere each gate but the first is
            looked at on its own leg and the one before.
    """
    numbers = {name: k for k, name in enumerate(gates)}
    if len(numbers) == len(gates) and all(word in numbers for row in _ALPHAPILOT for word in row):
        return tuple(Glance(numbers[gate], numbers[first], numbers[last]) for gate, first, last in _ALPHAPILOT)
    return tuple(Glance(k, k - 1, k) for k in range(1, len(gates)))


def nearness(distance: Array) -> Array:
    """Return what a second of sight is worth at a distance [m], 0 to 1."""
    return np.asarray(1.0 / np.sqrt(1.0 + (distance / NEAR_M) ** 4))


def looked(state: Any, target: Any, tools: Any, soft: float = SOFT) -> Any:
    """Return what a look is worth, s of the module.

    Args:
        state: 13 components: numbers, arrays or symbols.
        target: World [m], 3 components.
        tools: Whatever has `exp` and `sqrt` for them: numpy or casadi.
        soft: Width of the field's edge, in tangents.
    """
    x, y, z, w = state[6], state[7], state[8], state[9]
    size = x * x + y * y + z * z + w * w
    away = [target[k] - state[k] for k in range(3)]
    # Rows of R^T: the body's axes in the world.
    axes = (
        (w * w + x * x - y * y - z * z, 2.0 * (x * y + z * w), 2.0 * (x * z - y * w)),
        (2.0 * (x * y - z * w), w * w - x * x + y * y - z * z, 2.0 * (y * z + x * w)),
        (2.0 * (x * z + y * w), 2.0 * (y * z - x * w), w * w - x * x - y * y + z * z),
    )
    squared = away[0] ** 2 + away[1] ** 2 + away[2] ** 2 + _CLOSE
    distance = tools.sqrt(squared)
    ahead, left, up = ((axis[0] * away[0] + axis[1] * away[1] + axis[2] * away[2]) / (size * distance) for axis in axes)
    inside = ahead - tools.sqrt((left / _ASIDE) ** 2 + (up / _ABOVE) ** 2 + _ROUND)
    return 1.0 / (1.0 + tools.exp(-inside / soft)) / tools.sqrt(1.0 + squared**2 / NEAR_M**4)
