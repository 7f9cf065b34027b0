"""A pilot made of a planner, its maps and a controller, for any vehicles of the rigid family, many flights at once.

Each flight has its own clock: on it the vehicle climbs to its start, is calm for a while, gets its goal, and from then on its
planner decides. What a planner does wrong ends its own flight (`tracking_faults`).

    pilot = PlannerPilot(planner, mission, vehicles, maps)
    simulator = Simulator(vehicles, pilot.configured(SimulatorConfig(...)), ...)
    pilot.attach(simulator, mounted)
    fly(simulator, pilot, plan)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from airworthy.control.kernel import TRIMMED_LEVELS
from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.pilots.containment import PilotFailure, contained
from airworthy.pilots.pilot import Observation
from airworthy.pilots.trackers import HoverFrame
from airworthy.planners.common.depth_input import ComputeModel, DepthInput, Odometry, OdometryErrors
from airworthy.planners.common.interface import Airframes, Mission, Motion, Planner, Setpoints
from airworthy.planners.common.tracking_backends import DEFAULT_BACKEND, Backend, BackendInput, backend
from airworthy.planners.common.tracking_faults import Guard
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import Vehicle

__all__ = ["PlannerLog", "PlannerPilot", "TakeOff", "TakeOffs"]

# ---- Before the goal: from where a vehicle stands up to its start, and waiting there until it is calm -----------------------

# Ours: rounding of a clock that is a sum of steps.
_EARLY = 1e-9


@dataclass(frozen=True)
class TakeOff:
    """How flights begin; the thresholds are our choice where the benchmark's paper is silent."""

    speed: float = 1.0
    """Mean speed on the way up [m/s]."""
    settle_speed: float = 0.2
    """[m/s]"""
    settle_distance: float = 0.3
    """[m]"""
    settle_time: float = 1.0
    """Calm for so long before the goal is issued [s]."""
    timeout: float = 30.0
    """A flight that has no goal by then has failed [s]."""

    def __post_init__(self) -> None:
        check_fields(self, "TakeOff.")


class TakeOffs:
    """The way up of n flights: one quintic at rest at both ends, then a wait.

    Args:
        settings: How.
        mission: Whose start is the end of the way up.
    """

    def __init__(self, settings: TakeOff, mission: Mission):
        count = len(mission.start)
        self.settings, self.mission = settings, mission
        self.issued = np.full(count, np.nan)
        """When each flight's goal was issued, on the flight's clock [s]; NaN before."""
        self._from = np.full((count, 3), np.nan)
        self._yaw = np.zeros(count)
        self._begun = np.zeros(count)
        self._calm_since = np.full(count, np.nan)

    def step(self, motion: Motion) -> ArrayBool:
        """Note the motion, its time on the flight's clock; returns flights (n,) that wait no longer."""
        new = np.isnan(self._from[:, 0])
        self._from[new], self._begun[new] = motion.position[new], motion.time[new]
        self._yaw[new] = yaw_of(motion.attitude[new])
        off = np.linalg.norm(motion.position - self.mission.start, axis=1)
        speed = np.linalg.norm(motion.velocity, axis=1)
        calm = (off < self.settings.settle_distance) & (speed < self.settings.settle_speed)
        self._calm_since = np.where(calm, np.where(np.isnan(self._calm_since), motion.time, self._calm_since), np.nan)
        waiting = np.isnan(self.issued)
        ready = waiting & calm & (motion.time - self._calm_since >= self.settings.settle_time - _EARLY)
        self.issued[ready] = motion.time[ready]
        return waiting & ~ready & (motion.time - self._begun > self.settings.timeout)

    def settling(self, position: Array) -> ArrayBool:
        """Return flights (n,) at or near their start or beyond it: those whose maps are worth filling."""
        near = np.abs(position[:, 2] - self.mission.start[:, 2]) < self.settings.settle_distance
        return near | ~np.isnan(self.issued)

    def setpoints(self, time: Array) -> Setpoints:
        """Return the set-points of every flight at times (n,) on its clock."""
        displacement = self.mission.start - self._from
        duration = np.maximum(np.linalg.norm(displacement, axis=1) / self.settings.speed, 0.5)
        s = np.clip((time - self._begun) / duration, 0.0, 1.0)
        share = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        slope = 30.0 * s * s * (1.0 - s) ** 2 / duration
        bend = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
        parts = (self._from + share[:, None] * displacement, slope[:, None] * displacement, bend[:, None] * displacement)
        return Setpoints(*parts, self._yaw.copy(), np.zeros(len(time)))


