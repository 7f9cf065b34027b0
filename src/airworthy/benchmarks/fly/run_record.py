"""What a run's folder keeps besides its flights, so that they can be judged and flown again from it alone.

`record/record.json` names every input with its SHA-256: vehicles, course, trajectory, scene, gains, policy, the file of a pilot
of one's own. Resolved copies lie beside it; of a scene only where it came from files, since a generator's name makes it again.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import airworthy
from airworthy.benchmarks.fly.config import DEFAULT_COURSE, FlyConfig, control_of, read_as_it_is
from airworthy.benchmarks.navigation.methods import is_own_pilot
from airworthy.control.gain_parameters import gain_rows
from airworthy.control.gain_sets import is_gain_file, read_gain_set, write_gain_set
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import copy_file, json_text, make_folder, read_json, sha256, sha256_file, write_json
from airworthy.core.native_kernel import quiet_warp
from airworthy.core.own_modules import own_digest, own_modules
from airworthy.trajectories import Course, Trajectory, course, trajectory_file
from airworthy.trajectories.course_file import read_course, write_course
from airworthy.vehicles import Vehicle, read_vehicle, vehicle, write_vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = [
    "RECORD",
    "RunRecord",
    "read_record",
    "recorded_scene",
    "recorded_vehicles",
    "repeated",
    "surroundings",
    "write_record",
]

RECORD = "record"
"""Folder inside a run's folder."""
_FILE, _VERSION, _BYTES_MAX = "record.json", 1, 64 << 20
_COURSE, _TRAJECTORY, _SCENE, _POLICY = "course.json", "trajectory.json", "scene", "policy"
_GAINS, _PILOT, _PILOT_FOLDER = "gains.toml", "pilot.py", "pilot"
_SENSOR_PICTURES = "seen.json"
_COPY_BYTES = 256 << 20
"""Scenes of more than this are named by their digest only."""


@dataclass(frozen=True)
class RunRecord:
    """Inputs of a run as they were resolved, and what was drawn."""

    vehicles: tuple[str, ...]
    """Names; the files are vehicle_0.toml, vehicle_1.toml, ..."""
    course: str | None
    waypoints: tuple[str, ...]
    """Path that was flown, which the scene may have named."""
    digests: Mapping[str, str]
    """Input ("vehicle 0", "course", "trajectory", "scene", "gains 0", "policy", "pilot") to SHA-256."""
    copies: Mapping[str, str]
    """Input to its copy inside this folder, for those that came from a user's file."""
    sources: Mapping[str, str]
    """Input to the file that it came from, as it was named."""
    gains: Sequence[Mapping[str, Any]]
    """Of each vehicle: gains in force, by row; empty where no control law was between pilot and rotors."""
    parameters: Mapping[str, Sequence[float]]
    """What was randomised: name with unit to a value per flight."""
    surroundings: Mapping[str, str]
    """Versions, instruction set and source on which bits may depend."""
    folder: Path = field(default=Path(), compare=False)
    """Where the copies lie."""

    def vehicle(self, index: int) -> Vehicle:
        """Return one of the vehicles, from its copy."""
        return read_vehicle(self.folder / _vehicle_file(index))

    def trajectory(self) -> Trajectory:
        """Return what was to be followed."""
        return trajectory_file.load(self.folder / _TRAJECTORY)

    def course_flown(self) -> Course | None:
        """Return the course, from its copy; None where way-points were given."""
        return read_course(self.folder / _COURSE) if (self.folder / _COURSE).is_file() else None

    def scene_of(self, config: FlyConfig) -> Scene | None:
        """Return the scene: from its copy, or by its name."""
        if config.scene is None:
            return None
        from airworthy.benchmarks.fly.scene import place_of
        from airworthy.scenes import scene

        return scene(str(self.folder / self.copies["scene"])) if "scene" in self.copies else place_of(config)

    def digest_now(self, name: str, config: FlyConfig | None = None) -> str:
        """Return the SHA-256 of an input of `sources`, read again from its file as it is now.

        Args:
            name: Of the input.
            config: Of the run, which says how the file of a scene is read; None: as usual.

        Raises:
            AirworthyError: It is gone or damaged.
        """
        source = self.sources[name]
        if name == "course":
            return _digest_of(read_course(source))
        if name == "scene":
            from airworthy.benchmarks.fly.scene import place_of
            from airworthy.scenes import scene_digest

            found = place_of(replace(config or FlyConfig(), scene=source))
            assert found is not None
            return scene_digest(found)
        if name == "policy":
            return _digest_of_folder(Path(source))
        if name == "gains":
            return _digest_of_gains(source)
        if name == "pilot":
            return own_digest(source)
        return _digest_of_vehicle(read_vehicle(source))

    def sensor_pictures(self) -> list[dict[str, str]]:
        """Return pictures of what sensors saw last, for the report."""
        path = self.folder / _SENSOR_PICTURES
        found = read_json(path, _BYTES_MAX) if path.is_file() else []
        if not isinstance(found, list):
            raise AssetError(f"{str(path)!r} is no list of pictures.")
        return found


