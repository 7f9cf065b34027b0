"""Flights that make a log tell a vehicle: steps of thrust, doublets of roll and pitch, steps of yaw, fast straight lines.

All are made of one pulse: a value goes up, twice as long down, and up again, so that its integral comes back, and of an
acceleration the place, too. Between levels it moves as softly as a polynomial of degree 5 from rest to rest does. How high the
level is and how fast it is reached is sized for the vehicle: the commands of its rotors, lag included, keep to a share of what
lies between hover and their ends, and all stays in a box.

Every kind is flown twice, as in a mirror: lines, yaw, doublets, collective, and back. What is fitted to a flight is its first
two thirds, and what judges the fit its last one: both then show all of the vehicle (`identification.gathering.split`).

Source of parts, lengths and sizes: spec/identify section 4 (30 s of collective steps of +-15 %, 30 s of roll and pitch
doublets, 20 s of yaw steps of +-60 deg/s at 1 Hz, 20 s of fast straight lines).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import Bound, check_fields
from airworthy.trajectories.course_file import Course
from airworthy.trajectories.min_snap import COEFFICIENTS, Keyframe, minimum_snap
from airworthy.trajectories.polynomial import REST_PEAK_ACCELERATION
from airworthy.trajectories.tracked import RotorBound, rotor_shares, tracked_samples
from airworthy.trajectories.trajectory import FlatSample, Trajectory
from airworthy.vehicles import Vehicle, hover_trim
from airworthy.vehicles.check import rotor_thrust

PARTS = {
    "collective": ("steps of thrust up and down", "thrust over command, lag, dead time"),
    "doublets": ("doublets of roll and pitch", "inertia xx and yy, centre of mass, lever of the IMU"),
    "yaw": ("steps of the yaw rate", "torque over inertia zz"),
    "lines": ("fast straight lines forth and back", "drag, tilt of the IMU"),
}
"""Parts of a plan: what is flown, and what it tells."""
SECONDS = {"collective": 30.0, "doublets": 30.0, "yaw": 20.0, "lines": 20.0}

FIRST_SHARE = 0.6
"""Ours: of each kind but the one in the middle, flown before that. Two thirds of a flight, less a guard of 5 s or a tenth, end
in the middle one then, with ways between parts counted."""
MIRRORED = 0.3
"""Ours: length under which each kind is flown once, in order: halves of it would be single pulses, which tell too little."""
_COLLECTIVE = 0.15
"""Step of the thrust over hover's."""
_TILT, _TILT_FAST = np.radians(15.0), np.radians(25.0)
"""Ours: of doublets and of lines [rad]; far below where thrust has to grow by a tenth more."""
_YAW_RATE = np.radians(60.0)
HEADROOM = 0.6
"""Ours: share of what lies between hover and the ends of a rotor's commands that the plan takes; feedback, noise and drag have
the rest."""
_RAMPS = {"collective": (0.06, 0.4), "doublets": (0.06, 1.2), "yaw": (0.06, 2.0), "lines": (0.25, 1.2)}
"""Ours: shortest and longest way between two levels [s]: faster ones would only shake the frame, slower ones tell no lag."""
_RAMP_LAGS = 1.0
"""A way takes at least so many time constants of the rotors."""
_WEAKEST = 0.25
"""Least share of the wanted size that is flown; below it a part would tell nothing."""
_HOLDS = (0.5, 1.5, 3.0)
"""Ours: how long levels are kept, in ways between them: steps of several lengths tell lag and dead time apart."""
_MARGIN = 0.85
"""Share of the box that the plan takes: flights overshoot."""
_SHORTEST = 5e-3
"""Levels are kept for so long, or not at all [s]."""
_REST = 1.0
"""Hover before, between and after parts [s]."""
_TRANSFER = (1.5, 1.5)
"""Shortest way to another place [s], and the largest acceleration there [m/s^2]; ours."""
_TRANSFER_TRIALS = 16
_STEP = 1.0 / 500.0
_SEVENTH = 1.0 / 7.0
"""Integral of the integral of 10 s^3 - 15 s^4 + 6 s^5 from 0 to 1."""
_TOP = 27.0 / 32.0
"""What a way from rest to a level, and the half of one to its opposite, add to the integral, in ways at the level."""


