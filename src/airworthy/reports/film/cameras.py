"""Where a film is seen from: the vehicle's own camera, one that follows it, one that circles it, one that stands still."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.optics.projections import Pinhole, Projection
from airworthy.reports.film.flight_track import FlightTrack
from airworthy.scenes.viewpoints import view
from airworthy.sensors import carried_sensors, device, device_names
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.vehicles import Vehicle, frozen
from airworthy.vehicles.links import placed_links

if TYPE_CHECKING:
    from airworthy.geometry import RayTable
    from airworthy.scenes import SceneBatch

__all__ = ["AUTO", "PLACED", "CameraPath", "camera_choice", "camera_path", "eased", "eye_of", "following", "reach", "sized"]

# ---- Cameras that keep a vehicle in view from outside: steady, and clear of everything that stands there --------------------

NEAR, SIZES = 0.6, 5.0
"""Distance from the vehicle: at least this many metres, or this many times its reach."""
RISE = math.radians(15.0)
"""How far above the vehicle's horizon a camera that follows it stands [rad]."""
TURN = 24.0
"""Time that a circling camera takes once round [s]."""
_MARGIN = 0.18
"""Room between a camera and what stands near [m]."""
_ABOVE = 0.1
"""How far above the vehicle such a camera looks, over its distance: the vehicle is below the middle, and the place is seen."""
_SMOOTH, _HEADING, _PULL = 0.3, 0.9, 0.6
"""Standard deviations of the smoothing of the point looked at and of the direction of flight, and half the window in which a
camera comes nearer before an obstacle [s]."""
_SLOW = 0.5
"""Below this speed a vehicle's nose tells where it is going [m/s]."""


def following(
    specifier: str,
    track: FlightTrack,
    times: Array,
    vehicle: Vehicle,
    batch: SceneBatch,
    distance: float | None = None,
    calm_s: float | None = None,
) -> tuple[Array, Array]:
    """Return poses of a camera that keeps a vehicle in view: smooth, and never inside or behind what stands there.

    Args:
        specifier: "chase": behind the direction of flight; "orbit": round the vehicle, evenly.
        track: The flight.
        times: (n,) of the frames [s], evenly spaced.
        vehicle: Who flies; its size sets the distance.
        batch: The same scene in every environment; its actors are moved to the frames' times.
        distance: From the vehicle [m]; None: as its size asks for.
        calm_s: Standard deviation of the smoothing of the point looked at [s]; None: for flights that do not race.

    Returns:
        World positions (n, 3) [m], and attitudes (n, 4) of the optical frame.
    """
    step = _step(times)
    body, attitude, velocity = track.pose(times)
    calm = _smoothed(body, (_SMOOTH if calm_s is None else calm_s) / step)
    heading = _heading(attitude, velocity, step) if specifier == "chase" else _circling(attitude, times)
    away = np.stack(
        [-np.cos(heading) * math.cos(RISE), -np.sin(heading) * math.cos(RISE), np.full_like(heading, math.sin(RISE))], 1
    )
    wanted = calm + (max(NEAR, SIZES * reach(vehicle)) if distance is None else distance) * away
    share = _free_share(body, wanted, times, batch)
    position = body + share[:, None] * (wanted - body)
    above = _ABOVE * np.linalg.norm(wanted - calm, axis=1, keepdims=True) * (0.0, 0.0, 1.0)
    return position, _looking(position, calm + above)


def reach(vehicle: Vehicle) -> float:
    """Return the distance from a vehicle's middle to its farthest rotor's tip, or the edge of its body [m]."""
    vehicle = frozen(vehicle)
    tips = [math.dist(rotor.position, vehicle.center_of_mass) + rotor.radius for rotor in vehicle.rotors]
    return max([*tips, max(vehicle.body.size)])


def _heading(attitude: Array, velocity: Array, step: float) -> Array:
    """Direction of flight over the ground [rad], (n,), smooth; where a vehicle hovers, that of its nose."""
    yaw = frames.yaw_of(attitude)
    nose = np.stack([np.cos(yaw), np.sin(yaw)], axis=1)
    speed = np.linalg.norm(velocity[:, :2], axis=1, keepdims=True)
    ahead = np.where(speed > 1e-9, velocity[:, :2] / np.maximum(speed, 1e-9), nose)
    sure = speed / (speed + _SLOW)
    mixed = _smoothed(sure * ahead + (1.0 - sure) * nose, _HEADING / step, "mirror")
    return _smoothed(np.unwrap(np.arctan2(mixed[:, 1], mixed[:, 0]))[:, None], _HEADING / step, "mirror")[:, 0]


