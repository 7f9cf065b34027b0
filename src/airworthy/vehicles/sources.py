"""Which values of a vehicle carry no source."""

from __future__ import annotations

import dataclasses

from airworthy.vehicles._schema import default_of
from airworthy.vehicles.record import Vehicle


def missing_sources(craft: Vehicle) -> list[str]:
    """Dotted names of the values that differ from their defaults and carry no source."""
    skipped = {"name", "sources", "extra", "rotors", "sensors"}
    names = [f.name for f in dataclasses.fields(craft) if f.name not in skipped and getattr(craft, f.name) != default_of(f)]
    for f in dataclasses.fields(craft.rotors[0]):
        if any(getattr(rotor, f.name) != default_of(f) for rotor in craft.rotors):
            names.append(f"rotors.{f.name}")
    names += [f"sensors.{sensor.name}" for sensor in craft.sensors]
    return [name for name in names if name not in craft.sources and name.split(".")[0] not in craft.sources]
