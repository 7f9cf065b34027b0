"""Sensors of one's own: devices in a TOML file, and classes in a Python file that make of a place what no kind here does.

A word names either: FILE.toml:NAME, with tables like those of the catalogue, or FILE.py:CLASS. A class is built without
arguments; what it must have and give is `airworthy.sensors.Sensor`, and `check_sensor` and `check_sample` hold it to that.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError, AssetError, telling_refusals, unknown_name
from airworthy.core.files import read_toml
from airworthy.core.own_modules import load_own, own_digest
from airworthy.sensors.build import Sensor
from airworthy.sensors.devices import Device, device, device_from
from airworthy.sensors.navigation.mounted import NavigationSensor, mounted_names
from airworthy.sensors.noise import sensor_number
from airworthy.sensors.sampling import SensorView

__all__ = ["SPECIFIER_HINT", "check_sample", "check_sensor", "device_or_sensor", "is_own", "remembers", "renamed", "sampled"]

SPECIFIER_HINT = (
    "`airworthy sensors` lists the devices; one's own are FILE.toml:NAME or FILE.py:CLASS, see docs/howto/sensors.md."
)
"""Last sentence of what is said about an unknown word."""
# Greedy: folders may end in .py or .toml as well, the last such ending is the file's; DOTALL, since paths may hold line breaks.
_SPECIFIER = re.compile(r"(?P<path>.+\.(?P<kind>toml|py))(?::(?P<name>[^:]*))?", re.DOTALL)
_MEMORY = ("reset", "save", "restore")


def is_own(specifier: str) -> bool:
    """Tell whether a word names a file of one's own: FILE.toml, FILE.toml:NAME, FILE.py or FILE.py:CLASS."""
    return _SPECIFIER.fullmatch(specifier) is not None


def device_or_sensor(specifier: str) -> Device | Sensor:
    """Return the device of a word: a name of the catalogue, or FILE.toml:NAME; or a new sensor, of satellite navigation and
    the like by its name, or of FILE.py:CLASS.

    The code of a Python file runs, as the user asks.

    Raises:
        UnknownNameError: There is no such device, in the catalogue or in the file.
        AssetError: The file cannot be read.
        AirworthyError: An entry cannot be used, or the class makes no sensor.
    """
    found = _SPECIFIER.fullmatch(specifier)
    if found is None and specifier in mounted_names():
        return NavigationSensor(specifier)
    if found is None:
        return device(specifier)
    path, name = Path(found["path"]), found["name"] or ""
    return _device_of(path, name) if found["kind"] == "toml" else _sensor_of(path, name)


def _device_of(path: Path, name: str) -> Device:
    tables = read_toml(path)
    entries = {key: entry for key, entry in tables.items() if isinstance(entry, dict)}
    if name not in entries:
        raise unknown_name(f"device of {str(path)!r}", name, entries, f"Write {path}:NAME, the name of one of its tables.")
    try:
        return device_from(name, entries[name])
    except AirworthyError as error:
        raise AssetError(f"{str(path)!r}: {error}") from error
    # Wrong types surface as whatever the first arithmetic on them raises.
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise AssetError(f"{str(path)!r}: the device {name!r} cannot be used: {_reason(error)}.") from error


@telling_refusals()
def _sensor_of(path: Path, name: str) -> Sensor:
    if not path.is_file():
        raise AssetError(f"There is no file {str(path)!r} for the sensor {name!r}.")
    kind = getattr(load_own(path, own_digest(path)), name, None) if name else None
    if not isinstance(kind, type):
        raise AirworthyError(f"{str(path)!r} has no class {name!r}: write FILE.py:CLASS.")
    try:
        made = kind()
    # A stranger's code may raise anything, and one sentence is owed for each.
    except Exception as error:
        raise AirworthyError(f"{str(path)!r}: {name}() failed, which is built without arguments: {_reason(error)}.") from error
    return check_sensor(made, name)


