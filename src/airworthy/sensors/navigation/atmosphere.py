"""The standard atmosphere up to 11 km: pressure and temperature of an altitude, and the altitude that a pressure stands for.

Constants: ISO 2533:1975, "Standard Atmosphere".
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = ["SEA_LEVEL_PRESSURE", "pressure", "pressure_altitude", "temperature"]

SEA_LEVEL_PRESSURE = 101325.0
"""[Pa]"""
_SEA_LEVEL_TEMPERATURE = 288.15  # [K]
_LAPSE_RATE = 0.0065  # [K/m]
_GRAVITY = 9.80665  # [m/s^2]
_GAS_CONSTANT = 287.05287  # of dry air [J/(kg K)]
_EXPONENT = _GRAVITY / (_GAS_CONSTANT * _LAPSE_RATE)


def temperature(altitude: ArrayLike) -> Array:
    """Return the air's temperature [K] at altitudes above the sea [m]."""
    return _SEA_LEVEL_TEMPERATURE - _LAPSE_RATE * np.asarray(altitude, np.float64)


def pressure(altitude: ArrayLike) -> Array:
    """Return the air's pressure [Pa] at altitudes above the sea [m], of -1 to 11 km."""
    return np.asarray(SEA_LEVEL_PRESSURE * (temperature(altitude) / _SEA_LEVEL_TEMPERATURE) ** _EXPONENT)


def pressure_altitude(pressure: ArrayLike) -> Array:
    """Return the altitude [m] at which the standard atmosphere has a pressure [Pa]: the inverse of `pressure`."""
    share = np.asarray(pressure, np.float64) / SEA_LEVEL_PRESSURE
    return np.asarray(_SEA_LEVEL_TEMPERATURE / _LAPSE_RATE * (1.0 - share ** (1.0 / _EXPONENT)))
