"""Races flown with the true state in scenes of their own: each flight its course, its plan and its place in one simulator.

Of the information rules one holds here: where a race tells gates and posts by nearness (`information.gates = "near"`), plans
are made for where things are said to be, and anew whenever one is seen to stand elsewhere. As in LSY's races, a thing is told
for good once it has been within `near_m`, horizontally, of where it truly stands. Rotor speeds are commanded, whatever the
race's own interface is, and planning takes no simulated time: rows say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.race.benchmark.flight import flight_ids_of
from airworthy.race.benchmark.flight_measures import FlightMeasures, Measure
from airworthy.race.courses import course_of
from airworthy.race.gate_geometry import gate_shape
from airworthy.race.pilots.rotor_pilot import RotorPlanPilot
from airworthy.race.planning.plan import RacePlan
from airworthy.race.racers import race_vehicle
from airworthy.race.record import REVERSED, Race
from airworthy.race.referee import CLOSING_S, RaceEnd, Referee
from airworthy.race.scenery import race_scene
from airworthy.race.scoring import RaceResult, race_results
from airworthy.scenes.batch import SceneBatch
from airworthy.simulation import Contact, Randomization, Simulator, SimulatorConfig

__all__ = ["PHYSICS_HZ", "CourseFlight", "Planner", "Told", "fly_courses"]

PHYSICS_HZ = 1000.0
"""Steps per second; ours: a millisecond is a twentieth of the fastest rotor's lag."""
COMMAND_HZ = 250.0
"""Commands per second; ours, near the 240 of the hall's pilots."""
_JUDGED = 25
"""Commands after which the referee is asked: a tenth of a second."""


_LATE = 0.08
"""Nobody plans anew so short before a gate [s] (spec/race 5.4 has 0.1 s, at 16 m/s)."""


_ASTRAY = 0.1
"""Who is so far off the plan in force plans anew, from where it is, in races that tell by nearness [m]: twice what flying errs
there (`course_planner._ERROR`). Where nothing is told late plans are calmer, and stay in force."""


_OVERDUE_S = 0.1
"""Who ends so long behind the planned moment of its next passage has missed it: flights keep to their plans' clocks within a
hundredth [s]."""


_UNSURE = 0.4
"""Part of a post's bound by which plans keep farther off until it is told: all of it closes ways that are open."""


@dataclass(frozen=True)
class Told:
    """What a pilot is told at an instant, and from where it plans on."""

    race: Race
    """Gates and posts where they are believed to be; start, limits and order as ever."""
    state: Array
    """Position, velocity, attitude x y z w, body rate, (13,)."""
    passed: int
    """Passages that lie behind."""
    plan: RacePlan | None
    """In force; None before the start."""
    clock: float
    """Of that plan [s]."""
    unseen: frozenset[str]
    """Gates that may stand elsewhere yet."""


Planner = Callable[[Told], RacePlan | None]
"""Makes a plan for the rest of a race; None: it found none, and the one in force stays."""


@dataclass(frozen=True)
class CourseFlight:
    """One flight, and how near it kept to its plans."""

    course: str
    result: RaceResult
    part: str
    """What was touched, by its name in the scene; empty where nothing was."""
    commands_sha256: str
    """Of all its commands."""
    speed_max: float
    """Until the race ended [m/s]."""
    path_m: float
    """Length that was flown until then [m]."""
    planned_s: float
    """Duration of its first plan."""
    plans: int
    """That it was given, the first counted."""
    failures: int
    """Times that none was found."""
    error_max: float
    """Largest distance from the plan in force until the race or that plan ended, whichever came first [m]."""
    missed: str = ""
    """Passage that was next, as the order has it ("-A"), where the flight went on behind the moment for which it was planned;
    empty: none."""
    missed_s: float = math.nan
    """That moment [s]; NaN where nothing was missed."""
    rehearsals: int = 0
    """Flights of other plans that did not complete the course: bolder ones before this one, or, where it did not either, calmer
    ones."""
    reserve: float = 0.0
    """Part of all thrust that its plans left unused for that, besides what they always leave."""


def fly_courses(
    race: Race,
    courses: Sequence[str],
    planner: Planner,
    *,
    seed: int = 0,
    advanced: Callable[[int], None] = lambda flights: None,
) -> tuple[CourseFlight, ...]:
    """Fly each course once, with the true state.

    Args:
        race: Nominal, with a vehicle; its courses are `airworthy.race.course_of`'s.
        courses: Names, each once.
        planner: Makes plans.
        seed: Of the spread of vehicles.
        advanced: Told whenever flights end, and how many.

    Raises:
        AirworthyError: No vehicle, no such course, or no plan to begin with.
    """
    batch = _Batch(race, courses, planner, seed)
    while not batch.over:
        before = int(np.sum(batch.judged.done))
        batch.advance()
        advanced(int(np.sum(batch.judged.done)) - before)
    return batch.flights()


