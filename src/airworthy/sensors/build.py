"""From a device to the sensor that samples it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from airworthy.core.errors import AirworthyError
from airworthy.sensors.beacons import BeaconCamera
from airworthy.sensors.camera import Camera
from airworthy.sensors.devices import Device, device
from airworthy.sensors.lidar import Lidar
from airworthy.sensors.ranger import Ranger
from airworthy.sensors.sampling import Channels, View
from airworthy.sensors.tof import TimeOfFlight


class Sensor(Protocol):
    """What can be mounted: anything that makes arrays of where it is."""

    device: Device
    name: str
    number: int

    def capture(self, scene: Any, view: View, channels: Sequence[str] = ()) -> Channels:
        """One sample per view, arrays with the view as first axis, by channel."""
        ...


def make_sensor(what: Device | str, name: str = "", **options: Any) -> Sensor:
    """The sensor of a device, or of one in the catalogue by its name.

    Args:
        what: Device or name.
        name: Its name on the vehicle; default: the device's.
        options: Of a beacon camera: `options`, `positions`.

    Raises:
        UnknownNameError: If there is no such device.
        AirworthyError: If the device is no camera and asks for a camera's realism.
    """
    item = device(what) if isinstance(what, str) else what
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
