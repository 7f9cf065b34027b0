"""Sensors by the word that names them: DEVICE, NAME=DEVICE, NAME=DEVICE:CHANNEL,CHANNEL, FILE.toml:NAME."""

from __future__ import annotations

from dataclasses import replace

from airworthy.core.errors import AirworthyError
from airworthy.sensors.devices import Device
from airworthy.sensors.own import device_or_sensor, is_own

__all__ = ["sensor_of"]


def sensor_of(word: str) -> tuple[str, Device]:
    """Return name and device of a word.

    Raises:
        UnknownNameError: There is no such device.
        AirworthyError: It is code of one's own.
    """
    name, named, rest = word.partition("=")
    kind, _, channels = (rest if named else name).partition(":")
    if is_own(kind):
        entry, _, channels = channels.partition(":")
        kind = f"{kind}:{entry}"
    found = device_or_sensor(kind)
    if not isinstance(found, Device):
        raise AirworthyError(f"The sensor {kind!r} is carried in `airworthy fly` alone; name a camera, LiDAR or ranger.")
    called = name if named else kind.rpartition(":")[2]
    return called, replace(found, channels=tuple(channels.split(","))) if channels else found
