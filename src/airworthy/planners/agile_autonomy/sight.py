"""What the student sees and knows: depth images of 224 x 224, and 18 numbers of its motion and of where it should fly.

Source: specification of the planners, section 8.1.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex, ArrayInt, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.planners.agile_autonomy.layers import IMAGE, STATE, STEPS

__all__ = ["LOOK_AHEAD", "STEPS", "DepthImages", "encoded", "reference_directions", "state_rows"]

# Source: spec/planners 8.1: 250 samples of a reference at 50 Hz.
LOOK_AHEAD = 5.0
"""So far ahead on the reference lies the point that is flown to [s]."""


def encoded(depth: ArrayLike, reach: float) -> ArrayU8:
    """Return images (n, 224, 224) of depth (n, H, W) along the optical axis [m].

    Each cell takes the pixel at its middle, so that no depth is made up between a trunk and what lies behind. What returns
    nothing (0, infinite, NaN) is as far as the reach: the matching of a stereo pair would have gaps there.

    Args:
        depth: Of whole images.
        reach: Depth of the last step [m].

    Raises:
        AirworthyError: It is not of images.
    """
    whole = np.asarray(depth, np.float32)
    if whole.ndim != 3:
        raise AirworthyError(f"Depth images have shape {whole.shape}; expected (n, height, width).")
    rows, columns = (((np.arange(IMAGE) + 0.5) * size / IMAGE).astype(np.int64) for size in whole.shape[1:])
    near = whole[:, rows[:, None], columns]
    returned = np.isfinite(near) & (near > 0.0)
    share = np.clip(np.where(returned, near, reach) / np.float32(reach), 0.0, 1.0)
    return np.rint(share * STEPS).astype(np.uint8)


class DepthImages:
    """The newest depth image of each of n flights, filled as maps are (`Planner.maps_for`).

    Args:
        count: Flights.
        reach: Depth beyond which images are all alike [m].
    """

    def __init__(self, count: int, reach: float):
        self._reach = reach
        self.images: ArrayU8 = np.full((count, IMAGE, IMAGE), STEPS, np.uint8)
        """(n, 224, 224); empty until one arrives."""
        self.seen: ArrayInt = np.zeros(count, np.int64)
        """How many have arrived, (n,)."""

    def update(self, flights: ArrayIndex, depth: ArrayLike, position: ArrayLike, attitude: ArrayLike) -> None:
        """Take one image of each of some flights.

        Args:
            flights: Places in the batch, (k,), each at most once.
            depth: (k, H, W) along the optical axis [m]; nothing returned is 0 or infinite.
            position: (k, 3) of the camera, of no use here.
            attitude: (k, 4), likewise.
        """
        self.images[flights] = encoded(depth, self._reach)
        self.seen[flights] += 1


def reference_directions(position: Array, start: Array, goal: Array, speed: Array) -> Array:
    """Return unit vectors (n, 3), world, toward the point 5 s ahead on the line from start to goal.

    Args:
        position: (n, 3) [m], world.
        start: (n, 3) of the lines.
        goal: (n, 3), their ends.
        speed: With which it is flown along them [m/s], (n,).
    """
    way = goal - start
    length = np.linalg.norm(way, axis=1)
    unit = way / np.maximum(length, 1e-9)[:, None]
    come = np.clip(((position - start) * unit).sum(axis=1), 0.0, length)
    ahead = start + np.minimum(come + LOOK_AHEAD * speed, length)[:, None] * unit - position
    return np.asarray(ahead / np.maximum(np.linalg.norm(ahead, axis=1), 1e-6)[:, None])


def state_rows(attitude: Array, velocity: Array, rate: Array, direction: Array) -> Array:
    """Return what the network knows besides its image, (n, 18).

    Args:
        attitude: (n, 4) quaternion x, y, z, w, body to world.
        velocity: (n, 3) world [m/s].
        rate: (n, 3) body [rad/s].
        direction: (n, 3) toward the reference, world.
    """
    turn = np.asarray(to_matrix(attitude), np.float64).reshape(-1, 3, 3)
    local = [np.einsum("nij,ni->nj", turn, vector) for vector in (velocity, direction)]
    out = np.concatenate([turn.reshape(-1, 9), local[0], rate, local[1]], axis=1)
    assert out.shape[1] == STATE
    return out
