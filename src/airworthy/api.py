"""What a user does daily, one call each: `import airworthy as aw`, then `aw.fly(...)`, `aw.render(...)`, `aw.train(...)`, ...

Every call is a job that exists in a room, with its configuration as keyword arguments and its folder as a `Result`. Where a
configuration has a name or a file, the calls also take the record itself; it is written beside the job's folder and named.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import make_folder, path_given
from airworthy.core.keyword_messages import raises_in_keywords
from airworthy.logs import Log
from airworthy.results import Images, Result
from airworthy.scenes.record import Scene
from airworthy.trajectories import Course
from airworthy.vehicles import Vehicle, named_vehicle, write_vehicle

if TYPE_CHECKING:
    from airworthy.pilots import Pilot

__all__ = ["configured", "evaluate", "fly", "plan", "render", "synthesize", "task", "train", "validate", "vehicle"]

REPORT = "report.html"

vehicle = named_vehicle


@raises_in_keywords
def fly(
    vehicle: str | Vehicle | Sequence[str | Vehicle] = "flightgoggles",
    *,
    course: str | Course | None = None,
    scene: str | Scene | None = None,
    pilot: str | Pilot | type[Any] | Result = "geometric",
    waypoints: ArrayLike | None = None,
    quiet: bool = True,
    **options: Any,
) -> Result:
    """Fly a batch: vehicle x course x pilot, in a scene or in empty air, judged and reported.

    Args:
        vehicle: Names, files or records; several are dealt out to the flights in turn.
        course: A name, a file or a record.
        scene: Where: a name, a file or a record.
        pilot: A pilot's or planner's word, a `Pilot` or a planner of your own or its class, or what `train("svnet", ...)` gave.
        waypoints: Instead of a course, (n, 3), world [m].
        quiet: Show no progress.
        options: Fields of `benchmarks.FlyConfig`: envs, seed, wind, randomize, sensors, start, goal, out, ... Sensors are
            words, since the command that flies them again names them: "d435", "front=d435", FILE.toml:NAME, FILE.py:CLASS.

    Returns:
        Its frame has a row per flight and recorded instant.

    Raises:
        AirworthyError: One sentence, if something cannot be flown or an option is unknown.
    """
    from airworthy.benchmarks import FlyConfig, run_fly
    from airworthy.pilots import policy_word

    _check_sensor_words(options.get("sensors", ()))
    given = {"vehicle": vehicle, "course": course, "scene": scene, **options}
    flown_by: Any = None
    if isinstance(pilot, Result):
        given["pilot"] = policy_word(pilot.folder)
    elif isinstance(pilot, str):
        given["pilot"] = pilot
    else:
        flown_by = pilot
    if waypoints is not None:
        points = np.asarray(waypoints, float).reshape(-1, 3).tolist()
        given["waypoints"] = tuple(",".join(map(repr, point)) for point in points)
    (config,) = configured("fly", given, FlyConfig, records=("vehicle", "course", "scene"))
    done = run_fly(config, quiet, flown_by)
    return Result(done.folder, done.summary, done, done.folder / REPORT, (done.folder / "flight.parquet",))


def _check_sensor_words(sensors: Any) -> None:
    several = sensors if isinstance(sensors, list | tuple) else [sensors]
    wrong = next((type(item).__name__ for item in several if not isinstance(item, str)), "")
    if wrong:
        raise AirworthyError(
            f"`sensors` of a flight are words, and one is a {wrong}: name a device of the catalogue, FILE.toml:NAME for your"
            " own numbers, or FILE.py:CLASS for your own class; objects are mounted by airworthy.simulation.MountedSensors."
        )


def plan(
    scene: str | Scene,
    planner: Any = "ego",
    start: ArrayLike | None = None,
    goal: ArrayLike | None = None,
    *,
    vehicle: str | Vehicle | Sequence[str | Vehicle] = "flightgoggles",
    out: str | Path = "runs/plan",
    **options: Any,
) -> Result:
    """Let a planner find its way through a scene, and fly it.

    Args:
        scene: A name, a file or a record.
        planner: ego, fast, pgo, known_free, navrl, straight, oracle, expert, FILE.py:CLASS, or a class or an object of your
            own.
        start: World [m], (3,); None: the scene's.
        goal: The same.
        vehicle: What flies.
        out: Folder of the flights.
        options: As of `fly`.

    Raises:
        AirworthyError: One sentence, if there is no such planner or something cannot be flown.
    """
    from airworthy.benchmarks.fly.scene import is_planner, plans
    from airworthy.benchmarks.navigation.methods import method_names

    if not isinstance(planner, str) and not plans(planner):
        raise AirworthyError(
            f"The planner is {planner!r}, which has no update(...), setpoints(time) and reset(mission): pilots that give"
            " commands fly with aw.fly(pilot=...)."
        )
    if isinstance(planner, str) and not is_planner(planner):
        raise unknown_name("planner", planner, method_names(), "One of your own is FILE.py:CLASS; trackers fly with aw.fly.")
    return fly(vehicle, scene=scene, pilot=planner, start=start, goal=goal, out=out, **options)


def render(
    scene: str | Scene,
    position: ArrayLike,
    target: ArrayLike | None = None,
    *,
    attitude: ArrayLike | None = None,
    channels: Sequence[str] = ("rgb", "depth"),
    size: tuple[int, int] = (640, 360),
    fov: float = 1.2,
    out: str | Path = "runs/render",
    **options: Any,
) -> Images:
    """Render cameras in a scene.

    Args:
        scene: A name, a file or a record.
        position: Of one camera or of c, world [m], (3,) or (c, 3).
        target: What they look at, world [m], (3,) or (c, 3); or give `attitude`.
        attitude: Camera to world, quaternion x, y, z, w, (4,) or (c, 4).
        channels: See `rendering.render`.
        size: Width and height [px].
        fov: Horizontal angle of view [rad].
        out: Folder that `Images.report` and `Images.show` write the picture into; until then nothing is written.
        options: Fields of `rendering.ShadingOptions`.

    Raises:
        AirworthyError: One sentence: an unknown name, neither or both of target and attitude, or impossible poses.
    """
    from airworthy import rendering, scenes
    from airworthy.optics import Pinhole

    if (target is None) == (attitude is None):
        raise AirworthyError("A camera needs either what it looks at, target=(x, y, z), or its attitude=(x, y, z, w).")
    where = _rows("position", position, 3)
    if attitude is None:
        seen = _rows("target", target, 3, len(where))
        turned = np.stack([scenes.look_at(eye, point) for eye, point in zip(where, seen, strict=True)])
    else:
        turned = _rows("attitude", attitude, 4, len(where))
    if options and "rgb" not in channels:
        raise AirworthyError(
            f"{next(iter(options))} changes nothing without the channel rgb, which alone has light: add it, or leave it out."
        )
    folder = path_given(out, "out")
    (shading,) = configured("render", options, rendering.ShadingOptions)
    lens = Pinhole.from_fov(*size, horizontal=fov)
    batch = scenes.SceneBatch(scene if isinstance(scene, Scene) else scenes.scene(scene))
    here = np.zeros(len(where), int)
    found = rendering.render(batch, lens.rays(), where, turned, here, tuple(channels), shading, projection=lens)
    return Images(found, where, turned, folder)


def _rows(name: str, value: ArrayLike | None, width: int, count: int | None = None) -> Array:
    """Return one row of finite numbers per camera, (c, width), from as many or from one; raises AirworthyError."""
    try:
        rows = np.atleast_2d(np.asarray(value, float))
    except (TypeError, ValueError) as error:
        wanted = f"({width},) or ({'c' if count is None else count}, {width})"
        raise AirworthyError(f"`{name}` of cameras is {str(value)[:60]!r}; expected numbers, {wanted}.") from error
    if rows.ndim != 2 or rows.shape[1] != width or len(rows) not in ((1, count) if count else (len(rows),)):
        wanted = f"({width},) or (c, {width})" if count is None else f"({width},) or ({count}, {width})"
        raise AirworthyError(f"`{name}` of cameras has shape {np.asarray(value).shape}; expected {wanted}.")
    if not np.isfinite(rows).all():
        raise AirworthyError(f"`{name}` of cameras is {np.asarray(value).tolist()}; expected finite numbers.")
    return np.broadcast_to(rows, (count or len(rows), width))


@raises_in_keywords
def synthesize(out: str | Path = "runs/synthesize", *, workers: int = 1, device: str = "cpu", **options: Any) -> Result:
    """Make a data set of expert roll-outs with what the drone sees, or go on with one.

    Args:
        out: Its folder.
        workers: Processes; the data are the same.
        device: Where it is computed.
        options: Fields of `learning.DatasetConfig`: courses, vehicle, scene, view, repetitions, ...

    Returns:
        Its frame has a row per pair of image and command.

    Raises:
        AirworthyError: One sentence, if something cannot be made or an option is unknown.
    """
    from airworthy.learning import DatasetConfig, ExpertDataset, synthesize_dataset
    from airworthy.learning.datasets.card import write_card
    from airworthy.learning.datasets.job import write_run

    (config,) = configured("synthesize", {**options, "out": out}, DatasetConfig, records=("scene", "vehicle"), free=("out",))
    made = synthesize_dataset(config, out, workers=workers, device=device)
    write_run(made, "", workers)
    page = made.folder / "card.html"
    if made.complete and not made.interrupted and made.total("pairs"):
        page = write_card(ExpertDataset.open(made.folder, verify=False))
    summary = {name: made.total(name) for name in ("rollouts", "kept", "pairs")}
    return Result(made.folder, summary, made, page, tuple(sorted(made.folder.glob("shard_*/pairs.parquet"))))


@raises_in_keywords
def train(kind: str, data: Any = None, out: str | Path | None = None, *, quiet: bool = True, **options: Any) -> Result:
    """Train a network, or go on with a training that was stopped.

    Args:
        kind: hover, a policy that commands motors; motor_command, the same by Aerial Gym's task; foundation, one policy for all
            quadrotors; distill, one of several teachers; avoid, a policy that sees a small depth image; depth_navigation and
            lidar_navigation, policies that fly through rooms of obstacles; dce, an encoder of depth images for them;
            visuomotor, a policy that flies a course in a place by sight (`scene=`, `course=`); backbone, the features that it
            learns on; svnet, a visuomotor policy from a data set; boundary, a network from gates to speeds and times; or
            another learning task (`learning.learning_tasks`), or FILE.py:NAME of one's own.
        data: Of hover the vehicle, a record, a name or a file; of other tasks the vehicle, None being the task's own; of
            motor_command, foundation, avoid, dce, visuomotor and backbone nothing; of depth_navigation the folder of an
            encoder, or nothing; of distill folders of motor policies, or what made them; else the folder of a data set
            (`synthesize`) or of labels, or what made it.
        out: Folder of the training; None: runs/KIND.
        quiet: Show no progress.
        options: Of hover fields of `learning.HoverConfig`, of motor_command of `learning.MotorCommandConfig`, of foundation of
            `learning.FoundationConfig`, of other tasks of `learning.TaskConfig`, each with `trainer` where there are several,
            and with `tensorboard` and `minutes`; of avoid of `learning.avoid`'s `AvoidOptions` and `AvoidRunOptions`, and
            flights, speeds and areas of its evaluation; of depth_navigation, lidar_navigation, dce of `learning.navigation`'s
            `NavigationOptions`, `RoomsProtocol`, `EncoderOptions` and `NavigationRunOptions`; else of `learning.SvNetOptions`
            and `learning.RunOptions`, or of their like in `gates`.

    Returns:
        Its frame is the journal, a row per step that was written down.

    Raises:
        AirworthyError: One sentence, if there is no such kind, nothing to train on, or an option is unknown.
        ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
    """
    from airworthy.training_calls import trained

    return trained(kind, data, out, quiet, options)


@raises_in_keywords
def evaluate(pilot: Any = "mpc", *, quiet: bool = True, **options: Any) -> Result:
    """Try pilots under the conditions of the tracking protocol: light, wind, payload, people, delays, noise.

    Args:
        pilot: Words, what `train("svnet", ...)` gave, or `benchmarks.TrackingMethod` objects; one or several.
        quiet: Show no progress.
        options: Fields of `benchmarks.EvaluateConfig`: conditions, flights, course, scene, family, out, ...

    Returns:
        Its frame has a row per flight.

    Raises:
        AirworthyError: One sentence, if something cannot be flown or an option is unknown.
    """
    from airworthy import benchmarks
    from airworthy.pilots import policy_word

    several = list(pilot) if isinstance(pilot, list | tuple) else [pilot]
    tokens = [policy_word(one.folder) if isinstance(one, Result) else one for one in several]
    own = [one for one in tokens if isinstance(one, benchmarks.TrackingMethod)]
    if own and len(own) < len(tokens):
        raise AirworthyError(
            "Pilots of an evaluation are words or benchmarks.TrackingMethod objects; give all as one of the two."
        )
    named = {"pilot": tuple(item.name for item in own) if own else tuple(tokens)}
    (config,) = configured("evaluate", {**options, **named}, benchmarks.EvaluateConfig, records=("vehicle", "course", "scene"))
    done = benchmarks.evaluate(config, quiet, own or None)
    return Result(done.folder, done.summary, done, done.folder / REPORT, (done.folder / "results.parquet",))


@raises_in_keywords
def validate(
    logs: str | Path | Log | Sequence[str | Path | Log],
    vehicle: str | Path | Vehicle,
    *,
    out: str | Path = "runs/validate",
    **options: Any,
) -> Result:
    """Say whether a vehicle explains logs: windows predicted open loop, beside what needs no vehicle, with intervals.

    Args:
        logs: Files or records of flights of one vehicle, of any format.
        vehicle: A name, a file or a record.
        out: Folder of report.html and validation.json.
        options: Fields of `benchmarks.ValidateOptions`: use, skip, feed, pose_rate, sensor_delay, windows.

    Returns:
        Its `done` is a `benchmarks.LogValidation`: word, said, rows, mismatches, missing, ...

    Raises:
        AirworthyError: One sentence, if something cannot be read or predicted, or an option is unknown.
    """
    from airworthy.benchmarks.validation.open_loop.job import call_text, run_log_validation
    from airworthy.benchmarks.validation.open_loop.validate import ValidateOptions

    several = [logs] if isinstance(logs, str | Path | Log) else list(logs)
    (chosen,) = configured("validate", options, ValidateOptions)
    folder = path_given(out, "out")
    done = run_log_validation(several, vehicle, folder, call_text(several, vehicle, options), chosen)
    return Result(folder, done.found.record(), done.found, done.page)


def task(name: str, **options: Any) -> Any:
    """Return what is asked of a flight, as its protocol: tracking, goal, hold, navigation or gates.

    Args:
        name: Which.
        options: Fields of the protocol.

    Raises:
        AirworthyError: One sentence: no such task, or an unknown option.
    """
    from airworthy import gates, tasks

    kinds = {
        "tracking": tasks.TrackingProtocol,
        "goal": tasks.GoalProtocol,
        "hold": tasks.HoldProtocol,
        "navigation": tasks.NavigationProtocol,
        "gates": gates.GateProtocol,
    }
    if name not in kinds:
        raise unknown_name("task", name, kinds)
    (protocol,) = configured(f"task {name}", options, kinds[name])
    return protocol


# ---- From keyword arguments to configurations -------------------------------------------------------------------------------


def configured(
    job: str, given: Mapping[str, Any], *kinds: type[Any], records: Sequence[str] = (), free: Sequence[str] = ()
) -> tuple[Any, ...]:
    """Build configurations of keyword arguments; their own schema checks the values.

    Args:
        job: Name of the call, for messages.
        given: Value by name: a field of one of the kinds, or of a configuration that is a field of theirs.
        kinds: Frozen dataclasses; a name belongs to the first that has it.
        records: Fields that hold names or files, for which records may stand.
        free: Names that are no fields, and are the call's own.

    Raises:
        UnknownNameError: No kind has such a field; the message names the closest ones.
        AirworthyError: A value is not what its field holds.
    """
    homes = {name: (k, part) for k, kind in reversed(list(enumerate(kinds))) for name, part in _names(kind).items()}
    values: list[dict[str, Any]] = [{} for _ in kinds]
    parts: dict[tuple[int, str], dict[str, Any]] = {}
    for name, value in given.items():
        if name in free or (value is None and name in records):
            continue
        if name not in homes:
            raise unknown_name(f"option of {job}", name, homes)
        k, part = homes[name]
        several = _is_several(kinds[k], name) if not part else False
        plain = _plain(_named(value, given, kinds[k]) if name in records else value, several)
        plain = _counted(plain, _part(kinds[k], part) if part else kinds[k], name)
        (parts.setdefault((k, part), {}) if part else values[k])[name] = plain
    for (k, part), inner in parts.items():
        values[k].setdefault(part, _part(kinds[k], part)(**inner))
    return tuple(kind(**chosen) for kind, chosen in zip(kinds, values, strict=True))


def _names(kind: type[Any]) -> dict[str, str]:
    """Names that a configuration takes: its fields, and behind them those of the configurations in it, with theirs."""
    inner = {item.name: _part(kind, item.name) for item in fields(kind) if _part(kind, item.name) is not None}
    deep = {name.name: part for part, inside in inner.items() for name in fields(inside) if name.init}
    return {**deep, **{item.name: "" for item in fields(kind) if item.init}}


def _part(kind: type[Any], name: str) -> Any:
    """Class of the configuration that a field holds; None where it holds something else."""
    item: Field[Any] = next(item for item in fields(kind) if item.name == name)
    made = item.default_factory
    return made if made is not MISSING and is_dataclass(made) else None


def _is_several(kind: type[Any], name: str) -> bool:
    """Whether a field holds any number of things."""
    return typing.get_args(typing.get_type_hints(kind)[name])[-1:] == (...,)


def _plain(value: Any, several: bool) -> Any:
    """Return an array as tuples, and one thing as the only one of several."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        value = tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return (value,) if several and not isinstance(value, tuple) else value


def _counted(value: Any, kind: type[Any], name: str) -> Any:
    """Return a count that was written as 1e6 as the whole number that it is; everything else as it is."""
    hint = typing.get_type_hints(kind).get(name)
    whole = hint is int or (int in typing.get_args(hint) and float not in typing.get_args(hint))
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def _named(value: Any, given: Mapping[str, Any], kind: type[Any]) -> Any:
    """Write records beside the job's folder; returns their files' paths, and names as they are."""
    if isinstance(value, list | tuple):
        return tuple(_named(item, given, kind) for item in value)
    if not isinstance(value, Vehicle | Scene | Course):
        return str(value) if isinstance(value, Path) else value
    default = next((item.default for item in fields(kind) if item.name == "out"), "runs/given")
    out = Path(given.get("out", default))
    folder = make_folder(out.with_name(f"{out.name}_inputs"))
    if isinstance(value, Vehicle):
        write_vehicle(value, folder / f"{value.name}.toml")
        return str(folder / f"{value.name}.toml")
    if isinstance(value, Course):
        from airworthy.trajectories import write_course

        return str(write_course(value, folder / f"{value.name}.json"))
    from airworthy.scenes import write_scene

    return str(write_scene(value, folder / value.name))
