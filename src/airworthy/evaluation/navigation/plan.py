"""What is flown: single flights with numbers of their own, and the blocks in which they are flown together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from airworthy.scenes.generators import SCENARIOS

__all__ = ["CONFIGURATIONS", "FLEET", "SCENARIO_NAMES", "Block", "Flight", "blocks_of", "file_name", "flights_of"]

CONFIGURATIONS = 10
"""Of every scenario."""
FLEET = tuple([f"real_{k:02d}" for k in range(1, 19)] + [f"virt_{k:02d}" for k in range(1, 19)])
"""The 36 vehicles."""
SCENARIO_NAMES = (*SCENARIOS, "sudden_drop_plus")
"""Of every scenario that can be flown."""


@dataclass(frozen=True)
class Flight:
    """One flight of any pilot."""

    scenario: str
    configuration: int
    """Layout, 1 to 10: trial k of a combination is flown in configuration k."""
    vehicle: str
    repeat: int = 0
    """From 0 on; other draws in the same configuration."""

    @property
    def number(self) -> int:
        """Key of all that is random in it, together with the seed: of what it is alone, so that a flight is the same flight
        whatever else is flown, and for every pilot."""
        text = f"{self.scenario}:{self.configuration}:{self.vehicle}:{self.repeat}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


@dataclass(frozen=True)
class Block:
    """Flights of one pilot that are flown in one batch and kept together."""

    pilot: str
    index: int
    flights: tuple[Flight, ...]

    @property
    def name(self) -> str:
        """Unique in a run, and good for a file's name."""
        return f"{file_name(self.pilot)}__{self.index:05d}"


def file_name(word: str) -> str:
    """A word as part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in word)


def flights_of(scenarios: Sequence[str], vehicles: Sequence[str], trials: int, repeats: int) -> list[Flight]:
    """Every flight of a pilot, layout by layout: neighbours share a place, which is built once."""
    return [
        Flight(scenario, configuration, vehicle, repeat)
        for scenario in scenarios
        for configuration in range(1, trials + 1)
        for vehicle in vehicles
        for repeat in range(repeats)
    ]


def blocks_of(pilots: Sequence[str], flights: Sequence[Flight], size: int) -> list[Block]:
    """The flights of every pilot in blocks of at most `size`, pilot by pilot."""
    return [
        Block(pilot, index, tuple(flights[first : first + size]))
        for pilot in pilots
        for index, first in enumerate(range(0, len(flights), size))
    ]
