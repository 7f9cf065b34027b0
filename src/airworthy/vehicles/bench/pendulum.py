"""Moment of inertia from a pendulum of two wires (bifilar): hang, twist, count.

A body of mass m hangs on two parallel wires of length L at a distance b, its centre of mass midway between them. A twist t
lifts it by (b t / 2)^2 / (2 L), so that small twists swing with a period P of 4 pi sqrt(I L / (m g)) / b: its moment of inertia
about the vertical is I = m g b^2 P^2 / (16 pi^2 L).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.errors import AirworthyError

__all__ = ["PendulumInertia", "two_wire_inertia"]

GRAVITY = 9.81
REACTION = 0.1
"""Ours: deviation of a time that somebody stopped by hand [s]."""
FLAT = 20.0
"""Length over distance of the wires, above which the period says little more of the body than of the air."""
WIDE = 3.0
"""Radius of gyration over the distance of the wires, above which somebody timed several swings as one."""
APART = 0.1
"""Relative distance of a period from the median, above which it was miscounted."""

Measured = tuple[float, float]


@dataclass(frozen=True)
class PendulumInertia:
    """A moment of inertia about the vertical through the centre of mass, with its deviation."""

    value: float
    """[kg m^2]"""
    sd: float
    """[kg m^2]"""
    period: float
    """[s]"""
    period_sd: float
    """Of the mean [s]."""
    parts: tuple[tuple[str, float], ...]
    """Relative deviations of the moment by cause."""

    def line(self, axis: str = "zz") -> str:
        """Return what `identify --measured` takes.

        Args:
            axis: "xx", "yy" or "zz": the body's axis that was vertical.
        """
        return f"inertia.{axis}={self.value:.4g}+-{self.sd:.2g}"


def two_wire_inertia(
    mass: Measured, distance: Measured, length: Measured, times: Sequence[float], swings: int = 1, gravity: float = GRAVITY
) -> PendulumInertia:
    """Return the moment of inertia of what hangs on two wires.

    Args:
        mass: And its deviation [kg].
        distance: Of the wires, and its deviation [m].
        length: Of the wires, and its deviation [m].
        times: Of so many whole swings each [s].
        swings: In each time, there and back.
        gravity: [m/s^2]

    Raises:
        AirworthyError: A number cannot be, or the times do not agree; one sentence.
    """
    for name, (value, sd), unit, most in (
        ("mass", mass, "kg", 1e4),
        ("distance", distance, "m", 20.0),
        ("length", length, "m", 50.0),
    ):
        if not (math.isfinite(value) and 0.0 < value <= most and math.isfinite(sd) and 0.0 <= sd < 0.5 * value):
            raise AirworthyError(
                f"The {name} is {value:g}+-{sd:g} {unit}; expected more than 0, to {most:g} {unit}, known to half."
            )
    if not 1 <= swings <= 10_000:
        raise AirworthyError(f"Each time counts {swings} swings; expected 1 to 10,000.")
    each = np.array(times, np.float64) / swings
    if not each.size or not np.isfinite(each).all() or each.min() <= 0.0:
        raise AirworthyError(
            "No times above 0 s are given; expected some of the same number of swings, as --periods 12.1 12.2 12.0."
        )
    middle = float(np.median(each))
    odd = [t for t, p in zip(times, each, strict=True) if abs(p / middle - 1.0) > APART]
    if odd:
        raise AirworthyError(
            f"A time of {odd[0]:g} s is over 10 % off the median of {middle * swings:g} s: was a swing miscounted?"
        )
    if length[0] > FLAT * distance[0] or length[0] < 0.5 * distance[0]:
        raise AirworthyError(
            f"Wires of {length[0]:g} m at a distance of {distance[0]:g} m; expected lengths of 0.5 to {FLAT:g} distances,"
            " both in m."
        )
    period = float(each.mean())
    wide = period * math.sqrt(gravity / length[0]) / (4.0 * math.pi)
    if wide > WIDE:
        raise AirworthyError(
            f"A period of {period:.3g} s is that of a body with a radius of gyration of {wide * distance[0]:.3g} m on wires"
            f" {distance[0]:g} m apart; expected {WIDE:g} distances at most: are the times of several swings? Say of how many"
            " by --swings."
        )
    # Repeats say what a hand's stop-watch does; a few of them may agree by chance.
    repeat = float(each.std(ddof=1)) if len(each) > 2 else 0.0
    hand = REACTION / swings
    period_sd = (repeat if len(each) > 4 else max(repeat, hand)) / math.sqrt(len(each))
    parts = {
        "mass": mass[1] / mass[0],
        "distance": 2.0 * distance[1] / distance[0],
        "length": length[1] / length[0],
        "periods": 2.0 * period_sd / period,
    }
    value = mass[0] * gravity * distance[0] ** 2 * period**2 / (16.0 * math.pi**2 * length[0])
    sd = value * math.sqrt(sum(v**2 for v in parts.values()))
    if sd <= 0.0:
        raise AirworthyError("Nothing has an error: give the lengths and the mass as VALUE+-ERROR.")
    if sd >= value:
        raise AirworthyError(
            f"The moment is {value:.2g} kg m^2 with an error of {sd:.2g}: a period of {period:.3g} s is too short for its own"
            f" error of {period_sd:.2g} s; time more swings at once, and give --swings."
        )
    return PendulumInertia(value, sd, period, period_sd, tuple(parts.items()))
