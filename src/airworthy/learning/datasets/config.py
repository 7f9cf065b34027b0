"""What a data set is made of: roll-outs, the place they are seen in, and how they lie in files."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import json_text, sha256
from airworthy.core.idle_options import IdleRule
from airworthy.core.schema import check_fields
from airworthy.learning.synthesis.config import ROLLOUTS_MAX, SynthesisConfig, flight_camera, view_side
from airworthy.optics.projections import Pinhole
from airworthy.scenes import Scene, scene
from airworthy.scenes.viewpoints import scene_digest
from airworthy.trajectories import course
from airworthy.vehicles import Vehicle, named_vehicle, vehicle_names

__all__ = [
    "IDLE_RULES",
    "PRESETS",
    "DatasetConfig",
    "changed_field",
    "config_from",
    "described_identity",
    "scene_of",
    "with_preset",
]

# ---- How a data set lies on disk --------------------------------------------------------------------------------------------
#
#     dataset.json            what it is, and the SHA-256 of every file
#     shard_00000/            roll-outs in shuffled order, those of one course together
#         rollouts.parquet    a row per roll-out, also of those that were not kept
#         pairs.parquet       a row per image, sensed state and command of the same instant
#         images.npy          (pairs, rows, columns, 3), 8 bits
#         shard.json          counts and SHA-256 of these files
#     vehicle.toml            the vehicle, where it came from a file
#     run.json                how the last run went: time by stage, machine
#     card.html               what is in it, to look at
#
# World: z up; body: x forward, y left, z up; quaternions x, y, z, w.

# Rises when a folder written before would be read wrongly.
SCHEMA_VERSION = 1
DATASET_FILE, RUN_FILE, CARD_FILE, VEHICLE_FILE = "dataset.json", "run.json", "card.html", "vehicle.toml"
PAIRS_FILE, ROLLOUTS_FILE, IMAGES_FILE, SHARD_FILE = "pairs.parquet", "rollouts.parquet", "images.npy", "shard.json"

_XYZ = ("x", "y", "z")
STATE_COLUMNS = (
    *(f"position_{a}_m" for a in _XYZ),
    *(f"velocity_{a}_m_s" for a in _XYZ),
    *(f"attitude_{a}" for a in (*_XYZ, "w")),
)
COMMAND_COLUMNS = ("thrust_share", *(f"rate_{a}_rad_s" for a in _XYZ))

PAIR_FIELDS: dict[str, type] = {
    "rollout": np.int64,
    "tick": np.int32,
    "t_s": np.float64,
    **{f"sensed_{name}": np.float32 for name in STATE_COLUMNS},
    **{f"true_{name}": np.float32 for name in STATE_COLUMNS},
    **{f"command_{name}": np.float32 for name in COMMAND_COLUMNS},
}
"""Columns of `pairs.parquet`. `rollout` is a roll-out's number, `t_s` the time on the course."""

ROLLOUT_FIELDS: dict[str, type] = {
    "rollout": np.int64,
    "course": np.int32,
    "start_s": np.float64,
    "mass_kg": np.float64,
    "rotor_force_N": np.float64,
    "end_error_m": np.float64,
    "failed_ticks": np.int32,
    "kept": np.bool_,
}
"""Columns of `rollouts.parquet`. `course` counts in the configuration's courses; `end_error_m` is what is kept by."""


def shard_name(index: int) -> str:
    """Return the folder of a shard."""
    return f"shard_{index:05d}"


# -----------------------------------------------------------------------------------------------------------------------------

# A seed fills one word of Philox's key, and fits a signed number of 64 bits on file.
SEED_LIMIT = 1 << 63
LIGHT_MAX, NOISE_MAX = 100.0, 255.0
"""Of an image's brightness, as a factor, and of its noise [counts]: beyond them nothing is left to see."""
LATER: dict[str, Any] = {"clear": 0.0, "keep_rate": 10.0}
"""Fields that came after data sets had been made: at these values they are left out of what is described, so that a data set of
before is still itself."""


