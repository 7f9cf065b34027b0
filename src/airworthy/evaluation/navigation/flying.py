"""Flies a batch: any vehicles in any layouts, one pilot, from the ground to a judgement of every flight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.kernel import LEVELS
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.flown import Flown
from airworthy.evaluation.navigation.guiding import Guide, guide_for
from airworthy.evaluation.navigation.lifting import spoil
from airworthy.evaluation.navigation.plan import Flight
from airworthy.evaluation.navigation.sensing import ActiveSensors, upright
from airworthy.evaluation.navigation.staging import Stage, sensors_of, simulator_of, stage_of
from airworthy.evaluation.navigation.tracing import TraceHash, Track
from airworthy.evaluation.navigation.warming import warm_up
from airworthy.geometry.distance import clearance
from airworthy.pilots.deciding import PilotFailure
from airworthy.scenes import SceneBatch
from airworthy.simulation import Simulator
from airworthy.tasks.navigation import GoalWatch
from airworthy.tasks.navigation_diagnostics import CLEARANCE_MAX, FlightMeter, Tick

__all__ = ["fly_flights"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
CLEARANCE_EVERY = 5
"""Ticks between two looks at how near things are."""
_MEASURED = ("position", "velocity", "attitude", "rate", "acceleration", "saturated")
_ONE_OF = ("ground", "ceiling")
"""There is one of it in a place."""
NOT_SETTLED = "the vehicle did not settle at its start"


def fly_flights(
    flights: Sequence[Flight],
    entrant: Entrant,
    config: NavigationConfig,
    told: Callable[[int], None] | None = None,
    stored: Mapping[int, Sequence[float]] | None = None,
    keep_track: bool = False,
) -> Flown:
    """Fly a batch and judge it. Every flight comes out the same, bit for bit, whatever is flown beside it.

    Args:
        flights: Which.
        entrant: Who.
        config: How.
        told: Called with the number of flights decided since it was last called, at every tick with some.
        stored: Measured latencies by flight number, to be used instead of the clock.
        keep_track: Keep the flown paths.

    Raises:
        AirworthyError: Pilot, vehicles and scenes do not fit together.
        PilotFailure: A pilot of all flights at once did something wrong: fly them one at a time.
    """
    warm_up(fly_flights, flights, entrant, config, stored)
    stage = stage_of(flights, config)
    begun = perf_counter()
    guide = guide_for(entrant, stage.mission, stage.vehicles, config, stored, stage.batch)
    simulator = simulator_of(stage, guide, config)
    mounted = sensors_of(simulator, stage, guide)
    guide.attach(simulator, mounted)
    spoil(simulator, stage.draws)
    state = stage.lifted.state
    simulator.reset(**{name: state[name] for name in ("position", "velocity", "attitude", "rate", "rotor_speed")})
    stage.seconds["setup"] += perf_counter() - begun
    return _Flight(stage, flights, guide, simulator, mounted, config, keep_track).fly(told)


class _Flight:
    """A batch in flight."""

    def __init__(
        self,
        stage: Stage,
        flights: Sequence[Flight],
        guide: Guide,
        simulator: Simulator,
        mounted: ActiveSensors | None,
        config: NavigationConfig,
        keep_track: bool,
    ):
        self.stage, self.flights, self.guide = stage, flights, guide
        self.simulator, self.mounted = simulator, mounted
        count, mission = len(flights), stage.mission
        self.watch = GoalWatch(mission.goal, mission.lower, mission.upper, stage.radius, config.protocol)
        rate = simulator.config.control_rate
        self.meter = FlightMeter(count, 1.0 / rate)
        self.trace = TraceHash(count)
        self.track = Track(count, rate) if keep_track else None
        self.cause = [""] * count
        self.position = np.array(simulator.position, np.float64)
        self._full = np.maximum(np.abs(simulator.parameter("rotor_max"))[:, : simulator.rotor_count], 1e-9)
        self._moves = config.perturb.moving_obstacles > 0
        self._width = LEVELS[guide.level].width(simulator.rotor_count)
        self._command = np.zeros((count, self._width))
        self._ticks = int(np.ceil(config.protocol.time_limit_s * rate - 1e-9))

    def fly(self, told: Callable[[int], None] | None) -> Flown:
        """Until every flight is decided."""
        begun = perf_counter()
        lost = ~self.stage.lifted.settled
        self._fail(lost, "diverged", NOT_SETTLED)
        self._measure(0, None)
        if told is not None and lost.any():
            told(int(lost.sum()))
        for tick in range(1, self._ticks + 1):
            done = int(self._step(tick).sum())
            if told is not None and done:
                told(done)
            if not self.watch.active.any():
                break
        self.stage.seconds["flying"] = perf_counter() - begun
        return self._result()

    def _step(self, tick: int) -> Bools:
        """A control period; returns whom it decided."""
        active = self.watch.active
        if self.mounted is not None:
            self.mounted.watching = active
        self._decide(active)
        if self._moves:
            # Cameras look when the period ends, so that is when things are where they are seen.
            self.stage.batch.advance(self.simulator.time + 1.0 / self.simulator.config.control_rate)
        self.simulator.step(self._command)
        self._measure(tick, self._command)
        self._judge()
        return active & ~self.watch.active

    def _decide(self, active: Bools) -> None:
        try:
            command, causes = self.guide.command(self.simulator, self.mounted, active)
        except PilotFailure as failure:
            if active.sum() > 1:
                raise
            command, causes = self._command, [str(failure)] * len(active)
        failed = np.array([bool(cause) for cause in causes]) & active
        for k in np.flatnonzero(failed):
            self._fail(_only(k, len(active)), "planner_crash", causes[k])
        # A flight that is decided keeps its last command: nobody is asked for it any more.
        self._command = np.where((active & ~failed)[:, None], command, self._command)

    def _measure(self, tick: int, command: Array | None) -> None:
        simulator, active = self.simulator, self.watch.active
        effort = np.mean((simulator.field("rotor_command")[:, : simulator.rotor_count] / self._full) ** 2, axis=1)
        position, velocity, attitude, rate, force, full = (np.array(simulator.field(name), np.float64) for name in _MEASURED)
        wanted = None if command is None or not self.guide.level.startswith("tracking") else command[:, :3]
        time = np.asarray(simulator.time, np.float64)
        self.meter.update(Tick(time, position, velocity, attitude, rate, force, effort, full, wanted), active)
        if tick % CLEARANCE_EVERY == 0 and active.any():
            who = np.flatnonzero(active)
            near = np.full(len(active), np.inf)
            near[who] = clearance(self.stage.batch.geometry, position[who], env=who, max_distance=CLEARANCE_MAX).distance
            self.meter.near(near - self.stage.radius, active)
        self.position = np.where(active[:, None], position, self.position)
        self.trace.update((simulator.field(n) for n in ("position", "velocity", "attitude", "rate", "rotor_speed")), active)
        if self.track is not None:
            self.track.add(simulator, active)

    def _judge(self) -> None:
        simulator = self.simulator
        attitude = simulator.field("attitude")
        touched = simulator.field("status") == 2.0
        impact = np.where(touched, simulator.contacts.time, np.nan)
        before = self.watch.active
        decided = self.watch.update(
            simulator.time,
            simulator.position,
            simulator.velocity,
            upright(attitude),
            impact,
            simulator.diverged,
            self.guide.searching,
        )
        for k in np.flatnonzero(decided & touched & before):
            self.cause[k] = f"hit {_met(self.stage.batch, int(k), int(simulator.contacts.instance[k]))}"
            self.meter.near(np.zeros(len(touched)), _only(k, len(touched)))

    def _fail(self, who: Bools, outcome: str, cause: str) -> None:
        new = self.watch.fail(who, outcome, self.simulator.time)
        for k in np.flatnonzero(new):
            self.cause[k] = cause

    def _result(self) -> Flown:
        end = np.where(np.isnan(self.watch.end), 0.0, self.watch.end)
        stage = self.stage
        return Flown(
            self.flights,
            stage.mission,
            stage.vehicles,
            stage.lifted,
            self.watch,
            self.cause,
            self.position,
            self.meter.values(end),
            self.guide.diary(),
            self.trace.texts(),
            {**stage.seconds, **self.guide.seconds()},
            self.guide.spans,
            self.track,
        )


def _only(place: int | np.integer[Any], count: int) -> Bools:
    mask = np.zeros(count, bool)
    mask[place] = True
    return mask


def _met(batch: SceneBatch, env: int, instance: int) -> str:
    """What a flight met, in words."""
    scene = batch.scenes[batch.scene_of_env[env]]
    if 0 <= instance < len(scene.instances):
        what = scene.instances[instance].semantic.replace("_", " ")
        return f"the {what}" if what in _ONE_OF else f"a {what}"
    return "a moving obstacle" if scene.actors else "something"
