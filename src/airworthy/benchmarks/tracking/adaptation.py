"""What a history network can know: the ratio of thrust to mass, and how much of an unmodelled force it can take up.

SOUS VIDE, eqs. 4 and 5, in z-up frames with f in [0, 1] the share of full thrust and c = k_th / m: where the world adds a
specific force f_add, the acceleration is -g z + c f z_B + f_add. Of all c_hat, that which explains it best along z_B is

    c_hat = c + (z_B . f_add) / f

(the printed eq. 5 has c inside the fraction, which does not follow from eq. 4 and has other units). What is left is the part
of f_add at a right angle to z_B, |f_add| sin(angle): a payload, a weak battery and ground effect can be taken up, wind from the
side at hover cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.simulation import FlightTable, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = [
    "FormulaCheck",
    "absorbed_ratio",
    "best_ratio",
    "check_formula",
    "estimated_ratio",
    "flown_ratio",
    "payload_step",
    "ratio_statistics",
    "unexplained",
]

UP = np.array([0.0, 0.0, 1.0])
GRAVITY = 9.81
_HOVER = 0.05
"""Shares of thrust below this say nothing of the ratio."""


def absorbed_ratio(ratio: ArrayLike, axis: ArrayLike, added: ArrayLike, share: ArrayLike) -> Array:
    """Return c_hat = c + (z_B . f_add) / f.

    Args:
        ratio: c = k_th / m [m/s^2], (...).
        axis: z_B, the body's thrust axis, unit, world, (..., 3).
        added: f_add, specific force, world [m/s^2], (..., 3).
        share: f, of full thrust, above 0 to 1, (...).

    Returns:
        c_hat [m/s^2], (...).
    """
    along = np.sum(np.asarray(axis, float) * np.asarray(added, float), axis=-1)
    return np.asarray(ratio, float) + along / np.asarray(share, float)


def unexplained(axis: ArrayLike, added: ArrayLike) -> Array:
    """Return |f_add| sin(angle to z_B) [m/s^2], (...): what no ratio explains; arguments as `absorbed_ratio`."""
    axis, added = np.asarray(axis, float), np.asarray(added, float)
    return np.linalg.norm(added - np.sum(axis * added, axis=-1, keepdims=True) * axis, axis=-1)


def best_ratio(acceleration: ArrayLike, axis: ArrayLike, share: ArrayLike, gravity: float = GRAVITY) -> tuple[float, Array]:
    """Return the ratio that explains motion best, and what it leaves.

    Args:
        acceleration: World [m/s^2], (n, 3).
        axis: z_B (n, 3).
        share: f (n,).
        gravity: [m/s^2]

    Returns:
        The least squares solution of a + g z = c f z_B over all n, and the length of each remainder [m/s^2], (n,).
    """
    force = np.asarray(acceleration, float) + gravity * UP
    lever = np.asarray(share, float)[:, None] * np.asarray(axis, float)
    square = float(np.sum(lever * lever))
    ratio = float(np.sum(lever * force)) / square if square > 0.0 else float("nan")
    return ratio, np.linalg.norm(force - ratio * lever, axis=1)


@dataclass(frozen=True)
class FormulaCheck:
    """One simulated push."""

    angle_deg: float
    """Between the push and the thrust axis."""
    force: float
    """Of the push [m/s^2]."""
    predicted: float
    """c_hat by the formula [m/s^2]."""
    fitted: float
    """c_hat fitted to the simulated motion."""
    remainder_predicted: float
    """|f_add| sin(angle) [m/s^2]."""
    remainder: float
    """What the fit leaves [m/s^2]."""


def check_formula(
    vehicle: Vehicle, angles_deg: Sequence[float] = (0.0, 45.0, 90.0, 135.0, 180.0), force: float = 2.0
) -> list[FormulaCheck]:
    """Push hovering drones from several sides in the simulator, and fit the ratio to how they moved.

    The semi-kinematic family at 100 Hz for a tick of 0.05 s: level, at the thrust that holds the nominal drone.

    Args:
        vehicle: The nominal drone.
        angles_deg: Between the pushes and up, in the x-z plane [deg], (n,).
        force: Of each push over the nominal mass [m/s^2].
    """
    count = len(angles_deg)
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
    simulator = Simulator(vehicle, config, count)
    simulator.reset()
    full = np.asarray(simulator.parameter("thrust_limit"), float)
    ratio, share = full / vehicle.mass, vehicle.mass * vehicle.gravity / full
    angle = np.radians(np.asarray(angles_deg, float))
    # In the x-z plane alone: about the vertical nothing of the formula changes.
    added = force * np.stack([np.sin(angle), np.zeros(count), np.cos(angle)], axis=1)
    simulator.set_external(vehicle.mass * added)
    command = np.zeros((count, 4))
    command[:, 0] = share * full
    simulator.step(command)
    acceleration = np.asarray(simulator.velocity, float) * config.control_rate
    checks = []
    for k in range(count):
        fitted, left = best_ratio(acceleration[k : k + 1], UP[None], share[k : k + 1], vehicle.gravity)
        wanted = float(absorbed_ratio(ratio[k], UP, added[k], share[k]))
        rest = float(unexplained(UP, added[k]))
        checks.append(FormulaCheck(float(angles_deg[k]), force, wanted, fitted, rest, float(left[0])))
    return checks


def _free_rows(table: FlightTable) -> list[slice]:
    """Rows of each flight before its first impact, after which other forces act."""
    clearance = table.columns.get("clearance_m", np.ones(table.row_count))
    found = []
    for first, last in zip(table.starts[:-1], table.starts[1:], strict=True):
        met = np.flatnonzero(clearance[first:last] <= 0.0)
        found.append(slice(int(first), int(first + met[0] if len(met) else last)))
    return found


def flown_ratio(table: FlightTable, full: ArrayLike, rotors: int, gravity: float = GRAVITY) -> Array:
    """Return (flights,) force of one rotor over mass [N/kg] that explains each flight best, up to its first impact.

    It is what its own motion tells anybody.

    From the change of velocity from row to row, the share of full thrust commanded between them, and the thrust axis in their
    middle; exact for the semi-kinematic family without other forces, but for the turn within a tick.

    Args:
        table: With what was commanded.
        full: (flights,) thrust that a command of full thrust names [N].
        rotors: Of the vehicle.
        gravity: [m/s^2]
    """
    if "command_thrust_n" not in table.columns:
        return np.full(table.env_count, np.nan)
    velocity, attitude = table.vector("velocity").astype(float), table.vector("attitude").astype(float)
    whole = np.broadcast_to(np.asarray(full, float), table.env_count)
    found = []
    for k, rows in enumerate(_free_rows(table)):
        share = table.columns["command_thrust_n"][rows].astype(float) / whole[k]
        found.append(_ratio_of(table.t[rows], velocity[rows], attitude[rows], share, gravity) / rotors)
    return np.array(found)


def _ratio_of(time: Array, velocity: Array, attitude: Array, share: Array, gravity: float) -> float:
    dt = np.diff(time)
    finite = np.asarray(np.isfinite(velocity).all(axis=1))
    good = (dt > 0.0) & np.isfinite(share[:-1]) & (share[:-1] > _HOVER) & finite[1:]
    if good.sum() < 2:
        return float("nan")
    acceleration = np.diff(velocity, axis=0)[good] / dt[good, None]
    turns = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
    axis = frames.rotate(turns, UP)
    middle = axis[:-1][good] + axis[1:][good]
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    return best_ratio(acceleration, middle, share[:-1][good], gravity)[0]


def estimated_ratio(table: FlightTable) -> tuple[Array, Array]:
    """Return the mean and standard deviation (flights,) of a pilot's estimate up to an impact: force of a rotor over mass
    [N/kg]."""
    if "estimate_mass_kg" not in table.columns:
        return np.full(table.env_count, np.nan), np.full(table.env_count, np.nan)
    mass, force = (table.columns[name].astype(float) for name in ("estimate_mass_kg", "estimate_force_n"))
    means, spreads = [], []
    for rows in _free_rows(table):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = force[rows] / mass[rows]
        ratio = ratio[np.isfinite(ratio)]
        means.append(float(ratio.mean()) if len(ratio) else np.nan)
        spreads.append(float(ratio.std()) if len(ratio) else np.nan)
    return np.array(means), np.array(spreads)


def ratio_statistics(rows: Sequence[Mapping[str, Any]], name: str = "ratio_told") -> dict[str, float]:
    """Return the mean and standard deviation over all samples of several flights, and their true ratio.

    Args:
        rows: Flights of one pilot, family and condition.
        name: Whose estimate: "ratio_told" of the pilot, "ratio_flown" fitted to the motion.
    """
    kept = [row for row in rows if np.isfinite(row[name])]
    if not kept:
        return {"flights": 0, "mean": float("nan"), "std": float("nan"), "true": float("nan")}
    means = np.array([row[name] for row in kept])
    within = np.array([row.get(f"{name}_std", 0.0) for row in kept])
    spread = float(np.sqrt(np.mean(within**2) + np.var(means)))
    true = float(np.mean([row["ratio_true"] for row in kept]))
    return {"flights": len(kept), "mean": float(means.mean()), "std": spread, "true": true}


def payload_step(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Return the share of the way from one true ratio to another that an estimate went; of `ratio_statistics` without and with
    payload.

    1: all the way. NaN where the true ratios are equal or nothing is known.
    """
    change = after["true"] - before["true"]
    return (after["mean"] - before["mean"]) / change if np.isfinite(change) and abs(change) > 1e-9 else float("nan")
