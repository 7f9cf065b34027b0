"""What makes a data set that data set: everything its bytes depend on."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, sha256
from airworthy.learning.datasets.config import LATER, DatasetConfig
from airworthy.learning.datasets.layout import SCHEMA_VERSION
from airworthy.learning.synthesis.cameras import flight_camera
from airworthy.scenes import Scene, scene
from airworthy.scenes.digest import scene_digest
from airworthy.sensors.projections import Pinhole
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

__all__ = ["changed_field", "described_identity", "digest_of", "scene_of"]


def scene_of(config: DatasetConfig) -> Scene | None:
    """The scene that is seen; None: there are no images."""
    return scene(config.scene) if config.pictured else None


def described_identity(config: DatasetConfig, device: str, place: Scene | None) -> dict[str, Any]:
    """Everything a data set's bytes depend on, but the instruction set of the machine.

    Args:
        config: Of the data set.
        device: Where it is made; its type counts.
        place: From `scene_of`.
    """
    flown = vehicle(config.vehicle)
    return {
        "schema_version": SCHEMA_VERSION,
        "airworthy": __version__,
        "device": device.partition(":")[0],
        "configuration": config.described(),
        "vehicle_sha256": sha256(json_text(flown)),
        "course_sha256": {name: sha256(json_text(course(name))) for name in config.courses},
        "scene_sha256": None if place is None else scene_digest(place),
        "camera": described_camera(config) if config.pictured else None,
    }


def described_camera(config: DatasetConfig) -> dict[str, Any]:
    """The camera of the images: size, intrinsics [px], mount in the body (x forward, y left, z up) [m]."""
    device = flight_camera(vehicle(config.vehicle), config.camera, config.view)
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


def digest_of(identity: dict[str, Any]) -> str:
    """SHA-256 of what `described_identity` gave."""
    return sha256(json_text(identity))


def changed_field(before: dict[str, Any], now: dict[str, Any], where: str) -> AirworthyError:
    """The error for a folder that holds another data set: names the first difference."""
    old, new = {**LATER, **before.get("configuration", {})}, {**LATER, **now["configuration"]}
    for name, value in new.items():
        if old.get(name) != value:
            return AirworthyError(
                f"{where!r} holds a data set with {name} {_told(old.get(name))}, not {_told(value)}: keep its own options, or"
                " choose another --out."
            )
    names = [name for name in now if before.get(name) != now[name]]
    return AirworthyError(
        f"{where!r} holds a data set of another {_WORDS.get(names[0], names[0]) if names else 'kind'}, so its bytes would not"
        " match: choose another --out."
    )


_WORDS = {
    "schema_version": "layout",
    "airworthy": f"version of Airworthy (this is {__version__})",
    "device": "type of device",
    "vehicle_sha256": "record of the vehicle",
    "course_sha256": "course of the same name",
    "scene_sha256": "scene of the same name",
    "camera": "camera in the vehicle's record",
}


def _told(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
