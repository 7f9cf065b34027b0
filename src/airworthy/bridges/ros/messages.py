"""What a vehicle and its sensors say in ROS 2: topics, types and frames of spec/flightgoggles 6.1, axes of REP 103.

World x east, y north, z up; body x forward, y left, z up, as ours. A camera's frame NAME has x where it looks, NAME_optical
is x right, y down, z forward. Stamps are the simulated time of the instant that is told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.bridges.ros.bus import COMMANDS, LATCHED, SENSORS, Qos
from airworthy.bridges.ros.types import IR_MARKERS
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, rotate_inverse
from airworthy.logs.clocks.clock import NS
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.scenes import Beacon
from airworthy.sensors.devices import Device
from airworthy.simulation.sensor_state import Sample

__all__ = [
    "BODY",
    "PREFIX",
    "WORLD",
    "RosMessage",
    "camera_info",
    "clock_factor_message",
    "clock_message",
    "collision_message",
    "goal_message",
    "imu_message",
    "marker_message",
    "odometry_message",
    "path_message",
    "rotor_message",
    "sensor_messages",
    "stamp_of",
    "static_frames",
    "transform_message",
]

PREFIX = "/uav"
"""Before the names of all topics of the vehicle."""
WORLD, BODY = "world", "uav/imu"
"""Frames; the body's origin is where its inertial sensor is."""
_UNKNOWN = (-1.0, *(0.0,) * 8)
"""Covariance of what is not measured (sensor_msgs/Imu)."""
_INFRARED = 1
"""sensor_msgs/Range: radiation of a laser."""


@dataclass(frozen=True)
class RosMessage:
    """One message to be sent."""

    topic: str
    kind: str
    values: Mapping[str, Any]
    qos: Qos = COMMANDS


def stamp_of(time: float) -> dict[str, int]:
    """Return a time [s] as builtin_interfaces/Time, to the nanosecond."""
    whole, rest = divmod(round(time * NS), NS)
    return {"sec": whole, "nanosec": rest}


def _header(time: float, frame: str) -> dict[str, Any]:
    return {"stamp": stamp_of(time), "frame_id": frame}


def _xyz(vector: ArrayLike) -> dict[str, float]:
    return dict(zip("xyz", (float(value) for value in np.asarray(vector)), strict=True))


def _xyzw(quaternion: ArrayLike) -> dict[str, float]:
    return dict(zip("xyzw", (float(value) for value in np.asarray(quaternion)), strict=True))


# ---- The vehicle --------------------------------------------------------------------------------------------------------


def clock_message(time: float) -> RosMessage:
    """Return the simulated time [s] on /clock."""
    return RosMessage("/clock", "rosgraph_msgs/msg/Clock", {"clock": stamp_of(time)})


def clock_factor_message(factor: float) -> RosMessage:
    """Return simulated over wall-clock time, which comes with each /clock whose time is scaled."""
    return RosMessage("/clock_factor", "std_msgs/msg/Float64", {"data": factor})


def imu_message(time: float, imu: ArrayLike) -> RosMessage:
    """Return a sample (6,) of the inertial sensor, specific force [m/s^2] and rates [rad/s], body; it knows no attitude."""
    measured = np.asarray(imu, np.float64)
    values = {
        "header": _header(time, BODY),
        "orientation": _xyzw((0.0, 0.0, 0.0, 1.0)),
        "orientation_covariance": _UNKNOWN,
        "linear_acceleration": _xyz(measured[:3]),
        "angular_velocity": _xyz(measured[3:]),
    }
    return RosMessage(f"{PREFIX}/sensors/imu", "sensor_msgs/msg/Imu", values, SENSORS)


def odometry_message(time: float, position: ArrayLike, velocity: ArrayLike, attitude: ArrayLike, rate: ArrayLike) -> RosMessage:
    """Return the true state: the pose in the world, the twist in the body.

    Args:
        time: [s].
        position: World [m], (3,).
        velocity: World [m/s], (3,).
        attitude: x, y, z, w, body to world, (4,).
        rate: Body [rad/s], (3,).
    """
    linear = rotate_inverse(attitude, velocity)
    values = {
        "header": _header(time, WORLD),
        "child_frame_id": BODY,
        "pose": {"pose": {"position": _xyz(position), "orientation": _xyzw(attitude)}},
        "twist": {"twist": {"linear": _xyz(linear), "angular": _xyz(rate)}},
    }
    return RosMessage(f"{PREFIX}/odometry", "nav_msgs/msg/Odometry", values)


def rotor_message(time: float, speed: ArrayLike) -> RosMessage:
    """Return speeds of the rotors [rad/s], (rotors,)."""
    values = {"header": _header(time, BODY), "angular_velocities": np.asarray(speed, np.float64)}
    return RosMessage(f"{PREFIX}/motor_speed", "mav_msgs/msg/Actuators", values, SENSORS)


