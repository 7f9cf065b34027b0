"""What a user chooses about a run of `airworthy fly`, checked, written to disk and read back.

Options of `airworthy fly` that change nothing beside the others.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from airworthy.bridges.betaflight import Form
from airworthy.bridges.ros.types import ros_types
from airworthy.control.allocation import Priority
from airworthy.control.gain_sets import checked_gains
from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import read_json
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs import progress
from airworthy.core.schema import SEED, Bound, check_fields
from airworthy.pilots.catalogue import AUTOPILOTS, EXTERNAL, NAVIGATION, learnt_guide, pilot_control, pilot_level
from airworthy.reports.film.files import RATE_MAX, check_video_size
from airworthy.simulation import Randomization
from airworthy.simulation.config import (
    AIR_SPEED,
    CONTROL_RATE,
    GUSTINESS,
    IDENTIFIED_WORD,
    PHYSICS_RATE,
    PLACE,
    asked_randomization,
)
from airworthy.simulation.posterior import posterior_of

if TYPE_CHECKING:
    from airworthy.vehicles import Vehicle

__all__ = [
    "CONFIG_FILE",
    "CONFIG_VERSION",
    "DEFAULT_COURSE",
    "FILM",
    "FLY_RULES",
    "GAINED_PILOTS",
    "PLANNER_RULES",
    "RANDOMIZE_DEFAULT",
    "RECORDINGS",
    "SCENE_ARGUMENTS",
    "FlyConfig",
    "check_config",
    "check_spread",
    "command_line",
    "control_of",
    "draws",
    "randomization",
    "read_as_it_is",
    "read_config",
    "resolved",
    "without_film",
]


FILM = ("video_camera", "video_env", "video_size", "video_rate")
"""Options that only a film reads."""


def _semi_kinematic(config: FlyConfig) -> bool:
    return config.dynamics == "semi_kinematic"


def _below_controller(config: FlyConfig, plans: bool) -> bool:
    from airworthy.planners.common.tracking_backends import DEFAULT_BACKEND, backend

    # Learnt policies command the simulator themselves, and refuse rates below their own.
    return plans and not learnt_guide(config.pilot) and config.control_rate < backend(DEFAULT_BACKEND).rate


FLY_RULES = (
    IdleRule(
        ("units", "up", "recentre", "keep_frame", "voxel", "unknown"),
        lambda config: config.scene is None,
        "without a file of a scene",
        "name a --scene",
    ),
    IdleRule(("contact",), lambda config: config.scene is None, "without something to meet", "name a --scene"),
    IdleRule(("course_check",), lambda config: config.scene is None, "without a place to check a course in", "name a --scene"),
    IdleRule(
        ("course_check",),
        lambda config: config.scene is not None and config.contact == "none",
        "with --contact none, which flies through everything",
    ),
    IdleRule(FILM, lambda config: "video" not in config.record, "without a film", "add --record video"),
    IdleRule(
        ("record_rate",),
        lambda config: config.record_rate > config.control_rate,
        "beyond --control-rate, since a row is written at most at each set-point",
        "raise that",
    ),
    IdleRule(
        ("rotors",),
        lambda config: not any(name.lower().endswith(".urdf") for name in config.vehicle),
        "for a vehicle that is no URDF, whose record says what its rotors do",
        "name one with --vehicle FILE.urdf",
    ),
    IdleRule(
        ("patience", "wait"),
        lambda config: config.pilot.partition(":")[0] not in (*AUTOPILOTS, EXTERNAL),
        "for a pilot that is no program outside",
        "fly --pilot px4, ardupilot, betaflight or external:KIND",
    ),
    IdleRule(
        ("form",),
        lambda config: config.pilot.removeprefix(f"{EXTERNAL}:").partition(":")[0] != "betaflight",
        "for a pilot that is no Betaflight",
        "fly --pilot betaflight",
    ),
    IdleRule(
        ("imu", "ground", "wind", "turbulence", "integrator"),
        _semi_kinematic,
        "in semi-kinematic dynamics, a point mass that is turned at will",
        "fly --dynamics rigid",
    ),
)
"""Of every run."""

PLANNER_RULES = (
    IdleRule(
        ("start", "goal"),
        lambda config, plans: not plans,
        "for a pilot that follows a course, and has neither start nor goal",
        "give --waypoints, or name a planner with --pilot",
    ),
    IdleRule(
        ("time_limit",),
        lambda config, plans: not plans,
        "for a pilot that follows a course, whose end is the flight's",
        "name a planner with --pilot",
    ),
    IdleRule(
        ("course", "laps", "slower"),
        lambda config, plans: plans,
        "for a planner or a learnt policy, which finds its own way from start to goal",
        "give --start and --goal",
    ),
    IdleRule(
        ("hold",),
        lambda config, plans: plans,
        "for a planner or a learnt policy, whose flight ends at rest at the goal or after --time-limit",
    ),
    IdleRule(
        ("control_rate",),
        _below_controller,
        "for a planner below the rate of its controller, 100 Hz",
        "raise it",
    ),
    IdleRule(
        ("course_check",),
        lambda config, plans: plans,
        "for a planner or a learnt policy, which finds its own way from start to goal",
    ),
    IdleRule(
        ("start", "goal"),
        lambda config, plans: plans and bool(config.waypoints),
        "beside --waypoints, which are start and goal already",
    ),
)
"""Of who flies: conditions are also told whether it is a planner."""

# ---- Spreads ----------------------------------------------------------------------------------------------------------------

_RIGID = ("inertia", "rotor", "drag", "lag", "wind")
"""Spreads that only the rigid family draws."""


def _dragless(item: Vehicle) -> bool:
    names = ("linear", "quadratic_norm", "quadratic_axis", "rotor_speed", "angular_linear", "angular_norm", "angular_axis")
    own = any(any(getattr(item.drag, name)) for name in names) or any(any(r.hub_drag) for r in item.rotors)
    return not own and not any(any(link.drag) for link in item.links)


_AT_ONCE = 0.99e4
"""Rates of rotors without lag, which records write as a time constant of 0.1 ms (`RotorResponse.first_order`) [1/s]."""


def _lagless(item: Vehicle) -> bool:
    return all(a >= _AT_ONCE for rotor in item.rotors for a, _ in (rotor.response.rise, rotor.response.fall))


_LACKING: dict[str, tuple[Callable[[Vehicle], bool], str]] = {
    "drag": (_dragless, "drag"),
    "lag": (_lagless, "rotor lag"),
}


def check_spread(config: FlyConfig, vehicles: Sequence[Vehicle]) -> None:
    """Refuse a spread of what the dynamics, or none of the vehicles, have; the mild mix of "default" may hold it.

    Raises:
        AirworthyError: One sentence.
    """
    settings = {part.partition("=")[0]: part for text in config.randomize for part in text.split()}
    spread = randomization(config.randomize)
    if spread.posterior:
        for item in {id(item): item for item in vehicles}.values():
            posterior_of(item, spread)
    for name, setting in settings.items():
        if _semi_kinematic(config) and name in _RIGID:
            raise AirworthyError(
                f"--randomize {setting} changes nothing in semi-kinematic dynamics, which have no {name}: leave it out, or fly"
                " --dynamics rigid."
            )
        if name == "joint" and not any(item.links for item in vehicles):
            raise AirworthyError(f"--randomize {setting} changes nothing, since no vehicle has joints that move: leave it out.")
        if name in _LACKING and all(_LACKING[name][0](item) for item in vehicles):
            names = ", ".join(dict.fromkeys(item.name for item in vehicles))
            raise AirworthyError(
                f"--randomize {setting} changes nothing, since {names} has no {_LACKING[name][1]}: leave it out, or fly another"
                " vehicle."
            )


CONFIG_FILE = "config.json"
CONFIG_VERSION = 1
DEFAULT_COURSE = "robustness"
"""Flown where neither course nor way-points are given."""

RANDOMIZE_DEFAULT = "mass=0.1 inertia=0.1 thrust=0.05 rotor=0.02 drag=0.3 lag=0.2 wind=1.0 position=0.1 yaw=0.1"
"""What `--randomize default` stands for."""


@dataclass(frozen=True)
class FlyConfig:
    """What to fly, how, and where to write it."""

    vehicle: tuple[str, ...] = ("flightgoggles",)
    """Catalogue names, vehicle TOML files, or a URDF with its --rotors; several are dealt out to the environments in turn."""
    rotors: str | None = None
    """For a vehicle that is a URDF: the TOML that says which of its links are rotors, and what they do."""
    course: str | None = None
    """Course name or file (`airworthy courses` lists them); "robustness" where neither course nor waypoints are given."""
    waypoints: tuple[str, ...] = ()
    """Instead of a course: points "x,y,z" [m], flown smoothly under the limits below."""
    scene: str | None = None
    """Where: a scene's name (`airworthy scenes` lists them), or a scene, mesh or cloud file; without one, empty air. Its own
    course is flown where none is named: or through its gates, or straight from its start to its goal."""
    contact: Literal["freeze", "reset", "respond", "none"] = "freeze"
    """At an impact with the scene: the flight ends, starts again, or rebounds; "none": vehicles fly through everything."""
    sensors: tuple[str, ...] = ()
    """What every vehicle carries and records: DEVICE, NAME=DEVICE or NAME=DEVICE:CHANNEL,CHANNEL (`airworthy sensors` lists
    devices, one's own are FILE.toml:NAME and FILE.py:CLASS; channels: rgb, depth, range, instance_id, semantic_id,
    normal_world, points, ...), or "carried"."""
    pilot: str = "geometric"
    """Who flies: geometric, mellinger, crazyflie, position, velocity; mpc, the expert with the true state; svnet, the
    shipped policy; svnet:FOLDER, a trained one; policy:FOLDER, a learnt motor policy; avoid:FOLDER, a learnt one that sees and
    avoids; navigation:FOLDER, one that flies through rooms; px4, ardupilot, betaflight, an autopilot outside
    (docs/howto/autopilots.md); external:KIND[:WHERE], any program outside (docs/howto/external_pilots.md). Or a planner, which
    finds its way from start to goal by itself: ego, fast, pgo, known_free, navrl, straight, oracle, expert
    (docs/benchmarks/navigation.md), agile_autonomy, the shipped student, agile_autonomy:FOLDER, a trained one
    (docs/howto/agile_autonomy.md), hybrid:agile_autonomy or hybrid:FOLDER (docs/howto/fleet.md). Or FILE.py:CLASS, a pilot or
    planner of your own."""
    latency: Annotated[float, Bound(0.0, 2.0, "s")] = 0.0
    """From what the pilot sees until its command acts [s]."""
    envs: Annotated[int, Bound(1, 1_000_000)] = 1
    """Flights at once."""
    dynamics: Literal["auto", "rigid", "semi_kinematic", "articulated"] = "auto"
    """Equations of motion: rigid body with rotors, point mass with attitude, or a tree of bodies with joints; "auto": what the
    vehicle is. Rigid dynamics hold the joints of a vehicle that has some."""
    joints: str | None = None
    """Of a vehicle with joints, the angles that it starts from and keeps: hover, neutral, ring, or numbers with commas [rad];
    without it, those in which it hovers. With --dynamics rigid they are held."""
    randomize: tuple[str, ...] = ()
    """Spread of the flights, "name=value": relative half widths of mass, inertia, thrust, rotor, drag, lag; wind [m/s],
    position [m], yaw [rad], joint (a share of their spread); "default" for a mild mix of what the vehicle has; "identified" for
    what an identification left open of it, widen=1.5 times as wide."""
    wind: Annotated[tuple[float, float, float], AIR_SPEED] = (0.0, 0.0, 0.0)
    """Mean wind, world [m/s]. (The wind of `airworthy evaluate` is a push [m/s^2].)"""
    turbulence: Annotated[float, GUSTINESS] = 0.0
    """Standard deviation of Dryden turbulence per axis [m/s]."""
    speed: Annotated[float | None, Bound(0.01, 1000.0, "m/s")] = None
    """Speed limit [m/s]; slows a course down, 2 m/s for waypoints."""
    acceleration: Annotated[float | None, Bound(0.01, 1000.0, "m/s^2")] = None
    """Acceleration limit [m/s^2]; slows a course down, 3 m/s^2 for waypoints."""
    slower: Annotated[float, Bound(0.01, 1000.0)] = 1.0
    """Stretch the course's time by this factor; below 1 hurries it."""
    laps: Annotated[int | None, Bound(1, 1000)] = None
    """Times round the course, where it closes; without a number, as often as its file says, else once."""
    hold: Annotated[float, Bound(0.0, 86400.0, "s")] = 1.0
    """Hover at the end [s]."""
    imu: str | None = None
    """Simulate an inertial sensor (ideal, flightgoggles, bmi088, vn100, ...) and record its sample at every recorded row."""
    ground: bool = False
    """A ground plane at height 0 that vehicles can touch."""
    physics_rate: Annotated[float, PHYSICS_RATE] = 960.0
    """Steps of the equations of motion per second [Hz]."""
    control_rate: Annotated[float, CONTROL_RATE] = 100.0
    """Set-points per second [Hz]; the control law itself runs at every physics step."""
    record_rate: Annotated[float, Bound(10.0, 1e5, "Hz")] = 50.0
    """Rows per second in flight.parquet [Hz]."""
    integrator: Literal["auto", "rk4", "semi_implicit", "euler", "midpoint", "extrapolated"] = "auto"
    """Integration of the equations of motion; "auto": rk4, of joints midpoint, or extrapolated where servos drive them."""
    gains: str = "auto"
    """Gains of the geometric law (pilots geometric, position, velocity, navigation): "auto" from the airframe, a set (lee,
    lmf2, magpie, octarotor, ...), or a TOML file, such as `airworthy tune` writes."""
    gain: tuple[str, ...] = ()
    """Single gains that replace those of --gains, NAME=NUMBER or NAME=X,Y,Z: position_gain [1/s^2], velocity_gain [1/s],
    attitude_gain [N m], rate_gain [N m s], inclination_max [rad], yaw_rate_max [rad/s], thrust_max [N], pull_max [m/s^2]."""
    seed: Annotated[int, SEED] = 0
    """Key of all random numbers."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    out: Path = Path("runs/fly")
    """Folder for flight.parquet, meta.json, summary.json, config.json and report.html."""
    report: bool = True
    """Write report.html; its figures take longer than the flights."""
    record: tuple[str, ...] = ()
    """What to make besides: "video", a film of one flight with its contact sheet; needs a scene. "mcap", what vehicle and
    sensors say as messages of ROS 2, written while it flies (docs/howto/logs.md)."""
    video_camera: str = "auto"
    """Of the film: onboard, chase, orbit, fixed, a camera of the vehicle's record or a device; two joined by a plus put the
    second into the corner; "auto" is onboard+chase."""
    video_env: Annotated[int, Bound(0, 1_000_000)] = 0
    """Which flight is filmed."""
    video_size: tuple[int, int] | None = None
    """Width and height of the film [px]; without one, 640 wide in the camera's shape."""
    video_rate: Annotated[float, Bound(1.0, RATE_MAX, "Hz")] = 30.0
    """Frames of the film per second [Hz]."""
    json: bool = False
    """Print summary.json's aggregate instead of a table."""
    start: Annotated[tuple[float, float, float] | None, PLACE] = None
    """Of a planner, world [m]; without one, the scene's."""
    goal: Annotated[tuple[float, float, float] | None, PLACE] = None
    """The same."""
    time_limit: Annotated[float, Bound(0.1, 3600.0, "s")] = 90.0
    """Of a planner, from the start to rest at the goal [s]."""
    priority: Priority | None = None
    """What allocation serves first where the rotors cannot give all that the law asks for (docs/concepts/control.md); without
    it, as the file of --gains says, else attitude-force-yaw."""
    units: Literal["m", "cm", "mm"] = "m"
    """Of a scene that is a mesh, point cloud or splat file."""
    up: Literal["auto", "z", "y", "-y", "-z", "x", "-x"] = "auto"
    """Vertical axis of such a file: z or y of a mesh or point cloud, z by default (glTF is turned already); any of splats, by
    default as their container says."""
    recentre: bool = False
    """Stand it on the floor, its middle at the origin. Meshes are, if not told to keep their frame."""
    keep_frame: bool = False
    """Leave it where its file has it. Point clouds, worlds and splats are."""
    voxel: Annotated[float, Bound(0.0, 1000.0, "m")] = 0.0
    """Edge of the cells of a point cloud [m]; 0: as found in it."""
    unknown: Literal["solid", "free"] | None = None
    """Of a captured place: space of which nobody knows is solid, so that flights collide with it, or free; without it, as the
    place says, which is solid."""
    patience: Annotated[float, Bound(0.01, 3600.0, "s")] = 5.0
    """How long a reply of a program outside may take; then the flight ends as pilot_error [s]."""
    wait: Annotated[float, Bound(0.01, 3600.0, "s")] = 120.0
    """How long to wait for a program outside to appear, and again for an autopilot to arm [s]."""
    form: Form = "gazebo"
    """Of Betaflight: how its firmware was built, with the Gazebo bridge (its default) or without (legacy), or one until 2025.12
    (before_2026)."""
    course_check: Literal["refuse", "warn", "none"] = "refuse"
    """Of a --course or --waypoints on which a vehicle would meet something or leave the place: refuse it with point, time and
    distance, warn and fly, or none, which does not look. The way that a scene brings itself is flown with a warning."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def is_rigid(self) -> bool:
        """Whether rigid vehicles with rotors are flown; joints are known once the vehicles are read."""
        return self.dynamics in ("auto", "rigid")


SCENE_ARGUMENTS = ("units", "up", "recentre", "keep_frame", "voxel", "unknown")
"""How the file of a scene is read."""
_LATER = ("patience", "wait", "form", "start", "goal", "time_limit", "priority", "course_check", "joints", *SCENE_ARGUMENTS)
RECORDINGS = ("video", "mcap")
"""Words of `--record`."""


GAINED_PILOTS = ("geometric", "position", "velocity", NAVIGATION)
"""Pilots of the geometric law, whose gains `gains` and `gain` are; a navigation policy commands velocities through it."""
_IDLE_LIMITS = {
    "geometric": {"inclination_max", "thrust_max", "yaw_rate_max"},
    "position": {"yaw_rate_max"},
    "velocity": {"pull_max", "position_gain"},
    NAVIGATION: {"pull_max", "position_gain"},
}
"""What the law does not read at a pilot's level: a tracked course says itself what it asks for."""


