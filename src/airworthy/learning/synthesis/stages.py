"""Where the time of a long job goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["STAGES", "Stages"]

STAGES = ("planning", "solving", "simulating", "rendering", "writing")
"""Of synthesis: paths and draws; the expert; the drones' motion; images, to 8 bits; files and their checksums."""


class Stages:
    """A stopwatch with one hand per stage; stages do not overlap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """By stage [s]."""

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of the block to a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def add(self, seconds: dict[str, float]) -> None:
        """Count what others measured."""
        for name, value in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value