def write_record(
    run: Path,
    config: FlyConfig,
    flown_config: FlyConfig,
    vehicles: Sequence[Vehicle],
    trajectory: Trajectory,
    scene: Scene | None,
    level: str,
    parameters: Mapping[str, Any],
    pictures: Sequence[Mapping[str, str]] = (),
) -> RunRecord:
    """Write the record of a run.

    Args:
        run: The run's folder.
        config: As it was asked for.
        flown_config: The same with course and way-points as flown.
        vehicles: As flown.
        trajectory: As flown.
        scene: The scene.
        level: Control level of the pilot.
        parameters: What was randomised: name with unit to (env,).
        pictures: Pictures of what sensors saw last.
    """
    folder = make_folder(run / RECORD)
    flown = None if flown_config.waypoints else course(DEFAULT_COURSE if flown_config.course is None else flown_config.course)
    copies: dict[str, str] = {}
    for index, item in enumerate(vehicles):
        write_vehicle(item, folder / _vehicle_file(index))
    if flown is not None:
        write_course(flown, folder / _COURSE)
    trajectory_file.save(trajectory, folder / _TRAJECTORY)
    sources = _sources(config)
    if scene is not None and "scene" in sources and _bytes_of(scene) <= _COPY_BYTES:
        from airworthy.scenes import write_scene

        write_scene(scene, folder / _SCENE)
        copies["scene"] = _SCENE
    if "policy" in sources:
        copies["policy"] = _copied_policy(Path(sources["policy"]), folder)
    if "gains" in sources:
        write_gain_set(read_gain_set(sources["gains"]), folder / _GAINS)
        copies["gains"] = _GAINS
    if "pilot" in sources:
        copies["pilot"] = _copied_pilot(Path(sources["pilot"]), folder)
    if pictures:
        write_json(folder / _SENSOR_PICTURES, list(pictures))
    gains = [_gains(item, config, level) for item in vehicles]
    record = RunRecord(
        tuple(item.name for item in vehicles),
        flown_config.course,
        flown_config.waypoints,
        digests_of(config, vehicles, flown, trajectory, scene, gains),
        copies,
        sources,
        gains,
        {name: np.asarray(values, np.float64).tolist() for name, values in parameters.items()},
        surroundings(),
        folder,
    )
    write_json(folder / _FILE, {"version": _VERSION, **{k: v for k, v in asdict(record).items() if k != "folder"}})
    return record