@dataclass(frozen=True)
class ExcitationConfig:
    """Where to fly, and what."""

    box: Annotated[tuple[float, float, float], Bound(0.2, 1000.0, "m")] = (4.0, 4.0, 2.0)
    """Room along x, y and z [m]; x and y are about the start."""
    height: Annotated[float, Bound(0.0, 1000.0, "m")] = 1.0
    """Of the lower end of the box [m]: two rotor diameters and more, or the ground pushes."""
    speed: Annotated[float, Bound(0.1, 100.0, "m/s")] = 5.0
    """Most that lines are flown at [m/s]; the box may leave less."""
    parts: tuple[str, ...] = tuple(PARTS)
    """Which: collective, doublets, yaw, lines. The first is flown in the middle, the others before and after it."""
    length: Annotated[float, Bound(0.05, 10.0)] = 1.0
    """Share of the usual length of parts, 30, 30, 20 and 20 s."""

    def __post_init__(self) -> None:
        check_fields(self, "ExcitationConfig.")
        for name in self.parts:
            if name not in PARTS:
                raise unknown_name("part of an excitation flight", name, PARTS)
        if not self.parts or len(set(self.parts)) != len(self.parts):
            raise AirworthyError(f"Parts are {', '.join(self.parts) or 'none'}; expected one or more, each once.")


@dataclass(frozen=True)
class ExcitationPart:
    """One part of a plan, as it is flown; sizes are of the reference, which a good controller follows."""

    name: str
    start: float
    """[s]"""
    stop: float
    """[s]"""
    size: float
    """Thrust over hover's [-], tilt [rad], yaw rate [rad/s], tilt [rad]."""
    wanted: float
    """The size that the specification asks for; less was flown where the rotors have no room for it."""
    ramp: float
    """Time between two levels [s]."""
    speed: float
    """Largest [m/s]."""
    rate: float
    """Largest body rate [rad/s]."""
    reach: float
    """Largest distance from where it begins [m]."""
    rotor_use: float
    """Largest share of what lies between hover and the ends of a rotor's commands."""

    @property
    def flown(self) -> str:
        """What is flown."""
        return PARTS[self.name][0]

    @property
    def tells(self) -> str:
        """What it tells of the vehicle."""
        return PARTS[self.name][1]


@dataclass(frozen=True)
class ExcitationPlan:
    """Excitation flights of one vehicle."""

    vehicle: str
    course: Course
    """Of keyframes: `airworthy fly --course`, `aw.fly(course=...)`."""
    parts: tuple[ExcitationPart, ...]
    lowest: tuple[float, float, float]
    """[m]"""
    highest: tuple[float, float, float]
    """[m]"""
    advice: tuple[str, ...] = ()
    """What this vehicle or this box cannot have, a sentence each."""

    @property
    def duration(self) -> float:
        """[s]"""
        return self.course.keyframes[-1].time


# ---- Pulses as keyframes -----------------------------------------------------------------------------------------------------


@dataclass
class _Path:
    """Keyframes so far: where the reference is, and all that it passed."""

    time: float = 0.0
    place: Array = field(default_factory=lambda: np.zeros(3))
    velocity: Array = field(default_factory=lambda: np.zeros(3))
    push: Array = field(default_factory=lambda: np.zeros(3))
    yaw: float = 0.0
    turning: float = 0.0
    begun: float = 0.0
    """When the part that is being made began, at its place [s]."""
    frames: list[Keyframe] = field(default_factory=list)

    def mark(self, name: str = "") -> None:
        """Keep where it is as a keyframe."""
        rows = zip(self.place, self.velocity, self.push, strict=True)
        x, y, z = ((float(place), float(velocity), float(push), 0.0) for place, velocity, push in rows)
        yaw = (float(self.yaw), float(self.turning), 0.0, 0.0)
        self.frames.append(Keyframe(float(self.time), x, y, z, yaw, name))

    def move(self, span: float, push: Array | None = None, turning: float | None = None) -> None:
        """Go on for a time, to another acceleration or yaw rate where one is given: softly, or at once where there is none."""
        after = self.push if push is None else push
        self.place = self.place + self.velocity * span + span**2 * ((0.5 - _SEVENTH) * self.push + _SEVENTH * after)
        self.velocity = self.velocity + 0.5 * span * (self.push + after)
        self.push = after
        rate = self.turning if turning is None else turning
        self.yaw += 0.5 * span * (self.turning + rate)
        self.turning = rate
        self.time += span
        self.mark()

    def rest(self, span: float) -> None:
        """Hover; what rounding left of velocities is taken away."""
        self.velocity, self.push, self.turning = np.zeros(3), np.zeros(3), 0.0
        if span > 0.0:
            self.time += span
            self.mark()

    def transfer(self, place: Array, rotors: _Rotors) -> None:
        """Fly to a place from rest to rest, as slowly as the rotors want it."""
        way = place - self.place
        if np.linalg.norm(way) < 1e-9:
            return
        span = max(_TRANSFER[0], float(np.sqrt(REST_PEAK_ACCELERATION * np.linalg.norm(way) / _TRANSFER[1])))
        for _ in range(_TRANSFER_TRIALS):
            trial = _Path(place=self.place)
            trial.mark()
            trial.rest(_REST)
            trial.shift(way, span)
            if rotors.use(minimum_snap(trial.frames)) <= HEADROOM:
                break
            span *= 1.2
        self.shift(way, span)
        self.place = place
        self.rest(_SHORTEST)

    def shift(self, way: Array, span: float) -> None:
        """Move by a way within a time: speed up, brake, stand."""
        ramp = span / 3.0
        unit = _Path()
        for value in (1.0, -1.0, 0.0):
            unit.move(ramp, np.array([value, 0.0, 0.0]))
        push = way / unit.place[0]
        for value in (1.0, -1.0, 0.0):
            self.move(ramp, value * push)