def _circling(attitude: Array, times: Array) -> Array:
    start = float(frames.yaw_of(attitude[0])) + 0.75 * math.pi
    return start + 2.0 * math.pi * (times - times[0]) / TURN


def _looking(position: Array, target: Array) -> Array:
    """Attitudes (n, 4) of optical frames that look from one point to another, without roll."""
    z = target - position
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-9)
    x = np.stack([z[:, 1], -z[:, 0], np.zeros(len(z))], axis=1)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    return frames.continuous(frames.from_matrix(np.stack([x, np.cross(z, x), z], axis=2)))


def _smoothed(rows: Array, sigma: float, ends: Literal["straight", "mirror"] = "straight") -> Array:
    """Rows (n, k) smoothed over time by a gaussian of `sigma` rows, without delay.

    Beyond the ends rows go on mirrored; "straight": through the end points, so that a straight motion stays straight.
    """
    from scipy.ndimage import gaussian_filter1d

    pad = min(len(rows) - 1, math.ceil(4.0 * sigma))
    if pad < 1:
        return rows.copy()
    before, after = rows[pad:0:-1], rows[-2 : -pad - 2 : -1]
    if ends == "straight":
        before, after = 2.0 * rows[:1] - before, 2.0 * rows[-1:] - after
    longer = np.concatenate([before, rows, after])
    return np.asarray(gaussian_filter1d(longer, sigma, axis=0, mode="nearest")[pad : pad + len(rows)])


def _free_share(body: Array, wanted: Array, times: Array, batch: SceneBatch) -> Array:
    """Return how much of the way from the vehicle to where its camera would be is free, at every frame (n,), smooth."""
    parts = (slice(k, k + batch.env_count) for k in range(0, len(times), batch.env_count))
    farthest = float(np.linalg.norm(wanted - body, axis=1).max())
    rays = _bundle(math.atan(_MARGIN / max(farthest, 1e-6)))
    free = np.concatenate([_free(body[part], wanted[part], times[part], rays, batch) for part in parts])
    return eased(free, max(1, round(0.5 * _PULL / _step(times))))


def eased(free: Array, half: int) -> Array:
    """Return a smooth curve below a rough one (n,): the least over a window, then two means over windows half as wide.

    Every value that enters the means at a frame is a least over a window that holds the frame, so the curve is never above
    the rough one, and a camera that keeps to it never nearer to an obstacle than its margin.
    """
    from scipy.ndimage import minimum_filter1d, uniform_filter1d

    low = minimum_filter1d(free, 4 * half + 1, mode="nearest")
    for _ in range(2):
        low = uniform_filter1d(low, 2 * half + 1, mode="nearest")
    # A running mean may be off by its rounding.
    return np.asarray(np.minimum(low, free))


def _bundle(spread: float) -> RayTable:
    """Return a ray along z, and eight round it at an angle [rad]."""
    from airworthy.geometry import RayTable

    around = np.linspace(0.0, 2.0 * math.pi, 8, endpoint=False)
    ring = [(math.sin(spread) * math.cos(a), math.sin(spread) * math.sin(a), math.cos(spread)) for a in around]
    return RayTable(np.array([[(0.0, 0.0, 1.0), *ring]]))


def _free(body: Array, wanted: Array, times: Array, rays: RayTable, batch: SceneBatch) -> Array:
    """Share of the way that the nearest of a bundle of rays leaves free, (k,) in [0, 1], for at most as many frames as the
    batch has environments; everything in them stands where it is at the frame's time."""
    from airworthy.geometry import cast

    env = np.arange(len(times))
    batch.advance(np.concatenate([times, np.repeat(times[-1:], batch.env_count - len(times))]))
    length = np.linalg.norm(wanted - body, axis=1)
    found = cast(batch.geometry, rays, body, _looking(body, wanted), env, ("range",), max_range=1000.0)["range"][:, 0]
    nearest = found.min(axis=1).astype(np.float64)
    return np.clip((nearest - _MARGIN) / np.maximum(length, 1e-6), 0.0, 1.0)


def _step(times: Array) -> float:
    return float(times[1] - times[0]) if len(times) > 1 else 1.0


# -----------------------------------------------------------------------------------------------------------------------------

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
    position: Array
    """(n, 3) world [m]."""
    attitude: Array
    """(n, 4) optical frame to world."""
    sees_vehicle: bool
    """Whether the vehicle stands before it."""


