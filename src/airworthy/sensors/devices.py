"""Named exteroceptive sensors, as data with their source: `devices.toml`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import packaged_toml
from airworthy.core.frames import from_euler
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole, Projection, Spherical, UserRays
from airworthy.sensors.mounting import AT_ORIGIN, Mount, MountSpread, Vector3
from airworthy.sensors.noise import NO_LIMITS, QUIET, RangeLimits, RangeNoise
from airworthy.sensors.realism.settings import Realism

# ---- Named inertial sensors, as data with their source ----------------------------------------------------------------------
#
# The simulated sensor (`airworthy.simulation.Imu`) reads the same forces that move the vehicle. Densities are per square root
# of hertz: a sample at rate f has standard deviation density * sqrt(f), a bias step has walk / sqrt(f).


@cache
def _devices() -> dict[str, dict[str, Any]]:
    return packaged_toml("airworthy.sensors", "imu_devices.toml")


def imu_names() -> list[str]:
    """Return names of the known devices."""
    return sorted(_devices())


def imu_device(name: str) -> dict[str, Any]:
    """Return parameters of a device as keyword arguments of `airworthy.simulation.Imu`.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in _devices():
        raise unknown_name("inertial sensor", name, imu_names(), "Devices are listed in sensors/imu_devices.toml.")
    entry = _devices()[name]
    three = ("accelerometer_noise", "gyroscope_noise", "accelerometer_walk", "gyroscope_walk")
    values: dict[str, Any] = {key: _three(name, key, entry[key]) for key in three}
    values["accelerometer_limit"] = float(entry["accelerometer_limit"])
    values["gyroscope_limit"] = float(entry["gyroscope_limit"])
    values["bias_initial"] = tuple(entry["bias_initial"])
    return values


def _three(name: str, key: str, value: Any) -> tuple[float, float, float]:
    numbers = value if isinstance(value, list) else [value] * 3
    if len(numbers) != 3:
        raise AirworthyError(f"Inertial sensor {name!r} has {len(numbers)} numbers for {key}; expected 1 or 3.")
    x, y, z = (float(n) for n in numbers)
    return x, y, z


# -----------------------------------------------------------------------------------------------------------------------------

KINDS = ("camera", "depth_camera", "stereo_camera", "lidar", "tof", "radar", "ranger", "beacons")


@dataclass(frozen=True)
class Device:
    """What a sensor is; where it sits and when it samples may be changed when it is mounted."""

    name: str
    kind: str
    """One of `KINDS`; any word where a sensor of one's own has it."""
    projection: Projection
    limits: RangeLimits = NO_LIMITS
    noise: RangeNoise = QUIET
    noise_enabled: bool = False
    mount: Mount = AT_ORIGIN
    randomize_mount: bool = False
    """Whether the mount's spread is drawn at each reset."""
    rate: float = 30.0
    """Samples per second."""
    latency: float = 0.0
    """From the instant of a sample until it can be read [s]."""
    channels: tuple[str, ...] = ("depth",)
    """What it gives; see docs/howto/sensors.md."""
    baseline: float = 0.0
    """From a stereo camera to its second eye, to the right [m]."""
    points_in_world: bool = False
    """Points in the world frame instead of the sensor's."""
    sub_rays: int = 1
    """Rays per zone and direction, of which the nearest return counts."""
    rolling: bool = False
    """A LiDAR's columns fire one after the other over the time between two samples, the last one at the sample's stamp."""
    no_return: float = math.inf
    """What a ranger tells where nothing returns, before noise [m]."""
    signed: bool = False
    """A ranger's readings are negative, as in FlightGoggles' messages."""
    realism: Realism | str | Mapping[str, Any] | None = None
    """Of a camera's colours: a preset of `REALISM` by name, settings, or a table of pieces; None: linear radiance as it is."""
    quality: str = ""
    """Of a camera's colours: a profile of `sensors.quality`; empty: the shading's own defaults."""
    summary: str = ""
    source: str = ""

    @property
    def height(self) -> int:
        """Rows of a sample."""
        return self.projection.height // self.sub_rays

    @property
    def width(self) -> int:
        """Columns of a sample."""
        return self.projection.width // self.sub_rays

    @property
    def effective_noise(self) -> RangeNoise:
        """Noise in force."""
        return self.noise if self.noise_enabled else QUIET

    @property
    def effective_mount(self) -> Mount:
        """Mount in force."""
        return self.mount if self.randomize_mount else replace(self.mount, spread=None)

    def variant(self, **changes: Any) -> Device:
        """Return the same device with other fields.

        Raises:
            AirworthyError: If there is no such field.
        """
        unknown = sorted(set(changes) - set(self.__dataclass_fields__))
        if unknown:
            raise unknown_name("field of a device", unknown[0], self.__dataclass_fields__)
        return replace(self, **changes)


