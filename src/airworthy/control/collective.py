"""The collective: one force along body z that all rotors share, and what it can be while they keep their limits."""

from __future__ import annotations

from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import maximum, minimum, where

# Ours: far beyond any rotor's thrust in newtons, and its square still finite in float32.
FAR = 1e9
"""Stands for no limit; finite in float32."""
# Ours: far above float32's rounding (1.2e-7), and as small as the shares that tests compare with linear programs (1e-5).
_UNEQUAL = 1e-5
"""Rotors whose limits differ by a larger share of the largest collective are irregular."""


def collective_limits(collective: Vector, thrust_min: Vector, thrust_max: Vector) -> tuple[Scalar, Scalar, Scalar]:
    """Return the least and the largest collective [N] that all rotors can give in their shares, and the largest share.

    Args:
        collective: Share of each rotor; zeros where there is none.
        thrust_min: Least thrusts [N].
        thrust_max: Largest thrusts [N].
    """
    lowest: Scalar = -FAR
    highest: Scalar = FAR
    movable: Scalar = 0.0
    for share, lower, upper in zip(collective, thrust_min, thrust_max, strict=True):
        real = share > 0.0
        inverse = 1.0 / where(real, share, 1.0)
        lowest = maximum(lowest, where(real, lower * inverse, -FAR))
        highest = minimum(highest, where(real, upper * inverse, FAR))
        movable = maximum(movable, share)
    return lowest, highest, movable


def irregular(collective: Vector, thrust_min: Vector, thrust_max: Vector) -> Any:
    """Tell whether rotors reach their limits at different values of the collective, as they do on arms of different lengths.

    Then a moment may take thrust from the rotor that is full first, and so leave room for more force than fits without any.

    Args:
        collective: Share of each rotor; zeros where there is none.
        thrust_min: Least thrusts [N].
        thrust_max: Largest thrusts [N].
    """
    lowest, highest, _ = collective_limits(collective, thrust_min, thrust_max)
    first: Scalar = FAR
    last: Scalar = -FAR
    for share, lower, upper in zip(collective, thrust_min, thrust_max, strict=True):
        real = share > 0.0
        inverse = 1.0 / where(real, share, 1.0)
        first = minimum(first, where(real, lower * inverse, FAR))
        last = maximum(last, where(real, upper * inverse, -FAR))
    # Where no rotor has a share all four stand for no limit, and this is false.
    return (last - highest) + (lowest - first) > _UNEQUAL * last
