"""Units that files use, and what makes SI of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

RPM = 2.0 * np.pi / 60.0
"""One turn per minute [rad/s]."""
STANDARD_GRAVITY = 9.81
"""What accelerometers of flight controllers call one g [m/s^2]."""
DEGREE = np.pi / 180.0

UNITS: Mapping[str, Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "rad/s": {"rad/s": (1.0, 0.0), "deg/s": (DEGREE, 0.0), "rpm": (RPM, 0.0), "mrad/s": (1e-3, 0.0)},
        "m/s^2": {
            "m/s^2": (1.0, 0.0),
            "g": (STANDARD_GRAVITY, 0.0),
            "mg": (1e-3 * STANDARD_GRAVITY, 0.0),
            "ft/s^2": (0.3048, 0.0),
        },
        "1": {"1": (1.0, 0.0), "%": (0.01, 0.0), "us": (1e-3, -1.0), "u16": (1.0 / 65535.0, 0.0), "u8": (1.0 / 255.0, 0.0)},
        "V": {"V": (1.0, 0.0), "mV": (1e-3, 0.0)},
        "A": {"A": (1.0, 0.0), "mA": (1e-3, 0.0), "cA": (1e-2, 0.0)},
        "m": {"m": (1.0, 0.0), "cm": (1e-2, 0.0), "mm": (1e-3, 0.0), "ft": (0.3048, 0.0)},
        "m/s": {"m/s": (1.0, 0.0), "cm/s": (1e-2, 0.0), "mm/s": (1e-3, 0.0), "km/h": (1.0 / 3.6, 0.0)},
        "T": {"T": (1.0, 0.0), "uT": (1e-6, 0.0), "gauss": (1e-4, 0.0), "mgauss": (1e-7, 0.0)},
        "Pa": {"Pa": (1.0, 0.0), "hPa": (100.0, 0.0), "mbar": (100.0, 0.0), "kPa": (1e3, 0.0)},
        "K": {"K": (1.0, 0.0), "degC": (1.0, 273.15)},
    }
)
"""SI unit -> unit of a file -> factor and shift: SI = factor x value + shift. "us" of a command is 1000..2000 -> 0..1."""