def control_of(config: FlyConfig) -> ControlConfig:
    """Return gains as chosen.

    Raises:
        AirworthyError: One of `gain` is not NAME=NUMBER or NAME=X,Y,Z, or its name or numbers are none.
    """
    values: dict[str, Any] = {}
    for text in config.gain:
        name, equals, numbers = text.partition("=")
        try:
            parsed = tuple(float(part) for part in numbers.split(","))
        except ValueError:
            parsed = ()
        if not equals or not parsed:
            raise AirworthyError(f"gain {text!r} is not NAME=NUMBER or NAME=X,Y,Z, such as position_gain=4,4,6.")
        if name in values:
            raise AirworthyError(f"gain {name} is given twice; give it once.")
        values[name] = parsed[0] if len(parsed) == 1 else parsed
    chosen = tuple(checked_gains(values, "--gain").items())
    own = pilot_control(config.pilot) if config.pilot.startswith("policy:") else None
    if own is not None:  # of a learnt policy, whose commands mean what they do through its own controller
        return replace(own, priority=config.priority)
    return ControlConfig(gains=config.gains, gain_values=chosen, priority=config.priority)


def check_config(config: FlyConfig) -> None:
    """Refuse numbers that nobody can mean, and options that do not go together.

    Raises:
        AirworthyError: One sentence.
    """
    if not config.vehicle:
        raise AirworthyError("No vehicle is named; `airworthy vehicles` lists them.")
    if len(config.vehicle) > config.envs:
        raise AirworthyError(
            f"{len(config.vehicle)} vehicles are named for {config.envs} flights: set --envs to as many or more."
        )
    for recording in config.record:
        if recording not in RECORDINGS:
            raise unknown_name("recording", recording, RECORDINGS, "Write --record video, or --record mcap.")
    refuse_idle(config, FLY_RULES)
    if config.recentre and config.keep_frame:
        raise AirworthyError("--recentre and --keep-frame contradict each other; give one of them.")
    if config.course is not None and config.waypoints:
        raise AirworthyError("Both a course and waypoints are given; name one of them.")
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in str(config.out)):
        raise AirworthyError(f"out is {str(config.out)!r}, which has letters that are not text; choose another folder.")
    word = config.pilot.partition(":")[0] if config.pilot.startswith(f"{NAVIGATION}:") else config.pilot
    if (config.gains != "auto" or config.gain) and word not in GAINED_PILOTS:
        raise AirworthyError(
            f"gains are of the geometric law, with which {', '.join(GAINED_PILOTS)} fly; {config.pilot!r} takes none."
        )
    unread = _IDLE_LIMITS.get(word, set()) if config.gain else set()
    if config.gain and word == NAVIGATION and pilot_level(config.pilot) == "acceleration":
        unread = unread | {"velocity_gain"}  # of a LiDAR's policy, whose commands the law takes a level lower
    idle = sorted(dict(control_of(config).gain_values).keys() & unread) if config.gain else []
    if idle:
        raise AirworthyError(
            f"--gain {idle[0]} changes nothing for the pilot {config.pilot!r}: leave it out (docs/concepts/control.md)."
        )
    _check_recordings(config)