class _Knowledge:
    """What is told of one course: where things stand nominally, and those that were near where they truly stand."""

    def __init__(self, nominal: Race, course: Race) -> None:
        self.course = course
        self._near = nominal.information.near_m if nominal.information.gates == "near" else math.inf
        # Where a layout is drawn, what is told is the layout; only the shifts within bounds are hidden.
        self.gates = list(nominal.gates if math.isfinite(self._near) else course.gates)
        self.posts = list(nominal.posts if math.isfinite(self._near) else course.posts)
        self._hidden_gates = set(range(len(self.gates))) if math.isfinite(self._near) else set()
        self._hidden_posts = set(range(len(self.posts))) if math.isfinite(self._near) else set()
        self._centers = [gate_shape(gate).center for gate in course.gates]

    @property
    def race(self) -> Race:
        """Where things are believed to be; a post that may stand elsewhere is thicker by a part of that."""
        thick = [max(post.bound.x, post.bound.y) * _UNSURE * (k in self._hidden_posts) for k, post in enumerate(self.posts)]
        posts = [replace(post, radius=post.radius + more) for post, more in zip(self.posts, thick, strict=True)]
        return replace(self.course, gates=tuple(self.gates), posts=tuple(posts))

    @property
    def unseen(self) -> frozenset[str]:
        return frozenset(self.gates[k].name for k in self._hidden_gates)

    def look(self, position: Array) -> bool:
        """Take in what is near; tell whether anything was new."""
        gates = [k for k in self._hidden_gates if np.hypot(*(self._centers[k] - position)[:2]) < self._near]
        posts = [k for k in self._hidden_posts if np.hypot(*(self.course.posts[k].position - position[:2])) < self._near]
        for k in gates:
            self.gates[k] = self.course.gates[k]
        for k in posts:
            self.posts[k] = self.course.posts[k]
        self._hidden_gates -= set(gates)
        self._hidden_posts -= set(posts)
        return bool(gates or posts)


