"""Proofs that hundreds of polynomials keep a flight's limits, natively: NumPy's overhead here was most of a decision's time."""

from __future__ import annotations

import threading
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.planners.known_free.limits import GRAVITY, MotionLimits
from airworthy.planners.known_free.motion import PARTS, hull_matrix

__all__ = ["parts_keep_limits"]

_ARGUMENTS = """
    coefficients: float64[]  # (k, 6, 3) ascending powers of time
    powers: float64[]  # (k, 4, 6) of where each part begins
    matrix: float64[]  # (18, 6) from scaled coefficients to hulls of the derivatives 0 to 3
    limits: float64[]  # (5,) speed, acceleration, thrust, least upward thrust, jerk
    gravity: float64
    # output
    kept: int32[]  # (k,)
    most: float64[]  # (k,) speed that is never exceeded [m/s]
"""


@cache
def limits_kernel() -> Any:
    """Return the proof as a Warp kernel; compiled at first launch, then cached on disk."""
    source = files("airworthy.planners.known_free").joinpath("native", "limits_task.h").read_text()
    return native_kernel("known_free_limits", source, _ARGUMENTS, first=False)


class _Proofs(threading.local):
    """Arrays of the launches of one thread: making them and packing their arguments takes longer than most answers."""

    def __init__(self) -> None:
        self.room = 0

    def grow(self, room: int) -> None:
        if room <= self.room:
            return
        self.room = 2 * room
        shapes = {"coefficients": (self.room, 6, 3), "powers": (self.room, PARTS, 6), "matrix": (18, 6), "limits": (5,)}
        self.arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
        self.arrays["matrix"][:] = hull_matrix()[0]
        self.arrays |= {"kept": np.zeros(self.room, np.int32), "most": np.zeros(self.room)}
        wp = quiet_warp()
        sent = {name: wp.array(array.reshape(-1), device="cpu", copy=False) for name, array in self.arrays.items()}
        inputs = [sent[name] for name in shapes]
        self.command = quiet_launch(
            limits_kernel(), self.room, [*inputs, wp.float64(GRAVITY), sent["kept"], sent["most"]], "cpu", record=True
        )


_PROOFS = _Proofs()


def parts_keep_limits(found: Array, duration: Array, limits: MotionLimits, share: float = 1.0) -> tuple[ArrayBool, Array]:
    """Tell whether polynomials (k, 6, 3) keep one flight's limits all along, (k,), and what their speed never exceeds (k,).

    Each is cut into parts, whose hulls are tighter. `motion.parts_within_limits` gives the same bits, readably.

    Args:
        found: Ascending powers of time.
        duration: (k,) [s]
        limits: Of the flight.
        share: Of limits of acceleration and jerk that is not to be exceeded.
    """
    count = len(found)
    _PROOFS.grow(max(count, 1))
    held = _PROOFS.arrays
    held["coefficients"][:count] = found
    # Powers are NumPy's: those of other libraries differ in their last bits.
    begin = duration[:, None] * (np.arange(PARTS) / PARTS)
    np.power(begin[..., None], np.arange(6.0), out=held["powers"][:count])
    held["limits"][:] = (
        1.02 * limits.speed, share * limits.acceleration, limits.thrust, limits.least, share * limits.jerk
    )  # fmt: skip
    if count:
        _PROOFS.command.set_dim(count)
        _PROOFS.command.launch()
    return held["kept"][:count] != 0, held["most"][:count].copy()
