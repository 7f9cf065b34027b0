"""Sensors: named devices, projections, and what each makes of the world. `airworthy.simulation` mounts them."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole, Projection, Spherical, UserRays

if TYPE_CHECKING:
    from airworthy.sensors.build import BeaconCamera, BeaconOptions, Sensor, TimeOfFlight, make_sensor, markers, rig, rig_names
    from airworthy.sensors.camera import Camera, disparity, stereo_shadow
    from airworthy.sensors.carried import carried_sensors
    from airworthy.sensors.devices import Device, device, device_names, imu_device, imu_names
    from airworthy.sensors.lidar import Lidar, Ranger, packed_points, ranger
    from airworthy.sensors.mounting import Mount, MountSpread, SampleClock
    from airworthy.sensors.navigation.geodesy import Home
    from airworthy.sensors.navigation.suite import NavigationSensors, navigation_names
    from airworthy.sensors.noise import Draw, RangeLimits, RangeNoise
    from airworthy.sensors.own import device_or_sensor
    from airworthy.sensors.sampling import RaySensor, SensorView
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AnglePolynomial", "BeaconCamera", "BeaconOptions", "Camera", "Device", "Draw", "Fisheye", "Home", "Lidar", "Mount",
    "MountSpread", "NavigationSensors", "Pinhole", "PlumbBob", "Projection", "RangeLimits", "RangeNoise", "Ranger", "RaySensor",
    "SampleClock", "Sensor", "SensorView", "Spherical", "TimeOfFlight", "UserRays", "carried_sensors", "device", "device_names",
    "device_or_sensor", "disparity", "imu_device", "imu_names", "make_sensor", "markers", "navigation_names", "packed_points",
    "ranger", "rig", "rig_names", "stereo_shadow",
]  # fmt: skip
