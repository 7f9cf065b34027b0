"""The sensors that a vehicle's record says it carries, as devices."""

from __future__ import annotations

from airworthy.core.errors import AirworthyError, AssetError, UnknownNameError, unknown_name
from airworthy.core.files import parse_toml
from airworthy.core.frames import BODY_FROM_CAMERA, conjugate, multiply, normalize
from airworthy.optics.distortion import PlumbBob
from airworthy.optics.projections import Pinhole
from airworthy.sensors.devices import Device, device, device_from
from airworthy.sensors.mounting import Mount
from airworthy.sensors.own import is_own
from airworthy.splats.policy_view import PolicyView
from airworthy.vehicles import Vehicle
from airworthy.vehicles.record import SensorMount

__all__ = ["POLICY_SIDE", "policy_camera_name", "policy_cut", "vehicle_camera"]

_INTRINSICS = ("width", "height", "fx", "fy", "cx", "cy")
_DISTORTION = ("k1", "k2", "p1", "p2", "k3")


def carried_sensors(vehicle: Vehicle) -> dict[str, Device]:
    """Return devices by the names in the record, mounted; inertial sensors are left out, since the step simulates them.

    A camera's orientation in a record is that of its optical frame; of every other sensor it is the mount's.

    Raises:
        AirworthyError: If a sensor names no device and is no camera with its intrinsics.
    """
    return {mount.name: _carried(vehicle, mount) for mount in vehicle.sensors if mount.kind != "imu"}


def _carried(vehicle: Vehicle, mount: SensorMount) -> Device:
    numbers = dict(mount.parameters)
    if mount.device:
        item = _device_of(vehicle, mount)
    elif mount.kind == "camera" and all(name in numbers for name in _INTRINSICS):
        item = Device(mount.name, "camera", _pinhole(numbers), channels=("rgb",), source=f"record of vehicle {vehicle.name}")
    else:
        raise AirworthyError(
            f"Sensor {mount.name!r} of vehicle {vehicle.name!r} is of kind {mount.kind!r} and names no device: write"
            f' device = "NAME" beside it, NAME one of `airworthy sensors`, or of a kind = "camera" the parameters'
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


def _device_of(vehicle: Vehicle, mount: SensorMount) -> Device:
    if mount.device_table:
        return _own_device(vehicle, mount)
    try:
        return device(mount.device)
    except AirworthyError as error:
        if not is_own(mount.device):
            raise UnknownNameError(f"Sensor {mount.name!r} of vehicle {vehicle.name!r}: {error}") from error
    # Reading a vehicle's file takes up what lies beside it; a class is code, which a record does not hold.
    raise AirworthyError(
        f"Sensor {mount.name!r} of vehicle {vehicle.name!r} names the device {mount.device!r}, of which the record holds no"
        f" table: name FILE.toml:NAME in the vehicle's own file, where it is read from beside it, or take it out of the record"
        f" and mount it when flying, --sensors {mount.name}={mount.device}, with the pose in that file (docs/howto/sensors.md)."
    )


def _own_device(vehicle: Vehicle, mount: SensorMount) -> Device:
    where = f"Sensor {mount.name!r} of vehicle {vehicle.name!r}, device {mount.device!r}"
    table = parse_toml(mount.device_table, where)
    try:
        return device_from(mount.device.rpartition(":")[2], table)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from error
    # Wrong types surface as whatever the first arithmetic on them raises.
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise AssetError(f"{where} cannot be used: {type(error).__name__}: {error}.") from error


def _pinhole(numbers: dict[str, float]) -> Pinhole:
    bent = PlumbBob(*(numbers.get(name, 0.0) for name in _DISTORTION))
    width, height, fx, fy, cx, cy = (numbers[name] for name in _INTRINSICS)
    return Pinhole(int(width), int(height), fx, fy, cx, cy, bent)


# -----------------------------------------------------------------------------------------------------------------------------
# The camera through which a policy sees: one that a vehicle's record carries, whole or at the policy's view.

# Source: spec/sousvide section 7, [R] SousVide src/sousvide/control/pilot.py: resize to 256 x 256, centre crop 224 x 224.
POLICY_SIDE, RESIZED_SIDE = 224, 256
"""Of the published policy's image, and of the whole one that it is cut from [px]."""


def policy_cut(width: int, height: int) -> PolicyView | None:
    """Return how whole images are resized and cut for the published view in other pixels; None: it would take parts of a pixel.

    Of odd multiples of 7 pixels it is half a pixel off the middle, as its intrinsics say.
    """
    if width * RESIZED_SIDE % POLICY_SIDE or height * RESIZED_SIDE % POLICY_SIDE:
        return None
    return PolicyView((width * RESIZED_SIDE // POLICY_SIDE, height * RESIZED_SIDE // POLICY_SIDE), (width, height))


_POLICY_CAMERA = "camera"
"""Where a vehicle carries several, a policy sees through the one of this name."""


def policy_camera_name(vehicle: Vehicle) -> str:
    """Return the name of the camera through which a policy sees: `camera`, or that of the only one.

    Raises:
        AirworthyError: There is none, or there are several and none is `camera`.
    """
    names = [name for name, device in carried_sensors(vehicle).items() if device.kind == "camera"]
    if _POLICY_CAMERA in names or len(names) == 1:
        return _POLICY_CAMERA if _POLICY_CAMERA in names else names[0]
    if not names:
        raise AirworthyError(f"Vehicle {vehicle.name!r} carries no camera, which a policy needs.")
    raise AirworthyError(
        f"Vehicle {vehicle.name!r} carries the cameras {', '.join(names)}: name the one that a policy is to see through"
        f" {_POLICY_CAMERA!r}."
    )


def vehicle_camera(vehicle: Vehicle, camera: str | None = None, side: int | None = None) -> Device:
    """Return a camera that a vehicle's record carries, mounted, giving colours.

    The policy's image is the camera's, resized to a square and cut by an eighth, which is a change of intrinsics
    (`PolicyView`); of another side it shows the same in other pixels.

    Args:
        vehicle: Whose record.
        camera: Name of the sensor in the record; of the reference drone "camera" (idealised mount) or "camera_calibrated".
            None: the first of them.
        side: Of the policy's image [px], published 224; None: the camera's image as it is.

    Raises:
        UnknownNameError: The record has no such camera.
        AirworthyError: The record has none at all, or a view is to be cut from what is no pinhole without distortion.
    """
    carried = {name: device for name, device in carried_sensors(vehicle).items() if device.kind == "camera"}
    if camera is None and not carried:
        raise AirworthyError(f"Vehicle {vehicle.name!r} carries no camera, which a policy needs.")
    name = next(iter(carried)) if camera is None else camera
    if name not in carried:
        raise unknown_name("camera", name, carried, f"These are the cameras of vehicle {vehicle.name!r}.")
    device = carried[name].variant(channels=("rgb",), randomize_mount=False)
    if side is None:
        return device
    whole = device.projection
    if not isinstance(whole, Pinhole) or whole.distortion.any:
        raise AirworthyError(f"The policy's view is cut from a pinhole's image without distortion; camera {name!r} is no such.")
    intrinsics = PolicyView().intrinsics((whole.fx, whole.fy, whole.cx, whole.cy), (whole.width, whole.height))
    fx, fy, cx, cy = (float(value) for value in intrinsics * (side / POLICY_SIDE))
    return device.variant(projection=Pinhole(side, side, fx, fy, cx, cy))
