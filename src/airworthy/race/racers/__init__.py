"""Vehicles of races that the catalogue has not, as data: each file says where its numbers are from."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import parse_toml
from airworthy.race.record import Race
from airworthy.vehicles import Vehicle, named_vehicle, vehicle_names
from airworthy.vehicles.files import vehicle_from_table

__all__ = ["race_vehicle", "racer_names"]


@cache
def racer_names() -> tuple[str, ...]:
    """Return names of the vehicles beside this module, sorted."""
    found = (item.name for item in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def race_vehicle(race: Race, name: str = "") -> Vehicle:
    """Return the vehicle that a race is flown with: one of those here, of the catalogue, or of a file.

    Args:
        race: Which names its vehicle.
        name: Another one; empty: the race's own.

    Raises:
        AirworthyError: The race names none and none was given, or there is no such vehicle.
    """
    word = name or race.vehicle
    if not word:
        known = ", ".join((*racer_names(), "flightgoggles_2019"))
        raise AirworthyError(f"The race {race.name!r} names no vehicle; give one (--vehicle): {known}, or another.")
    if word in racer_names() and word not in vehicle_names():
        file = f"{word}.toml"
        return vehicle_from_table(parse_toml(files(__name__).joinpath(file).read_text("utf-8"), file), file)
    if word not in vehicle_names() and not os.path.exists(word) and not word.endswith(".toml"):
        raise unknown_name(
            "vehicle",
            word,
            (*racer_names(), *vehicle_names()),
            f"Racers are {', '.join(racer_names())}; or name a vehicle TOML file.",
        )
    return named_vehicle(word)