def yaw_of(attitude: Array) -> Array:
    """Return the yaw of quaternions x, y, z, w, (n,) [rad]."""
    x, y, z, w = attitude.T
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 3.8, 4.6, 5: the state machines of the originals run at 100 Hz.
THINKING_RATE = 100.0
"""Calls of `Planner.update` per second of flight [Hz]."""
_TRACKING_EARLY = 0.2
"""Ours: share of a tick by which one may come early, because physics steps fall between ticks."""
_STATE = ("position", "velocity", "attitude")


@dataclass
class PlannerLog:
    """What planners did, per flight (n,)."""

    replans: ArrayInt
    calls: ArrayInt
    """Calls of update in which work was done."""
    compute: Array
    """Simulated compute in all [s]."""
    longest: Array
    """Simulated compute of the longest call [s]."""
    state: ArrayInt
    """The planner's own number for what it is about, last."""
    work: dict[str, Array] = field(default_factory=dict)
    """Counted units by kind."""
    latencies: list[list[float]] = field(default_factory=list)
    """Compute of each call in which work was done, by flight [s]."""


class PlannerPilot:
    """Flies n vehicles by a planner.

    Args:
        planner: Decides; `Alone(make)` for one that must not be able to disturb other flights.
        mission: What to do; its flights are the simulator's environments, in order.
        vehicles: One for all flights, or one per flight: as the controllers believe them to be.
        maps: Local maps of the n flights (`airworthy.planners.mapping`), filled by `attach`; None: they see nothing.
        compute: What thinking costs.
        controller: Back end, or its name; see `backend_names`.
        odometry: Errors of state estimation.
        takeoff: How flights begin; None: the goal is issued with the first command.

    Raises:
        AirworthyError: If counts do not fit, a planner that needs maps gets none, or it lacks what it says it needs.
    """

    def __init__(
        self,
        planner: Planner,
        mission: Mission,
        vehicles: Vehicle | Sequence[Vehicle] | None = None,
        maps: Any | None = None,
        compute: ComputeModel | None = None,
        controller: str | Backend = DEFAULT_BACKEND,
        odometry: Odometry | None = None,
        takeoff: TakeOff | None = None,
    ):
        count = len(mission.start)
        if isinstance(vehicles, Sequence) and len(vehicles) != count:
            raise AirworthyError(f"A mission of {count} flights got {len(vehicles)} vehicles; give one, or one per flight.")
        if planner.settings is not None and maps is None:
            raise AirworthyError(f"Planner {planner.name!r} needs maps; give PlannerPilot(..., maps=...).")
        if hasattr(planner, "check_ready"):  # without its weights, say, nothing is to fly
            planner.check_ready()
        if mission.vehicle is None and vehicles is not None:
            flown = list(vehicles) if isinstance(vehicles, Sequence) else [vehicles] * count
            mission = replace(mission, vehicle=Airframes.of(flown))
        self.mission, self.maps, self.count = mission, maps, count
        self.compute = compute or ComputeModel()
        self.backend = backend(controller) if isinstance(controller, str) else controller
        if hasattr(self.backend, "begin"):
            self.backend.begin(mission)
        self.guard = Guard(planner, count)
        self.over = np.zeros(count, bool)
        """Flights that nobody needs any more: set it, and they neither look nor think."""
        self._errors = OdometryErrors(odometry or Odometry(), mission.seed, np.asarray(mission.flight))
        self._takeoffs = None if takeoff is None else TakeOffs(takeoff, mission)
        self._issued = np.full(count, np.nan)
        self._tick = np.full(count, -1, np.int64)
        self._frame: HoverFrame | None = None
        self._last: Setpoints | None = None
        self._motion: Motion | None = None
        # Maps that nobody has to fill know the scene from the start.
        seeing = planner.settings is not None and hasattr(maps, "update")
        self._depth_input = DepthInput(self, planner.settings) if seeing and planner.settings is not None else None
        zeros = [np.zeros(count, np.int64) for _ in range(3)]
        self.planner_log = PlannerLog(
            zeros[0], zeros[1], np.zeros(count), np.zeros(count), zeros[2], {}, [[] for _ in range(count)]
        )

    # ---- a pilot ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The planner's."""
        return self.guard.planner.name

    @property
    def level(self) -> str:
        """The controller's."""
        return self.backend.level

    @property
    def observes(self) -> tuple[str, ...]:
        """State by ideal odometry, whose errors are added here, and what the controller reads."""
        return tuple(dict.fromkeys((*_STATE, *self.backend.observes)))

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return a simulator's configuration with the controller's level, gains and least rate of commands."""
        rate = config.control_rate
        if rate < self.backend.rate:  # whole physics steps per command, as near to the wanted rate as they allow
            rate = config.physics_rate / max(1, round(config.physics_rate / self.backend.rate))
        return replace(config, level=self.level, control=self.backend.control(), control_rate=rate)

    def attach(self, simulator: Simulator, mounted: MountedSensors | None = None, sensor: str = "depth") -> None:
        """Take the simulator's controllers in hand, and its depth camera as what fills the maps.

        Args:
            simulator: Built with `configured`.
            mounted: Its sensors; may be left out for planners without maps.
            sensor: Name of the depth camera, whose channel is "depth".

        Raises:
            AirworthyError: If the simulator is of another level or number of environments, or a needed camera is missing.
        """
        if simulator.env_count != self.count:
            raise AirworthyError(f"A mission of {self.count} flights got a simulator of {simulator.env_count} environments.")
        if simulator.config.level != self.level:
            raise AirworthyError(
                f"The simulator takes {simulator.config.level!r} and controller {self.backend.name!r} commands {self.level!r};"
                " build it with pilot.configured(config)."
            )
        # Laws inside the simulator's step know by themselves what hovers leaning.
        self._frame = None if self.level in TRIMMED_LEVELS else HoverFrame(simulator.vehicles)
        self.backend.configure(simulator)
        if self._depth_input is not None:
            self._depth_input.attach(simulator, mounted, sensor)

    def command(self, observation: Observation) -> Array:
        """Return commands at the controller's level, (n, width)."""
        errors = self._errors.at(np.asarray(observation.time, float))
        true = [np.asarray(observation[name], float) for name in _STATE]
        motion = Motion(np.asarray(observation.time, float), true[0] + errors[0], true[1] + errors[1], true[2])
        self._motion = motion
        if self._depth_input is not None:
            self._depth_input.flush(motion.time)
        self._issue(motion)
        time = np.where(np.isnan(self._issued), 0.0, motion.time - self._issued)
        self._think(replace(motion, time=time))
        wanted = self._setpoints(motion, time)
        ahead = [self._ahead(motion, time, wanted, later) for later in self.backend.ahead]
        frame = self._frame
        given = BackendInput(wanted, motion, errors, observation, ahead)
        if frame is None or not frame.leans:
            return self.backend.command(given)
        motion = replace(motion, attitude=frame.attitude(motion.attitude))
        if "rate" in observation.fields:
            turned = np.asarray(frame.rate(observation["rate"]))
            observation = replace(observation, fields={**observation.fields, "rate": turned})
        command = self.backend.command(replace(given, motion=motion, observation=observation))
        return frame.to_body(command) if self.level == "rate_thrust" else command

    # ---- what became of it ------------------------------------------------------------------------------------------

    @property
    def issued(self) -> Array:
        """When each flight's goal was issued, on its clock [s], (n,); NaN before."""
        return self._issued.copy()

    @property
    def causes(self) -> list[str]:
        """Why a flight failed by its planner, by flight; empty where it did not."""
        return list(self.guard.causes)

    @property
    def failed(self) -> ArrayBool:
        """Flights that failed by their planner, (n,)."""
        return self.guard.failed

    # ---- inside -----------------------------------------------------------------------------------------------------

    def wants_images(self, position: Array) -> ArrayBool:
        """Return flights (n,) whose maps are to be filled, with true positions (n, 3)."""
        near = np.ones(self.count, bool) if self._takeoffs is None else self._takeoffs.settling(position)
        return near & ~self.over & ~self.failed

    def odometry_error(self, time: Array) -> tuple[Array, Array]:
        """Return errors of position and velocity at times (n,) of the flights' clocks."""
        return self._errors.at(time)

    def _issue(self, motion: Motion) -> None:
        if self._last is None:
            zero = np.zeros((self.count, 3))
            self._last = Setpoints(motion.position.copy(), zero, zero.copy(), np.zeros(self.count), np.zeros(self.count))
            self.guard.reset(self.mission)
        if self._takeoffs is None:
            self._issued = np.where(np.isnan(self._issued), motion.time, self._issued)
            return
        late = self._takeoffs.step(motion)
        self._issued = self._takeoffs.issued
        self.guard.fail(late, f"the vehicle was not calm at its start within {self._takeoffs.settings.timeout:g} s")

    def _think(self, motion: Motion) -> None:
        tick = np.floor(motion.time * THINKING_RATE + _TRACKING_EARLY).astype(np.int64)
        active = ~np.isnan(self._issued) & ~self.over & ~self.guard.failed & (tick > self._tick)
        self._tick[active] = tick[active]
        if not active.any():
            return
        report = self.guard.update(motion, self.maps, active)
        delay = self.compute.delay(report["work"], active, np.asarray(self.mission.flight), self.guard.wall)
        self.guard.fail(
            delay > self.compute.timeout, f"one call of its planner took more than {self.compute.timeout:g} s of compute"
        )
        self._note(report, delay, active)
        self.guard.adopt(delay)

    def _note(self, report: dict[str, Any], delay: Array, active: ArrayBool) -> None:
        planner_log = self.planner_log
        busy = np.zeros(self.count, bool)
        for kind, units in report["work"].items():
            planner_log.work.setdefault(kind, np.zeros(self.count))[active] += units[active]
            busy |= active & (units > 0.0)
        planner_log.replans[active] += report["replans"][active]
        planner_log.state[active] = report["state"][active]
        planner_log.calls += busy
        planner_log.compute[active] += delay[active]
        planner_log.longest = np.where(active, np.maximum(planner_log.longest, delay), planner_log.longest)
        for flight in np.flatnonzero(busy):
            planner_log.latencies[flight].append(float(delay[flight]))

    def _setpoints(self, motion: Motion, time: Array) -> Setpoints:
        flying = ~np.isnan(self._issued) & ~self.over
        last = self._last
        assert last is not None
        found = self.guard.setpoints(time) if (flying & ~self.guard.failed).any() else None
        wanted = _still(last)
        if self._takeoffs is not None and not flying.all():
            wanted = _chosen(np.isnan(self._issued), self._takeoffs.setpoints(motion.time), wanted)
        if found is not None:
            wanted = _chosen(flying & ~self.guard.failed, found, wanted)
        self._last = wanted
        return wanted

    def _ahead(self, motion: Motion, time: Array, wanted: Setpoints, later: float) -> Setpoints:
        """Set-points some time from now: of planners with `preview`, else by the motion wanted now, its acceleration fading."""
        guessed = _continued(wanted, later)
        preview = getattr(self.guard.planner, "preview", None)
        flying = ~np.isnan(self._issued) & ~self.over & ~self.guard.failed
        if preview is None or not flying.any():
            return guessed

        def looked() -> Setpoints:
            found = Setpoints(*(np.asarray(getattr(preview(time + later), n), float) for n in Setpoints.__dataclass_fields__))
            good = flying & np.isfinite(np.column_stack([found.position, found.velocity, found.acceleration])).all(axis=1)
            return _chosen(good, found, guessed)

        try:
            return contained(looked)
        except PilotFailure:  # a preview is a favour: without it controllers look ahead by themselves
            return guessed


