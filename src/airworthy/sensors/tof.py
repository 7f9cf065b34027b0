"""Time-of-flight sensors: few zones, each the nearest return of its rays."""

from __future__ import annotations

from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.sensors.sampling import RaySensor


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
