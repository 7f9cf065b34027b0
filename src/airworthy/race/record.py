"""What a race is: its gates, their order, its start, and the rules by which it is timed, ended and scored.

Lengths in metres, angles in degrees as the files have them, positive counter-clockwise seen from above; world z up. What holds
between fields (a gate that exists, a test that fits the order) is checked in `airworthy.race.race_file`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from airworthy.core.schema import SEED, Bound, Length, check_fields

# Ours: no race is larger than a kilometre or longer than an hour; what is beyond is a slip of the unit.
_PLACE = Bound(-1000.0, 1000.0, "m")
_SIDE = Bound(0.05, 50.0, "m")
_SPREAD = Bound(0.0, 100.0, "m")
_ANGLE = Bound(-360.0, 360.0, "deg")

Point = tuple[float, float, float]

REVERSED = "-"
"""Before a gate's name in the order: flown against its direction."""


@dataclass(frozen=True)
class MoveBound:
    """How far something may stand from where it nominally stands: uniform in plus or minus."""

    x: Annotated[float, _SPREAD] = 0.0
    """World [m]."""
    y: Annotated[float, _SPREAD] = 0.0
    """World [m]."""
    z: Annotated[float, _SPREAD] = 0.0
    """World [m]."""
    yaw_deg: Annotated[float, Bound(0.0, 180.0, "deg")] = 0.0
    """About the pivot [deg]."""

    def __post_init__(self) -> None:
        check_fields(self, "MoveBound.")

    @property
    def shift(self) -> tuple[float, float, float, float]:
        """x, y, z [m] and yaw [deg]."""
        return self.x, self.y, self.z, self.yaw_deg


@dataclass(frozen=True)
class RaceGate:
    """One gate, by the corners of its opening and the way through it, or by its pose and opening."""

    name: Annotated[str, Length(1, 40)]
    corners: Annotated[tuple[Annotated[Point, _PLACE], ...], Length(0, 4)] = ()
    """Of the opening [m], four, in the order of the markers, which need not go round."""
    direction: Annotated[Point, Bound(-1.0, 1.0)] = (0.0, 0.0, 0.0)
    """Of flight, across the corners' plane, roughly: which of the plane's two normals it is."""
    position: Annotated[Point, _PLACE] | None = None
    """Centre of the opening [m], instead of corners."""
    yaw_deg: Annotated[float, _ANGLE] = 0.0
    """Heading of flight through it, from world x [deg]; with `position`."""
    opening: Annotated[tuple[float, float], _SIDE] | None = None
    """Width and height of the opening [m]; with `position`."""
    bound: MoveBound = MoveBound()
    """Where it may stand instead."""
    pivot: Annotated[tuple[float, float], _PLACE] | None = None
    """x and y of the vertical line that it turns about [m]; none: through its centre."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceGate.")


@dataclass(frozen=True)
class Post:
    """A thin upright that may be hit."""

    position: Annotated[tuple[float, float], _PLACE]
    """x and y [m]."""
    top: Annotated[float, Bound(0.0, 100.0, "m", above=True)]
    """Height of its upper end [m]."""
    radius: Annotated[float, Bound(0.001, 5.0, "m")]
    """[m]."""
    bound: MoveBound = MoveBound()
    """Where it may stand instead."""

    def __post_init__(self) -> None:
        check_fields(self, "Post.")


@dataclass(frozen=True)
class GateFrames:
    """The bars around openings, the same of all gates: what is hit there."""

    width: Annotated[float, Bound(0.01, 5.0, "m")] = 0.15
    """From the opening's edge outwards, in its plane [m]."""
    depth: Annotated[float, Bound(0.01, 5.0, "m")] = 0.15
    """Across the plane [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "GateFrames.")


@dataclass(frozen=True)
class RacerSpread:
    """How vehicles differ from their record, uniform in plus or minus a share; pilots are not told."""

    mass: Annotated[float, Bound(0.0, 0.5)] = 0.0
    """Of the mass; inertia follows."""
    inertia: Annotated[float, Bound(0.0, 0.5)] = 0.0
    """Of each principal inertia, besides."""

    def __post_init__(self) -> None:
        check_fields(self, "RacerSpread.")


@dataclass(frozen=True)
class RaceStart:
    """Where the vehicle stands before the clock starts."""

    position: Annotated[Point, _PLACE]
    """World [m]."""
    yaw_deg: Annotated[float, _ANGLE] = 0.0
    """Heading [deg]."""
    bound: MoveBound = MoveBound()
    """Where it may stand instead."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceStart.")


@dataclass(frozen=True)
class RaceLimits:
    """What ends a race besides its last gate and a contact."""

    time_s: Annotated[float, Bound(0.0, 3600.0, "s", above=True)]
    """Since the vehicle was armed."""
    lower: Annotated[Point, _PLACE] | None = None
    """Of the box that must not be left [m]; none: nowhere ends."""
    upper: Annotated[Point, _PLACE] | None = None
    """Of the same box [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceLimits.")


@dataclass(frozen=True)
class RaceClock:
    """What is timed."""

    starts: Literal["armed", "first_gate"] = "armed"
    """With the first inertial sample, or when the first gate is passed (a flying start)."""
    look_s: Annotated[float, Bound(0.0, 60.0, "s")] = 0.0
    """How long the pilot may look from its start before it is armed."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceClock.")


