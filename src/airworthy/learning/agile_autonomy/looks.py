"""Other looks of the same instants: mirrored left to right. The expert would do the mirrored thing, and it is free.

That a place may be turned about the vertical needs no look of its own: the network is told nothing that turns with it.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayBool, ArrayF32, ArrayU8

__all__ = ["MIRROR", "mirrored"]

# Of the state: what a mirror across the plane of x and z leaves, and what it turns round. It turns a rate about an axis
# that lies in the plane, and leaves one about the axis across it.
MIRROR = np.array([1.0, -1.0, 1.0])
_STATE_SIGNS = np.concatenate([np.outer(MIRROR, MIRROR).reshape(-1), MIRROR, -MIRROR, MIRROR])


def mirrored(which: ArrayBool, views: ArrayU8, state: ArrayF32, expert: ArrayF32) -> tuple[ArrayU8, ArrayF32, ArrayF32]:
    """Return instants of which some (n,) look as in a mirror across the plane of nose and height.

    Args:
        which: (n,)
        views: (n, height, width), level.
        state: (n, 18), see the contract's inputs.
        expert: (n, k, 10, 3), body frame.
    """
    side = which[:, None]
    seen = np.where(side[..., None], views[:, :, ::-1], views)
    known = np.where(side, state * _STATE_SIGNS, state).astype(np.float32)
    taught = np.where(side[..., None, None], expert * MIRROR, expert).astype(np.float32)
    return seen, known, taught
