"""Rotations over windows of a fixed length, by an integrated gyro and by attitudes: they tell clocks and scales."""

from __future__ import annotations

import copy

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, from_rotation_vector, multiply, to_rotation_vector
from airworthy.logs.clocks.clock import lattice
from airworthy.logs.clocks.kinematics import integrate_gyro
from airworthy.logs.record import LogStream

WINDOW, WINDOW_STEP = 0.5, 0.1
"""Ours: rotations are compared over so long, beginning so often [s]: short beside the drift of a bias, long beside noise."""
WINDOWS_MAX = 5000
"""Ours: windows of a log of hours lie further apart; more would tell it no better."""
REACH = 0.2
"""Largest lag that is looked for [s]."""
WINDOWS_LEAST = 20


class TurnWindows:
    """Rotations of windows, by gyro and by attitudes.

    Raises:
        AirworthyError: There are too few windows.
    """

    def __init__(self, gyro: LogStream, poses: LogStream) -> None:
        self.name = poses.name
        clock, _ = lattice(gyro.time)
        self.clock, self.gyro = clock, gyro.values
        self.turned = integrate_gyro(clock, gyro.values)
        self.stamps, self.rate = lattice(poses.time)
        self.poses = poses.values
        self._cut(WINDOW)

    def noise(self) -> float:
        """Return by how much the gyro's noise lengthens squares of turns, at most [rad^2 per second of a window].

        Told by second differences, as of white noise: vibrations count as noise, and their turns do not add up as its do.
        """
        if len(self.gyro) < WINDOWS_LEAST:
            return 0.0
        rough = np.median(np.abs(self.gyro[2:] - 2.0 * self.gyro[1:-1] + self.gyro[:-2]), axis=0)
        # 1.4826 makes a deviation of a median of lengths; second differences of white noise have six times its variance.
        return float(np.sum(np.square(1.4826 * rough)) / 6.0 * np.median(np.diff(self.clock)))

    def over(self, window: float) -> TurnWindows:
        """Return rotations over windows of another length.

        Args:
            window: [s]

        Raises:
            AirworthyError: There are too few.
        """
        other = copy.copy(self)
        other._cut(window)
        return other

    def _cut(self, window: float) -> None:
        self.first, self.last = self._windows(window)
        self.start, self.stop = self.stamps[self.first], self.stamps[self.last]
        if len(self.start) < WINDOWS_LEAST:
            raise AirworthyError(
                f"Gyro and {self.name} have under {WINDOWS_LEAST} stretches of {window:g} s without gaps; a clock needs more."
            )
        self.middle = float(0.5 * (self.start[0] + self.stop[-1]))
        self.measured = to_rotation_vector(multiply(conjugate(self.poses[self.first]), self.poses[self.last]))
        self.size = np.linalg.norm(self.measured, axis=1)

    def _windows(self, window: float) -> tuple[ArrayAny, ArrayAny]:
        """Index pairs of poses a window apart, with no gap of the gyro between."""
        stamps = self.stamps
        step = max(WINDOW_STEP, (stamps[-1] - stamps[0]) / WINDOWS_MAX)
        begin = np.arange(stamps[0], stamps[-1] - window, step)
        first = np.searchsorted(stamps, begin)
        last = np.minimum(np.searchsorted(stamps, begin + window), len(stamps) - 1)
        span = stamps[last] - stamps[first]
        steps = np.diff(self.clock)
        gaps = np.concatenate([[0], np.cumsum(steps > 5.0 * np.median(steps))])
        low = np.searchsorted(self.clock, stamps[first] - REACH) - 1
        high = np.searchsorted(self.clock, stamps[last] + REACH)
        inside = (low >= 0) & (high < len(self.clock))
        low, high = np.clip(low, 0, len(gaps) - 1), np.clip(high, 0, len(gaps) - 1)
        good = inside & (np.abs(span - window) < 0.3 * window) & (gaps[low] == gaps[high])
        return first[good], last[good]

    def attitude(self, time: Array) -> Array:
        """Return attitudes of the integrated gyro, (n, 4).

        Args:
            time: [s], (n,).
        """
        at = np.clip(np.searchsorted(self.clock, time, side="right") - 1, 0, len(self.clock) - 2)
        share = (time - self.clock[at])[:, None]
        rate = self.gyro[at] + 0.5 * share / (self.clock[at + 1] - self.clock[at])[:, None] * (
            self.gyro[at + 1] - self.gyro[at]
        )
        return multiply(self.turned[at], from_rotation_vector(rate * share))

    def rotation(self, late: float, drift: float) -> Array:
        """Return the rotation of each window by the gyro [rad], (n, 3).

        Args:
            late: By how much stamps of attitudes are late [s].
            drift: By how much more with each second.
        """
        start = self.start - late - drift * (self.start - self.middle)
        stop = self.stop - late - drift * (self.stop - self.middle)
        return to_rotation_vector(multiply(conjugate(self.attitude(start)), self.attitude(stop)))

    def coarse(self) -> float:
        """Lag at which the lengths of rotations correlate best, whatever frame either is in [s]."""
        lags = np.linspace(-REACH, REACH, 41)
        found = []
        for lag in lags:
            other = np.linalg.norm(self.rotation(float(lag), 0.0), axis=1)
            found.append(float(np.corrcoef(self.size, other)[0, 1]))
        return float(lags[int(np.nanargmax(found))]) if np.isfinite(found).any() else 0.0