@dataclass(frozen=True)
class DatasetConfig(SynthesisConfig):
    """A data set of expert roll-outs.

    Raises:
        AirworthyError: If a number is out of range or a name unknown.
    """

    scene: str = "hall"
    """What is seen: a scene by name (see `airworthy scenes`) or path."""
    clear: float = 0.0
    """Each course is seen in the scene without what stands this near its path [m], as `airworthy evaluate` clears it; 0: as it
    is."""
    view: str = "224"
    """Of the images: the side of the policy's view [px] (224 as published, 112 shows the same in a quarter of the pixels), full
    for the camera's own, none for no images."""
    camera: str = "camera"
    """Of the vehicle's record; for carl, camera is the idealised mount and camera_calibrated the measured one."""
    light: tuple[float, float] = (1.0, 1.0)
    """Brightness of each roll-out, uniform between these factors of linear radiance."""
    image_noise: float = 0.0
    """Standard deviation of each pixel's noise [counts of 255]."""
    shard: int = 50
    """Roll-outs per shard; the last shard of a course is held out."""

    def __post_init__(self) -> None:
        check_fields(self)
        super().__post_init__()
        view_side(self.view)
        low, high = self.light
        if not 0.0 < low <= high <= LIGHT_MAX:
            raise AirworthyError(
                f"Brightness is between {low} and {high}; expected two factors above 0, up to {LIGHT_MAX:g}, the smaller one"
                " first."
            )
        if self.image_noise > NOISE_MAX:
            raise AirworthyError(f"The images have noise of {self.image_noise} counts; expected 0 to {NOISE_MAX:g}.")
        if not 1 <= self.shard <= ROLLOUTS_MAX:
            raise AirworthyError(f"A shard has {self.shard} roll-outs; expected 1 to {ROLLOUTS_MAX:,}.")
        if not 0 <= self.seed < SEED_LIMIT:
            raise AirworthyError(f"The seed is {self.seed}; expected 0 to 2^63 - 1.")
        if len(set(self.courses)) < len(self.courses):
            raise AirworthyError(f"The courses {', '.join(self.courses)} name one twice; name each once.")

    @property
    def pictured(self) -> bool:
        """Whether there are images."""
        return self.view != "none"

    def described(self) -> dict[str, Any]:
        """Return every field as plain data, in order, but those of `LATER` that are not used."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if name not in LATER or value != LATER[name]}

    @property
    def scene_title(self) -> str:
        """What is seen, in words."""
        if not self.pictured:
            return "none"
        return f"{self.scene}, cleared {self.clear:g} m round each course" if self.clear else self.scene


IDLE_RULES = (
    IdleRule(
        ("scene", "clear", "camera", "light", "image_noise"),
        lambda config: not config.pictured,
        "with --view none, which makes no images",
        "choose another view",
    ),
    IdleRule(
        ("delay",),
        lambda config: round(config.delay * config.physics_rate) == 0,
        "below half a step of the simulation, in whole ones of which it is taken",
        "raise it or --physics-rate",
    ),
    IdleRule(("keep_rate",), lambda config: config.keep_within == 0.0, "with --keep-within 0, which keeps all roll-outs"),
)
"""Options that change nothing beside the others."""


def config_from(values: Mapping[str, Any], where: str) -> DatasetConfig:
    """Return a configuration from what `described` gave.

    Args:
        values: By field.
        where: The file they are from, for the message.

    Raises:
        AssetError: A field is missing, unknown or of another type.
    """
    hints = typing.get_type_hints(DatasetConfig)
    names = {field.name for field in fields(DatasetConfig)}
    values = {**LATER, **values}
    wrong = sorted(names.symmetric_difference(values))
    if wrong:
        raise AssetError(f"{where!r} has no field {wrong[0]!r}, or one too many: another version wrote it, or it was edited.")
    try:
        return DatasetConfig(**{name: _typed(values[name], hints[name], name) for name in sorted(names)})
    except (TypeError, AirworthyError) as error:
        raise AssetError(f"{where!r} holds no usable configuration: {error}") from error


def _typed(value: Any, hint: Any, name: str) -> Any:
    if isinstance(hint, types.GenericAlias) and isinstance(value, list):
        wanted = typing.get_args(hint)
        if wanted[-1] is Ellipsis or len(wanted) == len(value):
            return tuple(_typed(item, wanted[0], name) for item in value)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise TypeError(f"{name} cannot be {value!r}."[:200])


# ---- Values for a purpose, beside the published ones -------------------------------------------------------------------------

PRESETS: dict[str, dict[str, Any]] = {
    "published": {},
    # Ours: of a course of 11 s 880 roll-outs, which is 35,200 pairs, about as many as let a policy fly a captured lawn. Light
    # and noise of the pixels vary, since a place of one's own is not lit as it was on the day of its capture.
    "own": {
        "per_second": 8.0,
        "repetitions": 10,
        "keep_rate": 100.0,
        "view": "112",
        "light": (0.6, 1.2),
        "image_noise": 2.0,
    },
    # Ours: enough to look at the card.
    "look": {"per_second": 2.0, "repetitions": 2, "keep_rate": 100.0, "view": "64", "shard": 10},
}
"""By name, what differs from the published values: own, for a place and a course of one's own, in minutes; look, in seconds."""


