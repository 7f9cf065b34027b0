"""One plan's programme in numbers: rows that bound states and inputs, and what is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.race.planning.horizon import GateWindows, GlanceNeed, HorizonOptions
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel

__all__ = ["STATE_ROWS", "WINDOW", "WINDOW_ROWS", "ShootingProblem", "shooting_problem"]

WINDOW_ROWS = 4
"""Left, right, up, down."""
WINDOW = slice(7, 7 + WINDOW_ROWS)
STATE_ROWS = 13 + WINDOW_ROWS
"""Rates within both bounds, the height, the window, and speeds within both caps."""


@dataclass(frozen=True, eq=False)
class ShootingProblem:
    """Of N steps, L legs and G looks; every row r of bounds says r >= 0."""

    model: RacerModel
    options: HorizonOptions
    start: Array
    """(13,)"""
    nodes: int
    """On each leg."""
    state_rows: Array
    """Slopes by the state, (N + 1, STATE_ROWS, 13); what is not bound is 0."""
    state_offset: Array
    """(N + 1, STATE_ROWS); 1 where nothing is bound."""
    beside: ArrayInt
    """Leg whose slack widens the windows of a node, -1: none, (N + 1,)."""
    input_rows: Array
    """(rows, 4)"""
    input_offset: Array
    """(rows,)"""
    plane: Array
    """Normal and offset of the plane that the last node of each leg lies on, (L, 4)."""
    target: Array
    """(G, 3)"""
    counts: Array
    """(G, N)"""
    needed: Array
    """(G,)"""
    soft: float

    @property
    def legs(self) -> int:
        return len(self.plane)

    @property
    def steps(self) -> int:
        return len(self.beside) - 1

    @property
    def leg_of(self) -> ArrayInt:
        """Leg of each step, (N,)."""
        return np.repeat(np.arange(self.legs), self.nodes)


def shooting_problem(
    model: RacerModel,
    options: HorizonOptions,
    *,
    start: Array,
    gates: GateWindows,
    needs: Sequence[GlanceNeed],
    soft: float,
    caps: Array | None = None,
) -> ShootingProblem:
    """Return the programme of `HorizonPlanner` as rows.

    Args:
        model: Who flies.
        options: Bounds.
        start: (13,)
        gates: To fly through, one for each leg.
        needs: Looks, at most `options.glances`.
        soft: Width of the field's edge, in tangents.
        caps: Largest speeds along world axes at the nodes [m/s], (N + 1,); None: any.
    """
    bounds = options.bounds
    legs, nodes = len(gates.center), bounds.nodes
    count = legs * nodes
    rows, offset = np.zeros((count + 1, STATE_ROWS, STATES)), np.ones((count + 1, STATE_ROWS))
    rate = bounds.rate_max * np.array([1.0, 1.0, 2.0 / 3.0])
    for axis in range(3):
        rows[1:, 2 * axis, 10 + axis], rows[1:, 2 * axis + 1, 10 + axis] = 1.0, -1.0
        offset[1:, 2 * axis : 2 * axis + 2] = rate[axis]
    rows[1:, 6, 2], offset[1:, 6] = 1.0, -bounds.height_min
    _cap(rows, offset, caps)
    beside = np.full(count + 1, -1)
    for leg in range(legs):
        node = (leg + 1) * nodes
        for index in range(max(1, node - bounds.cone_nodes), min(count + 1, node + bounds.cone_nodes + 1)):
            beside[index] = leg
            side = float(np.sign(index - node))
            for row, axis in enumerate((gates.left[leg], gates.up[leg])):
                for half, sign in enumerate((-1.0, 1.0)):
                    slope = bounds.cone * side * gates.normal[leg] + sign * axis
                    place = WINDOW.start + 2 * row + half
                    rows[index, place, :3] = slope
                    offset[index, place] = gates.half[leg, row] - slope @ gates.center[leg]
    plane = np.hstack([gates.normal, -np.sum(gates.normal * gates.center, axis=1)[:, None]])
    input_rows, input_offset = _input_rows(model, options)
    taken = list(needs)[: options.glances]
    return ShootingProblem(
        model,
        options,
        start,
        nodes,
        rows,
        offset,
        beside,
        input_rows,
        input_offset,
        plane,
        np.array([need.target for need in taken]).reshape(-1, 3),
        np.array([need.steps for need in taken]).reshape(-1, count),
        np.array([need.seconds for need in taken]),
        soft,
    )


def _cap(rows: Array, offset: Array, caps: Array | None) -> None:
    """Write the rows of largest speeds, where there are any."""
    if caps is None:
        return
    (nodes,) = np.nonzero(np.isfinite(caps))
    nodes = nodes[nodes > 0]
    for axis in range(3):
        place = WINDOW.stop + 2 * axis
        rows[nodes, place, 3 + axis], rows[nodes, place + 1, 3 + axis] = 1.0, -1.0
        offset[nodes, place : place + 2] = caps[nodes, None]


def _input_rows(model: RacerModel, options: HorizonOptions) -> tuple[Array, Array]:
    """Angular accelerations and rotors within both bounds; the collective thrust follows from the rotors'."""
    bounds = options.bounds
    turn = bounds.turn_max * np.array([1.0, 1.0, 0.5])
    most = np.full(len(model.mixer), bounds.power * model.rotor_max)
    select = np.eye(INPUTS)[1:]
    rows = np.vstack([select, -select, model.mixer, -model.mixer])
    return rows, np.concatenate([turn, turn, np.full(len(most), -bounds.rotor_min), most])
