"""Rotor speed from motor PWM: a static map, a lag that differs for rise and fall, and the supply voltage.

The steady speed of motor m is `supply (offset + slope_m pwm)`; speed follows it with one time constant while it rises and
another while it falls. The battery is not known well enough in every log, so `supply`, a number near one, is found from the
measured speeds of the moment before a prediction starts: it is part of the start state, like position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.benchmarks.validation.windows import GYRO_DELAY, TIME_STEP, LogWindows, past_speeds, sample_columns, window_times
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_text
from airworthy.logs.units import RPM

# ---- Load-cell benches: thrust over rotor speed, voltage over current, speed over PWM ---------------------------------------

GRAM_FORCE = 9.80665e-3
"""Newtons per gram on the scale."""
PWM_FULL = 65535.0
"""Of a bench's duty cycle."""
_COLUMNS = ("weight[g]", "pwm", "vbat[V]", "rpm1", "rpm2", "rpm3", "rpm4", "v[V]", "i[A]", "p[W]")
_GLITCH = 0.08
"""Rotor speeds this far from their median over the four rotors are sensor mistakes (doubled or missed blades)."""


@dataclass(frozen=True)
class Bench:
    """A bench run: four rotors on one load cell."""

    name: str
    thrust: Array
    """Sum of four rotors, tare taken off [N], (n,)."""
    pwm: Array
    """Duty cycle, 0 to 1, (n,)."""
    rotor_speed: Array
    """Median of the rotors [rad/s], (n,)."""
    voltage: Array
    """At the battery, by the vehicle [V], (n,)."""
    supply_voltage: Array
    """At the supply, by the bench [V]; zeros where it was not recorded, (n,)."""
    current: Array
    """[A]; zeros where it was not recorded, (n,)."""
    good: ArrayBool
    """Rows whose four speeds agree, (n,)."""


@dataclass(frozen=True)
class ThrustMap:
    """Thrust of one rotor [N]: linear w + square w^2."""

    linear: float
    square: float
    error: float
    """RMS of the fit, sum of four rotors [N]."""
    spread: float
    """Half the mean difference between the rising and the falling sweep [N]: what the bench itself repeats to."""

    def thrust(self, speed: Array) -> Array:
        """Return the thrust of one rotor at speeds [rad/s]."""
        return self.linear * speed + self.square * speed**2


def read_bench(path: Path) -> Bench:
    """Read a bench table.

    Raises:
        AssetError: It is missing, has other columns, or is not a table of numbers.
    """
    lines = read_text(path).splitlines()
    header = tuple(lines[0].split(",")) if lines else ()
    if header != _COLUMNS:
        raise AssetError(f"Bench {str(path)!r} has the columns {', '.join(header)}; expected {', '.join(_COLUMNS)}.")
    try:
        table = np.array([line.split(",") for line in lines[1:] if line], np.float64)
    except ValueError as error:
        raise AssetError(f"Bench {str(path)!r} is not a table of numbers: {error}.") from error
    if len(table) < 10 or not np.all(np.isfinite(table)):
        raise AssetError(f"Bench {str(path)!r} needs at least 10 rows of finite numbers.")
    speeds = table[:, 3:7]
    middle = np.median(speeds, axis=1)
    agree = np.all(np.abs(speeds - middle[:, None]) <= _GLITCH * np.maximum(middle, 1.0)[:, None], axis=1)
    resting = table[:, 1] == 0.0
    tare = float(np.median(table[resting & (middle == 0.0), 0])) if np.any(resting & (middle == 0.0)) else 0.0
    return Bench(
        name=path.stem,
        thrust=(table[:, 0] - tare) * GRAM_FORCE,
        pwm=table[:, 1] / PWM_FULL,
        rotor_speed=middle * RPM,
        voltage=table[:, 2],
        supply_voltage=table[:, 7],
        current=table[:, 8],
        good=agree & (middle > 0.0),
    )


