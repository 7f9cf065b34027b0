"""The camera through which a policy sees: a drone's own camera, at the policy's view or whole."""

from __future__ import annotations

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.devices import Device
from airworthy.sensors.splats.policy_camera import vehicle_camera
from airworthy.vehicles import Vehicle

__all__ = ["VIEWS", "flight_camera", "view_side"]

VIEWS = ("none", "full")
"""Names of views; every other view is the side of the policy's image [px]."""
SIDE_MIN, SIDE_MAX = 16, 1024


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

    Args:
        vehicle: Whose record.
        camera: Name of the sensor in the record; of the reference drone "camera" (idealised mount) or "camera_calibrated".
        view: Side of the policy's image [px], or "full".

    Raises:
        UnknownNameError: The record has no such camera.
        AirworthyError: The record has no camera at all, it is no pinhole without distortion, or the view cannot be used.
    """
    vehicle_camera(vehicle)  # a vehicle without any camera is told so, not that it has none of this name
    return vehicle_camera(vehicle, camera, view_side(view))
