"""Flies a pilot in a simulator and records the flights."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError
from airworthy.core.progress import progress
from airworthy.geometry import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.pilots.deciding import PilotFailure, decide
from airworthy.pilots.latency import CommandDelay
from airworthy.pilots.pilot import Pilot, check_observes, observe
from airworthy.simulation.flights import FlightTable
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.recorder import Recorder
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Trajectory

Array = NDArray[np.floating[Any]]

CLEARANCE_MAX = 100.0
"""Distances are recorded up to here [m]."""
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
    region: tuple[Array, Array] | None = None
    """Lower and upper corner, world [m], outside which a flight ends as out of bounds."""
    geometry: GeometryBatch | None = None
    """What flights may hit: the distance of each vehicle's centre to it is recorded as `clearance_m`."""
    latency: float = 0.0
    """From what a pilot sees until its command acts [s], in whole physics steps; see `CommandDelay`."""


@dataclass(frozen=True)
class Flown:
    """What a run left."""

    table: FlightTable
    """Every environment's flight."""
    interrupted: bool = False
    """The run was stopped before the plan's end; the table ends there."""
    pilot_error: str = ""
    """What the pilot raised or did wrong, which ended the run at that step; empty where it did not."""

    @property
    def unfinished(self) -> dict[int, str]:
        """Outcome of each flight that was still flying when the run ended before its plan did, by environment."""
        if not (self.interrupted or self.pilot_error):
            return {}
        last = self.table.status[self.table.starts[1:] - 1]
        outcome = "pilot_error" if self.pilot_error else "aborted"
        return {int(env): outcome for env, status in zip(self.table.envs, last, strict=True) if status == 0}


def fly(
    simulator: Simulator, pilot: Pilot, plan: FlightPlan, quiet: bool = True, mounted: MountedSensors | None = None
) -> Flown:
    """Fly every environment to the plan's end and return what was recorded.

    The simulator is taken as it is: reset it first. Nothing that a pilot does ends in an exception: what it raises, and a
    command of the wrong shape or kind, ends the run with `Flown.pilot_error` set; a command that is not finite ends that
    environment's flight as diverged and no other. Ctrl-C ends the run and keeps what was flown.

    Args:
        simulator: Its level must be the pilot's.
        pilot: Decides.
        plan: Duration and recording.
        quiet: Show no progress.
        mounted: Sensors of this simulator, for a pilot that observes some of them.

    Raises:
        AirworthyError: If pilot, simulator and plan do not fit together.
    """
    _check(simulator, pilot, plan, mounted)
    steps = ceil(plan.duration * simulator.config.control_rate - 1e-9)
    # Steps that are not kept are not gathered either: reading the reference costs as much as a small batch's step.
    recorder = Recorder(_columns(simulator, plan), simulator.env_count, steps // plan.record_every + 1)
    start = np.array(simulator.position)
    ended = _ended(simulator, plan, start)
    _record(recorder, simulator, plan, ended)
    width = LEVELS[pilot.level].width(simulator.rotor_count)
    delay = CommandDelay(simulator, plan.latency)
    try:
        for step in progress(range(1, steps + 1), "flying", quiet=quiet):
            command, lost = decide(pilot, observe(simulator, pilot.observes, mounted), simulator.env_count, width)
            delay.step(command)
            ended = np.where(ended == 0, np.where(lost, 1.0, _ended(simulator, plan, start)), ended)
            over = plan.region is not None and bool(ended.all())
            if step % plan.record_every == 0 or over:
                _record(recorder, simulator, plan, ended)
            if over:  # in a place most flights that end early end at once, and cameras cost more than flights
                break
    except KeyboardInterrupt:
        return Flown(recorder.table(), interrupted=True)
    except PilotFailure as failure:
        return Flown(recorder.table(), pilot_error=str(failure))
    return Flown(recorder.table())


def _check(simulator: Simulator, pilot: Pilot, plan: FlightPlan, mounted: MountedSensors | None) -> None:
    if pilot.level != simulator.config.level:
        raise AirworthyError(
            f"Pilot {pilot.name!r} commands level {pilot.level!r} but the simulator was built for {simulator.config.level!r}."
        )
    check_observes(simulator, pilot, mounted)
    if not (np.isfinite(plan.duration) and plan.duration > 0):
        raise AirworthyError(f"A flight of {plan.duration} s cannot be flown; the duration must be positive.")
    if plan.duration * simulator.config.physics_rate >= 2**32:
        raise AirworthyError(
            f"A flight of {plan.duration:g} s has more than the {2**32 - 1:,} physics steps that one can have: fly for less"
            f" time or with fewer steps per second than {simulator.config.physics_rate:g}."
        )


def _columns(simulator: Simulator, plan: FlightPlan) -> list[str]:
    names = [name for field in _STATE for name in _NAMES[field]]
    if "rotor_speed" in simulator.layout:
        names += [f"rotor_speed_{i}_rad_s" for i in range(simulator.rotor_count)]
        names += [f"rotor_command_{i}_rad_s" for i in range(simulator.rotor_count)]
    if plan.reference is not None:
        names += [f"reference_{name}" for field in ("position", "velocity") for name in _NAMES[field]]
        names += ["reference_yaw_rad"]
    return [*names, *(["clearance_m"] if plan.geometry is not None else []), "saturated", "status"]


def _record(recorder: Recorder, simulator: Simulator, plan: FlightPlan, ended: Any) -> None:
    blocks = [simulator.field(name).T for name in _STATE]
    if "rotor_speed" in simulator.layout:
        blocks += [simulator.field(name)[:, : simulator.rotor_count].T for name in ("rotor_speed", "rotor_command")]
    if plan.reference is not None:
        flat = plan.reference.sample(simulator.time)
        blocks += [flat.position.T, flat.velocity.T, flat.yaw]
    if plan.geometry is not None:
        blocks.append(clearance(plan.geometry, simulator.position, max_distance=CLEARANCE_MAX).distance.clip(max=CLEARANCE_MAX))
    recorder.record(float(simulator.time.max()), *blocks, simulator.field("saturated"), ended)


def _ended(simulator: Simulator, plan: FlightPlan, start: Any) -> Any:
    """Status code per environment: 0 flying, 1 diverged, 2 collision, 3 out of bounds."""
    status = np.array(simulator.field("status"), float)
    if simulator.config.contact is not None and simulator.config.contact.mode == "reset":
        # The vehicle flies on from its start, but this flight is over.
        status = np.where((status == 0) & (simulator.contacts.count > 0), 2.0, status)
    if np.isfinite(plan.bounds):
        away = np.linalg.norm(simulator.position - start, axis=1) > plan.bounds
        status = np.where((status == 0) & away, 3.0, status)
    if plan.region is not None:
        lower, upper = plan.region
        outside = ((simulator.position < lower) | (simulator.position > upper)).any(axis=1)
        status = np.where((status == 0) & outside, 3.0, status)
    if np.isfinite(plan.min_height):
        status = np.where((status == 0) & (simulator.position[:, 2] < plan.min_height), 2.0, status)
    return status
