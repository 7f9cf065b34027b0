"""Flies a pilot in a simulator and records the flights."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.progress import progress
from airworthy.pilots.pilot import Pilot, observe
from airworthy.simulation.flights import FlightTable
from airworthy.simulation.recorder import Recorder
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Trajectory

_STATE = ("position", "velocity", "attitude", "rate")
_NAMES = {
    "position": [f"position_{a}_m" for a in "xyz"],
    "velocity": [f"velocity_{a}_m_s" for a in "xyz"],
    "attitude": [f"attitude_{a}" for a in "xyzw"],
    "rate": [f"rate_{a}_rad_s" for a in "xyz"],
}


@dataclass(frozen=True)
class FlightPlan:
    """How long to fly and what to keep."""

    duration: float
    """[s]"""
    reference: Trajectory | None = None
    """Recorded beside the flight, and what it is judged by."""
    record_every: int = 1
    """Keep every n-th control step."""
    min_height: float = -np.inf
    """Below this height [m] a flight ends as a collision with the ground."""
    bounds: float = np.inf
    """Farther than this from the start [m] a flight ends as out of bounds."""


@dataclass(frozen=True)
class Flown:
    """What a run left."""

    table: FlightTable
    """Every environment's flight."""
    interrupted: bool
    """The run was stopped before the plan's end; the table ends there."""


def fly(simulator: Simulator, pilot: Pilot, plan: FlightPlan, quiet: bool = True) -> Flown:
    """Fly every environment to the plan's end and return what was recorded.

    The simulator is taken as it is: reset it first. A flight that diverged stays in the table, labelled. Ctrl-C ends the run
    and keeps what was flown.

    Args:
        simulator: Its level must be the pilot's.
        pilot: Decides.
        plan: Duration and recording.
        quiet: Show no progress.

    Raises:
        AirworthyError: If pilot and simulator do not fit, or a command has the wrong shape.
    """
    _check(simulator, pilot, plan)
    steps = ceil(plan.duration * simulator.config.control_rate - 1e-9)
    recorder = Recorder(_columns(simulator, plan), simulator.env_count, steps + 1, every=plan.record_every)
    start = np.array(simulator.position)
    ended = _ended(simulator, plan, start)
    _record(recorder, simulator, plan, ended)
    try:
        for _ in progress(range(steps), "flying", quiet=quiet):
            simulator.step(pilot.command(observe(simulator, pilot.observes)))
            ended = np.where(ended == 0, _ended(simulator, plan, start), ended)
            _record(recorder, simulator, plan, ended)
    except KeyboardInterrupt:
        return Flown(recorder.table(), True)
    return Flown(recorder.table(), False)


def _check(simulator: Simulator, pilot: Pilot, plan: FlightPlan) -> None:
    if pilot.level != simulator.config.level:
        raise AirworthyError(
            f"Pilot {pilot.name!r} commands level {pilot.level!r} but the simulator was built for {simulator.config.level!r}."
        )
    if not (np.isfinite(plan.duration) and plan.duration > 0):
        raise AirworthyError(f"A flight of {plan.duration} s cannot be flown; the duration must be positive.")


def _columns(simulator: Simulator, plan: FlightPlan) -> list[str]:
    names = [name for field in _STATE for name in _NAMES[field]]
    if "rotor_speed" in simulator.layout:
        names += [f"rotor_speed_{i}_rad_s" for i in range(simulator.rotor_count)]
        names += [f"rotor_command_{i}_rad_s" for i in range(simulator.rotor_count)]
    if plan.reference is not None:
        names += [f"reference_{name}" for field in ("position", "velocity") for name in _NAMES[field]]
        names += ["reference_yaw_rad"]
    return [*names, "saturated", "status"]


def _record(recorder: Recorder, simulator: Simulator, plan: FlightPlan, ended: Any) -> None:
    blocks = [simulator.field(name).T for name in _STATE]
    if "rotor_speed" in simulator.layout:
        blocks += [simulator.field(name)[:, : simulator.rotor_count].T for name in ("rotor_speed", "rotor_command")]
    if plan.reference is not None:
        flat = plan.reference.sample(simulator.time)
        blocks += [flat.position.T, flat.velocity.T, flat.yaw]
    recorder.record(float(simulator.time.max()), *blocks, simulator.field("saturated"), ended)


def _ended(simulator: Simulator, plan: FlightPlan, start: Any) -> Any:
    """Status code per environment: 0 flying, 1 diverged, 2 collision, 3 out of bounds."""
    status = np.array(simulator.field("status"), float)
    if np.isfinite(plan.bounds):
        away = np.linalg.norm(simulator.position - start, axis=1) > plan.bounds
        status = np.where((status == 0) & away, 3.0, status)
    if np.isfinite(plan.min_height):
        status = np.where((status == 0) & (simulator.position[:, 2] < plan.min_height), 2.0, status)
    return status