def read_record(run: str | Path) -> RunRecord:
    """Return the record of a run; raises AssetError where it is missing, damaged, or its copies are not what it says."""
    folder = Path(run) / RECORD
    path = folder / _FILE
    if not path.is_file():
        raise AssetError(f"{str(run)!r} has no {RECORD}/{_FILE}: it is no run of `airworthy fly`, or one of an older version.")
    content = read_json(path, _BYTES_MAX)
    known = [name for name in RunRecord.__dataclass_fields__ if name != "folder"]
    if not isinstance(content, dict) or content.get("version") != _VERSION or set(content) != {"version", *known}:
        raise AssetError(f"{str(path)!r} is not the record of a run in version {_VERSION}.")
    lists = ("vehicles", "waypoints", "gains")
    sound = all(isinstance(content[name], list if name in lists else dict) for name in known if name != "course")
    sound = sound and isinstance(content["course"], str | None) and bool(content["vehicles"])
    sound = sound and all(isinstance(token, str) for name in lists[:2] for token in content[name])
    # The copies lie where they always do: a record leads nowhere else.
    places = {"scene": (_SCENE,), "policy": (_POLICY,), "gains": (_GAINS,), "pilot": (_PILOT, _pilot_place(content["copies"]))}
    if not sound or not all(place in places.get(name, ()) for name, place in content["copies"].items()):
        raise AssetError(f"{str(path)!r} is not the record of a run: it was changed by hand.")
    values: dict[str, Any] = {name: tuple(content[name]) if name in lists else content[name] for name in known}
    record = RunRecord(**values, folder=folder)
    _check_copies(record)
    return record


def recorded_vehicles(run: str | Path, meta: Mapping[str, Any]) -> list[Vehicle]:
    """Return who flew: from the run's own copies, or by the names of its meta data where it has none.

    Raises:
        AirworthyError: Nothing says who flew, or it is damaged or gone.
    """
    if (Path(run) / RECORD / _FILE).is_file():
        record = read_record(run)
        return [record.vehicle(k) for k in range(len(record.vehicles))]
    shared = Path(run).resolve().parents[1] / "vehicle.toml"  # of an evaluation, whose flights are all of one vehicle
    if shared.is_file() and (kept := read_vehicle(shared)).name == meta.get("vehicle"):
        return [kept]
    config = meta.get("config")
    names = config.get("vehicle") if isinstance(config, dict) else None
    names = names if isinstance(names, list) and names else [meta.get("vehicle")]
    if not all(isinstance(name, str) and name for name in names):
        raise AirworthyError("The flights do not say who flew: give the vehicle, as in flyer=vehicle('carl').")
    return [read_vehicle(name) if name.endswith(".toml") or "/" in name else vehicle(name) for name in names]


def recorded_scene(run: str | Path, meta: Mapping[str, Any]) -> str | None:
    """Return where it was flown, for `scenes.scene`: the run's own copy, or its name; None in empty air."""
    if (Path(run) / RECORD / _FILE).is_file():
        record = read_record(run)
        if "scene" in record.copies:
            return str(record.folder / record.copies["scene"])
    name = meta.get("scene")
    return name if isinstance(name, str) and name else None


def _check_copies(record: RunRecord) -> None:
    """Refuse copies that were changed after the run."""
    found = {f"vehicle {k}": _digest_of_vehicle(record.vehicle(k)) for k in range(len(record.vehicles))}
    flown = record.course_flown()
    found["trajectory"] = digest_of_trajectory(record.trajectory())
    found |= {} if flown is None else {"course": _digest_of(flown)}
    if "pilot" in record.copies:  # is run when the flights are repeated: nothing but what flew may be
        found["pilot"] = own_digest(record.folder / record.copies["pilot"])
    for name, digest in found.items():
        if record.digests.get(name) != digest:
            raise AssetError(f"The {name} in {str(record.folder)!r} is not the one that was flown: it was changed afterwards.")


def repeated(config: FlyConfig, record: RunRecord) -> FlyConfig:
    """Return the configuration that flies a run again from its record alone."""
    files = tuple(str(record.folder.resolve() / _vehicle_file(k)) for k in range(len(record.vehicles)))
    asked = replace(config, vehicle=files, rotors=None, course=record.course, waypoints=record.waypoints)
    if record.course is not None:
        asked = replace(asked, course=str(record.folder.resolve() / _COURSE))
    if "scene" in record.copies:
        asked = replace(read_as_it_is(asked), scene=str(record.folder.resolve() / record.copies["scene"]))
    if "gains" in record.copies:
        asked = replace(asked, gains=str(record.folder.resolve() / record.copies["gains"]))
    if "policy" in record.copies:
        kind = config.pilot.partition(":")[0]
        asked = replace(asked, pilot=f"{kind}:{record.folder.resolve() / record.copies['policy']}")
    if "pilot" in record.copies:
        asked = replace(asked, pilot=f"{record.folder.resolve() / record.copies['pilot']}:{config.pilot.rpartition(':')[2]}")
    return asked