def fit_thrust(bench: Bench) -> ThrustMap | None:
    """Return thrust map of a bench; None where the load cell recorded nothing."""
    if not np.any(bench.thrust):
        return None
    speed, thrust = bench.rotor_speed[bench.good], bench.thrust[bench.good]
    matrix = 4.0 * np.stack([speed, speed**2], axis=1)
    linear, square = np.linalg.lstsq(matrix, thrust, rcond=None)[0]
    residual = thrust - matrix @ [linear, square]
    top = int(np.argmax(bench.pwm[bench.good]))
    sweeps = residual[:top], residual[top:]
    spread = 0.5 * abs(float(sweeps[0].mean() - sweeps[1].mean())) if min(map(len, sweeps)) else 0.0
    return ThrustMap(float(linear), float(square), float(np.sqrt(np.mean(residual**2))), spread)


def fit_sag(bench: Bench) -> tuple[float, float] | None:
    """Return the open-circuit voltage [V] and resistance [ohm] of battery and wires, with the charge drawn as a third unknown.

    Returns None where the current was not recorded.
    """
    if not np.any(bench.current):
        return None
    drawn = np.cumsum(bench.current) / bench.current.sum()
    matrix = np.stack([np.ones_like(drawn), -bench.current, -drawn], axis=1)
    full, resistance, _ = np.linalg.lstsq(matrix, bench.voltage, rcond=None)[0]
    return float(full), float(resistance)


def fit_speed(bench: Bench) -> tuple[float, float]:
    """Return the offset [rad/s] and slope [rad/s/V] of rotor speed over duty cycle times battery voltage, where rotors turn
    well."""
    rows = bench.good & (bench.pwm > 0.2)
    volts = bench.pwm[rows] * bench.voltage[rows]
    slope, offset = np.polyfit(volts, bench.rotor_speed[rows], 1)
    return float(offset), float(slope)


# -----------------------------------------------------------------------------------------------------------------------------

SUPPLY_SPAN = 0.5
"""Measured speeds of this long before a window tell its supply [s]."""
_SUPPLY_KNOTS = 2.0


@dataclass(frozen=True)
class MotorMap:
    """Map and lag of four motors."""

    offset: float
    """[rad/s]"""
    slope: Array
    """[rad/s] per full PWM, (4,)."""
    rise: float
    """Time constant while speed rises [s]."""
    fall: float
    """Time constant while it falls [s]."""
    error: float
    """RMS of the fit [rad/s]."""
    measured: tuple[int, ...]
    """Motors whose speed was recorded; the others' slope is the mean of theirs."""

    def steady(self, pwm: Array, supply: Array | float = 1.0) -> Array:
        """Return the steady speed [rad/s] of PWM (..., 4)."""
        return supply * (self.offset + self.slope * pwm)


def recorded_motors(log: FlightLog) -> tuple[int, ...]:
    """Return motors whose speed sensor worked: its speed never falls to half of its median while the vehicle flies."""
    speed = log.rotor_speed
    return tuple(
        int(m) for m in np.flatnonzero((speed.min(axis=0) > 0.5 * np.median(speed)) & (np.median(speed, axis=0) > 0.0))
    )


def lagged(target: Array, start: Array, step: float, rise: float, fall: float) -> Array:
    """Return the response to targets (n, ...) held over each step, exact for a first-order lag; shape of `target`.

    Args:
        target: Speeds that are aimed at [rad/s], (n, ...).
        start: Speeds before the first [rad/s].
        step: Between the targets [s].
        rise: Time constant where the target is above [s].
        fall: Time constant elsewhere [s].
    """
    # The exact response over a step, however long it is against the lag.
    keep_rise, keep_fall = np.exp(-step / rise), np.exp(-step / fall)
    out = np.empty_like(target)
    speed = np.array(start, float)
    # A loop: each speed depends on the one before, and rising and falling have different lags.
    for index, goal in enumerate(target):
        speed = goal + (speed - goal) * np.where(goal > speed, keep_rise, keep_fall)
        out[index] = speed
    return out


