"""One way to ask whoever flies: planners with maps and the common controller, and pilots that give commands themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.methods import NavigationMethod
from airworthy.benchmarks.navigation.planner_adapter import PLANNER_LOG, PlannerGuide, Timed
from airworthy.benchmarks.navigation.sensing import DEPTH, Sensed, depth_camera, odometry_of
from airworthy.bridges.remote.pilot import RemotePilot
from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.containment import contained
from airworthy.pilots.flight_loop import NOT_FINITE, PilotFailure, decide
from airworthy.pilots.pilot import SENSOR, Observation, check_observes, observe
from airworthy.planners.common.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.sensors.devices import Device
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["Guide", "OwnPilots", "PilotGuide", "guide_for", "part_of"]

# -----------------------------------------------------------------------------------------------------------------------------
# Pilots that give commands themselves: one object per flight, so that what one does wrong ends its own flight and no
# other.


class OwnPilots:
    """Pilots of n flights: n objects that decide for one flight each, or one that decides for all.

    Args:
        make: Makes one.
        mission: Of the n flights.
        alone: One per flight.

    Raises:
        AirworthyError: A pilot says no level, or one that there is not.
    """

    def __init__(self, make: Callable[[], Any], mission: Mission, alone: bool):
        self.count, self.mission = len(mission.start), mission
        self.causes: list[str] = [""] * self.count
        """Why a flight failed by its pilot; empty where it did not."""
        self.over = np.zeros(self.count, bool)
        """Flights that nobody needs any more: set it, and they are not asked."""
        self._alone = alone
        self._inner: list[Any] = []
        parts = [part_of(mission, flight) for flight in range(self.count)] if alone else [mission]
        for flight, part in enumerate(parts):
            self._inner.append(self._begun(make, part, flight))
        first = next((item for item in self._inner if item is not None), None)
        self.name = str(_declared(first, "name", "pilot"))
        self.level = str(_declared(first, "level", "tracking"))
        observes = _declared(first, "observes", ("position", "velocity", "attitude"))
        if self.level not in LEVELS:
            raise unknown_name(f"level of the pilot {self.name!r}", self.level, LEVELS)
        if isinstance(observes, str):
            raise AirworthyError(f"Pilot {self.name!r} observes a text; write a tuple.")
        self.observes = tuple(observes)

    @property
    def failed(self) -> ArrayBool:
        """Flights that failed by their pilot, (n,)."""
        return np.array([bool(cause) for cause in self.causes], bool)

    def command(self, observation: Observation, rotor_count: int = 4) -> Array:
        """Return commands (n, width) of vehicles with that many rotors; zeros for flights that have failed.

        Raises:
            PilotFailure: One pilot of all flights did something wrong.
        """
        width = LEVELS[self.level].width(rotor_count)
        if not self._alone:
            found, lost = decide(self._inner[0], observation, self.count, width)
            self._fail(lost & ~self.over, NOT_FINITE)
            for flight, cause in getattr(self._inner[0], "lost_flights", {}).items():
                self.causes[flight] = self.causes[flight] or cause
            return np.nan_to_num(np.broadcast_to(found, (self.count, width)).astype(np.float64), posinf=0.0, neginf=0.0)
        commands = np.zeros((self.count, width))
        for flight in np.flatnonzero(~self.over & ~self.failed):
            try:
                found, lost = decide(self._inner[flight], one_of(observation, int(flight)), 1, width)
            except PilotFailure as failure:
                self.causes[flight] = str(failure)
                continue
            if lost[0]:
                self.causes[flight] = NOT_FINITE
                continue
            commands[flight] = found.reshape(-1)
        return commands

    def meet(self, mounted: MountedSensors | None) -> None:
        """Show sensors to pilots of programs outside."""
        for item in self._inner:
            if isinstance(getattr(item, "inner", item), RemotePilot):
                item.meet(mounted)

    def close(self) -> None:
        """Tell pilots that have a method `close` that their flights are over."""
        for item in self._inner:
            if item is not None and hasattr(item, "close"):
                with suppress(PilotFailure):  # what it did in its flights is known, and nothing follows
                    contained(item.close)

    def _begun(self, make: Callable[[], Any], mission: Mission, flight: int) -> Any:
        """Return a pilot that was given its mission; None where it could not begin."""

        def begin() -> Any:
            pilot = make()
            if hasattr(pilot, "reset"):
                pilot.reset(mission)
            return pilot

        try:
            return contained(begin)
        except PilotFailure as failure:
            who = np.zeros(self.count, bool)
            who[slice(None) if not self._alone else flight] = True
            self._fail(who, f"it could not begin: {failure}")
            return None

    def _fail(self, who: ArrayBool, cause: str) -> None:
        for flight in np.flatnonzero(who):
            self.causes[flight] = self.causes[flight] or cause


def _declared(pilot: Any, name: str, usual: Any) -> Any:
    """Return what a pilot says of itself."""
    try:
        return contained(lambda: getattr(pilot, name, usual))
    except PilotFailure as failure:
        raise AirworthyError(f"The {name} of a pilot cannot be read: {failure}.") from failure


def part_of(mission: Mission, flight: int) -> Mission:
    """Return the mission of one flight of many."""
    return mission.of_flights(slice(flight, flight + 1))


def one_of(observation: Observation, flight: int) -> Observation:
    """Return the observation of one flight of many."""
    part = slice(flight, flight + 1)
    samples = {}
    for name, sample in observation.samples.items():
        data = {channel: array[part] for channel, array in sample.data.items()}
        rest = {key: getattr(sample, key)[part] for key in ("time", "step", "number", "valid", "position", "attitude")}
        samples[name] = replace(sample, data=data, **rest)
    return Observation(observation.time[part], {name: array[part] for name, array in observation.fields.items()}, samples)


# ---- Pilots that give commands themselves in the benchmark: what they see, and how often they are asked ---------------------


class PilotGuide:
    """Pilots that give commands themselves; see `OwnPilots`."""

    def __init__(self, method: NavigationMethod, mission: Mission, config: NavigationConfig):
        def make() -> Any:
            made = method.make()
            if not method.own:
                return made
            waits = made.settings.wait + made.settings.patience if isinstance(made, RemotePilot) else 0.0
            return Timed(made, config.decision_timeout, waits)

        self.pilot = OwnPilots(make, mission, method.alone)
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
    def searching(self) -> ArrayBool:
        """Nobody says so."""
        return np.zeros(self._count, bool)

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return the configuration as it is."""
        return config

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Refuse a pilot that asks for what there is not; programs outside are told of the sensors that there are."""
        check_observes(simulator, self.pilot, mounted)
        self.pilot.meet(mounted)

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: ArrayBool) -> tuple[Array, list[str]]:
        """See `Guide.command`.

        Args:
            simulator: Of the batch, after the last step.
            mounted: The sensors that pilots look through; None: they see nothing.
            active: Flights that go on, (n,).
        """
        self.pilot.over = ~active
        observed = self._sensed.observation(observe(simulator, self.pilot.observes, mounted))
        begun = perf_counter()
        found = self.pilot.command(observed, simulator.rotor_count)
        took, asked = perf_counter() - begun, int(active.sum())
        self._wall, self._asked = self._wall + took, self._asked + asked
        self.spans.append((took, asked))
        self._decisions += active
        return self._sensed.command(found), list(self.pilot.causes)

    def planner_log(self) -> dict[str, list[Any]]:
        """See `PLANNER_LOG`; what a pilot thinks about is its own affair."""
        none = [0.0] * self._count
        columns = ([0] * self._count, [int(v) for v in self._decisions], none, none, none, none)
        return dict(zip(PLANNER_LOG, (*columns, ["{}"] * self._count, [""] * self._count), strict=True))

    def close(self) -> None:
        """See `Guide.close`."""
        self.pilot.close()

    def seconds(self) -> dict[str, float]:
        """See `Guide.seconds`; every question is a call."""
        return {"planning": self._wall, "asked": float(self._asked), "thinking": self._wall, "calls": float(self._asked)}


# -----------------------------------------------------------------------------------------------------------------------------


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
    def searching(self) -> ArrayBool:
        """Who says that it has no path, (n,)."""
        ...

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return the simulator that it needs."""
        ...

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Meet the simulator before the first command."""
        ...

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: ArrayBool) -> tuple[Array, list[str]]:
        """Return commands (n, width) of the flights that are active (n,), and by flight what went wrong, "" where nothing did.

        Args:
            simulator: Of the batch, after the last step.
            mounted: The sensors that are looked through; None: nothing is seen.
            active: Flights that go on, (n,); the others' commands are not read.

        Raises:
            PilotFailure: It went wrong for all at once, and cannot be laid at one's door.
        """
        ...

    def planner_log(self) -> dict[str, list[Any]]:
        """Return `PLANNER_LOG` of every flight."""
        ...

    def seconds(self) -> dict[str, float]:
        """Return what it took by the clock [s], and how often it was asked: "planning", "asked", "thinking", "calls"."""
        ...

    def close(self) -> None:
        """Tell pilots that the flights are over."""
        ...

    @property
    def spans(self) -> list[tuple[float, int]]:
        """Of every tick in which somebody worked: seconds by the clock, and for how many flights."""
        ...


def guide_for(
    method: NavigationMethod,
    mission: Mission,
    vehicles: Sequence[Vehicle],
    config: NavigationConfig,
    stored: Mapping[int, Sequence[float]] | None = None,
    scenes: SceneBatch | None = None,
) -> Guide:
    """Return a guide of one method for the flights of a mission; `scenes` are their scenes, for those who may know them.

    Args:
        method: What is flown.
        mission: Of the n flights.
        vehicles: Of the n flights.
        config: Of the benchmark.
        stored: By a flight's number, latencies of its calls [s] that are taken instead of measured ones.
        scenes: Scenes of the flights, for methods that may know them.

    Raises:
        AirworthyError: It cannot fly them.
    """
    if method.kind == "planner":
        return PlannerGuide(method, mission, vehicles, config, stored, scenes)
    return PilotGuide(method, mission, config)
