"""`airworthy sensors`: list the device catalogue, show one device."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.errors import unknown_name
from airworthy.sensors.devices import Device, device, device_names
from airworthy.sensors.projections import Fisheye, Pinhole, Spherical
from airworthy.sensors.rig import rig, rig_names

PROG = "airworthy sensors"
_DESCRIPTION = "List the sensors there are. Also: airworthy sensors show NAME."


@dataclass(frozen=True)
class ListConfig:
    """What to list."""

    kind: str = ""
    """Only this kind: camera, depth_camera, stereo_camera, lidar, tof, radar, ranger or beacons."""
    json: bool = False
    """Print a JSON list of objects instead of a table."""


@dataclass(frozen=True)
class ShowConfig:
    """What to show."""

    name: Positional[str]
    """Name of a device or of a rig (`airworthy sensors` lists them)."""
    json: bool = False
    """Print every field as JSON."""


def main(argv: list[str]) -> int:
    """Run `airworthy sensors`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: dict[str, tuple[Any, Callable[[Any], int], str]] = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowConfig, _show, "Show every number of one sensor, and where it comes from."),
    }
    word = argv[0] if argv and not argv[0].startswith("-") else ""
    if word and word not in commands:
        raise unknown_name(f"'{PROG}' subcommand", word, commands)
    kind, run, description = commands[word or "list"]
    config: Any = run_tyro(kind, argv[1:] if word else argv, f"{PROG} {word}".strip(), description)
    return run(config)


def summary(item: Device) -> dict[str, Any]:
    """What a table shows of a device; angles in degrees, lengths in metres."""
    across, down = fields_of_view(item)
    return {
        "name": item.name,
        "kind": item.kind,
        "size": f"{item.height} x {item.width}",
        "horizontal_deg": across,
        "vertical_deg": down,
        "minimum_m": item.limits.minimum,
        "maximum_m": item.limits.maximum if math.isfinite(item.limits.maximum) else None,
        "rate_hz": item.rate,
        "noise": item.noise_enabled,
        "summary": item.summary,
    }


def fields_of_view(item: Device) -> tuple[float | None, float | None]:
    """Horizontal and vertical field of view [deg]; None where a sensor has none."""
    projection = item.projection
    if isinstance(projection, Pinhole):
        angles = (projection.horizontal_fov, projection.vertical_fov)
    elif isinstance(projection, Spherical):
        angles = (projection.azimuth[1] - projection.azimuth[0], projection.elevation[1] - projection.elevation[0])
    elif isinstance(projection, Fisheye):
        middle = (0.5 * projection.width, 0.5 * projection.height)
        rays = projection.unproject(
            [[0.0, middle[1]], [projection.width, middle[1]], [middle[0], 0.0], [middle[0], projection.height]]
        )
        off = np.arccos(np.clip(rays[:, 2], -1.0, 1.0))
        angles = (float(off[0] + off[1]), float(off[2] + off[3]))
    else:
        return None, None
    return round(math.degrees(angles[0]), 4), round(math.degrees(angles[1]), 4)


def _list(config: ListConfig) -> int:
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
    heads = ["name", "kind", "rows x columns", "across [deg]", "up [deg]", "from [m]", "to [m]", "rate [Hz]", "noise", "what"]
    show_table(f"{len(rows)} sensors", heads, [list(row.values()) for row in rows])
    if not config.kind:
        print(f"\nRigs: {', '.join(rig_names())}.")
    return 0


def _show(config: ShowConfig) -> int:
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
    """Every field of a device as plain values; angles in radians, as the library has them."""
    values: dict[str, Any] = {}
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