@cache
def _table() -> dict[str, dict[str, Any]]:
    return packaged_toml("airworthy.sensors", "devices.toml")


def device_names() -> list[str]:
    """Return names of the known devices."""
    return sorted(_table())


def device(name: str) -> Device:
    """Return a device of the catalogue.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in _table():
        raise unknown_name("sensor", name, device_names(), "Devices are listed in sensors/devices.toml.")
    return device_from(name, _table()[name])


def device_from(name: str, entry: dict[str, Any]) -> Device:
    """Return a device from an entry as in `devices.toml`.

    Raises:
        AirworthyError: If a field is unknown or cannot be used.
    """
    entry = dict(entry)
    if entry.get("kind") not in KINDS:
        raise unknown_name("kind of sensor", str(entry.get("kind")), KINDS, f"It is asked for by device {name!r}.")
    noise = dict(entry.pop("noise", {}))
    mount, box = entry.pop("mount", {}), entry.pop("mount_box", None)
    values: dict[str, Any] = {
        "projection": _projection(name, entry.pop("projection", {})),
        "limits": _built(name, "limits", RangeLimits, entry.pop("limits", {})),
        "noise_enabled": bool(noise.pop("enabled", False)),
        "noise": _built(name, "noise", RangeNoise, noise),
        "mount": _mount(name, mount, box),
        "randomize_mount": bool(mount.get("randomize", False)),
    }
    if "channels" in entry:
        entry["channels"] = tuple(entry["channels"])
    return _built(name, "entry", Device, {"name": name, **entry, **values})


def _built(name: str, part: str, kind: Any, values: dict[str, Any]) -> Any:
    unknown = sorted(set(values) - set(kind.__dataclass_fields__))
    if unknown:
        raise unknown_name(f"field of the {part} of device {name!r}", unknown[0], kind.__dataclass_fields__)
    return kind(**values)


def _projection(name: str, given: dict[str, Any]) -> Projection:
    values = dict(given)
    model = values.pop("model", "")
    builders = {"pinhole": _pinhole, "fisheye": _fisheye, "spherical": _spherical, "directions": _directions}
    if model not in builders:
        raise unknown_name("projection model", str(model), builders, f"It is asked for by device {name!r}.")
    try:
        return builders[model](values)
    except (TypeError, ValueError) as error:
        raise AirworthyError(f"The projection of device {name!r} cannot be used: {error}.") from None


def _pinhole(values: dict[str, Any]) -> Projection:
    if "distortion" in values:
        values["distortion"] = PlumbBob(*values["distortion"])
    if "fx" in values:
        return Pinhole(**values)
    for axis in ("horizontal", "vertical"):
        if f"{axis}_fov" in values:
            values[axis] = math.radians(values.pop(f"{axis}_fov"))
    return Pinhole.from_fov(**values)


def _fisheye(values: dict[str, Any]) -> Projection:
    polynomial = AnglePolynomial(*values.pop("distortion", ()))
    if "horizontal_fov" in values:
        return Fisheye.from_fov(horizontal=math.radians(values.pop("horizontal_fov")), polynomial=polynomial, **values)
    return Fisheye(polynomial=polynomial, **values)


def _spherical(values: dict[str, Any]) -> Projection:
    for key in ("azimuth", "elevation", "elevations"):
        if key in values:
            values[key] = tuple(math.radians(angle) for angle in values[key])
    return Spherical(**values)


def _directions(values: dict[str, Any]) -> Projection:
    return UserRays(np.asarray(values.pop("directions"), np.float64)[None], **values)


def _mount(name: str, mount: dict[str, Any], box: dict[str, Any] | None) -> Mount:
    position, euler = _devices_three(mount.get("position", (0, 0, 0))), _angles(mount.get("euler", (0, 0, 0)))
    roll, pitch, yaw = euler
    x, y, z, w = (float(value) for value in from_euler(roll, pitch, yaw))
    if box is None:
        return Mount(position, (x, y, z, w))
    # The boxes are absolute in the file, as published; relative here, so that they follow another mount.
    shift = {key: _minus(_devices_three(box[key]), position) for key in ("translation_low", "translation_high")}
    turn = {key: _minus(_angles(box[key]), euler) for key in ("euler_low", "euler_high")}
    return Mount(position, (x, y, z, w), _built(name, "mount_box", MountSpread, {**shift, **turn}))


def _devices_three(value: Any) -> Vector3:
    x, y, z = (float(v) for v in value)
    return x, y, z


def _angles(value: Any) -> Vector3:
    return _devices_three([math.radians(v) for v in value])


def _minus(a: Vector3, b: Vector3) -> Vector3:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


# ---- How wide a device sees -------------------------------------------------------------------------------------------------


def fields_of_view(item: Device) -> tuple[float | None, float | None]:
    """Return horizontal and vertical field of view [deg]; None where a sensor has none."""
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
