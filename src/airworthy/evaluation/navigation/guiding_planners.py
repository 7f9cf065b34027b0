"""Planners in the benchmark: their maps, the common controller, what they tell of their work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.kernel import LEVELS
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.diary import DIARY
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.patience import Timed
from airworthy.evaluation.navigation.sensing import DEPTH, depth_camera, depth_maps, odometry_of
from airworthy.pilots.deciding import decide
from airworthy.pilots.pilot import observe
from airworthy.pilots.planning.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["PlannerGuide", "Tries"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
        self._tries = Tries(self._count)

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
        found, lost = decide(self.pilot, seen, self._count, LEVELS[self.pilot.level].width(simulator.rotor_count))
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


class Tries:
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


def _json(value: Any) -> str:
    """On one line; floats read back as they were."""
    return json.dumps(value, separators=(",", ":"))
