"""What is measured on the way of a navigation flight, accumulated tick by tick over a batch, nothing stored in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool

__all__ = ["DIAGNOSTICS", "FlightMeter", "Tick"]

GRAVITY = 9.81
CLEARANCE_MAX = 10.0
"""Distances are measured up to here [m]."""

DIAGNOSTICS: tuple[str, ...] = (
    "path_length_m",
    "speed_mean_m_s",
    "speed_max_m_s",
    "clearance_min_m",
    "jerk_integral",
    "snap_integral",
    "control_effort",
    "tracking_rmse_m",
    "thrust_saturation",
    "rate_saturation",
)
"""Of every flight from the goal being issued to its end: integrals of squared jerk [m^2/s^5] and snap [m^2/s^7] of the flown
path, of the mean squared share of full rotor command [s]; root mean square distance to the set-point [m], NaN where the pilot
gives none; shares of time with a rotor command beyond a limit, and with a body rate beyond `RATE_LIMIT`."""
RATE_LIMIT = 6.0
"""Roll and pitch rate that counts as saturated [rad/s]: the limit of published controllers (planners specification, 10.4)."""


@dataclass(frozen=True)
class Tick:
    """The motion of n flights at one tick."""

    time: Array
    """Since the goal was issued [s], (n,)."""
    position: Array
    """World [m], (n, 3)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, body to world, (n, 4)."""
    body_rate: Array
    """Body [rad/s], (n, 3)."""
    force: Array
    """Specific force, body [m/s^2], (n, 3)."""
    effort: Array
    """Mean over rotors of the squared share of full command, (n,)."""
    saturated: Array
    """Share of the tick with a rotor command beyond a limit, (n,)."""
    wanted: Array | None = None
    """Position that the tick's command asked for [m], (n, 3); NaN or None where it asked for none."""


class FlightMeter:
    """Accumulates `DIAGNOSTICS`.

    Derivatives of the path are differences of the accelerations at successive ticks, which the simulation gives exactly, so
    that no position is differentiated four times.

    Args:
        count: Flights.
        period: Between ticks [s].
    """

    def __init__(self, count: int, period: float):
        self._period = period
        self._sums = {name: np.zeros(count) for name in ("path", "jerk", "snap", "effort", "off", "full", "turning")}
        self._ticks, self._aimed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._last: Tick | None = None
        self._pull, self._jerk = np.full((count, 3), np.nan), np.full((count, 3), np.nan)
        self._fastest = np.zeros(count)
        self.clearance = np.full(count, CLEARANCE_MAX)
        """Least distance of the body to anything [m], (n,); told by `near`."""

    def update(self, tick: Tick, active: ArrayBool) -> None:
        """Take in a tick of the flights that are active (n,)."""
        step = np.zeros(len(active))
        if self._last is not None:
            step = np.linalg.norm(tick.position - self._last.position, axis=1)
        # Acceleration in the world: specific force less gravity.
        pull = frames.rotate(tick.attitude, tick.force) - (0.0, 0.0, GRAVITY)
        jerk = (pull - self._pull) / self._period
        snap = (jerk - self._jerk) / self._period
        begun = self._ticks > 0
        self._add("path", step, active & begun)
        self._add("jerk", np.sum(jerk**2, axis=1) * self._period, active & begun)
        # A difference of differences needs three ticks.
        self._add("snap", np.sum(snap**2, axis=1) * self._period, active & (self._ticks > 1))
        self._add("effort", tick.effort * self._period, active & begun)
        self._add("full", tick.saturated, active & begun)
        self._add("turning", np.abs(tick.body_rate[:, :2]).max(axis=1) > RATE_LIMIT, active & begun)
        if tick.wanted is not None:
            off = np.sum((tick.position - tick.wanted) ** 2, axis=1)
            aimed = active & begun & np.isfinite(off)
            self._add("off", off, aimed)
            # Counted apart: a pilot may give a position at some ticks and a velocity at others.
            self._aimed += aimed
        speed = np.linalg.norm(tick.velocity, axis=1)
        self._fastest = np.where(active & (speed > self._fastest), speed, self._fastest)
        self._ticks += active
        self._pull, self._jerk = pull, jerk
        self._last = tick

    def near(self, distance: ArrayLike, who: ArrayBool) -> None:
        """Note the distance of bodies to what is nearest [m], (n,)."""
        found = np.asarray(distance, np.float64)
        self.clearance = np.where(who & (found < self.clearance), found, self.clearance)

    def values(self, duration: Array) -> dict[str, Array]:
        """`DIAGNOSTICS` of every flight (n,).

        Args:
            duration: From the goal being issued to the end [s], (n,).
        """
        # n ticks bound n - 1 intervals.
        sums, shares = self._sums, np.maximum(self._ticks - 1, 1)
        # Flights that ended at once have no duration; their mean speed is set to 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = sums["path"] / np.where(duration > 0.0, duration, np.inf)
            off = np.where(self._aimed > 0, np.sqrt(sums["off"] / np.maximum(self._aimed, 1)), np.nan)
        found = (
            sums["path"],
            mean,
            self._fastest,
            self.clearance,
            sums["jerk"],
            sums["snap"],
            sums["effort"],
            off,
            sums["full"] / shares,
            sums["turning"] / shares,
        )
        return dict(zip(DIAGNOSTICS, found, strict=True))

    def _add(self, name: str, value: ArrayLike, who: ArrayBool) -> None:
        self._sums[name] += np.where(who, value, 0.0)
