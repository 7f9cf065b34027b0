"""From a device to the sensor that samples it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import camera_attitude, from_euler, rotate_inverse
from airworthy.core.schema import check_fields
from airworthy.geometry import occluded
from airworthy.optics.projections import Pinhole
from airworthy.sensors.camera import Camera
from airworthy.sensors.devices import KINDS, Device, device
from airworthy.sensors.lidar import Lidar, Ranger
from airworthy.sensors.mounting import Mount, Vector3
from airworthy.sensors.noise import Draw, normal_of, sensor_number, uniforms_of
from airworthy.sensors.sampling import Channels, RaySensor, SensorView, geometry_of

# ---- Infrared beacons seen by a camera (spec/flightgoggles 3.1): pixels and identities, no distance -------------------------


@dataclass(frozen=True)
class BeaconOptions:
    """What the original sensor does not do; all off by default."""

    pixel_noise: float = 0.0
    """Standard deviation of each coordinate [px]; a pixel that leaves the image is kept."""
    dropout: float = 0.0
    """Probability that a visible beacon is not reported."""
    range_max: float = math.inf
    """Farther beacons are not seen [m]."""
    angle_max: float = math.pi
    """Beacons farther off the optical axis are not seen [rad]."""
    shuffle: bool = False
    """Report in random order, with identities exchanged among the visible at random: association is the reader's task."""
    clearance: float = 1e-3
    """The ray leaves this far in front of the beacon [m], so that a surface on which it lies does not hide it. What carries a
    landmark's beacons in the scene (`Instance.carries`) never hides them."""

    def __post_init__(self) -> None:
        check_fields(self, "BeaconOptions.")


class BeaconCamera:
    """A camera that reports beacons.

    `capture` gives "pixel" (camera, beacons, 2) [px], origin at the upper left, NaN where there is none, and "beacon" (camera,
    beacons): the number in the scene's `beacons` of what is reported there, -1 where nothing is.

    Args:
        device: A camera or beacon device; its projection counts.
        name: Its name on the vehicle.
        options: Noise, dropout, range.
        positions: World positions (n, 3) or (env, n, 3) of the beacons; None: those of the scene.
    """

    def __init__(
        self, device: Device, name: str = "", options: BeaconOptions = BeaconOptions(), positions: ArrayLike | None = None
    ):
        if not device.projection.optical:
            raise AirworthyError(f"Device {device.name!r} is no camera; beacons are seen in pixels, so give one with a lens.")
        self.device, self.name, self.options = device, name or device.name, options
        self.number = sensor_number(self.name)
        self._positions = None if positions is None else np.asarray(positions, np.float64)

    def capture(self, scene: Any, view: SensorView, channels: Sequence[str] = ()) -> Channels:
        """Report the beacons that each view sees; see the class.

        Args:
            scene: A `SceneBatch`, or geometry alone where the beacons' positions were given.
            view: Poses of the cameras, world.
            channels: Not read: both channels are always given.
        """
        # Doubles: pixels are differences of positions that may be kilometres from the origin.
        position = np.asarray(view.position, np.float64)
        env = np.arange(len(position)) if view.env is None else np.asarray(view.env)
        beacons = self._beacons(scene, env)
        pixel, visible = self._projected(beacons, position, view.attitude)
        # Rays are cast for those alone that the lens could show: they cost more than all the rest.
        visible[visible] = ~self._hidden(scene, view, beacons, position, env, visible)
        return self._reported(pixel, visible, view.draw)

    def _beacons(self, scene: Any, env: ArrayAny) -> Array:
        if self._positions is None:
            if not hasattr(scene, "beacon_positions"):
                raise AirworthyError(f"Beacon sensor {self.name!r} needs a SceneBatch, or the positions of the beacons.")
            return np.asarray(scene.beacon_positions(), np.float64)[env]
        if self._positions.ndim == 3:
            return self._positions[env]
        return np.broadcast_to(self._positions, (len(env), *self._positions.shape))

    def _projected(self, beacons: Array, position: Array, attitude: ArrayAny) -> tuple[Array, ArrayBool]:
        """Pixels (camera, n, 2) and which are in front, strictly inside the image and within the options' reach."""
        local = rotate_inverse(camera_attitude(attitude)[:, None], beacons - position[:, None])
        pixel, inside = self.device.projection.project(local)
        # Beacons of other environments are NaN here, where one has fewer than another.
        with np.errstate(invalid="ignore"):
            distance = np.linalg.norm(local, axis=-1)
            angle = np.arctan2(np.hypot(local[..., 0], local[..., 1]), local[..., 2])
            inside &= (distance <= self.options.range_max) & (angle <= self.options.angle_max)
        return pixel, inside

    def _hidden(
        self, scene: Any, view: SensorView, beacons: Array, position: Array, env: ArrayAny, visible: ArrayBool
    ) -> ArrayBool:
        """Of the seen ones (k,), whether anything is between beacon and camera but what carries the one and the own body."""
        if not visible.any():
            return np.zeros(0, bool)
        camera = np.nonzero(visible)[0]
        start, end = beacons[visible], position[camera]
        length = np.linalg.norm(end - start, axis=-1, keepdims=True)
        start = start + (end - start) * np.minimum(self.options.clearance / np.maximum(length, 1e-12), 0.5)
        own = np.full(len(position), -1) if view.ignore is None else np.asarray(view.ignore)
        # By what carries it, and not by a distance: a beacon in the middle of a tube must be seen along it, and be hidden by
        # the post that begins where the tube ends (spec/race 4.1).
        through = scene.beacon_groups()[env][visible] if self._positions is None else 0
        return np.asarray(occluded(geometry_of(scene), start, end, env[camera], own[camera], through))

    def _reported(self, pixel: Array, visible: ArrayBool, draw: Draw | None) -> Channels:
        options, count = self.options, visible.shape[1]
        ids = np.broadcast_to(np.arange(count), visible.shape)
        if draw is not None and count and (options.pixel_noise or options.dropout or options.shuffle):
            bits = draw.words(2 * count).reshape(len(visible), count, 2, 4)
            noise = np.stack([normal_of(bits[..., 0, 0], bits[..., 0, 1]), normal_of(bits[..., 0, 2], bits[..., 0, 3])], -1)
            pixel = pixel + options.pixel_noise * noise
            visible = visible & (uniforms_of(bits[..., 1, 0]) >= options.dropout)
            if options.shuffle:
                order = _shuffled(visible, uniforms_of(bits[..., 1, 1]))
                pixel = np.take_along_axis(pixel, order[..., None], axis=1)
                ids = np.take_along_axis(ids, _shuffled(visible, uniforms_of(bits[..., 1, 2])), axis=1)
                visible = np.take_along_axis(visible, order, axis=1)
        return {
            "pixel": np.where(visible[..., None], pixel, np.nan).astype(np.float32),
            "beacon": np.where(visible, ids, -1).astype(np.int32),
        }


