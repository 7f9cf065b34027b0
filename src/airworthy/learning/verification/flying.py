"""Dynamics and planner: items 1 and 2 of SOUS VIDE's acceptance list (specification, section 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import z_down_attitude, z_down_vector
from airworthy.evaluation.verification.figure import Figure, below
from airworthy.pilots.svnet.features import to_command
from airworthy.simulation import SemiKinematicTwin, Simulator, SimulatorConfig
from airworthy.trajectories import course, kinematic_state
from airworthy.vehicles import vehicle

__all__ = ["FULL_FORCE", "MASS", "dynamics_figures", "planner_figures"]

Array = NDArray[np.float64]
COURSES = ("robustness", "extended", "cluttered", "infinity", "line", "hover", "sigmoid")
FULL_FORCE, MASS = 27.6, 1.144
"""The reference drone's k_th [N] and m [kg], written here again: the record of the vehicle is under test, too."""
RATE_MAX = 5.0
CLOCK = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
DRONES, TICKS = 64, 200
"""Of the flights under random commands; 10 s."""


# ---- 1: dynamics --------------------------------------------------------------------------------------------------------


def dynamics_figures() -> Iterator[Figure]:
    """Hover, quaternions and the Runge-Kutta step, of the float64 twin and of the float32 kernel that flies."""
    kinds = {"float64 twin": (_twin_flight, 1e-6, 1e-9), "float32 kernel": (_kernel_flight, 1e-6, _ROUNDED)}
    for name, (flight, drift, norm) in kinds.items():
        hover = np.tile([_share_of_hover() * FULL_FORCE, 0.0, 0.0, 0.0], (TICKS, 1, 1))
        yield below(
            f"SOUS VIDE 1, {name}: drift of hover at f = m g / k_th in 10 s", _distance(flight(hover, 100.0)[-1]), drift, "m"
        )
        attitude = np.stack([state[:, 3:] for state in flight(_commands(), 100.0)])
        off = float(np.abs(np.linalg.norm(attitude, axis=-1) - 1.0).max())
        yield below(f"SOUS VIDE 1, {name}: norm of quaternions off 1 in 10 s at up to 5 rad/s, worst", off, norm)
    few = _commands()[:40]
    fine = _twin_flight(few, 1000.0)[-1]
    gaps = {name: _distance(flight(few, 100.0)[-1] - fine) for name, (flight, _, _) in kinds.items()}
    label = "Runge-Kutta at 100 Hz against 1,000 Hz in float64, 2 s, worst"
    yield below(f"SOUS VIDE 1, float64 twin: {label}", gaps["float64 twin"], 1e-6, "m")
    # They tumble and fall twenty metres, of which a float32 keeps 2e-6 m, and of 20 m/s as much for the steps that are left.
    yield below(f"SOUS VIDE 1, float32 kernel: {label}", gaps["float32 kernel"], 1e-5, "m")


_ROUNDED = 3e-7
"""Four components of float32, each rounded to 6e-8 and the length divided out in float32."""


def _share_of_hover() -> float:
    return MASS * vehicle("carl").gravity / FULL_FORCE


def _commands() -> Array:
    """(TICKS, DRONES, 4) thrust [N] and rates [rad/s], drawn anew at every tick."""
    drawn = np.random.default_rng(0).uniform(-1.0, 1.0, (TICKS, DRONES, 4))
    hover = _share_of_hover() * FULL_FORCE
    return np.concatenate([hover * (1.0 + 0.5 * drawn[..., :1]), RATE_MAX * drawn[..., 1:]], axis=-1)


def _twin_flight(commands: Array, rate: float) -> list[Array]:
    """Positions and quaternions (n, 7) after every tick."""
    twin = SemiKinematicTwin(Simulator(vehicle("carl"), replace(CLOCK, physics_rate=rate), commands.shape[1]))
    found = []
    for command in commands:
        twin.advance(round(rate / CLOCK.control_rate), command)
        found.append(np.concatenate([twin.field("position"), twin.field("attitude")], axis=1))
    return found


def _kernel_flight(commands: Array, rate: float) -> list[Array]:
    simulator = Simulator(vehicle("carl"), replace(CLOCK, physics_rate=rate), commands.shape[1])
    found = []
    for command in commands:
        simulator.step(command)
        found.append(np.concatenate([simulator.position, simulator.attitude], axis=1).astype(np.float64))
    return found


def _distance(state: Array) -> float:
    return float(np.linalg.norm(state[:, :3], axis=1).max())


# ---- 2: planner ---------------------------------------------------------------------------------------------------------


def planner_figures(folder: Path) -> Iterator[Figure]:
    """Every course against its `reference_*.csv`.

    Args:
        folder: With these files.
    """
    units = {"positions": "m", "velocities": "m/s", "quaternions": "", "thrust shares and body rates": ""}
    worst = dict.fromkeys(units, 0.0)
    for name in COURSES:
        rows = np.loadtxt(folder / f"reference_{name}.csv", delimiter=",", skiprows=1)
        for key, gap in zip(worst, _planned_gaps(name, rows), strict=True):
            worst[key] = max(worst[key], float(np.abs(gap).max()))
    for key, value in worst.items():
        yield below(
            f"SOUS VIDE 2, {len(COURSES)} planned courses against references: {key} off, worst", value, 1e-4, units[key]
        )


def _planned_gaps(name: str, rows: Array) -> tuple[Array, ...]:
    sample = course(name).trajectory().sample(rows[:, 0])
    state = kinematic_state(sample)
    wanted = z_down_attitude(rows[:, 7:11])
    sign = np.where(np.sum(state.attitude * wanted, axis=1, keepdims=True) < 0.0, -1.0, 1.0)
    inputs = np.concatenate([(state.thrust * MASS / FULL_FORCE)[:, None], state.rate], axis=1)
    return (
        sample.position - z_down_vector(rows[:, 1:4]),
        sample.velocity - z_down_vector(rows[:, 4:7]),
        sign * state.attitude - wanted,
        inputs - to_command(rows[:, 11:15]),
    )
