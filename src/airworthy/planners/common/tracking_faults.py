"""Containment: what a planner does wrong ends its own flight, with the cause in one sentence, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from time import perf_counter
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool
from airworthy.pilots.containment import PilotFailure, contained
from airworthy.planners.common.interface import Maps, MapView, Mission, Motion, Planner, Setpoints, StartRoom

__all__ = ["Alone", "Guard", "made", "report_of"]

# Ours: orders of magnitude beyond any flight, so that only numbers gone wrong are refused [m, s, rad].
_LIMITS = {"position": 1e5, "velocity": 1e3, "acceleration": 1e4, "yaw": 1e6, "yaw_rate": 1e4}
"""Beyond these no set-point makes sense."""
Report = dict[str, Any]


class Guard:
    """Asks a planner, and keeps what goes wrong with it.

    A planner of many flights that raises in `update` is asked again for one flight at a time: flights with which it raises
    alone have failed. Flights that it had already thought about are then thought about twice; with planners that must not be,
    use `Alone`. What it raises elsewhere fails every flight that is still under way, for it cannot be laid at one's door.

    Args:
        planner: Whom to ask.
        count: Number of flights n.
    """

    def __init__(self, planner: Planner, count: int):
        self.planner, self._count = planner, count
        self.causes: list[str] = [""] * count
        """Why a flight failed; empty where it did not."""
        self.wall = 0.0
        """Seconds that the last `update` took."""

    @property
    def failed(self) -> ArrayBool:
        """(n,)"""
        return np.array([bool(cause) for cause in self.causes], bool)

    def fail(self, flights: ArrayAny, cause: str) -> None:
        """Fail flights, by mask (n,) or numbers, that fail; the first cause of each counts."""
        for flight in np.arange(self._count)[flights]:
            # What follows from the first fault would hide it.
            self.causes[flight] = self.causes[flight] or cause

    def reset(self, mission: Mission) -> None:
        """Begin all flights."""
        try:
            contained(self.planner.reset, mission)
        except PilotFailure as failure:
            self.fail(np.ones(self._count, bool), f"reset raised {failure}")

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> Report:
        """Return the planner's report, legal; flights that fail on the way are noted and report nothing.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights; None where the planner asked for none.
            active: Flights that are still flown, (n,).
        """
        begun = perf_counter()
        try:
            # A copy: a planner that writes into its mask must not stop other flights.
            report = contained(self._report, motion, maps, active.copy())
        except PilotFailure as failure:
            # Whose fault it was shows only when each is asked alone; of a single flight it is known.
            report = self._one_by_one(motion, maps, active) if active.sum() > 1 else self._nothing()
            if active.sum() == 1:
                self.fail(active, f"update raised {failure}")
        self.wall = perf_counter() - begun
        self._take_faults()
        return report

    def adopt(self, delay: Array) -> None:
        """Adopt as of the planner."""
        try:
            contained(self.planner.adopt, delay)
        except PilotFailure as failure:
            self.fail(~self.failed, f"adopt raised {failure}")
        self._take_faults()

    def setpoints(self, time: Array) -> Setpoints | None:
        """Return the planner's set-points; None where it gave none at all. Flights with illegal ones are noted."""
        try:
            arrays = contained(self._arrays, time)
        except PilotFailure as failure:
            self.fail(~self.failed, f"setpoints raised {failure}")
            return None
        self._take_faults()
        for name, array in arrays.items():
            # A wrong shape is nobody's in particular: all that are left fail, rather than some by numbers of others.
            expected = (self._count,) if name.startswith("yaw") else (self._count, 3)
            if array.shape != expected:
                self.fail(~self.failed, f"setpoints gave {name} of shape {array.shape}, expected {expected}")
                return None
            # Not `>`: a NaN is neither above nor below, and must count as wrong.
            wrong = np.asarray(~(np.abs(array) <= _LIMITS[name]))
            wrong = np.asarray(wrong.any(axis=1)) if wrong.ndim == 2 else wrong
            if wrong.any():
                self.fail(wrong, f"setpoints gave a {name} that is not a number or beyond {_LIMITS[name]:g}")
        return Setpoints(**arrays)

    def _one_by_one(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> Report:
        reports = []
        for flight in np.flatnonzero(active):
            alone = np.zeros(self._count, bool)
            alone[flight] = True
            try:
                reports.append((int(flight), int(flight), contained(self._report, motion, maps, alone)))
            except PilotFailure as failure:
                self.fail(alone, f"update raised {failure}")
        return _merged(reports, self._count)

    def _report(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> Report:
        return report_of(self.planner.update(motion, maps, active), self._count)

    def _arrays(self, time: Array) -> dict[str, Array]:
        found = self.planner.setpoints(time)
        return {f.name: np.asarray(getattr(found, f.name), float) for f in fields(Setpoints)}

    def _nothing(self) -> Report:
        return _merged([], self._count)

    def _take_faults(self) -> None:
        """Planners that contain by themselves say so in `faults`, cause by flight."""
        try:
            # Read inside, for `faults` may be a property, and raise.
            found = contained(lambda: dict(getattr(self.planner, "faults", {})))
            for flight, cause in found.items():
                self.fail(np.array([flight]), str(cause))
        except (PilotFailure, IndexError, TypeError, ValueError) as failure:
            self.fail(~self.failed, f"faults cannot be read: {failure}")


class Alone:
    """A planner of n flights made of n planners of one: whatever one does, the others never notice.

    Args:
        make: Makes a planner; called once per flight.
    """

    def __init__(self, make: Callable[[], Planner]):
        self._make, self._first = make, made(make)
        self._guards: list[Guard] = []
        self._last: list[Setpoints | None] = []

    @property
    def name(self) -> str:
        """As the single planners'."""
        return self._first.name

    @property
    def settings(self) -> Any:
        """Maps of a single planner."""
        return self._first.settings

    @property
    def faults(self) -> dict[int, str]:
        """Cause by number of flights that failed."""
        return {flight: guard.causes[0] for flight, guard in enumerate(self._guards) if guard.causes[0]}

    def doubts(self, mission: Mission, room: StartRoom) -> Any:
        """Return what the first doubts of all flights: it is made as the others are."""
        return self._first.doubts(mission, room) if hasattr(self._first, "doubts") else ()

    def reset(self, mission: Mission) -> None:
        """Make one planner per flight."""
        count = len(mission.start)
        # The first was made to ask its name and maps; making it twice would cost a network's weights twice.
        self._guards = [Guard(self._first if k == 0 else self._make(), 1) for k in range(count)]
        self._start = mission.start
        self._last = [None] * count
        for flight, guard in enumerate(self._guards):
            guard.reset(_one(mission, flight))

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> Report:
        """Ask each active flight's planner.

        Args:
            motion: Odometry of all flights (n, ...), world.
            maps: Of the flights; None where the planner asked for none.
            active: Flights that are still flown, (n,).
        """
        reports = []
        for flight in np.flatnonzero(active):
            guard = self._guards[flight]
            if not guard.causes[0]:
                view = None if maps is None else _MapsOfOne(maps, int(flight))
                reports.append((int(flight), guard.update(_one(motion, int(flight)), view, np.ones(1, bool))))
        return _merged([(flight, 0, report) for flight, report in reports], len(self._guards))

    def adopt(self, delay: Array) -> None:
        """Tell each."""
        for flight, guard in enumerate(self._guards):
            if not guard.causes[0]:
                guard.adopt(delay[flight : flight + 1])

    def setpoints(self, time: Array) -> Setpoints:
        """Return the set-points of each; of flights that failed, their last."""
        for flight, guard in enumerate(self._guards):
            found = None if guard.causes[0] else guard.setpoints(time[flight : flight + 1])
            if found is not None and not guard.causes[0]:
                self._last[flight] = found
        # A flight without a plan stays at its start: its row must hold something that the tracker can follow until it ends.
        rows = [last or _still(self._start[k]) for k, last in enumerate(self._last)]
        return Setpoints(**{f.name: np.concatenate([getattr(r, f.name) for r in rows]) for f in fields(Setpoints)})


class _Unmade:
    """Stands where a planner could not be made: it fails every flight with the cause."""

    name, settings = "planner", None

    def __init__(self, cause: str):
        self._cause = cause

    def reset(self, mission: Mission) -> None:
        raise PilotFailure(self._cause)

    def update(self, motion: Motion, maps: Maps | None, active: ArrayBool) -> Report:
        raise PilotFailure(self._cause)

    def adopt(self, delay: Array) -> None:
        raise PilotFailure(self._cause)

    def setpoints(self, time: Array) -> Setpoints:
        raise PilotFailure(self._cause)


def made(make: Callable[[], Planner]) -> Planner:
    """Return a planner; where its making raises, one that fails its flights with that cause."""
    try:
        # Where the making fails, flights fail with its cause, as for anything else; the others of a benchmark go on.
        return contained(make)
    except PilotFailure as failure:
        return _Unmade(f"it could not be made: {failure}")


class _MapsOfOne:
    """The maps of one flight of many, as those of a batch of one."""

    def __init__(self, maps: Maps, flight: int):
        self._maps, self._first = maps, flight

    def occupied(self, flight: Any, points: Array) -> ArrayBool:
        return self._maps.occupied(np.asarray(flight) + self._first, points)

    def distance(self, flight: Any, points: Array) -> tuple[Array, Array]:
        return self._maps.distance(np.asarray(flight) + self._first, points)

    def inflated(self, flight: int) -> Any:
        return self._maps.inflated(flight + self._first)

    def field(self, flight: int) -> Any:
        return self._maps.field(flight + self._first)

    def view(self, flight: int) -> MapView:
        return self._maps.view(flight + self._first)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._maps, name)


def _one(record: Any, flight: int) -> Any:
    """Return a mission or motion of one flight of many."""
    if isinstance(record, Mission):
        return record.of_flights(slice(flight, flight + 1))
    parts = {f.name: getattr(record, f.name)[flight : flight + 1] for f in fields(record)}
    return replace(record, **parts)


def _still(position: Array) -> Setpoints:
    zero = np.zeros((1, 3))
    return Setpoints(position[None, :].copy(), zero, zero, np.zeros(1), np.zeros(1))


def _merged(reports: list[tuple[int, int, Report]], count: int) -> Report:
    """Return one report of n flights from several: number of a flight, its index in the report, the report."""
    whole: Report = {"work": {}, "replans": np.zeros(count, np.int64), "state": np.zeros(count, np.int64)}
    for flight, index, report in reports:
        for kind, units in report["work"].items():
            whole["work"].setdefault(kind, np.zeros(count))[flight] = units[index]
        whole["replans"][flight], whole["state"][flight] = report["replans"][index], report["state"][index]
    return whole


def report_of(report: Any, count: int) -> Report:
    """Return a planner's report as arrays.

    Raises:
        ValueError: It is not one; contained by the guard.
    """
    if not isinstance(report, dict):
        raise ValueError(f"a report is a dict with work, replans and state, not {type(report).__name__}")
    work = {}
    for kind, units in dict(report.get("work", {})).items():
        # Work decides how late a plan holds: a negative or infinite count would let time run backwards, or stop.
        array = np.broadcast_to(np.asarray(units, float), count)
        if not (np.isfinite(array) & (array >= 0.0)).all():
            raise ValueError(f"work of kind {kind!r} is not a count")
        work[str(kind)] = array
    whole: Report = {"work": work}
    for name in ("replans", "state"):
        whole[name] = np.broadcast_to(np.asarray(report.get(name, 0)).astype(np.int64), count)
    return whole
