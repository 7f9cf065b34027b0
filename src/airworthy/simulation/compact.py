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

Ints = NDArray[np.intp]

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

    def clock(self) -> NDArray[np.uint32]:
        """Physics steps since the start of each flight."""
        return self.arrays.keys()[4, : self.count]

    def row(self, name: str) -> Any:
        """A scalar state row, to be read."""
        return self.arrays.state_row(self._state.offsets[name])[: self.count]


def motion_of(state: NDArray[np.float32], layout: Layout) -> Motion:
    """Motion from state rows (rows, k)."""
    rows = {name: state[layout.rows(name)].T.astype(np.float64) for name in ("position", "position_residual", *_MOTION)}
    return Motion(rows["position"] + rows["position_residual"], *(rows[name] for name in _MOTION))
