"""Where the local world lies on the Earth: WGS84, by way of the Earth-centred frame, so that nothing is flattened.

The world is east, north, up about a home. Constants: NIMA TR8350.2, "Department of Defense World Geodetic System 1984", table
3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.schema import Bound, check_fields

__all__ = ["FIRST_ECCENTRICITY_SQUARED", "SEMI_MAJOR_AXIS", "Home", "ecef", "geodetic"]

SEMI_MAJOR_AXIS = 6378137.0
"""[m]"""
_FLATTENING = 1.0 / 298.257223563
FIRST_ECCENTRICITY_SQUARED = _FLATTENING * (2.0 - _FLATTENING)
# Each turn of Bowring's formula gains about three digits near the ground: three are exact in float64.
_TURNS = 3


@dataclass(frozen=True)
class Home:
    """The place on the Earth of the world's origin; x points east, y north, z up (along the ellipsoid's normal)."""

    # By default the home of PX4's simulated vehicles (docs.px4.io, "Simulation: set custom takeoff location"): Irchel, Zurich.
    latitude: Annotated[float, Bound(-90.0, 90.0, "deg")] = 47.397742
    """Geodetic [deg], north positive."""
    longitude: Annotated[float, Bound(-180.0, 180.0, "deg")] = 8.545594
    """[deg], east positive."""
    altitude: Annotated[float, Bound(-1000.0, 20000.0, "m")] = 488.0
    """Above the ellipsoid [m]; taken for that above the sea by barometers."""

    def __post_init__(self) -> None:
        check_fields(self, "Home.")

    def geodetic(self, position: ArrayLike) -> tuple[Array, Array, Array]:
        """Return latitude [deg], longitude [deg] and altitude [m] of world positions (..., 3) [m]."""
        origin = ecef(self.latitude, self.longitude, self.altitude)
        return geodetic(origin + np.asarray(position, np.float64) @ self._axes())

    def local(self, latitude: ArrayLike, longitude: ArrayLike, altitude: ArrayLike) -> Array:
        """Return world positions (..., 3) [m] of places on the Earth: the inverse of `geodetic`.

        Args:
            latitude: [deg].
            longitude: [deg].
            altitude: Above the ellipsoid [m].
        """
        origin = ecef(self.latitude, self.longitude, self.altitude)
        return np.asarray((ecef(latitude, longitude, altitude) - origin) @ self._axes().T)

    def _axes(self) -> Array:
        """East, north and up as rows, in the Earth-centred frame."""
        phi, lam = np.radians(self.latitude), np.radians(self.longitude)
        sin_phi, cos_phi, sin_lam, cos_lam = np.sin(phi), np.cos(phi), np.sin(lam), np.cos(lam)
        return np.array(
            [
                [-sin_lam, cos_lam, 0.0],
                [-sin_phi * cos_lam, -sin_phi * sin_lam, cos_phi],
                [cos_phi * cos_lam, cos_phi * sin_lam, sin_phi],
            ]
        )


def ecef(latitude: ArrayLike, longitude: ArrayLike, altitude: ArrayLike) -> Array:
    """Return Earth-centred, Earth-fixed positions (..., 3) [m] of places on the Earth.

    Args:
        latitude: [deg].
        longitude: [deg].
        altitude: Above the ellipsoid [m].
    """
    phi, lam, height = np.radians(latitude), np.radians(longitude), np.asarray(altitude, np.float64)
    normal = SEMI_MAJOR_AXIS / np.sqrt(1.0 - FIRST_ECCENTRICITY_SQUARED * np.sin(phi) ** 2)
    return np.stack(
        np.broadcast_arrays(
            (normal + height) * np.cos(phi) * np.cos(lam),
            (normal + height) * np.cos(phi) * np.sin(lam),
            (normal * (1.0 - FIRST_ECCENTRICITY_SQUARED) + height) * np.sin(phi),
        ),
        axis=-1,
    )


def geodetic(position: ArrayLike) -> tuple[Array, Array, Array]:
    """Return latitude [deg], longitude [deg] and altitude [m] of Earth-centred positions (..., 3) [m].

    Bowring, "Transformation from spatial to geographical coordinates", Survey Review XXIII, 181 (1976), repeated.
    """
    x, y, z = np.moveaxis(np.asarray(position, np.float64), -1, 0)
    polar = SEMI_MAJOR_AXIS * (1.0 - _FLATTENING)
    second = FIRST_ECCENTRICITY_SQUARED / (1.0 - FIRST_ECCENTRICITY_SQUARED)
    axis_distance = np.hypot(x, y)
    beta = np.arctan2(z, (1.0 - _FLATTENING) * axis_distance)
    for _ in range(_TURNS):
        phi = np.arctan2(
            z + second * polar * np.sin(beta) ** 3,
            axis_distance - FIRST_ECCENTRICITY_SQUARED * SEMI_MAJOR_AXIS * np.cos(beta) ** 3,
        )
        beta = np.arctan2((1.0 - _FLATTENING) * np.sin(phi), np.cos(phi))
    sin_phi, cos_phi = np.sin(phi), np.cos(phi)
    normal = SEMI_MAJOR_AXIS / np.sqrt(1.0 - FIRST_ECCENTRICITY_SQUARED * sin_phi**2)
    # Of the two usual forms for the height this one has no division, and holds at the poles, too.
    height = axis_distance * cos_phi + z * sin_phi - normal * (1.0 - FIRST_ECCENTRICITY_SQUARED * sin_phi**2)
    return np.degrees(phi), np.degrees(np.arctan2(y, x)), height
