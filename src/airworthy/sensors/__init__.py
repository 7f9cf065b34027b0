"""Sensors: named devices."""

from airworthy.sensors.imu import imu_device, imu_names

__all__ = ["imu_device", "imu_names"]
