"""The referee: which gates a flight passed, when, and how its race ended, from its position at every physics step.

Two tests. *Loose*, the one of the AlphaPilot qualifier (mit-aera/FlightGoggles 80b1a48, reporter): the position lies strictly
inside the axis-aligned box of the gate's corners, inflated by 0.1 m, and less than 0.3 m from the plane through corners 1, 2
and 3. It is asked for the next gate and all later ones; a later one that is passed leaves those between missed for ever, and a
passed gate is never asked again. So a pass backwards counts, one beside a diagonal gate, and the last gate up to 0.3 m before
its plane. *Strict* (ours): the segment from step to step crosses the opening, along the gate's direction, in the order of the
race, at an interpolated time; every other crossing is recorded and never counted.

The original polls at 1 kHz, physics runs at 960 Hz; here every physics step is tested. Where the boxes of two gates overlap,
the original goes on with a stale number and miscounts; here both are passed. Boxes of its own race never do, as a test says.
All functions are pure: a state goes in and a state comes out, the same however a flight is cut into pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from numbers import Real

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.race.crossing import crossings
from airworthy.race.gate_geometry import FLAT, CourseShapes, course_shapes
from airworthy.race.record import Race

INFLATION = 0.1
"""Of the loose test's box, on each side [m]; the original's."""
NEAR_PLANE = 0.3
"""Distance from the gate's plane that the loose test takes for a pass [m]; the original's."""
CLOSING_S = 0.3
"""How long a flight goes on behind the loose finish, so that the strict test can find its own [s]. Ours: the loose one comes
0.3 m early, which takes as long at 1 m/s."""
PHYSICS_HZ = 960.0
"""Steps per second of the original's dynamics."""
_RATE_MAX = 1e9
"""Beyond it no rate is one [Hz]."""
_BLOCK = 1 << 14
"""Samples that are tested at once, of all flights together: memory stays small, and no bit depends on it."""
_FAR = 1e6
"""A position beyond is none: the flight has diverged [m]. Ours, as far as products of coordinates stay finite."""
_IRREGULAR_MAX = 100
"""Crossings out of order that are kept of a flight; who hovers in a gate would make one each step. The rest is counted."""


class RaceEnd(IntEnum):
    """How a race ended; what comes from outside (`ArrayInt` of events) uses the same numbers."""

    RUNNING = 0
    FINISHED = 1
    TIME_LIMIT = 2
    CONTACT = 3
    ABORTED = 4
    PILOT_ERROR = 5
    BAD_COMMAND = 6
    OUT_OF_BOUNDS = 7
    DIVERGED = 8

    @property
    def outcome(self) -> str:
        """The same as an outcome of `airworthy.tasks`; empty while it runs."""
        return _OUTCOMES[self]


_OUTCOMES = {
    RaceEnd.RUNNING: "",
    RaceEnd.FINISHED: "success",
    RaceEnd.TIME_LIMIT: "timeout",
    RaceEnd.CONTACT: "collision",
    RaceEnd.ABORTED: "aborted",
    RaceEnd.PILOT_ERROR: "pilot_error",
    RaceEnd.BAD_COMMAND: "pilot_error",
    RaceEnd.OUT_OF_BOUNDS: "out_of_bounds",
    RaceEnd.DIVERGED: "diverged",
}
EVENTS = (RaceEnd.CONTACT, RaceEnd.ABORTED, RaceEnd.PILOT_ERROR, RaceEnd.BAD_COMMAND)
"""What the referee cannot see itself and is told, step by step."""


@dataclass(frozen=True)
class Irregular:
    """A crossing of an opening that did not count in the strict test."""

    flight: int
    time: float
    """[s]."""
    gate: str
    kind: str
    """"backwards": against the direction; "out of order": right in itself, but another gate was next; "again": behind it."""


