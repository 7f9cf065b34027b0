"""One way to ask whoever flies: planners with maps and the common controller, and pilots that give commands themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.own_pilots import OwnPilots
from airworthy.evaluation.navigation.patience import Timed
from airworthy.evaluation.navigation.sensing import DEPTH, Sensed, depth_camera, depth_maps, odometry_of
from airworthy.pilots.deciding import decide
from airworthy.pilots.pilot import SENSOR, check_observes, observe
from airworthy.pilots.planning.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.sensors.devices import Device
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["DIARY", "Guide", "guide_for"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

DIARY: tuple[str, ...] = (
    "replans",
    "decisions",
    "compute_s",
    "latency_median_s",
    "latency_p95_s",
    "latency_max_s",
    "work",
    "latencies",
)
"""What is told of a flight's planning: successful replans, calls in which work was done, simulated compute in all, of a call
in the median, at the 95th percentile and at most, counted work by kind (JSON), and measured latencies (JSON; "" otherwise)."""


class Guide(Protocol):
    """Whoever flies a batch."""

    @property
    def level(self) -> str:
        """Control level of the commands."""
        ...

    @property
    def camera(self) -> Device | None:
        """What must be mounted."""
        ...

    @property
    def searching(self) -> Bools:
        """Who says that it has no path, (n,)."""
        ...

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """The simulator that it needs."""
        ...

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Meet the simulator before the first command."""
        ...

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: Bools) -> tuple[Array, list[str]]:
        """Commands (n, width) of the flights that are active (n,), and by flight what went wrong, "" where nothing did.

        Raises:
            PilotFailure: It went wrong for all at once, and cannot be laid at one's door.
        """
        ...

    def diary(self) -> dict[str, list[Any]]:
        """`DIARY` of every flight."""
        ...

    def seconds(self) -> dict[str, float]:
        """What it took by the clock [s], and how often it was asked: "planning", "asked", "thinking", "calls"."""
        ...

    @property
    def spans(self) -> list[tuple[float, int]]:
        """Of every tick in which somebody worked: seconds by the clock, and for how many flights."""
        ...


def guide_for(
    entrant: Entrant,
    mission: Mission,
    vehicles: Sequence[Vehicle],
    config: NavigationConfig,
    stored: Mapping[int, Sequence[float]] | None = None,
    places: SceneBatch | None = None,
) -> Guide:
    """A guide of one entrant for the flights of a mission; `places` are their scenes, for those who may know them.

    Raises:
        AirworthyError: It cannot fly them.
    """
    if entrant.kind == "planner":
        return PlannerGuide(entrant, mission, vehicles, config, stored, places)
    return PilotGuide(entrant, mission, config)