def camera_choice(specifier: str, vehicle: Vehicle) -> tuple[str, str]:
    """Return the main camera and the one in the corner ("" for none) of "MAIN" or "MAIN+CORNER"; "auto" is "onboard+chase".

    Raises:
        AirworthyError: One of them is not known, or takes no images.
    """
    main, plus, corner = ("onboard+chase" if specifier == AUTO else specifier).partition("+")
    for name in (main, corner) if plus else (main,):
        if name not in PLACED:
            eye_of(name, vehicle)
    return main, corner


def eye_of(specifier: str, vehicle: Vehicle) -> Device:
    """Return the camera on a vehicle: its first with colour ("onboard"), one of its record by name, or one of the catalogue.

    Raises:
        AirworthyError: There is none of this name, or it takes no images.
    """
    carried = carried_sensors(vehicle)
    if specifier == ONBOARD:
        return next((item for item in carried.values() if _takes_images(item) and "rgb" in item.channels), PLAIN)
    if specifier not in carried and specifier not in device_names():
        known = [AUTO, ONBOARD, *PLACED, *carried, *(name for name in device_names() if _takes_images(device(name)))]
        raise unknown_name("camera", specifier, known, 'Two are joined with a plus: "onboard+chase".')
    found = carried[specifier] if specifier in carried else device(specifier)
    if not _takes_images(found):
        raise AirworthyError(f"A film was asked for by {specifier!r}, a {found.kind}; name one that takes images.")
    return found


def _takes_images(item: Device) -> bool:
    return "camera" in item.kind and item.projection.optical


def sized(projection: Projection, size: tuple[int, int] | None) -> Projection:
    """Return the projection in another size [px]: as much is seen upwards, and to the sides what the new shape gives.

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
    specifier: str,
    track: FlightTrack,
    times: Array,
    vehicle: Vehicle,
    batch: SceneBatch,
    size: tuple[int, int] | None = None,
    distance: float | None = None,
) -> CameraPath:
    """Return a camera by its word, at every frame of a film.

    Args:
        specifier: As `camera_choice` gives them.
        track: The flight.
        times: (n,) of the frames [s].
        vehicle: Who flies.
        batch: The same scene in every environment, which cameras that follow keep clear of; its actors are moved to the frames'
            times.
        size: Width and height [px]; None: 640 wide.
        distance: Of "chase" and "orbit" from the vehicle [m]; None: as its size asks for.
    """
    if specifier not in PLACED:
        return _onboard(specifier, track, times, vehicle, size)
    projection = Pinhole.from_fov(*(size or SHAPE), horizontal=FOV)
    if specifier == "fixed":
        viewpoint = view(batch.scenes[0], "orbit")
        wide = Pinhole.from_fov(*(size or SHAPE), horizontal=viewpoint.fov)
        count = len(times)
        return CameraPath(
            specifier, wide, np.tile(viewpoint.position, (count, 1)), np.tile(viewpoint.attitude, (count, 1)), True
        )
    parts = [following(specifier, track, times[take], vehicle, batch, distance) for take in track.takes(times)]
    position, attitude = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    return CameraPath(specifier, projection, position, attitude, True)


def _onboard(specifier: str, track: FlightTrack, times: Array, vehicle: Vehicle, size: tuple[int, int] | None) -> CameraPath:
    item = eye_of(specifier, vehicle)
    position, attitude, _ = track.pose(times)
    mount = item.effective_mount
    if vehicle.links:
        bent = track.bent(times)
        angles = np.zeros((len(times), vehicle.joint_count)) if bent is None else bent
        names = [name for name, device in carried_sensors(vehicle).items() if device == item]
        on = next((sensor.link for sensor in vehicle.sensors if sensor.name in names[:1]), "") or vehicle.links[0].name
        number = [link.name for link in vehicle.links].index(on)
        placed = [placed_links(vehicle.links, row) for row in angles]
        place, turn = (np.array([pair[part][number] for pair in placed]) for part in (0, 1))
        position, attitude = position + frames.rotate(attitude, place), frames.multiply(attitude, turn)
        position, attitude = mounted_pose(position, attitude, np.asarray(mount.position), mount.attitude)
        return CameraPath(specifier, sized(item.projection, size), position, frames.camera_attitude(attitude), False)
    # Flights are of the centre of mass, mounts from the airframe's reference point.
    offset = np.asarray(mount.position) - np.asarray(vehicle.center_of_mass)
    position, attitude = mounted_pose(position, attitude, offset, mount.attitude)
    return CameraPath(specifier, sized(item.projection, size), position, frames.camera_attitude(attitude), False)
