"""How the catalogue's data files are made from published numbers: `python tools/build_catalogue.py`.

Each module turns one publication's numbers (found through AIRWORTHY_DATA) into vehicle records with a source per value. Nothing
here runs when the package is used; the files it writes are what users get.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from airworthy.vehicles.files import vehicle_text
from airworthy.vehicles.lookup import CATALOGUE
from airworthy.vehicles.record import Vehicle
from vehicle_sources import aerial_gym, crazyflie, figs, flightgoggles, flyingtrust

__all__ = ["ROTORS", "all_vehicles", "catalogue_texts", "rotors_texts"]

ROTORS = CATALOGUE.parent / "urdf_rotors"
"""Rotor descriptions that stand beside the URDFs of Aerial Gym, one per robot."""


def rotors_texts(data: Path) -> dict[Path, str]:
    """Path and text of every rotors TOML; they must be written before `all_vehicles` imports the URDFs."""
    return {ROTORS / f"{name}.toml": text for name, text in aerial_gym.rotors_texts(data).items()}


def all_vehicles(data: Path) -> Iterator[Vehicle]:
    """Yield every catalogue vehicle, built from the published numbers in `data`."""
    yield from flyingtrust.vehicles(data)
    yield from figs.vehicles(data)
    yield from flightgoggles.vehicles(data)
    yield from crazyflie.vehicles(data)
    yield from aerial_gym.vehicles(data, ROTORS)


def catalogue_texts(data: Path) -> dict[Path, str]:
    """Path and text of every catalogue file; vehicles with joints stand in a folder of their own."""
    folders = {True: CATALOGUE / "articulated", False: CATALOGUE}
    return {folders[bool(item.links)] / f"{item.name}.toml": vehicle_text(item) for item in all_vehicles(data)}