class _Batch:
    """Everything of one batch."""

    def __init__(self, race: Race, courses: Sequence[str], planner: Planner, seed: int):
        self._courses, self._planner, count = tuple(courses), planner, len(courses)
        self._races = [course_of(race, name) for name in courses]
        self._tells_late = race.information.gates == "near"
        flown_by = race_vehicle(race)
        self._scenes = SceneBatch([race_scene(item) for item in self._races])
        spread = Randomization() if race.spread is None else Randomization(mass=race.spread.mass, inertia=race.spread.inertia)
        config = SimulatorConfig(
            level=RotorPlanPilot.level,
            physics_rate=PHYSICS_HZ,
            control_rate=COMMAND_HZ,
            contact=Contact("freeze"),
            randomization=spread,
        )
        ids = flight_ids_of(courses)
        inside = np.arange(count)
        self._sim = Simulator(
            flown_by, config, count, seed=seed, flight_ids=ids, geometry=self._scenes.geometry, geometry_env=inside
        )
        attitude = [from_euler(0.0, 0.0, math.radians(item.start.yaw_deg)) for item in self._races]
        self._sim.reset(position=[item.start.position for item in self._races], attitude=attitude)
        self._known = [_Knowledge(_told_layout(race, item), item) for item in self._races]
        state = self._state()
        for known, row in zip(self._known, state, strict=True):
            known.look(row[:3])
        first = [self._first(k, row) for k, row in enumerate(state)]
        self._first_durations = [plan.duration for plan in first]
        self._planned = [plan.gate_times for plan in first]
        self._pilot = RotorPlanPilot(first, flown_by)
        self._referee = Referee(tuple(self._races), physics_rate=PHYSICS_HZ)
        self.judged = self._referee.advance(self._referee.begin(), state[None, :, :3])
        self._step = 0
        self._counts, self._failures = np.ones(count, np.int64), np.zeros(count, np.int64)
        self._kept = FlightMeasures(count)
        self._due = np.zeros(count, bool)
        self._digests = [sha256() for _ in courses]
        self._path: list[Array] = []
        self._events: list[ArrayInt] = []
        self._measures: list[Measure] = []

    @property
    def over(self) -> bool:
        late = self._step / PHYSICS_HZ > self._races[0].limits.time_s + CLOSING_S
        return bool(np.all(self.judged.done)) or late

    def _first(self, flight: int, state: Array) -> RacePlan:
        plan = self._planner(Told(self._known[flight].race, state, 0, None, 0.0, self._known[flight].unseen))
        if plan is None:
            raise AirworthyError(f"No plan was found through the course {self._courses[flight]!r} to begin with.")
        return plan

    def _state(self) -> Array:
        names = ("position", "velocity", "attitude", "rate")
        return np.hstack([np.array(getattr(self._sim, name), np.float64) for name in names])

    def advance(self) -> None:
        """Fly a tenth of a second, and have it judged."""
        steps = round(PHYSICS_HZ / COMMAND_HZ)
        racing = self.judged.end == RaceEnd.RUNNING
        before = np.array(self._sim.position, np.float64)
        for _ in range(_JUDGED):
            time, state = self._step / PHYSICS_HZ, self._state()
            for flight in np.flatnonzero(racing):
                self._due[flight] |= self._known[flight].look(state[flight, :3]) | self._is_astray(int(flight))
                if self._due[flight]:
                    self._due[flight] = self._replan(int(flight), time, state[flight])
            command = self._pilot.command(time, state, np.array(self._sim.rotor_speed, np.float64))
            for flight in np.flatnonzero(racing):
                self._digests[flight].update(command[flight].tobytes())
            self._measures.append(Measure(self._step, np.linalg.norm(state[:, 3:6], axis=1), self._off_plan(time)))
            self._sim.set_command(command)
            for _ in range(steps):
                self._sim.advance(1)
                self._step += 1
                self._path.append(np.array(self._sim.position, np.float64))
                self._events.append(np.where(np.asarray(self._sim.contacts.count) > 0, int(RaceEnd.CONTACT), 0))
        path = np.stack(self._path)
        self.judged = self._referee.advance(self.judged, path, np.stack(self._events))
        # How a race ended is known behind the tenth of a second alone: what came after its end is no part of it.
        last = np.where(self.judged.end == RaceEnd.RUNNING, self._step, self.judged.end_step)
        self._kept.add(racing, last, self._measures, np.concatenate([before[None], path]), self._step - len(path))
        self._path, self._events, self._measures = [], [], []

    def _is_astray(self, flight: int) -> bool:
        return self._tells_late and bool(self._pilot.error[flight] > _ASTRAY)

    def _off_plan(self, time: float) -> Array:
        """Return the distance of each flight from its plan at the last command [m], 0 behind the plan's end."""
        clock = time - self._pilot.begun
        lasts = clock <= [plan.duration for plan in self._pilot.plans]
        return np.where(lasts, self._pilot.error, 0.0)

    def _replan(self, flight: int, time: float, state: Array) -> bool:
        """Plan anew; tell whether that is still to be done, as right before a gate, where nothing can be changed any more."""
        plan, clock = self._pilot.plans[flight], time - float(self._pilot.begun[flight])
        total = len(self._races[flight].passes)
        # What lies behind by the plan's own clock: it keeps to it within centimetres.
        left = plan.gate_times[plan.gate_times > clock]
        if not len(left):
            return False
        if left[0] - clock < _LATE:
            return True
        begin = plan.at([clock])[0][0]
        # On from the reference, with half of the present error (spec/race 5.4); far off it there is nothing to go on from.
        begin = state.copy() if self._is_astray(flight) else _halfway(begin, state)
        known = self._known[flight]
        found = self._planner(Told(known.race, begin, total - len(left), plan, clock, known.unseen))
        if found is None:
            self._failures[flight] += 1
            return False
        self._counts[flight] += 1
        self._pilot.exchange(flight, found, time)
        self._planned[flight] = np.concatenate([self._planned[flight][: total - len(left)], time + found.gate_times])
        return False

    def flights(self) -> tuple[CourseFlight, ...]:
        results = race_results(self._referee, self.judged)
        rows = []
        for k, result in enumerate(results):
            missed, due = self._missed(k, result)
            hit = self._scenes.instance_name(k, int(self._sim.contacts.instance[k])) if result.end == "contact" else ""
            rows.append(
                CourseFlight(
                    course=self._courses[k],
                    result=result,
                    part=hit,
                    commands_sha256=self._digests[k].hexdigest(),
                    speed_max=float(self._kept.speed[k]),
                    path_m=float(self._kept.length[k]),
                    planned_s=self._first_durations[k],
                    plans=int(self._counts[k]),
                    failures=int(self._failures[k]),
                    error_max=float(self._kept.error[k]),
                    missed=missed,
                    missed_s=due,
                )
            )
        return tuple(rows)

    def _missed(self, flight: int, result: RaceResult) -> tuple[str, float]:
        """Return the passage that a flight missed, and when it was planned [s]; empty and NaN where it missed none."""
        race, judged = self._races[flight], self.judged
        coming = int((judged.next_loose if race.test == "loose" else judged.next_strict)[flight])
        if result.completed or coming == len(race.passes):
            return "", math.nan
        due, ended = float(self._planned[flight][coming]), int(judged.end_step[flight]) / PHYSICS_HZ
        if ended < due + _OVERDUE_S:
            return "", math.nan
        name, back = race.passes[coming]
        return REVERSED * back + name, due


def _halfway(reference: Array, state: Array) -> Array:
    """Return a reference with half of the present error in place and velocity, (13,)."""
    begin = reference.copy()
    begin[:6] += 0.5 * (state[:6] - reference[:6])
    return begin


def _told_layout(nominal: Race, course: Race) -> Race:
    """Return the race as pilots are told it before the start: with a drawn layout, that of the course before its shifts."""
    if nominal.layout is None:
        return nominal
    from airworthy.race.drawn import placed

    assert course.layout is not None
    return placed(nominal, course.layout.seed, course.layout.index)
