"""The camera through which a policy sees: one that a vehicle's record carries, whole or at the policy's view."""

from __future__ import annotations

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.splats.policy_view import PolicyView
from airworthy.vehicles import Vehicle

__all__ = ["POLICY_SIDE", "policy_cut", "vehicle_camera"]

POLICY_SIDE, RESIZED_SIDE = 224, 256
"""Of the published policy's image, and of the whole one that it is cut from [px]."""


def policy_cut(width: int, height: int) -> PolicyView | None:
    """How whole images are resized and cut for the published view in other pixels; None: it would take parts of a pixel.

    Of odd multiples of 7 pixels it is half a pixel off the middle, as its intrinsics say.
    """
    if width * RESIZED_SIDE % POLICY_SIDE or height * RESIZED_SIDE % POLICY_SIDE:
        return None
    return PolicyView((width * RESIZED_SIDE // POLICY_SIDE, height * RESIZED_SIDE // POLICY_SIDE), (width, height))


def vehicle_camera(vehicle: Vehicle, camera: str | None = None, side: int | None = None) -> Device:
    """A camera that a vehicle's record carries, mounted, giving colours.

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