def check_sensor(item: Any, name: str) -> Sensor:
    """Return a sensor of a user's class if it is one.

    Args:
        item: What is to be mounted.
        name: By which it is called in the message.

    Raises:
        AirworthyError: It lacks `device` or `capture`, or has some but not all of reset, save and restore.
    """
    lacking = "" if isinstance(getattr(item, "device", None), Device) else "`device`, an airworthy.sensors.Device"
    if not lacking and not callable(getattr(item, "capture", None)):
        lacking = "capture(scene, view, channels)"
    # With some of the three only, a run that is stopped and resumed would silently differ.
    if not lacking and any(hasattr(item, part) for part in _MEMORY):
        lacking = next((f"{part}, which goes with {', '.join(_MEMORY)}" for part in _MEMORY if not hasattr(item, part)), "")
    if lacking:
        raise AirworthyError(
            f"Sensor {name!r} is of the class {type(item).__name__!r}, which lacks {lacking}: see docs/howto/sensors.md."
        )
    sensor: Sensor = item
    return sensor


def renamed(sensor: Sensor, item: Device, name: str) -> Sensor:
    """Return a copy of a sensor as it is mounted: with the device in force, the mounted name, and that name's random numbers.

    A copy with its own memory, so that one object can be mounted twice.

    Args:
        sensor: As the user made it.
        item: The device in force.
        name: On the vehicle.

    Raises:
        AirworthyError: It cannot be copied, or its attributes cannot be set.
    """
    try:
        mounted = copy.deepcopy(sensor)
        mounted.device, mounted.name, mounted.number = item, name, sensor_number(name)
    except Exception as error:
        raise AirworthyError(
            f"Sensor {name!r} is of the class {type(sensor).__name__!r}, which cannot be copied and given a device, name and"
            f" number, as mounting does: {_reason(error)}."
        ) from error
    return mounted


def remembers(sensor: Any) -> bool:
    """Tell whether a sensor keeps something from sample to sample: it then has reset, save and restore."""
    return all(callable(getattr(sensor, part, None)) for part in _MEMORY)


def sampled(sensor: Sensor, scene: Any, view: SensorView, name: str) -> dict[str, ArrayAny]:
    """Return a sample of a user's sensor.

    Args:
        sensor: Whose.
        scene: What it looks at.
        view: From where.
        name: Of the sensor.

    Raises:
        AirworthyError: Its code failed, or gave no sample.
    """
    try:
        data = sensor.capture(scene, view)
    # Says in one sentence already what is wrong.
    except AirworthyError:
        raise
    except Exception as error:
        raise AirworthyError(f"Sensor {name!r} failed in capture: {_reason(error)}.") from error
    return check_sample(data, len(view.position), name)


def check_sample(data: Any, count: int, name: str) -> dict[str, ArrayAny]:
    """Return what a user's sensor gave, as arrays.

    Args:
        data: What `capture` returned.
        count: Views that were asked for.
        name: Of the sensor.

    Raises:
        AirworthyError: It is no mapping of names to arrays of numbers with a row per view.
    """
    if not isinstance(data, Mapping) or not data or not all(isinstance(channel, str) for channel in data):
        raise AirworthyError(f"Sensor {name!r} gave {type(data).__name__}; expected arrays by the names of its channels.")
    try:
        arrays = {channel: np.asarray(values) for channel, values in data.items()}
    except ValueError as error:
        raise AirworthyError(f"Sensor {name!r} gave no arrays: {_reason(error)}.") from error
    for channel, array in arrays.items():
        # Floats, whole numbers with and without sign, booleans: what recordings can hold; objects and text are refused.
        if array.dtype.kind not in "fiub" or array.ndim < 2 or len(array) != count:
            raise AirworthyError(
                f"Sensor {name!r} gave {channel!r} as {array.dtype} of shape {array.shape}; expected numbers of shape"
                f" ({count}, ...), a row per view with at least one number in it."
            )
    return arrays


def _reason(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}"[:300]  # ours: what strangers' code says may be pages long
