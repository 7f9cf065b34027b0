"""What a motor's and a propeller's names say before anything is measured: priors, not results.

Largest speed under load is Kv (2 pi / 60) V times 0.80 +- 0.07. With C_T, C_P of propellers (thrust C_T rho n^2 D^4, power
C_P rho n^3 D^5, n turns a second), thrust is C_T rho D^4 / (4 pi^2) w^2 and torque C_P / (2 pi) rho D^5 / (4 pi^2) w^2. Of
multirotors' propellers at rest C_T is 0.10 +- 0.02 and C_P 0.045 +- 0.012 (specification of identification, section 7), unless
a table of the propeller is given.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.files import shown
from airworthy.logs import table_of
from airworthy.logs.units import RPM
from airworthy.vehicles.bench.result import BenchFit

__all__ = ["MotorPrior", "against", "motor_prior", "propeller_size", "rotor_kv"]

LOADED, LOADED_SD = 0.80, 0.07
"""Speed under load over that of no load."""
THRUST_COEFFICIENT, THRUST_COEFFICIENT_SD = 0.10, 0.02
POWER_COEFFICIENT, POWER_COEFFICIENT_SD = 0.045, 0.012
AIR_DENSITY = 1.225
"""At sea level and 15 degrees [kg/m^3]."""
INCH = 0.0254
KV_RANGE = (20.0, 40_000.0)
"""[rpm/V]; of coreless motors of toys 20,000."""
DIAMETER_RANGE = (0.5, 80.0)
"""[inch]"""
FAR_OFF = 2.0
"""Factor between a stand and what names promise, from which on it is told."""
TABLE_SD = 0.05
"""Ours: least relative deviation of a table's coefficients from those of another sample of the propeller."""
TABLE_TOP = 0.5
"""Share of a table's largest speed from which on its rows count: slow ones suffer from low Reynolds numbers."""


@dataclass(frozen=True)
class MotorPrior:
    """Largest speed, thrust and torque that a motor and a propeller promise."""

    source: str
    diameter: float
    """[m]"""
    thrust: float
    """Over the square of the speed [N s^2/rad^2]."""
    thrust_sd: float
    """Relative."""
    torque_ratio: float
    """Torque over thrust [m]."""
    torque_ratio_sd: float
    """Relative."""
    speed_max: float | None = None
    """At full command [rad/s]; None: no motor or no supply is named."""
    speed_sd: float = LOADED_SD / LOADED
    """Relative."""

    def sentence(self) -> str:
        """Return what is believed, in words."""
        full = ""
        if self.speed_max is not None:
            lift = self.thrust * self.speed_max**2
            wide = math.hypot(self.thrust_sd, 2.0 * self.speed_sd)
            full = (
                f"full command turns at {self.speed_max:.0f} rad/s (+-{100 * self.speed_sd:.0f} %) and lifts {lift:.3g} N"
                f" (+-{100 * wide:.0f} %), "
            )
        return (
            f"Believed of {self.source}: {full}thrust {self.thrust:.3g} w^2 N (+-{100 * self.thrust_sd:.0f} %), torque"
            f" {self.torque_ratio:.3g} m times thrust (+-{100 * self.torque_ratio_sd:.0f} %)."
        )


def motor_prior(
    rotor: str | None,
    propeller: str,
    voltage: float | None = None,
    table: str | Path | None = None,
    density: float = AIR_DENSITY,
) -> MotorPrior:
    """Return what is believed of a motor with a propeller.

    Args:
        rotor: The motor as it is sold, its Kv last: "2212-980", "980KV"; None: only the propeller is known.
        propeller: Diameter and pitch [inch], "10x4.5".
        voltage: Of the supply under load [V]; None: the largest speed is not told.
        table: Of the propeller at rest, columns of rpm, CT and CP; None: what propellers have.
        density: Of the air [kg/m^3].

    Raises:
        AirworthyError: A name says no size, or a number is none that can be; one sentence.
    """
    diameter = propeller_size(propeller)
    if not 0.3 <= density <= 2.0:
        raise AirworthyError(f"The air's density is {density:g} kg/m^3; expected 0.3 to 2.")
    if voltage is not None and not 0.5 <= voltage <= 1000.0:
        raise AirworthyError(f"The supply is {voltage:g} V; expected 0.5 to 1000 V under load.")
    c_t, c_p = (THRUST_COEFFICIENT, THRUST_COEFFICIENT_SD), (POWER_COEFFICIENT, POWER_COEFFICIENT_SD)
    said = propeller
    if table is not None:
        c_t, c_p = _table(table)
        said += f" by {Path(table).name}"
    speed = None
    if rotor is not None:
        kv = rotor_kv(rotor)
        said = f"{rotor} with {said}"
        if voltage is not None:
            speed = kv * RPM * voltage * LOADED
            said += f" at {voltage:g} V"
    return MotorPrior(
        said,
        diameter,
        c_t[0] * density * diameter**4 / (4.0 * math.pi**2),
        c_t[1] / c_t[0],
        c_p[0] * diameter / (2.0 * math.pi * c_t[0]),
        math.hypot(c_t[1] / c_t[0], c_p[1] / c_p[0]),
        speed,
    )


