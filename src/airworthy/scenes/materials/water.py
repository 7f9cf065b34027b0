"""Water by what is in it: how fast red, green and blue are lost in it, what it sends back, and how steep the wind makes it."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import packaged_toml
from airworthy.scenes.record import Material

__all__ = ["WATER_INDEX", "mean_square_slope", "water_material", "water_names"]

WATER_INDEX = 1.333
"""Index of refraction at 589 nm and 20 C (CRC Handbook of Chemistry and Physics)."""
WIND_MAX = 14.0
"""Up to which Cox and Munk measured [m/s]."""


def mean_square_slope(wind: float) -> float:
    """Return the mean square slope of open water, 0.003 + 0.00512 W at a wind of W m/s 12.5 m above it (Cox and Munk, 1954).

    Raises:
        AirworthyError: The wind is below 0 or above 14 m/s, up to which it was measured.
    """
    if not 0.0 <= wind <= WIND_MAX:
        raise AirworthyError(f"Waves of a wind of {wind} m/s were asked for; expected 0 to {WIND_MAX:g} m/s.")
    return 0.003 + 0.00512 * wind


@cache
def _waters() -> dict[str, Any]:
    return packaged_toml("airworthy.scenes.materials", "waters.toml")


def water_names() -> list[str]:
    """Return the kinds of water, from the clearest to the darkest."""
    return list(_waters())


def water_material(name: str = "lake", wind: float | None = None) -> Material:
    """Return the material of a water's surface; what lies behind its front is under water.

    Args:
        name: One of `water_names()`.
        wind: That raises waves [m/s], as on open water; None: as smooth as a mirror.

    Raises:
        AirworthyError: The wind is out of range.
        UnknownNameError: There is no such water.
    """
    if name not in _waters():
        raise unknown_name("water", name, water_names())
    row = _waters()[name]
    return Material(
        (1.0, 1.0, 1.0, 1.0),
        roughness=0.03,
        transmission=1.0,
        ior=WATER_INDEX,
        attenuation=tuple(row["attenuation"]),
        scattered=tuple(row["scattered"]),
        wave_slope=0.0 if wind is None else math.sqrt(mean_square_slope(wind)),
    )
