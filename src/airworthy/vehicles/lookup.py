"""The catalogue: one data file per vehicle beside this module, read when its name is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from airworthy.core.errors import unknown_name
from airworthy.vehicles.files import read_vehicle
from airworthy.vehicles.record import Vehicle

__all__ = ["CATALOGUE", "vehicle", "vehicle_names"]

CATALOGUE = Path(__file__).parent / "catalogue"


def vehicle(name: str) -> Vehicle:
    """A catalogue vehicle by its name.

    Raises:
        UnknownNameError: No such vehicle; the message names the closest ones.
    """
    if name not in vehicle_names():
        raise unknown_name(
            "vehicle", name, vehicle_names(), "Run 'airworthy vehicles' to list them; docs/vehicles.md shows how to add one."
        )
    found = _read(name)
    return replace(found, sources=dict(found.sources), extra=dict(found.extra))  # callers may edit their own dictionaries


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in CATALOGUE.glob("*.toml")))


def vehicle_names() -> list[str]:
    """Every name in the catalogue, sorted."""
    return list(_names())


@cache
def _read(name: str) -> Vehicle:
    return read_vehicle(CATALOGUE / f"{name}.toml")
