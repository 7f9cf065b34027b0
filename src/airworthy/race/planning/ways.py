"""Whether plans have a way through each gate at all, told before a solver looks for one for minutes."""

from __future__ import annotations

from itertools import product

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.gate_geometry import GateShape
from airworthy.race.gates_apart import check_apart
from airworthy.race.planning.bounds import PlanBounds
from airworthy.race.planning.obstacles import KeepOff
from airworthy.race.planning.plan import flown_gates, start_state
from airworthy.race.record import Race

__all__ = ["check_ways"]

_GRID = np.linspace(-1.0, 1.0, 9)
"""Places across a window that are tried, over its half size."""


def check_ways(race: Race, obstacles: KeepOff, options: PlanBounds) -> None:
    """Refuse a race with a gate whose whole window lies within what its plans keep off.

    Args:
        race: Its course.
        obstacles: Of the course, with clearances.
        options: Margins of windows.

    Raises:
        AirworthyError: One sentence, with both gates.
    """
    check_apart(race)
    gates = flown_gates(race)
    ends = [start_state(race)[:3], *(gate.center for gate in gates)]
    for leg, gate in enumerate(gates):
        places = _window(gate, options)
        for frame, _, high in obstacles.blocking(leg, ends[leg], ends[leg + 1]):
            # The gate's own frame counts on the way there alone.
            if high == 1.0 and all(frame.level(place) < 1.0 for place in places):
                apart = float(np.linalg.norm(frame.shape.center - gate.center))
                raise AirworthyError(
                    f"No plan leads through gate {obstacles.passes[leg]!r} of the race {race.name!r}: gate {frame.name!r} is"
                    f" in its way (their centres are {apart:.3g} m apart), and plans keep off its frame; move one of them."
                )


def _window(gate: GateShape, options: PlanBounds) -> list[Array]:
    sizes = [max(size - options.margin, options.window) for size in (gate.half_width, gate.half_height)]
    return [gate.center + a * sizes[0] * gate.left + b * sizes[1] * gate.up for a, b in product(_GRID, _GRID)]
