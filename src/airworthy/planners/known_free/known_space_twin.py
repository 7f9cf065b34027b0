"""What a memory of known space holds, readable: worked out from the states of all cells, one after the other."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.planners.common.interface import FREE, OCCUPIED, UNKNOWN
from airworthy.planners.known_free.known_space import (
    BLOCKED,
    FLOOR,
    HOLE,
    KNOWN,
    MET,
    TAKEN,
    UNSEEN,
    KnownSpace,
)

__all__ = ["KnownSpaceTwin"]


class KnownSpaceTwin:
    """What a memory holds, worked out from the states of all cells.

    Args:
        space: Of which the states are taken.
    """

    def __init__(self, space: KnownSpace):
        self.state, self.space = space.state, space

    def filled(self, first: ArrayLike, last: ArrayLike) -> ArrayInt:
        """Return the states once holes among the cells from `first` (3,) to before `last` (3,) are filled, one by one."""
        state = self.state.copy()
        for x, y, z in np.ndindex(*(np.asarray(last) - np.asarray(first)).tolist()):
            at: ArrayInt = np.array([x, y, z]) + np.asarray(first)
            around = state[tuple(slice(max(a - 1, 0), a + 2) for a in at)]
            if state[tuple(at)] != UNKNOWN or around.size < 27 or (around == OCCUPIED).any():
                continue
            if (around == FREE).sum() >= HOLE and self._may_be_hole(state, at):
                state[tuple(at)] = FREE
        return state

    @staticmethod
    def _may_be_hole(state: ArrayInt, at: ArrayInt) -> bool:
        x, y, z = at
        return FREE in (state[x, y, z + 1], state[x, y, z - 1], state[x, y + 1, z])

    def blocking(self) -> ArrayInt:
        """Return what `KnownSpace.blocking` holds."""
        counts = np.zeros(self.state.shape, np.int64)
        for cell in np.argwhere(self.state == OCCUPIED):
            near = cell + self.space.ball
            near = near[((near >= 0) & (near < self.state.shape)).all(1)]
            counts[tuple(near.T)] += 1
        return counts

    def node(self) -> ArrayInt:
        """Return what `KnownSpace.node` holds, without what is refused."""
        parts = (self.blocking() > 0, self.state == FREE, self.state == OCCUPIED)
        return sum(self._by_node(part) << shift for part, shift in zip(parts, (BLOCKED, KNOWN, TAKEN), strict=True))  # type: ignore[return-value]

    def crowd(self) -> ArrayInt:
        """Return what `KnownSpace.crowd` holds."""
        taken = self._by_node(self.state == OCCUPIED) > 0
        counts = np.zeros(taken.shape, np.int64)
        for node in np.argwhere(taken):
            near = node + self.space.ring[:, :3]
            inside = ((near >= 0) & (near < taken.shape)).all(1)
            counts[tuple(near[inside].T)] += (1 << 16) + self.space.ring[inside, 3]
        return counts

    def column(self) -> ArrayInt:
        """Return what `KnownSpace.column` holds."""
        return (self._by_node(self.state == OCCUPIED) > 0)[:, :, FLOOR:].sum(2)

    def meets(self, point: Array, wide: float, sure: float) -> int:
        """Return why a ball around a point (3,) is not free; 0: it is.

        Args:
            point: [m]
            wide: Radius within which nothing may be occupied [m].
            sure: And nothing unknown [m].
        """
        q = (point - self.space.origin) / self.space.resolution
        index = [np.arange(size) for size in self.state.shape]
        gaps = [np.maximum(np.maximum(i - x, x - (i + 1)), 0.0) ** 2 for i, x in zip(index, q, strict=True)]
        square = (gaps[0][:, None] + gaps[1][None, :])[:, :, None] + gaps[2][None, None, :]
        h = self.space.resolution
        if ((self.state == OCCUPIED) & (square < wide * wide / (h * h))).any():
            return MET
        return UNSEEN if ((self.state == UNKNOWN) & (square < sure * sure / (h * h))).any() else 0

    def _by_node(self, cells: ArrayBool) -> ArrayInt:
        x, y, _ = cells.shape
        padded = np.pad(cells, ((0, x % 2), (0, y % 2), (0, 0))).astype(np.int64)
        return padded[::2, ::2] + padded[1::2, ::2] + padded[::2, 1::2] + padded[1::2, 1::2]