def with_preset(config: DatasetConfig, name: str) -> DatasetConfig:
    """Return a configuration with a preset's values in the place of all those that are at their defaults.

    Args:
        config: What was chosen.
        name: One of `PRESETS`.

    Raises:
        UnknownNameError: There is no such preset.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    usual = DatasetConfig()
    values = {key: value for key, value in PRESETS[name].items() if getattr(config, key) == getattr(usual, key)}
    if config.view == "none":  # without images nothing reads what is about images
        values = {key: value for key, value in values.items() if key not in ("view", "light", "image_noise")}
    if config.keep_within == 0.0:
        values.pop("keep_rate", None)
    return replace(config, **values)


# ---- What makes a data set that data set: everything its bytes depend on ----------------------------------------------------


def scene_of(config: DatasetConfig) -> Scene | None:
    """Return the scene that is seen; None: there are no images."""
    return scene(config.scene) if config.pictured else None


def vehicle_digest(flown: Vehicle) -> str:
    """Return the SHA-256 of a vehicle's record."""
    return sha256(json_text(flown))


def is_vehicle_file(config: DatasetConfig) -> bool:
    """Tell whether the vehicle is one of a file, of which a data set keeps a copy."""
    return config.vehicle not in vehicle_names()


def described_identity(config: DatasetConfig, device: str, scene: Scene | None) -> dict[str, Any]:
    """Return everything a data set's bytes depend on, but the instruction set of the machine.

    Args:
        config: Of the data set.
        device: Where it is made; its type counts.
        scene: From `scene_of`.
    """
    flown = named_vehicle(config.vehicle)
    return {
        "schema_version": SCHEMA_VERSION,
        "airworthy": __version__,
        "device": device.partition(":")[0],
        "configuration": config.described(),
        "vehicle_sha256": vehicle_digest(flown),
        "course_sha256": {name: sha256(json_text(course(name))) for name in config.courses},
        "scene_sha256": None if scene is None else scene_digest(scene),
        "camera": described_camera(config) if config.pictured else None,
    }


def described_camera(config: DatasetConfig) -> dict[str, Any]:
    """Return the camera of the images: size, intrinsics [px], mount in the body (x forward, y left, z up) [m]."""
    device = flight_camera(named_vehicle(config.vehicle), config.camera, config.view)
    lens, mount = device.projection, device.effective_mount
    numbers: dict[str, Any] = {"width": device.width, "height": device.height}
    if isinstance(lens, Pinhole):
        numbers |= {name: float(getattr(lens, name)) for name in ("fx", "fy", "cx", "cy")}
    attitude = np.round(np.asarray(mount.attitude, np.float64), 12).tolist()
    return {
        "sensor": config.camera,
        "view": config.view,
        **numbers,
        "mount_position_m": list(mount.position),
        "mount_attitude": attitude,
    }


def changed_field(before: dict[str, Any], now: dict[str, Any], where: str) -> AirworthyError:
    """Return the error for a folder that holds another data set: names the first difference.

    Args:
        before: What the folder tells of.
        now: What was asked for.
        where: The folder, for the message.
    """
    old, new = {**LATER, **before.get("configuration", {})}, {**LATER, **now["configuration"]}
    for name, value in new.items():
        if old.get(name) != value:
            return AirworthyError(
                f"{where!r} holds a data set with {name} {_shown(old.get(name))}, not {_shown(value)}: keep its own options, or"
                " choose another --out."
            )
    names = [name for name in now if before.get(name) != now[name]]
    return AirworthyError(
        f"{where!r} holds a data set of another {_LABELS.get(names[0], names[0]) if names else 'kind'}, so its bytes would not"
        " match: choose another --out."
    )


_LABELS = {
    "schema_version": "layout",
    "airworthy": f"version of Airworthy (this is {__version__})",
    "device": "type of device",
    "vehicle_sha256": "record of the vehicle",
    "course_sha256": "course of the same name",
    "scene_sha256": "scene of the same name",
    "camera": "camera in the vehicle's record",
}


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