def without_film(config: FlyConfig) -> FlyConfig:
    """Return the same run, of which no film is made."""
    return replace(config, record=(), **{name: getattr(FlyConfig(), name) for name in FILM})


def _check_recordings(config: FlyConfig) -> None:
    if "mcap" in config.record:
        if config.envs != 1:
            raise AirworthyError(f"--record mcap records one flight, and there are {config.envs}: leave --envs at 1.")
        ros_types()  # what is missing is said before anything flies
    if "video" in config.record and config.scene is None:
        raise AirworthyError("A film needs something to see: name a --scene (`airworthy scenes` lists them).")
    if config.video_env >= config.envs:
        raise AirworthyError(
            f"video_env is {config.video_env}; expected less than the {config.envs} flights, which count from 0."
        )
    if config.video_size is not None:
        check_video_size(config.video_size)


def randomization(tokens: tuple[str, ...], windless: bool = False) -> Randomization:
    """Parse "mass=0.1" words; "default" stands for a mild mix, "identified" for what an identification left open.

    Args:
        tokens: The words.
        windless: Whether nothing of the vehicle feels wind, so that the mild mix has none.

    Raises:
        AirworthyError: If a word is not a known name with a number that it can take.
    """
    known = [field.name for field in fields(Randomization) if field.name != "posterior"]
    values: dict[str, float] = {}
    mix = " ".join(part for part in RANDOMIZE_DEFAULT.split() if not (windless and part.startswith("wind=")))
    told = [part for text in tokens for part in (mix if text == "default" else text).split()]
    for token in told:
        if token == IDENTIFIED_WORD:
            continue
        name, _, number = token.partition("=")
        if name not in known:
            raise unknown_name(
                "quantity to randomize",
                name,
                [IDENTIFIED_WORD, *known],
                "Write for example --randomize mass=0.1 wind=2, or --randomize identified.",
            )
        try:
            values[name] = float(number)
        except ValueError:
            raise AirworthyError(f"--randomize got {token!r}; write it as {name}=NUMBER.") from None
    return asked_randomization(values, IDENTIFIED_WORD in told)