class PlannerGuide:
    """A planner, its maps and the common controller; see `PlannerPilot`."""

    def __init__(
        self,
        entrant: Entrant,
        mission: Mission,
        vehicles: Sequence[Vehicle],
        config: NavigationConfig,
        stored: Mapping[int, Sequence[float]] | None,
        places: SceneBatch | None = None,
    ):
        from airworthy.pilots.mapping import maps_of_scene
        from airworthy.pilots.planning.tracking import PlannerPilot
        from airworthy.pilots.planning.tracking_compute import ComputeModel
        from airworthy.pilots.planning.tracking_faults import Alone

        def make() -> Any:
            return Timed(entrant.make(), config.patience) if entrant.own else entrant.make()

        planner = Alone(make) if entrant.alone else make()
        settings = planner.settings
        knows = entrant.privileged and settings is not None
        self.camera = None if settings is None or knows else depth_camera(config, settings)
        maps: Any = None
        if knows:
            maps = maps_of_scene(places, mission, settings)
        elif settings is not None:
            maps = depth_maps(mission, settings, config)
        times = {int(number): list(values) for number, values in (stored or {}).items()}
        compute = ComputeModel(config.compute, patience=config.patience, stored=times)
        self.planner = planner
        odometry, crafts = odometry_of(config), list(vehicles)
        self.pilot = PlannerPilot(planner, mission, crafts, maps, compute, config.controller, odometry)
        self._measured = config.compute == "measured"
        self._count = len(mission.start)
        self._wall, self._asked = 0.0, 0
        self.spans: list[tuple[float, int]] = []
        self._tries = _Tries(self._count)

    @property
    def level(self) -> str:
        """Control level of the commands."""
        return self.pilot.level

    @property
    def searching(self) -> Bools:
        """Who has no path and goes on trying, (n,): by the planner's word, a property `searching` (n,), or, of planners that
        say nothing of it, by work that comes to nothing."""
        try:
            planner: Any = self.planner
            told = np.asarray(planner.searching, np.bool_)
        except Exception:  # none, or none that can be read: a user's planner need not know of it
            return self._tries.searching
        return told if told.shape == (self._count,) else self._tries.searching

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """The simulator that the controller needs."""
        return self.pilot.configured(config)

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Give the controller its gains and the maps their camera."""
        self.pilot.attach(simulator, mounted, DEPTH)

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: Bools) -> tuple[Array, list[str]]:
        """See `Guide.command`."""
        self.pilot.over = ~active
        seen = observe(simulator, self.pilot.observes, mounted)
        found, lost = decide(self.pilot, seen, self._count, _width(self.pilot, simulator))
        busy = self._tries.update(self.pilot.diary.calls, self.pilot.diary.replans)
        self._wall += self.pilot.guard.wall
        self._asked += int(active.sum())
        if busy:
            self.spans.append((self.pilot.guard.wall, busy))
        causes = self.pilot.causes
        for place in np.flatnonzero(lost & active):
            causes[place] = causes[place] or "its command is not finite"
        return np.broadcast_to(found, (self._count, found.shape[-1])).astype(np.float64), causes

    def diary(self) -> dict[str, list[Any]]:
        """See `DIARY`."""
        told = self.pilot.diary
        work = [_json({kind: float(units[k]) for kind, units in sorted(told.work.items())}) for k in range(self._count)]
        kept = [_json(times) if self._measured else "" for times in told.latencies]
        at = {q: [float(np.quantile(times, q)) if times else 0.0 for times in told.latencies] for q in (0.5, 0.95)}
        columns = ([int(v) for v in told.replans], [int(v) for v in told.calls], [float(v) for v in told.compute])
        return dict(zip(DIARY, (*columns, at[0.5], at[0.95], [float(v) for v in told.longest], work, kept), strict=True))

    def seconds(self) -> dict[str, float]:
        """See `Guide.seconds`; "thinking" is of the ticks in which somebody worked."""
        told = {"planning": self._wall, "asked": float(self._asked)}
        return {**told, "thinking": sum(s for s, _ in self.spans), "calls": float(sum(n for _, n in self.spans))}


class _Tries:
    """Which planners work and work and find no path: for flights (n,), from what they tell of each call."""

    LEAST, RECENT = 10, 200
    """Calls with work since the last plan that succeeded, and ticks within which the last of them lies."""

    def __init__(self, count: int):
        self._calls, self._replans = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._vain, self._idle = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def update(self, calls: NDArray[np.int64], replans: NDArray[np.int64]) -> int:
        """Take in the counts after a tick; how many flights have worked in it."""
        busy = calls > self._calls
        self._vain = np.where(replans > self._replans, 0, self._vain + busy)
        self._idle = np.where(busy, 0, self._idle + 1)
        self._calls, self._replans = calls.copy(), replans.copy()
        return int(busy.sum())

    @property
    def searching(self) -> Bools:
        """(n,)"""
        return (self._vain >= self.LEAST) & (self._idle < self.RECENT)


class PilotGuide:
    """Pilots that give commands themselves; see `OwnPilots`."""

    def __init__(self, entrant: Entrant, mission: Mission, config: NavigationConfig):
        def make() -> Any:
            return Timed(entrant.make(), config.patience) if entrant.own else entrant.make()

        self.pilot = OwnPilots(make, mission, entrant.alone)
        sees = f"{SENSOR}{DEPTH}" in self.pilot.observes
        self.camera = depth_camera(config, None) if sees else None
        self._sensed = Sensed(odometry_of(config), mission.seed, np.asarray(mission.flight), self.pilot.level)
        self._count, self._wall, self._asked = len(mission.start), 0.0, 0
        self.spans: list[tuple[float, int]] = []
        self._decisions = np.zeros(self._count, np.int64)

    @property
    def level(self) -> str:
        """Control level of the commands."""
        return self.pilot.level

    @property
    def searching(self) -> Bools:
        """Nobody says so."""
        return np.zeros(self._count, bool)

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """As it is."""
        return config

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Refuse a pilot that asks for what there is not."""
        check_observes(simulator, self.pilot, mounted)

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: Bools) -> tuple[Array, list[str]]:
        """See `Guide.command`."""
        self.pilot.over = ~active
        seen = self._sensed.observation(observe(simulator, self.pilot.observes, mounted))
        begun = perf_counter()
        found = self.pilot.command(seen)
        took, asked = perf_counter() - begun, int(active.sum())
        self._wall, self._asked = self._wall + took, self._asked + asked
        self.spans.append((took, asked))
        self._decisions += active
        return self._sensed.command(found), list(self.pilot.causes)

    def diary(self) -> dict[str, list[Any]]:
        """See `DIARY`; what a pilot thinks about is its own affair."""
        none = [0.0] * self._count
        columns = ([0] * self._count, [int(v) for v in self._decisions], none, none, none, none)
        return dict(zip(DIARY, (*columns, ["{}"] * self._count, [""] * self._count), strict=True))

    def seconds(self) -> dict[str, float]:
        """See `Guide.seconds`; every question is a call."""
        return {"planning": self._wall, "asked": float(self._asked), "thinking": self._wall, "calls": float(self._asked)}


def _json(value: Any) -> str:
    """On one line; floats read back as they were."""
    return json.dumps(value, separators=(",", ":"))


def _width(pilot: Any, simulator: Simulator) -> int:
    from airworthy.control.kernel import LEVELS

    return LEVELS[pilot.level].width(simulator.rotor_count)
