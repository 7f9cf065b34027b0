"""The scene of one configuration of one scenario."""

from __future__ import annotations

from typing import SupportsIndex

from airworthy.core.errors import unknown_name
from airworthy.scenes.generators.flyingtrust.build import build
from airworthy.scenes.generators.flyingtrust.ordering import Candidate, configurations
from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, SCENARIOS
from airworthy.scenes.generators.seeding import checked
from airworthy.scenes.record import Scene


def configuration(name: str, index: SupportsIndex, seed: SupportsIndex = 0) -> Candidate:
    """Layout, shortest way and difficulty of a configuration.

    The first call for a (name, seed) draws and measures all ten, which takes seconds; later ones are answered from memory.

    Args:
        name: One of `SCENARIOS`.
        index: 1 to 10, from easy to difficult.
        seed: 0: the benchmark's own configurations; others are held out.

    Raises:
        UnknownNameError: If there is no such scenario.
        AirworthyError: If index or seed is not an integer, or the index is out of range.
    """
    if name not in SCENARIOS:
        raise unknown_name("scenario", name, SCENARIOS)
    number = checked("index", index, 1, CONFIGURATIONS)
    return configurations(name, checked("seed", seed))[number - 1]


def scene_of(name: str, index: SupportsIndex, seed: SupportsIndex = 0) -> Scene:
    """The scene of a configuration; arguments and errors as `configuration`."""
    candidate = configuration(name, index, seed)
    return build(candidate.layout, int(index), int(seed))