def _transform(time: float, parent: str, child: str, position: ArrayLike, attitude: ArrayLike) -> dict[str, Any]:
    transform = {"translation": _xyz(position), "rotation": _xyzw(attitude)}
    return {"header": _header(time, parent), "child_frame_id": child, "transform": transform}


def transform_message(time: float, position: ArrayLike, attitude: ArrayLike) -> RosMessage:
    """Return the body's pose in the world on /tf."""
    return RosMessage("/tf", "tf2_msgs/msg/TFMessage", {"transforms": [_transform(time, WORLD, BODY, position, attitude)]})


def static_frames(devices: Mapping[str, Device]) -> RosMessage:
    """Return where sensors sit, and their optical frames, on /tf_static."""
    found = []
    for name, device in devices.items():
        found.append(_transform(0.0, BODY, f"uav/{name}", device.effective_mount.position, device.effective_mount.attitude))
        if device.projection.optical:
            found.append(_transform(0.0, f"uav/{name}", _optical(name), (0.0, 0.0, 0.0), camera_attitude((0.0, 0.0, 0.0, 1.0))))
    return RosMessage("/tf_static", "tf2_msgs/msg/TFMessage", {"transforms": found}, LATCHED)


def goal_message(time: float, goal: ArrayLike) -> RosMessage:
    """Return where to fly to, world [m], (3,)."""
    pose = {"position": _xyz(goal), "orientation": _xyzw((0.0, 0.0, 0.0, 1.0))}
    return RosMessage(
        f"{PREFIX}/goal", "geometry_msgs/msg/PoseStamped", {"header": _header(time, WORLD), "pose": pose}, LATCHED
    )


def path_message(time: Array, position: Array, yaw: Array) -> RosMessage:
    """Return a course as poses with the times at which they are due: (m,) [s], (m, 3) [m], (m,) [rad]."""
    poses = []
    for when, where, heading in zip(time, position, yaw, strict=True):
        turned = (0.0, 0.0, np.sin(heading / 2), np.cos(heading / 2))
        poses.append({"header": _header(float(when), WORLD), "pose": {"position": _xyz(where), "orientation": _xyzw(turned)}})
    return RosMessage(f"{PREFIX}/course", "nav_msgs/msg/Path", {"header": _header(0.0, WORLD), "poses": poses}, LATCHED)


def collision_message() -> RosMessage:
    """Return that the vehicle has met something."""
    return RosMessage(f"{PREFIX}/collision", "std_msgs/msg/Empty", {})


# ---- Sensors ------------------------------------------------------------------------------------------------------------

_ENCODINGS = {
    ("u1", 3): "rgb8",
    ("u1", 1): "mono8",
    ("u2", 1): "16UC1",
    ("i4", 1): "32SC1",
    ("f4", 1): "32FC1",
    ("f4", 3): "32FC3",
}
"""Type and numbers of a pixel -> what sensor_msgs/Image calls it."""


def marker_message(name: str, time: float, pixels: Any, numbers: Any, beacons: Sequence[Beacon]) -> RosMessage:
    """Return the beacons that a camera sees as FlightGoggles tells them: landmark, marker, pixel, no distance.

    Args:
        name: Of the sensor.
        time: Of the sample [s].
        pixels: From the upper left corner of the image, (n, 2); NaN where there is none.
        numbers: In the scene's `beacons`, (n,); -1 where there is none.
        beacons: Of the scene.
    """
    found = []
    for number, (x, y) in zip(np.asarray(numbers).tolist(), np.asarray(pixels, np.float64).tolist(), strict=True):
        if number >= 0:
            label = {"landmark_id": {"data": beacons[number].landmark}, "marker_id": {"data": beacons[number].marker}}
            found.append({**label, "x": x, "y": y, "z": 0.0})
    values = {"header": _header(time, _optical(name)), "markers": found}
    return RosMessage(f"{PREFIX}/camera/{name}/ir_beacons", IR_MARKERS, values, SENSORS)


