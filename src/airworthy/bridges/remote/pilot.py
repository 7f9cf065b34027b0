"""A pilot in another program: it is told its task, given what it declares, and asked for a command whenever it is due."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayFloat
from airworthy.core.errors import AssetWarning
from airworthy.core.schema import Bound, check_fields
from airworthy.pilots.containment import PilotFailure
from airworthy.pilots.decision_clock import DecisionClock
from airworthy.pilots.flight_loop import COMMAND_MOST, NOT_FINITE
from airworthy.pilots.pilot import Observation
from airworthy.planners.common.interface import Mission
from airworthy.simulation import MountedSensors
from airworthy.trajectories import Trajectory

if TYPE_CHECKING:
    from airworthy.vehicles import Vehicle

__all__ = ["FlightTask", "PilotHello", "RemotePilot", "RemoteSettings", "course_task", "goal_task"]

COURSE_STEP = 0.01
"""Between two rows of a course that a pilot is told [s]: that of the set-points of `airworthy fly`."""


@dataclass(frozen=True)
class RemoteSettings:
    """What a user chooses about a pilot outside."""

    patience: Annotated[float, Bound(0.01, 3600.0, "s")] = 5.0
    """How long an answer may take; then the flight ends as pilot_error [s]."""
    wait: Annotated[float, Bound(0.01, 3600.0, "s")] = 10.0
    """How long to wait for the program to appear [s]."""

    def __post_init__(self) -> None:
        check_fields(self, "external.")


@dataclass(frozen=True)
class PilotHello:
    """What a pilot outside says of itself."""

    name: str
    level: str
    """Of its commands, of `airworthy.control.kernel.LEVELS`."""
    observes: tuple[str, ...] = ()
    rate: float = 0.0
    """Decisions per second [Hz]; between two the last command holds. 0: whenever it is asked."""
    batched: bool = False
    """One conversation is all flights of a batch; else each flight is one of its own."""


@dataclass(frozen=True)
class FlightTask:
    """What a pilot is told before its flights begin."""

    flights: int
    kind: str
    """"goal": fly from start to goal; "course": follow one; "free": neither."""
    seed: int = 0
    arrays: dict[str, Array] = field(default_factory=dict)
    """By name; those of a goal (n, ...) by flight, those of a course (m, ...) by row."""
    vehicles: tuple[str, ...] = ()
    """Text of the TOML files of the vehicles, dealt out to the flights in turn."""

    def of_flight(self, flight: int) -> FlightTask:
        """Return the task of one flight."""
        part = slice(flight, flight + 1)
        arrays = {name: array[part] for name, array in self.arrays.items()} if self.kind == "goal" else self.arrays
        vehicles = self.vehicles[flight % len(self.vehicles) :][:1] if self.vehicles else ()
        return FlightTask(1, self.kind, self.seed, arrays, vehicles)


def goal_task(mission: Mission) -> FlightTask:
    """Return the task of a navigation mission: start, goal, speed, acceleration, lower, upper and flight, and the airframes."""
    arrays = {
        item.name: np.asarray(getattr(mission, item.name)) for item in fields(mission) if item.name not in ("seed", "vehicle")
    }
    if mission.vehicle is not None:
        arrays |= {f"vehicle_{item.name}": getattr(mission.vehicle, item.name) for item in fields(mission.vehicle)}
    return FlightTask(len(mission.start), "goal", mission.seed, arrays)


def course_task(course: Trajectory, flights: int, vehicles: tuple[Vehicle, ...] = ()) -> FlightTask:
    """Return the task of following a course, in rows of `COURSE_STEP`: course_time [s], course_position [m], course_velocity,
    course_acceleration, course_yaw [rad], course_yaw_rate."""
    from airworthy.vehicles.files import vehicle_text

    # The last row is the end itself, which is held.
    time = np.append(np.arange(0.0, course.duration, COURSE_STEP), course.duration)
    flat = course.sample(time)
    arrays = {
        "course_time": time,
        "course_position": flat.position,
        "course_velocity": flat.velocity,
        "course_acceleration": flat.acceleration,
        "course_yaw": flat.yaw,
        "course_yaw_rate": flat.yaw_rate,
    }
    return FlightTask(flights, "course", 0, arrays, tuple(vehicle_text(item) for item in vehicles))


class RemotePilot(ABC):
    """Base of pilots outside; a context manager that ends the conversation.

    Args:
        hello: What it says of itself.
        settings: Of the conversation.
    """

    def __init__(self, hello: PilotHello, settings: RemoteSettings):
        self.hello, self.settings = hello, settings
        self.name, self.level, self.observes = hello.name, hello.level, hello.observes
        self._clock: DecisionClock | None = None
        self._held: Any = None
        self._course: tuple[Trajectory, tuple[Vehicle, ...]] | None = None
        self._begun, self._warned = 0, False
        self.absent = False
        """Nobody was there, from the beginning on; where a program said what it is, one was."""
        self.lost_flights: dict[int, str] = {}
        """Flights that it has failed, and why, while others go on; commands of these are of no meaning."""
        self.stale = self.malformed = 0
        """Answers to another question than the one that was asked, which were left out; messages that were none."""

    # ---- what a protocol does ---------------------------------------------------------------------------------------

    @abstractmethod
    def begin(self, task: FlightTask) -> None:
        """Tell the task.

        Raises:
            PilotFailure: It was not taken.
        """

    @abstractmethod
    def decide(self, observation: Observation) -> Array:
        """Return commands (n, width) that answer what is seen; rows of flights in `lost_flights` hold anything.

        Raises:
            PilotFailure: None came in time, or what came is none.
        """

    @abstractmethod
    def close(self) -> None:
        """End the conversation; may be called again."""

    # ---- the pilot --------------------------------------------------------------------------------------------------

    def __enter__(self) -> RemotePilot:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def reset(self, mission: Mission) -> None:
        """Begin the flights of a mission."""
        self._start(goal_task(mission))

    def notes(self) -> list[str]:
        """Return what was odd about the conversation until now, a sentence each."""
        odd = {"answers to another question than the last one": self.stale, "messages that were no commands": self.malformed}
        return [f"{self.name}: {count:,} {what}, left out." for what, count in odd.items() if count]

    def warn(self) -> None:
        """Warn of what was odd, once; pilots call it where a conversation ends."""
        notes = self.notes()
        if notes and not self._warned:
            self._warned = True
            warnings.warn(f"Pilot {' '.join(notes)}", AssetWarning, stacklevel=3)

    def follow(self, course: Trajectory, vehicles: tuple[Vehicle, ...] = ()) -> None:
        """Have a course told when the flights begin.

        Args:
            course: To follow.
            vehicles: That fly it, dealt out to the flights in turn.
        """
        self._course = (course, vehicles)

    def meet(self, mounted: MountedSensors | None) -> None:  # noqa: B027 - protocols that tell nothing of sensors need not
        """Learn which sensors there are, before the first command."""

    def command(self, observation: Observation) -> ArrayFloat:
        """Return commands (n, width): new ones of flights that are due, the last ones of the others."""
        flights = len(observation.time)
        if self._begun != flights:
            course = self._course
            self._start(FlightTask(flights, "free") if course is None else course_task(course[0], flights, course[1]))
        due = self._due(observation.time)
        if self._held is None or due.any():
            found = self._sound(self.decide(observation))
            if self._held is None or due.all() or found.ndim != 2:
                self._held = found
            else:
                self._held = np.where(due[:, None], found, self._held)
        return np.asarray(self._held)

    def lose(self, flight: int, cause: str) -> None:
        """Give up a flight whose program failed; the others go on.

        Raises:
            PilotFailure: There is no other.
        """
        self.lost_flights.setdefault(flight, cause)
        if len(self.lost_flights) >= self._begun:
            first = next(iter(self.lost_flights.values()))
            alike = len(set(self.lost_flights.values())) == 1
            raise PilotFailure(first if alike else f"{first} (each of its {self._begun} flights failed, this one first)")

    def _sound(self, found: Array) -> Array:
        """Return commands as they are, without those that no vehicle can take: their flights are given up."""
        if found.ndim != 2:
            return found
        size = np.abs(found)
        for flight in np.flatnonzero(~(size <= COMMAND_MOST).all(axis=1)):
            if int(flight) not in self.lost_flights:
                self.lose(int(flight), self._nonsense(found[flight]))
        return np.where(size <= COMMAND_MOST, found, 0.0)

    def _nonsense(self, command: Array) -> str:
        """Say what is wrong with a command (width,)."""
        if not np.isfinite(command).all():
            return f"{NOT_FINITE}: {np.array2string(command[:6], precision=3, separator=', ')}"
        most = float(np.abs(command).max())
        return f"its command held {most:.3g}, beyond what the level takes: {self.level} has no number beyond {COMMAND_MOST:g}"

    def _start(self, task: FlightTask) -> None:
        self.begin(task)
        self._begun, self._held, self.lost_flights = task.flights, None, {}
        self._clock = DecisionClock(self.hello.rate, task.flights) if self.hello.rate > 0.0 else None

    def _due(self, time: ArrayFloat) -> ArrayBool:
        return np.ones(len(time), bool) if self._clock is None else self._clock.at(time)[1]
