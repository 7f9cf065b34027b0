"""Whether a film's rows were exposed one after the other: a rolling shutter, told from what is left over of a reconstruction.

While a telephone turns, rows that are read later see the room moved on: a picture's points are off by the motion of the image
times how much later their row was read. A reconstruction, which knows of one instant a picture, leaves that over, except for
what a turn about the axis and a step forward can hide. The readout time is the slope of the leftovers over that product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayLike

__all__ = ["RollingShutterTest", "rolling_shutter"]

_CERTAIN = 4.0
"""Standard deviations from 0 from where on a readout is taken to be there."""
_NOTICED_S = 0.002
_LEAST_PICTURES, _LEAST_POINTS = 8, 30
_CUT_PX = 6.0


@dataclass(frozen=True)
class RollingShutterTest:
    """What the leftovers say."""

    readout: float
    """From the first row to the last one [s]; a lower bound where films have few frames a second, since motion between
    frames is then not known well."""
    deviation: float
    """Standard deviation of it [s], over pictures."""
    pictures: int
    """That were looked at; 0: too few for a test."""

    @property
    def rolling(self) -> bool:
        """Whether there is one, and it matters."""
        return self.pictures > 0 and self.readout > max(_CERTAIN * self.deviation, _NOTICED_S)

    @property
    def sentence(self) -> str:
        """What to tell a user; empty where there is nothing to tell."""
        if not self.rolling:
            return ""
        return (
            f"The film has a rolling shutter of about {1000 * self.readout:.0f} ms (+- {1000 * self.deviation:.0f}): pictures taken"
            " while turning are bent; walk and turn more slowly, or film with a higher frame rate."
        )


def rolling_shutter(
    picture: ArrayInt, pixels: ArrayLike, leftover: ArrayLike, rates: Mapping[int, ArrayLike], size: tuple[int, int]
) -> RollingShutterTest:
    """Test for a rolling shutter.

    Args:
        picture: Number of the picture of each observation, (n,).
        pixels: Where a point is seen [px], (n, 2).
        leftover: By how much that is off from where it is projected to [px], (n, 2).
        rates: Motion of the image, right and down [px/s], (2,), by the number of the picture.
        size: Of the pictures [px].
    """
    number, where = np.asarray(picture), np.asarray(pixels, np.float64)
    off = np.asarray(leftover, np.float64)
    sums: list[tuple[float, float]] = []
    for k, rate in rates.items():
        rows = (number == k) & (np.abs(off).max(axis=-1) < _CUT_PX)
        if rows.sum() >= _LEAST_POINTS:
            sums.append(_slopes(where[rows], off[rows], np.asarray(rate, np.float64), size))
    if len(sums) < _LEAST_PICTURES or not sum(below for _, below in sums) > 0.0:
        return RollingShutterTest(0.0, 0.0, 0)
    top, below = np.array(sums).T
    readout = float(top.sum() / below.sum())
    # Pictures are independent, points of one are not.
    spread = float(np.sqrt(np.square(top - readout * below).sum()) / below.sum())
    return RollingShutterTest(readout, spread, len(sums))


def _slopes(pixels: Array, off: Array, rate: Array, size: tuple[int, int]) -> tuple[float, float]:
    """Sums of leftovers times what one second of readout would make of them, and of that squared."""
    u, v = (pixels - 0.5 * np.array(size)).T
    late = v / size[1]
    wanted = np.concatenate((late * rate[0], late * rate[1]))
    zero, one = np.zeros_like(u), np.ones_like(u)
    # What the pose of the picture hides: a shift, a turn about the axis, a step forward.
    hidden = np.array([np.r_[one, zero], np.r_[zero, one], np.r_[-v, u], np.r_[u, v]]).T
    seen = wanted - hidden @ np.linalg.lstsq(hidden, wanted, rcond=None)[0]
    return float(seen @ np.r_[off[:, 0], off[:, 1]]), float(seen @ seen)