def _shuffled(visible: ArrayBool, share: Array) -> ArrayIndex:
    """Return an order with the seen ones first, otherwise by the drawn numbers."""
    # Shares lie in (0, 1): with 2 added the others come last, and keep an order that was drawn as well.
    return np.argsort(np.where(visible, share, 2.0 + share), axis=1)


def markers(scene: Any, sample: Channels, camera: int, env: int | None = None) -> list[tuple[str, str, float, float, float]]:
    """Return the report as FlightGoggles publishes it: (landmark, marker, x, y, 0) per visible beacon of one camera.

    Args:
        scene: The `SceneBatch` that was looked at.
        sample: What `BeaconCamera.capture` gave.
        camera: Row of the sample.
        env: Its environment; None: the same number.
    """
    record = scene.scenes[scene.scene_of_env[camera if env is None else env]]
    out = []
    for number, (x, y) in zip(sample["beacon"][camera], sample["pixel"][camera], strict=True):
        if number >= 0:
            beacon = record.beacons[number]
            out.append((beacon.landmark, beacon.marker, float(x), float(y), 0.0))
    return out


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Time-of-flight sensors: few zones, each the nearest return of its rays -------------------------------------------------


class TimeOfFlight(RaySensor):
    """A multi-zone or imaging time-of-flight sensor.

    Raises:
        AirworthyError: If its rays do not fill whole zones.
    """

    def __init__(self, device: Any, name: str = ""):
        super().__init__(device, name)
        rays, projection = device.sub_rays, device.projection
        if rays < 1 or projection.height % rays or projection.width % rays:
            raise AirworthyError(
                f"Sensor {self.name!r} has {projection.height} x {projection.width} rays; that is not a whole number of zones"
                f" of {rays} x {rays}."
            )


# ---- Rigs: several sensors that belong together, by name, and the camera matrices of stereo pairs ---------------------------

# Source: [R1] config/drone/drone.yaml, commit 83f3ce2; release 3 ships a rig with +-0.05 m instead.
STEREO_BASELINE = 0.32
"""FlightGoggles 2019: the left camera at the body's origin, the right one at y = -0.32 m (spec/flightgoggles 2.4)."""


