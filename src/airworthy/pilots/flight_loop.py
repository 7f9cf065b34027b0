"""Flies a pilot in a simulator and records the flights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import ArrayBool, ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import progress, stoppable
from airworthy.geometry import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.pilots.containment import PilotFailure, contained, stops_noted
from airworthy.pilots.pilot import Observation, Pilot, check_observes, observe
from airworthy.simulation.flights import FlightTable
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.recorder import Recorder
from airworthy.simulation.simulator import Simulator
from airworthy.tasks.outcomes import FlightStatus

if TYPE_CHECKING:
    from airworthy.trajectories import Trajectory

__all__ = ["COMMAND_MOST", "LATENCY_MAX", "NOT_FINITE", "CommandDelay", "PilotFailure", "decide", "huge_commands"]

# ---- Commands that act some time after what they answer was seen ------------------------------------------------------------

# Ours, because the queue of commands must not grow without bound; no link that one flies over is slower.
LATENCY_MAX = 2.0
"""[s]"""


class CommandDelay:
    """Steps a simulator with commands that act later: of a tick at t, at t + latency.

    Whole control periods of the latency wait in a queue, the rest is the simulator's own delay. A flight begins with its first
    command at once: before it, the vehicle is taken to have been commanded the same.

    Args:
        simulator: Stepped from now on through `step`.
        latency: [s]; taken in whole physics steps.

    Raises:
        AirworthyError: It is negative or longer than `LATENCY_MAX`, or longer than a control period that is no whole number of
            physics steps.
    """

    def __init__(self, simulator: Simulator, latency: float = 0.0):
        if not (isfinite(latency) and 0.0 <= latency <= LATENCY_MAX):
            raise AirworthyError(f"A command's latency is {latency} s; expected 0 to {LATENCY_MAX:g}.")
        config = simulator.config
        steps, period = round(latency * config.physics_rate), config.physics_rate / config.control_rate
        if steps >= int(period) and period != int(period):
            raise AirworthyError(
                f"A command's latency of {latency:g} s is longer than a control period, which is {period:g} physics steps:"
                " choose a physics_rate that is a multiple of the control_rate."
            )
        self._simulator, self._rest = simulator, steps % int(period)
        self._waiting: deque[Any] = deque(maxlen=steps // int(period) + 1)

    def step(self, command: Any) -> None:
        """Advance by a control period; `command` is that of now."""
        # Before its first command a vehicle is taken to have been commanded the same, or every flight would begin with a gap.
        first = not self._waiting
        self._waiting.append(command)
        acting = self._waiting[0]
        self._simulator.set_command(acting, None if first or not self._rest else self._rest)
        self._simulator.step()


# -----------------------------------------------------------------------------------------------------------------------------
# One decision of a pilot, contained: whatever goes wrong in it becomes a `PilotFailure` or the cause of a lost flight.

# Ours: a million newtons, metres or radians per second is no command of any vehicle of the catalogue.
COMMAND_MOST = 1e6
"""No level has a unit in which a command beyond this makes sense: such a one is named as the cause where a flight diverges."""
NOT_FINITE = "its command is not finite"
# Ours, as in `containment`: reports quote what a pilot's code said, but not pages of it.
_REASON_LENGTH = 300


def decide(pilot: Pilot, observation: Observation, env_count: int, width: int) -> tuple[Any, ArrayBool]:
    """Ask a pilot for its command.

    Args:
        pilot: Who decides.
        observation: What it sees.
        env_count: Number of environments.
        width: Numbers of a command at its level.

    Returns:
        The command, float32, shape (env, width), of one for all its rows being the same, and which environments' commands are
        not finite, shape (env,).

    Raises:
        PilotFailure: It raised, or its command is not an array of real numbers of shape (env, width) or (width,).
        KeyboardInterrupt: Somebody stopped the run meanwhile.
    """
    array = _numbers(contained(pilot.command, observation))
    if array.shape not in ((width,), (env_count, width)):
        raise PilotFailure(
            f"its command has shape {array.shape}; level {pilot.level!r} takes ({env_count}, {width}) or ({width},)"
        )
    whole = np.broadcast_to(array, (env_count, width))
    return whole, np.asarray(~np.isfinite(whole).all(axis=-1))


def huge_commands(command: Any) -> dict[int, str]:
    """Return environments whose finite commands (env, width) are beyond `COMMAND_MOST`, and what to say of them."""
    size = np.abs(command)
    if not (size > COMMAND_MOST).any():
        return {}
    # NaN and infinities have a cause of their own; the largest finite number is what the sentence names.
    most = np.max(size, axis=1, initial=0.0, where=np.isfinite(command))
    return {int(k): f"its command held {most[k]:.3g}, beyond what any level takes" for k in np.flatnonzero(most > COMMAND_MOST)}


def _numbers(command: Any) -> ArrayF32:
    """Return a command as an array, tensors from a GPU included; a number too large for float32 becomes infinite."""
    try:
        array = np.asarray(command.detach().cpu() if hasattr(command, "detach") else command)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"an array of {array.dtype} holds no real numbers")
        # float64 commands beyond float32's range become infinite here, and end their own flight as not finite.
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:_REASON_LENGTH]
        raise PilotFailure(f"its command is not an array of numbers: {reason}") from error


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: the search for the nearest surface is bounded by it; farther away nothing is about to be hit.
CLEARANCE_MAX = 100.0
"""Distances are recorded up to here [m]."""
_STATE = ("position", "velocity", "attitude", "rate")
_NAMES = {
    "position": [f"position_{a}_m" for a in "xyz"],
    "velocity": [f"velocity_{a}_m_s" for a in "xyz"],
    "attitude": [f"attitude_{a}" for a in "xyzw"],
    "rate": [f"rate_{a}_rad_s" for a in "xyz"],
}

IMU_COLUMNS = [*(f"imu_force_{a}_m_s2" for a in "xyz"), *(f"imu_rate_{a}_rad_s" for a in "xyz")]
"""Specific force and angular velocity as the inertial sensor gives them at the row's instant, in its own axes."""


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
    region: tuple[ArrayFloat, ArrayFloat] | None = None
    """Lower and upper corner, world [m], outside which a flight ends as out of bounds."""
    geometry: GeometryBatch | None = None
    """What flights may hit: the distance of each vehicle's centre to it is recorded as `clearance_m`; of one with joints
    that of its links' surfaces as `link_clearance_m`, and how often they hit something as `touches`."""
    finished: Callable[[Simulator], ArrayBool] | None = None
    """Asked after every control step which flights (env,) have done what they were to do: when all have, or have ended, so does
    the run."""
    watch: Callable[[Simulator], None] | None = None
    """Called before the first control step and after every one."""
    latency: float = 0.0
    """From what a pilot sees until its command acts [s], in whole physics steps; see `CommandDelay`."""


