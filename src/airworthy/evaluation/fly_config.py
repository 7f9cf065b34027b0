"""What a user chooses about a run of `airworthy fly`, checked, written to disk and read back."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from airworthy.core import commands
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import read_json
from airworthy.evaluation.video_files import RATE_MAX, check_video_size
from airworthy.simulation import Randomization

CONFIG_FILE = "config.json"
CONFIG_VERSION = 1

RANDOMIZE_DEFAULT = "mass=0.1 inertia=0.1 thrust=0.05 rotor=0.02 drag=0.3 lag=0.2 wind=1.0 position=0.1 yaw=0.1"
"""What `--randomize default` stands for."""


@dataclass(frozen=True)
class FlyConfig:
    """What to fly, how, and where to write it."""

    vehicle: tuple[str, ...] = ("flightgoggles",)
    """Catalogue names or vehicle TOML files; several are dealt out to the environments in turn."""
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
    devices; channels: rgb, depth, range, instance_id, semantic_id, normal_world, points, ...), or "carried"."""
    pilot: str = "geometric"
    """Who flies: geometric, mellinger, crazyflie, position, velocity; mpc, the expert with the true state; svnet, the
    shipped policy; or svnet:FOLDER, a trained one."""
    latency: float = 0.0
    """From what the pilot sees until its command acts [s]."""
    envs: int = 1
    """Flights at once."""
    dynamics: Literal["rigid", "semi_kinematic"] = "rigid"
    """Equations of motion: rigid body with rotors, or point mass with attitude."""
    randomize: tuple[str, ...] = ()
    """Spread of the flights, "name=value": relative half widths of mass, inertia, thrust, rotor, drag, lag; wind [m/s],
    position [m], yaw [rad]; "default" for a mild mix of all."""
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Mean wind, world [m/s]."""
    turbulence: float = 0.0
    """Standard deviation of Dryden turbulence per axis [m/s]."""
    speed: float | None = None
    """Speed limit [m/s]; slows a course down, 2 m/s for waypoints."""
    acceleration: float | None = None
    """Acceleration limit [m/s^2]; slows a course down, 3 m/s^2 for waypoints."""
    slower: float = 1.0
    """Stretch the course's time by this factor; below 1 hurries it."""
    laps: int = 1
    """Times round the course, where it closes."""
    hold: float = 1.0
    """Hover at the end [s]."""
    imu: str | None = None
    """Simulate an inertial sensor: ideal, flightgoggles, bmi088, vn100, ..."""
    ground: bool = False
    """A ground plane at height 0 that vehicles can touch."""
    physics_rate: float = 960.0
    """Steps of the equations of motion per second [Hz]."""
    control_rate: float = 100.0
    """Set-points per second [Hz]; the control law itself runs at every physics step."""
    record_rate: float = 50.0
    """Rows per second in flight.parquet [Hz]."""
    integrator: Literal["rk4", "semi_implicit", "euler"] = "rk4"
    """Integration of the equations of motion."""
    gains: str = "auto"
    """Gains of the geometric pilot: "auto" from the airframe, or a set: lee, lmf2, magpie, octarotor, ..."""
    seed: int = 0
    """Key of all random numbers."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    out: Path = Path("runs/fly")
    """Folder for flight.parquet, meta.json, summary.json, config.json and report.html."""
    report: bool = True
    """Write report.html; its figures take longer than the flights."""
    record: tuple[str, ...] = ()
    """What to make besides: "video", a film of one flight with its contact sheet; needs a scene."""
    video_camera: str = "auto"
    """Of the film: onboard, chase, orbit, fixed, a camera of the vehicle's record or a device; two joined by a plus put the
    second into the corner; "auto" is onboard+chase."""
    video_env: int = 0
    """Which flight is filmed."""
    video_size: tuple[int, int] | None = None
    """Width and height of the film [px]; without one, 640 wide in the camera's shape."""
    video_rate: float = 30.0
    """Frames of the film per second [Hz]."""
    json: bool = False
    """Print summary.json's aggregate instead of a table."""


_BOUNDS: dict[str, tuple[float, float, str]] = {
    "envs": (1, 1_000_000, ""),
    "laps": (1, 1000, ""),
    "seed": (0, 2**63 - 1, ""),
    "slower": (0.01, 1000.0, ""),
    "speed": (0.01, 1000.0, " m/s"),
    "acceleration": (0.01, 1000.0, " m/s^2"),
    "hold": (0.0, 86400.0, " s"),
    "turbulence": (0.0, 100.0, " m/s"),
    "physics_rate": (1.0, 1e5, " Hz"),
    "control_rate": (1.0, 1e5, " Hz"),
    "latency": (0.0, 2.0, " s"),
    "record_rate": (10.0, 1e5, " Hz"),
    "video_env": (0, 1_000_000, ""),
    "video_rate": (1.0, RATE_MAX, " Hz"),
}
_WIND_MAX = 100.0
RECORDINGS = ("video",)
"""Words of `--record`."""
_SPREAD_MAX = {"drag": 1.0, "wind": 100.0, "position": 1000.0, "yaw": math.pi}