def _pulse(path: _Path, level: Array | float, ramp: float, hold: float) -> None:
    """Keep a level for a while, its opposite for twice as long, and it again: the integral comes back to what it was."""

    def to(value: Array | float, span: float) -> None:
        if isinstance(value, float):
            path.move(span, turning=value)
        else:
            path.move(span, value)

    for value, kept in ((level, hold), (-level, 2.0 * hold + ramp), (level, hold)):
        to(value, ramp)
        if kept > 0.0:
            path.move(kept)
    to(0.0 * level, ramp)


def _pulse_time(ramp: float, hold: float) -> float:
    return 5.0 * ramp + 4.0 * hold


def _reach(level: float, ramp: float, hold: float) -> float:
    """How far a pulse of acceleration goes [m]."""
    path = _Path()
    for value, span in ((level, ramp), (level, hold), (-level, ramp), (-level, hold + 0.5 * ramp)):
        path.move(span, np.array([value, 0.0, 0.0]))
    return float(path.place[0])


# ---- What the rotors are asked for -------------------------------------------------------------------------------------------


class _Rotors:
    """Commands that a vehicle's rotors need for a reference.

    Args:
        vehicle: One that hovers.
    """

    def __init__(self, vehicle: Vehicle) -> None:
        self.vehicle = vehicle
        self.bound = RotorBound.of(vehicle)
        self.states = [np.linspace(r.speed_min, r.speed_max, 401) for r in vehicle.rotors]
        self.thrusts = [np.array([rotor_thrust(r, w) for w in s]) for r, s in zip(vehicle.rotors, self.states, strict=True)]
        self.lag = max(1.0 / (r.response.rise[0] + r.response.rise[1] * r.speed_max) for r in vehicle.rotors)

    def _state(self, rotor: int, thrust: Array) -> Array:
        order = np.argsort(self.thrusts[rotor])
        return np.interp(thrust, self.thrusts[rotor][order], self.states[rotor][order])

    def use(self, trajectory: Trajectory, start: float = 0.0, stop: float = np.inf) -> float:
        """Return the largest share of what lies between hover and an end of the commands that any rotor needs.

        Args:
            trajectory: The reference.
            start: Of the part that counts [s].
            stop: [s]
        """
        time = np.arange(start, min(stop, trajectory.duration), _STEP)
        shares = rotor_shares(tracked_samples(trajectory.sample(time), self.vehicle.gravity), (self.bound,))
        still = rotor_shares(tracked_samples(_hover(), self.vehicle.gravity), (self.bound,))
        worst = 0.0
        for k, (rotor, largest) in enumerate(zip(self.vehicle.rotors, self.bound.thrust_max, strict=True)):
            thrust = np.asarray(shares[k]) * largest
            if np.any(~np.isfinite(thrust)) or thrust.max() > self.thrusts[k].max() or thrust.min() < self.thrusts[k].min():
                return np.inf
            state = self._state(k, thrust)
            speed = np.gradient(state, _STEP)
            a, b = (np.where(speed > 0.0, up, down) for up, down in zip(rotor.response.rise, rotor.response.fall, strict=True))
            # The command that makes a rotor follow: ahead of its state by what it lags (`RotorResponse`, c near w).
            command = state + speed / (a + 2.0 * b * np.abs(state))
            hover = float(self._state(k, np.asarray(still[k]) * largest))
            over = (command.max() - hover) / max(rotor.speed_max - hover, 1e-9)
            under = (hover - command.min()) / max(hover - rotor.speed_min, 1e-9)
            worst = max(worst, float(over), float(under))
        return worst


