"""A race in a row, and flights through it, for the tests of the referee."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race import Race, RaceGate, RaceLimits, RaceScore, RaceStart, check_race

RATE = 960.0
HEIGHT = 2.0
GATES = (
    RaceGate("A", position=(5.0, 0.0, HEIGHT), opening=(2.0, 2.0)),
    RaceGate("B", position=(10.0, 0.0, HEIGHT), opening=(2.0, 2.0)),
    RaceGate("C", position=(15.0, 0.0, HEIGHT), yaw_deg=45.0, opening=(2.0, 2.0)),
    RaceGate("D", position=(20.0, 0.0, HEIGHT), opening=(2.0, 2.0)),
)


def row_race(**changes: Any) -> Race:
    """Four gates in a row along x, the third diagonal, scored as the qualifier."""
    race = Race(
        name="row",
        title="",
        order=("A", "B", "C", "D"),
        start=RaceStart((0.0, 0.0, HEIGHT)),
        limits=RaceLimits(60.0, (-10.0, -10.0, 0.0), (40.0, 10.0, 10.0)),
        score=RaceScore("points", 10.0, 5, 25),
        gates=GATES,
        test="loose",
    )
    race = replace(race, **changes)
    check_race(race)
    return race


def strict_race(**changes: Any) -> Race:
    """The same by the strict test, for time."""
    return row_race(**{"test": "strict", "score": RaceScore("time"), **changes})


def flown(*points: tuple[float, ...], speed: float = 10.0) -> Array:
    """Positions at every step of a flight along straight lines at a speed [m/s], (steps, 3); heights are the gates' where left
    out.
    """
    corners = np.array([point if len(point) == 3 else (*point, HEIGHT) for point in points])
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    steps = round(along[-1] / speed * RATE)
    where = np.arange(steps + 1) * speed / RATE
    return np.stack([np.interp(where, along, corners[:, k]) for k in range(3)], axis=1)


def waiting(path: Array, seconds: float) -> Array:
    """The same flight, which then stays where it is."""
    return np.concatenate([path, np.repeat(path[-1:], round(seconds * RATE), axis=0)])
