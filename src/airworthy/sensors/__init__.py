"""Sensors: named devices, projections, and what each makes of the world. `airworthy.simulation` mounts them."""

from airworthy.sensors.beacons import BeaconCamera, BeaconOptions, markers
from airworthy.sensors.build import Sensor, make_sensor
from airworthy.sensors.camera import Camera
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.devices import Device, device, device_names
from airworthy.sensors.distortion import AnglePolynomial, PlumbBob
from airworthy.sensors.imu import imu_device, imu_names
from airworthy.sensors.lidar import Lidar, packed_points
from airworthy.sensors.limits import RangeLimits
from airworthy.sensors.mounting import Mount, MountSpread
from airworthy.sensors.noise import Draw, RangeNoise
from airworthy.sensors.projections import Fisheye, Pinhole, Projection, Spherical, UserRays
from airworthy.sensors.ranger import Ranger, ranger
from airworthy.sensors.rig import rig, rig_names
from airworthy.sensors.sampling import RaySensor, View
from airworthy.sensors.stereo import disparity, stereo_shadow
from airworthy.sensors.timing import SampleClock
from airworthy.sensors.tof import TimeOfFlight

__all__ = [
    "AnglePolynomial",
    "BeaconCamera",
    "BeaconOptions",
    "Camera",
    "Device",
    "Draw",
    "Fisheye",
    "Lidar",
    "Mount",
    "MountSpread",
    "Pinhole",
    "PlumbBob",
    "Projection",
    "RangeLimits",
    "RangeNoise",
    "Ranger",
    "RaySensor",
    "SampleClock",
    "Sensor",
    "Spherical",
    "TimeOfFlight",
    "UserRays",
    "View",
    "carried_sensors",
    "device",
    "device_names",
    "disparity",
    "imu_device",
    "imu_names",
    "make_sensor",
    "markers",
    "packed_points",
    "ranger",
    "rig",
    "rig_names",
    "stereo_shadow",
]