# ---- digests ---------------------------------------------------------------------------------------------------------


def digests_of(
    config: FlyConfig,
    vehicles: Sequence[Vehicle],
    flown: Course | None,
    trajectory: Trajectory,
    scene: Scene | None,
    gains: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
    """Return the SHA-256 of every input of a run.

    Args:
        config: Of the run: names files of gains and the folder of a policy.
        vehicles: Of the flights, in the order of the digests.
        flown: The course as it is flown; None: there is none.
        trajectory: The reference path over it.
        scene: The scene; None: there is none.
        gains: By vehicle, the controller's parameters that were set; an empty one has no digest.
    """
    found = {f"vehicle {k}": _digest_of_vehicle(item) for k, item in enumerate(vehicles)}
    if flown is not None:
        found["course"] = _digest_of(flown)
    found["trajectory"] = digest_of_trajectory(trajectory)
    if scene is not None:
        from airworthy.scenes import scene_digest

        found["scene"] = scene_digest(scene)
    found |= {f"gains {k}": sha256(json_text(rows)) for k, rows in enumerate(gains) if rows}
    if is_gain_file(config.gains):
        found["gains"] = _digest_of_gains(config.gains)
    policy = _policy(config.pilot)
    if policy is not None:
        found["policy"] = _digest_of_folder(policy)
    if is_own_pilot(config.pilot):
        found["pilot"] = own_digest(config.pilot.rpartition(":")[0])
    return found


def _digest_of_gains(path: str) -> str:
    gains = read_gain_set(path)
    order = [] if gains.priority is None else [gains.priority]  # older files have none, and keep their digest
    return sha256(json_text([gains.name, gains.midpoint(), gains.limits, *order]))


def _digest_of_vehicle(item: Vehicle) -> str:
    from airworthy.vehicles.files import vehicle_text

    return sha256(vehicle_text(item))


def _digest_of(flown: Course) -> str:
    return sha256(json_text(asdict(flown)))


def digest_of_trajectory(trajectory: Trajectory) -> str:
    """Return the SHA-256 of knots and coefficients, to the last bit."""
    held = hashlib.sha256()
    for array in (trajectory.knots, trajectory.coefficients, trajectory.yaw_knots, trajectory.yaw_coefficients):
        held.update(f"{array.shape}".encode() + np.ascontiguousarray(array, np.float64).tobytes())
    return held.hexdigest()


def _digest_of_folder(folder: Path) -> str:
    return sha256("".join(f"{part} {sha256_file(folder / part)}\n" for part in _policy_files(folder)))


def surroundings() -> dict[str, str]:
    """Return what equal bits are promised for: version, device type, instruction set; and what else they have depended on."""
    return {
        "airworthy": airworthy.__version__,
        "source": _source(),
        "warp": str(quiet_warp().config.version),
        "numpy": np.__version__,
        "instruction set": _instruction_set(),
    }


@cache
def _source() -> str:
    """SHA-256 over the package's own files: a checkout changes without its version."""
    held = hashlib.sha256()
    root = Path(airworthy.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".h", ".cpp", ".toml") and path.is_file():
            held.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return held.hexdigest()


@cache
def _instruction_set() -> str:
    """Architecture, and the vector units that compilers choose by."""
    machine = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return machine
    tokens = next((line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))), [])
    units = [name for name in ("avx2", "fma", "avx512f", "avx512vl", "asimd", "sve") if name in tokens]
    return " ".join([machine, *units])


# ---- copies ----------------------------------------------------------------------------------------------------------


def _vehicle_file(index: int) -> str:
    return f"vehicle_{index}.toml"