def against(prior: MotorPrior, fit: BenchFit) -> list[str]:
    """Return where a stand is far from what names promise, in words: a unit, a gear or another propeller is likely.

    Args:
        prior: Of the names.
        fit: Of the stand.
    """
    said = []
    if fit.thrust is not None and fit.state == "speed":
        top = fit.thrust.high
        ratio = fit.thrust.at(top) / (prior.thrust * top**2)
        if not 1.0 / FAR_OFF < ratio < FAR_OFF:
            said.append(
                f"The stand lifts {ratio:.2g} times what such a propeller does at {top:.3g} rad/s: are thrust, speed (turns"
                " of the rotor, not electrical ones) and the propeller's size right?"
            )
    if fit.speed is not None and prior.speed_max is not None:
        ratio = fit.speed.at(1.0) / prior.speed_max
        if not 1.0 / FAR_OFF < ratio < FAR_OFF:
            said.append(f"Full command turns at {ratio:.2g} times what such a motor does: are Kv, poles and supply right?")
    return said


def rotor_kv(name: str) -> float:
    """Return the Kv of a motor [rpm/V] from its name: what stands beside KV, else its last number.

    Raises:
        AirworthyError: There is none that a motor has.
    """
    beside = re.search(r"kv\s*[:=]?\s*(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s*kv", name, re.IGNORECASE)
    last = re.findall(r"\d+(?:\.\d+)?", name)
    value = float(beside[1] or beside[2]) if beside else float(last[-1]) if last else math.nan
    if not KV_RANGE[0] <= value <= KV_RANGE[1]:
        raise AirworthyError(
            f"--rotor {shown(name)} names no Kv of {KV_RANGE[0]:g} to {KV_RANGE[1]:g} rpm/V; expected it last, as 2212-980, or"
            " beside KV, as 980KV."
        )
    return value


def propeller_size(name: str) -> float:
    """Return the diameter of a propeller [m] from "10x4.5", inches of diameter and pitch.

    Raises:
        AirworthyError: It says no such sizes.
    """
    found = re.match(r"\s*(\d+(?:\.\d+)?)\s*[x*]\s*(\d+(?:\.\d+)?)", name, re.IGNORECASE)
    diameter = float(found[1]) if found else math.nan
    if found is None or not DIAMETER_RANGE[0] <= diameter <= DIAMETER_RANGE[1] or not float(found[2]) <= 2.0 * diameter:
        raise AirworthyError(
            f"--propeller {shown(name)} has no diameter of {DIAMETER_RANGE[0]:g} to {DIAMETER_RANGE[1]:g} inches and a pitch;"
            " expected DIAMETERxPITCH in inches, as 10x4.5."
        )
    return diameter * INCH


def _table(path: str | Path) -> tuple[tuple[float, float], tuple[float, float]]:
    """C_T and C_P of a propeller's table, each with its deviation."""
    columns, _ = table_of(path)
    of = {re.sub(r"[^a-z]", "", name.lower()): np.asarray(values, np.float64) for name, values in columns.items()}
    if not {"rpm", "ct", "cp"} <= set(of):
        raise AirworthyError(f"{str(path)!r} has columns {', '.join(columns)}; expected rpm, CT and CP of a propeller at rest.")
    rpm, found = of["rpm"], []
    for name, (low, high) in (("ct", (0.01, 0.4)), ("cp", (0.002, 0.4))):
        values = of[name][(rpm >= TABLE_TOP * np.nanmax(rpm)) & np.isfinite(of[name])]
        mean = float(np.mean(values)) if len(values) else math.nan
        if not low <= mean <= high:
            raise AirworthyError(
                f"{str(path)!r}: {name.upper()} is {mean:.3g}; expected {low:g} to {high:g} (n in turns a second)."
            )
        found.append((mean, math.hypot(float(np.std(values)), TABLE_SD * mean)))
    return found[0], found[1]
