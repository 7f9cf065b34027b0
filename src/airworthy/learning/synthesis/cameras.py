"""The camera through which a policy sees: a drone's own camera, at the policy's view or whole."""

from __future__ import annotations

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.splats.policy_view import PolicyView
from airworthy.vehicles import Vehicle

__all__ = ["VIEWS", "flight_camera", "view_side"]

VIEWS = ("none", "full")
"""Names of views; every other view is the side of the policy's image [px]."""
SIDE_MIN, SIDE_MAX, POLICY_SIDE = 16, 1024, 224


def view_side(view: str) -> int | None:
    """Side of a policy's image [px]; None: the view is one of `VIEWS`.

    Raises:
        UnknownNameError: It is neither a name nor a number.
        AirworthyError: The number is out of range.
    """
    if view in VIEWS:
        return None
    if not (view.isascii() and view.isdigit()):
        raise unknown_name("view", view, VIEWS, "A view is also the side of the policy's image in pixels, as 224 or 112.")
    side = int(view)
    if not SIDE_MIN <= side <= SIDE_MAX:
        raise AirworthyError(f"The policy's image has a side of {side} px; expected {SIDE_MIN} to {SIDE_MAX}.")
    return side


def flight_camera(vehicle: Vehicle, camera: str = "camera", view: str = "224") -> Device:
    """A camera that a vehicle's record carries, mounted, at a view.

    The policy's image is the camera's, resized to a square and cut by an eighth, which is a change of intrinsics
    (`sensors.splats.policy_view`); of another side it shows the same in other pixels.

    Args:
        vehicle: Whose record.
        camera: Name of the sensor in the record; of the reference drone "camera" (idealised mount) or "camera_calibrated".
        view: Side of the policy's image [px], or "full".

    Raises:
        UnknownNameError: The record has no such camera.
        AirworthyError: It is no pinhole without distortion, or the view cannot be used.
    """
    carried = {name: device for name, device in carried_sensors(vehicle).items() if device.kind == "camera"}
    if camera not in carried:
        raise unknown_name("camera", camera, carried, f"These are the cameras of vehicle {vehicle.name!r}.")
    device, side = carried[camera].variant(channels=("rgb",), randomize_mount=False), view_side(view)
    if side is None:
        return device
    whole = device.projection
    if not isinstance(whole, Pinhole) or whole.distortion.any:
        raise AirworthyError(
            f"The policy's view is cut from a pinhole's image without distortion; camera {camera!r} is no such."
        )
    intrinsics = PolicyView().intrinsics((whole.fx, whole.fy, whole.cx, whole.cy), (whole.width, whole.height))
    fx, fy, cx, cy = (float(value) for value in intrinsics * (side / POLICY_SIDE))
    return device.variant(projection=Pinhole(side, side, fx, fy, cx, cy))
