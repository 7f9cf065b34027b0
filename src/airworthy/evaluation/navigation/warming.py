"""The flight before the first one: what a pilot compiles and loads when it is first asked is no slow decision.

The first calls of a process compile kernels (Warp, Numba, torch.compile), read weights and fill caches. So whatever is timed by
the clock, a user's own pilot and anybody whose compute is measured, flies some seconds in every process before the first flight
that counts. Its calls have longer, and its result is thrown away; pilots of the flights that count are made anew. Flights that
count so are held to the same patience, whichever process flies them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from airworthy.core.files import json_text
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.entrants import Entrant
from airworthy.evaluation.navigation.plan import Flight
from airworthy.pilots.deciding import PilotFailure

__all__ = ["WARM_UP_S", "warm_up"]

WARM_UP_S = 2.0
"""Flown of it [s]."""
_WARM: set[tuple[str, str, int]] = set()
"""Pilots, and how many flights at once they have seen, of this process: what is compiled may be for a number of flights."""


def warm_up(
    fly: Callable[[Sequence[Flight], Entrant, NavigationConfig], object],
    flights: Sequence[Flight],
    entrant: Entrant,
    config: NavigationConfig,
    stored: Mapping[int, Sequence[float]] | None = None,
) -> bool:
    """Fly the beginning of some flights for nothing, once per process, pilot and number of flights; whether it was done.

    Args:
        fly: `flying.fly_flights`.
        flights: Those about to be flown; of pilots that are one object per flight the first will do.
        entrant: Who.
        config: How; `warm_up` is the patience here, and 0 leaves it out.
        stored: Latencies of a flight that is flown again: nothing of it is measured.

    Raises:
        AirworthyError: It can never fly.
    """
    timed = entrant.own or (config.compute == "measured" and stored is None)
    mine = flights[:1] if entrant.alone else flights
    key = (entrant.name, json_text(dict(entrant.identity)), len(mine))
    if not timed or config.warm_up == 0.0 or key in _WARM:
        return False
    _WARM.add(key)
    brief = replace(config.protocol, time_limit_s=min(WARM_UP_S, config.protocol.time_limit_s))
    gentle = replace(config, patience=max(config.patience, config.warm_up), protocol=brief)
    with suppress(PilotFailure):  # it fails again when it counts, with its cause
        fly(mine, entrant, gentle)
    return True