# Ours: about the time in which a vehicle levels out.
_FADE = 0.3
"""Time constant of accelerations that nobody has planned on [s]."""


def _continued(wanted: Setpoints, later: float) -> Setpoints:
    """Set-points moved on: velocity changes by an acceleration that fades, yaw turns on for as long."""
    left = np.exp(-later / _FADE)
    gained = _FADE * (1.0 - left)
    velocity = wanted.velocity + gained * wanted.acceleration
    position = wanted.position + later * wanted.velocity + _FADE * (later - gained) * wanted.acceleration
    return Setpoints(
        position, velocity, left * wanted.acceleration, wanted.yaw + gained * wanted.yaw_rate, left * wanted.yaw_rate
    )


def _still(last: Setpoints) -> Setpoints:
    """Rest where the last set-points were."""
    zero = np.zeros_like(last.position)
    return Setpoints(last.position, zero, zero, last.yaw, np.zeros_like(last.yaw))


def _chosen(mask: ArrayBool, first: Setpoints, second: Setpoints) -> Setpoints:
    """Of each flight (n,) the first where the mask is set, else the second."""
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in Setpoints.__dataclass_fields__}
    return Setpoints(**{name: np.where(mask[:, None] if a.ndim == 2 else mask, a, b) for name, (a, b) in pairs.items()})