def _at(position: Vector3, pitch: float = 0.0) -> Mount:
    x, y, z, w = (float(value) for value in from_euler(0.0, pitch, 0.0))
    return Mount(position, (x, y, z, w))


def _flightgoggles(right: bool, race: bool) -> dict[str, Device]:
    camera = device("flightgoggles_camera")
    members = {"left": camera}
    if right:
        members["right"] = camera.variant(mount=_at((0.0, -STEREO_BASELINE, 0.0)))
    if race:
        members["ir_beacons"] = device("flightgoggles_beacons")
        members["downward_laser_rangefinder"] = device("lightware_sf11b")
    return members


def _release_3() -> dict[str, Device]:
    camera = device("flightgoggles_camera_v3")
    mounts = {"left": _at((0.0, 0.05, 0.0)), "right": _at((0.0, -0.05, 0.0)), "down": _at((0.0, 0.0, 0.0), math.pi / 2)}
    return {name: camera.variant(mount=mount) for name, mount in mounts.items()}


_RIGS = {
    "flightgoggles_mono": lambda: _flightgoggles(right=False, race=False),
    "flightgoggles_stereo": lambda: _flightgoggles(right=True, race=False),
    "flightgoggles_race": lambda: _flightgoggles(right=True, race=True),
    "flightgoggles_v3": _release_3,
}


def rig_names() -> list[str]:
    """Return names of the known rigs."""
    return sorted(_RIGS)


def rig(name: str) -> dict[str, Device]:
    """Return the sensors of a rig by their names, each with its mount; all sample together, since their rates are equal.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in _RIGS:
        raise unknown_name("rig of sensors", name, rig_names())
    return _RIGS[name]()


def projection_matrix(camera: Pinhole, baseline: float = 0.0) -> Array:
    """Return ROS' projection matrix (3, 4) of a rectified camera; of the right one of a pair, P[0, 3] = -fx baseline."""
    matrix = np.zeros((3, 4))
    matrix[:, :3] = camera.matrix
    matrix[0, 3] = -camera.fx * baseline
    return matrix


# -----------------------------------------------------------------------------------------------------------------------------


class Sensor(Protocol):
    """What can be mounted: anything that makes arrays of where it is.

    A class of one's own has `device` and `capture`; it may keep something from sample to sample if it has `reset(env_ids)`,
    called when flights begin, `save()`, arrays by name, and `restore(saved)`, too. It is copied and given its device, name and
    number when it is mounted, so these must be attributes that can be set.
    """

    device: Device
    """Rate, latency, mount, limits and size; its `kind` may be any word. Poses in `capture` are the mount's already."""
    name: str
    """On the vehicle."""
    number: int
    """Tells its random numbers from those of others."""

    def capture(self, scene: Any, view: SensorView, channels: Sequence[str] = ()) -> Channels:
        """Return one sample per view, arrays with the view as first axis, by channel.

        Args:
            scene: What is looked at: a `SceneBatch`; `scene.geometry` is what rays are cast into.
            view: Poses of the sensors, world, (k, 3) [m] and (k, 4), and their environments, (k,): those alone that are due.
            channels: What is wanted; none: the device's own.

        Returns:
            Numbers of shape (k, n) or (k, rows, columns, ...), of the same names, types and shapes in every call.
        """
        ...


def make_sensor(what: Device | str, name: str = "", **options: Any) -> Sensor:
    """Return the sensor of a device, or of one in the catalogue by its name.

    Args:
        what: Device or name.
        name: Its name on the vehicle; default: the device's.
        options: Of a beacon camera: `options`, `positions`.

    Raises:
        UnknownNameError: If there is no such device, or its kind is one of a user's own.
        AirworthyError: If the device is no camera and asks for a camera's realism.
    """
    item = device(what) if isinstance(what, str) else what
    if item.kind not in KINDS:
        raise unknown_name("kind of sensor", item.kind, KINDS, "Of a kind of your own mount the sensor, not its device.")
    kinds: dict[str, Any] = {
        "camera": Camera,
        "depth_camera": Camera,
        "stereo_camera": Camera,
        "lidar": Lidar,
        "radar": Lidar,
        "tof": TimeOfFlight,
        "ranger": Ranger,
        "beacons": BeaconCamera,
    }
    if item.realism is not None and kinds[item.kind] is not Camera:
        raise AirworthyError(f"Sensor {item.name!r} is a {item.kind}; only cameras have a realism. Leave it None.")
    sensor: Sensor = kinds[item.kind](item, name, **options)
    return sensor
