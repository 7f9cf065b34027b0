"""Load-cell benches: thrust over rotor speed, voltage over current, speed over PWM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import read_text
from airworthy.evaluation.validation.logs import PWM_FULL, RPM

Array = NDArray[np.float64]

GRAM_FORCE = 9.80665e-3
"""Newtons per gram on the scale."""
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
    good: NDArray[np.bool_]
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
        """Of one rotor at speeds [rad/s]."""
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
    """Thrust map of a bench; None where the load cell recorded nothing."""
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
    """Open-circuit voltage [V] and resistance [ohm] of battery and wires, with the charge drawn as a third unknown.

    Returns None where the current was not recorded.
    """
    if not np.any(bench.current):
        return None
    drawn = np.cumsum(bench.current) / bench.current.sum()
    matrix = np.stack([np.ones_like(drawn), -bench.current, -drawn], axis=1)
    full, resistance, _ = np.linalg.lstsq(matrix, bench.voltage, rcond=None)[0]
    return float(full), float(resistance)


def fit_speed(bench: Bench) -> tuple[float, float]:
    """Offset [rad/s] and slope [rad/s/V] of rotor speed over duty cycle times battery voltage, where rotors turn well."""
    rows = bench.good & (bench.pwm > 0.2)
    volts = bench.pwm[rows] * bench.voltage[rows]
    slope, offset = np.polyfit(volts, bench.rotor_speed[rows], 1)
    return float(offset), float(slope)