@dataclass(frozen=True)
class RefereeState:
    """All that the referee knows of its flights; `flights` rows each."""

    step: int
    """Of the next sample; sample k was taken k / physics rate after arming."""
    position: Array
    """At the last sample [m], (flights, 3); NaN before the first."""
    next_loose: ArrayInt
    """Passage that comes next, (flights,)."""
    next_strict: ArrayInt
    """The same of the strict test."""
    loose_time: Array
    """When each passage was made [s], (flights, passages); NaN where it was not."""
    missed: ArrayBool
    """Passages that the loose test skipped, (flights, passages)."""
    strict_time: Array
    """As `loose_time`, of the strict test."""
    offset: Array
    """To the left and up from the opening's centre as flown, at the strict passage [m], (flights, passages, 2)."""
    end: ArrayInt
    """`RaceEnd` of each, (flights,)."""
    end_step: ArrayInt
    """Sample at which the race ended, (flights,)."""
    done: ArrayBool
    """Whether nothing more is looked at, (flights,): behind its end, and behind the 0.3 s that the strict test may close in."""
    after: ArrayInt
    """`RaceEnd` that came between the loose finish and the end of these 0.3 s; it changes no result."""
    irregular: tuple[Irregular, ...]
    irregular_count: ArrayInt
    """Of each flight, also those that are not kept, (flights,)."""

    @property
    def flying(self) -> ArrayBool:
        """Which flights go on, (flights,)."""
        return ~self.done


