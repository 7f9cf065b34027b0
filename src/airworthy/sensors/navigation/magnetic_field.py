"""The Earth's magnetic field by the World Magnetic Model: a potential of spherical harmonics up to degree 12.

"The US/UK World Magnetic Model for 2020-2025: Technical Report" (NOAA, 2020), section 1.2, whose equations those of 2025 are.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import packaged_toml
from airworthy.sensors.navigation.geodesy import Home, ecef

__all__ = ["YEAR", "magnetic_field"]

YEAR = 2026.0
"""Ours: when nobody says when, the same year in every flight, so that a flight does not depend on the day it is flown."""
_REFERENCE_RADIUS = 6371200.0  # geomagnetic, of the report [m]
_NANOTESLA_PER_GAUSS = 1e5
# Ours: nearer to a pole east and north turn faster than a vehicle flies; the field's size is right all the same.
_POLE = 1e-7


def magnetic_field(home: Home, year: float = YEAR) -> Array:
    """Return the field at a home: east, north, up [gauss], shape (3,).

    Raises:
        AirworthyError: The year is not one of the five that the model holds for.
    """
    epoch, years, table = _model()
    if not epoch <= year <= epoch + years:
        raise AirworthyError(f"The magnetic field is asked for of the year {year:g}; the model holds from {epoch:g} to"
                             f" {epoch + years:g}.")  # fmt: skip
    x, y, z = ecef(home.latitude, home.longitude, home.altitude)
    radius = float(np.sqrt(x * x + y * y + z * z))
    north, east, down = _spherical_field(float(np.arcsin(z / radius)), np.radians(home.longitude), radius, year - epoch, table)
    # From the axes of the sphere to those of the ellipsoid, whose vertical leans by the difference of the latitudes.
    lean = float(np.arcsin(z / radius)) - np.radians(home.latitude)
    ellipsoidal_north = north * np.cos(lean) - down * np.sin(lean)
    ellipsoidal_down = north * np.sin(lean) + down * np.cos(lean)
    return np.array([east, ellipsoidal_north, -ellipsoidal_down]) / _NANOTESLA_PER_GAUSS


@cache
def _model() -> tuple[float, float, Array]:
    data = packaged_toml("airworthy.sensors.navigation", "wmm2025.toml")
    return float(data["epoch"]), float(data["years"]), np.array(data["coefficients"], np.float64)


def _spherical_field(latitude: float, longitude: float, radius: float, years: float, table: Array) -> tuple[float, ...]:
    """Field north, east, down [nT] at geocentric latitude [rad], longitude [rad], radius [m] (equations 10 to 12)."""
    degree = int(table[:, 0].max())
    sin, cos = np.sin(latitude), max(float(np.cos(latitude)), _POLE)
    functions, slopes = _legendre(sin, cos, degree)
    north = east = down = 0.0
    for n, m, g0, h0, g_dot, h_dot in table:
        n, m = int(n), int(m)
        g, h = g0 + years * g_dot, h0 + years * h_dot
        scale = (_REFERENCE_RADIUS / radius) ** (n + 2)
        along, across = (
            g * np.cos(m * longitude) + h * np.sin(m * longitude),
            g * np.sin(m * longitude) - h * np.cos(m * longitude),
        )
        north -= scale * along * slopes[n, m]
        east += scale * m * across * functions[n, m] / cos
        down -= scale * (n + 1) * along * functions[n, m]
    return float(north), float(east), float(down)


def _legendre(sin: float, cos: float, degree: int) -> tuple[Array, Array]:
    """Schmidt semi-normalised associated Legendre functions of the sine of a latitude, and their slopes by the latitude.

    The recursions of Langel, "The main field", in Jacobs, "Geomagnetism" (1987), equations 27 and 28.
    """
    p, dp = np.zeros((degree + 1, degree + 1)), np.zeros((degree + 1, degree + 1))
    p[0, 0] = 1.0
    for n in range(1, degree + 1):
        for m in range(n + 1):
            if n == m:
                factor = 1.0 if n == 1 else np.sqrt((2 * n - 1) / (2 * n))
                p[n, n] = factor * cos * p[n - 1, n - 1]
                dp[n, n] = factor * (cos * dp[n - 1, n - 1] - sin * p[n - 1, n - 1])
                continue
            first, second = 2 * n - 1, np.sqrt((n - 1) ** 2 - m * m)
            below, slope_below = (p[n - 2, m], dp[n - 2, m]) if n - 2 >= m else (0.0, 0.0)
            root = np.sqrt(n * n - m * m)
            p[n, m] = (first * sin * p[n - 1, m] - second * below) / root
            dp[n, m] = (first * (sin * dp[n - 1, m] + cos * p[n - 1, m]) - second * slope_below) / root
    return p, dp
