"""Other looks of the same instants: mirrored left to right, and in a world that is turned about the vertical.

Neither changes what the expert would do but for the mirror, and both are free. Without turns a student would know only the one
heading along which the benchmark's places lie, and take another for something it has never seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayU8

__all__ = ["InstantLooks"]

# Of the state: what a mirror across the plane of x and z leaves, and what it turns round. It turns a rate about an axis
# that lies in the plane, and leaves one about the axis across it.
_MIRROR = np.array([1.0, -1.0, 1.0])
_STATE_SIGNS = np.concatenate([np.outer(_MIRROR, _MIRROR).reshape(-1), _MIRROR, -_MIRROR, _MIRROR])


@dataclass(frozen=True, eq=False)
class InstantLooks:
    """Of n instants."""

    mirrored: ArrayBool
    """(n,)"""
    turn: Array
    """(n,) of the world about the vertical [rad]."""

    @classmethod
    def drawn(cls, count: int, rng: np.random.Generator) -> InstantLooks:
        """Draw those of `count` instants: half of them mirrored, turned by any angle."""
        return cls(rng.random(count) < 0.5, rng.uniform(-np.pi, np.pi, count))

    def some(self, which: slice | ArrayInt) -> InstantLooks:
        """Return those of some instants."""
        return InstantLooks(self.mirrored[which], self.turn[which])

    def applied(self, images: ArrayU8, state: ArrayF32, expert: ArrayF32) -> tuple[ArrayU8, ArrayF32, ArrayF32]:
        """Return instants as they look then.

        Args:
            images: (n, height, width).
            state: (n, 18), see the contract's inputs.
            expert: (n, k, 10, 3), body frame.
        """
        side = self.mirrored[:, None]
        seen = np.where(side[..., None], images[:, :, ::-1], images)
        known = np.where(side, state * _STATE_SIGNS, state)
        taught = np.where(side[..., None, None], expert * _MIRROR, expert)
        c, s, zero = np.cos(self.turn), np.sin(self.turn), np.zeros_like(self.turn)
        turns = np.stack([c, -s, zero, s, c, zero, zero, zero, zero + 1.0], axis=1).reshape(-1, 3, 3)
        known[:, :9] = np.einsum("nij,njk->nik", turns, known[:, :9].reshape(-1, 3, 3)).reshape(-1, 9)
        return seen, known.astype(np.float32), taught.astype(np.float32)
