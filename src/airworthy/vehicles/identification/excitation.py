"""Which values of a vehicle its logs can tell, by the excitation check of the logs, and in which words that is said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.logs import LogFinding
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import Vehicle

__all__ = ["advice", "pulled", "told_by", "word"]

_NEEDS = {
    "thrust over command / mass": ("thrust", "thrust_linear", "imu_tilt"),
    "lag and dead time": ("lag", "command_delay", "turns"),
    "inertia xx, yy": ("inertia_xx", "inertia_yy", "center_x", "center_y", "damping"),
    "torque / inertia zz": ("torque_ratio", "inertia_zz_ratio", "turn_z"),
    "lever of the IMU": ("imu_lever",),
    "battery": ("sag",),
}
"""By the findings' names: what is fitted where a log can tell them."""
_TURNING = (
    "inertia_xx",
    "inertia_yy",
    "center_x",
    "center_y",
    "damping",
    "torque_ratio",
    "inertia_zz_ratio",
    "turn_z",
    "imu_lever",
)
"""What shows in rates, which can be predicted only where commands are logged fast enough."""
IDENTIFIED, SUPPORTED = 0.8, 0.3
"""Shares from which on a value is called that."""
PULL_WIDTH, PULL_MIN = 0.3, 0.1
"""Deviation of specific forces across the rotors' axes in means over so long, above which their height is fitted [s, m/s^2]."""


def told_by(findings: Sequence[Sequence[LogFinding]], speeds: bool = False) -> dict[str, bool]:
    """Return by name what the logs can tell together.

    Args:
        findings: Of each log.
        speeds: Whether rotors turn as they were measured: then turns can be predicted, and the motors are told, however the
            commands came.
    """
    told = {"mass": True}
    for parameter, names in _NEEDS.items():
        verdicts = {f.verdict for of in findings for f in of if f.parameter == parameter}
        for name in names:
            told[name] = "can tell" in verdicts
        if parameter.startswith("thrust") and "partly" in verdicts:
            told["thrust"] = True
    if speeds:
        told |= dict.fromkeys(("lag", "command_delay", "turns"), True)
    if not told["turns"]:
        told |= dict.fromkeys(_TURNING, False)
    return told


def pulled(flights: Sequence[FlightSignals], base: Vehicle) -> bool:
    """Return whether the air pulls enough across rotors that push nothing there: a steady wind or a lean sensor is none."""
    if any(abs(axis) > 1e-6 for rotor in base.rotors for axis in rotor.axis[:2]):
        return False
    pulls = []
    for flight in flights:
        middles = [np.arange(a + PULL_WIDTH, b - PULL_WIDTH, PULL_WIDTH) for a, b in flight.spans]
        times = np.concatenate(middles) if middles else np.zeros(0)
        if len(times):
            pulls.append(flight.force.mean(times, PULL_WIDTH)[:, :2].std(axis=0))
    return bool(pulls) and bool(np.max(pulls) > PULL_MIN)


def advice(findings: Sequence[Sequence[LogFinding]]) -> tuple[str, ...]:
    """Return what would help, a sentence for each parameter that no log can tell."""
    lines = []
    for parameter in dict.fromkeys(f.parameter for of in findings for f in of):
        rows = [f for of in findings for f in of if f.parameter == parameter]
        if parameter != "mass" and not any(f.verdict == "can tell" for f in rows):
            helps = next((f.helps for f in rows if f.helps), "")
            lines.append(f"{parameter}: {rows[0].reason}" + (f"; what would help: {helps}." if helps else "."))
    return tuple(lines)


def word(share: float, fitted: bool) -> str:
    """Return how a value is called: identified, supported, prior, or assumed where nothing was fitted."""
    if not fitted:
        return "assumed"
    return "identified" if share >= IDENTIFIED else "supported" if share >= SUPPORTED else "prior"
