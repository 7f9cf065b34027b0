"""Where a film is seen from: the vehicle's own camera, one that follows it, one that circles it, one that stands still."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.evaluation.video_following import following
from airworthy.evaluation.video_track import FlightTrack
from airworthy.scenes.viewing import view
from airworthy.sensors import carried_sensors, device, device_names
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.projections import Pinhole, Projection
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.scenes import SceneBatch

__all__ = ["AUTO", "PLACED", "CameraPath", "camera_path", "camera_words", "eye_of", "sized"]

Floats = NDArray[np.float64]

AUTO = "auto"
ONBOARD = "onboard"
PLACED = ("chase", "orbit", "fixed")
"""Cameras that are not on the vehicle: they see it."""
WIDTH = 640
"""Of a film whose size nobody chose [px]."""
SHAPE = (640, 360)

PLAIN = Device("plain", "camera", Pinhole(640, 360, 462.956, 463.002, 323.076, 181.184), channels=("rgb",))
"""What a vehicle that carries no camera sees with: SOUS VIDE's intrinsics, at its middle, looking ahead."""

FOV = math.radians(62.0)
"""From left to right, of cameras that see the vehicle [rad]."""


@dataclass(frozen=True, eq=False)
class CameraPath:
    """One camera over the frames of a film."""

    name: str
    projection: Projection
    position: Floats
    """(n, 3) world [m]."""
    attitude: Floats
    """(n, 4) optical frame to world."""
    sees_vehicle: bool
    """Whether the vehicle stands before it."""


def camera_words(word: str, vehicle: Vehicle) -> tuple[str, str]:
    """Main camera and the one in the corner ("" for none) of "MAIN" or "MAIN+CORNER"; "auto" is "onboard+chase".

    Raises:
        AirworthyError: One of them is not known, or takes no images.
    """
    main, plus, corner = ("onboard+chase" if word == AUTO else word).partition("+")
    for name in (main, corner) if plus else (main,):
        if name not in PLACED:
            eye_of(name, vehicle)
    return main, corner


def eye_of(word: str, vehicle: Vehicle) -> Device:
    """The camera on a vehicle: its first with colour ("onboard"), one of its record by name, or one of the catalogue.

    Raises:
        AirworthyError: There is none of this name, or it takes no images.
    """
    carried = carried_sensors(vehicle)
    if word == ONBOARD:
        return next((item for item in carried.values() if _takes_images(item) and "rgb" in item.channels), PLAIN)
    if word not in carried and word not in device_names():
        known = [AUTO, ONBOARD, *PLACED, *carried, *(name for name in device_names() if _takes_images(device(name)))]
        raise unknown_name("camera", word, known, 'Two are joined with a plus: "onboard+chase".')
    found = carried[word] if word in carried else device(word)
    if not _takes_images(found):
        raise AirworthyError(f"A film was asked for by {word!r}, a {found.kind}; name one that takes images.")
    return found


def _takes_images(item: Device) -> bool:
    return "camera" in item.kind and item.projection.optical


def sized(projection: Projection, size: tuple[int, int] | None) -> Projection:
    """The projection in another size [px]: as much is seen upwards, and to the sides what the new shape gives.

    Without a size, 640 wide in its own shape, with even sides.

    Raises:
        AirworthyError: Its lens has no focal length that could be scaled.
    """
    if size is None:
        size = (WIDTH, max(2, 2 * round(0.5 * WIDTH * projection.height / projection.width)))
    if size == (projection.width, projection.height):
        return projection
    if not isinstance(projection, Pinhole):
        raise AirworthyError(
            f"This camera's image is {projection.width}x{projection.height}, and its lens cannot be resized: give no size."
        )
    ratio = size[1] / projection.height
    cx = 0.5 * size[0] + ratio * (projection.cx - 0.5 * projection.width)
    return replace(
        projection,
        width=size[0],
        height=size[1],
        fx=ratio * projection.fx,
        fy=ratio * projection.fy,
        cx=cx,
        cy=ratio * projection.cy,
    )


def camera_path(
    word: str,
    track: FlightTrack,
    times: Floats,
    vehicle: Vehicle,
    batch: SceneBatch,
    size: tuple[int, int] | None = None,
) -> CameraPath:
    """A camera by its word, at every frame of a film.

    Args:
        word: As `camera_words` gives them.
        track: The flight.
        times: (n,) of the frames [s].
        vehicle: Who flies.
        batch: The same scene in every environment, which cameras that follow keep clear of; its actors are moved to the frames'
            times.
        size: Width and height [px]; None: 640 wide.
    """
    if word not in PLACED:
        return _onboard(word, track, times, vehicle, size)
    projection = Pinhole.from_fov(*(size or SHAPE), horizontal=FOV)
    if word == "fixed":
        seen = view(batch.scenes[0], "orbit")
        wide = Pinhole.from_fov(*(size or SHAPE), horizontal=seen.fov)
        count = len(times)
        return CameraPath(word, wide, np.tile(seen.position, (count, 1)), np.tile(seen.attitude, (count, 1)), True)
    parts = [following(word, track, times[take], vehicle, batch) for take in track.takes(times)]
    position, attitude = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    return CameraPath(word, projection, position, attitude, True)


def _onboard(word: str, track: FlightTrack, times: Floats, vehicle: Vehicle, size: tuple[int, int] | None) -> CameraPath:
    item = eye_of(word, vehicle)
    position, attitude, _ = track.pose(times)
    mount = item.effective_mount
    # Flights are of the centre of mass, mounts from the airframe's reference point.
    offset = np.asarray(mount.position) - np.asarray(vehicle.center_of_mass)
    position, attitude = mounted_pose(position, attitude, offset, mount.attitude)
    return CameraPath(word, sized(item.projection, size), position, frames.camera_attitude(attitude), False)
