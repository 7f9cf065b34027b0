"""A small batch beside the large one, in which single flights are flown again.

Flights do not depend on their place, so the bits are those they would have had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.layout import Layout
from airworthy.dynamics.scene_contact import Motion
from airworthy.dynamics.state import Effects
from airworthy.simulation.arrays import BatchArrays
from airworthy.simulation.config import SimulatorConfig

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Columns = tuple[NDArray[np.float32], NDArray[np.uint32]]

_MOTION = ("velocity", "attitude", "rate")


class Compact:
    """Some environments of a batch, in arrays of their own.

    Args:
        arrays: Memory, of at least as many environments as will be taken.
        state: State rows.
        inputs: Input rows.
    """

    def __init__(self, arrays: BatchArrays, state: Layout, inputs: Layout):
        self.arrays, self._state, self._inputs = arrays, state, inputs
        self.count = 0

    def take(self, other: BatchArrays, ids: Ints, at: Ints | None = None) -> None:
        """Copy environments of a batch, all into the first places, or some into the places `at`; nothing holds them here."""
        places = np.arange(len(ids)) if at is None else at
        self.count = len(ids) if at is None else self.count
        self.arrays.take_columns(other, ids, places)
        self.arrays.inputs()[self._inputs.offsets["safe_square"], places] = np.inf
        self.arrays.push_inputs()

    def columns(self) -> Columns:
        """State and clocks; copies."""
        return self.arrays.state()[:, : self.count].copy(), self.arrays.keys()[4, : self.count].copy()

    def put(self, columns: Columns) -> None:
        """State and clocks, as `columns` returned them."""
        self.arrays.state()[:, : self.count], self.arrays.keys()[4, : self.count] = columns
        self.arrays.push_state()

    def set_balls(self, other: BatchArrays, ids: Ints) -> None:
        """Watch for the safe balls of environments of a batch, those last taken."""
        row = self._inputs.offsets["safe_square"]
        self.arrays.inputs()[row, : self.count] = other.inputs()[row, ids]
        self.arrays.push_inputs()

    def fly(self, config: SimulatorConfig, effects: Effects, level: int, command_rows: int, elapsed: int, steps: int) -> None:
        """Some physics steps of a launch of which `elapsed` lie behind."""
        effects = effects if self.arrays.is_shared else effects & ~Effects.SHARED_PARAMETERS
        self.arrays.launch(config, effects, steps, level, command_rows, elapsed)

    def shorten_delays(self, steps: int) -> None:
        """Take steps that lie behind off the delays of commands."""
        self.arrays.inputs()[self._inputs.offsets["delay"], : self.count] -= np.float32(steps)
        self.arrays.push_inputs()

    def motion(self) -> Motion:
        """Position with its residual, velocity, attitude and rate."""
        return motion_of(self.arrays.state()[:, : self.count], self._state)

    def set_motion(self, rows: Ints, motion: Motion) -> None:
        """Put some flights elsewhere; the next part of the launch counts from there."""
        state = self.arrays.state()
        coarse = motion.position.astype(np.float32)
        rest = (motion.position - coarse).astype(np.float32)
        for name, value in (("position", coarse), ("position_residual", rest), ("launch_base", coarse), ("launch_moved", rest)):
            state[self._state.rows(name), rows] = value.T
        for name in _MOTION:
            state[self._state.rows(name), rows] = getattr(motion, name).T
        self.arrays.push_state()

    def clock(self) -> NDArray[np.uint32]:
        """Physics steps since the start of each flight."""
        return self.arrays.keys()[4, : self.count]

    def row(self, name: str) -> Any:
        """A scalar state row, to be read."""
        return self.arrays.state_row(self._state.offsets[name])[: self.count]

    def stop(self, rows: Ints, status: float) -> None:
        """End some flights with a status."""
        self.arrays.state()[self._state.offsets["status"], rows] = status
        self.arrays.push_state()

    def add_contact(self, rows: Ints, speed: Array) -> None:
        """Count a physics step with contact, and its approach [m/s]."""
        state, offsets = self.arrays.state(), self._state.offsets
        state[offsets["contact"], rows] += 1.0
        state[offsets["impact_speed"], rows] = np.maximum(state[offsets["impact_speed"], rows], speed)
        self.arrays.push_state()


def motion_of(state: NDArray[np.float32], layout: Layout) -> Motion:
    """Motion from state rows (rows, k)."""
    rows = {name: state[layout.rows(name)].T.astype(np.float64) for name in ("position", "position_residual", *_MOTION)}
    return Motion(rows["position"] + rows["position_residual"], *(rows[name] for name in _MOTION))