class Referee:
    """Judge of flights through courses of one race.

    Args:
        races: The course of each flight, alike but for where the gates stand; one for all.
        flights: How many; with one course.
        physics_rate: Samples per second [Hz].

    Raises:
        AirworthyError: Courses of several races, or as many as there are not flights.
    """

    def __init__(self, races: Race | Sequence[Race], flights: int | None = None, physics_rate: float = PHYSICS_HZ):
        courses = (races,) if isinstance(races, Race) else tuple(races) if isinstance(races, Sequence) else ()
        strange = next((item for item in courses if not isinstance(item, Race)), None if courses else races)
        if strange is not None:
            raise AirworthyError(f"A referee was asked for of {strange!r}; expected a race, or as many courses as flights.")
        self.flights = len(courses) if flights is None else flights
        if len(courses) not in (1, self.flights) or self.flights < 1:
            raise AirworthyError(f"{len(courses)} courses were given for {self.flights} flights: give one, or one for each.")
        # A number of Python or NumPy, and no truth value, which counts as one.
        number = isinstance(physics_rate, Real) and not isinstance(physics_rate, bool) and abs(physics_rate) < _RATE_MAX
        if not (number and physics_rate > 0.0):
            raise AirworthyError(f"A physics rate of {physics_rate!r} Hz arrived; expected a finite number above 0.")
        self.race, self.rate = courses[0], float(physics_rate)
        self.shapes: CourseShapes = course_shapes(courses)
        corners = self.shapes.corners
        self._low, self._high = corners.min(axis=2), corners.max(axis=2)
        # The original's plane goes through the first three corners as they are listed, whichever these are.
        normal = np.cross(corners[:, :, 1] - corners[:, :, 0], corners[:, :, 2] - corners[:, :, 0])
        self._plane = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
        # Where the strict test counts, the race is over when it says so: nothing is left to close.
        self._closing = math.ceil(CLOSING_S * self.rate) if self.race.test == "loose" else 0

    @property
    def passages(self) -> int:
        """How many passages the race has, all laps together."""
        return len(self.shapes.gate)

    def begin(self) -> RefereeState:
        """Return the state before the first sample, which is the one at arming, t = 0."""
        n, p = self.flights, self.passages
        return RefereeState(
            step=0,
            position=np.full((n, 3), np.nan),
            next_loose=np.zeros(n, np.int64),
            next_strict=np.zeros(n, np.int64),
            loose_time=np.full((n, p), np.nan),
            missed=np.zeros((n, p), bool),
            strict_time=np.full((n, p), np.nan),
            offset=np.full((n, p, 2), np.nan),
            end=np.zeros(n, np.int64),
            end_step=np.zeros(n, np.int64),
            done=np.zeros(n, bool),
            after=np.zeros(n, np.int64),
            irregular=(),
            irregular_count=np.zeros(n, np.int64),
        )

    def advance(self, state: RefereeState, position: ArrayLike, events: ArrayLike | None = None) -> RefereeState:
        """Return the state after more samples; what a flight does behind its end is not looked at.

        Args:
            state: From `begin` or an earlier call.
            position: Of the vehicles' centres at each physics step [m], (steps, flights, 3); the first ever is that at arming.
            events: What happened in the step that ends in each sample, `RaceEnd` among `EVENTS` or 0, (steps, flights).

        Raises:
            AirworthyError: Shapes that do not fit, or a number that is no event.
        """
        if not isinstance(state, RefereeState):
            raise AirworthyError(f"A referee's state is {type(state).__name__}; expected what `begin` or `advance` gave.")
        try:
            given = np.asarray(position)
        except ValueError as error:
            raise AirworthyError(f"Positions are of uneven lengths; expected (steps, {self.flights}, 3).") from error
        if given.dtype.kind not in "fiu":
            raise AirworthyError(f"Positions are of {given.dtype}; expected numbers in metres, (steps, {self.flights}, 3).")
        path = given.astype(np.float64)
        if path.ndim != 3 or path.shape[1:] != (self.flights, 3):
            raise AirworthyError(f"Positions have shape {path.shape}; expected (steps, {self.flights}, 3).")
        told = np.zeros(path.shape[:2], np.int64) if events is None else np.asarray(events)
        if told.shape != path.shape[:2] or told.dtype.kind not in "iu":
            raise AirworthyError(f"Events have shape {told.shape}; expected whole numbers, {path.shape[:2]}.")
        strange = told[~np.isin(told, (0, *EVENTS))]
        if strange.size:
            raise AirworthyError(f"Events hold {int(strange[0])}; expected 0 or one of {[int(event) for event in EVENTS]}.")
        # NaN stands for every position that is none: it fails each comparison below without a warning.
        path = np.where(np.all(np.abs(path) < _FAR, axis=-1, keepdims=True), path, np.nan)
        steps = max(1, _BLOCK // self.flights)
        for at in range(0, len(path), steps):
            state = self._block(state, path[at : at + steps], told[at : at + steps])
        return state

    def judge(self, position: ArrayLike, events: ArrayLike | None = None) -> RefereeState:
        """Return the state after whole flights; arguments as `advance`."""
        return self.advance(self.begin(), position, events)

    # ---- One block of steps -------------------------------------------------------------------------------------------------

    def _block(self, state: RefereeState, path: Array, told: ArrayInt) -> RefereeState:
        own = _Changed(state)
        # With the last sample of the block before: the step between blocks is a step as any.
        joined = np.concatenate([state.position[None], path])
        loose = self._loose_inside(path) if self.race.test == "loose" else None
        found = self._strict_crossings(joined)
        stops = self._stops(path, told, state.step)
        for flight in np.flatnonzero(~state.done):
            mine = [item for item in found if item.flight == flight]
            first = _first_steps(loose[:, flight], int(state.next_loose[flight])) if loose is not None else []
            stopped = _first_stops(stops[:, flight])
            # Most blocks of most flights hold nothing. A finished flight is looked at for its 0.3 s to end.
            if mine or first or stopped or state.end[flight]:
                self._walk(own, int(flight), mine, first, stopped, len(path))
        return own.state(state, path)

    def _loose_inside(self, path: Array) -> ArrayBool:
        """Whether the loose test holds, (steps, flights, passages)."""
        point = path[:, :, None, :]
        box = np.all((point > self._low - INFLATION) & (point < self._high + INFLATION), axis=-1)
        # The plane is asked of the few that are in a box.
        steps, flights, gates = np.nonzero(box)
        course = self._course(flights)
        away = path[steps, flights] - self.shapes.corners[course, gates, 0]
        box[steps, flights, gates] = np.abs(np.sum(away * self._plane[course, gates], axis=-1)) < NEAR_PLANE
        return np.asarray(box[:, :, self.shapes.gate])

    def _strict_crossings(self, joined: Array) -> list[_Met]:
        """Return crossings of openings in order of time."""
        before, after = joined[:-1, :, None, :], joined[1:, :, None, :]
        # Corners lie up to FLAT off the mean plane, so a step that could meet the opening has ends on both sides of this slab.
        near = 2.0 * FLAT
        one, other = (np.sum((point - self.shapes.center) * self.shapes.normal, axis=-1) for point in (before, after))
        maybe = (np.minimum(one, other) <= near) & (np.maximum(one, other) >= -near)
        steps, flights, gates = np.nonzero(maybe)
        course = self._course(flights)
        start, end = joined[steps, flights], joined[steps + 1, flights]
        low, high = self._low[course, gates] - near, self._high[course, gates] + near
        met = np.all((np.minimum(start, end) <= high) & (np.maximum(start, end) >= low), axis=-1)
        steps, flights, gates, course = steps[met], flights[met], gates[met], course[met]
        start, end = start[met], end[met]
        way, share = crossings(start, end, self.shapes.ring[course, gates])
        point = start + share[:, None] * (end - start) - self.shapes.center[course, gates]
        axes = self.shapes.left[course, gates], self.shapes.up[course, gates]
        across = np.stack([np.sum(point * axis, axis=-1) for axis in axes], axis=-1)
        # Two gates in one step are met in the order of the way; stacked ones that share an edge, in that of the file.
        rows = np.flatnonzero(way)
        order = rows[np.lexsort((gates[rows], share[rows], steps[rows]))]
        return [_Met(int(steps[k]), int(flights[k]), float(share[k]), int(gates[k]), int(way[k]), across[k]) for k in order]

    def _course(self, flights: ArrayInt) -> ArrayInt:
        """Return the number of each flight's course."""
        return flights if len(self._low) > 1 else np.zeros_like(flights)

    def _stops(self, path: Array, told: ArrayInt, step: int) -> ArrayInt:
        """`RaceEnd` of what ends a flight at each step other than its last gate, 0 where nothing does, (steps, flights)."""
        # What was told goes before what is seen: a contact that threw the vehicle out of bounds was a contact.
        stops = np.where(told != 0, told, 0)
        lower, upper = self.race.limits.lower, self.race.limits.upper
        if lower is not None and upper is not None:
            outside = np.any((path < lower) | (path > upper), axis=-1)
            stops = np.where((stops == 0) & outside, RaceEnd.OUT_OF_BOUNDS, stops)
        stops = np.where((stops == 0) & np.isnan(path[:, :, 0]), RaceEnd.DIVERGED, stops)
        # Steps over rate, never a sum: 288,000 times 1/960 s add up to 300.0000000009 s and hang on where one begins.
        late = (step + np.arange(len(path))) / self.rate >= self.race.limits.time_s
        return np.where((stops == 0) & late[:, None], RaceEnd.TIME_LIMIT, stops)

    def _walk(
        self,
        own: _Changed,
        flight: int,
        found: list[_Met],
        first: list[tuple[int, int]],
        stops: list[tuple[int, int]],
        steps: int,
    ) -> None:
        """Go through what happened to one flight in a block, in order of time.

        What stops a flight happened within the step, a time limit at its end: in one step the former comes before crossings,
        the latter behind them. So who touches a gate and passes it in one step has touched it.
        """
        # Kinds are the order within one step: what stops a flight, crossings by their share, the loose test, the time limit.
        items = [(met.step, 1, met.share, k) for k, met in enumerate(found)]
        items += [(at, 2, 0.0, passage) for at, passage in first]
        items += [(at, 3 if end == RaceEnd.TIME_LIMIT else 0, 0.0, end) for at, end in stops]
        for at, kind, _, number in sorted(items):
            if self._closed(own, flight, own.step + at - 1):
                return
            if kind == 1:
                self._strict(own, flight, found[number], own.step + at)
            elif kind == 2:
                self._loose(own, flight, number, own.step + at)
            elif own.end[flight] == RaceEnd.RUNNING:
                own.finish(flight, number, own.step + at, done=True)
            elif number != RaceEnd.TIME_LIMIT:  # the clock stands still behind the finish
                own.after[flight], own.done[flight] = number, True
            if own.done[flight]:
                return
        self._closed(own, flight, own.step + steps - 1)

    def _closed(self, own: _Changed, flight: int, step: int) -> bool:
        """Tell whether the strict test's time behind the loose finish is over with a step's sample."""
        if own.end[flight] == RaceEnd.FINISHED and step - own.end_step[flight] >= self._closing:
            own.done[flight] = True
        return bool(own.done[flight])

    def _loose(self, own: _Changed, flight: int, passage: int, step: int) -> None:
        if own.end[flight] != RaceEnd.RUNNING or passage < own.next_loose[flight]:
            return
        if step / self.rate > self.race.limits.time_s:
            return
        own.loose_time[flight, passage] = step / self.rate
        # For ever: what is behind is never asked again, so who turns back for a gate gains nothing.
        own.missed[flight, own.next_loose[flight] : passage] = True
        own.next_loose[flight] = passage + 1
        if passage == self.passages - 1:
            own.finish(flight, RaceEnd.FINISHED, step, done=own.next_strict[flight] == self.passages)

    def _strict(self, own: _Changed, flight: int, met: _Met, step: int) -> None:
        time, gate, way = (step - 1 + met.share) / self.rate, met.gate, met.way
        # Behind the loose finish the clock stands still: there the strict test may close later than the limit.
        if own.end[flight] == RaceEnd.RUNNING and time > self.race.limits.time_s:
            return
        wanted = int(own.next_strict[flight])
        if wanted < self.passages and gate == self.shapes.gate[wanted] and way == self.shapes.way[wanted]:
            own.strict_time[flight, wanted] = time
            # Left of who flies in reverse is the right of the gate's own direction.
            own.offset[flight, wanted] = met.across * [way, 1.0]
            own.next_strict[flight] = wanted + 1
            if wanted == self.passages - 1:
                if self.race.test == "strict":
                    own.finish(flight, RaceEnd.FINISHED, step, done=True)
                elif own.end[flight] == RaceEnd.FINISHED:
                    own.done[flight] = True
            return
        # The order is strict: out of it a crossing counts nothing, and moves nothing on.
        own.irregular_count[flight] += 1
        if own.irregular_count[flight] <= _IRREGULAR_MAX:
            own.irregular.append(Irregular(flight, time, self.shapes.names[gate], self._kind(wanted, gate, way)))

    def _kind(self, wanted: int, gate: int, way: int) -> str:
        through = self.shapes.gate == gate
        if not np.any(self.shapes.way[through] == way):
            return "backwards"
        # On several laps a gate may be both behind and still to come; then it came too early.
        later = np.flatnonzero(through & (self.shapes.way == way))
        return "out of order" if later[-1] >= wanted else "again"


@dataclass(frozen=True)
class _Met:
    """A crossing of an opening in a block."""

    step: int
    """In the block."""
    flight: int
    share: float
    """Part of the step flown then."""
    gate: int
    way: int
    """1 along the gate's direction, -1 against it."""
    across: Array
    """To the left and up from the centre [m]."""


def _first_steps(inside: ArrayBool, coming: int) -> list[tuple[int, int]]:
    """First step at which the loose test holds, and the passage, of those that are still to be made; (steps, passages) in."""
    passages = np.flatnonzero(inside.any(axis=0))
    return [(int(np.argmax(inside[:, k])), int(k)) for k in passages if k >= coming]


def _first_stops(stops: ArrayInt) -> list[tuple[int, int]]:
    """First step of one flight at which something stops it, and what; the time limit apart, for a finished flight passes it."""
    found = (np.flatnonzero((stops != 0) & (stops != RaceEnd.TIME_LIMIT)), np.flatnonzero(stops == RaceEnd.TIME_LIMIT))
    return [(int(steps[0]), int(stops[steps[0]])) for steps in found if len(steps)]


class _Changed:
    """Copies of a state's arrays that one block writes into."""

    def __init__(self, state: RefereeState):
        self.step = state.step
        self.next_loose, self.next_strict = state.next_loose.copy(), state.next_strict.copy()
        self.loose_time, self.missed = state.loose_time.copy(), state.missed.copy()
        self.strict_time, self.offset = state.strict_time.copy(), state.offset.copy()
        self.end, self.end_step = state.end.copy(), state.end_step.copy()
        self.done, self.after = state.done.copy(), state.after.copy()
        self.irregular, self.irregular_count = list(state.irregular), state.irregular_count.copy()

    def finish(self, flight: int, end: int, step: int, done: bool) -> None:
        """Write how a race ended."""
        self.end[flight], self.end_step[flight], self.done[flight] = end, step, done

    def state(self, before: RefereeState, path: Array) -> RefereeState:
        """Return the state after the block."""
        arrays = {name: value for name, value in vars(self).items() if name not in ("step", "irregular")}
        last = path[-1].copy()
        # In one order, however the flights were cut into blocks.
        told = tuple(sorted(self.irregular, key=lambda item: (item.flight, item.time)))
        return replace(before, **arrays, step=before.step + len(path), position=last, irregular=told)