def _sources(config: FlyConfig) -> dict[str, str]:
    """Return inputs that came from files of the user, and these."""
    # A URDF is half of a vehicle; the record keeps the whole of it.
    files = {f"vehicle {k}": name for k, name in enumerate(config.vehicle) if _is_path(name)}
    found = {key: name for key, name in files.items() if not name.lower().endswith(".urdf")}
    if config.course is not None and _is_path(config.course):
        found["course"] = config.course
    if config.scene is not None:
        from airworthy.scenes.catalogue import is_path

        if is_path(config.scene) or Path(config.scene).exists():  # a course of the race hall has a slash, and is no path
            found["scene"] = config.scene
    if is_gain_file(config.gains):
        found["gains"] = config.gains
    policy = _policy(config.pilot)
    if policy is not None and not policy.is_relative_to(Path(airworthy.__file__).parent):
        found["policy"] = str(policy)
    if is_own_pilot(config.pilot):
        found["pilot"] = config.pilot.rpartition(":")[0]
    return found


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or bool(Path(name).suffix)


def _policy(pilot: str) -> Path | None:
    """Folder of the policy that flies; None where none does."""
    kind, _, policy = pilot.partition(":")
    if kind in ("policy", "avoid", "navigation"):
        return Path(policy)
    if kind != "svnet":
        return None
    from airworthy.pilots.svnet.contract import policy_folder

    return policy_folder(policy)


def _policy_files(folder: Path) -> list[str]:
    """Return the files of a policy by their places in its folder; one that sees through an encoder is nothing without it."""
    from airworthy.pilots.navigation_policy.contract import ENCODER
    from airworthy.pilots.network_files import CONTRACT_FILE, WEIGHTS_FILE

    own = [CONTRACT_FILE, WEIGHTS_FILE]
    return own + [f"{ENCODER}/{name}" for name in own] if (folder / ENCODER / CONTRACT_FILE).is_file() else own


def _copied_policy(policy: Path, folder: Path) -> str:
    where = make_folder(folder / _POLICY)
    for part in _policy_files(policy):
        make_folder((where / part).parent)
        copy_file(policy / part, where / part)
    return _POLICY


def _copied_pilot(file: Path, folder: Path) -> str:
    """Copy the file of a pilot, with what it imports from beside itself; returns its place."""
    beside = own_modules(file).files
    if not beside:
        copy_file(file, folder / _PILOT)
        return _PILOT
    # A folder of its own: modules may be called as anything that lies in the record.
    for part in (Path(file.name), *beside):
        make_folder((folder / _PILOT_FOLDER / part).parent)
        copy_file(file.parent / part, folder / _PILOT_FOLDER / part)
    return f"{_PILOT_FOLDER}/{file.name}"


def _pilot_place(copies: Any) -> str:
    """Return where a record says that its pilot lies if that is a file of the pilot's folder itself."""
    place = copies.get("pilot") if isinstance(copies, dict) else None
    return f"{_PILOT_FOLDER}/{Path(place).name}" if isinstance(place, str) and place.endswith(".py") else _PILOT


def _bytes_of(scene: Scene) -> int:
    """About how much a scene takes on disk: the arrays that it holds."""
    pending: list[Any] = [scene]
    total = 0
    while pending:
        value = pending.pop()
        if isinstance(value, np.ndarray):
            total += value.nbytes
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, tuple | list):
            pending += [item for item in value if not isinstance(item, float | int | str)]
        elif hasattr(value, "__dataclass_fields__"):
            pending += [getattr(value, name) for name in value.__dataclass_fields__]
    return total


def _gains(item: Vehicle, config: FlyConfig, level: str) -> dict[str, Any]:
    if not config.is_rigid:
        return {}
    try:
        rows = gain_rows(item, control_of(config), level, 1.0 / config.physics_rate, item.rotor_count)
    except AirworthyError:  # no law of this airframe is needed at this level, or the simulator would have said so
        return {}
    return {name: np.asarray(values, np.float64).tolist() for name, values in rows.items()}
