"""Pilots that give commands themselves: one object per flight, so that what one does wrong ends its own flight and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.deciding import PilotFailure, decide
from airworthy.pilots.pilot import Observation
from airworthy.pilots.planning.interface import Mission

__all__ = ["OwnPilots", "part_of"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
        parts = [part_of(mission, place) for place in range(self.count)] if alone else [mission]
        for place, part in enumerate(parts):
            self._inner.append(self._begun(make, part, place))
        first = next((item for item in self._inner if item is not None), None)
        self.name = str(getattr(first, "name", "pilot"))
        self.level = str(getattr(first, "level", "tracking"))
        self.observes = tuple(getattr(first, "observes", ("position", "velocity", "attitude")))
        if self.level not in LEVELS:
            raise unknown_name(f"level of the pilot {self.name!r}", self.level, LEVELS)
        if isinstance(getattr(first, "observes", ()), str):
            raise AirworthyError(f"Pilot {self.name!r} observes a text; write a tuple.")

    @property
    def failed(self) -> Bools:
        """Flights that failed by their pilot, (n,)."""
        return np.array([bool(cause) for cause in self.causes], bool)

    def command(self, observation: Observation) -> Array:
        """Commands (n, width); zeros for flights that have failed.

        Raises:
            PilotFailure: One pilot of all flights did something wrong.
        """
        width = LEVELS[self.level].width(4)
        if not self._alone:
            found, lost = decide(self._inner[0], observation, self.count, width)
            self._fail(lost & ~self.over, "a command that is not finite")
            return np.nan_to_num(np.broadcast_to(found, (self.count, width)).astype(np.float64), posinf=0.0, neginf=0.0)
        commands = np.zeros((self.count, width))
        for place in np.flatnonzero(~self.over & ~self.failed):
            try:
                found, lost = decide(self._inner[place], one_of(observation, int(place)), 1, width)
            except PilotFailure as failure:
                self.causes[place] = str(failure)
                continue
            if lost[0]:
                self.causes[place] = "its command is not finite"
                continue
            commands[place] = found.reshape(-1)
        return commands

    def _begun(self, make: Callable[[], Any], mission: Mission, place: int) -> Any:
        """A pilot that was given its mission; None where it could not begin."""
        try:
            pilot = make()
            if hasattr(pilot, "reset"):
                pilot.reset(mission)
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0][:300]
            who = np.zeros(self.count, bool)
            who[slice(None) if not self._alone else place] = True
            self._fail(who, f"it could not begin: {type(error).__name__}: {reason}")
            return None
        return pilot

    def _fail(self, who: Bools, cause: str) -> None:
        for place in np.flatnonzero(who):
            self.causes[place] = self.causes[place] or cause


def part_of(mission: Mission, place: int) -> Mission:
    """The mission of one flight of many."""
    parts = {f.name: getattr(mission, f.name)[place : place + 1] for f in fields(mission) if f.name != "seed"}
    return replace(mission, **parts)


def one_of(observation: Observation, place: int) -> Observation:
    """The observation of one flight of many."""
    part = slice(place, place + 1)
    samples = {}
    for name, sample in observation.samples.items():
        data = {channel: array[part] for channel, array in sample.data.items()}
        rest = {key: getattr(sample, key)[part] for key in ("time", "step", "number", "valid", "position", "attitude")}
        samples[name] = replace(sample, data=data, **rest)
    return Observation(observation.time[part], {name: array[part] for name, array in observation.fields.items()}, samples)
