"""Pilots that give commands themselves in the benchmark: what they see, and how often they are asked."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.diary import DIARY
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.own_pilots import OwnPilots
from airworthy.evaluation.navigation.patience import Timed
from airworthy.evaluation.navigation.sensing import DEPTH, Sensed, depth_camera, odometry_of
from airworthy.pilots.pilot import SENSOR, check_observes, observe
from airworthy.pilots.planning.interface import Mission
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig

__all__ = ["PilotGuide"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