def _hover() -> FlatSample:
    zero, flat = np.zeros(3), np.zeros(())
    return FlatSample(zero, zero, zero, zero, zero, flat, flat, flat)


# ---- Sizes -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Size:
    """Of the pulses of one part."""

    level: float
    """Acceleration [m/s^2] or yaw rate [rad/s]."""
    ramp: float
    hold_max: float
    """Longest that a level is kept [s]."""


_SHARES = np.geomspace(1.0, _WEAKEST, 10)


def _sized(
    rotors: _Rotors, name: str, wanted: float, probes: Sequence[Array], room: Callable[[float, float], float]
) -> _Size | None:
    """Return the largest level, and the fastest way to it, that rotors and room allow; None where there is none.

    Args:
        rotors: Of the vehicle.
        name: Of the part.
        wanted: Level.
        probes: Directions that a pulse may have, of an acceleration (3,); of the yaw rate an empty one.
        room: Longest that a level may be kept for a level and a ramp [s]; below 0: none fits.
    """
    fastest, slowest = _RAMPS[name]
    fastest = max(fastest, _RAMP_LAGS * rotors.lag)
    ramps = np.geomspace(fastest, max(slowest, fastest), 14)
    for share in _SHARES:
        level = share * wanted
        for ramp in ramps:
            hold = room(level, ramp)
            if hold < 0.0:
                break
            short = min(hold, 0.5 * ramp)
            if all(rotors.use(_probe(level * d if d.size else float(level), ramp, short)) <= HEADROOM for d in probes):
                return _Size(float(level), float(ramp), float(hold))
    return None


def _probe(level: Array | float, ramp: float, hold: float) -> Trajectory:
    path = _Path()
    path.mark()
    for value in (level, -level):
        _pulse(path, value, ramp, hold)
    return minimum_snap(path.frames)


def _hold_in(room: float, speed: float = np.inf) -> Callable[[float, float], float]:
    """Longest hold of an acceleration whose pulse stays within a room [m] and a speed [m/s]."""

    def hold(level: float, ramp: float) -> float:
        if _reach(level, ramp, 0.0) > room or level * _TOP * ramp > speed:
            return -1.0
        low, high = 0.0, 1.0
        while _reach(level, ramp, high) < room and high < 100.0:
            high *= 2.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if _reach(level, ramp, middle) <= room else (low, middle)
        # A piece of no length has no polynomial.
        kept = min(low, speed / level - _TOP * ramp)
        return kept if kept >= _SHORTEST else 0.0

    return hold


# ---- Parts -------------------------------------------------------------------------------------------------------------------

_X, _Y, _Z = np.eye(3)


