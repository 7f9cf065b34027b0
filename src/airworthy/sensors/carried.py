"""The sensors that a vehicle's record says it carries, as devices."""

from __future__ import annotations

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import BODY_FROM_CAMERA, conjugate, multiply, normalize
from airworthy.sensors.devices import Device, device
from airworthy.sensors.distortion import PlumbBob
from airworthy.sensors.mounting import Mount
from airworthy.sensors.projections import Pinhole
from airworthy.vehicles import Vehicle
from airworthy.vehicles.record import SensorMount

_INTRINSICS = ("width", "height", "fx", "fy", "cx", "cy")
_DISTORTION = ("k1", "k2", "p1", "p2", "k3")


def carried_sensors(vehicle: Vehicle) -> dict[str, Device]:
    """Devices by the names in the record, mounted; inertial sensors are left out, since the step simulates them.

    A camera's orientation in a record is that of its optical frame; of every other sensor it is the mount's.

    Raises:
        AirworthyError: If a sensor names no device and is no camera with its intrinsics.
    """
    return {mount.name: _carried(vehicle, mount) for mount in vehicle.sensors if mount.kind != "imu"}


def _carried(vehicle: Vehicle, mount: SensorMount) -> Device:
    numbers = dict(mount.parameters)
    if mount.device:
        item = device(mount.device)
    elif mount.kind == "camera" and all(name in numbers for name in _INTRINSICS):
        item = Device(mount.name, "camera", _pinhole(numbers), channels=("rgb",), source=f"record of vehicle {vehicle.name}")
    else:
        raise AirworthyError(
            f"Sensor {mount.name!r} of vehicle {vehicle.name!r} names no device; give one of `airworthy sensors`, or a camera's"
            f" {', '.join(_INTRINSICS)}."
        )
    if mount.device and all(name in numbers for name in _INTRINSICS):
        item = item.variant(projection=_pinhole(numbers))
    attitude = normalize(mount.orientation)
    if item.projection.optical:
        attitude = multiply(attitude, conjugate(BODY_FROM_CAMERA))
    x, y, z, w = (float(value) for value in attitude)
    return item.variant(
        mount=Mount(mount.position, (x, y, z, w)), rate=numbers.get("rate_hz", item.rate), randomize_mount=False
    )


def _pinhole(numbers: dict[str, float]) -> Pinhole:
    bent = PlumbBob(*(numbers.get(name, 0.0) for name in _DISTORTION))
    width, height, fx, fy, cx, cy = (numbers[name] for name in _INTRINSICS)
    return Pinhole(int(width), int(height), fx, fy, cx, cy, bent)
