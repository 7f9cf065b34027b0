"""Where the sun stands, by time and place: the low-precision formulas of the Astronomical Almanac.

As Michalsky gives them (The Astronomical Almanac's algorithm for approximate solar position, 1988): within 0.01 degrees from
1950 to 2050. The air's refraction, which lifts a low sun by up to half a degree, is left out, as it is by the sky.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from airworthy.core.errors import AirworthyError

__all__ = ["sun_position"]

_EPOCH = datetime(2000, 1, 1, 12, tzinfo=UTC)
_YEARS = (1950, 2050)


def sun_position(time: datetime, latitude: float, longitude: float) -> tuple[float, float]:
    """Return the sun's elevation above the horizon and its azimuth from world x (east), counter-clockwise, both [rad].

    Args:
        time: With its time zone.
        latitude: [deg], north positive.
        longitude: [deg], east positive.

    Raises:
        AirworthyError: The time has no zone or is not between 1950 and 2050, or there is no such place.
    """
    if time.tzinfo is None:
        raise AirworthyError(f"The time {time.isoformat()} names no time zone; write 2026-06-21T12:00Z or ...+02:00.")
    if not _YEARS[0] <= time.year <= _YEARS[1]:
        raise AirworthyError(f"The year is {time.year}; the sun's position is known from {_YEARS[0]} to {_YEARS[1]}.")
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 360.0):
        raise AirworthyError(
            f"There is no place at {latitude} deg north, {longitude} deg east; expected -90 to 90, -360 to 360."
        )
    days = (time - _EPOCH).total_seconds() / 86400.0
    anomaly = math.radians((357.528 + 0.9856003 * days) % 360.0)
    mean = (280.460 + 0.9856474 * days) % 360.0
    ecliptic = math.radians(mean + 1.915 * math.sin(anomaly) + 0.020 * math.sin(2.0 * anomaly))
    tilt = math.radians(23.439 - 4e-7 * days)
    right_ascension = math.atan2(math.cos(tilt) * math.sin(ecliptic), math.cos(ecliptic))
    declination = math.asin(math.sin(tilt) * math.sin(ecliptic))
    # Greenwich mean sidereal time, from days since the epoch at noon.
    sidereal = math.radians((280.46062 + 360.98564737 * days + longitude) % 360.0)
    hour, phi = sidereal - right_ascension, math.radians(latitude)
    east = -math.cos(declination) * math.sin(hour)
    north = math.sin(declination) * math.cos(phi) - math.cos(declination) * math.cos(hour) * math.sin(phi)
    up = math.sin(declination) * math.sin(phi) + math.cos(declination) * math.cos(hour) * math.cos(phi)
    return math.asin(min(max(up, -1.0), 1.0)), math.atan2(north, east)