@dataclass(frozen=True)
class FlightRun:
    """What a run left."""

    table: FlightTable
    """Every environment's flight."""
    interrupted: bool = False
    """The run was stopped before the plan's end; the table ends there."""
    pilot_error: str = ""
    """What the pilot raised or did wrong, which ended the run at that step; empty where it did not."""
    asked_to_stop: bool = False
    """Ctrl-C came when all was flown, while the table was made: the flights are whole, and nothing should follow them."""

    causes: dict[int, str] = field(default_factory=dict)
    """What was wrong with a pilot's commands in flights that ended early, by environment."""

    outcomes: dict[int, str] = field(default_factory=dict)
    """What became of flights that were judged while they flew, by their task or since their pilot gave them up, by
    environment."""

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
) -> FlightRun:
    """Fly every environment to the plan's end and return what was recorded.

    The simulator is taken as it is: reset it first. Nothing that a pilot does ends in an exception: what it raises, and a
    command of the wrong shape or kind, ends the run with `FlightRun.pilot_error` set, `SystemExit` and its like included; a
    command that is not finite ends that environment's flight as diverged and no other, with its cause in `FlightRun.causes`;
    so do flights that a pilot names in `lost_flights` (of a program outside that failed one of several), as pilot_error.
    Ctrl-C ends the run and keeps what was flown.

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
    # Without the tolerance 1.1 s at 100 Hz would be 111 steps.
    steps = ceil(plan.duration * simulator.config.control_rate - 1e-9)
    # Steps that are not kept are not gathered either: reading the reference costs as much as a small batch's step.
    recorder = Recorder(_columns(simulator, plan), simulator.env_count, steps // plan.record_every + 1)
    start = np.array(simulator.center)
    ended = _ended(simulator, plan, start)
    _record(recorder, simulator, plan, ended)
    if plan.watch is not None:
        plan.watch(simulator)
    width = LEVELS[pilot.level].width(simulator.rotor_count)
    delay = CommandDelay(simulator, plan.latency)
    blame: dict[int, str] = {}
    try:
        with stops_noted():
            for step in progress(range(1, steps + 1), "flying", quiet=quiet):
                command, lost = decide(pilot, observe(simulator, pilot.observes, mounted), simulator.env_count, width)
                _note(blame, command, lost, ended)
                ended = _given_up(pilot, blame, ended)
                _move_joints(simulator, pilot)
                delay.step(command)
                if plan.watch is not None:
                    plan.watch(simulator)
                ended = np.where(ended == 0, np.where(lost, 1.0, _ended(simulator, plan, start)), ended)
                done = ended != 0 if plan.finished is None else (ended != 0) | plan.finished(simulator)
                over = (plan.region is not None or plan.finished is not None) and bool(done.all())
                if step % plan.record_every == 0 or over:
                    _record(recorder, simulator, plan, ended)
                if over:  # in a place most flights that end early end at once, and cameras cost more than flights
                    break
    except KeyboardInterrupt:
        return _kept(recorder, _blamed(blame, ended), interrupted=True, ended=ended)
    except PilotFailure as failure:
        return _kept(recorder, _blamed(blame, ended), pilot_error=str(failure), ended=ended)
    return _kept(recorder, _blamed(blame, ended), ended=ended)


def _move_joints(simulator: Simulator, pilot: Pilot) -> None:
    """Pass on what a pilot asks of joints; rates that are no finite numbers leave a joint as it was told before.

    Raises:
        PilotFailure: They do not fit the vehicle.
    """
    rates = getattr(pilot, "joint_rates", None)
    if rates is None:
        return
    try:
        array = np.asarray(rates, float)
        simulator.set_joint_command(rate=np.where(np.isfinite(array), array, np.nan))
    except (TypeError, ValueError, AirworthyError) as error:
        raise PilotFailure(f"its joint_rates cannot be used: {error}") from error


def _kept(
    recorder: Recorder, causes: dict[int, str], interrupted: bool = False, pilot_error: str = "", *, ended: Any
) -> FlightRun:
    """Return what was recorded; an interrupt waits until it is in one piece."""
    outcomes = {int(env): "pilot_error" for env in np.flatnonzero(ended == FlightStatus.PILOT_FAILED)}
    tables: list[FlightTable] = []
    try:
        with stoppable():
            tables.append(recorder.table())
    except KeyboardInterrupt:
        return FlightRun(tables[0], interrupted, pilot_error, asked_to_stop=True, causes=causes, outcomes=outcomes)
    return FlightRun(tables[0], interrupted, pilot_error, causes=causes, outcomes=outcomes)


def _given_up(pilot: Pilot, blame: dict[int, str], ended: Any) -> Any:
    """Return how flights have ended, those with them whose programs outside have failed while others fly on."""
    lost: dict[int, str] = getattr(pilot, "lost_flights", {})
    now = [env for env in lost if ended[env] == 0]
    if not now:
        return ended
    blame.update({env: lost[env] for env in now})
    ended = ended.copy()
    ended[now] = FlightStatus.PILOT_FAILED
    return ended


def _note(blame: dict[int, str], command: Any, lost: Any, ended: Any) -> None:
    """Note whose commands make no sense; the first such command of each environment counts."""
    for env, cause in huge_commands(command).items():
        if ended[env] == 0:
            blame.setdefault(env, cause)
    for index in np.flatnonzero(lost & (ended == 0)):
        blame[int(index)] = NOT_FINITE


def _blamed(blame: dict[int, str], ended: Any) -> dict[int, str]:
    return {env: cause for env, cause in blame.items() if ended[env] != 0}


def _check(simulator: Simulator, pilot: Pilot, plan: FlightPlan, mounted: MountedSensors | None) -> None:
    if pilot.level != simulator.config.level:
        raise AirworthyError(
            f"Pilot {pilot.name!r} commands level {pilot.level!r} but the simulator was built for {simulator.config.level!r}."
        )
    check_observes(simulator, pilot, mounted)
    if plan.latency and getattr(pilot, "joint_rates", None) is not None:
        raise AirworthyError(f"Pilot {pilot.name!r} moves joints, whose commands are not delayed: leave the latency out.")
    if not (np.isfinite(plan.duration) and plan.duration > 0):
        raise AirworthyError(f"A flight of {plan.duration} s cannot be flown; the duration must be positive.")
    # Physics steps are counted in uint32, and random draws are keyed by the count.
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
    names += joint_columns(simulator)
    if plan.reference is not None:
        names += [f"reference_{name}" for field in ("position", "velocity") for name in _NAMES[field]]
        names += ["reference_yaw_rad"]
    names += IMU_COLUMNS if simulator.config.imu is not None else []
    near = ["link_clearance_m", "touches"] if joint_columns(simulator) else ["clearance_m"]
    return [*names, *(near if plan.geometry is not None else []), "saturated", "status"]


def joint_columns(simulator: Simulator) -> list[str]:
    """Return the columns of joints: angles, then rates; none of a vehicle without."""
    count = simulator.layout.fields["joint"][0] if "joint" in simulator.layout else 0
    return [name for part in ("joint_{}_rad", "joint_rate_{}_rad_s") for name in map(part.format, range(count))]


def _record(recorder: Recorder, simulator: Simulator, plan: FlightPlan, ended: Any) -> None:
    # Of a vehicle with joints, the place of the whole: where its root is follows from the angles.
    whole = {"position": simulator.center, "velocity": simulator.center_velocity}
    blocks = [(whole[name] if name in whole else simulator.field(name)).T for name in _STATE]
    if "rotor_speed" in simulator.layout:
        blocks += [simulator.rotors(name).T for name in ("rotor_speed", "rotor_command")]
    if "joint" in simulator.layout:
        blocks += [simulator.field(name).T for name in ("joint", "joint_rate")]
    if plan.reference is not None:
        flat = plan.reference.sample(simulator.time)
        blocks += [flat.position.T, flat.velocity.T, flat.yaw]
    if simulator.config.imu is not None:
        blocks.append(simulator.imu.T)
    if plan.geometry is not None and "joint" in simulator.layout:
        from airworthy.simulation.jointed.scene import link_clearance

        blocks += [link_clearance(simulator, plan.geometry, CLEARANCE_MAX), simulator.contacts.count.astype(float)]
    elif plan.geometry is not None:
        blocks.append(clearance(plan.geometry, simulator.center, max_distance=CLEARANCE_MAX).distance.clip(max=CLEARANCE_MAX))
    recorder.record(float(simulator.time.max()), *blocks, simulator.field("saturated"), ended)


def _ended(simulator: Simulator, plan: FlightPlan, start: Any) -> Any:
    """Status code per environment of a simulator: 0 flying, 1 diverged, 2 collision, 3 out of bounds."""
    status = np.array(simulator.field("status"), float)
    if simulator.config.contact is not None and simulator.config.contact.mode == "reset":
        # The vehicle flies on from its start, but this flight is over.
        status = np.where((status == 0) & (simulator.contacts.count > 0), 2.0, status)
    if np.isfinite(plan.bounds):
        away = np.linalg.norm(simulator.center - start, axis=1) > plan.bounds
        status = np.where((status == 0) & away, 3.0, status)
    if plan.region is not None:
        lower, upper = plan.region
        outside = ((simulator.center < lower) | (simulator.center > upper)).any(axis=1)
        status = np.where((status == 0) & outside, 3.0, status)
    if np.isfinite(plan.min_height):
        status = np.where((status == 0) & (simulator.center[:, 2] < plan.min_height), 2.0, status)
    return status
