"""One way to ask whoever flies: planners with maps and the common controller, and pilots that give commands themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.guiding_pilots import PilotGuide
from airworthy.evaluation.navigation.guiding_planners import PlannerGuide
from airworthy.pilots.planning.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.sensors.devices import Device
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["Guide", "guide_for"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
