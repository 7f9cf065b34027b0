"""Lag of rotors from a stand's steps: the exponential behind each step of the command, where it was sampled often enough.

A supply that gives way makes rotors look faster than they are: where the voltage falls as they speed up, what they are driven
to falls too. With speed going with the power p of the voltage, T w' = w_c (V/V0)^p - w, a small step decays with T / (1 + k),
k = -p (dV/V) / (dw/w), which the voltage before and behind the step tells; what is returned is T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.vehicles.bench.table import BenchTable

__all__ = ["BenchLag", "fit_lag"]

STEP_MIN = 0.04
"""Change of the command that is a step."""
HELD_MIN = 0.15
"""Time that a command is held before and after a step [s]."""
LOOKED = 1.0
"""Time behind a step that is looked at [s]."""
SAMPLES_PER_LAG = 10.0
"""Samples in a lag under which it is not told (specification of identification, 7)."""
MOVED_MIN = 8.0
"""Least change of the value over its noise."""
LAGS = np.geomspace(0.003, 0.5, 60)
"""Trial lags [s]."""
DELAYS = 30
"""Trial dead times, evenly over a tenth of a second at most."""
YIELDING_MOST = 0.5
"""No supply that is fit to fly gives way by more."""
SPREAD_MIN = 0.03
"""Least relative deviation of a lag: an exponential is not quite what rotors do."""


@dataclass(frozen=True)
class BenchLag:
    """Lags of steps up and down."""

    rise: float
    """Median of the steps up [s]; 0: none was told."""
    rise_sd: float
    """Of one step's lag about it: lags differ with the speed [s]."""
    fall: float
    """Median of the steps down [s]; 0: none was told."""
    fall_sd: float
    delay: float
    """From command to answer, of the stand too [s]."""
    steps: int
    by: str
    """"speed" or "thrust"."""

    @property
    def both(self) -> tuple[float, float]:
        """Return the lag of steps either way, and its deviation [s]."""
        found = [(v, s) for v, s in ((self.rise, self.rise_sd), (self.fall, self.fall_sd)) if v > 0.0]
        mean = float(np.mean([v for v, _ in found]))
        return mean, float(np.mean([s for _, s in found]))


def fit_lag(table: BenchTable, sag: float = 0.0) -> BenchLag | str:
    """Return the lag of a stand's steps, or why it is not told.

    Args:
        table: With commands and time.
        sag: Power of the voltage in the speed; 0: none is corrected for.
    """
    if table.command is None or table.time is None:
        return "a lag needs commands and time"
    value, by = (table.speed, "speed") if table.speed is not None else (table.thrust, "thrust")
    assert value is not None
    time, command = table.time, table.command
    step = float(np.median(np.diff(time)[np.diff(time) > 0.0])) if np.any(np.diff(time) > 0.0) else 1.0
    places = _steps(time, command)
    if not len(places):
        return "no step of the command is held for 0.15 s on either side"
    found = []
    for place, end in places:
        one = _one(time, value, command, place, end)
        if one is not None:
            lag, delay, way = one
            found.append((lag * (1.0 + _yielding(table, value, place, end, sag)), delay, way))
    if not found:
        return "behind no step does the value move by more than its noise, in 8 samples and more"
    rise = np.array([f[0] for f in found if f[2] > 0.0])
    fall = np.array([f[0] for f in found if f[2] < 0.0])
    lag = float(np.median([f[0] for f in found]))
    if step > lag / SAMPLES_PER_LAG:
        return f"it was sampled at {1.0 / step:.3g} Hz, and a lag of {1e3 * lag:.3g} ms asks for {SAMPLES_PER_LAG / lag:.0f} Hz"
    return BenchLag(*_middle(rise), *_middle(fall), float(np.median([f[1] for f in found])), len(found), by)