def read_as_it_is(config: FlyConfig) -> FlyConfig:
    """Return the same with a scene that says all of itself, as a copy of one does."""
    return replace(config, **{name: getattr(FlyConfig(), name) for name in SCENE_ARGUMENTS})


def draws(config: FlyConfig) -> bool:
    """Return whether the configuration itself lets flights of one vehicle differ by chance; records and pilots may besides."""
    return randomization(config.randomize).any or config.turbulence > 0.0


def resolved(config: FlyConfig) -> dict[str, Any]:
    """Return the configuration as plain data, for config.json."""
    usual = FlyConfig()
    # What came later and stands at its default is left out: older folders tell of the same runs as ever.
    written = {name: value for name, value in asdict(config).items() if name not in _LATER or value != getattr(usual, name)}
    return {"version": CONFIG_VERSION, **written, "out": str(config.out)}


def command_line(config: FlyConfig) -> str:
    """Return the exact command that re-creates a run."""
    return progress.command_line("airworthy fly", config, leave_out=("json",))


def read_config(folder: str | Path) -> FlyConfig:
    """Return the configuration of a recorded run.

    Raises:
        AssetError: If config.json is missing or not one.
    """
    path = Path(folder) / CONFIG_FILE
    data = read_json(path)
    if not isinstance(data, dict) or data.get("version") != CONFIG_VERSION:
        raise AssetError(f"{str(path)!r} is not a configuration of `airworthy fly` in version {CONFIG_VERSION}.")
    hints = typing.get_type_hints(FlyConfig)
    for name in data:
        if name not in {*hints, "version"}:
            raise AssetError(
                f"{str(path)!r} has the unknown option {name!r}: another version wrote it, or it was changed by hand."
            )
    try:
        return FlyConfig(**{name: _typed(value, hints[name], name) for name, value in data.items() if name != "version"})
    except TypeError as error:
        raise AssetError(f"{str(path)!r} is not a configuration of `airworthy fly`: {error}.") from error


def _typed(value: Any, hint: Any, name: str) -> Any:
    """Return a JSON value as the field's type; raises TypeError where it is none."""
    kind = typing.get_origin(hint)
    if kind in (types.UnionType, typing.Union):  # the latter of literals
        return None if value is None else _typed(value, typing.get_args(hint)[0], name)
    if kind is tuple and isinstance(value, list):
        wanted = typing.get_args(hint)
        if wanted[-1] is Ellipsis or len(wanted) == len(value):
            return tuple(_typed(item, wanted[0], name) for item in value)
    if kind is Literal and value in typing.get_args(hint):
        return value
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is None and hint is not Path and type(value) is hint:
        return value
    raise TypeError(f"{name} cannot be {value!r}"[:200])
