"""`airworthy sensors`: list the device catalogue, show one device."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import Subcommands, emit_json, run_subcommand, show_table
from airworthy.core.errors import unknown_name
from airworthy.sensors.build import rig, rig_names
from airworthy.sensors.devices import Device, device, device_names, fields_of_view

PROG = "airworthy sensors"
_DESCRIPTION = "List the sensors there are. Also: airworthy sensors show NAME | gallery."


@dataclass(frozen=True)
class ListSensorsConfig:
    """What to list."""

    kind: str = ""
    """Only this kind: camera, depth_camera, stereo_camera, lidar, tof, radar, ranger or beacons."""
    json: bool = False
    """Print a JSON list of objects instead of a table."""


@dataclass(frozen=True)
class ShowSensorConfig:
    """What to show."""

    name: Positional[str]
    """Name of a device or of a rig (`airworthy sensors` lists them)."""
    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class GalleryOptions:
    """What to show and where to write it."""

    scene: str = "mid_gate"
    """The generated place (`airworthy scenes` lists them)."""
    scan: str = ""
    """The scanned place: a scene, mesh or cloud file; empty: scanned sculpture, where AIRWORTHY_DATA names the reference
    files."""
    bake: bool = True
    """Bake indirect light first; takes some seconds per place, once."""
    seed: int = 0
    """Key of the sensors' random numbers."""
    out: Path = Path("runs/gallery")
    """Folder for gallery.html."""
    json: bool = False
    """Print the page's path as JSON."""


def main(argv: list[str]) -> int:
    """Run `airworthy sensors`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "list": (ListSensorsConfig, _list, _DESCRIPTION),
        "show": (ShowSensorConfig, _show, "Show every number of one sensor, and where it comes from."),
        "gallery": (GalleryOptions, _gallery, "Make one page that shows every sensor in a generated and in a scanned place."),
    }
    return run_subcommand(PROG, commands, argv)


def summary(item: Device) -> dict[str, Any]:
    """Return what a table shows of a device; angles in degrees, lengths in metres."""
    across, down = fields_of_view(item)
    return {
        "name": item.name,
        "kind": item.kind,
        "size": f"{item.height} x {item.width}",
        "horizontal_deg": across,
        "vertical_deg": down,
        "minimum_m": item.limits.minimum,
        "maximum_m": item.limits.maximum if math.isfinite(item.limits.maximum) else None,
        "gives": gives(item),
        "rate_hz": item.rate,
        "noise": item.noise_enabled,
        "summary": item.summary,
    }


def gives(item: Device) -> str:
    """Return what its depths and ranges are: metres, or shares of the longest one; empty where it measures none."""
    return "" if item.kind in ("camera", "beacons") else "share" if item.limits.normalize else "m"


def _list(config: ListSensorsConfig) -> int:
    items = [device(name) for name in device_names()]
    if config.kind:
        kinds = sorted({item.kind for item in items})
        if config.kind not in kinds:
            raise unknown_name("kind of sensor", config.kind, kinds)
        items = [item for item in items if item.kind == config.kind]
    rows = [summary(item) for item in items]
    if config.json:
        emit_json(rows)
        return 0
    heads = [
        "name",
        "kind",
        "rows x columns",
        "across [deg]",
        "up [deg]",
        "from [m]",
        "to [m]",
        "gives",
        "rate [Hz]",
        "noise",
        "what",
    ]
    show_table(f"{len(rows)} sensors", heads, [list(row.values()) for row in rows])
    if not config.kind:
        print(f"\nRigs: {', '.join(rig_names())}.")
    return 0


def _gallery(options: GalleryOptions) -> int:
    from airworthy.reports.gallery import GalleryConfig, write_gallery

    config = GalleryConfig(options.scene, options.scan, options.bake, options.seed, options.out)
    path = write_gallery(config, quiet=options.json)
    if options.json:
        emit_json({"page": str(path)})
    else:
        print(f"Gallery: {path}")
    return 0


def _show(config: ShowSensorConfig) -> int:
    if config.name in rig_names():
        members = {name: fields(item) for name, item in rig(config.name).items()}
    else:
        members = {"": fields(device(config.name))}
    if config.json:
        emit_json(members if config.name in rig_names() else members[""])
        return 0
    for name, values in members.items():
        if name:
            print(f"{name}:")
        for key, value in values.items():
            print(f"  {key:18}{_shown(value)}" if name else f"{key:18}{_shown(value)}")
    return 0


def fields(item: Device) -> dict[str, Any]:
    """Return every field of a device as plain values; angles in radians, as the library has them."""
    values: dict[str, Any] = {}
    if gives(item):
        values["gives"] = gives(item)
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            model = {"model": type(value).__name__} if field.name == "projection" else {}
            value = {**model, **dataclasses.asdict(value)}
        values[field.name] = _plain(value)
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return "(" + ", ".join(_shown(item) for item in value) + ")"
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
