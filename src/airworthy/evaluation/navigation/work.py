"""What flies a block, in whichever process: all at once, and where a pilot of all flights fails, its flights one by one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant, entrant
from airworthy.evaluation.navigation.flying import fly_flights
from airworthy.evaluation.navigation.plan import Block, Flight
from airworthy.evaluation.navigation.rows import Row, rows_of
from airworthy.pilots.deciding import PilotFailure

__all__ = ["flown_rows", "fly_block"]


def fly_block(
    block: Block, word: str, config: NavigationConfig, told: Callable[[int], None] | None = None
) -> tuple[list[Row], dict[str, float]]:
    """Rows of a block in its order, and what it took by part [s].

    Args:
        block: Which flights.
        word: The pilot's, as on the command line.
        config: Of the run.
        told: Called with the number of flights that were decided since.
    """
    try:
        return flown_rows(block.flights, entrant(word), config, told)
    finally:
        # Simulators and pilots know each other, so their maps (gigabytes in a large batch) would wait for Python's rare whole
        # collections while the next block takes as much again.
        gc.collect()


def flown_rows(
    flights: Sequence[Flight], who: Entrant, config: NavigationConfig, told: Callable[[int], None] | None = None
) -> tuple[list[Row], dict[str, float]]:
    """The same of any flights and entrant."""
    try:
        flown = fly_flights(flights, who, config, told)
    except PilotFailure:
        # It cannot be said whose fault it was: alone, only those fail that are at fault.
        parts = [flown_rows([flight], who, config) for flight in flights]
        seconds: dict[str, float] = {}
        for _, took in parts:
            for name, value in took.items():
                seconds[name] = seconds.get(name, 0.0) + value
        return [row for rows, _ in parts for row in rows], seconds
    return rows_of(flown, who, config), flown.seconds