def _yielding(table: BenchTable, value: Array, at: int, end: int, sag: float) -> float:
    """Return by how much a supply that gives way shortened the lag of a step, k of the module's words."""
    if table.voltage is None or sag == 0.0:
        return 0.0
    count = max((end - at) // 4, 3)
    before, behind = slice(max(at - count, 0), at), slice(end - count, end)
    volts = [float(np.nanmean(table.voltage[part])) for part in (before, behind)]
    speeds = [float(np.nanmean(value[part])) for part in (before, behind)]
    middle = 0.5 * (speeds[0] + speeds[1])
    moved = (speeds[1] - speeds[0]) / middle
    return float(np.clip(-sag * (volts[1] - volts[0]) / (0.5 * (volts[0] + volts[1])) / moved, 0.0, YIELDING_MOST))


def _middle(lags: Array) -> tuple[float, float]:
    """Median and deviation of one, robustly."""
    if not len(lags):
        return 0.0, 0.0
    middle = float(np.median(lags))
    spread = 1.4826 * float(np.median(np.abs(lags - middle))) if len(lags) > 2 else float(np.ptp(lags))
    return middle, max(spread, SPREAD_MIN * middle)


def _steps(time: Array, command: Array) -> list[tuple[int, int]]:
    """First row of each step, and the row where the command changes again."""
    changes = np.flatnonzero(np.abs(np.diff(command)) > 1e-6) + 1
    bounds: ArrayInt = np.concatenate([[0], changes, [len(time)]])
    found = []
    for k in range(1, len(bounds) - 1):
        before, at, after = bounds[k - 1], bounds[k], bounds[k + 1]
        held = time[at - 1] - time[before], time[after - 1] - time[at]
        if abs(command[at] - command[at - 1]) >= STEP_MIN and min(held) >= HELD_MIN and command[at] > 0.0:
            found.append((int(at), int(after)))
    return found


def _one(time: Array, value: Array, command: Array, at: int, end: int) -> tuple[float, float, float] | None:
    """Lag, dead time and direction of one step."""
    first = np.searchsorted(time, time[at] - HELD_MIN)
    end = int(min(end, np.searchsorted(time, time[at] + LOOKED)))
    t, y = time[first:end] - time[at], value[first:end]
    good = np.isfinite(y)
    t, y = t[good], y[good]
    before = t < 0.0
    if before.sum() < 3 or (~before).sum() < 8:
        return None
    tail = y[t > 0.7 * t[-1]]
    noise = max(float(np.std(y[before])), float(np.std(tail)) if len(tail) > 2 else 0.0)
    moved = float(tail.mean() - y[before].mean())
    if command[at - 1] <= 0.0 or abs(moved) < MOVED_MIN * noise + 1e-12:
        return None
    best, lag, delay = _searched(t, y, LAGS, np.linspace(0.0, min(0.1, 0.3 * t[-1]), DELAYS))
    near = np.linspace(0.0, min(0.1, 0.3 * t[-1]), DELAYS)[1]
    best, lag, delay = _searched(t, y, lag * np.geomspace(0.92, 1.09, 21), delay + near * np.linspace(-1.0, 1.0, 21))
    # What hardly fits is no exponential: a limiter of the controller, or a rotor that did not start.
    if best > 0.3 * abs(moved) or lag > 0.5 * t[-1]:
        return None
    return lag, max(delay, 0.0), float(np.sign(moved))


def _searched(t: Array, y: Array, lags: Array, delays: Array) -> tuple[float, float, float]:
    """Least rms over a grid; both levels in closed form."""
    late = np.maximum(t[None, None, :] - delays[None, :, None], 0.0)
    shape = 1.0 - np.exp(-late / lags[:, None, None])
    centred, target = shape - shape.mean(axis=2, keepdims=True), y - y.mean()
    size = np.maximum((centred**2).sum(axis=2), 1e-12)
    gain = (centred @ target) / size
    left = (target @ target) - gain**2 * size
    i, j = np.unravel_index(int(np.argmin(left)), left.shape)
    return float(np.sqrt(max(left[i, j], 0.0) / len(t))), float(lags[i]), float(delays[j])