def fit_motor_map(log: FlightLog) -> MotorMap:
    """Fit map and lag to one flight's recorded motors, the supply free to drift along the flight.

    Raises:
        AirworthyError: No motor's speed was recorded.
    """
    motors = recorded_motors(log)
    if not motors:
        raise AirworthyError(f"Flight log {log.name!r} recorded no motor's speed, so no motor map can be fitted to it.")
    pwm, speed = log.pwm[:, motors], log.rotor_speed[:, motors]
    knots = np.linspace(log.time[0], log.time[-1], max(2, round((log.time[-1] - log.time[0]) / _SUPPLY_KNOTS)))
    level = float(np.mean(speed) / np.mean(pwm))
    skip = np.searchsorted(log.time, log.time[0] + 0.3)
    step = float(np.median(np.diff(log.time)))

    def unpack(x: Array) -> tuple[float, Array, float, float, Array]:
        return (
            x[0] * 1e3,
            level * x[1 : 1 + len(motors)],
            float(np.exp(x[-2])),
            float(np.exp(x[-1])),
            1.0 + x[1 + len(motors) : -2],
        )

    def error(x: Array) -> Array:
        offset, slope, rise, fall, drift = unpack(x)
        target = np.interp(log.time, knots, drift)[:, None] * (offset + slope * pwm)
        # Drift is relative: its mean is held at one, its steps are held small.
        held = np.concatenate([[1e3 * np.mean(drift - 1.0)], 1e2 * np.diff(drift)])
        return np.concatenate(
            [(lagged(target, speed[0], step, rise, fall) - speed)[skip:].ravel() / np.sqrt(speed.size / 1e3), held]
        )

    x0 = np.concatenate([[0.8], np.full(len(motors), 0.6), np.zeros(len(knots)), np.log([0.05, 0.05])])
    bounds = (np.full(len(x0), -np.inf), np.full(len(x0), np.inf))
    bounds[0][-2:], bounds[1][-2:] = np.log(0.005), np.log(0.5)
    found = least_squares(error, x0, bounds=bounds, max_nfev=12)
    offset, slope, rise, fall, _ = unpack(found.x)
    every = np.full(4, slope.mean())
    every[list(motors)] = slope
    residual = error(found.x)[: (len(speed) - skip) * len(motors)]
    rms = float(np.sqrt(np.mean(residual**2) * speed.size / 1e3))
    return MotorMap(offset, every, rise, fall, rms, motors)


def speeds_from_pwm(windows: LogWindows, log: FlightLog, motor_map: MotorMap) -> LogWindows:
    """Return the windows of a log with rotor speeds predicted from PWM instead of measured ones.

    Until a window's start the recorded speeds tell supply and initial speed; from there on only PWM is used.

    Args:
        windows: Of the log.
        log: The flight.
        motor_map: From PWM to speed, of four motors.
    """
    recorded = [m for m in motor_map.measured if m in recorded_motors(log)]
    step = float(np.median(np.diff(log.time)))
    nominal = lagged(motor_map.steady(log.pwm), motor_map.steady(log.pwm[0]), step, motor_map.rise, motor_map.fall)
    ratio = np.mean(log.rotor_speed[:, recorded] / nominal[:, recorded], axis=1)
    times = window_times(windows.time) - GYRO_DELAY
    out = np.empty_like(windows.rotor_speed)
    past = past_speeds(log.time, nominal, windows.time)
    for index, row in enumerate(times):
        before = (log.time > row[0] - SUPPLY_SPAN) & (log.time <= row[0])
        supply = float(np.mean(ratio[before])) if before.any() else float(ratio[0])
        past[index] *= supply
        start = supply * sample_columns(log.time, nominal, row[:1])[0]
        last = np.flatnonzero(before)[-5:] if before.any() else np.array([0])
        start[recorded] = log.rotor_speed[last][:, recorded].mean(axis=0)
        middle = row[:-1] + 0.25 * TIME_STEP
        target = motor_map.steady(sample_columns(log.time, log.pwm, middle), supply)
        out[index, 0] = start
        out[index, 1:] = lagged(target, start, 0.5 * TIME_STEP, motor_map.rise, motor_map.fall)
    return replace(windows, rotor_speed=out, past_speed=past)
