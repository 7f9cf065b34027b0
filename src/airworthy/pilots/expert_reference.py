"""Paths as the expert's MPC reads them: rows at its rate, one path behind the other, and where a vehicle is on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.control.mpc import MpcConfig, MpcReference
from airworthy.core.errors import AirworthyError
from airworthy.trajectories import Course, Trajectory, kinematic_state, minimum_snap

__all__ = ["ExpertReference", "expert_reference", "held"]

Array = NDArray[np.float64]
SEARCH = 0.2
"""How far from the clock a vehicle is looked for on its path [s]: hz / 5 samples (StanfordMSL/FiGS, vehicle_rate_mpc.py)."""
NEAREST = 0.05
"""Weight of every squared component of the difference by which the nearest sample is found; it cancels, and is kept as said."""
_HELD_ORDERS = 4


def held(course: Course, seconds: float) -> Trajectory:
    """A keyframe course with its end held: a keyframe equal to the last one, at rest, `seconds` after it, and planned anew.

    Other courses are taken as they are; where they end, the MPC repeats their last row.
    """
    if course.kind != "keyframes":
        return course.trajectory()
    last = course.keyframes[-1]
    axes = {axis: _first(getattr(last, axis)) for axis in ("x", "y", "z", "yaw")}
    end = replace(last, time=last.time + seconds, name="", **axes)
    return minimum_snap((*course.keyframes, end), course.coefficient_count)


def _first(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Value and the first three derivatives, as far as they are given."""
    return tuple(values[:_HELD_ORDERS])


@dataclass(frozen=True, eq=False)
class ExpertReference:
    """Paths of one rate in one table."""

    table: MpcReference
    first: NDArray[np.int64]
    """(paths,) row at which each begins."""
    last: NDArray[np.int64]
    """(paths,) row at which each ends."""
    rate: float
    """Rows per second [Hz]."""

    def nearest(self, state: Array, time: Array, path: NDArray[np.int64], search: float = SEARCH) -> NDArray[np.int64]:
        """Row (n,) of each vehicle's path that is nearest to it in all ten components, near the clock; the earliest of equals.

        Args:
            state: (n, 10) position, velocity, quaternion.
            time: (n,) since the path's beginning [s].
            path: (n,) which path.
            search: Before and after the clock [s].
        """
        reach = int(np.floor(search * self.rate + 1e-9))
        clock = self.first[path] + np.rint(time * self.rate).astype(np.int64)
        rows = np.clip(clock[:, None] + np.arange(-reach, reach + 1), self.first[path][:, None], self.last[path][:, None])
        wanted = self.table.states[rows]
        sign = np.where((wanted[..., 6:] * state[:, None, 6:]).sum(-1, keepdims=True) < 0.0, -1.0, 1.0)
        off = np.concatenate([wanted[..., :6], sign * wanted[..., 6:]], axis=-1) - state[:, None]
        return np.asarray(np.take_along_axis(rows, (NEAREST * off**2).sum(-1).argmin(1)[:, None], axis=1)[:, 0])


def expert_reference(
    paths: Trajectory | Course | Sequence[Trajectory | Course], config: MpcConfig | None = None, gravity: float = 9.81
) -> ExpertReference:
    """Sample paths for the MPC; courses with their end held for a horizon.

    Args:
        paths: One or several.
        config: Its rate and horizon count.
        gravity: [m/s^2]

    Raises:
        AirworthyError: There is no path.
    """
    config = config or MpcConfig()
    several = [paths] if isinstance(paths, Trajectory | Course) else list(paths)
    if not several:
        raise AirworthyError("An expert needs at least one path to follow.")
    parts, first = [], [0]
    for path in several:
        trajectory = held(path, config.horizon / config.rate) if isinstance(path, Course) else path
        parts.append(_rows(trajectory, config.rate, gravity))
        first.append(first[-1] + len(parts[-1]))
    rows = np.concatenate(parts)
    table = MpcReference(rows[:, :10], rows[:, 10], rows[:, 11:])
    return ExpertReference(table, np.array(first[:-1]), np.array(first[1:]) - 1, config.rate)


def _rows(path: Trajectory, rate: float, gravity: float) -> Array:
    """(rows, 14) of one path."""
    times: ArrayLike = np.arange(int(np.floor(path.duration * rate + 1e-6)) + 1) / rate
    sample = path.sample(times)
    state = kinematic_state(sample, gravity)
    parts = (sample.position, sample.velocity, state.attitude, state.thrust[:, None], state.rate)
    return np.concatenate(parts, axis=1)
