"""Named inertial sensors, as data with their source.

The simulated sensor (`airworthy.simulation.Imu`) reads the same forces that move the vehicle. Densities are per square root of
hertz: a sample at rate f has standard deviation density * sqrt(f), a bias step has walk / sqrt(f).
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.errors import AirworthyError, unknown_name


@cache
def _devices() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("airworthy.sensors").joinpath("imu_devices.toml").read_text())


def imu_names() -> list[str]:
    """Names of the known devices."""
    return sorted(_devices())


def imu_device(name: str) -> dict[str, Any]:
    """Parameters of a device as keyword arguments of `airworthy.simulation.Imu`.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in _devices():
        raise unknown_name("inertial sensor", name, imu_names(), "Devices are listed in sensors/imu_devices.toml.")
    entry = _devices()[name]
    three = ("accelerometer_noise", "gyroscope_noise", "accelerometer_walk", "gyroscope_walk")
    values: dict[str, Any] = {key: _three(name, key, entry[key]) for key in three}
    values["accelerometer_limit"] = float(entry["accelerometer_limit"])
    values["gyroscope_limit"] = float(entry["gyroscope_limit"])
    values["bias_initial"] = tuple(entry["bias_initial"])
    return values


def _three(name: str, key: str, value: Any) -> tuple[float, float, float]:
    numbers = value if isinstance(value, list) else [value] * 3
    if len(numbers) != 3:
        raise AirworthyError(f"Inertial sensor {name!r} has {len(numbers)} numbers for {key}; expected 1 or 3.")
    x, y, z = (float(n) for n in numbers)
    return x, y, z
