"""Flies a batch: any vehicles in any layouts, one pilot, from the ground to a judgement of every flight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.agent_adapter import Guide, guide_for
from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.methods import NavigationMethod, check_ready
from airworthy.benchmarks.navigation.missions import FlightDraws, draws_of, flown_vehicle, mission_of, scene_of
from airworthy.benchmarks.navigation.planner_adapter import all_back
from airworthy.benchmarks.navigation.sensing import DEPTH, ActiveSensors, upright
from airworthy.benchmarks.navigation.takeoff import (
    CONTROL_RATE,
    PHYSICS_RATE,
    FlownBatch,
    FlownTrack,
    TakeOffState,
    TraceHash,
    begin,
    fly_takeoff,
)
from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.files import json_text
from airworthy.core.native_kernel import thread_limit
from airworthy.geometry.distance import clearance
from airworthy.pilots.containment import stops_noted
from airworthy.pilots.flight_loop import PilotFailure, huge_commands
from airworthy.planners.common.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.simulation import Contact, Simulator, SimulatorConfig
from airworthy.tasks.navigation import CLEARANCE_MAX, FlightMeter, GoalWatch, Tick
from airworthy.vehicles import Vehicle

__all__ = ["WARM_UP_S", "BatchSetup", "fly_flights", "sensors_of", "simulator_of", "stage_of", "warm_up"]

# -----------------------------------------------------------------------------------------------------------------------------
# The flight before the first one: what a pilot compiles and loads when it is first asked is no slow decision.
#
# The first calls of a process compile kernels (Warp, Numba, torch.compile), read weights and fill caches. So whatever is
# timed by the clock, a user's own pilot and anybody whose compute is measured, flies some seconds in every process before the
# first flight that counts. Its calls have longer, and its result is thrown away; pilots of the flights that count are made
# anew. Flights that count so are held to the same timeout, whichever process flies them.

WARM_UP_S = 2.0
"""Flown of it [s]."""
_WARM: set[tuple[str, str, int]] = set()
"""Pilots, and how many flights at once they have seen, of this process: what is compiled may be for a number of flights."""


def warm_up(
    fly: Callable[[Sequence[Flight], NavigationMethod, NavigationConfig], object],
    flights: Sequence[Flight],
    method: NavigationMethod,
    config: NavigationConfig,
    stored: Mapping[int, Sequence[float]] | None = None,
) -> bool:
    """Fly the beginning of some flights for nothing, once per process, pilot and number of flights; whether it was done.

    Args:
        fly: `fly_batch.fly_flights`.
        flights: Those about to be flown; of pilots that are one object per flight the first will do.
        method: Who.
        config: How; `warm_up` is the timeout here, and 0 leaves it out.
        stored: Latencies of a flight that is flown again: nothing of it is measured.

    Raises:
        AirworthyError: It can never fly.
    """
    timed = method.own or (config.compute == "measured" and stored is None)
    mine = flights[:1] if method.alone else flights
    key = (method.name, json_text(dict(method.identity)), len(mine))
    if not timed or config.warm_up == 0.0 or key in _WARM:
        return False
    _WARM.add(key)
    brief = replace(config.protocol, time_limit_s=min(WARM_UP_S, config.protocol.time_limit_s))
    gentle = replace(config, decision_timeout=max(config.decision_timeout, config.warm_up), protocol=brief)
    with suppress(PilotFailure):  # it fails again when it counts, with its cause
        fly(mine, method, gentle)
    return True


# ---- What is set up before a batch flies: vehicles, places, starts, the simulator and its camera ----------------------------


@dataclass(eq=False)
class BatchSetup:
    """Everything of a batch but who flies it."""

    mission: Mission
    draws: FlightDraws
    vehicles: list[Vehicle]
    radius: Array
    batch: SceneBatch
    takeoff: TakeOffState
    seconds: dict[str, float] = field(default_factory=dict)


def stage_of(flights: Sequence[Flight], config: NavigationConfig) -> BatchSetup:
    """Draw, and build what flights need, and take off; raises AirworthyError where vehicles or scenes are not to be had."""
    begun = perf_counter()
    draws = draws_of(flights, config.seed, config.perturb)
    mission = mission_of(flights, config, draws)
    vehicles = [flown_vehicle(flight.vehicle, config.body) for flight in flights]
    radius = np.array([item.body.size[0] for item in vehicles])
    scenes = [scene_of(flight, config) for flight in flights]
    batch = SceneBatch(scenes, len(flights), device=config.device, threads=thread_limit())
    takeoff = fly_takeoff(vehicles, mission, draws, radius, config.protocol, config.device, config.spread)
    return BatchSetup(mission, draws, vehicles, radius, batch, takeoff, {"setup": perf_counter() - begun})


def simulator_of(stage: BatchSetup, guide: Guide, config: NavigationConfig) -> Simulator:
    """Return the simulator of a batch, at the level that its guide commands.

    Args:
        stage: Vehicles, mission and scenes of the batch.
        guide: Names the level of its commands, and may change the simulator's settings.
        config: Names the device.
    """
    # "freeze": a flight that met something stays where it did, and costs nothing any more.
    base = SimulatorConfig(
        physics_rate=PHYSICS_RATE,
        control_rate=CONTROL_RATE,
        level=guide.level,
        contact=Contact(mode="freeze"),
        randomization=config.spread,
    )
    made = guide.configured(base)
    mission = stage.mission
    return Simulator(
        stage.vehicles,
        made,
        len(stage.vehicles),
        seed=mission.seed,
        flight_ids=mission.flight,
        device=config.device,
        threads=thread_limit(),
        geometry=stage.batch.geometry,
    )


def sensors_of(simulator: Simulator, stage: BatchSetup, guide: Guide) -> ActiveSensors | None:
    """Return what its guide looks through, mounted; None where it sees nothing.

    Args:
        simulator: That carries them.
        stage: Whose scenes are seen.
        guide: Says which camera; None of it: it sees nothing.
    """
    if guide.camera is None:
        return None
    return ActiveSensors(simulator, stage.batch, {DEPTH: guide.camera}, move_scene=False)


# -----------------------------------------------------------------------------------------------------------------------------

CLEARANCE_EVERY = 5
"""Ticks between two looks at how near things are."""
_MEASURED = ("position", "velocity", "attitude", "rate", "acceleration", "saturated")
_ONE_OF = ("ground", "ceiling")
"""There is one of it in a place."""
NOT_SETTLED = "the vehicle did not settle at its start"


def fly_flights(
    flights: Sequence[Flight],
    method: NavigationMethod,
    config: NavigationConfig,
    progress_callback: Callable[[int], None] | None = None,
    stored: Mapping[int, Sequence[float]] | None = None,
    keep_track: bool = False,
) -> FlownBatch:
    """Fly a batch and judge it. Every flight comes out the same, bit for bit, whatever is flown beside it.

    Args:
        flights: Which.
        method: Who.
        config: How.
        progress_callback: Called with the number of flights decided since it was last called, at every tick with some.
        stored: Measured latencies by flight number, to be used instead of the clock.
        keep_track: Keep the flown paths.

    Raises:
        AirworthyError: Pilot, vehicles and scenes do not fit together.
        PilotFailure: A pilot of all flights at once did something wrong: fly them one at a time.
    """
    check_ready(method)
    warm_up(fly_flights, flights, method, config, stored)
    try:
        with stops_noted():
            return _flown(flights, method, config, progress_callback, stored, keep_track)
    finally:
        all_back()


def _flown(
    flights: Sequence[Flight],
    method: NavigationMethod,
    config: NavigationConfig,
    progress_callback: Callable[[int], None] | None,
    stored: Mapping[int, Sequence[float]] | None,
    keep_track: bool,
) -> FlownBatch:
    stage = stage_of(flights, config)
    begun = perf_counter()
    guide = guide_for(method, stage.mission, stage.vehicles, config, stored, stage.batch)
    try:
        simulator = simulator_of(stage, guide, config)
        mounted = sensors_of(simulator, stage, guide)
        guide.attach(simulator, mounted)
        state = stage.takeoff.state
        names = ("position", "velocity", "attitude", "rate", "rotor_speed")
        begin(simulator, stage.draws, {name: state[name] for name in names})
        stage.seconds["setup"] += perf_counter() - begun
        return _Flight(stage, flights, guide, simulator, mounted, config, keep_track).fly(progress_callback)
    finally:
        guide.close()


class _Flight:
    """A batch in flight."""

    def __init__(
        self,
        stage: BatchSetup,
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
        self.trace = TraceHash(simulator.has_rotor.sum(axis=1))
        self.track = FlownTrack(count, rate) if keep_track else None
        self.cause = [""] * count
        self.position = np.array(simulator.position, np.float64)
        full = np.maximum(np.abs(simulator.parameter("rotor_max"))[:, : simulator.rotor_count], 1e-9)
        self._full, self._own = np.where(simulator.has_rotor, full, np.inf), simulator.has_rotor.sum(axis=1)
        self._moves = config.perturb.moving_obstacles > 0
        self._width = LEVELS[guide.level].width(simulator.rotor_count)
        self._command = np.zeros((count, self._width))
        self._blame: dict[int, str] = {}
        self._ticks = int(np.ceil(config.protocol.time_limit_s * rate - 1e-9))

    def fly(self, progress_callback: Callable[[int], None] | None) -> FlownBatch:
        """Until every flight is decided."""
        begun = perf_counter()
        lost = ~self.stage.takeoff.settled
        self._fail(lost, "diverged", NOT_SETTLED)
        self._measure(0, None)
        if progress_callback is not None and lost.any():
            progress_callback(int(lost.sum()))
        for tick in range(1, self._ticks + 1):
            done = int(self._step(tick).sum())
            if progress_callback is not None and done:
                progress_callback(done)
            if not self.watch.active.any():
                break
        self.stage.seconds["flying"] = perf_counter() - begun
        return self._result()

    def _step(self, tick: int) -> ArrayBool:
        """Fly a control period; return whom it decided."""
        active = self.watch.active
        if self.mounted is not None:
            self.mounted.watching = active
        self._decide(active)
        if self._moves:
            # Cameras look when the period ends, so that is when things are where they are seen.
            self.stage.batch.advance(self.simulator.time + 1.0 / self.simulator.config.control_rate)
        self.simulator.step(self._command)
        self._measure(tick, self._command)
        self._evaluate()
        return active & ~self.watch.active

    def _decide(self, active: ArrayBool) -> None:
        try:
            command, causes = self.guide.command(self.simulator, self.mounted, active)
        except PilotFailure as failure:
            if active.sum() > 1:
                raise
            command, causes = self._command, [str(failure)] * len(active)
        for flight, cause in huge_commands(command).items():
            self._blame.setdefault(flight, cause)
        failed = np.array([bool(cause) for cause in causes]) & active
        for k in np.flatnonzero(failed):
            self._fail(_only(k, len(active)), "planner_crash", causes[k])
        # A flight that is decided keeps its last command: nobody is asked for it any more.
        self._command = np.where((active & ~failed)[:, None], command, self._command)

    def _measure(self, tick: int, command: Array | None) -> None:
        simulator, active = self.simulator, self.watch.active
        # One rotor after another: a sum over an axis adds in another order where the batch is wider.
        used = (simulator.field("rotor_command")[:, : simulator.rotor_count] / self._full).T
        effort = sum(share**2 for share in used) / self._own
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
        fields = (simulator.field(name) for name in ("position", "velocity", "attitude", "rate"))
        self.trace.update(fields, simulator.rotor_speed, active)
        if self.track is not None:
            self.track.add(simulator, active)

    def _evaluate(self) -> None:
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
        for k in np.flatnonzero(decided & before & (self.watch.outcome != "success")):
            self.cause[k] = "; ".join(filter(None, (self.cause[k], self._blame.get(int(k), ""))))

    def _fail(self, who: ArrayBool, outcome: str, cause: str) -> None:
        new = self.watch.fail(who, outcome, self.simulator.time)
        for k in np.flatnonzero(new):
            self.cause[k] = cause

    def _result(self) -> FlownBatch:
        end = np.where(np.isnan(self.watch.end), 0.0, self.watch.end)
        stage = self.stage
        return FlownBatch(
            self.flights,
            stage.mission,
            stage.vehicles,
            stage.takeoff,
            self.watch,
            self.cause,
            self.position,
            self.meter.values(end),
            self.guide.planner_log(),
            self.trace.texts(),
            {**stage.seconds, **self.guide.seconds()},
            self.guide.spans,
            self.track,
            self.simulator.drawn_vehicles(),
        )


def _only(flight: int | np.integer[Any], count: int) -> ArrayBool:
    mask = np.zeros(count, bool)
    mask[flight] = True
    return mask


def _met(batch: SceneBatch, env: int, instance: int) -> str:
    """Return what a flight met, in words."""
    scene = batch.scenes[batch.scene_of_env[env]]
    if 0 <= instance < len(scene.instances):
        what = scene.instances[instance].semantic.replace("_", " ")
        return f"the {what}" if what in _ONE_OF else f"a {what}"
    return "a moving obstacle" if scene.actors else "something"