def sensor_messages(
    name: str, device: Device | None, sample: Sample, flight: int = 0, beacons: Sequence[Beacon] = ()
) -> Iterator[RosMessage]:
    """Yield what a sensor's newest sample says, a message for each channel, and a camera's calibration.

    Args:
        name: Of the sensor.
        device: What it is; None: nobody knows, and its pixels are told alone.
        sample: Of one flight or of many.
        flight: Which.
        beacons: Of the scene, for a camera that reports them.

    Raises:
        AirworthyError: A channel of a form that has no message, or beacons of a scene that is not known here.
    """
    if "beacon" in sample.data:
        numbers = np.asarray(sample.data["beacon"][flight])
        if numbers.size and int(numbers.max()) >= len(beacons):
            raise AirworthyError(f"The sensor {name!r} reports beacons by number, and their scene is not known here.")
        yield marker_message(name, float(sample.time[flight]), sample.data["pixel"][flight], numbers, beacons)
        return
    time, optical = float(sample.time[flight]), device is None or device.projection.optical
    frame = _optical(name) if optical else f"uav/{name}"
    for channel, array in sample.data.items():
        data = _told(channel, np.asarray(array[flight]), device)
        if channel == "valid":  # a reading that is none says so itself
            continue
        if channel == "points":
            yield _points(name, time, frame if device is None or not device.points_in_world else WORLD, data)
        elif data.ndim >= 2 and min(data.shape[:2]) >= 1 and data.size > 1:
            yield _image(name, channel, time, frame, data)
        elif channel in ("range", "depth") and data.size == 1:
            yield _range(name, time, f"uav/{name}", device, float(data.reshape(-1)[0]))
        else:
            raise AirworthyError(f"The channel {channel!r} of sensor {name!r} has shape {data.shape}, which no message holds.")
    if device is not None and isinstance(device.projection, Pinhole):
        yield camera_info(name, device.projection, time)


def _told(channel: str, data: Any, device: Device | None) -> Any:
    """Return a channel as it is told: distances in metres, colours as the recorder's files have them."""
    if channel in ("depth", "range") and device is not None:
        return np.asarray(device.limits.metres(data), np.float32)
    if channel == "rgb" and data.dtype != np.uint8:
        return to_8bit(data)
    return data


def _optical(name: str) -> str:
    return f"uav/{name}_optical"


def _image(name: str, channel: str, time: float, frame: str, pixels: Any) -> RosMessage:
    height, width = pixels.shape[:2]
    depth = 1 if pixels.ndim == 2 else pixels.shape[2]
    kind = pixels.dtype.newbyteorder("<").str[1:]
    encoding = _ENCODINGS.get((kind, depth))
    if encoding is None:
        raise AirworthyError(
            f"The channel {channel!r} of sensor {name!r} has pixels {pixels.dtype} x {depth}, which no message has."
        )
    raw = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"), copy=False))
    values = {
        "header": _header(time, frame),
        "height": height,
        "width": width,
        "encoding": encoding,
        "step": raw.itemsize * depth * width,
        "data": raw.reshape(-1).view(np.uint8),
    }
    topic = "image_rect_color" if channel == "rgb" else channel
    return RosMessage(f"{PREFIX}/camera/{name}/{topic}", "sensor_msgs/msg/Image", values, SENSORS)


def camera_info(name: str, lens: Pinhole, time: float) -> RosMessage:
    """Return a camera's calibration; ROS counts pixels from the centre of the first one, we from its corner."""
    corner = 0.0 if lens.integer_pixels else 0.5
    focal, middle = (lens.fx, lens.fy), (lens.cx - corner, lens.cy - corner)
    matrix = [focal[0], 0.0, middle[0], 0.0, focal[1], middle[1], 0.0, 0.0, 1.0]
    bend = lens.distortion
    values = {
        "header": _header(time, _optical(name)),
        "height": lens.height,
        "width": lens.width,
        "distortion_model": "plumb_bob",
        "d": [bend.k1, bend.k2, bend.p1, bend.p2, bend.k3],
        "k": matrix,
        "r": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        "p": [*matrix[:3], 0.0, *matrix[3:6], 0.0, *matrix[6:], 0.0],
    }
    return RosMessage(f"{PREFIX}/camera/{name}/camera_info", "sensor_msgs/msg/CameraInfo", values, SENSORS)


def _points(name: str, time: float, frame: str, points: Any) -> RosMessage:
    cloud = np.ascontiguousarray(np.asarray(points, "<f4").reshape(-1, 3))
    # datatype 7: FLOAT32 of sensor_msgs/PointField.
    columns = [{"name": axis, "offset": 4 * k, "datatype": 7, "count": 1} for k, axis in enumerate("xyz")]
    values = {
        "header": _header(time, frame),
        "height": 1,
        "width": len(cloud),
        "fields": columns,
        "point_step": 12,
        "row_step": 12 * len(cloud),
        "data": cloud.reshape(-1).view(np.uint8),
        "is_dense": bool(np.isfinite(cloud).all()),
    }
    return RosMessage(f"{PREFIX}/sensors/{name}/points", "sensor_msgs/msg/PointCloud2", values, SENSORS)


def _range(name: str, time: float, frame: str, device: Device | None, reading: float) -> RosMessage:
    limits = None if device is None else device.limits
    values = {
        "header": _header(time, frame),
        "radiation_type": _INFRARED,
        "min_range": 0.0 if limits is None else limits.minimum,
        "max_range": float("inf") if limits is None else limits.maximum,
        "range": reading,
    }
    return RosMessage(f"{PREFIX}/sensors/{name}", "sensor_msgs/msg/Range", values, SENSORS)