@dataclass(frozen=True)
class RaceScore:
    """What a run is worth, and several together."""

    rule: Literal["points", "time"]
    """`gate_points` for each passed gate less a point per second, 0 for a run that did not finish; or the time alone."""
    gate_points: Annotated[float, Bound(0.0, 1000.0)] = 0.0
    """For each passed gate; of the rule "points"."""
    best: Annotated[int, Bound(0, 1000)] = 0
    """How many of the best runs make the final score; 0: all that finished."""
    of: Annotated[int, Bound(0, 1000)] = 0
    """Of how many runs; 0: of any number."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceScore.")


@dataclass(frozen=True)
class RaceInformation:
    """What the pilot is told, senses and commands."""

    sensors: tuple[Literal["imu", "beacons", "ranger", "camera", "stereo", "state"], ...] = ("imu",)
    """"stereo" is a pair of cameras, of which a pilot may use one; "state" is the true one, as of a motion capture."""
    gates: Literal["exact", "nominal", "near"] = "nominal"
    """Where gates are said to be: where they stand, where they nominally stand, or the former once within `near_m`."""
    near_m: Annotated[float, Bound(0.0, 1000.0, "m")] = 0.0
    """For "near"."""
    command: Literal["rate_thrust", "attitude_thrust", "state", "any"] = "any"
    """What the pilot may command."""
    command_hz: Annotated[float, Bound(0.0, 10000.0, "Hz")] = 0.0
    """How often at most; 0: each physics step."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceInformation.")


@dataclass(frozen=True)
class GateLayout:
    """By which rules gates and posts are placed anew, where they are part of what is drawn; none of it without this.

    Gates keep their heights, openings and order. Each faces along the leg that reaches it, within `turn_deg`.
    """

    seed: Annotated[int, SEED] = 0
    """Of the family that the layout of the file is from."""
    index: Annotated[int, Bound(0, 2**32 - 1)] = 0
    """Its number there."""
    border_m: Annotated[float, _SPREAD] = 0.5
    """Least distance from the limits [m]."""
    gates_m: Annotated[float, _SPREAD] = 1.0
    """Least distance between gates, and between start and gates [m]."""
    turn_deg: Annotated[float, Bound(0.0, 90.0, "deg")] = 43.0
    """A gate faces within this of its leg [deg]."""
    posts_gates_m: Annotated[float, _SPREAD] = 0.8
    """Least distance between posts and gates [m]."""
    posts_m: Annotated[float, _SPREAD] = 0.3
    """Least distance between posts [m]."""
    corridor_m: Annotated[float, _SPREAD] = 0.5
    """Gates stay out of this distance from earlier legs, posts stand within it of theirs [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "GateLayout.")


@dataclass(frozen=True)
class Race:
    """One race; `airworthy.race.load_race` reads it."""

    name: Annotated[str, Length(1, 80)]
    title: str
    order: Annotated[tuple[str, ...], Length(1, 1000)]
    """Names of gates as they are flown in one lap; "-NAME" against the gate's direction."""
    start: RaceStart
    limits: RaceLimits
    score: RaceScore
    gates: Annotated[tuple[RaceGate, ...], Length(1, 200)]
    laps: Annotated[int, Bound(1, 100)] = 1
    test: Literal["loose", "strict"] = "strict"
    """What counts as a passage: see `airworthy.race.referee`."""
    clock: RaceClock = field(default_factory=RaceClock)
    information: RaceInformation = field(default_factory=RaceInformation)
    posts: Annotated[tuple[Post, ...], Length(0, 200)] = ()
    layout: GateLayout | None = None
    frames: GateFrames | None = None
    """Of the gates, where no scene of the package has them; none: tubes of 0.15 m, which plans do not keep off."""
    spread: RacerSpread | None = None
    """How the vehicle differs from flight to flight; none: not."""
    vehicle: str = ""
    """Which vehicle it is flown with; empty: any."""
    scene: str = ""
    """Scene of this package whose gates these are; empty: none is built yet."""
    description: str = ""
    source: str = ""
    """Where the values are from."""

    def __post_init__(self) -> None:
        check_fields(self, "Race.")

    @property
    def passes(self) -> tuple[tuple[str, bool], ...]:
        """Gate and whether it is flown in reverse, of every passage of all laps."""
        lap = tuple((word.removeprefix(REVERSED), word.startswith(REVERSED)) for word in self.order)
        return lap * self.laps

    @property
    def is_drawn(self) -> bool:
        """Whether anything of it stands elsewhere from course to course."""
        things: list[RaceStart | RaceGate | Post] = [self.start, *self.gates, *self.posts]
        return self.layout is not None or any(any(thing.bound.shift) for thing in things)

    def gate(self, name: str) -> RaceGate:
        """Return a gate by its name; raises KeyError."""
        return {gate.name: gate for gate in self.gates}[name]

    def with_gates(self, gates: tuple[RaceGate, ...]) -> Race:
        """Return the same race with its gates elsewhere."""
        return replace(self, gates=gates)