def _pulses(
    path: _Path, levels: Sequence[Array | float], ramp: float, holds: Sequence[float], seconds: float, least: int = 2
) -> None:
    """Pulses of levels and holds in turn, each level also the other way round, until the time is over; at least some."""
    path.begun = path.time
    end = path.time + seconds
    signed: Iterator[Array | float] = cycle([sign * level for level in levels for sign in (1.0, -1.0)])
    # Holds go on after each pair: every level is flown with each of them.
    turns = islice(((level, holds[(k // 2) % len(holds)]) for k, level in enumerate(signed)), 10_000)
    for count, (level, hold) in enumerate(turns):
        if count >= least and path.time + _pulse_time(ramp, hold) > end:
            break
        _pulse(path, level, ramp, hold)
    path.rest(max(end - path.time, 0.0))


def _holds(size: _Size) -> list[float]:
    return sorted({round(min(share * size.ramp, size.hold_max), 6) for share in _HOLDS})


@dataclass(frozen=True)
class _Kind:
    """One kind of a part, sized."""

    name: str
    size: _Size
    wanted: float
    """Level."""


def _size_of(name: str, rotors: _Rotors, config: ExcitationConfig) -> tuple[_Size | None, float]:
    """Return the size of a kind of part, None where there is no room for it, and the level that is wanted."""
    gravity = rotors.vehicle.gravity
    if name == "collective":
        wanted = _COLLECTIVE * gravity
        return _sized(rotors, name, wanted, (_Z,), _hold_in(0.5 * _MARGIN * config.box[2])), wanted
    if name == "yaw":
        # 1 Hz where the rotors are strong enough: the long level takes half a second, ways included.
        wanted = float(_YAW_RATE)
        return _sized(rotors, name, wanted, (np.zeros(0),), lambda level, ramp: max(0.25 - 0.5 * ramp, 0.1 * ramp)), wanted
    # Along x and y, one by one: across, the law would turn the heading, too, which is what rotors do worst.
    if name == "doublets":
        wanted = float(np.tan(_TILT)) * gravity
        return _sized(rotors, name, wanted, (_X, _Y), _hold_in(0.5 * _MARGIN * min(config.box[:2]))), wanted
    wanted = float(np.tan(_TILT_FAST)) * gravity
    return _sized(rotors, name, wanted, (_X, _Y), _hold_in(_MARGIN * min(config.box[:2]), config.speed)), wanted


def _fly(kind: _Kind, path: _Path, rotors: _Rotors, config: ExcitationConfig, center: Array, share: float) -> None:
    """Fly a share of a kind of part."""
    size, seconds = kind.size, share * config.length * SECONDS[kind.name]
    if kind.name == "lines":
        # The way to another axis takes as long as its lines do: what judges has those along x.
        return _lines(size, path, rotors, config, center, seconds, (_X, _Y) if share >= FIRST_SHARE else (_X,))
    path.transfer(center, rotors)
    if kind.name == "collective":
        # Half a second is what a pilot's hand does; longer ones rise further.
        holds = sorted({min(h, size.hold_max) for h in (size.ramp, 0.3, 0.6)})
        _pulses(path, [size.level * _Z], size.ramp, holds, seconds)
    elif kind.name == "doublets":
        _pulses(path, [size.level * _X, size.level * _Y], size.ramp, _holds(size), seconds)
    else:
        # A weak one takes long, and a single pulse turns both ways.
        level, least = (size.level, 2) if share == 1.0 else (size.level if share >= FIRST_SHARE else -size.level, 1)
        _pulses(path, [level], size.ramp, [size.hold_max], seconds, least)
    return None


def _lines(
    size: _Size, path: _Path, rotors: _Rotors, config: ExcitationConfig, center: Array, seconds: float, axes: Sequence[Array]
) -> None:
    for axis in axes:
        hold = _hold_in(_MARGIN * float(axis[:2] @ np.array(config.box[:2])), config.speed)(size.level, size.ramp)
        # A pulse goes forth and back: it begins at one end.
        path.transfer(center - 0.5 * _reach(size.level, size.ramp, hold) * axis, rotors)
        path.begun = path.begun or path.time
        end = path.time + 0.5 * seconds
        while path.time + 0.5 * _pulse_time(size.ramp, hold) < end:
            _pulse(path, size.level * axis, size.ramp, hold)
        path.rest(max(end - path.time, _REST))


def _in_turn(kinds: Sequence[_Kind], length: float) -> list[tuple[_Kind, float]]:
    """Return kinds in the order in which they are flown, and which share of each: as in a mirror, the first one whole between.

    Two thirds of a flight are fitted, less a guard behind them, which then falls into the middle one.
    """
    if length < MIRRORED:
        return [(kind, 1.0) for kind in kinds]
    before = [(kind, FIRST_SHARE) for kind in reversed(kinds[1:])]
    return [*before, (kinds[0], 1.0), *((kind, 1.0 - FIRST_SHARE) for kind in kinds[1:])]


_LACKS = {
    "collective": "thrust over command shows at hover only",
    "doublets": "inertia about x and y does not show",
    "yaw": "torque over inertia about z does not show",
    "lines": "drag does not show",
}


def excitation_plan(vehicle: Vehicle, config: ExcitationConfig | None = None) -> ExcitationPlan:
    """Return excitation flights that fit a vehicle, as a course that its pilots fly and its log then tells it by.

    Args:
        vehicle: A rigid one that hovers.
        config: Where and what; None: all parts in a box of 4 x 4 x 2 m.

    Raises:
        AirworthyError: The vehicle cannot hover or has joints, or its rotors or the box have room for no part.
    """
    config = config or ExcitationConfig()
    trim = hover_trim(vehicle)
    if not trim.hovers:
        raise AirworthyError(f"{vehicle.name} cannot hover, and no flight can be planned for it: {trim.reason}.")
    rotors = _Rotors(vehicle)
    center = np.array([0.0, 0.0, config.height + 0.5 * config.box[2]])
    path = _Path(place=center)
    path.mark()
    path.rest(_REST)
    kinds, advice = list[_Kind](), list[str]()
    for name in config.parts:
        size, wanted = _size_of(name, rotors, config)
        if size is None:
            advice.append(
                f"No {name} part: rotors or box have no room for {100 * _WEAKEST:.0f} % of it, so that {_LACKS[name]}."
            )
            continue
        if size.level < 0.999 * wanted:
            advice.append(
                f"Part {name} is flown at {100 * size.level / wanted:.0f} % of its size: rotors or box leave no more."
            )
        kinds.append(_Kind(name, size, wanted))
    if not kinds:
        raise AirworthyError(
            f"No excitation flight of {vehicle.name} fits: its rotors have too little room about hover, or the box of"
            f" {config.box[0]:g} x {config.box[1]:g} x {config.box[2]:g} m is too small; give a larger --box."
        )
    made: list[tuple[_Kind, float, float]] = []
    for kind, share in _in_turn(kinds, config.length):
        path.begun = 0.0
        _fly(kind, path, rotors, config, center, share)
        made.append((kind, path.begun, path.time))
        path.rest(_REST)
    return _plan(vehicle, config, path, made, advice, rotors)


def _plan(
    vehicle: Vehicle,
    config: ExcitationConfig,
    path: _Path,
    made: Sequence[tuple[_Kind, float, float]],
    advice: list[str],
    rotors: _Rotors,
) -> ExcitationPlan:
    trajectory = minimum_snap(path.frames)
    parts = tuple(_part(trajectory, rotors, *item) for item in made)
    diameter = 2.0 * max(r.radius for r in vehicle.rotors)
    if config.height < 2.0 * diameter:
        advice.append(f"The box begins {config.height:g} m above the ground: within two rotor diameters it pushes back.")
    line = next((part for part in parts if part.name == "lines"), None)
    if line is not None and line.speed < 2.0:
        advice.append(f"Lines reach {line.speed:.1f} m/s, and drag shows above 2: a longer box helps.")
    place = trajectory.sample(np.arange(0.0, trajectory.duration, 0.01)).position
    course = Course(
        name=f"excitation_{vehicle.name}"[:80],
        kind="keyframes",
        description=f"Excitation of {vehicle.name}: {', '.join(dict.fromkeys(part.name for part in parts))}",
        source=f"airworthy logs plan --vehicle {vehicle.name}",
        keyframes=_named(path.frames, parts),
        coefficient_count=COEFFICIENTS,
    )
    low, high = place.min(axis=0), place.max(axis=0)
    return ExcitationPlan(vehicle.name, course, parts, tuple(map(float, low)), tuple(map(float, high)), tuple(advice))  # type: ignore[arg-type]


def _named(frames: Sequence[Keyframe], parts: Sequence[ExcitationPart]) -> tuple[Keyframe, ...]:
    """Keyframes with the name of the part that begins there."""
    starts = {part.start: part.name for part in parts}
    return tuple(replace(frame, name=starts.get(frame.time, "")) for frame in frames)


def _part(trajectory: Trajectory, rotors: _Rotors, kind: _Kind, start: float, stop: float) -> ExcitationPart:
    name, size, wanted = kind.name, kind.size, kind.wanted
    time = np.arange(start, stop, _STEP)
    sample = trajectory.sample(time)
    state = tracked_samples(sample, rotors.vehicle.gravity)
    rate = np.sqrt(sum(np.square(x) for x in state.body_rate))
    gravity = rotors.vehicle.gravity
    shown = {"collective": lambda x: x / gravity, "yaw": lambda x: x}.get(name, lambda x: float(np.arctan2(x, gravity)))
    return ExcitationPart(
        name=name,
        start=start,
        stop=stop,
        size=shown(size.level),
        wanted=shown(wanted),
        ramp=size.ramp,
        speed=float(np.linalg.norm(sample.velocity, axis=1).max()),
        rate=float(np.max(rate)),
        reach=float(np.linalg.norm(sample.position - sample.position[0], axis=1).max()),
        rotor_use=rotors.use(trajectory, start, stop),
    )
