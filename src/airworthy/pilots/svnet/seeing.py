"""From what a mounted camera gives to the image that a policy was shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.svnet.contract import Contract, View
from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.splats.policy_camera import policy_cut, vehicle_camera
from airworthy.sensors.splats.policy_view import PolicyView
from airworthy.sensors.tone import to_8bit
from airworthy.vehicles import Vehicle

__all__ = ["check_camera", "policy_camera", "policy_images"]

_SAME = 0.02
"""Of a camera's intrinsics, relative to the size of the image: by as much they may differ from the policy's."""


def policy_images(view: View, rgb: NDArray[Any]) -> NDArray[np.uint8]:
    """8-bit images (n, H, W, 3) at a policy's view, from those of a camera: at this view already, or whole.

    Args:
        view: Of the policy.
        rgb: (n, h, w, 3) linear radiance, or 8 bits. Whole images are resized and cut as in `PolicyView`.

    Raises:
        AirworthyError: They are too small, or the view cannot be cut from whole images.
    """
    images = rgb if rgb.dtype == np.uint8 else to_8bit(rgb)
    if images.shape[1:3] == (view.height, view.width):
        return np.asarray(images)
    return np.asarray(_cut(view, images.shape[2], images.shape[1]).of(images))


def _cut(view: View, width: int, height: int) -> PolicyView:
    """How whole images are resized and cut."""
    found = policy_cut(view.width, view.height)
    if found is None or width < view.width or height < view.height:
        raise AirworthyError(
            f"A policy that sees {view.width} x {view.height} px got images of {width} x {height}: give it a camera at its own"
            " view (`policy_camera`)."
        )
    return found


def policy_camera(vehicle: Vehicle, contract: Contract, camera: str = "camera") -> Device:
    """A camera of a vehicle's record as a policy was trained to see through it: to be mounted for it.

    Args:
        vehicle: Whose record gives the mount.
        contract: Gives view and rate.
        camera: Name of the sensor in the record.

    Raises:
        UnknownNameError: The record has no such camera.
        AirworthyError: The policy does not see, or the record has no camera at all.
    """
    view = contract.view
    if view is None:
        raise AirworthyError(f"A policy of variant {contract.variant!r} does not see; it needs no camera.")
    lens = Pinhole(view.width, view.height, view.fx, view.fy, view.cx, view.cy)
    vehicle_camera(vehicle)  # a vehicle without any camera is told so, not that it has none of this name
    return vehicle_camera(vehicle, camera).variant(projection=lens, rate=contract.rate)


def check_camera(contract: Contract, device: Device) -> None:
    """Refuse a camera that shows something else than what the policy was trained on.

    Raises:
        AirworthyError: It gives no colours, is no pinhole without distortion, samples more rarely than the policy decides, or
            has other intrinsics.
    """
    view, lens = contract.view, device.projection
    if view is None:
        return
    if "rgb" not in device.channels or not isinstance(lens, Pinhole) or lens.distortion.any:
        raise AirworthyError(
            f"The policy sees colours of a pinhole without distortion; sensor {device.name!r} is no such camera."
        )
    if device.rate < contract.rate - 1e-6:
        raise AirworthyError(
            f"The policy decides at {contract.rate:g} Hz, sensor {device.name!r} samples at {device.rate:g} Hz: mount it with a"
            " higher rate."
        )
    given = np.array([lens.fx, lens.fy, lens.cx, lens.cy])
    if (lens.width, lens.height) != (view.width, view.height):
        given = _cut(view, lens.width, lens.height).intrinsics(given, (lens.width, lens.height))
    wanted, sides = np.array([view.fx, view.fy, view.cx, view.cy]), np.tile([view.width, view.height], 2)
    if (np.abs(given - wanted) > _SAME * sides).any():
        shown = ", ".join(f"{value:.1f}" for value in given), ", ".join(f"{value:.1f}" for value in wanted)
        raise AirworthyError(
            f"Sensor {device.name!r} shows the policy fx, fy, cx, cy of {shown[0]} px; it was trained on {shown[1]}."
        )
