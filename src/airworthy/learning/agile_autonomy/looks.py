"""Other looks of the same instants: mirrored left to right. The expert would do the mirrored thing, and it is free.

That a place may be turned about the vertical needs no look of its own: the network is told nothing that turns with it.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayBool, ArrayF32, ArrayU8
from airworthy.planners.agile_autonomy.level import MIRROR, STATE_SIGNS

__all__ = ["mirrored"]


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
    known = np.where(side, state * STATE_SIGNS, state).astype(np.float32)
    taught = np.where(side[..., None, None], expert * MIRROR, expert).astype(np.float32)
    return seen, known, taught