def check_config(config: FlyConfig) -> None:
    """Refuse numbers that nobody can mean, and options that do not go together.

    Raises:
        AirworthyError: One sentence.
    """
    for name, (low, high, unit) in _BOUNDS.items():
        value = getattr(config, name)
        # Written so that NaN fails.
        if value is not None and not low <= value <= high:
            raise AirworthyError(f"{name} is {_shown(value)}{unit}; expected {_shown(low)} to {_shown(high)}.")
    if not all(abs(part) <= _WIND_MAX for part in config.wind):
        raise AirworthyError(f"wind is {config.wind} m/s; expected three numbers of at most {_WIND_MAX:g} in size.")
    if not config.vehicle:
        raise AirworthyError("No vehicle is named; `airworthy vehicles` lists them.")
    if len(config.vehicle) > config.envs:
        raise AirworthyError(
            f"{len(config.vehicle)} vehicles are named for {config.envs} flights: set --envs to as many or more."
        )
    if config.course is not None and config.waypoints:
        raise AirworthyError("Both a course and waypoints are given; name one of them.")
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in str(config.out)):
        raise AirworthyError(f"out is {str(config.out)!r}, which has letters that are not text; choose another folder.")
    if config.dynamics == "semi_kinematic":
        _check_semi_kinematic(config)
    _check_recordings(config)


def _check_recordings(config: FlyConfig) -> None:
    for word in config.record:
        if word not in RECORDINGS:
            raise unknown_name("recording", word, RECORDINGS, "Write --record video.")
    if "video" in config.record and config.scene is None:
        raise AirworthyError("A film needs something to see: name a --scene (`airworthy scenes` lists them).")
    if config.video_env >= config.envs:
        raise AirworthyError(
            f"video_env is {config.video_env}; expected less than the {config.envs} flights, which count from 0."
        )
    if config.video_size is not None:
        check_video_size(config.video_size)


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _check_semi_kinematic(config: FlyConfig) -> None:
    asked = {
        "imu": config.imu is not None,
        "ground": config.ground,
        "wind": any(config.wind),
        "turbulence": config.turbulence > 0.0,
        "integrator": config.integrator != "rk4",
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise AirworthyError(
                f"Semi-kinematic dynamics have no choice of {name}: leave --{name} out, or fly --dynamics rigid."
            )


def randomization(words: tuple[str, ...]) -> Randomization:
    """Parse "mass=0.1" words; "default" stands for a mild mix.

    Raises:
        AirworthyError: If a word is not a known name with a number that it can take.
    """
    known = [field.name for field in fields(Randomization)]
    values: dict[str, float] = {}
    for word in (part for text in words for part in (RANDOMIZE_DEFAULT if text == "default" else text).split()):
        name, _, number = word.partition("=")
        if name not in known:
            raise unknown_name("quantity to randomize", name, known, "Write for example --randomize mass=0.1 wind=2.")
        try:
            values[name] = float(number)
        except ValueError:
            raise AirworthyError(f"--randomize got {word!r}; write it as {name}=NUMBER.") from None
        if not (math.isfinite(values[name]) and values[name] >= 0.0):
            raise AirworthyError(f"--randomize got {word!r}; expected a number of at least 0.")
        if name not in _SPREAD_MAX and values[name] >= 1.0:
            raise AirworthyError(f"--randomize got {word!r}, a relative half width; expected less than 1.")
        if values[name] > _SPREAD_MAX.get(name, 1.0):
            raise AirworthyError(f"--randomize got {word!r}; expected at most {_SPREAD_MAX[name]:.4g}.")
    return Randomization(**values)


def resolved(config: FlyConfig) -> dict[str, Any]:
    """The configuration as plain data, for config.json."""
    return {"version": CONFIG_VERSION, **asdict(config), "out": str(config.out)}


def command_line(config: FlyConfig) -> str:
    """The exact command that re-creates a run."""
    return commands.command_line("airworthy fly", config, leave_out=("json",))


def read_config(folder: str | Path) -> FlyConfig:
    """The configuration of a recorded run.

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
    """A JSON value as the field's type; raises TypeError where it is none."""
    kind = typing.get_origin(hint)
    if kind is types.UnionType:
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
